/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses as text and as the system takes them. Ambiguous text is rejected: "1.2.3" is no name
 * and no address, and a name is ASCII. */

#include "net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/str.h"
#include "json/json.h"

enum { SHOWN_BYTES = 80, MAX_PORT = 65535, MAX_PORT_DIGITS = 5 };

static const peg_str unix_prefix = PEG_LIT("unix:");
static const peg_str unix_slashes = PEG_LIT("unix://");
static const peg_str abstract_prefix = PEG_LIT("unix-abstract:");
static const peg_str dns_prefix = PEG_LIT("dns:");
static const peg_str dns_slashes = PEG_LIT("dns:///");
static const peg_str ipv4_prefix = PEG_LIT("ipv4:");
static const peg_str ipv6_prefix = PEG_LIT("ipv6:");

/* ---- reading ------------------------------------------------------------------------------ */

/* What came from outside is shown only as far as it is short and harmless. */
static peg_status reject_address(peg_str text, const char *why, peg_error *reterr)
{
    char shown[SHOWN_BYTES + 1];
    size_t n = 0;

    for (; n < text.len && n < SHOWN_BYTES; n++) {
        const char c = text.ptr[n];

        shown[n] = '?';
        if (c > ' ' && c < 0x7f)
            shown[n] = c;
    }
    shown[n] = '\0';
    return peg__fail(reterr, PEG_EPARSE, "E_ADDRESS",
                     "'%s' is not an address: %s; write host:port, [ipv6]:port, :port or "
                     "unix:path",
                     shown, why);
}

static peg_status read_unix(peg_str text, peg_str name, bool is_abstract,
                            struct net_endpoint *ret_endpoint, peg_error *reterr)
{
    struct net_endpoint endpoint = {.is_unix = true};
    struct sockaddr_un *at = &endpoint.unix_address.at.unix_path;
    const size_t first = is_abstract ? 1 : 0;

    if (name.len == 0)
        return reject_address(text, "the path is empty", reterr);
    if (memchr(name.ptr, '\0', name.len))
        return reject_address(text, "the path has a NUL byte", reterr);
    if (name.len >= sizeof(at->sun_path))
        return reject_address(text, "the path of a unix socket has at most 107 bytes", reterr);

    at->sun_family = AF_UNIX;
    memcpy(at->sun_path + first, name.ptr, name.len);
    /* An abstract name ends with the length, a path with its NUL. */
    endpoint.unix_address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name.len + 1);
    *ret_endpoint = endpoint;
    return PEG_OK;
}

static peg_status read_unix_path(peg_str text, struct net_endpoint *ret_endpoint, peg_error *reterr)
{
    peg_str path;

    if (peg__str_starts(text, abstract_prefix))
        return read_unix(text, peg__str_from(text, abstract_prefix.len), true, ret_endpoint,
                         reterr);
    if (!peg__str_starts(text, unix_slashes)) {
        path = peg__str_from(text, unix_prefix.len);
        if (path.len > 0 && path.ptr[0] == '@')
            return read_unix(text, peg__str_from(path, 1), true, ret_endpoint, reterr);
        return read_unix(text, path, false, ret_endpoint, reterr);
    }
    path = peg__str_from(text, unix_slashes.len);
    if (path.len == 0 || path.ptr[0] != '/')
        return reject_address(text, "after unix:// the path begins with a slash", reterr);
    return read_unix(text, path, false, ret_endpoint, reterr);
}

static bool read_port(peg_str text, uint16_t *ret_port)
{
    unsigned port = 0;

    if (text.len == 0 || text.len > MAX_PORT_DIGITS)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.ptr[i] - '0');
    }
    if (port > MAX_PORT)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

static bool read_ip4(const char *host, uint16_t port, struct net_address *ret_address)
{
    struct net_address address = {.len = sizeof(struct sockaddr_in)};

    address.at.ip4.sin_family = AF_INET;
    address.at.ip4.sin_port = htons(port);
    if (inet_pton(AF_INET, host, &address.at.ip4.sin_addr) != 1)
        return false;
    *ret_address = address;
    return true;
}

/* The interface after the '%': its name, or its number. */
static bool read_scope(const char *scope, uint32_t *ret_scope)
{
    char *end;
    unsigned long number;
    const unsigned index = if_nametoindex(scope);

    if (index > 0) {
        *ret_scope = index;
        return true;
    }
    number = strtoul(scope, &end, 10);
    if (*scope < '0' || *scope > '9' || *end || number > UINT32_MAX)
        return false;
    *ret_scope = (uint32_t)number;
    return true;
}

static bool read_ip6(const char *host, uint16_t port, struct net_address *ret_address)
{
    struct net_address address = {.len = sizeof(struct sockaddr_in6)};
    char number[INET6_ADDRSTRLEN];
    const char *percent = strchr(host, '%');
    const size_t len = percent ? (size_t)(percent - host) : strlen(host);

    if (len >= sizeof(number))
        return false;
    memcpy(number, host, len);
    number[len] = '\0';
    address.at.ip6.sin6_family = AF_INET6;
    address.at.ip6.sin6_port = htons(port);
    if (inet_pton(AF_INET6, number, &address.at.ip6.sin6_addr) != 1)
        return false;
    if (percent && !read_scope(percent + 1, &address.at.ip6.sin6_scope_id))
        return false;
    *ret_address = address;
    return true;
}

static bool is_name_byte(char c)
{
    return peg__is_alnum(c) || c == '-' || c == '_' || c == '.';
}

/* Resolvers take "127.1" and "0x7f.1" for addresses, so a name may not end like a number. */
static bool ends_like_a_number(const char *host)
{
    const char *dot = strrchr(host, '.');
    const char *last = dot ? dot + 1 : host;

    return *last >= '0' && *last <= '9' && strspn(last, "0123456789abcdefABCDEFxX") == strlen(last);
}

static const char *complain_about_host(const char *host)
{
    struct net_address address;

    if (host[0] == '\0' || read_ip4(host, 0, &address))
        return NULL;
    for (const char *c = host; *c; c++)
        if (!is_name_byte(*c))
            return "a name has letters, digits, '-', '_' and '.', and IPv6 stands in brackets";
    if (host[0] == '.' || strstr(host, ".."))
        return "a part of the name is empty";
    if (ends_like_a_number(host))
        return "an IPv4 address has four numbers from 0 to 255";
    return NULL;
}

static bool is_port_alone(peg_str text)
{
    uint16_t port;

    return read_port(text, &port);
}

/* Tells the host from the port, at the last colon or after the brackets. */
static const char *split_host_port(peg_str text, peg_str *ret_host, peg_str *ret_port)
{
    const char *mark;
    size_t at;

    if (text.len > 0 && text.ptr[0] == '[') {
        mark = memchr(text.ptr, ']', text.len);
        if (!mark)
            return "the bracket is not closed";
        at = (size_t)(mark - text.ptr) + 1;
        if (at == text.len || text.ptr[at] != ':')
            return "the port is missing";
        *ret_host = peg__strn(text.ptr + 1, at - 2);
    } else {
        mark = text.len > 0 ? memrchr(text.ptr, ':', text.len) : NULL;
        if (!mark)
            return is_port_alone(text) ? "a port alone stands behind a colon"
                                       : "the port is missing";
        at = (size_t)(mark - text.ptr);
        *ret_host = peg__strn(text.ptr, at);
    }
    *ret_port = peg__str_from(text, at + 1);
    return NULL;
}

static peg_status read_host_and_port(peg_str text, struct net_endpoint *ret_endpoint,
                                     peg_error *reterr)
{
    struct net_endpoint endpoint = {0};
    struct net_address address;
    peg_str host;
    peg_str port;
    const char *why = split_host_port(text, &host, &port);

    if (why)
        return reject_address(text, why, reterr);
    if (!read_port(port, &endpoint.port))
        return reject_address(text, "a port is a number from 0 to 65535", reterr);
    if (host.len >= sizeof(endpoint.host))
        return reject_address(text, "a name has at most 253 bytes", reterr);
    if (host.len > 0 && memchr(host.ptr, '\0', host.len))
        return reject_address(text, "the name has a NUL byte", reterr);
    if (host.len > 0)
        memcpy(endpoint.host, host.ptr, host.len);

    if (text.ptr[0] == '[') {
        if (!read_ip6(endpoint.host, endpoint.port, &address))
            return reject_address(text, "in the brackets is no IPv6 address", reterr);
    } else {
        why = complain_about_host(endpoint.host);
        if (why)
            return reject_address(text, why, reterr);
    }
    *ret_endpoint = endpoint;
    return PEG_OK;
}

peg_status net_endpoint_parse(peg_str text, struct net_endpoint *ret_endpoint, peg_error *reterr)
{
    if (peg__str_starts(text, unix_prefix) || peg__str_starts(text, abstract_prefix))
        return read_unix_path(text, ret_endpoint, reterr);
    if (peg__str_starts(text, dns_slashes))
        return read_host_and_port(peg__str_from(text, dns_slashes.len), ret_endpoint, reterr);
    if (peg__str_starts(text, dns_prefix))
        return read_host_and_port(peg__str_from(text, dns_prefix.len), ret_endpoint, reterr);
    return read_host_and_port(text, ret_endpoint, reterr);
}

/* ---- targets ------------------------------------------------------------------------------ */

/* One of ipv4:a,b or ipv6:a,b: nothing in such a list is looked up. */
static peg_status read_listed(peg_str text, sa_family_t family, struct net_endpoint *ret_endpoint,
                              peg_error *reterr)
{
    struct net_endpoint endpoint = {0};
    struct net_address address;
    const peg_status status = read_host_and_port(text, &endpoint, reterr);

    if (status)
        return status;
    if (!net_endpoint_is_numeric(&endpoint, &address) || endpoint.host[0] == '\0' ||
        address.at.any.sa_family != family)
        return reject_address(text,
                              family == AF_INET ? "ipv4: is followed by IPv4 addresses"
                                                : "ipv6: is followed by IPv6 addresses in brackets",
                              reterr);
    *ret_endpoint = endpoint;
    return PEG_OK;
}

static peg_status read_list(peg_str list, sa_family_t family, struct net_endpoint *ret_endpoints,
                            size_t max, size_t *ret_n, peg_error *reterr)
{
    size_t n = 0;

    for (;;) {
        const char *comma = list.len > 0 ? memchr(list.ptr, ',', list.len) : NULL;
        const size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
        peg_status status;

        if (n == max)
            return peg__fail(reterr, PEG_ELIMIT, "E_ADDRESS",
                             "the target names more than %zu addresses: use fewer, or a name", max);
        status = read_listed(peg__strn(list.ptr, len), family, &ret_endpoints[n], reterr);
        if (status)
            return status;
        n++;
        if (!comma)
            break;
        list = peg__str_from(list, len + 1);
    }
    *ret_n = n;
    return PEG_OK;
}

peg_status net_target_parse(peg_str text, struct net_endpoint *ret_endpoints, size_t max,
                            size_t *ret_n, peg_error *reterr)
{
    peg_status status;

    if (peg__str_starts(text, ipv4_prefix))
        return read_list(peg__str_from(text, ipv4_prefix.len), AF_INET, ret_endpoints, max, ret_n,
                         reterr);
    if (peg__str_starts(text, ipv6_prefix))
        return read_list(peg__str_from(text, ipv6_prefix.len), AF_INET6, ret_endpoints, max, ret_n,
                         reterr);
    status = net_endpoint_parse(text, ret_endpoints, reterr);
    if (!status)
        *ret_n = 1;
    return status;
}

/* ---- addresses ---------------------------------------------------------------------------- */

bool net_endpoint_is_numeric(const struct net_endpoint *endpoint, struct net_address *ret_address)
{
    if (endpoint->is_unix) {
        *ret_address = endpoint->unix_address;
        return true;
    }
    if (endpoint->host[0] == '\0')
        return read_ip6("::", endpoint->port, ret_address);
    if (strcasecmp(endpoint->host, "localhost") == 0)
        return read_ip4("127.0.0.1", endpoint->port, ret_address);
    return read_ip4(endpoint->host, endpoint->port, ret_address) ||
           read_ip6(endpoint->host, endpoint->port, ret_address);
}

/* The kernel counts a NUL after a path that has no room for one. */
static size_t unix_name_len(const struct net_address *address)
{
    const size_t start = offsetof(struct sockaddr_un, sun_path);
    const size_t most = sizeof(address->at.unix_path.sun_path);
    const size_t len = address->len > start ? address->len - start : 0;

    return len < most ? len : most;
}

/* The peer chooses this name, and it is logged: only text is shown. */
static void format_unix(const struct net_address *address, char *ret_text)
{
    const char *path = address->at.unix_path.sun_path;
    const size_t len = unix_name_len(address);
    const bool is_abstract = len > 1 && path[0] == '\0';
    const peg_str name =
        is_abstract ? peg__strn(path + 1, len - 1) : peg__strn(path, strnlen(path, len));
    const bool is_utf8 = peg__utf8_is_valid(name);
    size_t n = (size_t)snprintf(ret_text, NET_ADDRESS_TEXT, "unix:%s", is_abstract ? "@" : "");

    for (size_t i = 0; i < name.len; i++) {
        const unsigned char c = (unsigned char)name.ptr[i];
        const bool is_text = c >= 0x20 && c != 0x7F && (c < 0x80 || is_utf8);

        ret_text[n++] = '?';
        if (is_text)
            ret_text[n - 1] = name.ptr[i];
    }
    ret_text[n] = '\0';
}

static void format_ip6(const struct sockaddr_in6 *at, char *ret_text)
{
    char number[INET6_ADDRSTRLEN] = "";

    /* A peer that came over IPv4 to a socket of both. */
    if (IN6_IS_ADDR_V4MAPPED(&at->sin6_addr)) {
        inet_ntop(AF_INET, &at->sin6_addr.s6_addr[12], number, sizeof(number));
        snprintf(ret_text, NET_ADDRESS_TEXT, "%s:%u", number, ntohs(at->sin6_port));
        return;
    }
    inet_ntop(AF_INET6, &at->sin6_addr, number, sizeof(number));
    if (at->sin6_scope_id)
        snprintf(ret_text, NET_ADDRESS_TEXT, "[%s%%%u]:%u", number, at->sin6_scope_id,
                 ntohs(at->sin6_port));
    else
        snprintf(ret_text, NET_ADDRESS_TEXT, "[%s]:%u", number, ntohs(at->sin6_port));
}

void net_address_format(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT])
{
    char number[INET_ADDRSTRLEN] = "";

    switch (address->at.any.sa_family) {
    case AF_UNIX:
        format_unix(address, ret_text);
        break;
    case AF_INET:
        inet_ntop(AF_INET, &address->at.ip4.sin_addr, number, sizeof(number));
        snprintf(ret_text, NET_ADDRESS_TEXT, "%s:%u", number, ntohs(address->at.ip4.sin_port));
        break;
    case AF_INET6:
        format_ip6(&address->at.ip6, ret_text);
        break;
    default:
        snprintf(ret_text, NET_ADDRESS_TEXT, "an unknown address");
        break;
    }
}

static bool eq_unix(const struct net_address *a, const struct net_address *b)
{
    const size_t len = unix_name_len(a);

    return len == unix_name_len(b) &&
           (len == 0 || memcmp(a->at.unix_path.sun_path, b->at.unix_path.sun_path, len) == 0);
}

bool net_address_eq(const struct net_address *a, const struct net_address *b)
{
    if (a->at.any.sa_family != b->at.any.sa_family)
        return false;
    switch (a->at.any.sa_family) {
    case AF_UNIX:
        return eq_unix(a, b);
    case AF_INET:
        return a->at.ip4.sin_port == b->at.ip4.sin_port &&
               a->at.ip4.sin_addr.s_addr == b->at.ip4.sin_addr.s_addr;
    case AF_INET6:
        return a->at.ip6.sin6_port == b->at.ip6.sin6_port &&
               a->at.ip6.sin6_scope_id == b->at.ip6.sin6_scope_id &&
               memcmp(&a->at.ip6.sin6_addr, &b->at.ip6.sin6_addr, sizeof(struct in6_addr)) == 0;
    default:
        return false;
    }
}

bool net_address_is_local(const struct net_address *address)
{
    const struct in6_addr *ip6 = &address->at.ip6.sin6_addr;

    switch (address->at.any.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(address->at.ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(ip6) ||
               (IN6_IS_ADDR_V4MAPPED(ip6) && ip6->s6_addr[12] == IN_LOOPBACKNET);
    default:
        return false;
    }
}
