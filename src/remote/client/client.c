/* SPDX-License-Identifier: Apache-2.0 */

/* A client: what its options said, a channel to each registry, and the thread they live on. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "net/tls/tls.h"
#include "remote/client/remote.h"
#include "remote/token.h"

#define DEFAULT_ADDRESS "127.0.0.1:9090"
#define CODE "E_CLIENT"

enum {
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_CONNECT_MS = 10000,
    DEFAULT_KEEPALIVE_MS = 20000,
    DEFAULT_CACHE_TTL_MS = 3600000,
    DEFAULT_REASKS = 4,
    /* Short, since callers wait: a gateway that has come back is soon found. */
    MAX_BACKOFF_MS = 2000,
};

static const peg_client_options default_options = {PEG_CLIENT_OPTIONS_INIT};

/* ---- tokens -------------------------------------------------------------------------------- */

bool remote__registry_renew(struct remote__registry *registry, const struct peg__blob *refused)
{
    struct peg__blob *fresh = NULL;
    struct peg__blob *old;
    bool is_other;

    if (!registry->token_file || remote__token_read(registry->token_file, CODE, &fresh, NULL))
        return false;
    is_other = !refused || !peg__str_eq(peg__blob_str(fresh), peg__blob_str(refused));
    pthread_mutex_lock(&registry->client->lock);
    old = registry->authorization;
    registry->authorization = fresh;
    pthread_mutex_unlock(&registry->client->lock);
    peg__blob_unref(old);
    return is_other;
}

void remote__registry_epoch(struct remote__registry *registry, char ret_epoch[REMOTE_EPOCH])
{
    pthread_mutex_lock(&registry->client->lock);
    memcpy(ret_epoch, registry->epoch, REMOTE_EPOCH);
    pthread_mutex_unlock(&registry->client->lock);
}

/* ---- registries ---------------------------------------------------------------------------- */

/* NULL stays NULL. */
static peg_status copy_client_text(peg_client *client, const char *text, const char **ret_copy,
                                   peg_error *reterr)
{
    *ret_copy = NULL;
    if (!text)
        return PEG_OK;
    *ret_copy = peg__arena_copy(&client->arena, peg__str(text));
    return *ret_copy ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status copy_globs(peg_client *client, const char *const *globs,
                             const char *const **ret_copy, peg_error *reterr)
{
    size_t n = 0;

    while (globs && globs[n]) {
        if (++n > PEG_LIMIT_REMOTE_GLOBS)
            return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                             "a registry has more than %d globs: use fewer",
                             PEG_LIMIT_REMOTE_GLOBS);
    }
    *ret_copy = globs ? peg__arena_copy_list(&client->arena, globs, NULL) : NULL;
    return *ret_copy || !globs ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status take_registry_token(struct remote__registry *r, const peg_client_registry *def,
                                      peg_error *reterr)
{
    char where[128];

    if (def->token && def->token_file)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "the registry '%s' has a token and a token_file: give one of them",
                         r->name);
    if (def->token) {
        snprintf(where, sizeof(where), "the token of the registry '%.64s'", r->name);
        return remote__token_make(peg__str(def->token), where, CODE, &r->authorization, reterr);
    }
    return def->token_file ? remote__token_read(def->token_file, CODE, &r->authorization, reterr)
                           : PEG_OK;
}

static peg_status make_tls(const peg_client_registry *def, struct net_tls_config **ret_tls,
                           peg_error *reterr)
{
    const struct net_tls_options tls = {.is_client = true,
                                        .ca_file = def->ca_file,
                                        .cert_file = def->cert_file,
                                        .key_file = def->key_file};

    *ret_tls = NULL;
    if (!def->uses_tls && !def->ca_file && !def->cert_file && !def->key_file)
        return PEG_OK;
    return net_tls_config_new(&tls, ret_tls, reterr);
}

static int64_t ms_or_default(int64_t value, int64_t by_default)
{
    if (value < 0)
        return 0;
    return value ? value : by_default;
}

static peg_status make_registry_channel(struct remote__registry *r, const peg_client_registry *def,
                                        const peg_client_options *options, peg_error *reterr)
{
    struct grpc_channel_options channel = {
        .max_message_bytes = PEG_LIMIT_REMOTE_MESSAGE_BYTES,
        .max_send_bytes = PEG_LIMIT_REMOTE_MESSAGE_BYTES,
        .connect_ms = ms_or_default(options->connect_ms, DEFAULT_CONNECT_MS),
        .keepalive_ms = ms_or_default(options->keepalive_ms, DEFAULT_KEEPALIVE_MS),
        .max_backoff_ms = MAX_BACKOFF_MS,
        .prefers_one = true,
        .tls_host = def->tls_host,
        .user_agent = options->user_agent,
    };
    peg_status status = make_tls(def, &channel.tls, reterr);

    if (!status)
        status =
            grpc_channel_new(r->client->loop, peg__str(r->address), &channel, &r->channel, reterr);
    net_tls_config_unref(channel.tls);
    return status;
}

static peg_status check_registry_name(const struct remote__registry *r, peg_error *reterr)
{
    const peg_client *client = r->client;

    for (const struct remote__registry *other = client->registries; other < r; other++) {
        if (strcmp(other->name, r->name) == 0)
            return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                             "two registries are called '%s': give them names", r->name);
    }
    return PEG_OK;
}

static peg_status fill_registry(struct remote__registry *r, const peg_client_registry *def,
                                const peg_client_options *options, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_CLIENT_REGISTRY_INIT, reterr);
    peg_client *client = r->client;
    const char *address = def->address ? def->address : DEFAULT_ADDRESS;
    peg_status status;

    if ((status = copy_client_text(client, address, &r->address, reterr)) ||
        (status = copy_client_text(client, def->name ? def->name : address, &r->name, reterr)) ||
        (status = check_registry_name(r, reterr)) ||
        (status = copy_client_text(client, def->token_file, &r->token_file, reterr)) ||
        (status = copy_globs(client, def->include, &r->include, reterr)) ||
        (status = copy_globs(client, def->exclude, &r->exclude, reterr)) ||
        (status = take_registry_token(r, def, reterr)))
        return status;
    return make_registry_channel(r, def, options, reterr);
}

static peg_status add_registries(peg_client *client, const peg_client_options *options,
                                 peg_error *reterr)
{
    const peg_client_registry single = {PEG_CLIENT_REGISTRY_INIT, .address = options->address};
    const peg_client_registry *def = options->n_registries ? options->registries : &single;
    const size_t n = options->n_registries ? options->n_registries : 1;
    peg_status status = PEG_OK;

    if (options->n_registries && (options->address || !options->registries))
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "n_registries is set: then registries is needed, and address is not");
    if (n > PEG_LIMIT_REMOTE_REGISTRIES)
        return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                         "there are %zu registries, and at most %d are possible", n,
                         PEG_LIMIT_REMOTE_REGISTRIES);
    client->registries = peg__arena_alloc_zero(&client->arena, n * sizeof(*client->registries));
    if (!client->registries)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n && !status; i++) {
        client->registries[i].client = client;
        client->n_registries++;
        status = fill_registry(&client->registries[i], def, options, reterr);
        def = (const void *)((const char *)def + def->size);
    }
    return status;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void free_channel(struct remote__registry *r)
{
    if (r->client->is_started)
        grpc_channel_free_wait(r->channel);
    else if (r->channel)
        grpc_channel_free(r->channel);
}

static void free_client(peg_client *client)
{
    for (size_t i = 0; i < client->n_registries; i++)
        free_channel(&client->registries[i]);
    if (client->loop)
        net_loop_free(client->loop);
    for (size_t i = 0; i < client->n_registries; i++)
        peg__blob_unref(client->registries[i].authorization);
    remote__cache_clear(client);
    pthread_mutex_destroy(&client->lock);
    peg__arena_free(&client->arena);
    peg__free(client);
}

static peg_status start_client(peg_client *client, const peg_client_options *options,
                               peg_error *reterr)
{
    peg_status status = net_loop_new(&client->loop, reterr);

    if (!status)
        status = add_registries(client, options, reterr);
    if (!status)
        status = net_loop_start(client->loop, reterr);
    client->is_started = !status;
    return status;
}

peg_status peg_client_new(const peg_client_options *options, peg_client **ret_client,
                          peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_CLIENT_OPTIONS_INIT, reterr);
    peg_client *client = peg__alloc_zero(1, sizeof(*client));
    peg_status status;

    if (!client)
        return peg__fail_nomem(reterr);
    if (!options)
        options = &default_options;
    atomic_init(&client->n_refs, 1);
    pthread_mutex_init(&client->lock, NULL);
    client->timeout_ms = ms_or_default(options->timeout_ms, DEFAULT_TIMEOUT_MS);
    client->cache_ttl_ms = ms_or_default(options->cache_ttl_ms, DEFAULT_CACHE_TTL_MS);
    client->max_reasks = (unsigned)ms_or_default(options->max_reasks, DEFAULT_REASKS);
    client->clock = options->clock ? options->clock : peg_clock_system();
    client->cache.map.max = PEG_LIMIT_REMOTE_CACHED;
    status = start_client(client, options, reterr);
    if (status) {
        free_client(client);
        return status;
    }
    *ret_client = client;
    return PEG_OK;
}

peg_client *peg_client_ref(peg_client *client)
{
    peg__refs_take(&client->n_refs);
    return client;
}

peg_client *peg_client_unref(peg_client *client)
{
    if (client && peg__refs_drop(&client->n_refs))
        free_client(client);
    return NULL;
}

/* ---- which registry -------------------------------------------------------------------------- */

peg_status remote__registries(peg_client *client, const char *name, size_t *ret_first,
                              size_t *ret_end, peg_error *reterr)
{
    if (!name) {
        *ret_first = 0;
        *ret_end = client->n_registries;
        return PEG_OK;
    }
    for (size_t i = 0; i < client->n_registries; i++) {
        if (strcmp(client->registries[i].name, name) != 0)
            continue;
        *ret_first = i;
        *ret_end = i + 1;
        return PEG_OK;
    }
    return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                     "this client has no registry '%.64s': its options name them", name);
}

peg_status remote__registry_only(peg_client *client, const char *name,
                                 struct remote__registry **ret_registry, peg_error *reterr)
{
    size_t first = 0;
    size_t end = 0;
    const peg_status status = remote__registries(client, name, &first, &end, reterr);

    if (status)
        return status;
    if (end - first > 1)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "this client has %zu registries: name one",
                         client->n_registries);
    *ret_registry = &client->registries[first];
    return PEG_OK;
}

static bool ends_in(peg_str s, const char *end)
{
    const peg_str tail = peg__str(end);

    return s.len >= tail.len && memcmp(s.ptr + s.len - tail.len, tail.ptr, tail.len) == 0;
}

static bool is_below(peg_str glob, size_t n_stars, peg_str name)
{
    const peg_str folder = peg__strn(glob.ptr, glob.len - n_stars); /* "p/" */

    return peg__str_starts(name, folder) && name.len > folder.len;
}

bool remote__glob_matches(peg_str glob, peg_str name)
{
    if (peg__str_is(glob, "**"))
        return true;
    if (ends_in(glob, "/**"))
        return is_below(glob, 2, name);
    if (ends_in(glob, "/*"))
        return is_below(glob, 1, name) &&
               !memchr(name.ptr + glob.len - 1, '/', name.len - (glob.len - 1));
    if (ends_in(glob, "*"))
        return peg__str_starts(name, peg__strn(glob.ptr, glob.len - 1));
    return peg__str_eq(glob, name);
}

bool remote__glob_is_name(peg_str glob)
{
    return !ends_in(glob, "*");
}

static bool matches_any(const char *const *globs, peg_str name)
{
    for (size_t i = 0; globs[i]; i++) {
        if (remote__glob_matches(peg__str(globs[i]), name))
            return true;
    }
    return false;
}

bool remote__registry_admits(const struct remote__registry *registry, peg_str toolset)
{
    if (registry->exclude && matches_any(registry->exclude, toolset))
        return false;
    return !registry->include || !registry->include[0] || matches_any(registry->include, toolset);
}
