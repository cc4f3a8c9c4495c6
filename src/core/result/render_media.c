/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Media as text, for models that cannot take it: what somebody wrote down about it, or else what
 * it is called. Trust is that of the media, and never more than that of what is shown.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/envelope.h"

/* ---- names and types from outside --------------------------------------------------- */

/* What a character of a name becomes: what could leave a tag, a line or a folder does not stay. */
static peg_str safe_char(peg_str name, size_t n, uint32_t c)
{
    if (c == '<' || c == '>' || peg__char_is_unseen(c))
        return peg__str("");
    if (c == '/' || c == '\\')
        return peg__str("_");
    return c == 0xFFFD ? peg__str("\xEF\xBF\xBD") : peg__strn(name.ptr, n);
}

/* Requires an empty buffer. */
static void put_filename(peg_str name, struct peg__buf *out)
{
    while (name.len > 0 && !out->status) {
        uint32_t c;
        const size_t n = peg__char_decode(name, &c);
        const peg_str safe = safe_char(name, n, c);

        if (out->len + safe.len > PEG_LIMIT_FILENAME_BYTES)
            break;
        peg__buf_str(out, safe);
        name = peg__str_from(name, n);
    }
    if (out->status)
        return;
    name = peg__buf_view(out);
    if (name.len == 0 || peg__str_is(name, ".") || peg__str_is(name, "..")) {
        peg__buf_clear(out);
        peg__buf_puts(out, "unnamed");
    }
}

peg_status peg_safe_filename(peg_str name, char **ret_name, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (!ret_name || (name.len > 0 && !name.ptr))
        return peg__fail(reterr, PEG_EINVAL, "E_RENDER", "a name and a place for it are required");
    put_filename(name, &out);
    return peg__buf_take(&out, ret_name, NULL, reterr);
}

static bool is_mime_char(char c, bool is_first)
{
    if (peg__is_alnum(c))
        return true;
    return !is_first && c != '\0' && strchr("!#$&-^_.+", c);
}

/* One half of type/subtype: RFC 6838, restricted-name. */
static size_t mime_part_len(const char *s)
{
    size_t n = 0;

    while (n < 127 && is_mime_char(s[n], n == 0))
        n++;
    return n;
}

const char *peg_safe_mime_type(const char *mime_type)
{
    const size_t type = mime_type ? mime_part_len(mime_type) : 0;
    size_t subtype;

    if (type == 0 || mime_type[type] != '/')
        return "application/octet-stream";
    subtype = mime_part_len(mime_type + type + 1);
    return subtype > 0 && mime_type[type + 1 + subtype] == '\0' ? mime_type
                                                                : "application/octet-stream";
}

/* ---- what stands in its place -------------------------------------------------------- */

static void put_size(int64_t n, struct peg__buf *out)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double size = (double)n / 1024;
    size_t unit = 0;

    if (n < 0) {
        peg__buf_puts(out, "size unknown");
        return;
    }
    if (n < 1024) {
        peg__buf_printf(out, "%d byte%s", (int)n, n == 1 ? "" : "s");
        return;
    }
    for (; size >= 1023.95 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        size /= 1024;
    peg__buf_printf(out, "%.1f %s", size, units[unit]);
}

/* A file name between double quotes. */
static void put_quoted_filename(const peg_media *media, struct peg__buf *out)
{
    struct peg__buf name = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    put_filename(peg_cstr(peg_media_filename(media)), &name);
    if (!out->status)
        out->status = name.status;
    peg__buf_putc(out, '"');
    peg__quoted_write(peg__buf_view(&name), out);
    peg__buf_putc(out, '"');
    peg__buf_free(&name);
}

static void put_description(const peg_media *media, struct peg__buf *out)
{
    peg__buf_printf(out, "%s ", peg_media_kind_name(peg_media_kind_of(media)));
    put_quoted_filename(media, out);
    peg__buf_printf(out, " (%s, ", peg_safe_mime_type(peg_media_mime_type(media)));
    put_size(peg_reader_byte_length(peg_media_reader(media)), out);
    peg__buf_puts(out, "); its content is not part of this text.");
}

/* The closest to the media itself. */
static const peg_media_note *best_note(const peg_media *media)
{
    static const char *const names[] = {"text:transcript", "text:caption", "text:description"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const peg_media_note *note = peg_media_note_named(media, names[i]);

        if (note && note->text && note->text[0])
            return note;
    }
    return NULL;
}

static const char *modality(const peg_media *media)
{
    switch (peg_media_hazard_of(media)) {
    case PEG_HAZARD_INERT:
        return "inert";
    case PEG_HAZARD_EXTRACTABLE:
        return "extractable";
    case PEG_HAZARD_UNSET:
    case PEG_HAZARD_OPAQUE:
        break;
    }
    return "opaque";
}

void peg__media_write(const peg_media *media, const struct peg__media_frame *frame,
                      struct peg__buf *out)
{
    struct peg__buf body = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_media_note *note = best_note(media);
    peg_envelope envelope = {.nonce = frame->nonce, .kind = "media-fallback", .tool = frame->tool};

    envelope.modality = modality(media);
    envelope.is_trusted = frame->may_trust && peg_media_tier(media) == PEG_TIER_FIRST_PARTY &&
                          (!note || note->tier == PEG_TIER_FIRST_PARTY);
    if (note) {
        peg__buf_printf(&body, "%s of the %s:\n", note->name + strlen("text:"),
                        peg_media_kind_name(peg_media_kind_of(media)));
        peg__buf_puts(&body, note->text);
    } else {
        put_description(media, &body);
    }
    if (!out->status)
        out->status = body.status;
    peg__envelope_write(&envelope, peg__buf_view(&body), out);
    peg__buf_free(&body);
}

void peg__media_marker_write(const peg_media *media, struct peg__buf *out)
{
    peg__buf_puts(out, "[media id=\"");
    peg__quoted_write(peg_cstr(peg_media_id(media)), out);
    peg__buf_puts(out, "\" filename=");
    put_quoted_filename(media, out);
    peg__buf_putc(out, ']');
}

peg_status peg_render_media_marker(const peg_media *media, char **ret_text, size_t *ret_len,
                                   peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (!media || !ret_text)
        return peg__fail(reterr, PEG_EINVAL, "E_RENDER", "media and a place for it are required");
    peg__media_marker_write(media, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

peg_status peg_render_media(const peg_media *media, char **ret_text, size_t *ret_len,
                            peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char nonce[PEG_ID_HEX_TEXT];
    const struct peg__media_frame frame = {.nonce = nonce, .may_trust = true};

    if (!media || !ret_text)
        return peg__fail(reterr, PEG_EINVAL, "E_RENDER", "media and a place for it are required");
    if (!peg__id_hex(nonce))
        return peg__fail_no_randomness(reterr);
    peg__media_write(media, &frame, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
