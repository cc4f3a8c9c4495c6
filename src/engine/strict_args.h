/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_STRICT_ARGS_H
#define PEG_ENGINE_STRICT_ARGS_H

#include "json/json.h"

/*
 * The way back from strict mode: there, what is optional is sent as required and may be null, so a
 * model that leaves a member out says null, which the tool's own schema refuses. Writes the
 * arguments without those nulls; where the schema takes null itself, it stays.
 *
 * parameters may be NULL (nothing is known: written as they are).
 */
void peg__strict_args(const peg_json *parameters, const peg_json *args, struct peg__buf *out);

#endif
