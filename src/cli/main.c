/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard COMMAND ...: finds the command and runs it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/meant.h"
#include "cli/output.h"

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

/* What is no command of the table. */
static int run_other(const char *name, int argc, char **argv)
{
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        printf("pegboard %s\n", peg_version());
        return CLI_OK;
    }
    return complain(name);
}

/* A full disk or a closed pipe must not look like an answer; what went wrong before it is the
 * better reason. A reader who has seen enough mostly ends us by SIGPIPE, as is the custom, and is
 * no trouble for a command that is not run for what it prints. */
static int end_output(const struct cli_command *command, int status)
{
    char words[128] = "";
    int number;

    if (cli_flush())
        return status;
    number = cli_output_errno();
    if ((number == EPIPE || number == EBADF) && command && command->needs_no_reader)
        return status;
    fprintf(stderr, "pegboard: the output could not be written%s%s\n", number ? ": " : "",
            number ? strerror_r(number, words, sizeof(words)) : "");
    return status ? status : CLI_UNUSABLE;
}

/* A socket or a file that got the number of a standard stream which was closed would be read as the
 * input, or get what is printed; and libuv does not close one. The place is taken, so that reading
 * and writing there still fail. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/* The locale stays "C": numbers are printed and read the same everywhere. */
int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    const struct cli_command *command = find(name);
    int status;

    fill_closed_streams();
    status = command ? command->run(command, argc - 1, argv + 1) : run_other(name, argc, argv);
    return end_output(command, status);
}
