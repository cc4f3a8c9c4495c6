/* SPDX-License-Identifier: Apache-2.0 */

/* The types of what tools take and return: a struct for each. */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "generate/maker.h"

static struct gen_type *wrap(struct gen_maker *m, struct gen_type *inner, const char *name)
{
    struct gen_type *type = inner ? gen_new_type(m, GEN_STRUCT, name) : NULL;

    if (!type)
        return NULL;
    type->members = peg__arena_alloc_zero(m->arena, sizeof(*type->members));
    if (!type->members)
        return gen_fail_nomem(m);
    type->members[0] = (struct gen_member){.name = peg__str("value"),
                                           .description = inner->description,
                                           .slot = gen_slot_of(inner),
                                           .is_required = true};
    type->n_members = 1;
    type->is_wrapper = true;
    return gen_complete(m, type);
}

/* A struct for the root of a schema; NULL for the schema is any JSON. */
static struct gen_type *make_root(struct gen_maker *m, const peg_json *schema, const char *name)
{
    struct gen_place place = {.n = 0};
    const char *inner = gen_join(m->arena, name, "value");

    m->root = schema;
    m->prefix = name;
    m->made = NULL;
    if (!inner)
        return gen_fail_nomem(m);
    if (schema)
        gen_place_add(&place, schema, schema);
    if (gen_place_kinds(&place) == GEN_IS_OBJECT && !gen_place_choice(&place, schema) &&
        !place.wrong && !gen_find_conditional(&place)) {
        place.ref_name = peg__str("");
        return gen_make_struct(m, &place, name);
    }
    return wrap(m, gen_type_of(m, &place, GEN_IS_ANY, inner), name);
}

static struct gen_type *make_args(struct gen_maker *m, const struct gen_tool *tool,
                                  const char *name)
{
    struct gen_type *type;

    if (tool->input_schema)
        return make_root(m, tool->input_schema, name);
    type = gen_new_type(m, GEN_STRUCT, name);
    return type ? gen_complete(m, type) : NULL;
}

static peg_status type_server_data(struct gen_maker *m, struct gen_tool *tool)
{
    struct peg__map taken = PEG__MAP(PEG_LIMIT_GENERATE_SERVER_DATA);

    for (size_t i = 0; i < tool->n_server_data && !m->status; i++) {
        struct gen_server_data *data = &tool->server_data[i];
        const char *word = gen_word(m->arena, data->kind);
        const char *name = word ? gen_unique(m->arena, &taken, word) : NULL;
        struct gen_place place = {.n = 0};

        data->name = name;
        name = name ? gen_join(m->arena, tool->word, name) : NULL;
        if (!name) {
            gen_fail_nomem(m);
            break;
        }
        m->root = data->schema;
        m->prefix = name;
        m->made = NULL;
        if (data->schema)
            gen_place_add(&place, data->schema, data->schema);
        data->type = gen_type_of(m, &place, GEN_IS_ANY, name);
    }
    peg__map_free(&taken);
    return m->status;
}

static peg_status type_tool(struct gen_maker *m, struct gen_tool *tool)
{
    const char *args = gen_join(m->arena, tool->word, "args");
    const char *result = gen_join(m->arena, tool->word, "result");

    m->tool = tool->name;
    if (!args || !result) {
        gen_fail_nomem(m);
        return m->status;
    }
    tool->args = make_args(m, tool, args);
    if (tool->args)
        tool->result = make_root(m, tool->output_schema, result);
    return m->status ? m->status : type_server_data(m, tool);
}

/* Types within a type that was refused and became JSON are in the model, but no tool's. Scalars are
 * shared, and of no interest. */
// NOLINTNEXTLINE(misc-no-recursion): each type is visited once, 64 levels deep at most
static void mark_used(struct gen_type *type)
{
    if (!type || gen_is_scalar(type->kind) || type->is_used)
        return;
    type->is_used = true;
    mark_used(type->item.type);
    mark_used(type->others);
    for (size_t i = 0; i < type->n_members; i++)
        mark_used(type->members[i].slot.type);
    for (size_t i = 0; i < type->n_branches; i++)
        mark_used(type->branches[i].slot.type);
}

static void mark_types_of(const struct gen_tool *tool)
{
    mark_used(tool->args);
    mark_used(tool->result);
    for (size_t i = 0; i < tool->n_server_data; i++)
        mark_used(tool->server_data[i].type);
}

static peg_status name_tools(struct gen_maker *m)
{
    struct peg__map taken = PEG__MAP(PEG_LIMIT_REGISTRY_TOOLS);

    for (size_t i = 0; i < m->toolset->n_tools && !m->status; i++) {
        struct gen_tool *tool = &m->toolset->tools[i];
        const char *word = gen_word(m->arena, tool->name);

        tool->word = word ? gen_unique(m->arena, &taken, word) : NULL;
        if (!tool->word)
            gen_fail_nomem(m);
    }
    peg__map_free(&taken);
    return m->status;
}

static peg_status type_toolset(struct gen_maker *m)
{
    static const char *const names[] = {"bool", "integer", "number", "string", "null", "json"};

    for (size_t i = 0; i <= GEN_RAW; i++)
        m->scalars[i] = (struct gen_type){.kind = (enum gen_kind)i,
                                          .name = names[i],
                                          .description = {"", 0},
                                          .tag = {"", 0},
                                          .is_complete = true};
    m->last = &m->toolset->types;
    m->toolset->word = gen_word(m->arena, m->toolset->name);
    if (!m->toolset->word)
        gen_fail_nomem(m);
    if (!m->status)
        name_tools(m);
    /* Functions have the names of tools, so no type may: `job_result` is a tool beside `job`. */
    for (size_t i = 0; i < m->toolset->n_tools && !m->status; i++) {
        if (!gen_unique(m->arena, &m->names, m->toolset->tools[i].word))
            gen_fail_nomem(m);
    }
    for (size_t i = 0; i < m->toolset->n_tools && !m->status; i++)
        type_tool(m, &m->toolset->tools[i]);
    for (size_t i = 0; i < m->toolset->n_tools && !m->status; i++)
        mark_types_of(&m->toolset->tools[i]);
    return m->status;
}

/* Each toolset has a folder of its own. */
static peg_status check_place(const struct gen_service *service, size_t i, peg_error *reterr)
{
    const struct gen_toolset *toolsets = service->toolsets;

    for (size_t k = 0; k < i; k++) {
        if (!strcmp(toolsets[i].word, toolsets[k].word))
            return peg__fail(reterr, PEG_EINVAL, "E_GENERATE",
                             "two toolsets would be written to the folder '%.64s': rename one of "
                             "them",
                             toolsets[i].word);
    }
    return PEG_OK;
}

peg_status gen_type_service(struct gen_service *service, const peg_json *root,
                            const struct gen_options *options, struct peg__arena *arena,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < service->n_toolsets && !status; i++) {
        struct gen_maker *m = peg__arena_alloc_zero(arena, sizeof(*m));

        if (!m)
            return peg__fail_nomem(reterr);
        *m = (struct gen_maker){.arena = arena,
                                .options = options,
                                .document = root,
                                .toolset = &service->toolsets[i],
                                .names = PEG__MAP((size_t)4 * PEG_LIMIT_GENERATE_TYPES),
                                .reterr = reterr};
        status = type_toolset(m);
        peg__map_free(&m->names);
        if (!status)
            status = check_place(service, i, reterr);
    }
    return status;
}
