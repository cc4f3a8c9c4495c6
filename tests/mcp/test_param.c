/* SPDX-License-Identifier: Apache-2.0 */

/* Headers that repeat arguments of a tool. */

#include "world.h"

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"                                \
    "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"                                         \
    "\"deep\":{\"type\":\"object\",\"properties\":{"                                               \
    "\"flag\":{\"type\":\"boolean\",\"x-mcp-header\":\"Flag\"}}},"                                 \
    "\"free\":{\"type\":\"string\"}}}"

static const char *schema_text; /* of the tool that is called */
static bool was_taken;

static void begin_checked(struct mcp_source *source, struct mcp_call *call)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct mcp_result result = {0};

    (void)source;
    if (peg_json_parse(peg_cstr(schema_text), NULL, &doc, NULL)) {
        mcp_result_fail(&result, MCP_INTERNAL_ERROR, "no memory");
        mcp_call_end(call, &result);
        return;
    }
    was_taken = mcp_call_check_params(call, peg_json_root(doc));
    if (!was_taken)
        return;
    result.members = (struct peg__buf)PEG__BUF(64);
    peg__buf_puts(&result.members, "\"content\":[]");
    mcp_call_end(call, &result);
}

static const struct mcp_source_ops checking_ops = {
    .list = list_script, .begin = begin_checked, .answer = answer_script, .cancel = cancel_script};

struct header {
    const char *name;
    const char *value;
};

static peg_status call_with(struct world *w, const char *args, const struct header *headers)
{
    struct mcp_param params[8];
    struct mcp_http http = {.version = PEG_LIT("2026-07-28"),
                            .method = PEG_LIT("tools/call"),
                            .name = PEG_LIT("t"),
                            .params = params};
    char text[1024];

    for (; headers && headers[http.n_params].name; http.n_params++)
        params[http.n_params] = (struct mcp_param){peg__str(headers[http.n_params].name),
                                                   peg__str(headers[http.n_params].value)};
    snprintf(text, sizeof(text), M("1", "tools/call", "\"name\":\"t\",\"arguments\":%s,"), args);
    forget_sent(w);
    was_taken = false;
    return mcp_peer_receive_http(w->peer, peg_cstr(text), NULL, &http);
}

static const struct {
    const char *args;
    struct header headers[4];
    const char *fault; /* NULL: it is taken */
} cases[] = {
    {"{}", {{0}}, NULL},
    {"{\"free\":\"x\"}", {{"Free", "y"}}, NULL},
    {"{\"region\":\"us\"}", {{"region", "us"}}, NULL},
    {"{\"region\":\"us\"}", {{"REGION", "us"}, {"other", "x"}}, NULL},
    {"{\"region\":\"us\"}", {{0}}, "Mcp-Param-Region is missing"},
    {"{\"region\":\"us\"}", {{"region", "US"}}, "Mcp-Param-Region does not say"},
    {"{\"region\":\"us\"}", {{"region", "us"}, {"Region", "us"}}, "came more than once"},
    {"{\"region\":null}", {{0}}, NULL},
    {"{\"region\":null}", {{"region", "null"}}, "has no argument"},
    {"{}", {{"region", "us"}}, "has no argument"},
    {"{\"region\":\"\"}", {{"region", ""}}, NULL},
    {"{\"region\":\"Hello, \\u4e16\\u754c\"}",
     {{"region", "=?base64?SGVsbG8sIOS4lueVjA==?="}},
     NULL},
    {"{\"region\":\"=?base64?literal?=\"}",
     {{"region", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
     NULL},
    {"{\"region\":\"x\"}", {{"region", "=?base64?*?="}}, "does not say"},
    {"{\"region\":\"\\u00e9\"}", {{"region", "\xc3\xa9"}}, "does not say"},
    {"{\"n\":42}", {{"n", "42"}}, NULL},
    {"{\"n\":42}", {{"n", "42.0"}}, NULL},
    {"{\"n\":42.0}", {{"n", "42"}}, NULL},
    {"{\"n\":-7}", {{"n", "-7"}}, NULL},
    {"{\"n\":9007199254740993}", {{"n", "9007199254740992"}}, "Mcp-Param-N does not say"},
    {"{\"n\":9007199254740993}", {{"n", "9007199254740992.0"}}, "does not say"},
    {"{\"n\":9007199254740993}", {{"n", "9007199254740993.0"}}, NULL},
    {"{\"n\":18446744073709551617}", {{"n", "18446744073709551616"}}, "does not say"},
    {"{\"n\":42}", {{"n", "\"42\""}}, "does not say"},
    {"{\"n\":42}", {{"n", "42 x"}}, "does not say"},
    {"{\"n\":42}", {{"n", ""}}, "does not say"},
    {"{\"deep\":{\"flag\":true}}", {{"flag", "true"}}, NULL},
    {"{\"deep\":{\"flag\":false}}", {{"flag", "False"}}, "Mcp-Param-Flag does not say"},
    {"{\"flag\":true}", {{0}}, NULL},
    {"{\"deep\":7}", {{0}}, NULL},
};

static void world_init_checking(struct world *w)
{
    world_init(w);
    w->source.ops = &checking_ops;
    schema_text = SCHEMA;
}

TEST(headers_repeat_the_arguments_that_a_tool_names)
{
    struct world w;

    world_init_checking(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(call_with(&w, cases[i].args, cases[i].headers), PEG_OK);
        CHECK_INT((int)w.n_sent, 1);
        if (was_taken != !cases[i].fault)
            T_FAIL("case %zu: %s", i, w.sent[0]);
        if (!cases[i].fault)
            continue;
        CHECK_HAS(&w, 0, "\"code\":-32020");
        CHECK_HAS(&w, 0, cases[i].fault);
        CHECK_INT(w.how[0].http_status, 400);
    }
    world_free(&w);
}

TEST(headers_of_invalid_declarations_are_not_checked)
{
    static const char *const schemas[] = {
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\\r\\nb\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}}",
        "{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"a\"}}}",
        "{\"properties\":{\"a\":{\"x-mcp-header\":\"a\"}}}",
        ("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
         "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}"),
        "{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}]}",
        "{\"properties\":[1]}",
        "true",
    };
    struct world w;

    world_init_checking(&w);
    for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
        schema_text = schemas[i];
        CHECK_INT(call_with(&w, "{\"a\":\"x\"}", NULL), PEG_OK);
        CHECK(was_taken);
    }
    world_free(&w);
}

TEST(more_declarations_than_a_request_has_headers_are_not_checked)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    struct world w;

    world_init_checking(&w);
    for (int n = PEG_LIMIT_MCP_PARAMS; n <= PEG_LIMIT_MCP_PARAMS + 1; n++) {
        peg__buf_clear(&text);
        peg__buf_puts(&text, "{\"properties\":{");
        for (int i = 0; i < n; i++)
            peg__buf_printf(&text, "%s\"a%d\":{\"type\":\"string\",\"x-mcp-header\":\"a%d\"}",
                            i ? "," : "", i, i);
        peg__buf_puts(&text, "}}");
        schema_text = peg__buf_view(&text).ptr;
        CHECK_INT(call_with(&w, "{\"a0\":\"x\"}", NULL), PEG_OK);
        CHECK_INT(was_taken, n > PEG_LIMIT_MCP_PARAMS);
    }
    peg__buf_free(&text);
    world_free(&w);
}

TEST(headers_are_of_modern_requests_over_http)
{
    struct world w;

    world_init_checking(&w);
    receive(&w, M("1", "tools/call", "\"name\":\"t\",\"arguments\":{\"region\":\"us\"},"));
    CHECK(was_taken);
    was_taken = false;
    receive(&w, L("2", "tools/call", "{\"name\":\"t\",\"arguments\":{\"region\":\"us\"}}"));
    CHECK(was_taken);
    world_free(&w);
}

TORTURE(headers_survive_any_allocation_failure)
{
    static const struct header headers[] = {{"region", "=?base64?dXM=?="}, {"n", "42"}, {0}};
    struct world w;
    struct mcp_config config;
    peg_status status;

    world_init_bare(&w);
    w.source.ops = &checking_ops;
    schema_text = SCHEMA;
    config = world_config(&w);
    status = world_open(&w, &config);
    if (!status)
        status = call_with(&w, "{\"region\":\"us\",\"n\":42}", headers);
    if (!status && (!was_taken || w.n_sent != 1 || !strstr(w.sent[0], "\"complete\"")))
        status = PEG_ENOMEM;
    world_free(&w);
    return status;
}
