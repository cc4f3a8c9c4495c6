/* SPDX-License-Identifier: Apache-2.0 */

/* Work on the pool, and what becomes of everything when a loop is freed. */

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <uv.h>

#include "../t.h"
#include "base/clock.h"
#include "net/loop/loop.h"

enum { N_POOL = 2 };

/* The pool is made once in a process. */
__attribute__((constructor)) static void choose_pool_size(void)
{
    setenv("UV_THREADPOOL_SIZE", "2", 1);
}

static struct net_loop *new_loop(void)
{
    struct net_loop *loop;
    peg_error error;

    CHECK_STATUS(net_loop_new(&loop, &error), PEG_OK, error);
    return loop;
}

/* ---- work ---------------------------------------------------------------------------------- */

struct job {
    struct net_work work;
    struct net_message message; /* for those that post one */
    struct net_loop *loop;
    bool has_run;
    bool ran_here;
    bool was_done_here;
    bool was_canceled;
    sigset_t blocked;
    unsigned n_done;
    unsigned n_messages;
    unsigned n_again; /* how often it is asked for again when it is done */
    sem_t *begun;     /* for those that wait */
    sem_t *may_end;
};

static void do_job(struct net_work *work)
{
    struct job *job = (struct job *)work;

    job->has_run = true;
    job->ran_here = net_loop_is_here(job->loop);
    pthread_sigmask(SIG_SETMASK, NULL, &job->blocked);
}

static void do_until_released(struct net_work *work)
{
    struct job *job = (struct job *)work;

    do_job(work);
    sem_post(job->begun);
    sem_wait(job->may_end);
}

static void end_job(struct net_work *work, bool was_canceled)
{
    struct job *job = (struct job *)work;

    job->was_canceled = was_canceled;
    job->was_done_here = net_loop_is_here(job->loop);
    job->n_done++;
    if (job->n_again > 0) {
        job->n_again--;
        if (net_loop_work(job->loop, work) != PEG_OK)
            abort();
    }
    net_loop_stop(job->loop);
}

static void end_job_and_release(struct net_work *work, bool was_canceled)
{
    struct job *job = (struct job *)work;

    end_job(work, was_canceled);
    for (unsigned i = 0; i < N_POOL; i++)
        sem_post(job->may_end);
}

static struct job new_job(struct net_loop *loop)
{
    return (struct job){.work = {.work = do_job, .done = end_job}, .loop = loop};
}

TEST(work_runs_on_another_thread_and_is_done_on_the_loop)
{
    struct net_loop *loop = new_loop();
    struct job job = new_job(loop);

    CHECK_INT(net_loop_work(loop, &job.work), PEG_OK);
    net_loop_run(loop);

    CHECK(job.has_run && !job.ran_here);
    CHECK(job.was_done_here && !job.was_canceled);
    CHECK_INT(job.n_done, 1);
    net_loop_free(loop);
}

TEST(signals_are_blocked_in_the_threads_of_the_pool)
{
    struct net_loop *loop = new_loop();
    struct job job = new_job(loop);

    CHECK_INT(net_loop_work(loop, &job.work), PEG_OK);
    net_loop_run(loop);

    CHECK(sigismember(&job.blocked, SIGTERM));
    CHECK(!sigismember(&job.blocked, SIGSEGV));
    net_loop_free(loop);
}

TEST(work_may_be_asked_for_again_when_it_is_done)
{
    struct net_loop *loop = new_loop();
    struct job job = new_job(loop);

    job.n_again = 2;
    CHECK_INT(net_loop_work(loop, &job.work), PEG_OK);
    while (job.n_done < 3)
        net_loop_run(loop);

    CHECK(!job.was_canceled);
    net_loop_free(loop);
}

/* The pool is busy, so the rest cannot begin: the free cancels it, and its end releases the pool,
 * for which the free waits. */
TEST(work_that_has_not_begun_is_canceled_when_the_loop_is_freed)
{
    struct net_loop *loop = new_loop();
    struct job busy[N_POOL];
    struct job waiting = new_job(loop);
    sem_t begun;
    sem_t may_end;

    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    for (unsigned i = 0; i < N_POOL; i++) {
        busy[i] = new_job(loop);
        busy[i].work.work = do_until_released;
        busy[i].begun = &begun;
        busy[i].may_end = &may_end;
        CHECK_INT(net_loop_work(loop, &busy[i].work), PEG_OK);
        sem_wait(&begun);
    }
    waiting.work.done = end_job_and_release;
    waiting.may_end = &may_end;
    CHECK_INT(net_loop_work(loop, &waiting.work), PEG_OK);
    net_loop_free(loop);

    CHECK_INT(waiting.n_done, 1);
    CHECK(waiting.was_canceled && !waiting.has_run);
    for (unsigned i = 0; i < N_POOL; i++) {
        CHECK_INT(busy[i].n_done, 1);
        CHECK(!busy[i].was_canceled);
    }
    sem_destroy(&begun);
    sem_destroy(&may_end);
}

TEST(work_that_is_asked_for_while_the_loop_is_freed_is_done)
{
    struct net_loop *loop = new_loop();
    struct job job = new_job(loop);

    job.n_again = 5;
    CHECK_INT(net_loop_work(loop, &job.work), PEG_OK);
    net_loop_free(loop);

    CHECK_INT(job.n_done, 6);
    CHECK(job.was_done_here);
}

static void count_message(struct net_message *message)
{
    struct job *job = (struct job *)(void *)((char *)message - offsetof(struct job, message));

    job->n_messages++;
}

static void do_post(struct net_work *work)
{
    struct job *job = (struct job *)work;

    net_loop_post(job->loop, &job->message);
}

TEST(what_work_posts_while_the_loop_is_freed_is_run)
{
    for (unsigned i = 0; i < 50; i++) {
        struct net_loop *loop = new_loop();
        struct job job = new_job(loop);

        job.work.work = do_post;
        job.message.fn = count_message;
        CHECK_INT(net_loop_work(loop, &job.work), PEG_OK);
        net_loop_free(loop);

        CHECK_INT(job.n_done, 1);
        CHECK_INT(job.n_messages, job.was_canceled ? 0 : 1);
    }
}

TORTURE(work_survives_any_allocation_failure)
{
    struct net_loop *loop = NULL;
    struct job job;
    peg_status status = net_loop_new(&loop, NULL);

    if (status)
        return status;
    job = new_job(loop);
    status = net_loop_work(loop, &job.work);
    if (!status)
        net_loop_run(loop);
    net_loop_free(loop);
    CHECK_INT(job.n_done, status ? 0 : 1);
    return status;
}

/* ---- messages, and what is to be done later ------------------------------------------------- */

struct chain {
    struct net_message message;
    struct net_later later;
    struct net_timer timer;
    struct net_loop *loop;
    unsigned n_left;
    bool was_later;
};

static void post_next(struct net_message *message)
{
    struct chain *chain = (struct chain *)message;

    if (chain->n_left > 0 && --chain->n_left > 0)
        net_loop_post(chain->loop, message);
    else
        net_loop_later(chain->loop, &chain->later);
}

static void note_later(struct net_later *later)
{
    struct chain *chain = (struct chain *)(void *)((char *)later - offsetof(struct chain, later));

    chain->was_later = net_loop_is_here(chain->loop);
}

static void must_not_ring(struct net_timer *timer)
{
    (void)timer;
    abort();
}

TEST(what_was_posted_and_what_follows_from_it_is_run_when_the_loop_is_freed)
{
    struct net_loop *loop = new_loop();
    struct chain chain = {
        .message.fn = post_next, .later.fn = note_later, .loop = loop, .n_left = 100};

    net_loop_post(loop, &chain.message);
    net_loop_free(loop);

    CHECK_INT(chain.n_left, 0);
    CHECK(chain.was_later);
}

TEST(what_was_posted_to_a_started_loop_is_run_when_it_is_freed)
{
    enum { N = 100 };
    static struct chain chains[N];
    struct net_loop *loop = new_loop();

    CHECK_INT(net_loop_start(loop, NULL), PEG_OK);
    for (unsigned i = 0; i < N; i++) {
        chains[i] = (struct chain){.message.fn = post_next, .later.fn = note_later, .loop = loop};
        net_loop_post(loop, &chains[i].message);
    }
    net_loop_free(loop);

    for (unsigned i = 0; i < N; i++)
        CHECK(chains[i].was_later);
}

TEST(timers_that_are_armed_are_forgotten_when_the_loop_is_freed)
{
    struct net_loop *loop = new_loop();
    struct net_timer timer = {.fn = must_not_ring};

    net_loop_arm(loop, &timer, net_loop_now_ns(loop) + 1000 * PEG_NS_PER_S);

    CHECK(!net_loop_free(loop));
}

/* ---- what is open --------------------------------------------------------------------------- */

struct door {
    struct net_open open;
    struct net_timer timer;
    struct net_message message;
    struct net_loop *loop;
    struct door *next; /* opened by the close of this one */
    unsigned n_closes;
    bool is_ended;
    bool was_ending;
};

static void end_door(struct door *door)
{
    door->is_ended = true;
    net_loop_closed(door->loop, &door->open);
}

static void close_at_once(struct net_open *open)
{
    struct door *door = (struct door *)open;

    door->n_closes++;
    door->was_ending = net_loop_is_ending(door->loop);
    end_door(door);
}

static void end_by_message(struct net_message *message)
{
    end_door((struct door *)(void *)((char *)message - offsetof(struct door, message)));
}

static void end_by_timer(struct net_timer *timer)
{
    struct door *door = (struct door *)(void *)((char *)timer - offsetof(struct door, timer));

    net_loop_post(door->loop, &door->message);
}

/* As a stream does that has bytes to send: the end takes a few rounds. */
static void close_slowly(struct net_open *open)
{
    struct door *door = (struct door *)open;

    door->n_closes++;
    net_loop_arm(door->loop, &door->timer, net_loop_now_ns(door->loop) + 2 * PEG_NS_PER_MS);
}

static void close_and_open_next(struct net_open *open)
{
    struct door *door = (struct door *)open;

    close_at_once(open);
    net_loop_opened(door->loop, &door->next->open);
}

static struct door new_door(struct net_loop *loop, void (*close)(struct net_open *open))
{
    return (struct door){
        .open.close = close, .timer.fn = end_by_timer, .message.fn = end_by_message, .loop = loop};
}

TEST(what_is_open_is_closed_once_when_the_loop_is_freed)
{
    struct net_loop *loop = new_loop();
    struct door doors[3] = {new_door(loop, close_at_once), new_door(loop, close_slowly),
                            new_door(loop, close_at_once)};

    for (unsigned i = 0; i < 3; i++)
        net_loop_opened(loop, &doors[i].open);
    CHECK(!net_loop_is_ending(loop));
    net_loop_free(loop);

    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(doors[i].n_closes, 1);
        CHECK(doors[i].is_ended);
    }
    CHECK(doors[0].was_ending);
}

TEST(what_has_ended_is_not_closed)
{
    struct net_loop *loop = new_loop();
    struct door doors[3] = {new_door(loop, close_at_once), new_door(loop, close_at_once),
                            new_door(loop, close_at_once)};

    for (unsigned i = 0; i < 3; i++)
        net_loop_opened(loop, &doors[i].open);
    net_loop_closed(loop, &doors[1].open);
    net_loop_closed(loop, &doors[1].open);
    net_loop_free(loop);

    CHECK_INT(doors[0].n_closes, 1);
    CHECK_INT(doors[1].n_closes, 0);
    CHECK_INT(doors[2].n_closes, 1);
}

TEST(what_a_close_opens_is_closed_too)
{
    struct net_loop *loop = new_loop();
    struct door first = new_door(loop, close_and_open_next);
    struct door second = new_door(loop, close_slowly);

    first.next = &second;
    net_loop_opened(loop, &first.open);
    net_loop_free(loop);

    CHECK_INT(second.n_closes, 1);
    CHECK(second.is_ended);
}

static void end_neighbour(struct net_open *open)
{
    struct door *door = (struct door *)open;

    close_at_once(open);
    end_door(door->next);
}

TEST(a_close_may_end_another_thing)
{
    struct net_loop *loop = new_loop();
    struct door first = new_door(loop, end_neighbour);
    struct door second = new_door(loop, close_at_once);

    first.next = &second;
    net_loop_opened(loop, &first.open);
    net_loop_opened(loop, &second.open);
    net_loop_free(loop);

    CHECK_INT(first.n_closes, 1);
    CHECK_INT(second.n_closes, 0);
}

static void open_door(struct net_message *message)
{
    struct door *door = (struct door *)(void *)((char *)message - offsetof(struct door, message));

    message->fn = end_by_message;
    net_loop_opened(door->loop, &door->open);
}

TEST(what_is_open_on_a_started_loop_is_closed)
{
    struct net_loop *loop = new_loop();
    struct door door = new_door(loop, close_slowly);

    door.message.fn = open_door;
    CHECK_INT(net_loop_start(loop, NULL), PEG_OK);
    net_loop_post(loop, &door.message);
    net_loop_free(loop);

    CHECK_INT(door.n_closes, 1);
    CHECK(door.is_ended);
}

static void ignore_timer(uv_timer_t *timer)
{
    (void)timer;
}

TEST(a_handle_that_somebody_forgot_does_not_keep_a_loop_from_its_end)
{
    struct net_loop *loop = new_loop();
    uv_timer_t timer;

    uv_timer_init(net_loop_uv(loop), &timer);
    uv_timer_start(&timer, ignore_timer, 1000000, 0);

    CHECK(!net_loop_free(loop));
}

/* A handle of an owner who has ended, but whose memory goes with the handle. */
struct last {
    uv_timer_t timer;
    struct net_message message;
};

static void free_last(struct net_message *message)
{
    peg__free((char *)message - offsetof(struct last, message));
}

static void post_last(uv_handle_t *handle)
{
    struct last *last = (struct last *)(void *)handle;

    net_loop_post((struct net_loop *)handle->data, &last->message);
}

TEST(what_the_close_of_a_handle_posts_is_run)
{
    struct net_loop *loop = new_loop();
    struct last *last = (struct last *)peg__alloc_zero(1, sizeof(*last));

    CHECK(last);
    uv_timer_init(net_loop_uv(loop), &last->timer);
    last->timer.data = loop;
    last->message.fn = free_last;
    uv_close((uv_handle_t *)&last->timer, post_last);

    CHECK(!net_loop_free(loop));
}
