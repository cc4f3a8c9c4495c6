/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_MCP_SOURCE_H
#define FUZZ_MCP_SOURCE_H

/* A source of MCP that lists nothing, and takes answers and cancellations without a word. Who
 * includes it says how calls begin. */

#include "mcp/protocol/protocol.h"

static peg_status list_none(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                            struct mcp_page *page)
{
    (void)source;
    (void)kind;
    (void)page;
    return after.len ? PEG_EINVAL : PEG_OK;
}

static void ignore_answer(struct mcp_source *source, struct mcp_call *call, const peg_json *answers,
                          const char *reason)
{
    (void)source;
    (void)call;
    (void)answers;
    (void)reason;
}

static void ignore_cancel(struct mcp_source *source, struct mcp_call *call, const char *reason)
{
    (void)source;
    (void)call;
    (void)reason;
}

#define FUZZ_SOURCE_OPS(begin_fn)                                                                  \
    {                                                                                              \
        .list = list_none, .begin = (begin_fn), .answer = ignore_answer, .cancel = ignore_cancel   \
    }

#endif
