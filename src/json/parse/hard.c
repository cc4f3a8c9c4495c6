/* SPDX-License-Identifier: Apache-2.0 */

/* What rarely happens while parsing: mistakes, limits, escapes, long numbers, equal keys. */

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/number/number.h"
#include "json/parse/index.h"
#include "json/parse/internal.h"
#include "json/parse/scan.h"

char *peg__parse_fail(struct peg__parser *p, peg_status status, const char *code, const char *at,
                      const char *message)
{
    if (p->status)
        return NULL; /* the first one counts */
    p->status = status;
    p->code = code;
    p->failed_at = at;
    p->message = message;
    return NULL;
}

char *peg__parse_fail_syntax(struct peg__parser *p, const char *at, const char *message)
{
    if (at == p->end)
        message = "the text ends in the middle of a value";
    return peg__parse_fail(p, PEG_EPARSE, "E_JSON_SYNTAX", at, message);
}

char *peg__parse_fail_depth(struct peg__parser *p, const char *at)
{
    return peg__parse_fail(p, PEG_ELIMIT, "E_JSON_TOO_DEEP", at,
                           "the text nests deeper than max_depth; flatten it or raise the limit");
}

char *peg__parse_fail_after(struct peg__parser *p, const struct peg__frame *top, const char *at)
{
    return peg__parse_fail_syntax(p, at,
                                  top->closer == '}' ? "expected ',' or '}' after a member"
                                                     : "expected ',' or ']' after an item");
}

static char *fail_out_of_memory(struct peg__parser *p)
{
    return peg__parse_fail(p, PEG_ENOMEM, "E_OUT_OF_MEMORY", p->end, "out of memory");
}

/* The capacity to reserve: the values that are there, those of the next window, and for each
 * window behind it as many, unless they are uncommonly many: only a few texts go on like that. */
static size_t choose_capacity(const peg_json_doc *doc, size_t used, size_t n_more, ptrdiff_t n_left)
{
    const size_t n_behind = n_left > PEG__WINDOW ? (size_t)n_left - PEG__WINDOW : 0;
    const size_t as_many = n_behind * n_more / PEG__WINDOW;
    const size_t at_most = n_behind / 4;
    const size_t want = used + n_more + (as_many < at_most ? as_many : at_most);
    /* Each time more, so that a text or a document used again is not moved often. */
    const size_t half_more = doc->capacity + doc->capacity / 2;

    return want > half_more ? want : half_more;
}

peg_json *peg__parse_reserve(struct peg__parser *p, peg_json *next, size_t n_more, ptrdiff_t n_left)
{
    peg_json_doc *doc = p->doc;
    const size_t used = (size_t)(next - doc->values);
    size_t capacity;
    peg_json *grown;

    if (doc->capacity - used >= n_more)
        return next;
    capacity = choose_capacity(doc, used, n_more, n_left);
    if (used) {
        grown = peg__realloc(doc->values, capacity * sizeof(*grown));
    } else {
        grown = peg__alloc(capacity * sizeof(*grown)); /* nothing to be copied */
        if (grown)
            peg__free(doc->values);
    }
    if (!grown) {
        fail_out_of_memory(p);
        return NULL;
    }
    doc->values = grown;
    doc->capacity = capacity;
    return grown + used;
}

char *peg__parse_space(char *at)
{
    for (;;) {
        switch (*at) {
        case '\n':
        case ' ':
            at += peg__scan_spaces(at + 1) - at;
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

char *peg__parse_find_name(struct peg__parser *p, char *at)
{
    at = peg__parse_space(at);
    return *at == '"' ? at
                      : peg__parse_fail_syntax(p, at, "expected a member's name in double quotes");
}

char *peg__parse_find_colon(struct peg__parser *p, char *at)
{
    at = peg__parse_space(at);
    return *at == ':' ? at : peg__parse_fail_syntax(p, at, "expected ':' after the member's name");
}

char *peg__parse_hard_string(struct peg__parser *p, char *start, peg_json *value)
{
    char *stop = start + (peg__scan_plain(start) - start);

    return peg__parse_rest_of_string(p, start, stop, stop, value);
}

char *peg__parse_rest_of_string(struct peg__parser *p, char *start, char *end, char *at,
                                peg_json *value)
{
    struct peg__unescaped text = {.at = at, .end = end};

    if (!peg__json_unescape(&text)) {
        if (text.at == p->end)
            return peg__parse_fail_syntax(p, text.at, "");
        return peg__parse_fail(p, PEG_EPARSE, text.is_utf8 ? "E_JSON_UTF8" : "E_JSON_SYNTAX",
                               text.at, text.problem);
    }
    *value =
        (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)(text.end - start), .u.ptr = start};
    *text.end = '\0';
    return text.at + 1;
}

char *peg__parse_hard_number(struct peg__parser *p, char *start, peg_json *value)
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
        return peg__parse_fail(p, PEG_ELIMIT, "E_JSON_TOO_LARGE", start,
                               "this number has more digits than max_number_digits or a larger "
                               "exponent than max_exponent; shorten it or send it as a string");
    case PEG__NUMBER_SYNTAX:
        break;
    }
    if (end == start)
        return peg__parse_fail_syntax(p, start,
                                      "expected a value: one of { [ \" t f n, a digit or '-'");
    return peg__parse_fail_syntax(p, end, "this is not a JSON number");
}

static char *note_duplicate(struct peg__parser *p, const peg_json *object, const peg_json *key,
                            char *at)
{
    if (p->duplicates == PEG_JSON_REFUSE) {
        p->twice = key;
        p->twice_in = object;
        return peg__parse_fail(p, PEG_EPARSE, "E_JSON_DUPLICATE_KEY", key->u.ptr - 1,
                               "comes twice in its object; keep one of them");
    }
    p->has_duplicates = true;
    return at;
}

/* What does not fit is left out, whole characters and all that follows them. */
struct pointer {
    char *ptr;
    size_t len;
    size_t size;
};

static void push_bytes(struct pointer *out, const char *bytes, size_t len)
{
    const size_t left = out->size - out->len - 1;

    if (len > left) {
        out->size = out->len + 1;
        return;
    }
    memcpy(out->ptr + out->len, bytes, len);
    out->len += len;
}

static void push_name(struct pointer *out, peg_str name)
{
    push_bytes(out, "/", 1);
    while (name.len) {
        const size_t n = peg__utf8_char_len(name);

        if (name.ptr[0] == '~' || name.ptr[0] == '/')
            push_bytes(out, name.ptr[0] == '~' ? "~0" : "~1", 2);
        else
            push_bytes(out, name.ptr, n);
        name = peg__str_from(name, n);
    }
}

static void push_index(struct pointer *out, uint32_t index)
{
    char digits[16];
    const int len = snprintf(digits, sizeof(digits), "/%u", (unsigned)index);

    push_bytes(out, digits, (size_t)len);
}

/* The frames up to that of the object still stand when its member is refused: the value before that
 * of an open container is its name, if it has one. */
void peg__parse_where(const struct peg__parser *p, char *ret_where, size_t size)
{
    struct pointer out = {.ptr = ret_where, .size = size};
    const peg_json *values = p->doc->values;

    for (const struct peg__frame *frame = p->frames + 1; values + frame->index != p->twice_in;
         frame++) {
        if (frame->closer == '}')
            push_name(&out, peg_json_str(&values[frame[1].index - 1]));
        else
            push_index(&out, frame->n - 1);
    }
    push_name(&out, peg_json_str(p->twice));
    ret_where[out.len] = '\0';
}

char *peg__parse_check_key(struct peg__parser *p, const struct peg__frame *top, const peg_json *key,
                           char *at)
{
    const peg_json *object = &p->doc->values[top->index];

    if (top->n > PEG_JSON_FEW_MEMBERS || /* checked when the object is complete */
        !peg__json_has_key_before(object, key))
        return at;
    return note_duplicate(p, object, key, at);
}

char *peg__parse_check_keys(struct peg__parser *p, const peg_json *object, char *at)
{
    const peg_json *key;

    if (!peg__json_find_duplicate(object, &key))
        return fail_out_of_memory(p);
    return key ? note_duplicate(p, object, key, at) : at;
}
