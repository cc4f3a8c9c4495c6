/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void peg__base64_encode(peg_str bytes, char *ret_text)
{
    const unsigned char *in = (const unsigned char *)bytes.ptr;
    const size_t n = bytes.len;
    char *out = ret_text;
    size_t i = 0;

    for (; n - i >= 3; i += 3) {
        const unsigned three = (unsigned)in[i] << 16 | (unsigned)in[i + 1] << 8 | in[i + 2];

        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = digits[three >> 6 & 63];
        *out++ = digits[three & 63];
    }
    if (n - i > 0) {
        const unsigned three = (unsigned)in[i] << 16 | (n - i > 1 ? (unsigned)in[i + 1] << 8 : 0);

        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = (char)(n - i > 1 ? digits[three >> 6 & 63] : '=');
        *out++ = '=';
    }
    *out = '\0';
}

enum { SPACE = -1, PADDING = -2, WRONG = -3 };

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    switch (c) {
    case '+':
    case '-':
        return 62;
    case '/':
    case '_':
        return 63;
    case '=':
        return PADDING;
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        return SPACE;
    default:
        return WRONG;
    }
}

/* What is left of a group that is not whole: 0, 2 or 3 characters, and the padding fits. */
static bool ends_well(unsigned n_left, unsigned n_padding)
{
    if (n_left == 1)
        return false;
    return n_padding == 0 || (n_left > 0 && n_left + n_padding == 4);
}

bool peg__base64_decode(peg_str text, char *ret_bytes, size_t *ret_len)
{
    uint32_t group = 0;
    unsigned n_left = 0; /* characters of the group so far */
    unsigned n_padding = 0;
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const int value = value_of(text.ptr[i]);

        if (value == SPACE)
            continue;
        if (value == WRONG || (value >= 0 && n_padding) || n_padding > 2)
            return false;
        if (value == PADDING) {
            n_padding++;
            continue;
        }
        group = group << 6 | (uint32_t)value;
        if (++n_left < 4)
            continue;
        ret_bytes[len++] = (char)(group >> 16);
        ret_bytes[len++] = (char)(group >> 8);
        ret_bytes[len++] = (char)group;
        group = 0;
        n_left = 0;
    }
    if (!ends_well(n_left, n_padding))
        return false;
    if (n_left >= 2)
        ret_bytes[len++] = (char)(group >> (n_left == 2 ? 4 : 10));
    if (n_left == 3)
        ret_bytes[len++] = (char)(group >> 2);
    *ret_len = len;
    return true;
}
