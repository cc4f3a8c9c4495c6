/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ACCESS_ACCESS_H
#define PEG_GATEWAY_ACCESS_ACCESS_H

#include "grpc/server/server.h"
#include "net/http/http.h"
#include "pegboard/gateway.h"

/*
 * The principal of a call: the name of a bearer token, of a client certificate, or `local` on a
 * listener of this machine without authentication. The interceptor finds it before any handler sees
 * the call, and rejects calls that have none.
 */

enum gw_principal_from { GW_FROM_LOCAL, GW_FROM_TOKEN, GW_FROM_CERTIFICATE, GW_FROM_ANYWHERE };

struct gw_principal {
    peg_str name; /* "token:ci", "cert:agent.example", "local", "anyone" (--insecure) */
    enum gw_principal_from from;
    bool is_admin; /* its token is marked so, or its certificate's name is among --admin-names */
};

/* Of a call behind the interceptor: never NULL; lives as long as the call. */
const struct gw_principal *gw_call_principal(const struct grpc_call *call);

/*
 * Who may call:
 *
 *   tokens are configured   `authorization: Bearer peg_...` must name one; a wrong one is refused
 *                           even where a certificate would do, and so are two
 *   certificates are        the name in the client's certificate, unless a token was shown
 *   neither                 callers on this machine are `local`; others are refused, or `anyone`
 *                           with --insecure
 *
 * Open to all are grpc.health.v1 and reflection, which tell nothing about toolsets, and /healthz
 * and /readyz. /metrics names toolsets, and asks like every RPC.
 */

struct gw_auth;
struct gw_event_log;

struct gw_auth_options {
    const char *token_file;   /* NULL: no tokens */
    bool has_certificates;    /* clients' certificates are verified */
    bool is_insecure;         /* everybody may call, from anywhere */
    const char *admin_names;  /* of operators' certificates, between commas; NULL: none */
    struct gw_event_log *log; /* of rejected callers, never of their credentials; NULL: none */
};

/* As gw_tokens_new(). `loops` outlives it, the options are copied. */
peg_status gw_auth_new(struct net_loops *loops, const struct gw_auth_options *options,
                       struct gw_auth **ret_auth, peg_error *reterr);
/* After the server. */
struct gw_auth *gw_auth_free(struct gw_auth *auth);
/* Any thread that may block: as gw_tokens_reload(). Calls that run keep their principal; streams
 * that would go on for ever are asked about with gw_auth_knows(). */
peg_status gw_auth_reload(struct gw_auth *auth, peg_error *reterr);
/* Any thread. Would that principal still be let in? Only tokens can be revoked. A NULL auth knows
 * all. */
bool gw_auth_knows(const struct gw_auth *auth, peg_str principal);
#define GW_TOKEN_GONE                                                                              \
    "the token of this stream was revoked: ask the operator of the gateway for another one"
/* Are callers authenticated? */
bool gw_auth_asks(const struct gw_auth *auth);

/* For grpc_server_options; lives as long as the auth. */
struct grpc_interceptor gw_auth_interceptor(struct gw_auth *auth);

/* Any thread. May this request, which came in on the port of the RPCs, see what RPCs would show?
 * As for them a token does, or a certificate, and a wrong token is refused also with a certificate.
 * Adds the name of its principal, if it has one. */
bool gw_auth_takes_http(struct gw_auth *auth, const struct net_http_request *request,
                        struct peg__buf *principal);

/* The same for a request that acts: its principal is always named, `local` and `anyone` too. */
bool gw_auth_admits_http(struct gw_auth *auth, const struct net_http_request *request,
                         struct peg__buf *principal);

/* Any thread. Counts and logs such a request that was refused. */
void gw_auth_note_http(struct gw_auth *auth, const struct net_http_request *request);
/* Any thread. How many calls and requests were refused because their sender is not known. */
uint64_t gw_auth_n_refused(const struct gw_auth *auth);

/* Operators of the gateway:
 *   - callers with a token that is marked `admin`, or a certificate among --admin-names
 *   - on a unix socket the gateway's own user and root, who could as well end it, without a token
 *     also where tokens are asked for
 *   - without authentication, every caller on this machine
 *
 * A caller with an ordinary token is none, wherever it comes from. */
bool gw_auth_is_operator(const struct grpc_call *call);

/* May a gateway listen there? PEG_EINVAL (E_LISTEN_INSECURE): other machines can reach it, and
 * callers are not authenticated. PEG_EPARSE (E_ADDRESS). */
peg_status gw_auth_check_listen(peg_str address, bool asks, bool is_insecure, peg_error *reterr);
/* The same for --admin-addr, which never authenticates. */
peg_status gw_auth_check_admin(peg_str address, bool is_insecure, peg_error *reterr);

#define GW_DEFAULT_ADDRESS "127.0.0.1:9090"
#define GW_ACTIVATED "systemd" /* instead of an address: sockets that were handed over */

/* Before there are threads, and before the store is made: would a gateway of that config listen on
 * `addr` (NULL: the default), and on its admin_addr? Fails as peg_gateway_listen() would, and takes
 * nothing: somebody else may still be faster. */
peg_status gw_listen_check(const peg_gateway_config *config, const char *addr, peg_error *reterr);

/* May it listen on so many sockets that were handed over? PEG_EINVAL (E_LISTEN,
 * E_LISTEN_INSECURE). */
peg_status gw_listen_check_activated(size_t n_sockets, bool asks, bool is_insecure,
                                     peg_error *reterr);

#endif
