/* SPDX-License-Identifier: Apache-2.0 */

/* Who is next on a loop, and what is done aside. */

#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <uv.h>

#include "../t.h"
#include "base/clock.h"
#include "base/text/str.h"
#include "net/loop/loop.h"

/* Two that take turns, and the order in which they and others were called, a letter for each. */
struct player {
    struct net_fair_job turn;
    struct world *world;
    char letter;
    unsigned wanted; /* turns more */
    int64_t burns_ns;
};

struct world {
    struct net_loop *loop;
    struct player a;
    struct player b;
    struct net_message message;
    struct net_later later;
    char said[64];
    size_t said_len;
    size_t enough; /* letters */
};

#define WORLD_OF(pointer, member)                                                                  \
    ((struct world *)(void *)((char *)(pointer)-offsetof(struct world, member)))

static void say(struct world *w, char letter)
{
    if (w->said_len < sizeof(w->said))
        w->said[w->said_len++] = letter;
    if (w->said_len >= w->enough)
        net_loop_stop(w->loop);
}

static void burn(int64_t ns)
{
    const uint64_t until = uv_hrtime() + (uint64_t)ns;

    while (uv_hrtime() < until)
        continue;
}

static void play(struct net_fair_job *turn)
{
    struct player *player = (struct player *)(void *)turn; /* its first member */

    burn(player->burns_ns);
    if (player->wanted > 0 && player->wanted--)
        net_loop_enqueue(player->world->loop, turn);
    say(player->world, player->letter);
}

static void say_message(struct net_message *message)
{
    say(WORLD_OF(message, message), 'm');
}

static void say_later(struct net_later *later)
{
    say(WORLD_OF(later, later), 'l');
}

static void world_begin(struct world *w)
{
    *w = (struct world){.message = {.fn = say_message}, .later = {.fn = say_later}};
    w->a = (struct player){.turn.fn = play, .world = w, .letter = 'a'};
    w->b = (struct player){.turn.fn = play, .world = w, .letter = 'b'};
    CHECK_INT(net_loop_new(&w->loop, NULL), PEG_OK);
}

/* Runs until so many letters are there. */
static void check_said(struct world *w, const char *expected)
{
    w->enough = strlen(expected);
    if (w->said_len < w->enough)
        net_loop_run(w->loop);
    CHECK_STR(((peg_str){w->said, w->said_len}), expected);
}

static void world_end(struct world *w)
{
    net_loop_free(w->loop);
}

/* ---- turns ------------------------------------------------------------------------------------
 */

TEST(a_turn_comes_after_what_is_quick)
{
    struct world w;

    world_begin(&w);
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_later(w.loop, &w.later);
    net_loop_post(w.loop, &w.message);
    check_said(&w, "lma");
    world_end(&w);
}

TEST(asking_twice_for_a_turn_is_asking_once)
{
    struct world w;

    world_begin(&w);
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    check_said(&w, "ab");
    world_end(&w);
}

static void post_and_burn(struct net_fair_job *turn)
{
    struct player *player = (struct player *)(void *)turn; /* its first member */

    net_loop_post(player->world->loop, &player->world->message);
    play(turn);
}

/* What is quick waits for one turn, not for all. */
TEST(a_long_turn_is_the_last_of_its_round)
{
    struct world w;

    world_begin(&w);
    w.a.turn.fn = post_and_burn;
    w.a.burns_ns = NET_FAIR_QUEUE_MOST_NS;
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    check_said(&w, "amb");
    world_end(&w);
}

static int64_t fair_queue_ns_after(struct net_loop *loop, unsigned n_sends, int64_t took_ns)
{
    for (unsigned i = 0; i < n_sends; i++)
        net_loop_note_send(loop, took_ns);
    return net_loop_fair_queue_ns(loop);
}

TEST(jobs_have_more_time_where_sending_takes_longer)
{
    struct net_loop *loop;
    int64_t slow_ns;

    CHECK_INT(net_loop_new(&loop, NULL), PEG_OK);
    CHECK_INT(net_loop_fair_queue_ns(loop), NET_FAIR_QUEUE_LEAST_NS);
    CHECK_INT(fair_queue_ns_after(loop, 1000, 1000), NET_FAIR_QUEUE_LEAST_NS);
    slow_ns = fair_queue_ns_after(loop, 1000, 10000);
    CHECK(slow_ns > 39000 && slow_ns < 41000);
    /* Some that lost their processor do not count, and there is a bound. */
    for (unsigned i = 0; i < 300; i++)
        slow_ns = fair_queue_ns_after(loop, 1, i % 3 ? 10000 : PEG_NS_PER_MS);
    CHECK(slow_ns > 39000 && slow_ns < 42000);
    CHECK_INT(fair_queue_ns_after(loop, 1000, PEG_NS_PER_MS), NET_FAIR_QUEUE_MOST_NS);
    CHECK_INT(fair_queue_ns_after(loop, 1000, 1000), NET_FAIR_QUEUE_LEAST_NS);
    net_loop_free(loop);
}

static bool is_behind_after(int64_t burns_ms)
{
    static const char expected[] = "abbba";
    struct world w;
    bool is_behind;

    world_begin(&w);
    w.a.wanted = 1;
    w.a.burns_ns = burns_ms * PEG_NS_PER_MS;
    w.b.wanted = 2;
    w.enough = strlen(expected);
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    net_loop_run(w.loop);
    is_behind = peg__str_is(peg__strn(w.said, w.said_len), expected);
    world_end(&w);
    return is_behind;
}

/* A machine that is busy may hold up the other: then for longer than that. */
TEST(who_took_long_is_behind_who_did_not)
{
    t_try_with_more_time(is_behind_after, 100);
}

static void invite(struct net_fair_job *turn)
{
    struct world *w = ((struct player *)(void *)turn)->world;

    if (w->said_len == 1)
        net_loop_enqueue(w->loop, &w->b.turn);
    play(turn);
}

/* Who was away has no advantage of it but to be next. */
TEST(who_comes_back_is_next_once)
{
    struct world w;

    world_begin(&w);
    w.a.turn.fn = invite;
    w.a.wanted = 2;
    w.a.burns_ns = 1000 * 1000;
    net_loop_enqueue(w.loop, &w.a.turn);
    check_said(&w, "aaba");
    world_end(&w);
}

TEST(a_turn_that_was_taken_back_does_not_come)
{
    struct world w;

    world_begin(&w);
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    net_loop_dequeue(w.loop, &w.a.turn);
    net_loop_dequeue(w.loop, &w.a.turn);
    CHECK(!net_fair_job_is_queued(&w.a.turn));
    check_said(&w, "b");
    world_end(&w);
}

static void go(struct net_fair_job *turn)
{
    struct player *player = (struct player *)(void *)turn; /* its first member */
    struct world *w = player->world;

    CHECK(net_loop_is_running(w->loop, turn));
    net_loop_enqueue(w->loop, turn); /* wants more, and then no more */
    net_loop_dequeue(w->loop, turn);
    CHECK(!net_loop_is_running(w->loop, turn));
    memset(player, 0xff, sizeof(*player));
    say(w, 'x');
}

TEST(who_goes_in_its_turn_is_not_touched_again)
{
    struct world w;

    world_begin(&w);
    w.a.turn.fn = go;
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    check_said(&w, "xb");
    world_end(&w);
}

TEST(turns_that_wait_come_when_the_loop_ends)
{
    struct world w;

    world_begin(&w);
    w.a.wanted = 2;
    w.enough = sizeof(w.said) + 1;
    net_loop_enqueue(w.loop, &w.a.turn);
    net_loop_enqueue(w.loop, &w.b.turn);
    w.loop = net_loop_free(w.loop);
    CHECK_INT(w.said_len, 4);
}

/* ---- aside ------------------------------------------------------------------------------------
 */

struct job {
    struct net_task task;
    struct net_loop *loop;
    pthread_t worked;
    int policy; /* of that thread */
    int nice;
    bool was_here; /* done on the loop */
    unsigned n_worked;
    unsigned n_done;
    sem_t may_go;
};

static void work(struct net_task *task)
{
    struct job *job = (struct job *)(void *)task; /* its first member */

    job->worked = pthread_self();
    job->policy = sched_getscheduler(0);
    job->nice = getpriority(PRIO_PROCESS, 0);
    job->n_worked++;
    sem_wait(&job->may_go);
}

static void done(struct net_message *message)
{
    struct job *job = (struct job *)(void *)((char *)message - offsetof(struct job, task.done));

    job->n_done++;
    job->was_here = net_loop_is_here(job->loop);
    net_loop_stop(job->loop);
}

static void job_init(struct job *job, struct net_loop *loop)
{
    *job = (struct job){.task = {.work = work, .done.fn = done}, .loop = loop};
    sem_init(&job->may_go, 0, 0);
}

TEST(a_task_is_worked_on_aside_and_done_on_the_loop)
{
    struct net_loop *loop;
    struct job job;

    CHECK_INT(net_loop_new(&loop, NULL), PEG_OK);
    job_init(&job, loop);
    sem_post(&job.may_go);
    net_loop_offload(loop, &job.task);
    while (job.n_done == 0)
        net_loop_run(loop);

    CHECK(!pthread_equal(job.worked, pthread_self()));
    if (sched_getscheduler(0) == SCHED_OTHER) {
        CHECK_INT(job.policy, SCHED_BATCH);
        CHECK(job.nice >= 10);
    }
    CHECK(job.was_here);
    CHECK_INT(job.n_worked, 1);
    CHECK(!net_loop_cancel_offload(loop, &job.task));
    net_loop_free(loop);
}

TEST(a_task_that_has_not_begun_can_be_taken_back)
{
    struct net_loop *loop;
    struct job jobs[3];

    CHECK_INT(net_loop_new(&loop, NULL), PEG_OK);
    for (unsigned i = 0; i < 3; i++) {
        job_init(&jobs[i], loop);
        net_loop_offload(loop, &jobs[i].task);
    }
    CHECK(net_loop_cancel_offload(loop, &jobs[1].task)); /* the first waits, or has not begun */
    CHECK(!net_loop_cancel_offload(loop, &jobs[1].task));
    sem_post(&jobs[0].may_go);
    sem_post(&jobs[2].may_go);
    while (jobs[2].n_done == 0)
        net_loop_run(loop);

    CHECK_INT(jobs[0].n_done, 1);
    CHECK_INT(jobs[1].n_worked, 0);
    CHECK_INT(jobs[1].n_done, 0);
    net_loop_free(loop);
}
