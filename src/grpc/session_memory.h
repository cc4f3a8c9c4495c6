/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SESSION_MEMORY_H
#define PEG_GRPC_SESSION_MEMORY_H

/*
 * The memory of one nghttp2 session. nghttp2 (1.52) does not survive every allocation that fails:
 * it may keep a pointer to what it has freed. So the first failure is remembered, nobody calls
 * into that session again, and its blocks are given back from our own list.
 */

#include <nghttp2/nghttp2.h>

#include "grpc/session.h"

struct grpc__memory {
    struct grpc_pool *pool; /* NULL: none */
    struct grpc__block *blocks;
    bool has_failed;
};

/* An allocator over *memory, which must outlive the session. */
nghttp2_mem grpc__memory_for_h2(struct grpc__memory *memory);
/* Gives back whatever is left. */
void grpc__memory_free(struct grpc__memory *memory);

#endif
