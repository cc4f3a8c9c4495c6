/* SPDX-License-Identifier: Apache-2.0 */

/* The path of a call on one loop, stage by stage. Histories of many loops are in test_sim.c. */

#include <time.h>

#include "../t.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/rpc/attached.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

TEST(a_call_goes_to_the_provider_and_its_result_to_the_caller)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    CHECK(player.n_handed == 1);
    CHECK_STR(peg_cstr(player.handed[0].tool), "add");
    CHECK_STR(peg_cstr(player.handed[0].payload), "{\"n\":1}");
    CHECK(caller.n_ends == 0);
    answer(&world, &player, &player.handed[0], "42");
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == CALLS_KIND_RESULT);
    CHECK_STR(peg_cstr(caller.result), "42");
    CHECK(player.n_acks == 1);
    CHECK(calls_count(world.calls) == 0);
    world_close(&world);
}

TEST(a_call_that_is_invalid_and_unhealthy_is_invalid)
{
    struct world world;
    struct caller caller = {.caller.events = &CALLER_EVENTS};
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = peg_cstr("{\"n\":\"one\"}"),
        .deadline_ns = NET_NEVER,
    };

    world_open(&world, &DEFAULTS);
    calls_start(world.calls, &request, &caller.caller);
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == CALLS_KIND_REFUSED);
    CHECK(caller.error == CALLS_VALIDATION);
    CHECK(strncmp(caller.message, "payload validation failed: ", 27) == 0);
    world_close(&world);
}

TEST(a_payload_with_a_member_twice_is_invalid)
{
    static const char *const payloads[] = {"{\"n\":[\"evil\"],\"n\":1}", "{\"n\":1,\"\\u006e\":2}"};

    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        struct world world;
        struct player player;
        struct caller caller = {.caller.events = &CALLER_EVENTS};
        const struct calls_request request = {
            .toolset = peg_cstr("sums"),
            .tool = peg_cstr("add"),
            .payload = peg_cstr(payloads[i]),
            .deadline_ns = NET_NEVER,
        };

        world_open(&world, &DEFAULTS);
        attach(&world, &player, "incarnation-1", 1);
        calls_start(world.calls, &request, &caller.caller);
        CHECK_INT(player.n_handed, 0);
        CHECK_INT(caller.n_ends, 1);
        CHECK_INT(caller.error, CALLS_VALIDATION);
        CHECK_STR(peg_cstr(caller.message), "payload validation failed: /n comes twice in its "
                                            "object; keep one of them (E_JSON_DUPLICATE_KEY)");
        world_close(&world);
    }
}

/* A call whose member is so many blanks and an x. */
static void call_with_blanks(struct world *world, struct caller *caller, const char *member,
                             size_t n_blanks)
{
    char payload[PEG_LIMIT_GATEWAY_INLINE_BYTES];
    const int len =
        snprintf(payload, sizeof(payload), "{\"n\":1,\"%s\":\"%*sx\"}", member, (int)n_blanks, "");
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = {payload, (size_t)len},
        .deadline_ns = NET_NEVER,
    };

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
}

TEST(a_pattern_that_would_hold_a_loop_up_is_decided_on_it)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_with_blanks(&world, &caller, "trimmed", 8100);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.error, CALLS_VALIDATION);
    world_close(&world);
}

TEST(a_pattern_that_nobody_decides_is_undecided_and_not_invalid)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_with_blanks(&world, &caller, "hard", 100);
    CHECK_INT(caller.n_ends, 0); /* a worker has it */
    await_end(&world, &caller);
    CHECK_INT(caller.outcome, CALLS_KIND_REFUSED);
    CHECK_INT(caller.error, CALLS_UNDECIDED);
    CHECK_STR(peg_cstr(caller.message),
              "the check of the payload reached its limit match_limit before it had a verdict: "
              "send less, or simplify the schema");
    world_close(&world);
}

TEST(an_unhealthy_toolset_fails_at_once)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_as(&world, &caller, "add", "", 0);
    CHECK(caller.n_ends == 1);
    CHECK(caller.error == CALLS_SERVICE_UNAVAILABLE);
    CHECK(strstr(caller.message, "no healthy providers for toolset \"sums\"") != NULL);
    world_close(&world);
}

TEST(a_tool_that_nobody_registered_is_not_found)
{
    struct world world;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    call_as(&world, &caller, "subtract", "", 0);
    CHECK(caller.error == CALLS_NOT_FOUND);
    CHECK_STR(peg_cstr(caller.message), "tool \"subtract\" not found in toolset \"sums\"");
    world_close(&world);
}

TEST(a_provider_gets_no_more_calls_than_it_has_credits)
{
    struct world world;
    struct player player;
    struct caller callers[3];

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 2);
    for (size_t i = 0; i < 3; i++)
        call_as(&world, &callers[i], "add", "", 0);
    CHECK(player.n_handed == 2);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 3);
    answer(&world, &player, &player.handed[1], "2");
    answer(&world, &player, &player.handed[2], "3");
    CHECK(callers[0].n_ends == 1 && callers[1].n_ends == 1 && callers[2].n_ends == 1);
    world_close(&world);
}

/* A second in the queue, and the message is sent once more. */
TEST(nothing_is_kept_of_a_call_that_waited_in_a_queue)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &second, "add", "", 0);
    look_at_all(&world); /* the second is not claimed: it is sent again */
    settle(&world);
    answer(&world, &player, &player.handed[0], "1");
    CHECK_INT(player.n_handed, 2);
    CHECK(stands(&world, &player.handed[1].id, BUS_CLAIM, 1));
    answer(&world, &player, &player.handed[1], "2");
    CHECK_STR(peg_cstr(second.result), "2");
    CHECK(!stands(&world, &player.handed[1].id, BUS_CLAIM, 1));
    CHECK(!stands(&world, &player.handed[1].id, BUS_RESULT, 0));
    world_close(&world);
}

static void check_kept(struct world *world, const char *key, int64_t keep_ms)
{
    struct player player;
    struct caller caller;
    const struct calls_assignment *assignment;

    attach(world, &player, "incarnation-1", 1);
    call_as(world, &caller, "add", key, 0);
    assignment = calls_assignment_find(world->calls, &player.handed[0].id, 1);
    CHECK_INT(
        calls_keep_until(&caller.caller.id, caller.deadline_ms, world->calls->options.keep_ms),
        caller.deadline_ms + keep_ms);
    CHECK_INT(calls_assignment_keep_until(assignment), caller.deadline_ms + keep_ms);
    answer(world, &player, &player.handed[0], "1");
    calls_provider_leave(player.provider);
    settle(world);
}

TEST(registers_are_kept_as_long_whoever_writes_them)
{
    struct world world;

    world_open(&world, &DEFAULTS);
    check_kept(&world, "", 15000);
    check_kept(&world, "a key", PEG_LIMIT_GATEWAY_KEEP_MS);
    world_close(&world);
}

TEST(a_full_queue_is_overloaded)
{
    const struct calls_options options = {.max_queue = 1};
    struct world world;
    struct player player;
    struct caller callers[3];

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    for (size_t i = 0; i < 3; i++)
        call_as(&world, &callers[i], "add", "", 0);
    CHECK(callers[2].n_ends == 1);
    CHECK(callers[2].error == CALLS_OVERLOADED);
    CHECK(callers[0].n_ends == 0 && callers[1].n_ends == 0);
    for (size_t i = 0; i < 2; i++)
        calls_caller_leave(&callers[i].caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_result_that_violates_its_schema_is_an_error_of_the_tool)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    answer(&world, &player, &player.handed[0], "\"many\"");
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == CALLS_KIND_ERROR);
    CHECK(caller.error == CALLS_OK);
    world_close(&world);
}

TEST(a_result_with_a_member_twice_is_an_error_of_the_tool)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    answer(&world, &player, &player.handed[0], "{\"k\":\"evil\",\"\\u006b\":\"safe\"}");
    CHECK(caller.n_ends == 1);
    CHECK(caller.outcome == CALLS_KIND_ERROR);
    CHECK_STR(peg_cstr(caller.failure),
              "malformed_result: result validation failed: /k comes twice in its object; keep one "
              "of them (E_JSON_DUPLICATE_KEY)");
    world_close(&world);
}

/* Says a result with server-data of so many bytes; is it being read by a worker now? */
static bool answer_with_data(struct world *world, struct player *player, char last, size_t n_bytes)
{
    struct peg__buf response = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    char *text = malloc(n_bytes);
    Pegboard__V1__ServerData data = PEGBOARD__V1__SERVER_DATA__INIT;
    Pegboard__V1__ServerData *all[] = {&data};
    const struct gw_answer_parts parts = {
        .result = PEG_LIT("1"), .server_data = all, .n_server_data = 1};
    const struct handed *handed = &player->handed[0];
    peg_str result;

    CHECK(text);
    memset(text, ' ', n_bytes);
    text[0] = '[';
    text[n_bytes - 1] = last;
    data.kind = (char *)peg__unconst("trace");
    data.data = (ProtobufCBinaryData){n_bytes, (uint8_t *)text};
    CHECK(gw_pack_answer(world->calls, &parts, &response, &result, NULL) == PEG_OK);
    CHECK(calls_provider_result(player->provider, &handed->id, handed->attempt,
                                peg__buf_view(&response), result, false));
    peg__buf_free(&response);
    free(text);
    return !player->n_acks; /* a result that is read at once is settled by now */
}

TEST(large_server_data_are_read_by_a_worker)
{
    static const struct {
        size_t n_bytes;
        char last;
        bool is_vetted;
        enum calls_outcome_kind outcome;
    } cases[] = {
        {PEG_LIMIT_GATEWAY_INLINE_BYTES / 2, ']', false, CALLS_KIND_RESULT},
        {PEG_LIMIT_GATEWAY_INLINE_BYTES + 1, ']', true, CALLS_KIND_RESULT},
        {PEG_LIMIT_GATEWAY_INLINE_BYTES + 1, '}', true, CALLS_KIND_ERROR},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world world;
        struct player player;
        struct caller caller;

        world_open(&world, &DEFAULTS);
        attach(&world, &player, "incarnation-1", 1);
        call_as(&world, &caller, "add", "", 0);
        CHECK(answer_with_data(&world, &player, cases[i].last, cases[i].n_bytes) ==
              cases[i].is_vetted);
        await_end(&world, &caller);
        CHECK_INT(caller.outcome, cases[i].outcome);
        world_close(&world);
    }
}

TEST(an_answer_to_a_call_that_has_ended_or_is_anothers_is_not_taken)
{
    struct world world;
    struct player player;
    struct player other;
    struct caller caller;
    const peg_str result = peg_cstr("\x12\x01"
                                    "1");

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    attach(&world, &other, "incarnation-2", 1);
    CHECK(!calls_provider_result(other.provider, &player.handed[0].id, 1, result, result, false));
    answer(&world, &player, &player.handed[0], "1");
    CHECK(!calls_provider_result(player.provider, &player.handed[0].id, 1, result, result, false));
    CHECK(caller.n_ends == 1);
    world_close(&world);
}

TEST(the_same_identity_joins_the_first_call_and_hears_the_same)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;
    struct caller late;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    CHECK(player.n_handed == 1);
    CHECK(!first.is_follower && second.is_follower);
    answer(&world, &player, &player.handed[0], "7");
    CHECK(first.n_ends == 1 && second.n_ends == 1);
    CHECK_STR(peg_cstr(first.result), "7");
    CHECK_STR(peg_cstr(second.result), "7");
    call_as(&world, &late, "add", "key-1", 0);
    CHECK(player.n_handed == 1);
    CHECK_STR(peg_cstr(late.result), "7");
    world_close(&world);
}

TEST(an_identity_with_another_payload_is_refused)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "peek", "key-1", 0);
    CHECK(second.n_ends == 1);
    CHECK(second.error == CALLS_VALIDATION);
    calls_caller_leave(&first.caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_caller_that_goes_before_the_start_cancels_the_call)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    calls_caller_leave(&waiting.caller, CALLS_LEAVES);
    settle(&world);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 1);
    CHECK(waiting.n_ends == 0);
    CHECK(calls_count(world.calls) == 0);
    world_close(&world);
}

TEST(a_caller_that_goes_while_it_runs_has_the_provider_told)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    settle(&world);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(calls_count(world.calls) == 0);
    world_close(&world);
}

/* Runs the loop until the provider was told to cancel something. */
static void await_cancel(struct world *world, const struct player *player)
{
    for (unsigned i = 0; i < 20000 && !player->n_canceled; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK_INT(player->n_canceled, 1);
}

enum { REATTACH_MS = 500 }; /* more than anything takes here, nearly always */

static bool was_found_again_in_time(int64_t reattach_ms)
{
    const struct calls_options options = {.reattach_ms = reattach_ms};
    struct world world;
    struct player player;
    struct caller lost;
    struct caller again;
    bool was_in_time;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &lost, "add", "key-1", 0);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    call_as(&world, &again, "add", "key-1", 0);
    sleep_ms(reattach_ms + 100);
    settle(&world);
    was_in_time = player.n_canceled == 0;

    answer(&world, &player, &player.handed[0], "7");

    if (was_in_time) {
        CHECK_INT(player.n_handed, 1);
        CHECK_INT(lost.n_ends, 0);
        CHECK_STR(peg_cstr(again.result), "7");
        CHECK_INT(calls_count(world.calls), 0);
    }
    world_close(&world);
    return was_in_time;
}

TEST(a_lost_caller_with_an_identity_finds_its_call_again)
{
    t_try_with_more_time(was_found_again_in_time, REATTACH_MS);
}

static bool was_waited_for(int64_t reattach_ms)
{
    const struct calls_options options = {.reattach_ms = reattach_ms};
    struct world world;
    struct player player;
    struct caller lost;
    bool was_in_time;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &lost, "add", "key-1", 0);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    was_in_time = player.n_canceled == 0;

    await_cancel(&world, &player);

    answer(&world, &player, &player.handed[0], "1");
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
    return was_in_time;
}

TEST(a_lost_caller_that_does_not_come_back_cancels_its_call)
{
    t_try_with_more_time(was_waited_for, REATTACH_MS);
}

static bool was_found_again_by_second_caller(int64_t reattach_ms)
{
    const struct calls_options options = {.reattach_ms = reattach_ms};
    struct world world;
    struct player player;
    struct caller first;
    struct caller lost;
    struct caller again;
    bool was_in_time;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &lost, "add", "key-1", 0);
    calls_caller_leave(&first.caller, CALLS_LEAVES);
    settle(&world);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    call_as(&world, &again, "add", "key-1", 0);
    calls_caller_leave(&again.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    was_in_time = player.n_canceled == 0;

    await_cancel(&world, &player);

    answer(&world, &player, &player.handed[0], "1");
    CHECK_INT(player.n_handed, 1);
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
    return was_in_time;
}

/* The first caller has gone, so the call is the second one's: it is waited for as well. */
TEST(a_lost_second_caller_finds_its_call_again)
{
    t_try_with_more_time(was_found_again_by_second_caller, REATTACH_MS);
}

static bool had_all_of_the_time(int64_t reattach_ms)
{
    const struct calls_options options = {.reattach_ms = reattach_ms};
    const int64_t most_of_it_ms = reattach_ms * 6 / 10;
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;
    struct caller again;
    bool was_in_time;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    calls_caller_leave(&first.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    call_as(&world, &second, "add", "key-1", 0);
    sleep_ms(most_of_it_ms);
    settle(&world);
    calls_caller_leave(&second.caller, CALLS_LOSES_CONNECTION);
    settle(&world);
    sleep_ms(most_of_it_ms); /* the first one's time is over */
    settle(&world);
    was_in_time = player.n_canceled == 0;
    call_as(&world, &again, "add", "key-1", 0);
    answer(&world, &player, &player.handed[0], "7");
    if (was_in_time)
        CHECK_STR(peg_cstr(again.result), "7");
    world_close(&world);
    return was_in_time;
}

/* While others wait, and shortly before the time of one who was lost before is over. */
TEST(whoever_is_lost_last_has_all_of_the_time_to_come_back)
{
    t_try_with_more_time(had_all_of_the_time, REATTACH_MS);
}

TEST(a_loop_that_drains_lets_a_lost_caller_find_its_call_again)
{
    struct world world;
    struct player player;
    struct caller lost;
    struct caller again;
    struct caller other;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &lost, "add", "key-1", 0);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    world.calls->is_draining = true;
    call_as(&world, &again, "add", "key-1", 0);
    call_as(&world, &other, "add", "key-2", 0);
    CHECK_INT(other.n_ends, 1);
    CHECK_INT(other.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_INT(again.n_ends, 0);
    answer(&world, &player, &player.handed[0], "7");
    CHECK_STR(peg_cstr(again.result), "7");
    CHECK_INT(player.n_handed, 1);
    world_close(&world);
}

TEST(a_lost_caller_without_an_identity_cancels_its_call_at_once)
{
    struct world world;
    struct player player;
    struct caller lost;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &lost, "add", "", 0);
    calls_caller_leave(&lost.caller, CALLS_LOSES_CONNECTION);
    settle(&world);

    CHECK_INT(player.n_canceled, 1);
    world_close(&world);
}

/* The second ask of a caller whose first one went to registers that are gone. */
static void call_again(struct world *world, struct caller *caller, const char *tool)
{
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr(tool),
        .payload = peg_cstr("{\"n\":1}"),
        .principal = peg_cstr("local"),
        .key = peg_cstr("key-1"),
        .may_have_run = true,
        .deadline_ns = NET_NEVER,
    };

    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
}

TEST(what_may_have_been_started_elsewhere_is_not_started_here)
{
    struct world world;
    struct player player;
    struct caller again;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_again(&world, &again, "add");

    CHECK_INT(again.error, CALLS_OUTCOME_UNKNOWN);
    CHECK(again.was_started);
    CHECK_INT(player.n_handed, 0);
    CHECK_INT(calls_count(world.calls), 0);
    world_close(&world);
}

TEST(what_may_have_been_started_elsewhere_is_followed_or_repeated_if_it_may_be)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller again;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_again(&world, &first, "peek");
    CHECK_INT(player.n_handed, 1);
    call_again(&world, &again, "peek");
    answer(&world, &player, &player.handed[0], "7");

    CHECK_INT(player.n_handed, 1);
    CHECK_STR(peg_cstr(first.result), "7");
    CHECK_STR(peg_cstr(again.result), "7");
    world_close(&world);
}

TEST(a_deadline_while_it_waits_is_a_timeout_that_never_started)
{
    struct world world;
    struct player player;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 20);
    await_end(&world, &waiting);
    CHECK(waiting.outcome == CALLS_KIND_TIMEOUT);
    CHECK(!waiting.was_started);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(player.n_handed == 1);
    world_close(&world);
}

/* Whatever there is no memory for at that moment: the right to start it is taken back when there
 * is. */
TEST(a_deadline_without_memory_is_a_timeout_that_never_started)
{
    const struct timespec pause = {.tv_nsec = 30000000};

    for (unsigned nth = 1; nth <= 4; nth++) {
        struct world world;
        struct player player;
        struct caller running;
        struct caller waiting;

        world_open(&world, &DEFAULTS);
        attach(&world, &player, "incarnation-1", 1);
        call_as(&world, &running, "add", "", 0);
        call_as(&world, &waiting, "add", "", 20);
        nanosleep(&pause, NULL);
        peg__mem_fail_at(nth);
        settle(&world);
        peg__mem_fail_at(0);
        await_end(&world, &waiting);
        CHECK_INT(waiting.error, CALLS_TIMEOUT);
        CHECK(!waiting.was_started);
        world_close(&world);
    }
}

/* The nth allocation fails when the time of a call is over. False if that was before it ran. */
static bool ended_without_memory(int64_t timeout_ms, unsigned nth, unsigned *n_notified)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller again;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", timeout_ms);
    was_in_time = player.n_handed == 1 && first.n_ends == 0;
    sleep_ms(timeout_ms + 20);
    peg__mem_fail_at(nth);
    settle(&world);
    peg__mem_fail_at(0);
    await_end(&world, &first);
    if (was_in_time) {
        answer(&world, &player, &player.handed[0], "1");
        call_as(&world, &again, "add", "key-1", 0);
        CHECK_INT(again.n_ends, 1);
        if (first.outcome !=
            CALLS_KIND_REFUSED) { /* there was memory for the words about its end */
            CHECK_INT(again.outcome, first.outcome);
            ++*n_notified;
        }
    }
    world_close(&world);
    return was_in_time;
}

/* Its caller hears nothing that the register does not hold, or who asks again hears something else.
 */
TEST(an_end_without_memory_is_the_same_for_who_asks_again)
{
    unsigned n_notified = 0;

    for (unsigned nth = 1; nth <= 8; nth++)
        for (int64_t timeout_ms = 200; !ended_without_memory(timeout_ms, nth, &n_notified);)
            CHECK((timeout_ms *= 4) < 10000);
    CHECK(n_notified > 1);
}

static void refuse(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                   int64_t keep_until_ms, struct bus_wait *wait)
{
    (void)bus;
    (void)key;
    (void)value;
    (void)keep_until_ms;
    wait->fn(wait, &(struct bus_answer){.status = PEG_EIO});
}

static bool told_that_nothing_is_known(int64_t timeout_ms)
{
    const struct calls_options options = {.settle_ms = 5 * timeout_ms};
    struct caller keyed;
    struct caller unkeyed;
    struct player player;
    struct world world;
    const struct bus_ops *ops;
    struct bus_ops broken;
    int64_t begun_ns;
    bool was_in_time;

    world_open(&world, &options);
    begun_ns = bus_now_ns(world.bus);
    attach(&world, &player, "incarnation-1", 2);
    call_as(&world, &keyed, "add", "key-1", timeout_ms);
    call_as(&world, &unkeyed, "add", "", timeout_ms);
    was_in_time = player.n_handed == 2;
    ops = world.bus->ops;
    broken = *ops;
    broken.put_if_absent = refuse;
    world.bus->ops = &broken;
    sleep_ms(2 * timeout_ms);
    settle(&world);
    was_in_time &= bus_now_ns(world.bus) - begun_ns < options.settle_ms * PEG_NS_PER_MS;
    if (was_in_time)
        CHECK_INT(keyed.n_ends + unkeyed.n_ends, 0);
    await_end(&world, &keyed);
    await_end(&world, &unkeyed);
    if (was_in_time) {
        CHECK(keyed.error == CALLS_TIMEOUT && keyed.was_started);
        CHECK(unkeyed.error == CALLS_OUTCOME_UNKNOWN && unkeyed.was_started);
        world.bus->ops = ops;
        call_as(&world, &keyed, "add", "key-1", 0);
        await_end(&world, &keyed);
        CHECK(keyed.outcome == CALLS_KIND_UNKNOWN);
        CHECK_INT(player.n_handed, 2);
    }
    world.bus->ops = ops;
    world_close(&world);
    return was_in_time;
}

/* Its callers are told that the node does not know, and the call ends when the bus answers again.
 */
TEST(callers_do_not_wait_without_end_for_a_bus_that_does_not_answer)
{
    t_try_with_more_time(told_that_nothing_is_known, 50);
}

static bool ran_until_its_deadline(int64_t timeout_ms)
{
    struct world world;
    struct player player;
    struct caller caller;
    bool was_in_time;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", timeout_ms);
    was_in_time = player.n_handed == 1;
    await_end(&world, &caller);
    if (was_in_time) {
        CHECK(caller.outcome == CALLS_KIND_UNKNOWN);
        CHECK(caller.was_started);
        CHECK(player.n_canceled == 1);
        answer(&world, &player, &player.handed[0], "1");
        CHECK(world.calls->n_late == 1);
    }
    world_close(&world);
    return was_in_time;
}

TEST(a_deadline_while_it_runs_leaves_the_outcome_unknown)
{
    t_try_with_more_time(ran_until_its_deadline, 200);
}

TEST(a_provider_that_says_it_did_not_start_has_the_call_run_elsewhere)
{
    struct world world;
    struct player players[2];
    struct caller caller;
    unsigned first;

    world_open(&world, &DEFAULTS);
    attach(&world, &players[0], "incarnation-1", 1);
    attach(&world, &players[1], "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    first = players[0].n_handed ? 0 : 1;
    calls_provider_nak(players[first].provider, &players[first].handed[0].id, 1, BUS_DRAINING);
    settle(&world);
    CHECK(players[1 - first].n_handed == 1);
    CHECK(players[1 - first].handed[0].attempt == 2);
    answer(&world, &players[1 - first], &players[1 - first].handed[0], "5");
    CHECK_STR(peg_cstr(caller.result), "5");
    world_close(&world);
}

/* It has nothing to do, so by its load it would be the first to be asked each time. */
TEST(a_provider_that_gives_calls_back_is_asked_again_only_when_nobody_else_is_left)
{
    struct world world;
    struct player worker;
    struct player refuser;
    struct caller busy[2];
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &worker, "incarnation-1", 4);
    call_as(&world, &busy[0], "add", "", 0);
    call_as(&world, &busy[1], "add", "", 0);
    CHECK(worker.n_handed == 2);
    attach(&world, &refuser, "incarnation-2", 4);
    call_as(&world, &caller, "add", "", 0);
    CHECK(refuser.n_handed == 1);
    calls_provider_nak(refuser.provider, &refuser.handed[0].id, 1, BUS_OVERLOADED);
    settle(&world);
    CHECK(refuser.n_handed == 1);
    CHECK(worker.n_handed == 3);
    CHECK(worker.handed[2].attempt == 2);
    calls_provider_nak(worker.provider, &worker.handed[2].id, 2, BUS_OVERLOADED);
    settle(&world);
    CHECK(refuser.n_handed == 2);
    CHECK(refuser.handed[1].attempt == 3);
    answer(&world, &refuser, &refuser.handed[1], "5");
    CHECK_STR(peg_cstr(caller.result), "5");
    calls_caller_leave(&busy[0].caller, CALLS_LEAVES);
    calls_caller_leave(&busy[1].caller, CALLS_LEAVES);
    world_close(&world);
}

/* Nothing was started, so somebody else may have it; but not it again, which has not changed. */
TEST(a_provider_with_another_version_of_the_toolset_is_not_asked_again)
{
    struct world world;
    struct player old;
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &old, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_nak(old.provider, &old.handed[0].id, 1, BUS_OUTDATED);
    settle(&world);
    CHECK(caller.error == CALLS_SERVICE_UNAVAILABLE);
    CHECK(!caller.was_started);
    CHECK(strstr(caller.message, "have other versions of it than the one that is registered"));
    CHECK_INT(old.n_handed, 1);

    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    if (old.n_handed == 2)
        calls_provider_nak(old.provider, &old.handed[1].id, 1, BUS_OUTDATED);
    settle(&world);
    CHECK_INT(other.n_handed, 1);
    answer(&world, &other, &other.handed[0], "5");
    CHECK_STR(peg_cstr(caller.result), "5");
    world_close(&world);
}

/* It answers pings, and has not said that it drains: only to those whom it is asked to run. */
TEST(a_provider_that_gives_calls_back_because_it_drains_is_not_asked_again)
{
    struct world world;
    struct player draining;
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &draining, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_nak(draining.provider, &draining.handed[0].id, 1, BUS_DRAINING);
    settle(&world);
    CHECK_INT(draining.n_handed, 1);
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK(!caller.was_started);
    CHECK_STR(peg_cstr(caller.message),
              "the providers of toolset \"sums\" that are attached give calls back because they "
              "drain: start another");

    attach(&world, &other, "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    if (draining.n_handed == 2)
        calls_provider_nak(draining.provider, &draining.handed[1].id, 1, BUS_DRAINING);
    settle(&world);
    answer(&world, &other, &other.handed[0], "5");
    CHECK_STR(peg_cstr(caller.result), "5");
    world_close(&world);
}

/* Whoever comes back again and again, and each time without the call, is attached and well. */
TEST(a_call_that_nobody_took_is_not_said_to_have_no_healthy_provider)
{
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    for (uint32_t attempt = 1; !caller.n_ends; attempt++) {
        CHECK(attempt <= PEG_LIMIT_GATEWAY_ATTEMPTS);
        calls_provider_nak(player.provider, &player.handed[attempt - 1].id, attempt, BUS_GONE);
        settle(&world);
    }
    CHECK_INT(caller.error, CALLS_SERVICE_UNAVAILABLE);
    CHECK_STR(peg_cstr(caller.message),
              "the providers of toolset \"sums\" that are attached did not take the call: try "
              "again");
    world_close(&world);
}

/* Of those who are left, one that is full may have room soon. */
TEST(that_a_provider_is_full_is_told_before_that_another_one_is_outdated)
{
    struct world world;
    struct player players[2];
    struct caller caller;
    unsigned first;

    world_open(&world, &DEFAULTS);
    attach(&world, &players[0], "incarnation-1", 1);
    attach(&world, &players[1], "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    first = players[0].n_handed ? 0 : 1;
    calls_provider_nak(players[first].provider, &players[first].handed[0].id, 1, BUS_OUTDATED);
    settle(&world);
    for (unsigned i = 0; i < 7; i++) {
        struct player *full = &players[1 - first];

        CHECK_INT(full->n_handed, i + 1);
        calls_provider_nak(full->provider, &full->handed[i].id, i + 2, BUS_OVERLOADED);
        settle(&world);
    }
    CHECK_INT(players[first].n_handed, 1);
    CHECK(caller.error == CALLS_OVERLOADED);
    world_close(&world);
}

TEST(that_a_provider_is_full_is_told_before_that_another_one_drains)
{
    struct world world;
    struct player players[2];
    unsigned n_naks[2] = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &players[0], "incarnation-1", 1);
    attach(&world, &players[1], "incarnation-2", 1);
    call_as(&world, &caller, "add", "", 0);
    for (unsigned attempt = 1; !caller.n_ends; attempt++) {
        const unsigned i = players[0].n_handed > n_naks[0] ? 0 : 1;

        CHECK(attempt <= PEG_LIMIT_GATEWAY_ATTEMPTS);
        calls_provider_nak(players[i].provider, &players[i].handed[n_naks[i]++].id, attempt,
                           attempt == 1 ? BUS_OVERLOADED : BUS_DRAINING);
        settle(&world);
    }
    CHECK_INT(caller.error, CALLS_OVERLOADED);
    world_close(&world);
}

TEST(a_call_that_waits_for_a_provider_that_has_become_silent_goes_to_another)
{
    struct world world;
    struct player silent;
    struct player well;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &silent, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    attach(&world, &well, "incarnation-2", 1);
    fall_silent(&world, "incarnation-1");
    for (unsigned i = 0; i < 5000 && !well.n_handed; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(&world);
        nanosleep(&pause, NULL);
    }
    CHECK(well.n_handed == 1);
    CHECK(well.handed[0].attempt == 2);
    answer(&world, &well, &well.handed[0], "6");
    CHECK_STR(peg_cstr(waiting.result), "6");
    /* Neither does it stay in the queue of the silent one, nor is what that one runs lost. */
    CHECK(silent.provider->queue.n == 0);
    answer(&world, &silent, &silent.handed[0], "7");
    CHECK_STR(peg_cstr(running.result), "7");
    CHECK(silent.n_handed == 1);
    world_close(&world);
}

TEST(a_call_that_waits_for_the_only_provider_when_it_becomes_silent_fails_soon)
{
    struct world world;
    struct player silent;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &silent, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 60000);
    fall_silent(&world, "incarnation-1");
    await_end(&world, &waiting);
    CHECK(waiting.error == CALLS_SERVICE_UNAVAILABLE);
    CHECK(!waiting.was_started);
    CHECK(running.n_ends == 0);
    calls_caller_leave(&running.caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_provider_that_comes_back_with_the_call_finishes_it)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    settle(&world);
    CHECK(caller.n_ends == 0);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &again, &player.handed[0], "9");
    CHECK_STR(peg_cstr(caller.result), "9");
    world_close(&world);
}

/* The Ack was on its way, or waited for others, when the stream broke. */
TEST(a_provider_that_comes_back_with_a_call_that_has_ended_may_forget_it)
{
    struct world world;
    struct player player;
    struct player again = {0};
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    answer(&world, &player, &player.handed[0], "9");
    CHECK(caller.n_ends == 1);
    calls_provider_leave(player.provider);
    settle(&world);
    attach_listing(&world, &again, "incarnation-1", 1, &player.handed[0]);
    answer(&world, &again, &player.handed[0], "9");
    settle(&world);
    CHECK_INT(again.n_acks, 1);
    CHECK(caller.n_ends == 1);
    CHECK(is_provider_idle(&again));
    world_close(&world);
}

TEST(a_provider_that_comes_back_without_the_call_never_had_it)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 1};
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(other.n_handed + again.n_handed == 1);
    CHECK((other.n_handed ? other : again).handed[0].attempt == 2);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_provider_that_may_have_been_elsewhere_proves_nothing_by_not_listing_a_call)
{
    struct world world;
    struct player player;
    struct player again = {.n_breaks = 2};
    struct player other;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(other.n_handed == 0);
    CHECK(caller.n_ends == 0);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    world_close(&world);
}

TEST(a_provider_that_does_not_come_back_leaves_the_outcome_unknown)
{
    const struct calls_options options = {.lease_ms = 300};
    struct world world;
    struct player player;
    struct caller caller;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "add", "", 0);
    calls_provider_leave(player.provider);
    await_end(&world, &caller);
    CHECK(caller.outcome == CALLS_KIND_UNKNOWN);
    CHECK(caller.was_started);
    world_close(&world);
}

TEST(an_idempotent_tool_is_run_again_when_its_provider_is_lost)
{
    const struct calls_options options = {.lease_ms = 300};
    struct world world;
    struct player player;
    struct player other;
    struct caller caller;

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &caller, "peek", "", 0);
    calls_provider_leave(player.provider);
    attach(&world, &other, "incarnation-2", 1);
    for (unsigned i = 0; i < 20000 && !other.n_handed; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(&world);
        nanosleep(&pause, NULL);
    }
    CHECK(other.n_handed == 1);
    answer(&world, &other, &other.handed[0], "3");
    CHECK_STR(peg_cstr(caller.result), "3");
    world_close(&world);
}

/* It may be run again by whoever has the toolset, which is another one's of that name by then. */
TEST(a_call_whose_provider_is_lost_does_not_go_to_the_next_owner_of_the_name)
{
    const struct calls_options brief = {.lease_ms = 100};
    struct world world;
    struct player lost;
    struct player bens;
    struct caller caller;

    world_open(&world, &brief);
    attach(&world, &lost, "incarnation-1", 1);
    call_as(&world, &caller, "peek", "", 0);
    CHECK_INT(lost.n_handed, 1);
    calls_provider_leave(lost.provider);
    publish(&world, make_toolset_of("ben", ""));
    attach(&world, &bens, "incarnation-2", 1);
    for (unsigned i = 0; i < 20000 && !caller.n_ends && !bens.n_handed; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(&world);
        nanosleep(&pause, NULL);
    }
    CHECK_INT(bens.n_handed, 0);
    CHECK_INT(caller.n_ends, 1);
    CHECK_INT(caller.outcome, CALLS_KIND_UNKNOWN);
    world_close(&world);
}

TEST(another_stream_of_an_incarnation_takes_the_place_of_the_first)
{
    struct world world;
    struct player player;
    struct player again = {0};

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    attach_listing(&world, &again, "incarnation-1", 1, NULL);
    CHECK(player.n_replaced == 1);
    CHECK(peg__quota_used(&world.calls->quotas.providers) == 1);
    world_close(&world);
}

TEST(a_call_is_awaited_and_stopped_by_its_id_only_by_who_asked_for_it)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller awaits = {.caller.events = &CALLER_EVENTS};
    struct caller stranger = {.caller.events = &CALLER_EVENTS};
    struct caller stops = {.caller.events = &CALLER_EVENTS};

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "key-1", 0);
    calls_await(world.calls, &first.caller.id, peg_cstr("local"), NET_NEVER, &awaits.caller);
    calls_await(world.calls, &first.caller.id, peg_cstr("other"), NET_NEVER, &stranger.caller);
    settle(&world);
    CHECK(stranger.n_ends == 1 && stranger.error == CALLS_NOT_FOUND);
    calls_cancel(world.calls, &first.caller.id, peg_cstr("local"), &stops.caller);
    settle(&world);
    CHECK(stops.n_ends == 1 && stops.outcome == CALLS_KIND_CANCELED);
    CHECK(player.n_canceled == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(first.n_ends == 1 && awaits.n_ends == 1);
    CHECK_STR(peg_cstr(awaits.result), "1");
    world_close(&world);
}

TEST(a_draining_provider_loses_no_call_and_gets_no_new_one)
{
    struct world world;
    struct player player;
    struct player other;
    struct caller running;
    struct caller waiting;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &running, "add", "", 0);
    call_as(&world, &waiting, "add", "", 0);
    attach(&world, &other, "incarnation-2", 1);
    calls_provider_drain(player.provider);
    settle(&world);
    CHECK(other.n_handed == 1);
    answer(&world, &player, &player.handed[0], "1");
    answer(&world, &other, &other.handed[0], "2");
    CHECK_STR(peg_cstr(running.result), "1");
    CHECK_STR(peg_cstr(waiting.result), "2");
    CHECK(is_provider_idle(&player));
    calls_provider_leave(player.provider);
    CHECK(peg__quota_used(&world.calls->quotas.providers) == 1);
    world_close(&world);
}
