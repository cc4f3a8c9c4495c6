/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What peg_client_get() remembers. An entry is fresh for the client's TTL, and fetched again in the
 * background in the last fifth of it; one that is older is kept for the day on which its registry
 * does not answer. When there are too many, the one that was fetched longest ago goes.
 */

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

struct remote__cached {
    struct remote__toolset *toolset; /* a reference */
    int64_t fetched_ns;
    int64_t tried_ns; /* the last fetch in the background; 0: none */
    bool is_fetching;
    bool is_first; /* the registries before it had none of this name, at first_ns */
    int64_t first_ns;
    uint64_t confirmed; /* n_confirmed when it was last put, or said to be there */
};

enum { KEY_BYTES = 512 };

/* Two registries may have toolsets of one name. */
static peg_str cache_key(const struct remote__registry *registry, peg_str name,
                         char text[KEY_BYTES])
{
    const size_t number = (size_t)(registry - registry->client->registries);
    const int n = snprintf(text, KEY_BYTES, "%zu/%.*s", number, PEG_ARG(name));

    return peg__strn(text, (size_t)n < KEY_BYTES ? (size_t)n : KEY_BYTES - 1);
}

/* With the lock. Nothing hangs on who chooses names that collide here. */
static uint32_t *counter_of(struct remote__cache *cache, peg_str key)
{
    static const struct peg__hash_key open;

    return &cache->n_changes[peg__hash(open, key) % REMOTE_COUNTERS];
}

static pthread_mutex_t *take_lock(peg_client *client)
{
    pthread_mutex_lock(&client->lock);
    return &client->lock;
}

static void drop_lock(pthread_mutex_t *const *lock)
{
    pthread_mutex_unlock(*lock);
}

/* Until the end of the block. */
#define WITH_LOCK(client)                                                                          \
    PEG_CLEANUP(drop_lock) pthread_mutex_t *const lock __attribute__((unused)) = take_lock(client)

static struct remote__cached *free_cached(struct remote__cached *cached)
{
    if (cached)
        peg_toolset_unref(&cached->toolset->toolset);
    peg__free(cached);
    return NULL;
}

static bool may_fetch(const struct remote__cached *cached, int64_t now_ns)
{
    const int64_t cooldown_ns = PEG_LIMIT_REMOTE_REFRESH_COOLDOWN_MS * PEG_NS_PER_MS;

    return !cached->is_fetching && (!cached->tried_ns || now_ns - cached->tried_ns >= cooldown_ns);
}

static enum remote__age age_of(const peg_client *client, struct remote__cached *cached)
{
    const int64_t now_ns = peg_clock_mono_ns(client->clock);
    const int64_t age_ns = now_ns - cached->fetched_ns;
    const int64_t ttl_ns = peg__clock_after_ms(0, client->cache_ttl_ms);

    if (age_ns >= ttl_ns)
        return REMOTE_EXPIRED;
    if (age_ns < ttl_ns / 5 * 4 || !may_fetch(cached, now_ns))
        return REMOTE_FRESH;
    cached->is_fetching = true;
    cached->tried_ns = now_ns;
    return REMOTE_AGEING;
}

struct remote__toolset *remote__cache_get(struct remote__registry *registry, peg_str name,
                                          enum remote__age *ret_age)
{
    char text[KEY_BYTES];
    const peg_str key = cache_key(registry, name, text);
    WITH_LOCK(registry->client);
    struct remote__cached *cached = peg__map_get(&registry->client->cache.map, key);

    if (!cached)
        return NULL;
    peg_toolset_ref(&cached->toolset->toolset);
    *ret_age = age_of(registry->client, cached);
    return cached->toolset;
}

/* With the lock. */
static void evict_oldest(struct remote__cache *cache)
{
    struct peg__map_entry *oldest = NULL;
    void *removed;

    if (cache->map.n < PEG_LIMIT_REMOTE_CACHED)
        return;
    PEG__MAP_EACH(&cache->map, entry)
    {
        const struct remote__cached *cached = entry->value;

        if (!oldest ||
            cached->fetched_ns < ((const struct remote__cached *)oldest->value)->fetched_ns)
            oldest = entry;
    }
    if (oldest && peg__map_remove(&cache->map, oldest->name, &removed))
        free_cached(removed);
}

uint32_t remote__cache_note(struct remote__registry *registry, peg_str name)
{
    char text[KEY_BYTES];
    const peg_str key = cache_key(registry, name, text);
    WITH_LOCK(registry->client);

    return *counter_of(&registry->client->cache, key);
}

/* With the lock. */
static struct remote__cached *find_cached(const struct remote__registry *registry, peg_str name)
{
    char text[KEY_BYTES];

    return peg__map_get(&registry->client->cache.map, cache_key(registry, name, text));
}

/* With the lock. What registries behind this one have of the name is not the first any more. */
static void outrank(const struct remote__registry *registry, peg_str name)
{
    peg_client *client = registry->client;
    const struct remote__registry *end = client->registries + client->n_registries;

    for (const struct remote__registry *other = registry + 1; other < end; other++) {
        struct remote__cached *cached = find_cached(other, name);

        if (cached)
            cached->is_first = false;
    }
}

void remote__cache_set_first(struct remote__registry *registry, peg_str name)
{
    WITH_LOCK(registry->client);
    struct remote__cached *cached = find_cached(registry, name);

    if (!cached)
        return;
    cached->is_first = true;
    cached->first_ns = peg_clock_mono_ns(registry->client->clock);
}

bool remote__cache_is_first(struct remote__registry *registry, peg_str name)
{
    const peg_client *client = registry->client;
    const int64_t ttl_ns = peg__clock_after_ms(0, client->cache_ttl_ms);
    WITH_LOCK(registry->client);
    const struct remote__cached *cached = find_cached(registry, name);

    return cached && cached->is_first &&
           peg_clock_mono_ns(client->clock) - cached->first_ns < ttl_ns;
}

/* With the lock. */
static void put_cached(struct remote__cache *cache, peg_str key, struct remote__cached *cached,
                       void **ret_old)
{
    const struct remote__cached *old = peg__map_get(&cache->map, key);

    cached->confirmed = ++cache->n_confirmed;
    if (old) {
        cached->is_first = old->is_first;
        cached->first_ns = old->first_ns;
    } else {
        evict_oldest(cache);
    }
    if (peg__map_put(&cache->map, key, cached, ret_old))
        *ret_old = cached;
}

void remote__cache_put(struct remote__registry *registry, peg_str name,
                       struct remote__toolset *toolset, uint32_t n_changes)
{
    peg_client *client = registry->client;
    struct remote__cached *cached = peg__alloc_zero(1, sizeof(*cached));
    char text[KEY_BYTES];
    const peg_str key = cache_key(registry, name, text);
    void *old = NULL;

    if (!cached)
        return;
    peg_toolset_ref(&toolset->toolset);
    cached->toolset = toolset;
    cached->fetched_ns = peg_clock_mono_ns(client->clock);
    pthread_mutex_lock(&client->lock);
    if (*counter_of(&client->cache, key) == n_changes)
        put_cached(&client->cache, key, cached, &old);
    else
        old = cached;
    outrank(registry, name);
    pthread_mutex_unlock(&client->lock);
    free_cached(old);
}

void remote__cache_drop(struct remote__registry *registry, peg_str name)
{
    peg_client *client = registry->client;
    char text[KEY_BYTES];
    const peg_str key = cache_key(registry, name, text);
    void *old = NULL;

    pthread_mutex_lock(&client->lock);
    ++*counter_of(&client->cache, key);
    peg__map_remove(&client->cache.map, key, &old);
    pthread_mutex_unlock(&client->lock);
    free_cached(old);
}

void remote__cache_check(struct remote__registry *registry, peg_str name, uint64_t revision)
{
    peg_client *client = registry->client;
    struct remote__cached *cached;
    char text[KEY_BYTES];
    const peg_str key = cache_key(registry, name, text);
    void *old = NULL;

    pthread_mutex_lock(&client->lock);
    cached = peg__map_get(&client->cache.map, key);
    if (!cached || cached->toolset->toolset.info.revision != revision) {
        ++*counter_of(&client->cache, key);
        peg__map_remove(&client->cache.map, key, &old);
    } else {
        cached->confirmed = ++client->cache.n_confirmed;
    }
    outrank(registry, name);
    pthread_mutex_unlock(&client->lock);
    free_cached(old);
}

uint64_t remote__cache_begin_all(struct remote__registry *registry)
{
    WITH_LOCK(registry->client);

    return registry->client->cache.n_confirmed;
}

void remote__cache_end_all(struct remote__registry *registry, uint64_t since)
{
    peg_client *client = registry->client;
    struct remote__cache *cache = &client->cache;
    char text[KEY_BYTES];
    const peg_str prefix = cache_key(registry, peg__str(""), text);

    pthread_mutex_lock(&client->lock);
    PEG__MAP_EACH(&cache->map, entry)
    {
        struct remote__cached *cached = entry->value;

        if (cached->confirmed > since || !peg__str_starts(entry->name, prefix))
            continue;
        ++*counter_of(cache, entry->name);
        peg__map_remove(&cache->map, entry->name, NULL);
        free_cached(cached);
    }
    pthread_mutex_unlock(&client->lock);
}

void remote__cache_cool(struct remote__registry *registry, peg_str name)
{
    WITH_LOCK(registry->client);
    struct remote__cached *cached = find_cached(registry, name);

    if (cached)
        cached->is_fetching = false;
}

void remote__cache_clear(peg_client *client)
{
    struct peg__map map;

    pthread_mutex_lock(&client->lock);
    map = client->cache.map;
    client->cache.map = (struct peg__map)PEG__MAP(PEG_LIMIT_REMOTE_CACHED);
    for (size_t i = 0; i < REMOTE_COUNTERS; i++)
        client->cache.n_changes[i]++;
    pthread_mutex_unlock(&client->lock);
    PEG__MAP_EACH(&map, entry)
    {
        free_cached(entry->value);
    }
    peg__map_free(&map);
}
