/* SPDX-License-Identifier: Apache-2.0 */

/* Work on the threads of libuv's pool, which all loops of the process share. */

#include "base/mem.h"
#include "net/loop/internal.h"
#include "net/loop/scheduling.h"

/* The pool's threads inherit the short slices of the loop that asked first. */
static void run_work(uv_work_t *uv)
{
    static _Thread_local bool has_slices;
    struct net_work *work = ((struct net_work_request *)uv->data)->work;

    if (!has_slices)
        net_schedule_worker(0);
    has_slices = true;
    work->work(work);
}

static void unlink_request(struct net_loop *loop, struct net_work_request *request)
{
    if (request->prev)
        request->prev->next = request->next;
    else
        loop->works = request->next;
    if (request->next)
        request->next->prev = request->prev;
}

static void on_done(uv_work_t *uv, int status)
{
    struct net_work_request *request = (struct net_work_request *)uv->data;
    struct net_work *work = request->work;

    work->request = NULL;
    unlink_request(work->loop, request);
    peg__free(request);
    work->done(work, status == UV_ECANCELED);
}

/* The first work of the process starts the pool's threads, which inherit what is blocked. */
static int queue(struct net_loop *loop, struct net_work_request *request)
{
    static atomic_bool has_pool;
    sigset_t before;
    int error;

    if (atomic_load_explicit(&has_pool, memory_order_relaxed))
        return uv_queue_work(&loop->uv, &request->uv, run_work, on_done);
    net_block_signals(&before);
    error = uv_queue_work(&loop->uv, &request->uv, run_work, on_done);
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
    request->next = loop->works;
    if (request->next)
        request->next->prev = request;
    loop->works = request;
    /* It fails only without a function to run. */
    (void)queue(loop, request);
    return PEG_OK;
}

/* Canceling one that runs, or is done, changes nothing. */
void net_loop_cancel_works(struct net_loop *loop)
{
    for (struct net_work_request *request = loop->works; request; request = request->next)
        uv_cancel((uv_req_t *)&request->uv);
}
