/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/timeout.h"

enum { MAX_DIGITS = 8, MAX_VALUE = 99999999 };

static const struct {
    char name;
    int64_t ns;
} units[] = {
    {'n', 1},
    {'u', 1000},
    {'m', 1000LL * 1000},
    {'S', 1000LL * 1000 * 1000},
    {'M', 60LL * 1000 * 1000 * 1000},
    {'H', 3600LL * 1000 * 1000 * 1000},
};
enum { N_UNITS = sizeof(units) / sizeof(units[0]) };

static int64_t unit_of(char name)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].name == name)
            return units[i].ns;
    return 0;
}

bool grpc_timeout_parse(peg_str text, int64_t *ret_ns)
{
    int64_t value = 0;
    int64_t unit;

    if (text.len < 2 || text.len > MAX_DIGITS + 1)
        return false;
    for (size_t i = 0; i < text.len - 1; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        value = value * 10 + (text.ptr[i] - '0');
    }
    unit = unit_of(text.ptr[text.len - 1]);
    if (!unit)
        return false;
    if (__builtin_mul_overflow(value, unit, ret_ns))
        *ret_ns = INT64_MAX;
    return true;
}

size_t grpc_timeout_format(int64_t ns, char ret_text[GRPC_TIMEOUT_TEXT])
{
    char digits[MAX_DIGITS];
    size_t n_digits = 0;
    size_t len = 0;
    size_t unit = 0;
    int64_t value = ns > 0 ? ns : 1;

    /* INT64_MAX nanoseconds are 2,562,048 hours: the last unit is always enough. */
    while (value > MAX_VALUE && unit < N_UNITS - 1) {
        unit++;
        value = ns / units[unit].ns + (ns % units[unit].ns != 0);
    }
    do {
        digits[n_digits++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);

    while (n_digits)
        ret_text[len++] = digits[--n_digits];
    ret_text[len++] = units[unit].name;
    ret_text[len] = '\0';
    return len;
}
