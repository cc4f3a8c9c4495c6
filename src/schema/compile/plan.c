/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Making the plan: a worklist of schemas, each planned once, so that recursive schemas end. Then
 * the plans below which there is a default are marked, and only these are kept. A schema without
 * any has no plan: filling such a value in costs nothing.
 */

#include "base/mem.h"
#include "schema/compile/internal.h"

enum {
    MAX_PLANS = 100000,
    MAX_PASSES = 16, /* of marking; in order or nearly so, two or three do */
};

struct planner {
    struct peg__compiler *c;
    struct peg__map by_schema; /* bytes of the schema's address to plan */
    struct todo {
        struct peg__task task;
        struct peg__fill_plan *plan;
    } * todo;
    struct peg__counts todos;
    size_t done;
};

/* For as long as the compile lasts. */
static void *allocate_scratch(struct planner *p, size_t n, size_t size)
{
    void *memory = peg__arena_alloc_zero(&p->c->index.arena, n * size);

    if (!memory)
        peg__compile_nomem(p->c);
    return memory;
}

/* Can there be a default in a schema, or below it? Most schemas are leaves without one. */
static bool can_matter(const struct peg__task *task)
{
    static const peg__keywords telling = 1ULL << KW_DEFAULT | 1ULL << KW_PROPERTIES |
                                         1ULL << KW_ITEMS | 1ULL << KW_PREFIX_ITEMS |
                                         1ULL << KW_REF | 1ULL << KW_ALL_OF;
    struct peg__subschema sub;

    if (task->schema->kind != PEG_JSON_OBJECT)
        return false;
    peg__subschema_read(task->schema, &task->resource->dialect, &sub);
    return (sub.present & telling) != 0;
}

static struct peg__fill_plan *find_plan(const struct planner *p, const peg_json *schema)
{
    return peg__map_get(&p->by_schema, (peg_str){(const char *)&schema, sizeof(schema)});
}

/* The plan of a schema, to be worked out later if it is new. Leaves without a default have none. */
static bool plan_for(struct planner *p, const struct peg__task *task,
                     struct peg__fill_plan **ret_plan)
{
    const peg_str key = {(const char *)&task->schema, sizeof(task->schema)};
    struct peg__resource *own;
    struct todo *todo;

    *ret_plan = NULL;
    if (!can_matter(task))
        return true;
    *ret_plan = find_plan(p, task->schema);
    if (*ret_plan)
        return true;
    *ret_plan = allocate_scratch(p, 1, sizeof(**ret_plan));
    if (!*ret_plan)
        return false;
    todo = peg__add_items(p->c, &p->todo, &p->todos, sizeof(*todo), 1);
    if (!todo || peg__map_add(&p->by_schema, key, *ret_plan))
        return peg__compile_nomem(p->c);
    *todo = (struct todo){*task, *ret_plan};
    own = peg__index_resource_at(&p->c->index, task->schema);
    if (own)
        todo->task.resource = own;
    return true;
}

static bool plan_below(struct planner *p, const struct peg__task *from, const peg_json *schema,
                       struct peg__fill_plan **ret_plan)
{
    const struct peg__task task = {.schema = schema, .resource = from->resource};

    return plan_for(p, &task, ret_plan);
}

static bool plan_members(struct planner *p, const struct todo *now, const peg_json *properties)
{
    struct peg__fill_plan *plan = now->plan;
    uint32_t i = 0;

    plan->members = allocate_scratch(p, properties->len, sizeof(*plan->members));
    plan->keys = allocate_scratch(p, properties->len, sizeof(*plan->keys));
    if (!plan->members || !plan->keys)
        return false;
    plan->n_members = properties->len;
    PEG_JSON_EACH_MEMBER (properties, key) {
        plan->keys[i] = key;
        if (!plan_below(p, &now->task, key + 1, &plan->members[i++]))
            return false;
    }
    return true;
}

static bool plan_list(struct planner *p, const struct todo *now, const peg_json *schemas,
                      struct peg__fill_plan **list)
{
    uint32_t i = 0;

    PEG_JSON_EACH_ITEM (schemas, schema)
        if (!plan_below(p, &now->task, schema, &list[i++]))
            return false;
    return true;
}

static bool plan_items(struct planner *p, const struct todo *now, const struct peg__subschema *sub)
{
    const bool has_array =
        peg__has(sub, KW_ITEMS) && peg__value_of(sub, KW_ITEMS)->kind == PEG_JSON_ARRAY;
    const enum peg__keyword keyword = has_array ? KW_ITEMS : KW_PREFIX_ITEMS;

    if (peg__has(sub, keyword)) {
        const peg_json *schemas = peg__value_of(sub, keyword);

        now->plan->prefix = allocate_scratch(p, schemas->len, sizeof(*now->plan->prefix));
        if (!now->plan->prefix || !plan_list(p, now, schemas, now->plan->prefix))
            return false;
        now->plan->n_prefix = schemas->len;
    }
    return !peg__has(sub, KW_ITEMS) || has_array ||
           plan_below(p, &now->task, peg__value_of(sub, KW_ITEMS), &now->plan->items);
}

static bool plan_in_place(struct planner *p, const struct todo *now,
                          const struct peg__subschema *sub)
{
    const bool has_ref = peg__has(sub, KW_REF);
    const peg_json *all = peg__has(sub, KW_ALL_OF) ? peg__value_of(sub, KW_ALL_OF) : NULL;
    const uint32_t n = (all ? all->len : 0) + has_ref;
    struct peg__task target;

    if (n == 0)
        return true;
    now->plan->also = allocate_scratch(p, n, sizeof(*now->plan->also));
    if (!now->plan->also || (all && !plan_list(p, now, all, now->plan->also)))
        return false;
    now->plan->n_also = n;
    return !has_ref || (peg__follow_ref(p->c, &now->task, sub, KW_REF, &target) &&
                        plan_for(p, &target, &now->plan->also[n - 1]));
}

static bool plan_schema(struct planner *p, const struct todo *now)
{
    struct peg__subschema sub;

    peg__subschema_read(now->task.schema, &now->task.resource->dialect, &sub);
    if (peg__has(&sub, KW_DEFAULT))
        now->plan->value = peg__value_of(&sub, KW_DEFAULT);
    now->plan->is_useful = now->plan->value != NULL;
    return (!peg__has(&sub, KW_PROPERTIES) ||
            plan_members(p, now, peg__value_of(&sub, KW_PROPERTIES))) &&
           plan_items(p, now, &sub) && plan_in_place(p, now, &sub);
}

static bool any_useful(struct peg__fill_plan *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] && list[i]->is_useful)
            return true;
    return false;
}

/* Usefulness spreads upwards; children were mostly planned after their parents. Where it does
 * not come to an end soon, every plan counts as useful: that only costs time later. */
static void mark_useful(struct planner *p)
{
    bool changed = true;

    for (int pass = 0; changed; pass++) {
        changed = false;
        for (size_t i = p->todos.n; i-- > 0;) {
            struct peg__fill_plan *plan = p->todo[i].plan;

            if (plan->is_useful)
                continue;
            if (pass < MAX_PASSES &&
                !(any_useful(plan->members, plan->n_members) ||
                  any_useful(plan->prefix, plan->n_prefix) ||
                  any_useful(plan->also, plan->n_also) || any_useful(&plan->items, 1)))
                continue;
            plan->is_useful = true;
            changed = true;
        }
    }
}

/* ---- keeping ------------------------------------------------------------------------- */

static void *allocate_kept(struct planner *p, size_t n, size_t size)
{
    void *memory = peg__arena_alloc_zero(&p->c->out->arena, n * size);

    if (!memory)
        peg__compile_nomem(p->c);
    return memory;
}

static struct peg__fill_plan *kept(const struct peg__fill_plan *plan)
{
    return plan ? plan->kept : NULL;
}

static uint32_t count_kept(struct peg__fill_plan *const *list, uint32_t n)
{
    uint32_t n_kept = 0;

    for (uint32_t i = 0; i < n; i++)
        n_kept += kept(list[i]) != NULL;
    return n_kept;
}

/* Only the properties that have a plan: most have none. */
static bool keep_members(struct planner *p, const struct peg__fill_plan *plan)
{
    struct peg__fill_plan *to = plan->kept;
    const uint32_t n = count_kept(plan->members, plan->n_members);
    struct peg__name *names;
    bool fine;

    to->n_members = 0;
    if (n == 0)
        return true;
    names = peg__alloc_zero(n, sizeof(*names));
    to->members = allocate_kept(p, n, sizeof(*to->members));
    to->keys = allocate_kept(p, n, sizeof(*to->keys));
    if (!names || !to->members || !to->keys) {
        peg__free(names);
        return peg__compile_nomem(p->c);
    }
    for (uint32_t i = 0; i < plan->n_members; i++) {
        const uint32_t at = to->n_members;

        if (!kept(plan->members[i]))
            continue;
        names[at] =
            (struct peg__name){.text = peg_json_str(plan->keys[i]), .node = at, .order = at};
        to->members[at] = kept(plan->members[i]);
        to->keys[at] = plan->keys[i];
        to->n_members++;
    }
    fine = peg__add_names(p->c, &to->names, names, n);
    peg__free(names);
    return fine;
}

static bool keep_list(struct planner *p, struct peg__fill_plan *const *list, uint32_t n,
                      struct peg__fill_plan ***ret_list)
{
    struct peg__fill_plan **to = n ? allocate_kept(p, n, sizeof(*to)) : NULL;

    if (n && !to)
        return false;
    for (uint32_t i = 0; i < n; i++)
        to[i] = kept(list[i]);
    *ret_list = to;
    return true;
}

/* The prefix keeps its length: items are found by their index. */
static bool keep_lists(struct planner *p, const struct peg__fill_plan *plan)
{
    plan->kept->items = kept(plan->items);
    return keep_list(p, plan->prefix, plan->n_prefix, &plan->kept->prefix) &&
           keep_list(p, plan->also, plan->n_also, &plan->kept->also);
}

static bool keep_useful(struct planner *p)
{
    for (size_t i = 0; i < p->todos.n; i++) {
        struct peg__fill_plan *plan = p->todo[i].plan;

        if (!plan->is_useful)
            continue;
        plan->kept = allocate_kept(p, 1, sizeof(*plan->kept));
        if (!plan->kept)
            return false;
    }
    for (size_t i = 0; i < p->todos.n; i++) {
        const struct peg__fill_plan *plan = p->todo[i].plan;

        if (!plan->kept)
            continue;
        *plan->kept = *plan;
        if (!keep_members(p, plan) || !keep_lists(p, plan))
            return false;
    }
    return true;
}

bool peg__compile_plan(struct peg__compiler *c, const struct peg__task *root)
{
    struct planner p = {.c = c, .by_schema = PEG__MAP(MAX_PLANS)};
    struct peg__fill_plan *plan;
    bool planned;

    if (!c->has_default)
        return true;
    planned = plan_for(&p, root, &plan);
    while (planned && p.done < p.todos.n) {
        const struct todo now = p.todo[p.done++];

        planned = plan_schema(&p, &now);
    }
    if (planned) {
        mark_useful(&p);
        planned = keep_useful(&p);
    }
    if (planned) {
        c->out->plan = kept(plan);
        for (size_t i = 0; i < c->n_defaults.n; i++)
            c->defaults[i].plan = kept(find_plan(&p, c->defaults[i].schema));
    }
    peg__map_free(&p.by_schema);
    peg__free(p.todo);
    return planned;
}
