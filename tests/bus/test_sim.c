/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"
#include "contract.h"
#include "sim/sim.h"

/* ---- what the contract asks for: two loops of one node, and one of another ------------------ */

static struct bus_sim *sim;
static struct bus *buses[C_N];
static uint64_t nodes[2];

static struct bus *c_bus(unsigned i)
{
    return buses[i];
}

static void c_do(unsigned i, void (*fn)(void *user), void *user)
{
    (void)i;
    fn(user);
}

static void c_pass(void)
{
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 500000);
}

static void open_world(uint64_t seed, const struct bus_sim_faults *faults,
                       const struct bus_sim_hooks *hooks)
{
    peg_error error;

    CHECK_STATUS(bus_sim_new(&sim, &error), PEG_OK, error);
    bus_sim_begin(sim, seed, faults, hooks);
    CHECK_INT(bus_sim_add_node(sim, 2, buses, &nodes[0]), PEG_OK);
    CHECK_INT(bus_sim_add_node(sim, 1, buses + 2, &nodes[1]), PEG_OK);
    for (unsigned i = 0; i < C_N; i++)
        c_listen(i);
}

static void c_settle(void)
{
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 2 * PEG_NS_PER_S);
}

static void c_end(unsigned i)
{
    bus_free(buses[i]);
}

static void lease_own(unsigned i, int64_t lease_ms)
{
    char name[BUS_ADDRESS_TEXT];

    bus_address_print(c_bus(i)->self, name);
    c_lease(i, name, lease_ms);
}

static void c_open(void)
{
    open_world(7, NULL, NULL);
    for (unsigned i = 0; i < C_N; i++)
        lease_own(i, 100000);
}

static void c_close(void)
{
    sim = bus_sim_free(sim);
}

#include "contract_tests.h"

/* ---- nodes that break ----------------------------------------------------------------------- */

TEST(a_node_that_is_paused_hears_later)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    int64_t paused_ns;

    c_open();
    bus_sim_pause(sim, nodes[1], 5 * PEG_NS_PER_S);
    paused_ns = bus_sim_now_ns(sim);
    CHECK(c_send(0, buses[2]->self, &message));
    bus_sim_run_until(sim, paused_ns + 4 * PEG_NS_PER_S);
    CHECK_INT(c_n_messages(2), 0);
    bus_sim_run_until(sim, paused_ns + 5 * PEG_NS_PER_S + PEG_NS_PER_MS);

    CHECK_INT(c_n_messages(2), 1);
    c_close();
}

TEST(what_comes_while_a_node_is_paused_comes_in_order_afterwards)
{
    bool is_in_order = true;

    open_world(5, NULL, NULL);
    bus_sim_pause(sim, nodes[1], 5 * PEG_NS_PER_S);
    for (unsigned i = 0; i < 50; i++) {
        const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1), .attempt = i};

        CHECK(c_send(0, buses[2]->self, &message));
        bus_sim_run_until(sim, bus_sim_now_ns(sim) + 10 * PEG_NS_PER_MS);
    }
    c_await_messages(2, 50);
    for (unsigned i = 0; i < 50; i++)
        is_in_order &= c_messages[2].first[i].attempt == i;

    CHECK(is_in_order);
    c_close();
}

TEST(timers_of_a_paused_node_ring_when_it_goes_on)
{
    struct c_alarm alarm = {0};

    c_open();
    c_arm_here(&alarm);
    bus_sim_pause(sim, nodes[0], 5 * PEG_NS_PER_S);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 4 * PEG_NS_PER_S);
    CHECK(!alarm.has_rung);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + PEG_NS_PER_S);

    CHECK(alarm.has_rung);
    CHECK(alarm.rang_ns - alarm.timer.due_ns > 4 * PEG_NS_PER_S);
    c_close();
}

TEST(what_a_crashed_node_wrote_stays)
{
    c_open();
    c_once(2, c_key(1, BUS_CLAIM, 1), "mine");
    c_lease(2, "provider", 60000);
    bus_sim_crash(sim, nodes[1]);

    CHECK_STR(peg__str(c_read(0, c_key(1, BUS_CLAIM, 1)).current), "mine");
    CHECK_INT(c_holder(0, "provider").node, nodes[1]);
    c_close();
}

TEST(nobody_gets_a_message_to_a_node_that_crashed)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    struct bus_address to;

    c_open();
    to = buses[2]->self;
    bus_sim_crash(sim, nodes[1]);

    CHECK(!c_send(0, to, &message));
    c_close();
}

TEST(a_node_that_crashed_asks_and_hears_nothing)
{
    struct c_asked before = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};
    struct c_asked after = before;

    c_open();
    before.bus = after.bus = buses[2];
    c_ask_here(&before);
    bus_sim_crash(sim, nodes[1]);
    c_ask_here(&after);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 10 * PEG_NS_PER_S);

    CHECK_INT(before.n_answers + after.n_answers, 0);
    CHECK(!before.wait.pending && !after.wait.pending);
    c_close();
}

TEST(what_a_crashed_node_kept_to_itself_is_gone)
{
    struct bus_key key = c_key(1, BUS_RESULT, 0);

    c_open();
    key.is_node_local = true;
    c_once(2, key, "x");
    CHECK(bus_sim_recheck(sim, &key));
    bus_sim_crash(sim, nodes[1]);

    CHECK(!bus_sim_recheck(sim, &key));
    c_close();
}

TEST(registers_that_a_node_keeps_to_itself_are_answered_at_once)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};

    c_open();
    asked.key.is_node_local = true;
    asked.bus = buses[0];
    c_once(1, asked.key, "x");
    c_ask_here(&asked);
    CHECK_INT(asked.n_answers, 1);
    CHECK_STR(peg__str(asked.current), "x");
    asked.bus = buses[2];
    c_ask_here(&asked);

    CHECK(!asked.has_standing);
    c_close();
}

/* ---- lost nodes and posts ------------------------------------------------------------------ */

TEST(a_node_that_crashed_is_lost_when_its_lease_ends)
{
    c_open();
    lease_own(2, 10000);
    bus_sim_crash(sim, nodes[1]);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 9 * PEG_NS_PER_S);
    CHECK_INT(c_n_lost(0), 0);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 2 * PEG_NS_PER_S);

    CHECK_INT(c_n_lost(0), 1);
    CHECK_INT(c_n_lost(1), 1);
    CHECK_INT(c_messages[0].last_lost.node, nodes[1]);
    c_close();
}

TEST(a_node_that_is_paused_is_lost_and_gets_losses_of_others_afterwards)
{
    c_open();
    lease_own(0, 5000);
    lease_own(2, 5000);
    bus_sim_pause(sim, nodes[1], 10 * PEG_NS_PER_S);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 9 * PEG_NS_PER_S);
    CHECK_INT(c_n_lost(1), 2);
    CHECK_INT(c_n_lost(2), 0);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 2 * PEG_NS_PER_S);

    CHECK_INT(c_n_lost(2), 1);
    CHECK_INT(c_messages[2].last_lost.node, nodes[0]);
    c_close();
}

TEST(a_lease_that_lapses_loses_its_node)
{
    open_world(1, NULL, NULL);
    lease_own(0, 60000);
    bus_sim_lapse(sim);
    c_settle();

    CHECK_INT(c_n_lost(0), 0);
    CHECK_INT(c_n_lost(1), 1);
    CHECK_INT(c_n_lost(2), 1);
    c_close();
}

TEST(a_new_epoch_loses_no_node)
{
    c_open();
    bus_sim_new_epoch(sim);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 200 * PEG_NS_PER_S);

    CHECK_INT(c_n_lost(0) + c_n_lost(1) + c_n_lost(2), 0);
    c_close();
}

TEST(faults_lose_neither_posts_nor_lost_nodes)
{
    const struct bus_sim_faults faults = {.drop_message = 65536, .slow = 30000};

    open_world(1, &faults, NULL);
    c_post_to(1);
    CHECK(!c_check_run(&c_messages[1]));
    lease_own(2, 1000);
    bus_sim_crash(sim, nodes[1]);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 10 * PEG_NS_PER_S);

    CHECK_INT(c_n_lost(0), 1);
    CHECK_INT(c_n_lost(1), 1);
    c_close();
}

TEST(posts_within_a_node_that_crashes_come_back)
{
    c_open();
    memset(&c_posting, 0, sizeof(c_posting));
    c_posting.loop = 1;
    for (unsigned k = 0; k < C_POSTS; k++)
        c_posting.posts[k].post.fn = c_run_post;
    c_post_all(NULL);
    bus_sim_crash(sim, nodes[0]);

    CHECK(!c_check_run(NULL));
    c_settle();
    CHECK_INT(c_posting.n_run, C_POSTS);
    c_close();
}

/* ---- the server ----------------------------------------------------------------------------- */

static unsigned n_resets;

static void count_reset(void *user)
{
    (void)user;
    n_resets++;
}

static void count_resets(void)
{
    static const struct bus_events events = {.on_message = c_on_message, .on_reset = count_reset};

    n_resets = 0;
    for (unsigned i = 0; i < C_N; i++)
        bus_listen(buses[i], &events, &c_messages[i]);
}

TEST(a_new_epoch_loses_everything_and_every_loop_hears_of_it)
{
    struct c_watch watch;

    c_open();
    count_resets();
    c_once(0, c_key(1, BUS_RESULT, 0), "x");
    c_lease(0, "provider", 60000);
    c_set(0, "a", "1", 0);
    c_watch(1, &watch);
    c_await_told(&watch, "a=1;ready;");
    bus_sim_new_epoch(sim);
    while (n_resets < C_N)
        c_pass();

    CHECK_INT(bus_epoch(buses[2]), 2);
    CHECK(!c_read(0, c_key(1, BUS_RESULT, 0)).has_standing);
    CHECK_INT(c_holder(0, "provider").node, 0);
    c_await_told(&watch, "a=1;ready;ready;");
    c_set(0, "b", "2", 0);
    c_await_told(&watch, "a=1;ready;ready;b=2!");
    c_close();
}

TEST(a_loop_does_not_know_of_a_new_epoch_at_once_but_answers_tell_it)
{
    c_open();
    bus_sim_new_epoch(sim);

    CHECK_INT(bus_epoch(buses[0]), 1);
    CHECK_INT(c_read(0, c_key(1, BUS_RESULT, 0)).answer.epoch, 2);
    c_close();
}

TEST(a_cut_connection_answers_what_was_asked_with_an_error)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};

    c_open();
    count_resets();
    asked.bus = buses[2];
    c_ask_here(&asked);
    bus_sim_cut(sim, nodes[1]);
    while (asked.n_answers == 0 || n_resets == 0)
        c_pass();

    CHECK_INT(asked.answer.status, PEG_EIO);
    CHECK_INT(n_resets, 1);
    CHECK_INT(bus_epoch(buses[2]), 1);
    c_close();
}

TEST(a_loop_is_fenced_from_before_its_lease_runs_out_until_it_is_renewed)
{
    open_world(1, NULL, NULL);
    CHECK(bus_is_fenced(buses[0]));
    lease_own(0, 10000);
    CHECK(!bus_is_fenced(buses[0]));
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 8990 * PEG_NS_PER_MS);
    CHECK(!bus_is_fenced(buses[0]));
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 20 * PEG_NS_PER_MS);
    CHECK(bus_is_fenced(buses[0]));
    lease_own(0, 10000);

    CHECK(!bus_is_fenced(buses[0]));
    c_close();
}

TEST(a_lease_may_lapse)
{
    open_world(1, NULL, NULL);
    c_lease(0, "provider", 60000);
    bus_sim_lapse(sim);

    CHECK_INT(c_holder(0, "provider").node, 0);
    bus_sim_lapse(sim);
    c_close();
}

TEST(a_register_whose_time_is_over_is_gone)
{
    c_open();
    c_once(0, c_key(1, BUS_RESULT, 0), "x");
    CHECK_INT(bus_sim_n_registers(sim, 16), 1);
    CHECK_INT(bus_sim_n_registers(sim, 32), 0);
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 61 * PEG_NS_PER_S);

    CHECK(!c_read(0, c_key(1, BUS_RESULT, 0)).has_standing);
    CHECK_INT(bus_sim_n_registers(sim, 0), 0);
    c_close();
}

/* ---- faults --------------------------------------------------------------------------------- */

TEST(an_answer_that_got_lost_tells_nothing_but_it_happened)
{
    const struct bus_sim_faults faults = {.lose_answer = 65536};
    struct c_asked asked = {.what = C_ONCE, .key = c_key(1, BUS_RESULT, 0)};

    open_world(1, &faults, NULL);
    asked.value = peg__blob_copy(peg__str("x"));
    c_ask(0, &asked);
    peg__blob_unref(asked.value);

    CHECK_INT(asked.answer.status, PEG_EIO);
    CHECK(!asked.answer.written && !asked.has_standing);
    CHECK(bus_sim_recheck(sim, &asked.key));
    c_close();
}

TEST(a_question_that_got_lost_did_not_happen)
{
    const struct bus_sim_faults faults = {.lose_question = 65536};
    struct c_asked asked = {.what = C_ONCE, .key = c_key(1, BUS_RESULT, 0)};

    open_world(1, &faults, NULL);
    asked.value = peg__blob_copy(peg__str("x"));
    c_ask(0, &asked);
    peg__blob_unref(asked.value);

    CHECK_INT(asked.answer.status, PEG_EIO);
    CHECK(!bus_sim_recheck(sim, &asked.key));
    c_close();
}

TEST(messages_get_lost_and_who_sent_them_does_not_know)
{
    const struct bus_sim_faults faults = {.drop_message = 32768};
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};

    open_world(1, &faults, NULL);
    for (unsigned i = 0; i < 200; i++)
        CHECK(c_send(0, buses[2]->self, &message));
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + PEG_NS_PER_S);

    CHECK(c_n_messages(2) > 60 && c_n_messages(2) < 140);
    bus_sim_calm(sim);
    c_close();
}

TEST(messages_overtake_each_other)
{
    const struct bus_sim_faults faults = {.delay_ns = 50 * PEG_NS_PER_MS};
    bool is_in_order = true;

    open_world(3, &faults, NULL);
    for (unsigned i = 0; i < 50; i++) {
        const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1), .attempt = i};

        bus_send(buses[0], buses[2]->self, &message, NULL);
    }
    c_await_messages(2, 50);
    for (unsigned i = 0; i < 50; i++)
        is_in_order &= c_messages[2].first[i].attempt == i;

    CHECK(!is_in_order);
    c_close();
}

TEST(the_clocks_of_nodes_differ_and_that_of_the_wall_a_little)
{
    const struct bus_sim_faults faults = {.skew_ms = 5};
    int64_t off_ms;

    open_world(3, &faults, NULL);
    off_ms = bus_now_ms(buses[0]) - bus_now_ms(buses[2]);

    CHECK(bus_now_ns(buses[0]) != bus_now_ns(buses[2]));
    CHECK(off_ms >= -10 && off_ms <= 10);
    c_close();
}

/* ---- observers, and worlds ------------------------------------------------------------------ */

static unsigned n_written;
static unsigned n_forgotten;

static void on_written(void *user, const struct bus_key *key, struct peg__blob *value,
                       struct bus_address by)
{
    (void)user;
    n_written += key->what == BUS_RESULT && value && by.node;
}

static void on_forgotten(void *user, const struct bus_id *id)
{
    (void)user;
    n_forgotten += id->len == 16;
}

TEST(an_observer_hears_what_is_written_once_and_what_is_forgotten)
{
    const struct bus_sim_hooks hooks = {.on_written = on_written, .on_forgotten = on_forgotten};

    n_written = n_forgotten = 0;
    open_world(1, NULL, &hooks);
    c_once(0, c_key(1, BUS_RESULT, 0), "x");
    c_once(1, c_key(1, BUS_RESULT, 0), "y");
    c_forget(0, c_key(1, BUS_RESULT, 0));
    while (n_forgotten == 0)
        c_pass();

    CHECK_INT(n_written, 1);
    c_close();
}

/* Something of everything, as a number. */
static uint64_t run_world(uint64_t seed)
{
    static const struct bus_sim_faults faults = {.drop_message = 10000,
                                                 .lose_question = 3000,
                                                 .lose_answer = 3000,
                                                 .slow = 1000,
                                                 .timer_lag_ns = 1000000};
    uint64_t sum = 0;

    bus_sim_begin(sim, seed, &faults, NULL);
    CHECK_INT(bus_sim_add_node(sim, 2, buses, &nodes[0]), PEG_OK);
    CHECK_INT(bus_sim_add_node(sim, 1, buses + 2, &nodes[1]), PEG_OK);
    for (unsigned i = 0; i < C_N; i++) {
        c_listen(i);
        for (unsigned k = 0; k < 100; k++) {
            const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(k)};

            bus_send(buses[i], buses[k % C_N]->self, &message, NULL);
        }
    }
    bus_sim_run_until(sim, bus_sim_now_ns(sim) + 10 * PEG_NS_PER_S);
    for (unsigned i = 0; i < C_N; i++)
        sum = sum * 1000 + c_n_messages(i);
    return sum * 1000 + bus_sim_n_events(sim);
}

TEST(a_seed_decides_everything)
{
    uint64_t first;

    CHECK_INT(bus_sim_new(&sim, NULL), PEG_OK);
    first = run_world(11);

    CHECK(run_world(12) != first);
    CHECK(run_world(11) == first);
    c_close();
}

static peg_status ask_much(void)
{
    struct c_asked asked[8] = {{.what = C_ONCE}, {.what = C_READ},   {.what = C_WAIT},
                               {.what = C_SEND}, {.what = C_LEASE},  {.what = C_LEASES},
                               {.what = C_SET},  {.what = C_WAITERS}};
    struct peg__blob *value = peg__blob_copy(peg__str("x"));
    peg_status status = value ? PEG_OK : PEG_ENOMEM;

    for (unsigned i = 0; !status && i < 8; i++) {
        asked[i].bus = buses[0];
        asked[i].key = c_key(1, BUS_RESULT, 0);
        asked[i].to = buses[2]->self;
        asked[i].value = value;
        asked[i].names[0] = peg__str("name");
        asked[i].n_names = 1;
        asked[i].lease_ms = 1000;
        c_ask_here(&asked[i]);
        while (asked[i].n_answers == 0)
            c_pass();
        CHECK_INT(asked[i].n_answers, 1);
        status = asked[i].answer.status;
    }
    peg__blob_unref(value);
    return status;
}

TORTURE(a_world_survives_any_allocation_failure)
{
    peg_status status;

    sim = NULL;
    status = bus_sim_new(&sim, NULL);
    if (!status)
        status = bus_sim_add_node(sim, 2, buses, &nodes[0]);
    if (!status)
        status = bus_sim_add_node(sim, 1, buses + 2, &nodes[1]);
    if (!status)
        status = ask_much();
    sim = bus_sim_free(sim);
    return status;
}
