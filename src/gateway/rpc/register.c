/* SPDX-License-Identifier: Apache-2.0 */

/* Register and Unregister, of every registry. A direct toolset is registered when its providers can
 * subscribe: its stream and their group are there. */

#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/direct/direct.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"
#include "wire/wire.h"

/* The state of an RPC, in its arena. */
struct asked {
    struct gw_change_wait wait; /* the first member */
    struct grpc_call *call;
    struct gw_node *node;
    enum gw_event event;
    const char *name; /* of the toolset; as long as the RPC */
    const char *peer; /* likewise: the connection may be gone when it is logged */
    bool is_operator; /* takes out what is another's */
    struct gw_direct *direct;
    struct gw_direct_opening opening;
    struct gw_toolset *before;  /* that had the name; a reference, or NULL */
    struct gw_toolset *toolset; /* that was registered; likewise */
    gw_register_reply_fn *reply;
};

static struct asked *make_asked(struct grpc_call *call, struct gw_node *node, const char *name)
{
    struct peg__arena *arena = grpc_call_arena(call);
    struct asked *asked = peg__arena_alloc_zero(arena, sizeof(*asked));
    const char *peer = peg__arena_copy(arena, peg__str(grpc_call_peer(call)));
    const char *copy = peg__arena_copy(arena, peg__str(name));

    if (!asked || !peer || !copy) {
        gw_fail_memory(call);
        return NULL;
    }
    *asked = (struct asked){.call = call, .node = node, .name = copy, .peer = peer};
    grpc_call_set_state(call, asked);
    return asked;
}

/* The client may be gone: its change is made all the same, and logged, so that toolsets cannot be
 * unregistered unseen by leaving at once. */
void gw_serve_change_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = grpc_call_state(call);

    (void)node;
    if (!asked)
        return;
    asked->before = gw_toolset_unref(asked->before);
    asked->toolset = gw_toolset_unref(asked->toolset);
    gw_direct_forget_opening(&asked->opening);
    if (!asked->wait.pending)
        return;
    gw_event_log_write(asked->node->log, PEG_LOG_WARN, asked->event,
                       GW_FIELDS(gw_field_text("toolset", asked->name),
                                 gw_field_str("principal", gw_call_principal(call)->name),
                                 gw_field_text("peer", asked->peer),
                                 gw_field_text("outcome", "unknown: the caller did not wait")));
    gw_change_forget(&asked->wait);
}

static void fail_change(struct asked *asked, const peg_error *error)
{
    const enum wire_error name = gw_wire_error(error);

    if (name == WIRE_PERMISSION_DENIED)
        gw_report_refused(asked->node->log, asked->call, name, peg__str(asked->name));
    gw_fail_because(asked->call, error);
}

static struct gw_toolset *find_before(struct calls_loop *calls, const char *name)
{
    const struct gw_snapshot *snapshot = gw_router_of(calls)->snapshot;
    struct gw_toolset *toolset = snapshot ? gw_snapshot_find(snapshot, peg__str(name)) : NULL;

    return toolset ? gw_toolset_ref(toolset) : NULL;
}

/* ---- Register ---- */

static void reply_registered(struct grpc_call *call, const struct gw_toolset *toolset)
{
    struct peg__arena *arena = grpc_call_arena(call);
    Pegboard__V1__RegisterResponse response = PEGBOARD__V1__REGISTER_RESPONSE__INIT;

    response.stream_id = gw_info_stream_id(toolset->name, arena);
    response.registered_at = gw_info_date(toolset->registered_at_ms, arena);
    response.revision = toolset->revision;
    if (response.stream_id && response.registered_at)
        grpc_call_reply_message(call, &response.base);
    else
        gw_fail_memory(call);
}

static void on_opened(struct gw_direct_opening *opening, peg_status status)
{
    struct asked *asked = peg__container_of(opening, struct asked, opening);

    if (status)
        gw_fail(asked->call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("the toolset is registered, and Redis has not made its stream: register "
                         "it again"));
    else
        asked->reply(asked->call, asked->toolset);
}

static void on_registered(struct gw_change_wait *wait, peg_status status,
                          const struct gw_toolset *toolset, const peg_error *error)
{
    struct asked *asked = (struct asked *)wait;

    if (status) {
        fail_change(asked, error);
        return;
    }
    gw_event_log_write(asked->node->log, PEG_LOG_INFO, GW_EVENT_REGISTER,
                       GW_FIELDS(gw_field_str("toolset", toolset->name),
                                 gw_field_str("owner", toolset->owner),
                                 gw_field_number("tools", (int64_t)toolset->n_tools),
                                 gw_field_number("revision", (int64_t)toolset->revision),
                                 gw_field_text("peer", asked->peer)));
    if (toolset->kind != GW_DIRECT || !asked->direct) {
        asked->reply(asked->call, toolset);
        return;
    }
    asked->toolset = gw_toolset_ref((struct gw_toolset *)peg__unconst(toolset));
    asked->opening.fn = on_opened;
    gw_direct_open_toolset(asked->direct, asked->toolset, asked->before, &asked->opening);
}

void gw_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                 struct gw_node *node, gw_register_reply_fn *reply)
{
    struct calls_loop *calls = gw_node_calls(node, grpc_call_loop(call));
    struct gw_direct *direct = gw_router_of(calls)->direct;
    struct asked *asked;

    if (request->kind == PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT && !direct) {
        gw_fail(call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("direct toolsets need streams on Redis, which this gateway does not have: "
                         "start it with REDIS_URL, or attach to it (pegboard.v1.Registry/Attach)"));
        return;
    }
    asked = make_asked(call, node, request->name);
    if (!asked)
        return;
    asked->wait.fn = on_registered;
    asked->event = GW_EVENT_REGISTER;
    asked->direct = direct;
    asked->reply = reply;
    asked->before = find_before(calls, request->name);
    gw_catalog_offer(asked->node->catalog, calls->loop, request, gw_call_principal(call)->name,
                     gw_presence_is_live(gw_router_of(calls)->presence, peg__str(request->name)),
                     &asked->wait);
}

void gw_serve_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                       void *node)
{
    gw_register(call, request, node, reply_registered);
}

/* ---- Unregister ---- */

static void on_unregistered(struct gw_change_wait *wait, peg_status status,
                            const struct gw_toolset *toolset, const peg_error *error)
{
    struct asked *asked = (struct asked *)wait;
    const struct calls_loop *calls = gw_node_calls(asked->node, grpc_call_loop(asked->call));

    (void)toolset;
    if (status) {
        fail_change(asked, error);
        return;
    }
    if (asked->before && asked->before->kind == GW_DIRECT)
        gw_presence_remove_direct(gw_router_of(calls)->presence, asked->before->name);
    gw_event_log_write(asked->node->log, PEG_LOG_INFO, GW_EVENT_UNREGISTER,
                       GW_FIELDS(gw_field_text("toolset", asked->name),
                                 gw_field_str("principal", gw_call_principal(asked->call)->name),
                                 gw_field_text("peer", asked->peer),
                                 gw_field_text("via", asked->is_operator ? "admin" : "registry")));
    grpc_call_reply(asked->call, peg__str("")); /* empty in every generation */
}

static void unregister_as(struct grpc_call *call, const char *name, const char *field,
                          struct gw_node *node, bool is_operator)
{
    struct asked *asked;
    peg_error error;

    if (gw_check_name(name, field, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    asked = make_asked(call, node, name);
    if (!asked)
        return;
    asked->wait.fn = on_unregistered;
    asked->event = GW_EVENT_UNREGISTER;
    asked->is_operator = is_operator;
    asked->before = find_before(gw_node_calls(node, grpc_call_loop(call)), name);
    gw_catalog_unregister(node->catalog, grpc_call_loop(call), peg__str(asked->name),
                          is_operator ? GW_ANY_OWNER : gw_call_principal(call)->name, &asked->wait);
}

void gw_serve_unregister(struct grpc_call *call, const Pegboard__V1__UnregisterRequest *request,
                         void *node)
{
    unregister_as(call, request->name, "name", node, false);
}

void gw_unregister_any(struct grpc_call *call, const char *toolset, struct gw_node *node)
{
    unregister_as(call, toolset, "toolset", node, true);
}
