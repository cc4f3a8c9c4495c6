/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_SQLITE_TEXT_H
#define PEG_BASE_SQLITE_TEXT_H

#include "pegboard/common.h"

/* For sqlite.c: puts instr(), replace() and trim(X, Y) that cannot be made slow in the place of
 * SQLite's own; characters to trim are at most PEG_LIMIT_SQLITE_PATTERN_BYTES. The handle is a
 * sqlite3 *. PEG_ENOMEM, PEG_EIO. */
peg_status peg__sqlite_text_functions(void *handle, peg_error *reterr);

#endif
