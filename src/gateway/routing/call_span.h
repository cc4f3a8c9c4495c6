/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ROUTING_CALL_SPAN_H
#define PEG_GATEWAY_ROUTING_CALL_SPAN_H

/*
 * A span for each call that a caller asks this node for (otlp/otlp.h), whatever becomes of it: it
 * begins with the request and ends when the caller has its outcome, or leaves. The provider gets
 * the span as the parent of its own. A call that is refused because a name in it is not valid has
 * no span.
 *
 * The names are those of OpenTelemetry's conventions: `execute_tool NAME` (GenAI) of the registry
 * and of the HTTP API, `tools/call NAME` (MCP) of MCP clients.
 */

#include "base/buf.h"
#include "calls/calls.h"
#include "pegboard/gateway.h"

struct gw_event_log;
struct otlp_exporter;

/* Of a node; outlives its loops. */
struct gw_tracer {
    struct otlp_exporter *exporter; /* NULL: there are no spans */
    struct gw_event_log *log;       /* calls that end badly are written there, with their trace */
};

/* As the config says; `node` is the id in its spans. The errors of otlp_exporter_new(). */
peg_status gw_tracer_open(struct gw_tracer *tracer, const peg_gateway_config *config, uint64_t node,
                          struct gw_event_log *log, peg_error *reterr);
/* After the last call. */
void gw_tracer_close(struct gw_tracer *tracer);

/* A request with the trace context that its provider gets. On the stack of its caller's start. */
struct gw_traced {
    struct calls_request request;
    struct peg__buf packed;
};

/* Before the call starts: the span is the caller's from now on. Returns the request that is to be
 * started: the same, or one in *ret_traced. Without memory there is no span, and the call goes on.
 * `tracer` may be NULL. */
const struct calls_request *gw_call_span_begin(const struct gw_tracer *tracer,
                                               const struct calls_request *request,
                                               struct calls_caller *caller,
                                               struct gw_traced *ret_traced);
/* After it has started. */
void gw_traced_clear(struct gw_traced *traced);
/* The caller leaves before the call has ended; nothing for one without a span. */
void gw_call_span_leave(struct calls_caller *caller, enum calls_leaving leaving);

#endif
