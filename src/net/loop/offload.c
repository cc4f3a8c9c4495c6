/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arithmetic that would hold up a loop, done aside: each loop that needs it has one more thread,
 * which takes one task after the other and stands back behind the threads that answer. It is
 * started with the first task and ends with the loop.
 */

#include "net/loop/internal.h"
#include "net/loop/scheduling.h"

/* What everybody else leaves of the processors, and a tenth of one when they leave nothing. */
enum { ASIDE_NICE = 10 };

static void link_task(struct net_offload *aside, struct net_task *task)
{
    task->next = NULL;
    task->prev = aside->last;
    if (task->prev)
        task->prev->next = task;
    else
        aside->first = task;
    aside->last = task;
    task->is_waiting = true;
}

static void unlink_task(struct net_offload *aside, struct net_task *task)
{
    if (task->prev)
        task->prev->next = task->next;
    else
        aside->first = task->next;
    if (task->next)
        task->next->prev = task->prev;
    else
        aside->last = task->prev;
    task->is_waiting = false;
}

/* NULL at the end. */
static struct net_task *next_task(struct net_offload *aside)
{
    struct net_task *task;

    pthread_mutex_lock(&aside->lock);
    while (!aside->first && !aside->must_end)
        pthread_cond_wait(&aside->changed, &aside->lock);
    task = aside->first;
    if (task)
        unlink_task(aside, task);
    pthread_mutex_unlock(&aside->lock);
    return task;
}

static void *run(void *user)
{
    struct net_loop *loop = (struct net_loop *)user;
    struct net_task *task;

    pthread_setname_np(pthread_self(), "net-aside");
    net_schedule_worker(ASIDE_NICE);
    while ((task = next_task(&loop->aside))) {
        task->work(task);
        net_loop_post(loop, &task->done);
    }
    return NULL;
}

static bool has_thread(struct net_loop *loop)
{
    struct net_offload *aside = &loop->aside;
    sigset_t before;

    if (aside->has_thread || aside->stays_here || loop->is_ending)
        return aside->has_thread;
    pthread_mutex_init(&aside->lock, NULL);
    pthread_cond_init(&aside->changed, NULL);
    net_block_signals(&before);
    aside->has_thread = pthread_create(&aside->thread, NULL, run, loop) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return aside->has_thread;
}

void net_loop_keep_here(struct net_loop *loop)
{
    loop->aside.stays_here = true;
}

void net_loop_offload(struct net_loop *loop, struct net_task *task)
{
    struct net_offload *aside = &loop->aside;

    if (!has_thread(loop)) { /* it ends, or the system has no more of them: here is as good */
        task->work(task);
        net_loop_post(loop, &task->done);
        return;
    }
    pthread_mutex_lock(&aside->lock);
    link_task(aside, task);
    pthread_cond_signal(&aside->changed);
    pthread_mutex_unlock(&aside->lock);
}

bool net_loop_cancel_offload(struct net_loop *loop, struct net_task *task)
{
    struct net_offload *aside = &loop->aside;
    bool was_waiting;

    if (!aside->has_thread)
        return false;
    pthread_mutex_lock(&aside->lock);
    was_waiting = task->is_waiting;
    if (was_waiting)
        unlink_task(aside, task);
    pthread_mutex_unlock(&aside->lock);
    return was_waiting;
}

void net_loop_end_offload(struct net_loop *loop)
{
    struct net_offload *aside = &loop->aside;

    if (!aside->has_thread)
        return;
    pthread_mutex_lock(&aside->lock);
    aside->must_end = true;
    pthread_cond_signal(&aside->changed);
    pthread_mutex_unlock(&aside->lock);
    pthread_join(aside->thread, NULL);
    pthread_cond_destroy(&aside->changed);
    pthread_mutex_destroy(&aside->lock);
    aside->has_thread = false;
}
