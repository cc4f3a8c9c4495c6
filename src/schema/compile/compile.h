/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_COMPILE_H
#define PEG_SCHEMA_COMPILE_COMPILE_H

/*
 * What a schema is made of: keywords and dialects, URIs, documents, and the index of what a $ref
 * can lead to. internal.h has the compiler itself, program.h what it makes.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "pegboard/schema.h"

/* ---- keywords -------------------------------------------------------------- */

enum peg__keyword {
    KW_ADDITIONAL_ITEMS,
    KW_ADDITIONAL_PROPERTIES,
    KW_ALL_OF,
    KW_ANCHOR,
    KW_ANY_OF,
    KW_CONST,
    KW_CONTAINS,
    KW_CONTENT_ENCODING,
    KW_CONTENT_MEDIA_TYPE,
    KW_CONTENT_SCHEMA,
    KW_DEFAULT,
    KW_DEFINITIONS,
    KW_DEFS,
    KW_DEPENDENCIES,
    KW_DEPENDENT_REQUIRED,
    KW_DEPENDENT_SCHEMAS,
    KW_DYNAMIC_ANCHOR,
    KW_DYNAMIC_REF,
    KW_ELSE,
    KW_ENUM,
    KW_EXCLUSIVE_MAXIMUM,
    KW_EXCLUSIVE_MINIMUM,
    KW_FORMAT,
    KW_ID,
    KW_ID_DRAFT4,
    KW_IF,
    KW_ITEMS,
    KW_MAX_CONTAINS,
    KW_MAX_ITEMS,
    KW_MAX_LENGTH,
    KW_MAX_PROPERTIES,
    KW_MAXIMUM,
    KW_MIN_CONTAINS,
    KW_MIN_ITEMS,
    KW_MIN_LENGTH,
    KW_MIN_PROPERTIES,
    KW_MINIMUM,
    KW_MULTIPLE_OF,
    KW_NOT,
    KW_ONE_OF,
    KW_PATTERN,
    KW_PATTERN_PROPERTIES,
    KW_PREFIX_ITEMS,
    KW_PROPERTIES,
    KW_PROPERTY_DEPENDENCIES,
    KW_PROPERTY_NAMES,
    KW_RECURSIVE_ANCHOR,
    KW_RECURSIVE_REF,
    KW_REF,
    KW_REQUIRED,
    KW_SCHEMA,
    KW_THEN,
    KW_TYPE,
    KW_UNEVALUATED_ITEMS,
    KW_UNEVALUATED_PROPERTIES,
    KW_UNIQUE_ITEMS,
    KW_VOCABULARY,
    KW_COUNT,
};

/* Where the subschemas of a keyword stand. */
enum peg__shape {
    SHAPE_NONE,
    SHAPE_SCHEMA,
    SHAPE_ARRAY,           /* of schemas */
    SHAPE_MAP,             /* name to schema */
    SHAPE_SCHEMA_OR_ARRAY, /* `items` before 2020-12 */
    SHAPE_MAP_OR_NAMES,    /* `dependencies`: a schema or an array of names each */
    SHAPE_MAP_OF_MAPS,     /* `propertyDependencies` */
};

/* A set of keywords, one bit each. */
typedef uint64_t peg__keywords;

_Static_assert(KW_COUNT <= 64, "peg__keywords has 64 bits");

/* How a schema document is read: a standard dialect, or one narrowed by $vocabulary. */
struct peg__dialect {
    peg_dialect id;
    peg__keywords keywords;
    bool asserts_format;   /* by itself; the compile option comes first */
    bool asserts_content;  /* contentEncoding and contentMediaType, in draft-07 */
    bool ref_stands_alone; /* up to draft-07, $ref hides its siblings */
};

/* A standard dialect. */
struct peg__dialect peg__dialect_of(peg_dialect id);
/* The dialect that a $schema URI names, its empty fragment aside; false if none does. */
bool peg__dialect_by_uri(peg_str uri, struct peg__dialect *ret_dialect);
/* Narrows a dialect to what a meta-schema's $vocabulary lists. False if it demands an
 * unknown one; *ret_unknown is then its key. */
bool peg__dialect_narrow(struct peg__dialect *dialect, const peg_json *vocabulary,
                         const peg_json **ret_unknown);

const char *peg__keyword_name(enum peg__keyword keyword);
enum peg__shape peg__keyword_shape(enum peg__keyword keyword, const struct peg__dialect *dialect);

/* Returns whether to go on. */
typedef bool peg__visit_schema(const peg_json *schema, void *user);
/* Visits each place where the value of a keyword holds a schema. False if a visit ended it. */
bool peg__visit_subschemas(enum peg__shape shape, const peg_json *value, peg__visit_schema *visit,
                           void *user);

/* One schema object by keyword: the key of each that it has and the dialect knows, else NULL. */
struct peg__subschema {
    const peg_json *key[KW_COUNT];
    peg__keywords present;
};

void peg__subschema_read(const peg_json *object, const struct peg__dialect *dialect,
                         struct peg__subschema *ret_sub);

static inline bool peg__has(const struct peg__subschema *sub, enum peg__keyword keyword)
{
    return (sub->present >> keyword) & 1;
}

/* The value of a keyword that is present. */
static inline const peg_json *peg__value_of(const struct peg__subschema *sub,
                                            enum peg__keyword keyword)
{
    return sub->key[keyword] + 1;
}

/* Keywords that are present and check or apply something, $ref aside. */
peg__keywords peg__active_keywords(const struct peg__subschema *sub);

/* Members of a schema that are no keyword and one edit from one: "requird". JSON Schema has them
 * ignored, so that a schema with one compiles, and accepts what it should not. */

/* `key` is in the schema; `keyword` is static. */
typedef void peg__found_typo(const peg_json *key, const char *keyword, void *user);

/* Looks where a schema stands, not at names of properties nor into enum, const or examples. */
void peg__schema_typos(const peg_json *schema, peg__found_typo *found, void *user);

/* ---- URIs ------------------------------------------------------------------ */

/* URIs as names of schema resources: RFC 3986 resolution. Nothing is ever fetched. */

/* A reference cut in two at its '#'. */
struct peg__reference {
    peg_str uri;      /* without fragment, may be empty */
    peg_str fragment; /* without '#', percent-encoding as written */
    bool has_fragment;
};

struct peg__reference peg__uri_split(peg_str reference);

/* Does it have a scheme, and no fragment but an empty one? */
bool peg__uri_is_absolute(peg_str uri);

/* Resolves `reference` (without fragment) against `base` (absolute, or empty). The result is in
 * the arena, or one of the two arguments. ptr is NULL when out of memory. */
peg_str peg__uri_resolve(struct peg__arena *arena, peg_str base, peg_str reference);

/* Percent-decodes; in the arena, or the argument itself if there is nothing to decode. */
peg_str peg__uri_decode(struct peg__arena *arena, peg_str fragment);

/* ---- documents ------------------------------------------------------------- */

/*
 * A schema document: JSON that compiled schemas point into. Shared and immutable, so a schema
 * outlives the peg_schema_docs it was compiled with.
 */

struct peg__document;

/* Copies `uri` and takes ownership of `json`; one reference. NULL when out of memory: `json` is
 * then freed. */
struct peg__document *peg__document_new(peg_str uri, peg_json_doc *json);
struct peg__document *peg__document_ref(struct peg__document *document);
struct peg__document *peg__document_unref(struct peg__document *document);

peg_str peg__document_uri(const struct peg__document *document);
const peg_json *peg__document_root(const struct peg__document *document);
size_t peg__document_bytes(const struct peg__document *document);

/* Does the document hold this value? */
bool peg__document_holds(const struct peg__document *document, const peg_json *value);
/* Appends the pointer of a value in one of n documents, after the document's URI if it has one. */
void peg__documents_locate(struct peg__document *const *documents, size_t n, const peg_json *value,
                           struct peg__buf *out);

/* ---- the documents that a host registered ---------------------------------- */

/* By exact URI, without fragment; borrowed, or NULL. */
struct peg__document *peg__docs_find(const peg_schema_docs *docs, peg_str uri);
/* The i-th in the order of adding, or NULL behind the last. */
struct peg__document *peg__docs_at(const peg_schema_docs *docs, size_t i);

/* ---- meta-schemas ---------------------------------------------------------- */

/*
 * The standard meta-schemas, so that a $ref or $schema that names one never needs a network.
 * The table is made at build time by tools/embed from the files of schema/meta/.
 */

struct peg__meta_doc {
    const char *uri;  /* its $id, without fragment */
    const char *json; /* NUL-terminated */
    size_t json_len;
};

extern const struct peg__meta_doc peg__meta_docs[];
extern const size_t peg__n_meta_docs;

/* ---- the index ------------------------------------------------------------- */

/*
 * What a $ref can lead to: every resource ($id) and anchor of the documents that a compile has
 * read so far. Documents are added when something first refers to them. It lives as long
 * as one compile; what it found stays in the documents.
 */

/* A schema with a URI of its own, or the root of a document. In the index's arena. */
struct peg__resource {
    peg_str uri;
    const peg_json *root;
    struct peg__dialect dialect;
    struct peg__anchor *dynamic; /* its dynamic anchors, a list */
    unsigned n_dynamic;
    bool is_recursive; /* $recursiveAnchor: true */
    unsigned number;
};

/* A named place. In the index's arena. */
struct peg__anchor {
    peg_str name;
    const peg_json *target;
    struct peg__resource *resource;
    struct peg__anchor *next_dynamic;
    bool is_dynamic;
};

/* Where a reference leads: a schema, and the resource it is read in. */
struct peg__place {
    const peg_json *schema;
    struct peg__resource *resource;
    struct peg__anchor *anchor; /* if it was found by one, else NULL */
};

struct peg__index {
    const peg_schema_docs *docs;
    struct peg__dialect dialect; /* of documents without $schema */
    struct peg__arena arena;
    struct peg__map resources;        /* URI to struct peg__resource */
    struct peg__map anchors;          /* "number#name" to struct peg__anchor */
    struct peg__map roots;            /* bytes of a value's address to struct peg__resource */
    struct peg__map tables;           /* bytes of an object's address to struct peg__names */
    struct peg__document **documents; /* one reference each, in the order of adding */
    size_t n_documents;
    size_t documents_capacity;
    struct peg__arena scratch; /* for one resolving */
    size_t uri_bytes;          /* of all resources */
    unsigned n_resources;
    unsigned max_depth;
    bool has_all_docs; /* every registered document was added */
};

/* Adds a document with its own reference; *ret_root is the resource of its root. */
peg_status peg__index_add(struct peg__index *index, struct peg__document *document, peg_str uri,
                          struct peg__resource **ret_root, peg_error *reterr);
void peg__index_free(struct peg__index *index);

/* The resource that starts at this schema, or NULL. */
struct peg__resource *peg__index_resource_at(const struct peg__index *index,
                                             const peg_json *schema);

/* Follows a reference from within a resource. PEG_ESCHEMA (E_SCHEMA_REF) if it leads nowhere. */
peg_status peg__index_resolve(struct peg__index *index, const struct peg__resource *from,
                              peg_str reference, struct peg__place *ret_place, peg_error *reterr);

/* An anchor of a resource, or NULL. */
struct peg__anchor *peg__index_anchor(const struct peg__index *index,
                                      const struct peg__resource *resource, peg_str name);

/* The dialect of a schema: what its $schema names, or the one around it. PEG_ESCHEMA
 * (E_SCHEMA_DIALECT, E_SCHEMA_KEYWORD) with its place. */
peg_status peg__index_dialect(const struct peg__index *index, const peg_json *schema,
                              const struct peg__dialect *outer, struct peg__dialect *ret_dialect,
                              peg_error *reterr);
/* Sets the place of an error. */
void peg__index_report_place(const struct peg__index *index, const peg_json *value,
                             peg_error *reterr);

#endif
