/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_LOCAL_H
#define PEG_BUS_LOCAL_H

/*
 * The bus of one process: registers, leases and maps are tables that its loops share, letters go
 * by mailbox. Its epoch is always 1, and it is never fenced.
 *
 * Registers that nobody forgets are kept until their time is over, as far as there is room for them
 * (bus.h): beyond that bus_put_if_absent() answers PEG_ELIMIT.
 */

#include "bus/bus.h"
#include "net/loop/loop.h"

/* What the loops share. Any thread; it outlives its buses. */
struct bus_local_hub;
peg_status bus_local_hub_new(uint64_t node, struct bus_local_hub **ret_hub, peg_error *reterr);
struct bus_local_hub *bus_local_hub_free(struct bus_local_hub *hub);
/* Registers and waiters that stand now. */
size_t bus_local_n_registers(const struct bus_local_hub *hub);

/* The bus of one loop. On that loop, or while it does not run; so is bus_free(), which comes before
 * net_loop_free(). PEG_EINVAL, PEG_EEXISTS (E_BUS_NUMBER). */
peg_status bus_local_new(struct bus_local_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr);

#endif
