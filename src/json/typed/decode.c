/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/limits/generate.h"
#include "base/text/str.h"
#include "json/number/number.h"
#include "json/typed/typed.h"

/* 2^53: whole numbers below are doubles. */
static const double EXACT = 9007199254740992.0;

/* ---- failing ------------------------------------------------------------------------------ */

/* The first failure counts. */
static bool fail_decoding(peg_decoder *d, const peg_json *value, const char *code,
                          const char *message)
{
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (d->status)
        return false;
    d->status = peg__fail(d->reterr, PEG_ESCHEMA, code, "%s", message);
    if (!d->reterr)
        return false;
    if (d->root)
        peg__json_pointer_to(d->root, value, &pointer);
    peg__error_where(d->reterr, peg__buf_view(&pointer));
    peg__buf_free(&pointer);
    return false;
}

bool peg_decode_fail(peg_decoder *d, const peg_json *value, const char *expected)
{
    struct peg__buf message = PEG__BUF(1024);

    peg__buf_printf(&message, "expected %s, got %s", expected,
                    peg_json_kind_name(peg_json_kind_of(value)));
    fail_decoding(d, value, "E_DECODE", message.ptr ? message.ptr : expected);
    peg__buf_free(&message);
    return false;
}

bool peg_decode_fail_missing(peg_decoder *d, const peg_json *object, const char *const *names,
                             size_t n)
{
    struct peg__buf message = PEG__BUF(4096);
    size_t i = 0;

    while (i + 1 < n && peg_json_get(object, names[i]))
        i++;
    peg__buf_printf(&message, "the member '%.128s' is missing", n ? names[i] : "");
    fail_decoding(d, object, "E_DECODE", message.ptr ? message.ptr : "a member is missing");
    peg__buf_free(&message);
    return false;
}

void *peg_decode_alloc(peg_decoder *d, size_t n, size_t size)
{
    void *memory = NULL;

    if (n && size && n > (PEG_LIMIT_TYPED_BYTES - d->arena->decoded) / size) {
        if (!d->status)
            d->status = peg__fail(d->reterr, PEG_ELIMIT, "E_DECODE_LIMIT",
                                  "the value takes more than %d MiB of memory, which is "
                                  "PEG_LIMIT_TYPED_BYTES: send fewer items",
                                  PEG_LIMIT_TYPED_BYTES >> 20);
        return NULL;
    }
    memory = peg_arena_alloc(d->arena, n, size);
    if (memory)
        d->arena->decoded += n * size;
    if (!memory && n && !d->status)
        d->status = peg__fail_nomem(d->reterr);
    return memory;
}

/* ---- values ------------------------------------------------------------------------------- */

bool peg_decode_integer(peg_decoder *d, const peg_json *value, int64_t *ret_number)
{
    if (value && value->kind == PEG_JSON_INTEGER) {
        *ret_number = value->u.number;
        return true;
    }
    if (peg_json_int64(value, ret_number))
        return true;
    if (peg_json_is_whole(value))
        return fail_decoding(d, value, "E_DECODE_RANGE",
                             "the number does not fit into 64 bits with a sign");
    return peg_decode_fail(d, value, "a whole number");
}

/* Does what is written for the double equal a number of 2^53 or more? */
static bool is_number_kept(const peg_json *value, double number)
{
    const struct peg__shortest s = peg__double_shortest(fabs(number));
    const peg_json written = {.kind = PEG_JSON_DECIMAL,
                              .form = PEG_JSON_FORM_SCALED,
                              .exponent = (int16_t)s.exponent,
                              .u.number =
                                  signbit(number) ? -(int64_t)s.mantissa : (int64_t)s.mantissa};

    return peg_json_compare_numbers(value, &written) == 0;
}

bool peg_decode_number(peg_decoder *d, const peg_json *value, double *ret_number)
{
    double number;

    if (!peg_json_is_number(value))
        return peg_decode_fail(d, value, "a number");
    number = peg_json_double(value);
    if (!isfinite(number) ||
        (fabs(number) >= EXACT && peg_json_is_whole(value) && !is_number_kept(value, number)))
        return fail_decoding(d, value, "E_DECODE_RANGE", "the number does not fit into a double");
    *ret_number = number;
    return true;
}

bool peg_decode_bool(peg_decoder *d, const peg_json *value, bool *ret_truth)
{
    if (!value || value->kind != PEG_JSON_BOOL)
        return peg_decode_fail(d, value, "true or false");
    *ret_truth = value->u.truth != 0;
    return true;
}

bool peg_decode_string(peg_decoder *d, const peg_json *value, peg_str *ret_text)
{
    if (!value || value->kind != PEG_JSON_STRING)
        return peg_decode_fail(d, value, "a string");
    *ret_text = peg__strn(value->u.ptr, value->len);
    return true;
}

bool peg_decode_null(peg_decoder *d, const peg_json *value)
{
    return peg_json_kind_of(value) == PEG_JSON_NULL || peg_decode_fail(d, value, "null");
}

bool peg_decode_enum(peg_decoder *d, const peg_json *value, const peg_str *names, size_t n,
                     unsigned *ret_index)
{
    const peg_str text = peg_json_str(value);

    if (!value || value->kind != PEG_JSON_STRING)
        return peg_decode_fail(d, value, "a string");
    for (size_t i = 0; i < n; i++) {
        if (peg__str_eq(names[i], text)) {
            *ret_index = (unsigned)i;
            return true;
        }
    }
    return peg_decode_fail(d, value, "one of the strings that the schema lists");
}

bool peg_decode_is_object(peg_decoder *d, const peg_json *value)
{
    return peg_json_kind_of(value) == PEG_JSON_OBJECT || peg_decode_fail(d, value, "an object");
}

bool peg_decode_is_array(peg_decoder *d, const peg_json *value)
{
    return peg_json_kind_of(value) == PEG_JSON_ARRAY || peg_decode_fail(d, value, "an array");
}
