/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a compiled JSONPath. Read it from the bottom up:
 *
 *   peg_json_path_find -> next_node -> next_selected -> advance -> holds
 *
 * Nodes come out one at a time, depth first, which is the order of RFC 9535:
 * each segment has a cursor, and the walk goes on to the next segment with each
 * node selected and back to the previous one when a segment has no more. So a
 * test for existence stops at the first node, no list is kept but the result,
 * and the only recursion is into filters, whose nesting the parser bounds.
 *
 * Every piece of work is charged to the steps, lookups and comparisons by the
 * size of what they read: the model writes the path, and may write a bad one.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/path/path.h"

/* Members or bytes that are looked over in the time of one visit. */
enum { MEMBERS_PER_STEP = 8, BYTES_PER_STEP = 64 };

/* Where one segment stands. */
struct cursor {
    const peg_json *base;                      /* the node whose children are selected */
    const peg_json *scope_end;                 /* descendants: behind the last of them */
    const struct peg__path_selector *selector; /* NULL: base is finished */
    const peg_json *at;                        /* wildcard, filter, slice: the next child */
    int64_t index;                             /* slice: of `at` */
    int64_t wanted;                            /* slice: the index to give next */
    int64_t bound;                             /* slice: the index to stop before */
    bool is_done;                              /* name, index: has been given */
    const peg_json **items; /* owned: backward slices of items that differ in size */
    size_t capacity;
};

struct eval {
    const peg_json *root;
    struct cursor *cursors; /* one for each segment */
    size_t n_cursors;
    size_t steps_left;
    peg_status status; /* the first failure; all work stops at it */
};

static bool charge(struct eval *e, size_t steps)
{
    if (steps > e->steps_left) {
        e->status = PEG_ELIMIT;
        return false;
    }
    e->steps_left -= steps;
    return true;
}

/* ---- one child --------------------------------------------------------------- */

static bool is_container(const peg_json *value)
{
    return value->kind >= PEG_JSON_ARRAY;
}

/* The item with this index, or NULL; one addition if all items are scalars. */
static const peg_json *item_at(struct eval *e, const peg_json *array, int64_t index)
{
    const int64_t len = (int64_t)peg_json_len(array);

    if (index < 0)
        index += len;
    if (peg_json_kind_of(array) != PEG_JSON_ARRAY || index < 0 || index >= len ||
        !charge(e, 1 + (size_t)index / MEMBERS_PER_STEP))
        return NULL;
    return peg_json_at(array, (size_t)index);
}

static const peg_json *member_named(struct eval *e, const peg_json *object, peg_str name)
{
    if (peg_json_kind_of(object) != PEG_JSON_OBJECT ||
        !charge(e, 1 + peg_json_len(object) / MEMBERS_PER_STEP))
        return NULL;
    return peg_json_get_str(object, name);
}

/* What a name or an index selects. */
static const peg_json *select_one(struct eval *e, const struct peg__path_selector *selector,
                                  const peg_json *node)
{
    return selector->kind == PEG__PATH_NAME ? member_named(e, node, selector->name)
                                            : item_at(e, node, selector->start);
}

/* The node of a singular query, or NULL for none. */
static const peg_json *single_node(struct eval *e, const struct peg__path_query *query,
                                   const peg_json *current)
{
    const struct peg__path_segment *segment = query->segments;
    const peg_json *node = query->is_absolute ? e->root : current;

    for (; segment && node; segment = segment->next)
        node = select_one(e, segment->selectors, node);
    return node;
}

/* ---- comparisons --------------------------------------------------------------- */

/* Pays for reading the whole of a value. */
static bool charge_reading(struct eval *e, const peg_json *value)
{
    const peg_json *end = peg_json_next(value);

    for (; value < end; value++) {
        const bool has_bytes =
            peg_json_kind_of(value) == PEG_JSON_STRING || value->form == PEG_JSON_FORM_TEXT;

        if (!charge(e, 1 + (has_bytes ? value->len / BYTES_PER_STEP : 0)))
            return false;
    }
    return true;
}

/* Nothing equals nothing, and nothing else. */
static bool equals(struct eval *e, const peg_json *a, const peg_json *b)
{
    if (!a || !b)
        return a == b;
    return charge_reading(e, peg_json_extent(a) < peg_json_extent(b) ? a : b) &&
           peg_json_equal(a, b);
}

/* Only numbers and strings have an order; the order of UTF-8 bytes is that of code points. */
static bool is_less(struct eval *e, const peg_json *a, const peg_json *b)
{
    size_t common;
    int order;

    if (!a || !b)
        return false;
    if (peg_json_is_number(a) && peg_json_is_number(b))
        return peg_json_compare_numbers(a, b) < 0;
    if (peg_json_kind_of(a) != PEG_JSON_STRING || peg_json_kind_of(b) != PEG_JSON_STRING)
        return false;
    common = a->len < b->len ? a->len : b->len;
    if (!charge(e, 1 + common / BYTES_PER_STEP))
        return false;
    order = common ? memcmp(a->u.ptr, b->u.ptr, common) : 0;
    return order ? order < 0 : a->len < b->len;
}

static bool compares(struct eval *e, const struct peg__path_expr *expr, const peg_json *current)
{
    const peg_json *left =
        expr->left.is_literal ? &expr->left.literal : single_node(e, &expr->left.query, current);
    const peg_json *right =
        expr->right.is_literal ? &expr->right.literal : single_node(e, &expr->right.query, current);

    switch (expr->comparison) {
    case PEG__PATH_EQ:
        return equals(e, left, right);
    case PEG__PATH_NE:
        return !equals(e, left, right);
    case PEG__PATH_LT:
        return is_less(e, left, right);
    case PEG__PATH_LE:
        return is_less(e, left, right) || equals(e, left, right);
    case PEG__PATH_GT:
        return is_less(e, right, left);
    case PEG__PATH_GE:
        return is_less(e, right, left) || equals(e, left, right);
    }
    return false;
}

/* ---- filters ------------------------------------------------------------------- */

static void enter_segment(struct eval *e, const struct peg__path_segment *segment,
                          const peg_json *node);
static const peg_json *next_node(struct eval *e, const struct peg__path_segment **segment);

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static bool exists(struct eval *e, const struct peg__path_query *query, const peg_json *current)
{
    const struct peg__path_segment *segment = query->segments;

    if (query->is_singular)
        return single_node(e, query, current);
    enter_segment(e, segment, query->is_absolute ? e->root : current);
    return next_node(e, &segment);
}

/* Is the expression true for the current node?
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static bool holds(struct eval *e, const struct peg__path_expr *expr, const peg_json *current)
{
    const struct peg__path_expr *part = expr->parts;

    if (!charge(e, 1))
        return false;
    switch (expr->kind) {
    case PEG__PATH_OR:
        while (part && !holds(e, part, current))
            part = part->next;
        return part;
    case PEG__PATH_AND:
        while (part && holds(e, part, current))
            part = part->next;
        return !part;
    case PEG__PATH_NOT:
        return !holds(e, part, current);
    case PEG__PATH_EXISTS:
        return exists(e, &expr->query, current);
    case PEG__PATH_COMPARE:
        return compares(e, expr, current);
    }
    return false;
}

/* ---- selectors ----------------------------------------------------------------- */

static int64_t clamp(int64_t number, int64_t low, int64_t high)
{
    return number < low ? low : number > high ? high : number;
}

/* The first `n` items, so that they can be given in reverse. */
static bool collect_items(struct eval *e, struct cursor *c, int64_t n)
{
    const peg_json *item = c->base + 1;

    if (n == 0)
        return true;
    if (!charge(e, (size_t)n))
        return false;
    if (!PEG__RESERVE(c->items, (size_t)n, c->capacity)) {
        e->status = PEG_ENOMEM;
        return false;
    }
    for (int64_t i = 0; i < n; i++, item = peg_json_next(item))
        c->items[i] = item;
    return true;
}

/* Section 2.3.4.2.2 of the RFC, whose names these are. */
static void begin_slice(struct eval *e, struct cursor *c)
{
    const struct peg__path_selector *s = c->selector;
    const int64_t len = (int64_t)peg_json_len(c->base);
    const int64_t default_start = s->step >= 0 ? 0 : len - 1;
    const int64_t default_end = s->step >= 0 ? len : -1;
    const int64_t n_start = s->has_start ? s->start + (s->start < 0 ? len : 0) : default_start;
    const int64_t n_end = s->has_end ? s->end + (s->end < 0 ? len : 0) : default_end;

    c->index = 0;
    if (s->step > 0) {
        c->wanted = clamp(n_start, 0, len);
        c->bound = clamp(n_end, 0, len);
    } else if (s->step < 0) {
        c->wanted = clamp(n_start, -1, len - 1);
        c->bound = clamp(n_end, -1, len - 1);
        if (c->wanted > c->bound)
            collect_items(e, c, c->wanted + 1);
    } else {
        c->wanted = c->bound = 0;
    }
}

static const peg_json *next_of_slice(struct eval *e, struct cursor *c)
{
    const int64_t step = c->selector->step;
    const int64_t wanted = c->wanted;

    if (peg_json_kind_of(c->base) != PEG_JSON_ARRAY || step == 0 ||
        (step > 0 ? wanted >= c->bound : wanted <= c->bound) || !charge(e, 1))
        return NULL;
    c->wanted += step;
    if (step < 0)
        return c->items[wanted];
    if (!charge(e, (size_t)(wanted - c->index)))
        return NULL;
    for (; c->index < wanted; c->index++)
        c->at = peg_json_next(c->at);
    return c->at;
}

static const peg_json *next_child(struct eval *e, struct cursor *c)
{
    const peg_json *child = c->at;

    if (c->at >= peg_json_next(c->base) || !charge(e, 1))
        return NULL;
    if (peg_json_kind_of(c->base) == PEG_JSON_OBJECT)
        child++; /* from the key to the value */
    c->at = peg_json_next(child);
    return child;
}

/* The first child of base that the selector selects and that was not given yet, or NULL.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static const peg_json *advance(struct eval *e, struct cursor *c)
{
    const peg_json *child = NULL;

    switch (c->selector->kind) {
    case PEG__PATH_NAME:
    case PEG__PATH_INDEX:
        if (!c->is_done)
            child = select_one(e, c->selector, c->base);
        c->is_done = true;
        break;
    case PEG__PATH_WILDCARD:
        child = next_child(e, c);
        break;
    case PEG__PATH_SLICE:
        child = next_of_slice(e, c);
        break;
    case PEG__PATH_FILTER:
        do {
            child = next_child(e, c);
        } while (child && !holds(e, c->selector->filter, child) && !e->status);
        break;
    }
    return e->status ? NULL : child;
}

/* ---- segments ------------------------------------------------------------------- */

static void begin_selector(struct eval *e, struct cursor *c,
                           const struct peg__path_selector *selector)
{
    c->selector = selector;
    c->is_done = false;
    c->at = c->base + 1;
    if (selector && selector->kind == PEG__PATH_SLICE &&
        peg_json_kind_of(c->base) == PEG_JSON_ARRAY)
        begin_slice(e, c);
}

static void enter_segment(struct eval *e, const struct peg__path_segment *segment,
                          const peg_json *node)
{
    struct cursor *c = &e->cursors[segment->slot];

    c->base = node;
    c->scope_end = peg_json_next(node);
    begin_selector(e, c, segment->selectors);
}

/* To the next container below. Keys are strings, so the scan needs no structure. */
static bool descend(struct eval *e, struct cursor *c)
{
    const peg_json *value = c->base + 1;

    while (value < c->scope_end && charge(e, 1)) {
        if (is_container(value)) {
            c->base = value;
            return true;
        }
        value++;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static const peg_json *next_selected(struct eval *e, const struct peg__path_segment *segment)
{
    struct cursor *c = &e->cursors[segment->slot];

    while (!e->status) {
        const peg_json *node;

        if (!c->selector) {
            if (!segment->is_descendant || !descend(e, c))
                return NULL;
            begin_selector(e, c, segment->selectors);
            continue;
        }
        node = is_container(c->base) ? advance(e, c) : NULL;
        if (node)
            return node;
        begin_selector(e, c, c->selector->next);
        if (c->selector)
            charge(e, 1); /* a union may have a thousand selectors that select nothing */
    }
    return NULL;
}

/* The next node of a query whose first segment was entered; *segment is where the walk stands.
 * NULL when there is none, or on failure.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by PEG_LIMIT_PATH_NESTING */
static const peg_json *next_node(struct eval *e, const struct peg__path_segment **segment)
{
    while (*segment) {
        const peg_json *node = next_selected(e, *segment);

        if (e->status)
            return NULL;
        if (!node) {
            *segment = (*segment)->previous;
            continue;
        }
        if (!(*segment)->next)
            return node;
        *segment = (*segment)->next;
        enter_segment(e, *segment, node);
    }
    return NULL;
}

/* ---- the result ------------------------------------------------------------------ */

struct results {
    const peg_json **items;
    size_t len;
    size_t capacity;
    size_t max;
};

static peg_status keep_node(struct results *results, const peg_json *node, peg_error *reterr)
{
    if (results->len == results->max)
        return peg__fail(reterr, PEG_ELIMIT, "E_JSON_PATH_NODES",
                         "the path finds more than %zu nodes; write a narrower one", results->max);
    if (!PEG__RESERVE(results->items, results->len + 1, results->capacity))
        return peg__fail_nomem(reterr);
    results->items[results->len++] = node;
    return PEG_OK;
}

static peg_status collect_nodes(struct eval *e, const struct peg__path_query *query,
                                struct results *results, peg_error *reterr)
{
    const struct peg__path_segment *segment = query->segments;
    const peg_json *node;

    if (!segment)
        return keep_node(results, e->root, reterr);
    enter_segment(e, segment, e->root);
    while ((node = next_node(e, &segment))) {
        const peg_status status = keep_node(results, node, reterr);

        if (status)
            return status;
    }
    return e->status == PEG_ENOMEM ? peg__fail_nomem(reterr) : e->status;
}

peg_status peg_json_path_find(const peg_json_path *path, const peg_json *root, size_t max_nodes,
                              size_t max_steps, peg_json_nodes *ret_nodes, peg_error *reterr)
{
    const size_t steps = max_steps ? max_steps : PEG_LIMIT_PATH_STEPS;
    struct results results = {.max = max_nodes ? max_nodes : PEG_LIMIT_PATH_NODES};
    struct eval e = {
        .root = peg__json_or_null(root), .steps_left = steps, .n_cursors = path->n_segments};
    peg_status status;

    e.cursors = peg__alloc_zero(e.n_cursors, sizeof(*e.cursors));
    if (!e.cursors)
        return peg__fail_nomem(reterr);
    status = collect_nodes(&e, &path->query, &results, reterr);
    if (e.status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_JSON_PATH_LIMIT",
                  "the path takes more than %zu steps in this document; write a narrower one",
                  steps);
    for (size_t i = 0; i < e.n_cursors; i++)
        peg__free(e.cursors[i].items);
    peg__free(e.cursors);
    if (status) {
        peg__free(results.items);
        return status;
    }

    *ret_nodes = (peg_json_nodes){.items = results.items, .len = results.len};
    return PEG_OK;
}
