/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/routing/routing.h"

static const struct gw_router *router_of(const void *user)
{
    return (const struct gw_router *)user;
}

/* ---- toolsets ---------------------------------------------------------------------------------
 */

static struct gw_toolset *own_toolset(const struct calls_toolset *toolset)
{
    return (struct gw_toolset *)peg__unconst(toolset);
}

static const struct gw_tool *own_tool(const struct calls_tool *tool)
{
    return (const struct gw_tool *)tool;
}

static struct calls_toolset *find_toolset(void *user, peg_str name)
{
    const struct gw_snapshot *snapshot = router_of(user)->snapshot;
    struct gw_toolset *toolset = snapshot ? gw_snapshot_find(snapshot, name) : NULL;

    return toolset ? &toolset->of_calls : NULL;
}

static const struct calls_tool *find_tool(void *user, const struct calls_toolset *toolset,
                                          peg_str name)
{
    const struct gw_tool *tool = gw_toolset_tool(own_toolset(toolset), name);

    (void)user;
    return tool ? &tool->of_calls : NULL;
}

static struct calls_toolset *ref_toolset(void *user, struct calls_toolset *toolset)
{
    (void)user;
    gw_toolset_ref(own_toolset(toolset));
    return toolset;
}

static struct calls_toolset *unref_toolset(void *user, struct calls_toolset *toolset)
{
    (void)user;
    gw_toolset_unref(own_toolset(toolset));
    return NULL;
}

static bool has_same_schemas(void *user, const struct calls_toolset *toolset,
                             const struct calls_toolset *other)
{
    (void)user;
    return gw_toolset_has_schemas_of(own_toolset(toolset), own_toolset(other));
}

static bool get_schema(void *user, const struct calls_tool *tool, enum calls_schema which,
                       peg_schema **ret_schema)
{
    const struct gw_tool *own = own_tool(tool);

    (void)user;
    if (which == CALLS_INPUT) {
        *ret_schema = gw_tool_input_schema(own);
        return *ret_schema != NULL;
    }
    *ret_schema = gw_tool_output_schema(own);
    return *ret_schema || !own->output_schema.len;
}

/* Schemas are shared by their text: equal ones are the same. */
static bool is_same_schema(void *user, const struct calls_tool *tool,
                           const struct calls_tool *other, enum calls_schema which)
{
    const struct gw_tool *own = own_tool(tool);
    const struct gw_tool *own_other = own_tool(other);

    (void)user;
    if (which == CALLS_INPUT)
        return own->input == own_other->input;
    return !own->output || own->output == own_other->output;
}

/* ---- providers --------------------------------------------------------------------------------
 */

static bool is_healthy(void *user, peg_str toolset)
{
    return gw_presence_is_healthy(router_of(user)->presence, toolset);
}

static void explain_health(void *user, peg_str toolset, struct peg__buf *ret_text)
{
    gw_presence_explain(router_of(user)->presence, toolset, ret_text);
}

static bool is_served_here(void *user, peg_str toolset)
{
    const struct gw_router *router = router_of(user);
    size_t n;
    const struct gw_provider_entry *providers =
        gw_presence_providers(router->presence, toolset, &n);

    for (size_t i = 0; i < n; i++)
        if (providers[i].address.node != router->bus->self.node)
            return false;
    return true;
}

static bool is_attached(void *user, peg_str toolset, peg_str incarnation)
{
    size_t n;
    const struct gw_provider_entry *providers =
        gw_presence_providers(router_of(user)->presence, toolset, &n);

    for (size_t i = 0; i < n; i++)
        if (peg__str_eq(peg__str(providers[i].incarnation), incarnation))
            return true;
    return false;
}

static peg_status put_presence(void *user, const struct calls_presence *presence, peg_error *reterr)
{
    const struct gw_router *router = router_of(user);
    struct gw_provider_entry entry = {
        .address = router->bus->self,
        .last_pong_ms = bus_now_ms(router->bus),
        .is_draining = presence->is_draining,
        .credits = presence->credits,
        .serves = presence->serves,
    };

    memcpy(entry.incarnation, presence->incarnation, strlen(presence->incarnation) + 1);
    return gw_presence_put(router->presence, presence->toolset->name, &entry, reterr);
}

static void remove_presence(void *user, peg_str toolset, const char *incarnation)
{
    gw_presence_remove(router_of(user)->presence, toolset, incarnation);
}

static void note_pong(void *user, peg_str toolset, const char *incarnation)
{
    gw_presence_pong(router_of(user)->presence, toolset, incarnation);
}

static void await_pong(void *user, peg_str toolset, const char *incarnation)
{
    gw_presence_await(router_of(user)->presence, toolset, incarnation);
}

static void note_serves(void *user, peg_str toolset, const char *incarnation, uint64_t revision)
{
    gw_presence_serve(router_of(user)->presence, toolset, incarnation, revision);
}

static bool knows_principal(void *user, peg_str principal)
{
    return gw_auth_knows(router_of(user)->auth, principal);
}

/* ---- counters ---------------------------------------------------------------------------------
 */

static struct gw_toolset_meter *own_meter(struct calls_meter *meter)
{
    return (struct gw_toolset_meter *)(void *)meter;
}

static struct calls_meter *get_meter(void *user, peg_str toolset)
{
    const struct gw_router *router = router_of(user);

    return (struct calls_meter *)(void *)gw_metrics_meter(router->metrics, router->number, toolset);
}

static void count_admitted(struct calls_meter *meter)
{
    gw_meter_admitted(own_meter(meter));
}

static void count_refused(struct calls_meter *meter)
{
    gw_meter_refused(own_meter(meter));
}

static void count_ended(struct calls_meter *meter, enum calls_outcome_kind kind, int64_t ns)
{
    gw_meter_ended(own_meter(meter), kind, ns);
}

static void count_queued(struct calls_meter *meter, int by)
{
    gw_meter_queued(own_meter(meter), by);
}

static void count_late_result(struct calls_meter *meter)
{
    gw_meter_late_result(own_meter(meter));
}

/* ---- its life ---------------------------------------------------------------------------------
 */

static const struct calls_environment ENVIRONMENT = {
    .find_toolset = find_toolset,
    .find_tool = find_tool,
    .ref_toolset = ref_toolset,
    .unref_toolset = unref_toolset,
    .has_same_schemas = has_same_schemas,
    .get_schema = get_schema,
    .is_same_schema = is_same_schema,
    .is_healthy = is_healthy,
    .explain_health = explain_health,
    .is_served_here = is_served_here,
    .is_attached = is_attached,
    .choose = gw_choose_provider,
    .locate = gw_locate_provider,
    .release = gw_release_provider,
    .note_outdated = gw_note_outdated,
    .put_presence = put_presence,
    .remove_presence = remove_presence,
    .note_pong = note_pong,
    .await_pong = await_pong,
    .note_serves = note_serves,
    .knows_principal = knows_principal,
    .get_meter = get_meter,
    .count_admitted = count_admitted,
    .count_refused = count_refused,
    .count_ended = count_ended,
    .count_queued = count_queued,
    .count_late_result = count_late_result,
};

peg_status gw_router_init(struct gw_router *router, const struct gw_router_options *options,
                          peg_error *reterr)
{
    peg_status status;

    *router = (struct gw_router){
        .bus = options->bus,
        .number = options->number,
        .presence = options->presence,
        .metrics = options->metrics,
        .auth = options->auth,
        .tracer = options->tracer,
        .dice = options->number + 1,
    };
    status = calls_loop_new(options->bus, options->loop, options->calls, &ENVIRONMENT, router,
                            &router->calls, reterr);
    if (!status)
        gw_presence_on_moved(router->presence, calls_on_moved, router->calls);
    return status;
}

void gw_router_clear(struct gw_router *router)
{
    if (!router->calls)
        return;
    gw_presence_on_moved(router->presence, NULL, NULL);
    router->calls = calls_loop_free(router->calls);
    router->snapshot = gw_snapshot_unref(router->snapshot);
}

void gw_router_on_snapshot(struct gw_router *router, struct gw_snapshot *snapshot)
{
    struct gw_snapshot *old = router->snapshot;

    router->snapshot = gw_snapshot_ref(snapshot);
    gw_snapshot_unref(old);
    calls_on_catalog(router->calls);
}

enum wire_error gw_error_of_call(enum calls_error error)
{
    static const enum wire_error errors[CALLS_N_ERRORS] = {
        [CALLS_OK] = WIRE_OK,
        [CALLS_NOT_FOUND] = WIRE_NOT_FOUND,
        [CALLS_VALIDATION] = WIRE_VALIDATION,
        [CALLS_UNDECIDED] = WIRE_UNDECIDED,
        [CALLS_LIMIT] = WIRE_LIMIT,
        [CALLS_OVERLOADED] = WIRE_OVERLOADED,
        [CALLS_SERVICE_UNAVAILABLE] = WIRE_SERVICE_UNAVAILABLE,
        [CALLS_TIMEOUT] = WIRE_TIMEOUT,
        [CALLS_CANCELED] = WIRE_CANCELED,
        [CALLS_OUTCOME_UNKNOWN] = WIRE_OUTCOME_UNKNOWN,
        [CALLS_PERMISSION_DENIED] = WIRE_PERMISSION_DENIED,
        [CALLS_UNAUTHENTICATED] = WIRE_UNAUTHENTICATED,
        [CALLS_FAULT] = WIRE_FAULT,
        [CALLS_CONFLICT] = WIRE_CONFLICT,
    };

    return error < CALLS_N_ERRORS ? errors[error] : WIRE_FAULT;
}
