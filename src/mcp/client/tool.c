/* SPDX-License-Identifier: Apache-2.0 */

/* A definition of a server as a tool: its schemas as they are, its annotations as hints. */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "mcp/client/internal.h"

static void free_imported(void *user)
{
    struct mcp__imported *imported = user;

    if (!imported)
        return;
    mcp__client_unref(imported->client);
    peg__free(imported->name);
    peg_json_doc_free(imported->schema);
    peg__free(imported);
}

static struct mcp__imported *new_imported(peg_mcp_client *client, peg_str name)
{
    struct mcp__imported *imported = peg__alloc_zero(1, sizeof(*imported));

    if (!imported)
        return NULL;
    imported->name = peg__alloc(name.len + 1);
    if (!imported->name) {
        peg__free(imported);
        return NULL;
    }
    memcpy(imported->name, name.ptr, name.len);
    imported->name[name.len] = '\0';
    peg__refs_take(&client->n_refs);
    imported->client = client;
    return imported;
}

/* ---- its texts: in the arena, NULL if there is none, or for want of memory ---- */

struct reading {
    struct peg__arena arena;
    peg_status status;
};

static const char *copy_member(struct reading *r, peg_str text)
{
    const char *copy = peg__arena_copy(&r->arena, text);

    if (!copy)
        r->status = PEG_ENOMEM;
    return copy;
}

static const char *copy_json(struct reading *r, const peg_json *value)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);
    const char *copy = NULL;

    if (!value)
        return NULL;
    peg__json_write(value, PEG_JSON_COMPACT, &text);
    if (text.status)
        r->status = text.status;
    else
        copy = copy_member(r, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

static const char *copy_name(struct reading *r, const char *prefix, peg_str name)
{
    struct peg__buf text = PEG__BUF(2 * (size_t)PEG_LIMIT_NAME_BYTES);
    const char *copy = NULL;

    peg__buf_puts(&text, peg__or_empty(prefix));
    peg__buf_str(&text, name);
    if (text.status)
        r->status = text.status;
    else
        copy = copy_member(r, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

static const char *copy_description(struct reading *r, const peg_json *definition, peg_str title,
                                    peg_str name)
{
    const peg_str description = peg_json_str(peg_json_get(definition, "description"));

    return copy_member(r, description.len ? description : title.len ? title : name);
}

/* {"title": ...}, as our own servers tell it. */
static const char *make_meta(struct reading *r, peg_str title)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);
    struct peg__out out = {.buf = &text};
    const char *copy = NULL;

    if (!title.len)
        return NULL;
    peg__out_object(&out);
    peg__out_member(&out, "title", title);
    peg__out_end_object(&out);
    if (text.status)
        r->status = text.status;
    else
        copy = copy_member(r, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

static const char **copy_tags(struct reading *r, const peg_json *tags)
{
    const char **list;
    size_t n = 0;

    if (peg_json_kind_of(tags) != PEG_JSON_ARRAY)
        return NULL;
    list = peg__arena_alloc_zero(&r->arena, (peg_json_len(tags) + 1) * sizeof(*list));
    if (!list) {
        r->status = PEG_ENOMEM;
        return NULL;
    }
    PEG_JSON_EACH_ITEM (tags, tag)
        list[n++] = copy_member(r, peg_json_str(tag));
    return list;
}

/* ---- the definition ---- */

static peg_tool_def read_definition(struct reading *r, const peg_mcp_client *client,
                                    const peg_json *definition)
{
    const peg_str name = peg_json_str(peg_json_get(definition, "name"));
    const peg_json *hints = peg_json_get(definition, "annotations");
    const peg_json *meta = peg_json_get(definition, "_meta");
    const peg_str version = peg_json_str(peg_json_get(meta, "pegboard/version"));
    const bool is_read_only = peg_json_is_true(peg_json_get(hints, "readOnlyHint"));
    /* What a server does not say is so by default, says the protocol. */
    const bool may_destroy = peg_json_bool_or(peg_json_get(hints, "destructiveHint"), true);
    peg_str title = peg_json_str(peg_json_get(definition, "title"));

    if (!title.len)
        title = peg_json_str(peg_json_get(hints, "title"));
    return (peg_tool_def){
        PEG_TOOL_DEF_INIT,
        .name = copy_name(r, client->options.prefix, name),
        .description = copy_description(r, definition, title, name),
        .input_schema = copy_json(r, peg_json_get(definition, "inputSchema")),
        .output_schema = copy_json(r, peg_json_get(definition, "outputSchema")),
        .run = mcp__run_imported,
        .user_free = free_imported,
        .open_arguments = true,
        .read_only = is_read_only,
        .idempotent = peg_json_is_true(peg_json_get(hints, "idempotentHint")),
        .destructive = !is_read_only && may_destroy,
        .additive = !is_read_only && !may_destroy,
        .artifact_kind =
            peg__kind_named(peg_json_str(peg_json_get(meta, "pegboard/artifact-kind"))),
        .timeout_ms = client->options.timeout_ms,
        .version = version.len ? copy_member(r, version) : NULL,
        .tags = copy_tags(r, peg_json_get(meta, "pegboard/tags")),
        .examples = copy_json(r, peg_json_get(meta, "pegboard/examples")),
        .meta = make_meta(r, title),
    };
}

/* Where the protocol has them: over HTTP, and not before 2026-07-28. */
static peg_status keep_params(struct mcp__imported *imported, const char *input_schema,
                              peg_error *reterr)
{
    const peg_mcp_client *client = imported->client;
    peg_status status;
    bool has_some;

    if (!client->link->is_http || client->era != MCP_MODERN)
        return PEG_OK;
    status = peg_json_parse(peg__str(input_schema), NULL, &imported->schema, reterr);
    if (status)
        return status;
    status = mcp__check_params(peg_json_root(imported->schema), &has_some, reterr);
    if (!status && !has_some)
        imported->schema = peg_json_doc_free(imported->schema);
    return status;
}

static peg_status make_imported_tool(peg_mcp_client *client, peg_tool_def *def, peg_str name,
                                     peg_tool **ret_tool, peg_error *reterr)
{
    struct mcp__imported *imported = new_imported(client, name);
    peg_status status;

    if (!imported)
        return peg__fail_nomem(reterr);
    imported->is_repeatable = def->read_only || def->idempotent;
    imported->has_output_schema = def->output_schema;
    def->user = imported;
    status = keep_params(imported, def->input_schema, reterr);
    if (!status)
        status = peg_tool_new(def, ret_tool, reterr);
    if (status)
        free_imported(imported);
    return status;
}

peg_status mcp__make_imported(peg_mcp_client *client, const peg_json *definition,
                              peg_tool **ret_tool, peg_error *reterr)
{
    struct reading r = {.status = PEG_OK};
    peg_tool_def def = read_definition(&r, client, definition);
    peg_status status = r.status;

    if (status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                  "its name has more than 256 bytes, or a schema more than 1 MiB");
    else if (status)
        peg__fail_nomem(reterr);
    else if (!def.input_schema)
        status = peg__fail(reterr, PEG_EINVAL, "E_MCP_PROTOCOL", "it has no inputSchema");
    else
        status = make_imported_tool(client, &def, peg_json_str(peg_json_get(definition, "name")),
                                    ret_tool, reterr);
    peg__arena_free(&r.arena);
    return status;
}
