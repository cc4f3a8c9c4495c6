/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_INDEX_H
#define PEG_SCHEMA_COMPILE_INDEX_H

/*
 * What a $ref can lead to: every resource ($id) and anchor of the documents that a compile has
 * looked at so far. Documents are added when something first refers to them. It lives as long
 * as one compile; what it found stays in the documents.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "schema/compile/document.h"
#include "schema/compile/keyword.h"

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

/* One step of a JSON Pointer: `token` starts with '/'. PEG_ENOMEM, or another status where there
 * is no such place. */
peg_status peg__index_step(struct peg__index *index, const peg_json *value, peg_str token,
                           const peg_json **ret_value);

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

/* Appends the pointer of a value, after the URI of its document if that has one. */
void peg__index_locate(const struct peg__index *index, const peg_json *value, struct peg__buf *out);

#endif
