/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A family of metrics is written in one piece: its help, its type, then a line for each toolset. So
 * all toolsets are added up first, and walked once for each family. The sum of those that have no
 * series of their own is the last of them; it has no health.
 */

#include "gateway/telemetry/metrics.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
#define HAS_MALLINFO2
#include <malloc.h>
#endif
#endif

enum {
    /* What lines of the node take at most of an answer; the rest is for toolsets. */
    NODE_BYTES = 64 << 10,
    TOOLSETS_BYTES = PEG_LIMIT_GATEWAY_METRICS_BYTES - 2 * NODE_BYTES,
    /* Of a toolset: lines, and what the longest takes without the name. */
    LINES = 7 + CALLS_N_KINDS,
    LINE_BYTES = 80,
    HISTOGRAM_LINES = GW_BUCKETS + 2,
    HISTOGRAM_LINE_BYTES = 96,
};

struct text {
    struct peg__buf *out;
    const struct gw_metrics_node *node;
    const struct gw_metrics_toolset **shown; /* that have series of their own */
    struct gw_totals *totals;                /* of each of them */
    size_t n_shown;
    bool has_other; /* what the rest has together: */
    struct gw_metrics_toolset other;
    struct gw_totals other_totals;
    size_t n_histograms; /* that were told, and that were not */
    size_t n_left_out;
};

/* ---- words ---- */

static void put_unsigned(struct peg__buf *out, uint64_t n)
{
    char digits[24];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    peg__buf_add(out, digits + at, sizeof(digits) - at);
}

static void put_signed(struct peg__buf *out, int64_t n)
{
    if (n < 0)
        peg__buf_putc(out, '-');
    put_unsigned(out, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* Without an exponent, and exact. */
static void put_thousandths(struct peg__buf *out, int64_t n)
{
    const int64_t positive = n < 0 ? 0 : n;

    peg__buf_printf(out, "%lld.%03d", (long long)(positive / 1000), (int)(positive % 1000));
}

static const char *escape_of(char c)
{
    switch (c) {
    case '\\':
        return "\\\\";
    case '"':
        return "\\\"";
    case '\n':
        return "\\n";
    default:
        return NULL;
    }
}

static size_t label_len(peg_str value)
{
    size_t len = value.len;

    for (size_t i = 0; i < value.len; i++)
        len += escape_of(value.ptr[i]) != NULL;
    return len;
}

void gw_metrics_put_label(struct peg__buf *out, peg_str value)
{
    size_t done = 0; /* what needs no escape is added in one piece: there are many labels */

    peg__buf_putc(out, '"');
    for (size_t i = 0; i < value.len; i++) {
        const char *escape = escape_of(value.ptr[i]);

        if (!escape)
            continue;
        peg__buf_add(out, value.ptr + done, i - done);
        peg__buf_puts(out, escape);
        done = i + 1;
    }
    peg__buf_add(out, value.ptr + done, value.len - done);
    peg__buf_putc(out, '"');
}

static void put_family(struct peg__buf *out, const char *name, const char *type, const char *help)
{
    peg__buf_puts(out, "# HELP ");
    peg__buf_puts(out, name);
    peg__buf_putc(out, ' ');
    peg__buf_puts(out, help);
    peg__buf_puts(out, "\n# TYPE ");
    peg__buf_puts(out, name);
    peg__buf_putc(out, ' ');
    peg__buf_puts(out, type);
    peg__buf_putc(out, '\n');
}

/* name{toolset="x" -- and what `more` adds -- } up to the value. */
static void put_start(struct peg__buf *out, const char *name, peg_str toolset, const char *more)
{
    peg__buf_puts(out, name);
    peg__buf_puts(out, "{toolset=");
    gw_metrics_put_label(out, toolset);
    peg__buf_puts(out, more);
    peg__buf_puts(out, "} ");
}

static void put_metric_value(struct peg__buf *out, uint64_t n)
{
    put_unsigned(out, n);
    peg__buf_putc(out, '\n');
}

static void put_seconds(struct peg__buf *out, uint64_t ns)
{
    peg__buf_printf(out, "%llu.%06u\n", (unsigned long long)(ns / 1000000000),
                    (unsigned)(ns % 1000000000 / 1000));
}

/* ---- toolsets ---- */

static void put_health(struct text *t)
{
    static const char healthy[] = "pegboard_toolset_healthy";
    static const char age[] = "pegboard_toolset_last_pong_age_seconds";

    put_family(t->out, healthy, "gauge", "1 if a provider of the toolset is healthy, else 0.");
    for (size_t i = 0; i < t->n_shown - t->has_other; i++) {
        put_start(t->out, healthy, t->shown[i]->name, "");
        put_metric_value(t->out, t->shown[i]->is_healthy);
    }
    put_family(t->out, age, "gauge", "Time since the last pong of a provider of the toolset.");
    for (size_t i = 0; i < t->n_shown - t->has_other; i++) {
        const struct gw_metrics_toolset *toolset = t->shown[i];

        if (!toolset->last_pong_ms)
            continue;
        put_start(t->out, age, toolset->name, "");
        put_thousandths(t->out, t->node->now_ms - toolset->last_pong_ms);
        peg__buf_putc(t->out, '\n');
    }
}

static void put_providers(struct text *t)
{
    static const char name[] = "pegboard_toolset_providers";

    put_family(t->out, name, "gauge", "Providers of the toolset that are attached.");
    for (size_t i = 0; i < t->n_shown; i++) {
        const struct gw_metrics_toolset *toolset = t->shown[i];
        const unsigned n_draining =
            toolset->n_draining < toolset->n_providers ? toolset->n_draining : toolset->n_providers;

        put_start(t->out, name, toolset->name, ",state=\"serving\"");
        put_metric_value(t->out, toolset->n_providers - n_draining);
        put_start(t->out, name, toolset->name, ",state=\"draining\"");
        put_metric_value(t->out, n_draining);
    }
}

/* Also of a toolset without calls: a counter that is 1 when it is first seen has not
 * increased, for an alert. choose_series() has room for it. */
static void put_calls(struct text *t)
{
    static const char name[] = "pegboard_calls_total";
    char more[CALLS_N_KINDS][48];

    for (int outcome = 0; outcome < CALLS_N_KINDS; outcome++)
        snprintf(more[outcome], sizeof(more[outcome]), ",outcome=\"%s\"",
                 gw_outcome_kind_name((enum calls_outcome_kind)outcome));
    put_family(t->out, name, "counter", "Calls of the toolset by how they ended, on this node.");
    for (size_t i = 0; i < t->n_shown; i++) {
        for (int outcome = 0; outcome < CALLS_N_KINDS; outcome++) {
            put_start(t->out, name, t->shown[i]->name, more[outcome]);
            put_metric_value(t->out, t->totals[i].outcomes[outcome]);
        }
    }
}

static void put_waiting(struct text *t)
{
    static const char in_flight[] = "pegboard_calls_in_flight";
    static const char queued[] = "pegboard_queue_depth";
    static const char late[] = "pegboard_late_results_total";

    put_family(t->out, in_flight, "gauge",
               "Calls of the toolset that were admitted here and have not ended.");
    for (size_t i = 0; i < t->n_shown; i++) {
        put_start(t->out, in_flight, t->shown[i]->name, "");
        put_signed(t->out, t->totals[i].in_flight);
        peg__buf_putc(t->out, '\n');
    }
    put_family(t->out, queued, "gauge",
               "Calls of the toolset that wait for a provider on this node.");
    for (size_t i = 0; i < t->n_shown; i++) {
        put_start(t->out, queued, t->shown[i]->name, "");
        put_signed(t->out, t->totals[i].queued);
        peg__buf_putc(t->out, '\n');
    }
    put_family(t->out, late, "counter", "Results that came after the end of their call.");
    for (size_t i = 0; i < t->n_shown; i++) {
        put_start(t->out, late, t->shown[i]->name, "");
        put_metric_value(t->out, t->totals[i].late_results);
    }
}

static void put_histogram(struct text *t, peg_str toolset, const struct gw_totals *totals)
{
    uint64_t n = 0;

    for (int i = 0; i < GW_BUCKETS; i++) {
        const unsigned long us = 1UL << (i + GW_BUCKET_SHIFT);
        char more[40] = ",le=\"+Inf\"";

        n += totals->buckets[i];
        if (i < GW_BUCKETS - 1)
            snprintf(more, sizeof(more), ",le=\"%lu.%06lu\"", us / 1000000, us % 1000000);
        put_start(t->out, "pegboard_call_duration_seconds_bucket", toolset, more);
        put_metric_value(t->out, n);
    }
    put_start(t->out, "pegboard_call_duration_seconds_sum", toolset, "");
    put_seconds(t->out, totals->latency_ns);
    put_start(t->out, "pegboard_call_duration_seconds_count", toolset, "");
    put_metric_value(t->out, n);
}

static void add_histogram(struct gw_totals *to, const struct gw_totals *from)
{
    for (int i = 0; i < GW_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
    to->latency_ns += from->latency_ns;
}

/* Those that there is no room for are summed, too. */
static void put_histograms(struct text *t)
{
    struct gw_totals rest = {0};

    put_family(t->out, "pegboard_call_duration_seconds", "histogram",
               "Time from the admission of a call to its end.");
    for (size_t i = 0; i < t->n_shown - t->has_other; i++) {
        const peg_str name = t->shown[i]->name;
        const size_t need = HISTOGRAM_LINES * (HISTOGRAM_LINE_BYTES + label_len(name));

        if (!t->totals[i].admitted)
            continue;
        if (t->n_histograms < PEG_LIMIT_GATEWAY_HISTOGRAMS &&
            t->out->len + need <= PEG_LIMIT_GATEWAY_METRICS_BYTES - NODE_BYTES) {
            put_histogram(t, name, &t->totals[i]);
            t->n_histograms++;
        } else {
            add_histogram(&rest, &t->totals[i]);
            t->n_left_out++;
        }
    }
    if (t->has_other)
        add_histogram(&rest, &t->totals[t->n_shown - 1]);
    if (t->has_other || t->n_left_out)
        put_histogram(t, (peg_str)PEG_LIT(GW_METRICS_OTHER), &rest);
}

/* ---- the node ---- */

static void put_gauge(struct peg__buf *out, const char *name, const char *help, uint64_t n)
{
    put_family(out, name, "gauge", help);
    peg__buf_puts(out, name);
    peg__buf_putc(out, ' ');
    put_metric_value(out, n);
}

static void put_counter(struct peg__buf *out, const char *name, const char *help, uint64_t n)
{
    put_family(out, name, "counter", help);
    peg__buf_puts(out, name);
    peg__buf_putc(out, ' ');
    put_metric_value(out, n);
}

static void put_build(const struct text *t)
{
    put_family(t->out, "pegboard_build_info", "gauge", "What this node is.");
    peg__buf_puts(t->out, "pegboard_build_info{version=");
    gw_metrics_put_label(t->out, peg_cstr(t->node->version));
    peg__buf_puts(t->out, ",bus=");
    gw_metrics_put_label(t->out, peg_cstr(t->node->bus));
    peg__buf_puts(t->out, ",store=");
    gw_metrics_put_label(t->out, peg_cstr(t->node->store));
    peg__buf_puts(t->out, ",registry=");
    gw_metrics_put_label(t->out, t->node->registry);
    peg__buf_puts(t->out, "} 1\n");
    put_family(t->out, "pegboard_uptime_seconds", "gauge", "Time since this node started.");
    peg__buf_puts(t->out, "pegboard_uptime_seconds ");
    put_thousandths(t->out, t->node->now_ms - t->node->started_ms);
    peg__buf_putc(t->out, '\n');
    if (t->node->rss_bytes)
        put_gauge(t->out, "process_resident_memory_bytes", "Resident memory of the process.",
                  t->node->rss_bytes);
    if (t->node->heap_bytes)
        put_gauge(t->out, "pegboard_heap_used_bytes",
                  "Memory that is allocated; the rest of the resident is kept for later.",
                  t->node->heap_bytes);
}

static void put_traffic(const struct text *t)
{
    const struct gw_metrics_node *node = t->node;

    put_gauge(t->out, "pegboard_connections", "Connections that are open.", node->n_connections);
    put_counter(t->out, "pegboard_refused_connections_total",
                "Connections that were ended because of what they sent.",
                node->n_refused_connections);
    put_counter(t->out, "pegboard_evicted_connections_total",
                "Connections that were cut because they held most when all held too much.",
                node->n_evicted_connections);
    put_gauge(t->out, "pegboard_held_bytes",
              "Bytes that connections hold: unfinished messages, waiting answers, headers.",
              node->n_held_bytes);
    put_counter(t->out, "pegboard_unauthenticated_total",
                "RPCs and requests that were refused because their sender is not known.",
                node->n_unauthenticated);
    put_counter(t->out, "pegboard_rpcs_total", "RPCs that were started.", node->n_rpcs);
    put_gauge(t->out, "pegboard_rpcs_running", "RPCs that run, streams of providers too.",
              node->n_running_rpcs);
    put_gauge(t->out, "pegboard_loops", "Event loops.", node->n_loops);
    put_counter(t->out, "pegboard_loop_wakes_total", "How often a message woke a loop.",
                node->n_wakes);
    put_gauge(t->out, "pegboard_draining", "1 if this node takes no new calls, else 0.",
              node->is_draining);
    put_counter(t->out, "pegboard_log_lines_dropped_total",
                "Lines of the log that were left out because there were too many.",
                node->n_log_lines_dropped);
    if (!node->has_spans)
        return;
    put_counter(t->out, "pegboard_otlp_spans_exported_total",
                "Spans that the collector of --otlp-endpoint has taken.", node->spans.n_exported);
    put_counter(t->out, "pegboard_otlp_spans_dropped_total",
                "Spans that were dropped: the collector is slow, away, or refused them.",
                node->spans.n_dropped);
    put_counter(t->out, "pegboard_otlp_failures_total", "Requests to the collector that failed.",
                node->spans.n_failures);
}

static void put_round_trips(struct peg__buf *out, const struct bus_redis_stats *redis)
{
    static const char name[] = "pegboard_redis_round_trip_seconds";
    uint64_t n = 0;

    put_family(out, name, "histogram",
               "From a write with registers to the reply behind the last, and one a second.");
    for (unsigned i = 0; i < BUS_REDIS_BUCKETS; i++) {
        const unsigned long us = (unsigned long)BUS_REDIS_BUCKET_NS / 1000 << i;

        n += redis->round_trips[i];
        if (i + 1 < BUS_REDIS_BUCKETS)
            peg__buf_printf(out, "%s_bucket{le=\"%lu.%06lu\"} ", name, us / 1000000, us % 1000000);
        else
            peg__buf_printf(out, "%s_bucket{le=\"+Inf\"} ", name);
        put_metric_value(out, n);
    }
    peg__buf_printf(out, "%s_sum ", name);
    put_seconds(out, redis->round_trips_ns);
    peg__buf_printf(out, "%s_count ", name);
    put_metric_value(out, n);
}

static void put_redis(const struct text *t)
{
    const struct bus_redis_stats *redis = &t->node->redis;

    if (!t->node->has_redis)
        return;
    put_round_trips(t->out, redis);
    put_counter(t->out, "pegboard_redis_pipelines_total",
                "Writes to Redis, each with the commands of one round of a loop.",
                redis->n_pipelines);
    put_counter(t->out, "pegboard_redis_commands_total", "Commands in these writes.",
                redis->n_commands);
    put_counter(t->out, "pegboard_redis_connects_total",
                "Connections to Redis that became ready: the first one of each loop too.",
                redis->n_connects);
    put_counter(t->out, "pegboard_redis_epochs_total",
                "How often a loop saw that the registers were lost, or may have been.",
                redis->n_epochs);
    put_counter(t->out, "pegboard_redis_sent_bytes_total", "Bytes that were sent to Redis.",
                redis->n_sent_bytes);
    put_counter(t->out, "pegboard_redis_received_bytes_total", "Bytes that Redis sent.",
                redis->n_received_bytes);
    put_family(t->out, "pegboard_redis_fenced_seconds_total", "counter",
               "Time in which loops did not act, because their lease was not renewed.");
    peg__buf_puts(t->out, "pegboard_redis_fenced_seconds_total ");
    put_seconds(t->out, redis->fenced_ns);
}

static void put_direct(const struct text *t)
{
    if (!t->node->has_redis)
        return;
    put_counter(t->out, "pegboard_direct_pings_total",
                "Pings of direct toolsets that this node has sent while it led.",
                t->node->direct.n_pings);
    put_counter(t->out, "pegboard_direct_trims_total",
                "How often it had streams of requests trimmed.", t->node->direct.n_trims);
    put_counter(t->out, "pegboard_direct_expiries_total",
                "Keys that peers left, to which it gave an expiry unless they had one.",
                t->node->direct.n_expiries);
    put_counter(t->out, "pegboard_direct_removed_fields_total",
                "Fields of silent consumers that it removed.", t->node->direct.n_removed_fields);
}

static void put_totals(const struct text *t, struct gw_metrics *metrics)
{
    struct gw_totals all;

    gw_metrics_total(metrics, &all);
    put_family(t->out, "pegboard_node_calls_total", "counter",
               "Calls of all toolsets by how they ended, those that are gone too.");
    for (int outcome = 0; outcome < CALLS_N_KINDS; outcome++) {
        peg__buf_printf(t->out, "pegboard_node_calls_total{outcome=\"%s\"} ",
                        gw_outcome_kind_name((enum calls_outcome_kind)outcome));
        put_metric_value(t->out, all.outcomes[outcome]);
    }
    put_counter(t->out, "pegboard_node_late_results_total",
                "Results of all toolsets that came after the end of their call.", all.late_results);
    put_gauge(t->out, "pegboard_node_calls_in_flight", "Calls of all toolsets that have not ended.",
              (uint64_t)all.in_flight);
}

static void put_catalog(const struct text *t)
{
    put_gauge(t->out, "pegboard_toolsets", "Toolsets that are registered.", t->node->n_toolsets);
    put_gauge(t->out, "pegboard_tools", "Tools of all toolsets.", t->node->n_tools);
    put_gauge(t->out, "pegboard_toolsets_left_out",
              "Toolsets without series of their own here, because there are too many.",
              t->node->n_toolsets - (t->n_shown - t->has_other));
    put_gauge(t->out, "pegboard_histograms_left_out",
              "Toolsets with series, but not of their latencies, because there are too many.",
              t->n_left_out);
}

/* ---- all of it ---- */

/* Is there a series of its own for one more toolset of this principal? */
static bool take_place(struct peg__map *owners, peg_str owner, struct peg__buf *out)
{
    struct peg__map_entry *entry = peg__map_find(owners, owner);
    uintptr_t n = entry ? (uintptr_t)entry->value : 0;

    if (n >= PEG_LIMIT_GATEWAY_OWN_SERIES)
        return false;
    if (entry)
        entry->value = (void *)(n + 1); // NOLINT(performance-no-int-to-ptr): a count in a map
    else if (peg__map_add(owners, owner, (void *)1))
        out->status = PEG_ENOMEM;
    return true;
}

static void leave_out(struct text *t, const struct gw_metrics_toolset *toolset,
                      struct gw_metrics *metrics)
{
    t->other.n_providers += toolset->n_providers;
    t->other.n_draining += toolset->n_draining;
    gw_metrics_add(metrics, toolset->name, &t->other_totals);
}

/* Each principal has its share, by name, while there is room. */
static void choose_series(struct text *t, struct gw_metrics *metrics)
{
    const struct gw_metrics_node *node = t->node;
    struct peg__map owners = PEG__MAP(SIZE_MAX);
    size_t left = TOOLSETS_BYTES;

    for (size_t i = 0; i < node->n_toolsets && !t->out->status; i++) {
        const struct gw_metrics_toolset *toolset = &node->toolsets[i];
        const size_t need = LINES * (LINE_BYTES + label_len(toolset->name));

        if (need > left || !take_place(&owners, toolset->owner, t->out)) {
            leave_out(t, toolset, metrics);
            t->has_other = true;
            continue;
        }
        left -= need;
        gw_metrics_of(metrics, toolset->name, &t->totals[t->n_shown]);
        t->shown[t->n_shown++] = toolset;
    }
    peg__map_free(&owners);
    if (!t->has_other)
        return;
    t->other.name = (peg_str)PEG_LIT(GW_METRICS_OTHER);
    t->totals[t->n_shown] = t->other_totals;
    t->shown[t->n_shown++] = &t->other;
}

void gw_metrics_write(struct gw_metrics *metrics, const struct gw_metrics_node *node,
                      struct peg__buf *out)
{
    struct text t = {.out = out, .node = node};

    t.shown = peg__alloc((node->n_toolsets + 1) * sizeof(*t.shown));
    t.totals = peg__alloc((node->n_toolsets + 1) * sizeof(*t.totals));
    if (t.shown && t.totals)
        choose_series(&t, metrics);
    else
        out->status = PEG_ENOMEM;
    if (!out->status) {
        put_build(&t);
        put_traffic(&t);
        put_redis(&t);
        put_direct(&t);
        put_totals(&t, metrics);
        put_health(&t);
        put_providers(&t);
        put_calls(&t);
        put_waiting(&t);
        put_histograms(&t);
        put_catalog(&t);
    }
    peg__free(t.shown);
    peg__free(t.totals);
}

uint64_t gw_rss_bytes(void)
{
    char text[128] = "";
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n;
    char *rest;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    (void)strtoull(text, &rest, 10); /* all of it; the second number is what is resident */
    return strtoull(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t gw_measure_heap(void)
{
#ifdef HAS_MALLINFO2
    const struct mallinfo2 info = mallinfo2(); /* of all arenas, and what has pages of its own */

    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

/* The C library walks over everything that is free, with the allocator locked: 10 ms and more after
 * a busy time. So it is asked seldom, however often anybody asks us. */
uint64_t gw_heap_bytes(void)
{
    static _Atomic int64_t due_ns;
    static _Atomic uint64_t bytes;
    const int64_t now_ns = peg__mono_ns();
    int64_t due = atomic_load(&due_ns);

    if (now_ns >= due && atomic_compare_exchange_strong(
                             &due_ns, &due, peg__clock_after_ms(now_ns, PEG_LIMIT_GATEWAY_HEAP_MS)))
        atomic_store(&bytes, gw_measure_heap());
    return atomic_load(&bytes);
}
