/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_FILE_H
#define PEG_BASE_FILE_H

/* Directories of a store's own, and whole writes. */

#include "pegboard/common.h"

/* All bytes; false with errno. */
bool peg__file_write_all(int fd, peg_str bytes);

/* Opens a directory, which is made with mode 0700 if its parent exists. PEG_EIO with the code if it
 * is a link, or another user may write into it; `what` is it called in the message. */
peg_status peg__directory_open(const char *path, const char *what, const char *code, int *ret_fd,
                               peg_error *reterr) PEG_MUST_USE;
/* flock(), also when a signal interrupts it. */
bool peg__directory_lock(int fd, int how);

#endif
