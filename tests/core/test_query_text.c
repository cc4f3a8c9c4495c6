/* SPDX-License-Identifier: Apache-2.0 */

#include "ask.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "json/json.h"

/* ---- fixture ------------------------------------------------------------------------------- */

struct text_case {
    const char *text;
    const char *args;
    const char *answer;
};

static void check_cases(const char *query, const struct text_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK_ASK(&peg_artifact_text, cases[i].text, query, cases[i].args, cases[i].answer);
}

#define CHECK_CASES(query, cases) check_cases(query, cases, sizeof(cases) / sizeof(*(cases)))

/* A text of n equal lines. */
static peg_str many_lines(struct peg__buf *buf, const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        peg__buf_puts(buf, line);
        peg__buf_putc(buf, '\n');
    }
    CHECK_INT(buf->status, PEG_OK);
    return peg__buf_view(buf);
}

static struct peg__buf answer_of(peg_str bytes, const char *query, const char *args)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    CHECK_INT(
        ask(&(struct ask){.kind = &peg_artifact_text, .bytes = bytes, .query = query, .args = args},
            &out),
        PEG_OK);
    CHECK(peg__utf8_is_valid(peg__buf_view(&out)));
    CHECK(out.len <= PEG_LIMIT_QUERY_BYTES);
    return out;
}

static size_t count_lines(peg_str text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

/* The last line of an answer. */
static peg_str last_line(const struct peg__buf *answer)
{
    const char *newline = memrchr(answer->ptr, '\n', answer->len);

    CHECK(newline);
    return peg__str(newline + 1);
}

/* ---- lines ------------------------------------------------------------------------------------
 */

/* T118 */
TEST(head_returns_the_first_lines)
{
    static const struct text_case cases[] = {
        {"a\nb\nc", "{\"n\":2}", "a\nb"},
        {"a\nb\nc", "{\"n\":3}", "a\nb\nc"},
        {"a\nb\nc", "{\"n\":99}", "a\nb\nc"},
        {"a\nb\nc", "{\"n\":1e30}", "a\nb\nc"},
        {"a\nb\nc", "{\"n\":2.0}", "a\nb"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", "{}", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"},
        {"a\nb\n", "{\"n\":9}", "a\nb\n"}, /* the last line is empty */
        {"a\r\nb\r\n", "{\"n\":1}", "a\r"},
        {"", "{\"n\":1}", "(empty list)"},
        {"\n", "{\"n\":1}", ""},
        {"\n", "{\"n\":2}", "\n"},
    };

    CHECK_CASES("artifact_head", cases);
}

/* T118 */
TEST(tail_returns_the_last_lines)
{
    static const struct text_case cases[] = {
        {"a\nb\nc", "{\"n\":2}", "b\nc"},
        {"a\nb\nc", "{\"n\":3}", "a\nb\nc"},
        {"a\nb\nc", "{\"n\":99}", "a\nb\nc"},
        {"a\nb\nc", "{\"n\":1e30}", "a\nb\nc"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", "{}", "2\n3\n4\n5\n6\n7\n8\n9\n10\n11"},
        {"a\nb\n", "{\"n\":1}", ""}, /* the last line is empty */
        {"a\nb\n", "{\"n\":2}", "b\n"},
        {"a\r\nb\r", "{\"n\":1}", "b\r"},
        {"", "{\"n\":1}", "(empty list)"},
        {"\n\n", "{\"n\":2}", "\n"},
    };

    CHECK_CASES("artifact_tail", cases);
}

/* T118 */
TEST(cat_returns_a_half_open_range_of_lines)
{
    static const struct text_case cases[] = {
        {"a\nb\nc\nd", "{}", "a\nb\nc\nd"},
        {"a\nb\nc\nd", "{\"start\":1}", "b\nc\nd"},
        {"a\nb\nc\nd", "{\"end\":2}", "a\nb"},
        {"a\nb\nc\nd", "{\"start\":1,\"end\":3}", "b\nc"},
        {"a\nb\nc\nd", "{\"start\":2,\"end\":99}", "c\nd"},
        {"a\nb\nc\nd", "{\"start\":0,\"end\":1e300}", "a\nb\nc\nd"},
        {"a\nb\nc\nd", "{\"start\":4}", "(empty list)"},
        {"a\nb\nc\nd", "{\"start\":99}", "(empty list)"},
        {"a\nb\nc\nd", "{\"start\":1e300}", "(empty list)"},
        {"a\nb\nc\nd", "{\"start\":2,\"end\":2}", "(empty list)"},
        {"a\nb\nc\nd", "{\"start\":3,\"end\":1}", "(empty list)"},
        {"a\nb\nc\nd", "{\"end\":0}", "(empty list)"},
        {"a\r\nb\r\n", "{}", "a\r\nb\r\n"},
        {"", "{}", "(empty list)"},
    };

    CHECK_CASES("artifact_cat", cases);
}

/* T118 */
TEST(sizes_are_told_as_numbers)
{
    static const struct {
        const char *text;
        const char *bytes;
        const char *lines;
    } cases[] = {
        {"", "0", "0"},     {"a", "1", "1"},          {"a\n", "2", "2"},  {"\n", "1", "2"},
        {"a\nb", "3", "2"}, {"a\r\nb\r\n", "6", "3"}, {"a\rb", "3", "1"}, {"é\n", "3", "2"},
        {"\r", "1", "1"},   {"a\u2028b", "5", "1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK_ASK(&peg_artifact_text, cases[i].text, "artifact_byte_length", "{}", cases[i].bytes);
        CHECK_ASK(&peg_artifact_text, cases[i].text, "artifact_line_count", "{}", cases[i].lines);
    }
}

TEST(tokens_are_estimated_from_all_bytes)
{
    static const struct text_case cases[] = {
        {"12345678", "{\"encoding\":\"o200k_base\"}", "2"},
        {"123456789", "{\"encoding\":\"o200k_base\"}", "3"},
        {"1234567", "{\"encoding\":\"claude\"}", "2"},
        {"\r\n\r\n", "{\"encoding\":\"gpt2\"}", "1"},
        {"", "{\"encoding\":\"llama2\"}", "0"},
    };

    CHECK_CASES("artifact_estimate_tokens", cases);
}

TEST(tokens_of_an_unknown_encoding_fail_with_those_there_are)
{
    struct peg__buf out = PEG__BUF(10000);

    CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_text,
                                .bytes = peg__str("x"),
                                .query = "artifact_estimate_tokens",
                                .args = "{\"encoding\":\"word\"}"},
                  &out),
              PEG_EHOST);

    CHECK(strstr(out.ptr, "E_TOKENS_UNKNOWN") && strstr(out.ptr, "o200k_base"));
    peg__buf_free(&out);
}

/* ---- grep ---------------------------------------------------------------------------------------
 */

/* T118, T119 */
TEST(grep_returns_whole_matching_lines)
{
    static const struct text_case cases[] = {
        {"one\ntwo\nthree", "{\"pattern\":\"t\"}", "two\nthree"},
        {"one\ntwo\nthree", "{\"pattern\":\"^t.*e$\"}", "three"},
        {"one\ntwo\nthree", "{\"pattern\":\"four\"}", "(empty list)"},
        {"one\ntwo\nthree", "{\"pattern\":\"\"}", "one\ntwo\nthree"},
        {"a\n\nb\n", "{\"pattern\":\"^$\"}", "\n"},            /* two empty lines */
        {"a\nb", "{\"pattern\":\"a\\\\nb\"}", "(empty list)"}, /* no match across lines */
        {"", "{\"pattern\":\"\"}", "(empty list)"},
        {"x=1\ny=22", "{\"pattern\":\"\\\\d{2}\"}", "y=22"},
        {"aa\nab", "{\"pattern\":\"(.)\\\\1\"}", "aa"},
        {"été\nete", "{\"pattern\":\"^.t.$\"}", "été\nete"},
        {"a1\na2\na3", "{\"pattern\":\"(?<!a)1|(?<=a)[23]\"}", "a2\na3"},
    };

    CHECK_CASES("artifact_grep", cases);
}

/* T118: a CR stays in its line; the flag m lets $ match before it. */
TEST(grep_sees_the_carriage_return_of_a_line)
{
    static const struct text_case cases[] = {
        {"foo\r\nbar\r\n", "{\"pattern\":\"foo\"}", "foo\r"},
        {"foo\r\nbar\r\n", "{\"pattern\":\"foo$\"}", "(empty list)"},
        {"foo\r\nbar\r\n", "{\"pattern\":\"foo$\",\"flags\":\"m\"}", "foo\r"},
        {"foo\r\nbar\r\n", "{\"pattern\":\"foo\\\\r$\"}", "foo\r"},
        {"a\rb", "{\"pattern\":\"a.b\"}", "(empty list)"},
        {"a\rb", "{\"pattern\":\"a.b\",\"flags\":\"s\"}", "a\rb"},
    };

    CHECK_CASES("artifact_grep", cases);
}

/* T120: what the schema lets through; what it refuses is in test_forge.c. */
TEST(grep_takes_flags_and_an_empty_string_means_none)
{
    static const struct text_case cases[] = {
        {"Error\nerror", "{\"pattern\":\"error\"}", "error"},
        {"Error\nerror", "{\"pattern\":\"error\",\"flags\":\"\"}", "error"},
        {"Error\nerror", "{\"pattern\":\"error\",\"flags\":\"i\"}", "Error\nerror"},
        {"Error\nerror", "{\"pattern\":\"error\",\"flags\":\"u\"}", "error"},
        {"Error\nerror", "{\"pattern\":\"^ERROR$\",\"flags\":\"usmi\"}", "Error\nerror"},
    };

    CHECK_CASES("artifact_grep", cases);
}

TEST(grep_tells_what_is_wrong_with_a_pattern)
{
    static const struct {
        const char *args;
        const char *code;
        const char *words;
    } cases[] = {
        {"{\"pattern\":\"ab(c\"}", "E_PATTERN_SYNTAX: ", "at byte 5"},
        {"{\"pattern\":\"*a\"}", "E_PATTERN_SYNTAX: ", "nothing to repeat"},
        {"{\"pattern\":\"(?i)error\"}", "E_PATTERN_SYNTAX: ", "into 'flags'"},
        {"{\"pattern\":\"a(?i)error\"}", "E_PATTERN_SYNTAX: ", "both cases"},
        {"{\"pattern\":\"((a{100}){100}){100}\"}", "E_PATTERN_TOO_LARGE: ", "repeat less"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf out = PEG__BUF(10000);

        CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_text,
                                    .bytes = peg__str("x"),
                                    .query = "artifact_grep",
                                    .args = cases[i].args},
                      &out),
                  PEG_EHOST);
        if (strncmp(out.ptr, cases[i].code, strlen(cases[i].code)) != 0 ||
            !strstr(out.ptr, cases[i].words))
            T_FAIL("%s fails with: %s", cases[i].args, out.ptr);
        peg__buf_free(&out);
    }
}

/* ---- bytes that are not UTF-8
 * ---------------------------------------------------------------------- */

TEST(answers_are_utf8_whatever_the_bytes_are)
{
    static const peg_str bytes = PEG_LIT("a\xFF"
                                         "b\n\xC3\n\xED\xA0\x80\nok \xE2\x82");

    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_head", "{}",
                    "a\uFFFDb\n\uFFFD\n\uFFFD\uFFFD\uFFFD\nok \uFFFD\uFFFD");
    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_tail", "{\"n\":2}",
                    "\uFFFD\uFFFD\uFFFD\nok \uFFFD\uFFFD");
    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_grep", "{\"pattern\":\"^a.b$\"}",
                    "a\uFFFDb");
    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_byte_length", "{}", "15");
}

TEST(grep_searches_lines_with_nul_bytes)
{
    static const peg_str bytes = PEG_LIT("a\0b\nc");

    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_grep", "{\"pattern\":\"^c|x\"}", "c");
    CHECK_ASK_BYTES(&peg_artifact_text, bytes, "artifact_grep", "{\"pattern\":\"\\\\0c\"}",
                    "(empty list)");
}

/* ---- limits
 * ---------------------------------------------------------------------------------------- */

TEST(head_that_is_too_long_is_cut_at_a_line_and_says_how_to_go_on)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;
    char next[32];

    many_lines(&text, "0123456789012345678901234567890", 40000); /* 32 bytes each */
    out = answer_of(peg__buf_view(&text), "artifact_cat", "{\"start\":5}");

    snprintf(next, sizeof(next), "start %zu]", 5 + count_lines(peg__buf_view(&out)) - 1);
    CHECK(out.len > PEG_LIMIT_QUERY_BYTES - 400);
    CHECK(strstr(last_line(&out).ptr, "[cut: the answer reached its limit of 1048576 bytes"));
    CHECK(strstr(last_line(&out).ptr, "of 39996 lines"));
    CHECK(strstr(last_line(&out).ptr, next));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(tail_that_is_too_long_keeps_the_end)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;
    char before[32];

    many_lines(&text, "0123456789012345678901234567890", 40000);
    peg__buf_puts(&text, "the end");
    out = answer_of(peg__buf_view(&text), "artifact_tail", "{\"n\":39000}");

    snprintf(before, sizeof(before), "end %zu]", 40001 - (count_lines(peg__buf_view(&out)) - 1));
    CHECK(out.len > PEG_LIMIT_QUERY_BYTES - 400);
    CHECK(strstr(out.ptr + out.len - 300, "\nthe end\n[cut: the answer reached its limit"));
    CHECK(strstr(last_line(&out).ptr, "of 39000 lines"));
    CHECK(strstr(last_line(&out).ptr, before));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(grep_that_finds_too_much_says_where_it_stopped)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out;
    char next[32];

    many_lines(&text, "0123456789012345678901234567890", 40000);
    out = answer_of(peg__buf_view(&text), "artifact_grep", "{\"pattern\":\"9$|0$\"}");

    snprintf(next, sizeof(next), "start %zu]", count_lines(peg__buf_view(&out)) - 1);
    CHECK(strstr(last_line(&out).ptr, "[cut: the answer reached its limit"));
    CHECK(strstr(last_line(&out).ptr, next));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(line_that_is_too_long_is_shown_from_its_start)
{
    static const struct {
        const char *query;
        const char *args;
    } cases[] = {
        {"artifact_head", "{}"},
        {"artifact_tail", "{\"n\":1}"},
        {"artifact_cat", "{\"start\":1}"},
        {"artifact_grep", "{\"pattern\":\"é\"}"},
    };
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&text, "x");
    for (int i = 0; i < 600000; i++) /* 1.2 MB; a character stands across the limit */
        peg__buf_puts(&text, "é");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const bool is_cat = strcmp(cases[i].query, "artifact_cat") == 0;
        struct peg__buf out = answer_of(peg__buf_view(&text), cases[i].query, cases[i].args);

        if (is_cat)
            CHECK_STR(peg__buf_view(&out), "(empty list)");
        else if (count_lines(peg__buf_view(&out)) != 2 || !strstr(last_line(&out).ptr, "start"))
            T_FAIL("%s ends with %s", cases[i].query, last_line(&out).ptr);
        peg__buf_free(&out);
    }
    peg__buf_free(&text);
}

TEST(answers_keep_to_what_the_run_allows_for_a_result)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    many_lines(&text, "0123456789", 1000);
    CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_text,
                                .bytes = peg__buf_view(&text),
                                .query = "artifact_cat",
                                .args = "{}",
                                .max_result_bytes = 1000},
                  &out),
              PEG_OK);

    CHECK(out.len <= 1000);
    CHECK(strstr(last_line(&out).ptr, "[cut: the answer reached its limit of 1000 bytes"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(grep_gives_up_on_a_pattern_that_explodes)
{
    struct peg__buf out = PEG__BUF(10000);

    CHECK_INT(
        ask(&(struct ask){.kind = &peg_artifact_text,
                          .bytes = peg__str("fine\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
                          .query = "artifact_grep",
                          .args = "{\"pattern\":\"^(?=(a+)+$)\"}"},
            &out),
        PEG_EHOST);

    CHECK(strstr(out.ptr, "E_QUERY_LIMIT: "));
    CHECK(strstr(out.ptr, "more than 10000 steps at line 1"));
    peg__buf_free(&out);
}

TEST(grep_stops_when_its_call_is_canceled)
{
    struct peg__buf out = PEG__BUF(10000);
    peg_ctx *root = NULL;
    peg_ctx *ctx = NULL;
    peg_cancel *cancel = NULL;

    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(root, &ctx, &cancel, NULL), PEG_OK);
    peg_cancel_fire(cancel, "enough");
    CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_text,
                                .bytes = peg__str("a\nb"),
                                .query = "artifact_grep",
                                .args = "{\"pattern\":\"b\"}",
                                .ctx = ctx},
                  &out),
              PEG_EHOST);

    CHECK(strstr(out.ptr, "E_CANCELED: "));
    peg__buf_free(&out);
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    peg_ctx_unref(root);
}

TEST(check_ends_a_query_that_takes_too_long)
{
    struct peg__query query = {0};
    peg_error error;

    peg__query_start(&query);
    CHECK_INT(peg__query_check(&query, NULL), PEG_OK);
    query.cpu_until_ns = 0;
    CHECK_INT(peg__query_check(&query, &error), PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_QUERY_LIMIT");
    CHECK(strstr(error.message, "5000 ms"));
}

/* ---- out of memory
 * ------------------------------------------------------------------------------------ */

static peg_status ask_quietly(const char *query, const char *args)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_status status = ask(&(struct ask){.kind = &peg_artifact_text,
                                                .bytes = peg__str("a\xFF\nb\nc"),
                                                .query = query,
                                                .args = args},
                                  &out);

    peg__buf_free(&out);
    return status;
}

TORTURE(lines_survive_any_allocation_failure)
{
    const peg_status status = ask_quietly("artifact_head", "{}");

    return status ? status : ask_quietly("artifact_tail", "{}");
}

TORTURE(grep_survives_any_allocation_failure)
{
    return ask_quietly("artifact_grep", "{\"pattern\":\"a.|^(?!x)b\",\"flags\":\"i\"}");
}

TORTURE(tokens_survive_any_allocation_failure)
{
    return ask_quietly("artifact_estimate_tokens", "{\"encoding\":\"claude\"}");
}
