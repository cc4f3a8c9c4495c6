/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/mcp/internal.h"

#include "base/text/str.h"
#include "t.h"

#include "requests.h"

static const char *name_of(const char *toolset, const char *tool)
{
    static char name[WIRE_MCP_NAME];

    return wire_mcp_name(peg__str(toolset), peg__str(tool), name) ? name : "no memory";
}

static bool is_suffixed(const char *name, const char *begin)
{
    const size_t n = strlen(begin);

    return !strncmp(name, begin, n) && name[n] == '_' && strlen(name) == n + 17 &&
           strspn(name + n + 1, "0123456789abcdef") == 16;
}

TEST(a_name_that_vendors_take_stays_as_it_is)
{
    CHECK_STR(peg__str(name_of("weather", "forecast")), "weather__forecast");
    CHECK_STR(peg__str(name_of("a-b_c", "__d__")), "a-b_c____d__");
    CHECK_STR(
        peg__str(name_of("t", "0123456789012345678901234567890123456789012345678901234567890")),
        "t__0123456789012345678901234567890123456789012345678901234567890");
}

TEST(a_name_that_would_be_changed_cut_or_ambiguous_has_a_digest)
{
    char name[2][WIRE_MCP_NAME];

    CHECK(is_suffixed(name_of("eu/weather", "get"), "eu_weather__get"));
    CHECK(is_suffixed(name_of("eu", "get.all"), "eu__get_all"));
    CHECK(is_suffixed(name_of("a_", "b"), "a___b"));
    CHECK(is_suffixed(name_of("a__b", "c"), "a__b__c"));
    CHECK(is_suffixed(name_of("a", "b_0123456789abcdef"), "a__b_0123456789abcdef"));
    CHECK(
        is_suffixed(name_of("t", "01234567890123456789012345678901234567890123456789012345678901"),
                    "t__01234567890123456789012345678901234567890123"));
    (void)wire_mcp_name(peg__str("a/b"), peg__str("c"), name[0]);
    (void)wire_mcp_name(peg__str("a:b"), peg__str("c"), name[1]);
    CHECK(strcmp(name[0], name[1]) != 0);
}

/* ---- back again ---- */

static void check_found(const struct gw_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++) {
        const struct gw_toolset *toolset = snapshot->toolsets[i];

        for (size_t k = 0; k < toolset->n_tools; k++) {
            const struct gw_toolset *found = NULL;
            const char *name = name_of(toolset->name.ptr, toolset->tools[k].name.ptr);

            CHECK(gw_mcp_find(snapshot, peg__str(name), &found) == &toolset->tools[k]);
            CHECK(found == toolset);
        }
    }
}

TEST(every_name_finds_its_own_tool_and_no_other_does)
{
    static const char *const names[] = {"a", "a/b", "a:b", "a_",
                                        "a__b"}; /* as a snapshot has them */
    static const char *const wrong[] = {
        "",       "a",       "a__",     "a__none", "a__b",
        "a_b__x", "a_b__x_", "none__x", "__x",     "a_b__x_0123456789abcdef"};
    struct gw_toolset *toolsets[5];
    const struct gw_snapshot snapshot = {.toolsets = toolsets, .n = 5};
    const struct gw_toolset *found;

    for (size_t i = 0; i < 5; i++) {
        struct req req = {0};

        req_empty(&req, names[i]);
        req_tool(&req, "x", "{}");
        req_tool(&req, "b__x", "{}");
        req_tool(&req, "_x", "{}");
        req_tool(&req, "x.y", "{}");
        toolsets[i] = req_toolset(&req);
    }
    check_found(&snapshot);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (gw_mcp_find(&snapshot, peg__str(wrong[i]), &found))
            T_FAIL("'%s' is a name", wrong[i]);
    }
    for (size_t i = 0; i < 5; i++)
        gw_toolset_unref(toolsets[i]);
}

TEST(a_scope_has_the_names_of_its_toolset)
{
    struct req req = {0};
    struct gw_toolset *toolset;
    const struct gw_snapshot snapshot = {.toolsets = &toolset, .n = 1};
    const struct gw_mcp_scope all = {.toolset = PEG_LIT("")};
    const struct gw_mcp_scope one = {.toolset = PEG_LIT("t")};
    const struct gw_mcp_scope other = {.toolset = PEG_LIT("u")};
    const struct gw_toolset *found;

    req_empty(&req, "t");
    req_tool(&req, "x", "{}");
    toolset = req_toolset(&req);
    CHECK(gw_mcp_find_in(&snapshot, &all, peg__str("t__x"), &found) == &toolset->tools[0]);
    CHECK(!gw_mcp_find_in(&snapshot, &all, peg__str("x"), &found));
    CHECK(gw_mcp_find_in(&snapshot, &one, peg__str("x"), &found) == &toolset->tools[0]);
    CHECK(!gw_mcp_find_in(&snapshot, &one, peg__str("t__x"), &found));
    CHECK(!gw_mcp_find_in(&snapshot, &other, peg__str("x"), &found));
    CHECK(!gw_mcp_find_in(NULL, &all, peg__str("t__x"), &found));
    gw_toolset_unref(toolset);
}

/* ---- outcomes ---- */

static char text[4096];

/* What a client gets, in a word or two. */
static const char *outcome_text(const struct calls_outcome *outcome, bool has_schema)
{
    struct mcp_result result = {0};

    gw_mcp_put_outcome(&result, outcome, has_schema);
    snprintf(text, sizeof(text), "%d%s|%.*s|%.*s|%.*s|%.*s", result.code,
             result.is_error ? " error" : "", PEG_ARG(peg__buf_view(&result.members)),
             PEG_ARG(peg__buf_view(&result.structured)), PEG_ARG(peg__buf_view(&result.meta)),
             PEG_ARG(peg__buf_view(&result.message)));
    mcp_result_free(&result);
    return text;
}

/* Packed responses: field 2 is the result, 3 the error {1 code, 2 message}, 4 server-data {1 kind,
 * 2 audience, 3 data}. */
#define RESULT(json) ((struct calls_outcome){.response = PEG_LIT(json)})

TEST(outcomes_become_content)
{
    const struct calls_outcome string = RESULT("\x12\x04\"a\\n");
    const struct calls_outcome quoted = RESULT("\x12\x03\"a\"");
    const struct calls_outcome object = RESULT("\x12\x08{\"a\":\n1}");
    const struct calls_outcome null = RESULT("\x12\x04null");
    const struct calls_outcome failed = RESULT("\x1a\x06\x0a\x01"
                                               "E"
                                               "\x12\x01"
                                               "m");
    const struct calls_outcome data = RESULT("\x12\x01"
                                             "1"
                                             "\x22\x0b\x0a\x01k\x12\x04user\x1a\x00"
                                             "\x22\x0e\x0a\x01k\x12\x04user"
                                             "\x1a\x03\"u\""
                                             "\x22\x0c\x0a\x01k\x12\x02ui\x1a\x03\"p\"");

    CHECK_STR(peg__str(outcome_text(&quoted, false)),
              "0|\"content\":[{\"type\":\"text\",\"text\":\"a\"}]|||");
    CHECK_STR(peg__str(outcome_text(&object, true)),
              "0|\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":\\n1}\"}]|{\"a\":1}||");
    CHECK_STR(peg__str(outcome_text(&null, false)), "0|\"content\":[]|||");
    CHECK_STR(peg__str(outcome_text(&null, true)), "0|\"content\":[]|null||");
    CHECK_STR(peg__str(outcome_text(&failed, true)),
              "0 error|\"content\":[{\"type\":\"text\",\"text\":\"m\"}]||\"pegboard/error\":{"
              "\"name\":\"E\"}|");
    CHECK(strstr(outcome_text(&data, false), "\"audience\":[\"user\"]"));
    CHECK(!strstr(text, "\\\"p\\\""));
    /* a string that is none cannot come from a provider, and harms nothing */
    CHECK(outcome_text(&string, false) != NULL);
}

TEST(ends_that_the_gateway_makes_have_names)
{
    const struct calls_outcome full = {.kind = CALLS_KIND_REFUSED,
                                       .error = CALLS_OVERLOADED,
                                       .message = PEG_LIT("later"),
                                       .retry_after_ms = 50};
    const struct calls_outcome unknown = {.kind = CALLS_KIND_UNKNOWN,
                                          .error = CALLS_OUTCOME_UNKNOWN,
                                          .message = PEG_LIT("maybe"),
                                          .was_started = true};
    const struct calls_outcome none = {.error = CALLS_NOT_FOUND, .message = PEG_LIT("x")};

    CHECK_STR(peg__str(outcome_text(&full, false)),
              "0 error|\"content\":[{\"type\":\"text\",\"text\":\"later\"}]||\"pegboard/error\":{"
              "\"name\":\"overloaded\",\"started\":false,\"retry_ms\":50}|");
    CHECK_STR(peg__str(outcome_text(&unknown, false)),
              "0 error|\"content\":[{\"type\":\"text\",\"text\":\"maybe\"}]||\"pegboard/error\":{"
              "\"name\":\"outcome_unknown\",\"started\":true}|");
    CHECK_STR(peg__str(outcome_text(&none, false)), "-32602||||Unknown tool: x");
}

TORTURE(an_outcome_survives_any_allocation_failure)
{
    const struct calls_outcome object = RESULT("\x12\x08{\"a\":\n1}");
    struct mcp_result result = {0};
    peg_status status;

    gw_mcp_put_outcome(&result, &object, true);
    status = result.members.status ? result.members.status : result.structured.status;
    mcp_result_free(&result);
    return status;
}

TORTURE(a_definition_survives_any_allocation_failure)
{
    struct gw_toolset *toolset = NULL;
    struct gw_mcp_definition definition;
    struct req req = {0};
    peg_status status;

    req_empty(&req, "a/b");
    req_tool(&req, "x", "{\"type\":\"object\"}");
    status = req_make(&req, &toolset, NULL);
    if (status)
        return status;
    status = gw_mcp_define(&definition, toolset, &toolset->tools[0], true);
    if (!status)
        CHECK_STR(definition.tool.title, "a/b/x");
    gw_mcp_undefine(&definition);
    gw_toolset_unref(toolset);
    return status;
}
