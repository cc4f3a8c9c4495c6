/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_URI_H
#define PEG_SCHEMA_COMPILE_URI_H

/* URIs as names of schema resources: RFC 3986 resolution. Nothing is ever fetched. */

#include "base/arena.h"

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

#endif
