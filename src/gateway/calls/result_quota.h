/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CALLS_RESULT_QUOTA_H
#define PEG_GATEWAY_CALLS_RESULT_QUOTA_H

/*
 * Memory for results on one loop that are no terminals yet: those that providers have begun to
 * send, and those that wait for a worker to read them. Each principal has its share. A worker may
 * be at it when the desk has gone, so the quota is reference counted; on the loop's thread alone.
 */

#include "base/quota.h"

struct gw_result_wait;

struct gw_result_quota {
    unsigned n_refs;
    struct peg__quota bytes;   /* begun, or not read: peg__quota_add() and _give_back() */
    struct peg__quota reading; /* of these, whole and given to workers */
    struct gw_result_wait *waits;
};

/* A stream that waits until less of its principal's is being read. */
struct gw_result_wait {
    struct gw_result_quota *quota; /* NULL: it does not wait */
    uint16_t account;
    struct gw_result_wait *next;
    struct gw_result_wait *prev;
    void (*go_on)(struct gw_result_wait *wait);
};

/* `has_shares`: principals are told apart. NULL: no memory. */
struct gw_result_quota *gw_result_quota_new(bool has_shares);
struct gw_result_quota *gw_result_quota_ref(struct gw_result_quota *quota);
struct gw_result_quota *gw_result_quota_unref(struct gw_result_quota *quota); /* takes NULL */

/* PEG_ELIMIT (E_RESULT_TOO_LARGE): there is no room for so much, and which limit says so. */
peg_status gw_result_quota_check(const struct gw_result_quota *quota, uint16_t account,
                                 size_t n_bytes, peg_error *reterr);
/* Bytes that a worker reads. Once little enough is being read, all that wait go on. */
void gw_result_quota_begin_read(struct gw_result_quota *quota, uint16_t account, size_t n_bytes);
void gw_result_quota_end_read(struct gw_result_quota *quota, uint16_t account, size_t n_bytes);
/* True: more is being read than PEG_LIMIT_GATEWAY_OWN_READING_BYTES, and go_on() comes later. */
bool gw_result_quota_must_wait(struct gw_result_quota *quota, uint16_t account,
                               struct gw_result_wait *wait);
/* go_on() does not come any more. */
void gw_result_quota_forget_wait(struct gw_result_wait *wait);

#endif
