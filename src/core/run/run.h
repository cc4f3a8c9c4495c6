/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_RUN_H
#define PEG_CORE_RUN_RUN_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "core/pool/pool.h"
#include "pegboard/call.h"
#include "pegboard/record.h"
#include "pegboard/run.h"

/* ---- records --------------------------------------------------------------- */

/*
 * A record while it is made: run.c fills it in, stage by stage, and hands it out when the call is
 * over. From then on nothing changes but that its checksum and its nonce are made when somebody
 * asks for them, once and for all threads: most calls are never asked. An abandoned handler keeps
 * the record of its call for the arguments; it never looks at what is written later.
 */

struct peg_record {
    atomic_uint n_refs;
    _Atomic(char *) checksum; /* these two are made when they are asked for (see record.c); */
    _Atomic(char *) nonce;    /* NULL until then, and in a copy, which asks the original */
    bool is_error;
    bool is_trusted;
    bool is_inline;
    bool is_from_artifact_tool;
    peg_result_kind result_kind;
    unsigned n_attempts;
    peg_str key; /* these five are behind the struct, each NUL-terminated */
    peg_str call_id;
    peg_str handle;
    peg_str tool;
    peg_str args_text;
    peg_json_doc *args; /* NULL where what was sent cannot be used: stands for {} */
    const char *code;   /* "" if it succeeded; static, or own_code */
    char *own_code;     /* owned; NULL but for records made by hand */
    char *cause;        /* owned; NULL if none */
    char *text;         /* owned; TEXT */
    size_t text_len;
    peg_artifact *artifact;
    peg_media **media; /* owned array of references */
    size_t n_media;
    peg_json_doc *server_data;       /* NULL if none */
    struct peg__record_extra *extra; /* what only records made by hand have; NULL if nothing */
    peg_record *original;            /* owns all but the handle; NULL: this one does */
    int64_t created_ms;
    int64_t completed_ms;
    int64_t duration_ns;
};

/* What a record starts with; all is copied. Empty strings get what run.h says. */
struct peg__record_start {
    peg_str key;
    peg_str call_id;
    peg_str handle;
    peg_str tool;
    peg_str args;
    int64_t now_ms;
};

/* One reference. PEG_ENOMEM, PEG_EIO (E_NO_RANDOMNESS). */
peg_status peg__record_start(const struct peg__record_start *start, peg_record **ret_record,
                             peg_error *reterr);

/* The same record under another handle; it holds the original. PEG_ENOMEM. */
peg_status peg__record_rename(peg_record *record, peg_str handle, peg_record **ret_record,
                              peg_error *reterr);

/* As peg_record_checksum() and peg_record_nonce(), for those who can return why there is none.
 * PEG_ENOMEM; the checksum: PEG_ELIMIT; the nonce: PEG_EIO (E_NO_RANDOMNESS). */
peg_status peg__record_checksum(const peg_record *record, const char **ret_hex, peg_error *reterr);
peg_status peg__record_nonce(const peg_record *record, const char **ret_hex, peg_error *reterr);

/* The name under which a call without one is recorded. */
#define PEG__UNNAMED_TOOL "(unnamed tool call)"

/* ---- calls ----------------------------------------------------------------- */

/*
 * A call while it runs: one attempt of one handler. Counted: an abandoned handler keeps its
 * call, and what it answers later goes nowhere. The handler's thread writes the answer; the
 * runner's reads it after the handler returned, and never if it did not.
 */

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

/* As peg_call_reply_json(), with the text of the value, which is taken over. */
peg_status peg__call_reply_text(peg_call *call, struct peg__buf *json);
/* As peg_call_add_server_data(), with the text of the data. */
peg_status peg__call_add_server_text(peg_call *call, const char *kind, const char *audience,
                                     peg_str json);

/* What the handler gets: what pre_execute put there, else filled, else as sent. */
const peg_json *peg__call_args(const peg_call *call);

PEG_DEFINE_CLEANUP(peg_call, peg__call_unref)

/* ---- runs ------------------------------------------------------------------ */

/*
 * Running a call in two halves, so that several can be under way on a pool: begin does everything
 * up to the handler and starts it, end waits for it and makes the record. peg_call_run() is both.
 *
 *   run.c       the halves, in order; the handler's answer becomes a result
 *   prepare.c   tool, arguments, hooks; how a call fails
 *   handler.c   attempts, deadline, cancellation, start and end
 *
 * Each stage returns a status only for what is wrong with pegboard itself. What is wrong with the
 * call it writes into the record with peg__run_refuse(), and the stages after it are left out.
 */

/* Both are called inside of peg__run_begin(). */
struct peg__run_tap {
    /* Before the handler starts (or fails to): `args` is what may be shown of its arguments, NULL
     * if nothing may. */
    void (*announce)(const peg_record *record, const peg_json *args, void *user);
    /* The handler is about to run. */
    void (*start)(void *user);
    void *user;
};

/* Owned by the caller of peg__run_begin(), and private to this room. */
struct peg__run {
    peg_ctx *ctx;            /* borrowed */
    peg_run_options options; /* defaults in place, negative limits as the largest number */
    const struct peg__run_tap *tap;
    peg_record *record;
    peg_tool *tool;         /* NULL until it is found */
    struct peg__task *task; /* NULL until the arguments are good */
    peg_call *call;         /* the present attempt */
    peg_json_doc *masked;   /* what events show instead of the arguments; NULL: the arguments */
    int64_t started_ns;
    int64_t started_ms;
    bool has_started; /* the start event was emitted: the end event is owed */
    bool is_on_pool;  /* the present attempt was submitted */
};

/* On failure there is nothing left to free. The context outlives the run. */
peg_status peg__run_begin(struct peg__run *run, peg_ctx *ctx, const peg_call_request *request,
                          const peg_run_options *options, const struct peg__run_tap *tap,
                          peg_error *reterr);
/* Frees the run, in either case. */
peg_status peg__run_end(struct peg__run *run, peg_record **ret_record, peg_error *reterr);

/* ---- the stages ------------------------------------------------------------------- */

/* Everything before the handler. */
peg_status peg__run_prepare(struct peg__run *run, peg_error *reterr);
peg_status peg__run_start_handler(struct peg__run *run, peg_error *reterr);
peg_status peg__run_await_handler(struct peg__run *run, peg_error *reterr);
/* If an end is owed. has_failed: for a reason that the record does not tell. */
void peg__run_report_end(struct peg__run *run, bool has_failed);

/* ---- what they share ---------------------------------------------------------------- */

static inline bool peg__run_is_refused(const struct peg__run *run)
{
    return run->record->is_error;
}

/* Makes the call a failure with a sentence for the model. `cause` is a code or "". PEG_ENOMEM. */
peg_status peg__run_refuse(struct peg__run *run, const char *code, const char *cause,
                           peg_error *reterr, const char *fmt, ...) PEG_PRINTF(5, 6);
/* The same with the sentence taken over. */
peg_status peg__run_refuse_text(struct peg__run *run, const char *code, const char *cause,
                                struct peg__buf *sentence, peg_error *reterr);
/* Emits PEG_EVENT_LIMIT: "tool '...' reached ..." */
void peg__run_report_limit(struct peg__run *run, const char *code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* What events may show of the arguments. */
const peg_json *peg__run_shown_args(const struct peg__run *run);

#endif
