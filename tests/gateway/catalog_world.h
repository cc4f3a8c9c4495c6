/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_CATALOG_WORLD_H
#define PEG_TESTS_GATEWAY_CATALOG_WORLD_H

/*
 * A catalog on two loops with a bus of one process, and a store that can be made to fail. The test
 * thread asks from either loop and waits for the answer. Include it behind t.h.
 */

#include <pthread.h>
#include <semaphore.h>

#include "base/error.h"
#include "bus/bus.h"
#include "gateway/catalog/catalog.h"

#include "requests.h"

enum { WORLD_LOOPS = 2 };

struct loop_state {
    struct world *world;
    unsigned number;
    struct gw_snapshot *snapshot; /* on its loop */
    unsigned n_snapshots;
};

struct world {
    struct net_loops *loops;
    struct bus_local_hub *hub;
    struct bus *buses[WORLD_LOOPS];
    peg_store inner;
    peg_store store; /* around the other */
    struct gw_catalog *catalog;
    struct loop_state states[WORLD_LOOPS];
    bool has_principals;    /* before world_open() */
    atomic_int fails_with;  /* what the next writes to the store fail with */
    atomic_uint n_outdated; /* so many of them find a greater revision there */
    atomic_uint n_puts;
    sem_t held;          /* a put waits for it, if ... */
    atomic_bool is_held; /* ... this is so */
    sem_t reached;
    /* The answer. */
    struct gw_change_wait wait;
    sem_t answered;
    peg_status status;
    peg_error error;
    char name[64];
    uint64_t revision;
    int64_t registered_at_ms;
};

/* ---- something on a loop, waited for ---- */

struct errand {
    struct net_message message;
    void (*fn)(void *arg);
    void *arg;
    sem_t done;
};

static inline void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn(errand->arg);
    sem_post(&errand->done);
}

static inline void await_sem(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static inline void on_loop(struct net_loop *loop, void (*fn)(void *arg), void *arg)
{
    struct errand errand = {.message.fn = run_errand, .fn = fn, .arg = arg};

    sem_init(&errand.done, 0, 0);
    net_loop_post(loop, &errand.message);
    await_sem(&errand.done);
    sem_destroy(&errand.done);
}

static inline struct net_loop *loop_at(struct world *w, unsigned i)
{
    return net_loops_at(w->loops, i);
}

/* ---- a store that fails ---- */

static inline peg_status store_put(void *self, const peg_store_record *record, peg_error *reterr)
{
    struct world *w = self;
    const int status = atomic_load(&w->fails_with);

    atomic_fetch_add(&w->n_puts, 1);
    if (atomic_load(&w->is_held)) {
        sem_post(&w->reached);
        await_sem(&w->held);
    }
    if (status)
        return peg__fail(reterr, (peg_status)status, "E_STORE", "the disk is full");
    if (atomic_load(&w->n_outdated) > 0) {
        atomic_fetch_sub(&w->n_outdated, 1);
        return peg__fail(reterr, PEG_ESTATE, "E_STORE_REVISION", "another node was quicker");
    }
    return w->inner.put(w->inner.self, record, reterr);
}

static inline peg_status store_read(void *self, peg_store_each_fn each, void *user,
                                    peg_error *reterr)
{
    struct world *w = self;

    return w->inner.read(w->inner.self, each, user, reterr);
}

static inline peg_status store_forget(void *self, int64_t before_ms, peg_error *reterr)
{
    struct world *w = self;

    return w->inner.forget(w->inner.self, before_ms, reterr);
}

static inline void store_free(void *self)
{
    (void)self;
}

/* ---- its life ---- */

static inline void make_bus(void *arg)
{
    struct loop_state *state = arg;
    struct world *w = state->world;
    peg_error error;

    if (bus_local_new(w->hub, loop_at(w, state->number), state->number, &w->buses[state->number],
                      &error))
        abort();
}

static inline void free_bus(void *arg)
{
    struct loop_state *state = arg;

    bus_free(state->world->buses[state->number]);
    state->snapshot = gw_snapshot_unref(state->snapshot);
}

static inline void on_snapshot(void *arg, struct gw_snapshot *snapshot)
{
    struct loop_state *state = arg;

    gw_snapshot_ref(snapshot);
    gw_snapshot_unref(state->snapshot);
    state->snapshot = snapshot;
    state->n_snapshots++;
}

static const struct gw_catalog_events world_events = {.on_snapshot = on_snapshot};

static inline peg_status world_open(struct world *w)
{
    void *const states[] = {&w->states[0], &w->states[1]};

    const struct gw_catalog_options options = {.loops = w->loops,
                                               .home_bus = w->buses[0],
                                               .store = &w->store,
                                               .events = &world_events,
                                               .users = states,
                                               .has_principals = w->has_principals};

    return gw_catalog_new(&options, &w->catalog, &w->error);
}

/* All but the catalog; `inner` is a store that outlives the world, or NULL. */
static inline void world_prepare(struct world *w, const peg_store *inner)
{
    *w = (struct world){.n_puts = 0};
    sem_init(&w->answered, 0, 0);
    sem_init(&w->held, 0, 0);
    sem_init(&w->reached, 0, 0);
    if (inner)
        w->inner = *inner;
    else if (peg_memory_store_new(&w->inner, &w->error))
        T_FAIL("no store: %s", w->error.message);
    w->store = (peg_store){.kind = "test",
                           .put = store_put,
                           .read = store_read,
                           .forget = store_forget,
                           .free = store_free,
                           .self = w};
    if (net_loops_new(WORLD_LOOPS, &w->loops, &w->error) ||
        bus_local_hub_new(0xA, &w->hub, &w->error))
        T_FAIL("no loops: %s", w->error.message);
    for (unsigned i = 0; i < WORLD_LOOPS; i++) {
        w->states[i] = (struct loop_state){.world = w, .number = i};
        on_loop(loop_at(w, i), make_bus, &w->states[i]);
    }
}

static inline void world_start(struct world *w, const peg_store *inner)
{
    world_prepare(w, inner);
    if (world_open(w))
        T_FAIL("no catalog: %s", w->error.message);
}

static inline void world_close(struct world *w)
{
    for (unsigned i = 0; i < WORLD_LOOPS; i++)
        on_loop(loop_at(w, i), free_bus, &w->states[i]);
    w->loops = net_loops_free(w->loops);
    w->hub = bus_local_hub_free(w->hub);
    sem_destroy(&w->answered);
    sem_destroy(&w->held);
    sem_destroy(&w->reached);
}

static inline void world_stop(struct world *w, bool keeps_store)
{
    w->catalog = gw_catalog_free(w->catalog);
    world_close(w);
    if (!keeps_store)
        w->inner.free(w->inner.self);
}

/* ---- asking ---- */

static inline void on_answer(struct gw_change_wait *wait, peg_status status,
                             const struct gw_toolset *toolset, const peg_error *error)
{
    struct world *w = (struct world *)(void *)((char *)wait - offsetof(struct world, wait));

    w->status = status;
    if (status)
        w->error = *error;
    w->revision = toolset ? toolset->revision : 0;
    w->registered_at_ms = toolset ? toolset->registered_at_ms : 0;
    snprintf(w->name, sizeof(w->name), "%s", toolset ? toolset->name.ptr : "");
    sem_post(&w->answered);
}

struct question {
    struct world *world;
    unsigned loop;
    const struct req *req; /* NULL: unregister */
    const char *name;
    const char *principal;
    bool has_live;
};

static inline void ask_now(void *arg)
{
    const struct question *q = arg;
    struct world *w = q->world;

    w->wait.fn = on_answer;
    if (q->req)
        gw_catalog_offer(w->catalog, loop_at(w, q->loop), &q->req->msg, peg__str(q->principal),
                         q->has_live, &w->wait);
    else
        gw_catalog_unregister(w->catalog, loop_at(w, q->loop), peg__str(q->name),
                              peg__str(q->principal), &w->wait);
}

static inline void ask(const struct question *q)
{
    on_loop(loop_at(q->world, q->loop), ask_now, peg__unconst(q));
}

static inline peg_status answer(struct world *w)
{
    await_sem(&w->answered);
    return w->status;
}

static inline peg_status add(struct world *w, const struct req *req)
{
    const struct question q = {.world = w, .loop = 1, .req = req, .principal = "local"};

    ask(&q);
    return answer(w);
}

static inline peg_status add_named(struct world *w, const char *name)
{
    struct req req = {0};

    req_init(&req, name);
    return add(w, &req);
}

static inline peg_status take_away(struct world *w, const char *name)
{
    const struct question q = {.world = w, .loop = 1, .name = name, .principal = "local"};

    ask(&q);
    return answer(w);
}

/* ---- looking ---- */

struct look {
    struct loop_state *state;
    char names[512];
    unsigned n_snapshots;
    struct gw_toolset *toolset; /* a reference, if `wants` is there */
    const char *wants;
};

static inline void look_now(void *arg)
{
    struct look *look = arg;
    const struct gw_snapshot *snapshot = look->state->snapshot;
    size_t len = 0;

    look->names[0] = '\0';
    look->n_snapshots = look->state->n_snapshots;
    for (size_t i = 0; snapshot && i < snapshot->n && len < sizeof(look->names) - 70; i++)
        len += (size_t)snprintf(look->names + len, sizeof(look->names) - len, "%.64s ",
                                snapshot->toolsets[i]->name.ptr);
    if (look->wants && snapshot)
        look->toolset = gw_toolset_ref(gw_snapshot_find(snapshot, peg__str(look->wants)));
}

/* The names of the toolsets that a loop sees, each with a space behind it. */
static inline peg_str seen_by(struct world *w, unsigned loop)
{
    static struct look look;

    look = (struct look){.state = &w->states[loop]};
    on_loop(loop_at(w, loop), look_now, &look);
    return peg__str(look.names);
}

#endif
