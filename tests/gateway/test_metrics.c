/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/telemetry/metrics.h"

static struct gw_metrics *made(unsigned n_loops)
{
    struct gw_metrics *metrics = NULL;

    if (gw_metrics_new(n_loops, &metrics, NULL))
        T_FAIL("no metrics");
    return metrics;
}

TEST(calls_are_counted_by_outcome)
{
    struct gw_metrics *metrics = made(1);
    struct gw_toolset_meter *meter = gw_metrics_meter(metrics, 0, peg__str("a"));
    struct gw_totals totals;

    for (int i = 0; i < 5; i++)
        gw_meter_admitted(meter);
    gw_meter_ended(meter, CALLS_KIND_RESULT, 1000000);
    gw_meter_ended(meter, CALLS_KIND_RESULT, 1000000);
    gw_meter_ended(meter, CALLS_KIND_TIMEOUT, 1000000);
    gw_meter_refused(meter);
    gw_meter_queued(meter, 3);
    gw_meter_queued(meter, -1);
    gw_meter_late_result(meter);
    gw_metrics_of(metrics, peg__str("a"), &totals);

    CHECK_INT(totals.outcomes[CALLS_KIND_RESULT], 2);
    CHECK_INT(totals.outcomes[CALLS_KIND_TIMEOUT], 1);
    CHECK_INT(totals.outcomes[CALLS_KIND_REFUSED], 1);
    CHECK_INT(totals.admitted, 5);
    CHECK_INT(totals.in_flight, 2);
    CHECK_INT(totals.queued, 2);
    CHECK_INT(totals.late_results, 1);
    CHECK_INT(totals.latency_ns, 3000000);
    gw_metrics_free(metrics);
}

TEST(loops_are_added_up)
{
    struct gw_metrics *metrics = made(3);
    struct gw_totals totals;

    for (unsigned loop = 0; loop < 3; loop++)
        gw_meter_admitted(gw_metrics_meter(metrics, loop, peg__str("a")));
    gw_meter_admitted(gw_metrics_meter(metrics, 1, peg__str("b")));

    gw_metrics_of(metrics, peg__str("a"), &totals);
    CHECK_INT(totals.admitted, 3);
    gw_metrics_of(metrics, peg__str("c"), &totals);
    CHECK_INT(totals.admitted, 0);
    gw_metrics_total(metrics, &totals);
    CHECK_INT(totals.admitted, 4);
    gw_metrics_free(metrics);
}

TEST(a_toolset_has_one_meter_on_a_loop)
{
    struct gw_metrics *metrics = made(2);
    struct gw_toolset_meter *meter = gw_metrics_meter(metrics, 0, peg__str("a"));

    CHECK(meter != NULL);
    CHECK(gw_metrics_meter(metrics, 0, peg__str("a")) == meter);
    CHECK(gw_metrics_meter(metrics, 1, peg__str("a")) != meter);
    CHECK(gw_metrics_meter(metrics, 2, peg__str("a")) == NULL);
    CHECK(gw_metrics_meter(NULL, 0, peg__str("a")) == NULL);
    gw_metrics_free(metrics);
}

TEST(no_meter_counts_nothing)
{
    gw_meter_admitted(NULL);
    gw_meter_ended(NULL, CALLS_KIND_RESULT, 1);
    gw_meter_refused(NULL);
    gw_meter_queued(NULL, 1);
    gw_meter_late_result(NULL);
    CHECK_STR(peg__str(gw_outcome_kind_name(CALLS_KIND_UNKNOWN)), "outcome_unknown");
    CHECK_STR(peg__str(gw_outcome_kind_name(CALLS_N_KINDS)), "unknown");
}

TEST(beyond_the_limit_toolsets_share_a_meter)
{
    struct gw_metrics *metrics = made(1);
    struct gw_totals totals;
    struct gw_toolset_meter *shared;

    for (int i = 0; i < PEG_LIMIT_GATEWAY_METERS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "t%d", i);
        gw_meter_admitted(gw_metrics_meter(metrics, 0, peg__str(name)));
    }
    shared = gw_metrics_meter(metrics, 0, peg__str("one more"));
    CHECK(shared != NULL);
    CHECK(gw_metrics_meter(metrics, 0, peg__str("another")) == shared);
    CHECK(gw_metrics_meter(metrics, 0, peg__str("t5")) != shared);
    gw_meter_admitted(shared);
    gw_metrics_of(metrics, peg__str(""), &totals);
    CHECK_INT(totals.admitted, 1);
    gw_metrics_total(metrics, &totals);
    CHECK_INT(totals.admitted, PEG_LIMIT_GATEWAY_METERS + 1);
    gw_metrics_free(metrics);
}

static int bucket_of(int64_t ns)
{
    struct gw_metrics *metrics = made(1);
    struct gw_totals totals;
    int bucket = 0;

    gw_meter_ended(gw_metrics_meter(metrics, 0, peg__str("a")), CALLS_KIND_RESULT, ns);
    gw_metrics_of(metrics, peg__str("a"), &totals);
    while (bucket < GW_BUCKETS - 1 && !totals.buckets[bucket])
        bucket++;
    CHECK_INT(totals.buckets[bucket], 1);
    gw_metrics_free(metrics);
    return bucket;
}

TEST(a_latency_goes_into_the_first_bucket_that_has_room_for_it)
{
    CHECK_INT(bucket_of(-5), 0);
    CHECK_INT(bucket_of(0), 0);
    CHECK_INT(bucket_of(16000), 0);
    CHECK_INT(bucket_of(16001), 1);
    CHECK_INT(bucket_of(32000), 1);
    CHECK_INT(bucket_of(32001), 2);
    CHECK_INT(bucket_of(INT64_C(1000) << (GW_BUCKETS - 2 + GW_BUCKET_SHIFT)), GW_BUCKETS - 2);
    CHECK_INT(bucket_of((INT64_C(1000) << (GW_BUCKETS - 2 + GW_BUCKET_SHIFT)) + 1), GW_BUCKETS - 1);
    CHECK_INT(bucket_of(INT64_MAX), GW_BUCKETS - 1);
}

/* ---- quantiles: within an eighth, and never above the longest call -----------------------------
 */

static const int64_t MS = 1000000;

static double quantile_of(struct gw_metrics *metrics, double part)
{
    struct gw_latencies latencies;

    gw_metrics_latencies(metrics, peg__str("a"), &latencies);
    return gw_latency_quantile_ms(&latencies, part);
}

static void end_call(struct gw_metrics *metrics, unsigned loop, int64_t ns)
{
    gw_meter_ended(gw_metrics_meter(metrics, loop, peg__str("a")), CALLS_KIND_RESULT, ns);
}

#define CHECK_NEAR(actual, expected)                                                               \
    do {                                                                                           \
        const double t_a = (actual);                                                               \
        const double t_e = (expected);                                                             \
        if (t_a < t_e * 0.875 || t_a > t_e * 1.125)                                                \
            T_FAIL("%s is %g, expected about %g", #actual, t_a, t_e);                              \
    } while (0)

TEST(quantiles_of_one_call_are_near_it_and_not_above)
{
    const int64_t times_ns[] = {1,         999,        17 * 1000,           530 * MS, 950 * MS,
                                1040 * MS, 66000 * MS, INT64_C(68000) * MS, INT64_MAX};

    for (size_t i = 0; i < sizeof(times_ns) / sizeof(times_ns[0]); i++) {
        struct gw_metrics *metrics = made(1);
        const double ms = (double)times_ns[i] / 1e6;

        CHECK(quantile_of(metrics, 0.5) == 0);
        end_call(metrics, 0, times_ns[i]);
        CHECK(quantile_of(metrics, 0.5) <= ms);
        CHECK(quantile_of(metrics, 0.99) <= ms);
        CHECK(quantile_of(metrics, 1) <= ms);
        if (times_ns[i] > 16000 && times_ns[i] <= INT64_C(67000) * MS)
            CHECK_NEAR(quantile_of(metrics, 0.5), ms);
        gw_metrics_free(metrics);
    }
}

TEST(quantiles_of_many_calls_are_near_the_true_ones)
{
    struct gw_metrics *metrics = made(2);

    for (int i = 1; i <= 1000; i++)
        end_call(metrics, (unsigned)i % 2, (int64_t)i * MS);

    CHECK_NEAR(quantile_of(metrics, 0.1), 100);
    CHECK_NEAR(quantile_of(metrics, 0.5), 500);
    CHECK_NEAR(quantile_of(metrics, 0.9), 900);
    CHECK_NEAR(quantile_of(metrics, 0.99), 990);
    CHECK(quantile_of(metrics, 1) == 1000);
    gw_metrics_free(metrics);
}

TEST(quantiles_stay_true_when_small_counters_are_full)
{
    struct gw_metrics *metrics = made(2);
    struct gw_totals totals;

    /* A part counts to 65,535. A quarter takes 0.55 s, most of it on one loop. */
    for (int i = 0; i < 400000; i++)
        end_call(metrics, i % 10 == 0, i % 4 == 0 ? 550 * MS : 1000 * MS);

    CHECK_NEAR(quantile_of(metrics, 0.2), 550);
    CHECK_NEAR(quantile_of(metrics, 0.3), 1000);
    gw_metrics_of(metrics, peg__str("a"), &totals);
    CHECK_INT(totals.buckets[16], 400000); /* 0.524 to 1.049 s: what Prometheus reads is exact */
    gw_metrics_free(metrics);
}

TEST(rates_are_those_of_the_last_ten_seconds)
{
    struct gw_metrics *metrics = made(2);
    struct gw_totals totals;

    gw_metrics_tick(metrics, 0);
    gw_metrics_of(metrics, peg__str("a"), &totals);
    CHECK(totals.calls_per_s == 0);
    for (int second = 1; second <= 30; second++) {
        for (int i = 0; i < 5; i++) {
            gw_meter_admitted(gw_metrics_meter(metrics, 0, peg__str("a")));
            gw_meter_refused(gw_metrics_meter(metrics, 1, peg__str("a")));
        }
        gw_metrics_tick(metrics, second * PEG_NS_PER_S);
        gw_metrics_of(metrics, peg__str("a"), &totals);
        CHECK(totals.calls_per_s == 10);
    }
    for (int second = 31; second <= 40; second++)
        gw_metrics_tick(metrics, second * PEG_NS_PER_S);
    gw_metrics_total(metrics, &totals);
    CHECK(totals.calls_per_s == 0);
    gw_metrics_free(metrics);
}

/* ---- threads ---- */

enum { N_LOOPS = 3, N_ROUNDS = 20000 };

struct counting {
    struct gw_metrics *metrics;
    unsigned loop;
};

static void *count(void *user)
{
    const struct counting *c = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        char name[16];
        struct gw_toolset_meter *meter;

        snprintf(name, sizeof(name), "t%d", i % 100);
        meter = gw_metrics_meter(c->metrics, c->loop, peg__str(name));
        gw_meter_admitted(meter);
        gw_meter_queued(meter, 1);
        gw_meter_queued(meter, -1);
        gw_meter_ended(meter, CALLS_KIND_RESULT, i);
    }
    return NULL;
}

TEST(loops_count_while_others_read)
{
    struct gw_metrics *metrics = made(N_LOOPS);
    struct counting counting[N_LOOPS];
    pthread_t threads[N_LOOPS];
    struct gw_totals totals = {0};

    for (unsigned i = 0; i < N_LOOPS; i++) {
        counting[i] = (struct counting){metrics, i};
        pthread_create(&threads[i], NULL, count, &counting[i]);
    }
    for (int i = 0; totals.admitted < N_ROUNDS && i < 1000000; i++) {
        gw_metrics_of(metrics, peg__str("t7"), &totals);
        CHECK(totals.in_flight >= 0);
        gw_metrics_tick(metrics, i);
        gw_metrics_total(metrics, &totals);
        CHECK(totals.in_flight >= 0);
    }
    for (unsigned i = 0; i < N_LOOPS; i++)
        pthread_join(threads[i], NULL);
    gw_metrics_total(metrics, &totals);
    CHECK_INT(totals.admitted, N_LOOPS * N_ROUNDS);
    CHECK_INT(totals.outcomes[CALLS_KIND_RESULT], N_LOOPS * N_ROUNDS);
    CHECK_INT(totals.in_flight, 0);
    CHECK_INT(totals.queued, 0);
    gw_metrics_free(metrics);
}

TORTURE(metrics_do_without_a_meter_when_memory_ends)
{
    struct gw_metrics *metrics = NULL;
    struct gw_totals totals;
    struct gw_toolset_meter *meter;
    peg_status status = gw_metrics_new(2, &metrics, NULL);

    if (status)
        return status;
    meter = gw_metrics_meter(metrics, 1, peg__str("a"));
    gw_meter_admitted(meter);
    gw_metrics_of(metrics, peg__str("a"), &totals);
    CHECK_INT(totals.admitted, meter ? 1 : 0);
    gw_metrics_free(metrics);
    return meter ? PEG_OK : PEG_ENOMEM;
}
