/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns: how the connections of a loop share its thread.
 *
 * What is quick is done at once, when it comes. All else waits for its turn: reading on a
 * connection that has much to say, taking a new one, a handshake, an end. In each round of the
 * loop, after all that was quick, those that wait have one turn after the other until NET_TURN_NS
 * are over; the rest waits for the next rounds. So somebody with a short question waits for one
 * turn at most, however many others there are.
 *
 * Whoever was served least is next. The clock says what a turn took, with the answers that it led
 * to. One that took four times as long as the others comes a quarter as often, and one that comes
 * now and then is before those that always wait (this is start-time fair queueing: P. Goyal,
 * H. Vin, H. Cheng, 1996).
 */

#include "base/mem.h"
#include "net/loop/internal.h"

/* Who was away gets no more for it than who was there. Equals come in the order in which they
 * asked. */
static void queue(struct net_fair_queue *turns, struct net_turn *turn)
{
    const int64_t since_ns =
        turn->served_ns > turns->served_ns ? turn->served_ns : turns->served_ns++;

    net_timers_arm(&turns->queue, &turn->place, since_ns);
    turns->n++;
}

void net_loop_turn(struct net_loop *loop, struct net_turn *turn)
{
    struct net_fair_queue *turns = &loop->turns;

    if (turn == turns->running)
        turns->runs_again = true;
    else if (!turn->place.is_armed)
        queue(turns, turn);
}

void net_loop_no_turn(struct net_loop *loop, struct net_turn *turn)
{
    struct net_fair_queue *turns = &loop->turns;

    if (turn == turns->running)
        turns->running = NULL;
    if (!turn->place.is_armed)
        return;
    net_timers_disarm(&turns->queue, &turn->place);
    turns->n--;
}

bool net_loop_has_turn(const struct net_loop *loop, const struct net_turn *turn)
{
    return loop->turns.running == turn;
}

static struct net_turn *take_first(struct net_fair_queue *turns)
{
    struct net_timer *place = net_timers_take_due(&turns->queue, NET_NEVER);

    if (!place)
        return NULL;
    turns->n--;
    if (place->due_ns > turns->served_ns)
        turns->served_ns = place->due_ns;
    return peg__container_of(place, struct net_turn, place);
}

/* Returns what the time is then. */
static int64_t run(struct net_loop *loop, struct net_turn *turn, int64_t from_ns)
{
    struct net_fair_queue *turns = &loop->turns;
    const int64_t since_ns = turn->place.due_ns;
    int64_t now_ns;

    turns->running = turn;
    turns->runs_again = false;
    turn->fn(turn);
    net_loop_run_later(loop);
    now_ns = (int64_t)uv_hrtime();
    turns->served_ns += (now_ns - from_ns) / (int64_t)(turns->n + 1);
    if (!turns->running)
        return now_ns; /* it is gone, or wants no more */
    turns->running = NULL;
    turn->served_ns = since_ns + (now_ns - from_ns);
    if (turns->runs_again)
        queue(turns, turn);
    return now_ns;
}

void net_loop_run_fair_queue(struct net_loop *loop)
{
    struct net_fair_queue *turns = &loop->turns;
    struct net_turn *turn;
    int64_t from_ns;
    int64_t now_ns;

    if (turns->n == 0)
        return;
    from_ns = now_ns = (int64_t)uv_hrtime();
    while (now_ns - from_ns < NET_TURN_NS / 2 && (turn = take_first(turns)))
        now_ns = run(loop, turn, now_ns);
}
