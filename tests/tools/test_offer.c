/* SPDX-License-Identifier: Apache-2.0 */

/* A tool that a middleware offers to the run it is in, and to no other. */

#include "../turn/fixture.h"
#include "pegboard/bag.h"
#include "pegboard/sqlite.h"

/* ---- fixture: a stage, and a database that is no part of its runner ------------------------- */

static peg_status fill(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    (void)ctx, (void)user;
    return peg_sqlite_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES (5)", NULL, reterr);
}

static peg_tool *database(void)
{
    peg_tool *tool = NULL;

    CHECK_INT(
        peg_sqlite_tool_new(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill}, &tool, NULL),
        PEG_OK);
    return tool;
}

static void note_names(struct stage *stage, const peg_json *definitions)
{
    PEG_JSON_EACH_ITEM (definitions, item) {
        const char *name = peg_json_str(peg_json_get(item, "name")).ptr;

        if (strncmp(name, "artifact_", 9) != 0)
            note(stage, "%s ", name);
    }
}

/* Notes what the model is offered, and what the turn says of it. */
static peg_status look(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_json *on_turn = NULL;
    const peg_status status =
        peg_turn_get(peg_dispatch_turn(dispatch), &peg_key_tool_definitions, &on_turn, reterr);

    if (status)
        return status;
    CHECK(on_turn && peg_dispatch_definitions(dispatch));
    CHECK(peg_json_equal(on_turn, peg_dispatch_definitions(dispatch)));
    note_names(stage, on_turn);
    note(stage, "| ");
    return PEG_OK;
}

#define ASK "call c1 sql_query {\"sql\":\"SELECT a FROM t\"}"
#define ANSWER "{\"columns\":[\"a\"],\"rows\":[{\"a\":5}],\"count\":1}"

/* ---- tests ------------------------------------------------------------------------------------
 */

/* G56, G60, G134 */
TEST(an_offered_tool_is_defined_and_run_in_the_same_iteration)
{
    struct stage stage;
    peg_tool *tool = database();

    opened(&stage);
    stage.act = look;
    stage.script[0] = ASK;
    stage.script[1] = "say done";
    stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, tool};
    CHECK_INT(stage_run(&stage), PEG_OK);

    CHECK_INT(stage.outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(stage.seen), "echo sql_query | echo sql_query | ");
    CHECK_STR(text_of(result_at(stage.turn, 0)), ANSWER);
    peg_tool_unref(tool);
    stage_close(&stage);
}

struct choosy {
    peg_tool *tool;
    bool is_on;
};

static peg_status offer_if(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                           peg_error *reterr)
{
    const struct choosy *choosy = user;

    return choosy->is_on ? peg_offer_middleware(dispatch, next, choosy->tool, reterr)
                         : peg_middleware_run_next(next, reterr);
}

/* G56 */
TEST(an_offered_tool_is_unknown_to_the_runner_and_to_the_next_run)
{
    struct stage stage;
    struct choosy choosy = {.tool = database(), .is_on = true};
    peg_registry *registry = NULL;
    char names[128];

    opened(&stage);
    CHECK_INT(peg_registry_new(stage.tools, stage.n_tools, &registry, NULL), PEG_OK);
    stage.config.registry = registry;
    stage.act = look;
    stage.script[0] = ASK;
    stage.input[0] = (peg_dispatch_middleware){offer_if, &choosy};
    CHECK_INT(stage_run(&stage), PEG_OK);
    names_of(registry, false, names, sizeof(names));
    CHECK_STR(peg__str(names), "echo ");

    choosy.is_on = false;
    stage.seen[0] = '\0';
    CHECK_INT(peg_turn_add_text(stage.turn, PEG_BLOCK_USER, peg_cstr("again"), NULL), PEG_OK);
    CHECK_INT(stage_run(&stage), PEG_OK);
    CHECK_STR(peg__str(stage.seen), "echo | echo | ");
    CHECK_STR(peg__str(peg_record_code(result_at(stage.turn, 1))), "E_TOOL_NOT_FOUND");
    peg_registry_unref(registry);
    peg_tool_unref(choosy.tool);
    stage_close(&stage);
}

TEST(a_tool_that_is_there_already_may_be_offered)
{
    struct stage stage;
    peg_tool *tool = database();

    opened(&stage);
    stage.tools[stage.n_tools++] = tool;
    stage.script[0] = ASK;
    stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, tool};
    stage.input[1] = (peg_dispatch_middleware){peg_offer_middleware, tool};
    CHECK_INT(stage_run(&stage), PEG_OK);

    CHECK_INT(stage.outcome.end, PEG_END_ACK);
    CHECK_STR(text_of(result_at(stage.turn, 0)), ANSWER);
    stage_close(&stage);
}

TEST(a_name_that_another_tool_has_is_not_taken_over)
{
    struct stage stage;
    peg_tool *tool = database();
    const peg_tool_def other = tool_def("sql_query", echo, NULL);

    opened(&stage);
    CHECK_INT(stage_add(&stage, &other), PEG_OK);
    stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, tool};
    CHECK_INT(stage_run(&stage), PEG_OK);

    CHECK_INT(stage.outcome.end, PEG_END_NACK);
    CHECK_CONTAINS(peg__str(stage.outcome.error.message), "sql_query");
    CHECK_INT(stage.n_infer, 0);
    peg_tool_unref(tool);
    stage_close(&stage);
}

TEST(offering_nothing_is_an_error)
{
    struct stage stage;

    opened(&stage);
    stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, NULL};
    CHECK_INT(stage_run(&stage), PEG_OK);
    CHECK_INT(stage.outcome.end, PEG_END_NACK);
    stage_close(&stage);
}

/* The reference lets a stored turn choose the file. */
TEST(a_turn_does_not_choose_the_database)
{
    static const peg_key dsn = {
        PEG_BAG_DATA, "pinocchio.sqlite_dsn@v1", PEG_KEY_STRING, NULL, NULL, 0};
    struct stage stage;
    peg_tool *tool = database();

    opened(&stage);
    CHECK_INT(peg_turn_set_string(stage.turn, &dsn, peg_cstr("/etc/passwd"), NULL), PEG_OK);
    stage.script[0] = ASK;
    stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, tool};
    CHECK_INT(stage_run(&stage), PEG_OK);

    CHECK_STR(text_of(result_at(stage.turn, 0)), ANSWER);
    peg_tool_unref(tool);
    stage_close(&stage);
}

TORTURE(offering_survives_any_allocation_failure)
{
    struct stage stage;
    peg_tool *tool = NULL;
    peg_status status = stage_open(&stage);

    if (!status)
        status =
            peg_sqlite_tool_new(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill}, &tool, NULL);
    if (!status) {
        stage.script[0] = ASK;
        stage.input[0] = (peg_dispatch_middleware){peg_offer_middleware, tool};
        status = stage_run(&stage);
        if (!status && stage.outcome.end == PEG_END_NACK)
            status = strcmp(stage.outcome.error.cause, "E_OUT_OF_MEMORY") == 0
                         ? PEG_ENOMEM
                         : stage.outcome.error.status;
    }
    peg_tool_unref(tool);
    stage_close(&stage);
    return status;
}
