/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/gate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/ctx.h"

/* ---- fixture: a context with a listener, a handler that waits, and what was heard ------ */

enum { MAX_HEARD = 8 };

struct world;

/* What the listener does with a gate. */
typedef void (*answer_fn)(struct world *w, peg_gate *gate);

struct world {
    peg_clock *clock;
    peg_ctx *ctx; /* ids "r", "t", "d", 2 */
    peg_cancel *cancel;
    peg_json_doc *payload;
    peg_schema *schema; /* NULL unless a test sets it */
    answer_fn answer;
    peg_gate *kept;         /* by keep(): a reference */
    atomic_int n_announced; /* gates that the listener got */
    pthread_mutex_t lock;
    char heard[MAX_HEARD][64]; /* under lock: "gate_open ID REASON", "gate_closed ID RESULT" */
    int n_heard;
    int64_t settled_ms;
    bool was_settled_in_closed;
    peg_status status; /* of the resolver */
    peg_error error;
};

static void listen(peg_gate *gate, void *user)
{
    struct world *w = user;

    if (w->answer)
        w->answer(w, gate);
    atomic_fetch_add(&w->n_announced, 1);
}

static void hear(const peg_event *event, void *user)
{
    const peg_gate_event *gate = &event->u.gate;
    struct world *w = user;

    pthread_mutex_lock(&w->lock);
    if (w->n_heard < MAX_HEARD)
        snprintf(w->heard[w->n_heard], sizeof(w->heard[0]), "%s %.*s %s/%s",
                 peg_event_name(event->kind), PEG_ARG(gate->id), event->ids.turn_id,
                 event->kind == PEG_EVENT_GATE_OPEN ? peg_gate_reason(gate->gate) : gate->result);
    w->n_heard++;
    if (event->kind == PEG_EVENT_GATE_CLOSED) {
        w->settled_ms = gate->settled_ms;
        w->was_settled_in_closed = peg_gate_is_settled(gate->gate);
    }
    pthread_mutex_unlock(&w->lock);
}

static peg_json_doc *json(const char *text)
{
    peg_json_doc *doc = NULL;

    CHECK(peg_json_parse(peg_cstr(text), NULL, &doc, NULL) == PEG_OK);
    return doc;
}

/* Each is below the one before, which it replaces. */
static void world_ctx_init(struct world *w)
{
    static const peg_ids ids = {"r", "t", "d", 2};
    peg_ctx *c[6] = {NULL};

    CHECK(peg_ctx_new(&c[0], NULL) == PEG_OK);
    CHECK(peg_ctx_with_clock(c[0], w->clock, &c[1], NULL) == PEG_OK);
    CHECK(peg_ctx_with_cancel(c[1], &c[2], &w->cancel, NULL) == PEG_OK);
    CHECK(peg_ctx_with_ids(c[2], &ids, &c[3], NULL) == PEG_OK);
    CHECK(peg_ctx_with_events(c[3], hear, w, &c[4], NULL) == PEG_OK);
    CHECK(peg_ctx_with_gates(c[4], listen, w, &c[5], NULL) == PEG_OK);
    for (int i = 0; i < 5; i++)
        peg_ctx_unref(c[i]);
    w->ctx = c[5];
}

static void world_init(struct world *w, answer_fn answer)
{
    *w = (struct world){.answer = answer};
    pthread_mutex_init(&w->lock, NULL);
    CHECK(peg_clock_manual_new(5000, &w->clock, NULL) == PEG_OK);
    world_ctx_init(w);
    w->payload = json("{\"file\":\"a.txt\"}");
}

static void world_free(struct world *w)
{
    peg_gate_unref(w->kept);
    peg_schema_unref(w->schema);
    peg_json_doc_free(w->payload);
    peg_ctx_unref(w->ctx);
    peg_cancel_unref(w->cancel);
    peg_clock_manual_free(w->clock);
    pthread_mutex_destroy(&w->lock);
}

static peg_gate_def def_of(const struct world *w)
{
    return (peg_gate_def){
        .id = "g", .reason = "may I?", .payload = peg_json_root(w->payload), .schema = w->schema};
}

static void set_schema(struct world *w, const char *text)
{
    CHECK(peg_schema_compile(peg_cstr(text), NULL, &w->schema, NULL) == PEG_OK);
}

/* Answers with JSON text; status and error go to the world. */
static void resolve(struct world *w, peg_gate *gate, const char *text)
{
    peg_json_doc *doc = json(text);

    w->status = peg_gate_resolve(gate, peg_json_root(doc), &w->error);
    peg_json_doc_free(doc);
}

static void say_yes(struct world *w, peg_gate *gate)
{
    resolve(w, gate, "{\"ok\":true}");
}

static void keep(struct world *w, peg_gate *gate)
{
    w->kept = peg_gate_ref(gate);
}

/* ---- a handler on its own thread ------------------------------------------------------- */

struct handler {
    pthread_t thread;
    peg_ctx *ctx;
    peg_gate_def def;
    peg_status status;
    peg_json_doc *value;
    peg_error error;
};

static void *ask(void *user)
{
    struct handler *h = user;

    h->status = peg_gate_wait(h->ctx, &h->def, &h->value, &h->error);
    return NULL;
}

/* Returns when the gate is open and the handler sleeps. */
static void start(struct handler *h, struct world *w, peg_gate_def def)
{
    const int n = atomic_load(&w->n_announced);
    const size_t n_waiting = peg_clock_manual_waiting(w->clock);

    *h = (struct handler){.ctx = w->ctx, .def = def};
    CHECK_INT(pthread_create(&h->thread, NULL, ask, h), 0);
    while (atomic_load(&w->n_announced) == n || peg_clock_manual_waiting(w->clock) == n_waiting)
        sched_yield();
}

static peg_status join(struct handler *h)
{
    CHECK_INT(pthread_join(h->thread, NULL), 0);
    return h->status;
}

static void check_value(peg_json_doc *doc, const char *expected)
{
    char *text = NULL;
    size_t len = 0;

    CHECK(doc != NULL);
    CHECK(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, &len, NULL) == PEG_OK);
    CHECK_STR(peg__strn(text, len), expected);
    peg_free(text);
    peg_json_doc_free(doc);
}

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
    set_schema(&w, "{\"type\":\"string\",\"pattern\":\"^(a+)+$\"}");
    start(&h, &w, def_of(&w));
    resolve(&w, w.kept, "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"");

    CHECK_INT(w.status, PEG_ELIMIT);
    CHECK(!peg_gate_is_settled(w.kept));
    peg_gate_abort(w.kept);
    join(&h);
    world_free(&w);
}

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

/* ---- what cannot be opened
 * ---------------------------------------------------------------------------- */

static void check_refused(struct world *w, peg_gate_def def, const char *where)
{
    CHECK_INT(peg_gate_wait(w->ctx, &def, NULL, &w->error), PEG_EINVAL);
    CHECK_STR(peg_cstr(w->error.code), "E_INVALID_INITIAL_TURN_GATE_VALUE");
    CHECK_STR(peg_cstr(w->error.where), where);
}

/* T142: a timeout of 0 is none, an id that is missing is made, createdAt is the clock's. */
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
    CHECK_STR(peg_cstr(w.error.code), "E_LLM_EXECUTION_GATE_NOT_SUPPORTED");
    CHECK_INT(w.n_heard, 0);
    peg_ctx_unref(deaf);
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
