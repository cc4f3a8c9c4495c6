/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard COMMAND ...: finds the command and runs it. */

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/meant.h"

static const struct cli_command *const commands[] = {
    &cli_call,       &cli_definitions, &cli_get,    &cli_list,  &cli_provide,
    &cli_search,     &cli_serve,       &cli_status, &cli_token, &cli_turn,
    &cli_unregister, &cli_validate,    &cli_watch,
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int print_overview(void)
{
    puts("usage: pegboard COMMAND ...\n\n"
         "Typed tools for language-model agents: one schema says what the model is told\n"
         "and what the handler accepts.\n\n"
         "commands:");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-12s%s\n", commands[i]->name, commands[i]->summary);
    puts("  help        explain a command: pegboard help validate\n\n"
         "`pegboard COMMAND --help` explains a command, `pegboard --version` tells the version.");
    return CLI_OK;
}

static int complain(const char *name)
{
    struct cli_meant meant;

    cli_meant_start(&meant, name);
    for (size_t i = 0; i < N_COMMANDS; i++)
        cli_meant_offer(&meant, commands[i]->name);
    fprintf(stderr, "pegboard: there is no command '%s'; ", name);
    if (meant.name)
        fprintf(stderr, "did you mean '%s'? ", meant.name);
    fputs("`pegboard help` lists them\n", stderr);
    return CLI_UNUSABLE;
}

static int help(int argc, char **argv)
{
    const struct cli_command *command;

    if (argc < 2)
        return print_overview();
    command = find(argv[1]);
    if (!command)
        return complain(argv[1]);
    if (argc > 2 && command->parts) {
        command = cli_find_part(command, argv[2]);
        if (!command) {
            fprintf(stderr,
                    "pegboard: there is no command '%s %s'; `pegboard help %s` lists them\n",
                    argv[1], argv[2], argv[1]);
            return CLI_UNUSABLE;
        }
    }
    cli_print_help(command);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    const struct cli_command *command = find(name);

    if (command)
        return command->run(command, argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        printf("pegboard %s\n", peg_version());
        return CLI_OK;
    }
    return complain(name);
}

/* The locale stays "C": numbers are printed and read the same everywhere. */
int main(int argc, char **argv)
{
    int status = run(argc, argv);

    /* A full disk or a closed pipe must not look like an answer. */
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "pegboard: the output could not be written: %m\n");
        status = CLI_UNUSABLE;
    }
    return status;
}
