/* SPDX-License-Identifier: Apache-2.0 */

/* Which calls there are: those that are not over from the loop's list, which has the newest first,
 * the others from what is kept of them. */

#include "base/limits/recent.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/quota.h"

static void list_ended(const struct calls_loop *calls, uint16_t account, peg_str principal,
                       calls_list_fn *fn, void *user)
{
    struct calls_summary summary;

    for (size_t i = 0; calls_recent_get(calls->recent, i, &summary); i++)
        if (summary.account == account && peg__str_eq(summary.principal, principal))
            fn(user, &summary);
}

/* One that has ended, and whose callers are being notified, is among the others. */
bool calls_list(struct calls_loop *calls, peg_str principal, calls_list_fn *fn, void *user)
{
    const uint16_t account = calls_quota_key(calls, principal);
    const struct calls_call *call = calls->first_call;
    struct calls_summary summary;

    for (size_t n = 0; call && n < PEG_LIMIT_GATEWAY_LISTED_CALLS; n++, call = call->next) {
        if (!call->is_counted || call->account != account ||
            !peg__str_eq(call->caller_name, principal))
            continue;
        calls_call_summary(call, &summary);
        fn(user, &summary);
    }
    list_ended(calls, account, principal, fn, user);
    return !call;
}
