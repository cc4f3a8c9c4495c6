/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_PROVIDER_H
#define PEGBOARD_PROVIDER_H

/*
 * Offers the tools of a registry to a gateway, as one toolset:
 *
 *   peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "weather",
 * .handles_signals = true}; status = peg_provider_serve(registry, &options, &error);      until
 * SIGTERM, drained
 *
 * or, in a program with a main loop of its own:
 *
 *   status = peg_provider_new(registry, &options, &provider, &error);
 *   status = peg_provider_start(provider, &error);
 *   ...
 *   peg_provider_stop(provider);                                  no new calls, please
 *   status = peg_provider_wait(provider, &error);                 those that run are finished
 *   provider = peg_provider_free(provider);
 *
 * It follows its registry: a tool that is registered, replaced, hidden or unregistered later is
 * offered, or is not any more, as soon as the gateway has heard of it (PEG_PROVIDER_OFFERED).
 *
 * It opens no port: it connects to the gateway, and again when the connection breaks. What it runs
 * then goes on, and it reports what it has finished when it is back. A call is started at most
 * once, however often it is handed over, unless its tool is idempotent or read_only.
 *
 * A provider has one thread for the connection, which answers pings at once whatever the handlers
 * do, and `concurrency` threads for handlers. They block all signals. Several toolsets are several
 * providers. Needs libpegboard-remote.
 */

#include <pegboard/registry.h>
#include <pegboard/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* (peg_vendor is a vendor of models: definitions.h.) */
typedef struct peg_provider peg_provider;

/* ---- what happens ---------------------------------------------------------------------------- */

typedef enum peg_provider_event_kind {
    PEG_PROVIDER_ATTACHED = 0, /* the gateway has the toolset, calls may come: address */
    PEG_PROVIDER_LOST,         /* no connection, or refused: message; tried again in retry_ms */
    PEG_PROVIDER_CALL_START,   /* tool, call_id, caller */
    /* And code, duration_ms, n_bytes of the result. E_PROVIDER_OUTDATED: not run, and given back,
     * as the gateway has another version of the toolset. */
    PEG_PROVIDER_CALL_END,
    PEG_PROVIDER_CALL_REFUSED,   /* not started: code says why; tool, call_id, caller */
    PEG_PROVIDER_GATEWAY_DRAINS, /* it attaches elsewhere: address */
    PEG_PROVIDER_DRAINS,         /* peg_provider_stop() was heard */
    PEG_PROVIDER_OFFERED,        /* the gateway has the tools that the registry has now: address */
    PEG_PROVIDER_OFFER_REFUSED,  /* it keeps those that it had: code, message, address */
} peg_provider_event_kind;

/* Plain data, borrowed for the time of the call. No payload is ever part of it. */
typedef struct peg_provider_event {
    peg_provider_event_kind kind;
    const char *toolset;
    const char *address; /* of the gateway, "" if none */
    const char *tool;    /* "" where there is no call */
    const char *call_id;
    const char *caller; /* the principal */
    const char *code;   /* "" is success */
    const char *message;
    int64_t duration_ms;
    int64_t retry_ms;
    size_t n_bytes;
} peg_provider_event;

/* ---- making it ---------------------------------------------------------------------------------
 */

/* Only toolset is required. Zero means the default, told here in brackets. Everything is copied
 * but users and counted things, which are referenced. */
typedef struct peg_provider_options {
    size_t size;             /* set by PEG_PROVIDER_OPTIONS_INIT */
    const char *toolset;     /* [A-Za-z0-9_.:/-]{1,256} */
    const char *description; /* [""] */
    const char *version;     /* such as "1.2.0"; [none] */
    const char *const *tags; /* NULL-terminated [none] */

    /* HOST:PORT, unix:PATH, or several with commas between them, the nodes of one registry. It
     * begins at one of them, chosen at random, so that the providers of a toolset spread; when that
     * one goes away or drains, it attaches to the next one, with what it runs ["127.0.0.1:9090"] */
    const char *address;
    const char *token;      /* shown to the gateway [none] */
    const char *token_file; /* holds one; read at the start, and each time it attaches [none] */
    bool uses_tls;          /* on by itself if one of the next three is set */
    const char *ca_file;    /* PEM: whom to trust [the system's roots] */
    const char *cert_file;  /* PEM: our own certificate [none] */
    const char *key_file;   /* PEM: its key */
    const char *tls_host;   /* whom the certificate must name [the host of the address] */

    unsigned concurrency; /* handlers at once [4]; at most 256 */
    /* Calls that may wait here for a handler [as many as concurrency]; at most 10,000 with it.
     * Those that wait here count as started for the gateway, so few is right. */
    unsigned max_queued;
    /* Handlers run on the thread of the connection: quicker, for those that never wait. A handler
     * that takes its time delays pings, and the gateway gives up on the toolset. There are then no
     * other threads, and up to concurrency [1,000] calls are on their way at once. */
    bool runs_inline;
    /* peg_provider_serve() and _wait(): SIGTERM and SIGINT stop it, the second one at once. One
     * provider of a process can have it. */
    bool handles_signals;
    int64_t drain_ms;   /* for calls that run when it is stopped [30,000] */
    int64_t backoff_ms; /* after the first failure to connect, then 1.6 times longer [500] */
    int64_t
        max_backoff_ms; /* with calls never more than a quarter of the gateway's lease [5,000] */

    /* Limits, hooks, spool and pool of each call, see run.h; its timeout is ignored, as
     * the gateway's deadline counts [peg_run_options' own]. */
    const peg_run_options *run;
    peg_ctx *ctx; /* what handlers find in their context [an empty one] */
    /* Told one at a time: of calls on the thread of their handler, of all else on that of the
     * connection, or on that of a handler that is just telling. Must not block, as the thread has
     * other things to do: what waits, such as writing to a pipe, belongs to a thread of the host.
     * Meanwhile handlers wait to be reported, and at most 256 events of the connection; more are
     * dropped. Must not call back, but for peg_provider_stop() and _look(). */
    void (*on_event)(const peg_provider_event *event, void *user);
    void *user;

    /* A span for each call goes to this collector, by OTLP over HTTP with protobuf: children of the
     * trace context that came with the call, and parents of what its handler calls.
     * http://HOST:PORT or https://HOST:PORT; /v1/traces is added [none]. */
    const char *otlp_endpoint;
    /* Which part of the calls that come without a trace context begin a trace, up to 1; below 0:
     * none. The others are sampled as their caller says [1]. */
    double otlp_sample;
} peg_provider_options;
#define PEG_PROVIDER_OPTIONS_INIT .size = sizeof(peg_provider_options)

/* Connects to nothing yet. PEG_EINVAL (E_PROVIDER, `where` names the field; E_OTLP),
 * PEG_EPARSE (E_ADDRESS), PEG_EIO (E_TLS_CONFIG; E_OTLP: no thread for spans), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_provider_new(peg_registry *registry,
                                                 const peg_provider_options *options,
                                                 peg_provider **ret_provider, peg_error *reterr);
/* Stops it at once if it runs, and waits for handlers to return. Not from a handler or on_event. */
PEG_API peg_provider *peg_provider_free(peg_provider *provider);

/* ---- its life
 * ------------------------------------------------------------------------------------
 */

/* Starts its threads and attaches as soon as there is a gateway, however long that takes. Once.
 * PEG_ESTATE (E_PROVIDER), PEG_EIO (E_PROVIDER: its token file cannot be read; or the
 * system refused a thread), PEG_EINVAL, PEG_ELIMIT (E_PROVIDER: it does not hold one token,
 * or has more than 8 KiB), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_provider_start(peg_provider *provider, peg_error *reterr);
/* Any thread; async-signal-safe. The first one drains: no new calls, those that it has are
 * finished, for drain_ms; then, or at the second one, they are canceled. Returns at once. */
PEG_API void peg_provider_stop(peg_provider *provider);
/* It cannot serve for now, for example because what its handlers need is away: no new calls, those
 * that run are finished, and it leaves the gateway, where the toolset is unhealthy unless another
 * provider has it. Until peg_provider_resume(), which attaches it again. Any thread; both return at
 * once, and the last one counts. A direct toolset, which shares its stream, goes on. */
PEG_API void peg_provider_pause(peg_provider *provider);
PEG_API void peg_provider_resume(peg_provider *provider);
/* Waits for the end. PEG_OK: stopped, and every call that it took was answered. PEG_ETIMEOUT
 * (E_PROVIDER_DRAIN): it had to give calls up. PEG_EHOST (E_PROVIDER_REFUSED): the gateway refused
 * the toolset before it was ever attached, in the gateway's words; (E_PROVIDER_UNREGISTERED): the
 * toolset was unregistered while it was attached. PEG_ESTATE: it was not started, or
 * (E_PROVIDER) another one handles signals. */
PEG_API PEG_MUST_USE peg_status peg_provider_wait(peg_provider *provider, peg_error *reterr);
/* All of that, with the errors of each. */
PEG_API PEG_MUST_USE peg_status peg_provider_serve(peg_registry *registry,
                                                   const peg_provider_options *options,
                                                   peg_error *reterr);

/* ---- by streams on Redis ------------------------------------------------------------------ */

/*
 * The same for a direct toolset, which goa-ai's providers can share: calls come by the stream
 * toolset:<name>:requests on Redis, and results go to one of each call. Without it: an attached
 * toolset promises more, and needs no Redis here.
 *
 *   peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = "redis:6379"};
 *   status = peg_provider_serve_streams(registry, &options, &streams, &error);
 *
 * It registers the toolset at the gateway of `address`, answers pings there, and reads calls as one
 * of the group of the toolset's providers. Of one that dies, another takes the calls over after
 * grace_ms and starts them again, so a call may be started more than once: `attempt` of its
 * peg_provider_call is then 2. A call that runs for long is renewed, and stays here.
 *
 * Events are those above: PEG_PROVIDER_ATTACHED, when it has joined the group; PEG_PROVIDER_LOST,
 * for the gateway and for Redis (code E_REDIS_...). A tool's own timeout counts, or 30 s, and the
 * deadline of a call that names one; callers cannot cancel.
 */

/* Zero means the default, told here in brackets. Everything is copied. */
typedef struct peg_provider_streams {
    size_t size; /* set by PEG_PROVIDER_STREAMS_INIT */
    /* host:port, redis://, rediss:// or unix://, as the gateway's REDIS_URL ["localhost:6379"] */
    const char *redis_url;
    const char *redis_password; /* if the URL has none [none] */
    const char *redis_ca_file;  /* PEM: whom to trust, of rediss:// [the system's roots] */
    /* Results go to the gateway, by EmitToolResult, rather than to Redis; output does not. */
    bool emits_results;
    /* So long an entry may be idle before another provider takes it; the same for all providers of
     * a toolset. goa-ai calls it SinkAckGracePeriod [20,000]; 500 to 3,600,000 */
    int64_t grace_ms;
} peg_provider_streams;
#define PEG_PROVIDER_STREAMS_INIT .size = sizeof(peg_provider_streams)

/* As peg_provider_new(), for such a toolset; `streams` may be NULL. PEG_EPARSE (E_REDIS_URL) too.
 * peg_provider_start(), _stop(), _wait(), _free() and the others are the same. */
PEG_API PEG_MUST_USE peg_status peg_provider_new_streams(peg_registry *registry,
                                                         const peg_provider_options *options,
                                                         const peg_provider_streams *streams,
                                                         peg_provider **ret_provider,
                                                         peg_error *reterr);
/* All of it, as peg_provider_serve(). */
PEG_API PEG_MUST_USE peg_status peg_provider_serve_streams(peg_registry *registry,
                                                           const peg_provider_options *options,
                                                           const peg_provider_streams *streams,
                                                           peg_error *reterr);

/* Offers the tools of the registry once more, for example after the gateway has refused them. What
 * changes is offered without it. Any thread; the gateway's answer is not waited for, and comes as
 * PEG_PROVIDER_OFFERED or PEG_PROVIDER_OFFER_REFUSED. */
PEG_API void peg_provider_refresh(peg_provider *provider);

/* Another description, version and tags of the toolset, NULL for none: offered as other tools are.
 * Any thread. PEG_EINVAL (E_PROVIDER, `where` names the field), PEG_ENOMEM: nothing was
 * changed. */
PEG_API PEG_MUST_USE peg_status peg_provider_describe(peg_provider *provider,
                                                      const char *description, const char *version,
                                                      const char *const *tags, peg_error *reterr);

typedef struct peg_provider_state {
    bool is_attached;
    bool is_draining;
    unsigned n_running; /* handlers */
    unsigned n_queued;
    unsigned n_unacknowledged; /* results that the gateway has not confirmed */
    uint64_t n_calls;          /* ever started */
    uint64_t n_refused;        /* ever handed over and not started */
    uint64_t n_attached;       /* ever attached */
} peg_provider_state;

/* Any thread. */
PEG_API peg_provider_state peg_provider_info(peg_provider *provider);

/* ---- within a handler
 * ------------------------------------------------------------------------------
 */

typedef struct peg_provider_entry {
    const char *key;
    const char *value;
} peg_provider_entry;

/* What came with a call. Borrowed from the call; "" for what did not come. */
typedef struct peg_provider_call {
    const char *call_id; /* the gateway's */
    unsigned attempt;    /* from 1 */
    const char *caller;  /* the principal that calls */
    const char *run_id;
    const char *session_id;
    const char *turn_id;
    const char *tool_call_id;
    const char *parent_tool_call_id;
    const char *traceparent; /* W3C trace context, for calls that the handler makes itself */
    const char *tracestate;
    const char *baggage;
    const peg_provider_entry *metadata; /* the caller's, in order */
    size_t n_metadata;
    int64_t deadline_unix_ms; /* 0: none */
} peg_provider_call;

/* NULL if the call did not come through a provider. */
PEG_API const peg_provider_call *peg_provider_call_of(const peg_call *call);
/* The value of a key of the metadata, or "" if there is none. */
PEG_API const char *peg_provider_metadata(const peg_call *call, const char *key);

/* Says something to a caller that listens while the handler works, such as a line of a log: UTF-8,
 * on a stream of the handler's naming ("stdout", "progress"; 1 to 128 bytes). Longer texts go in
 * pieces. Results do not depend on it: while there is no gateway, or it came by no provider, it is
 * dropped. PEG_EINVAL: no name of a stream, or no UTF-8, or a NUL. PEG_ELIMIT: for a slow
 * gateway would wait more than 512 KiB of the call (PEG_LIMIT_REMOTE_CALL_DELTA_BYTES) or 1 MiB of
 * all calls (PEG_LIMIT_REMOTE_DELTA_BYTES); nothing was sent. PEG_ENOMEM. */
PEG_API peg_status peg_provider_delta(peg_call *call, const char *stream, peg_str text);

#ifdef __cplusplus
}
#endif
#endif
