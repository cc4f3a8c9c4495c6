/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard unregister: takes a toolset out of the catalog. */

#include <stdio.h>

#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"

struct unregister_options {
    struct remote_args remote;
    bool is_operator;
};

static const struct cli_option option_table[] = {
    {0, 0, "operator", NULL, "also what another principal has registered; for operators",
     .kind = CLI_FLAG, .at = offsetof(struct unregister_options, is_operator)},
    REMOTE_OPTIONS,
    {.name = NULL},
};

static int unregister_toolset(struct remote_args *remote, peg_client *client)
{
    const struct unregister_options *o = (const struct unregister_options *)remote;
    const char *name = remote->operands[0];
    peg_error error;

    if (o->is_operator ? peg_client_admin_unregister(client, NULL, NULL, name, &error)
                       : peg_client_unregister(client, NULL, NULL, name, &error)) {
        cli_suggestion_toolset(client, name, &error);
        return remote_complain(remote, &error);
    }
    printf("%s: unregistered\n", name);
    return CLI_OK;
}

static int run_unregister(const struct cli_command *self, int argc, char **argv)
{
    struct unregister_options options = {.is_operator = false};

    return remote_run(&options.remote, self, argc, argv, NULL, unregister_toolset);
}

const struct cli_command cli_unregister = {
    .name = "unregister",
    .usage = "[options] TOOLSET",
    .summary = "take a toolset out of the catalog",
    .about = "Removes the toolset for all callers. Its providers finish what they run, and end;\n"
             "one that is started again registers it again.\n"
             "Only its owner may do this, and operators with --operator.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "the name of a toolset is needed",
    .notes = "exit status:\n"
             "  0  it is gone\n"
             "  1  there is no such toolset, or it is another's\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard unregister weather\n"
             "  pegboard unregister --operator --token ops.token weather",
    .run = run_unregister,
};
