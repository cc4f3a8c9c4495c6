/* SPDX-License-Identifier: Apache-2.0 */

/* Stops a node: refuses new calls, waits for those that were admitted, then ends the streams of
 * providers and watchers, and last the connections. A provider is asked to leave only when no call
 * waits for it: it would give back every later one. */

#include <time.h>

#include "base/clock.h"
#include "gateway/direct/direct.h"
#include "gateway/mcp/mcp.h"
#include "gateway/members/leader.h"
#include "gateway/node.h"
#include "gateway/rpc/rpc.h"

/* Connections get GOODBYE_MS to end when nothing runs any more; only LOOK_MS when the node is in a
 * hurry, so that what was just written goes out. */
enum { LOOK_MS = 10, GOODBYE_MS = 2000 };

struct going {
    struct gw_loop_state *state;
    int64_t left_ms; /* of the time to drain */
    bool is_urgent;  /* half of it is over */
    size_t n_calls;
    size_t n_unsent;
};

static struct calls_loop *calls_of(const struct going *going)
{
    return going->state->node->calls[going->state->number];
}

static void begin_drain(void *user)
{
    const struct going *going = (const struct going *)user;

    calls_begin_drain(calls_of(going), going->left_ms);
    if (going->state->number == 0)
        gw_leader_resign(going->state->node->leader);
}

static void count_pending(void *user)
{
    struct going *going = (struct going *)user;

    going->n_calls += calls_count(calls_of(going));
    going->n_calls += gw_direct_count(gw_router_of(calls_of(going))->direct);
    going->n_unsent += calls_count_unsent(calls_of(going));
}

static void drain_providers(void *user)
{
    const struct going *going = (const struct going *)user;

    gw_serve_attach_drain(calls_of(going), going->is_urgent);
}

static void close_streams(void *user)
{
    struct going *going = (struct going *)user;
    struct gw_node *node = going->state->node;

    calls_of(going)->is_closed = true;
    gw_serve_attach_close(calls_of(going));
    gw_watches_close(node->watches[going->state->number]);
    gw_mcp_close(node->mcp.loops[going->state->number]);
}

static void run_on_all(struct gw_node *node, struct gw_loop_state *states, struct going *going,
                       void (*fn)(void *user))
{
    for (unsigned i = 0; i < node->n_loops; i++) {
        going->state = &states[i];
        gw_on_loop(net_loops_at(node->loops, i), fn, going);
    }
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    nanosleep(&pause, NULL);
}

static int64_t mono_ms(void)
{
    return peg__mono_ns() / PEG_NS_PER_MS;
}

static bool drain_connections(struct gw_node *node, bool is_hurried,
                              bool (*ask_hurried)(void *user), void *user)
{
    const int64_t until_ms = mono_ms() + GOODBYE_MS;

    while (!grpc_server_drain(node->server, LOOK_MS)) {
        if (is_hurried || mono_ms() >= until_ms)
            return false;
        is_hurried = ask_hurried(user);
    }
    return true;
}

/* What has been sent to a provider is in its queue within a look, so it is seen there when nothing
 * was on its way the last time. */
bool gw_node_drain(struct gw_node *node, struct gw_loop_state *states, int64_t drain_ms,
                   bool (*is_hurried)(void *user), void *user)
{
    const int64_t until_ms = mono_ms() + drain_ms;
    struct going going = {.left_ms = drain_ms};
    bool was_sent = false;
    bool is_idle = false;
    bool is_in_hurry = false;

    atomic_store(&node->is_draining, true);
    run_on_all(node, states, &going, begin_drain);
    gw_node_announce(node);
    for (;;) {
        going.n_calls = 0;
        going.n_unsent = 0;
        run_on_all(node, states, &going, count_pending);
        is_idle = going.n_calls == 0;
        going.left_ms = until_ms - mono_ms();
        going.is_urgent = going.left_ms < drain_ms / 2;
        if (is_idle || (was_sent && going.n_unsent == 0))
            run_on_all(node, states, &going, drain_providers);
        was_sent = going.n_unsent == 0;
        if (is_idle || going.left_ms <= 0)
            break;
        is_in_hurry = is_hurried(user);
        if (is_in_hurry)
            break;
        pause_shortly();
    }
    run_on_all(node, states, &going, close_streams);
    return drain_connections(node, is_in_hurry, is_hurried, user) && is_idle;
}
