/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_CONTRACT_TESTS_H
#define PEG_TESTS_BUS_CONTRACT_TESTS_H

/* The tests of contract.h. Each opens C_N buses that know nothing yet. */

#include "contract.h"
#include "contract_node_tests.h"

/* ---- registers ----------------------------------------------------------------------------- */

TEST(a_register_is_written_once)
{
    struct c_asked first;
    struct c_asked second;

    c_open();
    first = c_once(0, c_key(1, BUS_RESULT, 0), "mine");
    second = c_once(1, c_key(1, BUS_RESULT, 0), "yours");

    CHECK(first.answer.written);
    CHECK_STR(peg__str(first.current), "mine");
    CHECK(!second.answer.written);
    CHECK_STR(peg__str(second.current), "mine");
    c_close();
}

TEST(the_same_value_again_has_won)
{
    c_open();
    c_once(0, c_key(1, BUS_RESULT, 0), "mine");

    CHECK(c_once(2, c_key(1, BUS_RESULT, 0), "mine").answer.written);
    c_close();
}

TEST(all_loops_read_what_stands)
{
    c_open();
    c_once(0, c_key(1, BUS_IDENTITY, 0), "here");

    for (unsigned i = 0; i < C_N; i++)
        CHECK_STR(peg__str(c_read(i, c_key(1, BUS_IDENTITY, 0)).current), "here");
    c_close();
}

TEST(an_empty_value_is_not_nothing)
{
    c_open();
    c_once(0, c_key(1, BUS_IDENTITY, 0), "");

    CHECK(c_read(1, c_key(1, BUS_IDENTITY, 0)).has_standing);
    c_close();
}

TEST(what_was_never_written_reads_as_nothing)
{
    c_open();
    c_once(0, c_key(1, BUS_CLAIM, 1), "a");

    CHECK(!c_read(1, c_key(1, BUS_CLAIM, 2)).has_standing);
    CHECK(!c_read(1, c_key(1, BUS_RESULT, 1)).has_standing);
    CHECK(!c_read(1, c_key(2, BUS_CLAIM, 1)).has_standing);
    c_close();
}

TEST(each_attempt_is_a_register_of_its_own)
{
    c_open();
    c_once(0, c_key(1, BUS_CLAIM, 1), "a");

    CHECK(c_once(1, c_key(1, BUS_CLAIM, 2), "b").answer.written);
    CHECK_STR(peg__str(c_read(2, c_key(1, BUS_CLAIM, 1)).current), "a");
    c_close();
}

struct c_forgetting {
    struct bus *bus;
    struct bus_key key;
};

static void c_forget_here(void *user)
{
    struct c_forgetting *forgetting = (struct c_forgetting *)user;

    bus_forget(forgetting->bus, &forgetting->key, 2);
}

static void c_forget(unsigned i, struct bus_key key)
{
    struct c_forgetting forgetting = {c_bus(i), key};

    c_do(i, c_forget_here, &forgetting);
}

TEST(forgetting_removes_all_of_one_id)
{
    c_open();
    c_once(0, c_named_key(1, BUS_IDENTITY, 0), "c");
    c_once(0, c_named_key(1, BUS_CLAIM, 1), "k1");
    c_once(0, c_named_key(1, BUS_CLAIM, 2), "k2");
    c_once(0, c_named_key(1, BUS_RESULT, 0), "t");
    c_wait_add(0, c_named_key(1, BUS_RESULT, 0));
    c_once(0, c_named_key(2, BUS_RESULT, 0), "another's");
    c_forget(0, c_named_key(1, BUS_RESULT, 0));
    while (c_read(0, c_named_key(1, BUS_RESULT, 0)).has_standing)
        c_pass();

    CHECK(!c_read(0, c_named_key(1, BUS_IDENTITY, 0)).has_standing);
    CHECK(!c_read(0, c_named_key(1, BUS_CLAIM, 1)).has_standing);
    CHECK(!c_read(0, c_named_key(1, BUS_CLAIM, 2)).has_standing);
    CHECK_INT(c_waiters(0, c_named_key(1, BUS_RESULT, 0)).answer.n_addresses, 0);
    CHECK_STR(peg__str(c_read(0, c_named_key(2, BUS_RESULT, 0)).current), "another's");
    c_close();
}

TEST(forgetting_removes_claims_and_result_of_an_id_that_is_no_identity)
{
    c_open();
    c_once(0, c_key(1, BUS_CLAIM, 1), "k1");
    c_once(0, c_key(1, BUS_CLAIM, 2), "k2");
    c_once(0, c_key(1, BUS_RESULT, 0), "t");
    c_forget(0, c_key(1, BUS_RESULT, 0));
    while (c_read(0, c_key(1, BUS_RESULT, 0)).has_standing)
        c_pass();

    CHECK(!c_read(0, c_key(1, BUS_CLAIM, 1)).has_standing);
    CHECK(!c_read(0, c_key(1, BUS_CLAIM, 2)).has_standing);
    c_close();
}

TEST(what_was_forgotten_can_be_written_again)
{
    c_open();
    c_once(0, c_key(1, BUS_RESULT, 0), "old");
    c_forget(0, c_key(1, BUS_RESULT, 0));
    while (c_read(1, c_key(1, BUS_RESULT, 0)).has_standing)
        c_pass();

    CHECK(c_once(1, c_key(1, BUS_RESULT, 0), "new").answer.written);
    c_close();
}

TEST(each_waiting_loop_is_listed_once)
{
    struct c_asked waiters;

    c_open();
    c_wait_add(1, c_key(1, BUS_RESULT, 0));
    c_wait_add(2, c_key(1, BUS_RESULT, 0));
    c_wait_add(1, c_key(1, BUS_RESULT, 0));
    waiters = c_waiters(0, c_key(1, BUS_RESULT, 0));

    CHECK_INT(waiters.answer.n_addresses, 2);
    for (unsigned i = 1; i < C_N; i++)
        CHECK(bus_address_equal(waiters.addresses[0], c_bus(i)->self) ||
              bus_address_equal(waiters.addresses[1], c_bus(i)->self));
    CHECK_INT(c_waiters(0, c_key(2, BUS_RESULT, 0)).answer.n_addresses, 0);
    c_close();
}

struct c_state {
    uint64_t epoch;
    bool is_fenced;
};

static void c_state_here(void *user)
{
    struct c_state *state = (struct c_state *)user;

    state->epoch = bus_epoch(c_bus(0));
    state->is_fenced = bus_is_fenced(c_bus(0));
}

TEST(an_answer_tells_its_epoch_and_when_it_was_asked)
{
    struct c_asked asked;
    struct c_state state;

    c_open();
    asked = c_read(0, c_key(1, BUS_RESULT, 0));
    c_do(0, c_state_here, &state);

    CHECK(asked.answer.epoch == state.epoch);
    CHECK(asked.answer.asked_ns > 0);
    CHECK(!state.is_fenced);
    c_close();
}

static void c_ask_and_forget(void *user)
{
    struct c_asked *asked = (struct c_asked *)user;

    c_ask_here(asked);
    bus_forget_wait(asked->bus, &asked->wait);
    bus_forget_wait(asked->bus, &asked->wait);
}

TEST(nobody_hears_an_answer_that_was_forgotten)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};
    unsigned n;

    c_open();
    asked.bus = c_bus(0);
    c_do(0, c_ask_and_forget, &asked);
    n = c_n_answers(&asked);
    c_read(0, c_key(1, BUS_RESULT, 0));

    CHECK_INT(c_n_answers(&asked), n);
    CHECK(!asked.wait.pending);
    c_close();
}

static void c_ask_twice(void *user)
{
    struct c_asked *asked = (struct c_asked *)user;

    c_ask_here(asked);
    asked->key = c_key(2, BUS_RESULT, 0);
    asked->n_answers = 0;
    c_ask_here(asked);
}

TEST(one_wait_hears_the_answer_to_the_last_question)
{
    struct c_asked asked = {.what = C_READ, .key = c_key(1, BUS_RESULT, 0)};

    c_open();
    c_once(0, c_key(1, BUS_RESULT, 0), "first");
    c_once(0, c_key(2, BUS_RESULT, 0), "second");
    asked.bus = c_bus(0);
    c_do(0, c_ask_twice, &asked);
    while (c_n_answers(&asked) == 0)
        c_pass();
    c_read(0, c_key(1, BUS_RESULT, 0));

    CHECK_INT(c_n_answers(&asked), 1);
    CHECK_STR(peg__str(asked.current), "second");
    c_close();
}

/* ---- messages ------------------------------------------------------------------------------- */

static void c_check_message_arrives(unsigned from, unsigned to)
{
    struct bus_message message = {
        .kind = BUS_NAK,
        .reason = BUS_OVERLOADED,
        .id = c_id(77),
        .attempt = 3,
        .epoch = 9,
        .deadline_ms = 123456789,
        .from = c_bus(from)->self,
        .incarnation = "incarnation-1",
        .body = peg__blob_copy(peg__str("body")),
    };
    const struct bus_message *heard = &c_messages[to].first[0];

    CHECK(c_send(from, c_bus(to)->self, &message));
    peg__blob_unref(message.body);
    c_await_messages(to, 1);

    CHECK_INT(heard->kind, BUS_NAK);
    CHECK_INT(heard->reason, BUS_OVERLOADED);
    CHECK(bus_id_equal(&heard->id, &message.id));
    CHECK_INT(heard->attempt, 3);
    CHECK_INT(heard->epoch, 9);
    CHECK_INT(heard->deadline_ms, 123456789);
    CHECK(bus_address_equal(heard->from, message.from));
    CHECK_STR(peg__str(heard->incarnation), "incarnation-1");
    CHECK_STR(peg__str(c_messages[to].bodies[0]), "body");
}

TEST(a_message_arrives_at_another_loop_as_it_was_sent)
{
    c_open();
    c_check_message_arrives(0, 1);
    c_close();
}

TEST(a_message_arrives_at_the_own_loop_as_it_was_sent)
{
    c_open();
    c_check_message_arrives(2, 2);
    c_close();
}

TEST(a_message_without_a_body_arrives_without)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};

    c_open();
    CHECK(c_send(0, c_bus(1)->self, &message));
    c_await_messages(1, 1);

    CHECK_STR(peg__str(c_messages[1].bodies[0]), "(none)");
    c_close();
}

struct c_sending {
    unsigned n_before_return;
};

static void c_send_to_self(void *user)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    struct c_sending *sending = (struct c_sending *)user;

    bus_send(c_bus(0), c_bus(0)->self, &message, NULL);
    sending->n_before_return = c_n_messages(0);
}

TEST(a_message_to_the_own_loop_does_not_arrive_while_it_is_sent)
{
    struct c_sending sending;

    c_open();
    c_do(0, c_send_to_self, &sending);
    c_await_messages(0, 1);

    CHECK_INT(sending.n_before_return, 0);
    c_close();
}

TEST(nobody_gets_a_message_to_nobody)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    struct bus_address other_node;
    struct bus_address other_loop;

    c_open();
    other_node = (struct bus_address){c_bus(0)->self.node + 1000, 0};
    other_loop = (struct bus_address){c_bus(0)->self.node, 50};

    CHECK(!c_send(0, other_node, &message));
    CHECK(!c_send(0, other_loop, &message));
    CHECK(!c_send(0, (struct bus_address){c_bus(0)->self.node, UINT32_MAX}, &message));
    CHECK(!c_send(0, (struct bus_address){0}, &message));
    c_close();
}

struct c_flood {
    unsigned from;
};

static void c_send_many(void *user)
{
    const struct c_flood *flood = (const struct c_flood *)user;

    for (unsigned k = 0; k < 2000; k++) {
        const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(k)};

        bus_send(c_bus(flood->from), c_bus(k % C_N)->self, &message, NULL);
    }
}

TEST(many_messages_arrive_once_each)
{
    const unsigned n_each[C_N] = {667, 667, 666};

    c_open();
    for (unsigned i = 0; i < C_N; i++) {
        struct c_flood flood = {i};

        c_do(i, c_send_many, &flood);
    }

    for (unsigned i = 0; i < C_N; i++)
        c_await_messages(i, C_N * n_each[i]);
    c_close();
}

/* ---- leases -------------------------------------------------------------------------------- */

TEST(a_lease_tells_where_a_name_is)
{
    c_open();
    c_lease(1, "incarnation-1", 60000);

    CHECK(bus_address_equal(c_holder(0, "incarnation-1"), c_bus(1)->self));
    CHECK_INT(c_holder(0, "incarnation-2").node, 0);
    c_close();
}

TEST(several_leases_are_told_in_the_order_of_their_names)
{
    struct c_asked asked = {
        .what = C_LEASES, .names = {peg__str("a"), peg__str("b"), peg__str("c")}, .n_names = 3};

    c_open();
    c_lease(0, "c", 60000);
    c_lease(1, "a", 60000);
    c_ask(2, &asked);

    CHECK_INT(asked.answer.n_addresses, 3);
    CHECK(bus_address_equal(asked.addresses[0], c_bus(1)->self));
    CHECK_INT(asked.addresses[1].node, 0);
    CHECK(bus_address_equal(asked.addresses[2], c_bus(0)->self));
    c_close();
}

TEST(the_last_loop_that_asks_has_the_name)
{
    c_open();
    c_lease(0, "provider", 60000);
    c_lease(1, "provider", 60000);

    CHECK(bus_address_equal(c_holder(2, "provider"), c_bus(1)->self));
    c_close();
}

static void c_release_here(void *user)
{
    bus_release((struct bus *)user, peg__str("provider"));
}

TEST(a_name_that_is_given_back_is_nobodys)
{
    c_open();
    c_lease(0, "provider", 60000);
    c_do(0, c_release_here, c_bus(0));

    while (c_holder(1, "provider").node)
        c_pass();
    c_close();
}

TEST(only_its_holder_gives_a_name_back)
{
    c_open();
    c_lease(0, "provider", 60000);
    c_do(1, c_release_here, c_bus(1));

    CHECK(bus_address_equal(c_holder(1, "provider"), c_bus(0)->self));
    CHECK(bus_address_equal(c_holder(0, "provider"), c_bus(0)->self));
    c_close();
}

TEST(a_lease_runs_out)
{
    c_open();
    c_lease(0, "provider", 20);

    while (c_holder(1, "provider").node)
        c_pass();
    c_close();
}

/* ---- maps ---------------------------------------------------------------------------------- */

TEST(a_key_is_written_if_its_revision_is_the_expected_one)
{
    struct c_asked first;
    struct c_asked again;
    struct c_asked second;
    struct c_asked late;

    c_open();
    first = c_set(0, "a", "1", 0);
    again = c_set(1, "a", "2", 0);
    second = c_set(1, "a", "2", first.answer.revision);
    late = c_set(2, "a", "3", first.answer.revision);

    CHECK(first.answer.written && first.answer.revision > 0);
    CHECK(!again.answer.written && again.answer.revision == first.answer.revision);
    CHECK(second.answer.written && second.answer.revision > first.answer.revision);
    CHECK(!late.answer.written && late.answer.revision == second.answer.revision);
    c_close();
}

TEST(a_key_is_written_whatever_its_revision_is)
{
    c_open();
    CHECK(c_set(0, "a", "1", BUS_ANY_REVISION).answer.written);
    CHECK(c_set(1, "a", "2", BUS_ANY_REVISION).answer.written);
    c_close();
}

TEST(a_key_that_was_removed_comes_back_with_a_later_revision)
{
    struct c_asked first;
    struct c_asked removed;
    struct c_asked back;

    c_open();
    first = c_set(0, "a", "1", 0);
    removed = c_set(0, "a", NULL, first.answer.revision);
    back = c_set(1, "a", "2", 0);

    CHECK(removed.answer.written && removed.answer.revision == 0);
    CHECK(back.answer.written && back.answer.revision > first.answer.revision);
    c_close();
}

TEST(removing_what_is_not_there_is_no_failure)
{
    c_open();
    CHECK(c_set(0, "a", NULL, BUS_ANY_REVISION).answer.written);
    CHECK(c_set(0, "a", NULL, 0).answer.written);
    CHECK(!c_set(0, "a", NULL, 7).answer.written);
    c_close();
}

TEST(a_watch_of_an_empty_map_is_ready)
{
    struct c_watch watch;

    c_open();
    c_watch(0, &watch);

    c_await_told(&watch, "ready;");
    c_close();
}

TEST(a_watch_hears_all_that_is_there_and_then_what_changes)
{
    struct c_watch watch;

    c_open();
    c_set(0, "a", "1", 0);
    c_set(1, "b", "2", 0);
    c_set(0, "gone", "3", 0);
    c_set(0, "gone", NULL, BUS_ANY_REVISION);
    c_watch(2, &watch);
    c_await_told(&watch, "a=1;b=2;ready;");
    c_set(0, "c", "3", 0);
    c_await_told(&watch, "a=1;b=2;ready;c=3!");
    c_set(1, "a", NULL, BUS_ANY_REVISION);
    c_await_told(&watch, "a=1;b=2;ready;c=3!a-");
    c_set(2, "a", "5", 0);
    c_await_told(&watch, "a=1;b=2;ready;c=3!a-a=5!");

    CHECK(watch.is_in_order);
    c_close();
}

TEST(watches_of_the_own_loop_hear_of_a_change_before_its_answer)
{
    struct c_watch watch;
    unsigned n_before;

    c_open();
    c_watch(0, &watch);
    c_await_told(&watch, "ready;");
    n_before = c_n_changes;

    CHECK_INT(c_set(0, "a", "1", 0).n_heard_before, n_before + 1);
    CHECK_STR(c_told(&watch), "ready;a=1!");
    c_close();
}

TEST(two_watches_of_one_loop_hear_the_same)
{
    struct c_watch a;
    struct c_watch b;

    c_open();
    c_watch(0, &a);
    c_await_told(&a, "ready;");
    c_set(1, "a", "1", 0);
    c_await_told(&a, "ready;a=1!");
    c_watch(0, &b);
    c_await_told(&b, "a=1;ready;");
    c_set(1, "a", "2", BUS_ANY_REVISION);

    c_await_told(&a, "ready;a=1!a=2!");
    c_await_told(&b, "a=1;ready;a=2!");
    c_close();
}

TEST(a_watch_that_ended_hears_nothing)
{
    struct c_watch ended;
    struct c_watch other;

    c_open();
    c_watch(0, &ended);
    c_watch(1, &other);
    c_await_told(&ended, "ready;");
    c_await_told(&other, "ready;");
    c_unwatch(&ended);
    c_unwatch(&ended);
    c_set(0, "a", "1", 0);
    c_await_told(&other, "ready;a=1!");
    c_set(0, "a", NULL, BUS_ANY_REVISION);
    c_await_told(&other, "ready;a=1!a-");

    CHECK_STR(c_told(&ended), "ready;");
    c_close();
}

TEST(the_maps_are_apart)
{
    struct c_watch watch;
    struct c_asked asked = {.what = C_SET,
                            .map = BUS_MAP_TOOLSETS,
                            .names = {peg__str("a")},
                            .value = peg__blob_copy(peg__str("1"))};

    c_open();
    c_ask(0, &asked);
    peg__blob_unref(asked.value);
    c_watch(0, &watch);

    c_await_told(&watch, "ready;");
    c_close();
}

/* All of them write the same keys as fast as they can; when they are quiet all know the same. */
static void c_set_many(void *user)
{
    const unsigned i = *(const unsigned *)user;

    for (unsigned k = 0; k < 300; k++) {
        char name[2] = {(char)('a' + k % 5), '\0'};
        char text[16];
        struct peg__blob *value;

        snprintf(text, sizeof(text), "%u.%u", i, k);
        value = peg__blob_copy(peg__str(text));
        bus_map_set(c_bus(i), BUS_MAP_PROVIDERS, peg__str(name), k % 7 ? value : NULL,
                    BUS_ANY_REVISION, NULL);
        peg__blob_unref(value);
    }
}

struct c_replica {
    struct bus_watch watch; /* first */
    uint64_t revisions[5];
    uint64_t last;
    bool is_in_order;
};

static void c_on_replica_change(struct bus_watch *watch, const struct bus_change *change)
{
    struct c_replica *replica = (struct c_replica *)watch;

    pthread_mutex_lock(&c_lock);
    replica->is_in_order &= change->revision > replica->last;
    replica->last = change->revision;
    replica->revisions[change->key.ptr[0] - 'a'] = change->value ? change->revision : 0;
    pthread_mutex_unlock(&c_lock);
}

struct c_replica_at {
    unsigned i;
    struct c_replica *replica;
};

static void c_watch_replica(void *user)
{
    struct c_replica_at *at = (struct c_replica_at *)user;

    bus_map_watch(c_bus(at->i), BUS_MAP_PROVIDERS, &at->replica->watch);
}

static bool c_knows(struct c_replica *replica, const uint64_t expected[5])
{
    bool is_equal;

    pthread_mutex_lock(&c_lock);
    is_equal = memcmp(replica->revisions, expected, sizeof(replica->revisions)) == 0;
    pthread_mutex_unlock(&c_lock);
    return is_equal;
}

TEST(all_replicas_end_with_the_same)
{
    struct c_replica replicas[C_N] = {0};
    uint64_t expected[5];

    c_open();
    for (unsigned i = 0; i < C_N; i++) {
        struct c_replica_at at = {i, &replicas[i]};

        replicas[i] =
            (struct c_replica){.watch = {.on_change = c_on_replica_change}, .is_in_order = true};
        c_do(i, c_watch_replica, &at);
    }
    for (unsigned i = 0; i < C_N; i++)
        c_do(i, c_set_many, &i);
    c_settle();
    for (unsigned k = 0; k < 5; k++) {
        const char name[2] = {(char)('a' + k), '\0'};

        expected[k] = c_set(0, name, "last", BUS_ANY_REVISION).answer.revision;
    }

    for (unsigned i = 0; i < C_N; i++) {
        while (!c_knows(&replicas[i], expected))
            c_pass();
        CHECK(replicas[i].is_in_order);
    }
    c_close();
}

/* ---- time ---------------------------------------------------------------------------------- */

struct c_alarm {
    struct net_timer timer; /* first */
    bool is_disarmed;
    bool has_rung;
    int64_t rang_ns;
};

static void c_ring(struct net_timer *timer)
{
    struct c_alarm *alarm = (struct c_alarm *)timer;

    pthread_mutex_lock(&c_lock);
    alarm->has_rung = true;
    alarm->rang_ns = bus_now_ns(c_bus(0));
    pthread_mutex_unlock(&c_lock);
}

static void c_arm_here(void *user)
{
    struct c_alarm *alarm = (struct c_alarm *)user;

    alarm->timer.fn = c_ring;
    bus_arm(c_bus(0), &alarm->timer, bus_now_ns(c_bus(0)) + 1000000);
    if (alarm->is_disarmed)
        bus_disarm(c_bus(0), &alarm->timer);
}

static bool c_has_rung(const struct c_alarm *alarm)
{
    bool has_rung;

    pthread_mutex_lock(&c_lock);
    has_rung = alarm->has_rung;
    pthread_mutex_unlock(&c_lock);
    return has_rung;
}

TEST(a_timer_rings_when_it_is_due_unless_it_is_disarmed)
{
    struct c_alarm disarmed = {.is_disarmed = true};
    struct c_alarm armed = {0};

    c_open();
    c_do(0, c_arm_here, &disarmed);
    c_do(0, c_arm_here, &armed);
    while (!c_has_rung(&armed))
        c_pass();

    CHECK(armed.rang_ns >= armed.timer.due_ns);
    CHECK(!c_has_rung(&disarmed));
    c_close();
}

#endif
