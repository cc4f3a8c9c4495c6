/* SPDX-License-Identifier: Apache-2.0 */

/* What OpenAI's two protocols share. */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"
#include "pegboard/envelope.h"

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

/* These take no parallel_tool_calls. */
static bool is_o_series(const char *model)
{
    model = without_vendor(model);
    return is_family(model, "o1") || is_family(model, "o3") || is_family(model, "o4");
}

bool peg__openai_reasons(const char *model)
{
    if (is_o_series(model))
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

void peg__openai_put_choice(struct peg__writer *w)
{
    const peg_tool_config *config = w->request->config;

    peg__out_cmember(&w->out, "tool_choice", peg__must_call(w->request) ? "required" : "auto");
    /* Without a limit it is not worth a parameter that some servers do not know. */
    if (config->settings.max_parallel > 0 && !is_o_series(w->request->options->model)) {
        peg__out_key(&w->out, "parallel_tool_calls");
        peg__out_bool(&w->out, config->settings.max_parallel > 1);
    }
}

void peg__openai_put_sampling(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;

    if (peg__openai_reasons(options->model))
        return;
    peg__put_double(w, "temperature", options->temperature);
    peg__put_double(w, "top_p", options->top_p);
}

peg_status peg__openai_put_data_url(struct peg__writer *w, const char *name, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *base64 = NULL;
    struct peg__buf *out = w->out.buf;
    size_t len;
    const peg_status status =
        peg_media_base64(media, peg__media_max(w->request->options), &base64, &len, w->reterr);

    if (status)
        return status;
    /* A safe type and base 64 need no escapes. */
    peg__out_key(&w->out, name);
    peg__out_raw(&w->out, peg__str("\"data:"));
    peg__buf_puts(out, peg_safe_mime_type(peg_media_mime_type(media)));
    peg__buf_puts(out, ";base64,");
    peg__buf_add(out, base64, len);
    peg__buf_putc(out, '"');
    return PEG_OK;
}

peg_status peg__openai_put_file_data(struct peg__writer *w, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *name = NULL;
    const peg_status status =
        peg_safe_filename(peg_cstr(peg_media_filename(media)), &name, w->reterr);

    if (status)
        return status;
    peg__out_cmember(&w->out, "filename", name);
    return peg__openai_put_data_url(w, "file_data", media);
}

/* ---- reading ------------------------------------------------------------------------------ */

int64_t peg__openai_index(struct peg__reply *reply, const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);
    int64_t index;

    if (!value || peg_json_kind_of(value) == PEG_JSON_NULL)
        return -1;
    if (peg_json_int64(value, &index) && index >= 0 && index < PEG_LIMIT_REPLY_PARTS)
        return index;
    peg__reply_fail(reply, "\"%s\" is no number between 0 and %d", name, PEG_LIMIT_REPLY_PARTS);
    return -1;
}

/* ---- slots -------------------------------------------------------------------------------- */

struct peg__slot {
    int64_t index; /* -1: none */
    peg_str id;    /* empty: none */
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
static bool grow_slots(struct peg__slots *slots, struct peg__reply *reply)
{
    const size_t capacity = slots->capacity ? slots->capacity * 2 : 8;
    struct peg__slot *items;

    if (slots->n < slots->capacity)
        return true;
    if (slots->n >= PEG_LIMIT_REPLY_SLOTS) {
        peg__reply_fail(reply, "it has more than %d parts side by side", PEG_LIMIT_REPLY_SLOTS);
        return false;
    }
    items = peg__arena_alloc(&reply->arena, capacity * sizeof(*items));
    if (!items) {
        peg__reply_nomem(reply);
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
    peg__reply_nomem(reply);
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
        if (!grow_slots(slots, reply))
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
