/* SPDX-License-Identifier: Apache-2.0 */

#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { ALIGN = 16, FIRST_CHUNK = 1024, SMALL = 4 * FIRST_CHUNK, LARGEST_STEP = 1 << 20 };

struct peg__chunk {
    struct peg__chunk *older;
    size_t size; /* of bytes */
    size_t used;
    alignas(ALIGN) unsigned char bytes[];
};

static struct peg__chunk *add_chunk(struct peg__arena *arena, size_t at_least)
{
    /* Half of what there is: at most a third is ever unused. */
    size_t size = arena->held / 2 > FIRST_CHUNK ? arena->held / 2 : FIRST_CHUNK;
    struct peg__chunk *chunk;

    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    if (size < at_least)
        size = at_least;
    chunk = peg__alloc(sizeof(*chunk) + size);
    if (!chunk)
        return NULL;

    *chunk = (struct peg__chunk){.older = arena->chunk, .size = size};
    arena->chunk = chunk;
    arena->held += sizeof(*chunk) + size;
    return chunk;
}

void *peg__arena_alloc(struct peg__arena *arena, size_t size)
{
    struct peg__chunk *chunk = arena->chunk;
    void *memory;

    if (size > SIZE_MAX / 4)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!chunk || chunk->size - chunk->used < size)
        chunk = add_chunk(arena, size);
    if (!chunk)
        return NULL;

    memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

void *peg__arena_alloc_zero(struct peg__arena *arena, size_t size)
{
    void *memory = peg__arena_alloc(arena, size);

    return memory ? memset(memory, 0, size) : NULL;
}

char *peg__arena_copy(struct peg__arena *arena, peg_str s)
{
    char *copy = peg__arena_alloc(arena, s.len + 1);

    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

const char **peg__arena_copy_list(struct peg__arena *arena, const char *const *strings,
                                  size_t *ret_n)
{
    const char **copies;
    size_t n = 0;

    while (strings && strings[n])
        n++;
    copies = peg__arena_alloc_zero(arena, (n + 2) * sizeof(*copies));
    for (size_t i = 0; copies && i < n; i++) {
        copies[i] = peg__arena_copy(arena, (peg_str){strings[i], strlen(strings[i])});
        if (!copies[i])
            return NULL;
    }
    if (ret_n)
        *ret_n = n;
    return copies;
}

/* One chunk as large as all that there were, so that the same again needs no second one. */
static struct peg__chunk *enlarge(struct peg__chunk *kept, size_t held)
{
    struct peg__chunk *larger = peg__alloc(held);

    if (!larger)
        return kept;
    peg__free(kept);
    larger->size = held - sizeof(*larger);
    return larger;
}

void peg__arena_reset(struct peg__arena *arena)
{
    const bool has_several = arena->chunk && arena->chunk->older;
    struct peg__chunk *kept = arena->chunk;
    struct peg__chunk *chunk;

    for (chunk = arena->chunk; chunk; chunk = chunk->older)
        if (chunk->size > kept->size)
            kept = chunk;

    chunk = arena->chunk;
    while (chunk) {
        struct peg__chunk *older = chunk->older;

        if (chunk != kept)
            peg__free(chunk);
        chunk = older;
    }
    if (has_several && arena->held <= SMALL)
        kept = enlarge(kept, arena->held);
    arena->chunk = kept;
    arena->held = 0;
    if (kept) {
        kept->older = NULL;
        kept->used = 0;
        arena->held = sizeof(*kept) + kept->size;
    }
}

void peg__arena_free(struct peg__arena *arena)
{
    struct peg__chunk *chunk = arena->chunk;

    while (chunk) {
        struct peg__chunk *older = chunk->older;

        peg__free(chunk);
        chunk = older;
    }
    *arena = (struct peg__arena){0};
}
