/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_TOKEN_H
#define PEG_REMOTE_TOKEN_H

/*
 * Bearer tokens of clients and providers: one word of printable ASCII of at most
 * PEG_LIMIT_REMOTE_TOKEN_BYTES; nothing else is ever sent, or cut to fit.
 *
 * Errors have the caller's `code`. PEG_EINVAL: not a token; PEG_ELIMIT; PEG_ENOMEM.
 */

#include "base/blob.h"

/* "Bearer <token>"; `where` names its source in errors. */
peg_status remote__token_make(peg_str token, const char *where, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr);
/* The same from a file, perhaps with blanks around it. Also PEG_EIO: it cannot be read; a path that
 * looks like a token is not repeated in the message. */
peg_status remote__token_read(const char *path, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr);

#endif
