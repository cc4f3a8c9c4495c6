/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes back from OpenAI's Chat Completions API and the servers that speak it. A chunk of a
 * stream has a "delta", a whole answer a "message"; both have the same members.
 *
 * Ranks: thoughts come before the text, and calls after it, in the order of their indexes.
 */

#include "base/text/str.h"
#include "engine/vendors/internal.h"

const char *const peg__chat_thought_fields[PEG__CHAT_THOUGHT_FIELDS] = {"reasoning_content",
                                                                        "reasoning"};

enum rank { RANK_THOUGHT, RANK_TEXT, RANK_CALLS };

struct reader {
    struct peg__slots calls;
    const char *thought_field; /* where thoughts come in; NULL: none came yet */
};

/* ---- text ------------------------------------------------------------------------------- */

static void add_content(struct peg__reply *reply, peg_str text)
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

    if (!peg__read_is_object(reply, part, "a part of the content"))
        return;
    add_content(reply, peg__read_string(reply, part, "text"));
    thinking = peg__read_array(reply, part, "thinking");
    if (!thinking)
        return;
    PEG_JSON_EACH_ITEM (thinking, item) {
        if (peg_json_kind_of(item) == PEG_JSON_OBJECT)
            add_thought(reply, peg__read_string(reply, item, "text"));
    }
}

static void read_message_content(struct peg__reply *reply, const peg_json *message)
{
    const peg_json *content = peg_json_get(message, "content");

    if (!content || peg_json_kind_of(content) != PEG_JSON_ARRAY) {
        add_content(reply, peg__read_string(reply, message, "content"));
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
        const peg_str text = peg__read_string(reply, message, field);
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
    const peg_json_kind kind = peg_json_kind_of(args);

    if (kind == PEG_JSON_STRING)
        peg__part_add(reply, part, peg_json_str(args));
    else if (kind == PEG_JSON_OBJECT)
        peg__part_set_json(reply, part, args);
    else if (kind != PEG_JSON_NULL)
        peg__reply_fail(reply, "the arguments of a call are of type %s", peg_json_kind_name(kind));
}

/* The id that finds a fragment's call. Some servers give every fragment a new one, and some
 * give every call the index 0: only a fragment that names its tool begins another call. */
static peg_str id_to_find(peg_str id, int64_t index, peg_str name)
{
    return index >= 0 && name.len == 0 ? peg__strn("", 0) : id;
}

/* `place` is where the fragment stands in its list: in a whole answer that is its index. */
static void read_tool_call(struct peg__reply *reply, struct reader *reader,
                           const peg_json *fragment, int64_t place)
{
    const peg_str id = peg__read_string(reply, fragment, "id");
    const int64_t index = peg__openai_index(reply, fragment, "index");
    const peg_json *function = peg__read_object(reply, fragment, "function");
    const peg_json *args = function ? peg_json_get(function, "arguments") : NULL;
    const peg_str name = peg__read_string(reply, function, "name");
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
    const peg_json *calls = peg__read_array(reply, message, "tool_calls");
    int64_t place = 0;

    if (!calls)
        return;
    PEG_JSON_EACH_ITEM (calls, call) {
        if (!peg__read_is_object(reply, call, "a call"))
            return;
        read_tool_call(reply, reader, call, is_whole ? place++ : -1);
    }
}

/* ---- messages ------------------------------------------------------------------------------ */

static void read_chat_usage(struct peg__reply *reply, const peg_json *root)
{
    const peg_json *usage = peg__read_object(reply, root, "usage");

    if (!usage)
        return;
    peg__reply_count(&reply->usage.input_tokens, usage, "prompt_tokens");
    peg__reply_count(&reply->usage.output_tokens, usage, "completion_tokens");
    peg__reply_count(&reply->usage.cached_tokens, peg_json_get(usage, "prompt_tokens_details"),
                     "cached_tokens");
    peg__reply_count(&reply->usage.reasoning_tokens,
                     peg_json_get(usage, "completion_tokens_details"), "reasoning_tokens");
}

static void read_refusal(struct peg__reply *reply, peg_str text)
{
    if (text.len > 0)
        reply->has_refused = true;
    add_content(reply, text);
}

static void read_choice(struct peg__reply *reply, struct reader *reader, const peg_json *choice,
                        const char *name)
{
    const peg_json *message = peg__read_object(reply, choice, name);
    const peg_str finish = peg__read_string(reply, choice, "finish_reason");

    if (message) {
        read_thoughts(reply, reader, message);
        read_message_content(reply, message);
        read_refusal(reply, peg__read_string(reply, message, "refusal"));
        read_calls(reply, reader, message, name[0] == 'm');
    }
    if (finish.len > 0) {
        peg__reply_set(reply, &reply->stop_reason, finish);
        reply->is_ended = true;
    }
}

/* Only the first of several answers to one question: we ask for one. */
static void read_choices(struct peg__reply *reply, struct reader *reader, const peg_json *choices,
                         const char *name)
{
    PEG_JSON_EACH_ITEM (choices, choice) {
        if (!peg__read_is_object(reply, choice, "a choice"))
            return;
        if (peg__openai_index(reply, choice, "index") <= 0)
            read_choice(reply, reader, choice, name);
    }
}

static bool is_chat_error(const peg_json *root, peg_str type)
{
    (void)type;
    return peg__has_member(root, "error") || peg__member_is(root, "object", "error");
}

/* A chunk of a stream, or the whole answer. */
static void read_chat(struct peg__reply *reply, peg_str type, const peg_json *root)
{
    const peg_json *choices = peg__read_array(reply, root, "choices");
    const bool is_body = !type.ptr;

    peg__reply_set(reply, &reply->response_id, peg__read_string(reply, root, "id"));
    peg__reply_set(reply, &reply->model, peg__read_string(reply, root, "model"));
    read_chat_usage(reply, root);
    if (choices)
        read_choices(reply, reply->reader, choices, is_body ? "message" : "delta");
    if (is_body && (!choices || peg_json_len(choices) == 0))
        peg__reply_fail(reply, "it has no 'choices'");
    reply->is_ended = reply->is_ended || is_body;
}

const struct peg__wire peg__wire_chat = {
    .vendor = PEG_VENDOR_OPENAI_CHAT,
    .base_url = "https://api.openai.com/v1",
    .key_env = "OPENAI_API_KEY",
    .headers = "",
    .key_header = "Authorization: Bearer ",
    .path = "/chat/completions",
    .format = &peg__chat_format,
    .ends_with_done = true,
    .reader_size = sizeof(struct reader),
    .is_error = is_chat_error,
    .read = read_chat,
};
