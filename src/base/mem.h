/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_MEM_H
#define PEG_BASE_MEM_H

/*
 * All memory of the library comes from here, so that a test can make the n-th
 * allocation fail and count what is still held.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/shared_symbols.h"
#include "pegboard/common.h"

PEG__SHARED void *peg__alloc(size_t size) __attribute__((malloc, warn_unused_result));
PEG__SHARED void *peg__alloc_zero(size_t n, size_t size)
    __attribute__((malloc, warn_unused_result));
/* Grows an array of n items to at least `want` items, doubling; NULL leaves it as it was. */
void *peg__grow(void *items, size_t item_size, size_t want, size_t *n)
    __attribute__((warn_unused_result));
/* Room for `want` items in an array that grows, given as it is and with its capacity (a size_t).
 * False: out of memory, and nothing has changed. */
#define PEG__RESERVE(items, want, capacity)                                                        \
    ((want) <= (capacity) || peg__reserve(&(items), sizeof(*(items)), (want), &(capacity)))
bool peg__reserve(void *pointer_to_items, size_t item_size, size_t want, size_t *capacity)
    __attribute__((warn_unused_result));
void *peg__realloc(void *memory, size_t size) __attribute__((warn_unused_result));
PEG__SHARED void peg__free(void *memory);

/* Blocks of one size that are to be used again, of one thread: malloc() keeps only seven of a size
 * within reach. */
struct peg__spares {
    void *first;
    unsigned n;
};
/* As peg__alloc_zero(1, size). */
void *peg__spares_take(struct peg__spares *spares, size_t size) __attribute__((warn_unused_result));
/* Frees the block, or keeps it with at most `max` others. */
void peg__spares_give(struct peg__spares *spares, void *block, unsigned max);
void peg__spares_free(struct peg__spares *spares);

/* For an owner that hands its memory out as const, and frees or fills it itself. */
static inline void *peg__unconst(const void *memory)
{
    union {
        const void *theirs;
        void *ours;
    } pointer = {memory};

    return pointer.ours;
}

/* The struct that `pointer` is the named member of. */
#define peg__container_of(pointer, type, member)                                                   \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Scope cleanup: PEG_CLEANUP(peg__freep) char *text = NULL; */
PEG__SHARED void peg__freep(void *pointer_to_pointer);

/* Tests: the n-th allocation of this thread from now fails, and all after it; 0 means none. */
void peg__mem_fail_at(unsigned nth);
/* Tests: the n-th alone fails, so that there is memory again to say so. */
void peg__mem_fail_once(unsigned nth);
/* Tests: blocks allocated and not yet freed, over all threads, since this was first called. */
size_t peg__mem_live(void);

/* ---- references ------------------------------------------------------------ */

/* Reference counts of shared things. Any thread. */

static inline void peg__refs_take(atomic_uint *n_refs)
{
    atomic_fetch_add_explicit(n_refs, 1, memory_order_relaxed);
}

/* True if it was the last one. The only reference needs no locked instruction, of which a call
 * would otherwise make a dozen. */
static inline bool peg__refs_drop(atomic_uint *n_refs)
{
    return atomic_load_explicit(n_refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(n_refs, 1, memory_order_acq_rel) == 1;
}

/* Defines TYPE_ref(), which takes a reference and returns its argument; NULL is allowed. */
#define PEG__DEFINE_REF(type)                                                                      \
    type *type##_ref(type *object)                                                                 \
    {                                                                                              \
        if (object)                                                                                \
            peg__refs_take(&object->n_refs);                                                       \
        return object;                                                                             \
    }

/* Defines a public function that returns a member of an opaque struct. */
#define PEG__DEFINE_GETTER(result, function, type, member)                                         \
    result function(const type *object)                                                            \
    {                                                                                              \
        return object->member;                                                                     \
    }

#endif
