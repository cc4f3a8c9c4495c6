/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer of Anthropic's Messages API. A stream has content blocks by their index: start,
 * deltas, stop; a block's index is its rank. Kinds of blocks, deltas and events that are not known
 * are passed over: the API adds some every year.
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

/* What an index stands for. */
enum content {
    NOTHING = 0, /* has not started */
    TEXT,
    THOUGHT,
    CALL,       /* without a byte of its input yet */
    CALL_BEGUN, /* with some of it */
    CALL_WHOLE, /* its input came with its start */
    IGNORED,
};

struct reader {
    uint8_t *contents; /* enum content by index */
    size_t n_contents;
};

/* ---- state ------------------------------------------------------------------------------- */

/* The place of an index that the limit allows, made if there is none yet. */
static uint8_t *content_at(struct peg__reply *reply, size_t index)
{
    struct reader *reader = reply->reader;
    uint8_t *grown;
    size_t n;

    if (index < reader->n_contents)
        return &reader->contents[index];
    n = index < 8 ? 16 : 2 * index;
    grown = peg__arena_alloc_zero(&reply->arena, n);
    if (!grown) {
        peg__reply_nomem(reply);
        return NULL;
    }
    if (reader->n_contents)
        memcpy(grown, reader->contents, reader->n_contents);
    reader->contents = grown;
    reader->n_contents = n;
    return &reader->contents[index];
}

/* Returns whether there is a usable one. */
static bool read_index(struct peg__reply *reply, const peg_json *event, uint32_t *ret_index)
{
    const peg_json *value = peg_json_get(event, "index");
    int64_t index;

    if (!value || !peg_json_int64(value, &index) || index < 0 || index >= PEG_LIMIT_REPLY_PARTS) {
        peg__reply_fail(reply, "a content block has no \"index\" from 0 to %d",
                        PEG_LIMIT_REPLY_PARTS - 1);
        return false;
    }
    *ret_index = (uint32_t)index;
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static void add_text_block(struct peg__reply *reply, uint32_t index, const peg_json *block)
{
    struct peg__part *part = peg__reply_part(reply, index, PEG__PART_TEXT);

    peg__part_add(reply, part, peg__read_string(reply, block, "text"));
}

static void add_thought_block(struct peg__reply *reply, uint32_t index, const peg_json *block)
{
    struct peg__part *part = peg__reply_part(reply, index, PEG__PART_THOUGHT);
    const peg_json *signature = peg_json_get(block, "signature");

    peg__part_add(reply, part, peg__read_string(reply, block, "thinking"));
    if (peg__read_string(reply, block, "signature").len > 0)
        peg__part_payload(reply, part, "signature", signature);
}

static void add_sealed_thought(struct peg__reply *reply, uint32_t index, const peg_json *block)
{
    struct peg__part *part = peg__reply_part(reply, index, PEG__PART_THOUGHT);

    if (!peg__read_string(reply, block, "data").ptr)
        peg__reply_fail(reply, "a redacted_thinking block has no \"data\"");
    else
        peg__part_payload(reply, part, "redacted_data", peg_json_get(block, "data"));
}

/* A stream starts with an empty input and sends the rest in deltas. */
static enum content add_call(struct peg__reply *reply, uint32_t index, const peg_json *block)
{
    struct peg__part *part = peg__reply_part(reply, index, PEG__PART_CALL);
    const peg_str id = peg__read_string(reply, block, "id");
    const peg_str name = peg__read_string(reply, block, "name");
    const peg_json *input = peg__read_object(reply, block, "input");

    if (name.len == 0) {
        peg__reply_fail(reply, "a tool_use block has no \"name\"");
        return IGNORED;
    }
    peg__part_set_call_id(reply, part, id);
    peg__part_add_name(reply, part, name);
    if (!input || peg_json_len(input) == 0)
        return CALL;
    peg__part_set_json(reply, part, input);
    return CALL_WHOLE;
}

static enum content add_block(struct peg__reply *reply, uint32_t index, const peg_json *block)
{
    const peg_str type = peg__read_string(reply, block, "type");

    if (peg__str_is(type, "text")) {
        add_text_block(reply, index, block);
        return TEXT;
    }
    if (peg__str_is(type, "thinking")) {
        add_thought_block(reply, index, block);
        return THOUGHT;
    }
    if (peg__str_is(type, "redacted_thinking")) {
        add_sealed_thought(reply, index, block);
        return THOUGHT;
    }
    return peg__str_is(type, "tool_use") ? add_call(reply, index, block) : IGNORED;
}

/* The API sends nothing for no arguments. */
static void end_block(struct peg__reply *reply, uint32_t index, enum content content)
{
    if (content == CALL)
        peg__part_add(reply, peg__reply_part(reply, index, PEG__PART_CALL), peg__str("{}"));
}

/* ---- events ------------------------------------------------------------------------------ */

static void read_message_usage(struct peg__reply *reply, const peg_json *object)
{
    const peg_json *usage = peg__read_object(reply, object, "usage");

    peg__reply_count(&reply->usage.input_tokens, usage, "input_tokens");
    peg__reply_count(&reply->usage.output_tokens, usage, "output_tokens");
    peg__reply_count(&reply->usage.cache_creation_tokens, usage, "cache_creation_input_tokens");
    peg__reply_count(&reply->usage.cache_read_tokens, usage, "cache_read_input_tokens");
}

static void read_message(struct peg__reply *reply, const peg_json *message)
{
    peg__reply_set(reply, &reply->response_id, peg__read_string(reply, message, "id"));
    peg__reply_set(reply, &reply->model, peg__read_string(reply, message, "model"));
    peg__reply_set(reply, &reply->stop_reason, peg__read_string(reply, message, "stop_reason"));
    read_message_usage(reply, message);
}

static void on_block_start(struct peg__reply *reply, const peg_json *event)
{
    const peg_json *block = peg__read_object(reply, event, "content_block");
    uint8_t *content;
    uint32_t index;

    if (!block) {
        peg__reply_fail(reply, "a content_block_start has no \"content_block\"");
        return;
    }
    if (!read_index(reply, event, &index) || !(content = content_at(reply, index)))
        return;
    if (*content != NOTHING)
        peg__reply_fail(reply, "content block %u starts twice", (unsigned)index);
    else
        *content = (uint8_t)add_block(reply, index, block);
}

static void add_input_delta(struct peg__reply *reply, uint32_t index, uint8_t *content,
                            peg_str delta)
{
    if (*content == CALL_WHOLE || delta.len == 0)
        return;
    *content = CALL_BEGUN;
    peg__part_add(reply, peg__reply_part(reply, index, PEG__PART_CALL), delta);
}

static bool is_call(enum content content)
{
    return content == CALL || content == CALL_BEGUN || content == CALL_WHOLE;
}

static void add_delta(struct peg__reply *reply, uint32_t index, uint8_t *content,
                      const peg_json *delta)
{
    const peg_str type = peg__read_string(reply, delta, "type");
    bool fits = true;

    if (peg__str_is(type, "text_delta")) {
        fits = *content == TEXT;
        if (fits)
            add_text_block(reply, index, delta);
    } else if (peg__str_is(type, "thinking_delta") || peg__str_is(type, "signature_delta")) {
        fits = *content == THOUGHT;
        if (fits)
            add_thought_block(reply, index, delta);
    } else if (peg__str_is(type, "input_json_delta")) {
        fits = is_call(*content);
        if (fits)
            add_input_delta(reply, index, content, peg__read_string(reply, delta, "partial_json"));
    }
    if (!fits)
        peg__reply_fail(reply, "a %.*s does not fit content block %u", PEG_ARG(type),
                        (unsigned)index);
}

static void on_block_delta(struct peg__reply *reply, const peg_json *event)
{
    const peg_json *delta = peg__read_object(reply, event, "delta");
    uint8_t *content;
    uint32_t index;

    if (!delta) {
        peg__reply_fail(reply, "a content_block_delta has no \"delta\"");
        return;
    }
    if (!read_index(reply, event, &index) || !(content = content_at(reply, index)))
        return;
    if (*content == NOTHING)
        peg__reply_fail(reply, "content block %u goes on, but did not start", (unsigned)index);
    else if (*content != IGNORED)
        add_delta(reply, index, content, delta);
}

static void on_block_stop(struct peg__reply *reply, const peg_json *event)
{
    uint8_t *content;
    uint32_t index;

    if (!read_index(reply, event, &index) || !(content = content_at(reply, index)))
        return;
    end_block(reply, index, (enum content) * content);
    if (*content == CALL)
        *content = CALL_WHOLE;
}

static void on_message_delta(struct peg__reply *reply, const peg_json *event)
{
    const peg_json *delta = peg__read_object(reply, event, "delta");

    peg__reply_set(reply, &reply->stop_reason, peg__read_string(reply, delta, "stop_reason"));
    read_message_usage(reply, event);
}

/* What a message says is in its blocks alone: its stop, whatever the reason, adds nothing. */
static void read_known_event(struct peg__reply *reply, peg_str type, const peg_json *event)
{
    if (peg__str_is(type, "content_block_delta"))
        on_block_delta(reply, event);
    else if (peg__str_is(type, "content_block_start"))
        on_block_start(reply, event);
    else if (peg__str_is(type, "content_block_stop"))
        on_block_stop(reply, event);
    else if (peg__str_is(type, "message_start"))
        read_message(reply, peg__read_object(reply, event, "message"));
    else if (peg__str_is(type, "message_delta"))
        on_message_delta(reply, event);
    else if (peg__str_is(type, "message_stop"))
        reply->is_ended = true;
}

/* ---- the whole at once ------------------------------------------------------------------- */

static void read_blocks(struct peg__reply *reply, const peg_json *content)
{
    uint32_t index = 0;

    if (!content) {
        peg__reply_fail(reply, "it has no \"content\"");
        return;
    }
    PEG_JSON_EACH_ITEM (content, block) {
        if (reply->status)
            return;
        if (peg_json_kind_of(block) != PEG_JSON_OBJECT)
            peg__reply_fail(reply, "content block %u is no object", (unsigned)index);
        else
            end_block(reply, index, add_block(reply, index, block));
        index++;
    }
}

static bool is_message_error(const peg_json *root, peg_str type)
{
    (void)type;
    return peg__member_is(root, "type", "error");
}

/* Every event has its type itself, and proxies drop names. */
static void read_anthropic(struct peg__reply *reply, peg_str name, const peg_json *root)
{
    const bool is_body = !name.ptr;
    const peg_str type = is_body ? name : peg__read_string(reply, root, "type");

    if (is_body) {
        read_message(reply, root);
        read_blocks(reply, peg__read_array(reply, root, "content"));
        reply->is_ended = true;
    } else if (type.ptr) {
        read_known_event(reply, type, root);
    } else {
        peg__reply_fail(reply, "an event has no \"type\"");
    }
}

const struct peg__wire peg__wire_anthropic = {
    .vendor = PEG_VENDOR_ANTHROPIC,
    .base_url = "https://api.anthropic.com",
    .key_env = "ANTHROPIC_API_KEY",
    .headers = "anthropic-version: 2023-06-01\n",
    .key_header = "x-api-key: ",
    .path = "/v1/messages",
    .format = &peg__anthropic_format,
    .ends_at_once = true,
    .reader_size = sizeof(struct reader),
    .is_error = is_message_error,
    .read = read_anthropic,
};
