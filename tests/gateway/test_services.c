/* SPDX-License-Identifier: Apache-2.0 */

/* Registration and discovery of pegboard.v1, over a socket. */

#include "base/limits.h"
#include "t.h"

#include "gateway_world.h"

/* ---- Register, Unregister ----------------------------------------------------------------------
 */

TEST(a_toolset_is_registered_and_told_of)
{
    struct req req = {0};
    Pegboard__V1__GetToolsetRequest get = PEGBOARD__V1__GET_TOOLSET_REQUEST__INIT;
    const Pegboard__V1__RegisterResponse *registered;
    const Pegboard__V1__GetToolsetResponse *got;

    world_open();
    req_init(&req, "weather");
    req.msg.version = req_text("1.2.0");
    req_tag(&req, "eu");
    registered = ASK(REGISTER, &req.msg);
    CHECK(registered != NULL);
    CHECK_STR(peg__str(registered->stream_id), "toolset:weather:requests");
    CHECK_INT(strlen(registered->registered_at), strlen("2026-01-01T00:00:00Z"));
    CHECK(registered->revision > 0);

    get.name = req_text("weather");
    got = ASK(GET_TOOLSET, &get);
    CHECK(got != NULL);
    CHECK_STR(peg__str(got->toolset->name), "weather");
    CHECK_STR(peg__str(got->toolset->version), "1.2.0");
    CHECK_STR(peg__str(got->toolset->tags[0]), "eu");
    CHECK_STR(peg__str(got->toolset->owner), "local");
    CHECK_INT(got->toolset->tool_count, 1);
    CHECK_INT(got->toolset->kind, PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_ATTACHED);
    CHECK_INT(got->toolset->health->state, PEGBOARD__V1__HEALTH__STATE__STATE_UNHEALTHY);
    CHECK(strstr(got->toolset->health->reason, "no healthy providers for toolset \"weather\""));
    CHECK_INT(got->n_tools, 1);
    CHECK_STR(
        peg__strn((const char *)got->tools[0]->input_schema.data, got->tools[0]->input_schema.len),
        REQ_SCHEMA);
    CHECK_STR(peg__str(got->stream_id), "toolset:weather:requests");
    world_shut();
}

TEST(registrations_that_are_wrong_get_a_name_each)
{
    struct req req = {0};

    world_open();
    req_empty(&req, "x");
    CHECK_STR(register_req(&req), "missing_field");
    req_tool(&req, "t", "{\"type\":3}");
    CHECK_STR(register_req(&req), "validation_error");
    CHECK_INT(g.answer.status.code, GRPC_INVALID_ARGUMENT);
    CHECK(answer_says("invalid tool schema: tool \"t\": input schema: "));
    req.tools[0].input_schema = req_bytes("{}");
    req.msg.version = req_text("one");
    CHECK_STR(register_req(&req), "invalid_pattern");
    req.msg.version = req_text("");
    req.msg.name = req_text("a*b");
    CHECK_STR(register_req(&req), "validation_error");
    req.msg.name = req_text("a\x01");
    CHECK_STR(register_req(&req), "validation_error");
    req.msg.kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
    CHECK_STR(register_req(&req), "service_unavailable");
    CHECK(answer_says("REDIS_URL") && answer_says("attach"));
    world_shut();
}

TEST(unregistering_says_what_was_not_there)
{
    world_open();
    register_named("a", NULL);

    CHECK_STR(unregister_named("a"), "ok");
    CHECK_STR(unregister_named("a"), "not_found");
    CHECK(answer_says("toolset \"a\" not found"));
    CHECK_STR(unregister_named(""), "missing_field");
    CHECK(answer_says("\"name\" is missing from message: give the name of a toolset"));
    CHECK_STR(unregister_named("a b"), "validation_error");
    world_shut();
}

TEST(a_pong_is_always_answered_well)
{
    Pegboard__V1__PongRequest request = PEGBOARD__V1__PONG_REQUEST__INIT;

    world_open();
    register_named("a", NULL);
    CHECK(ASK(PONG, &request) != NULL);
    request.ping_id = req_text("nobody/1");
    request.toolset = req_text("a");
    CHECK(ASK(PONG, &request) != NULL);
    request.toolset = req_text("unknown \x02");
    CHECK(ASK(PONG, &request) != NULL);
    world_shut();
}

/* ---- ListToolsets ------------------------------------------------------------------------------
 */

static char listed[512];

static peg_str list(Pegboard__V1__ListToolsetsRequest *request, uint32_t *ret_total)
{
    const Pegboard__V1__ListToolsetsResponse *response = ASK(LIST_TOOLSETS, request);
    size_t len = 0;
    static char token[300];

    listed[0] = '\0';
    if (!response)
        return answer_name();
    for (size_t i = 0; i < response->n_toolsets && len < sizeof(listed) - 100; i++)
        len += (size_t)snprintf(listed + len, sizeof(listed) - len, "%s ",
                                response->toolsets[i]->name);
    snprintf(token, sizeof(token), "%s", response->next_page_token);
    request->page_token = token;
    if (ret_total)
        *ret_total = response->total;
    return peg__str(listed);
}

TEST(toolsets_are_listed_by_name_in_pages)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    uint32_t total = 0;

    world_open();
    CHECK_STR(list(&request, &total), "");
    CHECK_INT(total, 0);
    for (const char *name = "c\0a\0e\0b\0d\0"; *name; name += 2)
        register_named(name, NULL);

    request.page_size = 2;
    CHECK_STR(list(&request, &total), "a b ");
    CHECK_INT(total, 5);
    CHECK_STR(list(&request, &total), "c d ");
    unregister_named("d"); /* the token still means what it meant */
    CHECK_STR(list(&request, &total), "e ");
    CHECK_INT(total, 4);
    CHECK_STR(peg__str(request.page_token), "");
    world_shut();
}

TEST(a_page_that_ends_with_the_last_toolset_has_no_token)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    uint32_t total = 0;

    world_open();
    for (const char *name = "b\0d\0f\0"; *name; name += 2)
        register_named(name, NULL);
    register_named("bb", NULL);

    request.page_size = 3;
    CHECK_STR(list(&request, NULL), "b bb d ");
    CHECK_STR(peg__str(request.page_token), "d");
    request.page_size = 1;
    CHECK_STR(list(&request, NULL), "f ");
    CHECK_STR(peg__str(request.page_token), "");
    request.page_size = 4;
    CHECK_STR(list(&request, NULL), "b bb d f ");
    CHECK_STR(peg__str(request.page_token), "");
    request.page_size = PEG_LIMIT_GATEWAY_PAGE;
    CHECK_STR(list(&request, &total), "b bb d f ");
    CHECK_STR(peg__str(request.page_token), "");
    CHECK_INT(total, 4);
    world_shut();
}

TEST(a_token_that_names_no_toolset_has_its_place_all_the_same)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    uint32_t total = 0;

    world_open();
    for (const char *name = "b\0d\0f\0"; *name; name += 2)
        register_named(name, NULL);

    request.page_token = req_text("a");
    CHECK_STR(list(&request, NULL), "b d f ");
    request.page_token = req_text("b0");
    CHECK_STR(list(&request, NULL), "d f ");
    request.page_token = req_text("e");
    CHECK_STR(list(&request, NULL), "f ");
    request.page_token = req_text("f");
    CHECK_STR(list(&request, &total), "");
    CHECK_INT(total, 3);
    CHECK_STR(peg__str(request.page_token), "");
    request.page_token = req_text("zz");
    CHECK_STR(list(&request, NULL), "");
    world_shut();
}

/* More than are looked at in one turn of the loop. */
enum { MANY = 700 };

static void register_many(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];

        snprintf(name, sizeof(name), "t%03u", i);
        register_named(name, i % 2 ? "odd" : "even");
    }
}

TEST(pages_of_a_tag_have_each_toolset_once)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    char odd[] = "odd";
    char *tags[] = {odd};
    const Pegboard__V1__ListToolsetsResponse *response;
    unsigned next = 1;
    unsigned n_pages = 0;
    uint32_t total = 0;

    world_open();
    register_many();
    request.tags = tags;
    request.n_tags = 1;
    request.page_size = MANY / 2 / 5;
    do {
        list(&request, &total);
        response = g.answer.message;
        CHECK(response != NULL);
        CHECK_INT(total, MANY / 2);
        CHECK_INT(response->n_toolsets, MANY / 2 / 5);
        for (size_t i = 0; i < response->n_toolsets; i++, next += 2)
            CHECK_INT(atoi(response->toolsets[i]->name + 1), (int)next);
        n_pages++;
    } while (*request.page_token);
    CHECK_INT(n_pages, 5);
    CHECK_INT(next, MANY + 1);
    world_shut();
}

/* On the client's loop: asks many times at once, and leaves when the first answer comes. */
struct leaver {
    struct net_message message; /* first */
    const Pegboard__V1__ListToolsetsRequest *request;
    struct grpc_rpc *rpcs[64];
    size_t n_running;
    size_t n_answered;
    size_t n_canceled;
    sem_t is_done;
};
enum { LEAVER_RPCS = sizeof(((struct leaver *)0)->rpcs) / sizeof(struct grpc_rpc *) };

static void on_page(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct leaver *leaver = user;

    (void)rpc;
    (void)message;
    for (size_t i = 0; i < LEAVER_RPCS && leaver->n_answered == 0; i++)
        if (leaver->rpcs[i] != rpc)
            grpc_rpc_cancel(leaver->rpcs[i]);
    leaver->n_answered++;
}

static void on_left(struct grpc_rpc *rpc, const struct grpc_status *status,
                    const struct grpc_metadata *trailers, void *user)
{
    struct leaver *leaver = user;

    (void)trailers;
    leaver->n_canceled += status->code == GRPC_CANCELLED;
    grpc_rpc_unref(rpc);
    if (--leaver->n_running == 0)
        sem_post(&leaver->is_done);
}

static void ask_and_leave(struct net_message *message)
{
    static const struct grpc_rpc_events events = {.on_message = on_page, .on_end = on_left};
    struct leaver *leaver = (struct leaver *)message;

    for (; leaver->n_running < LEAVER_RPCS; leaver->n_running++) {
        struct grpc_rpc **rpc = &leaver->rpcs[leaver->n_running];

        if (grpc_rpc_unary(g.channel,
                           &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_LIST_TOOLSETS],
                           leaver->request, NULL, &events, leaver, rpc, &g.error))
            T_FAIL("not asked: %s", g.error.message);
        grpc_rpc_ref(*rpc);
    }
}

TEST(whoever_leaves_while_tags_are_looked_at_is_forgotten)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    struct leaver leaver = {.message = {.fn = ask_and_leave}, .request = &request};
    char odd[] = "odd";
    char *tags[] = {odd};
    uint32_t total = 0;

    world_open();
    register_many();
    request.tags = tags;
    request.n_tags = 1;
    sem_init(&leaver.is_done, 0, 0);
    net_loop_post(g.loop, &leaver.message);
    while (sem_wait(&leaver.is_done) != 0)
        ;
    CHECK(leaver.n_answered > 0);
    CHECK_INT(leaver.n_answered + leaver.n_canceled, LEAVER_RPCS);
    request.page_size = 1;
    CHECK_STR(list(&request, &total), "t001 ");
    CHECK_INT(total, MANY / 2);
    sem_destroy(&leaver.is_done);
    world_shut();
}

TEST(tags_are_filtered_by_all_of_them)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    struct req req = {0};
    char eu[] = "eu";
    char fast[] = "fast";
    char *tags[] = {eu, fast};

    world_open();
    register_named("a", "eu");
    register_named("b", "fast");
    req_init(&req, "c");
    req_tag(&req, "fast");
    req_tag(&req, "eu");
    register_req(&req);

    request.tags = tags;
    request.n_tags = 1;
    CHECK_STR(list(&request, NULL), "a c ");
    request.n_tags = 2;
    CHECK_STR(list(&request, NULL), "c ");
    eu[0] = 'E';
    CHECK_STR(list(&request, NULL), "");
    world_shut();
}

TEST(lists_that_ask_too_much_are_refused)
{
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;

    world_open();
    request.page_size = PEG_LIMIT_GATEWAY_PAGE + 1;
    CHECK_STR(list(&request, NULL), "invalid_range");
    request.page_size = 0;
    request.page_token = req_text("a b");
    CHECK_STR(list(&request, NULL), "validation_error");
    world_shut();
}

TEST(a_page_ends_before_it_is_too_large_for_clients)
{
    enum { N = 250, LEN = PEG_LIMIT_GATEWAY_DESCRIPTION * 4 };
    Pegboard__V1__ListToolsetsRequest request = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    static char text[LEN + 1];
    size_t n = 0;
    unsigned n_pages = 0;

    world_open();
    for (size_t i = 0; i < LEN; i += 4)
        memcpy(text + i, "\xF0\x9F\x98\x80", 4);
    for (unsigned i = 0; i < N; i++) {
        struct req req = {0};
        char name[16];

        snprintf(name, sizeof(name), "t%03u", i);
        req_init(&req, name);
        req.msg.description = text;
        CHECK_STR(register_req(&req), "ok");
    }
    request.page_size = 1000;
    do {
        list(&request, NULL);
        CHECK_STR(answer_name(), "ok");
        n += ((const Pegboard__V1__ListToolsetsResponse *)g.answer.message)->n_toolsets;
        n_pages++;
    } while (*request.page_token);
    CHECK_INT(n, N);
    CHECK_INT(n_pages, 2);
    world_shut();
}

/* ---- GetToolset --------------------------------------------------------------------------------
 */

TEST(getting_what_is_not_there_says_so)
{
    Pegboard__V1__GetToolsetRequest get = PEGBOARD__V1__GET_TOOLSET_REQUEST__INIT;
    static char name[PEG_LIMIT_NAME_BYTES + 2];

    world_open();
    CHECK(!ASK(GET_TOOLSET, &get));
    CHECK_STR(answer_name(), "missing_field");
    get.name = req_text("nope");
    CHECK(!ASK(GET_TOOLSET, &get));
    CHECK_STR(answer_name(), "not_found");
    CHECK_INT(g.answer.status.code, GRPC_NOT_FOUND);
    CHECK(answer_says("toolset \"nope\" not found"));
    memset(name, 'x', PEG_LIMIT_NAME_BYTES + 1);
    get.name = name;
    CHECK(!ASK(GET_TOOLSET, &get));
    CHECK_STR(answer_name(), "invalid_length");
    world_shut();
}

/* ---- Search ------------------------------------------------------------------------------------
 */

TEST(toolsets_are_found_by_words)
{
    Pegboard__V1__SearchRequest request = PEGBOARD__V1__SEARCH_REQUEST__INIT;
    struct req req = {0};
    const Pegboard__V1__SearchResponse *response;

    world_open();
    req_empty(&req, "mail");
    req_tool(&req, "send_letter", "{}");
    register_req(&req);
    register_named("weather", NULL);
    request.query = req_text("letters");
    response = ASK(SEARCH, &request);

    CHECK(response != NULL);
    CHECK_INT(response->total, 1);
    CHECK_INT(response->n_hits, 1);
    CHECK_STR(peg__str(response->hits[0]->toolset->name), "mail");
    CHECK_STR(peg__str(response->hits[0]->tools[0]), "send_letter");
    CHECK(response->hits[0]->score > 0);
    CHECK(response->hits[0]->toolset->health != NULL);
    world_shut();
}

TEST(searches_that_are_wrong_get_a_name_each)
{
    Pegboard__V1__SearchRequest request = PEGBOARD__V1__SEARCH_REQUEST__INIT;
    static char query[PEG_LIMIT_GATEWAY_QUERY + 2];

    world_open();
    CHECK(!ASK(SEARCH, &request));
    CHECK_STR(answer_name(), "invalid_length");
    memset(query, 'x', PEG_LIMIT_GATEWAY_QUERY + 1);
    request.query = query;
    CHECK(!ASK(SEARCH, &request));
    CHECK_STR(answer_name(), "invalid_length");
    query[PEG_LIMIT_GATEWAY_QUERY] = '\0';
    CHECK(ASK(SEARCH, &request) != NULL);
    request.limit = PEG_LIMIT_GATEWAY_PAGE + 1;
    CHECK(!ASK(SEARCH, &request));
    CHECK_STR(answer_name(), "invalid_range");
    world_shut();
}
