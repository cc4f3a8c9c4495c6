/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard get: what is in a toolset? */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/args.h"
#include "cli/remote/tool_print.h"
#include "cli/remote/toolset.h"
#include "cli/terminal/suggestion.h"
#include "cli/turn/turn.h"

static const struct cli_option option_table[] = {
    {REMOTE_OPT_JSON, 0, "json", NULL, "print one JSON object, schemas included"},
    {REMOTE_OPT_NAMES, 0, "names", NULL, "print the names of the tools only, one a line"},
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {0, 0, NULL, NULL, NULL},
};

/* ---- a toolset ---- */

static void put_json(struct peg__buf *buf, const peg_toolset *toolset)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    toolset_out(&out, &toolset->info);
    peg__out_cmember(&out, "stream_id", toolset->stream_id);
    peg__out_key(&out, "tools");
    peg__out_array(&out);
    for (size_t i = 0; i < toolset->n_tools; i++) {
        peg__out_object(&out);
        tool_out(&out, &toolset->tools[i]);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    peg__buf_putc(buf, '\n');
}

static void put_names(struct peg__buf *out, const peg_toolset *toolset)
{
    for (size_t i = 0; i < toolset->n_tools; i++) {
        cli_put_safe(out, peg__str(toolset->tools[i].name));
        peg__buf_putc(out, '\n');
    }
}

static void put_safe(struct peg__buf *out, const char *before, const char *text)
{
    if (!*text)
        return;
    peg__buf_puts(out, before);
    cli_put_safe(out, peg__str(text));
}

static void put_facts(const struct tool_print *print, const peg_toolset_info *info)
{
    struct peg__buf *out = print->out;

    for (size_t i = 0; i < info->n_tags; i++)
        put_safe(out, i ? ", " : "  tags: ", info->tags[i]);
    if (info->n_tags)
        peg__buf_putc(out, '\n');
    put_safe(out, "  registered ", info->registered_at);
    put_safe(out, " by ", info->owner);
    peg__buf_printf(out, ", revision %llu\n", (unsigned long long)info->revision);
}

/* What the gateway says in front of it is for logs: the name again, and numbers. */
static const char *reason_of(const peg_toolset_info *info)
{
    const char *behind = strstr(info->health_reason, "): ");

    if (info->n_providers == 0 && !info->is_direct)
        return "no provider is attached";
    return behind ? behind + 3 : info->health_reason;
}

static void put_health(const struct tool_print *print, const peg_toolset_info *info)
{
    const bool is_well = info->health == PEG_HEALTH_HEALTHY;
    struct peg__buf *out = print->out;

    peg__buf_printf(out, "  %s", is_well ? print->style->good : print->style->bad);
    toolset_put_health(out, info);
    peg__buf_puts(out, print->style->off);
    if (!is_well && info->health != PEG_HEALTH_UNKNOWN) {
        put_safe(out, ": ", reason_of(info));
        if (info->last_pong_ms) {
            peg__buf_puts(out, " (last heard of ");
            toolset_put_age(out, time(NULL) - info->last_pong_ms / 1000);
            peg__buf_puts(out, " ago)");
        }
    }
    if (is_well || info->n_providers)
        peg__buf_printf(out, ", %u provider%s", info->n_providers,
                        info->n_providers == 1 ? "" : "s");
    if (info->n_draining)
        peg__buf_printf(out, " (%u draining)", info->n_draining);
    peg__buf_putc(out, '\n');
}

static void put_head(const struct tool_print *print, const peg_toolset_info *info)
{
    const struct turn_text how = {
        .out = print->out, .width = print->width, .indent = 2, .on = "", .off = ""};
    struct peg__buf *out = print->out;

    peg__buf_puts(out, print->style->bold);
    cli_put_safe(out, peg__str(info->name));
    peg__buf_puts(out, print->style->off);
    put_safe(out, " ", info->version);
    put_health(print, info);
    if (*info->description)
        turn_put_text(&how, peg__str(info->description));
    put_facts(print, info);
}

static void put_toolset(const struct tool_print *print, const peg_toolset *toolset)
{
    put_head(print, &toolset->info);
    for (size_t i = 0; i < toolset->n_tools; i++) {
        peg__buf_putc(print->out, '\n');
        tool_print(print, &toolset->tools[i]);
    }
}

/* ---- one of its tools ---- */

static void put_tool_json(struct peg__buf *buf, const peg_toolset_tool *tool)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    tool_out(&out, tool);
    peg__out_end_object(&out);
    peg__buf_putc(buf, '\n');
}

/* ---- the command ---- */

static int show(const struct remote_args *remote, const peg_toolset *toolset, const char *name)
{
    peg_error error;
    const peg_toolset_tool *tool = name ? cli_find_tool(toolset, name, &error) : NULL;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct tool_print print = {.out = &out,
                                     .style = cli_style_for(remote->color, STDOUT_FILENO),
                                     .width = cli_width(STDOUT_FILENO)};

    if (name && !tool)
        return remote_complain(remote, &error);
    if (toolset->is_stale)
        fputs("pegboard: the gateway does not answer; this is what it said before\n", stderr);
    if (remote->only_names)
        put_names(&out, toolset);
    else if (remote->as_json && tool)
        put_tool_json(&out, tool);
    else if (remote->as_json)
        put_json(&out, toolset);
    else if (tool)
        tool_print_whole(&print, tool);
    else
        put_toolset(&print, toolset);
    return remote_print(&out);
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct remote_args remote = {.address = NULL};
    const char *operands[2] = {NULL, NULL};
    size_t n_operands = 2;
    peg_toolset *toolset = NULL;
    peg_client *client = NULL;
    peg_error error;
    int answer;

    if (!remote_read(&remote, &args, operands, &n_operands, &answer))
        return answer;
    if (n_operands == 0)
        return cli_bad_use(self, "the name of a toolset is needed");
    answer = remote_open(&remote, &client);
    if (answer)
        return answer;
    if (!peg_client_get(client, NULL, NULL, operands[0], &toolset, &error)) {
        answer = show(&remote, toolset, operands[1]);
    } else {
        cli_suggestion_toolset(client, operands[0], &error);
        answer = remote_complain(&remote, &error);
    }
    peg_toolset_unref(toolset);
    peg_client_unref(client);
    return answer;
}

const struct cli_command cli_get = {
    .name = "get",
    .usage = "[options] TOOLSET [TOOL]",
    .summary = "show what is in a toolset",
    .about = "Prints what is known about a toolset: its health, and each tool with its arguments.\n"
             "With TOOL, that one alone and its schemas.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it was shown\n"
             "  1  there is no such toolset or tool\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard get weather\n"
             "  pegboard get weather forecast\n"
             "  pegboard get weather forecast --json | jq .input_schema",
    .run = run,
};
