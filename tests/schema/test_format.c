/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "schema/format/format.h"

/* ---- fixture: examples of a format ----------------------------------------- */

/* A literal with its length, so that it may contain a NUL. */
#define S(literal)                                                                                 \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define LIST(...)                                                                                  \
    (const peg_str[]){__VA_ARGS__}, sizeof((const peg_str[]){__VA_ARGS__}) / sizeof(peg_str)

static peg__format_fn *find(const char *name, peg_dialect dialect)
{
    peg__format_fn *const is_valid = peg__format_find(peg__str(name), dialect);

    if (!is_valid)
        T_FAIL("there is no format %s in dialect %d", name, (int)dialect);
    return is_valid;
}

/* The example in memory of its own size, so that a sanitizer sees a read beyond it. */
static bool judge(peg__format_fn *is_valid, peg_str example)
{
    PEG_CLEANUP(peg__freep) char *copy = peg__alloc(example.len ? example.len : 1);

    if (!copy)
        T_FAIL("out of memory");
    memcpy(copy, example.ptr, example.len);
    return is_valid(peg__strn(copy, example.len));
}

static void check_all(const char *name, const peg_str *examples, size_t n, bool expected)
{
    peg__format_fn *const is_valid = find(name, PEG_DIALECT_DEFAULT);

    for (size_t i = 0; i < n; i++)
        if (judge(is_valid, examples[i]) != expected)
            T_FAIL("\"%.*s\" should %sbe a %s", PEG_ARG(examples[i]), expected ? "" : "not ", name);
}

#define ACCEPTS(name, ...) check_all(name, LIST(__VA_ARGS__), true)
#define REFUSES(name, ...) check_all(name, LIST(__VA_ARGS__), false)

/* prefix + n times c + suffix */
static bool judge_long(const char *name, const char *prefix, char c, size_t n, const char *suffix)
{
    PEG_CLEANUP(peg__buf_free) struct peg__buf text = PEG__BUF(2 * n);

    peg__buf_puts(&text, prefix);
    peg__buf_repeat(&text, c, n);
    peg__buf_puts(&text, suffix);
    CHECK(text.status == PEG_OK);
    return find(name, PEG_DIALECT_DEFAULT)(peg__buf_view(&text));
}

enum { MEGABYTE = 1 << 20 };

/* ---- the table ------------------------------------------------------------- */

struct introduction {
    const char *name;
    peg_dialect first;
};

static const struct introduction introductions[] = {
    {"date-time", PEG_DIALECT_DRAFT4},     {"email", PEG_DIALECT_DRAFT4},
    {"hostname", PEG_DIALECT_DRAFT4},      {"ipv4", PEG_DIALECT_DRAFT4},
    {"ipv6", PEG_DIALECT_DRAFT4},          {"uri", PEG_DIALECT_DRAFT4},
    {"uri-reference", PEG_DIALECT_DRAFT6}, {"uri-template", PEG_DIALECT_DRAFT6},
    {"json-pointer", PEG_DIALECT_DRAFT6},  {"date", PEG_DIALECT_DRAFT7},
    {"time", PEG_DIALECT_DRAFT7},          {"regex", PEG_DIALECT_DRAFT7},
    {"iri", PEG_DIALECT_DRAFT7},           {"iri-reference", PEG_DIALECT_DRAFT7},
    {"idn-email", PEG_DIALECT_DRAFT7},     {"idn-hostname", PEG_DIALECT_DRAFT7},
    {"uuid", PEG_DIALECT_2019_09},         {"relative-json-pointer", PEG_DIALECT_DRAFT7},
    {"duration", PEG_DIALECT_2019_09},
};

TEST(each_dialect_has_the_formats_of_its_time_and_before)
{
    for (size_t i = 0; i < sizeof(introductions) / sizeof(introductions[0]); i++) {
        const struct introduction *format = &introductions[i];

        for (peg_dialect d = PEG_DIALECT_DRAFT4; d <= PEG_DIALECT_V1; d++)
            if (!peg__format_find(peg__str(format->name), d) != (d < format->first))
                T_FAIL("%s in dialect %d", format->name, (int)d);
    }
}

TEST(the_default_dialect_has_the_formats_of_2020_12)
{
    for (size_t i = 0; i < sizeof(introductions) / sizeof(introductions[0]); i++)
        CHECK(find(introductions[i].name, PEG_DIALECT_DEFAULT) ==
              find(introductions[i].name, PEG_DIALECT_2020_12));
}

TEST(a_format_is_found_by_its_exact_name_only)
{
    static const peg_str names[] = {S(""),       S("colour"),  S("Email"),    S("emai"),
                                    S("emails"), S("email\0"), S("date_time")};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK(!peg__format_find(names[i], PEG_DIALECT_2020_12));
}

TEST(the_empty_string_is_a_reference_a_pointer_a_template_or_a_pattern_and_nothing_else)
{
    static const char *const welcome[] = {"uri-reference", "iri-reference", "uri-template",
                                          "json-pointer", "regex"};

    for (size_t i = 0; i < sizeof(introductions) / sizeof(introductions[0]); i++) {
        const char *name = introductions[i].name;
        bool expected = false;

        for (size_t k = 0; k < sizeof(welcome) / sizeof(welcome[0]); k++)
            expected = expected || strcmp(name, welcome[k]) == 0;
        if (find(name, PEG_DIALECT_DEFAULT)(peg__strn("", 0)) != expected)
            T_FAIL("the empty string as %s", name);
    }
}

/* ---- times ------------------------------------------------------------------ */

TEST(date_accepts_days_that_exist)
{
    ACCEPTS("date", S("2024-02-29"), S("2000-02-29"), S("1999-12-31"), S("0000-02-29"),
            S("9999-04-30"));
    REFUSES("date", S("2023-02-29"), S("1900-02-29"), S("2024-02-30"), S("2024-04-31"),
            S("2024-13-01"), S("2024-00-10"), S("2024-10-00"), S("2024-1-01"), S("24-01-01"),
            S("2024/01/01"), S("2024-01-01\0"), S("2024-01-0"), S("2024-01-0a"), S("20240101"),
            S("2024-01-010"), S("\xD9\xA2\xD9\xA0-01-01"));
}

TEST(time_accepts_a_clock_with_an_offset)
{
    ACCEPTS("time", S("00:00:00Z"), S("23:59:59z"), S("12:00:00.5+05:30"), S("12:00:00-00:00"),
            S("12:00:00.000000000000000000000001Z"));
    REFUSES("time", S("12:00:00"), S("12:00Z"), S("12:00:00.Z"), S("12:00:00.5"), S("12:00:00,5Z"),
            S("24:00:00Z"), S("12:60:00Z"), S("12:00:61Z"), S("12:00:00+24:00"),
            S("12:00:00+05:60"), S("12:00:00+0530"), S("12:00:00+05"), S("12:00:00 Z"),
            S("12:00:00Zulu"), S("1200:00Z"), S("12:00:00Z\0"), S("12:00:0"));
}

TEST(a_leap_second_comes_only_before_midnight_utc)
{
    ACCEPTS("time", S("23:59:60Z"), S("23:59:60.75+00:00"), S("05:29:60+05:30"),
            S("18:59:60-05:00"), S("23:58:60+23:59"), S("00:00:60-23:59"));
    REFUSES("time", S("23:58:60Z"), S("22:59:60Z"), S("00:00:60Z"), S("05:29:60-05:30"),
            S("23:59:60+01:00"), S("23:59:60-01:00"), S("23:59:61Z"));
    ACCEPTS("date-time", S("2016-12-31T23:59:60Z"), S("2017-01-01T08:59:60+09:00"));
    REFUSES("date-time", S("2016-12-31T12:00:60Z"), S("2017-01-01T08:59:60-09:00"));
}

TEST(date_time_accepts_a_date_a_t_and_a_time)
{
    ACCEPTS("date-time", S("2024-05-06T07:08:09Z"), S("2024-05-06t07:08:09.1z"),
            S("2024-02-29T23:00:00-11:30"));
    REFUSES("date-time", S("2024-05-06 07:08:09Z"), S("2024-05-06T07:08:09"), S("2024-05-06"),
            S("2024-05-06T"), S("2023-02-29T07:08:09Z"), S("07:08:09Z"), S("2024-05-06TZ"),
            S("2024-05-06T07:08:09Z\n"), S("2024-05-06T07:08:09\0Z"));
    CHECK(judge_long("date-time", "2024-05-06T07:08:09.", '3', MEGABYTE, "Z"));
    CHECK(!judge_long("date-time", "2024-05-06T07:08:09.", '3', MEGABYTE, ""));
}

TEST(duration_accepts_units_in_order_without_a_gap)
{
    ACCEPTS("duration", S("P1Y"), S("P1Y2M"), S("P1Y2M3D"), S("P2M3D"), S("P3DT4H"), S("PT4H5M6S"),
            S("PT5M"), S("PT5M6S"), S("P12W"), S("P1YT6S"), S("P000D"));
    REFUSES("duration", S("P"), S("PT"), S("P1"), S("P1YT"), S("P1Y3D"), S("PT4H6S"), S("P3D2M"),
            S("P1M1M"), S("P1W2D"), S("P2D1W"), S("PW"), S("PTW"), S("P1H"), S("PT1D"), S("1D"),
            S("p1d"), S("P1D\0"), S("P1.5D"), S("P-1D"), S("+P1D"), S("P1DT1HT1M"), S("PT1W"));
    CHECK(judge_long("duration", "P", '9', MEGABYTE, "D"));
    CHECK(!judge_long("duration", "P", '9', MEGABYTE, ""));
}

/* ---- addresses ---------------------------------------------------------------- */

TEST(ipv4_accepts_four_plain_octets)
{
    ACCEPTS("ipv4", S("0.0.0.0"), S("255.255.255.255"), S("8.8.4.4"), S("100.20.3.249"));
    REFUSES("ipv4", S("256.0.0.1"), S("1.2.3"), S("1.2.3.4.5"), S("01.2.3.4"), S("1.2.3.00"),
            S("1..3.4"), S("1.2.3.4 "), S("1.2.3.4\0"), S("1.2.3.1000"), S("a.b.c.d"),
            S("1.2.3.-4"), S("0x1.2.3.4"), S("1,2,3,4"), S("1.2.3.4."));
}

TEST(ipv6_accepts_eight_groups_or_one_gap)
{
    ACCEPTS("ipv6", S("::"), S("::8"), S("1::"), S("1:2:3:4:5:6:7:8"), S("1:2:3:4:5:6:7::"),
            S("::2:3:4:5:6:7:8"), S("FE80::ABCD"), S("::1.2.3.4"), S("1:2:3:4:5:6:7.8.9.0"),
            S("1::6:7.8.9.0"), S("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"));
    REFUSES("ipv6", S(":"), S(":::"), S("1"), S("1:2:3:4:5:6:7"), S("1:2:3:4:5:6:7:8:9"),
            S("1:2:3:4:5:6:7:8::"), S("::1:2:3:4:5:6:7:8"), S("1::2::3"), S("12345::"), S("1:"),
            S(":1"), S("1:2:3:4:5:6:7:"), S("::g"), S("::1%eth0"), S("[::1]"), S("::1.2.3"),
            S("::1.2.3.256"), S("1.2.3.4::"), S("1:2:3:4:5:6:7:1.2.3.4"), S("::1\0"));
    CHECK(!judge_long("ipv6", "::", '0', MEGABYTE, "1"));
}

/* ---- host names ---------------------------------------------------------------- */

#define L63 "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g23"
#define A55 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define L61 "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g"

TEST(hostname_accepts_labels_of_letters_digits_and_inner_hyphens)
{
    ACCEPTS("hostname", S("localhost"), S("a"), S("7"), S("A.b.C"), S("3com.com"),
            S("a--b.example"), S("ab--cd.example"), S(L63 ".example"),
            S(L63 "." L63 "." L63 "." L61));
    REFUSES("hostname", S("."), S("a."), S(".a"), S("a..b"), S("-a"), S("a-"), S("a.-b"), S("a-.b"),
            S("a_b"), S("a b"), S("a\0b"),
            S("b\xC3\xBC"
              "cher.example"),
            S(L63 "4.example"), S(L63 "." L63 "." L63 "." L61 "0"), S("a.b\n"));
    CHECK(!judge_long("hostname", "a", '.', MEGABYTE, "b"));
}

TEST(hostname_checks_what_an_a_label_stands_for_since_draft_07)
{
    static const peg_str nonsense = S("xn--a-0.example");

    ACCEPTS("hostname", S("xn--bcher-kva.example"), S("XN--BCHER-KVA.example"), S("a.xn--p1ai"));
    REFUSES("hostname", S("xn--"), S("xn--bcher-"), S("xn--bcher-kva-"), S("xn--a-0.example"),
            S("xn--\xC3\xBC"));
    CHECK(judge(find("hostname", PEG_DIALECT_DRAFT4), nonsense));
    CHECK(judge(find("hostname", PEG_DIALECT_DRAFT6), nonsense));
    CHECK(!judge(find("hostname", PEG_DIALECT_DRAFT7), nonsense));
}

TEST(idn_hostname_accepts_u_labels)
{
    ACCEPTS("idn-hostname", S("example.com"), S("b\u00FCcher.example"),
            S("\u4F8B\u5B50.\u6D4B\u8BD5"), S("xn--bcher-kva.b\u00FCcher"),
            S("\u043F\u0440\u0438\u043C\u0435\u0440"), S("fa\u00DF.de"), S("a\u3002b"),
            S("\u00FC\uFF0Eb\uFF61c"), S("\U00020000.example"));
    REFUSES("idn-hostname", S("B\u00FCcher.example"), S("bu\u0308cher.example"), S("\u00FC_.de"),
            S("\u00FC\0.de"), S("-\u00FC"), S("\u00FC-"), S("\u00FC\u00FC--\u00FC"), S("\u00FC."),
            S("\u00FC\u3002\u3002a"), S("\u0301a"), S("\u2603"), S("\U0001F600.example"),
            S("\u00FC.a_b"), S("\u00FC.-a"), S("\u00FC.xn--a-0"));
}

TEST(idn_hostname_counts_the_length_of_the_a_labels)
{
    /* A55 and one more make an A-label of 63 */
    ACCEPTS("idn-hostname", S(A55 "\u00FC"), S("\u00FC." L63 "." L63 "." L61));
    REFUSES("idn-hostname", S(A55 "a\u00FC"), S("\u00FC." L63 "." L63 "." L61 "." L61));
    CHECK(!judge_long("idn-hostname", "\u00FC", 'a', MEGABYTE, ""));
    CHECK(!judge_long("idn-hostname", "\u00FC", '.', MEGABYTE, ""));
}

TEST(idn_hostname_knows_where_contextual_characters_may_stand)
{
    ACCEPTS("idn-hostname", S("col\u00B7lapse"), S("\u03B1\u0375\u03B2"), S("\u05D2\u05F3"),
            S("\u30AB\u30FB\u30AB"), S("\u0915\u094D\u200D\u0937"));
    REFUSES("idn-hostname", S("a\u00B7b"), S("\u0375a"), S("\u05F3\u05D2"), S("a\u30FBb"),
            S("a\u200Db"), S("a\u200Cb"), S("\u0628\u0660\u06F0"));
}

TEST(idn_hostname_applies_the_bidi_rule_to_the_whole_name)
{
    ACCEPTS("idn-hostname", S("\u05D0\u05D1.\u05D2"), S("a1.\u05D0"), S("1a.b"), S("1a.\u00FC"),
            S("\u0628\u0661\u0662"), S("\u05D012"));
    REFUSES("idn-hostname", S("1a.\u05D0"), S("\u05D0.1a"), S("a\u05D0"), S("\u05D0a"),
            S("1\u05D0"), S("\u05D01\u0661"), S("1a.xn--4db"), S("1\u00FC.\u05D0"));
    REFUSES("hostname", S("1a.xn--4db"));
}

/* ---- mail -------------------------------------------------------------------- */

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

TEST(email_accepts_the_mailboxes_of_smtp)
{
    ACCEPTS("email", S("a@b"), S("first.last+tag@sub.example.org"), S("!#$%&'*+-/=?^_`{|}~@x.y"),
            S("\"\"@x.y"), S("\"a @.\\\" b\"@x.y"), S("\"\\\\\"@x.y"), S("a@[10.0.0.1]"),
            S("a@[IPv6:2001:db8::1]"), S("a@[ipV6:::]"), S(X64 "@x.y"), S("a@xn--a-0.example"));
    REFUSES("email", S("@"), S("a@"), S("@b"), S("a"), S("a@b@c"), S(".a@b"), S("a.@b"),
            S("a..b@c"), S("a b@c"), S("\"a@b"), S("\"a\"b@c"), S("a\"b\"@c"), S("\"a\\\"@b"),
            S("\"a\n\"@b"), S("\"\x7F\"@b"), S("a@-b"), S("a@b."), S("a@b..c"), S("a@[10.0.0.256]"),
            S("a@[10.0.0.1"), S("a@[::1]"), S("a@[IPv6:10.0.0.1]"), S("a@[x:y]"), S("a@[]"),
            S("a@b>"), S("<a@b>"), S("a\0@b"), S("a@b\0"), S(X64 "x@x.y"), S("\u00FC@x.y"),
            S("\"\u00FC\"@x.y"),
            S("a@b\u00FC"
              "cher.example"));
    CHECK(!judge_long("email", "a", 'a', MEGABYTE, "@b"));
    CHECK(!judge_long("email", "\"", ' ', MEGABYTE, "\"@b"));
}

TEST(email_is_no_longer_than_a_path_of_smtp)
{
    ACCEPTS("email", S(X64 "@" L63 "." L63 "." L61));
    REFUSES("email", S(X64 "@" L63 "." L63 "." L61 ".b"));
}

TEST(idn_email_accepts_utf_8_on_both_sides)
{
    ACCEPTS("idn-email", S("a@b"),
            S("\u00FC@b\u00FC"
              "cher.example"),
            S("\u00FC.\u4F8B@x.y"), S("\"\u00FC \u4F8B\"@x.y"), S("\U0001F600@x.y"),
            S("a@bu\u0308"
              "cher.example"));
    REFUSES("idn-email", S("\u00FC"), S("\u00FC@"), S("@\u00FC"), S("\u00FC..a@x.y"),
            S("\"\\\u00FC\"@x.y"), S("a@\u00FC_b"), S("a@\u00FC."), S("a\uFF20b.c"),
            S("a@b\u3002\u00FC"), S("a@\u2603"), S("a@\u00FC\0"));
}

/* ---- URIs --------------------------------------------------------------------- */

TEST(uri_accepts_what_has_a_scheme)
{
    ACCEPTS("uri", S("a:"), S("http://"), S("http://h"), S("http://h:"), S("http://h:80?q"),
            S("http://u:p@h:1/a;b=c/../%C3%bc?d=/?#e/?"), S("file:///etc/hosts"), S("a+b-c.9:x"),
            S("mailto:a@b"), S("urn:x:y"), S("x:/a//b"), S("http://[::1]"), S("http://[::1]:8/"),
            S("http://[v7.a:b]/"), S("http://u@[1::]"), S("x:@:"), S("http://h#"), S("tag:a,b:c"));
    REFUSES("uri", S("http"), S("//h/p"), S("/p"), S("?q"), S("#f"), S(":x"), S("1a:x"), S("a_b:x"),
            S("http://h:8x"), S("http://[::1"), S("http://::1]"), S("http://[::1]x"),
            S("http://[1.2.3.4]"), S("http://[v.a]"), S("http://[v1.]"), S("http://[v1]"),
            S("http://a@b@c"), S("http://[::1]@h"), S("x:%"), S("x:%4"), S("x:%4g"), S("x:a b"),
            S("x:[a]"), S("x:a#b#c"), S("x:\""), S("x:\\"), S("x:^"), S("x:`"), S("x:{}"), S("x:|"),
            S("x:<>"), S("x:\0"), S("x:\x7F"), S("x:\u00FC"), S("x:\U0001F600"));
    CHECK(judge_long("uri", "http://h/", 'p', MEGABYTE, "?q#f"));
    CHECK(!judge_long("uri", "http://h/", 'p', MEGABYTE, "#f#"));
    CHECK(!judge_long("uri", "http://", 'u', MEGABYTE, "@h@"));
}

TEST(uri_reference_accepts_what_is_relative_too)
{
    ACCEPTS("uri-reference", S("a:b"), S("a"), S("a/b:c"), S("./a:b"), S("../x"), S("//h"), S("//"),
            S("//u@h:1"), S("/"), S("?"), S("#"), S("a@b"), S("/a//b"), S("%41"));
    REFUSES("uri-reference", S("1a:b"), S(":"), S("a_b:c/d"), S("a b"), S("//h:x"), S("//[::1"),
            S("#a#"), S("%"), S("\\\\h\\p"), S("\u00FC"), S("a\0"));
}

TEST(iri_accepts_unicode_characters_of_rfc_3987)
{
    ACCEPTS("iri",
            S("http://b\u00FC"
              "cher.example/\u4F8B?\u00E9#\u00E8"),
            S("x:\U0001F600"), S("x:\u00A0"), S("x:a?\uE000"), S("x:a?\U000F0000"),
            S("http://\u00FC@h/"), S("x:\uFFEF"), S("x:\U000EFFFD"));
    REFUSES("iri", S("\u00FC"), S("\u00FC:x"), S("x:\xC2\x85"), S("x:\uE000"), S("x:a#\uE000"),
            S("x:a?\uFFFE"), S("x:\uFDD0"), S("x:\uFFF0"), S("x:\U0001FFFE"), S("x:\U000E0001"),
            S("x:a?\U0010FFFF"), S("x:\u00FC%"), S("http://\u00FC:\u0661/"), S("x:\u00FC \u00FC"));
    ACCEPTS("iri-reference", S("\u00FC"), S("//\u00FC/\u00FC"), S("#\U0001F600"), S("a/\u00FC:b"));
    REFUSES("iri-reference", S("\u00FC:b"), S("\uE000"), S("\u00FC\\"), S("\u00FC\0"));
}

TEST(uri_template_accepts_literals_and_expressions)
{
    ACCEPTS("uri-template", S("/a/b"), S("{a}"), S("{a,b:3,c*}"), S("{+a}{#b}{.c}{/d}{;e}{?f}{&g}"),
            S("{|a}"), S("{a.b.c}"), S("{%41_9}"), S("x%20y"), S("\u00FC{a}\U0001F600"), S("[a]"),
            S("{a:9999}"), S("\uE000"));
    REFUSES("uri-template", S("{"), S("}"), S("{}"), S("{a"), S("a}"), S("{{a}}"), S("{a,}"),
            S("{,}"), S("{+}"), S("{++a}"), S("{a:0}"), S("{a:}"), S("{a:10000}"), S("{a*:3}"),
            S("{a:3*}"), S("{a b}"), S("{.}"), S("{a.}"), S("{a..b}"), S("{a-b}"), S("{\u00FC}"),
            S("%"), S("%4"), S("{%4}"), S("a b"), S("\""), S("<"), S(">"), S("\\"), S("^"), S("`"),
            S("|"), S("\0"), S("{\0a}"), S("{a\0}"));
    CHECK(judge_long("uri-template", "{", 'a', MEGABYTE, "}"));
    CHECK(!judge_long("uri-template", "", '{', MEGABYTE, ""));
}

/* ---- the others ----------------------------------------------------------------- */

TEST(uuid_accepts_36_characters_of_any_version)
{
    ACCEPTS("uuid", S("01234567-89ab-cdef-0123-456789abcdef"),
            S("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"));
    REFUSES("uuid", S("0123456789abcdef0123456789abcdef"),
            S("01234567-89ab-cdef-0123-456789abcdeg"), S("g1234567-89ab-cdef-0123-456789abcdef"),
            S("0123456-789ab-cdef-0123-456789abcdef"), S("01234567-89ab-cdef-0123-456789abcde"),
            S("01234567-89ab-cdef-0123-456789abcdef0"), S("{01234567-89ab-cdef-0123-456789abcd}"),
            S("01234567-89ab-cdef-0123-456789abcde\0"), S("01234567_89ab-cdef-0123-456789abcdef"));
}

TEST(json_pointer_accepts_escaped_tildes_only)
{
    ACCEPTS("json-pointer", S("/"), S("/a/b"), S("//"), S("/~0~1"), S("/\0/\u00FC"), S("/ "));
    REFUSES("json-pointer", S("a"), S("#/a"), S("/~"), S("/~2"), S("/~0~"), S("~0"), S("/~~0"));
    CHECK(judge_long("json-pointer", "/", 'a', MEGABYTE, "~1"));
    CHECK(!judge_long("json-pointer", "/", '~', MEGABYTE, "0"));
}

TEST(relative_json_pointer_starts_with_a_number)
{
    ACCEPTS("relative-json-pointer", S("0"), S("10"), S("0#"), S("3/a~1"), S("0/"));
    REFUSES("relative-json-pointer", S("/a"), S("#"), S("00"), S("01/a"), S("-1"), S("0a"),
            S("0#/"), S("0/~"), S("1\0"));
}

TEST(relative_json_pointer_may_move_the_index_since_2020_12)
{
    static const peg_str moved = S("0-1/a");

    ACCEPTS("relative-json-pointer", S("0-1/a"), S("1+10"), S("0+1#"));
    REFUSES("relative-json-pointer", S("0+"), S("0-/a"), S("0+01"), S("0+1+1"), S("+1"));
    CHECK(!judge(find("relative-json-pointer", PEG_DIALECT_DRAFT7), moved));
    CHECK(!judge(find("relative-json-pointer", PEG_DIALECT_2019_09), moved));
    CHECK(judge(find("relative-json-pointer", PEG_DIALECT_V1), moved));
}

TEST(regex_accepts_ecma_262_patterns)
{
    ACCEPTS("regex", S("^a+$"), S("(?<year>\\d{4})-\\k<year>"), S("[^]"), S("\\p{L}"));
    REFUSES("regex", S("("), S("a)"), S("*"), S("(?i)a"), S("[b-a]"));
}
