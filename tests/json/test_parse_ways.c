/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parser has a way for each kind of machine. All that this machine can run, and the one for
 * machines that are not known, have to say the same about every text.
 */

#include "../t.h"
#include "base/text/str.h"
#include "json/parse/internal.h"

static peg__parse_values_fn parse_portable;

#define PEG__PORTABLE
#define PARSE_VALUES parse_portable
/* Without -O2 gcc does not see that a fraction that was read has digits. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "json/parse/values.h"

enum { MAX_TEXT = 40000, MAX_WAYS = PEG__PARSE_WAYS + 1 };

/* ---- fixture ---------------------------------------------------------------- */

struct outcome {
    peg_json_doc *doc;
    peg_status status;
    peg_error error;
};

static struct outcome outcomes[MAX_WAYS];
static peg__parse_values_fn *ways[MAX_WAYS];
static size_t n_ways;

static void start(void)
{
    n_ways = peg__parse_ways(ways);
    ways[n_ways++] = parse_portable;
    for (size_t i = 0; i < n_ways; i++)
        CHECK_INT(peg_json_parse(peg__str("0"), NULL, &outcomes[i].doc, NULL), PEG_OK);
}

static void end(void)
{
    for (size_t i = 0; i < n_ways; i++)
        outcomes[i].doc = peg_json_doc_free(outcomes[i].doc);
}

static bool is_same_value(const peg_json *a, const peg_json *b)
{
    if (a->kind != b->kind || a->form != b->form || a->exponent != b->exponent || a->len != b->len)
        return false;
    if (a->kind == PEG_JSON_STRING || a->form == PEG_JSON_FORM_TEXT)
        return memcmp(a->u.ptr, b->u.ptr, a->len) == 0;
    return a->u.number == b->u.number;
}

static bool is_same_document(const peg_json_doc *a, const peg_json_doc *b)
{
    const size_t n = peg_json_extent(peg_json_root(a));

    for (size_t i = 0; i < n; i++)
        if (!is_same_value(&peg_json_root(a)[i], &peg_json_root(b)[i]))
            return false;
    return true;
}

static bool is_same_outcome(const struct outcome *a, const struct outcome *b)
{
    if (a->status != b->status)
        return false;
    if (a->status == PEG_OK)
        return is_same_document(a->doc, b->doc);
    return a->error.offset == b->error.offset && a->error.line == b->error.line &&
           strcmp(a->error.code, b->error.code) == 0 &&
           strcmp(a->error.message, b->error.message) == 0;
}

/* What all ways say about a text. */
static peg_status outcome_of(peg_str text)
{
    static const peg_json_options options = {PEG_JSON_OPTIONS_INIT,
                                             .duplicates = PEG_JSON_FIRST_WINS};

    for (size_t i = 0; i < n_ways; i++) {
        struct outcome *o = &outcomes[i];

        o->status = peg__json_reparse_by(ways[i], o->doc, text, &options, &o->error);
        if (i && !is_same_outcome(&outcomes[0], o))
            T_FAIL("way %zu: status %d, offset %zu; way 0: status %d, offset %zu; text %.*s", i,
                   (int)o->status, o->error.offset, (int)outcomes[0].status,
                   outcomes[0].error.offset, (int)(text.len < 300 ? text.len : 300), text.ptr);
    }
    return outcomes[0].status;
}

/* ---- texts that are made up --------------------------------------------------- */

struct maker {
    char text[MAX_TEXT + 64];
    size_t len;
    uint64_t dice;
};

static size_t throw_below(struct maker *m, size_t limit)
{
    m->dice ^= m->dice << 13;
    m->dice ^= m->dice >> 7;
    m->dice ^= m->dice << 17;
    return (size_t)(m->dice >> 20) % limit;
}

static void add(struct maker *m, const char *bytes)
{
    const size_t n = strlen(bytes);

    if (m->len + n < MAX_TEXT) {
        memcpy(m->text + m->len, bytes, n);
        m->len += n;
    }
}

static void add_one_of(struct maker *m, const char *const *choices, size_t n)
{
    add(m, choices[throw_below(m, n)]);
}

#define ADD_ONE_OF(m, ...)                                                                         \
    add_one_of(m, (const char *const[]){__VA_ARGS__},                                              \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void add_space(struct maker *m)
{
    if (throw_below(m, 4) == 0)
        ADD_ONE_OF(m, " ", "  ", "\n", "\t\r\n ", "\n                    ");
}

static void add_string(struct maker *m)
{
    add(m, "\"");
    for (size_t n = throw_below(m, throw_below(m, 8) ? 6 : 60); n > 0; n--)
        ADD_ONE_OF(m, "a", "bc", "plain text ", "{[,:]}", "\\n", "\\\\", "\\\"", "\\\\\\\\\\\"",
                   "\\u00e9", "\\ud83d\\ude00", "\xC3\xA9", "\xE6\x9D\xB1", "\xF0\x9F\x99\x82",
                   "0123456789abcdef0123456789abcdef");
    add(m, "\"");
}

static void add_scalar(struct maker *m)
{
    if (throw_below(m, 2))
        add_string(m);
    else
        ADD_ONE_OF(m, "0", "-0", "1", "-12", "1234567", "12345678", "123456789012345",
                   "123456789012345678", "1234567890123456789", "12345678901234567890", "0.5",
                   "-1.25", "1234567.1234567", "12345678.5", "1.12345678", "0.0", "-0.0", "1e5",
                   "1.5E-7", "2e+3", "true", "false", "null");
}

/* Opens and closes containers as the dice fall; in the end all are closed. */
static void make_text(struct maker *m, size_t n_steps)
{
    char closers[64];
    size_t depth = 0;
    bool is_first = true;

    m->len = 0;
    for (; n_steps > 0 || depth > 0; n_steps -= n_steps > 0) {
        add_space(m);
        if (depth > 0 && (n_steps == 0 || throw_below(m, 5) == 0)) {
            add(m, closers[--depth] == '}' ? "}" : "]");
            is_first = false;
            if (depth == 0)
                return;
            continue;
        }
        if (depth > 0 && !is_first)
            add(m, ",");
        add_space(m);
        if (depth > 0 && closers[depth - 1] == '}') {
            add_string(m);
            add_space(m);
            add(m, ":");
            add_space(m);
        }
        if (depth == 0 || (depth < 60 && throw_below(m, 4) == 0)) {
            closers[depth++] = throw_below(m, 2) ? '}' : ']';
            add(m, closers[depth - 1] == '}' ? "{" : "[");
            is_first = true;
        } else {
            add_scalar(m);
            is_first = false;
        }
    }
}

static void spoil(struct maker *m)
{
    static const char bytes[] = "\"\\{}[]:,0e.-t \n\f\x1A\x7F\x80\xC3\xFF";

    for (size_t n = 1 + throw_below(m, 3); n > 0; n--)
        m->text[throw_below(m, m->len)] = bytes[throw_below(m, sizeof(bytes))]; /* NUL too */
}

/* ---- tests -------------------------------------------------------------------- */

static struct maker maker;

TEST(every_way_says_the_same_about_texts_made_up)
{
    start();
    maker.dice = 88172645463325252;
    for (size_t i = 0; i < t_rounds(3000); i++) {
        make_text(&maker, 1 + throw_below(&maker, i % 50 ? 60 : 3000));
        if (maker.len < MAX_TEXT - 100)
            CHECK_INT(outcome_of(peg__strn(maker.text, maker.len)), PEG_OK);
    }
    end();
}

TEST(every_way_says_the_same_about_texts_that_are_spoiled)
{
    start();
    maker.dice = 1181783497276652981;
    for (size_t i = 0; i < t_rounds(20000); i++) {
        make_text(&maker, 1 + throw_below(&maker, i % 200 ? 40 : 2000));
        spoil(&maker);
        outcome_of(peg__strn(maker.text, maker.len));
    }
    end();
}

/* A token at every place of a block and across the end of a window, behind space. */
TEST(every_way_reads_tokens_at_every_place)
{
    static const char *const tokens[] = {
        "[\"a\"]",
        "{\"key\":\"value\",\"k2\":12345.5}",
        "[true,false,null,-1.5e3,\"\"]",
        "[\"\\\\\",\"\\\"\",\"\\\\\\\\\\\"x\",\"\xC3\xA9\\n\"]",
        "\"0123456789012345678901234567890123456789012345678901234567890123456789\"",
        "123456789",
    };
    static char text[2 * PEG__WINDOW + 400];

    start();
    for (size_t t = 0; t < sizeof(tokens) / sizeof(*tokens); t++) {
        const size_t len = strlen(tokens[t]);

        for (size_t i = 0; i < 2 * PEG__BLOCK; i++) {
            memset(text, ' ', sizeof(text));
            memcpy(text + i, tokens[t], len);
            CHECK_INT(outcome_of(peg__strn(text, i + len)), PEG_OK);
            CHECK_INT(outcome_of(peg__strn(text, sizeof(text))), PEG_OK);
        }
    }
    end();
}

/* In an array, so that the window starts at the text's start. */
TEST(every_way_reads_tokens_across_the_end_of_a_window)
{
    static const char tail[] = ",\"a\\\\\\\"b\xC3\xA9\",{\"key\":[12.5,true]},\"plain\"]";
    static char text[PEG__WINDOW + 400];

    start();
    for (size_t at = PEG__WINDOW - 100; at < PEG__WINDOW + 4; at++) {
        memset(text, ' ', sizeof(text));
        text[0] = '[';
        text[1] = '1';
        memcpy(text + at, tail, sizeof(tail) - 1);
        CHECK_INT(outcome_of(peg__strn(text, at + sizeof(tail) - 1)), PEG_OK);
        CHECK_INT(peg_json_root(outcomes[0].doc)->len, 4);
        /* The same inside of a string, which then is longer than the window. */
        text[1] = '"';
        memset(text + 2, 'x', at - 3);
        text[at - 1] = '"';
        CHECK_INT(outcome_of(peg__strn(text, at + sizeof(tail) - 1)), PEG_OK);
        CHECK_INT(peg_json_root(outcomes[0].doc)->len, 4);
    }
    end();
}

TEST(every_way_counts_backslashes)
{
    static char text[400];

    start();
    for (size_t before = 0; before < 70; before++) {
        for (size_t n = 0; n < 140; n++) {
            memset(text, 'x', sizeof(text));
            memcpy(text, "[\"", 2);
            memset(text + 2 + before, '\\', n);
            memcpy(text + 2 + before + n, "\",1]", 4);
            /* An odd number escapes the quote, and the string never ends. */
            CHECK_INT(outcome_of(peg__strn(text, before + n + 6)), n % 2 ? PEG_EPARSE : PEG_OK);
        }
    }
    end();
}

TEST(every_way_refuses_every_beginning_of_a_text)
{
    static const char beginning[] =
        "{\"a\":[1.5,true,null,\"\\u00e9\xC3\xA9\\\\\"],\"b\":{\"c\":\"";
    static char text[2 * PEG__WINDOW];
    const size_t n = sizeof(beginning) - 1;

    start();
    memset(text, 'y', sizeof(text));
    memcpy(text, beginning, n);
    for (size_t len = 0; len < n + 200; len++)
        CHECK_INT(outcome_of(peg__strn(text, len)), PEG_EPARSE);
    for (size_t len = PEG__WINDOW - 2; len < PEG__WINDOW + 70; len++) {
        CHECK_INT(outcome_of(peg__strn(text, len)), PEG_EPARSE);
        CHECK_INT(outcomes[0].error.offset, len);
        CHECK_STR(peg__str(outcomes[0].error.message), "the text ends in the middle of a value");
    }
    end();
}

TEST(every_way_refuses_what_stands_behind_a_token)
{
    static const char *const texts[] = {
        "[12x]", "[truex]", "[1\"a\"]", "[\"a\"1]", "{\"a\"1}", "[nulll]",  "12x",
        "truex", "1\"a\"",  "[1 2]",    "[1,\f2]",  "[1\f]",    "[1,\x1A]", "[1,\xC3\xA9]",
        "[-]",   "[1,:2]",  "[[]1]",    "{\"a\":}", "[1,]",     "[1}"};

    start();
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK_INT(outcome_of(peg__str(texts[i])), PEG_EPARSE);
    CHECK_INT(outcome_of(peg__strn("[1,\0002]", 7)), PEG_EPARSE);
    CHECK_INT(outcomes[0].error.offset, 3);
    CHECK_INT(outcome_of(peg__strn("[1]\0", 4)), PEG_EPARSE);
    CHECK_INT(outcomes[0].error.offset, 3);
    CHECK_INT(outcome_of(peg__strn("[\"a\0b\"]", 7)), PEG_EPARSE);
    CHECK_INT(outcomes[0].error.offset, 3);
    end();
}

/* ---- strings whose value is known ------------------------------------------------ */

/* A piece of a string as it is written, and what it means. */
static const struct piece {
    const char *written;
    const char *meant;
} pieces[] = {
    {"\\n", "\n"},
    {"\\\"", "\""},
    {"\\\\", "\\"},
    {"\\/", "/"},
    {"\\t", "\t"},
    {"\\u00e9", "\xC3\xA9"},
    {"\\u20AC", "\xE2\x82\xAC"},
    {"\\ud83d\\ude00", "\xF0\x9F\x98\x80"},
    {"\xC3\xA9", "\xC3\xA9"},
    {"\xE6\x9D\xB1", "\xE6\x9D\xB1"},
    {"\xE0\xA4\x85", "\xE0\xA4\x85"},
    {"\xED\x9F\xBF", "\xED\x9F\xBF"},
    {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
};

static struct maker meaning;

/* Plain bytes, mostly few, now and then more than are unescaped aside. */
static void add_plain(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char byte[2] = {(char)('a' + i % 26), '\0'};

        add(&maker, byte);
        add(&meaning, byte);
    }
}

static void add_piece(void)
{
    const struct piece *piece = &pieces[throw_below(&maker, sizeof(pieces) / sizeof(*pieces))];

    add(&maker, piece->written);
    add(&meaning, piece->meant);
    if (throw_below(&maker, 3) == 0)
        add_plain(throw_below(&maker, 60) ? throw_below(&maker, 90) : throw_below(&maker, 2500));
}

/* [   "...","next"], the string anywhere in a window. */
static void make_string(size_t n_pieces)
{
    maker.len = 0;
    meaning.len = 0;
    add(&maker, "[");
    for (size_t i = throw_below(&maker, PEG__WINDOW + 100); i > 0; i--)
        add(&maker, " ");
    add(&maker, "\"");
    for (size_t i = 0; i < n_pieces; i++)
        add_piece();
    add(&maker, "\",\"next\"]");
}

TEST(every_way_unescapes_strings_of_any_length)
{
    start();
    maker.dice = 2862933555777941757;
    for (size_t i = 0; i < t_rounds(2000); i++) {
        make_string(1 + throw_below(&maker, i % 4 ? 12 : 800));
        CHECK_INT(outcome_of(peg__strn(maker.text, maker.len)), PEG_OK);
        CHECK_INT(peg_json_root(outcomes[0].doc)->len, 2);
        CHECK_INT(peg_json_root(outcomes[0].doc)[1].len, meaning.len);
        CHECK(memcmp(peg_json_root(outcomes[0].doc)[1].u.ptr, meaning.text, meaning.len) == 0);
        CHECK_STR(peg_json_str(&peg_json_root(outcomes[0].doc)[2]), "next");
    }
    end();
}

/* ---- space -------------------------------------------------------------------------- */

static void add_spaces(size_t max)
{
    for (size_t i = throw_below(&maker, max + 1); i > 0; i--)
        ADD_ONE_OF(&maker, " ", " ", " ", " ", "\n", "\t", "\r");
}

/* Tokens with any space between them; behind the token `spoiled` also a byte that is none. */
static void make_spaced(size_t max, size_t spoiled, const char *with)
{
    static const char *const tokens[] = {
        "{", "\"a\"", ":", "[", "1",     ",", "-2.5", ",", "[",        "]", ",",
        "{", "}",     "]", ",", "\"b\"", ":", "true", ",", "\"c\\n\"", ":", "\"\xC3\xA9\"",
        ",", "\"d\"", ":", "{", "\"e\"", ":", "null", "}", "}"};

    maker.len = 0;
    add_spaces(max);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
        add(&maker, tokens[i]);
        add_spaces(max);
        if (i == spoiled) {
            add(&maker, with);
            add_spaces(max);
        }
    }
}

TEST(every_way_passes_any_space_between_tokens)
{
    enum { N_VALUES = 15 };

    start();
    maker.dice = 3202034522624059733;
    for (size_t i = 0; i < t_rounds(3000); i++) {
        make_spaced(i % 10 ? i % 7 : 300, SIZE_MAX, "");
        CHECK_INT(outcome_of(peg__strn(maker.text, maker.len)), PEG_OK);
        CHECK_INT(peg_json_extent(peg_json_root(outcomes[0].doc)), N_VALUES);
    }
    end();
}

TEST(every_way_refuses_what_is_no_space_between_tokens)
{
    static const char *const wrong[] = {"\f", "\v", "\x01", "\x1A", "\xC2\xA0", "/", "+"};

    start();
    maker.dice = 1099511628211;
    for (size_t i = 0; i < t_rounds(3000); i++) {
        make_spaced(i % 10 ? i % 5 : 100, i % 31, wrong[i % 7]);
        CHECK_INT(outcome_of(peg__strn(maker.text, maker.len)), PEG_EPARSE);
    }
    end();
}
