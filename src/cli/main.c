/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard COMMAND ...: finds the command and runs it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/terminal/terminal.h"

/* The commands by what one wants to do, as the overview shows them. */
static const struct group {
    const char *title;
    const struct cli_command *commands[8]; /* NULL behind the last */
} groups[] = {
    {"run a gateway",
     {&cli_serve, &cli_status, &cli_cluster, &cli_drain, &cli_token, &cli_unregister}},
    {"offer tools", {&cli_provide, &cli_mcp}},
    {"find and call tools",
     {&cli_list, &cli_search, &cli_get, &cli_call, &cli_calls, &cli_watch, &cli_chat}},
    {"work on files", {&cli_validate, &cli_definitions, &cli_generate, &cli_turn}},
};

enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]) };

#define EACH_COMMAND(at)                                                                           \
    for (const struct group *group = groups; group < groups + N_GROUPS; group++)                   \
        for (const struct cli_command *const *at = group->commands; *at; at++)

static const struct cli_command *find_command(const char *name)
{
    EACH_COMMAND(at)
    {
        if (strcmp((*at)->name, name) == 0)
            return *at;
    }
    return NULL;
}

static int print_overview(void)
{
    puts("usage: pegboard COMMAND ...\n\n"
         "Tools for language-model agents: declared once with a JSON Schema, offered to any\n"
         "model, checked and run, here or on another machine.");
    for (const struct group *group = groups; group < groups + N_GROUPS; group++) {
        printf("\n%s:\n", group->title);
        for (const struct cli_command *const *at = group->commands; *at; at++)
            printf("  %-12s%s\n", (*at)->name, (*at)->summary);
    }
    puts("\n`pegboard COMMAND --help` or `pegboard help COMMAND` explains a command,\n"
         "`pegboard --version` tells the version.");
    return CLI_OK;
}

static int reject_command(const char *name)
{
    struct cli_suggestion suggestion;

    cli_suggestion_start(&suggestion, name);
    EACH_COMMAND(at)
    cli_suggestion_offer(&suggestion, (*at)->name);
    fprintf(stderr, "pegboard: there is no command '%s'; ", name);
    if (suggestion.name)
        fprintf(stderr, "did you mean '%s'? ", suggestion.name);
    fputs("`pegboard help` lists them\n", stderr);
    return CLI_UNUSABLE;
}

static int print_command_help(int argc, char **argv)
{
    const struct cli_command *command;

    if (argc < 2)
        return print_overview();
    command = find_command(argv[1]);
    if (!command)
        return reject_command(argv[1]);
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
        return print_command_help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        printf("pegboard %s\n", peg_version());
        return CLI_OK;
    }
    return reject_command(name);
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
    const struct cli_command *command = find_command(name);
    int status;

    fill_closed_streams();
    status = command ? command->run(command, argc - 1, argv + 1) : run_other(name, argc, argv);
    return end_output(command, status);
}
