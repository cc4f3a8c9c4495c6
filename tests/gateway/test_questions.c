/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: what a running call asks, and what is answered, are found although every hint is lost; and
 * what no register of ours holds is no question. */

#include "../t.h"
#include "base/text/str.h"
#include "calls_world.h"

static const struct calls_options DEFAULTS;
static const char ASKED[] = "{\"gate-1\":{\"method\":\"roots/list\"}}";

/* ---- who asks, and who is asked ---- */

static uint32_t last_number; /* of the question that a caller was told of */
static unsigned n_told;
static bool is_full; /* callers cannot be told */
static unsigned n_answered;
static struct {
    uint32_t number;
    char responses[64];
    char refusal[128];
} last_answer;

static bool on_question(struct calls_caller *caller, uint32_t number, peg_str requests)
{
    (void)caller;
    if (is_full)
        return false;
    CHECK_STR(requests, ASKED);
    last_number = number;
    n_told++;
    return true;
}

static const struct calls_caller_events ASKED_EVENTS = {
    .on_admitted = caller_admitted,
    .on_end = caller_end,
    .on_question = on_question,
};

static bool on_answer(void *user, const struct calls_answered *answered)
{
    (void)user;
    if (is_full)
        return false;
    n_answered++;
    last_answer.number = answered->number;
    snprintf(last_answer.responses, sizeof(last_answer.responses), "%.*s",
             (int)answered->responses.len, answered->responses.ptr);
    snprintf(last_answer.refusal, sizeof(last_answer.refusal), "%.*s", (int)answered->refusal.len,
             answered->refusal.ptr);
    return true;
}

static void begin(struct world *world, struct player *player, struct caller *caller)
{
    static struct calls_provider_events events;
    const struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .payload = peg_cstr("{\"n\":1}"),
        .principal = peg_cstr("local"),
        .key = peg_cstr("once"),
        .deadline_ns = NET_NEVER,
        .can_be_asked = true,
    };

    last_number = n_told = n_answered = 0;
    is_full = false;
    world_open(world, &DEFAULTS);
    attach(world, player, "incarnation-1", 1);
    events = PLAYER_EVENTS;
    events.answer = on_answer;
    player->provider->events = &events;
    *caller = (struct caller){.caller = {.events = &ASKED_EVENTS, .can_be_asked = true}};
    calls_start(world->calls, &request, &caller->caller);
    settle(world);
    CHECK_INT(player->n_handed, 1);
}

static bool ask(struct player *player, uint32_t number)
{
    return calls_provider_input(player->provider, &player->handed[0].id, 1, number,
                                peg_cstr(ASKED));
}

static void await_count(struct world *world, const unsigned *count, unsigned n)
{
    for (unsigned i = 0; i < 20000 && *count < n; i++) {
        settle(world);
        sleep_ms(1);
    }
    CHECK_INT(*count, n);
}

/* ---- who answers ---- */

struct replier {
    struct calls_replying replying; /* the first member */
    unsigned n_ends;
    enum calls_error error;
};

static void on_replied(struct calls_replying *replying, enum calls_error error, peg_str words)
{
    (void)words;
    ((struct replier *)replying)->n_ends++;
    ((struct replier *)replying)->error = error;
}

static enum calls_error reply(struct world *world, const struct player *player, uint32_t number,
                              const char *principal, const char *responses)
{
    struct replier replier = {.replying.fn = on_replied};

    calls_reply(world->calls,
                &(struct calls_reply_request){.id = &player->handed[0].id,
                                              .number = number,
                                              .principal = peg_cstr(principal),
                                              .responses = peg_cstr(responses),
                                              .refusal = peg_cstr("no")},
                &replier.replying);
    settle(world);
    CHECK_INT(replier.n_ends, 1);
    return replier.error;
}

/* ---- tests ---- */

TEST(a_question_is_found_although_its_hint_is_lost)
{
    struct world world;
    struct player player;
    struct caller caller;

    begin(&world, &player, &caller);
    lost_kind = BUS_DELTA;
    CHECK(ask(&player, 1));
    await_count(&world, &n_told, 1);
    CHECK_INT(last_number, 1);
    world_close(&world);
}

TEST(so_is_its_answer)
{
    struct world world;
    struct player player;
    struct caller caller;

    begin(&world, &player, &caller);
    CHECK(ask(&player, 1));
    await_count(&world, &n_told, 1);
    lost_kind = BUS_DELTA;
    CHECK_INT(reply(&world, &player, 1, "local", "{\"gate-1\":1}"), CALLS_OK);
    await_count(&world, &n_answered, 1);
    CHECK_STR(peg_cstr(last_answer.responses), "{\"gate-1\":1}");
    answer(&world, &player, &player.handed[0], "1");
    await_end(&world, &caller);
    world_close(&world);
}

TEST(a_caller_and_a_provider_that_have_no_room_are_told_later)
{
    struct world world;
    struct player player;
    struct caller caller;

    begin(&world, &player, &caller);
    is_full = true;
    CHECK(ask(&player, 1));
    settle(&world);
    is_full = false;
    await_count(&world, &n_told, 1);
    is_full = true;
    CHECK_INT(reply(&world, &player, 1, "local", ""), CALLS_OK);
    settle(&world);
    is_full = false;
    await_count(&world, &n_answered, 1);
    CHECK_STR(peg_cstr(last_answer.refusal), "no");
    world_close(&world);
}

TEST(the_question_of_an_earlier_break_has_the_answer_that_it_got)
{
    struct world world;
    struct player player;
    struct caller caller;

    begin(&world, &player, &caller);
    CHECK(ask(&player, 1));
    await_count(&world, &n_told, 1);
    CHECK_INT(reply(&world, &player, 1, "local", "{\"first\":1}"), CALLS_OK);
    await_count(&world, &n_answered, 1);
    CHECK(ask(&player, 1)); /* the frame was lost with its stream */
    await_count(&world, &n_answered, 2);
    CHECK_STR(peg_cstr(last_answer.responses), "{\"first\":1}");
    CHECK(ask(&player, 2));
    await_count(&world, &n_told, 2);
    CHECK_INT(last_number, 2);
    world_close(&world);
}

TEST(only_the_first_answer_of_the_calls_principal_is_taken)
{
    struct world world;
    struct player player;
    struct caller caller;

    begin(&world, &player, &caller);
    CHECK_INT(reply(&world, &player, 1, "local", "{}"), CALLS_NOT_FOUND);
    CHECK(ask(&player, 1));
    await_count(&world, &n_told, 1);
    CHECK_INT(reply(&world, &player, 1, "another", "{}"), CALLS_NOT_FOUND);
    CHECK_INT(reply(&world, &player, 2, "local", "{}"), CALLS_NOT_FOUND);
    CHECK_INT(reply(&world, &player, 1, "local", "[]"), CALLS_VALIDATION);
    CHECK_INT(reply(&world, &player, 1, "local", "{"), CALLS_VALIDATION);
    CHECK_INT(reply(&world, &player, 1, "local", "{}"), CALLS_OK);
    CHECK_INT(reply(&world, &player, 1, "local", "{}"), CALLS_CONFLICT);
    CHECK_INT(n_answered, 1);
    world_close(&world);
}

TEST(an_answer_that_is_forgotten_says_nothing)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct replier replier = {.replying.fn = on_replied};

    begin(&world, &player, &caller);
    calls_replying_forget(&replier.replying); /* it waits for nothing */
    world_close(&world);
    CHECK_INT(replier.n_ends, 0);
}

static bool reads_question(const char *text)
{
    struct calls_question question;
    struct peg__blob *blob = peg__blob_copy(peg_cstr(text));
    const bool is_one = calls_question_read(blob, &question);

    peg__blob_unref(blob);
    return is_one;
}

static bool reads_reply(const char *text)
{
    struct calls_reply reply;
    struct peg__blob *blob = peg__blob_copy(peg_cstr(text));
    const bool is_one = calls_reply_read(blob, &reply);

    peg__blob_unref(blob);
    return is_one;
}

TEST(a_register_that_somebody_else_wrote_is_no_question_and_no_reply)
{
    static const char *const bad[] = {
        "", "a", "a 1", "a 1 2", "a 1 x\n", "a  2\n", "a -1 2\n", "a 1 99999999999\n", "a 1 2 3\n"};

    CHECK(reads_question("a 1 2\n{}"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (reads_question(bad[i]))
            T_FAIL("\"%s\" is taken for a question", bad[i]);
    CHECK(reads_reply("r 1.0 1\n{}") && reads_reply("n 1.0 1\nno") && reads_reply("w 1.0 1\n"));
    CHECK(!reads_reply("") && !reads_reply("r") && !reads_reply("x 1\n") && !reads_reply("\n"));
    CHECK(!calls_question_read(NULL, &(struct calls_question){0}));
    CHECK(!calls_reply_read(NULL, &(struct calls_reply){0}));
}

TORTURE(questions_and_replies_are_read_as_they_were_written)
{
    const struct calls_question asked = {.incarnation = PEG_LIT("incarnation-1"),
                                         .attempt = 1,
                                         .number = 2,
                                         .requests = PEG_LIT("{}")};
    const struct calls_reply replied = {
        .by = {7, 1}, .unique = 3, .kind = CALLS_REPLY_REFUSAL, .text = PEG_LIT("no")};
    struct peg__blob *question = calls_question_write(&asked);
    struct peg__blob *value = calls_reply_write(&replied);
    const peg_status status = question && value ? PEG_OK : PEG_ENOMEM;
    struct calls_question read;
    struct calls_reply reply_read;

    if (question) {
        CHECK(calls_question_read(question, &read));
        CHECK(read.attempt == 1 && read.number == 2);
        CHECK_STR(read.incarnation, "incarnation-1");
        CHECK_STR(read.requests, "{}");
    }
    if (value) {
        CHECK(calls_reply_read(value, &reply_read));
        CHECK_INT(reply_read.kind, CALLS_REPLY_REFUSAL);
        CHECK_STR(reply_read.text, "no");
    }
    peg__blob_unref(question);
    peg__blob_unref(value);
    return status;
}
