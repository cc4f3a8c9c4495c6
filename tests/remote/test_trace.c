/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/trace.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(a_context_carries_its_trace_to_those_below)
{
    const peg_trace trace = {.traceparent = parent, .tracestate = "a=1"};
    peg_ctx *traced;
    peg_ctx *below;
    peg_error error;

    CHECK_STATUS(peg_ctx_with_trace(NULL, &trace, &traced, &error), PEG_OK, error);
    CHECK_STATUS(peg_ctx_with_deadline(traced, 1000, &below, &error), PEG_OK, error);

    CHECK_STR(peg__str(peg_ctx_trace(below)->traceparent), parent);
    CHECK_STR(peg__str(peg_ctx_trace(below)->tracestate), "a=1");
    CHECK_STR(peg__str(peg_ctx_trace(below)->baggage), "");
    peg_ctx_unref(below);
    peg_ctx_unref(traced);
}

TEST(a_context_without_a_trace_has_none)
{
    peg_ctx *ctx;

    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK(!peg_ctx_trace(ctx));
    CHECK(!peg_ctx_trace(NULL));
    peg_ctx_unref(ctx);
}

TEST(a_traceparent_of_another_form_is_refused)
{
    static const char *const wrong[] = {"x",
                                        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                                        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
    peg_ctx *ctx;
    peg_error error;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const peg_trace trace = {.traceparent = wrong[i]};

        CHECK_INT(peg_ctx_with_trace(NULL, &trace, &ctx, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_TRACE");
    }
}

TEST(baggage_that_is_not_printable_or_too_long_is_refused)
{
    static char large[PEG_LIMIT_REMOTE_TRACE_BYTES + 2];
    const peg_trace wrong = {.baggage = "a=\n"};
    peg_trace long_one = {.baggage = large};
    peg_ctx *ctx;
    peg_error error;

    memset(large, 'a', sizeof(large) - 1);
    CHECK_INT(peg_ctx_with_trace(NULL, &wrong, &ctx, &error), PEG_EINVAL);
    CHECK_INT(peg_ctx_with_trace(NULL, &long_one, &ctx, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "send less"));
}

TORTURE(a_trace_survives_any_allocation_failure)
{
    const peg_trace trace = {.traceparent = parent};
    peg_ctx *ctx;
    const peg_status status = peg_ctx_with_trace(NULL, &trace, &ctx, NULL);

    if (!status)
        peg_ctx_unref(ctx);
    return status;
}
