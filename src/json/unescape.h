/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_UNESCAPE_H
#define PEG_JSON_UNESCAPE_H

/* Strings with escapes or bytes beyond ASCII: the slower path of the parser. */

#include "pegboard/common.h"

struct peg__unescaped {
    char *at;            /* in: where the plain part ends; out: the closing quote, or the problem */
    char *end;           /* out: behind the last byte of the string's value */
    const char *problem; /* out, on failure */
    bool is_utf8;        /* out, on failure: bytes that are no UTF-8 */
};

/* Unescapes in place the string that starts at `start` and is plain up to text->at. The text
 * around it is padded and ends with a NUL. */
bool peg__json_unescape(char *start, struct peg__unescaped *text);

#endif
