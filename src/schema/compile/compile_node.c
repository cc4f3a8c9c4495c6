/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One schema: its keywords write a draft, the draft is linked. A schema with unevaluated...
 * keywords is compiled in two: what they have to know about, tracked, and the rest.
 */

#include "base/mem.h"
#include "schema/compile/compile.h"

/* ---- drafts -------------------------------------------------------------------------- */

static bool append(struct peg__compiler *c, struct peg__draft *d, struct peg__draft_insn insn)
{
    if (!PEG__RESERVE(d->insns, d->n + 1, d->capacity))
        return peg__compile_nomem(c);
    d->insns[d->n++] = insn;
    return true;
}

bool peg__emit(struct peg__compiler *c, struct peg__draft *d, unsigned kinds,
               enum peg__keyword keyword, struct peg__insn insn)
{
    insn.flags = d->task.is_tracked ? FLAG_TRACKED : 0;
    return append(c, d,
                  (struct peg__draft_insn){
                      .insn = insn, .rule = d->sub.key[keyword], .kinds = kinds & d->kinds});
}

/* ---- one schema ------------------------------------------------------------------------- */

static bool compile_false(struct peg__compiler *c, const peg_json *schema, uint32_t node)
{
    const uint32_t pc = (uint32_t)c->code.n;
    struct peg__node refusing = {.is_done = 1};

    for (unsigned kind = 0; kind < PEG_KINDS; kind++)
        refusing.entry[kind] = pc;
    c->out->nodes[node] = refusing;
    return peg__put_insn(c, (struct peg__insn){.op = OP_FAIL}, schema) &&
           peg__put_insn(c, (struct peg__insn){.op = OP_END}, NULL);
}

/* Schemas applied to the same value, which unevaluated... has to look into. */
static bool has_in_place(const struct peg__subschema *sub)
{
    static const peg__keywords in_place =
        1ULL << KW_ALL_OF | 1ULL << KW_ANY_OF | 1ULL << KW_ONE_OF | 1ULL << KW_IF | 1ULL << KW_REF |
        1ULL << KW_DYNAMIC_REF | 1ULL << KW_RECURSIVE_REF | 1ULL << KW_DEPENDENT_SCHEMAS |
        1ULL << KW_DEPENDENCIES | 1ULL << KW_PROPERTY_DEPENDENCIES;

    return (sub->present & in_place) != 0;
}

/*
 * With nothing applied in place, unevaluatedProperties says what additionalProperties would,
 * and unevaluatedItems what items would: no tracking is needed.
 */
static void simplify(struct peg__draft *d)
{
    struct peg__subschema *sub = &d->sub;
    const bool is_2019 = d->task.resource->dialect.id == PEG_DIALECT_2019_09;
    const enum peg__keyword rest =
        is_2019 && peg__has(sub, KW_ITEMS) ? KW_ADDITIONAL_ITEMS : KW_ITEMS;

    if (has_in_place(sub))
        return;
    if (peg__has(sub, KW_UNEVALUATED_PROPERTIES)) {
        if (!peg__has(sub, KW_ADDITIONAL_PROPERTIES)) {
            sub->key[KW_ADDITIONAL_PROPERTIES] = sub->key[KW_UNEVALUATED_PROPERTIES];
            sub->present |= 1ULL << KW_ADDITIONAL_PROPERTIES;
        }
        sub->present &= ~(1ULL << KW_UNEVALUATED_PROPERTIES);
    }
    if (peg__has(sub, KW_UNEVALUATED_ITEMS) && (is_2019 || !peg__has(sub, KW_CONTAINS))) {
        const bool is_list = is_2019 && peg__has(sub, KW_ITEMS) &&
                             peg__value_of(sub, KW_ITEMS)->kind != PEG_JSON_ARRAY;

        if (!is_list && !peg__has(sub, rest)) {
            sub->key[rest] = sub->key[KW_UNEVALUATED_ITEMS];
            sub->present |= 1ULL << rest;
        }
        sub->present &= ~(1ULL << KW_UNEVALUATED_ITEMS);
    }
}

/* The inner schema tracked, then the keyword on what is left over. */
static bool emit_track(struct peg__compiler *c, struct peg__draft *d, enum peg__keyword keyword,
                       unsigned kinds)
{
    const peg_json *schema = peg__value_of(&d->sub, keyword);
    struct peg__task inner = d->task;
    struct peg__insn insn = {.op = OP_TRACK};

    inner.is_inner = true;
    inner.is_tracked = true;
    if (!peg__node_for(c, &inner, &insn.a) || !peg__node_below(c, d, schema, &insn.b))
        return false;
    if (schema->kind == PEG_JSON_BOOL && !schema->u.truth)
        insn.c = c->out->nodes[insn.b].entry[0];
    return peg__emit(c, d, kinds, keyword, insn);
}

/* A kind of value that no keyword here is about is not tracked here: what is outside may track it,
 * and must not take it for evaluated. */
static bool compile_track(struct peg__compiler *c, struct peg__draft *d)
{
    struct peg__task inner = d->task;
    struct peg__insn insn = {.op = OP_CALL};
    unsigned rest = KINDS_ALL;

    if (peg__has(&d->sub, KW_UNEVALUATED_PROPERTIES)) {
        rest &= ~(unsigned)KINDS_OBJECT;
        if (!emit_track(c, d, KW_UNEVALUATED_PROPERTIES, KINDS_OBJECT))
            return false;
    }
    if (peg__has(&d->sub, KW_UNEVALUATED_ITEMS)) {
        rest &= ~(unsigned)KINDS_ARRAY;
        if (!emit_track(c, d, KW_UNEVALUATED_ITEMS, KINDS_ARRAY))
            return false;
    }
    inner.is_inner = true;
    inner.is_tracked |= !(rest & (KINDS_ARRAY | KINDS_OBJECT)); /* then the same node serves */
    return peg__node_for(c, &inner, &insn.a) &&
           peg__emit(c, d, rest, KW_UNEVALUATED_PROPERTIES, insn);
}

static bool compile_keywords(struct peg__compiler *c, struct peg__draft *d)
{
    const peg__keywords unevaluated =
        1ULL << KW_UNEVALUATED_PROPERTIES | 1ULL << KW_UNEVALUATED_ITEMS;

    simplify(d);
    if (d->task.is_inner)
        d->sub.present &= ~unevaluated;
    else if (d->sub.present & unevaluated)
        return compile_track(c, d);
    /* Cheap and telling ones first. */
    return peg__compile_type(c, d) && peg__compile_enum(c, d) && peg__compile_number(c, d) &&
           peg__compile_string(c, d) && peg__compile_array(c, d) && peg__compile_object(c, d) &&
           peg__compile_refs(c, d) && peg__compile_logic(c, d);
}

bool peg__note_default(struct peg__compiler *c, const struct peg__task *task,
                       const struct peg__subschema *sub, uint32_t node)
{
    struct peg__default_use *use;

    if (!peg__has(sub, KW_DEFAULT))
        return true;
    c->has_default = true;
    if (!c->options.check_defaults)
        return true;
    /* A tracked node cannot be checked by itself; its untracked twin says the same. */
    if (task->is_tracked) {
        struct peg__task twin = *task;

        twin.is_tracked = false;
        return peg__node_for(c, &twin, &node);
    }
    use = peg__add_items(c, &c->defaults, &c->n_defaults, sizeof(*use), 1);
    if (!use)
        return false;
    *use = (struct peg__default_use){
        .key = sub->key[KW_DEFAULT], .schema = task->schema, .node = node};
    return true;
}

bool peg__compile_node(struct peg__compiler *c, const struct peg__task *task, uint32_t node)
{
    struct peg__draft d = {.task = *task, .kinds = KINDS_ALL};
    bool done;

    if (task->schema->kind == PEG_JSON_BOOL)
        return compile_false(c, task->schema, node);
    peg__subschema_read(task->schema, &task->resource->dialect, &d.sub);
    c->depth++;
    done = (task->is_inner || peg__note_default(c, task, &d.sub, node)) &&
           compile_keywords(c, &d) && peg__link(c, &d, node);
    c->depth--;
    peg__free(d.insns);
    return done;
}
