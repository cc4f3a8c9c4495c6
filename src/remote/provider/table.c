/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls that the provider was handed and has had no Ack for. A call comes in once, whatever the
 * gateway sends; its result goes out in chunks, on the stream that it came by or, after a break, on
 * the one that has listed it; its Ack ends it. All of it on the loop.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "json/json.h"

/* Behind its own deltas: the last of them queues the result. */
static void wait_to_send(struct remote__prov_call *call)
{
    struct remote__prov_stream *stream = call->via;

    if (call->is_waiting || call->n_deltas)
        return;
    call->is_waiting = true;
    call->n_sent = 0;
    call->is_sent = false;
    call->next_to_send = NULL;
    if (stream->last_to_send)
        stream->last_to_send->next_to_send = call;
    else
        stream->first_to_send = call;
    stream->last_to_send = call;
}

static void send_delta_frame(struct remote__prov_stream *stream, struct remote__prov_delta *delta)
{
    Pegboard__V1__Delta frame = PEGBOARD__V1__DELTA__INIT;

    frame.call_id = peg__unconst(delta->call->face.call_id);
    frame.attempt = delta->call->face.attempt;
    frame.stream = delta->stream;
    frame.delta = delta->text;
    remote__prov_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_DELTA, &frame);
}

void remote__prov_delta_free(struct remote__prov_delta *delta)
{
    atomic_fetch_sub(&delta->call->link->n_delta_bytes, delta->n_bytes);
    atomic_fetch_sub(&delta->call->n_delta_bytes, delta->n_bytes);
    remote__prov_call_unref(delta->call);
    peg__free(delta);
}

static struct remote__prov_delta *take_first_delta(struct remote__prov_stream *stream)
{
    struct remote__prov_delta *delta = stream->first_delta;

    stream->first_delta = delta->next;
    if (!delta->next)
        stream->last_delta = NULL;
    delta->call->n_deltas--;
    return delta;
}

/* Sends the first that waits; there is one. */
static void send_delta(struct remote__prov_stream *stream)
{
    struct remote__prov_delta *delta = take_first_delta(stream);
    struct remote__prov_call *call = delta->call;

    if (call->via == stream) {
        send_delta_frame(stream, delta);
        if (!call->n_deltas && call->is_done)
            wait_to_send(call);
    }
    remote__prov_delta_free(delta);
}

static void drop_deltas(struct remote__prov_stream *stream)
{
    while (stream->first_delta)
        remote__prov_delta_free(take_first_delta(stream));
}

void remote__prov_queue_delta(struct remote__prov_delta *delta)
{
    struct remote__prov_stream *stream = delta->call->via;

    if (!stream || !stream->is_welcome || stream->is_broken) {
        remote__prov_delta_free(delta);
        return;
    }
    if (stream->last_delta)
        stream->last_delta->next = delta;
    else
        stream->first_delta = delta;
    stream->last_delta = delta;
    delta->call->n_deltas++;
    remote__prov_pump(stream);
}

/* On the loop. A handler that writes after the result was abandoned, and must not delay it. */
static void take_delta(struct remote__prov_delta *delta)
{
    peg_provider *prov = delta->call->prov;

    if (delta->call->is_done || prov->phase == REMOTE__PROV_ENDED)
        remote__prov_delta_free(delta);
    else
        prov->transport->take_delta(delta);
}

static void on_delta(struct net_message *message)
{
    take_delta((struct remote__prov_delta *)message);
}

/* ---- deltas, on the handler's thread ---- */

static struct remote__prov_delta *make_delta(struct remote__prov_call *call, const char *stream,
                                             peg_str text)
{
    struct remote__prov_delta *delta = peg__alloc(sizeof(*delta) + text.len + 1);

    if (!delta)
        return NULL;
    *delta = (struct remote__prov_delta){.message = {.fn = on_delta},
                                         .call = remote__prov_call_ref(call),
                                         .n_bytes = sizeof(*delta) + text.len,
                                         .text = (char *)(delta + 1)};
    memcpy(delta->stream, stream, strlen(stream) + 1);
    memcpy(delta->text, text.ptr, text.len);
    delta->text[text.len] = '\0';
    atomic_fetch_add(&call->link->n_delta_bytes, delta->n_bytes);
    atomic_fetch_add(&call->n_delta_bytes, delta->n_bytes);
    return delta;
}

static void post_delta(struct remote__prov_delta *delta)
{
    struct remote__prov_link *link = delta->call->link;
    bool is_gone;
    bool is_here;

    pthread_mutex_lock(&link->lock);
    is_gone = !link->loop;
    /* A handler on the loop itself: its result does not wait for messages. */
    is_here = !is_gone && net_loop_is_here(link->loop);
    if (!is_gone && !is_here)
        net_loop_post(link->loop, &delta->message);
    pthread_mutex_unlock(&link->lock);
    if (is_here)
        take_delta(delta);
    else if (is_gone)
        remote__prov_delta_free(delta);
}

/* Two that ask at once may go a little beyond it. */
static bool has_delta_quota(struct remote__prov_call *call, size_t n_bytes)
{
    return atomic_load(&call->link->n_delta_bytes) + n_bytes <= PEG_LIMIT_REMOTE_DELTA_BYTES &&
           atomic_load(&call->n_delta_bytes) + n_bytes <= PEG_LIMIT_REMOTE_CALL_DELTA_BYTES;
}

static bool is_usable(const char *stream, peg_str text)
{
    const size_t len = stream ? strnlen(stream, PEG_LIMIT_REMOTE_STREAM_NAME_BYTES + 1) : 0;

    return len > 0 && len <= PEG_LIMIT_REMOTE_STREAM_NAME_BYTES &&
           peg__utf8_is_valid(peg__strn(stream, len)) && peg__utf8_is_valid(text) &&
           (text.len == 0 || !memchr(text.ptr, '\0', text.len));
}

peg_status peg_provider_delta(peg_call *call, const char *stream, peg_str text)
{
    struct remote__prov_call *found = remote__prov_call_of(call);

    if (!is_usable(stream, text))
        return PEG_EINVAL;
    if (!found)
        return PEG_OK;
    if (!has_delta_quota(found, text.len))
        return PEG_ELIMIT;
    while (text.len) {
        size_t len = text.len;
        struct remote__prov_delta *delta;

        if (len > PEG_LIMIT_REMOTE_CHUNK_BYTES)
            len = peg__utf8_cut(text.ptr, PEG_LIMIT_REMOTE_CHUNK_BYTES);
        delta = make_delta(found, stream, peg__strn(text.ptr, len));
        if (!delta)
            return PEG_ENOMEM;
        post_delta(delta);
        text = peg__str_from(text, len);
    }
    return PEG_OK;
}

/* A call within a call has the same provider above it, and its own caller. */
static peg_status send_own_output(peg_call *call, const char *stream, peg_str text)
{
    const struct remote__prov_call *found = remote__prov_call_of(call);

    if (!found || !peg__str_eq(peg_call_id(call), found->call_id))
        return PEG_OK;
    return peg_provider_delta(call, stream, text);
}

const struct peg__listener remote__prov_listener = {.say = send_own_output};

enum { KEY_BYTES = PEG_LIMIT_ID_BYTES + 16 };

/* "" for an id that no call can have. */
static peg_str make_key(const char *call_id, uint32_t attempt, char ret_key[KEY_BYTES])
{
    const int n = snprintf(ret_key, KEY_BYTES, "%s %" PRIu32, call_id, attempt);

    return peg__strn(ret_key, n > 0 && n < KEY_BYTES ? (size_t)n : 0);
}

static void publish_done(peg_provider *prov)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.n_unacknowledged = prov->n_done;
    pthread_mutex_unlock(&prov->lock);
}

/* Often enough that none is kept for much longer than it should be. */
enum { REVIEWS = 10 };

static void review_later(peg_provider *prov)
{
    net_loop_arm(prov->loop, &prov->review,
                 net_loop_now_ns(prov->loop) + prov->keep_ms * PEG_NS_PER_MS / REVIEWS);
}

/* The gateway has its credit back. Once, however often the result is said after a break. */
static void count_kept(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    if (call->n_kept_bytes)
        return;
    call->n_kept_bytes = sizeof(*call) + call->arena.held + call->outcome.json_len;
    prov->n_kept_bytes += call->n_kept_bytes;
    prov->n_kept++;
    if (!prov->review.is_armed)
        review_later(prov);
}

static void uncount_done(const struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    if (call->n_kept_bytes)
        prov->n_kept--;
    prov->n_kept_bytes -= call->n_kept_bytes;
    prov->n_done--;
    publish_done(prov);
}

/* A result gives the gateway its credit back, and is kept until the Ack: a gateway that keeps to
 * its credits may still let results gather without end. Not by their number, as one that is slow
 * to acknowledge short ones does nothing wrong. Nor does one that lets large results wait here
 * until it has room for them: each of those has its credit. */
static bool keeps_too_much(const peg_provider *prov)
{
    const unsigned n_unsent = prov->n_done - prov->n_kept;

    return prov->n_kept_bytes >= PEG_LIMIT_REMOTE_KEPT_BYTES ||
           n_unsent >= prov->config.concurrency + prov->config.max_queued;
}

/* ---- coming in ---- */

void remote__prov_count_refused(peg_provider *prov, const Pegboard__V1__Call *frame,
                                const char *code)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.n_refused++;
    pthread_mutex_unlock(&prov->lock);
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_CALL_REFUSED,
                                                    .tool = frame->tool,
                                                    .call_id = frame->call_id,
                                                    .caller = frame->caller,
                                                    .code = code});
}

static void reject_call(struct remote__prov_stream *stream, const Pegboard__V1__Call *frame,
                        Pegboard__V1__Nak__Reason reason, const char *code)
{
    remote__prov_send_nak(stream, frame->call_id, frame->attempt, reason);
    remote__prov_count_refused(stream->prov, frame, code);
}

/* A duplicate: not started again; a result that was sent is sent again. */
static void take_duplicate(struct remote__prov_stream *stream, struct remote__prov_call *call)
{
    if (!call->via)
        call->via = stream;
    if (!call->is_done || call->via != stream || call->is_waiting)
        return;
    wait_to_send(call);
    remote__prov_pump(stream);
}

static void finish_call(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    call->is_done = true;
    remote__prov_call_drop_gates(call);
    remote__prov_call_drop_ctx(call);
    if (prov->phase == REMOTE__PROV_ENDED)
        return;
    prov->n_done++;
    publish_done(prov);
    prov->transport->finish(call);
}

void remote__prov_finish_attached(struct remote__prov_call *call)
{
    if (!call->via)
        return;
    wait_to_send(call);
    if (call->via->is_welcome)
        remote__prov_pump(call->via);
}

static void on_call_done(struct net_message *message)
{
    struct remote__prov_call *call = peg__container_of(message, struct remote__prov_call, done);

    finish_call(call);
    remote__prov_call_unref(call); /* the worker's */
}

/* Hands it to a worker, or runs it here; false: the queue is full. */
static bool dispatch_call(struct remote__prov_call *call)
{
    call->done.fn = on_call_done;
    if (!call->prov->config.runs_inline)
        return remote__prov_submit(call);
    remote__prov_run_inline(call);
    finish_call(call);
    return true;
}

bool remote__prov_start_call(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    if (peg__map_add(&prov->calls, call->key, remote__prov_call_ref(call)) == PEG_OK) {
        if (!keeps_too_much(prov) && dispatch_call(call))
            return true;
        peg__map_remove(&prov->calls, call->key, NULL);
    }
    remote__prov_call_unref(call);
    remote__prov_call_drop_ctx(call);
    return false;
}

bool remote__prov_is_recent(const peg_provider *prov, peg_str key)
{
    return peg__map_find(&prov->recent, key);
}

void remote__prov_take(struct remote__prov_stream *stream, const Pegboard__V1__Call *frame)
{
    peg_provider *prov = stream->prov;
    char key_text[KEY_BYTES];
    const peg_str key = make_key(frame->call_id, frame->attempt, key_text);
    struct remote__prov_call *call = peg__map_get(&prov->calls, key);

    if (call) {
        take_duplicate(stream, call);
        return;
    }
    /* It was answered and acknowledged: the gateway has forgotten it. */
    if (remote__prov_is_recent(prov, key))
        return;
    if (stream->is_leaving || prov->is_paused || prov->phase != REMOTE__PROV_SERVING) {
        reject_call(stream, frame, PEGBOARD__V1__NAK__REASON__REASON_DRAINING, "E_PROVIDER_DRAIN");
        return;
    }
    if (remote__prov_make_call(prov, frame, &call)) {
        reject_call(stream, frame, PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED, "E_OVERLOADED");
        return;
    }
    call->via = stream;
    if (!remote__prov_start_call(call))
        reject_call(stream, frame, PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED, "E_OVERLOADED");
    remote__prov_call_unref(call);
}

/* ---- canceled ---- */

struct remote__prov_call *remote__prov_find(peg_provider *prov, const char *call_id,
                                            uint32_t attempt)
{
    char key_text[KEY_BYTES];

    return peg__map_get(&prov->calls, make_key(call_id, attempt, key_text));
}

/* Drops the table's reference. An abandoned handler may keep the call for longer, without a stream:
 * its output goes nowhere. */
static void forget_call(struct remote__prov_call *call)
{
    peg__map_remove(&call->prov->calls, call->key, NULL);
    call->via = NULL;
    remote__prov_call_drop_ctx(call);
    remote__prov_call_unref(call);
}

/* Tells the gateway that the queued call was never started. */
static void nak_call(struct remote__prov_call *call, Pegboard__V1__Nak__Reason reason)
{
    if (call->via && call->via->is_welcome)
        remote__prov_send_nak(call->via, call->face.call_id, call->face.attempt, reason);
    forget_call(call);
}

void remote__prov_cancel(struct remote__prov_stream *stream, const Pegboard__V1__Cancel *frame)
{
    peg_provider *prov = stream->prov;
    struct remote__prov_call *call = remote__prov_find(prov, frame->call_id, frame->attempt);

    if (!call)
        return;
    if (remote__prov_take_back(call)) {
        nak_call(call, PEGBOARD__V1__NAK__REASON__REASON_UNSPECIFIED);
        remote__prov_check_end(prov);
        return;
    }
    if (!call->is_done)
        peg_cancel_fire(call->cancel, frame->reason[0] ? frame->reason : NULL);
}

/* Queued calls first: a worker that becomes free must not begin one. */
void remote__prov_cancel_all(peg_provider *prov, const char *reason)
{
    PEG__MAP_EACH(&prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (remote__prov_take_back(call))
            nak_call(call, PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
    }
    PEG__MAP_EACH(&prov->calls, entry)
    {
        const struct remote__prov_call *call = entry->value;

        if (!call->is_done)
            peg_cancel_fire(call->cancel, reason);
    }
}

void remote__prov_drop_calls(peg_provider *prov)
{
    PEG__MAP_EACH(&prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        /* Until the worker is done, the context is the worker's. */
        if (call->is_done || remote__prov_take_back(call))
            remote__prov_call_drop_ctx(call);
        call->via = NULL;
        remote__prov_call_unref(call);
    }
    peg__map_free(&prov->calls);
    peg__map_free(&prov->recent);
}

/* ---- going out ---- */

/* No delta of the call waits any more. */
static void send_chunk(struct remote__prov_stream *stream, struct remote__prov_call *call)
{
    const struct remote__prov_outcome *outcome = &call->outcome;
    size_t left;
    size_t n;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    Pegboard__V1__ToolError error = PEGBOARD__V1__TOOL_ERROR__INIT;

    if (outcome->is_content && !stream->takes_content)
        remote__prov_outcome_flatten(call);
    left = outcome->json_len - call->n_sent;
    n = left < PEG_LIMIT_REMOTE_CHUNK_BYTES ? left : PEG_LIMIT_REMOTE_CHUNK_BYTES;
    result.call_id = peg__unconst(call->face.call_id);
    result.attempt = call->face.attempt;
    result.is_content = outcome->is_content;
    result.chunk.len = n;
    result.chunk.data = n ? (uint8_t *)outcome->json + call->n_sent : NULL;
    result.more = n < left;
    if (!result.more) {
        error.code = peg__unconst(outcome->code);
        error.message = peg__unconst(outcome->message);
        result.error = outcome->code[0] ? &error : NULL;
        result.server_data = outcome->server_data;
        result.n_server_data = outcome->n_server_data;
    }
    remote__prov_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT, &result);
    call->n_sent += n;
    call->is_sent = !result.more;
}

/* It was not started here: no Ack will come. */
static void nak_outdated(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    uncount_done(call);
    nak_call(call, PEGBOARD__V1__NAK__REASON__REASON_OUTDATED);
    remote__prov_check_end(prov);
}

/* One result after the other, so that chunks of two never mix. */
static void send_result_piece(struct remote__prov_stream *stream)
{
    struct remote__prov_call *call = stream->first_to_send;
    const bool is_outdated = call->outcome.is_outdated;

    if (!is_outdated)
        send_chunk(stream, call);
    if (!is_outdated && !call->is_sent)
        return;
    call->is_waiting = false;
    stream->first_to_send = call->next_to_send;
    if (!stream->first_to_send)
        stream->last_to_send = NULL;
    if (is_outdated)
        nak_outdated(call);
    else
        count_kept(call);
}

/* Deltas and results take turns, so that neither blocks the other. The turn outlasts the pump: one
 * frame may be all that the stream takes at a time. */
void remote__prov_pump(struct remote__prov_stream *stream)
{
    while ((stream->first_delta || stream->first_to_send) && stream->is_welcome &&
           !stream->is_broken && grpc_rpc_is_writable(stream->rpc)) {
        const bool is_delta =
            stream->first_delta && (stream->is_deltas_turn || !stream->first_to_send);

        if (is_delta)
            send_delta(stream);
        else
            send_result_piece(stream);
        stream->is_deltas_turn = !is_delta;
    }
}

static void remember_key(peg_provider *prov, peg_str key)
{
    struct peg__map_entry *oldest;

    if (prov->recent.n == PEG_LIMIT_REMOTE_RECENT) {
        oldest = peg__map_next(&prov->recent, NULL);
        peg__map_remove(&prov->recent, oldest->name, NULL);
    }
    /* Without memory it is forgotten sooner. */
    if (peg__map_add(&prov->recent, key, NULL))
        return;
}

void remote__prov_forget_done(struct remote__prov_call *call)
{
    remember_key(call->prov, call->key);
    uncount_done(call);
    forget_call(call);
}

void remote__prov_acknowledge(peg_provider *prov, const Pegboard__V1__Ack *frame)
{
    struct remote__prov_call *call = remote__prov_find(prov, frame->call_id, frame->attempt);

    /* An Ack before the whole result was sent does not count. */
    if (!call || !call->is_done || call->is_waiting || call->n_deltas)
        return;
    remote__prov_forget_done(call);
    remote__prov_check_end(prov);
}

/* The gateway has had it for long. It would take a call that Hello does not list for one that never
 * arrived, unless a Hello was missed: so one is left out of the count. */
static void drop_kept(struct remote__prov_call *call)
{
    call->prov->n_hellos++;
    remote__prov_forget_done(call);
}

/* Time without a stream does not count: no Ack could have come. */
void remote__prov_review_kept(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, review));

    PEG__MAP_EACH(&prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (call->is_sent && ++call->n_reviews > REVIEWS)
            drop_kept(call);
    }
    if (prov->n_kept)
        review_later(prov);
    remote__prov_check_end(prov);
}

/* ---- from stream to stream ---- */

/* A gateway takes no more calls than the provider has credits. Results without Acks come on top of
 * those; the oldest most likely arrived, are left out, and are just sent again. */
peg_status remote__prov_list_running(peg_provider *prov, struct peg__arena *arena,
                                     Pegboard__V1__Hello *hello)
{
    Pegboard__V1__RunningCall *frames = NULL;
    size_t n_too_many =
        prov->calls.n > PEG_LIMIT_REMOTE_CREDITS ? prov->calls.n - PEG_LIMIT_REMOTE_CREDITS : 0;
    size_t n = 0;

    if (!prov->calls.n)
        return PEG_OK;
    /* Calls that are left out did arrive, and must not be run elsewhere. */
    if (n_too_many)
        hello->number = 0;
    frames = peg__arena_alloc(arena, prov->calls.n * sizeof(*frames));
    hello->running = peg__arena_alloc(arena, prov->calls.n * sizeof(*hello->running));
    if (!frames || !hello->running)
        return PEG_ENOMEM;
    PEG__MAP_EACH(&prov->calls, entry)
    {
        const struct remote__prov_call *call = entry->value;

        if (n_too_many && call->n_kept_bytes) {
            n_too_many--;
            continue;
        }
        pegboard__v1__running_call__init(&frames[n]);
        frames[n].call_id = peg__unconst(call->face.call_id);
        frames[n].attempt = call->face.attempt;
        frames[n].tool = peg__unconst(call->tool.ptr);
        frames[n].route.data = peg__unconst(call->route.ptr);
        frames[n].route.len = call->route.len;
        hello->running[n] = &frames[n];
        n++;
    }
    hello->n_running = n;
    return PEG_OK;
}

void remote__prov_adopt_calls(struct remote__prov_stream *stream)
{
    PEG__MAP_EACH(&stream->prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (call->via)
            continue;
        call->via = stream;
        if (call->is_done)
            wait_to_send(call);
        else
            remote__prov_send_question(call);
    }
    remote__prov_pump(stream);
}

void remote__prov_orphan_calls(struct remote__prov_stream *stream)
{
    struct remote__prov_stream *current = remote__prov_current(stream->prov);
    const bool has_other = current && current != stream && current->is_welcome;

    stream->first_to_send = NULL;
    stream->last_to_send = NULL;
    drop_deltas(stream);
    PEG__MAP_EACH(&stream->prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (call->via != stream)
            continue;
        call->via = NULL;
        call->is_waiting = false;
        call->is_sent = false;
        call->n_sent = 0;
    }
    if (has_other)
        remote__prov_adopt_calls(current);
}
