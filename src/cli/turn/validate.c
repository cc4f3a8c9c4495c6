/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pegboard turn validate: is this a turn, and is there anything about it that will hurt?
 *
 * With --json one object a file:
 *
 *   {"file":"turn.yaml","verdict":"valid","valid":true,"blocks":4,"errors":0,"warnings":1,
 *    "findings":[{"level":"warning","code":"E_CALL_PENDING","where":"/blocks/2","line":9,"column":5,
 *                 "message":"..."}],"rewrite":"layout"}
 *
 * pegboard-turn(1) documents it.
 */

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "json/json.h"

struct validate_turns {
    struct turn_common common;
    bool is_strict;
    bool is_quiet;
    bool as_json;
    const struct cli_style *style;
    struct turn_findings *findings; /* used again for each file */
    bool has_invalid;
    bool has_unusable;
};

#define TURN_FLAG(letter, option, member, text)                                                    \
    CLI_OPTION_FLAG(struct validate_turns, member, letter, option, text)

static const struct cli_option option_table[] = {
    TURN_FLAG(0, "strict", is_strict, "take warnings for errors"),
    TURN_FLAG('q', "quiet", is_quiet, "print no verdicts, only set the exit status"),
    TURN_FLAG(0, "json", as_json, "print one JSON object a line for each file"),
    TURN_OPTIONS,
    {.name = NULL},
};

/* ---- for people ------------------------------------------------------------------------- */

/* "  turn.yaml:9:5: warning: at /blocks/2: what is wrong (E_CODE)" */
static void put_finding(const struct validate_turns *v, struct peg__buf *out, const char *path,
                        const struct turn_finding *finding)
{
    const peg_error *error = &finding->error;

    peg__buf_puts(out, "  ");
    cli_put_place(out, path, error);
    peg__buf_printf(out, ": %s%s%s: ", finding->is_error ? v->style->bad : v->style->bold,
                    finding->is_error ? "error" : "warning", v->style->off);
    cli_put_error(out, "at ", error);
    peg__buf_printf(out, " %s(%s)%s\n", v->style->dim, error->code, v->style->off);
}

static void put_count_of(struct peg__buf *out, size_t n, const char *what)
{
    if (n)
        peg__buf_printf(out, ", %zu %s%s", n, what, n == 1 ? "" : "s");
}

static void put_verdict_text(const struct validate_turns *v, struct peg__buf *out,
                             const struct turn_file *file)
{
    const struct turn_findings *f = v->findings;
    const size_t n_all = f->n_errors + f->n_warnings;

    cli_put_safe(out, peg__str(cli_file_label(file->path)));
    peg__buf_printf(out, ": %s%s%s", f->n_errors ? v->style->bad : v->style->good,
                    f->n_errors ? "invalid" : "valid", v->style->off);
    put_count_of(out, f->n_errors, "error");
    put_count_of(out, f->n_warnings, "warning");
    peg__buf_putc(out, '\n');
    for (size_t i = 0; i < f->n; i++)
        put_finding(v, out, file->path, &f->items[i]);
    if (n_all > f->n)
        peg__buf_printf(out, "  and %zu more\n", n_all - f->n);
    if (file->turn && f->rewrite == TURN_REWRITE_CONTENT && f->rewritten[0]) {
        peg__buf_printf(out, "  %snote: re-writing changes more than the layout, first at ",
                        v->style->dim);
        cli_put_safe(out, peg__str(f->rewritten));
        peg__buf_printf(out, "%s\n", v->style->off);
    }
}

/* ---- for programs ----------------------------------------------------------------------- */

static void out_error_place(struct peg__out *out, const peg_error *error)
{
    peg__out_cmember(out, "code", error->code);
    peg__out_cmember(out, "where", error->where);
    cli_out_integer(out, "line", error->line);
    cli_out_integer(out, "column", error->column);
    peg__out_cmember(out, "message", error->message);
}

static void out_findings(struct peg__out *out, const struct turn_findings *f)
{
    cli_out_integer(out, "errors", (int64_t)f->n_errors);
    cli_out_integer(out, "warnings", (int64_t)f->n_warnings);
    cli_out_array(out, "findings");
    for (size_t i = 0; i < f->n; i++) {
        peg__out_object(out);
        peg__out_cmember(out, "level", f->items[i].is_error ? "error" : "warning");
        out_error_place(out, &f->items[i].error);
        peg__out_end_object(out);
    }
    peg__out_end_array(out);
}

/* `error`: why there is no verdict, or NULL. */
static void put_verdict_object(struct peg__buf *buf, const struct turn_file *file,
                               const struct turn_findings *f, const peg_error *error)
{
    static const char *const rewrites[] = {[TURN_REWRITE_NOTHING] = "same",
                                           [TURN_REWRITE_LAYOUT] = "layout",
                                           [TURN_REWRITE_CONTENT] = "content"};
    const peg_turn *turn = error ? NULL : file->turn;
    const bool is_valid = !error && !f->n_errors;
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    cli_out_file(&out, file->path);
    peg__out_cmember(&out, "verdict", error ? "unusable" : is_valid ? "valid" : "invalid");
    cli_out_bool(&out, "valid", is_valid);
    peg__out_key(&out, "blocks");
    if (turn)
        peg__out_integer(&out, (int64_t)peg_turn_len(turn));
    else
        peg__out_null(&out);
    out_findings(&out, f);
    peg__out_key(&out, "rewrite");
    if (turn)
        peg__out_cstring(&out, rewrites[f->rewrite]);
    else
        peg__out_null(&out);
    if (error) {
        peg__out_key(&out, "error");
        peg__out_object(&out);
        out_error_place(&out, error);
        peg__out_end_object(&out);
    }
    cli_out_end_line(&out);
}

/* ---- verdicts --------------------------------------------------------------------------- */

static void flush_verdict(struct peg__buf *out)
{
    if (turn_flush(out, NULL))
        fputs("pegboard: out of memory while printing a verdict\n", stderr);
    peg__buf_free(out);
}

static void report_verdict(struct validate_turns *v, const struct turn_file *file)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    v->has_invalid = v->has_invalid || v->findings->n_errors;
    if (v->is_quiet)
        return;
    if (v->as_json)
        put_verdict_object(&out, file, v->findings, NULL);
    else
        put_verdict_text(v, &out, file);
    flush_verdict(&out);
}

static void report_unusable(struct validate_turns *v, const struct turn_file *file,
                            const peg_error *error)
{
    static const struct turn_findings none = {.n = 0};
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    v->has_unusable = true;
    if (!v->as_json || v->is_quiet) {
        turn_complain(&v->common, file->path, error);
        return;
    }
    put_verdict_object(&out, file, &none, error);
    flush_verdict(&out);
}

static void validate_file(struct validate_turns *v, const char *path)
{
    struct turn_file file = TURN_FILE;
    peg_error error;
    peg_status status = turn_load(&v->common, path, &file, &error);

    *v->findings = (struct turn_findings){.is_strict = v->is_strict};
    /* JSON or YAML that is no turn is a verdict; what is neither says nothing about turns. */
    if (status && strcmp(error.code, "E_TURN_FORMAT") == 0) {
        turn_found(v->findings, true, &error);
        status = PEG_OK;
    } else if (!status) {
        status = turn_check(&file, v->findings, &error);
    }
    if (status)
        report_unusable(v, &file, &error);
    else
        report_verdict(v, &file);
    turn_file_free(&file);
}

/* ---- the command ------------------------------------------------------------------------ */

static int validate_all(struct validate_turns *v, char *const *paths, size_t n)
{
    v->style = cli_style_for(v->common.color, STDOUT_FILENO);
    for (size_t i = 0; i < n; i++)
        validate_file(v, paths[i]);
    if (v->has_unusable)
        return CLI_UNUSABLE;
    return v->has_invalid ? CLI_NO : CLI_OK;
}

static int run_turn_validate(const struct cli_command *self, int argc, char **argv)
{
    PEG_CLEANUP(peg__freep) void *findings = peg__alloc(sizeof(struct turn_findings));
    struct validate_turns v = {.findings = findings};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    if (!findings) {
        fputs("pegboard: out of memory\n", stderr);
        return CLI_UNUSABLE;
    }
    if (!cli_read(&args, &v, NULL))
        return args.exit;
    if (!cli_reads_stdin_once(args.operands, args.n_operands))
        return cli_bad_use(self, "standard input can be read only once");
    return validate_all(&v, args.operands, args.n_operands);
}

const struct cli_command cli_turn_validate = {
    .name = "turn validate",
    .usage = "[options] FILE...",
    .summary = "check that files are turns, and that nothing in them will hurt",
    .about =
        "Checks that each FILE can be read as a turn, and what is beyond its format. Errors\n"
        "make it invalid: a result without a call, definitions whose schemas do not compile,\n"
        "settings and values of pegboard's keys that are wrong. Warnings do so with --strict:\n"
        "calls without a result, call ids and results that come twice, keys that are not\n"
        "namespace.slug@vN, older or of another version, bytes that are elsewhere, members\n"
        "and kinds of blocks that are unknown here.\n\n"
        "A FILE is JSON or YAML, by its name (.json, .yaml, .yml) or its first character;\n"
        "`-` is standard input.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .needed = "at least one file is needed",
    .notes = "exit status:\n"
             "  0  every file is a valid turn\n"
             "  1  some file is invalid\n"
             "  2  something could not be used: a file, malformed JSON or YAML, an option, or a\n"
             "     limit was reached before the verdict (the other files are still checked)\n\n"
             "examples:\n"
             "  pegboard turn validate turn.yaml\n"
             "  pegboard turn validate --strict --bytes turns/t-1.bytes turns/t-1.json\n"
             "  pegboard turn validate --json turns/*.json | jq 'select(.valid | not).file'",
    .run = run_turn_validate,
};
