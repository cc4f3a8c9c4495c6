/* SPDX-License-Identifier: Apache-2.0 */

/* The tables are those of RFC 9535, in its order. Results are written as one JSON array. */

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture: a document, a path, and what the path finds --------------------- */

struct found {
    peg_status status;
    peg_error error;
    struct peg__buf text;
};

static void write_nodes(const peg_json_nodes *nodes, struct peg__buf *out)
{
    peg__buf_putc(out, '[');
    for (size_t i = 0; i < nodes->len; i++) {
        if (i)
            peg__buf_putc(out, ',');
        peg__json_write(nodes->items[i], PEG_JSON_COMPACT, out);
    }
    peg__buf_putc(out, ']');
}

static struct found find_within(const char *json, peg_str expression, size_t max_nodes,
                                size_t max_steps)
{
    struct found f = {.text = PEG__BUF(1 << 20)};
    peg_json_doc *doc = NULL;
    peg_json_path *path = NULL;
    peg_json_nodes nodes = {0};

    f.status = peg_json_parse(peg__str(json), NULL, &doc, &f.error);
    if (!f.status)
        f.status = peg_json_path_new(expression, &path, &f.error);
    if (!f.status)
        f.status =
            peg_json_path_find(path, peg_json_root(doc), max_nodes, max_steps, &nodes, &f.error);
    if (!f.status) {
        write_nodes(&nodes, &f.text);
        f.status = f.text.status;
    }
    peg_free(nodes.items);
    peg_json_path_free(path);
    peg_json_doc_free(doc);
    return f;
}

static struct found find(const char *json, const char *expression)
{
    return find_within(json, peg__str(expression), 0, 0);
}

struct row {
    const char *path;
    const char *expected;
};

static void check_rows(const char *json, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct found f = find(json, rows[i].path);
        const bool is_right = !f.status && peg__str_is(peg__buf_view(&f.text), rows[i].expected);

        if (!is_right)
            printf("# %s gives %s, expected %s\n", rows[i].path,
                   f.status ? f.error.message : f.text.ptr, rows[i].expected);
        peg__buf_free(&f.text);
        CHECK(is_right);
    }
}

#define CHECK_ROWS(json, ...)                                                                      \
    do {                                                                                           \
        const struct row t_rows[] = {__VA_ARGS__};                                                 \
        check_rows(json, t_rows, sizeof(t_rows) / sizeof(t_rows[0]));                              \
    } while (0)

static void check_refused(const char *path, const char *code, size_t offset)
{
    struct found f = find("[]", path);
    const bool is_right = f.status && strcmp(f.error.code, code) == 0 && f.error.offset == offset;

    if (!is_right)
        printf("# %s gives %s at %zu: %s\n", path, f.status ? f.error.code : "no error",
               f.status ? f.error.offset : 0, f.status ? f.error.message : "");
    peg__buf_free(&f.text);
    CHECK(is_right);
}

#define BOOK1                                                                                      \
    "{\"category\":\"reference\",\"author\":\"Nigel Rees\",\"title\":\"Sayings of the Century\","  \
    "\"price\":8.95}"
#define BOOK2                                                                                      \
    "{\"category\":\"fiction\",\"author\":\"Evelyn Waugh\",\"title\":\"Sword of Honour\","         \
    "\"price\":12.99}"
#define BOOK3                                                                                      \
    "{\"category\":\"fiction\",\"author\":\"Herman Melville\",\"title\":\"Moby Dick\","            \
    "\"isbn\":\"0-553-21311-3\",\"price\":8.99}"
#define BOOK4                                                                                      \
    "{\"category\":\"fiction\",\"author\":\"J. R. R. Tolkien\","                                   \
    "\"title\":\"The Lord of the Rings\",\"isbn\":\"0-395-19395-8\",\"price\":22.99}"
#define BICYCLE "{\"color\":\"red\",\"price\":399}"
#define BOOKS "[" BOOK1 "," BOOK2 "," BOOK3 "," BOOK4 "]"
#define STORE "{\"store\":{\"book\":" BOOKS ",\"bicycle\":" BICYCLE "}}"

/* ---- what the RFC shows --------------------------------------------------------- */

TEST(path_answers_the_bookstore_of_section_1_5)
{
    CHECK_ROWS(
        STORE,
        {"$.store.book[*].author",
         "[\"Nigel Rees\",\"Evelyn Waugh\",\"Herman Melville\",\"J. R. R. Tolkien\"]"},
        {"$..author", "[\"Nigel Rees\",\"Evelyn Waugh\",\"Herman Melville\",\"J. R. R. Tolkien\"]"},
        {"$.store.*", "[" BOOKS "," BICYCLE "]"}, {"$.store..price", "[8.95,12.99,8.99,22.99,399]"},
        {"$..book[2]", "[" BOOK3 "]"}, {"$..book[2].author", "[\"Herman Melville\"]"},
        {"$..book[2].publisher", "[]"}, {"$..book[-1]", "[" BOOK4 "]"},
        {"$..book[0,1]", "[" BOOK1 "," BOOK2 "]"}, {"$..book[:2]", "[" BOOK1 "," BOOK2 "]"},
        {"$..book[?@.isbn]", "[" BOOK3 "," BOOK4 "]"},
        {"$..book[?@.price<10]", "[" BOOK1 "," BOOK3 "]"});
}

TEST(path_root_is_the_document)
{
    CHECK_ROWS("{\"k\":\"v\"}", {"$", "[{\"k\":\"v\"}]"});
    CHECK_ROWS("1", {"$", "[1]"}, {"$.a", "[]"}, {"$[0]", "[]"}, {"$..*", "[]"}, {"$[?@]", "[]"},
               {"$[::-1]", "[]"});
}

TEST(path_selects_names_as_section_2_3_1)
{
    CHECK_ROWS("{\"o\":{\"j j\":{\"k.k\":3}},\"'\":{\"@\":2}}", {"$.o['j j']", "[{\"k.k\":3}]"},
               {"$.o['j j']['k.k']", "[3]"}, {"$.o[\"j j\"][\"k.k\"]", "[3]"},
               {"$[\"'\"][\"@\"]", "[2]"}, {"$['\\'']['@']", "[2]"});
}

TEST(path_selects_with_wildcards_as_section_2_3_2)
{
    CHECK_ROWS("{\"o\":{\"j\":1,\"k\":2},\"a\":[5,3]}", {"$[*]", "[{\"j\":1,\"k\":2},[5,3]]"},
               {"$.o[*]", "[1,2]"}, {"$.o[*,*]", "[1,2,1,2]"}, {"$.a[*]", "[5,3]"});
}

TEST(path_selects_indexes_as_section_2_3_3)
{
    CHECK_ROWS("[\"a\",\"b\"]", {"$[1]", "[\"b\"]"}, {"$[-2]", "[\"a\"]"}, {"$[2]", "[]"},
               {"$[-3]", "[]"}, {"$[9007199254740991]", "[]"}, {"$[-9007199254740991]", "[]"});
    CHECK_ROWS("{\"0\":1}", {"$[0]", "[]"}, {"$['0']", "[1]"});
    CHECK_ROWS("[[1],{},[2,3],4]", {"$[2]", "[[2,3]]"}, {"$[-1]", "[4]"});
}

TEST(path_selects_slices_as_section_2_3_4)
{
    CHECK_ROWS("[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]", {"$[1:3]", "[\"b\",\"c\"]"},
               {"$[5:]", "[\"f\",\"g\"]"}, {"$[1:5:2]", "[\"b\",\"d\"]"},
               {"$[5:1:-2]", "[\"f\",\"d\"]"},
               {"$[::-1]", "[\"g\",\"f\",\"e\",\"d\",\"c\",\"b\",\"a\"]"}, {"$[1:3:0]", "[]"},
               {"$[-2:]", "[\"f\",\"g\"]"}, {"$[:-5]", "[\"a\",\"b\"]"},
               {"$[-100:100:3]", "[\"a\",\"d\",\"g\"]"}, {"$[100:-100:-3]", "[\"g\",\"d\",\"a\"]"},
               {"$[3:1]", "[]"}, {"$[1:3:-1]", "[]"}, {"$[ 1 : 5 : 2 ]", "[\"b\",\"d\"]"},
               {"$[:2,5:]", "[\"a\",\"b\",\"f\",\"g\"]"}, {"$[::9007199254740991]", "[\"a\"]"},
               {"$[::-9007199254740991]", "[\"g\"]"});
    CHECK_ROWS("[[1],{\"a\":2},[3,[4]],5]", {"$[::-1]", "[5,[3,[4]],{\"a\":2},[1]]"},
               {"$[2:0:-1]", "[[3,[4]],{\"a\":2}]"}, {"$[1::2]", "[{\"a\":2},5]"});
    CHECK_ROWS("{\"a\":1}", {"$[:]", "[]"}, {"$[::-1]", "[]"});
    CHECK_ROWS("[]", {"$[:]", "[]"}, {"$[::-1]", "[]"});
}

TEST(path_compares_as_section_2_3_5_table_11)
{
    static const struct {
        const char *comparison;
        bool is_true;
    } cases[] = {
        {"$.absent1 == $.absent2", true},
        {"$.absent1 <= $.absent2", true},
        {"$.absent == 'g'", false},
        {"$.absent1 != $.absent2", false},
        {"$.absent != 'g'", true},
        {"1 <= 2", true},
        {"1 > 2", false},
        {"13 == '13'", false},
        {"'a' <= 'b'", true},
        {"'a' > 'b'", false},
        {"$.obj == $.arr", false},
        {"$.obj != $.arr", true},
        {"$.obj == $.obj", true},
        {"$.obj != $.obj", false},
        {"$.arr == $.arr", true},
        {"$.arr != $.arr", false},
        {"$.obj == 17", false},
        {"$.obj != 17", true},
        {"$.obj <= $.arr", false},
        {"$.obj < $.arr", false},
        {"$.obj <= $.obj", true},
        {"$.arr <= $.arr", true},
        {"1 <= $.arr", false},
        {"1 >= $.arr", false},
        {"1 > $.arr", false},
        {"1 < $.arr", false},
        {"true <= true", true},
        {"true > true", false},
        {"null == null", true},
        {"null != false", true},
        {"1 == 1.0", true},
        {"100 == 1e2", true},
        {"0 == -0", true},
        {"9007199254740993 == 9007199254740992", false},
        {"0.1 == 0.10000000000000000001", false},
        {"'a' < 'ab'", true},
        {"'' < 'a'", true},
        {"'\\uFFFD' < '\\uD83D\\uDE00'", true}, /* by code point, not by UTF-16 unit */
        {"@.x == 1", true},
        {"@['x'] >= 1", true},
        {"$ == @", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[120];

        snprintf(path, sizeof(path), "$.arr[0:1][?%s]", cases[i].comparison);
        CHECK_ROWS("{\"obj\":{\"x\":\"y\"},\"arr\":[[{\"x\":1}],3]}",
                   {path, cases[i].is_true ? "[{\"x\":1}]" : "[]"});
    }
}

#define FILTERED                                                                                   \
    "{\"a\":[3,5,1,2,4,6,{\"b\":\"j\"},{\"b\":\"k\"},{\"b\":{}},{\"b\":\"kilo\"}],"                \
    "\"o\":{\"p\":1,\"q\":2,\"r\":3,\"s\":5,\"t\":{\"u\":6}},\"e\":\"f\"}"

TEST(path_filters_as_section_2_3_5_table_12)
{
    CHECK_ROWS(
        FILTERED, {"$.a[?@.b == 'kilo']", "[{\"b\":\"kilo\"}]"},
        {"$.a[?(@.b == 'kilo')]", "[{\"b\":\"kilo\"}]"}, {"$.a[?@>3.5]", "[5,4,6]"},
        {"$.a[?@.b]", "[{\"b\":\"j\"},{\"b\":\"k\"},{\"b\":{}},{\"b\":\"kilo\"}]"},
        {"$[?@.*]", "[[3,5,1,2,4,6,{\"b\":\"j\"},{\"b\":\"k\"},{\"b\":{}},{\"b\":\"kilo\"}],"
                    "{\"p\":1,\"q\":2,\"r\":3,\"s\":5,\"t\":{\"u\":6}}]"},
        {"$[?@[?@.b]]", "[[3,5,1,2,4,6,{\"b\":\"j\"},{\"b\":\"k\"},{\"b\":{}},{\"b\":\"kilo\"}]]"},
        {"$.o[?@<3, ?@<3]", "[1,2,1,2]"}, {"$.a[?@<2 || @.b == \"k\"]", "[1,{\"b\":\"k\"}]"},
        {"$.o[?@>1 && @<4]", "[2,3]"}, {"$.o[?@.u || @.x]", "[{\"u\":6}]"},
        {"$.a[?@.b == $.x]", "[3,5,1,2,4,6]"},
        {"$.a[?@ == @]", "[3,5,1,2,4,6,{\"b\":\"j\"},{\"b\":\"k\"},{\"b\":{}},{\"b\":\"kilo\"}]"});
}

TEST(path_filters_with_not_and_parentheses)
{
    CHECK_ROWS("[{\"a\":1},{\"b\":2},{\"a\":3,\"b\":4},5]", {"$[?!@.a]", "[{\"b\":2},5]"},
               {"$[?!(@.a || @.b)]", "[5]"}, {"$[?! ( @.a == 1 ) && @.a]", "[{\"a\":3,\"b\":4}]"},
               {"$[?@.a || @.b && @.a]", "[{\"a\":1},{\"a\":3,\"b\":4}]"},
               {"$[?(@.a || @.b) && @.a]", "[{\"a\":1},{\"a\":3,\"b\":4}]"},
               {"$[?((((@.b))))].b", "[2,4]"}, {"$[?@.a,?@.b].a", "[1,3,3]"},
               {"$[?$[?@.b == 2]].b", "[2,4]"}, {"$[?@..a]", "[{\"a\":1},{\"a\":3,\"b\":4}]"},
               {"$[?@[?@ > 3]]", "[{\"a\":3,\"b\":4}]"}, {"$[?@.a==null]", "[]"});
    CHECK_ROWS("[{\"a\":null},{}]", {"$[?@.a == null]", "[{\"a\":null}]"},
               {"$[?@.a]", "[{\"a\":null}]"}, {"$[?!@.a]", "[{}]"});
}

TEST(path_descends_as_section_2_5_2)
{
    CHECK_ROWS("{\"o\":{\"j\":1,\"k\":2},\"a\":[5,3,[{\"j\":4},{\"k\":6}]]}", {"$..j", "[1,4]"},
               {"$..[0]", "[5,{\"j\":4}]"},
               {"$..*", "[{\"j\":1,\"k\":2},[5,3,[{\"j\":4},{\"k\":6}]],1,2,5,3,[{\"j\":4},"
                        "{\"k\":6}],{\"j\":4},{\"k\":6},4,6]"},
               {"$..o", "[{\"j\":1,\"k\":2}]"}, {"$.o..[*, *]", "[1,2,1,2]"},
               {"$.a..[0, 1]", "[5,3,{\"j\":4},{\"k\":6}]"}, {"$..[?@.j]..*", "[1,2,4]"},
               {"$..[::-1].k", "[6]"});
}

TEST(path_tells_null_from_nothing_as_section_2_6)
{
    CHECK_ROWS("{\"a\":null,\"b\":[null],\"c\":[{}],\"null\":1}", {"$.a", "[null]"},
               {"$.a[0]", "[]"}, {"$.a.d", "[]"}, {"$.b[0]", "[null]"}, {"$.b[*]", "[null]"},
               {"$.b[?@]", "[null]"}, {"$.b[?@==null]", "[null]"}, {"$.c[?@.d==null]", "[]"},
               {"$.null", "[1]"});
}

TEST(path_allows_blanks_between_segments_and_selectors)
{
    CHECK_ROWS("{\"a\":{\"b\":[1,2]}}", {"$ .a\n.b\t[ 0 , 1 ]", "[1,2]"},
               {"$ ..b [ ? @ >\r1 ]", "[2]"});
}

TEST(path_reads_names_in_any_script_and_every_escape)
{
    CHECK_ROWS("{\"\xe2\x98\xba\":1,\"\\u0000\\b\\f\\n\\r\\t/\\\\\\\"'\":2,\"\\uD83D\\uDE00\":3}",
               {"$.\xe2\x98\xba", "[1]"}, {"$['\\u263A', \"\\u263a\"]", "[1,1]"},
               {"$['\\u0000\\b\\f\\n\\r\\t\\/\\\\\"\\'']", "[2]"},
               {"$[\"\\u0000\\b\\f\\n\\r\\t/\\\\\\\"'\"]", "[2]"}, {"$['\\ud83d\\ude00']", "[3]"},
               {"$['\xf0\x9f\x98\x80']", "[3]"});
}

/* ---- what is refused ------------------------------------------------------------ */

TEST(path_refuses_what_the_grammar_has_not)
{
    static const struct {
        const char *path;
        size_t offset;
    } cases[] = {
        {"", 0},
        {" $", 0},
        {"$ ", 1},
        {"a", 0},
        {"@", 0},
        {"$.", 2},
        {"$..", 3},
        {"$...a", 3},
        {"$.1", 2},
        {"$. a", 2},
        {"$.. a", 3},
        {"$a", 1},
        {"$.a-b", 3},
        {"$.'a'", 2},
        {"$[]", 2},
        {"$[0", 3},
        {"$[0,]", 4},
        {"$[,0]", 2},
        {"$[01]", 2},
        {"$[-0]", 2},
        {"$[+1]", 2},
        {"$[1.0]", 3},
        {"$[1e0]", 3},
        {"$[a]", 2},
        {"$[9007199254740992]", 2},
        {"$[-9007199254740992]", 2},
        {"$[1:2:3:4]", 7},
        {"$[1:01]", 4},
        {"$['a]", 5},
        {"$['a\"]", 6},
        {"$['\\x']", 3},
        {"$['\\\"']", 3},
        {"$[\"\\'\"]", 3},
        {"$['\\ud800']", 3},
        {"$['\\udc00']", 3},
        {"$['\\ud800\\u0041']", 3},
        {"$['\\u12']", 3},
        {"$['\t']", 3},
        {"$[?]", 3},
        {"$[?true]", 7},
        {"$[?1]", 4},
        {"$[?'a']", 6},
        {"$[?@.a=1]", 6},
        {"$[?@.a==]", 8},
        {"$[?@.a==01]", 8},
        {"$[?@.a==.5]", 8},
        {"$[?@.a==1.]", 8},
        {"$[?@.a==True]", 8},
        {"$[?@.a && ]", 10},
        {"$[?@.a &]", 7},
        {"$[?(@.a]", 7},
        {"$[?@.a)]", 6},
        {"$[?!@.a==1]", 4},
        {"$[?@.*==1]", 3},
        {"$[?1==@..a]", 6},
        {"$[?@[0,1]==1]", 3},
        {"$[?@[0:1]==1]", 3},
        {"$[?@[?@]==1]", 3},
        {"$[?1==2==3]", 7},
        {"$[?!!@.a]", 4},
        {"$.a$", 3},
        {"$[?@.a==[1]]", 8},
        {"$['a'", 5},
        {"$[?@ .. a]", 7},
        {"$[*", 3},
        {"$.*a", 3},
        {"$[0 1]", 4},
        {"$ [0] ", 5},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cases[i].path, "E_JSON_PATH_SYNTAX", cases[i].offset);
}

TEST(path_refuses_functions_by_name)
{
    struct found f = find("[]", "$[?length(@.a) > 3]");

    CHECK_INT(f.status, PEG_EPARSE);
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_SYNTAX");
    CHECK(strstr(f.error.message, "length()"));
    CHECK_INT(f.error.offset, 3);
    check_refused("$[?1 == count(@.*)]", "E_JSON_PATH_SYNTAX", 8);
    check_refused("$[?!match(@.a, 'b')]", "E_JSON_PATH_SYNTAX", 4);
}

TEST(path_refuses_bytes_that_are_not_utf8_and_takes_no_nul)
{
    struct found f = find("[]", "$['\xff']");

    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_SYNTAX");
    f = find_within("[]", peg__strn("$\0.a", 4), 0, 0);
    CHECK_INT(f.status, PEG_EPARSE);
    f = find_within("[]", peg__strn("$['\0']", 6), 0, 0);
    CHECK_INT(f.status, PEG_EPARSE);
    f = find_within("[]", peg__strn("$[?\0]", 5), 0, 0);
    CHECK_INT(f.status, PEG_EPARSE);
}

/* ---- limits ------------------------------------------------------------------------ */

static struct found find_nested(unsigned depth, const char *open, const char *core,
                                const char *close)
{
    struct peg__buf path = PEG__BUF(PEG_LIMIT_PATH_BYTES * 2);
    struct found f;

    peg__buf_puts(&path, "$[?");
    for (unsigned i = 0; i < depth; i++)
        peg__buf_puts(&path, open);
    peg__buf_puts(&path, core);
    for (unsigned i = 0; i < depth; i++)
        peg__buf_puts(&path, close);
    peg__buf_puts(&path, "]");
    f = find_within("[[]]", peg__buf_view(&path), 0, 0);
    peg__buf_free(&path);
    peg__buf_free(&f.text);
    return f;
}

TEST(path_bounds_the_nesting_of_parentheses_and_filters)
{
    struct found f = find_nested(PEG_LIMIT_PATH_NESTING - 1, "(", "@", ")");

    CHECK_STATUS(f.status, PEG_OK, f.error);
    f = find_nested(PEG_LIMIT_PATH_NESTING, "(", "@", ")");
    CHECK_INT(f.status, PEG_ELIMIT);
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
    f = find_nested(PEG_LIMIT_PATH_NESTING - 1, "@[?", "@", "]");
    CHECK_STATUS(f.status, PEG_OK, f.error);
    f = find_nested(PEG_LIMIT_PATH_NESTING, "@[?", "@", "]");
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
    f = find_nested(1000, "!(", "@", ")");
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
}

TEST(path_bounds_its_length)
{
    struct peg__buf path = PEG__BUF(PEG_LIMIT_PATH_BYTES * 2);
    struct found f;

    peg__buf_puts(&path, "$");
    while (path.len + 2 <= PEG_LIMIT_PATH_BYTES)
        peg__buf_puts(&path, ".a");
    f = find_within("{\"a\":{\"a\":1}}", peg__buf_view(&path), 0, 0);
    CHECK_STATUS(f.status, PEG_OK, f.error);
    peg__buf_free(&f.text);
    peg__buf_puts(&path, ".a");
    f = find_within("[]", peg__buf_view(&path), 0, 0);
    peg__buf_free(&path);

    CHECK_INT(f.status, PEG_ELIMIT);
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
}

TEST(path_stops_at_the_largest_number_of_nodes)
{
    struct found f = find_within("[1,2,3]", peg__str("$[*]"), 3, 0);

    CHECK_INT(f.status, PEG_OK);
    peg__buf_free(&f.text);
    f = find_within("[1,2,3]", peg__str("$[*]"), 2, 0);
    CHECK_INT(f.status, PEG_ELIMIT);
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_NODES");
    CHECK(strstr(f.error.message, "more than 2 nodes"));
}

TEST(path_stops_at_the_largest_number_of_steps)
{
    struct found f = find_within("[[1,2],[3,4],[5,6]]", peg__str("$..*"), 0, 8);

    CHECK_INT(f.status, PEG_ELIMIT);
    CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
    CHECK(strstr(f.error.message, "more than 8 steps"));
}

/* Each of these would take 10^9 steps or more without the limit. */
TEST(path_refuses_explosions_in_time)
{
    static const char *const paths[] = {
        "$..*..*..*..*..*..*..*..*",
        "$..[?@..[?@..[?@..[?@..[?@.no]]]]]",
        "$[?$[?$[?$[?$[?$ == 1]]]]]",
        "$..[?$ == $ && $.none]",
        "$[*,*,*,*,*,*,*,*][*,*,*,*,*,*,*,*][*,*,*,*,*,*,*,*][?@ == 'no']",
    };
    struct peg__buf json = PEG__BUF(1 << 20);

    peg__buf_putc(&json, '[');
    for (int i = 0; i < 1000; i++)
        peg__buf_puts(&json, i ? ",[[[0,1,2,3],[4,5,6,7]]]" : "[[[0,1,2,3],[4,5,6,7]]]");
    peg__buf_putc(&json, ',');
    peg__buf_repeat(&json, '[', 100);
    peg__buf_repeat(&json, ']', 101);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct found f = find_within(json.ptr, peg__str(paths[i]), SIZE_MAX, 0);

        if (f.status != PEG_ELIMIT)
            printf("# %s\n", paths[i]);
        CHECK_INT(f.status, PEG_ELIMIT);
        CHECK_STR(peg__str(f.error.code), "E_JSON_PATH_LIMIT");
    }
    peg__buf_free(&json);
}

TORTURE(path_survives_any_allocation_failure)
{
    struct found f = find("[[{\"a\":[1]},[2],\"x\"],[3]]",
                          "$..[?@.a[0] == 1 || !(@['b\\n'] > 'c' && $..a), ::-1, 0:1]");

    peg__buf_free(&f.text);
    return f.status;
}
