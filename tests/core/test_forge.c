/* SPDX-License-Identifier: Apache-2.0 */

/* Artifacts become tools: which tools, and what they take. */

#include "shelf.h"

/* ---- which tools
 * ---------------------------------------------------------------------------------- */

/* T123 */
TEST(forge_makes_nothing_of_no_artifacts)
{
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 0);
    drop(&s);
}

/* T124 */
TEST(forge_makes_seven_tools_of_a_text)
{
    static const char *const names[] = {
        "artifact_head",        "artifact_tail",       "artifact_grep",           "artifact_cat",
        "artifact_byte_length", "artifact_line_count", "artifact_estimate_tokens"};
    struct shelf s = {0};
    peg_tool_list list;

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, &peg_artifact_text, "c1", "text"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_all(s.w.registry, &list, NULL), PEG_OK);
    CHECK_INT(list.len, sizeof(names) / sizeof(*names));
    for (size_t i = 0; i < list.len; i++)
        CHECK_STR(peg__str(peg_tool_name(list.items[i])), names[i]);
    peg_tool_list_free(&list);
    drop(&s);
}

/* T124 */
TEST(forge_makes_seven_more_of_json)
{
    static const char *const names[] = {
        "artifact_json_type",   "artifact_json_keys",  "artifact_json_length", "artifact_json_get",
        "artifact_json_filter", "artifact_json_slice", "artifact_json_pluck"};
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, &peg_artifact_json, "c1", "{}"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 14);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        CHECK(peg_registry_has(s.w.registry, peg__str(names[i])));
    CHECK(peg_registry_has(s.w.registry, peg__str("artifact_head")));
    drop(&s);
}

/* T124 */
TEST(forge_makes_eight_more_of_markdown)
{
    static const char *const names[] = {"artifact_md_frontmatter", "artifact_md_headings",
                                        "artifact_md_code_blocks", "artifact_md_sections",
                                        "artifact_md_links",       "artifact_md_images",
                                        "artifact_md_text",        "artifact_md_ast"};
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, &peg_artifact_markdown, "c1", "# Title"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 15);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        CHECK(peg_registry_has(s.w.registry, peg__str(names[i])));
    check_call(&s, "artifact_md_headings", "{\"callId\":\"c1\"}", "Title");
    drop(&s);
}

/* T125 */
TEST(forged_tools_are_ephemeral_untrusted_artifact_tools)
{
    struct shelf s;
    peg_tool_list list;

    fill(&s);

    CHECK_INT(peg_registry_all(s.w.registry, &list, NULL), PEG_OK);
    CHECK_INT(list.len, 14);
    for (size_t i = 0; i < list.len; i++) {
        CHECK(peg_tool_is_artifact_tool(list.items[i]));
        CHECK(peg_tool_is_ephemeral(list.items[i]));
        CHECK(!peg_tool_is_trusted(list.items[i]));
        CHECK_INT(peg_tool_on_collision(list.items[i]), PEG_COLLISION_REPLACE);
        CHECK(peg_tool_is_read_only(list.items[i]));
    }
    peg_tool_list_free(&list);
    drop(&s);
}

TEST(forged_tools_describe_every_argument)
{
    struct shelf s;
    peg_tool_list list;

    fill(&s);

    CHECK_INT(peg_registry_all(s.w.registry, &list, NULL), PEG_OK);
    for (size_t i = 0; i < list.len; i++) {
        const peg_json *schema = peg_tool_input_schema(list.items[i]);

        PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
            const peg_json *description = peg_json_get(key + 1, "description");

            if (!description || peg_json_str(description).len < 10)
                T_FAIL("%s does not describe %s", peg_tool_name(list.items[i]), key->u.ptr);
        }
        CHECK(!peg_json_is_true(peg_json_get(schema, "additionalProperties")));
        CHECK(
            peg__str_is(peg_json_str(peg_json_at(peg_json_get(schema, "required"), 0)), "callId"));
    }
    peg_tool_list_free(&list);
    drop(&s);
}

/* T126 */
TEST(forged_base_tools_take_every_artifact_and_the_others_only_theirs)
{
    struct shelf s;

    fill(&s);

    CHECK_IDS(&s, "artifact_head", "call_a", "call_j", "call_b");
    CHECK_IDS(&s, "artifact_estimate_tokens", "call_a", "call_j", "call_b");
    CHECK_IDS(&s, "artifact_json_get", "call_j");
    check_call(&s, "artifact_head", "{\"callId\":\"call_j\"}", "{\"n\":[1,2]}");
    check_call(&s, "artifact_json_get", "{\"callId\":\"call_j\",\"path\":\"$.n[1]\"}", "2");
    drop(&s);
}

/* T121 */
TEST(forged_tools_refuse_an_id_that_is_not_there)
{
    struct shelf s;

    fill(&s);

    check_call(&s, "artifact_head", "{\"callId\":\"call_x\"}", "E_INVALID_TOOL_ARGS: ");
    check_call(&s, "artifact_head", "{}", "E_INVALID_TOOL_ARGS: ");
    check_call(&s, "artifact_head", "{\"callId\":\"call_x\"}", "callId");
    drop(&s);
}

/* T122 */
TEST(forged_json_tools_refuse_the_id_of_a_text)
{
    struct shelf s;

    fill(&s);

    check_call(&s, "artifact_json_keys", "{\"callId\":\"call_a\"}", "E_INVALID_TOOL_ARGS: ");
    check_call(&s, "artifact_json_keys", "{\"callId\":\"call_j\"}", "n");
    drop(&s);
}

/* T120 */
TEST(forged_grep_refuses_flags_and_names_those_there_are)
{
    static const char *const flags[] = {"g", "y", "gi", "x", "I"};
    char args[128];
    struct shelf s;

    fill(&s);

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        snprintf(args, sizeof(args), "{\"callId\":\"call_b\",\"pattern\":\"e\",\"flags\":\"%s\"}",
                 flags[i]);
        check_call(&s, "artifact_grep", args, "E_INVALID_TOOL_ARGS: ");
        check_call(&s, "artifact_grep", args, "[imsu]");
    }
    drop(&s);
}

/* T120 */
TEST(forged_grep_takes_empty_flags_as_none)
{
    struct shelf s;

    fill(&s);

    check_call(&s, "artifact_grep", "{\"callId\":\"call_b\",\"pattern\":\"^e\",\"flags\":\"\"}",
               "(empty list)");
    check_call(&s, "artifact_grep", "{\"callId\":\"call_b\",\"pattern\":\"^e\"}", "(empty list)");
    check_call(&s, "artifact_grep", "{\"callId\":\"call_b\",\"pattern\":\"^e\",\"flags\":\"i\"}",
               "Error");
    drop(&s);
}

/* T119 */
TEST(forged_grep_that_finds_nothing_succeeds)
{
    struct shelf s;
    peg_record *record = NULL;

    fill(&s);
    CHECK_INT(world_call(&s.w, "artifact_grep", "{\"callId\":\"call_a\",\"pattern\":\"x\"}", NULL,
                         &record),
              PEG_OK);

    CHECK(!peg_record_is_error(record));
    CHECK_STR(peg_record_text(record), "(empty list)");
    peg_record_unref(record);
    drop(&s);
}

TEST(forged_tools_refuse_what_their_schemas_do_not_allow)
{
    static const struct {
        const char *tool;
        const char *args;
    } cases[] = {
        {"artifact_head", "{\"callId\":\"call_a\",\"n\":0}"},
        {"artifact_tail", "{\"callId\":\"call_a\",\"n\":1.5}"},
        {"artifact_cat", "{\"callId\":\"call_a\",\"start\":-1}"},
        {"artifact_grep", "{\"callId\":\"call_a\"}"},
        {"artifact_byte_length", "{\"callId\":\"call_a\",\"unit\":\"MB\"}"},
        {"artifact_estimate_tokens", "{\"callId\":\"call_a\",\"encoding\":\"words\"}"},
        {"artifact_estimate_tokens", "{\"callId\":\"call_a\"}"},
        {"artifact_json_get", "{\"callId\":\"call_j\"}"},
        {"artifact_json_slice", "{\"callId\":\"call_j\",\"end\":-1}"},
    };
    struct shelf s;

    fill(&s);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_call(&s, cases[i].tool, cases[i].args, "E_INVALID_TOOL_ARGS: ");
    drop(&s);
}

TEST(forged_tools_fail_with_the_words_of_the_query)
{
    struct shelf s;

    fill(&s);

    check_call(&s, "artifact_grep", "{\"callId\":\"call_a\",\"pattern\":\"(\"}",
               "E_TOOL_DOWNSTREAM_ERROR: ");
    check_call(&s, "artifact_grep", "{\"callId\":\"call_a\",\"pattern\":\"(\"}",
               "a group is not closed");
    drop(&s);
}

/* T127 */
TEST(answers_of_forged_tools_are_no_artifacts)
{
    struct shelf s;
    peg_record *record = NULL;

    fill(&s);
    CHECK_INT(world_call(&s.w, "artifact_cat", "{\"callId\":\"call_a\"}", NULL, &record), PEG_OK);

    CHECK(peg_record_is_from_artifact_tool(record));
    CHECK(peg_record_is_inline(record));
    CHECK(!peg_record_artifact(record));
    CHECK_INT(peg_record_result_kind(record), PEG_RESULT_TEXT);
    peg_record_unref(record);
    drop(&s);
}
