/* SPDX-License-Identifier: Apache-2.0 */

/* Turns files into values, one at a time, in memory that is used again. */

#include "base/error.h"
#include "base/text/str.h"
#include "cli/validate/validate.h"
#include "pegboard/cleanup.h"
#include "pegboard/yaml.h"

static void each_whole(struct validate *v, const char *path, bool is_yaml, validate_fn *fn,
                       void *user)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct validate_instance instance = {.place = {path, 0}};
    peg_error error;
    peg_status status = cli_read_file_max(path, &v->text, &error);
    const peg_str text = peg__buf_view(&v->text);

    if (!status)
        status = is_yaml ? peg_yaml_parse(text, &v->options->json, &doc, &error)
                         : peg_json_reparse(v->doc, text, &v->options->json, &error);
    if (status) {
        if (!is_yaml)
            cli_hint(text, cli_is_stdin(path), &error);
        validate_unusable(v, &instance.place, &error);
        return;
    }
    instance.value = peg_json_root(is_yaml ? doc : v->doc);
    if (!is_yaml)
        instance.text = text;
    fn(v, &instance, user);
}

/* ---- JSON lines ------------------------------------------------------------------ */

/* The loop that allocates nothing: same line buffer, same document, same checker. */
static void check_line(struct validate *v, const struct validate_place *place, peg_str line,
                       validate_fn *fn, void *user)
{
    peg_error error;

    if (peg_json_reparse(v->doc, line, &v->options->json, &error) == PEG_OK) {
        const struct validate_instance instance = {*place, peg_json_root(v->doc), line};

        fn(v, &instance, user);
        return;
    }
    error.line = (unsigned)place->line;
    if (place->line == 1)
        cli_hint(line, false, &error);
    validate_unusable(v, place, &error);
}

static void tick(struct validate *v, const struct cli_lines *lines, const char *path,
                 uint64_t n_invalid)
{
    const struct cli_progress_state state = {.file = cli_file_label(path),
                                             .n_done = lines->line,
                                             .n_invalid = n_invalid,
                                             .bytes = lines->offset,
                                             .size = lines->size};

    cli_progress_tick(&v->progress, &state);
}

static void each_line(struct validate *v, const char *path, validate_fn *fn, void *user)
{
    const uint64_t n_valid = v->n_valid;
    const uint64_t n_invalid = v->n_invalid;
    struct validate_place place = {path, 0};
    struct cli_lines lines;
    uint64_t n = 0;
    enum cli_line got;
    peg_error error;
    peg_str line;

    if (cli_lines_open(path, v->text.max, &lines, &error)) {
        validate_unusable(v, &place, &error);
        return;
    }
    while ((got = cli_lines_next(&lines, &line, &error)) != CLI_LINE_END) {
        if (got == CLI_LINE && peg__str_span(line, " \t\r") == line.len)
            continue;
        n++;
        place.line = lines.line;
        if (got == CLI_LINE)
            check_line(v, &place, line, fn, user);
        else
            validate_unusable(v, &place, &error);
        if (got == CLI_LINE_FAILED)
            break;
        tick(v, &lines, path, v->n_invalid - n_invalid);
    }
    cli_lines_close(&lines);
    validate_print_lines(v, path, n, v->n_valid - n_valid);
}

void validate_each(struct validate *v, const char *path, validate_fn *fn, void *user)
{
    enum cli_syntax syntax = v->options->syntax;

    if (syntax == CLI_SYNTAX_BY_NAME)
        syntax = cli_syntax_of(path);
    if (syntax == CLI_SYNTAX_JSON_LINES)
        each_line(v, path, fn, user);
    else
        each_whole(v, path, syntax == CLI_SYNTAX_YAML, fn, user);
}
