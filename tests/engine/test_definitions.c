/* SPDX-License-Identifier: Apache-2.0 */

/* Shapes of tools for each vendor, and schemas that are sent as they are. */

#include "engine/dialects/dialects.h"

#include "definitions_world.h"

static const peg_definitions_options chat = {PEG_DEFINITIONS_OPTIONS_INIT,
                                             .vendor = PEG_VENDOR_OPENAI_CHAT};
static const peg_definitions_options responses = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                  .vendor = PEG_VENDOR_OPENAI_RESPONSES};
static const peg_definitions_options anthropic = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                  .vendor = PEG_VENDOR_ANTHROPIC};
static const peg_definitions_options gemini = {PEG_DEFINITIONS_OPTIONS_INIT,
                                               .vendor = PEG_VENDOR_GEMINI};
static const peg_definitions_options neutral = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                .vendor = PEG_VENDOR_NEUTRAL};

static const char *const weather =
    "[{\"name\":\"weather\",\"description\":\"Tells it.\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\",\"default\":1},"
    "\"unit\":{\"enum\":[\"C\",\"F\"]},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}"
    "}},\"required\":[\"city\"],\"additionalProperties\":false}}]";

#define WEATHER_SCHEMA                                                                             \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":"      \
    "\"integer\",\"default\":1},\"unit\":{\"enum\":[\"C\",\"F\"]},\"tags\":{\"type\":\"array\","   \
    "\"items\":{\"type\":\"string\"}}},\"required\":[\"city\"],\"additionalProperties\":false}"

/* ---- shapes ------------------------------------------------------------------------------- */

/* T154, G111 */
TEST(chat_wraps_a_function)
{
    struct world w;

    CHECK_STATUS(render(&w, weather, &chat), PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":"
                   "\"Tells it.\",\"parameters\":" WEATHER_SCHEMA "}}]");
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

/* T154, G116 */
TEST(responses_are_flat_and_say_that_they_are_not_strict)
{
    struct world w;

    CHECK_STATUS(render(&w, weather, &responses), PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"type\":\"function\",\"name\":\"weather\",\"description\":\"Tells it.\","
                   "\"parameters\":" WEATHER_SCHEMA ",\"strict\":false}]");
    world_free(&w);
}

/* T154, G119 */
TEST(anthropic_has_an_input_schema)
{
    struct world w;

    CHECK_STATUS(render(&w, weather, &anthropic), PEG_OK, w.error);

    CHECK_TEXT(
        &w, "[{\"name\":\"weather\",\"description\":\"Tells it.\",\"input_schema\":" WEATHER_SCHEMA
            "}]");
    world_free(&w);
}

/* T154 */
TEST(gemini_has_one_entry_with_declarations)
{
    struct world w;

    CHECK_STATUS(render(&w, weather, &gemini), PEG_OK, w.error);

    CHECK_TEXT(&w,
               "[{\"functionDeclarations\":[{\"name\":\"weather\",\"description\":\"Tells it.\","
               "\"parameters\":{\"type\":\"OBJECT\",\"properties\":{\"city\":{\"type\":\"STRING\"},"
               "\"days\":{\"type\":\"INTEGER\",\"default\":1},\"unit\":{\"type\":\"STRING\","
               "\"enum\":[\"C\",\"F\"]},\"tags\":{\"type\":\"ARRAY\",\"items\":{\"type\":\"STRING\""
               "}}},\"required\":[\"city\"]}}]}]");
    world_free(&w);
}

TEST(neutral_is_what_the_turn_holds)
{
    struct world w;

    CHECK_STATUS(render(&w, weather, &neutral), PEG_OK, w.error);

    CHECK_TEXT(&w, weather);
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

TEST(a_tool_without_arguments_and_description)
{
    static const char *const texts[] = {
        "[{\"name\":\"t\"}]", "[{\"name\":\"t\",\"description\":\"\",\"parameters\":{}}]",
        "[{\"name\":\"t\",\"description\":null,\"parameters\":null}]",
        "[{\"name\":\"t\",\"parameters\":true}]"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct world w;

        CHECK_STATUS(render(&w, texts[i], &chat), PEG_OK, w.error);
        CHECK_TEXT(&w, "[{\"type\":\"function\",\"function\":{\"name\":\"t\",\"parameters\":{"
                       "\"type\":\"object\",\"properties\":{}}}}]");
        world_free(&w);
        CHECK_STATUS(render(&w, texts[i], &anthropic), PEG_OK, w.error);
        CHECK_TEXT(&w,
                   "[{\"name\":\"t\",\"input_schema\":{\"type\":\"object\",\"properties\":{}}}]");
        world_free(&w);
        CHECK_STATUS(render(&w, texts[i], &gemini), PEG_OK, w.error);
        CHECK_TEXT(&w, "[{\"functionDeclarations\":[{\"name\":\"t\"}]}]");
        world_free(&w);
    }
}

/* T156, G125 */
TEST(no_definitions_are_an_empty_list_for_every_provider)
{
    for (int i = 0; i < PEG_N_VENDORS; i++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)i};
        struct world w;

        CHECK_STATUS(render(&w, "[]", &options), PEG_OK, w.error);
        CHECK_TEXT(&w, "[]");
        world_free(&w);
        CHECK_STATUS(peg_definitions_render(NULL, &options, &w.text, NULL, NULL, &w.error), PEG_OK,
                     w.error);
        CHECK_STR(peg__str(w.text), "[]");
        world_free(&w);
    }
}

/* T154 */
TEST(tools_keep_their_order)
{
    struct world w;

    CHECK_STATUS(render(&w, "[{\"name\":\"z\"},{\"name\":\"a\"},{\"name\":\"m\"}]", &gemini),
                 PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"functionDeclarations\":[{\"name\":\"z\"},{\"name\":\"a\"},{\"name\":\"m\"}"
                   "]}]");
    world_free(&w);
}

/* G124 */
TEST(the_same_definitions_give_the_same_bytes_each_time)
{
    static const char *const text =
        "[{\"name\":\"a.b\",\"parameters\":{\"allOf\":[{\"properties\":{\"x\":{\"type\":\"string\"}"
        "}"
        ",\"required\":[\"x\"]},{\"properties\":{\"y\":{\"$ref\":\"#/$defs/"
        "y\"}}}],\"$defs\":{\"y\":"
        "{\"type\":[\"integer\",\"string\"]}}}},{\"name\":\"a/b\"},{\"name\":\"a_b\"}]";

    for (int vendor = 0; vendor < PEG_N_VENDORS; vendor++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)vendor, .strict = true,
                                                 .json_schema = vendor % 2};
        struct world first;

        CHECK_STATUS(render(&first, text, &options), PEG_OK, first.error);
        for (int i = 0; i < 100; i++) {
            struct world w;

            CHECK_STATUS(render(&w, text, &options), PEG_OK, w.error);
            CHECK_TEXT(&w, first.text);
            CHECK_INT(peg_definition_losses_len(w.losses), peg_definition_losses_len(first.losses));
            world_free(&w);
        }
        world_free(&first);
    }
}

/* ---- what the tool itself loses -------------------------------------------------------------- */

/* G54 */
TEST(a_name_that_is_made_acceptable_is_told)
{
    struct world w;

    CHECK_STATUS(render(&w, "[{\"name\":\"fs.read\"}]", &anthropic), PEG_OK, w.error);

    CHECK(strstr(w.text, "\"name\":\"fs_read\""));
    CHECK_LOSS(&w, "", "name", "rewritten");
    CHECK_STR(peg_definition_losses_at(w.losses, 0)->tool, "fs.read");
    CHECK(strstr(peg_definition_losses_at(w.losses, 0)->note.ptr, "fs_read"));
    world_free(&w);
}

TEST(examples_and_output_are_told_because_no_provider_takes_them)
{
    struct world w;

    CHECK_STATUS(render(&w,
                        "[{\"name\":\"t\",\"examples\":[{\"input\":{}}],\"output\":{},\"tags\":"
                        "[\"x\"],\"version\":\"1\"}]",
                        &chat),
                 PEG_OK, w.error);

    CHECK_LOSS(&w, "", "examples", "dropped");
    CHECK_LOSS(&w, "", "output", "dropped");
    CHECK_LOSSES(&w, 2);
    world_free(&w);
}

/* ---- schemas as they are ------------------------------------------------------------------------
 */

/* G53 */
TEST(an_object_of_any_members_is_sent_as_it_is)
{
    static const char *const schema = "{\"type\":\"object\",\"properties\":{\"labels\":{\"type\":"
                                      "\"object\",\"additionalProperties\""
                                      ":{\"type\":\"string\"}}}}";
    struct world w;

    CHECK_STATUS(render_schema(&w, schema, &chat), PEG_OK, w.error);

    CHECK(strstr(w.text, schema));
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

/* T155 */
TEST(members_named_like_keywords_are_members)
{
    static const char *const schema =
        "{\"type\":\"object\",\"properties\":{\"type\":{\"type\":\"string\"},\"items\":{\"type\":"
        "\"array\",\"items\":{\"type\":\"string\"}},\"$ref\":{\"type\":\"string\"},\"anyOf\":{"
        "\"type\":\"string\"},\"properties\":{\"type\":\"object\",\"properties\":{\"default\":{"
        "\"type\":\"number\"}}}},\"required\":[\"type\",\"$ref\"]}";
    struct world w;

    CHECK_STATUS(render_schema(&w, schema, &chat), PEG_OK, w.error);
    CHECK(strstr(w.text, schema));
    CHECK_LOSSES(&w, 0);
    world_free(&w);
    CHECK_STATUS(render_schema(&w, schema, &anthropic), PEG_OK, w.error);
    CHECK(strstr(w.text, schema));
    world_free(&w);
}

/* G51 */
TEST(openai_is_told_items_where_an_array_is_silent)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\"},"
                               "\"b\":{\"anyOf\":[{\"type\":[\"array\",\"null\"]}]}}}",
                               &chat),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "\"a\":{\"type\":\"array\",\"items\":{}}"));
    CHECK(strstr(w.text, "[{\"type\":[\"array\",\"null\"],\"items\":{}}]"));
    CHECK_LOSS(&w, "/properties/a", "items", "rewritten");
    CHECK_LOSS(&w, "/properties/b/anyOf/0", "items", "rewritten");
    world_free(&w);
}

/* G51 */
TEST(anthropic_takes_an_array_that_is_silent)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\"}"
                               "}}",
                               &anthropic),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "\"a\":{\"type\":\"array\"}"));
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

TEST(a_root_that_does_not_say_its_type_does)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":["
                               "\"a\"]}",
                               &anthropic),
                 PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"name\":\"t\",\"input_schema\":{\"type\":\"object\",\"properties\":{\"a\":{"
                   "\"type\":\"string\"}},\"required\":[\"a\"]}}]");
    CHECK_LOSSES(&w, 0);
    world_free(&w);
}

TEST(branches_at_the_root_offer_their_members)
{
    static const char *const schema =
        "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"}},\"required\":[\"id\"],"
        "\"anyOf\":[{\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":[\"x\"]},{"
        "\"properties\":{\"id\":{},\"y\":{\"type\":\"array\"}}}]}";
    struct world w;

    CHECK_STATUS(render_schema(&w, schema, &anthropic), PEG_OK, w.error);
    CHECK_TEXT(&w, "[{\"name\":\"t\",\"input_schema\":{\"type\":\"object\",\"properties\":{\"id\":{"
                   "\"type\":\"string\"},\"x\":{\"type\":\"string\"},\"y\":{\"type\":\"array\"}},"
                   "\"required\":[\"id\"]}}]");
    CHECK_LOSS(&w, "/anyOf", "anyOf", "rewritten");
    world_free(&w);
    CHECK_STATUS(render_schema(&w, schema, &chat), PEG_OK, w.error);
    CHECK_LOSS(&w, "/anyOf/1/properties/y", "items", "rewritten");
    world_free(&w);
}

TEST(a_root_that_refers_and_merges_is_written_out)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"$ref\":\"#/$defs/a\",\"allOf\":[{\"properties\":{\"y\":{}},"
                               "\"required\":[\"y\"]}],\"$defs\":{\"a\":{\"type\":\"object\","
                               "\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":[\"x\"],"
                               "\"additionalProperties\":true}}}",
                               &anthropic),
                 PEG_OK, w.error);

    CHECK_TEXT(&w, "[{\"name\":\"t\",\"input_schema\":{\"type\":\"object\",\"$defs\":{\"a\":{"
                   "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\"}},\"required\":["
                   "\"x\"],\"additionalProperties\":true}},\"additionalProperties\":true,"
                   "\"properties\":{\"x\":{\"type\":\"string\"},\"y\":{}},\"required\":[\"x\","
                   "\"y\"]}}]");
    CHECK_LOSS(&w, "/$ref", "$ref", "rewritten");
    CHECK_LOSS(&w, "/allOf", "allOf", "rewritten");
    world_free(&w);
}

TEST(openai_is_not_sent_not_and_enum_at_the_root)
{
    struct world w;

    CHECK_STATUS(render_schema(&w,
                               "{\"type\":[\"object\",\"null\"],\"properties\":{},\"not\":{},"
                               "\"enum\":[{}],\"x-note\":1}",
                               &chat),
                 PEG_OK, w.error);

    CHECK(strstr(w.text, "{\"type\":\"object\",\"x-note\":1,\"properties\":{}}"));
    CHECK_LOSS(&w, "/not", "not", "dropped");
    CHECK_LOSS(&w, "/enum", "enum", "dropped");
    CHECK_LOSS(&w, "/type", "type", "rewritten");
    world_free(&w);
}

/* ---- what is refused
 * ------------------------------------------------------------------------------- */

/* G52 */
TEST(parameters_that_are_no_object_are_refused_with_their_place)
{
    static const struct {
        const char *text;
        const char *where;
    } cases[] = {
        {"[{\"name\":\"a\"},{\"name\":\"t\",\"parameters\":{\"type\":\"string\"}}]",
         "/1/parameters/type"},
        {"[{\"name\":\"t\",\"parameters\":{\"type\":[\"string\",\"null\"]}}]",
         "/0/parameters/type"},
        {"[{\"name\":\"t\",\"parameters\":false}]", "/0/parameters"},
        {"[{\"name\":\"t\",\"parameters\":[]}]", "/0/parameters"},
        {"[{\"name\":\"t\",\"description\":1}]", "/0/description"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int vendor = 0; vendor < PEG_N_VENDORS; vendor++) {
            const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                     .vendor = (peg_vendor)vendor};
            struct world w;

            CHECK_INT(render(&w, cases[i].text, &options), PEG_EINVAL);
            CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
            CHECK_STR(peg__str(w.error.where), cases[i].where);
            world_free(&w);
        }
    }
}

static char *many_tools(size_t n)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_putc(&text, '[');
    for (size_t i = 0; i < n; i++)
        peg__buf_printf(&text, "%s{\"name\":\"t%zu\"}", i ? "," : "", i);
    peg__buf_putc(&text, ']');
    CHECK_INT(text.status, PEG_OK);
    return text.ptr;
}

/* G126 */
TEST(each_provider_has_its_own_most_tools)
{
    static const struct {
        peg_vendor vendor;
        size_t most;
    } cases[] = {{PEG_VENDOR_OPENAI_CHAT, 128},
                 {PEG_VENDOR_OPENAI_RESPONSES, 128},
                 {PEG_VENDOR_ANTHROPIC, 512},
                 {PEG_VENDOR_GEMINI, 512}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = cases[i].vendor};
        const peg_definitions_options more = {PEG_DEFINITIONS_OPTIONS_INIT,
                                              .vendor = cases[i].vendor,
                                              .max_tools = cases[i].most + 1};
        char *text = many_tools(cases[i].most + 1);
        struct world w;

        CHECK_INT(render(&w, text, &options), PEG_ELIMIT);
        CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
        CHECK(!w.text && !w.losses);
        world_free(&w);
        CHECK_STATUS(render(&w, text, &more), PEG_OK, w.error);
        world_free(&w);
        peg_free(text);
    }
}

TEST(a_provider_is_found_by_its_name)
{
    peg_error error;

    for (int i = 0; i < PEG_N_VENDORS; i++) {
        peg_vendor vendor = PEG_N_VENDORS;

        CHECK_STATUS(
            peg_vendor_from_name(peg__str(peg_vendor_name((peg_vendor)i)), &vendor, &error), PEG_OK,
            error);
        CHECK_INT(vendor, i);
    }
    CHECK_STR(peg__str(peg_vendor_name(PEG_N_VENDORS)), "unknown");
}

TEST(an_unknown_provider_is_told_which_there_are)
{
    const peg_definitions_options nobody = {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_N_VENDORS};
    peg_vendor vendor;
    peg_error error;
    struct world w;

    CHECK_INT(peg_vendor_from_name(peg__str("openai"), &vendor, &error), PEG_ENOTFOUND);
    CHECK_STR(peg__str(error.code), "E_DEFINITIONS");
    CHECK(strstr(error.message, "openai-responses"));
    CHECK_INT(render(&w, "[]", &nobody), PEG_EINVAL);
    CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
    world_free(&w);
}

/* ---- hostile
 * ------------------------------------------------------------------------------------------- */

static void add_nested(struct peg__buf *text, size_t depth)
{
    peg__buf_puts(text, "{\"type\":\"object\",\"properties\":{\"a\":");
    for (size_t i = 0; i < depth; i++)
        peg__buf_puts(text, "{\"properties\":{\"a\":{\"anyOf\":[{\"items\":");
    peg__buf_puts(text, "{}");
    for (size_t i = 0; i < depth; i++)
        peg__buf_puts(text, "},{\"type\":\"array\"}]}}}");
    peg__buf_puts(text, "}}");
}

TEST(schemas_that_are_nested_deeply_end_somewhere)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_json_options deep = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};

    peg__buf_puts(&text, "[{\"name\":\"t\",\"parameters\":");
    add_nested(&text, 600);
    peg__buf_puts(&text, "}]");
    for (int i = 0; i < 2 * PEG_N_VENDORS; i++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)(i / 2), .strict = i % 2,
                                                 .json_schema = i % 2};
        struct world w = {0};
        peg_json_doc *back = NULL;

        CHECK_STATUS(peg_json_parse(peg__buf_view(&text), &deep, &w.doc, &w.error), PEG_OK,
                     w.error);
        CHECK_STATUS(peg_definitions_render(peg_json_root(w.doc), &options, &w.text, &w.len,
                                            &w.losses, &w.error),
                     PEG_OK, w.error);
        CHECK_STATUS(peg_json_parse(peg__strn(w.text, w.len), &deep, &back, &w.error), PEG_OK,
                     w.error);
        peg_json_doc_free(back);
        world_free(&w);
    }
    peg__buf_free(&text);
}

/* Short strings are written in one go, long ones and those with escapes are not. */
TEST(names_and_values_of_any_length_are_written_as_they_are)
{
    static const char *const last[] = {"x", "\\\"", "\\\\", "\\n", "\xC3\xA9", "\x7F"};

    for (int i = 0; i < 2 * PEG_N_VENDORS * 40 * 6; i++) {
        const int form = i / 240;
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)(form / 2),
                                                 .strict = form % 2, .json_schema = form % 2};
        char text[64];
        char schema[320];
        char expected[192];
        struct world w;

        snprintf(text, sizeof(text), "%.*s%s", i % 40, "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
                 last[i / 40 % 6]);
        snprintf(
            schema, sizeof(schema),
            "{\"type\":\"object\",\"properties\":{\"%s\":{\"type\":\"string\",\"enum\":[\"%s\"]}},"
            "\"required\":[\"%s\"]}",
            text, text, text);

        CHECK_INT(render_schema(&w, schema, &options), PEG_OK);

        snprintf(expected, sizeof(expected), "\"enum\":[\"%s\"]}},\"required\":[\"%s\"]", text,
                 text);
        CHECK(strstr(w.text, expected));
        snprintf(expected, sizeof(expected), "\"properties\":{\"%s\":{", text);
        CHECK(strstr(w.text, expected));
        world_free(&w);
    }
}

TEST(a_report_has_an_end_and_says_so)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct world w;

    peg__buf_puts(&text, "{\"properties\":{");
    for (int i = 0; i < PEG_LIMIT_LOSSES + 10; i++)
        peg__buf_printf(&text, "%s\"p%d\":{\"type\":\"array\"}", i ? "," : "", i);
    peg__buf_puts(&text, "}}");

    CHECK_STATUS(render_schema(&w, text.ptr, &chat), PEG_OK, w.error);
    CHECK_INT(peg_definition_losses_len(w.losses), PEG_LIMIT_LOSSES);
    CHECK(strstr(peg_definition_losses_at(w.losses, PEG_LIMIT_LOSSES - 1)->note.ptr, "more"));
    CHECK(!peg_definition_losses_at(w.losses, PEG_LIMIT_LOSSES));
    world_free(&w);
    peg__buf_free(&text);
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------
 */

TORTURE(rendering_survives_any_allocation_failure)
{
    static const char *const text =
        "[{\"name\":\"a.b\",\"examples\":[1],\"parameters\":{\"allOf\":[{\"properties\":{\"x\":{"
        "\"type\":\"array\"}},\"required\":[\"x\"]},{\"$ref\":\"#/definitions/"
        "y\"}],\"definitions\":"
        "{\"y\":{\"properties\":{\"u\":{\"const\":1,\"description\":\"d\",\"not\":{}},\"v\":{"
        "\"$ref\":\"#/definitions/"
        "y\",\"title\":\"v\"}}}}}},{\"name\":\"c\",\"parameters\":{\"type\":"
        "\"object\",\"properties\":{\"p\":{\"type\":\"string\",\"minLength\":3}}}}]";

    for (int i = 0; i < 2 * PEG_N_VENDORS; i++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)(i / 2), .strict = i % 2,
                                                 .json_schema = i % 2};
        struct world w;
        const peg_status status = render(&w, text, &options);

        if (status && (w.text || w.losses))
            T_FAIL("a failure leaves nothing");
        world_free(&w);
        if (status)
            return status;
    }
    return PEG_OK;
}

TORTURE(a_request_that_is_written_survives_any_allocation_failure)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__names *names = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(peg__str(weather), NULL, &doc, NULL);

    peg__buf_puts(&out, "{\"tools\":");
    if (!status)
        status = peg__names_new(peg_json_root(doc), NULL, &chat, &names, NULL);
    if (!status)
        status = peg__definitions_write(peg_json_root(doc), &chat, names, &out, NULL, NULL);
    if (!status && strncmp(out.ptr, "{\"tools\":[{\"type\":\"function\"", 28) != 0)
        T_FAIL("%s", out.ptr);
    peg__names_free(names);
    peg_json_doc_free(doc);
    peg__buf_free(&out);
    return status;
}
