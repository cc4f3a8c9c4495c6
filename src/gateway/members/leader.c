/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/members/leader.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"

/* Asks so often in a lease; and trusts the lease but for this part of it. */
enum { TRIES = 3, FENCE_PART = 10 };

/* Owned. What may be pending: a request for the lease, both timers. */
struct gw_leader {
    struct gw_leader_options options;
    struct bus *bus;
    struct bus_wait wait;
    struct net_timer again;
    struct net_timer fence; /* armed while it leads */
    int64_t until_ns;       /* it leads until then */
    int64_t not_before_ns;  /* does not take a free lease until then */
    uint64_t epoch;         /* of the leases that it knows of; 0: of none */
    atomic_ullong holder;
    bool is_leader; /* as reported */
    bool has_resigned;
};

static int64_t lease_ns(const struct gw_leader *leader)
{
    return leader->options.lease_ms * PEG_NS_PER_MS;
}

bool gw_leader_is(const struct gw_leader *leader)
{
    return leader->is_leader && bus_now_ns(leader->bus) < leader->until_ns;
}

uint64_t gw_leader_node(const struct gw_leader *leader)
{
    return atomic_load(&leader->holder);
}

static void set_leader(struct gw_leader *leader, bool is_leader)
{
    if (leader->is_leader == is_leader)
        return;
    leader->is_leader = is_leader;
    if (leader->options.on_change)
        leader->options.on_change(leader->options.user, is_leader);
}

static void step_down(struct gw_leader *leader)
{
    bus_disarm(leader->bus, &leader->fence);
    leader->until_ns = 0;
    set_leader(leader, false);
}

static void on_fence(struct net_timer *timer)
{
    step_down(peg__container_of(timer, struct gw_leader, fence));
}

/* From when it was asked for: the lease itself began later. */
static void lead(struct gw_leader *leader, int64_t asked_ns)
{
    leader->until_ns = asked_ns + lease_ns(leader) - lease_ns(leader) / FENCE_PART;
    if (bus_now_ns(leader->bus) >= leader->until_ns) {
        step_down(leader);
        return;
    }
    bus_arm(leader->bus, &leader->fence, leader->until_ns);
    set_leader(leader, true);
}

static void on_asked(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_leader *leader = peg__container_of(wait, struct gw_leader, wait);

    if (answer->status || answer->n_addresses != 1)
        return; /* asked again; what it has it keeps until the fence */
    atomic_store(&leader->holder, answer->addresses[0].node);
    if (answer->written)
        lead(leader, answer->asked_ns);
    else
        step_down(leader);
}

/* A lease that is not there after the leases were lost may still be believed in by the node that
 * had it: that node takes it again at once, and the others wait for as long as it lasts. */
static void note_epoch(struct gw_leader *leader)
{
    const uint64_t epoch = bus_epoch(leader->bus);

    if (leader->epoch && epoch != leader->epoch && !gw_leader_is(leader))
        leader->not_before_ns = bus_now_ns(leader->bus) + lease_ns(leader);
    leader->epoch = epoch;
}

static void ask_for_lease(struct net_timer *timer)
{
    struct gw_leader *leader = peg__container_of(timer, struct gw_leader, again);

    bus_arm(leader->bus, timer, bus_now_ns(leader->bus) + lease_ns(leader) / TRIES);
    note_epoch(leader);
    if (bus_now_ns(leader->bus) < leader->not_before_ns)
        return;
    bus_forget_wait(leader->bus, &leader->wait);
    bus_lease(leader->bus, peg__str(leader->options.role), leader->options.lease_ms,
              BUS_LEASE_IF_FREE, &leader->wait);
}

/* A request that is on its way may still take it: the release comes behind. */
static void give_lease_back(struct gw_leader *leader)
{
    bus_disarm(leader->bus, &leader->again);
    bus_disarm(leader->bus, &leader->fence);
    bus_forget_wait(leader->bus, &leader->wait);
    bus_release(leader->bus, peg__str(leader->options.role));
}

void gw_leader_resign(struct gw_leader *leader)
{
    if (leader->has_resigned)
        return;
    leader->has_resigned = true;
    step_down(leader);
    give_lease_back(leader);
    atomic_store(&leader->holder, 0);
}

peg_status gw_leader_new(const struct gw_leader_options *options, struct gw_leader **ret_leader,
                         peg_error *reterr)
{
    struct gw_leader *leader = (struct gw_leader *)peg__alloc_zero(1, sizeof(*leader));

    if (!leader)
        return peg__fail_nomem(reterr);
    leader->options = *options;
    leader->bus = options->bus;
    leader->wait.fn = on_asked;
    leader->again.fn = ask_for_lease;
    leader->fence.fn = on_fence;
    *ret_leader = leader;
    ask_for_lease(&leader->again);
    return PEG_OK;
}

struct gw_leader *gw_leader_free(struct gw_leader *leader)
{
    if (!leader)
        return NULL;
    if (!leader->has_resigned)
        give_lease_back(leader);
    peg__free(leader);
    return NULL;
}
