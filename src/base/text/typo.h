/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_TYPO_H
#define PEG_BASE_TEXT_TYPO_H

/* "did you mean ...?": which of some names is closest to one that is not known. Case is no edit. */

#include "pegboard/common.h"

/* Plain data; one search. */
struct peg__typo {
    peg_str unknown; /* borrowed */
    unsigned best;   /* edits that the next one must stay below */
    unsigned n_seen;
};

void peg__typo_start(struct peg__typo *typo, peg_str unknown);
/* True: this is closer than all that were offered before, and close enough. Looks at the first 256
 * names only, and at none that is longer than 48 bytes. */
bool peg__typo_offer(struct peg__typo *typo, peg_str name);

#endif
