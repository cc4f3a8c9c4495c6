/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_METRICS_H
#define PEG_GATEWAY_METRICS_H

/*
 * What is counted, by toolset. Each loop counts for itself; whoever asks adds them up. A toolset
 * that nobody registered has no line of its own, so that callers cannot make any.
 */

#include "pegboard/common.h"

enum gw_outcome {
    GW_RESULT,
    GW_ERROR,
    GW_TIMEOUT,
    GW_CANCELED,
    GW_OUTCOME_UNKNOWN,
    GW_REFUSED, /* never admitted */
    GW_N_OUTCOMES,
};

struct gw_metrics;       /* of a node; any thread may read it */
struct gw_toolset_meter; /* of one toolset on one loop */

/* The meter of a toolset on a loop, made at first use; NULL without memory, which all below take.
 * It lives as long as the metrics. */
struct gw_toolset_meter *gw_metrics_meter(struct gw_metrics *metrics, unsigned loop,
                                          peg_str toolset);
void gw_meter_admitted(struct gw_toolset_meter *meter);
void gw_meter_ended(struct gw_toolset_meter *meter, enum gw_outcome outcome, int64_t latency_ns);
void gw_meter_refused(struct gw_toolset_meter *meter);
void gw_meter_queued(struct gw_toolset_meter *meter, int by);
void gw_meter_late_result(struct gw_toolset_meter *meter);

#endif
