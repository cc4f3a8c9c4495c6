/* SPDX-License-Identifier: Apache-2.0 */

/* The span of a caller, to a collector that is not there: what its call and its provider get. */

#include "base/text/str.h"
#include "gateway/routing/call_span.h"
#include "otlp/otlp.h"
#include "pegboard/v1/registry.fields.h"
#include "t.h"
#include "wire/pack.h"

static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/* ---- fixture: a caller, and what it was told ---- */

struct world {
    struct calls_caller caller; /* the first member */
    struct gw_tracer tracer;
    struct gw_traced traced;
    peg_str handed; /* the fields of the request that is started */
    char packed[128];
    unsigned n_ends;
};

static void on_end(struct calls_caller *caller, const struct calls_outcome *outcome)
{
    (void)outcome;
    ((struct world *)caller)->n_ends++;
}

static const struct calls_caller_events events = {.on_end = on_end};

static peg_status open_world(struct world *w, double sample)
{
    *w = (struct world){.caller.events = &events};
    return otlp_exporter_new(&(struct otlp_options){.endpoint = "http://127.0.0.1:1",
                                                    .service = "test",
                                                    .sample = sample},
                             &w->tracer.exporter, NULL);
}

static void begin(struct world *w, const char *traceparent)
{
    const char *end =
        wire_put_bytes(w->packed, PEGBOARD_V1_CALL_TRACEPARENT_FIELD, peg__str(traceparent));
    const struct calls_request request = {
        .toolset = PEG_LIT("weather"),
        .tool = PEG_LIT("say"),
        .packed = peg__strn(w->packed, (size_t)(end - w->packed)),
    };

    w->handed = gw_call_span_begin(&w->tracer, &request, &w->caller, &w->traced)->packed;
}

static peg_str handed_on(const struct world *w)
{
    return wire_find_bytes(w->handed, PEGBOARD_V1_CALL_TRACEPARENT_FIELD);
}

static void close_world(struct world *w)
{
    gw_traced_clear(&w->traced);
    gw_tracer_close(&w->tracer);
}

static void end_well(struct world *w)
{
    const struct calls_outcome outcome = {.kind = CALLS_KIND_RESULT};

    w->caller.events->on_end(&w->caller, &outcome);
}

/* ---- tests ---- */

TEST(span_is_the_parent_of_what_the_provider_does)
{
    struct world w;

    CHECK_INT(open_world(&w, 0), PEG_OK);

    begin(&w, parent);

    CHECK_INT(handed_on(&w).len, strlen(parent));
    CHECK(!peg__str_is(handed_on(&w), parent));
    CHECK(peg__str_starts(handed_on(&w), peg__str("00-0af7651916cd43dd8448eb211c80319c-")));
    CHECK(w.caller.span);
    end_well(&w);
    close_world(&w);
}

TEST(span_ends_with_its_call_and_the_caller_has_its_own_events_again)
{
    struct world w;

    CHECK_INT(open_world(&w, 0), PEG_OK);
    begin(&w, "");

    end_well(&w);

    CHECK_INT(w.n_ends, 1);
    CHECK(!w.caller.span && w.caller.events == &events);
    close_world(&w);
}

TEST(span_ends_when_the_caller_leaves_and_no_second_time)
{
    struct world w;

    CHECK_INT(open_world(&w, 0), PEG_OK);
    begin(&w, "");

    gw_call_span_leave(&w.caller, CALLS_DETACHES);
    gw_call_span_leave(&w.caller, CALLS_LEAVES);

    CHECK_INT(w.n_ends, 0);
    CHECK(!w.caller.span && w.caller.events == &events);
    close_world(&w);
}

TEST(call_that_is_not_sampled_by_its_caller_goes_on_as_it_came)
{
    static const char unsampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    struct world w;

    CHECK_INT(open_world(&w, 0), PEG_OK);

    begin(&w, unsampled);

    CHECK(!w.caller.span);
    CHECK_STR(handed_on(&w), unsampled);
    close_world(&w);
}

TEST(call_that_the_ratio_leaves_out_tells_the_provider_so)
{
    struct world w;

    CHECK_INT(open_world(&w, -1), PEG_OK);

    begin(&w, "");

    CHECK(!w.caller.span);
    CHECK_INT(handed_on(&w).len, strlen(parent));
    CHECK(peg__str_is(peg__str_from(handed_on(&w), strlen(parent) - 3), "-00"));
    close_world(&w);
}

TEST(call_without_a_tracer_is_left_alone)
{
    struct world w = {.caller.events = &events};
    const struct calls_request request = {.toolset = PEG_LIT("weather"), .tool = PEG_LIT("say")};

    CHECK(gw_call_span_begin(NULL, &request, &w.caller, &w.traced) == &request);

    CHECK(!w.caller.span && w.caller.events == &events);
    gw_traced_clear(&w.traced);
}

/* Without memory for a span the call goes on: it is the tracer that fails. */
TORTURE(span_survives_any_allocation_failure)
{
    struct world w;
    bool has_span;
    peg_status status = open_world(&w, 0);

    if (status)
        return status;
    begin(&w, parent);
    has_span = w.caller.span != NULL;
    end_well(&w);
    status = w.n_ends == 1 ? PEG_OK : PEG_ESTATE;
    close_world(&w);
    return status || has_span ? status : PEG_ENOMEM;
}
