/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_GEMINI_H
#define PEG_ENGINE_VENDORS_GEMINI_H

/* What gemini_request.c and gemini_reply.c share. */

#include "engine/transport/wire.h"

peg_status peg__gemini_write_body(const struct peg__request *request, struct peg__buf *out,
                                  peg_error *reterr);

#endif
