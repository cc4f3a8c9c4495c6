/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_METRICS_TEXT_H
#define PEG_GATEWAY_TELEMETRY_METRICS_TEXT_H

/*
 * Metrics as Prometheus reads them (text format 0.0.4). A principal has series of its own for its
 * first PEG_LIMIT_GATEWAY_OWN_SERIES toolsets by name; calls and providers of the rest are summed
 * under GW_METRICS_OTHER, which no toolset can be named, and pegboard_toolsets_left_out says how
 * many they are. Latencies of a toolset take two dozen lines: beyond PEG_LIMIT_GATEWAY_HISTOGRAMS
 * toolsets they are summed there, too, and pegboard_histograms_left_out says of how many.
 */

#include "base/buf.h"
#include "gateway/telemetry/metrics.h"

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
    uint64_t n_unauthenticated; /* calls and requests of nobody who is known */
    uint64_t n_rpcs;            /* since the start */
    uint64_t n_running_rpcs;
    uint64_t rss_bytes;  /* 0: not known */
    uint64_t heap_bytes; /* likewise */
    unsigned n_loops;
    uint64_t n_wakes; /* of all loops, by letters and other messages */
    uint64_t n_log_lines_dropped;
    bool is_draining;
    size_t n_toolsets;
    size_t n_tools;
    const struct gw_metrics_toolset *toolsets; /* n_toolsets of them, in the order they are told */
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

#endif
