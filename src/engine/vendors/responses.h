/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_RESPONSES_H
#define PEG_ENGINE_VENDORS_RESPONSES_H

/*
 * What responses_request.c and responses_reply.c share: members of payloads.
 *
 *   "item_id"            of a message, a thought or a call: what the provider calls it
 *   "encrypted_content"  of a thought: the thought itself, sealed
 *   "summary"            of a thought: a list, as the provider wrote it
 */

#include "engine/transport/wire.h"

peg_status peg__responses_write_body(const struct peg__request *request, struct peg__buf *out,
                                     peg_error *reterr);

#endif
