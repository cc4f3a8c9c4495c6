/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a task is: a call with an identity, whose registers any node reads. So a task has no state
 * of its own, and is gone when they are.
 */

#include "base/clock.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "json/json.h"

/* ---- as clients see it ---- */

static bool has_output_schema(const struct gw_mcp *mcp, const struct calls_subject *subject)
{
    const struct gw_snapshot *snapshot = gw_mcp_snapshot(mcp);
    const struct gw_toolset *toolset =
        snapshot && subject->toolset.len ? gw_snapshot_find(snapshot, subject->toolset) : NULL;
    const struct gw_tool *tool = toolset ? gw_toolset_tool(toolset, subject->tool) : NULL;

    return tool && tool->output_schema.len > 0;
}

/* Registers have no time of their last change: that of the reading takes its place, but none after
 * the deadline, when nothing changes any more. */
static int64_t updated_ms(struct gw_mcp *mcp, const struct calls_description *d)
{
    const int64_t now_ms = bus_now_ms(mcp->calls->bus);
    const int64_t read_ms = now_ms < d->identity.deadline_ms ? now_ms : d->identity.deadline_ms;

    return (d->has_ended || d->question) && read_ms > d->subject.admitted_ms
               ? read_ms
               : d->subject.admitted_ms;
}

/* It was canceled before it started; or its tool stopped, which it says with this code. */
static bool was_canceled(const struct calls_outcome *outcome, peg_str *ret_message)
{
    const peg_str error =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);

    *ret_message = outcome->message;
    if (outcome->kind == CALLS_KIND_CANCELED)
        return true;
    *ret_message = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD);
    return outcome->kind == CALLS_KIND_ERROR && outcome->error == CALLS_OK &&
           peg__str_is(wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "E_CANCELED");
}

static void set_status(struct mcp_task *task, const struct calls_description *d)
{
    peg_str message;

    if (!d->has_ended) {
        task->status = task->asked ? MCP_TASK_ASKS : MCP_TASK_WORKING;
    } else if (was_canceled(&d->outcome, &message)) {
        task->status = MCP_TASK_CANCELED;
        task->message = message;
    } else {
        task->status = MCP_TASK_COMPLETED;
    }
}

void gw_mcp_tell_task(struct gw_mcp *mcp, struct mcp_call *call, const struct calls_description *d,
                      const peg_json *asked)
{
    struct mcp_result end = {0};
    char id[BUS_ID_TEXT];
    struct mcp_task task = {
        .created_ms = d->subject.admitted_ms,
        .updated_ms = updated_ms(mcp, d),
        .asked = asked,
    };

    set_status(&task, d);
    bus_id_print(&d->id, id);
    task.id = peg__str(id);
    task.ttl_ms = calls_keep_until(&d->id, d->identity.deadline_ms, mcp->calls->options.keep_ms) -
                  task.created_ms;
    if (task.status == MCP_TASK_COMPLETED) {
        gw_mcp_put_outcome(&end, &d->outcome, has_output_schema(mcp, &d->subject));
        task.end = &end;
    }
    mcp_call_tell_task(call, &task);
}

/* ---- a call that takes long ---- */

static void arm_watch(struct gw_mcp_task_watch *watch)
{
    struct bus *bus = watch->mcp->calls->bus;

    bus_arm(bus, &watch->timer,
            bus_now_ns(bus) + (int64_t)PEG_LIMIT_GATEWAY_MCP_TASK_MS * PEG_NS_PER_MS);
}

/* One that cannot be found now is looked for later; meanwhile its client waits as any other. */
static void on_found(struct calls_description *description, enum calls_error error)
{
    struct gw_mcp_task_watch *watch =
        peg__container_of(description, struct gw_mcp_task_watch, description);

    if (!error && !description->has_ended) {
        watch->fn(watch, description);
        return;
    }
    calls_description_clear(description);
    if (error)
        arm_watch(watch);
}

static void on_long(struct net_timer *timer)
{
    struct gw_mcp_task_watch *watch = peg__container_of(timer, struct gw_mcp_task_watch, timer);
    const peg_str principal = watch->principal;

    watch->description.fn = on_found;
    calls_describe(watch->mcp->calls, &watch->id, &principal, &watch->description);
}

void gw_mcp_watch_task(struct gw_mcp_task_watch *watch)
{
    watch->timer.fn = on_long;
    arm_watch(watch);
}

void gw_mcp_unwatch_task(struct gw_mcp_task_watch *watch)
{
    if (!watch->mcp)
        return;
    bus_disarm(watch->mcp->calls->bus, &watch->timer);
    calls_description_clear(&watch->description);
}
