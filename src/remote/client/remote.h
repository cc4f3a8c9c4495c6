/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_CLIENT_REMOTE_H
#define PEG_REMOTE_CLIENT_REMOTE_H

/*
 * The client behind pegboard/client.h. Its functions block the caller; the
 * wire is the business of the client's loop:
 *
 *   peg_client_list, _search, _call, ...      the caller's thread
 *       remote__unary()                       one request, one answer, as an error if it is one
 *           struct remote__request                one exchange: started, read and stopped from
 * there
 *               ---- net_loop_post ----
 *               grpc_rpc                      the client's loop
 */

#include <stdatomic.h>

#include "base/arena.h"
#include "base/blob.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/context/context.h"
#include "grpc/client/client.h"
#include "pegboard/cleanup.h"
#include "pegboard/client.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/wire.h"

/* ---- the client ---------------------------------------------------------------------------- */

/* Longer ones are none. */
enum { REMOTE_EPOCH = 64 };

/* Lives in the arena of its client. */
struct remote__registry {
    struct peg_client *client;
    const char *name;
    const char *address;
    const char *token_file; /* or NULL */
    const char *const *include;
    const char *const *exclude;
    struct grpc_channel *channel;    /* the loop's */
    struct peg__blob *authorization; /* "Bearer ..." or NULL; under the client's lock */
    char epoch[REMOTE_EPOCH];        /* of its gateway's memory, as last reported; "": unknown.
                                      * Under the client's lock */
};

/* Counters of the cache: two names of one counter cost a fetch, now and then. */
enum { REMOTE_COUNTERS = 256 };

/* Toolsets by registry and name; under the client's lock. */
struct remote__cached;
struct remote__cache {
    struct peg__map map; /* "<number of the registry>/<name>" -> remote__cached */
    /* How often toolsets of one hash changed; an answer that was asked for before is old. */
    uint32_t n_changes[REMOTE_COUNTERS];
    uint64_t n_confirmed; /* how often an entry was put, or was said to be there */
};

/* Shared; any thread but for what is marked. */
struct peg_client {
    atomic_uint n_refs;
    struct peg__arena arena; /* of what the options said */
    struct remote__registry *registries;
    size_t n_registries;
    int64_t timeout_ms; /* 0: none */
    int64_t cache_ttl_ms;
    unsigned max_reasks;
    const peg_clock *clock;
    struct net_loop *loop;
    bool is_started; /* its loop */
    pthread_mutex_t lock;
    struct remote__cache cache;
    unsigned n_fetches; /* in the background; the loop's */
};

/* The registry of that name; NULL stands for the only one. PEG_EINVAL (E_CLIENT). */
peg_status remote__registry_only(peg_client *client, const char *name,
                                 struct remote__registry **ret_registry, peg_error *reterr);
/* Those that a function is about: [*ret_first, *ret_end) of client->registries. NULL: all. */
peg_status remote__registries(peg_client *client, const char *name, size_t *ret_first,
                              size_t *ret_end, peg_error *reterr);
/* Is the toolset there for this client? */
bool remote__registry_admits(const struct remote__registry *registry, peg_str toolset);
/* The forms of peg_client_registry. */
bool remote__glob_matches(peg_str glob, peg_str name);
bool remote__glob_is_name(peg_str glob);
/* The epoch of the gateway's memory as last reported. */
void remote__registry_epoch(struct remote__registry *registry, char ret_epoch[REMOTE_EPOCH]);
/* Reads the token file again after `refused` was not taken. True: there is another token now. */
bool remote__registry_renew(struct remote__registry *registry, const struct peg__blob *refused);

/* ---- one exchange -------------------------------------------------------------------------- */

struct remote__message;

/* Lies in the memory of the thread that waits; all 0 but for the first group. */
struct remote__request {
    struct remote__registry *registry;
    const struct grpc_method *method;
    const ProtobufCMessage *request; /* until it is stopped */
    int64_t timeout_ms;              /* sent to the gateway; 0: none */
    bool waits_for_ready;
    const char *asked_epoch; /* a call that was asked for before: of whom, or "unknown"; or NULL */
    /* what it was sent with */
    struct peg__blob *authorization;
    struct grpc_metadata metadata;
    struct grpc_method raw; /* the method, for bytes */
    /* the loop's */
    struct net_message start;
    struct net_message poke;
    struct grpc_rpc *rpc;
    /* under the lock */
    struct peg__wait wait;
    struct remote__message *first;
    struct remote__message *last;
    size_t queued_bytes;
    bool is_started;
    bool is_poked; /* the message is on its way */
    bool wants_cancel;
    bool wants_cancel_unsent;
    bool wants_resume;
    bool is_paused;
    bool is_over;
    char epoch[REMOTE_EPOCH]; /* from the headers of the answer; when it is over */
    /* when it is over; its texts lie in the arena */
    peg_status failure; /* of this side: it was not started, or there was no memory */
    peg_error error;
    struct grpc_status status;
    bool was_sent;
    int64_t retry_ms;  /* what the gateway hints at; 0: nothing */
    peg_str call_id;   /* what it says of the call that it has ended; "": nothing */
    bool says_started; /* and that it was started */
    /* The gateway refused it because it drains: how many other addresses there are. */
    size_t n_elsewhere;
    struct peg__arena arena;
    struct remote__message *current; /* the waiting thread's */
};

enum remote__received {
    REMOTE_MESSAGE, /* *ret_bytes, borrowed until the next one is asked for */
    REMOTE_OVER,    /* failure and status are set */
    REMOTE_STOP,    /* the context has stopped */
    REMOTE_TIME,    /* until_ns has come */
};

/* PEG_ENOMEM: nothing was started. */
peg_status remote__request_start(struct remote__request *req, peg_error *reterr);
/* ctx may be NULL; until_ns is of its clock, INT64_MAX: never. */
enum remote__received remote__request_next(struct remote__request *req, peg_ctx *ctx,
                                           int64_t until_ns, peg_str *ret_bytes);
/* Cancels what has not been sent; whatever becomes of it, its end is awaited as before. */
void remote__request_stop_unsent(struct remote__request *req);
/* Cancels what is not over, and waits for its end, which comes soon. */
void remote__request_stop(struct remote__request *req);
/* Stops it, and frees all it holds. Also one that was never started. */
void remote__request_free(struct remote__request *req);

/* Did the connection fail, rather than a gateway say no? */
bool remote__request_is_lost(const struct remote__request *req);
/* What an exchange that is over failed with; PEG_OK if it did not. */
peg_status remote__request_error(const struct remote__request *req, peg_error *reterr);
/* The same for what the context did to one that is not: PEG_ECANCELED, PEG_ETIMEOUT. */
peg_status remote__ctx_error(peg_ctx *ctx, peg_error *reterr);
/* The error for a name and a message of the wire. */
peg_status remote__wire_error(enum wire_error error, peg_str message, peg_error *reterr);

/* Milliseconds until the context stops, at least 1; INT64_MAX: it does not. */
int64_t remote__ctx_left_ms(const peg_ctx *ctx);

/* ---- one request, one answer ---------------------------------------------------------------- */

/* All 0 but for the first group. */
struct remote__fan {
    struct remote__registry *registry;
    const struct grpc_method *method;
    const ProtobufCMessage *request;
    bool is_repeatable; /* asked a second time if its connection breaks */
    /* what became of it */
    peg_status status;
    peg_error error;
    const void *message; /* in the arena; a const peg_str * if method->output is NULL */
    int64_t until_ns;
    struct remote__request req;
};
/* Asks all at once, and waits for all: within the client's timeout, until the context stops. Fails
 * (PEG_ENOMEM, PEG_ECANCELED, PEG_ETIMEOUT) only for what is of this side; each has a status of its
 * own. ctx may be NULL. */
peg_status remote__fan_out(struct remote__fan *fans, size_t n, peg_ctx *ctx,
                           struct peg__arena *arena, peg_error *reterr);
/* The same for one, whose status it returns. */
peg_status remote__unary(struct remote__fan *fan, peg_ctx *ctx, struct peg__arena *arena,
                         peg_error *reterr);

/* Fails as another did. */
static inline peg_status remote__pass_error(const peg_error *error, peg_error *reterr)
{
    if (reterr)
        *reterr = *error;
    return error->status;
}

/* protobuf-c takes no NULL for a string, and changes none. */
static inline char *remote__text(const char *text)
{
    return peg__unconst(text ? text : "");
}

/* ---- nodes: point into the message ---- */

peg_node remote__node(const Pegboard__V1__NodeInfo *info);
peg_remote_outcomes remote__outcomes(const Pegboard__V1__Outcomes *outcomes); /* NULL: none */

/* ---- toolsets ------------------------------------------------------------------------------ */

/* Points into `message`. */
void remote__info(const struct remote__registry *registry, const Pegboard__V1__ToolsetInfo *message,
                  peg_toolset_info *ret_info);
/* Tags as a message has them; counts what is NULL-terminated. PEG_ELIMIT (E_CLIENT). */
peg_status remote__tags(const char *const *tags, size_t *ret_n, peg_error *reterr);

/* A toolset and the arena it lies in. */
struct remote__toolset {
    peg_toolset toolset; /* first */
    atomic_uint n_refs;
    struct peg__arena arena;
    const char *registry_name;
    struct remote__toolset *fresh; /* what is_stale was set over; a reference, or NULL */
};
/* From the bytes of a GetToolsetResponse. PEG_EPARSE, PEG_ENOMEM. */
peg_status remote__toolset_read(const struct remote__registry *registry, peg_str bytes,
                                struct remote__toolset **ret_toolset, peg_error *reterr);
/* The same toolset, marked as stale. NULL: no memory. */
struct remote__toolset *remote__toolset_stale(struct remote__toolset *toolset);

/* ---- the cache; all of it takes the client's lock -------------------------------------------- */

enum remote__age {
    REMOTE_FRESH,
    REMOTE_AGEING, /* in the last fifth of its time, and not being fetched: fetch it */
    REMOTE_EXPIRED,
};
/* A reference, or NULL: not there. */
struct remote__toolset *remote__cache_get(struct remote__registry *registry, peg_str name,
                                          enum remote__age *ret_age);
/* Before a toolset is fetched: the value for remote__cache_put(). */
uint32_t remote__cache_note(struct remote__registry *registry, peg_str name);
/* Takes its own reference. Without memory the cache stays as it is; and if the toolset
 * changed since it was asked for, as this may be the old one. */
void remote__cache_put(struct remote__registry *registry, peg_str name,
                       struct remote__toolset *toolset, uint32_t n_changes);
void remote__cache_drop(struct remote__registry *registry, peg_str name);
/* What is there has the name for all: the registries before it have said that they have none. That
 * is believed for as long as an entry is, and until one of them reports it. */
void remote__cache_set_first(struct remote__registry *registry, peg_str name);
bool remote__cache_is_first(struct remote__registry *registry, peg_str name);
/* A full report begins: the value for remote__cache_end_all(). */
uint64_t remote__cache_begin_all(struct remote__registry *registry);
/* That was everything: drops what was not said to be there since. */
void remote__cache_end_all(struct remote__registry *registry, uint64_t since);
/* Drops it if it is of another revision: a break may have hidden the change. */
void remote__cache_check(struct remote__registry *registry, peg_str name, uint64_t revision);
void remote__cache_clear(peg_client *client);
/* The fetch after AGEING has failed: not again for a while. */
void remote__cache_cool(struct remote__registry *registry, peg_str name);
/* Fetches in the background. */
void remote__refresh(struct remote__registry *registry, peg_str name);

/* From one registry, cache and all. */
peg_status remote__get_from(struct remote__registry *registry, peg_ctx *ctx, const char *name,
                            peg_toolset **ret_toolset, peg_error *reterr);

/* ---- results ------------------------------------------------------------------------------- */

/* A result and the arena it lies in. All of them: PEG_ENOMEM only. */
struct remote__result {
    peg_remote_result result; /* first */
    struct peg__arena arena;
};
/* content.c: reads the typed content of an answer into the result. PEG_ENOMEM; others as
 * peg_media_new(). To be dropped in any case. */
peg_status remote__content_read(struct remote__result *result,
                                const Pegboard__V1__CallToolResponse *response, peg_error *reterr);
void remote__content_drop(struct remote__result *result);
/* import_content.c: answers a call with it. */
void remote__content_reply(peg_call *call, const peg_remote_result *result, bool is_trusted);
/* import_gate.c: what the remote tool asks is asked by a gate of this call, if it has a listener.
 */
void remote__import_questions(peg_call *call, peg_remote_request *request);
/* From the bytes of a CallToolResponse; one that cannot be read is UNKNOWN. */
peg_status remote__result_read(peg_str bytes, peg_remote_result **ret_result, peg_error *reterr);
/* UNKNOWN: there was an answer, which cannot be read. */
peg_status remote__result_unreadable(const peg_error *why, peg_remote_result **ret_result,
                                     peg_error *reterr);
/* From how an exchange ended; `was_started`: the call may be running, whatever this one says. */
peg_status remote__result_of_end(const struct remote__request *req, bool was_started,
                                 peg_remote_result **ret_result, peg_error *reterr);
/* The gateway says `timeout` of a call that was not started in time, and of a wait that is over
 * while the call, which somebody asked for before, may go on. Is it the latter? `result` is what
 * remote__result_of_end() made of the exchange. */
bool remote__result_is_late_wait(const peg_remote_result *result,
                                 const struct remote__request *req);
/* An end that this side made. */
struct remote__end {
    peg_remote_outcome outcome;
    peg_error error;
    peg_str name;
    peg_str message; /* empty: the error's */
    bool was_started;
    int64_t retry_ms;
    peg_str call_id;
};
peg_status remote__result_of(const struct remote__end *end, peg_remote_result **ret_result,
                             peg_error *reterr);
peg_status remote__result_running(const char *call_id, peg_remote_result **ret_result,
                                  peg_error *reterr);
peg_status remote__result_set_call_id(peg_remote_result *result, const char *call_id,
                                      peg_error *reterr);
peg_status remote__result_set_registry(peg_remote_result *result,
                                       const struct remote__registry *registry, peg_error *reterr);
/* The registry that a call goes to: named, or the first that has the toolset. */
peg_status remote__registry_for(peg_client *client, peg_ctx *ctx, const char *name,
                                const char *toolset, struct remote__registry **ret_registry,
                                peg_error *reterr);

/* ---- one call of a client, while it is made ---- */

/* A CallToolRequest and what it points to: the request of the caller, and the arena. */
struct remote__sending {
    Pegboard__V1__CallToolRequest message;
    Pegboard__V1__CallMeta meta;
    Pegboard__V1__MetadataEntry *entries;
    Pegboard__V1__MetadataEntry **entry_pointers;
    bool has_identity; /* asking again attaches to it */
    struct peg__arena arena;
};

/* `outlives_ctx`: the deadline of the context is not the call's. PEG_EINVAL, PEG_ELIMIT (E_CLIENT,
 * E_NAME), PEG_ENOMEM. The arena is the caller's to free, whatever this returns. */
peg_status remote__sending_fill(struct remote__sending *sending, const peg_remote_request *request,
                                peg_ctx *ctx, bool outlives_ctx, peg_error *reterr);

/* Asks the host, and passes on what it answers. An answer that is not taken any more is none of
 * this caller's business. PEG_ENOMEM. */
peg_status remote__answer(struct remote__registry *registry, const peg_remote_request *request,
                          const char *call_id, const Pegboard__V1__Question *question,
                          peg_error *reterr);

/* When a context stops before there is an answer: not started if nothing was sent, else unknown. */
peg_status remote__result_stopped(const struct remote__request *req, const peg_error *why,
                                  bool was_sent, peg_remote_result **ret_result, peg_error *reterr);

#endif
