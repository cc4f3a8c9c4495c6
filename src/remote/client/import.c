/* SPDX-License-Identifier: Apache-2.0 */

/* Toolsets as tools of a local registry. What a call of such a tool does is in
 * client_import_call.c. */

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/client/import.h"

PEG_DEFINE_CLEANUP(peg_tool, peg_tool_unref)

static const peg_import_options default_options = {PEG_IMPORT_OPTIONS_INIT};

struct importing {
    peg_client *client;
    peg_ctx *ctx;
    const peg_import_options *options;
    peg_registry *registry; /* what is made */
};

/* ---- one tool ---- */

struct remote__imported *remote__imported_free(struct remote__imported *imported)
{
    if (!imported)
        return NULL;
    peg_client_unref(imported->client);
    peg__arena_free(&imported->arena);
    peg__free(imported);
    return NULL;
}

static void free_user(void *user)
{
    remote__imported_free(user);
}

static peg_status make_imported(const struct importing *i, const peg_toolset *toolset,
                                const peg_toolset_tool *tool,
                                struct remote__imported **ret_imported, peg_error *reterr)
{
    struct remote__imported *m = peg__alloc_zero(1, sizeof(*m));

    if (!m)
        return peg__fail_nomem(reterr);
    m->client = peg_client_ref(i->client);
    m->with_output = i->options->with_output;
    m->has_output_schema = tool->output_schema.len > 0;
    m->registry = peg__arena_copy(&m->arena, peg__str(toolset->info.registry));
    m->toolset = peg__arena_copy(&m->arena, peg__str(toolset->info.name));
    m->tool = peg__arena_copy(&m->arena, peg__str(tool->name));
    if (!m->registry || !m->toolset || !m->tool) {
        remote__imported_free(m);
        return peg__fail_nomem(reterr);
    }
    *ret_imported = m;
    return PEG_OK;
}

/* The texts of a definition, copied into an arena for as long as it takes. */
static peg_status name_tool(const struct importing *i, const peg_toolset *toolset, const char *tool,
                            struct peg__arena *arena, const char **ret_name)
{
    struct peg__buf name = PEG__BUF(4 * (size_t)PEG_LIMIT_NAME_BYTES);
    peg_status status;

    peg__buf_puts(&name, i->options->prefix ? i->options->prefix : "");
    if (i->options->qualifies)
        peg__buf_printf(&name, "%s.", toolset->info.name);
    peg__buf_puts(&name, tool);
    *ret_name = name.status ? NULL : peg__arena_copy(arena, peg__buf_view(&name));
    status = name.status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ENOMEM;
    peg__buf_free(&name);
    return *ret_name ? PEG_OK : status;
}

static const char **copy_tags(const peg_toolset_tool *tool, struct peg__arena *arena)
{
    const char **tags = peg__arena_alloc(arena, (tool->n_tags + 1) * sizeof(*tags));

    if (!tags)
        return NULL;
    if (tool->n_tags)
        memcpy(tags, tool->tags, tool->n_tags * sizeof(*tags));
    tags[tool->n_tags] = NULL;
    return tags;
}

static const char *describe(const peg_toolset *toolset, const peg_toolset_tool *tool)
{
    if (*tool->description)
        return tool->description;
    return *toolset->info.description ? toolset->info.description : tool->name;
}

static peg_status fill_def(const struct importing *i, const peg_toolset *toolset,
                           const peg_toolset_tool *tool, struct peg__arena *arena,
                           peg_tool_def *ret_def)
{
    const char *name;
    const char *input = peg__arena_copy(arena, tool->input_schema);
    const char *output = peg__arena_copy(arena, tool->output_schema);
    const char **tags = copy_tags(tool, arena);
    const peg_status status = name_tool(i, toolset, tool->name, arena, &name);

    if (status)
        return status;
    if (!input || !output || !tags)
        return PEG_ENOMEM;
    *ret_def = (peg_tool_def){
        PEG_TOOL_DEF_INIT,
        .name = name,
        .description = describe(toolset, tool),
        .input_schema = *input ? input : "{\"type\":\"object\"}",
        .output_schema = *output ? output : NULL,
        .run = remote__imported_run,
        .user_free = free_user,
        .open_arguments = true,
        .trusted = i->options->trusted,
        .inline_result = i->options->inline_result,
        .idempotent = tool->is_idempotent,
        /* No other hint crosses the wire: one that may be repeated does not destroy, and of the
         * others it is not known. */
        .destructive = !tool->is_idempotent,
        .timeout_ms = tool->timeout_ms > 0 ? tool->timeout_ms : i->options->timeout_ms,
        .version = *toolset->info.version ? toolset->info.version : NULL,
        .tags = tags,
    };
    return PEG_OK;
}

static peg_status make_tool(const struct importing *i, const peg_toolset *toolset,
                            const peg_toolset_tool *tool, peg_tool **ret_tool, peg_error *reterr)
{
    struct peg__arena arena = {0};
    struct remote__imported *imported = NULL;
    peg_tool_def def;
    peg_status status = fill_def(i, toolset, tool, &arena, &def);

    if (status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_CLIENT", "its name with prefix and toolset is too long");
    else if (status)
        peg__fail_nomem(reterr);
    if (!status)
        status = make_imported(i, toolset, tool, &imported, reterr);
    if (!status) {
        def.user = imported;
        status = peg_tool_new(&def, ret_tool, reterr);
        if (status)
            remote__imported_free(imported);
    }
    peg__arena_free(&arena);
    return status;
}

/* ---- one toolset ---- */

static peg_status fail_tool(const struct importing *i, const peg_toolset *toolset, const char *tool,
                            const peg_error *why, peg_error *reterr)
{
    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (i->options->skips_unusable && why->status != PEG_EEXISTS) {
        peg__log(PEG_LOG_WARN, "E_CLIENT_IMPORT", "the tool %s of %s is left out: %s", tool,
                 toolset->info.name, why->message);
        return PEG_OK;
    }
    return peg__fail_because(reterr, why->status, why->code, why,
                             "the tool %.64s of the toolset %.64s cannot be a tool here%s", tool,
                             toolset->info.name,
                             why->status == PEG_EEXISTS ? " (set qualifies or a prefix)" : "");
}

static peg_status import_tool(const struct importing *i, const peg_toolset *toolset,
                              const peg_toolset_tool *tool, peg_error *reterr)
{
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *made = NULL;
    peg_error why;
    peg_status status = make_tool(i, toolset, tool, &made, &why);

    if (!status)
        status = peg_registry_register(i->registry, made, false, &why);
    return status ? fail_tool(i, toolset, tool->name, &why, reterr) : PEG_OK;
}

static peg_status import_toolset(const struct importing *i, const char *registry, const char *name,
                                 peg_error *reterr)
{
    PEG_CLEANUP(peg_toolset_unrefp) peg_toolset *toolset = NULL;
    peg_status status = peg_client_get(i->client, i->ctx, registry, name, &toolset, reterr);

    for (size_t k = 0; !status && k < toolset->n_tools; k++)
        status = import_tool(i, toolset, &toolset->tools[k], reterr);
    return status;
}

/* ---- many ---- */

/* The first registry that has a name has it for all. Within one registry there is each once. */
static bool is_first_of_name(const peg_toolset_list *list, size_t at)
{
    const peg_toolset_info *info = &list->items[at];

    for (size_t k = 0; strcmp(list->items[k].registry, info->registry) != 0; k++) {
        if (strcmp(list->items[k].name, info->name) == 0)
            return false;
    }
    return true;
}

/* The list says of which version it is: an older one is not to be taken from the cache. One that
 * was unregistered since is none of those that the glob names. */
static peg_status import_listed(const struct importing *i, const peg_toolset_info *info,
                                size_t *n_imported, peg_error *reterr)
{
    struct remote__registry *registry = NULL;
    peg_error why;
    peg_status status = remote__registry_only(i->client, info->registry, &registry, &why);

    if (!status) {
        remote__cache_check(registry, peg__str(info->name), info->revision);
        status = import_toolset(i, info->registry, info->name, &why);
    }
    *n_imported += !status;
    if (status == PEG_ENOTFOUND)
        return PEG_OK;
    if (status && reterr)
        *reterr = why;
    return status;
}

static peg_status import_glob(const struct importing *i, const char *glob, peg_error *reterr)
{
    PEG_CLEANUP(peg_toolset_list_freep) peg_toolset_list *list = NULL;
    size_t n = 0;
    peg_status status =
        peg_client_list(i->client, i->ctx, i->options->registry, NULL, &list, reterr);

    if (status)
        return status;
    for (size_t k = 0; k < list->n_failures; k++)
        peg__log(PEG_LOG_WARN, "E_CLIENT_IMPORT", "the registry %s is left out: %s",
                 list->failures[k].registry, list->failures[k].error.message);
    for (size_t k = 0; k < list->len && !status; k++) {
        const peg_toolset_info *info = &list->items[k];

        if (!remote__glob_matches(peg__str(glob), peg__str(info->name)) ||
            !is_first_of_name(list, k))
            continue;
        status = import_listed(i, info, &n, reterr);
    }
    if (!status && n == 0)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_NOT_FOUND",
                         "no toolset fits '%.64s': peg_client_list() tells those that there are",
                         glob);
    return status;
}

peg_status peg_client_import(peg_client *client, peg_ctx *ctx, const char *toolset,
                             const peg_import_options *options, peg_registry **ret_registry,
                             peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_IMPORT_OPTIONS_INIT, reterr);
    struct importing i = {
        .client = client, .ctx = ctx, .options = options ? options : &default_options};
    peg_status status;

    if (!toolset)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "toolset is required: a name, or a glob");
    status = peg_registry_new(NULL, 0, &i.registry, reterr);
    if (status)
        return status;
    if (remote__glob_is_name(peg__str(toolset)))
        status = import_toolset(&i, i.options->registry, toolset, reterr);
    else
        status = import_glob(&i, toolset, reterr);
    if (status)
        peg_registry_unref(i.registry);
    else
        *ret_registry = i.registry;
    return status;
}
