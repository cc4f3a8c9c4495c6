/* SPDX-License-Identifier: Apache-2.0 */

/* What a loop has of direct toolsets. */

#include "base/error.h"
#include "base/limits.h"
#include "base/limits/recent.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"

peg_status gw_direct_new(struct gw_router *router, struct gw_direct **ret_direct, peg_error *reterr)
{
    struct gw_direct *direct = (struct gw_direct *)peg__alloc_zero(1, sizeof(*direct));

    if (!direct)
        return peg__fail_nomem(reterr);
    direct->router = router;
    direct->calls = router->calls;
    direct->bus = router->bus;
    direct->text.max = PEG_LIMIT_PULSE_ENTRY_BYTES;
    direct->packed.max = PEG_LIMIT_PULSE_ENTRY_BYTES;
    calls_table_init(&direct->by_id);
    *ret_direct = direct;
    return PEG_OK;
}

struct gw_direct *gw_direct_free(struct gw_direct *direct)
{
    if (!direct)
        return NULL;
    direct_drop_agents(direct);
    while (direct->first_call)
        direct_call_drop(direct->first_call);
    direct_drop_openings(direct);
    direct_drop_emissions(direct);
    calls_table_free(&direct->by_id);
    peg__buf_free(&direct->text);
    peg__buf_free(&direct->packed);
    peg__free(direct);
    return NULL;
}

size_t gw_direct_count(const struct gw_direct *direct)
{
    size_t n = 0;

    for (const struct direct_call *call = direct ? direct->first_call : NULL; call;
         call = call->next)
        n += call->callers != NULL;
    return n;
}

bool gw_direct_list(const struct gw_direct *direct, peg_str principal, calls_list_fn *fn,
                    void *user)
{
    const struct direct_call *call = direct ? direct->first_call : NULL;
    struct calls_summary summary;

    for (size_t n = 0; call && n < PEG_LIMIT_GATEWAY_LISTED_CALLS; n++, call = call->next) {
        if (!call->is_counted || !peg__str_eq(peg__blob_str(call->principal), principal))
            continue;
        direct_call_summary(call, &summary);
        fn(user, &summary);
    }
    return !call;
}
