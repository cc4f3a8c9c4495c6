/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"

/* ---- fixture: a text and the compact JSON that it means ------------------------------------- */

static peg_error error;

/* The JSON of a JSON5 text, or the code of the error. Free with peg_free(). */
static char *read_bytes(peg_str text, const peg_json_options *options)
{
    struct peg__buf out = PEG__BUF(1 << 20);
    peg_json_doc *doc = NULL;

    if (peg__json5_parse(text, options, &doc, &error) == PEG_OK)
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &out);
    else
        peg__buf_puts(&out, error.code);
    peg_json_doc_free(doc);
    return out.ptr;
}

#define CHECK_READS_WITH(text, options, expected)                                                  \
    do {                                                                                           \
        char *t_json = read_bytes(text, options);                                                  \
        char t_shown[4096];                                                                        \
        snprintf(t_shown, sizeof(t_shown), "%s", t_json);                                          \
        peg_free(t_json);                                                                          \
        CHECK_STR(peg__str(t_shown), expected);                                                    \
    } while (0)
#define CHECK_READS(text, expected) CHECK_READS_WITH(peg__str(text), NULL, expected)

/* Refused with this code, at this byte. */
#define CHECK_REFUSES(text, code, at)                                                              \
    do {                                                                                           \
        CHECK_READS(text, code);                                                                   \
        CHECK_INT(error.offset, at);                                                               \
    } while (0)

/* ---- what JSON5 adds ---------------------------------------------------------------------------
 */

TEST(json5_reads_the_example_of_its_specification)
{
    CHECK_READS("{\n"
                "  // comments\n"
                "  unquoted: 'and you can quote me on that',\n"
                "  singleQuotes: 'I can use \"double quotes\" here',\n"
                "  lineBreaks: \"Look, Mom! \\\n"
                "No \\\\n's!\",\n"
                "  hexadecimal: 0xdecaf,\n"
                "  leadingDecimalPoint: .8675309, andTrailing: 8675309.,\n"
                "  positiveSign: +1,\n"
                "  trailingComma: 'in objects', andIn: ['arrays',],\n"
                "  \"backwardsCompatible\": \"with JSON\",\n"
                "}\n",
                "{\"unquoted\":\"and you can quote me on that\","
                "\"singleQuotes\":\"I can use \\\"double quotes\\\" here\","
                "\"lineBreaks\":\"Look, Mom! No \\\\n's!\","
                "\"hexadecimal\":912559,"
                "\"leadingDecimalPoint\":0.8675309,\"andTrailing\":8675309.0,"
                "\"positiveSign\":1,"
                "\"trailingComma\":\"in objects\",\"andIn\":[\"arrays\"],"
                "\"backwardsCompatible\":\"with JSON\"}");
}

TEST(json5_reads_what_is_json)
{
    CHECK_READS("null", "null");
    CHECK_READS("[true,false,null,0,-1.5e3,\"a\\u00e9\\n\",{\"a\":{}},[]]",
                "[true,false,null,0,-1500,\"aé\\n\",{\"a\":{}},[]]");
}

TEST(json5_skips_comments_and_every_kind_of_space)
{
    CHECK_READS("/**/ 1 // end", "1");
    CHECK_READS("/* a * b ** / c **/[/* , */1/**/,//]\n2]", "[1,2]");
    CHECK_READS("// one\r1", "1");
    CHECK_READS("// one\u20281", "1");
    CHECK_READS("// one\u20291", "1");
    CHECK_READS("\t\v\f \u00A0\uFEFF\u1680\u2000\u200A\u202F\u205F\u3000\u2028\u2029\r\n1", "1");
}

TEST(json5_allows_one_trailing_comma_behind_a_member_or_item)
{
    CHECK_READS("[1,]", "[1]");
    CHECK_READS("{a:1, }", "{\"a\":1}");
    CHECK_READS("[[1,],{a:[],},]", "[[1],{\"a\":[]}]");
    CHECK_REFUSES("[,]", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("[1,,]", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("{,}", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("{a:,}", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("1,", "E_JSON_SYNTAX", 1);
}

TEST(json5_takes_names_without_quotes)
{
    CHECK_READS("{a:1,$:2,_b9:3,null:4,Infinity:5,'q r':6}",
                "{\"a\":1,\"$\":2,\"_b9\":3,\"null\":4,\"Infinity\":5,\"q r\":6}");
    CHECK_READS("{ünïcödé:1,日本:2,a\u0301\u200D:3,\u2160x:4}",
                "{\"ünïcödé\":1,\"日本\":2,\"a\u0301\u200D\":3,\"\u2160x\":4}");
    CHECK_READS("{\\u0061b\\u0063:1,x\\u00e9:2}", "{\"abc\":1,\"xé\":2}");
    CHECK_READS("{a\u00A0:1}", "{\"a\":1}");
}

TEST(json5_refuses_what_is_no_name)
{
    CHECK_REFUSES("{ 1a:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ a-b:1}", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("{ \u0301a:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ a→b:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ \\u0031:1}", "E_JSON_SYNTAX", 2); /* an escaped digit is a digit */
    CHECK_REFUSES("{ \\u002d:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ a\\u12:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ a\\ud800:1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{ a\\x61:1}", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("{ [1]:1}", "E_JSON_SYNTAX", 2);
}

TEST(json5_reads_strings_in_either_quotes)
{
    CHECK_READS("'it\\'s \"so\"'", "\"it's \\\"so\\\"\"");
    CHECK_READS("\"it's \\\"so\\\"\"", "\"it's \\\"so\\\"\"");
    CHECK_READS("'\\\\'", "\"\\\\\"");
    CHECK_READS("''", "\"\"");
    CHECK_READS("'\u2028\u2029'", "\"\u2028\u2029\"");
    CHECK_READS_WITH(peg__strn("'\t\x01\0'", 5), NULL, "\"\\t\\u0001\\u0000\"");
}

TEST(json5_reads_every_escape)
{
    CHECK_READS("'\\b\\f\\n\\r\\t\\v\\0'", "\"\\b\\f\\n\\r\\t\\u000b\\u0000\"");
    CHECK_READS("'\\x41\\xe9\\u263A\\ud83d\\uDE00'", "\"Aé☺😀\"");
    CHECK_READS("'\\a\\/\\-\\é\\\"'", "\"a/-é\\\"\"");
    CHECK_READS("'a\\\nb\\\r\nc\\\rd\\\u2028e\\\u2029f'", "\"abcdef\"");
    CHECK_READS_WITH(peg__strn("'\\\0'", 4), NULL, "\"\\u0000\"");
    CHECK_REFUSES("'ab\\1'", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("'ab\\01'", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("'ab\\x4'", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("'ab\\u12g4'", "E_JSON_SYNTAX", 3);
}

TEST(json5_tells_where_half_a_surrogate_pair_stands)
{
    CHECK_REFUSES("[/* a */ 'b', '\\ud800']", "E_JSON_SYNTAX", 14);
    CHECK(strstr(error.message, "surrogate"));
}

TEST(json5_refuses_strings_that_do_not_end_in_their_line)
{
    CHECK_REFUSES(" 'ab", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES(" 'ab\"", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES(" 'a\nb'", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES(" 'a\rb'", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES(" 'ab\\", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES(" 'ab\\'", "E_JSON_SYNTAX", 1);
}

TEST(json5_reads_numbers_exactly)
{
    CHECK_READS("[+1,-1,+0,-0,.5,-.5,5.,+5.e2,1E+3]", "[1,-1,0,-0,0.5,-0.5,5.0,500,1000]");
    CHECK_READS("[0x0,0XfF,-0x10,+0xA]", "[0,255,-16,10]");
    CHECK_READS("0x7fffffffffffffff", "9223372036854775807");
    CHECK_READS("0x8000000000000000", "9223372036854775808");
    CHECK_READS("-0x123456789abcdef0123456789", "-90144042682896311822508713865");
    CHECK_READS("[1.]", "[1.0]");
}

TEST(json5_refuses_what_is_no_number)
{
    CHECK_REFUSES("[ 01]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ .]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ -.e1]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ 0x]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ 1e]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ 1e+]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ +]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ - 1]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ --1]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ 1a]", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("[ 1.2.3]", "E_JSON_SYNTAX", 5);
    CHECK_REFUSES("[ 0x1.8]", "E_JSON_SYNTAX", 5);
}

TEST(json5_refuses_infinity_and_nan_by_name)
{
    CHECK_REFUSES("[ Infinity]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ -Infinity]", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[ +NaN]", "E_JSON_SYNTAX", 2);
    CHECK_INT(error.status, PEG_EPARSE);
    CHECK(strstr(error.message, "Infinity and NaN"));
}

/* ---- mistakes
 * ------------------------------------------------------------------------------------- */

TEST(json5_refuses_what_is_no_value)
{
    CHECK_REFUSES("", "E_JSON_SYNTAX", 0);
    CHECK_READS_WITH(((peg_str){NULL, 0}), NULL, "E_JSON_SYNTAX");
    CHECK_REFUSES(" // nothing", "E_JSON_SYNTAX", 11);
    CHECK_REFUSES("[undefined]", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("[True]", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("[truex]", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("[-true]", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("[1 2]", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("[1", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[1}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{a:1]", "E_JSON_SYNTAX", 4);
    CHECK_REFUSES("{a 1}", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("{a}", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("{a:}", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("{", "E_JSON_SYNTAX", 1);
    CHECK_REFUSES("]", "E_JSON_SYNTAX", 0);
    CHECK_REFUSES("1 2", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("[1]]", "E_JSON_SYNTAX", 3);
    CHECK_REFUSES("1 /", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("1 /* *", "E_JSON_SYNTAX", 2);
    CHECK_REFUSES("1 /*/", "E_JSON_SYNTAX", 2);
}

TEST(json5_tells_line_and_column)
{
    CHECK_REFUSES("{\n  a: 1,\n  b: oops,\n}", "E_JSON_SYNTAX", 15);

    CHECK_INT(error.line, 3);
    CHECK_INT(error.column, 6);
}

TEST(json5_refuses_bytes_that_are_no_utf8_and_tells_where)
{
    CHECK_REFUSES("['é', '\xff']", "E_JSON_UTF8", 8);
    CHECK_REFUSES("'\xc3", "E_JSON_UTF8", 1);
    CHECK_REFUSES("{\xed\xa0\x80:1}", "E_JSON_UTF8", 1);
}

TEST(json5_keeps_the_last_of_two_members_or_what_the_options_say)
{
    const peg_json_options first = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_FIRST_WINS};
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    const char *text = "{a:1, /* again */ 'a':2}";

    CHECK_READS(text, "{\"a\":2}");
    CHECK_READS_WITH(peg__str(text), &first, "{\"a\":1}");
    CHECK_READS_WITH(peg__str(text), &refuse, "E_JSON_DUPLICATE_KEY");
    CHECK_INT(error.offset, 18);
}

/* ---- limits
 * ----------------------------------------------------------------------------------------- */

static char *nested(size_t depth, size_t *ret_len)
{
    char *text = malloc(2 * depth);

    if (!text)
        abort();
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    *ret_len = 2 * depth;
    return text;
}

static peg_status parse_nested(size_t depth, unsigned max_depth)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = max_depth};
    size_t len;
    char *text = nested(depth, &len);
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json5_parse(peg__strn(text, len), &options, &doc, &error);

    peg_json_doc_free(doc);
    free(text);
    return status;
}

TEST(json5_nests_as_deep_as_allowed)
{
    CHECK_INT(parse_nested(256, 0), PEG_OK);
    CHECK_INT(parse_nested(257, 0), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_JSON_TOO_DEEP");
    CHECK_INT(error.offset, 256);
    CHECK_INT(parse_nested(3, 2), PEG_ELIMIT);
    CHECK_INT(parse_nested(4096, 100000), PEG_OK);
    CHECK_INT(parse_nested(4097, 100000), PEG_ELIMIT);
    CHECK(strstr(error.message, "max_depth"));
}

TEST(json5_refuses_a_text_beyond_max_bytes)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = 4};

    CHECK_READS_WITH(peg__str("[1,]"), &options, "[1]");
    CHECK_READS_WITH(peg__str("[12,]"), &options, "E_JSON_TOO_LARGE");
    CHECK(strstr(error.message, "max_bytes = 4"));
    /* What it is rewritten as may be longer. */
    CHECK_READS_WITH(peg__str("'\\v'"), &options, "\"\\u000b\"");
}

TEST(json5_refuses_numbers_with_too_many_digits_and_tells_where)
{
    const peg_json_options few = {PEG_JSON_OPTIONS_INIT, .max_number_digits = 5};
    struct peg__buf text = PEG__BUF(100000);

    peg__buf_puts(&text, "[1, 0x1");
    peg__buf_repeat(&text, '0', 900);
    peg__buf_puts(&text, "]");
    CHECK_REFUSES(text.ptr, "E_JSON_TOO_LARGE", 4);
    CHECK_READS_WITH(peg__str("[1, /* */ 123456]"), &few, "E_JSON_TOO_LARGE");
    CHECK_INT(error.offset, 10);
    CHECK_INT(error.status, PEG_ELIMIT);
    peg__buf_free(&text);
}

TEST(json5_reads_a_megabyte_of_one_name)
{
    struct peg__buf text = PEG__BUF(4 << 20);
    peg_json_doc *doc = NULL;
    peg_status status;

    peg__buf_putc(&text, '{');
    for (int i = 0; i < 1 << 19; i++)
        peg__buf_puts(&text, "é");
    peg__buf_puts(&text, ":1}");
    status = peg__json5_parse(peg__buf_view(&text), NULL, &doc, &error);
    peg__buf_free(&text);

    CHECK_STATUS(status, PEG_OK, error);
    CHECK_INT(peg_json_root(doc)[1].len, 1 << 20);
    peg_json_doc_free(doc);
}

TORTURE(json5_survives_any_allocation_failure)
{
    const peg_str text = PEG_LIT("{/* c */ ñame: ['a\\\nb', 0xffffffffffffffffff, .5,], b: {},}");
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json5_parse(text, NULL, &doc, NULL);

    peg_json_doc_free(doc);
    return status;
}

/* The place of a mistake that the parser finds is told by a second run. */
TORTURE(json5_survives_any_allocation_failure_on_its_way_to_an_error)
{
    const peg_json_options refuse = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_REFUSE};
    const peg_str text = PEG_LIT("{ä:1,ä:2}");
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json5_parse(text, &refuse, &doc, NULL);

    return status == PEG_EPARSE ? PEG_OK : status;
}
