/* SPDX-License-Identifier: Apache-2.0 */

/* What handlers of the host report while they work. */

#include <math.h>

#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"
#include "pegboard/mcp.h"

bool mcp_is_served(const peg_call *call)
{
    return mcp__job_of(peg_call_ctx(call));
}

peg_status peg_mcp_progress(peg_call *call, double progress, double total, const char *message)
{
    const peg_str text = peg__str(peg__or_empty(message));
    struct mcp__job *job = mcp__job_of(peg_call_ctx(call));

    if (!isfinite(progress) || !isfinite(total) || !peg__utf8_is_valid(text))
        return PEG_EINVAL;
    if (!job)
        return PEG_OK;
    return mcp__job_report(
        job, &(struct mcp__report){.kind = MCP__PROGRESS, .progress = progress, .total = total},
        (peg_str){"", 0}, text);
}

peg_status peg_mcp_log(peg_call *call, peg_mcp_level level, const char *logger,
                       const peg_json *data)
{
    const peg_str name = peg__str(peg__or_empty(logger));
    struct mcp__job *job = mcp__job_of(peg_call_ctx(call));
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_REPORT_BYTES);
    peg_status status;

    if ((unsigned)level >= MCP_N_LEVELS || !peg__utf8_is_valid(name))
        return PEG_EINVAL;
    if (!job)
        return PEG_OK;
    peg__json_write(peg__json_or_null(data), PEG_JSON_COMPACT, &text);
    status = text.status
                 ? text.status
                 : mcp__job_report(
                       job, &(struct mcp__report){.kind = MCP__LOG, .level = (enum mcp_level)level},
                       name, peg__buf_view(&text));
    peg__buf_free(&text);
    return status;
}
