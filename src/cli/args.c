/* SPDX-License-Identifier: Apache-2.0 */

/* Options from a table: --name VALUE, --name=VALUE, -x; operands may stand among them. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/terminal/terminal.h"

static const struct cli_option help_option = {-1, 'h', "help", NULL, "show this help"};

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t len)
{
    for (const struct cli_option *o = command->options; o->id; o++) {
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    }
    if (len == strlen(help_option.name) && memcmp(help_option.name, name, len) == 0)
        return &help_option;
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_command *command, char letter)
{
    for (const struct cli_option *o = command->options; o->id; o++) {
        if (o->letter == letter)
            return o;
    }
    return letter == help_option.letter ? &help_option : NULL;
}

static int stop_with(struct cli_args *args, int status)
{
    args->exit = status;
    return CLI_STOP;
}

/* Takes the value, from behind the = (attached) or from the next argument. */
static int take_option(struct cli_args *args, const struct cli_option *option, const char *attached)
{
    args->value = attached;
    if (option == &help_option) {
        cli_print_help(args->command);
        return stop_with(args, CLI_OK);
    }
    if (!option->value && attached)
        return stop_with(args, cli_bad_use(args->command, "--%s takes no value", option->name));
    if (option->value && !attached) {
        if (args->at >= args->argc)
            return stop_with(args, cli_bad_use(args->command, "--%s needs a value: %s",
                                               option->name, option->value));
        args->value = args->argv[args->at++];
    }
    return option->id;
}

/* The most similar name, or NULL. */
static const char *suggest_option(const struct cli_command *command, const char *unknown,
                                  size_t len)
{
    char copy[64];
    struct cli_suggestion suggestion;

    if (len >= sizeof(copy))
        return NULL;
    memcpy(copy, unknown, len);
    copy[len] = '\0';
    cli_suggestion_start(&suggestion, copy);
    for (const struct cli_option *o = command->options; o->id; o++)
        cli_suggestion_offer(&suggestion, o->name);
    cli_suggestion_offer(&suggestion, help_option.name);
    return suggestion.name;
}

static int reject_name(struct cli_args *args, const char *name, size_t len)
{
    const char *suggestion = suggest_option(args->command, name, len);

    return stop_with(args, cli_bad_use(args->command, "there is no option --%.*s%s%s", (int)len,
                                       name, suggestion ? ", but there is --" : "",
                                       suggestion ? suggestion : ""));
}

static int take_named(struct cli_args *args, const char *name)
{
    const char *equals = strchr(name, '=');
    const size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *option = find_option(args->command, name, len);

    if (!option)
        return reject_name(args, name, len);
    return take_option(args, option, equals ? equals + 1 : NULL);
}

static int take_letter(struct cli_args *args, const char *letters)
{
    const struct cli_option *option = letters[1] ? NULL : find_letter(args->command, letters[0]);

    if (!option)
        return stop_with(args, cli_bad_use(args->command, "there is no option -%s", letters));
    return take_option(args, option, NULL);
}

int cli_next(struct cli_args *args)
{
    const char *arg;

    if (args->at == 0)
        args->at = 1;
    if (args->at >= args->argc)
        return CLI_END;
    arg = args->argv[args->at++];
    if (!args->only_operands && strcmp(arg, "--") == 0) {
        args->only_operands = true;
        if (args->at >= args->argc)
            return CLI_END;
        arg = args->argv[args->at++];
    }
    args->value = arg;
    if (args->only_operands || arg[0] != '-' || arg[1] == '\0')
        return CLI_OPERAND;
    return arg[1] == '-' ? take_named(args, arg + 2) : take_letter(args, arg + 1);
}

int cli_bad_value(struct cli_args *args, const char *option, const char *wanted)
{
    return stop_with(args, cli_bad_use(args->command, "--%s is '%s', but should be %s", option,
                                       args->value, wanted));
}

int cli_bad_use(const struct cli_command *command, const char *fmt, ...)
{
    va_list list;

    fputs("pegboard: ", stderr);
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fprintf(stderr, "; see `pegboard %s --help`\n", command->name);
    return CLI_UNUSABLE;
}

int cli_unexpected(const struct cli_command *command, const char *operand)
{
    return cli_bad_use(command, "unexpected argument '%s'", operand);
}

static unsigned shift_of(char suffix)
{
    switch (suffix) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    default:
        return 0;
    }
}

bool cli_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    unsigned shift;

    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > most)
            return false;
    }
    shift = shift_of(*text);
    if (shift)
        text++;
    if (*text || number > most >> shift || number << shift < least)
        return false;
    *ret_number = number << shift;
    return true;
}

/* ---- help ------------------------------------------------------------------- */

/* The column at which the explanation of an option starts. */
enum { HELP_COLUMN = 26 };

static void print_option(const struct cli_option *option)
{
    int column = option->letter ? printf("  -%c, --%s", option->letter, option->name)
                                : printf("      --%s", option->name);
    const char *line = option->help;

    if (option->value)
        column += printf(" %s", option->value);
    if (column > HELP_COLUMN - 2) {
        putchar('\n');
        column = 0;
    }
    while (line) {
        const char *end = strchr(line, '\n');
        const int len = end ? (int)(end - line) : (int)strlen(line);

        printf("%*s%.*s\n", HELP_COLUMN - column, "", len, line);
        column = 0;
        line = end ? end + 1 : NULL;
    }
}

/* "show" of "turn show". */
static const char *last_word(const char *name)
{
    const char *space = strrchr(name, ' ');

    return space ? space + 1 : name;
}

const struct cli_command *cli_find_part(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; command->parts && command->parts[i]; i++) {
        if (strcmp(last_word(command->parts[i]->name), name) == 0)
            return command->parts[i];
    }
    return NULL;
}

static void print_parts(const struct cli_command *command)
{
    puts("commands:");
    for (size_t i = 0; command->parts[i]; i++)
        printf("  %-12s%s\n", last_word(command->parts[i]->name), command->parts[i]->summary);
    putchar('\n');
}

void cli_print_help(const struct cli_command *command)
{
    printf("usage: pegboard %s %s\n\n%s\n\n", command->name, command->usage, command->about);
    if (command->parts)
        print_parts(command);
    puts("options:");
    for (const struct cli_option *o = command->options; o->id; o++)
        print_option(o);
    print_option(&help_option);
    printf("\n%s\n", command->notes);
}
