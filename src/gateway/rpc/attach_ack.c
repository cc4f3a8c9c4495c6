/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Acks of results. To say each at once would cost a write and wake the provider a second time for
 * every call, while the caller's answer waits for the same core: a third of what a call costs here.
 * A provider that goes before it hears one lists the call again, and is told then.
 */

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/rpc/attached.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

enum { ACK_DELAY_NS = 5000000 };

_Static_assert(BUS_ID_TEXT + 2 + 1 + 5 < 128, "the length of an Ack has one byte");

/* A frame with an Ack in it; a lost one is listed when the provider comes back. */
static void say_ack(struct gw_attached *attached, const struct gw_unsaid_ack *unsaid)
{
    char frame[2 + BUS_ID_TEXT + 4 * WIRE_MAX_VARINT];
    char id[BUS_ID_TEXT];
    char *at = frame + 2;

    bus_id_print(&unsaid->id, id);
    at = wire_put_bytes(at, PEGBOARD_V1_ACK_CALL_ID_FIELD, peg__str(id));
    at = wire_put_number(at, PEGBOARD_V1_ACK_ATTEMPT_FIELD, unsaid->attempt);
    wire_put_head(frame, PEGBOARD_V1_ATTACH_RESPONSE_ACK_FIELD, (size_t)(at - frame - 2));
    (void)grpc_call_send(attached->call, peg__strn(frame, (size_t)(at - frame)), NULL);
}

void gw_attached_send_acks(struct gw_attached *attached)
{
    for (size_t i = 0; i < attached->n_acks; i++)
        say_ack(attached, &attached->acks[i]);
    attached->n_acks = 0;
}

/* The timer is left armed when its acks went out before it: it ends by itself, and under load it
 * would be set and taken back all the time. */
void gw_attached_ack(void *user, const struct bus_id *id, uint32_t attempt)
{
    struct gw_attached *attached = (struct gw_attached *)user;
    struct bus *bus = attached->desk->bus;

    attached->acks[attached->n_acks++] = (struct gw_unsaid_ack){.id = *id, .attempt = attempt};
    if (attached->n_acks == GW_UNSAID_ACKS)
        gw_attached_send_acks(attached);
    else if (!attached->acks_due.is_armed)
        bus_arm(bus, &attached->acks_due, bus_now_ns(bus) + ACK_DELAY_NS);
}

void gw_attached_acks_due(struct net_timer *timer)
{
    gw_attached_send_acks(peg__container_of(timer, struct gw_attached, acks_due));
}
