/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CLIENT_H
#define PEGBOARD_CLIENT_H

/*
 * Tools that live elsewhere: finds them in one or several registries (gateways), calls them, and
 * makes them tools of a local registry. Link libpegboard-remote.
 *
 *   peg_client *client;
 *   peg_client_new(&(peg_client_options){PEG_CLIENT_OPTIONS_INIT, .address = "127.0.0.1:9090"},
 * &client, &error); peg_client_import(client, NULL, "weather", NULL, &registry, &error);
 *   ... a registry as any other: peg_runner, peg_registry_call(), ...
 *   client = peg_client_unref(client);
 *
 * A client owns one I/O thread. Its functions wait, may be called from any thread but those of its
 * callbacks where that is said, and from several at once. They stop when their context does; ctx
 * may always be NULL. What they hand over is the caller's.
 *
 * Errors of a gateway keep its words, and have one of these codes:
 *
 *   E_NOT_FOUND            PEG_ENOTFOUND      no such toolset, tool or call
 *   E_VALIDATION           PEG_ESCHEMA        the arguments, a schema, a name, a key used twice
 *   E_SERVICE_UNAVAILABLE  PEG_EIO            no healthy provider has it, or no gateway answers:
 *                          then `cause` is E_STREAM (nothing listens), E_STREAM_ENDED (the peer
 *                          ended the connection), E_STREAM_BROKE (later), E_HTTP2 (it speaks
 *                          something else), E_TLS (it speaks none), E_TLS_CERTIFICATE (we refuse
 *                          it) or E_TLS_REFUSED (it refuses us)
 *   E_OVERLOADED           PEG_ELIMIT         a queue is full: try again later
 *   E_TIMEOUT              PEG_ETIMEOUT       a deadline passed; a call was not started
 *   E_CANCELED             PEG_ECANCELED      a call was not started
 *   E_OUTCOME_UNKNOWN      PEG_EIO, PEG_ETIMEOUT or PEG_ECANCELED by what happened: a call was
 *                          started, or may have been, and its end is not known
 *   E_PERMISSION_DENIED    PEG_EHOST          another principal's
 *   E_UNAUTHENTICATED      PEG_EHOST          no token, or one that the gateway does not know
 *   E_CONFLICT             PEG_ESTATE         the other kind of toolset has live providers
 *   E_LIMIT_EXCEEDED       PEG_ELIMIT         the gateway's limit, by name
 *   E_UNDECIDED            PEG_ELIMIT         a check of the arguments had no verdict at its limit
 *   E_GATEWAY              PEG_EHOST          the gateway's own fault, or what is no gateway
 *
 * and of this side: PEG_EINVAL (E_CLIENT, names the field), PEG_ELIMIT (names the limit),
 * PEG_ECANCELED (E_CANCELED) and PEG_ETIMEOUT (E_DEADLINE_EXCEEDED) of the context, PEG_ENOMEM.
 */

#include <pegboard/ctx.h>
#include <pegboard/registry.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_client peg_client;

/* ---- one client ---------------------------------------------------------------------------- */

/* A registry. Everything has a default, told in brackets. */
typedef struct peg_client_registry {
    size_t size;      /* set by PEG_CLIENT_REGISTRY_INIT */
    const char *name; /* what it is called in results and requests [its address] */
    /* "host:port", ":port" (of this machine), "unix:/path", or several with commas between them,
     * the nodes of one registry; a name may have several addresses, too. The first that answers is
     * used until it goes away or drains; then the next one is, and so on around
     * [127.0.0.1:9090] */
    const char *address;
    const char *token;      /* shown to the gateway with every request [none] */
    const char *token_file; /* holds one; read again when the gateway refuses it [none] */
    bool uses_tls;          /* on by itself if one of the next three is set */
    const char *ca_file;    /* PEM: whom to trust [the system's roots] */
    const char *cert_file;  /* PEM: our own certificate [none] */
    const char *key_file;   /* PEM: its key */
    const char *tls_host;   /* whom the certificate must name [the host of the address] */
    /* Which toolsets of it there are for this client, NULL-terminated [all]. An exclude wins.
     * Forms: a name, "**" (all), "p/" followed by "*" (one level below p) or "**" (any), "p*". */
    const char *const *include;
    const char *const *exclude;
} peg_client_registry;
#define PEG_CLIENT_REGISTRY_INIT .size = sizeof(peg_client_registry)

/* Copied. Zero means the default, told in brackets. */
typedef struct peg_client_options {
    size_t size;         /* set by PEG_CLIENT_OPTIONS_INIT */
    const char *address; /* or addresses, of one plain registry, instead of the next two */
    const peg_client_registry *registries; /* [one, with all defaults] */
    size_t n_registries;                   /* at most 64 */
    int64_t timeout_ms;   /* of what is no call: lists, searches, ... [10,000]; negative: none */
    int64_t connect_ms;   /* of one attempt to connect [10,000] */
    int64_t keepalive_ms; /* asks a silent gateway whether it lives [20,000]; negative: never */
    /* How long peg_client_get() believes what it got [3,600,000]; negative: it asks each time. In
     * the last fifth of it the answer is fetched again in the background. */
    int64_t cache_ttl_ms;
    /* How often a call with an identity, or a wait for one that was started, is asked again when
     * its connection is lost [4]; negative: never, such a call is UNKNOWN. A wait that the gateway
     * ends much too soon is one that was lost, too. A wait without end is asked again however often
     * it is lost, unless this is negative: after so many losses in a row with pauses that grow up
     * to 5 s, until its context stops. One that held for half a minute begins the count anew. */
    int max_reasks;
    const char *user_agent; /* put before ours [none] */
    const peg_clock *clock; /* of the cache; borrowed [the system's] */
} peg_client_options;
#define PEG_CLIENT_OPTIONS_INIT .size = sizeof(peg_client_options)

/* Reads files and starts the thread, but does not connect: the first request does. options may be
 * NULL. PEG_EINVAL (E_CLIENT names the field; E_TLS_CONFIG), PEG_EPARSE (E_ADDRESS), PEG_EIO (a
 * file; no thread), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_client_new(const peg_client_options *options,
                                               peg_client **ret_client, peg_error *reterr);
PEG_API peg_client *peg_client_ref(peg_client *client);
/* The last one stops the thread: not from a callback of this client, nor while one of its
 * functions runs. Imported tools and watches hold a reference. */
PEG_API peg_client *peg_client_unref(peg_client *client);

/* ---- toolsets ------------------------------------------------------------------------------ */

typedef enum peg_health {
    PEG_HEALTH_UNKNOWN = 0,
    PEG_HEALTH_HEALTHY,
    PEG_HEALTH_UNHEALTHY,
} peg_health;

/* Plain data: strings are never NULL, and borrowed from the object that it is part of. */
typedef struct peg_toolset_info {
    const char *registry; /* where it comes from: the name of peg_client_registry */
    const char *name;
    const char *description;
    const char *version; /* "" if none */
    const char *const *tags;
    size_t n_tags;
    size_t n_tools;
    const char *registered_at; /* RFC 3339, UTC */
    const char *owner;         /* the principal that registered it */
    uint64_t revision;
    bool is_direct; /* its providers read a stream on Redis */
    peg_health health;
    const char *health_reason; /* why it is unhealthy, for people */
    int64_t last_pong_ms;      /* Unix time; 0: never */
    unsigned n_providers;      /* attached now, those that drain too */
    unsigned n_draining;
} peg_toolset_info;

/* A registry that did not answer: what the others said counts. */
typedef struct peg_registry_failure {
    const char *registry;
    peg_error error;
} peg_registry_failure;

typedef struct peg_toolset_list {
    const peg_toolset_info *items; /* by registry in the order of the options, then by name */
    size_t len;
    const peg_registry_failure *failures;
    size_t n_failures;
} peg_toolset_list;

/* `registry`, here and below: the name of one, or NULL for all of them. Toolsets with all of these
 * tags (NULL-terminated; may be NULL). Fails only if every registry that was asked has failed. */
PEG_API PEG_MUST_USE peg_status peg_client_list(peg_client *client, peg_ctx *ctx,
                                                const char *registry, const char *const *tags,
                                                peg_toolset_list **ret_list, peg_error *reterr);
PEG_API peg_toolset_list *peg_toolset_list_free(peg_toolset_list *list);

/* A tool as it was registered. */
typedef struct peg_toolset_tool {
    const char *name;
    const char *description;
    const char *const *tags;
    size_t n_tags;
    peg_str input_schema;  /* JSON text */
    peg_str output_schema; /* JSON text; "" if results are not checked */
    bool is_idempotent;
    int64_t timeout_ms; /* 0: the gateway's */
    /* Hints of its author, as of peg_tool_def. What is not set is not known. */
    bool is_read_only;
    bool is_destructive;
    bool is_additive;
    /* What follows may be NULL or "", and is "" in what a client returns. */
    const char *title;
    const char *version;       /* "": the toolset's */
    const char *artifact_kind; /* "text", "json", "markdown", or one that a host knows */
    peg_str examples;          /* JSON array of arguments */
} peg_toolset_tool;

/* Shared, immutable, reference counted; any thread. */
typedef struct peg_toolset {
    peg_toolset_info info;
    const char *stream_id; /* "" unless it is direct */
    const peg_toolset_tool *tools;
    size_t n_tools;
    bool is_stale; /* the registry failed: this is what it said before */
} peg_toolset;

/* From the cache if it is fresh there. With several registries: the first that has it, in the order
 * of the options, which the cache remembers too. When a registry fails, what it said
 * before counts however old it is. */
PEG_API PEG_MUST_USE peg_status peg_client_get(peg_client *client, peg_ctx *ctx,
                                               const char *registry, const char *toolset,
                                               peg_toolset **ret_toolset, peg_error *reterr);
PEG_API peg_toolset *peg_toolset_ref(peg_toolset *toolset);
PEG_API peg_toolset *peg_toolset_unref(peg_toolset *toolset);
/* Empties the cache. */
PEG_API void peg_client_forget(peg_client *client);

typedef struct peg_search_hit {
    peg_toolset_info toolset;
    double score;             /* comparable within one registry */
    const char *const *tools; /* names of those that matched, best first */
    size_t n_tools;
} peg_search_hit;

typedef struct peg_search_result {
    const peg_search_hit *items; /* best first; equals: healthy ones first, by registry, by name */
    size_t len;
    size_t total; /* that matched, also those beyond the limit; above 1,000 a lower bound */
    const peg_registry_failure *failures;
    size_t n_failures;
} peg_search_result;

typedef struct peg_search_query {
    size_t size;             /* set by PEG_SEARCH_QUERY_INIT */
    const char *words;       /* 1 to 1,024 characters; required */
    const char *registry;    /* [all] */
    const char *const *tags; /* only toolsets that have all of them, NULL-terminated [all] */
    size_t limit;            /* of hits in all [100]; at most 1,000 */
} peg_search_query;
#define PEG_SEARCH_QUERY_INIT .size = sizeof(peg_search_query)

/* All registries are asked at once; fails only if every one has failed. */
PEG_API PEG_MUST_USE peg_status peg_client_search(peg_client *client, peg_ctx *ctx,
                                                  const peg_search_query *query,
                                                  peg_search_result **ret_result,
                                                  peg_error *reterr);
PEG_API peg_search_result *peg_search_result_free(peg_search_result *result);

/* ---- calls --------------------------------------------------------------------------------- */

typedef struct peg_remote_entry {
    const char *key;
    const char *value;
} peg_remote_entry;

/* What a tool asks while it runs, and waits for. All borrowed. */
typedef struct peg_remote_question {
    const char *call_id;
    unsigned number; /* 1, 2, ... of the call */
    /* {KEY: {"method", "params"}}, as the Model Context Protocol writes requests: mostly one form,
     * "elicitation/create" */
    const peg_json *requests;
} peg_remote_question;
/* PEG_OK: *ret_answers, which the caller of this frees, has the answer to each by its key, such as
 * {"gate-1": {"action": "accept", "content": {}}}. Else there is none, and the tool gets the
 * message of reterr, which is to be set. One that does not fit is asked for again. */
typedef peg_status (*peg_remote_question_fn)(const peg_remote_question *question, void *user,
                                             peg_json_doc **ret_answers, peg_error *reterr);

typedef struct peg_remote_request {
    size_t size; /* set by PEG_REMOTE_REQUEST_INIT */
    /* NULL: with several, the first that has the toolset; also if it has moved since, unless the
     * call has an identity, which only the registry knows that was asked first: see the result */
    const char *registry;
    const char *toolset; /* required */
    const char *tool;    /* required */
    peg_str args;        /* JSON text; "": {} */
    /* run_id and tool_call_id together, or idempotency_key, which wins, are the identity of a call:
     * asking again attaches to it, and gets what it came to. All others are for the provider. */
    const char *run_id;
    const char *session_id;
    const char *turn_id;
    const char *tool_call_id;
    const char *parent_tool_call_id;
    const char *idempotency_key;
    /* 0: what the tool or the gateway has, 30 s by default; more than 24 h is refused. The deadline
     * of the context holds if it is earlier; the gateway gets it, a little early, so that its
     * answer comes in time. */
    int64_t timeout_ms;
    const peg_remote_entry *metadata; /* handed to the provider as it is */
    size_t n_metadata;
    /* Trace context goes with it if ctx has one: see trace.h. */
    /* Of peg_client_call() and peg_client_call_stream(): on their thread, which may take its time;
     * the call has 10 minutes more if it names no timeout_ms. NULL: there is no one to ask, and the
     * tool learns it at once. */
    peg_remote_question_fn on_question;
    void *question_user;
    /* What is no JSON comes as content of the result, not in base 64 within JSON. */
    bool accepts_content;
} peg_remote_request;
#define PEG_REMOTE_REQUEST_INIT .size = sizeof(peg_remote_request)

typedef enum peg_remote_outcome {
    PEG_REMOTE_RESULT = 0, /* the tool answered */
    PEG_REMOTE_ERROR,      /* the tool ran and failed */
    PEG_REMOTE_TIMEOUT,    /* not started in time */
    PEG_REMOTE_CANCELED,   /* not started */
    PEG_REMOTE_UNKNOWN,    /* started, or perhaps started; its end is not known */
    PEG_REMOTE_REFUSED,    /* not admitted: invalid, unknown, unhealthy, overloaded, ... */
    PEG_REMOTE_RUNNING,    /* peg_client_start(), and a peg_client_await() that has waited enough */
} peg_remote_outcome;

/* Beside a result, for the caller's program; never for its model. */
typedef struct peg_remote_data {
    const char *kind;
    const char *audience;
    peg_str data; /* JSON text */
} peg_remote_data;

/* A part of a result that is no JSON as a whole. Borrowed from the result. */
typedef enum peg_content_kind {
    PEG_CONTENT_TEXT = 0,
    PEG_CONTENT_JSON,
    PEG_CONTENT_BYTES,
    PEG_CONTENT_MEDIA,
} peg_content_kind;

typedef struct peg_remote_content {
    peg_content_kind kind;
    peg_str bytes;    /* "" of media */
    peg_media *media; /* NULL of the others; its tier is what its provider says it is */
} peg_remote_content;

/* What became of a call. Strings are never NULL, and borrowed from the result. */
typedef struct peg_remote_result {
    peg_remote_outcome outcome;
    const char *call_id;  /* "" if none is known */
    const char *registry; /* that was asked, by its name; "": none was */
    peg_str json;         /* RESULT: JSON text, "" if there is content; else "" */
    /* All but RESULT and RUNNING: a name for programs, and a sentence for people. Of an ERROR these
     * are the tool's own; otherwise the gateway's, such as "validation_error". */
    const char *error_name;
    const char *error_message;
    peg_error error;     /* the same as an error of ours; PEG_OK of RESULT and RUNNING. An ERROR
                          * is PEG_EHOST, E_TOOL_DOWNSTREAM_ERROR. */
    bool was_started;    /* or may have been */
    bool was_attached;   /* it had been asked for before */
    int64_t retry_ms;    /* overloaded: when to try again; 0: not said */
    int64_t deadline_ms; /* RUNNING: when it ends at the latest, Unix time; 0: not said */
    const peg_remote_data *server_data;
    size_t n_server_data;
    const peg_remote_content *content; /* RESULT, in place of json, if the request accepts it */
    size_t n_content;
} peg_remote_result;

/* Waits for what becomes of a call: whatever that is, it is a result. Fails only for what is wrong
 * on this side: PEG_EINVAL, PEG_ELIMIT, PEG_ENOMEM. A call whose connection is lost is asked again
 * if it has an identity; without one it is UNKNOWN, unless nothing of it was sent. Asking again
 * attaches to what was started: a gateway that was restarted meanwhile, and knows nothing of it,
 * starts it anew only if the tool is idempotent, else it is UNKNOWN. So is a call that was attached
 * to and goes on when this one's time is over: with PEG_ETIMEOUT, and the call_id that
 * peg_client_await() takes. When the context stops, this notifies the gateway, and the result is
 * UNKNOWN, with PEG_ECANCELED or PEG_ETIMEOUT; if nothing was sent, CANCELED or TIMEOUT. */
PEG_API PEG_MUST_USE peg_status peg_client_call(peg_client *client, peg_ctx *ctx,
                                                const peg_remote_request *request,
                                                peg_remote_result **ret_result, peg_error *reterr);
PEG_API peg_remote_result *peg_remote_result_free(peg_remote_result *result);
/* PEG_OK if it is a RESULT or RUNNING, else its error. */
PEG_API peg_status peg_remote_result_check(const peg_remote_result *result, peg_error *reterr);
/* "result", "error", "timeout", "canceled", "outcome_unknown", "refused", "running"; static. */
PEG_API const char *peg_remote_outcome_name(peg_remote_outcome outcome);

/* What a tool says while it runs; stream: such as "stdout". */
typedef struct peg_remote_output {
    void (*fn)(peg_str stream, peg_str delta, void *user);
    void *user;
} peg_remote_output;

/* The same; reports the output on this thread, which may use the client meanwhile. Asked again, a
 * call may leave out what it said in between. */
PEG_API PEG_MUST_USE peg_status peg_client_call_stream(peg_client *client, peg_ctx *ctx,
                                                       const peg_remote_request *request,
                                                       const peg_remote_output *output,
                                                       peg_remote_result **ret_result,
                                                       peg_error *reterr);

/* For long calls: starts one (RUNNING, with call_id and registry), whose end is asked for below. */
PEG_API PEG_MUST_USE peg_status peg_client_start(peg_client *client, peg_ctx *ctx,
                                                 const peg_remote_request *request,
                                                 peg_remote_result **ret_result, peg_error *reterr);
/* A call that was started. */
typedef struct peg_remote_call {
    const char *registry; /* NULL: the only one; of several, the one of the result */
    const char *call_id;  /* required */
} peg_remote_call;

/* Waits wait_ms, after which the call is RUNNING if the gateway says so: it has 200 ms to look,
 * also when wait_ms is 0. Or until its end if it is negative, also for a gateway that stays away.
 * The call goes on whatever becomes of the wait: PEG_ECANCELED is the context's, and so is
 * PEG_ETIMEOUT, or (E_TIMEOUT) the gateway says nothing within wait_ms and the client's timeout_ms.
 * A gateway whose connection is lost more often than max_reasks fails a wait with an end, with its
 * code; so does one that cannot ask its registry (PEG_EIO, E_SERVICE_UNAVAILABLE), also at the end
 * of the wait. One that refuses it (it has no room, or does not know the call) fails any wait; to
 * one that was restarted since, and has lost the call, its end is UNKNOWN. */
PEG_API PEG_MUST_USE peg_status peg_client_await(peg_client *client, peg_ctx *ctx,
                                                 const peg_remote_call *call, int64_t wait_ms,
                                                 peg_remote_result **ret_result, peg_error *reterr);
/* Asks for its end; what it came to, peg_client_await() tells. */
PEG_API PEG_MUST_USE peg_status peg_client_cancel(peg_client *client, peg_ctx *ctx,
                                                  const peg_remote_call *call, peg_error *reterr);

/* Which call? call_id; or toolset with idempotency_key, or with run_id and tool_call_id. */
typedef struct peg_remote_call_query {
    size_t size;          /* set by PEG_REMOTE_CALL_QUERY_INIT */
    const char *registry; /* NULL: the only one */
    const char *call_id;
    const char *toolset;
    const char *run_id;
    const char *tool_call_id;
    const char *idempotency_key;
    const char *principal; /* whose identity that is [the caller's]; others' for operators */
} peg_remote_call_query;
#define PEG_REMOTE_CALL_QUERY_INIT .size = sizeof(peg_remote_call_query)

/* The right to start a call, which one side has. */
typedef struct peg_remote_attempt {
    unsigned number;
    const char *state;    /* "claimed" by a provider; "revoked", "closed": it never started */
    const char *provider; /* its name, which begins as its incarnation does; or "" */
    const char *node_id;  /* where that was decided */
    const char *address;  /* of that node; "": it is not there any more */
    bool is_attached;     /* the provider is there, or has time to come back */
} peg_remote_attempt;

/* What is known of a call. Strings are never NULL; "" and 0: not known. */
typedef struct peg_remote_call_info {
    const char *registry;
    const char *call_id;
    const char *state; /* "waiting": admitted; "running": a provider has it; "ended" */
    const char *toolset;
    const char *tool;
    const char *principal;
    int64_t admitted_ms; /* Unix time */
    int64_t deadline_ms;
    int64_t kept_until_ms;      /* 0: it has no identity, and is forgotten when it ends */
    const char *coordinator_id; /* the node that admitted it */
    const char *coordinator_address;
    bool is_coordinator_lost;
    bool is_other_epoch; /* Redis has lost something since: some of this may be missing */
    const peg_remote_attempt *attempts;
    size_t n_attempts;
    unsigned n_waiters; /* loops of other nodes that wait for its outcome */
    /* of one that has ended */
    const char *outcome; /* as peg_remote_outcome_name() */
    bool was_started;    /* or may have been */
    const char *error_name;
    const char *error_message;
    uint64_t result_bytes; /* that peg_client_await() gets */
} peg_remote_call_info;

/* What became of a call, at any node of its registry: for its principal, or an operator.
 * PEG_ENOTFOUND (E_NOT_FOUND): nothing is known of it (any more), or it is another's. */
PEG_API PEG_MUST_USE peg_status peg_client_describe_call(peg_client *client, peg_ctx *ctx,
                                                         const peg_remote_call_query *query,
                                                         peg_remote_call_info **ret_info,
                                                         peg_error *reterr);
PEG_API peg_remote_call_info *peg_remote_call_info_free(peg_remote_call_info *info);

/* ---- watching ------------------------------------------------------------------------------ */

typedef enum peg_watch_kind {
    PEG_WATCH_PRESENT = 0, /* was there when the watch began, or began again */
    PEG_WATCH_READY,       /* all that was there has been told; no toolset */
    PEG_WATCH_REGISTERED,
    PEG_WATCH_CHANGED,      /* registered again with other contents */
    PEG_WATCH_UNREGISTERED, /* only its name and registry are set */
    PEG_WATCH_HEALTH,       /* its health, or who provides it */
    /* The connection is lost, or this reader was too slow: a new snapshot (PRESENT..., READY) will
     * come; what it does not name is gone. `error` says why. No toolset. */
    PEG_WATCH_LOST,
} peg_watch_kind;

typedef struct peg_watch_event {
    peg_watch_kind kind;
    const char *registry;
    const peg_toolset_info *toolset; /* NULL where there is none */
    const peg_error *error;          /* LOST, else NULL */
} peg_watch_event;

/* On a thread of the watch, one at a time; everything is borrowed until it returns. It may use the
 * client, but not free the watch. */
typedef void (*peg_watch_fn)(const peg_watch_event *event, void *user);

typedef struct peg_watch_options {
    size_t size;             /* set by PEG_WATCH_OPTIONS_INIT */
    const char *registry;    /* [all: one thread for each] */
    const char *const *tags; /* only toolsets that have all of them, NULL-terminated [all] */
    bool changes_only;       /* leave out what is there at the beginning; not after LOST */
} peg_watch_options;
#define PEG_WATCH_OPTIONS_INIT .size = sizeof(peg_watch_options)

typedef struct peg_watch peg_watch;

/* Begins at once, and goes on until it is freed: connections that break or cannot be made are
 * made again, with a growing pause. With several registries fn may be called by several threads,
 * one for each. options may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_client_watch(peg_client *client,
                                                 const peg_watch_options *options, peg_watch_fn fn,
                                                 void *user, peg_watch **ret_watch,
                                                 peg_error *reterr);
/* When it returns, fn is not running and will not be called. Not from fn. */
PEG_API peg_watch *peg_watch_free(peg_watch *watch);
/* "present", "ready", "registered", "changed", "unregistered", "health", "lost"; static. */
PEG_API const char *peg_watch_kind_name(peg_watch_kind kind);

/* ---- offering and removing: registry NULL means the only one -------------------------------- */

typedef struct peg_toolset_def {
    size_t size;                   /* set by PEG_TOOLSET_DEF_INIT */
    const char *name;              /* [A-Za-z0-9_.:/-]{1,256} */
    const char *description;       /* may be NULL, and so may all below */
    const char *version;           /* such as "1.2.0" */
    const char *const *tags;       /* NULL-terminated */
    const peg_toolset_tool *tools; /* name, description and input_schema are required */
    size_t n_tools;
    bool is_direct;
} peg_toolset_def;
#define PEG_TOOLSET_DEF_INIT .size = sizeof(peg_toolset_def)

/* When it returns, the toolset outlives the gateway. ret_stream_id (may be NULL): freed with
 * peg_free(). Providers do this by themselves. */
PEG_API PEG_MUST_USE peg_status peg_client_register(peg_client *client, peg_ctx *ctx,
                                                    const char *registry,
                                                    const peg_toolset_def *def,
                                                    char **ret_stream_id, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_client_unregister(peg_client *client, peg_ctx *ctx,
                                                      const char *registry, const char *toolset,
                                                      peg_error *reterr);

/* ---- for operators of a gateway ------------------------------------------------------------- */

typedef struct peg_remote_outcomes {
    uint64_t n_result;
    uint64_t n_error;
    uint64_t n_timeout;
    uint64_t n_canceled;
    uint64_t n_unknown;
    uint64_t n_refused;
} peg_remote_outcomes;

typedef struct peg_toolset_status {
    peg_toolset_info toolset;
    unsigned n_in_flight;
    unsigned n_queued;
    peg_remote_outcomes outcomes; /* since the node started */
    double calls_per_s;           /* over the last ten seconds */
    double p50_ms;                /* since the node started */
    double p99_ms;
} peg_toolset_status;

/* A node of a registry, as it last reported itself, which it does three times in a lease. */
typedef struct peg_node {
    const char *id;
    const char *address; /* where it listens; "" before it does */
    const char *version;
    const char *state;  /* "starting", "serving", "draining"; "lost": its lease is over */
    const char *store;  /* "memory", "sqlite", ... */
    unsigned protocol;  /* between nodes */
    unsigned n_threads; /* event loops */
    bool answers;       /* it is the one that was asked */
    bool pings;         /* it is the one that pings direct toolsets */
    int64_t started_ms; /* Unix time */
    int64_t lease_ms;   /* after so long without a report it counts as lost */
    int64_t lease_left_ms;
    unsigned n_providers; /* attached to it */
    unsigned n_in_flight; /* calls that it coordinates */
    unsigned n_queued;
    uint64_t n_settled;    /* calls that ended, since it started */
    uint64_t n_unknown;    /* of these: outcome_unknown */
    int64_t round_trip_us; /* to Redis, the last one; 0: none */
    double calls_per_s;    /* over the last ten seconds */
    peg_remote_outcomes outcomes;
} peg_node;

/* Of all nodes of a registry that are not lost, together. */
typedef struct peg_registry_totals {
    unsigned n_nodes;
    unsigned n_in_flight;
    unsigned n_queued;
    double calls_per_s;
    peg_remote_outcomes outcomes;
} peg_registry_totals;

/* n_toolsets, n_healthy and n_providers, and the toolsets with their health, are of the registry;
 * so are `nodes` and `totals`. The rest is of the node that answers. */
typedef struct peg_node_status {
    const char *registry; /* of peg_client_registry */
    const char *node_id;
    const char *registry_name; /* the gateway's own */
    const char *version;
    const char *address;
    const char *bus;    /* "local", "redis" */
    const char *store;  /* "memory", "sqlite", ... */
    int64_t started_ms; /* Unix time */
    bool is_draining;
    unsigned n_threads;
    unsigned n_toolsets;
    unsigned n_healthy;
    unsigned n_providers;
    unsigned n_in_flight;
    unsigned n_queued;
    uint64_t n_connections;
    uint64_t n_late_results;
    uint64_t memory_bytes;
    double calls_per_s;
    peg_remote_outcomes outcomes;
    const peg_toolset_status *toolsets; /* by name */
    size_t n_toolset_statuses;
    const peg_node *nodes; /* by id */
    size_t n_nodes;
    peg_registry_totals totals;
} peg_node_status;

/* For operators: with a token of `pegboard token new --admin`, a certificate whose name is among
 * the gateway's admin_names, on its unix socket, or on this machine if it has no authentication.
 * Others get E_PERMISSION_DENIED. */

/* As peg_client_unregister(), of any owner's toolset. */
PEG_API PEG_MUST_USE peg_status peg_client_admin_unregister(peg_client *client, peg_ctx *ctx,
                                                            const char *registry,
                                                            const char *toolset, peg_error *reterr);
/* Of the registry, and of the node that answers. */
PEG_API PEG_MUST_USE peg_status peg_client_status(peg_client *client, peg_ctx *ctx,
                                                  const char *registry, bool with_toolsets,
                                                  peg_node_status **ret_status, peg_error *reterr);
PEG_API peg_node_status *peg_node_status_free(peg_node_status *status);

typedef struct peg_node_list {
    const char *registry;      /* of peg_client_registry */
    const char *registry_name; /* the gateway's own */
    const char *bus;           /* "local", "redis" */
    const peg_node *nodes;     /* by id */
    size_t n_nodes;
} peg_node_list;

/* All nodes of the registry, whichever is asked. */
PEG_API PEG_MUST_USE peg_status peg_client_nodes(peg_client *client, peg_ctx *ctx,
                                                 const char *registry, peg_node_list **ret_list,
                                                 peg_error *reterr);
PEG_API peg_node_list *peg_node_list_free(peg_node_list *list);
/* The node takes no new calls and providers, finishes what runs, then stops; this returns when it
 * has begun. Any node may be asked about any other. `drain_ms`: how long what runs may take; 0: as
 * the node was started. PEG_ENOTFOUND (E_NOT_FOUND): there is no such node. */
PEG_API PEG_MUST_USE peg_status peg_client_drain_node(peg_client *client, peg_ctx *ctx,
                                                      const char *registry, const char *node_id,
                                                      int64_t drain_ms, peg_error *reterr);

/* ---- remote tools as local ones ------------------------------------------------------------- */

typedef struct peg_import_options {
    size_t size;          /* set by PEG_IMPORT_OPTIONS_INIT */
    const char *registry; /* [all] */
    const char *prefix;   /* put before the name of each tool [""] */
    bool qualifies;       /* names are "<toolset>.<tool>", behind the prefix */
    bool skips_unusable;  /* leave out what cannot be a tool here; the log says so */
    bool trusted;         /* as of peg_tool_def */
    bool inline_result;   /* as of peg_tool_def */
    /* What a tool says while it runs becomes PEG_EVENT_LOG events of the call's context: kind
     * "tool_output", the payload {"tool", "call_id", "stream"}. */
    bool with_output;
    int64_t timeout_ms; /* of tools that have none of their own [the run's] */
    /* Names each tool, into 257 bytes, instead of the prefix and qualifies; false: it cannot be a
     * tool here [none] */
    bool (*name)(const char *toolset, const char *tool, char *ret_name, void *user);
    void *user;
} peg_import_options;
#define PEG_IMPORT_OPTIONS_INIT .size = sizeof(peg_import_options)

/*
 * A new registry with the tools of one toolset, or of all that a glob names (forms as in
 * peg_client_registry). Their handlers call through the client, of which each tool holds a
 * reference: schemas as given, arguments as sent with defaults filled in, the deadline and
 * cancellation of the call, its server-data, its trace context; hints, version, examples, title (in
 * the meta) and artifact kind (one of the library's) as registered. Media and bytes come as they
 * are; media of the tier first-party is third-party-private here, unless `trusted` is set, and text
 * beside it a note of the first. What the tool asks while it runs is asked by a gate of
 * the call, if its context has a listener (gate.h). A tool that says of itself
 * neither that it is read-only nor idempotent nor additive counts as destructive. The identity of
 * a call is the run_id (else the turn_id) of its context and the key of its record, so that one
 * that is resumed, or whose connection broke, attaches to what was started. A further attempt after
 * a failure that is known is a call of its own. PEG_ENOTFOUND (E_NOT_FOUND): nothing has that name;
 * PEG_EEXISTS (E_TOOL_ALREADY_REGISTERED): two tools of one name: set qualifies or prefix;
 * PEG_EINVAL as peg_tool_new(), with the name.
 */
PEG_API PEG_MUST_USE peg_status peg_client_import(peg_client *client, peg_ctx *ctx,
                                                  const char *toolset,
                                                  const peg_import_options *options,
                                                  peg_registry **ret_registry, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
