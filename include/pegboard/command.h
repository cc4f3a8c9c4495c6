/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_COMMAND_H
#define PEGBOARD_COMMAND_H

/*
 * A tool that is a command. Its arguments arrive as one JSON object on standard input; what it
 * writes to standard output is its answer. Exit status 0 is success; else the call fails with the
 * last of what it wrote to standard error.
 *
 * At the deadline, or when the call is canceled, the command and what it started (its process
 * group) get SIGTERM and, after a grace, SIGKILL. So it is over, whatever it does.
 */

#include <pegboard/tool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_command_def {
    peg_tool_def tool;       /* run, user and user_free must be NULL */
    const char *const *argv; /* NULL-terminated; argv[0] is found in PATH; no shell */
    const char *const *env;  /* NULL-terminated NAME=value; only these, and PATH if not given */
    const char *directory;   /* to run in; NULL: the host's */
    int64_t grace_ms;        /* between SIGTERM and SIGKILL; 0 means 2,000 */
    size_t max_output;       /* bytes of standard output; 0 means 8 MiB */
    bool answers_json;       /* output is one JSON value */
} peg_command_def;

/* As peg_tool_new(); PEG_EINVAL (E_INVALID_INITIAL_TOOL_VALUE) with `where` "/argv" and so on. */
PEG_API PEG_MUST_USE peg_status peg_command_tool_new(const peg_command_def *def,
                                                     peg_tool **ret_tool, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
