/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <semaphore.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/loop/loop.h"

static struct net_loops *new_loops(unsigned n)
{
    struct net_loops *loops;
    peg_error error;

    CHECK_STATUS(net_loops_new(n, &loops, &error), PEG_OK, error);
    return loops;
}

TEST(none_means_one_loop)
{
    struct net_loops *loops = new_loops(0);

    CHECK_INT(net_loops_len(loops), 1);
    CHECK(net_loops_least(loops) == net_loops_at(loops, 0));
    CHECK(!net_loops_free(loops));
}

TEST(more_loops_than_the_limit_are_refused)
{
    struct net_loops *loops = NULL;
    peg_error error;

    CHECK_INT(net_loops_new(PEG_LIMIT_NET_LOOPS + 1, &loops, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_LOOP");
    CHECK(strstr(error.message, "at most"));
    CHECK(!loops);
}

TEST(as_many_loops_as_the_limit_are_made)
{
    struct net_loops *loops = new_loops(PEG_LIMIT_NET_LOOPS);

    CHECK_INT(net_loops_len(loops), PEG_LIMIT_NET_LOOPS);
    net_loops_free(loops);
}

TEST(no_loops_are_freed_without_a_word)
{
    CHECK(!net_loops_free(NULL));
}

TEST(the_least_loaded_loop_is_chosen)
{
    struct net_loops *loops = new_loops(3);

    net_loop_add_load(net_loops_at(loops, 0), 2);
    net_loop_add_load(net_loops_at(loops, 1), 1);
    net_loop_add_load(net_loops_at(loops, 2), 3);

    for (unsigned i = 0; i < 6; i++)
        CHECK(net_loops_least(loops) == net_loops_at(loops, 1));
    net_loops_free(loops);
}

/* Connections on which nothing happens would all go to one of them otherwise. */
TEST(loops_with_the_same_load_take_turns)
{
    struct net_loops *loops = new_loops(3);
    unsigned n_chosen[3] = {0};

    for (unsigned i = 0; i < 9; i++) {
        const struct net_loop *least = net_loops_least(loops);

        for (unsigned k = 0; k < 3; k++)
            n_chosen[k] += least == net_loops_at(loops, k);
    }

    for (unsigned k = 0; k < 3; k++)
        CHECK_INT(n_chosen[k], 3);
    net_loops_free(loops);
}

TORTURE(new_loops_survive_any_allocation_failure)
{
    struct net_loops *loops = NULL;
    peg_error error;
    peg_status status = net_loops_new(2, &loops, &error);

    if (status)
        CHECK(!loops && error.status == PEG_ENOMEM);
    net_loops_free(loops);
    return status;
}

/* ---- loops that talk to each other ---------------------------------------------------------- */

/* A ball that goes from loop to loop. */
struct ball {
    struct net_message message;
    struct net_loops *loops;
    unsigned n_left;
    bool was_elsewhere;
    sem_t *down; /* may be NULL */
};

static void throw_ball(struct net_message *message)
{
    struct ball *ball = (struct ball *)message;
    const unsigned at = ball->n_left % net_loops_len(ball->loops);

    if (!net_loop_is_here(net_loops_at(ball->loops, at)))
        ball->was_elsewhere = true;
    if (ball->n_left-- > 0)
        net_loop_post(net_loops_at(ball->loops, ball->n_left % net_loops_len(ball->loops)),
                      message);
    else if (ball->down)
        sem_post(ball->down);
}

static void start_ball(struct ball *ball)
{
    net_loop_post(net_loops_at(ball->loops, ball->n_left % net_loops_len(ball->loops)),
                  &ball->message);
}

TEST(a_message_goes_from_loop_to_loop)
{
    struct net_loops *loops = new_loops(3);
    struct ball balls[8];
    sem_t down;

    sem_init(&down, 0, 0);
    for (unsigned i = 0; i < 8; i++) {
        balls[i] = (struct ball){
            .message.fn = throw_ball, .loops = loops, .n_left = 2000 + i, .down = &down};
        start_ball(&balls[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        sem_wait(&down);

    for (unsigned i = 0; i < 8; i++)
        CHECK(!balls[i].was_elsewhere);
    net_loops_free(loops);
    sem_destroy(&down);
}

TEST(a_message_that_is_on_its_way_when_the_loops_are_freed_arrives)
{
    struct net_loops *loops = new_loops(3);
    struct ball ball = {.message.fn = throw_ball, .loops = loops, .n_left = 5000};

    start_ball(&ball);
    net_loops_free(loops);

    CHECK_INT(ball.n_left, (unsigned)-1);
    CHECK(!ball.was_elsewhere);
}

/* As a connection does that tells the loop of its listener of its end. */
struct guest {
    struct net_open open;
    struct net_message arrive;
    struct net_message leave;
    struct net_loop *loop;
    struct net_loop *host;
    unsigned *n_left; /* the host's */
};

static struct guest *guest_of(struct net_message *message, size_t offset)
{
    return (struct guest *)(void *)((char *)message - offset);
}

static void arrive(struct net_message *message)
{
    struct guest *guest = guest_of(message, offsetof(struct guest, arrive));

    net_loop_opened(guest->loop, &guest->open);
}

static void leave(struct net_message *message)
{
    ++*guest_of(message, offsetof(struct guest, leave))->n_left;
}

static void close_guest(struct net_open *open)
{
    struct guest *guest = (struct guest *)open;

    net_loop_closed(guest->loop, open);
    net_loop_post(guest->host, &guest->leave);
}

TEST(loops_may_post_to_each_other_while_they_are_freed)
{
    enum { N = 4 };
    struct net_loops *loops = new_loops(N);
    struct guest guests[N];
    unsigned n_left[N] = {0};

    for (unsigned i = 0; i < N; i++) {
        guests[i] = (struct guest){.open.close = close_guest,
                                   .arrive.fn = arrive,
                                   .leave.fn = leave,
                                   .loop = net_loops_at(loops, i),
                                   .host = net_loops_at(loops, (i + 1) % N),
                                   .n_left = &n_left[(i + 1) % N]};
        net_loop_post(guests[i].loop, &guests[i].arrive);
    }
    net_loops_free(loops);

    for (unsigned i = 0; i < N; i++)
        CHECK_INT(n_left[i], 1);
}
