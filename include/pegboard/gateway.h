/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_GATEWAY_H
#define PEGBOARD_GATEWAY_H

/*
 * A gateway node inside any program: a catalog of toolsets, found by name or by words, and calls to
 * them through one address, over gRPC.
 *
 *   peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .name = "tools"};
 *   peg_gateway *gateway;
 *
 *   status = peg_gateway_new(&config, &gateway, &error);      opens the store, starts the loops
 *   status = peg_gateway_run(gateway, "127.0.0.1:9090", &error);   serves until it is stopped
 *   gateway = peg_gateway_free(gateway);
 *
 * Link with libpegboard-gateway.
 */

#include <pegboard/log.h>
#include <pegboard/store.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_gateway peg_gateway;

/* Everything is copied; each 0 or NULL means the default told in brackets. */
typedef struct peg_gateway_config {
    size_t size; /* set by PEG_GATEWAY_CONFIG_INIT */
    /* Of the registry: nodes of one name on one Redis are one. Written as that of a toolset,
     * [A-Za-z0-9_.:/-]{1,256} [registry]. */
    const char *name;
    const char *redis; /* host:port, redis://, rediss://, unix:// [this node alone] */
    const char *redis_password;
    const char *redis_ca;   /* rediss://: PEM, who may have signed its certificate [the system's] */
    const char *redis_cert; /* rediss://: PEM, shown to it, with redis_key [none] */
    const char *redis_key;
    /* Where toolsets are kept; the gateway takes it over, also when peg_gateway_new() fails
     * [in memory]. */
    const peg_store *store;
    int64_t ping_interval_ms;       /* [10,000] */
    unsigned missed_ping_threshold; /* [3]: unhealthy after (threshold + 1) * interval */
    int64_t result_mapping_ttl_ms;  /* results are kept for those who ask again [300,000] */
    unsigned threads;               /* event loops [1] */
    int64_t drain_ms; /* what runs may finish for so long when it is stopped [30,000] */
    int64_t lease_ms; /* a provider that lost its stream may come back for [10,000] */
    /* A connection from which nothing came for so long is pinged, and closed if it does not answer
     * within 20,000 [60,000]. */
    int64_t keepalive_ms;
    /* Bytes that all connections hold together: messages that are not whole, answers that wait,
     * headers. Above that the largest holder's connection is cut. At least 1 MiB [256 MiB]. */
    size_t max_held_bytes;
    unsigned max_connections; /* of one address; more wait to be accepted [20,000] */
    unsigned max_queue;       /* calls that wait for one provider; more are overloaded [10,000] */
    size_t max_payload_bytes; /* arguments of a call; 1 KiB to 4 MiB, what peg_run_options takes of
                               * them by default [2 MiB] */
    int64_t call_timeout_ms;  /* of a call that names none [30,000]; at most a day */
    /* Whose words search compares by their stems: a language of libstemmer, or "none" [english]. */
    const char *search_language;

    /* Authentication. Without any of these all programs on this machine may call, and no others. */
    const char *token_file; /* hashed bearer tokens, see pegboard-token(1) */
    const char *tls_cert;   /* PEM, with tls_key */
    const char *tls_key;
    const char *tls_client_ca; /* PEM: clients need a certificate that it signed */
    bool insecure;             /* listens beyond this machine without asking who calls */
    /* Names of client certificates that are operators', between commas; needs tls_client_ca
     * [none]. Other operators have a token that is marked `admin`, or come by a unix socket. */
    const char *admin_names;

    const char *admin_addr;  /* /metrics and /healthz there too [none] */
    const char *log_file;    /* [standard error]; opened again by peg_gateway_reload() */
    bool takes_library_log;  /* what peg_log_set() would hear goes there too */
    peg_log_level log_level; /* [PEG_LOG_INFO] */

    /* MCP clients, at /mcp and /mcp/TOOLSET. */
    const char *mcp_hosts;     /* names that they use for it, and pages of which may, between commas
                                * [its addresses and localhost; any name where callers are asked] */
    unsigned mcp_search_above; /* with more tools than this they get three that search [never] */

    /* Whose answers clients of goa_ai_registry.Registry understand: 1 (goa-ai v0.32 to v0.47.2) or
     * 2 (v0.47.3 to v0.56.6) [1]. */
    unsigned goa_generation;

    /* Origins of web pages that may use the HTTP API, such as "https://app.example", between commas
     * [none but its own]. */
    const char *cors_origin;

    /* The URL of the OAuth 2.0 authorization server that gives MCP clients tokens of this gateway:
     * 401 and /.well-known/oauth-protected-resource name it [none]. */
    const char *mcp_authorization_server;

    /* Spans of calls for OpenTelemetry go to this collector, by OTLP over HTTP with protobuf:
     * http://HOST:PORT or https://HOST:PORT; /v1/traces is added [none]. */
    const char *otlp_endpoint;
    /* Which part of the calls that come without a trace context begin a trace, up to 1; below 0:
     * none. The others are sampled as their caller says [1]. */
    double otlp_sample;

    bool no_console; /* the page at / is left out */
} peg_gateway_config;
#define PEG_GATEWAY_CONFIG_INIT .size = sizeof(peg_gateway_config)

/* Opens what it needs and listens nowhere. PEG_EINVAL (E_GATEWAY_CONFIG, `where` names the field;
 * E_OTLP), PEG_EPARSE (E_REDIS_URL); PEG_EIO and others (E_REDIS_..., E_JOIN): this Redis cannot be
 * used, and why; PEG_ESTATE (E_PROTOCOL_VERSION): a live node of the registry speaks another
 * protocol between nodes; what the store fails with. */
PEG_API PEG_MUST_USE peg_status peg_gateway_new(const peg_gateway_config *config,
                                                peg_gateway **ret_gateway, peg_error *reterr);
/* Not while it runs. */
PEG_API peg_gateway *peg_gateway_free(peg_gateway *gateway);

/*
 * Listens and serves until peg_gateway_stop(), then drains: takes no new call, finishes what runs
 * within drain_ms, closes. `addr` is "host:port", ":port", "unix:PATH", or NULL for
 * "127.0.0.1:9090"; port 0 takes a free one. PEG_EINVAL (E_LISTEN_INSECURE): beyond this machine
 * without authentication. PEG_ETIMEOUT (E_DRAIN): it served, and something did not end in time.
 */
PEG_API PEG_MUST_USE peg_status peg_gateway_run(peg_gateway *gateway, const char *addr,
                                                peg_error *reterr);
/* The two halves, for hosts with a main loop of their own. */
PEG_API PEG_MUST_USE peg_status peg_gateway_listen(peg_gateway *gateway, const char *addr,
                                                   peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_gateway_drain(peg_gateway *gateway, peg_error *reterr);
/* Any thread; async-signal-safe. Ends peg_gateway_run(). Said twice: does not wait for what runs.
 */
PEG_API void peg_gateway_stop(peg_gateway *gateway);
/* Any thread: opens the log file again, reads tokens and certificates again. What cannot be read
 * leaves the old ones in force. Streams of names that have no token any more end; from a hook that
 * runs on a thread of the gateway, soon after. */
PEG_API peg_status peg_gateway_reload(peg_gateway *gateway, peg_error *reterr);
/* Where it listens, "127.0.0.1:40213"; "" before. Borrowed. */
PEG_API const char *peg_gateway_address(const peg_gateway *gateway);

#ifdef __cplusplus
}
#endif
#endif
