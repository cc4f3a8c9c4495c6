/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer of Gemini's generateContent. Each chunk of a stream has the shape of a whole answer
 * and brings further parts. Text goes on where the part before it was text; a call comes whole. A
 * signature closes the part it came with: what follows is another one, because the two may not be
 * joined. Parts of other kinds (code that was run, media) are passed over.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

struct reader {
    uint32_t n_parts;         /* ranks that were given */
    enum peg__part_kind kind; /* of the last of them */
    bool is_closed;           /* it has its signature, or is a call */
};

/* ---- parts ------------------------------------------------------------------------------- */

static struct peg__part *last_part(struct peg__reply *reply, const struct reader *reader)
{
    return peg__reply_part(reply, reader->n_parts - 1, reader->kind);
}

static struct peg__part *begin_part(struct peg__reply *reply, struct reader *reader,
                                    enum peg__part_kind kind)
{
    if (reader->n_parts >= PEG_LIMIT_REPLY_PARTS) {
        peg__reply_fail(reply, "it has more than %d parts", PEG_LIMIT_REPLY_PARTS);
        return NULL;
    }
    reader->n_parts++;
    reader->kind = kind;
    reader->is_closed = kind == PEG__PART_CALL;
    return last_part(reply, reader);
}

static void sign_part(struct peg__reply *reply, struct reader *reader, struct peg__part *part,
                      peg_str signature)
{
    if (signature.len == 0)
        return;
    peg__part_metadata(reply, part, &peg_key_gemini_thought, signature);
    reader->is_closed = true;
}

/* Streams send the signature of a text behind it, with an empty text of its own. */
static void read_text_part(struct peg__reply *reply, struct reader *reader, const peg_json *json)
{
    const peg_json *thought = peg_json_get(json, "thought");
    const enum peg__part_kind kind =
        thought && peg_json_is_true(thought) ? PEG__PART_THOUGHT : PEG__PART_TEXT;
    const peg_str text = peg__read_string(reply, json, "text");
    const peg_str signature = peg__read_string(reply, json, "thoughtSignature");
    struct peg__part *part;

    if (text.len == 0 && (signature.len == 0 || reader->n_parts == 0 || reader->is_closed))
        return;
    if (text.len == 0 || (reader->n_parts > 0 && reader->kind == kind && !reader->is_closed))
        part = last_part(reply, reader);
    else
        part = begin_part(reply, reader, kind);
    peg__part_add(reply, part, text);
    sign_part(reply, reader, part, signature);
}

static void read_function_call(struct peg__reply *reply, struct reader *reader,
                               const peg_json *json, const peg_json *call)
{
    const peg_str name = peg__read_string(reply, call, "name");
    const peg_str id = peg__read_string(reply, call, "id");
    const peg_json *args = peg__read_object(reply, call, "args");
    const peg_str signature = peg__read_string(reply, json, "thoughtSignature");
    struct peg__part *part;

    if (name.len == 0) {
        peg__reply_fail(reply, "a functionCall has no \"name\"");
        return;
    }
    part = begin_part(reply, reader, PEG__PART_CALL);
    if (id.len > 0)
        peg__part_set_call_id(reply, part, id);
    peg__part_add_name(reply, part, name);
    peg__part_set_json(reply, part, args);
    sign_part(reply, reader, part, signature);
}

static void read_part(struct peg__reply *reply, struct reader *reader, const peg_json *json)
{
    const peg_json *call;

    if (!peg__read_is_object(reply, json, "a part"))
        return;
    call = peg__read_object(reply, json, "functionCall");
    if (call)
        read_function_call(reply, reader, json, call);
    else
        read_text_part(reply, reader, json);
}

/* ---- answers ----------------------------------------------------------------------------- */

/* Of several, only the first is ours: we ask for one. */
static void read_candidate(struct peg__reply *reply, struct reader *reader,
                           const peg_json *candidate)
{
    const peg_json *content = peg__read_object(reply, candidate, "content");
    const peg_json *parts = peg__read_array(reply, content, "parts");
    const peg_str reason = peg__read_string(reply, candidate, "finishReason");

    if (parts) {
        PEG_JSON_EACH_ITEM (parts, part) {
            if (reply->status)
                return;
            read_part(reply, reader, part);
        }
    }
    if (reason.len == 0 || peg__str_is(reason, "FINISH_REASON_UNSPECIFIED"))
        return;
    peg__reply_set(reply, &reply->stop_reason, reason);
    reply->is_ended = true;
}

static const peg_json *first_candidate(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *candidates = peg__read_array(reply, root, "candidates");

    if (!candidates)
        return NULL;
    PEG_JSON_EACH_ITEM (candidates, candidate) {
        const peg_json *index = peg_json_get(candidate, "index");
        int64_t number = 0;

        if (!peg__read_is_object(reply, candidate, "a candidate"))
            return NULL;
        if (!index || (peg_json_int64(index, &number) && number == 0))
            return candidate;
    }
    return NULL;
}

/* Thoughts are counted beside the candidates, but are output as well. */
static void read_usage_metadata(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *usage = peg__read_object(reply, root, "usageMetadata");
    struct peg__usage *counts = &reply->usage;
    int64_t candidates = -1;

    peg__reply_count(&counts->input_tokens, usage, "promptTokenCount");
    peg__reply_count(&counts->cached_tokens, usage, "cachedContentTokenCount");
    peg__reply_count(&counts->reasoning_tokens, usage, "thoughtsTokenCount");
    peg__reply_count(&candidates, usage, "candidatesTokenCount");
    if (candidates < 0)
        return;
    counts->output_tokens = candidates;
    if (counts->reasoning_tokens > 0 && candidates <= INT64_MAX - counts->reasoning_tokens)
        counts->output_tokens += counts->reasoning_tokens;
}

static void fail_blocked(struct peg__reply *reply, const peg_json *feedback)
{
    const peg_str reason = peg__read_string(reply, feedback, "blockReason");
    const peg_str message = peg__read_string(reply, feedback, "blockReasonMessage");
    peg_error error;

    peg__fail(&error, PEG_EHOST, "E_ENGINE_REQUEST",
              "gemini does not answer this conversation (%.*s)%s%.*s",
              (int)(reason.len < 64 ? reason.len : 64), reason.ptr, message.len ? ": " : "",
              (int)(message.len < 256 ? message.len : 256), message.len ? message.ptr : "");
    peg__reply_fail_with(reply, PEG_EHOST, &error);
}

/* Blocked before the model saw it. */
static const peg_json *block_feedback(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *feedback = peg__read_object(reply, root, "promptFeedback");
    const peg_str reason = peg__read_string(reply, feedback, "blockReason");

    return reason.len > 0 && !peg__str_is(reason, "BLOCK_REASON_UNSPECIFIED") ? feedback : NULL;
}

static bool is_gemini_error(const peg_json *root, peg_str type)
{
    (void)type;
    return peg_json_get(root, "error");
}

/* Counts may come behind the reason why it ended. */
static void read_gemini(struct peg__reply *reply, peg_str type, const peg_json *root)
{
    const peg_json *feedback = block_feedback(reply, root);
    const peg_json *candidate = first_candidate(reply, root);

    peg__reply_set(reply, &reply->model, peg__read_string(reply, root, "modelVersion"));
    peg__reply_set(reply, &reply->response_id, peg__read_string(reply, root, "responseId"));
    read_usage_metadata(reply, root);
    if (feedback && !candidate && !reply->status)
        fail_blocked(reply, feedback);
    if (candidate && !reply->status)
        read_candidate(reply, reply->reader, candidate);
    if (!type.ptr && !reply->is_ended)
        peg__reply_fail(reply, "it has no candidate with a \"finishReason\"");
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
static void write_model_path(const peg_model_options *options, bool is_streaming,
                             struct peg__buf *out)
{
    peg__buf_puts(out, strchr(options->model, '/') ? "/" : "/models/");
    write_escaped(options->model, out);
    peg__buf_puts(out, is_streaming ? ":streamGenerateContent?alt=sse" : ":generateContent");
}

const struct peg__wire peg__wire_gemini = {
    .vendor = PEG_VENDOR_GEMINI,
    .base_url = "https://generativelanguage.googleapis.com/v1beta",
    .key_env = "GEMINI_API_KEY",
    .headers = "",
    .key_header = "x-goog-api-key: ",
    .write_path = write_model_path,
    .format = &peg__gemini_format,
    .reader_size = sizeof(struct reader),
    .is_error = is_gemini_error,
    .read = read_gemini,
};
