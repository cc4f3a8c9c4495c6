/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BENCH_GRPC_LOAD_H
#define PEG_BENCH_GRPC_LOAD_H

/* Figures of one measurement: how long things took, and what the server paid. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Durations in buckets of 1/64 of their size: quantiles are right within 1.6 %. */
enum { HISTOGRAM_SUB = 64, HISTOGRAM_BUCKETS = 40 * HISTOGRAM_SUB };

struct histogram {
    uint64_t n;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, int64_t ns);
/* The middle of the bucket in which the quantile lies, in microseconds; 0 if nothing was added. */
double histogram_quantile_us(const struct histogram *histogram, double quantile);

int64_t now_ns(void);
/* CPU that a process has had since its start, all threads, also those that have ended; the
 * program ends if there is no such process. */
int64_t process_cpu_ns(pid_t pid);
int64_t own_cpu_ns(void);

#endif
