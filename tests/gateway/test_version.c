/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider is handed when its toolset is registered anew while its stream stays. */

#include "t.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

#define INTEGER "{\"type\":\"integer\"}"
#define N "\"n\":{\"type\":\"integer\"}"
#define M "\"m\":{\"type\":\"integer\"}"
#define INPUT(members, required)                                                                   \
    "{\"type\":\"object\",\"properties\":{" members "},\"required\":[" required                    \
    "],\"additionalProperties\":false}"

static struct gw_toolset *toolset_taking(const char *input)
{
    return make_toolset_from("local", "", input, INTEGER);
}

/* It has answered the ping that asks whether it is well with the other schemas. */
static void change_to(struct world *world, struct player *player, struct gw_toolset *toolset)
{
    publish(world, toolset);
    if (player->n_pings)
        calls_provider_pong(player->provider);
    settle(world);
}

static void open_with(struct world *world, struct player *player, const char *input)
{
    world_open(world, &DEFAULTS);
    publish(world, toolset_taking(input));
    attach(world, player, "incarnation-1", 4);
}

static void check_run(struct world *world, struct player *player, const char *tool,
                      const char *payload)
{
    const unsigned n = player->n_handed;
    struct caller caller;

    call_with(world, &caller, tool, payload);
    if (caller.n_ends)
        T_FAIL("%s %s: %s", tool, payload, caller.message);
    CHECK_INT(player->n_handed, n + 1);
    answer(world, player, &player->handed[n], "1");
    CHECK_STR(peg_cstr(caller.result), "1");
}

static void check_nobody_runs(struct world *world, const char *tool, const char *payload)
{
    struct caller caller;

    call_with(world, &caller, tool, payload);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK(!caller.was_started);
    CHECK(strstr(caller.message, "have other versions of it than the one that is registered"));
}

TEST(an_earlier_stream_gets_only_tools_that_ask_for_nothing_new)
{
    struct world world;
    struct player old;

    open_with(&world, &old, INPUT(N, "\"n\""));
    change_to(&world, &old, toolset_taking(INPUT(N "," M, "\"n\",\"m\"")));
    check_nobody_runs(&world, "add", "{\"n\":1,\"m\":2}");
    CHECK_INT(old.n_handed, 0);
    check_run(&world, &old, "peek", "{\"n\":1}");
    world_close(&world);
}

/* Schemas that are open take what they do not know. */
TEST(an_earlier_stream_is_not_handed_a_member_that_became_required_even_if_it_would_take_it)
{
    struct world world;
    struct player old;

    open_with(&world, &old, "{\"type\":\"object\"}");
    change_to(&world, &old, toolset_taking("{\"type\":\"object\",\"required\":[\"sure\"]}"));
    check_nobody_runs(&world, "add", "{\"sure\":true}");
    world_close(&world);
}

TEST(an_earlier_stream_gets_arguments_that_fit_the_schema_it_serves)
{
    struct world world;
    struct player old;

    open_with(&world, &old, INPUT(N, "\"n\""));
    change_to(&world, &old, toolset_taking(INPUT(N "," M, "")));
    check_run(&world, &old, "add", "{\"n\":1}");
    check_nobody_runs(&world, "add", "{\"n\":1,\"m\":2}");
    check_nobody_runs(&world, "add", "{}");
    world_close(&world);
}

TEST(an_earlier_stream_is_not_handed_a_tool_whose_results_have_another_schema)
{
    struct world world;
    struct player old;

    open_with(&world, &old, INPUT(N, ""));
    change_to(&world, &old, make_toolset_from("local", "", INPUT(N, ""), "{\"type\":\"string\"}"));
    check_nobody_runs(&world, "add", "{}");
    change_to(&world, &old, make_toolset_from("local", "", INPUT(N, ""), ""));
    check_run(&world, &old, "add", "{}");
    world_close(&world);
}

TEST(what_an_earlier_stream_does_not_serve_goes_to_a_later_one)
{
    struct world world;
    struct player old[9];
    struct player new;

    world_open(&world, &DEFAULTS);
    for (unsigned i = 0; i < 9; i++) {
        char name[] = "incarnation-0";

        name[sizeof(name) - 2] = (char)('0' + i);
        attach(&world, &old[i], name, 4);
    }
    publish(&world, toolset_taking(INPUT(N "," M, "\"m\"")));
    for (unsigned i = 0; i < 9; i++)
        calls_provider_pong(old[i].provider);
    attach(&world, &new, "incarnation-new", 4);
    for (unsigned i = 0; i < 20; i++)
        check_run(&world, &new, "add", "{\"m\":2}");
    world_close(&world);
}

/* It said Hello with what it has, and somebody registered another one before it was attached. */
TEST(a_hello_serves_its_own_registration_however_soon_another_one_follows)
{
    struct world world;
    struct player old = {0};
    struct gw_toolset *mine = toolset_taking(INPUT(N, ""));
    const struct calls_attach hello = {.toolset = &mine->of_calls,
                                       .incarnation = peg_cstr("incarnation-1"),
                                       .credits = 1,
                                       .number = 1};

    world_open(&world, &DEFAULTS);
    publish(&world, toolset_taking(INPUT(N "," M, "\"m\"")));
    CHECK_INT(calls_provider_attach(world.calls, &hello, &PLAYER_EVENTS, &old, &old.provider, NULL),
              PEG_OK);
    gw_toolset_unref(mine);
    settle(&world);
    check_nobody_runs(&world, "add", "{\"m\":2}");
    check_run(&world, &old, "peek", "{\"n\":1}");
    world_close(&world);
}

TEST(a_stream_that_offers_what_is_registered_serves_it_at_once)
{
    struct world world;
    struct player player;

    open_with(&world, &player, INPUT(N, ""));
    calls_provider_begin_offer(player.provider);
    publish(&world, toolset_taking(INPUT(N "," M, "\"m\"")));
    CHECK_INT(player.n_pings, 0);
    check_run(&world, &player, "add", "{\"m\":1}"); /* the word of its own Offer comes later */
    calls_provider_end_offer(player.provider, &world.toolset->of_calls);
    settle(&world);
    check_run(&world, &player, "add", "{\"m\":2}");
    world_close(&world);
}

TEST(a_stream_whose_offer_is_refused_serves_what_it_did)
{
    struct world world;
    struct player player;

    open_with(&world, &player, INPUT(N, ""));
    calls_provider_begin_offer(player.provider);
    calls_provider_end_offer(player.provider, NULL);
    check_run(&world, &player, "add", "{\"n\":1}");
    change_to(&world, &player, toolset_taking(INPUT(N "," M, "\"m\"")));
    check_nobody_runs(&world, "add", "{\"m\":2}");
    world_close(&world);
}

TEST(a_stream_serves_a_revision_that_changes_no_schema)
{
    struct world world;
    struct player player;

    open_with(&world, &player, INPUT(N, ""));
    change_to(&world, &player, make_toolset_from("local", "other words", INPUT(N, ""), INTEGER));
    CHECK(player.provider->serves == &world.toolset->of_calls);
    check_run(&world, &player, "add", "{\"n\":1}");
    world_close(&world);
}
