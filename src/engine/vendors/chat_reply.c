/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes back from OpenAI's Chat Completions API and the servers that speak it. A chunk of a
 * stream has a "delta", a whole answer a "message"; both have the same members.
 *
 * Ranks: thoughts come before the text, and calls after it, in the order of their indexes.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "engine/reading.h"
#include "engine/vendors/chat.h"
#include "engine/vendors/openai.h"

const char *const peg__chat_thought_fields[PEG__CHAT_THOUGHT_FIELDS] = {"reasoning_content",
                                                                        "reasoning"};

enum rank { RANK_THOUGHT, RANK_TEXT, RANK_CALLS };

struct reader {
    struct peg__slots calls;
    const char *thought_field; /* where thoughts come in; NULL: none came yet */
    bool is_finished;          /* a finish_reason came, or [DONE] */
};

static struct reader *reader_of(struct peg__reply *reply)
{
    if (!reply->reader)
        reply->reader = peg__arena_alloc_zero(&reply->arena, sizeof(struct reader));
    if (!reply->reader && !reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    return reply->reader;
}

/* ---- words ------------------------------------------------------------------------------- */

static void add_text(struct peg__reply *reply, peg_str text)
{
    if (text.len > 0)
        peg__part_add(reply, peg__reply_part(reply, RANK_TEXT, PEG__PART_TEXT), text);
}

static void add_thought(struct peg__reply *reply, peg_str text)
{
    if (text.len > 0)
        peg__part_add(reply, peg__reply_part(reply, RANK_THOUGHT, PEG__PART_THOUGHT), text);
}

/* Some servers send content as a list of {"type": "text"} and {"type": "thinking"}. */
static void read_content_part(struct peg__reply *reply, const peg_json *part)
{
    const peg_json *thinking;

    if (peg_json_kind_of(part) != PEG_JSON_OBJECT) {
        peg__reply_fail(reply, "a part of the content is no object");
        return;
    }
    add_text(reply, peg__reading_string(reply, part, "text"));
    thinking = peg__reading_array(reply, part, "thinking");
    if (!thinking)
        return;
    PEG_JSON_EACH_ITEM (thinking, item) {
        if (peg_json_kind_of(item) == PEG_JSON_OBJECT)
            add_thought(reply, peg__reading_string(reply, item, "text"));
    }
}

static void read_content(struct peg__reply *reply, const peg_json *message)
{
    const peg_json *content = peg_json_get(message, "content");

    if (!content || peg_json_kind_of(content) != PEG_JSON_ARRAY) {
        add_text(reply, peg__reading_string(reply, message, "content"));
        return;
    }
    PEG_JSON_EACH_ITEM (content, part) {
        read_content_part(reply, part);
    }
}

/* One of the members: servers that have both say the same in both. The one that came first. */
static void read_thoughts(struct peg__reply *reply, struct reader *reader, const peg_json *message)
{
    for (size_t i = 0; i < PEG__CHAT_THOUGHT_FIELDS; i++) {
        const char *field = peg__chat_thought_fields[i];
        const peg_str text = peg__reading_string(reply, message, field);
        const peg_json name = {
            .kind = PEG_JSON_STRING, .len = (uint32_t)peg__str(field).len, .u.ptr = field};

        if (text.len == 0 || (reader->thought_field && reader->thought_field != field))
            continue;
        add_thought(reply, text);
        if (!reader->thought_field)
            peg__part_payload(reply, peg__reply_part(reply, RANK_THOUGHT, PEG__PART_THOUGHT),
                              "wire_field", &name);
        reader->thought_field = field;
    }
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Text as the API has it, or an object, as some servers do. */
static void add_arguments(struct peg__reply *reply, struct peg__part *part, const peg_json *args)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    switch (peg_json_kind_of(args)) {
    case PEG_JSON_NULL:
        break;
    case PEG_JSON_STRING:
        peg__part_add(reply, part, peg_json_str(args));
        break;
    case PEG_JSON_OBJECT:
        peg__json_write(args, PEG_JSON_COMPACT, &text);
        if (text.status && !reply->status)
            reply->status = peg__fail_nomem(&reply->error);
        peg__part_set(reply, part, peg__buf_view(&text));
        break;
    default:
        peg__reply_fail(reply, "the arguments of a call are of type %s",
                        peg_json_kind_name(peg_json_kind_of(args)));
    }
    peg__buf_free(&text);
}

/* The id by which a fragment is looked for. Some servers give every fragment a new one, and some
 * give every call the index 0: only a fragment that names its tool begins another call. */
static peg_str id_to_find(peg_str id, int64_t index, peg_str name)
{
    return index >= 0 && name.len == 0 ? peg__strn("", 0) : id;
}

/* `place` is where the fragment stands in its list: in a whole answer that is its index. */
static void read_call(struct peg__reply *reply, struct reader *reader, const peg_json *fragment,
                      int64_t place)
{
    const peg_str id = peg__reading_string(reply, fragment, "id");
    const int64_t index = peg__openai_index(reply, fragment, "index");
    const peg_json *function = peg__reading_object(reply, fragment, "function");
    const peg_json *args = function ? peg_json_get(function, "arguments") : NULL;
    const peg_str name = peg__reading_string(reply, function, "name");
    struct peg__part *part;
    uint32_t rank;

    if (reply->status)
        return;
    rank = peg__slots_rank(&reader->calls, reply, PEG__SLOTS_BY_BOTH, index < 0 ? place : index,
                           id_to_find(id, index, name));
    part = peg__reply_part(reply, RANK_CALLS + rank, PEG__PART_CALL);
    if (id.len > 0)
        peg__part_set_call_id(reply, part, id);
    peg__part_add_name(reply, part, name);
    if (args && part)
        add_arguments(reply, part, args);
}

static void read_calls(struct peg__reply *reply, struct reader *reader, const peg_json *message,
                       bool is_whole)
{
    const peg_json *calls = peg__reading_array(reply, message, "tool_calls");
    int64_t place = 0;

    if (!calls)
        return;
    PEG_JSON_EACH_ITEM (calls, call) {
        if (peg_json_kind_of(call) != PEG_JSON_OBJECT) {
            peg__reply_fail(reply, "a call is no object");
            return;
        }
        read_call(reply, reader, call, is_whole ? place++ : -1);
    }
}

/* ---- messages ------------------------------------------------------------------------------ */

static void read_usage(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *usage = peg__reading_object(reply, root, "usage");

    if (!usage)
        return;
    peg__reply_count(&reply->usage.input_tokens, usage, "prompt_tokens");
    peg__reply_count(&reply->usage.output_tokens, usage, "completion_tokens");
    peg__reply_count(&reply->usage.cached_tokens, peg_json_get(usage, "prompt_tokens_details"),
                     "cached_tokens");
    peg__reply_count(&reply->usage.reasoning_tokens,
                     peg_json_get(usage, "completion_tokens_details"), "reasoning_tokens");
}

static void read_refusal(struct peg__reply *reply, peg_str words)
{
    if (words.len > 0)
        peg__reply_set_refused(reply);
    add_text(reply, words);
}

static void read_choice(struct peg__reply *reply, struct reader *reader, const peg_json *choice,
                        const char *name)
{
    const peg_json *message = peg__reading_object(reply, choice, name);
    const peg_str finish = peg__reading_string(reply, choice, "finish_reason");

    if (message) {
        read_thoughts(reply, reader, message);
        read_content(reply, message);
        read_refusal(reply, peg__reading_string(reply, message, "refusal"));
        read_calls(reply, reader, message, name[0] == 'm');
    }
    if (finish.len > 0) {
        peg__reply_set_stop(reply, finish);
        reader->is_finished = true;
    }
}

/* Only the first of several answers to one question: we ask for one. */
static void read_choices(struct peg__reply *reply, struct reader *reader, const peg_json *choices,
                         const char *name)
{
    PEG_JSON_EACH_ITEM (choices, choice) {
        if (peg_json_kind_of(choice) != PEG_JSON_OBJECT) {
            peg__reply_fail(reply, "a choice is no object");
            return;
        }
        if (peg__openai_index(reply, choice, "index") <= 0)
            read_choice(reply, reader, choice, name);
    }
}

static bool is_error(const peg_json *root)
{
    const peg_json *error = peg_json_get(root, "error");
    const peg_json *object = peg_json_get(root, "object");

    if (error && peg_json_kind_of(error) != PEG_JSON_NULL)
        return true;
    return object && peg_json_kind_of(object) == PEG_JSON_STRING &&
           peg__str_is(peg_json_str(object), "error");
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void read_root(struct peg__reply *reply, struct reader *reader, const peg_json *root,
                      const char *name)
{
    const peg_json *choices = peg__reading_array(reply, root, "choices");

    peg__reply_set_response_id(reply, peg__reading_string(reply, root, "id"));
    peg__reply_set_model(reply, peg__reading_string(reply, root, "model"));
    read_usage(reply, root);
    if (choices)
        read_choices(reply, reader, choices, name);
}

static peg_status read_event(struct peg__reply *reply, peg_str name, peg_str data, bool *ret_is_end,
                             peg_error *reterr)
{
    struct reader *reader = reader_of(reply);
    peg_status status = PEG_OK;
    peg_json_doc *doc = NULL;

    (void)name;
    *ret_is_end = reader && peg__str_is(data, "[DONE]");
    if (*ret_is_end)
        reader->is_finished = true;
    if (*ret_is_end || !reader)
        return peg__reading_end(reply, reterr);
    if (peg__reading_parse(reply, data, &doc))
        return peg__reading_end(reply, reterr);
    if (is_error(peg_json_root(doc)))
        status = peg__wire_error(&peg__wire_chat, 0, data, reterr);
    else
        read_root(reply, reader, peg_json_root(doc), "delta");
    peg_json_doc_free(doc);
    return status ? status : peg__reading_end(reply, reterr);
}

static peg_status read_body(struct peg__reply *reply, peg_str body, peg_error *reterr)
{
    struct reader *reader = reader_of(reply);
    peg_status status = PEG_OK;
    peg_json_doc *doc = NULL;
    const peg_json *choices;

    if (!reader || peg__reading_parse(reply, body, &doc))
        return peg__reading_end(reply, reterr);
    if (is_error(peg_json_root(doc))) {
        status = peg__wire_error(&peg__wire_chat, 0, body, reterr);
    } else {
        read_root(reply, reader, peg_json_root(doc), "message");
        choices = peg_json_get(peg_json_root(doc), "choices");
        if (!choices || peg_json_len(choices) == 0)
            peg__reply_fail(reply, "it has no 'choices'");
        reader->is_finished = true;
    }
    peg_json_doc_free(doc);
    return status ? status : peg__reading_end(reply, reterr);
}

static bool is_whole(const struct peg__reply *reply)
{
    const struct reader *reader = reply->reader;

    return reader && reader->is_finished;
}

static void write_path(const peg_model_options *options, bool is_streaming, struct peg__buf *out)
{
    (void)options;
    (void)is_streaming;
    peg__buf_puts(out, "/chat/completions");
}

const struct peg__wire peg__wire_chat = {
    .provider = PEG_VENDOR_OPENAI_CHAT,
    .base_url = "https://api.openai.com/v1",
    .key_env = "OPENAI_API_KEY",
    .write_path = write_path,
    .write_headers = peg__openai_headers,
    .write_body = peg__chat_write_body,
    .read_event = read_event,
    .read_body = read_body,
    .is_whole = is_whole,
};
