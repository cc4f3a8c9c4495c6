/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_PROCESS_H
#define PEG_TOOLS_PROCESS_H

/*
 * Runs a program to its end: writes its input, reads what it writes, and ends it when the context
 * says stop. No process, no descriptor and no signal is left over.
 *
 * Ending it means SIGTERM to its process group and, after the grace, SIGKILL. What left the group
 * (setsid) is found only in a process that has adopted it (tools/descendants.h).
 *
 * Once the program itself has exited, whatever it started may hold the pipes for
 * PEG_LIMIT_COMMAND_DRAIN_MS more; then its group is killed. What let go of the pipes lives on,
 * unless the program was ended.
 *
 * The context's clock decides when its deadline has come. The grace is real time, as the
 * process is real. A clock that is not the system's cannot wake a thread that waits for a process,
 * so it is looked at every PEG_LIMIT_COMMAND_STEP_MS.
 */

#include "base/buf.h"
#include "pegboard/ctx.h"
#include "tools/descendants.h"

enum peg__process_stream { PEG__PROCESS_STDOUT, PEG__PROCESS_STDERR };

struct peg__process_def {
    struct peg__program program;
    peg_str input;
    size_t max_output; /* bytes of standard output */
    int64_t grace_ms;
    /* Hears what it writes as it comes, on the thread that runs it; must not block. NULL: nobody.
     * Of standard output only what goes into the result. */
    void (*hear)(enum peg__process_stream stream, peg_str bytes, void *user);
    void *user;
};

enum peg__process_end {
    PEG__PROCESS_EXITED,      /* number: its exit status */
    PEG__PROCESS_SIGNALED,    /* number: the signal, not ours */
    PEG__PROCESS_NOT_STARTED, /* number: errno */
    PEG__PROCESS_OUTPUT,      /* more than max_output: killed */
    PEG__PROCESS_TIMEOUT,     /* deadline or budget: ended */
    PEG__PROCESS_CANCELED,    /* ended */
    PEG__PROCESS_LOST,        /* somebody else has waited for it: its exit status is not known */
};

enum { PEG__TAIL_BYTES = 2048 };

struct peg__process_result {
    enum peg__process_end end;
    int number;
    struct peg__buf output;     /* as far as it was read; whole if it EXITED */
    char tail[PEG__TAIL_BYTES]; /* the last of standard error, any bytes */
    size_t tail_len;
    bool is_tail_cut; /* there was more before it */
};

/* Fills *ret_result, whose output is the caller's to free. PEG_ENOMEM: the output did not fit into
 * memory, and the program was killed. */
peg_status peg__process_run(const struct peg__process_def *def, peg_ctx *ctx,
                            struct peg__process_result *ret_result, peg_error *reterr);

#endif
