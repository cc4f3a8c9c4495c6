/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What Gemini's generateContent answers. Each chunk of a stream has the shape of a whole answer and
 * brings further parts. Text goes on where the part before it was text; a call comes whole. A
 * signature closes the part it came with: what follows is another one, because the two may not be
 * joined. Parts of other kinds (code that was run, media) are passed over.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "engine/reading.h"
#include "engine/vendors/gemini.h"
#include "json/json.h"

struct reader {
    uint32_t n_parts;         /* ranks that were given */
    enum peg__part_kind kind; /* of the last of them */
    bool is_closed;           /* it has its signature, or is a call */
    bool is_ended;
};

static struct reader *reader_of(struct peg__reply *reply)
{
    if (!reply->reader)
        reply->reader = peg__arena_alloc_zero(&reply->arena, sizeof(struct reader));
    if (!reply->reader && !reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    return reply->reader;
}

/* ---- parts ------------------------------------------------------------------------------- */

static struct peg__part *last_part(struct peg__reply *reply, const struct reader *reader)
{
    return peg__reply_part(reply, reader->n_parts - 1, reader->kind);
}

static struct peg__part *new_part(struct peg__reply *reply, struct reader *reader,
                                  enum peg__part_kind kind)
{
    if (reader->n_parts >= PEG_LIMIT_REPLY_PARTS) {
        peg__reply_fail(reply, "it has more than %d parts (PEG_LIMIT_REPLY_PARTS)",
                        PEG_LIMIT_REPLY_PARTS);
        return NULL;
    }
    reader->n_parts++;
    reader->kind = kind;
    reader->is_closed = kind == PEG__PART_CALL;
    return last_part(reply, reader);
}

static void sign(struct peg__reply *reply, struct reader *reader, struct peg__part *part,
                 peg_str signature)
{
    if (signature.len == 0)
        return;
    peg__part_metadata(reply, part, &peg_key_gemini_thought, signature);
    reader->is_closed = true;
}

/* Streams tell the signature of a text behind it, with an empty text of its own. */
static void read_words(struct peg__reply *reply, struct reader *reader, const peg_json *json)
{
    const peg_json *thought = peg_json_get(json, "thought");
    const enum peg__part_kind kind =
        thought && peg_json_is_true(thought) ? PEG__PART_THOUGHT : PEG__PART_TEXT;
    const peg_str text = peg__reading_string(reply, json, "text");
    const peg_str signature = peg__reading_string(reply, json, "thoughtSignature");
    struct peg__part *part;

    if (text.len == 0 && (signature.len == 0 || reader->n_parts == 0 || reader->is_closed))
        return;
    if (text.len == 0 || (reader->n_parts > 0 && reader->kind == kind && !reader->is_closed))
        part = last_part(reply, reader);
    else
        part = new_part(reply, reader, kind);
    peg__part_add(reply, part, text);
    sign(reply, reader, part, signature);
}

static void add_args(struct peg__reply *reply, struct peg__part *part, const peg_json *args)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_BLOCK_BYTES);

    if (args)
        peg__json_write(args, PEG_JSON_COMPACT, &text);
    else
        peg__buf_puts(&text, "{}");
    if (!text.status)
        peg__part_add(reply, part, peg__buf_view(&text));
    else if (text.status == PEG_ENOMEM && !reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    else
        peg__reply_fail(reply, "the arguments of a call are larger than PEG_LIMIT_BLOCK_BYTES");
    peg__buf_free(&text);
}

static void read_call(struct peg__reply *reply, struct reader *reader, const peg_json *json,
                      const peg_json *call)
{
    const peg_str name = peg__reading_string(reply, call, "name");
    const peg_str id = peg__reading_string(reply, call, "id");
    const peg_json *args = peg__reading_object(reply, call, "args");
    const peg_str signature = peg__reading_string(reply, json, "thoughtSignature");
    struct peg__part *part;

    if (name.len == 0) {
        peg__reply_fail(reply, "a functionCall has no \"name\"");
        return;
    }
    part = new_part(reply, reader, PEG__PART_CALL);
    if (id.len > 0)
        peg__part_set_call_id(reply, part, id);
    peg__part_add_name(reply, part, name);
    add_args(reply, part, args);
    sign(reply, reader, part, signature);
}

static void read_part(struct peg__reply *reply, struct reader *reader, const peg_json *json)
{
    const peg_json *call;

    if (peg_json_kind_of(json) != PEG_JSON_OBJECT) {
        peg__reply_fail(reply, "a part is no object");
        return;
    }
    call = peg__reading_object(reply, json, "functionCall");
    if (call)
        read_call(reply, reader, json, call);
    else
        read_words(reply, reader, json);
}

/* ---- answers ----------------------------------------------------------------------------- */

/* Of several, only the first is ours: nobody asked for more. */
static void read_candidate(struct peg__reply *reply, struct reader *reader,
                           const peg_json *candidate)
{
    const peg_json *content = peg__reading_object(reply, candidate, "content");
    const peg_json *parts = peg__reading_array(reply, content, "parts");
    const peg_str reason = peg__reading_string(reply, candidate, "finishReason");

    if (parts) {
        PEG_JSON_EACH_ITEM (parts, part) {
            if (reply->status)
                return;
            read_part(reply, reader, part);
        }
    }
    if (reason.len == 0 || peg__str_is(reason, "FINISH_REASON_UNSPECIFIED"))
        return;
    peg__reply_set_stop(reply, reason);
    reader->is_ended = true;
}

static const peg_json *first_candidate(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *candidates = peg__reading_array(reply, root, "candidates");

    if (!candidates)
        return NULL;
    PEG_JSON_EACH_ITEM (candidates, candidate) {
        const peg_json *index = peg_json_get(candidate, "index");
        int64_t number = 0;

        if (peg_json_kind_of(candidate) != PEG_JSON_OBJECT) {
            peg__reply_fail(reply, "a candidate is no object");
            return NULL;
        }
        if (!index || (peg_json_int64(index, &number) && number == 0))
            return candidate;
    }
    return NULL;
}

/* Thoughts are counted beside the candidates, but are output as well. */
static void read_usage(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *usage = peg__reading_object(reply, root, "usageMetadata");
    struct peg__usage *told = &reply->usage;
    int64_t candidates = -1;

    peg__reply_count(&told->input_tokens, usage, "promptTokenCount");
    peg__reply_count(&told->cached_tokens, usage, "cachedContentTokenCount");
    peg__reply_count(&told->reasoning_tokens, usage, "thoughtsTokenCount");
    peg__reply_count(&candidates, usage, "candidatesTokenCount");
    if (candidates < 0)
        return;
    told->output_tokens = candidates;
    if (told->reasoning_tokens > 0 && candidates <= INT64_MAX - told->reasoning_tokens)
        told->output_tokens += told->reasoning_tokens;
}

static peg_status fail_blocked(struct peg__reply *reply, const peg_json *feedback,
                               peg_error *reterr)
{
    const peg_str reason = peg__reading_string(reply, feedback, "blockReason");
    const peg_str words = peg__reading_string(reply, feedback, "blockReasonMessage");

    return peg__fail(reterr, PEG_EHOST, "E_ENGINE_REQUEST",
                     "gemini does not answer this conversation (%.*s)%s%.*s",
                     (int)(reason.len < 64 ? reason.len : 64), reason.ptr, words.len ? ": " : "",
                     (int)(words.len < 256 ? words.len : 256), words.len ? words.ptr : "");
}

/* Blocked before the model saw it. */
static const peg_json *block_feedback(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *feedback = peg__reading_object(reply, root, "promptFeedback");
    const peg_str reason = peg__reading_string(reply, feedback, "blockReason");

    return reason.len > 0 && !peg__str_is(reason, "BLOCK_REASON_UNSPECIFIED") ? feedback : NULL;
}

static peg_status read_root(struct peg__reply *reply, const peg_json *root, peg_error *reterr)
{
    struct reader *reader = reader_of(reply);
    const peg_json *feedback = block_feedback(reply, root);
    const peg_json *candidate = first_candidate(reply, root);

    peg__reply_set_model(reply, peg__reading_string(reply, root, "modelVersion"));
    peg__reply_set_response_id(reply, peg__reading_string(reply, root, "responseId"));
    read_usage(reply, root);
    if (feedback && !candidate && !reply->status)
        return fail_blocked(reply, feedback, reterr);
    if (candidate && !reply->status)
        read_candidate(reply, reader, candidate);
    return peg__reading_end(reply, reterr);
}

static peg_status read_answer(struct peg__reply *reply, peg_str text, peg_error *reterr)
{
    peg_json_doc *doc;
    peg_status status;

    if (reply->status || peg__reading_parse(reply, text, &doc))
        return peg__reading_end(reply, reterr);
    if (peg_json_get(peg_json_root(doc), "error"))
        status = peg__wire_error(&peg__wire_gemini, 0, text, reterr);
    else
        status = read_root(reply, peg_json_root(doc), reterr);
    peg_json_doc_free(doc);
    return status;
}

static peg_status read_event(struct peg__reply *reply, peg_str name, peg_str data, bool *ret_is_end,
                             peg_error *reterr)
{
    const peg_status status = read_answer(reply, data, reterr);

    (void)name;
    if (!status)
        *ret_is_end = false; /* counts may come behind the reason why it ended */
    return status;
}

static bool is_whole(const struct peg__reply *reply)
{
    const struct reader *reader = reply->reader;

    return reader && reader->is_ended;
}

static peg_status read_body(struct peg__reply *reply, peg_str body, peg_error *reterr)
{
    const peg_status status = read_answer(reply, body, reterr);

    if (status || is_whole(reply))
        return status;
    peg__reply_fail(reply, "it has no candidate with a \"finishReason\"");
    return peg__reading_end(reply, reterr);
}

/* ---- the protocol ------------------------------------------------------------------------ */

static void write_escaped(const char *name, struct peg__buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-._~/";

    for (; *name; name++) {
        if (strchr(plain, *name))
            peg__buf_putc(out, *name);
        else
            peg__buf_printf(out, "%%%02X", (unsigned)(unsigned char)*name);
    }
}

/* A model may be named with its collection: "models/x", "tunedModels/y". */
static void write_path(const peg_model_options *options, bool is_streaming, struct peg__buf *out)
{
    peg__buf_puts(out, strchr(options->model, '/') ? "/" : "/models/");
    write_escaped(options->model, out);
    peg__buf_puts(out, is_streaming ? ":streamGenerateContent?alt=sse" : ":generateContent");
}

static void write_headers(const char *api_key, struct peg__buf *out)
{
    if (api_key)
        peg__buf_printf(out, "x-goog-api-key: %s\n", api_key);
}

const struct peg__wire peg__wire_gemini = {
    .provider = PEG_VENDOR_GEMINI,
    .base_url = "https://generativelanguage.googleapis.com/v1beta",
    .key_env = "GEMINI_API_KEY",
    .write_path = write_path,
    .write_headers = write_headers,
    .write_body = peg__gemini_write_body,
    .read_event = read_event,
    .read_body = read_body,
    .is_whole = is_whole,
};
