/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request becomes a call, or its caller one more caller of a call with the same identity. In this
 * order: is its tool known, its payload valid, its provider healthy? A request that is both invalid
 * and unhealthy is invalid.
 */

#include "calls/caller/call.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/quota.h"

/* ---- rejecting before there is a call ---- */

static void reject_unknown_tool(const struct calls_incoming *incoming)
{
    struct peg__buf *text = &incoming->calls->text;

    peg__buf_clear(text);
    if (incoming->toolset)
        peg__buf_printf(text, "tool \"%.*s\" not found in toolset \"%.*s\"",
                        PEG_ARG(incoming->request->tool), PEG_ARG(incoming->request->toolset));
    else
        peg__buf_printf(text, "toolset \"%.*s\" not found", PEG_ARG(incoming->request->toolset));
    calls_reject_caller(incoming->caller, CALLS_NOT_FOUND, peg__buf_view(text), 0);
}

static void reject_too_large(const struct calls_incoming *incoming)
{
    struct peg__buf *text = &incoming->calls->text;

    peg__buf_clear(text);
    peg__buf_printf(text,
                    "the payload is larger than the %zu bytes that this gateway takes "
                    "(--max-payload, PEG_LIMIT_GATEWAY_PAYLOAD_BYTES): send a reference to the "
                    "data instead",
                    incoming->calls->options.max_payload);
    calls_reject_caller(incoming->caller, CALLS_LIMIT, peg__buf_view(text), 0);
}

static void reject_other_request(struct calls_call *call, struct calls_caller *caller)
{
    struct calls_outcome outcome;

    calls_explain(call, CALLS_WHY_OTHER_REQUEST, false, &outcome);
    caller->events->on_end(caller, &outcome);
}

/* ---- one more caller ---- */

/* Its own time is over, or that of the call, which this node did not get ended. */
static enum calls_why why_caller_ends(const struct calls_call *call)
{
    if (!call->machine.ending || calls_state_follows(call->machine.state))
        return CALLS_WHY_WAIT_OVER;
    return calls_call_is_keyed(call) ? CALLS_WHY_UNANSWERED : CALLS_WHY_UNSETTLED;
}

static void on_caller_deadline(struct net_timer *timer)
{
    struct calls_caller *caller = peg__container_of(timer, struct calls_caller, deadline);
    struct calls_call *call = caller->call;
    struct calls_outcome outcome;

    calls_explain(call, why_caller_ends(call), true, &outcome);
    calls_call_take_caller(caller);
    calls_leave_alone(call);
    caller->events->on_end(caller, &outcome);
}

static const unsigned char *digest_of(const struct calls_call *call)
{
    return call->machine.origin <= CALLS_ATTACHES ? call->machine.digest
                                                  : call->machine.identity.digest;
}

static void take_tool(struct calls_call *call, const struct calls_incoming *incoming)
{
    struct calls_loop *calls = call->calls;

    call->toolset = calls->env->ref_toolset(calls->user, incoming->toolset);
    call->tool = incoming->tool;
    call->machine.is_idempotent = incoming->tool->is_idempotent;
    call->meter = calls->env->get_meter(calls->user, incoming->toolset->name);
    call->deadline_ns = calls_request_deadline(calls, incoming->request, incoming->tool);
}

/* The call was known by its id alone, or had no quota: with a request it can begin again if it is
 * forgotten, and take over. */
static void give_request(struct calls_call *call, const struct calls_incoming *incoming)
{
    struct calls_loop *calls = call->calls;

    /* One that attaches has it, and its identity may not have been read yet. */
    if (call->machine.origin > CALLS_ATTACHES)
        memcpy(call->machine.digest, call->machine.identity.digest, sizeof(call->machine.digest));
    if (calls_call_pack(call, incoming->request))
        return; /* it follows as before */
    calls->env->unref_toolset(calls->user, call->toolset);
    take_tool(call, incoming);
    call->reject_reason = NULL;
    call->machine.origin = CALLS_STARTS;
}

/* ---- a new call ---- */

static void on_checked(void *user, peg_status status, peg_str words)
{
    struct calls_call *call = (struct calls_call *)user;

    call->check = NULL;
    if (status)
        calls_run_reject(call, calls_check_error(status), words, 0);
    else
        calls_run_admit(call);
}

static void check_on_worker(struct calls_call *call, peg_schema *schema)
{
    call->check =
        calls_check_start(call->calls, schema, call->request,
                          &(struct calls_check_text){.json = call->payload}, on_checked, call);
    if (!call->check)
        calls_run_reject(call, CALLS_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
}

/* With an identity if it has one. Without quota to begin it may still attach to a call that exists:
 * nothing is kept of its request, so it takes no quota and is not read. NULL: no memory. */
static struct calls_call *new_call(const struct calls_incoming *incoming)
{
    struct calls_loop *calls = incoming->calls;
    const struct calls_request *request = incoming->request;
    struct calls_call *call =
        calls_call_new(calls, &incoming->id, calls_quota_key(calls, request->principal));

    if (!call)
        return NULL;
    take_tool(call, incoming);
    call->asked_before = request->may_have_run && !incoming->tool->is_idempotent;
    call->reject_reason = incoming->reject_reason;
    calls_call_set_deadline(call);
    if (incoming->reject_reason) {
        call->tool = NULL;
        call->machine.origin = CALLS_ATTACHES;
    }
    if ((calls_call_is_keyed(call) && !calls_request_digest(request, call->machine.digest)) ||
        (!incoming->reject_reason && calls_call_pack(call, request))) {
        calls_call_drop(call);
        return NULL;
    }
    calls_run_begin(call);
    calls_call_add_caller(call, incoming->caller);
    return call;
}

static void start_attaching(const struct calls_incoming *incoming)
{
    struct calls_call *call = new_call(incoming);

    if (call)
        calls_run_admit(call);
    else
        calls_reject_barred(incoming->caller, CALLS_BAR_NO_MEMORY);
}

static void start_new(const struct calls_incoming *incoming)
{
    struct calls_loop *calls = incoming->calls;
    const peg_str payload =
        incoming->request->payload.len ? incoming->request->payload : (peg_str)PEG_LIT("{}");
    bool takes_long = payload.len > PEG_LIMIT_GATEWAY_INLINE_BYTES && calls->loop;
    peg_schema *schema = NULL;
    peg_status status = calls->env->get_schema(calls->user, incoming->tool, CALLS_INPUT, &schema)
                            ? PEG_OK
                            : PEG_ENOMEM;
    struct calls_call *call;

    if (!status && !takes_long)
        status = calls_check_now(calls, schema, payload, "payload");
    if (status == PEG_ELIMIT && calls->loop) {
        takes_long = true;
        status = PEG_OK;
    }
    call = status ? NULL : new_call(incoming);
    if (!call)
        calls->env->count_refused(calls->env->get_meter(calls->user, incoming->toolset->name));
    if (call && takes_long)
        check_on_worker(call, schema);
    else if (call)
        calls_run_admit(call);
    else if (status && status != PEG_ENOMEM)
        calls_reject_caller(incoming->caller, calls_check_error(status),
                            peg__buf_view(&calls->text), 0);
    else
        calls_reject_barred(incoming->caller, CALLS_BAR_NO_MEMORY);
    peg_schema_unref(schema);
}

static void attach_caller(struct calls_call *call, const struct calls_incoming *incoming)
{
    /* Not while it awaits an answer that means something else to a call with a request. */
    if (call->machine.origin != CALLS_STARTS && call->machine.state != CALLS_CONFIRMING &&
        !incoming->reject_reason)
        give_request(call, incoming);
    calls_call_attach_caller(
        call, incoming->caller,
        calls_request_deadline(incoming->calls, incoming->request, incoming->tool));
    calls_questions_look(call);
    if (call->machine.state == CALLS_PEEKING)
        calls_run_event(call, CALLS_TIMER); /* it may have begun since the identity was read */
}

static void start_known(struct calls_incoming *incoming)
{
    struct calls_loop *calls = incoming->calls;
    const uint16_t account = calls_quota_key(calls, incoming->request->principal);
    const bool is_keyed = calls_id_is_keyed(&incoming->id);
    struct calls_call *call = is_keyed ? calls_find(calls, &incoming->id) : NULL;
    unsigned char digest[32];

    incoming->reject_reason =
        calls_quota_reject_call(calls, account, calls_request_large_bytes(incoming->request));
    if (!is_keyed && calls->is_draining)
        calls_reject_barred(incoming->caller, CALLS_BAR_DRAINING);
    else if (incoming->reject_reason && !(is_keyed && calls_quota_has_wait(calls, account)))
        calls_reject_caller(incoming->caller, CALLS_OVERLOADED, peg__str(incoming->reject_reason),
                            1000);
    else if (call && !calls_request_digest(incoming->request, digest))
        calls_reject_barred(incoming->caller, CALLS_BAR_NO_MEMORY);
    else if (call && memcmp(digest, digest_of(call), sizeof(digest)) != 0)
        reject_other_request(call, incoming->caller);
    else if (call)
        attach_caller(call, incoming);
    else if (incoming->reject_reason)
        start_attaching(incoming);
    else
        start_new(incoming);
}

static void start_call(struct calls_incoming *incoming)
{
    struct calls_loop *calls = incoming->calls;

    incoming->toolset = calls->env->find_toolset(calls->user, incoming->request->toolset);
    incoming->tool = incoming->toolset ? calls->env->find_tool(calls->user, incoming->toolset,
                                                               incoming->request->tool)
                                       : NULL;
    if (!incoming->tool)
        reject_unknown_tool(incoming);
    else if (incoming->request->payload.len > calls->options.max_payload)
        reject_too_large(incoming);
    else
        start_known(incoming);
}

/* ---- by its id ---- */

/* A caller that guesses an id learns and changes nothing: until the identity was read, no message
 * about the call is for it, and it is not among those that wait. */
static void locate_call(const struct calls_incoming *incoming)
{
    struct calls_loop *calls = incoming->calls;
    const uint16_t account = calls_quota_key(calls, incoming->request->principal);
    /* To end a call takes quota for a moment, and makes some. */
    const bool has_quota = incoming->origin == CALLS_STOPS
                               ? peg__quota_used(&calls->quotas.calls) < calls->options.max_calls
                               : calls_quota_has_wait(calls, account);
    struct calls_call *call = has_quota ? calls_call_new(calls, &incoming->id, account) : NULL;

    if (call)
        call->principal = peg__blob_copy(incoming->request->principal);
    if (!call || !call->principal) {
        if (call)
            calls_call_drop(call);
        calls_reject_caller(incoming->caller, CALLS_OVERLOADED,
                            peg__str("the gateway has too many calls (PEG_LIMIT_GATEWAY_CALLS), "
                                     "of this principal or of all, or too little memory: try again "
                                     "later"),
                            1000);
        return;
    }
    call->machine.origin = incoming->origin;
    call->asked_before = incoming->caller->was_asked_elsewhere;
    call->deadline_ns = calls_give_up_ns(bus_now_ns(calls->bus), incoming->request->deadline_ns);
    calls_call_add_caller(call, incoming->caller);
    calls_run_begin(call);
    calls_run_event(call, CALLS_LOCATE);
}

void calls_begin_here(struct calls_incoming *incoming)
{
    incoming->caller->deadline.fn = on_caller_deadline;
    if (incoming->origin == CALLS_STARTS)
        start_call(incoming);
    else
        locate_call(incoming);
}
