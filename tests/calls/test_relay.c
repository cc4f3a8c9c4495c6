/* SPDX-License-Identifier: Apache-2.0 */

/* Callers on one loop of a node, calls on the other: through calls.h alone, on the bus of one
 * process. The test runs both loops itself, one after the other. */

#include "../t.h"

#include "../gateway/calls_world.h"

struct node {
    struct bus_local_hub *hub;
    struct calls_homes *homes;
    struct calls_home *held; /* by the test, as by a caller that has asked the second loop */
    struct world loops[2];
    struct player player; /* attached to the first */
};

/* Until nothing is under way between them. */
static void settle_all(struct node *node)
{
    for (unsigned i = 0; i < 4; i++) {
        settle(&node->loops[0]);
        settle(&node->loops[1]);
    }
}

static const char KEY[] = "key";

static struct bus_id id_of_key(struct node *node)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"), .principal = peg_cstr("local"), .key = peg_cstr(KEY)};
    struct bus_id id;

    CHECK(calls_request_id(node->loops[0].calls, &request, &id));
    return id;
}

/* No loop was asked yet. */
static void node_open_fresh(struct node *node, int64_t reattach_ms)
{
    struct calls_options options = {.reattach_ms = reattach_ms};
    struct gw_toolset *toolset = make_toolset();

    *node = (struct node){0};
    CHECK(bus_local_hub_new(7, &node->hub, NULL) == PEG_OK);
    node->homes = calls_homes_new();
    options.homes = node->homes;
    CHECK(node->homes);
    world_open_loop(&node->loops[0], node->hub, 0, gw_toolset_ref(toolset), &options);
    world_open_loop(&node->loops[1], node->hub, 1, toolset, &options);
    attach(&node->loops[0], &node->player, "incarnation-1", 4);
    settle_all(node);
}

/* The second loop is the home. */
static void node_open(struct node *node, int64_t reattach_ms)
{
    struct bus_id id;

    node_open_fresh(node, reattach_ms);
    id = id_of_key(node);
    node->held = calls_homes_hold(node->homes, &id, 1);
}

/* The loops are closed. Nothing holds a home any more. */
static void close_hub(struct node *node)
{
    bus_local_hub_free(node->hub);
    calls_home_release(node->held);
    calls_homes_free(node->homes);
}

static void node_close(struct node *node)
{
    world_close_loop(&node->loops[0]);
    world_close_loop(&node->loops[1]);
    close_hub(node);
}

/* At `loop`; the posts to the other one are still under way. */
static void ask(struct node *node, unsigned loop, struct caller *caller)
{
    call_as(&node->loops[loop], caller, "add", KEY, 0);
}

static void ask_and_settle(struct node *node, unsigned loop, struct caller *caller)
{
    ask(node, loop, caller);
    settle_all(node);
}

static void finish(struct node *node, const char *json)
{
    answer(&node->loops[0], &node->player, &node->player.handed[0], json);
    settle_all(node);
}

static void await_cancellation(struct node *node)
{
    for (unsigned i = 0; i < 20000 && !node->player.n_canceled; i++) {
        settle_all(node);
        sleep_ms(1);
    }
    CHECK_INT(node->player.n_canceled, 1);
}

/* ---- one caller ---- */

TEST(a_caller_of_another_loop_is_admitted_and_gets_outputs_and_the_end)
{
    struct node node;
    struct caller caller;

    node_open(&node, 0);
    ask_and_settle(&node, 0, &caller);
    CHECK(caller.is_admitted && !caller.is_follower);
    CHECK_INT(node.player.n_handed, 1);
    CHECK_INT(node.player.handed[0].route.loop, 1);
    calls_provider_output(node.player.provider, &node.player.handed[0].id, 1, peg_cstr("output"));
    settle_all(&node);
    CHECK_INT(caller.n_outputs, 1);
    CHECK_INT(caller.n_ends, 0);

    finish(&node, "5");
    CHECK_INT(caller.n_ends, 1);
    CHECK_STR(peg_cstr(caller.result), "5");
    CHECK_INT(calls_count(node.loops[1].calls), 0);
    node_close(&node);
}

TEST(a_call_whose_only_caller_on_another_loop_leaves_is_canceled)
{
    struct node node;
    struct caller caller;

    node_open(&node, 0);
    ask_and_settle(&node, 0, &caller);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle_all(&node);
    CHECK_INT(node.player.n_canceled, 1);
    finish(&node, "5");
    CHECK_INT(caller.n_ends, 0);
    node_close(&node);
}

/* `begin` and `leave` arrive together. */
TEST(a_caller_may_leave_before_its_request_has_arrived)
{
    struct node node;
    struct caller caller;

    node_open(&node, 0);
    ask(&node, 0, &caller);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle_all(&node);
    CHECK_INT(caller.n_ends, 0);
    CHECK(!caller.is_admitted);
    CHECK_INT(calls_count(node.loops[1].calls), 0);
    node_close(&node);
}

/* `leave` and `end` cross each other. */
TEST(a_caller_that_leaves_when_its_call_has_ended_does_not_get_the_end)
{
    struct node node;
    struct caller caller;

    node_open(&node, 0);
    ask_and_settle(&node, 0, &caller);
    answer(&node.loops[0], &node.player, &node.player.handed[0], "5");
    settle(&node.loops[1]); /* the end is under way */
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle_all(&node);
    CHECK_INT(caller.n_ends, 0);
    CHECK_INT(node.player.n_canceled, 0);
    node_close(&node);
}

TEST(a_caller_that_lost_its_connection_finds_its_call_again)
{
    struct node node;
    struct caller lost;
    struct caller again;

    node_open(&node, 60000);
    ask_and_settle(&node, 0, &lost);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    settle_all(&node);
    CHECK_INT(node.player.n_canceled, 0);
    ask_and_settle(&node, 0, &again);
    CHECK(again.is_admitted && again.is_follower);
    finish(&node, "5");
    CHECK_INT(lost.n_ends, 0);
    CHECK_STR(peg_cstr(again.result), "5");
    CHECK_INT(node.player.n_handed, 1);
    node_close(&node);
}

TEST(a_call_whose_caller_does_not_come_back_is_canceled)
{
    struct node node;
    struct caller lost;

    node_open(&node, 1);
    ask_and_settle(&node, 0, &lost);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    await_cancellation(&node);
    CHECK_INT(lost.n_ends, 0);
    node_close(&node);
}

TEST(a_call_goes_on_without_a_caller_that_detached)
{
    struct node node;
    struct caller starter;
    struct caller later;

    node_open(&node, 1);
    ask_and_settle(&node, 0, &starter);
    calls_caller_leave(&starter.caller, CALLS_DETACHES);
    settle_all(&node);
    CHECK_INT(node.player.n_canceled, 0);
    finish(&node, "5");
    CHECK_INT(starter.n_ends, 0);
    ask_and_settle(&node, 0, &later);
    CHECK_STR(peg_cstr(later.result), "5");
    CHECK_INT(node.player.n_handed, 1);
    node_close(&node);
}

/* ---- the home ---- */

TEST(a_call_lives_on_the_loop_that_was_asked_first)
{
    for (unsigned first = 0; first < 2; first++) {
        struct node node;
        struct caller callers[2];

        node_open_fresh(&node, 0);
        ask(&node, first, &callers[first]);
        ask(&node, !first, &callers[!first]);
        CHECK(!callers[first].caller.relay && callers[!first].caller.relay);
        settle_all(&node);
        CHECK_INT(node.player.n_handed, 1);
        CHECK_INT(node.player.handed[0].route.loop, first);
        CHECK(!callers[first].is_follower && callers[!first].is_follower);
        CHECK(!calls_find(node.loops[!first].calls, &callers[first].caller.id));
        finish(&node, "5");
        CHECK_STR(peg_cstr(callers[0].result), "5");
        CHECK_STR(peg_cstr(callers[1].result), "5");
        node_close(&node);
    }
}

TEST(a_call_that_is_over_has_no_home)
{
    struct node node;
    struct caller first;
    struct caller second;

    node_open_fresh(&node, 0);
    ask_and_settle(&node, 1, &first);
    finish(&node, "5");
    CHECK_INT(first.n_ends, 1);
    ask(&node, 0, &second);
    CHECK(!second.caller.relay);
    settle_all(&node);
    CHECK_STR(peg_cstr(second.result), "5");
    CHECK_INT(node.player.n_handed, 1);
    node_close(&node);
}

/* Else the next request would find no home, and the node have two calls of one identity. */
TEST(a_request_that_is_on_its_way_keeps_the_home)
{
    struct node node;
    struct caller on_its_way;
    struct caller next;

    node_open(&node, 0);
    ask(&node, 0, &on_its_way);
    node.held = calls_home_release(node.held); /* what the second loop had is over */
    ask(&node, 0, &next);
    CHECK(on_its_way.caller.relay && next.caller.relay);
    settle_all(&node);
    CHECK_INT(node.player.n_handed, 1);
    CHECK_INT(node.player.handed[0].route.loop, 1);
    CHECK(!calls_find(node.loops[0].calls, &next.caller.id));
    finish(&node, "5");
    CHECK_STR(peg_cstr(on_its_way.result), "5");
    CHECK_STR(peg_cstr(next.result), "5");
    node_close(&node);
}

/* ---- several callers ---- */

TEST(callers_of_one_identity_on_both_loops_start_it_once)
{
    for (unsigned first = 0; first < 2; first++) {
        struct node node;
        struct caller callers[2];

        node_open(&node, 0);
        ask(&node, first, &callers[first]);
        ask_and_settle(&node, !first, &callers[!first]);
        CHECK_INT(node.player.n_handed, 1);
        CHECK(callers[0].is_admitted && callers[1].is_admitted);
        CHECK(callers[0].is_follower != callers[1].is_follower);
        finish(&node, "5");
        for (unsigned i = 0; i < 2; i++) {
            CHECK_INT(callers[i].n_ends, 1);
            CHECK_STR(peg_cstr(callers[i].result), "5");
        }
        node_close(&node);
    }
}

TEST(a_call_is_not_canceled_while_a_caller_of_the_other_loop_waits)
{
    for (unsigned leaver = 0; leaver < 2; leaver++) {
        struct node node;
        struct caller callers[2];

        node_open(&node, 0);
        ask_and_settle(&node, 0, &callers[0]);
        ask_and_settle(&node, 1, &callers[1]);
        calls_caller_leave(&callers[leaver].caller, CALLS_LEAVES);
        settle_all(&node);
        CHECK_INT(node.player.n_canceled, 0);
        calls_caller_leave(&callers[!leaver].caller, CALLS_LEAVES);
        settle_all(&node);
        CHECK_INT(node.player.n_canceled, 1);
        node_close(&node);
    }
}

TEST(another_payload_under_the_same_identity_is_rejected_across_loops)
{
    struct node node;
    struct caller first;
    struct caller second;

    node_open(&node, 0);
    ask_and_settle(&node, 1, &first);
    call_as(&node.loops[0], &second, "peek", KEY, 0);
    settle_all(&node);
    CHECK_INT(second.n_ends, 1);
    CHECK_INT(second.error, CALLS_VALIDATION);
    CHECK(strstr(second.message, "was used for a call with another tool or payload"));
    CHECK_INT(first.n_ends, 0);
    calls_caller_leave(&first.caller, CALLS_LEAVES);
    settle_all(&node);
    node_close(&node);
}

/* ---- by its id ---- */

static void await_by_id(struct node *node, const struct bus_id *id, const char *principal,
                        struct caller *caller)
{
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_await(node->loops[0].calls, id, peg_cstr(principal), NET_NEVER, &caller->caller);
    settle_all(node);
}

static void cancel_by_id(struct node *node, const struct bus_id *id, const char *principal,
                         struct caller *caller)
{
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_cancel(node->loops[0].calls, id, peg_cstr(principal), &caller->caller);
    settle_all(node);
}

TEST(a_call_of_another_loop_is_awaited_by_its_id)
{
    struct node node;
    struct caller owner;
    struct caller waiter;
    struct caller later;
    struct caller stranger;
    struct bus_id id;

    node_open(&node, 0);
    ask_and_settle(&node, 1, &owner);
    id = owner.caller.id;
    await_by_id(&node, &id, "local", &waiter);
    await_by_id(&node, &id, "other", &stranger);
    CHECK(waiter.is_admitted && waiter.is_follower && !waiter.n_ends);
    CHECK_INT(stranger.error, CALLS_NOT_FOUND);
    finish(&node, "5");
    CHECK_STR(peg_cstr(owner.result), "5");
    CHECK_STR(peg_cstr(waiter.result), "5");
    await_by_id(&node, &id, "local", &later);
    CHECK_STR(peg_cstr(later.result), "5");
    node_close(&node);
}

TEST(a_call_of_another_loop_is_canceled_by_its_id)
{
    struct node node;
    struct caller owner;
    struct caller stranger;
    struct caller stopper;
    struct bus_id id;

    node_open(&node, 0);
    ask_and_settle(&node, 1, &owner);
    id = owner.caller.id;
    cancel_by_id(&node, &id, "other", &stranger);
    CHECK_INT(stranger.error, CALLS_NOT_FOUND);
    CHECK_INT(node.player.n_canceled, 0);
    cancel_by_id(&node, &id, "local", &stopper);
    CHECK_INT(stopper.n_ends, 1);
    CHECK_INT(stopper.outcome, CALLS_KIND_CANCELED);
    CHECK_INT(stopper.error, CALLS_OK);
    CHECK_INT(node.player.n_canceled, 1);
    finish(&node, "5");
    CHECK_STR(peg_cstr(owner.result), "5");
    node_close(&node);
}

/* ---- a loop ends ---- */

static void close_second(struct node *node)
{
    world_close_loop(&node->loops[1]);
    settle(&node->loops[0]);
}

static void close_rest(struct node *node)
{
    world_close_loop(&node->loops[0]);
    close_hub(node);
}

TEST(a_caller_learns_that_the_loop_of_its_call_ends)
{
    struct node node;
    struct caller caller;
    struct caller later;

    node_open(&node, 0);
    ask_and_settle(&node, 0, &caller);
    close_second(&node);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_STR(peg_cstr(caller.message), CALLS_SHUTTING_DOWN);

    ask(&node, 0, &later);
    CHECK_INT(later.n_ends, 1);
    CHECK_INT(later.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_STR(peg_cstr(later.message), CALLS_SHUTTING_DOWN);
    close_rest(&node);
}

/* Each of them at a time when one of its posts is under way. */
TEST(callers_may_leave_while_the_loop_of_their_call_ends)
{
    struct node node;
    struct caller asked;
    struct caller asked_and_left;
    struct caller left;
    struct caller leaves_later;

    node_open(&node, 0);
    ask_and_settle(&node, 0, &left);
    ask_and_settle(&node, 0, &leaves_later);
    calls_caller_leave(&left.caller, CALLS_LEAVES);
    ask(&node, 0, &asked);
    ask(&node, 0, &asked_and_left);
    calls_caller_leave(&asked_and_left.caller, CALLS_LEAVES);
    world_close_loop(&node.loops[1]);
    calls_caller_leave(&leaves_later.caller, CALLS_LEAVES);
    calls_caller_leave(&asked.caller, CALLS_LEAVES);
    settle(&node.loops[0]);
    CHECK_INT(asked.n_ends + asked_and_left.n_ends + left.n_ends + leaves_later.n_ends, 0);
    close_rest(&node);
}

/* Its owner has ended it by other means, and nothing touches it any more. */
TEST(a_call_survives_that_the_loop_of_its_caller_ends)
{
    struct node node;
    struct caller asked;
    struct caller waits;
    struct caller here;

    node_open(&node, 0);
    ask_and_settle(&node, 1, &here);
    ask_and_settle(&node, 0, &waits);
    ask(&node, 0, &asked);
    world_close_loop(&node.loops[0]); /* and its provider with it */
    settle(&node.loops[1]);
    calls_caller_leave(&here.caller, CALLS_LEAVES);
    settle(&node.loops[1]);
    CHECK_INT(asked.n_ends + waits.n_ends, 0);
    CHECK(!asked.caller.relay && !waits.caller.relay);
    world_close_loop(&node.loops[1]);
    close_hub(&node);
}

/* ---- memory ---- */

/* The nth allocation fails while the caller asks and gets the end. */
static bool ended_without_memory(void (*open)(struct node *node, int64_t reattach_ms), unsigned nth)
{
    struct node node;
    struct caller caller;

    open(&node, 0);
    peg__mem_fail_at(nth);
    ask(&node, 0, &caller);
    settle_all(&node);
    peg__mem_fail_at(0);
    if (!caller.n_ends)
        finish(&node, "5");
    CHECK_INT(caller.n_ends, 1);
    if (caller.outcome == CALLS_KIND_REFUSED)
        CHECK_INT(caller.error, CALLS_OVERLOADED);
    else
        CHECK_STR(peg_cstr(caller.result), "5");
    node_close(&node);
    return caller.outcome == CALLS_KIND_REFUSED;
}

TEST(a_relay_without_memory_is_overloaded)
{
    unsigned n_refused = 0;

    for (unsigned nth = 1; nth <= 12; nth++)
        n_refused += ended_without_memory(node_open, nth);
    CHECK(n_refused >= 2); /* the relay, and what it keeps of the request */
}

TEST(a_call_without_memory_for_its_home_is_overloaded)
{
    unsigned n_refused = 0;

    for (unsigned nth = 1; nth <= 6; nth++)
        n_refused += ended_without_memory(node_open_fresh, nth);
    CHECK(n_refused >= 4); /* the home, the table that it is in, the call, and what it keeps */
}
