/* SPDX-License-Identifier: Apache-2.0 */

/* Watching: what is there, what changes, and what happens when the gateway goes. */

#include "../t.h"
#include "base/limits.h"
#include "fake_registry.h"
#include "pegboard/client.h"
#include "remote/client/remote.h"

struct world {
    struct fake fake;
    peg_client *client;
    peg_watch *watch;
    peg_error error;
    pthread_mutex_t lock;
    char log[4096]; /* "present:weather ready " */
    atomic_uint n_events;
    atomic_uint n_ready;
    atomic_uint n_lost;
};

static void record_event(const peg_watch_event *event, void *user)
{
    struct world *w = user;
    size_t len;

    pthread_mutex_lock(&w->lock);
    len = strlen(w->log);
    snprintf(w->log + len, sizeof(w->log) - len, "%s%s%s ", peg_watch_kind_name(event->kind),
             event->toolset ? ":" : "", event->toolset ? event->toolset->name : "");
    pthread_mutex_unlock(&w->lock);
    if (event->kind == PEG_WATCH_LOST && event->error->status == PEG_OK)
        abort();
    atomic_fetch_add(&w->n_ready, event->kind == PEG_WATCH_READY);
    atomic_fetch_add(&w->n_lost, event->kind == PEG_WATCH_LOST);
    atomic_fetch_add(&w->n_events, 1);
}

static peg_status world_open(struct world *w, const peg_watch_options *options)
{
    peg_client_options client = {PEG_CLIENT_OPTIONS_INIT};
    peg_status status;

    memset(w, 0, sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    status = fake_open(&w->fake);
    w->error = w->fake.error;
    client.address = w->fake.address;
    if (!status)
        status = peg_client_new(&client, &w->client, &w->error);
    if (!status)
        status = peg_client_watch(w->client, options, record_event, w, &w->watch, &w->error);
    return status;
}

static void world_close(struct world *w)
{
    peg_watch_free(w->watch);
    peg_client_unref(w->client);
    fake_done(&w->fake);
    pthread_mutex_destroy(&w->lock);
}

static bool log_is(struct world *w, const char *expected)
{
    bool is_equal;

    pthread_mutex_lock(&w->lock);
    is_equal = strcmp(w->log, expected) == 0;
    if (!is_equal)
        printf("# heard: %s\n", w->log);
    pthread_mutex_unlock(&w->lock);
    return is_equal;
}

static void set_garbage(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->is_garbage = !fake->is_garbage;
    pthread_mutex_unlock(&fake->lock);
    if (fake->watch)
        grpc_call_fail(fake->watch, GRPC_UNAVAILABLE, "going away");
}

static void register_maps(struct fake *fake)
{
    const struct fake_toolset maps = {.name = "maps"};

    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_REGISTERED, &maps);
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_HEALTH, &maps);
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_CHANGED, &maps);
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_UNREGISTERED, &maps);
}

static void send_too_slow(struct fake *fake)
{
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_LOST, NULL);
}

static void break_watch(struct fake *fake)
{
    if (fake->watch)
        grpc_call_fail(fake->watch, GRPC_UNAVAILABLE, "going away");
}

TEST(a_watch_reports_what_is_there_and_then_what_changes)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    fake_do(&w.fake, register_maps);
    CHECK(fake_await(&w.n_events, 6));

    CHECK(log_is(&w, "present:weather ready registered:maps health:maps changed:maps "
                     "unregistered:maps "));
    world_close(&w);
}

static void get_weather(struct world *w, unsigned revision)
{
    peg_toolset *toolset;

    CHECK_STATUS(peg_client_get(w->client, NULL, NULL, "weather", &toolset, &w->error), PEG_OK,
                 w->error);
    CHECK_INT(toolset->info.revision, revision);
    peg_toolset_unref(toolset);
}

static void change_unseen(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->toolsets[0].revision = 8;
    pthread_mutex_unlock(&fake->lock);
    break_watch(fake);
}

TEST(what_changed_while_a_watch_was_lost_is_not_taken_from_the_cache)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));
    get_weather(&w, 7);

    fake_do(&w.fake, break_watch);
    CHECK(fake_await(&w.n_ready, 2));
    get_weather(&w, 7);
    CHECK_INT(w.fake.n_gets, 1); /* the same one is still good */
    fake_do(&w.fake, change_unseen);
    CHECK(fake_await(&w.n_ready, 3));

    get_weather(&w, 8);
    CHECK_INT(w.fake.n_gets, 2);
    world_close(&w);
}

static void remove_unseen(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->n_toolsets = 0;
    pthread_mutex_unlock(&fake->lock);
    break_watch(fake);
}

TEST(what_was_unregistered_while_a_watch_was_lost_is_not_taken_from_the_cache)
{
    struct world w;
    peg_toolset *toolset;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));
    get_weather(&w, 7);

    fake_do(&w.fake, remove_unseen);
    CHECK(fake_await(&w.n_ready, 2));

    CHECK_INT(peg_client_get(w.client, NULL, NULL, "weather", &toolset, &w.error), PEG_ENOTFOUND);
    world_close(&w);
}

/* It is told of those with the tag: the others are there all the same. */
TEST(a_watch_with_tags_reports_no_others)
{
    static const char *const tags[] = {"mail", NULL};
    struct world w;

    CHECK_STATUS(world_open(&w, &(peg_watch_options){PEG_WATCH_OPTIONS_INIT, .tags = tags}), PEG_OK,
                 w.error);
    CHECK(fake_await(&w.n_ready, 1));
    get_weather(&w, 7);

    fake_do(&w.fake, break_watch);
    CHECK(fake_await(&w.n_ready, 2));

    get_weather(&w, 7);
    CHECK_INT(w.fake.n_gets, 1);
    world_close(&w);
}

TEST(a_watch_for_changes_leaves_out_what_is_there)
{
    struct world w;

    CHECK_STATUS(world_open(&w, &(peg_watch_options){PEG_WATCH_OPTIONS_INIT, .changes_only = true}),
                 PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    CHECK(log_is(&w, "ready "));
    world_close(&w);
}

TEST(a_watch_that_breaks_begins_again_with_all_that_is_there)
{
    struct world w;

    CHECK_STATUS(world_open(&w, &(peg_watch_options){PEG_WATCH_OPTIONS_INIT, .changes_only = true}),
                 PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    fake_do(&w.fake, break_watch);
    CHECK(fake_await(&w.n_ready, 2));

    CHECK(log_is(&w, "ready lost present:weather ready "));
    world_close(&w);
}

TEST(a_reader_that_was_too_slow_receives_everything_again)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    fake_do(&w.fake, send_too_slow);
    CHECK(fake_await(&w.n_ready, 2));

    CHECK(log_is(&w, "present:weather ready lost present:weather ready "));
    world_close(&w);
}

TEST(a_watch_survives_a_malformed_message)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    fake_do(&w.fake, set_garbage);
    CHECK(fake_await(&w.n_lost, 2)); /* the connection, then what was said */
    fake_do(&w.fake, set_garbage);
    CHECK(fake_await(&w.n_ready, 2));

    CHECK(log_is(&w, "present:weather ready lost lost present:weather ready "));
    world_close(&w);
}

TEST(a_watch_survives_its_gateway)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));

    fake_stop(&w.fake);
    CHECK(fake_await(&w.n_lost, 1));
    CHECK_STATUS(fake_serve(&w.fake), PEG_OK, w.fake.error);
    CHECK(fake_await(&w.n_ready, 2));

    CHECK(log_is(&w, "present:weather ready lost present:weather ready "));
    world_close(&w);
}

TEST(toolsets_that_are_excluded_are_not_reported)
{
    const char *const exclude[] = {"m*", NULL};
    peg_client_registry registry = {PEG_CLIENT_REGISTRY_INIT, .exclude = exclude};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = &registry,
                                        .n_registries = 1};
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));
    w.watch = peg_watch_free(w.watch);
    peg_client_unref(w.client);
    w.log[0] = '\0';
    registry.address = w.fake.address;
    CHECK_STATUS(peg_client_new(&options, &w.client, &w.error), PEG_OK, w.error);
    CHECK_STATUS(peg_client_watch(w.client, NULL, record_event, &w, &w.watch, &w.error), PEG_OK,
                 w.error);
    CHECK(fake_await(&w.n_ready, 2));

    fake_do(&w.fake, register_maps);
    fake_do(&w.fake, break_watch); /* comes behind it */
    CHECK(fake_await(&w.n_lost, 1));

    w.watch = peg_watch_free(w.watch);
    CHECK(strstr(w.log, "maps") == NULL);
    world_close(&w);
}

/* Some twice as many as a reader may keep waiting. */
enum { N_EMPTY = PEG_LIMIT_REMOTE_QUEUE_BYTES / 8 };

static void flood(struct fake *fake)
{
    const Pegboard__V1__WatchResponse empty = PEGBOARD__V1__WATCH_RESPONSE__INIT;

    for (unsigned i = 0; i < N_EMPTY; i++)
        (void)pegboard_v1_registry_watch_send(fake->watch, &empty, NULL);
    grpc_call_finish(fake->watch, &(struct grpc_status){.code = GRPC_OK});
}

/* Until the stream waits for its reader, or everything has come. */
static bool is_held(struct remote__request *ask)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    bool is_paused = false;
    bool is_over = false;

    while (!is_paused && !is_over) {
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&ask->wait.lock);
        is_paused = ask->is_paused;
        is_over = ask->is_over;
        pthread_mutex_unlock(&ask->wait.lock);
    }
    return is_paused;
}

/* An exchange of which nothing is read, as while a callback does not return. */
TEST(messages_without_a_byte_are_held_at_the_gateway_too)
{
    Pegboard__V1__WatchRequest request = PEGBOARD__V1__WATCH_REQUEST__INIT;
    struct remote__request ask = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_WATCH],
        .request = &request.base,
    };
    struct world w;
    peg_str bytes;
    unsigned n = 0;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    CHECK(fake_await(&w.n_ready, 1));
    w.watch = peg_watch_free(w.watch);
    ask.registry = w.client->registries;
    request.changes_only = true;
    CHECK_STATUS(remote__request_start(&ask, &w.error), PEG_OK, w.error);
    CHECK(fake_await(&w.fake.n_watches, 2));
    fake_do(&w.fake, flood);

    CHECK(is_held(&ask));
    while (remote__request_next(&ask, NULL, INT64_MAX, &bytes) == REMOTE_MESSAGE)
        n += bytes.len == 0;
    CHECK_INT(n, N_EMPTY);
    remote__request_free(&ask);
    world_close(&w);
}

TEST(a_watch_ends_while_there_is_no_gateway)
{
    peg_client *client;
    peg_watch *watch;
    peg_error error;
    struct world w = {.n_lost = 0};

    pthread_mutex_init(&w.lock, NULL);
    CHECK_STATUS(peg_client_new(&(peg_client_options){PEG_CLIENT_OPTIONS_INIT,
                                                      .address = "unix:/nonexistent/sock"},
                                &client, &error),
                 PEG_OK, error);
    CHECK_STATUS(peg_client_watch(client, NULL, record_event, &w, &watch, &error), PEG_OK, error);
    CHECK(fake_await(&w.n_lost, 1));

    CHECK(!peg_watch_free(watch));
    CHECK(log_is(&w, "lost "));
    CHECK(!peg_watch_free(NULL));
    peg_client_unref(client);
    pthread_mutex_destroy(&w.lock);
}

TEST(a_watch_keeps_its_client)
{
    struct world w;

    CHECK_STATUS(world_open(&w, NULL), PEG_OK, w.error);
    w.client = peg_client_unref(w.client);

    CHECK(fake_await(&w.n_ready, 1));

    world_close(&w);
}

TEST(a_watch_needs_a_callback)
{
    peg_client *client;
    peg_watch *watch;
    peg_error error;

    CHECK_STATUS(peg_client_new(NULL, &client, &error), PEG_OK, error);
    CHECK_INT(peg_client_watch(client, NULL, NULL, NULL, &watch, &error), PEG_EINVAL);
    peg_client_unref(client);
}

TORTURE(a_watch_survives_any_allocation_failure)
{
    const char *const tags[] = {"geo", NULL};
    struct world w;
    const peg_status status =
        world_open(&w, &(peg_watch_options){PEG_WATCH_OPTIONS_INIT, .tags = tags});

    if (!status)
        fake_await(&w.n_ready, 1);
    world_close(&w);
    return status;
}
