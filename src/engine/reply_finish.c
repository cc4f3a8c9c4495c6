/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reply becomes blocks:
 *
 *   peg__reply_finish -> complete_reports
 *                     -> build_result          pegboard.inference_result@v1
 *                     -> make_blocks           all of them before the first is added
 *                     -> add_blocks            or none
 */

#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/reply.h"
#include "turn/turn.h"

/* ---- how it ended ---------------------------------------------------------------------- */

static bool is_listed_reason(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(word, *words) == 0)
            return true;
    return false;
}

static const char *finish_class(const char *reason)
{
    static const char *const too_long[] = {"max_tokens", "max_output_tokens", "length",
                                           "model_length", NULL};
    static const char *const stopped[] = {"interrupted", "cancelled", "canceled", NULL};
    static const char *const failed[] = {"error", "failed", NULL};
    static const char *const refused[] = {"refusal",    "content_filter", "safety",
                                          "recitation", "blocklist",      "prohibited_content",
                                          "spii",       "image_safety",   NULL};

    if (!reason || strcasecmp(reason, "unknown") == 0)
        return "unknown";
    if (is_listed_reason(reason, too_long))
        return "max_tokens";
    if (is_listed_reason(reason, stopped))
        return "interrupted";
    if (is_listed_reason(reason, refused))
        return "refused";
    return is_listed_reason(reason, failed) ? "error" : "completed";
}

/* ---- pegboard.inference_result@v1 -------------------------------------------------------- */

static void add_word(peg_json_builder *b, const char *name, const char *word)
{
    if (!word)
        return;
    peg_json_add_key(b, peg_cstr(name));
    peg_json_add_string(b, peg_cstr(word));
}

static void add_number(peg_json_builder *b, const char *name, int64_t number)
{
    if (number < 0)
        return;
    peg_json_add_key(b, peg_cstr(name));
    peg_json_add_integer(b, number);
}

/* Readers rely on the first two as soon as there is any count. */
static void add_usage(peg_json_builder *b, const struct peg__usage *usage)
{
    if (usage->input_tokens < 0 && usage->output_tokens < 0)
        return;
    peg_json_add_key(b, peg_cstr("usage"));
    peg_json_open_object(b);
    add_number(b, "input_tokens", usage->input_tokens < 0 ? 0 : usage->input_tokens);
    add_number(b, "output_tokens", usage->output_tokens < 0 ? 0 : usage->output_tokens);
    add_number(b, "cached_tokens", usage->cached_tokens);
    add_number(b, "cache_creation_input_tokens", usage->cache_creation_tokens);
    add_number(b, "cache_read_input_tokens", usage->cache_read_tokens);
    add_number(b, "reasoning_tokens", usage->reasoning_tokens);
    peg_json_close(b);
}

/* OpenAI stops as usual after a refusal: a host could not distinguish it from an answer. */
static const char *stop_reason(const struct peg__reply *reply)
{
    return reply->has_refused ? "refusal" : reply->stop_reason;
}

static const char *class_of(const struct peg__reply *reply, bool is_whole)
{
    if (!is_whole)
        return "interrupted";
    return peg__reply_has_calls(reply) ? "tool_calls_pending" : finish_class(stop_reason(reply));
}

static peg_status build_result(const struct peg__reply *reply, bool is_whole,
                               struct peg__shared **ret_result, peg_error *reterr)
{
    const char *how = class_of(reply, is_whole);
    const int64_t ns = peg_clock_mono_ns(peg__reply_clock(reply)) - reply->started_ns;
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    peg_status status;

    peg_json_open_object(b);
    add_word(b, "provider", reply->vendor);
    add_word(b, "model", reply->model);
    add_word(b, "stop_reason", stop_reason(reply));
    add_word(b, "finish_class", how);
    peg_json_add_key(b, peg_cstr("truncated"));
    peg_json_add_bool(b, strcmp(finish_class(reply->stop_reason), "max_tokens") == 0);
    add_usage(b, &reply->usage);
    add_number(b, "duration_ms", ns / PEG_NS_PER_MS);
    add_word(b, "response_id", reply->response_id);
    add_word(b, "request_id", reply->request_id);
    add_number(b, "sequence", (int64_t)peg__reply_n_inferences(reply->turn) + 1);
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    *ret_result = peg__shared_new(doc);
    return *ret_result ? PEG_OK : peg__fail_nomem(reterr);
}

/* ---- how many there were ------------------------------------------------------------------ */

uint32_t peg__reply_sequence(const peg_json *result)
{
    const peg_json *value = result ? peg_json_get(result, "sequence") : NULL;
    int64_t number;

    if (!value || !peg_json_int64(value, &number) || number < 1 || number > UINT32_MAX / 2)
        return 0;
    return (uint32_t)number;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint32_t peg__reply_n_inferences(const peg_turn *turn)
{
    const peg_str id = peg_cstr(peg_key_inference_result.id);
    const unsigned answers = PEG_BLOCKS(PEG_BLOCK_USER) | PEG_BLOCKS(PEG_BLOCK_RESULT);
    const size_t n = peg_turn_len(turn);
    uint32_t seen = 0;
    bool is_between = true;

    for (size_t i = 0; i < n; i++) {
        const peg_block *block = peg_turn_at(turn, i);
        const peg_json *result = peg_bag_find(peg_block_metadata(block), id);

        if (PEG_BLOCKS(peg_block_kind_of(block)) & answers)
            is_between = true;
        else if (result && peg__reply_sequence(result))
            seen = larger(seen, peg__reply_sequence(result));
        else if (result && is_between) {
            seen++;
            is_between = false;
        }
    }
    return larger(seen, peg__reply_sequence(peg_bag_find(peg_turn_metadata(turn), id)));
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* NULL where there is none. */
static peg_status build_payload(const struct peg__part *part, peg_json_doc **ret_doc,
                                peg_error *reterr)
{
    peg_json_builder *b;

    *ret_doc = NULL;
    if (!part->payload)
        return PEG_OK;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    for (const struct peg__part_member *m = part->payload; m; m = m->next) {
        peg_json_add_key(b, m->name);
        peg_json_add_copy(b, peg_json_root(m->value));
    }
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

static void fill_def(const struct peg__reply *reply, const struct peg__part *part,
                     peg_block_def *def)
{
    const peg_str text = peg__buf_view(&part->text);

    def->id = peg__str(part->id);
    switch (part->kind) {
    case PEG__PART_CALL:
        def->kind = PEG_BLOCK_CALL;
        def->call_id = part->call_id ? peg__str(part->call_id) : peg__strn("", 0);
        def->tool = peg__part_tool(reply, part);
        def->args = text;
        break;
    case PEG__PART_THOUGHT:
        def->kind = PEG_BLOCK_REASONING;
        def->text = text;
        break;
    default:
        def->kind = PEG_BLOCK_ASSISTANT;
        def->text = text;
    }
}

static peg_status make_block(const struct peg__reply *reply, const struct peg__part *part,
                             struct peg__shared *result, peg_block **ret_block, peg_error *reterr)
{
    struct peg__buf args = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .metadata = NULL};
    peg_json_doc *payload;
    peg_status status = build_payload(part, &payload, reterr);

    if (status)
        return status;
    fill_def(reply, part, &def);
    if (part->kind == PEG__PART_CALL)
        status = peg__strict_call_args(reply->strict, def.tool, def.args, &args, reterr);
    if (args.len > 0)
        def.args = peg__buf_view(&args);
    def.payload = payload ? peg_json_root(payload) : NULL;
    if (!status)
        status = peg__bag_with_shared(part->metadata, &peg_key_block_inference, result,
                                      &def.metadata, reterr);
    if (!status)
        status = peg_block_new(&def, ret_block, reterr);
    peg_bag_unref(def.metadata);
    peg_json_doc_free(payload);
    peg__buf_free(&args);
    return status;
}

static bool becomes_block(const struct peg__part *part, bool is_whole)
{
    return !peg__part_is_empty(part) && (is_whole || part->kind != PEG__PART_CALL);
}

static peg_status make_blocks(const struct peg__reply *reply, bool is_whole,
                              struct peg__shared *result, peg_block **blocks, size_t *n,
                              peg_error *reterr)
{
    for (size_t i = 0; i < reply->n_parts; i++) {
        const struct peg__part *part = reply->parts[i];
        peg_status status;

        if (!becomes_block(part, is_whole))
            continue;
        status = make_block(reply, part, result, &blocks[*n], reterr);
        if (status)
            return status;
        ++*n;
    }
    return PEG_OK;
}

/* All of them and what is known about them, or nothing. */
static peg_status add_blocks(struct peg__reply *reply, peg_block *const *blocks, size_t n,
                             const struct peg__shared *result, peg_error *reterr)
{
    peg_status status = PEG_OK;
    size_t n_added = 0;

    while (n_added < n && !status) {
        status = peg_turn_add(reply->turn, blocks[n_added], reterr);
        n_added += !status;
    }
    if (!status)
        status =
            peg_turn_set(reply->turn, &peg_key_inference_result, peg__shared_root(result), reterr);
    if (!status)
        return PEG_OK;
    while (n_added > 0 && !peg_turn_remove(reply->turn, peg_block_id(blocks[n_added - 1]), NULL))
        n_added--;
    return status;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Arguments that waited for an id get one of ours: block.h would make another. */
static void name_call(struct peg__reply *reply, struct peg__part *part)
{
    if (!part->call_id)
        part->call_id = part->id;
    peg__part_report(reply, part);
}

static peg_status report_complete(struct peg__reply *reply, const struct peg__part *part,
                                  peg_error *reterr)
{
    const peg_str id = peg__str(part->id);
    const peg_str none = {"", 0};

    if (part->kind == PEG__PART_TEXT)
        return peg_dispatch_report_message(reply->dispatch, id, none, true, reterr);
    return peg_dispatch_report_thought(reply->dispatch, id, none, true, reterr);
}

static peg_status complete_reports(struct peg__reply *reply, bool is_whole, peg_error *reterr)
{
    for (size_t i = 0; i < reply->n_parts; i++) {
        struct peg__part *part = reply->parts[i];
        peg_status status = PEG_OK;

        if (part->kind == PEG__PART_CALL && is_whole && !peg__part_is_empty(part))
            name_call(reply, part);
        else if (part->kind != PEG__PART_CALL && part->n_reported && reply->dispatch)
            status = report_complete(reply, part, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status put_on_turn(struct peg__reply *reply, bool is_whole, peg_block **blocks,
                              peg_error *reterr)
{
    struct peg__shared *result = NULL;
    size_t n = 0;
    peg_status status = build_result(reply, is_whole, &result, reterr);

    if (!status)
        status = make_blocks(reply, is_whole, result, blocks, &n, reterr);
    if (!status)
        status = add_blocks(reply, blocks, n, result, reterr);
    for (size_t i = 0; i < n; i++)
        peg_block_unref(blocks[i]);
    peg__shared_unref(result);
    return status;
}

peg_status peg__reply_finish(struct peg__reply *reply, bool is_whole, peg_error *reterr)
{
    const bool is_good = is_whole && !reply->status;
    PEG_CLEANUP(peg__freep) peg_block **blocks = NULL;
    peg_status status;

    if (reply->status == PEG_ENOMEM)
        return peg__reply_status(reply, reterr);
    blocks = peg__alloc_zero(reply->n_parts + 1, sizeof(peg_block *));
    if (!blocks)
        return peg__fail_nomem(reterr);
    status = complete_reports(reply, is_good, reterr);
    if (!status && is_good && reply->status) /* an event failed */
        return peg__reply_status(reply, reterr);
    if (!status)
        status = put_on_turn(reply, is_good, blocks, reterr);
    return status || !reply->status ? status : peg__reply_status(reply, reterr);
}
