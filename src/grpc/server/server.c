/* SPDX-License-Identifier: Apache-2.0 */

/* A server: its options and services, its listeners, its loops, and its end. */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/server/internal.h"

enum { MAX_SERVICES = 1000, MAX_LISTENERS = 64, MAX_ROUTES = 100000 };

static struct grpc_server_options fill_server_options(struct grpc_server_options o)
{
    o.max_message_bytes = PEG__OR_DEFAULT(o.max_message_bytes, PEG_LIMIT_GRPC_MESSAGE_BYTES);
    o.max_header_bytes = PEG__OR_DEFAULT(o.max_header_bytes, PEG_LIMIT_GRPC_HEADER_BYTES);
    o.max_held_bytes = PEG__OR_DEFAULT(o.max_held_bytes, PEG_LIMIT_GRPC_HELD_BYTES);
    o.max_node_held_bytes = PEG__OR_DEFAULT(o.max_node_held_bytes, PEG_LIMIT_GRPC_NODE_HELD_BYTES);
    o.max_send_bytes = PEG__OR_DEFAULT(o.max_send_bytes, PEG_LIMIT_GRPC_SEND_BYTES);
    o.max_streams = PEG__OR_DEFAULT(o.max_streams, PEG_LIMIT_GRPC_STREAMS);
    o.stream_window = PEG__OR_DEFAULT(o.stream_window, PEG_LIMIT_GRPC_STREAM_WINDOW);
    o.session_window = PEG__OR_DEFAULT(o.session_window, PEG_LIMIT_GRPC_SESSION_WINDOW);
    o.reset_burst = PEG__OR_DEFAULT(o.reset_burst, PEG_LIMIT_GRPC_RESET_BURST);
    o.reset_per_s = PEG__OR_DEFAULT(o.reset_per_s, PEG_LIMIT_GRPC_RESETS);
    o.keepalive_ms = PEG__OR_DEFAULT(o.keepalive_ms, PEG_LIMIT_GRPC_KEEPALIVE_MS);
    o.keepalive_timeout_ms =
        PEG__OR_DEFAULT(o.keepalive_timeout_ms, PEG_LIMIT_GRPC_KEEPALIVE_TIMEOUT_MS);
    o.min_ping_ms = PEG__OR_DEFAULT(o.min_ping_ms, PEG_LIMIT_GRPC_PING_MS);
    o.max_age_grace_ms = PEG__OR_DEFAULT(o.max_age_grace_ms, PEG_LIMIT_GRPC_AGE_GRACE_MS);
    o.preface_ms = PEG__OR_DEFAULT(o.preface_ms, PEG_LIMIT_GRPC_PREFACE_MS);
    o.stall_ms = PEG__OR_DEFAULT(o.stall_ms, PEG_LIMIT_GRPC_STALL_MS);
    o.unauthenticated_ms = PEG__OR_DEFAULT(o.unauthenticated_ms, PEG_LIMIT_GRPC_UNAUTHENTICATED_MS);
    return o;
}

/* ---- on a loop ----------------------------------------------------------------------------- */

static struct grpc__server_loop *find_loop(struct grpc_server *server, const struct net_loop *loop)
{
    for (unsigned i = 0; i < server->n_server_loops; i++) {
        if (server->server_loops[i].loop == loop)
            return &server->server_loops[i];
    }
    return NULL;
}

static void accept_connection(void *server, struct net_stream *stream)
{
    struct grpc__server_loop *server_loop = find_loop(server, net_stream_loop(stream));

    if (server_loop && !server_loop->is_draining && !grpc__conn_new(server_loop, stream))
        return;
    net_stream_drop(stream);
}

static void drain_loop(struct net_message *message)
{
    struct grpc__server_loop *server_loop =
        peg__container_of(message, struct grpc__server_loop, drain);

    server_loop->is_draining = true;
    for (struct grpc__conn *conn = server_loop->conns; conn;) {
        struct grpc__conn *next = conn->next; /* leaving may free it */

        grpc__conn_leave(conn, 0);
        conn = next;
    }
    grpc__server_loop_report_if_empty(server_loop);
}

static void drop_loop(struct net_message *message)
{
    struct grpc__server_loop *server_loop =
        peg__container_of(message, struct grpc__server_loop, drop);

    server_loop->is_draining = true;
    while (server_loop->conns)
        grpc__conn_drop(server_loop->conns);
    grpc__server_loop_orphan_calls(server_loop);
    grpc__server_loop_report_if_empty(server_loop);
    pthread_mutex_lock(&server_loop->server->lock);
    server_loop->is_dropped = true;
    if (!server_loop->is_evict_posted)
        server_loop->server->n_dropped_loops++;
    pthread_cond_signal(&server_loop->server->changed);
    pthread_mutex_unlock(&server_loop->server->lock);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void init_loop(struct grpc_server *server, unsigned i)
{
    server->server_loops[i] = (struct grpc__server_loop){
        .server = server,
        .loop = net_loops_at(server->loops, i),
        .drain = {.fn = drain_loop},
        .drop = {.fn = drop_loop},
        .evict = {.fn = grpc__server_loop_evict},
    };
}

static bool copy_interceptors(struct grpc_server_options *options)
{
    const size_t n = options->n_interceptors;
    struct grpc_interceptor *copy = peg__alloc_zero(n, sizeof(*copy));

    if (!copy)
        return false;
    if (n > 0)
        memcpy(copy, options->interceptors, n * sizeof(*copy));
    options->interceptors = copy;
    return true;
}

peg_status grpc_server_new(struct net_loops *loops, const struct grpc_server_options *options,
                           struct grpc_server **ret_server, peg_error *reterr)
{
    struct grpc_server *server = peg__alloc_zero(1, sizeof(*server));

    if (!server)
        return peg__fail_nomem(reterr);
    server->options = fill_server_options(options ? *options : (struct grpc_server_options){0});
    server->loops = loops;
    server->routes = (struct peg__map)PEG__MAP(MAX_ROUTES);
    server->n_server_loops = net_loops_len(loops);
    server->server_loops = peg__alloc_zero(server->n_server_loops, sizeof(*server->server_loops));
    if (!server->server_loops || grpc__quotas_init(server) ||
        !copy_interceptors(&server->options)) {
        grpc__quotas_destroy(server);
        peg__free(server->server_loops);
        peg__free(server);
        return peg__fail_nomem(reterr);
    }
    for (unsigned i = 0; i < server->n_server_loops; i++)
        init_loop(server, i);
    pthread_mutex_init(&server->lock, NULL);
    peg__clock_cond_init(&server->changed);
    *ret_server = server;
    return PEG_OK;
}

static void close_listeners(struct grpc_server *server)
{
    for (size_t i = 0; i < server->n_listeners; i++)
        net_listener_free(server->listeners[i]);
    server->n_listeners = 0;
}

/* Until every loop has counted itself; false if it took longer. */
static bool wait_for_loops(struct grpc_server *server, const unsigned *n_server_loops,
                           int64_t until_ns)
{
    const peg_clock *clock = peg_clock_system();
    bool are_all;

    pthread_mutex_lock(&server->lock);
    while (*n_server_loops < server->n_server_loops && peg_clock_mono_ns(clock) < until_ns)
        peg__clock_wait(clock, &server->changed, &server->lock, until_ns);
    are_all = *n_server_loops == server->n_server_loops;
    pthread_mutex_unlock(&server->lock);
    return are_all;
}

bool grpc_server_drain(struct grpc_server *server, int64_t drain_ms)
{
    close_listeners(server);
    /* A slow loop may not have taken the message of the last time yet. */
    for (unsigned i = 0; i < server->n_server_loops && !server->is_draining; i++)
        net_loop_post(server->server_loops[i].loop, &server->server_loops[i].drain);
    server->is_draining = true;
    return wait_for_loops(server, &server->n_empty_loops,
                          peg__clock_in_ms(peg_clock_system(), drain_ms));
}

struct grpc_server *grpc_server_free(struct grpc_server *server)
{
    if (!server)
        return NULL;
    close_listeners(server);
    for (unsigned i = 0; i < server->n_server_loops; i++)
        net_loop_post(server->server_loops[i].loop, &server->server_loops[i].drop);
    /* Not only until they are empty: the message itself lies in the loop's state. */
    wait_for_loops(server, &server->n_dropped_loops, INT64_MAX);
    for (unsigned i = 0; i < server->n_server_loops; i++)
        grpc__server_loop_free(&server->server_loops[i]);
    for (size_t i = 0; i < server->n_services; i++)
        peg__free(server->route_blocks[i]);
    peg__free(server->route_blocks);
    peg__free(server->services);
    peg__free(server->listeners);
    peg__free(server->server_loops);
    grpc__quotas_destroy(server);
    peg__free(peg__unconst(server->options.interceptors));
    peg__map_free(&server->routes);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    peg__free(server);
    return NULL;
}

/* ---- services ------------------------------------------------------------------------------ */

static peg_status fail_exists(const struct grpc_service *service, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EEXISTS, "E_GRPC_SERVICE",
                     "the service '%s' has been added already: add each service once",
                     service->name);
}

static bool has_service(const struct grpc_server *server, const char *name)
{
    for (size_t i = 0; i < server->n_services; i++) {
        if (strcmp(server->services[i]->name, name) == 0)
            return true;
    }
    return false;
}

static bool reserve_service(struct grpc_server *server)
{
    const size_t want = server->n_services + 1;
    return PEG__RESERVE(server->services, want, server->services_capacity) &&
           PEG__RESERVE(server->route_blocks, want, server->blocks_capacity);
}

static void remove_routes(struct grpc_server *server, const struct grpc_service *service, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peg__map_remove(&server->routes, peg__str(service->methods[i].path), NULL);
}

static peg_status add_routes(struct grpc_server *server, const struct grpc_service *service,
                             struct grpc_route *routes)
{
    for (size_t i = 0; i < service->n_methods; i++) {
        const peg_status status =
            peg__map_add(&server->routes, peg__str(service->methods[i].path), &routes[i]);

        if (status) {
            remove_routes(server, service, i);
            return status;
        }
    }
    return PEG_OK;
}

peg_status grpc_server_add(struct grpc_server *server, const struct grpc_service *service,
                           const struct grpc_handler *handlers, void *user, peg_error *reterr)
{
    struct grpc_route *routes;
    peg_status status;

    if (has_service(server, service->name))
        return fail_exists(service, reterr);
    if (server->n_services == MAX_SERVICES)
        return peg__fail(reterr, PEG_ELIMIT, "E_GRPC_SERVICE", "a server has at most %d services",
                         MAX_SERVICES);
    routes = peg__alloc_zero(service->n_methods, sizeof(*routes));
    if (!routes || !reserve_service(server)) {
        peg__free(routes);
        return peg__fail_nomem(reterr);
    }
    for (size_t i = 0; i < service->n_methods; i++)
        routes[i] = (struct grpc_route){
            .method = &service->methods[i], .handler = handlers[i], .user = user};
    status = add_routes(server, service, routes);
    if (status) {
        peg__free(routes);
        return status == PEG_EEXISTS ? fail_exists(service, reterr) : peg__fail_nomem(reterr);
    }
    server->services[server->n_services] = service;
    server->route_blocks[server->n_services++] = routes;
    return PEG_OK;
}

void grpc_server_bound(struct grpc_server *server, const char *path,
                       const struct grpc_method_bounds *bounds)
{
    struct grpc_route *route = peg__map_get(&server->routes, peg__str(path));

    if (route)
        route->bounds = *bounds;
}

const struct grpc_service *grpc_server_service_at(const struct grpc_server *server, size_t i)
{
    return i < server->n_services ? server->services[i] : NULL;
}

/* ---- listening ----------------------------------------------------------------------------- */

static peg_status reserve_listener(struct grpc_server *server, peg_error *reterr)
{
    if (server->n_listeners == MAX_LISTENERS)
        return peg__fail(reterr, PEG_ELIMIT, "E_LISTEN", "a server listens on at most %d sockets",
                         MAX_LISTENERS);
    if (!PEG__RESERVE(server->listeners, server->n_listeners + 1, server->listeners_capacity))
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

peg_status grpc_server_refuse_name(const struct net_endpoint *endpoint, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_LISTEN",
                     "'%s' is a name: listen on an address, such as 127.0.0.1:%u or :%u",
                     endpoint->host, (unsigned)endpoint->port, (unsigned)endpoint->port);
}

peg_status grpc_server_listen(struct grpc_server *server, peg_str address,
                              const struct net_listener_options *options,
                              struct net_address *ret_address, peg_error *reterr)
{
    struct net_endpoint endpoint;
    struct net_address at;
    struct net_listener *listener;
    peg_status status = net_endpoint_parse(address, &endpoint, reterr);

    if (status)
        return status;
    if (!net_endpoint_is_numeric(&endpoint, &at))
        return grpc_server_refuse_name(&endpoint, reterr);
    status = reserve_listener(server, reterr);
    if (!status)
        status =
            net_listen(server->loops, &at, options, accept_connection, server, &listener, reterr);
    if (status)
        return status;
    server->listeners[server->n_listeners++] = listener;
    if (ret_address)
        *ret_address = *net_listener_address(listener);
    return PEG_OK;
}

peg_status grpc_server_listen_on(struct grpc_server *server, int fd,
                                 const struct net_listener_options *options, peg_error *reterr)
{
    struct net_listener *listener;
    peg_status status = reserve_listener(server, reterr);

    if (!status)
        status =
            net_listen_on(server->loops, fd, options, accept_connection, server, &listener, reterr);
    if (!status)
        server->listeners[server->n_listeners++] = listener;
    return status;
}

void grpc_server_counts(const struct grpc_server *server, struct grpc_server_counts *ret_counts)
{
    *ret_counts = (struct grpc_server_counts){0};
    for (unsigned i = 0; i < server->n_server_loops; i++) {
        const struct grpc__counts *counts = &server->server_loops[i].counts;
        const uint64_t n_ended = grpc__counted(&counts->n_ended);
        const uint64_t n_started =
            grpc__counted(&counts->n_started) - grpc__counted(&counts->n_pages);

        ret_counts->n_connections += grpc__counted(&counts->n_connections);
        ret_counts->n_started += n_started;
        ret_counts->n_ended += n_ended;
        ret_counts->n_calls += n_started > n_ended ? n_started - n_ended : 0;
        ret_counts->n_refused_connections += grpc__counted(&counts->n_refused_connections);
        ret_counts->n_evicted_connections += grpc__counted(&counts->n_evicted_connections);
    }
    ret_counts->n_held_bytes =
        peg__quota_used(&server->held) + peg__quota_used(&server->unauthenticated);
}
