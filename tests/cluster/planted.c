/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A `pegboard` with a bug, to see that chaos.py finds it: the linker puts these functions between
 * calls/ and its bus (--wrap), so that neither has a hook, and no other program has them.
 *
 *   PLANT=claim    a provider side hands calls over without winning their claim: it writes another
 *                  register than the one that coordinators revoke
 *   PLANT=fence    a node that stood still for longer than its lease acts as if it had not: it
 * takes outcomes from messages, and hands calls over on claims that it asked for before
 */

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "bus/bus.h"
#include "calls/machine/assignment.h"
#include "calls/value.h"

void __real_bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                              int64_t keep_until_ms, struct bus_wait *wait);
void __wrap_bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                              int64_t keep_until_ms, struct bus_wait *wait);
bool __real_bus_is_fenced(struct bus *bus);
bool __wrap_bus_is_fenced(struct bus *bus);
void __real_calls_assignment_step(struct calls_assignment_machine *machine,
                                  const struct calls_assignment_event *event,
                                  struct calls_assignment_actions *ret_actions);
void __wrap_calls_assignment_step(struct calls_assignment_machine *machine,
                                  const struct calls_assignment_event *event,
                                  struct calls_assignment_actions *ret_actions);

static bool is_planted(const char *bug)
{
    const char *planted = secure_getenv("PLANT");

    return planted && strcmp(planted, bug) == 0;
}

static bool is_claim(const struct bus_key *key, const struct peg__blob *value)
{
    struct bus_address address;

    return key->what == BUS_CLAIM &&
           !calls_claim_token_is_coordinator(calls_claim_token_owner(value, &address));
}

void __wrap_bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                              int64_t keep_until_ms, struct bus_wait *wait)
{
    struct bus_key other = *key;

    if (is_claim(key, value) && is_planted("claim"))
        other.n += PEG_LIMIT_GATEWAY_ATTEMPTS + 1;
    __real_bus_put_if_absent(bus, &other, value, keep_until_ms, wait);
}

bool __wrap_bus_is_fenced(struct bus *bus)
{
    return !is_planted("fence") && __real_bus_is_fenced(bus);
}

void __wrap_calls_assignment_step(struct calls_assignment_machine *machine,
                                  const struct calls_assignment_event *event,
                                  struct calls_assignment_actions *ret_actions)
{
    struct calls_assignment_event trusted = *event;

    if (is_planted("fence"))
        trusted.asked_ns = event->now_ns;
    __real_calls_assignment_step(machine, &trusted, ret_actions);
}
