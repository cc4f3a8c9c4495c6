/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

enum {
    MAX_INLINED = 6,        /* instructions of a target that are copied instead of called */
    MAX_COMPILE_DEPTH = 64, /* nodes compiled inside each other; deeper ones wait their turn */
    MAX_HOPS = 64,          /* schemas that are only a $ref, in a row */
    MAX_SCOPES = 1000,
};

struct peg__known_node {
    struct peg__task task;
    uint32_t node;
    bool is_used;
};

/* ---- failures ---------------------------------------------------------------------- */

bool peg__fail_compile(struct peg__compiler *c, const peg_json *place)
{
    struct peg__buf where = PEG__BUF(sizeof(((peg_error *)0)->where) * 4);

    if (c->reterr && c->reterr->status != PEG_ENOMEM) {
        peg__index_locate(&c->index, place, &where);
        peg__error_where(c->reterr, peg__buf_view(&where));
    }
    peg__buf_free(&where);
    return false;
}

bool peg__fail_keyword(struct peg__compiler *c, const peg_json *key, const char *must)
{
    c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD", "'%.*s' must be %s",
                          PEG_ARG(peg_json_str(key)), must);
    return peg__fail_compile(c, key);
}

bool peg__compile_nomem(struct peg__compiler *c)
{
    c->status = peg__fail_nomem(c->reterr);
    return false;
}

static bool fail_too_many(struct peg__compiler *c)
{
    c->status =
        peg__fail(c->reterr, PEG_ELIMIT, "E_SCHEMA_TOO_MANY",
                  "the schema applies more than max_subschemas = %u subschemas; simplify it "
                  "or raise the limit",
                  c->options.max_subschemas);
    return false;
}

bool peg__need_kind(struct peg__compiler *c, const peg_json *key, peg_json_kind kind,
                    const char *must)
{
    return key[1].kind == kind || peg__fail_keyword(c, key, must);
}

bool peg__read_count(struct peg__compiler *c, const struct peg__draft *d, enum peg__keyword keyword,
                     uint32_t *ret_count)
{
    const peg_json *value = peg__value_of(&d->sub, keyword);
    const peg_json zero = {.kind = PEG_JSON_INTEGER};
    int64_t count;

    if (!peg_json_is_whole(value) || peg_json_compare_numbers(value, &zero) < 0)
        return peg__fail_keyword(c, d->sub.key[keyword], "a whole number that is not negative");
    *ret_count = peg_json_int64(value, &count) && count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return true;
}

/* ---- the schema's arrays ------------------------------------------------------------- */

void *peg__add_items(struct peg__compiler *c, void *array_pointer, struct peg__counts *counts,
                     size_t item_size, size_t n)
{
    void **array = array_pointer;

    if (counts->n + n > counts->capacity) {
        void *grown = peg__grow(*array, item_size, counts->n + n, &counts->capacity);

        if (!grown) {
            peg__compile_nomem(c);
            return NULL;
        }
        *array = grown;
    }
    counts->n += n;
    return (char *)*array + (counts->n - n) * item_size;
}

bool peg__add_word(struct peg__compiler *c, const peg_json *key, uint32_t *ret_index)
{
    const peg_json **word = PEG__ADD(c, words, words, 1);

    if (!word)
        return false;
    *word = key;
    *ret_index = (uint32_t)(word - c->out->words);
    return true;
}

bool peg__add_pattern(struct peg__compiler *c, const peg_json *place, peg_str ecma,
                      struct peg__pattern **ret_pattern, uint32_t *ret_index)
{
    struct peg__pattern **slot = PEG__ADD(c, patterns, patterns, 1);
    peg_error error = {0};
    peg_status status;

    if (!slot)
        return false;
    *slot = NULL;
    status = peg__pattern_new(ecma, c->options.max_pattern_bytes, slot, &error);
    if (status == PEG_ENOMEM)
        return peg__compile_nomem(c);
    if (status) {
        c->status =
            peg__fail(c->reterr, status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ESCHEMA,
                      status == PEG_ELIMIT ? "E_SCHEMA_PATTERN_TOO_LARGE" : "E_SCHEMA_PATTERN",
                      "the pattern cannot be used: %s", error.message);
        return peg__fail_compile(c, place);
    }
    *ret_pattern = *slot;
    *ret_index = (uint32_t)(slot - c->out->patterns);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const peg_str x = ((const struct peg__name *)a)->text;
    const peg_str y = ((const struct peg__name *)b)->text;

    if (x.len != y.len)
        return x.len < y.len ? -1 : 1;
    return x.len ? memcmp(x.ptr, y.ptr, x.len) : 0;
}

bool peg__add_names(struct peg__compiler *c, struct peg__names *names, struct peg__name *list,
                    uint32_t n)
{
    uint32_t n_distinct = 0;

    qsort(list, n, sizeof(*list), compare_names);
    for (uint32_t i = 0; i < n; i++) {
        struct peg__name *last = n_distinct ? &list[n_distinct - 1] : NULL;

        if (last && compare_names(last, &list[i]) == 0) {
            last->flags |= list[i].flags;
            last->node |= list[i].node; /* a required name has none, a property has one */
        } else {
            list[n_distinct++] = list[i];
        }
    }
    return peg__names_init(names, list, n_distinct, &c->out->arena) || peg__compile_nomem(c);
}

/* ---- drafts -------------------------------------------------------------------------- */

static bool append(struct peg__compiler *c, struct peg__draft *d, struct peg__draft_insn insn)
{
    if (d->n == d->capacity) {
        struct peg__draft_insn *grown = peg__grow(d->insns, sizeof(*grown), d->n + 1, &d->capacity);

        if (!grown)
            return peg__compile_nomem(c);
        d->insns = grown;
    }
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

/* ---- linking: one list of instructions for each kind ------------------------------------ */

static bool put_insn(struct peg__compiler *c, struct peg__insn insn, const peg_json *rule)
{
    struct peg__insn *code = PEG__ADD(c, code, code, 1);
    const peg_json **rules = PEG__ADD(c, rules, rules, 1);

    if (!code || !rules)
        return false;
    *code = insn;
    *rules = rule;
    return true;
}

/* Instructions of a list up to its end, or more than MAX_INLINED. */
static unsigned list_len(const peg_schema *out, uint32_t pc)
{
    unsigned n = 0;

    while (out->code[pc + n].op != OP_END && n <= MAX_INLINED)
        n++;
    return n;
}

/* A call becomes the instructions themselves if they are known and few. */
static bool put_call(struct peg__compiler *c, const struct peg__draft_insn *d, unsigned kind)
{
    const struct peg__node target = c->out->nodes[d->insn.a];
    const uint32_t pc = target.entry[kind];
    unsigned n;

    if (!target.is_done)
        return put_insn(c, d->insn, d->rule);
    if (pc == 0)
        return true;
    n = list_len(c->out, pc);
    if (n > MAX_INLINED)
        return put_insn(c, d->insn, d->rule);
    for (unsigned i = 0; i < n; i++)
        if (!put_insn(c, c->out->code[pc + i], c->out->rules[pc + i]))
            return false;
    return true;
}

static bool put_list(struct peg__compiler *c, const struct peg__draft *d, unsigned kind)
{
    const struct peg__insn fail = {.op = OP_FAIL};

    if (!((d->kinds >> kind) & 1))
        return put_insn(c, fail, d->sub.key[KW_TYPE]);
    for (size_t i = 0; i < d->n; i++)
        if (((d->insns[i].kinds >> kind) & 1) && d->insns[i].insn.op == OP_FAIL)
            return put_insn(c, fail, d->insns[i].rule);
    for (size_t i = 0; i < d->n; i++) {
        const struct peg__draft_insn *insn = &d->insns[i];
        bool put;

        if (!((insn->kinds >> kind) & 1))
            continue;
        put = insn->insn.op == OP_CALL ? put_call(c, insn, kind)
                                       : put_insn(c, insn->insn, insn->rule);
        if (!put)
            return false;
    }
    return true;
}

static bool is_same_list(const peg_schema *out, uint32_t a, uint32_t b, size_t n)
{
    return memcmp(&out->code[a], &out->code[b], n * sizeof(*out->code)) == 0 &&
           memcmp(&out->rules[a], &out->rules[b], n * sizeof(*out->rules)) == 0;
}

/* An earlier kind of this node whose list is the same as the one that starts at `start`. */
static uint32_t find_same_list(const struct peg__compiler *c, const struct peg__node *node,
                               unsigned kind, size_t start)
{
    const size_t n = c->code.n - start;

    for (unsigned earlier = 0; earlier < kind; earlier++) {
        const uint32_t pc = node->entry[earlier];

        if (pc != 0 && pc + n <= start && is_same_list(c->out, pc, (uint32_t)start, n))
            return pc;
    }
    return 0;
}

static bool link_kind(struct peg__compiler *c, const struct peg__draft *d, struct peg__node *node,
                      unsigned kind)
{
    const size_t start = c->code.n;
    uint32_t same;

    if (!put_list(c, d, kind))
        return false;
    if (c->code.n == start) {
        node->entry[kind] = 0;
        return true;
    }
    if (!put_insn(c, (struct peg__insn){.op = OP_END}, NULL))
        return false;
    same = find_same_list(c, node, kind, start);
    if (same)
        c->code.n = c->rules.n = start;
    node->entry[kind] = same ? same : (uint32_t)start;
    return true;
}

static bool link_draft(struct peg__compiler *c, const struct peg__draft *d, uint32_t node)
{
    struct peg__node linked = {.is_done = 1};

    for (unsigned kind = 0; kind < PEG_KINDS; kind++)
        if (!link_kind(c, d, &linked, kind))
            return false;
    c->out->nodes[node] = linked;
    return true;
}

/* ---- one schema ------------------------------------------------------------------------- */

static bool compile_false(struct peg__compiler *c, const peg_json *schema, uint32_t node)
{
    const uint32_t pc = (uint32_t)c->code.n;
    struct peg__node refusing = {.is_done = 1};

    for (unsigned kind = 0; kind < PEG_KINDS; kind++)
        refusing.entry[kind] = pc;
    c->out->nodes[node] = refusing;
    return put_insn(c, (struct peg__insn){.op = OP_FAIL}, schema) &&
           put_insn(c, (struct peg__insn){.op = OP_END}, NULL);
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
static bool compile_track(struct peg__compiler *c, struct peg__draft *d)
{
    static const struct {
        enum peg__keyword keyword;
        unsigned kind;
    } uses[] = {{KW_UNEVALUATED_PROPERTIES, PEG_JSON_OBJECT},
                {KW_UNEVALUATED_ITEMS, PEG_JSON_ARRAY}};
    struct peg__task inner = d->task;
    struct peg__insn insn = {.op = OP_CALL};

    inner.is_inner = true;
    inner.is_tracked = true;
    if (!peg__node_for(c, &inner, &insn.a) ||
        !peg__emit(c, d, KINDS_ALL & ~(KINDS_ARRAY | KINDS_OBJECT), KW_UNEVALUATED_PROPERTIES,
                   insn))
        return false;
    insn.op = OP_TRACK;
    for (int i = 0; i < 2; i++) {
        const bool has = peg__has(&d->sub, uses[i].keyword);
        const peg_json *schema = has ? peg__value_of(&d->sub, uses[i].keyword) : NULL;

        insn.b = NODE_TRUE;
        if (has && !peg__node_below(c, d, schema, &insn.b))
            return false;
        insn.c = has && schema->kind == PEG_JSON_BOOL && !schema->u.truth
                     ? c->out->nodes[insn.b].entry[0]
                     : 0;
        if (!peg__emit(c, d, 1U << uses[i].kind, uses[i].keyword, insn))
            return false;
    }
    return true;
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

static bool note_default(struct peg__compiler *c, const struct peg__subschema *sub, uint32_t node)
{
    struct peg__default_use *use;

    if (!peg__has(sub, KW_DEFAULT))
        return true;
    c->has_default = true;
    if (!c->options.check_defaults)
        return true;
    use = peg__add_items(c, &c->defaults, &c->n_defaults, sizeof(*use), 1);
    if (!use)
        return false;
    *use = (struct peg__default_use){.key = sub->key[KW_DEFAULT], .node = node};
    return true;
}

static bool compile_node(struct peg__compiler *c, const struct peg__task *task, uint32_t node)
{
    struct peg__draft d = {.task = *task, .kinds = KINDS_ALL};
    bool done;

    if (task->schema->kind == PEG_JSON_BOOL)
        return compile_false(c, task->schema, node);
    peg__subschema_read(task->schema, &task->resource->dialect, &d.sub);
    c->depth++;
    done = (task->is_inner || note_default(c, &d.sub, node)) && compile_keywords(c, &d) &&
           link_draft(c, &d, node);
    c->depth--;
    peg__free(d.insns);
    return done;
}

/* ---- scopes --------------------------------------------------------------------------------- */

static bool adds_to_scope(const struct peg__scope *scope, const struct peg__resource *resource)
{
    if (!resource->dynamic && !resource->is_recursive)
        return false;
    for (; scope; scope = scope->outer)
        if (scope->resource == resource)
            return false;
    return true;
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
    if (c->n_scopes++ == MAX_SCOPES)
        return fail_too_many(c);
    scope = peg__arena_alloc(&c->index.arena, sizeof(*scope));
    if (!scope)
        return peg__compile_nomem(c);
    *scope =
        (struct peg__scope){.outer = task->scope, .resource = task->resource, .next = c->scopes};
    c->scopes = scope;
    task->scope = scope;
    return true;
}

/* ---- nodes by task ----------------------------------------------------------------------------
 */

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

/* ---- from a schema to its node ------------------------------------------------------------------
 */

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
static bool skip_refs(struct peg__compiler *c, struct peg__task *task, unsigned *ret_hops)
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

/* The defaults of the references that were skipped belong to the node they lead to. */
static bool note_skipped_default(struct peg__compiler *c, const struct peg__task *task,
                                 uint32_t node)
{
    struct peg__subschema sub;

    if (task->schema->kind != PEG_JSON_OBJECT)
        return true;
    peg__subschema_read(task->schema, &task->resource->dialect, &sub);
    return note_default(c, &sub, node);
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
    return c->depth < MAX_COMPILE_DEPTH ? compile_node(c, task, *ret_node)
                                        : defer(c, task, *ret_node);
}

bool peg__node_for(struct peg__compiler *c, const struct peg__task *task, uint32_t *ret_node)
{
    struct peg__task target = *task;
    unsigned hops;

    if (!skip_refs(c, &target, &hops))
        return false;
    if (target.schema->kind == PEG_JSON_BOOL) {
        if (target.schema->u.truth) {
            *ret_node = NODE_TRUE;
            return true;
        }
    } else if (target.schema->kind != PEG_JSON_OBJECT) {
        c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD",
                              "a schema must be an object, true or false");
        return peg__fail_compile(c, target.schema);
    }
    return known_or_new(c, &target, ret_node) &&
           (hops == 0 || note_skipped_default(c, task, *ret_node));
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

/* ---- a whole schema ----------------------------------------------------------------------------
 */

/* Code 0 is an empty list and node 0 accepts everything. */
static bool compile_constants(struct peg__compiler *c)
{
    struct peg__node *node = PEG__ADD(c, nodes, nodes, 1);

    if (!node)
        return false;
    *node = (struct peg__node){.is_done = 1};
    return put_insn(c, (struct peg__insn){.op = OP_END}, NULL);
}

static bool compile_pending(struct peg__compiler *c)
{
    while (c->pendings.n > 0) {
        const struct peg__pending next = c->pending[--c->pendings.n];

        if (!compile_node(c, &next.task, next.node))
            return false;
    }
    return true;
}

static bool check_default(struct peg__compiler *c, peg_checker *ck, peg_report *report,
                          const struct peg__default_use *use)
{
    const uint32_t root = c->out->root;
    peg_verdict verdict;

    c->out->root = use->node;
    verdict = peg_schema_report(c->out, ck, use->key + 1, report);
    c->out->root = root;
    if (verdict == PEG_VALID)
        return true;
    if (verdict == PEG_UNDECIDED && !strcmp(peg_checker_reason(ck), "memory"))
        return peg__compile_nomem(c);
    c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_DEFAULT",
                          "this default is refused by its own schema: %s",
                          peg_report_len(report) ? peg_report_at(report, 0)->message.ptr
                                                 : "a limit was reached while checking it");
    return peg__fail_compile(c, use->key);
}

static bool check_defaults(struct peg__compiler *c)
{
    peg_checker *ck = NULL;
    peg_report *report = NULL;
    bool fine = true;

    if (c->n_defaults.n == 0)
        return true;
    if (peg_checker_new(NULL, &ck, NULL) || peg_report_new(&report, NULL))
        fine = peg__compile_nomem(c);
    for (size_t i = 0; fine && i < c->n_defaults.n; i++)
        fine = check_default(c, ck, report, &c->defaults[i]);
    peg_report_free(report);
    peg_checker_free(ck);
    return fine;
}

static bool compile_document(struct peg__compiler *c, struct peg__document *document)
{
    const peg_str base = peg__str(c->options.base_uri ? c->options.base_uri : "");
    struct peg__task task = {0};

    c->status = peg__index_add(&c->index, document, base, &task.resource, c->reterr);
    if (c->status)
        return false;
    task.schema = task.resource->root;
    return compile_constants(c) && peg__node_for(c, &task, &c->out->root) && compile_pending(c) &&
           peg__compile_plan(c, &task);
}

static size_t count_bytes(const struct peg__compiler *c)
{
    const peg_schema *s = c->out;
    size_t bytes = sizeof(*s) + s->arena.held;

    bytes += c->code.capacity * sizeof(*s->code) + c->rules.capacity * sizeof(*s->rules);
    bytes += c->nodes.capacity * sizeof(*s->nodes) + c->lists.capacity * sizeof(*s->lists);
    bytes += c->members.capacity * sizeof(*s->members) + c->words.capacity * sizeof(*s->words);
    bytes += c->contains.capacity * sizeof(*s->contains) + c->enums.capacity * sizeof(*s->enums);
    bytes += c->formats.capacity * sizeof(*s->formats) + c->values.capacity * sizeof(*s->values);
    for (size_t i = 0; i < c->patterns.n; i++)
        bytes += peg__pattern_bytes(s->patterns[i]);
    for (size_t i = 0; i < s->n_documents; i++)
        bytes += peg__document_bytes(s->documents[i]);
    return bytes;
}

bool peg__compile(struct peg__compiler *c, struct peg__document *document)
{
    bool fine = compile_document(c, document);

    c->out->n_patterns = c->patterns.n;
    if (fine) {
        c->out->documents = c->index.documents;
        c->out->n_documents = c->index.n_documents;
        c->out->bytes = count_bytes(c);
        fine = check_defaults(c);
    }
    /* The documents that were looked at are the schema's from now on, or nobody's. */
    if (fine) {
        c->index.documents = NULL;
        c->index.n_documents = 0;
    } else {
        c->out->documents = NULL;
        c->out->n_documents = 0;
    }
    peg__free(c->known);
    peg__free(c->pending);
    peg__free(c->defaults);
    peg__index_free(&c->index);
    return fine;
}
