/* SPDX-License-Identifier: Apache-2.0 */

/* What became of a call: asked at one loop of a node about calls of the other, on the bus of one
 * process. The test runs both loops itself. */

#include "../t.h"

#include "../gateway/calls_world.h"

struct node {
    struct bus_local_hub *hub;
    struct calls_homes *homes;
    struct world loops[2];
    struct player player; /* attached to the first */
};

struct asked {
    struct calls_description description; /* the first member */
    unsigned n_ends;
    enum calls_error error;
};

static void on_described(struct calls_description *description, enum calls_error error)
{
    struct asked *asked = (struct asked *)description;

    asked->n_ends++;
    asked->error = error;
}

static void settle_all(struct node *node)
{
    for (unsigned i = 0; i < 4; i++) {
        settle(&node->loops[0]);
        settle(&node->loops[1]);
    }
}

static void node_open(struct node *node, uint32_t credits)
{
    struct calls_options options = {0};
    struct gw_toolset *toolset = make_toolset();

    *node = (struct node){0};
    CHECK(bus_local_hub_new(7, &node->hub, NULL) == PEG_OK);
    node->homes = calls_homes_new();
    options.homes = node->homes;
    CHECK(node->homes);
    world_open_loop(&node->loops[0], node->hub, 0, gw_toolset_ref(toolset), &options);
    world_open_loop(&node->loops[1], node->hub, 1, toolset, &options);
    if (credits)
        attach(&node->loops[0], &node->player, "incarnation-1", credits);
    settle_all(node);
}

static void node_close(struct node *node)
{
    world_close_loop(&node->loops[0]);
    world_close_loop(&node->loops[1]);
    bus_local_hub_free(node->hub);
    calls_homes_free(node->homes);
}

static const peg_str LOCAL = {"local", 5};
static const peg_str OTHER = {"token:other", 11};

/* At the second loop. */
static void describe(struct node *node, const struct bus_id *id, const peg_str *principal,
                     struct asked *asked)
{
    *asked = (struct asked){.description.fn = on_described};
    calls_describe(node->loops[1].calls, id, principal, &asked->description);
    settle_all(node);
    CHECK_INT(asked->n_ends, 1);
}

static struct bus_id id_of_key(struct node *node, const char *key)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"), .principal = LOCAL, .key = peg_cstr(key)};
    struct bus_id id;

    CHECK(calls_request_id(node->loops[0].calls, &request, &id));
    return id;
}

static struct bus_id call_keyed(struct node *node, struct caller *caller)
{
    call_as(&node->loops[0], caller, "add", "key", 5000);
    settle_all(node);
    return id_of_key(node, "key");
}

/* ---- calls with an identity ---- */

TEST(a_call_that_runs_says_who_claimed_it)
{
    struct node node;
    struct caller caller;
    struct asked asked;
    const struct calls_description *d = &asked.description;
    struct bus_id id;

    node_open(&node, 4);
    id = call_keyed(&node, &caller);

    describe(&node, &id, &LOCAL, &asked);

    CHECK_INT(asked.error, CALLS_OK);
    CHECK(d->has_identity && !d->has_ended && !d->is_other_epoch);
    CHECK(d->is_coordinator_alive);
    CHECK_STR(d->subject.toolset, "sums");
    CHECK_STR(d->subject.tool, "add");
    CHECK_STR(d->identity.principal, "local");
    CHECK(d->subject.admitted_ms > 0 && d->subject.admitted_ms <= bus_now_ms(node.loops[0].bus));
    CHECK_INT(d->identity.deadline_ms, caller.deadline_ms);
    CHECK_INT(d->n_claims, 1);
    CHECK_STR(peg_cstr(d->claims[0].owner), "incarnation-1");
    CHECK(d->claims[0].is_attached);
    CHECK_INT(d->claims[0].address.node, 7);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(a_call_that_waits_has_no_claim)
{
    struct node node;
    struct caller first;
    struct caller caller;
    struct asked asked;
    struct bus_id id;

    node_open(&node, 1);
    call_with(&node.loops[0], &first, "add", "{\"n\":1}"); /* takes the only place */
    id = call_keyed(&node, &caller);

    describe(&node, &id, &LOCAL, &asked);

    CHECK_INT(asked.error, CALLS_OK);
    CHECK(asked.description.has_identity && !asked.description.has_ended);
    CHECK_INT(asked.description.n_claims, 0);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(a_call_that_has_ended_says_how)
{
    struct node node;
    struct caller caller;
    struct asked asked;
    struct bus_id id;

    node_open(&node, 4);
    id = call_keyed(&node, &caller);
    answer(&node.loops[0], &node.player, &node.player.handed[0], "5");
    settle_all(&node);
    CHECK_INT(caller.n_ends, 1);

    describe(&node, &id, &LOCAL, &asked);

    CHECK_INT(asked.error, CALLS_OK);
    CHECK(asked.description.has_ended);
    CHECK_INT(asked.description.outcome.kind, CALLS_KIND_RESULT);
    CHECK_INT(asked.description.n_claims, 1);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(a_call_of_another_principal_is_not_found_but_by_an_operator)
{
    struct node node;
    struct caller caller;
    struct asked asked;
    struct bus_id id;

    node_open(&node, 4);
    id = call_keyed(&node, &caller);

    describe(&node, &id, &OTHER, &asked);
    CHECK_INT(asked.error, CALLS_NOT_FOUND);
    calls_description_clear(&asked.description);

    describe(&node, &id, NULL, &asked);
    CHECK_INT(asked.error, CALLS_OK);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(an_identity_that_was_never_used_is_not_found)
{
    struct node node;
    struct asked asked;
    struct bus_id id;

    node_open(&node, 4);
    id = id_of_key(&node, "nobody's");
    describe(&node, &id, NULL, &asked);
    CHECK_INT(asked.error, CALLS_NOT_FOUND);
    calls_description_clear(&asked.description);
    node_close(&node);
}

/* ---- calls without ---- */

TEST(a_call_without_identity_is_described_by_the_loop_that_has_it)
{
    struct node node;
    struct caller caller;
    struct asked asked;
    const struct calls_description *d = &asked.description;

    node_open(&node, 4);
    call_with(&node.loops[0], &caller, "add", "{\"n\":1}");
    settle_all(&node);

    describe(&node, &caller.caller.id, &LOCAL, &asked);
    CHECK_INT(asked.error, CALLS_OK);
    CHECK_STR(d->subject.toolset, "sums");
    CHECK_STR(d->subject.tool, "add");
    CHECK_STR(d->identity.principal, "local");
    CHECK_INT(d->identity.coordinator.loop, 0);
    CHECK_INT(d->n_claims, 1);
    CHECK_STR(peg_cstr(d->claims[0].owner), "incarnation-1");
    calls_description_clear(&asked.description);

    describe(&node, &caller.caller.id, &OTHER, &asked);
    CHECK_INT(asked.error, CALLS_NOT_FOUND);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(a_call_without_identity_that_has_ended_is_not_found)
{
    struct node node;
    struct caller caller;
    struct asked asked;
    struct bus_id id;

    node_open(&node, 4);
    call_with(&node.loops[0], &caller, "add", "{\"n\":1}");
    id = caller.caller.id;
    answer(&node.loops[0], &node.player, &node.player.handed[0], "5");
    settle_all(&node);
    describe(&node, &id, NULL, &asked);
    CHECK_INT(asked.error, CALLS_NOT_FOUND);
    calls_description_clear(&asked.description);
    node_close(&node);
}

TEST(an_id_of_a_loop_that_is_not_there_is_not_found)
{
    struct node node;
    struct asked asked;
    struct bus_id id = {.len = 16, .bytes = {1, 2, 3}};

    node_open(&node, 4);
    id.bytes[14] = 63;
    describe(&node, &id, NULL, &asked);
    CHECK_INT(asked.error, CALLS_NOT_FOUND);
    calls_description_clear(&asked.description);
    node_close(&node);
}

/* ---- those that do not wait ---- */

TEST(who_asks_may_leave_before_the_answer)
{
    struct node node;
    struct caller caller;
    struct asked asked = {.description.fn = on_described};
    struct asked keyed = {.description.fn = on_described};
    struct bus_id id;

    node_open(&node, 4);
    call_with(&node.loops[0], &caller, "add", "{\"n\":1}");
    id = id_of_key(&node, "key");
    calls_describe(node.loops[1].calls, &caller.caller.id, NULL, &asked.description);
    calls_describe(node.loops[1].calls, &id, NULL, &keyed.description);
    calls_description_clear(&asked.description);
    calls_description_clear(&keyed.description);
    settle_all(&node);
    CHECK_INT(asked.n_ends, 0);
    node_close(&node);
}

TEST(a_loop_may_end_while_it_is_asked)
{
    struct node node;
    struct caller caller;
    struct asked asked = {.description.fn = on_described};

    node_open(&node, 0);
    attach(&node.loops[1], &node.player, "incarnation-1", 4);
    settle_all(&node);
    call_with(&node.loops[0], &caller, "add", "{\"n\":1}");
    calls_describe(node.loops[1].calls, &caller.caller.id, NULL, &asked.description);
    world_close_loop(&node.loops[0]);
    settle(&node.loops[1]);
    calls_description_clear(&asked.description);
    world_close_loop(&node.loops[1]);
    bus_local_hub_free(node.hub);
    calls_homes_free(node.homes);
}

/* ---- memory ---- */

TEST(a_description_without_memory_is_overloaded)
{
    unsigned n_overloaded = 0;

    for (unsigned nth = 1; nth <= 6; nth++) {
        struct node node;
        struct caller caller;
        struct asked asked = {.description.fn = on_described};

        node_open(&node, 4);
        call_with(&node.loops[0], &caller, "add", "{\"n\":1}");
        peg__mem_fail_at(nth);
        calls_describe(node.loops[1].calls, &caller.caller.id, &LOCAL, &asked.description);
        settle_all(&node);
        peg__mem_fail_at(0);
        CHECK_INT(asked.n_ends, 1);
        CHECK(asked.error == CALLS_OK || asked.error == CALLS_OVERLOADED);
        n_overloaded += asked.error == CALLS_OVERLOADED;
        calls_description_clear(&asked.description);
        node_close(&node);
    }
    CHECK(n_overloaded >= 3); /* the principal, the question, its answer */
}
