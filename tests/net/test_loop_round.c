/* SPDX-License-Identifier: Apache-2.0 */

/* What happens when in a round of the loop: time, timers, and what is to be done later. */

#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

#include "../t.h"
#include "base/clock.h"
#include "net/loop/loop.h"

/* One of each, and the order in which their functions were called, a letter for each. */
struct world {
    struct net_loop *loop;
    char said[64];
    size_t said_len;
    struct net_message message;
    struct net_later later;
    struct net_later other;
    struct net_timer timer;
    unsigned n_laters;
    unsigned n_timers;
    int64_t seen_ns[2];
};

#define WORLD_OF(pointer, member)                                                                  \
    ((struct world *)(void *)((char *)(pointer)-offsetof(struct world, member)))

static void say(struct world *w, char letter)
{
    if (w->said_len < sizeof(w->said))
        w->said[w->said_len++] = letter;
}

static peg_str said(const struct world *w)
{
    return (peg_str){w->said, w->said_len};
}

static void say_later(struct net_later *later)
{
    say(WORLD_OF(later, later), 'l');
}

static void say_other(struct net_later *other)
{
    say(WORLD_OF(other, other), 'o');
}

static void say_timer_and_stop(struct net_timer *timer)
{
    struct world *w = WORLD_OF(timer, timer);

    say(w, 't');
    net_loop_stop(w->loop);
}

static void world_init(struct world *w, void (*fn)(struct net_message *message))
{
    peg_error error;

    *w = (struct world){.message.fn = fn,
                        .later.fn = say_later,
                        .other.fn = say_other,
                        .timer.fn = say_timer_and_stop};
    CHECK_STATUS(net_loop_new(&w->loop, &error), PEG_OK, error);
}

/* Runs the loop until somebody stops it; it begins with the message. */
static void world_run(struct world *w)
{
    net_loop_post(w->loop, &w->message);
    net_loop_run(w->loop);
}

static void world_done(struct world *w)
{
    w->loop = net_loop_free(w->loop);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void look_twice(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    w->seen_ns[0] = net_loop_now_ns(w->loop);
    while ((int64_t)uv_hrtime() == w->seen_ns[0])
        continue;
    w->seen_ns[1] = net_loop_now_ns(w->loop);
    net_loop_stop(w->loop);
}

TEST(the_time_is_the_same_for_all_of_a_round)
{
    struct world w;

    world_init(&w, look_twice);
    world_run(&w);

    CHECK(w.seen_ns[0] == w.seen_ns[1]);
    world_done(&w);
}

TEST(the_time_goes_on_between_rounds)
{
    struct world w;
    int64_t first_ns;

    world_init(&w, look_twice);
    world_run(&w);
    first_ns = w.seen_ns[0];
    world_run(&w);

    CHECK(w.seen_ns[0] > first_ns);
    world_done(&w);
}

TEST(the_time_goes_on_before_the_loop_runs)
{
    struct world w;
    int64_t first_ns;

    world_init(&w, look_twice);
    first_ns = net_loop_now_ns(w.loop);
    while ((int64_t)uv_hrtime() == first_ns)
        continue;

    CHECK(net_loop_now_ns(w.loop) > first_ns);
    world_done(&w);
}

/* Work that ends while the loop waits for it: the timer that lets it end is called after the loop
 * has polled, and asks for the time. */
struct dated {
    struct net_work work;
    struct net_timer timer;
    struct net_loop *loop;
    sem_t may_end;
    int64_t ended_ns;
    int64_t seen_ns;
};

static void let_end(struct net_timer *timer)
{
    struct dated *dated = (struct dated *)(void *)((char *)timer - offsetof(struct dated, timer));

    dated->seen_ns = net_loop_now_ns(dated->loop);
    sem_post(&dated->may_end);
}

static void end_when_let(struct net_work *work)
{
    struct dated *dated = (struct dated *)work;

    sem_wait(&dated->may_end);
    dated->ended_ns = (int64_t)uv_hrtime();
}

static void see_end(struct net_work *work, bool was_canceled)
{
    struct dated *dated = (struct dated *)work;

    CHECK(!was_canceled && dated->seen_ns);
    dated->seen_ns = net_loop_now_ns(dated->loop);
    net_loop_stop(dated->loop);
}

/* A deadline that is counted from a time before the wait would pass too early. */
TEST(the_time_after_a_wait_is_not_that_before_it)
{
    struct dated dated = {.work = {.work = end_when_let, .done = see_end}, .timer.fn = let_end};

    CHECK_INT(net_loop_new(&dated.loop, NULL), PEG_OK);
    sem_init(&dated.may_end, 0, 0);
    net_loop_arm(dated.loop, &dated.timer, 0);
    CHECK_INT(net_loop_work(dated.loop, &dated.work), PEG_OK);
    net_loop_run(dated.loop);

    CHECK(dated.seen_ns >= dated.ended_ns);
    net_loop_free(dated.loop);
    sem_destroy(&dated.may_end);
}

/* ---- timers -------------------------------------------------------------------------------- */

static void arm_in_the_past(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_arm(w->loop, &w->timer, 0);
    net_loop_later(w->loop, &w->later);
    say(w, 'm');
}

TEST(a_timer_armed_in_the_past_is_called_in_the_next_round)
{
    struct world w;

    world_init(&w, arm_in_the_past);
    world_run(&w);

    CHECK_STR(said(&w), "mlt");
    world_done(&w);
}

TEST(a_timer_armed_before_the_loop_runs_is_called)
{
    struct world w;

    world_init(&w, arm_in_the_past);
    net_loop_arm(w.loop, &w.timer, -1);
    net_loop_run(w.loop);

    CHECK_STR(said(&w), "t");
    world_done(&w);
}

static void arm_now_again(struct net_timer *timer)
{
    struct world *w = WORLD_OF(timer, timer);

    say(w, 't');
    net_loop_later(w->loop, &w->later);
    if (++w->n_timers == 3)
        net_loop_stop(w->loop);
    else
        net_loop_arm(w->loop, timer, net_loop_now_ns(w->loop));
}

TEST(a_timer_that_arms_itself_for_now_leaves_turns_for_the_rest)
{
    struct world w;

    world_init(&w, arm_in_the_past);
    w.timer.fn = arm_now_again;
    world_run(&w);

    CHECK_STR(said(&w), "mltltltl");
    world_done(&w);
}

static void disarm(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_disarm(w->loop, &w->timer);
    net_loop_stop(w->loop);
}

TEST(a_disarmed_timer_is_not_called)
{
    struct world w;

    world_init(&w, disarm);
    net_loop_arm(w.loop, &w.timer, 0);
    world_run(&w);
    world_run(&w);

    CHECK_STR(said(&w), "");
    world_done(&w);
}

/* Timers in the next few milliseconds, each with the world that counts them. */
enum { N_TIMERS = 500 };

struct counted {
    struct net_timer timer;
    struct net_loop *loop;
    unsigned *n_left;
    bool *was_early;
};

static void count_down(struct net_timer *timer)
{
    struct counted *counted = (struct counted *)timer;

    if (net_loop_now_ns(counted->loop) < timer->due_ns || (int64_t)uv_hrtime() < timer->due_ns)
        *counted->was_early = true;
    if (--*counted->n_left == 0)
        net_loop_stop(counted->loop);
}

TEST(no_timer_is_called_early_and_all_are_called)
{
    static struct counted counted[N_TIMERS];
    struct net_loop *loop;
    unsigned n_left = N_TIMERS;
    bool was_early = false;
    int64_t now_ns;

    CHECK_INT(net_loop_new(&loop, NULL), PEG_OK);
    now_ns = net_loop_now_ns(loop);
    for (int64_t i = 0; i < N_TIMERS; i++) {
        counted[i] = (struct counted){{.fn = count_down}, loop, &n_left, &was_early};
        net_loop_arm(loop, &counted[i].timer, now_ns + (i * 7919 % N_TIMERS) * 20001);
    }
    net_loop_run(loop);

    CHECK_INT(n_left, 0);
    CHECK(!was_early);
    net_loop_free(loop);
}

static void count_round(uv_prepare_t *round)
{
    ++*(unsigned *)round->data;
}

/* An alarm before the moment would make the loop poll in vain until it has come. */
TEST(a_loop_does_not_spin_until_a_timer_is_due)
{
    struct world w;
    uv_prepare_t round;
    unsigned n_rounds = 0;

    world_init(&w, arm_in_the_past);
    uv_prepare_init(net_loop_uv(w.loop), &round);
    round.data = &n_rounds;
    uv_prepare_start(&round, count_round);
    for (int64_t i = 0; i < 10; i++) {
        net_loop_arm(w.loop, &w.timer, net_loop_now_ns(w.loop) + PEG_NS_PER_MS + i * 100000);
        net_loop_run(w.loop);
    }

    CHECK_STR(said(&w), "tttttttttt");
    CHECK(n_rounds < 100);
    world_done(&w);
}

/* The alarm of the first one must not be taken for that of the second. */
static void arm_sooner(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_arm(w->loop, &w->timer, net_loop_now_ns(w->loop) + PEG_NS_PER_MS);
}

TEST(a_timer_that_is_moved_nearer_is_called_in_time)
{
    struct world w;

    world_init(&w, arm_sooner);
    net_loop_arm(w.loop, &w.timer, net_loop_now_ns(w.loop) + 1000 * PEG_NS_PER_S);
    world_run(&w);

    CHECK_STR(said(&w), "t");
    world_done(&w);
}

static void arm_far_away(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_arm(w->loop, &w->timer, net_loop_now_ns(w->loop) + 1000 * PEG_NS_PER_S);
    net_loop_stop(w->loop);
}

/* Whether the first of two timers could be taken away before its time had come. */
static bool was_taken_away_in_time(int64_t span_ms)
{
    const int64_t span_ns = span_ms * PEG_NS_PER_MS;
    struct world w;
    struct counted second;
    unsigned n_left = 1;
    bool was_early = false;
    bool was_in_time;

    world_init(&w, arm_far_away);
    second = (struct counted){{.fn = count_down}, w.loop, &n_left, &was_early};
    net_loop_arm(w.loop, &w.timer, net_loop_now_ns(w.loop) + span_ns);
    net_loop_arm(w.loop, &second.timer, net_loop_now_ns(w.loop) + 2 * span_ns);
    world_run(&w);
    was_in_time = w.said_len == 0 && n_left == 1;
    if (was_in_time) {
        net_loop_run(w.loop);
        CHECK_INT(n_left, 0);
        CHECK(!was_early);
        CHECK_STR(said(&w), "");
    }
    world_done(&w);
    return was_in_time;
}

/* The alarm rings where the timer was, finds nothing, and must be set again. A machine that is slow
   comes too late to take a timer away that is due in two milliseconds: then in more. */
TEST(a_timer_is_called_after_one_before_it_was_taken_away)
{
    t_try_with_more_time(was_taken_away_in_time, 2);
}

TEST(a_timer_that_is_due_in_centuries_is_not_called_now)
{
    struct world w;

    world_init(&w, disarm);
    net_loop_arm(w.loop, &w.timer, NET_NEVER - 1);
    world_run(&w);

    CHECK_STR(said(&w), "");
    world_done(&w);
}

/* ---- later --------------------------------------------------------------------------------- */

static void ask_later_twice(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_later(w->loop, &w->later);
    net_loop_later(w->loop, &w->later);
    net_loop_later(w->loop, &w->other);
    say(w, 'm');
    net_loop_stop(w->loop);
}

TEST(asking_twice_is_the_same_as_asking_once)
{
    struct world w;

    world_init(&w, ask_later_twice);
    world_run(&w);

    CHECK_STR(said(&w), "mlo");
    CHECK(!w.later.is_waiting);
    world_done(&w);
}

static void ask_and_take_back(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_later(w->loop, &w->later);
    net_loop_later(w->loop, &w->other);
    net_loop_not_later(w->loop, &w->later);
    net_loop_not_later(w->loop, &w->later);
    net_loop_stop(w->loop);
}

TEST(what_is_taken_back_is_not_done)
{
    struct world w;

    world_init(&w, ask_and_take_back);
    world_run(&w);

    CHECK_STR(said(&w), "o");
    world_done(&w);
}

static void take_other_back(struct net_later *later)
{
    struct world *w = WORLD_OF(later, later);

    say(w, 'l');
    net_loop_not_later(w->loop, &w->other);
}

TEST(what_is_taken_back_while_others_are_done_is_not_done)
{
    struct world w;

    world_init(&w, ask_later_twice);
    w.later.fn = take_other_back;
    world_run(&w);

    CHECK_STR(said(&w), "ml");
    CHECK(!w.other.is_waiting);
    world_done(&w);
}

static void ask_again_then_other(struct net_later *later)
{
    struct world *w = WORLD_OF(later, later);

    say(w, 'l');
    net_loop_later(w->loop, ++w->n_laters < 3 ? later : &w->other);
}

static void ask_later(struct net_message *message)
{
    struct world *w = WORLD_OF(message, message);

    net_loop_later(w->loop, &w->later);
    net_loop_arm(w->loop, &w->timer, 0);
}

TEST(what_is_asked_for_while_others_are_done_is_done_in_the_same_round)
{
    struct world w;

    world_init(&w, ask_later);
    w.later.fn = ask_again_then_other;
    world_run(&w);

    CHECK_STR(said(&w), "lllot");
    world_done(&w);
}

static void ask_again(struct net_later *later)
{
    struct world *w = WORLD_OF(later, later);

    if (++w->n_laters < 100000)
        net_loop_later(w->loop, later);
}

TEST(what_asks_for_itself_for_ever_does_not_hold_up_the_rest)
{
    struct world w;

    world_init(&w, ask_later);
    w.later.fn = ask_again;
    world_run(&w);

    CHECK_STR(said(&w), "t");
    CHECK(w.n_laters < 100000);
    net_loop_not_later(w.loop, &w.later);
    world_done(&w);
}

static void ask_again_and_stop(struct net_later *later)
{
    struct world *w = WORLD_OF(later, later);

    if (++w->n_laters < 1000)
        net_loop_later(w->loop, later);
    else
        net_loop_stop(w->loop);
}

/* Nothing else happens on the loop: it must not wait for something that never comes. */
TEST(what_is_left_of_a_round_is_done_in_the_next_without_waiting)
{
    struct world w;

    world_init(&w, ask_later);
    w.later.fn = ask_again_and_stop;
    w.timer.fn = arm_now_again;
    w.n_timers = 10;
    net_loop_later(w.loop, &w.later);
    net_loop_run(w.loop);

    CHECK_INT(w.n_laters, 1000);
    world_done(&w);
}

struct freed {
    struct net_later later;
    struct net_loop *loop;
};

static void free_later(struct net_later *later)
{
    net_loop_stop(((struct freed *)later)->loop);
    peg__free(later);
}

TEST(what_is_done_later_may_free_itself)
{
    struct net_loop *loop;
    struct freed *freed = (struct freed *)peg__alloc_zero(1, sizeof(*freed));

    CHECK(freed);
    CHECK_INT(net_loop_new(&loop, NULL), PEG_OK);
    freed->later.fn = free_later;
    freed->loop = loop;
    net_loop_later(loop, &freed->later);
    net_loop_run(loop);
    net_loop_free(loop);
}
