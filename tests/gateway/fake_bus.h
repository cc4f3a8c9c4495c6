/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_FAKE_BUS_H
#define PEG_TESTS_GATEWAY_FAKE_BUS_H

/*
 * Two maps on a clock that the test moves: fake_run() lets time pass. Answers come at once, or when
 * the test says so; a write may be made to fail. Several buses share one hub, and every watch hears
 * of a change before the function that made it returns. The rest of a bus is not there. Include it
 * behind t.h.
 */

#include "base/clock.h"
#include "base/text/str.h"
#include "bus/bus.h"

enum { FAKE_KEYS = 64, FAKE_WAITS = 64 };

struct fake_key {
    char name[400];
    struct peg__blob *value;
    uint64_t revision;
};

struct fake_answer {
    struct bus_wait *wait;
    struct bus_answer answer;
};

struct fake_hub {
    int64_t now_ns;
    struct fake_key keys[BUS_N_MAPS][FAKE_KEYS];
    size_t n_keys[BUS_N_MAPS];
    uint64_t revision;
    struct bus_watch *watches[BUS_N_MAPS];
    struct net_timers timers;
    bool is_slow; /* answers wait for fake_answer_all() */
    struct fake_answer answers[FAKE_WAITS];
    size_t n_answers;
    peg_status fails; /* what the next writes are answered with */
    unsigned n_sets;
};

struct fake_bus {
    struct bus bus;
    struct fake_hub *hub;
};

enum { FAKE_EPOCH_MS = 1000000 };

static int64_t fake_now_ns(struct bus *bus)
{
    return ((struct fake_bus *)bus)->hub->now_ns;
}

static int64_t fake_now_ms(struct bus *bus)
{
    return FAKE_EPOCH_MS + fake_now_ns(bus) / PEG_NS_PER_MS;
}

static void fake_arm(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    net_timers_arm(&((struct fake_bus *)bus)->hub->timers, timer, due_ns);
}

static void fake_disarm(struct bus *bus, struct net_timer *timer)
{
    net_timers_disarm(&((struct fake_bus *)bus)->hub->timers, timer);
}

static struct fake_key *fake_find(struct fake_hub *hub, enum bus_map map, peg_str key)
{
    for (size_t i = 0; i < hub->n_keys[map]; i++) {
        if (peg__str_eq(peg__str(hub->keys[map][i].name), key))
            return &hub->keys[map][i];
    }
    return NULL;
}

static struct fake_key *fake_slot(struct fake_hub *hub, enum bus_map map, peg_str key)
{
    struct fake_key *slot = fake_find(hub, map, key);

    if (slot)
        return slot;
    if (hub->n_keys[map] == FAKE_KEYS)
        T_FAIL("too many keys");
    slot = &hub->keys[map][hub->n_keys[map]++];
    memcpy(slot->name, key.ptr, key.len);
    return slot;
}

/* Writes as somebody else does. */
static void fake_set(struct fake_hub *hub, enum bus_map map, const char *key,
                     struct peg__blob *value)
{
    struct fake_key *slot = fake_slot(hub, map, peg__str(key));
    struct bus_change change = {.key = peg__str(slot->name), .value = value};
    struct bus_watch *next;

    peg__blob_ref(value);
    peg__blob_unref(slot->value);
    slot->value = value;
    change.revision = slot->revision = ++hub->revision;
    for (struct bus_watch *watch = hub->watches[map]; watch; watch = next) {
        next = watch->next;
        watch->on_change(watch, &change);
    }
}

static void fake_put(struct fake_hub *hub, enum bus_map map, const char *key, const char *value)
{
    struct peg__blob *blob = value ? peg__blob_copy(peg__str(value)) : NULL;

    fake_set(hub, map, key, blob);
    peg__blob_unref(blob);
}

static void fake_reply(struct fake_hub *hub, struct bus_wait *wait, const struct bus_answer *answer)
{
    if (!wait)
        return;
    if (hub->is_slow) {
        if (hub->n_answers == FAKE_WAITS)
            T_FAIL("too many answers");
        wait->pending = hub;
        hub->answers[hub->n_answers++] = (struct fake_answer){wait, *answer};
        return;
    }
    wait->pending = NULL;
    wait->fn(wait, answer);
}

static void fake_answer_all(struct fake_hub *hub)
{
    struct fake_answer answers[FAKE_WAITS];
    const size_t n = hub->n_answers;

    memcpy(answers, hub->answers, sizeof(answers));
    hub->n_answers = 0;
    for (size_t i = 0; i < n; i++) {
        if (answers[i].wait) {
            answers[i].wait->pending = NULL;
            answers[i].wait->fn(answers[i].wait, &answers[i].answer);
        }
    }
}

static void fake_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                         uint64_t expected, struct bus_wait *wait)
{
    struct fake_hub *hub = ((struct fake_bus *)bus)->hub;
    struct fake_key *slot = fake_find(hub, map, key);
    const uint64_t revision = slot && slot->value ? slot->revision : 0;
    struct bus_answer answer = {.status = hub->fails, .revision = revision};
    char name[400] = "";

    hub->n_sets++;
    if (!hub->fails && (expected == BUS_ANY_REVISION || expected == revision)) {
        memcpy(name, key.ptr, key.len);
        fake_set(hub, map, name, value);
        answer.written = true;
        answer.revision = hub->revision;
    }
    fake_reply(hub, wait, &answer);
}

static void fake_tell_all(struct fake_hub *hub, enum bus_map map, struct bus_watch *watch)
{
    for (size_t i = 0; i < hub->n_keys[map]; i++) {
        const struct fake_key *slot = &hub->keys[map][i];
        const struct bus_change change = {.key = peg__str(slot->name),
                                          .value = slot->value,
                                          .revision = slot->revision,
                                          .is_snapshot = true};

        if (slot->value)
            watch->on_change(watch, &change);
    }
    if (watch->on_ready)
        watch->on_ready(watch);
}

static void fake_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    struct fake_hub *hub = ((struct fake_bus *)bus)->hub;

    watch->next = hub->watches[map];
    hub->watches[map] = watch;
    fake_tell_all(hub, map, watch);
}

static void fake_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    struct bus_watch **place = &((struct fake_bus *)bus)->hub->watches[map];

    while (*place && *place != watch)
        place = &(*place)->next;
    if (*place)
        *place = watch->next;
}

static void fake_forget_wait(struct bus *bus, struct bus_wait *wait)
{
    struct fake_hub *hub = ((struct fake_bus *)bus)->hub;

    for (size_t i = 0; i < hub->n_answers; i++) {
        if (hub->answers[i].wait == wait)
            hub->answers[i].wait = NULL;
    }
    wait->pending = NULL;
}

static const struct bus_ops fake_ops = {
    .now_ns = fake_now_ns,
    .now_ms = fake_now_ms,
    .arm = fake_arm,
    .disarm = fake_disarm,
    .map_set = fake_map_set,
    .map_watch = fake_map_watch,
    .map_unwatch = fake_map_unwatch,
    .forget_wait = fake_forget_wait,
};

static void fake_init(struct fake_bus *bus, struct fake_hub *hub, uint64_t node, uint32_t loop)
{
    *bus = (struct fake_bus){.bus = {.ops = &fake_ops, .self = {node, loop}}, .hub = hub};
}

/* Everything in the maps is gone, and every watch hears of a reset. */
static void fake_lose(struct fake_hub *hub)
{
    for (unsigned map = 0; map < BUS_N_MAPS; map++) {
        for (size_t i = 0; i < hub->n_keys[map]; i++)
            hub->keys[map][i].value = peg__blob_unref(hub->keys[map][i].value);
    }
    for (unsigned map = 0; map < BUS_N_MAPS; map++) {
        for (struct bus_watch *watch = hub->watches[map]; watch; watch = watch->next)
            fake_tell_all(hub, map, watch);
    }
}

static void fake_run(struct fake_hub *hub, int64_t ms)
{
    const int64_t until_ns = hub->now_ns + ms * PEG_NS_PER_MS;
    struct net_timer *timer;

    while (net_timers_next_ns(&hub->timers) <= until_ns) {
        hub->now_ns = net_timers_next_ns(&hub->timers) > hub->now_ns
                          ? net_timers_next_ns(&hub->timers)
                          : hub->now_ns;
        timer = net_timers_take_due(&hub->timers, hub->now_ns);
        if (timer)
            timer->fn(timer);
    }
    hub->now_ns = until_ns;
}

static void fake_hub_free(struct fake_hub *hub)
{
    for (unsigned map = 0; map < BUS_N_MAPS; map++) {
        for (size_t i = 0; i < hub->n_keys[map]; i++)
            peg__blob_unref(hub->keys[map][i].value);
    }
}

#endif
