/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The result of a call as text for a model. Read it from the bottom up:
 *
 *   peg_render_result -> put_text | put_artifact (whole or put_handle) | put_media
 *
 * Trust only ever goes down: what the tool was when the call ran, less what it is now. Failures
 * are no exception: the words of a tool that is trusted are trusted, those of one that is not, or
 * that never ran, are not.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "core/result/result.h"
#include "core/run/run.h"
#include "json/json.h"

/* ---- media ------------------------------------------------------------------------------- */

/*
 * Media as text, for models that cannot take it: what somebody wrote down about it, or else what
 * it is called. Trust is that of the media, and never more than that of what is shown.
 */

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
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a name and a place for it are required");
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
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "media and a place for it are required");
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
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "media and a place for it are required");
    if (!peg__id_hex(nonce))
        return peg__fail_no_randomness(reterr);
    peg__media_write(media, &frame, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

static const peg_render_options default_options = {PEG_RENDER_OPTIONS_INIT};

/* ---- trust ------------------------------------------------------------------------- */

static bool is_trusted(const peg_record *record, const peg_render_options *options)
{
    if (!peg_record_is_trusted(record))
        return false;
    if (options->tool_is_gone) {
        peg__log(PEG_LOG_WARN, "E_TOOL_NOT_FOUND",
                 "the tool '%s' was trusted when it ran and is no longer registered: the result of "
                 "call '%.64s' is shown as untrusted",
                 peg_record_tool(record).ptr, peg_record_call_id(record).ptr);
        return false;
    }
    return !options->tool || peg_tool_is_trusted(options->tool);
}

static void put_whole(const peg_record *record, const peg_render_options *options, peg_str body,
                      struct peg__buf *out)
{
    peg_envelope envelope = {.nonce = peg_record_nonce(record), /* there is one, see below */
                             .kind = "tool-result",
                             .tool = peg_record_tool(record).ptr};

    envelope.is_trusted = is_trusted(record, options);
    if (envelope.is_trusted)
        envelope.kind = "trusted-tool-result";
    peg__envelope_write(&envelope, body, out);
}

/* ---- handles ----------------------------------------------------------------------- */

/* A tool of that name may be the host's, or another kind's: forging has left it in its place. */
static bool is_offered(const peg_artifact_query *query, const peg_json *definitions)
{
    if (!definitions)
        return true;
    PEG_JSON_EACH_ITEM (definitions, item) {
        if (peg__str_is(peg_json_str(peg_json_get(item, "name")), query->name))
            return peg_json_is_true(peg_json_get(item, "ephemeral")) &&
                   peg__str_is(peg_json_str(peg_json_get(item, "description")), query->description);
    }
    return false;
}

/* Its own and those of every kind it is made from; names do not repeat among them. */
static void put_queries(const peg_artifact_kind *kind, const peg_json *definitions,
                        struct peg__buf *out)
{
    for (; kind; kind = peg__kind_base(kind)) {
        for (size_t i = 0; i < kind->n_queries; i++) {
            const peg_artifact_query *query = &kind->queries[i];

            if (is_offered(query, definitions))
                peg__buf_printf(out, "- %s: %s\n", query->name, query->description);
        }
    }
}

/* A result that cannot be read right now still has a handle: only memory is worth failing for. */
static peg_status put_sizes(peg_artifact *artifact, struct peg__buf *out, peg_error *reterr)
{
    const int64_t n_bytes = peg_artifact_byte_length(artifact);
    size_t n_lines = 0;
    const peg_status status = peg_artifact_line_count(artifact, &n_lines, NULL);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (n_bytes < 0)
        peg__buf_puts(out, "bytes: unknown\n");
    else
        peg__buf_printf(out, "bytes: %lld\n", (long long)n_bytes);
    if (status)
        peg__buf_puts(out, "lines: unknown\n");
    else
        peg__buf_printf(out, "lines: %zu\n", n_lines);
    return PEG_OK;
}

static peg_status put_tokens(peg_artifact *artifact, const char *encoding, struct peg__buf *out,
                             peg_error *reterr)
{
    peg_str bytes;
    size_t n_tokens;
    peg_status status;

    if (!encoding || !encoding[0])
        return PEG_OK;
    status = peg_artifact_bytes(artifact, &bytes, NULL);
    if (status)
        return status == PEG_ENOMEM ? peg__fail_nomem(reterr) : PEG_OK;
    status = peg_token_count_estimate(encoding, bytes, &n_tokens, reterr);
    if (status)
        return status;
    peg__buf_printf(out, "tokens: about %zu (%s)\n", n_tokens, encoding);
    return PEG_OK;
}

/* The handle as JSON, so that a strange one is still one line that can be sent back. */
static peg_status write_handle(const peg_record *record, const char *encoding, peg_str queries,
                               struct peg__buf *out, peg_error *reterr)
{
    peg_artifact *artifact = peg_record_artifact(record);
    peg_status status;

    peg__buf_puts(out, "This result was kept out of the prompt.");
    if (queries.len)
        peg__buf_puts(out, " Ask for the parts you need with the queries below.");
    peg__buf_puts(out, "\n\n" PEG__ARTIFACT_ID ": ");
    peg__json_write_string(peg_record_handle(record), out);
    peg__buf_printf(out, "\nkind: %s\n", peg_artifact_kind_of(artifact)->name);
    if ((status = put_sizes(artifact, out, reterr)) ||
        (status = put_tokens(artifact, encoding, out, reterr)))
        return status;
    if (!queries.len)
        return PEG_OK;
    peg__buf_puts(out, "\nQueries, each with this " PEG__ARTIFACT_ID ":\n");
    peg__buf_str(out, queries);
    peg__buf_puts(out, "\nQuery as often as you need: repeated queries are fine.");
    return PEG_OK;
}

/* Never trusted: what it says about the result comes from the result. */
static peg_status put_handle(const peg_record *record, const peg_render_options *options,
                             struct peg__buf *out, peg_error *reterr)
{
    const peg_envelope envelope = {.nonce = peg_record_nonce(record),
                                   .kind = "artifact-handle",
                                   .tool = peg_record_tool(record).ptr};
    struct peg__buf queries = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf body = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    put_queries(peg_artifact_kind_of(peg_record_artifact(record)), options->definitions, &queries);
    status = write_handle(record, options->encoding, peg__buf_view(&queries), &body, reterr);
    if (!status) {
        out->status = queries.status ? queries.status : body.status;
        peg__envelope_write(&envelope, peg__buf_view(&body), out);
    }
    peg__buf_free(&body);
    peg__buf_free(&queries);
    return status;
}

/* ---- results ----------------------------------------------------------------------- */

static bool is_inline(const peg_record *record, const peg_render_options *options)
{
    const int64_t below = options->inline_below ? options->inline_below : PEG_LIMIT_INLINE_BELOW;
    int64_t n_bytes;

    if (peg_record_is_inline(record))
        return true;
    n_bytes = peg_artifact_byte_length(peg_record_artifact(record));
    return n_bytes >= 0 && n_bytes < below;
}

static peg_status put_artifact(const peg_record *record, const peg_render_options *options,
                               struct peg__buf *out, peg_error *reterr)
{
    peg_str bytes;
    peg_status status;

    if (!is_inline(record, options))
        return put_handle(record, options, out, reterr);
    status = peg_artifact_bytes(peg_record_artifact(record), &bytes, reterr);
    if (!status)
        put_whole(record, options, bytes, out);
    return status;
}

/* Each has its own trust. One nonce does for all: none of them can know it. */
static void put_media(const peg_record *record, const peg_render_options *options,
                      struct peg__buf *out)
{
    const struct peg__media_frame frame = {.nonce = peg_record_nonce(record),
                                           .tool = peg_record_tool(record).ptr,
                                           .may_trust = !options->tool_is_gone};

    for (size_t i = 0; i < peg_record_n_media(record); i++) {
        if (i > 0)
            peg__buf_puts(out, "\n\n");
        peg__media_marker_write(peg_record_media(record, i), out);
        peg__buf_putc(out, '\n');
        peg__media_write(peg_record_media(record, i), &frame, out);
    }
}

peg_status peg_render_result(const peg_record *record, const peg_render_options *options,
                             char **ret_text, size_t *ret_len, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_RENDER_OPTIONS_INIT, reterr);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_render_options *opts = options ? options : &default_options;
    const char *nonce;
    peg_status status;

    if (!record || !ret_text)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a record and a place for its text are required");
    status = peg__record_nonce(record, &nonce, reterr); /* from now on it has one */
    if (status)
        return status;
    switch (peg_record_result_kind(record)) {
    case PEG_RESULT_TEXT:
        put_whole(record, opts, peg_record_text(record), &out);
        break;
    case PEG_RESULT_ARTIFACT:
        status = put_artifact(record, opts, &out, reterr);
        break;
    case PEG_RESULT_MEDIA:
        put_media(record, opts, &out);
        break;
    }
    if (status) {
        peg__buf_free(&out);
        return status;
    }
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
