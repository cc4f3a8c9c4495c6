/* SPDX-License-Identifier: Apache-2.0 */

/* The tools of MCP servers as tools of a registry: a server of either era, behind a pipe. */

#include <semaphore.h>
#include <stdlib.h>

#include "import_world.h"
#include "pegboard/gate.h"
#include "pegboard/media.h"

/* ---- connecting ---- */

static void check_tools(const char *era, const char *version)
{
    struct import w;

    import_open(&w, era, NULL);

    CHECK_STR(peg_cstr(peg_mcp_client_info(w.client).version), version);
    CHECK_STR(peg_cstr(peg_mcp_client_info(w.client).server), "scripted");
    CHECK_INT(peg_registry_len(w.registry), IMPORT_TOOLS);
    CHECK_INT(peg_mcp_client_info(w.client).n_tools, IMPORT_TOOLS);
    CHECK_ANSWER(&w, "echo", "{\"x\":1}", "{\"x\": 1}");
    CHECK_ANSWER(&w, "complaints", "{}", "");
    import_close(&w);
}

TEST(import_speaks_to_a_modern_server)
{
    check_tools("modern", "2026-07-28");
}

TEST(import_speaks_to_a_legacy_server)
{
    check_tools("legacy", "2025-11-25");
}

TEST(import_takes_silence_for_a_legacy_server)
{
    check_tools("mute", "2025-11-25");
}

TEST(import_speaks_older_versions)
{
    struct import w;

    import_open(&w, "legacy", "version=2025-06-18");

    CHECK_STR(peg_cstr(peg_mcp_client_info(w.client).version), "2025-06-18");
    CHECK_ANSWER(&w, "echo", "{}", "{}");
    import_close(&w);
}

TEST(import_refuses_a_version_that_is_unknown)
{
    struct import w;

    CHECK_INT(import_try(&w, "legacy", "version=1999-01-01", NULL), PEG_EHOST);

    CHECK_STR(peg_cstr(w.error.code), "E_MCP_VERSION");
    import_close(&w);
}

TEST(import_passes_over_lines_that_are_no_messages)
{
    struct import w;

    import_open(&w, "legacy", "noise");

    CHECK_ANSWER(&w, "echo", "{}", "{}");
    import_close(&w);
}

TEST(import_reports_a_program_that_is_not_there)
{
    const char *const command[] = {"no-such-program-here", NULL};
    struct import w;

    import_init(&w);
    CHECK_INT(
        peg_mcp_import(w.registry,
                       &(peg_mcp_import_options){PEG_MCP_IMPORT_OPTIONS_INIT, .command = command},
                       &w.client, &w.error),
        PEG_EIO);

    CHECK_STR(peg_cstr(w.error.code), "E_MCP_START");
    CHECK_STR(peg_cstr(w.error.message),
              "the MCP server 'no-such-program-here' cannot be started: it is not found");
    import_close(&w);
}

TEST(import_reports_a_program_that_ends)
{
    struct import w;

    CHECK_INT(import_try(&w, "legacy", "exit", NULL), PEG_EIO);

    CHECK_STR(peg_cstr(w.error.code), "E_MCP_START");
    CHECK_STR(peg_cstr(w.error.message), "the MCP server exited with status 4");
    CHECK(import_saw(&w, PEG_MCP_STDERR, "I cannot start"));
    import_close(&w);
}

TEST(import_reports_a_program_that_says_nothing)
{
    const char *const command[] = {"sleep", "100", NULL};
    struct import w;

    import_init(&w);
    CHECK_INT(peg_mcp_import(w.registry,
                             &(peg_mcp_import_options){PEG_MCP_IMPORT_OPTIONS_INIT,
                                                       .command = command, .start_ms = 50},
                             &w.client, &w.error),
              PEG_ETIMEOUT);

    CHECK_STR(peg_cstr(w.error.message), "the MCP server did not answer within 50 ms");
    import_close(&w);
}

TEST(import_checks_its_options)
{
    struct import w;

    import_init(&w);
    CHECK_INT(peg_mcp_import(w.registry,
                             &(peg_mcp_import_options){PEG_MCP_IMPORT_OPTIONS_INIT, .prefix = "x"},
                             &w.client, &w.error),
              PEG_EINVAL);
    CHECK_STR(peg_cstr(w.error.where), "/command");
    CHECK_INT(peg_mcp_import(NULL, NULL, &w.client, NULL), PEG_EINVAL);
    import_close(&w);
}

/* ---- which tools ---- */

TEST(import_leaves_out_tools_that_cannot_be_checked_here)
{
    struct import w;

    import_open(&w, "modern", NULL);

    CHECK(!peg_registry_has(w.registry, peg_cstr("dialect")));
    CHECK(!peg_registry_has(w.registry, peg_cstr("elsewhere")));
    CHECK(import_saw(&w, PEG_MCP_TOOL_REJECTED, "dialect"));
    CHECK(import_saw(&w, PEG_MCP_TOOL_REJECTED, "elsewhere"));
    CHECK(import_saw(&w, PEG_MCP_TOOL_REJECTED, "no schema"));
    CHECK(import_saw(&w, PEG_MCP_CONNECTED, "scripted"));
    import_close(&w);
}

TEST(import_takes_what_its_globs_allow)
{
    const char *const include[] = {"e*", "sum", "dialect", NULL};
    const char *const exclude[] = {"*ment", "dialect", "elsewhere", NULL};
    struct import w;

    CHECK_STATUS(
        import_try(&w, "modern", NULL,
                   &(peg_mcp_import_options){PEG_MCP_IMPORT_OPTIONS_INIT, .include = include,
                                             .exclude = exclude, .prefix = "my_"}),
        PEG_OK, w.error);

    CHECK_INT(peg_registry_len(w.registry), 2);
    CHECK(!import_saw(&w, PEG_MCP_TOOL_REJECTED, "dialect"));
    CHECK_ANSWER(&w, "my_echo", "{\"x\":1}", "{\"x\": 1}");
    CHECK(peg_registry_has(w.registry, peg_cstr("my_sum")));
    import_close(&w);
}

TEST(import_leaves_tools_of_the_host_alone)
{
    peg_tool *tool = NULL;
    struct import w;

    import_init(&w);
    CHECK_INT(peg_tool_new(&(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "echo", .description = "mine",
                                           .run = import_never},
                           &tool, NULL),
              PEG_OK);
    CHECK_INT(peg_registry_register(w.registry, tool, false, NULL), PEG_OK);
    CHECK_STATUS(import_start(&w, "modern", NULL, NULL), PEG_OK, w.error);

    CHECK(import_saw(&w, PEG_MCP_TOOL_REJECTED, "echo"));
    CHECK_INT(peg_mcp_client_info(w.client).n_tools, IMPORT_TOOLS - 1);
    w.client = peg_mcp_client_free(w.client);
    CHECK_INT(peg_registry_len(w.registry), 1);
    peg_tool_unref(tool);
    import_close(&w);
}

TEST(import_makes_hints_of_annotations)
{
    struct import w;
    peg_tool *echo;
    peg_tool *sum;
    peg_tool *fail;

    import_open(&w, "modern", NULL);
    echo = peg_registry_get(w.registry, peg_cstr("echo"));
    sum = peg_registry_get(w.registry, peg_cstr("sum"));
    fail = peg_registry_get(w.registry, peg_cstr("fail"));

    CHECK(peg_tool_is_read_only(echo) && !peg_tool_is_destructive(echo));
    CHECK_STR(peg_json_str(peg_json_get(peg_tool_meta(echo), "title")), "Echo");
    CHECK(peg_tool_is_idempotent(sum) && !peg_tool_is_destructive(sum));
    CHECK(peg_tool_is_additive(sum) && !peg_tool_is_additive(echo));
    CHECK(peg_tool_artifact_kind(sum) == &peg_artifact_markdown);
    CHECK(peg_tool_is_destructive(fail) && !peg_tool_is_idempotent(fail));
    peg_tool_unref(echo);
    peg_tool_unref(sum);
    peg_tool_unref(fail);
    import_close(&w);
}

TEST(import_follows_the_pages_of_a_list)
{
    struct import w;

    import_open(&w, "legacy", "tools=950");

    CHECK_INT(peg_registry_len(w.registry), IMPORT_TOOLS + 950);
    CHECK(peg_registry_has(w.registry, peg_cstr("tool_949")));
    import_close(&w);
}

static void check_growth(const char *era)
{
    struct import w;

    import_open(&w, era, NULL);
    CHECK(!peg_registry_has(w.registry, peg_cstr("grown")));
    CHECK_ANSWER(&w, "grow", "{}", "grown");
    import_await(&w, PEG_MCP_TOOLS_CHANGED, "");

    CHECK(peg_registry_has(w.registry, peg_cstr("grown")));
    CHECK_INT(peg_mcp_client_info(w.client).n_tools, IMPORT_TOOLS + 1);
    import_close(&w);
}

TEST(import_follows_changes_of_a_list)
{
    check_growth("legacy");
    check_growth("modern");
}

/* ---- calls ---- */

TEST(import_checks_arguments_before_the_server_sees_them)
{
    struct import w;

    import_open(&w, "modern", NULL);

    CHECK_FAILURE(&w, "echo", "{\"x\":\"one\"}", "", "x");
    CHECK_STR(peg_cstr(peg_record_code(w.record)), "E_INVALID_TOOL_ARGS");
    import_close(&w);
}

TEST(import_checks_results_against_their_schema)
{
    struct import w;

    import_open(&w, "modern", NULL);

    CHECK_ANSWER(&w, "sum", "{\"x\":1}", "{\"sum\":2}");
    CHECK_FAILURE(&w, "sum", "{\"x\":100}", "", "sum");
    CHECK_STR(peg_cstr(peg_record_code(w.record)), "E_TOOL_OUTPUT_INVALID");
    import_close(&w);
}

TEST(import_makes_media_of_content)
{
    const peg_media *media;
    struct import w;

    import_open(&w, "legacy", NULL);
    import_call(&w, "picture", "{}");

    CHECK(!peg_record_is_error(w.record));
    CHECK_INT(peg_record_n_media(w.record), 2);
    media = peg_record_media(w.record, 0);
    CHECK_INT(peg_media_kind_of(media), PEG_MEDIA_IMAGE);
    CHECK_STR(peg_cstr(peg_media_mime_type(media)), "image/png");
    CHECK_STR(peg_cstr(peg_media_filename(media)), "result.png");
    CHECK_INT(peg_media_tier(media), PEG_TIER_THIRD_PARTY_PRIVATE);
    CHECK_STR(peg_cstr(peg_media_note_named(media, "text:description")->text), "a picture");
    media = peg_record_media(w.record, 1);
    CHECK_INT(peg_media_kind_of(media), PEG_MEDIA_DOCUMENT);
    CHECK_STR(peg_cstr(peg_media_filename(media)), "b.bin");
    import_close(&w);
}

TEST(import_makes_text_of_links_and_embedded_text)
{
    struct import w;

    import_open(&w, "legacy", NULL);

    CHECK_ANSWER(&w, "links", "{}", "a: file:///a\ninner");
    import_close(&w);
}

TEST(import_makes_failures_of_failures)
{
    struct import w;

    import_open(&w, "modern", NULL);

    CHECK_FAILURE(&w, "fail", "{}", "", "no luck today");
    CHECK_FAILURE(&w, "refuse", "{}", "E_MCP_SERVER",
                  "the MCP server answered with error -32000: not now");
    CHECK_FAILURE(&w, "nothing", "{}", "E_MCP_RESULT", "the MCP server's result has no content");
    import_close(&w);
}

TEST(import_ends_a_call_that_never_ends)
{
    struct import w;

    import_open(&w, "modern", NULL);
    w.timeout_ms = 50;
    CHECK_FAILURE(&w, "hang", "{}", "", "50");
    CHECK_STR(peg_cstr(peg_record_code(w.record)), "E_TOOL_TIMEOUT");
    w.timeout_ms = 0;

    import_call(&w, "cancelled", "{}");
    CHECK(strstr(import_answer(&w).ptr, "\"reason\": \"the deadline has passed\""));
    import_close(&w);
}

TEST(import_gives_the_server_the_environment_it_is_given)
{
    const char *const env[] = {"ONE=1", NULL};
    struct import w;

    CHECK_STATUS(import_try(&w, "legacy", NULL,
                            &(peg_mcp_import_options){PEG_MCP_IMPORT_OPTIONS_INIT, .env = env}),
                 PEG_OK, w.error);
    import_call(&w, "environment", "{}");

    CHECK(strstr(import_answer(&w).ptr, "\"ONE\", \"PATH\""));
    CHECK(!strstr(import_answer(&w).ptr, "\"HOME\""));
    import_close(&w);
}

/* ---- questions ---- */

static void check_asking(const char *era, const char *expected)
{
    peg_ctx *ctx = NULL;
    int n_asked = 0;
    struct import w;

    import_open(&w, era, NULL);
    CHECK_INT(peg_ctx_with_gates(w.ctx, import_say_name, &n_asked, &ctx, NULL), PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = ctx;

    CHECK_ANSWER(&w, "ask", "{}", expected);
    CHECK_INT(n_asked, 1);
    CHECK_ANSWER(&w, "complaints", "{}", "");
    import_close(&w);
}

TEST(import_makes_a_gate_of_a_question)
{
    check_asking("legacy", "[{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}, null]");
    check_asking("modern",
                 "[{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}, \"opaque\"]");
}

TEST(import_declines_a_question_that_nobody_can_answer)
{
    struct import w;

    import_open(&w, "legacy", NULL);
    CHECK_ANSWER(&w, "ask", "{}", "[{\"action\": \"decline\"}, null]");
    import_close(&w);
    import_open(&w, "modern", NULL);
    CHECK_ANSWER(&w, "ask", "{}", "cannot ask");
    CHECK_FAILURE(&w, "again", "{}", "E_MCP_ASK",
                  "the MCP server asks for input again and again: it was given up");
    import_close(&w);
}

/* ---- the end ---- */

TEST(import_fails_calls_after_it_was_closed)
{
    peg_tool *tool;
    struct import w;

    import_open(&w, "modern", NULL);
    tool = peg_registry_get(w.registry, peg_cstr("echo"));
    w.client = peg_mcp_client_free(w.client);
    CHECK_INT(peg_registry_len(w.registry), 0);
    CHECK_INT(peg_registry_register(w.registry, tool, false, NULL), PEG_OK);

    CHECK_FAILURE(&w, "echo", "{}", "E_MCP_UNAVAILABLE",
                  "the MCP server was closed here: the call was not started");
    peg_tool_unref(tool);
    import_close(&w);
}
