/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords that apply schemas to the same value: references and combinations. */

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"

/* ---- references ----------------------------------------------------------------------- */

/* The outermost resource of the scope that has a dynamic anchor of this name decides. */
static struct peg__anchor *find_in_scope(const struct peg__compiler *c,
                                         const struct peg__scope *scope, peg_str name)
{
    struct peg__anchor *found = NULL;

    for (; scope; scope = scope->outer) {
        struct peg__anchor *anchor = peg__index_anchor(&c->index, scope->resource, name);

        if (anchor && anchor->is_dynamic)
            found = anchor;
    }
    return found;
}

static struct peg__resource *find_recursive(const struct peg__scope *scope)
{
    struct peg__resource *found = NULL;

    for (; scope; scope = scope->outer)
        if (scope->resource->is_recursive)
            found = scope->resource;
    return found;
}

static void go_to_anchor(struct peg__place *place, struct peg__anchor *anchor)
{
    if (!anchor)
        return;
    place->schema = anchor->target;
    place->resource = anchor->resource;
}

static bool resolve_reference(struct peg__compiler *c, const struct peg__task *from,
                              const peg_json *key, struct peg__place *ret_place)
{
    if (!peg__need_kind(c, key, PEG_JSON_STRING, "a string with a URI reference"))
        return false;
    c->status =
        peg__index_resolve(&c->index, from->resource, peg_json_str(key + 1), ret_place, c->reterr);
    return c->status == PEG_OK || peg__fail_compile(c, key);
}

/* Since v1 a $dynamicRef is a name to be looked for in the scope; before it had to lead to a
 * $dynamicAnchor by itself first. */
static bool follow_dynamic(struct peg__compiler *c, const struct peg__task *from,
                           const peg_json *key, struct peg__place *ret_place)
{
    if (from->resource->dialect.id >= PEG_DIALECT_V1 && key[1].kind == PEG_JSON_STRING) {
        const peg_str name = peg__uri_split(peg_json_str(key + 1)).fragment;
        struct peg__anchor *anchor = find_in_scope(c, from->scope, name);

        if (anchor) {
            go_to_anchor(ret_place, anchor);
            return true;
        }
    }
    if (!resolve_reference(c, from, key, ret_place))
        return false;
    if (ret_place->anchor && ret_place->anchor->is_dynamic)
        go_to_anchor(ret_place, find_in_scope(c, from->scope, ret_place->anchor->name));
    return true;
}

static bool follow_recursive(struct peg__compiler *c, const struct peg__task *from,
                             const peg_json *key, struct peg__place *ret_place)
{
    struct peg__resource *outermost;

    if (!resolve_reference(c, from, key, ret_place))
        return false;
    outermost = ret_place->resource->is_recursive ? find_recursive(from->scope) : NULL;
    if (outermost) {
        ret_place->resource = outermost;
        ret_place->schema = outermost->root;
    }
    return true;
}

bool peg__follow_ref(struct peg__compiler *c, const struct peg__task *from,
                     const struct peg__subschema *sub, enum peg__keyword keyword,
                     struct peg__task *ret_target)
{
    const peg_json *key = sub->key[keyword];
    struct peg__place place = {0};
    bool found;

    if (keyword == KW_DYNAMIC_REF)
        found = follow_dynamic(c, from, key, &place);
    else if (keyword == KW_RECURSIVE_REF)
        found = follow_recursive(c, from, key, &place);
    else
        found = resolve_reference(c, from, key, &place);
    if (!found)
        return false;
    *ret_target = (struct peg__task){.schema = place.schema,
                                     .resource = place.resource,
                                     .scope = from->scope,
                                     .is_tracked = from->is_tracked};
    return true;
}

bool peg__compile_refs(struct peg__compiler *c, struct peg__draft *d)
{
    static const enum peg__keyword refs[] = {KW_REF, KW_DYNAMIC_REF, KW_RECURSIVE_REF};

    for (int i = 0; i < 3; i++) {
        struct peg__insn insn = {.op = OP_CALL};
        struct peg__task target;

        if (!peg__has(&d->sub, refs[i]))
            continue;
        if (!peg__follow_ref(c, &d->task, &d->sub, refs[i], &target) ||
            !peg__node_for(c, &target, &insn.a))
            return false;
        if (insn.a != NODE_TRUE && !peg__emit(c, d, KINDS_ALL, refs[i], insn))
            return false;
    }
    return true;
}

/* ---- combinations ----------------------------------------------------------------------- */

static bool need_schemas(struct peg__compiler *c, const struct peg__draft *d,
                         enum peg__keyword keyword)
{
    const peg_json *key = d->sub.key[keyword];

    return (key[1].kind == PEG_JSON_ARRAY && key[1].len > 0) ||
           peg__fail_keyword(c, key, "an array of at least one schema");
}

static bool compile_all_of(struct peg__compiler *c, struct peg__draft *d)
{
    if (!need_schemas(c, d, KW_ALL_OF))
        return false;
    PEG_JSON_EACH_ITEM (peg__value_of(&d->sub, KW_ALL_OF), schema) {
        struct peg__insn insn = {.op = OP_CALL};

        if (!peg__node_in_place(c, d, schema, &insn.a))
            return false;
        if (insn.a != NODE_TRUE && !peg__emit(c, d, KINDS_ALL, KW_ALL_OF, insn))
            return false;
    }
    return true;
}

/* ---- branches that a member tells apart ------------------------------------------------
 *
 * anyOf and oneOf whose branches are objects that one member tells apart, by a constant string
 * in each: {"kind": "circle", ...} or {"kind": "square", ...}. With the member required in every
 * branch, or beside them, only the branch of its value can fit: it is looked up, and the others
 * are not tried. Branches that refuse every object are left out.
 */

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
static bool collect_cases(struct peg__compiler *c, const struct peg__draft *d, struct cases *cases,
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

/* The values as text, for reports. */
static bool write_case_values(struct peg__compiler *c, const struct cases *cases,
                              peg_str *ret_values)
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
    return write_case_values(c, cases, &made->values) &&
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

/* The nodes of the branches are in the lists from `start` on. *ret_made: is there a switch? */
static bool compile_switch(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword,
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
        fine = collect_cases(c, d, &cases, name, &fits);
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

static bool compile_branches(struct peg__compiler *c, struct peg__draft *d,
                             enum peg__keyword keyword, enum peg__op op)
{
    struct peg__insn insn = {.op = (uint8_t)op};
    bool is_switch;

    if (!peg__has(&d->sub, keyword))
        return true;
    if (!need_schemas(c, d, keyword))
        return false;
    insn.b = (uint32_t)peg__value_of(&d->sub, keyword)->len;
    return peg__add_list(c, d, peg__value_of(&d->sub, keyword), true, &insn.a) &&
           compile_switch(c, d, keyword, insn.a, &is_switch) &&
           peg__emit(c, d, is_switch ? KINDS_ALL & ~KINDS_OBJECT : KINDS_ALL, keyword, insn);
}

static bool compile_if(struct peg__compiler *c, struct peg__draft *d)
{
    const struct peg__subschema *sub = &d->sub;
    struct peg__insn insn = {.op = OP_IF, .b = NODE_TRUE, .c = NODE_TRUE};

    if (!peg__has(sub, KW_THEN) && !peg__has(sub, KW_ELSE) && !d->task.is_tracked)
        return true;
    if (!peg__node_in_place(c, d, peg__value_of(sub, KW_IF), &insn.a))
        return false;
    if (peg__has(sub, KW_THEN) && !peg__node_in_place(c, d, peg__value_of(sub, KW_THEN), &insn.b))
        return false;
    if (peg__has(sub, KW_ELSE) && !peg__node_in_place(c, d, peg__value_of(sub, KW_ELSE), &insn.c))
        return false;
    return peg__emit(c, d, KINDS_ALL, KW_IF, insn);
}

/* What `not` evaluates never counts: it is compiled as if on another value. */
static bool compile_not(struct peg__compiler *c, struct peg__draft *d)
{
    struct peg__insn insn = {.op = OP_NOT};

    return peg__node_below(c, d, peg__value_of(&d->sub, KW_NOT), &insn.a) &&
           peg__emit(c, d, KINDS_ALL, KW_NOT, insn);
}

bool peg__compile_logic(struct peg__compiler *c, struct peg__draft *d)
{
    return (!peg__has(&d->sub, KW_ALL_OF) || compile_all_of(c, d)) &&
           (!peg__has(&d->sub, KW_NOT) || compile_not(c, d)) &&
           (!peg__has(&d->sub, KW_IF) || compile_if(c, d)) &&
           compile_branches(c, d, KW_ANY_OF, OP_ANY_OF) &&
           compile_branches(c, d, KW_ONE_OF, OP_ONE_OF);
}
