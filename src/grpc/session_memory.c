/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/session_memory.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* Stands before each block; a multiple of 16, so that what follows is aligned. */
struct grpc__block {
    struct grpc__block *next;
    struct grpc__block *prev;
    size_t size;
    size_t unused;
};

static void hang_in(struct grpc__memory *memory, struct grpc__block *block)
{
    block->prev = NULL;
    block->next = memory->blocks;
    if (block->next)
        block->next->prev = block;
    memory->blocks = block;
}

static void take_out(struct grpc__memory *memory, struct grpc__block *block)
{
    if (block->prev)
        block->prev->next = block->next;
    else
        memory->blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
}

static void *h2_malloc(size_t size, void *user)
{
    struct grpc__memory *memory = user;
    struct grpc__block *block =
        size < SIZE_MAX - sizeof(*block) ? peg__alloc(sizeof(*block) + size) : NULL;

    if (!block) {
        memory->has_failed = true;
        return NULL;
    }
    block->size = size;
    hang_in(memory, block);
    return block + 1;
}

static void h2_free(void *bytes, void *user)
{
    struct grpc__memory *memory = user;
    struct grpc__block *block = bytes;

    /* After a failure nghttp2 may free twice; grpc__memory_free() does it once. */
    if (!block || memory->has_failed)
        return;
    take_out(memory, --block);
    peg__free(block);
}

static void *h2_calloc(size_t n, size_t size, void *user)
{
    void *bytes = size > 0 && n > SIZE_MAX / size ? NULL : h2_malloc(n * size, user);

    return bytes ? memset(bytes, 0, n * size) : NULL;
}

static void *h2_realloc(void *bytes, size_t size, void *user)
{
    const struct grpc__block *old = bytes;
    void *grown = h2_malloc(size, user);

    if (!grown || !bytes)
        return grown;
    memcpy(grown, bytes, old[-1].size < size ? old[-1].size : size);
    h2_free(bytes, user);
    return grown;
}

nghttp2_mem grpc__memory_for_h2(struct grpc__memory *memory)
{
    return (nghttp2_mem){.mem_user_data = memory,
                         .malloc = h2_malloc,
                         .free = h2_free,
                         .calloc = h2_calloc,
                         .realloc = h2_realloc};
}

void grpc__memory_free(struct grpc__memory *memory)
{
    while (memory->blocks) {
        struct grpc__block *block = memory->blocks;

        take_out(memory, block);
        peg__free(block);
    }
}
