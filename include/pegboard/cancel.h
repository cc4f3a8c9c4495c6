/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CANCEL_H
#define PEGBOARD_CANCEL_H

/*
 * Cancellation: a tree of tokens. Firing one fires all below it; a child made
 * below a fired token starts fired. The reason travels.
 *
 * Shared, reference counted; every function may be called from any thread.
 */

#include <pegboard/common.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* parent may be NULL; the child holds a reference to it. */
PEG_API PEG_MUST_USE peg_status peg_cancel_new(peg_cancel *parent, peg_cancel **ret_cancel,
                                               peg_error *reterr);
PEG_API peg_cancel *peg_cancel_ref(peg_cancel *cancel);
PEG_API peg_cancel *peg_cancel_unref(peg_cancel *cancel);

/* Fires the token and everything below it. Only the first firing counts. The reason is copied,
 * cut at 159 bytes; NULL means "canceled". Allocates nothing. Hooks run on this thread. */
PEG_API void peg_cancel_fire(peg_cancel *cancel, const char *reason);
PEG_API bool peg_cancel_fired(const peg_cancel *cancel);
/* "" until it is fired; borrowed from the token. */
PEG_API const char *peg_cancel_reason(const peg_cancel *cancel);

/* Calls fn once when the token fires, at once if it has fired already. The hook keeps the token
 * alive and is the caller's to unhook; when peg_cancel_unhook() returns, fn is not running (unless
 * it is fn itself that unhooks) and will not be called. */
typedef struct peg_cancel_hook peg_cancel_hook;
PEG_API PEG_MUST_USE peg_status peg_cancel_on_fire(peg_cancel *cancel, void (*fn)(void *user),
                                                   void *user, peg_cancel_hook **ret_hook,
                                                   peg_error *reterr);
PEG_API peg_cancel_hook *peg_cancel_unhook(peg_cancel_hook *hook);

#ifdef __cplusplus
}
#endif
#endif
