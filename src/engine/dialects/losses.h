/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_LOSSES_H
#define PEG_ENGINE_DIALECTS_LOSSES_H

/*
 * A list of what a provider does not take. Adding needs no checks: the first failure sticks and is
 * told by `status`. Owned; one thread at a time.
 */

#include "base/arena.h"
#include "pegboard/definitions.h"

struct peg_definition_losses {
    struct peg__arena arena;    /* of all strings */
    peg_definition_loss *items; /* owned */
    size_t n;
    size_t capacity;
    peg_str tool; /* the copy of the tool's name that was made last */
    peg_status status;
};

/* NULL when out of memory. */
peg_definition_losses *peg__losses_new(void);
/* Strings are copied; `what` is static. Does nothing if losses is NULL, and beyond
 * PEG_LIMIT_LOSSES, whose last entry says so. */
void peg__losses_add(peg_definition_losses *losses, const peg_definition_loss *loss);
/* Forgets all but the first n. */
void peg__losses_cut(peg_definition_losses *losses, size_t n);

#endif
