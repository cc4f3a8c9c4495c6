/* SPDX-License-Identifier: Apache-2.0 */

/* Names to addresses, on a worker, because the system's resolver blocks. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "net/address.h"

/* Owned by the loop, until fn was called or the worker has let it go. Pending: `work`, or `later`
 * for what needs no lookup. */
struct net_resolve {
    struct net_work work;
    struct net_later later;
    struct net_loop *loop;
    net_resolve_fn fn; /* NULL: canceled */
    void *user;
    struct net_endpoint endpoint;
    int failed; /* of getaddrinfo() */
    int failed_errno;
    size_t n;
    struct net_address addresses[PEG_LIMIT_NET_ADDRESSES];
};

static bool has_address(const struct net_resolve *resolve, const struct net_address *address)
{
    for (size_t i = 0; i < resolve->n; i++)
        if (net_address_eq(&resolve->addresses[i], address))
            return true;
    return false;
}

/* Those beyond the limit are left out. */
static void keep_address(struct net_resolve *resolve, const struct addrinfo *found)
{
    struct net_address address = {.len = found->ai_addrlen};

    if (resolve->n == PEG_LIMIT_NET_ADDRESSES || found->ai_addrlen > sizeof(address.at))
        return;
    memcpy(&address.at, found->ai_addr, found->ai_addrlen);
    if (!has_address(resolve, &address))
        resolve->addresses[resolve->n++] = address;
}

/* On a worker. */
static void look_up_name(struct net_work *work)
{
    struct net_resolve *resolve = (struct net_resolve *)(void *)work; /* its first member */
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV,
    };
    struct addrinfo *found = NULL;
    char port[8];

    snprintf(port, sizeof(port), "%u", resolve->endpoint.port);
    resolve->failed = getaddrinfo(resolve->endpoint.host, port, &hints, &found);
    resolve->failed_errno = errno;
    if (resolve->failed)
        return;
    for (const struct addrinfo *each = found; each; each = each->ai_next)
        keep_address(resolve, each);
    freeaddrinfo(found);
}

static void report_failure(const struct net_resolve *resolve, bool was_canceled)
{
    char words[128];
    const char *why = "it has no addresses";
    peg_error error;

    if (resolve->failed == EAI_SYSTEM)
        why = strerror_r(resolve->failed_errno, words, sizeof(words));
    else if (resolve->failed)
        why = gai_strerror(resolve->failed);
    if (was_canceled)
        peg__fail(&error, PEG_ECANCELED, "E_RESOLVE",
                  "'%s' was not looked up because the event loop ends", resolve->endpoint.host);
    else
        peg__fail(&error, resolve->failed == EAI_MEMORY ? PEG_ENOMEM : PEG_EIO, "E_RESOLVE",
                  "the name '%s' cannot be looked up: %s; see whether it is right and the "
                  "resolver can be reached",
                  resolve->endpoint.host, why);
    resolve->fn(resolve->user, NULL, 0, &error);
}

static void finish_resolve(struct net_resolve *resolve, bool was_canceled)
{
    if (resolve->fn && resolve->n > 0)
        resolve->fn(resolve->user, resolve->addresses, resolve->n, NULL);
    else if (resolve->fn)
        report_failure(resolve, was_canceled);
    peg__free(resolve);
}

static void on_looked_up(struct net_work *work, bool was_canceled)
{
    finish_resolve((struct net_resolve *)(void *)work, was_canceled);
}

static void on_numeric(struct net_later *later)
{
    finish_resolve(peg__container_of(later, struct net_resolve, later), false);
}

peg_status net_resolve(struct net_loop *loop, const struct net_endpoint *endpoint,
                       net_resolve_fn fn, void *user, struct net_resolve **ret_resolve,
                       peg_error *reterr)
{
    struct net_resolve *resolve = (struct net_resolve *)peg__alloc_zero(1, sizeof(*resolve));

    if (!resolve)
        return peg__fail_nomem(reterr);
    resolve->work.work = look_up_name;
    resolve->work.done = on_looked_up;
    resolve->later.fn = on_numeric;
    resolve->loop = loop;
    resolve->fn = fn;
    resolve->user = user;
    resolve->endpoint = *endpoint;

    if (net_endpoint_is_numeric(endpoint, &resolve->addresses[0])) {
        resolve->n = 1;
        net_loop_later(loop, &resolve->later);
    } else if (net_loop_work(loop, &resolve->work)) {
        peg__free(resolve);
        return peg__fail_nomem(reterr);
    }
    *ret_resolve = resolve;
    return PEG_OK;
}

void net_resolve_cancel(struct net_resolve *resolve)
{
    if (!resolve)
        return;
    resolve->fn = NULL;
    if (resolve->later.is_waiting) {
        net_loop_not_later(resolve->loop, &resolve->later);
        peg__free(resolve);
    }
}
