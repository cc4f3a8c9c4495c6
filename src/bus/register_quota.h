/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REGISTER_QUOTA_H
#define PEG_BUS_REGISTER_QUOTA_H

/*
 * What the registers of a node take, and for whom: the bounds that bus.h names, as quotas. Any
 * thread.
 */

#include "base/quota.h"
#include "bus/bus.h"

/* Calls with an identity and calls without have quotas of their own. */
enum bus_pool { BUS_UNNAMED, BUS_NAMED, BUS_N_POOLS };

/* Of one register, or of several. */
struct bus_cost {
    size_t n;
    size_t bytes; /* of registers and small values */
    size_t large_bytes;
};

struct bus_register_quota {
    struct peg__quota n;
    struct peg__quota bytes;
    struct peg__quota large_bytes;
};

struct bus_register_quotas {
    struct bus_register_quota pools[BUS_N_POOLS];
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

/* PEG_ENOMEM; destroy() is right after it. */
peg_status bus_register_quotas_init(struct bus_register_quotas *quotas) PEG_MUST_USE;
void bus_register_quotas_destroy(struct bus_register_quotas *quotas);
/* PEG_ELIMIT: nothing was taken. */
peg_status bus_register_quotas_take(struct bus_register_quotas *quotas,
                                    const struct bus_want *want) PEG_MUST_USE;
void bus_register_quotas_give_back(struct bus_register_quotas *quotas, enum bus_pool pool,
                                   uint16_t account, struct bus_cost cost);

#endif
