/* SPDX-License-Identifier: Apache-2.0 */

/* Running, stopping and messages. */

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "../t.h"
#include "base/text/str.h"
#include "net/loop/loop.h"

static struct net_loop *new_loop(void)
{
    struct net_loop *loop;
    peg_error error;

    CHECK_STATUS(net_loop_new(&loop, &error), PEG_OK, error);
    return loop;
}

static struct net_loop *new_started_loop(void)
{
    struct net_loop *loop = new_loop();
    peg_error error;

    CHECK_STATUS(net_loop_start(loop, &error), PEG_OK, error);
    return loop;
}

/* A message with what a test wants to know of it. */
struct note {
    struct net_message message;
    struct net_loop *loop;
    unsigned n_run;
    unsigned n_wanted; /* the loop stops at this many; 0: never */
    bool was_here;
    sem_t *done; /* may be NULL */
};

static void take_note(struct net_message *message)
{
    struct note *note = (struct note *)message;

    note->n_run++;
    note->was_here = net_loop_is_here(note->loop);
    if (note->n_run == note->n_wanted)
        net_loop_stop(note->loop);
    if (note->done)
        sem_post(note->done);
}

/* The same, and posts itself until it is wanted no more. */
static void take_note_again(struct net_message *message)
{
    struct note *note = (struct note *)message;

    take_note(message);
    if (note->n_run < note->n_wanted)
        net_loop_post(note->loop, message);
}

/* ---- running ------------------------------------------------------------------------------- */

TEST(a_loop_runs_in_this_thread_until_it_is_stopped)
{
    struct net_loop *loop = new_loop();
    struct note note = {.message.fn = take_note, .loop = loop, .n_wanted = 1};

    net_loop_post(loop, &note.message);
    net_loop_run(loop);

    CHECK_INT(note.n_run, 1);
    CHECK(note.was_here);
    CHECK(!net_loop_is_here(loop));
    CHECK(!net_loop_free(loop));
}

TEST(a_loop_can_run_again_after_a_stop)
{
    struct net_loop *loop = new_loop();
    struct note note = {.message.fn = take_note, .loop = loop, .n_wanted = 1};

    for (unsigned i = 1; i <= 3; i++) {
        note.n_wanted = i;
        net_loop_post(loop, &note.message);
        net_loop_run(loop);
        CHECK_INT(note.n_run, i);
    }
    net_loop_free(loop);
}

TEST(a_stop_before_it_runs_is_not_lost)
{
    struct net_loop *loop = new_loop();
    struct note note = {.message.fn = take_note, .loop = loop};

    net_loop_post(loop, &note.message);
    net_loop_stop(loop);
    net_loop_run(loop);

    CHECK_INT(note.n_run, 1);
    net_loop_free(loop);
}

TEST(a_loop_runs_in_a_thread_of_its_own)
{
    sem_t done;
    struct net_loop *loop = new_started_loop();
    struct note note = {.message.fn = take_note, .loop = loop, .done = &done};

    sem_init(&done, 0, 0);
    net_loop_post(loop, &note.message);
    sem_wait(&done);

    CHECK(note.was_here);
    CHECK(!net_loop_is_here(loop));
    net_loop_free(loop);
    sem_destroy(&done);
}

TEST(a_loop_is_started_once)
{
    struct net_loop *loop = new_started_loop();
    peg_error error;

    CHECK_INT(net_loop_start(loop, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_LOOP");
    net_loop_free(loop);
}

TEST(a_started_loop_that_was_stopped_can_be_freed)
{
    struct net_loop *loop = new_started_loop();

    net_loop_stop(loop);
    net_loop_stop(loop);
    CHECK(!net_loop_free(loop));
}

TEST(no_loop_is_freed_without_a_word)
{
    CHECK(!net_loop_free(NULL));
}

TEST(a_loop_that_never_ran_can_be_freed)
{
    CHECK(!net_loop_free(new_loop()));
}

static struct net_loop *signalled;

static void stop_on_signal(int number)
{
    (void)number;
    net_loop_stop(signalled);
}

static void raise_signal(struct net_message *message)
{
    (void)message;
    raise(SIGUSR1);
}

TEST(a_signal_handler_may_stop_a_loop)
{
    struct net_message message = {.fn = raise_signal};
    struct sigaction action = {.sa_handler = stop_on_signal};
    struct sigaction before;

    signalled = new_loop();
    CHECK_INT(sigaction(SIGUSR1, &action, &before), 0);
    net_loop_post(signalled, &message);
    net_loop_run(signalled);

    sigaction(SIGUSR1, &before, NULL);
    signalled = net_loop_free(signalled);
}

struct masked {
    struct net_message message;
    sigset_t set;
    sem_t done;
};

static void ask_mask(struct net_message *message)
{
    struct masked *masked = (struct masked *)message;

    pthread_sigmask(SIG_SETMASK, NULL, &masked->set);
    sem_post(&masked->done);
}

TEST(signals_are_blocked_in_a_started_thread_but_for_faults)
{
    struct net_loop *loop = new_started_loop();
    struct masked masked = {.message.fn = ask_mask};

    sem_init(&masked.done, 0, 0);
    net_loop_post(loop, &masked.message);
    sem_wait(&masked.done);

    CHECK(sigismember(&masked.set, SIGTERM));
    CHECK(sigismember(&masked.set, SIGPIPE));
    CHECK(sigismember(&masked.set, SIGUSR1));
    CHECK(!sigismember(&masked.set, SIGSEGV));
    net_loop_free(loop);
    sem_destroy(&masked.done);
}

TEST(starting_a_thread_leaves_the_signals_of_this_one_alone)
{
    sigset_t before;
    sigset_t after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    net_loop_free(new_started_loop());
    pthread_sigmask(SIG_SETMASK, NULL, &after);

    for (int number = 1; number < 32; number++)
        CHECK_INT(sigismember(&after, number), sigismember(&before, number));
}

TEST(a_loop_says_that_there_are_no_more_files)
{
    struct rlimit before;
    struct rlimit none = {0};
    struct net_loop *loop = NULL;
    peg_status status;
    peg_error error;

    getrlimit(RLIMIT_NOFILE, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none);
    status = net_loop_new(&loop, &error);
    setrlimit(RLIMIT_NOFILE, &before);

    CHECK_INT(status, PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_LOOP");
    CHECK(!loop);
}

TORTURE(a_new_loop_survives_any_allocation_failure)
{
    struct net_loop *loop = NULL;
    peg_error error;
    peg_status status = net_loop_new(&loop, &error);

    if (status)
        CHECK(!loop && error.status == PEG_ENOMEM);
    net_loop_free(loop);
    return status;
}

/* ---- messages ------------------------------------------------------------------------------ */

enum { N_SENDERS = 8, N_EACH = 5000 };

struct numbered {
    struct net_message message;
    struct sender *sender;
    unsigned number;
};

struct sender {
    pthread_t thread;
    struct net_loop *loop;
    unsigned n_seen; /* the loop's */
    bool is_out_of_order;
    sem_t *done;
    struct numbered numbered[N_EACH];
};

static void check_number(struct net_message *message)
{
    struct numbered *numbered = (struct numbered *)message;
    struct sender *sender = numbered->sender;

    if (numbered->number != sender->n_seen)
        sender->is_out_of_order = true;
    if (++sender->n_seen == N_EACH)
        sem_post(sender->done);
}

static void *send_all(void *user)
{
    struct sender *sender = (struct sender *)user;

    for (unsigned i = 0; i < N_EACH; i++) {
        sender->numbered[i].message.fn = check_number;
        sender->numbered[i].sender = sender;
        sender->numbered[i].number = i;
        net_loop_post(sender->loop, &sender->numbered[i].message);
    }
    return NULL;
}

TEST(messages_of_each_of_many_threads_arrive_in_order)
{
    struct sender *senders = (struct sender *)calloc(N_SENDERS, sizeof(*senders));
    struct net_loop *loop = new_started_loop();
    sem_t done;

    CHECK(senders);
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < N_SENDERS; i++) {
        senders[i].loop = loop;
        senders[i].done = &done;
        CHECK_INT(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    for (unsigned i = 0; i < N_SENDERS; i++)
        sem_wait(&done);
    for (unsigned i = 0; i < N_SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    net_loop_free(loop);

    for (unsigned i = 0; i < N_SENDERS; i++) {
        CHECK(!senders[i].is_out_of_order);
        CHECK_INT(senders[i].n_seen, N_EACH);
    }
    free(senders);
    sem_destroy(&done);
}

struct gate {
    struct net_message message;
    sem_t reached;
    sem_t open;
};

static void wait_at_gate(struct net_message *message)
{
    struct gate *gate = (struct gate *)message;

    sem_post(&gate->reached);
    sem_wait(&gate->open);
}

TEST(a_loop_is_woken_once_for_many_messages)
{
    enum { N = 1000 };
    static struct note notes[N];
    struct net_loop *loop = new_started_loop();
    struct gate gate = {.message.fn = wait_at_gate};
    uint64_t n_before;
    sem_t done;

    sem_init(&gate.reached, 0, 0);
    sem_init(&gate.open, 0, 0);
    sem_init(&done, 0, 0);
    net_loop_post(loop, &gate.message);
    sem_wait(&gate.reached);
    n_before = net_loop_n_wakes(loop);
    for (unsigned i = 0; i < N; i++) {
        notes[i] = (struct note){.message.fn = take_note, .loop = loop, .done = &done};
        net_loop_post(loop, &notes[i].message);
    }
    CHECK_INT(net_loop_n_wakes(loop) - n_before, 1);

    sem_post(&gate.open);
    for (unsigned i = 0; i < N; i++)
        sem_wait(&done);
    net_loop_free(loop);
    sem_destroy(&gate.reached);
    sem_destroy(&gate.open);
    sem_destroy(&done);
}

TEST(what_a_loop_posts_to_itself_wakes_nobody)
{
    struct net_loop *loop = new_loop();
    struct note note = {.message.fn = take_note_again, .loop = loop, .n_wanted = 100};

    net_loop_post(loop, &note.message);
    net_loop_run(loop);

    CHECK_INT(note.n_run, 100);
    CHECK_INT(net_loop_n_wakes(loop), 1);
    net_loop_free(loop);
}

static void free_message(struct net_message *message)
{
    peg__free(message);
}

TEST(a_message_may_free_itself)
{
    struct net_loop *loop = new_loop();

    for (unsigned i = 0; i < 3; i++) {
        struct net_message *message = (struct net_message *)peg__alloc(sizeof(*message));

        CHECK(message);
        message->fn = free_message;
        net_loop_post(loop, message);
    }
    net_loop_stop(loop);
    net_loop_run(loop);
    net_loop_free(loop);
}

/* It posts itself for ever; the timer still gets its turn. */
struct tireless {
    struct net_message message;
    struct net_timer timer;
    struct net_loop *loop;
    bool is_over;
};

static void post_again(struct net_message *message)
{
    struct tireless *tireless = (struct tireless *)message;

    if (!tireless->is_over)
        net_loop_post(tireless->loop, message);
}

static void end_it(struct net_timer *timer)
{
    struct tireless *tireless =
        (struct tireless *)((char *)timer - offsetof(struct tireless, timer));

    tireless->is_over = true;
    net_loop_stop(tireless->loop);
}

TEST(a_message_that_posts_itself_for_ever_does_not_hold_up_the_rest)
{
    struct net_loop *loop = new_loop();
    struct tireless tireless = {.message.fn = post_again, .timer.fn = end_it, .loop = loop};

    net_loop_arm(loop, &tireless.timer, net_loop_now_ns(loop) + 1000);
    net_loop_post(loop, &tireless.message);
    net_loop_run(loop);

    CHECK(tireless.is_over);
    net_loop_free(loop);
}

/* ---- small things -------------------------------------------------------------------------- */

struct loader {
    struct net_message message;
    struct net_loop *loop;
    ptrdiff_t n;
};

static void add_load(struct net_message *message)
{
    struct loader *loader = (struct loader *)message;

    net_loop_add_load(loader->loop, loader->n);
    net_loop_stop(loader->loop);
}

TEST(the_load_is_what_the_loop_and_others_have_added)
{
    struct net_loop *loop = new_loop();
    struct loader loader = {.message.fn = add_load, .loop = loop, .n = 5};

    CHECK_INT(net_loop_load(loop), 0);
    net_loop_add_load(loop, 2); /* as one that hands over a connection does */
    net_loop_post(loop, &loader.message);
    net_loop_run(loop);
    CHECK_INT(net_loop_load(loop), 7);

    loader.n = -7;
    net_loop_post(loop, &loader.message);
    net_loop_run(loop);
    CHECK_INT(net_loop_load(loop), 0);
    net_loop_free(loop);
}

TEST(a_load_that_is_seen_too_early_is_not_negative)
{
    struct net_loop *loop = new_loop();

    net_loop_add_load(loop, -1);

    CHECK_INT(net_loop_load(loop), 0);
    net_loop_free(loop);
}

TEST(the_buffers_of_a_loop_can_be_written_to_their_ends)
{
    struct net_loop *loop = new_loop();

    memset(net_loop_scratch(loop), 1, NET_SCRATCH_BYTES);
    memset(net_loop_read_buffer(loop), 2, NET_READ_BYTES);

    CHECK(net_loop_scratch(loop)[NET_SCRATCH_BYTES - 1] == 1);
    CHECK(net_loop_read_buffer(loop)[NET_READ_BYTES - 1] == 2);
    net_loop_free(loop);
}
