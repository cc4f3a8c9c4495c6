/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_LATENCY_H
#define PEG_GATEWAY_TELEMETRY_LATENCY_H

/*
 * How long calls took, since the start, in a few hundred bytes however many they were. Counted in
 * buckets whose bounds double, which are exact and go to Prometheus; each has eight parts that say
 * where in it calls lie, so that a quantile is off by an eighth at most and mostly by less. The
 * parts are small counters: only how they compare is used, so they are halved before they overflow.
 */

#include <stdatomic.h>
#include <stdint.h>

enum {
    /* Bucket i has what took at most 2^(i + 4) microseconds (16 us to 67 s), the last one the
     * rest. */
    GW_BUCKETS = 24,
    GW_BUCKET_SHIFT = 4,
    GW_BUCKET_PARTS = 8,
};

/* 576 bytes. One thread writes, any may read. */
struct gw_latency_meter {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t max_ns;
    _Atomic uint64_t buckets[GW_BUCKETS];
    _Atomic uint16_t parts[GW_BUCKETS - 1][GW_BUCKET_PARTS]; /* the last one has no end to divide */
};

void gw_latency_count(struct gw_latency_meter *meter, int64_t latency_ns);

/* Of several meters; {0} of none. */
struct gw_latencies {
    uint64_t max_ns;
    uint64_t buckets[GW_BUCKETS];
    double parts[GW_BUCKETS - 1]
                [GW_BUCKET_PARTS]; /* calls of the bucket, as its parts share them */
};

void gw_latency_collect(const struct gw_latency_meter *meter, struct gw_latencies *into);
/* A latency that this part (0 to 1) of calls did not exceed, never more than the longest; 0 if
 * there was no call. */
double gw_latency_quantile_ms(const struct gw_latencies *latencies, double part);

#endif
