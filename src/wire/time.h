/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_TIME_H
#define PEG_WIRE_TIME_H

/* Moments as the registry writes them. Durations, "1m30s", are peg_duration_parse()'s and
 * peg_duration_text()'s (pegboard/tool_config.h). */

#include "pegboard/common.h"

enum { WIRE_TIME_TEXT = 32 };

/* RFC 3339 in UTC, "2026-02-22T09:30:00Z" and "2026-02-22T09:30:00.125Z". Moments outside of the
 * years 1970 to 9999 become the nearest one inside. */
void wire_time_print(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT]);
void wire_time_print_ms(int64_t unix_ms, char ret_text[WIRE_TIME_TEXT]);
/* Reads what these write, and any other offset and fraction. False if it is none. */
bool wire_time_parse(peg_str text, int64_t *ret_unix_ms);

#endif
