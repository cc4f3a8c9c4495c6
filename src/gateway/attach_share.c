/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What all providers of one principal have begun to send to a loop. Whoever has many of them would
 * else take all of the room there is for results that are not whole yet, and results of others
 * would be refused after their tools have run.
 */

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "gateway/attached.h"

struct gw_share *gw_share_join(struct gw_desk *desk, peg_str principal)
{
    struct gw_share *share = desk->shares;

    while (share && !peg__str_eq((peg_str){share->principal, share->len}, principal))
        share = share->next;
    if (!share) {
        share = (struct gw_share *)peg__alloc_zero(1, sizeof(*share) + principal.len);
        if (!share)
            return NULL;
        memcpy(share->principal, principal.ptr, principal.len);
        share->len = principal.len;
        share->next = desk->shares;
        desk->shares = share;
    }
    share->n_streams++;
    return share;
}

void gw_share_leave(struct gw_desk *desk, struct gw_share *share)
{
    struct gw_share **at = &desk->shares;

    if (!share || --share->n_streams > 0)
        return;
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    peg__free(share);
}
