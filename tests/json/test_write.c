/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture -------------------------------------------------------------------- */

static peg_json_doc *parsed(peg_str text)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(text, &options, &doc, &error), PEG_OK, error);
    return doc;
}

/* Writes what `text` parses to; the result must parse to an equal value again. */
static void check_written(const char *text, peg_json_style style, const char *expected)
{
    peg_json_doc *doc = parsed(peg__str(text));
    peg_json_doc *again;
    peg_error error;
    char *written;
    size_t len;

    CHECK_STATUS(peg_json_write(peg_json_root(doc), style, &written, &len, &error), PEG_OK, error);
    CHECK_STR(peg__strn(written, len), expected);
    CHECK_INT(written[len], 0);
    again = parsed(peg__strn(written, len));
    CHECK(peg_json_equal(peg_json_root(doc), peg_json_root(again)));
    peg_json_doc_free(again);
    peg_json_doc_free(doc);
    peg_free(written);
}

static void check_compact(const char *text, const char *expected)
{
    check_written(text, PEG_JSON_COMPACT, expected);
}

static void check_string(const char *bytes, size_t len, const char *expected)
{
    struct peg__buf out = PEG__BUF(1 << 20);

    peg__json_write_string(peg__strn(bytes, len), &out);
    CHECK_STR(peg__buf_view(&out), expected);
    CHECK_INT(out.ptr[out.len], 0);
    peg__buf_free(&out);
}

/* ---- values ------------------------------------------------------------------------ */

TEST(write_compact_has_no_space)
{
    check_compact(" { \"a\" : [ 1 , true , null , [ ] , { } ] , \"b\" : { \"c\" : \"d\" } } ",
                  "{\"a\":[1,true,null,[],{}],\"b\":{\"c\":\"d\"}}");
    check_compact("[[[]],[{}],[[1],2],3]", "[[[]],[{}],[[1],2],3]");
    check_compact("{\"a\":{\"b\":{}},\"c\":[]}", "{\"a\":{\"b\":{}},\"c\":[]}");
    check_compact("false", "false");
    check_compact("[]", "[]");
}

TEST(write_pretty_has_one_member_or_item_a_line)
{
    check_written("{\"a\":[1,[],{\"x\":{}}],\"b\":{},\"c\":[[2]]}", PEG_JSON_PRETTY,
                  "{\n"
                  "  \"a\": [\n"
                  "    1,\n"
                  "    [],\n"
                  "    {\n"
                  "      \"x\": {}\n"
                  "    }\n"
                  "  ],\n"
                  "  \"b\": {},\n"
                  "  \"c\": [\n"
                  "    [\n"
                  "      2\n"
                  "    ]\n"
                  "  ]\n"
                  "}");
    check_written("{}", PEG_JSON_PRETTY, "{}");
    check_written("7", PEG_JSON_PRETTY, "7");
}

TEST(write_takes_a_value_out_of_the_middle_of_a_document)
{
    peg_json_doc *doc = parsed(peg__str("[1,{\"a\":[2,3]},4]"));
    struct peg__buf out = PEG__BUF(1 << 20);

    peg__json_write(peg_json_at(peg_json_root(doc), 1), PEG_JSON_COMPACT, &out);

    CHECK_STR(peg__buf_view(&out), "{\"a\":[2,3]}");
    peg__buf_free(&out);
    peg_json_doc_free(doc);
}

TEST(write_keeps_the_digits_of_numbers)
{
    check_compact("[1.50,-0,-0.0,0.00,1e3,15e2,-7]", "[1.50,-0,-0.0,0.00,1000,1500,-7]");
    check_compact("[15e40,1e21,1e20]", "[15e40,1e21,100000000000000000000]");
    check_compact("[1e-7,1.5e-30,0.5,12.25e-1]", "[0.0000001,15e-31,0.5,1.225]");
    check_compact("[0e5,0e-5000,-0e5]", "[0,0,-0]");
    check_compact("[-9223372036854775808,9223372036854775807]",
                  "[-9223372036854775808,9223372036854775807]");
    check_compact("123456789012345678901234567890.5E+07", "123456789012345678901234567890.5E+07");
    check_compact("[10,99,100,101,12345]", "[10,99,100,101,12345]");
}

TEST(write_goes_down_4096_levels)
{
    enum { DEPTH = 4096 };
    struct peg__buf text = PEG__BUF(1 << 20);

    for (unsigned i = 0; i < DEPTH / 2; i++)
        peg__buf_puts(&text, "[{\"\":");
    peg__buf_puts(&text, "1");
    for (unsigned i = 0; i < DEPTH / 2; i++)
        peg__buf_puts(&text, "}]");

    check_compact(text.ptr, text.ptr);
    peg__buf_free(&text);
}

/* ---- strings ------------------------------------------------------------------------- */

TEST(write_string_escapes_what_must_be_and_nothing_else)
{
    check_string("", 0, "\"\"");
    check_string("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    check_string("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    check_string("\0\x01\x1F\x7F", 4, "\"\\u0000\\u0001\\u001f\x7F\"");
    check_string("\xC3\xBC\xE2\x80\xA8\xF0\x9F\x98\x80", 9,
                 "\"\xC3\xBC\xE2\x80\xA8\xF0\x9F\x98\x80\"");
}

TEST(write_string_finds_each_byte_at_each_place)
{
    for (unsigned c = 0; c < 256; c++)
        for (size_t at = 0; at < 40; at++) {
            char text[40];
            struct peg__buf out = PEG__BUF(1 << 10);
            const bool is_special = c < 0x20 || c == '"' || c == '\\';

            memset(text, 'x', sizeof(text));
            text[at] = (char)c;
            peg__json_write_string(peg__strn(text, sizeof(text)), &out);
            if ((out.len > sizeof(text) + 2) != is_special ||
                (out.ptr[at + 1] == '\\') != is_special)
                T_FAIL("byte %u at %zu", c, at);
            peg__buf_free(&out);
        }
}

TEST(write_escapes_strings_of_a_document_the_same_way)
{
    for (size_t len = 0; len < 40; len++)
        for (size_t at = 0; at < len; at++) {
            char text[40];
            peg_json_builder *b = peg_json_builder_new();
            struct peg__buf out = PEG__BUF(1 << 10);
            struct peg__buf expected = PEG__BUF(1 << 10);
            peg_json_doc *doc = NULL;

            memset(text, 'x', sizeof(text));
            text[at] = '"';
            text[len - 1 - at / 2] = '\x01';
            peg_json_add_string(b, peg__strn(text, len));
            CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
            peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &out);
            peg__json_write_string(peg__strn(text, len), &expected);
            CHECK_STR(peg__buf_view(&out), expected.ptr);
            peg__buf_free(&out);
            peg__buf_free(&expected);
            peg_json_doc_free(doc);
        }
}

/* ---- limits ----------------------------------------------------------------------------- */

TEST(write_stops_at_the_maximum_of_the_buffer)
{
    peg_json_doc *doc = parsed(peg__str("[\"aaaaaaaa\",\"bbbbbbbb\"]"));
    struct peg__buf out = PEG__BUF(15);

    peg__json_write(peg_json_root(doc), PEG_JSON_PRETTY, &out);

    CHECK_INT(out.status, PEG_ELIMIT);
    CHECK(out.len <= 15);
    peg__buf_free(&out);
    peg_json_doc_free(doc);
}

TORTURE(write_survives_any_allocation_failure)
{
    char text[200];
    peg_json_doc *doc = NULL;
    char *written = NULL;
    peg_status status;

    memset(text, '[', 100); /* deeper than the stack that needs no memory */
    memset(text + 100, ']', 100);
    status = peg_json_parse(peg__strn(text, 200), NULL, &doc, NULL);
    if (!status)
        status = peg_json_write(peg_json_root(doc), PEG_JSON_PRETTY, &written, NULL, NULL);
    peg_free(written);
    peg_json_doc_free(doc);
    return status;
}
