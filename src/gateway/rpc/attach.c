/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attach: the stream between a provider and the calls of its loop.
 *
 * Acks of results are sent in batches. An Ack of its own for each would cost a write and wake the
 * provider a second time for every call, while the caller's answer waits for the same core: a third
 * of the cost of a call. A provider that disconnects before its Ack reports the call again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/provider/provider_side.h"
#include "gateway/access/access.h"
#include "gateway/rpc/attached.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"

enum {
    ACK_DELAY_NS = 5000000,
    /* Welcome waits for the other loops: looks after so long, and no longer than that. */
    WELCOME_LOOK_NS = 1000000,
    WELCOME_MOST_NS = 1000000000,
};

_Static_assert(BUS_ID_TEXT + 2 + 1 + 5 < 128, "the length of an Ack has one byte");

/* Welcome goes before any other frame. */
static void send_welcome(struct gw_attached *attached)
{
    char registered_at[WIRE_TIME_TEXT];
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__Welcome welcome = PEGBOARD__V1__WELCOME__INIT;

    if (attached->was_welcomed)
        return;
    attached->was_welcomed = true;
    wire_time_print(attached->registered_at_ms, registered_at);
    welcome.registered_at = registered_at;
    welcome.ping_interval_ms = attached->node->ping_interval_ms;
    welcome.lease_ms = attached->calls->options.lease_ms;
    welcome.revision = attached->revision;
    welcome.takes_input = true;
    welcome.takes_content = true;
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME;
    frame.welcome = &welcome;
    (void)grpc_call_send_message(attached->call, &frame.base, NULL);
}

/* A frame with an Ack in it; a lost one is listed when the provider comes back. */
static void send_ack(struct gw_attached *attached, const struct gw_unsaid_ack *unsaid)
{
    char frame[2 + BUS_ID_TEXT + 4 * WIRE_MAX_VARINT];
    char id[BUS_ID_TEXT];
    char *at = frame + 2;

    bus_id_print(&unsaid->id, id);
    at = wire_put_bytes(at, PEGBOARD_V1_ACK_CALL_ID_FIELD, peg__str(id));
    at = wire_put_number(at, PEGBOARD_V1_ACK_ATTEMPT_FIELD, unsaid->attempt);
    wire_put_head(frame, PEGBOARD_V1_ATTACH_RESPONSE_ACK_FIELD, (size_t)(at - frame - 2));
    send_welcome(attached);
    (void)grpc_call_send(attached->call, peg__strn(frame, (size_t)(at - frame)), NULL);
}

static void send_acks(struct gw_attached *attached)
{
    for (size_t i = 0; i < attached->n_acks; i++)
        send_ack(attached, &attached->acks[i]);
    attached->n_acks = 0;
}

/* The timer is left armed when its acks went out before it: it ends by itself, and under load it
 * would be set and taken back all the time. */
static void queue_ack(void *user, const struct bus_id *id, uint32_t attempt)
{
    struct gw_attached *attached = (struct gw_attached *)user;
    struct bus *bus = attached->calls->bus;

    attached->acks[attached->n_acks++] = (struct gw_unsaid_ack){.id = *id, .attempt = attempt};
    if (attached->n_acks == GW_UNSAID_ACKS)
        send_acks(attached);
    else if (!attached->acks_due.is_armed)
        bus_arm(bus, &attached->acks_due, bus_now_ns(bus) + ACK_DELAY_NS);
}

static void send_due_acks(struct net_timer *timer)
{
    send_acks(peg__container_of(timer, struct gw_attached, acks_due));
}

static struct gw_attached *attached_of(struct grpc_call *call)
{
    return (struct gw_attached *)grpc_call_state(call);
}

/* ---- ending ---- */

/* Providers that attach and leave, not calls: a line for each is affordable. */
static void log_attachment(struct gw_attached *attached, enum gw_event event)
{
    gw_event_log_write(attached->node->log, PEG_LOG_INFO, event,
                       GW_FIELDS(gw_field_str("toolset", attached->toolset_name),
                                 gw_field_str("incarnation", attached->incarnation),
                                 gw_field_text("peer", grpc_call_peer(attached->call))));
}

static void detach_provider(struct gw_attached *attached)
{
    struct calls_provider *provider = attached->provider;

    if (provider)
        log_attachment(attached, GW_EVENT_DETACH);

    attached->provider = NULL;
    attached->step = GW_DETACHED;
    bus_disarm(attached->calls->bus, &attached->welcome);
    bus_disarm(attached->calls->bus, &attached->ping);
    bus_disarm(attached->calls->bus, &attached->acks_due);
    attached->n_acks = 0;
    gw_change_forget(&attached->change);
    gw_attached_free_assemblies(attached);
    if (provider)
        calls_provider_leave(provider);
}

/* A provider that is refused because the gateway is full or stops tries again by itself. */
static void log_refusal(struct gw_attached *attached, enum wire_error error)
{
    if (error == WIRE_SERVICE_UNAVAILABLE || error == WIRE_OVERLOADED)
        return;
    gw_report_refused(attached->node->log, attached->call, error, attached->toolset_name);
}

void gw_attached_fail(struct gw_attached *attached, enum wire_error error, peg_str message)
{
    if (attached->step == GW_HELLO_AWAITED || attached->step == GW_REGISTERING)
        log_refusal(attached, error);
    send_acks(attached);
    detach_provider(attached);
    gw_fail(attached->call, error, message);
}

/* ---- frames to the provider ---- */

static void send_frame(struct gw_attached *attached, const Pegboard__V1__AttachResponse *frame)
{
    /* One that does not fit is a hint that is lost: pings come again, and what is not acknowledged
     * is listed when the provider comes back. */
    send_welcome(attached);
    (void)grpc_call_send_message(attached->call, &frame->base, NULL);
}

/* A provider waits for it before it offers anything else. */
void gw_attached_send_offered(struct gw_attached *attached, uint64_t revision,
                              enum wire_error error, const char *message)
{
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__Offered offered = PEGBOARD__V1__OFFERED__INIT;

    offered.revision = revision;
    if (error)
        offered.error = (char *)peg__unconst(wire_error_name(error));
    offered.message = (char *)peg__unconst(message);
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED;
    frame.offered = &offered;
    if (grpc_call_send_message(attached->call, &frame.base, NULL))
        gw_attached_fail(attached, WIRE_OVERLOADED,
                         peg__str("an Offer could not be answered: attach again"));
}

/* The coordinator has packed the call; the fields of this side go behind it. */
static void hand_call(void *user, const struct calls_handed *handed)
{
    struct gw_attached *attached = (struct gw_attached *)user;
    struct peg__buf *frame = &attached->calls->frame;
    char tail[BUS_ADDRESS_TEXT + 4 * WIRE_MAX_VARINT];
    char head[1 + WIRE_MAX_VARINT];
    char route[BUS_ADDRESS_TEXT];
    char *at;
    size_t tail_len;

    bus_address_print(handed->route, route);
    at = wire_put_number(tail, PEGBOARD_V1_CALL_ATTEMPT_FIELD, handed->attempt);
    at = wire_put_number(at, PEGBOARD_V1_CALL_TIMEOUT_MS_FIELD, (uint64_t)handed->timeout_ms);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_ROUTE_FIELD, peg__str(route));
    tail_len = (size_t)(at - tail);
    at = wire_put_head(head, PEGBOARD_V1_ATTACH_RESPONSE_CALL_FIELD, handed->call.len + tail_len);
    peg__buf_clear(frame);
    peg__buf_add(frame, head, (size_t)(at - head));
    peg__buf_str(frame, handed->call);
    peg__buf_add(frame, tail, tail_len);
    if (frame->status || grpc_call_send(attached->call, peg__buf_view(frame), NULL))
        calls_provider_nak(attached->provider, handed->id, handed->attempt, BUS_OVERLOADED);
}

static const char *cancel_reason(enum bus_reason reason)
{
    switch (reason) {
    case BUS_DEADLINE:
        return "deadline";
    case BUS_SETTLED:
        return "settled";
    default:
        return "canceled";
    }
}

static void cancel_call(void *user, const struct bus_id *id, uint32_t attempt,
                        enum bus_reason reason)
{
    char text[BUS_ID_TEXT];
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__Cancel canceled = PEGBOARD__V1__CANCEL__INIT;

    bus_id_print(id, text);
    canceled.call_id = text;
    canceled.attempt = attempt;
    canceled.reason = (char *)peg__unconst(cancel_reason(reason));
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CANCEL;
    frame.cancel = &canceled;
    send_frame((struct gw_attached *)user, &frame);
}

static bool is_ready(void *user)
{
    const struct gw_attached *attached = (const struct gw_attached *)user;

    return attached->step == GW_ATTACHED_NOW && grpc_call_is_writable(attached->call);
}

static void on_replaced(void *user)
{
    struct gw_attached *attached = (struct gw_attached *)user;

    attached->provider = NULL;
    gw_attached_fail(attached, WIRE_CONFLICT,
                     peg__str("another stream with this incarnation took the place of this one"));
}

static void on_evicted(void *user, enum calls_error why)
{
    const char *words = why == CALLS_NOT_FOUND
                            ? "the toolset was unregistered: attach with a registration if it is "
                              "to be there again"
                        : why == CALLS_UNAUTHENTICATED
                            ? GW_TOKEN_GONE
                            : "the toolset was unregistered, and belongs to another principal now: "
                              "use another name";

    gw_attached_fail((struct gw_attached *)user, gw_error_of_call(why), peg__str(words));
}

static void send_ping(struct net_timer *timer);

static void ping_now(void *user)
{
    struct gw_attached *attached = (struct gw_attached *)user;

    attached->first_ping = attached->n_pings + 1;
    send_ping(&attached->ping);
}

static const struct calls_provider_events EVENTS = {
    .hand = hand_call,
    .cancel = cancel_call,
    .answer = gw_attached_answer,
    .ack = queue_ack,
    .dropped = gw_attached_drop_assembly,
    .is_ready = is_ready,
    .replaced = on_replaced,
    .evicted = on_evicted,
    .ping = ping_now,
};

static void send_ping(struct net_timer *timer)
{
    struct gw_attached *attached = peg__container_of(timer, struct gw_attached, ping);
    struct bus *bus = attached->calls->bus;
    char id[100];
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__Ping ping = PEGBOARD__V1__PING__INIT;

    if (attached->provider->eviction)
        return; /* it may finish its running calls; its health does not count */
    snprintf(id, sizeof(id), "%s/%llu", attached->provider->incarnation,
             (unsigned long long)++attached->n_pings);
    ping.ping_id = id;
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING;
    frame.ping = &ping;
    send_frame(attached, &frame);
    bus_arm(bus, &attached->ping, bus_now_ns(bus) + attached->node->ping_interval_ms * 1000000);
}

/* It refuses calls from now on, so it gets none. */
static void send_drain(struct gw_attached *attached)
{
    const struct calls_loop *calls = attached->calls;
    const int64_t left_ms = (calls->drain_ends_ns - bus_now_ns(calls->bus)) / 1000000;
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__GatewayDrain drain = PEGBOARD__V1__GATEWAY_DRAIN__INIT;

    attached->was_told_to_leave = true;
    calls_provider_drain(attached->provider);
    drain.drain_ms = left_ms > 0 ? left_ms : 0;
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAIN;
    frame.drain = &drain;
    send_frame(attached, &frame);
}

/* Its frames are read from now on, and it is handed calls. */
static void begin_serving(struct gw_attached *attached)
{
    send_welcome(attached);
    attached->step = GW_ATTACHED_NOW;
    send_ping(&attached->ping);
    if (attached->provider->is_draining)
        send_drain(attached);
    calls_provider_ready(attached->provider);
    grpc_call_resume(attached->call); /* last: what has waited may end the stream */
}

/* A caller that hears of the provider's Welcome may call at another loop: that should know of the
 * provider by then. */
static void look_who_knows(struct net_timer *timer)
{
    struct gw_attached *attached = peg__container_of(timer, struct gw_attached, welcome);
    struct bus *bus = attached->calls->bus;

    if (bus_now_ns(bus) >= attached->welcome_by_ns ||
        gw_presence_is_known(gw_router_of(attached->calls)->presence, attached->toolset_name,
                             attached->provider->incarnation)) {
        begin_serving(attached);
        return;
    }
    grpc_call_pause(attached->call);
    bus_arm(bus, timer, bus_now_ns(bus) + WELCOME_LOOK_NS);
}

/* Welcome goes before any call, and only if it is true: until then nothing is handed over. */
void gw_attached_begin(struct gw_attached *attached, struct gw_toolset *toolset)
{
    peg_error error;

    attached->hello.toolset = &toolset->of_calls;
    attached->registered_at_ms = toolset->registered_at_ms;
    attached->revision = toolset->revision;
    if (calls_provider_attach(attached->calls, &attached->hello, &EVENTS, attached,
                              &attached->provider, &error)) {
        attached->provider = NULL;
        gw_attached_fail(attached, gw_wire_error(&error), peg__str(error.message));
        return;
    }
    attached->hello.toolset = NULL;
    attached->account = attached->provider->account;
    attached->step = GW_WELCOMING;
    log_attachment(attached, GW_EVENT_ATTACH);
    attached->welcome.fn = look_who_knows;
    attached->welcome_by_ns = bus_now_ns(attached->calls->bus) + WELCOME_MOST_NS;
    look_who_knows(&attached->welcome);
}

/* ---- frames from the provider ---- */

/* Whatever it is, the call was not started: so one of a later version is as good as any. */
static enum bus_reason nak_reason(const Pegboard__V1__Nak *nak)
{
    switch (nak->reason) {
    case PEGBOARD__V1__NAK__REASON__REASON_DRAINING:
        return BUS_DRAINING;
    case PEGBOARD__V1__NAK__REASON__REASON_OUTDATED:
        return BUS_OUTDATED;
    default:
        return BUS_OVERLOADED;
    }
}

static void on_nak(struct gw_attached *attached, const Pegboard__V1__Nak *nak)
{
    struct bus_id id;

    if (bus_id_parse(peg__str(nak->call_id), &id))
        calls_provider_nak(attached->provider, &id, nak->attempt, nak_reason(nak));
}

/* A pong whose number cannot be read is one all the same. */
static void on_pong(struct gw_attached *attached, const Pegboard__V1__ProviderPong *pong)
{
    const char *slash = strrchr(pong->ping_id, '/');
    const unsigned long long number = slash ? strtoull(slash + 1, NULL, 10) : 0;

    if (!number || number >= attached->first_ping)
        calls_provider_pong(attached->provider);
}

/* What it was sent before this it may not have seen yet; behind this it is sent nothing. */
static void on_drain(struct gw_attached *attached)
{
    Pegboard__V1__AttachResponse frame = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    Pegboard__V1__Drained drained = PEGBOARD__V1__DRAINED__INIT;

    calls_provider_drain(attached->provider);
    frame.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAINED;
    frame.drained = &drained;
    send_frame(attached, &frame);
}

static void on_frame(struct gw_attached *attached, const Pegboard__V1__AttachRequest *frame)
{
    switch (frame->frame_case) {
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT:
        gw_attached_result(attached, frame->result);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_DELTA:
        gw_attached_delta(attached, frame->delta);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_NAK:
        on_nak(attached, frame->nak);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG:
        on_pong(attached, frame->pong);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_DRAIN:
        on_drain(attached);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER:
        gw_offer(attached, frame->offer);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_INPUT:
        gw_attached_input(attached, frame->input);
        break;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO:
        gw_attached_fail(attached, WIRE_VALIDATION, peg__str("Hello comes first, and only once"));
        break;
    default: /* a frame of a later version: those who need an answer to it will see none */
        break;
    }
}

static struct gw_attached *begin_attach(struct grpc_call *call, struct gw_node *node)
{
    struct gw_attached *attached =
        (struct gw_attached *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*attached));

    if (!attached) {
        gw_fail(call, WIRE_OVERLOADED, peg__str("the gateway is out of memory: try again later"));
        return NULL;
    }
    attached->call = call;
    attached->node = node;
    attached->calls = gw_node_calls(node, grpc_call_loop(call));
    attached->ping.fn = send_ping;
    attached->acks_due.fn = send_due_acks;
    calls_table_init(&attached->assembling);
    attached->response.max = PEG_LIMIT_GATEWAY_RESULT_BYTES + PEG_LIMIT_GATEWAY_FRAME_BYTES;
    grpc_call_set_state(call, attached);
    return attached;
}

void gw_serve_attach_on_message(struct grpc_call *call, const Pegboard__V1__AttachRequest *frame,
                                void *node)
{
    struct gw_attached *attached = attached_of(call);

    if (!attached)
        attached = begin_attach(call, (struct gw_node *)node);
    if (!attached)
        return;
    if (attached->step == GW_ATTACHED_NOW)
        on_frame(attached, frame);
    else if (attached->step == GW_HELLO_AWAITED &&
             frame->frame_case == PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO)
        gw_hello(attached, frame->hello);
    else if (attached->step != GW_DETACHED)
        gw_attached_fail(attached, WIRE_VALIDATION,
                         peg__str("the first frame is Hello, and the next ones follow Welcome"));
}

/* It sends nothing more: it may come back with the calls that it still has. */
void gw_serve_attach_on_half_close(struct grpc_call *call, void *node)
{
    struct gw_attached *attached = attached_of(call);
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)node;
    if (attached && attached->step != GW_DETACHED) {
        send_acks(attached);
        detach_provider(attached);
    }
    grpc_call_finish(call, &ok);
}

void gw_serve_attach_on_writable(struct grpc_call *call, void *node)
{
    struct gw_attached *attached = attached_of(call);

    (void)node;
    if (attached && attached->step == GW_ATTACHED_NOW)
        calls_provider_ready(attached->provider);
}

void gw_serve_attach_on_end(struct grpc_call *call, void *node)
{
    struct gw_attached *attached = attached_of(call);

    (void)node;
    if (!attached)
        return;
    if (attached->step != GW_DETACHED)
        detach_provider(attached);
    peg__buf_free(&attached->response);
}

/* ---- the node goes ---- */

static bool may_leave(const struct calls_provider *provider, bool is_urgent)
{
    const struct calls_assignment *assignment = provider->queue.first;

    while (assignment && is_urgent &&
           assignment->coordinator.node != provider->calls->bus->self.node)
        assignment = assignment->next;
    if (assignment)
        return false;
    for (assignment = provider->running.first; assignment; assignment = assignment->next)
        if (assignment->machine.state == ASSIGNMENT_CLAIMING)
            return false; /* it is about to be handed over */
    return true;
}

void gw_serve_attach_drain(struct calls_loop *calls, bool is_urgent)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next) {
        struct gw_attached *attached = (struct gw_attached *)provider->user;

        /* One that was evicted must not come back, here or elsewhere. */
        if (!calls_provider_is_away(provider) && !provider->eviction &&
            provider->events == &EVENTS && !attached->was_told_to_leave &&
            may_leave(provider, is_urgent))
            send_drain(attached);
    }
}

void gw_serve_attach_close(struct calls_loop *calls)
{
    struct calls_provider *next;

    for (struct calls_provider *provider = calls->providers; provider; provider = next) {
        next = provider->next;
        if (calls_provider_is_away(provider) || provider->events != &EVENTS)
            continue;
        if (provider->eviction)
            on_evicted(provider->user, provider->eviction);
        else
            gw_attached_fail((struct gw_attached *)provider->user, WIRE_SERVICE_UNAVAILABLE,
                             peg__str("this node is shutting down: attach to another one"));
    }
}
