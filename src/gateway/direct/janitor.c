/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/direct/janitor.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/resp.h"
#include "bus/redis/streams.h"
#include "gateway/direct/direct.h"
#include "pulse/pulse.h"

enum {
    SCAN_COUNT = 250, /* keys that Redis looks at in one step: some 50 us of its time */
    STEPS = 16,       /* in one round */
    STALE_MS = 40000, /* two graces of the reference */
    CURSOR = 24,
};

/* One behind the other, then from the beginning. */
enum task { RESULT_STREAMS, RESULT_SINKS, AGENTS, GATEWAYS, N_TASKS };

struct direct_janitor {
    struct bus_stream_wait wait; /* first */
    struct bus *bus;
    struct gw_keeper_counts *counts;
    enum task task;
    unsigned n_steps; /* that are left in this round */
    size_t n_alive;   /* consumers that the pass over a hash has met */
    char cursor[CURSOR];
};

static void make_step(struct direct_janitor *janitor);

static peg_str keepalive_key(enum task task, char text[PULSE_NAME])
{
    return pulse_keepalive_key(peg__str(task == AGENTS ? PULSE_AGENTS : PULSE_GATEWAYS), text);
}

static bool is_ours_to_expire(enum task task, peg_str key)
{
    peg_str id;

    return task == RESULT_STREAMS ? pulse_result_of_key(key, &id)
                                  : pulse_result_of_sinks_key(key, &id);
}

static void expire_key(struct direct_janitor *janitor, peg_str key)
{
    bus_key_expire(janitor->bus, key, PEG_LIMIT_DIRECT_RESULT_S);
    atomic_fetch_add_explicit(&janitor->counts->n_expiries, 1, memory_order_relaxed);
}

static void expire_keys(struct direct_janitor *janitor, const struct bus_stream_reply *reply)
{
    for (size_t i = 0; i < reply->n_texts; i++) {
        if (is_ours_to_expire(janitor->task, reply->texts[i]))
            expire_key(janitor, reply->texts[i]);
    }
}

/* Unix time in nanoseconds. "=rev" and "=kind" are the map's own. */
static bool is_stale(struct direct_janitor *janitor, peg_str field, peg_str value)
{
    uint64_t ns;

    return field.len && field.ptr[0] != '=' && resp_parse_number(value, &ns) &&
           (int64_t)(ns / PEG_NS_PER_MS) < bus_now_ms(janitor->bus) - STALE_MS;
}

static void remove_fields(struct direct_janitor *janitor, const struct bus_stream_reply *reply)
{
    char text[PULSE_NAME];
    const peg_str key = keepalive_key(janitor->task, text);

    for (size_t i = 0; i + 1 < reply->n_texts; i += 2) {
        if (is_stale(janitor, reply->texts[i], reply->texts[i + 1])) {
            bus_hash_remove(janitor->bus, key, reply->texts[i]);
            atomic_fetch_add_explicit(&janitor->counts->n_removed_fields, 1, memory_order_relaxed);
        } else if (reply->texts[i].len && reply->texts[i].ptr[0] != '=') {
            janitor->n_alive++;
        }
    }
}

/* Without consumers a map keeps its revision for ever. Those that write into it again make it
 * anew. */
static void expire_hash(struct direct_janitor *janitor)
{
    char text[PULSE_NAME];

    expire_key(janitor, keepalive_key(janitor->task, text));
}

static void on_scanned(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_janitor *janitor = (struct direct_janitor *)wait;

    if (reply->status)
        return; /* the next round does it again */
    if (janitor->task <= RESULT_SINKS)
        expire_keys(janitor, reply);
    else
        remove_fields(janitor, reply);
    snprintf(janitor->cursor, sizeof(janitor->cursor), PEG_FMT, PEG_ARG(reply->text));
    if (peg__str_is(reply->text, "0")) {
        if (janitor->task > RESULT_SINKS && !janitor->n_alive)
            expire_hash(janitor);
        janitor->n_alive = 0;
        janitor->task = (enum task)((janitor->task + 1) % N_TASKS);
        if (janitor->task == RESULT_STREAMS)
            return; /* all was seen: enough for this round */
    }
    if (--janitor->n_steps > 0)
        make_step(janitor);
}

static void make_step(struct direct_janitor *janitor)
{
    const peg_str cursor = peg__str(janitor->cursor);
    char text[PULSE_NAME];

    janitor->wait.fn = on_scanned;
    if (janitor->task == RESULT_STREAMS)
        bus_key_scan(janitor->bus, cursor, "pulse:stream:result:*", SCAN_COUNT, &janitor->wait);
    else if (janitor->task == RESULT_SINKS)
        bus_key_scan(janitor->bus, cursor, "map:stream:result:*:sinks:content", SCAN_COUNT,
                     &janitor->wait);
    else
        bus_hash_scan(janitor->bus, keepalive_key(janitor->task, text), cursor, SCAN_COUNT,
                      &janitor->wait);
}

void direct_janitor_round(struct direct_janitor *janitor)
{
    if (janitor->wait.wait.pending)
        return;
    janitor->n_steps = STEPS;
    make_step(janitor);
}

struct direct_janitor *direct_janitor_new(struct bus *bus, struct gw_keeper_counts *counts)
{
    struct direct_janitor *janitor = (struct direct_janitor *)peg__alloc_zero(1, sizeof(*janitor));

    if (janitor) {
        janitor->bus = bus;
        janitor->counts = counts;
        snprintf(janitor->cursor, sizeof(janitor->cursor), "0");
    }
    return janitor;
}

struct direct_janitor *direct_janitor_free(struct direct_janitor *janitor)
{
    if (!janitor)
        return NULL;
    bus_forget_wait(janitor->bus, &janitor->wait.wait);
    peg__free(janitor);
    return NULL;
}
