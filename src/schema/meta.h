/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_META_H
#define PEG_SCHEMA_META_H

/*
 * The standard meta-schemas, so that a $ref or $schema that names one never needs a network.
 * The table is made at build time by tools/embed from the files of schema/meta/.
 */

#include <stddef.h>

struct peg__meta_doc {
    const char *uri;  /* its $id, without fragment */
    const char *json; /* NUL-terminated */
    size_t json_len;
};

extern const struct peg__meta_doc peg__meta_docs[];
extern const size_t peg__n_meta_docs;

#endif
