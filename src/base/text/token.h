/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_TOKEN_H
#define PEG_BASE_TEXT_TOKEN_H

/* What a gateway's tokens look like, for those who must not repeat one. */

#include <string.h>
#include <unistd.h>

#include "pegboard/common.h"

#define PEG_TOKEN_PREFIX "peg_"

/* Is it a token that was given where a file is expected? Errors end up in logs that many can read:
 * who reports this must not say what was given. */
static inline bool peg__is_token_for_path(const char *path)
{
    return strncmp(path, PEG_TOKEN_PREFIX, sizeof(PEG_TOKEN_PREFIX) - 1) == 0 &&
           access(path, F_OK) != 0;
}

#endif
