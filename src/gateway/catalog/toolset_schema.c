/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas by their text. Equal texts are one schema, whichever tool they are of; it lives as long
 * as a tool refers to it, and its text with it.
 *
 * A compiled schema takes ten times its text, and most tools are hardly ever called: compiled ones
 * are kept within a budget. All that are stand in a ring; who needs room goes round with a hand,
 * passes over what was used since it last came by, and takes the rest (the "clock" of page caches).
 *
 * On the path of a call there is no lock but that of the one word: a reader that wants a reference
 * takes the pointer out of `compiled`, leaving BUSY, counts, and puts it back.
 */

#include <pthread.h>
#include <sched.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/catalog.h"

#define BUSY ((uintptr_t)1)
enum { SPINS = 64 };

struct gw_schema {
    _Atomic uintptr_t compiled; /* a peg_schema with one reference, 0, or BUSY */
    atomic_bool was_used;       /* since the hand came by */
    peg_str text;               /* the table's */
    /* Under the lock. */
    size_t n_refs;
    size_t bytes;           /* of the compiled one; 0: not in the ring */
    struct gw_schema *next; /* in the ring */
    struct gw_schema *prev;
};

/* Of the process: toolsets are made and read where no gateway is known. */
static struct {
    pthread_mutex_t lock;
    struct peg__map by_text;
    struct gw_schema *hand; /* NULL: the ring is empty */
    size_t bytes;
    size_t budget; /* 0: the limit */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .by_text = PEG__MAP(PEG_LIMIT_GATEWAY_SCHEMAS)};

/* ---- the word ---- */

static uintptr_t take_word(struct gw_schema *schema)
{
    uintptr_t word = atomic_exchange_explicit(&schema->compiled, BUSY, memory_order_acquire);

    for (unsigned i = 0; word == BUSY; i++) {
        /* The other one is between two instructions, unless its thread was stopped there. */
        if (i >= SPINS)
            sched_yield();
        word = atomic_exchange_explicit(&schema->compiled, BUSY, memory_order_acquire);
    }
    return word;
}

static void put_word(struct gw_schema *schema, uintptr_t word)
{
    atomic_store_explicit(&schema->compiled, word, memory_order_release);
}

static peg_schema *as_schema(uintptr_t word)
{
    return (peg_schema *)word; /* NOLINT(performance-no-int-to-ptr): it was one before */
}

static peg_schema *use_compiled(struct gw_schema *schema)
{
    const uintptr_t word = take_word(schema);
    peg_schema *compiled = as_schema(word);

    if (compiled)
        peg_schema_ref(compiled);
    put_word(schema, word);
    if (!atomic_load_explicit(&schema->was_used, memory_order_relaxed))
        atomic_store_explicit(&schema->was_used, true, memory_order_relaxed);
    return compiled;
}

/* ---- the ring, under the lock ---- */

/* Just behind the hand, which comes by last. */
static void enter_ring(struct gw_schema *schema, size_t bytes)
{
    schema->bytes = bytes;
    table.bytes += bytes;
    if (!table.hand) {
        table.hand = schema->next = schema->prev = schema;
        return;
    }
    schema->next = table.hand;
    schema->prev = table.hand->prev;
    schema->prev->next = schema;
    table.hand->prev = schema;
}

/* What was compiled becomes the caller's. */
static peg_schema *leave_ring(struct gw_schema *schema)
{
    peg_schema *compiled;

    if (schema->bytes == 0)
        return NULL;
    table.bytes -= schema->bytes;
    schema->bytes = 0;
    if (table.hand == schema)
        table.hand = schema->next == schema ? NULL : schema->next;
    schema->prev->next = schema->next;
    schema->next->prev = schema->prev;
    compiled = as_schema(take_word(schema));
    put_word(schema, 0);
    return compiled;
}

/* Twice round at most: the first round takes all marks away. */
static void evict_compiled(const struct gw_schema *but_not)
{
    const size_t budget = table.budget ? table.budget : PEG_LIMIT_GATEWAY_COMPILED_BYTES;

    while (table.bytes > budget && table.hand) {
        struct gw_schema *schema = table.hand;

        table.hand = schema->next;
        if (schema == but_not && schema->next == schema)
            return; /* larger than all of the budget, and needed now */
        if (schema == but_not ||
            atomic_exchange_explicit(&schema->was_used, false, memory_order_relaxed))
            continue;
        peg_schema_unref(leave_ring(schema));
    }
}

/* Keeps what was compiled, unless somebody else was quicker. */
static void keep_compiled(struct gw_schema *schema, peg_schema *compiled)
{
    pthread_mutex_lock(&table.lock);
    if (schema->bytes == 0) {
        (void)take_word(schema);
        put_word(schema, (uintptr_t)peg_schema_ref(compiled));
        enter_ring(schema, peg_schema_bytes(compiled));
        evict_compiled(schema);
    }
    pthread_mutex_unlock(&table.lock);
}

/* ---- schemas ---- */

static void forget_table_if_empty(void)
{
    if (table.by_text.n == 0)
        peg__map_free(&table.by_text);
}

static struct gw_schema *find_schema(peg_str text)
{
    struct gw_schema *schema;

    pthread_mutex_lock(&table.lock);
    schema = peg__map_get(&table.by_text, text);
    if (schema)
        schema->n_refs++;
    pthread_mutex_unlock(&table.lock);
    return schema;
}

/* Adds it, or takes the one that somebody else has added meanwhile. */
static peg_status add_schema(peg_str text, struct gw_schema **ret_schema)
{
    struct gw_schema *schema = peg__alloc_zero(1, sizeof(*schema));
    struct gw_schema *known;
    peg_status status;

    if (!schema)
        return PEG_ENOMEM;
    pthread_mutex_lock(&table.lock);
    known = peg__map_get(&table.by_text, text);
    status = known ? PEG_OK : peg__map_add(&table.by_text, text, schema);
    if (known || status) {
        peg__free(schema);
        schema = known;
    } else {
        schema->text = peg__map_find(&table.by_text, text)->name;
    }
    if (schema)
        schema->n_refs++;
    forget_table_if_empty();
    pthread_mutex_unlock(&table.lock);
    if (!status)
        *ret_schema = schema;
    return status;
}

peg_status gw_schema_get(peg_str text, struct gw_schema **ret_schema, peg_error *reterr)
{
    struct gw_schema *schema = find_schema(text);
    peg_schema *compiled;
    peg_status status;

    if (schema) {
        *ret_schema = schema;
        return PEG_OK;
    }
    status = peg_schema_compile(text, NULL, &compiled, reterr);
    if (status)
        return status;
    status = add_schema(text, &schema);
    if (!status) {
        keep_compiled(schema, compiled);
        *ret_schema = schema;
    }
    peg_schema_unref(compiled);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSETS",
                         "the gateway has too many different schemas: unregister toolsets");
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

struct gw_schema *gw_schema_unref(struct gw_schema *schema)
{
    peg_schema *compiled = NULL;

    if (!schema)
        return NULL;
    pthread_mutex_lock(&table.lock);
    if (--schema->n_refs == 0) {
        compiled = leave_ring(schema);
        peg__map_remove(&table.by_text, schema->text, NULL);
        forget_table_if_empty();
        peg__free(schema);
    }
    pthread_mutex_unlock(&table.lock);
    peg_schema_unref(compiled);
    return NULL;
}

peg_str gw_schema_text(const struct gw_schema *schema)
{
    return schema->text;
}

size_t gw_schema_count(size_t *ret_compiled_bytes)
{
    size_t n;

    pthread_mutex_lock(&table.lock);
    n = table.by_text.n;
    if (ret_compiled_bytes)
        *ret_compiled_bytes = table.bytes;
    pthread_mutex_unlock(&table.lock);
    return n;
}

void gw_schema_set_budget(size_t bytes)
{
    pthread_mutex_lock(&table.lock);
    table.budget = bytes;
    evict_compiled(NULL);
    pthread_mutex_unlock(&table.lock);
}

static peg_schema *use_schema(struct gw_schema *schema)
{
    peg_schema *compiled;

    if (!schema)
        return NULL;
    compiled = use_compiled(schema);
    if (compiled)
        return compiled;
    if (peg_schema_compile(schema->text, NULL, &compiled, NULL))
        return NULL;
    keep_compiled(schema, compiled);
    return compiled;
}

peg_schema *gw_tool_input_schema(const struct gw_tool *tool)
{
    return use_schema(tool->input);
}

peg_schema *gw_tool_output_schema(const struct gw_tool *tool)
{
    return use_schema(tool->output);
}
