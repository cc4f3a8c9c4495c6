/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hostname of RFC 1123 and idn-hostname of RFC 5890 to 5893 (IDNA2008); ipv4 and ipv6; email.
 *
 * libidn2's registration test knows the code points that a label may have, and where. What it
 * leaves to us: the ASCII labels, the length of the whole name, and the Bidi rule (RFC 5893) as
 * far as it concerns several labels or two kinds of digits.
 */

#include <idn2.h>

#include "schema/format/format.h"

enum {
    MAX_NAME_LEN = 253,
    MAX_LABEL_LEN = 63,
    /* Punycode spends at least a byte on a code point, and UTF-8 at most four. */
    MAX_U_LABEL_LEN = 4 * (MAX_LABEL_LEN - 4),
};

/* ---- ASCII ---------------------------------------------------------------- */

static inline bool is_prefixed(const char *label, size_t len)
{
    return len >= 4 && label[2] == '-' && label[3] == '-' && (label[0] | 0x20) == 'x' &&
           (label[1] | 0x20) == 'n';
}

static inline bool is_ldh_name(peg_str s, bool *ret_has_prefix)
{
    const char *p = s.ptr;
    const char *end;
    bool has_prefix = false;

    if (s.len == 0 || s.len > MAX_NAME_LEN)
        return false;

    end = s.ptr + s.len;
    for (;;) {
        const char *const label = p;

        p = peg__skip_class(p, end, PEG__LDH);
        if (p == label || p - label > MAX_LABEL_LEN || *label == '-' || p[-1] == '-')
            return false;
        has_prefix = has_prefix || is_prefixed(label, (size_t)(p - label));
        if (p == end)
            break;
        if (*p++ != '.')
            return false;
    }
    *ret_has_prefix = has_prefix;
    return true;
}

bool peg__format_ldh_hostname(peg_str s)
{
    bool has_prefix;

    return is_ldh_name(s, &has_prefix);
}

/* ---- the Bidi rule -------------------------------------------------------- */

struct range {
    uint32_t first;
    uint32_t last;
};

/* Of the code points that IDNA2008 allows, those that are written from right to left (classes R
 * and AL). Disallowed ones between them are not left out: they never come here. */
static const struct range right_to_left[] = {
    {0x05D0, 0x05F4},   {0x0620, 0x064A},   {0x066E, 0x066F},   {0x0671, 0x06D5},
    {0x06E5, 0x06E6},   {0x06EE, 0x06EF},   {0x06FA, 0x0710},   {0x0712, 0x072F},
    {0x074D, 0x07A5},   {0x07B1, 0x07EA},   {0x07F4, 0x07F5},   {0x0800, 0x0815},
    {0x081A, 0x081A},   {0x0824, 0x0824},   {0x0828, 0x0828},   {0x0840, 0x0858},
    {0x0860, 0x088E},   {0x08A0, 0x08C9},   {0xFE73, 0xFE73},   {0x10800, 0x10939},
    {0x10980, 0x10A00}, {0x10A10, 0x10A35}, {0x10A60, 0x10AE4}, {0x10B00, 0x10D23},
    {0x10E80, 0x10EA9}, {0x10EB0, 0x10EB1}, {0x10F00, 0x10F45}, {0x10F70, 0x10F81},
    {0x10FB0, 0x10FF6}, {0x1E800, 0x1E8C4}, {0x1E922, 0x1E943}, {0x1E94B, 0x1E959},
};

static const struct range arabic_numbers[] = {{0x0660, 0x0669}, {0x10D30, 0x10D39}};

static const struct range european_numbers[] = {{'0', '9'}, {0x06F0, 0x06F9}};

/* Neither letters nor digits for the Bidi rule. */
static const struct range neutrals[] = {
    {'-', '-'},       {0x00B7, 0x00B7}, {0x02B9, 0x02BA}, {0x02C6, 0x02CF},
    {0x02EC, 0x02EC}, {0x0375, 0x0375}, {0x200C, 0x200D}, {0x2E2F, 0x2E2F},
    {0x30FB, 0x30FB}, {0xA67F, 0xA67F}, {0xA717, 0xA71F}, {0xA788, 0xA788},
};

#define IN(ranges, c) is_in_table(ranges, sizeof(ranges) / sizeof((ranges)[0]), c)

static bool is_in_table(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n && c >= ranges[i].first; i++)
        if (c <= ranges[i].last)
            return true;
    return false;
}

/* A name while its labels are read. */
struct name {
    size_t len;            /* of what goes into the DNS, dots included */
    bool has_rtl;          /* it is a "Bidi domain name" */
    bool has_feeble_label; /* one that a Bidi domain name may not have */
};

/* Marks count as letters here: after a neutral one at the very end that is generous, as is
 * libidn2 in right-to-left labels. */
static bool note_direction(struct name *name, const char *label, size_t len)
{
    const char *const end = label + len;
    bool has_rtl = false;
    bool has_an = false;
    bool has_en = false;
    bool starts_with_letter = false;
    bool ends_with_neutral = false;

    for (const char *p = label; p < end;) {
        const bool is_first = p == label;
        const uint32_t c = peg__next_code_point(&p, end);
        const bool is_en = IN(european_numbers, c);

        ends_with_neutral = IN(neutrals, c);
        has_an = has_an || IN(arabic_numbers, c);
        has_en = has_en || is_en;
        has_rtl = has_rtl || IN(right_to_left, c);
        if (is_first)
            starts_with_letter = !is_en && !ends_with_neutral;
    }

    if (has_rtl || has_an)
        name->has_rtl = true;
    else if (!starts_with_letter || ends_with_neutral)
        name->has_feeble_label = true;
    return !(has_an && has_en); /* libidn2 has seen to it that the label is right to left */
}

/* ---- labels --------------------------------------------------------------- */

static bool add_a_label(struct name *name, peg_str label)
{
    char lower[MAX_LABEL_LEN + 1] = "";
    char *unicode = NULL;
    bool is_valid;

    for (size_t i = 0; i < label.len; i++) /* LDH by now, and "-" has that bit set */
        lower[i] = (char)(label.ptr[i] | 0x20);

    if (idn2_register_u8(NULL, (const uint8_t *)lower, NULL, 0) != IDN2_OK ||
        idn2_to_unicode_8z8z(lower, &unicode, 0) != IDN2_OK)
        return false;
    is_valid = note_direction(name, unicode, strlen(unicode)); /* libidn2's, not the caller's */
    idn2_free(unicode);
    name->len += label.len;
    return is_valid;
}

static bool add_ascii_label(struct name *name, peg_str label)
{
    bool is_a_label;

    if (!is_ldh_name(label, &is_a_label))
        return false;
    if (is_a_label)
        return add_a_label(name, label);
    name->len += label.len;
    return note_direction(name, label.ptr, label.len);
}

static bool add_u_label(struct name *name, peg_str label, int idn2_flags)
{
    char text[MAX_U_LABEL_LEN + 1] = "";
    uint8_t *a_label = NULL;

    if (label.len > MAX_U_LABEL_LEN || memchr(label.ptr, '\0', label.len))
        return false;
    memcpy(text, label.ptr, label.len);

    if (idn2_register_u8((const uint8_t *)text, NULL, &a_label, idn2_flags) != IDN2_OK)
        return false;
    name->len += strlen((const char *)a_label);
    idn2_free(a_label);
    return note_direction(name, label.ptr, label.len);
}

static bool add_label(struct name *name, peg_str label, int idn2_flags)
{
    if (label.len == 0)
        return false;
    return peg__str_is_ascii(label) ? add_ascii_label(name, label)
                                    : add_u_label(name, label, idn2_flags);
}

/* ---- names ---------------------------------------------------------------- */

/* The length of the separator at s.ptr + i, 0 if there is none: U+002E, or with `wide` also
 * U+3002, U+FF0E and U+FF61 (RFC 3490 section 3.1). */
static size_t separator_len(peg_str s, size_t i, bool wide)
{
    const char *const p = s.ptr + i;

    if (*p == '.')
        return 1;
    if (!wide || s.len - i < 3)
        return 0;
    return memcmp(p, "\u3002", 3) == 0 || memcmp(p, "\uFF0E", 3) == 0 || memcmp(p, "\uFF61", 3) == 0
               ? 3
               : 0;
}

static bool is_idn(peg_str s, bool wide_separators, int idn2_flags)
{
    struct name name = {0};
    size_t start = 0;

    for (size_t i = 0; i < s.len && name.len <= MAX_NAME_LEN; i++) {
        const size_t separator = separator_len(s, i, wide_separators);

        if (separator == 0)
            continue;
        if (!add_label(&name, peg__strn(s.ptr + start, i - start), idn2_flags))
            return false;
        name.len++;
        start = i + separator;
        i = start - 1;
    }
    return name.len <= MAX_NAME_LEN && add_label(&name, peg__str_from(s, start), idn2_flags) &&
           name.len <= MAX_NAME_LEN && !(name.has_rtl && name.has_feeble_label);
}

bool peg__format_hostname(peg_str s)
{
    bool has_prefix;

    return is_ldh_name(s, &has_prefix) && (!has_prefix || is_idn(s, false, 0));
}

bool peg__format_idn_hostname(peg_str s)
{
    return s.len > 0 && (peg__str_is_ascii(s) ? peg__format_hostname(s) : is_idn(s, true, 0));
}

bool peg__format_idn_domain(peg_str s)
{
    return s.len > 0 && is_idn(s, false, IDN2_NFC_INPUT);
}

/* ---- addresses: the dotted quad of RFC 2673 section 3.2, RFC 4291 section 2.2 -------- */

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

/* ---- email: the Mailbox of RFC 5321 section 4.1.2 -----------------------------------
 *
 * idn-email: with the extensions of RFC 6531 section 3.3. No comments, no folding, no display name.
 */

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
