/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_QUOTA_H
#define PEG_CALLS_QUOTA_H

/* Whose calls, providers and streams take how much of what a loop has. */

#include "calls/calls.h"

peg_status calls_quotas_init(struct calls_loop *calls) PEG_MUST_USE; /* PEG_ENOMEM */
void calls_quotas_destroy(struct calls_loop *calls);
/* The key of a principal's quotas; 0 without authentication. */
uint16_t calls_quota_key(const struct calls_loop *calls, peg_str principal);
/* Of the owner of a toolset, for messages. */
uint64_t calls_owner_hash(const struct calls_loop *calls, const struct calls_toolset *toolset);
/* Why one more call, with so much of a large request, may not begin; NULL: there is room. */
const char *calls_quota_reject_call(const struct calls_loop *calls, uint16_t key,
                                    size_t large_bytes);
/* Is there room for one who begins nothing, and waits for a call that exists? */
bool calls_quota_has_wait(const struct calls_loop *calls, uint16_t key);
/* Likewise for a provider, for a call that one reports, and for a Watch stream. */
const char *calls_quota_reject_provider(const struct calls_loop *calls, uint16_t key);
const char *calls_quota_reject_report(const struct calls_loop *calls, uint16_t key);
const char *calls_quota_reject_watch(const struct calls_loop *calls, uint16_t key);

#endif
