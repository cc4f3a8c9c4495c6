/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

static const peg_str dns_slashes = PEG_LIT("dns:///");
static const peg_str dns_prefix = PEG_LIT("dns:");
static const peg_str other_prefixes[] = {
    PEG_LIT("unix:"),
    PEG_LIT("unix-abstract:"),
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

static peg_status read_endpoint(peg_str text, uint16_t default_port,
                                struct net_endpoint *ret_endpoint, peg_error *reterr)
{
    const peg_str host = host_part(text);
    char with_port[GRPC_AUTHORITY_BYTES];

    if (!lacks_port(host) || host.len >= NET_HOST_BYTES)
        return net_endpoint_parse(text, ret_endpoint, reterr);
    snprintf(with_port, sizeof(with_port), "%.*s:%u", PEG_ARG(host), default_port);
    return net_endpoint_parse(peg__str(with_port), ret_endpoint, reterr);
}

static void name_server(peg_str text, struct grpc_target_entry *entry)
{
    const struct net_endpoint *endpoint = &entry->endpoint;
    const peg_str host = host_part(text);

    if (endpoint->is_unix) {
        snprintf(entry->host, sizeof(entry->host), "localhost");
        snprintf(entry->authority, sizeof(entry->authority), "localhost");
    } else if (endpoint->host[0] == '\0') {
        snprintf(entry->host, sizeof(entry->host), "localhost");
        snprintf(entry->authority, sizeof(entry->authority), "localhost:%u", endpoint->port);
    } else {
        snprintf(entry->host, sizeof(entry->host), "%s", endpoint->host);
        snprintf(entry->authority, sizeof(entry->authority), "%.*s", PEG_ARG(host));
    }
}

/* For who listens, ":9090" is every interface; who calls means this machine. */
static void mean_this_machine(struct net_endpoint *endpoint)
{
    if (!endpoint->is_unix && endpoint->host[0] == '\0')
        snprintf(endpoint->host, sizeof(endpoint->host), "localhost");
}

static peg_status take_entry(struct grpc_target *target, peg_str text,
                             const struct net_endpoint *endpoint, peg_error *reterr)
{
    struct grpc_target_entry *entry = &target->entries[target->n];
    struct net_address address;

    if (!endpoint->is_unix && endpoint->port == 0)
        return peg__fail(reterr, PEG_EPARSE, "E_ADDRESS",
                         "port 0 cannot be reached: name the port of the server");
    entry->endpoint = *endpoint;
    name_server(text, entry);
    mean_this_machine(&entry->endpoint);
    entry->is_name = !net_endpoint_is_numeric(&entry->endpoint, &address);
    target->n++;
    return PEG_OK;
}

static peg_status fail_nth(size_t nth, const peg_error *why, peg_error *reterr)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    const size_t digit = nth / 10 % 10 == 1 ? 0 : nth % 10;

    return peg__fail(reterr, why->status, why->code, "the %zu%s address: %s", nth,
                     ends[digit < 4 ? digit : 0], why->message);
}

/* a:1,b:1 and so on; a comma always separates. */
static peg_status read_parts(struct grpc_target *target, peg_str text, uint16_t default_port,
                             peg_error *reterr)
{
    const bool is_list = text.len > 0 && memchr(text.ptr, ',', text.len);

    for (size_t nth = 1;; nth++) {
        const char *comma = text.len > 0 ? memchr(text.ptr, ',', text.len) : NULL;
        const peg_str part = peg__strn(text.ptr, comma ? (size_t)(comma - text.ptr) : text.len);
        struct net_endpoint endpoint;
        peg_error why;
        peg_status status;

        if (target->n == PEG_LIMIT_NET_ADDRESSES)
            return peg__fail(reterr, PEG_ELIMIT, "E_ADDRESS",
                             "the target names more than %d addresses: use fewer, or a name",
                             PEG_LIMIT_NET_ADDRESSES);
        status = read_endpoint(part, default_port, &endpoint, &why);
        if (!status)
            status = take_entry(target, part, &endpoint, &why);
        if (status && is_list)
            return fail_nth(nth, &why, reterr);
        if (status && reterr)
            *reterr = why;
        if (status || !comma)
            return status;
        text = peg__str_from(text, part.len + 1);
    }
}

/* ipv4:a:1,b:1 as stock clients write it: numbers only. */
static peg_status read_number_list(struct grpc_target *target, peg_str text, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep)
    struct net_endpoint *endpoints = peg__alloc_zero(PEG_LIMIT_NET_ADDRESSES, sizeof(*endpoints));
    size_t n = 0;
    peg_status status;

    if (!endpoints)
        return peg__fail_nomem(reterr);
    status = net_target_parse(text, endpoints, PEG_LIMIT_NET_ADDRESSES, &n, reterr);
    for (size_t i = 0; i < n && !status; i++) {
        struct net_address address;
        char formatted[NET_ADDRESS_TEXT];

        (void)net_endpoint_is_numeric(&endpoints[i], &address); /* all of them are */
        net_address_format(&address, formatted);
        status = take_entry(target, peg__str(formatted), &endpoints[i], reterr);
    }
    return status;
}

peg_status grpc_target_parse(peg_str text, uint16_t default_port, struct grpc_target *ret_target,
                             peg_error *reterr)
{
    const bool has_kind =
        peg__str_starts(text, peg__str("ipv4:")) || peg__str_starts(text, peg__str("ipv6:"));
    struct grpc_target target = {0};
    peg_status status;

    target.entries = peg__alloc_zero(PEG_LIMIT_NET_ADDRESSES, sizeof(*target.entries));
    if (!target.entries)
        return peg__fail_nomem(reterr);
    status = has_kind ? read_number_list(&target, text, reterr)
                      : read_parts(&target, text, default_port, reterr);
    if (status) {
        grpc_target_free(&target);
        return status;
    }
    *ret_target = target;
    return PEG_OK;
}

void grpc_target_free(struct grpc_target *target)
{
    peg__free(target->entries);
    *target = (struct grpc_target){0};
}
