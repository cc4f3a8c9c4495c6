/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_RUN_H
#define PEGBOARD_RUN_H

/*
 * Running one call, the same way for every engine and transport:
 *
 *   look up -> parse and validate -> hooks -> start event -> handler, under deadline and
 *   cancellation -> validate the result -> end event -> wrap -> record
 *
 * Whatever goes wrong with the call itself becomes a failed record with a code and a sentence the
 * model can use. peg_status reports only what went wrong with pegboard: memory, a spool store.
 */

#include <pegboard/pool.h>
#include <pegboard/record.h>
#include <pegboard/spool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a model asks for. */
typedef struct peg_call_request {
    size_t size;     /* set by PEG_CALL_REQUEST_INIT */
    peg_str call_id; /* the vendor's, at most 1,024 bytes; "" gets one of ours */
    peg_str tool;    /* as the model wrote it, perhaps empty or unknown */
    peg_str args;    /* JSON text as the model wrote it; "" means {} */
    peg_str handle;  /* see peg_record_handle(); at most 1,088 bytes; "" means the call id */
    peg_str key;     /* see peg_record_key(); at most 256 bytes; "" gets a new one */
} peg_call_request;
#define PEG_CALL_REQUEST_INIT .size = sizeof(peg_call_request)

/* What a host may put between model and handler. Each may be NULL. Called on the thread of
 * peg_call_run(), in this order. */
typedef struct peg_run_hooks {
    /* False: the call is refused (E_TOOL_NOT_ALLOWED), with the sentence of peg_call_fail() if the
     * hook said one. The call neither starts nor ends; a dispatch still tells of it. */
    bool (*is_allowed)(peg_call *call, const peg_json *args, void *user);
    /* What events show instead of the arguments; *ret_masked is taken over. The record keeps the
     * arguments as sent: mask what you store of it yourself. Failing refuses the call. */
    peg_status (*mask_arguments)(const peg_call *call, const peg_json *args,
                                 peg_json_doc **ret_masked, void *user, peg_error *reterr);
    /* Last word before the handler: *ret_args, if set, replaces the arguments (credentials put in;
     * the schema is not asked again) and is taken over; it must be an object. Failing refuses the
     * call (E_TOOL_NOT_ALLOWED). */
    peg_status (*pre_execute)(peg_call *call, const peg_json *args, peg_json_doc **ret_args,
                              void *user, peg_error *reterr);
    void (*on_start)(const peg_call *call, void *user);
    /* A failed attempt: true runs the handler again after *ret_delay_ms. attempt counts from 1. One
     * that was given up on a pool (PEG_ETIMEOUT, PEG_ECANCELED) may still be running. */
    bool (*should_retry)(const peg_call *call, const peg_error *failure, unsigned attempt,
                         int64_t *ret_delay_ms, void *user);
    void (*on_end)(const peg_record *record, void *user);
    void *user;
} peg_run_hooks;

/*
 * How long, how often and how many at once. A member that is zero is not set there; the first place
 * that sets it counts:
 *
 *   the tool's own timeout_ms                 (tool.h)
 *   settings of a peg_run_options             one call; `call` of a peg_dispatch_options
 *   settings of a peg_tool_config             `tools` of a peg_dispatch_options, else the turn's
 *   the default, in brackets
 *
 * The three members about retries count together, where max_retries is set.
 */
typedef struct peg_run_settings {
    int64_t timeout_ms; /* of one attempt [30,000]; negative: none */
    /* A handler that failed is run again so many times [0], after so long, and so much longer each
     * time [1]. Not one that ran out of time: it may still be running. should_retry of the hooks
     * decides instead if there is one. */
    int max_retries;
    int64_t retry_delay_ms;
    double retry_factor;
    int max_iterations;  /* of a dispatch [20] E_LIMIT_ITERATIONS; negative: no limit */
    int max_parallel;    /* calls of a response that run at once, on a pool [one]; 1 also tells the
                          * model to ask for one at a time */
    int64_t reserved[4]; /* zero; settings to come take its place, so that the structs that hold
                          * this one by value stay as they are (E_STRUCT_SIZE if it is set) */
} peg_run_settings;

/* Zero means the default, in brackets; a negative number means no limit. */
typedef struct peg_run_options {
    size_t size; /* set by PEG_RUN_OPTIONS_INIT */
    peg_run_settings settings;
    int64_t max_result_bytes;   /* of text, bytes or JSON [8 MiB] */
    int64_t max_args_bytes;     /* of arguments [4 MiB] */
    unsigned max_attempts;      /* whatever should_retry says [10] */
    peg_spool_store *spool;     /* where text results go [memory, one per call] */
    peg_pool *pool;             /* where handlers run [inline] */
    const peg_run_hooks *hooks; /* [none] */
} peg_run_options;
#define PEG_RUN_OPTIONS_INIT .size = sizeof(peg_run_options)

/*
 * Runs a call on the context's registry and gives its record. options may be NULL. Errors:
 * PEG_EINVAL (E_INVALID_ARGUMENT, `where` names the field) before anything has happened;
 * PEG_ENOMEM, PEG_EIO (a system without randomness), and what the spool store fails with, such as
 * PEG_ELIMIT (E_SPOOL_FULL). The handler has then perhaps run.
 */
PEG_API PEG_MUST_USE peg_status peg_call_run(peg_ctx *ctx, const peg_call_request *request,
                                             const peg_run_options *options,
                                             peg_record **ret_record, peg_error *reterr);

/* The shortest way: one call on a registry, in a context of its own, with all defaults. */
PEG_API PEG_MUST_USE peg_status peg_registry_call(peg_registry *registry, const char *tool,
                                                  const char *args, peg_record **ret_record,
                                                  peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
