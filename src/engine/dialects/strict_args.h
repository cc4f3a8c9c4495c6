/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_STRICT_ARGS_H
#define PEG_ENGINE_DIALECTS_STRICT_ARGS_H

#include "json/json.h"

/*
 * The way back from strict mode: there, what is optional is sent as required and may be null, so a
 * model that leaves a member out says null, which the tool's own schema refuses. Writes the
 * arguments without those nulls; where the schema takes null itself, it stays.
 *
 * parameters may be NULL (nothing is known: written as they are).
 */
void peg__strict_args(const peg_json *parameters, const peg_json *args, struct peg__buf *out);

/* The same for the text of a call of one of the definitions (may be NULL). PEG_OK with nothing
 * written: it stays as it is, because it is no object, or its tool is not among them. PEG_ENOMEM.
 */
peg_status peg__strict_call_args(const peg_json *definitions, peg_str tool, peg_str args,
                                 struct peg__buf *out, peg_error *reterr);

#endif
