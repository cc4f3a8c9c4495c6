/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes back from OpenAI's Responses API: items, each of which is one part. Its pieces come
 * first, then the whole item once more, which counts. What a thought needs to be sent back is its
 * payload (internal.h).
 *
 * Items of other kinds, such as searches that the vendor ran itself, are passed over.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

/* ---- items -------------------------------------------------------------------------------- */

static bool kind_of_item(peg_str type, enum peg__part_kind *ret_kind)
{
    if (peg__str_is(type, "message"))
        *ret_kind = PEG__PART_TEXT;
    else if (peg__str_is(type, "reasoning"))
        *ret_kind = PEG__PART_THOUGHT;
    else if (peg__str_is(type, "function_call"))
        *ret_kind = PEG__PART_CALL;
    else
        return false;
    return true;
}

/* All "text" and "refusal" of a list of parts, one after the other. */
static void join_texts(struct peg__reply *reply, const peg_json *list, const char *gap,
                       struct peg__buf *out)
{
    PEG_JSON_EACH_ITEM (list, part) {
        peg_str text;

        if (!peg__read_is_object(reply, part, "a part of an item"))
            return;
        text = peg__read_string(reply, part, "text");
        if (!text.ptr) {
            text = peg__read_string(reply, part, "refusal");
            if (text.len > 0)
                reply->has_refused = true;
        }
        if (text.len > 0 && out->len > 0)
            peg__buf_puts(out, gap);
        if (text.len > 0)
            peg__buf_str(out, text);
    }
}

/* The whole text of an item, if it says any: what was added piece by piece stays otherwise. */
static void set_text(struct peg__reply *reply, struct peg__part *part, const peg_json *list,
                     const char *gap)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (list)
        join_texts(reply, list, gap, &text);
    if (text.status)
        peg__reply_nomem(reply);
    if (text.len > 0)
        peg__part_set(reply, part, peg__buf_view(&text));
    peg__buf_free(&text);
}

static void keep_member(struct peg__reply *reply, struct peg__part *part, const peg_json *item,
                        const char *name, const char *as)
{
    if (peg__read_string(reply, item, name).len > 0)
        peg__part_payload(reply, part, as, peg_json_get(item, name));
}

/* As the vendor wrote it, but only its text: what else might stand there need not be kept. */
static void keep_summary(struct peg__reply *reply, struct peg__part *part, const peg_json *summary)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;

    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (summary, item) {
        peg_json_open_object(b);
        peg_json_add_key(b, peg_cstr("type"));
        peg_json_add_string(b, peg_cstr("summary_text"));
        peg_json_add_key(b, peg_cstr("text"));
        peg_json_add_string(b, peg__read_string(reply, item, "text"));
        peg_json_close(b);
    }
    peg_json_close(b);
    if (!peg_json_builder_finish(b, &doc, NULL))
        peg__part_payload(reply, part, "summary", peg_json_root(doc));
    else
        peg__reply_nomem(reply);
    peg_json_doc_free(doc);
}

static void read_thought(struct peg__reply *reply, struct peg__part *part, const peg_json *item)
{
    const peg_json *summary = peg__read_array(reply, item, "summary");
    const peg_json *content = peg__read_array(reply, item, "content");

    keep_member(reply, part, item, "id", "item_id");
    keep_member(reply, part, item, "encrypted_content", "encrypted_content");
    if (!summary || peg_json_len(summary) == 0) {
        set_text(reply, part, content, "\n\n");
        return;
    }
    set_text(reply, part, summary, "\n\n");
    keep_summary(reply, part, summary);
}

/* The name comes with the item that opens the part, and again with the one that ends it. */
static void read_function_call(struct peg__reply *reply, struct peg__part *part,
                               const peg_json *item, bool has_name)
{
    const peg_str args = peg__read_string(reply, item, "arguments");

    keep_member(reply, part, item, "id", "item_id");
    peg__part_set_call_id(reply, part, peg__read_string(reply, item, "call_id"));
    if (!has_name)
        peg__part_add_name(reply, part, peg__read_string(reply, item, "name"));
    if (args.len > 0)
        peg__part_set(reply, part, args);
}

/* `index` is -1 where the event has none. */
static void read_item(struct peg__reply *reply, struct peg__slots *items, const peg_json *item,
                      int64_t index)
{
    enum peg__part_kind kind;
    struct peg__part *part;
    uint32_t rank;

    if (!item || reply->status || !kind_of_item(peg__read_string(reply, item, "type"), &kind))
        return;
    rank = peg__slots_rank(items, reply, PEG__SLOTS_BY_INDEX, index,
                           peg__read_string(reply, item, "id"));
    part = peg__reply_part(reply, rank, kind);
    if (kind == PEG__PART_THOUGHT) {
        read_thought(reply, part, item);
        return;
    }
    if (kind == PEG__PART_CALL) {
        read_function_call(reply, part, item, peg__slots_mark(items, rank));
        return;
    }
    keep_member(reply, part, item, "id", "item_id");
    set_text(reply, part, peg__read_array(reply, item, "content"), "");
}

/* ---- the response as a whole --------------------------------------------------------------- */

static void read_response_usage(struct peg__reply *reply, const peg_json *response)
{
    const peg_json *usage = peg__read_object(reply, response, "usage");

    if (!usage)
        return;
    peg__reply_count(&reply->usage.input_tokens, usage, "input_tokens");
    peg__reply_count(&reply->usage.output_tokens, usage, "output_tokens");
    peg__reply_count(&reply->usage.cached_tokens, peg_json_get(usage, "input_tokens_details"),
                     "cached_tokens");
    peg__reply_count(&reply->usage.reasoning_tokens, peg_json_get(usage, "output_tokens_details"),
                     "reasoning_tokens");
}

static void read_response(struct peg__reply *reply, const peg_json *response)
{
    peg__reply_set(reply, &reply->response_id, peg__read_string(reply, response, "id"));
    peg__reply_set(reply, &reply->model, peg__read_string(reply, response, "model"));
    read_response_usage(reply, response);
}

/* Why it ended: the reason of an incomplete response says more than that it is one. */
static void read_whole(struct peg__reply *reply, struct peg__slots *items, const peg_json *response)
{
    const peg_json *details = peg__read_object(reply, response, "incomplete_details");
    const peg_str reason = peg__read_string(reply, details, "reason");
    const peg_json *output = peg__read_array(reply, response, "output");
    int64_t index = 0;

    read_response(reply, response);
    peg__reply_set(reply, &reply->stop_reason,
                   reason.len > 0 ? reason : peg__read_string(reply, response, "status"));
    if (output) {
        PEG_JSON_EACH_ITEM (output, item) {
            if (peg__read_is_object(reply, item, "an item"))
                read_item(reply, items, item, index++);
        }
    }
    reply->is_ended = true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct peg__part *find_part(struct peg__reply *reply, struct peg__slots *items,
                                   const peg_json *event, enum peg__part_kind kind)
{
    const int64_t index = peg__openai_index(reply, event, "output_index");
    const peg_str id = peg__read_string(reply, event, "item_id");

    if (reply->status)
        return NULL;
    return peg__reply_part(reply, peg__slots_rank(items, reply, PEG__SLOTS_BY_INDEX, index, id),
                           kind);
}

static void read_delta(struct peg__reply *reply, struct peg__slots *items, const peg_json *event,
                       enum peg__part_kind kind)
{
    const peg_str delta = peg__read_string(reply, event, "delta");

    peg__part_add(reply, find_part(reply, items, event, kind), delta);
}

/* The parts of a summary stand apart, as they do when the item has come. */
static void read_summary_part(struct peg__reply *reply, struct peg__slots *items,
                              const peg_json *event)
{
    struct peg__part *part = find_part(reply, items, event, PEG__PART_THOUGHT);

    if (part && peg__openai_index(reply, event, "summary_index") > 0)
        peg__part_add(reply, part, peg__str("\n\n"));
}

static void read_arguments_done(struct peg__reply *reply, struct peg__slots *items,
                                const peg_json *event)
{
    const peg_str args = peg__read_string(reply, event, "arguments");

    if (args.len > 0)
        peg__part_set(reply, find_part(reply, items, event, PEG__PART_CALL), args);
}

static void read_item_event(struct peg__reply *reply, struct peg__slots *items,
                            const peg_json *event)
{
    const peg_json *item = peg__read_object(reply, event, "item");

    read_item(reply, items, item, peg__openai_index(reply, event, "output_index"));
}

static void read_start_event(struct peg__reply *reply, struct peg__slots *items,
                             const peg_json *event)
{
    const peg_json *response = peg__read_object(reply, event, "response");

    (void)items;
    if (response)
        read_response(reply, response);
}

static void read_end_event(struct peg__reply *reply, struct peg__slots *items,
                           const peg_json *event)
{
    const peg_json *response = peg__read_object(reply, event, "response");

    if (response)
        read_whole(reply, items, response);
    else
        peg__reply_fail(reply, "its last event has no 'response'");
}

static const struct event {
    const char *type;
    /* NULL: a delta of a part of this kind. */
    void (*read)(struct peg__reply *reply, struct peg__slots *items, const peg_json *event);
    enum peg__part_kind kind;
    bool is_refusal;
} events[] = {
    {.type = "response.created", .read = read_start_event},
    {.type = "response.in_progress", .read = read_start_event},
    {.type = "response.output_item.added", .read = read_item_event},
    {.type = "response.output_text.delta", .kind = PEG__PART_TEXT},
    {.type = "response.refusal.delta", .kind = PEG__PART_TEXT, .is_refusal = true},
    {.type = "response.reasoning_summary_part.added", .read = read_summary_part},
    {.type = "response.reasoning_summary_text.delta", .kind = PEG__PART_THOUGHT},
    {.type = "response.reasoning_text.delta", .kind = PEG__PART_THOUGHT},
    {.type = "response.function_call_arguments.delta", .kind = PEG__PART_CALL},
    {.type = "response.function_call_arguments.done", .read = read_arguments_done},
    {.type = "response.output_item.done", .read = read_item_event},
    {.type = "response.completed", .read = read_end_event},
    {.type = "response.incomplete", .read = read_end_event},
};

static void read_known(struct peg__reply *reply, struct peg__slots *items, const peg_json *json,
                       peg_str type)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
        const struct event *event = &events[i];

        if (!peg__str_is(type, event->type))
            continue;
        if (event->is_refusal)
            reply->has_refused = true;
        if (event->read)
            event->read(reply, items, json);
        else
            read_delta(reply, items, json, event->kind);
        return;
    }
}

static bool is_response_error(const peg_json *root, peg_str name)
{
    const peg_json *type = name.ptr ? peg_json_get(root, "type") : NULL;

    if (peg__has_member(root, "error"))
        return true;
    if (!name.ptr)
        return peg__member_is(root, "status", "failed");
    if (type && peg_json_kind_of(type) == PEG_JSON_STRING)
        name = peg_json_str(type);
    return peg__str_is(name, "error") || peg__str_is(name, "response.failed");
}

/* The type stands in the data too; servers leave out the one or the other. */
static void read_responses(struct peg__reply *reply, peg_str name, const peg_json *root)
{
    if (name.ptr) {
        const peg_str type = peg__read_string(reply, root, "type");

        read_known(reply, reply->reader, root, type.ptr ? type : name);
    } else if (peg_json_get(root, "output")) {
        read_whole(reply, reply->reader, root);
    } else {
        peg__reply_fail(reply, "it has no 'output'");
    }
}

const struct peg__wire peg__wire_responses = {
    .vendor = PEG_VENDOR_OPENAI_RESPONSES,
    .base_url = "https://api.openai.com/v1",
    .key_env = "OPENAI_API_KEY",
    .headers = "",
    .key_header = "Authorization: Bearer ",
    .path = "/responses",
    .format = &peg__responses_format,
    .ends_with_done = true, /* of servers that mix it up with the other protocol */
    .ends_at_once = true,
    .reader_size = sizeof(struct peg__slots),
    .is_error = is_response_error,
    .read = read_responses,
};
