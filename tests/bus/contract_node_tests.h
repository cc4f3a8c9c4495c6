/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_CONTRACT_NODE_TESTS_H
#define PEG_TESTS_BUS_CONTRACT_NODE_TESTS_H

/* Tests of contract.h about modes of leases, lost nodes and posts, with bugs that they find. A
 * check returns the promise that is broken, or NULL. */

#include "contract_plants.h"

/* ---- modes of leases ----------------------------------------------------------------------- */

/* Is the lease of bus `has` (C_N: of none) after bus i has asked? */
static bool c_asks(unsigned i, enum bus_lease_mode mode, unsigned has)
{
    struct c_asked asked = {
        .what = C_LEASE, .names = {peg__str("provider")}, .lease_ms = 60000, .mode = mode};
    const struct bus_address wanted = has < C_N ? c_bus(has)->self : (struct bus_address){0};

    c_ask(i, &asked);
    return asked.answer.status == PEG_OK && asked.answer.n_addresses == 1 &&
           asked.answer.written == (i == has) && bus_address_equal(asked.addresses[0], wanted) &&
           bus_address_equal(c_holder(i, "provider"), wanted);
}

static const char *c_check_modes(void)
{
    if (!c_asks(0, BUS_LEASE_IF_FREE, 0))
        return "a free name is taken";
    if (!c_asks(0, BUS_LEASE_IF_FREE, 0) || !c_asks(0, BUS_LEASE_RENEW, 0))
        return "the own name is renewed";
    if (!c_asks(1, BUS_LEASE_IF_FREE, 0))
        return "a name that is not free stays";
    if (!c_asks(1, BUS_LEASE_RENEW, 0))
        return "a name of another loop is not renewed";
    if (!c_asks(1, BUS_LEASE_TAKE, 1) || !c_asks(0, BUS_LEASE_RENEW, 1))
        return "a name is taken from another loop";
    return NULL;
}

TEST(a_lease_is_given_as_its_mode_allows)
{
    c_keep_promise(c_check_modes);
}

/* It outlives another one that began later. */
static void c_check_renewal(enum bus_lease_mode mode)
{
    struct c_asked asked = {
        .what = C_LEASE, .names = {peg__str("provider")}, .lease_ms = 60000, .mode = mode};

    c_open();
    do {
        c_lease(0, "provider", 20);
        asked.n_answers = 0;
        c_ask(0, &asked);
    } while (!asked.answer.written); /* it ran out meanwhile */
    c_lease(1, "another", 20);
    while (c_holder(1, "another").node)
        c_pass();
    CHECK(bus_address_equal(c_holder(1, "provider"), c_bus(0)->self));
    c_close();
}

TEST(a_lease_is_renewed_in_each_mode)
{
    c_check_renewal(BUS_LEASE_TAKE);
    c_check_renewal(BUS_LEASE_RENEW);
    c_check_renewal(BUS_LEASE_IF_FREE);
}

TEST(a_lease_that_ran_out_or_never_was_is_free_and_not_renewed)
{
    c_open();
    CHECK(c_asks(0, BUS_LEASE_RENEW, C_N));
    c_lease(0, "provider", 20);
    while (c_holder(1, "provider").node)
        c_pass();

    CHECK(c_asks(0, BUS_LEASE_RENEW, C_N));
    CHECK(c_asks(1, BUS_LEASE_IF_FREE, 1));
    c_close();
}

TEST(a_lease_that_is_renewed_although_another_loop_has_it_is_found_out)
{
    c_find_plant(C_RENEWS_OTHERS, c_check_modes, "a name of another loop is not renewed");
}

TEST(a_lease_that_is_taken_although_it_is_not_free_is_found_out)
{
    c_find_plant(C_TAKES_ANYWAY, c_check_modes, "a name that is not free stays");
}

TEST(a_lease_that_is_not_renewed_is_found_out)
{
    c_find_plant(C_KEEPS_RENEWAL, c_check_modes, "the own name is renewed");
}

/* ---- lost nodes ---------------------------------------------------------------------------- */

static void c_lease_own(unsigned i, int64_t lease_ms)
{
    char name[BUS_ADDRESS_TEXT];

    bus_address_print(c_bus(i)->self, name);
    c_lease(i, name, lease_ms);
}

static const char *c_check_loss(void)
{
    const struct bus_address lost = c_bus(0)->self;

    c_lease_own(0, 500);
    c_end(0);
    c_settle();
    for (unsigned i = 1; i < C_N; i++) {
        if (c_n_lost(i) == 0)
            return "a lost node is reported";
        if (c_n_lost(i) > 1)
            return "a lost node is reported once";
        if (!bus_address_equal(c_messages[i].last_lost, lost))
            return "a lost node is reported by its address";
    }
    return NULL;
}

TEST(a_loop_that_ends_with_its_lease_is_reported_to_each_other_loop)
{
    c_keep_promise(c_check_loss);
}

TEST(a_loop_whose_lease_runs_out_is_reported_to_each_other_loop)
{
    c_open();
    c_lease_own(0, 20);
    while (c_n_lost(1) == 0 || c_n_lost(2) == 0)
        c_pass();
    c_settle();

    CHECK_INT(c_n_lost(0), 0);
    CHECK_INT(c_n_lost(1), 1);
    CHECK_INT(c_n_lost(2), 1);
    CHECK(bus_address_equal(c_messages[1].last_lost, c_bus(0)->self));
    c_close();
}

TEST(a_loop_that_leases_its_address_again_can_be_lost_again)
{
    c_open();
    for (unsigned n = 1; n <= 2; n++) {
        c_lease_own(2, 20);
        while (c_n_lost(0) < n || c_n_lost(1) < n)
            c_pass();
    }
    c_settle();

    CHECK_INT(c_n_lost(0), 2);
    CHECK_INT(c_n_lost(1), 2);
    c_close();
}

static void c_release_own(void *user)
{
    struct bus *bus = (struct bus *)user;
    char name[BUS_ADDRESS_TEXT];

    bus_address_print(bus->self, name);
    bus_release(bus, peg__str(name));
}

TEST(a_loop_that_releases_its_address_is_not_lost)
{
    c_open();
    c_lease_own(0, 60000);
    c_do(0, c_release_own, c_bus(0));
    c_settle();
    c_end(0);
    c_settle();

    CHECK_INT(c_n_lost(1) + c_n_lost(2), 0);
    c_close();
}

TEST(the_end_of_another_lease_loses_no_node)
{
    c_open();
    c_lease(0, "provider", 20);
    while (c_holder(1, "provider").node)
        c_pass();
    c_settle();

    CHECK_INT(c_n_lost(1) + c_n_lost(2), 0);
    c_close();
}

TEST(a_loop_without_on_node_lost_goes_on)
{
    c_open();
    c_bus(1)->events.on_node_lost = NULL;
    c_lease_own(0, 500);
    c_end(0);
    c_settle();

    CHECK_INT(c_n_lost(1), 0);
    CHECK_INT(c_n_lost(2), 1);
    c_close();
}

TEST(a_node_loss_that_is_not_reported_is_found_out)
{
    c_find_plant(C_HIDES_LOSS, c_check_loss, "a lost node is reported");
}

TEST(a_node_loss_that_is_reported_twice_is_found_out)
{
    c_find_plant(C_REPEATS_LOSS, c_check_loss, "a lost node is reported once");
}

/* ---- posts: buses 0 and 1 are of one node --------------------------------------------------- */

enum { C_POSTS = 20 };

struct c_post {
    struct bus_post post; /* first */
    unsigned n_run;
    void *user;
    unsigned place; /* in the order of all */
};

static struct {
    struct c_post posts[C_POSTS];
    uint32_t loop;
    unsigned n_run;
    unsigned n_at_once; /* had run when bus_post() of the last one returned */
} c_posting;

static void c_run_post(struct bus_post *bus_post, void *user)
{
    struct c_post *post = (struct c_post *)bus_post;

    pthread_mutex_lock(&c_lock);
    post->n_run++;
    post->user = user;
    post->place = c_posting.n_run++;
    pthread_mutex_unlock(&c_lock);
}

static void c_post_all(void *user)
{
    (void)user;
    for (unsigned k = 0; k < C_POSTS; k++)
        bus_post(c_bus(0), c_posting.loop, &c_posting.posts[k].post);
    pthread_mutex_lock(&c_lock);
    c_posting.n_at_once = c_posting.n_run;
    pthread_mutex_unlock(&c_lock);
}

/* From bus 0; returns when all that arrive have arrived. */
static void c_post_to(uint32_t loop)
{
    memset(&c_posting, 0, sizeof(c_posting));
    c_posting.loop = loop;
    for (unsigned k = 0; k < C_POSTS; k++)
        c_posting.posts[k].post.fn = c_run_post;
    c_do(0, c_post_all, NULL);
    c_settle();
}

static const char *c_check_run(const void *user)
{
    for (unsigned k = 0; k < C_POSTS; k++) {
        const struct c_post *post = &c_posting.posts[k];

        if (post->n_run == 0)
            return "a post arrives";
        if (post->n_run > 1)
            return "a post arrives once";
        if (post->place != k)
            return "posts arrive in order";
        if (post->user != user)
            return "a post arrives at its loop";
    }
    return NULL;
}

static const char *c_check_posts(void)
{
    const uint32_t other = c_bus(1)->self.loop;
    const char *broken;

    c_post_to(other);
    broken = c_check_run(&c_messages[1]);
    if (broken)
        return broken;
    c_post_to(c_bus(0)->self.loop);
    if (c_posting.n_at_once)
        return "a post to the own loop does not arrive within bus_post()";
    broken = c_check_run(&c_messages[0]);
    if (broken)
        return broken;
    c_end(1);
    c_post_to(other);
    return c_check_run(NULL) ? "a post to a loop that is gone comes back" : NULL;
}

TEST(a_post_arrives_once_and_in_order)
{
    c_keep_promise(c_check_posts);
}

TEST(a_post_to_a_loop_that_never_was_comes_back)
{
    c_open();
    c_post_to(50);
    CHECK(!c_check_run(NULL));
    c_post_to(UINT32_MAX);
    CHECK(!c_check_run(NULL));
    c_close();
}

TEST(a_post_that_arrives_twice_is_found_out)
{
    c_find_plant(C_POSTS_TWICE, c_check_posts, "a post arrives once");
}

TEST(a_post_that_is_lost_is_found_out)
{
    c_find_plant(C_LOSES_POST, c_check_posts, "a post arrives");
}

TEST(posts_that_overtake_each_other_are_found_out)
{
    c_find_plant(C_REORDERS_POSTS, c_check_posts, "posts arrive in order");
}

TEST(a_post_that_arrives_within_bus_post_is_found_out)
{
    c_find_plant(C_POSTS_AT_ONCE, c_check_posts,
                 "a post to the own loop does not arrive within bus_post()");
}

TEST(a_post_that_does_not_come_back_from_a_loop_that_is_gone_is_found_out)
{
    c_find_plant(C_DROPS_DEAD, c_check_posts, "a post to a loop that is gone comes back");
}

#endif
