/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_NODE_INTERNAL_H
#define PEG_GATEWAY_NODE_INTERNAL_H

/* How a node is put together: node.c what each loop has, drain.c how it goes, gateway.c the rest.
 */

#include <stdatomic.h>

#include "gateway/node.h"

struct bus_local_hub;

/* The place of one loop. */
struct gw_loop_state {
    struct gw_node *node;
    unsigned number;
    struct bus_local_hub *hub;
    struct gw_calls_options options;
    struct gw_presence_options health;
    struct bus *bus;
    peg_status status;
    peg_error error;
    struct net_message strangers; /* are to be looked for, */
    atomic_bool is_asked;         /* and it is on its way */
};

extern const struct gw_catalog_events gw_loop_state_events; /* with a seat as user */

peg_status gw_loop_state_init(struct gw_loop_state *seat, peg_error *reterr);
void gw_loop_state_clear(struct gw_loop_state *seat);

/* Takes no new calls and providers, waits until what runs has ended, at most so long, then ends the
 * streams. `is_hurried` is asked now and then: true ends the waiting, also that for connections.
 * True: everything ended in good order. */
bool gw_node_drain(struct gw_node *node, struct gw_loop_state *seats, int64_t drain_ms,
                   bool (*is_hurried)(void *user), void *user);

#endif
