/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_ATTACHED_H
#define PEG_GATEWAY_RPC_ATTACHED_H

/* One Attach stream, in the arena of its RPC. */

#include "gateway/node.h"
#include "gateway/rpc/rpc.h"
#include "wire/wire.h"

enum gw_attached_step {
    GW_HELLO_AWAITED,
    GW_REGISTERING,
    GW_WELCOMING, /* attached; other loops of the node are about to learn of it */
    GW_ATTACHED_NOW,
    GW_DETACHED,
};

struct gw_attached;

/* A result that comes in several frames. */
struct gw_assembly {
    struct calls_entry entry; /* of the call and its attempt; the first member */
    struct gw_attached *attached;
    struct wire_chunks chunks;
    size_t counted; /* bytes that it has taken of the share */
    struct gw_assembly *next;
    struct gw_assembly *prev;
};

/* A result that is settled, which its provider has not been told yet. */
struct gw_unsaid_ack {
    struct bus_id id;
    uint32_t attempt;
};
enum { GW_UNSAID_ACKS = 32 };

struct gw_attached {
    struct grpc_call *call;
    struct gw_node *node;
    struct calls_loop *calls;
    enum gw_attached_step step;
    struct calls_provider *provider; /* WELCOMING, ATTACHED_NOW */
    struct calls_attach hello;       /* copied; the arena's */
    peg_str toolset_name;
    peg_str incarnation;      /* as it said; its name among the calls is in the hello */
    uint64_t revision_before; /* of the toolset, when it said Hello; 0: it was not registered */
    int64_t registered_at_ms; /* for Welcome, */
    uint64_t revision;        /* likewise */
    bool was_welcomed;        /* which was sent */
    bool was_direct;          /* the toolset, then */
    bool was_told_to_leave;
    int64_t welcome_by_ns;
    struct net_timer welcome;
    uint64_t n_pings;
    uint64_t first_ping; /* answers to earlier ones do not count */
    struct net_timer ping;
    struct net_timer acks_due;
    struct gw_unsaid_ack acks[GW_UNSAID_ACKS];
    size_t n_acks;
    struct gw_change_wait change;  /* its registration */
    struct calls_table assembling; /* as many as its provider has calls: perhaps thousands */
    struct gw_assembly *assemblies;
    size_t assembled;              /* bytes of all of them */
    uint16_t account;              /* its principal's */
    struct calls_result_wait room; /* its stream is paused until workers have caught up */
    struct peg__buf response;
};

/* ---- attach_hello.c: until it is attached ---- */

void gw_hello(struct gw_attached *attached, const Pegboard__V1__Hello *hello);
/* While it is: other tools. */
void gw_offer(struct gw_attached *attached, const Pegboard__V1__Offer *offer);

/* ---- attach.c ---- */

/* The toolset is registered and the provider's to serve: attaches and says Welcome. */
void gw_attached_begin(struct gw_attached *attached, struct gw_toolset *toolset);
void gw_attached_fail(struct gw_attached *attached, enum wire_error error, peg_str message);
/* What became of an Offer: the revision that stands, or 0 and why it was refused. */
void gw_attached_send_offered(struct gw_attached *attached, uint64_t revision,
                              enum wire_error error, const char *message);

/* ---- questions.c: what running calls ask ---- */

void gw_attached_input(struct gw_attached *attached, const Pegboard__V1__Input *input);
/* The answer, to the provider; of struct calls_provider_events. */
bool gw_attached_answer(void *user, const struct calls_answered *answered);

/* ---- attach_result.c: results of providers ---- */

/* If there is one. */
void gw_attached_drop_assembly(void *user, const struct bus_id *id, uint32_t attempt);
void gw_attached_free_assemblies(struct gw_attached *attached);

void gw_attached_result(struct gw_attached *attached, const Pegboard__V1__Result *result);
void gw_attached_delta(struct gw_attached *attached, const Pegboard__V1__Delta *delta);
/* The answer of EmitToolResult is made the same way: packs result, error and server-data into
 * `out` as a pegboard.v1.CallToolResponse. PEG_EINVAL (E_ATTACH): the server-data are none;
 * large ones are read later, with the result. PEG_ENOMEM: unknown. */
struct gw_answer_parts {
    peg_str result;  /* JSON; "" means null */
    peg_str content; /* in its place: a packed ContentList, which is checked with the result */
    Pegboard__V1__Content *const *contents; /* or the same, not packed */
    size_t n_contents;
    const Pegboard__V1__ToolError *error;
    Pegboard__V1__ServerData *const *server_data;
    size_t n_server_data;
};
peg_status gw_pack_answer(struct calls_loop *calls, const struct gw_answer_parts *parts,
                          struct peg__buf *out, peg_str *ret_result, peg_error *reterr);

#endif
