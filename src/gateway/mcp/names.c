/* SPDX-License-Identifier: Apache-2.0 */

/* Names of tools on /mcp, as wire_mcp_name() makes them, and the way back: by the border, or for
 * one with a digest by looking at the tools that may have it. */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"

static const char border[] = "__";

static const char *find_border(peg_str text)
{
    return text.len ? memmem(text.ptr, text.len, border, 2) : NULL;
}

static bool is_tool_named(const struct gw_toolset *toolset, const struct gw_tool *tool,
                          peg_str name)
{
    char own[WIRE_MCP_NAME];

    return wire_mcp_name(toolset->name, tool->name, own) && peg__str_is(name, own);
}

/* Most toolsets are excluded by the first characters of their names. */
static const struct gw_tool *find_in_toolset(const struct gw_toolset *toolset, peg_str name)
{
    if (!wire_mcp_name_may_be_of(toolset->name, name))
        return NULL;
    for (size_t i = 0; i < toolset->n_tools; i++)
        if (is_tool_named(toolset, &toolset->tools[i], name))
            return &toolset->tools[i];
    return NULL;
}

static const struct gw_tool *find_suffixed(const struct gw_snapshot *snapshot, peg_str name,
                                           const struct gw_toolset **ret_toolset)
{
    for (size_t i = 0; i < snapshot->n; i++) {
        const struct gw_tool *tool = find_in_toolset(snapshot->toolsets[i], name);

        if (tool) {
            *ret_toolset = snapshot->toolsets[i];
            return tool;
        }
    }
    return NULL;
}

const struct gw_tool *gw_mcp_find(const struct gw_snapshot *snapshot, peg_str name,
                                  const struct gw_toolset **ret_toolset)
{
    const char *at = find_border(name);
    const struct gw_toolset *toolset;
    const struct gw_tool *tool;

    if (name.len >= WIRE_MCP_NAME)
        return NULL;
    if (wire_mcp_name_has_digest(name))
        return find_suffixed(snapshot, name, ret_toolset);
    if (!at)
        return NULL;
    toolset = gw_snapshot_find(snapshot, peg__strn(name.ptr, (size_t)(at - name.ptr)));
    tool = toolset ? gw_toolset_tool(toolset,
                                     peg__str_from(name, (size_t)(at - name.ptr) + strlen(border)))
                   : NULL;
    if (!tool || !is_tool_named(toolset, tool, name))
        return NULL;
    *ret_toolset = toolset;
    return tool;
}

const struct gw_tool *gw_mcp_find_in(const struct gw_snapshot *snapshot,
                                     const struct gw_mcp_scope *scope, peg_str name,
                                     const struct gw_toolset **ret_toolset)
{
    if (!snapshot)
        return NULL;
    if (!scope->toolset.len)
        return gw_mcp_find(snapshot, name, ret_toolset);
    *ret_toolset = gw_snapshot_find(snapshot, scope->toolset);
    return *ret_toolset ? gw_toolset_tool(*ret_toolset, name) : NULL;
}
