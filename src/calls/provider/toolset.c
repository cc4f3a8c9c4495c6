/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The toolset of a provider, and what a new catalog or a new token file means to it.
 *
 * A provider serves the revision that its stream has spoken of, by Hello or Offer. When another one
 * is registered, it gets only calls that mean the same in both: of a tool whose schemas are
 * unchanged, or whose arguments ask for nothing new and fit the schema that it serves. The others
 * go to who serves the one that is registered. One whose toolset has other schemas is not healthy
 * until it has answered a ping.
 *
 * A provider whose toolset is gone, or is another's now, or whose token was taken out, is evicted:
 * it is chosen no more, what waits for it goes elsewhere, and its stream ends as soon as it has
 * finished what it runs.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/check.h"
#include "calls/provider/provider_side.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

/* ---- what it serves -------------------------------------------------------------------------- */

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

/* ---- what it may be handed ------------------------------------------------------------------- */

static bool is_named(const peg_json *names, const peg_json *name)
{
    for (size_t i = 0; names && i < peg_json_len(names); i++)
        if (peg__str_eq(peg_json_str(peg_json_at(names, i)), peg_json_str(name)))
            return true;
    return false;
}

/* A tool that does not know a member may ignore it: it was made required for a reason. */
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
    struct calls_loop *calls = provider->calls;
    const struct calls_environment *env = calls->env;
    const struct calls_tool *tool;
    const struct calls_tool *old;
    peg_str name;

    if (provider->serves == provider->toolset || provider->is_offering)
        return true;
    name = wire_find_bytes(call, PEGBOARD_V1_CALL_TOOL_FIELD);
    tool = env->find_tool(calls->user, provider->toolset, name);
    old = env->find_tool(calls->user, provider->serves, name);
    if (!tool || !old || !env->is_same_schema(calls->user, tool, old, CALLS_OUTPUT))
        return false;
    return env->is_same_schema(calls->user, tool, old, CALLS_INPUT) ||
           takes_arguments(calls, tool, old, wire_find_bytes(call, PEGBOARD_V1_CALL_PAYLOAD_FIELD));
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* No caller waits for a result after its deadline. What a provider has reported has none that is
 * known here: it gets the time of any other call. 0: it has nothing. */
static int64_t last_deadline_ms(const struct calls_provider *provider)
{
    const int64_t of_reported_ms = provider->evicted_ms + provider->calls->options.call_timeout_ms;
    int64_t last_ms = 0;

    for (const struct calls_assignment *each = provider->running.first; each; each = each->next) {
        const int64_t ms = each->machine.deadline_ms ? each->machine.deadline_ms : of_reported_ms;

        if (ms > last_ms)
            last_ms = ms;
    }
    return last_ms;
}

static void end_evicted_stream(struct net_timer *timer)
{
    struct calls_provider *provider =
        peg__container_of(timer, struct calls_provider, eviction_timer);
    const struct calls_loop *calls = provider->calls;
    const int64_t left_ms = last_deadline_ms(provider) - bus_now_ms(calls->bus);

    if (left_ms > 0)
        calls_arm(calls, timer, left_ms);
    else
        provider->events->evicted(provider->user, provider->eviction);
}

static void evict(struct calls_provider *provider, enum calls_error why)
{
    struct calls_loop *calls = provider->calls;
    const bool is_first = !provider->eviction;

    provider->eviction = why;
    if (!is_first)
        return;
    provider->evicted_ms = bus_now_ms(calls->bus);
    provider->eviction_timer.fn = end_evicted_stream;
    calls->env->remove_presence(calls->user, provider->toolset->name, provider->incarnation);
    calls_provider_refuse_queue(provider, BUS_GONE);
    calls_arm(calls, &provider->eviction_timer, 0);
}

/* ---- the catalog ----------------------------------------------------------------------------- */

/* What it said of itself it said of other schemas, unless it is its own Offer that came true. */
static void change(struct calls_provider *provider, struct calls_toolset *toolset)
{
    const bool has_same =
        provider->calls->env->has_same_schemas(provider->calls->user, toolset, provider->toolset);
    const bool serves_it = has_same && provider->serves == provider->toolset;

    calls_provider_set_toolset(provider, toolset);
    if (serves_it)
        calls_provider_set_serves(provider, toolset);
    if (has_same || calls_provider_is_away(provider) || provider->is_offering)
        return;
    provider->calls->env->await_pong(provider->calls->user, toolset->name, provider->incarnation);
    provider->events->ping(provider->user);
}

/* One that is away is asked who it is when it comes back. */
static void check_provider(struct calls_provider *provider, struct calls_toolset *toolset)
{
    const bool is_its = toolset && peg__str_eq(toolset->owner, provider->toolset->owner);

    if (is_its && !provider->eviction && toolset != provider->toolset)
        change(provider, toolset);
    else if (!is_its && !calls_provider_is_away(provider))
        evict(provider, toolset ? CALLS_PERMISSION_DENIED : CALLS_NOT_FOUND);
}

void calls_on_catalog(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next)
        check_provider(provider, calls->env->find_toolset(calls->user, provider->toolset->name));
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The principal that attached is the owner. */
void calls_evict_unknown(struct calls_loop *calls)
{
    for (struct calls_provider *provider = calls->providers; provider; provider = provider->next) {
        if (!calls_provider_is_away(provider) &&
            !calls->env->knows_principal(calls->user, provider->toolset->owner))
            evict(provider, CALLS_UNAUTHENTICATED);
    }
}
