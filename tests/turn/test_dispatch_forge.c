/* SPDX-License-Identifier: Apache-2.0 */

/* The queries of artifacts: when they are there, and for how long. */

#include "fixture.h"
#include "pegboard/envelope.h"

/* ---- artifacts ------------------------------------------------------------------ */

static peg_status note_queries(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                               peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_tool *head = peg_registry_get(registry, peg_cstr("artifact_head"));
    const peg_json *ids = NULL;

    if (head)
        CHECK_INT(peg_json_pointer(peg_tool_input_schema(head), peg_cstr("/properties/callId/enum"),
                                   &ids, NULL),
                  PEG_OK);
    note(user, "%u:%zu/%zu ", peg_dispatch_iteration(dispatch), peg_registry_len(registry),
         ids ? peg_json_len(ids) : 0);
    peg_tool_unref(head);
    return peg_middleware_run_next(next, reterr);
}

static void say_text(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("one\ntwo\nthree"));
}

static peg_status add_text_tool(struct stage *s)
{
    const peg_tool_def def = tool_def("read", say_text, NULL);

    return stage_add(s, &def);
}

/* T123, T127, T128 */
TEST(queries_appear_in_the_iteration_after_an_artifact_and_their_ids_grow)
{
    struct stage s;

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    s.script[0] = "say wait";
    s.script[0] = "call c1 read {}";
    s.script[1] = "call q1 artifact_head {\"callId\":\"c1\",\"n\":1}";
    s.script[2] = "call c2 read {}";
    s.input[0] = (peg_dispatch_middleware){note_queries, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    /* two tools of the host; seven queries; the answer of a query is no artifact */
    CHECK_STR(peg__str(s.seen), "0:2/0 1:9/1 2:9/1 3:9/2 ");
    CHECK_STR(text_of(result_at(s.turn, 1)), "one");
    stage_close(&s);
}

static peg_status artifact_late(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_status status;

    if (peg_dispatch_iteration(dispatch) != 4)
        return PEG_OK;
    note(stage, "%d", peg_registry_has(registry, peg_cstr("artifact_head")));
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "%d", peg_registry_has(registry, peg_cstr("artifact_head")));
    return status;
}

/* T129 */
TEST(queries_are_gone_when_ack_returns_even_if_the_first_artifact_came_at_iteration_3)
{
    struct stage s;

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    s.act = artifact_late;
    for (int i = 0; i < 3; i++)
        s.script[i] = "call x nope {}";
    s.script[3] = "call c1 read {}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "10");
    stage_close(&s);
}

TEST(a_hosts_tool_with_the_name_of_a_query_stays_and_a_warning_says_so)
{
    struct stage s;
    const peg_tool_def mine = tool_def("artifact_head", echo, NULL);

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    CHECK_INT(stage_add(&s, &mine), PEG_OK);
    s.script[0] = "call c1 read {}";
    s.script[1] = "call c2 artifact_head {\"mine\":1}";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(count_of(s.log, "warning(E_QUERY_SHADOWED)"), 1);
    CHECK_STR(text_of(result_at(s.turn, 1)), "{\"mine\":1}");
    stage_close(&s);
}

/* An engine that notes which queries the handle of the first result lists. */
static peg_status read_handle(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_render_options options = {PEG_RENDER_OPTIONS_INIT, .inline_below = -1,
                                        .definitions = peg_dispatch_definitions(dispatch)};
    char *text = NULL;

    if (peg_dispatch_iteration(dispatch) == 0)
        return PEG_OK;
    CHECK_INT(
        peg_render_result(result_at(peg_dispatch_turn(dispatch), 0), &options, &text, NULL, reterr),
        PEG_OK);
    note(stage, "head %zu, all %zu", count_of(text, "\n- artifact_head: "),
         count_of(text, "\n- artifact_"));
    peg_free(text);
    return PEG_OK;
}

static peg_status hide_head(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                            peg_error *reterr)
{
    const char *const name = "artifact_head";
    const peg_status status =
        *(const bool *)user ? peg_registry_hide(peg_dispatch_registry(dispatch), &name, 1, reterr)
                            : PEG_OK;

    return status ? status : peg_middleware_run_next(next, reterr);
}

/* Decision 11. A host's tool may be ephemeral, as queries are, or hidden from the model. */
TEST(a_query_that_gave_way_to_a_hosts_tool_is_not_told_by_the_handle)
{
    static const struct {
        bool is_there;
        bool is_ephemeral;
        bool is_hidden;
        const char *expected;
    } cases[] = {
        {.expected = "head 1, all 7"},
        {.is_there = true, .expected = "head 0, all 6"},
        {.is_there = true, .is_ephemeral = true, .expected = "head 0, all 6"},
        {.is_there = true, .is_hidden = true, .expected = "head 0, all 6"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peg_tool_def mine = tool_def("artifact_head", echo, NULL);
        bool is_hidden = cases[i].is_hidden;
        struct stage s;

        CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
        mine.ephemeral = cases[i].is_ephemeral;
        if (cases[i].is_there)
            CHECK_INT(stage_add(&s, &mine), PEG_OK);
        s.act = read_handle;
        s.script[0] = "call c1 read {}";
        s.input[0] = (peg_dispatch_middleware){hide_head, &is_hidden};
        CHECK_INT(stage_run(&s), PEG_OK);

        CHECK_STR(peg__str(s.seen), cases[i].expected);
        stage_close(&s);
    }
}

static peg_status add_retrieved(peg_turn *turn, const char *id)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_block *block = NULL;
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .type = peg_cstr("retrieved"),
                         .id = peg_cstr(id), .tier = PEG_TIER_THIRD_PARTY_PUBLIC};
    peg_status status = peg_reader_from_bytes(peg_cstr("alpha\nbeta"), &reader, NULL);

    if (!status)
        status = peg_artifact_new(NULL, reader, &artifact, NULL);
    def.artifact = artifact;
    if (!status)
        status = peg_block_new(&def, &block, NULL);
    if (!status)
        status = peg_turn_add(turn, block, NULL);
    peg_block_unref(block);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
    return status;
}

TEST(something_retrieved_is_queried_by_the_id_of_its_block)
{
    struct stage s;

    opened(&s)->script[0] = "call q artifact_tail {\"callId\":\"doc-1\",\"n\":1}";
    CHECK_INT(add_retrieved(s.turn, "doc-1"), PEG_OK);
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 0)), "beta");
    stage_close(&s);
}

/* After the queries were forged, before the model is asked. */
static peg_status forget_at_1(peg_dispatch *dispatch, peg_middleware_next *next, void *user,
                              peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);
    peg_status status = PEG_OK;

    (void)user;
    while (peg_dispatch_iteration(dispatch) == 1 && !status &&
           peg_turn_count(turn, PEG_BLOCKS_CALLS) > 0)
        status = peg_turn_remove(turn, peg_block_id(peg_turn_last(turn, PEG_BLOCKS_CALLS)), reterr);
    return status ? status : peg_middleware_run_next(next, reterr);
}

TEST(an_artifact_that_is_taken_away_can_be_queried_in_that_iteration_and_not_in_the_next)
{
    struct stage s;

    CHECK_INT(add_text_tool(opened(&s)), PEG_OK);
    s.script[0] = "call c1 read {}";
    s.script[1] = "call q1 artifact_head {\"callId\":\"c1\",\"n\":1}";
    s.script[2] = "call q2 artifact_head {\"callId\":\"c1\",\"n\":1}";
    s.input[0] = (peg_dispatch_middleware){forget_at_1, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(text_of(result_at(s.turn, 0)), "one");
    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 1))), "E_TOOL_NOT_FOUND");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}
