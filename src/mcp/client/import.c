/* SPDX-License-Identifier: Apache-2.0 */

/* The public face of an imported server. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

/* ---- options ---- */

static peg_status reject_import_option(peg_error *reterr, const char *where, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_MCP", "%s: %s", where + 1, why);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status check_http_options(const peg_mcp_import_options *options, peg_error *reterr)
{
    const char *const *header = options->headers;
    bool is_name;

    if (options->command)
        return reject_import_option(reterr, "/url", "it is for a server that is no command");
    if (!options->http)
        return reject_import_option(reterr, "/http",
                                    "what sends requests is needed: peg_http_new()");
    for (; header && *header; header++) {
        if (!mcp__is_header(*header))
            return reject_import_option(reterr, "/headers", "each is a line such as 'Name: value'");
    }
    return mcp__check_url(options->url, &is_name, reterr);
}

/* The program, or the URL with what goes with it. */
static peg_status check_server_options(const peg_mcp_import_options *options, peg_error *reterr)
{
    if (options->url)
        return check_http_options(options, reterr);
    if (!options->command || !options->command[0] || !options->command[0][0])
        return reject_import_option(reterr, "/command", "a program is needed, or a url");
    return PEG_OK;
}

static peg_status check_import_options(const peg_mcp_import_options *options, peg_error *reterr)
{
    if (options->check_ms < 0)
        return reject_import_option(reterr, "/check_ms", "it is not negative");
    if (options->timeout_ms < 0 || options->start_ms < 0 || options->backoff_ms < 0 ||
        options->max_backoff_ms < 0)
        return reject_import_option(reterr,
                                    options->timeout_ms < 0   ? "/timeout_ms"
                                    : options->start_ms < 0   ? "/start_ms"
                                    : options->backoff_ms < 0 ? "/backoff_ms"
                                                              : "/max_backoff_ms",
                                    "it is not negative");
    return check_server_options(options, reterr);
}

static bool names_path(const char *const *env)
{
    for (; env && *env; env++) {
        if (!strncmp(*env, "PATH=", 5))
            return true;
    }
    return false;
}

/* The given ones, and PATH. */
static const char *const *copy_env(peg_mcp_client *client, const char *const *env)
{
    size_t n = 0;
    const char **copied = peg__arena_copy_list(&client->arena, env, &n);
    const char **list =
        copied ? peg__arena_alloc_zero(&client->arena, (n + 2) * sizeof(*list)) : NULL;
    struct peg__buf path = PEG__BUF(PEG_LIMIT_COMMAND_BYTES);
    const char *host;

    if (!list)
        return NULL;
    memcpy(list, copied, n * sizeof(*list));
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): hosts do not change it while they import */
    host = getenv("PATH");
    if (host && !names_path(env)) {
        peg__buf_printf(&path, "PATH=%s", host);
        list[n] = path.status ? NULL : peg__arena_copy(&client->arena, peg__buf_view(&path));
        if (!list[n])
            list = NULL;
    }
    peg__buf_free(&path);
    return list;
}

/* NULL stays NULL; false when out of memory. */
static bool copy_import_text(peg_mcp_client *client, const char **text)
{
    if (*text)
        *text = peg__arena_copy(&client->arena, peg__str(*text));
    return *text;
}

static bool copy_list(peg_mcp_client *client, const char *const **list)
{
    size_t n;

    if (*list)
        *list = peg__arena_copy_list(&client->arena, *list, &n);
    return *list;
}

static peg_status copy_options(peg_mcp_client *client, const peg_mcp_import_options *options,
                               peg_error *reterr)
{
    peg_mcp_import_options *own = &client->options;
    bool is_copied;

    *own = *options;
    own->env = copy_env(client, options->env);
    is_copied = own->env && (!own->command || copy_list(client, &own->command)) &&
                (!own->url || copy_import_text(client, &own->url)) &&
                (!own->headers || copy_list(client, &own->headers)) &&
                (!own->directory || copy_import_text(client, &own->directory)) &&
                (!own->prefix || copy_import_text(client, &own->prefix)) &&
                (!own->include || copy_list(client, &own->include)) &&
                (!own->exclude || copy_list(client, &own->exclude));
    own->check_ms = PEG__OR_DEFAULT(own->check_ms, PEG_LIMIT_MCP_IMPORT_CHECK_MS);
    own->start_ms = PEG__OR_DEFAULT(own->start_ms, PEG_LIMIT_MCP_IMPORT_START_MS);
    own->backoff_ms = PEG__OR_DEFAULT(own->backoff_ms, PEG_LIMIT_MCP_IMPORT_BACKOFF_MS);
    own->max_backoff_ms = PEG__OR_DEFAULT(own->max_backoff_ms, PEG_LIMIT_MCP_IMPORT_BACKOFF_MAX_MS);
    return is_copied ? PEG_OK : peg__fail_nomem(reterr);
}

/* ---- reports ---- */

void mcp__report(peg_mcp_client *client, const peg_mcp_event *event)
{
    peg_mcp_event full = *event;

    if (!client->options.on_event)
        return;
    full.server = peg__or_empty(full.server);
    full.version = peg__or_empty(full.version);
    full.tool = peg__or_empty(full.tool);
    full.code = peg__or_empty(full.code);
    full.message = peg__or_empty(full.message);
    pthread_mutex_lock(&client->reporting);
    client->options.on_event(&full, client->options.user);
    pthread_mutex_unlock(&client->reporting);
}

/* ---- its life ---- */

void mcp__client_unref(peg_mcp_client *client)
{
    if (!client || !peg__refs_drop(&client->n_refs))
        return;
    peg__map_free(&client->tools);
    peg_registry_unref(client->registry);
    peg__http_unref(client->http);
    peg_ctx_unref(client->ctx);
    peg_cancel_unref(client->cancel);
    peg__wait_destroy(&client->wait);
    pthread_mutex_destroy(&client->reporting);
    peg__arena_free(&client->arena);
    peg__free(client);
}

peg_status mcp__client_new(peg_registry *registry, const struct mcp__link_ops *link,
                           const peg_mcp_import_options *options, peg_mcp_client **ret_client,
                           peg_error *reterr)
{
    peg_mcp_client *client = peg__alloc_zero(1, sizeof(*client));
    peg_status status = PEG_OK;

    if (!client) {
        peg__fail_nomem(reterr);
        return PEG_ENOMEM;
    }
    atomic_init(&client->n_refs, 1);
    peg__wait_init(&client->wait);
    pthread_mutex_init(&client->reporting, NULL);
    client->tools = (struct peg__map)PEG__MAP(PEG_LIMIT_MCP_IMPORT_TOOLS);
    client->next_id = 1;
    client->link = link;
    client->registry = peg_registry_ref(registry);
    if (options->url) {
        client->http = peg__http_ref(options->http);
        status = mcp__check_url(options->url, &client->only_public, reterr);
        client->only_public = client->only_public && !options->private_addresses;
    }
    if (!status)
        status = copy_options(client, options, reterr);
    client->backoff_ms = client->options.backoff_ms;
    if (!status)
        status = peg_ctx_with_cancel(NULL, &client->ctx, &client->cancel, reterr);
    if (status)
        mcp__client_unref(client);
    else
        *ret_client = client;
    return status;
}

static peg_status start(peg_mcp_client *client, peg_error *reterr)
{
    const peg_status status = mcp__connect_and_list(client, reterr);

    if (status)
        return status;
    mcp__report_tools(client, PEG_MCP_CONNECTED);
    client->has_manager = pthread_create(&client->manager, NULL, mcp__manage, client) == 0;
    if (client->has_manager)
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_MCP_START",
                     "the system has no thread for the MCP server: end some, or raise its limit");
}

peg_status peg_mcp_import(peg_registry *registry, const peg_mcp_import_options *options,
                          peg_mcp_client **ret_client, peg_error *reterr)
{
    peg_mcp_client *client = NULL;
    peg_error error;
    peg_status status;

    if (!reterr)
        reterr = &error;
    if (!registry || !options)
        return peg__fail(reterr, PEG_EINVAL, "E_MCP", "a registry and options are needed");
    PEG__READ_OR_RETURN(options, PEG_MCP_IMPORT_OPTIONS_INIT, reterr);
    status = check_import_options(options, reterr);
    if (!status)
        status = mcp__client_new(registry, options->url ? &mcp__http_link : &mcp__stdio_link,
                                 options, &client, reterr);
    if (!status)
        status = start(client, reterr);
    if (status)
        peg_mcp_client_free(client);
    else
        *ret_client = client;
    return status;
}

peg_mcp_client *peg_mcp_client_free(peg_mcp_client *client)
{
    if (!client)
        return NULL;
    pthread_mutex_lock(&client->wait.lock);
    client->is_stopping = true;
    client->is_ready = false;
    peg__wait_wake(&client->wait);
    pthread_mutex_unlock(&client->wait.lock);
    peg_cancel_fire(client->cancel, "the MCP server is closed");
    if (client->has_manager)
        pthread_join(client->manager, NULL);
    client->link->close(client);
    mcp__remove_imported(client);
    /* A host may have put a tool back, which holds the client. */
    client->registry = peg_registry_unref(client->registry);
    mcp__client_unref(client);
    return NULL;
}

peg_mcp_client_state peg_mcp_client_info(peg_mcp_client *client)
{
    peg_mcp_client_state state;

    pthread_mutex_lock(&client->wait.lock);
    state = client->state;
    state.n_running = client->n_calls;
    pthread_mutex_unlock(&client->wait.lock);
    return state;
}
