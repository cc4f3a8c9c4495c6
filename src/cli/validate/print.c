/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks one value and tells the outcome. Text for people; with --json one object a line:
 *
 *   {"file":"call.json","line":null,"verdict":"invalid","valid":false,
 *    "failures":[{"instance":"/days","schema":"/properties/days/maximum","keyword":"maximum",
 *                 "expected":"...","got":"...","message":"..."}],"more":0}
 *
 * `line` is a number for JSON lines. The verdict may also be "undecided", with the name of the
 * limit in "limit", or "unusable", with the reason in "error". pegboard-validate(1) documents it.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/validate/validate.h"
#include "json/json.h"

/* ---- the two outputs ------------------------------------------------------------- */

/* Sends what v->out holds to a stream. */
static void flush_out(struct validate *v, FILE *to)
{
    cli_progress_clear(&v->progress);
    if (v->out.status)
        fputs("pegboard: out of memory while printing a report\n", stderr);
    else
        cli_write(to, peg__buf_view(&v->out));
    peg__buf_clear(&v->out);
}

/* file:line:column, as far as it is known. */
static void put_file_place(struct peg__buf *out, const struct validate_place *place, unsigned line,
                           unsigned column)
{
    cli_put_safe(out, peg__str(cli_file_label(place->path)));
    if (place->line)
        peg__buf_printf(out, ":%llu", (unsigned long long)place->line);
    else if (line)
        peg__buf_printf(out, ":%u", line);
    if (column)
        peg__buf_printf(out, ":%u", column);
}

static void out_failure(struct peg__out *out, const peg_failure *failure)
{
    peg__out_object(out);
    peg__out_member(out, "instance", failure->instance);
    peg__out_member(out, "schema", failure->schema);
    peg__out_member(out, "keyword", failure->keyword);
    peg__out_member(out, "expected", failure->expected);
    peg__out_member(out, "got", failure->got);
    peg__out_member(out, "message", failure->message);
    peg__out_end_object(out);
}

static void out_error(struct peg__out *out, const peg_error *error)
{
    peg__out_key(out, "error");
    peg__out_object(out);
    peg__out_cmember(out, "code", error->code);
    cli_out_integer(out, "line", error->line);
    cli_out_integer(out, "column", error->column);
    peg__out_cmember(out, "where", error->where);
    peg__out_cmember(out, "message", error->message);
    peg__out_end_object(out);
}

/* The object of one instance; the report is NULL unless it is invalid, the error if it is used. */
static void put_object(struct validate *v, const struct validate_place *place, const char *verdict,
                       const peg_report *report, const peg_error *error)
{
    struct peg__out out = {.buf = &v->out};

    peg__out_object(&out);
    cli_out_file(&out, place->path);
    peg__out_key(&out, "line");
    if (place->line)
        peg__out_integer(&out, (int64_t)place->line);
    else
        peg__out_null(&out);
    peg__out_cmember(&out, "verdict", verdict);
    cli_out_bool(&out, "valid", strcmp(verdict, "valid") == 0);
    cli_out_array(&out, "failures");
    for (size_t i = 0; report && i < peg_report_len(report); i++)
        out_failure(&out, peg_report_at(report, i));
    peg__out_end_array(&out);
    cli_out_integer(&out, "more", report ? (int64_t)peg_report_more(report) : 0);
    if (strcmp(verdict, "undecided") == 0)
        peg__out_cmember(&out, "limit", peg_checker_reason(v->checker));
    if (error)
        out_error(&out, error);
    cli_out_end_line(&out);
}

/* ---- invalid ---------------------------------------------------------------------- */

/* A JSON Pointer, or the URI of another document with one. */
static void put_pointer(struct peg__buf *out, peg_str pointer)
{
    if (pointer.len)
        cli_put_safe(out, pointer);
    else
        peg__buf_puts(out, "(root)");
}

/* Two lines: where and what; then, dimmed, the rule. */
static void put_failure_text(struct validate *v, const peg_failure *failure)
{
    const struct cli_style *style = v->style;

    peg__buf_printf(&v->out, "  %s", style->bold);
    put_pointer(&v->out, failure->instance);
    peg__buf_printf(&v->out, "%s: ", style->off);
    cli_put_safe(&v->out, failure->message);
    peg__buf_printf(&v->out, "\n      %srule: ", style->dim);
    put_pointer(&v->out, failure->schema);
    peg__buf_printf(&v->out, "%s\n", style->off);
}

static void put_invalid_text(struct validate *v, const struct validate_place *place)
{
    put_file_place(&v->out, place, 0, 0);
    peg__buf_printf(&v->out, ": %sinvalid%s\n", v->style->bad, v->style->off);
    for (size_t i = 0; i < peg_report_len(v->report); i++)
        put_failure_text(v, peg_report_at(v->report, i));
    if (peg_report_more(v->report))
        peg__buf_printf(&v->out, "  and %zu more\n", peg_report_more(v->report));
}

static void report_invalid(struct validate *v, const struct validate_instance *instance)
{
    v->n_invalid++;
    if (v->options->quiet)
        return;
    /* Its verdict is known; should memory end here, the report has what it found so far. */
    (void)peg_schema_report(v->schema, v->checker, instance->value, v->report);
    if (v->options->as_json)
        put_object(v, &instance->place, "invalid", v->report, NULL);
    else
        put_invalid_text(v, &instance->place);
    flush_out(v, stdout);
}

/* ---- valid ------------------------------------------------------------------------- */

static void report_valid(struct validate *v, const struct validate_place *place)
{
    v->n_valid++;
    if (v->options->quiet)
        return;
    if (v->options->as_json) {
        put_object(v, place, "valid", NULL, NULL);
    } else if (place->line == 0) { /* of lines, only the sum is printed */
        put_file_place(&v->out, place, 0, 0);
        peg__buf_printf(&v->out, ": %svalid%s\n", v->style->good, v->style->off);
    } else {
        return;
    }
    flush_out(v, stdout);
}

void validate_print_lines(struct validate *v, const char *path, uint64_t n, uint64_t n_valid)
{
    const struct validate_place place = {path, 0};
    const struct cli_style *style = v->style;

    if (v->options->quiet || v->options->as_json || v->options->benchmark)
        return;
    put_file_place(&v->out, &place, 0, 0);
    peg__buf_printf(&v->out, ": %s%llu of %llu valid%s\n", n == n_valid ? style->good : style->bad,
                    (unsigned long long)n_valid, (unsigned long long)n, style->off);
    flush_out(v, stdout);
}

/* ---- undecided and unusable --------------------------------------------------------- */

static void put_error_text(struct validate *v, const struct validate_place *place,
                           const char *verdict, const peg_error *error)
{
    const struct cli_style *style = v->err_style;

    (void)cli_flush(); /* in a shared terminal or log, the order tells the story */
    put_file_place(&v->out, place, error->line, error->column);
    peg__buf_printf(&v->out, ": %s%s%s: ", style->bad, verdict, style->off);
    cli_put_error(&v->out, "at ", error);
    peg__buf_printf(&v->out, " %s(%s)%s\n", style->dim, error->code, style->off);
    flush_out(v, stderr);
}

static void report_error(struct validate *v, const struct validate_place *place,
                         const char *verdict, const peg_error *error)
{
    v->n_unusable++;
    if (v->options->as_json && !v->options->quiet) {
        put_object(v, place, verdict, NULL, error);
        flush_out(v, stdout);
    } else {
        put_error_text(v, place, verdict, error);
    }
}

void validate_unusable_schema(struct validate *v, const struct validate_place *place,
                              const peg_error *error)
{
    report_error(v, place, "unusable", error);
    if (v->options->as_json && !v->options->quiet)
        put_error_text(v, place, "unusable", error);
}

void validate_unusable(struct validate *v, const struct validate_place *place,
                       const peg_error *error)
{
    report_error(v, place, "unusable", error);
}

static void report_undecided(struct validate *v, const struct validate_place *place)
{
    peg_error error;

    peg__fail(&error, PEG_ELIMIT, "E_CHECK_UNDECIDED",
              "the limit %s was reached before a verdict; make the instance smaller or the schema "
              "simpler",
              peg_checker_reason(v->checker));
    report_error(v, place, "undecided", &error);
}

/* ---- one value ------------------------------------------------------------------------ */

void validate_check(struct validate *v, const struct validate_instance *instance, void *user)
{
    (void)user;
    switch (peg_schema_check(v->schema, v->checker, instance->value)) {
    case PEG_VALID:
        report_valid(v, &instance->place);
        break;
    case PEG_INVALID:
        report_invalid(v, instance);
        break;
    case PEG_UNDECIDED:
        report_undecided(v, &instance->place);
        break;
    }
}
