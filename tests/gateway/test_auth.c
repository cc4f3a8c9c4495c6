/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../net/certs.h"
#include "gateway/access/access.h"
#include "gateway/access/tokens.h"
#include "grpc/world.h"
#include "wire/wire.h"

/* ---- a server that tells its callers who they are ---- */

static void tell(struct grpc_call *call, const void *message, void *user)
{
    const struct gw_principal *principal = gw_call_principal(call);
    char text[300];

    (void)message;
    (void)user;
    snprintf(text, sizeof(text), "%.*s from=%d operator=%d", PEG_ARG(principal->name),
             (int)principal->from, gw_auth_is_operator(call));
    grpc_call_reply(call, peg__str(text));
}

static const struct grpc_handler handlers[N_METHODS] = {[UNARY] = {.on_message = tell}};

struct office {
    struct world w;
    struct gw_auth *auth;
    char folder[64];
    char tokens[96];
    char token[GW_TOKEN_TEXT];
};

/* As world_start(), but the interceptor needs the loops first. */
static void open_office(struct office *o, const struct gw_auth_options *options,
                        const struct world_setup *setup)
{
    struct grpc_server_options server = {0};
    struct grpc_interceptor interceptor;
    struct net_address at;
    struct world *w = &o->w;
    peg_error error = {.message = ""};

    CHECK_STATUS(net_loops_new(2, &w->loops, &error), PEG_OK, error);
    CHECK_STATUS(gw_auth_new(w->loops, options, &o->auth, &error), PEG_OK, error);
    interceptor = gw_auth_interceptor(o->auth);
    server.interceptors = &interceptor;
    server.n_interceptors = 1;
    CHECK_STATUS(grpc_server_new(w->loops, &server, &w->server, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_add(w->server, &world_service, handlers, NULL, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_listen(w->server,
                                    peg__str(setup->address ? setup->address : "127.0.0.1:0"),
                                    setup->listen, &at, &error),
                 PEG_OK, error);
    net_address_format(&at, w->address);
    CHECK_STATUS(net_loop_new(&w->loop, &error), PEG_OK, error);
    CHECK_STATUS(
        grpc_channel_new(w->loop, peg__str(w->address), setup->channel, &w->channel, &error),
        PEG_OK, error);
    w->guard.fn = world_stuck;
    net_loop_arm(w->loop, &w->guard, net_loop_now_ns(w->loop) + INT64_C(60000000000));
}

static void close_office(struct office *o)
{
    (void)world_start; /* has no place for what needs the loops first */
    world_stop(&o->w);
    o->auth = gw_auth_free(o->auth);
    if (o->folder[0]) {
        unlink(o->tokens);
        rmdir(o->folder);
    }
}

static void make_tokens(struct office *o)
{
    snprintf(o->folder, sizeof(o->folder), "/tmp/peg-auth-XXXXXX");
    CHECK(mkdtemp(o->folder) != NULL);
    snprintf(o->tokens, sizeof(o->tokens), "%s/tokens", o->folder);
    CHECK_INT(gw_token_new(o->tokens, peg__str("ci"), o->token, NULL), PEG_OK);
}

static void make_admin_token(struct office *o, char ret_token[GW_TOKEN_TEXT])
{
    const struct gw_new_token add = {.name = peg__str("ops"), .token = ret_token, .is_admin = true};

    CHECK_INT(gw_token_make(ret_token, NULL), PEG_OK);
    CHECK_INT(gw_token_add(o->tokens, &add, NULL), PEG_OK);
}

/* "message:... end:OK " or how it ended. */
static const char *ask_twice(struct office *o, const char *authorization, const char *second)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    struct answer *answer;

    if (authorization)
        CHECK_INT(grpc_metadata_add(&metadata, &arena, peg__str("authorization"),
                                    peg__str(authorization), NULL),
                  PEG_OK);
    if (second)
        CHECK_INT(
            grpc_metadata_add(&metadata, &arena, peg__str("authorization"), peg__str(second), NULL),
            PEG_OK);
    answer = world_call(&o->w, UNARY, "who am I?", &options);
    peg__arena_free(&arena);
    return answer->code == GRPC_OK ? answer->log : answer->words;
}

static const char *ask(struct office *o, const char *authorization)
{
    return ask_twice(o, authorization, NULL);
}

static struct office o;

TEST(without_authentication_this_machine_is_local)
{
    const struct gw_auth_options options = {0};
    const struct world_setup setup = {0};

    o = (struct office){0};
    open_office(&o, &options, &setup);
    CHECK(!gw_auth_asks(o.auth));
    CHECK_STR(peg__str(ask(&o, NULL)), "headers message:local from=0 operator=1 end:OK ");
    CHECK_STR(peg__str(ask(&o, "Bearer whatever")),
              "headers message:local from=0 operator=1 end:OK ");
    close_office(&o);
}

TEST(a_unix_socket_is_this_machine)
{
    const struct gw_auth_options options = {0};
    struct world_setup setup = {0};
    char address[128];
    char folder[] = "/tmp/peg-auth-XXXXXX";

    CHECK(mkdtemp(folder) != NULL);
    snprintf(address, sizeof(address), "unix:%s/s", folder);
    setup.address = address;
    o = (struct office){0};
    open_office(&o, &options, &setup);
    CHECK_STR(peg__str(ask(&o, NULL)), "headers message:local from=0 operator=1 end:OK ");
    close_office(&o);
    rmdir(folder);
}

TEST(a_token_names_its_caller)
{
    struct gw_auth_options options = {0};
    const struct world_setup setup = {0};
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_office(&o, &options, &setup);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    for (int i = 0; i < 3; i++)
        CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ci from=1 operator=0 end:OK ");
    snprintf(header, sizeof(header), "bEARER %s", o.token);
    CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ci from=1 operator=0 end:OK ");
    close_office(&o);
}

TEST(a_token_that_is_marked_admin_is_an_operators_and_no_other_is)
{
    struct gw_auth_options options = {0};
    const struct world_setup setup = {0};
    char admin[GW_TOKEN_TEXT];
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    make_admin_token(&o, admin);
    options.token_file = o.tokens;
    open_office(&o, &options, &setup);
    for (int i = 0; i < 3; i++) {
        snprintf(header, sizeof(header), "Bearer %s", admin);
        CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ops from=1 operator=1 end:OK ");
        snprintf(header, sizeof(header), "Bearer %s", o.token);
        CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ci from=1 operator=0 end:OK ");
    }
    close_office(&o);
}

TEST(two_authorizations_are_refused_whatever_they_are)
{
    struct gw_auth_options options = {0};
    const struct world_setup setup = {0};
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_office(&o, &options, &setup);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    CHECK(strstr(ask_twice(&o, header, "Bearer other"), "twice") != NULL);
    CHECK(strstr(ask_twice(&o, "Bearer other", header), "twice") != NULL);
    CHECK(strstr(ask_twice(&o, header, header), "twice") != NULL);
    for (unsigned i = 0; i < o.w.n_answers; i++)
        CHECK_INT(o.w.answers[i].code, GRPC_UNAUTHENTICATED);
    close_office(&o);
}

/* ---- unix sockets ---- */

static void open_unix_office(const struct gw_auth_options *options)
{
    struct world_setup setup = {0};
    char address[128];

    snprintf(address, sizeof(address), "unix-abstract:peg-auth-%d", (int)getpid());
    setup.address = address;
    open_office(&o, options, &setup);
}

TEST(on_a_unix_socket_the_gateways_own_user_is_an_operator)
{
    struct gw_auth_options options = {0};
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_unix_office(&options);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ci from=1 operator=1 end:OK ");
    CHECK(strstr(ask(&o, "Bearer wrong"), "not known") != NULL);
    CHECK(strstr(ask(&o, NULL), "authorization: Bearer") != NULL); /* it is no Admin */
    close_office(&o);
}

/* Of this thread alone, which connects; the server's stay what they are. */
static void become(uid_t uid)
{
    CHECK_INT(syscall(SYS_setresuid, (uid_t)-1, uid, (uid_t)-1), 0);
}

TEST(on_a_unix_socket_another_user_is_what_the_token_says)
{
    struct gw_auth_options options = {0};
    char header[100];

    if (geteuid() != 0)
        SKIP("only root can be somebody else");
    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_unix_office(&options);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    become(65534);
    CHECK_STR(peg__str(ask(&o, header)), "headers message:token:ci from=1 operator=0 end:OK ");
    become(0);
    close_office(&o);
}

TEST(whoever_has_no_token_is_told_what_to_do)
{
    struct gw_auth_options options = {0};
    const struct world_setup setup = {0};
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_office(&o, &options, &setup);
    CHECK(strstr(ask(&o, NULL), "authorization: Bearer") != NULL);
    CHECK(strstr(ask(&o, "Basic eDp5"), "no bearer token") != NULL);
    CHECK(strstr(ask(&o, "Bearer"), "no bearer token") != NULL);
    CHECK(strstr(ask(&o, "Bearer peg_wrong"), "not known") != NULL);
    snprintf(header, sizeof(header), "Bearer %s ", o.token);
    header[strlen(header) - 3] ^= 1;
    CHECK(strstr(ask(&o, header), "not known") != NULL);
    for (unsigned i = 0; i < o.w.n_answers; i++) {
        CHECK_INT(o.w.answers[i].code, GRPC_UNAUTHENTICATED);
        CHECK(o.w.answers[i].details_len > 0);
        CHECK_INT(o.w.answers[i].n_messages, 0);
    }
    close_office(&o);
}

TEST(a_token_that_was_taken_away_lets_nobody_in)
{
    struct gw_auth_options options = {0};
    const struct world_setup setup = {0};
    char header[100];
    FILE *file;

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    open_office(&o, &options, &setup);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    CHECK(strstr(ask(&o, header), "token:ci") != NULL);

    file = fopen(o.tokens, "w");
    fclose(file);
    CHECK_INT(gw_auth_reload(o.auth, NULL), PEG_OK);

    CHECK(strstr(ask(&o, header), "not known") != NULL);
    close_office(&o);
}

/* ---- certificates ---- */

static void with_certificates(struct office *office, struct gw_auth_options options,
                              bool client_shows_one, const char *authorization,
                              const char *expected)
{
    struct certs certs;
    struct net_tls_options server = {.is_client_optional = true};
    struct net_tls_options client = {.is_client = true};
    struct net_tls_config *server_tls = NULL;
    struct net_tls_config *client_tls = NULL;
    struct net_listener_options listen = {0};
    struct grpc_channel_options channel = {.tls_host = "localhost"};
    struct world_setup setup = {.listen = &listen, .channel = &channel};

    certs_make(&certs);
    server.cert_file = certs.server_cert;
    server.key_file = certs.server_key;
    server.ca_file = certs.ca;
    client.ca_file = certs.ca;
    client.cert_file = client_shows_one ? certs.client_cert : NULL;
    client.key_file = client_shows_one ? certs.client_key : NULL;
    CHECK_INT(net_tls_config_new(&server, &server_tls, NULL), PEG_OK);
    CHECK_INT(net_tls_config_new(&client, &client_tls, NULL), PEG_OK);
    listen.stream.tls = server_tls;
    channel.tls = client_tls;
    options.has_certificates = true;
    open_office(office, &options, &setup);
    CHECK(strstr(ask(office, authorization), expected) != NULL);
    close_office(office);
    net_tls_config_unref(server_tls);
    net_tls_config_unref(client_tls);
    certs_remove(&certs);
}

TEST(a_certificate_names_its_caller)
{
    o = (struct office){0};
    with_certificates(&o, (struct gw_auth_options){0}, true, NULL,
                      "cert:spiffe://test/client from=2 operator=0");
}

TEST(a_certificate_is_an_operators_only_if_all_of_its_name_is_listed)
{
    static const struct {
        const char *names;
        const char *expected;
    } cases[] = {
        {"spiffe://test/client", "operator=1"},
        {"a,spiffe://test/client,b", "operator=1"},
        {"a,spiffe://test/client", "operator=1"},
        {"spiffe://test/clien", "operator=0"},
        {"spiffe://test/client2,piffe://test/client", "operator=0"},
        {"a,,b,", "operator=0"},
        {"cert:spiffe://test/client", "operator=0"},
        {"SPIFFE://TEST/CLIENT", "operator=0"},
        {"", "operator=0"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        o = (struct office){0};
        with_certificates(&o, (struct gw_auth_options){.admin_names = cases[i].names}, true, NULL,
                          cases[i].expected);
    }
}

TEST(an_ordinary_token_on_an_operators_connection_is_ordinary)
{
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    with_certificates(
        &o, (struct gw_auth_options){.token_file = o.tokens, .admin_names = "spiffe://test/client"},
        true, header, "token:ci from=1 operator=0");
}

TEST(whoever_shows_no_certificate_is_told_so)
{
    o = (struct office){0};
    with_certificates(&o, (struct gw_auth_options){0}, false, NULL,
                      "asks for a client certificate");
}

TEST(a_token_counts_more_than_a_certificate)
{
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    with_certificates(&o, (struct gw_auth_options){.token_file = o.tokens}, true, header,
                      "token:ci from=1");

    o = (struct office){0};
    make_tokens(&o);
    with_certificates(&o, (struct gw_auth_options){.token_file = o.tokens}, true, "Bearer wrong",
                      "not known");
}

/* ---- from elsewhere ---- */

/* An address of this machine that is not loopback, with port 0. */
static bool find_own_address(char ret_address[64])
{
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        char host[48];

        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET ||
            (one->ifa_flags & IFF_LOOPBACK))
            continue;
        if (getnameinfo(one->ifa_addr, sizeof(struct sockaddr_in), host, sizeof(host), NULL, 0,
                        NI_NUMERICHOST) != 0)
            continue;
        snprintf(ret_address, 64, "%s:0", host);
        found = true;
    }
    freeifaddrs(all);
    return found;
}

TEST(others_are_refused_unless_the_gateway_is_insecure)
{
    struct gw_auth_options options = {0};
    struct world_setup setup = {0};
    char address[64];

    if (!find_own_address(address))
        SKIP("this machine has no other address");
    setup.address = address;
    o = (struct office){0};
    open_office(&o, &options, &setup);
    CHECK(strstr(ask(&o, NULL), "authenticates no other machine") != NULL);
    close_office(&o);

    options.is_insecure = true;
    o = (struct office){0};
    open_office(&o, &options, &setup);
    CHECK_STR(peg__str(ask(&o, NULL)), "headers message:anyone from=3 operator=0 end:OK ");
    close_office(&o);
}

TEST(listening_beyond_this_machine_needs_authentication)
{
    static const char *const near[] = {"127.0.0.1:9090", "[::1]:0", "localhost:1", "unix:/x/y",
                                       "127.5.5.5:1"};
    static const char *const far[] = {":9090", "0.0.0.0:9090", "[::]:1", "10.0.0.1:1"};
    peg_error error;

    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        CHECK_INT(gw_auth_check_listen(peg__str(near[i]), false, false, NULL), PEG_OK);
        CHECK_INT(gw_auth_check_admin(peg__str(near[i]), false, NULL), PEG_OK);
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        CHECK_INT(gw_auth_check_listen(peg__str(far[i]), false, false, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_LISTEN_INSECURE");
        CHECK(strstr(error.message, "--insecure") && strstr(error.message, "--token-file"));
        CHECK_INT(gw_auth_check_listen(peg__str(far[i]), true, false, NULL), PEG_OK);
        CHECK_INT(gw_auth_check_listen(peg__str(far[i]), false, true, NULL), PEG_OK);
        CHECK_INT(gw_auth_check_admin(peg__str(far[i]), false, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_LISTEN_INSECURE");
        CHECK(strstr(error.message, "--admin-addr") && !strstr(error.message, "--token-file"));
        CHECK_INT(gw_auth_check_admin(peg__str(far[i]), true, NULL), PEG_OK);
    }
    CHECK_INT(gw_auth_check_listen(peg__str("nonsense"), true, true, &error), PEG_EPARSE);
    CHECK_INT(gw_auth_check_listen(peg__str("example.org:443"), false, false, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_LISTEN");
}

/* ---- what is open ---- */

static const struct grpc_method open_methods[] = {
    {.name = "Check", .path = "/grpc.health.v1.Health/Check"},
    {.name = "Info", .path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"},
    {.name = "Check", .path = "/grpc.healthy.Fake/Check"},
};
static const struct grpc_service open_services[] = {
    {"grpc.health.v1.Health", &open_methods[0], 1, NULL},
    {"grpc.reflection.v1.ServerReflection", &open_methods[1], 1, NULL},
    {"grpc.healthy.Fake", &open_methods[2], 1, NULL},
};

static enum grpc_code ask_method(struct office *office, const struct grpc_method *method)
{
    struct answer *a = &office->w.answers[office->w.n_answers++];

    a->world = &office->w;
    office->w.n_running++;
    CHECK_INT(grpc_rpc_start(office->w.channel, method, NULL, &world_events, a, &a->rpc, NULL),
              PEG_OK);
    CHECK_INT(grpc_rpc_send(a->rpc, peg__str(""), NULL), PEG_OK);
    grpc_rpc_half_close(a->rpc);
    world_run(&office->w);
    return a->code;
}

TEST(health_and_reflection_are_open_to_all_and_nothing_else_is)
{
    struct gw_auth_options options = {0};
    struct grpc_server_options server = {0};
    struct grpc_interceptor interceptor;
    struct net_address at;

    o = (struct office){0};
    make_tokens(&o);
    options.token_file = o.tokens;
    CHECK_INT(net_loops_new(1, &o.w.loops, NULL), PEG_OK);
    CHECK_INT(gw_auth_new(o.w.loops, &options, &o.auth, NULL), PEG_OK);
    interceptor = gw_auth_interceptor(o.auth);
    server.interceptors = &interceptor;
    server.n_interceptors = 1;
    CHECK_INT(grpc_server_new(o.w.loops, &server, &o.w.server, NULL), PEG_OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(grpc_server_add(o.w.server, &open_services[i], &handlers[UNARY], NULL, NULL),
                  PEG_OK);
    CHECK_INT(grpc_server_listen(o.w.server, peg__str("127.0.0.1:0"), NULL, &at, NULL), PEG_OK);
    net_address_format(&at, o.w.address);
    CHECK_INT(net_loop_new(&o.w.loop, NULL), PEG_OK);
    CHECK_INT(grpc_channel_new(o.w.loop, peg__str(o.w.address), NULL, &o.w.channel, NULL), PEG_OK);

    CHECK_INT(ask_method(&o, &open_methods[0]), GRPC_OK);
    CHECK_INT(ask_method(&o, &open_methods[1]), GRPC_OK);
    CHECK_INT(ask_method(&o, &open_methods[2]), GRPC_UNAUTHENTICATED);
    close_office(&o);
}

/* ---- HTTP/1.1 ---- */

static bool takes_as(struct gw_auth *auth, const char *authorization, const char *certificate,
                     const char *principal)
{
    const struct net_http_field field = {PEG_LIT("Authorization"),
                                         peg__str(authorization ? authorization : "")};
    const struct net_http_request request = {
        .method = peg__str("GET"),
        .path = peg__str("/metrics"),
        .peer_name = peg__str(certificate),
        .fields = &field,
        .n_fields = authorization != NULL,
    };
    struct peg__buf name = PEG__BUF(1000);
    const bool takes = gw_auth_takes_http(auth, &request, &name);

    if (principal)
        CHECK_STR(peg__buf_view(&name), principal);
    peg__buf_free(&name);
    return takes;
}

static bool takes(struct gw_auth *auth, const char *authorization, const char *certificate)
{
    return takes_as(auth, authorization, certificate, NULL);
}

TEST(metrics_ask_for_what_rpcs_ask_for)
{
    struct gw_auth_options options = {0};
    struct net_loops *loops = NULL;
    struct gw_auth *auth = NULL;
    char header[100];

    o = (struct office){0};
    make_tokens(&o);
    CHECK_INT(net_loops_new(1, &loops, NULL), PEG_OK);
    CHECK_INT(gw_auth_new(loops, &options, &auth, NULL), PEG_OK);
    CHECK(takes(auth, NULL, ""));
    gw_auth_free(auth);

    options.has_certificates = true;
    CHECK_INT(gw_auth_new(loops, &options, &auth, NULL), PEG_OK);
    CHECK(takes(auth, NULL, "anna"));
    CHECK(takes(auth, "Bearer x", "anna")); /* there are no tokens that it could be one of */
    CHECK(!takes(auth, NULL, ""));
    gw_auth_free(auth);

    options.token_file = o.tokens;
    CHECK_INT(gw_auth_new(loops, &options, &auth, NULL), PEG_OK);
    snprintf(header, sizeof(header), "Bearer %s", o.token);
    CHECK(takes_as(auth, header, "", "token:ci"));
    CHECK(takes_as(auth, NULL, "anna", "cert:anna"));
    CHECK(!takes(auth, NULL, ""));
    CHECK(!takes(auth, "Bearer x", ""));
    CHECK(!takes(auth, "Bearer x", "anna"));
    gw_auth_free(auth);

    options.has_certificates = false; /* a name that nobody vouches for */
    CHECK_INT(gw_auth_new(loops, &options, &auth, NULL), PEG_OK);
    CHECK(!takes(auth, NULL, "anna"));
    gw_auth_free(auth);
    net_loops_free(loops);
    unlink(o.tokens);
    rmdir(o.folder);
}

TORTURE(auth_is_made_or_not_at_all)
{
    struct gw_auth_options options = {0};
    struct net_loops *loops = NULL;
    struct gw_auth *auth = NULL;
    peg_status status = net_loops_new(1, &loops, NULL);

    if (!status) {
        options.has_certificates = true;
        options.admin_names = "anna,ben";
        status = gw_auth_new(loops, &options, &auth, NULL);
    }
    gw_auth_free(auth);
    net_loops_free(loops);
    return status;
}
