/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ACCESS_TOKEN_FILE_H
#define PEG_GATEWAY_ACCESS_TOKEN_FILE_H

/* What tokens.c, token_table.c and token_edit.c share. */

#include "base/buf.h"
#include "gateway/access/tokens.h"

/* PEG_EIO (E_TOKEN_FILE): "cannot be <what>", and why, by errno; or that the path is a token, which
 * is not repeated. */
peg_status gw_token_file_fail(const char *path, const char *what, peg_error *reterr);
/* Checks who may write to it, and adds all of it to the text. */
peg_status gw_token_file_read(int fd, const char *path, struct peg__buf *ret_text,
                              peg_error *reterr);
bool gw_token_name_is_good(peg_str name);
/* Is a line of a file that has no error a token of that name, whose hash begins like that? */
bool gw_token_line_is(peg_str line, peg_str name, peg_str hash);

#endif
