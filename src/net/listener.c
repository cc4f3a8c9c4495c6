/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accepting connections and handing them out.
 *
 *   net_listen -> (acceptor's loop) on_start_accepting -> on_acceptable -> accept_next -> hand_over
 *              -> (the chosen loop) on_handed_over -> take_handed -> serve_connection -> on_stream
 *   net_listener_free -> (acceptor's loop) stop_accepting
 *
 * A listener is counted: by its owner, by its acceptor, by each connection on its way to a loop,
 * and by each that is open, because the end of a connection may let another one in.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/listener.h"
#include "net/stream/internal.h"

/* How long nothing is accepted when the system has no room for another connection. */
enum { RETRY_MS = 100, DEFAULT_UNIX_MODE = 0600 };

struct net_listener {
    atomic_uint n_refs;
    struct net_loops *loops;
    struct net_listener_options options;
    net_accept_fn on_stream;
    void *user;
    struct net_address address;

    /* The acceptor's, on its loop. */
    struct net_loop *loop;
    struct net_listening listening;
    uv_poll_t poll;
    struct net_fair_job job; /* accepts one */
    struct net_timer retry;
    struct net_open open;
    bool is_failure_logged; /* since the last connection */

    struct net_message to_start;
    struct net_message to_stop;
    struct net_message to_resume;
    atomic_bool is_resuming; /* to_resume is on its way */

    atomic_bool is_full;
    atomic_size_t n_connections;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping; /* on_stream is not called any more */
    bool is_off;      /* nothing is accepted any more */
    size_t n_handed;  /* connections on their way to a loop */
    size_t n_expected;
};

/* A connection on its way to its loop. Owned by the message, then by the job. */
struct handed {
    struct net_message message;
    struct net_fair_job job;
    struct net_listener *listener;
    struct net_loop *loop;
    int fd;
};

static void drop_ref(struct net_listener *listener)
{
    if (!peg__refs_drop(&listener->n_refs))
        return;
    net_listening_expect_no_more(listener->n_expected);
    net_tls_config_unref(listener->options.stream.tls);
    pthread_cond_destroy(&listener->changed);
    pthread_mutex_destroy(&listener->lock);
    peg__free(listener);
}

/* ---- a connection on its loop --------------------------------------------------------------- */

static void ignore_bytes(void *user, const uint8_t *bytes, size_t len)
{
    (void)user;
    (void)bytes;
    (void)len;
}

static void ignore_closed(void *user, const peg_error *error)
{
    (void)user;
    (void)error;
}

static const struct net_stream_events no_events = {
    .on_bytes = ignore_bytes,
    .on_closed = ignore_closed,
};

/* On the loop of the connection. The two atomics are in the opposite order in accept_one(), so
 * that one of both sees what the other did. */
static void on_connection_gone(void *user)
{
    struct net_listener *listener = (struct net_listener *)user;

    atomic_fetch_sub(&listener->n_connections, 1);
    if (!atomic_load(&listener->is_full) || atomic_exchange(&listener->is_resuming, true)) {
        drop_ref(listener);
        return;
    }
    net_loop_post(listener->loop, &listener->to_resume); /* with our reference */
}

/* Takes fd, and a reference that the connection keeps. */
static void serve_connection(struct net_listener *listener, struct net_loop *loop, int fd)
{
    struct net_stream *stream;
    peg_error error;
    const peg_status status =
        net_stream_take(loop, fd, &listener->options.stream, &no_events, NULL, &stream, &error);

    if (status) {
        /* A peer that is gone already could fill the log. */
        peg__log(status == PEG_EIO ? PEG_LOG_DEBUG : PEG_LOG_WARN, error.code,
                 "a connection was dropped: %s", error.message);
        on_connection_gone(listener);
        return;
    }
    stream->on_gone = on_connection_gone;
    stream->on_gone_user = listener;
    listener->on_stream(listener->user, stream);
}

static bool is_stopping(struct net_listener *listener)
{
    bool is;

    pthread_mutex_lock(&listener->lock);
    is = listener->is_stopping;
    pthread_mutex_unlock(&listener->lock);
    return is;
}

static void take_handed(struct net_fair_job *job)
{
    struct handed *handed = peg__container_of(job, struct handed, job);
    struct net_listener *listener = handed->listener;

    peg__refs_take(&listener->n_refs); /* serve_connection() may give the other one back */
    net_loop_add_load(handed->loop, -1);
    if (is_stopping(listener) || net_loop_is_ending(handed->loop)) {
        close(handed->fd);
        on_connection_gone(listener);
    } else {
        serve_connection(listener, handed->loop, handed->fd);
    }
    pthread_mutex_lock(&listener->lock);
    listener->n_handed--;
    pthread_cond_broadcast(&listener->changed);
    pthread_mutex_unlock(&listener->lock);
    net_loop_dequeue(handed->loop, job);
    peg__free(handed);
    drop_ref(listener);
}

static void on_handed_over(struct net_message *message)
{
    struct handed *handed = (struct handed *)(void *)message; /* its first member */

    net_loop_enqueue(handed->loop, &handed->job);
}

/* ---- accepting ------------------------------------------------------------------------------ */

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void watch(struct net_listener *listener, bool is_wanted)
{
    if (is_wanted)
        uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    else
        uv_poll_stop(&listener->poll);
}

static void pause_accepting(struct net_listener *listener, int error)
{
    char text[NET_ADDRESS_TEXT];
    char message[128];

    watch(listener, false);
    net_loop_arm(listener->loop, &listener->retry,
                 peg__clock_after_ms(net_loop_now_ns(listener->loop), RETRY_MS));
    if (listener->is_failure_logged)
        return;
    listener->is_failure_logged = true;
    net_address_format(&listener->address, text);
    peg__log(PEG_LOG_ERROR, "E_LISTEN",
             "%s accepts no connections for now: %s; allow more descriptors (ulimit -n) or fewer "
             "connections (max_connections)",
             text, strerror_r(error, message, sizeof(message)));
}

static void on_retry_accepting(struct net_timer *timer)
{
    watch(peg__container_of(timer, struct net_listener, retry), true);
}

/* Takes fd. */
static void hand_over(struct net_listener *listener, int fd)
{
    struct net_loop *loop = net_loops_least(listener->loops);
    struct handed *handed;

    atomic_fetch_add(&listener->n_connections, 1);
    peg__refs_take(&listener->n_refs);
    if (loop == listener->loop) {
        serve_connection(listener, loop, fd);
        return;
    }
    handed = (struct handed *)peg__alloc_zero(1, sizeof(*handed));
    if (!handed) {
        close(fd);
        on_connection_gone(listener);
        return;
    }
    handed->message.fn = on_handed_over;
    handed->job.fn = take_handed;
    handed->listener = listener;
    handed->loop = loop;
    handed->fd = fd;
    pthread_mutex_lock(&listener->lock);
    listener->n_handed++;
    pthread_mutex_unlock(&listener->lock);
    net_loop_add_load(loop, 1); /* so that many at once are not sent to one loop */
    net_loop_post(loop, &handed->message);
}

static bool has_all_connections(struct net_listener *listener)
{
    const size_t max = listener->options.max_connections;

    if (atomic_load(&listener->n_connections) < max)
        return false;
    atomic_store(&listener->is_full, true);
    if (atomic_load(&listener->n_connections) >= max)
        return true;
    atomic_store(&listener->is_full, false); /* one has just ended */
    return false;
}

/* An error of one connection, such as a reset (see accept(2)). After others, which are the
 * system's, trying again at once would only burn the processor. */
static bool is_connection_error(int error)
{
    static const int theirs[] = {EINTR,    ECONNABORTED, ECONNRESET, EPROTO,
                                 ENETDOWN, ENETUNREACH,  EHOSTDOWN,  EHOSTUNREACH,
                                 ENONET,   ENOPROTOOPT,  ETIMEDOUT};

    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
        if (error == theirs[i])
            return true;
    return false;
}

/* True if there may be another one now. */
static bool accept_one(struct net_listener *listener)
{
    int fd;

    if (has_all_connections(listener)) {
        watch(listener, false);
        return false;
    }
    fd = accept4(listener->listening.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        listener->is_failure_logged = false;
        hand_over(listener, fd);
        return true;
    }
    if (is_connection_error(errno))
        return true;
    if (errno != EAGAIN)
        pause_accepting(listener, errno);
    return false;
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct net_listener *listener = peg__container_of(poll, struct net_listener, poll);

    (void)events;
    if (status < 0) {
        pause_accepting(listener, -status);
        return;
    }
    net_loop_enqueue(listener->loop, &listener->job);
}

static void accept_next(struct net_fair_job *job)
{
    struct net_listener *listener = peg__container_of(job, struct net_listener, job);

    if (accept_one(listener))
        net_loop_enqueue(listener->loop, job);
}

static void on_resume(struct net_message *message)
{
    struct net_listener *listener = peg__container_of(message, struct net_listener, to_resume);

    atomic_store(&listener->is_resuming, false);
    if (atomic_exchange(&listener->is_full, false) && !listener->is_off &&
        !listener->retry.is_armed)
        watch(listener, true);
    drop_ref(listener);
}

/* ---- beginning and end, on the acceptor's loop ----------------------------------------------- */

static void report_off(struct net_listener *listener)
{
    net_listening_close(&listener->listening);
    pthread_mutex_lock(&listener->lock);
    listener->is_off = true;
    listener->is_stopping = true;
    pthread_cond_broadcast(&listener->changed);
    pthread_mutex_unlock(&listener->lock);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct net_listener *listener = peg__container_of(handle, struct net_listener, poll);

    net_loop_closed(listener->loop, &listener->open);
    drop_ref(listener);
}

static void stop_accepting(struct net_listener *listener)
{
    if (listener->is_off)
        return;
    net_loop_disarm(listener->loop, &listener->retry);
    net_loop_dequeue(listener->loop, &listener->job);
    uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
    report_off(listener);
}

static void on_open_close(struct net_open *open)
{
    stop_accepting(peg__container_of(open, struct net_listener, open));
}

static void on_stop(struct net_message *message)
{
    struct net_listener *listener = peg__container_of(message, struct net_listener, to_stop);

    stop_accepting(listener);
    drop_ref(listener);
}

static void on_start_accepting(struct net_message *message)
{
    struct net_listener *listener = peg__container_of(message, struct net_listener, to_start);
    const int error =
        uv_poll_init(net_loop_uv(listener->loop), &listener->poll, listener->listening.fd);

    if (error) {
        peg__log(PEG_LOG_ERROR, "E_LISTEN", "a listener cannot be watched: %s", uv_strerror(error));
        report_off(listener);
        drop_ref(listener);
        return;
    }
    net_loop_opened(listener->loop, &listener->open);
    watch(listener, true);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static void fill_options(struct net_listener *listener, const struct net_listener_options *options)
{
    if (options)
        listener->options = *options;
    if (!listener->options.max_connections)
        listener->options.max_connections = PEG_LIMIT_NET_CONNECTIONS;
    listener->options.stream.tls_host = NULL;
    if (listener->options.stream.tls)
        net_tls_config_ref(listener->options.stream.tls);
}

static struct net_listener *make_listener(struct net_loops *loops,
                                          const struct net_listener_options *options,
                                          net_accept_fn on_stream, void *user)
{
    struct net_listener *listener = (struct net_listener *)peg__alloc_zero(1, sizeof(*listener));

    if (!listener)
        return NULL;
    atomic_init(&listener->n_refs, 1);
    listener->loops = loops;
    listener->loop = net_loops_at(loops, 0);
    fill_options(listener, options);
    listener->on_stream = on_stream;
    listener->user = user;
    listener->job.fn = accept_next;
    listener->retry.fn = on_retry_accepting;
    listener->open.close = on_open_close;
    listener->to_start.fn = on_start_accepting;
    listener->to_stop.fn = on_stop;
    listener->to_resume.fn = on_resume;
    pthread_mutex_init(&listener->lock, NULL);
    pthread_cond_init(&listener->changed, NULL);
    return listener;
}

/* `status` of opening the socket: on failure the listener is freed. */
static peg_status start_listener(struct net_listener *listener, peg_status status,
                                 const struct net_listening *listening,
                                 struct net_listener **ret_listener)
{
    if (status) {
        drop_ref(listener);
        return status;
    }
    net_listening_expect(listening, listener->options.max_connections);
    listener->n_expected = listener->options.max_connections;
    listener->listening = *listening;
    listener->address = listening->address;
    peg__refs_take(&listener->n_refs); /* the acceptor's */
    net_loop_post(listener->loop, &listener->to_start);
    *ret_listener = listener;
    return PEG_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the contract has seven parameters */
peg_status net_listen(struct net_loops *loops, const struct net_address *address,
                      const struct net_listener_options *options, net_accept_fn on_stream,
                      void *user, struct net_listener **ret_listener, peg_error *reterr)
{
    const int backlog = options && options->backlog ? options->backlog : PEG_LIMIT_NET_BACKLOG;
    const mode_t mode = options && options->unix_mode ? options->unix_mode : DEFAULT_UNIX_MODE;
    struct net_listener *listener = make_listener(loops, options, on_stream, user);
    struct net_listening listening;

    if (!listener)
        return peg__fail_nomem(reterr);
    return start_listener(listener, net_listening_open(address, backlog, mode, &listening, reterr),
                          &listening, ret_listener);
}

/* NOLINTNEXTLINE(readability-function-size): the contract has seven parameters */
peg_status net_listen_on(struct net_loops *loops, int fd,
                         const struct net_listener_options *options, net_accept_fn on_stream,
                         void *user, struct net_listener **ret_listener, peg_error *reterr)
{
    struct net_listener *listener = make_listener(loops, options, on_stream, user);
    struct net_listening listening;

    if (!listener)
        return peg__fail_nomem(reterr);
    return start_listener(listener, net_listening_adopt(fd, &listening, reterr), &listening,
                          ret_listener);
}

peg_status net_listen_try(const struct net_address *address, peg_error *reterr)
{
    struct net_listening taken;
    const peg_status status =
        net_listening_open(address, NET_BACKLOG_NONE, DEFAULT_UNIX_MODE, &taken, reterr);

    if (!status)
        net_listening_close(&taken);
    return status;
}

struct net_listener *net_listener_free(struct net_listener *listener)
{
    if (!listener)
        return NULL;
    pthread_mutex_lock(&listener->lock);
    listener->is_stopping = true;
    if (!listener->is_off) {
        peg__refs_take(&listener->n_refs);
        net_loop_post(listener->loop, &listener->to_stop);
    }
    while (!listener->is_off || listener->n_handed > 0)
        pthread_cond_wait(&listener->changed, &listener->lock);
    pthread_mutex_unlock(&listener->lock);
    drop_ref(listener);
    return NULL;
}

const struct net_address *net_listener_address(const struct net_listener *listener)
{
    return &listener->address;
}

size_t net_listener_n_connections(const struct net_listener *listener)
{
    return atomic_load(&listener->n_connections);
}
