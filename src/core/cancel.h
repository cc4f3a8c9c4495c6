/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CANCEL_H
#define PEG_CORE_CANCEL_H

#include "pegboard/cancel.h"

/*
 * A hook whose memory is the caller's, usually on its stack: nothing to allocate, so waiting
 * cannot fail. Set fn and user; the rest is the token's.
 */
struct peg__cancel_hook {
    void (*fn)(void *user);
    void *user;
    peg_cancel *cancel; /* NULL while it hangs nowhere */
    struct peg__cancel_hook *next;
    struct peg__cancel_hook *prev;
    bool is_running;
};

/* cancel may be NULL: then nothing happens. Calls fn at once if the token has fired. */
void peg__cancel_hook(struct peg__cancel_hook *hook, peg_cancel *cancel);
/* When it returns, fn is not running (unless it is fn that unhooks) and will not be called. */
void peg__cancel_unhook(struct peg__cancel_hook *hook);

#endif
