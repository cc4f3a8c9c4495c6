/* SPDX-License-Identifier: Apache-2.0 */

/* ipv4 as the dotted quad of RFC 2673 section 3.2, ipv6 as RFC 4291 section 2.2. */

#include "schema/format/kinds.h"

enum { IPV4_MIN_LEN = 7, IPV4_MAX_LEN = 15, IPV6_MAX_LEN = 45, IPV6_GROUPS = 8 };

/* The length of the number 0 to 255 at p, written without leading zeros; 0 if there is none. */
static size_t octet_len(const char *p, const char *end)
{
    unsigned value = 0;
    size_t len = 0;

    while (p + len < end && len < 3 && peg__byte_is(p[len], PEG__DIGIT))
        value = value * 10 + (unsigned)(p[len++] - '0');
    if (value > 255 || (len > 1 && *p == '0'))
        return 0;
    return len;
}

bool peg__format_ipv4(peg_str s)
{
    const char *p = s.ptr;
    const char *end;

    if (s.len < IPV4_MIN_LEN || s.len > IPV4_MAX_LEN)
        return false;

    end = s.ptr + s.len;
    for (unsigned n = 1;; n++) {
        const size_t len = octet_len(p, end);

        p += len;
        if (len == 0 || n == 4)
            return len > 0 && p == end;
        if (p == end || *p++ != '.')
            return false;
    }
}

static size_t group_len(const char *p, const char *end)
{
    size_t len = 0;

    while (p + len < end && len < 4 && peg__byte_is(p[len], PEG__HEX))
        len++;
    return len;
}

/* The groups from p on. A "::" before p is in *elided, one that comes sets it. */
static bool count_groups(const char *p, const char *end, bool *elided, unsigned *ret_n)
{
    for (unsigned n = 0;;) {
        const size_t len = group_len(p, end);

        if (len == 0)
            return false;
        if (p + len < end && p[len] == '.') { /* the last two groups, as IPv4 */
            *ret_n = n + 2;
            return peg__format_ipv4(peg__strn(p, (size_t)(end - p)));
        }
        p += len;
        *ret_n = ++n;
        if (p == end)
            return true;
        if (*p++ != ':' || p == end)
            return false;
        if (*p != ':')
            continue;
        if (*elided)
            return false;
        *elided = true;
        if (++p == end)
            return true;
    }
}

bool peg__format_ipv6(peg_str s)
{
    const char *p = s.ptr;
    bool elided = false;
    unsigned n = 0;

    if (s.len < 2 || s.len > IPV6_MAX_LEN)
        return false;
    if (p[0] == ':' && p[1] == ':') {
        if (s.len == 2)
            return true;
        elided = true;
        p += 2;
    }
    if (!count_groups(p, s.ptr + s.len, &elided, &n))
        return false;
    return elided ? n < IPV6_GROUPS : n == IPV6_GROUPS;
}
