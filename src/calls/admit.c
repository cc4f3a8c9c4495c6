/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first stage of a call: is its toolset known, its payload valid, its provider healthy, and is
 * this the one that decides about its identity? In this order: what is both invalid and unhealthy
 * is invalid.
 */

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- refusals before there is a call -------------------------------------------------------- */

static void reject_request(struct calls_caller *caller, enum calls_error error, peg_str message,
                           int64_t retry_after_ms)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = error,
        .message = message,
        .retry_after_ms = retry_after_ms,
    };

    caller->events->on_end(caller, &outcome);
}

static void reject_unknown_tool(struct calls_loop *calls, const struct calls_request *request,
                                bool knows_toolset, struct calls_caller *caller)
{
    peg__buf_clear(&calls->text);
    if (knows_toolset)
        peg__buf_printf(&calls->text, "tool \"%.*s\" not found in toolset \"%.*s\"",
                        PEG_ARG(request->tool), PEG_ARG(request->toolset));
    else
        peg__buf_printf(&calls->text, "toolset \"%.*s\" not found", PEG_ARG(request->toolset));
    reject_request(caller, CALLS_NOT_FOUND, peg__buf_view(&calls->text), 0);
}

static void refuse_too_large(struct calls_loop *calls, struct calls_caller *caller)
{
    peg__buf_clear(&calls->text);
    peg__buf_printf(
        &calls->text,
        "the payload is larger than the %zu bytes that this gateway takes "
        "(--max-payload, PEG_LIMIT_GATEWAY_PAYLOAD_BYTES): send a reference to the data "
        "instead",
        calls->options.max_payload);
    reject_request(caller, CALLS_LIMIT, peg__buf_view(&calls->text), 0);
}

static void refuse_memory(struct calls_caller *caller)
{
    reject_request(caller, CALLS_OVERLOADED,
                   peg__str("the gateway is out of memory: try again later"), 1000);
}

/* ---- the id --------------------------------------------------------------------------------- */

static void add_part(struct peg__buf *buf, peg_str part)
{
    const uint32_t len = (uint32_t)part.len;

    peg__buf_add(buf, &len, sizeof(len));
    peg__buf_str(buf, part);
}

static const char SHUTTING_DOWN[] = "this node is shutting down: call another one, or try again";

static bool has_identity(const struct calls_request *request)
{
    return request->key.len || (request->run_id.len && request->tool_call_id.len);
}

/* Lengths go before the parts, so that no two identities read the same. Which of the two kinds of
 * identity it is stands in front. */
static peg_status id_of_identity(struct calls_loop *calls, const struct calls_request *request,
                                 struct bus_id *ret_id)
{
    struct peg__buf parts = PEG__BUF(PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    const peg_str secret = {(const char *)calls->options.secret, sizeof(calls->options.secret)};
    bool is_made;

    peg__buf_puts(&parts, request->key.len ? "key" : "run");
    add_part(&parts, request->principal);
    add_part(&parts, request->toolset);
    if (request->key.len) {
        add_part(&parts, request->key);
    } else {
        add_part(&parts, request->run_id);
        add_part(&parts, request->tool_call_id);
    }
    *ret_id = (struct bus_id){.len = sizeof(ret_id->bytes)};
    is_made = !parts.status && peg__hmac_sha256(secret, peg__buf_view(&parts), ret_id->bytes);
    peg__buf_free(&parts);
    return is_made ? PEG_OK : PEG_ENOMEM;
}

/* If all that could run it are here, its registers need not leave the node. */
static peg_status make_call_id(struct calls_loop *calls, const struct calls_request *request,
                               struct bus_id *ret_id)
{
    if (has_identity(request))
        return id_of_identity(calls, request, ret_id);
    return calls_random_id(calls, calls->env->is_served_here(calls->user, request->toolset), ret_id)
               ? PEG_OK
               : PEG_ENOMEM;
}

/* ---- what is sent ----------------------------------------------------------------------------
 */

/* A packed pegboard.v1.Call; attempt, timeout and route are the provider side's. */
static peg_status pack_request(struct calls_call *call, const struct calls_request *request)
{
    char id[BUS_ID_TEXT];
    const peg_str payload = request->payload.len ? request->payload : (peg_str)PEG_LIT("{}");
    peg_str id_text;
    size_t size;
    char *at;

    bus_id_print(&call->entry.id, id);
    id_text = peg__str(id);
    size = wire_bytes_size(id_text) + wire_bytes_size(request->tool) + wire_bytes_size(payload) +
           wire_number_size((uint64_t)call->deadline_ms) + request->packed.len +
           wire_bytes_size(request->principal);
    call->request = peg__blob_new(size);
    if (!call->request)
        return PEG_ENOMEM;
    at = wire_put_bytes(call->request->bytes, PEGBOARD_V1_CALL_CALL_ID_FIELD, id_text);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_TOOL_FIELD, request->tool);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_PAYLOAD_FIELD, payload);
    call->payload = (peg_str){at - payload.len, payload.len};
    at = wire_put_number(at, PEGBOARD_V1_CALL_DEADLINE_UNIX_MS_FIELD, (uint64_t)call->deadline_ms);
    if (request->packed.len)
        at = (char *)memcpy(at, request->packed.ptr, request->packed.len) + request->packed.len;
    wire_put_bytes(at, PEGBOARD_V1_CALL_CALLER_FIELD, request->principal);
    return PEG_OK;
}

/* What a request takes of the room for large ones; 0 for a small one. It is given back when the
 * call is gone: until then it may have to be sent to somebody else. */
static size_t large_bytes_of(const struct calls_request *request)
{
    const size_t bytes = request->payload.len + request->packed.len;

    return bytes > PEG_LIMIT_GATEWAY_SMALL_REQUEST_BYTES ? bytes : 0;
}

/* The coordinator settles a little before the caller's own clock runs out: he then hears how it
 * ended, not just that it is late. */
int64_t calls_give_up_ns(int64_t now_ns, int64_t deadline_ns)
{
    const int64_t least_ns = 1000000;
    const int64_t most_ns = 100000000;
    int64_t early_ns = (deadline_ns - now_ns) / 20;

    if (deadline_ns == NET_NEVER)
        return NET_NEVER;
    early_ns = early_ns < least_ns ? least_ns : early_ns;
    early_ns = early_ns > most_ns ? most_ns : early_ns;
    return deadline_ns - early_ns;
}

static void set_deadline(struct calls_call *call, const struct calls_request *request)
{
    struct bus *bus = call->calls->bus;
    const int64_t now_ns = bus_now_ns(bus);
    const int64_t caller_ns = calls_give_up_ns(now_ns, request->deadline_ns);
    int64_t timeout_ms = request->timeout_ms;

    if (timeout_ms <= 0 && call->tool)
        timeout_ms = call->tool->timeout_ms;
    if (timeout_ms <= 0)
        timeout_ms = call->calls->options.call_timeout_ms;
    call->deadline_ns = now_ns + timeout_ms * 1000000;
    if (caller_ns < call->deadline_ns)
        call->deadline_ns = caller_ns;
    call->deadline_ms = bus_now_ms(bus) + (call->deadline_ns - now_ns) / 1000000;
    bus_arm(bus, &call->deadline, call->deadline_ns);
}

/* ---- the identity: one decision for each ----------------------------------------------------- */

struct identity_head {
    unsigned char digest[32];
    uint64_t node;
    uint64_t token; /* makes each such value its own */
    uint64_t epoch;
    int64_t deadline_ms;
    uint32_t loop;
    uint32_t reserved;
};

bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity)
{
    struct identity_head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    memcpy(ret_identity->digest, head.digest, sizeof(head.digest));
    ret_identity->coordinator = (struct bus_address){.node = head.node, .loop = head.loop};
    ret_identity->deadline_ms = head.deadline_ms;
    ret_identity->epoch = head.epoch;
    ret_identity->principal = (peg_str){blob->bytes + sizeof(head), blob->len - sizeof(head)};
    return true;
}

static peg_status prepare_identity(struct calls_call *call, const struct calls_request *request)
{
    struct bus *bus = call->calls->bus;
    struct identity_head head = {
        .node = bus->self.node,
        .loop = bus->self.loop,
        .token = ++call->calls->n_tokens,
        .epoch = bus_epoch(bus),
        .deadline_ms = call->deadline_ms,
    };

    if (!calls_request_digest(request, call->digest))
        return PEG_ENOMEM;
    call->has_digest = true;
    memcpy(head.digest, call->digest, sizeof(head.digest));
    call->identity = peg__blob_new(sizeof(head) + request->principal.len);
    if (!call->identity)
        return PEG_ENOMEM;
    memcpy(call->identity->bytes, &head, sizeof(head));
    if (request->principal.len)
        memcpy(call->identity->bytes + sizeof(head), request->principal.ptr,
               request->principal.len);
    call->identity_epoch = head.epoch;
    return PEG_OK;
}

/* The same with the time of now. */
static peg_status prepare_identity_again(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;
    struct peg__blob *identity = peg__blob_copy(peg__blob_str(call->identity));
    struct identity_head head;

    if (!identity)
        return PEG_ENOMEM;
    call->deadline_ms = bus_now_ms(bus) + (call->deadline_ns - bus_now_ns(bus)) / 1000000;
    call->identity_epoch = bus_epoch(bus);
    memcpy(&head, identity->bytes, sizeof(head));
    head.token = ++call->calls->n_tokens;
    head.epoch = call->identity_epoch;
    head.deadline_ms = call->deadline_ms;
    memcpy(identity->bytes, &head, sizeof(head));
    peg__blob_unref(call->identity);
    call->identity = identity;
    return PEG_OK;
}

static void refuse_unhealthy(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    peg__buf_clear(&calls->text);
    calls->env->explain_health(calls->user, call->toolset->name, &calls->text);
    calls_call_refuse(call, CALLS_SERVICE_UNAVAILABLE, peg__buf_view(&calls->text), 0);
}

static void request_identity(struct calls_call *call);
static void read_identity(struct calls_call *call);

static struct calls_call *of_again(struct net_timer *timer)
{
    return peg__container_of(timer, struct calls_call, again);
}

static void retry_identity(struct net_timer *timer)
{
    request_identity(of_again(timer));
}

static void try_read_again(struct net_timer *timer)
{
    read_identity(of_again(timer));
}

static void retry_admission(struct calls_call *call, void (*fn)(struct net_timer *timer))
{
    enum { PAUSE_NS = 50000000 };

    call->again.fn = fn;
    bus_arm(call->calls->bus, &call->again, bus_now_ns(call->calls->bus) + PAUSE_NS);
}

static void go_on_admitted(struct calls_call *call)
{
    call->again.fn = calls_recheck_on_timer;
    call->step = CALLS_SENT;
    call->is_admitted = true;
    call->calls->env->count_admitted(call->meter);
    calls_call_report_admitted(call, false);
}

/* What stands of calls that are kept fills its room, but for what those need that were admitted; or
 * as much of it as one principal may have, which is less than all. */
static void refuse_identity(struct calls_call *call, peg_status status)
{
    const char *words =
        status == PEG_ELIMIT && call->account
            ? "calls with an identity (run_id and tool_call_id, or idempotency_key) of this "
              "principal would hold more than three times what is free (PEG_LIMIT_QUOTA_SHARE) of "
              "PEG_LIMIT_BUS_REGISTERS or PEG_LIMIT_BUS_REGISTER_BYTES: they are kept until "
              "--result-mapping-ttl after their deadline; try again later, give an identity to "
              "fewer calls, shorter deadlines, or smaller results"
        : status == PEG_ELIMIT
            ? "the gateway keeps as many calls with an identity (run_id and tool_call_id, or "
              "idempotency_key) as it has room for (PEG_LIMIT_BUS_REGISTERS, "
              "PEG_LIMIT_BUS_REGISTER_BYTES): try again later, give an identity to fewer calls, or "
              "shorten --result-mapping-ttl"
            : "the gateway is out of memory: try again later";

    calls_call_refuse(call, CALLS_OVERLOADED, peg__str(words), 1000);
}

static void on_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);

    if (answer->status == PEG_EIO) {
        retry_admission(call, retry_identity);
    } else if (answer->status) {
        refuse_identity(call, answer->status);
    } else if (!answer->written) {
        calls_follow(call, answer->current);
    } else {
        go_on_admitted(call);
        if (call->ending)
            calls_settle_unstarted(call);
        else
            calls_send(call);
    }
}

/* A call that may not begin here, or not now. */
static void refuse_new(struct calls_call *call)
{
    if (call->calls->is_draining)
        calls_call_refuse(call, CALLS_SERVICE_UNAVAILABLE, peg__str(SHUTTING_DOWN), 1000);
    else if (call->may_run_elsewhere)
        calls_call_refuse(
            call, CALLS_OUTCOME_UNKNOWN,
            peg__str("this gateway does not know the call: it was asked for before the "
                     "gateway was restarted and lost what it knew of calls; it may have "
                     "been started, and have had its effect: look before you repeat it "
                     "with a new identity"),
            0);
    else if (call->why_not)
        calls_call_refuse(call, CALLS_OVERLOADED, peg__str(call->why_not), 1000);
    else
        refuse_unhealthy(call);
}

/* Nobody could say whether it runs, and now it is too late to ask. */
static void refuse_unread(struct calls_call *call)
{
    call->step = CALLS_FOLLOWING; /* for all that is known */
    calls_call_refuse(
        call, CALLS_TIMEOUT,
        peg__str("the registry did not say in time whether this call was begun before, "
                 "and it may run: ask again with the same identity"),
        0);
}

static void on_old_identity(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct calls_call *call = peg__container_of(wait, struct calls_call, wait);

    if (!answer->status && answer->current)
        calls_follow(call, answer->current);
    else if (!answer->status)
        refuse_new(call);
    else if (call->ending)
        refuse_unread(call);
    else
        retry_admission(call, try_read_again);
}

/* Somebody may have asked for it before. */
static void read_identity(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_old_identity;
    bus_read(call->calls->bus, &key, &call->wait);
}

static void request_identity(struct calls_call *call)
{
    const struct bus_key key = calls_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_identity;
    bus_put_if_absent(call->calls->bus, &key, call->identity, calls_call_keep_until(call),
                      &call->wait);
}

/* The payload is valid. */
void calls_admit_checked(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const bool is_healthy = calls->env->is_healthy(calls->user, call->toolset->name);

    call->step = CALLS_ADMITTING;
    if (!calls_call_is_keyed(call)) {
        if (!is_healthy) {
            refuse_unhealthy(call);
            return;
        }
        go_on_admitted(call);
        calls_send(call);
        return;
    }
    if (is_healthy && !calls->is_draining && !call->may_run_elsewhere)
        request_identity(call);
    else
        read_identity(call);
}

void calls_admit_again(struct calls_call *call)
{
    if (call->why_not) {
        call->step = CALLS_ADMITTING; /* there is nothing to join */
        refuse_new(call);
    } else if (prepare_identity_again(call)) {
        calls_call_refuse(call, CALLS_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
    } else {
        calls_admit_checked(call);
    }
}

/* ---- the payload ------------------------------------------------------------------------------
 */

static enum calls_error payload_error(peg_status status)
{
    if (status == PEG_ENOMEM)
        return CALLS_OVERLOADED;
    return status == PEG_ELIMIT ? CALLS_UNDECIDED : CALLS_VALIDATION;
}

static void on_checked(void *user, peg_status status, peg_str words)
{
    struct calls_call *call = (struct calls_call *)user;

    call->check = NULL;
    if (status)
        calls_call_refuse(call, payload_error(status), words, 0);
    else
        calls_admit_checked(call);
}

static void check_on_worker(struct calls_call *call, peg_schema *schema)
{
    call->step = CALLS_CHECKING;
    call->check =
        calls_check_start(call->calls, schema, call->request, call->payload, on_checked, call);
    if (!call->check)
        calls_call_refuse(call, CALLS_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
}

static void refuse_payload(struct calls_loop *calls, peg_status status, struct calls_caller *caller)
{
    if (status == PEG_ENOMEM)
        refuse_memory(caller);
    else
        reject_request(caller, payload_error(status), peg__buf_view(&calls->text), 0);
}

/* With an id and a deadline. */
static struct calls_call *new_call(struct calls_loop *calls, const struct calls_request *request,
                                   struct calls_toolset *toolset, const struct calls_tool *tool)
{
    struct bus_id id;
    struct calls_call *call = NULL;

    if (!make_call_id(calls, request, &id))
        call = calls_call_new(calls, &id, calls_quota_key(calls, request->principal));
    if (!call)
        return NULL;
    call->toolset = calls->env->ref_toolset(calls->user, toolset);
    call->tool = tool;
    call->may_run_elsewhere = request->may_have_run && !tool->is_idempotent;
    call->meter = calls->env->get_meter(calls->user, toolset->name);
    set_deadline(call, request);
    return call;
}

static struct calls_call *make_admitted_call(struct calls_loop *calls,
                                             const struct calls_request *request,
                                             struct calls_toolset *toolset,
                                             const struct calls_tool *tool)
{
    struct calls_call *call = new_call(calls, request, toolset, tool);

    if (!call)
        return NULL;
    calls_quota_take_bytes(call, large_bytes_of(request));
    if (pack_request(call, request) ||
        (calls_call_is_keyed(call) && prepare_identity(call, request))) {
        calls_call_drop(call);
        return NULL;
    }
    return call;
}

static void admit_known(struct calls_loop *calls, const struct calls_request *request,
                        struct calls_toolset *toolset, const struct calls_tool *tool,
                        struct calls_caller *caller)
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
        call = make_admitted_call(calls, request, toolset, tool);
    if (!call) {
        calls->env->count_refused(calls->env->get_meter(calls->user, toolset->name));
        refuse_payload(calls, status ? status : PEG_ENOMEM, caller);
    } else {
        calls_call_add_caller(call, caller);
        if (takes_long)
            check_on_worker(call, schema);
        else
            calls_admit_checked(call);
    }
    peg_schema_unref(schema);
}

/* There is no room for a call to begin. One that stands is found by its identity, and waited for as
 * AwaitTool does: nothing is kept of the request, so it needs no room and is not read. */
static void admit_standing(struct calls_loop *calls, const struct calls_request *request,
                           struct calls_toolset *toolset, const struct calls_tool *tool,
                           const char *why_not, struct calls_caller *caller)
{
    struct calls_call *call = new_call(calls, request, toolset, tool);

    if (!call || !calls_request_digest(request, call->digest)) {
        if (call)
            calls_call_drop(call);
        refuse_memory(caller);
        return;
    }
    call->tool = NULL;
    call->has_digest = true;
    call->why_not = why_not;
    call->step = CALLS_ADMITTING;
    calls_call_add_caller(call, caller);
    read_identity(call);
}

void calls_start(struct calls_loop *calls, const struct calls_request *request,
                 struct calls_caller *caller)
{
    const uint16_t account = calls_quota_key(calls, request->principal);
    const char *why_not = calls_quota_reject_call(calls, account, large_bytes_of(request));
    struct calls_toolset *toolset = calls->env->find_toolset(calls->user, request->toolset);
    const struct calls_tool *tool =
        toolset ? calls->env->find_tool(calls->user, toolset, request->tool) : NULL;

    caller->call = NULL;
    if (!tool)
        reject_unknown_tool(calls, request, toolset != NULL, caller);
    else if (request->payload.len > calls->options.max_payload)
        refuse_too_large(calls, caller);
    else if (calls->is_draining && !has_identity(request))
        reject_request(caller, CALLS_SERVICE_UNAVAILABLE, peg__str(SHUTTING_DOWN), 1000);
    else if (why_not && has_identity(request) && calls_quota_has_wait(calls, account))
        admit_standing(calls, request, toolset, tool, why_not, caller);
    else if (why_not)
        reject_request(caller, CALLS_OVERLOADED, peg__str(why_not), 1000);
    else
        admit_known(calls, request, toolset, tool, caller);
}
