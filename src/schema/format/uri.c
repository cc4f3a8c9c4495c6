/* SPDX-License-Identifier: Apache-2.0 */

/*
 * uri and uri-reference of RFC 3986, iri and iri-reference of RFC 3987, uri-template of
 * RFC 6570. One left-to-right pass: scheme, authority, path, query, fragment.
 */

#include "schema/format/format.h"

/* Which code points beyond ASCII may stand for themselves. */
enum beyond_ascii { NOTHING, UCSCHAR, UCSCHAR_AND_PRIVATE };

/* ---- characters ----------------------------------------------------------- */

/* The last two of each plane will never be characters. */
static bool is_noncharacter(uint32_t c)
{
    return (c & 0xFFFE) == 0xFFFE;
}

/* iprivate of RFC 3987 */
static bool is_private(uint32_t c)
{
    return (c >= 0xE000 && c <= 0xF8FF) || (c >= 0xF0000 && !is_noncharacter(c));
}

static bool is_ucschar(uint32_t c)
{
    if (c < 0xA0 || is_noncharacter(c))
        return false;
    if (c < 0x10000)
        return c <= 0xD7FF || (c >= 0xF900 && c <= 0xFDCF) || (c >= 0xFDF0 && c <= 0xFFEF);
    return c < 0xE0000 || (c >= 0xE1000 && c < 0xF0000);
}

/* Steps over one code point if it is allowed. */
static bool skip_beyond_ascii(const char **p, const char *end, enum beyond_ascii allowed)
{
    const char *next = *p;
    uint32_t c;

    if (allowed == NOTHING || (unsigned char)**p < 0x80)
        return false;

    c = peg__next_code_point(&next, end);
    if (!is_ucschar(c) && (allowed != UCSCHAR_AND_PRIVATE || !is_private(c)))
        return false;
    *p = next;
    return true;
}

static bool skip_percent_encoded(const char **p, const char *end)
{
    if (end - *p < 3 || **p != '%' || !peg__byte_is((*p)[1], PEG__HEX) ||
        !peg__byte_is((*p)[2], PEG__HEX))
        return false;
    *p += 3;
    return true;
}

/* Where the characters of a part end. */
static inline const char *skip_part(const char *p, const char *end, enum peg__byte_class class,
                                    enum beyond_ascii allowed)
{
    for (;;) {
        p = peg__skip_class(p, end, class);
        if (p == end || (!skip_percent_encoded(&p, end) && !skip_beyond_ascii(&p, end, allowed)))
            return p;
    }
}

/* ---- URI and IRI ---------------------------------------------------------- */

/* From behind "["; the result is behind "]", or NULL. */
static const char *skip_ip_literal(const char *p, const char *end)
{
    const char *const close = memchr(p, ']', (size_t)(end - p));
    const char *version;

    if (!close)
        return NULL;
    if (p == close || (*p | 0x20) != 'v')
        return peg__format_ipv6(peg__strn(p, (size_t)(close - p))) ? close + 1 : NULL;

    version = ++p;
    p = peg__skip_class(p, close, PEG__HEX);
    if (p == version || *p++ != '.' || p == close)
        return NULL;
    return peg__skip_class(p, close, PEG__USERINFO) == close ? close + 1 : NULL;
}

/* NULL if an IP literal is malformed. */
static const char *skip_host_and_port(const char *p, const char *end, enum beyond_ascii allowed)
{
    if (p < end && *p == '[')
        p = skip_ip_literal(p + 1, end);
    else
        p = skip_part(p, end, PEG__REG_NAME, allowed);

    if (p && p < end && *p == ':')
        p = peg__skip_class(p + 1, end, PEG__DIGIT);
    return p;
}

static bool ends_authority(const char *p, const char *end)
{
    return p && (p == end || *p == '/' || *p == '?' || *p == '#');
}

/* From behind "//"; NULL if it is none. */
static const char *skip_authority(const char *p, const char *end, enum beyond_ascii allowed)
{
    const char *authority_end = skip_host_and_port(p, end, allowed);
    const char *user_end;

    if (ends_authority(authority_end, end))
        return authority_end;

    /* Then it was no host but a user, who is seldom there. */
    user_end = skip_part(p, end, PEG__USERINFO, allowed);
    if (user_end == end || *user_end != '@')
        return NULL;
    authority_end = skip_host_and_port(user_end + 1, end, allowed);
    return ends_authority(authority_end, end) ? authority_end : NULL;
}

/* All that may follow a scheme, or stand without one. */
static inline bool is_rest(const char *p, const char *end, enum beyond_ascii allowed)
{
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        p = skip_authority(p + 2, end, allowed);
        if (!p)
            return false;
    }

    p = skip_part(p, end, PEG__PATH, allowed);
    if (p < end && *p == '?')
        p = skip_part(p + 1, end, PEG__QUERY, allowed == NOTHING ? NOTHING : UCSCHAR_AND_PRIVATE);
    if (p < end && *p == '#')
        p = skip_part(p + 1, end, PEG__QUERY, allowed);
    return p == end;
}

/* Returns what is behind its colon, NULL if there is none. */
static const char *skip_scheme(const char *p, const char *end)
{
    if (p == end || !peg__byte_is(*p, PEG__ALPHA))
        return NULL;
    p = peg__skip_class(p, end, PEG__SCHEME);
    return p < end && *p == ':' ? p + 1 : NULL;
}

static inline bool is_absolute(peg_str s, enum beyond_ascii allowed)
{
    const char *rest;

    if (s.len == 0)
        return false;
    rest = skip_scheme(s.ptr, s.ptr + s.len);
    return rest && is_rest(rest, s.ptr + s.len, allowed);
}

static inline bool is_reference(peg_str s, enum beyond_ascii allowed)
{
    const char *end;
    const char *first_end;

    if (s.len == 0 || is_absolute(s, allowed))
        return true;

    end = s.ptr + s.len;
    first_end = skip_part(s.ptr, end, PEG__FIRST_SEGMENT, allowed);
    if (first_end < end && *first_end == ':') /* would be taken for a scheme */
        return false;
    return is_rest(s.ptr, end, allowed);
}

bool peg__format_uri(peg_str s)
{
    return is_absolute(s, NOTHING);
}

bool peg__format_uri_reference(peg_str s)
{
    return is_reference(s, NOTHING);
}

bool peg__format_iri(peg_str s)
{
    return is_absolute(s, UCSCHAR);
}

bool peg__format_iri_reference(peg_str s)
{
    return is_reference(s, UCSCHAR);
}

/* ---- URI template --------------------------------------------------------- */

/* Names of variable characters, joined by single dots. */
static const char *skip_variable_name(const char *p, const char *end)
{
    for (;;) {
        const char *const start = p;

        p = skip_part(p, end, PEG__VARIABLE, NOTHING);
        if (p == start)
            return NULL;
        if (p == end || *p != '.')
            return p;
        p++;
    }
}

/* ":" and 1 to 9999, or "*", or nothing. */
static const char *skip_modifier(const char *p, const char *end)
{
    const char *digits;

    if (p == end || (*p != '*' && *p != ':'))
        return p;
    if (*p++ == '*')
        return p;

    digits = p;
    while (p < end && p - digits < 4 && peg__byte_is(*p, PEG__DIGIT))
        p++;
    return p > digits && *digits != '0' ? p : NULL;
}

/* From behind "{"; the result is behind "}", or NULL. */
static const char *skip_expression(const char *p, const char *end)
{
    static const char operators[] = "+#./;?&=,!@|";

    if (p < end && *p && strchr(operators, *p))
        p++;
    for (;;) {
        p = skip_variable_name(p, end);
        if (p)
            p = skip_modifier(p, end);
        if (!p || p == end)
            return NULL;
        if (*p == '}')
            return p + 1;
        if (*p++ != ',')
            return NULL;
    }
}

bool peg__format_uri_template(peg_str s)
{
    const char *p = s.ptr;
    const char *end;

    if (s.len == 0)
        return true;

    end = s.ptr + s.len;
    while ((p = skip_part(p, end, PEG__LITERAL, UCSCHAR_AND_PRIVATE)) < end) {
        if (*p != '{')
            return false;
        p = skip_expression(p + 1, end);
        if (!p)
            return false;
    }
    return true;
}
