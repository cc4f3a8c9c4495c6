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

enum { KEY_BYTES = PEG_LIMIT_ID_BYTES + 16 };

/* "" for an id that no call can have. */
static peg_str make_key(const char *call_id, uint32_t attempt, char ret_key[KEY_BYTES])
{
    const int n = snprintf(ret_key, KEY_BYTES, "%s %" PRIu32, call_id, attempt);

    return peg__strn(ret_key, n > 0 && n < KEY_BYTES ? (size_t)n : 0);
}

static void tell_done(peg_provider *prov)
{
    pthread_mutex_lock(&prov->lock);
    prov->state.n_unacknowledged = prov->n_done;
    pthread_mutex_unlock(&prov->lock);
}

static void count_done(peg_provider *prov)
{
    prov->n_done++;
    tell_done(prov);
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
    tell_done(prov);
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

/* ---- coming in ---------------------------------------------------------------------------------
 */

static void tell_refused(peg_provider *prov, const Pegboard__V1__Call *frame, const char *code)
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

static void say_nak(struct remote__prov_stream *stream, const char *call_id, uint32_t attempt,
                    Pegboard__V1__Nak__Reason reason)
{
    Pegboard__V1__Nak nak = PEGBOARD__V1__NAK__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    nak.call_id = peg__unconst(call_id);
    nak.attempt = attempt;
    nak.reason = reason;
    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_NAK;
    request.nak = &nak;
    remote__prov_send(stream, &request);
}

/* Behind its own deltas, and nobody else's: the last of them asks again. */
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

/* One that is here already. It is not started again; if it was through, it is said again. */
static void take_again(struct remote__prov_stream *stream, struct remote__prov_call *call)
{
    if (!call->via)
        call->via = stream;
    if (!call->is_done || call->via != stream || call->is_waiting)
        return;
    wait_to_send(call);
    remote__prov_pump(stream);
}

static void start(struct remote__prov_stream *stream, struct remote__prov_call *call)
{
    peg_provider *prov = stream->prov;

    call->via = stream;
    if (peg__map_add(&prov->calls, call->key, remote__prov_call_ref(call)) == PEG_OK) {
        if (!keeps_too_much(prov) && remote__prov_submit(call))
            return;
        peg__map_remove(&prov->calls, call->key, NULL);
    }
    remote__prov_call_unref(call);
    remote__prov_call_drop_ctx(call);
    say_nak(stream, call->face.call_id, call->face.attempt,
            PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
    pthread_mutex_lock(&prov->lock);
    prov->state.n_refused++;
    pthread_mutex_unlock(&prov->lock);
    remote__prov_notify(prov, &(peg_provider_event){.kind = PEG_PROVIDER_CALL_REFUSED,
                                                    .tool = call->tool.ptr,
                                                    .call_id = call->face.call_id,
                                                    .caller = call->face.caller,
                                                    .code = "E_PROVIDER_FULL"});
}

void remote__prov_take(struct remote__prov_stream *stream, const Pegboard__V1__Call *frame)
{
    peg_provider *prov = stream->prov;
    char key_text[KEY_BYTES];
    const peg_str key = make_key(frame->call_id, frame->attempt, key_text);
    struct remote__prov_call *call = peg__map_get(&prov->calls, key);

    if (call) {
        take_again(stream, call);
        return;
    }
    /* It was answered, and that was heard: who asks again has forgotten it. */
    if (peg__map_find(&prov->recent, key))
        return;
    if (stream->is_leaving || prov->phase != REMOTE__PROV_SERVING) {
        say_nak(stream, frame->call_id, frame->attempt, PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
        tell_refused(prov, frame, "E_PROVIDER_DRAINS");
        return;
    }
    if (remote__prov_call_new(prov, frame, &call)) {
        say_nak(stream, frame->call_id, frame->attempt,
                PEGBOARD__V1__NAK__REASON__REASON_OVERLOADED);
        tell_refused(prov, frame, "E_PROVIDER_MEMORY");
        return;
    }
    start(stream, call);
    remote__prov_call_unref(call);
}

/* ---- canceled ----------------------------------------------------------------------------------
 */

/* The table's part of it. A handler that was abandoned may have the call for longer: nobody would
 * tell it that the stream is gone, and nobody hears what it says. */
static void forget(struct remote__prov_call *call)
{
    peg__map_remove(&call->prov->calls, call->key, NULL);
    call->via = NULL;
    remote__prov_call_drop_ctx(call);
    remote__prov_call_unref(call);
}

/* What waits here was never started, and the gateway may know that. */
static void give_back(struct remote__prov_call *call, Pegboard__V1__Nak__Reason reason)
{
    if (call->via && call->via->is_welcome)
        say_nak(call->via, call->face.call_id, call->face.attempt, reason);
    forget(call);
}

void remote__prov_cancel(struct remote__prov_stream *stream, const Pegboard__V1__Cancel *frame)
{
    peg_provider *prov = stream->prov;
    char key_text[KEY_BYTES];
    struct remote__prov_call *call =
        peg__map_get(&prov->calls, make_key(frame->call_id, frame->attempt, key_text));

    if (!call)
        return;
    if (remote__prov_take_back(call)) {
        give_back(call, PEGBOARD__V1__NAK__REASON__REASON_UNSPECIFIED);
        remote__prov_check_end(prov);
        return;
    }
    if (!call->is_done)
        peg_cancel_fire(call->cancel, frame->reason[0] ? frame->reason : NULL);
}

/* First what waits: a worker that is set free must not begin with it. */
void remote__prov_cancel_all(peg_provider *prov, const char *reason)
{
    PEG__MAP_EACH(&prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (remote__prov_take_back(call))
            give_back(call, PEGBOARD__V1__NAK__REASON__REASON_DRAINING);
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

        /* Before the worker that runs it has come back, the context is the worker's. */
        if (call->is_done || remote__prov_take_back(call))
            remote__prov_call_drop_ctx(call);
        call->via = NULL;
        remote__prov_call_unref(call);
    }
    peg__map_free(&prov->calls);
    peg__map_free(&prov->recent);
}

/* ---- going out ---------------------------------------------------------------------------------
 */

void remote__prov_finish_call(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    call->is_done = true;
    remote__prov_call_drop_ctx(call);
    if (prov->phase == REMOTE__PROV_ENDED)
        return;
    count_done(prov);
    if (!call->via)
        return;
    wait_to_send(call);
    if (call->via->is_welcome)
        remote__prov_pump(call->via);
}

void remote__prov_follow_deltas(struct remote__prov_call *call)
{
    if (call->is_done)
        wait_to_send(call);
}

static void say_chunk(struct remote__prov_stream *stream, struct remote__prov_call *call)
{
    const struct remote__prov_outcome *outcome = &call->outcome;
    const size_t left = outcome->json_len - call->n_sent;
    const size_t n = left < PEG_LIMIT_REMOTE_CHUNK_BYTES ? left : PEG_LIMIT_REMOTE_CHUNK_BYTES;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    Pegboard__V1__ToolError error = PEGBOARD__V1__TOOL_ERROR__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    result.call_id = peg__unconst(call->face.call_id);
    result.attempt = call->face.attempt;
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
    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT;
    request.result = &result;
    remote__prov_send(stream, &request);
    call->n_sent += n;
    call->is_sent = !result.more;
}

/* It was not started, and is another's now: nothing of it will be acknowledged. */
static void give_back_done(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    uncount_done(call);
    give_back(call, PEGBOARD__V1__NAK__REASON__REASON_OUTDATED);
    remote__prov_check_end(prov);
}

/* One result after the other: chunks of two never mix, which is simplest for whoever reads. */
static void send_piece(struct remote__prov_stream *stream)
{
    struct remote__prov_call *call = stream->first_to_send;
    const bool is_outdated = call->outcome.is_outdated;

    if (!is_outdated)
        say_chunk(stream, call);
    if (!is_outdated && !call->is_sent)
        return;
    call->is_waiting = false;
    stream->first_to_send = call->next_to_send;
    if (!stream->first_to_send)
        stream->last_to_send = NULL;
    if (is_outdated)
        give_back_done(call);
    else
        count_kept(call);
}

/* In turn, so that neither who talks without end nor a long result keeps the other waiting. Whose
 * turn it is outlasts the pump: one frame may be all that the stream takes at a time. */
void remote__prov_pump(struct remote__prov_stream *stream)
{
    while ((stream->first_delta || stream->first_to_send) && stream->is_welcome &&
           !stream->is_broken && grpc_rpc_is_writable(stream->rpc)) {
        const bool is_delta =
            stream->first_delta && (stream->is_deltas_turn || !stream->first_to_send);

        if (is_delta)
            remote__prov_send_delta(stream);
        else
            send_piece(stream);
        stream->is_deltas_turn = !is_delta;
    }
}

static void remember(peg_provider *prov, peg_str key)
{
    struct peg__map_entry *oldest;

    if (prov->recent.n == PEG_LIMIT_REMOTE_RECENT) {
        oldest = peg__map_next(&prov->recent, NULL);
        peg__map_remove(&prov->recent, oldest->name, NULL);
    }
    /* Without memory it is forgotten sooner: nobody should ask. */
    if (peg__map_add(&prov->recent, key, NULL))
        return;
}

void remote__prov_acknowledge(peg_provider *prov, const Pegboard__V1__Ack *frame)
{
    char key_text[KEY_BYTES];
    struct remote__prov_call *call =
        peg__map_get(&prov->calls, make_key(frame->call_id, frame->attempt, key_text));

    /* An Ack for what was not said in full is none. */
    if (!call || !call->is_done || call->is_waiting || call->n_deltas)
        return;
    remember(prov, call->key);
    uncount_done(call);
    forget(call);
    remote__prov_check_end(prov);
}

/* The gateway has had it for long. What is not listed never came, unless a Hello was missed: so one
 * is left out of the count, as if it had been said to somebody else. */
static void keep_no_longer(struct remote__prov_call *call)
{
    peg_provider *prov = call->prov;

    prov->n_hellos++;
    remember(prov, call->key);
    uncount_done(call);
    forget(call);
}

/* The time without a stream does not count: nobody could have acknowledged it. */
void remote__prov_review_kept(struct net_timer *timer)
{
    peg_provider *prov = (peg_provider *)((char *)timer - offsetof(peg_provider, review));

    PEG__MAP_EACH(&prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (call->is_sent && ++call->n_reviews > REVIEWS)
            keep_no_longer(call);
    }
    if (prov->n_kept)
        review_later(prov);
    remote__prov_check_end(prov);
}

/* ---- from stream to stream ---------------------------------------------------------------------
 */

/* A gateway takes no list that is longer than the credits of a provider. Results that wait for
 * their Acks come on top of those; the oldest were most likely heard, and are just said again. */
peg_status remote__prov_list_running(peg_provider *prov, struct peg__arena *arena,
                                     Pegboard__V1__Hello *hello)
{
    Pegboard__V1__RunningCall *frames = NULL;
    size_t n_too_many =
        prov->calls.n > PEG_LIMIT_REMOTE_CREDITS ? prov->calls.n - PEG_LIMIT_REMOTE_CREDITS : 0;
    size_t n = 0;

    if (!prov->calls.n)
        return PEG_OK;
    /* What is not listed did arrive, and must not be run elsewhere. */
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
    }
    remote__prov_pump(stream);
}

void remote__prov_orphan_calls(struct remote__prov_stream *stream)
{
    struct remote__prov_stream *current = remote__prov_current(stream->prov);
    const bool has_other = current && current != stream && current->is_welcome;

    stream->first_to_send = NULL;
    stream->last_to_send = NULL;
    remote__prov_drop_deltas(stream);
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
