/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ANSWER_H
#define PEG_GATEWAY_ANSWER_H

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
#include "gateway/desk.h"
#include "gateway/terminal.h"
#include "grpc/call.h"

struct gw_journal;

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message);
/* For grpc_server_options: a name for what was refused before a service heard of it, and the code
 * of that name. */
void gw_describe(struct grpc_call *call, struct grpc_status *status);
/* For whoever runs the gateway: who wanted what is not theirs, and from where. `toolset` may be
 * empty. */
void gw_tell_refused(struct gw_journal *journal, const struct grpc_call *call,
                     enum wire_error error, peg_str toolset);
/* What a check or the catalog failed with. */
void gw_fail_because(struct grpc_call *call, const peg_error *error);
/* An end that is not the tool's own: terminal->error is set. `id` may be NULL. */
void gw_fail_terminal(struct grpc_call *call, const struct gw_terminal *terminal,
                      const struct bus_id *id);
/* The call `id` has ended, and how cannot be said, for want of memory or because too much waits on
 * this connection: who takes it for one that was not started would run it again. */
void gw_fail_to_tell(struct grpc_call *call, const struct bus_id *id);
/* Before anything is answered. */
void gw_tell_epoch(struct grpc_call *call, const struct gw_desk *desk);
/* Was this call asked for before, of registers that may have been others? */
bool gw_was_asked_elsewhere(struct grpc_call *call, const struct gw_desk *desk);

#endif
