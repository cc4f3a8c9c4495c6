/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_CONTEXT_NOTIFY_H
#define PEG_CORE_CONTEXT_NOTIFY_H

/*
 * Who hears what a handler says while it works. Whoever can pass it on (a provider) puts itself
 * into the context; handlers of ours that have something to say (commands) look for it there, so
 * that neither need know the other.
 */

#include "pegboard/call.h"

/* Static. */
struct peg__listener {
    /* As peg_provider_delta(): UTF-8 without NUL. Does not block, and results do not depend on it:
     * PEG_ELIMIT if too much waits already, and then the text is gone. */
    peg_status (*say)(peg_call *call, const char *stream, peg_str text);
};

peg_status peg__ctx_with_listener(peg_ctx *parent, const struct peg__listener *listener,
                                  peg_ctx **ret_ctx, peg_error *reterr);
/* NULL: nobody listens. */
const struct peg__listener *peg__call_listener(const peg_call *call);

#endif
