/* SPDX-License-Identifier: Apache-2.0 */

/*
 * anyOf and oneOf whose branches are objects that one member tells apart, by a constant string
 * in each: {"kind": "circle", ...} or {"kind": "square", ...}. With the member required in every
 * branch, or beside them, only the branch of its value can fit: it is looked up, and the others
 * are not tried. Branches that refuse every object are left out.
 */

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/compile.h"

enum { MAX_VALUES_SHOWN = 200 };

/* One branch, read through its references. */
struct branch {
    struct peg__task task;
    struct peg__subschema sub;
    const peg_json *properties; /* NULL if it has none */
};

static bool read_branch(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                        struct branch *branch)
{
    unsigned hops;

    *branch = (struct branch){.task = {.schema = schema,
                                       .resource = d->task.resource,
                                       .scope = d->task.scope,
                                       .is_tracked = d->task.is_tracked}};
    if (!peg__skip_refs(c, &branch->task, &hops))
        return false;
    if (branch->task.schema->kind != PEG_JSON_OBJECT)
        return true;
    peg__subschema_read(branch->task.schema, &branch->task.resource->dialect, &branch->sub);
    if (peg__has(&branch->sub, KW_PROPERTIES) &&
        peg__value_of(&branch->sub, KW_PROPERTIES)->kind == PEG_JSON_OBJECT)
        branch->properties = peg__value_of(&branch->sub, KW_PROPERTIES);
    return true;
}

static bool is_required(const struct peg__subschema *sub, const peg_json *name)
{
    if (!peg__has(sub, KW_REQUIRED) || peg__value_of(sub, KW_REQUIRED)->kind != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (peg__value_of(sub, KW_REQUIRED), item)
        if (item->kind == PEG_JSON_STRING && peg__str_eq(peg_json_str(item), peg_json_str(name)))
            return true;
    return false;
}

/* The strings that a property must be one of: first and end of a run of values, or NULL. */
static const peg_json *constants_of(const struct branch *branch, const peg_json *property,
                                    const peg_json **ret_end)
{
    struct peg__subschema sub;
    const peg_json *first = NULL;

    if (property->kind != PEG_JSON_OBJECT)
        return NULL;
    peg__subschema_read(property, &branch->task.resource->dialect, &sub);
    if (peg__has(&sub, KW_CONST)) {
        first = peg__value_of(&sub, KW_CONST);
        *ret_end = peg_json_next(first);
    } else if (peg__has(&sub, KW_ENUM) && peg__value_of(&sub, KW_ENUM)->kind == PEG_JSON_ARRAY) {
        first = peg__value_of(&sub, KW_ENUM) + 1;
        *ret_end = peg_json_next(peg__value_of(&sub, KW_ENUM));
    }
    for (const peg_json *v = first; v && v < *ret_end; v = peg_json_next(v))
        if (v->kind != PEG_JSON_STRING)
            return NULL;
    return first;
}

/* The constants of one branch for a member's name, or NULL. */
static const peg_json *branch_constants(const struct peg__draft *d, const struct branch *branch,
                                        const peg_json *name, const peg_json **ret_end)
{
    const peg_json *property =
        branch->properties ? peg_json_get_str(branch->properties, peg_json_str(name)) : NULL;

    if (!property || (!is_required(&branch->sub, name) && !is_required(&d->sub, name)))
        return NULL;
    return constants_of(branch, property, ret_end);
}

/* ---- making the switch ------------------------------------------------------------------ */

struct cases {
    const peg_json *schemas; /* the branches */
    uint32_t start;          /* of their nodes in the lists */
    struct peg__name *list;
    struct peg__counts count;
};

static bool add_cases(struct peg__compiler *c, struct cases *cases, const peg_json *first,
                      const peg_json *end, uint32_t node)
{
    for (const peg_json *v = first; v < end; v = peg_json_next(v)) {
        struct peg__name *one = peg__add_items(c, &cases->list, &cases->count, sizeof(*one), 1);

        if (!one)
            return false;
        *one = (struct peg__name){.text = peg_json_str(v), .node = node};
    }
    return true;
}

/* Collects the cases of every branch; *ret_fits is false if one has none. */
static bool collect(struct peg__compiler *c, const struct peg__draft *d, struct cases *cases,
                    const peg_json *name, bool *ret_fits)
{
    uint32_t i = 0;

    cases->count.n = 0;
    PEG_JSON_EACH_ITEM (cases->schemas, schema) {
        struct branch branch;
        const peg_json *first;
        const peg_json *end;

        if (!read_branch(c, d, schema, &branch))
            return false;
        if (peg__refuses_objects(c, c->out->lists[cases->start + i])) {
            i++;
            continue;
        }
        first = branch_constants(d, &branch, name, &end);
        if (!first) {
            *ret_fits = false;
            return true;
        }
        if (!add_cases(c, cases, first, end, c->out->lists[cases->start + i++]))
            return false;
    }
    *ret_fits = true;
    return true;
}

/* The values in words, for reports. */
static bool write_values(struct peg__compiler *c, const struct cases *cases, peg_str *ret_values)
{
    struct peg__buf text = PEG__BUF(4096);
    const char *copy;

    for (size_t i = 0; i < cases->count.n && text.len < MAX_VALUES_SHOWN; i++)
        peg__buf_printf(&text, "%s\"%.*s\"", i ? ", " : "", PEG_ARG(cases->list[i].text));
    if (text.len >= MAX_VALUES_SHOWN)
        peg__buf_puts(&text, ", ...");
    copy = peg__arena_copy(&c->out->arena, peg__buf_view(&text));
    *ret_values = peg__strn(copy, text.len);
    peg__buf_free(&text);
    return copy || peg__compile_nomem(c);
}

static bool emit_switch(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword,
                        const peg_json *name, const struct cases *cases)
{
    struct peg__switch *made = PEG__ADD(c, switches, switches, 1);
    const uint32_t n = (uint32_t)cases->count.n;

    if (!made)
        return false;
    *made = (struct peg__switch){.name = name};
    return write_values(c, cases, &made->values) &&
           peg__add_names(c, &made->cases, cases->list, n) &&
           peg__emit(c, d, KINDS_OBJECT, keyword,
                     (struct peg__insn){.op = OP_SWITCH, .a = (uint32_t)(made - c->out->switches)});
}

static bool are_distinct(struct cases *cases)
{
    for (size_t i = 0; i < cases->count.n; i++)
        for (size_t j = 0; j < i; j++)
            if (peg__str_eq(cases->list[i].text, cases->list[j].text))
                return false;
    return true;
}

enum { FEWEST_BRANCHES = 2, MOST_CASES = 500 };

/* The first that does not refuse every object, if there is one. */
static bool first_branch(struct peg__compiler *c, const struct peg__draft *d,
                         const peg_json *schemas, uint32_t start, struct branch *ret_branch)
{
    ret_branch->properties = NULL;
    PEG_JSON_EACH_ITEM (schemas, schema)
        if (!peg__refuses_objects(c, c->out->lists[start++]))
            return read_branch(c, d, schema, ret_branch);
    return true;
}

bool peg__compile_switch(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword,
                         uint32_t start, bool *ret_made)
{
    const peg_json *schemas = peg__value_of(&d->sub, keyword);
    struct cases cases = {.schemas = schemas, .start = start};
    struct branch first;
    bool fine;

    *ret_made = false;
    if (schemas->len < FEWEST_BRANCHES || schemas->len > MOST_CASES)
        return true;
    fine = first_branch(c, d, schemas, start, &first);
    if (!fine || !first.properties)
        return fine;
    PEG_JSON_EACH_MEMBER (first.properties, name) {
        const peg_json *end;
        bool fits = false;

        if (!branch_constants(d, &first, name, &end))
            continue;
        fine = collect(c, d, &cases, name, &fits);
        if (!fine)
            break;
        if (fits && cases.count.n <= MOST_CASES && are_distinct(&cases)) {
            fine = emit_switch(c, d, keyword, name, &cases);
            *ret_made = fine;
            break;
        }
    }
    peg__free(cases.list);
    return fine;
}
