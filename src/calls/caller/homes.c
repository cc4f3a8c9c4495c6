/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/caller/homes.h"

#include <assert.h>
#include <pthread.h>

#include "base/mem.h"
#include "calls/table.h"

enum { N_SHARDS = 32 }; /* a power of two; more than loops that begin calls at the same moment */

struct shard {
    pthread_mutex_t lock;
    struct calls_table table;
};

struct calls_homes {
    struct shard shards[N_SHARDS];
};

struct calls_home {
    struct calls_entry entry; /* the first member */
    struct shard *shard;
    uint32_t loop;
    unsigned n_holds;
};

struct calls_homes *calls_homes_new(void)
{
    struct calls_homes *homes = (struct calls_homes *)peg__alloc_zero(1, sizeof(*homes));

    for (unsigned i = 0; homes && i < N_SHARDS; i++) {
        pthread_mutex_init(&homes->shards[i].lock, NULL);
        calls_table_init(&homes->shards[i].table);
    }
    return homes;
}

struct calls_homes *calls_homes_free(struct calls_homes *homes)
{
    for (unsigned i = 0; homes && i < N_SHARDS; i++) {
        assert(homes->shards[i].table.n == 0);
        calls_table_free(&homes->shards[i].table);
        pthread_mutex_destroy(&homes->shards[i].lock);
    }
    peg__free(homes);
    return NULL;
}

/* A caller may choose the ids that it asks for, and so the shard, but not the place in its table.
 */
static struct shard *shard_of(struct calls_homes *homes, const struct bus_id *id)
{
    return &homes->shards[id->bytes[0] & (N_SHARDS - 1)];
}

static struct calls_home *add_home(struct shard *shard, const struct bus_id *id, uint32_t loop)
{
    struct calls_home *home = (struct calls_home *)peg__alloc_zero(1, sizeof(*home));

    if (!home)
        return NULL;
    *home = (struct calls_home){.entry.id = *id, .shard = shard, .loop = loop};
    if (calls_table_add(&shard->table, &home->entry)) {
        peg__free(home);
        return NULL;
    }
    return home;
}

struct calls_home *calls_homes_hold(struct calls_homes *homes, const struct bus_id *id,
                                    uint32_t loop)
{
    struct shard *shard = shard_of(homes, id);
    struct calls_home *home;

    pthread_mutex_lock(&shard->lock);
    home = (struct calls_home *)calls_table_find(&shard->table, id, 0);
    if (!home)
        home = add_home(shard, id, loop);
    if (home)
        home->n_holds++;
    pthread_mutex_unlock(&shard->lock);
    return home;
}

uint32_t calls_home_loop(const struct calls_home *home)
{
    return home->loop;
}

struct calls_home *calls_home_release(struct calls_home *home)
{
    struct shard *shard = home ? home->shard : NULL;
    bool is_last;

    if (!home)
        return NULL;
    pthread_mutex_lock(&shard->lock);
    is_last = --home->n_holds == 0;
    if (is_last)
        calls_table_remove(&shard->table, &home->entry);
    pthread_mutex_unlock(&shard->lock);
    if (is_last)
        peg__free(home);
    return NULL;
}
