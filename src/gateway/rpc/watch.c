/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A watcher gets three kinds of messages, in this order: that it lost something, if it did; what is
 * there, by a cursor over a snapshot of its own; then what has changed since, from a bounded queue.
 * It goes on whenever its stream takes more, but in turns: a change goes to all watchers.
 *
 * A toolset that comes to have the tags of a watcher, or has them no more, was registered or
 * unregistered for that watcher.
 */

#include "gateway/rpc/rpc.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/call.h"
#include "gateway/access/access.h"
#include "grpc/message.h"

typedef Pegboard__V1__WatchResponse__Kind kind_t;

#define KIND(name) PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_##name

/* Messages to one watcher before the next one is served. */
enum { MESSAGES_AT_ONCE = 8 };

/* A change that waits for its reader. */
struct event {
    kind_t kind;
    struct gw_toolset *toolset; /* a reference */
};

/* In the arena of its call; the queue is its own. */
struct watcher {
    struct gw_watches *watches; /* NULL: it hangs nowhere any more */
    struct watcher *next;
    struct watcher *prev;
    struct watcher *next_due;
    bool is_due; /* it is among those that go on at the next turn */
    struct grpc_call *call;
    uint16_t quota_key;
    char *const *tags; /* the request's */
    size_t n_tags;
    bool is_changes_only;
    bool is_lost;    /* has to be told so */
    bool is_current; /* it starts over with the snapshot whose changes are just being told */
    /* What is there, as far as it was told; NULL: all of it was. */
    struct gw_snapshot *present;
    size_t n_sent;
    struct event *events; /* a ring */
    size_t first;
    size_t n;
    size_t capacity;
};

struct gw_watches {
    struct calls_loop *calls;
    struct watcher *first;
    size_t n;
    struct gw_snapshot *snapshot; /* the one that the watchers know of */
    struct net_loop *loop;        /* that of the first watcher, and so of all */
    struct net_fair_job turn;
    struct watcher *due; /* those that go on, in order */
    struct watcher **due_end;
    struct peg__arena scratch; /* of one message */
    /* The last message of this turn: most watchers hear the same. */
    struct peg__buf packed;
    const struct gw_toolset *packed_toolset;
    kind_t packed_kind;
};

/* ---- the queue ---- */

/* Behind the first one by so many. */
static struct event *event_at(const struct watcher *watcher, size_t i)
{
    const size_t at = watcher->first + i;

    return &watcher->events[at < watcher->capacity ? at : at - watcher->capacity];
}

static bool take_event_of(struct watcher *watcher, struct event *ret_event)
{
    if (watcher->n == 0)
        return false;
    *ret_event = *event_at(watcher, 0);
    watcher->first = watcher->first + 1 < watcher->capacity ? watcher->first + 1 : 0;
    watcher->n--;
    return true;
}

static void clear_queue(struct watcher *watcher)
{
    struct event event;

    while (take_event_of(watcher, &event))
        gw_toolset_unref(event.toolset);
    peg__free(watcher->events);
    watcher->events = NULL;
    watcher->first = watcher->capacity = 0;
}

/* The ring is unrolled into a larger one. */
static bool grow_queue(struct watcher *watcher)
{
    const size_t capacity = watcher->capacity ? 2 * watcher->capacity : 8;
    struct event *events;

    if (watcher->n < watcher->capacity)
        return true;
    if (watcher->n >= PEG_LIMIT_GATEWAY_WATCH_EVENTS)
        return false;
    events = peg__alloc_zero(capacity, sizeof(*events));
    if (!events)
        return false;
    for (size_t i = 0; i < watcher->n; i++)
        events[i] = *event_at(watcher, i);
    peg__free(watcher->events);
    watcher->events = events;
    watcher->first = 0;
    watcher->capacity = capacity;
    return true;
}

/* Too slow: it receives a notice, and starts over. */
static void lose_events(struct watcher *watcher)
{
    clear_queue(watcher);
    watcher->is_lost = watcher->is_current = true;
    gw_snapshot_unref(watcher->present);
    watcher->present =
        watcher->is_changes_only ? NULL : gw_snapshot_ref(watcher->watches->snapshot);
    watcher->n_sent = 0;
}

static void queue_event(struct watcher *watcher, kind_t kind, struct gw_toolset *toolset)
{
    if (watcher->is_current || (watcher->is_lost && watcher->is_changes_only))
        return; /* it will hear of it, or list again anyway */
    if (!grow_queue(watcher)) {
        lose_events(watcher);
        return;
    }
    *event_at(watcher, watcher->n) =
        (struct event){.kind = kind, .toolset = gw_toolset_ref(toolset)};
    watcher->n++;
}

/* ---- telling ---- */

static bool pack_watch(struct gw_watches *watches, kind_t kind, const struct gw_toolset *toolset)
{
    Pegboard__V1__WatchResponse response = PEGBOARD__V1__WATCH_RESPONSE__INIT;
    Pegboard__V1__ToolsetInfo name_only = PEGBOARD__V1__TOOLSET_INFO__INIT;
    char *room = NULL;
    size_t len;

    response.kind = kind;
    if (toolset && kind == KIND(UNREGISTERED)) {
        name_only.name = gw_text(toolset->name);
        response.toolset = &name_only;
    } else if (toolset) {
        response.toolset =
            gw_info_toolset(toolset, gw_router_of(watches->calls)->presence, &watches->scratch);
    }
    peg__buf_clear(&watches->packed);
    if (response.toolset || !toolset) {
        len = grpc_message_packed_size(&response.base);
        room = peg__buf_reserve(&watches->packed, len);
    }
    if (room) {
        grpc_message_pack(&response.base, (uint8_t *)room);
        watches->packed.len = len;
    }
    peg__arena_reset(&watches->scratch);
    return room != NULL;
}

static void forget_packed(struct gw_watches *watches)
{
    watches->packed_toolset = NULL;
    watches->packed.len = 0;
}

/* False: there is no memory, or the stream has ended. */
static bool send_watch(struct watcher *watcher, kind_t kind, const struct gw_toolset *toolset)
{
    struct gw_watches *watches = watcher->watches;
    const bool is_packed =
        toolset && watches->packed_toolset == toolset && watches->packed_kind == kind;

    if (!is_packed && !pack_watch(watches, kind, toolset)) {
        forget_packed(watches);
        return false;
    }
    watches->packed_toolset = toolset;
    watches->packed_kind = kind;
    return grpc_call_send(watcher->call, peg__buf_view(&watches->packed), NULL) == PEG_OK;
}

static bool has_tags(const struct watcher *watcher, const struct gw_toolset *toolset)
{
    return toolset && gw_toolset_has_tags(toolset, watcher->tags, watcher->n_tags);
}

/* One of what is there, or that it was all. */
static bool send_present(struct watcher *watcher)
{
    const struct gw_snapshot *present = watcher->present;

    while (watcher->n_sent < present->n && !has_tags(watcher, present->toolsets[watcher->n_sent]))
        watcher->n_sent++;
    if (watcher->n_sent < present->n)
        return send_watch(watcher, KIND(PRESENT), present->toolsets[watcher->n_sent++]);
    watcher->present = gw_snapshot_unref(watcher->present);
    return send_watch(watcher, KIND(READY), NULL);
}

static bool send_queued(struct watcher *watcher)
{
    struct event event = {.toolset = NULL};
    bool is_sent;

    if (!take_event_of(watcher, &event))
        return false;
    is_sent = send_watch(watcher, event.kind, event.toolset);
    gw_toolset_unref(event.toolset);
    return is_sent;
}

static bool can_send(const struct watcher *watcher)
{
    return (watcher->is_lost || watcher->present || watcher->n > 0) &&
           grpc_call_is_writable(watcher->call);
}

/* A message that there was no memory for is one that was lost. */
static void send_due(struct watcher *watcher)
{
    for (unsigned i = 0; i < MESSAGES_AT_ONCE && can_send(watcher); i++) {
        bool is_sent;

        if (watcher->is_lost) {
            is_sent = send_watch(watcher, KIND(LOST), NULL);
            watcher->is_lost = !is_sent;
        } else {
            is_sent = watcher->present ? send_present(watcher) : send_queued(watcher);
        }
        if (!is_sent) {
            if (!grpc_call_has_ended(watcher->call))
                gw_fail_memory(watcher->call);
            return;
        }
    }
}

/* ---- turns ---- */

static void schedule_watcher(struct watcher *watcher)
{
    struct gw_watches *watches = watcher->watches;

    if (watcher->is_due || !can_send(watcher))
        return;
    watcher->is_due = true;
    watcher->next_due = NULL;
    *watches->due_end = watcher;
    watches->due_end = &watcher->next_due;
    net_loop_enqueue(watches->loop, &watches->turn);
}

static void unschedule_watcher(struct watcher *watcher)
{
    struct gw_watches *watches = watcher->watches;
    struct watcher **at = &watches->due;

    if (!watcher->is_due)
        return;
    while (*at != watcher)
        at = &(*at)->next_due;
    *at = watcher->next_due;
    if (!*at)
        watches->due_end = at;
    watcher->is_due = false;
    if (!watches->due)
        net_loop_dequeue(watches->loop, &watches->turn);
}

/* A stream that fails is dropped in a later round. */
static void on_turn(struct net_fair_job *turn)
{
    struct gw_watches *watches = peg__container_of(turn, struct gw_watches, turn);
    const int64_t from_ns = peg__mono_ns();

    forget_packed(watches);
    while (watches->due && peg__mono_ns() - from_ns < NET_FAIR_QUEUE_NS / 2) {
        struct watcher *watcher = watches->due;

        unschedule_watcher(watcher);
        send_due(watcher);
        if (!grpc_call_has_ended(watcher->call))
            schedule_watcher(watcher);
    }
    forget_packed(watches);
    if (watches->due)
        net_loop_enqueue(watches->loop, &watches->turn);
}

/* ---- watchers ---- */

static void drop_watcher(struct watcher *watcher)
{
    struct gw_watches *watches = watcher->watches;

    if (!watches)
        return;
    unschedule_watcher(watcher);
    clear_queue(watcher);
    watcher->present = gw_snapshot_unref(watcher->present);
    if (watcher->prev)
        watcher->prev->next = watcher->next;
    else
        watches->first = watcher->next;
    if (watcher->next)
        watcher->next->prev = watcher->prev;
    watches->n--;
    peg__quota_give_back(&watches->calls->quotas.watchers, watcher->quota_key, 1);
    watcher->watches = NULL;
}

static void add_watcher(struct gw_watches *watches, struct watcher *watcher)
{
    watcher->watches = watches;
    watcher->next = watches->first;
    if (watches->first)
        watches->first->prev = watcher;
    watches->first = watcher;
    watches->n++;
    peg__quota_add(&watches->calls->quotas.watchers, watcher->quota_key, 1);
}

static void begin_watch(struct gw_watches *watches, struct grpc_call *call, uint16_t quota_key,
                        const Pegboard__V1__WatchRequest *request)
{
    struct watcher *watcher = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*watcher));

    if (!watcher) {
        gw_fail_memory(call);
        return;
    }
    watches->loop = grpc_call_loop(call);
    watcher->call = call;
    watcher->quota_key = quota_key;
    watcher->tags = request->tags;
    watcher->n_tags = request->n_tags;
    watcher->is_changes_only = request->changes_only;
    add_watcher(watches, watcher);
    grpc_call_set_state(call, watcher);
    (void)grpc_call_send_headers(call, NULL); /* shows that the stream has begun */
    if (request->changes_only)
        (void)send_watch(watcher, KIND(READY), NULL);
    else
        watcher->present = gw_snapshot_ref(watches->snapshot);
    schedule_watcher(watcher);
}

static struct gw_watches *watches_of(const struct gw_node *node, const struct net_loop *loop)
{
    return node->watches[gw_router_of(gw_node_calls(node, loop))->number];
}

void gw_serve_watch(struct grpc_call *call, const Pegboard__V1__WatchRequest *request, void *node)
{
    struct gw_watches *watches = watches_of(node, grpc_call_loop(call));
    const peg_str principal = gw_call_principal(call)->name;
    const uint16_t quota_key = calls_quota_key(watches->calls, principal);
    const char *reason = calls_quota_reject_watch(watches->calls, quota_key);
    peg_error error;

    if (gw_check_tags(request->n_tags, &error))
        gw_fail_because(call, &error);
    else if (!gw_auth_knows(((struct gw_node *)node)->auth, principal))
        gw_fail(call, WIRE_UNAUTHENTICATED, peg__str(GW_TOKEN_GONE));
    else if (reason)
        gw_fail(call, WIRE_LIMIT, peg__str(reason));
    else
        begin_watch(watches, call, quota_key, request);
}

void gw_serve_watch_on_writable(struct grpc_call *call, void *node)
{
    struct watcher *watcher = grpc_call_state(call);

    (void)node;
    if (watcher && watcher->watches)
        schedule_watcher(watcher);
}

void gw_serve_watch_on_end(struct grpc_call *call, void *node)
{
    struct watcher *watcher = grpc_call_state(call);

    (void)node;
    if (watcher)
        drop_watcher(watcher);
}

/* ---- changes ---- */

static void queue_change(struct gw_watches *watches, struct gw_toolset *before,
                         struct gw_toolset *after)
{
    for (struct watcher *watcher = watches->first; watcher; watcher = watcher->next) {
        const bool was = has_tags(watcher, before);
        const bool is = has_tags(watcher, after);

        if (was && is)
            queue_event(watcher, KIND(CHANGED), after);
        else if (is)
            queue_event(watcher, KIND(REGISTERED), after);
        else if (was)
            queue_event(watcher, KIND(UNREGISTERED), before);
    }
}

/* Goes through both, which are sorted, side by side. */
static void queue_difference(struct gw_watches *watches, const struct gw_snapshot *old,
                             const struct gw_snapshot *new)
{
    size_t i = 0;
    size_t j = 0;

    while (i < old->n || j < new->n) {
        struct gw_toolset *before = i < old->n ? old->toolsets[i] : NULL;
        struct gw_toolset *after = j < new->n ? new->toolsets[j] : NULL;
        const int order = !before           ? 1
                          : !after          ? -1
                          : before == after ? 0
                                            : strcmp(before->name.ptr, after->name.ptr);

        i += order <= 0;
        j += order >= 0;
        if (order < 0)
            queue_change(watches, before, NULL);
        else if (order > 0)
            queue_change(watches, NULL, after);
        else if (before != after)
            queue_change(watches, before, after);
    }
}

static void schedule_all(struct gw_watches *watches)
{
    for (struct watcher *watcher = watches->first; watcher; watcher = watcher->next) {
        watcher->is_current = false;
        schedule_watcher(watcher);
    }
}

void gw_watches_on_snapshot(struct gw_watches *watches, struct gw_snapshot *snapshot)
{
    struct gw_snapshot *old;

    if (!watches)
        return;
    old = watches->snapshot;
    watches->snapshot = gw_snapshot_ref(snapshot);
    if (old && watches->first)
        queue_difference(watches, old, snapshot);
    gw_snapshot_unref(old);
    schedule_all(watches);
}

void gw_watches_on_health(struct gw_watches *watches, peg_str toolset)
{
    struct gw_toolset *found;

    if (!watches || !watches->first || !watches->snapshot)
        return;
    found = gw_snapshot_find(watches->snapshot, toolset);
    for (struct watcher *watcher = watches->first; watcher; watcher = watcher->next) {
        if (has_tags(watcher, found))
            queue_event(watcher, KIND(HEALTH), found);
    }
    schedule_all(watches);
}

/* ---- its life ---- */

peg_status gw_watches_new(struct calls_loop *calls, struct gw_watches **ret_watches,
                          peg_error *reterr)
{
    struct gw_watches *watches = peg__alloc_zero(1, sizeof(*watches));

    if (!watches)
        return peg__fail_nomem(reterr);
    watches->calls = calls;
    watches->turn.fn = on_turn;
    watches->due_end = &watches->due;
    watches->packed.max = PEG_LIMIT_GATEWAY_FRAME_BYTES;
    *ret_watches = watches;
    return PEG_OK;
}

void gw_watches_end_unknown(struct gw_watches *watches, const struct gw_auth *auth)
{
    struct watcher *next;

    for (struct watcher *watcher = watches->first; watcher; watcher = next) {
        next = watcher->next;
        if (gw_auth_knows(auth, gw_call_principal(watcher->call)->name))
            continue;
        drop_watcher(watcher);
        gw_fail(watcher->call, WIRE_UNAUTHENTICATED, peg__str(GW_TOKEN_GONE));
    }
}

void gw_watches_close(struct gw_watches *watches)
{
    while (watches && watches->first) {
        struct watcher *watcher = watches->first;

        drop_watcher(watcher);
        gw_fail(watcher->call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("the gateway is stopping: watch another one"));
    }
}

struct gw_watches *gw_watches_free(struct gw_watches *watches)
{
    if (!watches)
        return NULL;
    while (watches->first)
        drop_watcher(watches->first);
    gw_snapshot_unref(watches->snapshot);
    peg__arena_free(&watches->scratch);
    peg__buf_free(&watches->packed);
    peg__free(watches);
    return NULL;
}
