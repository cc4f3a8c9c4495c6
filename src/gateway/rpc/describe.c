/* SPDX-License-Identifier: Apache-2.0 */

/* DescribeCall: from an id or an identity to the registers of the call, and from these to words. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/members/members.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/metrics.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "wire/wire.h"

typedef Pegboard__V1__DescribeCallResponse Response;
typedef Pegboard__V1__DescribeCallResponse__Attempt Attempt;

/* The state of an RPC, in its arena. */
struct asked {
    struct calls_description description; /* the first member */
    struct grpc_call *call;
    struct gw_node *node;
};

/* ---- what is known ---- */

/* "": no memory, which the answer runs into next. */
static char *arena_text(struct peg__arena *arena, peg_str text)
{
    char *copy = text.len ? peg__arena_copy(arena, text) : NULL;

    return copy ? copy : (char *)peg__unconst("");
}

static char *node_id_text(struct peg__arena *arena, uint64_t node)
{
    char key[GW_MEMBER_KEY];

    gw_member_key(node, key);
    return arena_text(arena, peg__str(key));
}

/* Where that node listens, if it is there. */
static char *address_text(const struct asked *asked, uint64_t node)
{
    const struct gw_members *members =
        asked->node->members[asked->description.calls->bus->self.loop];
    const struct gw_member *member = gw_members_find(members, node);

    return arena_text(grpc_call_arena(asked->call), peg__str(member ? member->address : ""));
}

static int attempt_state(const struct calls_claim *claim)
{
    if (strcmp(claim->owner, CALLS_TOKEN_REVOKED) == 0)
        return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_REVOKED;
    if (strcmp(claim->owner, CALLS_TOKEN_ENDED) == 0)
        return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLOSED;
    return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLAIMED;
}

static Attempt *make_attempt(const struct asked *asked, unsigned i)
{
    const struct calls_claim *claim = &asked->description.claims[i];
    struct peg__arena *arena = grpc_call_arena(asked->call);
    Attempt *attempt = (Attempt *)peg__arena_alloc(arena, sizeof(*attempt));

    if (!attempt)
        return NULL;
    pegboard__v1__describe_call_response__attempt__init(attempt);
    attempt->number = i + 1;
    attempt->state = attempt_state(claim);
    if (attempt->state == PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLAIMED)
        attempt->provider = arena_text(arena, peg__str(claim->owner));
    attempt->node_id = node_id_text(arena, claim->address.node);
    attempt->address = address_text(asked, claim->address.node);
    attempt->attached = claim->is_attached;
    return attempt;
}

/* False: no memory. */
static bool add_attempts(const struct asked *asked, Response *response)
{
    const unsigned n = asked->description.n_claims;

    response->attempts =
        (Attempt **)peg__arena_alloc(grpc_call_arena(asked->call), (n + 1) * sizeof(Attempt *));
    if (!response->attempts)
        return false;
    for (unsigned i = 0; i < n; i++) {
        response->attempts[i] = make_attempt(asked, i);
        if (!response->attempts[i])
            return false;
    }
    response->n_attempts = n;
    return true;
}

/* A provider whose claim is the last one has it; one that a coordinator took leads to the next. */
static int call_state(const struct calls_description *d)
{
    if (d->has_ended)
        return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED;
    if (d->n_claims && attempt_state(&d->claims[d->n_claims - 1]) ==
                           PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLAIMED)
        return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_RUNNING;
    return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_WAITING;
}

static void fill_identity(const struct asked *asked, Response *response)
{
    const struct calls_description *d = &asked->description;
    struct peg__arena *arena = grpc_call_arena(asked->call);

    response->toolset = arena_text(arena, d->subject.toolset);
    response->tool = arena_text(arena, d->subject.tool);
    response->principal = arena_text(arena, d->identity.principal);
    response->admitted_unix_ms = d->subject.admitted_ms;
    response->deadline_unix_ms = d->identity.deadline_ms;
    if (calls_id_is_keyed(&d->id))
        response->kept_until_unix_ms =
            calls_keep_until(&d->id, d->identity.deadline_ms, d->calls->options.keep_ms);
    response->coordinator_id = node_id_text(arena, d->identity.coordinator.node);
    response->coordinator_address = address_text(asked, d->identity.coordinator.node);
    response->coordinator_lost = !d->is_coordinator_alive;
    response->other_epoch = d->is_other_epoch;
}

/* What a tool says is for its caller; an operator learns the code. */
static void fill_tool_error(const struct asked *asked, Response *response)
{
    const struct calls_description *d = &asked->description;
    struct peg__arena *arena = grpc_call_arena(asked->call);
    const peg_str error =
        wire_find_bytes(d->outcome.response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);

    response->error = arena_text(arena, wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD));
    if (d->has_identity && peg__str_eq(d->identity.principal, gw_call_principal(asked->call)->name))
        response->message =
            arena_text(arena, wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD));
}

static void fill_outcome(const struct asked *asked, Response *response)
{
    const struct calls_outcome *outcome = &asked->description.outcome;
    struct peg__arena *arena = grpc_call_arena(asked->call);

    response->outcome = (char *)peg__unconst(gw_outcome_kind_name(outcome->kind));
    response->started = outcome->was_started || outcome->error == CALLS_OK;
    if (outcome->error != CALLS_OK) {
        response->error = (char *)peg__unconst(wire_error_name(gw_error_of_call(outcome->error)));
        response->message = arena_text(arena, outcome->message);
    } else if (outcome->kind == CALLS_KIND_ERROR) {
        fill_tool_error(asked, response);
    } else {
        response->result_bytes =
            wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD).len;
    }
}

static void reply_description(const struct asked *asked)
{
    const struct calls_description *d = &asked->description;
    Response response = PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__INIT;
    char id[BUS_ID_TEXT];

    bus_id_print(&d->id, id);
    response.call_id = id;
    response.state = call_state(d);
    response.waiters = (uint32_t)d->n_waiters;
    if (d->has_identity)
        fill_identity(asked, &response);
    if (d->has_ended)
        fill_outcome(asked, &response);
    if (add_attempts(asked, &response))
        grpc_call_reply_message(asked->call, &response.base);
    else
        gw_fail_memory(asked->call);
}

/* ---- what is not ---- */

static void fail_unknown(const struct asked *asked)
{
    const struct calls_description *d = &asked->description;
    char message[512];
    int n;

    if (calls_id_is_keyed(&d->id))
        n = snprintf(message, sizeof(message),
                     "nothing is known of such a call of yours: there was none, or it was never "
                     "started and forgotten, or its deadline passed more than %lld s ago "
                     "(--result-mapping-ttl), or what was kept of it is lost",
                     (long long)(d->calls->options.keep_ms / 1000));
    else
        n = snprintf(message, sizeof(message),
                     "nothing is known of such a call of yours here: one without an identity is "
                     "known to the node that was asked for it, until it ends; give calls an "
                     "idempotency_key to ask for them later, at any node");
    gw_fail(asked->call, WIRE_NOT_FOUND, peg__strn(message, (size_t)n));
}

static void on_described(struct calls_description *description, enum calls_error error)
{
    const struct asked *asked = (const struct asked *)description;

    if (error == CALLS_OK)
        reply_description(asked);
    else if (error == CALLS_NOT_FOUND)
        fail_unknown(asked);
    else if (error == CALLS_OVERLOADED)
        gw_fail_memory(asked->call);
    else
        gw_fail(asked->call, gw_error_of_call(error),
                peg__str("what is known of the call cannot be read now, since Redis does not "
                         "answer: try again"));
}

/* ---- which call ---- */

static peg_status check_identity(const Pegboard__V1__DescribeCallRequest *request,
                                 peg_error *reterr)
{
    const struct {
        const char *id;
        const char *field;
    } ids[] = {
        {request->run_id, "run_id"},
        {request->tool_call_id, "tool_call_id"},
        {request->idempotency_key, "idempotency_key"},
    };
    peg_status status = PEG_OK;

    if (!request->idempotency_key[0] && !(request->run_id[0] && request->tool_call_id[0]))
        return peg__fail(reterr, PEG_EINVAL, "E_MISSING_FIELD",
                         "which call? Give call_id, or toolset with idempotency_key, or with "
                         "run_id and tool_call_id");
    for (size_t i = 0; !status && i < sizeof(ids) / sizeof(ids[0]); i++)
        if (ids[i].id[0])
            status = wire_check_id(peg__str(ids[i].id), ids[i].field, reterr);
    return status ? status : wire_check_name(peg__str(request->toolset), "toolset", reterr);
}

/* False: the call has been answered. */
static bool find_id(struct grpc_call *call, const Pegboard__V1__DescribeCallRequest *request,
                    struct calls_loop *calls, struct bus_id *ret_id)
{
    const struct calls_request what = {
        .toolset = peg__str(request->toolset),
        .principal =
            request->principal[0] ? peg__str(request->principal) : gw_call_principal(call)->name,
        .run_id = peg__str(request->run_id),
        .tool_call_id = peg__str(request->tool_call_id),
        .key = peg__str(request->idempotency_key),
    };
    peg_error error;

    if (request->call_id[0]) {
        if (bus_id_parse(peg__str(request->call_id), ret_id))
            return true;
        gw_fail(call, WIRE_VALIDATION,
                peg__str("call_id is not an id that this gateway gave out: 32 or 64 hexadecimal "
                         "digits"));
        return false;
    }
    if (check_identity(request, &error)) {
        gw_fail_because(call, &error);
        return false;
    }
    if (calls_request_id(calls, &what, ret_id))
        return true;
    gw_fail_memory(call);
    return false;
}

void gw_serve_describe_call(struct grpc_call *call,
                            const Pegboard__V1__DescribeCallRequest *request, void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    const bool is_operator = gw_auth_is_operator(call);
    const peg_str own = gw_call_principal(call)->name;
    struct asked *asked;
    struct bus_id id;

    if (!find_id(call, request, calls, &id))
        return;
    asked = (struct asked *)peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*asked));
    if (!asked) {
        gw_fail_memory(call);
        return;
    }
    *asked = (struct asked){.description.fn = on_described, .call = call, .node = node};
    grpc_call_set_state(call, asked);
    calls_describe(calls, &id, is_operator ? NULL : &own, &asked->description);
}

void gw_serve_describe_call_on_end(struct grpc_call *call, void *node)
{
    struct asked *asked = (struct asked *)grpc_call_state(call);

    (void)node;
    if (asked)
        calls_description_clear(&asked->description);
}
