/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_PLANTS_H
#define PEG_TESTS_GATEWAY_SIM_PLANTS_H

/* What loops would do if they used their bus wrongly: it is put between the two, so that it need
 * not be in either. */

#include "calls/call.h"
#include "history.h"

static struct {
    struct bus_ops ops;           /* those of the simulated bus, with what is planted */
    const struct bus_ops *wanted; /* without */
    uint32_t n_written;
} x;

static bool x_is_revocation(const struct bus_key *key, const struct peg__blob *value)
{
    struct bus_address address;

    return key->what == BUS_CLAIM &&
           calls_claim_token_is_coordinator(calls_claim_token_owner(value, &address));
}

/* Whoever writes to a register that nobody else knows of always wins. */
static void x_once(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                   int64_t keep_until_ms, struct bus_wait *wait)
{
    struct bus_key own = *key;

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

static void x_plant(struct bus *bus)
{
    if (h.plant < H_WRITES_ITS_OWN)
        return;
    x.wanted = bus->ops;
    x.ops = *bus->ops;
    x.ops.put_if_absent = x_once;
    x.ops.forget = x_forget;
    bus->ops = &x.ops;
}

#endif
