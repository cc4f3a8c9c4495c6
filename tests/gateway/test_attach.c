/* SPDX-License-Identifier: Apache-2.0 */

/* Attach streams of a whole gateway, and what ends them. */

#include "t.h"

#include <stdlib.h>

#include "gateway/access/tokens.h"
#include "gateway_world.h"

/* ---- who asks ---------------------------------------------------------------------------------
 */

static struct {
    char folder[64];
    char file[96];
    char anna[GW_TOKEN_TEXT];
    char ben[GW_TOKEN_TEXT];
} tokens;

static void make_tokens(void)
{
    snprintf(tokens.folder, sizeof(tokens.folder), "/tmp/peg-attach-XXXXXX");
    CHECK(mkdtemp(tokens.folder) != NULL);
    snprintf(tokens.file, sizeof(tokens.file), "%s/tokens", tokens.folder);
    CHECK_INT(gw_token_new(tokens.file, peg__str("anna"), tokens.anna, NULL), PEG_OK);
    CHECK_INT(gw_token_new(tokens.file, peg__str("ben"), tokens.ben, NULL), PEG_OK);
}

static void drop_tokens(void)
{
    unlink(tokens.file);
    rmdir(tokens.folder);
}

static void show(struct grpc_metadata *metadata, struct peg__arena *arena, const char *token)
{
    char value[GW_TOKEN_TEXT + 8];

    snprintf(value, sizeof(value), "Bearer %s", token);
    if (grpc_metadata_add(metadata, arena, peg__str("authorization"), peg__str(value), NULL))
        abort();
}

static peg_str ask_as(const char *token, unsigned method, const void *request)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};

    show(&metadata, &arena, token);
    grpc_answer_free(&g.answer);
    g.answer = (struct grpc_answer){.message = NULL};
    if (grpc_call_wait(g.channel, &pegboard_v1_registry_methods[method], request, &options,
                       &g.answer, &g.error))
        T_FAIL("not asked: %s", g.error.message);
    peg__arena_free(&arena);
    return answer_name();
}

static peg_str register_as(const char *token)
{
    struct req req = {0};

    req_init(&req, "x");
    return ask_as(token, PEGBOARD_V1_REGISTRY_REGISTER, &req.msg);
}

static peg_str unregister_as(const char *token)
{
    Pegboard__V1__UnregisterRequest request = PEGBOARD__V1__UNREGISTER_REQUEST__INIT;

    request.name = req_text("x");
    return ask_as(token, PEGBOARD_V1_REGISTRY_UNREGISTER, &request);
}

/* Asks for the tool: CallTool waits for its end, StartTool does not. */
static peg_str call_as(const char *token, unsigned method)
{
    Pegboard__V1__CallToolRequest request = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;

    request.toolset = req_text("x");
    request.tool = req_text("get");
    request.payload = req_bytes("{\"city\":\"Rome\"}");
    return ask_as(token, method, &request);
}

/* ---- who provides -----------------------------------------------------------------------------
 */

static struct stream attached;
/* The call that it was handed last. */
static char handed[128];
static char route[64];
static bool lists_it; /* in its Hello */

static void print_attached(struct stream *stream, const void *message)
{
    const Pegboard__V1__AttachResponse *frame = message;

    switch (frame->frame_case) {
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME:
        stream_say(stream, "welcome", "");
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING:
        stream_say(stream, "ping", strrchr(frame->ping->ping_id, '/'));
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL:
        snprintf(handed, sizeof(handed), "%s", frame->call->call_id);
        snprintf(route, sizeof(route), "%.*s", (int)frame->call->route.len,
                 (const char *)frame->call->route.data);
        stream_say(stream, "call", frame->call->tool);
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK:
        stream_say(stream, "ack", "");
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAIN:
        stream_say(stream, "drain", "");
        break;
    case PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED:
        stream_say(stream, "offered", frame->offered->revision ? "ok" : frame->offered->error);
        break;
    default:
        stream_say(stream, "frame", "");
    }
}

static void attach_now(void *token)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;
    Pegboard__V1__RunningCall call = PEGBOARD__V1__RUNNING_CALL__INIT;
    Pegboard__V1__RunningCall *running[] = {&call};

    call.call_id = handed;
    call.attempt = 1;
    call.tool = req_text("get");
    call.route = req_bytes(route);
    hello.running = running;
    hello.n_running = lists_it;
    show(&metadata, &arena, token);
    hello.toolset = req_text("x");
    hello.incarnation = req_text("incarnation-1");
    hello.credits = 1;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    frame.hello = &hello;
    if (pegboard_v1_registry_attach_call(g.channel, &options, &stream_events, &attached,
                                         &attached.rpc, NULL) ||
        pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
    peg__arena_free(&arena);
}

static void answer_now(void *arg)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;

    (void)arg;
    result.call_id = handed;
    result.attempt = 1;
    result.chunk = req_bytes("1");
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT;
    frame.result = &result;
    if (pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
}

static void pong_now(void *ping_id)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__ProviderPong pong = PEGBOARD__V1__PROVIDER_PONG__INIT;

    pong.ping_id = ping_id;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG;
    frame.pong = &pong;
    if (pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
}

static unsigned count(const char *words)
{
    unsigned n;

    pthread_mutex_lock(&attached.lock);
    n = t_count(attached.text, words);
    pthread_mutex_unlock(&attached.lock);
    return n;
}

static void await_count(const char *words, unsigned n)
{
    for (unsigned i = 0; i < 60000 && count(words) < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_INT(count(words), n);
}

/* Anna has registered the toolset, and provides it. */
static void open_with_anna(int64_t ping_interval_ms)
{
    make_tokens();
    world_open_with(&(peg_gateway_config){PEG_GATEWAY_CONFIG_INIT, .threads = 2, .drain_ms = 60000,
                                          .ping_interval_ms = ping_interval_ms,
                                          .missed_ping_threshold = 1000, .token_file = tokens.file,
                                          .log_file = "/dev/null"});
    CHECK_STR(register_as(tokens.anna), "ok");
    stream_init(&attached, print_attached);
    on_client(attach_now, tokens.anna);
    stream_await(&attached, "ping");
}

static void shut(void)
{
    stream_free(&attached);
    world_shut();
    drop_tokens();
}

/* ---- an unregistered toolset ------------------------------------------------------------------
 */

TEST(a_provider_whose_toolset_was_unregistered_does_not_serve_the_next_owners)
{
    open_with_anna(20);
    CHECK_STR(unregister_as(tokens.anna), "ok");
    stream_await(&attached, "end NOT_FOUND");
    CHECK_STR(register_as(tokens.ben), "ok");
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_CALL_TOOL), "service_unavailable");
    CHECK_INT(count("call get"), 0);
    shut();
}

/* Did none come while many were due? */
static bool is_without_pings(void)
{
    const struct timespec while_many_are_due = {.tv_nsec = 200000000};
    const unsigned n_pings = count("ping");

    nanosleep(&while_many_are_due, NULL);
    return count("ping") == n_pings;
}

TEST(an_unregistered_provider_finishes_what_it_runs_and_gets_no_more_pings)
{
    unsigned n_tries = 0;

    open_with_anna(20);
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "ok");
    stream_await(&attached, "call get");
    CHECK_STR(unregister_as(tokens.anna), "ok");
    while (!is_without_pings()) /* what was sent before arrives */
        CHECK(++n_tries < 100);
    CHECK_INT(count("end "), 0);
    on_client(answer_now, NULL);
    stream_await(&attached, "end NOT_FOUND");
    shut();
}

/* ---- a gateway that drains --------------------------------------------------------------------
 */

static void *drain(void *arg)
{
    peg_status *status = arg;

    *status = peg_gateway_drain(g.gateway, NULL);
    return NULL;
}

TEST(a_provider_that_loses_its_stream_while_the_gateway_drains_finishes_what_it_runs)
{
    pthread_t thread;
    peg_status status = PEG_EIO;

    open_with_anna(20);
    CHECK_STR(call_as(tokens.anna, PEGBOARD_V1_REGISTRY_START_TOOL), "ok");
    stream_await(&attached, "call get");
    CHECK_INT(pthread_create(&thread, NULL, drain, &status), 0);
    stream_await(&attached, "drain");
    stream_cancel(&attached);
    stream_free(&attached);

    lists_it = true;
    for (unsigned i = 0; i < 30000; i++) { /* the gateway hears of the break a little later */
        stream_init(&attached, print_attached);
        on_client(attach_now, tokens.anna);
        stream_await(&attached, " ");
        if (count("welcome"))
            break;
        stream_free(&attached);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    lists_it = false;
    stream_await(&attached, "drain");
    on_client(answer_now, NULL);
    pthread_join(thread, NULL);
    CHECK_INT(status, PEG_OK);
    stream_await(&attached, "end UNAVAILABLE");
    shut();
}

/* It would come back with a registration. */
TEST(a_provider_whose_toolset_was_unregistered_is_not_asked_to_come_back_elsewhere)
{
    pthread_t thread;
    peg_status status = PEG_EIO;

    open_with_anna(20);
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "ok");
    stream_await(&attached, "call get");
    CHECK_STR(unregister_as(tokens.anna), "ok");
    CHECK_INT(pthread_create(&thread, NULL, drain, &status), 0);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* while others would be asked */
    CHECK_INT(count("drain"), 0);
    on_client(answer_now, NULL);
    stream_await(&attached, "end NOT_FOUND");
    pthread_join(thread, NULL);
    CHECK_INT(status, PEG_OK);
    shut();
}

/* ---- other schemas ----------------------------------------------------------------------------
 */

static peg_str register_with(const char *version, const char *schema)
{
    struct req req = {0};

    req_empty(&req, "x");
    req.msg.version = req_text(version);
    req_tool(&req, "get", schema);
    return ask_as(tokens.anna, PEGBOARD_V1_REGISTRY_REGISTER, &req.msg);
}

TEST(a_provider_is_not_well_until_it_answers_a_ping_that_is_younger_than_its_schemas)
{
    bool is_started = false;

    open_with_anna(3600000);
    CHECK_STR(register_with("2.0.0", REQ_SCHEMA), "ok");
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "ok");
    stream_await(&attached, "call get");
    CHECK_INT(count("ping "), 1);
    on_client(answer_now, NULL);

    CHECK_STR(register_with("2.0.0", "{}"), "ok");
    stream_await(&attached, "ping /2");
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "service_unavailable");
    CHECK(answer_says("since its schemas changed"));
    on_client(pong_now, req_text("x/1"));
    CHECK_STR(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "service_unavailable");
    on_client(pong_now, req_text("x/2"));
    for (unsigned i = 0; i < 1000 && !is_started; i++) /* the pong goes to all loops */
        is_started = peg__str_is(call_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL), "ok");
    CHECK(is_started);
    await_count("call get", 2);
    on_client(answer_now, NULL);
    await_count("ack", 2);
    stream_cancel(&attached);
    shut();
}

/* ---- other tools ------------------------------------------------------------------------------
 */

static const struct req *offered;

static void offer_now(void *arg)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Offer offer = PEGBOARD__V1__OFFER__INIT;

    (void)arg;
    offer.registration = peg__unconst(&offered->msg);
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER;
    frame.offer = &offer;
    if (attached.rpc && pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
}

static void offer_tool(const char *toolset, const char *name, const char *schema)
{
    static struct req req;

    req = (struct req){0};
    req_empty(&req, toolset);
    req_tool(&req, name, schema);
    offered = &req;
    on_client(offer_now, NULL);
}

static peg_str start_tool(const char *tool)
{
    Pegboard__V1__CallToolRequest request = PEGBOARD__V1__CALL_TOOL_REQUEST__INIT;

    request.toolset = req_text("x");
    request.tool = req_text(tool);
    request.payload = req_bytes("{\"city\":\"Rome\"}");
    return ask_as(tokens.ben, PEGBOARD_V1_REGISTRY_START_TOOL, &request);
}

TEST(a_provider_offers_other_tools_on_the_stream_that_it_has)
{
    open_with_anna(3600000);
    CHECK_STR(start_tool("more"), "not_found");
    offer_tool("", "more", REQ_SCHEMA);
    stream_await(&attached, "offered ok");
    CHECK_STR(start_tool("get"), "not_found");
    CHECK_STR(start_tool("more"), "ok");
    stream_await(&attached, "call more");
    on_client(answer_now, NULL);
    stream_await(&attached, "ack");
    CHECK_INT(count("ping "), 1);
    stream_cancel(&attached);
    shut();
}

TEST(an_offer_that_cannot_be_registered_changes_nothing)
{
    open_with_anna(3600000);
    offer_tool("x", "more", "{\"type\":1}");
    stream_await(&attached, "offered validation_error");
    offer_tool("y", "more", REQ_SCHEMA);
    await_count("offered validation_error", 2);
    CHECK_STR(start_tool("get"), "ok");
    stream_await(&attached, "call get");
    on_client(answer_now, NULL);
    stream_await(&attached, "ack");
    stream_cancel(&attached);
    shut();
}

/* Else one stream could have any number of registrations under way. */
TEST(a_provider_that_does_not_wait_for_the_end_of_its_offer_is_cut)
{
    open_with_anna(3600000);
    offer_tool("x", "more", REQ_SCHEMA);
    offer_tool("x", "most", REQ_SCHEMA);
    for (unsigned i = 0; i < 100; i++)
        offer_tool("x", i % 2 ? "more" : "most", REQ_SCHEMA);
    stream_await(&attached, "end INVALID_ARGUMENT");
    shut();
}
