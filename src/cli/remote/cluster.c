/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard cluster: which nodes are one registry? pegboard drain: ends one of them. */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"

static const struct cli_option cluster_option_table[] = {
    REMOTE_FLAG("json", as_json, "print one JSON object with the array \"nodes\""),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

/* ---- for programs ---- */

static void out_node(struct peg__out *out, const peg_node *node)
{
    peg__out_object(out);
    peg__out_cmember(out, "id", node->id);
    peg__out_cmember(out, "address", node->address);
    peg__out_cmember(out, "version", node->version);
    peg__out_cmember(out, "state", node->state);
    peg__out_cmember(out, "store", node->store);
    cli_out_integer(out, "protocol", node->protocol);
    cli_out_integer(out, "threads", node->n_threads);
    cli_out_bool(out, "answers", node->answers);
    cli_out_bool(out, "pings", node->pings);
    cli_out_integer(out, "started_ms", node->started_ms);
    cli_out_integer(out, "lease_ms", node->lease_ms);
    cli_out_integer(out, "lease_left_ms", node->lease_left_ms);
    cli_out_integer(out, "providers", node->n_providers);
    cli_out_integer(out, "in_flight", node->n_in_flight);
    cli_out_integer(out, "queued", node->n_queued);
    cli_out_integer(out, "settled", (int64_t)node->n_settled);
    cli_out_integer(out, "outcome_unknown", (int64_t)node->n_unknown);
    cli_out_integer(out, "round_trip_us", node->round_trip_us);
    peg__out_end_object(out);
}

static void put_cluster_json(struct peg__buf *buf, const peg_node_list *list)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    peg__out_cmember(&out, "registry", list->registry_name);
    peg__out_cmember(&out, "bus", list->bus);
    cli_out_array(&out, "nodes");
    for (size_t i = 0; i < list->n_nodes; i++)
        out_node(&out, &list->nodes[i]);
    peg__out_end_array(&out);
    cli_out_end_line(&out);
}

/* ---- for people ---- */

static const struct cli_column columns[] = {
    {"NODE", false, false},  {"ADDRESS", false, true}, {"VERSION", false, true},
    {"STATE", false, false}, {"PINGS", false, false},  {"LEASE", true, false},
    {"PROV", true, false},   {"FLIGHT", true, false},  {"QUEUED", true, false},
    {"LAG MS", true, false}, {"SETTLED", true, false}, {"UNKNOWN", true, false},
};

static void seconds_cell(struct cli_table *table, int64_t ms)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1fs", (double)ms / 1000);
    cli_table_cell(table, peg__str(text), "");
}

static void lag_cell(struct cli_table *table, int64_t us)
{
    char text[32];

    snprintf(text, sizeof(text), "%.2f", (double)us / 1000);
    cli_table_cell(table, peg__str(us ? text : "-"), "");
}

static const char *state_style(const struct cli_style *style, const char *state)
{
    if (strcmp(state, "serving") == 0)
        return style->good;
    return strcmp(state, "starting") == 0 ? "" : style->bad;
}

static void put_cluster(struct peg__buf *out, const struct cli_style *style,
                        const peg_node_list *list)
{
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};

    for (size_t i = 0; i < list->n_nodes; i++) {
        const peg_node *node = &list->nodes[i];

        cli_table_cell(&table, peg__str(node->id), node->answers ? style->bold : "");
        cli_table_cell(&table, peg__str(node->address), "");
        cli_table_cell(&table, peg__str(node->version), "");
        cli_table_cell(&table, peg__str(node->state), state_style(style, node->state));
        cli_table_cell(&table, peg__str(node->pings ? "yes" : ""), "");
        seconds_cell(&table, node->lease_left_ms);
        cli_table_number(&table, node->n_providers);
        cli_table_number(&table, node->n_in_flight);
        cli_table_number(&table, node->n_queued);
        lag_cell(&table, node->round_trip_us);
        cli_table_number(&table, node->n_settled);
        cli_table_number(&table, node->n_unknown);
    }
    cli_table_print(&table, cli_width(STDOUT_FILENO), style, out);
    cli_table_free(&table);
}

static int show_cluster(struct remote_args *remote, peg_client *client)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_node_list *list = NULL;
    peg_error error;

    if (peg_client_nodes(client, NULL, NULL, &list, &error))
        return remote_complain(remote, &error);
    if (remote->as_json)
        put_cluster_json(&out, list);
    else
        put_cluster(&out, cli_style_for(remote->color, STDOUT_FILENO), list);
    peg_node_list_free(list);
    return remote_print(&out);
}

static int run_cluster(const struct cli_command *self, int argc, char **argv)
{
    struct remote_args remote = {.address = NULL};

    return remote_run(&remote, self, argc, argv, NULL, show_cluster);
}

const struct cli_command cli_cluster = {
    .name = "cluster",
    .usage = "[options]",
    .summary = "show the nodes of a registry",
    .about = "Prints the nodes that are one registry, whichever of them answers: where each\n"
             "listens, its version, whether it serves or drains, which one pings direct\n"
             "toolsets, what is left of its lease, providers that are attached to it, calls in\n"
             "flight and waiting, the last round trip to Redis, and, since its start, calls\n"
             "that ended and how many of these with an outcome that is not known. A node\n"
             "reports itself three times in a lease; one that does not is lost when its lease\n"
             "is over. For operators.",
    .options = cluster_option_table,
    .notes = "exit status:\n"
             "  0  they were shown\n"
             "  1  we are no operator of the gateway\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard cluster\n"
             "  pegboard cluster --json | jq -r '.nodes[] | select(.pings) | .id'",
    .run = run_cluster,
};

/* ---- pegboard drain ---- */

enum { LOOK_MS = 200 };

struct drain_options {
    struct remote_args remote;
    int64_t drain_ms;
    bool waits;
};

static const struct cli_option drain_option_table[] = {
    {0, 0, "drain-time", "TIME", "for calls that run; by default as the node was started",
     .kind = CLI_TIME, .at = offsetof(struct drain_options, drain_ms), .least = 1,
     .wanted = "a time, such as 30s"},
    {0, 0, "wait", NULL, "return when the node has ended", .kind = CLI_FLAG,
     .at = offsetof(struct drain_options, waits)},
    REMOTE_OPTIONS,
    {.name = NULL},
};

/* By its id, the beginning of that, or its address. */
static const peg_node *find_node(const peg_node_list *list, const char *text, peg_error *reterr)
{
    const peg_node *found = NULL;
    unsigned n_found = 0;

    for (size_t i = 0; i < list->n_nodes; i++) {
        const peg_node *node = &list->nodes[i];

        if (strcmp(node->id, text) == 0 || strcmp(node->address, text) == 0)
            return node;
        if (strncmp(node->id, text, strlen(text)) == 0) {
            found = node;
            n_found++;
        }
    }
    if (n_found == 1)
        return found;
    peg__fail(reterr, PEG_ENOTFOUND, "E_NOT_FOUND",
              n_found ? "the ids of several nodes begin with '%.64s': give more of it"
                      : "there is no node '%.64s': `pegboard cluster` lists those that there are",
              text);
    return NULL;
}

static bool is_node_listed(const peg_node_list *list, const char *id)
{
    for (size_t i = 0; i < list->n_nodes; i++)
        if (strcmp(list->nodes[i].id, id) == 0)
            return strcmp(list->nodes[i].state, "lost") != 0;
    return false;
}

/* The node that answers says so as long as it can; then it is gone. */
static int await_end(const struct drain_options *o, peg_client *client, const char *id,
                     bool is_asked)
{
    for (;;) {
        peg_node_list *list = NULL;
        peg_error error;
        bool is_there = false;

        if (peg_client_nodes(client, NULL, NULL, &list, &error)) {
            if (!is_asked || remote_exit_of(&error) != CLI_NO_GATEWAY)
                return remote_complain(&o->remote, &error);
        } else {
            is_there = is_node_listed(list, id);
        }
        peg_node_list_free(list);
        if (!is_there) {
            printf("%s: ended\n", id);
            return CLI_OK;
        }
        poll(NULL, 0, LOOK_MS);
    }
}

static int drain_listed(const struct drain_options *o, peg_client *client, const peg_node *node)
{
    peg_error error;

    if (peg_client_drain_node(client, NULL, NULL, node->id, o->drain_ms, &error))
        return remote_complain(&o->remote, &error);
    printf("%s: draining\n", node->id);
    return o->waits ? await_end(o, client, node->id, node->answers) : CLI_OK;
}

static int drain_node(struct remote_args *remote, peg_client *client)
{
    const struct drain_options *o = (const struct drain_options *)remote;
    peg_node_list *list = NULL;
    const peg_node *node;
    peg_error error;
    int answer;

    if (peg_client_nodes(client, NULL, NULL, &list, &error))
        return remote_complain(remote, &error);
    node = find_node(list, remote->operands[0], &error);
    answer = node ? drain_listed(o, client, node) : remote_complain(remote, &error);
    peg_node_list_free(list);
    return answer;
}

static int run_drain(const struct cli_command *self, int argc, char **argv)
{
    struct drain_options options = {.waits = false};

    return remote_run(&options.remote, self, argc, argv, NULL, drain_node);
}

const struct cli_command cli_drain = {
    .name = "drain",
    .usage = "[options] NODE",
    .summary = "end a node when its calls have ended",
    .about = "The node takes no new calls, finishes those that run, sends its providers to other\n"
             "nodes, and ends, as on SIGTERM. NODE is its id, as `pegboard cluster` shows it, the\n"
             "beginning of its id, or its address. Any node may be asked. For operators.",
    .options = drain_option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "the id of a node is needed",
    .notes =
        "exit status:\n"
        "  0  the node drains; with --wait, it has ended\n"
        "  1  there is no such node, or we are no operator of the gateway\n" REMOTE_EXIT_STATUS "\n"
        "examples:\n"
        "  pegboard drain 9f86d081884c7d65\n"
        "  pegboard drain --wait --drain-time 1m 10.0.0.7:9090",
    .run = run_drain,
};
