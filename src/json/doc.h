/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_DOC_H
#define PEG_JSON_DOC_H

/* What a document is made of; for the files of json/ that make one: parse, build, YAML. */

#include "base/arena.h"
#include "pegboard/json.h"

/* Readable bytes behind every string of a document, its NUL included. */
enum { PEG_JSON_PADDING = 48 };

/* Owned. values[0] is the root. */
struct peg_json_doc {
    peg_json *values;
    size_t capacity; /* of values */
    char *text; /* parsed: the text, its strings unescaped in place; owned unless it is `room` */
    size_t text_capacity;
    struct peg__arena strings; /* built: every string, each with its padding */
    size_t n_room;
    char room[]; /* for the first text */
};

/* A document whose root is null, with so many bytes for a text. */
peg_json_doc *peg__json_doc_new(size_t n_room);

#endif
