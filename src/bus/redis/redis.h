/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_REDIS_H
#define PEG_BUS_REDIS_REDIS_H

/*
 * The bus of a registry of several nodes, which meet on one Redis. What stays in the process
 * (registers that are node-local, messages between loops of one node, posts) does not touch Redis.
 *
 * A loop without a connection keeps its requests for PEG_LIMIT_REDIS_HOLD_MS; then, and whenever a
 * connection is lost, they are answered with PEG_EIO. After each new connection the owner gets
 * on_reset(). docs/modules/bus.md has the keys.
 */

#include <stdatomic.h>

#include "bus/bus.h"

enum { BUS_REDIS_SECRET_BYTES = 32 };

struct bus_redis_options {
    const char *url;       /* as bus/redis/url.h has it */
    const char *password;  /* if the URL has none; NULL: none */
    const char *name;      /* of the registry: nodes of one name on one Redis are one registry */
    uint64_t node;         /* new at each start */
    const char *ca_file;   /* rediss://: whom to trust; NULL: the system's roots */
    const char *cert_file; /* rediss://: what to show, with key_file; NULL: nothing */
    const char *key_file;
    const uint8_t *secret; /* BUS_REDIS_SECRET_BYTES, of an earlier run; NULL: a new one */
    int64_t check_ms;      /* how often loops look for lost ones; 0: PEG_LIMIT_REDIS_CHECK_MS */
    int64_t timeout_ms;    /* for a reply; 0: PEG_LIMIT_REDIS_TIMEOUT_MS */
};

/* What the loops of a node share. Any thread; it outlives its buses. Copies the options.
 * PEG_EPARSE (E_REDIS_URL), PEG_EINVAL (E_BUS_NAME), E_TLS_CONFIG. */
struct bus_redis_hub;
peg_status bus_redis_hub_new(const struct bus_redis_options *options,
                             struct bus_redis_hub **ret_hub, peg_error *reterr);
struct bus_redis_hub *bus_redis_hub_free(struct bus_redis_hub *hub);
/* Reads certificates again, for new connections. E_TLS_CONFIG: the old ones stay. Any thread. */
peg_status bus_redis_hub_reload(struct bus_redis_hub *hub, peg_error *reterr);

/* For the start of a program: connects once, in this thread, and says why Redis cannot be used
 * (E_REDIS_...). When it returns PEG_OK the secret is the registry's. */
peg_status bus_redis_hub_check(struct bus_redis_hub *hub, peg_error *reterr);

/* Round trips: bucket i has those of at most BUS_REDIS_BUCKET_NS << i, the last one the rest. */
enum { BUS_REDIS_BUCKETS = 16, BUS_REDIS_BUCKET_NS = 32000 };

/* Of all loops of the node, since it was made. */
struct bus_redis_stats {
    uint64_t n_pipelines; /* writes, each with the commands of a round */
    uint64_t n_commands;
    uint64_t n_connects; /* that became ready */
    uint64_t n_epochs;   /* changes of the epoch that a loop saw */
    uint64_t n_sent_bytes;
    uint64_t n_received_bytes;
    uint64_t fenced_ns; /* in which a loop could not act, as its lease was not renewed in time */
    /* Of rounds that read the epoch: all with registers, and one a second. */
    int64_t round_trip_ns; /* the last one; 0: there was none */
    uint64_t round_trips_ns;
    uint64_t round_trips[BUS_REDIS_BUCKETS];
};
void bus_redis_hub_stats(struct bus_redis_hub *hub, struct bus_redis_stats *ret_stats);

/* The bus of one loop, which begins to connect. On that loop, or while it does not run; so is
 * bus_free(), which comes before net_loop_free(). PEG_EINVAL, PEG_EEXISTS (E_BUS_NUMBER). */
peg_status bus_redis_new(struct bus_redis_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr);
/* It is connected and knows the epoch. On its loop. */
bool bus_redis_is_connected(const struct bus *bus);
/* All nodes of a registry have the same one, which Redis keeps: the first that is written holds.
 * Before bus_redis_hub_check() it is this node's own; another one comes with on_reset(). On its
 * loop. */
void bus_redis_secret(const struct bus *bus, uint8_t ret_secret[BUS_REDIS_SECRET_BYTES]);

#endif
