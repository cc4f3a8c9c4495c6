/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture ---------------------------------------------------------------------- */

static peg_json_doc *parsed(peg_str text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(text, NULL, &doc, &error), PEG_OK, error);
    return doc;
}

static char *canonical(peg_str text)
{
    peg_json_doc *doc = parsed(text);
    char *written = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_canonical(peg_json_root(doc), &written, NULL, &error), PEG_OK, error);
    peg_json_doc_free(doc);
    return written;
}

/* The canonical form of a canonical form is itself. */
static void check_canonical(const char *text, const char *expected)
{
    char *once = canonical(peg__str(text));
    char *twice = canonical(peg__str(once));

    CHECK_STR(peg__str(once), expected);
    CHECK_STR(peg__str(twice), expected);
    peg_free(once);
    peg_free(twice);
}

static void check_digest(const char *text, const char *expected)
{
    peg_json_doc *doc = parsed(peg__str(text));
    char hex[65];
    peg_error error;

    CHECK_STATUS(peg_json_digest(peg_json_root(doc), hex, &error), PEG_OK, error);
    CHECK_STR(peg__str(hex), expected);
    peg_json_doc_free(doc);
}

/* ---- RFC 8785 ------------------------------------------------------------------------ */

TEST(canonical_prints_the_sample_of_rfc_8785_section_3_2_2)
{
    check_canonical("{\n"
                    "  \"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3,"
                    " 0.000000000000000000000000001],\n"
                    "  \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
                    "  \"literals\": [null, true, false]\n"
                    "}",
                    "{\"literals\":[null,true,false],"
                    "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
                    "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST(canonical_sorts_by_utf16_as_the_sample_of_rfc_8785_section_3_2_3)
{
    check_canonical("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\","
                    "\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
                    "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
                    "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
                    "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
                    "\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\","
                    "\"\xE2\x82\xAC\":\"Euro Sign\","
                    "\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\","
                    "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

/* A double given by its bits, as appendix B of RFC 8785 has them. */
static void check_bits(uint64_t bits, const char *expected)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    char *text = NULL;
    peg_error error;
    double value;

    memcpy(&value, &bits, sizeof(value));
    peg_json_add_double(b, value);
    CHECK_STATUS(peg_json_builder_finish(b, &doc, &error), PEG_OK, error);
    CHECK_STATUS(peg_json_canonical(peg_json_root(doc), &text, NULL, &error), PEG_OK, error);
    CHECK_STR(peg__str(text), expected);
    peg_free(text);
    peg_json_doc_free(doc);
}

TEST(canonical_prints_the_doubles_of_rfc_8785_appendix_b)
{
    check_bits(0x0000000000000000, "0");
    check_bits(0x8000000000000000, "0");
    check_bits(0x0000000000000001, "5e-324");
    check_bits(0x8000000000000001, "-5e-324");
    check_bits(0x7fefffffffffffff, "1.7976931348623157e+308");
    check_bits(0xffefffffffffffff, "-1.7976931348623157e+308");
    check_bits(0x4340000000000000, "9007199254740992");
    check_bits(0xc340000000000000, "-9007199254740992");
    check_bits(0x4430000000000000, "295147905179352830000");
    check_bits(0x44b52d02c7e14af5, "9.999999999999997e+22");
    check_bits(0x44b52d02c7e14af6, "1e+23");
    check_bits(0x44b52d02c7e14af7, "1.0000000000000001e+23");
    check_bits(0x444b1ae4d6e2ef4e, "999999999999999700000");
    check_bits(0x444b1ae4d6e2ef4f, "999999999999999900000");
    check_bits(0x444b1ae4d6e2ef50, "1e+21");
    check_bits(0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7");
    check_bits(0x3eb0c6f7a0b5ed8d, "0.000001");
    check_bits(0x41b3de4355555553, "333333333.3333332");
    check_bits(0x41b3de4355555554, "333333333.33333325");
    check_bits(0x41b3de4355555555, "333333333.3333333");
    check_bits(0x41b3de4355555556, "333333333.3333334");
    check_bits(0x41b3de4355555557, "333333333.33333343");
    check_bits(0xbecbf647612f3696, "-0.0000033333333333333333");
    check_bits(0x43143ff3c1cb0959, "1424953923781206.2");
}

/* ---- numbers --------------------------------------------------------------------------- */

TEST(canonical_lays_numbers_out_as_ecmascript_does)
{
    check_canonical("[1e20,1e21,1e-6,1e-7,123e-20]",
                    "[100000000000000000000,1e+21,0.000001,1e-7,1.23e-18]");
    check_canonical("[1.0,-1.50,100e-2,0.0,-0,-0.0,0e9]", "[1,-1.5,1,0,0,0,0]");
    check_canonical("[0.1,12.5,123456.789,-0.00001234]", "[0.1,12.5,123456.789,-0.00001234]");
}

TEST(canonical_keeps_whole_numbers_that_a_double_would_lose)
{
    check_canonical("[9007199254740993,9223372036854775807,-9223372036854775808]",
                    "[9007199254740993,9223372036854775807,-9223372036854775808]");
    check_canonical("[9007199254740993.0,123456789012345678901]",
                    "[9007199254740993,123456789012345678901]");
    check_canonical("[1234567890123456789012,1e400,-123e9998]",
                    "[1.234567890123456789012e+21,1e+400,-1.23e+10000]");
}

TEST(canonical_rounds_up_to_17_digits_to_the_double_and_keeps_longer_ones)
{
    check_canonical("[0.10000000000000001,333333333.33333329]", "[0.1,333333333.3333333]");
    check_canonical("0.100000000000000005", "0.100000000000000005");
    check_canonical("3.14159265358979323846", "3.14159265358979323846");
    check_canonical("9007199254740992.5", "9007199254740992");
    check_canonical("[1e-400,-1.25e-9999,1.23456789012345e-310]",
                    "[1e-400,-1.25e-9999,1.23456789012346e-310]");
    check_canonical("[4.9e-324,12345678.123456789e-321]", "[5e-324,1.2345678124e-314]");
}

/* ---- members ----------------------------------------------------------------------------- */

TEST(canonical_sorts_members_at_every_level)
{
    check_canonical("{\"b\":[{\"z\":1,\"y\":{\"d\":1,\"c\":2}}],\"a\":{},\"\":0,\"ab\":[]}",
                    "{\"\":0,\"a\":{},\"ab\":[],\"b\":[{\"y\":{\"c\":2,\"d\":1},\"z\":1}]}");
    check_canonical("{\"a\":{\"c\":1,\"b\":2},\"b\":{\"a\":1}}",
                    "{\"a\":{\"b\":2,\"c\":1},\"b\":{\"a\":1}}");
}

TEST(canonical_sorts_large_objects)
{
    enum { N = 1000 };
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_json_doc *again;
    char *text = NULL;
    char name[16];
    unsigned next = 0;

    peg_json_open_object(b);
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "%04u", i * 7919 % N);
        peg_json_add_key(b, peg__str(name));
        peg_json_add_integer(b, i * 7919 % N);
    }
    peg_json_close(b);
    CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_canonical(peg_json_root(doc), &text, NULL, NULL), PEG_OK);

    again = parsed(peg__str(text));
    PEG_JSON_EACH_MEMBER (peg_json_root(again), key)
        CHECK_INT(key[1].u.number, next++);
    CHECK_INT(next, N);
    peg_json_doc_free(doc);
    peg_json_doc_free(again);
    peg_free(text);
}

/* ---- digests ------------------------------------------------------------------------------- */

TEST(digest_identifies_a_call_whatever_the_order_of_members)
{
    check_digest("{\"args\":{\"query\":\"hello\"},\"tool\":\"search\"}",
                 "e0b6feaa14a993179f474568e2c0a63075752fe3a8bc629bc0cd1442a002448e");
    check_digest("{\"tool\":\"now\",\"args\":{}}",
                 "e9a14fdf1b5879d09bafa77712943d6979cef52f24929f28035f0c3c6974a489");
    check_digest("{\"args\":{\"a\":\"1\",\"b\":\"2\"},\"tool\":\"search\"}",
                 "e3c77b082bd53c359702567ebea280be7cda1092494c1ffcb483692e558f0cb5");
    check_digest("{\"tool\":\"search\",\"args\":{\"b\":\"2\",\"a\":\"1\"}}",
                 "e3c77b082bd53c359702567ebea280be7cda1092494c1ffcb483692e558f0cb5");
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(canonical_stops_at_the_maximum_of_the_buffer)
{
    peg_json_doc *doc = parsed(peg__str("{\"b\":12.5,\"a\":[1.25,2]}"));
    struct peg__buf out = PEG__BUF(12);

    peg__json_canonical(peg_json_root(doc), &out);

    CHECK_INT(out.status, PEG_ELIMIT);
    peg__buf_free(&out);
    peg_json_doc_free(doc);
}

TORTURE(canonical_and_digest_survive_any_allocation_failure)
{
    static const char text[] =
        "{\"z\":[[[[[[[[[[1.5]]]]]]]]]],\"y\":{\"c\":1,\"b\":{\"b\":1,\"a\":2}},"
        "\"x\":0.1234567890123456}";
    peg_json_doc *doc = NULL;
    char *written = NULL;
    char hex[65];
    peg_status status = peg_json_parse(peg__str(text), NULL, &doc, NULL);

    if (!status)
        status = peg_json_canonical(peg_json_root(doc), &written, NULL, NULL);
    if (!status)
        status = peg_json_digest(peg_json_root(doc), hex, NULL);
    peg_free(written);
    peg_json_doc_free(doc);
    return status;
}
