/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/gate.h"

#include "../t.h"
#include "base/limits.h"
#include "gate_fixture.h"

/* ---- opening and resolving ---------------------------------------------------------------- */

static void look_then_yes(struct world *w, peg_gate *gate)
{
    const peg_json *file = peg_json_get(peg_gate_payload(gate), "file");

    CHECK_STR(peg_cstr(peg_gate_id(gate)), "g");
    CHECK_STR(peg_cstr(peg_gate_reason(gate)), "may I?");
    CHECK_STR(peg_cstr(peg_gate_ids(gate)->turn_id), "t");
    CHECK_STR(peg_cstr(peg_gate_ids(gate)->dispatch_id), "d");
    CHECK_INT(peg_gate_ids(gate)->iteration, 2);
    CHECK_INT(peg_gate_created_ms(gate), 5000);
    CHECK(file && !peg_gate_is_settled(gate));
    CHECK_INT(w->n_heard, 1);
    say_yes(w, gate);
}

/* T137 */
TEST(open_gate_is_announced_with_all_it_has_and_may_be_resolved_inline)
{
    struct world w;
    peg_json_doc *value = NULL;
    peg_gate_def def;

    world_init(&w, look_then_yes);
    def = def_of(&w);

    CHECK_STATUS(peg_gate_wait(w.ctx, &def, &value, &w.error), PEG_OK, w.error);
    check_value(value, "{\"ok\":true}");
    CHECK_STR(peg_cstr(w.heard[0]), "gate_open g t/may I?");
    CHECK_INT(w.n_announced, 1);
    world_free(&w);
}

static void hear_and_resolve(const peg_event *event, void *user)
{
    if (event->kind == PEG_EVENT_GATE_OPEN)
        say_yes(user, event->u.gate.gate);
}

/* T137 */
TEST(gate_may_be_resolved_from_the_open_event_and_the_listener_is_spared)
{
    struct world w;
    peg_ctx *ctx = NULL;
    peg_gate_def def;

    world_init(&w, NULL);
    def = def_of(&w);
    CHECK(peg_ctx_with_events(w.ctx, hear_and_resolve, &w, &ctx, NULL) == PEG_OK);

    CHECK_INT(peg_gate_wait(ctx, &def, NULL, &w.error), PEG_OK);
    CHECK_INT(w.n_announced, 0);
    peg_ctx_unref(ctx);
    world_free(&w);
}

/* T138 */
TEST(resolved_value_reaches_the_waiter_after_the_closed_event)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    start(&h, &w, def_of(&w));
    CHECK(!peg_gate_is_settled(w.kept));
    peg_clock_manual_advance(w.clock, 7);
    resolve(&w, w.kept, "[1,2]");
    /* The event came before the waiter was woken: it is here whatever the waiter does. */
    CHECK_INT(w.n_heard, 2);

    CHECK_STATUS(join(&h), PEG_OK, h.error);
    check_value(h.value, "[1,2]");
    CHECK_STR(peg_cstr(w.heard[1]), "gate_closed g t/resolved");
    CHECK_INT(w.settled_ms, 5007);
    CHECK(w.was_settled_in_closed && peg_gate_is_settled(w.kept));
    world_free(&w);
}

struct watch {
    struct world *w;
    size_t n_waiting; /* at the end of the closed event */
};

/* Takes its time, so that a waiter that was let go is gone. */
static void watch_the_waiter(const peg_event *event, void *user)
{
    struct watch *watch = user;

    if (event->kind != PEG_EVENT_GATE_CLOSED)
        return;
    for (int i = 0; i < 1000; i++)
        sched_yield();
    watch->n_waiting = peg_clock_manual_waiting(watch->w->clock);
}

/* The context is the waiter's: whoever tells of the end with it must be through before. */
/* T138 */
TEST(waiter_sleeps_until_all_have_heard_of_the_end)
{
    struct world w;
    struct handler h;
    struct watch watch = {.w = &w};
    peg_ctx *watched = NULL;

    world_init(&w, keep);
    CHECK_INT(peg_ctx_with_events(w.ctx, watch_the_waiter, &watch, &watched, NULL), PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = watched;
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "1");

    CHECK_INT(watch.n_waiting, 1);
    CHECK_INT(join(&h), PEG_OK);
    check_value(h.value, "1");
    world_free(&w);
}

TEST(gate_that_was_kept_stays_readable_when_all_else_is_gone)
{
    struct world w;
    peg_gate_def def;
    peg_gate *kept;

    world_init(&w, keep);
    def = def_of(&w);
    def.timeout_ms = 1;
    w.answer = keep;
    peg_cancel_fire(w.cancel, NULL);
    CHECK_INT(peg_gate_wait(w.ctx, &def, NULL, NULL), PEG_ECANCELED);
    kept = w.kept;
    w.kept = NULL;
    world_free(&w);

    CHECK_STR(peg_cstr(peg_gate_id(kept)), "g");
    CHECK_STR(peg_cstr(peg_gate_reason(kept)), "may I?");
    CHECK_STR(peg_cstr(peg_gate_ids(kept)->run_id), "r");
    CHECK(peg_json_get(peg_gate_payload(kept), "file") != NULL);
    CHECK(peg_gate_is_settled(kept));
    peg_gate_abort(kept);
    peg_gate_reject(kept, "E_LATE", "late");
    CHECK_INT(peg_gate_resolve(kept, peg_gate_payload(kept), NULL), PEG_OK);
    CHECK(peg_gate_unref(kept) == NULL);
}

TEST(gate_without_an_id_gets_a_fresh_one)
{
    struct world w;
    peg_gate_def def;

    world_init(&w, keep);
    peg_cancel_fire(w.cancel, NULL);
    def = def_of(&w);
    def.id = NULL;
    CHECK_INT(peg_gate_wait(w.ctx, &def, NULL, NULL), PEG_ECANCELED);

    CHECK_INT(strlen(peg_gate_id(w.kept)), 36);
    world_free(&w);
}

/* ---- answers that do not fit ------------------------------------------------------------------
 */

/* T139 */
TEST(answer_against_the_schema_is_refused_to_the_resolver_and_a_later_one_works)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    set_schema(&w, "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},"
                   "\"required\":[\"ok\"]}");
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "{\"ok\":\"yes\"}");
    CHECK_INT(w.status, PEG_ESCHEMA);
    CHECK_STR(peg_cstr(w.error.code), "E_INVALID_TURN_GATE_RESOLUTION");
    CHECK_STR(peg_cstr(w.error.where), "/ok");
    CHECK(strstr(w.error.message, "boolean"));
    CHECK(!peg_gate_is_settled(w.kept));
    CHECK_INT(w.n_heard, 1);
    CHECK_INT(peg_gate_resolve(w.kept, NULL, NULL), PEG_ESCHEMA);
    say_yes(&w, w.kept);

    CHECK_INT(w.status, PEG_OK);
    CHECK_INT(join(&h), PEG_OK);
    check_value(h.value, "{\"ok\":true}");
    world_free(&w);
}

TEST(answer_gets_the_defaults_of_the_schema)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    set_schema(&w, "{\"properties\":{\"n\":{\"default\":3}},\"required\":[\"n\"]}");
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "{}");

    CHECK_INT(join(&h), PEG_OK);
    check_value(h.value, "{\"n\":3}");
    world_free(&w);
}

TEST(answer_that_cannot_be_checked_within_limits_is_refused_and_the_gate_stays_open)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    set_schema(&w, "{\"type\":\"string\",\"pattern\":\"^(?=(a+)+$)\"}");
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"");

    CHECK_INT(w.status, PEG_ELIMIT);
    CHECK(!peg_gate_is_settled(w.kept));
    peg_gate_abort(w.kept);
    join(&h);
    world_free(&w);
}

/* ---- what cannot be opened
 * ---------------------------------------------------------------------------- */

static void check_refused(struct world *w, peg_gate_def def, const char *where)
{
    CHECK_INT(peg_gate_wait(w->ctx, &def, NULL, &w->error), PEG_EINVAL);
    CHECK_STR(peg_cstr(w->error.code), "E_INVALID_INITIAL_TURN_GATE_VALUE");
    CHECK_STR(peg_cstr(w->error.where), where);
}

/* A timeout of 0 is none, an id that is missing is made, the time of creation is the clock's. */
/* T142 */
TEST(gate_that_cannot_work_is_refused_before_anybody_is_told)
{
    struct world w;
    peg_gate_def def;
    char long_text[PEG_LIMIT_GATE_REASON_BYTES + 2];

    world_init(&w, say_yes);
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    for (int i = 0; i < 9; i++) {
        static const char *const wheres[] = {"/timeout_ms", "/timeout_ms", "/reason",
                                             "/reason",     "/reason",     "/reason",
                                             "/payload",    "/id",         "/id"};

        def = def_of(&w);
        def.timeout_ms = i == 0 ? -1 : i == 1 ? INT64_MIN : 0;
        def.reason = i == 2 ? NULL : i == 3 ? "" : i == 4 ? "\xff" : i == 5 ? long_text : "why";
        def.payload = i == 6 ? NULL : def.payload;
        def.id = i == 7 ? "" : i == 8 ? long_text : "g";
        check_refused(&w, def, wheres[i]);
    }

    CHECK(w.n_heard == 0 && w.n_announced == 0);
    world_free(&w);
}

/* T145 */
TEST(gate_without_a_listener_fails_at_once)
{
    struct world w;
    peg_ctx *deaf = NULL;
    peg_gate_def def;

    world_init(&w, NULL);
    def = def_of(&w);
    CHECK(peg_ctx_with_gates(w.ctx, NULL, NULL, &deaf, NULL) == PEG_OK);

    CHECK_INT(peg_gate_wait(deaf, &def, NULL, &w.error), PEG_EUNSUPPORTED);
    CHECK_STR(peg_cstr(w.error.code), "E_GATE_UNSUPPORTED");
    CHECK_INT(w.n_heard, 0);
    peg_ctx_unref(deaf);
    world_free(&w);
}

/* ---- out of memory
 * ------------------------------------------------------------------------------------------ */

static void try_yes(struct world *w, peg_gate *gate)
{
    static const char text[] = "{\"a\":[1,2,3]}";
    peg_json_doc *doc = NULL;

    w->status = peg_json_parse(peg_cstr(text), NULL, &doc, NULL);
    if (!w->status)
        w->status = peg_gate_resolve(gate, peg_json_root(doc), NULL);
    peg_json_doc_free(doc);
    if (w->status)
        peg_gate_abort(gate);
}

static peg_status open_and_answer(struct world *w)
{
    peg_gate_def def = def_of(w);
    peg_json_doc *value = NULL;
    peg_status status;

    def.id = NULL;
    status = peg_gate_wait(w->ctx, &def, &value, &w->error);
    peg_json_doc_free(value);
    /* If the answer could not be kept the listener gave up: what counts is what it was told. */
    return status == PEG_ECANCELED ? w->status : status;
}

/* As a TORTURE, but the fixture has all the memory it needs. */
TEST(gate_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = PEG_ENOMEM;
    unsigned nth;

    world_init(&w, try_yes);
    set_schema(&w, "{\"type\":\"object\",\"properties\":{\"b\":{\"default\":1}}}");
    for (nth = 1; status == PEG_ENOMEM; nth++) {
        const size_t live = peg__mem_live();

        peg__mem_fail_at(nth);
        status = open_and_answer(&w);
        peg__mem_fail_at(0);
        CHECK_INT(peg__mem_live(), live);
    }

    CHECK_INT(status, PEG_OK);
    CHECK(nth > 5);
    world_free(&w);
}
