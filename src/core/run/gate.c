/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A gate from opening to answer:
 *
 *   peg_gate_wait -> gate_new -> announce_open -> await -> give
 *   peg_gate_resolve, _reject, _abort, and await at a stop or timeout -> settle
 *
 * The first to settle wins; the winner tells the sinks and only then lets the waiter go, so the
 * context, which the gate borrows from the waiter, is there for as long as it is used. What
 * remains for those that keep a reference (id, reason, payload, ids) is the gate's own copy.
 */

#include "pegboard/gate.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "pegboard/cleanup.h"
#include "json/json.h"

#define INVALID_GATE "E_INVALID_INITIAL_TURN_GATE_VALUE"
#define INVALID_ANSWER "E_INVALID_TURN_GATE_RESOLUTION"

/* What a message has room for: the words of a rejection, and of the id. */
enum { MAX_WORDS = 256, MAX_SHOWN = 64 };

enum result { OPEN = 0, RESOLVED, REJECTED, ABORTED, TIMEOUT };

static const char *const result_names[] = {"open", "resolved", "rejected", "aborted", "timeout"};

struct outcome {
    enum result result;
    peg_json_doc *answer;  /* RESOLVED; the gate's until the waiter takes it */
    const char *code;      /* REJECTED; static */
    char words[MAX_WORDS]; /* REJECTED */
    bool by_context;       /* ABORTED: canceled or past its deadline */
};

struct peg_gate {
    atomic_uint n_refs;
    struct peg__arena arena; /* id, reason, ids */
    const char *id;
    const char *reason;
    peg_ids ids;
    peg_json_doc *payload;
    peg_schema *schema; /* or NULL */
    int64_t timeout_ms;
    int64_t created_ms;
    peg_ctx *ctx; /* the waiter's; only until is_closed */
    atomic_bool is_settled;
    struct peg__wait wait;
    struct outcome outcome; /* under wait.lock */
    bool is_closed;         /* under wait.lock: settled, and the sinks have returned */
};

/* ---- making and dropping ------------------------------------------------------------- */

PEG__DEFINE_REF(peg_gate)

peg_gate *peg_gate_unref(peg_gate *gate)
{
    if (!gate || !peg__refs_drop(&gate->n_refs))
        return NULL;
    peg_json_doc_free(gate->outcome.answer);
    peg_json_doc_free(gate->payload);
    peg_schema_unref(gate->schema);
    peg__wait_destroy(&gate->wait);
    peg__arena_free(&gate->arena);
    peg__free(gate);
    return NULL;
}

static peg_status reject_gate(peg_error *reterr, const char *where, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, INVALID_GATE, "a gate cannot be opened: %s", why);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status check_def(const peg_gate_def *def, peg_error *reterr)
{
    if (def->id && (!*def->id || !peg__utf8_is_valid(peg__str(def->id))))
        return reject_gate(reterr, "/id", "its id is empty or no UTF-8: leave it out or give one");
    if (def->id && strlen(def->id) > PEG_LIMIT_ID_BYTES)
        return reject_gate(reterr, "/id", "its id has more than 256 bytes: use a shorter one");
    if (!def->reason || !*def->reason || !peg__utf8_is_valid(peg__str(def->reason)))
        return reject_gate(reterr, "/reason",
                           "its reason is missing or no UTF-8: say what is asked");
    if (strlen(def->reason) > PEG_LIMIT_GATE_REASON_BYTES)
        return reject_gate(reterr, "/reason",
                           "its reason has more than 16384 bytes: put it in the payload");
    if (!def->payload)
        return reject_gate(reterr, "/payload",
                           "it has no payload: give null if there is nothing to say");
    if (def->timeout_ms < 0)
        return reject_gate(reterr, "/timeout_ms",
                           "its timeout is negative: 1 or more, or 0 for none");
    return PEG_OK;
}

static peg_status copy_json(const peg_json *value, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *builder = peg_json_builder_new();

    if (!builder)
        return peg__fail_nomem(reterr);
    peg_json_add_copy(builder, value);
    return peg_json_builder_finish(builder, ret_doc, reterr);
}

static bool copy_text(peg_gate *gate, const char *text, const char **ret_copy)
{
    const char *copy = peg__arena_copy(&gate->arena, peg__str(text));

    if (copy)
        *ret_copy = copy;
    return copy != NULL;
}

static peg_status copy_def(peg_gate *gate, const peg_gate_def *def, peg_error *reterr)
{
    const peg_ids *ids = peg_ctx_ids(gate->ctx);
    char fresh_id[PEG_UUID_TEXT];

    if (!def->id && !peg__uuid7(peg_ctx_clock(gate->ctx), fresh_id))
        return peg__fail_no_randomness(reterr);
    gate->ids.iteration = ids->iteration;
    if (!copy_text(gate, def->id ? def->id : fresh_id, &gate->id) ||
        !copy_text(gate, def->reason, &gate->reason) ||
        !copy_text(gate, ids->run_id, &gate->ids.run_id) ||
        !copy_text(gate, ids->turn_id, &gate->ids.turn_id) ||
        !copy_text(gate, ids->dispatch_id, &gate->ids.dispatch_id))
        return peg__fail_nomem(reterr);
    return copy_json(def->payload, &gate->payload, reterr);
}

static peg_status gate_new(peg_ctx *ctx, const peg_gate_def *def, peg_gate **ret_gate,
                           peg_error *reterr)
{
    peg_gate *gate = peg__alloc_zero(1, sizeof(*gate));
    peg_status status;

    if (!gate) {
        peg__fail_nomem(reterr);
        return PEG_ENOMEM;
    }
    atomic_init(&gate->n_refs, 1);
    gate->ctx = ctx;
    gate->schema = def->schema ? peg_schema_ref(def->schema) : NULL;
    gate->timeout_ms = def->timeout_ms;
    gate->created_ms = peg_clock_now_ms(peg_ctx_clock(ctx));
    peg__wait_init(&gate->wait);
    status = copy_def(gate, def, reterr);
    if (status) {
        peg_gate_unref(gate);
        return status;
    }
    *ret_gate = gate;
    return PEG_OK;
}

/* ---- settling: once, from any thread ----------------------------------------------------- */

static void emit(peg_gate *gate, peg_event_kind kind, const char *result)
{
    const bool is_closed = kind == PEG_EVENT_GATE_CLOSED;
    peg_event event = {.kind = kind,
                       .u.gate = {.gate = gate,
                                  .id = peg__str(gate->id),
                                  .reason = peg__str(gate->reason),
                                  .result = result}};

    if (is_closed)
        event.u.gate.settled_ms = peg_clock_now_ms(peg_ctx_clock(gate->ctx));
    peg_ctx_emit(gate->ctx, &event);
}

/* False if somebody was faster: then what the outcome holds is still the caller's. */
static bool settle_gate(peg_gate *gate, const struct outcome *outcome)
{
    bool is_first;

    pthread_mutex_lock(&gate->wait.lock);
    is_first = gate->outcome.result == OPEN;
    if (is_first) {
        gate->outcome = *outcome;
        atomic_store_explicit(&gate->is_settled, true, memory_order_release);
    }
    pthread_mutex_unlock(&gate->wait.lock);
    if (!is_first)
        return false;

    emit(gate, PEG_EVENT_GATE_CLOSED, result_names[outcome->result]);
    pthread_mutex_lock(&gate->wait.lock);
    gate->is_closed = true;
    peg__wait_wake(&gate->wait);
    pthread_mutex_unlock(&gate->wait.lock);
    return true;
}

static peg_status fail_invalid(const peg_report *report, peg_error *reterr)
{
    const peg_failure *first = peg_report_at(report, 0);
    const size_t n_more = peg_report_len(report) - 1 + peg_report_more(report);
    char more[48] = "";

    if (n_more)
        snprintf(more, sizeof(more), " (and %zu more)", n_more);
    peg__fail(reterr, PEG_ESCHEMA, INVALID_ANSWER,
              "the answer does not fit the gate, which stays open%s: %s%.*s%s%.*s", more,
              first->instance.len ? "at " : "", PEG_ARG(first->instance),
              first->instance.len ? ": " : "", PEG_ARG(first->message));
    peg__error_where(reterr, first->instance);
    return PEG_ESCHEMA;
}

static peg_status fail_undecided(const peg_checker *checker, peg_error *reterr)
{
    const char *limit = peg_checker_reason(checker);

    if (strcmp(limit, "memory") == 0)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_CHECK_UNDECIDED",
                     "checking the answer stopped at the limit %s, and the gate stays open: "
                     "answer with less",
                     limit);
}

static peg_status check_answer(const peg_schema *schema, const peg_json *answer, peg_error *reterr)
{
    PEG_CLEANUP(peg_checker_freep) peg_checker *checker = NULL;
    PEG_CLEANUP(peg_report_freep) peg_report *report = NULL;
    peg_status status = peg_checker_new(NULL, &checker, reterr);

    if (!status)
        status = peg_report_new(&report, reterr);
    if (status)
        return status;
    switch (peg_schema_report(schema, checker, answer, report)) {
    case PEG_VALID:
        return PEG_OK;
    case PEG_INVALID:
        return fail_invalid(report, reterr);
    case PEG_UNDECIDED:
        break;
    }
    return fail_undecided(checker, reterr);
}

/* The answer as the waiter gets it: its own document, with the schema's defaults. */
static peg_status take_answer(const peg_gate *gate, const peg_json *value, peg_json_doc **ret_doc,
                              peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *filled = NULL;
    peg_status status = PEG_OK;

    if (gate->schema) {
        status = peg_schema_fill(gate->schema, value, &filled, reterr);
        if (!status)
            status = check_answer(gate->schema, filled ? peg_json_root(filled) : value, reterr);
    }
    if (status)
        return status;
    if (!filled)
        return copy_json(value, ret_doc, reterr);
    *ret_doc = filled;
    filled = NULL;
    return PEG_OK;
}

peg_status peg_gate_resolve(peg_gate *gate, const peg_json *value, peg_error *reterr)
{
    struct outcome outcome = {.result = RESOLVED};
    peg_status status;

    if (peg_gate_is_settled(gate))
        return PEG_OK;
    if (!value)
        return peg__fail(reterr, PEG_ESCHEMA, INVALID_ANSWER,
                         "there is no answer, and the gate stays open: answer null to say nothing");
    status = take_answer(gate, value, &outcome.answer, reterr);
    if (status)
        return status;
    if (!settle_gate(gate, &outcome))
        peg_json_doc_free(outcome.answer);
    return PEG_OK;
}

void peg_gate_reject(peg_gate *gate, const char *code, const char *fmt, ...)
{
    struct outcome outcome = {.result = REJECTED, .code = code ? code : ""};
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(outcome.words, sizeof(outcome.words), fmt, args);
    va_end(args);
    if (len < 0)
        outcome.words[0] = '\0';
    else if (len >= (int)sizeof(outcome.words))
        memcpy(outcome.words + peg__utf8_cut(outcome.words, sizeof(outcome.words) - 4), "...", 4);
    settle_gate(gate, &outcome);
}

void peg_gate_abort(peg_gate *gate)
{
    settle_gate(gate, &(struct outcome){.result = ABORTED});
}

/* ---- opening and waiting -------------------------------------------------------------------- */

static void announce_open(peg_gate *gate, peg_gate_fn listener, void *user)
{
    emit(gate, PEG_EVENT_GATE_OPEN, NULL);
    /* A sink may have settled it: then there is nothing left to ask. */
    if (!peg_gate_is_settled(gate))
        listener(gate, user);
}

static bool is_closed(void *user)
{
    return ((peg_gate *)user)->is_closed;
}

static enum peg__woke wait_closed(peg_gate *gate, peg_ctx *ctx, int64_t until_ns)
{
    enum peg__woke woke;

    pthread_mutex_lock(&gate->wait.lock);
    woke = peg__wait_for(&gate->wait, ctx, until_ns, is_closed, gate);
    pthread_mutex_unlock(&gate->wait.lock);
    return woke;
}

static void await(peg_gate *gate, int64_t until_ns)
{
    struct outcome outcome = {.result = OPEN};

    switch (wait_closed(gate, gate->ctx, until_ns)) {
    case PEG__WOKE_DONE:
        return;
    case PEG__WOKE_STOP:
        outcome.result = ABORTED;
        outcome.by_context = true;
        break;
    case PEG__WOKE_TIME:
        outcome.result = TIMEOUT;
        break;
    }
    /* Somebody who was faster may still be telling the sinks. */
    if (!settle_gate(gate, &outcome))
        wait_closed(gate, NULL, INT64_MAX);
}

/* What was asked: to a model the id would say nothing. */
static peg_str shown_reason(const peg_gate *gate)
{
    const peg_str all = peg__str(gate->reason);

    return all.len > MAX_SHOWN ? peg__strn(all.ptr, peg__utf8_cut(all.ptr, MAX_SHOWN)) : all;
}

static peg_status fail_aborted(const peg_gate *gate, peg_error *reterr)
{
    peg_error why;

    if (gate->outcome.by_context && peg_ctx_check(gate->ctx, &why))
        return peg__fail_because(reterr, PEG_ECANCELED, "E_TURN_GATE_ABORTED", &why,
                                 "the gate '%.*s' was given up unanswered",
                                 PEG_ARG(shown_reason(gate)));
    return peg__fail(reterr, PEG_ECANCELED, "E_TURN_GATE_ABORTED",
                     "the gate '%.*s' was aborted: leave out what it guards, or ask again",
                     PEG_ARG(shown_reason(gate)));
}

/* Of a closed gate, which does not change any more. */
static peg_status give(peg_gate *gate, peg_json_doc **ret_value, peg_error *reterr)
{
    struct outcome *outcome = &gate->outcome;
    peg_error words;

    switch (outcome->result) {
    case REJECTED:
        peg__fail(&words, PEG_EHOST, outcome->code, "%s", outcome->words);
        return peg__fail_because(reterr, PEG_EHOST, "E_TURN_GATE_REJECTED", &words,
                                 "the gate '%.*s' was rejected", PEG_ARG(shown_reason(gate)));
    case TIMEOUT:
        return peg__fail(reterr, PEG_ETIMEOUT, "E_TURN_GATE_TIMEOUT",
                         "the gate '%.*s' got no answer within %lld ms: leave out what it guards, "
                         "or ask again",
                         PEG_ARG(shown_reason(gate)), (long long)gate->timeout_ms);
    case OPEN:
    case ABORTED:
        return fail_aborted(gate, reterr);
    case RESOLVED:
        break;
    }
    if (ret_value) {
        *ret_value = outcome->answer;
        outcome->answer = NULL;
    }
    return PEG_OK;
}

peg_status peg_gate_wait(peg_ctx *ctx, const peg_gate_def *def, peg_json_doc **ret_value,
                         peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_GATE_DEF_INIT, reterr);
    PEG_CLEANUP(peg_gate_unrefp) peg_gate *gate = NULL;
    void *user = NULL;
    const peg_gate_fn listener = peg__ctx_gate_listener(ctx, &user);
    peg_status status = check_def(def, reterr);
    int64_t until_ns;

    if (status)
        return status;
    if (!listener)
        return peg__fail(
            reterr, PEG_EUNSUPPORTED, "E_GATE_UNSUPPORTED",
            "the context has no listener for gates: set one with peg_ctx_with_gates()");
    status = gate_new(ctx, def, &gate, reterr);
    if (status)
        return status;
    until_ns = def->timeout_ms ? peg__clock_in_ms(peg_ctx_clock(ctx), def->timeout_ms) : INT64_MAX;
    peg__ctx_pause_budget(ctx);
    announce_open(gate, listener, user);
    await(gate, until_ns);
    peg__ctx_resume_budget(ctx);
    return give(gate, ret_value, reterr);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

PEG__DEFINE_GETTER(const char *, peg_gate_id, peg_gate, id)
PEG__DEFINE_GETTER(const char *, peg_gate_reason, peg_gate, reason)

const peg_json *peg_gate_payload(const peg_gate *gate)
{
    return peg_json_root(gate->payload);
}

PEG__DEFINE_GETTER(peg_schema *, peg_gate_schema, peg_gate, schema)

const peg_ids *peg_gate_ids(const peg_gate *gate)
{
    return &gate->ids;
}

PEG__DEFINE_GETTER(int64_t, peg_gate_created_ms, peg_gate, created_ms)

bool peg_gate_is_settled(const peg_gate *gate)
{
    return atomic_load_explicit(&gate->is_settled, memory_order_acquire);
}
