/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/engine.h"

#include "../t.h"
#include "turns.h"

/* ---- fixture: a history as one line ---------------------------------------------------- */

/* Blocks by their ids, rounds as (call=answer call=answer); borrowed until the next call. */
static peg_str line(const struct peg__history *history)
{
    static char text[512];
    size_t len = 0;

    for (size_t i = 0; i < history->n; i++) {
        const struct peg__passage *passage = &history->passages[i];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", i ? " " : "");
        if (passage->block) {
            const peg_str id = peg_block_id(passage->block);

            len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s", PEG_ARG(id));
            continue;
        }
        for (size_t k = 0; k < passage->n_calls; k++) {
            const struct peg__exchange *call = &passage->calls[k];
            const peg_str id = peg_block_id(call->call);
            const peg_str answer = call->record ? peg_record_text(call->record) : peg__str("?");

            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s=%.*s", k ? " " : "(",
                                    PEG_ARG(id), PEG_ARG(answer));
        }
        len += (size_t)snprintf(text + len, sizeof(text) - len, ")");
    }
    return peg__strn(text, len);
}

static peg_str line_of(const struct t_turn *t, struct peg__history *history)
{
    peg_error error = {0};

    CHECK_INT(t->status, PEG_OK);
    CHECK_INT(peg__history_make(t->turn, PEG_UNANSWERED_SAY_SO, history, &error), PEG_OK);
    return line(history);
}

/* ---- order --------------------------------------------------------------------------- */

TEST(history_of_an_empty_turn_is_empty)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    CHECK_STR(line_of(&t, &history), "");

    CHECK_INT(history.n, 0);
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_keeps_messages_in_their_order)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_text(&t, PEG_BLOCK_SYSTEM, "s", "be kind");
    t_text(&t, PEG_BLOCK_USER, "u", "hello");
    t_text(&t, PEG_BLOCK_REASONING, "r", "hm");
    t_text(&t, PEG_BLOCK_ASSISTANT, "a", "hi");

    CHECK_STR(line_of(&t, &history), "s u r a");
    peg__history_free(&history);
    t_turn_free(&t);
}

/* G112 */
TEST(history_groups_adjacent_calls_with_their_answers)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_text(&t, PEG_BLOCK_USER, "u", "do both");
    t_call(&t, "b1", "c1", "echo", "{}");
    t_call(&t, "b2", "c2", "echo", "{}");
    t_answer(&t, "b2", "two");
    t_answer(&t, "b1", "one");

    CHECK_STR(line_of(&t, &history), "u (b1=one b2=two)");
    peg__history_free(&history);
    t_turn_free(&t);
}

/* G112, G132 */
TEST(history_moves_what_stood_between_a_call_and_its_answer_behind_the_round)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_call(&t, "b2", "c2", "echo", "{}");
    t_text(&t, PEG_BLOCK_USER, "u", "hurry");
    t_answer(&t, "b1", "one");
    t_text(&t, PEG_BLOCK_SYSTEM, "s", "be calm");
    t_answer(&t, "b2", "two");
    t_text(&t, PEG_BLOCK_ASSISTANT, "a", "done");

    CHECK_STR(line_of(&t, &history), "(b1=one b2=two) u s a");
    peg__history_free(&history);
    t_turn_free(&t);
}

/* G112 */
TEST(history_keeps_two_rounds_apart)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_answer(&t, "b1", "one");
    t_call(&t, "b2", "c2", "echo", "{}");
    t_answer(&t, "b2", "two");

    CHECK_STR(line_of(&t, &history), "(b1=one) (b2=two)");
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_keeps_calls_apart_that_words_of_the_model_separate)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_text(&t, PEG_BLOCK_ASSISTANT, "a", "and also");
    t_call(&t, "b2", "c2", "echo", "{}");
    t_answer(&t, "b1", "one");
    t_answer(&t, "b2", "two");

    CHECK_STR(line_of(&t, &history), "(b1=one) a (b2=two)");
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_finds_an_answer_that_stands_before_its_call)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_answer(&t, "b1", "one");
    t_text(&t, PEG_BLOCK_USER, "u", "odd");
    t_call(&t, "b1", "c1", "echo", "{}");

    CHECK_STR(line_of(&t, &history), "u (b1=one)");
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_keeps_a_result_without_its_call_as_a_block)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_answer(&t, "gone", "one");
    t_text(&t, PEG_BLOCK_USER, "u", "hello");
    CHECK_STR(peg__strn(line_of(&t, &history).ptr, 0), "");

    CHECK_INT(history.n, 2);
    CHECK_INT(peg_block_kind_of(history.passages[0].block), PEG_BLOCK_RESULT);
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_keeps_a_second_result_of_a_call_as_a_block)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_answer(&t, "b1", "one");
    t_answer(&t, "b1", "again");
    CHECK_STR(peg__strn(line_of(&t, &history).ptr, 8), "(b1=one)");

    CHECK_INT(history.n, 2);
    CHECK_STR(peg_record_text(peg_block_record(history.passages[1].block)), "again");
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_does_not_take_a_result_of_a_message_for_an_answer)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_text(&t, PEG_BLOCK_USER, "u", "hello");
    t_answer(&t, "u", "one");
    line_of(&t, &history);

    CHECK_INT(history.n, 2);
    peg__history_free(&history);
    t_turn_free(&t);
}

/* ---- calls that nobody answered ---------------------------------------------------------- */

/* G115 */
TEST(history_has_no_record_of_a_call_that_nobody_answered)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_call(&t, "b2", "c2", "echo", "{}");
    t_answer(&t, "b2", "two");

    CHECK_STR(line_of(&t, &history), "(b1=? b2=two)");
    peg__history_free(&history);
    t_turn_free(&t);
}

/* G115 */
TEST(history_refuses_a_call_that_nobody_answered_if_asked_to)
{
    struct t_turn t = t_turn_new();
    struct peg__history history = {.n = 7};
    peg_error error = {0};

    t_call(&t, "b1", "c1", "echo", "{}");

    CHECK_INT(peg__history_make(t.turn, PEG_UNANSWERED_REFUSE, &history, &error), PEG_ESTATE);
    CHECK_STR(peg_cstr(error.code), "E_ENGINE_UNANSWERED");
    CHECK(strstr(error.message, "'c1'"));
    CHECK(strstr(error.message, "'echo'"));
    CHECK_INT(history.n, 7);
    t_turn_free(&t);
}

/* ---- ids --------------------------------------------------------------------------------- */

TEST(history_keeps_ids_that_a_provider_takes)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;

    t_call(&t, "b1", "call_A-9", "echo", "{}");
    line_of(&t, &history);

    CHECK_STR(history.passages[0].calls[0].wire_id, "call_A-9");
    peg__history_free(&history);
    t_turn_free(&t);
}

static bool is_made(peg_str id)
{
    return id.len == 29 && memcmp(id.ptr, "call_", 5) == 0;
}

TEST(history_makes_repeated_ids_unique_and_keeps_the_first)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;
    const struct peg__exchange *calls;

    t_call(&t, "b1", "c1", "echo", "{}");
    t_call(&t, "b2", "c1", "echo", "{}");
    t_call(&t, "b3", "c1", "echo", "{}");
    line_of(&t, &history);

    calls = history.passages[0].calls;
    CHECK_STR(calls[0].wire_id, "c1");
    CHECK(is_made(calls[1].wire_id));
    CHECK(is_made(calls[2].wire_id));
    CHECK(!peg__str_eq(calls[1].wire_id, calls[2].wire_id));
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_makes_ids_for_those_that_no_provider_takes)
{
    static const char *const bad[] = {
        "a b", "caf\xC3\xA9", "x.y", "",
        "0123456789012345678901234567890123456789012345678901234567890123456789"};
    struct t_turn t = t_turn_new();
    struct peg__history history;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        t_call(&t, (const char[]){'b', (char)('0' + i), '\0'}, bad[i], "echo", "{}");
    line_of(&t, &history);

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (bad[i][0])
            CHECK(is_made(history.passages[0].calls[i].wire_id));
        CHECK(history.passages[0].calls[i].wire_id.len > 0);
    }
    peg__history_free(&history);
    t_turn_free(&t);
}

TEST(history_makes_the_same_ids_whatever_comes_after)
{
    struct t_turn t = t_turn_new();
    struct peg__history before;
    struct peg__history after;

    t_call(&t, "b1", "c 1", "echo", "{}");
    line_of(&t, &before);
    t_answer(&t, "b1", "one");
    t_call(&t, "b2", "c 1", "echo", "{}");
    line_of(&t, &after);

    CHECK(peg__str_eq(before.passages[0].calls[0].wire_id, after.passages[0].calls[0].wire_id));
    CHECK(!peg__str_eq(after.passages[0].calls[0].wire_id, after.passages[1].calls[0].wire_id));
    peg__history_free(&before);
    peg__history_free(&after);
    t_turn_free(&t);
}

TEST(history_tells_a_made_id_from_one_that_a_provider_happens_to_use)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;
    char taken[30];

    t_call(&t, "b1", "c 1", "echo", "{}");
    line_of(&t, &history);
    memcpy(taken, history.passages[0].calls[0].wire_id.ptr, sizeof(taken));
    peg__history_free(&history);
    t_turn_free(&t);

    t = t_turn_new();
    t_call(&t, "b0", taken, "echo", "{}");
    t_call(&t, "b1", "c 1", "echo", "{}");
    line_of(&t, &history);

    CHECK_STR(history.passages[0].calls[0].wire_id, taken);
    CHECK(is_made(history.passages[0].calls[1].wire_id));
    CHECK(!peg__str_is(history.passages[0].calls[1].wire_id, taken));
    peg__history_free(&history);
    t_turn_free(&t);
}

TORTURE(history_survives_any_allocation_failure)
{
    struct t_turn t = t_turn_new();
    struct peg__history history;
    peg_status status;

    t_text(&t, PEG_BLOCK_USER, "u", "hello");
    t_call(&t, "b1", "c1", "echo", "{}");
    t_call(&t, "b2", "c1", "echo", "{}");
    t_answer(&t, "b1", "one");
    status = t.status;
    if (!status) {
        status = peg__history_make(t.turn, PEG_UNANSWERED_SAY_SO, &history, NULL);
        if (!status)
            peg__history_free(&history);
    }
    t_turn_free(&t);
    return status;
}
