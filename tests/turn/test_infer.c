/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The standard executor: what the model is offered, what is kept and when, what becomes of calls
 * that an earlier run left open, and how the loop ends.
 */

#include "../t.h"
#include "base/error.h"
#include "base/limits.h"
#include "fixture.h"
#include "pegboard/cleanup.h"
#include "pegboard/definitions.h"
#include "pegboard/envelope.h"

#define DOC PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *

/* ---- looking ---------------------------------------------------------------------- */

/* The names in a list of definitions, each followed by a space. */
static void note_names(struct stage *stage, const peg_json *definitions)
{
    if (!definitions) {
        note(stage, "(none) ");
        return;
    }
    PEG_JSON_EACH_ITEM (definitions, item) {
        const peg_str name = peg_json_str(peg_json_get(item, "name"));

        note(stage, "%.*s ", PEG_ARG(name));
    }
}

static const peg_json *stored_definitions(const peg_turn *turn)
{
    const peg_json *definitions = NULL;

    CHECK_INT(peg_turn_definitions(turn, &definitions, NULL), PEG_OK);
    return definitions;
}

/* An engine that notes what it is offered, and what the turn says. */
static peg_status look(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    note(stage, "offered: ");
    note_names(stage, peg_dispatch_definitions(dispatch));
    note(stage, "turn: ");
    note_names(stage, stored_definitions(peg_dispatch_turn(dispatch)));
    return PEG_OK;
}

static struct stage *looking(struct stage *stage)
{
    opened(stage)->act = look;
    stage->config.loop.query_from = 0;
    return stage;
}

static peg_tool *simple_tool(const char *name)
{
    const peg_tool_def def = tool_def(name, echo, NULL);
    peg_tool *tool = NULL;

    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    return tool;
}

/* The turn gets definitions as if another run had left them. */
static void store_definitions(peg_turn *turn, const char *text)
{
    DOC doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_turn_set(turn, &peg_key_tool_definitions, peg_json_root(doc), NULL), PEG_OK);
}

#define OLD_TOOLS                                                                                  \
    "[{\"name\":\"search\",\"description\":\"finds\",\"parameters\":{\"type\":\"object\"}},"       \
    "{\"name\":\"artifact_head\",\"description\":\"old\",\"ephemeral\":true}]"

/* ---- definitions on the turn -------------------------------------------------------- */

/* G50, G57: in the order of the registry */
TEST(before_the_model_is_asked_the_turn_has_its_definitions_and_settings)
{
    struct stage s;
    peg_tool *tool = simple_tool("aardvark");
    peg_str id;

    looking(&s);
    s.tools[s.n_tools++] = tool;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "offered: echo aardvark turn: echo aardvark ");
    CHECK(peg_bag_find(peg_turn_data(s.turn), peg_cstr("pegboard.tool_config@v1")));
    CHECK_INT(peg_json_len(stored_definitions(s.turn)), 2);
    CHECK_INT(peg_turn_get_string(s.turn, &peg_key_inference_id, &id, NULL), PEG_OK);
    CHECK_INT(id.len, 36);
    stage_close(&s);
}

TEST(a_definition_says_all_that_is_known_about_a_tool)
{
    static const char *const tags[] = {"a", "b", NULL};
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = "t",
        .description = "d",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}",
        .output_schema = "{\"type\":\"string\"}",
        .examples = "[{\"x\":1}]",
        .version = "1.2",
        .tags = tags,
        .read_only = true,
        .run = echo};
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    DOC doc = NULL;
    peg_tool *tool = NULL;
    char *text = NULL;

    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_new(&tool, 1, &registry, NULL), PEG_OK);
    CHECK_INT(peg_registry_definitions(registry, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(text),
              "[{\"name\":\"t\",\"description\":\"d\",\"parameters\":{\"type\":\"object\","
              "\"properties\":{\"x\":{\"type\":\"integer\"}},\"additionalProperties\":false},"
              "\"output\":{\"type\":\"string\"},\"examples\":[{\"input\":{\"x\":1}}],"
              "\"tags\":[\"a\",\"b\"],\"version\":\"1.2\",\"hints\":{\"read_only\":true}}]");
    peg_free(text);
    peg_tool_unref(tool);
}

/* Definitions kept for a shared registry are not used for one that was changed. */
TEST(definitions_follow_every_change_of_the_registry)
{
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *base = NULL;
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *copy = NULL;
    const char *const name = "a";
    peg_tool *tools[2] = {simple_tool("a"), simple_tool("b")};
    DOC first = NULL;
    DOC hidden = NULL;
    DOC again = NULL;
    DOC of_copy = NULL;

    CHECK_INT(peg_registry_new(tools, 2, &base, NULL), PEG_OK);
    CHECK_INT(peg_registry_definitions(base, &first, NULL), PEG_OK);
    CHECK_INT(peg_registry_copy(base, &copy, NULL), PEG_OK);
    CHECK_INT(peg_registry_hide(base, &name, 1, NULL), PEG_OK);
    CHECK_INT(peg_registry_definitions(base, &hidden, NULL), PEG_OK);
    CHECK_INT(peg_registry_definitions(copy, &of_copy, NULL), PEG_OK);
    CHECK_INT(peg_registry_unhide(base, &name, 1, NULL), PEG_OK);
    CHECK_INT(peg_registry_unregister(base, peg_cstr("b"), NULL), PEG_OK);
    CHECK_INT(peg_registry_definitions(base, &again, NULL), PEG_OK);

    CHECK_INT(peg_json_len(peg_json_root(first)), 2);
    CHECK_INT(peg_json_len(peg_json_root(hidden)), 1);
    CHECK_INT(peg_json_len(peg_json_root(of_copy)), 2);
    CHECK_INT(peg_json_len(peg_json_root(again)), 1);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
}

static peg_status offer_more(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                             peg_error *reterr)
{
    peg_status status = PEG_OK;

    (void)user;
    if (peg_dispatch_iteration(dispatch) == 0) {
        peg_tool *tool = simple_tool("extra");

        status = peg_registry_register(peg_dispatch_registry(dispatch), tool, false, reterr);
        peg_tool_unref(tool);
    } else {
        status =
            peg_registry_unregister(peg_dispatch_registry(dispatch), peg_cstr("extra"), reterr);
    }
    return status ? status : peg_middleware_run_next(next, reterr);
}

/* G60, G61 */
TEST(a_tool_that_a_middleware_adds_or_removes_is_seen_in_the_same_iteration)
{
    struct stage s;

    looking(&s)->script[0] = "call c1 extra {}";
    s.input[0] = (peg_dispatch_middleware){offer_more, NULL};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "offered: echo extra turn: echo extra offered: echo turn: echo ");
    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    stage_close(&s);
}

static void write_much(peg_call *call, const peg_json *args, void *user)
{
    char text[PEG_LIMIT_INLINE_BELOW];

    (void)user;
    memset(text, 'x', sizeof(text));
    peg_call_reply(call, peg__strn(text, peg_json_len(args) ? sizeof(text) : sizeof(text) - 1));
}

TEST(a_result_that_is_shown_whole_gets_no_queries_and_a_larger_one_does)
{
    struct stage s;
    const peg_tool_def def = tool_def("much", write_much, NULL);

    looking(&s)->script[0] = "call c1 much {}";
    s.script[1] = "call c2 much {\"more\":1}";
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.seen, "offered: echo much turn: "), 2);
    CHECK_INT(count_of(s.seen, "offered: echo much artifact_head "), 1);
    stage_close(&s);
}

/* A saved turn does not offer the queries of a run that is over, however it ended. */
TEST(ephemeral_definitions_leave_the_turn_with_the_dispatch)
{
    for (int ends_badly = 0; ends_badly < 2; ends_badly++) {
        const peg_json *definitions = NULL;
        struct stage s;
        const peg_tool_def def = tool_def("much", write_much, NULL);

        looking(&s)->script[0] = "call c1 much {\"more\":1}";
        s.script[1] = "call c2 echo {}";
        s.config.loop.call.settings.max_iterations = ends_badly ? 2 : 0;
        CHECK_INT(stage_add(&s, &def), PEG_OK);
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.outcome.end, ends_badly ? PEG_END_NACK : PEG_END_ACK);
        CHECK(count_of(s.seen, "offered: echo much artifact_head ") > 0);
        CHECK_INT(peg_turn_definitions(s.turn, &definitions, NULL), PEG_OK);
        CHECK_INT(peg_json_len(definitions), 2);
        stage_close(&s);
    }
}

static peg_status offer_for_this_run(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                     peg_error *reterr)
{
    peg_tool_def def = tool_def("brief", echo, NULL);
    peg_status status = PEG_OK;

    (void)user;
    def.ephemeral = true;
    if (peg_dispatch_iteration(dispatch) == 0) {
        peg_tool *tool = NULL;

        CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
        status = peg_registry_register(peg_dispatch_registry(dispatch), tool, false, reterr);
        peg_tool_unref(tool);
    }
    return status ? status : peg_middleware_run_next(next, reterr);
}

TEST(an_ephemeral_tool_of_a_middleware_leaves_the_saved_turn_with_the_ack)
{
    const peg_json *definitions;
    struct stage s;

    looking(&s)->script[0] = "call c1 brief {}";
    s.input[0] = (peg_dispatch_middleware){offer_for_this_run, NULL};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(s.seen), "offered: echo brief turn: echo brief "
                                "offered: echo brief turn: echo brief ");
    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    definitions = stored_definitions(s.turn);
    CHECK_INT(peg_json_len(definitions), 1);
    CHECK_STR(peg_json_str(peg_json_get(peg_json_at(definitions, 0), "name")), "echo");
    stage_close(&s);
}

/* G56 */
TEST(a_tool_that_a_middleware_adds_is_gone_with_the_run)
{
    struct stage s;

    looking(&s);
    s.input[0] = (peg_dispatch_middleware){offer_more, NULL};
    CHECK_INT(stage_run(&s), PEG_OK);
    s.seen[0] = '\0';
    s.runner = peg_runner_unref(s.runner);
    s.input[0].run = NULL;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "offered: echo turn: echo ");
    stage_close(&s);
}

/* ---- without a registry --------------------------------------------------------------- */

/* G63: the brief's first test, from the loop's side */
TEST(a_turn_without_a_registry_still_offers_its_tools_and_says_so_once)
{
    struct stage s;

    looking(&s)->script[0] = "call c1 search {}";
    store_definitions(s.turn, OLD_TOOLS);
    s.config.n_tools = 0;
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK(strncmp(s.seen, "offered: search turn: search ", 29) == 0);
    CHECK_INT(count_of(s.log, "warning(E_TOOL_NO_REGISTRY)"), 1);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static char last_log[512];

static void hear_log(peg_log_level level, const char *code, const char *message, void *user)
{
    (void)level;
    (void)user;
    snprintf(last_log, sizeof(last_log), "%s: %s", code, message);
}

/* G98: the brief's third test */
TEST(a_call_without_a_registry_is_a_failed_result_that_is_logged_and_the_loop_goes_on)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 search {}; call c2 other {}";
    s.script[1] = "say I cannot";
    s.config.n_tools = 0;
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    last_log[0] = '\0';
    peg_log_set(hear_log, PEG_LOG_DEBUG, NULL);
    CHECK_INT(stage_run(&s), PEG_OK);
    peg_log_set(NULL, PEG_LOG_DEBUG, NULL);

    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(peg__str(peg_record_code(result_at(s.turn, i))), "E_TOOL_NO_REGISTRY");
        CHECK_CONTAINS(text_of(result_at(s.turn, i)), "no tool registry in context");
    }
    CHECK(strstr(last_log, "E_TOOL_NO_REGISTRY"));
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_INT(s.n_infer, 2);
    stage_close(&s);
}

/* G62 */
TEST(definitions_without_a_registry_are_kept_or_forgotten_by_option)
{
    for (int forgets = 0; forgets < 2; forgets++) {
        struct stage s;

        looking(&s);
        store_definitions(s.turn, OLD_TOOLS);
        s.config.n_tools = 0;
        s.config.loop.forget_definitions = forgets;
        CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_STR(peg__str(s.seen),
                  forgets ? "offered: (none) turn: (none) " : "offered: search turn: search ");
        stage_close(&s);
    }
}

/* G64 */
TEST(by_the_registry_alone_a_turn_without_one_offers_nothing)
{
    struct stage s;

    looking(&s);
    store_definitions(s.turn, OLD_TOOLS);
    s.config.n_tools = 0;
    s.config.loop.advertise = PEG_ADVERTISE_REGISTRY;
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "offered: (none) turn: search artifact_head ");
    stage_close(&s);
}

/* G65 */
TEST(the_registry_wins_over_what_the_turn_had)
{
    for (int i = 0; i < 2; i++) {
        struct stage s;

        looking(&s);
        store_definitions(s.turn, OLD_TOOLS);
        s.config.loop.advertise = i ? PEG_ADVERTISE_REGISTRY : PEG_ADVERTISE_TURN;
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_STR(peg__str(s.seen), "offered: echo turn: echo ");
        stage_close(&s);
    }
}

/* G66 */
TEST(by_the_strict_policy_turn_and_registry_must_agree)
{
    struct stage s;

    looking(&s);
    s.config.loop.advertise = PEG_ADVERTISE_STRICT;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK); /* it had none */
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_ACK); /* the same ones */
    store_definitions(s.turn, OLD_TOOLS);
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s.outcome.error.cause), "E_DEFINITIONS_DIFFER");
    CHECK(strstr(s.outcome.error.message, "'search'"));
    CHECK_INT(s.n_infer, 2);
    stage_close(&s);
}

TEST(the_strict_policy_looks_at_what_a_tool_takes)
{
    struct stage s;

    looking(&s);
    store_definitions(s.turn, "[{\"name\":\"echo\",\"description\":\"a tool\","
                              "\"parameters\":{\"type\":\"object\"}}]");
    s.config.loop.advertise = PEG_ADVERTISE_STRICT;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_STR(peg__str(s.outcome.error.cause), "E_DEFINITIONS_DIFFER");
    stage_close(&s);
}

static void hear_offers(const peg_event *event, void *user)
{
    struct stage *stage = user;

    if (event->kind == PEG_EVENT_INFERENCE_START)
        note_names(stage, event->u.inference.definitions);
}

static peg_status note_snapshot(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                                peg_error *reterr)
{
    (void)ctx;
    (void)reterr;
    note(user, "%s:", peg_phase_name(phase));
    note_names(user, stored_definitions(turn));
    return PEG_OK;
}

static peg_status note_middleware(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                                  peg_error *reterr)
{
    note(user, "output:");
    note_names(user, stored_definitions(peg_dispatch_turn(dispatch)));
    return peg_middleware_run_next(next, reterr);
}

/* The issue: a test removes the registry, and middleware, snapshots and events still show the
 * tools. */
TEST(middleware_snapshots_and_events_read_the_definitions_from_the_turn)
{
    struct stage s;

    opened(&s);
    store_definitions(s.turn, "[{\"name\":\"search\"}]");
    s.config.n_tools = 0;
    s.config.on_event = hear_offers;
    s.config.loop.snapshot = note_snapshot;
    s.config.loop.snapshot_user = &s;
    s.output[0] = (peg_dispatch_middleware){note_middleware, &s};
    s.config.loop.output = s.output;
    s.config.loop.n_output = 1;
    CHECK_INT(peg_runner_new(&s.config, &s.runner, NULL), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "pre_inference:search search post_inference:search output:search "
                                "final:search ");
    stage_close(&s);
}

/* ---- settings ------------------------------------------------------------------------- */

static void set_config(peg_turn *turn, const char *text)
{
    DOC doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_turn_set(turn, &peg_key_tool_config, peg_json_root(doc), NULL), PEG_OK);
}

TEST(the_turn_says_how_many_iterations_unless_the_host_does)
{
    struct stage s;

    opened(&s);
    for (int i = 0; i < MAX_STEPS; i++)
        s.script[i] = "call c echo {}";
    set_config(s.turn, "{\"max_iterations\":3}");
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.n_infer, 3);
    CHECK_STR(peg__str(s.outcome.error.code), "E_LIMIT_ITERATIONS");

    s.runner = peg_runner_unref(s.runner);
    s.n_infer = 0;
    s.config.loop.call.settings.max_iterations = 5;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.n_infer, 5);
    stage_close(&s);
}

/* G95 */
TEST(at_the_limit_of_iterations_the_turn_has_what_the_last_one_did)
{
    struct stage s;

    opened(&s)->script[0] = "call c0 echo {}";
    s.script[1] = "call c1 echo {}";
    s.config.loop.call.settings.max_iterations = 2;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.outcome.error.code), "E_LIMIT_ITERATIONS");
    CHECK(strstr(s.outcome.error.message, "max_iterations (2)"));
    CHECK_INT(peg_turn_count(s.turn, PEG_BLOCKS(PEG_BLOCK_RESULT)), 2);
    stage_close(&s);
}

/* G125 */
TEST(tools_that_are_switched_off_are_neither_offered_nor_run)
{
    static const char *const off[] = {"{\"enabled\":false}", "{\"tool_choice\":\"none\"}"};

    for (int i = 0; i < 2; i++) {
        struct stage s;

        looking(&s)->script[0] = "call c1 echo {}";
        set_config(s.turn, off[i]);
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK(strncmp(s.seen, "offered: (none) turn: echo ", 27) == 0);
        CHECK_INT(s.n_handled, 0);
        CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOLS_OFF");
        CHECK_INT(s.outcome.end, PEG_END_ACK);
        stage_close(&s);
    }
}

static peg_status note_choice(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    note(stage, "%d ", (int)peg_dispatch_tool_config(dispatch)->choice);
    return PEG_OK;
}

/* G102 */
TEST(a_required_tool_is_not_required_any_more_once_there_is_a_result)
{
    struct stage s;
    peg_tool_config config = peg_tool_config_default();
    peg_tool_config stored;

    config.choice = PEG_CHOICE_REQUIRED;
    opened(&s)->act = note_choice;
    s.script[0] = "call c1 echo {}";
    s.config.loop.tools = &config;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "2 0 ");
    CHECK_INT(peg_turn_tool_config(s.turn, &stored, NULL, NULL), PEG_OK);
    CHECK_INT(stored.choice, PEG_CHOICE_REQUIRED);
    stage_close(&s);
}

TEST(damaged_settings_fail_the_dispatch_before_the_model_is_asked)
{
    struct stage s;

    opened(&s);
    set_config(s.turn, "{\"tool_choice\":7}");
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s.outcome.error.code), "E_TOOL_CONFIG");
    CHECK_INT(s.n_infer, 0);
    stage_close(&s);
}

/* G82, G99 */
TEST(after_a_failure_an_aborting_loop_runs_nothing_more_and_keeps_what_there_is)
{
    struct stage s;
    const peg_tool_def def = tool_def("fails", failing, NULL);

    opened(&s)->script[0] = "call c1 echo {}; call c2 fails {}; call c3 echo {}";
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    set_config(s.turn, "{\"tool_error_handling\":\"abort\"}");
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s.outcome.error.code), "E_TOOL_ABORTED");
    CHECK(strstr(s.outcome.error.message, "'fails'"));
    CHECK_INT(s.n_handled, 1);
    CHECK_INT(s.n_infer, 1);
    CHECK(!peg_record_is_error(result_at(s.turn, 0)));
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 2))), "E_TOOL_ABORTED");
    CHECK_CONTAINS(text_of(result_at(s.turn, 2)), "not executed");
    CHECK_INT(peg_turn_next_pending(s.turn, 0), peg_turn_len(s.turn));
    stage_close(&s);
}

static unsigned n_tries;

static void fails_twice(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    if (++n_tries < 3)
        peg_call_fail(call, "not yet");
    else
        peg_call_replyf(call, "now");
}

/* Time that is waited for, in ms: the clock moves by itself in a wait. */
static void check_retries(const char *config, unsigned n_expected, bool fails)
{
    struct stage s;
    const peg_tool_def def = tool_def("flaky", fails_twice, NULL);

    n_tries = 0;
    opened(&s)->script[0] = "call c1 flaky {}";
    CHECK_INT(stage_add(&s, &def), PEG_OK);
    set_config(s.turn, config);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(n_tries, n_expected);
    CHECK_INT(peg_record_attempts(result_at(s.turn, 0)), n_expected);
    CHECK_INT(peg_record_is_error(result_at(s.turn, 0)), fails);
    stage_close(&s);
}

/* G75, G76 */
TEST(a_failed_handler_is_run_again_if_the_settings_say_so)
{
    check_retries("{\"tool_error_handling\":\"retry\",\"retry_config\":{\"max_retries\":2,"
                  "\"backoff_base\":\"1ms\"}}",
                  3, false);
    check_retries("{\"tool_error_handling\":\"retry\",\"retry_config\":{\"max_retries\":1,"
                  "\"backoff_base\":\"1ms\"}}",
                  2, true);
    check_retries("{\"tool_error_handling\":\"continue\"}", 1, true);
}

/* ---- snapshots -------------------------------------------------------------------------- */

static peg_status note_phase(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                             peg_error *reterr)
{
    const peg_json *begun = NULL;

    (void)ctx;
    (void)reterr;
    CHECK_INT(peg_turn_get(turn, &peg_key_calls_started, &begun, NULL), PEG_OK);
    note(user, "%s/%zu/%zu ", peg_phase_name(phase),
         peg_turn_count(turn, PEG_BLOCKS(PEG_BLOCK_RESULT)), begun ? peg_json_len(begun) : 0);
    return PEG_OK;
}

/* G101 */
TEST(a_turn_can_be_kept_at_each_phase)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}; call c2 echo {}";
    s.config.loop.snapshot = note_phase;
    s.config.loop.snapshot_user = &s;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "pre_inference/0/0 post_inference/0/0 pre_call/0/1 post_call/1/0 "
                                "pre_call/1/1 post_call/2/0 post_tools/2/0 pre_inference/2/0 "
                                "post_inference/2/0 final/2/0 ");
    stage_close(&s);
}

static peg_status note_other(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                             peg_error *reterr)
{
    (void)ctx;
    (void)turn;
    (void)reterr;
    note(user, "ctx:%s ", peg_phase_name(phase));
    return PEG_OK;
}

TEST(a_context_can_keep_turns_too_but_the_loops_own_function_comes_first)
{
    for (int i = 0; i < 2; i++) {
        struct stage s;

        opened(&s);
        CHECK_INT(peg_ctx_with_snapshots(NULL, note_other, &s, &s.ctx, NULL), PEG_OK);
        if (i) {
            s.config.loop.snapshot = note_phase;
            s.config.loop.snapshot_user = &s;
        }
        CHECK_INT(stage_run(&s), PEG_OK);
        CHECK_STR(peg__str(s.seen), i ? "pre_inference/0/0 post_inference/0/0 final/0/0 "
                                      : "ctx:pre_inference ctx:post_inference ctx:final ");
        peg_ctx_unref(s.ctx);
        stage_close(&s);
    }
}

struct refusal {
    peg_phase phase;
    unsigned n_asked;
};

static peg_status refuse_phase(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *user,
                               peg_error *reterr)
{
    struct refusal *refusal = user;

    (void)ctx;
    (void)turn;
    (void)reterr;
    return phase == refusal->phase ? PEG_EIO : PEG_OK;
}

TEST(a_turn_that_cannot_be_kept_fails_the_run_and_before_a_call_the_call_does_not_run)
{
    for (int phase = 0; phase < PEG_N_PHASES; phase++) {
        struct refusal refusal = {.phase = (peg_phase)phase};
        struct stage s;

        opened(&s)->script[0] = "call c1 echo {}";
        s.config.loop.snapshot = refuse_phase;
        s.config.loop.snapshot_user = &refusal;
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.outcome.end, PEG_END_NACK);
        CHECK(strcmp(s.outcome.error.code, "E_SNAPSHOT") == 0 ||
              strcmp(s.outcome.error.cause, "E_SNAPSHOT") == 0);
        CHECK_INT(s.n_handled, phase >= PEG_PHASE_POST_CALL);
        stage_close(&s);
    }
}

/* ---- what an earlier run left ------------------------------------------------------------ */

static void leave_call(peg_turn *turn, const char *id, const char *tool, bool has_begun)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT,     .kind = PEG_BLOCK_CALL,
                               .id = peg_cstr(id),     .call_id = peg_cstr(id),
                               .tool = peg_cstr(tool), .args = peg_cstr("{}")};
    peg_block *block = NULL;
    peg_json_builder *b;

    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_turn_add(turn, block, NULL), PEG_OK);
    peg_block_unref(block);
    if (!has_begun)
        return;
    b = peg_json_builder_new();
    peg_json_open_array(b);
    peg_json_add_string(b, peg_cstr(id));
    peg_json_close(b);
    CHECK_INT(peg_turn_set_built(turn, &peg_key_calls_started, b, NULL), PEG_OK);
}

static peg_status note_pending(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);

    (void)reterr;
    note(stage, "%zu ", peg_turn_len(turn) - peg_turn_next_pending(turn, 0));
    return PEG_OK;
}

/* G92, G91 */
TEST(a_call_that_was_left_is_run_before_the_model_is_asked_and_once)
{
    struct stage s;

    opened(&s)->act = note_pending;
    leave_call(s.turn, "left", "echo", false);
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 0 ");
    CHECK_INT(s.n_handled, 1);
    CHECK_INT(s.n_infer, 2);
    CHECK_STR(peg_record_call_id(result_at(s.turn, 0)), "left");
    stage_close(&s);
}

TEST(a_call_that_had_begun_is_not_run_twice_unless_its_tool_may)
{
    static const struct {
        peg_pending_policy policy;
        bool is_idempotent;
        bool has_begun;
        bool runs;
    } cases[] = {
        {PEG_PENDING_SAFE, false, true, false},    {PEG_PENDING_SAFE, true, true, true},
        {PEG_PENDING_SAFE, false, false, true},    {PEG_PENDING_RUN, false, true, true},
        {PEG_PENDING_UNKNOWN, true, false, false}, {PEG_PENDING_UNKNOWN, true, true, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage s;
        peg_tool_def def = tool_def("once", echo, &s);

        opened(&s);
        def.idempotent = cases[i].is_idempotent;
        CHECK_INT(stage_add(&s, &def), PEG_OK);
        leave_call(s.turn, "left", "once", cases[i].has_begun);
        s.config.loop.pending = cases[i].policy;
        s.config.loop.snapshot = note_phase;
        s.config.loop.snapshot_user = &s;
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_INT(s.n_handled, cases[i].runs);
        CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))),
                  cases[i].runs ? "" : "E_OUTCOME_UNKNOWN");
        CHECK_INT(s.outcome.end, PEG_END_ACK);
        CHECK(!peg_bag_find(peg_turn_metadata(s.turn), peg_cstr("pegboard.calls_started@v1")));
        stage_close(&s);
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static void hear_inference(const peg_event *event, void *user)
{
    struct stage *stage = user;

    if (event->kind == PEG_EVENT_INFERENCE_START)
        note(stage, "start%d ", event->ids.iteration);
    if (event->kind == PEG_EVENT_INFERENCE_END)
        note(stage, "end%d,%zu,%d ", event->ids.iteration, event->u.inference.n_calls,
             event->u.inference.is_error);
}

/* G88, G89 */
TEST(each_time_that_the_model_is_asked_is_told_with_its_number)
{
    struct stage s;

    opened(&s)->script[0] = "call c1 echo {}; call c2 echo {}";
    s.script[1] = "say done";
    s.config.on_event = hear_inference;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_STR(peg__str(s.seen), "start0 end0,2,0 start1 end1,0,0 ");
    stage_close(&s);
}

static peg_status fail(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)stage;
    (void)dispatch;
    (void)reterr;
    return PEG_EIO;
}

/* G97 */
TEST(an_engine_that_fails_ends_the_loop)
{
    struct stage s;

    opened(&s)->act = fail;
    s.config.on_event = hear_inference;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_STR(peg__str(s.seen), "start0 end0,0,1 ");
    CHECK_INT(s.outcome.end, PEG_END_NACK);
    stage_close(&s);
}

static peg_status write_args(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)stage;
    if (peg_dispatch_report_args(dispatch, peg_cstr("c1"), peg_cstr("echo"), peg_cstr("{\"a\""),
                                 reterr))
        return PEG_EINVAL;
    return peg_dispatch_report_args(dispatch, peg_cstr("c1"), peg_cstr("echo"), peg_cstr(":1}"),
                                    reterr);
}

static void hear_args(const peg_event *event, void *user)
{
    const peg_tool_args_event *args = &event->u.tool_args;

    if (event->kind == PEG_EVENT_TOOL_ARGS)
        note(user, "%u:%.*s:%.*s ", args->sequence, PEG_ARG(args->delta), PEG_ARG(args->full));
}

/* G128 */
TEST(arguments_are_told_while_they_come_in_and_again_from_the_start_in_the_next_iteration)
{
    struct stage s;

    opened(&s)->act = write_args;
    s.script[0] = "call c1 echo {\"a\":1}";
    s.config.on_event = hear_args;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_STR(peg__str(s.seen), "1:{\"a\":{\"a\" 2::1}:{\"a\":1} 1:{\"a\":{\"a\" 2::1}:{\"a\":1} ");
    stage_close(&s);
}

static peg_status mask(const peg_call *call, const peg_json *args, peg_json_doc **ret_masked,
                       void *user, peg_error *reterr)
{
    (void)call;
    (void)args;
    (void)user;
    return peg_json_parse(peg_cstr("{\"masked\":true}"), NULL, ret_masked, reterr);
}

/* G73 */
TEST(arguments_that_a_host_masks_are_not_shown_while_they_come_in)
{
    struct stage s;
    const peg_run_hooks hooks = {.mask_arguments = mask};

    opened(&s)->act = write_args;
    s.config.on_event = hear_args;
    s.config.loop.call.hooks = &hooks;
    CHECK_INT(stage_run(&s), PEG_OK);
    CHECK_STR(peg__str(s.seen), "");
    stage_close(&s);
}

/* ---- steps ---------------------------------------------------------------------------------- */

struct stepping {
    peg_stepper *steps;
    peg_step_decision decision;
    char seen[256];
};

static void decide(const peg_event *event, void *user)
{
    struct stepping *stepping = user;
    const size_t len = strlen(stepping->seen);

    if (event->kind != PEG_EVENT_PAUSE)
        return;
    snprintf(stepping->seen + len, sizeof(stepping->seen) - len, "%s/%zu ", event->u.pause.phase,
             event->u.pause.n_pending);
    CHECK_INT(peg_stepper_continue(stepping->steps, event->u.pause.pause_id, stepping->decision,
                                   NULL, NULL),
              PEG_OK);
}

static void run_stepping(struct stage *s, struct stepping *stepping, peg_step_decision decision)
{
    memset(stepping, 0, sizeof(*stepping));
    stepping->decision = decision;
    CHECK_INT(peg_stepper_new(0, &stepping->steps, NULL), PEG_OK);
    CHECK_INT(peg_stepper_enable(stepping->steps, peg_cstr("s1"), NULL), PEG_OK);
    opened(s)->script[0] = "call c1 echo {}; call c2 echo {}";
    CHECK_INT(peg_turn_set_string(s->turn, &peg_key_session_id, peg_cstr("s1"), NULL), PEG_OK);
    s->config.loop.steps = stepping->steps;
    s->config.on_event = decide;
    s->config.on_event_user = stepping;
    CHECK_INT(stage_run(s), PEG_OK);
    peg_stepper_unref(stepping->steps);
}

/* G109 */
TEST(a_run_pauses_after_the_model_if_it_asks_for_tools_and_after_the_tools)
{
    struct stage s;
    struct stepping stepping;

    run_stepping(&s, &stepping, PEG_STEP_CONTINUE);
    CHECK_STR(peg__str(stepping.seen), "after_inference/2 after_tools/0 ");
    CHECK_INT(s.n_handled, 2);
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

TEST(who_watches_can_skip_the_tools_or_abort)
{
    struct stage s;
    struct stepping stepping;

    run_stepping(&s, &stepping, PEG_STEP_SKIP_TOOLS);
    CHECK_INT(s.n_handled, 0);
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 1))), "E_TOOL_SKIPPED");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);

    run_stepping(&s, &stepping, PEG_STEP_ABORT);
    CHECK_INT(s.n_handled, 0);
    CHECK_INT(s.outcome.end, PEG_END_ABORTED);
    stage_close(&s);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

TORTURE(an_iteration_with_all_its_parts_survives_any_allocation_failure)
{
    struct stage s;
    const peg_outcome untold = {.error = {.code = ""}};
    peg_status status = stage_open(&s);

    s.outcome = untold;
    s.script[0] = "call c1 echo {}";
    s.config.loop.snapshot = note_phase;
    s.config.loop.snapshot_user = &s;
    s.config.on_event = NULL;
    if (!status)
        status = stage_run(&s);
    if (!status)
        status = s.outcome.end == PEG_END_ACK ? PEG_OK : PEG_ENOMEM;
    stage_close(&s);
    return status;
}
