/* SPDX-License-Identifier: Apache-2.0 */

/* A whole gateway, asked by those who run it: pegboard.v1.Admin, and HTTP/1.1 beside the RPCs. */

#include "t.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text/str.h"
#include "gateway/access/tokens.h"
#include "grpc/client/client.h"
#include "net/address.h"
#include "pegboard/gateway.h"
#include "pegboard/provider.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/wire.h"

struct site {
    peg_gateway *gateway;
    struct net_loop *loop; /* the client's */
    struct grpc_channel *channel;
    struct grpc_answer answer;
    struct peg__arena arena;
    struct grpc_metadata metadata;
    char folder[64];
    char tokens[96];
    char log[96];
    char token[GW_TOKEN_TEXT];
    char text[1 << 16]; /* of the last HTTP answer */
};

static struct site s;

static void make_folder(void)
{
    s = (struct site){0};
    snprintf(s.folder, sizeof(s.folder), "/tmp/peg-admin-XXXXXX");
    CHECK(mkdtemp(s.folder) != NULL);
    snprintf(s.tokens, sizeof(s.tokens), "%s/tokens", s.folder);
    snprintf(s.log, sizeof(s.log), "%s/log", s.folder);
}

static void open_site(peg_gateway_config config, const char *address)
{
    peg_error error;

    config.log_file = s.log;
    CHECK_STATUS(peg_gateway_new(&config, &s.gateway, &error), PEG_OK, error);
    CHECK_STATUS(peg_gateway_listen(s.gateway, address, &error), PEG_OK, error);
    CHECK_STATUS(net_loop_new(&s.loop, &error), PEG_OK, error);
    CHECK_STATUS(net_loop_start(s.loop, &error), PEG_OK, error);
    CHECK_STATUS(grpc_channel_new_wait(s.loop, peg__str(peg_gateway_address(s.gateway)), NULL,
                                       &s.channel, &error),
                 PEG_OK, error);
}

static void close_site(void)
{
    grpc_answer_free(&s.answer);
    peg__arena_free(&s.arena);
    grpc_channel_free_wait(s.channel);
    net_loop_free(s.loop);
    peg_gateway_free(s.gateway);
    unlink(s.tokens);
    unlink(s.log);
    rmdir(s.folder);
}

static void use_token(void)
{
    char header[100];

    snprintf(header, sizeof(header), "Bearer %s", s.token);
    CHECK_INT(
        grpc_metadata_add(&s.metadata, &s.arena, peg__str("authorization"), peg__str(header), NULL),
        PEG_OK);
}

static const void *ask(const struct grpc_method *method, const void *request)
{
    const struct grpc_rpc_options options = {.metadata = &s.metadata, .timeout_ms = 30000};
    peg_error error;

    grpc_answer_free(&s.answer);
    s.answer = (struct grpc_answer){0};
    CHECK_STATUS(grpc_call_wait(s.channel, method, request, &options, &s.answer, &error), PEG_OK,
                 error);
    return s.answer.message;
}

static const Pegboard__V1__StatusResponse *ask_status(bool with_toolsets)
{
    Pegboard__V1__StatusRequest request = PEGBOARD__V1__STATUS_REQUEST__INIT;

    request.with_toolsets = with_toolsets;
    return ask(&pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_STATUS], &request);
}

static void check_answer(enum grpc_code code, const char *name)
{
    peg_str got;

    CHECK_INT(s.answer.status.code, code);
    (void)wire_error_from_status(&s.answer.status, &s.arena, &got);
    CHECK_STR(got, name);
}

static void register_weather(void)
{
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    Pegboard__V1__Tool tool = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool *tools[] = {&tool};

    tool.name = peg__unconst("now");
    tool.input_schema.data = peg__unconst("{}");
    tool.input_schema.len = 2;
    request.name = peg__unconst("weather");
    request.tools = tools;
    request.n_tools = 1;
    ask(&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_REGISTER], &request);
    CHECK_STR(s.answer.status.message, "");
    CHECK_INT(s.answer.status.code, GRPC_OK);
}

/* A call that nobody provides for: refused. */
static void call_weather(void)
{
    Pegboard__V1__CallToolRequest request = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;

    request.toolset = peg__unconst("weather");
    request.tool = peg__unconst("now");
    ask(&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_CALL_TOOL], &request);
    CHECK_INT(s.answer.status.code, GRPC_UNAVAILABLE);
}

/* The status of a GET; the body is in s.text. */
static int get(const char *address, const char *path, const char *authorization)
{
    struct net_endpoint endpoint;
    struct net_address at;
    char request[512];
    size_t len = 0;
    ssize_t n;
    int fd;
    int status = 0;

    CHECK_INT(net_endpoint_parse(peg__str(address), &endpoint, NULL), PEG_OK);
    CHECK(net_endpoint_is_numeric(&endpoint, &at));
    fd = socket(at.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, &at.at.any, at.len), 0);
    snprintf(request, sizeof(request),
             "GET %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\n%s%s%s\r\n", path,
             authorization ? "authorization: " : "", authorization ? authorization : "",
             authorization ? "\r\n" : "");
    CHECK_INT(write(fd, request, strlen(request)), strlen(request));
    while ((n = read(fd, s.text + len, sizeof(s.text) - 1 - len)) > 0)
        len += (size_t)n;
    s.text[len] = '\0';
    close(fd);
    CHECK_INT(sscanf(s.text, "HTTP/1.1 %d", &status), 1);
    return status;
}

static const peg_gateway_config plain = {PEG_GATEWAY_CONFIG_INIT, .name = "tools", .threads = 2};

/* ---- Admin ---- */

TEST(status_tells_what_a_node_has_and_does)
{
    const Pegboard__V1__StatusResponse *status;

    make_folder();
    open_site(plain, "127.0.0.1:0");
    register_weather();
    call_weather();
    status = ask_status(true);

    CHECK(status != NULL);
    CHECK_STR(peg__str(status->node->registry), "tools");
    CHECK_STR(peg__str(status->node->version), peg_version());
    CHECK_STR(peg__str(status->node->store), "memory");
    CHECK_STR(peg__str(status->node->bus), "local");
    CHECK_INT(strlen(status->node->id), 16);
    CHECK_INT(status->node->threads, 2);
    CHECK(!status->node->draining);
    CHECK(status->node->started_unix_ms > 0);
    CHECK_INT(status->toolsets, 1);
    CHECK_INT(status->healthy, 0);
    CHECK_INT(status->providers, 0);
    CHECK_INT(status->outcomes->refused, 1);
    CHECK_INT(status->in_flight, 0);
    CHECK(status->connections >= 1);
    CHECK(status->memory_bytes > 0);
    CHECK_INT(status->n_per_toolset, 1);
    CHECK_STR(peg__str(status->per_toolset[0]->toolset->name), "weather");
    CHECK_INT(status->per_toolset[0]->outcomes->refused, 1);
    CHECK_INT(ask_status(false)->n_per_toolset, 0);
    close_site();
}

TEST(nodes_lists_the_one_that_is_asked)
{
    Pegboard__V1__NodesRequest request = PEGBOARD__V1__NODES_REQUEST__INIT;
    const Pegboard__V1__NodesResponse *nodes;

    make_folder();
    open_site(plain, "127.0.0.1:0");
    nodes = ask(&pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_NODES], &request);
    CHECK_INT(nodes->n_nodes, 1);
    CHECK_STR(peg__str(nodes->nodes[0]->registry), "tools");
    close_site();
}

static void read_log(char *text, size_t size)
{
    FILE *file;
    size_t n;

    grpc_channel_free_wait(s.channel);
    s.channel = NULL;
    s.gateway = peg_gateway_free(s.gateway);
    file = fopen(s.log, "r");
    CHECK(file);
    n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
}

static void *run(void *user)
{
    *(peg_status *)user = peg_gateway_run(s.gateway, NULL, NULL);
    return NULL;
}

TEST(a_node_is_drained_by_whoever_runs_it)
{
    Pegboard__V1__DrainNodeRequest request = PEGBOARD__V1__DRAIN_NODE_REQUEST__INIT;
    const struct grpc_method *drain = &pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_DRAIN_NODE];
    peg_status status = PEG_EIO;
    pthread_t thread;
    char text[8000];

    make_folder();
    open_site(plain, "127.0.0.1:0");
    pthread_create(&thread, NULL, run, &status);
    request.node_id = peg__unconst("0000000000000000");
    ask(drain, &request);
    check_answer(GRPC_NOT_FOUND, "not_found");
    request.node_id = peg__unconst("");
    request.drain_ms = -1;
    ask(drain, &request);
    check_answer(GRPC_INVALID_ARGUMENT, "invalid_range");

    request.drain_ms = 5000;
    ask(drain, &request);
    CHECK_INT(s.answer.status.code, GRPC_OK);
    pthread_join(thread, NULL);
    CHECK_INT(status, PEG_OK);
    read_log(text, sizeof(text));
    CHECK(strstr(text, "event=drain via=admin principal=local peer=127.0.0.1:"));
    close_site();
}

/* An address of this machine that is not loopback. */
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

TEST(others_may_not_administer_even_with_a_token)
{
    peg_gateway_config config = plain;
    char address[64];

    if (!find_own_address(address))
        SKIP("this machine has no other address");
    make_folder();
    CHECK_INT(gw_token_new(s.tokens, peg__str("ci"), s.token, NULL), PEG_OK);
    config.token_file = s.tokens;
    open_site(config, address);
    use_token();
    register_weather();
    ask_status(true);
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    close_site();
}

static void make_token(const char *name, bool is_admin)
{
    const struct gw_new_token add = {
        .name = peg__str(name), .token = s.token, .is_admin = is_admin};

    CHECK_INT(gw_token_make(s.token, NULL), PEG_OK);
    CHECK_INT(gw_token_add(s.tokens, &add, NULL), PEG_OK);
}

static void ask_nodes(void)
{
    Pegboard__V1__NodesRequest request = PEGBOARD__V1__NODES_REQUEST__INIT;

    ask(&pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_NODES], &request);
}

static void ask_drain(void)
{
    Pegboard__V1__DrainNodeRequest request = PEGBOARD__V1__DRAIN_NODE_REQUEST__INIT;

    ask(&pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_DRAIN_NODE], &request);
}

static void ask_unregister(const char *toolset)
{
    Pegboard__V1__AdminUnregisterRequest request = PEGBOARD__V1__ADMIN_UNREGISTER_REQUEST__INIT;

    request.toolset = peg__unconst(toolset);
    ask(&pegboard_v1_admin_methods[PEGBOARD_V1_ADMIN_UNREGISTER], &request);
}

static void unregister_own(const char *toolset)
{
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;

    request.name = peg__unconst(toolset);
    ask(&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_UNREGISTER], &request);
}

TEST(an_ordinary_token_on_this_machine_is_no_operator_and_told_so)
{
    peg_gateway_config config = plain;
    char text[8000];

    make_folder();
    make_token("ci", false);
    config.token_file = s.tokens;
    open_site(config, "127.0.0.1:0");
    ask_status(false);
    check_answer(GRPC_UNAUTHENTICATED, "unauthenticated");
    use_token();
    register_weather();
    ask_status(false);
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    CHECK(
        memmem(s.answer.status.message.ptr, s.answer.status.message.len, "token new --admin", 17));
    ask_nodes();
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    ask_drain();
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    ask_unregister("weather"); /* not even its own */
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    CHECK_INT(get(peg_gateway_address(s.gateway), "/healthz", NULL), 200);

    read_log(text, sizeof(text));
    CHECK(strstr(text, "level=warn event=refused error=permission_denied "
                       "rpc=/pegboard.v1.Admin/Status principal=token:ci peer=127.0.0.1:"));
    CHECK(strstr(text, "rpc=/pegboard.v1.Admin/Nodes principal=token:ci peer=127.0.0.1:"));
    CHECK(strstr(text, "rpc=/pegboard.v1.Admin/DrainNode principal=token:ci peer=127.0.0.1:"));
    CHECK(strstr(text, "rpc=/pegboard.v1.Admin/Unregister principal=token:ci peer=127.0.0.1:"));
    close_site();
}

TEST(a_token_that_is_marked_admin_is_an_operator)
{
    peg_gateway_config config = plain;

    make_folder();
    make_token("ops", true);
    config.token_file = s.tokens;
    open_site(config, "127.0.0.1:0");
    use_token();
    CHECK(ask_status(false) != NULL);
    close_site();
}

TEST(on_its_unix_socket_the_gateways_user_needs_no_token_to_administer)
{
    peg_gateway_config config = plain;
    char address[100];
    char text[8000];

    make_folder();
    make_token("ci", false);
    config.token_file = s.tokens;
    snprintf(address, sizeof(address), "unix:%s/s", s.folder);
    open_site(config, address);
    CHECK(ask_status(false) != NULL);
    ask_unregister("nothing");
    check_answer(GRPC_NOT_FOUND, "not_found");
    unregister_own("nothing"); /* all else asks for a token as ever */
    check_answer(GRPC_UNAUTHENTICATED, "unauthenticated");
    read_log(text, sizeof(text));
    close_site();
}

/* ---- taking out ---- */

TEST(an_operator_takes_out_what_others_have_registered_and_it_is_told_who_did)
{
    peg_gateway_config config = plain;
    char text[8000];

    make_folder();
    make_token("ci", false);
    config.token_file = s.tokens;
    use_token();
    make_token("ops", true);
    open_site(config, "127.0.0.1:0");
    register_weather();

    s.metadata = (struct grpc_metadata){0};
    use_token();
    unregister_own("weather");
    check_answer(GRPC_PERMISSION_DENIED, "permission_denied");
    ask_unregister("nobody");
    check_answer(GRPC_NOT_FOUND, "not_found");
    ask_unregister("not a name");
    check_answer(GRPC_INVALID_ARGUMENT, "validation_error");
    ask_unregister("weather");
    CHECK_INT(s.answer.status.code, GRPC_OK);
    CHECK_INT(ask_status(false)->toolsets, 0);

    read_log(text, sizeof(text));
    CHECK(strstr(text, "event=register toolset=weather owner=token:ci tools=1 revision="));
    CHECK(strstr(text, "level=warn event=refused error=permission_denied "
                       "rpc=/pegboard.v1.Registry/Unregister toolset=weather principal=token:ops "
                       "peer=127.0.0.1:"));
    CHECK(strstr(text, "level=info event=unregister toolset=weather principal=token:ops "
                       "peer=127.0.0.1:"));
    CHECK(strstr(text, " via=admin\n"));
    close_site();
}

/* A store that takes nothing out until it is told to. */
static peg_store kept;
static sem_t may_go_on;

static peg_status put_later(void *self, const peg_store_record *record, peg_error *reterr)
{
    if (record->is_removed)
        sem_wait(&may_go_on);
    return kept.put(self, record, reterr);
}

static bool log_has(const char *words)
{
    char text[8000] = "";
    FILE *file = fopen(s.log, "r");

    CHECK(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return strstr(text, words);
}

TEST(who_takes_out_a_toolset_and_leaves_before_the_answer_is_told_all_the_same)
{
    const struct grpc_method *method =
        &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_UNREGISTER];
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;
    const struct grpc_rpc_options options = {.timeout_ms = 50};
    peg_gateway_config config = plain;
    peg_store slow;

    sem_init(&may_go_on, 0, 0);
    CHECK_INT(peg_memory_store_new(&kept, NULL), PEG_OK);
    slow = kept;
    slow.put = put_later;
    config.store = &slow;
    make_folder();
    open_site(config, "127.0.0.1:0");
    register_weather();
    request.name = peg__unconst("weather");
    grpc_answer_free(&s.answer);
    s.answer = (struct grpc_answer){0};
    CHECK_INT(grpc_call_wait(s.channel, method, &request, &options, &s.answer, NULL), PEG_OK);
    CHECK_INT(s.answer.status.code, GRPC_DEADLINE_EXCEEDED);
    while (!log_has("event=unregister toolset=weather principal=local peer=127.0.0.1:"))
        sched_yield();
    CHECK(log_has("outcome=\"unknown: the caller did not wait\""));
    sem_post(&may_go_on);
    close_site();
    sem_destroy(&may_go_on);
}

/* ---- HTTP/1.1 ---- */

TEST(probes_and_metrics_are_answered_beside_the_rpcs)
{
    make_folder();
    open_site(plain, "127.0.0.1:0");
    register_weather();
    call_weather();

    CHECK_INT(get(peg_gateway_address(s.gateway), "/healthz", NULL), 200);
    CHECK(strstr(s.text, "\r\n\r\nok\n") != NULL);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/readyz", NULL), 200);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/nonsense", NULL), 404);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics?x=1", NULL), 200);
    CHECK(strstr(s.text, "text/plain; version=0.0.4; charset=utf-8") != NULL);
    CHECK(strstr(s.text, "pegboard_toolset_healthy{toolset=\"weather\"} 0\n") != NULL);
    CHECK(strstr(s.text, "pegboard_calls_total{toolset=\"weather\",outcome=\"refused\"} 1\n"));
    CHECK(strstr(s.text, "registry=\"tools\"} 1\n") != NULL);
    CHECK(strstr(s.text, "pegboard_toolsets 1\n") != NULL);
    close_site();
}

TEST(metrics_need_a_token_where_there_are_tokens_and_probes_do_not)
{
    peg_gateway_config config = plain;
    char header[100];

    make_folder();
    CHECK_INT(gw_token_new(s.tokens, peg__str("ci"), s.token, NULL), PEG_OK);
    config.token_file = s.tokens;
    open_site(config, "127.0.0.1:0");
    CHECK_INT(get(peg_gateway_address(s.gateway), "/healthz", NULL), 200);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics", NULL), 401);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics", "Bearer peg_x"), 401);
    snprintf(header, sizeof(header), "Bearer %s", s.token);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics", header), 200);
    close_site();
}

TEST(whoever_is_not_known_is_counted_and_told_without_what_was_shown)
{
    peg_gateway_config config = plain;
    char header[100];
    char text[8000];

    make_folder();
    CHECK_INT(gw_token_new(s.tokens, peg__str("ci"), s.token, NULL), PEG_OK);
    config.token_file = s.tokens;
    open_site(config, "127.0.0.1:0");
    ask_status(false);
    check_answer(GRPC_UNAUTHENTICATED, "unauthenticated");
    CHECK_INT(grpc_metadata_add(&s.metadata, &s.arena, peg__str("authorization"),
                                peg__str("Bearer peg_guessed"), NULL),
              PEG_OK);
    ask_status(false);
    check_answer(GRPC_UNAUTHENTICATED, "unauthenticated");
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics", NULL), 401);
    snprintf(header, sizeof(header), "Bearer %s", s.token);
    CHECK_INT(get(peg_gateway_address(s.gateway), "/metrics", header), 200);
    CHECK(strstr(s.text, "pegboard_unauthenticated_total 3\n") != NULL);

    read_log(text, sizeof(text));
    CHECK(strstr(text, "level=warn event=refused error=unauthenticated "
                       "rpc=/pegboard.v1.Admin/Status peer=127.0.0.1:"));
    CHECK(strstr(text, "event=refused error=unauthenticated rpc=/metrics peer=127.0.0.1:"));
    CHECK(!strstr(text, "guessed"));
    close_site();
}

TEST(a_registry_has_a_name_that_may_be_part_of_a_key)
{
    static const char *const bad[] = {"", "a b", "a\nb", "{a}", "a\"b", "\xc3\xa9"};
    peg_gateway *gateway = NULL;
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .name = bad[i]};

        CHECK_INT(peg_gateway_new(&config, &gateway, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_GATEWAY_CONFIG");
        CHECK_STR(peg__str(error.where), "/name");
        CHECK(strstr(error.message, "A-Z a-z 0-9 _ . : / -"));
        CHECK(!gateway);
    }
}

TEST(search_has_a_language_that_is_known)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .search_language = "klingon"};
    peg_gateway *gateway = NULL;
    peg_error error;

    CHECK_INT(peg_gateway_new(&config, &gateway, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_GATEWAY_CONFIG");
    CHECK_STR(peg__str(error.where), "/search_language");
    CHECK(strstr(error.message, "use one of none, arabic"));
}

TEST(a_keep_alive_of_no_use_is_refused)
{
    static const int64_t bad[] = {-1, 99};
    peg_gateway *gateway = NULL;
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .keepalive_ms = bad[i]};

        CHECK_INT(peg_gateway_new(&config, &gateway, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.where), "/keepalive_ms");
    }
}

TEST(bounds_of_connections_of_no_use_are_refused)
{
    const peg_gateway_config little = {PEG_GATEWAY_CONFIG_INIT, .max_held_bytes = (1 << 20) - 1};
    const peg_gateway_config many = {PEG_GATEWAY_CONFIG_INIT, .max_connections = 1000001};
    peg_gateway *gateway = NULL;
    peg_error error;

    CHECK_INT(peg_gateway_new(&little, &gateway, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.where), "/max_held_bytes");
    CHECK_INT(peg_gateway_new(&many, &gateway, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.where), "/max_connections");
}

static void do_nothing(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg__str(""));
}

static peg_registry *make_tools(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "nothing", .description = "does it",
                              .run = do_nothing};
    peg_registry *tools;
    peg_tool *tool;

    CHECK_INT(peg_registry_new(NULL, 0, &tools, NULL), PEG_OK);
    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(tools, tool, false, NULL), PEG_OK);
    peg_tool_unref(tool);
    return tools;
}

TEST(a_provider_that_is_refused_is_told)
{
    peg_gateway_config config = plain;
    peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "weather"};
    char token[GW_TOKEN_TEXT];
    char text[8000];
    peg_registry *tools = make_tools();
    peg_error error;

    make_folder();
    CHECK_INT(gw_token_new(s.tokens, peg__str("ci"), s.token, NULL), PEG_OK);
    CHECK_INT(gw_token_new(s.tokens, peg__str("bob"), token, NULL), PEG_OK);
    config.token_file = s.tokens;
    open_site(config, "127.0.0.1:0");
    use_token();
    register_weather();
    options.address = peg_gateway_address(s.gateway);
    options.token = token;
    CHECK_INT(peg_provider_serve(tools, &options, &error), PEG_EHOST);
    peg_registry_unref(tools);

    read_log(text, sizeof(text));
    CHECK(strstr(text, "level=warn event=refused error=permission_denied "
                       "rpc=/pegboard.v1.Registry/Attach toolset=weather principal=token:bob "
                       "peer=127.0.0.1:"));
    close_site();
}

TEST(the_log_tells_the_start_and_the_end)
{
    FILE *file;
    char text[2000] = "";

    make_folder();
    open_site(plain, "127.0.0.1:0");
    CHECK_INT(peg_gateway_drain(s.gateway, NULL), PEG_OK);
    grpc_channel_free_wait(s.channel);
    s.channel = NULL;
    s.gateway = peg_gateway_free(s.gateway);
    file = fopen(s.log, "r");
    CHECK(file && fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK(strstr(text, "level=info event=start address=127.0.0.1:") != NULL);
    CHECK(strstr(text, "event=stop clean=yes") != NULL);
    close_site();
}
