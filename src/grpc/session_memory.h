/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SESSION_MEMORY_H
#define PEG_GRPC_SESSION_MEMORY_H

/*
 * The memory of one nghttp2 session. nghttp2 (1.52) does not survive every allocation that fails:
 * it may keep a pointer to what it has freed, and free it again. So the first failure is
 * remembered, nobody calls into that session again but to end it, and what it frees then is only
 * marked, once, and given back when the session is gone.
 */

#include <nghttp2/nghttp2.h>

#include "grpc/session.h"

struct grpc__memory {
    struct grpc_pool *pool;   /* NULL: none */
    struct grpc__block *dead; /* freed after a failure */
    bool has_failed;
};

/* An allocator over *memory, which must outlive the session. */
nghttp2_mem grpc__memory_for_h2(struct grpc__memory *memory);
/* After the session. */
void grpc__memory_free(struct grpc__memory *memory);

#endif
