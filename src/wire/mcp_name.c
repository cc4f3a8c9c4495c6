/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names of tools for MCP clients that see several toolsets. Models' vendors take
 * [A-Za-z0-9_-]{1,64}, so
 *
 *   weather, forecast       weather__forecast
 *   eu/weather, forecast    eu_weather__forecast_3f1c0a9b5d27e684
 *
 * A name that would be cut, changed or ambiguous ends with a part of the digest of the two. So it
 * depends on its own tool alone, and no other registration can take it over: 64 bits of SHA-256.
 */

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "wire/wire.h"

enum { DIGEST_BYTES = 8, SUFFIX = 1 + 2 * DIGEST_BYTES, KEPT = WIRE_MCP_NAME - 1 - SUFFIX };

static const char border[] = "__";

static char clean_char(char c)
{
    return (char)(peg__is_alnum(c) || c == '_' || c == '-' ? c : '_');
}

static bool is_clean(peg_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (clean_char(text.ptr[i]) != text.ptr[i])
            return false;
    }
    return true;
}

bool wire_mcp_name_has_digest(peg_str name)
{
    const char *at = name.ptr + name.len - SUFFIX;

    if (name.len <= SUFFIX || at[0] != '_')
        return false;
    for (size_t i = 1; i < SUFFIX; i++) {
        if (peg__hex_value(at[i]) < 0 || peg__is_upper(at[i]))
            return false;
    }
    return true;
}

/* Then the first border in the name is the one between the two. */
static bool is_plain(peg_str toolset, peg_str tool)
{
    return toolset.len && toolset.len + 2 + tool.len < WIRE_MCP_NAME && is_clean(toolset) &&
           is_clean(tool) && !memmem(toolset.ptr, toolset.len, border, 2) &&
           toolset.ptr[toolset.len - 1] != '_';
}

static size_t put_clean(char *to, size_t at, size_t end, peg_str text)
{
    for (size_t i = 0; i < text.len && at < end; i++)
        to[at++] = clean_char(text.ptr[i]);
    return at;
}

static size_t put_parts(char *to, size_t end, peg_str toolset, peg_str tool)
{
    size_t n = put_clean(to, 0, end, toolset);

    n = put_clean(to, n, end, peg__strn(border, 2));
    return put_clean(to, n, end, tool);
}

static bool put_suffix(char *to, peg_str toolset, peg_str tool)
{
    unsigned char digest[PEG_SHA256_BYTES];
    char both[2 * PEG_LIMIT_NAME_BYTES + 2];
    const int n =
        snprintf(both, sizeof(both), PEG_FMT " " PEG_FMT, PEG_ARG(toolset), PEG_ARG(tool));

    if (n < 0 || !peg__sha256(peg__strn(both, (size_t)n), digest))
        return false;
    *to = '_';
    peg__hex(digest, DIGEST_BYTES, to + 1);
    return true;
}

bool wire_mcp_name(peg_str toolset, peg_str tool, char ret_name[WIRE_MCP_NAME])
{
    size_t n;

    if (is_plain(toolset, tool)) {
        n = put_parts(ret_name, WIRE_MCP_NAME - 1, toolset, tool);
        ret_name[n] = '\0';
        if (!wire_mcp_name_has_digest(peg__strn(ret_name, n)))
            return true;
    }
    n = put_parts(ret_name, KEPT, toolset, tool);
    return put_suffix(ret_name + n, toolset, tool);
}

bool wire_mcp_name_may_be_of(peg_str toolset, peg_str name)
{
    const size_t n = toolset.len < KEPT ? toolset.len : KEPT;

    for (size_t i = 0; i < n; i++) {
        if (i >= name.len || clean_char(toolset.ptr[i]) != name.ptr[i])
            return false;
    }
    return true;
}
