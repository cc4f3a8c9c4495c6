/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard definitions: what would a model be sent for these tools? */

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/definitions.h"
#include "pegboard/schema.h"
#include "json/json.h"

/* What was asked for. Strings are borrowed from argv. */
struct definitions_options {
    peg_definitions_options render;
    bool has_provider;
    bool only_losses; /* print the report, not the tools */
    bool as_json;
    bool quiet;
    bool fail_on_loss;
    enum cli_color color;
    const char *path;
};

/* What is rendered from it: text and losses are borrowed. */
struct definitions_outcome {
    const struct definitions_options *options;
    const peg_json *definitions;
    peg_str text;
    const peg_definition_losses *losses;
};

/* ---- reading ---------------------------------------------------------------------------- */

/* Standard input has no name to go by: JSON starts with a bracket. */
static bool is_yaml(const char *path, peg_str text)
{
    size_t i = 0;

    if (!cli_is_stdin(path))
        return cli_syntax_of(path) == CLI_SYNTAX_YAML;
    while (i < text.len && strchr(" \t\r\n", text.ptr[i]) && text.ptr[i])
        i++;
    return i < text.len && text.ptr[i] != '[' && text.ptr[i] != '{';
}

static peg_status read_definitions_file(const char *path, peg_json_doc **ret_doc, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = cli_read_file(path, &text, reterr);

    if (!status)
        status =
            cli_parse(peg__buf_view(&text), is_yaml(path, peg__buf_view(&text)), ret_doc, reterr);
    peg__buf_free(&text);
    return status;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The array, or NULL with *ret_is_turn for a turn that has none. */
static const peg_json *find_definitions(const peg_json *root, bool *ret_is_turn)
{
    static const char *const keys[] = {"pegboard.tool_definitions@v1",
                                       "geppetto.tool_definitions@v1"};
    const peg_json *data = peg_json_get(root, "data");
    const peg_json *tools = peg_json_get(root, "tools");

    *ret_is_turn = false;
    if (root->kind == PEG_JSON_ARRAY)
        return root;
    if (tools && tools->kind == PEG_JSON_ARRAY)
        return tools;
    for (size_t i = 0; data && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const peg_json *definitions = peg_json_get(data, keys[i]);

        if (definitions)
            return definitions;
    }
    *ret_is_turn = peg_json_get(root, "blocks");
    return NULL;
}

/* ---- one form for all ---- */

static bool is_schema_name(peg_str name)
{
    return peg__str_is(name, "parameters") || peg__str_is(name, "inputSchema") ||
           peg__str_is(name, "input_schema");
}

static void add_definition(peg_json_builder *b, const peg_json *definition)
{
    const peg_json *function = peg_json_get(definition, "function");
    bool has_schema = false;

    if (function && function->kind == PEG_JSON_OBJECT)
        definition = function;
    if (definition->kind != PEG_JSON_OBJECT) {
        peg_json_add_copy(b, definition);
        return;
    }
    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (definition, key) {
        const bool is_schema = is_schema_name(peg_json_str(key));

        if (is_schema && has_schema)
            continue;
        has_schema = has_schema || is_schema;
        peg_json_add_key(b, is_schema ? peg__str("parameters") : peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
    peg_json_close(b);
}

static peg_status normalise(const peg_json *definitions, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    if (definitions->kind != PEG_JSON_ARRAY) {
        peg_json_add_copy(b, definitions);
        return peg_json_builder_finish(b, ret_doc, reterr);
    }
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (definitions, definition)
        add_definition(b, definition);
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

/* Definitions in neutral form, from a file: an array of them, {"tools": [...]}, or a turn. Members
 * that others call inputSchema or input_schema are parameters; a function in OpenAI's shape is
 * unwrapped. *ret_doc is NULL for a turn that holds none. */
static peg_status load_definitions(const char *path, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_doc *document = NULL;
    const peg_json *definitions;
    bool is_turn;
    peg_status status = read_definitions_file(path, &document, reterr);

    if (status)
        return status;
    definitions = find_definitions(peg_json_root(document), &is_turn);
    if (definitions)
        status = normalise(definitions, ret_doc, reterr);
    else if (is_turn)
        *ret_doc = NULL;
    else
        status = peg__fail(reterr, PEG_EINVAL, "E_DEFINITIONS",
                           "there are no definitions here: it should be an array of them, an "
                           "object with \"tools\", or a turn");
    peg_json_doc_free(document);
    return status;
}

/* ---- losses ------------------------------------------------------------------------------- */

/* "weather: /properties/city/pattern dropped: ..." */
static void put_loss(struct peg__buf *line, const peg_definition_loss *loss,
                     const struct cli_style *style)
{
    peg__buf_puts(line, style->bold);
    cli_put_safe(line, loss->tool);
    peg__buf_puts(line, style->off);
    peg__buf_puts(line, ": ");
    cli_put_safe(line, loss->where.len ? loss->where : loss->keyword);
    peg__buf_printf(line, " %s: ", loss->what);
    cli_put_safe(line, loss->note);
    peg__buf_putc(line, '\n');
}

static peg_status print_losses(const struct definitions_outcome *o, FILE *to, peg_error *reterr)
{
    const struct cli_style *style = cli_style_for(o->options->color, fileno(to));
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    size_t len;
    peg_status status;

    for (size_t i = 0; i < peg_definition_losses_len(o->losses); i++)
        put_loss(&text, peg_definition_losses_at(o->losses, i), style);
    status = peg__buf_take(&text, &bytes, &len, reterr);
    if (!status)
        cli_write(to, peg__strn(bytes, len));
    return status;
}

/* ---- tools ---- */

static peg_status print_pretty(peg_str json, peg_error *reterr)
{
    const peg_json_options deep = {PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_JSON_DEPTH_MAX};
    PEG_CLEANUP(peg__freep) char *text = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(json, &deep, &doc, reterr);

    if (!status)
        status = peg_json_write(peg_json_root(doc), PEG_JSON_PRETTY, &text, NULL, reterr);
    if (!status)
        puts(text);
    peg_json_doc_free(doc);
    return status;
}

static peg_status print_tools(peg_str json, peg_error *reterr)
{
    if (isatty(STDOUT_FILENO))
        return print_pretty(json, reterr);
    cli_write(stdout, json);
    putchar('\n');
    return PEG_OK;
}

static void put_loss_object(struct peg__out *out, const peg_definition_loss *loss)
{
    peg__out_object(out);
    peg__out_member(out, "tool", loss->tool);
    peg__out_member(out, "where", loss->where);
    peg__out_member(out, "keyword", loss->keyword);
    peg__out_cmember(out, "what", loss->what);
    peg__out_member(out, "note", loss->note);
    peg__out_end_object(out);
}

/* {"provider", "tools", "losses"} on one line; on a terminal on many. */
static peg_status print_json(const struct definitions_outcome *o, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    size_t len;
    peg_status status;

    peg__out_object(&out);
    peg__out_cmember(&out, "provider", peg_vendor_name(o->options->render.vendor));
    cli_out_raw(&out, "tools", o->text);
    cli_out_array(&out, "losses");
    for (size_t i = 0; i < peg_definition_losses_len(o->losses); i++)
        put_loss_object(&out, peg_definition_losses_at(o->losses, i));
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    status = peg__buf_take(&text, &bytes, &len, reterr);
    return status ? status : print_tools(peg__strn(bytes, len), reterr);
}

/* Prints to stdout and stderr; the status of what could not be printed. */
static peg_status print_outcome(const struct definitions_outcome *outcome, peg_error *reterr)
{
    peg_status status;

    if (outcome->options->as_json)
        return print_json(outcome, reterr);
    if (outcome->options->only_losses)
        return print_losses(outcome, stdout, reterr);
    status = print_tools(outcome->text, reterr);
    if (status || outcome->options->quiet)
        return status;
    /* The report comes after what it is about, also where both go to one terminal. */
    (void)cli_flush();
    return print_losses(outcome, stderr, reterr);
}

/* ---- schemas that are none ---- */

static void warn_of_schema(const peg_json *name, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_safe(&line, peg_json_str(name));
    peg__buf_puts(&line, ": its schema does not compile: ");
    cli_put_error(&line, "", error);
    cli_print_line(&line);
}

/* Says on stderr which schemas do not compile. */
static void warn_of_schemas(const peg_json *definitions)
{
    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_json *name = peg_json_get(definition, "name");
        const peg_json *schema = peg_json_get(definition, "parameters");
        peg_schema *compiled = NULL;
        peg_error error;

        if (!schema || schema->kind == PEG_JSON_NULL)
            continue;
        if (peg_schema_compile_value(schema, NULL, &compiled, &error))
            warn_of_schema(name, &error);
        peg_schema_unref(compiled);
    }
}

enum option_id { OPT_PROVIDER = 1 };

#define VENDOR_NAMES "neutral, openai-chat, openai-responses, anthropic or gemini"
#define DEFINITIONS_FLAG(letter, option, member, text)                                             \
    CLI_OPTION_FLAG(struct definitions_options, member, letter, option, text)

static const struct cli_option option_table[] = {
    {OPT_PROVIDER, 'p', "provider", "NAME",
     "neutral, openai-chat, openai-responses, anthropic or\ngemini; needed", .kind = CLI_OWN},
    DEFINITIONS_FLAG(0, "strict", render.strict,
                     "OpenAI: rewrite schemas for strict mode; a tool that\ncannot be rewritten is "
                     "sent without"),
    DEFINITIONS_FLAG(0, "json-schema", render.json_schema,
                     "Gemini: parametersJsonSchema instead of parameters"),
    DEFINITIONS_FLAG(0, "losses", only_losses, "print the loss report instead of the tools"),
    DEFINITIONS_FLAG(0, "fail-on-loss", fail_on_loss, "exit with 1 if anything is lost"),
    DEFINITIONS_FLAG(0, "json", as_json, "print one JSON object with provider, tools and losses"),
    DEFINITIONS_FLAG('q', "quiet", quiet, "print no loss report"),
    {0, 0, "max-tools", "N",
     "take so many tools; 128 for OpenAI, 512 for Anthropic\nand Gemini by default",
     .kind = CLI_SIZE, .at = offsetof(struct definitions_options, render.max_tools), .least = 1,
     .most = PEG_LIMIT_REGISTRY_TOOLS},
    CLI_OPTION_COLOR(struct definitions_options, color),
    {.name = NULL},
};

static const char *take_vendor(void *into, int id, const char *value)
{
    struct definitions_options *o = into;

    (void)id;
    o->has_provider = true;
    return peg_vendor_from_name(peg__str(value), &o->render.vendor, NULL) ? VENDOR_NAMES : NULL;
}

/* What is wrong with the options together, or NULL. */
static const char *find_option_conflict(const struct definitions_options *o)
{
    const bool is_openai = o->render.vendor == PEG_VENDOR_OPENAI_CHAT ||
                           o->render.vendor == PEG_VENDOR_OPENAI_RESPONSES;

    if (!o->has_provider)
        return "--provider is needed: " VENDOR_NAMES;
    if (o->render.strict && !is_openai)
        return "--strict is for openai-chat and openai-responses";
    if (o->render.json_schema && o->render.vendor != PEG_VENDOR_GEMINI)
        return "--json-schema is for gemini";
    return NULL;
}

/* ---- work ----------------------------------------------------------------------------------- */

static int complain_of_file(const char *path, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_place(&line, path, error);
    peg__buf_puts(&line, ": ");
    cli_put_error(&line, "", error);
    cli_print_line(&line);
    return CLI_UNUSABLE;
}

static int show_definitions(const struct definitions_options *o, const peg_json *definitions)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    struct definitions_outcome outcome = {.options = o, .definitions = definitions};
    peg_definition_losses *losses = NULL;
    peg_error error;
    int answer = CLI_OK;

    if (peg_definitions_render(definitions, &o->render, &text, &outcome.text.len, &losses, &error))
        return complain_of_file(o->path, &error);
    outcome.text.ptr = text;
    outcome.losses = losses;
    if (definitions)
        warn_of_schemas(definitions);
    else
        fprintf(stderr, "pegboard: %s: the turn holds no definitions\n", cli_file_label(o->path));
    if (print_outcome(&outcome, &error))
        answer = complain_of_file(o->path, &error);
    else if (o->fail_on_loss && peg_definition_losses_len(losses))
        answer = CLI_NO;
    peg_definition_losses_free(losses);
    return answer;
}

static int run_definitions(const struct cli_command *self, int argc, char **argv)
{
    struct definitions_options options = {.render = {PEG_DEFINITIONS_OPTIONS_INIT}};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    peg_json_doc *doc = NULL;
    const char *fault;
    peg_error error;
    int answer;

    if (!cli_read(&args, &options, take_vendor))
        return args.exit;
    fault = find_option_conflict(&options);
    if (fault)
        return cli_bad_use(self, "%s", fault);
    options.path = args.operands[0];
    if (load_definitions(options.path, &doc, &error))
        return complain_of_file(options.path, &error);
    answer = show_definitions(&options, doc ? peg_json_root(doc) : NULL);
    peg_json_doc_free(doc);
    return answer;
}

const struct cli_command cli_definitions = {
    .name = "definitions",
    .usage = "--provider NAME [options] FILE",
    .summary = "show what a model would be sent for some tools",
    .about =
        "Prints the array that goes under \"tools\" of a request to a provider, and what that\n"
        "provider does not get: every keyword of a schema that was dropped, rewritten or\n"
        "moved into a description, with its place. The tools go to standard output, the\n"
        "report to standard error.\n\n"
        "FILE is JSON or YAML (.yaml, .yml; `-` is standard input, either of them): an array\n"
        "of definitions {\"name\", \"description\", \"parameters\"}, an object with such an\n"
        "array as \"tools\", or a turn, which holds the definitions it was offered.\n"
        "\"inputSchema\" and \"input_schema\" mean \"parameters\", and functions in OpenAI's\n"
        "shape are understood, too.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "one file is needed",
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
    .run = run_definitions,
};
