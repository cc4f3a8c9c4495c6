/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_METRICS_H
#define PEG_GATEWAY_TELEMETRY_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "bus/redis/redis.h"
#include "calls/outcome.h"
#include "pegboard/common.h"

/*
 * How long calls took, since the start, in a few hundred bytes however many they were. Counted in
 * buckets whose bounds double, which are exact and go to Prometheus; each has eight parts that say
 * where in it calls lie, so that a quantile is off by an eighth at most and mostly by less. The
 * parts are small counters: only how they compare is used, so they are halved before they overflow.
 */

enum {
    /* Bucket i has what took at most 2^(i + 4) microseconds (16 us to 67 s), the last one the
     * rest. */
    GW_BUCKETS = 24,
    GW_BUCKET_SHIFT = 4,
    GW_BUCKET_PARTS = 8,
};

/* Of several meters; {0} of none. */
struct gw_latencies {
    uint64_t max_ns;
    uint64_t buckets[GW_BUCKETS];
    double parts[GW_BUCKETS - 1]
                [GW_BUCKET_PARTS]; /* calls of the bucket, as its parts share them */
};

/* A latency that this part (0 to 1) of calls did not exceed, never more than the longest; 0 if
 * there was no call. */
double gw_latency_quantile_ms(const struct gw_latencies *latencies, double part);

/*
 * Counters by toolset. Each loop counts for itself; readers add them up. A toolset that is not
 * registered has no line of its own, so that callers cannot make any.
 */

/* "result", "outcome_unknown"; static. */
const char *gw_outcome_kind_name(enum calls_outcome_kind outcome);

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
void gw_meter_ended(struct gw_toolset_meter *meter, enum calls_outcome_kind outcome,
                    int64_t latency_ns);
void gw_meter_refused(struct gw_toolset_meter *meter);
void gw_meter_queued(struct gw_toolset_meter *meter, int by);
void gw_meter_late_result(struct gw_toolset_meter *meter);

/* ---- reading: any thread; sums over all loops, each counter by itself ---- */

struct gw_totals {
    uint64_t outcomes[CALLS_N_KINDS];
    uint64_t admitted;
    int64_t in_flight;
    int64_t queued;
    uint64_t late_results;
    uint64_t buckets[GW_BUCKETS]; /* not cumulative; of all that was admitted and has ended */
    uint64_t latency_ns;          /* their sum */
    double calls_per_s;           /* asked for, over the last ten seconds; see gw_metrics_tick() */
};

/* What a toolset has; all zero if it was never called. */
void gw_metrics_of(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *ret_totals);
/* Adds what a toolset has. */
void gw_metrics_add(struct gw_metrics *metrics, peg_str toolset, struct gw_totals *totals);
/* All toolsets together. */
void gw_metrics_total(struct gw_metrics *metrics, struct gw_totals *ret_totals);
/* How long calls of a toolset took. */
void gw_metrics_latencies(struct gw_metrics *metrics, peg_str toolset,
                          struct gw_latencies *ret_latencies);

/* Once a second, from one thread: keeps the counters, from which rates are computed. */
void gw_metrics_tick(struct gw_metrics *metrics, int64_t mono_ns);

/*
 * Metrics as Prometheus reads them (text format 0.0.4). A principal has series of its own for its
 * first PEG_LIMIT_GATEWAY_OWN_SERIES toolsets by name; calls and providers of the rest are summed
 * under GW_METRICS_OTHER, which no toolset can be named, and pegboard_toolsets_left_out says how
 * many they are. Latencies of a toolset take two dozen lines: beyond PEG_LIMIT_GATEWAY_HISTOGRAMS
 * toolsets they are summed there, too, and pegboard_histograms_left_out says of how many.
 */

#define GW_METRICS_OTHER "(other)"

/* What a toolset is now; borrowed. */
struct gw_metrics_toolset {
    peg_str name;
    peg_str owner; /* the principal */
    bool is_healthy;
    int64_t last_pong_ms; /* Unix time; 0: never */
    unsigned n_providers;
    unsigned n_draining;
};

/* What a node is now. */
struct gw_metrics_node {
    const char *version;
    const char *bus;
    const char *store;
    peg_str registry;
    int64_t now_ms;
    int64_t started_ms;
    uint64_t n_connections;
    uint64_t n_refused_connections;
    uint64_t n_evicted_connections;
    uint64_t n_held_bytes;      /* by connections */
    uint64_t n_unauthenticated; /* calls and requests of unknown senders */
    uint64_t n_rpcs;            /* since the start */
    uint64_t n_running_rpcs;
    uint64_t rss_bytes;  /* 0: not known */
    uint64_t heap_bytes; /* likewise */
    unsigned n_loops;
    uint64_t n_wakes; /* of all loops, by messages */
    uint64_t n_log_lines_dropped;
    bool has_spans; /* the following are known */
    struct {
        uint64_t n_exported;
        uint64_t n_dropped;
        uint64_t n_failures;
    } spans;
    bool is_draining;
    bool has_redis;
    struct bus_redis_stats redis;
    struct {
        uint64_t n_pings;
        uint64_t n_trims;
        uint64_t n_expiries;
        uint64_t n_removed_fields;
    } direct; /* what this node does for direct toolsets while it leads */
    size_t n_toolsets;
    size_t n_tools;
    const struct gw_metrics_toolset *toolsets; /* n_toolsets of them, in the order of the page */
};

void gw_metrics_write(struct gw_metrics *metrics, const struct gw_metrics_node *node,
                      struct peg__buf *out);
/* A value of a label: backslash, quote and line feed escaped. */
void gw_metrics_put_label(struct peg__buf *out, peg_str value);
/* Resident memory of this process; 0 if the system does not tell. */
uint64_t gw_rss_bytes(void);
/* What is allocated and not freed, however much the allocator keeps beside it; 0 likewise. */
uint64_t gw_measure_heap(void);
/* The same, up to PEG_LIMIT_GATEWAY_HEAP_MS old. */
uint64_t gw_heap_bytes(void);

/*
 * The text of /metrics, made on request and kept for PEG_LIMIT_GATEWAY_METRICS_MS for all other
 * requests, whatever loop they are on. Requests that come while it is being made wait for it.
 *
 *   loop 0   looks at the toolsets, some at a time: their health may be read there only
 *   worker   adds up the counters and writes the text
 *   loop 0   keeps it; each loop wakes those who wait on it
 */

struct gw_metrics_page;
struct gw_node;
struct peg__blob;

/* A request for the text, in its owner's memory; on its loop. */
struct gw_page_waiter {
    /* Once. The text is borrowed; NULL: there was no memory for it. */
    void (*fn)(struct gw_page_waiter *waiter, struct peg__blob *text);
    bool is_waiting; /* the rest is the page's */
    struct gw_page_waiter *next;
    struct gw_page_waiter *prev;
};

peg_status gw_metrics_page_new(struct gw_node *node, struct gw_metrics_page **ret_page,
                               peg_error *reterr);
/* Stops reading the node: after the last request, while the loops run; from a thread that is
 * none of theirs. */
void gw_metrics_page_stop(struct gw_metrics_page *page);
/* After the loops, before the metrics. */
struct gw_metrics_page *gw_metrics_page_free(struct gw_metrics_page *page);

/* On the loop `number`: calls the waiter's function, now or later. */
void gw_metrics_page_ask(struct gw_metrics_page *page, unsigned number,
                         struct gw_page_waiter *waiter);
/* Takes a waiter back that may still wait. */
void gw_metrics_page_leave(struct gw_metrics_page *page, unsigned number,
                           struct gw_page_waiter *waiter);
/* Any thread: how many were made. */
uint64_t gw_metrics_page_n_made(const struct gw_metrics_page *page);

#endif
