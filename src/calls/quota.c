/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All principals share the capacity of a loop. Without quotas one with many slow calls and large
 * payloads could take all of it, and calls of others would be refused until its own have ended. The
 * same has for providers, the calls that they report, and Watch streams.
 */

#include <string.h>

#include "base/limits.h"
#include "calls/quota.h"

peg_status calls_quotas_init(struct calls_loop *calls)
{
    const struct calls_options *options = &calls->options;
    struct calls_quotas *quotas = &calls->quotas;
    const struct {
        struct peg__quota *quota;
        size_t max;
    } all[] = {
        {&quotas->calls, options->max_calls},
        {&quotas->large_bytes, options->max_large_bytes},
        {&quotas->providers, PEG_LIMIT_GATEWAY_PROVIDERS},
        {&quotas->assignments, PEG_LIMIT_GATEWAY_ASSIGNMENTS},
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

void calls_quotas_destroy(struct calls_loop *calls)
{
    peg__quota_destroy(&calls->quotas.calls);
    peg__quota_destroy(&calls->quotas.large_bytes);
    peg__quota_destroy(&calls->quotas.providers);
    peg__quota_destroy(&calls->quotas.assignments);
    peg__quota_destroy(&calls->quotas.watchers);
}

/* The same on all loops and nodes that have one secret. */
static struct peg__hash_key quota_secret(const struct calls_loop *calls)
{
    struct peg__hash_key key;

    memcpy(&key, calls->options.secret, sizeof(key));
    return key;
}

uint16_t calls_quota_key(const struct calls_loop *calls, peg_str principal)
{
    return calls->options.has_principals ? peg__quota_key(quota_secret(calls), principal) : 0;
}

uint64_t calls_owner_hash(const struct calls_loop *calls, const struct calls_toolset *toolset)
{
    return peg__hash(quota_secret(calls), toolset->owner);
}

static bool has_one(const struct peg__quota *quota, uint16_t key)
{
    return peg__quota_has(quota, key, 1, PEG__QUOTA_BEGIN);
}

/* A principal may have a multiple of what is still free, so these are true of one that has nothing
 * while others have filled the node. Key 0 is of principals that are not told apart. */
const char *calls_quota_reject_call(const struct calls_loop *calls, uint16_t key,
                                    size_t large_bytes)
{
    if (!has_one(&calls->quotas.calls, key))
        return key ? "quota exceeded: too many calls of this principal; retry when some have ended"
                   : "this node has too many calls; retry later";
    if (!large_bytes ||
        peg__quota_has(&calls->quotas.large_bytes, key, large_bytes, PEG__QUOTA_BEGIN))
        return NULL;
    return key ? "quota exceeded: too many bytes in large payloads of this principal; retry when "
                 "some calls have ended, or send a reference to the data"
               : "this node has too many bytes in large payloads; retry later, or send a reference "
                 "to the data";
}

/* A caller that waits for what it has begun need not keep to its quota, which shrinks as others
 * come: it would lose its call. But it could wait for one call many times, so the last sixteenth is
 * for those within theirs. */
bool calls_quota_has_wait(const struct calls_loop *calls, uint16_t key)
{
    const size_t max = calls->options.max_calls;

    return has_one(&calls->quotas.calls, key) ||
           peg__quota_used(&calls->quotas.calls) + 1 <= max - max / 16;
}

const char *calls_quota_reject_provider(const struct calls_loop *calls, uint16_t key)
{
    if (has_one(&calls->quotas.providers, key))
        return NULL;
    return key ? "quota exceeded: too many providers of this principal; attach to another node, or "
                 "retry"
               : "this node has too many providers; attach to another node, or retry";
}

const char *calls_quota_reject_report(const struct calls_loop *calls, uint16_t key)
{
    if (has_one(&calls->quotas.assignments, key))
        return NULL;
    return key ? "quota exceeded: providers of this principal run or report too many calls; retry "
                 "later"
               : "providers of this node run or report too many calls; retry later";
}

const char *calls_quota_reject_watch(const struct calls_loop *calls, uint16_t key)
{
    if (has_one(&calls->quotas.watchers, key))
        return NULL;
    return key ? "quota exceeded: too many Watch streams of this principal; end some"
               : "this node has too many Watch streams; end some";
}
