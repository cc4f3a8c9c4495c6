/* SPDX-License-Identifier: Apache-2.0 */

/* The whole handshake goes out at once. The first reply that is wrong decides; the back-off counts
 * from the beginning of an attempt, so a connection that stood for long is made again at once. */

#include "bus/redis/session.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/client/client.h"

enum { MIN_MAJOR = 7, CLIENT_NAME_TEXT = 64 };

struct redis_session {
    struct net_loop *loop;
    const struct redis_url *url;
    struct net_tls_config *tls;
    int64_t timeout_ms;
    struct redis_traffic *traffic;
    char client_name[CLIENT_NAME_TEXT];
    struct redis_session_events events;
    void *user;
    /* What may be pending: one of these. */
    struct net_resolve *resolve;
    struct redis_conn *conn;
    struct net_timer retry;
    bool is_ready;
    struct grpc_backoff backoff;
    int64_t not_before_ns;
    size_t n_attempts; /* which address of several is next */
    struct redis_queue queue;
    struct redis_request hello;
    struct redis_request select;
    struct redis_request info;
    char run_id[REDIS_RUN_ID_TEXT];
    bool lacks_aof;
};

bool redis_session_is_ready(const struct redis_session *session)
{
    return session->is_ready;
}

const char *redis_session_run_id(const struct redis_session *session)
{
    return session->run_id;
}

bool redis_session_lacks_aof(const struct redis_session *session)
{
    return session->lacks_aof;
}

void redis_session_send(struct redis_session *session, struct redis_queue *queue)
{
    if (session->is_ready)
        redis_conn_send(session->conn, queue);
}

void redis_session_doom(struct redis_session *session, const peg_error *error)
{
    if (session->conn)
        redis_conn_doom(session->conn, error);
}

void redis_session_check_reply(struct redis_session *session, const struct resp_value *reply)
{
    peg_error error;

    if (!reply || !redis_reply_is_fatal(reply))
        return;
    redis_fail_reply(&error, reply);
    redis_session_doom(session, &error);
}

/* ---- losing it ----------------------------------------------------------------------------- */

static void fail_attempt(struct redis_session *session, const peg_error *error)
{
    const bool was_ready = session->is_ready;

    session->is_ready = false;
    session->conn = NULL;
    if (!net_loop_is_ending(session->loop))
        net_loop_arm(session->loop, &session->retry, session->not_before_ns);
    session->events.on_lost(session->user, error, was_ready);
}

static void on_lost(void *user, const peg_error *error)
{
    fail_attempt((struct redis_session *)user, error);
}

/* ---- the handshake ------------------------------------------------------------------------- */

static peg_status check_version(peg_str version, peg_error *reterr)
{
    unsigned major = 0;
    size_t i = 0;

    for (; i < version.len && i < 3 && peg__is_digit(version.ptr[i]); i++)
        major = major * 10 + (unsigned)(version.ptr[i] - '0');
    if (major >= MIN_MAJOR)
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_REDIS_VERSION",
                     "this Redis is older than %d.0, which the registry needs: upgrade it",
                     MIN_MAJOR);
}

static peg_status check_hello(const struct resp_value *reply, peg_error *reterr)
{
    const peg_str mode = resp_member(reply, "mode");
    peg_status status;

    /* An old server repeats its arguments, the password among them: its words are not shown. */
    if (resp_is_error(reply, "ERR") || resp_is_error(reply, "NOPROTO"))
        return check_version(peg__str("0"), reterr);
    if (reply->kind == RESP_ERROR) {
        redis_fail_reply(reterr, reply);
        return reterr->status;
    }
    if (reply->kind != RESP_MAP)
        return peg__fail(reterr, PEG_EPARSE, "E_REDIS_PROTOCOL",
                         "the server does not answer HELLO as Redis does: check the address");
    status = check_version(resp_member(reply, "version"), reterr);
    if (!status && !peg__str_is(mode, "standalone"))
        status = peg__fail(reterr, PEG_EIO, "E_REDIS_MODE",
                           "this is no Redis by itself but a Redis Cluster or a Sentinel: give the "
                           "address of a primary that is not in a cluster");
    return status;
}

static void on_hello(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_session *session = peg__container_of(request, struct redis_session, hello);
    peg_error error;

    if (reply && check_hello(reply, &error))
        redis_session_doom(session, &error);
}

static void on_select(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_session *session = peg__container_of(request, struct redis_session, select);
    peg_error error;

    if (!reply || reply->kind != RESP_ERROR)
        return;
    redis_fail_reply(&error, reply);
    redis_session_doom(session, &error);
}

static void on_info(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_session *session = peg__container_of(request, struct redis_session, info);
    peg_error error;

    if (!reply)
        return;
    if (reply->kind != RESP_TEXT) {
        redis_fail_reply(&error, reply);
        redis_session_doom(session, &error);
    } else if (redis_check_info(reply->text, session->run_id, &error)) {
        redis_session_doom(session, &error);
    } else {
        session->is_ready = true;
        session->lacks_aof = redis_info_lacks_aof(reply->text);
        grpc_backoff_reset(&session->backoff);
        session->events.on_ready(session->user);
    }
}

static peg_status put_hello(struct redis_session *session)
{
    struct redis_queue *queue = &session->queue;
    const struct redis_url *url = session->url;
    const bool has_auth = url->has_password || url->user[0];
    const size_t mark = redis_queue_mark(queue);

    resp_put_command(&queue->out, has_auth ? 7 : 4);
    resp_puts(&queue->out, "HELLO");
    resp_puts(&queue->out, "3");
    if (has_auth) {
        resp_puts(&queue->out, "AUTH");
        resp_puts(&queue->out, url->user[0] ? url->user : "default");
        resp_puts(&queue->out, url->password);
    }
    resp_puts(&queue->out, "SETNAME");
    resp_puts(&queue->out, session->client_name);
    return redis_queue_add(queue, mark, &session->hello);
}

static peg_status put_select(struct redis_session *session)
{
    struct redis_queue *queue = &session->queue;
    const size_t mark = redis_queue_mark(queue);

    if (session->url->db == 0)
        return PEG_OK;
    resp_put_command(&queue->out, 2);
    resp_puts(&queue->out, "SELECT");
    resp_put_number(&queue->out, session->url->db);
    return redis_queue_add(queue, mark, &session->select);
}

static peg_status put_info(struct redis_session *session)
{
    static const char *const words[] = {"INFO", "server", "memory", "persistence", "replication"};
    struct redis_queue *queue = &session->queue;
    const size_t mark = redis_queue_mark(queue);

    resp_put_command(&queue->out, 5);
    for (size_t i = 0; i < 5; i++)
        resp_puts(&queue->out, words[i]);
    return redis_queue_add(queue, mark, &session->info);
}

static void on_open(void *user)
{
    struct redis_session *session = (struct redis_session *)user;
    peg_status status = put_hello(session);
    peg_error error;

    if (!status)
        status = put_select(session);
    if (!status)
        status = put_info(session);
    if (status) {
        peg__fail_nomem(&error);
        redis_conn_doom(session->conn, &error);
    }
    redis_conn_send(session->conn, &session->queue);
}

static void on_push(void *user, const struct resp_value *push)
{
    struct redis_session *session = (struct redis_session *)user;

    if (session->is_ready)
        session->events.on_push(session->user, push);
}

static void on_drained(void *user)
{
    struct redis_session *session = (struct redis_session *)user;

    if (session->is_ready)
        session->events.on_drained(session->user);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void connect_to(struct redis_session *session, const struct net_address *address)
{
    static const struct redis_conn_events events = {
        .on_open = on_open, .on_push = on_push, .on_drained = on_drained, .on_lost = on_lost};
    const struct redis_conn_options options = {
        .tls = session->tls,
        .host = session->url->endpoint.host,
        .timeout_ms = session->timeout_ms,
        .traffic = session->traffic,
    };
    peg_error error;

    peg__buf_clear(&session->queue.out);
    session->queue.requests = (struct redis_requests){0};
    if (redis_conn_new(session->loop, address, &options, &events, session, &session->conn, &error))
        fail_attempt(session, &error);
}

static void on_resolved(void *user, const struct net_address *addresses, size_t n,
                        const peg_error *error)
{
    struct redis_session *session = (struct redis_session *)user;

    session->resolve = NULL;
    if (n == 0)
        fail_attempt(session, error);
    else
        connect_to(session, &addresses[session->n_attempts % n]);
}

static void begin_attempt(struct net_timer *timer)
{
    struct redis_session *session = peg__container_of(timer, struct redis_session, retry);
    const struct net_endpoint *endpoint = &session->url->endpoint;
    struct net_address address;
    peg_error error;

    session->n_attempts++;
    session->not_before_ns = peg__clock_after_ms(net_loop_now_ns(session->loop),
                                                 grpc_backoff_take_ms(&session->backoff));
    if (endpoint->is_unix)
        connect_to(session, &endpoint->unix_address);
    else if (net_endpoint_is_numeric(endpoint, &address))
        connect_to(session, &address);
    else if (net_resolve(session->loop, endpoint, on_resolved, session, &session->resolve, &error))
        fail_attempt(session, &error);
}

peg_status redis_session_new(struct net_loop *loop, const struct redis_session_options *options,
                             const struct redis_session_events *events, void *user,
                             struct redis_session **ret_session, peg_error *reterr)
{
    struct redis_session *session = (struct redis_session *)peg__alloc_zero(1, sizeof(*session));
    uint64_t seed = 0;

    if (!session)
        return peg__fail_nomem(reterr);
    *session = (struct redis_session){
        .loop = loop,
        .url = options->url,
        .tls = options->tls,
        .timeout_ms = PEG__OR_DEFAULT(options->timeout_ms, PEG_LIMIT_REDIS_TIMEOUT_MS),
        .traffic = options->traffic,
        .events = *events,
        .user = user,
        .retry = {.fn = begin_attempt},
        .hello = {.fn = on_hello},
        .select = {.fn = on_select},
        .info = {.fn = on_info},
    };
    redis_queue_init(&session->queue);
    snprintf(session->client_name, sizeof(session->client_name), "%s", options->client_name);
    (void)!peg__random(&seed, sizeof(seed));
    grpc_backoff_init(&session->backoff, PEG_LIMIT_REDIS_BACKOFF_MS, PEG_LIMIT_REDIS_BACKOFF_MAX_MS,
                      seed);
    net_loop_arm(loop, &session->retry, net_loop_now_ns(loop));
    *ret_session = session;
    return PEG_OK;
}

struct redis_session *redis_session_free(struct redis_session *session)
{
    struct redis_conn *conn;

    if (!session)
        return NULL;
    conn = session->conn;
    session->conn = NULL;
    session->is_ready = false;
    net_loop_disarm(session->loop, &session->retry);
    if (session->resolve)
        net_resolve_cancel(session->resolve);
    redis_conn_drop(conn);
    redis_queue_free(&session->queue);
    peg__free(session);
    return NULL;
}
