/* SPDX-License-Identifier: Apache-2.0 */

/* How a node goes: new calls are refused, those that were admitted are waited for, then the streams
 * of providers and watchers are ended, and last the connections. A provider is asked to leave only
 * when nothing waits for it any more: it would give back what it is handed after that. */

#include <time.h>

#include "base/clock.h"
#include "gateway/node_internal.h"
#include "gateway/rpc/on_loop.h"
#include "gateway/rpc/services.h"
#include "gateway/rpc/watch.h"

/* Connections get so long to say goodbye when nothing runs any more; only a look when somebody is
 * in a hurry, so that what was told just now goes out. */
enum { LOOK_MS = 10, GOODBYE_MS = 2000 };

struct going {
    struct gw_loop_state *seat;
    int64_t left_ms; /* of the time to drain */
    bool is_urgent;  /* half of it is over */
    size_t n_calls;
    size_t n_unsent;
};

static struct gw_calls *desk_of(const struct going *going)
{
    return going->seat->node->desks[going->seat->number];
}

static void begin(void *user)
{
    const struct going *going = (const struct going *)user;
    struct gw_calls *desk = desk_of(going);

    desk->is_draining = true;
    desk->drain_ends_ns = bus_now_ns(desk->bus) + going->left_ms * 1000000;
}

static void count(void *user)
{
    struct going *going = (struct going *)user;

    going->n_calls += gw_calls_count(desk_of(going));
    going->n_unsent += gw_calls_count_unsent(desk_of(going));
}

static void tell_providers(void *user)
{
    const struct going *going = (const struct going *)user;

    gw_serve_attach_drain(desk_of(going), going->is_urgent);
}

static void close_streams(void *user)
{
    struct going *going = (struct going *)user;
    struct gw_node *node = going->seat->node;

    desk_of(going)->is_closed = true;
    gw_serve_attach_close(desk_of(going));
    gw_watches_close(node->watches[going->seat->number]);
}

static void on_all(struct gw_node *node, struct gw_loop_state *seats, struct going *going,
                   void (*fn)(void *user))
{
    for (unsigned i = 0; i < node->n_desks; i++) {
        going->seat = &seats[i];
        gw_on_loop(net_loops_at(node->loops, i), fn, going);
    }
}

static void pause_a_little(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    nanosleep(&pause, NULL);
}

static bool say_goodbye(struct gw_node *node, bool is_hurried, bool (*ask_hurried)(void *user),
                        void *user)
{
    const int64_t until_ms = peg__mono_ns() / PEG_NS_PER_MS + GOODBYE_MS;

    while (!grpc_server_drain(node->server, LOOK_MS)) {
        if (is_hurried || peg__mono_ns() / PEG_NS_PER_MS >= until_ms)
            return false;
        is_hurried = ask_hurried(user);
    }
    return true;
}

/* What has been sent to a provider is in its queue within a look, so it is seen there when nothing
 * was on its way the last time. */
bool gw_node_drain(struct gw_node *node, struct gw_loop_state *seats, int64_t drain_ms,
                   bool (*is_hurried)(void *user), void *user)
{
    const int64_t until_ms = peg__mono_ns() / PEG_NS_PER_MS + drain_ms;
    struct going going = {.left_ms = drain_ms};
    bool was_sent = false;
    bool is_idle = false;
    bool is_in_hurry = false;

    atomic_store(&node->is_draining, true);
    on_all(node, seats, &going, begin);
    for (;;) {
        going.n_calls = 0;
        going.n_unsent = 0;
        on_all(node, seats, &going, count);
        is_idle = going.n_calls == 0;
        going.left_ms = until_ms - peg__mono_ns() / PEG_NS_PER_MS;
        going.is_urgent = going.left_ms < drain_ms / 2;
        if (is_idle || (was_sent && going.n_unsent == 0))
            on_all(node, seats, &going, tell_providers);
        was_sent = going.n_unsent == 0;
        if (is_idle || going.left_ms <= 0)
            break;
        is_in_hurry = is_hurried(user);
        if (is_in_hurry)
            break;
        pause_a_little();
    }
    on_all(node, seats, &going, close_streams);
    return say_goodbye(node, is_in_hurry, is_hurried, user) && is_idle;
}
