/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A storage in memory: for each run_id a list of blocks, and bytes by name. One lock for all of it.
 * No code of the host runs under it, so replaced things are released afterwards (a reader that dies
 * calls its owner).
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/ctx.h"
#include "turn/turn.h"

/* The things kept for one run_id. Owned by the storage. */
struct kept {
    struct peg__blocks *blocks;
    struct peg__map files; /* "media/ID", "retrieved/ID" to peg_reader */
};

/* Owned; any thread. */
struct peg_memory_storage {
    pthread_mutex_t lock;
    struct peg__map runs; /* run_id to struct kept */
    size_t n_blocks;
    uint64_t n_bytes;
};

/* ---- life ----------------------------------------------------------------------- */

peg_status peg_memory_storage_new(peg_memory_storage **ret_storage, peg_error *reterr)
{
    peg_memory_storage *storage = peg__alloc_zero(1, sizeof(*storage));

    if (!storage)
        return peg__fail_nomem(reterr);
    pthread_mutex_init(&storage->lock, NULL);
    storage->runs.max = PEG_LIMIT_STORAGE_RUNS;
    *ret_storage = storage;
    return PEG_OK;
}

static void kept_free(struct kept *kept)
{
    peg__blocks_unref(kept->blocks);
    PEG__MAP_EACH(&kept->files, entry)
    {
        peg_reader_unref(entry->value);
    }
    peg__map_free(&kept->files);
    peg__free(kept);
}

peg_memory_storage *peg_memory_storage_free(peg_memory_storage *storage)
{
    if (!storage)
        return NULL;
    PEG__MAP_EACH(&storage->runs, entry)
    {
        kept_free(entry->value);
    }
    peg__map_free(&storage->runs);
    pthread_mutex_destroy(&storage->lock);
    peg__free(storage);
    return NULL;
}

/* ---- what a run keeps, with the lock held --------------------------------------- */

static peg_str run_id_of(const peg_ctx *ctx)
{
    return peg_cstr(ctx ? peg_ctx_ids(ctx)->run_id : "");
}

static struct kept *find_kept(const peg_memory_storage *storage, const peg_ctx *ctx)
{
    return peg__map_get(&storage->runs, run_id_of(ctx));
}

static peg_status fail_storage_full(peg_error *reterr, unsigned max, const char *what)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_STORAGE_FULL",
                     "the storage in memory is full: it takes %u %s; use one that keeps less", max,
                     what);
}

/* Those of the run, made if it has none yet; NULL with *ret_status and the error. */
static struct kept *make_kept(peg_memory_storage *storage, const peg_ctx *ctx,
                              peg_status *ret_status, peg_error *reterr)
{
    struct kept *kept = find_kept(storage, ctx);
    peg_status status;

    if (kept)
        return kept;
    kept = peg__alloc_zero(1, sizeof(*kept));
    status = kept ? peg__map_add(&storage->runs, run_id_of(ctx), kept) : PEG_ENOMEM;
    if (status) {
        peg__free(kept);
        *ret_status = status == PEG_ELIMIT
                          ? fail_storage_full(reterr, PEG_LIMIT_STORAGE_RUNS, "runs")
                          : peg__fail_nomem(reterr);
        return NULL;
    }
    kept->files.max = PEG_LIMIT_STORAGE_FILES;
    return kept;
}

/* *ret_old gets a reference to what was replaced, or NULL. */
static peg_status put_block(peg_memory_storage *storage, const peg_ctx *ctx, peg_block *block,
                            peg_block **ret_old, peg_error *reterr)
{
    peg_status status = PEG_OK;
    struct kept *kept = make_kept(storage, ctx, &status, reterr);
    size_t at;

    if (!kept)
        return status;
    at = peg__blocks_find(kept->blocks, PEG__NAME_ID, peg_block_id(block));
    if (at == PEG__NO_BLOCK && storage->n_blocks >= PEG_LIMIT_STORAGE_BLOCKS)
        return fail_storage_full(reterr, PEG_LIMIT_STORAGE_BLOCKS, "blocks");
    if (peg__blocks_reserve(&kept->blocks))
        return peg__fail_nomem(reterr);
    if (at == PEG__NO_BLOCK) {
        peg__blocks_append(kept->blocks, block);
        storage->n_blocks++;
        *ret_old = NULL;
        return PEG_OK;
    }
    *ret_old = peg_block_ref(peg__blocks_at(kept->blocks, at));
    peg__blocks_replace(kept->blocks, at, block);
    return PEG_OK;
}

static peg_status remove_block(peg_memory_storage *storage, const peg_ctx *ctx, peg_str id,
                               peg_block **ret_old, peg_error *reterr)
{
    struct kept *kept = find_kept(storage, ctx);
    const size_t at = kept ? peg__blocks_find(kept->blocks, PEG__NAME_ID, id) : PEG__NO_BLOCK;

    *ret_old = NULL;
    if (at == PEG__NO_BLOCK)
        return PEG_OK;
    if (peg__blocks_reserve(&kept->blocks))
        return peg__fail_nomem(reterr);
    *ret_old = peg_block_ref(peg__blocks_at(kept->blocks, at));
    peg__blocks_remove(kept->blocks, at);
    storage->n_blocks--;
    return PEG_OK;
}

/* ---- blocks --------------------------------------------------------------------- */

static peg_status keep(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    peg_memory_storage *storage = user;
    peg_block *old = NULL;
    peg_status status;

    pthread_mutex_lock(&storage->lock);
    status = put_block(storage, ctx, block, &old, reterr);
    pthread_mutex_unlock(&storage->lock);
    peg_block_unref(old);
    return status;
}

static peg_status drop(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    peg_memory_storage *storage = user;
    peg_block *old = NULL;
    peg_status status;

    pthread_mutex_lock(&storage->lock);
    status = remove_block(storage, ctx, id, &old, reterr);
    pthread_mutex_unlock(&storage->lock);
    peg_block_unref(old);
    return status;
}

static peg_status add_all(const struct peg__blocks *blocks, unsigned kinds, peg_turn *into,
                          peg_error *reterr)
{
    for (size_t i = 0; i < peg__blocks_len(blocks); i++) {
        peg_block *block = peg__blocks_at(blocks, i);
        peg_status status;

        if (!(kinds & PEG_BLOCKS(peg_block_kind_of(block))))
            continue;
        status = peg_turn_put(into, block, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

/* Fills a copy, so that a failure half way leaves the turn as it was. */
static peg_status fetch(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into, peg_error *reterr)
{
    peg_memory_storage *storage = user;
    struct peg__blocks *blocks = NULL;
    const struct kept *kept;
    peg_turn *copy = NULL;
    peg_status status;

    pthread_mutex_lock(&storage->lock);
    kept = find_kept(storage, ctx);
    if (kept)
        blocks = peg__blocks_ref(kept->blocks);
    pthread_mutex_unlock(&storage->lock);

    status = peg_turn_copy(into, &copy, reterr);
    if (!status)
        status = add_all(blocks, kinds, copy, reterr);
    if (!status)
        peg__turn_swap_in(into, copy);
    peg_turn_free(copy);
    peg__blocks_unref(blocks);
    return status;
}

/* ---- bytes ---------------------------------------------------------------------- */

/* "retrieved/" and an id. */
struct file_name {
    char text[16 + PEG_LIMIT_BLOCK_ID_BYTES];
    size_t len;
};

static bool make_file_name(const char *what, peg_str id, struct file_name *ret_name)
{
    if (strcmp(what, "media") != 0 && strcmp(what, "retrieved") != 0)
        return false;
    if (!id.len || id.len > PEG_LIMIT_BLOCK_ID_BYTES)
        return false;
    ret_name->len = (size_t)snprintf(ret_name->text, sizeof(ret_name->text), "%s/", what);
    memcpy(ret_name->text + ret_name->len, id.ptr, id.len);
    ret_name->len += id.len;
    return true;
}

static uint64_t length_of(peg_reader *reader)
{
    return reader ? (uint64_t)peg_reader_byte_length(reader) : 0;
}

/* With the lock held. Takes a reference to the reader; *ret_old gets that of the one before. */
static peg_status put_file(peg_memory_storage *storage, const peg_ctx *ctx, peg_str name,
                           peg_reader *reader, peg_reader **ret_old, peg_error *reterr)
{
    peg_status status = PEG_OK;
    struct kept *kept = make_kept(storage, ctx, &status, reterr);
    peg_reader *before;
    uint64_t n_bytes;
    void *old;

    if (!kept)
        return status;
    before = peg__map_get(&kept->files, name);
    n_bytes = storage->n_bytes - length_of(before) + length_of(reader);
    if (n_bytes > PEG_LIMIT_STORAGE_BYTES)
        return fail_storage_full(reterr, PEG_LIMIT_STORAGE_BYTES, "bytes");
    status = peg__map_put(&kept->files, name, reader, &old);
    if (status == PEG_ELIMIT)
        return fail_storage_full(reterr, PEG_LIMIT_STORAGE_FILES, "files of a run");
    if (status)
        return peg__fail_nomem(reterr);
    peg_reader_ref(reader);
    storage->n_bytes = n_bytes;
    *ret_old = old;
    return PEG_OK;
}

// NOLINTNEXTLINE(readability-function-size): its parameters are those of peg_storage
static peg_status keep_bytes(void *user, peg_ctx *ctx, const char *what, peg_str id, peg_str bytes,
                             peg_reader **ret_reader, peg_error *reterr)
{
    peg_memory_storage *storage = user;
    peg_reader *reader = NULL;
    peg_reader *old = NULL;
    struct file_name name;
    peg_status status;

    if (!make_file_name(what, id, &name))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "bytes are kept as \"media\" or \"retrieved\" and by an id of 1 to %d "
                         "bytes",
                         PEG_LIMIT_BLOCK_ID_BYTES);
    if (bytes.len > PEG_LIMIT_STORAGE_BYTES)
        return fail_storage_full(reterr, PEG_LIMIT_STORAGE_BYTES, "bytes");
    status = peg_reader_from_bytes(bytes, &reader, reterr);
    if (status)
        return status;

    pthread_mutex_lock(&storage->lock);
    status = put_file(storage, ctx, peg__strn(name.text, name.len), reader, &old, reterr);
    pthread_mutex_unlock(&storage->lock);

    peg_reader_unref(old);
    if (status) {
        peg_reader_unref(reader);
        return status;
    }
    *ret_reader = reader;
    return PEG_OK;
}

peg_reader *peg_memory_storage_bytes(peg_memory_storage *storage, peg_ctx *ctx, const char *what,
                                     peg_str id)
{
    const struct kept *kept;
    peg_reader *reader = NULL;
    struct file_name name;

    if (!make_file_name(what, id, &name))
        return NULL;
    pthread_mutex_lock(&storage->lock);
    kept = find_kept(storage, ctx);
    if (kept)
        reader = peg__map_get(&kept->files, peg__strn(name.text, name.len));
    if (reader)
        peg_reader_ref(reader);
    pthread_mutex_unlock(&storage->lock);
    return reader;
}

peg_storage peg_memory_storage_ops(peg_memory_storage *storage)
{
    return (peg_storage){
        .store = keep,
        .mutate = keep,
        .remove = drop,
        .fetch = fetch,
        .store_bytes = keep_bytes,
        .user = storage,
    };
}
