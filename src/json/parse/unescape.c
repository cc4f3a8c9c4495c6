/* SPDX-License-Identifier: Apache-2.0 */

#include "json/parse/internal.h"

#include "base/text/str.h"
#include "json/parse/scan.h"

static bool fail_escape(struct peg__unescaped *text, const char *problem)
{
    text->problem = problem;
    text->is_utf8 = false;
    return false;
}

/* Bytes of the UTF-8 character at `at`, 0 if there is none: RFC 3629, so no surrogates, no
 * overlong forms, nothing above U+10FFFF. A NUL behind the text ends every test. */
static size_t utf8_size(const char *at)
{
    const unsigned char first = (unsigned char)at[0];
    const unsigned char second = (unsigned char)at[1];

    if (first < 0xC2 || first > 0xF4 || !peg__utf8_is_tail(at[1]))
        return 0;
    if (first < 0xE0)
        return 2;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        !peg__utf8_is_tail(at[2]))
        return 0;
    if (first < 0xF0)
        return 3;
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) ||
        !peg__utf8_is_tail(at[3]))
        return 0;
    return 4;
}

/* Four hexadecimal digits, or -1. */
static long read_hex4(const char *at)
{
    long value = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = peg__hex_value(at[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* \uXXXX, a pair of them for what is beyond the basic plane. */
static bool unescape_unicode(struct peg__unescaped *text)
{
    const long first = read_hex4(text->at + 2);
    long second;

    if (first < 0)
        return fail_escape(text, "expected four hexadecimal digits after \\u");
    if (first < 0xD800 || first > 0xDFFF) {
        text->end = peg__utf8_put(text->end, (uint32_t)first);
        text->at += 6;
        return true;
    }
    second = text->at[6] == '\\' && text->at[7] == 'u' ? read_hex4(text->at + 8) : -1;
    if (first > 0xDBFF || second < 0xDC00 || second > 0xDFFF)
        return fail_escape(text, "half of a surrogate pair is no character; write both halves");
    text->end = peg__utf8_put(text->end, 0x10000 + (((uint32_t)first & 0x3FF) << 10) +
                                             ((uint32_t)second & 0x3FF));
    text->at += 12;
    return true;
}

static bool unescape_one(struct peg__unescaped *text)
{
    static const char meanings[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                       ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    const char meaning = meanings[(unsigned char)text->at[1]];

    if (!meaning) {
        if (text->at[1] == 'u')
            return unescape_unicode(text);
        return fail_escape(
            text, "unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX");
    }
    *text->end++ = meaning;
    text->at += 2;
    return true;
}

/* A run of characters beyond ASCII. */
static bool copy_characters(struct peg__unescaped *text)
{
    do {
        const size_t size = utf8_size(text->at);

        if (size == 0) {
            fail_escape(text, "these bytes are not UTF-8");
            text->is_utf8 = true;
            return false;
        }
        for (size_t i = 0; i < size; i++)
            text->end[i] = text->at[i];
        text->end += size;
        text->at += size;
    } while ((unsigned char)*text->at >= 0x80);
    return true;
}

static void copy_plain(struct peg__unescaped *text)
{
    const char *stop = text->end == text->at ? peg__scan_plain(text->at)
                                             : peg__scan_move_plain(text->end, text->at);

    text->end += stop - text->at;
    text->at += stop - text->at;
}

bool peg__json_unescape(struct peg__unescaped *text)
{
    while (*text->at != '"') {
        if (*text->at == '\\') {
            if (!unescape_one(text))
                return false;
        } else if ((unsigned char)*text->at >= 0x80) {
            if (!copy_characters(text))
                return false;
        } else if ((unsigned char)*text->at < 0x20) {
            return fail_escape(text, "control characters in a string must be escaped");
        }
        copy_plain(text);
    }
    return true;
}
