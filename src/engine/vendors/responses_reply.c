/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes back from OpenAI's Responses API: items, each of which is one part. Its pieces come
 * first, then the whole item once more, which counts. What a thought needs to be sent back is its
 * payload (responses.h).
 *
 * Items of other kinds, such as searches that the provider ran itself, are passed over.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "engine/reading.h"
#include "engine/vendors/openai.h"
#include "engine/vendors/responses.h"

struct reader {
    struct peg__slots items;
    bool is_finished; /* response.completed or response.incomplete came */
};

static struct reader *reader_of(struct peg__reply *reply)
{
    if (!reply->reader)
        reply->reader = peg__arena_alloc_zero(&reply->arena, sizeof(struct reader));
    if (!reply->reader && !reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    return reply->reader;
}

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

        if (peg_json_kind_of(part) != PEG_JSON_OBJECT) {
            peg__reply_fail(reply, "a part of an item is no object");
            return;
        }
        text = peg__reading_string(reply, part, "text");
        if (!text.ptr) {
            text = peg__reading_string(reply, part, "refusal");
            if (text.len > 0)
                peg__reply_set_refused(reply);
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
    if (text.status && !reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    if (text.len > 0)
        peg__part_set(reply, part, peg__buf_view(&text));
    peg__buf_free(&text);
}

static void keep(struct peg__reply *reply, struct peg__part *part, const peg_json *item,
                 const char *name, const char *as)
{
    if (peg__reading_string(reply, item, name).len > 0)
        peg__part_payload(reply, part, as, peg_json_get(item, name));
}

/* As the provider wrote it, but only what it says: what else might stand there need not be kept. */
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
        peg_json_add_string(b, peg__reading_string(reply, item, "text"));
        peg_json_close(b);
    }
    peg_json_close(b);
    if (!peg_json_builder_finish(b, &doc, NULL))
        peg__part_payload(reply, part, "summary", peg_json_root(doc));
    else if (!reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    peg_json_doc_free(doc);
}

static void read_thought(struct peg__reply *reply, struct peg__part *part, const peg_json *item)
{
    const peg_json *summary = peg__reading_array(reply, item, "summary");
    const peg_json *content = peg__reading_array(reply, item, "content");

    keep(reply, part, item, "id", "item_id");
    keep(reply, part, item, "encrypted_content", "encrypted_content");
    if (!summary || peg_json_len(summary) == 0) {
        set_text(reply, part, content, "\n\n");
        return;
    }
    set_text(reply, part, summary, "\n\n");
    keep_summary(reply, part, summary);
}

/* The name comes with the item that opens the part, and again with the one that ends it. */
static void read_call(struct peg__reply *reply, struct peg__part *part, const peg_json *item,
                      bool has_name)
{
    const peg_str args = peg__reading_string(reply, item, "arguments");

    keep(reply, part, item, "id", "item_id");
    peg__part_set_call_id(reply, part, peg__reading_string(reply, item, "call_id"));
    if (!has_name)
        peg__part_add_name(reply, part, peg__reading_string(reply, item, "name"));
    if (args.len > 0)
        peg__part_set(reply, part, args);
}

/* `index` is -1 where the event does not tell it. */
static void read_item(struct peg__reply *reply, struct reader *reader, const peg_json *item,
                      int64_t index)
{
    enum peg__part_kind kind;
    struct peg__part *part;
    uint32_t rank;

    if (!item || reply->status || !kind_of_item(peg__reading_string(reply, item, "type"), &kind))
        return;
    rank = peg__slots_rank(&reader->items, reply, PEG__SLOTS_BY_INDEX, index,
                           peg__reading_string(reply, item, "id"));
    part = peg__reply_part(reply, rank, kind);
    if (kind == PEG__PART_THOUGHT) {
        read_thought(reply, part, item);
        return;
    }
    if (kind == PEG__PART_CALL) {
        read_call(reply, part, item, peg__slots_mark(&reader->items, rank));
        return;
    }
    keep(reply, part, item, "id", "item_id");
    set_text(reply, part, peg__reading_array(reply, item, "content"), "");
}

/* ---- the response as a whole --------------------------------------------------------------- */

static void read_usage(struct peg__reply *reply, const peg_json *response)
{
    const peg_json *usage = peg__reading_object(reply, response, "usage");

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
    peg__reply_set_response_id(reply, peg__reading_string(reply, response, "id"));
    peg__reply_set_model(reply, peg__reading_string(reply, response, "model"));
    read_usage(reply, response);
}

/* Why it ended: the reason of an incomplete response says more than that it is one. */
static void read_end(struct peg__reply *reply, struct reader *reader, const peg_json *response)
{
    const peg_json *details = peg__reading_object(reply, response, "incomplete_details");
    const peg_str reason = peg__reading_string(reply, details, "reason");
    const peg_json *output = peg__reading_array(reply, response, "output");
    int64_t index = 0;

    read_response(reply, response);
    peg__reply_set_stop(reply,
                        reason.len > 0 ? reason : peg__reading_string(reply, response, "status"));
    if (output) {
        PEG_JSON_EACH_ITEM (output, item) {
            if (peg_json_kind_of(item) != PEG_JSON_OBJECT)
                peg__reply_fail(reply, "an item is no object");
            else
                read_item(reply, reader, item, index++);
        }
    }
    reader->is_finished = true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct peg__part *part_of(struct peg__reply *reply, struct reader *reader,
                                 const peg_json *event, enum peg__part_kind kind)
{
    const int64_t index = peg__openai_index(reply, event, "output_index");
    const peg_str id = peg__reading_string(reply, event, "item_id");

    if (reply->status)
        return NULL;
    return peg__reply_part(
        reply, peg__slots_rank(&reader->items, reply, PEG__SLOTS_BY_INDEX, index, id), kind);
}

static void read_delta(struct peg__reply *reply, struct reader *reader, const peg_json *event,
                       enum peg__part_kind kind)
{
    const peg_str delta = peg__reading_string(reply, event, "delta");

    peg__part_add(reply, part_of(reply, reader, event, kind), delta);
}

static void read_text_delta(struct peg__reply *reply, struct reader *reader, const peg_json *event)
{
    read_delta(reply, reader, event, PEG__PART_TEXT);
}

static void read_refusal_delta(struct peg__reply *reply, struct reader *reader,
                               const peg_json *event)
{
    peg__reply_set_refused(reply);
    read_delta(reply, reader, event, PEG__PART_TEXT);
}

static void read_thought_delta(struct peg__reply *reply, struct reader *reader,
                               const peg_json *event)
{
    read_delta(reply, reader, event, PEG__PART_THOUGHT);
}

/* The parts of a summary stand apart, as they do when the item has come. */
static void read_summary_part(struct peg__reply *reply, struct reader *reader,
                              const peg_json *event)
{
    struct peg__part *part = part_of(reply, reader, event, PEG__PART_THOUGHT);

    if (part && peg__openai_index(reply, event, "summary_index") > 0)
        peg__part_add(reply, part, peg__str("\n\n"));
}

static void read_arguments_delta(struct peg__reply *reply, struct reader *reader,
                                 const peg_json *event)
{
    read_delta(reply, reader, event, PEG__PART_CALL);
}

static void read_arguments_done(struct peg__reply *reply, struct reader *reader,
                                const peg_json *event)
{
    const peg_str args = peg__reading_string(reply, event, "arguments");

    if (args.len > 0)
        peg__part_set(reply, part_of(reply, reader, event, PEG__PART_CALL), args);
}

static void read_item_event(struct peg__reply *reply, struct reader *reader, const peg_json *event)
{
    const peg_json *item = peg__reading_object(reply, event, "item");

    read_item(reply, reader, item, peg__openai_index(reply, event, "output_index"));
}

static void read_start_event(struct peg__reply *reply, struct reader *reader, const peg_json *event)
{
    const peg_json *response = peg__reading_object(reply, event, "response");

    (void)reader;
    if (response)
        read_response(reply, response);
}

static void read_end_event(struct peg__reply *reply, struct reader *reader, const peg_json *event)
{
    const peg_json *response = peg__reading_object(reply, event, "response");

    if (response)
        read_end(reply, reader, response);
    else
        peg__reply_fail(reply, "its last event has no 'response'");
}

static const struct {
    const char *type;
    void (*read)(struct peg__reply *reply, struct reader *reader, const peg_json *event);
} events[] = {
    {"response.created", read_start_event},
    {"response.in_progress", read_start_event},
    {"response.output_item.added", read_item_event},
    {"response.output_text.delta", read_text_delta},
    {"response.refusal.delta", read_refusal_delta},
    {"response.reasoning_summary_part.added", read_summary_part},
    {"response.reasoning_summary_text.delta", read_thought_delta},
    {"response.reasoning_text.delta", read_thought_delta},
    {"response.function_call_arguments.delta", read_arguments_delta},
    {"response.function_call_arguments.done", read_arguments_done},
    {"response.output_item.done", read_item_event},
    {"response.completed", read_end_event},
    {"response.incomplete", read_end_event},
};

static bool is_error(const peg_json *event, peg_str type)
{
    const peg_json *error = peg_json_get(event, "error");

    return peg__str_is(type, "error") || peg__str_is(type, "response.failed") ||
           (error && peg_json_kind_of(error) != PEG_JSON_NULL);
}

static void read_known(struct peg__reply *reply, struct reader *reader, const peg_json *event,
                       peg_str type)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
        if (peg__str_is(type, events[i].type)) {
            events[i].read(reply, reader, event);
            return;
        }
    }
}

/* The type stands in the data too; servers leave out the one or the other. */
static peg_status read_data(struct peg__reply *reply, struct reader *reader, peg_str name,
                            peg_str data, peg_error *reterr)
{
    peg_status status = PEG_OK;
    peg_json_doc *doc = NULL;
    peg_str type;

    if (peg__reading_parse(reply, data, &doc))
        return peg__reading_end(reply, reterr);
    type = peg__reading_string(reply, peg_json_root(doc), "type");
    type = type.ptr ? type : name;
    if (is_error(peg_json_root(doc), type))
        status = peg__wire_error(&peg__wire_responses, 0, data, reterr);
    else
        read_known(reply, reader, peg_json_root(doc), type);
    peg_json_doc_free(doc);
    return status ? status : peg__reading_end(reply, reterr);
}

static peg_status read_event(struct peg__reply *reply, peg_str name, peg_str data, bool *ret_is_end,
                             peg_error *reterr)
{
    struct reader *reader = reader_of(reply);
    peg_status status;

    *ret_is_end = peg__str_is(data, "[DONE]"); /* of servers that think of the other protocol */
    if (*ret_is_end || !reader)
        return peg__reading_end(reply, reterr);
    status = read_data(reply, reader, name, data, reterr);
    *ret_is_end = reader->is_finished;
    return status;
}

static bool has_failed(const peg_json *response)
{
    const peg_json *error = peg_json_get(response, "error");
    const peg_json *status = peg_json_get(response, "status");

    return (error && peg_json_kind_of(error) != PEG_JSON_NULL) ||
           (status && peg_json_kind_of(status) == PEG_JSON_STRING &&
            peg__str_is(peg_json_str(status), "failed"));
}

static peg_status read_body(struct peg__reply *reply, peg_str body, peg_error *reterr)
{
    struct reader *reader = reader_of(reply);
    peg_status status = PEG_OK;
    peg_json_doc *doc = NULL;

    if (!reader || peg__reading_parse(reply, body, &doc))
        return peg__reading_end(reply, reterr);
    if (has_failed(peg_json_root(doc)))
        status = peg__wire_error(&peg__wire_responses, 0, body, reterr);
    else if (!peg_json_get(peg_json_root(doc), "output"))
        peg__reply_fail(reply, "it has no 'output'");
    else
        read_end(reply, reader, peg_json_root(doc));
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
    peg__buf_puts(out, "/responses");
}

const struct peg__wire peg__wire_responses = {
    .provider = PEG_VENDOR_OPENAI_RESPONSES,
    .base_url = "https://api.openai.com/v1",
    .key_env = "OPENAI_API_KEY",
    .write_path = write_path,
    .write_headers = peg__openai_headers,
    .write_body = peg__responses_write_body,
    .read_event = read_event,
    .read_body = read_body,
    .is_whole = is_whole,
};
