/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/status.h"

#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/toolset.h"
#include "cli/turn/turn.h"

/* ---- for programs ---- */

static void out_number(struct peg__out *out, const char *name, uint64_t number)
{
    peg__out_key(out, name);
    peg__out_integer(out, (int64_t)number);
}

static void out_double(struct peg__out *out, const char *name, double number)
{
    peg__out_key(out, name);
    peg__out_double(out, number);
}

static void out_outcomes(struct peg__out *out, const peg_remote_outcomes *outcomes)
{
    peg__out_key(out, "outcomes");
    peg__out_object(out);
    out_number(out, "result", outcomes->n_result);
    out_number(out, "error", outcomes->n_error);
    out_number(out, "timeout", outcomes->n_timeout);
    out_number(out, "canceled", outcomes->n_canceled);
    out_number(out, "outcome_unknown", outcomes->n_unknown);
    out_number(out, "refused", outcomes->n_refused);
    peg__out_end_object(out);
}

static void out_toolset(struct peg__out *out, const peg_toolset_status *toolset)
{
    peg__out_object(out);
    toolset_out(out, &toolset->toolset);
    out_number(out, "in_flight", toolset->n_in_flight);
    out_number(out, "queued", toolset->n_queued);
    out_outcomes(out, &toolset->outcomes);
    out_double(out, "calls_per_s", toolset->calls_per_s);
    out_double(out, "p50_ms", toolset->p50_ms);
    out_double(out, "p99_ms", toolset->p99_ms);
    peg__out_end_object(out);
}

static void out_node(struct peg__out *out, const peg_node_status *status)
{
    peg__out_cmember(out, "node_id", status->node_id);
    peg__out_cmember(out, "registry", status->registry_name);
    peg__out_cmember(out, "version", status->version);
    peg__out_cmember(out, "address", status->address);
    peg__out_cmember(out, "bus", status->bus);
    peg__out_cmember(out, "store", status->store);
    peg__out_key(out, "started_ms");
    peg__out_integer(out, status->started_ms);
    peg__out_key(out, "draining");
    peg__out_bool(out, status->is_draining);
    out_number(out, "threads", status->n_threads);
    out_number(out, "toolset_count", status->n_toolsets);
    out_number(out, "healthy", status->n_healthy);
    out_number(out, "providers", status->n_providers);
    out_number(out, "in_flight", status->n_in_flight);
    out_number(out, "queued", status->n_queued);
    out_number(out, "connections", status->n_connections);
    out_number(out, "late_results", status->n_late_results);
    out_number(out, "memory_bytes", status->memory_bytes);
    out_double(out, "calls_per_s", status->calls_per_s);
    out_outcomes(out, &status->outcomes);
}

void status_print_json(struct peg__buf *buf, const peg_node_status *status)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    out_node(&out, status);
    peg__out_key(&out, "toolsets");
    peg__out_array(&out);
    for (size_t i = 0; i < status->n_toolset_statuses; i++)
        out_toolset(&out, &status->toolsets[i]);
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    peg__buf_putc(buf, '\n');
}

/* ---- for people ---- */

static void put_safe(struct peg__buf *out, const char *before, const char *text)
{
    peg__buf_puts(out, before);
    cli_put_safe(out, peg__str(text));
}

static void put_count(struct peg__buf *out, const char *before, uint64_t number, const char *after)
{
    peg__buf_puts(out, before);
    turn_put_count(out, number);
    peg__buf_puts(out, after);
}

static void put_node(const struct status_print *print, const peg_node_status *status)
{
    const peg_remote_outcomes *o = &status->outcomes;
    struct peg__buf *out = print->out;

    peg__buf_puts(out, print->style->bold);
    put_safe(out, "", status->registry_name);
    peg__buf_puts(out, print->style->off);
    put_safe(out, " on ", status->address);
    put_safe(out, ", pegboard ", status->version);
    peg__buf_puts(out, ", up ");
    toolset_put_age(out, time(NULL) - status->started_ms / 1000);
    if (status->is_draining)
        peg__buf_printf(out, ", %sdraining%s", print->style->bad, print->style->off);
    put_safe(out, "\nnode ", status->node_id);
    put_safe(out, ", bus ", status->bus);
    put_safe(out, ", store ", status->store);
    peg__buf_printf(out, ", %u thread%s, %.1f MB\n", status->n_threads,
                    status->n_threads == 1 ? "" : "s", (double)status->memory_bytes / 1e6);
    put_count(out, "toolsets ", status->n_toolsets, " (");
    put_count(out, "", status->n_healthy, " healthy), ");
    put_count(out, "providers ", status->n_providers, ", ");
    put_count(out, "connections ", status->n_connections, "\n");
    put_count(out, "calls: in flight ", status->n_in_flight, ", ");
    put_count(out, "queued ", status->n_queued, "");
    peg__buf_printf(out, ", %.1f/s; ", status->calls_per_s);
    put_count(out, "ok ", o->n_result, "");
    put_count(out, ", failed ", o->n_error, "");
    put_count(out, ", timeout ", o->n_timeout, "");
    put_count(out, ", canceled ", o->n_canceled, "");
    put_count(out, ", unknown ", o->n_unknown, "");
    put_count(out, ", refused ", o->n_refused, "\n");
}

static const struct cli_column columns[] = {
    {"TOOLSET", false, true}, {"HEALTH", false, false}, {"PROV", true, false},
    {"FLIGHT", true, false},  {"QUEUED", true, false},  {"CALLS/S", true, false},
    {"P50 MS", true, false},  {"P99 MS", true, false},  {"OK", true, false},
    {"FAILED", true, false},
};

static void double_cell(struct cli_table *table, double number)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f", number);
    cli_table_cell(table, peg__str(text), "");
}

/* Two digits of what is short, whole milliseconds of the rest: no more is known. */
static void latency_cell(struct cli_table *table, double ms)
{
    char text[32];

    snprintf(text, sizeof(text), ms >= 9.95 ? "%.0f" : ms >= 0.995 ? "%.1f" : "%.2f", ms);
    cli_table_cell(table, peg__str(text), "");
}

static void put_row(struct cli_table *table, const struct cli_style *style,
                    const peg_toolset_status *toolset)
{
    const peg_remote_outcomes *o = &toolset->outcomes;

    cli_table_cell(table, peg__str(toolset->toolset.name), "");
    toolset_health_cell(table, &toolset->toolset, style);
    cli_table_number(table, toolset->toolset.n_providers);
    cli_table_number(table, toolset->n_in_flight);
    cli_table_number(table, toolset->n_queued);
    double_cell(table, toolset->calls_per_s);
    latency_cell(table, toolset->p50_ms);
    latency_cell(table, toolset->p99_ms);
    cli_table_number(table, o->n_result);
    cli_table_number(table,
                     o->n_error + o->n_timeout + o->n_canceled + o->n_unknown + o->n_refused);
}

void status_print(const struct status_print *print, const peg_node_status *status)
{
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};
    const size_t n = status->n_toolset_statuses;
    const size_t shown = print->n_rows && print->n_rows < n ? print->n_rows : n;

    put_node(print, status);
    if (n == 0)
        return;
    peg__buf_putc(print->out, '\n');
    for (size_t i = 0; i < shown; i++)
        put_row(&table, print->style, &status->toolsets[i]);
    cli_table_print(&table, print->width, print->style, print->out);
    cli_table_free(&table);
    if (shown < n)
        peg__buf_printf(print->out, "and %zu more\n", n - shown);
}
