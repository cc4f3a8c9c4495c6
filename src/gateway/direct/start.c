/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request becomes a call, or its caller one more caller of a call with the same identity. In the
 * order of all calls: is its tool known, its payload valid, its provider healthy?
 */

#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/quota.h"
#include "gateway/direct/internal.h"
#include "gateway/routing/call_span.h"

/* ---- ids ------------------------------------------------------------------------------------- */

/* How an id of a direct call begins, so that a node that is asked for one knows where to look. */
static const uint8_t id_mark[4] = {0xd1, 0x4e, 0xc7, 0x00};

bool gw_id_is_direct(const struct bus_id *id)
{
    return memcmp(id->bytes, id_mark, sizeof(id_mark)) == 0;
}

/* False: no memory. */
static bool make_id(struct calls_loop *calls, const struct calls_request *request,
                    struct bus_id *ret_id)
{
    const peg_str secret = {(const char *)calls->options.secret, sizeof(calls->options.secret)};
    char parts[sizeof("direct") + sizeof(ret_id->bytes)] = "direct";
    const peg_str text = {parts, sizeof(parts)};

    if (!calls_request_id(calls, request, ret_id))
        return false;
    if (ret_id->len == sizeof(ret_id->bytes)) {
        memcpy(parts + sizeof("direct"), ret_id->bytes, sizeof(ret_id->bytes));
        if (!peg__hmac_sha256(secret, text, ret_id->bytes))
            return false;
    } else {
        ret_id->bytes[ret_id->len - 1] &= (uint8_t)~1U; /* its registers are not of this node */
    }
    memcpy(ret_id->bytes, id_mark, sizeof(id_mark));
    return true;
}

/* ---- callers --------------------------------------------------------------------------------- */

static void reject_for_memory(struct calls_caller *caller)
{
    calls_reject_caller(caller, CALLS_OVERLOADED,
                        peg__str("the gateway is out of memory: try again later"), 1000);
}

static void on_deserted(struct net_timer *timer)
{
    direct_call_drop(peg__container_of(timer, struct direct_call, deserted));
}

/* A call with an identity goes on, since callers at other nodes may wait for it; so does one that
 * was only started. A follower is of no use to anybody else; it may be in the middle of a report.
 */
static void leave_alone(struct direct_call *call)
{
    struct bus *bus = call->direct->bus;

    if (call->callers)
        return;
    if (call->is_following || call->state == DIRECT_LOCATING) {
        call->deserted.fn = on_deserted;
        bus_arm(bus, &call->deserted, bus_now_ns(bus));
    } else if (!call->is_detached && !direct_is_keyed(call)) {
        direct_run_cancel(call);
    }
}

static void on_wait_over(struct net_timer *timer)
{
    struct calls_caller *caller = peg__container_of(timer, struct calls_caller, deadline);
    struct direct_call *call = (struct direct_call *)caller->direct;
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = CALLS_TIMEOUT,
        .message = PEG_LIT("the wait is over and the call goes on: ask again"),
        .was_started = true,
    };

    direct_take_caller(caller);
    leave_alone(call);
    caller->events->on_end(caller, &outcome);
}

static void init_caller(struct calls_caller *caller)
{
    caller->call = NULL;
    caller->relay = NULL;
    caller->direct = NULL;
    caller->is_follower = false;
    caller->deadline = (struct net_timer){.fn = on_wait_over};
}

void gw_caller_leave(struct calls_caller *caller, enum calls_leaving leaving)
{
    struct direct_call *call = (struct direct_call *)caller->direct;

    gw_call_span_leave(caller, leaving);
    if (!call) {
        calls_caller_leave(caller, leaving);
        return;
    }
    direct_take_caller(caller);
    if (leaving == CALLS_DETACHES)
        call->is_detached = true;
    /* A caller that abandons is the only one with its identity, or had come back for it. */
    if (leaving == CALLS_ABANDONS && !call->callers && !call->is_following &&
        call->state != DIRECT_LOCATING)
        direct_run_cancel(call);
    else
        leave_alone(call);
}

/* It waits for its own time. */
static void attach_caller(struct direct_call *call, struct calls_caller *caller,
                          int64_t deadline_ns)
{
    caller->is_follower = true;
    direct_add_caller(call, caller);
    bus_arm(call->direct->bus, &caller->deadline, deadline_ns);
    bus_disarm(call->direct->bus, &call->deserted);
    if (call->is_reported)
        direct_report(call);
}

/* ---- a new call ------------------------------------------------------------------------------ */

static void on_checked(void *user, peg_status status, peg_str words)
{
    struct direct_call *call = (struct direct_call *)user;

    call->check = NULL;
    if (status)
        direct_end_refused(call, calls_check_error(status), words, 0);
    else
        direct_run(call);
}

static void check_payload_later(struct direct_call *call, peg_schema *schema, peg_str payload)
{
    call->state = DIRECT_CHECKING;
    call->payload = peg__blob_copy(payload);
    if (call->payload)
        call->check = calls_check_start(
            call->direct->calls, schema, call->payload,
            &(struct calls_check_text){.json = peg__blob_str(call->payload)}, on_checked, call);
    if (!call->check)
        direct_end_refused(call, CALLS_OVERLOADED,
                           peg__str("the gateway is out of memory: try again later"), 1000);
}

static enum direct_bar find_bar(const struct gw_direct *direct, const struct gw_toolset *toolset,
                                const struct calls_request *request, const struct gw_tool *tool)
{
    struct calls_loop *calls = direct->calls;

    if (calls->is_draining)
        return DIRECT_BAR_DRAINING;
    if (!calls->env->is_healthy(calls->user, toolset->name))
        return DIRECT_BAR_UNHEALTHY;
    if (request->may_have_run && !tool->is_idempotent)
        return DIRECT_BAR_ASKED_BEFORE;
    return bus_can_track(direct->bus) ? DIRECT_NO_BAR : DIRECT_BAR_TRACKING;
}

static bool write_identity(struct direct_call *call)
{
    struct gw_direct *direct = call->direct;
    struct calls_identity identity = {
        .coordinator = direct->bus->self,
        .deadline_ms = call->deadline_ms,
        .epoch = bus_epoch(direct->bus),
        .number = ++direct->calls->n_tokens,
        .principal = peg__blob_str(call->principal),
    };
    const struct calls_subject subject = {.toolset = call->toolset->name,
                                          .tool = call->tool->name,
                                          .admitted_ms = bus_now_ms(direct->bus)};

    memcpy(identity.digest, call->digest, sizeof(identity.digest));
    call->identity = calls_identity_write(&identity, &subject);
    return call->identity != NULL;
}

/* What is asked for, of a toolset. */
struct wish {
    struct gw_toolset *toolset;
    const struct gw_tool *tool;
    const struct calls_request *request;
    const struct bus_id *id;
    bool is_for_agent;
};

/* NULL: no memory. */
static struct direct_call *make_direct_call(struct gw_direct *direct, const struct wish *wish)
{
    struct calls_loop *calls = direct->calls;
    const struct calls_request *request = wish->request;
    struct direct_call *call =
        direct_call_new(direct, wish->id, calls_quota_key(calls, request->principal));

    if (!call)
        return NULL;
    call->toolset = gw_toolset_ref(wish->toolset);
    call->tool = wish->tool;
    call->is_for_agent = wish->is_for_agent;
    call->meter = calls->env->get_meter(calls->user, wish->toolset->name);
    call->large_bytes = calls_request_large_bytes(request);
    if (call->large_bytes)
        peg__quota_add(&calls->quotas.large_bytes, call->account, call->large_bytes);
    call->deadline_ns = calls_request_deadline(calls, request, &wish->tool->of_calls);
    call->deadline_ms =
        bus_now_ms(direct->bus) + (call->deadline_ns - bus_now_ns(direct->bus)) / 1000000;
    call->bar = find_bar(direct, wish->toolset, request, wish->tool);
    call->principal = peg__blob_copy(request->principal);
    if (!call->principal || direct_write_request(call, request) ||
        (direct_is_keyed(call) &&
         (!calls_request_digest(request, call->digest) || !write_identity(call)))) {
        direct_call_drop(call);
        return NULL;
    }
    return call;
}

static void start_new(struct gw_direct *direct, const struct wish *wish,
                      struct calls_caller *caller)
{
    struct calls_loop *calls = direct->calls;
    const peg_str payload =
        wish->request->payload.len ? wish->request->payload : (peg_str)PEG_LIT("{}");
    bool takes_long = payload.len > PEG_LIMIT_GATEWAY_INLINE_BYTES && calls->loop;
    peg_schema *schema = NULL;
    struct direct_call *call = NULL;
    peg_status status =
        calls->env->get_schema(calls->user, &wish->tool->of_calls, CALLS_INPUT, &schema)
            ? PEG_OK
            : PEG_ENOMEM;

    if (!status && !takes_long)
        status = calls_check_now(calls, schema, payload, "payload");
    if (status == PEG_ELIMIT && calls->loop) {
        takes_long = true;
        status = PEG_OK;
    }
    if (!status)
        call = make_direct_call(direct, wish);
    if (call) {
        direct_add_caller(call, caller);
        direct_arm_deadline(call, call->deadline_ns);
        if (takes_long)
            check_payload_later(call, schema, payload);
        else
            direct_run(call);
    } else {
        calls->env->count_refused(calls->env->get_meter(calls->user, wish->toolset->name));
        if (status && status != PEG_ENOMEM)
            calls_reject_caller(caller, calls_check_error(status), peg__buf_view(&calls->text), 0);
        else
            reject_for_memory(caller);
    }
    peg_schema_unref(schema);
}

static void attach_or_start(struct gw_direct *direct, const struct wish *wish,
                            struct calls_caller *caller)
{
    struct calls_loop *calls = direct->calls;
    const struct calls_request *request = wish->request;
    const char *full = calls_quota_reject_call(calls, calls_quota_key(calls, request->principal),
                                               calls_request_large_bytes(request));
    struct direct_call *call = direct_find(direct, wish->id);
    unsigned char digest[32];

    if (!call && full) {
        calls_reject_caller(caller, CALLS_OVERLOADED, peg__str(full), 1000);
    } else if (!call) {
        start_new(direct, wish, caller);
    } else if (!calls_request_digest(request, digest)) {
        reject_for_memory(caller);
    } else if (memcmp(digest, call->digest, sizeof(digest)) != 0) {
        calls_reject_caller(caller, CALLS_VALIDATION,
                            peg__str("this identity (run_id and tool_call_id, or "
                                     "idempotency_key) was used for a call with another tool or "
                                     "payload: choose a new one"),
                            0);
    } else {
        attach_caller(call, caller, calls_request_deadline(calls, request, &wish->tool->of_calls));
    }
}

static void reject_unknown_tool(struct calls_loop *calls, const struct calls_request *request,
                                struct calls_caller *caller)
{
    peg__buf_clear(&calls->text);
    peg__buf_printf(&calls->text, "tool \"%.*s\" not found in toolset \"%.*s\"",
                    PEG_ARG(request->tool), PEG_ARG(request->toolset));
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

static void start_direct(struct gw_direct *direct, struct gw_toolset *toolset,
                         const struct calls_request *request, bool is_for_agent,
                         struct calls_caller *caller)
{
    struct calls_loop *calls = direct->calls;
    struct bus_id id;
    const struct wish wish = {
        .toolset = toolset,
        .tool = gw_toolset_tool(toolset, request->tool),
        .request = request,
        .id = &id,
        .is_for_agent = is_for_agent,
    };

    init_caller(caller);
    if (!wish.tool)
        reject_unknown_tool(calls, request, caller);
    else if (request->payload.len > calls->options.max_payload)
        reject_too_large(calls, caller);
    else if (!make_id(calls, request, &id))
        reject_for_memory(caller);
    else
        attach_or_start(direct, &wish, caller);
}

void direct_start_for_agent(struct gw_direct *direct, struct gw_toolset *toolset,
                            const struct calls_request *request, struct calls_caller *caller)
{
    struct gw_traced traced;

    request = gw_call_span_begin(gw_router_of(direct->calls)->tracer, request, caller, &traced);
    start_direct(direct, toolset, request, true, caller);
    gw_traced_clear(&traced);
}

void gw_call_start(struct calls_loop *calls, const struct calls_request *request,
                   struct calls_caller *caller)
{
    const struct gw_router *router = gw_router_of(calls);
    struct gw_toolset *toolset = router->direct && router->snapshot
                                     ? gw_snapshot_find(router->snapshot, request->toolset)
                                     : NULL;
    struct gw_traced traced;

    caller->direct = NULL;
    request = gw_call_span_begin(router->tracer, request, caller, &traced);
    if (toolset && toolset->kind == GW_DIRECT)
        start_direct(router->direct, toolset, request, false, caller);
    else
        calls_start(calls, request, caller);
    gw_traced_clear(&traced);
}

/* ---- by its id ------------------------------------------------------------------------------- */

static bool is_of(const struct direct_call *call, peg_str principal)
{
    return peg__str_eq(peg__blob_str(call->principal), principal);
}

static void locate(struct gw_direct *direct, const struct bus_id *id, peg_str principal,
                   int64_t deadline_ns, bool is_stopping, struct calls_caller *caller)
{
    struct calls_loop *calls = direct->calls;
    const uint16_t account = calls_quota_key(calls, principal);
    struct direct_call *call =
        calls_quota_has_wait(calls, account) ? direct_call_new(direct, id, account) : NULL;

    if (call)
        call->principal = peg__blob_copy(principal);
    if (!call || !call->principal) {
        if (call)
            direct_call_drop(call);
        calls_reject_caller(caller, CALLS_OVERLOADED,
                            peg__str("the gateway has too many calls (PEG_LIMIT_GATEWAY_CALLS), "
                                     "of this principal or of all, or too little memory: try again "
                                     "later"),
                            1000);
        return;
    }
    call->is_stopping = is_stopping;
    call->asked_before = caller->was_asked_elsewhere;
    direct_add_caller(call, caller);
    if (deadline_ns != NET_NEVER)
        bus_arm(direct->bus, &caller->deadline, deadline_ns);
    direct_run_locate(call);
}

void gw_call_await(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                   int64_t deadline_ns, struct calls_caller *caller)
{
    struct gw_direct *direct = gw_router_of(calls)->direct;
    struct direct_call *call;

    caller->direct = NULL;
    caller->span = NULL;
    if (!direct || !gw_id_is_direct(id)) {
        calls_await(calls, id, principal, deadline_ns, caller);
        return;
    }
    init_caller(caller);
    call = direct_find(direct, id);
    if (call && is_of(call, principal))
        attach_caller(call, caller, calls_give_up_ns(bus_now_ns(direct->bus), deadline_ns));
    else
        locate(direct, id, principal, calls_give_up_ns(bus_now_ns(direct->bus), deadline_ns), false,
               caller);
}

void gw_call_cancel(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                    struct calls_caller *caller)
{
    static const struct calls_outcome stopped = {.kind = CALLS_KIND_CANCELED};
    struct gw_direct *direct = gw_router_of(calls)->direct;
    struct direct_call *call;

    caller->direct = NULL;
    caller->span = NULL;
    if (!direct || !gw_id_is_direct(id)) {
        calls_cancel(calls, id, principal, caller);
        return;
    }
    init_caller(caller);
    call = direct_find(direct, id);
    if (call && is_of(call, principal) && !call->is_following) {
        direct_run_cancel(call);
        caller->events->on_end(caller, &stopped);
    } else {
        locate(direct, id, principal, NET_NEVER, true, caller);
    }
}

bool gw_direct_on_message(struct gw_direct *direct, const struct bus_message *message)
{
    struct direct_call *call;

    if (!direct || !gw_id_is_direct(&message->id))
        return false;
    call = direct_find(direct, &message->id);
    if (call && message->kind == BUS_FOLLOWER && message->reason == BUS_STOP)
        direct_run_cancel(call);
    return true;
}
