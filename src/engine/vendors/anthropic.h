/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_ANTHROPIC_H
#define PEG_ENGINE_VENDORS_ANTHROPIC_H

/* What anthropic_request.c and anthropic_reply.c share. */

#include "engine/transport/wire.h"

/* Members of a thought's payload: what the API wants back exactly as it came. */
#define PEG__ANTHROPIC_SIGNATURE "signature"
#define PEG__ANTHROPIC_REDACTED "redacted_data"

peg_status peg__anthropic_write_body(const struct peg__request *request, struct peg__buf *out,
                                     peg_error *reterr);

#endif
