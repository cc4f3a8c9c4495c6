/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The result of tools/call as the answer of a call:
 *
 *   structuredContent             JSON
 *   an image, a sound, a blob     media, all of them; the text beside them is a note of the first
 *   text, links, embedded text    text, one below the other
 *   isError                       a failure with that text
 */

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "mcp/client/internal.h"
#include "pegboard/media.h"

enum { MAX_MEDIA = 64, NAME_BYTES = 128 };

static bool is_type(const peg_json *item, const char *type)
{
    return peg__str_is(peg_json_str(peg_json_get(item, "type")), type);
}

static void fail_result(peg_call *call, const char *why)
{
    peg_error error;

    peg__fail(&error, PEG_EHOST, "E_MCP_RESULT", "the MCP server's result %s", why);
    peg_call_fail_with(call, &error);
}

/* ---- text ---- */

static void put_line_end(struct peg__buf *text)
{
    if (text->len)
        peg__buf_putc(text, '\n');
}

static void put_link(struct peg__buf *text, const peg_json *item)
{
    const peg_str name = peg_json_str(peg_json_get(item, "name"));
    const peg_str uri = peg_json_str(peg_json_get(item, "uri"));
    const peg_str description = peg_json_str(peg_json_get(item, "description"));

    put_line_end(text);
    peg__buf_str(text, name);
    peg__buf_puts(text, name.len ? ": " : "");
    peg__buf_str(text, uri);
    if (description.len) {
        peg__buf_puts(text, " (");
        peg__buf_str(text, description);
        peg__buf_putc(text, ')');
    }
}

static void put_text(struct peg__buf *text, const peg_json *content)
{
    PEG_JSON_EACH_ITEM (content, item) {
        const peg_json *inner = peg_json_get(peg_json_get(item, "resource"), "text");
        const peg_json *own = is_type(item, "text") ? peg_json_get(item, "text") : inner;

        if (own) {
            put_line_end(text);
            peg__buf_str(text, peg_json_str(own));
        } else if (is_type(item, "resource_link")) {
            put_link(text, item);
        }
    }
}

/* ---- media ---- */

/* The bytes of an item in base 64, or NULL: it is no media. */
static const peg_json *find_data(const peg_json *item)
{
    if (is_type(item, "image") || is_type(item, "audio"))
        return peg_json_get(item, "data");
    return is_type(item, "resource") ? peg_json_get(peg_json_get(item, "resource"), "blob") : NULL;
}

static size_t count_media(const peg_json *content)
{
    size_t n = 0;

    PEG_JSON_EACH_ITEM (content, item)
        n += find_data(item) != NULL;
    return n;
}

static peg_media_kind media_kind_of_type(peg_str mime_type)
{
    static const struct {
        peg_str prefix;
        peg_media_kind kind;
    } kinds[] = {{PEG_LIT("image/"), PEG_MEDIA_IMAGE},
                 {PEG_LIT("audio/"), PEG_MEDIA_AUDIO},
                 {PEG_LIT("video/"), PEG_MEDIA_VIDEO}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (peg__str_starts(mime_type, kinds[i].prefix))
            return kinds[i].kind;
    }
    return PEG_MEDIA_DOCUMENT;
}

/* What follows the last slash. */
static void name_file(peg_str uri, peg_str mime_type, char ret_name[NAME_BYTES])
{
    peg_str from = uri.len ? uri : mime_type;
    size_t at = from.len;

    while (at && from.ptr[at - 1] != '/')
        at--;
    from = peg__str_from(from, at);
    if (from.len >= NAME_BYTES - 8)
        from.len = peg__utf8_cut(from.ptr, NAME_BYTES - 8);
    if (uri.len && from.len)
        snprintf(ret_name, NAME_BYTES, "%.*s", PEG_ARG(from));
    else
        snprintf(ret_name, NAME_BYTES, "result.%.*s", PEG_ARG(from.len ? from : peg__str("bin")));
}

static peg_status read_bytes(const peg_json *data, peg_reader **ret_reader, peg_error *reterr)
{
    const peg_str base64 = peg_json_str(data);
    char *bytes = peg__alloc(peg__base64_bytes(base64.len));
    size_t len = 0;
    peg_status status;

    if (!bytes)
        return peg__fail_nomem(reterr);
    if (peg__base64_decode(base64, bytes, &len))
        status = peg_reader_from_bytes(peg__strn(bytes, len), ret_reader, reterr);
    else
        status = peg__fail(reterr, PEG_EHOST, "E_MCP_RESULT",
                           "the MCP server's result has media that is no base 64");
    peg__free(bytes);
    return status;
}

static peg_status make_content_media(const peg_json *item, const char *note, peg_media **ret_media,
                                     peg_error *reterr)
{
    const peg_json *place = is_type(item, "resource") ? peg_json_get(item, "resource") : item;
    const peg_json *type = peg_json_get(place, "mimeType");
    const peg_str mime_type = peg_json_str_or(type, "application/octet-stream");
    const peg_media_note notes[] = {
        {.name = "text:description", .text = note, .tier = PEG_TIER_THIRD_PARTY_PRIVATE}};
    char name[NAME_BYTES];
    char *copied = peg__alloc(mime_type.len + 1);
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = media_kind_of_type(mime_type),
                         .filename = name, .notes = notes, .n_notes = note != NULL};
    peg_status status;

    if (!copied)
        return peg__fail_nomem(reterr);
    memcpy(copied, mime_type.ptr, mime_type.len);
    copied[mime_type.len] = '\0';
    def.mime_type = copied;
    if (is_type(item, "image"))
        def.kind = PEG_MEDIA_IMAGE;
    else if (is_type(item, "audio"))
        def.kind = PEG_MEDIA_AUDIO;
    name_file(peg_json_str(peg_json_get(place, "uri")), mime_type, name);
    status = read_bytes(find_data(item), &def.reader, reterr);
    if (!status)
        status = peg_media_retrieved_private(&def, ret_media, reterr);
    peg_reader_unref(def.reader);
    peg__free(copied);
    return status;
}

static void reply_media(peg_call *call, const peg_json *content, const struct peg__buf *text)
{
    peg_media *media[MAX_MEDIA] = {NULL};
    size_t n = 0;
    peg_error error;
    peg_status status = PEG_OK;

    PEG_JSON_EACH_ITEM (content, item) {
        const char *note = n == 0 && text->len ? text->ptr : NULL;

        if (status || !find_data(item))
            continue;
        status = make_content_media(item, note, &media[n], &error);
        n += !status;
    }
    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status)
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_media(call, media, n);
    while (n)
        peg_media_unref(media[--n]);
}

/* ---- the whole ---- */

static void reply_failure(peg_call *call, struct peg__buf *text)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const size_t len = text->len <= PEG_LIMIT_FAILURE_BYTES
                           ? text->len
                           : peg__utf8_cut(text->ptr, PEG_LIMIT_FAILURE_BYTES);

    peg__buf_str(&sentence, peg__strn(peg__buf_view(text).ptr, len));
    if (!len)
        peg__buf_puts(&sentence, "the tool failed, and does not say why");
    peg__call_fail_because(call, "", &sentence);
}

static void reply_content(peg_call *call, const peg_json *result, struct peg__buf *text)
{
    const peg_json *content = peg_json_get(result, "content");
    const peg_json *structured = peg_json_get(result, "structuredContent");
    const size_t n_media = count_media(content);

    if (n_media > MAX_MEDIA)
        fail_result(call, "has more than 64 pieces of media: ask for less");
    else if (n_media)
        reply_media(call, content, text);
    else if (structured)
        peg_call_reply_json(call, structured);
    else
        peg_call_reply(call, peg__buf_view(text));
}

void mcp__reply_result(peg_call *call, const peg_json *result, bool has_output_schema)
{
    const peg_json *structured = peg_json_get(result, "structuredContent");
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES);

    put_text(&text, peg_json_get(result, "content"));
    if (text.status)
        peg__call_out_of_memory(call);
    else if (peg_json_is_true(peg_json_get(result, "isError")))
        reply_failure(call, &text);
    else if (has_output_schema && !structured)
        fail_result(call, "has no structuredContent, which its outputSchema asks for");
    else if (has_output_schema)
        peg_call_reply_json(call, structured);
    else if (peg_json_kind_of(peg_json_get(result, "content")) != PEG_JSON_ARRAY && !structured)
        fail_result(call, "has no content");
    else
        reply_content(call, result, &text);
    peg__buf_free(&text);
}
