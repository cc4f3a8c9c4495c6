/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REMOTE_TOKEN_FILES_H
#define TESTS_REMOTE_TOKEN_FILES_H

/* Files that do not hold one token: clients and providers refuse them alike. */

#include <string.h>

#include "base/limits.h"
#include "pegboard/common.h"

static char too_long_token[PEG_LIMIT_REMOTE_TOKEN_BYTES + 3];

static const struct bad_token_file {
    const char *text;
    peg_status status;
    const char *words;
} BAD_TOKEN_FILES[] = {
    {"", PEG_EINVAL, "has no token"},
    {" \n\n", PEG_EINVAL, "has no token"},
    {"two\ntokens\n", PEG_EINVAL, "not a single token"},
    {"peg_\x01", PEG_EINVAL, "printable"},
    {too_long_token, PEG_ELIMIT, "more than 8192 bytes"},
};

enum { N_BAD_TOKEN_FILES = sizeof(BAD_TOKEN_FILES) / sizeof(BAD_TOKEN_FILES[0]) };

static inline const struct bad_token_file *bad_token_file(size_t i)
{
    memset(too_long_token, 'a', sizeof(too_long_token) - 1);
    return &BAD_TOKEN_FILES[i];
}

#endif
