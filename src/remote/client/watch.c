/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watching: a thread for each registry reads its stream, and makes it again when it breaks. After a
 * break the gateway reports everything that is there, so events may be late, but none is missed.
 */

#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "grpc/message.h"
#include "remote/client/remote.h"

enum { FIRST_PAUSE_MS = 250, MAX_PAUSE_MS = 5000 };

/* One registry's; its thread's own while that runs. */
struct watcher {
    struct peg_watch *watch;
    struct remote__registry *registry;
    pthread_t thread;
    struct grpc_backoff backoff;
    bool changes_only;
    uint64_t began;       /* for the cache: when the whole state began to come */
    const char *reported; /* the last code reported as LOST; NULL: it is not lost */
};

/* Owned. */
struct peg_watch {
    peg_client *client; /* a reference */
    peg_watch_fn fn;
    void *user;
    peg_ctx *ctx;
    peg_cancel *cancel;
    struct peg__arena arena; /* of the tags, and the watchers */
    const char **tags;
    size_t n_tags;
    struct watcher *watchers;
    size_t n_watchers; /* whose threads run */
};

/* ---- reporting ---- */

static void report_event(const struct watcher *w, peg_watch_kind kind,
                         const peg_toolset_info *toolset, const peg_error *error)
{
    const peg_watch_event event = {
        .kind = kind, .registry = w->registry->name, .toolset = toolset, .error = error};

    w->watch->fn(&event, w->watch->user);
}

/* Once for each reason, however often it is tried in vain. */
static void report_lost(struct watcher *w, const peg_error *error)
{
    if (w->reported && strcmp(w->reported, error->code) == 0)
        return;
    w->reported = error->code;
    report_event(w, PEG_WATCH_LOST, NULL, error);
}

/* False for those without a toolset, and of a later version. */
static bool read_watch_kind(unsigned kind, peg_watch_kind *ret_kind)
{
    static const unsigned after[] = {
        [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_PRESENT] = PEG_WATCH_PRESENT + 1,
        [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_REGISTERED] = PEG_WATCH_REGISTERED + 1,
        [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_CHANGED] = PEG_WATCH_CHANGED + 1,
        [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_UNREGISTERED] = PEG_WATCH_UNREGISTERED + 1,
        [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_HEALTH] = PEG_WATCH_HEALTH + 1,
    };

    if (kind >= sizeof(after) / sizeof(after[0]) || !after[kind])
        return false;
    *ret_kind = (peg_watch_kind)(after[kind] - 1);
    return true;
}

static void report_toolset(struct watcher *w, const Pegboard__V1__WatchResponse *response)
{
    peg_watch_kind kind;
    peg_toolset_info info;

    if (!response->toolset || !read_watch_kind((unsigned)response->kind, &kind) ||
        !remote__registry_admits(w->registry, peg__str(response->toolset->name)))
        return;
    remote__info(w->registry, response->toolset, &info);
    if (kind == PEG_WATCH_CHANGED || kind == PEG_WATCH_UNREGISTERED)
        remote__cache_drop(w->registry, peg__str(info.name));
    if (kind != PEG_WATCH_UNREGISTERED)
        remote__cache_check(w->registry, peg__str(info.name), info.revision);
    report_event(w, kind, &info, NULL);
}

/* Toolsets that were unregistered during a break are not reported: all others were. */
static void report_ready(struct watcher *w)
{
    if (!w->changes_only && !w->watch->n_tags)
        remote__cache_end_all(w->registry, w->began);
    report_event(w, PEG_WATCH_READY, NULL, NULL);
}

/* False: the gateway has nothing more to say on this stream. */
static bool take_watch_event(struct watcher *w, peg_str bytes, struct peg__arena *arena,
                             peg_error *ret_why)
{
    const ProtobufCMessage *message;
    const Pegboard__V1__WatchResponse *response;

    if (grpc_message_unpack(&pegboard__v1__watch_response__descriptor, arena, bytes, &message,
                            ret_why))
        return false;
    response = (const Pegboard__V1__WatchResponse *)message;
    if (response->kind == PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_LOST) {
        peg__fail(ret_why, PEG_ELIMIT, "E_OVERLOADED",
                  "the watcher reads too slowly: everything is reported again");
        return false;
    }
    w->reported = NULL;
    grpc_backoff_reset(&w->backoff);
    if (response->kind == PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_READY)
        report_ready(w);
    else
        report_toolset(w, response);
    return true;
}

/* ---- reading ---- */

/* Until the stream ends. False: the watch was stopped. */
static bool read_stream(struct watcher *w, struct remote__request *req, peg_error *ret_why)
{
    struct peg__arena arena = {0};
    enum remote__received received;
    peg_str bytes;
    bool goes_on = true;

    while (goes_on && (received = remote__request_next(req, w->watch->ctx, INT64_MAX, &bytes)) ==
                          REMOTE_MESSAGE) {
        goes_on = take_watch_event(w, bytes, &arena, ret_why);
        peg__arena_reset(&arena);
    }
    peg__arena_free(&arena);
    remote__request_stop(req);
    if (goes_on && received == REMOTE_OVER && !remote__request_error(req, ret_why))
        peg__fail(ret_why, PEG_EIO, "E_SERVICE_UNAVAILABLE", "the gateway at %s ended the watch",
                  w->registry->address);
    return !goes_on || received == REMOTE_OVER;
}

/* False: the watch was stopped. */
static bool watch_once(struct watcher *w, peg_error *ret_why)
{
    Pegboard__V1__WatchRequest request = PEGBOARD__V1__WATCH_REQUEST__INIT;
    struct remote__request req = {
        .registry = w->registry,
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_WATCH],
        .request = &request.base,
    };
    bool goes_on = true;

    request.tags = peg__unconst(w->watch->tags);
    request.n_tags = w->watch->n_tags;
    request.changes_only = w->changes_only;
    w->began = remote__cache_begin_all(w->registry);
    if (!remote__request_start(&req, ret_why))
        goes_on = read_stream(w, &req, ret_why);
    if (req.status.code == GRPC_UNAUTHENTICATED)
        remote__registry_renew(w->registry, req.authorization);
    /* From the first event on, a break may hide changes. */
    w->changes_only &= !req.was_sent || req.status.code == GRPC_UNAUTHENTICATED;
    remote__request_free(&req);
    return goes_on;
}

static void *run_watcher(void *user)
{
    struct watcher *w = user;
    peg_error why;

    while (watch_once(w, &why)) {
        report_lost(w, &why);
        if (peg_ctx_wait(w->watch->ctx, grpc_backoff_take_ms(&w->backoff), NULL))
            break;
    }
    return NULL;
}

/* ---- life ---- */

peg_watch *peg_watch_free(peg_watch *watch)
{
    if (!watch)
        return NULL;
    if (watch->cancel)
        peg_cancel_fire(watch->cancel, "the watch is over");
    for (size_t i = 0; i < watch->n_watchers; i++)
        pthread_join(watch->watchers[i].thread, NULL);
    peg_ctx_unref(watch->ctx);
    peg_cancel_unref(watch->cancel);
    peg_client_unref(watch->client);
    peg__arena_free(&watch->arena);
    peg__free(watch);
    return NULL;
}

static peg_status copy_watch_tags(peg_watch *watch, const char *const *tags, peg_error *reterr)
{
    const peg_status status = remote__tags(tags, &watch->n_tags, reterr);

    if (status)
        return status;
    watch->tags = peg__arena_copy_list(&watch->arena, tags, NULL);
    return watch->tags ? PEG_OK : peg__fail_nomem(reterr);
}

/* Signals are for the host's threads. */
static peg_status start_thread(struct watcher *w, peg_error *reterr)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&w->thread, NULL, run_watcher, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return peg__fail(reterr, PEG_EIO, "E_CLIENT",
                         "the system has no thread for a watch (error %d): end some", failed);
    w->watch->n_watchers++;
    return PEG_OK;
}

static peg_status start_watchers(peg_watch *watch, size_t first, size_t end, bool changes_only,
                                 peg_error *reterr)
{
    const size_t n = end - first;
    uint64_t seed = 0;
    peg_status status = PEG_OK;

    watch->watchers = peg__arena_alloc_zero(&watch->arena, n * sizeof(*watch->watchers));
    if (!watch->watchers)
        return peg__fail_nomem(reterr);
    if (!peg__random(&seed, sizeof(seed)))
        return peg__fail_no_randomness(reterr);
    for (size_t i = 0; i < n && !status; i++) {
        struct watcher *w = &watch->watchers[i];

        w->watch = watch;
        w->registry = &watch->client->registries[first + i];
        w->changes_only = changes_only;
        grpc_backoff_init(&w->backoff, FIRST_PAUSE_MS, MAX_PAUSE_MS, seed + i);
        status = start_thread(w, reterr);
    }
    return status;
}

peg_status peg_client_watch(peg_client *client, const peg_watch_options *options, peg_watch_fn fn,
                            void *user, peg_watch **ret_watch, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_WATCH_OPTIONS_INIT, reterr);
    static const peg_watch_options by_default = {PEG_WATCH_OPTIONS_INIT};
    const peg_watch_options *o = options ? options : &by_default;
    size_t first;
    size_t end;
    peg_watch *watch;
    peg_status status;

    if (!fn)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "fn is required: it receives the changes");
    status = remote__registries(client, o->registry, &first, &end, reterr);
    if (status)
        return status;
    watch = peg__alloc_zero(1, sizeof(*watch));
    if (!watch)
        return peg__fail_nomem(reterr);
    watch->client = peg_client_ref(client);
    watch->fn = fn;
    watch->user = user;
    if ((status = peg_ctx_with_cancel(NULL, &watch->ctx, &watch->cancel, reterr)) ||
        (status = copy_watch_tags(watch, o->tags, reterr)) ||
        (status = start_watchers(watch, first, end, o->changes_only, reterr)))
        peg_watch_free(watch);
    else
        *ret_watch = watch;
    return status;
}

const char *peg_watch_kind_name(peg_watch_kind kind)
{
    static const char *const names[] = {
        [PEG_WATCH_PRESENT] = "present",
        [PEG_WATCH_READY] = "ready",
        [PEG_WATCH_REGISTERED] = "registered",
        [PEG_WATCH_CHANGED] = "changed",
        [PEG_WATCH_UNREGISTERED] = "unregistered",
        [PEG_WATCH_HEALTH] = "health",
        [PEG_WATCH_LOST] = "lost",
    };

    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}
