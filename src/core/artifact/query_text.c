/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What every artifact can be asked: its size, some of its lines, the lines that match. Lines end
 * at LF alone, so a CR stays at the end of its line; they are counted from 0.
 *
 * grep runs a pattern that a model wrote over bytes that somebody else wrote. Each line has the
 * match limits of base/text/regex.h, all together have those of peg__query_check().
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "core/artifact/query.h"
#include "schema/pattern/pattern.h"
#include "json/json.h"

enum {
    DEFAULT_LINES = 10,
    /* Kept free for the last line of an answer that is cut. */
    NOTE_BYTES = 320,
    /* Between two looks at the clock, each of which takes as long as some five short lines. */
    LINES_PER_CHECK = 64,
    LONG_LINE = 4096,
};

PEG_DEFINE_CLEANUP(struct peg__pattern, peg__pattern_free)
PEG_DEFINE_CLEANUP(struct peg__matcher, peg__matcher_free)

/* ---- lines from here to there -------------------------------------------------------------- */

/* An answer of lines. */
struct answer {
    struct peg__buf *out;
    size_t n; /* lines so far */
};

/* False if the line does not fit, so that a last line that reports the cut fits. The answer
 * then ends before the line; if it is the first, within it. */
static bool add_line(struct answer *answer, peg_str line)
{
    struct peg__buf *out = answer->out;
    const size_t before = out->len;
    const size_t max = out->max;

    out->max = max > NOTE_BYTES ? max - NOTE_BYTES : 0;
    if (answer->n > 0)
        peg__buf_putc(out, '\n');
    peg__query_put(out, line);
    out->max = max;
    if (out->status != PEG_ELIMIT) {
        answer->n++;
        return true;
    }
    out->status = PEG_OK;
    if (answer->n > 0) {
        out->len = before;
        out->ptr[before] = '\0';
    }
    return false;
}

static void note_cut(const struct answer *answer, size_t first, size_t end)
{
    struct peg__buf *out = answer->out;
    const size_t next = first + answer->n;

    peg__buf_printf(out, "\n[cut: the answer reached its limit of %zu bytes; ", out->max);
    if (answer->n == 0)
        peg__buf_printf(out,
                        "this is the start of line %zu; go on after it with artifact_cat, "
                        "start %zu]",
                        first, first + 1);
    else
        peg__buf_printf(out,
                        "these are the first %zu of %zu lines; go on with artifact_cat, start "
                        "%zu]",
                        answer->n, end - first, next);
}

static peg_status put_lines(const struct peg__query *query, size_t first, size_t end,
                            struct peg__buf *out, peg_error *reterr)
{
    struct answer answer = {.out = out};
    struct peg__lines lines;
    peg_str line;
    peg_status status;

    if (first >= end) {
        peg__buf_puts(out, "(empty list)");
        return PEG_OK;
    }
    status = peg__artifact_lines(query->artifact, first, &lines, reterr);
    if (status)
        return status;
    for (size_t i = first; i < end && !out->status && peg__lines_next(&lines, &line); i++) {
        if (!add_line(&answer, line)) {
            note_cut(&answer, first, end);
            break;
        }
    }
    return PEG_OK;
}

static peg_status head(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const size_t n = peg__query_size(query, "n", DEFAULT_LINES);
    size_t count;
    const peg_status status = peg_artifact_line_count(query->artifact, &count, reterr);

    return status ? status : put_lines(query, 0, n < count ? n : count, out, reterr);
}

static peg_status cat(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const size_t start = peg__query_size(query, "start", 0);
    const size_t end = peg__query_size(query, "end", SIZE_MAX);
    size_t count;
    const peg_status status = peg_artifact_line_count(query->artifact, &count, reterr);

    return status ? status : put_lines(query, start, end < count ? end : count, out, reterr);
}

/* Where the last lines start that fit together, at `first` or after it. What is counted is never
 * too little: bytes that are not UTF-8 become three each. */
static size_t last_that_fit(peg_str bytes, size_t first, size_t count, size_t max)
{
    size_t n_bytes = 0;
    size_t i = count;

    while (i > first) {
        const char *newline = bytes.len ? memrchr(bytes.ptr, '\n', bytes.len) : NULL;
        const size_t start = newline ? (size_t)(newline - bytes.ptr) + 1 : 0;
        const peg_str line = peg__str_from(bytes, start);

        n_bytes += 1 + (peg__utf8_is_valid(line) ? line.len : 3 * line.len);
        if (n_bytes > max)
            break;
        i--;
        bytes.len = start ? start - 1 : 0;
    }
    return i;
}

/* Of too many lines the last are what was asked for. */
static peg_status put_last(const struct peg__query *query, size_t first, size_t count,
                           struct peg__buf *out, peg_error *reterr)
{
    const size_t max = out->max > NOTE_BYTES ? out->max - NOTE_BYTES : 0;
    peg_str bytes;
    size_t start;
    peg_status status = peg_artifact_bytes(query->artifact, &bytes, reterr);

    if (status)
        return status;
    start = last_that_fit(bytes, first, count, max);
    if (start == count) /* a single line that is too long, or none at all */
        return put_lines(query, count ? count - 1 : 0, count, out, reterr);
    status = put_lines(query, start, count, out, reterr);
    if (status == PEG_OK && start > first)
        peg__buf_printf(out,
                        "\n[cut: the answer reached its limit of %zu bytes; these are the last %zu "
                        "of %zu lines; "
                        "read those before with artifact_cat, end %zu]",
                        out->max, count - start, count - first, start);
    return status;
}

static peg_status tail(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const size_t n = peg__query_size(query, "n", DEFAULT_LINES);
    size_t count;
    const peg_status status = peg_artifact_line_count(query->artifact, &count, reterr);

    return status ? status : put_last(query, n < count ? count - n : 0, count, out, reterr);
}

/* ---- lines that match ------------------------------------------------------------------------ */

struct search {
    const struct peg__query *query;
    struct peg__pattern *pattern;
    struct peg__matcher *matcher;
    struct peg__buf valid; /* a line that is not UTF-8, made so: patterns are about characters */
    struct answer answer;
};

static unsigned read_flags(peg_str letters)
{
    unsigned flags = 0;

    for (size_t i = 0; i < letters.len; i++) {
        if (letters.ptr[i] == 'i')
            flags |= PEG__PATTERN_CASELESS;
        else if (letters.ptr[i] == 'm')
            flags |= PEG__PATTERN_MULTILINE;
        else if (letters.ptr[i] == 's')
            flags |= PEG__PATTERN_DOTALL;
    }
    return flags; /* u is always on */
}

/* The commonest mistake, which has a better remedy here than in a schema. */
static bool begins_with_flags(peg_str ecma)
{
    return ecma.len > 2 && ecma.ptr[0] == '(' && ecma.ptr[1] == '?' && ecma.ptr[2] &&
           strchr("imsx-", ecma.ptr[2]);
}

static peg_status compile_pattern(peg_str ecma, unsigned flags, struct peg__pattern **ret_pattern,
                                  peg_error *reterr)
{
    peg_error why;
    const peg_status status =
        peg__pattern_new_with_flags(ecma, flags, PEG_LIMIT_PATTERN_BYTES, ret_pattern, &why);

    if (status == PEG_OK)
        return PEG_OK;
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status == PEG_EPARSE && begins_with_flags(ecma))
        return peg__fail(reterr, status, why.code,
                         "'pattern' cannot begin with (?%c...): leave that out and write the "
                         "letters into 'flags'",
                         ecma.ptr[2]);
    if (why.column)
        return peg__fail(reterr, status, why.code, "'pattern' cannot be used, at byte %u: %s",
                         why.column, why.message);
    return peg__fail(reterr, status, why.code, "'pattern' cannot be used: %s", why.message);
}

static peg_status fail_match(enum peg__match result, size_t i, peg_error *reterr)
{
    if (result == PEG__MATCH_NOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_QUERY_LIMIT",
                     "matching 'pattern' takes more than %d steps at line %zu; "
                     "write a simpler one, without repetition inside repetition such as (a+)+ or "
                     ".*.*",
                     PEG_LIMIT_MATCH, i);
}

static enum peg__match match_line(struct search *s, peg_str line)
{
    if (peg__utf8_is_valid(line))
        return peg__pattern_match(s->pattern, s->matcher, line);
    peg__buf_clear(&s->valid);
    peg__query_put(&s->valid, line);
    if (s->valid.status)
        return PEG__MATCH_NOMEM;
    return peg__pattern_match(s->pattern, s->matcher, peg__buf_view(&s->valid));
}

/* The answer is full: its last line says where the search stopped. */
static void note_stop(const struct answer *answer, size_t i)
{
    struct peg__buf *out = answer->out;

    peg__buf_printf(
        out,
        "\n[cut: the answer reached its limit of %zu bytes at line %zu%s; write a pattern that "
        "matches less, or read on with artifact_cat, start %zu]",
        out->max, i, answer->n ? "" : ", of which this is the start", answer->n ? i : i + 1);
}

static peg_status search_lines(struct search *s, peg_error *reterr)
{
    struct peg__lines lines;
    peg_str line;
    peg_status status = peg__artifact_lines(s->query->artifact, 0, &lines, reterr);

    for (size_t i = 0; !status && peg__lines_next(&lines, &line); i++) {
        const enum peg__match result = match_line(s, line);

        if (result > PEG__MATCH_YES)
            return fail_match(result, i, reterr);
        if (result == PEG__MATCH_YES && !add_line(&s->answer, line)) {
            note_stop(&s->answer, i);
            return PEG_OK;
        }
        if (i % LINES_PER_CHECK == 0 || line.len > LONG_LINE)
            status = peg__query_check(s->query, reterr);
    }
    if (!status && s->answer.n == 0)
        peg__buf_puts(s->answer.out, "(empty list)");
    return status;
}

static peg_status grep(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const unsigned flags = read_flags(peg__query_string(query, "flags"));
    PEG_CLEANUP(peg__pattern_freep) struct peg__pattern *pattern = NULL;
    PEG_CLEANUP(peg__matcher_freep) struct peg__matcher *matcher = NULL;
    struct search s = {
        .query = query, .valid = PEG__BUF(PEG_LIMIT_TEXT_BYTES), .answer = {.out = out}};
    peg_status status =
        compile_pattern(peg__query_string(query, "pattern"), flags, &pattern, reterr);

    if (status)
        return status;
    matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    if (!matcher)
        return peg__fail_nomem(reterr);
    s.pattern = pattern;
    s.matcher = matcher;
    status = search_lines(&s, reterr);
    peg__buf_free(&s.valid);
    return status;
}

/* ---- sizes ------------------------------------------------------------------------------------
 */

static peg_status byte_length(const struct peg__query *query, struct peg__buf *out,
                              peg_error *reterr)
{
    const int64_t length = peg_artifact_byte_length(query->artifact);
    peg_str bytes;

    /* Reading it tells why there is no length. */
    if (length < 0) {
        const peg_status status = peg_artifact_bytes(query->artifact, &bytes, reterr);

        if (status)
            return status;
    }
    peg__buf_printf(out, "%lld", length < 0 ? (long long)bytes.len : (long long)length);
    return PEG_OK;
}

static peg_status line_count(const struct peg__query *query, struct peg__buf *out,
                             peg_error *reterr)
{
    size_t n;
    const peg_status status = peg_artifact_line_count(query->artifact, &n, reterr);

    if (status == PEG_OK)
        peg__buf_printf(out, "%zu", n);
    return status;
}

static peg_status estimate_tokens(const struct peg__query *query, struct peg__buf *out,
                                  peg_error *reterr)
{
    const peg_json *encoding = peg_json_get(query->args, "encoding");
    peg_str bytes;
    size_t n;
    peg_status status = peg_artifact_bytes(query->artifact, &bytes, reterr);

    if (status)
        return status;
    status = peg_token_count_estimate(
        encoding && encoding->kind == PEG_JSON_STRING ? encoding->u.ptr : "", bytes, &n, reterr);
    if (status == PEG_OK)
        peg__buf_printf(out, "%zu", n);
    return status;
}

/* ---- the kind ----------------------------------------------------------------------------------
 */

PEG__DEFINE_QUERY(run_head, head)
PEG__DEFINE_QUERY(run_tail, tail)
PEG__DEFINE_QUERY(run_grep, grep)
PEG__DEFINE_QUERY(run_cat, cat)
PEG__DEFINE_QUERY(run_byte_length, byte_length)
PEG__DEFINE_QUERY(run_line_count, line_count)
PEG__DEFINE_QUERY(run_estimate_tokens, estimate_tokens)

static const peg_artifact_query queries[] = {
    {
        .name = "artifact_head",
        .description = "Return the first n lines of an artifact, the stored result of an earlier "
                       "tool call. Start here to see what it looks like.",
        .properties = "{\"n\":{\"type\":\"integer\",\"minimum\":1,\"default\":10,\"description\":"
                      "\"How many lines; all of them if there are fewer.\"}}",
        .run = run_head,
    },
    {
        .name = "artifact_tail",
        .description = "Return the last n lines of an artifact, the stored result of an earlier "
                       "tool call. A text that ends with a line feed has an empty last line.",
        .properties = "{\"n\":{\"type\":\"integer\",\"minimum\":1,\"default\":10,\"description\":"
                      "\"How many lines; all of them if there are fewer.\"}}",
        .run = run_tail,
    },
    {
        .name = "artifact_grep",
        .description = "Return the lines of an artifact that match a regular expression, whole and "
                       "in order, or \"(empty list)\" if none does. Each line is searched by "
                       "itself.",
        .properties =
            "{\"pattern\":{\"type\":\"string\",\"description\":\"JavaScript regular expression "
            "without slashes, such as \\\"error|warning\\\" or \\\"^id: \\\\d+\\\"; it may "
            "match anywhere in a line.\"},"
            "\"flags\":{\"type\":\"string\",\"pattern\":\"^[imsu]*$\",\"description\":\"Any of i "
            "(ignore case), m (^ and $ also match beside a carriage return, as at the line ends of "
            "Windows files), s (the dot matches everything), u (always on). \\\"\\\" means no "
            "flags, the same as leaving it out. g and y are not allowed: all matching lines are "
            "returned anyway.\"}}",
        .required = "[\"pattern\"]",
        .run = run_grep,
    },
    {
        .name = "artifact_cat",
        .description = "Return the lines from start to before end of an artifact, the stored "
                       "result of an earlier tool call. Lines are counted from 0.",
        .properties = "{\"start\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"First "
                      "line, counted from 0. Left out: from the first line.\"},"
                      "\"end\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Line to stop "
                      "before. Left out, or beyond the last line: to the end.\"}}",
        .run = run_cat,
    },
    {
        .name = "artifact_byte_length",
        .description = "Return the size of an artifact in bytes.",
        .run = run_byte_length,
    },
    {
        .name = "artifact_line_count",
        .description = "Return how many lines an artifact has.",
        .run = run_line_count,
    },
    {
        .name = "artifact_estimate_tokens",
        .description = "Return about how many tokens an artifact would take in a prompt: an "
                       "estimate from its size. Ask this before reading much of it.",
        .properties = "{\"encoding\":{\"type\":\"string\",\"description\":\"Whose tokens, such as "
                      "\\\"claude\\\" or \\\"o200k_base\\\".\"}}",
        .required = "[\"encoding\"]",
        .run = run_estimate_tokens,
    },
};

const peg_artifact_kind peg_artifact_text = {
    .name = "text",
    .queries = queries,
    .n_queries = sizeof(queries) / sizeof(*queries),
};

/* Which encodings there are is known only now. */
static void put_encodings(struct peg__buf *out)
{
    char names[PEG_LIMIT_TOKEN_ENCODINGS][PEG__TOKEN_COUNTER_NAME];
    const size_t n = peg__token_counter_names(names);

    peg__buf_puts(out, "{\"encoding\":{\"type\":\"string\",\"enum\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            peg__buf_putc(out, ',');
        peg__json_write_string(peg__str(names[i]), out);
    }
    peg__buf_puts(out, "],\"description\":\"Whose tokens: the encoding of your model, or "
                       "\\\"claude\\\", \\\"gemini\\\", \\\"llama2\\\" for theirs.\"}}");
}

void peg__query_properties(const peg_artifact_query *query, struct peg__buf *out)
{
    if (query->run == run_estimate_tokens)
        put_encodings(out);
    else
        peg__buf_puts(out, query->properties ? query->properties : "{}");
}
