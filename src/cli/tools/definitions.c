/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard definitions: what would a model be sent for these tools? */

#include "cli/tools/definitions.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"

enum option_id {
    OPT_PROVIDER = 1,
    OPT_STRICT,
    OPT_JSON_SCHEMA,
    OPT_LOSSES,
    OPT_FAIL_ON_LOSS,
    OPT_JSON,
    OPT_QUIET,
    OPT_MAX_TOOLS,
    OPT_COLOR,
};

static const struct cli_option option_table[] = {
    {OPT_PROVIDER, 'p', "provider", "NAME",
     "neutral, openai-chat, openai-responses, anthropic or\ngemini; needed"},
    {OPT_STRICT, 0, "strict", NULL,
     "OpenAI: rewrite schemas for strict mode; a tool that\ncannot be said so is sent without"},
    {OPT_JSON_SCHEMA, 0, "json-schema", NULL, "Gemini: parametersJsonSchema instead of parameters"},
    {OPT_LOSSES, 0, "losses", NULL, "print the loss report instead of the tools"},
    {OPT_FAIL_ON_LOSS, 0, "fail-on-loss", NULL, "exit with 1 if anything is lost"},
    {OPT_JSON, 0, "json", NULL, "print one JSON object with provider, tools and losses"},
    {OPT_QUIET, 'q', "quiet", NULL, "print no loss report"},
    {OPT_MAX_TOOLS, 0, "max-tools", "N",
     "take so many tools; 128 for OpenAI, 512 for Anthropic\nand Gemini by default"},
    {OPT_COLOR, 0, "color", "WHEN", "auto (default: on a terminal), always or never"},
    {0, 0, NULL, NULL, NULL},
};

static void set_flag(struct definitions_options *o, int id)
{
    switch (id) {
    case OPT_STRICT:
        o->render.strict = true;
        break;
    case OPT_JSON_SCHEMA:
        o->render.json_schema = true;
        break;
    case OPT_LOSSES:
        o->only_losses = true;
        break;
    case OPT_FAIL_ON_LOSS:
        o->fail_on_loss = true;
        break;
    case OPT_JSON:
        o->as_json = true;
        break;
    case OPT_QUIET:
        o->quiet = true;
        break;
    default:
        break;
    }
}

/* Options with a value. Returns 0, or CLI_STOP after a complaint. */
static int set_value(struct definitions_options *o, struct cli_args *args, int id)
{
    uint64_t number;

    switch (id) {
    case OPT_PROVIDER:
        if (peg_vendor_from_name(peg__str(args->value), &o->render.provider, NULL))
            return cli_bad_value(args, "provider",
                                 "neutral, openai-chat, openai-responses, anthropic or gemini");
        o->has_provider = true;
        break;
    case OPT_MAX_TOOLS:
        if (!cli_number(args->value, 1, PEG_LIMIT_REGISTRY_TOOLS, &number))
            return cli_bad_value(args, "max-tools", "a number from 1 to 100000");
        o->render.max_tools = (size_t)number;
        break;
    case OPT_COLOR:
        if (!cli_color_read(args->value, &o->color))
            return cli_bad_value(args, "color", "auto, always or never");
        break;
    default:
        break;
    }
    return 0;
}

/* What is wrong with the options together, or NULL. */
static const char *find_fault(const struct definitions_options *o, size_t n_files)
{
    const bool is_openai = o->render.provider == PEG_VENDOR_OPENAI_CHAT ||
                           o->render.provider == PEG_VENDOR_OPENAI_RESPONSES;

    if (n_files != 1)
        return "one file is needed";
    if (!o->has_provider)
        return "--provider is needed: neutral, openai-chat, openai-responses, anthropic or gemini";
    if (o->render.strict && !is_openai)
        return "--strict is for openai-chat and openai-responses";
    if (o->render.json_schema && o->render.provider != PEG_VENDOR_GEMINI)
        return "--json-schema is for gemini";
    return NULL;
}

/* Returns true if there is work to do, else *ret_exit is set. */
static bool read_options(struct cli_args *args, struct definitions_options *o, int *ret_exit)
{
    size_t n_files = 0;
    const char *fault;
    int id;

    while ((id = cli_next(args)) != CLI_END) {
        if (id == CLI_OPERAND) {
            o->path = args->value;
            n_files++;
        } else if (id != CLI_STOP) {
            set_flag(o, id);
        }
        if (id == CLI_STOP || set_value(o, args, id) == CLI_STOP) {
            *ret_exit = args->exit;
            return false;
        }
    }
    fault = find_fault(o, n_files);
    if (fault)
        *ret_exit = cli_bad_use(args->command, "%s", fault);
    return !fault;
}

/* ---- work ----------------------------------------------------------------------------------- */

static int complain(const char *path, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_safe(&line, peg__str(cli_file_label(path)));
    if (error->line)
        peg__buf_printf(&line, ":%u:%u", error->line, error->column);
    peg__buf_puts(&line, ": ");
    if (error->where[0]) {
        cli_put_safe(&line, peg__str(error->where));
        peg__buf_puts(&line, ": ");
    }
    cli_put_safe(&line, peg__str(error->message));
    fprintf(stderr, "%s\n", line.status ? "pegboard: out of memory" : line.ptr);
    peg__buf_free(&line);
    return CLI_UNUSABLE;
}

static int show(const struct definitions_options *o, const peg_json *definitions)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    struct definitions_outcome outcome = {.options = o, .definitions = definitions};
    peg_definition_losses *losses = NULL;
    peg_error error;
    int answer = CLI_OK;

    if (peg_definitions_render(definitions, &o->render, &text, &outcome.text.len, &losses, &error))
        return complain(o->path, &error);
    outcome.text.ptr = text;
    outcome.losses = losses;
    if (definitions)
        definitions_warn(definitions);
    else
        fprintf(stderr, "pegboard: %s: the turn holds no definitions\n", cli_file_label(o->path));
    if (definitions_print(&outcome, &error))
        answer = complain(o->path, &error);
    else if (o->fail_on_loss && peg_definition_losses_len(losses))
        answer = CLI_NO;
    peg_definition_losses_free(losses);
    return answer;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct definitions_options options = {.render = {PEG_DEFINITIONS_OPTIONS_INIT}};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    peg_json_doc *doc = NULL;
    peg_error error;
    int answer;

    if (!read_options(&args, &options, &answer))
        return answer;
    if (definitions_load(options.path, &doc, &error))
        return complain(options.path, &error);
    answer = show(&options, doc ? peg_json_root(doc) : NULL);
    peg_json_doc_free(doc);
    return answer;
}

const struct cli_command cli_definitions = {
    .name = "definitions",
    .usage = "--provider NAME [options] FILE",
    .summary = "show what a model would be sent for some tools",
    .about =
        "Prints the array that goes under \"tools\" of a request to a provider, and what that\n"
        "provider is not told: every keyword of a schema that was dropped, rewritten or\n"
        "moved into a description, with its place. The tools go to standard output, the\n"
        "report to standard error.\n\n"
        "FILE is JSON or YAML (.yaml, .yml; `-` is standard input, either of them): an array\n"
        "of definitions {\"name\", \"description\", \"parameters\"}, an object with such an\n"
        "array as \"tools\", or a turn, which holds the definitions it was offered.\n"
        "\"inputSchema\" and \"input_schema\" mean \"parameters\", and functions in OpenAI's\n"
        "shape are understood, too.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  the tools were printed\n"
             "  1  something is lost, and --fail-on-loss was given\n"
             "  2  something could not be used: the file, a definition, an option; or there are\n"
             "     more tools than the provider takes\n\n"
             "examples:\n"
             "  pegboard definitions --provider anthropic tools.json\n"
             "  pegboard definitions --provider openai-responses --strict --losses tools.yaml\n"
             "  pegboard definitions --provider gemini --fail-on-loss --quiet turn.yaml\n"
             "  pegboard definitions --provider gemini --json turn.json | jq '.losses[].where'",
    .run = run,
};
