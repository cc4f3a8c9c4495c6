/* SPDX-License-Identifier: Apache-2.0 */

/* One toolset with its schemas: from the cache, from a registry, in the background. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "remote/client/remote.h"
#include "wire/wire.h"

#define GET_TOOLSET (&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_GET_TOOLSET])

/* ---- in the background ------------------------------------------------------------------------
 *
 * A fetch lives on the client's loop until its call ends, which the end of the channel makes
 * certain. It is posted there with a copy of the name. */

struct fetch {
    struct net_message message; /* first */
    struct remote__registry *registry;
    uint32_t n_changes;     /* for the cache */
    struct grpc_method raw; /* GetToolset, answered with bytes */
    struct grpc_metadata metadata;
    struct peg__arena arena;
    char name[];
};

static void drop_fetch(struct fetch *fetch)
{
    remote__cache_cool(fetch->registry, peg__str(fetch->name));
    peg__arena_free(&fetch->arena);
    peg__free(fetch);
}

static void end_fetch(struct fetch *fetch)
{
    fetch->registry->client->n_fetches--;
    drop_fetch(fetch);
}

static void on_fetched(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct fetch *fetch = user;
    struct remote__toolset *toolset;

    (void)rpc;
    if (remote__toolset_read(fetch->registry, *(const peg_str *)message, &toolset, NULL))
        return;
    remote__cache_put(fetch->registry, peg__str(fetch->name), toolset, fetch->n_changes);
    peg_toolset_unref(&toolset->toolset);
}

static void on_fetch_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                         const struct grpc_metadata *trailers, void *user)
{
    struct fetch *fetch = user;

    (void)rpc;
    (void)trailers;
    if (status->code == GRPC_NOT_FOUND)
        remote__cache_drop(fetch->registry, peg__str(fetch->name));
    else if (status->code != GRPC_OK && status->code != GRPC_CANCELLED)
        peg__log(PEG_LOG_WARN, "E_SERVICE_UNAVAILABLE",
                 "the toolset %s was not fetched again from %s: %s", fetch->name,
                 fetch->registry->address, grpc_code_name(status->code));
    end_fetch(fetch);
}

static void begin_fetch(struct net_message *message)
{
    static const struct grpc_rpc_events events = {.on_message = on_fetched, .on_end = on_fetch_end};
    struct fetch *fetch = (struct fetch *)(void *)message;
    Pegboard__V1__GetToolsetRequest request = PEGBOARD__V1__GET_TOOLSET_REQUEST__INIT;
    peg_client *client = fetch->registry->client;
    const struct grpc_rpc_options options = {.timeout_ms = client->timeout_ms,
                                             .metadata = &fetch->metadata};

    client->n_fetches++;
    request.name = fetch->name;
    if (client->n_fetches > PEG_LIMIT_REMOTE_REFRESHES || net_loop_is_ending(client->loop) ||
        grpc_rpc_unary(fetch->registry->channel, &fetch->raw, &request, &options, &events, fetch,
                       NULL, NULL))
        end_fetch(fetch);
}

static peg_status authorize(struct fetch *fetch)
{
    static const peg_str key = PEG_LIT("authorization");
    peg_client *client = fetch->registry->client;
    struct peg__blob *authorization;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&client->lock);
    authorization = peg__blob_ref(fetch->registry->authorization);
    pthread_mutex_unlock(&client->lock);
    if (authorization)
        status = grpc_metadata_add(&fetch->metadata, &fetch->arena, key,
                                   peg__blob_str(authorization), NULL);
    peg__blob_unref(authorization);
    return status;
}

void remote__refresh(struct remote__registry *registry, peg_str name)
{
    struct fetch *fetch = peg__alloc_zero(1, sizeof(*fetch) + name.len + 1);

    if (!fetch) {
        remote__cache_cool(registry, name);
        return;
    }
    fetch->registry = registry;
    fetch->n_changes = remote__cache_note(registry, name);
    fetch->raw = *GET_TOOLSET;
    fetch->raw.output = NULL;
    memcpy(fetch->name, name.ptr, name.len);
    fetch->message.fn = begin_fetch;
    if (authorize(fetch)) {
        drop_fetch(fetch);
        return;
    }
    net_loop_post(registry->client->loop, &fetch->message);
}

/* ---- now ---- */

/* Its bytes are read here, into memory of the toolset's own. */
static peg_status fetch_now(struct remote__registry *registry, peg_ctx *ctx, const char *name,
                            struct remote__toolset **ret_toolset, peg_error *reterr)
{
    Pegboard__V1__GetToolsetRequest request = PEGBOARD__V1__GET_TOOLSET_REQUEST__INIT;
    struct grpc_method raw = *GET_TOOLSET;
    struct remote__fan fan = {
        .registry = registry, .method = &raw, .request = &request.base, .is_repeatable = true};
    struct peg__arena arena = {0};
    peg_error why;
    peg_status status;

    request.name = peg__unconst(name);
    raw.output = NULL;
    status = remote__unary(&fan, ctx, &arena, reterr);
    if (!status) {
        status = remote__toolset_read(registry, *(const peg_str *)fan.message, ret_toolset, &why);
        if (status == PEG_ENOMEM)
            peg__fail_nomem(reterr);
        else if (status)
            status = peg__fail_because(reterr, PEG_EHOST, "E_GATEWAY", &why,
                                       "what %s answers to GetToolset cannot be read",
                                       registry->address);
    }
    peg__arena_free(&arena);
    return status;
}

/* Has the registry itself failed, rather than said no, or we? */
static bool is_failure(peg_status status, const peg_error *error)
{
    if (status == PEG_EIO || status == PEG_EHOST)
        return strcmp(error->code, "E_PERMISSION_DENIED") != 0 &&
               strcmp(error->code, "E_UNAUTHENTICATED") != 0;
    return status == PEG_ELIMIT ||
           (status == PEG_ETIMEOUT && strcmp(error->code, "E_TIMEOUT") == 0);
}

static peg_status fail_excluded(const struct remote__registry *registry, const char *name,
                                peg_error *reterr)
{
    return peg__fail(reterr, PEG_ENOTFOUND, "E_NOT_FOUND",
                     "the toolset '%s' is not among those of the registry '%s' that this client "
                     "takes: look at include and exclude",
                     name, registry->name);
}

static peg_status fall_back(struct remote__toolset *old, peg_toolset **ret_toolset,
                            peg_error *reterr)
{
    struct remote__toolset *stale = remote__toolset_stale(old);

    if (!stale)
        return peg__fail_nomem(reterr);
    *ret_toolset = &stale->toolset;
    return PEG_OK;
}

static peg_status get_again(struct remote__registry *registry, peg_ctx *ctx, const char *name,
                            struct remote__toolset *old, peg_toolset **ret_toolset,
                            peg_error *reterr)
{
    struct remote__toolset *fresh;
    peg_error error;
    const uint32_t n_changes = remote__cache_note(registry, peg__str(name));
    const peg_status status = fetch_now(registry, ctx, name, &fresh, &error);

    if (!status) {
        if (registry->client->cache_ttl_ms)
            remote__cache_put(registry, peg__str(name), fresh, n_changes);
        *ret_toolset = &fresh->toolset;
        return PEG_OK;
    }
    if (old && is_failure(status, &error))
        return fall_back(old, ret_toolset, reterr);
    if (status == PEG_ENOTFOUND)
        remote__cache_drop(registry, peg__str(name));
    if (reterr)
        *reterr = error;
    return status;
}

peg_status remote__get_from(struct remote__registry *registry, peg_ctx *ctx, const char *name,
                            peg_toolset **ret_toolset, peg_error *reterr)
{
    struct remote__toolset *old;
    enum remote__age age = REMOTE_EXPIRED;
    peg_status status;

    if (!remote__registry_admits(registry, peg__str(name)))
        return fail_excluded(registry, name, reterr);
    old = remote__cache_get(registry, peg__str(name), &age);
    if (age == REMOTE_AGEING)
        remote__refresh(registry, peg__str(name));
    if (age != REMOTE_EXPIRED) {
        *ret_toolset = &old->toolset;
        return PEG_OK;
    }
    status = get_again(registry, ctx, name, old, ret_toolset, reterr);
    if (old)
        peg_toolset_unref(&old->toolset);
    return status;
}

/* The one that has it, if those before it have said not long ago that they have none. So they are
 * not asked for each call of what another one has, nor waited for when they do not answer. */
static bool get_known(peg_client *client, peg_ctx *ctx, const char *name, peg_toolset **ret_toolset)
{
    for (size_t i = 1; i < client->n_registries; i++) {
        if (remote__cache_is_first(&client->registries[i], peg__str(name)))
            return !remote__get_from(&client->registries[i], ctx, name, ret_toolset, NULL);
    }
    return false;
}

/* Of [first, end) the first that has it. */
static peg_status get_first(struct remote__registry *first, const struct remote__registry *end,
                            peg_ctx *ctx, const char *name, peg_toolset **ret_toolset,
                            peg_error *reterr)
{
    peg_error error = {.status = PEG_OK};
    peg_error failure = {.status = PEG_OK};
    peg_status status = PEG_OK;

    for (struct remote__registry *at = first; at < end; at++) {
        status = remote__get_from(at, ctx, name, ret_toolset, &error);
        if (status == PEG_OK && at > first && !failure.status)
            remote__cache_set_first(at, peg__str(name));
        if (status == PEG_OK)
            return PEG_OK;
        if (status == PEG_ENOMEM || (ctx && peg_ctx_check(ctx, NULL)))
            break;
        /* One that failed may have it: that is worth more words than that the others do not. */
        if (status != PEG_ENOTFOUND && !failure.status)
            failure = error;
    }
    if (status != PEG_ENOMEM && failure.status)
        error = failure;
    return remote__pass_error(&error, reterr);
}

peg_status peg_client_get(peg_client *client, peg_ctx *ctx, const char *registry,
                          const char *toolset, peg_toolset **ret_toolset, peg_error *reterr)
{
    size_t first = 0;
    size_t end = 0;
    peg_status status = remote__registries(client, registry, &first, &end, reterr);

    if (!status)
        status = wire_check_name(peg_cstr(toolset), "toolset", reterr);
    if (status)
        return status;
    if (!registry && get_known(client, ctx, toolset, ret_toolset))
        return PEG_OK;
    return get_first(&client->registries[first], &client->registries[end], ctx, toolset,
                     ret_toolset, reterr);
}

void peg_client_forget(peg_client *client)
{
    remote__cache_clear(client);
}
