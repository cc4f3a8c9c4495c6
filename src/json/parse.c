/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The JSON parser: one pass over a private copy of the text, values written one after the
 * other in the order of the text. Read it from the bottom up:
 *
 *   peg_json_reparse -> parse_text -> parse_values -> read_value, after_value
 *
 * Functions take the place in the text and return the place behind what they read, or NULL
 * after fail(). The copy ends with a NUL and padding, so no length is checked while reading:
 * a NUL is no part of any token, and whoever stops at one asks whether it is the end.
 *
 * Strings are unescaped in place and closed by a NUL over their quote, which is always behind
 * what is still to be read.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/doc.h"
#include "json/duplicates.h"
#include "json/number.h"
#include "json/scan.h"
#include "json/unescape.h"

/* An open container. */
struct frame {
    uint64_t seen;  /* objects: one bit of a hash for each key so far */
    uint32_t index; /* of the container's value */
    uint32_t n;     /* items or members begun */
    char closer;
};

enum { SMALL_DEPTH = PEG_LIMIT_JSON_DEPTH, MAX_SCALED_DIGITS = 18, MAX_SCALED_EXPONENT = 9999 };

struct parser {
    peg_json_doc *doc;
    peg_json *next;  /* where the next value goes */
    peg_json *limit; /* behind the last one that has room */
    struct frame *frames;
    unsigned depth; /* frames[depth] is the innermost open container; frames[0] is unused */
    char *end;      /* of the text: its NUL */
    bool has_duplicates;
    unsigned max_depth;
    unsigned max_digits;
    unsigned max_exponent;
    peg_json_duplicates duplicates;
    peg_status status;
    const char *code;
    const char *message;
    const char *failed_at;
};

static char *fail(struct parser *p, peg_status status, const char *code, const char *at,
                  const char *message)
{
    p->status = status;
    p->code = code;
    p->failed_at = at;
    p->message = message;
    return NULL;
}

static char *fail_syntax(struct parser *p, const char *at, const char *message)
{
    if (at == p->end)
        message = "the text ends in the middle of a value";
    return fail(p, PEG_EPARSE, "E_JSON_SYNTAX", at, message);
}

static char *fail_nomem(struct parser *p)
{
    return fail(p, PEG_ENOMEM, "E_OUT_OF_MEMORY", p->end, "out of memory");
}

/* ---- room for values ------------------------------------------------------ */

static bool grow(struct parser *p)
{
    peg_json_doc *doc = p->doc;
    const size_t used = (size_t)(p->next - doc->values);
    peg_json *grown = peg__grow(doc->values, sizeof(*grown), used + 1, &doc->capacity);

    if (!grown)
        return false;
    doc->values = grown;
    p->next = grown + used;
    p->limit = grown + doc->capacity;
    return true;
}

static inline peg_json *add_value(struct parser *p)
{
    if (__builtin_expect(p->next == p->limit, 0) && !grow(p))
        return NULL;
    return p->next++;
}

/* ---- tokens --------------------------------------------------------------- */

static char *skip_more_space(char *at)
{
    for (;;) {
        switch (*at) {
        case '\n':
        case ' ':
            at = (char *)(uintptr_t)peg__scan_spaces(at + 1);
            break;
        case '\t':
        case '\r':
            at++;
            break;
        default:
            return at;
        }
    }
}

static inline char *skip_space(char *at)
{
    return __builtin_expect((unsigned char)*at > ' ', 1) ? at : skip_more_space(at);
}

/* `at` is behind the opening quote. */
static inline char *read_string(struct parser *p, char *at, peg_json *value)
{
    char *stop = (char *)(uintptr_t)peg__scan_plain(at);

    value->kind = PEG_JSON_STRING;
    value->form = 0;
    value->u.ptr = at;
    if (__builtin_expect(*stop != '"', 0)) {
        struct peg__unescaped text = {.at = stop, .end = at};

        if (!peg__json_unescape(at, &text)) {
            if (text.at == p->end)
                return fail_syntax(p, text.at, "");
            return fail(p, PEG_EPARSE, text.is_utf8 ? "E_JSON_UTF8" : "E_JSON_SYNTAX", text.at,
                        text.problem);
        }
        value->len = (uint32_t)(text.end - at);
        *text.end = '\0';
        return text.at + 1;
    }
    value->len = (uint32_t)(stop - at);
    *stop = '\0';
    return stop + 1;
}

/* Numbers that do not fit mantissa and exponent, and those that are none. */
static char *read_hard_number(struct parser *p, char *start, peg_json *value)
{
    char *end = start;

    while ((*end >= '0' && *end <= '9') || *end == '-' || *end == '+' || *end == '.' ||
           *end == 'e' || *end == 'E')
        end++;
    switch (peg__number_read(peg__strn(start, (size_t)(end - start)), p->max_digits,
                             p->max_exponent, value)) {
    case PEG__NUMBER_OK:
        return end;
    case PEG__NUMBER_LIMIT:
        return fail(p, PEG_ELIMIT, "E_JSON_NUMBER_TOO_LONG", start,
                    "this number has more digits than max_number_digits or a larger exponent than "
                    "max_exponent; shorten it or send it as a string");
    case PEG__NUMBER_SYNTAX:
        break;
    }
    return fail_syntax(p, end == start ? start : end,
                       end == start ? "expected a value: one of { [ \" t f n, a digit or '-'"
                                    : "this is not a JSON number");
}

struct digits {
    uint64_t value;
    int n;
};

static inline char *read_digits(char *at, struct digits *digits)
{
    unsigned digit;

    while ((digit = (unsigned)(*at - '0')) <= 9) {
        digits->value = digits->value * 10 + digit;
        digits->n++;
        at++;
    }
    return at;
}

/* The exponent of a number, at the `e`. NULL leaves the case to read_hard_number(). */
static inline char *read_exponent(char *at, int *exponent)
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
static inline char *read_decimal(char *at, struct digits *digits, int *exponent)
{
    if (*at == '.') {
        const int whole = digits->n;

        at = read_digits(at + 1, digits);
        if (digits->n == whole)
            return NULL;
        *exponent = whole - digits->n;
    }
    return *at == 'e' || *at == 'E' ? read_exponent(at, exponent) : at;
}

static inline char *read_number(struct parser *p, char *start, peg_json *value)
{
    const bool negative = *start == '-';
    struct digits digits = {0};
    int exponent = 0;
    char *const whole = start + negative;
    char *at = read_digits(whole, &digits);

    /* No digit, a leading zero before another digit, or too many for 64 bits. */
    if (digits.n == 0 || (*whole == '0' && digits.n > 1) || digits.n > MAX_SCALED_DIGITS)
        return read_hard_number(p, start, value);
    value->form = 0;
    value->exponent = 0;
    value->u.number = negative ? -(int64_t)digits.value : (int64_t)digits.value;
    if (*at != '.' && *at != 'e' && *at != 'E' && (digits.value || !negative)) {
        value->kind = PEG_JSON_INTEGER;
        return at;
    }

    at = read_decimal(at, &digits, &exponent);
    if (!at || digits.n > MAX_SCALED_DIGITS || exponent > MAX_SCALED_EXPONENT ||
        exponent < -MAX_SCALED_EXPONENT || (unsigned)abs(exponent) + 18 > p->max_exponent)
        return read_hard_number(p, start, value);
    value->kind = PEG_JSON_DECIMAL;
    value->form = digits.value || !negative ? PEG_JSON_FORM_SCALED : PEG_JSON_FORM_MINUS0;
    value->exponent = (int16_t)exponent;
    value->u.number = negative ? -(int64_t)digits.value : (int64_t)digits.value;
    return at;
}

static inline char *read_word(struct parser *p, char *at, peg_json *value)
{
    value->form = 0;
    if (memcmp(at, "true", 4) == 0) {
        value->kind = PEG_JSON_BOOL;
        value->u.truth = 1;
        return at + 4;
    }
    if (memcmp(at, "null", 4) == 0) {
        value->kind = PEG_JSON_NULL;
        value->u.truth = 0;
        return at + 4;
    }
    if (memcmp(at, "false", 5) == 0) {
        value->kind = PEG_JSON_BOOL;
        value->u.truth = 0;
        return at + 5;
    }
    return fail_syntax(p, at, "expected true, false or null; other words need quotes");
}

/* ---- objects and arrays --------------------------------------------------- */

static char *note_duplicate(struct parser *p, const peg_json *key, char *at)
{
    if (p->duplicates == PEG_JSON_REFUSE)
        return fail(p, PEG_EPARSE, "E_JSON_DUPLICATE_KEY", key->u.ptr - 1,
                    "this object has a member of that name already; keep one of them");
    p->has_duplicates = true;
    return at;
}

/* A bit for a key. Keys are padded, so eight bytes can always be read. */
static inline uint64_t key_bit(const peg_json *key)
{
    uint64_t word;

    memcpy(&word, key->u.ptr, 8);
    if (key->len < 8)
        word &= (1ULL << (key->len * 8)) - 1;
    return 1ULL << (((word ^ key->len) * 0x9E3779B97F4A7C15ULL) >> 58);
}

/* The key of the next member, its colon and the space behind it. */
static inline char *read_key(struct parser *p, char *at)
{
    struct frame *top = &p->frames[p->depth];
    peg_json *key = add_value(p);
    uint64_t bit;

    if (!key)
        return fail_nomem(p);
    if (*at != '"')
        return fail_syntax(p, at, "expected a member's name in double quotes");
    at = read_string(p, at + 1, key);
    if (!at)
        return NULL;

    bit = key_bit(key);
    if (__builtin_expect((top->seen & bit) != 0, 0) && top->n <= PEG_JSON_FEW_MEMBERS &&
        peg__json_has_key_before(&p->doc->values[top->index], key) &&
        !(at = note_duplicate(p, key, at)))
        return NULL;
    top->seen |= bit;

    at = skip_space(at);
    if (*at != ':')
        return fail_syntax(p, at, "expected ':' after the member's name");
    return skip_space(at + 1);
}

/* Returns the place of the first value inside, or behind an empty container. */
static inline char *open_container(struct parser *p, char *at, peg_json *value)
{
    const bool is_object = *at == '{';
    struct frame *top;

    if (__builtin_expect(p->depth == p->max_depth, 0))
        return fail(p, PEG_ELIMIT, "E_JSON_TOO_DEEP", at,
                    "the text nests deeper than max_depth; flatten it or raise the limit");
    top = &p->frames[++p->depth];
    top->seen = 0;
    top->index = (uint32_t)(value - p->doc->values);
    top->n = 0;
    top->closer = is_object ? '}' : ']';
    value->kind = is_object ? PEG_JSON_OBJECT : PEG_JSON_ARRAY;
    value->form = 0;

    at = skip_space(at + 1);
    if (*at == top->closer)
        return at;
    top->n = 1;
    return is_object ? read_key(p, at) : at;
}

static char *check_many_keys(struct parser *p, const peg_json *object, char *at)
{
    const peg_json *key;

    if (!peg__json_find_duplicate(object, &key))
        return fail_nomem(p);
    return key ? note_duplicate(p, key, at) : at;
}

static inline char *close_container(struct parser *p, char *at)
{
    const struct frame *top = &p->frames[p->depth--];
    peg_json *container = &p->doc->values[top->index];

    container->len = top->n;
    container->u.extent = (uint64_t)(p->next - container);
    if (__builtin_expect(top->closer == '}' && top->n > PEG_JSON_FEW_MEMBERS, 0))
        return check_many_keys(p, container, at + 1);
    return at + 1;
}

/* Behind a value: closes what ends here and goes to where the next value starts. */
static inline char *after_value(struct parser *p, char *at)
{
    while (p->depth > 0) {
        struct frame *top = &p->frames[p->depth];

        at = skip_space(at);
        if (*at == ',') {
            top->n++;
            at = skip_space(at + 1);
            return top->closer == '}' ? read_key(p, at) : at;
        }
        if (*at != top->closer)
            return fail_syntax(p, at,
                               top->closer == '}' ? "expected ',' or '}' after a member"
                                                  : "expected ',' or ']' after an item");
        at = close_container(p, at);
        if (!at)
            return NULL;
    }
    return at;
}

/* ---- the whole text ------------------------------------------------------- */

static inline char *read_scalar(struct parser *p, char *at, peg_json *value)
{
    switch (*at) {
    case '"':
        return read_string(p, at + 1, value);
    case 't':
    case 'f':
    case 'n':
        return read_word(p, at, value);
    default:
        return read_number(p, at, value);
    }
}

static char *parse_values(struct parser *p, char *at)
{
    do {
        peg_json *value = add_value(p);

        if (!value)
            return fail_nomem(p);
        if (*at == '{' || *at == '[') {
            at = open_container(p, at, value);
            if (!at)
                return NULL;
            if (p->frames[p->depth].n > 0)
                continue; /* `at` is at the first value inside */
        } else {
            at = read_scalar(p, at, value);
            if (!at)
                return NULL;
        }
        at = after_value(p, at);
    } while (at && p->depth > 0);
    return at;
}

static peg_status parse_text(struct parser *p)
{
    char *at = parse_values(p, skip_space(p->doc->text));

    if (at) {
        at = skip_space(at);
        if (at != p->end)
            at = fail_syntax(p, at, "expected nothing after the value; remove what follows");
    }
    if (at && p->has_duplicates && !peg__json_drop_duplicates(p->doc, p->duplicates))
        fail_nomem(p);
    return p->status;
}

/* Copies the text into the document and makes room for its values. */
static bool load(struct parser *p, peg_str text)
{
    peg_json_doc *doc = p->doc;
    /* Room for every value of a small text; larger ones start with what is usual and grow. */
    const size_t want = text.len <= 16384 ? text.len / 2 + 4 : text.len / 8;

    if (doc->text_capacity < text.len + PEG_JSON_PADDING) {
        char *grown = peg__alloc(text.len + PEG_JSON_PADDING);

        if (!grown)
            return false;
        peg__free(doc->text);
        doc->text = grown;
        doc->text_capacity = text.len + PEG_JSON_PADDING;
    }
    if (text.len)
        memcpy(doc->text, text.ptr, text.len);
    memset(doc->text + text.len, 0, PEG_JSON_PADDING);
    p->end = doc->text + text.len;

    if (doc->capacity < want) {
        peg_json *values = peg__alloc(want * sizeof(*values));

        if (!values)
            return false;
        peg__free(doc->values);
        doc->values = values;
        doc->capacity = want;
    }
    p->next = doc->values;
    p->limit = doc->values + doc->capacity;
    return true;
}

static void take_options(struct parser *p, const peg_json_options *options)
{
    const peg_json_options none = {0};
    const peg_json_options *o = options ? options : &none;

    p->max_depth = o->max_depth ? o->max_depth : PEG_LIMIT_JSON_DEPTH;
    if (p->max_depth > PEG_LIMIT_JSON_DEPTH_MAX)
        p->max_depth = PEG_LIMIT_JSON_DEPTH_MAX;
    p->max_digits = o->max_number_digits ? o->max_number_digits : PEG_LIMIT_NUMBER_DIGITS;
    p->max_exponent = o->max_exponent ? o->max_exponent : PEG_LIMIT_NUMBER_EXPONENT;
    p->duplicates = o->duplicates;
}

static size_t max_bytes(const peg_json_options *options)
{
    const size_t max = options && options->max_bytes ? options->max_bytes : PEG_LIMIT_JSON_BYTES;

    return max < PEG_LIMIT_JSON_BYTES_MAX ? max : PEG_LIMIT_JSON_BYTES_MAX;
}

static peg_status parse(peg_json_doc *doc, peg_str text, const peg_json_options *options,
                        peg_error *reterr)
{
    struct frame small[SMALL_DEPTH + 1];
    struct parser p = {.doc = doc, .frames = small};

    if (text.len > max_bytes(options))
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                         "the text has %zu bytes, more than max_bytes = %zu; send less or raise "
                         "the limit",
                         text.len, max_bytes(options));
    take_options(&p, options);
    if (p.max_depth > SMALL_DEPTH)
        p.frames = peg__alloc((p.max_depth + 1) * sizeof(*p.frames));
    if (!p.frames || !load(&p, text))
        fail_nomem(&p);
    else
        parse_text(&p);
    if (p.frames != small)
        peg__free(p.frames);
    if (p.status == PEG_OK)
        return PEG_OK;
    if (p.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    peg__fail(reterr, p.status, p.code, "%s", p.message);
    peg__error_at(reterr, text, (size_t)(p.failed_at - doc->text));
    return p.status;
}

peg_status peg_json_reparse(peg_json_doc *doc, peg_str text, const peg_json_options *options,
                            peg_error *reterr)
{
    const peg_status status = parse(doc, text, options, reterr);

    /* No half-read value is ever handed out. */
    if (status && doc->values)
        doc->values[0] = (peg_json){.kind = PEG_JSON_NULL};
    return status;
}

peg_status peg_json_parse(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                          peg_error *reterr)
{
    peg_json_doc *doc = peg__json_doc_new();
    peg_status status;

    if (!doc)
        return peg__fail_nomem(reterr);
    status = parse(doc, text, options, reterr);
    if (status)
        peg_json_doc_free(doc);
    else
        *ret_doc = doc;
    return status;
}
