/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_RESULT_QUOTA_H
#define PEG_CALLS_RESULT_QUOTA_H

/*
 * Memory for results on one loop that are no outcomes yet: those that providers have begun to
 * send, and those that wait for a worker to read them. Each principal has its share. A worker may
 * be at it when the loop has gone, so the quota is reference counted; on the loop's thread alone.
 */

#include "base/quota.h"

struct calls_result_wait;

struct calls_result_quota {
    unsigned n_refs;
    struct peg__quota bytes;   /* begun, or not read: peg__quota_add() and _give_back() */
    struct peg__quota reading; /* of these, whole and given to workers */
    struct calls_result_wait *waits;
};

/* A stream that waits until less of its principal's is being read. */
struct calls_result_wait {
    struct calls_result_quota *quota; /* NULL: it does not wait */
    uint16_t account;
    struct calls_result_wait *next;
    struct calls_result_wait *prev;
    void (*go_on)(struct calls_result_wait *wait);
};

/* `has_shares`: callers are authenticated, and each principal has its share. NULL: no memory. */
struct calls_result_quota *calls_result_quota_new(bool has_shares);
struct calls_result_quota *calls_result_quota_ref(struct calls_result_quota *quota);
struct calls_result_quota *
calls_result_quota_unref(struct calls_result_quota *quota); /* takes NULL */

/* PEG_ELIMIT (E_RESULT_TOO_LARGE): there is no room for so much, and which limit says so. */
peg_status calls_result_quota_check(const struct calls_result_quota *quota, uint16_t account,
                                    size_t n_bytes, peg_error *reterr);
/* Bytes that a worker reads. Once little enough is being read, all that wait go on. */
void calls_result_quota_begin_read(struct calls_result_quota *quota, uint16_t account,
                                   size_t n_bytes);
void calls_result_quota_end_read(struct calls_result_quota *quota, uint16_t account,
                                 size_t n_bytes);
/* True: more is being read than PEG_LIMIT_GATEWAY_OWN_READING_BYTES, and go_on() comes later. */
bool calls_result_quota_must_wait(struct calls_result_quota *quota, uint16_t account,
                                  struct calls_result_wait *wait);
/* go_on() does not come any more. */
void calls_result_quota_forget_wait(struct calls_result_wait *wait);

#endif
