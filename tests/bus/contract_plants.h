/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_CONTRACT_PLANTS_H
#define PEG_TESTS_BUS_CONTRACT_PLANTS_H

/* Bugs of a bus, planted between the bus and its owner: the contract has to find each of them. */

#include "contract.h"

enum c_plant {
    C_NO_PLANT,
    C_RENEWS_OTHERS,  /* renews a lease that another loop has */
    C_TAKES_ANYWAY,   /* takes a lease that is not free */
    C_KEEPS_RENEWAL,  /* does not renew the own lease */
    C_HIDES_LOSS,     /* does not report a lost node */
    C_REPEATS_LOSS,   /* reports it twice */
    C_POSTS_TWICE,    /* delivers a post twice */
    C_LOSES_POST,     /* does not deliver it */
    C_REORDERS_POSTS, /* delivers the first one late */
    C_POSTS_AT_ONCE,  /* delivers a post to the own loop before bus_post() returns */
    C_DROPS_DEAD,     /* does not return posts to a loop that is gone */
};

enum { C_MAX_WRAPPED = 64 };

struct c_wrapped {
    struct bus_post post; /* first */
    struct bus_post *inner;
};

static struct {
    enum c_plant plant;
    struct bus_ops ops;           /* those of the bus, with what is planted */
    const struct bus_ops *wanted; /* without */
    struct c_wrapped wrapped[C_MAX_WRAPPED];
    unsigned n_posts;
    struct bus_post *late;
} c_planted;

static void c_planted_lease(struct bus *bus, peg_str name, int64_t lease_ms,
                            enum bus_lease_mode mode, struct bus_wait *wait)
{
    if ((c_planted.plant == C_RENEWS_OTHERS && mode == BUS_LEASE_RENEW) ||
        (c_planted.plant == C_TAKES_ANYWAY && mode == BUS_LEASE_IF_FREE))
        mode = BUS_LEASE_TAKE;
    if (c_planted.plant == C_KEEPS_RENEWAL && mode == BUS_LEASE_RENEW)
        name = peg__str("another name");
    c_planted.wanted->lease(bus, name, lease_ms, mode, wait);
}

static void c_planted_on_lost(void *user, struct bus_address address)
{
    if (c_planted.plant == C_HIDES_LOSS)
        return;
    c_on_node_lost(user, address);
    c_on_node_lost(user, address);
}

static void c_run_wrapped(struct bus_post *post, void *user)
{
    struct bus_post *inner = ((struct c_wrapped *)post)->inner;

    if (c_planted.plant == C_DROPS_DEAD && !user)
        return;
    inner->fn(inner, user);
    if (c_planted.plant == C_POSTS_TWICE)
        inner->fn(inner, user);
}

static void c_planted_post(struct bus *bus, uint32_t loop, struct bus_post *post)
{
    const unsigned n = c_planted.n_posts++;
    struct c_wrapped *wrapped = &c_planted.wrapped[n % C_MAX_WRAPPED];

    if (c_planted.plant == C_LOSES_POST && n == 2)
        return;
    if (c_planted.plant == C_REORDERS_POSTS && n == 0) {
        c_planted.late = post;
        return;
    }
    if (c_planted.plant == C_POSTS_AT_ONCE && loop == bus->self.loop) {
        post->fn(post, bus->user);
        return;
    }
    *wrapped = (struct c_wrapped){.post = {.fn = c_run_wrapped}, .inner = post};
    c_planted.wanted->post(bus, loop, &wrapped->post);
    if (c_planted.late) {
        post = c_planted.late;
        c_planted.late = NULL;
        c_planted.wanted->post(bus, loop, post);
    }
}

/* Into all buses, after c_open(). */
static void c_plant(enum c_plant plant)
{
    c_planted.plant = plant;
    c_planted.wanted = c_bus(0)->ops;
    c_planted.ops = *c_planted.wanted;
    c_planted.ops.lease = c_planted_lease;
    c_planted.ops.post = c_planted_post;
    c_planted.n_posts = 0;
    c_planted.late = NULL;
    for (unsigned i = 0; i < C_N; i++) {
        c_bus(i)->ops = &c_planted.ops;
        if (plant == C_HIDES_LOSS || plant == C_REPEATS_LOSS)
            c_bus(i)->events.on_node_lost = c_planted_on_lost;
    }
}

/* The check breaks off with the name of the promise that is broken. */
static void c_find_plant(enum c_plant plant, const char *(*check)(void), const char *promise)
{
    const char *broken;

    c_open();
    c_plant(plant);
    broken = check();
    c_close();
    CHECK_STR(peg__str(broken ? broken : "(none)"), promise);
}

static void c_keep_promise(const char *(*check)(void))
{
    const char *broken;

    c_open();
    broken = check();
    c_close();
    CHECK_STR(peg__str(broken ? broken : "(none)"), "(none)");
}

#endif
