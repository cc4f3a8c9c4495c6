/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What connections hold, and for whom: by principal once a client has authenticated, by address
 * before. All loops count in one quota, in steps. When it is exceeded, connections of the largest
 * holder are cut, the largest first: on this loop if it has any, else the other loops are asked to.
 */

#include <arpa/inet.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/server/internal.h"

/* ---- quotas --------------------------------------------------------------------------------- */

peg_status grpc__held_init(struct grpc_server *server)
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

void grpc__held_destroy(struct grpc_server *server)
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
    return peg__quota_key(conn->home->server->secret, host);
}

static bool has_certificate(const struct grpc__conn *conn)
{
    const struct net_tls *tls = net_stream_tls(conn->stream);

    return tls && net_tls_peer_name(tls).len > 0;
}

void grpc__conn_begin_count(struct grpc__conn *conn)
{
    struct grpc_server *server = conn->home->server;
    const struct grpc_server_options *options = &server->options;
    const bool is_known = !options->asks_who || has_certificate(conn);

    conn->quota = is_known ? &server->held : &server->unauthenticated;
    conn->quota_key = key_of_peer(conn);
    conn->known_ns =
        is_known ? NET_NEVER : peg__clock_after_ms(conn->opened_ns, options->unauthenticated_ms);
}

void grpc__conn_end_count(struct grpc__conn *conn)
{
    peg__quota_give_back(conn->quota, conn->quota_key, conn->counted);
    conn->counted = 0;
}

void grpc__conn_authenticate(struct grpc__conn *conn, peg_str principal)
{
    struct grpc_server *server = conn->home->server;

    if (!server->options.asks_who || conn->is_authenticated)
        return;
    conn->is_authenticated = true;
    peg__quota_give_back(conn->quota, conn->quota_key, conn->counted);
    conn->quota = &server->held;
    conn->quota_key = peg__quota_key(server->secret, principal);
    peg__quota_add(conn->quota, conn->quota_key, conn->counted);
    conn->known_ns = NET_NEVER;
}

/* ---- cutting -------------------------------------------------------------------------------- */

static void evict(struct grpc__conn *conn)
{
    const bool is_known = conn->quota == &conn->home->server->held;

    peg__log(PEG_LOG_WARN, "E_HELD_LIMIT",
             "%s: cut, because this connection held most (%zu bytes) when all%s connections held "
             "more than max_held (%zu bytes)",
             net_stream_peer(conn->stream), conn->counted, is_known ? "" : " unauthenticated",
             conn->quota->limits.max);
    grpc__count(&conn->home->counts.n_evicted_connections, 1);
    grpc__conn_end_count(conn);
    conn->is_evicted = true;
    net_stream_pause(conn->stream);
    net_loop_turn(conn->home->loop, &conn->turn);
}

static bool is_of(const struct grpc__conn *conn, const struct peg__quota *quota, uint16_t key)
{
    return conn->quota == quota && conn->quota_key == key && !conn->is_evicted && !conn->is_ending;
}

/* Some more than needed: else the next bytes that come would have all connections searched again.
 */
static bool is_enough(const struct peg__quota *quota)
{
    return peg__quota_used(quota) <= quota->limits.max - quota->limits.max / 16;
}

/* Cuts connections of this loop that hold at least half of what the largest holds, until it is
 * enough. False: the loop has none. */
static bool evict_largest(struct grpc__server_loop *home, const struct peg__quota *quota)
{
    const uint16_t key = peg__quota_largest(quota);
    size_t most = 0;

    for (const struct grpc__conn *conn = home->conns; conn; conn = conn->next) {
        if (is_of(conn, quota, key) && conn->counted > most)
            most = conn->counted;
    }
    for (struct grpc__conn *conn = home->conns; conn && most && !is_enough(quota);
         conn = conn->next) {
        if (is_of(conn, quota, key) && conn->counted >= (most + 1) / 2)
            evict(conn);
    }
    return most > 0;
}

static bool evict_here(struct grpc__server_loop *home)
{
    struct grpc_server *server = home->server;
    struct peg__quota *const quotas[] = {&server->unauthenticated, &server->held};
    bool was_found = true;

    for (size_t i = 0; i < 2; i++) {
        if (!peg__quota_is_exceeded(quotas[i]))
            continue;
        while (was_found && !is_enough(quotas[i]))
            was_found = evict_largest(home, quotas[i]);
    }
    return was_found;
}

/* A home that ends waits for a message that was posted before. */
static void ask_others(struct grpc__server_loop *home)
{
    struct grpc_server *server = home->server;

    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < server->n_homes; i++) {
        struct grpc__server_loop *other = &server->homes[i];

        if (other == home || other->is_dropped || other->is_evict_posted)
            continue;
        other->is_evict_posted = true;
        net_loop_post(other->loop, &other->evict);
    }
    pthread_mutex_unlock(&server->lock);
}

void grpc__server_loop_evict(struct net_message *message)
{
    struct grpc__server_loop *home = peg__container_of(message, struct grpc__server_loop, evict);
    struct grpc_server *server = home->server;

    (void)evict_here(home); /* whoever posted it has looked at his own */
    pthread_mutex_lock(&server->lock);
    home->is_evict_posted = false;
    if (home->is_dropped) {
        server->n_dropped_homes++;
        pthread_cond_signal(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
}

/* ---- counting ------------------------------------------------------------------------------- */

static size_t memory_of(const struct grpc__conn *conn)
{
    return net_stream_queued(conn->stream) + conn->page_bytes +
           (conn->session ? grpc_session_memory(conn->session) : 0);
}

void grpc__conn_count(struct grpc__conn *conn)
{
    const size_t memory = memory_of(conn);

    if (conn->is_evicted || conn->is_ending)
        return;
    if (memory + PEG_LIMIT_GRPC_COUNT_STEP_BYTES <= conn->counted) {
        peg__quota_give_back(conn->quota, conn->quota_key, conn->counted - memory);
        conn->counted = memory;
    } else if (memory >= conn->counted + PEG_LIMIT_GRPC_COUNT_STEP_BYTES) {
        peg__quota_add(conn->quota, conn->quota_key, memory - conn->counted);
        conn->counted = memory;
        if (peg__quota_is_exceeded(conn->quota) && !evict_here(conn->home))
            ask_others(conn->home);
    }
}
