/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_ROOM_H
#define PEG_BUS_ROOM_H

/*
 * What the registers of a node take, and for whom: the bounds that bus.h names, and the share that
 * one account may have of each. Any thread; adding up costs some nanoseconds, and nothing is locked
 * or allocated.
 */

#include <stdatomic.h>

#include "base/limits.h"
#include "bus/bus.h"

/* Calls with an identity and calls without have room of their own. */
enum bus_pool { BUS_UNNAMED, BUS_NAMED, BUS_N_POOLS };

/* Of one register, or of several. */
struct bus_cost {
    size_t n;
    size_t bytes; /* of registers and small values */
    size_t large_bytes;
};

struct bus_taken {
    atomic_size_t n;
    atomic_size_t bytes;
    atomic_size_t large_bytes;
};

struct bus_room {
    struct bus_taken pools[BUS_N_POOLS];
    struct bus_taken accounts[BUS_N_POOLS][PEG_LIMIT_QUOTA_KEYS]; /* the first is not used */
};

/* What is to be written. */
struct bus_want {
    enum bus_pool pool;
    uint16_t account;
    bool admits;      /* a call begins with it */
    bool is_measured; /* its bytes are held against the share */
    struct bus_cost cost;
};

enum bus_pool bus_pool_of(const struct bus_id *id);

/* PEG_ELIMIT: nothing was taken. */
peg_status bus_room_take(struct bus_room *room, const struct bus_want *want) PEG_MUST_USE;
void bus_room_give_back(struct bus_room *room, enum bus_pool pool, uint16_t account,
                        struct bus_cost cost);

#endif
