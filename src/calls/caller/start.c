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

static void reject_unknown_tool(struct calls_loop *calls, const struct calls_request *request,
                                bool knows_toolset, struct calls_caller *caller)
{
    peg__buf_clear(&calls->text);
    if (knows_toolset)
        peg__buf_printf(&calls->text, "tool \"%.*s\" not found in toolset \"%.*s\"",
                        PEG_ARG(request->tool), PEG_ARG(request->toolset));
    else
        peg__buf_printf(&calls->text, "toolset \"%.*s\" not found", PEG_ARG(request->toolset));
    calls_reject_caller(caller, CALLS_NOT_FOUND, peg__buf_view(&calls->text), 0);
}

static void reject_too_large(struct calls_loop *calls, struct calls_caller *caller)
{
    peg__buf_clear(&calls->text);
    peg__buf_printf(&calls->text,
                    "the payload is larger than the %zu bytes that this gateway takes "
                    "(--max-payload, PEG_LIMIT_GATEWAY_PAYLOAD_BYTES): send a reference to the "
                    "data instead",
                    calls->options.max_payload);
    calls_reject_caller(caller, CALLS_LIMIT, peg__buf_view(&calls->text), 0);
}

static void reject_without_memory(struct calls_caller *caller)
{
    calls_reject_caller(caller, CALLS_OVERLOADED,
                        peg__str("the gateway is out of memory: try again later"), 1000);
}

static void reject_other_request(struct calls_caller *caller)
{
    calls_reject_caller(caller, CALLS_VALIDATION,
                        peg__str("this identity (run_id and tool_call_id, or idempotency_key) was "
                                 "used for a call with another tool or payload: choose a new one"),
                        0);
}

/* ---- one more caller ---- */

static void on_caller_deadline(struct net_timer *timer)
{
    struct calls_caller *caller = peg__container_of(timer, struct calls_caller, deadline);
    struct calls_call *call = caller->call;
    struct calls_outcome outcome;

    calls_explain(call, CALLS_WHY_WAIT_OVER, true, &outcome);
    calls_call_take_caller(caller);
    calls_leave_alone(call);
    caller->events->on_end(caller, &outcome);
}

static const unsigned char *digest_of(const struct calls_call *call)
{
    return call->machine.origin <= CALLS_ATTACHES ? call->machine.digest
                                                  : call->machine.identity.digest;
}

/* The call was known by its id alone, or had no quota: with a request it can begin again if it is
 * forgotten, and take over. */
static void give_request(struct calls_call *call, const struct calls_request *request,
                         struct calls_toolset *toolset, const struct calls_tool *tool)
{
    struct calls_loop *calls = call->calls;

    memcpy(call->machine.digest, call->machine.identity.digest, sizeof(call->machine.digest));
    if (calls_call_pack(call, request))
        return; /* it follows as before */
    calls->env->unref_toolset(calls->user, call->toolset);
    call->toolset = calls->env->ref_toolset(calls->user, toolset);
    call->tool = tool;
    call->reject_reason = NULL;
    call->machine.origin = CALLS_STARTS;
    call->machine.is_idempotent = tool->is_idempotent;
    call->meter = calls->env->get_meter(calls->user, toolset->name);
    call->deadline_ns = calls_request_deadline(calls, request, tool);
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
        calls_check_start(call->calls, schema, call->request, call->payload, on_checked, call);
    if (!call->check)
        calls_run_reject(call, CALLS_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
}

/* With a deadline, and with an identity if it has one. */
static struct calls_call *new_call(struct calls_loop *calls, const struct bus_id *id,
                                   const struct calls_request *request,
                                   struct calls_toolset *toolset, const struct calls_tool *tool)
{
    const bool is_keyed = calls_id_is_keyed(id);
    struct calls_call *call = calls_call_new(calls, id, calls_quota_key(calls, request->principal));

    if (!call)
        return NULL;
    if (is_keyed)
        call->principal = peg__blob_copy(request->principal);
    if (is_keyed && (!call->principal || !calls_request_digest(request, call->machine.digest))) {
        calls_call_drop(call);
        return NULL;
    }
    call->toolset = calls->env->ref_toolset(calls->user, toolset);
    call->tool = tool;
    call->machine.is_idempotent = tool->is_idempotent;
    call->asked_before = request->may_have_run && !tool->is_idempotent;
    call->meter = calls->env->get_meter(calls->user, toolset->name);
    call->deadline_ns = calls_request_deadline(calls, request, tool);
    calls_call_set_deadline(call);
    calls_run_deadline(call);
    return call;
}

static void start_new(struct calls_loop *calls, const struct bus_id *id,
                      const struct calls_request *request, struct calls_toolset *toolset,
                      const struct calls_tool *tool, struct calls_caller *caller)
{
    const peg_str payload = request->payload.len ? request->payload : (peg_str)PEG_LIT("{}");
    bool takes_long = payload.len > PEG_LIMIT_GATEWAY_INLINE_BYTES && calls->loop;
    peg_schema *schema = NULL;
    peg_status status =
        calls->env->get_schema(calls->user, tool, CALLS_INPUT, &schema) ? PEG_OK : PEG_ENOMEM;
    struct calls_call *call = NULL;

    if (!status && !takes_long)
        status = calls_check_now(calls, schema, payload, "payload");
    if (status == PEG_ELIMIT && calls->loop) {
        takes_long = true;
        status = PEG_OK;
    }
    if (!status)
        call = new_call(calls, id, request, toolset, tool);
    if (call && calls_call_pack(call, request)) {
        calls_call_drop(call);
        call = NULL;
    }
    if (!call)
        calls->env->count_refused(calls->env->get_meter(calls->user, toolset->name));
    if (call) {
        calls_call_add_caller(call, caller);
        if (takes_long)
            check_on_worker(call, schema);
        else
            calls_run_admit(call);
    } else if (status && status != PEG_ENOMEM) {
        calls_reject_caller(caller, calls_check_error(status), peg__buf_view(&calls->text), 0);
    } else {
        reject_without_memory(caller);
    }
    peg_schema_unref(schema);
}

/* There is no quota for a call to begin. One that exists is found by its identity: nothing is kept
 * of the request, so it takes no quota and is not read. */
// NOLINTNEXTLINE(readability-function-size): what a request is, and why it may not begin
static void start_attaching(struct calls_loop *calls, const struct bus_id *id,
                            const struct calls_request *request, struct calls_toolset *toolset,
                            const struct calls_tool *tool, const char *reject_reason,
                            struct calls_caller *caller)
{
    struct calls_call *call = new_call(calls, id, request, toolset, tool);

    if (!call) {
        reject_without_memory(caller);
        return;
    }
    call->tool = NULL;
    call->machine.origin = CALLS_ATTACHES;
    call->reject_reason = reject_reason;
    calls_call_add_caller(call, caller);
    calls_run_admit(call);
}

static void start_known(struct calls_loop *calls, const struct bus_id *id,
                        const struct calls_request *request, struct calls_toolset *toolset,
                        const struct calls_tool *tool, struct calls_caller *caller)
{
    const uint16_t account = calls_quota_key(calls, request->principal);
    const char *reject_reason =
        calls_quota_reject_call(calls, account, calls_request_large_bytes(request));
    const bool is_keyed = calls_id_is_keyed(id);
    struct calls_call *call = is_keyed ? calls_find(calls, id) : NULL;
    unsigned char digest[32];

    if (!is_keyed && calls->is_draining) {
        calls_reject_caller(caller, CALLS_SERVICE_UNAVAILABLE, peg__str(CALLS_SHUTTING_DOWN), 1000);
    } else if (reject_reason && !(is_keyed && calls_quota_has_wait(calls, account))) {
        calls_reject_caller(caller, CALLS_OVERLOADED, peg__str(reject_reason), 1000);
    } else if (call && !calls_request_digest(request, digest)) {
        reject_without_memory(caller);
    } else if (call && memcmp(digest, digest_of(call), sizeof(digest)) != 0) {
        reject_other_request(caller);
    } else if (call) {
        if (call->machine.origin != CALLS_STARTS && !reject_reason)
            give_request(call, request, toolset, tool);
        calls_call_attach_caller(call, caller, calls_request_deadline(calls, request, tool));
        calls_questions_look(call);
        if (call->machine.state == CALLS_PEEKING)
            calls_run_recheck(call); /* it may have begun since the identity was read */
    } else if (reject_reason) {
        start_attaching(calls, id, request, toolset, tool, reject_reason, caller);
    } else {
        start_new(calls, id, request, toolset, tool, caller);
    }
}

void calls_start_here(struct calls_loop *calls, const struct bus_id *id,
                      const struct calls_request *request, struct calls_caller *caller)
{
    struct calls_toolset *toolset = calls->env->find_toolset(calls->user, request->toolset);
    const struct calls_tool *tool =
        toolset ? calls->env->find_tool(calls->user, toolset, request->tool) : NULL;

    caller->deadline.fn = on_caller_deadline;
    if (!tool)
        reject_unknown_tool(calls, request, toolset != NULL, caller);
    else if (request->payload.len > calls->options.max_payload)
        reject_too_large(calls, caller);
    else
        start_known(calls, id, request, toolset, tool, caller);
}

/* ---- by its id ---- */

/* A caller that guesses an id learns and changes nothing: until the identity was read, no message
 * about the call is for it, and it is not among those that wait. */
void calls_locate_here(struct calls_loop *calls, enum calls_origin origin, const struct bus_id *id,
                       peg_str principal, int64_t deadline_ns, struct calls_caller *caller)
{
    const uint16_t account = calls_quota_key(calls, principal);
    /* To end a call takes quota for a moment, and makes some. */
    const bool has_quota = origin == CALLS_STOPS
                               ? peg__quota_used(&calls->quotas.calls) < calls->options.max_calls
                               : calls_quota_has_wait(calls, account);
    struct calls_call *call = has_quota ? calls_call_new(calls, id, account) : NULL;

    caller->deadline.fn = on_caller_deadline;
    if (call)
        call->principal = peg__blob_copy(principal);
    if (!call || !call->principal) {
        if (call)
            calls_call_drop(call);
        calls_reject_caller(caller, CALLS_OVERLOADED,
                            peg__str("the gateway has too many calls (PEG_LIMIT_GATEWAY_CALLS), "
                                     "of this principal or of all, or too little memory: try again "
                                     "later"),
                            1000);
        return;
    }
    call->machine.origin = origin;
    call->asked_before = caller->was_asked_elsewhere;
    call->deadline_ns = calls_give_up_ns(bus_now_ns(calls->bus), deadline_ns);
    calls_call_add_caller(call, caller);
    calls_run_locate(call);
}
