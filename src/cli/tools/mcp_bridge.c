/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pegboard mcp without a file: the tools of a gateway in a registry, which follows the gateway. A
 * watch says when something may have changed; whether it has is read from the list of toolsets and
 * their revisions, so that clients are notified of changes alone.
 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/tools/mcp.h"
#include "pegboard/cleanup.h"
#include "wire/wire.h"

/* Owned; after it was opened only the thread of the watch uses what is not constant. */
struct mcp_bridge {
    const struct remote_args *remote;
    const char *const *toolsets; /* of the command line */
    size_t n_toolsets;           /* 0: all */
    peg_client *client;
    peg_watch *watch;
    peg_registry *registry;    /* what is offered */
    struct peg__buf revisions; /* of what is offered */
};

static bool is_wanted(const struct mcp_bridge *b, const char *toolset)
{
    for (size_t i = 0; i < b->n_toolsets; i++) {
        if (strcmp(b->toolsets[i], toolset) == 0)
            return true;
    }
    return b->n_toolsets == 0;
}

/* "name 7\n" for each toolset. */
static peg_status read_revisions(const struct mcp_bridge *b, struct peg__buf *out,
                                 peg_error *reterr)
{
    peg_toolset_list *list = NULL;
    const peg_status status = peg_client_list(b->client, NULL, NULL, NULL, &list, reterr);

    if (status)
        return status;
    for (size_t i = 0; i < list->len; i++) {
        if (is_wanted(b, list->items[i].name))
            peg__buf_printf(out, "%s %llu\n", list->items[i].name,
                            (unsigned long long)list->items[i].revision);
    }
    peg_toolset_list_free(list);
    return out->status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- importing ---- */

static bool name_tool(const char *toolset, const char *tool, char *ret_name, void *user)
{
    (void)user;
    return wire_mcp_name(peg__str(toolset), peg__str(tool), ret_name);
}

/* A toolset that is not there yet may come. */
static peg_status import_tools(const struct mcp_bridge *b, const char *toolset,
                               peg_registry **ret_registry, peg_error *reterr)
{
    const peg_import_options options = {
        PEG_IMPORT_OPTIONS_INIT,
        .skips_unusable = true,
        .with_output = true,
        .name = b->n_toolsets == 1 ? NULL : name_tool,
    };
    const peg_status status =
        peg_client_import(b->client, NULL, toolset, &options, ret_registry, reterr);

    return status == PEG_ENOTFOUND ? peg_registry_new(NULL, 0, ret_registry, reterr) : status;
}

static peg_status add_imported(peg_registry *to, peg_registry *from, peg_error *reterr)
{
    peg_tool_list tools;
    peg_status status = peg_registry_visible(from, &tools, reterr);

    if (status)
        return status;
    for (size_t i = 0; i < tools.len && !status; i++)
        status = peg_registry_register(to, tools.items[i], true, reterr);
    peg_tool_list_free(&tools);
    return status;
}

static peg_status import_all(const struct mcp_bridge *b, peg_registry **ret_registry,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *all = NULL;
    peg_status status;

    peg_client_forget(b->client); /* the revisions say that it is outdated */
    if (b->n_toolsets < 2)
        return import_tools(b, b->n_toolsets ? b->toolsets[0] : "**", ret_registry, reterr);
    status = peg_registry_new(NULL, 0, &all, reterr);
    for (size_t i = 0; i < b->n_toolsets && !status; i++) {
        PEG_CLEANUP(peg_registry_unrefp) peg_registry *one = NULL;

        status = import_tools(b, b->toolsets[i], &one, reterr);
        if (!status)
            status = add_imported(all, one, reterr);
    }
    if (!status)
        *ret_registry = peg_registry_ref(all);
    return status;
}

/* What the gateway has now becomes what is offered. */
static peg_status follow_gateway(struct mcp_bridge *b, peg_error *reterr)
{
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *imported = NULL;
    struct peg__buf revisions = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status = read_revisions(b, &revisions, reterr);

    if (!status && b->registry &&
        peg__str_eq(peg__buf_view(&revisions), peg__buf_view(&b->revisions))) {
        peg__buf_free(&revisions);
        return PEG_OK;
    }
    if (!status)
        status = import_all(b, &imported, reterr);
    if (!status && b->registry)
        status = peg_registry_replace(b->registry, imported, reterr);
    if (!status && !b->registry)
        b->registry = peg_registry_ref(imported);
    if (status) {
        peg__buf_free(&revisions);
        return status;
    }
    peg__buf_free(&b->revisions);
    b->revisions = revisions;
    return PEG_OK;
}

/* Toolsets that were there already are reported before READY, one by one. */
static void on_watch(const peg_watch_event *event, void *user)
{
    struct mcp_bridge *b = user;
    peg_error error;

    switch (event->kind) {
    case PEG_WATCH_READY:
    case PEG_WATCH_REGISTERED:
    case PEG_WATCH_CHANGED:
    case PEG_WATCH_UNREGISTERED:
        if (follow_gateway(b, &error))
            remote_complain(b->remote, &error);
        return;
    case PEG_WATCH_LOST:
        remote_complain(b->remote, event->error);
        return;
    case PEG_WATCH_PRESENT:
    case PEG_WATCH_HEALTH:
        return;
    }
}

/* ---- its life ---- */

struct mcp_bridge *mcp_bridge_open(const struct remote_args *remote, const char *const *toolsets,
                                   size_t n_toolsets, int *ret_exit)
{
    struct mcp_bridge *b = peg__alloc_zero(1, sizeof(*b));
    peg_error error = {.status = PEG_OK};
    peg_status status;

    if (!b) {
        peg__fail_nomem(&error);
        *ret_exit = remote_complain(remote, &error);
        return NULL;
    }
    *b = (struct mcp_bridge){.remote = remote,
                             .toolsets = toolsets,
                             .n_toolsets = n_toolsets,
                             .revisions = PEG__BUF(PEG_LIMIT_TEXT_BYTES)};
    status = remote_client_new(remote, &b->client, &error);
    if (!status)
        status = follow_gateway(b, &error);
    if (!status)
        status = peg_client_watch(b->client, NULL, on_watch, b, &b->watch, &error);
    if (!status)
        return b;
    *ret_exit = remote_complain(remote, &error);
    mcp_bridge_close(b);
    return NULL;
}

peg_registry *mcp_bridge_registry(const struct mcp_bridge *b)
{
    return b->registry;
}

void mcp_bridge_close(struct mcp_bridge *b)
{
    if (!b)
        return;
    peg_watch_free(b->watch);
    peg_registry_unref(b->registry);
    peg_client_unref(b->client);
    peg__buf_free(&b->revisions);
    peg__free(b);
}
