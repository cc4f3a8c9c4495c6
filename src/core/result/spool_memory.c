/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store in memory: a map from keys to readers. A reader's bytes never change, so replacing a key
 * is replacing a reader; whoever has the old one keeps it.
 */

#include <pthread.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/result/reader.h"
#include "core/result/spool.h"

/* Owned by its peg_spool_store. */
struct memory_store {
    pthread_mutex_t lock;
    struct peg__map readers; /* one reference each */
    size_t n_bytes;          /* of them all */
    size_t max_bytes;
};

static size_t len_of(peg_reader *reader)
{
    return reader ? (size_t)peg_reader_byte_length(reader) : 0;
}

/* Under the lock. *ret_old is the reader that was replaced, or NULL: the caller drops it. */
static peg_status put(struct memory_store *store, peg_str key, peg_reader *reader,
                      peg_reader **ret_old)
{
    const size_t without = store->n_bytes - len_of(peg__map_get(&store->readers, key));
    void *old = NULL;
    peg_status status;

    if (len_of(reader) > store->max_bytes || without > store->max_bytes - len_of(reader))
        return PEG_ELIMIT;
    status = peg__map_put(&store->readers, key, reader, &old);
    if (status)
        return status;
    store->n_bytes = without + len_of(reader);
    peg_reader_ref(reader);
    *ret_old = old;
    return PEG_OK;
}

static peg_status keep(void *user, peg_str key, peg_reader *reader, peg_error *reterr)
{
    struct memory_store *store = user;
    peg_reader *old = NULL;
    peg_status status;
    size_t n_keys;

    pthread_mutex_lock(&store->lock);
    status = put(store, key, reader, &old);
    n_keys = store->readers.n;
    pthread_mutex_unlock(&store->lock);
    peg_reader_unref(old);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status && n_keys == store->readers.max)
        return peg__fail(reterr, PEG_ELIMIT, "E_SPOOL_FULL",
                         "the spool store has %zu keys already (spool_keys); remove some", n_keys);
    if (status)
        return peg__fail(reterr, PEG_ELIMIT, "E_SPOOL_FULL",
                         "%zu bytes more do not fit into the spool store, which takes %zu "
                         "(max_bytes); remove keys or make a larger store",
                         len_of(reader), store->max_bytes);
    return PEG_OK;
}

static peg_status write_copy(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    peg_status status = peg_reader_from_bytes(bytes, &reader, reterr);

    if (status)
        return status;
    status = keep(user, key, reader, reterr);
    if (status)
        return status;
    *ret_reader = reader;
    reader = NULL;
    return PEG_OK;
}

static peg_status read_key(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr)
{
    struct memory_store *store = user;

    (void)reterr;
    pthread_mutex_lock(&store->lock);
    *ret_reader = peg_reader_ref(peg__map_get(&store->readers, key));
    pthread_mutex_unlock(&store->lock);
    return PEG_OK;
}

static peg_status remove_key(void *user, peg_str key, bool *ret_was_there, peg_error *reterr)
{
    struct memory_store *store = user;
    void *old = NULL;

    (void)reterr;
    pthread_mutex_lock(&store->lock);
    *ret_was_there = peg__map_remove(&store->readers, key, &old);
    store->n_bytes -= len_of(old);
    pthread_mutex_unlock(&store->lock);
    peg_reader_unref(old);
    return PEG_OK;
}

static void free_store(void *user)
{
    struct memory_store *store = user;

    PEG__MAP_EACH(&store->readers, entry)
    {
        peg_reader_unref(entry->value);
    }
    peg__map_free(&store->readers);
    pthread_mutex_destroy(&store->lock);
    peg__free(store);
}

peg_status peg__spool_memory_new(size_t max_bytes, size_t max_keys, peg_spool_store **ret_store,
                                 peg_error *reterr)
{
    const peg_spool_ops ops = {
        .write = write_copy, .read = read_key, .remove = remove_key, .free = free_store};
    struct memory_store *store = peg__alloc(sizeof(*store));
    peg_status status;

    if (!store)
        return peg__fail_nomem(reterr);
    *store = (struct memory_store){.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .readers = PEG__MAP(max_keys),
                                   .max_bytes = max_bytes ? max_bytes : PEG_LIMIT_SPOOL_BYTES};
    status = peg__spool_store_new(&ops, keep, store, ret_store, reterr);
    if (status)
        free_store(store);
    return status;
}

peg_status peg_spool_memory_new(size_t max_bytes, peg_spool_store **ret_store, peg_error *reterr)
{
    return peg__spool_memory_new(max_bytes, PEG_LIMIT_SPOOL_KEYS, ret_store, reterr);
}
