/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/put.h"

#include "base/text/str.h"

/* The first eight bytes decide most comparisons: they are there for every word. */
const struct peg__kw_text peg__kw_names[PEG__KW_N + 1] = {
#define X(name, text) PEG__KW_TEXT(text),
    PEG__KEYWORDS(X)
#undef X
};

const struct peg__kw_text peg__kw_texts[PEG__KW_N] = {
#define X(name, text) PEG__KW_TEXT("\"" text "\":"),
    PEG__KEYWORDS(X)
#undef X
};

_Static_assert(PEG__KW_N <= 64, "sets of keywords are bits of 64");

enum { LONGEST = sizeof("unevaluatedProperties") - 1 };

/* The first keyword of each length; 0 stands for lengths that no other has. */
static const uint8_t first_of_length[LONGEST + 1] = {
    [3] = PEG__KW_NOT,
    [4] = PEG__KW_TYPE,
    [5] = PEG__KW_ITEMS,
    [6] = PEG__KW_FORMAT,
    [7] = PEG__KW_MINIMUM,
    [8] = PEG__KW_REQUIRED,
    [9] = PEG__KW_MIN_LENGTH,
    [10] = PEG__KW_PROPERTIES,
    [11] = PEG__KW_DESCRIPTION,
    [12] = PEG__KW_DEPENDENCIES,
    [13] = PEG__KW_MIN_PROPERTIES,
    [15] = PEG__KW_ADDITIONAL_ITEMS,
    [16] = PEG__KW_EXCLUSIVE_MINIMUM,
    [17] = PEG__KW_DEPENDENT_REQUIRED,
    [20] = PEG__KW_ADDITIONAL_PROPERTIES,
    [21] = PEG__KW_UNEVALUATED_PROPERTIES,
};

static uint64_t word_at(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof(word));
    return word;
}

/* The first `len` bytes of a word, the others zero. Requires len > 0. */
static uint64_t mask_of(size_t len)
{
    const size_t unused = len < 8 ? 64 - 8 * len : 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return UINT64_MAX >> unused;
#else
    return UINT64_MAX << unused;
#endif
}

/* The first eight of more than eight bytes are the same: are the others? Up to sixteen bytes, the
 * last eight decide; no keyword has more than twenty-four. */
static bool has_same_rest(const char *a, const char *b, size_t len)
{
    return word_at(a + len - 8) == word_at(b + len - 8) &&
           (len <= 16 || word_at(a + 8) == word_at(b + 8));
}

enum peg__kw peg__kw_find(const peg_json *key)
{
    const size_t len = key->len;
    const struct peg__kw_text *name;
    uint64_t first;

    if (len == 0 || len > LONGEST)
        return PEG__KW_UNKNOWN;
    first = word_at(key->u.ptr) & mask_of(len);
    for (name = &peg__kw_names[first_of_length[len]]; name->len == len; name++) {
        if (word_at(name->bytes) == first &&
            (len <= 8 || has_same_rest(name->bytes, key->u.ptr, len)))
            return (enum peg__kw)(name - peg__kw_names);
    }
    return PEG__KW_UNKNOWN;
}

enum peg__kw_shape peg__kw_shape_of(enum peg__kw keyword)
{
    switch (keyword) {
    case PEG__KW_ITEMS:
    case PEG__KW_NOT:
    case PEG__KW_IF:
    case PEG__KW_THEN:
    case PEG__KW_ELSE:
    case PEG__KW_CONTAINS:
    case PEG__KW_ADDITIONAL_ITEMS:
    case PEG__KW_UNEVALUATED_ITEMS:
    case PEG__KW_ADDITIONAL_PROPERTIES:
    case PEG__KW_UNEVALUATED_PROPERTIES:
        return PEG__KW_ONE;
    case PEG__KW_ALL_OF:
    case PEG__KW_ANY_OF:
    case PEG__KW_ONE_OF:
    case PEG__KW_PREFIX_ITEMS:
        return PEG__KW_LIST;
    case PEG__KW_PROPERTIES:
    case PEG__KW_PATTERN_PROPERTIES:
    case PEG__KW_DEPENDENT_SCHEMAS:
    case PEG__KW_DEFS:
    case PEG__KW_DEFINITIONS:
        return PEG__KW_MEMBERS;
    default:
        return PEG__KW_PLAIN;
    }
}

/* ---- writing ---------------------------------------------------------------------------- */

enum { BLOCK = 16 }; /* so much of a string is checked in one go */

typedef uint8_t block __attribute__((vector_size(BLOCK)));

/* Does none of the first `len` bytes need an escape? */
static bool needs_no_escape(block bytes, size_t len)
{
    static const uint8_t wanted_then_not[2 * BLOCK] = {[0 ... BLOCK - 1] = 0xFF};
    uint64_t halves[2];
    block wanted;

    memcpy(&wanted, wanted_then_not + BLOCK - len, sizeof(wanted));
    wanted &= (block)(bytes < 0x20) | (block)(bytes == '"') | (block)(bytes == '\\');
    memcpy(halves, &wanted, sizeof(halves));
    return !(halves[0] | halves[1]);
}

/* A string of a document in quotes, if it is short and nothing in it needs an escape; its padding
 * is read. False: nothing is written. */
static inline bool put_short(struct peg__out *out, const peg_json *string, char **ret_end)
{
    const size_t len = string->len;
    block bytes;
    char *p;

    if (len > BLOCK || !peg__put_fits(out->buf, BLOCK + 3))
        return false;
    memcpy(&bytes, string->u.ptr, sizeof(bytes));
    if (!needs_no_escape(bytes, len))
        return false;
    p = peg__put_begin(out);
    *p++ = '"';
    memcpy(p, &bytes, sizeof(bytes));
    p[len] = '"';
    *ret_end = p + len + 1;
    return true;
}

void peg__put_string(struct peg__out *out, const peg_json *string)
{
    char *end;

    if (put_short(out, string, &end)) {
        peg__put_end(out, end, true);
        return;
    }
    if (out->needs_comma)
        peg__buf_putc(out->buf, ',');
    peg__json_write_doc_string(string, out->buf);
    out->needs_comma = true;
}

void peg__put_key(struct peg__out *out, const peg_json *key)
{
    char *end;

    if (put_short(out, key, &end)) {
        *end++ = ':';
        peg__put_end(out, end, false);
        return;
    }
    peg__put_string(out, key);
    peg__buf_putc(out->buf, ':');
    out->needs_comma = false;
}

/* Most bounds are small. */
static void put_small_number(struct peg__out *out, const peg_json *number)
{
    const uint64_t n = (uint64_t)number->u.number;
    char *p;

    if (number->kind != PEG_JSON_INTEGER || n >= 1000 || !peg__put_fits(out->buf, 3)) {
        peg__out_value(out, number);
        return;
    }
    p = peg__put_begin(out);
    if (n >= 100)
        *p++ = (char)('0' + n / 100);
    if (n >= 10)
        *p++ = (char)('0' + n / 10 % 10);
    *p++ = (char)('0' + n % 10);
    peg__put_end(out, p, true);
}

/* A value that contains no other. */
static void put_single(struct peg__out *out, const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_STRING:
        peg__put_string(out, value);
        break;
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        put_small_number(out, value);
        break;
    default:
        peg__out_value(out, value);
        break;
    }
}

void peg__put_value(struct peg__out *out, const peg_json *value)
{
    if (value->kind < PEG_JSON_ARRAY) {
        put_single(out, value);
        return;
    }
    if (value->kind != PEG_JSON_ARRAY || value->u.extent != (uint64_t)value->len + 1) {
        peg__out_value(out, value);
        return;
    }
    /* As `required` and `enum` are. */
    peg__put_open(out, "[");
    PEG_JSON_EACH_ITEM (value, item)
        put_single(out, item);
    peg__put_close(out, "]");
}
