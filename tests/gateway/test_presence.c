/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/catalog/catalog.h"

#include "base/buf.h"
#include "base/limits.h"
#include "t.h"

#include "fake_bus.h"

/* ---- fixture: two loops of one registry -------------------------------------------------------
 */

struct world {
    struct fake_hub hub;
    struct fake_bus buses[2];
    struct gw_presence *presences[2];
    unsigned n_changes;
    unsigned n_sets; /* writes before the first change was told */
    char last[64];
};

static struct world w;

static void on_change(void *user, peg_str toolset)
{
    struct world *world = user;

    if (world->n_changes++ == 0)
        world->n_sets = world->hub.n_sets;
    snprintf(world->last, sizeof(world->last), "%.*s", PEG_ARG(toolset));
}

static const struct gw_presence_options options = {.ping_interval_ms = 10000, .missed_pings = 3};

static peg_status world_start(void)
{
    peg_status status;

    w = (struct world){.n_changes = 0};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    fake_init(&w.buses[1], &w.hub, 0xA, 1);
    status = gw_presence_new(&w.buses[0].bus, &options, on_change, &w, &w.presences[0], NULL);
    if (!status)
        status = gw_presence_new(&w.buses[1].bus, &options, NULL, NULL, &w.presences[1], NULL);
    return status;
}

static void world_stop(void)
{
    gw_presence_free(w.presences[0]);
    gw_presence_free(w.presences[1]);
    fake_hub_free(&w.hub);
}

static const peg_str weather = PEG_LIT("weather");

static struct gw_provider_entry entry_of(unsigned loop, const char *incarnation)
{
    struct gw_provider_entry entry = {.address = w.buses[loop].bus.self,
                                      .last_pong_ms = bus_now_ms(&w.buses[loop].bus),
                                      .credits = 4};

    snprintf(entry.incarnation, sizeof(entry.incarnation), "%s", incarnation);
    return entry;
}

static peg_status put_for(unsigned loop, peg_str toolset, const char *incarnation)
{
    const struct gw_provider_entry entry = entry_of(loop, incarnation);

    return gw_presence_put(w.presences[loop], toolset, &entry, NULL);
}

static peg_status put(unsigned loop, const char *incarnation)
{
    return put_for(loop, weather, incarnation);
}

static enum gw_health_state state(unsigned loop)
{
    return gw_presence_health(w.presences[loop], weather).state;
}

/* ---- who knows of it ---------------------------------------------------------------------------
 */

static atomic_ullong known[2];

static void start_counted(void)
{
    struct gw_presence_options counted = options;

    counted.known = known;
    counted.n_loops = 2;
    atomic_store(&known[0], 0);
    atomic_store(&known[1], 0);
    w = (struct world){.n_changes = 0};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    fake_init(&w.buses[1], &w.hub, 0xA, 1);
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(gw_presence_new(&w.buses[i].bus, &counted, NULL, NULL, &w.presences[i], NULL),
                  PEG_OK);
}

static bool is_known(const char *incarnation)
{
    return gw_presence_is_known(w.presences[0], weather, incarnation);
}

TEST(a_provider_is_known_when_it_is_written_and_all_loops_have_heard_of_it)
{
    start_counted();
    CHECK(is_known("incarnation-0")); /* there is nothing to know */
    w.hub.is_slow = true;
    put(0, "incarnation-1");
    CHECK(!is_known("incarnation-1"));
    w.hub.is_slow = false;
    fake_answer_all(&w.hub);
    CHECK(is_known("incarnation-1"));
    world_stop();
}

TEST(a_provider_is_not_known_while_a_loop_is_behind)
{
    start_counted();
    put(0, "incarnation-1");
    atomic_store(&known[1], 0);
    CHECK(!is_known("incarnation-1"));
    put(1, "incarnation-2"); /* a later change, behind the one that it has missed */
    CHECK(is_known("incarnation-1"));
    world_stop();
}

TEST(a_provider_whose_entry_cannot_be_written_is_not_known)
{
    start_counted();
    w.hub.fails = PEG_EIO;
    put(0, "incarnation-1");
    CHECK(!is_known("incarnation-1"));
    w.hub.fails = PEG_OK;
    fake_run(&w.hub, 1000);
    CHECK(is_known("incarnation-1"));
    world_stop();
}

/* ---- health ------------------------------------------------------------------------------------
 */

TEST(a_toolset_without_providers_is_unhealthy)
{
    struct gw_health health;

    world_start();
    health = gw_presence_health(w.presences[0], weather);

    CHECK_INT(health.state, GW_UNHEALTHY);
    CHECK_INT(health.last_pong_ms, 0);
    CHECK_INT(health.staleness_ms, 40000);
    world_stop();
}

TEST(every_loop_sees_a_provider_that_attached)
{
    struct gw_provider_entry *entries;
    size_t n;

    world_start();
    CHECK_INT(put(1, "incarnation-1"), PEG_OK);
    entries = gw_presence_providers(w.presences[0], weather, &n);

    CHECK_INT(n, 1);
    CHECK_STR(peg__str(entries[0].incarnation), "incarnation-1");
    CHECK_INT(entries[0].address.loop, 1);
    CHECK_INT(entries[0].credits, 4);
    CHECK_INT(state(0), GW_HEALTHY);
    CHECK_INT(w.n_changes, 1);
    CHECK_STR(peg__str(w.last), "weather");
    world_stop();
}

TEST(a_provider_that_does_not_pong_becomes_stale_and_that_is_told)
{
    world_start();
    put(1, "incarnation-1");

    fake_run(&w.hub, 40000);
    CHECK_INT(state(0), GW_HEALTHY);
    CHECK_INT(w.n_changes, 1);
    fake_run(&w.hub, 2000);
    CHECK_INT(state(0), GW_UNHEALTHY);
    CHECK_INT(w.n_changes, 2);
    world_stop();
}

TEST(a_pong_keeps_a_provider_well_and_is_no_change)
{
    world_start();
    put(1, "incarnation-1");

    for (unsigned i = 0; i < 10; i++) {
        fake_run(&w.hub, 10000);
        gw_presence_pong(w.presences[1], weather, "incarnation-1");
    }

    CHECK_INT(state(0), GW_HEALTHY);
    CHECK_INT(gw_presence_health(w.presences[0], weather).last_pong_ms, FAKE_EPOCH_MS + 100000);
    CHECK_INT(w.n_changes, 1);
    world_stop();
}

TEST(a_pong_makes_a_stale_provider_well_again)
{
    world_start();
    put(1, "incarnation-1");
    fake_run(&w.hub, 60000);
    CHECK_INT(state(0), GW_UNHEALTHY);

    gw_presence_pong(w.presences[1], weather, "incarnation-1");

    CHECK_INT(state(0), GW_HEALTHY);
    CHECK_INT(w.n_changes, 3);
    world_stop();
}

TEST(draining_providers_do_not_make_a_toolset_healthy)
{
    struct gw_provider_entry entry;
    struct gw_health health;

    world_start();
    put(0, "incarnation-1");
    entry = entry_of(0, "incarnation-1");
    entry.is_draining = true;
    gw_presence_put(w.presences[0], weather, &entry, NULL);
    health = gw_presence_health(w.presences[1], weather);

    CHECK_INT(health.state, GW_UNHEALTHY);
    CHECK_INT(health.n_providers, 1);
    CHECK_INT(health.n_draining, 1);
    CHECK_INT(w.n_changes, 2);
    world_stop();
}

TEST(a_provider_that_left_is_gone_and_its_last_pong_is_remembered)
{
    struct gw_health health;

    world_start();
    put(0, "incarnation-1");
    gw_presence_remove(w.presences[0], weather, "incarnation-1");
    health = gw_presence_health(w.presences[1], weather);

    CHECK_INT(health.state, GW_UNHEALTHY);
    CHECK_INT(health.n_providers, 0);
    CHECK_INT(health.last_pong_ms, FAKE_EPOCH_MS);
    world_stop();
}

TEST(what_is_sent_is_counted_across_changes)
{
    struct gw_provider_entry *entries;
    size_t n;

    world_start();
    put(1, "incarnation-1");
    gw_presence_providers(w.presences[0], weather, &n)[0].sent = 3;
    fake_run(&w.hub, 1000);
    gw_presence_pong(w.presences[1], weather, "incarnation-1");
    entries = gw_presence_providers(w.presences[0], weather, &n);

    CHECK_INT(entries[0].sent, 3);
    CHECK_INT(entries[0].last_pong_ms, FAKE_EPOCH_MS + 1000);
    world_stop();
}

TEST(why_a_toolset_is_unhealthy_is_told_in_words)
{
    struct peg__buf text = PEG__BUF(1000);

    world_start();
    gw_presence_explain(w.presences[0], weather, &text);
    CHECK_STR(peg__buf_view(&text),
              "no healthy providers for toolset \"weather\" (staleness_threshold=40s, "
              "last_pong=missing, age=0s): none is attached; start one");

    peg__buf_clear(&text);
    put(0, "incarnation-1");
    fake_run(&w.hub, 52500);
    gw_presence_explain(w.presences[0], weather, &text);
    CHECK_STR(peg__buf_view(&text),
              "no healthy providers for toolset \"weather\" (staleness_threshold=40s, "
              "last_pong=1970-01-01T00:16:40.000Z, age=52.5s): 1 attached, none answers pings; "
              "restart it");
    peg__buf_free(&text);
    world_stop();
}

/* ---- who writes --------------------------------------------------------------------------------
 */

TEST(a_provider_that_moved_is_not_removed_by_the_loop_it_left)
{
    size_t n;

    world_start();
    put(0, "incarnation-1");
    put(1, "incarnation-1");
    gw_presence_remove(w.presences[0], weather, "incarnation-1");

    CHECK_INT(gw_presence_providers(w.presences[0], weather, &n)->address.loop, 1);
    CHECK_INT(n, 1);
    world_stop();
}

TEST(a_late_pong_of_the_loop_it_left_changes_nothing)
{
    size_t n;

    world_start();
    put(0, "incarnation-1");
    put(1, "incarnation-1");
    gw_presence_pong(w.presences[0], weather, "incarnation-1");

    CHECK_INT(gw_presence_providers(w.presences[0], weather, &n)->address.loop, 1);
    world_stop();
}

TEST(changes_while_a_write_is_on_its_way_are_written_behind_it)
{
    world_start();
    w.hub.is_slow = true;
    put(0, "incarnation-1");
    fake_run(&w.hub, 1000);
    gw_presence_pong(w.presences[0], weather, "incarnation-1");
    gw_presence_remove(w.presences[0], weather, "incarnation-1");

    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 1);
    CHECK_INT(w.hub.n_sets, 1);
    fake_answer_all(&w.hub);
    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 0);
    CHECK_INT(w.hub.n_sets, 2);
    fake_answer_all(&w.hub);
    CHECK_INT(w.hub.n_sets, 2);
    world_stop();
}

TEST(a_write_that_failed_is_made_again)
{
    world_start();
    w.hub.fails = PEG_EIO;
    put(0, "incarnation-1");
    CHECK_INT(state(1), GW_UNHEALTHY);

    w.hub.fails = PEG_OK;
    fake_run(&w.hub, 1000);

    CHECK_INT(state(1), GW_HEALTHY);
    world_stop();
}

TEST(a_removal_that_failed_is_made_again)
{
    world_start();
    put(0, "incarnation-1");
    w.hub.fails = PEG_ENOMEM;
    gw_presence_remove(w.presences[0], weather, "incarnation-1");
    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 1);

    w.hub.fails = PEG_OK;
    fake_run(&w.hub, 1000);

    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 0);
    world_stop();
}

TEST(entries_are_written_again_after_a_reset)
{
    size_t n;

    world_start();
    put(0, "incarnation-1");
    put(1, "incarnation-2");
    fake_lose(&w.hub);

    CHECK(gw_presence_providers(w.presences[0], weather, &n));
    CHECK_INT(n, 2);
    gw_presence_providers(w.presences[1], weather, &n);
    CHECK_INT(n, 2);
    world_stop();
}

TEST(what_was_written_again_after_a_reset_is_no_change)
{
    world_start();
    CHECK_INT(put_for(0, peg__str("a"), "incarnation-1"), PEG_OK);
    CHECK_INT(put_for(0, peg__str("b"), "incarnation-1"), PEG_OK);
    CHECK_INT(put_for(0, peg__str("c"), "incarnation-1"), PEG_OK);
    CHECK_INT(w.n_changes, 3);
    fake_lose(&w.hub);

    CHECK_INT(w.n_changes, 3);
    CHECK_INT(gw_presence_health(w.presences[1], peg__str("c")).state, GW_HEALTHY);
    world_stop();
}

TEST(changes_are_told_when_all_that_failed_is_written)
{
    world_start();
    w.hub.fails = PEG_EIO;
    CHECK_INT(put_for(0, peg__str("a"), "incarnation-1"), PEG_OK);
    CHECK_INT(put_for(0, peg__str("b"), "incarnation-1"), PEG_OK);
    CHECK_INT(w.n_changes, 0);
    w.hub.fails = PEG_OK;
    w.hub.n_sets = 0;
    fake_run(&w.hub, 1000);

    CHECK_INT(w.n_changes, 2);
    CHECK_INT(w.n_sets, 2);
    world_stop();
}

TEST(what_nobody_holds_any_more_is_gone_after_a_reset)
{
    world_start();
    fake_put(&w.hub, BUS_MAP_PROVIDERS, "weather#incarnation-9",
             "{\"at\":\"00000000000000bb.0\",\"pong_ms\":1000000,\"credits\":1}");
    CHECK_INT(gw_presence_health(w.presences[0], weather).n_providers, 1);
    fake_lose(&w.hub);

    CHECK_INT(gw_presence_health(w.presences[0], weather).n_providers, 0);
    world_stop();
}

TEST(what_a_dead_node_left_is_removed_after_a_while)
{
    world_start();
    fake_put(&w.hub, BUS_MAP_PROVIDERS, "weather#incarnation-9",
             "{\"at\":\"00000000000000bb.0\",\"pong_ms\":1000000,\"credits\":1}");

    fake_run(&w.hub, PEG_LIMIT_GATEWAY_GONE_MS / 2);
    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 1);
    fake_run(&w.hub, PEG_LIMIT_GATEWAY_GONE_MS);
    CHECK_INT(gw_presence_health(w.presences[1], weather).n_providers, 0);
    world_stop();
}

/* Not after missed pings: calls fail at once, or go to another provider. */
TEST(providers_of_a_lost_node_are_unhealthy_at_once_and_are_removed)
{
    world_start();
    put(1, "incarnation-1");
    CHECK_INT(state(0), GW_HEALTHY);

    gw_presence_on_node_lost(w.presences[0], (struct bus_address){.node = 0xB, .loop = 1});
    CHECK_INT(state(0), GW_HEALTHY);
    gw_presence_on_node_lost(w.presences[0], w.buses[1].bus.self);
    CHECK_INT(state(0), GW_UNHEALTHY);
    CHECK_INT(w.n_changes, 2);
    fake_run(&w.hub, 5000);
    CHECK_INT(gw_presence_health(w.presences[0], weather).n_providers, 0);
    gw_presence_pong(w.presences[1], weather, "incarnation-1"); /* it was only held up */
    fake_run(&w.hub, 5000);
    CHECK_INT(state(0), GW_HEALTHY);
    world_stop();
}

TEST(a_loop_without_providers_sets_no_timer)
{
    world_start();
    CHECK(net_timers_next_ns(&w.hub.timers) == NET_NEVER);
    world_stop();
}

/* ---- what others may write ---------------------------------------------------------------------
 */

TEST(entries_that_are_not_ours_are_ignored)
{
    static const char *const values[] = {
        "",
        "x",
        "null",
        "[]",
        "{}",
        "{\"at\":1,\"pong_ms\":1,\"credits\":1}",
        "{\"at\":\"x\",\"pong_ms\":1,\"credits\":1}",
        "{\"at\":\"00000000000000bb.0\",\"pong_ms\":-1,\"credits\":1}",
        "{\"at\":\"00000000000000bb.0\",\"pong_ms\":1,\"credits\":10000000}",
        "{\"at\":\"00000000000000bb.0\",\"pong_ms\":\"1\",\"credits\":1}",
        "{\"at\":\"00000000000000bb.0\",\"pong_ms\":1}",
    };
    static const char *const keys[] = {"weather",
                                       "weather#",
                                       "#incarnation-1",
                                       "we ather#incarnation-1",
                                       "weather#short",
                                       "weather#incarnation-1#x",
                                       ""};

    world_start();
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        fake_put(&w.hub, BUS_MAP_PROVIDERS, "weather#incarnation-1", values[i]);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        fake_put(&w.hub, BUS_MAP_PROVIDERS, keys[i],
                 "{\"at\":\"00000000000000bb.0\",\"pong_ms\":1000000,\"credits\":1}");

    CHECK_INT(gw_presence_health(w.presences[0], weather).n_providers, 0);
    CHECK_INT(w.n_changes, 0);
    world_stop();
}

TEST(a_pong_from_the_future_does_not_last_for_ever)
{
    world_start();
    fake_put(&w.hub, BUS_MAP_PROVIDERS, "weather#incarnation-9",
             "{\"at\":\"00000000000000bb.0\",\"pong_ms\":9000000000000000000,\"credits\":1}");
    CHECK_INT(state(0), GW_HEALTHY);
    fake_run(&w.hub, 60000);

    CHECK_INT(state(0), GW_UNHEALTHY);
    world_stop();
}

/* ---- memory ------------------------------------------------------------------------------------
 */

TORTURE(a_loop_without_memory_hears_of_a_provider_later)
{
    peg_status status = world_start();

    if (!status)
        status = put(0, "incarnation-1");
    if (!status) {
        peg__mem_fail_at(0);
        fake_run(&w.hub, 1000);
        if (state(0) != GW_HEALTHY || state(1) != GW_HEALTHY)
            status = PEG_ESTATE;
    }
    world_stop();
    return status;
}
