/* SPDX-License-Identifier: Apache-2.0 */

#include "core/tool/tool.h"
#include "pegboard/log.h"
#include "tool_world.h"

/* ---- fixture --------------------------------------------------------------------------------- */

/* What a schema becomes. */
static void check_enforced(const char *schema, const char *expected)
{
    const peg_tool_def def = with_schema(schema);
    peg_tool *tool = make(&def);

    check_json(peg_tool_input_schema(tool), expected);
    peg_tool_unref(tool);
}

static char logged[512];
static char logged_code[64];

static void on_log(peg_log_level level, const char *code, const char *message, void *user)
{
    (void)level;
    (void)user;
    snprintf(logged_code, sizeof(logged_code), "%s", code);
    snprintf(logged, sizeof(logged), "%s", message);
}

/* ---- schemas: what is refused ---------------------------------------------------------------- */

/* T3 */
TEST(tool_schema_that_is_none_is_refused_with_its_place)
{
    peg_tool_def def = with_schema("not json");
    peg_error error;
    peg_tool *tool;

    check_refused(&def, "/input_schema", "E_JSON_SYNTAX", "/input_schema");
    def = with_schema("\"object\"");
    check_refused(&def, "/input_schema", "E_SCHEMA_KEYWORD", "schema");
    def = with_schema("{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"strin\"}}}");
    check_refused(&def, "/input_schema/properties/x/type", "E_SCHEMA_KEYWORD", "'type'");
    def = with_schema("{\"type\":\"object\",\"$schema\":\"http://example.org/mine\"}");
    check_refused(&def, "/input_schema/$schema", "E_SCHEMA_DIALECT", "example.org");
    def = with_schema("{\"type\":\"object\",\"type\":\"object\"}");
    check_refused(&def, "/input_schema/type", "E_JSON_DUPLICATE_KEY", "twice");

    def = with_schema("{\n  \"type\": object\n}");
    CHECK_STATUS(peg_tool_new(&def, &tool, &error), PEG_EINVAL, error);
    CHECK_INT(error.line, 2);
}

/* T3 */
TEST(tool_schema_whose_root_is_no_object_is_refused)
{
    static const char *const bad[] = {
        "{\"type\":\"string\"}",
        "{\"type\":[\"string\",\"null\"]}",
        "{\"type\":[\"object\",\"null\"]}",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const peg_tool_def def = with_schema(bad[i]);

        check_refused(&def, "/input_schema/type", "", "\"type\": \"object\"");
    }
}

/* T3 */
TEST(tool_schema_that_does_not_say_what_its_root_is_gets_a_remedy)
{
    static const char *const bad[] = {
        "{}",
        "true",
        "false",
        "{\"city\":{\"type\":\"string\"}}", /* the usual mistake */
        "{\"properties\":{}}",
        "{\"allOf\":[{\"type\":\"string\"}]}",
        "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}",
        "{\"anyOf\":[false,{\"const\":3}]}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"enum\":[1,2]}}}",
        ("{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
         "\"$ref\":\"#/definitions/a\",\"definitions\":{\"a\":{\"type\":\"array\"}}}"),
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        const peg_tool_def def = with_schema(bad[i]);

        check_refused(&def, "/input_schema", "", "object");
    }
}

/* Looking through all of it would take a thousand to the fourth steps. */
TEST(tool_schema_that_refers_to_itself_a_thousand_times_is_judged_quickly)
{
    struct peg__buf schema = PEG__BUF(1 << 20);
    peg_tool_def def;

    peg__buf_puts(&schema, "{\"allOf\":[");
    for (int i = 0; i < 1000; i++)
        peg__buf_puts(&schema, "{\"properties\":{\"a\":{}},\"$ref\":\"#\"},");
    peg__buf_puts(&schema, "{\"properties\":{\"b\":{}}}]}");
    def = with_schema(schema.ptr);

    peg_tool_unref(make(&def));
    peg__buf_free(&schema);
}

TEST(tool_schema_with_long_lists_is_judged_quickly)
{
    enum { N = 30000 };
    struct peg__buf schema = PEG__BUF(4 << 20);
    peg_tool_def def;

    peg__buf_puts(&schema, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < N / 2; i++)
        peg__buf_printf(&schema, "%s\"a%d\":{}", i ? "," : "", i);
    peg__buf_puts(&schema, "},\"required\":[");
    for (int i = 0; i < N; i++)
        peg__buf_printf(&schema, "%s\"a%d\"", i ? "," : "", i);
    peg__buf_puts(&schema, "]}");
    def = with_schema(schema.ptr);

    peg_tool_unref(make(&def));
    peg__buf_free(&schema);
}

TEST(tool_schema_with_a_default_it_would_refuse_is_refused)
{
    const peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
                                         "\"integer\",\"default\":\"three\"}}}");

    check_refused(&def, "/input_schema/properties/n/default", "E_SCHEMA_KEYWORD", "default");
}

TEST(tool_schema_whose_defaults_are_beyond_the_limits_is_refused)
{
    struct peg__buf schema = PEG__BUF(1 << 20);
    peg_tool_def def;

    peg__buf_puts(&schema, "{\"type\":\"object\",\"allOf\":[{}");
    for (int i = 0; i < 40; i++)
        peg__buf_printf(&schema, ",{\"properties\":{\"a%d\":{\"default\":1}}}", i);
    peg__buf_puts(&schema, "]}");
    def = with_schema(schema.ptr);

    check_refused(&def, "/input_schema", "E_SCHEMA_FILL_LIMIT", "allOf");
    peg__buf_free(&schema);
}

TEST(tool_schema_that_requires_what_it_does_not_describe_is_refused)
{
    peg_tool_def def =
        with_schema("{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\",\"b\"]}");

    check_refused(&def, "/input_schema/required/1", "", "properties");
    def = with_schema("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}");
    check_refused(&def, "/input_schema/required/0", "", "properties");
    def = with_schema("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":true}");
    peg_tool_unref(make(&def));
    def = with_schema(
        "{\"type\":\"object\",\"required\":[\"ab\"],\"patternProperties\":{\"^a\":{}}}");
    peg_tool_unref(make(&def));
    def = with_schema("{\"type\":\"object\",\"required\":[\"a\"],\"allOf\":[{\"properties\":{\"a\":"
                      "{}}}]}");
    peg_tool_unref(make(&def));
    def = with_schema("{\"type\":\"object\",\"required\":[\"a\"]}");
    def.open_arguments = true;
    peg_tool_unref(make(&def));
}

TEST(tool_schema_beyond_its_limits_is_refused_by_the_name_of_the_limit)
{
    const peg_schema_options small = {PEG_SCHEMA_OPTIONS_INIT, .max_bytes = 20};
    const peg_schema_options flat = {PEG_SCHEMA_OPTIONS_INIT, .max_depth = 1};
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{}}");

    def.schema_options = &small;
    check_refused(&def, "/input_schema", "E_SCHEMA_TOO_LARGE", "max_bytes = 20");
    def = with_schema("{\"type\":\"object\",\"properties\":{\"a\":{\"properties\":{\"b\":{"
                      "\"properties\":{\"c\":{}}}}}}}");
    def.schema_options = &flat;
    check_refused(&def, "/input_schema", "E_SCHEMA_TOO_LARGE", "max_depth = 1");
}

TEST(tool_output_schema_is_refused_with_its_own_place)
{
    peg_tool_def def = minimal();

    def.output_schema = "{\"items\":{\"type\":\"nothing\"}}";
    check_refused(&def, "/output_schema/items/type", "E_SCHEMA_KEYWORD", "'type'");
}

TEST(tool_error_in_another_document_tells_its_uri_in_words)
{
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":"
                                   "\"http://example.org/a\"}}}");
    peg_schema_docs *docs = peg_schema_docs_new();
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg__str("{\"type\":\"strin\"}"), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_schema_docs_add(docs, peg__str("http://example.org/a"), peg_json_root(doc), NULL),
              PEG_OK);
    def.schema_options = &options;

    check_refused(&def, "/input_schema", "E_SCHEMA_KEYWORD", "at http://example.org/a");
    peg_json_doc_free(doc);
    peg_schema_docs_free(docs);
}

/* ---- schemas: closing ------------------------------------------------------------------------ */

TEST(tool_without_a_schema_takes_no_arguments)
{
    check_enforced(NULL, "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
}

TEST(tool_schema_that_is_silent_about_other_members_is_closed)
{
    check_enforced("{\"type\":\"object\"}", "{\"type\":\"object\",\"additionalProperties\":false}");
    check_enforced(
        "{ \"type\": [\"object\"], \"properties\": {\"a\": {}}}",
        "{\"type\":[\"object\"],\"properties\":{\"a\":{}},\"additionalProperties\":false}");
    check_enforced("{\"type\":\"object\",\"patternProperties\":{\"^x\":{}}}",
                   "{\"type\":\"object\",\"patternProperties\":{\"^x\":{}},"
                   "\"additionalProperties\":false}");
    check_enforced("{\"type\":\"object\",\"not\":{\"required\":[\"a\"]},\"properties\":{\"a\":{}}}",
                   "{\"type\":\"object\",\"not\":{\"required\":[\"a\"]},\"properties\":{\"a\":{}},"
                   "\"additionalProperties\":false}");
}

TEST(tool_schema_that_says_something_about_other_members_stays)
{
    static const char *const said[] = {
        "{\"type\":\"object\",\"additionalProperties\":true}",
        "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
        "{\"type\":\"object\",\"additionalProperties\":false}",
        "{\"type\":\"object\",\"unevaluatedProperties\":{\"type\":\"string\"}}",
        "{\"type\":\"object\",\"enum\":[{\"a\":1},{\"a\":2}]}",
        "{\"type\":\"object\",\"const\":{\"a\":1}}",
        "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^x-\"}}",
        "{\"type\":\"object\",\"minProperties\":1}",
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        check_enforced(said[i], said[i]);
}

TEST(tool_schema_with_references_or_branches_is_closed_over_all_of_them)
{
    check_enforced("{\"type\":\"object\",\"allOf\":[{\"properties\":{\"a\":{}}}]}",
                   "{\"type\":\"object\",\"allOf\":[{\"properties\":{\"a\":{}}}],"
                   "\"unevaluatedProperties\":false}");
    check_enforced("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}}}",
                   "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}},"
                   "\"type\":\"object\",\"unevaluatedProperties\":false}");
    check_enforced("{\"type\":\"object\",\"if\":{\"required\":[\"a\"]},\"then\":{}}",
                   "{\"type\":\"object\",\"if\":{\"required\":[\"a\"]},\"then\":{},"
                   "\"unevaluatedProperties\":false}");
    check_enforced("{\"type\":\"object\",\"dependentSchemas\":{\"a\":{}}}",
                   "{\"type\":\"object\",\"dependentSchemas\":{\"a\":{}},"
                   "\"unevaluatedProperties\":false}");
    check_enforced("{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\","
                   "\"type\":\"object\",\"oneOf\":[{}]}",
                   "{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\","
                   "\"type\":\"object\",\"oneOf\":[{}],\"unevaluatedProperties\":false}");
}

TEST(tool_schema_of_an_old_draft_is_closed_where_that_is_possible)
{
    peg_tool_def def = with_schema("{\"type\":\"object\",\"dependencies\":{\"a\":[\"b\"]}}");
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};
    peg_tool *tool;

    def.schema_options = &draft7;
    tool = make(&def);
    check_json(peg_tool_input_schema(tool), "{\"type\":\"object\",\"dependencies\":{\"a\":[\"b\"]},"
                                            "\"additionalProperties\":false}");
    peg_tool_unref(tool);
}

TEST(tool_schema_of_an_old_draft_with_branches_stays_open_and_the_log_says_so)
{
    static const char *const schemas[] = {
        "{\"type\":\"object\",\"allOf\":[{\"properties\":{\"a\":{}}}]}",
        "{\"$ref\":\"#/definitions/a\",\"definitions\":{\"a\":{\"type\":\"object\"}}}",
        "{\"type\":\"object\",\"dependencies\":{\"a\":{}}}",
    };
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};

    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
        peg_tool_def def = with_schema(schemas[i]);
        peg_tool *tool;

        def.schema_options = &draft7;
        logged[0] = logged_code[0] = '\0';
        CHECK_INT(peg_log_set(on_log, PEG_LOG_WARN, NULL), PEG_OK);
        tool = make(&def);
        CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);

        check_json(peg_tool_input_schema(tool), schemas[i]);
        CHECK_STR(peg__str(logged_code), "E_TOOL_ARGUMENTS_OPEN");
        CHECK(strstr(logged, "'search'") != NULL);
        peg_tool_unref(tool);
    }
}

TEST(tool_with_open_arguments_keeps_its_schema_as_given)
{
    static const char *const schemas[] = {
        "{\"type\":\"object\",\"properties\":{\"a\":{}}}",
        "{\"type\":\"object\",\"allOf\":[{}]}",
        "{}",
        "true",
        "{\"type\":[\"object\",\"null\"]}",
    };

    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
        peg_tool_def def = with_schema(schemas[i]);
        peg_tool *tool;

        def.open_arguments = true;
        logged_code[0] = '\0';
        CHECK_INT(peg_log_set(on_log, PEG_LOG_WARN, NULL), PEG_OK);
        tool = make(&def);
        CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);

        check_json(peg_tool_input_schema(tool), schemas[i]);
        CHECK_STR(peg__str(logged_code), "");
        peg_tool_unref(tool);
    }
}

TEST(tool_with_open_arguments_still_refuses_what_is_never_an_object)
{
    peg_tool_def def = with_schema("{\"type\":\"string\"}");

    def.open_arguments = true;
    check_refused(&def, "/input_schema/type", "", "object");
    def.input_schema = "false";
    check_refused(&def, "/input_schema", "", "object");
}

TEST(tools_share_one_compiled_schema_through_a_cache)
{
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"a\":{}}}");
    peg_schema_cache *cache = NULL;
    peg_tool *one;
    peg_tool *two;

    CHECK_INT(peg_schema_cache_new(1 << 20, &cache, NULL), PEG_OK);
    def.schema_cache = cache;
    one = make(&def);
    def.input_schema = " { \"type\" : \"object\", \"properties\" : { \"a\" : {} } } ";
    two = make(&def);

    CHECK(one->input == two->input);
    peg_schema_cache_free(cache);
    check_json(peg_tool_input_schema(two),
               "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":false}");
    peg_tool_unref(one);
    peg_tool_unref(two);
}

TEST(tool_knows_whether_its_schema_has_anything_to_fill_in)
{
    peg_tool_def def = with_schema("{\"type\":\"object\",\"properties\":{\"default\":{}}}");
    peg_tool *tool = make(&def);

    CHECK(!tool->has_defaults);
    peg_tool_unref(tool);

    def = with_schema("{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d\"}},"
                      "\"$defs\":{\"d\":{\"default\":1}}}");
    tool = make(&def);
    CHECK(tool->has_defaults);
    peg_tool_unref(tool);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(tool_says_out_of_memory_in_its_error)
{
    peg_tool_def def =
        with_schema("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}}}");
    peg_schema_cache *cache = NULL;
    peg_tool *tool = NULL;
    peg_error error;
    peg_status status = peg_schema_cache_new(1 << 20, &cache, NULL);

    def.schema_cache = cache;
    if (status == PEG_OK)
        status = peg_tool_new(&def, &tool, &error);
    if (status && cache)
        CHECK_INT(error.status, PEG_ENOMEM);
    peg_tool_unref(tool);
    peg_schema_cache_free(cache);
    return status;
}
