/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compiled schemas by digest. A map finds an entry, a ring orders entries by last use. The
 * lock is not held while compiling: two threads may compile the same schema at once, and the
 * second one's is dropped.
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/schema.h"
#include "json/json.h"

enum { MAX_ENTRIES = 1000000, KEY_BYTES = PEG_SHA256_HEX };

struct entry {
    struct entry *newer; /* towards the most recently used; the ring closes over the cache's own */
    struct entry *older;
    peg_schema *schema; /* one reference */
    size_t bytes;
    char key[KEY_BYTES];
};

struct peg_schema_cache {
    pthread_mutex_t lock;
    struct peg__map by_key;
    struct entry ring; /* newer is the oldest entry, older the newest */
    size_t bytes;
    size_t max_bytes;
};

peg_status peg_schema_cache_new(size_t max_bytes, peg_schema_cache **ret_cache, peg_error *reterr)
{
    peg_schema_cache *cache = peg__alloc_zero(1, sizeof(*cache));

    if (!cache)
        return peg__fail_nomem(reterr);
    pthread_mutex_init(&cache->lock, NULL);
    cache->by_key.max = MAX_ENTRIES;
    cache->ring.newer = cache->ring.older = &cache->ring;
    cache->max_bytes = max_bytes;
    *ret_cache = cache;
    return PEG_OK;
}

/* ---- the ring, under the lock --------------------------------------------------------- */

static void unlink_entry(struct entry *entry)
{
    entry->newer->older = entry->older;
    entry->older->newer = entry->newer;
}

static void link_newest(peg_schema_cache *cache, struct entry *entry)
{
    entry->newer = &cache->ring;
    entry->older = cache->ring.older;
    entry->older->newer = entry;
    cache->ring.older = entry;
}

static void drop_entry(peg_schema_cache *cache, struct entry *entry)
{
    peg__map_remove(&cache->by_key, peg__str(entry->key), NULL);
    unlink_entry(entry);
    cache->bytes -= entry->bytes;
    peg_schema_unref(entry->schema);
    peg__free(entry);
}

peg_schema_cache *peg_schema_cache_free(peg_schema_cache *cache)
{
    if (cache) {
        while (cache->ring.newer != &cache->ring)
            drop_entry(cache, cache->ring.newer);
        peg__map_free(&cache->by_key);
        pthread_mutex_destroy(&cache->lock);
    }
    peg__free(cache);
    return NULL;
}

/* ---- keys ------------------------------------------------------------------------------- */

static peg_status make_key(const peg_json *schema, const peg_schema_options *o, char key[KEY_BYTES],
                           peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(SIZE_MAX / 2);
    unsigned char digest[PEG_SHA256_BYTES];
    peg_status status;

    /* Member order is part of the key: it decides the order in which defaults are filled in
     * and which of several failures is reported first. */
    peg__json_write(schema, PEG_JSON_COMPACT, &text);
    peg__buf_printf(&text, "\n%d %d %d %zu %u %u %u %s", (int)o->dialect, (int)o->format,
                    (int)o->check_defaults, o->max_bytes, o->max_depth, o->max_subschemas,
                    o->max_pattern_bytes, o->base_uri ? o->base_uri : "");
    status = text.status;
    if (status == PEG_OK && !peg__sha256(peg__buf_view(&text), digest))
        status = PEG_ENOMEM;
    peg__buf_free(&text);
    if (status)
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), key);
    return PEG_OK;
}

static peg_schema *find_schema(peg_schema_cache *cache, const char *key)
{
    struct entry *entry;
    peg_schema *schema = NULL;

    pthread_mutex_lock(&cache->lock);
    entry = peg__map_get(&cache->by_key, peg__str(key));
    if (entry) {
        unlink_entry(entry);
        link_newest(cache, entry);
        schema = peg_schema_ref(entry->schema);
    }
    pthread_mutex_unlock(&cache->lock);
    return schema;
}

/* Keeps a schema if it fits; the caller keeps its own reference. */
static void keep_schema(peg_schema_cache *cache, const char *key, peg_schema *schema)
{
    struct entry *entry = peg__alloc_zero(1, sizeof(*entry));

    if (!entry)
        return;
    entry->bytes = peg_schema_bytes(schema) + sizeof(*entry);
    memcpy(entry->key, key, KEY_BYTES);
    pthread_mutex_lock(&cache->lock);
    if (entry->bytes > cache->max_bytes || peg__map_add(&cache->by_key, peg__str(key), entry)) {
        peg__free(entry);
    } else {
        entry->schema = peg_schema_ref(schema);
        link_newest(cache, entry);
        cache->bytes += entry->bytes;
        while (cache->bytes > cache->max_bytes)
            drop_entry(cache, cache->ring.newer);
    }
    pthread_mutex_unlock(&cache->lock);
}

peg_status peg_schema_cache_compile(peg_schema_cache *cache, peg_str text,
                                    const peg_schema_options *options, peg_schema **ret_schema,
                                    peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_SCHEMA_OPTIONS_INIT, reterr);
    const peg_schema_options none = {PEG_SCHEMA_OPTIONS_INIT};
    const peg_schema_options *o = options ? options : &none;
    char key[KEY_BYTES];
    peg_json_doc *json;
    peg_schema *known;
    peg_status status;

    if (o->docs || text.len > (o->max_bytes ? o->max_bytes : PEG_LIMIT_SCHEMA_BYTES))
        return peg_schema_compile(text, options, ret_schema, reterr);
    status = peg_json_parse(text, NULL, &json, reterr);
    if (status == PEG_ELIMIT) /* the limits of a schema are others, with other names */
        return peg_schema_compile(text, options, ret_schema, reterr);
    if (status)
        return status;
    status = make_key(peg_json_root(json), o, key, reterr);
    peg_json_doc_free(json);
    if (status)
        return status;

    known = find_schema(cache, key);
    if (known) {
        *ret_schema = known;
        return PEG_OK;
    }
    status = peg_schema_compile(text, options, ret_schema, reterr);
    if (status == PEG_OK)
        keep_schema(cache, key, *ret_schema);
    return status;
}
