/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TRACE_H
#define PEGBOARD_TRACE_H

/*
 * W3C trace context of a context (ctx.h), so that it travels with calls: a client sends what its
 * context has, a provider puts what came with a call into the context of its handler. Link
 * libpegboard-remote.
 */

#include <pegboard/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL or "": none. */
typedef struct peg_trace {
    const char *traceparent;
    const char *tracestate;
    const char *baggage;
} peg_trace;

/* The strings are copied. parent may be NULL. PEG_EINVAL (E_TRACE): a traceparent that is not
 * "00-<32 hex>-<16 hex>-<2 hex>", or something that is not printable ASCII; PEG_ELIMIT (E_TRACE)
 * names PEG_LIMIT_REMOTE_TRACE_BYTES; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_ctx_with_trace(peg_ctx *parent, const peg_trace *trace,
                                                   peg_ctx **ret_ctx, peg_error *reterr);
/* The nearest, or NULL; no member of it is NULL. Borrowed from the context. */
PEG_API const peg_trace *peg_ctx_trace(const peg_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
