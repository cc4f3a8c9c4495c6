/* SPDX-License-Identifier: Apache-2.0 */

/* Which calls there are: those that are not over from the loop's list, which has the newest first,
 * the others from what is kept of them. */

#include "base/limits/recent.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/quota.h"

struct calls_subject calls_call_subject(const struct calls_call *call)
{
    struct bus *bus = call->calls->bus;

    return (struct calls_subject){
        .toolset = call->toolset ? call->toolset->name : (peg_str){"", 0},
        .tool = call->tool ? call->tool->name : (peg_str){"", 0},
        .admitted_ms = bus_now_ms(bus) - (bus_now_ns(bus) - call->begun_ns) / 1000000,
    };
}

static void summarize(const struct calls_call *call, struct calls_summary *ret_summary)
{
    const struct calls_subject subject = calls_call_subject(call);

    *ret_summary = (struct calls_summary){
        .id = call->entry.id,
        .begun_ns = call->begun_ns,
        .took_ns = bus_now_ns(call->calls->bus) - call->begun_ns,
        .admitted_ms = subject.admitted_ms,
        .deadline_ms = call->machine.deadline_ms,
        .attempt = call->machine.attempt,
        .was_sent = call->machine.n_sent > 0,
        .code = {"", 0},
        .principal = call->caller_name,
        .toolset = subject.toolset,
        .tool = subject.tool,
        .provider = peg__str(call->machine.incarnation),
    };
}

void calls_call_count_ended(struct calls_call *call, const struct calls_outcome *outcome)
{
    const struct calls_loop *calls = call->calls;
    struct calls_summary summary;

    if (!call->is_counted)
        return;
    summarize(call, &summary);
    calls_summary_set_outcome(&summary, outcome);
    calls->env->count_ended(call->meter, outcome->kind, summary.took_ns);
    calls_recent_add(calls->recent, &summary);
    call->is_counted = false;
}

/* One that has ended, and whose callers are being notified, is among the others. */
bool calls_list(struct calls_loop *calls, peg_str principal, calls_list_fn *fn, void *user)
{
    const struct calls_call *call = calls->first_call;
    struct calls_summary summary;

    for (size_t n = 0; call && n < PEG_LIMIT_GATEWAY_LISTED_CALLS; n++, call = call->next) {
        if (!call->is_counted || !peg__str_eq(call->caller_name, principal))
            continue;
        summarize(call, &summary);
        fn(user, &summary);
    }
    for (size_t i = 0; calls_recent_get(calls->recent, i, &summary); i++)
        if (peg__str_eq(summary.principal, principal))
            fn(user, &summary);
    return !call;
}
