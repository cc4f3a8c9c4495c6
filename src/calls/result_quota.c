/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A principal with many providers, or with results that take long to read, could otherwise take all
 * the memory for results that are not whole or not read yet, and results of others would be refused
 * after their tools have run.
 */

#include "calls/result_quota.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"

struct calls_result_quota *calls_result_quota_new(bool has_shares)
{
    const struct peg__quota_limits limits = {
        .max = PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES,
        .floor = (size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES,
        .has_shares = has_shares,
    };
    struct calls_result_quota *quota =
        (struct calls_result_quota *)peg__alloc_zero(1, sizeof(*quota));

    if (!quota)
        return NULL;
    quota->n_refs = 1;
    if (peg__quota_init(&quota->bytes, &limits) || peg__quota_init(&quota->reading, &limits))
        return calls_result_quota_unref(quota);
    return quota;
}

struct calls_result_quota *calls_result_quota_ref(struct calls_result_quota *quota)
{
    quota->n_refs++;
    return quota;
}

struct calls_result_quota *calls_result_quota_unref(struct calls_result_quota *quota)
{
    if (!quota || --quota->n_refs > 0)
        return NULL;
    peg__quota_destroy(&quota->bytes);
    peg__quota_destroy(&quota->reading);
    peg__free(quota);
    return NULL;
}

peg_status calls_result_quota_check(const struct calls_result_quota *quota, uint16_t account,
                                    size_t n_bytes, peg_error *reterr)
{
    if (peg__quota_has(&quota->bytes, account, n_bytes, PEG__QUOTA_BEGIN))
        return PEG_OK;
    if (account)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "results of this principal that are not whole, or not read yet, would "
                         "hold more than three times what is free (PEG_LIMIT_QUOTA_SHARE) of "
                         "PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES: finish some of them first");
    return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                     "results that are not whole, or not read yet, hold "
                     "PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES = 256 MiB: try again later");
}

/* Without authentication all have one share. */
static bool has_much_to_read(const struct calls_result_quota *quota, uint16_t account)
{
    const size_t reading =
        account ? peg__quota_share(&quota->reading, account) : peg__quota_used(&quota->reading);

    return reading > PEG_LIMIT_GATEWAY_OWN_READING_BYTES;
}

void calls_result_quota_begin_read(struct calls_result_quota *quota, uint16_t account,
                                   size_t n_bytes)
{
    peg__quota_add(&quota->bytes, account, n_bytes);
    peg__quota_add(&quota->reading, account, n_bytes);
}

static struct calls_result_wait *next_to_go_on(const struct calls_result_quota *quota,
                                               uint16_t account)
{
    struct calls_result_wait *wait = quota->waits;

    while (wait && wait->account != account)
        wait = wait->next;
    return wait;
}

void calls_result_quota_end_read(struct calls_result_quota *quota, uint16_t account, size_t n_bytes)
{
    struct calls_result_wait *wait;

    peg__quota_give_back(&quota->bytes, account, n_bytes);
    peg__quota_give_back(&quota->reading, account, n_bytes);
    while (!has_much_to_read(quota, account) && (wait = next_to_go_on(quota, account))) {
        calls_result_quota_forget_wait(wait);
        wait->go_on(wait);
    }
}

bool calls_result_quota_must_wait(struct calls_result_quota *quota, uint16_t account,
                                  struct calls_result_wait *wait)
{
    if (!has_much_to_read(quota, account))
        return false;
    if (wait->quota)
        return true;
    wait->quota = quota;
    wait->account = account;
    PEG_LIST_PUSH(quota->waits, wait, next, prev);
    return true;
}

void calls_result_quota_forget_wait(struct calls_result_wait *wait)
{
    if (wait->quota)
        PEG_LIST_REMOVE(wait->quota->waits, wait, next, prev);
    wait->quota = NULL;
}
