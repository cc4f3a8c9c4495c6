/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LOG_H
#define PEG_BASE_LOG_H

#include "pegboard/log.h"

/* Longer messages are cut at a character. */
enum { PEG_LOG_MESSAGE_BYTES = 512 };

/* Would a message of this level be heard? One relaxed load: worth asking before costly words. */
bool peg__log_wants(peg_log_level level);

/* Hands a message to the hook, if there is one. `code` is a literal. No payload: see
 * pegboard/log.h. */
void peg__log(peg_log_level level, const char *code, const char *fmt, ...) PEG_PRINTF(3, 4);

#endif
