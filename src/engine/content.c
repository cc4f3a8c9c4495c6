/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/engine.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "pegboard/cleanup.h"
#include "json/json.h"

/* ---- requests ------------------------------------------------------------------------ */

bool peg__offers_tools(const struct peg__request *request)
{
    return request->config->is_enabled && request->config->choice != PEG_CHOICE_NONE &&
           request->definitions && peg_json_len(request->definitions) > 0;
}

peg_str peg__trim_end(peg_str text)
{
    while (text.len > 0 && peg__is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

/* ---- results ------------------------------------------------------------------------- */

static const char unknown_outcome[] =
    "The outcome of this call is not known: no result was recorded. It may have taken effect or "
    "not. Find out before you make it again.";

/* {"name":"text"} */
static void write_wrapped(const char *name, peg_str text, struct peg__buf *out)
{
    struct peg__buf utf8 = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_as_utf8(&utf8, text);
    peg__buf_printf(out, "{\"%s\":", name);
    peg__json_write_string(peg__buf_view(&utf8), out);
    peg__buf_putc(out, '}');
    if (!out->status)
        out->status = utf8.status;
    peg__buf_free(&utf8);
}

/* The rule of peg_render_result(): what was kept out of the prompt is reached through its handle,
 * which only the rendered form tells. */
static bool fits_prompt(const peg_record *record)
{
    int64_t n_bytes;

    if (peg_record_result_kind(record) == PEG_RESULT_TEXT)
        return true;
    if (peg_record_result_kind(record) == PEG_RESULT_MEDIA)
        return false;
    n_bytes = peg_artifact_byte_length(peg_record_artifact(record));
    return peg_record_is_inline(record) || (n_bytes >= 0 && n_bytes < PEG_LIMIT_INLINE_BELOW);
}

/* A handle tells of no query that the model cannot make. */
static peg_status render_record(const struct peg__request *request, const peg_record *record,
                                char **ret_text, size_t *ret_len, peg_error *reterr)
{
    static const peg_json nothing = {.kind = PEG_JSON_ARRAY, .u.extent = 1};
    const peg_render_options options = {
        PEG_RENDER_OPTIONS_INIT,
        .definitions = peg__offers_tools(request) ? request->definitions : &nothing};

    return peg_render_result(record, &options, ret_text, ret_len, reterr);
}

peg_status peg__content_result(const struct peg__request *request, const peg_record *record,
                               char **ret_text, size_t *ret_len, peg_error *reterr)
{
    const bool is_plain = request->options->results == PEG_RESULTS_PLAIN;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_str answer = {unknown_outcome, sizeof(unknown_outcome) - 1};
    peg_status status = PEG_OK;

    if (record && (!is_plain || !fits_prompt(record)))
        return render_record(request, record, ret_text, ret_len, reterr);
    if (record)
        status = peg_record_answer(record, &answer, reterr);
    if (status)
        return status;
    if (is_plain && peg__content_is_error(record))
        write_wrapped("error", answer, &out);
    else
        peg__buf_as_utf8(&out, answer);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

bool peg__content_is_error(const peg_record *record)
{
    return !record || peg_record_is_error(record);
}

/* ---- arguments ------------------------------------------------------------------------ */

/* White space of JSON. */
static bool is_json_space(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!strchr(" \t\r\n", s.ptr[i]) || s.ptr[i] == '\0')
            return false;
    }
    return true;
}

peg_status peg__content_args(const peg_block *call, char **ret_json, size_t *ret_len,
                             peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_str args = peg_block_args(call);
    peg_json_doc *doc = NULL;

    if (is_json_space(args)) {
        peg__buf_puts(&out, "{}");
        return peg__buf_take(&out, ret_json, ret_len, reterr);
    }
    if (peg_json_parse(args, &peg__json_refuse_duplicates, &doc, NULL) == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (doc && peg_json_kind_of(peg_json_root(doc)) == PEG_JSON_OBJECT)
        peg__buf_str(&out, args);
    else /* some servers refuse a request for arguments of earlier calls that they cannot read */
        write_wrapped("_malformed", args, &out);
    peg_json_doc_free(doc);
    return peg__buf_take(&out, ret_json, ret_len, reterr);
}

/* ---- the nonce of a block -------------------------------------------------------------- */

enum { NONCE = 33 };

static void put_member(peg_str s, struct peg__buf *out)
{
    peg__buf_printf(out, "%zu:", s.len);
    peg__buf_str(out, s);
}

static void put_media_members(const peg_media *media, struct peg__buf *out)
{
    put_member(peg_cstr(peg_media_id(media)), out);
    put_member(peg_cstr(peg_media_filename(media)), out);
    for (size_t i = 0; i < peg_media_n_notes(media); i++) {
        put_member(peg_cstr(peg_media_note_at(media, i)->name), out);
        put_member(peg_cstr(peg_media_note_at(media, i)->text), out);
    }
}

/* Digests the text and frees it. */
static peg_status digest_nonce(struct peg__buf *text, char ret_nonce[NONCE], peg_error *reterr)
{
    unsigned char digest[PEG_SHA256_BYTES];
    peg_status status = text->status;

    if (!status && !peg__sha256(peg__buf_view(text), digest))
        status = PEG_ENOMEM;
    peg__buf_free(text);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail(reterr, status, "E_TEXT_TOO_LARGE",
                         "a block has more than 256 MiB of text: leave it out");
    peg__hex(digest, NONCE / 2, ret_nonce);
    return PEG_OK;
}

/*
 * The same in every request, and still nothing that content can know: it is a digest of the content
 * itself, and no text can contain its own digest.
 */
static peg_status make_nonce(const peg_block *block, char ret_nonce[NONCE], peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&text, "pegboard envelope ");
    put_member(peg_block_id(block), &text);
    put_member(peg_block_type(block), &text);
    put_member(peg_block_text(block), &text);
    for (size_t i = 0; i < peg_block_n_media(block); i++)
        put_media_members(peg_block_media(block, i), &text);
    return digest_nonce(&text, ret_nonce, reterr);
}

peg_status peg__content_system(const peg_block *block, char **ret_text, size_t *ret_len,
                               peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char nonce[NONCE];
    const peg_envelope envelope = {.is_trusted = true, .nonce = nonce, .kind = "system-message"};
    peg_status status;

    peg__buf_puts(&text, "pegboard system ");
    peg__buf_str(&text, peg_block_id(block));
    peg__buf_putc(&text, '\0');
    peg__buf_str(&text, peg_block_text(block));
    status = digest_nonce(&text, nonce, reterr);
    if (status)
        return status;
    peg__envelope_write(&envelope, peg_block_text(block), &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

/* ---- other blocks ------------------------------------------------------------------------ */

static void put_gap(struct peg__buf *out)
{
    if (out->len > 0)
        peg__buf_puts(out, "\n\n");
}

static void write_block_text(const peg_block *block, const char *nonce, struct peg__buf *out)
{
    struct peg__buf kind = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_envelope envelope = {.nonce = nonce};

    if (peg_block_text(block).len == 0)
        return;
    envelope.is_trusted = peg_block_tier(block) == PEG_TIER_FIRST_PARTY;
    peg__buf_str(&kind, peg_block_type(block));
    envelope.kind = kind.ptr;
    if (!kind.status)
        peg__envelope_write(&envelope, peg_block_text(block), out);
    if (!out->status)
        out->status = kind.status;
    peg__buf_free(&kind);
}

static void write_media(const peg_block *block, const char *nonce, struct peg__buf *out)
{
    const struct peg__media_frame frame = {.nonce = nonce, .may_trust = true};

    for (size_t i = 0; i < peg_block_n_media(block); i++) {
        put_gap(out);
        peg__media_marker_write(peg_block_media(block, i), out);
        peg__buf_putc(out, '\n');
        peg__media_write(peg_block_media(block, i), &frame, out);
    }
}

/* Described as for a call, under the handle that queries take: the block's id. */
static peg_status write_artifact(const struct peg__request *request, const peg_block *block,
                                 const char *nonce, struct peg__buf *out, peg_error *reterr)
{
    const peg_record_def def = {PEG_RECORD_DEF_INIT,
                                .key = peg_block_id(block),
                                .call_id = peg_block_id(block),
                                .tool = peg_block_type(block),
                                .args = peg_cstr("{}"),
                                .artifact = peg_block_artifact(block),
                                .is_trusted = peg_block_tier(block) == PEG_TIER_FIRST_PARTY,
                                .nonce = nonce};
    PEG_CLEANUP(peg_record_unrefp) peg_record *record = NULL;
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    peg_status status;

    if (!def.artifact)
        return PEG_OK;
    if ((status = peg_record_new(&def, &record, reterr)) ||
        (status = render_record(request, record, &text, &len, reterr)))
        return status;
    put_gap(out);
    peg__buf_add(out, text, len);
    return PEG_OK;
}

static bool is_empty_block(const peg_block *block)
{
    return peg_block_text(block).len == 0 && peg_block_n_media(block) == 0 &&
           !peg_block_artifact(block);
}

peg_status peg__content_other(const struct peg__request *request, const peg_block *block,
                              char **ret_text, size_t *ret_len, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char nonce[NONCE];
    peg_status status;

    if (peg_block_kind_of(block) == PEG_BLOCK_RESULT)
        return render_record(request, peg_block_record(block), ret_text, ret_len, reterr);
    if (is_empty_block(block)) {
        *ret_text = NULL;
        if (ret_len)
            *ret_len = 0;
        return PEG_OK;
    }
    status = make_nonce(block, nonce, reterr);
    if (!status) {
        write_block_text(block, nonce, &out);
        status = write_artifact(request, block, nonce, &out, reterr);
    }
    if (status) {
        peg__buf_free(&out);
        return status;
    }
    write_media(block, nonce, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

/* ---- media ---------------------------------------------------------------------------- */

size_t peg__media_max(const peg_model_options *options)
{
    return options->max_media_bytes > 0 ? (size_t)options->max_media_bytes
                                        : (size_t)PEG_LIMIT_REQUEST_MEDIA_BYTES;
}

/* Asks for one byte too many where a reader cannot tell its length. What cannot be read does not
 * fit: its words are sent. */
static bool fits(const peg_media *media, size_t max)
{
    peg_reader *reader = peg_media_reader(media);
    const int64_t n_bytes = peg_reader_byte_length(reader);
    size_t n = 0;
    char byte;

    if (n_bytes >= 0)
        return (uint64_t)n_bytes <= max;
    return peg_reader_read_at(reader, max, &byte, 1, &n, NULL) == PEG_OK && n == 0;
}

static bool is_type_listed(const char *s, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(s, *list) == 0)
            return true;
    }
    return false;
}

static bool starts_with_one(const char *s, const char *const *list)
{
    for (; *list; list++) {
        if (strncmp(s, *list, strlen(*list)) == 0)
            return true;
    }
    return false;
}

enum peg__media_way peg__media_choose(const peg_media *media, const struct peg__media_rules *rules,
                                      const peg_model_options *options)
{
    static const char *const web[] = {"https://", "http://", NULL};
    const unsigned ways = rules->ways[peg_media_kind_of(media)];
    const char *type = peg_safe_mime_type(peg_media_mime_type(media));

    if ((ways & 1U << PEG__MEDIA_FILE_ID) && peg_media_file_id(media)[0])
        return PEG__MEDIA_FILE_ID;
    if ((ways & 1U << PEG__MEDIA_URI) &&
        starts_with_one(peg_media_uri(media), rules->schemes ? rules->schemes : web))
        return PEG__MEDIA_URI;
    if ((ways & 1U << PEG__MEDIA_BYTES) && peg_media_has_bytes(media) &&
        (!rules->types || is_type_listed(type, rules->types)) &&
        fits(media, peg__media_max(options)) &&
        !(rules->refuses_empty && peg_reader_byte_length(peg_media_reader(media)) == 0))
        return PEG__MEDIA_BYTES;
    return PEG__MEDIA_TEXT;
}

peg_status peg__content_media(const peg_block *block, size_t i, enum peg__media_way way,
                              char **ret_text, size_t *ret_len, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_media *media = peg_block_media(block, i);
    char nonce[NONCE];
    peg_status status;

    peg__media_marker_write(media, &out);
    if (way == PEG__MEDIA_TEXT) {
        status = make_nonce(block, nonce, reterr);
        if (status) {
            peg__buf_free(&out);
            return status;
        }
        peg__buf_putc(&out, '\n');
        peg__media_write(media, &(const struct peg__media_frame){.nonce = nonce, .may_trust = true},
                         &out);
    }
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
