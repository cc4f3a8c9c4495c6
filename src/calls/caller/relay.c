/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call with an identity lives on its home, the loop of the node that was asked for it first. A
 * caller on another loop has a relay: its request is posted to the home, and a proxy among the
 * callers of the call posts back what it gets. Posts are not messages: they stay in the node,
 * arrive in order, and are never lost. The relay holds the home, so it is still the home when its
 * request arrives, also if the call that was there is over by then.
 *
 * Two have a reference of a relay: the exchange, from `begin` to `end`; and the caller's loop,
 * until it has the end, or the caller leaves, which gives its reference to `leave`, or the loop
 * ends.
 */

#include <stdatomic.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"

struct calls_relay {
    struct calls_caller proxy; /* of the call; the first member */
    struct calls_caller_events proxy_events;
    struct bus_post begin; /* to the home */
    struct bus_post leave;
    struct bus_post admitted; /* to the loop of the caller */
    struct bus_post end;
    atomic_uint n_refs;

    /* the caller's loop */
    struct calls_loop *calls;
    struct calls_relay *next; /* of those that it has a reference of */
    struct calls_relay *prev;
    struct calls_caller *caller; /* NULL: it has left */

    /* set before `begin`, and `leave` */
    struct calls_home *home;
    uint32_t caller_loop;
    struct peg__blob *text;         /* of the request */
    struct calls_request request;   /* in it */
    struct calls_incoming incoming; /* of the proxy; its loop is the home */
    enum calls_leaving leaving;

    /* the home's; what `admitted` and `end` bring */
    bool is_over;
    bool is_admitted_follower; /* two, as the first may be read while the second is written */
    bool is_ended_follower;
    int64_t deadline_ms;
    struct peg__blob *kept; /* of the outcome's strings */
    struct calls_outcome outcome;
};

struct output {
    struct bus_post post; /* the first member */
    struct calls_relay *relay;
    struct peg__blob *output;
    uint32_t question; /* 0: it is an output */
};

static void unref_relay(struct calls_relay *relay)
{
    if (atomic_fetch_sub(&relay->n_refs, 1) > 1)
        return;
    peg__blob_unref(relay->text);
    peg__blob_unref(relay->kept);
    calls_home_release(relay->home);
    peg__free(relay);
}

/* ---- on the caller's loop ---- */

static void on_admitted_post(struct bus_post *post, void *user)
{
    struct calls_relay *relay = peg__container_of(post, struct calls_relay, admitted);
    struct calls_caller *caller = user ? relay->caller : NULL;

    if (!caller)
        return;
    caller->is_follower = relay->is_admitted_follower;
    caller->events->on_admitted(caller, &relay->incoming.id, relay->deadline_ms,
                                caller->is_follower);
}

static void on_output_post(struct bus_post *post, void *user)
{
    struct output *output = (struct output *)post;
    struct calls_caller *caller = user ? output->relay->caller : NULL;

    if (caller && output->question)
        (void)caller->events->on_question(caller, output->question, peg__blob_str(output->output));
    else if (caller)
        caller->events->on_output(caller, peg__blob_str(output->output));
    peg__blob_unref(output->output);
    peg__free(output);
}

/* The reference of the caller's loop is not the loop's any more. */
static struct calls_caller *take_caller(struct calls_relay *relay)
{
    struct calls_caller *caller = relay->caller;

    PEG_LIST_REMOVE(relay->calls->first_relay, relay, next, prev);
    relay->caller = NULL;
    caller->relay = NULL;
    return caller;
}

static void on_end_post(struct bus_post *post, void *user)
{
    struct calls_relay *relay = peg__container_of(post, struct calls_relay, end);

    if (user && relay->caller) {
        struct calls_caller *caller = take_caller(relay);

        caller->is_follower = relay->is_ended_follower;
        caller->events->on_end(caller, &relay->outcome);
        unref_relay(relay);
    }
    unref_relay(relay);
}

void calls_drop_relays(struct calls_loop *calls)
{
    while (calls->first_relay) {
        struct calls_relay *relay = calls->first_relay;

        take_caller(relay);
        unref_relay(relay);
    }
}

/* ---- on the home ---- */

static void post_end(struct calls_relay *relay)
{
    relay->is_over = true;
    bus_post(relay->incoming.calls->bus, relay->caller_loop, &relay->end);
}

static void proxy_admitted(struct calls_caller *caller, const struct bus_id *id,
                           int64_t deadline_ms, bool is_follower)
{
    struct calls_relay *relay = (struct calls_relay *)caller;

    (void)id;
    relay->is_admitted_follower = is_follower;
    relay->deadline_ms = deadline_ms;
    bus_post(relay->incoming.calls->bus, relay->caller_loop, &relay->admitted);
}

/* False: no memory. */
static bool post_output(struct calls_relay *relay, uint32_t question, peg_str text)
{
    struct output *output = (struct output *)peg__alloc_zero(1, sizeof(*output));
    struct peg__blob *copy = output ? peg__blob_copy(text) : NULL;

    if (!copy) {
        peg__free(output);
        return false;
    }
    *output = (struct output){
        .post.fn = on_output_post, .relay = relay, .output = copy, .question = question};
    bus_post(relay->incoming.calls->bus, relay->caller_loop, &output->post);
    return true;
}

/* A hint: without memory it is lost. */
static void proxy_output(struct calls_caller *caller, peg_str text)
{
    (void)post_output((struct calls_relay *)caller, 0, text);
}

static bool proxy_question(struct calls_caller *caller, uint32_t number, peg_str requests)
{
    return post_output((struct calls_relay *)caller, number, requests);
}

static void proxy_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct calls_relay *relay = (struct calls_relay *)caller;

    relay->is_ended_follower = caller->is_follower;
    relay->outcome = *outcome;
    relay->kept = outcome->blob ? peg__blob_ref(outcome->blob) : peg__blob_copy(outcome->message);
    if (!outcome->blob)
        relay->outcome.message = peg__blob_str(relay->kept);
    post_end(relay);
}

/* What the caller does not want is not posted: a post less wakes a loop less. */
static void init_proxy(struct calls_relay *relay, const struct calls_caller *caller)
{
    relay->proxy_events = (struct calls_caller_events){
        .on_admitted = caller->events->on_admitted ? proxy_admitted : NULL,
        .on_output = caller->events->on_output ? proxy_output : NULL,
        .on_question = proxy_question,
        .on_end = proxy_end,
    };
    relay->proxy.events = &relay->proxy_events;
    relay->proxy.was_asked_elsewhere = caller->was_asked_elsewhere;
    relay->proxy.can_be_asked = caller->can_be_asked;
}

static void on_begin_post(struct bus_post *post, void *user)
{
    struct calls_relay *relay = peg__container_of(post, struct calls_relay, begin);
    struct calls_loop *calls = (struct calls_loop *)user;

    if (!calls) { /* that loop has ended */
        unref_relay(relay);
        return;
    }
    relay->incoming.calls = calls;
    calls_begin_here(&relay->incoming);
}

static void on_leave_post(struct bus_post *post, void *user)
{
    struct calls_relay *relay = peg__container_of(post, struct calls_relay, leave);

    if (user && !relay->is_over) {
        calls_leave(&relay->proxy, relay->leaving);
        post_end(relay);
    }
    unref_relay(relay);
}

void calls_abandon_callers(struct calls_call *call)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = CALLS_SERVICE_UNAVAILABLE,
        .message = PEG_LIT(CALLS_SHUTTING_DOWN),
    };
    struct calls_caller *next;

    for (struct calls_caller *caller = call->callers; caller; caller = next) {
        next = caller->next;
        if (caller->events->on_end == proxy_end) {
            calls_call_take_caller(caller);
            proxy_end(caller, &outcome);
        }
    }
}

/* ---- beginning ---- */

/* False: no memory. */
static bool copy_request(struct calls_relay *relay, const struct calls_request *request)
{
    peg_str *const parts[] = {
        &relay->request.toolset,   &relay->request.tool,   &relay->request.payload,
        &relay->request.principal, &relay->request.run_id, &relay->request.tool_call_id,
        &relay->request.key,       &relay->request.packed,
    };
    size_t size = 0;
    char *at;

    relay->request = *request;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        size += parts[i]->len;
    relay->text = peg__blob_new(size);
    if (!relay->text)
        return false;
    at = relay->text->bytes;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (parts[i]->len)
            memcpy(at, parts[i]->ptr, parts[i]->len);
        parts[i]->ptr = at;
        at += parts[i]->len;
    }
    return true;
}

/* Takes the hold of the home. */
static void begin_relay(const struct calls_incoming *incoming, struct calls_home *home)
{
    struct calls_relay *relay = (struct calls_relay *)peg__alloc_zero(1, sizeof(*relay));
    struct calls_loop *calls = incoming->calls;
    struct calls_caller *caller = incoming->caller;

    if (!relay || !copy_request(relay, incoming->request)) {
        peg__free(relay);
        calls_home_release(home);
        calls_reject_barred(caller, CALLS_BAR_NO_MEMORY);
        return;
    }
    atomic_init(&relay->n_refs, 2);
    init_proxy(relay, caller);
    relay->incoming = *incoming;
    relay->incoming.caller = &relay->proxy;
    relay->incoming.request = &relay->request;
    relay->begin.fn = on_begin_post;
    relay->leave.fn = on_leave_post;
    relay->admitted.fn = on_admitted_post;
    relay->end.fn = on_end_post;
    relay->calls = calls;
    relay->caller = caller;
    relay->home = home;
    relay->caller_loop = calls->bus->self.loop;
    caller->id = incoming->id;
    caller->relay = relay;
    PEG_LIST_PUSH(calls->first_relay, relay, next, prev);
    bus_post(calls->bus, calls_home_loop(home), &relay->begin);
    if (atomic_load(&relay->n_refs) == 1) { /* that loop has ended, and nothing was begun */
        take_caller(relay);
        unref_relay(relay);
        calls_reject_barred(caller, CALLS_BAR_DRAINING);
    }
}

/* ---- the public face ---- */

static void init_caller(struct calls_caller *caller)
{
    caller->call = NULL;
    caller->relay = NULL;
    caller->is_attached = false;
    caller->is_reported = false;
    caller->last_question = 0;
    caller->deadline = (struct net_timer){0};
}

/* The loop that has the call, or will have it, begins. */
static void begin_at_home(struct calls_incoming *incoming)
{
    struct calls_home *home;

    if (!calls_hold_home(incoming->calls, &incoming->id, &home)) {
        calls_reject_barred(incoming->caller, CALLS_BAR_NO_MEMORY);
    } else if (home && calls_home_loop(home) != incoming->calls->bus->self.loop) {
        begin_relay(incoming, home);
    } else {
        calls_begin_here(incoming);
        calls_home_release(home);
    }
}

void calls_start(struct calls_loop *calls, const struct calls_request *request,
                 struct calls_caller *caller)
{
    struct calls_incoming incoming = {
        .calls = calls, .caller = caller, .origin = CALLS_STARTS, .request = request};

    init_caller(caller);
    if (calls_request_id(calls, request, &incoming.id))
        begin_at_home(&incoming);
    else
        calls_reject_barred(caller, CALLS_BAR_NO_MEMORY);
}

void calls_await(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                 int64_t deadline_ns, struct calls_caller *caller)
{
    const struct calls_request request = {.principal = principal, .deadline_ns = deadline_ns};
    struct calls_incoming incoming = {
        .calls = calls, .caller = caller, .origin = CALLS_AWAITS, .id = *id, .request = &request};

    init_caller(caller);
    begin_at_home(&incoming);
}

void calls_cancel(struct calls_loop *calls, const struct bus_id *id, peg_str principal,
                  struct calls_caller *caller)
{
    const struct calls_request request = {.principal = principal, .deadline_ns = NET_NEVER};
    struct calls_incoming incoming = {
        .calls = calls, .caller = caller, .origin = CALLS_STOPS, .id = *id, .request = &request};

    init_caller(caller);
    begin_at_home(&incoming);
}

void calls_caller_leave(struct calls_caller *caller, enum calls_leaving leaving)
{
    struct calls_relay *relay = caller->relay;

    if (!relay) {
        calls_leave(caller, leaving);
        return;
    }
    take_caller(relay);
    relay->leaving = leaving;
    bus_post(relay->calls->bus, calls_home_loop(relay->home), &relay->leave);
}
