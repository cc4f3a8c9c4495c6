/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls of agents that do not wait for the answer of an RPC: they get the id, and read the
 * result from the stream of that id.
 *
 *   direct toolset    start.c makes the streams, the provider adds the result; run.c adds it again
 *   attached toolset  XADD init, EXPIRE; the call; its end is added here, and again after 100 ms
 *
 * Again, because agents of the reference lose a result that they read before they listen for it,
 * once in some hundred calls, and get it back only after 20 s. Who has it has removed the stream,
 * so that NOMKSTREAM adds nothing. While it adds something, it is done a few times more: an agent
 * that comes late may read two at once, and lose both.
 */

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/content.h"
#include "wire/pack.h"
#include "wire/wire.h"
#include "json/json.h"

/* Owned by the loop; what may be pending: the call, `made`, `added`, `again`. */
struct direct_agent {
    struct calls_caller caller; /* first */
    struct gw_direct *direct;
    struct direct_agent *next;
    struct direct_agent *prev;
    struct gw_agent_asker *asker; /* NULL: it was notified, or is gone */
    bool is_attached;             /* the toolset's kind */
    bool is_over;                 /* the call */
    unsigned n_repeats;           /* of the result */
    struct bus_stream_wait made;
    struct bus_stream_wait added;
    struct net_timer again;
    struct peg__blob *result; /* as it was added */
};

static void free_agent(struct direct_agent *agent)
{
    struct gw_direct *direct = agent->direct;

    bus_forget_wait(direct->bus, &agent->made.wait);
    bus_forget_wait(direct->bus, &agent->added.wait);
    bus_disarm(direct->bus, &agent->again);
    PEG_LIST_REMOVE(direct->agents, agent, next, prev);
    if (agent->asker)
        agent->asker->pending = NULL;
    peg__blob_unref(agent->result);
    peg__free(agent);
}

static void tell_asker(struct direct_agent *agent, const struct calls_outcome *refusal)
{
    struct gw_agent_asker *asker = agent->asker;

    agent->asker = NULL;
    if (!asker)
        return;
    asker->pending = NULL;
    asker->fn(asker, &agent->caller.id, refusal);
}

/* ---- the end of a call as a result ----------------------------------------------------------- */

static void put_server_data_list(peg_str response, struct peg__buf *out)
{
    struct peg__out list = {.buf = out};
    peg_str rest = response;
    peg_str item;

    if (!wire_next_bytes(&rest, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item))
        return;
    peg__out_array(&list);
    do {
        peg__out_object(&list);
        peg__out_member(&list, "kind", wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_KIND_FIELD));
        peg__out_member(&list, "audience",
                        wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_AUDIENCE_FIELD));
        peg__out_key(&list, "data");
        peg__out_raw(&list, wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_DATA_FIELD));
        peg__out_end_object(&list);
    } while (wire_next_bytes(&rest, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item));
    peg__out_end_array(&list);
}

/* An end that the gateway made is an error with its name, as a tool's own has its code. */
static struct peg__blob *write_end_as_result(struct direct_agent *agent,
                                             const struct calls_outcome *outcome)
{
    struct gw_direct *direct = agent->direct;
    const peg_str error =
        wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);
    char id[BUS_ID_TEXT];
    struct pulse_entry entry = {.event = PULSE_RESULT};
    struct pulse_result *result = &entry.result;

    bus_id_print(&agent->caller.id, id);
    peg__buf_clear(&direct->text);
    peg__buf_clear(&direct->packed);
    *result = (struct pulse_result){.tool_use_id = peg__str(id)};
    if (outcome->error) {
        result->is_failure = true;
        result->code = peg__str(wire_error_name(gw_error_of_call(outcome->error)));
        result->message = outcome->message;
    } else {
        result->is_failure = error.ptr != NULL;
        result->code = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD);
        result->message = wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD);
        result->json =
            wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD);
        put_server_data_list(outcome->response, &direct->packed);
        result->server_data = peg__buf_view(&direct->packed);
    }
    pulse_entry_write(&entry, &direct->text);
    return direct->text.status || direct->packed.status
               ? NULL
               : peg__blob_copy(peg__buf_view(&direct->text));
}

static void on_added(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_agent *agent = peg__container_of(wait, struct direct_agent, added);
    struct bus *bus = agent->direct->bus;
    const int64_t pause_ms = (int64_t)DIRECT_REPEAT_MS << agent->n_repeats;

    if (reply->status == PEG_ENOTFOUND || agent->n_repeats++ == DIRECT_REPEATS)
        free_agent(agent);
    else
        bus_arm(bus, &agent->again, bus_now_ns(bus) + pause_ms * PEG_NS_PER_MS);
}

static void add_result(struct direct_agent *agent)
{
    char id[BUS_ID_TEXT];
    char key[PULSE_NAME];
    struct bus_stream_add add = {.name = PEG_LIT("result"),
                                 .payload = peg__blob_str(agent->result)};

    bus_id_print(&agent->caller.id, id);
    add.key = pulse_result_key(peg__str(id), key);
    agent->added.fn = on_added;
    bus_stream_add(agent->direct->bus, &add, &agent->added);
}

static void on_add_again(struct net_timer *timer)
{
    add_result(peg__container_of(timer, struct direct_agent, again));
}

/* Without memory the agent waits for its own deadline, as if the result had been lost. */
static void publish_end(struct direct_agent *agent, const struct calls_outcome *outcome)
{
    struct peg__buf plain = PEG__BUF((size_t)2 * PEG_LIMIT_GATEWAY_RESULT_BYTES);
    struct calls_outcome shown = *outcome;

    /* goa-ai knows JSON alone. */
    if (wire_content_is_there(outcome->response) &&
        !wire_content_flatten(outcome->response, &plain))
        shown.response = peg__buf_view(&plain);
    agent->result = plain.status ? NULL : write_end_as_result(agent, &shown);
    peg__buf_free(&plain);
    agent->again.fn = on_add_again;
    if (agent->result)
        add_result(agent);
    else
        free_agent(agent);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void on_stream_made(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    static const struct calls_outcome unmade = {
        .kind = CALLS_KIND_REFUSED,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("Redis has not made the stream for the result; the call may run: look "
                           "before you repeat it"),
        .was_started = true,
    };
    struct direct_agent *agent = peg__container_of(wait, struct direct_agent, made);

    tell_asker(agent, reply->status ? &unmade : NULL);
}

/* Commands of a loop arrive in order: the result is added behind this. */
static void make_result_stream(struct direct_agent *agent)
{
    char text[BUS_ID_TEXT];
    char key[PULSE_NAME];
    struct bus_stream_call call = {.result_s = PEG_LIMIT_DIRECT_RESULT_S};

    bus_id_print(&agent->caller.id, text);
    call.result_key = pulse_result_key(peg__str(text), key);
    agent->made.fn = on_stream_made;
    bus_stream_begin_call(agent->direct->bus, &call, &agent->made);
}

static void on_agent_admitted(struct calls_caller *caller, const struct bus_id *id,
                              int64_t deadline_ms, bool is_follower)
{
    struct direct_agent *agent = (struct direct_agent *)caller;

    (void)deadline_ms;
    (void)is_follower;
    caller->id = *id;
    if (agent->is_attached) {
        make_result_stream(agent);
        return;
    }
    gw_caller_leave(caller, CALLS_DETACHES);
    tell_asker(agent, NULL);
    free_agent(agent);
}

/* One that was never admitted is refused by its RPC. */
static void on_agent_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    struct direct_agent *agent = (struct direct_agent *)caller;

    agent->is_over = true;
    if (outcome->kind == CALLS_KIND_REFUSED && agent->asker && !agent->made.wait.pending) {
        tell_asker(agent, outcome);
        free_agent(agent);
    } else {
        publish_end(agent, outcome);
    }
}

static const struct calls_caller_events agent_events = {.on_admitted = on_agent_admitted,
                                                        .on_end = on_agent_end};

/* ---- the public face ------------------------------------------------------------------------- */

void gw_direct_ask_for_agent(struct gw_direct *direct, const struct calls_request *request,
                             struct gw_agent_asker *asker)
{
    static const struct calls_outcome no_memory = {
        .kind = CALLS_KIND_REFUSED,
        .error = CALLS_OVERLOADED,
        .message = PEG_LIT("the gateway is out of memory: try again later"),
        .retry_after_ms = 1000,
    };
    const struct gw_snapshot *snapshot = direct->router->snapshot;
    struct gw_toolset *toolset = snapshot ? gw_snapshot_find(snapshot, request->toolset) : NULL;
    const struct gw_tool *tool = toolset ? gw_toolset_tool(toolset, request->tool) : NULL;
    struct calls_request timed = *request;
    struct direct_agent *agent = (struct direct_agent *)peg__alloc_zero(1, sizeof(*agent));

    if (!agent) {
        asker->fn(asker, NULL, &no_memory);
        return;
    }
    /* The agent waits for its own time, and the result for as long as the stream lives. */
    if (!tool || !tool->timeout_ms)
        timed.timeout_ms = (int64_t)PEG_LIMIT_DIRECT_RESULT_S * 1000;
    timed.deadline_ns = NET_NEVER;
    agent->caller.events = &agent_events;
    agent->direct = direct;
    agent->asker = asker;
    asker->pending = agent;
    PEG_LIST_PUSH(direct->agents, agent, next, prev);
    agent->is_attached = !toolset || toolset->kind != GW_DIRECT;
    if (agent->is_attached) {
        gw_call_start(direct->calls, &timed, &agent->caller);
    } else {
        timed.run_id = timed.tool_call_id = (peg_str){"", 0}; /* a stream has one reader */
        direct_start_for_agent(direct, toolset, &timed, &agent->caller);
    }
}

/* The call goes on. */
void gw_direct_forget_agent(struct gw_agent_asker *asker)
{
    struct direct_agent *agent = (struct direct_agent *)asker->pending;

    if (agent)
        agent->asker = NULL;
    asker->pending = NULL;
}

void direct_drop_agents(struct gw_direct *direct)
{
    while (direct->agents) {
        struct direct_agent *agent = direct->agents;

        if (!agent->is_over)
            gw_caller_leave(&agent->caller, CALLS_LEAVES);
        free_agent(agent);
    }
}
