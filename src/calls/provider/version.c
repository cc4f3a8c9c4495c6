/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which revision of its toolset a provider serves: the one that its stream has spoken of, by Hello
 * or Offer. When another one is registered, the provider gets only calls that mean the same in
 * both: of a tool whose schemas are unchanged, or whose arguments ask for nothing new and fit the
 * schema that it serves. The others go to who serves the one that is registered.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/provider/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- what it serves ---- */

/* Tools are looked up again: those of the old toolset go with it. */
static void find_tools(struct calls_provider *provider, struct calls_assignment_list *list)
{
    struct calls_loop *calls = provider->calls;

    for (struct calls_assignment *each = list->first; each; each = each->next)
        if (each->tool)
            each->tool = calls->env->find_tool(calls->user, provider->toolset, each->tool->name);
}

void calls_provider_set_toolset(struct calls_provider *provider, struct calls_toolset *toolset)
{
    struct calls_loop *calls = provider->calls;
    struct calls_toolset *old = provider->toolset;

    provider->toolset = calls->env->ref_toolset(calls->user, toolset);
    find_tools(provider, &provider->queue);
    find_tools(provider, &provider->running);
    calls->env->unref_toolset(calls->user, old);
}

void calls_provider_set_serves(struct calls_provider *provider, struct calls_toolset *toolset)
{
    struct calls_loop *calls = provider->calls;
    struct calls_toolset *old = provider->serves;

    provider->serves = calls->env->ref_toolset(calls->user, toolset);
    calls->env->unref_toolset(calls->user, old);
    calls->env->note_serves(calls->user, toolset->name, provider->incarnation, toolset->revision);
}

void calls_provider_begin_offer(struct calls_provider *provider)
{
    provider->is_offering = true;
}

void calls_provider_end_offer(struct calls_provider *provider, struct calls_toolset *toolset)
{
    provider->is_offering = false;
    if (toolset)
        calls_provider_set_serves(provider, toolset);
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
static bool takes_arguments(struct calls_loop *calls, const struct calls_tool *tool,
                            const struct calls_tool *old, peg_str payload)
{
    peg_schema *schema = NULL;
    peg_schema *schema_then = NULL;
    const bool takes = calls->env->get_schema(calls->user, tool, CALLS_INPUT, &schema) &&
                       calls->env->get_schema(calls->user, old, CALLS_INPUT, &schema_then) &&
                       payload.len <= PEG_LIMIT_GATEWAY_INLINE_BYTES &&
                       !asks_for_more(schema, schema_then) &&
                       calls_check_now(calls, schema_then, payload, "payload") == PEG_OK;

    peg_schema_unref(schema);
    peg_schema_unref(schema_then);
    return takes;
}

bool calls_provider_serves(struct calls_provider *provider, peg_str call)
{
    const peg_str name = wire_find_bytes(call, PEGBOARD_V1_CALL_TOOL_FIELD);
    struct calls_loop *calls = provider->calls;
    const struct calls_environment *env = calls->env;
    const struct calls_tool *tool;
    const struct calls_tool *old;

    if (provider->serves == provider->toolset || provider->is_offering)
        return true;
    tool = env->find_tool(calls->user, provider->toolset, name);
    old = env->find_tool(calls->user, provider->serves, name);
    if (!tool || !old || !env->is_same_schema(calls->user, tool, old, CALLS_OUTPUT))
        return false;
    return env->is_same_schema(calls->user, tool, old, CALLS_INPUT) ||
           takes_arguments(calls, tool, old, wire_find_bytes(call, PEGBOARD_V1_CALL_PAYLOAD_FIELD));
}
