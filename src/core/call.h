/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CALL_H
#define PEG_CORE_CALL_H

/*
 * A call while it runs. Counted: an abandoned handler keeps its call, and what it answers later
 * goes nowhere. The handler's thread writes the answer, the runner's reads it after the handler
 * returned.
 */

#include <stdatomic.h>

#include "base/buf.h"
#include "pegboard/call.h"
#include "pegboard/record.h"

enum peg__answer_kind {
    PEG__ANSWER_NONE,
    PEG__ANSWER_TEXT, /* bytes too */
    PEG__ANSWER_JSON, /* compact text of a value */
    PEG__ANSWER_MEDIA,
    PEG__ANSWER_ARTIFACT,
    PEG__ANSWER_FAILURE,
};

struct peg__answer {
    enum peg__answer_kind kind;
    struct peg__buf text; /* TEXT, JSON; FAILURE: the sentence */
    const char *cause; /* FAILURE: code behind it, "" if none; points into the call or is static */
    peg_media **media;
    size_t n_media;
    peg_artifact *artifact;
};

struct peg_call {
    atomic_uint n_refs;
    peg_ctx *ctx;
    peg_tool *tool;
    peg_str id; /* NUL-terminated copy */
    char checksum[65];
    const peg_json *args;
    unsigned attempt;
    struct peg__answer answer;
    peg_status status;             /* PEG_ENOMEM if an answer could not be kept */
    struct peg__buf server_data;   /* JSON text of an array being written, without its end */
    const char *server_data_error; /* why it is malformed, or NULL; static */
    char cause[64];
};

/* Drops what an attempt answered, so that the next starts clean. */
void peg__call_reset(struct peg_call *call);
void peg__answer_free(struct peg__answer *answer);

#endif
