/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/tools/mcp_servers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "tools/tools.h"
#include "json/json.h"

const char *mcp_servers_event_name(peg_mcp_event_kind kind)
{
    static const char *const names[] = {
        [PEG_MCP_CONNECTED] = "mcp_connected",
        [PEG_MCP_LOST] = "mcp_lost",
        [PEG_MCP_TOOLS_CHANGED] = "mcp_tools_changed",
        [PEG_MCP_TOOL_REJECTED] = "mcp_tool_rejected",
        [PEG_MCP_STDERR] = "mcp_stderr",
    };

    return names[kind];
}

void mcp_servers_print_event(const peg_mcp_event *event, void *user)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (event->kind == PEG_MCP_CONNECTED || event->kind == PEG_MCP_TOOLS_CHANGED)
        return;
    peg__buf_printf(&line, "pegboard: %s: ", (const char *)user);
    if (event->kind == PEG_MCP_TOOL_REJECTED) {
        peg__buf_puts(&line, "the tool '");
        cli_put_safe(&line, peg__str(event->tool));
        peg__buf_puts(&line, "' is left out: ");
    }
    cli_put_safe(&line, peg__str(event->message));
    cli_print_line(&line);
}

const char *mcp_servers_name_toolset(peg_mcp_client *server, char name[MCP_SERVERS_NAME_BYTES])
{
    const peg_mcp_client_state state = peg_mcp_client_info(server);
    size_t n = 0;

    for (; state.server[n] && n < MCP_SERVERS_NAME_BYTES - 1; n++) {
        const char c = state.server[n];

        name[n] = (char)(peg__is_alnum(c) || strchr("_.:/-", c) ? c : '_');
    }
    name[n] = '\0';
    return n ? name : "mcp";
}

/* Names that a manifest takes; what is ours, such as tokens, is no business of the server's. */
static bool is_passed_on(const char *variable)
{
    size_t n = 0;

    while (peg__is_alnum(variable[n]) || variable[n] == '_')
        n++;
    return n && variable[n] == '=' && !peg__is_digit(variable[0]) &&
           strncmp(variable, "PEGBOARD_", 9) != 0 && peg__utf8_is_valid(peg__str(variable));
}

static void put_command(struct peg__out *out, char *const *words)
{
    cli_out_array(out, "command");
    for (; *words; words++)
        peg__out_cstring(out, *words);
    peg__out_end_array(out);
    cli_out_array(out, "env");
    for (char **variable = environ; *variable; variable++) {
        if (is_passed_on(*variable))
            peg__out_cstring(out, *variable);
    }
    peg__out_end_array(out);
}

static bool is_url(const char *word)
{
    return !strncmp(word, "http://", 7) || !strncmp(word, "https://", 8);
}

/* {"toolset": ..., "mcp": {"command": [...], "env": [...]}}, or {"url": ...} in its place */
static void put_manifest(struct peg__buf *text, const char *toolset, char *const *words)
{
    struct peg__out out = {.buf = text};

    peg__out_object(&out);
    peg__out_cmember(&out, "toolset", toolset ? toolset : "mcp");
    peg__out_key(&out, "mcp");
    peg__out_object(&out);
    if (is_url(words[0]))
        peg__out_cmember(&out, "url", words[0]);
    else
        put_command(&out, words);
    peg__out_end_object(&out);
    peg__out_end_object(&out);
}

int mcp_servers_make_manifest(const char *toolset, char *const *words,
                              struct manifest_file *ret_file)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_error error;
    peg_status status;

    *ret_file = (struct manifest_file){.path = words[0]};
    if (is_url(words[0]) && words[1]) {
        fprintf(stderr, "pegboard: unexpected argument '%s' behind the URL of an MCP server\n",
                words[1]);
        return CLI_UNUSABLE;
    }
    put_manifest(&text, toolset, words);
    status = text.status
                 ? peg__fail_nomem(&error)
                 : peg_manifest_parse(peg__buf_view(&text), NULL, &ret_file->manifest, &error);
    peg__buf_free(&text);
    return status ? remote_complain_local(NULL, &error) : CLI_OK;
}

peg_status mcp_servers_import(peg_registry *registry, const peg_manifest *manifest,
                              peg_mcp_import_options *options, peg_http **http,
                              peg_mcp_client **ret_server, peg_error *reterr)
{
    const struct peg__manifest_mcp *mcp = peg__manifest_mcp(manifest);
    peg_status status = PEG_OK;

    if (mcp && mcp->url && !*http)
        status = mcp_servers_http_new(http, reterr);
    options->http = *http;
    return status ? status
                  : peg_mcp_import_manifest(registry, manifest, options, ret_server, reterr);
}
