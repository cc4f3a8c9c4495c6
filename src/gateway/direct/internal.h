/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_DIRECT_INTERNAL_H
#define PEG_GATEWAY_DIRECT_INTERNAL_H

#include "bus/redis/streams.h"
#include "calls/check.h"
#include "calls/table.h"
#include "calls/value.h"
#include "gateway/direct/direct.h"
#include "gateway/routing/routing.h"
#include "pulse/pulse.h"

enum {
    DIRECT_ENTRY_ID = 48,   /* two numbers of 64 bits, a dash and a NUL */
    DIRECT_REPEAT_MS = 100, /* after a result; then twice as long each time */
    DIRECT_REPEATS = 5,
    DIRECT_AGAIN_MS = 100,
};

#define DIRECT_MAY_HAVE_RUN "; a provider may have run it: check before you retry"

struct gw_direct {
    struct gw_router *router;
    struct calls_loop *calls;
    struct bus *bus;
    struct calls_table by_id;
    struct direct_call *first_call;
    struct direct_opening *openings;
    struct direct_emission *emissions;
    struct direct_agent *agents;
    struct peg__buf text; /* a message that is being made */
    struct peg__buf packed;
};

/*
 *   CHECKING --> NAMING --> SENDING --> WAITING <--> READING --> JUDGING --> WRITING --> over
 *                  |                     ^  |                                  ^
 *                  +--> LOOKING ---------+  +--> WITHDRAWING ------------------+
 *   LOCATING ------------^
 */
enum direct_state {
    DIRECT_CHECKING,    /* a worker reads the payload */
    DIRECT_NAMING,      /* its identity is written, or read if it may not begin */
    DIRECT_LOCATING,    /* it is asked for by its id: the identity is read */
    DIRECT_LOOKING,     /* it follows: has the call ended? */
    DIRECT_SENDING,     /* the request is added to the stream */
    DIRECT_WAITING,     /* for a change of the result stream, the deadline or a cancellation */
    DIRECT_READING,     /* the result stream */
    DIRECT_WITHDRAWING, /* the request is taken back */
    DIRECT_JUDGING,     /* a worker reads the result */
    DIRECT_WRITING,     /* the outcome */
    DIRECT_REPEATING,   /* the result is added again, in a moment */
};

enum direct_ending { DIRECT_GOES_ON, DIRECT_DEADLINE, DIRECT_CANCELED };

/* Why a call may not begin; with an identity it may still follow one. */
enum direct_bar {
    DIRECT_NO_BAR,
    DIRECT_BAR_UNHEALTHY,
    DIRECT_BAR_DRAINING,
    DIRECT_BAR_ASKED_BEFORE,
    DIRECT_BAR_TRACKING,
};

/* Owned by the loop. direct_call_drop() is right in any state. */
struct direct_call {
    struct calls_entry entry; /* its id; first */
    struct gw_direct *direct;
    struct direct_call *next;
    struct direct_call *prev;
    enum direct_state state;
    enum direct_bar bar;
    enum direct_ending ending;
    bool is_following;  /* another loop has asked for it, or did before */
    bool is_stopping;   /* LOCATING: to cancel it */
    bool is_for_agent;  /* who reads the result from the stream */
    bool is_detached;   /* goes on without callers */
    bool is_counted;    /* as admitted */
    bool is_reported;   /* callers know that it is admitted */
    bool has_changed;   /* the result stream is to be read */
    bool was_withdrawn; /* or cannot be: a provider may have it */
    bool is_last_read;  /* if that gives no result, there is none */
    bool is_past_deadline;
    bool was_connected; /* when the request was sent */
    bool asked_before;
    unsigned n_failures; /* of reads and writes, one behind the other */
    unsigned n_repeats;  /* of the result */
    struct calls_caller *callers;
    struct calls_caller *cursor; /* the one that gets the current output next */

    struct gw_toolset *toolset; /* NULL: it is known by its id */
    const struct gw_tool *tool;
    struct peg__blob *request;  /* for the stream */
    struct peg__blob *payload;  /* while a worker reads it */
    struct peg__blob *identity; /* as it is written */
    struct peg__blob *principal;
    unsigned char digest[32];
    uint16_t account;
    size_t large_bytes;
    struct calls_meter *meter;
    int64_t begun_ns;
    int64_t deadline_ns;
    int64_t deadline_ms;
    uint64_t epoch;                   /* of the send */
    char request_id[DIRECT_ENTRY_ID]; /* "": not known */
    char read_to[DIRECT_ENTRY_ID];

    /* what may be pending */
    struct bus_wait wait;
    struct bus_stream_wait stream;
    struct bus_tracked tracked;
    struct net_timer deadline;
    struct net_timer again;
    struct net_timer deserted; /* a follower without callers */
    struct calls_check *check;
    struct peg__blob *outcome;
    struct peg__blob *result; /* as the provider wrote it: is_for_agent */
};

/* ---- call.c ---- */

/* NULL: no memory. */
struct direct_call *direct_call_new(struct gw_direct *direct, const struct bus_id *id,
                                    uint16_t account);
void direct_call_drop(struct direct_call *call);
/* The call of an id; not one that is only looked for. NULL: none. */
struct direct_call *direct_find(const struct gw_direct *direct, const struct bus_id *id);
static inline bool direct_is_keyed(const struct direct_call *call)
{
    return call->entry.id.len == sizeof(call->entry.id.bytes);
}
struct bus_key direct_register(const struct direct_call *call, char what);
void direct_add_caller(struct direct_call *call, struct calls_caller *caller);
void direct_take_caller(struct calls_caller *caller);
/* To callers that do not know yet. */
void direct_report(struct direct_call *call);
void direct_report_output(struct direct_call *call, peg_str output);
/* Of a call that was counted as admitted. */
void direct_call_summary(const struct direct_call *call, struct calls_summary *ret_summary);
/* Tells all callers, and frees the call. */
void direct_end(struct direct_call *call, const struct calls_outcome *outcome);
void direct_end_refused(struct direct_call *call, enum calls_error error, peg_str message,
                        int64_t retry_after_ms);

/* ---- outcome.c ---- */

/* What a provider wrote, as a packed outcome in call->outcome, and whether a worker has to check it
 * (*ret_result: its JSON, in the outcome). False: no memory. */
bool direct_outcome_of_result(struct direct_call *call, const struct pulse_result *result,
                              peg_str *ret_result);
/* The tool's own error. */
bool direct_outcome_of_error(struct direct_call *call, const char *code, peg_str message);
bool direct_outcome_of(struct direct_call *call, const struct calls_outcome *outcome);
/* In direct->packed: a pegboard.v1.Output. */
peg_str direct_pack_output(struct gw_direct *direct, const struct pulse_delta *delta);

/* ---- run.c: each may end the call ---- */

/* What is next; from WAITING only. */
void direct_go_on(struct direct_call *call);
void direct_arm_deadline(struct direct_call *call, int64_t due_ns);
/* Watches the result stream. False: no memory, or too many calls. */
bool direct_track(struct direct_call *call);
/* Waits for the call of that identity, whose result comes on the same stream. */
void direct_follow(struct direct_call *call, const struct calls_identity *identity);
/* Writes that outcome, and ends. */
void direct_end_as(struct direct_call *call, enum calls_outcome_kind kind, enum calls_error error,
                   const char *message);
/* Of the driver; others are left alone. */
void direct_run_cancel(struct direct_call *call);

/* ---- send.c: likewise ---- */

/* Makes call->request. */
peg_status direct_write_request(struct direct_call *call, const struct calls_request *request);
/* Its payload is valid. */
void direct_run(struct direct_call *call);
/* Finds the call of its id, to wait for it or to stop it. */
void direct_run_locate(struct direct_call *call);

/* ---- start.c ---- */

/* Reports the admission to the caller when both streams are there; the caller leaves, and the
 * result is added a second time. */
void direct_start_for_agent(struct gw_direct *direct, struct gw_toolset *toolset,
                            const struct calls_request *request, struct calls_caller *caller);

/* ---- health.c, emit.c, agent.c ---- */

void direct_drop_openings(struct gw_direct *direct);
void direct_drop_emissions(struct gw_direct *direct);
void direct_drop_agents(struct gw_direct *direct);
/* XADD of a ping. */
void direct_ping(struct gw_direct *direct, const struct gw_toolset *toolset,
                 struct bus_stream_wait *wait);

#endif
