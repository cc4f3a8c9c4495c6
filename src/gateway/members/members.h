/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_MEMBERS_MEMBERS_H
#define PEG_GATEWAY_MEMBERS_MEMBERS_H

/*
 * The nodes of a registry: one loop's replica of the bus's map of nodes. The first loop of each
 * node writes the entry of that node, and writes it again GW_MEMBER_REFRESHES times a lease; every
 * loop reads the same ones. Nothing of a call depends on it.
 */

#include "bus/bus.h"

/* Of messages between nodes, of the keys and of the values that they share. Raised when nodes of
 * the version before would misread any of them: nodes of two numbers refuse to be one registry. */
enum { GW_PROTOCOL = 1 };

enum { GW_MEMBER_REFRESHES = 3 };

enum gw_member_state {
    GW_MEMBER_STARTING, /* it does not listen yet */
    GW_MEMBER_SERVING,
    GW_MEMBER_DRAINING,
};

/* What a node says of itself. Counters are since its start. */
struct gw_member {
    uint64_t node;
    int64_t protocol;
    char version[32];
    char address[280]; /* of its RPCs, as it listens; "" before that */
    char store[32];
    enum gw_member_state state;
    int64_t started_ms;
    int64_t written_ms; /* cluster time */
    int64_t lease_ms;
    int64_t threads;
    int64_t providers; /* attached to it */
    int64_t in_flight; /* calls that it coordinates */
    int64_t queued;
    int64_t settled;
    int64_t results; /* of these, by how they ended */
    int64_t errors;
    int64_t timeouts;
    int64_t canceled;
    int64_t unknown; /* outcome_unknown */
    int64_t refused; /* never admitted */
    int64_t rate;    /* calls in 1000 s, at the rate of the last ten */
    int64_t lag_us;  /* the last round trip to Redis; 0: none */
    /* the replica's */
    uint64_t revision;
    bool is_reported;
};

/* ---- entry.c: the form of an entry: key "9f86d081884c7d65", value
 *
 *   {"protocol":1,"version":"0.20.0","address":"10.0.0.7:9090","state":"serving",...}
 *
 * Nodes of other versions read it too: whatever the protocol, it is an object with "protocol",
 * "version", "address", "written_ms" and "lease_ms". What is missing is 0 or "". ---- */

enum { GW_MEMBER_KEY = 17 };
void gw_member_key(uint64_t node, char ret_key[GW_MEMBER_KEY]);
/* Exactly 16 hexadecimal digits that are not all 0. */
bool gw_member_parse_key(peg_str key, uint64_t *ret_node);
/* "starting", "serving", "draining"; static. */
const char *gw_member_state_name(enum gw_member_state state);
/* NULL: no memory. */
struct peg__blob *gw_member_write(const struct gw_member *member);
/* PEG_EPARSE: not one of ours; PEG_ENOMEM. */
peg_status gw_member_read(peg_str key, const struct peg__blob *value, struct gw_member *ret_member);

/* ---- members.c ---- */

struct gw_members;

struct gw_members_options {
    struct bus *bus;
    bool is_home; /* it writes the entry of its node */
    int64_t lease_ms;
    /* Fills in what the node is now, but for `node`, `protocol`, `written_ms` and `lease_ms`. */
    void (*describe)(void *user, struct gw_member *member);
    void *user;
};

enum gw_admission {
    GW_ADMISSION_PENDING,
    GW_ADMITTED, /* it is announced, and every live node has the same protocol */
    GW_NOT_ADMITTED,
};

peg_status gw_members_new(const struct gw_members_options *options, struct gw_members **ret_members,
                          peg_error *reterr);
/* Takes the entry of its node back. */
struct gw_members *gw_members_free(struct gw_members *members);

/* May this node be one of the registry? Decided once, when its own entry is written: of two nodes
 * that start at once at least one sees the other. *ret_other is the live node of another protocol
 * that it is refused for, borrowed until the replica changes; NULL: there is none. */
enum gw_admission gw_members_admission(const struct gw_members *members,
                                       const struct gw_member **ret_other);
/* By node id; borrowed until the replica changes. Those that are lost stay until they are removed.
 */
const struct gw_member *gw_members_list(const struct gw_members *members, size_t *ret_n);
const struct gw_member *gw_members_find(const struct gw_members *members, uint64_t node);
/* Its entry was written within its lease. */
bool gw_members_is_live(const struct gw_members *members, const struct gw_member *member);
/* The node is another than it was: writes its entry now. */
void gw_members_refresh(struct gw_members *members);
/* The loop with that address is gone: if it was the first one of its node, so is the node. A node
 * that was only held up writes its entry again. */
void gw_members_on_node_lost(struct gw_members *members, struct bus_address address);

#endif
