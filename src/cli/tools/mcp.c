/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard mcp: the commands of a manifest as an MCP server on standard input and output. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits_mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/serve/serve.h"
#include "pegboard/manifest.h"
#include "pegboard/mcp.h"
#include "tools/tools.h"

struct mcp_args {
    unsigned concurrency;
    int64_t drain_ms;
};

static const struct cli_option option_table[] = {
    {0, 0, "concurrency", "N", "run so many commands at once; 4 by default", .kind = CLI_COUNT,
     .at = offsetof(struct mcp_args, concurrency), .least = 1, .most = PEG_LIMIT_MCP_CONCURRENCY},
    {0, 0, "drain-time", "TIME",
     "how long commands may go on when the client has closed\nits end, such as 10s; 1s by default",
     .kind = CLI_TIME, .at = offsetof(struct mcp_args, drain_ms), .least = 1, .most = 3600000,
     .wanted = "a time up to 1h, such as 30s or 1m30s"},
    {.name = NULL},
};

/* ---- the manifest ---- */

static int complain_manifest(const char *path, const peg_error *error)
{
    struct peg__buf place = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    int answer;

    cli_put_place(&place, path, error);
    answer = remote_complain_local(place.status ? path : place.ptr, error);
    peg__buf_free(&place);
    return answer;
}

static void warn_of_tool(const char *tool, const char *message, void *user)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_printf(&line, "pegboard: %s: warning: tool '%s': ", (const char *)user, tool);
    cli_put_safe(&line, peg__str(message));
    cli_print_line(&line);
}

static void inspect_manifest(const char *path, const peg_manifest *manifest)
{
    (void)!peg_manifest_inspect(manifest, warn_of_tool, peg__unconst(path), NULL);
}

/* ---- signals: a thread ---- */

struct served {
    const char *path;
    const peg_manifest *manifest; /* the first one: its registry is what is offered */
    peg_mcp_server *server;
    sigset_t set;
    pthread_t thread;
};

/* What runs goes on with the command that it began with; clients hear of the new list. */
static void reload_manifest(const struct served *s)
{
    peg_manifest *manifest = NULL;
    peg_error error;
    peg_status status = peg_manifest_read(s->path, &manifest, &error);

    if (!status)
        status = peg_registry_replace(peg_manifest_registry(s->manifest),
                                      peg_manifest_registry(manifest), &error);
    if (status)
        complain_manifest(s->path, &error);
    else
        inspect_manifest(s->path, manifest);
    peg_manifest_free(manifest);
}

/* SIGUSR2 ends it, from the thread that serves. */
static void *handle_signals(void *user)
{
    const struct served *s = user;
    int number;

    while ((number = sigwaitinfo(&s->set, NULL)) != SIGUSR2) {
        if (number == SIGHUP)
            reload_manifest(s);
        else if (number > 0)
            peg_mcp_server_stop(s->server);
    }
    return NULL;
}

/* ---- serving ---- */

static peg_status serve_until_closed(struct served *s, const peg_mcp_options *options,
                                     peg_error *reterr)
{
    peg_status status =
        peg_mcp_server_new(peg_manifest_registry(s->manifest), options, &s->server, reterr);

    if (!status && pthread_create(&s->thread, NULL, handle_signals, s))
        status = peg__fail(reterr, PEG_EIO, "E_MCP",
                           "the system has no thread for signals: end some, or raise its limit");
    if (!status) {
        status = peg_mcp_server_serve(s->server, STDIN_FILENO, STDOUT_FILENO, reterr);
        pthread_kill(s->thread, SIGUSR2);
        pthread_join(s->thread, NULL);
    }
    peg_mcp_server_free(s->server);
    return status;
}

static int serve_manifest(const struct mcp_args *args, const char *path,
                          const peg_manifest *manifest)
{
    const char *version = peg_manifest_version(manifest);
    const char *description = peg_manifest_description(manifest);
    const peg_mcp_options options = {
        PEG_MCP_OPTIONS_INIT,
        .name = peg_manifest_toolset(manifest),
        .version = version[0] ? version : NULL,
        .instructions = description[0] ? description : NULL,
        .concurrency = args->concurrency,
        .drain_ms = args->drain_ms,
    };
    struct served served = {.path = path, .manifest = manifest};
    peg_error error;

    cli_block_signals(&served.set);
    if (!peg__descendants_adopt())
        fprintf(stderr, "pegboard: what commands leave behind is not found on this system: %m\n");
    if (serve_until_closed(&served, &options, &error))
        return remote_complain_local(NULL, &error);
    return CLI_OK;
}

static int run_mcp(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct mcp_args options = {0};
    peg_manifest *manifest = NULL;
    peg_error error;
    int answer;

    if (!cli_read(&args, &options, NULL))
        return args.exit;
    if (peg_manifest_read(args.operands[0], &manifest, &error))
        return complain_manifest(args.operands[0], &error);
    inspect_manifest(args.operands[0], manifest);
    answer = serve_manifest(&options, args.operands[0], manifest);
    peg_manifest_free(manifest);
    return answer;
}

const struct cli_command cli_mcp = {
    .name = "mcp",
    .usage = "[options] FILE",
    .summary = "offer commands to an MCP client",
    .about =
        "Reads FILE, a manifest in YAML or JSON, and offers its commands as tools to an MCP\n"
        "client (Model Context Protocol) on standard input and output, until that closes\n"
        "its end. No gateway is involved. pegboard-provide(1) has the keys of a manifest.\n\n"
        "Both eras are spoken, whichever the client begins with: 2026-07-28, and 2025-11-25\n"
        "or 2025-06-18. A client starts it by itself; its configuration has this command.\n"
        "SIGTERM and SIGINT: takes no new calls, finishes what runs, ends. SIGHUP: reads FILE\n"
        "again; clients that want to are told of it.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "one file is needed: the manifest of the tools",
    .notes = "exit status:\n"
             "  0  the client closed its end, or it was stopped\n"
             "  2  a wrong option, or a manifest that cannot be used\n\n"
             "examples:\n"
             "  pegboard mcp tools.yaml, as the configuration of a client has it:\n"
             "  {\"mcpServers\": {\"files\": {\"command\": \"pegboard\",\n"
             "                            \"args\": [\"mcp\", \"/home/me/files.yaml\"]}}}",
    .needs_no_reader = true,
    .run = run_mcp,
};
