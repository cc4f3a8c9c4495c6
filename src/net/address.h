/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_ADDRESS_H
#define PEG_NET_ADDRESS_H

/*
 * Where to listen or to connect:
 *
 *   127.0.0.1:9090   [::1]:9090   localhost:9090   :9090 (every interface)   example.org:443
 *   unix:/run/pegboard.sock   unix:relative.sock   unix:///run/x.sock   unix:@abstract
 *   unix-abstract:name (the same as unix:@name)
 *
 * For a client :9090 is localhost:9090. Its target may begin with dns: or dns:///, as stock clients
 * write it, and may be a list: ipv4:10.0.0.1:1,10.0.0.2:1 and ipv6:[::1]:1,... (several addresses,
 * no lookup).
 */

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/loop/loop.h"

enum { NET_ADDRESS_TEXT = 280, NET_HOST_BYTES = 254 };

/* A value: an address that the system understands. */
struct net_address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_un unix_path;
    } at;
};

/* A value: what a text says, before names are looked up. */
struct net_endpoint {
    bool is_unix;
    char host[NET_HOST_BYTES]; /* "" means every interface; an IPv6 address without brackets */
    uint16_t port;
    struct net_address unix_address; /* if is_unix */
};

/* PEG_EPARSE (E_ADDRESS), with what an address looks like. */
peg_status net_endpoint_parse(peg_str text, struct net_endpoint *ret_endpoint, peg_error *reterr);

/* The target of a client: an endpoint, or a list of them after ipv4: or ipv6:. Fills at most `max`
 * (PEG_LIMIT_NET_ADDRESSES). */
peg_status net_target_parse(peg_str text, struct net_endpoint *ret_endpoints, size_t max,
                            size_t *ret_n, peg_error *reterr);

/* True, and the address, if nothing has to be looked up: unix, numbers, "" and localhost
 * (127.0.0.1). */
bool net_endpoint_is_numeric(const struct net_endpoint *endpoint, struct net_address *ret_address);

/* As net_endpoint_parse() reads it, but control characters and bytes that are no UTF-8 in the name
 * of a unix socket are '?'. A client's end of a unix socket has no name: "unix:". */
void net_address_format(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT]);
bool net_address_eq(const struct net_address *a, const struct net_address *b);
/* A loopback address or a unix socket: the peer is on this machine. */
bool net_address_is_local(const struct net_address *address);

/* Looks a name up on a worker of the loop. fn is called once on the loop, later: with addresses
 * (borrowed, in the order of RFC 6724, each once), or with none and the reason (E_RESOLVE); not
 * after net_resolve_cancel(). */
struct net_resolve;
typedef void (*net_resolve_fn)(void *user, const struct net_address *addresses, size_t n,
                               const peg_error *error);
peg_status net_resolve(struct net_loop *loop, const struct net_endpoint *endpoint,
                       net_resolve_fn fn, void *user, struct net_resolve **ret_resolve,
                       peg_error *reterr);
void net_resolve_cancel(struct net_resolve *resolve);

#endif
