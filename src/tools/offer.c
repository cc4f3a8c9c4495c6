/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/dispatch.h"
#include "pegboard/sqlite.h"

/* The registry is the run's own. A pipeline runs in each iteration, so the tool is mostly there
 * already; it is not taken away at the end of one, because its calls run after the pipeline. */
peg_status peg_offer_middleware(peg_dispatch *dispatch, peg_middleware_next *next, void *tool,
                                peg_error *reterr)
{
    peg_registry *registry = peg_dispatch_registry(dispatch);
    peg_tool *there;
    peg_status status = PEG_OK;

    if (!tool)
        return peg__fail(reterr, PEG_EINVAL, "E_REGISTRY_ARGUMENT",
                         "peg_offer_middleware() needs a tool as its user pointer");
    there = peg_registry_get(registry, peg_cstr(peg_tool_name(tool)));
    if (there != tool)
        status = peg_registry_register(registry, tool, false, reterr);
    peg_tool_unref(there);
    return status ? status : peg_middleware_run_next(next, reterr);
}
