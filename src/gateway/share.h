/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SHARE_H
#define PEG_GATEWAY_SHARE_H

/*
 * Memory for results on one loop that are no terminals yet: those that providers have begun to
 * send, and those that wait for a worker to read them. Each principal has its share. A worker may
 * be at it when the desk has gone; the shares stay until then.
 */

#include "pegboard/common.h"

struct gw_share;

/* Of all principals. */
struct gw_shares {
    unsigned n_refs; /* the desk's, and one for each share */
    size_t bytes;
    struct gw_share *first;
};

/* One who waits until less of its principal's is being read. */
struct gw_share_wait {
    struct gw_share *share; /* NULL: it does not wait */
    struct gw_share_wait *next;
    struct gw_share_wait *prev;
    void (*go_on)(struct gw_share_wait *wait);
};

struct gw_share {
    struct gw_shares *all;
    struct gw_share *next;
    size_t bytes;
    size_t reading; /* of these, whole and given to workers */
    struct gw_share_wait *waits;
    size_t n_users;
    size_t len;
    char principal[];
};

/* NULL: no memory. */
struct gw_shares *gw_shares_new(void);
struct gw_shares *gw_shares_unref(struct gw_shares *shares);

/* That of a principal, until it is left; NULL: no memory. */
struct gw_share *gw_share_join(struct gw_shares *shares, peg_str principal);
struct gw_share *gw_share_join_again(struct gw_share *share);
/* Takes NULL. Whoever leaves has given back what it took. */
void gw_share_leave(struct gw_share *share);

/* PEG_ELIMIT (E_RESULT_TOO_LARGE): there is no room for so much, and which limit says so. */
peg_status gw_share_check(const struct gw_share *share, size_t n_bytes, peg_error *reterr);
void gw_share_take(struct gw_share *share, size_t n_bytes);
void gw_share_give_back(struct gw_share *share, size_t n_bytes);
/* Likewise, for a worker. Once little enough is being read, all who wait go on. */
void gw_share_take_to_read(struct gw_share *share, size_t n_bytes);
void gw_share_was_read(struct gw_share *share, size_t n_bytes);
/* True: more is being read than PEG_LIMIT_GATEWAY_OWN_READING_BYTES, and go_on() comes later. */
bool gw_share_must_wait(struct gw_share *share, struct gw_share_wait *wait);
/* go_on() does not come any more. */
void gw_share_forget_wait(struct gw_share_wait *wait);

#endif
