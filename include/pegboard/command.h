/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_COMMAND_H
#define PEGBOARD_COMMAND_H

/*
 * A tool that is a command. Its arguments arrive as one JSON object and a newline on standard
 * input; what it writes to standard output is its answer. Exit status 0 is success; else the call
 * fails with the last of what it wrote to standard error (2 KiB, made printable).
 *
 * At the deadline, or when the call is canceled, the command and what it started (its process
 * group) get SIGTERM and, after a grace, SIGKILL. So it is over, whatever it does. Also when it
 * writes more than max_output, and when something that it started still holds its output 200 ms
 * after its exit: then what was written so far is the answer. On a pool a thread counts as
 * abandoned from the deadline until the command is over: keep the grace short there.
 *
 * What has left the group (setsid) lives on: to find it the library would have to change its host,
 * which would become the parent of orphans. `pegboard provide`, whose process is its own, does so.
 *
 * It gets no descriptor of the host but its three pipes, no variable that is not given to it, and
 * signals as they are by default. Hosts that ignore SIGCHLD, or wait for any process, take away its
 * exit status: the call fails and says so.
 *
 * Offered by a provider (provider.h), it reports what it writes to a caller who listens while it
 * runs: standard error, and standard output if that is text (with detects_json: if it does not
 * begin like an object or an array, and there is no output_schema). It never waits for that.
 *
 * Failures have a code as their cause: E_COMMAND_EXIT (a status, or a signal), E_COMMAND_SPAWN (not
 * found, not allowed, no resources), E_COMMAND_OUTPUT (too much, or no JSON), E_COMMAND_TIMEOUT,
 * E_COMMAND_CANCELED; of a manifest's placeholders E_COMMAND_ARGUMENT (a value that cannot be a
 * word of the command line).
 *
 * The grace is real time. The deadline is one of the context's clock; a clock that is moved by hand
 * is looked at every 10 ms.
 */

#include <pegboard/tool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_command_def {
    size_t size;       /* set by PEG_COMMAND_DEF_INIT */
    peg_tool_def tool; /* run, user and user_free must be NULL */
    /* NULL-terminated; no shell. argv[0] is looked up in the absolute folders of its PATH; with a
     * slash it is a path, from the directory that it runs in. */
    const char *const *argv;
    const char *const *env; /* NULL-terminated NAME=value; only these, and PATH if not given */
    const char *directory;  /* to run in; NULL: the host's */
    int64_t grace_ms;       /* between SIGTERM and SIGKILL; 0 means 2,000; at most 600,000 */
    size_t max_output;      /* bytes of standard output; 0 means 8 MiB; at most 256 MiB */
    bool answers_json;      /* output is one JSON value */
    /* Output that is a JSON object or array, or any JSON if there is an output_schema, is answered
     * as JSON, everything else as text. Not together with answers_json. */
    bool detects_json;
    /* Bytes of address space of each of its processes; 0: no limit; at least 1 MiB. A program that
     * needs more finds none, and usually ends for that. Set by /bin/sh, which then becomes it. */
    size_t max_memory;
} peg_command_def;
#define PEG_COMMAND_DEF_INIT .size = sizeof(peg_command_def), .tool = {PEG_TOOL_DEF_INIT}

/* As peg_tool_new(); PEG_EINVAL (E_INVALID_INITIAL_TOOL_VALUE) with `where` "/argv" and so on.
 * Everything is copied. Whether the program exists is found out when it is called. */
PEG_API PEG_MUST_USE peg_status peg_command_tool_new(const peg_command_def *def,
                                                     peg_tool **ret_tool, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
