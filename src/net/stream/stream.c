/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream from its first byte to its end; open.c has its beginning, tls.c what TLS adds,
 * fair_queue.c what waits.
 *
 *   readable  -> net_stream_read, at once or in its job -> deliver_bytes -> on_bytes
 *   a write   -> send at once -> the rest into the queue -> writable -> flush -> on_drained
 *   the end   -> net_stream_fail (reports it to the owner) or net_stream_leave (the owner knows)
 *
 * libuv only watches the socket: a read and a write are one system call each, take no memory, and
 * no write can raise SIGPIPE.
 *
 * The owner may close or drop the stream in any event. Its memory lives until libuv has let the
 * handle go, which never happens within an event, so checking `state` afterwards is enough.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/stream/internal.h"

/* ---- the end ------------------------------------------------------------------------------ */

void net_stream_let_go(struct net_stream *stream)
{
    if (!stream->is_unwatched || stream->is_kept || !net_stream_drop_handshake(stream))
        return;
    net_loop_closed(stream->loop, &stream->open);
    net_tls_free(stream->tls);
    net_tls_config_unref(stream->tls_config);
    peg__buf_free(&stream->queue);
    peg__buf_free(&stream->rest);
    peg__free(stream);
}

static void on_uv_closed(uv_handle_t *handle)
{
    struct net_stream *stream = (struct net_stream *)(void *)handle; /* its first member */

    stream->is_unwatched = true;
    net_stream_let_go(stream);
}

void net_stream_leave(struct net_stream *stream)
{
    if (stream->state == NET_GONE)
        return;
    stream->state = NET_GONE;
    net_loop_disarm(stream->loop, &stream->timer);
    net_loop_not_later(stream->loop, &stream->later);
    net_loop_dequeue(stream->loop, &stream->job);
    net_loop_add_load(stream->loop, -1);
    uv_close((uv_handle_t *)&stream->poll, on_uv_closed);
    close(stream->fd);
    if (stream->on_gone)
        stream->on_gone(stream->on_gone_user);
}

void net_stream_fail(struct net_stream *stream, const peg_error *error)
{
    const bool has_owner = stream->state < NET_ENDING;

    net_stream_leave(stream);
    if (has_owner)
        stream->events.on_closed(stream->user, error);
}

void net_stream_explain(const struct net_stream *stream, int error_number, peg_error *ret_error)
{
    char message[128];

    peg__fail(ret_error, PEG_EIO, "E_STREAM", "the connection with %s %s: %s (%s)", stream->peer,
              stream->reported_open ? "broke" : "could not be opened",
              strerror_r(error_number, message, sizeof(message)), strerrorname_np(error_number));
}

void net_stream_fail_errno(struct net_stream *stream, int error_number)
{
    peg_error error;

    if (error_number)
        net_stream_explain(stream, error_number, &error);
    else
        peg__fail_nomem(&error);
    net_stream_fail(stream, &error);
}

void net_stream_break(struct net_stream *stream, int error_number)
{
    if (stream->state == NET_ENDING) {
        net_stream_leave(stream);
        return;
    }
    stream->state = NET_BROKEN;
    stream->broke = error_number;
    net_loop_later(stream->loop, &stream->later);
}

void net_stream_on_close(struct net_open *open)
{
    struct net_stream *stream = peg__container_of(open, struct net_stream, open);
    peg_error error;

    peg__fail(&error, PEG_ECANCELED, "E_LOOP_ENDED",
              "the connection with %s was closed because its event loop ends", stream->peer);
    net_stream_fail(stream, &error);
}

/* ---- what is watched ---------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

bool net_stream_may_read(const struct net_stream *stream)
{
    switch (stream->state) {
    case NET_HANDSHAKING:
        return !stream->handshake;
    case NET_OPEN:
        return !stream->is_paused;
    case NET_ENDING:
        return !stream->peer_ended;
    default:
        return false;
    }
}

static int wanted_events(const struct net_stream *stream)
{
    const bool reads = net_stream_may_read(stream) && !stream->waits_unseen;
    const int readable = reads ? UV_READABLE : 0;

    switch (stream->state) {
    case NET_CONNECTING:
        return UV_WRITABLE;
    case NET_BROKEN:
    case NET_GONE:
        return 0;
    default:
        return readable | (stream->is_blocked && !stream->handshake ? UV_WRITABLE : 0);
    }
}

void net_stream_watch(struct net_stream *stream)
{
    const int events = wanted_events(stream);

    if (events == stream->watched || stream->state == NET_GONE)
        return;
    stream->watched = events;
    uv_poll_start(&stream->poll, events, on_poll);
}

/* ---- writing ------------------------------------------------------------------------------ */

static peg_str unsent_bytes(const struct net_stream *stream)
{
    if (stream->tls)
        return net_tls_wire(stream->tls);
    return peg__str_from(peg__buf_view(&stream->queue), stream->queue_sent);
}

static void note_bytes_sent(struct net_stream *stream, size_t n)
{
    if (stream->tls) {
        net_tls_took(stream->tls, n);
        return;
    }
    stream->queue_sent += n;
    if (stream->queue_sent < stream->queue.len)
        return;
    /* Given back: most connections never wait, and those that did may not again. */
    peg__buf_free(&stream->queue);
    stream->queue_sent = 0;
}

enum { SHORT_SEND = 4 << 10 }; /* copying costs less than the system call */

/* How many bytes the socket took; less than 0: it broke. */
static ssize_t send_bytes(struct net_stream *stream, const void *bytes, size_t len)
{
    const int64_t from_ns = len <= SHORT_SEND ? net_loop_begin_send(stream->loop) : 0;
    ssize_t n;

    do
        n = send(stream->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (from_ns && n > 0)
        net_loop_note_send(stream->loop, peg__mono_ns() - from_ns);
    if (n >= 0 || errno == EAGAIN || errno == ENOBUFS)
        return n < 0 ? 0 : n;
    net_stream_break(stream, errno);
    return -1;
}

/* After the last byte we send our end, and wait for the peer's: a socket that is closed with unread
 * bytes takes back what was sent last. */
static void continue_ending(struct net_stream *stream)
{
    if (stream->is_blocked)
        return;
    if (!stream->was_shut) {
        stream->was_shut = true;
        shutdown(stream->fd, SHUT_WR);
    }
    if (stream->peer_ended)
        net_stream_leave(stream);
}

void net_stream_flush(struct net_stream *stream)
{
    peg_str out = unsent_bytes(stream);

    while (out.len > 0) {
        const ssize_t n = send_bytes(stream, out.ptr, out.len);

        if (n < 0)
            return;
        note_bytes_sent(stream, (size_t)n);
        if ((size_t)n < out.len)
            break;
        out = unsent_bytes(stream);
    }
    stream->is_blocked = out.len > 0;
    net_stream_watch(stream);
    if (stream->state == NET_ENDING)
        continue_ending(stream);
}

static void flush_writable(struct net_stream *stream)
{
    if (!(wanted_events(stream) & UV_WRITABLE)) /* on_open may just have ended it */
        return;
    net_stream_flush(stream);
    if (stream->state == NET_OPEN && !stream->is_blocked && stream->events.on_drained)
        stream->events.on_drained(stream->user);
}

static peg_status reject_write(const struct net_stream *stream, peg_error *reterr)
{
    peg_error error;

    if (stream->state < NET_OPEN)
        return peg__fail(reterr, PEG_ESTATE, "E_STREAM",
                         "the connection with %s is not open yet: write after on_open",
                         stream->peer);
    if (stream->state > NET_BROKEN)
        return peg__fail(reterr, PEG_ESTATE, "E_STREAM",
                         "the connection with %s was closed: nothing can be written to it",
                         stream->peer);
    net_stream_explain(stream, stream->broke ? stream->broke : ENOMEM, &error);
    if (reterr)
        *reterr = error;
    return PEG_EIO;
}

/* Into the queue; `is_begun`: a part of the same bytes is on its way, so they cannot be refused. */
static peg_status queue_bytes(struct net_stream *stream, const uint8_t *bytes, size_t len,
                              bool is_begun, peg_error *reterr)
{
    struct peg__buf *queue = &stream->queue;

    if (stream->queue_sent > 0) {
        queue->len -= stream->queue_sent;
        memmove(queue->ptr, queue->ptr + stream->queue_sent, queue->len);
        stream->queue_sent = 0;
    }
    peg__buf_add(queue, bytes, len);
    if (queue->status) {
        queue->status = PEG_OK;
        if (is_begun)
            net_stream_break(stream, 0);
        return peg__fail_nomem(reterr);
    }
    stream->is_blocked = true;
    net_stream_watch(stream);
    return PEG_OK;
}

static bool fits_queue(const struct net_stream *stream, size_t len)
{
    const size_t queued = stream->is_blocked ? net_stream_queued(stream) : 0;

    return queued <= stream->max_queue && len <= stream->max_queue - queued;
}

peg_status net_stream_write(struct net_stream *stream, const uint8_t *bytes, size_t len,
                            peg_error *reterr)
{
    ssize_t n = 0;

    if (stream->state != NET_OPEN)
        return reject_write(stream, reterr);
    if (!fits_queue(stream, len))
        return peg__fail(
            reterr, PEG_ELIMIT, "E_SEND_QUEUE_FULL",
            "%s reads too slowly: more than %zu bytes (max_queue) would wait; stop while "
            "the stream is blocked",
            stream->peer, stream->max_queue);
    if (stream->tls)
        return net_stream_tls_write(stream, bytes, len, reterr);
    if (len == 0)
        return PEG_OK;
    if (!stream->is_blocked)
        n = send_bytes(stream, bytes, len);
    if (n < 0)
        return reject_write(stream, reterr);
    if ((size_t)n == len)
        return PEG_OK;
    return queue_bytes(stream, bytes + n, len - (size_t)n, n > 0, reterr);
}

bool net_stream_is_blocked(const struct net_stream *stream)
{
    return stream->is_blocked;
}

size_t net_stream_queued(const struct net_stream *stream)
{
    return unsent_bytes(stream).len;
}

/* ---- reading ------------------------------------------------------------------------------ */

void net_stream_opened(struct net_stream *stream)
{
    net_loop_disarm(stream->loop, &stream->timer);
    stream->state = NET_OPEN;
    net_stream_watch(stream);
    stream->reported_open = true;
    if (stream->events.on_open)
        stream->events.on_open(stream->user);
}

void net_stream_end(struct net_stream *stream)
{
    const bool has_owner = stream->state < NET_ENDING;
    peg_error error;

    stream->peer_ended = true;
    if (stream->state == NET_OPEN && (stream->is_blocked || stream->tls))
        net_stream_close(stream); /* TLS has an end of its own to send */
    else if (stream->state == NET_ENDING && stream->is_blocked)
        net_stream_watch(stream);
    else
        net_stream_leave(stream);
    if (!has_owner)
        return;
    peg__fail(&error, PEG_ECANCELED, "E_STREAM_ENDED", "%s ended the connection", stream->peer);
    stream->events.on_closed(stream->user, &error);
}

static void deliver_bytes(struct net_stream *stream, const uint8_t *bytes, size_t len)
{
    if (stream->state == NET_ENDING ||
        (stream->tls_config && !net_stream_tls_begins(stream, bytes, len)))
        return;
    if (stream->tls || stream->tls_config)
        net_stream_tls_feed(stream, bytes, len);
    else
        stream->events.on_bytes(stream->user, bytes, len);
}

/* `error_number` is 0 if the peer has ended it. */
static void stop_reading(struct net_stream *stream, int error_number)
{
    stream->was_reset |= error_number != 0;
    if (stream->was_reset && net_stream_must_wait(stream))
        net_stream_break(stream, error_number);
    else if (stream->was_reset)
        net_stream_fail_errno(stream, error_number ? error_number : stream->broke);
    else if (net_stream_must_wait(stream))
        net_stream_enqueue_read(stream);
    else
        net_stream_end(stream);
}

/* Bytes for one that ends are discarded in large pieces, and not even copied. */
bool net_stream_read(struct net_stream *stream)
{
    uint8_t *buffer = net_loop_read_buffer(stream->loop);
    const bool is_wanted = stream->state != NET_ENDING;
    const size_t max = is_wanted && stream->max_read ? stream->max_read : NET_READ_BYTES;
    ssize_t n;

    do
        n = recv(stream->fd, buffer, max, MSG_DONTWAIT | (is_wanted ? 0 : MSG_TRUNC));
    while (n < 0 && errno == EINTR);
    if (n > 0 && !is_wanted && (stream->n_unwanted += (size_t)n) > PEG_LIMIT_NET_LINGER_BYTES) {
        net_stream_leave(stream);
        return false;
    }
    if (n > 0) {
        deliver_bytes(stream, buffer, (size_t)n);
        return (size_t)n == max;
    }
    if (n == 0 || errno != EAGAIN)
        stop_reading(stream, n == 0 ? 0 : errno);
    return false;
}

static void read_last(struct net_stream *stream)
{
    for (unsigned i = 0; i < NET_MAX_LAST_READS && net_stream_may_read(stream); i++)
        if (!net_stream_read(stream))
            return;
}

/* ---- events of libuv and the loop --------------------------------------------------------- */

static int error_of(const struct net_stream *stream)
{
    int error_number = 0;
    socklen_t len = sizeof(error_number);

    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error_number, &len) != 0)
        return errno;
    return error_number;
}

static void on_connect_result(struct net_stream *stream)
{
    const int error_number = error_of(stream);

    if (error_number)
        net_stream_fail_errno(stream, error_number);
    else
        net_stream_connected(stream);
}

/* The socket has an error, and libuv watches it no more. What came before can still be read, and
 * reading ends with the reason. */
static void on_socket_error(struct net_stream *stream)
{
    int error_number;

    stream->watched = 0;
    if (stream->state == NET_CONNECTING) {
        on_connect_result(stream);
        return;
    }
    if (!net_stream_must_wait(stream))
        read_last(stream);
    if (stream->state >= NET_ENDING) {
        net_stream_leave(stream);
        return;
    }
    error_number = error_of(stream);
    stop_reading(stream, error_number ? error_number : ECONNRESET);
}

/* One buffer, and then others are next: it may cost its reader milliseconds, and asking the system
 * once more costs a microsecond. */
static void read_or_enqueue(struct net_stream *stream)
{
    if (!net_stream_may_read(stream))
        return;
    if (net_stream_reads_at_once(stream))
        net_stream_read(stream);
    else
        net_stream_enqueue_read(stream);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct net_stream *stream = (struct net_stream *)(void *)poll; /* its first member */

    net_loop_note_event(stream->loop);
    if (status < 0) {
        on_socket_error(stream);
        return;
    }
    if (stream->state == NET_CONNECTING) {
        on_connect_result(stream);
        return;
    }
    if (stream->later.is_waiting && !stream->reported_open && stream->state == NET_OPEN)
        net_stream_opened(stream);
    if (events & UV_WRITABLE)
        flush_writable(stream);
    if (events & UV_READABLE)
        read_or_enqueue(stream);
}

/* A write failed, perhaps because the peer has sent its last bytes and gone: they are read first.
 */
static void report_break(struct net_stream *stream)
{
    const int error_number = stream->broke;

    if (error_number && !stream->is_paused && stream->reported_open) {
        stream->state = NET_OPEN;
        read_last(stream);
        if (stream->state >= NET_ENDING)
            return;
    }
    net_stream_fail_errno(stream, error_number);
}

void net_stream_on_later(struct net_later *later)
{
    struct net_stream *stream = peg__container_of(later, struct net_stream, later);

    if (stream->state == NET_BROKEN && net_stream_must_wait(stream))
        net_stream_enqueue(stream);
    else if (stream->state == NET_BROKEN)
        report_break(stream);
    else if (stream->state == NET_HANDSHAKING && stream->tls)
        net_stream_handshake(stream);
    else if (stream->state == NET_OPEN && !stream->reported_open)
        net_stream_opened(stream);
    else if (stream->state == NET_OPEN && stream->tls && !stream->is_paused)
        net_stream_tls_deliver(stream);
}

/* ---- the owner's side --------------------------------------------------------------------- */

void net_stream_set_events(struct net_stream *stream, const struct net_stream_events *events,
                           void *user)
{
    stream->events = *events;
    stream->user = user;
}

void net_stream_set_max_read(struct net_stream *stream, size_t max)
{
    stream->max_read = max < NET_READ_BYTES ? max : 0;
}

void net_stream_pause(struct net_stream *stream)
{
    if (stream->is_paused)
        return;
    stream->is_paused = true;
    net_stream_watch(stream);
}

void net_stream_resume(struct net_stream *stream)
{
    if (!stream->is_paused)
        return;
    stream->is_paused = false;
    net_stream_watch(stream);
    if (stream->state != NET_OPEN)
        return;
    stream->has_plain |= stream->tls && stream->fair_queue != NET_NO_FAIR_QUEUE;
    if (stream->has_plain || stream->rest.len > 0 || stream->waits_unseen)
        net_stream_enqueue(stream);
    else if (stream->tls)
        net_loop_later(stream->loop, &stream->later);
}

void net_stream_close(struct net_stream *stream)
{
    if (stream->state >= NET_ENDING)
        return;
    if (stream->state != NET_OPEN) {
        net_stream_leave(stream);
        return;
    }
    stream->state = NET_ENDING;
    net_loop_not_later(stream->loop, &stream->later);
    net_loop_arm(stream->loop, &stream->timer,
                 peg__clock_after_ms(net_loop_now_ns(stream->loop), stream->linger_ms));
    if (stream->tls)
        net_tls_shutdown(stream->tls);
    net_stream_flush(stream);
}

void net_stream_drop(struct net_stream *stream)
{
    net_stream_leave(stream);
}

void net_stream_keep(struct net_stream *stream)
{
    stream->is_kept = true;
}

void net_stream_forget(struct net_stream *stream)
{
    stream->is_kept = false;
    net_stream_let_go(stream);
}

struct net_loop *net_stream_loop(const struct net_stream *stream)
{
    return stream->loop;
}

const char *net_stream_peer(const struct net_stream *stream)
{
    return stream->peer;
}

bool net_stream_is_local(const struct net_stream *stream)
{
    return stream->is_local;
}

bool net_stream_unix_uid(const struct net_stream *stream, uid_t *ret_uid)
{
    if (stream->unix_uid == (uid_t)-1)
        return false;
    *ret_uid = stream->unix_uid;
    return true;
}

const struct net_tls *net_stream_tls(const struct net_stream *stream)
{
    return stream->tls;
}
