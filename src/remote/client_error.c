/* SPDX-License-Identifier: Apache-2.0 */

/* What went wrong, in the codes of pegboard/client.h. The gateway's own words stay. */

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "core/ctx.h"
#include "remote/remote.h"

static const struct {
    peg_status status;
    const char *code;
} kinds[WIRE_N_ERRORS] = {
    [WIRE_OK] = {PEG_OK, ""},
    [WIRE_NOT_FOUND] = {PEG_ENOTFOUND, "E_NOT_FOUND"},
    [WIRE_VALIDATION] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_MISSING_FIELD] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_INVALID_LENGTH] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_INVALID_PATTERN] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_INVALID_FORMAT] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_INVALID_RANGE] = {PEG_ESCHEMA, "E_VALIDATION"},
    [WIRE_SERVICE_UNAVAILABLE] = {PEG_EIO, "E_SERVICE_UNAVAILABLE"},
    [WIRE_OVERLOADED] = {PEG_ELIMIT, "E_OVERLOADED"},
    [WIRE_TIMEOUT] = {PEG_ETIMEOUT, "E_TIMEOUT"},
    [WIRE_CANCELED] = {PEG_ECANCELED, "E_CANCELED"},
    [WIRE_OUTCOME_UNKNOWN] = {PEG_EIO, "E_OUTCOME_UNKNOWN"},
    [WIRE_PERMISSION_DENIED] = {PEG_EHOST, "E_PERMISSION_DENIED"},
    [WIRE_UNAUTHENTICATED] = {PEG_EHOST, "E_UNAUTHENTICATED"},
    [WIRE_CONFLICT] = {PEG_ESTATE, "E_CONFLICT"},
    [WIRE_LIMIT] = {PEG_ELIMIT, "E_LIMIT_EXCEEDED"},
    [WIRE_FAULT] = {PEG_EHOST, "E_GATEWAY"},
};

peg_status remote__wire_error(enum wire_error error, peg_str words, peg_error *reterr)
{
    return peg__fail(reterr, kinds[error].status, kinds[error].code, "%.*s", PEG_ARG(words));
}

/* Only a gateway of ours adds a detail to a status; what comes without one is the connection's, or
 * somebody else's. */
bool remote__ask_is_lost(const struct remote__ask *ask)
{
    return !ask->failure && ask->status.code == GRPC_UNAVAILABLE && ask->status.details.len == 0;
}

static peg_status fail_unknown_method(const struct remote__ask *ask, peg_error *reterr)
{
    return peg__fail(
        reterr, PEG_EHOST, "E_GATEWAY",
        "what answers at %s does not know %s: is it a pegboard gateway of this version?",
        ask->registry->address, ask->method->name);
}

peg_status remote__ask_error(const struct remote__ask *ask, peg_error *reterr)
{
    struct peg__arena arena = {0};
    enum wire_error error;
    peg_str name;

    if (ask->failure) {
        if (reterr)
            *reterr = ask->error;
        return ask->failure;
    }
    if (ask->status.code == GRPC_OK)
        return PEG_OK;
    if (remote__ask_is_lost(ask))
        return peg__fail(reterr, PEG_EIO, "E_SERVICE_UNAVAILABLE",
                         "no gateway answers at %s: %.*s; start one, or name another address",
                         ask->registry->address, PEG_ARG(ask->status.message));
    if (ask->status.code == GRPC_UNIMPLEMENTED)
        return fail_unknown_method(ask, reterr);
    error = wire_error_from_status(&ask->status, &arena, &name);
    peg__arena_free(&arena);
    if (error == WIRE_OK)
        error = WIRE_FAULT;
    return remote__wire_error(error, ask->status.message, reterr);
}

peg_status remote__ctx_error(peg_ctx *ctx, peg_error *reterr)
{
    peg_error why = {.status = PEG_ECANCELED};

    peg__ctx_why_stopped(ctx, &why);
    if (reterr)
        *reterr = why;
    return why.status;
}

int64_t remote__ctx_left_ms(const peg_ctx *ctx)
{
    const int64_t stop_ns = ctx ? peg__ctx_stop_ns(ctx) : INT64_MAX;
    int64_t left_ns;

    if (stop_ns == INT64_MAX)
        return INT64_MAX;
    left_ns = stop_ns - peg_clock_mono_ns(peg_ctx_clock(ctx));
    return left_ns > PEG_NS_PER_MS ? left_ns / PEG_NS_PER_MS : 1;
}
