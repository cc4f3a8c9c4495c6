/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/notify.h"

#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/ctx.h"

/* By its address: what a context calls its listener. */
static const char key;

peg_status peg__ctx_with_listener(peg_ctx *parent, const struct peg__listener *listener,
                                  peg_ctx **ret_ctx, peg_error *reterr)
{
    return peg_ctx_with_value(parent, &key, peg__unconst(listener), NULL, ret_ctx, reterr);
}

const struct peg__listener *peg__call_listener(const peg_call *call)
{
    return peg_ctx_value(peg_call_ctx(call), &key);
}
