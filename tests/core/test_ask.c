/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/gate.h"

#include "../t.h"
#include "base/mem.h"
#include "gate_fixture.h"
#include "pegboard/call.h"
#include "pegboard/record.h"
#include "pegboard/registry.h"
#include "pegboard/run.h"

/* ---- fixture: two questions, and a host that answers them -------------------------------------
 */

static const char both[] = "{\"form\":{\"action\":\"accept\",\"content\":{\"n\":1}},"
                           "\"roots\":{\"roots\":[]}}";

static peg_status ask_both(peg_ctx *ctx, const peg_json *params, peg_json_doc **ret_answers,
                           peg_error *reterr)
{
    const peg_ask asks[] = {{"form", "elicitation/create", params, false},
                            {"roots", "roots/list", NULL, false}};

    return peg_gate_ask(ctx, asks, 2, ret_answers, reterr);
}

static void answer_both(struct world *w, peg_gate *gate)
{
    resolve(w, gate, both);
}

/* ---- asking ------------------------------------------------------------------------------------
 */

static void look_then_answer(struct world *w, peg_gate *gate)
{
    const peg_json *requests = peg_json_get(peg_gate_payload(gate), "pegboard/requests");
    const peg_json *form = peg_json_get(requests, "form");
    const peg_json *roots = peg_json_get(requests, "roots");

    CHECK_INT(peg_json_len(requests), 2);
    CHECK_STR(peg_json_str(peg_json_get(form, "method")), "elicitation/create");
    CHECK_STR(peg_json_str(peg_json_get(peg_json_get(form, "params"), "file")), "a.txt");
    CHECK_STR(peg_json_str(peg_json_get(roots, "method")), "roots/list");
    CHECK(peg_gate_schema(gate)); /* an answer to each is demanded */
    answer_both(w, gate);
}

TEST(ask_opens_one_gate_with_all_questions_and_returns_the_answers)
{
    struct world w;
    peg_json_doc *answers = NULL;

    world_init(&w, look_then_answer);

    CHECK_STATUS(ask_both(w.ctx, peg_json_root(w.payload), &answers, &w.error), PEG_OK, w.error);
    CHECK_INT(w.n_announced, 1);
    check_value(answers, both);
    world_free(&w);
}

static void answer_one_then_both(struct world *w, peg_gate *gate)
{
    resolve(w, gate, "{\"roots\":{\"roots\":[]}}");
    CHECK_INT(w->status, PEG_ESCHEMA);
    CHECK_STR(peg_cstr(w->error.code), "E_INVALID_TURN_GATE_RESOLUTION");
    CHECK(!peg_gate_is_settled(gate));
    answer_both(w, gate);
}

TEST(ask_stays_open_while_an_answer_is_missing)
{
    struct world w;
    peg_json_doc *answers = NULL;

    world_init(&w, answer_one_then_both);

    CHECK_STATUS(ask_both(w.ctx, peg_json_root(w.payload), &answers, &w.error), PEG_OK, w.error);
    check_value(answers, both);
    world_free(&w);
}

static void answer_form_alone(struct world *w, peg_gate *gate)
{
    resolve(w, gate, "{\"form\":{\"action\":\"accept\"}}");
}

TEST(ask_is_complete_without_an_optional_answer)
{
    const peg_ask asks[] = {{"form", "elicitation/create", NULL, false},
                            {"roots", "roots/list", NULL, true}};
    struct world w;
    peg_json_doc *answers = NULL;

    world_init(&w, answer_form_alone);

    CHECK_STATUS(peg_gate_ask(w.ctx, asks, 2, &answers, &w.error), PEG_OK, w.error);
    check_value(answers, "{\"form\":{\"action\":\"accept\"}}");
    world_free(&w);
}

TEST(ask_refuses_what_cannot_be_asked_before_anybody_is_told)
{
    const peg_ask twice[] = {{"a", "roots/list", NULL, false}, {"a", "roots/list", NULL, false}};
    struct world w;
    peg_json_doc *answers = NULL;

    world_init(&w, answer_both);

    CHECK_INT(peg_gate_ask(w.ctx, twice, 2, &answers, &w.error), PEG_EINVAL);
    CHECK_INT(peg_gate_ask(w.ctx, twice, 0, &answers, &w.error), PEG_EINVAL);
    CHECK_INT(w.n_announced, 0);
    CHECK(!answers);
    world_free(&w);
}

TEST(ask_without_a_listener_fails_at_once)
{
    peg_ctx *ctx = NULL;
    peg_json_doc *answers = NULL;
    peg_error error;

    CHECK(peg_ctx_new(&ctx, NULL) == PEG_OK);

    CHECK_INT(ask_both(ctx, NULL, &answers, &error), PEG_EUNSUPPORTED);
    CHECK_STR(peg_cstr(error.code), "E_GATE_UNSUPPORTED");
    CHECK(strstr(error.message, "elicitation/create, roots/list:"));
    peg_ctx_unref(ctx);
}

static void reject(struct world *w, peg_gate *gate)
{
    (void)w;
    peg_gate_reject(gate, "E_DENIED", "not today");
}

TEST(ask_that_is_rejected_has_the_words_of_who_did)
{
    struct world w;
    peg_json_doc *answers = NULL;

    world_init(&w, reject);

    CHECK_INT(ask_both(w.ctx, NULL, &answers, &w.error), PEG_EHOST);
    CHECK_STR(peg_cstr(w.error.code), "E_TURN_GATE_REJECTED");
    CHECK_STR(peg_cstr(w.error.cause), "E_DENIED");
    world_free(&w);
}

/* ---- on a call ---------------------------------------------------------------------------------
 */

static void ask_for_roots(peg_call *call, const peg_json *args, void *user)
{
    const peg_ask asks[] = {{"form", "roots/list", NULL, false},
                            {"roots", "roots/list", NULL, false}};
    peg_json_doc *answers = NULL;
    peg_error error;

    (void)args;
    (void)user;
    if (peg_call_ask(call, asks, 2, &answers, &error))
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_json(call, peg_json_root(answers));
    peg_json_doc_free(answers);
}

TEST(call_asks_on_its_own_context)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "t", "Asks.", NULL, .run = ask_for_roots};
    struct world w;
    peg_tool *tool = NULL;
    peg_registry *registry = NULL;
    peg_record *record = NULL;
    peg_ctx *ctx[3] = {NULL}; /* without the fixture's ears, which know gates alone */
    peg_str answer;

    world_init(&w, answer_both);
    CHECK(peg_tool_new(&def, &tool, NULL) == PEG_OK);
    CHECK(peg_registry_new(&tool, 1, &registry, NULL) == PEG_OK);

    CHECK(peg_ctx_new(&ctx[0], NULL) == PEG_OK);
    CHECK(peg_ctx_with_gates(ctx[0], listen, &w, &ctx[1], NULL) == PEG_OK);
    CHECK(peg_ctx_with_registry(ctx[1], registry, &ctx[2], NULL) == PEG_OK);

    CHECK_STATUS(peg_call_run(ctx[2],
                              &(peg_call_request){PEG_CALL_REQUEST_INIT, .tool = peg_cstr("t"),
                                                  .args = peg_cstr("{}")},
                              NULL, &record, &w.error),
                 PEG_OK, w.error);
    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, both);

    peg_record_unref(record);
    for (int i = 0; i < 3; i++)
        peg_ctx_unref(ctx[i]);
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    world_free(&w);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static void try_both(struct world *w, peg_gate *gate)
{
    peg_json_doc *doc = NULL;

    w->status = peg_json_parse(peg_cstr(both), NULL, &doc, NULL);
    if (!w->status)
        w->status = peg_gate_resolve(gate, peg_json_root(doc), NULL);
    peg_json_doc_free(doc);
    if (w->status)
        peg_gate_abort(gate);
}

/* As a TORTURE, but the fixture has all the memory it needs. */
TEST(ask_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = PEG_ENOMEM;
    unsigned nth;

    world_init(&w, try_both);
    for (nth = 1; status == PEG_ENOMEM; nth++) {
        const size_t live = peg__mem_live();
        peg_json_doc *answers = NULL;

        peg__mem_fail_at(nth);
        status = ask_both(w.ctx, peg_json_root(w.payload), &answers, &w.error);
        peg_json_doc_free(answers);
        peg__mem_fail_at(0);
        if (status == PEG_ECANCELED) /* the listener had no memory for its answer */
            status = w.status;
        CHECK_INT(peg__mem_live(), live);
    }
    CHECK_INT(status, PEG_OK);
    CHECK(nth > 10);
    world_free(&w);
}
