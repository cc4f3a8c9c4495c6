/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/ctx.h"
#include "pegboard/event.h"
#include "pegboard/registry.h"

static struct peg__budget *ctx_budget(const peg_ctx *ctx);

/* ---- waiting ----------------------------------------------------------------------------- */

void peg__wait_init(struct peg__wait *wait)
{
    pthread_mutex_init(&wait->lock, NULL);
    peg__clock_cond_init(&wait->changed);
}

void peg__wait_destroy(struct peg__wait *wait)
{
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->lock);
}

void peg__wait_wake(struct peg__wait *wait)
{
    pthread_cond_broadcast(&wait->changed);
}

/* What is waited for, and what says stop. */
struct waiting {
    struct peg__wait *wait;
    const peg_clock *clock;
    peg_ctx *ctx; /* or NULL */
    int64_t until_ns;
    bool (*is_done)(void *user);
    void *user;
};

/* All with the lock. */

static bool must_stop(const struct waiting *w, int64_t now_ns)
{
    peg_cancel *cancel = w->ctx ? peg_ctx_cancel(w->ctx) : NULL;

    return (cancel && peg_cancel_fired(cancel)) || (w->ctx && peg__ctx_stop_ns(w->ctx) <= now_ns);
}

/* Is the waiting over? */
static bool look(const struct waiting *w, enum peg__woke *ret_woke)
{
    const int64_t now_ns = peg_clock_mono_ns(w->clock);

    if (w->is_done(w->user))
        *ret_woke = PEG__WOKE_DONE;
    else if (must_stop(w, now_ns))
        *ret_woke = PEG__WOKE_STOP;
    else if (w->until_ns <= now_ns)
        *ret_woke = PEG__WOKE_TIME;
    else
        return false;
    return true;
}

static enum peg__woke sleep_until_over(const struct waiting *w)
{
    enum peg__woke woke;

    while (!look(w, &woke)) {
        const int64_t stop_ns = w->ctx ? peg__ctx_stop_ns(w->ctx) : INT64_MAX;

        peg__clock_wait(w->clock, &w->wait->changed, &w->wait->lock,
                        stop_ns < w->until_ns ? stop_ns : w->until_ns);
    }
    return woke;
}

/* From the token and the budget. With the lock, which a waiting thread holds from its last look
 * until it sleeps, so the wake-up cannot fall between the two. */
static void look_again(void *user)
{
    struct peg__wait *wait = user;

    pthread_mutex_lock(&wait->lock);
    peg__wait_wake(wait);
    pthread_mutex_unlock(&wait->lock);
}

/* Hanging up and taking down is done without the lock, because look_again() takes it: at once,
 * if the token has fired, or while unhooking waits for it to end. */
static enum peg__woke wait_with_hooks(const struct waiting *w)
{
    struct peg__budget *budget = ctx_budget(w->ctx);
    struct peg__cancel_hook on_fire = {.fn = look_again, .user = w->wait};
    struct peg__observer on_resume = {.fn = look_again, .user = w->wait};
    enum peg__woke woke;

    pthread_mutex_unlock(&w->wait->lock);
    peg__cancel_hook(&on_fire, peg_ctx_cancel(w->ctx));
    if (budget)
        peg__observers_add(&budget->outermost->resumed, &on_resume);
    pthread_mutex_lock(&w->wait->lock);
    woke = sleep_until_over(w);
    pthread_mutex_unlock(&w->wait->lock);
    if (budget)
        peg__observers_remove(&budget->outermost->resumed, &on_resume);
    peg__cancel_unhook(&on_fire);
    pthread_mutex_lock(&w->wait->lock);
    /* It may have come true meanwhile, and it comes first. */
    return w->is_done(w->user) ? PEG__WOKE_DONE : woke;
}

enum peg__woke peg__wait_for(struct peg__wait *wait, peg_ctx *ctx, int64_t until_ns,
                             bool (*is_done)(void *user), void *user)
{
    const struct waiting w = {
        wait, ctx ? peg_ctx_clock(ctx) : peg_clock_system(), ctx, until_ns, is_done, user};
    enum peg__woke woke;

    if (look(&w, &woke))
        return woke;
    return ctx && (peg_ctx_cancel(ctx) || ctx_budget(ctx)) ? wait_with_hooks(&w)
                                                           : sleep_until_over(&w);
}

/* ---- events ------------------------------------------------------------------------------ */

static const char *const event_names[PEG_N_EVENT_KINDS] = {
    [PEG_EVENT_MESSAGE] = "message",
    [PEG_EVENT_THOUGHT] = "thought",
    [PEG_EVENT_TOOL_CALL] = "tool_call",
    [PEG_EVENT_TURN_START] = "turn_start",
    [PEG_EVENT_TURN_END] = "turn_end",
    [PEG_EVENT_DISPATCH_START] = "dispatch_start",
    [PEG_EVENT_DISPATCH_END] = "dispatch_end",
    [PEG_EVENT_ITERATION_START] = "iteration_start",
    [PEG_EVENT_ITERATION_END] = "iteration_end",
    [PEG_EVENT_TOOL_START] = "tool_start",
    [PEG_EVENT_TOOL_END] = "tool_end",
    [PEG_EVENT_GATE_OPEN] = "gate_open",
    [PEG_EVENT_GATE_CLOSED] = "gate_closed",
    [PEG_EVENT_LOG] = "log",
    [PEG_EVENT_STATS] = "stats",
    [PEG_EVENT_LIMIT] = "limit",
    [PEG_EVENT_WARNING] = "warning",
    [PEG_EVENT_ERROR] = "error",
    [PEG_EVENT_INFERENCE_START] = "inference_start",
    [PEG_EVENT_INFERENCE_END] = "inference_end",
    [PEG_EVENT_TOOL_ARGS] = "tool_args",
    [PEG_EVENT_PAUSE] = "pause",
};

const char *peg_event_name(peg_event_kind kind)
{
    return (unsigned)kind < PEG_N_EVENT_KINDS ? event_names[kind] : "unknown";
}

bool peg_event_is_functional(peg_event_kind kind)
{
    return kind == PEG_EVENT_MESSAGE || kind == PEG_EVENT_THOUGHT || kind == PEG_EVENT_TOOL_CALL;
}

const char *peg_turn_end_name(peg_turn_end end)
{
    switch (end) {
    case PEG_END_ACK:
        return "ack";
    case PEG_END_NACK:
        return "nack";
    case PEG_END_ABORTED:
        return "aborted";
    }
    return "unknown";
}

/* ---- contexts ---------------------------------------------------------------------------- */

/*
 * A context is a node that has all fields of its parent but the one it was made for, so reading
 * any of them is one load. It holds a reference to its parent, and with it to the owner of every
 * field that it copied.
 */

struct sink {
    peg_event_fn fn;
    void *user;
    const struct sink *outer; /* hears after this one; an ancestor's */
};

struct value {
    const void *key;
    void *value;
    void (*free)(void *);
    const struct value *outer; /* an ancestor's */
};

/* What a child copies. Pointers lead to what this node or one above it owns. */
struct fields {
    const peg_clock *clock;
    peg_cancel *cancel;
    struct peg__budget *budget;
    int64_t deadline_ns;
    unsigned n_calls; /* around this context: handlers whose calls made calls */
    const struct sink *sink;
    const struct value *value;
    peg_registry *registry;
    peg_gate_fn gate;
    void *gate_user;
    peg_ids ids;
};

struct peg_ctx {
    atomic_uint n_refs;
    peg_ctx *parent;
    /* Gives back what the node owns, and its memory. */
    void (*destroy)(peg_ctx *ctx);
    struct fields f;
    union {
        struct sink sink;
        struct value value;
    } own;
};

/* ---- nodes --------------------------------------------------------------------- */

static void destroy_plain(peg_ctx *ctx)
{
    peg__free(ctx);
}

/* What a context has that has no parent. */
static struct fields root_fields(void)
{
    return (struct fields){
        .clock = peg_clock_system(), .deadline_ns = INT64_MAX, .ids = {"", "", "", -1}};
}

/* parent may be NULL. */
static void node_init(peg_ctx *ctx, peg_ctx *parent, void (*destroy)(peg_ctx *ctx))
{
    atomic_init(&ctx->n_refs, 1);
    ctx->parent = peg_ctx_ref(parent);
    ctx->destroy = destroy;
    ctx->f = parent ? parent->f : root_fields();
}

/* NULL when out of memory. `extra` bytes follow the node. */
static peg_ctx *node_new(peg_ctx *parent, size_t extra, void (*destroy)(peg_ctx *ctx))
{
    peg_ctx *ctx = peg__alloc(sizeof(*ctx) + extra);

    if (ctx)
        node_init(ctx, parent, destroy);
    return ctx;
}

peg_status peg_ctx_new(peg_ctx **ret_ctx, peg_error *reterr)
{
    peg_ctx *ctx = node_new(NULL, 0, destroy_plain);

    if (!ctx)
        return peg__fail_nomem(reterr);
    *ret_ctx = ctx;
    return PEG_OK;
}

PEG__DEFINE_REF(peg_ctx)

/* A loop, not a recursion: chains may be long. */
peg_ctx *peg_ctx_unref(peg_ctx *ctx)
{
    while (ctx && peg__refs_drop(&ctx->n_refs)) {
        peg_ctx *parent = ctx->parent;

        ctx->destroy(ctx);
        ctx = parent;
    }
    return NULL;
}

/* ---- with a token, perhaps with a budget ------------------------------------------ */

/* One allocation for all three. Somebody may hold the token when the context is gone, so it is
 * the token that owns the memory, and the context holds one reference to it. */
struct token_node {
    peg_ctx ctx;
    peg_cancel token;
    struct peg__budget budget; /* only in a call's */
};

static void destroy_token_node(peg_ctx *ctx)
{
    peg_cancel_unref(&((struct token_node *)ctx)->token);
}

/* The budget's memory is left away where there is none. */
static struct token_node *token_node_new(peg_ctx *parent, bool has_budget)
{
    struct token_node *node =
        peg__alloc(has_budget ? sizeof(*node) : offsetof(struct token_node, budget));

    if (!node)
        return NULL;
    node_init(&node->ctx, parent, destroy_token_node);
    peg__cancel_init(&node->token, node->ctx.f.cancel, peg__free, node);
    node->ctx.f.cancel = &node->token;
    return node;
}

peg_status peg_ctx_with_cancel(peg_ctx *parent, peg_ctx **ret_ctx, peg_cancel **ret_cancel,
                               peg_error *reterr)
{
    struct token_node *node = token_node_new(parent, false);

    if (!node)
        return peg__fail_nomem(reterr);
    if (ret_cancel)
        *ret_cancel = peg_cancel_ref(&node->token);
    *ret_ctx = &node->ctx;
    return PEG_OK;
}

peg_status peg__ctx_for_call_at(peg_ctx *parent, int64_t timeout_ms, int64_t now_ns,
                                peg_ctx **ret_ctx, peg_error *reterr)
{
    struct token_node *node = token_node_new(parent, timeout_ms >= 0);

    if (!node)
        return peg__fail_nomem(reterr);
    if (timeout_ms >= 0) {
        peg__budget_init(&node->budget, node->ctx.f.budget, now_ns, timeout_ms);
        node->ctx.f.budget = &node->budget;
    }
    node->ctx.f.n_calls++;
    *ret_ctx = &node->ctx;
    return PEG_OK;
}

peg_status peg__ctx_for_call(peg_ctx *parent, int64_t timeout_ms, peg_ctx **ret_ctx,
                             peg_error *reterr)
{
    return peg__ctx_for_call_at(parent, timeout_ms, peg_clock_mono_ns(parent->f.clock), ret_ctx,
                                reterr);
}

unsigned peg__ctx_call_depth(const peg_ctx *ctx)
{
    return ctx->f.n_calls;
}

void peg__ctx_pause_budget(peg_ctx *ctx)
{
    peg__budget_pause(ctx->f.budget, ctx->f.clock);
}

void peg__ctx_resume_budget(peg_ctx *ctx)
{
    peg__budget_resume(ctx->f.budget, ctx->f.clock);
}

/* The budget that holds for ctx, or NULL; borrowed. */
static struct peg__budget *ctx_budget(const peg_ctx *ctx)
{
    return ctx->f.budget;
}

/* ---- with one thing more ------------------------------------------------------------ */

peg_status peg_ctx_with_deadline(peg_ctx *parent, int64_t ms, peg_ctx **ret_ctx, peg_error *reterr)
{
    peg_ctx *ctx = node_new(parent, 0, destroy_plain);
    int64_t deadline_ns;

    if (!ctx)
        return peg__fail_nomem(reterr);
    deadline_ns = peg__clock_in_ms(ctx->f.clock, ms);
    if (deadline_ns < ctx->f.deadline_ns)
        ctx->f.deadline_ns = deadline_ns;
    *ret_ctx = ctx;
    return PEG_OK;
}

peg_status peg_ctx_with_clock(peg_ctx *parent, const peg_clock *clock, peg_ctx **ret_ctx,
                              peg_error *reterr)
{
    peg_ctx *ctx;

    if (!clock)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "there is no clock: pass peg_clock_system() for the system's");
    if (parent && (parent->f.deadline_ns != INT64_MAX || parent->f.budget))
        return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                         "the context has a deadline, which is a moment of the clock that it has: "
                         "set the clock first, then the deadline");
    ctx = node_new(parent, 0, destroy_plain);
    if (!ctx)
        return peg__fail_nomem(reterr);
    ctx->f.clock = clock;
    *ret_ctx = ctx;
    return PEG_OK;
}

peg_status peg_ctx_with_events(peg_ctx *parent, peg_event_fn sink, void *user, peg_ctx **ret_ctx,
                               peg_error *reterr)
{
    peg_ctx *ctx;

    if (!sink)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "there is no sink: pass the function that shall hear the events");
    ctx = node_new(parent, 0, destroy_plain);
    if (!ctx)
        return peg__fail_nomem(reterr);
    ctx->own.sink = (struct sink){sink, user, ctx->f.sink};
    ctx->f.sink = &ctx->own.sink;
    *ret_ctx = ctx;
    return PEG_OK;
}

static void destroy_registry(peg_ctx *ctx)
{
    peg_registry_unref(ctx->f.registry);
    destroy_plain(ctx);
}

peg_status peg_ctx_with_registry(peg_ctx *parent, peg_registry *registry, peg_ctx **ret_ctx,
                                 peg_error *reterr)
{
    peg_ctx *ctx = node_new(parent, 0, destroy_registry);

    if (!ctx)
        return peg__fail_nomem(reterr);
    ctx->f.registry = registry ? peg_registry_ref(registry) : NULL;
    *ret_ctx = ctx;
    return PEG_OK;
}

peg_status peg_ctx_with_gates(peg_ctx *parent, peg_gate_fn listener, void *user, peg_ctx **ret_ctx,
                              peg_error *reterr)
{
    peg_ctx *ctx = node_new(parent, 0, destroy_plain);

    if (!ctx)
        return peg__fail_nomem(reterr);
    ctx->f.gate = listener;
    ctx->f.gate_user = user;
    *ret_ctx = ctx;
    return PEG_OK;
}

static void destroy_value(peg_ctx *ctx)
{
    if (ctx->own.value.free)
        ctx->own.value.free(ctx->own.value.value);
    peg__free(ctx);
}

peg_status peg_ctx_with_value(peg_ctx *parent, const void *key, void *value,
                              void (*value_free)(void *), peg_ctx **ret_ctx, peg_error *reterr)
{
    peg_ctx *ctx = node_new(parent, 0, destroy_value);

    if (!ctx)
        return peg__fail_nomem(reterr);
    ctx->own.value = (struct value){key, value, value_free, ctx->f.value};
    ctx->f.value = &ctx->own.value;
    *ret_ctx = ctx;
    return PEG_OK;
}

/* ---- ids -------------------------------------------------------------------------------- */

enum { N_IDS = 3 };

/* Copies *id behind *end and moves both on; NULL keeps what *kept is. */
static void keep_id(const char *id, const char **kept, char **end)
{
    size_t size;

    if (!id)
        return;
    size = strlen(id) + 1;
    memcpy(*end, id, size);
    *kept = *end;
    *end += size;
}

peg_status peg_ctx_with_ids(peg_ctx *parent, const peg_ids *ids, peg_ctx **ret_ctx,
                            peg_error *reterr)
{
    const char *const given[N_IDS] = {ids->run_id, ids->turn_id, ids->dispatch_id};
    size_t size = 0;
    peg_ctx *ctx;
    char *end;

    for (size_t i = 0; i < N_IDS; i++) {
        const size_t len = given[i] ? strnlen(given[i], PEG_LIMIT_ID_BYTES + 1) : 0;

        if (len > PEG_LIMIT_ID_BYTES)
            return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                             "an id of a context has more than %d bytes: "
                             "use a shorter one",
                             PEG_LIMIT_ID_BYTES);
        size += len + 1;
    }
    ctx = node_new(parent, size, destroy_plain);
    if (!ctx)
        return peg__fail_nomem(reterr);
    if (ids->turn_id)
        ctx->f.ids.dispatch_id = "";
    if (ids->turn_id || ids->dispatch_id)
        ctx->f.ids.iteration = -1;
    end = (char *)(ctx + 1);
    keep_id(ids->run_id, &ctx->f.ids.run_id, &end);
    keep_id(ids->turn_id, &ctx->f.ids.turn_id, &end);
    keep_id(ids->dispatch_id, &ctx->f.ids.dispatch_id, &end);
    if (ids->iteration != -1)
        ctx->f.ids.iteration = ids->iteration;
    *ret_ctx = ctx;
    return PEG_OK;
}

/* ---- what it holds -------------------------------------------------------------------------- */

PEG__DEFINE_GETTER(peg_registry *, peg_ctx_registry, peg_ctx, f.registry)
PEG__DEFINE_GETTER(const peg_clock *, peg_ctx_clock, peg_ctx, f.clock)
PEG__DEFINE_GETTER(peg_cancel *, peg_ctx_cancel, peg_ctx, f.cancel)

const peg_ids *peg_ctx_ids(const peg_ctx *ctx)
{
    return &ctx->f.ids;
}

void *peg_ctx_value(const peg_ctx *ctx, const void *key)
{
    for (const struct value *value = ctx->f.value; value; value = value->outer) {
        if (value->key == key)
            return value->value;
    }
    return NULL;
}

PEG__DEFINE_GETTER(int64_t, peg_ctx_deadline_ns, peg_ctx, f.deadline_ns)

bool peg__ctx_has_sink(const peg_ctx *ctx)
{
    return ctx->f.sink != NULL;
}

bool peg__ctx_notifies(const peg_ctx *ctx, peg_event_fn sink, void *user)
{
    for (const struct sink *s = ctx->f.sink; s; s = s->outer) {
        if (s->fn == sink && s->user == user)
            return true;
    }
    return false;
}

peg_gate_fn peg__ctx_gate_listener(const peg_ctx *ctx, void **ret_user)
{
    *ret_user = ctx->f.gate_user;
    return ctx->f.gate;
}

/* ---- going on, waiting, telling ---------------------------------------------------------------
 */

int64_t peg__ctx_stop_ns(const peg_ctx *ctx)
{
    const int64_t end_ns = peg__budget_end_ns(ctx->f.budget);

    return end_ns < ctx->f.deadline_ns ? end_ns : ctx->f.deadline_ns;
}

bool peg__ctx_is_over_budget(const peg_ctx *ctx)
{
    const int64_t end_ns = ctx->f.budget ? peg__budget_own_end_ns(ctx->f.budget) : INT64_MAX;

    return end_ns != INT64_MAX && end_ns <= peg__ctx_stop_ns(ctx) &&
           end_ns <= peg_clock_mono_ns(ctx->f.clock);
}

peg_status peg_ctx_check(const peg_ctx *ctx, peg_error *reterr)
{
    int64_t stop_ns;

    if (ctx->f.cancel && peg_cancel_fired(ctx->f.cancel))
        return peg__fail(reterr, PEG_ECANCELED, "E_CANCELED", "the host asked to stop: %s",
                         peg_cancel_reason(ctx->f.cancel));
    stop_ns = peg__ctx_stop_ns(ctx);
    if (stop_ns == INT64_MAX || peg_clock_mono_ns(ctx->f.clock) < stop_ns)
        return PEG_OK;
    if (peg__ctx_is_over_budget(ctx))
        return peg__fail(reterr, PEG_ETIMEOUT, "E_DEADLINE_EXCEEDED",
                         "the call has used up its %lld ms: do less in one call or allow it more",
                         (long long)ctx->f.budget->timeout_ms);
    return peg__fail(reterr, PEG_ETIMEOUT, "E_DEADLINE_EXCEEDED",
                     "the deadline has passed: do less or allow more time");
}

void peg__ctx_why_stopped(const peg_ctx *ctx, peg_error *ret_why)
{
    if (peg_ctx_check(ctx, ret_why) == PEG_OK)
        peg__fail(ret_why, PEG_ETIMEOUT, "E_DEADLINE_EXCEEDED",
                  "the deadline had passed: do less or allow more time");
}

static bool never(void *user)
{
    (void)user;
    return false;
}

peg_status peg_ctx_wait(peg_ctx *ctx, int64_t ms, peg_error *reterr)
{
    const int64_t until_ns = peg__clock_in_ms(ctx->f.clock, ms);
    struct peg__wait wait;
    enum peg__woke woke;

    peg__wait_init(&wait);
    pthread_mutex_lock(&wait.lock);
    woke = peg__wait_for(&wait, ctx, until_ns, never, NULL);
    pthread_mutex_unlock(&wait.lock);
    peg__wait_destroy(&wait);
    return woke == PEG__WOKE_STOP ? peg_ctx_check(ctx, reterr) : PEG_OK;
}

void peg_ctx_emit(const peg_ctx *ctx, peg_event *event)
{
    if (!ctx->f.sink)
        return;
    event->ids = ctx->f.ids;
    event->at_ms = peg_clock_now_ms(ctx->f.clock);
    for (const struct sink *sink = ctx->f.sink; sink; sink = sink->outer)
        sink->fn(event, sink->user);
}

/* ---- output of a handler ----------------------------------------------------------------- */

/* By its address: what a context calls its listener. */
static const char key;

peg_status peg__ctx_with_listener(peg_ctx *parent, const struct peg__listener *listener,
                                  peg_ctx **ret_ctx, peg_error *reterr)
{
    return peg_ctx_with_value(parent, &key, peg__unconst(listener), NULL, ret_ctx, reterr);
}

const struct peg__listener *peg__ctx_listener(const peg_ctx *ctx)
{
    return peg_ctx_value(ctx, &key);
}
