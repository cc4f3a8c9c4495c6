/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_LOCK_H
#define PEG_STORE_LOCK_H

/*
 * A file has one user at a time. The lock is a file beside it ("toolsets.db-lock") that says who
 * has it; the system drops it with the process, however that ends. It stays there: whoever removed
 * it could remove the next one's.
 */

#include "pegboard/common.h"

/* The file is there. PEG_ESTATE (E_STORE_LOCKED): it is in use, perhaps by this process itself;
 * PEG_EIO (E_STORE). */
peg_status store_lock(const char *path, int *ret_fd, peg_error *reterr) PEG_MUST_USE;
/* -1 is no lock. */
void store_unlock(int fd);

#endif
