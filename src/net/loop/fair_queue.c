/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fair queue: how the connections of a loop share its thread.
 *
 * What is quick is done at once, when it comes. All else is a job in the queue: reading on a
 * connection that sends much, accepting one, a handshake, an end. In each round of the loop, after
 * all that was quick, jobs run until half of net_loop_fair_queue_ns() is over; the rest waits for
 * the next rounds. So a short request waits for one job at most, however many others there are.
 *
 * The job that was served least is next. Its time counts with the answers that it led to: a job
 * that took four times as long as the others comes a quarter as often, and one that comes now and
 * then is before those that always wait (start-time fair queueing: P. Goyal, H. Vin, H. Cheng,
 * 1996).
 */

#include "base/clock.h"
#include "net/loop/internal.h"

/*
 * A send wakes its peer, and over loopback does half of the peer's work: on some machines it takes
 * as long as ten calls. A job ends with one, and gets the time of four. A few are measured, and
 * send_ns follows their median, so that those which lost their processor do not count. The number
 * of sends between two measurements is odd, as sends to two peers may alternate.
 */
enum { SENDS_A_MEASUREMENT = 17, SENDS_A_JOB = 4, STEP_NS = 100 };

int64_t net_loop_fair_queue_ns(const struct net_loop *loop)
{
    const int64_t wanted_ns = SENDS_A_JOB * loop->fair_queue.send_ns;

    return wanted_ns > NET_FAIR_QUEUE_LEAST_NS ? wanted_ns : NET_FAIR_QUEUE_LEAST_NS;
}

int64_t net_loop_begin_send(struct net_loop *loop)
{
    return ++loop->fair_queue.n_sends % SENDS_A_MEASUREMENT ? 0 : peg__mono_ns();
}

void net_loop_note_send(struct net_loop *loop, int64_t took_ns)
{
    int64_t *send_ns = &loop->fair_queue.send_ns;

    if (took_ns < *send_ns)
        *send_ns -= STEP_NS;
    else if (*send_ns < NET_FAIR_QUEUE_MOST_NS / SENDS_A_JOB)
        *send_ns += STEP_NS;
}

/* A job that was away gains nothing by it. Equals run in the order in which they were queued. */
static void enqueue_job(struct net_fair_queue *queue, struct net_fair_job *job)
{
    const int64_t since_ns =
        job->served_ns > queue->served_ns ? job->served_ns : queue->served_ns++;

    net_timers_arm(&queue->jobs, &job->place, since_ns);
    queue->n++;
}

void net_loop_enqueue(struct net_loop *loop, struct net_fair_job *job)
{
    struct net_fair_queue *queue = &loop->fair_queue;

    if (job == queue->running)
        queue->runs_again = true;
    else if (!job->place.is_armed)
        enqueue_job(queue, job);
}

void net_loop_dequeue(struct net_loop *loop, struct net_fair_job *job)
{
    struct net_fair_queue *queue = &loop->fair_queue;

    if (job == queue->running)
        queue->running = NULL;
    if (!job->place.is_armed)
        return;
    net_timers_disarm(&queue->jobs, &job->place);
    queue->n--;
}

bool net_loop_is_running(const struct net_loop *loop, const struct net_fair_job *job)
{
    return loop->fair_queue.running == job;
}

static struct net_fair_job *take_first_job(struct net_fair_queue *queue)
{
    struct net_timer *place = net_timers_take_due(&queue->jobs, NET_NEVER);

    if (!place)
        return NULL;
    queue->n--;
    if (place->due_ns > queue->served_ns)
        queue->served_ns = place->due_ns;
    return peg__container_of(place, struct net_fair_job, place);
}

/* Returns the time afterwards. */
static int64_t run_fair_job(struct net_loop *loop, struct net_fair_job *job, int64_t from_ns)
{
    struct net_fair_queue *queue = &loop->fair_queue;
    const int64_t since_ns = job->place.due_ns;
    int64_t now_ns;

    queue->running = job;
    queue->runs_again = false;
    job->fn(job);
    net_loop_run_later(loop);
    now_ns = (int64_t)uv_hrtime();
    queue->served_ns += (now_ns - from_ns) / (int64_t)(queue->n + 1);
    if (!queue->running)
        return now_ns; /* it is gone, or was taken back */
    queue->running = NULL;
    job->served_ns = since_ns + (now_ns - from_ns);
    if (queue->runs_again)
        enqueue_job(queue, job);
    return now_ns;
}

void net_loop_run_fair_queue(struct net_loop *loop)
{
    struct net_fair_queue *queue = &loop->fair_queue;
    struct net_fair_job *job;
    int64_t from_ns;
    int64_t now_ns;

    if (queue->n == 0)
        return;
    from_ns = now_ns = (int64_t)uv_hrtime();
    while (now_ns - from_ns < net_loop_fair_queue_ns(loop) / 2 && (job = take_first_job(queue)))
        now_ns = run_fair_job(loop, job, now_ns);
}
