/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_DIALECTS_H
#define PEG_ENGINE_DIALECTS_DIALECTS_H

/* Tools as a vendor takes them: their names, their definitions, and the way back. */

#include "base/buf.h"
#include "pegboard/definitions.h"

/* ---- names ------------------------------------------------------------------------------ */

/*
 * Names of tools as a vendor takes them, and back. OpenAI and Anthropic take [A-Za-z0-9_-]{1,64},
 * Gemini also '.' and ':' and a first character that is a letter or '_' (before others a '_' is
 * put). Everything else becomes '_'; what is too long is cut. Names that are acceptable never
 * change. A name that changed and is taken by another, or that two would become, gets a suffix made
 * of its own digest: the same in whatever order tools are offered.
 *
 * Owned; immutable once made.
 */

struct peg__names;

/* Of all definitions (may be NULL), and of the calls that the turn (may be NULL) has, because tools
 * that are gone stay in the history. PEG_EINVAL (E_DEFINITIONS), PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__names_new(const peg_json *definitions, const peg_turn *turn,
                          const peg_definitions_options *options, struct peg__names **ret_names,
                          peg_error *reterr);
struct peg__names *peg__names_free(struct peg__names *names);
/* What the vendor calls it: what is acceptable is itself; of the rest, "" and unknown names
 * are "unknown_tool". Borrowed from names or from `tool`, or static. */
peg_str peg__names_out(const struct peg__names *names, peg_str tool);
/* What we call it; an unknown name comes back as it is. */
peg_str peg__names_in(const struct peg__names *names, peg_str wire);

/* ---- definitions ------------------------------------------------------------------------ */

/* As peg_definitions_render(), into a request that is being written, with the names of that
 * request. losses may be NULL. */
peg_status peg__definitions_write(const peg_json *definitions,
                                  const peg_definitions_options *options,
                                  const struct peg__names *names, struct peg__buf *out,
                                  peg_definition_losses *losses, peg_error *reterr);

/* ---- arguments -------------------------------------------------------------------------- */

/*
 * The way back from strict mode: there, what is optional is sent as required and may be null, so a
 * model that leaves a member out writes null, which the tool's own schema refuses. Writes the
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
