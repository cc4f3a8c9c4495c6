/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_MEMBERS_LEADER_H
#define PEG_GATEWAY_MEMBERS_LEADER_H

/*
 * One of the nodes does what only one may do. It holds a lease, which the others try to take as
 * soon as it is free; the leader steps down in its own time before the lease ends. So there is at
 * most one leader, unless the bus loses its leases and a node starts within a lease of that; and
 * when a leader dies there is another one after at most a lease and a third of one.
 *
 * One for each role of a node, on its first loop.
 */

#include "bus/bus.h"

/* Pings of direct toolsets, and what else one node does for all. No provider can be named so. */
#define GW_ROLE_PING "role:ping"

struct gw_leader;

struct gw_leader_options {
    struct bus *bus;
    const char *role; /* of the lease; static */
    int64_t lease_ms;
    /* This node leads now, or does so no more. May be NULL. */
    void (*on_change)(void *user, bool is_leader);
    void *user;
};

peg_status gw_leader_new(const struct gw_leader_options *options, struct gw_leader **ret_leader,
                         peg_error *reterr);
/* Gives the lease back; on_change is not called. */
struct gw_leader *gw_leader_free(struct gw_leader *leader);

/* Does this node lead, at this moment? */
bool gw_leader_is(const struct gw_leader *leader);
/* Any thread. The node that leads, as this one knows; 0: none. */
uint64_t gw_leader_node(const struct gw_leader *leader);
/* Leads no more, and does not try again: the node is about to end. */
void gw_leader_resign(struct gw_leader *leader);

#endif
