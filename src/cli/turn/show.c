/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard turn show: a conversation to read. */

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "turn/file/block.h"

enum option_id {
    OPT_KINDS = 1,
    OPT_LAST,
    OPT_FULL,
    OPT_JSON,
};

static const struct cli_option option_table[] = {
    {OPT_KINDS, 0, "kinds", "LIST",
     "only blocks of these kinds: system, user, assistant,\nreasoning, call, result, other; or as "
     "files call them:\nllm_text, tool_call, tool_use (a result)"},
    {OPT_LAST, 0, "last", "N", "only the last N blocks, of those kinds"},
    {OPT_FULL, 0, "full", NULL, "cut neither arguments nor results"},
    {OPT_JSON, 0, "json", NULL, "print JSON lines: the turn, then each block"},
    TURN_OPTION_BYTES,
    TURN_OPTION_MAX_BYTES,
    TURN_OPTION_COLOR,
    {0, 0, NULL, NULL, NULL},
};

/* ---- options ---------------------------------------------------------------------------- */

static bool kind_named(peg_str name, peg_block_kind *ret_kind)
{
    for (int kind = PEG_BLOCK_SYSTEM; kind <= PEG_BLOCK_OTHER; kind++) {
        if (peg__str_is(name, peg_block_kind_name((peg_block_kind)kind)) ||
            peg__str_is(name, peg__block_file_kind((peg_block_kind)kind))) {
            *ret_kind = (peg_block_kind)kind;
            return true;
        }
    }
    return false;
}

static bool read_kinds(const char *list, unsigned *ret_kinds)
{
    unsigned kinds = 0;

    for (;;) {
        const size_t len = strcspn(list, ",");
        peg_block_kind kind;

        if (!kind_named(peg__strn(list, len), &kind))
            return false;
        kinds |= PEG_BLOCKS(kind);
        if (!list[len])
            break;
        list += len + 1;
    }
    *ret_kinds = kinds;
    return true;
}

/* Returns 0, or CLI_STOP after a complaint. */
static int take(struct turn_show_options *o, struct cli_args *args, int id)
{
    switch (id) {
    case OPT_KINDS:
        if (!read_kinds(args->value, &o->kinds))
            return cli_bad_value(args, "kinds",
                                 "some of system, user, assistant, reasoning, call, result and "
                                 "other, with commas between them");
        break;
    case OPT_LAST:
        if (!cli_number(args->value, 1, PEG_LIMIT_TURN_BLOCKS, &o->last))
            return cli_bad_value(args, "last", "a number from 1 to 100000");
        break;
    case OPT_FULL:
        o->is_full = true;
        break;
    case OPT_JSON:
        o->as_json = true;
        break;
    default:
        return turn_take_common(&o->common, args, id);
    }
    return 0;
}

/* ---- work ------------------------------------------------------------------------------- */

size_t turn_show_from(const struct turn_show_options *options, const peg_turn *turn)
{
    size_t n = peg_turn_count(turn, options->kinds);
    size_t i = peg_turn_next(turn, options->kinds, 0);

    for (; options->last && n > options->last; n--)
        i = peg_turn_next(turn, options->kinds, i + 1);
    return i;
}

static int show(const struct turn_show_options *o, const char *path)
{
    struct turn_file file = TURN_FILE;
    peg_error error;
    peg_status status = turn_load(&o->common, path, &file, &error);

    if (!status)
        status = o->as_json ? turn_print_objects(o, &file, &error) : turn_print(o, &file, &error);
    if (status)
        turn_complain(&o->common, path, &error);
    turn_file_free(&file);
    return status ? CLI_UNUSABLE : CLI_OK;
}

static int show_all(const struct turn_show_options *o, char *const *paths, size_t n)
{
    int answer = CLI_OK;

    for (size_t i = 0; i < n; i++) {
        if (i && !o->as_json)
            putchar('\n');
        if (show(o, paths[i]))
            answer = CLI_UNUSABLE;
    }
    return answer;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    PEG_CLEANUP(peg__freep) char **paths = peg__alloc_zero((size_t)argc, sizeof(char *));
    struct turn_show_options options = {.kinds = PEG_BLOCKS_ALL};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    size_t n = 0;
    size_t n_stdin = 0;
    int id;

    while (paths && (id = cli_next(&args)) != CLI_END) {
        if (id == CLI_STOP || take(&options, &args, id) == CLI_STOP)
            return args.exit;
        if (id == CLI_OPERAND) {
            paths[n++] = argv[args.at - 1];
            n_stdin += cli_is_stdin(args.value);
        }
    }
    if (!paths) {
        fputs("pegboard: out of memory\n", stderr);
        return CLI_UNUSABLE;
    }
    if (!n)
        return cli_bad_use(self, "at least one file is needed");
    if (n_stdin > 1)
        return cli_bad_use(self, "standard input can be read only once");
    return show_all(&options, paths, n);
}

const struct cli_command cli_turn_show = {
    .name = "turn show",
    .usage = "[options] FILE...",
    .summary = "print a conversation as a transcript, or as JSON lines",
    .about = "Prints each turn for reading: what it is, which tools it was offered, what the last\n"
             "answer cost, then block by block what was said, called and answered. A call without\n"
             "a result is marked as pending, or as begun where nobody knows how it ended.\n"
             "Arguments and results are cut; messages are not. What could steer the terminal is\n"
             "written as \\x1B.\n\n"
             "A FILE is JSON or YAML, by its name (.json, .yaml, .yml) or its first character;\n"
             "`-` is standard input.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  every file was shown\n"
             "  2  something could not be used: a file that is no turn, an option, a limit (the\n"
             "     other files are still shown)\n\n"
             "examples:\n"
             "  pegboard turn show turn.yaml\n"
             "  pegboard turn show --kinds call,result --last 4 --full turn.json\n"
             "  pegboard turn show --json turn.json | jq 'select(.state == \"pending\").block'",
    .run = run,
};
