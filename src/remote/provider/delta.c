/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a handler says while it works. A delta is a message to the loop, and waits at the stream
 * while that takes nothing; the result of its call comes behind it. Nobody waits for a delta that
 * has nowhere to go.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "json/json.h"

/* Owned by whoever has it: the handler, the mailbox, the stream. */
struct remote__prov_delta {
    struct net_message message;
    struct remote__prov_delta *next;
    struct remote__prov_call *call;
    size_t n_bytes; /* all that it takes: many short ones are not little */
    char *text;
    char stream[PEG_LIMIT_REMOTE_STREAM_NAME_BYTES + 1];
};

static void say_delta(struct remote__prov_stream *stream, struct remote__prov_delta *delta)
{
    Pegboard__V1__Delta frame = PEGBOARD__V1__DELTA__INIT;
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    frame.call_id = peg__unconst(delta->call->face.call_id);
    frame.attempt = delta->call->face.attempt;
    frame.stream = delta->stream;
    frame.delta = delta->text;
    request.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_DELTA;
    request.delta = &frame;
    remote__prov_send(stream, &request);
}

static void free_delta(struct remote__prov_delta *delta)
{
    atomic_fetch_sub(&delta->call->link->n_delta_bytes, delta->n_bytes);
    atomic_fetch_sub(&delta->call->n_delta_bytes, delta->n_bytes);
    remote__prov_call_unref(delta->call);
    peg__free(delta);
}

static struct remote__prov_delta *take_first(struct remote__prov_stream *stream)
{
    struct remote__prov_delta *delta = stream->first_delta;

    stream->first_delta = delta->next;
    if (!delta->next)
        stream->last_delta = NULL;
    delta->call->n_deltas--;
    return delta;
}

void remote__prov_send_delta(struct remote__prov_stream *stream)
{
    struct remote__prov_delta *delta = take_first(stream);
    struct remote__prov_call *call = delta->call;

    if (call->via == stream) {
        say_delta(stream, delta);
        if (!call->n_deltas)
            remote__prov_follow_deltas(call);
    }
    free_delta(delta);
}

void remote__prov_drop_deltas(struct remote__prov_stream *stream)
{
    while (stream->first_delta)
        free_delta(take_first(stream));
}

/* On the loop. Who talks on behind the result was abandoned, and must not hold it up. */
static void deliver(struct remote__prov_delta *delta)
{
    struct remote__prov_stream *stream = delta->call->via;

    if (!stream || !stream->is_welcome || stream->is_broken || delta->call->is_done) {
        free_delta(delta);
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

static void on_delta(struct net_message *message)
{
    deliver((struct remote__prov_delta *)message);
}

/* ---- on the handler's thread ---------------------------------------------------------------- */

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

static void post(struct remote__prov_delta *delta)
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
        deliver(delta);
    else if (is_gone)
        free_delta(delta);
}

/* Two that ask at once may go a little beyond it. */
static bool has_room(struct remote__prov_call *call, size_t n_bytes)
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
    if (!has_room(found, text.len))
        return PEG_ELIMIT;
    while (text.len) {
        size_t len = text.len;
        struct remote__prov_delta *delta;

        if (len > PEG_LIMIT_REMOTE_CHUNK_BYTES)
            len = peg__utf8_cut(text.ptr, PEG_LIMIT_REMOTE_CHUNK_BYTES);
        delta = make_delta(found, stream, peg__strn(text.ptr, len));
        if (!delta)
            return PEG_ENOMEM;
        post(delta);
        text = peg__str_from(text, len);
    }
    return PEG_OK;
}

/* A call within a call has the same provider above it, and its own caller. */
static peg_status say_of_own(peg_call *call, const char *stream, peg_str text)
{
    const struct remote__prov_call *found = remote__prov_call_of(call);

    if (!found || !peg__str_eq(peg_call_id(call), found->call_id))
        return PEG_OK;
    return peg_provider_delta(call, stream, text);
}

const struct peg__listener remote__prov_listener = {.say = say_of_own};
