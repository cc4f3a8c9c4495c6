/* SPDX-License-Identifier: Apache-2.0 */

/* The public functions of turn stores: they check arguments, sort lists and complete errors. */

#include "turn/store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/clock.h"

struct peg_turn_store {
    atomic_uint n_refs;
    const struct peg__turn_store_ops *ops;
    void *self;
    const peg_artifact_kind *const *kinds; /* borrowed from the host */
    size_t n_kinds;
};

/* ---- life -------------------------------------------------------------------------- */

peg_status peg__turn_store_new(const struct peg__turn_store_ops *ops, void *self,
                               peg_turn_store **ret_store, peg_error *reterr)
{
    peg_turn_store *store = peg__alloc_zero(1, sizeof(*store));

    if (!store) {
        ops->free(self);
        return peg__fail_nomem(reterr);
    }
    atomic_init(&store->n_refs, 1);
    store->ops = ops;
    store->self = self;
    *ret_store = store;
    return PEG_OK;
}

peg_turn_store *peg_turn_store_ref(peg_turn_store *store)
{
    if (store)
        peg__refs_take(&store->n_refs);
    return store;
}

peg_turn_store *peg_turn_store_unref(peg_turn_store *store)
{
    if (!store || !peg__refs_drop(&store->n_refs))
        return NULL;
    store->ops->free(store->self);
    peg__free(store);
    return NULL;
}

void peg_turn_store_set_kinds(peg_turn_store *store, const peg_artifact_kind *const *kinds,
                              size_t n_kinds)
{
    store->kinds = kinds;
    store->n_kinds = n_kinds;
}

/* ---- errors ------------------------------------------------------------------------- */

peg_status peg__turn_store_fail(peg_status status, const peg_error *why, peg_error *reterr,
                                const char *fmt, ...)
{
    char message[200];
    va_list args;

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status == PEG_ELIMIT || strcmp(why->code, "E_TURN_STORE") == 0) {
        if (reterr)
            *reterr = *why;
        return status;
    }
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return peg__fail_because(reterr, PEG_EIO, "E_TURN_STORE", why, "%s", message);
}

/* ---- saving ---------------------------------------------------------------------------- */

peg_str peg__turn_session(const peg_turn *turn)
{
    peg_str id;

    return peg_turn_get_string(turn, &peg_key_session_id, &id, NULL) || !id.ptr ? peg__str("") : id;
}

static peg_status save_at(peg_turn_store *store, const peg_turn *turn, peg_phase phase,
                          const peg_clock *clock, peg_error *reterr)
{
    peg_turn_info info = {.id = peg_turn_id(turn), .phase = phase};
    peg_status status;
    peg_error why;

    if (info.id.len == 0)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a turn without an id cannot be saved: give it one with "
                         "peg_turn_set_id()");
    if ((unsigned)phase >= PEG_N_PHASES)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "%d is no phase: see peg_phase",
                         (int)phase);
    info.session_id = peg__turn_session(turn);
    info.saved_ms = peg_clock_now_ms(clock);
    info.n_blocks = peg_turn_len(turn);
    status = store->ops->save(store->self, turn, &info, &why);
    return status ? peg__turn_store_fail(status, &why, reterr, "a turn cannot be saved") : PEG_OK;
}

peg_status peg_turn_store_save(peg_turn_store *store, const peg_turn *turn, peg_phase phase,
                               peg_error *reterr)
{
    return save_at(store, turn, phase, peg_clock_system(), reterr);
}

peg_status peg_turn_store_snapshot(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *store,
                                   peg_error *reterr)
{
    return save_at(store, turn, phase, ctx ? peg_ctx_clock(ctx) : peg_clock_system(), reterr);
}

/* ---- loading and removing -------------------------------------------------------------- */

/* Nothing is kept under an id that no turn can have. */
static bool can_be_kept(peg_str id)
{
    return id.len > 0 && id.len <= PEG_LIMIT_ID_BYTES;
}

peg_status peg_turn_store_load(peg_turn_store *store, peg_str id, peg_turn **ret_turn,
                               peg_phase *ret_phase, peg_error *reterr)
{
    const peg_turn_read_options how = {PEG_TURN_READ_OPTIONS_INIT, .kinds = store->kinds,
                                       .n_kinds = store->n_kinds};
    peg_phase phase = PEG_PHASE_PRE_INFERENCE;
    peg_turn *turn = NULL;
    peg_status status = PEG_OK;
    peg_error why;

    if (can_be_kept(id))
        status = store->ops->load(store->self, id, &how, &turn, &phase, &why);
    if (status)
        return peg__turn_store_fail(status, &why, reterr, "a turn cannot be loaded");
    *ret_turn = turn;
    if (turn && ret_phase)
        *ret_phase = phase;
    return PEG_OK;
}

bool peg_turn_is_over(const peg_turn *turn, peg_phase phase)
{
    return phase == PEG_PHASE_FINAL || (phase == PEG_PHASE_POST_INFERENCE &&
                                        peg_turn_next_pending(turn, 0) == peg_turn_len(turn));
}

peg_status peg_turn_store_remove(peg_turn_store *store, peg_str id, peg_error *reterr)
{
    peg_status status;
    peg_error why;

    if (!can_be_kept(id))
        return PEG_OK;
    status = store->ops->remove(store->self, id, &why);
    return status ? peg__turn_store_fail(status, &why, reterr, "a turn cannot be removed") : PEG_OK;
}

/* ---- listing ----------------------------------------------------------------------------- */

peg_status peg__turn_list_add(struct peg__turn_list *list, const peg_turn_info *info, int64_t order,
                              peg_error *reterr)
{
    struct peg__turn_listed *item;
    const char *id;
    const char *session;

    if (list->n >= PEG_LIMIT_STORE_TURNS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TURN_STORE_FULL",
                         "the store has more than %d turns: list those of one session, or remove "
                         "some",
                         PEG_LIMIT_STORE_TURNS);
    if (!PEG__RESERVE(list->items, list->n + 1, list->capacity))
        return peg__fail_nomem(reterr);
    id = peg__arena_copy(&list->arena, info->id);
    session = peg__arena_copy(&list->arena, info->session_id);
    if (!id || !session)
        return peg__fail_nomem(reterr);
    item = &list->items[list->n++];
    *item = (struct peg__turn_listed){.info = *info, .order = order};
    item->info.id.ptr = id;
    item->info.session_id.ptr = session;
    return PEG_OK;
}

/* Those saved last first. */
static int compare_listed(const void *a_item, const void *b_item)
{
    const struct peg__turn_listed *a = a_item;
    const struct peg__turn_listed *b = b_item;
    const int order = (b->order > a->order) - (b->order < a->order);

    return order ? order : peg__str_compare(a->info.id, b->info.id);
}

peg_status peg_turn_store_list(peg_turn_store *store, peg_str session_id,
                               bool (*fn)(const peg_turn_info *info, void *user), void *user,
                               peg_error *reterr)
{
    struct peg__turn_list list = {0};
    peg_error why;
    peg_status status = store->ops->list(store->self, session_id, &list, &why);

    if (status) {
        status = peg__turn_store_fail(status, &why, reterr, "a turn cannot be listed");
    } else if (list.n > 0) {
        qsort(list.items, list.n, sizeof(*list.items), compare_listed);
        for (size_t i = 0; i < list.n && fn(&list.items[i].info, user); i++)
            continue;
    }
    peg__free(list.items);
    peg__arena_free(&list.arena);
    return status;
}

bool peg__phase_from_name(peg_str name, peg_phase *ret_phase)
{
    for (peg_phase phase = 0; phase < PEG_N_PHASES; phase++) {
        if (peg__str_is(name, peg_phase_name(phase))) {
            *ret_phase = phase;
            return true;
        }
    }
    return false;
}
