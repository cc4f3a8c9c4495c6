/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_CHAT_H
#define PEG_ENGINE_VENDORS_CHAT_H

/* What chat_request.c and chat_reply.c share. */

#include "engine/transport/wire.h"

/* Members in which servers send thoughts. The block's payload tells which ("wire_field"), so that
 * they go back as they came. */
enum { PEG__CHAT_THOUGHT_FIELDS = 2 };
extern const char *const peg__chat_thought_fields[PEG__CHAT_THOUGHT_FIELDS];

peg_status peg__chat_write_body(const struct peg__request *request, struct peg__buf *out,
                                peg_error *reterr);

#endif
