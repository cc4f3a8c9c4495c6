/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_NAMES_H
#define PEG_ENGINE_DIALECTS_NAMES_H

/*
 * Names of tools as a provider takes them, and back. OpenAI and Anthropic take [A-Za-z0-9_-]{1,64},
 * Gemini also '.' and ':' and a first character that is a letter or '_' (before others a '_' is
 * put). Everything else becomes '_'; what is too long is cut. Names that are acceptable never
 * change. A name that changed and is taken by another, or that two would become, gets a suffix made
 * of its own digest: the same in whatever order tools are offered.
 *
 * Owned; immutable once made.
 */

#include "pegboard/definitions.h"

struct peg__names;

/* Of all definitions (may be NULL), and of the calls that the turn (may be NULL) has, because tools
 * that are gone stay in the history. PEG_EINVAL (E_DEFINITIONS), PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__names_new(const peg_json *definitions, const peg_turn *turn,
                          const peg_definitions_options *options, struct peg__names **ret_names,
                          peg_error *reterr);
struct peg__names *peg__names_free(struct peg__names *names);
/* What the provider calls it: what is acceptable is itself; of the rest, "" and what nobody
 * mentioned are "unknown_tool". Borrowed from names or from `tool`, or static. */
peg_str peg__names_out(const struct peg__names *names, peg_str tool);
/* What we call it; a name that is nobody's comes back as it is. */
peg_str peg__names_in(const struct peg__names *names, peg_str wire);

#endif
