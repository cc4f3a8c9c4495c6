/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store is a table of functions. What holds for every store is here: keys that are none are
 * refused, and a host's function that breaks its contract becomes an error.
 */

#include "core/result/result.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"

struct peg_spool_store {
    atomic_uint n_refs;
    peg_spool_ops ops;
    peg__spool_keep_fn keep; /* NULL: bytes can only be copied */
    void *user;
};

peg_status peg__spool_store_new(const peg_spool_ops *ops, peg__spool_keep_fn keep, void *user,
                                peg_spool_store **ret_store, peg_error *reterr)
{
    peg_spool_store *store = peg__alloc(sizeof(*store));

    if (!store)
        return peg__fail_nomem(reterr);
    *store = (peg_spool_store){.n_refs = 1, .ops = *ops, .keep = keep, .user = user};
    *ret_store = store;
    return PEG_OK;
}

peg_status peg_spool_store_new(const peg_spool_ops *ops, void *user, peg_spool_store **ret_store,
                               peg_error *reterr)
{
    static const peg_spool_ops none;
    const peg_spool_ops *given = ops ? ops : &none;

    if (!given->write || !given->read || !given->remove)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a spool store needs write, read and remove; missing:%s%s%s",
                         given->write ? "" : " write", given->read ? "" : " read",
                         given->remove ? "" : " remove");
    return peg__spool_store_new(given, NULL, user, ret_store, reterr);
}

PEG__DEFINE_REF(peg_spool_store)

peg_spool_store *peg_spool_store_unref(peg_spool_store *store)
{
    if (!store || !peg__refs_drop(&store->n_refs))
        return NULL;
    if (store->ops.free)
        store->ops.free(store->user);
    peg__free(store);
    return NULL;
}

static peg_status check_key(peg_str key, peg_error *reterr)
{
    if (key.len == 0 || key.len > PEG_LIMIT_SPOOL_KEY_BYTES)
        return peg__fail(
            reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
            "a key of a spool store must have 1 to %d bytes (spool_key_bytes), not %zu",
            PEG_LIMIT_SPOOL_KEY_BYTES, key.len);
    return PEG_OK;
}

/* A host may fail without an error. */
static peg_status fail_with(peg_status status, peg_error *why, const char *what, peg_error *reterr)
{
    if (!why->code)
        peg__fail(why, status, "E_CALLBACK", "the spool store failed to %s and did not say why",
                  what);
    if (reterr)
        *reterr = *why;
    return status;
}

peg_status peg_spool_write(peg_spool_store *store, peg_str key, peg_str bytes,
                           peg_reader **ret_reader, peg_error *reterr)
{
    peg_error why = {0};
    peg_reader *reader = NULL;
    peg_status status = check_key(key, reterr);

    if (status)
        return status;
    status = store->ops.write(store->user, key, bytes, &reader, &why);
    if (status)
        return fail_with(status, &why, "write", reterr);
    if (!reader)
        return peg__fail(reterr, PEG_EHOST, "E_CALLBACK",
                         "the spool store's write succeeded without a reader: it is broken");
    *ret_reader = reader;
    return PEG_OK;
}

peg_status peg_spool_read(peg_spool_store *store, peg_str key, peg_reader **ret_reader,
                          peg_error *reterr)
{
    peg_error why = {0};
    peg_reader *reader = NULL;
    peg_status status = check_key(key, reterr);

    if (status)
        return status;
    status = store->ops.read(store->user, key, &reader, &why);
    if (status)
        return fail_with(status, &why, "read", reterr);
    *ret_reader = reader;
    return PEG_OK;
}

peg_status peg_spool_remove(peg_spool_store *store, peg_str key, bool *ret_was_there,
                            peg_error *reterr)
{
    peg_error why = {0};
    bool was_there = false;
    peg_status status = check_key(key, reterr);

    if (status)
        return status;
    status = store->ops.remove(store->user, key, &was_there, &why);
    if (status)
        return fail_with(status, &why, "remove", reterr);
    if (ret_was_there)
        *ret_was_there = was_there;
    return PEG_OK;
}

/* ---- bytes that are given away ----------------------------------------------------------- */

/* A buffer grows by doubling: what it did not need is given back where it is worth the call. */
static void trim(struct peg__buf *buf)
{
    enum { WORTH_THE_CALL = 64 << 10 };
    char *trimmed;

    if (buf->capacity - buf->len < WORTH_THE_CALL)
        return;
    trimmed = peg__realloc(buf->ptr, buf->len + 1);
    if (trimmed)
        buf->ptr = trimmed;
}

/* The bytes move from the buffer to the reader. */
static peg_status reader_of(struct peg__buf *take, peg_reader **ret_reader, peg_error *reterr)
{
    static const peg_str nothing = {"", 0};
    peg_status status;

    if (!take->ptr)
        return peg_reader_from_bytes(nothing, ret_reader, reterr);
    trim(take);
    status = peg__reader_from_owned(take->ptr, take->len, ret_reader, reterr);
    if (status == PEG_OK)
        *take = (struct peg__buf){.max = take->max};
    return status;
}

static peg_status write_kept(peg_spool_store *store, peg_str key, struct peg__buf *take,
                             peg_reader **ret_reader, peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    peg_status status = check_key(key, reterr);

    if (status)
        return status;
    status = reader_of(take, &reader, reterr);
    if (status)
        return status;
    status = store->keep(store->user, key, reader, reterr);
    if (status)
        return status;
    *ret_reader = reader;
    reader = NULL;
    return PEG_OK;
}

peg_status peg__spool_write_owned(peg_spool_store *store, peg_str key, struct peg__buf *take,
                                  peg_reader **ret_reader, peg_error *reterr)
{
    peg_status status;

    if (!store)
        status = reader_of(take, ret_reader, reterr);
    else if (store->keep)
        status = write_kept(store, key, take, ret_reader, reterr);
    else
        status = peg_spool_write(store, key, peg__buf_view(take), ret_reader, reterr);
    peg__buf_free(take);
    return status;
}

/* ---- in memory --------------------------------------------------------------------------- */

/*
 * A store in memory: a map from keys to readers. A reader's bytes never change, so replacing a key
 * is replacing a reader; references to the old one stay valid.
 */

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
static peg_status put_reader(struct memory_store *store, peg_str key, peg_reader *reader,
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

static peg_status keep_reader(void *user, peg_str key, peg_reader *reader, peg_error *reterr)
{
    struct memory_store *store = user;
    peg_reader *old = NULL;
    peg_status status;
    size_t n_keys;

    pthread_mutex_lock(&store->lock);
    status = put_reader(store, key, reader, &old);
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
    status = keep_reader(user, key, reader, reterr);
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
    status = peg__spool_store_new(&ops, keep_reader, store, ret_store, reterr);
    if (status)
        free_store(store);
    return status;
}

peg_status peg_spool_memory_new(size_t max_bytes, peg_spool_store **ret_store, peg_error *reterr)
{
    return peg__spool_memory_new(max_bytes, PEG_LIMIT_SPOOL_KEYS, ret_store, reterr);
}
