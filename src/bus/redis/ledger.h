/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_LEDGER_H
#define PEG_BUS_REDIS_LEDGER_H

/*
 * What the registers that this node writes may take of Redis, with shares by account, as bus.h says
 * it of every bus. A node knows its own writes only, so each has these quotas for itself. Counted
 * are registers of calls with an identity, until their time is over; those without one are removed
 * with their calls, whose number is bounded elsewhere. Any thread.
 */

#include "bus/bus.h"

struct redis_ledger;

peg_status redis_ledger_new(struct redis_ledger **ret_ledger) PEG_MUST_USE;
struct redis_ledger *redis_ledger_free(struct redis_ledger *ledger);

/* What one register takes; all zero: it is not counted. */
struct redis_cost {
    uint16_t account;
    size_t bytes;
    size_t large_bytes;
    bool is_counted;
};

/* Before it is written. PEG_ELIMIT: the quota or the account's share is used up. */
peg_status redis_ledger_take(struct redis_ledger *ledger, const struct bus_key *key, size_t len,
                             struct redis_cost *ret_cost) PEG_MUST_USE;
/* It was not written. */
void redis_ledger_give_back(struct redis_ledger *ledger, const struct redis_cost *cost);
/* It was, or may have been, and is there until then. */
void redis_ledger_keep(struct redis_ledger *ledger, const struct redis_cost *cost,
                       int64_t keep_until_ms);
/* Gives back what has ended. */
void redis_ledger_sweep(struct redis_ledger *ledger, int64_t now_ms);
/* Registers that are counted now. */
size_t redis_ledger_len(const struct redis_ledger *ledger);

#endif
