/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard status: how is the gateway? Once, or again and again on a terminal. */

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "cli/turn/turn.h"

struct status_layout {
    struct peg__buf *out;
    const struct cli_style *style;
    unsigned width;  /* 0: any */
    unsigned n_rows; /* of toolsets; 0: all */
};

static void out_double(struct peg__out *out, const char *name, double number)
{
    peg__out_key(out, name);
    peg__out_double(out, number);
}

static void out_outcomes(struct peg__out *out, const peg_remote_outcomes *outcomes)
{
    peg__out_key(out, "outcomes");
    peg__out_object(out);
    cli_out_integer(out, "result", (int64_t)outcomes->n_result);
    cli_out_integer(out, "error", (int64_t)outcomes->n_error);
    cli_out_integer(out, "timeout", (int64_t)outcomes->n_timeout);
    cli_out_integer(out, "canceled", (int64_t)outcomes->n_canceled);
    cli_out_integer(out, "outcome_unknown", (int64_t)outcomes->n_unknown);
    cli_out_integer(out, "refused", (int64_t)outcomes->n_refused);
    peg__out_end_object(out);
}

static void out_toolset(struct peg__out *out, const peg_toolset_status *toolset)
{
    peg__out_object(out);
    toolset_out(out, &toolset->toolset);
    cli_out_integer(out, "in_flight", toolset->n_in_flight);
    cli_out_integer(out, "queued", toolset->n_queued);
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
    cli_out_integer(out, "started_ms", status->started_ms);
    cli_out_bool(out, "draining", status->is_draining);
    cli_out_integer(out, "threads", status->n_threads);
    cli_out_integer(out, "toolset_count", status->n_toolsets);
    cli_out_integer(out, "healthy", status->n_healthy);
    cli_out_integer(out, "providers", status->n_providers);
    cli_out_integer(out, "in_flight", status->n_in_flight);
    cli_out_integer(out, "queued", status->n_queued);
    cli_out_integer(out, "connections", (int64_t)status->n_connections);
    cli_out_integer(out, "late_results", (int64_t)status->n_late_results);
    cli_out_integer(out, "memory_bytes", (int64_t)status->memory_bytes);
    out_double(out, "calls_per_s", status->calls_per_s);
    out_outcomes(out, &status->outcomes);
}

static void out_member(struct peg__out *out, const peg_node *node)
{
    peg__out_object(out);
    peg__out_cmember(out, "id", node->id);
    peg__out_cmember(out, "address", node->address);
    peg__out_cmember(out, "state", node->state);
    cli_out_bool(out, "answers", node->answers);
    cli_out_integer(out, "providers", node->n_providers);
    cli_out_integer(out, "in_flight", node->n_in_flight);
    cli_out_integer(out, "queued", node->n_queued);
    out_double(out, "calls_per_s", node->calls_per_s);
    out_outcomes(out, &node->outcomes);
    peg__out_end_object(out);
}

static void out_registry(struct peg__out *out, const peg_node_status *status)
{
    peg__out_key(out, "totals");
    peg__out_object(out);
    cli_out_integer(out, "nodes", status->totals.n_nodes);
    cli_out_integer(out, "in_flight", status->totals.n_in_flight);
    cli_out_integer(out, "queued", status->totals.n_queued);
    out_double(out, "calls_per_s", status->totals.calls_per_s);
    out_outcomes(out, &status->totals.outcomes);
    peg__out_end_object(out);
    cli_out_array(out, "nodes");
    for (size_t i = 0; i < status->n_nodes; i++)
        out_member(out, &status->nodes[i]);
    peg__out_end_array(out);
}

/* One JSON object and a line end. */
static void put_status_json(struct peg__buf *buf, const peg_node_status *status)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    out_node(&out, status);
    out_registry(&out, status);
    cli_out_array(&out, "toolsets");
    for (size_t i = 0; i < status->n_toolset_statuses; i++)
        out_toolset(&out, &status->toolsets[i]);
    peg__out_end_array(&out);
    cli_out_end_line(&out);
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
    cli_put_count(out, number);
    peg__buf_puts(out, after);
}

static void put_call_counts(struct peg__buf *out, const peg_registry_totals *totals)
{
    const peg_remote_outcomes *o = &totals->outcomes;

    put_count(out, "in flight ", totals->n_in_flight, ", ");
    put_count(out, "queued ", totals->n_queued, "");
    peg__buf_printf(out, ", %.1f/s; ", totals->calls_per_s);
    put_count(out, "ok ", o->n_result, "");
    put_count(out, ", failed ", o->n_error, "");
    put_count(out, ", timeout ", o->n_timeout, "");
    put_count(out, ", canceled ", o->n_canceled, "");
    put_count(out, ", unknown ", o->n_unknown, "");
    put_count(out, ", refused ", o->n_refused, "\n");
}

static void put_node(const struct status_layout *print, const peg_node_status *status)
{
    const peg_registry_totals own = {
        .n_in_flight = status->n_in_flight,
        .n_queued = status->n_queued,
        .calls_per_s = status->calls_per_s,
        .outcomes = status->outcomes,
    };
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
    peg__buf_puts(out, "calls: ");
    put_call_counts(out, &own);
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

static uint64_t count_failed(const peg_remote_outcomes *o)
{
    return o->n_error + o->n_timeout + o->n_canceled + o->n_unknown + o->n_refused;
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
    cli_table_number(table, count_failed(o));
}

static const struct cli_column node_columns[] = {
    {"NODE", false, false},   {"ADDRESS", false, true}, {"STATE", false, false},
    {"PROV", true, false},    {"FLIGHT", true, false},  {"QUEUED", true, false},
    {"CALLS/S", true, false}, {"OK", true, false},      {"FAILED", true, false},
};

/* Nothing that is not said above, if there is one node. */
static void put_registry(const struct status_layout *print, const peg_node_status *status)
{
    struct cli_table table = {.columns = node_columns,
                              .n_columns = sizeof(node_columns) / sizeof(node_columns[0])};

    if (status->n_nodes < 2)
        return;
    peg__buf_printf(print->out, "all %u nodes: ", status->totals.n_nodes);
    put_call_counts(print->out, &status->totals);
    peg__buf_putc(print->out, '\n');
    for (size_t i = 0; i < status->n_nodes; i++) {
        const peg_node *node = &status->nodes[i];

        cli_table_cell(&table, peg__str(node->id), node->answers ? print->style->bold : "");
        cli_table_cell(&table, peg__str(node->address), "");
        cli_table_cell(&table, peg__str(node->state), "");
        cli_table_number(&table, node->n_providers);
        cli_table_number(&table, node->n_in_flight);
        cli_table_number(&table, node->n_queued);
        double_cell(&table, node->calls_per_s);
        cli_table_number(&table, node->outcomes.n_result);
        cli_table_number(&table, count_failed(&node->outcomes));
    }
    cli_table_print(&table, print->width, print->style, print->out);
    cli_table_free(&table);
}

static void put_status(const struct status_layout *print, const peg_node_status *status)
{
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};
    const size_t n = status->n_toolset_statuses;
    /* Behind the head, and behind the nodes with their own. */
    const size_t taken = status->n_nodes > 1 ? status->n_nodes + 3 : 0;
    const size_t n_rows = print->n_rows > taken ? print->n_rows - taken : print->n_rows ? 1 : 0;
    const size_t shown = n_rows && n_rows < n ? n_rows : n;

    put_node(print, status);
    put_registry(print, status);
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

struct status_options {
    struct remote_args remote;
    bool is_once;
    int64_t interval_ms;
};

static const struct cli_option option_table[] = {
    {0, 0, "once", NULL, "print it once, on a terminal too", .kind = CLI_FLAG,
     .at = offsetof(struct status_options, is_once)},
    {0, 0, "interval", "TIME", "between two updates on a terminal; 1s by default", .kind = CLI_TIME,
     .at = offsetof(struct status_options, interval_ms), .least = 50,
     .wanted = "a time from 50ms, such as 2s"},
    REMOTE_FLAG("json", as_json, "print it once, as one JSON object"),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

static int print_once(const struct status_options *o, const peg_node_status *status)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct status_layout print = {.out = &out,
                                        .style = cli_style_for(o->remote.color, STDOUT_FILENO),
                                        .width = cli_width(STDOUT_FILENO)};

    if (o->remote.as_json)
        put_status_json(&out, status);
    else
        put_status(&print, status);
    return remote_print(&out);
}

/* ---- again and again ---- */

/* Lines of toolsets that fit below the head. */
static unsigned rows_that_fit(void)
{
    enum { OTHERS = 8, LEAST = 1 };
    struct winsize size = {.ws_row = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0)
        return 0;
    return size.ws_row > OTHERS + LEAST ? size.ws_row - OTHERS : LEAST;
}

static void draw(const struct status_options *o, const peg_node_status *status,
                 const peg_error *error)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct status_layout print = {.out = &out,
                                        .style = cli_style_for(o->remote.color, STDOUT_FILENO),
                                        .width = cli_width(STDOUT_FILENO),
                                        .n_rows = rows_that_fit()};

    peg__buf_puts(&out, "\033[H\033[2J");
    if (status) {
        put_status(&print, status);
    } else {
        peg__buf_puts(&out, print.style->bad);
        remote_explain(&o->remote, error, &out);
        peg__buf_printf(&out, " (%s)%s\n", remote_error_name(error), print.style->off);
    }
    peg__buf_printf(&out, "\n%sq ends this%s", print.style->dim, print.style->off);
    if (!out.status)
        cli_screen_draw(peg__buf_view(&out));
    peg__buf_free(&out);
}

/* *status is the first one, and becomes the last, NULL if there is none. */
static int show_live(const struct status_options *o, peg_client *client, peg_node_status **status)
{
    peg_error error = {.status = PEG_OK};

    draw(o, *status, &error);
    while (cli_screen_wait(o->interval_ms)) {
        *status = peg_node_status_free(*status);
        if (peg_client_status(client, NULL, NULL, true, status, &error))
            *status = NULL;
        draw(o, *status, &error);
    }
    cli_screen_close();
    return *status ? CLI_OK : remote_complain(&o->remote, &error);
}

/* ---- the command ---- */

static int show_node(struct remote_args *remote, peg_client *client)
{
    const struct status_options *o = (const struct status_options *)remote;
    peg_node_status *status = NULL;
    peg_error error;
    int answer;

    /* Before the screen, which would hide an error. */
    if (peg_client_status(client, NULL, NULL, true, &status, &error))
        return remote_complain(remote, &error);
    if (o->is_once || remote->as_json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) ||
        !cli_screen_open())
        answer = print_once(o, status);
    else
        answer = show_live(o, client, &status);
    peg_node_status_free(status);
    return answer;
}

static int run_status(const struct cli_command *self, int argc, char **argv)
{
    struct status_options options = {.interval_ms = 1000};

    return remote_run(&options.remote, self, argc, argv, NULL, show_node);
}

const struct cli_command cli_status = {
    .name = "status",
    .usage = "[options]",
    .summary = "show how a gateway is doing",
    .about = "Prints the state of the node that answers; of several that are one registry the\n"
             "sum of their calls and a line for each, as it last reported itself; and a table\n"
             "of toolsets: health and providers in the whole registry, and of the node that\n"
             "answers calls in flight and waiting, calls a second over the last ten seconds,\n"
             "and, since its start, latencies (half of all calls took at most P50, 99 of 100\n"
             "at most P99) and ends. On a terminal it is drawn again each second until q or\n"
             "^C. Gateways tell it to this machine and to client certificates only.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it was shown; when it is drawn again and again, the last time too\n"
             "  1  the gateway does not tell it to us\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard status\n"
             "  pegboard status --json | jq .calls_per_s",
    .run = run_status,
};
