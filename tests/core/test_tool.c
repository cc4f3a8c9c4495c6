/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "core/tool/tool.h"
#include "pegboard/artifact.h"
#include "tool_world.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* T1 */
TEST(tool_needs_a_name_a_description_and_a_handler_only)
{
    const peg_tool_def def = minimal();
    peg_tool *tool = make(&def);

    CHECK_STR(peg__str(peg_tool_name(tool)), "search");
    CHECK_STR(peg__str(peg_tool_description(tool)), "Finds things.");
    CHECK_STR(peg__str(peg_tool_version(tool)), "");
    CHECK(!peg_tool_is_ephemeral(tool));
    CHECK(!peg_tool_is_trusted(tool));
    CHECK(!peg_tool_is_inline(tool));
    CHECK(!peg_tool_is_artifact_tool(tool));
    CHECK(!peg_tool_is_read_only(tool));
    CHECK(!peg_tool_is_idempotent(tool));
    CHECK(!peg_tool_is_destructive(tool));
    CHECK_INT(peg_tool_on_collision(tool), PEG_COLLISION_FAIL);
    CHECK_INT(peg_tool_timeout_ms(tool), 0);
    CHECK(!peg_tool_artifact_kind(tool));
    CHECK(!peg_tool_output_schema(tool));
    CHECK(!peg_tool_examples(tool));
    CHECK(!peg_tool_tags(tool)[0]);
    check_json(peg_tool_meta(tool), "{}");
    peg_tool_unref(tool);
}

TEST(tool_tells_all_it_was_given)
{
    const char *const tags[] = {"web", "slow", NULL};
    peg_tool_def def = minimal();
    peg_tool *tool;

    def.version = "1.2";
    def.tags = tags;
    def.ephemeral = def.trusted = def.inline_result = true;
    def.read_only = def.idempotent = def.destructive = true;
    def.timeout_ms = -1;
    def.artifact_kind = &peg_artifact_markdown;
    def.output_schema = "{\"type\":\"string\"}";
    def.meta = "{\"db\":{\"pool\":3}}";
    def.examples = "[{}]";
    tool = make(&def);

    CHECK_STR(peg__str(peg_tool_version(tool)), "1.2");
    CHECK_STR(peg__str(peg_tool_tags(tool)[0]), "web");
    CHECK_STR(peg__str(peg_tool_tags(tool)[1]), "slow");
    CHECK(!peg_tool_tags(tool)[2]);
    CHECK(peg_tool_is_ephemeral(tool));
    CHECK(peg_tool_is_trusted(tool));
    CHECK(peg_tool_is_inline(tool));
    CHECK(peg_tool_is_read_only(tool));
    CHECK(peg_tool_is_idempotent(tool));
    CHECK(peg_tool_is_destructive(tool));
    CHECK_INT(peg_tool_timeout_ms(tool), -1);
    CHECK(peg_tool_artifact_kind(tool) == &peg_artifact_markdown);
    check_json(peg_tool_output_schema(tool), "{\"type\":\"string\"}");
    check_json(peg_tool_meta(tool), "{\"db\":{\"pool\":3}}");
    check_json(peg_tool_examples(tool), "[{}]");
    peg_tool_unref(tool);
}

/* T2, G37 */
TEST(tool_without_a_name_a_description_or_a_handler_is_refused)
{
    peg_tool_def def = minimal();

    def.name = NULL;
    check_refused(&def, "/name", "", "needs a name");
    def.name = "";
    check_refused(&def, "/name", "", "needs a name");

    def = minimal();
    def.description = NULL;
    check_refused(&def, "/description", "", "the model reads this");
    def.description = "";
    check_refused(&def, "/description", "", "the model reads this");

    def = minimal();
    def.run = NULL;
    check_refused(&def, "/run", "", "set run");
}

TEST(tool_without_a_definition_is_refused)
{
    check_refused(NULL, "", "", "not NULL");
}

TEST(tool_name_has_letters_digits_and_five_signs)
{
    static const char *const good[] = {"a", "A9", "fs.read", "mcp:fs/read-file_2"};
    static const char *const bad[] = {"a b", "a\n", "caf\xC3\xA9", "a\"b", "<x>", "a,b", "a\x80"};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        peg_tool_def def = minimal();

        def.name = good[i];
        peg_tool_unref(make(&def));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        peg_tool_def def = minimal();

        def.name = bad[i];
        check_refused(&def, "/name", "", "letters, digits");
    }
}

TEST(tool_name_and_description_have_limits_that_are_named)
{
    char name[PEG_LIMIT_NAME_BYTES + 2];
    static char description[PEG_LIMIT_DESCRIPTION_BYTES + 2];
    peg_tool_def def = minimal();

    memset(name, 'n', sizeof(name));
    memset(description, 'd', sizeof(description));
    def.name = name;
    name[PEG_LIMIT_NAME_BYTES] = '\0';
    peg_tool_unref(make(&def));
    name[PEG_LIMIT_NAME_BYTES] = 'n';
    name[PEG_LIMIT_NAME_BYTES + 1] = '\0';
    check_refused(&def, "/name", "", "256 bytes");

    def = minimal();
    def.description = description;
    description[PEG_LIMIT_DESCRIPTION_BYTES] = '\0';
    peg_tool_unref(make(&def));
    description[PEG_LIMIT_DESCRIPTION_BYTES] = 'd';
    description[PEG_LIMIT_DESCRIPTION_BYTES + 1] = '\0';
    check_refused(&def, "/description", "", "65536 bytes");
}

TEST(tool_words_that_are_not_utf8_are_refused)
{
    const char *const tags[] = {"ok", "\xFF", NULL};
    peg_tool_def def = minimal();

    def.description = "\xC3";
    check_refused(&def, "/description", "", "UTF-8");
    def = minimal();
    def.version = "\xED\xA0\x80";
    check_refused(&def, "/version", "", "UTF-8");
    def = minimal();
    def.tags = tags;
    check_refused(&def, "/tags/1", "", "UTF-8");
}

TEST(tool_tags_are_not_empty_and_not_too_many)
{
    const char *tags[PEG_LIMIT_TAGS + 2] = {"a", "", NULL};
    peg_tool_def def = minimal();

    def.tags = tags;
    check_refused(&def, "/tags/1", "", "cannot be empty");

    for (size_t i = 0; i < PEG_LIMIT_TAGS; i++)
        tags[i] = "tag";
    tags[PEG_LIMIT_TAGS] = NULL;
    peg_tool_unref(make(&def));
    tags[PEG_LIMIT_TAGS] = "tag";
    tags[PEG_LIMIT_TAGS + 1] = NULL;
    check_refused(&def, "/tags/64", "", "64 tags");
}

/* T4 */
TEST(tool_collision_is_one_of_three)
{
    peg_tool_def def = minimal();

    for (int i = PEG_COLLISION_FAIL; i <= PEG_COLLISION_KEEP; i++) {
        peg_tool *tool;

        def.on_collision = (peg_collision)i;
        tool = make(&def);
        CHECK_INT(peg_tool_on_collision(tool), i);
        peg_tool_unref(tool);
    }
    def.on_collision = (peg_collision)3;
    check_refused(&def, "/on_collision", "", "PEG_COLLISION_FAIL");
    def.on_collision = (peg_collision)-1;
    check_refused(&def, "/on_collision", "", "PEG_COLLISION_FAIL");
}

/* T6 */
TEST(tool_takes_the_kinds_there_are_and_a_hosts_own)
{
    static const peg_artifact_kind table = {.name = "table", .base = &peg_artifact_json};
    const peg_artifact_kind *const kinds[] = {&peg_artifact_text, &peg_artifact_json,
                                              &peg_artifact_markdown, &table};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        peg_tool_def def = minimal();
        peg_tool *tool;

        def.artifact_kind = kinds[i];
        tool = make(&def);
        CHECK(peg_tool_artifact_kind(tool) == kinds[i]);
        peg_tool_unref(tool);
    }
}

/* T6 */
TEST(tool_refuses_a_kind_that_cannot_work)
{
    static const peg_artifact_kind nameless = {.name = NULL};
    peg_tool_def def = minimal();

    def.artifact_kind = &nameless;
    check_refused(&def, "/artifact_kind/name", "E_INVALID_ARGUMENT", "name");
}

/* T7 */
TEST(tool_does_not_change_when_what_it_was_made_from_does)
{
    char name[] = "search";
    char description[] = "Finds.";
    char schema[] = "{\"type\":\"object\",\"additionalProperties\":true}";
    char tag[] = "web";
    const char *tags[] = {tag, NULL};
    char meta[] = "{\"a\":1}";
    peg_tool_def def = {PEG_TOOL_DEF_INIT,      .name = name, .description = description,
                        .input_schema = schema, .tags = tags, .meta = meta,
                        .run = answer};
    peg_tool *tool = make(&def);

    memset(name, 'x', 3);
    memset(description, 'x', 3);
    memset(schema, ' ', sizeof(schema) - 1);
    memset(tag, 'x', 3);
    memset(meta, ' ', sizeof(meta) - 1);
    tags[0] = NULL;
    def.ephemeral = def.trusted = true;

    CHECK_STR(peg__str(peg_tool_name(tool)), "search");
    CHECK_STR(peg__str(peg_tool_description(tool)), "Finds.");
    CHECK_STR(peg__str(peg_tool_tags(tool)[0]), "web");
    check_json(peg_tool_input_schema(tool), "{\"type\":\"object\",\"additionalProperties\":true}");
    check_json(peg_tool_meta(tool), "{\"a\":1}");
    CHECK(!peg_tool_is_ephemeral(tool));
    peg_tool_unref(tool);
}

/* T11 */
TEST(artifact_tool_is_a_tool_that_has_no_kind)
{
    peg_tool_def def = minimal();
    peg_tool *tool = NULL;
    peg_error error;

    CHECK_STATUS(peg_artifact_tool_new(&def, &tool, &error), PEG_OK, error);
    CHECK(peg_tool_is_artifact_tool(tool));
    CHECK_STR(peg__str(peg_tool_name(tool)), "search");
    peg_tool_unref(tool);

    def.artifact_kind = &peg_artifact_text;
    CHECK_STATUS(peg_artifact_tool_new(&def, &tool, &error), PEG_EINVAL, error);
    CHECK_STR(peg__str(error.code), "E_INVALID_INITIAL_TOOL_VALUE");
    CHECK_STR(peg__str(error.where), "/artifact_kind");
}

/* ---- what the host gave ---------------------------------------------------------------------- */

static void count_free(void *user)
{
    ++*(int *)user;
}

TEST(tool_frees_user_once_when_the_last_reference_goes)
{
    int n_freed = 0;
    peg_tool_def def = minimal();
    peg_tool *tool;

    def.user = &n_freed;
    def.user_free = count_free;
    tool = make(&def);
    CHECK(peg_tool_ref(tool) == tool);

    CHECK(!peg_tool_unref(tool));
    CHECK_INT(n_freed, 0);
    CHECK(!peg_tool_unref(tool));
    CHECK_INT(n_freed, 1);
    CHECK(!peg_tool_unref(NULL));
}

TEST(tool_that_is_refused_leaves_user_to_the_caller)
{
    int n_freed = 0;
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":5}");

    def.user = &n_freed;
    def.user_free = count_free;
    check_refused(&def, "/input_schema/properties", "E_SCHEMA_KEYWORD", "properties");
    CHECK_INT(n_freed, 0);
}

TEST(tool_meta_must_be_an_object)
{
    peg_tool_def def = minimal();

    def.meta = "[1]";
    check_refused(&def, "/meta", "", "JSON object");
    def.meta = "{\"a\":";
    check_refused(&def, "/meta", "E_JSON_SYNTAX", "/meta");
    def.meta = "{\"a\":1,\"a\":2}";
    check_refused(&def, "/meta/a", "E_JSON_DUPLICATE_KEY", "twice");
}

TEST(tool_meta_has_a_limit)
{
    const size_t len = PEG_LIMIT_META_BYTES + 1;
    char *meta = malloc(len + 1);
    peg_tool_def def = minimal();

    memset(meta, ' ', len);
    memcpy(meta, "{}", 2);
    meta[len] = '\0';
    def.meta = meta;
    check_refused(&def, "/meta", "E_JSON_TOO_LARGE", "/meta");
    free(meta);
}

/* ---- examples -------------------------------------------------------------------------------- */

/* G59 */
TEST(tool_examples_are_checked_against_the_schema)
{
    peg_tool_def def =
        with_schema("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}");

    def.examples = "[{\"n\":1},{\"n\":\"two\"}]";
    check_refused(&def, "/examples/1/n", "E_INVALID_TOOL_ARGS", "must be an integer");
    def.examples = "[{\"m\":1}]";
    check_refused(&def, "/examples/0", "E_INVALID_TOOL_ARGS", "'m'");
    def.examples = "[[]]";
    check_refused(&def, "/examples/0", "E_INVALID_TOOL_ARGS", "an array");
}

TEST(tool_examples_are_an_array)
{
    peg_tool_def def = minimal();

    def.examples = "{}";
    check_refused(&def, "/examples", "", "JSON array");
    def.examples = "[";
    check_refused(&def, "/examples", "E_JSON_SYNTAX", "/examples");
}

TEST(tool_examples_may_leave_out_what_has_a_default)
{
    peg_tool_def def =
        with_schema("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"default\":"
                    "3}},\"required\":[\"n\"]}");
    peg_tool *tool;

    def.examples = "[{}]";
    tool = make(&def);
    check_json(peg_tool_examples(tool), "[{}]");
    peg_tool_unref(tool);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(tool_survives_any_allocation_failure_while_it_is_made)
{
    const char *const tags[] = {"web", "slow", NULL};
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                   "\"integer\",\"default\":3}},\"allOf\":[{}]}");
    int n_freed = 0;
    peg_tool *tool = NULL;
    peg_status status;

    def.version = "1";
    def.tags = tags;
    def.output_schema = "{\"type\":\"string\"}";
    def.meta = "{\"a\":1}";
    def.examples = "[{},{\"n\":1}]";
    def.user = &n_freed;
    def.user_free = count_free;
    status = peg_tool_new(&def, &tool, NULL);
    CHECK_INT(n_freed, 0);
    peg_tool_unref(tool);
    CHECK_INT(n_freed, status == PEG_OK);
    return status;
}
