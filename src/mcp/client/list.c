/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tools of a server in the registry. All pages are read first; then those that are gone are
 * taken out and the others put in, each in its place.
 */

#include <fnmatch.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

/* What is offered now; owned, each with a reference. */
struct offer {
    peg_tool **tools;
    size_t n;
    size_t capacity;
    size_t n_seen; /* definitions, those that are left out too */
};

static void free_offer(struct offer *offer)
{
    for (size_t i = 0; i < offer->n; i++)
        peg_tool_unref(offer->tools[i]);
    peg__free(offer->tools);
}

/* ---- which ones ---- */

static bool matches(const char *const *globs, const char *name)
{
    for (; globs && *globs; globs++) {
        if (!fnmatch(*globs, name, 0))
            return true;
    }
    return false;
}

/* Names with a NUL match nothing, and are no names here either. */
static bool is_wanted(const peg_mcp_client *client, const peg_json *definition)
{
    const peg_json *name = peg_json_get(definition, "name");
    const char *text = peg_json_kind_of(name) == PEG_JSON_STRING ? name->u.ptr : "";

    if (client->options.include && !matches(client->options.include, text))
        return false;
    return !matches(client->options.exclude, text);
}

/* ---- one page ---- */

static void report_rejected(peg_mcp_client *client, const char *tool, const peg_error *why)
{
    mcp__report(client,
                &(peg_mcp_event){.kind = PEG_MCP_TOOL_REJECTED,
                                 .tool = tool,
                                 .code = why->cause && why->cause[0] ? why->cause : why->code,
                                 .message = why->message});
    peg__log(PEG_LOG_WARN, "E_MCP_TOOL", "a tool of an MCP server is left out: %s", why->message);
}

static peg_status offer_tool(peg_mcp_client *client, struct offer *offer,
                             const peg_json *definition, peg_error *reterr)
{
    const peg_json *name = peg_json_get(definition, "name");
    peg_tool *tool = NULL;
    peg_error why;
    peg_status status;

    if (!is_wanted(client, definition))
        return PEG_OK;
    if (!PEG__RESERVE(offer->tools, offer->n + 1, offer->capacity))
        return peg__fail_nomem(reterr);
    status = mcp__make_imported(client, definition, &tool, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        report_rejected(client, peg_json_kind_of(name) == PEG_JSON_STRING ? name->u.ptr : "", &why);
    else
        offer->tools[offer->n++] = tool;
    return PEG_OK;
}

static peg_status offer_page(peg_mcp_client *client, struct offer *offer, const peg_json *result,
                             peg_error *reterr)
{
    const peg_json *tools = peg_json_get(result, "tools");
    peg_status status = PEG_OK;

    if (peg_json_kind_of(tools) != PEG_JSON_ARRAY)
        return peg__fail(reterr, PEG_EHOST, "E_MCP_PROTOCOL",
                         "the MCP server answered tools/list without a list of tools");
    PEG_JSON_EACH_ITEM (tools, definition) {
        if (++offer->n_seen > PEG_LIMIT_MCP_IMPORT_TOOLS)
            return peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                             "the MCP server offers more than %d tools: have it offer fewer",
                             PEG_LIMIT_MCP_IMPORT_TOOLS);
        status = offer_tool(client, offer, definition, reterr);
        if (status)
            return status;
    }
    return status;
}

/* ---- all pages ---- */

/* The page behind *cursor, which becomes the next one; empty: it was the last. */
static peg_status read_page(peg_mcp_client *client, peg_ctx *ctx, struct offer *offer,
                            struct peg__buf *cursor, peg_error *reterr)
{
    struct mcp__exchange x = {.client = client, .method = "tools/list"};
    struct mcp__message m = MCP__MESSAGE;
    const peg_json *result = NULL;
    peg_status status = mcp__exchange_begin(&x, reterr);

    if (!status) {
        mcp__open_request(&m, x.id, x.method);
        mcp__put_request_meta(&m, client, false, 0);
        if (cursor->len)
            peg__out_member(&m.out, "cursor", peg__buf_view(cursor));
        mcp__close_request(&m);
        status = mcp__exchange_run(&x, ctx, &m.text, reterr);
    }
    if (!status) {
        result = mcp__exchange_result(&x, reterr);
        status = result ? offer_page(client, offer, result, reterr) : reterr->status;
    }
    if (!status) {
        peg__buf_clear(cursor);
        peg__buf_str(cursor, peg_json_str(peg_json_get(result, "nextCursor")));
        status = cursor->status == PEG_ENOMEM ? peg__fail_nomem(reterr)
                 : cursor->status             ? peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                                                          "the MCP server sends a cursor of more than %d bytes",
                                                          PEG_LIMIT_MCP_URI_BYTES)
                                              : PEG_OK;
    }
    mcp__exchange_end(&x);
    mcp__message_free(&m);
    return status;
}

static peg_status read_tool_pages(peg_mcp_client *client, peg_ctx *ctx, struct offer *offer,
                                  peg_error *reterr)
{
    struct peg__buf cursor = PEG__BUF(PEG_LIMIT_MCP_URI_BYTES);
    unsigned n_pages = 0;
    peg_status status = PEG_OK;

    do {
        if (n_pages++ == PEG_LIMIT_MCP_IMPORT_PAGES)
            status = peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                               "the MCP server's list of tools has more than %d pages",
                               PEG_LIMIT_MCP_IMPORT_PAGES);
        else
            status = read_page(client, ctx, offer, &cursor, reterr);
    } while (!status && cursor.len);
    peg__buf_free(&cursor);
    return status;
}

/* ---- the registry ---- */

/* The names of tools that are there, each with the offer that had it last. */
static peg_status register_tool(peg_mcp_client *client, const struct offer *offer, peg_tool *tool,
                                peg_error *reterr)
{
    const peg_str name = peg__str(peg_tool_name(tool));
    void *before = peg__map_get(&client->tools, name);
    peg_error why;
    peg_status status;

    if (before == offer) {
        peg__fail(&why, PEG_EEXISTS, "E_TOOL_ALREADY_REGISTERED",
                  "the MCP server has two tools named '%.64s'", name.ptr);
        report_rejected(client, name.ptr, &why);
        return PEG_OK;
    }
    if (peg__map_put(&client->tools, name, peg__unconst(offer), NULL))
        return peg__fail_nomem(reterr);
    status = peg_registry_register(client->registry, tool, before != NULL, &why);
    if (!status)
        return PEG_OK;
    if (!before)
        peg__map_remove(&client->tools, name, NULL);
    if (status != PEG_EEXISTS) {
        *reterr = why;
        return status;
    }
    report_rejected(client, name.ptr, &why);
    return PEG_OK;
}

static void unregister_others(peg_mcp_client *client, const struct offer *offer)
{
    PEG__MAP_EACH(&client->tools, entry)
    {
        if (entry->value == offer)
            continue;
        (void)peg_registry_unregister(client->registry, entry->name, NULL);
        peg__map_remove(&client->tools, entry->name, NULL);
    }
}

/* The next offer may lie where this one did. */
static void close_offer(peg_mcp_client *client)
{
    PEG__MAP_EACH(&client->tools, entry)
    entry->value = client;
}

static peg_status apply_offer(peg_mcp_client *client, const struct offer *offer, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < offer->n; i++)
        status = register_tool(client, offer, offer->tools[i], reterr);
    if (!status)
        unregister_others(client, offer);
    close_offer(client);
    pthread_mutex_lock(&client->wait.lock);
    client->state.n_tools = client->tools.n;
    pthread_mutex_unlock(&client->wait.lock);
    return status;
}

peg_status mcp__list_imported(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr)
{
    struct offer offer = {0};
    peg_status status = client->has_tools ? read_tool_pages(client, ctx, &offer, reterr) : PEG_OK;

    if (!status)
        status = apply_offer(client, &offer, reterr);
    free_offer(&offer);
    return status;
}

void mcp__remove_imported(peg_mcp_client *client)
{
    PEG__MAP_EACH(&client->tools, entry)
    (void)peg_registry_unregister(client->registry, entry->name, NULL);
    peg__map_free(&client->tools);
}
