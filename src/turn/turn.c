/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each change goes through the same four steps: check, reserve, storage, apply. Only the last
 * can be seen, and it cannot fail.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/cleanup.h"
#include "pegboard/clock.h"
#include "turn/turn.h"

peg_record *peg_turn_result_of(const peg_turn *turn, peg_str block_id)
{
    const size_t i = peg__blocks_find(turn->blocks, PEG__NAME_ANSWER, block_id);

    return i == PEG__NO_BLOCK ? NULL : peg_block_record(peg__blocks_at(turn->blocks, i));
}

size_t peg_turn_next_pending(const peg_turn *turn, size_t i)
{
    const unsigned calls = PEG_BLOCKS(PEG_BLOCK_CALL);

    for (i = peg_turn_next(turn, calls, i); i < peg_turn_len(turn);
         i = peg_turn_next(turn, calls, i + 1)) {
        if (!peg_turn_result_of(turn, peg_block_id(peg_turn_at(turn, i))))
            break;
    }
    return i;
}

size_t peg_turn_call_count(const peg_turn *turn, const char *checksum)
{
    const unsigned results = PEG_BLOCKS(PEG_BLOCK_RESULT);
    size_t n = 0;

    if (!checksum || !*checksum)
        return 0;
    for (size_t i = peg_turn_next(turn, results, 0); i < peg_turn_len(turn);
         i = peg_turn_next(turn, results, i + 1)) {
        const peg_record *record = peg_block_record(peg_turn_at(turn, i));

        n += strcmp(peg_record_checksum(record), checksum) == 0;
    }
    return n;
}

/* ---- handles -------------------------------------------------------------------- */

static bool is_handle_taken(const peg_turn *turn, const struct peg__map *also_taken, peg_str handle)
{
    return peg__blocks_find(turn->blocks, PEG__NAME_HANDLE, handle) != PEG__NO_BLOCK ||
           (also_taken && peg__map_find(also_taken, handle));
}

enum {
    SUFFIX = 24, /* '~', the digits of a number and a NUL */
    /* So many are tried one by one. Beyond, the number is doubled until one is free, and halved
     * towards those that are not: a file may well want one handle a hundred thousand times. */
    FEW_HANDLES = 64,
};

/* The n-th handle of a call: its id, then "id~2", "id~3", ... Is it taken? */
static bool is_nth_taken(const peg_turn *turn, const struct peg__map *also_taken, char *handle,
                         size_t id_len, size_t n)
{
    size_t len = id_len;

    handle[len] = '\0';
    if (n > 1)
        len += (size_t)snprintf(handle + id_len, SUFFIX, "~%zu", n);
    return is_handle_taken(turn, also_taken, peg__strn(handle, len));
}

peg_status peg__turn_handle(const peg_turn *turn, peg_str call_id,
                            const struct peg__map *also_taken, char **ret_handle, size_t *ret_len)
{
    char *handle = peg__alloc(call_id.len + SUFFIX);
    size_t taken = 0;
    size_t n = 1;

    if (!handle)
        return PEG_ENOMEM;
    if (call_id.len)
        memcpy(handle, call_id.ptr, call_id.len);
    /* Ends: there are no more handles than blocks and names in the map. */
    while (is_nth_taken(turn, also_taken, handle, call_id.len, n)) {
        taken = n;
        n += n < FEW_HANDLES ? 1 : n;
    }
    while (n - taken > 1) {
        const size_t between = taken + (n - taken) / 2;

        if (is_nth_taken(turn, also_taken, handle, call_id.len, between))
            taken = between;
        else
            n = between;
    }
    (void)is_nth_taken(turn, also_taken, handle, call_id.len, n); /* writes it */
    *ret_handle = handle;
    if (ret_len)
        *ret_len = call_id.len + strlen(handle + call_id.len);
    return PEG_OK;
}

/* As PEG_ARG, but no more than a sentence can bear. */
#define SHOWN(s) (int)((s).len < 64 ? (s).len : 64), (s).ptr

/* ---- life ----------------------------------------------------------------------- */

peg_status peg__turn_from_parts(const struct peg__turn_parts *parts, peg_turn **ret_turn,
                                peg_error *reterr)
{
    peg_turn *turn = peg__alloc_zero(1, sizeof(*turn) + parts->id.len + 1);

    if (!turn)
        return peg__fail_nomem(reterr);
    turn->id = (peg_str){turn->first_id, parts->id.len};
    if (parts->id.len)
        memcpy(turn->first_id, parts->id.ptr, parts->id.len);
    turn->data = parts->data;
    turn->metadata = parts->metadata;
    turn->members = parts->members;
    *ret_turn = turn;
    return PEG_OK;
}

peg_status peg_turn_new(peg_turn **ret_turn, peg_error *reterr)
{
    char id[PEG_UUID_TEXT];
    struct peg__turn_parts parts = {{NULL, 0}, NULL, NULL, NULL};

    if (!peg__uuid7(peg_clock_system(), id))
        return peg__fail_no_randomness(reterr);
    parts.id = peg__str(id);
    return peg__turn_from_parts(&parts, ret_turn, reterr);
}

static peg_status copy_as(const peg_turn *turn, peg_str id, peg_turn **ret_turn, peg_error *reterr)
{
    const struct peg__turn_parts parts = {id, turn->data, turn->metadata, turn->members};
    peg_turn *copy = NULL;
    const peg_status status = peg__turn_from_parts(&parts, &copy, reterr);

    if (!copy)
        return status;
    peg_bag_ref(copy->data);
    peg_bag_ref(copy->metadata);
    peg__shared_ref(copy->members);
    copy->blocks = peg__blocks_ref(turn->blocks);
    *ret_turn = copy;
    return PEG_OK;
}

peg_status peg_turn_copy(const peg_turn *turn, peg_turn **ret_turn, peg_error *reterr)
{
    return copy_as(turn, turn->id, ret_turn, reterr);
}

peg_status peg_turn_follow(const peg_turn *turn, peg_str prompt, peg_turn **ret_turn,
                           peg_error *reterr)
{
    char id[PEG_UUID_TEXT];
    peg_turn *next = NULL;
    peg_status status;

    if (!peg__uuid7(peg_clock_system(), id))
        return peg__fail_no_randomness(reterr);
    status = copy_as(turn, peg__str(id), &next, reterr);
    if (next && prompt.len)
        status = peg_turn_add_text(next, PEG_BLOCK_USER, prompt, reterr);
    if (status)
        peg_turn_free(next);
    else
        *ret_turn = next;
    return status;
}

peg_turn *peg_turn_free(peg_turn *turn)
{
    if (!turn)
        return NULL;
    peg__blocks_unref(turn->blocks);
    peg_bag_unref(turn->data);
    peg_bag_unref(turn->metadata);
    peg__shared_unref(turn->members);
    peg__free(turn->other_id);
    peg__free(turn);
    return NULL;
}

peg_str peg_turn_id(const peg_turn *turn)
{
    return turn->id;
}

void peg__turn_attach(peg_turn *turn, const peg_storage *storage, peg_ctx *ctx)
{
    turn->storage = storage;
    turn->ctx = ctx;
}

void peg__turn_swap_in(peg_turn *turn, const peg_turn *from)
{
    struct peg__blocks *blocks = turn->blocks;
    peg_bag *data = turn->data;
    peg_bag *metadata = turn->metadata;

    turn->blocks = peg__blocks_ref(from->blocks);
    turn->data = peg_bag_ref(from->data);
    turn->metadata = peg_bag_ref(from->metadata);
    peg__blocks_unref(blocks);
    peg_bag_unref(data);
    peg_bag_unref(metadata);
}

/* ---- views ---------------------------------------------------------------------- */

size_t peg_turn_len(const peg_turn *turn)
{
    return peg__blocks_len(turn->blocks);
}

peg_block *peg_turn_at(const peg_turn *turn, size_t i)
{
    return i < peg_turn_len(turn) ? peg__blocks_at(turn->blocks, i) : NULL;
}

peg_block *peg_turn_find(const peg_turn *turn, peg_str id)
{
    const size_t i = peg__blocks_find(turn->blocks, PEG__NAME_ID, id);

    return i == PEG__NO_BLOCK ? NULL : peg__blocks_at(turn->blocks, i);
}

size_t peg_turn_next(const peg_turn *turn, unsigned kinds, size_t i)
{
    const size_t len = peg_turn_len(turn);

    for (; i < len; i++) {
        if (kinds & PEG_BLOCKS(peg_block_kind_of(peg__blocks_at(turn->blocks, i))))
            return i;
    }
    return len;
}

size_t peg_turn_count(const peg_turn *turn, unsigned kinds)
{
    const size_t len = peg_turn_len(turn);
    size_t n = 0;

    for (size_t i = peg_turn_next(turn, kinds, 0); i < len; i = peg_turn_next(turn, kinds, i + 1))
        n++;
    return n;
}

peg_block *peg_turn_last(const peg_turn *turn, unsigned kinds)
{
    for (size_t i = peg_turn_len(turn); i > 0; i--) {
        peg_block *block = peg__blocks_at(turn->blocks, i - 1);

        if (kinds & PEG_BLOCKS(peg_block_kind_of(block)))
            return block;
    }
    return NULL;
}

size_t peg_turn_next_new(const peg_turn *turn, const peg_turn *baseline, size_t i)
{
    const size_t len = peg_turn_len(turn);

    while (i < len && baseline && peg_turn_find(baseline, peg_block_id(peg_turn_at(turn, i))))
        i++;
    return i < len ? i : len;
}

/* ---- may it be ------------------------------------------------------------------ */

peg_status peg__turn_check_lent(const peg_turn *turn, peg_error *reterr)
{
    if (!turn->is_lent)
        return PEG_OK;
    return peg__fail(reterr, PEG_ESTATE, "E_TURN_BUSY",
                     "a dispatch works on a copy of this turn and will put it in its place: use "
                     "peg_dispatch_turn(), or wait until the dispatch has ended");
}

peg_status peg__turn_check_busy(const peg_turn *turn, peg_error *reterr)
{
    if (turn->is_storing)
        return peg__fail(reterr, PEG_ESTATE, "E_TURN_BUSY",
                         "the storage handles another change: change the turn after its function "
                         "has returned");
    return peg__turn_check_lent(turn, reterr);
}

static peg_status check_change(const peg_turn *turn, const peg_block *block, peg_error *reterr)
{
    if (!block)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_BLOCK",
                         "there is no block: make one with peg_block_new()");
    return peg__turn_check_busy(turn, reterr);
}

static bool is_other(const peg_block *block)
{
    return peg_block_kind_of(block) == PEG_BLOCK_OTHER;
}

/* The same result under a handle that is free. */
static peg_status rename_result(const peg_turn *turn, peg_block *block, peg_block **ret_block,
                                peg_error *reterr)
{
    const struct peg__block_origin origin = {.members = peg__block_members(block),
                                             .has_no_time = true};
    peg_block_def def = {PEG_BLOCK_DEF_INIT,
                         .kind = PEG_BLOCK_RESULT,
                         .id = peg_block_id(block),
                         .created_ms = peg_block_created_ms(block),
                         .metadata = peg_block_metadata(block),
                         .payload = peg_block_payload(block)};
    char *handle = NULL;
    size_t len = 0;
    peg_status status;

    if (peg__turn_handle(turn, peg_block_call_id(block), NULL, &handle, &len))
        return peg__fail_nomem(reterr);
    status =
        peg__record_rename(peg_block_record(block), peg__strn(handle, len), &def.record, reterr);
    if (!status)
        status = peg__block_read_new(&def, &origin, ret_block, reterr);
    peg_record_unref(def.record);
    peg__free(handle);
    return status;
}

/* A handle leads to one artifact. Results without one may share theirs (a provider that repeats its
 * call ids), but not with an artifact that a host put there: the model would take the one for the
 * other. Two results with artifacts come from runs that did not know each other: the later one gets
 * another handle. `at` is where the block will stand, the block there now does not count.
 * *ret_block is what to put there, a reference. */
static peg_status settle_handle(const peg_turn *turn, peg_block *block, size_t at,
                                peg_block **ret_block, peg_error *reterr)
{
    const peg_str handle = peg__block_name(block, PEG__NAME_HANDLE);
    const size_t i = peg__blocks_find_other(turn->blocks, PEG__NAME_HANDLE, handle, at);
    const peg_block *holder = i == PEG__NO_BLOCK ? NULL : peg__blocks_at(turn->blocks, i);

    if (!holder || (!is_other(block) && !is_other(holder) &&
                    !(peg_block_artifact(block) && peg_block_artifact(holder)))) {
        *ret_block = peg_block_ref(block);
        return PEG_OK;
    }
    if (!is_other(block) && !is_other(holder))
        return rename_result(turn, block, ret_block, reterr);
    return peg__fail(reterr, PEG_EEXISTS, "E_ARTIFACT_ID_COLLISION",
                     "the handle '%.*s' belongs to another block of the turn: give the artifact "
                     "another id, or the record another handle",
                     SHOWN(handle));
}

static peg_status check_new(const peg_turn *turn, const peg_block *block, peg_error *reterr)
{
    const peg_str id = peg_block_id(block);

    if (peg_turn_find(turn, id))
        return peg__fail(reterr, PEG_EEXISTS, "E_BLOCK_ID_TAKEN",
                         "the turn has a block with id '%.*s': use peg_turn_put() to replace it",
                         SHOWN(id));
    if (peg_turn_len(turn) >= PEG_LIMIT_TURN_BLOCKS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_LARGE",
                         "the turn has %d blocks already: begin another", PEG_LIMIT_TURN_BLOCKS);
    return PEG_OK;
}

/* ---- the storage ---------------------------------------------------------------- */

static peg_status storage_failed(peg_status status, const peg_error *error, peg_error *reterr)
{
    if (!status)
        return PEG_OK;
    return peg__host_failed(status, error, "E_STORAGE_FAILED", "the storage", reterr);
}

typedef peg_status (*keep_fn)(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr);

static peg_status store_block(peg_turn *turn, bool is_new, peg_block *block, peg_error *reterr)
{
    const peg_storage *storage = turn->storage;
    peg_error error = PEG__HOST_ERROR;
    peg_status status;
    keep_fn keep;

    if (!storage)
        return PEG_OK;
    keep = is_new ? storage->store : storage->mutate;
    turn->is_storing = true;
    status = keep(storage->user, turn->ctx, block, &error);
    turn->is_storing = false;
    return storage_failed(status, &error, reterr);
}

static peg_status store_removal(peg_turn *turn, peg_str id, peg_error *reterr)
{
    const peg_storage *storage = turn->storage;
    peg_error error = PEG__HOST_ERROR;
    peg_status status;

    if (!storage)
        return PEG_OK;
    turn->is_storing = true;
    status = storage->remove(storage->user, turn->ctx, id, &error);
    turn->is_storing = false;
    return storage_failed(status, &error, reterr);
}

/* ---- changes -------------------------------------------------------------------- */

static peg_status reserve_block(peg_turn *turn, peg_error *reterr)
{
    return peg__blocks_reserve(&turn->blocks) ? peg__fail_nomem(reterr) : PEG_OK;
}

static peg_status add_at(peg_turn *turn, size_t at, peg_block *block, peg_error *reterr)
{
    PEG_CLEANUP(peg_block_unrefp) peg_block *settled = NULL;
    peg_status status = check_change(turn, block, reterr);

    if (status || (status = check_new(turn, block, reterr)) ||
        (status = settle_handle(turn, block, PEG__NO_BLOCK, &settled, reterr)) ||
        (status = reserve_block(turn, reterr)) ||
        (status = store_block(turn, true, settled, reterr)))
        return status;
    if (at < peg_turn_len(turn))
        peg__blocks_insert(turn->blocks, at, settled);
    else
        peg__blocks_append(turn->blocks, settled);
    return PEG_OK;
}

peg_status peg_turn_add(peg_turn *turn, peg_block *block, peg_error *reterr)
{
    return add_at(turn, SIZE_MAX, block, reterr);
}

peg_status peg_turn_insert(peg_turn *turn, size_t at, peg_block *block, peg_error *reterr)
{
    return add_at(turn, at, block, reterr);
}

peg_status peg_turn_put(peg_turn *turn, peg_block *block, peg_error *reterr)
{
    PEG_CLEANUP(peg_block_unrefp) peg_block *settled = NULL;
    peg_status status = check_change(turn, block, reterr);
    size_t at;

    if (status)
        return status;
    at = peg__blocks_find(turn->blocks, PEG__NAME_ID, peg_block_id(block));
    if (at == PEG__NO_BLOCK)
        return peg_turn_add(turn, block, reterr);
    if ((status = settle_handle(turn, block, at, &settled, reterr)) ||
        (status = reserve_block(turn, reterr)) ||
        (status = store_block(turn, false, settled, reterr)))
        return status;
    peg__blocks_replace(turn->blocks, at, settled);
    return PEG_OK;
}

peg_status peg_turn_remove(peg_turn *turn, peg_str id, peg_error *reterr)
{
    const size_t at = peg__blocks_find(turn->blocks, PEG__NAME_ID, id);
    peg_status status;

    if (at == PEG__NO_BLOCK)
        return PEG_OK;
    if ((status = check_change(turn, peg__blocks_at(turn->blocks, at), reterr)) ||
        (status = reserve_block(turn, reterr)) || (status = store_removal(turn, id, reterr)))
        return status;
    peg__blocks_remove(turn->blocks, at);
    return PEG_OK;
}

/* ---- short forms ---------------------------------------------------------------- */

static peg_status add_def(peg_turn *turn, const peg_block_def *def, peg_error *reterr)
{
    peg_block *block;
    peg_status status = peg_block_new(def, &block, reterr);

    if (status)
        return status;
    status = peg_turn_add(turn, block, reterr);
    peg_block_unref(block);
    return status;
}

peg_status peg_turn_add_text(peg_turn *turn, peg_block_kind kind, peg_str text, peg_error *reterr)
{
    return add_def(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind, .text = text},
                   reterr);
}

peg_status peg_turn_add_call(peg_turn *turn, peg_str call_id, peg_str tool, peg_str args,
                             peg_error *reterr)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL, .call_id = call_id,
                               .tool = tool, .args = args};

    return add_def(turn, &def, reterr);
}

/* ---- the system prompt ---------------------------------------------------------- */

static peg_status make_system(peg_str id, int64_t created_ms, peg_str prompt, peg_block **ret_block,
                              peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_SYSTEM, .id = id, .text = prompt,
                         .created_ms = created_ms};
    peg_status status;

    peg_json_add_string(b, peg__str("systemprompt"));
    status = peg_bag_with_built(NULL, &peg_key_middleware, b, &def.metadata, reterr);
    if (!status)
        status = peg_block_new(&def, ret_block, reterr);
    peg_bag_unref(def.metadata);
    return status;
}

peg_status peg_turn_set_system(peg_turn *turn, peg_str prompt, peg_error *reterr)
{
    const size_t at = peg_turn_next(turn, PEG_BLOCKS(PEG_BLOCK_SYSTEM), 0);
    const peg_block *old = peg_turn_at(turn, at);
    PEG_CLEANUP(peg_block_unrefp) peg_block *block = NULL;
    peg_status status;

    if (!prompt.len || (old && peg__str_eq(peg_block_text(old), prompt)))
        return PEG_OK;
    status = make_system(old ? peg_block_id(old) : (peg_str){NULL, 0},
                         old ? peg_block_created_ms(old) : 0, prompt, &block, reterr);
    if (status)
        return status;
    return old ? peg_turn_put(turn, block, reterr) : peg_turn_insert(turn, 0, block, reterr);
}
