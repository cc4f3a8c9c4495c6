/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads an ECMA-262 pattern (u flag) token by token, without recursion: what is open is on a
 * stack of PEG_LIMIT_PATTERN_NESTING groups. Every syntax error is found here.
 *
 * Where the u flag is strict and its absence (Annex B) is not, the lenient reading is taken if no
 * dialect reads the text otherwise: a brace that starts no quantifier, a lone ] and a class such
 * as [\w-.] stand for themselves. What other dialects would read differently is refused: {,3},
 * flags, comments, possessive quantifiers, POSIX classes.
 */

#include <string.h>

#include "schema/pattern/internal.h"

void peg__pattern_reader_init(struct peg__pattern_reader *reader, peg_str text, peg_error *reterr)
{
    /* Not the stack of groups: depth says how much of it is in use. */
    memset(reader, 0, offsetof(struct peg__pattern_reader, open));
    reader->text = text;
    reader->reterr = reterr;
}

peg_status peg__pattern_refuse_at(const struct peg__pattern_reader *reader, size_t at)
{
    peg__error_at(reader->reterr, reader->text, at);
    return PEG_EPARSE;
}

static unsigned char peek(const struct peg__pattern_reader *reader, size_t ahead)
{
    const size_t at = reader->at + ahead;

    return at < reader->text.len ? (unsigned char)reader->text.ptr[at] : 0;
}

static bool at_end(const struct peg__pattern_reader *reader)
{
    return reader->at >= reader->text.len;
}

/* ---- quantifiers --------------------------------------------------------------- */

/* Digits at *at. Numbers beyond what anyone can mean stay below PEG__REPEAT_FOREVER. */
static bool read_repeat_count(peg_str text, size_t *at, uint32_t *ret_count)
{
    const size_t start = *at;
    uint64_t count = 0;

    for (; *at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9'; (*at)++) {
        count = count * 10 + (uint64_t)(text.ptr[*at] - '0');
        if (count >= PEG__REPEAT_FOREVER)
            count = PEG__REPEAT_FOREVER - 1;
    }
    *ret_count = (uint32_t)count;
    return *at > start;
}

/* {n}, {n,} or {n,m} at the reader's place; on success *ret_end is behind it. */
static bool read_braces(const struct peg__pattern_reader *reader, struct peg__token *token,
                        size_t *ret_end)
{
    const peg_str text = reader->text;
    size_t at = reader->at + 1;

    if (!read_repeat_count(text, &at, &token->min))
        return false;
    token->max = token->min;
    if (at < text.len && text.ptr[at] == ',') {
        at++;
        if (!read_repeat_count(text, &at, &token->max))
            token->max = PEG__REPEAT_FOREVER;
    }
    if (at >= text.len || text.ptr[at] != '}')
        return false;
    *ret_end = at + 1;
    return true;
}

/* {,3} is a quantifier in some dialects and text in others. */
static bool is_half_open(const struct peg__pattern_reader *reader)
{
    size_t at = reader->at + 2;
    uint32_t count;

    return peek(reader, 0) == '{' && peek(reader, 1) == ',' &&
           read_repeat_count(reader->text, &at, &count) && at < reader->text.len &&
           reader->text.ptr[at] == '}';
}

static peg_status refuse_repeat(struct peg__pattern_reader *reader, size_t at)
{
    const char before = reader->text.ptr[at ? at - 1 : 0];
    const char here = reader->text.ptr[at];

    if (here == '+' && at && before && strchr("*+?}", before))
        return PEG__PATTERN_REFUSE(reader, at,
                                   "possessive quantifiers are not ECMA-262; write one of * + ? "
                                   "{n,m}, or \\+ for the character");
    if (here == '*' && at && before == '(')
        return PEG__PATTERN_REFUSE(reader, at,
                                   "(* is not ECMA-262; write \\( and \\* for the characters");
    return PEG__PATTERN_REFUSE(reader, at,
                               "there is nothing to repeat before this; write \\%c for the "
                               "character, or (?:...) around what is repeated",
                               here);
}

/* At one of * + ? { : a quantifier, unless *ret_is_text. */
static peg_status read_repeat(struct peg__pattern_reader *reader, struct peg__token *token,
                              bool *ret_is_text)
{
    const unsigned char sign = peek(reader, 0);
    size_t end = reader->at + 1;

    token->min = sign == '+' ? 1 : 0;
    token->max = sign == '?' ? 1 : PEG__REPEAT_FOREVER;
    if (sign == '{' && is_half_open(reader))
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "a quantifier needs a lower bound; write {0,n}, or \\{ for "
                                   "the character");
    if (sign == '{' && !read_braces(reader, token, &end)) {
        *ret_is_text = true;
        return PEG_OK;
    }
    if (!reader->repeatable)
        return refuse_repeat(reader, reader->at);
    if (token->min > token->max)
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "the bounds are in the wrong order; write {%u,%u}", token->max,
                                   token->min);
    reader->at = end;
    token->kind = PEG__TOKEN_REPEAT;
    token->lazy = peek(reader, 0) == '?';
    reader->at += token->lazy;
    reader->repeatable = false;
    *ret_is_text = false;
    return PEG_OK;
}

/* ---- groups -------------------------------------------------------------------- */

static peg_status refuse_group(struct peg__pattern_reader *reader, size_t at)
{
    switch (peek(reader, 2)) {
    case '#':
        return PEG__PATTERN_REFUSE(reader, at, "comments are not ECMA-262; leave out (?#...)");
    case 'P':
        return PEG__PATTERN_REFUSE(reader, at,
                                   "(?P is not ECMA-262; write (?<name>...) and \\k<name>");
    case '>':
        return PEG__PATTERN_REFUSE(reader, at, "atomic groups are not ECMA-262; write (?:...)");
    case '|':
        return PEG__PATTERN_REFUSE(reader, at, "(?| is not ECMA-262; write (?:...)");
    case '(':
        return PEG__PATTERN_REFUSE(reader, at,
                                   "conditions are not ECMA-262; write the cases with |");
    case '<':
        return PEG__PATTERN_REFUSE(reader, at,
                                   "this is no group name; write (?<name>...) with letters, "
                                   "digits and _");
    case 'i':
        return PEG__PATTERN_REFUSE(reader, at,
                                   "flags are not supported; write both cases, such as [Aa]");
    case 'm':
    case 's':
    case 'x':
    case '-':
        return PEG__PATTERN_REFUSE(reader, at,
                                   "flags are not supported; write [^] for any character and "
                                   "leave out blanks");
    default:
        return PEG__PATTERN_REFUSE(reader, at,
                                   "this group is not ECMA-262; write (...), (?:...), (?=...), "
                                   "(?!...), (?<=...), (?<!...) or (?<name>...)");
    }
}

/* Sets token->group and moves behind the opening, of which the parenthesis is at `at`. */
static peg_status read_group_kind(struct peg__pattern_reader *reader, struct peg__token *token)
{
    const unsigned char sign = peek(reader, 2);
    const unsigned char second = peek(reader, 3);
    size_t name_at = reader->at + 3;

    token->group = PEG__GROUP_CAPTURE;
    if (peek(reader, 1) != '?') {
        reader->at++;
        return PEG_OK;
    }
    if (sign == ':' || sign == '=' || sign == '!') {
        token->group = sign == ':'   ? PEG__GROUP_PLAIN
                       : sign == '=' ? PEG__GROUP_AHEAD
                                     : PEG__GROUP_NOT_AHEAD;
        reader->at += 3;
        return PEG_OK;
    }
    if (sign == '<' && (second == '=' || second == '!')) {
        token->group = second == '=' ? PEG__GROUP_BEHIND : PEG__GROUP_NOT_BEHIND;
        reader->at += 4;
        return PEG_OK;
    }
    if (sign != '<' || !peg__pattern_skip_name(reader->text, &name_at))
        return refuse_group(reader, reader->at);
    if (peg__pattern_find_name(reader->text, reader->at + 3) != reader->n_captures + 1)
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "two groups have this name; give each its own");
    reader->at = name_at;
    return PEG_OK;
}

static peg_status read_group_open(struct peg__pattern_reader *reader, struct peg__token *token)
{
    peg_status status;

    token->kind = PEG__TOKEN_GROUP_OPEN;
    if (reader->depth == PEG_LIMIT_PATTERN_NESTING) {
        peg__fail(reader->reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
                  "groups are nested deeper than %d; nest less", PEG_LIMIT_PATTERN_NESTING);
        peg__pattern_refuse_at(reader, reader->at);
        return PEG_ELIMIT;
    }
    status = read_group_kind(reader, token);
    if (status)
        return status;
    if ((token->group == PEG__GROUP_BEHIND || token->group == PEG__GROUP_NOT_BEHIND) &&
        !reader->has_lookbehind) {
        reader->has_lookbehind = true;
        reader->lookbehind_at = token->at;
    }
    token->number = token->group == PEG__GROUP_CAPTURE ? ++reader->n_captures : 0;
    reader->open[reader->depth++] =
        (struct peg__open_group){.group = token->group, .number = token->number};
    reader->repeatable = false;
    return PEG_OK;
}

static peg_status read_group_close(struct peg__pattern_reader *reader, struct peg__token *token)
{
    token->kind = PEG__TOKEN_GROUP_CLOSE;
    if (reader->depth == 0)
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "this ) closes no group; write \\) for the character");
    reader->at++;
    token->group = reader->open[--reader->depth].group;
    reader->repeatable = token->group == PEG__GROUP_CAPTURE || token->group == PEG__GROUP_PLAIN;
    return PEG_OK;
}

/* ---- classes ------------------------------------------------------------------- */

/* [[:alpha:]] would quietly mean a class of five letters and a ] */
static bool is_posix_class(const struct peg__pattern_reader *reader)
{
    size_t i = 2;

    if (peek(reader, 0) != '[' || peek(reader, 1) != ':')
        return false;
    if (peek(reader, i) == '^')
        i++;
    while (peek(reader, i) >= 'a' && peek(reader, i) <= 'z')
        i++;
    return i >= 5 && peek(reader, i) == ':' && peek(reader, i + 1) == ']';
}

/* One character or escape; a character has lo == hi. */
static peg_status read_class_atom(struct peg__pattern_reader *reader, struct peg__token *token)
{
    token->at = reader->at;
    if (at_end(reader))
        return PEG__PATTERN_REFUSE(reader, reader->at, "a class is not closed; write ] at its end");
    if (is_posix_class(reader))
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "POSIX classes are not ECMA-262; write [A-Za-z], [0-9], \\s "
                                   "or \\p{Letter}");
    if (peek(reader, 0) == '\\') {
        const peg_status status = peg__pattern_escape(reader, token);

        if (status || token->kind != PEG__TOKEN_CHAR)
            return status;
    } else if (!peg__pattern_utf8(reader->text, &reader->at, &token->lo)) {
        return PEG__PATTERN_REFUSE(reader, reader->at, "the pattern is not valid UTF-8");
    }
    token->kind = PEG__TOKEN_RANGE;
    token->hi = token->lo;
    return PEG_OK;
}

/* An item of a class. In [\w-x] and [x-\w] the dash can't make a range: Annex B reads the three
 * as items of their own, so the two after the first are read as `plain_items`. */
static peg_status read_class_item(struct peg__pattern_reader *reader, struct peg__token *token)
{
    struct peg__pattern_reader ahead;
    struct peg__token high;
    peg_status status = read_class_atom(reader, token);

    if (status)
        return status;
    if (reader->plain_items) {
        reader->plain_items--;
        return PEG_OK;
    }
    if (peek(reader, 0) != '-' || peek(reader, 1) == ']' || reader->at + 1 >= reader->text.len)
        return PEG_OK;
    if (token->kind != PEG__TOKEN_RANGE) {
        reader->plain_items = 2;
        return PEG_OK;
    }
    memcpy(&ahead, reader, offsetof(struct peg__pattern_reader, open));
    ahead.at++;
    status = read_class_atom(&ahead, &high);
    if (status)
        return status;
    if (high.kind != PEG__TOKEN_RANGE) {
        reader->plain_items = 2;
        return PEG_OK;
    }
    reader->at = ahead.at;
    token->hi = high.lo;
    if (token->lo > token->hi)
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "the ends of this range are in the wrong order; swap them, or "
                                   "write \\- for the character");
    return PEG_OK;
}

static peg_status read_in_class(struct peg__pattern_reader *reader, struct peg__token *token)
{
    if (peek(reader, 0) != ']' || reader->plain_items)
        return read_class_item(reader, token);
    reader->at++;
    reader->in_class = false;
    reader->repeatable = true;
    token->kind = PEG__TOKEN_CLASS_CLOSE;
    return PEG_OK;
}

static peg_status open_class(struct peg__pattern_reader *reader, struct peg__token *token)
{
    token->kind = PEG__TOKEN_CLASS_OPEN;
    token->negated = peek(reader, 1) == '^';
    reader->at += token->negated ? 2 : 1;
    reader->in_class = true;
    return PEG_OK;
}

/* ---- all tokens ------------------------------------------------------------------ */

static peg_status read_char(struct peg__pattern_reader *reader, struct peg__token *token)
{
    token->kind = PEG__TOKEN_CHAR;
    if (!peg__pattern_utf8(reader->text, &reader->at, &token->lo))
        return PEG__PATTERN_REFUSE(reader, reader->at, "the pattern is not valid UTF-8");
    reader->repeatable = true;
    return PEG_OK;
}

static peg_status read_one(struct peg__pattern_reader *reader, struct peg__token *token,
                           enum peg__token_kind kind)
{
    token->kind = kind;
    reader->at++;
    reader->repeatable = kind == PEG__TOKEN_ANY;
    return PEG_OK;
}

static peg_status read_escaped(struct peg__pattern_reader *reader, struct peg__token *token)
{
    const peg_status status = peg__pattern_escape(reader, token);

    reader->repeatable = token->kind != PEG__TOKEN_BOUNDARY;
    return status;
}

static peg_status read_pattern_end(struct peg__pattern_reader *reader, struct peg__token *token)
{
    token->kind = PEG__TOKEN_END;
    if (reader->depth)
        return PEG__PATTERN_REFUSE(reader, reader->at,
                                   "a group is not closed; write ) at its end, or \\( for the "
                                   "character");
    return PEG_OK;
}

peg_status peg__pattern_next(struct peg__pattern_reader *reader, struct peg__token *ret_token)
{
    struct peg__token *token = ret_token;
    bool is_text = true;
    peg_status status;

    token->at = reader->at;
    if (reader->in_class)
        return read_in_class(reader, token);
    if (at_end(reader))
        return read_pattern_end(reader, token);
    switch (peek(reader, 0)) {
    case '^':
        return read_one(reader, token, PEG__TOKEN_START);
    case '$':
        return read_one(reader, token, PEG__TOKEN_FINISH);
    case '.':
        return read_one(reader, token, PEG__TOKEN_ANY);
    case '|':
        return read_one(reader, token, PEG__TOKEN_OR);
    case '(':
        return read_group_open(reader, token);
    case ')':
        return read_group_close(reader, token);
    case '[':
        return open_class(reader, token);
    case '\\':
        return read_escaped(reader, token);
    case '*':
    case '+':
    case '?':
    case '{':
        status = read_repeat(reader, token, &is_text);
        return status || !is_text ? status : read_char(reader, token);
    default:
        return read_char(reader, token);
    }
}
