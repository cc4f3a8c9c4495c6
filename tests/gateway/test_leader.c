/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/members/leader.h"

#include "base/clock.h"
#include "bus/sim/sim.h"
#include "t.h"

/* ---- fixture: three nodes, on the simulator ---------------------------------------------------
 */

enum { N = 3, LEASE_MS = 1000 };

struct world {
    struct bus_sim *sim;
    struct bus *buses[N];
    uint64_t nodes[N];
    struct gw_leader *leaders[N];
    bool is_told[N]; /* by on_change */
    bool is_dead[N];
};

static struct world w;

static void on_change(void *user, bool is_leader)
{
    *(bool *)user = is_leader;
}

static void on_message(void *user, const struct bus_message *message)
{
    (void)user;
    (void)message;
}

static void on_reset(void *user)
{
    (void)user;
}

static peg_status start_node(unsigned i)
{
    static const struct bus_events events = {.on_message = on_message, .on_reset = on_reset};
    const struct gw_leader_options options = {.bus = w.buses[i],
                                              .role = GW_ROLE_PING,
                                              .lease_ms = LEASE_MS,
                                              .on_change = on_change,
                                              .user = &w.is_told[i]};

    bus_listen(w.buses[i], &events, NULL);
    return gw_leader_new(&options, &w.leaders[i], NULL);
}

static void world_start(uint64_t seed, const struct bus_sim_faults *faults)
{
    peg_error error;

    w = (struct world){.sim = NULL};
    CHECK_STATUS(bus_sim_new(&w.sim, &error), PEG_OK, error);
    bus_sim_begin(w.sim, seed, faults, NULL);
    for (unsigned i = 0; i < N; i++) {
        CHECK_INT(bus_sim_add_node(w.sim, 1, &w.buses[i], &w.nodes[i]), PEG_OK);
        CHECK_INT(start_node(i), PEG_OK);
    }
}

static void world_stop(void)
{
    for (unsigned i = 0; i < N; i++)
        gw_leader_free(w.leaders[i]);
    bus_sim_free(w.sim);
}

static unsigned count_leaders(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N; i++)
        n += w.leaders[i] && !w.is_dead[i] && gw_leader_is(w.leaders[i]);
    return n;
}

/* Event by event; the most leaders that there were at any moment. */
static unsigned run(int64_t ms)
{
    const int64_t until_ns = bus_sim_now_ns(w.sim) + ms * PEG_NS_PER_MS;
    unsigned most = 0;

    while (bus_sim_now_ns(w.sim) < until_ns && bus_sim_step(w.sim)) {
        const unsigned n = count_leaders();

        if (n > most)
            most = n;
    }
    return most;
}

static unsigned find_leader(void)
{
    unsigned i = 0;

    while (i < N && (!w.leaders[i] || w.is_dead[i] || !gw_leader_is(w.leaders[i])))
        i++;
    return i;
}

static void crash(unsigned i)
{
    w.is_dead[i] = true;
    bus_sim_crash(w.sim, w.nodes[i]);
}

/* ---- */

TEST(of_three_nodes_one_leads_and_all_know_which)
{
    unsigned leader;

    world_start(1, NULL);
    CHECK_INT(run(2 * LEASE_MS), 1);
    leader = find_leader();

    CHECK_INT(count_leaders(), 1);
    for (unsigned i = 0; i < N; i++) {
        CHECK(gw_leader_node(w.leaders[i]) == w.nodes[leader]);
        CHECK_INT(w.is_told[i], i == leader);
    }
    world_stop();
}

TEST(a_leader_stays_as_long_as_it_lives)
{
    unsigned leader;

    world_start(2, NULL);
    run(2 * LEASE_MS);
    leader = find_leader();
    CHECK_INT(run(50 * LEASE_MS), 1);

    CHECK_INT(find_leader(), leader);
    world_stop();
}

/* The lease is half of an interval of pings. */
TEST(another_node_leads_within_two_leases_of_a_crash)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        unsigned first;

        world_start(seed, NULL);
        run(2 * LEASE_MS + (int64_t)bus_sim_pick(w.sim, LEASE_MS));
        first = find_leader();
        CHECK(first < N);
        crash(first);
        CHECK_INT(run(2 * LEASE_MS), 1);

        CHECK_INT(count_leaders(), 1);
        CHECK(find_leader() != first);
        world_stop();
    }
}

TEST(one_that_resigns_is_followed_at_its_neighbours_next_try)
{
    unsigned first;

    world_start(3, NULL);
    run(2 * LEASE_MS);
    first = find_leader();
    gw_leader_resign(w.leaders[first]);
    CHECK(!gw_leader_is(w.leaders[first]) && !w.is_told[first]);
    CHECK_INT(run(LEASE_MS / 2), 1);

    CHECK_INT(count_leaders(), 1);
    CHECK(find_leader() != first);
    world_stop();
}

TEST(a_leader_that_was_paused_leads_no_more_when_it_goes_on)
{
    unsigned first;

    world_start(4, NULL);
    run(2 * LEASE_MS);
    first = find_leader();
    bus_sim_pause(w.sim, w.nodes[first], 5 * (int64_t)LEASE_MS * PEG_NS_PER_MS);
    CHECK_INT(run(10 * LEASE_MS), 1);

    CHECK_INT(count_leaders(), 1);
    CHECK(find_leader() != first && !w.is_told[first]);
    world_stop();
}

TEST(leases_that_the_bus_loses_stay_with_the_leader)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        unsigned first;

        world_start(seed, NULL);
        run(2 * LEASE_MS);
        first = find_leader();
        bus_sim_new_epoch(w.sim);
        CHECK_INT(run(3 * LEASE_MS), 1);

        CHECK_INT(find_leader(), first);
        world_stop();
    }
}

static void have_an_accident(void)
{
    const uint64_t node = w.nodes[bus_sim_pick(w.sim, N)];
    const int64_t ns = (int64_t)bus_sim_pick(w.sim, 3 * (uint64_t)LEASE_MS) * PEG_NS_PER_MS;

    switch (bus_sim_pick(w.sim, 3)) {
    case 0:
        bus_sim_pause(w.sim, node, ns);
        break;
    case 1:
        bus_sim_partition(w.sim, node, ns);
        break;
    default:
        bus_sim_cut(w.sim, node);
        break;
    }
}

/* ~200 accidents on 200 seeds; what is lost is answered, and clocks do not agree. */
TEST(there_are_never_two_leaders_whatever_happens_to_nodes)
{
    const struct bus_sim_faults faults = {.lose_question = 2000,
                                          .lose_answer = 2000,
                                          .slow = 2000,
                                          .timer_lag_ns = 20 * PEG_NS_PER_MS,
                                          .skew_ms = 500};
    unsigned most = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        world_start(seed, &faults);
        for (unsigned i = 0; i < 20; i++) {
            const unsigned n = run(500 + (int64_t)bus_sim_pick(w.sim, 2000));

            most = n > most ? n : most;
            have_an_accident();
        }
        bus_sim_calm(w.sim);
        run(20 * LEASE_MS);
        CHECK_INT(count_leaders(), 1);
        world_stop();
    }
    CHECK_INT(most, 1);
}

TORTURE(a_leader_survives_any_allocation_failure)
{
    peg_status status;

    w = (struct world){.sim = NULL};
    status = bus_sim_new(&w.sim, NULL);
    if (!status) {
        bus_sim_begin(w.sim, 1, NULL, NULL);
        status = bus_sim_add_node(w.sim, 1, w.buses, w.nodes);
    }
    if (!status)
        status = start_node(0);
    if (!status)
        run(2 * LEASE_MS);
    world_stop();
    return status;
}
