/* SPDX-License-Identifier: Apache-2.0 */

/* Makes a node from a config, and frees it in the reverse order. */

#include "pegboard/gateway.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "bus/bus.h"
#include "bus/redis/redis.h"
#include "calls/caller/homes.h"
#include "calls/provider/provider_side.h"
#include "gateway/access/access.h"
#include "gateway/catalog/changes.h"
#include "gateway/mcp/mcp.h"
#include "gateway/node.h"
#include "gateway/rpc/rpc.h"
#include "gateway/search/search.h"
#include "gateway/telemetry/event_log.h"
#include "gateway/telemetry/metrics.h"
#include "goapb/goa.grpc.h"
#include "google/rpc/status.grpc.h"
#include "grpc/server/server.h"
#include "wire/wire.h"

enum {
    DEFAULT_PING_MS = 10000,
    DEFAULT_MISSED_PINGS = 3,
    DEFAULT_DRAIN_MS = 30000,
    MAX_SOCKETS = 16,
};

struct peg_gateway {
    struct gw_node node;
    struct gw_loop_state *states;
    struct bus_local_hub *hub;
    struct bus_redis_hub *redis; /* instead of it, in a cluster */
    peg_store store;
    size_t max_connections;
    bool insecure;
    bool takes_log;
    char *admin_addr;
    struct net_tls_config *tls;
    struct grpc_health *health;
    struct grpc_reflection *reflection;
    struct gw_admin *admin;
    struct grpc_server *admin_server;
    struct net_http_server *http;
    struct net_http_server *admin_http;
    int stop_fd;
    char address[NET_ADDRESS_TEXT];
};

/* ---- making it ---- */

static void stop_from_admin(void *user)
{
    peg_gateway_stop((peg_gateway *)user);
}

static peg_status name_node(peg_gateway *gateway, const peg_gateway_config *config,
                            peg_error *reterr)
{
    struct gw_node *node = &gateway->node;

    snprintf(node->name, sizeof(node->name), "%s", config->name ? config->name : "registry");
    node->bus_kind = gw_has_redis(config) ? "redis" : "local";
    node->store_kind = gateway->store.kind;
    node->started_ms = peg_clock_now_ms(peg_clock_system());
    node->ping_interval_ms =
        config->ping_interval_ms ? config->ping_interval_ms : (int64_t)DEFAULT_PING_MS;
    node->lease_ms = config->lease_ms ? config->lease_ms : (int64_t)PEG_LIMIT_GATEWAY_LEASE_MS;
    node->drain_ms = config->drain_ms ? config->drain_ms : (int64_t)DEFAULT_DRAIN_MS;
    node->goa_generation = config->goa_generation ? config->goa_generation : 1;
    node->stop = stop_from_admin;
    node->stop_user = gateway;
    if (!peg__random(&node->id, sizeof(node->id)))
        return peg__fail(reterr, PEG_EIO, "E_GATEWAY", "no randomness for a node id");
    node->id |= 1; /* 0: no node */
    return PEG_OK;
}

static peg_status open_log_and_auth(peg_gateway *gateway, const peg_gateway_config *config,
                                    peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    const struct gw_event_log_options log = {
        .path = config->log_file,
        .least = config->log_level ? config->log_level : PEG_LOG_INFO,
    };
    struct gw_auth_options auth = {
        .token_file = config->token_file,
        .has_certificates = config->tls_client_ca != NULL,
        .is_insecure = config->insecure,
        .admin_names = config->admin_names,
    };
    const struct net_tls_options tls = {
        .cert_file = config->tls_cert,
        .key_file = config->tls_key,
        .ca_file = config->tls_client_ca,
        /* a token will do instead; without a client CA no certificate is requested */
        .is_client_optional = config->token_file && config->tls_client_ca,
        .allows_http1 = true,
    };
    peg_status status = gw_event_log_new(&log, &node->log, reterr);

    if (!status && gateway->takes_log)
        status = peg_log_set(gw_event_log_hook, log.least, node->log);
    auth.log = node->log;
    if (!status)
        status = gw_auth_new(node->loops, &auth, &node->auth, reterr);
    if (!status && config->tls_cert)
        status = net_tls_config_new(&tls, &gateway->tls, reterr);
    return status;
}

static peg_status init_loop_states(peg_gateway *gateway, const peg_gateway_config *config,
                                   peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    struct gw_loop_state state = {
        .node = node,
        .hub = gateway->hub,
        .redis = gateway->redis,
        .options =
            {
                .call_timeout_ms = config->call_timeout_ms,
                .lease_ms = node->lease_ms,
                .keep_ms = config->result_mapping_ttl_ms,
                .max_queue = config->max_queue,
                .max_payload = config->max_payload_bytes,
                .homes = node->homes,
                .has_principals = gw_auth_asks(node->auth),
            },
        .health =
            {
                .ping_interval_ms = node->ping_interval_ms,
                .missed_pings = config->missed_ping_threshold ? config->missed_ping_threshold
                                                              : (unsigned)DEFAULT_MISSED_PINGS,
                .known = node->known_providers,
                .n_loops = net_loops_len(node->loops),
            },
    };
    peg_status status = PEG_OK;

    /* In a cluster its bus knows each loop's. */
    if (!gateway->redis && !peg__random(state.options.secret, sizeof(state.options.secret)))
        return peg__fail(reterr, PEG_EIO, "E_GATEWAY", "the system has no randomness for a secret");
    for (; node->n_loops < net_loops_len(node->loops) && !status; node->n_loops++) {
        gateway->states[node->n_loops] = state;
        gateway->states[node->n_loops].number = node->n_loops;
        status = gw_loop_state_init(&gateway->states[node->n_loops], reterr);
    }
    return status;
}

static peg_status make_loop_states(peg_gateway *gateway, const peg_gateway_config *config,
                                   peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    const unsigned n = net_loops_len(node->loops);
    const struct peg__quota_limits sessions = {.max = PEG_LIMIT_GATEWAY_MCP_SESSIONS,
                                               .has_shares = gw_auth_asks(node->auth)};

    gateway->states = (struct gw_loop_state *)peg__alloc_zero(n, sizeof(*gateway->states));
    node->calls = (struct calls_loop **)peg__alloc_zero(n, sizeof(struct calls_loop *));
    node->presences = (struct gw_presence **)peg__alloc_zero(n, sizeof(struct gw_presence *));
    node->known_providers = (atomic_ullong *)peg__alloc_zero(n, sizeof(atomic_ullong));
    node->watches = (struct gw_watches **)peg__alloc_zero(n, sizeof(struct gw_watches *));
    node->changes = gw_changes_new(node->id, n);
    node->mcp.loops = (struct gw_mcp **)peg__alloc_zero(n, sizeof(struct gw_mcp *));
    node->homes = n > 1 ? calls_homes_new() : NULL;
    node->members = (struct gw_members **)peg__alloc_zero(n, sizeof(struct gw_members *));
    if (!gateway->states || !node->calls || !node->presences || !node->known_providers ||
        !node->watches || !node->changes || !node->members || !node->mcp.loops ||
        (n > 1 && !node->homes) || peg__quota_init(&node->mcp.sessions, &sessions))
        return peg__fail_nomem(reterr);
    return init_loop_states(gateway, config, reterr);
}

static peg_status open_catalog(peg_gateway *gateway, const peg_gateway_config *config,
                               peg_error *reterr)
{
    const char *name = config->search_language ? config->search_language : "english";
    struct gw_language language = {.stemmer = NULL};
    struct gw_node *node = &gateway->node;
    void **users = (void **)peg__alloc(node->n_loops * sizeof(*users));
    peg_status status;

    if (!users)
        return peg__fail_nomem(reterr);
    (void)gw_language_find(name, &language); /* gw_check_config() has */
    for (unsigned i = 0; i < node->n_loops; i++)
        users[i] = &gateway->states[i];
    status =
        gw_catalog_new(&(struct gw_catalog_options){.loops = node->loops,
                                                    .home_bus = gateway->states[0].bus,
                                                    .store = &gateway->store,
                                                    .events = &gw_loop_state_events,
                                                    .users = users,
                                                    .language = language,
                                                    .has_principals = gw_auth_asks(node->auth)},
                       &node->catalog, reterr);
    peg__free(users);
    return status;
}

/* Probes may name the service that they need. */
static peg_status report_services(peg_gateway *gateway, peg_error *reterr)
{
    const struct grpc_service *service;
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && (service = grpc_server_service_at(gateway->node.server, i)); i++)
        status = grpc_health_set(gateway->health, peg__str(service->name), GRPC_SERVING, reterr);
    return status;
}

/* Errors have details of these types, and tools that show them ask reflection what they are. */
static peg_status add_reflection(peg_gateway *gateway, peg_error *reterr)
{
    const struct grpc_file *const files[] = {&google_rpc_status_proto, &goapb_goa_proto};

    return grpc_reflection_new_with(gateway->node.server, files, sizeof(files) / sizeof(files[0]),
                                    &gateway->reflection, reterr);
}

static peg_status add_services(peg_gateway *gateway, peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    peg_status status = gw_service_registry_add(node->server, node, reterr);

    if (!status)
        status = gw_service_compat_add(node->server, node, reterr);
    if (!status)
        status = gw_admin_new(node, &gateway->admin, reterr);
    if (!status)
        status = grpc_health_new(node->server, &gateway->health, reterr);
    if (!status)
        status = add_reflection(gateway, reterr);
    if (!status)
        status = report_services(gateway, reterr);
    return status;
}

/* What is read from a snapshot can be read again: it is made when the client takes it. */
static void bound_discovery(struct grpc_server *server)
{
    static const char *const names[] = {"ListToolsets", "GetToolset", "Search", "Status", "Nodes"};
    const struct grpc_method_bounds bounds = {.waits_for_window = true};
    const struct grpc_service *service;

    for (size_t i = 0; (service = grpc_server_service_at(server, i)); i++) {
        for (size_t k = 0; k < service->n_methods * (sizeof(names) / sizeof(names[0])); k++) {
            const struct grpc_method *method = &service->methods[k % service->n_methods];

            if (strcmp(method->name, names[k / service->n_methods]) == 0)
                grpc_server_bound(server, method->path, &bounds);
        }
    }
}

/* A payload that is taken fits into a message, with all that goes with it. */
static size_t message_bytes(const peg_gateway_config *config)
{
    const size_t needed =
        config->max_payload_bytes + PEG_LIMIT_GATEWAY_FRAME_BYTES - PEG_LIMIT_ARGS_BYTES;

    return needed > PEG_LIMIT_GRPC_MESSAGE_BYTES ? needed : (size_t)PEG_LIMIT_GRPC_MESSAGE_BYTES;
}

static peg_status make_server(peg_gateway *gateway, const peg_gateway_config *config,
                              peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    const struct grpc_interceptor auth = gw_auth_interceptor(node->auth);
    struct grpc_server_options options = {
        .interceptors = &auth,
        .n_interceptors = 1,
        .describe = gw_describe,
        .keepalive_ms = config->keepalive_ms,
        .max_message_bytes = message_bytes(config),
        .max_node_held_bytes = config->max_held_bytes,
        .asks_who = gw_auth_asks(node->auth),
    };
    peg_status status = gw_http_new(node, false, &gateway->http, reterr);

    options.http = gateway->http;
    if (!status)
        status = grpc_server_new(node->loops, &options, &node->server, reterr);
    if (!status)
        status = add_services(gateway, reterr);
    if (!status)
        bound_discovery(node->server);
    return status;
}

static peg_status build_gateway(peg_gateway *gateway, const peg_gateway_config *config,
                                peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    peg_status status = name_node(gateway, config, reterr);

    if (!status)
        status = net_loops_new(config->threads, &node->loops, reterr);
    if (!status)
        status = open_log_and_auth(gateway, config, reterr);
    if (!status)
        status = gw_tracer_open(&node->tracer, config, node->id, node->log, reterr);
    if (!status)
        status = gw_metrics_new(net_loops_len(node->loops), &node->metrics, reterr);
    if (!status)
        status = gw_metrics_page_new(node, &node->metrics_page, reterr);
    if (!status)
        status = gw_node_open_bus(node, config, &gateway->hub, &gateway->redis, reterr);
    node->redis = gateway->redis;
    if (!status)
        status = make_loop_states(gateway, config, reterr);
    if (!status)
        status = gw_node_join(node, reterr);
    if (!status)
        status = open_catalog(gateway, config, reterr);
    if (!status)
        status = make_server(gateway, config, reterr);
    return status;
}

/* NULL stays NULL. False: no memory. */
static bool copy_setting(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static peg_status prepare_gateway(const peg_gateway_config *config, const peg_store *store,
                                  peg_gateway **ret_gateway, peg_error *reterr)
{
    peg_gateway *gateway = (peg_gateway *)peg__alloc_zero(1, sizeof(*gateway));
    peg_status status = PEG_OK;

    if (!gateway) {
        store->free(store->self);
        return peg__fail_nomem(reterr);
    }
    gateway->store = *store;
    gateway->max_connections = config->max_connections;
    gateway->insecure = config->insecure;
    gateway->takes_log = config->takes_library_log;
    gateway->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gateway->stop_fd < 0)
        status = peg__fail(reterr, PEG_EIO, "E_GATEWAY", "no event descriptor: %s",
                           strerror(errno)); // NOLINT(concurrency-mt-unsafe): told once, at start
    if (!status && !(copy_setting(config->admin_addr, &gateway->admin_addr) &&
                     copy_setting(config->mcp_hosts, &gateway->node.mcp.hosts) &&
                     copy_setting(config->mcp_authorization_server, &gateway->node.mcp.issuer) &&
                     copy_setting(config->cors_origin, &gateway->node.http.cors_origins)))
        status = peg__fail_nomem(reterr);
    gateway->node.mcp.has_tls = config->tls_cert != NULL;
    gateway->node.mcp.search_above = config->mcp_search_above;
    gateway->node.http.has_console = !config->no_console;
    if (!status)
        status = build_gateway(gateway, config, reterr);
    if (status) {
        peg_gateway_free(gateway);
        return status;
    }
    *ret_gateway = gateway;
    return PEG_OK;
}

peg_status peg_gateway_new(const peg_gateway_config *config, peg_gateway **ret_gateway,
                           peg_error *reterr)
{
    PEG__READ_OR_RETURN(config, PEG_GATEWAY_CONFIG_INIT, reterr);
    static const peg_gateway_config defaults = {PEG_GATEWAY_CONFIG_INIT};
    const peg_gateway_config *chosen = config ? config : &defaults;
    peg_store store;
    peg_status status = PEG_OK;

    if (chosen->store)
        store = *chosen->store;
    else
        status = peg_memory_store_new(&store, reterr);
    if (status)
        return status;
    status = gw_check_config(chosen, reterr);
    if (status) {
        store.free(store.self);
        return status;
    }
    return prepare_gateway(chosen, &store, ret_gateway, reterr);
}

peg_gateway *peg_gateway_free(peg_gateway *gateway)
{
    struct gw_node *node = gateway ? &gateway->node : NULL;

    if (!gateway)
        return NULL;
    gateway->admin_server = grpc_server_free(gateway->admin_server);
    node->server = grpc_server_free(node->server);
    net_http_server_free(gateway->admin_http);
    net_http_server_free(gateway->http);
    gw_metrics_page_stop(node->metrics_page);
    peg__free(node->handlers);
    gw_admin_free(gateway->admin);
    grpc_reflection_free(gateway->reflection);
    grpc_health_free(gateway->health);
    node->catalog = gw_catalog_free(node->catalog);
    for (unsigned i = 0; i < node->n_loops; i++)
        gw_loop_state_clear(&gateway->states[i]);
    gw_auth_free(node->auth);
    node->loops = net_loops_free(node->loops);
    gw_tracer_close(&node->tracer);
    bus_local_hub_free(gateway->hub);
    bus_redis_hub_free(gateway->redis);
    node->homes = calls_homes_free(node->homes);
    gw_metrics_page_free(node->metrics_page);
    gw_metrics_free(node->metrics);
    if (gateway->takes_log && node->log)
        (void)peg_log_set(NULL, PEG_LOG_INFO, NULL);
    gw_event_log_free(node->log);
    net_tls_config_unref(gateway->tls);
    gateway->store.free(gateway->store.self);
    peg__free(gateway->states);
    peg__free(node->calls);
    peg__free(node->presences);
    peg__free(node->known_providers);
    peg__free(node->watches);
    gw_changes_free(node->changes);
    peg__free(node->mcp.loops);
    peg__quota_destroy(&node->mcp.sessions);
    free(node->mcp.hosts);
    free(node->mcp.issuer);
    free(node->http.cors_origins);
    peg__free(node->members);
    free(gateway->admin_addr);
    if (gateway->stop_fd >= 0)
        close(gateway->stop_fd);
    peg__free(gateway);
    return NULL;
}

/* ---- serving ---- */

static peg_status listen_admin(peg_gateway *gateway, peg_error *reterr)
{
    struct grpc_server_options options = {0};
    /* It does not authenticate: it must not be reachable from elsewhere by mistake. */
    peg_status status =
        gw_auth_check_admin(peg__str(gateway->admin_addr), gateway->insecure, reterr);

    if (!status && !gateway->admin_http)
        status = gw_http_new(&gateway->node, true, &gateway->admin_http, reterr);
    options.http = gateway->admin_http;
    if (!status)
        status = grpc_server_new(gateway->node.loops, &options, &gateway->admin_server, reterr);
    if (!status)
        status = grpc_server_listen(gateway->admin_server, peg__str(gateway->admin_addr), NULL,
                                    NULL, reterr);
    return status;
}

/* Sockets that the parent process has opened, as systemd does. */
static peg_status listen_activated(peg_gateway *gateway, const struct net_listener_options *options,
                                   peg_error *reterr)
{
    int fds[MAX_SOCKETS];
    const size_t n = net_activated_sockets(fds, MAX_SOCKETS);
    peg_status status =
        gw_listen_check_activated(n, gw_auth_asks(gateway->node.auth), gateway->insecure, reterr);

    for (size_t i = 0; i < n && i < MAX_SOCKETS && !status; i++)
        status = grpc_server_listen_on(gateway->node.server, fds[i], options, reterr);
    if (!status)
        snprintf(gateway->address, sizeof(gateway->address), GW_ACTIVATED);
    return status;
}

peg_status peg_gateway_listen(peg_gateway *gateway, const char *addr, peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    const struct net_listener_options options = {.stream.tls = gateway->tls,
                                                 .max_connections = gateway->max_connections};
    const char *wanted = addr ? addr : GW_DEFAULT_ADDRESS;
    struct net_address address;
    peg_status status;

    if (strcmp(wanted, GW_ACTIVATED) == 0) {
        status = listen_activated(gateway, &options, reterr);
    } else {
        status = gw_auth_check_listen(peg__str(wanted), gw_auth_asks(node->auth), gateway->insecure,
                                      reterr);
        if (!status)
            status = grpc_server_listen(node->server, peg__str(wanted), &options, &address, reterr);
        if (!status)
            net_address_format(&address, gateway->address);
    }
    if (!status) {
        atomic_store(&gateway->node.address, gateway->address);
        gw_node_announce(node);
    }
    if (!status && gateway->admin_addr && !gateway->admin_server)
        status = listen_admin(gateway, reterr);
    if (!status)
        gw_event_log_write(node->log, PEG_LOG_INFO, GW_EVENT_START,
                           GW_FIELDS(gw_field_text("address", gateway->address),
                                     gw_field_text("registry", node->name),
                                     gw_field_text("store", node->store_kind),
                                     gw_field_number("threads", node->n_loops)));
    return status;
}

static bool is_hurried(void *user)
{
    const peg_gateway *gateway = (const peg_gateway *)user;
    uint64_t n;

    return read(gateway->stop_fd, &n, sizeof(n)) == sizeof(n);
}

peg_status peg_gateway_drain(peg_gateway *gateway, peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    bool is_clean;

    gw_event_log_write(node->log, PEG_LOG_INFO, GW_EVENT_DRAIN,
                       GW_FIELDS(gw_field_number("drain_ms", node->drain_ms)));
    grpc_health_shut_down(gateway->health);
    is_clean = gw_node_drain(node, gateway->states, node->drain_ms, is_hurried, gateway);
    gw_event_log_write(node->log, PEG_LOG_INFO, GW_EVENT_STOP,
                       GW_FIELDS(gw_field_text("clean", is_clean ? "yes" : "no")));
    if (is_clean)
        return PEG_OK;
    return peg__fail(reterr, PEG_ETIMEOUT, "E_DRAIN",
                     "some calls had not ended when the gateway stopped: their callers lost the "
                     "connection");
}

peg_status peg_gateway_run(peg_gateway *gateway, const char *addr, peg_error *reterr)
{
    struct pollfd stop = {.fd = gateway->stop_fd, .events = POLLIN};
    peg_status status = gateway->address[0] ? PEG_OK : peg_gateway_listen(gateway, addr, reterr);

    if (status)
        return status;
    while (!is_hurried(gateway))
        poll(&stop, 1, -1);
    return peg_gateway_drain(gateway, reterr);
}

void peg_gateway_stop(peg_gateway *gateway)
{
    const uint64_t once = 1;

    /* Cannot fail: the counter is far from full. */
    if (write(gateway->stop_fd, &once, sizeof(once)) < 0)
        return;
}

static bool is_on_a_loop(const struct gw_node *node)
{
    for (unsigned i = 0; i < node->n_loops; i++)
        if (net_loop_is_here(net_loops_at(node->loops, i)))
            return true;
    return false;
}

/* Otherwise a provider with a stolen token would get calls for as long as it stays attached. */
static peg_status reload_tokens(peg_gateway *gateway, peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    const peg_status status = gw_auth_reload(node->auth, reterr);

    for (unsigned i = 0; !status && i < node->n_loops; i++)
        gw_loop_state_evict_unknown(&gateway->states[i], !is_on_a_loop(node));
    return status;
}

peg_status peg_gateway_reload(peg_gateway *gateway, peg_error *reterr)
{
    struct gw_node *node = &gateway->node;
    peg_status status = gw_event_log_reopen(node->log, reterr);
    peg_status next = reload_tokens(gateway, status ? NULL : reterr);

    /* A log that cannot be opened is no reason to let in whose token was taken out. */
    if (!status)
        status = next;
    next = gateway->tls ? net_tls_config_reload(gateway->tls, status ? NULL : reterr) : PEG_OK;
    if (!status)
        status = next;
    next = gateway->redis ? bus_redis_hub_reload(gateway->redis, status ? NULL : reterr) : PEG_OK;
    if (!status)
        status = next;
    gw_event_log_write(node->log, status ? PEG_LOG_ERROR : PEG_LOG_INFO, GW_EVENT_RELOAD,
                       GW_FIELDS(gw_field_text("result", status ? "failed" : "ok")));
    return status;
}

const char *peg_gateway_address(const peg_gateway *gateway)
{
    return gateway->address;
}
