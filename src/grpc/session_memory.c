/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/session_memory.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

/* Stands before each block; 16 bytes, so that what follows is aligned. */
struct grpc__block {
    size_t size;              /* DEAD: freed after a failure */
    struct grpc__block *next; /* in the pool, or among the dead */
};

static const size_t DEAD = SIZE_MAX;

/* ---- the pool: blocks of small sizes, each rounded up to its class
 * ------------------------------- */

static size_t class_of(size_t size)
{
    return (size + GRPC_POOL_STEP - 1) / GRPC_POOL_STEP;
}

static struct grpc__block *new_block(struct grpc_pool *pool, size_t size)
{
    const size_t class = class_of(size);
    struct grpc__block *block;

    if (!pool || class >= GRPC_POOL_CLASSES)
        return peg__alloc(sizeof(*block) + size);
    block = pool->blocks[class];
    if (!block)
        return peg__alloc(sizeof(*block) + class * GRPC_POOL_STEP);
    pool->blocks[class] = block->next;
    pool->held -= class * GRPC_POOL_STEP;
    return block;
}

static void give_back(struct grpc_pool *pool, struct grpc__block *block)
{
    const size_t class = class_of(block->size);

    if (!pool || class >= GRPC_POOL_CLASSES || pool->held > PEG_LIMIT_GRPC_POOL_BYTES) {
        peg__free(block);
        return;
    }
    block->next = pool->blocks[class];
    pool->blocks[class] = block;
    pool->held += class * GRPC_POOL_STEP;
}

void grpc_pool_free(struct grpc_pool *pool)
{
    for (size_t i = 0; i < GRPC_POOL_CLASSES; i++) {
        while (pool->blocks[i]) {
            struct grpc__block *block = pool->blocks[i];

            pool->blocks[i] = block->next;
            peg__free(block);
        }
    }
    pool->held = 0;
}

/* ---- what nghttp2 calls
 * --------------------------------------------------------------------------- */

static void *h2_malloc(size_t size, void *user)
{
    struct grpc__memory *memory = user;
    struct grpc__block *block =
        size < SIZE_MAX - sizeof(*block) ? new_block(memory->pool, size) : NULL;

    if (!block) {
        memory->has_failed = true;
        return NULL;
    }
    block->size = size;
    return block + 1;
}

static void h2_free(void *bytes, void *user)
{
    struct grpc__memory *memory = user;
    struct grpc__block *block = bytes;

    if (!block)
        return;
    block--;
    if (!memory->has_failed) {
        give_back(memory->pool, block);
    } else if (block->size != DEAD) {
        block->size = DEAD;
        block->next = memory->dead;
        memory->dead = block;
    }
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
    while (memory->dead) {
        struct grpc__block *block = memory->dead;

        memory->dead = block->next;
        peg__free(block);
    }
}
