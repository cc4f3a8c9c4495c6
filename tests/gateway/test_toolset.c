/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/catalog/catalog.h"

#include "base/limits.h"
#include "t.h"

#include "requests.h"

static peg_error failed;

static void check_refused(const struct req *req, enum wire_error expected, const char *words)
{
    struct gw_toolset *toolset = NULL;

    if (req_make(req, &toolset, &failed) == PEG_OK)
        T_FAIL("it was taken");
    if (!strstr(failed.message, words))
        T_FAIL("\"%s\" does not say \"%s\"", failed.message, words);
    CHECK_STR(peg__str(wire_error_name(gw_wire_error(&failed))), wire_error_name(expected));
    CHECK_INT(gw_schema_count(NULL), 0);
}

static void fill(struct req *req)
{
    Pegboard__V1__Tool *tool;
    static char tags[][5] = {"read", "slow"};
    static char *tool_tags[] = {tags[0], tags[1]};

    req_init(req, "weather.eu/v2:x_y-z");
    req->msg.description = req_text("Forecasts \"and\"\nwarnings \xC3\xA4");
    req->msg.version = req_text("v1.2.0-rc.1");
    req_tag(req, "weather");
    req_tag(req, "public data");
    tool = req_tool(req, "alerts", "{}");
    tool->description = req_text("What is dangerous");
    tool->tags = tool_tags;
    tool->n_tags = 2;
    tool->output_schema = req_bytes("{\"type\" : \"array\"}");
    tool->idempotent = 1;
    tool->timeout_ms = 1500;
    tool->destructive = 1;
    tool->additive = 1;
    tool->title = req_text("All \"alerts\"");
    tool->version = req_text("3 beta");
    tool->artifact_kind = req_text("markdown");
    tool->examples = req_bytes("[ {\"x\":1.0},{} ]");
}

/* ---- what is made -------------------------------------------------------------------------- */

TEST(a_registration_becomes_a_toolset)
{
    struct req req = {0};
    struct gw_toolset *toolset;

    fill(&req);
    toolset = req_toolset(&req);

    CHECK_STR(toolset->name, "weather.eu/v2:x_y-z");
    CHECK_STR(toolset->version, "v1.2.0-rc.1");
    CHECK_STR(toolset->tags[1], "public data");
    CHECK_STR(toolset->owner, "local");
    CHECK_INT(toolset->n_tools, 2);
    CHECK_STR(toolset->tools[0].name, "get");
    CHECK_STR(toolset->tools[0].output_schema, "");
    CHECK_STR(toolset->tools[1].output_schema, "{\"type\" : \"array\"}");
    CHECK_STR(toolset->tools[1].tags[1], "slow");
    CHECK(toolset->tools[1].is_idempotent);
    CHECK_INT(toolset->tools[1].timeout_ms, 1500);
    CHECK(!toolset->tools[1].is_read_only);
    CHECK(toolset->tools[1].is_destructive && toolset->tools[1].is_additive);
    CHECK_STR(toolset->tools[1].title, "All \"alerts\"");
    CHECK_STR(toolset->tools[1].version, "3 beta");
    CHECK_STR(toolset->tools[1].artifact_kind, "markdown");
    CHECK_STR(toolset->tools[1].examples, "[ {\"x\":1.0},{} ]");
    CHECK(!toolset->tools[0].is_destructive);
    CHECK_STR(toolset->tools[0].title, "");
    CHECK_INT(toolset->kind, GW_ATTACHED);
    CHECK_INT(toolset->revision, 7);
    gw_toolset_unref(toolset);
}

TEST(strings_of_a_toolset_end_with_a_nul)
{
    struct req req = {0};
    struct gw_toolset *toolset;

    fill(&req);
    toolset = req_toolset(&req);

    CHECK_INT(toolset->description.ptr[toolset->description.len], 0);
    CHECK_INT(toolset->tools[1].tags[0].ptr[4], 0);
    CHECK_INT(toolset->tools[1].input_schema.ptr[2], 0);
    gw_toolset_unref(toolset);
}

TEST(a_tool_is_found_by_its_name)
{
    struct req req = {0};
    struct gw_toolset *toolset;

    req_empty(&req, "x");
    for (const char *name = "m\0a\0z\0aa\0b\0"; *name; name += strlen(name) + 1)
        req_tool(&req, name, "{}");
    toolset = req_toolset(&req);

    CHECK(gw_toolset_tool(toolset, peg__str("aa")) == &toolset->tools[3]);
    CHECK(gw_toolset_tool(toolset, peg__str("m")) == &toolset->tools[0]);
    CHECK(gw_toolset_tool(toolset, peg__str("z")) == &toolset->tools[2]);
    CHECK(!gw_toolset_tool(toolset, peg__str("ab")));
    CHECK(!gw_toolset_tool(toolset, peg__str("")));
    gw_toolset_unref(toolset);
}

/* ---- what is refused ----------------------------------------------------------------------- */

TEST(a_toolset_without_a_name_is_refused)
{
    struct req req = {0};

    req_init(&req, "");
    check_refused(&req, WIRE_MISSING_FIELD, "\"name\" is missing");
}

TEST(a_toolset_without_tools_is_refused)
{
    struct req req = {0};

    req_empty(&req, "x");
    check_refused(&req, WIRE_MISSING_FIELD, "\"tools\" is missing");
}

TEST(names_with_separators_wildcards_and_control_characters_are_refused)
{
    static const char *const names[] = {"a b", "a=b",     "a*",       "a?",  "a[b]",
                                        "a\n", "\x1b[2J", "\xC3\xA4", "a#b", "a\\b"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct req req = {0};

        req_init(&req, names[i]);
        check_refused(&req, WIRE_VALIDATION, "is no name");
        CHECK(!strpbrk(failed.message, "\n\x1b"));
    }
}

TEST(a_long_name_is_refused)
{
    char name[PEG_LIMIT_NAME_BYTES + 2];
    struct req req = {0};
    struct gw_toolset *toolset;

    memset(name, 'n', sizeof(name));
    name[PEG_LIMIT_NAME_BYTES + 1] = '\0';
    req_init(&req, name);
    check_refused(&req, WIRE_INVALID_LENGTH, "use at most 256");

    name[PEG_LIMIT_NAME_BYTES] = '\0';
    toolset = req_toolset(&req);
    gw_toolset_unref(toolset);
}

TEST(a_long_description_is_refused_counting_characters)
{
    static char text[2 * PEG_LIMIT_GATEWAY_DESCRIPTION + 3];
    struct req req = {0};
    struct gw_toolset *toolset;

    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xC3\xA4", 2);
    req_init(&req, "x");
    req.msg.description = text;
    check_refused(&req, WIRE_INVALID_LENGTH, "characters: use at most 4096");

    text[2 * PEG_LIMIT_GATEWAY_DESCRIPTION] = '\0';
    toolset = req_toolset(&req);
    gw_toolset_unref(toolset);
}

TEST(a_version_that_is_none_is_refused)
{
    struct req req = {0};

    req_init(&req, "x");
    req.msg.version = req_text("1.2");
    check_refused(&req, WIRE_INVALID_PATTERN, "version '1.2'");
}

TEST(too_many_tags_are_refused)
{
    struct req req = {0};

    req_init(&req, "x");
    for (unsigned i = 0; i <= PEG_LIMIT_GATEWAY_TAGS; i++)
        req_tag(&req, "t");
    check_refused(&req, WIRE_LIMIT, "tags: use at most");
}

TEST(a_kind_that_is_none_is_refused)
{
    struct req req = {0};

    req_init(&req, "x");
    req.msg.kind = (Pegboard__V1__ToolsetKind)9;
    check_refused(&req, WIRE_INVALID_RANGE, "9 is no kind");
}

TEST(a_tool_s_timeout_has_bounds)
{
    struct req req = {0};

    req_init(&req, "x");
    req.tools[0].timeout_ms = -1;
    check_refused(&req, WIRE_INVALID_RANGE, "timeout_ms is -1");
    CHECK_STR(peg__str(failed.where), "/tools/0");
}

TEST(examples_that_are_no_list_of_objects_are_refused)
{
    static const char *const examples[] = {"{}",   "[1]", "[{}", "[{\"a\":1,\"a\":2}]",
                                           "null", "\xff"};
    static char large[PEG_LIMIT_META_BYTES + 2];
    struct req req = {0};

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        req_init(&req, "x");
        req.tools[0].examples = req_bytes(examples[i]);
        check_refused(&req, WIRE_VALIDATION, "no JSON array of argument objects");
    }
    req.tools[0].examples = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)req_text("[]\0")};
    check_refused(&req, WIRE_VALIDATION, "there is a NUL");
    memset(large, ' ', sizeof(large) - 1);
    req.tools[0].examples = req_bytes(large);
    check_refused(&req, WIRE_LIMIT, "use at most 262144");
}

TEST(titles_versions_and_kinds_are_short_words)
{
    static char large[PEG_LIMIT_NAME_BYTES + 2];
    struct req req = {0};

    memset(large, 'n', sizeof(large) - 1);
    req_init(&req, "x");
    req.tools[0].title = large;
    check_refused(&req, WIRE_VALIDATION, "title");
    req_init(&req, "x");
    req.tools[0].version = req_text("1\n2");
    check_refused(&req, WIRE_VALIDATION, "version");
    req_init(&req, "x");
    req.tools[0].artifact_kind = req_text("a kind");
    check_refused(&req, WIRE_VALIDATION, "artifact_kind");
}

TEST(two_tools_of_one_name_are_refused)
{
    struct req req = {0};

    req_init(&req, "x");
    req_tool(&req, "a", "{}");
    req_tool(&req, "get", "{}");
    check_refused(&req, WIRE_VALIDATION, "two tools are named \"get\"");
}

TEST(a_schema_that_does_not_compile_is_named)
{
    struct req req = {0};

    req_init(&req, "x");
    req_tool(&req, "bad", "{\"type\":\"strin\"}");
    check_refused(&req, WIRE_VALIDATION,
                  "invalid tool schema: tool \"bad\": input schema: /type: ");
    CHECK_STR(peg__str(failed.where), "/tools/1");
}

TEST(schemas_that_are_no_json_empty_or_of_the_output_are_named)
{
    struct req req = {0};

    req_empty(&req, "x");
    req_tool(&req, "t", "{");
    check_refused(&req, WIRE_VALIDATION, "tool \"t\": input schema: ");
    req.tools[0].input_schema = req_bytes("");
    check_refused(&req, WIRE_VALIDATION, "tool \"t\": input schema: it is empty");
    req.tools[0].input_schema = req_bytes("{}");
    req.tools[0].output_schema = req_bytes("{\"$ref\":\"file:///etc/passwd\"}");
    check_refused(&req, WIRE_VALIDATION, "tool \"t\": output schema: ");
}

TEST(a_schema_past_a_limit_names_it)
{
    enum { DEPTH = PEG_LIMIT_SCHEMA_DEPTH + 10 };
    static char text[DEPTH * 10 + 3];
    struct req req = {0};
    size_t n = 0;

    for (unsigned i = 0; i < DEPTH; i++)
        n += (size_t)sprintf(text + n, "{\"not\":");
    n += (size_t)sprintf(text + n, "{}");
    memset(text + n, '}', DEPTH);
    req_empty(&req, "x");
    req_tool(&req, "t", text);
    check_refused(&req, WIRE_LIMIT, "input schema: ");
}

TEST(a_toolset_that_is_too_large_is_refused)
{
    static char text[PEG_LIMIT_SCHEMA_BYTES];
    struct req req = {0};

    memset(text, ' ', sizeof(text) - 1);
    memcpy(text, "{}", 2);
    req_empty(&req, "x");
    for (const char *name = "a\0b\0c\0d\0e\0"; *name; name += strlen(name) + 1)
        req_tool(&req, name, text);
    check_refused(&req, WIRE_LIMIT, "bytes of text and schemas: use at most");
}

static struct gw_toolset *make_many(size_t n, peg_status *ret_status)
{
    Pegboard__V1__Tool *tools = calloc(n, sizeof(*tools));
    Pegboard__V1__Tool **ptrs = calloc(n, sizeof(*ptrs));
    char(*names)[16] = calloc(n, sizeof(*names));
    struct req req = {0};
    struct gw_toolset *toolset = NULL;

    req_empty(&req, "many");
    for (size_t i = 0; i < n; i++) {
        ptrs[i] = &tools[i];
        pegboard__v1__tool__init(&tools[i]);
        snprintf(names[i], sizeof(names[i]), "t%zu", i * 7919 % 100003);
        tools[i].name = names[i];
        tools[i].input_schema = req_bytes(REQ_SCHEMA);
    }
    req.msg.tools = ptrs;
    req.msg.n_tools = n;
    *ret_status = req_make(&req, &toolset, &failed);
    free(tools);
    free(ptrs);
    free(names);
    return toolset;
}

TEST(ten_thousand_tools_fit_and_one_more_does_not)
{
    peg_status status;
    struct gw_toolset *toolset = make_many(PEG_LIMIT_GATEWAY_TOOLS, &status);

    CHECK_INT(status, PEG_OK);
    CHECK_INT(gw_schema_count(NULL), 1);
    CHECK(gw_toolset_tool(toolset, peg__str("t7919")) == &toolset->tools[1]);
    gw_toolset_unref(toolset);

    CHECK(!make_many(PEG_LIMIT_GATEWAY_TOOLS + 1, &status));
    CHECK_INT(status, PEG_ELIMIT);
    CHECK(strstr(failed.message, "tools: use at most"));
}

/* ---- digests ------------------------------------------------------------------------------- */

TEST(equal_registrations_have_equal_digests)
{
    struct req req = {0};
    struct gw_toolset *a;
    struct gw_toolset *b;
    const struct gw_toolset_dates dates = {.owner = PEG_LIT("token:x"), .revision = 9};

    fill(&req);
    a = req_toolset(&req);
    CHECK_INT(gw_toolset_make(&req.msg, &dates, &b, NULL), PEG_OK);

    CHECK(memcmp(a->digest, b->digest, sizeof(a->digest)) == 0);
    gw_toolset_unref(a);
    gw_toolset_unref(b);
}

TEST(what_a_caller_sees_is_in_the_digest)
{
    struct req req = {0};
    struct gw_toolset *a;
    struct gw_toolset *b;

    fill(&req);
    a = req_toolset(&req);
    req.tools[1].timeout_ms++;
    b = req_toolset(&req);

    CHECK(memcmp(a->digest, b->digest, sizeof(a->digest)) != 0);
    gw_toolset_unref(a);
    gw_toolset_unref(b);
}

/* ---- records ------------------------------------------------------------------------------- */

TEST(a_toolset_is_written_and_read_back)
{
    struct req req = {0};
    struct peg__buf first = PEG__BUF(1 << 20);
    struct peg__buf second = PEG__BUF(1 << 20);
    struct gw_toolset *toolset;
    struct gw_toolset *again;

    fill(&req);
    req.msg.kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
    toolset = req_toolset(&req);
    CHECK_INT(gw_toolset_write(toolset, &first, NULL), PEG_OK);
    CHECK_STATUS(gw_toolset_read(peg__buf_view(&first), &again, &failed), PEG_OK, failed);
    CHECK_INT(gw_toolset_write(again, &second, NULL), PEG_OK);

    CHECK_STR(peg__buf_view(&second), first.ptr);
    CHECK(memcmp(toolset->digest, again->digest, sizeof(again->digest)) == 0);
    CHECK_INT(again->kind, GW_DIRECT);
    CHECK_INT(again->registered_at_ms, 1700000000123);
    CHECK_INT(again->revision, 7);
    CHECK_STR(again->owner, "local");
    peg__buf_free(&first);
    peg__buf_free(&second);
    gw_toolset_unref(toolset);
    gw_toolset_unref(again);
}

TEST(what_only_reads_may_be_repeated)
{
    struct req req = {0};
    struct gw_toolset *toolset;

    req_init(&req, "x");
    req.tools[0].read_only = 1;
    toolset = req_toolset(&req);

    CHECK(toolset->tools[0].is_read_only && toolset->tools[0].is_idempotent);
    gw_toolset_unref(toolset);
}

TEST(a_record_from_before_hints_and_titles_is_read)
{
    static const char old[] =
        "{\"format\":1,\"revision\":7,\"registered_at_ms\":1700000000123,\"owner\":\"local\","
        "\"name\":\"x\",\"tools\":[{\"name\":\"t\",\"description\":\"d\",\"input_schema\":\"{}\","
        "\"idempotent\":true,\"timeout_ms\":5}]}";
    struct peg__buf again = PEG__BUF(1 << 20);
    struct gw_toolset *toolset;

    CHECK_STATUS(gw_toolset_read(peg__str(old), &toolset, &failed), PEG_OK, failed);

    CHECK(toolset->tools[0].is_idempotent);
    CHECK(!toolset->tools[0].is_read_only && !toolset->tools[0].is_destructive);
    CHECK_STR(toolset->tools[0].title, "");
    CHECK_STR(toolset->tools[0].examples, "");
    /* One that says no more is kept as it was: an older gateway of the registry reads it, too. */
    CHECK_INT(gw_toolset_write(toolset, &again, NULL), PEG_OK);
    CHECK_STR(peg__buf_view(&again), old);
    peg__buf_free(&again);
    gw_toolset_unref(toolset);
}

TEST(records_that_are_none_are_refused)
{
    static const char *const records[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"format\":2,\"name\":\"x\"}",
        "{\"format\":1}",
        "{\"format\":1,\"name\":7}",
        "{\"format\":1,\"name\":\"x\",\"tools\":{}}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[]}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[1]}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[{\"name\":\"t\",\"input_schema\":{}}]}",
        "{\"format\":1,\"name\":\"x\\u0000\",\"tools\":[{\"name\":\"t\",\"input_schema\":\"{}\"}]}",
        "{\"format\":1,\"name\":\"x\",\"kind\":\"odd\",\"tools\":[{\"name\":\"t\","
        "\"input_schema\":\"{}\"}]}",
        "{\"format\":1,\"name\":\"x\",\"tags\":[1],\"tools\":[{\"name\":\"t\","
        "\"input_schema\":\"{}\"}]}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[{\"name\":\"t\",\"timeout_ms\":\"1\","
        "\"input_schema\":\"{}\"}]}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[{\"name\":\"t\",\"title\":7,"
        "\"input_schema\":\"{}\"}]}",
        "{\"format\":1,\"name\":\"x\",\"tools\":[{\"name\":\"t\",\"examples\":[{}],"
        "\"input_schema\":\"{}\"}]}",
    };

    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct gw_toolset *toolset;

        if (gw_toolset_read(peg__str(records[i]), &toolset, &failed) == PEG_OK)
            T_FAIL("taken: %s", records[i]);
        CHECK(failed.message[0]);
    }
}

/* ---- compiled schemas ---------------------------------------------------------------------- */

TEST(a_compiled_schema_is_handed_out)
{
    struct req req = {0};
    struct gw_toolset *toolset;
    peg_schema *schema;
    peg_schema *again;

    fill(&req);
    toolset = req_toolset(&req);
    schema = gw_tool_input_schema(&toolset->tools[0]);
    again = gw_tool_input_schema(&toolset->tools[0]);

    CHECK(schema && schema == again);
    CHECK(!gw_tool_output_schema(&toolset->tools[0]));
    peg_schema_unref(schema);
    peg_schema_unref(again);
    gw_toolset_unref(toolset);
    CHECK_INT(gw_schema_count(NULL), 0);
}

TEST(equal_schemas_are_compiled_once)
{
    struct req req = {0};
    struct gw_toolset *a;
    struct gw_toolset *b;

    req_init(&req, "a");
    a = req_toolset(&req);
    req.msg.name = req_text("b");
    b = req_toolset(&req);

    CHECK_INT(gw_schema_count(NULL), 1);
    CHECK(a->tools[0].input == b->tools[0].input);
    gw_toolset_unref(a);
    CHECK_STR(b->tools[0].input_schema, REQ_SCHEMA);
    gw_toolset_unref(b);
}

TEST(compiled_schemas_stay_within_their_budget_and_come_back)
{
    struct req req = {0};
    struct gw_toolset *toolset;
    static char texts[REQ_TOOLS][200];
    static char names[REQ_TOOLS][8];
    size_t bytes;

    req_empty(&req, "x");
    for (unsigned i = 0; i < REQ_TOOLS; i++) {
        snprintf(names[i], sizeof(names[i]), "t%u", i);
        snprintf(texts[i], sizeof(texts[i]), "{\"const\":%u}", i);
        req_tool(&req, names[i], texts[i]);
    }
    gw_schema_set_budget(1);
    toolset = req_toolset(&req);

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < REQ_TOOLS; i++) {
            peg_schema *schema = gw_tool_input_schema(&toolset->tools[i]);
            const peg_json *constant = peg_json_get(peg_schema_source(schema), "const");

            CHECK_INT(constant->u.number, i);
            peg_schema_unref(schema);
        }
    }
    CHECK_INT(gw_schema_count(&bytes), REQ_TOOLS);
    CHECK(bytes > 0 && bytes < 8192); /* the last one alone */
    gw_schema_set_budget(0);
    gw_toolset_unref(toolset);
    CHECK_INT(gw_schema_count(&bytes), 0);
    CHECK_INT(bytes, 0);
}

/* ---- memory -------------------------------------------------------------------------------- */

TORTURE(making_a_toolset_survives_any_allocation_failure)
{
    struct req req = {0};
    struct gw_toolset *toolset = NULL;
    peg_status status;

    fill(&req);
    status = req_make(&req, &toolset, &failed);
    gw_toolset_unref(toolset);
    return status;
}

TORTURE(writing_and_reading_survive_any_allocation_failure)
{
    struct req req = {0};
    struct peg__buf buf = PEG__BUF(1 << 20);
    struct gw_toolset *toolset = NULL;
    struct gw_toolset *again = NULL;
    peg_status status;

    fill(&req);
    status = req_make(&req, &toolset, &failed);
    if (!status)
        status = gw_toolset_write(toolset, &buf, &failed);
    if (!status)
        status = gw_toolset_read(peg__buf_view(&buf), &again, &failed);
    peg__buf_free(&buf);
    gw_toolset_unref(toolset);
    gw_toolset_unref(again);
    return status;
}

TORTURE(using_a_schema_again_survives_any_allocation_failure)
{
    struct req req = {0};
    struct gw_toolset *toolset = NULL;
    peg_schema *schema = NULL;
    peg_status status;

    gw_schema_set_budget(1);
    req_init(&req, "x");
    req_tool(&req, "other", "true");
    status = req_make(&req, &toolset, &failed);
    if (!status) {
        schema = gw_tool_input_schema(&toolset->tools[0]);
        status = schema ? PEG_OK : PEG_ENOMEM;
    }
    peg_schema_unref(schema);
    gw_toolset_unref(toolset);
    gw_schema_set_budget(0);
    return status;
}
