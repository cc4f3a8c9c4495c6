/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Forging: from the artifacts of a conversation to the tools that ask about them.
 *
 *   peg__forge -> set_fill    what there is: artifacts by handle, and which queries they have
 *              -> make_tools  one for each query, all of which share the set
 *              -> peg__registry_replace_owned
 *
 * It happens before every call of the model, mostly with the artifacts of the time before, so it
 * first looks whether the tools in the registry are still the right ones. For 1,000 text artifacts
 * that takes 12 us, and making the seven tools 1.4 ms, nearly all of it for compiling their enums.
 */

#include "core/artifact/artifact.h"

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "core/registry/registry.h"
#include "core/tool/tool.h"
#include "json/json.h"

struct set;

/* What a tool is about; its `user`. */
struct entry {
    struct set *set;
    const peg_artifact_kind *kind; /* whose query it is */
    const peg_artifact_query *query;
};

/* Shared immutable: every tool has a reference, and so every call that still runs. */
struct set {
    atomic_uint n_refs;
    struct peg__map artifacts; /* by handle, in order; each value is a reference */
    struct entry *entries;     /* by kind, bases first */
    size_t n_entries;
    size_t capacity;
    const peg_artifact_kind **kinds; /* those whose queries were looked at */
    size_t n_kinds;
    size_t kinds_capacity;
    size_t n_clashes;           /* queries whose name another kind took first */
    struct peg__buf properties; /* of all entries, see peg__query_properties() */
};

/* ---- the set ----------------------------------------------------------------------------- */

static struct set *set_unref(struct set *set)
{
    if (!set || !peg__refs_drop(&set->n_refs))
        return NULL;
    PEG__MAP_EACH(&set->artifacts, entry)
    {
        peg_artifact_unref(entry->value);
    }
    peg__map_free(&set->artifacts);
    peg__buf_free(&set->properties);
    peg__free(set->kinds);
    peg__free(set->entries);
    peg__free(set);
    return NULL;
}

PEG_DEFINE_CLEANUP(struct set, set_unref)

static bool has_kind(const struct set *set, const peg_artifact_kind *kind)
{
    for (size_t i = 0; i < set->n_kinds; i++) {
        if (set->kinds[i] == kind)
            return true;
    }
    return false;
}

static bool has_name(const struct set *set, const char *name)
{
    for (size_t i = 0; i < set->n_entries; i++) {
        if (strcmp(set->entries[i].query->name, name) == 0)
            return true;
    }
    return false;
}

static peg_status add_entry(struct set *set, const peg_artifact_kind *kind,
                            const peg_artifact_query *query, peg_error *reterr)
{
    if (has_name(set, query->name)) {
        set->n_clashes++;
        return PEG_OK;
    }
    if (!PEG__RESERVE(set->entries, set->n_entries + 1, set->capacity))
        return peg__fail_nomem(reterr);
    set->entries[set->n_entries++] = (struct entry){.set = set, .kind = kind, .query = query};
    return PEG_OK;
}

static peg_status add_queries(struct set *set, const peg_artifact_kind *kind, peg_error *reterr)
{
    if (!PEG__RESERVE(set->kinds, set->n_kinds + 1, set->kinds_capacity))
        return peg__fail_nomem(reterr);
    set->kinds[set->n_kinds++] = kind;
    for (size_t i = 0; i < kind->n_queries; i++) {
        const peg_status status = add_entry(set, kind, &kind->queries[i], reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}

/* A kind with what it is made from, which comes first. */
static peg_status add_kind(struct set *set, const peg_artifact_kind *kind, peg_error *reterr)
{
    const peg_artifact_kind *chain[PEG_LIMIT_KIND_DEPTH];
    size_t n = 0;

    for (; kind && n < PEG_LIMIT_KIND_DEPTH && !has_kind(set, kind); kind = peg__kind_base(kind))
        chain[n++] = kind;
    while (n-- > 0) {
        const peg_status status = add_queries(set, chain[n], reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status add_item(struct set *set, const struct peg__forge_item *item, peg_error *reterr)
{
    peg_status status;

    if (!item->handle.ptr || !peg__utf8_is_valid(item->handle))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "the handle of an artifact is not UTF-8; give it another");
    status = peg__map_add(&set->artifacts, item->handle, item->artifact);
    if (status == PEG_EEXISTS)
        return peg__fail(reterr, status, "E_ARTIFACT_ID_COLLISION",
                         "two artifacts have the handle '%.*s'; give each its own",
                         item->handle.len < 100 ? (int)item->handle.len
                                                : (int)peg__utf8_cut(item->handle.ptr, 100),
                         item->handle.ptr);
    if (status)
        return peg__fail_nomem(reterr);
    peg_artifact_ref(item->artifact);
    return PEG_OK;
}

static void write_properties(const struct set *set, struct peg__buf *out)
{
    for (size_t i = 0; i < set->n_entries; i++) {
        peg__query_properties(set->entries[i].query, out);
        peg__buf_putc(out, '\0');
    }
}

static peg_status set_fill(struct set *set, const struct peg__forge_item *items, size_t n_items,
                           peg_error *reterr)
{
    const peg_artifact_kind *last = NULL;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n_items && !status; i++) {
        const peg_artifact_kind *kind = peg_artifact_kind_of(items[i].artifact);

        status = add_item(set, &items[i], reterr);
        if (!status && kind != last)
            status = add_kind(set, kind, reterr);
        last = kind;
    }
    if (status)
        return status;
    write_properties(set, &set->properties);
    return set->properties.status ? peg__fail_nomem(reterr) : PEG_OK;
}

static struct set *set_new(void)
{
    struct set *set = peg__alloc_zero(1, sizeof(*set));

    if (!set)
        return NULL;
    atomic_init(&set->n_refs, 1);
    set->artifacts.max = PEG_LIMIT_FORGED_ARTIFACTS;
    set->properties.max = PEG_LIMIT_TEXT_BYTES;
    return set;
}

/* ---- tools -------------------------------------------------------------------------------- */

static void run_query(peg_call *call, const peg_json *args, void *user)
{
    const struct entry *entry = user;
    const peg_json *id = peg_json_get(args, PEG__ARTIFACT_ID);
    peg_artifact *artifact = NULL;

    if (id && id->kind == PEG_JSON_STRING)
        artifact = peg__map_get(&entry->set->artifacts, peg_json_str(id));
    /* The enum has let nothing else through; a hook may have changed it since. */
    if (!artifact || !peg_artifact_kind_is(peg_artifact_kind_of(artifact), entry->kind)) {
        peg_call_fail(call, "there is no artifact with this '%s' that can be asked for %s",
                      PEG__ARTIFACT_ID, entry->query->name);
        return;
    }
    entry->query->run(call, artifact, args);
}

static void entry_free(void *user)
{
    set_unref(((struct entry *)user)->set);
}

/* The handles of all artifacts of a kind, as the items of a JSON array. */
static void write_handles(const struct set *set, const peg_artifact_kind *kind,
                          struct peg__buf *out)
{
    peg__buf_clear(out);
    PEG__MAP_EACH(&set->artifacts, item)
    {
        if (!peg_artifact_kind_is(peg_artifact_kind_of(item->value), kind))
            continue;
        if (out->len)
            peg__buf_putc(out, ',');
        peg__json_write_string(item->name, out);
    }
}

/* What stands between the brackets or braces of a JSON text. */
static peg_str inner(const char *text)
{
    const char *start = text + strspn(text, " \t\r\n");
    const char *end = text + strlen(text);

    while (end > start && strchr(" \t\r\n", end[-1]))
        end--;
    if (end - start < 2)
        return (peg_str){"", 0};
    start++;
    end--;
    start += strspn(start, " \t\r\n");
    return start < end ? peg__strn(start, (size_t)(end - start)) : (peg_str){"", 0};
}

static void write_schema(const struct entry *entry, const char *properties,
                         const struct peg__buf *handles, struct peg__buf *out)
{
    const peg_str own = inner(properties);
    const peg_str required = inner(entry->query->required ? entry->query->required : "[]");

    peg__buf_clear(out);
    peg__buf_puts(out, "{\"type\":\"object\",\"properties\":{\"" PEG__ARTIFACT_ID
                       "\":{\"type\":\"string\",\"enum\":[");
    peg__buf_str(out, peg__buf_view(handles));
    peg__buf_puts(out, "],\"description\":\"Which artifact: the id of the tool call that made "
                       "it.\"}");
    if (own.len) {
        peg__buf_putc(out, ',');
        peg__buf_str(out, own);
    }
    peg__buf_puts(out, "},\"required\":[\"" PEG__ARTIFACT_ID "\"");
    if (required.len) {
        peg__buf_putc(out, ',');
        peg__buf_str(out, required);
    }
    peg__buf_puts(out, "],\"additionalProperties\":false}");
}

static peg_status make_tool(struct entry *entry, const char *schema, peg_tool **ret_tool,
                            peg_error *reterr)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT,
                                        .max_bytes = 2L * PEG_LIMIT_FORGED_BYTES};
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = entry->query->name,
        .description = entry->query->description,
        .input_schema = schema,
        .run = run_query,
        .user = entry,
        .user_free = entry_free,
        .ephemeral = true,
        .read_only = true,
        .idempotent = true,
        .on_collision = PEG_COLLISION_REPLACE,
        .schema_options = &options,
    };
    const peg_status status = peg__tool_new(&def, true, PEG__FORGE_OWNER, ret_tool, reterr);

    if (status == PEG_OK)
        atomic_fetch_add_explicit(&entry->set->n_refs, 1, memory_order_relaxed);
    return status;
}

struct tools {
    peg_tool **items;
    size_t n;
};

static void tools_free(struct tools *tools)
{
    for (size_t i = 0; i < tools->n; i++)
        peg_tool_unref(tools->items[i]);
    peg__free(tools->items);
}

static peg_status make_tools(struct set *set, struct tools *tools, peg_error *reterr)
{
    struct peg__buf handles = PEG__BUF(PEG_LIMIT_FORGED_BYTES);
    struct peg__buf schema = PEG__BUF(2L * PEG_LIMIT_FORGED_BYTES);
    const char *properties = set->properties.ptr;
    const peg_artifact_kind *kind = NULL;
    peg_status status = PEG_OK;

    tools->items = peg__alloc_zero(set->n_entries, sizeof(peg_tool *));
    if (!tools->items)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < set->n_entries && !status; i++) {
        struct entry *entry = &set->entries[i];

        if (entry->kind != kind)
            write_handles(set, entry->kind, &handles);
        kind = entry->kind;
        write_schema(entry, properties, &handles, &schema);
        properties += strlen(properties) + 1;
        if (handles.status == PEG_ENOMEM || schema.status == PEG_ENOMEM)
            status = peg__fail_nomem(reterr);
        else if (handles.status || schema.status)
            status = peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                               "the handles of the artifacts take more than "
                               "%d bytes; shorten them, or drop old "
                               "artifacts",
                               PEG_LIMIT_FORGED_BYTES);
        else
            status = make_tool(entry, schema.ptr, &tools->items[i], reterr);
        tools->n += status == PEG_OK;
    }
    peg__buf_free(&handles);
    peg__buf_free(&schema);
    return status;
}

/* ---- is there anything to do? ---------------------------------------------------------------- */

/* A new reference to the set behind a tool of the registry, or NULL. */
static struct set *set_behind(peg_registry *registry, const char *name, bool *ret_is_there)
{
    peg_tool *tool = peg_registry_get(registry, peg__str(name));
    struct set *set = NULL;

    if (tool && tool->owner && strcmp(tool->owner, PEG__FORGE_OWNER) == 0) {
        set = ((struct entry *)tool->def.user)->set;
        atomic_fetch_add_explicit(&set->n_refs, 1, memory_order_relaxed);
    }
    *ret_is_there = tool != NULL;
    peg_tool_unref(tool);
    return set;
}

/* Whatever was forged has the queries of text; one of them may have the name of a host's tool. */
static struct set *find_set(peg_registry *registry)
{
    struct set *set = NULL;
    bool is_there;

    for (size_t i = 0; i < peg_artifact_text.n_queries && !set; i++)
        set = set_behind(registry, peg_artifact_text.queries[i].name, &is_there);
    return set;
}

static bool has_items(const struct set *set, const struct peg__forge_item *items, size_t n_items)
{
    size_t i = 0;

    if (set->artifacts.n != n_items)
        return false;
    PEG__MAP_EACH(&set->artifacts, entry)
    {
        if (entry->value != items[i].artifact || !peg__str_eq(entry->name, items[i].handle))
            return false;
        i++;
    }
    return true;
}

/* Encodings may have been registered since. */
static bool has_properties(const struct set *set)
{
    struct peg__buf now = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    bool are_equal;

    write_properties(set, &now);
    are_equal = !now.status && peg__str_eq(peg__buf_view(&now), peg__buf_view(&set->properties));
    peg__buf_free(&now);
    return are_equal;
}

/* Is each query either offered or still shadowed? Somebody may have taken a tool away. */
static bool is_offered(const struct set *set, peg_registry *registry, size_t *ret_n_shadowed)
{
    size_t n_shadowed = 0;

    for (size_t i = 0; i < set->n_entries; i++) {
        bool is_there;
        struct set *other = set_behind(registry, set->entries[i].query->name, &is_there);
        const bool is_ours = other == set;
        const bool is_stale = other && !is_ours;

        set_unref(other);
        if (!is_there || is_stale)
            return false;
        n_shadowed += !is_ours;
    }
    *ret_n_shadowed = n_shadowed;
    return true;
}

static bool is_current(peg_registry *registry, const struct peg__forge_item *items, size_t n_items,
                       size_t *ret_n_shadowed)
{
    PEG_CLEANUP(set_unrefp) struct set *set = find_set(registry);

    if (!set || !has_items(set, items, n_items) || !has_properties(set) ||
        !is_offered(set, registry, ret_n_shadowed))
        return false;
    *ret_n_shadowed += set->n_clashes;
    return true;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static peg_status forge(peg_registry *registry, const struct peg__forge_item *items, size_t n_items,
                        size_t *ret_n_shadowed, peg_error *reterr)
{
    PEG_CLEANUP(set_unrefp) struct set *set = set_new();
    struct tools tools = {0};
    peg_status status;

    if (!set)
        return peg__fail_nomem(reterr);
    status = set_fill(set, items, n_items, reterr);
    if (status)
        return status;
    status = make_tools(set, &tools, reterr);
    if (status == PEG_OK)
        status = peg__registry_replace_owned(registry, PEG__FORGE_OWNER, tools.items, tools.n,
                                             ret_n_shadowed, reterr);
    if (status == PEG_OK)
        *ret_n_shadowed += set->n_clashes;
    tools_free(&tools);
    return status;
}

peg_status peg__forge(peg_registry *registry, const struct peg__forge_item *items, size_t n_items,
                      size_t *ret_n_shadowed, peg_error *reterr)
{
    size_t n_shadowed = 0;
    peg_status status = PEG_OK;

    if (n_items > PEG_LIMIT_FORGED_ARTIFACTS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "there are %zu artifacts, more than %d; drop "
                         "old ones",
                         n_items, PEG_LIMIT_FORGED_ARTIFACTS);
    if (n_items == 0)
        status = peg__registry_replace_owned(registry, PEG__FORGE_OWNER, NULL, 0, NULL, reterr);
    else if (!is_current(registry, items, n_items, &n_shadowed))
        status = forge(registry, items, n_items, &n_shadowed, reterr);
    if (status == PEG_OK && ret_n_shadowed)
        *ret_n_shadowed = n_shadowed;
    return status;
}
