/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_SECRET_H
#define PEG_ENGINE_TRANSPORT_SECRET_H

#include "pegboard/common.h"

/* What is not to be seen of a header "Name: value" or "Name: Bearer value": its value, or "" where
 * that is too short to be a key. Borrowed. */
peg_str peg__secret_in(peg_str header);

/* Every place of a text where the secret stands becomes "***"; so does a beginning of it at the
 * end of the text, where an error was cut. An empty secret is nowhere. */
void peg__secret_hide(peg_str secret, char *text);

#endif
