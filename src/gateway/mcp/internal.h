/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_MCP_INTERNAL_H
#define PEG_GATEWAY_MCP_INTERNAL_H

/*
 * Each file calls those below it:
 *
 *   http.c     requests and their streams
 *   forward.c  what loops and nodes have to say to each other about sessions
 *   loop.c     what a loop has: the server, its streams, time
 *   guard.c    who may ask: Host, Origin, credentials
 *   metadata.c where credentials come from
 *   session.c  sessions of legacy clients
 *   source.c   the catalog as a source of tools
 *   search.c   the three tools of search mode
 *   task.c     requests about calls that have become tasks
 *   call.c     a call of a tool
 *   task_state.c  a call as the task that it is, or becomes
 *   result.c   how it ended
 *   definition.c  a tool as clients see it
 *   names.c    names of tools on /mcp
 */

#include "base/clock.h"
#include "base/limits/mcp.h"
#include "base/map.h"
#include "base/quota.h"
#include "gateway/catalog/catalog.h"
#include "gateway/mcp/mcp.h"
#include "mcp/protocol/protocol.h"
#include "wire/wire.h"

struct gw_mcp_exchange;
struct gw_mcp_lookup;

/* Sessions that a loop owns: session.c. */
struct gw_mcp_sessions {
    struct peg__map by_key;
    struct peg__quota *quota; /* of the node */
    struct bus_address self;
    int64_t sweep_ms; /* when idle ones are looked for; 0: there are none */
    unsigned char secret[PEG_SEAL_SECRET_BYTES]; /* the registry's */
};

struct gw_mcp {
    struct gw_node *node;
    struct calls_loop *calls;
    struct mcp_source source;
    struct mcp_server *server;
    /* what may be pending */
    struct gw_mcp_exchange *exchanges; /* requests of HTTP, and calls that have lost theirs */
    struct net_timer timer;
    struct peg__quota streams; /* that stay open until the client closes them */
    struct gw_mcp_sessions sessions;
    struct gw_mcp_lookup *lookups; /* that wait for the owner of a session */
    uint64_t n_lookups;            /* so far */
    struct net_timer renewal;      /* of sessions that have requests here */
    int64_t keepalive_ms; /* when silent streams get their next comment; 0: there is none */
    bool is_reaping;      /* some exchanges have ended in the middle of something */
    bool is_closed;       /* the node stops */
};

/* What one URL shows of the catalog; lives as long as the request of HTTP is being read. */
struct gw_mcp_scope {
    peg_str toolset; /* "": all of them */
    bool is_search;
};

/* The snapshot of the loop; NULL: none has come yet. */
static inline const struct gw_snapshot *gw_mcp_snapshot(const struct gw_mcp *mcp)
{
    return gw_router_of(mcp->calls)->snapshot;
}

/* By the clock of the loop. */
static inline int64_t gw_mcp_now_ms(const struct gw_mcp *mcp)
{
    return net_loop_now_ns(mcp->calls->loop) / PEG_NS_PER_MS;
}

/* The server goes by the time that was set last. */
static inline void gw_mcp_set_time(const struct gw_mcp *mcp)
{
    mcp_server_set_time(mcp->server, gw_mcp_now_ms(mcp), peg_clock_now_ms(peg_clock_system()));
}

/* ---- names.c ---- */

/* The tool of that name; NULL: there is none. Borrowed from the snapshot. */
const struct gw_tool *gw_mcp_find(const struct gw_snapshot *snapshot, peg_str name,
                                  const struct gw_toolset **ret_toolset);
/* The same by the names of a scope. The snapshot may be NULL. */
const struct gw_tool *gw_mcp_find_in(const struct gw_snapshot *snapshot,
                                     const struct gw_mcp_scope *scope, peg_str name,
                                     const struct gw_toolset **ret_toolset);

/* ---- definition.c ---- */

enum { GW_MCP_TAGS = 64 };

/* A tool as clients see it; borrowed from the toolset. */
struct gw_mcp_definition {
    struct mcp_tool tool;
    char name[WIRE_MCP_NAME];
    char title[2 * PEG_LIMIT_NAME_BYTES + 2];
    const char *tags[GW_MCP_TAGS + 1];
    peg_json_doc *input;
    peg_json_doc *output;
    peg_json_doc *examples;
};
/* PEG_ENOMEM. To be undone in any case. */
peg_status gw_mcp_define(struct gw_mcp_definition *definition, const struct gw_toolset *toolset,
                         const struct gw_tool *tool, bool is_qualified);
void gw_mcp_undefine(struct gw_mcp_definition *definition);

/* ---- result.c ---- */

/* `has_schema`: the tool promises JSON of a schema. */
void gw_mcp_put_outcome(struct mcp_result *result, const struct calls_outcome *outcome,
                        bool has_schema);

/* ---- task_state.c ---- */

/* Ends an MCP call with the task that a call is; `asked`: what its open question asks, or NULL. */
void gw_mcp_tell_task(struct gw_mcp *mcp, struct mcp_call *call, const struct calls_description *d,
                      const peg_json *asked);

/* Of a running call whose client takes a task: calls `fn` when it takes long, with what every node
 * reads of it. Lies in its owner's memory; all 0: it watches nothing. */
struct gw_mcp_task_watch {
    void (*fn)(struct gw_mcp_task_watch *watch, const struct calls_description *d);
    struct gw_mcp *mcp;
    struct bus_id id;
    peg_str principal;
    /* what may be pending */
    struct net_timer timer;
    struct calls_description description;
};
void gw_mcp_watch_task(struct gw_mcp_task_watch *watch);
void gw_mcp_unwatch_task(struct gw_mcp_task_watch *watch);

/* ---- call.c ---- */

/* Calls a tool, with arguments that may be NULL; its end is the end of the call. */
void gw_mcp_call(struct gw_mcp *mcp, struct mcp_call *call, const struct gw_toolset *toolset,
                 const struct gw_tool *tool, const peg_json *args);
void gw_mcp_cancel(struct mcp_call *call);
/* What the tool asks has no answer: why. */
void gw_mcp_refuse(struct mcp_call *call, const char *reason);
/* The answers to what the tool asks: of a legacy client, or with the request itself. */
void gw_mcp_answer(struct mcp_call *call, const peg_json *answers);
/* Ends a call of a tool that there is not. */
void gw_mcp_reject_name(struct mcp_call *call, peg_str name);

/* ---- task.c ---- */

/* tasks/get, tasks/update, tasks/cancel. */
void gw_mcp_begin_task_request(struct gw_mcp *mcp, struct mcp_call *call);
/* Its client is gone. */
void gw_mcp_drop_task_request(struct mcp_call *call);

/* ---- search.c ---- */

peg_status gw_mcp_list_search(struct mcp_page *page);
void gw_mcp_begin_search(struct gw_mcp *mcp, struct mcp_call *call);

/* ---- source.c ---- */

extern const struct mcp_source_ops gw_mcp_source_ops;

/* ---- session.c: time is that of the loop, in ms ---- */

enum {
    GW_MCP_SESSION_KEY = 16,
    GW_MCP_SESSION_TEXT = 77, /* of an id, with a NUL */
};

/* What an Mcp-Session-Id says. */
struct gw_mcp_session_id {
    struct bus_address owner; /* node 0: there is no session */
    unsigned abilities;       /* of the client */
    unsigned char key[GW_MCP_SESSION_KEY];
};

struct gw_mcp_session {
    unsigned char key[GW_MCP_SESSION_KEY];
    int log_level; /* MCP_N_LEVELS: none was set */
    int64_t used_ms;
    struct bus_address loops[PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS]; /* the last one first */
    size_t n_loops;
    uint16_t quota_key;
    char principal[]; /* NUL-terminated */
};

/* PEG_ELIMIT: the node, or the principal, has too many; PEG_ENOMEM. */
peg_status gw_mcp_session_make(struct gw_mcp_sessions *sessions, const char *principal,
                               uint16_t quota_key, unsigned abilities, int64_t now_ms,
                               char ret_text[GW_MCP_SESSION_TEXT]);
/* False: it is none of this registry's. */
bool gw_mcp_session_parse(const struct gw_mcp_sessions *sessions, peg_str text,
                          struct gw_mcp_session_id *ret_id);
/* NULL: it has ended, or is another principal's. It is not idle now. */
struct gw_mcp_session *gw_mcp_session_find(struct gw_mcp_sessions *sessions,
                                           const unsigned char key[GW_MCP_SESSION_KEY],
                                           peg_str principal, int64_t now_ms);
/* That loop has requests of it. */
void gw_mcp_session_note(struct gw_mcp_session *session, struct bus_address loop);
void gw_mcp_session_end(struct gw_mcp_sessions *sessions, struct gw_mcp_session *session);
/* Ends idle ones, if it is time for that. */
void gw_mcp_sessions_sweep(struct gw_mcp_sessions *sessions, int64_t now_ms);
void gw_mcp_sessions_end_unknown(struct gw_mcp_sessions *sessions, const struct gw_auth *auth);
void gw_mcp_sessions_clear(struct gw_mcp_sessions *sessions);

/* ---- metadata.c ---- */

/* The value of WWW-Authenticate with the place of the metadata. False: there are none, or no
 * memory. */
bool gw_mcp_put_challenge(const struct gw_node *node, const struct net_http_request *request,
                          struct peg__buf *out);

/* ---- guard.c ---- */

/* False: the request was answered. Before its body is read. */
bool gw_mcp_admit(struct net_http_request *request, struct gw_node *node,
                  struct peg__buf *ret_principal);

/* ---- loop.c ---- */

enum gw_mcp_stage {
    GW_MCP_READING,   /* its body has not come */
    GW_MCP_WAITING,   /* nothing was sent yet */
    GW_MCP_STREAMING, /* events were sent */
    GW_MCP_ANSWERED,
};

enum gw_mcp_standing {
    GW_MCP_GONE,  /* there is no such session */
    GW_MCP_KNOWN, /* what follows is known */
    GW_MCP_UNREACHABLE,
};

/* What the owner of a session says. */
struct gw_mcp_found {
    enum gw_mcp_standing standing;
    int log_level;
    struct bus_address loops[PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS];
    size_t n_loops;
};

/* A question to the owner of a session. All zero: there is none. */
struct gw_mcp_lookup {
    void (*fn)(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found);
    struct gw_mcp_lookup *next;
    struct gw_mcp_lookup *prev;
    uint64_t number; /* 0: it is not in the loop's list */
    struct bus_wait wait;
    struct net_timer late;
};

/* A request of HTTP. It outlives one that was lost while a legacy client's call runs. */
struct gw_mcp_exchange {
    struct gw_mcp *mcp;
    struct gw_mcp_exchange *next;
    struct gw_mcp_exchange *prev;
    struct net_http_request *request; /* NULL: it was lost */
    struct mcp_peer *peer;            /* NULL: not yet */
    enum gw_mcp_stage stage;
    bool takes_events; /* the client does */
    bool is_listening; /* counted in mcp->streams, with the key */
    uint16_t quota_key;
    size_t large_bytes; /* counted in the loop's quota of large requests, with this key */
    peg_str body;       /* the request's, while there is one */
    char session[GW_MCP_SESSION_TEXT]; /* as the client names it; "": none */
    struct gw_mcp_session_id session_id;
    struct gw_mcp_lookup lookup;
    char principal[]; /* NUL-terminated */
};

/* NULL: no memory. */
struct gw_mcp_exchange *gw_mcp_exchange_new(struct gw_mcp *mcp, struct net_http_request *request,
                                            peg_str principal);
void gw_mcp_exchange_free(struct gw_mcp_exchange *exchange);
/* Soon, outside of whatever is going on. */
void gw_mcp_exchange_free_soon(struct gw_mcp_exchange *exchange);
/* Counts a stream that stays open. NULL, or why it may not. */
const char *gw_mcp_exchange_listen(struct gw_mcp_exchange *exchange);
/* Counts the bytes of its message, if they are many. False: there is no room for them. */
bool gw_mcp_exchange_hold(struct gw_mcp_exchange *exchange, size_t n_bytes);
/* A stream of events has begun: it is kept alive. */
void gw_mcp_keep_streams(struct gw_mcp *mcp);
/* The key of the quotas of a principal; 0: there are no shares. */
uint16_t gw_mcp_quota_key(const struct gw_mcp *mcp, const char *principal);
/* Its answer is not wanted any more; one that waits for none is left alone. */
void gw_mcp_forget_lookup(struct gw_mcp_exchange *exchange);
/* A session is over: its streams end, and what its client was asked has no answer. */
void gw_mcp_end_session(struct gw_mcp *mcp, peg_str session, peg_str principal);
/* Something became due. */
void gw_mcp_wake_in_time(struct gw_mcp *mcp);
/* A legacy client has canceled: requests that get no answer any more end without one. */
void gw_mcp_end_canceled(struct gw_mcp *mcp);

/* ---- forward.c ---- */

/* A message of a session, as far as it concerns other loops. */
struct gw_mcp_peeked {
    bool is_cancellation;
    bool is_answer;
    struct bus_address asker; /* of an answer: the loop that asked; node 0: none did */
    int log_level;            /* that it sets; MCP_N_LEVELS: none */
};
void gw_mcp_peek(peg_str text, struct gw_mcp_peeked *ret_peeked);

/* Asks the owner of the exchange's session; fn may come before it returns. The message is that of
 * the exchange; NULL: it has none. With an answer or a cancellation this loop is not noted: it has
 * no request by that, and might take the place of one that has. */
void gw_mcp_find_session(struct gw_mcp_exchange *exchange, const struct gw_mcp_peeked *message,
                         void (*fn)(struct gw_mcp_exchange *exchange,
                                    const struct gw_mcp_found *found));
/* The same, and ends it. */
void gw_mcp_delete_session(struct gw_mcp_exchange *exchange,
                           void (*fn)(struct gw_mcp_exchange *exchange,
                                      const struct gw_mcp_found *found));
/* Hands a cancellation or an answer of the exchange's session to a loop that has the request. With
 * `fn`, which has the standing of that loop as above. */
void gw_mcp_forward(struct gw_mcp_exchange *exchange, struct bus_address loop, peg_str text,
                    void (*fn)(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found));
/* The exchange's session is over: has that loop end what it has of it. */
void gw_mcp_forward_end(struct gw_mcp_exchange *exchange, struct bus_address loop);
/* The exchange has a request of its session: that one does not become idle meanwhile. */
void gw_mcp_keep_session(struct gw_mcp_exchange *exchange);

#endif
