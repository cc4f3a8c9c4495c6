/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/quota.h"
#include "gateway/direct/internal.h"

/* ---- its life -------------------------------------------------------------------------------- */

struct direct_call *direct_call_new(struct gw_direct *direct, const struct bus_id *id,
                                    uint16_t account)
{
    struct direct_call *call = (struct direct_call *)peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    call->entry.id = *id;
    call->direct = direct;
    if (calls_table_add(&direct->by_id, &call->entry)) {
        peg__free(call);
        return NULL;
    }
    call->account = account;
    call->begun_ns = bus_now_ns(direct->bus);
    PEG_LIST_PUSH(direct->first_call, call, next, prev);
    peg__quota_add(&direct->calls->quotas.calls, account, 1);
    return call;
}

/* The call is not found any more, and nothing comes for it. */
static void cut_off(struct direct_call *call)
{
    struct gw_direct *direct = call->direct;

    bus_forget_wait(direct->bus, &call->wait);
    bus_forget_wait(direct->bus, &call->stream.wait);
    bus_untrack(direct->bus, &call->tracked);
    bus_disarm(direct->bus, &call->deadline);
    bus_disarm(direct->bus, &call->again);
    bus_disarm(direct->bus, &call->deserted);
    if (call->check)
        calls_check_forget(call->check);
    call->check = NULL;
    calls_table_remove(&direct->by_id, &call->entry);
    PEG_LIST_REMOVE(direct->first_call, call, next, prev);
    peg__quota_give_back(&direct->calls->quotas.calls, call->account, 1);
    if (call->large_bytes)
        peg__quota_give_back(&direct->calls->quotas.large_bytes, call->account, call->large_bytes);
}

static void free_direct_call(struct direct_call *call)
{
    peg__blob_unref(call->request);
    peg__blob_unref(call->payload);
    peg__blob_unref(call->identity);
    peg__blob_unref(call->principal);
    peg__blob_unref(call->outcome);
    peg__blob_unref(call->result);
    gw_toolset_unref(call->toolset);
    peg__free(call);
}

void direct_call_drop(struct direct_call *call)
{
    while (call->callers)
        direct_take_caller(call->callers);
    cut_off(call);
    free_direct_call(call);
}

struct direct_call *direct_find(const struct gw_direct *direct, const struct bus_id *id)
{
    struct calls_entry *entry = calls_table_find(&direct->by_id, id, 0);

    while (entry && ((struct direct_call *)entry)->state == DIRECT_LOCATING)
        entry = calls_table_again(entry);
    return (struct direct_call *)entry;
}

struct bus_key direct_register(const struct direct_call *call, char what)
{
    return (struct bus_key){.id = call->entry.id, .what = what, .account = call->account};
}

/* ---- its callers ----------------------------------------------------------------------------- */

void direct_add_caller(struct direct_call *call, struct calls_caller *caller)
{
    caller->direct = call;
    caller->id = call->entry.id;
    caller->is_reported = false;
    PEG_LIST_PUSH(call->callers, caller, next, prev);
}

void direct_take_caller(struct calls_caller *caller)
{
    struct direct_call *call = (struct direct_call *)caller->direct;

    if (!call)
        return;
    if (call->cursor == caller)
        call->cursor = caller->next;
    bus_disarm(call->direct->bus, &caller->deadline);
    PEG_LIST_REMOVE(call->callers, caller, next, prev);
    caller->direct = NULL;
}

/* A caller may leave when it is notified. */
void direct_report(struct direct_call *call)
{
    struct calls_caller *next;

    call->is_reported = true;
    for (struct calls_caller *caller = call->callers; caller; caller = next) {
        next = caller->next;
        if (caller->is_reported)
            continue;
        caller->is_reported = true;
        caller->is_follower = caller->is_follower || call->is_following;
        if (caller->events->on_admitted)
            caller->events->on_admitted(caller, &call->entry.id, call->deadline_ms,
                                        caller->is_follower);
    }
}

void direct_report_output(struct direct_call *call, peg_str output)
{
    call->cursor = call->callers;
    while (call->cursor) {
        struct calls_caller *caller = call->cursor;

        call->cursor = caller->next;
        if (caller->events->on_output)
            caller->events->on_output(caller, output);
    }
}

/* ---- its end --------------------------------------------------------------------------------- */

void direct_call_summary(const struct direct_call *call, struct calls_summary *ret_summary)
{
    struct bus *bus = call->direct->bus;
    const int64_t took_ns = bus_now_ns(bus) - call->begun_ns;

    *ret_summary = (struct calls_summary){
        .id = call->entry.id,
        .begun_ns = call->begun_ns,
        .took_ns = took_ns,
        .admitted_ms = bus_now_ms(bus) - took_ns / PEG_NS_PER_MS,
        .deadline_ms = call->deadline_ms,
        .was_sent = true,
        .code = {"", 0},
        .principal = peg__blob_str(call->principal),
        .toolset = call->toolset->name,
        .tool = call->tool->name,
        .provider = {"", 0},
    };
}

static void count_end(struct direct_call *call, const struct calls_outcome *outcome)
{
    const struct calls_loop *calls = call->direct->calls;
    struct calls_summary summary;

    if (call->is_counted) {
        direct_call_summary(call, &summary);
        calls_summary_set_outcome(&summary, outcome);
        calls->env->count_ended(call->meter, outcome->kind, summary.took_ns);
        calls_recent_add(calls->recent, &summary);
    } else if (outcome->kind == CALLS_KIND_REFUSED && !call->is_following && call->toolset) {
        calls->env->count_refused(call->meter);
    }
}

/* What the driver has made on Redis goes with the call; an agent removes what it has read. */
static void remove_streams(const struct direct_call *call)
{
    char id[BUS_ID_TEXT];
    char result[PULSE_NAME];
    char mapping[PULSE_NAME];

    if (call->is_following || call->is_for_agent || !call->epoch)
        return;
    bus_id_print(&call->entry.id, id);
    bus_stream_drop_call(call->direct->bus, pulse_result_key(peg__str(id), result),
                         pulse_mapping_key(peg__str(id), mapping));
}

void direct_end(struct direct_call *call, const struct calls_outcome *outcome)
{
    cut_off(call);
    count_end(call, outcome);
    remove_streams(call);
    while (call->callers) {
        struct calls_caller *caller = call->callers;

        direct_take_caller(caller);
        caller->is_follower = caller->is_follower || call->is_following;
        caller->events->on_end(caller, outcome);
    }
    free_direct_call(call);
}

void direct_end_refused(struct direct_call *call, enum calls_error error, peg_str message,
                        int64_t retry_after_ms)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = error,
        .message = message,
        .retry_after_ms = retry_after_ms,
        .was_started = error == CALLS_OUTCOME_UNKNOWN,
    };

    direct_end(call, &outcome);
}
