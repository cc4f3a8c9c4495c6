/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which dialect has which formats, and the byte classes they are made of. A
 * dialect has those its specification names; anything else is unknown, and the
 * specification has unknown formats accepted.
 */

#include "schema/format/format.h"
#include "schema/pattern/pattern.h"

struct format {
    peg_str name;
    peg_dialect first; /* dialect */
    peg_dialect last;
    peg__format_fn *is_valid;
};

static const struct format formats[] = {
    {PEG_LIT("date-time"), PEG_DIALECT_DRAFT4, PEG_DIALECT_V1, peg__format_date_time},
    {PEG_LIT("email"), PEG_DIALECT_DRAFT4, PEG_DIALECT_V1, peg__format_email},
    /* Only since draft-07 is an A-label that decodes to nonsense refused. */
    {PEG_LIT("hostname"), PEG_DIALECT_DRAFT4, PEG_DIALECT_DRAFT6, peg__format_ldh_hostname},
    {PEG_LIT("hostname"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_hostname},
    {PEG_LIT("ipv4"), PEG_DIALECT_DRAFT4, PEG_DIALECT_V1, peg__format_ipv4},
    {PEG_LIT("ipv6"), PEG_DIALECT_DRAFT4, PEG_DIALECT_V1, peg__format_ipv6},
    {PEG_LIT("uri"), PEG_DIALECT_DRAFT4, PEG_DIALECT_V1, peg__format_uri},
    {PEG_LIT("uri-reference"), PEG_DIALECT_DRAFT6, PEG_DIALECT_V1, peg__format_uri_reference},
    {PEG_LIT("uri-template"), PEG_DIALECT_DRAFT6, PEG_DIALECT_V1, peg__format_uri_template},
    {PEG_LIT("json-pointer"), PEG_DIALECT_DRAFT6, PEG_DIALECT_V1, peg__format_json_pointer},
    {PEG_LIT("date"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_date},
    {PEG_LIT("time"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_time},
    {PEG_LIT("regex"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_regex},
    {PEG_LIT("iri"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_iri},
    {PEG_LIT("iri-reference"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_iri_reference},
    {PEG_LIT("idn-email"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_idn_email},
    {PEG_LIT("idn-hostname"), PEG_DIALECT_DRAFT7, PEG_DIALECT_V1, peg__format_idn_hostname},
    {PEG_LIT("relative-json-pointer"), PEG_DIALECT_DRAFT7, PEG_DIALECT_2019_09,
     peg__format_relative_json_pointer},
    {PEG_LIT("relative-json-pointer"), PEG_DIALECT_2020_12, PEG_DIALECT_V1,
     peg__format_relative_json_pointer_2020},
    {PEG_LIT("uuid"), PEG_DIALECT_2019_09, PEG_DIALECT_V1, peg__format_uuid},
    {PEG_LIT("duration"), PEG_DIALECT_2019_09, PEG_DIALECT_V1, peg__format_duration},
};

peg__format_fn *peg__format_find(peg_str name, peg_dialect dialect)
{
    const peg_dialect wanted = dialect == PEG_DIALECT_DEFAULT ? PEG_DIALECT_2020_12 : dialect;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const struct format *format = &formats[i];

        if (wanted >= format->first && wanted <= format->last && peg__str_eq(name, format->name))
            return format->is_valid;
    }
    return NULL;
}

/* ---- bytes ---------------------------------------------------------------- */

enum {
    /* From the outer to the inner parts of a URI: what may stand in one may in those before. */
    IN_QUERY = PEG__QUERY,
    IN_PATH = IN_QUERY | PEG__PATH,
    IN_NAME = IN_PATH | PEG__REG_NAME | PEG__USERINFO | PEG__FIRST_SEGMENT,

    SUB_DELIM = IN_NAME | PEG__LITERAL,
    LETTER =
        PEG__ALPHA | PEG__LDH | PEG__SCHEME | IN_NAME | PEG__LITERAL | PEG__VARIABLE | PEG__ATEXT,
    NUMERAL = (LETTER & ~PEG__ALPHA) | PEG__DIGIT | PEG__HEX,
};

const uint16_t peg__byte_classes[256] = {
    ['0' ... '9'] = NUMERAL,
    ['A' ... 'F'] = LETTER | PEG__HEX,
    ['G' ... 'Z'] = LETTER,
    ['a' ... 'f'] = LETTER | PEG__HEX,
    ['g' ... 'z'] = LETTER,
    ['-'] = PEG__LDH | PEG__SCHEME | IN_NAME | PEG__LITERAL | PEG__ATEXT,
    ['.'] = PEG__SCHEME | IN_NAME | PEG__LITERAL,
    ['_'] = IN_NAME | PEG__LITERAL | PEG__VARIABLE | PEG__ATEXT,
    ['~'] = IN_NAME | PEG__LITERAL | PEG__ATEXT,
    ['!'] = SUB_DELIM | PEG__ATEXT,
    ['$'] = SUB_DELIM | PEG__ATEXT,
    ['&'] = SUB_DELIM | PEG__ATEXT,
    ['\''] = SUB_DELIM | PEG__ATEXT, /* a literal by an erratum of RFC 6570 */
    ['('] = SUB_DELIM,
    [')'] = SUB_DELIM,
    ['*'] = SUB_DELIM | PEG__ATEXT,
    ['+'] = SUB_DELIM | PEG__ATEXT | PEG__SCHEME,
    [','] = SUB_DELIM,
    [';'] = SUB_DELIM,
    ['='] = SUB_DELIM | PEG__ATEXT,
    [':'] = IN_PATH | PEG__USERINFO | PEG__LITERAL,
    ['@'] = IN_PATH | PEG__FIRST_SEGMENT | PEG__LITERAL,
    ['/'] = IN_PATH | PEG__LITERAL | PEG__ATEXT,
    ['?'] = IN_QUERY | PEG__LITERAL | PEG__ATEXT,
    ['#'] = PEG__LITERAL | PEG__ATEXT,
    ['['] = PEG__LITERAL,
    [']'] = PEG__LITERAL,
    ['%'] = PEG__ATEXT,
    ['^'] = PEG__ATEXT,
    ['`'] = PEG__ATEXT,
    ['{'] = PEG__ATEXT,
    ['|'] = PEG__ATEXT,
    ['}'] = PEG__ATEXT,
};

uint32_t peg__next_code_point(const char **p, const char *end)
{
    const unsigned char lead = (unsigned char)*(*p)++;
    unsigned n_more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    uint32_t code_point = n_more ? lead & (0x3Fu >> n_more) : lead;

    for (; n_more > 0 && *p < end; n_more--)
        code_point = code_point << 6 | ((unsigned char)*(*p)++ & 0x3Fu);
    return code_point;
}

/* ---- uuid of RFC 4122, json-pointer of RFC 6901, relative-json-pointer, regex ---------- */

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
