/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_TOKEN_H
#define PEG_REMOTE_TOKEN_H

/*
 * Bearer tokens that are shown to a gateway, by clients and providers. A token is one word of
 * printable ASCII of at most PEG_LIMIT_REMOTE_TOKEN_BYTES; nothing else is ever sent, or cut to
 * fit.
 *
 * Errors have the `code` of whoever asks: PEG_EINVAL: it is no token; PEG_ELIMIT; PEG_ENOMEM.
 */

#include "base/blob.h"

/* "Bearer <token>"; `where` says in errors where it stands. */
peg_status remote__token_make(peg_str token, const char *where, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr);
/* The same of a file that holds one, perhaps with blanks around it. Also PEG_EIO: it cannot be
 * read, with the system's reason; what looks like a token itself is not repeated. */
peg_status remote__token_read(const char *path, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr);

#endif
