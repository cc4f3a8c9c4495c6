/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What would hold up a loop. Arithmetic is offloaded to one more thread of the loop, which runs one
 * task after the other at a low priority, from the first task to the end of the loop. What blocks
 * runs on the threads of libuv's pool, which all loops of the process share.
 */

#include "net/loop/internal.h"

/* Idle time of the processors, and a tenth of one when there is none. */
enum { OFFLOAD_NICE = 10 };

static void remove_task(struct net_offload *offload, struct net_task *task)
{
    PEG_QUEUE_REMOVE(offload, task, next, prev);
    task->is_waiting = false;
}

/* NULL at the end. */
static struct net_task *next_task(struct net_offload *offload)
{
    struct net_task *task;

    pthread_mutex_lock(&offload->lock);
    while (!offload->first && !offload->must_end)
        pthread_cond_wait(&offload->changed, &offload->lock);
    task = offload->first;
    if (task)
        remove_task(offload, task);
    pthread_mutex_unlock(&offload->lock);
    return task;
}

static void *run_tasks(void *user)
{
    struct net_loop *loop = (struct net_loop *)user;
    struct net_task *task;

    pthread_setname_np(pthread_self(), "net-offload");
    net_schedule_worker(OFFLOAD_NICE);
    while ((task = next_task(&loop->offload))) {
        task->work(task);
        net_loop_post(loop, &task->done);
    }
    return NULL;
}

static bool has_thread(struct net_loop *loop)
{
    struct net_offload *offload = &loop->offload;
    sigset_t before;

    if (offload->has_thread || offload->stays_here || loop->is_ending)
        return offload->has_thread;
    pthread_mutex_init(&offload->lock, NULL);
    pthread_cond_init(&offload->changed, NULL);
    net_block_signals(&before);
    offload->has_thread = pthread_create(&offload->thread, NULL, run_tasks, loop) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return offload->has_thread;
}

void net_loop_keep_here(struct net_loop *loop)
{
    loop->offload.stays_here = true;
}

void net_loop_offload(struct net_loop *loop, struct net_task *task)
{
    struct net_offload *offload = &loop->offload;

    if (!has_thread(loop)) { /* the loop ends, or the system has no more threads */
        task->work(task);
        net_loop_post(loop, &task->done);
        return;
    }
    pthread_mutex_lock(&offload->lock);
    PEG_QUEUE_APPEND(offload, task, next, prev);
    task->is_waiting = true;
    pthread_cond_signal(&offload->changed);
    pthread_mutex_unlock(&offload->lock);
}

bool net_loop_cancel_offload(struct net_loop *loop, struct net_task *task)
{
    struct net_offload *offload = &loop->offload;
    bool was_waiting;

    if (!offload->has_thread)
        return false;
    pthread_mutex_lock(&offload->lock);
    was_waiting = task->is_waiting;
    if (was_waiting)
        remove_task(offload, task);
    pthread_mutex_unlock(&offload->lock);
    return was_waiting;
}

void net_loop_end_offload(struct net_loop *loop)
{
    struct net_offload *offload = &loop->offload;

    if (!offload->has_thread)
        return;
    pthread_mutex_lock(&offload->lock);
    offload->must_end = true;
    pthread_cond_signal(&offload->changed);
    pthread_mutex_unlock(&offload->lock);
    pthread_join(offload->thread, NULL);
    pthread_cond_destroy(&offload->changed);
    pthread_mutex_destroy(&offload->lock);
    offload->has_thread = false;
}

/* ---- work that blocks ---------------------------------------------------------------------- */

/* The pool's threads inherit the short time slices of the loop that asked first. */
static void run_work(uv_work_t *uv)
{
    static _Thread_local bool is_scheduled;
    struct net_work *work = ((struct net_work_request *)uv->data)->work;

    if (!is_scheduled)
        net_schedule_worker(0);
    is_scheduled = true;
    work->work(work);
}

static void on_work_done(uv_work_t *uv, int status)
{
    struct net_work_request *request = (struct net_work_request *)uv->data;
    struct net_work *work = request->work;

    work->request = NULL;
    PEG_LIST_REMOVE(work->loop->works, request, next, prev);
    peg__free(request);
    work->done(work, status == UV_ECANCELED);
}

/* The first work of the process starts the pool's threads, which inherit what is blocked. */
static int queue_work(struct net_loop *loop, struct net_work_request *request)
{
    static atomic_bool has_pool;
    sigset_t before;
    int error;

    if (atomic_load_explicit(&has_pool, memory_order_relaxed))
        return uv_queue_work(&loop->uv, &request->uv, run_work, on_work_done);
    net_block_signals(&before);
    error = uv_queue_work(&loop->uv, &request->uv, run_work, on_work_done);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store_explicit(&has_pool, true, memory_order_relaxed);
    return error;
}

peg_status net_loop_work(struct net_loop *loop, struct net_work *work)
{
    struct net_work_request *request =
        (struct net_work_request *)peg__alloc_zero(1, sizeof(*request));

    if (!request)
        return PEG_ENOMEM;
    request->work = work;
    request->uv.data = request;
    work->loop = loop;
    work->request = request;
    PEG_LIST_PUSH(loop->works, request, next, prev);
    /* It fails only without a function to run. */
    (void)queue_work(loop, request);
    return PEG_OK;
}

/* Canceling one that runs, or is done, changes nothing. */
void net_loop_cancel_works(struct net_loop *loop)
{
    for (struct net_work_request *request = loop->works; request; request = request->next)
        uv_cancel((uv_req_t *)&request->uv);
}
