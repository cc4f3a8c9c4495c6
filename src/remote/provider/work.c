/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that run handlers. The loop puts calls into the queue; a worker takes one, runs it and
 * posts it back. */

#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"

/* ---- one call ---- */

static void report_start(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    remote__prov_notify_in_order(prov, &(peg_provider_event){.kind = PEG_PROVIDER_CALL_START,
                                                             .tool = call->tool.ptr,
                                                             .call_id = call->face.call_id,
                                                             .caller = call->face.caller});
}

static void report_end(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    pthread_mutex_lock(&prov->lock);
    prov->state.n_running--;
    pthread_mutex_unlock(&prov->lock);
    remote__prov_notify_in_order(prov,
                                 &(peg_provider_event){.kind = PEG_PROVIDER_CALL_END,
                                                       .tool = call->tool.ptr,
                                                       .call_id = call->face.call_id,
                                                       .caller = call->face.caller,
                                                       .code = call->outcome.code,
                                                       .duration_ms = call->outcome.duration_ms,
                                                       .n_bytes = call->outcome.json_len});
}

static void end_handler_span(const struct remote__prov_call *call)
{
    const struct otlp_attribute attributes[] = {
        {"gen_ai.operation.name", PEG_LIT("execute_tool")},
        {"gen_ai.tool.name", call->tool},
        {"gen_ai.tool.type", PEG_LIT("function")},
        {"gen_ai.tool.call.id", peg__str(call->face.tool_call_id)},
        {"pegboard.toolset", peg__str(call->prov->config.toolset)},
        {"pegboard.call.id", call->call_id},
    };

    otlp_span_end(&call->span,
                  &(struct otlp_end){.operation = "execute_tool",
                                     .target = call->tool,
                                     .kind = OTLP_INTERNAL,
                                     .attributes = attributes,
                                     .n_attributes = sizeof(attributes) / sizeof(attributes[0]),
                                     .error_type = peg__str(call->outcome.code)});
}

static void run_call(struct remote__prov_call *call)
{
    const int64_t started_ns = peg__mono_ns();
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = call->call_id,
                                      .tool = call->tool, .args = call->payload,
                                      .key = call->call_id};
    peg_record *record = NULL;
    peg_error error;

    report_start(call);
    otlp_span_restart(&call->span);
    if (peg_call_run(call->ctx, &request, &call->prov->config.run, &record, &error))
        remote__prov_outcome_error(call, &error);
    else
        remote__prov_outcome_of(call, record);
    peg_record_unref(record);
    call->outcome.duration_ms = (peg__mono_ns() - started_ns) / PEG_NS_PER_MS;
    end_handler_span(call);
    report_end(call);
}

/* ---- the queue: under the lock ---- */

static void count_start(peg_provider *prov)
{
    prov->state.n_queued = prov->queue.n;
    prov->state.n_running++;
    prov->state.n_calls++;
}

static void append_call(struct remote__prov_queue *queue, struct remote__prov_call *call)
{
    call->is_queued = true;
    call->next = NULL;
    call->prev = queue->last;
    if (queue->last)
        queue->last->next = call;
    else
        queue->first = call;
    queue->last = call;
    queue->n++;
}

static void detach_call(struct remote__prov_queue *queue, struct remote__prov_call *call)
{
    if (call->prev)
        call->prev->next = call->next;
    else
        queue->first = call->next;
    if (call->next)
        call->next->prev = call->prev;
    else
        queue->last = call->prev;
    call->is_queued = false;
    queue->n--;
}

/* True: signal a sleeping worker once the lock is free. Only one is being woken at a time, and
 * wakes the next if there is still something to do: calls that take less time than waking a thread
 * are not worth one each. */
static bool must_wake(struct remote__prov_queue *queue)
{
    if (!queue->first || !queue->n_asleep || queue->is_waking)
        return false;
    queue->is_waking = true;
    return true;
}

bool remote__prov_take_back(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;
    bool was_queued;

    pthread_mutex_lock(&prov->lock);
    was_queued = call->is_queued;
    if (was_queued) {
        detach_call(&prov->queue, call);
        prov->state.n_queued = prov->queue.n;
    }
    pthread_mutex_unlock(&prov->lock);
    if (was_queued)
        remote__prov_call_unref(call); /* the queue's */
    return was_queued;
}

void remote__prov_run_inline(struct remote__prov_call *call)
{
    pthread_mutex_lock(&call->prov->lock);
    count_start(call->prov);
    pthread_mutex_unlock(&call->prov->lock);
    run_call(call);
}

bool remote__prov_submit(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;
    const struct remote__prov_config *config = &prov->config;
    bool has_capacity;
    bool wakes = false;

    pthread_mutex_lock(&prov->lock);
    has_capacity = prov->queue.n + prov->state.n_running < config->concurrency + config->max_queued;
    if (has_capacity) {
        append_call(&prov->queue, remote__prov_call_ref(call));
        prov->state.n_queued = prov->queue.n;
        wakes = must_wake(&prov->queue);
    }
    pthread_mutex_unlock(&prov->lock);
    if (wakes)
        pthread_cond_signal(&prov->queue.changed);
    return has_capacity;
}

/* ---- threads ---- */

/* With the lock. */
static void sleep_until_woken(peg_provider *prov)
{
    prov->queue.n_asleep++;
    pthread_cond_wait(&prov->queue.changed, &prov->lock);
    prov->queue.n_asleep--;
    prov->queue.is_waking = false;
}

static struct remote__prov_call *next_call(peg_provider *prov)
{
    struct remote__prov_call *call;
    bool wakes;

    pthread_mutex_lock(&prov->lock);
    while (!prov->queue.first && !prov->queue.is_closed)
        sleep_until_woken(prov);
    call = prov->queue.is_closed ? NULL : prov->queue.first;
    if (call) {
        detach_call(&prov->queue, call);
        count_start(prov);
    }
    wakes = call && must_wake(&prov->queue);
    pthread_mutex_unlock(&prov->lock);
    if (wakes)
        pthread_cond_signal(&prov->queue.changed);
    return call;
}

static void *run_calls(void *user)
{
    peg_provider *prov = user;
    struct remote__prov_call *call;

    while ((call = next_call(prov))) {
        run_call(call);
        net_loop_post(prov->loop, &call->done);
    }
    return NULL;
}

static int start_thread(pthread_t *thread, peg_provider *prov)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int error = pthread_attr_init(&attributes);

    if (error)
        return error;
    /* Faults stay with the thread that makes them. */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_attr_setstacksize(&attributes, PEG_LIMIT_POOL_STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, &attributes, run_calls, prov);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

peg_status remote__prov_start_workers(peg_provider *prov, peg_error *reterr)
{
    const unsigned n = prov->config.runs_inline ? 0 : prov->config.concurrency;

    if (!n)
        return PEG_OK;
    prov->workers = peg__alloc_zero(n, sizeof(*prov->workers));
    if (!prov->workers)
        return peg__fail_nomem(reterr);
    for (unsigned i = 0; i < n; i++) {
        const int error = start_thread(&prov->workers[i], prov);

        if (error)
            return peg__fail(reterr, PEG_EIO, "E_PROVIDER",
                             "thread %u of %u for handlers could not be started (error %d): lower "
                             "concurrency, or raise the system's limit",
                             i + 1, n, error);
        prov->n_workers++;
    }
    return PEG_OK;
}

void remote__prov_close_queue(peg_provider *prov)
{
    pthread_mutex_lock(&prov->lock);
    prov->queue.is_closed = true;
    pthread_cond_broadcast(&prov->queue.changed);
    pthread_mutex_unlock(&prov->lock);
}

void remote__prov_join_workers(peg_provider *prov)
{
    for (unsigned i = 0; i < prov->n_workers; i++)
        pthread_join(prov->workers[i], NULL);
    prov->n_workers = 0;
    peg__free(prov->workers);
    prov->workers = NULL;
}
