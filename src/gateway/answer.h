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
 */

#include "bus/bus.h"
#include "gateway/terminal.h"
#include "grpc/call.h"

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message);
/* What a check or the catalog failed with. */
void gw_fail_because(struct grpc_call *call, const peg_error *error);
/* An end that is not the tool's own: terminal->error is set. `id` may be NULL. */
void gw_fail_terminal(struct grpc_call *call, const struct gw_terminal *terminal,
                      const struct bus_id *id);

#endif
