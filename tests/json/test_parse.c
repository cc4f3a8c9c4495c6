/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/json.h"
#include "json/json.h"

/* ---- fixture --------------------------------------------------------------- */

static peg_json_doc *parsed(const char *text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(text), NULL, &doc, &error), PEG_OK, error);
    return doc;
}

static peg_error refused(const char *text, const peg_json_options *options)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_parse(peg__str(text), options, &doc, &error) == PEG_OK)
        T_FAIL("%s was accepted", text);
    CHECK(!doc);
    return error;
}

static void check_string(const char *text, const char *expected)
{
    peg_json_doc *doc = parsed(text);

    CHECK_INT(peg_json_root(doc)->kind, PEG_JSON_STRING);
    CHECK_STR(peg_json_str(peg_json_root(doc)), expected);
    CHECK_INT(peg_json_root(doc)->u.ptr[peg_json_root(doc)->len], 0);
    peg_json_doc_free(doc);
}

/* ---- values ---------------------------------------------------------------- */

TEST(parse_lays_values_out_in_the_order_of_the_text)
{
    peg_json_doc *doc = parsed(" { \"a\" : [ 1 , true, null ] ,\n\t\"b\": {} } ");
    const peg_json *v = peg_json_root(doc);

    CHECK_INT(v[0].kind, PEG_JSON_OBJECT);
    CHECK_INT(v[0].len, 2);
    CHECK_INT(v[0].u.extent, 8);
    CHECK_STR(peg_json_str(&v[1]), "a");
    CHECK_INT(v[2].kind, PEG_JSON_ARRAY);
    CHECK_INT(v[2].len, 3);
    CHECK_INT(v[2].u.extent, 4);
    CHECK_INT(v[3].u.number, 1);
    CHECK(peg_json_is_true(&v[4]));
    CHECK_INT(v[5].kind, PEG_JSON_NULL);
    CHECK_STR(peg_json_str(&v[6]), "b");
    CHECK_INT(v[7].kind, PEG_JSON_OBJECT);
    CHECK_INT(v[7].len, 0);
    CHECK_INT(v[7].u.extent, 1);
    peg_json_doc_free(doc);
}

TEST(parse_unescapes_strings)
{
    check_string("\"\"", "");
    check_string("\"plain\"", "plain");
    check_string("\"a string that is longer than sixteen bytes\"",
                 "a string that is longer than sixteen bytes");
    check_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    check_string("\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00!\"",
                 "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80!");
    check_string("\"\xC3\xA4 then plain text, \\n then more of it\"",
                 "\xC3\xA4 then plain text, \n then more of it");
}

TEST(parse_keeps_a_nul_inside_a_string)
{
    peg_json_doc *doc = parsed("\"a\\u0000b\"");

    CHECK_INT(peg_json_root(doc)->len, 3);
    CHECK(memcmp(peg_json_root(doc)->u.ptr, "a\0b", 3) == 0);
    peg_json_doc_free(doc);
}

TEST(parse_holds_numbers_exactly)
{
    peg_json_doc *doc = parsed("[0,-1,999999999999999999,9223372036854775807,-9223372036854775808,"
                               "9223372036854775808,1.50,-2e3,25E-1,-0,-0.0,"
                               "0.12345678901234567890,1e9999]");
    const peg_json *v = peg_json_root(doc) + 1;

    CHECK_INT(v[0].u.number, 0);
    CHECK_INT(v[1].u.number, -1);
    CHECK_INT(v[2].u.number, 999999999999999999);
    CHECK_INT(v[3].kind, PEG_JSON_INTEGER);
    CHECK_INT(v[3].u.number, INT64_MAX);
    CHECK_INT(v[4].kind, PEG_JSON_INTEGER);
    CHECK_INT(v[4].u.number, INT64_MIN);
    CHECK_INT(v[5].kind, PEG_JSON_DECIMAL);
    CHECK_INT(v[5].form, PEG_JSON_FORM_TEXT);
    CHECK_INT(v[6].u.number, 150);
    CHECK_INT(v[6].exponent, -2);
    CHECK_INT(v[7].u.number, -2);
    CHECK_INT(v[7].exponent, 3);
    CHECK_INT(v[8].u.number, 25);
    CHECK_INT(v[8].exponent, -1);
    CHECK_INT(v[9].form, PEG_JSON_FORM_MINUS0);
    CHECK_INT(v[10].form, PEG_JSON_FORM_MINUS0);
    CHECK_INT(v[11].form, PEG_JSON_FORM_TEXT);
    CHECK_INT(v[12].kind, PEG_JSON_DECIMAL);
    peg_json_doc_free(doc);
}

/* ---- errors ---------------------------------------------------------------- */

TEST(parse_tells_the_place_of_an_error)
{
    const peg_error error = refused("{\n  \"a\": 1,\n  \"b\" 2\n}", NULL);

    CHECK_STR(peg__str(error.code), "E_JSON_SYNTAX");
    CHECK_INT(error.offset, 18);
    CHECK_INT(error.line, 3);
    CHECK_INT(error.column, 7);
    CHECK_STR(peg__str(error.message), "expected ':' after the member's name");
}

TEST(parse_refuses_what_is_not_json)
{
    static const char *const texts[] = {
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{1:2}",
        "[1}",
        "{\"a\":1]",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "tru",
        "nul",
        "falsy",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\n\"",
        "[1 2]",
        "1 2",
        "\"a\" b",
        "// c\n1",
        "[1,,2]",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "-01",
        "1.e3",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK_INT(refused(texts[i], NULL).status, PEG_EPARSE);
}

TEST(parse_says_that_a_text_ends_too_early)
{
    const peg_error error = refused("{\"a\": \"b", NULL);

    CHECK_STR(peg__str(error.message), "the text ends in the middle of a value");
    CHECK_INT(error.offset, 8);
}

TEST(parse_refuses_bytes_that_are_no_utf8)
{
    static const char *const texts[] = {"\"\xFF\"",
                                        "\"\xC0\x80\"",
                                        "\"\xED\xA0\x80\"",
                                        "\"\xE2\x82\"",
                                        "\"\xF4\x90\x80\x80\"",
                                        "\"\x80\"",
                                        "\"\xF0\x80\x80\x80\""};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK_STR(peg__str(refused(texts[i], NULL).code), "E_JSON_UTF8");
}

/* ---- limits ---------------------------------------------------------------- */

TEST(parse_names_the_limit_that_was_reached)
{
    const peg_json_options small = {PEG_JSON_OPTIONS_INIT, .max_bytes = 8, .max_depth = 2,
                                    .max_number_digits = 3};

    CHECK_STR(peg__str(refused("[1,2,3,4]", &small).code), "E_JSON_TOO_LARGE");
    CHECK_STR(peg__str(refused("[[[1]]]", &small).code), "E_JSON_TOO_DEEP");
    CHECK_STR(peg__str(refused("1e99999", NULL).code), "E_JSON_TOO_LARGE");
    CHECK_STR(peg__str(refused("1234", &small).code), "E_JSON_TOO_LARGE");
    CHECK_STR(peg__str(refused("12.34", &small).code), "E_JSON_TOO_LARGE");
    CHECK_INT(refused("[[[1]]]", &small).status, PEG_ELIMIT);
}

TEST(parse_accepts_nesting_up_to_the_largest_limit)
{
    static char text[2 * 4096 + 1];
    const peg_json_options deep = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc;

    memset(text, '[', 4096);
    memset(text + 4096, ']', 4096);
    CHECK_INT(peg_json_parse(peg__strn(text, 8192), &deep, &doc, NULL), PEG_OK);

    CHECK_INT(peg_json_root(doc)->u.extent, 4096);
    peg_json_doc_free(doc);
}

/* ---- duplicate members ------------------------------------------------------ */

static const char twice[] = "{\"a\":[1,{\"x\":1,\"x\":2}],\"b\":2,\"a\":3,\"c\":{\"d\":4}}";

TEST(parse_lets_the_last_duplicate_win_by_default)
{
    peg_json_doc *doc = parsed(twice);
    const peg_json *v = peg_json_root(doc);

    CHECK_INT(v->len, 3);
    CHECK_INT(v->u.extent, 9);
    CHECK_STR(peg_json_str(&v[1]), "b");
    CHECK_STR(peg_json_str(&v[3]), "a");
    CHECK_INT(v[4].u.number, 3);
    CHECK_STR(peg_json_str(&v[5]), "c");
    CHECK_INT(v[6].u.extent, 3);
    peg_json_doc_free(doc);
}

TEST(parse_can_let_the_first_duplicate_win)
{
    const peg_json_options first = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_FIRST_WINS};
    peg_json_doc *doc;
    const peg_json *v;

    CHECK_INT(peg_json_parse(peg__str(twice), &first, &doc, NULL), PEG_OK);

    v = peg_json_root(doc);
    CHECK_INT(v->len, 3);
    CHECK_STR(peg_json_str(&v[1]), "a");
    CHECK_INT(v[2].kind, PEG_JSON_ARRAY);
    CHECK_INT(v[2].u.extent, 5);
    CHECK_INT(v[4].len, 1);
    CHECK_INT(v[6].u.number, 1);
    peg_json_doc_free(doc);
}

TEST(parse_can_refuse_duplicates)
{
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    const peg_error error = refused("{\"a\":1,\"\\u0061\":2}", &refuse);

    CHECK_STR(peg__str(error.code), "E_JSON_DUPLICATE_KEY");
    CHECK_INT(error.offset, 7);
}

TEST(parse_tells_which_member_comes_twice)
{
    static const struct {
        const char *text, *where;
    } cases[] = {
        {"{\"k\":\"evil\",\"k\":\"safe\"}", "/k"},
        {"{\"k\":1,\"\\u006b\":2}", "/k"},
        {"[0,[],{\"a\":{\"b\":[{\"c\":1},{\"c\":1,\"d\":2,\"c\":3}]}}]", "/2/a/b/1/c"},
        {"{\"x\":{\"a~/b\":1,\"y\":{},\"a~\\/b\":2}}", "/x/a~0~1b"},
        {"{\"\":1,\"\":2}", "/"},
        {"{\"o\":{\"0\":0,\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,"
         "\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":{\"z\":[]},\"7\":7}}",
         "/o/7"},
    };
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const peg_error error = refused(cases[i].text, &refuse);

        CHECK_STR(peg__str(error.code), "E_JSON_DUPLICATE_KEY");
        CHECK_STR(peg__str(error.where), cases[i].where);
        CHECK(strncmp(error.message, cases[i].where, strlen(cases[i].where)) == 0);
        CHECK(strstr(error.message, "keep one of them"));
    }
}

TEST(parse_cuts_the_pointer_to_a_member_that_comes_twice)
{
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    char name[400] = "";
    char text[1000];
    peg_error error;

    for (size_t i = 0; i < 100; i++)
        strcat(name, "\u00fc");
    snprintf(text, sizeof(text), "{\"%s\":1,\"%s\":2}", name, name);
    error = refused(text, &refuse);

    CHECK_INT(strlen(error.where), sizeof(error.where) - 1);
    CHECK(peg__utf8_is_valid(peg__str(error.where)));
    CHECK(strncmp(error.where + 1, name, strlen(error.where) - 1) == 0);
}

static size_t write_members(char *text, size_t n, size_t repeated)
{
    size_t len = 0;

    text[len++] = '{';
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%s\"member%zu\":%zu", i ? "," : "",
                               i == n - 1 ? repeated : i, i);
    text[len++] = '}';
    return len;
}

TEST(parse_finds_a_duplicate_among_many_members)
{
    static char text[100000];
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};

    for (size_t n = 2; n < 3000; n = n * 2 + 1) {
        peg_json_doc *doc = NULL;

        CHECK_INT(
            peg_json_parse(peg__strn(text, write_members(text, n, n / 3)), &refuse, &doc, NULL),
            PEG_EPARSE);
        CHECK_INT(
            peg_json_parse(peg__strn(text, write_members(text, n, n - 1)), &refuse, &doc, NULL),
            PEG_OK);
        CHECK_INT(peg_json_root(doc)->len, n);
        peg_json_doc_free(doc);
        CHECK_INT(peg_json_parse(peg__strn(text, write_members(text, n, n / 3)), NULL, &doc, NULL),
                  PEG_OK);
        CHECK_INT(peg_json_root(doc)->len, n - 1);
        peg_json_doc_free(doc);
    }
}

/* ---- reuse ------------------------------------------------------------------ */

TEST(reparse_uses_the_memory_of_the_document)
{
    peg_json_doc *doc = parsed("[1,2,3,4,5,6,7,8,9,10,11,12]");
    const size_t bytes = peg_json_doc_bytes(doc);

    CHECK_INT(peg_json_reparse(doc, peg__str("{\"a\":1}"), NULL, NULL), PEG_OK);

    CHECK_INT(peg_json_doc_bytes(doc), bytes);
    CHECK_INT(peg_json_root(doc)->kind, PEG_JSON_OBJECT);
    peg_json_doc_free(doc);
}

TEST(reparse_leaves_null_after_a_failure)
{
    peg_json_doc *doc = parsed("[1,2,3]");

    CHECK_INT(peg_json_reparse(doc, peg__str("[4,"), NULL, NULL), PEG_EPARSE);

    CHECK_INT(peg_json_root(doc)->kind, PEG_JSON_NULL);
    peg_json_doc_free(doc);
}

/* ---- memory ----------------------------------------------------------------- */

/* Bytes held for each hundred of a text, if a document of it is kept. */
static size_t held_for(const char *text, size_t len)
{
    peg_json_doc *doc = NULL;
    size_t bytes;

    CHECK_INT(peg_json_parse(peg__strn(text, len), NULL, &doc, NULL), PEG_OK);
    bytes = peg_json_doc_bytes(doc);
    peg_json_doc_free(doc);
    return bytes * 100 / len;
}

TEST(a_kept_document_holds_at_most_four_and_a_half_bytes_a_byte)
{
    static const char call[] =
        "{\"id\":\"chatcmpl-84b1\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":null,\"tool_calls\":[{\"id\":\"call_5f\",\"type\":\"function\",\"function\":{"
        "\"name\":\"search\",\"arguments\":\"{\\\"query\\\":\\\"caf\xC3\xA9 in Z\xC3\xBCrich\\\","
        "\\\"limit\\\":10,\\\"exact\\\":true}\"}}]},\"finish_reason\":\"tool_calls\"}]}";
    static const char manifest[] =
        "{\n  \"name\": \"a-package\",\n  \"version\": \"1.2.3\",\n  \"dependencies\": {\n"
        "    \"left-pad\": \"^1.3.0\",\n    \"is-odd\": \"~3.0.1\"\n  },\n  \"files\": [\n"
        "    \"lib\",\n    \"README.md\"\n  ],\n  \"engines\": {\n    \"node\": \">=18\"\n  }\n}\n";
    static char members[100000];

    CHECK(held_for(call, sizeof(call) - 1) <= 450);
    CHECK(held_for(manifest, sizeof(manifest) - 1) <= 450);
    /* Several windows, growing: 2,000 members of some 20 bytes. */
    CHECK(held_for(members, write_members(members, 2000, 1999)) <= 450);
}

/* ---- torture ---------------------------------------------------------------- */

TORTURE(parse_survives_any_allocation_failure)
{
    static char text[100000];
    const size_t len = write_members(text, 3000, 7);
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(peg__strn(text, len), NULL, &doc, NULL);

    peg_json_doc_free(doc);
    return status;
}
