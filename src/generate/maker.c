/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/maker.h"

#include "base/error.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- failing ------------------------------------------------------------------------------ */

struct gen_type *gen_fail_nomem(struct gen_maker *m)
{
    if (!m->status)
        m->status = peg__fail_nomem(m->reterr);
    return NULL;
}

struct gen_type *gen_refuse(struct gen_maker *m, const peg_json *schema, const char *reason)
{
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_GENERATE_BYTES);

    if (m->options->raw)
        return &m->scalars[GEN_RAW];
    if (m->status)
        return NULL;
    peg__json_pointer_to(m->document, schema, &pointer);
    m->status = peg__fail(m->reterr, PEG_ESCHEMA, "E_GENERATE_UNTYPED",
                          "tool '%.64s': %s; change the schema, or keep it as raw JSON (--raw)",
                          m->tool.ptr, reason);
    if (m->reterr)
        peg__error_where(m->reterr, peg__buf_view(&pointer));
    peg__buf_free(&pointer);
    return NULL;
}

struct gen_type *gen_fail_limit(struct gen_maker *m, const char *limit)
{
    if (!m->status)
        m->status = peg__fail(m->reterr, PEG_ELIMIT, "E_GENERATE_LIMIT",
                              "tool '%.64s': the schema exceeds %s", m->tool.ptr, limit);
    return NULL;
}

/* ---- new types ---------------------------------------------------------------------------- */

struct gen_type *gen_new_type(struct gen_maker *m, enum gen_kind kind, const char *name)
{
    struct gen_type *type;

    if (++m->n_types > PEG_LIMIT_GENERATE_TYPES)
        return gen_fail_limit(m, "PEG_LIMIT_GENERATE_TYPES");
    type = peg__arena_alloc_zero(m->arena, sizeof(*type));
    if (type)
        type->name = gen_unique(m->arena, &m->names, name);
    if (!type || !type->name)
        return gen_fail_nomem(m);
    type->kind = kind;
    type->tag = peg__str("");
    type->description = peg__str("");
    return type;
}

struct gen_type *gen_complete(struct gen_maker *m, struct gen_type *type)
{
    type->is_complete = true;
    *m->last = type;
    m->last = &type->next;
    return type;
}

bool gen_remember(struct gen_maker *m, const struct gen_place *place, unsigned kinds,
                  struct gen_type *type)
{
    struct gen_made *made = peg__arena_alloc(m->arena, sizeof(*made));

    if (!made) {
        gen_fail_nomem(m);
        return false;
    }
    *made = (struct gen_made){.place = *place, .kinds = kinds, .type = type, .next = m->made};
    m->made = made;
    return true;
}

struct gen_type *gen_find_made(const struct gen_maker *m, const struct gen_place *place,
                               unsigned kinds)
{
    for (const struct gen_made *made = m->made; made; made = made->next) {
        if (made->kinds == kinds && gen_place_is_same(&made->place, place))
            return made->type;
    }
    return NULL;
}

/* A type that is not complete contains what is made now. */
struct gen_slot gen_slot_of(struct gen_type *type)
{
    return (struct gen_slot){type, type && !type->is_complete};
}

/* Arrays, maps and nullables of an item exist once. */
struct gen_type *gen_compound(struct gen_maker *m, enum gen_kind kind, struct gen_type *item)
{
    static const char *const endings[] = {
        [GEN_NULLABLE] = "or_null", [GEN_ARRAY] = "list", [GEN_MAP] = "map"};
    struct gen_type *type;
    const char *name;

    if (!item)
        return NULL;
    if (kind == GEN_NULLABLE && (item->kind == GEN_RAW || item->kind == GEN_NULLABLE))
        return item;
    for (type = m->toolset->types; type; type = type->next) {
        if (type->kind == kind && type->item.type == item)
            return type;
    }
    name = gen_join(m->arena, item->name, endings[kind]);
    type = name ? gen_new_type(m, kind, name) : gen_fail_nomem(m);
    if (!type)
        return NULL;
    type->item.type = item;
    type->item.is_boxed = kind == GEN_NULLABLE && !item->is_complete;
    return gen_complete(m, type);
}
