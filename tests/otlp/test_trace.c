/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "otlp/internal.h"
#include "t.h"

static const char sampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(context_is_read_and_written_as_it_was)
{
    struct otlp_context context;
    char text[OTLP_TRACEPARENT_TEXT];
    char id[OTLP_TRACE_ID_TEXT];

    CHECK(otlp_context_parse(peg__str(sampled), &context));

    CHECK(context.is_sampled);
    otlp_context_print(&context, text);
    CHECK_STR(peg__str(text), sampled);
    otlp_trace_id_print(&context, id);
    CHECK_STR(peg__str(id), "0af7651916cd43dd8448eb211c80319c");
}

TEST(context_that_is_not_sampled_stays_so)
{
    struct otlp_context context;
    char text[OTLP_TRACEPARENT_TEXT];

    CHECK(otlp_context_parse(peg__str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02"),
                             &context));

    CHECK(!context.is_sampled);
    otlp_context_print(&context, text);
    CHECK_STR(peg__str(text), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
}

TEST(context_of_a_later_version_may_have_more)
{
    struct otlp_context context;

    CHECK(otlp_context_parse(
        peg__str("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more"), &context));
}

TEST(context_is_refused_if_w3c_refuses_it)
{
    static const char *const texts[] = {
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319cx b7ad6b716920333-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
    };
    struct otlp_context context;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK(!otlp_context_parse(peg__str(texts[i]), &context));
}

TEST(part_of_traces_is_decided_by_their_ids)
{
    struct otlp_context low = {.trace_id = {[15] = 1}};
    struct otlp_context high = {.trace_id = {[9] = 0xff, [10] = 0xff}};

    CHECK(otlp__is_in_part(&low, 0.01));
    CHECK(!otlp__is_in_part(&high, 0.99));
    CHECK(otlp__is_in_part(&high, 1));
    CHECK(!otlp__is_in_part(&low, 0));
}
