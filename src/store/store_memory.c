/* SPDX-License-Identifier: Apache-2.0 */

/* Records in memory, in one array by name. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "store/internal.h"

/* Owned; its strings are in `bytes`. */
struct kept {
    peg_store_record record;
    char bytes[];
};

/* Owned. */
struct memory_store {
    struct kept **records; /* by name */
    size_t n;
    size_t capacity;
};

static struct kept *copy_record(const peg_store_record *record)
{
    const size_t name_len = record->name.len;
    const size_t body_len = record->is_removed ? 0 : record->body.len;
    struct kept *kept = peg__alloc(sizeof(*kept) + name_len + body_len);

    if (!kept)
        return NULL;
    memcpy(kept->bytes, record->name.ptr, name_len);
    if (body_len)
        memcpy(kept->bytes + name_len, record->body.ptr, body_len);
    kept->record = *record;
    kept->record.name = peg__strn(kept->bytes, name_len);
    kept->record.body = peg__strn(kept->bytes + name_len, body_len);
    return kept;
}

/* Where the name stands or would stand. */
static size_t find_place(const struct memory_store *store, peg_str name, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = store->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (peg__str_compare(store->records[middle]->record.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_is_there = low < store->n && peg__str_eq(store->records[low]->record.name, name);
    return low;
}

static peg_status grow_store(struct memory_store *store, peg_error *reterr)
{
    if (store->n >= PEG_LIMIT_GATEWAY_STORE_RECORDS)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_STORE",
            "the store in memory is full with %d records: use another store, or remove some",
            PEG_LIMIT_GATEWAY_STORE_RECORDS);
    if (!PEG__RESERVE(store->records, store->n + 1, store->capacity))
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

static peg_status insert(struct memory_store *store, size_t at, const peg_store_record *record,
                         peg_error *reterr)
{
    peg_status status = grow_store(store, reterr);
    struct kept *kept;

    if (status)
        return status;
    kept = copy_record(record);
    if (!kept)
        return peg__fail_nomem(reterr);
    memmove(store->records + at + 1, store->records + at,
            (store->n - at) * sizeof(*store->records));
    store->records[at] = kept;
    store->n++;
    return PEG_OK;
}

static peg_status replace_record(struct memory_store *store, size_t at,
                                 const peg_store_record *record, peg_error *reterr)
{
    struct kept *old = store->records[at];
    peg_status status = store_check_revision(record, old->record.revision, reterr);

    if (status)
        return status;
    store->records[at] = copy_record(record);
    if (!store->records[at]) {
        store->records[at] = old;
        return peg__fail_nomem(reterr);
    }
    peg__free(old);
    return PEG_OK;
}

static peg_status memory_put(void *self, const peg_store_record *record, peg_error *reterr)
{
    struct memory_store *store = self;
    peg_status status = store_check_record(record, reterr);
    bool is_there;
    size_t at;

    if (status)
        return status;
    at = find_place(store, record->name, &is_there);
    return is_there ? replace_record(store, at, record, reterr) : insert(store, at, record, reterr);
}

static peg_status memory_read(void *self, peg_store_each_fn each, void *user, peg_error *reterr)
{
    struct memory_store *store = self;
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < store->n; i++)
        status = each(&store->records[i]->record, user, reterr);
    return status;
}

static peg_status memory_forget(void *self, int64_t before_ms, peg_error *reterr)
{
    struct memory_store *store = self;
    size_t n = 0;

    (void)reterr;
    for (size_t i = 0; i < store->n; i++) {
        struct kept *kept = store->records[i];

        if (kept->record.is_removed && kept->record.at_ms < before_ms)
            peg__free(kept);
        else
            store->records[n++] = kept;
    }
    store->n = n;
    return PEG_OK;
}

static void memory_free(void *self)
{
    struct memory_store *store = self;

    if (!store)
        return;
    for (size_t i = 0; i < store->n; i++)
        peg__free(store->records[i]);
    peg__free(store->records);
    peg__free(store);
}

peg_status peg_memory_store_new(peg_store *ret_store, peg_error *reterr)
{
    struct memory_store *store = peg__alloc_zero(1, sizeof(*store));

    if (!store)
        return peg__fail_nomem(reterr);
    *ret_store = (peg_store){
        .kind = "memory",
        .put = memory_put,
        .read = memory_read,
        .forget = memory_forget,
        .free = memory_free,
        .self = store,
    };
    return PEG_OK;
}
