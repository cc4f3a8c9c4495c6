/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fourth stage of a call: its result is read against the tool's output schema, and becomes its
 * terminal if no other one stands. Then driver and waiters are told, and the provider may forget
 * it. An end that there is no room for is told to those who wait; for the others a small one stands
 * in its place.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

enum { PAUSE_NS = 50000000 };

static bool is_keyed(const struct gw_assignment *held)
{
    return held->entry.id.len == sizeof(held->entry.id.bytes);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell_waiters(struct gw_assignment *held, const struct bus_answer *answer)
{
    struct gw_calls *desk = held->provider->desk;
    const struct bus_message letter = {
        .kind = BUS_DONE,
        .id = held->entry.id,
        .attempt = held->entry.attempt,
        .from = desk->bus->self,
        .body = held->terminal,
    };

    for (size_t i = 0; i < answer->n_addresses; i++)
        if (!bus_address_equal(answer->addresses[i], held->driver))
            bus_send(desk->bus, answer->addresses[i], &letter, NULL);
}

static void be_done(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;
    const struct bus_id id = held->entry.id;
    const uint32_t attempt = held->entry.attempt;

    gw_assignment_drop(held);
    if (!provider->is_away)
        provider->events->ack(provider->user, &id, attempt);
    gw_claim_pump(provider);
}

static void on_result_waiters(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = peg__container_of(wait, struct gw_assignment, waiters);

    if (!answer->status)
        tell_waiters(held, answer);
    be_done(held);
}

/* Those who joined a call of their own identity look for themselves too: what is lost here costs
 * them a second. */
static void send_completion(struct gw_assignment *held)
{
    const struct bus_key key = gw_assignment_key(held, BUS_WAITERS, 0);

    gw_assignment_send(held, BUS_DONE, held->terminal);
    if (!is_keyed(held)) {
        be_done(held);
        return;
    }
    held->waiters.fn = on_result_waiters;
    bus_waiters(held->provider->desk->bus, &key, &held->waiters);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_later(struct gw_assignment *held)
{
    struct bus *bus = held->provider->desk->bus;

    bus_arm(bus, &held->again, bus_now_ns(bus) + PAUSE_NS);
}

/* What stands for an end that there is no room for, so that who asks later hears that there was
 * one, and nobody starts the call again. The attempt is in it to make it its writer's own. */
static struct peg__blob *make_stand_in(const struct gw_assignment *held)
{
    struct peg__buf *text = &held->provider->desk->text;
    const size_t len = held->terminal->len;
    struct gw_outcome terminal = {
        .outcome = GW_OUTCOME_UNKNOWN,
        .error = WIRE_OUTCOME_UNKNOWN,
        .was_started = true,
        .is_stand_in = true,
    };

    peg__buf_clear(text);
    peg__buf_printf(text,
                    "the tool has run (attempt %u), and who waited was told how it ended; its "
                    "result of %zu bytes was not kept, because %s%s was reached: look before you "
                    "repeat it with a new identity; ask for smaller results, or shorten "
                    "--result-mapping-ttl",
                    (unsigned)held->entry.attempt, len,
                    len > PEG_LIMIT_BUS_SMALL_BYTES ? "PEG_LIMIT_BUS_LARGE_BYTES"
                                                    : "PEG_LIMIT_BUS_REGISTER_BYTES",
                    held->account ? " or this principal's share of it (PEG_LIMIT_QUOTA_SHARE)"
                                  : "");
    terminal.message = peg__buf_view(text);
    return text->status ? NULL : gw_outcome_write(&terminal);
}

static void write_stand_in(struct gw_assignment *held)
{
    struct peg__blob *stand_in = make_stand_in(held);

    if (!stand_in) {
        write_later(held);
    } else if (stand_in->len >= held->terminal->len) {
        peg__blob_unref(stand_in);
        send_completion(held); /* it would take no less */
    } else {
        held->stand_in = stand_in;
        gw_complete_retry(held);
    }
}

/* Its own: also one that was said to be lost, and came before the one that stands for it. */
static bool stands_as_end(const struct gw_assignment *held, const struct bus_answer *answer)
{
    return answer->written || (held->stand_in && peg__str_eq(peg__blob_str(answer->current),
                                                             peg__blob_str(held->terminal)));
}

static void on_result_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = peg__container_of(wait, struct gw_assignment, wait);
    struct gw_provider *provider = held->provider;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        write_later(held);
    } else if (answer->status && !held->stand_in) {
        write_stand_in(held);
    } else if (answer->status || stands_as_end(held, answer)) {
        send_completion(held);
    } else {
        provider->desk->n_late++;
        gw_meter_late_result(provider->meter);
        be_done(held);
    }
}

/* The registers that tell whose it is are at its driver's node. The driver knows whom he gave it to
 * and believes nobody else; here it is enough that it is no call of this node. */
bool gw_assignment_is_of_another_node(const struct gw_assignment *held)
{
    return gw_id_is_node_local(&held->entry.id) &&
           held->driver.node != held->provider->desk->bus->self.node;
}

static bool is_proof(const struct gw_assignment *held, const struct bus_answer *answer)
{
    struct bus_address address;

    if (answer->status)
        return false;
    if (gw_assignment_is_of_another_node(held))
        return !answer->current;
    return peg__str_eq(gw_claim_token_owner(answer->current, &address),
                       peg__str(held->provider->incarnation));
}

/* Not its to answer, or nobody can tell any more: its driver has seen its end and forgotten it, its
 * time is over, or the registers were lost, with a gateway that was killed for example. The
 * provider need not keep what nobody will ask for. To a desk that it comes back to later, and that
 * believes that it still has the call, it proves nothing that it does not list it: it has said
 * Hello here in between, and Hellos are counted (attach.c: drop_unlisted). */
static void disbelieve(struct gw_assignment *held)
{
    struct gw_provider *provider = held->provider;

    if (held->given_back) { /* its provider has forgotten it */
        gw_assignment_drop(held);
        gw_claim_pump(provider);
        return;
    }
    provider->desk->n_late++;
    gw_meter_late_result(provider->meter);
    be_done(held);
}

/* The register of the attempt tells whose it is. */
static void on_proof(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = peg__container_of(wait, struct gw_assignment, wait);
    struct gw_provider *provider = held->provider;

    if (answer->status == PEG_EIO || answer->status == PEG_ENOMEM) {
        write_later(held);
        return;
    }
    if (is_proof(held, answer)) {
        held->is_unproven = false;
        gw_complete_retry(held);
        gw_claim_pump(provider); /* it may have been given back */
        return;
    }
    disbelieve(held);
}

static void prove(struct gw_assignment *held)
{
    const uint32_t attempt = gw_assignment_is_of_another_node(held) ? 1 : held->entry.attempt;
    const struct bus_key key = gw_assignment_key(held, BUS_CLAIM, attempt);

    held->wait.fn = on_proof;
    bus_read(held->provider->desk->bus, &key, &held->wait);
}

/* A call that was listed: its name tells its deadline, if it is still there. */
static void on_completed_name(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_assignment *held = peg__container_of(wait, struct gw_assignment, wait);
    struct gw_named named;

    if (answer->status) {
        write_later(held);
        return;
    }
    held->deadline_ms = gw_named_read(answer->current, &named)
                            ? named.deadline_ms
                            : bus_now_ms(held->provider->desk->bus);
    gw_complete_retry(held);
}

/* An end has to stand as long as the name: who asks again finds that, and would wait for an end
 * that was forgotten. */
static void read_deadline(struct gw_assignment *held)
{
    const struct bus_key key = gw_assignment_key(held, BUS_IDENTITY, 0);

    held->wait.fn = on_completed_name;
    bus_read(held->provider->desk->bus, &key, &held->wait);
}

void gw_complete_retry(struct gw_assignment *held)
{
    const struct bus_key key = gw_assignment_key(held, BUS_RESULT, 0);

    bus_forget_wait(held->provider->desk->bus, &held->wait); /* of a look at its registers */
    if (held->is_unproven) {
        prove(held);
        return;
    }
    if (held->given_back) {
        gw_assignment_nak(held, held->given_back, true);
        return;
    }
    if (is_keyed(held) && !held->deadline_ms) {
        read_deadline(held);
        return;
    }
    held->wait.fn = on_result_written;
    bus_put_if_absent(held->provider->desk->bus, &key,
                      held->stand_in ? held->stand_in : held->terminal,
                      gw_assignment_keep_until(held), &held->wait);
}

static void retry_result(struct net_timer *timer)
{
    gw_complete_retry(peg__container_of(timer, struct gw_assignment, again));
}

/* A driver counts it as the answer to a letter of his: who only says that he has the call is not to
 * be taken for one who got it. */
void gw_complete_give_back(struct gw_assignment *held, enum bus_reason reason)
{
    held->step = GW_COMPLETING;
    held->given_back = reason;
    held->again.fn = retry_result;
    gw_complete_retry(held);
}

static void complete_assignment(struct gw_assignment *held, const struct gw_outcome *terminal)
{
    struct gw_calls *desk = held->provider->desk;

    held->step = GW_COMPLETING;
    held->again.fn = retry_result;
    peg__blob_unref(held->terminal);
    held->terminal = gw_outcome_write(terminal);
    if (held->terminal) {
        gw_complete_retry(held);
        return;
    }
    /* No memory for the result: what little is needed to say so was not there either. Its driver
     * says at the deadline that the outcome is unknown, which is true. */
    desk->n_late++;
    be_done(held);
}

/* ---- what a provider says -------------------------------------------------------------------- */

static struct gw_assignment *handed(struct gw_provider *provider, const struct bus_id *id,
                                    uint32_t attempt)
{
    struct gw_assignment *held = gw_assignment_find_by(provider, id, attempt);

    if (!held || held->step != GW_HANDED)
        return NULL;
    gw_reported_verify(held);
    return held;
}

/* What came cannot be read, or what it is cannot be said. */
static void complete_without_memory(struct gw_assignment *held)
{
    const struct gw_outcome terminal = {
        .outcome = GW_OUTCOME_UNKNOWN,
        .error = WIRE_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the tool has run, and the gateway has no memory to read its result: "
                           "look at its effect before you repeat it"),
        .was_started = true,
    };

    complete_assignment(held, &terminal);
}

/* A tool's own error, as CallToolResponse{error{code, message}}. */
static void complete_as_error(struct gw_assignment *held, const char *code, peg_str message)
{
    const peg_str code_text = peg__str(code);
    const size_t inner = wire_bytes_size(code_text) + wire_bytes_size(message);
    struct peg__buf packed = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    char *at = peg__buf_reserve(&packed, inner + 1 + WIRE_MAX_VARINT);
    struct gw_outcome terminal = {.outcome = GW_ERROR, .was_started = true};

    if (!at) {
        complete_without_memory(held);
        return;
    }
    at = wire_put_head(at, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD, inner);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code_text);
    at = wire_put_bytes(at, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
    terminal.response = peg__strn(packed.ptr, (size_t)(at - packed.ptr));
    complete_assignment(held, &terminal);
    peg__buf_free(&packed);
}

/* Without memory there are no words about it: those that stand there are of something else. */
static void complete_malformed(struct gw_assignment *held, peg_status status, peg_str words)
{
    if (status == PEG_ENOMEM)
        complete_without_memory(held);
    else
        complete_as_error(held, "malformed_result", words);
}

/* A result that was checked: it does not fit, or nobody knows. */
static void complete_unfit(struct gw_assignment *held, peg_status status, peg_str words)
{
    if (status == PEG_ELIMIT)
        complete_as_error(held, wire_error_name(WIRE_UNDECIDED), words);
    else
        complete_malformed(held, status, words);
}

/* The bytes of the response wait in held->terminal, as the terminal that they become if they are
 * good. */
static void on_vetted(void *user, peg_status status, peg_str words)
{
    struct gw_assignment *held = (struct gw_assignment *)user;

    held->check = NULL;
    held->step = GW_COMPLETING;
    if (status) {
        complete_unfit(held, status, words);
        return;
    }
    held->again.fn = retry_result;
    gw_complete_retry(held);
}

/* Takes the terminal, in whose response the result lies. NULL: no memory. */
static void vet_on_worker(struct gw_assignment *held, peg_schema *schema, struct peg__blob *blob,
                          size_t offset, size_t len)
{
    struct gw_calls *desk = held->provider->desk;
    struct gw_check_answer answer = {.account = held->provider->account};
    struct gw_outcome terminal;

    held->terminal = blob;
    if (blob && gw_outcome_read(blob, &terminal)) {
        held->step = GW_VETTING;
        answer.response = terminal.response;
        answer.result = (peg_str){terminal.response.ptr + offset, len};
        held->check = gw_check_start_answer(desk, schema, blob, &answer, on_vetted, held);
    }
    if (!held->check)
        complete_without_memory(held);
}

/* What comes in chunks had to have room before; this has to now. */
static peg_status check_result_quota(const struct gw_assignment *held, size_t n_bytes,
                                     peg_error *reterr)
{
    const struct gw_provider *provider = held->provider;

    return gw_result_quota_check(provider->desk->results, provider->account, n_bytes, reterr);
}

static void copy_and_vet(struct gw_assignment *held, peg_schema *schema,
                         const struct gw_outcome *terminal, peg_str result)
{
    const size_t offset = result.len ? (size_t)(result.ptr - terminal->response.ptr) : 0;
    peg_error error;
    const peg_status status = check_result_quota(held, terminal->response.len, &error);

    if (status)
        complete_malformed(held, status, peg__str(error.message));
    else
        vet_on_worker(held, schema, gw_outcome_write(terminal), offset, result.len);
}

/* Server-data that are large in sum have not been read yet: gw_pack_answer(). */
static bool is_for_worker(const struct gw_calls *desk, peg_str response, peg_str result)
{
    return desk->loop && (result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES ||
                          response.len - result.len > PEG_LIMIT_GATEWAY_INLINE_BYTES);
}

/* False: there is one, and no memory to compile it again. */
static bool use_output_schema(const struct gw_assignment *held, peg_schema **ret_schema)
{
    *ret_schema = held->tool ? gw_tool_output_schema(held->tool) : NULL;
    return *ret_schema || !held->tool || !held->tool->output_schema.len;
}

static void complete_result(struct gw_assignment *held, peg_str response, peg_str result)
{
    struct gw_calls *desk = held->provider->desk;
    const struct gw_outcome terminal = {
        .outcome = GW_RESULT,
        .was_started = true,
        .response = response,
    };
    peg_schema *schema;
    peg_status status;

    if (!use_output_schema(held, &schema)) {
        complete_without_memory(held);
        return;
    }
    status = is_for_worker(desk, response, result) ? PEG_ELIMIT
                                                   : gw_check_now(desk, schema, result, "result");
    if (status == PEG_ELIMIT && desk->loop)
        copy_and_vet(held, schema, &terminal, result);
    else if (status)
        complete_unfit(held, status, peg__buf_view(&desk->text));
    else
        complete_assignment(held, &terminal);
    peg_schema_unref(schema);
}

bool gw_provider_result(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                        peg_str response, peg_str result, bool is_error)
{
    struct gw_assignment *held = handed(provider, id, attempt);
    const struct gw_outcome failed = {
        .outcome = GW_ERROR,
        .was_started = true,
        .response = response,
    };

    if (!held)
        return false;
    if (is_error && is_for_worker(provider->desk, response, result))
        copy_and_vet(held, NULL, &failed, result);
    else if (is_error)
        complete_assignment(held, &failed);
    else
        complete_result(held, response, result);
    return true;
}

bool gw_provider_large_result(struct gw_provider *provider, const struct bus_id *id,
                              uint32_t attempt, struct peg__blob *terminal, size_t len)
{
    struct gw_assignment *held = handed(provider, id, attempt);
    peg_schema *schema;

    if (!held) {
        peg__blob_unref(terminal);
        return false;
    }
    if (use_output_schema(held, &schema)) {
        vet_on_worker(held, schema, terminal, GW_OUTCOME_RESULT, len);
        peg_schema_unref(schema);
    } else {
        peg__blob_unref(terminal);
        complete_without_memory(held);
    }
    return true;
}

bool gw_provider_bad_result(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                            const char *code, peg_str message)
{
    struct gw_assignment *held = handed(provider, id, attempt);

    if (!held)
        return false;
    complete_as_error(held, code, message);
    return true;
}

bool gw_provider_unread_result(struct gw_provider *provider, const struct bus_id *id,
                               uint32_t attempt)
{
    struct gw_assignment *held = handed(provider, id, attempt);

    if (!held)
        return false;
    complete_without_memory(held);
    return true;
}

void gw_provider_output(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                        peg_str output)
{
    struct gw_assignment *held = handed(provider, id, attempt);
    struct peg__blob *body = held ? peg__blob_copy(output) : NULL;

    if (!body)
        return; /* nobody hears it any more, or there is no memory: it is a hint */
    gw_assignment_send(held, BUS_DELTA, body);
    peg__blob_unref(body);
}

void gw_provider_nak(struct gw_provider *provider, const struct bus_id *id, uint32_t attempt,
                     enum bus_reason reason)
{
    struct gw_assignment *held = handed(provider, id, attempt);

    if (!held)
        return;
    gw_complete_give_back(held, reason);
    gw_claim_pump(provider);
}
