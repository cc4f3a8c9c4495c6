/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

static const peg_str dns_slashes = PEG_LIT("dns:///");
static const peg_str dns_prefix = PEG_LIT("dns:");
static const peg_str other_prefixes[] = {
    PEG_LIT("unix:"),
    PEG_LIT("unix-abstract:"),
    PEG_LIT("ipv4:"),
    PEG_LIT("ipv6:"),
};

/* What follows dns:, or the whole text. Empty for the schemes that name addresses. */
static peg_str host_part(peg_str text)
{
    for (size_t i = 0; i < sizeof(other_prefixes) / sizeof(other_prefixes[0]); i++) {
        if (peg__str_starts(text, other_prefixes[i]))
            return (peg_str){"", 0};
    }
    if (peg__str_starts(text, dns_slashes))
        return peg__str_from(text, dns_slashes.len);
    return peg__str_starts(text, dns_prefix) ? peg__str_from(text, dns_prefix.len) : text;
}

static bool lacks_port(peg_str host)
{
    if (host.len == 0)
        return false;
    if (host.ptr[0] == '[')
        return host.ptr[host.len - 1] == ']';
    return !memchr(host.ptr, ':', host.len);
}

static peg_status read_endpoints(peg_str text, uint16_t default_port,
                                 struct net_endpoint *ret_endpoints, size_t *ret_n,
                                 peg_error *reterr)
{
    const peg_str host = host_part(text);
    char with_port[GRPC_AUTHORITY_BYTES];

    if (!lacks_port(host) || host.len >= NET_HOST_BYTES)
        return net_target_parse(text, ret_endpoints, PEG_LIMIT_NET_ADDRESSES, ret_n, reterr);
    snprintf(with_port, sizeof(with_port), "%.*s:%u", PEG_ARG(host), default_port);
    return net_target_parse(peg__str(with_port), ret_endpoints, 1, ret_n, reterr);
}

static void name_server(peg_str text, const struct net_endpoint *first, struct grpc_target *target)
{
    const peg_str host = host_part(text);
    struct net_address address;
    char formatted[NET_ADDRESS_TEXT];

    if (first->is_unix) {
        snprintf(target->host, sizeof(target->host), "localhost");
        snprintf(target->authority, sizeof(target->authority), "localhost");
    } else if (first->host[0] == '\0') {
        snprintf(target->host, sizeof(target->host), "localhost");
        snprintf(target->authority, sizeof(target->authority), "localhost:%u", first->port);
    } else {
        snprintf(target->host, sizeof(target->host), "%s", first->host);
        if (host.len > 0) {
            snprintf(target->authority, sizeof(target->authority), "%.*s", PEG_ARG(host));
            return;
        }
        (void)net_endpoint_is_numeric(first, &address); /* of a list all are */
        net_address_format(&address, formatted);
        snprintf(target->authority, sizeof(target->authority), "%.*s", GRPC_AUTHORITY_BYTES - 1,
                 formatted);
    }
}

static bool has_number(const struct grpc_target *target, const struct net_address *address)
{
    for (size_t i = 0; i < target->n_numbers; i++) {
        if (net_address_eq(&target->numbers[i], address))
            return true;
    }
    return false;
}

/* For who listens, ":9090" is every interface; who calls means this machine. */
static void mean_this_machine(struct net_endpoint *endpoint)
{
    if (!endpoint->is_unix && endpoint->host[0] == '\0')
        snprintf(endpoint->host, sizeof(endpoint->host), "localhost");
}

static peg_status take_numbers(struct grpc_target *target, const struct net_endpoint *endpoints,
                               size_t n, peg_error *reterr)
{
    struct net_address address;

    target->is_name = !net_endpoint_is_numeric(&endpoints[0], &address);
    if (target->is_name) {
        target->name = endpoints[0];
        return PEG_OK;
    }
    target->numbers = peg__alloc_zero(n, sizeof(*target->numbers));
    if (!target->numbers)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        if (net_endpoint_is_numeric(&endpoints[i], &address) && !has_number(target, &address))
            target->numbers[target->n_numbers++] = address;
    }
    return PEG_OK;
}

peg_status grpc_target_parse(peg_str text, uint16_t default_port, struct grpc_target *ret_target,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__freep)
    struct net_endpoint *endpoints = peg__alloc_zero(PEG_LIMIT_NET_ADDRESSES, sizeof(*endpoints));
    struct grpc_target target = {0};
    size_t n = 0;
    peg_status status;

    if (!endpoints)
        return peg__fail_nomem(reterr);
    status = read_endpoints(text, default_port, endpoints, &n, reterr);
    if (!status && !endpoints[0].is_unix && endpoints[0].port == 0)
        status = peg__fail(reterr, PEG_EPARSE, "E_ADDRESS",
                           "port 0 cannot be reached: name the port of the server");
    if (status)
        return status;
    name_server(text, &endpoints[0], &target);
    mean_this_machine(&endpoints[0]);
    status = take_numbers(&target, endpoints, n, reterr);
    if (status)
        return status;
    *ret_target = target;
    return PEG_OK;
}

void grpc_target_free(struct grpc_target *target)
{
    peg__free(target->numbers);
    *target = (struct grpc_target){0};
}
