/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard mcp: the commands of manifests, or the tools of a gateway, as an MCP server on standard
 * input and output. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/serve/serve.h"
#include "cli/tools/manifests.h"
#include "cli/tools/mcp.h"
#include "cli/tools/mcp_servers.h"
#include "pegboard/mcp.h"
#include "tools/tools.h"

enum { MAX_FILES = 64, MAX_TOOLSETS = 64, OPT_TOOLSET = 1, BRIDGE_CONCURRENCY = 32 };

struct mcp_args {
    struct remote_args remote;
    const char *toolsets[MAX_TOOLSETS];
    size_t n_toolsets;
    unsigned concurrency;
    int64_t drain_ms;
    bool only_signals;
};

static const struct cli_option option_table[] = {
    {0, 0, "concurrency", "N", "run so many commands at once; 4 by default", .kind = CLI_COUNT,
     .at = offsetof(struct mcp_args, concurrency), .least = 1, .most = PEG_LIMIT_MCP_CONCURRENCY},
    {0, 0, "drain-time", "TIME",
     "how long commands may go on when the client has closed\nits end, such as 30s; 10s by default",
     .kind = CLI_TIME, .at = offsetof(struct mcp_args, drain_ms), .least = 1, .most = 3600000,
     .wanted = "a time up to 1h, such as 30s or 1m30s"},
    CLI_OPTION_FLAG(struct mcp_args, only_signals, 0, "no-watch",
                    "read files again on SIGHUP only, not when they change"),
    {OPT_TOOLSET, 0, "toolset", "TOOLSET",
     "of a gateway's toolsets only this one; may be given\nseveral times", .kind = CLI_OWN},
    REMOTE_OPTIONS,
    {.name = NULL},
};

static const char *take_toolset(void *into, int id, const char *value)
{
    struct mcp_args *args = into;

    (void)id;
    if (args->n_toolsets == MAX_TOOLSETS || !*value)
        return "the name of a toolset, and at most 64 of them";
    args->toolsets[args->n_toolsets++] = value;
    return NULL;
}

/* ---- reading files again: a thread ---- */

struct served {
    struct manifest_file files[MAX_FILES];
    size_t n_files;
    peg_registry *registry;              /* what is offered: the tools of all files */
    peg_http *http;                      /* of MCP servers; NULL until one needs it */
    peg_mcp_client *imported[MAX_FILES]; /* by file; NULL: it names no MCP server */
    peg_mcp_server *server;
    struct reload reload;
    pthread_t thread;
};

static void drop_servers(struct served *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        s->imported[i] = peg_mcp_client_free(s->imported[i]);
}

/* A file whose server cannot be started offers its commands alone. */
static void start_servers(struct served *s)
{
    peg_error error;

    for (size_t i = 0; i < s->n_files; i++) {
        peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT,
                                          .on_event = mcp_servers_print_event,
                                          .user = peg__unconst(s->files[i].path)};

        if (mcp_servers_import(s->registry, s->files[i].manifest, &options, &s->http,
                               &s->imported[i], &error))
            remote_complain_local(s->files[i].path, &error);
    }
}

static peg_status offer_files(struct served *s, size_t *ret_at, peg_error *reterr)
{
    peg_registry *joined = NULL;
    peg_status status = manifests_join(s->files, s->n_files, &joined, ret_at, reterr);

    if (!status && s->registry) {
        drop_servers(s);
        status = peg_registry_replace(s->registry, joined, reterr);
        start_servers(s);
    }
    if (!status && !s->registry)
        s->registry = peg_registry_ref(joined);
    peg_registry_unref(joined);
    return status;
}

/* What runs goes on with the command that it began with; clients hear of the new list. */
static void reload_file(size_t i, void *user)
{
    struct served *s = user;
    peg_manifest *last = s->files[i].manifest;
    peg_manifest *manifest = NULL;
    peg_error error;
    size_t at = i;
    peg_status status = peg_manifest_read(s->files[i].path, &manifest, &error);

    if (!status) {
        s->files[i].manifest = manifest;
        status = offer_files(s, &at, &error);
    }
    if (status) {
        s->files[i].manifest = last;
        manifests_complain(s->files[at].path, &error);
    } else {
        fprintf(stderr, "pegboard: %s was read again: %zu tool%s\n", s->files[i].path,
                peg_registry_len(peg_manifest_registry(manifest)),
                peg_registry_len(peg_manifest_registry(manifest)) == 1 ? "" : "s");
        manifests_inspect(s->files[i].path, manifest);
    }
    peg_manifest_free(status ? manifest : last);
}

static void stop_server(void *user)
{
    peg_mcp_server_stop(((struct served *)user)->server);
}

static void *run_reload(void *user)
{
    reload_run(&((struct served *)user)->reload);
    return NULL;
}

/* ---- serving ---- */

static peg_status serve_until_closed(struct served *s, const peg_mcp_options *options,
                                     peg_error *reterr)
{
    peg_status status = peg_mcp_server_new(s->registry, options, &s->server, reterr);

    if (!status && pthread_create(&s->thread, NULL, run_reload, s))
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

/* A server of several toolsets tells the model which there are. */
static void put_instructions(struct peg__buf *out, const struct served *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        const char *description = peg_manifest_description(s->files[i].manifest);

        if (s->n_files > 1 && description[0])
            peg__buf_printf(out, "%s%s: ", out->len ? "\n" : "",
                            peg_manifest_toolset(s->files[i].manifest));
        peg__buf_puts(out, description);
    }
}

static int serve_files(const struct mcp_args *args, struct served *s)
{
    struct peg__buf instructions = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_manifest *first = s->files[0].manifest;
    const char *version = s->n_files == 1 ? peg_manifest_version(first) : "";
    peg_mcp_options options = {
        PEG_MCP_OPTIONS_INIT,
        .name = s->n_files == 1 ? peg_manifest_toolset(first) : "pegboard",
        .version = version[0] ? version : NULL,
        .concurrency = args->concurrency,
        .drain_ms = args->drain_ms,
    };
    peg_error error;
    peg_status status;

    put_instructions(&instructions, s);
    options.instructions = instructions.len ? instructions.ptr : NULL;
    cli_block_signals(&s->reload.signals);
    if (!peg__descendants_adopt())
        fprintf(stderr, "pegboard: what commands leave behind is not found on this system: %m\n");
    start_servers(s);
    status = serve_until_closed(s, &options, &error);
    drop_servers(s);
    s->http = peg__http_unref(s->http);
    peg__buf_free(&instructions);
    return status ? remote_complain_local(NULL, &error) : CLI_OK;
}

static int read_files(struct served *s)
{
    int answer = manifests_read(s->reload.paths, s->n_files, s->files);
    peg_error error;
    size_t at;

    if (answer == CLI_OK && offer_files(s, &at, &error))
        answer = manifests_complain(s->files[at].path, &error);
    for (size_t i = 0; i < s->n_files && answer == CLI_OK; i++)
        manifests_inspect(s->files[i].path, s->files[i].manifest);
    return answer;
}

/* A gateway's tools wait elsewhere, so many of them may. */
static int serve_gateway(const struct mcp_args *args)
{
    struct served s = {.reload = {.on_stop = stop_server, .user = &s}};
    const peg_mcp_options options = {
        PEG_MCP_OPTIONS_INIT,
        .name = args->n_toolsets == 1 ? args->toolsets[0] : "pegboard",
        .concurrency = args->concurrency ? args->concurrency : BRIDGE_CONCURRENCY,
        .drain_ms = args->drain_ms,
    };
    struct mcp_bridge *bridge;
    peg_error error;
    int answer = CLI_OK;

    cli_block_signals(&s.reload.signals);
    bridge = mcp_bridge_open(&args->remote, args->toolsets, args->n_toolsets, &answer);
    if (!bridge)
        return answer;
    s.registry = mcp_bridge_registry(bridge);
    if (reload_open(&s.reload, NULL, 0, false, &error) || serve_until_closed(&s, &options, &error))
        answer = remote_complain_local(NULL, &error);
    reload_close(&s.reload);
    mcp_bridge_close(bridge);
    return answer;
}

static int run_mcp(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct mcp_args options = {0};
    struct served served = {
        .reload = {.on_change = reload_file, .on_stop = stop_server, .user = &served}};
    peg_error error;
    int answer;

    if (argc > 1 && cli_find_part(self, argv[1]))
        return cli_run_part(self, argc, argv);
    if (!remote_read(&options.remote, &args, take_toolset))
        return args.exit;
    if (args.n_operands && options.n_toolsets)
        return cli_bad_use(self, "--toolset is about a gateway, and a FILE needs none");
    if (args.n_operands && !strcmp(options.remote.address_from, "--registry"))
        return cli_bad_use(self, "--registry is about a gateway, and a FILE needs none");
    if (!args.n_operands)
        return serve_gateway(&options);
    served.n_files = args.n_operands;
    if (reload_open(&served.reload, args.operands, args.n_operands, !options.only_signals, &error))
        return remote_complain_local(NULL, &error);
    answer = read_files(&served);
    if (answer == CLI_OK)
        answer = serve_files(&options, &served);
    reload_close(&served.reload);
    peg_registry_unref(served.registry);
    manifests_free(served.files, served.n_files);
    return answer;
}

static const struct cli_command *const parts[] = {&cli_mcp_config, NULL};

const struct cli_command cli_mcp = {
    .name = "mcp",
    .usage = "[options] [FILE...]",
    .parts = parts,
    .summary = "offer commands, or a gateway's tools, to an MCP client",
    .about = "Reads each FILE, a manifest in YAML or JSON, and offers its commands as tools to an\n"
             "MCP client (Model Context Protocol) on standard input and output, until that closes\n"
             "its end. No gateway is involved. pegboard-provide(1) has the keys of a manifest.\n"
             "Without a FILE it offers the tools of a gateway in the same way, and follows it.\n\n"
             "Both eras are spoken, whichever the client begins with: 2026-07-28, and 2025-11-25\n"
             "or 2025-06-18. A client starts it by itself; its configuration has this command.\n"
             "SIGTERM and SIGINT: takes no new calls, finishes what runs, ends. A FILE that\n"
             "changes is read again, and all of them on SIGHUP; clients that subscribed to that\n"
             "are notified. One that cannot be used changes nothing. A gateway is followed\n"
             "without: SIGHUP does nothing then. A file called config is ./config.",
    .options = option_table,
    .max_operands = MAX_FILES,
    .notes = "exit status:\n"
             "  0  the client closed its end, or it was stopped\n"
             "  2  a wrong option, or a manifest that cannot be used\n"
             "  3  the gateway could not be reached, or does not know who we are\n\n"
             "examples:\n"
             "  pegboard mcp tools.yaml, as the configuration of a client has it:\n"
             "  {\"mcpServers\": {\"files\": {\"command\": \"pegboard\",\n"
             "                            \"args\": [\"mcp\", \"/home/me/files.yaml\"]}}}",
    .needs_no_reader = true,
    .run = run_mcp,
};
