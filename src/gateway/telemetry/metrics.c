/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A meter is written by its loop alone, so counting is a load and a store: no locked instruction,
 * and no cache line that another loop writes. Readers come from anywhere and see each counter as
 * it was a moment ago.
 *
 * The table of a loop's meters is read without a lock by its loop, who alone adds to it, and with
 * the lock by all others.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/telemetry/metrics.h"

/* Ten seconds, one more to have both ends, and one that is being written. */
enum { CACHE_LINE = 64, TICKS = 12 };

typedef _Atomic uint64_t counter;

/* 576 bytes. One thread writes, any may read. */
struct gw_latency_meter {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t max_ns;
    _Atomic uint64_t buckets[GW_BUCKETS];
    _Atomic uint16_t parts[GW_BUCKETS - 1][GW_BUCKET_PARTS]; /* the last one has no end to divide */
};

/* 816 bytes, of each toolset that was called on a loop. */
struct gw_toolset_meter {
    counter outcomes[CALLS_N_KINDS];
    counter admitted;
    counter ended;
    _Atomic int64_t queued;
    counter late_results;
    struct gw_latency_meter latency;
    /* The ticker's: calls asked for at the last ticks. */
    counter at_ticks[TICKS];
    char apart[CACHE_LINE];
};

struct loop_meters {
    pthread_mutex_t lock;
    struct peg__map meters;        /* struct gw_toolset_meter by toolset */
    struct gw_toolset_meter other; /* of all that the table has no room for */
    char apart[CACHE_LINE];
};

/* Owned. */
struct gw_metrics {
    unsigned n_loops;
    _Atomic uint64_t n_ticks;
    _Atomic int64_t ticks_ns[TICKS];
    struct loop_meters loops[];
};

const char *gw_outcome_kind_name(enum calls_outcome_kind outcome)
{
    static const char *const names[CALLS_N_KINDS] = {
        "result", "error", "timeout", "canceled", "outcome_unknown", "refused",
    };

    return (unsigned)outcome < CALLS_N_KINDS ? names[outcome] : "unknown";
}

static uint64_t load_counter(const counter *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void add_to(counter *to, uint64_t n)
{
    atomic_store_explicit(to, load_counter(to) + n, memory_order_relaxed);
}

/* ---- latencies ---- */

/* A bucket has what took more than the one and at most the other. */
static uint64_t low_us(unsigned bucket)
{
    return bucket ? UINT64_C(1) << (bucket - 1 + GW_BUCKET_SHIFT) : 0;
}

static uint64_t high_us(unsigned bucket)
{
    return UINT64_C(1) << (bucket + GW_BUCKET_SHIFT);
}

static unsigned bucket_of(uint64_t us)
{
    unsigned width;

    if (us <= high_us(0))
        return 0;
    width = 64 - (unsigned)__builtin_clzll(us - 1);
    return width - GW_BUCKET_SHIFT < GW_BUCKETS ? width - GW_BUCKET_SHIFT : GW_BUCKETS - 1;
}

static void halve(_Atomic uint16_t parts[GW_BUCKET_PARTS])
{
    for (int i = 0; i < GW_BUCKET_PARTS; i++) {
        const uint16_t n = atomic_load_explicit(&parts[i], memory_order_relaxed);

        /* Rounded up: what was there once stays. */
        atomic_store_explicit(&parts[i], (uint16_t)(n - n / 2), memory_order_relaxed);
    }
}

static void count_part(_Atomic uint16_t parts[GW_BUCKET_PARTS], unsigned part)
{
    if (atomic_load_explicit(&parts[part], memory_order_relaxed) == UINT16_MAX)
        halve(parts);
    atomic_store_explicit(&parts[part],
                          (uint16_t)(atomic_load_explicit(&parts[part], memory_order_relaxed) + 1),
                          memory_order_relaxed);
}

/* Eight of one width: a bucket is as wide as its lower bound, the first one begins at 0. */
static unsigned bucket_part(uint64_t us, unsigned bucket)
{
    const unsigned width_bits = bucket + GW_BUCKET_SHIFT - (bucket > 0);
    const uint64_t from_low = us ? us - 1 - low_us(bucket) : 0;

    return (unsigned)(from_low * GW_BUCKET_PARTS >> width_bits);
}

static void count_latency(struct gw_latency_meter *meter, int64_t latency_ns)
{
    const uint64_t ns = latency_ns > 0 ? (uint64_t)latency_ns : 0;
    const uint64_t us = (ns + 999) / 1000;
    const unsigned bucket = bucket_of(us);

    add_to(&meter->sum_ns, ns);
    if (ns > load_counter(&meter->max_ns))
        atomic_store_explicit(&meter->max_ns, ns, memory_order_relaxed);
    if (bucket < GW_BUCKETS - 1)
        count_part(meter->parts[bucket], bucket_part(us, bucket));
    add_to(&meter->buckets[bucket], 1);
}

static void share_out(const _Atomic uint16_t parts[GW_BUCKET_PARTS], uint64_t n,
                      double into[GW_BUCKET_PARTS])
{
    double counts[GW_BUCKET_PARTS];
    double sum = 0;

    for (int i = 0; i < GW_BUCKET_PARTS; i++) {
        counts[i] = (double)atomic_load_explicit(&parts[i], memory_order_relaxed);
        sum += counts[i];
    }
    for (int i = 0; i < GW_BUCKET_PARTS && sum > 0; i++)
        into[i] += (double)n * counts[i] / sum;
}

static void collect_latency(const struct gw_latency_meter *meter, struct gw_latencies *into)
{
    const uint64_t max_ns = load_counter(&meter->max_ns);

    if (max_ns > into->max_ns)
        into->max_ns = max_ns;
    for (int i = 0; i < GW_BUCKETS; i++) {
        const uint64_t n = load_counter(&meter->buckets[i]);

        into->buckets[i] += n;
        if (i < GW_BUCKETS - 1)
            share_out(meter->parts[i], n, into->parts[i]);
    }
}

/* Where in a bucket the wanted call lies, of those that are in it; from 0 to 1. */
static double place_in(const double parts[GW_BUCKET_PARTS], double wanted)
{
    double before = 0;
    int i = 0;

    while (i < GW_BUCKET_PARTS - 1 && (parts[i] <= 0 || before + parts[i] < wanted))
        before += parts[i++];
    if (parts[i] <= 0 || wanted - before > parts[i])
        return 1;
    return (i + (wanted - before) / parts[i]) / GW_BUCKET_PARTS;
}

double gw_latency_quantile_ms(const struct gw_latencies *latencies, double part)
{
    const double max_ms = (double)latencies->max_ns / 1e6;
    const uint64_t *buckets = latencies->buckets;
    double wanted;
    double before = 0;
    double low_ms;
    double ms;
    uint64_t n = 0;
    unsigned i = 0;

    for (int b = 0; b < GW_BUCKETS; b++)
        n += buckets[b];
    if (!n)
        return 0;
    wanted = part * (double)n;
    while (i < GW_BUCKETS - 1 && (!buckets[i] || before + (double)buckets[i] < wanted))
        before += (double)buckets[i++];
    low_ms = (double)low_us(i) / 1000;
    if (i == GW_BUCKETS - 1) /* it has no upper bound but the longest call */
        ms = low_ms + (max_ms - low_ms) * (wanted - before) / (double)(buckets[i] ? buckets[i] : 1);
    else
        ms = low_ms +
             ((double)high_us(i) / 1000 - low_ms) * place_in(latencies->parts[i], wanted - before);
    return ms < max_ms ? ms : max_ms;
}

/* ---- its life ---- */

peg_status gw_metrics_new(unsigned n_loops, struct gw_metrics **ret_metrics, peg_error *reterr)
{
    struct gw_metrics *metrics =
        peg__alloc_zero(1, sizeof(*metrics) + n_loops * sizeof(metrics->loops[0]));

    if (!metrics)
        return peg__fail_nomem(reterr);
    metrics->n_loops = n_loops;
    for (unsigned i = 0; i < n_loops; i++) {
        pthread_mutex_init(&metrics->loops[i].lock, NULL);
        metrics->loops[i].meters.max = PEG_LIMIT_GATEWAY_METERS;
    }
    *ret_metrics = metrics;
    return PEG_OK;
}

struct gw_metrics *gw_metrics_free(struct gw_metrics *metrics)
{
    if (!metrics)
        return NULL;
    for (unsigned i = 0; i < metrics->n_loops; i++) {
        struct loop_meters *loop = &metrics->loops[i];

        PEG__MAP_EACH(&loop->meters, entry)
        peg__free(entry->value);
        peg__map_free(&loop->meters);
        pthread_mutex_destroy(&loop->lock);
    }
    peg__free(metrics);
    return NULL;
}

/* ---- counting ---- */

struct gw_toolset_meter *gw_metrics_meter(struct gw_metrics *metrics, unsigned loop,
                                          peg_str toolset)
{
    struct loop_meters *here;
    struct gw_toolset_meter *meter;
    peg_status status;

    if (!metrics || loop >= metrics->n_loops)
        return NULL;
    here = &metrics->loops[loop];
    meter = peg__map_get(&here->meters, toolset);
    if (meter)
        return meter;
    if (here->meters.n >= PEG_LIMIT_GATEWAY_METERS)
        return &here->other;
    meter = peg__alloc_zero(1, sizeof(*meter));
    if (!meter)
        return NULL;
    pthread_mutex_lock(&here->lock);
    status = peg__map_add(&here->meters, toolset, meter);
    pthread_mutex_unlock(&here->lock);
    if (!status)
        return meter;
    peg__free(meter);
    return NULL;
}

void gw_meter_admitted(struct gw_toolset_meter *meter)
{
    if (meter)
        add_to(&meter->admitted, 1);
}

void gw_meter_ended(struct gw_toolset_meter *meter, enum calls_outcome_kind outcome,
                    int64_t latency_ns)
{
    if (!meter || (unsigned)outcome >= CALLS_N_KINDS)
        return;
    add_to(&meter->ended, 1);
    add_to(&meter->outcomes[outcome], 1);
    count_latency(&meter->latency, latency_ns);
}

void gw_meter_refused(struct gw_toolset_meter *meter)
{
    if (meter)
        add_to(&meter->outcomes[CALLS_KIND_REFUSED], 1);
}

void gw_meter_queued(struct gw_toolset_meter *meter, int by)
{
    if (!meter)
        return;
    atomic_store_explicit(&meter->queued,
                          atomic_load_explicit(&meter->queued, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

void gw_meter_late_result(struct gw_toolset_meter *meter)
{
    if (meter)
        add_to(&meter->late_results, 1);
}

/* ---- reading ---- */

/* What callers asked for, whether it was taken or not. */
static uint64_t count_asked(const struct gw_toolset_meter *meter)
{
    return load_counter(&meter->admitted) + load_counter(&meter->outcomes[CALLS_KIND_REFUSED]);
}

static double rate_of(const struct gw_metrics *metrics, const struct gw_toolset_meter *meter)
{
    const uint64_t n = atomic_load_explicit(&metrics->n_ticks, memory_order_acquire);
    unsigned newest;
    unsigned oldest;
    int64_t span_ns;

    if (n < 2)
        return 0;
    newest = (unsigned)((n - 1) % TICKS);
    oldest = n < TICKS ? 0 : (unsigned)((n + 1) % TICKS);
    span_ns = atomic_load_explicit(&metrics->ticks_ns[newest], memory_order_relaxed) -
              atomic_load_explicit(&metrics->ticks_ns[oldest], memory_order_relaxed);
    if (span_ns <= 0 ||
        load_counter(&meter->at_ticks[newest]) < load_counter(&meter->at_ticks[oldest]))
        return 0;
    return (double)(load_counter(&meter->at_ticks[newest]) -
                    load_counter(&meter->at_ticks[oldest])) /
           ((double)span_ns / (double)PEG_NS_PER_S);
}

static void add_meter(const struct gw_metrics *metrics, const struct gw_toolset_meter *meter,
                      struct gw_totals *totals)
{
    /* What has ended is read first, so that no call counts as ended and not as begun. */
    const uint64_t ended = load_counter(&meter->ended);
    const uint64_t admitted = load_counter(&meter->admitted);

    for (int i = 0; i < CALLS_N_KINDS; i++)
        totals->outcomes[i] += load_counter(&meter->outcomes[i]);
    for (int i = 0; i < GW_BUCKETS; i++)
        totals->buckets[i] += load_counter(&meter->latency.buckets[i]);
    totals->admitted += admitted;
    totals->in_flight += admitted > ended ? (int64_t)(admitted - ended) : 0;
    totals->queued += atomic_load_explicit(&meter->queued, memory_order_relaxed);
    totals->late_results += load_counter(&meter->late_results);
    totals->latency_ns += load_counter(&meter->latency.sum_ns);
    totals->calls_per_s += rate_of(metrics, meter);
}

/* NULL if the toolset has no calls on that loop. */
static const struct gw_toolset_meter *find_meter(struct loop_meters *loop, peg_str toolset)
{
    const struct gw_toolset_meter *meter;

    if (!toolset.len)
        return &loop->other;
    pthread_mutex_lock(&loop->lock);
    meter = peg__map_get(&loop->meters, toolset);
    pthread_mutex_unlock(&loop->lock);
    return meter;
}

void gw_metrics_add(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *totals)
{
    for (unsigned i = 0; i < metrics->n_loops; i++) {
        const struct gw_toolset_meter *meter = find_meter(&metrics->loops[i], toolset);

        if (meter)
            add_meter(metrics, meter, totals);
    }
}

void gw_metrics_of(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *ret_totals)
{
    *ret_totals = (struct gw_totals){0};
    gw_metrics_add(metrics, toolset, ret_totals);
}

void gw_metrics_latencies(struct gw_metrics *metrics, peg_str toolset,
                          struct gw_latencies *ret_latencies)
{
    *ret_latencies = (struct gw_latencies){0};
    for (unsigned i = 0; i < metrics->n_loops; i++) {
        const struct gw_toolset_meter *meter = find_meter(&metrics->loops[i], toolset);

        if (meter)
            collect_latency(&meter->latency, ret_latencies);
    }
}

void gw_metrics_total(struct gw_metrics *metrics, struct gw_totals *ret_totals)
{
    *ret_totals = (struct gw_totals){0};
    for (unsigned i = 0; i < metrics->n_loops; i++) {
        struct loop_meters *loop = &metrics->loops[i];

        pthread_mutex_lock(&loop->lock);
        PEG__MAP_EACH(&loop->meters, entry)
        add_meter(metrics, entry->value, ret_totals);
        pthread_mutex_unlock(&loop->lock);
        add_meter(metrics, &loop->other, ret_totals);
    }
}

/* ---- rates ---- */

void gw_metrics_tick(struct gw_metrics *metrics, int64_t mono_ns)
{
    const uint64_t n = atomic_load_explicit(&metrics->n_ticks, memory_order_relaxed);
    const unsigned at = (unsigned)(n % TICKS);

    for (unsigned i = 0; i < metrics->n_loops; i++) {
        struct loop_meters *loop = &metrics->loops[i];

        pthread_mutex_lock(&loop->lock);
        PEG__MAP_EACH(&loop->meters, entry)
        {
            struct gw_toolset_meter *meter = entry->value;

            atomic_store_explicit(&meter->at_ticks[at], count_asked(meter), memory_order_relaxed);
        }
        pthread_mutex_unlock(&loop->lock);
        atomic_store_explicit(&loop->other.at_ticks[at], count_asked(&loop->other),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&metrics->ticks_ns[at], mono_ns, memory_order_relaxed);
    atomic_store_explicit(&metrics->n_ticks, n + 1, memory_order_release);
}
