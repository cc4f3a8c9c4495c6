/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fast path of the parser, in two stages. The first (index.h) lists where in the next
 * 8192 bytes of the text tokens start and strings end, without understanding them. The second,
 * here, reads token after token and writes values in the order of the text.
 *
 * Where a token ends is only known when it was read, so a parser in one stage waits for each
 * before it can begin with the next. With the index the end of a string is known from the start,
 * and the processor works on several tokens at a time.
 *
 * `at` is the truth: the place behind everything that was read, where the next byte has to be
 * what the grammar wants. `entry` goes through the index in step with it: whatever may start a
 * value has an entry, and a mistake in the text is found by `at` before the two part. When the
 * entries are at their end (a 0), the index is made again for what starts at `at`. Strings may
 * reach beyond a window: those are read without the index.
 *
 * Included by the files that compile it for a kind of machine, which define PARSE_VALUES as the
 * name of the function. Read it from the bottom up. Everything here is inlined into one function,
 * and where it stands is in a local struct whose address never leaves it, nor that of a field, so
 * that the compiler keeps it in registers. The slow paths of hard.c take and return values.
 */

#include <string.h>

#include "json/parse/index.h"
#include "json/parse/internal.h"
#include "json/parse/scan.h"

#define HOT static inline __attribute__((always_inline))
#define RARELY(condition) __builtin_expect((condition), 0)

/* Where the parser stands. */
struct cursor {
    char *at;              /* in the text; NULL after a failure */
    const uint16_t *entry; /* of the index: the next token */
    char *base;            /* what the index counts from: the byte before its window */
    peg_json *next;        /* where the next value goes */
    struct peg__frame *top;
    uint16_t *index;
};

/* ---- the index ------------------------------------------------------------------------ */

__attribute__((noinline)) static size_t make_index(uint16_t *index, const char *at, const char *end)
{
    return peg__index_make(index, at, end);
}

/* Makes an index from here on, and room for each value that it lists and for one that is a mistake
 * or the end of the text. */
HOT void enter_window(struct peg__parser *p, struct cursor *c)
{
    const size_t n_values = make_index(c->index, c->at, p->end);
    peg_json *next = peg__parse_reserve(p, c->next, n_values + 2, p->end - c->at);

    c->entry = c->index;
    c->base = c->at - 1;
    if (next)
        c->next = next;
    else
        c->at = p->end; /* no token is there, and the first failure counts */
}

/* ---- space ---------------------------------------------------------------------------- */

/* What is behind space. */
HOT char *skip_space(char *at)
{
#ifdef PEG__HAS_SPACES
    const uint64_t others = peg__block_no_spaces(at);

    if (!RARELY(!others))
        return at + __builtin_ctzll(others);
#endif
    return peg__parse_space(at);
}

/* At space before what should be a token. The index knows where the next one is: so what follows
 * need not wait until the space was read. The compiler would make it wait, by taking the one
 * for the other or by a conditional move; what it cannot look into keeps it from both. */
HOT void skip_to_token(struct cursor *c)
{
    char *token = c->base + *c->entry;
    char *known = token;
    char *found;

    __asm__("" : "+r"(known));
    found = skip_space(c->at);
    c->at = known;
    if (RARELY(found != token)) {
        __asm__ volatile("");
        c->at = found;
    }
}

/* ---- strings that are not plain --------------------------------------------------------- */

/* Field by field: the compiler makes two stores of it, and of a whole value five. */
HOT void set_head(peg_json *value, peg_json_kind kind, uint32_t len)
{
    value->kind = (uint8_t)kind;
    value->form = 0;
    value->exponent = 0;
    value->len = len;
}

/* Writes the value of a string without escapes, and a NUL over its closing quote: nothing up to
 * there is read again. */
HOT void set_plain_string(peg_json *value, char *start, char *stop)
{
    set_head(value, PEG_JSON_STRING, (uint32_t)(stop - start));
    value->u.ptr = start;
    *stop = '\0';
}

/*
 * A string that shrinks while it is unescaped. What follows its first escape is put together in a
 * buffer and moved back in one piece: written in place, byte by byte behind what is read, it would
 * make the processor wait for each write before the next read.
 */
struct unescaping {
    char *at;  /* what was not read yet */
    char *end; /* of the value in its place, behind which goes the buffer */
    size_t n_buffered;
    bool is_shorter; /* there was an escape: `end` and the buffer are behind `at` */
    char buffer[1024 + PEG__BLOCK];
};

HOT void move_back(struct unescaping *u)
{
    memcpy(u->end, u->buffer, u->n_buffered);
    u->end += u->n_buffered;
    u->n_buffered = 0;
}

/* Plain bytes, of which there may be any number. Blocks are copied whole: behind the text there is
 * padding to read, behind the buffer to write. */
HOT void take_plain(struct unescaping *u, size_t n)
{
    char *from = u->at;

    u->at += n;
    if (!u->is_shorter) {
        u->end += n;
        return;
    }
    if (RARELY(u->n_buffered + n > sizeof(u->buffer) - PEG__BLOCK)) {
        move_back(u);
        memmove(u->end, from, n);
        u->end += n;
        return;
    }
    for (size_t i = 0; i < n; i += PEG__BLOCK)
        memcpy(u->buffer + u->n_buffered + i, from + i, PEG__BLOCK);
    u->n_buffered += n;
}

/* The length of a character beyond ASCII; 0 where it is not one of 2 or 3 bytes for sure. */
HOT size_t look_at_character(const char *at)
{
    const unsigned char first = (unsigned char)at[0];

    if (((unsigned char)at[1] & 0xC0) != 0x80)
        return 0;
    if (first >= 0xC2 && first < 0xE0)
        return 2;
    if (first > 0xE0 && first < 0xF0 && first != 0xED && ((unsigned char)at[2] & 0xC0) == 0x80)
        return 3;
    return 0;
}

/* One escape or character. False if it is longer than usual or wrong: then nothing was read. */
HOT bool take_special(struct unescaping *u)
{
    static const char meanings[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                       ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    const char meaning = meanings[(unsigned char)u->at[1]];
    size_t n;

    if (*u->at != '\\') {
        n = look_at_character(u->at);
        take_plain(u, n);
        return n > 0;
    }
    if (RARELY(!meaning))
        return false;
    if (RARELY(u->n_buffered == sizeof(u->buffer) - PEG__BLOCK))
        move_back(u);
    u->buffer[u->n_buffered++] = meaning;
    u->is_shorter = true;
    u->at += 2;
    return true;
}

HOT bool is_special(char c)
{
    return (signed char)c < 0x20 || c == '\\';
}

struct read_string {
    char *at; /* behind it; NULL after a failure */
    const uint16_t *entry;
};

/* Reads a string that has entries between its quotes, or none for its end because the window ends.
 * The index knows where what is special begins: all between is taken without a look. */
__attribute__((noinline)) static struct read_string read_hard_string(struct peg__parser *p,
                                                                     char *base,
                                                                     const uint16_t *entry,
                                                                     char *start, peg_json *value)
{
    struct unescaping u; /* not all of it set: it is large */

    u.at = base + *++entry;
    u.end = u.at;
    u.n_buffered = 0;
    u.is_shorter = false;
    if (u.at < start)
        return (struct read_string){peg__parse_hard_string(p, start, value), entry};
    while (*u.at != '"') {
        if (RARELY(!take_special(&u)))
            break;
        if (is_special(*u.at))
            continue;
        do
            entry++;
        while (*entry && base + *entry < u.at);
        if (RARELY(!*entry))
            break;
        take_plain(&u, (size_t)(base + *entry - u.at));
    }
    move_back(&u);
    if (RARELY(*u.at != '"' || !*entry))
        return (struct read_string){peg__parse_rest_of_string(p, start, u.end, u.at, value), entry};
    set_plain_string(value, start, u.end);
    return (struct read_string){u.at + 1, entry + 1};
}

/* As read_hard_string(). Skips at least one entry if there is one, so that there is never a value
 * that has none and no room. */
HOT void take_hard_string(struct peg__parser *p, struct cursor *c, peg_json *value)
{
    struct read_string read = {NULL, c->entry};

    if (*c->entry)
        read = read_hard_string(p, c->base, c->entry, c->at + 1, value);
    else
        read.at = peg__parse_hard_string(p, c->at + 1, value);
    c->at = read.at;
    c->entry = read.entry;
    while (RARELY(*c->entry && c->base + *c->entry < c->at))
        c->entry++;
}

/* At the opening quote. */
HOT void read_string(struct peg__parser *p, struct cursor *c, peg_json *value)
{
    char *stop = c->base + c->entry[1];

    if (RARELY(*stop != '"')) {
        take_hard_string(p, c, value);
        return;
    }
    set_plain_string(value, c->at + 1, stop);
    c->at = stop + 1;
    c->entry += 2;
}

HOT void set_number(peg_json *value, int64_t number, bool negative)
{
    value->u.number = negative ? -number : number;
}

/* A whole number of 8 to 15 digits, as times are; else NULL. */
HOT char *read_long_integer(char *at, struct peg__digits first, int64_t *ret_number)
{
    const struct peg__digits last = peg__digits_find(at + 8);
    uint64_t number = peg__digits_value(first);

    if (last.n == 8)
        return NULL;
    at += 8 + last.n;
    if (*at == '.' || (*at | 0x20) == 'e')
        return NULL;
    if (last.n)
        number = number * peg__digits_power(last.n) + peg__digits_value(last);
    *ret_number = (int64_t)number;
    return at;
}

/* The digits behind a point: the place behind them, NULL if there are none or very many. */
HOT char *read_fraction(char *at, int64_t *number, unsigned *ret_n)
{
    struct peg__digits digits = peg__digits_find(at);
    uint64_t value = (uint64_t)*number; /* may wrap around: then it is not used */
    unsigned n = 0;

    while (RARELY(digits.n == 8 && n < 16)) {
        value = value * peg__digits_power(8) + peg__digits_value(digits);
        n += 8;
        digits = peg__digits_find(at + n);
    }
    if (digits.n)
        value = value * peg__digits_power(digits.n) + peg__digits_value(digits);
    n += digits.n;
    if (RARELY(n == 0 || n == 24))
        return NULL;
    *number = (int64_t)value;
    *ret_n = n;
    return at + n;
}

/*
 * A number in a usual form: up to 15 digits, or up to 7 and a fraction, together 18. Not inlined,
 * as the registers that it needs would be taken from the loop.
 */
__attribute__((noinline)) static char *read_number(struct peg__parser *p, char *start,
                                                   peg_json *value)
{
    const bool negative = *start == '-';
    char *at = start + negative;
    const struct peg__digits whole = peg__digits_find(at);
    unsigned n_fraction;
    int64_t number;

    if (RARELY(!p->has_usual_limits || whole.n == 0 || (*at == '0' && whole.n > 1)))
        return peg__parse_number(p, start, value);
    if (whole.n == 8) {
        at = read_long_integer(at, whole, &number);
        if (!at)
            return peg__parse_number(p, start, value);
    } else {
        at += whole.n;
        number = (int64_t)peg__digits_value(whole);
    }
    if (*at != '.') {
        if (RARELY((*at | 0x20) == 'e' || number < negative)) /* -0 is no integer */
            return peg__parse_number(p, start, value);
        set_head(value, PEG_JSON_INTEGER, 0);
        set_number(value, number, negative);
        return at;
    }
    at = read_fraction(at + 1, &number, &n_fraction);
    if (RARELY(!at || (*at | 0x20) == 'e' || whole.n + n_fraction > 18 || number < negative))
        return peg__parse_number(p, start, value);
    set_head(value, PEG_JSON_DECIMAL, 0);
    value->form = PEG_JSON_FORM_SCALED;
    value->exponent = (int16_t)(0 - (int)n_fraction);
    set_number(value, number, negative);
    return at;
}

/* Which of the three words it is cannot be predicted, so that is no branch. */
HOT char *read_word(struct peg__parser *p, char *at, peg_json *value)
{
    const bool is_true = memcmp(at, "true", 4) == 0;
    const bool is_null = memcmp(at, "null", 4) == 0;
    const bool is_false = memcmp(at, "false", 5) == 0;

    if (RARELY(!(is_true | is_null | is_false)))
        return peg__parse_fail_syntax(p, at,
                                      "expected true, false or null; other words need quotes");
    set_head(value, is_null ? PEG_JSON_NULL : PEG_JSON_BOOL, 0);
    value->u.truth = is_true;
    return at + 4 + is_false;
}

/* ---- members ------------------------------------------------------------------------- */

/* Of a word of text, the first n bytes, at most 8. */
HOT uint64_t first_bytes(uint64_t word, size_t n)
{
#ifdef __BMI2__
    return _bzhi_u64(word, (unsigned)(8 * n));
#else
    return n < 8 ? word & ((1ULL << 8 * n) - 1) : word;
#endif
}

/* A hash of the first 8 bytes and the last 8. */
HOT uint64_t hash_key(const char *start, const char *stop)
{
    const size_t len = (size_t)(stop - start);
    uint64_t head;
    uint64_t tail;

    memcpy(&head, start, 8);
    if (len <= 8) {
        head = first_bytes(peg__little_endian(head), len);
    } else {
        memcpy(&tail, stop - 8, 8);
        head = peg__little_endian(head) ^ (peg__little_endian(tail) * 5 + len);
    }
    return head * 0x9E3779B97F4A7C15ULL;
}

/* Adds a key to the filter of its object. True if there may have been the same key before: two
 * bits of one of four words are rarely both set by others. */
HOT bool note_key(struct peg__frame *top, uint64_t hash)
{
    uint64_t *word = &top->seen[hash >> 62];
    const uint64_t bits = 1ULL << (hash >> 56 & 63) | 1ULL << (hash >> 50 & 63);
    const uint64_t before = *word;

    *word = before | bits;
    return (before & bits) == bits;
}

/* At the quote before the name of a member: reads it and its colon. */
HOT void read_name(struct peg__parser *p, struct cursor *c, peg_json *key)
{
    char *start = c->at + 1;
    char *stop = c->base + c->entry[1];
    uint64_t hash;

    if (RARELY(*stop != '"')) {
        take_hard_string(p, c, key);
        if (!c->at)
            return;
        hash = hash_key(start, start + key->len);
    } else {
        /* Before the NUL is written into it: the processor would have to wait for that. */
        hash = hash_key(start, stop);
        set_plain_string(key, start, stop);
        c->at = stop + 1;
        c->entry += 2;
    }
    if (RARELY(note_key(c->top, hash)) && !(c->at = peg__parse_check_key(p, c->top, key, c->at)))
        return;
    if (RARELY(*c->at != ':'))
        c->at = peg__parse_find_colon(p, c->at);
    if (!c->at)
        return;
    c->at++;
    if (*c->at == ' ' && c->base + *c->entry == c->at + 1) /* as most writers do it */
        c->at++;
}

/* ---- containers ------------------------------------------------------------------------ */

HOT void open_container(const struct peg__parser *p, struct cursor *c, peg_json *value)
{
    struct peg__frame *top = ++c->top;
    const bool is_object = *c->at == '{';

    memset(top->seen, 0, sizeof(top->seen));
    top->index = (uint32_t)(value - p->doc->values);
    top->n = 0;
    top->closer = is_object ? '}' : ']';
    set_head(value, is_object ? PEG_JSON_OBJECT : PEG_JSON_ARRAY, 0);
    c->entry++;
    c->at++;
    if ((unsigned char)*c->at <= ' ')
        skip_to_token(c);
}

HOT void close_container(struct peg__parser *p, struct cursor *c)
{
    const struct peg__frame *top = c->top--;
    peg_json *container = &p->doc->values[top->index];

    container->len = top->n;
    container->u.extent = (uint64_t)(c->next - container);
    c->at++;
    if (RARELY(top->n > PEG_JSON_FEW_MEMBERS) && top->closer == '}')
        c->at = peg__parse_check_keys(p, container, c->at);
}

/* ---- the loop ---------------------------------------------------------------------------- */

enum step { SCALAR, OPENED, FAILED };

/*
 * Reads a scalar, or opens a container and stands at what it contains. What starts a value is in
 * the index, so that the next entry is about it, unless the window ended.
 */
HOT enum step read_value(struct peg__parser *p, struct cursor *c)
{
    peg_json *value;

    if ((unsigned char)*c->at <= ' ')
        skip_to_token(c);
    if (RARELY(!*c->entry))
        enter_window(p, c);
    value = c->next++;
    switch (*c->at) {
    case '"':
        read_string(p, c, value);
        break;
    case '{':
    case '[':
        if (RARELY(c->top == p->last)) {
            c->at = peg__parse_fail_depth(p, c->at);
            return FAILED;
        }
        open_container(p, c, value);
        return OPENED;
    case 't':
    case 'f':
    case 'n':
        c->entry++;
        c->at = read_word(p, c->at, value);
        break;
    default:
        c->entry++;
        c->at = read_number(p, c->at, value);
    }
    return RARELY(!c->at) ? FAILED : SCALAR;
}

/* At the first member of an object, or behind a comma. */
HOT enum step read_member(struct peg__parser *p, struct cursor *c)
{
    c->top->n++;
    if (RARELY(!*c->entry))
        enter_window(p, c);
    if ((unsigned char)*c->at <= ' ')
        skip_to_token(c);
    if (RARELY(*c->at != '"') && !(c->at = peg__parse_find_name(p, c->at)))
        return FAILED;
    read_name(p, c, c->next++);
    return RARELY(!c->at) ? FAILED : read_value(p, c);
}

HOT enum step read_item(struct peg__parser *p, struct cursor *c)
{
    c->top->n++;
    return read_value(p, c);
}

/* Behind a value: is there another one in its container? */
HOT bool take_comma(struct cursor *c)
{
    if (*c->at != ',' && (unsigned char)*c->at <= ' ')
        c->at = skip_space(c->at);
    if (*c->at != ',')
        return false;
    c->at++;
    return true;
}

/* At what a container contains, or at its end. */
HOT enum step read_first(struct peg__parser *p, struct cursor *c)
{
    if (*c->at == c->top->closer)
        return SCALAR;
    return c->top->closer == '}' ? read_member(p, c) : read_item(p, c);
}

/*
 * Objects and arrays have loops of their own, not for tidiness but for the branch predictor:
 * what follows a member and what follows an item are different habits.
 */
HOT enum step read_others(struct peg__parser *p, struct cursor *c)
{
    enum step step = SCALAR;

    if (c->top->closer == '}') {
        while (step == SCALAR && take_comma(c))
            step = read_member(p, c);
    } else {
        while (step == SCALAR && take_comma(c))
            step = read_item(p, c);
    }
    return step;
}

/* Behind a value: on in the container, and out of it, until another one is opened. */
HOT enum step go_on(struct peg__parser *p, struct cursor *c)
{
    while (c->top != p->frames) {
        const enum step step = read_others(p, c);

        if (step != SCALAR)
            return step;
        if (RARELY(*c->at != c->top->closer)) {
            peg__parse_fail_after(p, c->top, c->at);
            return FAILED;
        }
        close_container(p, c);
        if (RARELY(!c->at))
            return FAILED;
    }
    return SCALAR;
}

char *PARSE_VALUES(struct peg__parser *p, char *at)
{
    uint16_t index[PEG__INDEX_SIZE];
    struct cursor c = {.at = at, .next = p->doc->values, .top = p->frames, .index = index};
    enum step step;

    enter_window(p, &c);
    if (p->status)
        return NULL;
    step = read_value(p, &c);
    while (step == OPENED) {
        step = read_first(p, &c);
        if (step == SCALAR)
            step = go_on(p, &c);
    }
    return step == FAILED ? NULL : peg__parse_space(c.at);
}
