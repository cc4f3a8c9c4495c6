/* SPDX-License-Identifier: Apache-2.0 */

/* How a node goes: new calls are refused, those that run are waited for, then the streams of
 * providers and watchers are ended, and last the connections. */

#include <time.h>

#include "base/clock.h"
#include "gateway/node_internal.h"
#include "gateway/on_loop.h"
#include "gateway/services.h"
#include "gateway/watch.h"

/* Connections get so long to say goodbye when nothing runs any more. */
enum { LOOK_MS = 10, GOODBYE_MS = 2000 };

struct going {
    struct gw_seat *seat;
    int64_t drain_ms;
    size_t n_calls;
};

static void begin(void *user)
{
    struct going *going = (struct going *)user;
    struct gw_desk *desk = going->seat->node->desks[going->seat->number];

    desk->is_draining = true;
    gw_serve_attach_drain(desk, going->drain_ms);
}

static void count(void *user)
{
    struct going *going = (struct going *)user;

    going->n_calls = gw_desk_n_calls(going->seat->node->desks[going->seat->number]);
}

static void close_streams(void *user)
{
    struct going *going = (struct going *)user;
    struct gw_node *node = going->seat->node;

    gw_serve_attach_close(node->desks[going->seat->number]);
    gw_watches_close(node->watches[going->seat->number]);
}

static size_t on_all(struct gw_node *node, struct gw_seat *seats, int64_t drain_ms,
                     void (*fn)(void *user))
{
    size_t n_calls = 0;

    for (unsigned i = 0; i < node->n_desks; i++) {
        struct going going = {.seat = &seats[i], .drain_ms = drain_ms};

        gw_on_loop(net_loops_at(node->loops, i), fn, &going);
        n_calls += going.n_calls;
    }
    return n_calls;
}

static void pause_a_little(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    nanosleep(&pause, NULL);
}

bool gw_node_drain(struct gw_node *node, struct gw_seat *seats, int64_t drain_ms,
                   bool (*is_hurried)(void *user), void *user)
{
    const int64_t until_ns = peg_clock_mono_ns(peg_clock_system()) + drain_ms * 1000000;
    bool is_idle;

    atomic_store(&node->is_draining, true);
    on_all(node, seats, drain_ms, begin);
    is_idle = on_all(node, seats, 0, count) == 0;
    while (!is_idle && peg_clock_mono_ns(peg_clock_system()) < until_ns && !is_hurried(user)) {
        pause_a_little();
        is_idle = on_all(node, seats, 0, count) == 0;
    }
    on_all(node, seats, 0, close_streams);
    return grpc_server_drain(node->server, GOODBYE_MS) && is_idle;
}
