/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Indexing a document is one walk over its schemas, in no particular order, with a stack of
 * what is still to be visited. Only places that the dialect knows to hold schemas are entered:
 * an $id inside an enum or an unknown keyword names nothing.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/compile.h"
#include "schema/compile/program.h"
#include "json/json.h"

enum { FEW_MEMBERS = 32, MAX_TABLES = 100000, MAX_TOKEN = 240, PADDING = 16 };

static bool fill_table(struct peg__index *index, const peg_json *object, struct peg__names *names)
{
    struct peg__name *list = peg__alloc_zero(object->len, sizeof(*list));
    uint32_t n = 0;
    bool filled;

    if (!list)
        return false;
    PEG_JSON_EACH_MEMBER (object, key)
        list[n++] =
            (struct peg__name){.text = peg_json_str(key), .node = (uint32_t)(key + 1 - object)};
    filled = peg__names_init(names, list, n, &index->arena);
    peg__free(list);
    return filled;
}

/* NULL when out of memory. */
static struct peg__names *table_of(struct peg__index *index, const peg_json *object)
{
    const peg_str address = {(const char *)&object, sizeof(object)};
    struct peg__names *names = peg__map_get(&index->tables, address);

    if (names)
        return names;
    index->tables.max = MAX_TABLES;
    names = peg__arena_alloc(&index->arena, sizeof(*names));
    if (!names || !fill_table(index, object, names) || peg__map_add(&index->tables, address, names))
        return NULL;
    return names;
}

static peg_status step_into(struct peg__index *index, const peg_json *value, peg_str token,
                            const peg_json **ret_value)
{
    char padded[MAX_TOKEN + PADDING] = {0};
    const struct peg__names *names;
    const struct peg__slot *slot;
    peg_json key = {.kind = PEG_JSON_STRING, .len = (uint32_t)token.len - 1};

    if (value->kind != PEG_JSON_OBJECT || value->len <= FEW_MEMBERS || token.len > MAX_TOKEN ||
        memchr(token.ptr, '~', token.len))
        return peg_json_pointer(value, token, ret_value, NULL);
    names = table_of(index, value);
    if (!names)
        return PEG_ENOMEM;
    memcpy(padded, token.ptr + 1, key.len);
    key.u.ptr = padded;
    slot = peg__names_find(names, &key);
    if (!slot)
        return PEG_ENOTFOUND;
    *ret_value = value + slot->node;
    return PEG_OK;
}

enum { MAX_DIALECT_HOPS = 8, MAX_WHERE = 4096 };

void peg__index_report_place(const struct peg__index *index, const peg_json *value,
                             peg_error *reterr)
{
    struct peg__buf where = PEG__BUF(MAX_WHERE);

    if (!reterr || reterr->status == PEG_ENOMEM)
        return;
    peg__documents_locate(index->documents, index->n_documents, value, &where);
    peg__error_where(reterr, peg__buf_view(&where));
    peg__buf_free(&where);
}

/* ---- dialects: $schema, or a meta-schema that the host registered -------------------- */

static peg_status fail_dialect(peg_str uri, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_DIALECT",
                     "the dialect '%.*s' is unknown; use https://json-schema.org/draft/2020-12/"
                     "schema or http://json-schema.org/draft-07/schema#, or register its "
                     "meta-schema",
                     PEG_ARG(uri));
}

/* A meta-schema that the host registered: its own $schema decides, its $vocabulary narrows. */
static peg_status custom_dialect(const struct peg__index *index, peg_str uri,
                                 struct peg__dialect *ret_dialect, peg_error *reterr)
{
    const peg_json *vocabulary = NULL;
    const peg_json *unknown;
    const peg_str asked = uri;

    for (int hops = 0; hops < MAX_DIALECT_HOPS; hops++) {
        struct peg__document *meta = peg__docs_find(index->docs, peg__uri_split(uri).uri);
        const peg_json *next = meta ? peg_json_get(peg__document_root(meta), "$schema") : NULL;
        const peg_json *listed =
            meta ? peg_json_get(peg__document_root(meta), "$vocabulary") : NULL;

        if (!next || next->kind != PEG_JSON_STRING)
            return fail_dialect(asked, reterr);
        if (!vocabulary && listed && listed->kind == PEG_JSON_OBJECT)
            vocabulary = listed;
        uri = peg_json_str(next);
        if (!peg__dialect_by_uri(uri, ret_dialect))
            continue;
        if (vocabulary && !peg__dialect_narrow(ret_dialect, vocabulary, &unknown))
            return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_DIALECT",
                             "the dialect '%.*s' requires the vocabulary '%.*s', which is unknown",
                             PEG_ARG(asked), PEG_ARG(peg_json_str(unknown)));
        return PEG_OK;
    }
    return fail_dialect(asked, reterr);
}

peg_status peg__index_dialect(const struct peg__index *index, const peg_json *schema,
                              const struct peg__dialect *outer, struct peg__dialect *ret_dialect,
                              peg_error *reterr)
{
    const peg_json *uri = schema->kind == PEG_JSON_OBJECT ? peg_json_get(schema, "$schema") : NULL;
    peg_status status = PEG_OK;

    if (!uri) {
        *ret_dialect = *outer;
        return PEG_OK;
    }
    if (uri->kind != PEG_JSON_STRING)
        status = peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD", "'$schema' must be a string");
    else if (!peg__dialect_by_uri(peg_json_str(uri), ret_dialect))
        status = custom_dialect(index, peg_json_str(uri), ret_dialect, reterr);
    if (status)
        peg__index_report_place(index, uri, reterr);
    return status;
}

enum {
    MAX_NAMES = 200000,
    MAX_DYNAMIC_ANCHORS = 32,
    /* Every relative $id and $ref is joined to its base: the base's length counts each time. */
    MAX_URI_BYTES = 4096,
    MAX_ALL_URI_BYTES = 16 << 20,
};

/* ---- the walk ---------------------------------------------------------------- */

struct visit {
    const peg_json *schema;
    struct peg__resource *resource; /* that the schema is in */
    unsigned depth;
};

struct walk {
    struct peg__index *index;
    struct visit *stack;
    size_t n;
    size_t capacity;
    struct visit now;
    peg_status status; /* of push_schema() */
    peg_error *reterr;
};

/* A peg__visit_schema: the schema is visited later. */
static bool push_schema(const peg_json *schema, void *user)
{
    struct walk *w = user;

    if (schema->kind != PEG_JSON_OBJECT)
        return true; /* booleans hold nothing; the compiler reports other kinds */
    if (w->now.depth >= w->index->max_depth) {
        w->status =
            peg__fail(w->reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                      "subschemas nest deeper than max_depth = %u; use $ref to flatten them",
                      w->index->max_depth);
        return false;
    }
    if (!PEG__RESERVE(w->stack, w->n + 1, w->capacity)) {
        w->status = peg__fail_nomem(w->reterr);
        return false;
    }
    w->stack[w->n++] = (struct visit){schema, w->now.resource, w->now.depth + 1};
    return true;
}

/* ---- resources and anchors --------------------------------------------------- */

static peg_str address(const peg_json *const *schema)
{
    return peg__strn((const char *)schema, sizeof(*schema));
}

struct peg__resource *peg__index_resource_at(const struct peg__index *index, const peg_json *schema)
{
    return peg__map_get(&index->roots, address(&schema));
}

static peg_status fail_map(peg_status status, peg_error *reterr)
{
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, status, "E_SCHEMA_TOO_LARGE",
                         "the schemas have more than %d names; split them", MAX_NAMES);
    return peg__fail_nomem(reterr);
}

static peg_status fail_uri(peg_str uri, peg_error *reterr)
{
    if (uri.len > MAX_URI_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                         "the URI '%.*s...' has more than %d bytes; shorten it", 40, uri.ptr,
                         MAX_URI_BYTES);
    return peg__fail(reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                     "the schemas' URIs have more than %d bytes together; shorten them",
                     MAX_ALL_URI_BYTES);
}

/* Does the schema that has this URI stand in the document that is being indexed? */
static bool is_in_same_document(const struct peg__index *index, peg_str uri, const peg_json *root)
{
    const struct peg__resource *taken = peg__map_get(&index->resources, uri);
    const struct peg__document *document = index->documents[index->n_documents - 1];

    return taken->root != root && peg__document_holds(document, taken->root) &&
           peg__document_holds(document, root);
}

static peg_status add_resource(struct peg__index *index, peg_str uri, const peg_json *root,
                               struct peg__resource **ret_resource, peg_error *reterr)
{
    struct peg__resource *resource;
    peg_status status;

    index->uri_bytes += uri.len;
    if (uri.len > MAX_URI_BYTES || index->uri_bytes > MAX_ALL_URI_BYTES)
        return fail_uri(uri, reterr);
    resource = peg__arena_alloc_zero(&index->arena, sizeof(*resource));
    if (!resource)
        return peg__fail_nomem(reterr);
    *resource = (struct peg__resource){.uri = uri, .root = root, .number = index->n_resources++};
    status = peg__map_put(&index->roots, address(&root), resource, NULL);
    if (status)
        return fail_map(status, reterr);
    status = peg__map_add(&index->resources, uri, resource);
    if (status == PEG_EEXISTS && is_in_same_document(index, uri, root))
        return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_URI_TAKEN",
                         "two schemas of the document have the URI '%.*s'; rename one",
                         PEG_ARG(uri));
    /* Of two documents the first stays: which is meant is the host's to say. */
    if (status && status != PEG_EEXISTS)
        return fail_map(status, reterr);
    *ret_resource = resource;
    return PEG_OK;
}

static peg_str anchor_key(const struct peg__resource *resource, peg_str name,
                          char (*key)[PEG_LIMIT_PATH_BYTES])
{
    const int len = snprintf(*key, sizeof(*key), "%u#%.*s", resource->number, PEG_ARG(name));

    return peg__strn(*key, len < (int)sizeof(*key) ? (size_t)len : sizeof(*key) - 1);
}

struct peg__anchor *peg__index_anchor(const struct peg__index *index,
                                      const struct peg__resource *resource, peg_str name)
{
    char key[PEG_LIMIT_PATH_BYTES];

    return peg__map_get(&index->anchors, anchor_key(resource, name, &key));
}

static peg_status add_anchor(struct walk *w, peg_str name, bool is_dynamic)
{
    struct peg__index *index = w->index;
    struct peg__resource *resource = w->now.resource;
    struct peg__anchor *anchor = peg__arena_alloc_zero(&index->arena, sizeof(*anchor));
    char key[PEG_LIMIT_PATH_BYTES];
    peg_status status;

    if (!anchor)
        return peg__fail_nomem(w->reterr);
    *anchor = (struct peg__anchor){
        .name = name, .target = w->now.schema, .resource = resource, .is_dynamic = is_dynamic};
    status = peg__map_add(&index->anchors, anchor_key(resource, name, &key), anchor);
    if (status == PEG_EEXISTS && peg__index_anchor(index, resource, name)->target != w->now.schema)
        return peg__fail(w->reterr, PEG_ESCHEMA, "E_SCHEMA_URI_TAKEN",
                         "two schemas of one resource have the anchor '%.*s'; rename one",
                         PEG_ARG(name));
    if (status == PEG_EEXISTS)
        return PEG_OK;
    if (status)
        return fail_map(status, w->reterr);
    if (is_dynamic) {
        if (resource->n_dynamic++ == MAX_DYNAMIC_ANCHORS)
            return peg__fail(w->reterr, PEG_ELIMIT, "E_SCHEMA_TOO_LARGE",
                             "one resource has more than %d dynamic anchors; use $anchor",
                             MAX_DYNAMIC_ANCHORS);
        anchor->next_dynamic = resource->dynamic;
        resource->dynamic = anchor;
    }
    return PEG_OK;
}

/* $anchor, $dynamicAnchor, $recursiveAnchor and the fragment-only $id of older drafts. */
static peg_status note_anchors(struct walk *w, const struct peg__subschema *sub, peg_str id)
{
    static const enum peg__keyword names[] = {KW_ANCHOR, KW_DYNAMIC_ANCHOR};
    const struct peg__reference split = peg__uri_split(id);
    peg_status status = PEG_OK;

    for (int i = 0; i < 2 && !status; i++)
        if (peg__has(sub, names[i]) && peg__value_of(sub, names[i])->kind == PEG_JSON_STRING)
            status = add_anchor(w, peg_json_str(peg__value_of(sub, names[i])),
                                names[i] == KW_DYNAMIC_ANCHOR);
    if (!status && split.fragment.len > 0 && w->now.resource->dialect.id <= PEG_DIALECT_DRAFT7)
        status = add_anchor(w, split.fragment, false);
    if (w->now.schema == w->now.resource->root && peg__has(sub, KW_RECURSIVE_ANCHOR))
        w->now.resource->is_recursive = peg_json_is_true(peg__value_of(sub, KW_RECURSIVE_ANCHOR));
    return status;
}

/* ---- one schema of the walk ----------------------------------------------------- */

/* The identifier of a schema, "" if it has none. */
static peg_str id_of(const struct peg__subschema *sub)
{
    const enum peg__keyword keyword = peg__has(sub, KW_ID_DRAFT4) ? KW_ID_DRAFT4 : KW_ID;

    if (peg__has(sub, keyword) && peg__value_of(sub, keyword)->kind == PEG_JSON_STRING)
        return peg_json_str(peg__value_of(sub, keyword));
    return peg__str("");
}

/* A schema with an $id starts a resource, which may be in another dialect. */
static peg_status enter_resource(struct walk *w, struct peg__subschema *sub, peg_str *id)
{
    struct peg__resource *outer = w->now.resource;
    struct peg__dialect dialect = outer->dialect;
    peg_str uri;
    peg_status status;

    if (w->now.schema != outer->root) {
        status = peg__index_dialect(w->index, w->now.schema, &outer->dialect, &dialect, w->reterr);
        if (status)
            return status;
        if (dialect.id != outer->dialect.id) {
            peg__subschema_read(w->now.schema, &dialect, sub);
            *id = id_of(sub);
        }
    }
    uri = peg__uri_split(*id).uri;
    if (uri.len == 0 || w->now.schema == outer->root)
        return PEG_OK;
    uri = peg__uri_resolve(&w->index->arena, outer->uri, uri);
    if (!uri.ptr)
        return peg__fail_nomem(w->reterr);
    status = add_resource(w->index, uri, w->now.schema, &w->now.resource, w->reterr);
    if (status == PEG_OK)
        w->now.resource->dialect = dialect;
    return status;
}

static peg_status visit_schema(struct walk *w)
{
    struct peg__subschema sub;
    const struct peg__dialect *dialect;
    peg_status status;
    peg_str id;

    peg__subschema_read(w->now.schema, &w->now.resource->dialect, &sub);
    id = id_of(&sub);
    status = enter_resource(w, &sub, &id);
    if (!status)
        status = note_anchors(w, &sub, id);

    dialect = &w->now.resource->dialect;
    for (int i = 0; i < KW_COUNT && !status; i++)
        if (peg__has(&sub, (enum peg__keyword)i) &&
            !peg__visit_subschemas(peg__keyword_shape((enum peg__keyword)i, dialect),
                                   peg__value_of(&sub, (enum peg__keyword)i), push_schema, w))
            status = w->status;
    return status;
}

static peg_status walk_document(struct peg__index *index, struct peg__resource *root,
                                peg_error *reterr)
{
    struct walk w = {.index = index, .now = {.resource = root}, .reterr = reterr};
    peg_status status = push_schema(root->root, &w) ? PEG_OK : w.status;

    while (!status && w.n > 0) {
        w.now = w.stack[--w.n];
        status = visit_schema(&w);
    }
    if (status && reterr && !reterr->where[0])
        peg__index_report_place(index, w.now.schema ? w.now.schema : root->root, reterr);
    peg__free(w.stack);
    return status;
}

/* ---- documents -------------------------------------------------------------------- */

static peg_status keep_document(struct peg__index *index, struct peg__document *document)
{
    if (!PEG__RESERVE(index->documents, index->n_documents + 1, index->documents_capacity))
        return PEG_ENOMEM;
    index->documents[index->n_documents++] = peg__document_ref(document);
    return PEG_OK;
}

/* The URI of a document's root: its own $id, resolved against where it was found. */
static peg_str root_uri(struct peg__index *index, const struct peg__dialect *dialect,
                        const peg_json *root, peg_str uri)
{
    struct peg__subschema sub;

    if (root->kind != PEG_JSON_OBJECT)
        return uri;
    peg__subschema_read(root, dialect, &sub);
    return peg__uri_resolve(&index->arena, uri, peg__uri_split(id_of(&sub)).uri);
}

peg_status peg__index_add(struct peg__index *index, struct peg__document *document, peg_str uri,
                          struct peg__resource **ret_root, peg_error *reterr)
{
    const peg_json *root = peg__document_root(document);
    struct peg__resource *resource = NULL;
    struct peg__dialect dialect;
    peg_str own;
    peg_status status;

    index->resources.max = index->anchors.max = index->roots.max = MAX_NAMES;
    if (keep_document(index, document))
        return peg__fail_nomem(reterr);
    status = peg__index_dialect(index, root, &index->dialect, &dialect, reterr);
    if (status)
        return status;
    own = root_uri(index, &dialect, root, uri);
    if (!own.ptr)
        return peg__fail_nomem(reterr);
    status = add_resource(index, own, root, &resource, reterr);
    if (status || !resource) /* one implies the other, but the analyzer cannot know */
        return status;
    resource->dialect = dialect;
    /* Where it was found is a name for it too. */
    status = peg__map_add(&index->resources, uri, resource);
    if (status && status != PEG_EEXISTS)
        return fail_map(status, reterr);
    status = walk_document(index, resource, reterr);
    if (status == PEG_OK)
        *ret_root = resource;
    return status;
}

void peg__index_free(struct peg__index *index)
{
    for (size_t i = 0; i < index->n_documents; i++)
        peg__document_unref(index->documents[i]);
    peg__free(index->documents);
    peg__map_free(&index->resources);
    peg__map_free(&index->anchors);
    peg__map_free(&index->roots);
    peg__map_free(&index->tables);
    peg__arena_free(&index->scratch);
    peg__arena_free(&index->arena);
}

static peg_status add_meta(struct peg__index *index, const struct peg__meta_doc *meta,
                           peg_error *reterr)
{
    const peg_str uri = peg__str(meta->uri);
    struct peg__document *document;
    struct peg__resource *root;
    peg_json_doc *json;
    peg_status status = peg_json_parse(peg__strn(meta->json, meta->json_len), NULL, &json, reterr);

    if (status)
        return status;
    document = peg__document_new(uri, json);
    if (!document)
        return peg__fail_nomem(reterr);
    status = peg__index_add(index, document, peg__document_uri(document), &root, reterr);
    peg__document_unref(document);
    return status;
}

/* Registered documents may hold the resource under an $id inside: look at all of them, once. */
static peg_status add_registered(struct peg__index *index, peg_error *reterr)
{
    struct peg__document *document;
    struct peg__resource *root;
    peg_status status = PEG_OK;

    index->has_all_docs = true;
    for (size_t i = 0; !status && (document = peg__docs_at(index->docs, i)); i++)
        if (!peg__map_find(&index->resources, peg__document_uri(document)))
            status = peg__index_add(index, document, peg__document_uri(document), &root, reterr);
    return status;
}

/* Brings in the document that holds a URI, if there is one. */
static peg_status load_document(struct peg__index *index, peg_str uri, peg_error *reterr)
{
    struct peg__document *document = peg__docs_find(index->docs, uri);
    struct peg__resource *root;

    if (document)
        return peg__index_add(index, document, peg__document_uri(document), &root, reterr);
    for (size_t i = 0; i < peg__n_meta_docs; i++)
        if (peg__str_is(uri, peg__meta_docs[i].uri))
            return add_meta(index, &peg__meta_docs[i], reterr);
    return index->has_all_docs ? PEG_OK : add_registered(index, reterr);
}

/* ---- following a reference ----------------------------------------------------------- */

static peg_status fail_ref(peg_str reference, const char *why, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ESCHEMA, "E_SCHEMA_REF", "the reference '%.*s' leads nowhere: %s",
                     PEG_ARG(reference), why);
}

/* Walks a pointer, noting the resources on the way: what it leads to is read in the innermost. */
static peg_status follow_pointer(struct peg__index *index, peg_str pointer,
                                 struct peg__place *place)
{
    while (pointer.len > 0) {
        size_t end = 1;
        const peg_json *next;
        peg_status status;

        while (end < pointer.len && pointer.ptr[end] != '/')
            end++;
        status = step_into(index, place->schema, peg__strn(pointer.ptr, end), &next);
        if (status)
            return status;
        place->schema = next;
        if (peg__index_resource_at(index, next))
            place->resource = peg__index_resource_at(index, next);
        pointer = peg__str_from(pointer, end);
    }
    return PEG_OK;
}

static peg_status follow_fragment(struct peg__index *index, peg_str reference, peg_str fragment,
                                  struct peg__place *place, peg_error *reterr)
{
    fragment = peg__uri_decode(&index->scratch, fragment);
    if (!fragment.ptr)
        return peg__fail_nomem(reterr);
    if (fragment.len == 0)
        return PEG_OK;
    if (fragment.ptr[0] == '/') {
        const peg_status status = follow_pointer(index, fragment, place);

        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        return status ? fail_ref(reference, "there is no such place in that document", reterr)
                      : PEG_OK;
    }
    place->anchor = peg__index_anchor(index, place->resource, fragment);
    if (!place->anchor)
        return fail_ref(reference, "that resource has no anchor of that name", reterr);
    place->schema = place->anchor->target;
    return PEG_OK;
}

peg_status peg__index_resolve(struct peg__index *index, const struct peg__resource *from,
                              peg_str reference, struct peg__place *ret_place, peg_error *reterr)
{
    const struct peg__reference split = peg__uri_split(reference);
    struct peg__place place = {0};
    peg_status status;
    peg_str uri;

    if (split.uri.len > MAX_URI_BYTES)
        return fail_uri(split.uri, reterr);
    peg__arena_reset(&index->scratch);
    uri = peg__uri_resolve(&index->scratch, from->uri, split.uri);
    if (!uri.ptr)
        return peg__fail_nomem(reterr);
    if (split.uri.len == 0) {
        place.resource = peg__index_resource_at(index, from->root);
    } else {
        place.resource = peg__map_get(&index->resources, uri);
        if (!place.resource) {
            status = load_document(index, uri, reterr);
            if (status)
                return status;
            place.resource = peg__map_get(&index->resources, uri);
        }
    }
    if (!place.resource)
        return fail_ref(reference, "register the document it names; nothing is ever fetched",
                        reterr);
    place.schema = place.resource->root;
    status = follow_fragment(index, reference, split.fragment, &place, reterr);
    if (status == PEG_OK)
        *ret_place = place;
    return status;
}
