/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a loop has room for is shared by all who call: who has many slow calls with large payloads
 * would else take all of it, and calls of others would be refused until his have ended. Accounts
 * are found by a hash of the principal: a call costs as much however many there are.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "gateway/call.h"

/* Everybody's, where nobody is asked who he is. */
enum { NOBODYS = 0 };

bool gw_accounts_make(struct gw_desk *desk)
{
    const size_t n = desk->options.has_principals ? PEG_LIMIT_BUS_ACCOUNTS : 1;

    desk->accounts = (struct gw_account *)peg__alloc_zero(n, sizeof(*desk->accounts));
    return desk->accounts != NULL;
}

/* The same on all loops and nodes that have one secret. */
uint16_t gw_desk_account(const struct gw_desk *desk, peg_str principal)
{
    struct peg__hash_key key;

    if (!desk->options.has_principals)
        return NOBODYS;
    memcpy(&key, desk->options.secret, sizeof(key));
    return bus_account_of(principal, key);
}

static bool has_room(uint16_t account, size_t own, size_t more, size_t taken, size_t max)
{
    return taken + more <= max &&
           (account == NOBODYS || !bus_is_beyond_share(own, more, taken, max));
}

bool gw_account_has_call(const struct gw_desk *desk, uint16_t account)
{
    return has_room(account, desk->accounts[account].n_calls, 1, desk->n_calls,
                    desk->options.max_calls);
}

bool gw_account_has_bytes(const struct gw_desk *desk, uint16_t account, size_t large_bytes)
{
    return !large_bytes || has_room(account, desk->accounts[account].large_bytes, large_bytes,
                                    desk->large_bytes, desk->options.max_large_bytes);
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
