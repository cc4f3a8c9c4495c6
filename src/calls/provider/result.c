/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider answers: a result is checked against the tool's output schema, on a worker if it
 * is large, and becomes the outcome that the machine writes. */

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/provider/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

bool calls_provider_has(const struct calls_provider *provider, const struct bus_id *id,
                        uint32_t attempt)
{
    return calls_assignment_find_running(provider, id, attempt) != NULL;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

/* Without memory for the outcome there was none to report that, either. Its coordinator says at the
 * deadline that the outcome is unknown, which is true. */
static void complete(struct calls_assignment *assignment, const struct calls_outcome *outcome)
{
    peg__blob_unref(assignment->value);
    assignment->value = calls_outcome_write(outcome);
    if (!assignment->value)
        assignment->provider->calls->n_late++;
    calls_assignment_feed(assignment,
                          assignment->value ? ASSIGNMENT_ON_RESULT : ASSIGNMENT_ON_DISCARD);
}

static void complete_unread(struct calls_assignment *assignment)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the tool has run, and the gateway has no memory to read its result: "
                           "look at its effect before you repeat it"),
        .was_started = true,
    };

    complete(assignment, &outcome);
}

/* A tool's own error, as CallToolResponse{error{code, message}}. Without memory `message` is not
 * about this result. */
static void complete_unfit(struct calls_assignment *assignment, const char *code, peg_status status,
                           peg_str message)
{
    const peg_str code_text = peg__str(code);
    const size_t inner = wire_bytes_size(code_text) + wire_bytes_size(message);
    struct peg__buf packed = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    char *at = NULL;
    struct calls_outcome outcome = {.kind = CALLS_KIND_ERROR, .was_started = true};

    if (status != PEG_ENOMEM)
        at = peg__buf_reserve(&packed, inner + 1 + WIRE_MAX_VARINT);
    if (!at) {
        complete_unread(assignment);
        return;
    }
    at = wire_put_head(at, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD, inner);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code_text);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
    outcome.response = peg__strn(packed.ptr, (size_t)(at - packed.ptr));
    complete(assignment, &outcome);
    peg__buf_free(&packed);
}

static const char *unfit_code(peg_status status)
{
    return status == PEG_ELIMIT ? "undecided" : "malformed_result";
}

/* ---- on a worker ----------------------------------------------------------------------------- */

static void on_validated(void *user, peg_status status, peg_str text)
{
    struct calls_assignment *assignment = (struct calls_assignment *)user;

    assignment->check = NULL;
    if (status)
        complete_unfit(assignment, unfit_code(status), status, text);
    else
        calls_assignment_feed(assignment, ASSIGNMENT_ON_RESULT);
}

/* Takes the outcome, which is written if it is good: the result lies in its response. NULL: no
 * memory. */
static void validate_on_worker(struct calls_assignment *assignment, peg_schema *schema,
                               struct peg__blob *value, size_t offset, size_t len)
{
    struct calls_loop *calls = assignment->provider->calls;
    struct calls_outcome outcome;

    assignment->value = value;
    if (value && calls_outcome_read(value, &outcome)) {
        calls_assignment_feed(assignment, ASSIGNMENT_ON_VALIDATE);
        assignment->check = calls_check_start(calls, schema, value,
                                              &(struct calls_check_text){
                                                  .json = {outcome.response.ptr + offset, len},
                                                  .response = outcome.response,
                                                  .account = assignment->provider->account,
                                              },
                                              on_validated, assignment);
    }
    if (!assignment->check)
        complete_unread(assignment);
}

/* Chunks had to have room before they came; this has to now. */
static void copy_and_validate(struct calls_assignment *assignment, peg_schema *schema,
                              const struct calls_outcome *outcome, peg_str result)
{
    const struct calls_provider *provider = assignment->provider;
    const size_t offset = result.len ? (size_t)(result.ptr - outcome->response.ptr) : 0;
    peg_error error;
    const peg_status status = calls_result_quota_check(provider->calls->results, provider->account,
                                                       outcome->response.len, &error);

    if (status)
        complete_unfit(assignment, "malformed_result", status, peg__str(error.message));
    else
        validate_on_worker(assignment, schema, calls_outcome_write(outcome), offset, result.len);
}

/* Server data that is large in sum has not been read yet: gw_pack_answer(). */
static bool is_for_worker(const struct calls_loop *calls, peg_str response, peg_str result)
{
    return calls->loop && (result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES ||
                           response.len - result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES);
}

/* ---- what a provider sends ------------------------------------------------------------------- */

/* False: there is one, and no memory to compile it again. */
static bool get_output_schema(const struct calls_assignment *assignment, peg_schema **ret_schema)
{
    const struct calls_loop *calls = assignment->provider->calls;

    *ret_schema = NULL;
    return !assignment->tool ||
           calls->env->get_schema(calls->user, assignment->tool, CALLS_OUTPUT, ret_schema);
}

static void check_result(struct calls_assignment *assignment, const struct calls_outcome *outcome,
                         peg_str result)
{
    struct calls_loop *calls = assignment->provider->calls;
    const bool is_error = outcome->kind == CALLS_KIND_ERROR;
    peg_schema *schema = NULL;
    peg_status status = PEG_OK;

    if (!is_error && !get_output_schema(assignment, &schema)) {
        complete_unread(assignment);
        return;
    }
    if (is_for_worker(calls, outcome->response, result))
        status = PEG_ELIMIT;
    else if (!is_error)
        status = result.len ? calls_check_now(calls, schema, result, "result")
                            : calls_check_content(calls, schema, outcome->response);
    if (status == PEG_ELIMIT && calls->loop)
        copy_and_validate(assignment, schema, outcome, result);
    else if (status)
        complete_unfit(assignment, unfit_code(status), status, peg__buf_view(&calls->text));
    else
        complete(assignment, outcome);
    peg_schema_unref(schema);
}

bool calls_provider_result(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str response, peg_str result, bool is_error)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);
    const struct calls_outcome outcome = {
        .kind = is_error ? CALLS_KIND_ERROR : CALLS_KIND_RESULT,
        .was_started = true,
        .response = response,
    };

    if (!assignment)
        return false;
    check_result(assignment, &outcome, result); /* it may be gone then */
    return true;
}

void calls_provider_large_result(struct calls_provider *provider, const struct bus_id *id,
                                 uint32_t attempt, struct peg__blob *outcome, size_t len)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);
    peg_schema *schema;

    if (assignment && get_output_schema(assignment, &schema)) {
        validate_on_worker(assignment, schema, outcome, CALLS_OUTCOME_RESULT, len);
        peg_schema_unref(schema);
        return;
    }
    peg__blob_unref(outcome);
    if (assignment)
        complete_unread(assignment);
}

void calls_provider_bad_result(struct calls_provider *provider, const struct bus_id *id,
                               uint32_t attempt, peg_status status, peg_str message)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);

    if (assignment)
        complete_unfit(assignment, "malformed_result", status, message);
}

/* Output is a hint: without memory it is not sent. */
void calls_provider_output(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str output)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);
    struct peg__blob *body = assignment ? peg__blob_copy(output) : NULL;

    if (body)
        calls_assignment_feed_with(assignment, ASSIGNMENT_ON_OUTPUT, BUS_NO_REASON, body);
    peg__blob_unref(body);
}

void calls_provider_nak(struct calls_provider *provider, const struct bus_id *id, uint32_t attempt,
                        enum bus_reason reason)
{
    struct calls_assignment *assignment = calls_assignment_find_running(provider, id, attempt);

    if (!assignment)
        return;
    calls_assignment_feed_with(assignment, ASSIGNMENT_ON_GIVE_BACK, reason, NULL);
    calls_provider_pump(provider);
}
