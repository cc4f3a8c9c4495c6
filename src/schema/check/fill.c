/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Filling defaults in. A value may be under several plans at once (allOf, $ref): they are
 * walked together. The walk runs twice with the same code: first without a builder, to see
 * whether anything is missing, then building the new document.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "schema/compile/program.h"
#include "json/json.h"

/* The plans that one value is under. */
struct plans {
    const struct peg__fill_plan *list[PEG_LIMIT_FILL_TOGETHER];
    unsigned n;
};

struct filling {
    peg_json_builder *b; /* NULL while looking */
    unsigned depth;
    size_t n_added;    /* values that came from defaults */
    bool is_missing;   /* looking: something is */
    const char *limit; /* that was reached, or NULL */
};

static bool has_plan(const struct plans *plans, const struct peg__fill_plan *plan)
{
    for (unsigned i = 0; i < plans->n; i++)
        if (plans->list[i] == plan)
            return true;
    return false;
}

static void add_one(struct filling *f, struct plans *plans, const struct peg__fill_plan *plan)
{
    if (!plan || !plan->is_useful || has_plan(plans, plan))
        return;
    if (plans->n == PEG_LIMIT_FILL_TOGETHER)
        f->limit = "allOf and $ref at one place";
    else
        plans->list[plans->n++] = plan;
}

/* Adds a plan and those for the same value. The list itself is the queue. */
static void add_plan(struct filling *f, struct plans *plans, const struct peg__fill_plan *plan)
{
    unsigned next = plans->n;

    add_one(f, plans, plan);
    for (; next < plans->n; next++)
        for (uint32_t i = 0; i < plans->list[next]->n_also; i++)
            add_one(f, plans, plans->list[next]->also[i]);
}

static const peg_json *default_of(const struct plans *plans)
{
    for (unsigned i = 0; i < plans->n; i++)
        if (plans->list[i]->value)
            return plans->list[i]->value;
    return NULL;
}

/* Values hold values: the recursion is bounded by PEG_LIMIT_FILL_DEPTH, in fill_value().
 * NOLINTBEGIN(misc-no-recursion) */

static void fill_value(struct filling *f, const peg_json *value, const struct plans *plans);

/* A default in place of what is missing. */
static void fill_default(struct filling *f, const peg_json *value, const struct plans *plans)
{
    f->n_added += peg_json_extent(value);
    if (f->n_added > PEG_LIMIT_FILL_VALUES)
        f->limit = "values";
    fill_value(f, value, plans);
}

/* ---- objects ------------------------------------------------------------------------------ */

static struct plans plans_of_member(struct filling *f, const struct plans *plans,
                                    const peg_json *key)
{
    struct plans below = {.n = 0};

    for (unsigned i = 0; i < plans->n; i++) {
        const struct peg__slot *slot = peg__names_find(&plans->list[i]->names, key);

        if (slot)
            add_plan(f, &below, plans->list[i]->members[slot->node]);
    }
    return below;
}

static bool has_member(const peg_json *object, const peg_json *name)
{
    return peg_json_get_str(object, peg_json_str(name)) != NULL;
}

/* Was the member added by an earlier plan already? */
static bool is_known_before(const struct plans *plans, unsigned n, const peg_json *key)
{
    for (unsigned i = 0; i < n; i++)
        if (peg__names_find(&plans->list[i]->names, key))
            return true;
    return false;
}

static void fill_missing(struct filling *f, const peg_json *object, const struct plans *plans,
                         unsigned which)
{
    const struct peg__fill_plan *plan = plans->list[which];

    for (uint32_t i = 0; i < plan->n_members && !f->limit; i++) {
        const peg_json *key = plan->keys[i];
        struct plans below;
        const peg_json *value;

        if (!plan->members[i] || has_member(object, key) || is_known_before(plans, which, key))
            continue;
        below = plans_of_member(f, plans, key);
        value = default_of(&below);
        if (!value)
            continue;
        f->is_missing = true;
        if (!f->b)
            return;
        peg_json_add_key(f->b, peg_json_str(key));
        fill_default(f, value, &below);
    }
}

static void fill_object(struct filling *f, const peg_json *object, const struct plans *plans)
{
    if (f->b)
        peg_json_open_object(f->b);
    PEG_JSON_EACH_MEMBER (object, key) {
        const struct plans below = plans_of_member(f, plans, key);

        if (f->b)
            peg_json_add_key(f->b, peg_json_str(key));
        fill_value(f, key + 1, &below);
        if (f->limit || (!f->b && f->is_missing))
            return;
    }
    for (unsigned i = 0; i < plans->n; i++)
        fill_missing(f, object, plans, i);
    if (f->b)
        peg_json_close(f->b);
}

/* ---- arrays ------------------------------------------------------------------------------- */

static struct plans plans_of_item(struct filling *f, const struct plans *plans, size_t index)
{
    struct plans below = {.n = 0};

    for (unsigned i = 0; i < plans->n; i++) {
        const struct peg__fill_plan *plan = plans->list[i];

        add_plan(f, &below, index < plan->n_prefix ? plan->prefix[index] : plan->items);
    }
    return below;
}

static size_t longest_prefix(const struct plans *plans)
{
    size_t longest = 0;

    for (unsigned i = 0; i < plans->n; i++)
        if (plans->list[i]->n_prefix > longest)
            longest = plans->list[i]->n_prefix;
    return longest;
}

/* Items of the prefix that are missing, up to the first that has no default. */
static void fill_tail(struct filling *f, const peg_json *array, const struct plans *plans)
{
    const size_t end = longest_prefix(plans);

    for (size_t i = array->len; i < end && !f->limit; i++) {
        const struct plans below = plans_of_item(f, plans, i);
        const peg_json *value = default_of(&below);

        if (!value)
            return;
        f->is_missing = true;
        if (!f->b)
            return;
        fill_default(f, value, &below);
    }
}

static void fill_array(struct filling *f, const peg_json *array, const struct plans *plans)
{
    size_t i = 0;

    if (f->b)
        peg_json_open_array(f->b);
    PEG_JSON_EACH_ITEM (array, item) {
        const struct plans below = plans_of_item(f, plans, i++);

        fill_value(f, item, &below);
        if (f->limit || (!f->b && f->is_missing))
            return;
    }
    fill_tail(f, array, plans);
    if (f->b)
        peg_json_close(f->b);
}

/* Bounded by PEG_LIMIT_FILL_DEPTH: a default may contain what has a default again. */
static void fill_value(struct filling *f, const peg_json *value, const struct plans *plans)
{
    if (f->depth == PEG_LIMIT_FILL_DEPTH)
        f->limit = "nesting";
    if (f->limit)
        return;
    f->depth++;
    if (plans->n > 0 && value->kind == PEG_JSON_OBJECT)
        fill_object(f, value, plans);
    else if (plans->n > 0 && value->kind == PEG_JSON_ARRAY)
        fill_array(f, value, plans);
    else if (f->b)
        peg_json_add_copy(f->b, value);
    f->depth--;
}

/* NOLINTEND(misc-no-recursion) */

/* ---- a whole value ----------------------------------------------------------------------------
 */

static peg_status fail_fill_limit(const struct filling *f, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_FILL_LIMIT",
                     "filling defaults in stopped at a limit: %s; simplify the schema's defaults",
                     f->limit);
}

peg_status peg__fill(const struct peg__fill_plan *plan, const peg_json *value,
                     peg_json_doc **ret_doc, peg_error *reterr)
{
    struct filling f = {0};
    struct plans plans = {.n = 0};

    add_plan(&f, &plans, plan);
    fill_value(&f, value, &plans);
    if (f.limit)
        return fail_fill_limit(&f, reterr);
    if (!f.is_missing) {
        *ret_doc = NULL;
        return PEG_OK;
    }
    f = (struct filling){.b = peg_json_builder_new()};
    if (!f.b)
        return peg__fail_nomem(reterr);
    fill_value(&f, value, &plans);
    if (f.limit) {
        peg_json_builder_free(f.b);
        return fail_fill_limit(&f, reterr);
    }
    return peg_json_builder_finish(f.b, ret_doc, reterr);
}

peg_status peg_schema_fill(const peg_schema *schema, const peg_json *value, peg_json_doc **ret_doc,
                           peg_error *reterr)
{
    return peg__fill(schema->plan, peg__json_or_null(value), ret_doc, reterr);
}
