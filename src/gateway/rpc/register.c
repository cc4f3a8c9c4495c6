/* SPDX-License-Identifier: Apache-2.0 */

/* Register, Unregister, Pong. */

#include "base/error.h"
#include "base/text/str.h"
#include "gateway/access/principal.h"
#include "gateway/rpc/answer.h"
#include "gateway/rpc/info.h"
#include "gateway/rpc/services.h"
#include "gateway/telemetry/event_log.h"
#include "wire/time.h"

/* What hangs on an RPC; in its arena. */
struct asked {
    struct gw_change_wait wait; /* the first member */
    struct grpc_call *call;
    struct gw_node *node;
    enum gw_event event;
    const char *name; /* of the toolset; as long as the RPC */
    const char *peer; /* likewise: the connection may be gone when it is told */
    bool is_operator; /* takes out what is another's */
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

/* Whoever asked may be gone: what was begun is done all the same, and told, so that nobody takes
 * out toolsets unseen by leaving at once. */
void gw_serve_change_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = grpc_call_state(call);

    (void)node;
    if (!asked || !asked->wait.pending)
        return;
    gw_event_log_write(asked->node->journal, PEG_LOG_WARN, asked->event,
                       GW_FIELDS(gw_field_text("toolset", asked->name),
                                 gw_field_str("principal", gw_call_principal(call)->name),
                                 gw_field_text("peer", asked->peer),
                                 gw_field_text("outcome", "unknown: the caller did not wait")));
    gw_change_forget(&asked->wait);
}

static void fail(struct asked *asked, const peg_error *error)
{
    const enum wire_error name = gw_wire_error(error);

    if (name == WIRE_PERMISSION_DENIED)
        gw_report_refused(asked->node->journal, asked->call, name, peg__str(asked->name));
    gw_fail_because(asked->call, error);
}

/* ---- Register ----------------------------------------------------------------------------------
 */

static void on_registered(struct gw_change_wait *wait, peg_status status,
                          const struct gw_toolset *toolset, const peg_error *error)
{
    struct asked *asked = (struct asked *)wait;
    struct peg__arena *arena = grpc_call_arena(asked->call);
    Pegboard__V1__RegisterResponse response = PEGBOARD__V1__REGISTER_RESPONSE__INIT;

    if (status) {
        fail(asked, error);
        return;
    }
    gw_event_log_write(asked->node->journal, PEG_LOG_INFO, GW_EVENT_REGISTER,
                       GW_FIELDS(gw_field_str("toolset", toolset->name),
                                 gw_field_str("owner", toolset->owner),
                                 gw_field_number("tools", (int64_t)toolset->n_tools),
                                 gw_field_number("revision", (int64_t)toolset->revision),
                                 gw_field_text("peer", asked->peer)));
    response.stream_id = gw_info_stream_id(toolset->name, arena);
    response.registered_at = gw_info_date(toolset->registered_at_ms, arena);
    response.revision = toolset->revision;
    if (response.stream_id && response.registered_at)
        grpc_call_reply_message(asked->call, &response.base);
    else
        gw_fail_memory(asked->call);
}

static bool can_be_direct(const struct gw_node *node)
{
    return strcmp(node->bus_kind, "local") != 0;
}

void gw_serve_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                       void *node)
{
    struct gw_calls *desk = gw_node_calls(node, grpc_call_loop(call));
    struct asked *asked;

    if (request->kind == PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT && !can_be_direct(node)) {
        gw_fail(call, WIRE_SERVICE_UNAVAILABLE,
                peg__str("direct toolsets need Redis, which this version of the gateway does not "
                         "have: register it as an attached one"));
        return;
    }
    asked = make_asked(call, node, request->name);
    if (!asked)
        return;
    asked->wait.fn = on_registered;
    asked->event = GW_EVENT_REGISTER;
    gw_catalog_offer(asked->node->catalog, desk->loop, request, gw_call_principal(call)->name,
                     gw_presence_health(desk->presence, peg__str(request->name)).n_providers > 0,
                     &asked->wait);
}

/* ---- Unregister --------------------------------------------------------------------------------
 */

static void on_unregistered(struct gw_change_wait *wait, peg_status status,
                            const struct gw_toolset *toolset, const peg_error *error)
{
    struct asked *asked = (struct asked *)wait;

    (void)toolset;
    if (status) {
        fail(asked, error);
        return;
    }
    gw_event_log_write(asked->node->journal, PEG_LOG_INFO, GW_EVENT_UNREGISTER,
                       GW_FIELDS(gw_field_text("toolset", asked->name),
                                 gw_field_str("principal", gw_call_principal(asked->call)->name),
                                 gw_field_text("peer", asked->peer),
                                 gw_field_text("via", asked->is_operator ? "admin" : "registry")));
    grpc_call_reply(asked->call, peg__str("")); /* empty in every generation */
}

static void unregister(struct grpc_call *call, const char *name, struct gw_node *node,
                       bool is_operator)
{
    struct asked *asked = make_asked(call, node, name);

    if (!asked)
        return;
    asked->wait.fn = on_unregistered;
    asked->event = GW_EVENT_UNREGISTER;
    asked->is_operator = is_operator;
    gw_catalog_unregister(node->catalog, grpc_call_loop(call), peg__str(asked->name),
                          is_operator ? GW_ANY_OWNER : gw_call_principal(call)->name, &asked->wait);
}

void gw_serve_unregister(struct grpc_call *call, const Pegboard__V1__UnregisterRequest *request,
                         void *node)
{
    peg_error error;

    if (gw_check_name(request->name, "name", &error))
        gw_fail_because(call, &error);
    else
        unregister(call, request->name, node, false);
}

void gw_unregister_any(struct grpc_call *call, const char *toolset, struct gw_node *node)
{
    peg_error error;

    if (gw_check_name(toolset, "toolset", &error))
        gw_fail_because(call, &error);
    else
        unregister(call, toolset, node, true);
}

/* ---- Pong --------------------------------------------------------------------------------------
 */

/* The provider whose ping it answers: a ping's id is "<incarnation>/<number>". */
static const struct gw_provider_entry *find_provider(struct gw_calls *desk,
                                                     const Pegboard__V1__PongRequest *request)
{
    const peg_str incarnation = {request->ping_id, strcspn(request->ping_id, "/")};
    size_t n;
    struct gw_provider_entry *entries =
        gw_presence_providers(desk->presence, peg__str(request->toolset), &n);

    for (size_t i = 0; i < n; i++) {
        if (peg__str_eq(peg__str(entries[i].incarnation), incarnation))
            return &entries[i];
    }
    return NULL;
}

static void pass_on(struct gw_calls *desk, const struct gw_provider_entry *entry)
{
    struct bus_message letter = {.kind = BUS_PONG, .from = desk->bus->self};
    const struct bus_address to = entry->address;

    memcpy(letter.incarnation, entry->incarnation, sizeof(letter.incarnation));
    bus_send(desk->bus, to, &letter, NULL);
}

/* Providers of old end when it fails: whatever it says, it is answered. */
void gw_serve_pong(struct grpc_call *call, const Pegboard__V1__PongRequest *request, void *node)
{
    struct gw_calls *desk = gw_node_calls(node, grpc_call_loop(call));
    const struct gw_toolset *toolset =
        desk->snapshot ? gw_snapshot_find(desk->snapshot, peg__str(request->toolset)) : NULL;
    const struct gw_provider_entry *entry = NULL;

    if (toolset && peg__str_eq(toolset->owner, gw_call_principal(call)->name))
        entry = find_provider(desk, request);
    if (entry)
        pass_on(desk, entry);
    grpc_call_reply(call, peg__str(""));
}
