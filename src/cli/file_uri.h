/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_FILE_URI_H
#define PEG_CLI_FILE_URI_H

#include "base/arena.h"

/*
 * The file:// URI of a file, by its name alone: absolute, without `.` and `..`, what a URI cannot
 * hold percent-encoded. Symbolic links are not followed, for a $ref to a neighbour follows none
 * either. Standard input ("-") is taken for a file without a name in the current directory.
 *
 * *ret_uri is in the arena and NUL-terminated. Errors: E_FILE_OPEN, E_OUT_OF_MEMORY.
 */
peg_status cli_file_uri(struct peg__arena *arena, const char *path, peg_str *ret_uri,
                        peg_error *reterr);

#endif
