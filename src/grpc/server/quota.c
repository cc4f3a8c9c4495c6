/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of connections is counted by principal once a client has authenticated, by address
 * before. All loops count in one quota, in steps. When it is exceeded, connections of the largest
 * principal are evicted, the largest first: on this loop if it has any, else by the other loops.
 */

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/server/internal.h"

/* ---- quotas --------------------------------------------------------------------------------- */

peg_status grpc__quotas_init(struct grpc_server *server)
{
    const size_t max = server->options.max_node_held_bytes;
    const size_t unauthenticated =
        server->options.asks_who ? max / PEG_LIMIT_GRPC_UNAUTHENTICATED_PART : 0;
    struct peg__quota_limits limits = {.max = max - unauthenticated, .has_shares = true};
    peg_status status = peg__quota_init(&server->held, &limits);

    server->secret = peg__hash_key_new();
    limits.max = unauthenticated;
    return status ? status : peg__quota_init(&server->unauthenticated, &limits);
}

void grpc__quotas_destroy(struct grpc_server *server)
{
    peg__quota_destroy(&server->held);
    peg__quota_destroy(&server->unauthenticated);
}

/* The host of "127.0.0.1:4711" or "[::1]:4711"; of IPv6 the network, of which a client has all
 * addresses. */
static uint16_t key_of_peer(const struct grpc__conn *conn)
{
    enum { NETWORK_BYTES = 8, HOST_TEXT = 64 };
    const char *peer = net_stream_peer(conn->stream);
    const char *port = strrchr(peer, ':');
    const bool has_brackets = peer[0] == '[' && port && port[-1] == ']';
    peg_str host = {peer, port ? (size_t)(port - peer) : strlen(peer)};
    unsigned char address[sizeof(struct in6_addr)];
    char text[HOST_TEXT];

    if (has_brackets && host.len - 2 < sizeof(text)) {
        memcpy(text, peer + 1, host.len - 2);
        text[host.len - 2] = '\0';
        if (inet_pton(AF_INET6, text, address) == 1)
            host = peg__strn((const char *)address, NETWORK_BYTES);
    }
    return peg__quota_key(conn->server_loop->server->secret, host);
}

static bool has_certificate(const struct grpc__conn *conn)
{
    const struct net_tls *tls = net_stream_tls(conn->stream);

    return tls && net_tls_peer_name(tls).len > 0;
}

void grpc__conn_begin_count(struct grpc__conn *conn)
{
    struct grpc_server *server = conn->server_loop->server;
    const struct grpc_server_options *options = &server->options;
    const bool is_authenticated = !options->asks_who || has_certificate(conn);

    conn->quota = is_authenticated ? &server->held : &server->unauthenticated;
    conn->quota_key = key_of_peer(conn);
    conn->known_ns = is_authenticated
                         ? NET_NEVER
                         : peg__clock_after_ms(conn->opened_ns, options->unauthenticated_ms);
}

void grpc__conn_end_count(struct grpc__conn *conn)
{
    peg__quota_give_back(conn->quota, conn->quota_key, conn->counted);
    conn->counted = 0;
}

void grpc__conn_authenticate(struct grpc__conn *conn, peg_str principal)
{
    struct grpc_server *server = conn->server_loop->server;

    if (!server->options.asks_who || conn->is_authenticated)
        return;
    conn->is_authenticated = true;
    peg__quota_give_back(conn->quota, conn->quota_key, conn->counted);
    conn->quota = &server->held;
    conn->quota_key = peg__quota_key(server->secret, principal);
    peg__quota_add(conn->quota, conn->quota_key, conn->counted);
    conn->known_ns = NET_NEVER;
}

/* ---- eviction ------------------------------------------------------------------------------- */

static void evict_conn(struct grpc__conn *conn)
{
    const bool is_authenticated = conn->quota == &conn->server_loop->server->held;

    peg__log(PEG_LOG_WARN, "E_HELD_LIMIT",
             "%s: evicted, because this connection held most (%zu bytes) when all%s connections "
             "held more than the quota (%zu bytes)",
             net_stream_peer(conn->stream), conn->counted,
             is_authenticated ? "" : " unauthenticated", conn->quota->limits.max);
    grpc__count(&conn->server_loop->counts.n_evicted_connections, 1);
    grpc__conn_end_count(conn);
    conn->is_evicted = true;
    net_stream_pause(conn->stream);
    net_loop_enqueue(conn->server_loop->loop, &conn->job);
}

static bool is_candidate(const struct grpc__conn *conn, const struct peg__quota *quota,
                         uint16_t key)
{
    return conn->quota == quota && conn->quota_key == key && !conn->is_evicted && !conn->is_ending;
}

/* Some more than needed, or the next bytes would have all connections searched again. */
static bool is_enough(const struct peg__quota *quota)
{
    return peg__quota_used(quota) <= quota->limits.max - quota->limits.max / 16;
}

/* Evicts connections of this loop that hold at least half of what the largest holds, until it is
 * enough. False: the loop has none. */
static bool evict_largest(struct grpc__server_loop *server_loop, const struct peg__quota *quota)
{
    const uint16_t key = peg__quota_largest(quota);
    size_t most = 0;

    for (const struct grpc__conn *conn = server_loop->conns; conn; conn = conn->next) {
        if (is_candidate(conn, quota, key) && conn->counted > most)
            most = conn->counted;
    }
    for (struct grpc__conn *conn = server_loop->conns; conn && most && !is_enough(quota);
         conn = conn->next) {
        if (is_candidate(conn, quota, key) && conn->counted >= (most + 1) / 2)
            evict_conn(conn);
    }
    return most > 0;
}

static bool evict_here(struct grpc__server_loop *server_loop)
{
    struct grpc_server *server = server_loop->server;
    struct peg__quota *const quotas[] = {&server->unauthenticated, &server->held};
    bool was_found = true;

    for (size_t i = 0; i < 2; i++) {
        if (!peg__quota_is_exceeded(quotas[i]))
            continue;
        while (was_found && !is_enough(quotas[i]))
            was_found = evict_largest(server_loop, quotas[i]);
    }
    return was_found;
}

/* A loop that ends waits for a message that was posted before. */
static void evict_elsewhere(struct grpc__server_loop *server_loop)
{
    struct grpc_server *server = server_loop->server;

    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < server->n_server_loops; i++) {
        struct grpc__server_loop *other = &server->server_loops[i];

        if (other == server_loop || other->is_dropped || other->is_evict_posted)
            continue;
        other->is_evict_posted = true;
        net_loop_post(other->loop, &other->evict);
    }
    pthread_mutex_unlock(&server->lock);
}

void grpc__server_loop_evict(struct net_message *message)
{
    struct grpc__server_loop *server_loop =
        peg__container_of(message, struct grpc__server_loop, evict);
    struct grpc_server *server = server_loop->server;

    (void)evict_here(server_loop); /* the sender has checked its own */
    pthread_mutex_lock(&server->lock);
    server_loop->is_evict_posted = false;
    if (server_loop->is_dropped) {
        server->n_dropped_loops++;
        pthread_cond_signal(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
}

/* ---- counting ------------------------------------------------------------------------------- */

static size_t conn_memory(const struct grpc__conn *conn)
{
    return net_stream_queued(conn->stream) + (conn->http1 ? net_http_conn_memory(conn->http1) : 0) +
           (conn->session ? grpc_session_memory(conn->session) : 0);
}

void grpc__conn_count(struct grpc__conn *conn)
{
    const size_t memory = conn_memory(conn);

    if (conn->is_evicted || conn->is_ending)
        return;
    if (memory + PEG_LIMIT_GRPC_COUNT_STEP_BYTES <= conn->counted) {
        peg__quota_give_back(conn->quota, conn->quota_key, conn->counted - memory);
        conn->counted = memory;
    } else if (memory >= conn->counted + PEG_LIMIT_GRPC_COUNT_STEP_BYTES) {
        peg__quota_add(conn->quota, conn->quota_key, memory - conn->counted);
        conn->counted = memory;
        if (peg__quota_is_exceeded(conn->quota) && !evict_here(conn->server_loop))
            evict_elsewhere(conn->server_loop);
    }
}
