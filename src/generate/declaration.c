/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/declaration.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/limits/generate.h"
#include "base/text/str.h"
#include "pegboard/schema.h"
#include "pegboard/tool_config.h"
#include "json/json.h"

struct reader {
    const peg_json *root;
    struct peg__arena *arena;
    peg_error *reterr;
};

static peg_status fail_at_value(const struct reader *r, const peg_json *value, const char *message)
{
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = peg__fail(r->reterr, PEG_EINVAL, "E_GENERATE", "%s", message);

    peg__json_pointer_to(r->root, value, &pointer);
    if (r->reterr)
        peg__error_where(r->reterr, peg__buf_view(&pointer));
    peg__buf_free(&pointer);
    return status;
}

/* The first of the members that is there. */
static const peg_json *get_any(const peg_json *object, const char *const *names)
{
    const peg_json *value = NULL;

    for (; *names && !value; names++)
        value = peg_json_get(object, *names);
    return peg_json_kind_of(value) == PEG_JSON_NULL ? NULL : value;
}

static peg_str get_text(const peg_json *object, const char *name)
{
    return peg_json_str(peg_json_get(object, name));
}

/* An array of strings, or NULL. */
static const peg_json *get_list(const peg_json *object, const char *name)
{
    const peg_json *list = peg_json_get(object, name);

    return peg_json_len(list) && list->kind == PEG_JSON_ARRAY ? list : NULL;
}

static bool is_name(peg_str name)
{
    if (!name.len || name.len > PEG_LIMIT_NAME_BYTES)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_plain && (!c || !strchr("_.:/-", c)))
            return false;
    }
    return true;
}

/* ---- schemas ---- */

/* Tells where the schema is wrong, in the document. */
static peg_status check_declared_schema(const struct reader *r, const peg_json *schema)
{
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_schema *compiled = NULL;
    peg_error error;
    peg_status status;

    if (!schema)
        return PEG_OK;
    status = peg_schema_compile_value(schema, NULL, &compiled, &error);
    peg_schema_unref(compiled);
    if (!status || !r->reterr)
        return status;
    peg__json_pointer_to(r->root, schema, &pointer);
    peg__buf_puts(&pointer, error.where);
    *r->reterr = error;
    peg__error_where(r->reterr, peg__buf_view(&pointer));
    peg__buf_free(&pointer);
    return status;
}

/* ---- server-data ---- */

static peg_status read_server_data(const struct reader *r, const peg_json *value,
                                   struct gen_server_data *data)
{
    if (peg_json_kind_of(value) != PEG_JSON_OBJECT || !get_text(value, "kind").len ||
        !get_text(value, "audience").len)
        return fail_at_value(r, value, "server-data has a kind and an audience: add them");
    *data = (struct gen_server_data){.kind = get_text(value, "kind"),
                                     .audience = get_text(value, "audience"),
                                     .description = get_text(value, "description"),
                                     .schema = peg_json_get(value, "schema"),
                                     .is_always = peg_json_is_true(peg_json_get(value, "always"))};
    return check_declared_schema(r, data->schema);
}

static peg_status read_all_server_data(const struct reader *r, const peg_json *list,
                                       struct gen_tool *tool)
{
    peg_status status = PEG_OK;

    if (!list)
        return PEG_OK;
    if (list->kind != PEG_JSON_ARRAY)
        return fail_at_value(r, list,
                             "server_data is an array of {kind, audience, schema, always}");
    if (peg_json_len(list) > PEG_LIMIT_GENERATE_SERVER_DATA)
        return peg__fail(r->reterr, PEG_ELIMIT, "E_GENERATE_LIMIT",
                         "tool '%.64s' declares more than 16 kinds of server-data "
                         "(PEG_LIMIT_GENERATE_SERVER_DATA)",
                         tool->name.ptr);
    tool->server_data =
        peg__arena_alloc_zero(r->arena, (peg_json_len(list) + 1) * sizeof(*tool->server_data));
    if (!tool->server_data)
        return peg__fail_nomem(r->reterr);
    PEG_JSON_EACH_ITEM (list, item) {
        if (!status)
            status = read_server_data(r, item, &tool->server_data[tool->n_server_data++]);
    }
    return status;
}

/* ---- tools ---- */

/* A hint under its own name, or among `hints` as definitions have it. */
static bool has_hint(const peg_json *tool, const char *name, const char *camel_name)
{
    return peg_json_is_true(peg_json_get(tool, name)) ||
           peg_json_is_true(peg_json_get(peg_json_get(tool, "hints"), camel_name));
}

static peg_status read_timeout(const struct reader *r, const peg_json *value, struct gen_tool *tool)
{
    const peg_json *text = peg_json_get(value, "timeout");
    int64_t ns;

    tool->timeout_ms = peg_json_int64_or(peg_json_get(value, "timeout_ms"), 0);
    if (!text)
        return PEG_OK;
    if (peg_duration_parse(peg_json_str(text), &ns, NULL) || ns < 0)
        return fail_at_value(r, text, "a timeout is a duration such as \"10s\" or \"1m30s\"");
    tool->timeout_ms = ns / 1000000;
    return PEG_OK;
}

static peg_status read_declared_tool(const struct reader *r, const peg_json *value,
                                     struct gen_tool *tool)
{
    static const char *const inputs[] = {"input_schema", "inputSchema", "parameters", NULL};
    static const char *const outputs[] = {"output_schema", "outputSchema", NULL};
    const peg_json *function = peg_json_get(value, "function");
    peg_status status;

    if (peg_json_kind_of(function) == PEG_JSON_OBJECT)
        value = function;
    if (!is_name(get_text(value, "name")))
        return fail_at_value(r, value, "a tool has a name of 1 to 256 of A-Z a-z 0-9 _ . : / -");
    *tool = (struct gen_tool){
        .name = get_text(value, "name"),
        .description = get_text(value, "description"),
        .version = get_text(value, "version"),
        .input_schema = get_any(value, inputs),
        .output_schema = get_any(value, outputs),
        .examples = get_list(value, "examples"),
        .tags = get_list(value, "tags"),
        .is_idempotent = has_hint(value, "idempotent", "idempotent"),
        .is_read_only = has_hint(value, "read_only", "readOnly"),
        .is_destructive = has_hint(value, "destructive", "destructive"),
        .is_additive = has_hint(value, "additive", "additive"),
    };
    status = check_declared_schema(r, tool->input_schema);
    if (!status)
        status = check_declared_schema(r, tool->output_schema);
    if (!status)
        status = read_timeout(r, value, tool);
    return status ? status : read_all_server_data(r, peg_json_get(value, "server_data"), tool);
}

static peg_status read_declared_tools(const struct reader *r, const peg_json *list,
                                      struct gen_toolset *toolset)
{
    struct peg__map names = PEG__MAP(PEG_LIMIT_REGISTRY_TOOLS);
    peg_status status = PEG_OK;

    toolset->tools =
        peg__arena_alloc_zero(r->arena, (peg_json_len(list) + 1) * sizeof(*toolset->tools));
    if (!toolset->tools)
        return peg__fail_nomem(r->reterr);
    PEG_JSON_EACH_ITEM (list, item) {
        struct gen_tool *tool = &toolset->tools[toolset->n_tools];

        if (!status)
            status = read_declared_tool(r, item, tool);
        if (status)
            break;
        status = peg__map_add(&names, tool->name, tool);
        if (status == PEG_EEXISTS)
            status = fail_at_value(r, item, "two tools have this name: rename one of them");
        else if (status)
            status = peg__fail_nomem(r->reterr);
        toolset->n_tools++;
    }
    peg__map_free(&names);
    if (!status && !toolset->n_tools)
        status = fail_at_value(r, list, "there are no tools in this toolset");
    return status;
}

/* ---- toolsets ---- */

static peg_status read_toolset(const struct reader *r, const peg_json *value, peg_str name,
                               struct gen_toolset *toolset)
{
    const peg_json *tools = peg_json_get(value, "tools");

    if (!is_name(name))
        return fail_at_value(r, value, "a toolset has a name of 1 to 256 of A-Z a-z 0-9 _ . : / -");
    *toolset = (struct gen_toolset){.name = name,
                                    .description = get_text(value, "description"),
                                    .version = get_text(value, "version"),
                                    .tags = get_list(value, "tags")};
    if (peg_json_kind_of(value) == PEG_JSON_ARRAY)
        tools = value;
    if (peg_json_kind_of(tools) != PEG_JSON_ARRAY)
        return fail_at_value(r, value, "a toolset has an array of tools");
    return read_declared_tools(r, tools, toolset);
}

static peg_status read_toolsets(const struct reader *r, const peg_json *list,
                                struct gen_service *service)
{
    peg_status status = PEG_OK;

    PEG_JSON_EACH_ITEM (list, item) {
        const peg_json *name = peg_json_get(item, "name");

        name = name ? name : peg_json_get(item, "toolset");
        if (!status)
            status = read_toolset(r, item, peg_json_str(name),
                                  &service->toolsets[service->n_toolsets++]);
    }
    return status;
}

/* The toolset of a document that has one: the object or array that has the tools. NULL: none. */
static const peg_json *find_only_toolset(const peg_json *root)
{
    static const char *const keys[] = {"pegboard.tool_definitions@v1",
                                       "geppetto.tool_definitions@v1"};
    const peg_json *data = peg_json_get(root, "data");

    if (peg_json_kind_of(root) == PEG_JSON_ARRAY || peg_json_get(root, "tools"))
        return root;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (peg_json_get(data, keys[i]))
            return peg_json_get(data, keys[i]);
    }
    return NULL;
}

static peg_status read_only_toolset(const struct reader *r, const struct gen_names *names,
                                    struct gen_service *service)
{
    const peg_json *toolset = find_only_toolset(r->root);
    peg_str name = get_text(toolset, "toolset");

    if (!toolset)
        return fail_at_value(
            r, r->root,
            "there are no tools here: it should have \"toolsets\", or \"tools\", or be "
            "an array of definitions or a turn that holds some");
    if (names->toolset)
        name = peg__str(names->toolset);
    else if (!name.len)
        name = peg__str("tools");
    service->n_toolsets = 1;
    return read_toolset(r, toolset, name, service->toolsets);
}

peg_status gen_declaration_read(const peg_json *root, const struct gen_names *names,
                                struct peg__arena *arena, struct gen_service *ret_service,
                                peg_error *reterr)
{
    const struct reader r = {.root = root, .arena = arena, .reterr = reterr};
    const peg_json *list = get_list(root, "toolsets");
    struct gen_service service = {.name = get_text(root, "service")};
    peg_status status;

    service.toolsets =
        peg__arena_alloc_zero(arena, (peg_json_len(list) + 1) * sizeof(*service.toolsets));
    if (!service.toolsets)
        return peg__fail_nomem(reterr);
    status = list ? read_toolsets(&r, list, &service) : read_only_toolset(&r, names, &service);
    if (status)
        return status;
    if (names->service)
        service.name = peg__str(names->service);
    else if (!service.name.len)
        service.name = service.toolsets[0].name;
    *ret_service = service;
    return PEG_OK;
}
