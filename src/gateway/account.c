/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a loop has room for is shared by all who call: who has many slow calls with large payloads
 * would else take all of it, and calls of others would be refused until his have ended. So it is
 * with providers, with the calls that they say they have, and with who watches. Accounts are found
 * by a hash of the principal: a call costs as much however many there are.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "gateway/call.h"

/* Everybody's, where nobody is asked who he is. */
enum { NOBODYS = 0 };

bool gw_accounts_make(struct gw_desk *desk)
{
    const size_t n = desk->options.has_principals ? PEG_LIMIT_QUOTA_KEYS : 1;

    desk->accounts = (struct gw_account *)peg__alloc_zero(n, sizeof(*desk->accounts));
    return desk->accounts != NULL;
}

/* The same on all loops and nodes that have one secret. */
static struct peg__hash_key key_of(const struct gw_desk *desk)
{
    struct peg__hash_key key;

    memcpy(&key, desk->options.secret, sizeof(key));
    return key;
}

uint16_t gw_desk_account(const struct gw_desk *desk, peg_str principal)
{
    return desk->options.has_principals ? bus_account_of(principal, key_of(desk)) : NOBODYS;
}

uint64_t gw_desk_owner_hash(const struct gw_desk *desk, const struct gw_toolset *toolset)
{
    return peg__hash(key_of(desk), toolset->owner);
}

static bool has_room(uint16_t account, size_t own, size_t more, size_t taken, size_t max)
{
    return taken + more <= max &&
           (account == NOBODYS || !bus_is_beyond_share(own, more, taken, max));
}

static bool has_call(const struct gw_desk *desk, uint16_t account)
{
    return has_room(account, desk->accounts[account].n_calls, 1, desk->n_calls,
                    desk->options.max_calls);
}

static bool has_bytes(const struct gw_desk *desk, uint16_t account, size_t large_bytes)
{
    return !large_bytes || has_room(account, desk->accounts[account].large_bytes, large_bytes,
                                    desk->large_bytes, desk->options.max_large_bytes);
}

/* The words are true of one who holds nothing, too, where others have filled the room. */
const char *gw_account_why_not(const struct gw_desk *desk, uint16_t account, size_t large_bytes)
{
    if (!has_call(desk, account))
        return account
                   ? "calls of this principal would be more than three times as many as this "
                     "loop still has room for (PEG_LIMIT_QUOTA_SHARE, PEG_LIMIT_GATEWAY_CALLS): "
                     "try again when some have ended"
                   : "this node has as many calls as it takes (PEG_LIMIT_GATEWAY_CALLS): try "
                     "again later";
    if (!has_bytes(desk, account, large_bytes))
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
bool gw_account_has_wait(const struct gw_desk *desk, uint16_t account)
{
    const size_t max = desk->options.max_calls;

    return has_call(desk, account) || desk->n_calls + 1 <= max - max / 16;
}

const char *gw_account_why_no_provider(const struct gw_desk *desk, uint16_t account)
{
    if (has_room(account, desk->accounts[account].n_providers, 1, desk->n_providers,
                 PEG_LIMIT_GATEWAY_PROVIDERS))
        return NULL;
    return account
               ? "providers of this principal would be more than three times as many as this "
                 "loop still has room for (PEG_LIMIT_QUOTA_SHARE, PEG_LIMIT_GATEWAY_PROVIDERS): "
                 "attach to another node, or try again"
               : "this node has as many providers on one loop as it takes "
                 "(PEG_LIMIT_GATEWAY_PROVIDERS): attach to another node, or try again";
}

const char *gw_account_why_no_list(const struct gw_desk *desk, uint16_t account)
{
    if (has_room(account, desk->accounts[account].n_held, 1, desk->held.n, PEG_LIMIT_GATEWAY_HELD))
        return NULL;
    return account ? "calls that providers of this principal have, or list, would be more than "
                     "three times as many as this loop still has room for (PEG_LIMIT_QUOTA_SHARE, "
                     "PEG_LIMIT_GATEWAY_HELD): come back later"
                   : "providers on this loop have listed, or have, as many calls as it takes "
                     "(PEG_LIMIT_GATEWAY_HELD): come back later";
}

const char *gw_account_why_no_watch(const struct gw_desk *desk, uint16_t account, size_t n_watchers)
{
    if (has_room(account, desk->accounts[account].n_watchers, 1, n_watchers,
                 PEG_LIMIT_GATEWAY_WATCHERS))
        return NULL;
    return account ? "streams of Watch of this principal would be more than three times as many as "
                     "this loop still has room for (PEG_LIMIT_QUOTA_SHARE, "
                     "PEG_LIMIT_GATEWAY_WATCHERS): end other streams"
                   : "as many watch as PEG_LIMIT_GATEWAY_WATCHERS allows: end other streams";
}

void gw_account_count_call(const struct gw_call *call, bool is_here)
{
    struct gw_desk *desk = call->desk;
    struct gw_account *account = &desk->accounts[call->account];

    if (is_here) {
        desk->n_calls++;
        account->n_calls++;
    } else {
        desk->n_calls--;
        account->n_calls--;
        desk->large_bytes -= call->large_bytes;
        account->large_bytes -= call->large_bytes;
    }
}

void gw_account_take_bytes(struct gw_call *call, size_t large_bytes)
{
    call->large_bytes = large_bytes;
    call->desk->large_bytes += large_bytes;
    call->desk->accounts[call->account].large_bytes += large_bytes;
}
