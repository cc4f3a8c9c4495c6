/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The statuses have one lock. A watch belongs to the loop of its call, in a list with the same
 * lock:
 *
 *   set, any thread:                status changed -> post a message to the loop of each watch
 * (once) on_status_message, on the loop: find the status -> report it, if it differs from the last
 * one
 *
 * A watch that was posted stays until its message arrives, though its call may have ended, and the
 * health may be freed.
 */

#include "grpc/server/server.h"

#include <pthread.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/health/v1/health.grpc.h"

typedef Grpc__Health__V1__HealthCheckRequest request_t;
typedef Grpc__Health__V1__HealthCheckResponse response_t;
typedef Grpc__Health__V1__HealthListResponse__StatusesEntry list_entry_t;

/* A Watch that runs. Owned by its call, then by its message. */
struct watch {
    struct net_message message;
    struct grpc_health *health; /* NULL: the call has ended */
    struct grpc_call *call;
    struct net_loop *loop;
    peg_str service; /* borrowed from the request, which lives as long as the call */
    bool has_told;
    enum grpc_health_status told;
    bool is_posted;     /* behind the lock */
    struct watch *next; /* behind the lock */
    struct watch *prev;
};

struct grpc_health {
    struct grpc_health_v1_health_handlers handlers;
    pthread_mutex_t lock;
    struct peg__map statuses; /* name -> one of `values` */
    struct watch *watches;
    bool is_shut_down;
};

/* What the map points to: statuses need no memory of their own. */
static const enum grpc_health_status values[] = {
    GRPC_HEALTH_UNKNOWN,
    GRPC_SERVING,
    GRPC_NOT_SERVING,
};

/* ---- behind the lock ------------------------------------------------------------------------ */

static enum grpc_health_status find_status(const struct grpc_health *health, peg_str service)
{
    const enum grpc_health_status *value = peg__map_get(&health->statuses, service);

    if (!value)
        return GRPC_SERVICE_UNKNOWN;
    return health->is_shut_down ? GRPC_NOT_SERVING : *value;
}

/* Wakes the watches of a service; of all if it is NULL. */
static void wake_watchers(struct grpc_health *health, const peg_str *service)
{
    for (struct watch *watch = health->watches; watch; watch = watch->next) {
        if (watch->is_posted || (service && !peg__str_eq(watch->service, *service)))
            continue;
        watch->is_posted = true;
        net_loop_post(watch->loop, &watch->message);
    }
}

/* ---- Check and List ------------------------------------------------------------------------- */

static response_t make_response(enum grpc_health_status status)
{
    response_t response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    return response;
}

static void on_check(struct grpc_call *call, const request_t *request, void *user)
{
    const enum grpc_health_status status = grpc_health_get(user, peg__str(request->service));
    const response_t response = make_response(status);

    if (status == GRPC_SERVICE_UNKNOWN)
        grpc_call_fail(call, GRPC_NOT_FOUND, "the health of '%s' is not known", request->service);
    else
        grpc_health_v1_health_check_reply(call, &response);
}

/* Room for the answer of List, in the call's arena: an entry and a status for each service. */
struct listing {
    list_entry_t *entries;
    response_t *statuses;
    list_entry_t **list;
    size_t n;
};

static bool reserve_service_status(struct listing *listing, struct peg__arena *arena)
{
    enum { N = PEG_LIMIT_GRPC_HEALTH_LISTED };

    listing->entries = peg__arena_alloc(arena, N * sizeof(*listing->entries));
    listing->statuses = peg__arena_alloc(arena, N * sizeof(*listing->statuses));
    listing->list = peg__arena_alloc(arena, N * sizeof(*listing->list));
    return listing->entries && listing->statuses && listing->list;
}

/* Behind the lock. Names are copied: they may be forgotten before the answer is packed. */
static enum grpc_code fill_listing(const struct grpc_health *health, struct listing *listing,
                                   struct peg__arena *arena)
{
    if (health->statuses.n > PEG_LIMIT_GRPC_HEALTH_LISTED)
        return GRPC_RESOURCE_EXHAUSTED;
    PEG__MAP_EACH(&health->statuses, found)
    {
        const size_t i = listing->n++;
        list_entry_t *entry = &listing->entries[i];

        listing->statuses[i] = make_response(find_status(health, found->name));
        grpc__health__v1__health_list_response__statuses_entry__init(entry);
        entry->key = peg__arena_copy(arena, found->name);
        entry->value = &listing->statuses[i];
        listing->list[i] = entry;
        if (!entry->key)
            return GRPC_INTERNAL;
    }
    return GRPC_OK;
}

static void list(struct grpc_call *call, const Grpc__Health__V1__HealthListRequest *request,
                 void *user)
{
    Grpc__Health__V1__HealthListResponse response = GRPC__HEALTH__V1__HEALTH_LIST_RESPONSE__INIT;
    struct peg__arena *arena = grpc_call_arena(call);
    struct grpc_health *health = user;
    struct listing listing = {0};
    enum grpc_code code = GRPC_INTERNAL;

    (void)request;
    if (reserve_service_status(&listing, arena)) {
        pthread_mutex_lock(&health->lock);
        code = fill_listing(health, &listing, arena);
        pthread_mutex_unlock(&health->lock);
    }
    if (code == GRPC_RESOURCE_EXHAUSTED) {
        grpc_call_fail(call, code, "there are more than %d services: check them one by one",
                       PEG_LIMIT_GRPC_HEALTH_LISTED);
        return;
    }
    if (code) {
        grpc_call_fail(call, code, "out of memory");
        return;
    }
    response.n_statuses = listing.n;
    response.statuses = listing.list;
    grpc_health_v1_health_list_reply(call, &response);
}

/* ---- Watch ---------------------------------------------------------------------------------- */

/* On the loop. A slow client receives the status later, and only the current one. */
static void report_status(struct watch *watch)
{
    struct grpc_health *health = watch->health;
    enum grpc_health_status status;
    bool is_last;

    if (!grpc_call_await_window(watch->call))
        return;
    pthread_mutex_lock(&health->lock);
    status = find_status(health, watch->service);
    is_last = health->is_shut_down;
    pthread_mutex_unlock(&health->lock);

    if (!watch->has_told || watch->told != status) {
        const response_t response = make_response(status);
        peg_error error;

        watch->has_told = true;
        watch->told = status;
        if (grpc_health_v1_health_watch_send(watch->call, &response, &error)) {
            grpc_call_fail(watch->call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
            return;
        }
    }
    if (is_last)
        grpc_call_fail(watch->call, GRPC_UNAVAILABLE, "the server is shutting down");
}

static void on_status_message(struct net_message *message)
{
    struct watch *watch = (struct watch *)message; /* its first member */
    struct grpc_health *health = watch->health;

    if (!health) {
        peg__free(watch);
        return;
    }
    pthread_mutex_lock(&health->lock);
    watch->is_posted = false;
    pthread_mutex_unlock(&health->lock);
    report_status(watch);
}

static void watch_service(struct grpc_call *call, const request_t *request, void *user)
{
    struct grpc_health *health = user;
    struct watch *watch = peg__alloc_zero(1, sizeof(*watch));

    if (!watch) {
        grpc_call_fail(call, GRPC_INTERNAL, "out of memory");
        return;
    }
    watch->message.fn = on_status_message;
    watch->health = health;
    watch->call = call;
    watch->loop = grpc_call_loop(call);
    watch->service = peg__str(request->service);
    grpc_call_set_state(call, watch);

    pthread_mutex_lock(&health->lock);
    PEG_LIST_PUSH(health->watches, watch, next, prev);
    pthread_mutex_unlock(&health->lock);
    report_status(watch);
}

static void on_watch_writable(struct grpc_call *call, void *user)
{
    struct watch *watch = grpc_call_state(call);

    (void)user;
    if (watch)
        report_status(watch);
}

static void on_watch_end(struct grpc_call *call, void *user)
{
    struct watch *watch = grpc_call_state(call);
    struct grpc_health *health = user;
    bool is_posted;

    if (!watch)
        return;
    grpc_call_set_state(call, NULL);
    pthread_mutex_lock(&health->lock);
    PEG_LIST_REMOVE(health->watches, watch, next, prev);
    is_posted = watch->is_posted;
    pthread_mutex_unlock(&health->lock);

    watch->health = NULL;
    watch->call = NULL;
    if (!is_posted)
        peg__free(watch);
}

/* ---- its life ------------------------------------------------------------------------------- */

struct grpc_health *grpc_health_free(struct grpc_health *health)
{
    if (!health)
        return NULL;
    peg__map_free(&health->statuses);
    pthread_mutex_destroy(&health->lock);
    peg__free(health);
    return NULL;
}

/* Anybody may ask. */
static void bound_requests(struct grpc_server *server)
{
    const struct grpc_service *service = &grpc_health_v1_health_service;

    for (size_t i = 0; i < service->n_methods; i++)
        grpc_server_bound(server, service->methods[i].path,
                          &(struct grpc_method_bounds){
                              .max_message_bytes = PEG_LIMIT_GRPC_HEALTH_BYTES,
                              .max_waiting_bytes = PEG_LIMIT_GRPC_HEALTH_BYTES,
                              .waits_for_window = !service->methods[i].server_streams,
                              .keeps_connection = service->methods[i].server_streams,
                          });
}

peg_status grpc_health_new(struct grpc_server *server, struct grpc_health **ret_health,
                           peg_error *reterr)
{
    struct grpc_health *health = peg__alloc_zero(1, sizeof(*health));
    peg_status status;

    if (!health)
        return peg__fail_nomem(reterr);
    health->handlers = (struct grpc_health_v1_health_handlers){
        .user = health,
        .check = on_check,
        .list = list,
        .watch = watch_service,
        .watch_on_writable = on_watch_writable,
        .watch_on_end = on_watch_end,
    };
    health->statuses.max = PEG_LIMIT_GRPC_HEALTH_SERVICES;
    pthread_mutex_init(&health->lock, NULL);
    status = grpc_health_set(health, peg__str(""), GRPC_SERVING, reterr);
    if (!status)
        status = grpc_health_v1_health_add(server, &health->handlers, reterr);
    if (!status)
        bound_requests(server);
    if (status) {
        grpc_health_free(health);
        return status;
    }
    *ret_health = health;
    return PEG_OK;
}

peg_status grpc_health_set(struct grpc_health *health, peg_str service,
                           enum grpc_health_status status, peg_error *reterr)
{
    peg_status failed;

    if ((size_t)status >= sizeof(values) / sizeof(values[0]))
        return peg__fail(reterr, PEG_EINVAL, "E_GRPC_INVALID",
                         "a service cannot be set to status %d: grpc_health_forget() it",
                         (int)status);
    pthread_mutex_lock(&health->lock);
    failed = peg__map_put(&health->statuses, service, peg__unconst(&values[status]), NULL);
    if (!failed)
        wake_watchers(health, &service);
    pthread_mutex_unlock(&health->lock);

    if (failed == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_GRPC_INVALID",
                         "health has at most %d services: forget some",
                         PEG_LIMIT_GRPC_HEALTH_SERVICES);
    return failed ? peg__fail_nomem(reterr) : PEG_OK;
}

void grpc_health_forget(struct grpc_health *health, peg_str service)
{
    pthread_mutex_lock(&health->lock);
    if (peg__map_remove(&health->statuses, service, NULL))
        wake_watchers(health, &service);
    pthread_mutex_unlock(&health->lock);
}

enum grpc_health_status grpc_health_get(const struct grpc_health *health, peg_str service)
{
    struct grpc_health *locked = peg__unconst(health);
    enum grpc_health_status status;

    pthread_mutex_lock(&locked->lock);
    status = find_status(health, service);
    pthread_mutex_unlock(&locked->lock);
    return status;
}

void grpc_health_shut_down(struct grpc_health *health)
{
    pthread_mutex_lock(&health->lock);
    health->is_shut_down = true;
    wake_watchers(health, NULL);
    pthread_mutex_unlock(&health->lock);
}
