/* SPDX-License-Identifier: Apache-2.0 */

#include "ask.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "json/json.h"

/* ---- fixture ------------------------------------------------------------------------------- */

struct json_case {
    const char *text;
    const char *args;
    const char *answer;
};

static void check_cases(const char *query, const struct json_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK_ASK(&peg_artifact_json, cases[i].text, query, cases[i].args, cases[i].answer);
}

#define CHECK_CASES(query, cases) check_cases(query, cases, sizeof(cases) / sizeof(*(cases)))

#define USERS                                                                                      \
    "{\"id\":1,\"name\":\"Ada\",\"tags\":[\"x\",\"y\"]}\n"                                         \
    "{\"id\":2,\"name\":\"Bob\",\"admin\":true}\n"                                                 \
    "\n"                                                                                           \
    "{\"id\":3,\"tags\":[]}\n"

static struct peg__buf answer_of(peg_str bytes, const char *query, const char *args,
                                 peg_status expected)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    CHECK_INT(
        ask(&(struct ask){.kind = &peg_artifact_json, .bytes = bytes, .query = query, .args = args},
            &out),
        expected);
    CHECK(peg__utf8_is_valid(peg__buf_view(&out)));
    CHECK(out.len <= PEG_LIMIT_QUERY_BYTES);
    return out;
}

static peg_str last_line(const struct peg__buf *answer)
{
    const char *newline = memrchr(answer->ptr, '\n', answer->len);

    CHECK(newline);
    return peg__str(newline + 1);
}

/* ---- which format ------------------------------------------------------------------------------
 */

/* T131 */
TEST(type_is_the_first_format_that_the_text_is)
{
    static const struct json_case cases[] = {
        {"{\"a\":1}", "{}", "json"},
        {" [1,\n2]\n", "{}", "json"},
        {"1", "{}", "json"},
        {"\"text\"", "{}", "json"},
        {"{\"a\":1}\n{\"a\":2}\n", "{}", "jsonl"},
        {"1\n\n  \r\n2\r\n", "{}", "jsonl"},
        {"1\n\"two\"\nnull", "{}", "jsonl"},
        {"{a:1}", "{}", "json5"},
        {"// note\n{'a':[1,2,],}", "{}", "json5"},
        {"\xEF\xBB\xBF{\"a\":1}", "{}", "json"},
        {"{\"a\":1}\n", "{}", "json"},
    };

    CHECK_CASES("artifact_json_type", cases);
}

/* T131 */
TEST(text_that_is_no_json_fails_and_says_why)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"hello", "not JSON (line 1, column 1"},
        {"{\"a\":1}\n{\"b\":\n", "not JSON Lines (see line 2)"},
        {"", "the artifact is empty"},
        {" \r\n\t\n", "the artifact is empty"},
        {"\xEF\xBB\xBF", "the artifact is empty"},
        {"{\"a\": \xFF}", "not JSON"},
        /* Each is half of a value, which joining the lines would hide. */
        {"[1\n2]\n3,4", "not JSON Lines (see line 1)"},
        {"1,2\n3", "not JSON Lines (see line 1)"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf out =
            answer_of(peg__str(cases[i].text), "artifact_json_length", "{}", PEG_EHOST);

        if (strncmp(out.ptr, "E_JSON_SYNTAX: ", 15) != 0 || !strstr(out.ptr, cases[i].words))
            T_FAIL("\"%s\" fails with: %s", cases[i].text, out.ptr);
        peg__buf_free(&out);
    }
}

TEST(json_that_is_too_deep_is_told_as_such)
{
    struct peg__buf text = PEG__BUF(10000);
    struct peg__buf out;

    peg__buf_repeat(&text, '[', 300);
    peg__buf_repeat(&text, ']', 300);
    out = answer_of(peg__buf_view(&text), "artifact_json_type", "{}", PEG_EHOST);

    CHECK(strncmp(out.ptr, "E_JSON_TOO_DEEP: ", 17) == 0);
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(lines_may_be_as_deep_as_a_whole_text)
{
    struct peg__buf text = PEG__BUF(10000);
    struct peg__buf out;

    peg__buf_puts(&text, "1\n");
    peg__buf_repeat(&text, '[', PEG_LIMIT_JSON_DEPTH);
    peg__buf_repeat(&text, ']', PEG_LIMIT_JSON_DEPTH);
    out = answer_of(peg__buf_view(&text), "artifact_json_length", "{}", PEG_OK);

    CHECK_STR(peg__buf_view(&out), "2");
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(records_are_parsed_once)
{
    struct peg__records *records = NULL;
    size_t n = 0;

    CHECK_INT(peg__records_new(peg__str(USERS), &records, NULL), PEG_OK);

    PEG__RECORDS_EACH(records, record)
    {
        CHECK_INT(record->kind, PEG_JSON_OBJECT);
        n++;
    }
    CHECK_INT(n, 3);
    CHECK_INT(records->n, 3);
    peg__records_free(records);
}

/* ---- what is in it
 * ------------------------------------------------------------------------------- */

/* T131 */
TEST(length_is_the_number_of_records)
{
    static const struct json_case cases[] = {
        {"[1,2,3]", "{}", "1"}, {"{}", "{}", "1"}, {"{a:1}", "{}", "1"}, {USERS, "{}", "3"}};

    CHECK_CASES("artifact_json_length", cases);
}

/* T131 */
TEST(keys_are_those_of_the_root_or_the_union_of_all_records)
{
    static const struct json_case cases[] = {
        {"{\"b\":1,\"a\":2}", "{}", "b\na"},
        {"{b:1,a:2}", "{}", "b\na"},
        {"{}", "{}", "(empty list)"},
        {"[{\"a\":1}]", "{}", "(undefined)"},
        {"5", "{}", "(undefined)"},
        {"null", "{}", "(undefined)"},
        {USERS, "{}", "id\nname\ntags\nadmin"},
        {"1\n{\"z\":1}\n[2]\n{\"a\":1,\"z\":2}", "{}", "z\na"},
        {"1\n2", "{}", "(undefined)"},
        {"{\"a\":1,\"a\":2,\"b\":3}", "{}", "a\nb"},
    };

    CHECK_CASES("artifact_json_keys", cases);
}

/* T131: get and pluck answer alike, always with the list of what was found. */
TEST(get_and_pluck_return_the_list_of_what_a_path_finds)
{
    static const struct json_case cases[] = {
        {"{\"user\":{\"name\":\"Ada\"}}", "{\"path\":\"$.user.name\"}", "Ada"},
        {"{\"a\":[\"x\",\"y\"]}", "{\"path\":\"$.a[*]\"}", "x\ny"},
        {"{\"a\":[\"x\",\"y\"]}", "{\"path\":\"$.a\"}", "[\n  [\n    \"x\",\n    \"y\"\n  ]\n]"},
        {"{\"n\":42}", "{\"path\":\"$.n\"}", "[\n  42\n]"},
        {"{\"n\":null}", "{\"path\":\"$.n\"}", "[\n  null\n]"},
        {"{\"n\":{}}", "{\"path\":\"$.n\"}", "[\n  {}\n]"},
        {"{\"n\":1}", "{\"path\":\"$.missing\"}", "(empty list)"},
        {"[]", "{\"path\":\"$[*]\"}", "(empty list)"},
        {"{\"a\":\"s\",\"b\":1}", "{\"path\":\"$.*\"}", "[\n  \"s\",\n  1\n]"},
        {"[{\"p\":1},{\"p\":2,\"q\":[0]}]", "{\"path\":\"$[?(@.p>1)]\"}",
         "[\n  {\n    \"p\": 2,\n    \"q\": [\n      0\n    ]\n  }\n]"},
        {"{\"a\":1}", "{\"path\":\"$\"}", "[\n  {\n    \"a\": 1\n  }\n]"},
        {USERS, "{\"path\":\"$.name\"}", "Ada\nBob"},
        {USERS, "{\"path\":\"$.id\"}", "[\n  1,\n  2,\n  3\n]"},
        {USERS, "{\"path\":\"$.tags[*]\"}", "x\ny"},
        {"{n:0x10, m:'s'}", "{\"path\":\"$.n\"}", "[\n  16\n]"},
        {"{\"a\":\"line 1\\nline 2\"}", "{\"path\":\"$.a\"}", "line 1\nline 2"},
    };

    CHECK_CASES("artifact_json_get", cases);
    CHECK_CASES("artifact_json_pluck", cases);
}

/* T131 */
TEST(filter_keeps_the_records_in_which_a_path_finds_something)
{
    static const struct json_case cases[] = {
        {USERS, "{\"path\":\"$.admin\"}",
         "[\n  {\n    \"id\": 2,\n    \"name\": \"Bob\",\n    \"admin\": true\n  }\n]"},
        {USERS, "{\"path\":\"$.tags[1]\"}",
         "[\n  {\n    \"id\": 1,\n    \"name\": \"Ada\",\n    \"tags\": [\n      \"x\",\n      "
         "\"y\"\n    ]\n  }\n]"},
        {USERS, "{\"path\":\"$.nothing\"}", "(empty list)"},
        {"\"a\"\n\"b\"\n3", "{\"path\":\"$\"}", "[\n  \"a\",\n  \"b\",\n  3\n]"},
        {"\"a\"\n\"b\"", "{\"path\":\"$\"}", "a\nb"},
        {"[{\"a\":1},{\"b\":2}]", "{\"path\":\"$[?(@.b)]\"}",
         "[\n  [\n    {\n      \"a\": 1\n    },\n    {\n      \"b\": 2\n    }\n  ]\n]"},
        {"[1]", "{\"path\":\"$[5]\"}", "(empty list)"},
        {"[1,2,3]\n[4]", "{\"path\":\"$[*]\"}",
         "[\n  [\n    1,\n    2,\n    3\n  ],\n  [\n    4\n  ]\n]"},
    };

    CHECK_CASES("artifact_json_filter", cases);
}

/* T131 */
TEST(slice_returns_records_by_their_number)
{
    static const struct json_case cases[] = {
        {"1\n2\n3\n4", "{}", "[\n  1,\n  2,\n  3,\n  4\n]"},
        {"1\n2\n3\n4", "{\"start\":1,\"end\":3}", "[\n  2,\n  3\n]"},
        {"1\n2\n3\n4", "{\"start\":3}", "[\n  4\n]"},
        {"1\n2\n3\n4", "{\"end\":1}", "[\n  1\n]"},
        {"1\n2\n3\n4", "{\"start\":2,\"end\":1e30}", "[\n  3,\n  4\n]"},
        {"1\n2\n3\n4", "{\"start\":9}", "(empty list)"},
        {"1\n2\n3\n4", "{\"start\":2,\"end\":1}", "(empty list)"},
        {"[1,2]", "{\"start\":1,\"end\":2}", "[\n  [\n    1,\n    2\n  ]\n]"}, /* ignored */
        {"{a:1}", "{\"start\":5}", "[\n  {\n    \"a\": 1\n  }\n]"},
        {"\"x\"", "{\"start\":5}", "x"},
    };

    CHECK_CASES("artifact_json_slice", cases);
}

TEST(path_that_is_malformed_fails_with_examples)
{
    static const char *const paths[] = {"user.name", "$.[", "$[?(@.a === 1)]", "",
                                        "$.a[?length(@)]"};
    char args[64];

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        struct peg__buf out;

        snprintf(args, sizeof(args), "{\"path\":\"%s\"}", paths[i]);
        out = answer_of(peg__str("{}"), "artifact_json_get", args, PEG_EHOST);
        if (strncmp(out.ptr, "E_JSON_PATH_", 12) != 0 || !strstr(out.ptr, "$.user.name"))
            T_FAIL("%s fails with: %s", paths[i], out.ptr);
        peg__buf_free(&out);
    }
}

/* ---- how values are written
 * ------------------------------------------------------------------------ */

/* T131 */
TEST(values_are_rendered_by_one_rule)
{
    static const struct {
        const char *json; /* NULL: there is none */
        const char *text;
    } cases[] = {
        {NULL, "(undefined)"},
        {"null", "null"},
        {"\"as it is\\n\\\"\"", "as it is\n\""},
        {"\"\"", ""},
        {"[\"a\",\"b\"]", "a\nb"},
        {"[\"\"]", ""},
        {"[]", "(empty list)"},
        {"-12", "-12"},
        {"0.50", "0.50"},
        {"1e3", "1000"},
        {"true", "true"},
        {"{}", "{}"},
        {"[1,\"a\"]", "[\n  1,\n  \"a\"\n]"},
        {"[[]]", "[\n  []\n]"},
        {"{\"a\":{\"b\":[]}}", "{\n  \"a\": {\n    \"b\": []\n  }\n}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf out = PEG__BUF(1000);
        peg_json_doc *doc = NULL;

        if (cases[i].json)
            CHECK_INT(peg_json_parse(peg__str(cases[i].json), NULL, &doc, NULL), PEG_OK);
        peg__query_render(doc ? peg_json_root(doc) : NULL, &out);
        CHECK_STR(peg__buf_view(&out), cases[i].text);
        CHECK_INT(out.max, 1000);
        peg__buf_free(&out);
        peg_json_doc_free(doc);
    }
}

TEST(list_is_rendered_as_its_array_would_be)
{
    static const char *const arrays[] = {"[]", "[\"a\",\"b\"]", "[1,[2,{\"a\":[3,\"\\n\"]}],{}]",
                                         "[\"a\",null]", "[[[]]]"};

    for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
        struct peg__buf as_array = PEG__BUF(1000);
        struct peg__buf as_list = PEG__BUF(1000);
        struct peg__query_list list = {0};
        peg_json_doc *doc = NULL;

        CHECK_INT(peg_json_parse(peg__str(arrays[i]), NULL, &doc, NULL), PEG_OK);
        PEG_JSON_EACH_ITEM (peg_json_root(doc), item)
            CHECK_INT(peg__query_list_add(&list, item, NULL), PEG_OK);
        peg__query_render(peg_json_root(doc), &as_array);
        peg__query_render_list(&list, "", &as_list);
        CHECK_STR(peg__buf_view(&as_list), as_array.ptr);
        peg__query_list_free(&list);
        peg__buf_free(&as_list);
        peg__buf_free(&as_array);
        peg_json_doc_free(doc);
    }
}

/* ---- limits
 * -------------------------------------------------------------------------------------------- */

/* A JSON array of n strings of 100 bytes, or as many lines of them. */
static void put_strings(struct peg__buf *text, size_t n, bool as_lines)
{
    if (!as_lines)
        peg__buf_putc(text, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            peg__buf_putc(text, as_lines ? '\n' : ',');
        peg__buf_putc(text, '"');
        peg__buf_repeat(text, 'x', 100);
        peg__buf_putc(text, '"');
    }
    if (!as_lines)
        peg__buf_putc(text, ']');
    CHECK_INT(text->status, PEG_OK);
}

TEST(answer_that_is_too_long_is_cut_at_a_line)
{
    static const struct {
        bool as_lines;
        const char *query;
        const char *args;
    } cases[] = {
        {false, "artifact_json_get", "{\"path\":\"$\"}"},
        {false, "artifact_json_get", "{\"path\":\"$[*]\"}"},
        {false, "artifact_json_slice", "{}"},
        {true, "artifact_json_slice", "{}"},
        {true, "artifact_json_filter", "{\"path\":\"$\"}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
        struct peg__buf out;
        peg_str note;

        put_strings(&text, 20000, cases[i].as_lines);
        out = answer_of(peg__buf_view(&text), cases[i].query, cases[i].args, PEG_OK);
        note = last_line(&out);
        CHECK(out.len > PEG_LIMIT_QUERY_BYTES - 500);
        CHECK(strstr(note.ptr, "[cut: the answer reached its limit of 1048576 bytes; "));
        CHECK(strstr(note.ptr, "artifact_json_"));
        /* The line before is whole. */
        CHECK(note.ptr[-2] == 'x' || (note.ptr[-2] == ',' && note.ptr[-3] == '"'));
        peg__buf_free(&out);
        peg__buf_free(&text);
    }
}

TEST(string_that_is_too_long_is_cut_within)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;

    peg__buf_putc(&text, '"');
    for (int i = 0; i < 700000; i++)
        peg__buf_puts(&text, "é");
    peg__buf_putc(&text, '"');
    out = answer_of(peg__buf_view(&text), "artifact_json_get", "{\"path\":\"$\"}", PEG_OK);

    CHECK(strncmp(out.ptr, "éé", 4) == 0);
    CHECK(strstr(last_line(&out).ptr, "[cut: "));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(path_that_finds_too_much_in_one_record_fails)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;

    peg__buf_puts(&text, "[0");
    for (int i = 0; i < PEG_LIMIT_QUERY_VALUES; i++)
        peg__buf_puts(&text, ",0");
    peg__buf_putc(&text, ']');
    out = answer_of(peg__buf_view(&text), "artifact_json_get", "{\"path\":\"$[*]\"}", PEG_EHOST);

    CHECK(strncmp(out.ptr, "E_JSON_PATH_NODES: ", 19) == 0);
    CHECK(strstr(out.ptr, "more than 200000"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

VOLUME_TEST(path_that_finds_too_much_in_all_records_is_cut)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;

    for (int i = 0; i <= PEG_LIMIT_QUERY_VALUES; i++)
        peg__buf_puts(&text, "0\n");
    out = answer_of(peg__buf_view(&text), "artifact_json_pluck", "{\"path\":\"$\"}", PEG_OK);

    CHECK(strstr(last_line(&out).ptr, "[cut: the answer reached its limit of 200000 values"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

/* $..* of a nest finds each value with all below it: as much as the square of the text. */
TEST(path_that_finds_nested_values_does_not_copy_them)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;

    peg__buf_repeat(&text, '[', 250);
    for (int i = 0; i < 100000; i++)
        peg__buf_puts(&text, i ? ",0" : "0");
    peg__buf_repeat(&text, ']', 250);
    out = answer_of(peg__buf_view(&text), "artifact_json_get", "{\"path\":\"$..*\"}", PEG_OK);

    CHECK(strstr(last_line(&out).ptr, "[cut: the answer reached its limit"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

VOLUME_TEST(path_that_takes_too_many_steps_fails)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;

    /* Each of 10,000 items looks at all of them again. */
    peg__buf_puts(&text, "[0");
    for (int i = 0; i < 10000; i++)
        peg__buf_puts(&text, ",0");
    peg__buf_putc(&text, ']');
    out = answer_of(peg__buf_view(&text), "artifact_json_get",
                    "{\"path\":\"$[?$[?@.x || $[?@.y]]]\"}", PEG_EHOST);

    CHECK(strncmp(out.ptr, "E_JSON_PATH_LIMIT: ", 19) == 0);
    CHECK(strstr(out.ptr, "more than 20000000 steps"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(render_fits_whatever_buffer_it_is_given)
{
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg__str("[1,2,3,{\"a\":\"bcdefghijklmnopq\"}]"), NULL, &doc, NULL),
              PEG_OK);

    for (size_t max = 0; max < 200; max++) {
        struct peg__buf out = PEG__BUF(max);

        peg__query_render(peg_json_root(doc), &out);
        CHECK(out.len <= max);
        CHECK(out.status == PEG_OK || out.status == PEG_ELIMIT);
        peg__buf_free(&out);
    }
    peg_json_doc_free(doc);
}

/* ---- out of memory
 * --------------------------------------------------------------------------------------- */

static peg_status ask_quietly(const char *text, const char *query, const char *args)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_status status = ask(
        &(struct ask){
            .kind = &peg_artifact_json, .bytes = peg__str(text), .query = query, .args = args},
        &out);

    peg__buf_free(&out);
    return status;
}

TORTURE(lines_of_json_survive_any_allocation_failure)
{
    return ask_quietly(USERS, "artifact_json_keys", "{}");
}

TORTURE(json5_survives_any_allocation_failure)
{
    return ask_quietly("{a:[1,'b',],}", "artifact_json_get", "{\"path\":\"$..*\"}");
}

TORTURE(filter_survives_any_allocation_failure)
{
    return ask_quietly(USERS, "artifact_json_filter", "{\"path\":\"$[?(@ == 'Bob')]\"}");
}

TORTURE(slice_survives_any_allocation_failure)
{
    return ask_quietly(USERS, "artifact_json_slice", "{\"start\":1}");
}
