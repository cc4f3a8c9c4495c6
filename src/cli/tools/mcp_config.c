/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard mcp config: what to paste into the configuration of an MCP client. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "cli/tools/manifests.h"
#include "cli/tools/mcp.h"
#include "json/json.h"

/* Clients, as their documents say (November 2026). */
static const struct client {
    const char *name;
    const char *where;   /* the file, for people */
    const char *servers; /* the member, or table, that has the servers */
    const char *type;    /* of a command: the value of "type"; NULL: it has none */
    const char *url_type;
    const char *url; /* the member for a URL; NULL: it takes none */
    bool is_toml;
} clients[] = {
    {"claude-code", ".mcp.json in the folder of the project", "mcpServers", "stdio", "http", "url",
     false},
    {"claude-desktop",
     "claude_desktop_config.json in ~/Library/Application Support/Claude (macOS) or "
     "%APPDATA%\\Claude (Windows)",
     "mcpServers", NULL, NULL, NULL, false},
    {"codex", "~/.codex/config.toml", "mcp_servers", NULL, NULL, "url", true},
    {"cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the folder of the project", "mcpServers",
     NULL, NULL, "url", false},
    {"vscode", ".vscode/mcp.json in the folder of the project", "servers", "stdio", "http", "url",
     false},
    {"windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers", NULL, NULL, "serverUrl",
     false},
    {"zed", "settings.json of Zed (zed: open settings file)", "context_servers", NULL, NULL, "url",
     false},
};

enum { N_CLIENTS = sizeof(clients) / sizeof(clients[0]), MAX_FILES = 64 };

struct config_args {
    const char *url;
    const char *registry;
};

/* What is printed. */
struct entry {
    const struct client *client;
    char name[64];
    char program[PATH_MAX];
    char *const *files;
    size_t n_files;
    const char *url;      /* NULL: a command */
    const char *registry; /* of a command without files */
};

static const struct cli_option option_table[] = {
    {0, 0, "url", "URL", "an MCP server behind HTTP, such as a gateway's", .kind = CLI_STRING,
     .at = offsetof(struct config_args, url), .least = 1},
    {0, 0, "registry", "ADDR", "the tools of a gateway, through `pegboard mcp --registry`",
     .kind = CLI_STRING, .at = offsetof(struct config_args, registry), .least = 1},
    {.name = NULL},
};

static const struct client *find_client(const char *name)
{
    for (size_t i = 0; i < N_CLIENTS; i++) {
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    }
    return NULL;
}

static int reject_client(const struct cli_command *self, const char *name)
{
    struct cli_suggestion suggestion;
    char known[256] = "";

    cli_suggestion_start(&suggestion, name);
    for (size_t i = 0; i < N_CLIENTS; i++) {
        const size_t len = strlen(known);

        cli_suggestion_offer(&suggestion, clients[i].name);
        snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "", clients[i].name);
    }
    return cli_bad_use(self, "there is no client '%s'%s%s%s; known are %s", name,
                       suggestion.name ? "; did you mean '" : "",
                       suggestion.name ? suggestion.name : "", suggestion.name ? "'?" : "", known);
}

/* ---- the entry ---- */

/* Clients make names of tools from it: [A-Za-z0-9_-]. */
static void name_server(struct entry *entry, const char *name)
{
    size_t n = 0;

    for (; name[n] && n < sizeof(entry->name) - 1; n++)
        entry->name[n] = (char)(peg__is_alnum(name[n]) || name[n] == '-' ? name[n] : '_');
    entry->name[n] = '\0';
}

/* A client does not have the folder of our terminal, nor perhaps its PATH. */
static bool find_program(struct entry *entry)
{
    const ssize_t n = readlink("/proc/self/exe", entry->program, sizeof(entry->program) - 1);

    entry->program[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void put_file(struct peg__out *out, const char *path)
{
    char resolved[PATH_MAX];

    peg__out_cstring(out, realpath(path, resolved) ? resolved : path);
}

static void put_command_args(struct peg__out *out, const struct entry *entry)
{
    peg__out_array(out);
    peg__out_cstring(out, "mcp");
    if (entry->registry) {
        peg__out_cstring(out, "--registry");
        peg__out_cstring(out, entry->registry);
    }
    for (size_t i = 0; i < entry->n_files; i++)
        put_file(out, entry->files[i]);
    peg__out_end_array(out);
}

static void put_json(struct peg__buf *text, const struct entry *entry)
{
    struct peg__out out = {.buf = text};
    const struct client *client = entry->client;
    const char *type = entry->url ? client->url_type : client->type;

    peg__out_object(&out);
    peg__out_key(&out, client->servers);
    peg__out_object(&out);
    peg__out_key(&out, entry->name);
    peg__out_object(&out);
    if (type)
        peg__out_cmember(&out, "type", type);
    if (entry->url) {
        peg__out_cmember(&out, client->url, entry->url);
    } else {
        peg__out_cmember(&out, "command", entry->program);
        peg__out_key(&out, "args");
        put_command_args(&out, entry);
    }
    peg__out_end_object(&out);
    peg__out_end_object(&out);
    peg__out_end_object(&out);
}

/* Strings and arrays of strings are written as in JSON. */
static void put_toml(struct peg__buf *text, const struct entry *entry)
{
    struct peg__out out = {.buf = text};

    peg__buf_printf(text, "[%s.%s]\n", entry->client->servers, entry->name);
    if (entry->url) {
        peg__buf_printf(text, "%s = ", entry->client->url);
        peg__json_write_string(peg__str(entry->url), text);
    } else {
        peg__buf_puts(text, "command = ");
        peg__json_write_string(peg__str(entry->program), text);
        peg__buf_puts(text, "\nargs = ");
        put_command_args(&out, entry);
    }
    peg__buf_putc(text, '\n');
}

static int print_entry(const struct entry *entry)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf json = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (entry->client->is_toml) {
        put_toml(&text, entry);
    } else {
        put_json(&json, entry);
        if (json.status || !toolset_put_pretty(&text, peg__buf_view(&json)))
            text.status = PEG_ENOMEM;
        peg__buf_putc(&text, '\n');
        peg__buf_free(&json);
    }
    fprintf(stderr, "pegboard: for %s\n", entry->client->where);
    return remote_print(&text);
}

static int read_names(struct entry *entry)
{
    struct manifest_file files[MAX_FILES];
    int answer = manifests_read(entry->files, entry->n_files, files);

    if (answer == CLI_OK)
        name_server(entry,
                    entry->n_files == 1 ? peg_manifest_toolset(files[0].manifest) : "pegboard");
    manifests_free(files, entry->n_files);
    return answer;
}

static int run_config(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct config_args given = {.url = NULL};
    struct entry entry = {.name = "pegboard"};
    int answer = CLI_OK;

    if (!cli_read(&args, &given, NULL))
        return args.exit;
    entry.client = find_client(args.operands[0]);
    entry.files = args.operands + 1;
    entry.n_files = args.n_operands - 1;
    entry.url = given.url;
    entry.registry = given.registry;
    if (!entry.client)
        return reject_client(self, args.operands[0]);
    if ((entry.n_files > 0) + (entry.url != NULL) + (entry.registry != NULL) != 1)
        return cli_bad_use(self, "one of these is needed: manifests, --url or --registry");
    if (entry.url && !entry.client->url)
        return cli_bad_use(self, "%s takes commands in its file, and no URL: use --registry",
                           entry.client->name);
    if (!find_program(&entry))
        return cli_bad_use(self, "where this program is cannot be found out: is /proc there?");
    if (entry.n_files)
        answer = read_names(&entry);
    return answer == CLI_OK ? print_entry(&entry) : answer;
}

const struct cli_command cli_mcp_config = {
    .name = "mcp config",
    .usage = "CLIENT (FILE... | --url URL | --registry ADDR)",
    .summary = "print what to paste into a client's configuration",
    .about = "Prints the entry that has CLIENT start `pegboard mcp`, or connect to a URL,\n"
             "in the form of the client's own configuration. Standard error says which file it is\n"
             "for. Members of a file that is there already are to be joined by hand.\n\n"
             "CLIENT is claude-code, claude-desktop, codex, cursor, vscode, windsurf or zed.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1 + MAX_FILES,
    .needed = "a client is needed, such as cursor",
    .notes = "exit status:\n"
             "  0  it was printed\n"
             "  2  a wrong option, an unknown client, or a manifest that cannot be used\n\n"
             "examples:\n"
             "  pegboard mcp config claude-desktop tools.yaml\n"
             "  pegboard mcp config vscode --url http://127.0.0.1:9090/mcp",
    .run = run_config,
};
