/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_NAME_H
#define PEG_WIRE_NAME_H

/* What comes from outside and becomes part of a key, a path or a line of a log. */

#include "pegboard/common.h"

/* At most 64 bytes of a text that nobody has checked, as characters that may be shown and logged:
 * what is no printable ASCII, a blank, a quote or a backslash is '?', what was cut ends in "...".
 */
enum { WIRE_PRINTABLE = 68 };
void wire_printable(peg_str text, char ret_text[WIRE_PRINTABLE]);

/* Names of toolsets and tools: [A-Za-z0-9_.:/-]{1,256}. PEG_EINVAL (E_NAME), `what` in its words;
 * never more than 64 bytes of what was sent, made printable. */
peg_status wire_check_name(peg_str name, const char *what, peg_error *reterr);
/* [A-Za-z0-9_-]{8,64}: incarnations. */
peg_status wire_check_incarnation(peg_str incarnation, peg_error *reterr);
/* Ids of others, such as run_id: 1 to 256 bytes of UTF-8 without control characters. */
peg_status wire_check_id(peg_str id, const char *what, peg_error *reterr);
/* ^v?\d+\.\d+\.\d+(-[a-zA-Z0-9.]+)?$, or empty. */
peg_status wire_check_version(peg_str version, peg_error *reterr);
/* Tags: 1 to 256 bytes of UTF-8 without control characters; at most PEG_LIMIT_GATEWAY_TAGS. */
peg_status wire_check_tags(const peg_str *tags, size_t n, peg_error *reterr);

#endif
