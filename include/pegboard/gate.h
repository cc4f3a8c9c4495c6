/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_GATE_H
#define PEGBOARD_GATE_H

/*
 * A gate: a handler asks somebody, usually a person, and waits for the answer. It belongs inside
 * the handler, before the side effect.
 *
 *   handler's thread     peg_gate_wait() ... blocks ... value or error
 *   the host's listener  gets the live gate; it, or any thread that kept a reference, settles it
 *
 * A gate settles exactly once. It waits on the context's clock and cancellation; the time spent
 * waiting does not count against the tool's timeout. Shared, reference counted; any thread.
 */

#include <pegboard/ctx.h>
#include <pegboard/schema.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_gate_def {
    size_t size;             /* set by PEG_GATE_DEF_INIT */
    const char *id;          /* NULL: a fresh UUID */
    const char *reason;      /* what is asked, for the person who answers; required */
    const peg_json *payload; /* what it is about; required, copied */
    peg_schema *schema;      /* of the answer; NULL: any value */
    int64_t timeout_ms;      /* 0: none; at least 1 */
} peg_gate_def;
#define PEG_GATE_DEF_INIT .size = sizeof(peg_gate_def)

/*
 * Opens a gate on a context and waits. PEG_OK: *ret_value is the answer, the caller's; ret_value
 * may be NULL. Errors:
 *   PEG_EINVAL        E_INVALID_INITIAL_TURN_GATE_VALUE, before anyone is notified
 *   PEG_EUNSUPPORTED  E_GATE_UNSUPPORTED: the context has no listener
 *   PEG_ECANCELED     E_TURN_GATE_ABORTED: the gate or what it belongs to was canceled
 *   PEG_ETIMEOUT      E_TURN_GATE_TIMEOUT
 *   PEG_EHOST         E_TURN_GATE_REJECTED, the rejecter's code as cause, its words in the message
 *   PEG_ENOMEM
 */
PEG_API PEG_MUST_USE peg_status peg_gate_wait(peg_ctx *ctx, const peg_gate_def *def,
                                              peg_json_doc **ret_value, peg_error *reterr);

/* ---- asking what MCP clients can answer ------------------------------------------------- */

/* One question: "elicitation/create", "sampling/createMessage" or "roots/list" with its params as
 * the Model Context Protocol writes them. */
typedef struct peg_ask {
    const char *key; /* what its answer is found by: unique within the questions */
    const char *method;
    const peg_json *params; /* an object; NULL: none */
    /* Left out, and its answer missing, if the client did not declare that it can be asked this. */
    bool is_optional;
} peg_ask;

/* Opens one gate for several questions and waits. PEG_OK: *ret_answers is an object, the answer to
 * each question by its key, as the protocol writes results. A listener of the host's own finds the
 * questions in the payload, {"pegboard/requests": {KEY: {"method", "params", "optional"}}}, and
 * resolves the gate with such an object; while a key of one that is not optional is missing the
 * gate stays open. Errors are those of
 * peg_gate_wait(); PEG_EINVAL also for a key that is given twice. */
PEG_API PEG_MUST_USE peg_status peg_gate_ask(peg_ctx *ctx, const peg_ask *asks, size_t n_asks,
                                             peg_json_doc **ret_answers, peg_error *reterr);
/* The same on the context of a call. */
PEG_API PEG_MUST_USE peg_status peg_call_ask(peg_call *call, const peg_ask *asks, size_t n_asks,
                                             peg_json_doc **ret_answers, peg_error *reterr);

/* ---- for the side that answers ------------------------------------------------------------- */

PEG_API peg_gate *peg_gate_ref(peg_gate *gate);
PEG_API peg_gate *peg_gate_unref(peg_gate *gate);

/* The value is copied, and what the gate's schema has defaults for is filled in. On failure the
 * gate stays open and another answer may come: PEG_ESCHEMA (E_INVALID_TURN_GATE_RESOLUTION) if it
 * does not fit the schema, PEG_ELIMIT if a limit came first, PEG_ENOMEM. PEG_OK too if the gate was
 * settled before, which then changes nothing: ask peg_gate_is_settled(). */
PEG_API peg_status peg_gate_resolve(peg_gate *gate, const peg_json *value, peg_error *reterr);
/* `code` is a literal such as "E_DENIED", or NULL; it becomes the cause of the waiter's error. */
PEG_API void peg_gate_reject(peg_gate *gate, const char *code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* Cancels this gate, not its turn. */
PEG_API void peg_gate_abort(peg_gate *gate);

PEG_API const char *peg_gate_id(const peg_gate *gate); /* all borrowed from the gate */
PEG_API const char *peg_gate_reason(const peg_gate *gate);
PEG_API const peg_json *peg_gate_payload(const peg_gate *gate);
PEG_API peg_schema *peg_gate_schema(const peg_gate *gate); /* of the answer; NULL: any value */
PEG_API const peg_ids *peg_gate_ids(const peg_gate *gate); /* of turn and dispatch */
PEG_API int64_t peg_gate_created_ms(const peg_gate *gate);
PEG_API bool peg_gate_is_settled(const peg_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
