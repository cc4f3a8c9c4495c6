/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_CALL_PRINT_H
#define PEG_CLI_REMOTE_CALL_PRINT_H

/* What a call says, and what became of it. */

#include "cli/terminal/term.h"
#include "pegboard/client.h"

struct call_print {
    const char *toolset;
    const char *tool;
    bool is_envelope;
    bool is_stream;
    bool is_raw;
    bool is_idempotent; /* of the tool */
    int64_t time_ms;    /* that a call of it has; 0: nobody said */
    enum cli_color color;
};

/* A piece of output: on standard error, or as a JSON line. */
void call_print_output(const struct call_print *print, peg_str stream, peg_str delta);
/* The envelope of a call that was not made. CLI_OK, or CLI_UNUSABLE after a complaint. */
int call_print_refusal(const struct call_print *print, const peg_error *error, const char *words);
/* Returns the exit status. */
int call_print_result(const struct call_print *print, const peg_remote_result *result);

#endif
