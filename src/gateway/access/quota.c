/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a loop has is shared by all who call: a principal with many slow calls and large payloads
 * could otherwise take all of it, and calls of others would be refused until his have ended. The
 * same holds for providers, the calls that they report, and streams of Watch.
 */

#include <string.h>

#include "base/limits.h"
#include "gateway/calls/call.h"

peg_status gw_quotas_init(struct gw_calls *desk)
{
    const struct gw_calls_options *options = &desk->options;
    struct gw_quotas *quotas = &desk->quotas;
    const struct {
        struct peg__quota *quota;
        size_t max;
    } all[] = {
        {&quotas->calls, options->max_calls},
        {&quotas->large_bytes, options->max_large_bytes},
        {&quotas->providers, PEG_LIMIT_GATEWAY_PROVIDERS},
        {&quotas->held, PEG_LIMIT_GATEWAY_ASSIGNMENTS},
        {&quotas->watchers, PEG_LIMIT_GATEWAY_WATCHERS},
    };
    peg_status status = PEG_OK;

    for (size_t i = 0; i < sizeof(all) / sizeof(*all) && !status; i++)
        status = peg__quota_init(all[i].quota, &(struct peg__quota_limits){
                                                   .max = all[i].max,
                                                   .has_shares = options->has_principals,
                                               });
    return status;
}

void gw_quotas_destroy(struct gw_calls *desk)
{
    peg__quota_destroy(&desk->quotas.calls);
    peg__quota_destroy(&desk->quotas.large_bytes);
    peg__quota_destroy(&desk->quotas.providers);
    peg__quota_destroy(&desk->quotas.held);
    peg__quota_destroy(&desk->quotas.watchers);
}

/* The same on all loops and nodes that have one secret. */
static struct peg__hash_key key_of(const struct gw_calls *desk)
{
    struct peg__hash_key key;

    memcpy(&key, desk->options.secret, sizeof(key));
    return key;
}

uint16_t gw_calls_quota_key(const struct gw_calls *desk, peg_str principal)
{
    return desk->options.has_principals ? peg__quota_key(key_of(desk), principal) : 0;
}

uint64_t gw_calls_owner_hash(const struct gw_calls *desk, const struct gw_toolset *toolset)
{
    return peg__hash(key_of(desk), toolset->owner);
}

static bool has_one(const struct peg__quota *quota, uint16_t account)
{
    return peg__quota_has(quota, account, 1, PEG__QUOTA_BEGIN);
}

/* The words are true of one who holds nothing, too, where others have filled the room. */
const char *gw_quota_reject_call(const struct gw_calls *desk, uint16_t account, size_t large_bytes)
{
    if (!has_one(&desk->quotas.calls, account))
        return account
                   ? "calls of this principal would be more than three times as many as this "
                     "loop still has room for (PEG_LIMIT_QUOTA_SHARE, PEG_LIMIT_GATEWAY_CALLS): "
                     "try again when some have ended"
                   : "this node has as many calls as it takes (PEG_LIMIT_GATEWAY_CALLS): try "
                     "again later";
    if (large_bytes &&
        !peg__quota_has(&desk->quotas.large_bytes, account, large_bytes, PEG__QUOTA_BEGIN))
        return account ? "large payloads of this principal would be more than three times what is "
                         "free on this loop (PEG_LIMIT_QUOTA_SHARE, "
                         "PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES): try again when some calls have "
                         "ended, or send a reference to the data instead"
                       : "the calls of this node have as large payloads as it takes "
                         "(PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES): try again later, or send a "
                         "reference to the data instead";
    return NULL;
}

/* Who waits for what he has begun need not keep to his share, which shrinks as others come: he
 * would be lost to his call. But he could wait for one call many times, and the last of the room is
 * for those who are within theirs. */
bool gw_quota_has_wait(const struct gw_calls *desk, uint16_t account)
{
    const size_t max = desk->options.max_calls;

    return has_one(&desk->quotas.calls, account) ||
           peg__quota_used(&desk->quotas.calls) + 1 <= max - max / 16;
}

const char *gw_quota_reject_provider(const struct gw_calls *desk, uint16_t account)
{
    if (has_one(&desk->quotas.providers, account))
        return NULL;
    return account
               ? "providers of this principal would be more than three times as many as this "
                 "loop still has room for (PEG_LIMIT_QUOTA_SHARE, PEG_LIMIT_GATEWAY_PROVIDERS): "
                 "attach to another node, or try again"
               : "this node has as many providers on one loop as it takes "
                 "(PEG_LIMIT_GATEWAY_PROVIDERS): attach to another node, or try again";
}

const char *gw_quota_reject_report(const struct gw_calls *desk, uint16_t account)
{
    if (has_one(&desk->quotas.held, account))
        return NULL;
    return account ? "calls that providers of this principal have, or list, would be more than "
                     "three times as many as this loop still has room for (PEG_LIMIT_QUOTA_SHARE, "
                     "PEG_LIMIT_GATEWAY_ASSIGNMENTS): come back later"
                   : "providers on this loop have listed, or have, as many calls as it takes "
                     "(PEG_LIMIT_GATEWAY_ASSIGNMENTS): come back later";
}

const char *gw_quota_reject_watch(const struct gw_calls *desk, uint16_t account)
{
    if (has_one(&desk->quotas.watchers, account))
        return NULL;
    return account ? "streams of Watch of this principal would be more than three times as many as "
                     "this loop still has room for (PEG_LIMIT_QUOTA_SHARE, "
                     "PEG_LIMIT_GATEWAY_WATCHERS): end other streams"
                   : "as many watch as PEG_LIMIT_GATEWAY_WATCHERS allows: end other streams";
}

void gw_quota_count_call(const struct gw_call *call, bool is_here)
{
    struct gw_quotas *quotas = &call->desk->quotas;

    if (is_here) {
        peg__quota_add(&quotas->calls, call->account, 1);
        return;
    }
    peg__quota_give_back(&quotas->calls, call->account, 1);
    if (call->large_bytes)
        peg__quota_give_back(&quotas->large_bytes, call->account, call->large_bytes);
}

void gw_quota_take_bytes(struct gw_call *call, size_t large_bytes)
{
    call->large_bytes = large_bytes;
    if (large_bytes)
        peg__quota_add(&call->desk->quotas.large_bytes, call->account, large_bytes);
}
