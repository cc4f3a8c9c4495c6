/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_DEFINITIONS_H
#define PEG_ENGINE_DIALECTS_DEFINITIONS_H

#include "base/buf.h"
#include "engine/dialects/names.h"
#include "pegboard/definitions.h"

/* As peg_definitions_render(), into a request that is being written, with the names of that
 * request. losses may be NULL: then nobody wants to know. */
peg_status peg__definitions_write(const peg_json *definitions,
                                  const peg_definitions_options *options,
                                  const struct peg__names *names, struct peg__buf *out,
                                  peg_definition_losses *losses, peg_error *reterr);

#endif
