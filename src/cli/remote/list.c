/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard list: which toolsets does the gateway have? */

#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"

static const struct cli_option option_table[] = {
    REMOTE_OPTION_TAG,
    REMOTE_FLAG("names", only_names, "print names only, one a line"),
    REMOTE_FLAG("json", as_json, "print one JSON object with the array \"toolsets\""),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

static const struct cli_column columns[] = {
    {"TOOLSET", false, true},     {"VERSION", false, true}, {"HEALTH", false, false},
    {"TOOLS", true, false},       {"PROV", true, false},    {"TAGS", false, true},
    {"DESCRIPTION", false, true},
};

static void put_list_json(struct peg__buf *buf, const peg_toolset_list *list)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    cli_out_array(&out, "toolsets");
    for (size_t i = 0; i < list->len; i++) {
        peg__out_object(&out);
        toolset_out(&out, &list->items[i]);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    cli_out_end_line(&out);
}

static void put_toolset_names(struct peg__buf *out, const peg_toolset_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        cli_put_safe(out, peg__str(list->items[i].name));
        peg__buf_putc(out, '\n');
    }
}

static void put_list_table(struct peg__buf *buf, const struct cli_style *style,
                           const peg_toolset_list *list)
{
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};

    for (size_t i = 0; i < list->len; i++) {
        const peg_toolset_info *info = &list->items[i];

        cli_table_cell(&table, peg__str(info->name), "");
        cli_table_cell(&table, peg__str(info->version), "");
        toolset_health_cell(&table, info, style);
        cli_table_number(&table, info->n_tools);
        cli_table_number(&table, info->n_providers);
        toolset_strings_cell(&table, info->tags, info->n_tags);
        toolset_line_cell(&table, info->description);
    }
    cli_table_print(&table, cli_width(STDOUT_FILENO), style, buf);
    cli_table_free(&table);
}

static int show_list(const struct remote_args *remote, const peg_toolset_list *list)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (remote->as_json)
        put_list_json(&out, list);
    else if (remote->only_names)
        put_toolset_names(&out, list);
    else if (list->len)
        put_list_table(&out, cli_style_for(remote->color, STDOUT_FILENO), list);
    else
        peg__buf_puts(&out,
                      remote->n_tags
                          ? "no toolset has these tags\n"
                          : "there are no toolsets yet; `pegboard provide FILE` offers one\n");
    toolset_warn(list->failures, list->n_failures);
    return remote_print(&out);
}

static int list_toolsets(struct remote_args *remote, peg_client *client)
{
    peg_toolset_list *list = NULL;
    peg_error error;
    const int answer = peg_client_list(client, NULL, NULL, remote->tags, &list, &error)
                           ? remote_complain(remote, &error)
                           : show_list(remote, list);

    peg_toolset_list_free(list);
    return answer;
}

static int run_list(const struct cli_command *self, int argc, char **argv)
{
    struct remote_args remote = {.address = NULL};

    return remote_run(&remote, self, argc, argv, remote_take_tag, list_toolsets);
}

const struct cli_command cli_list = {
    .name = "list",
    .usage = "[options]",
    .summary = "list the toolsets of a gateway",
    .about = "Prints the toolsets that are registered, by name: their health, how many tools they\n"
             "have, and how many providers offer them now.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  they were listed, if there are any\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard list\n"
             "  pegboard list --tag weather --registry tools.example:9090\n"
             "  pegboard list --json | jq -r '.toolsets[] | [.name, .health.state] | @tsv'",
    .run = run_list,
};
