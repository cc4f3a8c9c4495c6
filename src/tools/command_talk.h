/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_COMMAND_TALK_H
#define PEG_TOOLS_COMMAND_TALK_H

/*
 * What a command writes, told to a caller who listens while it runs (core/context/notify.h):
 * standard error, and standard output if that is text. The result does not depend on it, and
 * nothing waits for it: what a slow listener does not take is left out, and the next piece says how
 * much that was.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/context/notify.h"
#include "tools/process.h"

enum peg__conversation_output {
    PEG__TALK_JSON, /* standard output is a value: nothing to read until it is whole */
    PEG__TALK_TEXT,
    PEG__TALK_MAYBE, /* JSON if it begins like an object or an array */
};

struct peg__conversation_stream {
    const char *name;
    char held[4]; /* the beginning of a character whose rest has not come */
    size_t n_held;
    uint64_t n_left_out; /* bytes since the last piece that was taken */
};

/* Of one call; lives on the handler's stack. */
struct peg__conversation {
    peg_call *call;
    const struct peg__listener *listener;
    enum peg__conversation_output output;
    struct peg__conversation_stream out;
    struct peg__conversation_stream err;
};

/* What output that begins so is when nobody has said it; MAYBE as long as it is white space. */
enum peg__conversation_output peg__conversation_kind_of(peg_str output);

/* False: nobody listens, and the rest need not be called. */
bool peg__conversation_begin(struct peg__conversation *talk, peg_call *call,
                             enum peg__conversation_output output);
/* What came; `user` is the talk. As peg__process_def wants it. */
void peg__conversation_handle(enum peg__process_stream stream, peg_str bytes, void *user);
/* No more will come. */
void peg__conversation_end(struct peg__conversation *talk);

#endif
