/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/telemetry/latency.h"

static uint64_t get(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* By the one thread that writes: no locked instruction. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, get(to) + n, memory_order_relaxed);
}

/* A bucket has what took more than the one and at most the other. */
static uint64_t low_us(unsigned bucket)
{
    return bucket ? UINT64_C(1) << (bucket - 1 + GW_BUCKET_SHIFT) : 0;
}

static uint64_t high_us(unsigned bucket)
{
    return UINT64_C(1) << (bucket + GW_BUCKET_SHIFT);
}

/* ---- counting ------------------------------------------------------------------------------ */

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
static unsigned part_of(uint64_t us, unsigned bucket)
{
    const unsigned width_bits = bucket + GW_BUCKET_SHIFT - (bucket > 0);
    const uint64_t from_low = us ? us - 1 - low_us(bucket) : 0;

    return (unsigned)(from_low * GW_BUCKET_PARTS >> width_bits);
}

void gw_latency_count(struct gw_latency_meter *meter, int64_t latency_ns)
{
    const uint64_t ns = latency_ns > 0 ? (uint64_t)latency_ns : 0;
    const uint64_t us = (ns + 999) / 1000;
    const unsigned bucket = bucket_of(us);

    add(&meter->sum_ns, ns);
    if (ns > get(&meter->max_ns))
        atomic_store_explicit(&meter->max_ns, ns, memory_order_relaxed);
    if (bucket < GW_BUCKETS - 1)
        count_part(meter->parts[bucket], part_of(us, bucket));
    add(&meter->buckets[bucket], 1);
}

/* ---- reading ------------------------------------------------------------------------------- */

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

void gw_latency_collect(const struct gw_latency_meter *meter, struct gw_latencies *into)
{
    const uint64_t max_ns = get(&meter->max_ns);

    if (max_ns > into->max_ns)
        into->max_ns = max_ns;
    for (int i = 0; i < GW_BUCKETS; i++) {
        const uint64_t n = get(&meter->buckets[i]);

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
