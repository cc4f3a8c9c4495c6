/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_PLANTS_H
#define PEG_TESTS_GATEWAY_SIM_PLANTS_H

/* What loops would do if they used their bus wrongly: it is put between the two, so that it need
 * not be in either. */

#include "base/mem.h"
#include "calls/caller/call.h"
#include "history.h"

enum { X_LOST = 64 };

/* A loop was reported as lost to another one. */
struct x_lost {
    struct bus_address to;
    struct bus_address lost;
};

static struct {
    struct bus_ops ops;           /* those of the simulated bus, with what is planted */
    const struct bus_ops *wanted; /* without */
    uint32_t n_written;
    struct x_lost lost[X_LOST];
    unsigned n_lost;
} x;

static void x_begin(void)
{
    x.n_lost = 0;
}

static void x_answer(struct bus *bus, struct bus_wait *wait, struct bus_answer *answer)
{
    answer->epoch = bus_epoch(bus);
    answer->asked_ns = bus_now_ns(bus);
    wait->fn(wait, answer);
}

/* ---- registers ------------------------------------------------------------------------------- */

static bool x_is_revocation(const struct bus_key *key, const struct peg__blob *value)
{
    struct bus_address address;

    return key->what == BUS_CLAIM &&
           calls_claim_token_is_coordinator(calls_claim_token_owner(value, &address));
}

/* Only coordinators and followers revoke. */
static bool x_takes_over(const struct bus_key *key, const struct peg__blob *value,
                         struct bus_wait *wait)
{
    return h.plant == H_TAKES_UNCLAIMED && x_is_revocation(key, value) &&
           peg__container_of(wait, struct calls_call, wait)->machine.state == CALLS_TAKING;
}

static bool x_has_name_of(const struct peg__blob *current, const struct peg__blob *value)
{
    struct bus_address address;

    return current && peg__str_eq(calls_claim_token_owner(current, &address),
                                  calls_claim_token_owner(value, &address));
}

/* A loop that writes to a register that no other loop knows of always writes it first. */
static void x_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                            int64_t keep_until_ms, struct bus_wait *wait)
{
    struct peg__blob *current = key->what == BUS_CLAIM ? bus_sim_recheck(h.sim, key) : NULL;
    struct bus_key own = *key;

    if (x_takes_over(key, value, wait) ||
        (h.plant == H_COMPARES_NAMES && x_has_name_of(current, value))) {
        x_answer(bus, wait, &(struct bus_answer){.written = true, .current = value});
        return;
    }
    if (h.plant == H_WRITES_ITS_OWN && key->what == BUS_RESULT)
        own.n = ++x.n_written;
    if (h.plant == H_REVOKES_STARTED && x_is_revocation(key, value))
        own.n += PEG_LIMIT_GATEWAY_ATTEMPTS + 2;
    if (h.plant == H_CLAIMS_ANYWAY && key->what == BUS_CLAIM && !x_is_revocation(key, value))
        own.n = PEG_LIMIT_GATEWAY_ATTEMPTS + 2 + ++x.n_written;
    x.wanted->put_if_absent(bus, &own, value, keep_until_ms, wait);
}

static void x_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    if (h.plant != H_KEEPS_REGISTERS)
        x.wanted->forget(bus, key, n_attempts);
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void x_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                    struct bus_wait *wait)
{
    if (h.plant == H_RENEWS_OTHERS)
        mode = BUS_LEASE_TAKE;
    x.wanted->lease(bus, name, lease_ms, mode, wait);
}

static bool x_believes_lost(const struct bus *bus, peg_str name)
{
    char text[BUS_ADDRESS_TEXT + 65];
    struct bus_address holder;

    snprintf(text, sizeof(text), "%.*s", PEG_ARG(name));
    holder = bus_sim_holder(h.sim, text);
    for (unsigned i = 0; i < x.n_lost; i++)
        if (bus_address_equal(x.lost[i].to, bus->self) && bus_address_equal(x.lost[i].lost, holder))
            return true;
    return false;
}

static void x_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    static const struct bus_address none;

    if (n == 1 && x_believes_lost(bus, names[0]))
        x_answer(bus, wait, &(struct bus_answer){.addresses = &none, .n_addresses = 1});
    else
        x.wanted->leases(bus, names, n, wait);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void x_on_node_lost(void *user, struct bus_address lost)
{
    const struct calls_loop *calls = (const struct calls_loop *)user;

    if (h.plant == H_BELIEVES_LOST && x.n_lost < X_LOST)
        x.lost[x.n_lost++] = (struct x_lost){.to = calls->bus->self, .lost = lost};
    calls_on_node_lost(user, lost);
}

/* A Nak that comes under another epoch than that of the send, as if its claim were still there. */
static void x_on_message(void *user, const struct bus_message *message)
{
    const struct calls_loop *calls = (const struct calls_loop *)user;
    const struct calls_call *call = calls_find(calls, &message->id);
    struct bus_message trusted = *message;

    if (h.plant == H_TRUSTS_ANY_NAK && call && message->kind == BUS_NAK &&
        message->reason != BUS_UNKNOWN &&
        (message->reason == BUS_EPOCH || bus_epoch(calls->bus) != call->machine.sent_epoch)) {
        trusted.was_claimed = true;
        trusted.epoch = call->machine.sent_epoch;
    }
    calls_on_message(user, &trusted);
}

static const struct bus_events x_events = {
    .on_message = x_on_message,
    .on_reset = calls_on_reset,
    .on_node_lost = x_on_node_lost,
};

static void x_plant(struct bus *bus)
{
    if (h.plant < H_WRITES_ITS_OWN)
        return;
    x.wanted = bus->ops;
    x.ops = *bus->ops;
    x.ops.put_if_absent = x_put_if_absent;
    x.ops.forget = x_forget;
    x.ops.lease = x_lease;
    x.ops.leases = x_leases;
    bus->ops = &x.ops;
}

#endif
