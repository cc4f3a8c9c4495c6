/* SPDX-License-Identifier: Apache-2.0 */

/* uuid of RFC 4122, json-pointer of RFC 6901, relative-json-pointer and regex. */

#include "schema/format/kinds.h"
#include "schema/pattern/pattern.h"

enum { UUID_LEN = 36 };

bool peg__format_uuid(peg_str s)
{
    const char *const p = s.ptr;

    if (s.len != UUID_LEN || p[8] != '-' || p[13] != '-' || p[18] != '-' || p[23] != '-')
        return false;
    return peg__classes_of_4(p) & peg__classes_of_4(p + 4) & peg__classes_of_4(p + 9) &
           peg__classes_of_4(p + 14) & peg__classes_of_4(p + 19) & peg__classes_of_4(p + 24) &
           peg__classes_of_4(p + 28) & peg__classes_of_4(p + 32) & PEG__HEX;
}

bool peg__format_json_pointer(peg_str s)
{
    const char *p = s.ptr;
    const char *end;

    if (s.len == 0)
        return true;
    if (*p != '/')
        return false;

    end = s.ptr + s.len;
    while ((p = memchr(p, '~', (size_t)(end - p)))) {
        if (end - p < 2 || (p[1] != '0' && p[1] != '1'))
            return false;
        p += 2;
    }
    return true;
}

/* The length of an integer without leading zeros; 0 if there is none. */
static size_t integer_len(peg_str s)
{
    size_t len = 0;

    while (len < s.len && peg__byte_is(s.ptr[len], PEG__DIGIT))
        len++;
    return len > 1 && s.ptr[0] == '0' ? 0 : len;
}

static bool is_name_or_pointer(peg_str s)
{
    return (s.len == 1 && s.ptr[0] == '#') || peg__format_json_pointer(s);
}

bool peg__format_relative_json_pointer(peg_str s)
{
    const size_t len = integer_len(s);

    return len > 0 && is_name_or_pointer(peg__str_from(s, len));
}

bool peg__format_relative_json_pointer_2020(peg_str s)
{
    const size_t len = integer_len(s);
    peg_str rest;

    if (len == 0)
        return false;
    rest = peg__str_from(s, len);
    if (rest.len > 0 && (rest.ptr[0] == '+' || rest.ptr[0] == '-')) {
        const peg_str shift = peg__str_from(rest, 1);
        const size_t shift_len = integer_len(shift);

        if (shift_len == 0)
            return false;
        rest = peg__str_from(shift, shift_len);
    }
    return is_name_or_pointer(rest);
}

bool peg__format_regex(peg_str s)
{
    return peg__pattern_is_valid(s);
}
