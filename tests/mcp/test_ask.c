/* SPDX-License-Identifier: Apache-2.0 */

/* Input from the client while a call runs, in both eras. */

#include "world.h"

#define FORM                                                                                       \
    "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"who?\","       \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}"
#define SAMPLE                                                                                     \
    "{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":5}}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"n\":\"x\"}}"
#define CALL(id, more, capabilities)                                                               \
    M_WITH(id, "tools/call", "\"name\":\"t\",\"arguments\":{\"x\":1}," more, capabilities, "")

static void ask(struct world *w, size_t i, const char *requests)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(requests), NULL, &doc, NULL), PEG_OK);
    mcp_call_ask(w->calls[i], peg_json_root(doc));
}

/* Of the only message. */
static void copy_state(const struct world *w, char ret_state[256])
{
    const char *at;

    CHECK_INT(w->n_sent, 1);
    at = strstr(w->sent[0], "\"requestState\":\"");
    CHECK(at);
    at += strlen("\"requestState\":\"");
    snprintf(ret_state, 256, "%.*s", (int)strcspn(at, "\""), at);
}

/* ---- modern ---- */

TEST(modern_question_ends_the_request_and_a_retry_gets_the_rest)
{
    struct world w;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    CHECK_HAS(&w, 0,
              "\"id\":1,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{"
              "\"a\":" FORM "},\"requestState\":\"");
    CHECK(w.how[0].is_end);
    CHECK_INT(mcp_peer_n_requests(w.peer), 0);
    copy_state(&w, state);

    snprintf(text, sizeof(text),
             CALL("2", "\"inputResponses\":{\"a\":" ACCEPT ",\"z\":{}},\"requestState\":\"%s\",",
                  "{\"elicitation\":{}}"),
             state);
    receive(&w, text);
    CHECK_INT(w.n_calls, 1);
    CHECK_STR(peg_cstr(w.answers), "{\"a\":" ACCEPT "}");
    finish(&w, 0, "done");
    CHECK_HAS(&w, 0, "\"id\":2,\"result\":{\"resultType\":\"complete\"");
    world_free(&w);
}

TEST(answers_that_are_missing_are_asked_for_again)
{
    struct world w;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{},\"sampling\":{}}"));
    ask(&w, 0, "{\"a\":" FORM ",\"b\":" SAMPLE "}");
    copy_state(&w, state);
    snprintf(text, sizeof(text),
             CALL("2", "\"inputResponses\":{\"a\":" ACCEPT ",\"b\":7},\"requestState\":\"%s\",",
                  "{\"elicitation\":{},\"sampling\":{}}"),
             state);
    receive(&w, text);
    CHECK_INT(w.n_answered, 0);
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"b\":" SAMPLE "}");
    copy_state(&w, state);
    snprintf(text, sizeof(text),
             CALL("3", "\"inputResponses\":{\"b\":{\"role\":\"x\"}},\"requestState\":\"%s\",",
                  "{\"elicitation\":{},\"sampling\":{}}"),
             state);
    receive(&w, text);
    CHECK_STR(peg_cstr(w.answers), "{\"a\":" ACCEPT ",\"b\":{\"role\":\"x\"}}");
    world_free(&w);
}

TEST(answers_that_came_with_the_first_request_count_once)
{
    struct world w;

    world_init(&w);
    receive(&w,
            CALL("1", "\"inputResponses\":{\"a\":" ACCEPT ",\"z\":{}},", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    CHECK_STR(peg_cstr(w.answers), "{\"a\":" ACCEPT "}");
    CHECK_INT(w.n_sent, 0);

    ask(&w, 0, "{\"a\":" FORM "}");
    CHECK_INT(w.n_answered, 1);
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"a\":" FORM "}");
    world_free(&w);
}

TEST(answers_before_the_question_that_are_none_are_asked_for)
{
    static const char *const given[] = {"{\"b\":" ACCEPT "}", "{\"a\":12345}", "null", "[]"};

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        struct world w;
        char text[1024];

        world_init(&w);
        snprintf(text, sizeof(text), CALL("1", "\"inputResponses\":%s,", "{\"elicitation\":{}}"),
                 given[i]);
        receive(&w, text);
        ask(&w, 0, "{\"a\":" FORM "}");
        CHECK_INT(w.n_answered, 0);
        CHECK_HAS(&w, 0, "\"inputRequests\":{\"a\":" FORM "}");
        world_free(&w);
    }
}

#define OPTIONAL "{\"optional\":true,\"method\":\"roots/list\"}"

TEST(optional_questions_are_left_out_for_clients_that_cannot_be_asked)
{
    struct world w;

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"r\":" OPTIONAL ",\"a\":" FORM "}");
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"a\":" FORM "}");
    world_free(&w);

    world_init(&w);
    receive(&w, CALL("1", "", "{\"roots\":{}}"));
    ask(&w, 0, "{\"r\":" OPTIONAL "}");
    CHECK_HAS(&w, 0, "\"inputRequests\":{\"r\":{\"method\":\"roots/list\"}}");
    world_free(&w);
}

TEST(question_without_anything_to_ask_is_answered_at_once)
{
    struct world w;

    world_init(&w);
    receive(&w, CALL("1", "", "{}"));
    ask(&w, 0, "{\"r\":" OPTIONAL "}");
    CHECK_STR(peg_cstr(w.answers), "{}");
    CHECK_INT(w.n_sent, 0);
    world_free(&w);
}

TEST(client_that_cannot_be_asked_learns_what_it_lacks)
{
    static const struct {
        const char *capabilities;
        const char *requests;
        const char *missing;
    } rows[] = {
        {"{}", "{\"a\":" FORM "}", "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":{\"url\":{}}}", "{\"a\":" FORM "}", "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":{}}", "{\"a\":" FORM ",\"b\":" SAMPLE "}", "{\"sampling\":{}}"},
        {"{\"elicitation\":{}}",
         "{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"}}}",
         "{\"elicitation\":{\"url\":{}}}"},
        {"{\"sampling\":{}}",
         "{\"a\":{\"method\":\"sampling/createMessage\",\"params\":{\"tools\":[]}}}",
         "{\"sampling\":{\"tools\":{}}}"},
        {"{}", "{\"a\":{\"method\":\"roots/list\"}}", "{\"roots\":{}}"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;
        char text[1024];

        world_init(&w);
        snprintf(text, sizeof(text), CALL("1", "", "%s"), rows[i].capabilities);
        receive(&w, text);
        ask(&w, 0, rows[i].requests);
        CHECK_HAS(&w, 0, "\"code\":-32021");
        snprintf(text, sizeof(text), "\"data\":{\"requiredCapabilities\":%s}", rows[i].missing);
        CHECK_HAS(&w, 0, text);
        CHECK_INT(w.how[0].http_status, 400);
        CHECK_INT(w.n_canceled, 1);
        world_free(&w);
    }
}

/* Of the only "%s". */
static void put_in_place(char ret_text[1024], const char *pattern, const char *value)
{
    const char *at = strstr(pattern, "%s");

    snprintf(ret_text, 1024, "%.*s%s%s", (int)(at - pattern), pattern, value, at + 2);
}

TEST(state_is_good_for_its_own_request_once)
{
    static const char *const others[] = {
        M_WITH("2", "tools/call", "\"name\":\"u\",\"arguments\":{\"x\":1},\"requestState\":\"%s\",",
               "{}", ""),
        M_WITH("3", "tools/call", "\"name\":\"t\",\"arguments\":{\"x\":2},\"requestState\":\"%s\",",
               "{}", ""),
        M_WITH("4", "tools/call", "\"name\":\"t\",\"requestState\":\"%s\",", "{}", ""),
        CALL("5", "\"requestState\":\"%sA\",", "{}"),
        CALL("6", "\"requestState\":\"A%s\",", "{}"),
        CALL("7", "\"requestState\":\"\",\"x\":\"%s\",", "{}"),
        CALL("8", "\"requestState\":7,\"x\":\"%s\",", "{}"),
    };
    struct world w;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    copy_state(&w, state);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        put_in_place(text, others[i], state);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
    }
    for (size_t at = 0; at < strlen(state); at += 7) {
        char changed[256];

        snprintf(changed, sizeof(changed), "%s", state);
        changed[at] = changed[at] == 'B' ? 'C' : 'B';
        snprintf(text, sizeof(text), CALL("9", "\"requestState\":\"%s\",", "{}"), changed);
        receive(&w, text);
        CHECK_HAS(&w, 0, "\"code\":-32602");
    }
    CHECK_INT(w.n_calls, 1);
    snprintf(text, sizeof(text),
             CALL("10", "\"inputResponses\":{\"a\":" ACCEPT "},\"requestState\":\"%s\",",
                  "{\"elicitation\":{}}"),
             state);
    receive(&w, text);
    CHECK_INT(w.n_answered, 1);
    memcpy(strstr(text, "\"id\":10"), "\"id\":11", 7);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32602");
    world_free(&w);
}

TEST(state_of_another_principal_is_refused)
{
    struct world w;
    struct mcp_peer *other = NULL;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    copy_state(&w, state);
    CHECK_INT(mcp_peer_new(w.server, &keep_ops, &w, "stranger", &other), PEG_OK);
    snprintf(text, sizeof(text), CALL("1", "\"requestState\":\"%s\",", "{}"), state);
    forget_sent(&w);
    CHECK_INT(mcp_peer_receive(other, peg_cstr(text), NULL), PEG_OK);
    CHECK_HAS(&w, 0, "\"code\":-32602");
    mcp_peer_free(other);
    world_free(&w);
}

TEST(retry_may_come_by_another_connection_after_the_first_is_gone)
{
    struct world w;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    copy_state(&w, state);
    mcp_peer_free(w.peer);
    CHECK_INT(w.n_canceled, 0);
    CHECK_INT(mcp_peer_new(w.server, &keep_ops, &w, "somebody", &w.peer), PEG_OK);
    snprintf(text, sizeof(text),
             CALL("1", "\"inputResponses\":{\"a\":" ACCEPT "},\"requestState\":\"%s\",",
                  "{\"elicitation\":{}}"),
             state);
    receive(&w, text);
    finish(&w, 0, "done");
    CHECK_HAS(&w, 0, "done");
    world_free(&w);
}

TEST(call_that_waits_too_long_is_canceled)
{
    struct world w;
    char state[256];
    char text[1024];

    world_init(&w);
    receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    copy_state(&w, state);
    CHECK_INT(mcp_server_due_ms(w.server), 61000);
    mcp_server_advance(w.server, 60999, 0);
    CHECK_INT(w.n_canceled, 0);
    mcp_server_advance(w.server, 61000, 0);
    CHECK_INT(w.n_canceled, 1);
    snprintf(text, sizeof(text), CALL("2", "\"requestState\":\"%s\",", "{}"), state);
    receive(&w, text);
    CHECK_HAS(&w, 0, "\"code\":-32602");
    world_free(&w);
}

/* ---- legacy ---- */

/* The id of the request that was sent as message i. */
static void copy_id(const struct world *w, size_t i, char ret_id[128])
{
    const char *at = strstr(w->sent[i], "\"id\":\"");

    CHECK(at);
    at += strlen("\"id\":\"");
    snprintf(ret_id, 128, "%.*s", (int)strcspn(at, "\""), at);
}

TEST(legacy_questions_are_requests_and_their_responses_answers)
{
    struct world w;
    char first[128];
    char second[128];
    char text[1024];

    world_init(&w);
    initialize(&w, "{\"elicitation\":{},\"sampling\":{}}");
    receive_on(&w, L("1", "tools/call", "{\"name\":\"t\"}"), &w);
    ask(&w, 0, "{\"a\":" FORM ",\"b\":" SAMPLE "}");
    CHECK_INT(w.n_sent, 2);
    CHECK_HAS(&w, 0, "\"method\":\"elicitation/create\"");
    CHECK(w.how[0].stream == &w && !w.how[0].is_end);
    copy_id(&w, 0, first);
    copy_id(&w, 1, second);

    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"role\":\"x\"}}",
             second);
    receive(&w, text);
    receive(&w, text);
    CHECK_INT(w.n_answered, 0);
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":" ACCEPT "}",
             first);
    receive(&w, text);
    CHECK_STR(peg_cstr(w.answers), "{\"a\":" ACCEPT ",\"b\":{\"role\":\"x\"}}");
    CHECK_INT(w.n_sent, 0);
    finish(&w, 0, "done");
    CHECK_HAS(&w, 0, "\"id\":1,");
    world_free(&w);
}

TEST(legacy_client_that_cannot_be_asked_is_the_sources_matter)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{}");
    receive(&w, L("1", "tools/call", "{\"name\":\"t\"}"));
    ask(&w, 0, "{\"a\":" FORM "}");
    CHECK_INT(w.n_sent, 0);
    CHECK_INT(w.n_answered, 1);
    CHECK_STR(peg_cstr(w.reason), "the client cannot be asked for this");
    finish(&w, 0, "did without");
    CHECK_HAS(&w, 0, "did without");
    world_free(&w);
}

TEST(legacy_error_and_silence_are_told_to_the_source)
{
    struct world w;
    char id[128];
    char text[512];

    world_init(&w);
    initialize(&w, "{\"roots\":{}}");
    receive(&w, L("1", "tools/call", "{\"name\":\"t\"}"));
    ask(&w, 0, "{\"a\":{\"method\":\"roots/list\"}}");
    copy_id(&w, 0, id);
    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"error\":{\"code\":-1,\"message\":\"no\"}}", id);
    receive(&w, text);
    CHECK_STR(peg_cstr(w.reason), "the client answered with an error");

    ask(&w, 0, "{\"b\":{\"method\":\"roots/list\"}}");
    mcp_server_advance(w.server, 100000, 0);
    CHECK_STR(peg_cstr(w.reason), "the answer did not come in time");
    CHECK_INT(w.n_canceled, 0);
    world_free(&w);
}

/* ---- sessions over HTTP: each request has a peer of its own ---- */

static const struct mcp_peer_ops no_ops = {.send = NULL};

/* Another connection of the client of that session. */
static struct mcp_peer *connect_again(struct world *w, const char *session, const char *principal)
{
    struct mcp_peer *peer = NULL;

    CHECK_INT(mcp_peer_new(w->server, &no_ops, NULL, principal, &peer), PEG_OK);
    CHECK_INT(mcp_peer_set_session(peer, peg_cstr(session)), PEG_OK);
    return peer;
}

static void begin_session(struct world *w)
{
    struct mcp_config config;

    world_init_bare(w);
    schemas_load(&w->schemas);
    config = world_config(w);
    config.ask_prefix = "here/";
    CHECK_INT(world_open(w, &config), PEG_OK);
    CHECK_INT(mcp_peer_set_session(w->peer, peg_cstr("s1")), PEG_OK);
    mcp_peer_set_client(w->peer, &(struct mcp_client){.abilities = 1, .log_level = MCP_N_LEVELS});
    receive_on(w, L("1", "tools/call", "{\"name\":\"t\"}"), w);
}

static void answer_from(struct world *w, const char *session, const char *principal, const char *id)
{
    struct mcp_peer *peer = connect_again(w, session, principal);
    char text[512];

    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":" ACCEPT "}", id);
    CHECK_INT(mcp_peer_receive(peer, peg_cstr(text), NULL), PEG_OK);
    mcp_peer_free(peer);
}

TEST(abilities_of_a_session_are_those_of_its_initialize)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{\"elicitation\":{}}");
    CHECK_INT(mcp_peer_abilities(w.peer), 1);
    world_free(&w);
    world_init(&w);
    initialize(&w, "{\"tools\":{}}");
    CHECK_INT(mcp_peer_abilities(w.peer), 0);
    world_free(&w);
}

TEST(another_connection_of_the_session_answers_and_nobody_else)
{
    struct world w;
    char id[128];

    begin_session(&w);
    ask(&w, 0, "{\"a\":" FORM "}");
    CHECK(w.how[0].is_question);
    copy_id(&w, 0, id);
    CHECK(!strncmp(id, "here/", 5));
    answer_from(&w, "s1", "somebody", id + 5);

    answer_from(&w, "s2", "somebody", id);
    answer_from(&w, "s1", "somebody else", id);
    CHECK_INT(w.n_answered, 0);
    answer_from(&w, "s1", "somebody", id);
    CHECK_STR(peg_cstr(w.answers), "{\"a\":" ACCEPT "}");
    world_free(&w);
}

TEST(stream_that_broke_asks_nothing_more_but_takes_the_answer)
{
    struct world w;
    char id[128];

    begin_session(&w);
    ask(&w, 0, "{\"a\":" FORM "}");
    copy_id(&w, 0, id);
    mcp_peer_close_stream(w.peer, &w);
    CHECK_INT(w.n_canceled, 0);
    answer_from(&w, "s1", "somebody", id);
    CHECK_INT(w.n_answered, 1);

    forget_sent(&w);
    ask(&w, 0, "{\"b\":" FORM "}");
    CHECK_INT(w.n_sent, 0);
    CHECK_STR(peg_cstr(w.reason), "the client's stream broke, so it cannot be asked");
    world_free(&w);
}

TEST(session_that_is_over_has_no_answers)
{
    struct world w;

    begin_session(&w);
    ask(&w, 0, "{\"a\":" FORM "}");
    mcp_peer_refuse(w.peer, "it is over");
    CHECK_STR(peg_cstr(w.reason), "it is over");
    ask(&w, 0, "{\"b\":" FORM "}");
    CHECK_STR(peg_cstr(w.reason), "the client cannot be asked for this");
    CHECK_INT(w.n_answered, 2);
    world_free(&w);
}

TEST(responses_that_nobody_waits_for_are_ignored)
{
    static const char *const texts[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"00000000000000000000000000000000:a\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"m\"}}",
    };
    struct world w;

    world_init(&w);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(receive(&w, texts[i]), PEG_OK);
        CHECK_INT(w.n_sent, 0);
    }
    world_free(&w);
}

TEST(question_of_url_mode_has_the_id_that_legacy_clients_expect)
{
    struct world w;

    world_init(&w);
    initialize(&w, "{\"elicitation\":{\"url\":{}}}");
    receive(&w, L("1", "tools/call", "{\"name\":\"t\"}"));
    ask(&w, 0,
        "{\"a\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\","
        "\"message\":\"go\",\"url\":\"https://a.example/\"}}}");
    CHECK_HAS(&w, 0, "\"elicitationId\":\"");
    world_free(&w);
}

TORTURE(asking_survives_any_allocation_failure)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status = peg_json_parse(peg_cstr("{\"a\":" FORM "}"), NULL, &doc, NULL);
    if (!status)
        status = receive(&w, CALL("1", "", "{\"elicitation\":{}}"));
    if (!status && !w.n_calls)
        status = PEG_ENOMEM;
    if (!status) {
        mcp_call_ask(w.calls[0], peg_json_root(doc));
        status = w.n_sent == 1 && strstr(w.sent[0], "input_required") ? PEG_OK : PEG_ENOMEM;
    }
    if (!status) {
        char state[256];
        char text[1024];

        copy_state(&w, state);
        snprintf(text, sizeof(text),
                 CALL("2", "\"inputResponses\":{\"a\":" ACCEPT "},\"requestState\":\"%s\",",
                      "{\"elicitation\":{}}"),
                 state);
        status = receive(&w, text);
        if (!status && !w.answers[0])
            status = PEG_ENOMEM;
    }
    world_free(&w);
    return status;
}
