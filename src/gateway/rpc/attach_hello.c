/* SPDX-License-Identifier: Apache-2.0 */

/* The beginning of an Attach stream: who provides what, and the registration that may come with it.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/rpc/attached.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/event_log.h"
#include "wire/wire.h"

/* ---- what it says ---------------------------------------------------------------------------- */

static peg_status copy_hello_text(struct gw_attached *attached, const char *text, peg_str *ret_copy)
{
    const peg_str str = peg__str(text);
    const char *copy = peg__arena_copy(grpc_call_arena(attached->call), str);

    if (!copy)
        return PEG_ENOMEM;
    *ret_copy = (peg_str){copy, str.len};
    return PEG_OK;
}

/* `before` is the call that stands before it in the list, or NULL: mostly of the same tool. */
static peg_status copy_running_call(struct gw_attached *attached,
                                    const Pegboard__V1__RunningCall *call,
                                    const struct calls_running *before,
                                    struct calls_running *ret_running, peg_error *reterr)
{
    const peg_str route = {(const char *)call->route.data, call->route.len};

    ret_running->attempt = call->attempt;
    if (!bus_id_parse(peg__str(call->call_id), &ret_running->id) || !call->attempt)
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH",
                         "a running call has a call_id or attempt that no gateway gave out: list "
                         "what stood in its Call");
    if (!bus_address_parse(route, &ret_running->route))
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH",
                         "a running call has no route: list the one of its Call");
    if (before && peg__str_is(before->tool, call->tool))
        ret_running->tool = before->tool;
    else if (copy_hello_text(attached, call->tool, &ret_running->tool))
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

static peg_status copy_running(struct gw_attached *attached, const Pegboard__V1__Hello *hello,
                               peg_error *reterr)
{
    struct calls_running *running;
    peg_status status = PEG_OK;

    if (hello->n_running > PEG_LIMIT_GATEWAY_CREDITS)
        return peg__fail(reterr, PEG_ELIMIT, "E_ATTACH",
                         "%zu running calls: a provider has at most %d", hello->n_running,
                         PEG_LIMIT_GATEWAY_CREDITS);
    running = (struct calls_running *)peg__arena_alloc(grpc_call_arena(attached->call),
                                                       (hello->n_running + 1) * sizeof(*running));
    if (!running)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < hello->n_running && !status; i++)
        status = copy_running_call(attached, hello->running[i], i ? &running[i - 1] : NULL,
                                   &running[i], reterr);
    attached->hello.running = running;
    attached->hello.n_running = hello->n_running;
    return status;
}

/* What the incarnation begins with, for people who look at leases; then what makes it one. */
enum { SHOWN = 31, HASH_BYTES = 16, NAME_TEXT = SHOWN + 1 + 2 * HASH_BYTES + 1 };

static peg_status hash_toolset_name(const struct gw_attached *attached,
                                    unsigned char ret_hash[PEG_SHA256_BYTES])
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GATEWAY_FRAME_BYTES);
    bool is_hashed;

    peg__buf_str(&text, attached->toolset_name);
    peg__buf_add(&text, "", 1);
    peg__buf_str(&text, attached->incarnation);
    peg__buf_add(&text, "", 1);
    peg__buf_str(&text, gw_call_principal(attached->call)->name);
    is_hashed = !text.status && peg__sha256(peg__buf_view(&text), ret_hash);
    peg__buf_free(&text);
    return is_hashed ? PEG_OK : PEG_ENOMEM;
}

/* A process may provide several toolsets, and strangers may say the incarnation of another: leases,
 * claim tokens and messages have a name that is of one toolset and its owner, too. */
static peg_status name_provider(struct gw_attached *attached)
{
    unsigned char hash[PEG_SHA256_BYTES];
    char hex[2 * HASH_BYTES + 1];
    char name[NAME_TEXT];

    if (hash_toolset_name(attached, hash))
        return PEG_ENOMEM;
    peg__hex(hash, HASH_BYTES, hex);
    snprintf(name, sizeof(name), "%.*s-%s", SHOWN, attached->incarnation.ptr, hex);
    return copy_hello_text(attached, name, &attached->hello.incarnation);
}

/* Before anything is registered: a stream that is refused leaves nothing behind. */
static peg_status check_registration(const struct gw_attached *attached,
                                     const Pegboard__V1__RegisterRequest *registration,
                                     peg_error *reterr)
{
    if (registration && registration->name[0] &&
        !peg__str_eq(peg__str(registration->name), attached->toolset_name))
        return peg__fail(
            reterr, PEG_EINVAL, "E_ATTACH",
            "the registration names another toolset than Hello, which is of '%.64s': name "
            "the same in both, or leave out the name in the registration",
            attached->toolset_name.ptr);
    if (registration && registration->kind == PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT)
        return peg__fail(reterr, PEG_EINVAL, "E_ATTACH",
                         "the registration is one of a direct toolset, whose providers read a "
                         "stream: leave its kind out, or register it without attaching");
    return PEG_OK;
}

/* The toolset first: a line about a Hello that is refused for what follows names it. */
static peg_status copy_names(struct gw_attached *attached, const Pegboard__V1__Hello *hello,
                             peg_error *reterr)
{
    peg_status status = wire_check_name(peg__str(hello->toolset), "toolset", reterr);

    if (!status && copy_hello_text(attached, hello->toolset, &attached->toolset_name))
        status = peg__fail_nomem(reterr);
    if (!status)
        status = wire_check_incarnation(peg__str(hello->incarnation), reterr);
    if (!status && (copy_hello_text(attached, hello->incarnation, &attached->incarnation) ||
                    name_provider(attached)))
        status = peg__fail_nomem(reterr);
    return status;
}

static peg_status copy_hello(struct gw_attached *attached, const Pegboard__V1__Hello *hello,
                             peg_error *reterr)
{
    peg_status status = copy_names(attached, hello, reterr);

    if (!status)
        status = check_registration(attached, hello->registration, reterr);
    attached->hello.credits = hello->credits;
    attached->hello.number = hello->number;
    return status ? status : copy_running(attached, hello, reterr);
}

/* ---- whose it is ------------------------------------------------------------------------------
 */

/* The stream may be older than the tokens, which may be read again while it registers. */
static bool is_stranger(const struct gw_attached *attached)
{
    return !gw_auth_knows(attached->node->auth, gw_call_principal(attached->call)->name);
}

static void attach_to(struct gw_attached *attached, struct gw_toolset *toolset)
{
    if (!toolset) {
        gw_attached_fail(attached, WIRE_NOT_FOUND,
                         peg__str("the toolset is not registered: register it first, or send its "
                                  "registration with Hello"));
        return;
    }
    if (is_stranger(attached)) {
        gw_attached_fail(attached, WIRE_UNAUTHENTICATED, peg__str(GW_TOKEN_GONE));
        return;
    }
    if (!peg__str_eq(toolset->owner, gw_call_principal(attached->call)->name)) {
        gw_attached_fail(attached, WIRE_PERMISSION_DENIED,
                         peg__str("the toolset belongs to another principal: only who registered "
                                  "it may provide it"));
        return;
    }
    if (toolset->kind != GW_ATTACHED) {
        gw_attached_fail(attached, WIRE_CONFLICT,
                         peg__str("the toolset is a direct one, whose providers read a stream: "
                                  "register it as an attached one first"));
        return;
    }
    gw_attached_begin(attached, toolset);
}

/* ---- registering first ------------------------------------------------------------------------
 */

/* Equal registrations change nothing, and are not told. */
static void tell_registered(const struct gw_attached *attached, const struct gw_toolset *toolset)
{
    const uint64_t before = attached->revision_before;

    if (toolset->revision == before)
        return;
    gw_event_log_write(
        attached->node->log, PEG_LOG_INFO, GW_EVENT_REGISTER,
        GW_FIELDS(gw_field_str("toolset", toolset->name), gw_field_str("owner", toolset->owner),
                  gw_field_number("tools", (int64_t)toolset->n_tools),
                  gw_field_number("revision", (int64_t)toolset->revision),
                  gw_field_text("via", "attach"), gw_field_text("replaced", before ? "yes" : "no"),
                  gw_field_str("incarnation", attached->incarnation)));
}

static void on_registered(struct gw_change_wait *change, peg_status status,
                          const struct gw_toolset *toolset, const peg_error *error)
{
    struct gw_attached *attached = peg__container_of(change, struct gw_attached, change);

    if (status) {
        gw_attached_fail(attached, gw_wire_error(error), peg__str(error->message));
        return;
    }
    tell_registered(attached, toolset);
    if (attached->was_direct)
        gw_presence_remove_direct(gw_router_of(attached->calls)->presence, toolset->name);
    attach_to(attached, (struct gw_toolset *)peg__unconst(toolset));
}

static void ask_catalog(struct gw_attached *attached,
                        const Pegboard__V1__RegisterRequest *registration,
                        void (*on_end)(struct gw_change_wait *change, peg_status status,
                                       const struct gw_toolset *toolset, const peg_error *error))
{
    Pegboard__V1__RegisterRequest named = *registration;
    struct gw_presence *presence = gw_router_of(attached->calls)->presence;
    const struct gw_toolset *before =
        gw_snapshot_find(gw_router_of(attached->calls)->snapshot, attached->toolset_name);

    attached->revision_before = before ? before->revision : 0;
    attached->was_direct = before && before->kind == GW_DIRECT;
    named.name = (char *)peg__unconst(attached->toolset_name.ptr);
    attached->change.fn = on_end;
    gw_catalog_offer(attached->node->catalog, attached->calls->loop, &named,
                     gw_call_principal(attached->call)->name,
                     gw_presence_is_live(presence, attached->toolset_name), &attached->change);
}

/* Frames that come before Welcome wait. */
static void register_first(struct gw_attached *attached,
                           const Pegboard__V1__RegisterRequest *registration)
{
    grpc_call_pause(attached->call);
    ask_catalog(attached, registration, on_registered);
}

void gw_hello(struct gw_attached *attached, const Pegboard__V1__Hello *hello)
{
    peg_error error;

    attached->step = GW_REGISTERING;
    if (copy_hello(attached, hello, &error))
        gw_attached_fail(attached, gw_wire_error(&error), peg__str(error.message));
    else if (is_stranger(attached))
        gw_attached_fail(attached, WIRE_UNAUTHENTICATED, peg__str(GW_TOKEN_GONE));
    else if (!hello->registration)
        attach_to(attached, gw_snapshot_find(gw_router_of(attached->calls)->snapshot,
                                             attached->toolset_name));
    else
        register_first(attached, hello->registration);
}

/* ---- registering other tools ------------------------------------------------------------------
 */

static void on_offered(struct gw_change_wait *change, peg_status status,
                       const struct gw_toolset *toolset, const peg_error *error)
{
    struct gw_attached *attached = peg__container_of(change, struct gw_attached, change);

    calls_provider_end_offer(attached->provider,
                             status ? NULL
                                    : &((struct gw_toolset *)peg__unconst(toolset))->of_calls);
    if (status) {
        gw_attached_send_offered(attached, 0, gw_wire_error(error), error->message);
        return;
    }
    tell_registered(attached, toolset);
    gw_attached_send_offered(attached, toolset->revision, WIRE_OK, "");
}

void gw_offer(struct gw_attached *attached, const Pegboard__V1__Offer *offer)
{
    peg_error error;

    if (!offer->registration || attached->change.pending) {
        gw_attached_fail(attached, WIRE_VALIDATION,
                         peg__str("an Offer has a registration, and waits for the Offered of the "
                                  "one before"));
        return;
    }
    if (is_stranger(attached)) {
        gw_attached_send_offered(attached, 0, WIRE_UNAUTHENTICATED, GW_TOKEN_GONE);
        return;
    }
    if (check_registration(attached, offer->registration, &error)) {
        gw_attached_send_offered(attached, 0, gw_wire_error(&error), error.message);
        return;
    }
    calls_provider_begin_offer(attached->provider);
    ask_catalog(attached, offer->registration, on_offered);
}
