/* SPDX-License-Identifier: Apache-2.0 */

/* The public server: a registry as a source, the protocol above it, and a way to wake its loop. */

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/stdio/internal.h"

enum {
    DEFAULT_CONCURRENCY = 4,
    MAX_PAGE_ITEMS = 1000,
    DEFAULT_TTL_MS = 60000,
    DEFAULT_TASK_MS = 10000,
};

/* ---- options ---- */

static peg_status reject_option(peg_error *reterr, const char *where, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_MCP", "%s: %s", where + 1, why);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status check_texts(const peg_mcp_options *options, peg_error *reterr)
{
    const struct {
        const char *where;
        const char *text;
    } texts[] = {{"/name", options->name},
                 {"/version", options->version},
                 {"/title", options->title},
                 {"/instructions", options->instructions},
                 {"/website", options->website}};

    if (!options->name || !options->name[0] || strlen(options->name) > PEG_LIMIT_NAME_BYTES)
        return reject_option(reterr, "/name", "a server has a name of 1 to 256 bytes");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].text && !peg__utf8_is_valid(peg__str(texts[i].text)))
            return reject_option(reterr, texts[i].where, "it is not UTF-8");
    }
    return PEG_OK;
}

static peg_status check_numbers(const peg_mcp_options *options, peg_error *reterr)
{
    if (options->concurrency > PEG_LIMIT_MCP_CONCURRENCY)
        return reject_option(reterr, "/concurrency", "it is at most 256");
    if (options->page_items > MAX_PAGE_ITEMS)
        return reject_option(reterr, "/page_items", "it is at most 1,000");
    if (options->ttl_ms < 0 || options->wait_ms < 0 || options->drain_ms < 0)
        return reject_option(reterr,
                             options->ttl_ms < 0    ? "/ttl_ms"
                             : options->wait_ms < 0 ? "/wait_ms"
                                                    : "/drain_ms",
                             "it is not negative");
    return PEG_OK;
}

/* ---- waking ---- */

/* Async-signal-safe. A full eventfd wakes as well. */
static void wake_pipes(const peg_mcp_server *server)
{
    const uint64_t one = 1;

    (void)!write(server->wake_fd, &one, sizeof(one));
}

/* Handlers have reported. */
static void wake(void *user)
{
    const peg_mcp_server *server = user;

    if (atomic_load(&server->n_served) < 0)
        wake_pipes(server);
    else
        mcp_web_wake(server->web);
}

/* Requests of HTTP look for it now and then. */
void peg_mcp_server_stop(peg_mcp_server *server)
{
    atomic_fetch_add(&server->n_stops, 1);
    wake_pipes(server);
}

/* ---- its life ---- */

static peg_status make_host(peg_mcp_server *server, peg_registry *registry,
                            const peg_mcp_options *options, peg_error *reterr)
{
    return mcp_host_new(&(struct mcp_host_config){.registry = registry,
                                                  .ctx = options->ctx,
                                                  .run = options->run,
                                                  .concurrency = PEG__OR_DEFAULT(
                                                      options->concurrency, DEFAULT_CONCURRENCY),
                                                  .wake = wake,
                                                  .user = server},
                        &server->host, reterr);
}

static peg_status make_protocol(peg_mcp_server *server, const peg_mcp_options *options,
                                peg_error *reterr)
{
    const struct mcp_config config = {
        .name = options->name,
        .version = options->version ? options->version : "0",
        .title = options->title,
        .instructions = options->instructions,
        .website = options->website,
        .source = mcp_host_source(server->host),
        .page_items = PEG__OR_DEFAULT(options->page_items, PEG_LIMIT_MCP_PAGE_ITEMS),
        .ttl_ms = PEG__OR_DEFAULT(options->ttl_ms, DEFAULT_TTL_MS),
        .wait_ms = PEG__OR_DEFAULT(options->wait_ms, PEG_LIMIT_MCP_WAIT_MS),
        .task_ms = options->task_ms < 0 ? 0 : PEG__OR_DEFAULT(options->task_ms, DEFAULT_TASK_MS),
    };
    const peg_status status = mcp_server_new(&config, &server->protocol);

    if (status == PEG_EIO)
        return peg__fail_no_randomness(reterr);
    if (status)
        return peg__fail_nomem(reterr);
    mcp_host_set_server(server->host, server->protocol);
    mcp_web_set_host(server->web, server->host, server->protocol);
    return PEG_OK;
}

peg_status peg_mcp_server_new(peg_registry *registry, const peg_mcp_options *options,
                              peg_mcp_server **ret_server, peg_error *reterr)
{
    peg_mcp_server *server;
    peg_status status;

    if (!registry || !options)
        return peg__fail(reterr, PEG_EINVAL, "E_MCP", "a registry and options are needed");
    PEG__READ_OR_RETURN(options, PEG_MCP_OPTIONS_INIT, reterr);
    status = check_texts(options, reterr);
    if (!status)
        status = check_numbers(options, reterr);
    if (status)
        return status;
    server = peg__alloc_zero(1, sizeof(*server));
    if (!server)
        return peg__fail_nomem(reterr);
    server->drain_ms = PEG__OR_DEFAULT(options->drain_ms, PEG_LIMIT_MCP_DRAIN_MS);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_fd < 0)
        status = peg__fail(reterr, PEG_EIO, "E_MCP",
                           "the system has no descriptor for the server: close some");
    if (!status && mcp_web_new(server->drain_ms, &server->n_stops, &server->web))
        status = peg__fail_nomem(reterr);
    if (!status)
        status = make_host(server, registry, options, reterr);
    if (!status)
        status = make_protocol(server, options, reterr);
    if (status) {
        peg_mcp_server_free(server);
        return status;
    }
    *ret_server = server;
    return PEG_OK;
}

peg_mcp_server *peg_mcp_server_free(peg_mcp_server *server)
{
    if (!server)
        return NULL;
    mcp_web_drain(server->web);
    mcp_host_free(server->host);
    mcp_server_free(server->protocol);
    mcp_web_free(server->web); /* handlers that were abandoned have waked it until now */
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    peg__free(server);
    return NULL;
}

/* ---- over HTTP ---- */

/* False: it serves a client on two descriptors. */
static bool count_request(peg_mcp_server *server)
{
    int n = atomic_load(&server->n_served);

    while (n >= 0 && !atomic_compare_exchange_weak(&server->n_served, &n, n + 1))
        ;
    return n >= 0;
}

peg_status peg_mcp_server_http(peg_mcp_server *server, const peg_mcp_http *http, peg_error *reterr)
{
    peg_status status;

    PEG__READ_OR_RETURN(http, PEG_MCP_HTTP_INIT, reterr);
    if (!http)
        return peg__fail(reterr, PEG_EINVAL, "E_MCP", "a request is needed");
    if (!count_request(server))
        return peg__fail(reterr, PEG_ESTATE, "E_MCP",
                         "the server serves a client on descriptors: make another one");
    status = mcp_web_serve(server->web, http, reterr);
    atomic_fetch_sub(&server->n_served, 1);
    return status;
}

/* ---- resources and prompts ---- */

peg_status peg_mcp_server_add_resource(peg_mcp_server *server, const peg_mcp_resource_def *def,
                                       peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_MCP_RESOURCE_DEF_INIT, reterr);

    return mcp_host_add_resource(server->host, def, reterr);
}

void peg_mcp_server_remove_resource(peg_mcp_server *server, const char *uri)
{
    mcp_host_remove(server->host, MCP_RESOURCES, peg__str(uri));
}

peg_status peg_mcp_server_resource_updated(peg_mcp_server *server, const char *uri)
{
    return mcp_host_updated(server->host, peg__str(uri));
}

peg_status peg_mcp_server_add_prompt(peg_mcp_server *server, const peg_mcp_prompt_def *def,
                                     peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_MCP_PROMPT_DEF_INIT, reterr);

    return mcp_host_add_prompt(server->host, def, reterr);
}

void peg_mcp_server_remove_prompt(peg_mcp_server *server, const char *name)
{
    mcp_host_remove(server->host, MCP_PROMPTS, peg__str(name));
}

peg_status peg_mcp_serve_stdio(peg_registry *registry, const peg_mcp_options *options,
                               peg_error *reterr)
{
    peg_mcp_server *server = NULL;
    peg_status status = peg_mcp_server_new(registry, options, &server, reterr);

    if (!status)
        status = peg_mcp_server_serve(server, STDIN_FILENO, STDOUT_FILENO, reterr);
    peg_mcp_server_free(server);
    return status;
}
