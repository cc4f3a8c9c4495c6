/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_PLACE_H
#define PEG_GENERATE_PLACE_H

/*
 * The schemas that describe one place of a value together: one, what it refers to, and what its
 * allOf lists. Types are made of places, as two schemas may each say half of a type.
 */

#include "base/limits/generate.h"
#include "generate/model.h"

/* A value: copied freely. Schemas are borrowed from the document. */
struct gen_place {
    const peg_json *schemas[PEG_LIMIT_GENERATE_TOGETHER]; /* objects, each once */
    size_t n;
    /* oneOf and anyOf that were taken apart already. */
    const peg_json *skipped[PEG_LIMIT_GENERATE_TOGETHER];
    size_t n_skipped;
    peg_str ref_name;      /* of the schema that the place is a reference to; "": it is none */
    bool is_false;         /* no value fits */
    const peg_json *wrong; /* cannot be described: this, because... */
    const char *reason;
};

/* Adds a schema and all it refers to. `root` is what its references start from. */
void gen_place_add(struct gen_place *place, const peg_json *root, const peg_json *schema);
bool gen_place_is_same(const struct gen_place *a, const struct gen_place *b);

/* The kinds of values that fit, GEN_IS_...; as far as type, enum and const tell. A schema that
 * names properties or items and no type is taken for an object or an array. */
unsigned gen_place_kinds(const struct gen_place *place);
/* The first of the schemas that has it, its value; NULL: none has. */
const peg_json *gen_place_keyword(const struct gen_place *place, const char *keyword);
/* Is the member in `required` of one of them? */
bool gen_place_requires(const struct gen_place *place, peg_str name);
/* The place of a member that properties name. */
struct gen_place gen_place_property(const struct gen_place *place, const peg_json *root,
                                    peg_str name);
/* The strings that enum and const leave, each once, in the arena. *ret_n is SIZE_MAX if there is no
 * such keyword. False: out of memory. */
bool gen_place_strings(const struct gen_place *place, struct peg__arena *arena,
                       const peg_str **ret_strings, size_t *ret_n);
peg_str gen_place_description(const struct gen_place *place);
/* oneOf or anyOf that says something about types and is not skipped, or NULL. With a second one the
 * place is `wrong`. */
const peg_json *gen_place_choice(struct gen_place *place, const peg_json *root);
/* Do minimum and maximum, or enum and const, keep whole numbers within 64 bits with a sign? */
bool gen_place_is_int64(const struct gen_place *place);

#endif
