/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/script.h"

#include "../turn/fixture.h"
#include "engine/reply.h"

/* ---- fixture: a stage whose model follows a script -------------------------------------- */

struct play {
    struct stage stage;
    peg_script *script;
    peg_error error;
};

static void answer_words(const peg_event *event, void *user)
{
    struct stage *stage = user;

    if (event->kind == PEG_EVENT_MESSAGE || event->kind == PEG_EVENT_THOUGHT)
        put_event(stage, "%s +%.*s%s; ", peg_event_name(event->kind),
                  PEG_ARG(event->u.stream.delta), event->u.stream.is_complete ? " done" : "");
    if (event->kind == PEG_EVENT_TOOL_ARGS)
        put_event(stage, "args %.*s +%.*s; ", PEG_ARG(event->u.tool_args.call_id),
                  PEG_ARG(event->u.tool_args.delta));
}

static peg_status open_play(struct play *p, const char *text)
{
    peg_status status;

    memset(p, 0, sizeof(*p));
    status = stage_open(&p->stage);
    if (!status)
        status = peg_script_new(peg_cstr(text), &p->script, &p->error);
    p->stage.config.loop.engine = peg_script_engine(p->script);
    p->stage.config.on_event = answer_words;
    return status;
}

static void close_play(struct play *p)
{
    stage_close(&p->stage);
    peg_script_unref(p->script);
}

/* Runs the whole of it. */
static peg_turn *played(struct play *p, const char *text)
{
    CHECK_STATUS(open_play(p, text), PEG_OK, p->error);
    CHECK_INT(stage_run(&p->stage), PEG_OK);
    return p->stage.turn;
}

static void check_refused(const char *text, const char *where)
{
    peg_script *script = NULL;
    peg_error error;

    CHECK_INT(peg_script_new(peg_cstr(text), &script, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_SCRIPT");
    CHECK_STR(peg__str(error.where), where);
    CHECK(!script);
}

/* ---- steps --------------------------------------------------------------------------------- */

TEST(a_script_is_followed_step_by_step)
{
    struct play p;
    const peg_turn *turn = played(&p, "- reasoning: the user wants an echo\n"
                                      "  calls: [{name: echo, args: {x: 1}}]\n"
                                      "- text: There it is.\n");

    CHECK_INT(p.stage.outcome.end, PEG_END_ACK);
    CHECK_INT(peg_turn_len(turn), 5);
    CHECK_STR(peg_block_text(peg_turn_at(turn, 1)), "the user wants an echo");
    CHECK_STR(peg_block_tool(peg_turn_at(turn, 2)), "echo");
    CHECK_STR(peg_block_args(peg_turn_at(turn, 2)), "{\"x\":1}");
    CHECK_STR(peg_block_call_id(peg_turn_at(turn, 2)), "call_1_1");
    CHECK_INT(peg_block_kind_of(peg_turn_at(turn, 3)), PEG_BLOCK_RESULT);
    CHECK_STR(peg_block_text(peg_turn_at(turn, 4)), "There it is.");
    close_play(&p);
}

TEST(a_script_may_be_json)
{
    struct play p;
    const peg_turn *turn = played(&p, "[{\"text\":\"hi\"}]");

    CHECK_STR(peg_block_text(peg_turn_at(turn, 1)), "hi");
    CHECK_INT(peg_script_len(p.script), 1);
    close_play(&p);
}

TEST(a_step_tells_what_a_model_would_tell_about_itself)
{
    struct play p;
    const peg_turn *turn =
        played(&p, "- {text: hi, model: m, stop_reason: length,\n"
                   "   usage: {input_tokens: 12, output_tokens: 5, cached_tokens: 2}}");
    const peg_json *result = NULL;
    const peg_json *count = NULL;

    CHECK_INT(peg_turn_get(turn, &peg_key_inference_result, &result, NULL), PEG_OK);
    CHECK_STR(peg_json_str(peg_json_get(result, "provider")), "script");
    CHECK_STR(peg_json_str(peg_json_get(result, "model")), "m");
    CHECK_STR(peg_json_str(peg_json_get(result, "finish_class")), "max_tokens");
    CHECK_INT(peg_json_pointer(result, peg_cstr("/usage/cached_tokens"), &count, NULL), PEG_OK);
    CHECK_INT(count->u.number, 2);
    close_play(&p);
}

TEST(a_step_comes_in_pieces_if_it_says_so)
{
    struct play p;

    played(&p, "- {text: \"a\xC3\xA9"
               "bc\", stream: 2}\n");

    CHECK_STR(peg__str(p.stage.log),
              "message +a; message +\xC3\xA9; message +bc; message + done; ");
    close_play(&p);
}

TEST(a_piece_has_one_character_at_least)
{
    struct play p;

    played(&p, "- {text: \"\xE2\x82\xAC\xE2\x82\xAC\", stream: 1}\n");

    CHECK_STR(peg__str(p.stage.log),
              "message +\xE2\x82\xAC; message +\xE2\x82\xAC; message + done; ");
    close_play(&p);
}

TEST(arguments_come_in_pieces_too)
{
    struct play p;

    played(&p, "- {calls: [{name: echo, id: c7, args: {a: 1}}], stream: 4}\n- text: ok\n");

    CHECK_STR(peg__str(p.stage.log),
              "args c7 +{\"a\"; args c7 +:1}; message +ok; message + done; ");
    close_play(&p);
}

TEST(arguments_that_are_a_string_are_the_text_itself)
{
    struct play p;
    const peg_turn *turn =
        played(&p, "- calls: [{name: echo, args: '{\"x\":'}, {name: echo}]\n- text: ok\n");

    CHECK_STR(peg_block_args(peg_turn_at(turn, 1)), "{\"x\":");
    CHECK_STR(peg_block_args(peg_turn_at(turn, 2)), "{}");
    CHECK(peg_record_is_error(result_at(turn, 0)));
    CHECK(!peg_record_is_error(result_at(turn, 1)));
    close_play(&p);
}

TEST(parts_keep_their_order)
{
    struct play p;
    const peg_turn *turn = played(
        &p, "- parts: [{text: one}, {name: echo, id: c1}, {reasoning: hm}, {text: two}]\n- {}\n");

    CHECK_STR(peg_block_text(peg_turn_at(turn, 1)), "one");
    CHECK_STR(peg_block_call_id(peg_turn_at(turn, 2)), "c1");
    CHECK_STR(peg_block_text(peg_turn_at(turn, 3)), "hm");
    CHECK_STR(peg_block_text(peg_turn_at(turn, 4)), "two");
    close_play(&p);
}

/* ---- which step ------------------------------------------------------------------------------ */

TEST(a_script_ends_after_its_last_step)
{
    struct play p;

    played(&p, "- calls: [{name: echo}]\n");

    CHECK_INT(p.stage.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(p.stage.outcome.error.cause), "E_SCRIPT_ENDED");
    close_play(&p);
}

TEST(a_run_that_goes_on_with_its_turn_goes_on_in_the_script)
{
    struct play p;
    const peg_turn *turn = played(&p, "- text: one\n- text: two\n");

    CHECK_INT(peg_turn_len(turn), 2);
    CHECK_INT(peg_turn_add_text(p.stage.turn, PEG_BLOCK_USER, peg_cstr("and?"), NULL), PEG_OK);
    CHECK_INT(stage_run(&p.stage), PEG_OK);

    CHECK_STR(peg_block_text(peg_turn_last(turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT))), "two");
    close_play(&p);
}

TEST(a_run_that_was_cut_off_after_its_calls_goes_on_with_the_next_step)
{
    struct play p;

    CHECK_INT(open_play(&p, "- calls: [{name: echo}]\n- text: two\n"), PEG_OK);
    p.stage.config.loop.call.settings.max_iterations = 1;
    CHECK_INT(stage_run(&p.stage), PEG_OK);
    CHECK_INT(p.stage.outcome.end, PEG_END_NACK);
    p.stage.runner = peg_runner_unref(p.stage.runner);
    p.stage.config.loop.call.settings.max_iterations = 0;
    CHECK_INT(stage_run(&p.stage), PEG_OK);

    CHECK_INT(p.stage.outcome.end, PEG_END_ACK);
    CHECK_STR(peg_block_text(peg_turn_last(p.stage.turn, PEG_BLOCKS_ALL)), "two");
    CHECK_INT(p.stage.n_handled, 1);
    close_play(&p);
}

TEST(a_step_may_say_nothing)
{
    struct play p;
    const peg_turn *turn = played(&p, "- {}\n- text: second\n");

    CHECK_INT(p.stage.outcome.end, PEG_END_ACK);
    CHECK_INT(peg_turn_len(turn), 1);
    CHECK_INT(peg__reply_n_inferences(turn), 1);
    close_play(&p);
}

/* ---- steps that fail ----------------------------------------------------------------------------
 */

TEST(a_step_with_an_error_fails_with_its_code)
{
    struct play p;
    const peg_turn *turn = played(&p, "- error: {code: E_ENGINE_OVERLOADED, message: try later}\n");

    CHECK_INT(p.stage.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(p.stage.outcome.error.cause), "E_ENGINE_OVERLOADED");
    CHECK_CONTAINS(peg__str(p.stage.outcome.error.message), "try later");
    CHECK_INT(peg_turn_len(turn), 1);
    close_play(&p);
}

TEST(a_step_may_break_off_after_some_words)
{
    struct play p;

    played(&p, "- {text: I wil, error: {}}\n");

    CHECK_STR(peg__str(p.stage.log), "message +I wil; message + done; ");
    CHECK_STR(peg__str(p.stage.outcome.error.cause), "E_ENGINE_FAILED");
    close_play(&p);
}

/* ---- from a turn
 * --------------------------------------------------------------------------------- */

TEST(what_a_model_said_in_a_turn_can_be_said_again)
{
    struct play first;
    struct play again;
    const peg_turn *turn =
        played(&first, "- {reasoning: hm, calls: [{name: echo, args: {x: 1}}], model: m}\n"
                       "- {text: There., usage: {input_tokens: 3, output_tokens: 1}}\n");

    CHECK_INT(open_play(&again, "[]"), PEG_OK);
    peg_script_unref(again.script);
    CHECK_STATUS(peg_script_from_turn(turn, &again.script, &again.error), PEG_OK, again.error);
    again.stage.config.loop.engine = peg_script_engine(again.script);
    CHECK_INT(stage_run(&again.stage), PEG_OK);

    CHECK_INT(peg_script_len(again.script), 2);
    CHECK_INT(peg_turn_len(again.stage.turn), peg_turn_len(turn));
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *was = peg_turn_at(turn, i);
        const peg_block *is = peg_turn_at(again.stage.turn, i);

        CHECK_INT(peg_block_kind_of(is), peg_block_kind_of(was));
        CHECK(peg__str_eq(peg_block_text(is), peg_block_text(was)));
        CHECK(peg__str_eq(peg_block_args(is), peg_block_args(was)));
        CHECK(peg__str_eq(peg_block_call_id(is), peg_block_call_id(was)));
    }
    CHECK_STR(peg__str(again.stage.log), first.stage.log);
    close_play(&again);
    close_play(&first);
}

TEST(a_turn_by_hand_gives_a_step_for_each_answer)
{
    struct play p;
    peg_script *script = NULL;
    peg_turn *turn;

    CHECK_INT(open_play(&p, "[]"), PEG_OK);
    turn = p.stage.turn;
    CHECK_INT(follow(turn, "say one; say two", NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("and?"), NULL), PEG_OK);
    CHECK_INT(follow(turn, "say three", NULL), PEG_OK);
    CHECK_INT(peg_script_from_turn(turn, &script, &p.error), PEG_OK);

    CHECK_INT(peg_script_len(script), 2);
    peg_script_unref(script);
    close_play(&p);
}

TEST(an_inference_that_left_no_block_is_an_empty_step)
{
    struct play p;
    peg_script *script = NULL;

    played(&p, "- {}\n");
    CHECK_INT(peg_script_from_turn(p.stage.turn, &script, &p.error), PEG_OK);

    CHECK_INT(peg_script_len(script), 1);
    peg_script_unref(script);
    close_play(&p);
}

/* ---- what is no script
 * ------------------------------------------------------------------------------ */

TEST(what_is_no_list_of_steps_is_refused_with_its_place)
{
    check_refused("text: hi", "");
    check_refused("- hi", "/0");
    check_refused("- {txt: hi}", "/0");
    check_refused("- {text: hi}\n- {text: 3}", "/1/text");
    check_refused("- calls: [{args: {}}]", "/0/calls/0");
    check_refused("- parts: [{text: a, name: b}]", "/0/parts/0");
    check_refused("- error: {code: E_NO_SUCH}", "/0/error/code");
    check_refused("- {text: a, stream: 0}", "/0/stream");
    check_refused("- usage: {input_tokens: -1}", "/0/usage/input_tokens");
}

TEST(text_that_cannot_be_read_is_refused_with_its_line)
{
    peg_script *script = NULL;
    peg_error error;

    CHECK_INT(peg_script_new(peg_cstr("- text: hi\n- {text\n"), &script, &error), PEG_EPARSE);

    CHECK_STR(peg__str(error.code), "E_SCRIPT");
    CHECK(error.line >= 2);
    CHECK(error.cause[0] != '\0');
}

TEST(an_empty_script_ends_at_once)
{
    struct play p;

    played(&p, "[]");

    CHECK_STR(peg__str(p.stage.outcome.error.cause), "E_SCRIPT_ENDED");
    close_play(&p);
}

/* ---- memory
 * -------------------------------------------------------------------------------------------- */

TORTURE(making_a_script_survives_any_allocation_failure)
{
    peg_script *script = NULL;
    const peg_status status =
        peg_script_new(peg_cstr("- {text: hi, calls: [{name: a}]}\n"), &script, NULL);

    CHECK(status || peg_script_len(script) == 1);
    peg_script_unref(script);
    return status;
}

TORTURE(a_script_of_a_turn_survives_any_allocation_failure)
{
    peg_turn *turn = NULL;
    peg_script *script = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = follow(turn, "call c1 echo {}; say hi", NULL);
    if (!status)
        status = peg_script_from_turn(turn, &script, NULL);
    peg_script_unref(script);
    peg_turn_free(turn);
    return status;
}

TORTURE(following_a_script_survives_any_allocation_failure)
{
    struct play p;
    peg_status status = open_play(&p, "[{\"text\":\"hi\",\"calls\":[{\"name\":\"echo\"}]},{}]");

    if (!status)
        status = stage_run(&p.stage);
    if (!status && p.stage.outcome.end != PEG_END_ACK) {
        CHECK(strcmp(p.stage.outcome.error.code, "E_OUT_OF_MEMORY") == 0 ||
              strcmp(p.stage.outcome.error.cause, "E_OUT_OF_MEMORY") == 0);
        status = PEG_ENOMEM;
    }
    close_play(&p);
    return status;
}
