/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/server/server.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/limits.h"
#include "grpc/health/v1/health.grpc.h"
#include "peer.h"

#define CHECK_PATH "/grpc.health.v1.Health/Check"
#define LIST_PATH "/grpc.health.v1.Health/List"
#define WATCH_PATH "/grpc.health.v1.Health/Watch"

/* ---- fixture: a server with nothing but its health ------------------------------------------- */

struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    struct grpc_health *health;
    struct net_address address;
    struct peer peer;
};

static void world_init_with(struct world *w, unsigned n_loops)
{
    peg_error error;

    *w = (struct world){0};
    CHECK_STATUS(net_loops_new(n_loops, &w->loops, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_new(w->loops, NULL, &w->server, &error), PEG_OK, error);
    CHECK_STATUS(grpc_health_new(w->server, &w->health, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_listen(w->server, peg__str("127.0.0.1:0"), NULL, &w->address, &error),
                 PEG_OK, error);
    peer_open(&w->peer, &w->address);
}

static void world_init(struct world *w)
{
    world_init_with(w, 2);
}

static void world_done(struct world *w)
{
    peer_close(&w->peer);
    grpc_server_free(w->server);
    grpc_health_free(w->health);
    net_loops_free(w->loops);
}

static void set(struct world *w, const char *service, enum grpc_health_status status)
{
    peg_error error;

    CHECK_STATUS(grpc_health_set(w->health, peg__str(service), status, &error), PEG_OK, error);
}

static void ask(struct peer_call *call, struct peer *peer, const char *path, const char *service)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    char name[64];

    snprintf(name, sizeof(name), "%s", service);
    request.service = name;
    peer_call(call, peer, path);
    peer_send(call, &request.base);
    peer_half_close(call);
}

/* What the next answer says, or -1: the call has ended. */
static int hear(struct peer_call *call)
{
    const Grpc__Health__V1__HealthCheckResponse *response =
        peer_next(call, &grpc__health__v1__health_check_response__descriptor);

    return response ? (int)response->status : -1;
}

/* The status that Check answers, or minus the code with which it fails. */
static int check(struct world *w, const char *service)
{
    struct peer_call call;
    int status;
    enum grpc_code code;

    ask(&call, &w->peer, CHECK_PATH, service);
    status = hear(&call);
    code = peer_end(&call);
    return code ? -(int)code : status;
}

/* ---- Check ----------------------------------------------------------------------------------- */

TEST(check_says_that_a_new_server_serves)
{
    struct world w;

    world_init(&w);

    CHECK_INT(check(&w, ""), GRPC_SERVING);
    world_done(&w);
}

TEST(check_does_not_know_what_nobody_has_set)
{
    struct world w;
    struct peer_call call;

    world_init(&w);

    ask(&call, &w.peer, CHECK_PATH, "my.Service");
    CHECK_INT(hear(&call), -1);
    CHECK_STR(peg__str(call.words), "the health of 'my.Service' is not known");
    CHECK_INT(peer_end(&call), GRPC_NOT_FOUND);
    world_done(&w);
}

TEST(check_says_what_was_set_last)
{
    struct world w;

    world_init(&w);

    set(&w, "a", GRPC_SERVING);
    set(&w, "b", GRPC_NOT_SERVING);
    set(&w, "c", GRPC_HEALTH_UNKNOWN);
    CHECK_INT(check(&w, "a"), GRPC_SERVING);
    CHECK_INT(check(&w, "b"), GRPC_NOT_SERVING);
    CHECK_INT(check(&w, "c"), GRPC_HEALTH_UNKNOWN);
    set(&w, "a", GRPC_NOT_SERVING);
    CHECK_INT(check(&w, "a"), GRPC_NOT_SERVING);
    grpc_health_forget(w.health, peg__str("a"));
    CHECK_INT(check(&w, "a"), -GRPC_NOT_FOUND);
    CHECK_INT(check(&w, ""), GRPC_SERVING);
    world_done(&w);
}

/* ---- List ------------------------------------------------------------------------------------ */

TEST(list_tells_every_service)
{
    struct world w;
    struct peer_call call;
    const Grpc__Health__V1__HealthListResponse *list;

    world_init(&w);
    set(&w, "a", GRPC_NOT_SERVING);

    ask(&call, &w.peer, LIST_PATH, "");
    list = peer_next(&call, &grpc__health__v1__health_list_response__descriptor);

    CHECK_INT(list->n_statuses, 2);
    CHECK_STR(peg__str(list->statuses[0]->key), "");
    CHECK_INT(list->statuses[0]->value->status, GRPC_SERVING);
    CHECK_STR(peg__str(list->statuses[1]->key), "a");
    CHECK_INT(list->statuses[1]->value->status, GRPC_NOT_SERVING);
    CHECK_INT(peer_end(&call), GRPC_OK);
    world_done(&w);
}

TEST(list_refuses_more_than_the_protocol_allows)
{
    struct world w;
    struct peer_call call;
    char name[16];

    world_init(&w);
    for (int i = 1; i < PEG_LIMIT_GRPC_HEALTH_LISTED; i++) {
        snprintf(name, sizeof(name), "%d", i);
        set(&w, name, GRPC_SERVING);
    }

    ask(&call, &w.peer, LIST_PATH, "");
    CHECK(peer_next(&call, &grpc__health__v1__health_list_response__descriptor) != NULL);
    CHECK_INT(peer_end(&call), GRPC_OK);
    set(&w, "one more", GRPC_SERVING);
    ask(&call, &w.peer, LIST_PATH, "");
    CHECK_INT(peer_end(&call), GRPC_RESOURCE_EXHAUSTED);
    world_done(&w);
}

/* ---- Watch ----------------------------------------------------------------------------------- */

TEST(watch_tells_changes_and_nothing_else)
{
    struct world w;
    struct peer_call call;

    world_init(&w);

    ask(&call, &w.peer, WATCH_PATH, "");
    CHECK_INT(hear(&call), GRPC_SERVING);
    set(&w, "", GRPC_SERVING);
    set(&w, "other", GRPC_NOT_SERVING);
    set(&w, "", GRPC_NOT_SERVING);
    CHECK_INT(hear(&call), GRPC_NOT_SERVING);
    set(&w, "", GRPC_SERVING);
    CHECK_INT(hear(&call), GRPC_SERVING);
    peer_drop(&call);
    world_done(&w);
}

TEST(watch_waits_for_a_service_that_nobody_has_set)
{
    struct world w;
    struct peer_call call;

    world_init(&w);

    ask(&call, &w.peer, WATCH_PATH, "late");
    CHECK_INT(hear(&call), GRPC_SERVICE_UNKNOWN);
    set(&w, "late", GRPC_SERVING);
    CHECK_INT(hear(&call), GRPC_SERVING);
    grpc_health_forget(w.health, peg__str("late"));
    CHECK_INT(hear(&call), GRPC_SERVICE_UNKNOWN);
    set(&w, "late", GRPC_NOT_SERVING);
    CHECK_INT(hear(&call), GRPC_NOT_SERVING);
    peer_drop(&call);
    world_done(&w);
}

TEST(watches_on_several_loops_all_hear_of_a_change)
{
    enum { N = 4 };
    struct world w;
    struct peer peers[N];
    struct peer_call calls[N];

    world_init(&w);
    for (int i = 0; i < N; i++) {
        peer_open(&peers[i], &w.address);
        ask(&calls[i], &peers[i], WATCH_PATH, "");
        CHECK_INT(hear(&calls[i]), GRPC_SERVING);
    }

    set(&w, "", GRPC_NOT_SERVING);

    for (int i = 0; i < N; i++) {
        CHECK_INT(hear(&calls[i]), GRPC_NOT_SERVING);
        peer_close(&peers[i]);
        peer_drop(&calls[i]);
    }
    world_done(&w);
}

TEST(watch_ends_with_the_connection)
{
    struct world w;
    struct peer peer;
    struct peer_call call;

    world_init(&w);
    peer_open(&peer, &w.address);
    ask(&call, &peer, WATCH_PATH, "");
    CHECK_INT(hear(&call), GRPC_SERVING);

    peer_close(&peer);
    peer_drop(&call);

    for (int i = 0; i < 100; i++)
        set(&w, "", i % 2 ? GRPC_SERVING : GRPC_NOT_SERVING);
    CHECK_INT(check(&w, ""), GRPC_SERVING);
    world_done(&w);
}

TEST(watch_ends_with_the_server)
{
    struct world w;
    struct peer_call call;

    world_init(&w);
    ask(&call, &w.peer, WATCH_PATH, "");
    CHECK_INT(hear(&call), GRPC_SERVING);

    set(&w, "", GRPC_NOT_SERVING); /* its message may be on its way to the loop */
    w.server = grpc_server_free(w.server);
    w.health = grpc_health_free(w.health);

    peer_drop(&call);
    world_done(&w);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct setter {
    struct grpc_health *health;
    atomic_bool should_stop;
};

static void *set_again_and_again(void *user)
{
    struct setter *setter = user;

    for (unsigned i = 0; !atomic_load(&setter->should_stop); i++)
        (void)grpc_health_set(setter->health, peg__str(""), i % 2 ? GRPC_SERVING : GRPC_NOT_SERVING,
                              NULL);
    return NULL;
}

TEST(watches_come_and_go_while_another_thread_sets)
{
    struct world w;
    struct setter setter = {0};
    pthread_t thread;

    world_init(&w);
    setter.health = w.health;
    CHECK_INT(pthread_create(&thread, NULL, set_again_and_again, &setter), 0);

    for (int i = 0; i < 200; i++) {
        struct peer_call call;
        int first;

        ask(&call, &w.peer, WATCH_PATH, "");
        first = hear(&call);
        CHECK(first == GRPC_SERVING || first == GRPC_NOT_SERVING);
        if (i % 2)
            CHECK_INT(hear(&call), GRPC_SERVING + GRPC_NOT_SERVING - first);
        peer_drop(&call);
    }

    atomic_store(&setter.should_stop, true);
    pthread_join(thread, NULL);
    world_done(&w);
}

/* ---- the end --------------------------------------------------------------------------------- */

TEST(shutting_down_tells_everybody_and_ends_watches)
{
    struct world w;
    struct peer_call known;
    struct peer_call unknown;

    world_init(&w);
    ask(&known, &w.peer, WATCH_PATH, "");
    ask(&unknown, &w.peer, WATCH_PATH, "nobody");
    CHECK_INT(hear(&known), GRPC_SERVING);
    CHECK_INT(hear(&unknown), GRPC_SERVICE_UNKNOWN);

    grpc_health_shut_down(w.health);

    CHECK_INT(hear(&known), GRPC_NOT_SERVING);
    CHECK_INT(peer_end(&known), GRPC_UNAVAILABLE);
    CHECK_INT(peer_end(&unknown), GRPC_UNAVAILABLE);
    world_done(&w);
}

TEST(nothing_serves_after_shutting_down)
{
    struct world w;
    struct peer_call call;

    world_init(&w);
    grpc_health_shut_down(w.health);

    set(&w, "late", GRPC_SERVING);
    CHECK_INT(check(&w, ""), GRPC_NOT_SERVING);
    CHECK_INT(check(&w, "late"), GRPC_NOT_SERVING);
    CHECK_INT(grpc_health_get(w.health, peg__str("late")), GRPC_NOT_SERVING);
    ask(&call, &w.peer, WATCH_PATH, "late");
    CHECK_INT(hear(&call), GRPC_NOT_SERVING);
    CHECK_INT(peer_end(&call), GRPC_UNAVAILABLE);
    world_done(&w);
}

TEST(watches_do_not_keep_a_server_from_draining)
{
    struct world w;
    struct peer_call call;

    world_init(&w);
    ask(&call, &w.peer, WATCH_PATH, "");
    CHECK_INT(hear(&call), GRPC_SERVING);

    grpc_health_shut_down(w.health);
    CHECK(grpc_server_drain(w.server, PEER_WAIT_MS));

    CHECK_INT(hear(&call), GRPC_NOT_SERVING);
    CHECK_INT(peer_end(&call), GRPC_UNAVAILABLE);
    world_done(&w);
}

/* ---- what is refused, and memory ------------------------------------------------------------- */

TEST(set_refuses_a_status_that_is_none)
{
    struct world w;
    peg_error error;

    world_init(&w);

    CHECK_INT(grpc_health_set(w.health, peg__str("a"), GRPC_SERVICE_UNKNOWN, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_GRPC_INVALID");
    CHECK_INT(grpc_health_get(w.health, peg__str("a")), GRPC_SERVICE_UNKNOWN);
    world_done(&w);
}

TEST(set_refuses_more_services_than_the_limit)
{
    struct world w;
    peg_error error;
    char name[16];

    world_init(&w);
    for (int i = 1; i < PEG_LIMIT_GRPC_HEALTH_SERVICES; i++) {
        snprintf(name, sizeof(name), "%d", i);
        set(&w, name, GRPC_SERVING);
    }

    CHECK_INT(grpc_health_set(w.health, peg__str("x"), GRPC_SERVING, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "at most"));
    set(&w, "1", GRPC_NOT_SERVING); /* one that is there can still change */
    world_done(&w);
}

TORTURE(health_survives_any_allocation_failure)
{
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    struct grpc_health *health = NULL;
    peg_status status = net_loops_new(1, &loops, NULL);

    if (!status)
        status = grpc_server_new(loops, NULL, &server, NULL);
    if (!status)
        status = grpc_health_new(server, &health, NULL);
    if (!status)
        status = grpc_health_set(health, peg__str("a"), GRPC_NOT_SERVING, NULL);
    if (!status)
        CHECK_INT(grpc_health_get(health, peg__str("a")), GRPC_NOT_SERVING);
    grpc_server_free(server);
    grpc_health_free(health);
    net_loops_free(loops);
    return status;
}

/* Asks with the n-th allocation of the server failing; true once it is answered in full. The
 * connection has all that it needs, and the memory of the only call that there was is in use. */
static bool ask_without_memory(struct world *w, const char *path, unsigned nth)
{
    struct peer peer;
    struct peer_call watch;
    struct peer_call call;
    bool is_answered;

    peer_open(&peer, &w->address);
    ask(&watch, &peer, WATCH_PATH, "");
    CHECK_INT(hear(&watch), GRPC_SERVING);

    peer_fail_at(net_loops_at(w->loops, 0), nth);
    ask(&call, &peer, path, "a");
    is_answered = peer_next_bytes(&call).ptr != NULL;
    peer_fail_at(net_loops_at(w->loops, 0), 0);
    peer_drop(&call);
    peer_drop(&watch);
    peer_close(&peer);
    return is_answered;
}

/* A new server, which keeps no memory of calls before. */
static bool survives_without_memory(const char *path, unsigned nth)
{
    struct world w;
    bool is_answered;

    world_init_with(&w, 1);
    set(&w, "a", GRPC_SERVING);
    is_answered = ask_without_memory(&w, path, nth);
    CHECK_INT(check(&w, "a"), GRPC_SERVING);
    world_done(&w);
    return is_answered;
}

TEST(handlers_survive_any_allocation_failure)
{
    static const char *const paths[] = {CHECK_PATH, LIST_PATH, WATCH_PATH};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        unsigned nth = 1;

        while (!survives_without_memory(paths[i], nth))
            CHECK(++nth < 1000);
        CHECK(nth > 1);
    }
}
