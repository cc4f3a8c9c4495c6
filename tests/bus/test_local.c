/* SPDX-License-Identifier: Apache-2.0 */

#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/limits.h"
#include "bus/bus.h"
#include "contract.h"
#include "net/loop/loop.h"

/* ---- what the contract asks for ------------------------------------------------------------ */

static struct net_loops *loops;
static struct bus_local_hub *hub;
static struct bus *buses[C_N];

struct errand {
    struct net_message message; /* first */
    void (*fn)(void *user);
    void *user;
    sem_t done;
};

static void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn(errand->user);
    sem_post(&errand->done);
}

static void c_do(unsigned i, void (*fn)(void *user), void *user)
{
    struct errand errand = {.message = {.fn = run_errand}, .fn = fn, .user = user};

    sem_init(&errand.done, 0, 0);
    net_loop_post(net_loops_at(loops, i), &errand.message);
    while (sem_wait(&errand.done))
        ;
    sem_destroy(&errand.done);
}

static struct bus *c_bus(unsigned i)
{
    return buses[i];
}

static void c_pass(void)
{
    usleep(200);
}

static void open_bus(void *user)
{
    const unsigned i = *(const unsigned *)user;

    if (bus_local_new(hub, net_loops_at(loops, i), i, &buses[i], NULL))
        abort();
    c_listen(i);
}

static void close_bus(void *user)
{
    struct bus **bus = (struct bus **)user;

    *bus = bus_free(*bus);
}

static void c_end(unsigned i)
{
    c_do(i, close_bus, &buses[i]);
}

static void do_nothing(void *user)
{
    (void)user;
}

/* A mailbox is in order: whatever was posted before has run. */
static void c_settle(void)
{
    for (unsigned i = 0; i < 2 * C_N; i++)
        c_do(i % C_N, do_nothing, NULL);
}

static void c_open(void)
{
    peg_error error;

    CHECK_STATUS(net_loops_new(C_N, &loops, &error), PEG_OK, error);
    CHECK_STATUS(bus_local_hub_new(0xabc, &hub, &error), PEG_OK, error);
    for (unsigned i = 0; i < C_N; i++)
        c_do(i, open_bus, &i);
}

static void c_close(void)
{
    for (unsigned i = 0; i < C_N; i++)
        c_do(i, close_bus, &buses[i]);
    loops = net_loops_free(loops);
    hub = bus_local_hub_free(hub);
}

#include "contract_tests.h"

/* ---- only of this bus ---------------------------------------------------------------------- */

TEST(a_loop_that_ended_gets_nothing)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    struct bus_address ended;

    c_open();
    ended = buses[1]->self;
    c_do(1, close_bus, &buses[1]);

    CHECK(!c_send(0, ended, &message));
    c_close();
}

static void flood_one(void *user)
{
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    const struct bus_address *to = (const struct bus_address *)user;

    for (unsigned k = 0; k < 5000; k++)
        bus_send(buses[0], *to, &message, NULL);
}

struct ending {
    struct net_message message; /* first */
};

static void end_bus_1(struct net_message *message)
{
    (void)message;
    buses[1] = bus_free(buses[1]);
}

/* Messages to a loop whose bus goes meanwhile are lost, and nothing else. */
TEST(a_bus_may_end_while_messages_are_on_their_way)
{
    for (unsigned round = 0; round < 20; round++) {
        struct ending ending = {.message = {.fn = end_bus_1}};
        struct bus_address to;

        c_open();
        to = buses[1]->self;
        net_loop_post(net_loops_at(loops, 1), &ending.message);
        c_do(0, flood_one, &to);
        c_close();
    }
}

/* ---- posts and the end of a bus ---- */

enum { N_POSTS = 5000 };

struct counted_post {
    struct bus_post post; /* first */
    atomic_uint n_run;
    atomic_uint n_back;
};
static struct counted_post counted_posts[N_POSTS];

static void count_post(struct bus_post *post, void *user)
{
    struct counted_post *counted = (struct counted_post *)post;

    atomic_fetch_add(&counted->n_run, 1);
    atomic_fetch_add(&counted->n_back, user ? 0 : 1);
}

static void post_many(void *user)
{
    (void)user;
    for (unsigned k = 0; k < N_POSTS; k++)
        bus_post(buses[0], 1, &counted_posts[k].post);
}

/* Each is run or comes back, in order: none is run behind one that came back. */
TEST(a_bus_may_end_while_posts_are_on_their_way)
{
    for (unsigned round = 0; round < 20; round++) {
        struct ending ending = {.message = {.fn = end_bus_1}};
        unsigned n_back = 0;

        memset(counted_posts, 0, sizeof(counted_posts));
        for (unsigned k = 0; k < N_POSTS; k++)
            counted_posts[k].post.fn = count_post;
        c_open();
        net_loop_post(net_loops_at(loops, 1), &ending.message);
        c_do(0, post_many, NULL);
        c_settle();
        for (unsigned k = 0; k < N_POSTS; k++) {
            CHECK_INT(counted_posts[k].n_run, 1);
            n_back += counted_posts[k].n_back;
            CHECK(counted_posts[k].n_back || n_back == 0);
        }
        c_close();
    }
}

static void end_by_post(struct bus_post *post, void *user)
{
    (void)post;
    if (user)
        buses[1] = bus_free(buses[1]);
}

static void post_end_and_more(void *user)
{
    bus_post(buses[0], 1, (struct bus_post *)user);
    post_many(NULL);
}

TEST(a_post_may_free_the_bus)
{
    struct bus_post end = {.fn = end_by_post};

    c_open();
    memset(counted_posts, 0, sizeof(counted_posts));
    for (unsigned k = 0; k < N_POSTS; k++)
        counted_posts[k].post.fn = count_post;
    c_do(0, post_end_and_more, &end);
    c_settle();
    for (unsigned k = 0; k < N_POSTS; k++)
        CHECK(counted_posts[k].n_run == 1 && counted_posts[k].n_back == 1);
    CHECK(!buses[1]);
    c_close();
}

static void free_on_loss(void *user, struct bus_address address)
{
    (void)user;
    (void)address;
    buses[1] = bus_free(buses[1]);
}

TEST(a_loop_may_free_its_bus_when_a_node_is_lost)
{
    c_open();
    buses[1]->events.on_node_lost = free_on_loss;
    c_lease_own(0, 60000);
    c_lease_own(2, 60000);
    c_end(0);
    c_end(2);
    c_settle();

    CHECK(!buses[1]);
    c_close();
}

static void set_many_keys(void *user)
{
    (void)user;
    for (unsigned k = 0; k < 2000; k++) {
        struct peg__blob *value = peg__blob_copy(peg__str("v"));

        bus_map_set(buses[0], BUS_MAP_PROVIDERS, peg__str(k % 2 ? "a" : "b"), value,
                    BUS_ANY_REVISION, NULL);
        peg__blob_unref(value);
    }
}

TEST(a_bus_may_end_while_changes_are_on_their_way)
{
    for (unsigned round = 0; round < 20; round++) {
        struct ending ending = {.message = {.fn = end_bus_1}};
        struct c_watch watch;

        c_open();
        c_watch(1, &watch);
        net_loop_post(net_loops_at(loops, 1), &ending.message);
        c_do(0, set_many_keys, NULL);
        CHECK(watch.is_in_order);
        c_close();
    }
}

TEST(two_buses_cannot_have_one_number)
{
    struct bus *bus = NULL;
    peg_error error;

    c_open();
    CHECK_INT(bus_local_new(hub, net_loops_at(loops, 1), 1, &bus, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_BUS_NUMBER");
    CHECK_INT(bus_local_new(hub, net_loops_at(loops, 1), PEG_LIMIT_NET_LOOPS, &bus, &error),
              PEG_EINVAL);
    CHECK(strstr(error.message, "at most 64 loops"));
    CHECK(!bus);
    c_close();
}

/* ---- races --------------------------------------------------------------------------------- */

enum { N_RACES = 2000 };

struct racer {
    struct net_message message; /* first */
    struct bus_wait wait;
    unsigned i;
    unsigned n_won;
    sem_t *done;
};

static void count_win(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct racer *racer = (struct racer *)((char *)wait - offsetof(struct racer, wait));

    racer->n_won += answer->written;
}

static void run_race(struct net_message *message)
{
    struct racer *racer = (struct racer *)message;
    struct peg__blob *value = peg__blob_new(1);

    value->bytes[0] = (char)('0' + racer->i);
    for (unsigned k = 0; k < N_RACES; k++) {
        const struct bus_key key = c_key(k, BUS_CLAIM, 1);

        bus_put_if_absent(buses[racer->i], &key, value, INT64_MAX, &racer->wait);
    }
    peg__blob_unref(value);
    sem_post(racer->done);
}

TEST(of_all_that_race_for_a_register_one_wins)
{
    struct racer racers[C_N];
    unsigned n_won = 0;
    sem_t done;

    c_open();
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < C_N; i++)
        racers[i] = (struct racer){
            .message = {.fn = run_race}, .wait = {.fn = count_win}, .i = i, .done = &done};
    for (unsigned i = 0; i < C_N; i++)
        net_loop_post(net_loops_at(loops, i), &racers[i].message);
    for (unsigned i = 0; i < C_N; i++) {
        while (sem_wait(&done))
            ;
    }
    for (unsigned i = 0; i < C_N; i++)
        n_won += racers[i].n_won;

    CHECK_INT(n_won, N_RACES);
    sem_destroy(&done);
    c_close();
}

/* ---- one loop, in this thread -------------------------------------------------------------- */

struct alone {
    struct net_loop *loop;
    struct bus_local_hub *hub;
    struct bus *bus;
};

static void close_alone(struct alone *alone)
{
    bus_free(alone->bus);
    net_loop_free(alone->loop);
    bus_local_hub_free(alone->hub);
}

static peg_status open_alone(struct alone *ret_alone)
{
    struct alone alone = {0};
    peg_error error;
    peg_status status = net_loop_new(&alone.loop, &error);

    if (!status)
        status = bus_local_hub_new(1, &alone.hub, &error);
    if (!status)
        status = bus_local_new(alone.hub, alone.loop, 0, &alone.bus, &error);
    if (status)
        close_alone(&alone);
    else
        *ret_alone = alone;
    return status;
}

struct answered {
    struct bus_wait wait; /* first */
    struct bus_answer answer;
    unsigned n;
};

static void on_answered(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct answered *answered = (struct answered *)wait;

    answered->answer = *answer;
    answered->n++;
}

TEST(a_message_is_lost_when_nobody_listens)
{
    const struct bus_message message = {.kind = BUS_HAVE};
    struct alone alone;

    CHECK_INT(open_alone(&alone), PEG_OK);
    bus_send(alone.bus, alone.bus->self, &message, NULL);
    net_loop_stop(alone.loop);
    net_loop_run(alone.loop);
    close_alone(&alone);
}

static unsigned n_heard;

static void free_on_message(void *user, const struct bus_message *message)
{
    struct alone *alone = (struct alone *)user;

    n_heard++;
    CHECK_INT(message->kind, BUS_HAVE);
    alone->bus = bus_free(alone->bus);
}

TEST(whoever_hears_a_message_may_free_the_bus)
{
    static const struct bus_events events = {.on_message = free_on_message, .on_reset = c_on_reset};
    const struct bus_message message = {.kind = BUS_HAVE};
    struct alone alone;

    CHECK_INT(open_alone(&alone), PEG_OK);
    bus_listen(alone.bus, &events, &alone);
    n_heard = 0;
    bus_send(alone.bus, alone.bus->self, &message, NULL);
    bus_send(alone.bus, alone.bus->self, &message, NULL);
    net_loop_stop(alone.loop);
    net_loop_run(alone.loop);

    CHECK_INT(n_heard, 1);
    CHECK(!alone.bus);
    close_alone(&alone);
}

static void answer_for_ever(void *user, const struct bus_message *message)
{
    struct alone *alone = (struct alone *)user;

    n_heard++;
    bus_send(alone->bus, alone->bus->self, message, NULL);
}

/* The loop must come to its sockets, and to its end. */
TEST(two_that_write_to_each_other_for_ever_do_not_hold_up_the_loop)
{
    static const struct bus_events events = {.on_message = answer_for_ever, .on_reset = c_on_reset};
    const struct bus_message message = {.kind = BUS_HAVE};
    struct alone alone;

    CHECK_INT(open_alone(&alone), PEG_OK);
    bus_listen(alone.bus, &events, &alone);
    n_heard = 0;
    bus_send(alone.bus, alone.bus->self, &message, NULL);
    net_loop_stop(alone.loop);
    net_loop_run(alone.loop);

    CHECK(n_heard >= 1 && n_heard <= 10 * PEG_LIMIT_BUS_MESSAGES_A_PASS);
    close_alone(&alone);
}

struct round {
    struct net_timer timer; /* first */
    struct alone *alone;
};

static void stop_loop(struct net_timer *timer)
{
    net_loop_stop(((struct round *)timer)->alone->loop);
}

TEST(a_register_whose_time_is_over_goes_by_itself)
{
    const struct bus_key key = c_key(1, BUS_RESULT, 0);
    struct peg__blob *value = peg__blob_copy(peg__str("x"));
    struct answered answered = {.wait = {.fn = on_answered}};
    struct round round = {.timer = {.fn = stop_loop}};
    struct alone alone;

    CHECK_INT(open_alone(&alone), PEG_OK);
    bus_put_if_absent(alone.bus, &key, value, bus_now_ms(alone.bus), &answered.wait);
    CHECK(answered.answer.written);
    round.alone = &alone;
    do {
        net_loop_arm(alone.loop, &round.timer, net_loop_now_ns(alone.loop) + 50000000);
        net_loop_run(alone.loop);
        bus_read(alone.bus, &key, &answered.wait);
    } while (answered.answer.current);

    close_alone(&alone);
    peg__blob_unref(value);
}

TEST(the_time_is_that_of_the_wall)
{
    struct alone alone;
    int64_t before_ms;
    int64_t now_ms;

    before_ms = (int64_t)time(NULL) * 1000;
    CHECK_INT(open_alone(&alone), PEG_OK);
    now_ms = bus_now_ms(alone.bus);

    /* time() has whole seconds, and may lag by a tick of the kernel. */
    CHECK(now_ms >= before_ms - 1000);
    CHECK(now_ms <= (int64_t)time(NULL) * 1000 + 2000);
    close_alone(&alone);
}

TEST(a_full_bus_says_so)
{
    struct peg__blob *value = peg__blob_new(16 << 20);
    struct answered answered = {.wait = {.fn = on_answered}};
    struct alone alone;
    struct bus_key key;
    unsigned n = 0;

    CHECK_INT(open_alone(&alone), PEG_OK);
    memset(value->bytes, 'x', value->len);
    do {
        key = c_key(n++, BUS_RESULT, 0);
        bus_put_if_absent(alone.bus, &key, value, INT64_MAX, &answered.wait);
    } while (answered.answer.status == PEG_OK);

    CHECK_INT(answered.answer.status, PEG_ELIMIT);
    CHECK(!answered.answer.written && !answered.answer.current);
    CHECK_INT(n, 16);
    close_alone(&alone);
    peg__blob_unref(value);
}

/* ---- out of memory ------------------------------------------------------------------------- */

static struct answered ask_everything(struct bus *bus, struct peg__blob *value)
{
    struct answered answered = {.wait = {.fn = on_answered}};
    const struct bus_message message = {.kind = BUS_HAVE, .body = value};
    const struct bus_key key = c_key(1, BUS_RESULT, 0);
    const peg_str name = peg__str("name");

    bus_put_if_absent(bus, &key, value, INT64_MAX, &answered.wait);
    if (!answered.answer.status)
        bus_wait_add(bus, &key, INT64_MAX, &answered.wait);
    if (!answered.answer.status)
        bus_waiters(bus, &key, &answered.wait);
    if (!answered.answer.status)
        bus_send(bus, bus->self, &message, &answered.wait);
    if (!answered.answer.status)
        bus_lease(bus, name, 1000, BUS_LEASE_TAKE, &answered.wait);
    if (!answered.answer.status)
        bus_leases(bus, &name, 1, &answered.wait);
    if (!answered.answer.status)
        bus_map_set(bus, BUS_MAP_TOOLSETS, name, value, 0, &answered.wait);
    if (!answered.answer.status)
        bus_map_set(bus, BUS_MAP_TOOLSETS, name, NULL, BUS_ANY_REVISION, &answered.wait);
    return answered;
}

TORTURE(every_question_survives_any_allocation_failure)
{
    struct c_watch watch = {.watch = {.on_change = c_on_change, .on_ready = c_on_ready}};
    struct peg__blob *value = peg__blob_copy(peg__str("value"));
    struct answered answered;
    struct alone alone;
    peg_status status = value ? open_alone(&alone) : PEG_ENOMEM;

    if (!status) {
        bus_map_watch(alone.bus, BUS_MAP_TOOLSETS, &watch.watch);
        answered = ask_everything(alone.bus, value);
        status = answered.answer.status;
        if (status)
            CHECK(!answered.answer.written);
        else
            CHECK_STR(peg__str(watch.text), "name=value;ready;name-");
        close_alone(&alone);
    }
    peg__blob_unref(value);
    return status;
}
