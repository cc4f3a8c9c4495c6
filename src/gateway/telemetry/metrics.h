/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_METRICS_H
#define PEG_GATEWAY_TELEMETRY_METRICS_H

/*
 * What is counted, by toolset. Each loop counts for itself; whoever asks adds them up. A toolset
 * that nobody registered has no line of its own, so that callers cannot make any.
 */

#include "gateway/telemetry/latency.h"
#include "pegboard/common.h"

enum gw_outcome_kind {
    GW_RESULT,
    GW_ERROR,
    GW_TIMEOUT,
    GW_CANCELED,
    GW_OUTCOME_UNKNOWN,
    GW_REFUSED, /* never admitted */
    GW_N_OUTCOMES,
};
/* "result", "outcome_unknown"; static. */
const char *gw_outcome_kind_name(enum gw_outcome_kind outcome);

struct gw_metrics;       /* of a node; any thread may read it */
struct gw_toolset_meter; /* of one toolset on one loop */

peg_status gw_metrics_new(unsigned n_loops, struct gw_metrics **ret_metrics, peg_error *reterr);
struct gw_metrics *gw_metrics_free(struct gw_metrics *metrics);

/* The meter of a toolset on a loop, made at first use; NULL without memory, which all below take.
 * It lives as long as the metrics. Beyond PEG_LIMIT_GATEWAY_METERS of them all others share one,
 * whose toolset is "". On that loop. */
struct gw_toolset_meter *gw_metrics_meter(struct gw_metrics *metrics, unsigned loop,
                                          peg_str toolset);
void gw_meter_admitted(struct gw_toolset_meter *meter);
void gw_meter_ended(struct gw_toolset_meter *meter, enum gw_outcome_kind outcome,
                    int64_t latency_ns);
void gw_meter_refused(struct gw_toolset_meter *meter);
void gw_meter_queued(struct gw_toolset_meter *meter, int by);
void gw_meter_late_result(struct gw_toolset_meter *meter);

/* ---- reading: any thread; sums over all loops, each counter by itself -------------------------
 */

struct gw_totals {
    uint64_t outcomes[GW_N_OUTCOMES];
    uint64_t admitted;
    int64_t in_flight;
    int64_t queued;
    uint64_t late_results;
    uint64_t buckets[GW_BUCKETS]; /* not cumulative; of all that was admitted and has ended */
    uint64_t latency_ns;          /* their sum */
    double calls_per_s;           /* asked for, over the last ten seconds; see gw_metrics_tick() */
};

/* What a toolset has; all zero if nobody has called it. */
void gw_metrics_of(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *ret_totals);
/* Adds what a toolset has. */
void gw_metrics_add(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *totals);
/* All toolsets together. */
void gw_metrics_total(struct gw_metrics *metrics, struct gw_totals *ret_totals);
/* How long calls of a toolset took. */
void gw_metrics_latencies(struct gw_metrics *metrics, peg_str toolset,
                          struct gw_latencies *ret_latencies);

/* Once a second, from one thread: remembers what was, so that rates can be told. */
void gw_metrics_tick(struct gw_metrics *metrics, int64_t mono_ns);

#endif
