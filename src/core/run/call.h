/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_CALL_H
#define PEG_CORE_RUN_CALL_H

/*
 * A call while it runs: one attempt of one handler. Counted: an abandoned handler keeps its
 * call, and what it answers later goes nowhere. The handler's thread writes the answer; the
 * runner's reads it after the handler returned, and never if it did not.
 */

#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "core/pool/pool.h"
#include "core/run/record.h"
#include "pegboard/call.h"

enum peg__answer_kind {
    PEG__ANSWER_NONE,
    PEG__ANSWER_TEXT, /* bytes too */
    PEG__ANSWER_JSON, /* compact text of a value */
    PEG__ANSWER_MEDIA,
    PEG__ANSWER_ARTIFACT,
    PEG__ANSWER_FAILURE,
    PEG__ANSWER_TOO_LARGE,
};

struct peg__answer {
    enum peg__answer_kind kind;
    struct peg__buf text; /* TEXT, JSON; FAILURE: the sentence */
    char *cause;          /* FAILURE: the code behind it; owned, NULL if none */
    peg_media **media;    /* owned array of references */
    size_t n_media;
    peg_artifact *artifact;
};

struct peg_call {
    atomic_uint n_refs;
    unsigned attempt;       /* from 1 */
    struct peg__job job;    /* on a pool; its share is one reference */
    int64_t ended_ns;       /* when the handler returned */
    bool was_canceled;      /* by then */
    struct peg__task *task; /* what it shares with the attempts after it */
    peg_ctx *ctx;
    struct peg__answer answer;
    bool is_out_of_memory;         /* an answer could not be kept */
    const char *server_data_wrong; /* what is malformed about it, or NULL; static */
    struct peg__buf server_data;   /* JSON text of an array without its last bracket; or empty */
};

/* What all attempts of a call share. */
struct peg__task {
    atomic_uint n_refs;
    peg_tool *tool;
    peg_record *record;     /* its arguments and ids, which do not change any more */
    peg_json_doc *filled;   /* arguments with defaults; NULL if none was missing */
    peg_json_doc *replaced; /* what pre_execute put in their place; NULL if nothing */
    size_t max_result_bytes;
    peg_call first; /* the first attempt, mostly the only one, needs no memory of its own */
};

/* One reference each; both reference what they are given. NULL when out of memory. */
struct peg__task *peg__task_new(peg_tool *tool, peg_record *record);
struct peg__task *peg__task_unref(struct peg__task *task);
peg_call *peg__call_new(struct peg__task *task, peg_ctx *ctx, unsigned attempt);
peg_call *peg__call_ref(peg_call *call);
peg_call *peg__call_unref(peg_call *call);

/* Drops what was answered so far. */
void peg__call_forget_answer(peg_call *call);
/* An answer could not be made: the call ends with PEG_ENOMEM, which is returned. */
peg_status peg__call_out_of_memory(peg_call *call);
/* As peg_call_fail_with(), for a sentence longer than an error's, which is taken over. `code` may
 * be "". */
peg_status peg__call_fail_because(peg_call *call, const char *code, struct peg__buf *sentence);

/* What the handler gets: what pre_execute put there, else filled, else as sent. */
const peg_json *peg__call_args(const peg_call *call);

PEG_DEFINE_CLEANUP(peg_call, peg__call_unref)

#endif
