/* SPDX-License-Identifier: Apache-2.0 */

/* What peg_client_get() remembers, on a clock that the test owns. */

#include "../t.h"
#include "base/limits.h"
#include "fake_registry.h"
#include "pegboard/client.h"
#include "remote/client/remote.h"

enum { TTL_MS = 100000 };

struct world {
    struct fake fake;
    peg_clock *clock;
    peg_client *client;
    peg_error error;
};

static peg_status world_open_with(struct world *w, int64_t ttl_ms)
{
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .cache_ttl_ms = ttl_ms};
    peg_status status;

    memset(w, 0, sizeof(*w));
    status = fake_open(&w->fake);
    w->error = w->fake.error;
    if (!status)
        status = peg_clock_manual_new(1700000000000, &w->clock, &w->error);
    options.address = w->fake.address;
    options.clock = w->clock;
    if (!status)
        status = peg_client_new(&options, &w->client, &w->error);
    return status;
}

static peg_status world_open(struct world *w)
{
    return world_open_with(w, TTL_MS);
}

static void world_close(struct world *w)
{
    peg_client_unref(w->client);
    peg_clock_manual_free(w->clock);
    fake_done(&w->fake);
}

static peg_status get(struct world *w, const char *name, bool *ret_is_stale)
{
    peg_toolset *toolset;
    const peg_status status = peg_client_get(w->client, NULL, NULL, name, &toolset, &w->error);

    if (!status) {
        *ret_is_stale = toolset->is_stale;
        peg_toolset_unref(toolset);
    }
    return status;
}

static void set_broken(struct world *w, enum wire_error error)
{
    pthread_mutex_lock(&w->fake.lock);
    w->fake.broken = error;
    pthread_mutex_unlock(&w->fake.lock);
}

TEST(a_toolset_has_its_tools_as_they_were_registered)
{
    struct world w;
    peg_toolset *toolset;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_get(w.client, NULL, NULL, "weather", &toolset, &w.error), PEG_OK,
                 w.error);

    CHECK_STR(peg__str(toolset->info.name), "weather");
    CHECK_STR(peg__str(toolset->info.registry), w.fake.address);
    CHECK_INT(toolset->n_tools, FAKE_TOOLS);
    CHECK_STR(peg__str(toolset->tools[0].name), "echo");
    CHECK_STR(toolset->tools[0].input_schema, "{\"type\":\"object\"}");
    CHECK_STR(toolset->tools[0].output_schema, "");
    CHECK(toolset->tools[0].is_idempotent);
    CHECK(!toolset->is_stale);
    peg_toolset_unref(toolset);
    world_close(&w);
}

TEST(a_toolset_outlives_its_client)
{
    struct world w;
    peg_toolset *toolset;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_client_get(w.client, NULL, NULL, "weather", &toolset, &w.error), PEG_OK,
                 w.error);
    w.client = peg_client_unref(w.client);

    CHECK_STR(peg__str(toolset->info.registry), w.fake.address);

    peg_toolset_unref(toolset);
    world_close(&w);
}

TEST(a_toolset_that_was_fetched_is_not_fetched_again)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK_INT(w.fake.n_gets, 1);
    world_close(&w);
}

TEST(a_toolset_is_fetched_again_when_its_time_is_over)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, TTL_MS);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK_INT(w.fake.n_gets, 2);
    CHECK(!is_stale);
    world_close(&w);
}

TEST(in_the_last_fifth_of_its_time_a_toolset_is_fetched_in_the_background)
{
    struct world w;
    peg_toolset_list *list;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, TTL_MS * 4 / 5 - 1);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 1);
    peg_clock_manual_advance(w.clock, 1);

    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error); /* at once, from the cache */
    CHECK(fake_await(&w.fake.n_gets, 2));

    /* The answer to a list comes behind that of the fetch. */
    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);
    peg_toolset_list_free(list);
    peg_clock_manual_advance(w.clock, TTL_MS / 5);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 2);
    world_close(&w);
}

TEST(a_fetch_in_the_background_that_failed_is_not_tried_again_at_once)
{
    struct world w;
    peg_toolset_list *list;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, TTL_MS * 4 / 5);
    set_broken(&w, WIRE_FAULT);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK(fake_await(&w.fake.n_gets, 2));
    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_EHOST);

    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 2);
    peg_clock_manual_advance(w.clock, PEG_LIMIT_REMOTE_REFRESH_COOLDOWN_MS);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK(fake_await(&w.fake.n_gets, 3));
    world_close(&w);
}

TEST(when_the_registry_fails_what_it_said_before_counts)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, 10 * TTL_MS);
    fake_stop(&w.fake);

    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK(is_stale);
    world_close(&w);
}

TEST(when_the_registry_says_no_the_cache_says_so_too)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, TTL_MS);
    pthread_mutex_lock(&w.fake.lock);
    w.fake.toolsets[0].is_hidden = true;
    pthread_mutex_unlock(&w.fake.lock);
    CHECK_INT(get(&w, "weather", &is_stale), PEG_ENOTFOUND);
    set_broken(&w, WIRE_FAULT);

    CHECK_INT(get(&w, "weather", &is_stale), PEG_EHOST); /* and it is forgotten */
    world_close(&w);
}

TEST(a_client_without_permission_gets_no_cached_answer)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_clock_manual_advance(w.clock, TTL_MS);
    set_broken(&w, WIRE_UNAUTHENTICATED);

    CHECK_INT(get(&w, "weather", &is_stale), PEG_EHOST);
    world_close(&w);
}

static void call_refused(struct world *w, const char *tool)
{
    const peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .toolset = "weather",
                                        .tool = tool};
    peg_remote_result *result;

    CHECK_STATUS(peg_client_call(w->client, NULL, &request, &result, &w->error), PEG_OK, w->error);
    CHECK_INT(result->outcome, PEG_REMOTE_REFUSED);
    peg_remote_result_free(result);
}

/* Whoever imports it once more, because of that, gets what there is now. */
TEST(a_toolset_whose_call_was_refused_as_unknown_is_fetched_again)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    call_refused(&w, "say:overloaded");
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 1);

    call_refused(&w, "say:validation_error");
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 2);
    call_refused(&w, "say:not_found");
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_INT(w.fake.n_gets, 3);
    world_close(&w);
}

/* ---- several registries: the second one has it -------------------------------------------------
 */

struct two {
    struct fake fakes[2];
    peg_clock *clock;
    peg_client *client;
};

static void two_open(struct two *t)
{
    peg_client_registry registries[2] = {{PEG_CLIENT_REGISTRY_INIT, .name = "a"},
                                         {PEG_CLIENT_REGISTRY_INIT, .name = "b"}};
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = registries,
                                  .n_registries = 2, .cache_ttl_ms = TTL_MS};
    peg_error error;

    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(fake_open(&t->fakes[i]), PEG_OK, t->fakes[i].error);
        registries[i].address = t->fakes[i].address;
    }
    fake_hide(&t->fakes[0], true);
    CHECK_STATUS(peg_clock_manual_new(1700000000000, &t->clock, &error), PEG_OK, error);
    options.clock = t->clock;
    CHECK_STATUS(peg_client_new(&options, &t->client, &error), PEG_OK, error);
}

static void two_close(struct two *t)
{
    peg_client_unref(t->client);
    peg_clock_manual_free(t->clock);
    fake_done(&t->fakes[0]);
    fake_done(&t->fakes[1]);
}

static void two_get(struct two *t, const char *registry, const char *from)
{
    peg_toolset *toolset;
    peg_error error;

    CHECK_STATUS(peg_client_get(t->client, NULL, registry, "weather", &toolset, &error), PEG_OK,
                 error);
    CHECK_STR(peg__str(toolset->info.registry), from);
    peg_toolset_unref(toolset);
}

/* Else each call of what the second one has would wait for the first, also if that hangs. */
TEST(a_registry_that_has_none_is_not_asked_each_time)
{
    struct two t;

    two_open(&t);
    two_get(&t, NULL, "b");
    two_get(&t, NULL, "b");
    CHECK_INT(t.fakes[0].n_gets, 1);
    CHECK_INT(t.fakes[1].n_gets, 1);

    peg_clock_manual_advance(t.clock, TTL_MS);
    two_get(&t, NULL, "b");
    CHECK_INT(t.fakes[0].n_gets, 2);
    CHECK_INT(t.fakes[1].n_gets, 2);
    two_close(&t);
}

TEST(a_registry_that_has_one_by_now_is_the_first_again)
{
    struct two t;

    two_open(&t);
    two_get(&t, NULL, "b");
    fake_hide(&t.fakes[0], false);
    two_get(&t, "a", "a");
    two_get(&t, NULL, "a");
    two_close(&t);
}

TEST(a_registry_that_failed_has_not_said_that_it_has_none)
{
    struct two t;

    two_open(&t);
    t.fakes[0].broken = WIRE_SERVICE_UNAVAILABLE;
    two_get(&t, NULL, "b");
    pthread_mutex_lock(&t.fakes[0].lock);
    t.fakes[0].broken = WIRE_OK;
    t.fakes[0].toolsets[0].is_hidden = false;
    pthread_mutex_unlock(&t.fakes[0].lock);
    two_get(&t, NULL, "a");
    two_close(&t);
}

/* It has changed there, so it is there. */
static void send_changed(struct fake *fake)
{
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_CHANGED, &fake->toolsets[0]);
}

static void count_event(const peg_watch_event *event, void *user)
{
    (void)event;
    atomic_fetch_add((atomic_uint *)user, 1);
}

TEST(a_registry_that_reports_one_is_the_first_again)
{
    struct two t;
    peg_watch *watch;
    peg_error error;
    atomic_uint n_events = 0;

    two_open(&t);
    two_get(&t, NULL, "b");
    fake_hide(&t.fakes[0], false);
    CHECK_STATUS(peg_client_watch(t.client,
                                  &(peg_watch_options){PEG_WATCH_OPTIONS_INIT, .registry = "a",
                                                       .changes_only = true},
                                  count_event, &n_events, &watch, &error),
                 PEG_OK, error);
    CHECK(fake_await(&n_events, 1)); /* READY */
    two_get(&t, NULL, "b");          /* nobody has said anything about it */
    fake_do(&t.fakes[0], send_changed);
    CHECK(fake_await(&n_events, 2));

    two_get(&t, NULL, "a");
    peg_watch_free(watch);
    two_close(&t);
}

static void two_call(struct two *t, const peg_remote_request *request, peg_remote_outcome outcome)
{
    peg_remote_result *result;
    peg_error error;

    CHECK_STATUS(peg_client_call(t->client, NULL, request, &result, &error), PEG_OK, error);
    CHECK_INT(result->outcome, outcome);
    peg_remote_result_free(result);
}

/* It may go on where its toolset was, which refuses whoever asks for what it does not have. */
TEST(a_call_with_an_identity_does_not_follow_its_toolset)
{
    const peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .toolset = "weather",
                                        .tool = "outlast", .idempotency_key = "k"};
    struct two t;

    two_open(&t);
    two_call(&t, &request, PEG_REMOTE_UNKNOWN);
    CHECK_INT(t.fakes[1].n_calls, 1);
    fake_hide(&t.fakes[1], true);
    fake_hide(&t.fakes[0], false);

    two_call(&t, &request, PEG_REMOTE_REFUSED);
    CHECK_INT(t.fakes[1].n_calls, 2);
    CHECK_INT(t.fakes[0].n_calls, 0);
    two_close(&t);
}

TEST(a_toolset_that_a_call_followed_in_vain_is_forgotten_at_both_registries)
{
    const peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .toolset = "weather",
                                        .tool = "echo"};
    struct two t;
    peg_toolset *toolset;

    two_open(&t);
    fake_hide(&t.fakes[0], false);
    two_get(&t, "a", "a");
    two_get(&t, "b", "b");
    fake_hide(&t.fakes[0], true);
    fake_hide(&t.fakes[1], true);

    two_call(&t, &request, PEG_REMOTE_REFUSED);
    CHECK_INT(t.fakes[1].n_calls, 1);
    CHECK_INT(peg_client_get(t.client, NULL, NULL, "weather", &toolset, NULL), PEG_ENOTFOUND);
    two_close(&t);
}

TEST(a_client_without_a_cache_asks_each_time)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open_with(&w, -1), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK_INT(w.fake.n_gets, 2);
    world_close(&w);
}

TEST(a_client_forgets_on_request)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
    peg_client_forget(w.client);
    CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);

    CHECK_INT(w.fake.n_gets, 2);
    world_close(&w);
}

static void receive_a_change(struct world *w)
{
    remote__cache_drop(w->client->registries, peg__str("weather"));
}

static void receive_another_revision(struct world *w)
{
    remote__cache_check(w->client->registries, peg__str("weather"), 8);
}

static void forget(struct world *w)
{
    peg_client_forget(w->client);
}

/* What a get does, with something between the answer and the cache. */
TEST(what_was_asked_for_before_a_change_does_not_come_back)
{
    static void (*const between[])(struct world * w) = {receive_a_change, receive_another_revision,
                                                        forget};
    const peg_str name = peg__str("weather");
    struct world w;
    bool is_stale;

    for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
        struct remote__registry *registry;
        peg_toolset *old;
        uint32_t heard;

        CHECK_STATUS(world_open(&w), PEG_OK, w.error);
        registry = w.client->registries;
        CHECK_STATUS(peg_client_get(w.client, NULL, NULL, "weather", &old, &w.error), PEG_OK,
                     w.error);
        peg_client_forget(w.client);
        heard = remote__cache_note(registry, name);

        between[i](&w);
        remote__cache_put(registry, name, (struct remote__toolset *)old, heard);

        CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
        CHECK_INT(w.fake.n_gets, 2);
        CHECK_STATUS(get(&w, "weather", &is_stale), PEG_OK, w.error);
        CHECK_INT(w.fake.n_gets, 2);
        peg_toolset_unref(old);
        world_close(&w);
    }
}

TEST(a_toolset_that_is_not_there_is_not_found_by_its_name)
{
    struct world w;
    bool is_stale;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(get(&w, "nowhere", &is_stale), PEG_ENOTFOUND);
    CHECK_STR(peg__str(w.error.code), "E_NOT_FOUND");
    CHECK_INT(get(&w, "no name", &is_stale), PEG_EINVAL);
    CHECK_INT(get(&w, "", &is_stale), PEG_EINVAL);
    world_close(&w);
}

TORTURE(the_cache_survives_any_allocation_failure)
{
    struct world w;
    bool is_stale;
    peg_status status = world_open(&w);

    if (!status)
        status = get(&w, "weather", &is_stale);
    if (!status)
        peg_clock_manual_advance(w.clock, TTL_MS * 4 / 5);
    if (!status)
        status = get(&w, "weather", &is_stale); /* in the background */
    if (!status)
        peg_clock_manual_advance(w.clock, TTL_MS);
    if (!status)
        set_broken(&w, WIRE_SERVICE_UNAVAILABLE);
    if (!status)
        status = get(&w, "weather", &is_stale) == PEG_ENOMEM ? PEG_ENOMEM : PEG_OK;
    world_close(&w);
    return status;
}
