/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_GATE_FIXTURE_H
#define PEG_TESTS_CORE_GATE_FIXTURE_H

/* A context with a listener, a handler that waits at a gate on its own thread, and what was heard.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "pegboard/gate.h"

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

static inline void listen(peg_gate *gate, void *user)
{
    struct world *w = user;

    if (w->answer)
        w->answer(w, gate);
    atomic_fetch_add(&w->n_announced, 1);
}

static inline void hear(const peg_event *event, void *user)
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

static inline peg_json_doc *json(const char *text)
{
    peg_json_doc *doc = NULL;

    CHECK(peg_json_parse(peg_cstr(text), NULL, &doc, NULL) == PEG_OK);
    return doc;
}

/* Each is below the one before, which it replaces. */
static inline void world_ctx_init(struct world *w)
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

static inline void world_init(struct world *w, answer_fn answer)
{
    *w = (struct world){.answer = answer};
    pthread_mutex_init(&w->lock, NULL);
    CHECK(peg_clock_manual_new(5000, &w->clock, NULL) == PEG_OK);
    world_ctx_init(w);
    w->payload = json("{\"file\":\"a.txt\"}");
}

static inline void world_free(struct world *w)
{
    peg_gate_unref(w->kept);
    peg_schema_unref(w->schema);
    peg_json_doc_free(w->payload);
    peg_ctx_unref(w->ctx);
    peg_cancel_unref(w->cancel);
    peg_clock_manual_free(w->clock);
    pthread_mutex_destroy(&w->lock);
}

static inline peg_gate_def def_of(const struct world *w)
{
    return (peg_gate_def){PEG_GATE_DEF_INIT, .id = "g", .reason = "may I?",
                          .payload = peg_json_root(w->payload), .schema = w->schema};
}

static inline void set_schema(struct world *w, const char *text)
{
    CHECK(peg_schema_compile(peg_cstr(text), NULL, &w->schema, NULL) == PEG_OK);
}

/* Answers with JSON text; status and error go to the world. */
static inline void resolve(struct world *w, peg_gate *gate, const char *text)
{
    peg_json_doc *doc = json(text);

    w->status = peg_gate_resolve(gate, peg_json_root(doc), &w->error);
    peg_json_doc_free(doc);
}

static inline void say_yes(struct world *w, peg_gate *gate)
{
    resolve(w, gate, "{\"ok\":true}");
}

static inline void keep(struct world *w, peg_gate *gate)
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

static inline void *ask(void *user)
{
    struct handler *h = user;

    h->status = peg_gate_wait(h->ctx, &h->def, &h->value, &h->error);
    return NULL;
}

/* Returns when the gate is open and the handler sleeps. */
static inline void start(struct handler *h, struct world *w, peg_gate_def def)
{
    const int n = atomic_load(&w->n_announced);
    const size_t n_waiting = peg_clock_manual_waiting(w->clock);

    *h = (struct handler){.ctx = w->ctx, .def = def};
    CHECK_INT(pthread_create(&h->thread, NULL, ask, h), 0);
    while (atomic_load(&w->n_announced) == n || peg_clock_manual_waiting(w->clock) == n_waiting)
        sched_yield();
}

static inline peg_status join(struct handler *h)
{
    CHECK_INT(pthread_join(h->thread, NULL), 0);
    return h->status;
}

static inline void check_value(peg_json_doc *doc, const char *expected)
{
    char *text = NULL;
    size_t len = 0;

    CHECK(doc != NULL);
    CHECK(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, &len, NULL) == PEG_OK);
    CHECK_STR(peg__strn(text, len), expected);
    peg_free(text);
    peg_json_doc_free(doc);
}

#endif
