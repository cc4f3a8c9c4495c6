/* SPDX-License-Identifier: Apache-2.0 */

/* What went wrong, in the codes of pegboard/client.h. The gateway's own message stay. */

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
 * somebody else's. */
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

static peg_status with_cause(peg_error *reterr, const char *cause)
{
    if (reterr)
        reterr->cause = cause;
    return PEG_EIO;
}

/* TLS could not be agreed on. False if that is not what the message say. */
static bool fails_in_tls(const char *address, peg_str message, peg_error *reterr)
{
    static const char code[] = "E_SERVICE_UNAVAILABLE";
    peg_str why;

    if (is_behind(message, "TLS failed: wrong version number", &why)) {
        peg__fail(reterr, PEG_EIO, code, "%s does not speak TLS", address);
        with_cause(reterr, "E_TLS");
    } else if (is_behind(message, "(certificate verify failed): ", &why)) {
        peg__fail(reterr, PEG_EIO, code, "the certificate of %s is not accepted: %.*s", address,
                  PEG_ARG(why));
        with_cause(reterr, "E_TLS_CERTIFICATE");
    } else if (is_behind(message, "the peer refused the TLS connection: ", &why)) {
        peg__fail(reterr, PEG_EIO, code, "%s refused the TLS connection: %.*s", address,
                  PEG_ARG(why));
        with_cause(reterr, "E_TLS_REFUSED");
    } else {
        return false;
    }
    return true;
}

/* In good order or not: before it has said a word, that is the same. */
static bool is_ended(peg_str message)
{
    peg_str rest;

    return is_behind(message, " ended the connection", &rest) ||
           is_behind(message, " broke: ", &rest);
}

static peg_status fail_lost(const struct remote__request *req, peg_error *reterr)
{
    static const char code[] = "E_SERVICE_UNAVAILABLE";
    const char *address = req->registry->address;
    peg_str message = req->status.message;
    peg_str why;
    char reason[128];

    if (!peg__str_starts(message, peg__str("no connection to "))) {
        peg__fail(reterr, PEG_EIO, code, "the gateway at %s went away: %.*s", address,
                  PEG_ARG(message));
        return with_cause(reterr, "E_STREAM_BROKE");
    }
    if (is_behind(message, ": ", &why))
        message = why;
    if (fails_in_tls(address, message, reterr))
        return PEG_EIO;
    if (is_ended(message)) {
        peg__fail(reterr, PEG_EIO, code,
                  "something listens at %s, but ended the connection at once", address);
        return with_cause(reterr, "E_STREAM_ENDED");
    }
    if (is_behind(message, " was given up: ", &why)) {
        peg__fail(reterr, PEG_EIO, code, "what listens at %s is no gateway: %.*s", address,
                  PEG_ARG(why));
        return with_cause(reterr, "E_HTTP2");
    }
    if (is_behind(message, " could not be opened: ", &why)) {
        put_reason(why, reason, sizeof(reason));
        message = peg__str(reason);
    }
    peg__fail(reterr, PEG_EIO, code, "no gateway answers at %s: %.*s", address, PEG_ARG(message));
    return with_cause(reterr, "E_STREAM");
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
