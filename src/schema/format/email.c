/* SPDX-License-Identifier: Apache-2.0 */

/*
 * email: the Mailbox of RFC 5321 section 4.1.2; idn-email: with the extensions of RFC 6531
 * section 3.3. No comments, no folding, no display name.
 */

#include "schema/format/kinds.h"

enum {
    MAX_LOCAL_LEN = 64, /* RFC 5321 section 4.5.3.1 */
    MAX_LEN = 254,      /* a path of 256 octets with its angle brackets */
};

static inline bool is_non_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

/* Dot-string; returns where it ends, NULL if it is none. */
static const char *skip_dot_string(const char *p, const char *end, bool international)
{
    for (;;) {
        const char *const atom = p;

        while ((p = peg__skip_class(p, end, PEG__ATEXT)) < end && international && is_non_ascii(*p))
            p++;
        if (p == atom)
            return NULL;
        if (p == end || *p != '.')
            return p;
        p++;
    }
}

/* Quoted-string, from behind its opening quote. */
static const char *skip_quoted_string(const char *p, const char *end, bool international)
{
    while (p < end && *p != '"') {
        const bool is_pair = *p == '\\';

        p += is_pair;
        if (p == end)
            return NULL;
        if (is_non_ascii(*p) ? is_pair || !international : *p < ' ' || *p == 0x7F)
            return NULL;
        p++;
    }
    return p == end ? NULL : p + 1;
}

static bool has_ipv6_tag(peg_str s)
{
    return s.len >= 5 && (s.ptr[0] | 0x20) == 'i' && (s.ptr[1] | 0x20) == 'p' &&
           (s.ptr[2] | 0x20) == 'v' && s.ptr[3] == '6' && s.ptr[4] == ':';
}

/* Between the brackets. "IPv6" is the only tag that was ever registered. */
static bool is_address_literal(peg_str s)
{
    return has_ipv6_tag(s) ? peg__format_ipv6(peg__str_from(s, 5)) : peg__format_ipv4(s);
}

static bool is_domain(peg_str s, bool international)
{
    if (s.len > 2 && s.ptr[0] == '[')
        return s.ptr[s.len - 1] == ']' && is_address_literal(peg__strn(s.ptr + 1, s.len - 2));
    if (peg__format_ldh_hostname(s))
        return true;
    return international && peg__format_idn_domain(s);
}

static inline bool is_mailbox(peg_str s, bool international)
{
    const char *end;
    const char *at;

    if (s.len < 3 || s.len > MAX_LEN)
        return false;

    end = s.ptr + s.len;
    at = *s.ptr == '"' ? skip_quoted_string(s.ptr + 1, end, international)
                       : skip_dot_string(s.ptr, end, international);
    if (!at || at == end || *at != '@' || at - s.ptr > MAX_LOCAL_LEN)
        return false;
    return is_domain(peg__strn(at + 1, (size_t)(end - at - 1)), international);
}

bool peg__format_email(peg_str s)
{
    return is_mailbox(s, false);
}

bool peg__format_idn_email(peg_str s)
{
    return is_mailbox(s, true);
}
