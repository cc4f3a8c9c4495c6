/* SPDX-License-Identifier: Apache-2.0 */

/* A Redis that is flushed, restarted, halted or set otherwise, and what loops make of it. */

#include "base/clock.h"
#include "base/limits.h"
#include "redis_world.h"

/* ---- fixture -------------------------------------------------------------------------------- */

static atomic_uint n_resets[C_N];

static void count_reset(void *user)
{
    const struct c_messages *messages = (const struct c_messages *)user;

    atomic_fetch_add(&n_resets[messages - c_messages], 1);
}

static void count_resets(void *user)
{
    const unsigned i = *(const unsigned *)user;

    atomic_store(&n_resets[i], 0);
    buses[i]->events.on_reset = count_reset;
}

static void open_counted(void)
{
    c_open();
    for (unsigned i = 0; i < C_N; i++)
        c_do(i, count_resets, &i);
}

static void await_resets(unsigned n)
{
    for (unsigned i = 0; i < C_N; i++) {
        while (atomic_load(&n_resets[i]) < n)
            c_pass();
        await_connected(i);
    }
}

/* Asks until it is answered with something else than PEG_EIO. */
static struct c_asked ask_again(unsigned i, struct c_asked asked)
{
    do {
        asked.n_answers = 0;
        c_ask(i, &asked);
    } while (asked.answer.status == PEG_EIO);
    return asked;
}

static struct c_asked read_again(unsigned i, struct bus_key key)
{
    return ask_again(i, (struct c_asked){.what = C_READ, .key = key});
}

static bool has_own_lease(unsigned i, unsigned asker)
{
    char name[BUS_ADDRESS_TEXT];
    struct c_asked asked = {.what = C_LEASES, .n_names = 1};

    own_name(i, name);
    asked.names[0] = peg__str(name);
    asked = ask_again(asker, asked);
    return bus_address_equal(asked.addresses[0], buses[i]->self);
}

static void lease_own(unsigned i, int64_t lease_ms)
{
    char name[BUS_ADDRESS_TEXT];
    struct c_asked asked = {.what = C_LEASE, .lease_ms = lease_ms};

    own_name(i, name);
    asked.names[0] = peg__str(name);
    asked = ask_again(i, asked);
    CHECK(asked.answer.written);
}

static uint64_t epoch_of_all(void)
{
    const uint64_t epoch = state_of(0).epoch;

    for (unsigned i = 1; i < C_N; i++) {
        while (state_of(i).epoch != epoch)
            c_pass();
    }
    return epoch;
}

/* ---- lost registers ------------------------------------------------------------------------- */

TEST(a_flush_is_another_epoch_and_a_reset_for_each_loop)
{
    uint64_t epoch;

    open_counted();
    epoch = epoch_of_all();
    c_once(0, c_key(1, BUS_RESULT, 0), "lost");
    rs_do("FLUSHALL");
    await_resets(1);

    CHECK(epoch_of_all() != epoch);
    CHECK(!read_again(1, c_key(1, BUS_RESULT, 0)).has_standing);
    c_close();
}

TEST(a_register_that_is_missing_after_a_flush_is_reported_under_another_epoch)
{
    struct c_asked asked;
    uint64_t epoch;

    open_counted();
    epoch = epoch_of_all();
    c_once(0, c_key(1, BUS_CLAIM, 1), "mine");
    for (unsigned i = 0; i < 50; i++) {
        rs_do("FLUSHALL");
        asked = (struct c_asked){.what = C_READ, .key = c_key(1, BUS_CLAIM, 1)};
        c_ask(1, &asked);
        CHECK(asked.answer.status == PEG_EIO || asked.answer.epoch != epoch);
        await_connected(1);
        epoch = state_of(1).epoch;
    }
    c_close();
}

TEST(holders_take_their_leases_again_after_a_flush)
{
    open_counted();
    c_lease(1, "provider", 60000);
    c_lease(1, "short", 20);
    while (c_holder(0, "short").node)
        c_pass();
    rs_do("FLUSHALL");
    await_resets(1);

    for (unsigned i = 0; i < C_N; i++) {
        while (!has_own_lease(i, (i + 1) % C_N))
            c_pass();
    }
    while (!bus_address_equal(c_holder(2, "provider"), buses[1]->self))
        c_pass();
    CHECK_INT(c_holder(2, "short").node, 0);
    c_close();
}

TEST(watches_hear_everything_again_after_a_flush)
{
    struct c_watch watch;

    open_counted();
    c_set(0, "a", "1", 0);
    c_watch(2, &watch);
    c_await_told(&watch, "a=1;ready;");
    rs_do("FLUSHALL");
    await_resets(1);
    c_await_told(&watch, "a=1;ready;ready;");
    c_set(1, "b", "2", 0);

    c_await_told(&watch, "a=1;ready;ready;b=2!");
    c_close();
}

TEST(a_restart_without_persistence_is_another_epoch)
{
    uint64_t epoch;

    open_counted();
    epoch = epoch_of_all();
    c_once(0, c_key(1, BUS_RESULT, 0), "lost");
    rs_stop();
    rs_start(NULL);
    await_resets(1);

    CHECK(epoch_of_all() != epoch);
    CHECK(!read_again(1, c_key(1, BUS_RESULT, 0)).has_standing);
    c_close();
}

TEST(a_restart_that_kept_all_is_another_epoch_too)
{
    static const char *const kept[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    uint64_t epoch;

    rs_open();
    rs_stop();
    rs_start(kept);
    open_counted();
    epoch = epoch_of_all();
    c_once(0, c_key(1, BUS_RESULT, 0), "kept");
    rs_stop();
    rs_start(kept);
    await_resets(1);

    CHECK(epoch_of_all() != epoch);
    CHECK_STR(peg__str(read_again(1, c_key(1, BUS_RESULT, 0)).current), "kept");
    c_close();
    rs_remove();
    rs.dir[0] = '\0'; /* the next test begins with an empty one */
}

TEST(a_cut_connection_is_a_reset_under_the_same_epoch)
{
    uint64_t epoch;

    open_counted();
    epoch = epoch_of_all();
    c_once(0, c_key(1, BUS_RESULT, 0), "kept");
    rs_do("CLIENT KILL TYPE pubsub SKIPME yes");
    await_resets(1);

    CHECK(epoch_of_all() == epoch);
    CHECK_STR(peg__str(read_again(1, c_key(1, BUS_RESULT, 0)).current), "kept");
    c_close();
}

/* ---- the fence ------------------------------------------------------------------------------ */

TEST(a_loop_is_fenced_until_it_has_a_lease_and_when_redis_stands_still)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};

    timeout_ms = 300;
    rs_open();
    open_buses(rs.url);
    await_connected(0);
    CHECK(state_of(0).is_fenced);
    lease_own(0, 600);
    CHECK(!state_of(0).is_fenced);

    kill(rs.pid, SIGSTOP);
    c_ask(0, &asked);
    CHECK_INT(asked.answer.status, PEG_EIO);
    while (!state_of(0).is_fenced)
        c_pass();
    kill(rs.pid, SIGCONT);
    lease_own(0, 60000);

    CHECK(!state_of(0).is_fenced);
    timeout_ms = 5000;
    c_close();
}

static void release_own(void *user)
{
    char name[BUS_ADDRESS_TEXT];

    (void)user;
    own_name(0, name);
    bus_release(buses[0], peg__str(name));
}

TEST(a_loop_that_releases_its_address_is_fenced)
{
    c_open();
    CHECK(!state_of(0).is_fenced);
    c_do(0, release_own, NULL);

    CHECK(state_of(0).is_fenced);
    c_close();
}

TEST(requests_without_a_connection_are_answered_in_time)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};
    struct c_asked leased = {.what = C_LEASE, .names = {peg__str("x")}, .lease_ms = 1000};

    open_counted();
    rs_stop();
    do {
        asked.n_answers = 0;
        c_ask(0, &asked);
    } while (asked.answer.status == PEG_OK);
    asked.n_answers = 0;
    c_ask(0, &asked);
    c_ask(0, &leased);

    CHECK_INT(asked.answer.status, PEG_EIO);
    CHECK_INT(leased.answer.status, PEG_EIO);
    rs_start(NULL);
    await_resets(1);
    CHECK_INT(read_again(0, c_key(1, BUS_RESULT, 0)).answer.status, PEG_OK);
    c_close();
}

/* ---- settings that change ------------------------------------------------------------------- */

static void await_refused(unsigned i)
{
    while (state_of(i).is_connected) {
        char name[BUS_ADDRESS_TEXT];
        struct c_asked asked = {.what = C_LEASE, .lease_ms = 60000};

        own_name(i, name);
        asked.names[0] = peg__str(name);
        c_ask(i, &asked);
    }
}

TEST(a_renewal_finds_that_redis_evicts)
{
    open_counted();
    rs_do("CONFIG SET maxmemory 100mb maxmemory-policy volatile-ttl");
    await_refused(0);
    rs_do("CONFIG SET maxmemory-policy noeviction");
    await_connected(0);
    lease_own(0, 60000);
    rs_do("CONFIG SET maxmemory 0");
    c_close();
}

TEST(a_renewal_finds_that_redis_is_a_replica)
{
    open_counted();
    rs_do("REPLICAOF 127.0.0.1 1");
    await_refused(0);
    rs_do("REPLICAOF NO ONE");
    await_connected(0);
    lease_own(0, 60000);
    c_close();
}

TEST(a_full_redis_refuses_writes_and_nothing_else)
{
    struct c_asked asked = {.what = C_ONCE, .key = c_key(5, BUS_RESULT, 0)};

    open_counted();
    c_once(0, c_key(1, BUS_RESULT, 0), "there");
    asked.value = peg__blob_copy(peg__str("new"));
    rs_do("CONFIG SET maxmemory 1");
    c_ask(0, &asked);
    CHECK_STR(peg__str(c_read(0, c_key(1, BUS_RESULT, 0)).current), "there");
    lease_own(0, 60000); /* else the node would be fenced, and its calls given up */
    rs_do("CONFIG SET maxmemory 0");

    CHECK_INT(asked.answer.status, PEG_ELIMIT);
    CHECK(c_once(0, c_key(5, BUS_RESULT, 0), "new").answer.written);
    peg__blob_unref(asked.value);
    c_close();
}

static struct bus_answer set_in(enum bus_map map, struct peg__blob *value)
{
    return ask_again(0, (struct c_asked){.what = C_SET,
                                         .map = map,
                                         .names = {peg__str("k")},
                                         .value = value,
                                         .expected = BUS_ANY_REVISION})
        .answer;
}

/* Nodes and providers that could not say that they live would count as gone. */
TEST(a_full_redis_takes_what_nodes_and_providers_say_and_no_toolset)
{
    struct peg__blob *value = peg__blob_copy(peg__str("v"));

    open_counted();
    CHECK(set_in(BUS_MAP_TOOLSETS, value).written);
    rs_do("CONFIG SET maxmemory 1");
    CHECK(set_in(BUS_MAP_PROVIDERS, value).written);
    CHECK(set_in(BUS_MAP_NODES, value).written);
    CHECK_INT(set_in(BUS_MAP_TOOLSETS, value).status, PEG_ELIMIT);
    CHECK(set_in(BUS_MAP_TOOLSETS, NULL).written); /* that makes room */
    rs_do("CONFIG SET maxmemory 0");
    peg__blob_unref(value);
    c_close();
}

TEST(a_lost_connection_comes_back_while_redis_is_full)
{
    struct bus_redis_hub *hub;
    peg_error error;
    const uint64_t epoch = (open_counted(), epoch_of_all());

    rs_do("CONFIG SET maxmemory 1");
    rs_do("CLIENT KILL TYPE pubsub SKIPME yes");
    await_resets(1);
    CHECK(epoch_of_all() == epoch);
    lease_own(0, 60000);
    /* A node may start, too. */
    CHECK_STATUS(
        bus_redis_hub_new(&(struct bus_redis_options){.url = rs.url, .name = registry, .node = 7},
                          &hub, &error),
        PEG_OK, error);
    CHECK_STATUS(bus_redis_hub_check(hub, &error), PEG_OK, error);
    bus_redis_hub_free(hub);
    rs_do("CONFIG SET maxmemory 0");
    c_close();
}

/* The loop that finds them gone resets its connection and loads them for all. */
static void await_any_reset(void)
{
    unsigned n = 0;

    while (!n) {
        c_pass();
        for (unsigned i = 0; i < C_N; i++)
            n += atomic_load(&n_resets[i]);
    }
    for (unsigned i = 0; i < C_N; i++)
        await_connected(i);
}

TEST(flushed_scripts_are_loaded_again)
{
    open_counted();
    rs_do("SCRIPT FLUSH");
    await_any_reset();
    lease_own(0, 60000);
    CHECK(ask_again(0, (struct c_asked){.what = C_SET,
                                        .map = BUS_MAP_PROVIDERS,
                                        .names = {peg__str("k")},
                                        .expected = BUS_ANY_REVISION})
              .answer.written);
    c_close();
}

/* ---- what Redis holds ----------------------------------------------------------------------- */

static bool may_be_for_ever(peg_str key)
{
    static const char *const ends[] = {":epoch", ":secret", ":map:providers",
                                       ":map:providers:index"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const peg_str end = peg__str(ends[i]);

        if (key.len > end.len && peg__str_eq(peg__str_from(key, key.len - end.len), end))
            return true;
    }
    return false;
}

/* Returns how many keys there are. */
static size_t check_expiries(void)
{
    struct rs_client *all = rs_client_new();
    struct rs_client *each = rs_client_new();
    char words[512];
    const struct resp_value *keys;
    size_t n;

    snprintf(words, sizeof(words), "KEYS peg:%s:*", registry);
    keys = rs_ask(all, words);
    n = keys->n_items;
    for (size_t i = 0; i < n; i++) {
        const peg_str key = resp_item(keys, i)->text;

        snprintf(words, sizeof(words), "PTTL " PEG_FMT, PEG_ARG(key));
        if (rs_ask(each, words)->integer == -1 && !may_be_for_ever(key))
            T_FAIL("the key " PEG_FMT " is there for ever", PEG_ARG(key));
    }
    rs_client_free(all);
    rs_client_free(each);
    return n;
}

static size_t n_keys(const char *pattern)
{
    struct rs_client *client = rs_client_new();
    char words[128];
    size_t n;

    snprintf(words, sizeof(words), "KEYS peg:%s:%s", registry, pattern);
    n = rs_ask(client, words)->n_items;
    rs_client_free(client);
    return n;
}

static struct bus_message large_message(size_t n)
{
    struct bus_message message = {.kind = BUS_CALL, .id = c_id(9)};

    message.body = peg__blob_new(n);
    CHECK(message.body);
    memset(message.body->bytes, 'x', n);
    memcpy(message.body->bytes, "large", 6);
    return message;
}

TEST(every_key_has_an_expiry_but_those_of_the_registry_itself)
{
    struct bus_message message = large_message(100000);

    open_counted();
    c_once(0, c_key(1, BUS_IDENTITY, 0), "c");
    c_once(0, c_key(1, BUS_CLAIM, 1), "k");
    c_once(0, c_key(1, BUS_RESULT, 0), "t");
    c_wait_add(0, c_key(1, BUS_RESULT, 0));
    c_wait_add(2, c_key(1, BUS_RESULT, 0));
    c_lease(0, "provider", 60000);
    c_set(0, "a", "1", 0);
    CHECK(c_send(0, buses[2]->self, &message));
    peg__blob_unref(message.body);

    CHECK(check_expiries() >= 10);
    c_close();
}

TEST(a_large_body_travels_by_a_key_that_is_gone_afterwards)
{
    struct bus_message message = large_message(PEG_LIMIT_REDIS_INLINE_BYTES + 1);

    open_counted();
    CHECK(c_send(0, buses[2]->self, &message));
    peg__blob_unref(message.body);
    c_await_messages(2, 1);

    CHECK_STR(peg__str(c_messages[2].bodies[0]), "large");
    CHECK_INT(n_keys("body:*"), 0);
    c_close();
}

struct many_large {
    struct bus_message message;
};

static void send_many_large(void *user)
{
    const struct many_large *many = (const struct many_large *)user;

    for (unsigned k = 0; k < 30; k++)
        bus_send(buses[0], buses[2]->self, &many->message, NULL);
}

/* Together they are more than Redis lets wait for a subscriber. */
VOLUME_TEST(many_large_bodies_at_once_do_not_cut_the_connection)
{
    struct many_large many = {.message = large_message(2 << 20)};

    open_counted();
    c_do(0, send_many_large, &many);
    c_await_messages(2, 30);

    CHECK_INT(atomic_load(&n_resets[2]), 0);
    CHECK_INT(n_keys("body:*"), 0);
    peg__blob_unref(many.message.body);
    c_close();
}

TEST(what_stays_on_a_node_does_not_touch_redis)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(77)};
    struct bus_key key = c_key(77, BUS_CLAIM, 1);

    open_counted();
    key.is_node_local = true;
    CHECK(c_once(0, key, "mine").answer.written);
    CHECK(!c_once(1, key, "yours").answer.written);
    CHECK(c_read(1, key).answer.epoch == state_of(1).epoch);
    CHECK(!c_read(2, key).has_standing);
    CHECK(c_send(0, buses[1]->self, &message));
    c_await_messages(1, 1);

    CHECK_INT(n_keys("{*"), 0);
    c_close();
}

/* ---- maps ----------------------------------------------------------------------------------- */

TEST(a_large_value_of_a_map_is_fetched)
{
    enum { N = PEG_LIMIT_REDIS_INLINE_BYTES + 1 };
    struct c_watch watch;
    struct c_asked asked = {.what = C_SET, .map = BUS_MAP_PROVIDERS, .names = {peg__str("k")}};

    open_counted();
    c_watch(2, &watch);
    c_await_told(&watch, "ready;");
    asked.value = peg__blob_new(N);
    memset(asked.value->bytes, 0, N);
    memcpy(asked.value->bytes, "large", 5);
    c_ask(0, &asked);

    CHECK_INT(asked.answer.status, PEG_OK);
    c_await_told(&watch, "ready;k=large!");
    peg__blob_unref(asked.value);
    c_close();
}

TEST(a_change_that_was_missed_is_found_at_the_next_renewal)
{
    struct c_watch watch;
    char words[256];
    const char *revision = "2000000000000";

    open_counted();
    c_set(0, "a", "1", 0);
    c_watch(2, &watch);
    c_await_told(&watch, "a=1;ready;");
    snprintf(words, sizeof(words), "HSET peg:%s:map:providers b %s:2", registry, revision);
    rs_do(words);
    snprintf(words, sizeof(words), "ZADD peg:%s:map:providers:index %s kb %s r", registry, revision,
             revision);
    rs_do(words);
    lease_own(2, 60000);

    c_await_told(&watch, "a=1;ready;a=1;b=2;ready;");
    c_close();
}

TEST(a_change_behind_one_that_was_missed_shows_it)
{
    struct c_watch watch;
    char words[256];

    open_counted();
    c_set(0, "a", "1", 0);
    c_watch(2, &watch);
    c_await_told(&watch, "a=1;ready;");
    snprintf(words, sizeof(words), "HSET peg:%s:map:providers b 2000000000000:2", registry);
    rs_do(words);
    snprintf(words, sizeof(words),
             "ZADD peg:%s:map:providers:index 2000000000000 kb 2000000000000 r", registry);
    rs_do(words);
    c_set(0, "c", "3", 0);

    c_await_told(&watch, "a=1;ready;a=1;b=2;c=3;ready;");
    c_close();
}

TEST(many_keys_are_loaded_in_the_order_of_their_revisions)
{
    struct c_watch watch;
    struct peg__buf expected = PEG__BUF(4096);

    open_counted();
    for (unsigned k = 0; k < 50; k++) {
        char name[8];

        snprintf(name, sizeof(name), "%02u", (k * 7) % 50);
        c_set(k % C_N, name, "v", 0);
        peg__buf_printf(&expected, "%s=v;", name);
    }
    peg__buf_puts(&expected, "ready;");
    c_watch(1, &watch);

    c_await_told(&watch, expected.ptr);
    CHECK(watch.is_in_order);
    peg__buf_free(&expected);
    c_close();
}

/* ---- time and the secret -------------------------------------------------------------------- */

static int64_t redis_now_ms(struct rs_client *client)
{
    const struct resp_value *reply = rs_ask(client, "TIME");
    uint64_t s = 0;
    uint64_t us = 0;

    CHECK(resp_parse_number(resp_item(reply, 0)->text, &s));
    CHECK(resp_parse_number(resp_item(reply, 1)->text, &us));
    return (int64_t)(s * 1000 + us / 1000);
}

TEST(cluster_time_is_that_of_redis)
{
    struct rs_client *client;
    int64_t before_ms;
    int64_t after_ms;
    int64_t now_ms;

    open_counted();
    client = rs_client_new();
    before_ms = redis_now_ms(client);
    now_ms = state_of(2).now_ms;
    after_ms = redis_now_ms(client);

    CHECK(now_ms >= before_ms - 20 && now_ms <= after_ms + 20);
    rs_client_free(client);
    c_close();
}

struct asked_secret {
    unsigned i;
    uint8_t secret[BUS_REDIS_SECRET_BYTES];
};

static void ask_secret(void *user)
{
    struct asked_secret *asked = (struct asked_secret *)user;

    bus_redis_secret(buses[asked->i], asked->secret);
}

static struct asked_secret secret_of(unsigned i)
{
    struct asked_secret asked = {.i = i};

    c_do(i, ask_secret, &asked);
    return asked;
}

static bool is_same_secret(struct asked_secret a, struct asked_secret b)
{
    return memcmp(a.secret, b.secret, sizeof(a.secret)) == 0;
}

/* Counted from the beginning. */
static void open_told(void *user)
{
    unsigned i = 2;

    (void)user;
    open_bus(&i);
    count_resets(&i);
}

TEST(all_nodes_have_one_secret_also_after_a_flush)
{
    const struct asked_secret before = (open_counted(), secret_of(0));

    for (unsigned i = 1; i < C_N; i++)
        CHECK(is_same_secret(before, secret_of(i)));
    rs_do("FLUSHALL");
    await_resets(1);
    for (unsigned i = 0; i < C_N; i++)
        CHECK(is_same_secret(before, secret_of(i)));
    c_close();
}

/* Between the look of a program that starts and the first connection of its loops another node may
 * have written another one. */
TEST(a_secret_that_came_before_the_first_connection_is_told)
{
    static const uint8_t mine[BUS_REDIS_SECRET_BYTES] = {1};
    const struct asked_secret theirs = (open_counted(), secret_of(0));
    struct bus_redis_options options = {.url = rs.url, .name = registry, .node = 7, .secret = mine};
    peg_error error;

    c_do(2, close_bus, &buses[2]);
    bus_redis_hub_free(hubs[1]);
    CHECK_STATUS(bus_redis_hub_new(&options, &hubs[1], &error), PEG_OK, error);
    c_do(2, open_told, NULL);
    while (!atomic_load(&n_resets[2]))
        c_pass();
    CHECK(is_same_secret(theirs, secret_of(2)));
    c_close();
}

/* ---- memory --------------------------------------------------------------------------------- */

struct all_kinds {
    unsigned nth;
    struct c_asked asked[8];
};

static void ask_all_kinds(void *user)
{
    struct all_kinds *all = (struct all_kinds *)user;

    peg__mem_fail_once(all->nth);
    for (unsigned k = 0; k < 8; k++)
        c_ask_here(&all->asked[k]);
}

static void stop_failing(void *user)
{
    (void)user;
    peg__mem_fail_at(0);
}

/* Each request is answered once, whichever allocation fails, and the loop goes on. */
TEST(requests_survive_any_allocation_failure)
{
    struct c_watch watch;
    char name[BUS_ADDRESS_TEXT];

    open_counted();
    own_name(0, name);
    c_watch(0, &watch);
    for (unsigned nth = 1; nth < 60; nth++) {
        struct all_kinds all = {.nth = nth};

        for (unsigned k = 0; k < 8; k++) {
            all.asked[k] = (struct c_asked){
                .what = k,
                .bus = buses[0],
                .key = c_key(nth, BUS_RESULT, 0),
                .to = buses[2]->self,
                .names = {peg__str(name)},
                .n_names = 1,
                .lease_ms = 60000,
                .map = BUS_MAP_PROVIDERS,
                .expected = BUS_ANY_REVISION,
                .value = peg__blob_copy(peg__str("value")),
            };
        }
        c_do(0, ask_all_kinds, &all);
        for (unsigned k = 0; k < 8; k++) {
            while (c_n_answers(&all.asked[k]) == 0)
                c_pass();
            peg__blob_unref(all.asked[k].value);
        }
        c_do(0, stop_failing, NULL);
        await_connected(0);
        for (unsigned k = 0; k < 8; k++)
            CHECK_INT(c_n_answers(&all.asked[k]), 1);
    }
    c_close();
}

TORTURE(a_first_look_survives_any_allocation_failure)
{
    const struct bus_redis_options options = {.url = rs.url, .name = "torture", .node = 7};
    struct bus_redis_hub *hub = NULL;
    peg_status status;

    if (!rs_is_installed())
        return PEG_OK;
    rs_open();
    status = bus_redis_hub_new(&options, &hub, NULL);
    if (!status)
        status = bus_redis_hub_check(hub, NULL);
    bus_redis_hub_free(hub);
    return status == PEG_EIO ? PEG_ENOMEM : status; /* the cause of a lost connection */
}
