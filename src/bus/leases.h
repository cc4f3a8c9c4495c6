/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_LEASES_H
#define PEG_BUS_LEASES_H

/* Names that are alive, and on which loop, in the memory of one process. Any thread; short locks.
 */

#include <pthread.h>

#include "base/map.h"
#include "bus/bus.h"

struct bus_lease_table {
    pthread_mutex_t lock;
    struct peg__map names;
    struct net_timers ends;
};

void bus_lease_table_init(struct bus_lease_table *table);
void bus_lease_table_free(struct bus_lease_table *table);

/* The name is `holder`'s until then. PEG_ELIMIT (PEG_LIMIT_BUS_LEASES), PEG_ENOMEM. */
peg_status bus_lease_take(struct bus_lease_table *table, peg_str name, struct bus_address holder,
                          int64_t now_ns, int64_t until_ns) PEG_MUST_USE;
void bus_lease_release(struct bus_lease_table *table, peg_str name, struct bus_address holder);
/* Who has each name now; node 0: nobody. */
void bus_lease_find(struct bus_lease_table *table, const peg_str *names, size_t n, int64_t now_ns,
                    struct bus_address *ret_holders);

#endif
