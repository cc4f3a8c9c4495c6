/* SPDX-License-Identifier: Apache-2.0 */

/* The definitions that a turn holds: what its engine offers, and what a turn from a file still
 * knows about its tools without a registry to run them. */

#include "turn/turn.h"

#include "base/error.h"
#include "base/text/str.h"
#include "core/registry/registry.h"

/* ---- reading -------------------------------------------------------------------- */

static peg_str name_of(const peg_json *definition)
{
    const peg_json *name = peg_json_get(definition, "name");

    return name && name->kind == PEG_JSON_STRING ? peg_json_str(name) : (peg_str){"", 0};
}

static bool is_ephemeral(const peg_json *definition)
{
    const peg_json *mark = peg_json_get(definition, "ephemeral");

    return mark && peg_json_is_true(mark);
}

peg_status peg_turn_definitions(const peg_turn *turn, const peg_json **ret_defs, peg_error *reterr)
{
    const peg_json *defs;
    const peg_status status = peg_turn_get(turn, &peg_key_tool_definitions, &defs, reterr);
    size_t i = 0;

    if (status)
        return status;
    if (defs) {
        PEG_JSON_EACH_ITEM (defs, item) {
            if (item->kind != PEG_JSON_OBJECT || !name_of(item).len)
                return peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE",
                                 "data: item %zu of '%s' has to be an object with a name", i,
                                 peg_key_tool_definitions.id);
            i++;
        }
    }
    *ret_defs = defs;
    return PEG_OK;
}

/* ---- from a registry ------------------------------------------------------------ */

peg_status peg_registry_definitions(peg_registry *registry, peg_json_doc **ret_doc,
                                    peg_error *reterr)
{
    struct peg__shared *shared;
    peg_json_builder *b;
    peg_status status = peg__registry_definitions(registry, &shared, reterr);

    if (status)
        return status;
    b = peg_json_builder_new();
    peg_json_add_copy(b, peg__shared_root(shared));
    peg__shared_unref(shared);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

peg_status peg_turn_sync_definitions(peg_turn *turn, peg_registry *registry, peg_error *reterr)
{
    struct peg__shared *shared;
    peg_status status = peg__registry_definitions(registry, &shared, reterr);

    if (status)
        return status;
    status = peg__turn_put_definitions(turn, shared, reterr);
    peg__shared_unref(shared);
    return status;
}

peg_status peg__turn_put_definitions(peg_turn *turn, struct peg__shared *shared, peg_error *reterr)
{
    if (peg__bag_shared(turn->data, &peg_key_tool_definitions) == shared)
        return PEG_OK;
    return peg__turn_set_shared(turn, &peg_key_tool_definitions, shared, reterr);
}

/* ---- two lists ------------------------------------------------------------------ */

static const peg_json *find_named(const peg_json *defs, peg_str name)
{
    PEG_JSON_EACH_ITEM (defs, item) {
        if (peg__str_eq(name_of(item), name))
            return item;
    }
    return NULL;
}

peg_status peg__definitions_overlay(const peg_json *stored, const peg_json *live,
                                    struct peg__shared **ret_shared, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc;
    peg_status status;

    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (stored, item) {
        /* Queries of artifacts are forged anew. */
        if (!is_ephemeral(item) && !find_named(live, name_of(item)))
            peg_json_add_copy(b, item);
    }
    PEG_JSON_EACH_ITEM (live, item) {
        peg_json_add_copy(b, item);
    }
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    *ret_shared = peg__shared_new(doc);
    return *ret_shared ? PEG_OK : peg__fail_nomem(reterr);
}

static bool has_ephemeral(const peg_json *defs)
{
    PEG_JSON_EACH_ITEM (defs, item) {
        if (is_ephemeral(item))
            return true;
    }
    return false;
}

peg_status peg__turn_drop_ephemeral(peg_turn *turn, peg_error *reterr)
{
    struct peg__shared *shared = peg__bag_shared(turn->data, &peg_key_tool_definitions);
    const peg_json *stored = NULL;
    struct peg__shared *lasting;
    peg_status status;

    /* A list that many turns share is read once, not after each of them. */
    if (!shared || atomic_load_explicit(&shared->is_lasting, memory_order_relaxed))
        return PEG_OK;
    if (peg_turn_definitions(turn, &stored, NULL))
        return PEG_OK; /* not ours */
    if (!has_ephemeral(stored)) {
        atomic_store_explicit(&shared->is_lasting, true, memory_order_relaxed);
        return PEG_OK;
    }
    status = peg__definitions_overlay(stored, NULL, &lasting, reterr);
    if (status)
        return status;
    status = peg_json_len(peg__shared_root(lasting))
                 ? peg__turn_put_definitions(turn, lasting, reterr)
                 : peg_turn_unset(turn, &peg_key_tool_definitions, reterr);
    peg__shared_unref(lasting);
    return status;
}

static peg_status differ(peg_str name, const char *how, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ESTATE, "E_DEFINITIONS_DIFFER",
                     "the tool '%.*s' %s: run the turn with the tools it was made with, or "
                     "choose another policy than STRICT",
                     (int)(name.len < 80 ? name.len : 80), name.ptr, how);
}

/* The members that a model sees; hints may change. */
static bool is_same(const peg_json *a, const peg_json *b)
{
    static const char *const members[] = {"description", "parameters", "version", NULL};

    for (size_t i = 0; members[i]; i++) {
        const peg_json *one = peg_json_get(a, members[i]);
        const peg_json *other = peg_json_get(b, members[i]);

        if ((one == NULL) != (other == NULL) || (one && !peg_json_equal(one, other)))
            return false;
    }
    return true;
}

peg_status peg__definitions_compare(const peg_json *stored, const peg_json *live, peg_error *reterr)
{
    PEG_JSON_EACH_ITEM (stored, item) {
        const peg_json *other = find_named(live, name_of(item));

        if (is_ephemeral(item))
            continue;
        if (!other)
            return differ(name_of(item), "is on the turn but not in the registry", reterr);
        if (!is_same(item, other))
            return differ(name_of(item), "is another one in the registry than on the turn", reterr);
    }
    PEG_JSON_EACH_ITEM (live, item) {
        if (!is_ephemeral(item) && !find_named(stored, name_of(item)))
            return differ(name_of(item), "is in the registry but not on the turn", reterr);
    }
    return PEG_OK;
}
