/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/status.h"
#include "base/text/str.h"

static const char *const names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};
enum { N_CODES = sizeof(names) / sizeof(names[0]) };

/* ---- codes ---------------------------------------------------------------------------------- */

const char *grpc_code_name(enum grpc_code code)
{
    return (unsigned)code < N_CODES ? names[code] : "UNKNOWN";
}

enum grpc_code grpc_code_from_wire(peg_str decimal)
{
    unsigned value = 0;

    if (decimal.len == 0)
        return GRPC_UNKNOWN;
    for (size_t i = 0; i < decimal.len; i++) {
        if (decimal.ptr[i] < '0' || decimal.ptr[i] > '9')
            return GRPC_UNKNOWN;
        value = value * 10 + (unsigned)(decimal.ptr[i] - '0');
        if (value >= N_CODES)
            return GRPC_UNKNOWN;
    }
    return (enum grpc_code)value;
}

enum grpc_code grpc_code_from_http(int http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

enum grpc_code grpc_code_from_h2(uint32_t h2_error, bool deadline_passed)
{
    switch (h2_error) {
    case 0x7: /* REFUSED_STREAM */
        return GRPC_UNAVAILABLE;
    case 0x8: /* CANCEL: a peer that sees the deadline pass may say so before our timer does */
        return deadline_passed ? GRPC_DEADLINE_EXCEEDED : GRPC_CANCELLED;
    case 0xb: /* ENHANCE_YOUR_CALM */
        return GRPC_RESOURCE_EXHAUSTED;
    case 0xc: /* INADEQUATE_SECURITY */
        return GRPC_PERMISSION_DENIED;
    default: /* NO_ERROR too: a status should have come, and did not */
        return GRPC_INTERNAL;
    }
}

/* ---- percent-encoding ----------------------------------------------------------------------- */

/* A field of HTTP/2 does not begin or end with a space (RFC 9113, 8.2.1): peers strip them, or
 * reset the stream. */
static bool stays(peg_str text, size_t i)
{
    const unsigned char c = (unsigned char)text.ptr[i];

    if (c == ' ')
        return i > 0 && i < text.len - 1;
    return c > ' ' && c <= 0x7e && c != '%';
}

size_t grpc_percent_encode(peg_str text, char *ret_text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        if (stays(text, i)) {
            ret_text[len++] = (char)c;
            continue;
        }
        ret_text[len++] = '%';
        ret_text[len++] = hex[c >> 4];
        ret_text[len++] = hex[c & 15];
    }
    return len;
}

size_t grpc_percent_fit(peg_str text, size_t max)
{
    size_t n_encoded = 0;
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        n_encoded += stays((peg_str){text.ptr, i + 1}, i) ? 1 : 3;
        if (n_encoded > max)
            break;
        /* A space that stays is not the last one. */
        if (c == ' ' && i > 0)
            n_encoded -= 2;
        n = i + 1;
    }
    return n < text.len ? peg__utf8_cut(text.ptr, n) : n;
}

static size_t unescape(peg_str text, char *ret_text)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const int high =
            text.ptr[i] == '%' && text.len - i > 2 ? peg__hex_value(text.ptr[i + 1]) : -1;
        const int low = high >= 0 ? peg__hex_value(text.ptr[i + 2]) : -1;

        if (low >= 0) {
            ret_text[len++] = (char)(high << 4 | low);
            i += 2;
        } else {
            ret_text[len++] = text.ptr[i];
        }
    }
    return len;
}

size_t grpc_percent_decode(peg_str text, char *ret_text)
{
    static const char replacement[] = {'\xEF', '\xBF', '\xBD'}; /* U+FFFD */
    /* The bytes are put at the end of the room first. What has been written of k of them, at most
     * 3 * k, never reaches those that are still to be read. */
    const char *const bytes = ret_text + 2 * text.len;
    const size_t n = unescape(text, ret_text + 2 * text.len);
    size_t len = 0;

    for (size_t i = 0; i < n;) {
        const size_t n_char = peg__utf8_char_len(peg__strn(bytes + i, n - i));

        if (n_char) {
            memmove(ret_text + len, bytes + i, n_char);
            len += n_char;
            i += n_char;
        } else {
            memcpy(ret_text + len, replacement, sizeof(replacement));
            len += 3;
            i++;
        }
    }
    return len;
}

/* ---- timeout ---------------------------------------- */

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
