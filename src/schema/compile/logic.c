/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords that apply schemas to the same value: references and combinations. */

#include "schema/compile/compile.h"
#include "schema/compile/uri.h"

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

static bool resolve(struct peg__compiler *c, const struct peg__task *from, const peg_json *key,
                    struct peg__place *ret_place)
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
    if (!resolve(c, from, key, ret_place))
        return false;
    if (ret_place->anchor && ret_place->anchor->is_dynamic)
        go_to_anchor(ret_place, find_in_scope(c, from->scope, ret_place->anchor->name));
    return true;
}

static bool follow_recursive(struct peg__compiler *c, const struct peg__task *from,
                             const peg_json *key, struct peg__place *ret_place)
{
    struct peg__resource *outermost;

    if (!resolve(c, from, key, ret_place))
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
        found = resolve(c, from, key, &place);
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
           peg__compile_switch(c, d, keyword, insn.a, &is_switch) &&
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
