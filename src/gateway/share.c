/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whoever has many providers, or results that take long to read, would else take all of the room
 * there is for results that are not whole or not read yet, and results of others would be refused
 * after their tools have run.
 */

#include "gateway/share.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

struct gw_shares *gw_shares_new(void)
{
    struct gw_shares *shares = (struct gw_shares *)peg__alloc_zero(1, sizeof(*shares));

    if (shares)
        shares->n_refs = 1;
    return shares;
}

struct gw_shares *gw_shares_unref(struct gw_shares *shares)
{
    if (shares && --shares->n_refs == 0)
        peg__free(shares);
    return NULL;
}

static struct gw_share *new_share(struct gw_shares *shares, peg_str principal)
{
    struct gw_share *share =
        (struct gw_share *)peg__alloc_zero(1, sizeof(*share) + principal.len + 1);

    if (!share)
        return NULL;
    if (principal.len)
        memcpy(share->principal, principal.ptr, principal.len);
    share->len = principal.len;
    share->all = shares;
    share->next = shares->first;
    shares->first = share;
    shares->n_refs++;
    return share;
}

struct gw_share *gw_share_join(struct gw_shares *shares, peg_str principal)
{
    struct gw_share *share = shares->first;

    while (share && !peg__str_eq((peg_str){share->principal, share->len}, principal))
        share = share->next;
    if (!share)
        share = new_share(shares, principal);
    if (share)
        share->n_users++;
    return share;
}

struct gw_share *gw_share_join_again(struct gw_share *share)
{
    share->n_users++;
    return share;
}

void gw_share_leave(struct gw_share *share)
{
    struct gw_share **at = share ? &share->all->first : NULL;

    if (!share || --share->n_users > 0)
        return;
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    gw_shares_unref(share->all);
    peg__free(share);
}

/* Others cannot take the last room from one who has little. */
static bool has_floor(const struct gw_share *share, size_t n_bytes)
{
    enum { FLOOR = 2 * PEG_LIMIT_GATEWAY_RESULT_BYTES };

    return share->bytes + n_bytes <= FLOOR;
}

peg_status gw_share_check(const struct gw_share *share, size_t n_bytes, peg_error *reterr)
{
    if (has_floor(share, n_bytes))
        return PEG_OK;
    if (share->bytes + n_bytes > PEG_LIMIT_GATEWAY_OWN_ASSEMBLED_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "results of this principal that are not whole, or not read yet, hold "
                         "PEG_LIMIT_GATEWAY_OWN_ASSEMBLED_BYTES = 128 MiB: finish some of them "
                         "first");
    if (share->all->bytes + n_bytes > PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "results that are not whole, or not read yet, hold "
                         "PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES = 256 MiB: try again later");
    return PEG_OK;
}

void gw_share_take(struct gw_share *share, size_t n_bytes)
{
    share->bytes += n_bytes;
    share->all->bytes += n_bytes;
}

void gw_share_give_back(struct gw_share *share, size_t n_bytes)
{
    share->bytes -= n_bytes;
    share->all->bytes -= n_bytes;
}

void gw_share_take_to_read(struct gw_share *share, size_t n_bytes)
{
    gw_share_take(share, n_bytes);
    share->reading += n_bytes;
}

bool gw_share_must_wait(struct gw_share *share, struct gw_share_wait *wait)
{
    if (share->reading <= PEG_LIMIT_GATEWAY_OWN_READING_BYTES)
        return false;
    if (wait->share)
        return true;
    wait->share = share;
    wait->prev = NULL;
    wait->next = share->waits;
    if (wait->next)
        wait->next->prev = wait;
    share->waits = wait;
    return true;
}

void gw_share_forget_wait(struct gw_share_wait *wait)
{
    if (!wait->share)
        return;
    if (wait->prev)
        wait->prev->next = wait->next;
    else
        wait->share->waits = wait->next;
    if (wait->next)
        wait->next->prev = wait->prev;
    wait->share = NULL;
}

/* Whoever goes on may bring more to read. */
void gw_share_was_read(struct gw_share *share, size_t n_bytes)
{
    gw_share_give_back(share, n_bytes);
    share->reading -= n_bytes;
    while (share->waits && share->reading <= PEG_LIMIT_GATEWAY_OWN_READING_BYTES) {
        struct gw_share_wait *wait = share->waits;

        gw_share_forget_wait(wait);
        wait->go_on(wait);
    }
}
