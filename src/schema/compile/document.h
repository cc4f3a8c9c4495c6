/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_DOCUMENT_H
#define PEG_SCHEMA_COMPILE_DOCUMENT_H

/*
 * A schema document: JSON that compiled schemas point into. Shared and immutable, so a schema
 * outlives the peg_schema_docs it was compiled with.
 */

#include "pegboard/schema.h"

struct peg__document;

/* Takes over `json` and copies `uri`, on success only; one reference. NULL when out of memory. */
struct peg__document *peg__document_new(peg_str uri, peg_json_doc *json);
struct peg__document *peg__document_ref(struct peg__document *document);
struct peg__document *peg__document_unref(struct peg__document *document);

peg_str peg__document_uri(const struct peg__document *document);
const peg_json *peg__document_root(const struct peg__document *document);
size_t peg__document_bytes(const struct peg__document *document);

/* Does the document hold this value? */
bool peg__document_holds(const struct peg__document *document, const peg_json *value);

/* A deep copy of a value as a document of its own. */
peg_status peg__json_copy(const peg_json *value, peg_json_doc **ret_doc, peg_error *reterr);

/* ---- the documents that a host registered ---------------------------------- */

/* By exact URI, without fragment; borrowed, or NULL. */
struct peg__document *peg__docs_find(const peg_schema_docs *docs, peg_str uri);
/* The i-th in the order of adding, or NULL behind the last. */
struct peg__document *peg__docs_at(const peg_schema_docs *docs, size_t i);

#endif
