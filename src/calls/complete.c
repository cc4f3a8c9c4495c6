/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fourth stage of a call: its result is read against the tool's output schema, and becomes its
 * outcome if no other one stands. Then coordinator and waiters are told, and the provider may
 * forget it. An end that there is no room for is told to those who wait; for the others a small one
 * stands in its place.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "calls/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

enum { PAUSE_NS = 50000000 };

static bool is_keyed(const struct calls_assignment *assignment)
{
    return assignment->entry.id.len == sizeof(assignment->entry.id.bytes);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void notify_waiters(struct calls_assignment *assignment, const struct bus_answer *answer)
{
    struct calls_loop *calls = assignment->provider->calls;
    const struct bus_message message = {
        .kind = BUS_DONE,
        .id = assignment->entry.id,
        .attempt = assignment->entry.attempt,
        .from = calls->bus->self,
        .body = assignment->outcome,
    };

    for (size_t i = 0; i < answer->n_addresses; i++)
        if (!bus_address_equal(answer->addresses[i], assignment->coordinator))
            bus_send(calls->bus, answer->addresses[i], &message, NULL);
}

static void be_done(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;
    const struct bus_id id = assignment->entry.id;
    const uint32_t attempt = assignment->entry.attempt;

    calls_assignment_drop(assignment);
    if (!provider->is_away)
        provider->events->ack(provider->user, &id, attempt);
    calls_claim_pump(provider);
}

static void on_result_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, waiters);

    if (!answer->status)
        notify_waiters(assignment, answer);
    be_done(assignment);
}

/* Those who joined a call of their own identity look for themselves too: what is lost here costs
 * them a second. */
static void send_completion(struct calls_assignment *assignment)
{
    const struct bus_key key = calls_assignment_key(assignment, BUS_WAITERS, 0);

    calls_assignment_send(assignment, BUS_DONE, assignment->outcome);
    if (!is_keyed(assignment)) {
        be_done(assignment);
        return;
    }
    assignment->waiters.fn = on_result_waiters;
    bus_waiters(assignment->provider->calls->bus, &key, &assignment->waiters);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_later(struct calls_assignment *assignment)
{
    struct bus *bus = assignment->provider->calls->bus;

    bus_arm(bus, &assignment->again, bus_now_ns(bus) + PAUSE_NS);
}

/* What stands for an end that there is no room for, so that who asks later hears that there was
 * one, and nobody starts the call again. The attempt is in it to make it its writer's own. */
static struct peg__blob *make_placeholder(const struct calls_assignment *assignment)
{
    struct peg__buf *text = &assignment->provider->calls->text;
    const size_t len = assignment->outcome->len;
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .was_started = true,
        .is_placeholder = true,
    };

    peg__buf_clear(text);
    peg__buf_printf(text,
                    "the tool has run (attempt %u), and who waited was told how it ended; its "
                    "result of %zu bytes was not kept, because %s%s was reached: look before you "
                    "repeat it with a new identity; ask for smaller results, or shorten "
                    "--result-mapping-ttl",
                    (unsigned)assignment->entry.attempt, len,
                    len > PEG_LIMIT_BUS_SMALL_BYTES ? "PEG_LIMIT_BUS_LARGE_BYTES"
                                                    : "PEG_LIMIT_BUS_REGISTER_BYTES",
                    assignment->account ? " or this principal's share of it (PEG_LIMIT_QUOTA_SHARE)"
                                        : "");
    outcome.message = peg__buf_view(text);
    return text->status ? NULL : calls_outcome_write(&outcome);
}

static void write_placeholder(struct calls_assignment *assignment)
{
    struct peg__blob *placeholder = make_placeholder(assignment);

    if (!placeholder) {
        write_later(assignment);
    } else if (placeholder->len >= assignment->outcome->len) {
        peg__blob_unref(placeholder);
        send_completion(assignment); /* it would take no less */
    } else {
        assignment->placeholder = placeholder;
        calls_complete_retry(assignment);
    }
}

/* Its own: also one that was said to be lost, and came before the one that stands for it. */
static bool stands_as_end(const struct calls_assignment *assignment,
                          const struct bus_answer *answer)
{
    return answer->written ||
           (assignment->placeholder &&
            peg__str_eq(peg__blob_str(answer->current), peg__blob_str(assignment->outcome)));
}

static void on_result_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, wait);
    struct calls_provider *provider = assignment->provider;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        write_later(assignment);
    } else if (answer->status && !assignment->placeholder) {
        write_placeholder(assignment);
    } else if (answer->status || stands_as_end(assignment, answer)) {
        send_completion(assignment);
    } else {
        provider->calls->n_late++;
        provider->calls->env->count_late_result(provider->meter);
        be_done(assignment);
    }
}

/* The registers that tell whose it is are at its coordinator's node. The coordinator knows whom he
 * gave it to and believes nobody else; here it is enough that it is no call of this node. */
bool calls_assignment_is_of_another_node(const struct calls_assignment *assignment)
{
    return calls_id_is_node_local(&assignment->entry.id) &&
           assignment->coordinator.node != assignment->provider->calls->bus->self.node;
}

static bool is_proof(const struct calls_assignment *assignment, const struct bus_answer *answer)
{
    struct bus_address address;

    if (answer->status)
        return false;
    if (calls_assignment_is_of_another_node(assignment))
        return !answer->current;
    return peg__str_eq(calls_claim_token_owner(answer->current, &address),
                       peg__str(assignment->provider->incarnation));
}

/* Not its to answer, or nobody can tell any more: its coordinator has seen its end and forgotten
 * it, its time is over, or the registers were lost, with a gateway that was killed for example. The
 * provider need not keep what nobody will ask for. To a loop that it comes back to later, and that
 * believes that it still has the call, it proves nothing that it does not list it: it has said
 * Hello here in between, and Hellos are counted (attach.c: drop_unreported). */
static void reject_unverified(struct calls_assignment *assignment)
{
    struct calls_provider *provider = assignment->provider;

    if (assignment->given_back) { /* its provider has forgotten it */
        calls_assignment_drop(assignment);
        calls_claim_pump(provider);
        return;
    }
    provider->calls->n_late++;
    provider->calls->env->count_late_result(provider->meter);
    be_done(assignment);
}

/* The register of the attempt tells whose it is. */
static void on_owner_verified(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, wait);
    struct calls_provider *provider = assignment->provider;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        write_later(assignment);
        return;
    }
    if (is_proof(assignment, answer)) {
        assignment->is_unverified = false;
        calls_complete_retry(assignment);
        calls_claim_pump(provider); /* it may have been given back */
        return;
    }
    reject_unverified(assignment);
}

static void verify_owner(struct calls_assignment *assignment)
{
    const uint32_t attempt =
        calls_assignment_is_of_another_node(assignment) ? 1 : assignment->entry.attempt;
    const struct bus_key key = calls_assignment_key(assignment, BUS_CLAIM, attempt);

    assignment->wait.fn = on_owner_verified;
    bus_read(assignment->provider->calls->bus, &key, &assignment->wait);
}

/* A call that was reported: its name tells its deadline, if it is still there. */
static void on_completed_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_assignment *assignment = peg__container_of(wait, struct calls_assignment, wait);
    struct calls_identity identity;

    if (answer->status) {
        write_later(assignment);
        return;
    }
    assignment->deadline_ms = calls_identity_read(answer->current, &identity)
                                  ? identity.deadline_ms
                                  : bus_now_ms(assignment->provider->calls->bus);
    calls_complete_retry(assignment);
}

/* An end has to stand as long as the name: who asks again finds that, and would wait for an end
 * that was forgotten. */
static void read_deadline(struct calls_assignment *assignment)
{
    const struct bus_key key = calls_assignment_key(assignment, BUS_IDENTITY, 0);

    assignment->wait.fn = on_completed_identity;
    bus_read(assignment->provider->calls->bus, &key, &assignment->wait);
}

void calls_complete_retry(struct calls_assignment *assignment)
{
    const struct bus_key key = calls_assignment_key(assignment, BUS_RESULT, 0);

    bus_forget_wait(assignment->provider->calls->bus,
                    &assignment->wait); /* of a look at its registers */
    if (assignment->is_unverified) {
        verify_owner(assignment);
        return;
    }
    if (assignment->given_back) {
        calls_assignment_nak(assignment, assignment->given_back, true);
        return;
    }
    if (is_keyed(assignment) && !assignment->deadline_ms) {
        read_deadline(assignment);
        return;
    }
    assignment->wait.fn = on_result_written;
    bus_put_if_absent(assignment->provider->calls->bus, &key,
                      assignment->placeholder ? assignment->placeholder : assignment->outcome,
                      calls_assignment_keep_until(assignment), &assignment->wait);
}

static void retry_result(struct net_timer *timer)
{
    calls_complete_retry(peg__container_of(timer, struct calls_assignment, again));
}

/* A coordinator counts it as the answer to a message of his: who only says that he has the call is
 * not to be taken for one who got it. */
void calls_complete_give_back(struct calls_assignment *assignment, enum bus_reason reason)
{
    assignment->step = CALLS_COMPLETING;
    assignment->given_back = reason;
    assignment->again.fn = retry_result;
    calls_complete_retry(assignment);
}

static void complete_assignment(struct calls_assignment *assignment,
                                const struct calls_outcome *outcome)
{
    struct calls_loop *calls = assignment->provider->calls;

    assignment->step = CALLS_COMPLETING;
    assignment->again.fn = retry_result;
    peg__blob_unref(assignment->outcome);
    assignment->outcome = calls_outcome_write(outcome);
    if (assignment->outcome) {
        calls_complete_retry(assignment);
        return;
    }
    /* No memory for the result: what little is needed to say so was not there either. Its
     * coordinator says at the deadline that the outcome is unknown, which is true. */
    calls->n_late++;
    be_done(assignment);
}

/* ---- what a provider says -------------------------------------------------------------------- */

static struct calls_assignment *handed(struct calls_provider *provider, const struct bus_id *id,
                                       uint32_t attempt)
{
    struct calls_assignment *assignment = calls_assignment_find_by(provider, id, attempt);

    if (!assignment || assignment->step != CALLS_HANDED)
        return NULL;
    calls_reported_verify(assignment);
    return assignment;
}

/* What came cannot be read, or what it is cannot be said. */
static void complete_without_memory(struct calls_assignment *assignment)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the tool has run, and the gateway has no memory to read its result: "
                           "look at its effect before you repeat it"),
        .was_started = true,
    };

    complete_assignment(assignment, &outcome);
}

/* A tool's own error, as CallToolResponse{error{code, message}}. */
static void complete_as_error(struct calls_assignment *assignment, const char *code,
                              peg_str message)
{
    const peg_str code_text = peg__str(code);
    const size_t inner = wire_bytes_size(code_text) + wire_bytes_size(message);
    struct peg__buf packed = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    char *at = peg__buf_reserve(&packed, inner + 1 + WIRE_MAX_VARINT);
    struct calls_outcome outcome = {.kind = CALLS_KIND_ERROR, .was_started = true};

    if (!at) {
        complete_without_memory(assignment);
        return;
    }
    at = wire_put_head(at, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD, inner);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code_text);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
    outcome.response = peg__strn(packed.ptr, (size_t)(at - packed.ptr));
    complete_assignment(assignment, &outcome);
    peg__buf_free(&packed);
}

/* Without memory there are no words about it: those that stand there are of something else. */
static void complete_malformed(struct calls_assignment *assignment, peg_status status,
                               peg_str words)
{
    if (status == PEG_ENOMEM)
        complete_without_memory(assignment);
    else
        complete_as_error(assignment, "malformed_result", words);
}

/* A result that was checked: it does not fit, or nobody knows. */
static void complete_unfit(struct calls_assignment *assignment, peg_status status, peg_str words)
{
    if (status == PEG_ELIMIT)
        complete_as_error(assignment, "undecided", words);
    else
        complete_malformed(assignment, status, words);
}

/* The bytes of the response wait in assignment->outcome, as the outcome that they become if they
 * are good. */
static void on_vetted(void *user, peg_status status, peg_str words)
{
    struct calls_assignment *assignment = (struct calls_assignment *)user;

    assignment->check = NULL;
    assignment->step = CALLS_COMPLETING;
    if (status) {
        complete_unfit(assignment, status, words);
        return;
    }
    assignment->again.fn = retry_result;
    calls_complete_retry(assignment);
}

/* Takes the outcome, in whose response the result lies. NULL: no memory. */
static void vet_on_worker(struct calls_assignment *assignment, peg_schema *schema,
                          struct peg__blob *blob, size_t offset, size_t len)
{
    struct calls_loop *calls = assignment->provider->calls;
    struct calls_check_answer answer = {.account = assignment->provider->account};
    struct calls_outcome outcome;

    assignment->outcome = blob;
    if (blob && calls_outcome_read(blob, &outcome)) {
        assignment->step = CALLS_VALIDATING;
        answer.response = outcome.response;
        answer.result = (peg_str){outcome.response.ptr + offset, len};
        assignment->check =
            calls_check_start_answer(calls, schema, blob, &answer, on_vetted, assignment);
    }
    if (!assignment->check)
        complete_without_memory(assignment);
}

/* What comes in chunks had to have room before; this has to now. */
static peg_status check_result_quota(const struct calls_assignment *assignment, size_t n_bytes,
                                     peg_error *reterr)
{
    const struct calls_provider *provider = assignment->provider;

    return calls_result_quota_check(provider->calls->results, provider->account, n_bytes, reterr);
}

static void copy_and_vet(struct calls_assignment *assignment, peg_schema *schema,
                         const struct calls_outcome *outcome, peg_str result)
{
    const size_t offset = result.len ? (size_t)(result.ptr - outcome->response.ptr) : 0;
    peg_error error;
    const peg_status status = check_result_quota(assignment, outcome->response.len, &error);

    if (status)
        complete_malformed(assignment, status, peg__str(error.message));
    else
        vet_on_worker(assignment, schema, calls_outcome_write(outcome), offset, result.len);
}

/* Server-data that are large in sum have not been read yet: gw_pack_answer(). */
static bool is_for_worker(const struct calls_loop *calls, peg_str response, peg_str result)
{
    return calls->loop && (result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES ||
                           response.len - result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES);
}

/* False: there is one, and no memory to compile it again. */
static bool use_output_schema(const struct calls_assignment *assignment, peg_schema **ret_schema)
{
    const struct calls_loop *calls = assignment->provider->calls;

    *ret_schema = NULL;
    return !assignment->tool ||
           calls->env->get_schema(calls->user, assignment->tool, CALLS_OUTPUT, ret_schema);
}

static void complete_result(struct calls_assignment *assignment, peg_str response, peg_str result)
{
    struct calls_loop *calls = assignment->provider->calls;
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_RESULT,
        .was_started = true,
        .response = response,
    };
    peg_schema *schema;
    peg_status status;

    if (!use_output_schema(assignment, &schema)) {
        complete_without_memory(assignment);
        return;
    }
    status = is_for_worker(calls, response, result)
                 ? PEG_ELIMIT
                 : calls_check_now(calls, schema, result, "result");
    if (status == PEG_ELIMIT && calls->loop)
        copy_and_vet(assignment, schema, &outcome, result);
    else if (status)
        complete_unfit(assignment, status, peg__buf_view(&calls->text));
    else
        complete_assignment(assignment, &outcome);
    peg_schema_unref(schema);
}

bool calls_provider_result(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str response, peg_str result, bool is_error)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);
    const struct calls_outcome failed = {
        .kind = CALLS_KIND_ERROR,
        .was_started = true,
        .response = response,
    };

    if (!assignment)
        return false;
    if (is_error && is_for_worker(provider->calls, response, result))
        copy_and_vet(assignment, NULL, &failed, result);
    else if (is_error)
        complete_assignment(assignment, &failed);
    else
        complete_result(assignment, response, result);
    return true;
}

bool calls_provider_large_result(struct calls_provider *provider, const struct bus_id *id,
                                 uint32_t attempt, struct peg__blob *outcome, size_t len)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);
    peg_schema *schema;

    if (!assignment) {
        peg__blob_unref(outcome);
        return false;
    }
    if (use_output_schema(assignment, &schema)) {
        vet_on_worker(assignment, schema, outcome, CALLS_OUTCOME_RESULT, len);
        peg_schema_unref(schema);
    } else {
        peg__blob_unref(outcome);
        complete_without_memory(assignment);
    }
    return true;
}

bool calls_provider_bad_result(struct calls_provider *provider, const struct bus_id *id,
                               uint32_t attempt, const char *code, peg_str message)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);

    if (!assignment)
        return false;
    complete_as_error(assignment, code, message);
    return true;
}

bool calls_provider_unread_result(struct calls_provider *provider, const struct bus_id *id,
                                  uint32_t attempt)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);

    if (!assignment)
        return false;
    complete_without_memory(assignment);
    return true;
}

void calls_provider_output(struct calls_provider *provider, const struct bus_id *id,
                           uint32_t attempt, peg_str output)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);
    struct peg__blob *body = assignment ? peg__blob_copy(output) : NULL;

    if (!body)
        return; /* nobody hears it any more, or there is no memory: it is a hint */
    calls_assignment_send(assignment, BUS_DELTA, body);
    peg__blob_unref(body);
}

void calls_provider_nak(struct calls_provider *provider, const struct bus_id *id, uint32_t attempt,
                        enum bus_reason reason)
{
    struct calls_assignment *assignment = handed(provider, id, attempt);

    if (!assignment)
        return;
    calls_complete_give_back(assignment, reason);
    calls_claim_pump(provider);
}
