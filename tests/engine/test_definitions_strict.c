/* SPDX-License-Identifier: Apache-2.0 */

/* OpenAI's strict subset. */

#include "definitions_world.h"

static const peg_definitions_options strict = {PEG_DEFINITIONS_OPTIONS_INIT,
                                               .vendor = PEG_VENDOR_OPENAI_CHAT, .strict = true};
static const peg_definitions_options responses = {
    PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_OPENAI_RESPONSES, .strict = true};

/* An object with one required member "a" of this schema, in Chat's shape. */
static peg_status render_member(struct world *w, const char *schema)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    peg__buf_printf(&text,
                    "{\"type\":\"object\",\"properties\":{\"a\":%s},\"required\":[\"a\"],"
                    "\"additionalProperties\":false}",
                    schema);
    status = render_schema(w, text.ptr, &strict);
    peg__buf_free(&text);
    return status;
}

static void check_member(const char *schema, const char *expected, size_t n_losses)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    CHECK_STATUS(render_member(&w, schema), PEG_OK, w.error);
    peg__buf_printf(&text,
                    "[{\"type\":\"function\",\"function\":{\"name\":\"t\",\"parameters\":{\"type\":"
                    "\"object\",\"properties\":{\"a\":%s},\"required\":[\"a\"],"
                    "\"additionalProperties\":false},\"strict\":true}}]",
                    expected);
    CHECK_TEXT(&w, text.ptr);
    CHECK_LOSSES(&w, n_losses);
    world_free(&w);
    peg__buf_free(&text);
}

/* The tool is sent without strict, for one reason that is told. */
static void check_gives_up(const char *schema, const char *where, const char *keyword)
{
    struct world w;

    CHECK_STATUS(render_schema(&w, schema, &strict), PEG_OK, w.error);
    if (!strstr(w.text, ",\"strict\":false}}]"))
        T_FAIL("%s became %s", schema, w.text);
    CHECK_LOSS(&w, where, keyword, "rewritten");
    CHECK(strstr(peg_definition_losses_at(w.losses, 0)->note.ptr, "sent without strict"));
    world_free(&w);
}

/* ---- what is strict already ----------------------------------------------------------------- */

TEST(a_schema_that_is_strict_stays_as_it_is)
{
    check_member("{\"type\":\"string\",\"description\":\"d\"}",
                 "{\"type\":\"string\",\"description\":\"d\"}", 0);
    check_member("{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}",
                 "{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}", 0);
    check_member("{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"maxItems\":3}",
                 "{\"type\":\"array\",\"maxItems\":3,\"items\":{\"type\":\"number\"}}", 0);
    check_member("{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",null]}",
                 "{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",null]}", 0);
    check_member("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}",
                 "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", 0);
    check_member("{\"type\":\"string\",\"format\":\"email\",\"pattern\":\"^a\"}",
                 "{\"type\":\"string\",\"pattern\":\"^a\",\"format\":\"email\"}", 0);
}

TEST(a_tool_without_arguments_is_strict)
{
    struct world w;

    CHECK_STATUS(render(&w, "[{\"name\":\"t\"}]", &responses), PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"type\":\"function\",\"name\":\"t\",\"parameters\":{\"type\":\"object\","
                   "\"properties\":{},\"required\":[],\"additionalProperties\":false},\"strict\":"
                   "true}]");
    world_free(&w);
}

TEST(a_type_that_can_be_told_from_the_rest_is_added)
{
    check_member("{\"enum\":[\"x\",\"y\"]}", "{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}", 0);
    check_member("{\"const\":5}", "{\"type\":\"integer\",\"const\":5}", 0);
    check_member("{\"items\":{\"type\":\"string\"}}",
                 "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", 0);
}

/* ---- what is optional
 * ----------------------------------------------------------------------------- */

TEST(optional_members_become_required_and_nullable)
{
    struct world w;

    CHECK_STATUS(render_schema(
                     &w,
                     "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},\"t\":{"
                     "\"type\":[\"string\",\"integer\"]},\"e\":{\"enum\":[\"x\"]},\"c\":{\"const\":"
                     "\"k\"},\"u\":{\"anyOf\":[{\"type\":\"string\"}]},\"n\":{\"type\":[\"string\","
                     "\"null\"]},\"r\":{\"$ref\":\"#/$defs/d\"},\"must\":{\"type\":\"string\"}},"
                     "\"required\":[\"must\"],\"additionalProperties\":false,\"$defs\":{\"d\":{"
                     "\"type\":\"string\"}}}",
                     &strict),
                 PEG_OK, w.error);

    CHECK_TEXT(
        &w,
        "[{\"type\":\"function\",\"function\":{\"name\":\"t\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{\"s\":{\"type\":[\"string\",\"null\"]},\"t\":{\"type\":[\"integer\","
        "\"string\",\"null\"]},\"e\":{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",null]},\"c\":{"
        "\"type\":[\"string\",\"null\"],\"enum\":[\"k\",null]},\"u\":{\"anyOf\":[{\"type\":"
        "\"string\"},{\"type\":\"null\"}]},\"n\":{\"type\":[\"string\",\"null\"]},\"r\":{\"anyOf\":"
        "["
        "{\"$ref\":\"#/$defs/d\"},{\"type\":\"null\"}]},\"must\":{\"type\":\"string\"}},"
        "\"required\":[\"s\",\"t\",\"e\",\"c\",\"u\",\"n\",\"r\",\"must\"],"
        "\"additionalProperties\":false,\"$defs\":{\"d\":{\"type\":\"string\"}}},\"strict\":true}}"
        "]");
    CHECK_LOSSES(&w, 7);
    CHECK_LOSS(&w, "/properties/s", "required", "rewritten");
    CHECK(!has_loss(&w, "/properties/must", "required", "rewritten"));
    world_free(&w);
}

TEST(many_required_members_are_known_by_name)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    peg__buf_puts(&text, "{\"properties\":{");
    for (int i = 0; i < 40; i++)
        peg__buf_printf(&text, "\"p%d\":{\"type\":\"string\"},", i);
    peg__buf_puts(&text, "\"q\":{\"type\":\"string\"}},\"additionalProperties\":false,\"required\":"
                         "[\"p0\"");
    for (int i = 1; i < 40; i++)
        peg__buf_printf(&text, ",\"p%d\"", i);
    peg__buf_puts(&text, "]}");

    CHECK_STATUS(render_schema(&w, text.ptr, &strict), PEG_OK, w.error);
    CHECK_LOSSES(&w, 1);
    CHECK_LOSS(&w, "/properties/q", "required", "rewritten");
    world_free(&w);
    peg__buf_free(&text);
}

/* ---- what is left out
 * ------------------------------------------------------------------------------- */

TEST(keywords_without_a_place_go_into_the_description)
{
    check_member("{\"type\":\"string\",\"description\":\"A name.\",\"minLength\":1,\"default\":"
                 "\"x\\\"\"}",
                 "{\"type\":\"string\",\"description\":\"A name. (default: \\\"x\\\\\\\"\\\"; "
                 "minLength: 1)\"}",
                 2);
    check_member("{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true}",
                 "{\"type\":\"array\",\"description\":\"(uniqueItems: true)\",\"items\":{\"type\":"
                 "\"string\"}}",
                 1);
    check_member("{\"type\":\"string\",\"format\":\"iri\"}",
                 "{\"type\":\"string\",\"description\":\"(format: \\\"iri\\\")\"}", 1);
    check_member("{\"type\":\"number\",\"exclusiveMinimum\":true}",
                 "{\"type\":\"number\",\"description\":\"(exclusiveMinimum: true)\"}", 1);
}

TEST(keywords_that_say_nothing_to_a_model_are_dropped)
{
    struct world w;

    CHECK_STATUS(render_member(&w, "{\"type\":\"string\",\"$comment\":\"c\",\"x-mine\":1}"), PEG_OK,
                 w.error);

    CHECK(strstr(w.text, "\"a\":{\"type\":\"string\"}"));
    CHECK_LOSS(&w, "/properties/a/$comment", "$comment", "dropped");
    CHECK_LOSS(&w, "/properties/a/x-mine", "x-mine", "dropped");
    world_free(&w);
}

TEST(what_is_too_long_for_a_description_is_dropped)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    peg__buf_puts(&text, "{\"type\":\"string\",\"minLength\":1,\"examples\":[\"");
    peg__buf_repeat(&text, 'x', PEG_LIMIT_DESCRIBED_BYTES);
    peg__buf_puts(&text, "\"]}");

    CHECK_STATUS(render_member(&w, text.ptr), PEG_OK, w.error);
    CHECK(strstr(w.text, "\"description\":\"(minLength: 1)\""));
    CHECK_LOSS(&w, "/properties/a/examples", "examples", "dropped");
    CHECK_LOSS(&w, "/properties/a/minLength", "minLength", "described");
    world_free(&w);
    peg__buf_free(&text);
}

TEST(a_reference_keeps_its_description)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"properties\":{\"a\":{\"$ref\":\"#/definitions/d\","
                               "\"description\":\"A.\",\"minimum\":1}},\"required\":[\"a\"],"
                               "\"additionalProperties\":false,\"definitions\":{\"d\":{\"type\":"
                               "\"integer\"}}}",
                               &strict),
                 PEG_OK, w.error);

    CHECK(strstr(w.text,
                 "\"a\":{\"description\":\"A.\",\"anyOf\":[{\"$ref\":\"#/definitions/d\"}]}"));
    CHECK_LOSS(&w, "/properties/a/minimum", "minimum", "dropped");
    CHECK_LOSSES(&w, 1);
    world_free(&w);
}

TEST(an_object_that_is_silent_about_other_members_is_closed)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"type\":\"object\",\"properties\":{\"o\":{\"type\":\"object\","
                      "\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":[\"x\"]}},"
                      "\"required\":[\"o\"],\"unevaluatedProperties\":false}",
                      &strict),
        PEG_OK, w.error);

    CHECK(strstr(w.text, "\"strict\":true"));
    CHECK_LOSS(&w, "/properties/o", "additionalProperties", "rewritten");
    CHECK_LOSS(&w, "/unevaluatedProperties", "unevaluatedProperties", "rewritten");
    world_free(&w);
}

/* T155 */
TEST(members_named_like_keywords_stay_members)
{
    struct world w;

    CHECK_STATUS(
        render_schema(&w,
                      "{\"properties\":{\"format\":{\"type\":\"string\"},\"default\":{"
                      "\"type\":\"string\"},\"$ref\":{\"type\":\"string\"},\"allOf\":{"
                      "\"type\":\"string\"}},\"required\":[\"format\",\"default\",\"$ref\","
                      "\"allOf\"],\"additionalProperties\":false}",
                      &strict),
        PEG_OK, w.error);

    CHECK(strstr(w.text, "\"required\":[\"format\",\"default\",\"$ref\",\"allOf\"]"));
    CHECK(strstr(w.text, "\"strict\":true"));
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

/* ---- what cannot be said
 * ------------------------------------------------------------------------------- */

#define MEMBER(schema)                                                                             \
    "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\",\"minLength\":1},"            \
    "\"a\":" schema "},\"required\":[\"a\"],\"additionalProperties\":false}"

TEST(what_strict_cannot_say_is_sent_without_it)
{
    check_gives_up(MEMBER("{\"oneOf\":[]}"), "/properties/a/oneOf", "oneOf");
    check_gives_up(MEMBER("{\"allOf\":[{\"type\":\"string\"}]}"), "/properties/a/allOf", "allOf");
    check_gives_up(MEMBER("{\"type\":\"string\",\"not\":{}}"), "/properties/a/not", "not");
    check_gives_up(MEMBER("{\"type\":\"string\",\"if\":{}}"), "/properties/a/if", "if");
    check_gives_up(MEMBER("{\"type\":\"array\",\"prefixItems\":[]}"), "/properties/a/prefixItems",
                   "prefixItems");
    check_gives_up(MEMBER("{\"type\":\"array\"}"), "/properties/a", "items");
    check_gives_up(MEMBER("{\"type\":\"array\",\"items\":{}}"), "/properties/a/items", "type");
    check_gives_up(MEMBER("{}"), "/properties/a", "type");
    check_gives_up(MEMBER("true"), "/properties/a", "type");
    check_gives_up(MEMBER("{\"type\":\"object\"}"), "/properties/a", "properties");
    check_gives_up(MEMBER("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"),
                   "/properties/a/additionalProperties", "additionalProperties");
    check_gives_up(MEMBER("{\"type\":\"object\",\"properties\":{},\"unevaluatedProperties\":{}}"),
                   "/properties/a/unevaluatedProperties", "unevaluatedProperties");
    check_gives_up(MEMBER("{\"type\":\"object\",\"patternProperties\":{}}"),
                   "/properties/a/patternProperties", "patternProperties");
    check_gives_up(MEMBER("{\"$ref\":\"other.json\"}"), "/properties/a/$ref", "$ref");
    check_gives_up(MEMBER("{\"type\":\"string\",\"anyOf\":[{\"minLength\":1}]}"),
                   "/properties/a/anyOf", "anyOf");
    check_gives_up(MEMBER("{\"type\":\"object\",\"properties\":{},\"required\":[\"x\"]}"),
                   "/properties/a/required", "required");
}

TEST(what_strict_does_not_take_at_the_root_is_sent_without_it)
{
    check_gives_up("{\"anyOf\":[{\"properties\":{}}]}", "/anyOf", "anyOf");
    check_gives_up("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}}}", "/$ref",
                   "$ref");
    check_gives_up("{\"type\":[\"object\",\"null\"]}", "/type", "type");
}

TEST(only_the_tool_that_cannot_be_strict_is_sent_without_it)
{
    struct world w;

    CHECK_STATUS(render(&w,
                        "[{\"name\":\"a\",\"parameters\":{\"properties\":{\"x\":{}}}},{\"name\":"
                        "\"b\"}]",
                        &strict),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "{\"x\":{}}},\"strict\":false}}"));
    CHECK(strstr(w.text, "\"name\":\"b\",\"parameters\":{\"type\":\"object\",\"properties\":{},"
                         "\"required\":[],\"additionalProperties\":false},\"strict\":true"));
    CHECK_LOSSES(&w, 1);
    world_free(&w);
}

/* ---- OpenAI's own limits
 * -------------------------------------------------------------------------------------- */

TEST(a_schema_beyond_the_limits_of_strict_is_sent_without_it)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&text, "{\"properties\":{\"a\":{\"enum\":[\"v\"");
    for (int i = 0; i < PEG_LIMIT_STRICT_ENUM; i++)
        peg__buf_printf(&text, ",\"v%d\"", i);
    peg__buf_puts(&text, "]}},\"required\":[\"a\"],\"additionalProperties\":false}");
    check_gives_up(text.ptr, "/properties/a/enum", "enum");

    peg__buf_clear(&text);
    peg__buf_puts(&text, "{\"properties\":{\"x\":{\"type\":\"string\"}");
    for (int i = 0; i < PEG_LIMIT_STRICT_PROPERTIES; i++)
        peg__buf_printf(&text, ",\"p%d\":{\"type\":\"string\"}", i);
    peg__buf_puts(&text, "}}");
    check_gives_up(text.ptr, "/properties", "properties");

    peg__buf_clear(&text);
    peg__buf_puts(&text, "{\"properties\":{\"x\":{\"const\":\"");
    peg__buf_repeat(&text, 'x', PEG_LIMIT_STRICT_BYTES);
    peg__buf_puts(&text, "\"}}}");
    check_gives_up(text.ptr, "/properties/x/const", "const");

    peg__buf_clear(&text);
    for (int i = 0; i <= PEG_LIMIT_STRICT_DEPTH; i++)
        peg__buf_puts(&text, "{\"type\":\"object\",\"properties\":{\"x\":");
    peg__buf_puts(&text, "{\"type\":\"string\"}");
    for (int i = 0; i <= PEG_LIMIT_STRICT_DEPTH; i++)
        peg__buf_puts(&text, "}}");
    check_gives_up(text.ptr,
                   "/properties/x/properties/x/properties/x/properties/x/properties/x/properties/x/"
                   "properties/x/properties/x/properties/x/properties/x",
                   "properties");
    peg__buf_free(&text);
}

TEST(a_schema_that_refers_to_itself_is_strict)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"}},"
                               "\"required\":[\"next\"],\"additionalProperties\":false}",
                               &strict),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "{\"next\":{\"$ref\":\"#\"}}"));
    CHECK(strstr(w.text, "\"strict\":true"));
    world_free(&w);
}
