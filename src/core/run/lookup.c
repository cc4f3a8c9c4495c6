/* SPDX-License-Identifier: Apache-2.0 */

/* Which tool a call means, and what the model is told if there is no such tool. */

#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text/str.h"
#include "core/registry/registry.h"
#include "core/run/run.h"
#include "pegboard/registry.h"

/* More would not help a model to choose. */
enum { MAX_NAMES_TOLD = 64 };

static int by_name(const void *a, const void *b)
{
    return strcmp(peg_tool_name(*(peg_tool *const *)a), peg_tool_name(*(peg_tool *const *)b));
}

/* Only what was advertised: hidden names are nobody's business. */
static void tell_names(peg_tool_list *tools, struct peg__buf *out)
{
    const size_t n_told = tools->len < MAX_NAMES_TOLD ? tools->len : MAX_NAMES_TOLD;

    if (!tools->len) {
        peg__buf_puts(out, "no tools are available");
        return;
    }
    qsort(tools->items, tools->len, sizeof(*tools->items), by_name);
    peg__buf_puts(out, "available tools: ");
    for (size_t i = 0; i < n_told; i++)
        peg__buf_printf(out, "%s%s", i ? ", " : "", peg_tool_name(tools->items[i]));
    if (n_told < tools->len)
        peg__buf_printf(out, " and %zu more", tools->len - n_told);
}

static peg_status refuse_unknown(struct peg__run *run, peg_registry *registry, peg_error *reterr)
{
    struct peg__buf sentence = PEG__BUF(2L * PEG_LIMIT_FAILURE_BYTES);
    peg_tool_list tools;
    peg_status status = peg_registry_visible(registry, &tools, reterr);

    if (status)
        return status;
    if (peg__str_is(run->record->tool, PEG__UNNAMED_TOOL))
        peg__buf_puts(&sentence, "the call names no tool; ");
    else
        peg__buf_printf(&sentence, "there is no tool named '%.*s'; ", PEG_ARG(run->record->tool));
    tell_names(&tools, &sentence);
    peg_tool_list_free(&tools);
    return peg__run_refuse_text(run, "E_TOOL_NOT_FOUND", "", &sentence, reterr);
}

/* Whoever runs a turn from a file without its tools should find out why nothing works. */
static peg_status refuse_without_registry(struct peg__run *run, peg_error *reterr)
{
    peg__log(PEG_LOG_WARN, "E_TOOL_NO_REGISTRY",
             "a call of '%.*s' was refused: there is no tool registry in the context",
             PEG_ARG(run->record->tool));
    return peg__run_refuse(run, "E_TOOL_NO_REGISTRY", "", reterr,
                           "no tool registry in context: the tool '%.*s' cannot be run here; "
                           "answer without it",
                           PEG_ARG(run->record->tool));
}

peg_status peg__run_find_tool(struct peg__run *run, peg_error *reterr)
{
    peg_registry *registry = peg_ctx_registry(run->ctx);

    run->tool = registry ? peg_registry_get(registry, run->record->tool) : NULL;
    if (!run->tool && peg__registry_is_absent(registry))
        return refuse_without_registry(run, reterr);
    if (!run->tool)
        return refuse_unknown(run, registry, reterr);

    run->record->is_inline = peg_tool_is_inline(run->tool);
    if (peg_tool_is_artifact_tool(run->tool)) {
        run->record->is_from_artifact_tool = true;
        run->record->is_inline = true;
    }
    return PEG_OK;
}
