/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fast path of the parser: one pass over the text, values written one after the other in
 * its order. Included by the files that compile it for a kind of machine, which define
 * PARSE_VALUES as the name of the function. Read it from the bottom up.
 *
 * Everything here is inlined into one function, and where it stands is in a local struct whose
 * address never leaves it, so that the compiler keeps it in registers. The slow paths of
 * parse_hard.c take and return values.
 */

#include <stdlib.h>
#include <string.h>

#include "json/duplicates.h"
#include "json/parse_state.h"
#include "json/scan.h"

#define HOT static inline __attribute__((always_inline))
#define RARELY(condition) __builtin_expect((condition), 0)

enum { MAX_SCALED_DIGITS = 18, MAX_SCALED_EXPONENT = 9999 };

/* Where the parser stands. */
struct cursor {
    char *at;        /* in the text; NULL after a failure */
    peg_json *next;  /* where the next value goes */
    peg_json *limit; /* behind the last one that has room */
    struct peg__frame *top;
};

/* ---- scalars ------------------------------------------------------------------------ */

HOT char *skip_space(char *at)
{
    return RARELY((unsigned char)*at <= ' ') ? peg__parse_space(at) : at;
}

/* At the opening quote. The closing one becomes a NUL, behind which nothing is read again. */
HOT char *read_string(struct peg__parser *p, char *at, peg_json *value)
{
    char *start = at + 1;
    char *stop = (char *)(uintptr_t)peg__scan_plain(start);

    if (RARELY(*stop != '"'))
        return peg__parse_hard_string(p, start, stop, value);
    *value = (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)(stop - start), .u.ptr = start};
    *stop = '\0';
    return stop + 1;
}

struct digits {
    uint64_t value;
    int n;
};

HOT uint64_t to_little_endian(uint64_t word)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/*
 * Digits, eight at a time: how many there are is then a shift and not a branch that nobody can
 * foresee. Numbers that are too long wrap around; their count tells.
 */
HOT char *read_digits(char *at, struct digits *digits)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    unsigned n;

    do {
        uint64_t word;
        uint64_t others;

        memcpy(&word, at, 8);
        word = to_little_endian(word) ^ 0x3030303030303030ULL;
        /* A byte is a digit if it is below 10: no high nibble, also after adding 6. */
        others = (word | (word + 0x0606060606060606ULL)) & 0xF0F0F0F0F0F0F0F0ULL;
        n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
        if (n == 0)
            break;
        word <<= 64 - 8 * n; /* leading zeros */
        word = word * 10 + (word >> 8);
        word = ((word & 0x000000FF000000FFULL) * 0x000F424000000064ULL +
                ((word >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >>
               32;
        digits->value = digits->value * powers[n] + (uint32_t)word;
        digits->n += (int)n;
        at += n;
    } while (RARELY(n == 8));
    return at;
}

/* The exponent of a number, at the `e`. NULL leaves the case to the hard path. */
HOT char *read_exponent(char *at, int *exponent)
{
    struct digits digits = {0};
    const bool negative = at[1] == '-';

    at += 1 + (at[1] == '-' || at[1] == '+');
    at = read_digits(at, &digits);
    if (digits.n == 0 || digits.n > 4)
        return NULL;
    *exponent += negative ? -(int)digits.value : (int)digits.value;
    return at;
}

/* The part of a number behind its whole digits. */
HOT char *read_decimal(char *at, struct digits *digits, int *exponent)
{
    if (*at == '.') {
        const int whole = digits->n;

        at = read_digits(at + 1, digits);
        if (digits->n == whole)
            return NULL;
        *exponent = whole - digits->n;
    }
    return RARELY((*at | 0x20) == 'e') ? read_exponent(at, exponent) : at;
}

HOT char *read_number(struct peg__parser *p, char *start, peg_json *value)
{
    const bool negative = *start == '-';
    struct digits digits = {0};
    int exponent = 0;
    char *const whole = start + negative;
    char *at = read_digits(whole, &digits);

    /* No digit, a leading zero before another digit, or too many for 64 bits. */
    if (RARELY(digits.n == 0 || (*whole == '0' && digits.n > 1) || digits.n > MAX_SCALED_DIGITS))
        return peg__parse_hard_number(p, start, value);
    if (*at != '.' && (*at | 0x20) != 'e' && (digits.value || !negative)) {
        *value = (peg_json){.kind = PEG_JSON_INTEGER,
                            .u.number = negative ? -(int64_t)digits.value : (int64_t)digits.value};
        return at;
    }
    at = read_decimal(at, &digits, &exponent);
    if (RARELY(!at || digits.n > MAX_SCALED_DIGITS || abs(exponent) > MAX_SCALED_EXPONENT ||
               (unsigned)abs(exponent) + MAX_SCALED_DIGITS > p->max_exponent))
        return peg__parse_hard_number(p, start, value);
    *value =
        (peg_json){.kind = PEG_JSON_DECIMAL,
                   .form = digits.value || !negative ? PEG_JSON_FORM_SCALED : PEG_JSON_FORM_MINUS0,
                   .exponent = (int16_t)exponent,
                   .u.number = negative ? -(int64_t)digits.value : (int64_t)digits.value};
    return at;
}

HOT char *read_word(struct peg__parser *p, char *at, peg_json *value)
{
    if (memcmp(at, "true", 4) == 0) {
        *value = (peg_json){.kind = PEG_JSON_BOOL, .u.truth = 1};
        return at + 4;
    }
    if (memcmp(at, "null", 4) == 0) {
        *value = (peg_json){.kind = PEG_JSON_NULL};
        return at + 4;
    }
    if (memcmp(at, "false", 5) == 0) {
        *value = (peg_json){.kind = PEG_JSON_BOOL};
        return at + 5;
    }
    return peg__parse_fail_syntax(p, at, "expected true, false or null; other words need quotes");
}

/* ---- members ------------------------------------------------------------------------- */

/* Which bit of the filter a key sets, from its first bytes and its length. */
HOT unsigned key_place(uint64_t head, uint32_t len)
{
    static const uint64_t masks[] = {0,
                                     0xFF,
                                     0xFFFF,
                                     0xFFFFFF,
                                     0xFFFFFFFF,
                                     0xFFFFFFFFFF,
                                     0xFFFFFFFFFFFF,
                                     0xFFFFFFFFFFFFFF,
                                     0xFFFFFFFFFFFFFFFF};

    head = to_little_endian(head) & masks[len < 8 ? len : 8];
    return (unsigned)(((head ^ len) * 0x9E3779B97F4A7C15ULL) >> 56);
}

/* The key of the next member, its colon and the space behind it. NULL after a failure. */
HOT char *read_key(struct peg__parser *p, struct peg__frame *top, char *at, peg_json *key)
{
    uint64_t head;
    unsigned place;

    if (RARELY(*at != '"'))
        return peg__parse_fail_syntax(p, at, "expected a member's name in double quotes");
    /* Read before the NUL is written into it: the processor would have to wait for that. */
    memcpy(&head, at + 1, 8);
    at = read_string(p, at, key);
    if (RARELY(!at))
        return NULL;
    if (RARELY(at - key->u.ptr != (ptrdiff_t)key->len + 1))
        memcpy(&head, key->u.ptr, 8); /* it had escapes */
    place = key_place(head, key->len);
    if (RARELY(top->seen[place / 64] >> (place % 64) & 1) &&
        !(at = peg__parse_check_key(p, top, key, at)))
        return NULL;
    top->seen[place / 64] |= 1ULL << (place % 64);

    at = skip_space(at);
    if (RARELY(*at != ':'))
        return peg__parse_fail_syntax(p, at, "expected ':' after the member's name");
    return skip_space(at + 1);
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
    *value = (peg_json){.kind = is_object ? PEG_JSON_OBJECT : PEG_JSON_ARRAY};
    c->at = skip_space(c->at + 1);
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

HOT bool has_room(struct peg__parser *p, struct cursor *c)
{
    /* A key and its value. */
    if (RARELY(c->limit - c->next < 2))
        c->next = peg__parse_grow(p, c->next, &c->limit);
    return c->next != NULL;
}

enum step { SCALAR, OPENED, FAILED };

/* Reads a scalar, or opens a container and stands at what it contains. */
HOT enum step read_value(struct peg__parser *p, struct cursor *c)
{
    peg_json *value = c->next++;

    switch (*c->at) {
    case '"':
        c->at = read_string(p, c->at, value);
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
        c->at = read_word(p, c->at, value);
        break;
    default:
        c->at = read_number(p, c->at, value);
    }
    return RARELY(!c->at) ? FAILED : SCALAR;
}

/* At the first member of an object, or behind a comma. */
HOT enum step read_member(struct peg__parser *p, struct cursor *c)
{
    c->top->n++;
    if (RARELY(!has_room(p, c)))
        return FAILED;
    c->at = read_key(p, c->top, c->at, c->next++);
    return RARELY(!c->at) ? FAILED : read_value(p, c);
}

HOT enum step read_item(struct peg__parser *p, struct cursor *c)
{
    c->top->n++;
    return RARELY(!has_room(p, c)) ? FAILED : read_value(p, c);
}

/*
 * Objects and arrays have loops of their own, not for tidiness but for the branch predictor:
 * what follows a member and what follows an item are different habits.
 */
char *PARSE_VALUES(struct peg__parser *p, char *at)
{
    struct cursor c = {.at = at,
                       .next = p->doc->values,
                       .limit = p->doc->values + p->doc->capacity,
                       .top = p->frames};
    enum step step = read_value(p, &c);

    while (step == OPENED) {
        if (*c.at == c.top->closer) {
            step = SCALAR; /* nothing inside */
        } else {
            step = c.top->closer == '}' ? read_member(p, &c) : read_item(p, &c);
            if (step == OPENED)
                continue;
        }
        /* Behind a value: on in the container, or out of it. */
        while (step == SCALAR && c.top != p->frames) {
            if (c.top->closer == '}') {
                while (step == SCALAR && *(c.at = skip_space(c.at)) == ',') {
                    c.at = skip_space(c.at + 1);
                    step = read_member(p, &c);
                }
            } else {
                while (step == SCALAR && *(c.at = skip_space(c.at)) == ',') {
                    c.at = skip_space(c.at + 1);
                    step = read_item(p, &c);
                }
            }
            if (step != SCALAR)
                break;
            if (RARELY(*c.at != c.top->closer))
                return peg__parse_fail_after(p, c.top, c.at);
            close_container(p, &c);
            if (RARELY(!c.at))
                return NULL;
        }
    }
    return step == FAILED ? NULL : peg__parse_space(c.at);
}
