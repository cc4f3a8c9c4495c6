/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_SQLITE_TEXT_H
#define PEG_BASE_SQLITE_TEXT_H

#include <sqlite3.h>

#include "pegboard/common.h"

/* For sqlite.c: puts functions that cannot be made slow in the place of SQLite's own. Characters to
 * trim are at most PEG_LIMIT_SQLITE_PATTERN_BYTES, as are patterns, which times the text are at
 * most PEG_LIMIT_SQLITE_PATTERN_STEPS. PEG_ENOMEM, PEG_EIO. */
peg_status peg__sqlite_text_functions(sqlite3 *handle, peg_error *reterr);

/* printf() and format(). */
void peg__sqlite_print(sqlite3_context *context, int n, sqlite3_value **values);
/* The text as the result, or what is wrong with it; frees it. */
void peg__sqlite_give_text(sqlite3_context *context, sqlite3_str *out);

#endif
