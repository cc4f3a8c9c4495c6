/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which revision of its toolset a provider serves: the one that its stream has spoken of, by Hello
 * or Offer. When another one is registered, the provider gets only calls that mean the same in
 * both: of a tool whose schemas are unchanged, or whose arguments ask for nothing new and fit the
 * schema that it serves. The others go to who serves the one that is registered.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/calls/call.h"
#include "gateway/calls/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- what it serves ---- */

/* Tools are looked up again: those of the old toolset go with it. */
void gw_provider_set_toolset(struct gw_provider *provider, struct gw_toolset *toolset)
{
    struct gw_toolset *old = provider->toolset;

    provider->toolset = gw_toolset_ref(toolset);
    for (struct gw_assignment *held = provider->queue.first; held; held = held->next)
        held->tool = held->tool ? gw_toolset_tool(toolset, held->tool->name) : NULL;
    for (struct gw_assignment *held = provider->running.first; held; held = held->next)
        held->tool = held->tool ? gw_toolset_tool(toolset, held->tool->name) : NULL;
    gw_toolset_unref(old);
}

void gw_provider_set_serves(struct gw_provider *provider, struct gw_toolset *toolset)
{
    struct gw_toolset *old = provider->serves;

    provider->serves = gw_toolset_ref(toolset);
    gw_toolset_unref(old);
    gw_presence_serve(provider->desk->presence, toolset->name, provider->incarnation,
                      toolset->revision);
}

void gw_provider_begin_offer(struct gw_provider *provider)
{
    provider->is_offering = true;
}

void gw_provider_end_offer(struct gw_provider *provider, struct gw_toolset *toolset)
{
    provider->is_offering = false;
    if (toolset)
        gw_provider_set_serves(provider, toolset);
}

/* ---- what it may be handed ---- */

static bool is_named(const peg_json *names, const peg_json *name)
{
    for (size_t i = 0; names && i < peg_json_len(names); i++)
        if (peg__str_eq(peg_json_str(peg_json_at(names, i)), peg_json_str(name)))
            return true;
    return false;
}

/* Whoever does not know a member ignores it, perhaps: it was made required for a reason. */
static bool asks_for_more(const peg_schema *schema, const peg_schema *old)
{
    const peg_json *now = peg_json_get(peg_schema_source(schema), "required");
    const peg_json *then = peg_json_get(peg_schema_source(old), "required");

    for (size_t i = 0; now && i < peg_json_len(now); i++)
        if (!is_named(then, peg_json_at(now, i)))
            return true;
    return false;
}

/* Large arguments are not read a second time: they go to who serves the toolset as it is. */
static bool takes_arguments(struct gw_calls *calls, const struct gw_tool *tool,
                            const struct gw_tool *old, peg_str payload)
{
    peg_schema *schema = gw_tool_input_schema(tool);
    peg_schema *schema_then = gw_tool_input_schema(old);
    const bool takes = schema && schema_then && payload.len <= PEG_LIMIT_GATEWAY_INLINE_BYTES &&
                       !asks_for_more(schema, schema_then) &&
                       gw_check_now(calls, schema_then, payload, "payload") == PEG_OK;

    peg_schema_unref(schema);
    peg_schema_unref(schema_then);
    return takes;
}

bool gw_provider_serves(struct gw_provider *provider, peg_str call)
{
    const peg_str name = wire_find_bytes(call, PEGBOARD_V1_CALL_TOOL_FIELD);
    const struct gw_tool *tool = gw_toolset_tool(provider->toolset, name);
    const struct gw_tool *old;

    if (provider->serves == provider->toolset || provider->is_offering)
        return true;
    old = gw_toolset_tool(provider->serves, name);
    if (!tool || !old || (tool->output && tool->output != old->output))
        return false;
    return tool->input == old->input ||
           takes_arguments(provider->desk, tool, old,
                           wire_find_bytes(call, PEGBOARD_V1_CALL_PAYLOAD_FIELD));
}
