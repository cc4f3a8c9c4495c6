/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_ARENA_H
#define PEG_BASE_ARENA_H

/*
 * Memory that dies together. A value of struct peg__arena set to zero is an
 * empty arena. Nothing is freed singly.
 */

#include <stddef.h>

#include "pegboard/common.h"

struct peg__chunk;

struct peg__arena {
    struct peg__chunk *chunk; /* the newest; older ones hang behind it */
    size_t held;              /* bytes of all chunks */
};

/* Aligned to 16 bytes, not cleared; NULL when out of memory. */
void *peg__arena_alloc(struct peg__arena *arena, size_t size) __attribute__((warn_unused_result));
void *peg__arena_alloc_zero(struct peg__arena *arena, size_t size)
    __attribute__((warn_unused_result));
/* A NUL-terminated copy; NULL when out of memory. */
char *peg__arena_copy(struct peg__arena *arena, peg_str s) __attribute__((warn_unused_result));
/* A copy of a NULL-terminated list and its strings; NULL (of the list) is an empty one. There is
 * room for one more string, and ret_n may be NULL. NULL when out of memory. */
const char **peg__arena_copy_list(struct peg__arena *arena, const char *const *strings,
                                  size_t *ret_n) __attribute__((warn_unused_result));
/* Forgets what was handed out and keeps the largest chunk for what comes. */
void peg__arena_reset(struct peg__arena *arena);
void peg__arena_free(struct peg__arena *arena);

#endif
