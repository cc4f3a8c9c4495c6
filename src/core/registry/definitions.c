/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tools of a registry as a model sees them, as one document. A base table that registries
 * share keeps the document too, so that a turn on a thousand tools does not write them down anew; a
 * registry with changes on top of its base writes its own.
 */

#include "base/error.h"
#include "base/text/str.h"
#include "core/registry/registry.h"
#include "core/tool/tool.h"

/* ---- one tool ------------------------------------------------------------------- */

static void add_member(peg_json_builder *b, const char *name, const peg_json *value)
{
    if (!value)
        return;
    peg_json_add_key(b, peg__str(name));
    peg_json_add_copy(b, value);
}

static void add_text_member(peg_json_builder *b, const char *name, peg_str text)
{
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, text);
}

/* As objects with an input, so that there is room for more about each. */
static void add_examples(peg_json_builder *b, const peg_json *examples)
{
    if (!examples || !peg_json_len(examples))
        return;
    peg_json_add_key(b, peg__str("examples"));
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (examples, example) {
        peg_json_open_object(b);
        add_member(b, "input", example);
        peg_json_close(b);
    }
    peg_json_close(b);
}

static void add_hint(peg_json_builder *b, const char *name, bool is_set)
{
    if (!is_set)
        return;
    peg_json_add_key(b, peg__str(name));
    peg_json_add_bool(b, true);
}

static void add_hints(peg_json_builder *b, const peg_tool_def *def)
{
    if (!def->read_only && !def->idempotent && !def->destructive && !def->additive)
        return;
    peg_json_add_key(b, peg__str("hints"));
    peg_json_open_object(b);
    add_hint(b, "read_only", def->read_only);
    add_hint(b, "idempotent", def->idempotent);
    add_hint(b, "destructive", def->destructive);
    add_hint(b, "additive", def->additive);
    peg_json_close(b);
}

static void add_tool(peg_json_builder *b, const peg_tool *tool)
{
    peg_json_open_object(b);
    add_text_member(b, "name", tool->name);
    add_text_member(b, "description", tool->description);
    add_member(b, "parameters", peg_tool_input_schema(tool));
    add_member(b, "output", peg_tool_output_schema(tool));
    add_examples(b, peg_tool_examples(tool));
    peg__tool_add_tags(tool, b);
    if (tool->version.len)
        add_text_member(b, "version", tool->version);
    add_hints(b, &tool->def);
    add_hint(b, "ephemeral", tool->def.ephemeral);
    peg_json_close(b);
}

/* ---- all of them ---------------------------------------------------------------- */

static peg_status write_down(const struct peg__layers *layers, struct peg__shared **ret_shared,
                             peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    peg_status status;

    peg_json_open_array(b);
    for (struct peg__walk walk = {.layers = layers}; peg__layers_next(&walk);) {
        if (!walk.spot.is_hidden)
            add_tool(b, walk.spot.tool);
    }
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    *ret_shared = peg__shared_new(doc);
    return *ret_shared ? PEG_OK : peg__fail_nomem(reterr);
}

static bool is_base_alone(const struct peg__layers *layers)
{
    return !layers->n_patches && !(layers->added && layers->added->n) && !layers->base_is_pruned;
}

/* The first one to write it down wins; what others wrote meanwhile is the same. */
static struct peg__shared *keep_shared(struct peg__table *table, struct peg__shared *shared)
{
    struct peg__shared *expected = NULL;

    if (atomic_compare_exchange_strong(&table->definitions, &expected, shared))
        return peg__shared_ref(shared);
    peg__shared_unref(shared);
    return peg__shared_ref(expected);
}

peg_status peg__registry_definitions(peg_registry *registry, struct peg__shared **ret_shared,
                                     peg_error *reterr)
{
    struct peg__layers layers;
    struct peg__shared *shared = NULL;
    peg_status status = peg__registry_snapshot(registry, &layers, reterr);

    if (status)
        return status;
    /* A base that we hold does not change. */
    if (is_base_alone(&layers))
        shared = peg__shared_ref(atomic_load(&layers.base->definitions));
    if (!shared) {
        status = write_down(&layers, &shared, reterr);
        if (!status && is_base_alone(&layers))
            shared = keep_shared(layers.base, shared);
    }
    peg__layers_free(&layers);
    if (!status)
        *ret_shared = shared;
    return status;
}

/* ---- none at all ----------------------------------------------------------------- */

peg_status peg__registry_placeholder(peg_registry **ret_registry, peg_error *reterr)
{
    peg_registry *registry;
    const peg_status status = peg_registry_new(NULL, 0, &registry, reterr);

    if (status)
        return status;
    registry->is_stand_in = true;
    *ret_registry = registry;
    return PEG_OK;
}

/* Tools that somebody gave it: what was forged for artifacts does not count. */
static bool has_tools(const struct peg__layers *layers)
{
    for (struct peg__walk walk = {.layers = layers}; peg__layers_next(&walk);) {
        if (!walk.spot.tool->owner)
            return true;
    }
    return false;
}

bool peg__registry_is_absent(peg_registry *registry)
{
    bool has;

    if (!registry)
        return true;
    if (!registry->is_stand_in)
        return false;
    pthread_rwlock_rdlock(&registry->lock);
    has = has_tools(&registry->layers);
    pthread_rwlock_unlock(&registry->lock);
    return !has;
}
