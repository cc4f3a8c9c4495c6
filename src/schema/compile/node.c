/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a schema to its node: in which scope it is read, whether it has a node already, and whether
 * it is only a reference to another one. A new node's keywords write a draft, the draft is linked.
 * A schema with unevaluated... keywords is compiled in two: what they have to know about, tracked,
 * and the rest.
 */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"

enum {
    MAX_COMPILE_DEPTH = 64, /* nodes compiled inside each other; deeper ones wait their turn */
    MAX_HOPS = 8,           /* schemas that are only a $ref, in a row */
    MAX_SCOPES = 1000,
    MAX_SCOPE_DEPTH = 16, /* resources inside each other, each with a new dynamic anchor */
};

struct peg__known_node {
    struct peg__task task;
    uint32_t node;
    bool is_used;
};

/* ---- scopes --------------------------------------------------------------------------------- */

static bool has_dynamic(const struct peg__resource *resource, peg_str name)
{
    for (const struct peg__anchor *anchor = resource->dynamic; anchor;
         anchor = anchor->next_dynamic)
        if (peg__str_eq(anchor->name, name))
            return true;
    return false;
}

static bool is_in_scope(const struct peg__scope *scope, peg_str name)
{
    for (; scope; scope = scope->outer)
        if (has_dynamic(scope->resource, name))
            return true;
    return false;
}

/* The outermost resource decides, so one that only repeats what is outside changes nothing. The
 * vocabularies of a meta-schema all do: without this, every order of visiting them is a scope. */
static bool adds_to_scope(const struct peg__scope *scope, const struct peg__resource *resource)
{
    bool adds = resource->is_recursive;

    for (const struct peg__scope *s = scope; s; s = s->outer)
        if (s->resource == resource)
            return false;
    for (const struct peg__scope *s = scope; s && adds; s = s->outer)
        adds = !s->resource->is_recursive;
    for (const struct peg__anchor *a = resource->dynamic; a && !adds; a = a->next_dynamic)
        adds = !is_in_scope(scope, a->name);
    return adds;
}

static unsigned scope_depth(const struct peg__scope *scope)
{
    unsigned depth = 0;

    for (; scope; scope = scope->outer)
        depth++;
    return depth;
}

static bool fail_scopes(struct peg__compiler *c)
{
    c->status = peg__fail(c->reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                          "dynamic anchors are met in more than %d scopes, or more than %d deep; "
                          "use $ref in place of $dynamicRef",
                          MAX_SCOPES, MAX_SCOPE_DEPTH);
    return false;
}

static bool enter_scope(struct peg__compiler *c, struct peg__task *task)
{
    struct peg__scope *scope;

    if (!adds_to_scope(task->scope, task->resource))
        return true;
    for (const struct peg__scope *s = c->scopes; s; s = s->next)
        if (s->outer == task->scope && s->resource == task->resource) {
            task->scope = s;
            return true;
        }
    if (scope_depth(task->scope) == MAX_SCOPE_DEPTH || c->n_scopes++ == MAX_SCOPES)
        return fail_scopes(c);
    scope = peg__arena_alloc(&c->index.arena, sizeof(*scope));
    if (!scope)
        return peg__compile_nomem(c);
    *scope =
        (struct peg__scope){.outer = task->scope, .resource = task->resource, .next = c->scopes};
    c->scopes = scope;
    task->scope = scope;
    return true;
}

/* ---- nodes by task ------------------------------------------------------------------- */

static size_t hash_task(const struct peg__task *task)
{
    uint64_t hash = (uintptr_t)task->schema * 0x9E3779B97F4A7C15ULL;

    hash ^= (uintptr_t)task->scope * 0xC2B2AE3D27D4EB4FULL;
    hash += (uint64_t)task->is_tracked << 1 | (uint64_t)task->is_inner;
    return (size_t)((hash * 0x9E3779B97F4A7C15ULL) >> 20);
}

/* The resource follows from the schema's place. */
static bool is_same_task(const struct peg__task *a, const struct peg__task *b)
{
    return a->schema == b->schema && a->scope == b->scope && a->resource == b->resource &&
           a->is_tracked == b->is_tracked && a->is_inner == b->is_inner;
}

static struct peg__known_node *find_known(const struct peg__compiler *c,
                                          const struct peg__task *task)
{
    size_t at = hash_task(task) & (c->known_slots - 1);

    while (c->known[at].is_used && !is_same_task(&c->known[at].task, task))
        at = (at + 1) & (c->known_slots - 1);
    return &c->known[at];
}

static bool grow_known(struct peg__compiler *c)
{
    struct peg__known_node *old = c->known;
    const size_t n_old = c->known_slots;
    const size_t n_new = n_old ? n_old * 2 : 64;
    struct peg__known_node *grown = peg__alloc_zero(n_new, sizeof(*grown));

    if (!grown)
        return peg__compile_nomem(c);
    c->known = grown;
    c->known_slots = n_new;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].is_used)
            *find_known(c, &old[i].task) = old[i];
    peg__free(old);
    return true;
}

static bool fail_too_many(struct peg__compiler *c)
{
    c->status =
        peg__fail(c->reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                  "the schema applies more than max_subschemas = %u subschemas; simplify it "
                  "or raise the limit",
                  c->options.max_subschemas);
    return false;
}

/* A new node, which accepts everything until it is compiled. */
static bool add_node(struct peg__compiler *c, const struct peg__task *task, uint32_t *ret_node)
{
    struct peg__node *node;

    if (c->n_known >= c->options.max_subschemas)
        return fail_too_many(c);
    if (c->n_known * 2 >= c->known_slots && !grow_known(c))
        return false;
    node = PEG__ADD(c, nodes, nodes, 1);
    if (!node)
        return false;
    *node = (struct peg__node){0};
    *ret_node = (uint32_t)(node - c->out->nodes);
    *find_known(c, task) = (struct peg__known_node){*task, *ret_node, true};
    c->n_known++;
    return true;
}

static bool defer(struct peg__compiler *c, const struct peg__task *task, uint32_t node)
{
    struct peg__pending *pending =
        peg__add_items(c, &c->pending, &c->pendings, sizeof(*pending), 1);

    if (!pending)
        return false;
    *pending = (struct peg__pending){*task, node};
    return true;
}

/* ---- from a schema to its node ------------------------------------------------------- */

/* Enters the resource that starts here, if one does. */
static bool enter_resource(struct peg__compiler *c, struct peg__task *task)
{
    struct peg__resource *own = peg__index_resource_at(&c->index, task->schema);

    if (own)
        task->resource = own;
    return enter_scope(c, task);
}

/* Is the schema nothing but a reference? */
static bool is_only_ref(const struct peg__subschema *sub, enum peg__keyword *ret_keyword)
{
    static const enum peg__keyword refs[] = {KW_REF, KW_DYNAMIC_REF, KW_RECURSIVE_REF};
    const peg__keywords active = peg__active_keywords(sub) | (sub->present & 1ULL << KW_REF);

    for (int i = 0; i < 3; i++)
        if (active == 1ULL << refs[i]) {
            *ret_keyword = refs[i];
            return true;
        }
    return false;
}

/* Follows schemas that are only a $ref, so that they need no node. A circle of them keeps one:
 * checking it then reaches the depth limit, which is the truth about it. */
bool peg__skip_refs(struct peg__compiler *c, struct peg__task *task, unsigned *ret_hops)
{
    struct peg__subschema sub;
    enum peg__keyword keyword;

    for (*ret_hops = 0; *ret_hops < MAX_HOPS; ++*ret_hops) {
        if (!enter_resource(c, task))
            return false;
        if (task->schema->kind != PEG_JSON_OBJECT || task->is_inner)
            return true;
        peg__subschema_read(task->schema, &task->resource->dialect, &sub);
        if (!is_only_ref(&sub, &keyword))
            return true;
        if (!peg__follow_ref(c, task, &sub, keyword, task))
            return false;
    }
    return enter_resource(c, task);
}

/* Schemas contain schemas: the recursion is bounded by MAX_COMPILE_DEPTH, in known_or_new().
 * NOLINTBEGIN(misc-no-recursion) */

/* Remembers the default of a schema, to be checked against its node at the end. */
static bool note_default(struct peg__compiler *c, const struct peg__task *task,
                         const struct peg__subschema *sub, uint32_t node)
{
    struct peg__default_use *use;

    if (!peg__has(sub, KW_DEFAULT))
        return true;
    c->has_default = true;
    if (!c->options.check_defaults)
        return true;
    /* A tracked node cannot be checked by itself; its untracked twin checks the same. */
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

/* The defaults of the references that were skipped belong to the node they lead to. */
static bool note_skipped_defaults(struct peg__compiler *c, struct peg__task task, unsigned hops,
                                  uint32_t node)
{
    struct peg__subschema sub;
    enum peg__keyword keyword;

    for (; hops > 0; hops--) {
        if (!enter_resource(c, &task))
            return false;
        peg__subschema_read(task.schema, &task.resource->dialect, &sub);
        if (!note_default(c, &task, &sub, node))
            return false;
        if (hops > 1 &&
            !(is_only_ref(&sub, &keyword) && peg__follow_ref(c, &task, &sub, keyword, &task)))
            return false;
    }
    return true;
}

static bool known_or_new(struct peg__compiler *c, const struct peg__task *task, uint32_t *ret_node)
{
    const struct peg__known_node *known = c->known_slots ? find_known(c, task) : NULL;

    if (known && known->is_used) {
        *ret_node = known->node;
        return true;
    }
    if (!add_node(c, task, ret_node))
        return false;
    return c->depth < MAX_COMPILE_DEPTH ? peg__compile_node(c, task, *ret_node)
                                        : defer(c, task, *ret_node);
}

bool peg__node_for(struct peg__compiler *c, const struct peg__task *task, uint32_t *ret_node)
{
    struct peg__task target = *task;
    unsigned hops;

    if (!peg__skip_refs(c, &target, &hops))
        return false;
    if (target.schema->kind == PEG_JSON_BOOL && target.schema->u.truth) {
        *ret_node = NODE_TRUE;
    } else if (target.schema->kind != PEG_JSON_OBJECT && target.schema->kind != PEG_JSON_BOOL) {
        c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD",
                              "a schema must be an object, true or false");
        return peg__fail_compile(c, target.schema);
    } else if (!known_or_new(c, &target, ret_node)) {
        return false;
    }
    return note_skipped_defaults(c, *task, hops, *ret_node);
}

static bool node_of(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                    bool is_tracked, uint32_t *ret_node)
{
    const struct peg__task task = {.schema = schema,
                                   .resource = d->task.resource,
                                   .scope = d->task.scope,
                                   .is_tracked = is_tracked};

    return peg__node_for(c, &task, ret_node);
}

bool peg__node_in_place(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                        uint32_t *ret_node)
{
    return node_of(c, d, schema, d->task.is_tracked, ret_node);
}

bool peg__node_below(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                     uint32_t *ret_node)
{
    return node_of(c, d, schema, false, ret_node);
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
 * With nothing applied in place, unevaluatedProperties means what additionalProperties would,
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

bool peg__compile_node(struct peg__compiler *c, const struct peg__task *task, uint32_t node)
{
    struct peg__draft d = {.task = *task, .kinds = KINDS_ALL};
    bool done;

    if (task->schema->kind == PEG_JSON_BOOL)
        return compile_false(c, task->schema, node);
    peg__subschema_read(task->schema, &task->resource->dialect, &d.sub);
    c->depth++;
    done = (task->is_inner || note_default(c, task, &d.sub, node)) && compile_keywords(c, &d) &&
           peg__link(c, &d, node);
    c->depth--;
    peg__free(d.insns);
    return done;
}

/* NOLINTEND(misc-no-recursion) */
