/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_PLAN_H
#define PEG_SCHEMA_COMPILE_PLAN_H

/*
 * What is to be filled in, and where: one plan for each schema that properties, items,
 * prefixItems, $ref and allOf lead to from the root and that has a default, or leads to one.
 * In the schema's arena.
 */

#include "schema/compile/names.h"

struct peg__fill_plan {
    const peg_json *value;   /* the schema's own `default`, or NULL */
    struct peg__names names; /* of properties with a plan; `node` is its index in members */
    struct peg__fill_plan **members;
    const peg_json **keys; /* of properties, in the order of the schema */
    uint32_t n_members;
    struct peg__fill_plan **prefix;
    uint32_t n_prefix;
    struct peg__fill_plan *items; /* for items after the prefix, or NULL */
    struct peg__fill_plan **also; /* $ref and allOf: for the same value */
    uint32_t n_also;
    struct peg__fill_plan *kept; /* while compiling: this one, if it is worth keeping */
    bool is_useful;              /* there is a default somewhere below or beside */
};

/* Fills in what is missing by a plan, which may be NULL; see peg_schema_fill(). */
peg_status peg__fill(const struct peg__fill_plan *plan, const peg_json *value,
                     peg_json_doc **ret_doc, peg_error *reterr);

#endif
