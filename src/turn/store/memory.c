/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns in memory: copies, which share their blocks with the originals. One lock for all of them.
 * No code of the host runs under it, so a replaced turn is freed afterwards (a reader that dies
 * calls its owner).
 */

#include <pthread.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "turn/store/store.h"

/* Owned by the store; the strings of info are the turn's. */
struct kept {
    peg_turn *turn;
    peg_turn_info info;
    int64_t order; /* how many were saved before */
};

struct memory {
    pthread_mutex_t lock;
    struct peg__map turns; /* id to struct kept */
    size_t n_blocks;       /* of all turns, shared ones counted each time */
    int64_t n_saved;
};

static struct kept *kept_free(struct kept *kept)
{
    if (!kept)
        return NULL;
    peg_turn_free(kept->turn);
    peg__free(kept);
    return NULL;
}

static void memory_free(void *self)
{
    struct memory *m = self;

    PEG__MAP_EACH(&m->turns, entry)
    {
        kept_free(entry->value);
    }
    peg__map_free(&m->turns);
    pthread_mutex_destroy(&m->lock);
    peg__free(m);
}

/* ---- saving ------------------------------------------------------------------------- */

static peg_status kept_new(const peg_turn *turn, const peg_turn_info *info, struct kept **ret_kept,
                           peg_error *reterr)
{
    struct kept *kept = peg__alloc_zero(1, sizeof(*kept));
    peg_status status;

    if (!kept) {
        peg__fail_nomem(reterr);
        return PEG_ENOMEM;
    }
    status = peg_turn_copy(turn, &kept->turn, reterr);
    if (status) {
        peg__free(kept);
        return status;
    }
    kept->info = *info;
    kept->info.id = peg_turn_id(kept->turn);
    /* Of the same bag as before, so what could be read can be read again. */
    if (info->session_id.len)
        status =
            peg_turn_get_string(kept->turn, &peg_key_session_id, &kept->info.session_id, reterr);
    if (status)
        kept_free(kept);
    else
        *ret_kept = kept;
    return status;
}

/* With the lock. *ret_old is what was there before, or NULL. */
static peg_status put(struct memory *m, struct kept *kept, struct kept **ret_old, peg_error *reterr)
{
    const struct kept *before = peg__map_get(&m->turns, kept->info.id);
    const size_t others = m->n_blocks - (before ? before->info.n_blocks : 0);
    void *old = NULL;
    peg_status status;

    if (kept->info.n_blocks > PEG_LIMIT_STORE_BLOCKS - others)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_TURN_STORE_FULL",
            "a store in memory takes %d blocks in all: remove turns, or keep them on a "
            "disk",
            PEG_LIMIT_STORE_BLOCKS);
    status = peg__map_put(&m->turns, kept->info.id, kept, &old);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TURN_STORE_FULL",
                         "a store in memory takes %d turns: remove some, or keep them on a disk",
                         PEG_LIMIT_MEMORY_TURNS);
    if (status)
        return peg__fail_nomem(reterr);
    m->n_blocks = others + kept->info.n_blocks;
    kept->order = m->n_saved++;
    *ret_old = old;
    return PEG_OK;
}

static peg_status memory_save(void *self, const peg_turn *turn, const peg_turn_info *info,
                              peg_error *reterr)
{
    struct memory *m = self;
    struct kept *kept = NULL;
    struct kept *old = NULL;
    peg_status status = kept_new(turn, info, &kept, reterr);

    if (status)
        return status;
    pthread_mutex_lock(&m->lock);
    status = put(m, kept, &old, reterr);
    pthread_mutex_unlock(&m->lock);
    kept_free(status ? kept : old);
    return status;
}

/* ---- the rest --------------------------------------------------------------------------- */

static peg_status memory_load(void *self, peg_str id, const peg_turn_read_options *how,
                              peg_turn **ret_turn, peg_phase *ret_phase, peg_error *reterr)
{
    struct memory *m = self;
    const struct kept *kept;
    peg_status status = PEG_OK;

    (void)how; /* nothing is read: artifacts are as they were */
    pthread_mutex_lock(&m->lock);
    kept = peg__map_get(&m->turns, id);
    if (kept)
        status = peg_turn_copy(kept->turn, ret_turn, reterr);
    if (kept && !status)
        *ret_phase = kept->info.phase;
    pthread_mutex_unlock(&m->lock);
    return status;
}

static peg_status memory_remove(void *self, peg_str id, peg_error *reterr)
{
    struct memory *m = self;
    void *value = NULL;

    (void)reterr;
    pthread_mutex_lock(&m->lock);
    if (peg__map_remove(&m->turns, id, &value))
        m->n_blocks -= ((const struct kept *)value)->info.n_blocks;
    pthread_mutex_unlock(&m->lock);
    kept_free(value);
    return PEG_OK;
}

static peg_status memory_list(void *self, peg_str session_id, struct peg__turn_list *list,
                              peg_error *reterr)
{
    struct memory *m = self;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&m->lock);
    PEG__MAP_EACH(&m->turns, entry)
    {
        const struct kept *kept = entry->value;

        if (session_id.len && !peg__str_eq(session_id, kept->info.session_id))
            continue;
        status = peg__turn_list_add(list, &kept->info, kept->order, reterr);
        if (status)
            break;
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}

peg_status peg_turn_store_memory_new(peg_turn_store **ret_store, peg_error *reterr)
{
    static const struct peg__turn_store_ops ops = {.save = memory_save,
                                                   .load = memory_load,
                                                   .remove = memory_remove,
                                                   .list = memory_list,
                                                   .free = memory_free};
    struct memory *m = peg__alloc_zero(1, sizeof(*m));

    if (!m)
        return peg__fail_nomem(reterr);
    pthread_mutex_init(&m->lock, NULL);
    m->turns = (struct peg__map)PEG__MAP(PEG_LIMIT_MEMORY_TURNS);
    return peg__turn_store_new(&ops, m, ret_store, reterr);
}
