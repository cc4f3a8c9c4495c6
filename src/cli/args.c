/* SPDX-License-Identifier: Apache-2.0 */

/* Options from a table: --name VALUE, --name=VALUE, -x; operands may stand among them. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/tool_config.h"

static const struct cli_option help_option = {
    .letter = 'h', .name = "help", .help = "show this help"};

static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t len)
{
    for (const struct cli_option *o = command->options; o->name; o++) {
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    }
    if (len == strlen(help_option.name) && memcmp(help_option.name, name, len) == 0)
        return &help_option;
    return NULL;
}

static const struct cli_option *find_short_option(const struct cli_command *command, char letter)
{
    for (const struct cli_option *o = command->options; o->name; o++) {
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
    args->option = option;
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
    return option->id ? option->id : CLI_BOUND;
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
    for (const struct cli_option *o = command->options; o->name; o++)
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

static int take_short(struct cli_args *args, const char *letters)
{
    const struct cli_option *option =
        letters[1] ? NULL : find_short_option(args->command, letters[0]);

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
    return arg[1] == '-' ? take_named(args, arg + 2) : take_short(args, arg + 1);
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
        text += strcmp(text + 1, "iB") == 0 ? strlen("KiB") : 1;
    if (*text || number > most >> shift || number << shift < least)
        return false;
    *ret_number = number << shift;
    return true;
}

/* ---- values ------------------------------------------------------------------ */

/* A duration as in Go, in milliseconds, below about 24 days. */
static bool read_duration(const char *text, int64_t *ret_ms)
{
    int64_t ns;

    if (peg_duration_parse(peg__str(text), &ns, NULL) || ns < 0 || ns % PEG_NS_PER_MS ||
        ns / PEG_NS_PER_MS > INT32_MAX)
        return false;
    *ret_ms = ns / PEG_NS_PER_MS;
    return true;
}

static const char *set_time(const struct cli_option *option, int64_t *ret_ms, const char *value)
{
    int64_t ms;

    if (!read_duration(value, &ms))
        return "a time such as 10s, 1m30s or 250ms";
    if (ms < (int64_t)option->least || (option->most && ms > (int64_t)option->most))
        return option->wanted ? option->wanted : "at least 1ms";
    *ret_ms = ms;
    return NULL;
}

static const char *name_bounds(const struct cli_option *option)
{
    static char text[80]; /* a process complains of one value */

    snprintf(text, sizeof(text), "a number from %llu to %llu", (unsigned long long)option->least,
             (unsigned long long)option->most);
    return text;
}

static const char *store_number(const struct cli_option *option, void *field, const char *value)
{
    uint64_t number;

    if (!cli_number(value, option->least, option->most, &number))
        return option->wanted ? option->wanted : name_bounds(option);
    if (option->kind == CLI_SIZE)
        *(size_t *)field = (size_t)number;
    else
        *(unsigned *)field = (unsigned)number;
    return NULL;
}

static const char *set_ratio(double *field, const char *value)
{
    char *end;
    const double ratio = strtod(value, &end);

    if (end == value || *end || !(ratio >= 0 && ratio <= 1))
        return "a number from 0 to 1, such as 0.1";
    *field = ratio > 0 ? ratio : -1;
    return NULL;
}

const char *cli_set(const struct cli_option *option, void *into, cli_take_fn *take,
                    const char *value)
{
    void *field = (char *)into + option->at;

    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        break;
    case CLI_STRING:
        if (strlen(value) < option->least)
            return option->wanted ? option->wanted : "something";
        *(const char **)field = value;
        break;
    case CLI_TIME:
        return set_time(option, field, value);
    case CLI_COUNT:
    case CLI_SIZE:
        return store_number(option, field, value);
    case CLI_COLOR:
        return cli_color_read(value, field) ? NULL : "auto, always or never";
    case CLI_RATIO:
        return set_ratio(field, value);
    case CLI_OWN:
        return take(into, option->id, value);
    }
    return NULL;
}

/* Operands are counted at the end: --help may follow them. */
static int check_operands(const struct cli_args *args)
{
    const struct cli_command *command = args->command;

    if (args->n_operands > command->max_operands)
        return cli_bad_use(command, "unexpected argument '%s'",
                           args->operands[command->max_operands]);
    return args->n_operands < command->min_operands ? cli_bad_use(command, "%s", command->needed)
                                                    : CLI_OK;
}

bool cli_read(struct cli_args *args, void *into, cli_take_fn *take)
{
    int id;

    args->operands = args->argv + (args->argc > 0);
    while ((id = cli_next(args)) != CLI_END) {
        const char *wanted = NULL;

        if (id == CLI_STOP)
            return false;
        if (id == CLI_OPERAND)
            args->operands[args->n_operands++] = args->argv[args->at - 1];
        else
            wanted = cli_set(args->option, into, take, args->value);
        if (wanted) {
            args->exit = cli_bad_use(args->command, "--%s is '%s', but should be %s",
                                     args->option->name, args->value, wanted);
            return false;
        }
    }
    args->operands[args->n_operands] = NULL;
    args->exit = check_operands(args);
    return args->exit == CLI_OK;
}

bool cli_reads_stdin_once(char *const *paths, size_t n)
{
    size_t n_stdin = 0;

    for (size_t i = 0; i < n; i++)
        n_stdin += cli_is_stdin(paths[i]);
    return n_stdin <= 1;
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

int cli_run_part(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc < 2 ? argc : 2, .argv = argv};
    const struct cli_command *part;
    const int id = cli_next(&args);

    if (id == CLI_STOP)
        return args.exit;
    if (id != CLI_OPERAND || !args.value)
        return cli_bad_use(self, "%s", self->needed);
    part = cli_find_part(self, args.value);
    if (!part)
        return cli_bad_use(self, "there is no command '%s %s'", self->name, args.value);
    return part->run(part, argc - 1, argv + 1);
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
    for (const struct cli_option *o = command->options; o->name; o++)
        print_option(o);
    print_option(&help_option);
    printf("\n%s\n", command->notes);
}
