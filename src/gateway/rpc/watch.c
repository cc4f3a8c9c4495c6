/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A watcher gets three kinds of messages, in this order: that it lost something, if it did; what is
 * there, by a cursor over a snapshot of its own; then what has changed since, from a bounded queue.
 * It goes on whenever its stream takes more, but in turns: a change goes to all watchers.
 *
 * A toolset that comes to have the tags of a watcher, or has them no more, was registered or
 * unregistered for that watcher.
 *
 * Each message but those about what is there has a place among the changes of the node
 * (catalog/changes.h). A watcher that comes back with its last one gets what it missed, as it is
 * now.
 */

#include "gateway/rpc/rpc.h"

#include "base/blob.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/quota.h"
#include "gateway/access/access.h"
#include "gateway/catalog/changes.h"
#include "gateway/rpc/watch_queue.h"
#include "grpc/message.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

typedef Pegboard__V1__WatchResponse__Kind kind_t;

#define KIND(name) PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_##name

/* Messages to one watcher before the next one is served. */
enum { MESSAGES_AT_ONCE = 8 };

/* In the arena of its call; the queue is its own. */
struct watcher {
    struct gw_watches *watches; /* NULL: it hangs nowhere any more */
    struct watcher *next;
    struct watcher *prev;
    struct watcher *next_due;
    bool is_due; /* it is among those that go on at the next job */
    struct grpc_call *call;
    uint16_t quota_key;
    char *const *tags; /* the request's */
    size_t n_tags;
    bool is_changes_only;
    bool is_lost;    /* must get an event that says so */
    bool is_current; /* it starts over with the snapshot whose changes are just being sent */
    /* What is there, as far as it was sent; NULL: all of it was. */
    struct gw_snapshot *present;
    uint64_t present_place;
    size_t n_sent;
    struct gw_watch_queue queue;
};

struct gw_watches {
    struct calls_loop *calls;
    struct gw_changes *changes;
    struct watcher *first;
    size_t n;
    struct gw_snapshot *snapshot; /* the one that the watchers know of */
    struct net_loop *loop;        /* that of the first watcher, and so of all */
    struct net_fair_job job;
    struct watcher *due; /* those that go on, in order */
    struct watcher **due_end;
    struct peg__arena scratch; /* of one message */
    /* The last message of this job: most watchers hear the same. */
    struct peg__buf packed;
    const struct gw_toolset *packed_toolset;
    kind_t packed_kind;
};

/* ---- the queue ---- */

static void begin_present(struct watcher *watcher)
{
    gw_snapshot_unref(watcher->present);
    watcher->present = gw_snapshot_ref(watcher->watches->snapshot);
    watcher->present_place = gw_changes_now(watcher->watches->changes);
    watcher->n_sent = 0;
}

/* Too slow: it receives a notice, and starts over. */
static void lose_events(struct watcher *watcher)
{
    gw_watch_queue_clear(&watcher->queue);
    watcher->is_lost = watcher->is_current = true;
    if (!watcher->is_changes_only)
        begin_present(watcher);
}

/* Takes the event. */
static void queue_event(struct watcher *watcher, const struct gw_watch_event *event)
{
    /* It will hear of it, or list again anyway. */
    if (watcher->is_current || (watcher->is_lost && watcher->is_changes_only))
        gw_watch_event_drop(event);
    else if (!gw_watch_queue_put(&watcher->queue, event))
        lose_events(watcher);
}

static void queue_toolset(struct watcher *watcher, kind_t kind, struct gw_toolset *toolset,
                          uint64_t place)
{
    const struct gw_watch_event event = {
        .kind = kind, .toolset = gw_toolset_ref(toolset), .place = place};

    queue_event(watcher, &event);
}

/* ---- telling ---- */

static bool pack_watch(struct gw_watches *watches, kind_t kind, const struct gw_toolset *toolset,
                       peg_str gone)
{
    Pegboard__V1__WatchResponse response = PEGBOARD__V1__WATCH_RESPONSE__INIT;
    Pegboard__V1__ToolsetInfo name_only = PEGBOARD__V1__TOOLSET_INFO__INIT;
    char *room = NULL;
    size_t len;

    response.kind = kind;
    if (kind == KIND(UNREGISTERED)) {
        name_only.name = gw_text(toolset ? toolset->name : gone);
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

/* What was packed is for all watchers, and the place of each comes behind it. */
static bool send_packed(const struct watcher *watcher, uint64_t place)
{
    struct peg__buf *packed = &watcher->watches->packed;
    const size_t len = packed->len;
    char text[GW_CHANGES_PLACE];
    char *room;
    bool is_sent = false;

    gw_changes_print(watcher->watches->changes, place, text);
    room = peg__buf_reserve(packed, sizeof(text) + 8);
    if (room) {
        packed->len += (size_t)(wire_put_bytes(room, PEGBOARD_V1_WATCH_RESPONSE_EVENT_ID_FIELD,
                                               peg__str(text)) -
                                room);
        is_sent = grpc_call_send(watcher->call, peg__buf_view(packed), NULL) == PEG_OK;
    }
    packed->len = len;
    return is_sent;
}

/* False: there is no memory, or the stream has ended. */
static bool send_event(struct watcher *watcher, const struct gw_watch_event *event)
{
    struct gw_watches *watches = watcher->watches;
    const struct gw_toolset *toolset = event->toolset;
    const bool is_packed =
        toolset && watches->packed_toolset == toolset && (int)watches->packed_kind == event->kind;
    const peg_str gone = event->name ? peg__blob_str(event->name) : (peg_str){"", 0};

    if (!is_packed && !pack_watch(watches, (kind_t)event->kind, toolset, gone)) {
        forget_packed(watches);
        return false;
    }
    watches->packed_toolset = toolset;
    watches->packed_kind = (kind_t)event->kind;
    if (event->kind == KIND(PRESENT) || event->kind == KIND(LOST))
        return grpc_call_send(watcher->call, peg__buf_view(&watches->packed), NULL) == PEG_OK;
    return send_packed(watcher, event->place);
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
        return send_event(
            watcher, &(struct gw_watch_event){.kind = KIND(PRESENT),
                                              .toolset = present->toolsets[watcher->n_sent++]});
    watcher->present = gw_snapshot_unref(watcher->present);
    return send_event(
        watcher, &(struct gw_watch_event){.kind = KIND(READY), .place = watcher->present_place});
}

static bool send_queued(struct watcher *watcher)
{
    struct gw_watch_event event = {.toolset = NULL};
    bool is_sent;

    if (!gw_watch_queue_take(&watcher->queue, &event))
        return false;
    is_sent = send_event(watcher, &event);
    gw_watch_event_drop(&event);
    return is_sent;
}

static bool can_send(const struct watcher *watcher)
{
    return (watcher->is_lost || watcher->present || watcher->queue.n > 0) &&
           grpc_call_is_writable(watcher->call);
}

/* A message that there was no memory for is one that was lost. */
static void send_due(struct watcher *watcher)
{
    for (unsigned i = 0; i < MESSAGES_AT_ONCE && can_send(watcher); i++) {
        bool is_sent;

        if (watcher->is_lost) {
            is_sent = send_event(watcher, &(struct gw_watch_event){.kind = KIND(LOST)});
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
    net_loop_enqueue(watches->loop, &watches->job);
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
        net_loop_dequeue(watches->loop, &watches->job);
}

/* A stream that fails is dropped in a later round. */
static void on_job(struct net_fair_job *job)
{
    struct gw_watches *watches = peg__container_of(job, struct gw_watches, job);
    const int64_t until_ns = peg__mono_ns() + net_loop_fair_queue_ns(watches->loop) / 2;

    forget_packed(watches);
    while (watches->due && peg__mono_ns() < until_ns) {
        struct watcher *watcher = watches->due;

        unschedule_watcher(watcher);
        send_due(watcher);
        if (!grpc_call_has_ended(watcher->call))
            schedule_watcher(watcher);
    }
    forget_packed(watches);
    if (watches->due)
        net_loop_enqueue(watches->loop, &watches->job);
}

/* ---- watchers ---- */

static void drop_watcher(struct watcher *watcher)
{
    struct gw_watches *watches = watcher->watches;

    if (!watches)
        return;
    unschedule_watcher(watcher);
    gw_watch_queue_clear(&watcher->queue);
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

/* Each as it is by now. What this loop has not seen yet comes when it does. The lock of the changes
 * is held. */
static void queue_missed(void *user, uint64_t place, peg_str name, unsigned kind)
{
    struct watcher *watcher = (struct watcher *)user;
    struct gw_toolset *toolset = gw_snapshot_find(watcher->watches->snapshot, name);
    struct gw_watch_event event = {.kind = (kind_t)kind, .place = place};

    if (kind == KIND(UNREGISTERED) ? toolset != NULL : toolset == NULL)
        return;
    if (toolset && !has_tags(watcher, toolset))
        event.kind = KIND(UNREGISTERED);
    event.toolset = toolset ? gw_toolset_ref(toolset) : NULL;
    event.name = toolset ? NULL : peg__blob_copy(name);
    if ((!toolset && !event.name) || !gw_watch_queue_put(&watcher->queue, &event))
        watcher->is_lost = true;
}

/* What it missed, and that this was all; or it starts over. */
static void resume_watch(struct watcher *watcher, const char *place)
{
    struct gw_changes *changes = watcher->watches->changes;
    struct gw_watch_event ready = {.kind = KIND(READY), .place = gw_changes_now(changes)};

    if (!gw_changes_since(changes, peg__str(place), PEG_LIMIT_GATEWAY_WATCH_EVENTS / 2,
                          queue_missed, watcher) ||
        watcher->is_lost)
        lose_events(watcher);
    watcher->is_current = false;
    if (!watcher->is_lost)
        queue_event(watcher, &ready);
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
    gw_changes_begin(watches->changes);
    if (request->resume_after[0])
        resume_watch(watcher, request->resume_after);
    else if (request->changes_only)
        (void)send_event(watcher,
                         &(struct gw_watch_event){.kind = KIND(READY),
                                                  .place = gw_changes_now(watches->changes)});
    else
        begin_present(watcher);
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
    const kind_t kind = !after ? KIND(UNREGISTERED) : !before ? KIND(REGISTERED) : KIND(CHANGED);
    const struct gw_toolset *either = after ? after : before;
    uint64_t place;

    if (!either)
        return;
    place = gw_changes_note(watches->changes, either->name, kind);
    for (struct watcher *watcher = watches->first; watcher; watcher = watcher->next) {
        const bool was = has_tags(watcher, before);
        const bool is = has_tags(watcher, after);

        if (was && is)
            queue_toolset(watcher, KIND(CHANGED), after, place);
        else if (is)
            queue_toolset(watcher, KIND(REGISTERED), after, place);
        else if (was)
            queue_toolset(watcher, KIND(UNREGISTERED), before, place);
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
    if (old && gw_changes_has_begun(watches->changes))
        queue_difference(watches, old, snapshot);
    gw_snapshot_unref(old);
    schedule_all(watches);
}

void gw_watches_on_health(struct gw_watches *watches, peg_str toolset)
{
    struct gw_toolset *found;
    uint64_t place;

    if (!watches || !watches->snapshot || !gw_changes_has_begun(watches->changes))
        return;
    found = gw_snapshot_find(watches->snapshot, toolset);
    if (!found)
        return;
    place = gw_changes_note(watches->changes, toolset, KIND(HEALTH));
    for (struct watcher *watcher = watches->first; watcher; watcher = watcher->next) {
        if (has_tags(watcher, found))
            queue_toolset(watcher, KIND(HEALTH), found, place);
    }
    schedule_all(watches);
}

/* ---- its life ---- */

peg_status gw_watches_new(struct calls_loop *calls, struct gw_changes *changes,
                          struct gw_watches **ret_watches, peg_error *reterr)
{
    struct gw_watches *watches = peg__alloc_zero(1, sizeof(*watches));

    if (!watches)
        return peg__fail_nomem(reterr);
    watches->calls = calls;
    watches->changes = changes;
    watches->job.fn = on_job;
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
