/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A web page may have the browser of its reader send requests to this machine, under a name of its
 * own that resolves to 127.0.0.1 (DNS rebinding). Such a request has the page's name in Host, or in
 * Origin.
 */

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/text/str.h"
#include "mcp/http/http.h"

/* Without port and brackets. */
static peg_str host_of(peg_str authority)
{
    const char *end;

    if (authority.len && authority.ptr[0] == '[') {
        end = memchr(authority.ptr, ']', authority.len);
        return end ? peg__strn(authority.ptr + 1, (size_t)(end - authority.ptr) - 1)
                   : peg__strn("", 0);
    }
    end = authority.len ? memchr(authority.ptr, ':', authority.len) : NULL;
    return end ? peg__strn(authority.ptr, (size_t)(end - authority.ptr)) : authority;
}

static bool is_same_name(peg_str a, peg_str b)
{
    return a.len == b.len && a.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_address(peg_str host, bool *ret_is_loopback)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in_addr four;
    struct in6_addr six;

    if (host.len >= sizeof(text) || !host.len)
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1) {
        *ret_is_loopback = ntohl(four.s_addr) >> 24 == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &six) != 1)
        return false;
    *ret_is_loopback = IN6_IS_ADDR_LOOPBACK(&six);
    return true;
}

static bool is_of_this_machine(peg_str host)
{
    bool is_loopback = false;

    return is_same_name(host, peg__str("localhost")) ||
           (is_address(host, &is_loopback) && is_loopback);
}

static bool is_listed(const char *listed, peg_str host)
{
    peg_str rest = peg__str(peg__or_empty(listed));

    while (rest.len) {
        const size_t len = strcspn(rest.ptr, ",");

        if (is_same_name(peg__strn(rest.ptr, len), host))
            return true;
        rest = peg__str_from(rest, len < rest.len ? len + 1 : len);
    }
    return false;
}

bool mcp_takes_host(peg_str authority, const char *listed)
{
    const peg_str host = host_of(authority);
    bool is_loopback;

    return is_of_this_machine(host) || is_address(host, &is_loopback) || is_listed(listed, host);
}

/* An origin is "scheme://host[:port]". */
bool mcp_takes_origin(peg_str origin, peg_str host, const char *listed)
{
    static const char border[] = "://";
    const char *at = origin.len ? memmem(origin.ptr, origin.len, border, 3) : NULL;
    peg_str authority;
    peg_str name;

    if (!origin.len)
        return true;
    if (!at)
        return false;
    authority = peg__str_from(origin, (size_t)(at - origin.ptr) + 3);
    name = host_of(authority);
    return is_same_name(authority, host) || is_listed(listed, name) ||
           (is_of_this_machine(name) && is_of_this_machine(host_of(host)));
}
