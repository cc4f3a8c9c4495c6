/* SPDX-License-Identifier: Apache-2.0 */

/* How gates end: by whoever answers, by time, by the context, by several at once. */

#include "../t.h"
#include "gate_fixture.h"

/* ---- the other ends
 * ------------------------------------------------------------------------------ */

/* T140 */
TEST(rejection_reaches_the_waiter_with_code_and_words)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    start(&h, &w, def_of(&w));
    peg_gate_reject(w.kept, "E_DENIED", "not on a %s", "Friday");

    CHECK_INT(join(&h), PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.code), "E_TURN_GATE_REJECTED");
    CHECK_STR(peg_cstr(h.error.cause), "E_DENIED");
    CHECK(strstr(h.error.message, "not on a Friday"));
    CHECK_STR(peg_cstr(w.heard[1]), "gate_closed g t/rejected");
    CHECK(!h.value);
    world_free(&w);
}

TEST(long_rejection_is_cut_at_a_character)
{
    struct world w;
    struct handler h;
    char words[400];

    world_init(&w, keep);
    for (size_t i = 0; i + 2 < sizeof(words); i += 2)
        memcpy(words + i, "\xc3\xa9", 3);
    start(&h, &w, def_of(&w));
    peg_gate_reject(w.kept, NULL, "%s", words);

    CHECK_INT(join(&h), PEG_EHOST);
    CHECK_STR(peg_cstr(h.error.cause), "");
    CHECK(strstr(h.error.message, "\xc3\xa9..."));
    world_free(&w);
}

/* T140 */
TEST(abort_ends_the_gate_and_not_its_turn)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    start(&h, &w, def_of(&w));
    peg_gate_abort(w.kept);

    CHECK_INT(join(&h), PEG_ECANCELED);
    CHECK_STR(peg_cstr(h.error.code), "E_TURN_GATE_ABORTED");
    CHECK_STR(peg_cstr(h.error.cause), "");
    CHECK_STR(peg_cstr(w.heard[1]), "gate_closed g t/aborted");
    CHECK_INT(peg_ctx_check(w.ctx, NULL), PEG_OK);
    world_free(&w);
}

/* T140 */
TEST(gate_that_nobody_answers_times_out_on_the_clock_of_the_context)
{
    struct world w;
    struct handler h;
    peg_gate_def def;

    world_init(&w, keep);
    def = def_of(&w);
    def.timeout_ms = 1000;
    start(&h, &w, def);
    peg_clock_manual_advance(w.clock, 999);
    CHECK(!peg_gate_is_settled(w.kept));
    peg_clock_manual_advance(w.clock, 1);

    CHECK_INT(join(&h), PEG_ETIMEOUT);
    CHECK_STR(peg_cstr(h.error.code), "E_TURN_GATE_TIMEOUT");
    CHECK(strstr(h.error.message, "1000 ms"));
    CHECK_STR(peg_cstr(w.heard[1]), "gate_closed g t/timeout");
    CHECK_INT(w.settled_ms, 6000);
    world_free(&w);
}

/* T140 */
TEST(what_comes_after_settlement_changes_nothing)
{
    struct world w;
    struct handler h;

    world_init(&w, keep);
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "1");
    resolve(&w, w.kept, "2");
    CHECK_INT(w.status, PEG_OK);
    peg_gate_reject(w.kept, "E_LATE", "late");
    peg_gate_abort(w.kept);
    peg_cancel_fire(w.cancel, NULL);

    CHECK_INT(join(&h), PEG_OK);
    check_value(h.value, "1");
    CHECK_INT(w.n_heard, 2);
    world_free(&w);
}

/* ---- cancellation, deadline, budget
 * ----------------------------------------------------------------- */

/* T141 */
TEST(turn_that_is_canceled_aborts_every_open_gate)
{
    struct world w;
    struct handler h[2];
    peg_gate_def def;

    world_init(&w, NULL);
    def = def_of(&w);
    start(&h[0], &w, def);
    start(&h[1], &w, def);
    peg_cancel_fire(w.cancel, "the user left");

    for (int i = 0; i < 2; i++) {
        CHECK_INT(join(&h[i]), PEG_ECANCELED);
        CHECK_STR(peg_cstr(h[i].error.code), "E_TURN_GATE_ABORTED");
        CHECK_STR(peg_cstr(h[i].error.cause), "E_CANCELED");
        CHECK(strstr(h[i].error.message, "the user left"));
    }
    CHECK_INT(w.n_heard, 4);
    CHECK_STR(peg_cstr(w.heard[3]), "gate_closed g t/aborted");
    world_free(&w);
}

/* T141 */
TEST(gate_of_a_canceled_turn_is_announced_and_aborted)
{
    struct world w;
    peg_gate_def def;

    world_init(&w, NULL);
    def = def_of(&w);
    peg_cancel_fire(w.cancel, NULL);

    CHECK_INT(peg_gate_wait(w.ctx, &def, NULL, &w.error), PEG_ECANCELED);
    CHECK_STR(peg_cstr(w.error.code), "E_TURN_GATE_ABORTED");
    CHECK_STR(peg_cstr(w.heard[0]), "gate_open g t/may I?");
    CHECK_STR(peg_cstr(w.heard[1]), "gate_closed g t/aborted");
    CHECK_INT(w.n_announced, 1);
    world_free(&w);
}

TEST(gate_is_aborted_at_the_deadline_of_the_context)
{
    struct world w;
    struct handler h;
    peg_ctx *timed = NULL;

    world_init(&w, NULL);
    CHECK(peg_ctx_with_deadline(w.ctx, 50, &timed, NULL) == PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = timed;
    start(&h, &w, def_of(&w));
    peg_clock_manual_advance(w.clock, 50);

    CHECK_INT(join(&h), PEG_ECANCELED);
    CHECK_STR(peg_cstr(h.error.code), "E_TURN_GATE_ABORTED");
    CHECK_STR(peg_cstr(h.error.cause), "E_DEADLINE_EXCEEDED");
    world_free(&w);
}

TEST(time_at_a_gate_does_not_count_against_the_call)
{
    struct world w;
    struct handler h;
    peg_ctx *call = NULL;

    world_init(&w, keep);
    CHECK(peg__ctx_for_call(w.ctx, 100, &call, NULL) == PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = call;
    peg_clock_manual_advance(w.clock, 60);
    start(&h, &w, def_of(&w));
    peg_clock_manual_advance(w.clock, 3600 * 1000);
    CHECK(!peg_gate_is_settled(w.kept));
    say_yes(&w, w.kept);

    CHECK_INT(join(&h), PEG_OK);
    peg_json_doc_free(h.value);
    CHECK_INT(peg_ctx_check(call, NULL), PEG_OK);
    peg_clock_manual_advance(w.clock, 40);
    CHECK_INT(peg_ctx_check(call, NULL), PEG_ETIMEOUT);
    world_free(&w);
}

/* ---- threads
 * --------------------------------------------------------------------------------------------- */

/* T143 */
TEST(two_open_gates_settle_independently)
{
    struct world w;
    struct handler first;
    struct handler second;
    peg_gate *gate;
    peg_gate_def def;

    world_init(&w, keep);
    def = def_of(&w);
    start(&first, &w, def);
    gate = w.kept;
    def.id = "g2";
    start(&second, &w, def);

    say_yes(&w, w.kept);
    CHECK_INT(join(&second), PEG_OK);
    CHECK(!peg_gate_is_settled(gate));
    peg_gate_reject(gate, "E_DENIED", "no");
    CHECK_INT(join(&first), PEG_EHOST);

    peg_json_doc_free(second.value);
    peg_gate_unref(gate);
    world_free(&w);
}

struct racer {
    pthread_t thread;
    struct world *w;
    peg_gate *gate;
    pthread_barrier_t *go;
    int way;
    peg_status status;
};

static void *settle_somehow(void *user)
{
    struct racer *racer = user;

    pthread_barrier_wait(racer->go);
    if (racer->way < 2)
        racer->status = peg_gate_resolve(racer->gate, peg_gate_payload(racer->gate), NULL);
    else if (racer->way == 2)
        peg_gate_reject(racer->gate, "E_DENIED", "no");
    else
        peg_cancel_fire(racer->w->cancel, NULL);
    peg_gate_unref(racer->gate);
    return NULL;
}

/* What the waiter got belongs to the one closed event. */
static void check_one_winner(const struct world *w, struct handler *h)
{
    const peg_status status = join(h);

    CHECK_INT(w->n_heard, 2);
    if (status == PEG_OK)
        CHECK_STR(peg_cstr(w->heard[1]), "gate_closed g t/resolved");
    else if (status == PEG_EHOST)
        CHECK_STR(peg_cstr(w->heard[1]), "gate_closed g t/rejected");
    else
        CHECK_STR(peg_cstr(w->heard[1]), "gate_closed g t/aborted");
    CHECK((h->value != NULL) == (status == PEG_OK));
    peg_json_doc_free(h->value);
}

/* T146 */
TEST(of_several_that_settle_at_once_exactly_one_wins)
{
    for (int round = 0; round < 100; round++) {
        const int n = 2 + round % 3;
        struct world w;
        struct handler h;
        struct racer racers[4];
        pthread_barrier_t go;

        world_init(&w, keep);
        start(&h, &w, def_of(&w));
        pthread_barrier_init(&go, NULL, (unsigned)n);
        for (int i = 0; i < n; i++) {
            racers[i] = (struct racer){.w = &w, .gate = peg_gate_ref(w.kept), .go = &go, .way = i};
            CHECK_INT(pthread_create(&racers[i].thread, NULL, settle_somehow, &racers[i]), 0);
        }
        /* The waiter and its context may go before the losers come. */
        check_one_winner(&w, &h);
        for (int i = 0; i < n; i++) {
            CHECK_INT(pthread_join(racers[i].thread, NULL), 0);
            CHECK_INT(racers[i].status, PEG_OK);
        }
        pthread_barrier_destroy(&go);
        CHECK_INT(w.n_heard, 2);
        world_free(&w);
    }
}
