/* SPDX-License-Identifier: Apache-2.0 */

#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pegboard/common.h"

/* Counts down to the allocation that fails. 0: none; 1: this one, and all after it unless it is to
 * be the only one. */
/* Looked at by every allocation: without the model it would be a call in a shared library. */
static _Thread_local unsigned fail_in __attribute__((tls_model("initial-exec")));
static _Thread_local bool fails_once __attribute__((tls_model("initial-exec")));

/* A relaxed counter: it is read only by tests, when nothing else runs. It counts from the first
 * time that somebody asks; until then threads that allocate share nothing. */
static atomic_size_t n_live;
static atomic_bool is_counting;

/* What the cache of a thread takes, more or less. */
enum { SMALL_BYTES = 1024 };

static bool must_fail(void)
{
    if (fail_in == 0)
        return false;
    if (fail_in > 1 || fails_once)
        return --fail_in == 0;
    return true;
}

static void *count(void *memory)
{
    if (memory && atomic_load_explicit(&is_counting, memory_order_relaxed))
        atomic_fetch_add_explicit(&n_live, 1, memory_order_relaxed);
    return memory;
}

void *peg__alloc(size_t size)
{
    return must_fail() ? NULL : count(malloc(size ? size : 1));
}

/* Inline, malloc() and memset() would be made one calloc() again. */
static __attribute__((noinline)) void *alloc_small(size_t size)
{
    return malloc(size);
}

/* glibc 2.36's calloc() does not look into the thread's own cache of small blocks, so it takes
 * twice as long. */
static void *alloc_small_zero(size_t size)
{
    void *memory = alloc_small(size);

    return memory ? memset(memory, 0, size) : NULL;
}

void *peg__alloc_zero(size_t n, size_t size)
{
    size_t all;

    if (must_fail())
        return NULL;
    if (!__builtin_mul_overflow(n, size, &all) && all - 1 < SMALL_BYTES)
        return count(alloc_small_zero(all));
    return count(calloc(n ? n : 1, size ? size : 1));
}

/* AddressSanitizer is to see each use of a block that was given back. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { KEEPS_SPARES = false };
#else
enum { KEEPS_SPARES = true };
#endif

void *peg__spares_take(struct peg__spares *spares, size_t size)
{
    void *block = spares->first;

    if (!block)
        return peg__alloc_zero(1, size);
    if (must_fail())
        return NULL;
    memcpy(&spares->first, block, sizeof(spares->first));
    spares->n--;
    return memset(block, 0, size);
}

void peg__spares_give(struct peg__spares *spares, void *block, unsigned max)
{
    if (!KEEPS_SPARES || spares->n >= max) {
        peg__free(block);
        return;
    }
    memcpy(block, &spares->first, sizeof(spares->first));
    spares->first = block;
    spares->n++;
}

void peg__spares_free(struct peg__spares *spares)
{
    while (spares->first) {
        void *block = spares->first;

        memcpy(&spares->first, block, sizeof(spares->first));
        peg__free(block);
    }
    spares->n = 0;
}

void *peg__realloc(void *memory, size_t size)
{
    if (!memory)
        return peg__alloc(size);
    return must_fail() ? NULL : realloc(memory, size ? size : 1);
}

void *peg__grow(void *items, size_t item_size, size_t want, size_t *n)
{
    size_t capacity = *n ? *n : 8;
    void *grown;

    while (capacity < want) {
        if (capacity > SIZE_MAX / 2)
            return NULL;
        capacity *= 2;
    }
    if (capacity > SIZE_MAX / item_size)
        return NULL;
    grown = peg__realloc(items, capacity * item_size);
    if (grown)
        *n = capacity;
    return grown;
}

bool peg__reserve(void *pointer_to_items, size_t item_size, size_t want, size_t *capacity)
{
    void *items;

    memcpy(&items, pointer_to_items, sizeof(items));
    items = peg__grow(items, item_size, want, capacity);
    if (items)
        memcpy(pointer_to_items, &items, sizeof(items));
    return items != NULL;
}

void peg__free(void *memory)
{
    if (memory && atomic_load_explicit(&is_counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&n_live, 1, memory_order_relaxed);
    free(memory);
}

void peg__freep(void *pointer_to_pointer)
{
    peg__free(*(void **)pointer_to_pointer);
}

void *peg_free(void *memory)
{
    peg__free(memory);
    return NULL;
}

void peg__mem_fail_at(unsigned nth)
{
    fail_in = nth;
    fails_once = false;
}

void peg__mem_fail_once(unsigned nth)
{
    fail_in = nth;
    fails_once = true;
}

size_t peg__mem_live(void)
{
    atomic_store_explicit(&is_counting, true, memory_order_relaxed);
    return atomic_load_explicit(&n_live, memory_order_relaxed);
}
