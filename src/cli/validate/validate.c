/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard validate: are these instances what the schema asks for? */

#include "cli/validate/validate.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "cli/cli.h"

enum option_id {
    OPT_JSONL = 1,
    OPT_YAML,
    OPT_DRAFT,
    OPT_ASSERT_FORMAT,
    OPT_NO_ASSERT_FORMAT,
    OPT_REF
};

#define VALIDATE_FLAG(letter, option, member, text)                                                \
    CLI_OPTION_FLAG(struct validate_options, member, letter, option, text)

static const struct cli_option option_table[] = {
    VALIDATE_FLAG('q', "quiet", quiet, "print no verdicts, only set the exit status"),
    VALIDATE_FLAG(0, "json", as_json, "print one JSON object a line for each instance"),
    {OPT_JSONL, 0, "jsonl", NULL, "read every FILE as JSON lines: one instance a line",
     .kind = CLI_OWN},
    {OPT_YAML, 0, "yaml", NULL, "read every FILE as YAML", .kind = CLI_OWN},
    {OPT_DRAFT, 0, "draft", "DRAFT",
     "dialect of a schema without $schema: 4, 6, 7, 2019-09,\n2020-12 (default) or v1; draft7 and "
     "draft-07 are 7, too",
     .kind = CLI_OWN},
    {OPT_ASSERT_FORMAT, 0, "assert-format", NULL, "check `format` (default: only up to draft 7)",
     .kind = CLI_OWN},
    {OPT_NO_ASSERT_FORMAT, 0, "no-assert-format", NULL, "never check `format`", .kind = CLI_OWN},
    {OPT_REF, 0, "ref", "[URI=]FILE",
     "a document that $ref may lead to, known by its $id and by\nwhere it stands, or by URI; may "
     "be given many times",
     .kind = CLI_OWN},
    {0, 0, "max-bytes", "N",
     "largest instance: a file, or a line of a .jsonl file;\n64M by default, K, M and G are "
     "understood",
     .kind = CLI_SIZE, .at = offsetof(struct validate_options, json.max_bytes), .least = 1,
     .most = PEG_LIMIT_JSON_BYTES_MAX, .wanted = "a size from 1 to 2147483647, such as 64M"},
    {0, 0, "max-depth", "N", "deepest nesting of an instance; 256 by default", .kind = CLI_COUNT,
     .at = offsetof(struct validate_options, json.max_depth), .least = 1,
     .most = PEG_LIMIT_JSON_DEPTH_MAX},
    CLI_OPTION_COLOR(struct validate_options, color),
    VALIDATE_FLAG(0, "benchmark", benchmark, "measure instead of reporting; the last line is JSON"),
    {0, 0, "loop", "N", "benchmark with N rounds over all instances", .kind = CLI_SIZE,
     .at = offsetof(struct validate_options, loops), .least = 1, .most = UINT32_MAX},
    {.name = NULL},
};

static const struct {
    const char *name;
    peg_dialect dialect;
} drafts[] = {
    {"4", PEG_DIALECT_DRAFT4},        {"draft4", PEG_DIALECT_DRAFT4},
    {"draft-04", PEG_DIALECT_DRAFT4}, {"6", PEG_DIALECT_DRAFT6},
    {"draft6", PEG_DIALECT_DRAFT6},   {"draft-06", PEG_DIALECT_DRAFT6},
    {"7", PEG_DIALECT_DRAFT7},        {"draft7", PEG_DIALECT_DRAFT7},
    {"draft-07", PEG_DIALECT_DRAFT7}, {"2019-09", PEG_DIALECT_2019_09},
    {"2020-12", PEG_DIALECT_2020_12}, {"v1", PEG_DIALECT_V1},
};

static bool read_draft(const char *text, peg_dialect *ret_dialect)
{
    for (size_t i = 0; i < sizeof(drafts) / sizeof(drafts[0]); i++) {
        if (strcmp(text, drafts[i].name) == 0) {
            *ret_dialect = drafts[i].dialect;
            return true;
        }
    }
    return false;
}

/* refs has room for all of argv. */
static const char *take_validate_option(void *into, int id, const char *value)
{
    struct validate_options *o = into;

    switch (id) {
    case OPT_JSONL:
        o->syntax = CLI_SYNTAX_JSON_LINES;
        break;
    case OPT_YAML:
        o->syntax = CLI_SYNTAX_YAML;
        break;
    case OPT_ASSERT_FORMAT:
        o->format = PEG_FORMAT_ASSERT;
        break;
    case OPT_NO_ASSERT_FORMAT:
        o->format = PEG_FORMAT_IGNORE;
        break;
    case OPT_REF:
        o->refs[o->n_refs++] = value;
        break;
    default:
        return read_draft(value, &o->dialect) ? NULL : "4, 6, 7, 2019-09, 2020-12 or v1";
    }
    return NULL;
}

/* Standard input can be read once: the second "-" would be empty and look malformed. */
static bool names_stdin_twice(const struct validate_options *o)
{
    size_t n = cli_is_stdin(o->schema_path);

    for (size_t i = 0; i < o->n_paths; i++)
        n += cli_is_stdin(o->paths[i]);
    for (size_t i = 0; i < o->n_refs; i++)
        n += cli_is_stdin(validate_ref_path(o->refs[i]));
    return n > 1;
}

static peg_status make_checker(struct validate *v, peg_error *reterr)
{
    static const peg_str nothing = {"null", 4};
    peg_status status = peg_checker_new(NULL, &v->checker, reterr);

    if (!status)
        status = peg_report_new(&v->report, reterr);
    if (!status)
        status = peg_json_parse(nothing, NULL, &v->doc, reterr);
    return status;
}

static void check_all(struct validate *v)
{
    for (size_t i = 0; i < v->options->n_paths; i++)
        validate_each(v, v->options->paths[i], validate_check, NULL);
}

static int run_with(const struct validate_options *o)
{
    struct validate v = {
        .options = o,
        .schema_text = PEG__BUF(PEG_LIMIT_JSON_BYTES),
        .text = PEG__BUF(o->json.max_bytes ? o->json.max_bytes : (size_t)PEG_LIMIT_JSON_BYTES),
        .out = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
        .style = cli_style_for(o->color, STDOUT_FILENO),
        .err_style = cli_style_for(o->color, STDERR_FILENO),
    };
    peg_error error;

    cli_progress_start(&v.progress);
    if (make_checker(&v, &error)) {
        fprintf(stderr, "pegboard: %s\n", error.message);
        v.n_unusable++;
    } else if (validate_load_schema(&v) == PEG_OK) {
        if (o->benchmark)
            validate_benchmark(&v);
        else
            check_all(&v);
    }
    cli_progress_clear(&v.progress);

    peg_json_doc_free(v.doc);
    peg_report_free(v.report);
    peg_checker_free(v.checker);
    peg_schema_unref(v.schema);
    peg_schema_docs_free(v.docs);
    peg__arena_free(&v.uris);
    peg__buf_free(&v.schema_text);
    peg__buf_free(&v.text);
    peg__buf_free(&v.out);
    if (v.n_unusable)
        return CLI_UNUSABLE;
    return v.n_invalid ? CLI_NO : CLI_OK;
}

static int run_validate(const struct cli_command *self, int argc, char **argv)
{
    PEG_CLEANUP(peg__freep) const char **refs = peg__alloc_zero((size_t)argc, sizeof(char *));
    struct validate_options options = {.refs = refs, .json = {PEG_JSON_OPTIONS_INIT}};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    if (!refs) {
        fputs("pegboard: out of memory\n", stderr);
        return CLI_UNUSABLE;
    }
    if (!cli_read(&args, &options, take_validate_option))
        return args.exit;
    options.schema_path = args.operands[0];
    options.paths = args.operands + 1;
    options.n_paths = args.n_operands - 1;
    if (names_stdin_twice(&options))
        return cli_bad_use(self, "standard input can be read only once");
    return run_with(&options);
}

const struct cli_command cli_validate = {
    .name = "validate",
    .usage = "[options] SCHEMA FILE...",
    .summary = "check JSON, YAML or JSON lines against a JSON Schema",
    .about = "Checks every instance in the FILEs against a JSON Schema, and says in words what\n"
             "is wrong and where. SCHEMA is JSON, or YAML if its name ends in .yaml or .yml.\n"
             "A FILE is JSON, YAML, or one JSON instance a line (.jsonl, .ndjson); `-` is\n"
             "standard input, read as JSON. Nothing is ever fetched: a $ref to another document\n"
             "needs that document given with --ref.",
    .options = option_table,
    .min_operands = 2,
    .max_operands = CLI_MANY,
    .needed = "a schema and at least one file are needed",
    .notes =
        "exit status:\n"
        "  0  every instance is valid\n"
        "  1  some instance is invalid\n"
        "  2  something could not be used: the schema, a file, malformed JSON, an option,\n"
        "     or a limit was reached before the verdict (the other files are still checked)\n\n"
        "examples:\n"
        "  pegboard validate tool.schema.json call.json\n"
        "  pegboard validate --json tool.schema.json calls.jsonl | jq 'select(.valid | not)'\n"
        "  pegboard validate --ref common.json --assert-format config.yaml settings.yaml\n"
        "  pegboard validate --benchmark tool.schema.json calls.jsonl",
    .run = run_validate,
};
