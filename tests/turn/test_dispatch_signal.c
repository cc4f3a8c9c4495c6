/* SPDX-License-Identifier: Apache-2.0 */

/* Signals: ack, nack, their subscribers, and the ephemeral tools that go with an ack. */

#include "fixture.h"

/* ---- signals -------------------------------------------------------------------- */

static peg_status signal_twice(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_error second;

    (void)stage;
    CHECK(!peg_dispatch_is_signalled(dispatch));
    CHECK_INT(peg_dispatch_ack(dispatch, reterr), PEG_OK);
    CHECK_INT(peg_dispatch_nack(dispatch, NULL, &second), PEG_ESTATE);
    CHECK_STR(peg__str(second.code), "E_WRONG_STATE");
    CHECK_INT(peg_dispatch_ack(dispatch, &second), PEG_ESTATE);
    CHECK(peg_dispatch_is_acked(dispatch));
    CHECK(!peg_dispatch_nack_error(dispatch));
    return PEG_OK;
}

/* T89 */
TEST(a_second_signal_is_refused_and_the_first_stays)
{
    struct stage s;

    opened(&s)->act = signal_twice;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    stage_close(&s);
}

static peg_status nack_then_fail(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_error why = {
        .status = PEG_ELIMIT, .code = "E_QUOTA", .cause = "", .message = "no tokens left"};

    (void)stage;
    CHECK_INT(peg_dispatch_nack(dispatch, &why, reterr), PEG_OK);
    return PEG_EHOST;
}

TEST(what_a_nack_was_told_stays_though_the_executor_fails_after_it)
{
    struct stage s;

    opened(&s)->act = nack_then_fail;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.outcome.error.code), "E_QUOTA");
    CHECK_INT(s.outcome.error.status, PEG_ELIMIT);
    CHECK_STR(peg__str(s.outcome.error.message), "no tokens left");
    CHECK_INT(count_of(s.log, "error("), 1);
    stage_close(&s);
}

static peg_status nack_with_half(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_error half = {.where = "/x"};

    (void)stage;
    return peg_dispatch_nack(dispatch, &half, reterr);
}

TEST(a_nack_with_half_an_error_is_a_whole_one)
{
    struct stage s;

    opened(&s)->act = nack_with_half;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_NACK);
    CHECK_INT(s.outcome.error.status, PEG_EHOST);
    CHECK_STR(peg__str(s.outcome.error.code), "E_NACK");
    CHECK_STR(peg__str(s.outcome.error.cause), "");
    CHECK_CONTAINS(peg__str(s.outcome.error.message), "without a message");
    stage_close(&s);
}

/* ---- subscribers of an ack ------------------------------------------------------ */

static peg_status first(void *user)
{
    note(user, "first ");
    return PEG_EHOST;
}

static peg_status second(void *user)
{
    note(user, "second ");
    return PEG_OK;
}

static peg_status third(void *user)
{
    note(user, "third ");
    return PEG_OK;
}

static peg_status subscribe(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_subscription *removed = NULL;
    peg_status status;

    if ((status = peg_dispatch_on_ack(dispatch, first, stage, NULL, reterr)) ||
        (status = peg_dispatch_on_ack(dispatch, third, stage, &removed, reterr)) ||
        (status = peg_dispatch_on_ack(dispatch, second, stage, NULL, reterr)))
        return status;
    peg_subscription_end(removed);
    if (stage->user)
        return peg_dispatch_nack(dispatch, NULL, reterr);
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "acked ");
    peg_subscription_end(removed);
    return status;
}

/* T90 */
TEST(subscribers_hear_of_an_ack_in_order_inside_it_and_one_that_fails_stops_nobody)
{
    struct stage s;

    opened(&s)->act = subscribe;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "first second acked ");
    stage_close(&s);
}

/* T90 */
TEST(subscribers_do_not_hear_of_a_nack)
{
    struct stage s;

    opened(&s)->act = subscribe;
    s.user = &s;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "");
    stage_close(&s);
}

/* ---- ephemeral tools ------------------------------------------------------------ */

static peg_status add_ephemeral(peg_registry *registry, const char *name)
{
    peg_tool_def def = tool_def(name, echo, NULL);
    peg_tool *tool = NULL;
    peg_status status;

    def.ephemeral = true;
    status = peg_tool_new(&def, &tool, NULL);
    if (!status)
        status = peg_registry_register(registry, tool, false, NULL);
    peg_tool_unref(tool);
    return status;
}

static peg_status ephemeral_then_end(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    const char *how = stage->user;
    peg_status status = add_ephemeral(registry, "brief");

    if (status)
        return status;
    if (strcmp(how, "ack") == 0)
        status = peg_dispatch_ack(dispatch, reterr);
    else if (strcmp(how, "nack") == 0)
        status = peg_dispatch_nack(dispatch, NULL, reterr);
    else
        peg_dispatch_abort(dispatch, "stop");
    note(stage, "%s:%s ", how, peg_registry_has(registry, peg_cstr("brief")) ? "there" : "gone");
    return status;
}

/* T56, T57, T58 */
TEST(an_ephemeral_tool_is_gone_when_ack_returns_and_not_on_nack_or_abort)
{
    static const char *const ways[] = {"ack", "nack", "abort"};
    static const char *const expected[] = {"ack:gone ", "nack:there ", "abort:there "};

    for (size_t i = 0; i < 3; i++) {
        struct stage s;
        char way[8];

        opened(&s)->act = ephemeral_then_end;
        snprintf(way, sizeof(way), "%s", ways[i]);
        s.user = way;
        CHECK_INT(stage_run(&s), PEG_OK);
        CHECK_STR(peg__str(s.seen), expected[i]);
        stage_close(&s);
    }
}

static peg_status bind_another(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    peg_registry *bound = NULL;
    peg_registry *unbound = NULL;
    peg_registry *merged = NULL;
    peg_subscription *subscription = NULL;
    peg_status status;

    CHECK_INT(peg_registry_new(NULL, 0, &bound, NULL), PEG_OK);
    CHECK_INT(add_ephemeral(bound, "brief"), PEG_OK);
    CHECK_INT(peg_registry_copy(bound, &unbound, NULL), PEG_OK);
    CHECK_INT(peg_registry_merge(&bound, 1, PEG_COLLISION_FAIL, &merged, NULL), PEG_OK);
    CHECK_INT(peg_registry_bind(bound, dispatch, NULL, NULL), PEG_OK);
    CHECK_INT(peg_registry_bind(bound, dispatch, NULL, NULL), PEG_OK); /* twice is once */
    CHECK_INT(peg_registry_bind(unbound, dispatch, &subscription, NULL), PEG_OK);
    peg_subscription_end(subscription);
    status = peg_dispatch_ack(dispatch, reterr);
    note(stage, "%zu %zu %zu", peg_registry_len(bound), peg_registry_len(unbound),
         peg_registry_len(merged));
    peg_subscription_end(subscription);
    peg_registry_unref(bound);
    peg_registry_unref(unbound);
    peg_registry_unref(merged);
    return status;
}

/* T59, T60 */
TEST(a_registry_that_is_not_bound_any_more_or_was_merged_from_one_is_not_pruned)
{
    struct stage s;

    opened(&s)->act = bind_another;
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "0 1 1");
    stage_close(&s);
}

static peg_status ephemeral_at_turn(peg_turn_scope *scope, peg_middleware_next *next, void *user,
                                    peg_error *reterr)
{
    (void)user;
    CHECK_INT(add_ephemeral(peg_turn_scope_registry(scope), "brief"), PEG_OK);
    return peg_middleware_run_next(next, reterr);
}

static peg_status report_brief(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    (void)reterr;
    note(stage, "%d ", peg_registry_has(peg_dispatch_registry(dispatch), peg_cstr("brief")));
    return PEG_OK;
}

TEST(a_hosts_ephemeral_tool_lives_through_every_iteration_in_spite_of_forging)
{
    struct stage s;

    opened(&s)->act = report_brief;
    s.script[0] = "call c1 echo {}";
    s.script[1] = "call c2 echo {}";
    s.turn_input[0] = (peg_turn_middleware){ephemeral_at_turn, &s};
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(s.seen), "1 1 1 ");
    stage_close(&s);
}
