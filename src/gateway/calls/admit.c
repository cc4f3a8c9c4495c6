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
#include "gateway/calls/call.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- refusals before there is a call -------------------------------------------------------- */

static void reject_ask(struct gw_caller *caller, enum wire_error error, peg_str message,
                       int64_t retry_after_ms)
{
    const struct gw_outcome terminal = {
        .outcome = GW_REFUSED,
        .error = error,
        .message = message,
        .retry_after_ms = retry_after_ms,
    };

    caller->events->on_end(caller, &terminal);
}

static void reject_unknown_tool(struct gw_calls *desk, const struct gw_ask *ask, bool knows_toolset,
                                struct gw_caller *caller)
{
    peg__buf_clear(&desk->text);
    if (knows_toolset)
        peg__buf_printf(&desk->text, "tool \"%.*s\" not found in toolset \"%.*s\"",
                        PEG_ARG(ask->tool), PEG_ARG(ask->toolset));
    else
        peg__buf_printf(&desk->text, "toolset \"%.*s\" not found", PEG_ARG(ask->toolset));
    reject_ask(caller, WIRE_NOT_FOUND, peg__buf_view(&desk->text), 0);
}

static void refuse_too_large(struct gw_calls *desk, struct gw_caller *caller)
{
    peg__buf_clear(&desk->text);
    peg__buf_printf(
        &desk->text,
        "the payload is larger than the %zu bytes that this gateway takes "
        "(--max-payload, PEG_LIMIT_GATEWAY_PAYLOAD_BYTES): send a reference to the data "
        "instead",
        desk->options.max_payload);
    reject_ask(caller, WIRE_LIMIT, peg__buf_view(&desk->text), 0);
}

static void refuse_memory(struct gw_caller *caller)
{
    reject_ask(caller, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"),
               1000);
}

/* ---- the id --------------------------------------------------------------------------------- */

static void add_part(struct peg__buf *buf, peg_str part)
{
    const uint32_t len = (uint32_t)part.len;

    peg__buf_add(buf, &len, sizeof(len));
    peg__buf_str(buf, part);
}

static const char SHUTTING_DOWN[] = "this node is shutting down: call another one, or try again";

static bool has_identity(const struct gw_ask *ask)
{
    return ask->key.len || (ask->run_id.len && ask->tool_call_id.len);
}

/* Lengths go before the parts, so that no two identities read the same. Which of the two kinds of
 * identity it is stands in front. */
static peg_status id_of_identity(struct gw_calls *desk, const struct gw_ask *ask,
                                 struct bus_id *ret_id)
{
    struct peg__buf parts = PEG__BUF(PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    const peg_str secret = {(const char *)desk->options.secret, sizeof(desk->options.secret)};
    bool is_made;

    peg__buf_puts(&parts, ask->key.len ? "key" : "run");
    add_part(&parts, ask->principal);
    add_part(&parts, ask->toolset);
    if (ask->key.len) {
        add_part(&parts, ask->key);
    } else {
        add_part(&parts, ask->run_id);
        add_part(&parts, ask->tool_call_id);
    }
    *ret_id = (struct bus_id){.len = sizeof(ret_id->bytes)};
    is_made = !parts.status && peg__hmac_sha256(secret, peg__buf_view(&parts), ret_id->bytes);
    peg__buf_free(&parts);
    return is_made ? PEG_OK : PEG_ENOMEM;
}

/* Are all that could run it here? Then its registers need not leave the node. */
static bool is_served_here(struct gw_calls *desk, peg_str toolset)
{
    size_t n;
    const struct gw_provider_entry *providers = gw_presence_providers(desk->presence, toolset, &n);

    for (size_t i = 0; i < n; i++)
        if (providers[i].address.node != desk->bus->self.node)
            return false;
    return true;
}

static peg_status make_call_id(struct gw_calls *desk, const struct gw_ask *ask,
                               struct bus_id *ret_id)
{
    if (has_identity(ask))
        return id_of_identity(desk, ask, ret_id);
    return gw_calls_random_id(desk, is_served_here(desk, ask->toolset), ret_id) ? PEG_OK
                                                                                : PEG_ENOMEM;
}

/* ---- what is sent ----------------------------------------------------------------------------
 */

/* A packed pegboard.v1.Call; attempt, timeout and route are the holder's. */
static peg_status pack_request(struct gw_call *call, const struct gw_ask *ask)
{
    char id[BUS_ID_TEXT];
    const peg_str payload = ask->payload.len ? ask->payload : (peg_str)PEG_LIT("{}");
    peg_str id_text;
    size_t size;
    char *at;

    bus_id_print(&call->entry.id, id);
    id_text = peg__str(id);
    size = wire_bytes_size(id_text) + wire_bytes_size(ask->tool) + wire_bytes_size(payload) +
           wire_number_size((uint64_t)call->deadline_ms) + ask->packed.len +
           wire_bytes_size(ask->principal);
    call->request = peg__blob_new(size);
    if (!call->request)
        return PEG_ENOMEM;
    at = wire_put_bytes(call->request->bytes, PEGBOARD_V1_CALL_CALL_ID_FIELD, id_text);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_TOOL_FIELD, ask->tool);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_PAYLOAD_FIELD, payload);
    call->payload = (peg_str){at - payload.len, payload.len};
    at = wire_put_number(at, PEGBOARD_V1_CALL_DEADLINE_UNIX_MS_FIELD, (uint64_t)call->deadline_ms);
    if (ask->packed.len)
        at = (char *)memcpy(at, ask->packed.ptr, ask->packed.len) + ask->packed.len;
    wire_put_bytes(at, PEGBOARD_V1_CALL_CALLER_FIELD, ask->principal);
    return PEG_OK;
}

/* What a request takes of the room for large ones; 0 for a small one. It is given back when the
 * call is gone: until then it may have to be sent to somebody else. */
static size_t large_bytes_of(const struct gw_ask *ask)
{
    const size_t bytes = ask->payload.len + ask->packed.len;

    return bytes > PEG_LIMIT_GATEWAY_SMALL_REQUEST_BYTES ? bytes : 0;
}

/* The driver settles a little before the caller's own clock runs out: he then hears how it ended,
 * not just that it is late. */
int64_t gw_give_up_ns(int64_t now_ns, int64_t deadline_ns)
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

static void set_deadline(struct gw_call *call, const struct gw_ask *ask)
{
    struct bus *bus = call->desk->bus;
    const int64_t now_ns = bus_now_ns(bus);
    const int64_t caller_ns = gw_give_up_ns(now_ns, ask->deadline_ns);
    int64_t timeout_ms = ask->timeout_ms;

    if (timeout_ms <= 0 && call->tool)
        timeout_ms = call->tool->timeout_ms;
    if (timeout_ms <= 0)
        timeout_ms = call->desk->options.call_timeout_ms;
    call->deadline_ns = now_ns + timeout_ms * 1000000;
    if (caller_ns < call->deadline_ns)
        call->deadline_ns = caller_ns;
    call->deadline_ms = bus_now_ms(bus) + (call->deadline_ns - now_ns) / 1000000;
    bus_arm(bus, &call->deadline, call->deadline_ns);
}

/* ---- the identity: one decision for each ----------------------------------------------------- */

struct named_head {
    unsigned char digest[32];
    uint64_t node;
    uint64_t mark; /* makes each such value its own */
    uint64_t epoch;
    int64_t deadline_ms;
    uint32_t loop;
    uint32_t reserved;
};

bool gw_named_read(const struct peg__blob *blob, struct gw_named *ret_named)
{
    struct named_head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    memcpy(ret_named->digest, head.digest, sizeof(head.digest));
    ret_named->driver = (struct bus_address){.node = head.node, .loop = head.loop};
    ret_named->deadline_ms = head.deadline_ms;
    ret_named->epoch = head.epoch;
    ret_named->principal = (peg_str){blob->bytes + sizeof(head), blob->len - sizeof(head)};
    return true;
}

static peg_status prepare_name(struct gw_call *call, const struct gw_ask *ask)
{
    struct bus *bus = call->desk->bus;
    struct named_head head = {
        .node = bus->self.node,
        .loop = bus->self.loop,
        .mark = ++call->desk->n_marks,
        .epoch = bus_epoch(bus),
        .deadline_ms = call->deadline_ms,
    };

    if (!gw_ask_digest(ask, call->digest))
        return PEG_ENOMEM;
    call->has_digest = true;
    memcpy(head.digest, call->digest, sizeof(head.digest));
    call->named = peg__blob_new(sizeof(head) + ask->principal.len);
    if (!call->named)
        return PEG_ENOMEM;
    memcpy(call->named->bytes, &head, sizeof(head));
    if (ask->principal.len)
        memcpy(call->named->bytes + sizeof(head), ask->principal.ptr, ask->principal.len);
    call->named_epoch = head.epoch;
    return PEG_OK;
}

/* The same with the time of now. */
static peg_status prepare_name_again(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;
    struct peg__blob *named = peg__blob_copy(peg__blob_str(call->named));
    struct named_head head;

    if (!named)
        return PEG_ENOMEM;
    call->deadline_ms = bus_now_ms(bus) + (call->deadline_ns - bus_now_ns(bus)) / 1000000;
    call->named_epoch = bus_epoch(bus);
    memcpy(&head, named->bytes, sizeof(head));
    head.mark = ++call->desk->n_marks;
    head.epoch = call->named_epoch;
    head.deadline_ms = call->deadline_ms;
    memcpy(named->bytes, &head, sizeof(head));
    peg__blob_unref(call->named);
    call->named = named;
    return PEG_OK;
}

static void refuse_unhealthy(struct gw_call *call)
{
    struct gw_calls *desk = call->desk;

    peg__buf_clear(&desk->text);
    gw_presence_explain(desk->presence, call->toolset->name, &desk->text);
    gw_call_refuse(call, WIRE_SERVICE_UNAVAILABLE, peg__buf_view(&desk->text), 0);
}

static void ask_name(struct gw_call *call);
static void read_identity(struct gw_call *call);

static struct gw_call *of_again(struct net_timer *timer)
{
    return peg__container_of(timer, struct gw_call, again);
}

static void try_name_again(struct net_timer *timer)
{
    ask_name(of_again(timer));
}

static void try_read_again(struct net_timer *timer)
{
    read_identity(of_again(timer));
}

static void retry_admission(struct gw_call *call, void (*fn)(struct net_timer *timer))
{
    enum { PAUSE_NS = 50000000 };

    call->again.fn = fn;
    bus_arm(call->desk->bus, &call->again, bus_now_ns(call->desk->bus) + PAUSE_NS);
}

static void go_on_named(struct gw_call *call)
{
    call->again.fn = gw_recheck_on_timer;
    call->step = GW_SENT;
    call->is_admitted = true;
    gw_meter_admitted(call->meter);
    gw_call_report_admitted(call, false);
}

/* What stands of calls that are kept fills its room, but for what those need that were admitted; or
 * as much of it as one principal may have, which is less than all. */
static void refuse_name(struct gw_call *call, peg_status status)
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

    gw_call_refuse(call, WIRE_OVERLOADED, peg__str(words), 1000);
}

static void on_named(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);

    if (answer->status == PEG_EIO) {
        retry_admission(call, try_name_again);
    } else if (answer->status) {
        refuse_name(call, answer->status);
    } else if (!answer->written) {
        gw_follow(call, answer->current);
    } else {
        go_on_named(call);
        if (call->ending)
            gw_settle_unstarted(call);
        else
            gw_send(call);
    }
}

/* A call that may not begin here, or not now. */
static void refuse_new(struct gw_call *call)
{
    if (call->desk->is_draining)
        gw_call_refuse(call, WIRE_SERVICE_UNAVAILABLE, peg__str(SHUTTING_DOWN), 1000);
    else if (call->may_run_elsewhere)
        gw_call_refuse(call, WIRE_OUTCOME_UNKNOWN,
                       peg__str("this gateway does not know the call: it was asked for before the "
                                "gateway was restarted and lost what it knew of calls; it may have "
                                "been started, and have had its effect: look before you repeat it "
                                "with a new identity"),
                       0);
    else if (call->why_not)
        gw_call_refuse(call, WIRE_OVERLOADED, peg__str(call->why_not), 1000);
    else
        refuse_unhealthy(call);
}

/* Nobody could say whether it runs, and now it is too late to ask. */
static void refuse_unread(struct gw_call *call)
{
    call->step = GW_FOLLOWING; /* for all that is known */
    gw_call_refuse(call, WIRE_TIMEOUT,
                   peg__str("the registry did not say in time whether this call was begun before, "
                            "and it may run: ask again with the same identity"),
                   0);
}

static void on_old_name(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_call *call = peg__container_of(wait, struct gw_call, wait);

    if (!answer->status && answer->current)
        gw_follow(call, answer->current);
    else if (!answer->status)
        refuse_new(call);
    else if (call->ending)
        refuse_unread(call);
    else
        retry_admission(call, try_read_again);
}

/* Somebody may have asked for it before. */
static void read_identity(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_old_name;
    bus_read(call->desk->bus, &key, &call->wait);
}

static void ask_name(struct gw_call *call)
{
    const struct bus_key key = gw_call_key(call, BUS_IDENTITY, 0);

    call->wait.fn = on_named;
    bus_put_if_absent(call->desk->bus, &key, call->named, gw_call_keep_until(call), &call->wait);
}

/* The payload is valid. */
void gw_admit_checked(struct gw_call *call)
{
    struct gw_calls *desk = call->desk;
    const bool is_healthy =
        gw_presence_health(desk->presence, call->toolset->name).state == GW_HEALTHY;

    call->step = GW_NAMING;
    if (!gw_call_is_keyed(call)) {
        if (!is_healthy) {
            refuse_unhealthy(call);
            return;
        }
        go_on_named(call);
        gw_send(call);
        return;
    }
    if (is_healthy && !desk->is_draining && !call->may_run_elsewhere)
        ask_name(call);
    else
        read_identity(call);
}

void gw_admit_again(struct gw_call *call)
{
    if (call->why_not) {
        call->step = GW_NAMING; /* there is nothing to join */
        refuse_new(call);
    } else if (prepare_name_again(call)) {
        gw_call_refuse(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
    } else {
        gw_admit_checked(call);
    }
}

/* ---- the payload ------------------------------------------------------------------------------
 */

static enum wire_error payload_error(peg_status status)
{
    if (status == PEG_ENOMEM)
        return WIRE_OVERLOADED;
    return status == PEG_ELIMIT ? WIRE_UNDECIDED : WIRE_VALIDATION;
}

static void on_checked(void *user, peg_status status, peg_str words)
{
    struct gw_call *call = (struct gw_call *)user;

    call->check = NULL;
    if (status)
        gw_call_refuse(call, payload_error(status), words, 0);
    else
        gw_admit_checked(call);
}

static void check_on_worker(struct gw_call *call, peg_schema *schema)
{
    call->step = GW_CHECKING;
    call->check =
        gw_check_start(call->desk, schema, call->request, call->payload, on_checked, call);
    if (!call->check)
        gw_call_refuse(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory"), 1000);
}

static void refuse_payload(struct gw_calls *desk, peg_status status, struct gw_caller *caller)
{
    if (status == PEG_ENOMEM)
        refuse_memory(caller);
    else
        reject_ask(caller, payload_error(status), peg__buf_view(&desk->text), 0);
}

/* With an id and a deadline. */
static struct gw_call *new_call(struct gw_calls *desk, const struct gw_ask *ask,
                                struct gw_toolset *toolset, const struct gw_tool *tool)
{
    struct bus_id id;
    struct gw_call *call = NULL;

    if (!make_call_id(desk, ask, &id))
        call = gw_call_new(desk, &id, gw_calls_quota_key(desk, ask->principal));
    if (!call)
        return NULL;
    call->toolset = gw_toolset_ref(toolset);
    call->tool = tool;
    call->may_run_elsewhere = ask->may_have_run && !tool->is_idempotent;
    call->meter = gw_metrics_meter(desk->metrics, desk->number, toolset->name);
    set_deadline(call, ask);
    return call;
}

static struct gw_call *make_admitted_call(struct gw_calls *desk, const struct gw_ask *ask,
                                          struct gw_toolset *toolset, const struct gw_tool *tool)
{
    struct gw_call *call = new_call(desk, ask, toolset, tool);

    if (!call)
        return NULL;
    gw_quota_take_bytes(call, large_bytes_of(ask));
    if (pack_request(call, ask) || (gw_call_is_keyed(call) && prepare_name(call, ask))) {
        gw_call_drop(call);
        return NULL;
    }
    return call;
}

static void admit_known(struct gw_calls *desk, const struct gw_ask *ask, struct gw_toolset *toolset,
                        const struct gw_tool *tool, struct gw_caller *caller)
{
    const peg_str payload = ask->payload.len ? ask->payload : (peg_str)PEG_LIT("{}");
    bool takes_long = payload.len > PEG_LIMIT_GATEWAY_INLINE_BYTES && desk->loop;
    peg_schema *schema = gw_tool_input_schema(tool);
    peg_status status = schema ? PEG_OK : PEG_ENOMEM;
    struct gw_call *call = NULL;

    if (!status && !takes_long)
        status = gw_check_now(desk, schema, payload, "payload");
    if (status == PEG_ELIMIT && desk->loop) {
        takes_long = true;
        status = PEG_OK;
    }
    if (!status)
        call = make_admitted_call(desk, ask, toolset, tool);
    if (!call) {
        gw_meter_refused(gw_metrics_meter(desk->metrics, desk->number, toolset->name));
        refuse_payload(desk, status ? status : PEG_ENOMEM, caller);
    } else {
        gw_call_add_caller(call, caller);
        if (takes_long)
            check_on_worker(call, schema);
        else
            gw_admit_checked(call);
    }
    peg_schema_unref(schema);
}

/* There is no room for a call to begin. One that stands is found by its identity, and waited for as
 * AwaitTool does: nothing is kept of the request, so it needs no room and is not read. */
static void admit_standing(struct gw_calls *desk, const struct gw_ask *ask,
                           struct gw_toolset *toolset, const struct gw_tool *tool,
                           const char *why_not, struct gw_caller *caller)
{
    struct gw_call *call = new_call(desk, ask, toolset, tool);

    if (!call || !gw_ask_digest(ask, call->digest)) {
        if (call)
            gw_call_drop(call);
        refuse_memory(caller);
        return;
    }
    call->tool = NULL;
    call->has_digest = true;
    call->why_not = why_not;
    call->step = GW_NAMING;
    gw_call_add_caller(call, caller);
    read_identity(call);
}

void gw_calls_start(struct gw_calls *desk, const struct gw_ask *ask, struct gw_caller *caller)
{
    const uint16_t account = gw_calls_quota_key(desk, ask->principal);
    const char *why_not = gw_quota_reject_call(desk, account, large_bytes_of(ask));
    struct gw_toolset *toolset = NULL;
    const struct gw_tool *tool = NULL;

    caller->call = NULL;
    if (desk->snapshot)
        toolset = gw_snapshot_find(desk->snapshot, ask->toolset);
    if (toolset)
        tool = gw_toolset_tool(toolset, ask->tool);
    if (!tool)
        reject_unknown_tool(desk, ask, toolset != NULL, caller);
    else if (ask->payload.len > desk->options.max_payload)
        refuse_too_large(desk, caller);
    else if (desk->is_draining && !has_identity(ask))
        reject_ask(caller, WIRE_SERVICE_UNAVAILABLE, peg__str(SHUTTING_DOWN), 1000);
    else if (why_not && has_identity(ask) && gw_quota_has_wait(desk, account))
        admit_standing(desk, ask, toolset, tool, why_not, caller);
    else if (why_not)
        reject_ask(caller, WIRE_OVERLOADED, peg__str(why_not), 1000);
    else
        admit_known(desk, ask, toolset, tool, caller);
}
