/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/caller/call.h"

#include <assert.h>

#include "base/limits/recent.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/check.h"

bool calls_hold_home(struct calls_loop *calls, const struct bus_id *id,
                     struct calls_home **ret_home)
{
    const bool has_home = calls->options.homes && calls_id_is_keyed(id);

    *ret_home = has_home ? calls_homes_hold(calls->options.homes, id, calls->bus->self.loop) : NULL;
    return !has_home || *ret_home;
}

struct calls_call *calls_call_new(struct calls_loop *calls, const struct bus_id *id,
                                  uint16_t account)
{
    struct calls_call *call =
        (struct calls_call *)peg__spares_take(&calls->spare_calls, sizeof(*call));

    if (!call)
        return NULL;
    call->entry.id = *id;
    call->machine.id = *id;
    if (!calls_hold_home(calls, id, &call->home) || calls_table_add(&calls->by_id, &call->entry)) {
        calls_home_release(call->home);
        peg__spares_give(&calls->spare_calls, call, PEG_LIMIT_GATEWAY_SPARE_CALLS);
        return NULL;
    }
    assert(!call->home || calls_home_loop(call->home) == calls->bus->self.loop);
    call->calls = calls;
    call->account = account;
    call->begun_ns = bus_now_ns(calls->bus);
    call->deadline_ns = NET_NEVER;
    PEG_LIST_PUSH(calls->first_call, call, next, prev);
    peg__quota_add(&calls->quotas.calls, account, 1);
    return call;
}

void calls_call_drop(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    struct bus *bus = calls->bus;

    while (call->callers)
        calls_call_take_caller(call->callers);
    calls_call_release(call);
    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->sent);
    bus_forget_wait(bus, &call->waiters);
    bus_disarm(bus, &call->deadline);
    bus_disarm(bus, &call->again);
    bus_disarm(bus, &call->away);
    if (call->check)
        calls_check_forget(call->check);
    calls_questions_free(call);
    PEG_LIST_REMOVE(calls->first_call, call, next, prev);
    peg__quota_give_back(&calls->quotas.calls, call->account, 1);
    if (call->large_bytes)
        peg__quota_give_back(&calls->quotas.large_bytes, call->account, call->large_bytes);
    calls->n_dropped++;
    calls_table_remove(&calls->by_id, &call->entry);
    peg__blob_unref(call->request);
    peg__blob_unref(call->principal);
    peg__blob_unref(call->identity);
    peg__blob_unref(call->outcome);
    peg__blob_unref(call->token.blob);
    peg__free(call->listeners);
    calls->env->unref_toolset(calls->user, call->toolset);
    calls_home_release(call->home);
    peg__spares_give(&calls->spare_calls, call, PEG_LIMIT_GATEWAY_SPARE_CALLS);
}

struct calls_call *calls_find(const struct calls_loop *calls, const struct bus_id *id)
{
    struct calls_entry *entry = calls_table_find(&calls->by_id, id, 0);

    while (entry) {
        const enum calls_state state = ((struct calls_call *)entry)->machine.state;

        if (state != CALLS_LOCATING && state != CALLS_OVER)
            return (struct calls_call *)entry;
        entry = calls_table_again(entry);
    }
    return NULL;
}

bool calls_call_is_keyed(const struct calls_call *call)
{
    return calls_id_is_keyed(&call->entry.id);
}

uint32_t calls_call_n_claims(const struct calls_call *call)
{
    return call->machine.attempt + (calls_call_is_keyed(call) ? 1 : 0);
}

void calls_call_release(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    if (call->slot[0])
        calls->env->release(calls->user, call->toolset->name, call->slot);
    call->slot[0] = '\0';
}

/* ---- callers ---- */

void calls_call_add_caller(struct calls_call *call, struct calls_caller *caller)
{
    caller->call = call;
    caller->id = call->entry.id;
    PEG_LIST_PUSH(call->callers, caller, next, prev);
}

void calls_call_arm_caller(struct calls_caller *caller, int64_t deadline_ns)
{
    if (deadline_ns != NET_NEVER)
        bus_arm(caller->call->calls->bus, &caller->deadline, deadline_ns);
}

void calls_call_attach_caller(struct calls_call *call, struct calls_caller *caller,
                              int64_t deadline_ns)
{
    calls_call_add_caller(call, caller);
    caller->is_attached = true;
    peg__quota_add(&call->calls->quotas.calls, call->account, 1);
    calls_call_arm_caller(caller, deadline_ns);
    if (call->reported)
        calls_call_report(call);
}

void calls_call_take_caller(struct calls_caller *caller)
{
    struct calls_call *call = caller->call;

    if (!call)
        return;
    if (call->cursor == caller)
        call->cursor = caller->next;
    PEG_LIST_REMOVE(call->callers, caller, next, prev);
    bus_disarm(call->calls->bus, &caller->deadline);
    if (caller->is_attached)
        peg__quota_give_back(&call->calls->quotas.calls, call->account, 1);
    caller->is_attached = false;
    caller->call = NULL;
    caller->next = NULL;
    caller->prev = NULL;
}

/* A caller may detach in on_admitted(), which drops nothing. */
void calls_call_report(struct calls_call *call)
{
    const bool is_following = call->reported == CALLS_REPORTED_FOLLOWING;
    struct calls_caller *next;

    for (struct calls_caller *caller = call->callers; caller; caller = next) {
        next = caller->next;
        caller->is_follower = is_following || caller->is_attached;
        if (caller->is_reported)
            continue;
        caller->is_reported = true;
        if (caller->events->on_admitted)
            caller->events->on_admitted(caller, &call->entry.id, call->machine.deadline_ms,
                                        caller->is_follower);
    }
}
