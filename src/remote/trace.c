/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/trace.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* Its address is the key of the value. */
static const char trace_key;

/* Contexts are made for every call, traces seldom: one block of memory. */
static char *put_copy(char *at, const char *text, const char **ret_text)
{
    const size_t size = strlen(text) + 1;

    memcpy(at, text, size);
    *ret_text = at;
    return at + size;
}

static bool is_lower_hex(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peg__hex_value(text[i]) < 0 || (text[i] >= 'A' && text[i] <= 'F'))
            return false;
    }
    return true;
}

static bool is_traceparent(const char *text)
{
    return strlen(text) == 55 && is_lower_hex(text, 2) && text[2] == '-' &&
           is_lower_hex(text + 3, 32) && text[35] == '-' && is_lower_hex(text + 36, 16) &&
           text[52] == '-' && is_lower_hex(text + 53, 2);
}

static bool is_printable_ascii(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

static peg_status check_trace(const peg_trace *trace, peg_error *reterr)
{
    if (*trace->traceparent && !is_traceparent(trace->traceparent))
        return peg__fail(reterr, PEG_EINVAL, "E_TRACE",
                         "traceparent must have the form 00-<32 hex>-<16 hex>-<2 hex>");
    if (!is_printable_ascii(trace->tracestate) || !is_printable_ascii(trace->baggage))
        return peg__fail(reterr, PEG_EINVAL, "E_TRACE",
                         "tracestate and baggage must be printable ASCII: encode other characters");
    if (strlen(trace->tracestate) + strlen(trace->baggage) > PEG_LIMIT_REMOTE_TRACE_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_TRACE",
                         "tracestate and baggage have more than %d bytes: send less",
                         PEG_LIMIT_REMOTE_TRACE_BYTES);
    return PEG_OK;
}

peg_status peg_ctx_with_trace(peg_ctx *parent, const peg_trace *trace, peg_ctx **ret_ctx,
                              peg_error *reterr)
{
    const peg_trace given = {trace->traceparent ? trace->traceparent : "",
                             trace->tracestate ? trace->tracestate : "",
                             trace->baggage ? trace->baggage : ""};
    peg_status status = check_trace(&given, reterr);
    peg_trace *copy;
    char *at;

    if (status)
        return status;
    copy = peg__alloc(sizeof(*copy) + strlen(given.traceparent) + strlen(given.tracestate) +
                      strlen(given.baggage) + 3);
    if (!copy)
        return peg__fail_nomem(reterr);
    at = put_copy((char *)(copy + 1), given.traceparent, &copy->traceparent);
    at = put_copy(at, given.tracestate, &copy->tracestate);
    put_copy(at, given.baggage, &copy->baggage);
    status = peg_ctx_with_value(parent, &trace_key, copy, peg__free, ret_ctx, reterr);
    if (status)
        peg__free(copy);
    return status;
}

const peg_trace *peg_ctx_trace(const peg_ctx *ctx)
{
    return ctx ? peg_ctx_value(ctx, &trace_key) : NULL;
}
