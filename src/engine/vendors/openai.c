/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/vendors/openai.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/alternating.h"

/* ---- models ---------------------------------------------------------------------------- */

/* Routers put a vendor before the name. */
static const char *without_vendor(const char *model)
{
    const char *slash = strrchr(model, '/');

    return slash ? slash + 1 : model;
}

/* The name itself, or the name and something that is no letter and no digit. */
static bool is_family(const char *model, const char *family)
{
    const size_t len = strlen(family);
    char next;

    if (strncmp(model, family, len) != 0)
        return false;
    next = model[len];
    return !(next >= 'a' && next <= 'z') && !(next >= 'A' && next <= 'Z') &&
           !(next >= '0' && next <= '9');
}

bool peg__openai_is_o_series(const char *model)
{
    model = without_vendor(model);
    return is_family(model, "o1") || is_family(model, "o3") || is_family(model, "o4");
}

bool peg__openai_reasons(const char *model)
{
    if (peg__openai_is_o_series(model))
        return true;
    model = without_vendor(model);
    return is_family(model, "gpt-5") && !is_family(model, "gpt-5-chat");
}

bool peg__openai_never_reasons(const char *model)
{
    static const char *const families[] = {"gpt-3", "gpt-4", "chatgpt", "gpt-5-chat"};

    model = without_vendor(model);
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        if (strncmp(model, families[i], strlen(families[i])) == 0)
            return true;
    }
    return false;
}

/* ---- members of requests ------------------------------------------------------------------ */

peg_status peg__openai_tools(const struct peg__request *request, peg_vendor provider,
                             struct peg__out *out, peg_error *reterr)
{
    peg_status status;

    if (!peg__offers_tools(request))
        return PEG_OK;
    status = peg__write_tools(request, provider, out, reterr);
    if (status)
        return status;
    peg__out_cmember(out, "tool_choice", peg__must_call(request) ? "required" : "auto");
    /* What is not said is not worth a parameter that some servers do not know. */
    if (request->config->max_parallel > 0 && !peg__openai_is_o_series(request->options->model)) {
        peg__out_key(out, "parallel_tool_calls");
        peg__out_bool(out, request->config->max_parallel > 1);
    }
    return PEG_OK;
}

void peg__openai_sampling(const peg_model_options *options, struct peg__out *out)
{
    if (peg__openai_reasons(options->model))
        return;
    if (options->temperature) {
        peg__out_key(out, "temperature");
        peg__out_double(out, *options->temperature);
    }
    if (options->top_p) {
        peg__out_key(out, "top_p");
        peg__out_double(out, *options->top_p);
    }
}

peg_status peg__openai_data_url(const peg_media *media, const peg_model_options *options,
                                struct peg__out *out, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *base64 = NULL;
    size_t len;
    peg_status status = peg_media_base64(media, peg__media_max(options), &base64, &len, reterr);

    if (status)
        return status;
    /* A safe type and base 64 need no escapes. */
    peg__out_raw(out, peg__str("\"data:"));
    peg__buf_puts(out->buf, peg_safe_mime_type(peg_media_mime_type(media)));
    peg__buf_puts(out->buf, ";base64,");
    peg__buf_add(out->buf, base64, len);
    peg__buf_putc(out->buf, '"');
    return PEG_OK;
}

peg_status peg__openai_spoken(const peg_block *block, struct peg__buf *out, peg_error *reterr)
{
    if (!peg__is_blank(peg_block_text(block)))
        peg__buf_str(out, peg_block_text(block));
    for (size_t i = 0; i < peg_block_n_media(block); i++) {
        PEG_CLEANUP(peg__freep) char *words = NULL;
        size_t len;
        const peg_status status =
            peg__content_media(block, i, PEG__MEDIA_TEXT, &words, &len, reterr);

        if (status)
            return status;
        if (out->len > 0)
            peg__buf_puts(out, "\n\n");
        peg__buf_add(out, words, len);
    }
    return out->status ? peg__fail_nomem(reterr) : PEG_OK;
}

peg_str peg__openai_payload(const peg_block *block, const char *name)
{
    const peg_json *payload = peg_block_payload(block);
    const peg_json *value = payload ? peg_json_get(payload, name) : NULL;

    if (!value || peg_json_kind_of(value) != PEG_JSON_STRING || peg_json_str(value).len == 0)
        return peg__strn(NULL, 0);
    return peg_json_str(value);
}

void peg__openai_headers(const char *api_key, struct peg__buf *out)
{
    if (api_key && api_key[0])
        peg__buf_printf(out, "Authorization: Bearer %s\n", api_key);
}

/* ---- reading ------------------------------------------------------------------------------ */

static void fail_nomem(struct peg__reply *reply)
{
    if (!reply->status)
        reply->status = peg__fail_nomem(&reply->error);
}

int64_t peg__openai_index(struct peg__reply *reply, const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);
    int64_t index;

    if (!value || peg_json_kind_of(value) == PEG_JSON_NULL)
        return -1;
    if (peg_json_int64(value, &index) && index >= 0 && index < PEG_LIMIT_REPLY_PARTS)
        return index;
    peg__reply_fail(reply, "\"%s\" is no number between 0 and %d (PEG_LIMIT_REPLY_PARTS)", name,
                    PEG_LIMIT_REPLY_PARTS);
    return -1;
}

/* ---- slots -------------------------------------------------------------------------------- */

struct peg__slot {
    int64_t index; /* -1: none was told */
    peg_str id;    /* empty: none was told */
    uint32_t rank;
    bool is_marked;
};

static bool belongs(const struct peg__slot *slot, enum peg__slots_rule rule, int64_t index,
                    peg_str id)
{
    const bool has_both_ids = slot->id.len > 0 && id.len > 0;
    const bool has_both_indexes = slot->index >= 0 && index >= 0;

    if (has_both_indexes && slot->index != index)
        return false;
    if (has_both_indexes && rule == PEG__SLOTS_BY_INDEX)
        return true;
    return !has_both_ids || peg__str_eq(slot->id, id);
}

static uint32_t free_rank(const struct peg__slots *slots, int64_t index)
{
    uint32_t next = 0;
    bool is_taken = index < 0;

    for (size_t i = 0; i < slots->n; i++) {
        is_taken |= slots->items[i].rank == index;
        if (slots->items[i].rank >= next)
            next = slots->items[i].rank + 1;
    }
    return is_taken ? next : (uint32_t)index;
}

/* The arena frees nothing singly: what doubling leaves behind is no more than what is kept. */
static bool make_room(struct peg__slots *slots, struct peg__reply *reply)
{
    const size_t capacity = slots->capacity ? slots->capacity * 2 : 8;
    struct peg__slot *items;

    if (slots->n < slots->capacity)
        return true;
    if (slots->n >= PEG_LIMIT_REPLY_SLOTS) {
        peg__reply_fail(reply, "it has more than %d parts side by side (PEG_LIMIT_REPLY_SLOTS)",
                        PEG_LIMIT_REPLY_SLOTS);
        return false;
    }
    items = peg__arena_alloc(&reply->arena, capacity * sizeof(*items));
    if (!items) {
        fail_nomem(reply);
        return false;
    }
    if (slots->n > 0)
        memcpy(items, slots->items, slots->n * sizeof(*items));
    slots->items = items;
    slots->capacity = capacity;
    return true;
}

static bool set_id(struct peg__slot *slot, struct peg__reply *reply, peg_str id)
{
    if (slot->id.len > 0 || id.len == 0)
        return true;
    slot->id = peg__strn(peg__arena_copy(&reply->arena, id), id.len);
    if (slot->id.ptr)
        return true;
    slot->id.len = 0;
    fail_nomem(reply);
    return false;
}

static struct peg__slot *find_slot(const struct peg__slots *slots, enum peg__slots_rule rule,
                                   int64_t index, peg_str id)
{
    for (size_t i = slots->n; i > 0; i--) {
        if (belongs(&slots->items[i - 1], rule, index, id))
            return &slots->items[i - 1];
    }
    return NULL;
}

uint32_t peg__slots_rank(struct peg__slots *slots, struct peg__reply *reply,
                         enum peg__slots_rule rule, int64_t index, peg_str id)
{
    struct peg__slot *slot = find_slot(slots, rule, index, id);

    if (reply->status)
        return 0;
    if (!slot) {
        if (!make_room(slots, reply))
            return 0;
        slot = &slots->items[slots->n];
        *slot = (struct peg__slot){.index = index, .rank = free_rank(slots, index)};
        slots->n++;
    }
    return set_id(slot, reply, id) ? slot->rank : 0;
}

bool peg__slots_mark(struct peg__slots *slots, uint32_t rank)
{
    for (size_t i = 0; i < slots->n; i++) {
        if (slots->items[i].rank == rank) {
            const bool was_marked = slots->items[i].is_marked;

            slots->items[i].is_marked = true;
            return was_marked;
        }
    }
    return false;
}
