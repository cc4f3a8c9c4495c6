/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard unregister: takes a toolset out of the catalog. */

#include <stdio.h>

#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"

enum { OPT_OPERATOR = 1 };

static const struct cli_option option_table[] = {
    {OPT_OPERATOR, 0, "operator", NULL,
     "also what another principal has registered; for operators"},
    REMOTE_OPTIONS,
    {0, 0, NULL, NULL, NULL},
};

struct unregistering {
    struct remote_args remote;
    const char *name;
    bool is_operator;
};

static int take_unregister_option(void *user, struct cli_args *args, int id)
{
    struct unregistering *u = user;

    (void)args;
    u->is_operator |= id == OPT_OPERATOR;
    return 0;
}

static peg_status unregister_toolset(const struct unregistering *u, peg_client *client,
                                     peg_error *reterr)
{
    return u->is_operator ? peg_client_admin_unregister(client, NULL, NULL, u->name, reterr)
                          : peg_client_unregister(client, NULL, NULL, u->name, reterr);
}

static int run_unregister(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct unregistering u = {.name = NULL};
    const struct remote_own own = {.take = take_unregister_option,
                                   .user = &u,
                                   .operands = &u.name,
                                   .max_operands = 1,
                                   .needed = "the name of a toolset is needed"};
    peg_client *client = NULL;
    peg_error error;
    int answer;

    if (!remote_read(&u.remote, &args, &own, &answer))
        return answer;
    answer = remote_open(&u.remote, &client);
    if (answer)
        return answer;
    if (!unregister_toolset(&u, client, &error)) {
        printf("%s: unregistered\n", u.name);
    } else {
        cli_suggestion_toolset(client, u.name, &error);
        answer = remote_complain(&u.remote, &error);
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
        "Only who registered a toolset may do this, and operators with --operator.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it is gone\n"
             "  1  there is no such toolset, or it is another's\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard unregister weather\n"
             "  pegboard unregister --operator --token ops.token weather",
    .run = run_unregister,
};
