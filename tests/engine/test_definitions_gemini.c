/* SPDX-License-Identifier: Apache-2.0 */

/* Gemini's OpenAPI subset, and its JSON Schema. */

#include "definitions_world.h"

static const peg_definitions_options gemini = {PEG_DEFINITIONS_OPTIONS_INIT,
                                               .vendor = PEG_VENDOR_GEMINI};
static const peg_definitions_options json = {PEG_DEFINITIONS_OPTIONS_INIT,
                                             .vendor = PEG_VENDOR_GEMINI, .json_schema = true};

static peg_status render_member(struct world *w, const char *schema,
                                const peg_definitions_options *options)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    peg__buf_printf(&text, "{\"type\":\"object\",\"properties\":{\"a\":%s}}", schema);
    status = render_schema(w, text.ptr, options);
    peg__buf_free(&text);
    return status;
}

/* What becomes of one member. */
static void check_member(const char *schema, const char *expected, size_t n_losses)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    CHECK_STATUS(render_member(&w, schema, &gemini), PEG_OK, w.error);
    peg__buf_printf(&text,
                    "[{\"functionDeclarations\":[{\"name\":\"t\",\"parameters\":{\"type\":"
                    "\"OBJECT\",\"properties\":{\"a\":%s}}}]}]",
                    expected);
    CHECK_TEXT(&w, text.ptr);
    CHECK_LOSSES(&w, n_losses);
    world_free(&w);
    peg__buf_free(&text);
}

static void check_json(const char *schema, const char *expected, size_t n_losses)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    CHECK_STATUS(render_member(&w, schema, &json), PEG_OK, w.error);
    peg__buf_printf(&text,
                    "[{\"functionDeclarations\":[{\"name\":\"t\",\"parametersJsonSchema\":{"
                    "\"type\":\"object\",\"properties\":{\"a\":%s}}}]}]",
                    expected);
    CHECK_TEXT(&w, text.ptr);
    CHECK_LOSSES(&w, n_losses);
    world_free(&w);
    peg__buf_free(&text);
}

#define ANYTHING                                                                                   \
    "{\"type\":\"STRING\"},{\"type\":\"NUMBER\"},{\"type\":\"BOOLEAN\"},{\"type\":\"OBJECT\"}"

/* ---- what is kept ---------------------------------------------------------------------------- */

/* G123 */
TEST(types_items_enums_and_required_members_are_kept_at_every_depth)
{
    check_member("{\"type\":\"object\",\"description\":\"d\",\"properties\":{\"x\":{\"type\":"
                 "\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"p\",\"q\"]},\"minItems\":1},"
                 "\"y\":{\"type\":\"boolean\"}},\"required\":[\"x\"]}",
                 "{\"type\":\"OBJECT\",\"description\":\"d\",\"properties\":{\"x\":{\"type\":"
                 "\"ARRAY\",\"minItems\":1,\"items\":{\"type\":\"STRING\",\"enum\":[\"p\",\"q\"]}},"
                 "\"y\":{\"type\":\"BOOLEAN\"}},\"required\":[\"x\"]}",
                 0);
    check_member("{\"type\":\"string\",\"title\":\"T\",\"minLength\":1,\"maxLength\":9,\"pattern\":"
                 "\"^a\",\"format\":\"date-time\",\"default\":\"x\"}",
                 "{\"type\":\"STRING\",\"format\":\"date-time\",\"title\":\"T\",\"pattern\":\"^a\","
                 "\"minLength\":1,\"maxLength\":9,\"default\":\"x\"}",
                 0);
    check_member("{\"type\":\"number\",\"minimum\":0.5,\"maximum\":1000,\"format\":\"double\"}",
                 "{\"type\":\"NUMBER\",\"format\":\"double\",\"minimum\":0.5,\"maximum\":1000}", 0);
}

TEST(null_is_said_by_nullable)
{
    check_member("{\"type\":[\"string\",\"null\"]}", "{\"type\":\"STRING\",\"nullable\":true}", 0);
    check_member("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"description\":\"d\"}",
                 "{\"type\":\"STRING\",\"description\":\"d\",\"nullable\":true}", 0);
    check_member("{\"enum\":[\"x\",null]}",
                 "{\"type\":\"STRING\",\"nullable\":true,\"enum\":[\"x\"]}", 0);
    check_member("{\"type\":\"null\"}", "{\"type\":\"NULL\"}", 0);
    check_member("{\"type\":\"integer\",\"nullable\":true}",
                 "{\"type\":\"INTEGER\",\"nullable\":true}", 0);
}

/* T155, G123 */
TEST(members_named_like_keywords_survive_and_stay_required)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"type\":\"object\",\"properties\":{\"format\":{\"type\":\"string\""
                      "},\"default\":{\"type\":\"string\"},\"$ref\":{\"type\":\"string\"},"
                      "\"oneOf\":{\"type\":\"string\"},\"const\":{\"type\":\"string\"}},"
                      "\"required\":[\"format\",\"default\",\"$ref\",\"const\"]}",
                      &gemini),
        PEG_OK, w.error);

    CHECK(strstr(w.text, "{\"format\":{\"type\":\"STRING\"},\"default\":{\"type\":\"STRING\"},"
                         "\"$ref\":{\"type\":\"STRING\"},\"oneOf\":{\"type\":\"STRING\"},\"const\":"
                         "{\"type\":\"STRING\"}},\"required\":[\"format\",\"default\",\"$ref\","
                         "\"const\"]"));
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

/* ---- what is rewritten
 * ---------------------------------------------------------------------------- */

/* G123 */
TEST(keywords_that_gemini_refuses_are_gone_and_told)
{
    struct world w;

    CHECK_STATUS(
        render_schema(
            &w,
            "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"x\","
            "\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"const\":\"k\""
            "},\"b\":{\"type\":\"object\",\"propertyNames\":{\"maxLength\":3},"
            "\"patternProperties\":{\"^x\":{}},\"additionalProperties\":{\"type\":"
            "\"string\"}}},\"dependentRequired\":{\"a\":[\"b\"]},\"not\":{\"required\":["
            "\"z\"]},\"additionalProperties\":false,\"x-order\":1}",
            &gemini),
        PEG_OK, w.error);

    CHECK(!strstr(w.text, "\"const\"") && !strstr(w.text, "\"$schema\"") &&
          !strstr(w.text, "\"$id\"") && !strstr(w.text, "\"additionalProperties\"") &&
          !strstr(w.text, "\"not\"") && !strstr(w.text, "\"patternProperties\""));
    CHECK(strstr(w.text, "\"a\":{\"type\":\"STRING\",\"enum\":[\"k\"]}"));
    CHECK_LOSS(&w, "/$schema", "$schema", "dropped");
    CHECK_LOSS(&w, "/$id", "$id", "dropped");
    CHECK_LOSS(&w, "/additionalProperties", "additionalProperties", "dropped");
    CHECK_LOSS(&w, "/not", "not", "described");
    CHECK_LOSS(&w, "/dependentRequired", "dependentRequired", "described");
    CHECK_LOSS(&w, "/x-order", "x-order", "dropped");
    CHECK_LOSS(&w, "/properties/a/const", "const", "rewritten");
    CHECK_LOSS(&w, "/properties/b/propertyNames", "propertyNames", "described");
    CHECK_LOSS(&w, "/properties/b/patternProperties", "patternProperties", "described");
    CHECK_LOSS(&w, "/properties/b/additionalProperties", "additionalProperties", "described");
    CHECK_LOSSES(&w, 10);
    world_free(&w);
}

TEST(values_that_are_no_strings_are_described)
{
    check_member("{\"enum\":[1,2.5]}", "{\"type\":\"NUMBER\",\"description\":\"(enum: [1,2.5])\"}",
                 1);
    check_member("{\"type\":\"integer\",\"enum\":[1,2],\"description\":\"d\"}",
                 "{\"type\":\"INTEGER\",\"description\":\"d (enum: [1,2])\"}", 1);
    check_member("{\"const\":true}", "{\"type\":\"BOOLEAN\",\"description\":\"(const: true)\"}", 1);
    check_member("{\"enum\":[\"\",\"x\"]}", "{\"type\":\"STRING\",\"enum\":[\"x\"]}", 1);
}

TEST(bounds_that_exclude_their_value_include_the_next_whole_number)
{
    check_member("{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":10}",
                 "{\"type\":\"INTEGER\",\"minimum\":1,\"maximum\":9}", 2);
    check_member("{\"type\":\"number\",\"exclusiveMinimum\":0}",
                 "{\"type\":\"NUMBER\",\"description\":\"(exclusiveMinimum: 0)\"}", 1);
    check_member(
        "{\"type\":\"integer\",\"exclusiveMinimum\":9223372036854775807}",
        "{\"type\":\"INTEGER\",\"description\":\"(exclusiveMinimum: 9223372036854775807)\"}", 1);
}

TEST(formats_that_gemini_does_not_know_are_described)
{
    check_member("{\"type\":\"string\",\"format\":\"email\"}",
                 "{\"type\":\"STRING\",\"description\":\"(format: \\\"email\\\")\"}", 1);
    check_member("{\"type\":\"integer\",\"format\":\"date-time\"}",
                 "{\"type\":\"INTEGER\",\"description\":\"(format: \\\"date-time\\\")\"}", 1);
}

/* G51 */
TEST(an_array_that_is_silent_about_its_items_takes_anything)
{
    check_member("{\"type\":\"array\"}",
                 "{\"type\":\"ARRAY\",\"items\":{\"anyOf\":[" ANYTHING "]}}", 1);
    check_member("{\"type\":\"array\",\"items\":true}",
                 "{\"type\":\"ARRAY\",\"items\":{\"anyOf\":[" ANYTHING "]}}", 1);
}

TEST(a_tuple_takes_any_of_its_items)
{
    check_member("{\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}",
                 "{\"type\":\"ARRAY\",\"items\":{\"anyOf\":[{\"type\":\"STRING\"},{\"type\":"
                 "\"INTEGER\"}]}}",
                 1);
    check_member("{\"items\":[{\"type\":\"string\"}]}",
                 "{\"type\":\"ARRAY\",\"items\":{\"type\":\"STRING\"}}", 1);
}

TEST(a_schema_of_any_kind_is_any_of_them)
{
    check_member("{}", "{\"anyOf\":[" ANYTHING "]}", 1);
    check_member("true", "{\"anyOf\":[" ANYTHING "]}", 1);
    check_member("{\"description\":\"d\"}", "{\"description\":\"d\",\"anyOf\":[" ANYTHING "]}", 1);
}

TEST(several_types_are_several_branches_each_with_its_rules)
{
    check_member("{\"type\":[\"string\",\"integer\",\"null\"],\"maxLength\":3,\"minimum\":1}",
                 "{\"nullable\":true,\"anyOf\":[{\"type\":\"INTEGER\",\"minimum\":1},{\"type\":"
                 "\"STRING\",\"maxLength\":3}]}",
                 1);
}

/* G53 */
TEST(an_object_of_any_members_is_an_object)
{
    check_member("{\"type\":\"object\"}", "{\"type\":\"OBJECT\"}", 0);
    check_member("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
                 "{\"type\":\"OBJECT\",\"description\":\"(additionalProperties: {\\\"type\\\":"
                 "\\\"string\\\"})\"}",
                 1);
}

TEST(only_members_that_are_described_are_required)
{
    check_member("{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"},\"no\":false},"
                 "\"required\":[\"x\",\"ghost\"]}",
                 "{\"type\":\"OBJECT\",\"properties\":{\"x\":{\"type\":\"STRING\"}},\"required\":["
                 "\"x\"]}",
                 2);
}

TEST(a_field_of_the_wrong_kind_is_dropped)
{
    check_member("{\"type\":\"string\",\"minLength\":\"1\",\"pattern\":5,\"title\":7}",
                 "{\"type\":\"STRING\"}", 2);
    check_member("{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":-1}",
                 "{\"type\":\"ARRAY\",\"items\":{\"type\":\"STRING\"}}", 1);
}

/* ---- combinators
 * ------------------------------------------------------------------------------------- */

TEST(one_of_is_sent_as_any_of)
{
    check_member("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}",
                 "{\"anyOf\":[{\"type\":\"STRING\"},{\"type\":\"INTEGER\"}]}", 1);
}

TEST(branches_take_over_the_rules_beside_them)
{
    check_member(
        "{\"type\":\"object\",\"description\":\"d\",\"properties\":{\"x\":{\"type\":"
        "\"string\"},\"y\":{\"type\":\"string\"}},\"additionalProperties\":false,\"anyOf\":["
        "{\"required\":[\"x\"]},{\"required\":[\"y\"]}]}",
        "{\"description\":\"d\",\"anyOf\":[{\"type\":\"OBJECT\",\"properties\":{\"x\":{"
        "\"type\":\"STRING\"},\"y\":{\"type\":\"STRING\"}},\"required\":[\"x\"]},{\"type\":"
        "\"OBJECT\",\"properties\":{\"x\":{\"type\":\"STRING\"},\"y\":{\"type\":\"STRING\"}"
        "},\"required\":[\"y\"]}]}",
        1);
}

TEST(all_of_is_merged)
{
    check_member("{\"allOf\":[{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}},"
                 "\"required\":[\"x\"]},{\"properties\":{\"x\":{},\"y\":{\"type\":\"integer\"}},"
                 "\"required\":[\"y\"]}]}",
                 "{\"type\":\"OBJECT\",\"properties\":{\"x\":{\"type\":\"STRING\"},\"y\":{\"type\":"
                 "\"INTEGER\"}},\"required\":[\"x\",\"y\"]}",
                 0);
}

TEST(what_contradicts_itself_is_sent_once_and_told)
{
    struct world w;

    CHECK_STATUS(render_member(&w,
                               "{\"type\":\"string\",\"minLength\":1,\"allOf\":[{\"minLength\":5"
                               "}]}",
                               &gemini),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "\"minLength\":1"));
    CHECK_LOSS(&w, "/properties/a/allOf/0/minLength", "minLength", "dropped");
    world_free(&w);
}

/* ---- the root
 * ------------------------------------------------------------------------------------------ */

TEST(branches_at_the_root_offer_their_members)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"oneOf\":[{\"properties\":{\"x\":{\"type\":\"string\"}},"
                               "\"required\":[\"x\"]},{\"$ref\":\"#/$defs/b\"}],\"$defs\":{\"b\":{"
                               "\"properties\":{\"y\":{\"type\":\"array\"}}}}}",
                               &gemini),
                 PEG_OK, w.error);

    CHECK_TEXT(&w,
               "[{\"functionDeclarations\":[{\"name\":\"t\",\"parameters\":{\"type\":\"OBJECT\","
               "\"properties\":{\"x\":{\"type\":\"STRING\"},\"y\":{\"type\":\"ARRAY\",\"items\":"
               "{\"anyOf\":[" ANYTHING "]}}}}}]}]");
    CHECK_LOSS(&w, "/oneOf", "oneOf", "rewritten");
    CHECK_LOSS(&w, "/$defs/b/properties/y", "items", "rewritten");
    world_free(&w);
}

TEST(a_root_without_members_is_left_out_with_what_it_says)
{
    struct world w;

    CHECK_STATUS(render_schema(&w, "{\"type\":[\"object\",\"null\"],\"additionalProperties\":true}",
                               &gemini),
                 PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"functionDeclarations\":[{\"name\":\"t\"}]}]");
    CHECK_LOSS(&w, "/additionalProperties", "additionalProperties", "dropped");
    CHECK_LOSS(&w, "/type", "type", "rewritten");
    world_free(&w);
}

/* ---- references
 * -------------------------------------------------------------------------------------------- */

TEST(references_are_written_out_in_place)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/p\",\"description\":\"A\""
                      "},\"b\":{\"$ref\":\"#/$defs/p\"}},\"$defs\":{\"p\":{\"type\":"
                      "\"string\",\"description\":\"P\",\"uniqueItems\":true}}}",
                      &gemini),
        PEG_OK, w.error);

    CHECK(strstr(w.text,
                 "\"a\":{\"type\":\"STRING\",\"description\":\"A (uniqueItems: true)\"},\"b\":"
                 "{\"type\":\"STRING\",\"description\":\"P (uniqueItems: true)\"}"));
    CHECK_LOSS(&w, "/$defs/p/uniqueItems", "uniqueItems", "described");
    world_free(&w);
}

TEST(a_reference_into_itself_is_left_open)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"properties\":{\"tree\":{\"$ref\":\"#/$defs/n\"},\"all\":{\"$ref\""
                      ":\"#\"}},\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{"
                      "\"kids\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"}}}}}}",
                      &gemini),
        PEG_OK, w.error);

    CHECK(strstr(w.text,
                 "\"tree\":{\"type\":\"OBJECT\",\"properties\":{\"kids\":{\"type\":\"ARRAY\","
                 "\"items\":{\"type\":\"OBJECT\"}}}},\"all\":{\"type\":\"OBJECT\"}"));
    CHECK_LOSS(&w, "/$defs/n/properties/kids/items/$ref", "$ref", "rewritten");
    CHECK_LOSS(&w, "/properties/all/$ref", "$ref", "rewritten");
    world_free(&w);
}

TEST(a_reference_that_leads_elsewhere_is_left_open)
{
    check_member("{\"$ref\":\"https://example.com/x\"}", "{\"type\":\"OBJECT\"}", 1);
    check_member("{\"$ref\":\"#/$defs/none\"}", "{\"type\":\"OBJECT\"}", 1);
    check_member("{\"$ref\":\"#anchor\",\"type\":\"string\"}", "{\"type\":\"STRING\"}", 1);
}

/* Each level refers twice to the next: 2^40 schemas, were they all written. */
static void add_bomb(struct peg__buf *text)
{
    peg__buf_puts(text, "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/d0\"}},\"$defs\":{");
    for (int i = 0; i < 40; i++)
        peg__buf_printf(
            text,
            "\"d%d\":{\"type\":\"object\",\"properties\":{\"x\":{\"$ref\":\"#/$defs/d%d\""
            "},\"y\":{\"$ref\":\"#/$defs/d%d\"}},\"anyOf\":[{\"required\":[\"x\"]},{"
            "\"required\":[\"y\"]}]},",
            i, i + 1, i + 1);
    peg__buf_puts(text, "\"d40\":{\"type\":\"string\"}}}");
}

TEST(references_that_would_explode_are_bounded)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    add_bomb(&text);
    CHECK_STATUS(render_schema(&w, text.ptr, &gemini), PEG_OK, w.error);

    CHECK(w.len < 4 * PEG_LIMIT_INLINED_BYTES);
    world_free(&w);
    CHECK_STATUS(render_schema(&w, text.ptr, &json), PEG_OK, w.error);
    CHECK(w.len < 2 * text.len);
    world_free(&w);
    peg__buf_free(&text);
}

/* Branches inside branches repeat what stands beside them. */
TEST(branches_that_would_explode_are_bounded)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    for (int i = 0; i < 25; i++)
        peg__buf_puts(&text, "{\"maxLength\":1,\"anyOf\":[{\"type\":\"string\"},");
    peg__buf_puts(&text, "{}");
    for (int i = 0; i < 25; i++)
        peg__buf_puts(&text, "]}");

    CHECK_STATUS(render_member(&w, text.ptr, &gemini), PEG_OK, w.error);
    CHECK(w.len < 2 * PEG_LIMIT_INLINED_BYTES);
    world_free(&w);
    peg__buf_free(&text);
}

TEST(more_schemas_at_one_place_than_can_be_merged_are_told)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    peg__buf_puts(&text, "{\"allOf\":[{}");
    for (int i = 0; i < 2 * PEG_LIMIT_INLINED_TOGETHER; i++)
        peg__buf_printf(&text, ",{\"properties\":{\"p%d\":{\"type\":\"string\"}}}", i);
    peg__buf_puts(&text, "]}");

    CHECK_STATUS(render_member(&w, text.ptr, &gemini), PEG_OK, w.error);
    CHECK_LOSS(&w, "/properties/a/allOf/20", "allOf", "dropped");
    world_free(&w);
    peg__buf_free(&text);
}

TEST(an_enum_of_a_hundred_thousand_values_is_sent_or_dropped_whole)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    peg__buf_puts(&text, "{\"enum\":[0");
    for (int i = 1; i < 100000; i++)
        peg__buf_printf(&text, ",%d", i);
    peg__buf_puts(&text, "]}");

    CHECK_STATUS(render_member(&w, text.ptr, &gemini), PEG_OK, w.error);
    CHECK(strstr(w.text, "\"a\":{\"type\":\"INTEGER\"}"));
    CHECK_LOSS(&w, "/properties/a/enum", "enum", "dropped");
    world_free(&w);
    CHECK_STATUS(render_member(&w, text.ptr, &json), PEG_OK, w.error);
    CHECK(strstr(w.text, ",99999]"));
    world_free(&w);
    peg__buf_free(&text);
}

/* ---- as JSON Schema
 * --------------------------------------------------------------------------------------------- */

TEST(json_schema_keeps_references_and_open_objects)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"},"
                      "\"b\":{\"$ref\":\"#/definitions/m\",\"description\":\"B\",\"minimum\""
                      ":1}},\"required\":[\"a\"],\"additionalProperties\":{\"type\":"
                      "\"string\"},\"$defs\":{\"n\":{\"type\":[\"string\",\"null\"]}},"
                      "\"definitions\":{\"m\":{\"type\":\"integer\"}}}",
                      &json),
        PEG_OK, w.error);

    CHECK_TEXT(&w,
               "[{\"functionDeclarations\":[{\"name\":\"t\",\"parametersJsonSchema\":{\"type\":"
               "\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"},\"b\":{"
               "\"description\":\"B\",\"anyOf\":[{\"$ref\":\"#/$defs/m\"}]}},\"required\":[\"a\""
               "],\"additionalProperties\":{\"type\":\"string\"},\"$defs\":{\"n\":{\"type\":["
               "\"string\",\"null\"]},\"m\":{\"type\":\"integer\"}}}}]}]");
    CHECK_LOSS(&w, "/properties/b/minimum", "minimum", "dropped");
    CHECK_LOSSES(&w, 1);
    world_free(&w);
}

TEST(json_schema_says_more_than_parameters)
{
    check_json("{\"type\":\"string\",\"format\":\"email\",\"title\":\"T\"}",
               "{\"type\":\"string\",\"title\":\"T\",\"format\":\"email\"}", 0);
    check_json("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}",
               "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", 0);
    check_json("{\"enum\":[1,2]}", "{\"enum\":[1,2]}", 0);
    check_json("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}",
               "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", 0);
    check_json("true", "true", 0);
}

TEST(json_schema_describes_what_gemini_does_not_take)
{
    check_json("{\"type\":\"string\",\"minLength\":2,\"description\":\"d\"}",
               "{\"description\":\"d (minLength: 2)\",\"type\":\"string\"}", 1);
    check_json("{\"const\":\"k\"}", "{\"enum\":[\"k\"]}", 1);
    check_json("{\"const\":{}}", "{\"description\":\"(const: {})\"}", 1);
    check_json("{\"enum\":[true]}", "{\"description\":\"(enum: [true])\"}", 1);
    check_json("{\"items\":[{\"type\":\"string\"}]}", "{\"prefixItems\":[{\"type\":\"string\"}]}",
               1);
    check_json("{\"type\":\"array\",\"$comment\":\"c\"}", "{\"type\":\"array\",\"items\":{}}", 2);
}

TEST(json_schema_merges_all_of)
{
    check_json("{\"allOf\":[{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}}},{"
               "\"required\":[\"x\"]}]}",
               "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":["
               "\"x\"]}",
               0);
}
