/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard turn convert: JSON to YAML, and back. */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"

enum option_id { OPT_TO = 1, OPT_OUTPUT };

struct convert_options {
    struct turn_common common;
    peg_turn_write_options write;
    const char *path;
    const char *out; /* NULL: standard output */
};

/* ---- options ---------------------------------------------------------------------------- */

static const struct cli_option option_table[] = {
    {OPT_TO, 0, "to", "FORMAT",
     "json or yaml; by default by the name of OUT, else\nwhat FILE is not", .kind = CLI_OWN},
    CLI_OPTION_FLAG(struct convert_options, write.pretty, 0, "pretty",
                    "JSON with line ends; means --to json"),
    {0, 0, "omit-data", NULL,
     "leave out the data: tool definitions, settings, and what\nelse was put there",
     .kind = CLI_FLAG, .at = offsetof(struct convert_options, write.omit_data)},
    {OPT_OUTPUT, 'o', "output", "OUT",
     "write to this file, which is replaced whole or not at all;\nstandard output by default",
     .kind = CLI_OWN},
    TURN_OPTIONS,
    {.name = NULL},
};

static const char *take_convert_option(void *into, int id, const char *value)
{
    struct convert_options *o = into;

    if (id == OPT_OUTPUT) {
        o->out = cli_is_stdin(value) ? NULL : value;
        return NULL;
    }
    o->write.format = strcmp(value, "json") == 0 ? PEG_FORMAT_JSON : PEG_FORMAT_YAML;
    return o->write.format == PEG_FORMAT_JSON || strcmp(value, "yaml") == 0 ? NULL : "json or yaml";
}

static peg_format choose_format(const struct convert_options *o, peg_format from)
{
    peg_format format = o->write.format;

    if (format == PEG_FORMAT_AUTO && o->write.pretty)
        format = PEG_FORMAT_JSON;
    if (format == PEG_FORMAT_AUTO && o->out)
        format = turn_format_of(o->out);
    if (format == PEG_FORMAT_AUTO)
        format = from == PEG_FORMAT_JSON ? PEG_FORMAT_YAML : PEG_FORMAT_JSON;
    return format;
}

/* ---- a file that is there whole or not at all ------------------------------------------- */

static peg_status fail_out(const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_FILE",
                     "cannot be %s (%m); check the directory, its permissions and the disk", what);
}

/* A new file gets the mode of the old one, and is there whole or not at all; a pipe or a device is
 * only written to. */
static peg_status write_out(const char *path, bool is_new, const struct stat *old, peg_str text,
                            peg_error *reterr)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0666);
    peg_status status = PEG_OK;

    if (fd < 0)
        return fail_out(is_new ? "made" : "opened", reterr);
    if ((old && fchmod(fd, old->st_mode & 0777)) || !peg__file_write_all(fd, text) ||
        (is_new && fsync(fd)))
        status = fail_out("written", reterr);
    if (close(fd) && !status)
        status = fail_out("written", reterr);
    if (status && is_new)
        unlink(path);
    return status;
}

peg_status turn_replace_file(const char *path, peg_str text, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *temporary = NULL;
    char real[PATH_MAX];
    struct peg__buf name = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    peg_status status;

    if (exists && !S_ISREG(st.st_mode))
        return write_out(path, false, NULL, text, reterr);
    /* What a link leads to is replaced, not the link. */
    if (exists && !realpath(path, real))
        return fail_out("found", reterr);
    if (exists)
        path = real;
    peg__buf_printf(&name, "%s.new-%ld", path, (long)getpid());
    status = peg__buf_take(&name, &temporary, NULL, reterr);
    if (!status)
        status = write_out(temporary, true, exists ? &st : NULL, text, reterr);
    if (!status && rename(temporary, path)) {
        status = fail_out("replaced", reterr);
        unlink(temporary);
    }
    return status;
}

/* ---- work ------------------------------------------------------------------------------- */

static peg_status convert(const struct convert_options *o, const struct turn_file *file,
                          struct peg__buf *text, peg_error *reterr)
{
    peg_turn_write_options write = o->write;
    PEG_CLEANUP(peg__freep) char *written = NULL;
    peg_status status;
    size_t len;

    write.format = choose_format(o, file->format);
    /* What is in the file stays in the text, however large; references stay references. */
    write.inline_below = INT64_MAX;
    status = peg_turn_write(file->turn, &write, &written, &len, reterr);
    if (status)
        return status;
    peg__buf_add(text, written, len);
    if (len && written[len - 1] != '\n')
        peg__buf_putc(text, '\n');
    if (text->status)
        return text->status == PEG_ENOMEM
                   ? peg__fail_nomem(reterr)
                   : peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                               "the text would be larger than 256 MiB: leave out --bytes, or use "
                               "--omit-data");
    return PEG_OK;
}

static int convert_file(const struct convert_options *o)
{
    struct turn_file file = TURN_FILE;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const char *culprit = o->path;
    peg_error error;
    peg_status status = turn_load(&o->common, o->path, &file, &error);

    if (!status)
        status = convert(o, &file, &text, &error);
    if (!status && o->out) {
        culprit = o->out;
        status = turn_replace_file(o->out, peg__buf_view(&text), &error);
    } else if (!status) {
        status = turn_flush(&text, &error);
    }
    if (status)
        turn_complain(&o->common, culprit, &error);
    peg__buf_free(&text);
    turn_file_free(&file);
    return status ? CLI_UNUSABLE : CLI_OK;
}

static int run_turn_convert(const struct cli_command *self, int argc, char **argv)
{
    struct convert_options options = {.write = {PEG_TURN_WRITE_OPTIONS_INIT}};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    if (!cli_read(&args, &options, take_convert_option))
        return args.exit;
    if (options.write.pretty && options.write.format == PEG_FORMAT_YAML)
        return cli_bad_use(self, "--pretty is for JSON, and YAML always has line ends");
    options.path = args.operands[0];
    return convert_file(&options);
}

const struct cli_command cli_turn_convert = {
    .name = "turn convert",
    .usage = "[options] FILE",
    .summary = "write a turn as JSON or YAML, the same bytes each time",
    .about = "Reads a turn and writes it in the other format, or in the same one in its canonical\n"
             "form. The same turn always gives the same bytes. Members, kinds and keys that\n"
             "are unknown here are kept, and so are references to bytes elsewhere; with\n"
             "--bytes these bytes are written into the text.\n\n"
             "FILE is JSON or YAML, by its name (.json, .yaml, .yml) or its first character;\n"
             "`-` is standard input.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "one file is needed",
    .notes = "exit status:\n"
             "  0  it is written\n"
             "  2  something could not be used: a file that is no turn, an option, a limit; or\n"
             "     OUT could not be written, and is as it was\n\n"
             "examples:\n"
             "  pegboard turn convert turn.json\n"
             "  pegboard turn convert --omit-data -o small.yaml turn.yaml\n"
             "  pegboard turn convert --pretty turn.yaml | less",
    .run = run_turn_convert,
};
