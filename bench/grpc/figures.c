/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "load.h"

static unsigned bucket_of(uint64_t ns)
{
    unsigned shift = 0;

    while (ns >> shift >= 2ULL * HISTOGRAM_SUB)
        shift++;
    unsigned bucket = (unsigned)(ns >> shift) + shift * HISTOGRAM_SUB;
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The least that falls into the bucket. */
static double bucket_start(unsigned bucket)
{
    if (bucket < 2 * HISTOGRAM_SUB)
        return bucket;
    unsigned shift = bucket / HISTOGRAM_SUB - 1;
    return (double)((uint64_t)(bucket - shift * HISTOGRAM_SUB) << shift);
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
    histogram->n++;
    histogram->counts[bucket_of(ns > 0 ? (uint64_t)ns : 0)]++;
}

double histogram_quantile_us(const struct histogram *histogram, double quantile)
{
    double wanted = quantile * (double)histogram->n;
    uint64_t seen = 0;

    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > 0 && (double)seen >= wanted)
            return (bucket_start(i) + bucket_start(i + 1)) / 2 / 1000;
    }
    return 0;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t)) {
        perror("grpc-load: a clock cannot be read");
        exit(1);
    }
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t process_cpu_ns(pid_t pid)
{
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock)) {
        fprintf(stderr, "grpc-load: there is no process %d\n", (int)pid);
        exit(1);
    }
    return read_clock(clock);
}

int64_t own_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}
