/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_MAKER_H
#define PEG_GENERATE_MAKER_H

/* The work of making types for one toolset: what there is already, and the first failure. Inner
 * header of generate/. */

#include "generate/place.h"

/* A type, and the place it was made of. */
struct gen_made {
    struct gen_place place;
    unsigned kinds;
    struct gen_type *type;
    struct gen_made *next;
};

/* In the arena, as types refer to its scalars. */
struct gen_maker {
    struct peg__arena *arena;
    const struct gen_options *options;
    const peg_json *document; /* errors point into it */
    const peg_json *root;     /* of the schema at hand: its references start here */
    const char *prefix;       /* of its types: "get_args" */
    peg_str tool;
    struct peg__map names;
    struct gen_made *made; /* of the schema at hand */
    struct gen_type scalars[GEN_RAW + 1];
    struct gen_type **last; /* where the next type is linked */
    struct gen_toolset *toolset;
    size_t n_types;
    unsigned depth;
    peg_status status; /* the first failure */
    peg_error *reterr;
};

/* ---- failing: all return NULL ---- */

struct gen_type *gen_fail_nomem(struct gen_maker *m);
struct gen_type *gen_fail_limit(struct gen_maker *m, const char *limit);
/* What cannot be typed: raw JSON if the options say so, else NULL and E_GENERATE_UNTYPED. */
struct gen_type *gen_refuse(struct gen_maker *m, const peg_json *schema, const char *reason);

/* ---- types ---- */

/* One with a name that is unique; it is linked when it is complete. */
struct gen_type *gen_new_type(struct gen_maker *m, enum gen_kind kind, const char *name);
struct gen_type *gen_complete(struct gen_maker *m, struct gen_type *type);
/* False: out of memory. */
bool gen_remember(struct gen_maker *m, const struct gen_place *place, unsigned kinds,
                  struct gen_type *type);
struct gen_type *gen_find_made(const struct gen_maker *m, const struct gen_place *place,
                               unsigned kinds);
struct gen_slot gen_slot_of(struct gen_type *type);
/* NULLABLE, ARRAY or MAP of an item; NULL for NULL. */
struct gen_type *gen_compound(struct gen_maker *m, enum gen_kind kind, struct gen_type *item);

/* ---- types of places: model.c ---- */

/* The type of what fits a place and is of one of the allowed kinds, named so if it is new. NULL:
 * m->status tells why. */
struct gen_type *gen_type_of(struct gen_maker *m, struct gen_place *place, unsigned allowed,
                             const char *name);
struct gen_type *gen_make_struct(struct gen_maker *m, const struct gen_place *place,
                                 const char *name);
/* A schema that adds members under a condition, or NULL. */
const peg_json *gen_find_conditional(const struct gen_place *place);

#endif
