/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_PARSE_UNESCAPE_H
#define PEG_JSON_PARSE_UNESCAPE_H

/* Strings with escapes or bytes beyond ASCII: the slower path of the parser. */

#include "pegboard/common.h"

struct peg__unescaped {
    char *at;  /* what was not looked at yet; in the end the closing quote, or the problem */
    char *end; /* behind the last byte of the string's value so far */
    const char *problem; /* out, on failure */
    bool is_utf8;        /* out, on failure: bytes that are no UTF-8 */
};

/* Unescapes in place the rest of a string, from text->at on: that is where it stops to be plain, or
 * where somebody else left off. The text around it is padded and ends with a NUL. */
bool peg__json_unescape(struct peg__unescaped *text);

#endif
