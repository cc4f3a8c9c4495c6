/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard unregister: takes a toolset out of the catalog. */

#include <stdio.h>

#include "base/str.h"
#include "cli/meant.h"
#include "cli/remote_args.h"

static const struct cli_option option_table[] = {
    REMOTE_OPTIONS,
    {0, 0, NULL, NULL, NULL},
};

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct remote_args remote = {.address = NULL};
    const char *name = NULL;
    size_t n_operands = 1;
    peg_client *client = NULL;
    peg_error error;
    int answer;

    if (!remote_read(&remote, &args, &name, &n_operands, &answer))
        return answer;
    if (!name)
        return cli_bad_use(self, "the name of a toolset is needed");
    answer = remote_open(&remote, &client);
    if (answer)
        return answer;
    if (!peg_client_unregister(client, NULL, NULL, name, &error)) {
        printf("%s: unregistered\n", name);
    } else {
        cli_meant_toolset(client, name, &error);
        answer = remote_complain(&remote, &error);
    }
    peg_client_unref(client);
    return answer;
}

const struct cli_command cli_unregister = {
    .name = "unregister",
    .usage = "[options] TOOLSET",
    .summary = "take a toolset out of the catalog",
    .about =
        "The toolset is gone for all who look for it. Its providers finish what they run, are\n"
        "told, and end; one that is started again registers it again.\n"
        "Only who registered a toolset may do this.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it is gone\n"
             "  1  there is no such toolset, or it is another's\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard unregister weather",
    .run = run,
};
