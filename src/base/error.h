/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_ERROR_H
#define PEG_BASE_ERROR_H

#include "base/shared_symbols.h"
#include "pegboard/common.h"
#include "pegboard/log.h"

/* Fills *reterr if it is not NULL (no place, no pointer) and returns status:
 *   return peg__fail(reterr, PEG_EINVAL, "E_X", "the name '%s' is taken: ...", name); */
PEG__SHARED peg_status peg__fail(peg_error *reterr, peg_status status, const char *code,
                                 const char *fmt, ...) PEG_PRINTF(4, 5);

/* The same for PEG_ENOMEM, whose message is always the same. */
PEG__SHARED peg_status peg__fail_nomem(peg_error *reterr);

/* PEG_EIO (E_NO_RANDOMNESS): what base/id.h was asked for and could not give. */
peg_status peg__fail_no_randomness(peg_error *reterr);

/* The same with the error behind it: its code becomes `cause`, its message ends ours. The
 * cause may be *reterr itself. */
peg_status peg__fail_because(peg_error *reterr, peg_status status, const char *code,
                             const peg_error *cause, const char *fmt, ...) PEG_PRINTF(5, 6);

/* Adds the place in a text: offset, and line and column counted from it. */
void peg__error_at(peg_error *reterr, peg_str text, size_t offset);

/* Sets `where`, cut at a character if it is too long. */
void peg__error_where(peg_error *reterr, peg_str pointer);

/* ---- the log --------------------------------------------------------------- */

/* Longer messages are cut at a character. */
enum { PEG_LOG_MESSAGE_BYTES = 512 };

/* Does the log take this level? One relaxed load: ask before building a costly message. */
bool peg__log_wants(peg_log_level level);

/* Hands a message to the hook, if there is one. `code` is a literal. No payload: see
 * pegboard/log.h. */
void peg__log(peg_log_level level, const char *code, const char *fmt, ...) PEG_PRINTF(3, 4);

#endif
