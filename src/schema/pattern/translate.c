/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the PCRE2 form of an ECMA-262 pattern, one token after the other. What is written means
 * the same under any PCRE2 option but UTF (set), UCP, EXTENDED (not set) and CASELESS (set for the
 * flag i): every character that could be special is escaped, and nothing of PCRE2's own syntax can
 * get through. Flags other than i are written out.
 *
 * Every valid pattern is translated; PCRE2 refuses a few of them, which pattern.c explains.
 *
 * Known differences. With the flag i, \p{Lu} has no small letters, and \b takes U+017F and U+212A
 * for no letters. ECMA-262 unsets the captures in a repeated group at each repetition, PCRE2
 * keeps the last. It shows only where a backreference behind the group refers to an alternative
 * that the last repetition did not take, as in ^(?:(a)|b)*\1$.
 */

#include "base/text/str.h"
#include "schema/pattern/internal.h"

static const char never[] = "[^\\x00-\\x{10ffff}]";
static const char always[] = "\\p{Any}";
#define NOT_LINE_END "[^\\n\\r\xE2\x80\xA8\xE2\x80\xA9]"

/* The items of a class that is \s, and those of \S; ASCII escaped, the rest as UTF-8. */
static const char space_items[] = "\\t-\\r\\x20\xC2\xA0\xE1\x9A\x80\xE2\x80\x80-\xE2\x80\x8A"
                                  "\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80"
                                  "\xEF\xBB\xBF";
static const char not_space_items[] =
    "\\x00-\\x08\\x0e-\\x1f\\x21-\xC2\x9F\xC2\xA1-\xE1\x99\xBF\xE1\x9A\x81-\xE1\xBF\xBF"
    "\xE2\x80\x8B-\xE2\x80\xA7\xE2\x80\xAA-\xE2\x80\xAE\xE2\x80\xB0-\xE2\x81\x9E"
    "\xE2\x81\xA0-\xE2\xBF\xBF\xE3\x80\x81-\xEF\xBB\xBE\xEF\xBC\x80-\xF4\x8F\xBF\xBF";

/* What \w and \W are with the flag i: U+017F is a form of s and U+212A one of k. */
static const char caseless_word[] = "[\\w\xC5\xBF\xE2\x84\xAA]";
static const char caseless_not_word[] = "[^\\w\xC5\xBF\xE2\x84\xAA]";
static const char not_word_items[] = "\\x00-\\/\\:-\\@\\[-\\^\\`\\{-\xF4\x8F\xBF\xBF";
static const char caseless_not_word_items[] =
    "\\x00-\\/\\:-\\@\\[-\\^\\`\\{-\xC5\xBE\xC6\x80-\xE2\x84\xA9\xE2\x84\xAB-\xF4\x8F\xBF\xBF";

struct translation {
    struct peg__pattern_reader reader;
    struct peg__buf *out;
    unsigned flags;
    size_t class_at; /* in out, of the class being written */
    unsigned n_class_items;
    bool class_negated;
    bool keep_captures; /* some backreference may need them */
};

/* The character itself, inside or outside a class. Not a surrogate. */
static void put_char(struct peg__buf *out, uint32_t c)
{
    static const char digits[] = "0123456789abcdef";
    const bool is_word = peg__is_alnum((int)c) || c == '_';

    if (c >= 0x80) {
        peg__buf_utf8(out, c);
    } else if (c <= ' ' || c == 0x7F) {
        const char escape[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};

        peg__buf_add(out, escape, sizeof(escape));
    } else {
        if (!is_word)
            peg__buf_putc(out, '\\');
        peg__buf_putc(out, (char)c);
    }
}

/* Without UCP, \d and \w are ASCII in PCRE2 as they are here. The negated ones are spelt out
 * inside a class: PCRE2 10.42 forgets what is above U+00FF in [^\W\p{L}]. */
static void put_set_in_class(struct peg__buf *out, char letter, bool caseless)
{
    switch (letter) {
    case 'd':
        peg__buf_puts(out, "\\d");
        break;
    case 'w':
        peg__buf_puts(out, caseless ? "\\w\xC5\xBF\xE2\x84\xAA" : "\\w");
        break;
    case 's':
        peg__buf_puts(out, space_items);
        break;
    case 'D':
        peg__buf_puts(out, "\\x00-\\/\\:-\xF4\x8F\xBF\xBF");
        break;
    case 'W':
        peg__buf_puts(out, caseless ? caseless_not_word_items : not_word_items);
        break;
    default: /* S */
        peg__buf_puts(out, not_space_items);
        break;
    }
}

static void put_set(struct peg__buf *out, char letter, bool caseless)
{
    const char escape[] = {'\\', letter};

    if (caseless && (letter == 'w' || letter == 'W')) {
        peg__buf_puts(out, letter == 'w' ? caseless_word : caseless_not_word);
        return;
    }
    if (letter != 's' && letter != 'S') {
        peg__buf_add(out, escape, sizeof(escape));
        return;
    }
    peg__buf_puts(out, letter == 's' ? "[" : "[^");
    peg__buf_puts(out, space_items);
    peg__buf_putc(out, ']');
}

static void put_property(struct peg__buf *out, const struct peg__token *token)
{
    peg__buf_puts(out, token->negated ? "\\P{" : "\\p{");
    peg__buf_puts(out, token->name_prefix);
    peg__buf_add(out, token->name, token->name_len);
    peg__buf_putc(out, '}');
}

static void open_class(struct translation *t, bool negated)
{
    t->class_at = t->out->len;
    t->class_negated = negated;
    t->n_class_items = 0;
    peg__buf_puts(t->out, negated ? "[^" : "[");
}

/* Surrogates are in no UTF-8 subject and PCRE2 refuses them, so a range is cut to what is left. */
static void put_class_range(struct translation *t, uint32_t lo, uint32_t hi)
{
    if (peg__is_surrogate(lo))
        lo = 0xE000;
    if (peg__is_surrogate(hi))
        hi = 0xD7FF;
    if (lo > hi)
        return;
    t->n_class_items++;
    put_char(t->out, lo);
    if (hi > lo) {
        peg__buf_putc(t->out, '-');
        put_char(t->out, hi);
    }
}

static void close_class(struct translation *t)
{
    if (t->n_class_items) {
        peg__buf_putc(t->out, ']');
        return;
    }
    if (t->out->status == PEG_OK)
        t->out->len = t->class_at;
    peg__buf_puts(t->out, t->class_negated ? always : never);
}

static void put_group(struct translation *t, enum peg__group group)
{
    static const char *const openings[] = {
        [PEG__GROUP_CAPTURE] = "(",   [PEG__GROUP_PLAIN] = "(?:",
        [PEG__GROUP_AHEAD] = "(?=",   [PEG__GROUP_NOT_AHEAD] = "(?!",
        [PEG__GROUP_BEHIND] = "(?<=", [PEG__GROUP_NOT_BEHIND] = "(?<!",
    };

    if (group == PEG__GROUP_CAPTURE && !t->keep_captures)
        group = PEG__GROUP_PLAIN; /* faster, and captures are not used */
    peg__buf_puts(t->out, openings[group]);
}

static void put_backref(struct peg__buf *out, const struct peg__token *token)
{
    if (token->number)
        peg__buf_printf(out, "\\g{%u}", token->number);
    else
        peg__buf_puts(out, "(?:)");
}

static void put_repeat(struct peg__buf *out, const struct peg__token *token)
{
    if (token->max == PEG__REPEAT_FOREVER && token->min <= 1)
        peg__buf_putc(out, token->min ? '+' : '*');
    else if (token->min == 0 && token->max == 1)
        peg__buf_putc(out, '?');
    else if (token->max == PEG__REPEAT_FOREVER)
        peg__buf_printf(out, "{%u,}", token->min);
    else
        peg__buf_printf(out, "{%u,%u}", token->min, token->max);
    if (token->lazy)
        peg__buf_putc(out, '?');
}

static void put_plain_text(struct peg__buf *out, uint32_t c)
{
    if (peg__is_surrogate(c))
        peg__buf_puts(out, never);
    else
        put_char(out, c);
}

static void put_in_class(struct translation *t, const struct peg__token *token)
{
    if (token->kind == PEG__TOKEN_CLASS_CLOSE) {
        close_class(t);
    } else if (token->kind == PEG__TOKEN_RANGE) {
        put_class_range(t, token->lo, token->hi);
    } else {
        t->n_class_items++;
        if (token->kind == PEG__TOKEN_SET)
            put_set_in_class(t->out, token->letter, t->flags & PEG__PATTERN_CASELESS);
        else
            put_property(t->out, token);
    }
}

static void put_token(struct translation *t, const struct peg__token *token)
{
    switch (token->kind) {
    case PEG__TOKEN_CHAR:
        put_plain_text(t->out, token->lo);
        break;
    case PEG__TOKEN_ANY:
        peg__buf_puts(t->out, t->flags & PEG__PATTERN_DOTALL ? always : NOT_LINE_END);
        break;
    case PEG__TOKEN_SET:
        put_set(t->out, token->letter, t->flags & PEG__PATTERN_CASELESS);
        break;
    case PEG__TOKEN_PROPERTY:
        put_property(t->out, token);
        break;
    case PEG__TOKEN_START:
        peg__buf_puts(t->out, t->flags & PEG__PATTERN_MULTILINE ? "(?<!" NOT_LINE_END ")" : "^");
        break;
    case PEG__TOKEN_FINISH:
        peg__buf_puts(t->out, t->flags & PEG__PATTERN_MULTILINE ? "(?!" NOT_LINE_END ")" : "\\z");
        break;
    case PEG__TOKEN_BOUNDARY:
        peg__buf_puts(t->out, token->negated ? "\\B" : "\\b");
        break;
    case PEG__TOKEN_GROUP_OPEN:
        put_group(t, token->group);
        break;
    case PEG__TOKEN_GROUP_CLOSE:
        peg__buf_putc(t->out, ')');
        break;
    case PEG__TOKEN_OR:
        peg__buf_putc(t->out, '|');
        break;
    case PEG__TOKEN_BACKREF:
        put_backref(t->out, token);
        break;
    case PEG__TOKEN_REPEAT:
        put_repeat(t->out, token);
        break;
    case PEG__TOKEN_CLASS_OPEN:
        open_class(t, token->negated);
        break;
    case PEG__TOKEN_RANGE:
    case PEG__TOKEN_CLASS_CLOSE:
    case PEG__TOKEN_END:
        break;
    }
}

/* PCRE2 10.42 makes \P{Lu}+ in \P{Lu}+\P{Lm} possessive as if the two shared nothing. */
static bool may_have_property(peg_str ecma)
{
    for (size_t i = 0; i + 1 < ecma.len; i++) {
        if (ecma.ptr[i] == '\\' && (ecma.ptr[i + 1] | 0x20) == 'p')
            return true;
    }
    return false;
}

static peg_status fail_output(peg_status status, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
                     "the pattern is too long once translated; write a shorter one");
}

peg_status peg__pattern_translate(peg_str ecma, struct peg__buf *out, peg_error *reterr)
{
    return peg__pattern_translate_with_flags(ecma, 0, out, reterr);
}

peg_status peg__pattern_translate_with_flags(peg_str ecma, unsigned flags, struct peg__buf *out,
                                             peg_error *reterr)
{
    struct translation t = {
        .out = out, .flags = flags, .keep_captures = peg__pattern_may_refer_back(ecma)};
    struct peg__token token;

    peg__pattern_reader_init(&t.reader, ecma, reterr);
    if (may_have_property(ecma))
        peg__buf_puts(out, "(*NO_AUTO_POSSESS)");
    do {
        const bool in_class = t.reader.in_class;
        const peg_status status = peg__pattern_next(&t.reader, &token);

        if (status)
            return status;
        if (in_class)
            put_in_class(&t, &token);
        else
            put_token(&t, &token);
    } while (token.kind != PEG__TOKEN_END && out->status == PEG_OK);
    return out->status ? fail_output(out->status, reterr) : PEG_OK;
}

bool peg__pattern_is_valid(peg_str ecma)
{
    struct peg__pattern_reader reader;
    struct peg__token token;

    peg__pattern_reader_init(&reader, ecma, NULL);
    do {
        if (peg__pattern_next(&reader, &token))
            return false;
    } while (token.kind != PEG__TOKEN_END);
    return true;
}
