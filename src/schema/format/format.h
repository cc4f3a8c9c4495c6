/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_FORMAT_FORMAT_H
#define PEG_SCHEMA_FORMAT_FORMAT_H

/* The formats of JSON Schema: is this string one? */

#include "base/text/str.h"
#include "pegboard/schema.h"

/* The string is valid UTF-8, of any length. Pure, and linear in its length. */
typedef bool peg__format_fn(peg_str s);

/* NULL if the dialect has no format of that name: it is then accepted. */
peg__format_fn *peg__format_find(peg_str name, peg_dialect dialect);

/* ---- one function per format; other modules call peg__format_find() -------- */

/* time.c: RFC 3339 */
peg__format_fn peg__format_date;
peg__format_fn peg__format_time;
peg__format_fn peg__format_date_time;
peg__format_fn peg__format_duration;

/* host.c */
peg__format_fn peg__format_ipv4;
peg__format_fn peg__format_ipv6;

peg__format_fn peg__format_ldh_hostname; /* RFC 1123, whatever stands behind "xn--" */
peg__format_fn peg__format_hostname;     /* the same, but "xn--" starts an IDNA2008 A-label */
peg__format_fn peg__format_idn_hostname; /* labels may be U-labels */
/* The same for the domain of a mail address: brought to NFC first, only "." separates. */
peg__format_fn peg__format_idn_domain;

peg__format_fn peg__format_email;
peg__format_fn peg__format_idn_email;

/* uri.c */
peg__format_fn peg__format_uri;
peg__format_fn peg__format_uri_reference;
peg__format_fn peg__format_iri;
peg__format_fn peg__format_iri_reference;
peg__format_fn peg__format_uri_template;

/* format.c */
peg__format_fn peg__format_uuid;
peg__format_fn peg__format_json_pointer;
peg__format_fn peg__format_relative_json_pointer;
peg__format_fn peg__format_relative_json_pointer_2020; /* "1-1/a": with index manipulation */
peg__format_fn peg__format_regex;

/* ---- bytes ---------------------------------------------------------------- */

/* What a byte may be part of. Bytes outside ASCII are part of nothing. */
enum peg__byte_class {
    PEG__ALPHA = 1 << 0,
    PEG__DIGIT = 1 << 1,
    PEG__HEX = 1 << 2,
    PEG__LDH = 1 << 3, /* letters, digits, hyphen: a host name's label */
    /* parts of a URI; "%" is in none of them */
    PEG__SCHEME = 1 << 4,
    PEG__REG_NAME = 1 << 5,
    PEG__USERINFO = 1 << 6,
    PEG__FIRST_SEGMENT = 1 << 7, /* of a reference without scheme */
    PEG__PATH = 1 << 8,
    PEG__QUERY = 1 << 9,    /* or fragment */
    PEG__LITERAL = 1 << 10, /* of a URI template */
    PEG__VARIABLE = 1 << 11,
    PEG__ATEXT = 1 << 12, /* of a mail address */
};

extern const uint16_t peg__byte_classes[256]; /* in format.c */

static inline bool peg__byte_is(char c, enum peg__byte_class class)
{
    return (peg__byte_classes[(unsigned char)c] & class) != 0;
}

/* The classes that all four bytes have. Written out, since gcc would keep a loop. */
static inline unsigned peg__classes_of_4(const char *p)
{
    return peg__byte_classes[(unsigned char)p[0]] & peg__byte_classes[(unsigned char)p[1]] &
           peg__byte_classes[(unsigned char)p[2]] & peg__byte_classes[(unsigned char)p[3]];
}

/* Where the bytes of a class end. Four at a time: half the branches of a typical string. */
static inline const char *peg__skip_class(const char *p, const char *end,
                                          enum peg__byte_class class)
{
    while (end - p >= 4 && (peg__classes_of_4(p) & class))
        p += 4;
    while (p < end && peg__byte_is(*p, class))
        p++;
    return p;
}

/* The code point at *p, which moves behind it. The bytes are UTF-8; if they were not, this
 * gives nonsense but stays before end. Requires *p < end. */
uint32_t peg__next_code_point(const char **p, const char *end);

#endif
