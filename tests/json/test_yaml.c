/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/yaml.h"

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture: YAML as compact JSON ------------------------------------------------- */

struct got {
    peg_status status;
    peg_error error;
    struct peg__buf json;
};

static struct got read_yaml(peg_str yaml, const peg_json_options *options)
{
    struct got got = {.json = PEG__BUF(1 << 26)};
    peg_json_doc *doc = NULL;

    got.status = peg_yaml_parse(yaml, options, &doc, &got.error);
    if (!got.status) {
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &got.json);
        got.status = got.json.status;
    }
    peg_json_doc_free(doc);
    return got;
}

static void check_read(const char *yaml, const char *expected)
{
    struct got got = read_yaml(peg__str(yaml), NULL);
    const bool is_right = !got.status && peg__str_is(peg__buf_view(&got.json), expected);

    if (!is_right)
        printf("# %s\n# gives %s, expected %s\n", yaml,
               got.status ? got.error.message : got.json.ptr, expected);
    peg__buf_free(&got.json);
    CHECK(is_right);
}

/* `place` is line:column. */
static void check_refused(const char *yaml, const char *code, const char *place)
{
    struct got got = read_yaml(peg__str(yaml), NULL);
    char found[40] = "";
    bool is_right;

    if (got.status)
        snprintf(found, sizeof(found), "%u:%u", got.error.line, got.error.column);
    is_right = got.status && strcmp(got.error.code, code) == 0 && strcmp(found, place) == 0;
    if (!is_right)
        printf("# %s\n# gives %s at %s: %s\n", yaml, got.status ? got.error.code : "a value", found,
               got.status ? got.error.message : got.json.ptr);
    peg__buf_free(&got.json);
    CHECK(is_right);
}

/* Writes a value and reads the text back; the text is what `expected` says, unless NULL, and the
 * same when it is written again. */
static void check_round_trip(const peg_json *value, const char *expected)
{
    peg_json_doc *doc = NULL;
    peg_error error = {.message = ""};
    char *text = NULL;
    char *again = NULL;
    size_t len = 0;
    peg_status status = peg_yaml_write(value, &text, &len, &error);
    bool is_right;

    if (!status)
        status = peg_yaml_parse(
            peg__strn(text, len),
            &(peg_json_options){PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_JSON_DEPTH_MAX}, &doc,
            &error);
    if (!status)
        status = peg_yaml_write(peg_json_root(doc), &again, NULL, &error);
    is_right = !status && peg_json_equal(value, peg_json_root(doc)) && strcmp(text, again) == 0 &&
               (!expected || strcmp(text, expected) == 0);
    if (!is_right)
        printf("# %s\n# written as:\n%s\n", status ? error.message : "not equal", text);
    peg_free(text);
    peg_free(again);
    peg_json_doc_free(doc);
    CHECK(is_right);
}

static void check_written(const char *json, const char *expected)
{
    peg_json_doc *doc;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(json), NULL, &doc, &error), PEG_OK, error);
    check_round_trip(peg_json_root(doc), expected);
    peg_json_doc_free(doc);
}

/* ---- reading ------------------------------------------------------------------------- */

TEST(yaml_reads_the_core_schema_of_1_2)
{
    check_read("[null, Null, NULL, ~]", "[null,null,null,null]");
    check_read("- \n-\n- nUll", "[null,null,\"nUll\"]");
    check_read("[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]");
    check_read("[yes, no, on, off, y, n, Yes, tRUE]",
               "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"Yes\",\"tRUE\"]");
    check_read("[0, 12, -3, +4, 007, 0o17, 0x1F, 0xff, 0o, 0x, 0xg, 0b1, 1_000, 1:30]",
               "[0,12,-3,4,7,15,31,255,\"0o\",\"0x\",\"0xg\",\"0b1\",\"1_000\",\"1:30\"]");
    check_read("[1.5, .5, 5., +.5, -0.0, 1e3, 1.e+3, 12E-2, 00.5, ., e3, 1e, -.]",
               "[1.5,0.5,5.0,0.5,-0.0,1000,1000,0.12,0.5,\".\",\"e3\",\"1e\",\"-.\"]");
    check_read("[-, +, 2024-01-01, <<, =, 1.2.3, \"12\", 'true', '']",
               "[\"-\",\"+\",\"2024-01-01\",\"<<\",\"=\",\"1.2.3\",\"12\",\"true\",\"\"]");
}

TEST(yaml_keeps_numbers_exact)
{
    check_read("[9223372036854775807, 9223372036854775808, 0.1000000000000000000000001]",
               "[9223372036854775807,9223372036854775808,0.1000000000000000000000001]");
    check_read("0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "340282366920938463463374607431768211455");
    check_read("0o2000000000000000000000", "18446744073709551616");
    check_read("0x0000000000000000000000000000000000000000000000000000000000000010", "16");
    check_read("%YAML 1.1\n---\n-0x3B9ACA00", "-1000000000");
}

TEST(yaml_reads_1_1_when_the_directive_says_so)
{
    check_read("%YAML 1.1\n---\n[yes, No, ON, off, y, n, true, ~]",
               "[true,false,true,false,\"y\",\"n\",true,null]");
    check_read("%YAML 1.1\n---\n[0b1010_0111, 0777, +0x_1F, 1_000, 08, 0o17, 0, 00, -0b1]",
               "[167,511,31,1000,\"08\",\"0o17\",0,0,-1]");
    check_read("%YAML 1.1\n---\n[1_0.5_0, .5, 6.8523e+5, 1e3, 1.5e3, 1., 2024-01-01]",
               "[10.50,0.5,685230,\"1e3\",\"1.5e3\",1.0,\"2024-01-01\"]");
    check_read("%YAML 1.2\n---\n[yes, 0777]", "[\"yes\",777]");
    check_refused("%YAML 1.1\n---\na: 190:20:30", "E_YAML_UNSUPPORTED", "3:4");
    check_refused("%YAML 1.1\n---\na: 0:30.5", "E_YAML_UNSUPPORTED", "3:4");
    check_read("%YAML 1.1\n---\n[0:30, 1:60, 12:30x]", "[\"0:30\",\"1:60\",\"12:30x\"]");
}

TEST(yaml_reads_documents_of_every_style)
{
    check_read("a: 1\nb:\n- x\n- y: z\n  w: |\n    two\n    lines\nc: >-\n  folded\n  text\n",
               "{\"a\":1,\"b\":[\"x\",{\"y\":\"z\",\"w\":\"two\\nlines\\n\"}],"
               "\"c\":\"folded text\"}");
    check_read("{\"json\": [1, 2, {\"k\": \"v\"}], 'single': 'it''s'}",
               "{\"json\":[1,2,{\"k\":\"v\"}],\"single\":\"it's\"}");
    check_read("? a\n: b\n? c\n", "{\"a\":\"b\",\"c\":null}");
    check_read("\"\\u00e9\\x41\\0\\U0001F600\"", "\"\xc3\xa9"
                                                 "A\\u0000\xf0\x9f\x98\x80\"");
    check_read("\xef\xbb\xbfkey: v\nother: w\n", "{\"key\":\"v\",\"other\":\"w\"}");
    check_read("--- x\n...\n", "\"x\"");
    check_read("", "null");
    check_read("# only a comment\n", "null");
    check_read("---\n...\n", "null");
}

TEST(yaml_names_members_by_the_text_of_their_key)
{
    check_read("{12: a, 1.50: b, true: c, ~: d, .inf: e, 'q': f, 0x1F: g}",
               "{\"12\":\"a\",\"1.50\":\"b\",\"true\":\"c\",\"~\":\"d\",\".inf\":\"e\","
               "\"q\":\"f\",\"0x1F\":\"g\"}");
    check_read("- &k 12\n- {*k : v}", "[12,{\"12\":\"v\"}]");
    check_read("{&k 12: *k}", "{\"12\":12}");
    check_refused("a: 1\n? [x]\n: 2", "E_YAML_UNSUPPORTED", "2:3");
    check_refused("a: &m {}\n*m : 2", "E_YAML_UNSUPPORTED", "2:1");
}

TEST(yaml_honours_core_tags_and_refuses_others)
{
    check_read("[!!str 12, !!int \"12\", !!float 3, !!bool 'true', !!null '', !!str ]",
               "[\"12\",12,3,true,null,\"\"]");
    check_read("!!map {a: !!seq [1]}", "{\"a\":[1]}");
    check_read("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 1", "\"1\"");
    check_read("!!str a: 1", "{\"a\":1}");
    check_refused("a: !!int x", "E_YAML_UNSUPPORTED", "1:4");
    check_refused("a: !!int 1.5", "E_YAML_UNSUPPORTED", "1:4");
    check_refused("a: !!bool yes", "E_YAML_UNSUPPORTED", "1:4");
    check_refused("- !!binary aGk=", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- !local x", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- !!map [1]", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- !!set {a}", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- !!seq x", "E_YAML_UNSUPPORTED", "1:3");
}

TEST(yaml_follows_aliases)
{
    check_read("a: &x {p: [1, 2]}\nb: *x\nc: [*x, &x 3, *x]",
               "{\"a\":{\"p\":[1,2]},\"b\":{\"p\":[1,2]},\"c\":[{\"p\":[1,2]},3,3]}");
    check_refused("a: *x\nb: &x 1", "E_YAML_SYNTAX", "1:4");
    check_refused("a: &x\n  b: [*x]", "E_YAML_SYNTAX", "2:7");
}

TEST(yaml_merges_in_1_1_only)
{
    check_read("%YAML 1.1\n---\n- &a {p: 1, q: 2}\n- {<<: *a, q: 3, r: 4}\n- {q: 3, <<: *a}\n",
               "[{\"p\":1,\"q\":2},{\"p\":1,\"q\":3,\"r\":4},{\"q\":3,\"p\":1}]");
    check_read("%YAML 1.1\n---\n- &a {p: 1}\n- &b {p: 2, q: 2}\n- {<<: [*a, *b, {r: 3}]}\n",
               "[{\"p\":1},{\"p\":2,\"q\":2},{\"p\":1,\"q\":2,\"r\":3}]");
    check_read("%YAML 1.1\n---\n- &a {p: 1}\n- &b {<<: *a, q: 2}\n- {<<: *b, r: 3}\n",
               "[{\"p\":1},{\"p\":1,\"q\":2},{\"p\":1,\"q\":2,\"r\":3}]");
    check_read("%YAML 1.1\n---\n{\"<<\": 1}", "{\"<<\":1}");
    check_read("- &a {p: 1}\n- {<<: *a}", "[{\"p\":1},{\"<<\":{\"p\":1}}]");
    check_refused("%YAML 1.1\n---\n<<: 1", "E_YAML_SYNTAX", "3:5");
    check_refused("%YAML 1.1\n---\n<<: [{}, 1]", "E_YAML_SYNTAX", "3:10");
}

TEST(yaml_settles_duplicate_keys_by_the_option)
{
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    const peg_json_options first = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_FIRST_WINS};
    struct got got;

    check_read("a: 1\nb: 2\na: 3\n", "{\"b\":2,\"a\":3}");
    got = read_yaml(peg__str("a: 1\nb: 2\n'a': 3\n"), &first);
    CHECK_STR(peg__buf_view(&got.json), "{\"a\":1,\"b\":2}");
    peg__buf_free(&got.json);
    got = read_yaml(peg__str("x:\n  a: 1\n  b: 2\n  a: 3\n"), &refuse);
    CHECK_INT(got.status, PEG_EPARSE);
    CHECK_STR(peg__str(got.error.code), "E_JSON_DUPLICATE_KEY");
    CHECK_INT(got.error.line, 4);
    CHECK_INT(got.error.column, 3);
}

TEST(yaml_settles_duplicates_among_many_keys)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    struct got got;

    for (int i = 0; i < 2000; i++)
        peg__buf_printf(&yaml, "k%d: %d\n", i, i);
    got = read_yaml(peg__buf_view(&yaml), &refuse);
    CHECK_STATUS(got.status, PEG_OK, got.error);
    peg__buf_free(&got.json);
    peg__buf_puts(&yaml, "k7: x\nk7: y\n");
    got = read_yaml(peg__buf_view(&yaml), &refuse);
    CHECK_INT(got.status, PEG_EPARSE);
    CHECK_INT(got.error.line, 2001);
    got = read_yaml(peg__buf_view(&yaml), NULL);
    CHECK_STATUS(got.status, PEG_OK, got.error);
    CHECK(strstr(got.json.ptr, "\"k1999\":1999,\"k7\":\"y\"}"));
    CHECK(!strstr(got.json.ptr, "\"k7\":7"));
    peg__buf_free(&got.json);
    peg__buf_free(&yaml);
}

TEST(yaml_tells_where_the_text_is_wrong)
{
    check_refused("a: [1", "E_YAML_SYNTAX", "1:6");
    check_refused("a: 1\n b: 2", "E_YAML_SYNTAX", "2:3");
    check_refused("\xc3\xa9: 1\n\xc3\xa9\xc3\xa9: @", "E_YAML_SYNTAX", "2:7");
    check_refused("a: \x01", "E_YAML_SYNTAX", "1:4");
    check_refused("a: \xff", "E_YAML_SYNTAX", "1:4");
    check_refused("\"\\ud800\"", "E_YAML_SYNTAX", "1:4");
    check_refused("\xef\xbb\xbf\"\xc3\xa9\": 1\nb: @", "E_YAML_SYNTAX", "2:4");
    check_refused("\xef\xbb\xbf\"a\": 1\nb: \x01", "E_YAML_SYNTAX", "2:4");
    check_refused("a\n---\nb", "E_YAML_UNSUPPORTED", "2:1");
    check_refused("%YAML 3.0\n---\na", "E_YAML_SYNTAX", "1:1");
}

TEST(yaml_refuses_numbers_that_json_has_not)
{
    check_refused("a: .inf", "E_YAML_UNSUPPORTED", "1:4");
    check_refused("- -.INF", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- .nan", "E_YAML_UNSUPPORTED", "1:3");
    check_refused("- !!float .nan", "E_YAML_UNSUPPORTED", "1:3");
    check_read("[.Nan, +.nan, .infinity, '.inf']", "[\".Nan\",\"+.nan\",\".infinity\",\".inf\"]");
}

/* ---- limits ---------------------------------------------------------------------------- */

TEST(yaml_refuses_a_billion_laughs_at_once)
{
    struct peg__buf yaml = PEG__BUF(1 << 16);
    struct got got;

    peg__buf_puts(&yaml, "a0: &a0 lol\n");
    for (int i = 1; i < 60; i++)
        peg__buf_printf(&yaml, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1,
                        i - 1);
    got = read_yaml(peg__buf_view(&yaml), NULL);
    peg__buf_free(&yaml);

    CHECK_INT(got.status, PEG_ELIMIT);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
    CHECK(strstr(got.error.message, "max_bytes"));
    CHECK(got.error.line < 20);
}

TEST(yaml_refuses_merges_that_explode)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    const peg_json_options small = {PEG_JSON_OPTIONS_INIT, .max_bytes = 100000};
    struct got got;

    peg__buf_puts(&yaml, "%YAML 1.1\n---\n- &a {");
    for (int i = 0; i < 100; i++)
        peg__buf_printf(&yaml, "k%d: 0, ", i);
    peg__buf_puts(&yaml, "}\n");
    for (int i = 0; i < 1000; i++)
        peg__buf_puts(&yaml, "- {<<: *a}\n");
    got = read_yaml(peg__buf_view(&yaml), &small);
    peg__buf_free(&yaml);

    CHECK_INT(got.status, PEG_ELIMIT);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
}

TEST(yaml_bounds_text_depth_anchors_and_numbers)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    const peg_json_options shallow = {PEG_JSON_OPTIONS_INIT, .max_depth = 3, .max_number_digits = 5,
                                      .max_exponent = 9};
    struct got got = read_yaml(peg__str("[[[1]]]"), &shallow);

    CHECK_STATUS(got.status, PEG_OK, got.error);
    peg__buf_free(&got.json);
    got = read_yaml(peg__str("[[[[1]]]]"), &shallow);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_DEEP");
    got = read_yaml(peg__str("- &a [1]\n- [*a]\n"), &shallow);
    CHECK_STATUS(got.status, PEG_OK, got.error);
    peg__buf_free(&got.json);
    got = read_yaml(peg__str("- &a [[1]]\n- [*a]\n"), &shallow);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_DEEP");
    CHECK_INT(got.error.line, 2);
    got = read_yaml(peg__str("123456"), &shallow);
    CHECK_INT(got.status, PEG_ELIMIT);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
    got = read_yaml(peg__str("1e10"), &shallow);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
    got = read_yaml(peg__str("abc"), &(peg_json_options){PEG_JSON_OPTIONS_INIT, .max_bytes = 2});
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");

    peg__buf_puts(&yaml, "0x1");
    peg__buf_repeat(&yaml, '0', 2000);
    got = read_yaml(peg__buf_view(&yaml), NULL);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
    peg__buf_clear(&yaml);
    for (int i = 0; i <= PEG_LIMIT_YAML_ANCHORS; i++)
        peg__buf_printf(&yaml, "- &a%d\n", i);
    got = read_yaml(peg__buf_view(&yaml), NULL);
    CHECK_INT(got.status, PEG_ELIMIT);
    CHECK_STR(peg__str(got.error.code), "E_JSON_TOO_LARGE");
    peg__buf_clear(&yaml);
    for (int i = 0; i <= PEG_LIMIT_YAML_TAG_DIRECTIVES; i++)
        peg__buf_printf(&yaml, "%%TAG !a%d! x\n", i);
    got = read_yaml(peg__buf_view(&yaml), NULL);
    CHECK_INT(got.status, PEG_ELIMIT);
    peg__buf_free(&yaml);
}

TEST(yaml_refuses_deep_nesting_of_every_kind)
{
    static const char *const openers[] = {"[", "{a: ", "- ", "? ", "{", "[{a: "};

    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]); i++) {
        struct peg__buf yaml = PEG__BUF(1 << 21);
        struct got got;

        for (int n = 0; n < 100000; n++)
            peg__buf_puts(&yaml, openers[i]);
        got = read_yaml(peg__buf_view(&yaml), NULL);
        peg__buf_free(&yaml);
        CHECK(got.status == PEG_ELIMIT || got.status == PEG_EPARSE);
    }
}

/* ---- writing --------------------------------------------------------------------------- */

TEST(yaml_writes_block_style)
{
    check_written("{\"name\":\"Ada\",\"tags\":[\"a\",\"b\"],\"inner\":{\"x\":1,\"y\":[]},\"e\":{},"
                  "\"list\":[{\"k\":1,\"l\":[2,[3,4]]},[[5]],null],\"t\":true}",
                  "name: Ada\n"
                  "tags:\n"
                  "  - a\n"
                  "  - b\n"
                  "inner:\n"
                  "  x: 1\n"
                  "  \"y\": []\n"
                  "e: {}\n"
                  "list:\n"
                  "  - k: 1\n"
                  "    l:\n"
                  "      - 2\n"
                  "      - - 3\n"
                  "        - 4\n"
                  "  - - - 5\n"
                  "  - null\n"
                  "t: true\n");
    check_written("[]", "[]\n");
    check_written("{}", "{}\n");
    check_written("\"x\"", "x\n");
    check_written("[[],{},[[]]]", "- []\n- {}\n- - []\n");
}

TEST(yaml_quotes_what_a_reader_could_mistake)
{
    static const char *const strings[] = {
        "yes",        "No",       "ON",  "off",  "y",   "N",  "true", "FALSE", "null", "012",
        "1:30",       "1_000",    "1e3", "0x1F", "0o7", "+1", "-1",   ".5",    ".inf", ".NaN",
        "2024-01-01", "12:30:00", "1.5", "~",    "<<",  "=",  "-",    "?",     ":",    "---",
        "...",        "%YAML",    "@a",  "`a",   "&a",  "*a", "!a",   "|",     ">",    "#a",
        "[a",         "{a",       "]",   "}",    ",",   "a:", "a: b", "a #b",  " a",   "a ",
        "0",          "1.2.3",    "- a", "? a",  ": a", "$x", "(x)",
    };

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        char expected[40];
        peg_json_builder *b = peg_json_builder_new();
        peg_json_doc *doc;

        peg_json_add_string(b, peg__str(strings[i]));
        CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
        snprintf(expected, sizeof(expected), "\"%s\"\n", strings[i]);
        check_round_trip(peg_json_root(doc), expected);
        peg_json_doc_free(doc);
    }
}

TEST(yaml_leaves_plain_text_plain)
{
    check_written(
        "[\"Hello, world\",\"a:b\",\"a#b\",\"/usr/bin\",\"it's\",\"_x\",\"\xc3\xa9t\xc3\xa9\","
        "\"x [1] {2}\",\"yesterday\",\"http://a.b/?c=d&e\"]",
        "- Hello, world\n- a:b\n- a#b\n- /usr/bin\n- it's\n- _x\n- \xc3\xa9t\xc3\xa9\n"
        "- x [1] {2}\n- yesterday\n- http://a.b/?c=d&e\n");
    check_written("[\"^\\\\d+$\",\"'a\\\"\"]", "- '^\\d+$'\n- '''a\"'\n");
}

TEST(yaml_writes_lines_as_literal_blocks_where_exact)
{
    check_written("{\"a\":\"x\\ny\\n\",\"b\":\"x\\ny\",\"c\":\"x\\n\\n\\n\",\"d\":\" x\\ny\","
                  "\"e\":\"\\nx\\n\",\"f\":\"\\tx\\n\\ty\",\"g\":\"x\\n\\n  y: #z\\n\"}",
                  "a: |\n  x\n  y\n"
                  "b: |-\n  x\n  y\n"
                  "c: |+\n  x\n\n\n"
                  "d: |2-\n   x\n  y\n"
                  "e: |2\n\n  x\n"
                  "f: |2-\n  \tx\n  \ty\n"
                  "g: |\n  x\n\n    y: #z\n");
    check_written("[\"x\\ny\",{\"k\":[\"x\\n\\n\"]},\"z\"]",
                  "- |-\n  x\n  y\n- k:\n    - |+\n      x\n\n- z\n");
    check_written("\"---\\n...\\n\"", "|\n  ---\n  ...\n");
    check_written("\"\\n\"", "\"\\n\"\n");
    check_written("\"x\\n  \\ny\"", "\"x\\n  \\ny\"\n");
    check_written("\" x\\ny\"", "\" x\\ny\"\n");
    check_written("\"x\\r\\ny\"", "\"x\\r\\ny\"\n");
}

TEST(yaml_escapes_what_is_not_printable)
{
    check_written("\"\\u0000\\u0007\\b\\t\\n\\u001b\\u007f\\u0085\\u00a0\\u2028\\ufeff\\uffff\"",
                  "\"\\x00\\x07\\b\\t\\n\\x1b\\x7f\\x85\xc2\xa0\\u2028\\ufeff\\uffff\"\n");
    check_written("\"\\ud83d\\ude00 \\udbff\\udfff\"", "\"\xf0\x9f\x98\x80 \\U0010ffff\"\n");
}

TEST(yaml_writes_numbers_for_readers_of_either_version)
{
    check_written("[0,-0,-1,1.50,1e400,1E-400,12e300,9223372036854775808]",
                  "- 0\n- -0\n- -1\n- 1.50\n- 1.0e+400\n- 1.0e-400\n- 1.2e+301\n"
                  "- 9223372036854775808\n");
    check_written("[1e10000,-1e-10000,0.00123e-40,120.50e90,0e50,-0e5,1234567890123456789012e99,"
                  "10.0e30,0.0e-30]",
                  NULL);
    check_written("[-120.50e90,0.00123e-40,1234567890123456789012e99]",
                  "- -1.2050e+92\n- 1.23e-43\n- 1.234567890123456789012e+120\n");
}

TEST(yaml_writes_keys_of_any_length_and_content)
{
    struct peg__buf key = PEG__BUF(1 << 16);

    for (size_t len = 980; len < 1040; len++) {
        peg_json_builder *b = peg_json_builder_new();
        peg_json_doc *doc;

        peg__buf_clear(&key);
        peg__buf_repeat(&key, 'k', len);
        peg_json_open_array(b);
        peg_json_open_object(b);
        peg_json_add_key(b, peg__buf_view(&key));
        peg_json_add_string(b, peg__str("x\ny"));
        peg__buf_puts(&key, ": \n");
        peg_json_add_key(b, peg__buf_view(&key));
        peg_json_open_array(b);
        peg_json_add_copy(b, &(peg_json){.kind = PEG_JSON_NULL});
        peg_json_close(b);
        peg_json_close(b);
        peg_json_close(b);
        CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
        check_round_trip(peg_json_root(doc), NULL);
        peg_json_doc_free(doc);
    }
    peg__buf_free(&key);
}

TEST(yaml_writes_deep_values)
{
    static const char *const openers[] = {"[", "{\"a\":", "[{\"a\":"};
    static const char *const closers[] = {"]", "}", "}]"};

    for (size_t i = 0; i < 3; i++) {
        struct peg__buf json = PEG__BUF(1 << 16);
        const peg_json_options deep = {PEG_JSON_OPTIONS_INIT,
                                       .max_depth = PEG_LIMIT_JSON_DEPTH_MAX};
        peg_json_doc *doc;

        for (int n = 0; n < 400; n++)
            peg__buf_puts(&json, openers[i]);
        peg__buf_puts(&json, "1");
        for (int n = 0; n < 400; n++)
            peg__buf_puts(&json, closers[i]);
        CHECK_INT(peg_json_parse(peg__buf_view(&json), &deep, &doc, NULL), PEG_OK);
        check_round_trip(peg_json_root(doc), NULL);
        peg_json_doc_free(doc);
        peg__buf_free(&json);
    }
}

/* ---- read(write(v)) == v, for many v ------------------------------------------------------- */

/* Pieces out of which nasty strings are made. */
static const char *const pieces[] = {
    "a",
    "b ",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r",
    ":",
    ": ",
    " #",
    "#",
    "-",
    "- ",
    "---",
    "...",
    "'",
    "\"",
    "\\",
    "|",
    ">",
    "&",
    "*",
    "!",
    "%",
    "@",
    "`",
    "?",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "0",
    "1",
    "~",
    "yes",
    "null",
    ".",
    "e",
    "+",
    "_",
    "=",
    "<<",
    "\xc2\x85",
    "\xe2\x80\xa8",
    "\xef\xbb\xbf",
    "\xef\xbf\xbf",
    "\xf0\x9f\x98\x80",
    "\xc3\xa9",
    "\x01",
    "\x7f",
    "\xc2\xa0",
    "\xc2\x9f",
    "key: |\n  x",
    "\n ",
    " \n",
    "\n\t",
    "\t\n",
    "\xf4\x8f\xbf\xbf",
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void random_string(uint64_t *state, struct peg__buf *out)
{
    const uint32_t n = next_random(state) % 6;

    peg__buf_clear(out);
    for (uint32_t i = 0; i < n; i++)
        peg__buf_puts(out, pieces[next_random(state) % (sizeof(pieces) / sizeof(pieces[0]))]);
}

static void add_random_scalar(uint64_t *state, struct peg__buf *scratch, peg_json_builder *b)
{
    switch (next_random(state) % 8) {
    case 0:
        peg_json_add_integer(b, (int64_t)next_random(state) - (1 << 30));
        return;
    case 1:
        peg__buf_clear(scratch);
        peg__buf_printf(scratch, "-%u.%ue%d", next_random(state) % 1000, next_random(state),
                        (int)(next_random(state) % 600) - 300);
        peg_json_add_number(b, peg__buf_view(scratch));
        return;
    default:
        random_string(state, scratch);
        peg_json_add_string(b, peg__buf_view(scratch));
    }
}

/* A random walk: opens, closes or adds a scalar, until it has come back to the root. */
static void add_random_tree(uint64_t *state, struct peg__buf *scratch, peg_json_builder *b)
{
    bool is_object[12];
    unsigned n_keys = 0;
    size_t depth = 0;

    do {
        const uint32_t choice = next_random(state) % 8;

        if (depth && choice < 3) {
            peg_json_close(b);
            depth--;
            continue;
        }
        if (depth && is_object[depth - 1]) {
            random_string(state, scratch);
            peg__buf_printf(scratch, "%u", n_keys++); /* so that no name comes twice */
            peg_json_add_key(b, peg__buf_view(scratch));
        }
        if (choice < 6 && depth < 12) {
            is_object[depth] = choice % 2;
            if (is_object[depth++])
                peg_json_open_object(b);
            else
                peg_json_open_array(b);
        } else {
            add_random_scalar(state, scratch, b);
        }
    } while (depth);
}

TEST(yaml_reads_back_every_random_string_in_every_place)
{
    struct peg__buf s = PEG__BUF(1 << 16);
    uint64_t state = 42;

    for (int i = 0; i < 2000; i++) {
        peg_json_builder *b = peg_json_builder_new();
        peg_json_doc *doc;

        random_string(&state, &s);
        peg_json_open_array(b);
        peg_json_add_string(b, peg__buf_view(&s));
        peg_json_open_object(b);
        peg_json_add_key(b, peg__buf_view(&s));
        peg_json_add_string(b, peg__buf_view(&s));
        peg_json_close(b);
        peg_json_close(b);
        CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
        check_round_trip(peg_json_root(doc), NULL);
        check_round_trip(peg_json_root(doc) + 1, NULL); /* as the root */
        peg_json_doc_free(doc);
    }
    peg__buf_free(&s);
}

TEST(yaml_reads_back_every_random_tree)
{
    struct peg__buf scratch = PEG__BUF(1 << 16);
    uint64_t state = 7;

    for (int i = 0; i < 1000; i++) {
        peg_json_builder *b = peg_json_builder_new();
        peg_json_doc *doc;
        peg_error error;

        add_random_tree(&state, &scratch, b);
        CHECK_STATUS(peg_json_builder_finish(b, &doc, &error), PEG_OK, error);
        check_round_trip(peg_json_root(doc), NULL);
        peg_json_doc_free(doc);
    }
    peg__buf_free(&scratch);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(yaml_parse_survives_any_allocation_failure)
{
    struct got got = read_yaml(
        peg__str("%YAML 1.1\n---\n- &a {p: 0x10, q: 1.5}\n- {<<: *a, q: yes, l: [*a, "
                 "\"x\"]}\n"
                 "- {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: 1,"
                 " o: 1, p: 1, q: 1, r: 1, s: 1, a: 2}\n"),
        NULL);

    peg__buf_free(&got.json);
    return got.status;
}

TORTURE(yaml_write_survives_any_allocation_failure)
{
    peg_json_doc *doc = NULL;
    char *text = NULL;
    peg_status status =
        peg_json_parse(peg__str("{\"a\":[[[[[[[[[1e5,\"x\\ny\"]]]]]]]]]}"), NULL, &doc, NULL);

    if (!status)
        status = peg_yaml_write(peg_json_root(doc), &text, NULL, NULL);
    peg_free(text);
    peg_json_doc_free(doc);
    return status;
}
