/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard turn: which of its commands; files into turns. */

#include "cli/turn/turn.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "json/json.h"

/* ---- files ------------------------------------------------------------------------------ */

peg_format turn_format_of(const char *path)
{
    const size_t len = strlen(path);

    if (cli_syntax_of(path) == CLI_SYNTAX_YAML)
        return PEG_FORMAT_YAML;
    return len > 5 && strcmp(path + len - 5, ".json") == 0 ? PEG_FORMAT_JSON : PEG_FORMAT_AUTO;
}

static peg_format format_of(const char *path, peg_str text)
{
    const peg_format format = turn_format_of(path);

    if (format != PEG_FORMAT_AUTO)
        return format;
    /* A buffer ends in a NUL. */
    return text.ptr[strspn(text.ptr, " \t\r\n")] == '{' ? PEG_FORMAT_JSON : PEG_FORMAT_YAML;
}

/* A store makes its directory if there is none; reading must not. */
static peg_status open_bytes(const char *directory, peg_spool_store **ret_bytes, peg_error *reterr)
{
    struct stat st;

    if (stat(directory, &st))
        return peg__fail(reterr, PEG_ENOTFOUND, "E_FILE",
                         "the directory of --bytes cannot be opened (%m); check its name");
    return peg_spool_file_new(directory, 0, ret_bytes, reterr);
}

/* Those beyond the first 100,000, and a list that is none, tell nothing. */
static peg_status gather_begun(struct turn_file *file, peg_error *reterr)
{
    const peg_json *begun;

    if (peg_turn_get(file->turn, &peg_key_calls_started, &begun, NULL) || !begun)
        return PEG_OK;
    PEG_JSON_EACH_ITEM (begun, item) {
        if (peg__map_add(&file->begun, peg_json_str(item), NULL) == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
    }
    return PEG_OK;
}

peg_status turn_load(const struct turn_common *common, const char *path, struct turn_file *file,
                     peg_error *reterr)
{
    peg_turn_read_options options = {PEG_TURN_READ_OPTIONS_INIT, .max_bytes = common->max_bytes};
    peg_status status = PEG_OK;

    file->path = path;
    file->text.max = common->max_bytes ? common->max_bytes : (size_t)PEG_LIMIT_JSON_BYTES;
    if (common->bytes_dir)
        status = open_bytes(common->bytes_dir, &file->bytes, reterr);
    if (!status)
        status = cli_read_file_max(path, &file->text, reterr);
    if (status)
        return status;
    file->format = format_of(path, peg__buf_view(&file->text));
    options.format = file->format;
    options.bytes = file->bytes;
    status = peg_turn_read(peg__buf_view(&file->text), &options, &file->turn, reterr);
    if (!status)
        return gather_begun(file, reterr);
    cli_hint(peg__buf_view(&file->text), false, reterr);
    return status;
}

void turn_file_free(struct turn_file *file)
{
    peg__map_free(&file->begun);
    file->turn = peg_turn_free(file->turn);
    file->bytes = peg_spool_store_unref(file->bytes);
    peg__buf_free(&file->text);
}

bool turn_has_begun(const struct turn_file *file, peg_str block_id)
{
    return peg__map_find(&file->begun, block_id);
}

/* ---- telling ---------------------------------------------------------------------------- */

void turn_complain(const struct turn_common *common, const char *path, const peg_error *error)
{
    const struct cli_style *style = cli_style_for(common->color, STDERR_FILENO);
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    (void)cli_flush(); /* in a shared terminal or log, the order tells the story */
    cli_put_place(&line, path, error);
    peg__buf_printf(&line, ": %sunusable%s: ", style->bad, style->off);
    cli_put_error(&line, "at ", error);
    peg__buf_printf(&line, " %s(%s)%s\n", style->dim, error->code, style->off);
    fputs(line.status ? "pegboard: out of memory\n" : line.ptr, stderr);
    peg__buf_free(&line);
}

peg_status turn_flush(struct peg__buf *out, peg_error *reterr)
{
    const peg_status status = out->status;

    if (!status && out->len)
        cli_write(stdout, peg__buf_view(out));
    peg__buf_clear(out);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, status, "E_TEXT_TOO_LARGE",
                         "a block is more text than can be printed at once: leave out --full");
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- the command ------------------------------------------------------------------------ */

static const struct cli_command *const parts[] = {
    &cli_turn_show,
    &cli_turn_convert,
    &cli_turn_validate,
    NULL,
};

static const struct cli_option no_options[] = {{.name = NULL}};

const struct cli_command cli_turn = {
    .name = "turn",
    .usage = "COMMAND ...",
    .summary = "show, convert or check a conversation in a file",
    .about = "Works on turns: conversations with the tools that they were offered, in files of\n"
             "JSON or YAML. Files of geppetto are understood, too.",
    .options = no_options,
    .parts = parts,
    .notes = "exit status:\n"
             "  0  it is done, and valid\n"
             "  1  validate: some file is no valid turn\n"
             "  2  something could not be used: a file or an option\n\n"
             "examples:\n"
             "  pegboard turn show turn.yaml\n"
             "  pegboard turn convert -o turn.json turn.yaml\n"
             "  pegboard turn validate --strict turns/*.json\n\n"
             "`pegboard turn COMMAND --help` explains a command.",
    .needed = "one of its commands is needed: show, convert or validate",
    .run = cli_run_part,
};
