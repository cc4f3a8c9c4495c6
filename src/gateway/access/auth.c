/* SPDX-License-Identifier: Apache-2.0 */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/access/tokens.h"
#include "gateway/telemetry/event_log.h"
#include "grpc/server/server.h"
#include "net/address.h"
#include "net/listener.h"
#include "wire/wire.h"

enum { CACHE_LINE = 64 };

/* Owned. Each loop has a memo of its own, on cache lines of its own. */
struct gw_auth {
    struct gw_tokens *tokens; /* NULL: none */
    bool has_certificates;
    bool is_insecure;
    char *admin_names;        /* or NULL */
    struct gw_event_log *log; /* or NULL */
    atomic_uint_fast64_t n_refused;
    struct net_loops *loops;
    unsigned n_loops;
    struct loop_memo {
        struct gw_token_memo memo;
        char apart[CACHE_LINE];
    } * memos;
};

static const char principal_key; /* its address is what interceptors and handlers share */

static const struct gw_principal local = {.name = PEG_LIT("local"), .from = GW_FROM_LOCAL};
static const struct gw_principal anyone = {.name = PEG_LIT("anyone"), .from = GW_FROM_ANYWHERE};

/* ---- its life ---- */

static bool copy_admin_names(struct gw_auth *auth, const char *names)
{
    const size_t size = names ? strlen(names) + 1 : 0;

    auth->admin_names = size ? (char *)peg__alloc(size) : NULL;
    if (auth->admin_names)
        memcpy(auth->admin_names, names, size);
    return !size || auth->admin_names;
}

peg_status gw_auth_new(struct net_loops *loops, const struct gw_auth_options *options,
                       struct gw_auth **ret_auth, peg_error *reterr)
{
    struct gw_auth *auth = peg__alloc_zero(1, sizeof(*auth));
    peg_status status = PEG_OK;

    if (!auth)
        return peg__fail_nomem(reterr);
    auth->has_certificates = options->has_certificates;
    auth->is_insecure = options->is_insecure;
    auth->log = options->log;
    auth->loops = loops;
    auth->n_loops = net_loops_len(loops);
    auth->memos = peg__alloc_zero(auth->n_loops, sizeof(*auth->memos));
    if (!auth->memos || !copy_admin_names(auth, options->admin_names))
        status = peg__fail_nomem(reterr);
    if (!status && options->token_file)
        status = gw_tokens_new(options->token_file, &auth->tokens, reterr);
    if (status) {
        gw_auth_free(auth);
        return status;
    }
    *ret_auth = auth;
    return PEG_OK;
}

struct gw_auth *gw_auth_free(struct gw_auth *auth)
{
    if (!auth)
        return NULL;
    gw_tokens_free(auth->tokens);
    peg__free(auth->admin_names);
    peg__free(auth->memos);
    peg__free(auth);
    return NULL;
}

peg_status gw_auth_reload(struct gw_auth *auth, peg_error *reterr)
{
    return auth->tokens ? gw_tokens_reload(auth->tokens, reterr) : PEG_OK;
}

bool gw_auth_asks(const struct gw_auth *auth)
{
    return auth->tokens || auth->has_certificates;
}

static const char token_kind[] = "token:";

bool gw_auth_knows(const struct gw_auth *auth, peg_str principal)
{
    const peg_str kind = peg__str(token_kind);

    return !auth || !auth->tokens || !peg__str_starts(principal, kind) ||
           gw_tokens_have_name(auth->tokens, peg__str_from(principal, kind.len));
}

/* ---- one call ---- */

static void fail_call(struct grpc_call *call, enum wire_error error, const char *words)
{
    struct grpc_status status;

    wire_error_status(error, peg__str(words), grpc_call_max_status_bytes(call),
                      grpc_call_arena(call), &status);
    grpc_call_finish(call, &status);
}

/* Somebody may be trying names, or has a token that was taken away: the operator should
 * see it. The log does not show the token. */
static void log_rejected(struct gw_auth *auth, peg_str rpc, const char *peer)
{
    atomic_fetch_add_explicit(&auth->n_refused, 1, memory_order_relaxed);
    gw_event_log_write(auth->log, PEG_LOG_WARN, GW_EVENT_REFUSED,
                       GW_FIELDS(gw_field_text("error", wire_error_name(WIRE_UNAUTHENTICATED)),
                                 gw_field_str("rpc", rpc), gw_field_text("peer", peer)));
}

static void reject_call(struct gw_auth *auth, struct grpc_call *call, const char *words)
{
    log_rejected(auth, peg__str(grpc_call_method(call)->path), grpc_call_peer(call));
    fail_call(call, WIRE_UNAUTHENTICATED, words);
}

static void set_principal(struct grpc_call *call, const struct gw_principal *principal)
{
    if (grpc_call_put(call, &principal_key, peg__unconst(principal)) != PEG_OK)
        fail_call(call, WIRE_OVERLOADED, "the gateway is out of memory: try again later");
}

/* "token:ci": the name is copied, because tokens may be read again while the call runs. */
static void set_named_principal(struct grpc_call *call, enum gw_principal_from from, peg_str name,
                                bool is_admin)
{
    const char *kind = from == GW_FROM_TOKEN ? token_kind : "cert:";
    const size_t kind_len = strlen(kind);
    struct gw_principal *principal =
        peg__arena_alloc(grpc_call_arena(call), sizeof(*principal) + kind_len + name.len + 1);
    char *text;

    if (!principal) {
        fail_call(call, WIRE_OVERLOADED, "the gateway is out of memory: try again later");
        return;
    }
    text = (char *)(principal + 1);
    memcpy(text, kind, kind_len);
    memcpy(text + kind_len, name.ptr, name.len);
    text[kind_len + name.len] = '\0';
    principal->name = peg__strn(text, kind_len + name.len);
    principal->from = from;
    principal->is_admin = is_admin;
    grpc_call_authenticate(call, principal->name);
    set_principal(call, principal);
}

/* The scheme in any case of its letters, one space, the token. Empty: it is something else. */
static peg_str read_bearer(peg_str header)
{
    static const char scheme[] = "bearer ";
    const size_t n = sizeof(scheme) - 1;

    if (header.len <= n)
        return (peg_str){"", 0};
    for (size_t i = 0; i < n; i++) {
        const char c = header.ptr[i];

        if (peg__to_lower(c) != scheme[i])
            return (peg_str){"", 0};
    }
    return peg__str_from(header, n);
}

/* The loop of a call is one of ours; the loops are few. */
static struct gw_token_memo *memo_of(struct gw_auth *auth, const struct net_loop *loop)
{
    for (unsigned i = 0; i + 1 < auth->n_loops; i++) {
        if (net_loops_at(auth->loops, i) == loop)
            return &auth->memos[i].memo;
    }
    return &auth->memos[auth->n_loops - 1].memo;
}

static void check_token(struct gw_auth *auth, struct grpc_call *call, peg_str header)
{
    const peg_str token = read_bearer(header);
    const struct gw_token_owner *owner =
        token.len ? gw_tokens_find_again(auth->tokens, memo_of(auth, grpc_call_loop(call)), token)
                  : NULL;

    if (owner)
        set_named_principal(call, GW_FROM_TOKEN, peg__str(owner->name), owner->is_admin);
    else
        reject_call(auth, call,
                    token.len ? "this bearer token is not known here: make one with `pegboard "
                                "token new`, or ask its operator"
                              : "the metadata 'authorization' is no bearer token: send "
                                "'Bearer <token>'");
}

static void reject_anonymous(struct gw_auth *auth, struct grpc_call *call)
{
    if (!gw_auth_asks(auth))
        reject_call(auth, call,
                    "this gateway authenticates no other machine: it needs a token file or "
                    "a CA for client certificates");
    else if (!auth->tokens)
        reject_call(auth, call, "this gateway asks for a client certificate: connect with one");
    else
        reject_call(auth, call,
                    "this gateway asks who is calling: send the metadata 'authorization: Bearer "
                    "<token>' with a token from `pegboard token new`");
}

/* What stock tools look at before they know anything. */
static bool is_open(const struct grpc_call *call)
{
    const peg_str path = peg__str(grpc_call_method(call)->path);

    return peg__str_starts(path, peg__str("/grpc.health.")) ||
           peg__str_starts(path, peg__str("/grpc.reflection."));
}

/* A proxy between us and the caller may go by another one than we do. */
static bool has_two_authorizations(const struct grpc_call *call)
{
    const struct grpc_metadata *metadata = grpc_call_metadata(call);
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++)
        n += peg__str_is(metadata->entries[i].key, "authorization");
    return n > 1;
}

/* They could as well end the process. */
static bool is_own_user(const struct grpc_call *call)
{
    uid_t uid;

    return grpc_call_peer_uid(call, &uid) && (uid == 0 || uid == geteuid());
}

static bool is_own_user_of_admin(const struct grpc_call *call)
{
    return peg__str_starts(peg__str(grpc_call_method(call)->path),
                           peg__str("/pegboard.v1.Admin/")) &&
           is_own_user(call);
}

static bool is_admin_name(const struct gw_auth *auth, peg_str name)
{
    peg_str rest = peg__str(auth->admin_names ? auth->admin_names : "");

    while (rest.len) {
        const size_t len = strcspn(rest.ptr, ",");

        if (peg__str_eq(peg__strn(rest.ptr, len), name))
            return true;
        rest = peg__str_from(rest, len < rest.len ? len + 1 : len);
    }
    return false;
}

/* Without a token or a certificate. NULL: none. */
static const struct gw_principal *find_anonymous(const struct gw_auth *auth,
                                                 const struct grpc_call *call)
{
    if (gw_auth_asks(auth))
        return is_own_user_of_admin(call) ? &local : NULL;
    if (grpc_call_peer_is_local(call))
        return &local;
    return auth->is_insecure ? &anyone : NULL;
}

static void authenticate_call(struct grpc_call *call, void *user)
{
    struct gw_auth *auth = user;
    const peg_str header = grpc_metadata_get(grpc_call_metadata(call), "authorization");
    const peg_str certificate = grpc_call_peer_name(call);
    const struct gw_principal *nameless;

    if (is_open(call)) {
        set_principal(call, &anyone);
        return;
    }
    if (has_two_authorizations(call)) {
        reject_call(auth, call, "the metadata 'authorization' is there twice: send it once");
        return;
    }
    if (auth->tokens && header.len) {
        check_token(auth, call, header);
        return;
    }
    if (auth->has_certificates && certificate.len) {
        set_named_principal(call, GW_FROM_CERTIFICATE, certificate,
                            is_admin_name(auth, certificate));
        return;
    }
    nameless = find_anonymous(auth, call);
    if (nameless) {
        grpc_call_authenticate(call, nameless->name);
        set_principal(call, nameless);
    } else
        reject_anonymous(auth, call);
}

struct grpc_interceptor gw_auth_interceptor(struct gw_auth *auth)
{
    return (struct grpc_interceptor){.on_start = authenticate_call, .user = auth};
}

const struct gw_principal *gw_call_principal(const struct grpc_call *call)
{
    const struct gw_principal *principal = grpc_call_get(call, &principal_key);

    return principal ? principal : &anyone;
}

bool gw_auth_is_operator(const struct grpc_call *call)
{
    const struct gw_principal *principal = gw_call_principal(call);

    return principal->is_admin || principal->from == GW_FROM_LOCAL || is_own_user(call);
}

/* ---- beside calls ---- */

bool gw_auth_takes_http(struct gw_auth *auth, const struct net_http_request *request,
                        struct peg__buf *principal)
{
    const peg_str header = net_http_field(request, "authorization");
    struct gw_token_owner owner;
    peg_str token;

    if (!gw_auth_asks(auth))
        return true;
    if (!auth->tokens || !header.len) {
        if (!auth->has_certificates || !request->peer_name.len)
            return false;
        peg__buf_printf(principal, "cert:%.*s", PEG_ARG(request->peer_name));
        return true;
    }
    token = read_bearer(header);
    if (!token.len || !gw_tokens_find(auth->tokens, token, &owner))
        return false;
    peg__buf_printf(principal, "token:%s", owner.name);
    return true;
}

static bool has_two_credentials(const struct net_http_request *request)
{
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields; i++)
        n +=
            request->fields[i].name.len == strlen("authorization") &&
            strncasecmp(request->fields[i].name.ptr, "authorization", strlen("authorization")) == 0;
    return n > 1;
}

bool gw_auth_admits_http(struct gw_auth *auth, const struct net_http_request *request,
                         struct peg__buf *principal)
{
    const struct gw_principal *nameless = request->is_local   ? &local
                                          : auth->is_insecure ? &anyone
                                                              : NULL;

    if (has_two_credentials(request))
        return false;
    if (gw_auth_asks(auth))
        return gw_auth_takes_http(auth, request, principal);
    if (nameless)
        peg__buf_str(principal, nameless->name);
    return nameless != NULL;
}

void gw_auth_note_http(struct gw_auth *auth, const struct net_http_request *request)
{
    log_rejected(auth, request->path, request->peer);
}

uint64_t gw_auth_n_refused(const struct gw_auth *auth)
{
    return atomic_load_explicit(&auth->n_refused, memory_order_relaxed);
}

/* Can other machines reach it? PEG_EPARSE: it is no address; PEG_EINVAL (E_LISTEN): it is a name,
 * on which one cannot listen. */
static peg_status reach_of(peg_str address, bool *ret_is_far, peg_error *reterr)
{
    struct net_endpoint endpoint;
    struct net_address numeric;
    const peg_status status = net_endpoint_parse(address, &endpoint, reterr);

    if (status)
        return status;
    if (!net_endpoint_is_numeric(&endpoint, &numeric))
        return grpc_server_refuse_name(&endpoint, reterr);
    *ret_is_far = !net_address_is_local(&numeric);
    return PEG_OK;
}

static peg_status check_reach(const char *option, peg_str address, bool is_protected,
                              const char *message, peg_error *reterr)
{
    bool is_far = false;
    const peg_status status = reach_of(address, &is_far, reterr);

    if (status || is_protected || !is_far)
        return status;
    return peg__fail(reterr, PEG_EINVAL, "E_LISTEN_INSECURE",
                     "other machines can reach %s'%.*s', %s", option,
                     (int)(address.len < 64 ? address.len : 64), address.ptr, message);
}

peg_status gw_auth_check_listen(peg_str address, bool asks, bool is_insecure, peg_error *reterr)
{
    return check_reach("", address, asks || is_insecure,
                       "and callers are not authenticated: give --token-file (see `pegboard token "
                       "new`) or --tls-client-ca, listen on 127.0.0.1, or set --insecure",
                       reterr);
}

peg_status gw_auth_check_admin(peg_str address, bool is_insecure, peg_error *reterr)
{
    return check_reach("--admin-addr ", address, is_insecure,
                       "which never authenticates: give it an address of 127.0.0.1, and "
                       "let others read /metrics on the main port; or set --insecure",
                       reterr);
}

peg_status gw_listen_check_activated(size_t n_sockets, bool asks, bool is_insecure,
                                     peg_error *reterr)
{
    if (!n_sockets)
        return peg__fail(reterr, PEG_EINVAL, "E_LISTEN",
                         "no socket was handed over (LISTEN_FDS): start it from a socket unit, or "
                         "name an address");
    if (!asks && !is_insecure)
        return peg__fail(reterr, PEG_EINVAL, "E_LISTEN_INSECURE",
                         "callers on the sockets that were handed over are not authenticated: give "
                         "--token-file (see `pegboard token new`) or --tls-client-ca, or set "
                         "--insecure");
    return PEG_OK;
}

/* An address that may be listened on is one that can be read. */
static peg_status try_text(const char *text, peg_error *reterr)
{
    struct net_endpoint endpoint;
    struct net_address address;
    const peg_status status = net_endpoint_parse(peg__str(text), &endpoint, reterr);

    if (status || !net_endpoint_is_numeric(&endpoint, &address))
        return status;
    return net_listen_try(&address, reterr);
}

peg_status gw_listen_check(const peg_gateway_config *config, const char *addr, peg_error *reterr)
{
    const char *wanted = addr ? addr : GW_DEFAULT_ADDRESS;
    const bool asks = config->token_file || config->tls_client_ca;
    const bool is_activated = strcmp(wanted, GW_ACTIVATED) == 0;
    peg_status status;

    if (is_activated)
        status = gw_listen_check_activated(secure_getenv("LISTEN_FDS") ? 1 : 0, asks,
                                           config->insecure, reterr);
    else
        status = gw_auth_check_listen(peg__str(wanted), asks, config->insecure, reterr);
    if (!status && config->admin_addr)
        status = gw_auth_check_admin(peg__str(config->admin_addr), config->insecure, reterr);
    if (!status && !is_activated)
        status = try_text(wanted, reterr);
    if (!status && config->admin_addr)
        status = try_text(config->admin_addr, reterr);
    return status;
}
