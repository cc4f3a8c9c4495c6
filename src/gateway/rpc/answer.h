/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_ANSWER_H
#define PEG_GATEWAY_RPC_ANSWER_H

/*
 * How services answer: errors by name, with the detail that the reference's clients look for, and
 * what ended a call. Beside an error that ended a call stand, in the trailers,
 *
 *   pegboard-call-id         its id
 *   pegboard-started         "true" if a provider was handed it, or may have been
 *   pegboard-retry-after-ms  when trying again makes sense
 *
 * and in the headers of answers to those who call, or look for tools to call,
 *
 *   pegboard-epoch           to be named as pegboard-asked-epoch when a call is asked for again
 */

#include "bus/bus.h"
#include "gateway/calls/calls.h"
#include "gateway/calls/outcome.h"
#include "grpc/client/call.h"

struct gw_event_log;

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message);
/* For grpc_server_options: a name for what was refused before a service heard of it, and the code
 * of that name. */
void gw_describe(struct grpc_call *call, struct grpc_status *status);
/* For whoever runs the gateway: who wanted what is not theirs, and from where. `toolset` may be
 * empty. */
void gw_report_refused(struct gw_event_log *journal, const struct grpc_call *call,
                       enum wire_error error, peg_str toolset);
/* What a check or the catalog failed with. */
void gw_fail_because(struct grpc_call *call, const peg_error *error);
/* An end that is not the tool's own: terminal->error is set. `id` may be NULL. */
void gw_fail_outcome(struct grpc_call *call, const struct gw_outcome *terminal,
                     const struct bus_id *id);
/* The call `id` has ended, and how cannot be said, for want of memory or because too much waits on
 * this connection: who takes it for one that was not started would run it again. */
void gw_fail_report(struct grpc_call *call, const struct bus_id *id);
/* Before anything is answered. */
void gw_report_epoch(struct grpc_call *call, const struct gw_calls *desk);
/* Was this call asked for before, of registers that may have been others? */
bool gw_was_asked_elsewhere(struct grpc_call *call, const struct gw_calls *desk);

#endif
