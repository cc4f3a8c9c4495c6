/* SPDX-License-Identifier: Apache-2.0 */

/* A registry of some of the tools of another: what one agent may use of all there is. */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/registry/registry.h"

static peg_status find_all(const struct peg__layers *layers, const char *const *names, size_t n,
                           peg_tool **tools, peg_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        const peg_str name = names[i] ? peg__str(names[i]) : (peg_str){"", 0};

        tools[i] = peg__layers_find(layers, name, peg__name_hash(name)).tool;
        if (!tools[i])
            return peg__fail(reterr, PEG_ENOTFOUND, "E_TOOL_NOT_REGISTERED",
                             "the tool '%.*s' was asked for but is not registered",
                             (int)(name.len < 80 ? name.len : 80), name.ptr);
    }
    return PEG_OK;
}

static peg_status hide_as(const struct peg__layers *layers, peg_registry *registry,
                          const char *const *names, size_t n, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status; i++) {
        const peg_str name = peg__str(names[i]);

        if (peg__layers_find(layers, name, peg__name_hash(name)).is_hidden)
            status = peg_registry_hide(registry, &names[i], 1, reterr);
    }
    return status;
}

peg_status peg_registry_select(peg_registry *registry, const char *const *names, size_t n,
                               peg_registry **ret_registry, peg_error *reterr)
{
    struct peg__layers layers;
    peg_registry *selected = NULL;
    peg_tool **tools;
    peg_status status = peg__registry_snapshot(registry, &layers, reterr);

    if (status)
        return status;
    tools = peg__alloc_zero(n ? n : 1, sizeof(peg_tool *));
    status = tools ? find_all(&layers, names, n, tools, reterr) : peg__fail_nomem(reterr);
    if (!status)
        status = peg_registry_new(tools, n, &selected, reterr);
    if (!status)
        status = hide_as(&layers, selected, names, n, reterr);
    peg__free(tools);
    peg__layers_free(&layers);
    if (status)
        peg_registry_unref(selected);
    else
        *ret_registry = selected;
    return status;
}
