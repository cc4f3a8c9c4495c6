/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/wire.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

enum { INCARNATION_MIN = 8, INCARNATION_MAX = 64, VERSION_BYTES = 256 };

void wire_printable(peg_str text, char ret_text[WIRE_PRINTABLE])
{
    const size_t room = WIRE_PRINTABLE - 4;
    const size_t n = text.len < room ? text.len : room;

    for (size_t i = 0; i < n; i++) {
        const char c = text.ptr[i];

        ret_text[i] = (char)(c > ' ' && c < 0x7f && c != '"' && c != '\\' ? c : '?');
    }
    memcpy(ret_text + n, text.len > n ? "..." : "", text.len > n ? 4 : 1);
}

static bool is_name_char(char c, const char *extra)
{
    return peg__is_alnum(c) || (c != '\0' && strchr(extra, c) != NULL);
}

static bool consists_of(peg_str text, const char *extra)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_name_char(text.ptr[i], extra))
            return false;
    }
    return true;
}

peg_status wire_check_name(peg_str name, const char *what, peg_error *reterr)
{
    char shown[WIRE_PRINTABLE];

    if (!name.len)
        return peg__fail(reterr, PEG_EINVAL, "E_NAME", "%s is empty: give it a name", what);
    if (name.len <= PEG_LIMIT_NAME_BYTES && consists_of(name, "_.:/-"))
        return PEG_OK;
    wire_printable(name, shown);
    return peg__fail(reterr, PEG_EINVAL, "E_NAME",
                     "%s '%s' is no name: use 1 to %d of the characters A-Z a-z 0-9 _ . : / -",
                     what, shown, PEG_LIMIT_NAME_BYTES);
}

peg_status wire_check_incarnation(peg_str incarnation, peg_error *reterr)
{
    char shown[WIRE_PRINTABLE];

    if (incarnation.len >= INCARNATION_MIN && incarnation.len <= INCARNATION_MAX &&
        consists_of(incarnation, "_-"))
        return PEG_OK;
    wire_printable(incarnation, shown);
    return peg__fail(reterr, PEG_EINVAL, "E_NAME",
                     "incarnation '%s' is none: use %d to %d of the characters A-Z a-z 0-9 _ -",
                     shown, INCARNATION_MIN, INCARNATION_MAX);
}

/* UTF-8 without C0, DEL and C1: nothing that a terminal would obey. */
static bool is_plain_text(peg_str text)
{
    if (!peg__utf8_is_valid(text))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool is_c1 = c == 0xC2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xA0;

        if (c < 0x20 || c == 0x7f || is_c1)
            return false;
    }
    return true;
}

peg_status wire_check_id(peg_str id, const char *what, peg_error *reterr)
{
    char shown[WIRE_PRINTABLE];

    if (!id.len)
        return peg__fail(reterr, PEG_EINVAL, "E_NAME",
                         "%s is empty: give it at least one character", what);
    if (id.len <= PEG_LIMIT_GATEWAY_ID_BYTES && is_plain_text(id))
        return PEG_OK;
    wire_printable(id, shown);
    return peg__fail(reterr, PEG_EINVAL, "E_NAME",
                     "invalid %s '%s': use 1 to %d bytes of UTF-8 without control characters", what,
                     shown, PEG_LIMIT_GATEWAY_ID_BYTES);
}

/* ---- versions: v?\d+\.\d+\.\d+(-[a-zA-Z0-9.]+)? ---------------------------------------------- */

static bool skip_digits(peg_str *rest)
{
    size_t n = 0;

    while (n < rest->len && peg__is_digit(rest->ptr[n]))
        n++;
    *rest = peg__str_from(*rest, n);
    return n > 0;
}

static bool take_char(peg_str *rest, char c)
{
    if (!rest->len || rest->ptr[0] != c)
        return false;
    *rest = peg__str_from(*rest, 1);
    return true;
}

static bool is_version(peg_str text)
{
    peg_str rest = text;

    (void)take_char(&rest, 'v');
    if (!skip_digits(&rest) || !take_char(&rest, '.') || !skip_digits(&rest) ||
        !take_char(&rest, '.') || !skip_digits(&rest))
        return false;
    if (!rest.len)
        return true;
    return take_char(&rest, '-') && rest.len > 0 && consists_of(rest, ".");
}

peg_status wire_check_version(peg_str version, peg_error *reterr)
{
    char shown[WIRE_PRINTABLE];

    if (!version.len || (version.len <= VERSION_BYTES && is_version(version)))
        return PEG_OK;
    wire_printable(version, shown);
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_PATTERN",
                     "version '%s' is none: write it as 1.2.0, v1.2.0 or 1.2.0-rc.1, at most %d "
                     "bytes, or leave it out",
                     shown, VERSION_BYTES);
}

peg_status wire_check_tags(const peg_str *tags, size_t n, peg_error *reterr)
{
    if (n > PEG_LIMIT_GATEWAY_TAGS)
        return peg__fail(reterr, PEG_ELIMIT, "E_NAME", "%zu tags: use at most %d", n,
                         PEG_LIMIT_GATEWAY_TAGS);
    for (size_t i = 0; i < n; i++) {
        const peg_status status = wire_check_id(tags[i], "tag", reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}
