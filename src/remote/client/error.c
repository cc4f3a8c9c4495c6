/* SPDX-License-Identifier: Apache-2.0 */

/* What went wrong, in the codes of pegboard/client.h. The gateway's own message stays. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "remote/client/remote.h"

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
    [WIRE_UNDECIDED] = {PEG_ELIMIT, "E_UNDECIDED"},
};

peg_status remote__wire_error(enum wire_error error, peg_str message, peg_error *reterr)
{
    return peg__fail(reterr, kinds[error].status, kinds[error].code, "%.*s", PEG_ARG(message));
}

/* Only a gateway of ours adds a detail to a status; what comes without one is the connection's, or
 * a proxy's. */
bool remote__request_is_lost(const struct remote__request *req)
{
    return !req->failure && req->status.code == GRPC_UNAVAILABLE && req->status.details.len == 0;
}

/* ---- lost gateways -----------------------------------------------------------------------------
 *
 * Each layer of the connection names the address, and none knows what the others say. Here the
 * address appears once, with the innermost reason; `cause` has the kind for programs. */

/* What stands behind the first `mark`. False if there is none. */
static bool is_behind(peg_str message, const char *mark, peg_str *ret_rest)
{
    const char *at = memmem(message.ptr, message.len, mark, strlen(mark));

    if (!at)
        return false;
    *ret_rest = peg__str_from(message, (size_t)(at - message.ptr) + strlen(mark));
    return true;
}

/* "Connection refused (ECONNREFUSED)", as it goes into a sentence: "connection refused". */
static void put_reason(peg_str system, char *ret_reason, size_t size)
{
    const char *name = memmem(system.ptr, system.len, " (", 2);
    const size_t len = name ? (size_t)(name - system.ptr) : system.len;

    snprintf(ret_reason, size, "%.*s", (int)len, system.ptr);
    if (ret_reason[0] >= 'A' && ret_reason[0] <= 'Z')
        ret_reason[0] = (char)(ret_reason[0] - 'A' + 'a');
}

/* What the message of a failed connection means; the first row whose mark is in it counts. */
static const struct loss {
    const char *mark;
    const char *cause;
    const char *before; /* the address */
    const char *after;
    enum { WITHOUT_REASON, WITH_REST, WITH_SYSTEM_REASON } reason; /* from behind the mark */
} losses[] = {
    {"TLS failed: wrong version number", "E_TLS", "", " does not speak TLS", WITHOUT_REASON},
    {"(certificate verify failed): ", "E_TLS_CERTIFICATE", "the certificate of ",
     " is not accepted: ", WITH_REST},
    {"the peer refused the TLS connection: ", "E_TLS_REFUSED", "",
     " refused the TLS connection: ", WITH_REST},
    /* In good order or not: before its first byte, that is the same. */
    {" ended the connection", "E_STREAM_ENDED", "something listens at ",
     ", but ended the connection at once", WITHOUT_REASON},
    {" broke: ", "E_STREAM_ENDED", "something listens at ", ", but ended the connection at once",
     WITHOUT_REASON},
    {" was given up: ", "E_HTTP2", "what listens at ", " is no gateway: ", WITH_REST},
    {" could not be opened: ", "E_STREAM", "no gateway answers at ", ": ", WITH_SYSTEM_REASON},
    {"", "E_STREAM", "no gateway answers at ", ": ", WITH_REST},
};

static peg_status fail_lost(const struct remote__request *req, peg_error *reterr)
{
    static const struct loss away = {"", "E_STREAM_BROKE", "the gateway at ",
                                     " went away: ", WITH_REST};
    const struct loss *loss = &away;
    peg_str why = req->status.message;
    char reason[128];

    if (peg__str_starts(why, peg__str("no connection to "))) {
        peg_str message = why;

        if (is_behind(why, ": ", &why))
            message = why;
        for (loss = losses; !is_behind(message, loss->mark, &why); loss++)
            continue;
    }
    if (loss->reason == WITH_SYSTEM_REASON) {
        put_reason(why, reason, sizeof(reason));
        why = peg__str(reason);
    }
    if (loss->reason == WITHOUT_REASON)
        why.len = 0;
    peg__fail(reterr, PEG_EIO, "E_SERVICE_UNAVAILABLE", "%s%s%s%.*s", loss->before,
              req->registry->address, loss->after, PEG_ARG(why));
    if (reterr)
        reterr->cause = loss->cause;
    return PEG_EIO;
}

/* ---- what an exchange ended with ---- */

static peg_status fail_unknown_method(const struct remote__request *req, peg_error *reterr)
{
    return peg__fail(
        reterr, PEG_EHOST, "E_GATEWAY",
        "what answers at %s does not know %s: is it a pegboard gateway of this version?",
        req->registry->address, req->method->name);
}

peg_status remote__request_error(const struct remote__request *req, peg_error *reterr)
{
    struct peg__arena arena = {0};
    enum wire_error error;
    peg_str name;

    if (req->failure) {
        if (reterr)
            *reterr = req->error;
        return req->failure;
    }
    if (req->status.code == GRPC_OK)
        return PEG_OK;
    if (remote__request_is_lost(req))
        return fail_lost(req, reterr);
    if (req->status.code == GRPC_UNIMPLEMENTED)
        return fail_unknown_method(req, reterr);
    error = wire_error_from_status(&req->status, &arena, &name);
    peg__arena_free(&arena);
    if (error == WIRE_OK)
        error = WIRE_FAULT;
    return remote__wire_error(error, req->status.message, reterr);
}

peg_status remote__ctx_error(peg_ctx *ctx, peg_error *reterr)
{
    peg_error why = {.status = PEG_ECANCELED};

    peg__ctx_why_stopped(ctx, &why);
    return remote__pass_error(&why, reterr);
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
