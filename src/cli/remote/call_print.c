/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/call_print.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/remote/args.h"
#include "cli/remote/toolset.h"
#include "cli/terminal/json_color.h"
#include "json/json.h"

/* ---- text of others ---- */

/* Harmless, but for the ends of lines and tabs. */
static void put_lines(struct peg__buf *out, peg_str text)
{
    while (text.len) {
        size_t len = 0;

        while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\t')
            len++;
        cli_put_safe(out, peg__strn(text.ptr, len));
        if (len < text.len)
            peg__buf_putc(out, text.ptr[len++]);
        text = peg__str_from(text, len);
    }
}

static void print_to(FILE *file, struct peg__buf *text)
{
    if (!text->status)
        cli_write(file, peg__buf_view(text));
    if (file == stdout)
        (void)cli_flush();
    peg__buf_free(text);
}

void call_print_output(const struct call_print *print, peg_str stream, peg_str delta)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};

    if (!print->is_envelope) {
        put_lines(&text, delta);
        print_to(stderr, &text);
        return;
    }
    peg__out_object(&out);
    peg__out_cmember(&out, "event", "output");
    peg__out_member(&out, "stream", stream);
    peg__out_member(&out, "delta", delta);
    peg__out_end_object(&out);
    peg__buf_putc(&text, '\n');
    print_to(stdout, &text);
}

/* ---- for programs ---- */

static void out_raw(struct peg__out *out, const char *name, peg_str json)
{
    peg__out_key(out, name);
    if (json.len)
        peg__out_raw(out, json);
    else
        peg__out_null(out);
}

static void out_error(struct peg__out *out, const peg_remote_result *result)
{
    peg__out_key(out, "error");
    if (!*result->error_name && !*result->error_message) {
        peg__out_null(out);
        return;
    }
    peg__out_object(out);
    peg__out_cmember(out, "name", result->error_name);
    peg__out_cmember(out, "message", result->error_message);
    peg__out_end_object(out);
}

static void out_server_data(struct peg__out *out, const peg_remote_result *result)
{
    peg__out_key(out, "server_data");
    peg__out_array(out);
    for (size_t i = 0; i < result->n_server_data; i++) {
        peg__out_object(out);
        peg__out_cmember(out, "kind", result->server_data[i].kind);
        peg__out_cmember(out, "audience", result->server_data[i].audience);
        out_raw(out, "data", result->server_data[i].data);
        peg__out_end_object(out);
    }
    peg__out_end_array(out);
}

static int print_envelope(const struct call_print *print, const peg_remote_result *result)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};

    peg__out_object(&out);
    if (print->is_stream)
        peg__out_cmember(&out, "event", "end");
    peg__out_cmember(&out, "outcome", peg_remote_outcome_name(result->outcome));
    peg__out_cmember(&out, "call_id", result->call_id);
    out_raw(&out, "result", result->json);
    out_error(&out, result);
    peg__out_key(&out, "started");
    peg__out_bool(&out, result->was_started);
    peg__out_key(&out, "attached");
    peg__out_bool(&out, result->was_attached);
    peg__out_key(&out, "retry_ms");
    peg__out_integer(&out, result->retry_ms);
    out_server_data(&out, result);
    peg__out_end_object(&out);
    peg__buf_putc(&text, '\n');
    return remote_print(&text);
}

static peg_remote_outcome outcome_of(const peg_error *error)
{
    if (strcmp(error->code, "E_TIMEOUT") == 0)
        return PEG_REMOTE_TIMEOUT;
    return strcmp(error->code, "E_OUTCOME_UNKNOWN") == 0 ? PEG_REMOTE_UNKNOWN : PEG_REMOTE_REFUSED;
}

int call_print_refusal(const struct call_print *print, const peg_error *error, const char *words)
{
    const peg_remote_outcome outcome = outcome_of(error);
    const peg_remote_result result = {
        .outcome = outcome,
        .call_id = "",
        .json = peg__str(""),
        .error_name = remote_error_name(error),
        .error_message = words,
        .error = *error,
        .was_started = outcome == PEG_REMOTE_UNKNOWN,
    };

    return print_envelope(print, &result);
}

/* ---- for people ---- */

/* The characters of a JSON string. False if it is none. */
static bool put_string(struct peg__buf *out, peg_str json)
{
    peg_json_doc *doc = NULL;
    bool is_string = !peg_json_parse(json, NULL, &doc, NULL) &&
                     peg_json_kind_of(peg_json_root(doc)) == PEG_JSON_STRING;

    if (is_string)
        peg__buf_str(out, peg_json_str(peg_json_root(doc)));
    peg_json_doc_free(doc);
    return is_string;
}

/* A text as it is, JSON laid out in colour, and nothing that steers the terminal. */
static void put_for_people(const struct call_print *print, struct peg__buf *out, peg_str json)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (put_string(&text, json))
        put_lines(out, peg__buf_view(&text));
    else if (toolset_put_pretty(&text, json))
        cli_put_json(out, cli_style_for(print->color, STDOUT_FILENO), peg__buf_view(&text));
    else
        put_lines(out, json);
    if (text.status)
        out->status = text.status;
    peg__buf_free(&text);
}

static int print_json(const struct call_print *print, peg_str json)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (isatty(STDOUT_FILENO))
        put_for_people(print, &text, json);
    else if (!(print->is_raw && put_string(&text, json)))
        peg__buf_str(&text, json);
    peg__buf_putc(&text, '\n');
    return remote_print(&text);
}

/* A report has a line for each thing that is wrong. */
static void put_report(struct peg__buf *out, peg_str text)
{
    const char *end;

    while ((end = memchr(text.ptr, '\n', text.len))) {
        cli_put_safe(out, (peg_str){text.ptr, (size_t)(end - text.ptr)});
        peg__buf_puts(out, "\n  ");
        text = peg__str_from(text, (size_t)(end - text.ptr) + 1);
    }
    cli_put_safe(out, text);
}

/* Its provider ended it, halfway; the gateway may be first to say that its time is over. */
static bool is_ended_late(const peg_remote_result *result)
{
    return result->outcome == PEG_REMOTE_ERROR && strcmp(result->error_name, "E_TOOL_TIMEOUT") == 0;
}

static void put_ended_late(const struct call_print *print, struct peg__buf *line)
{
    peg__buf_puts(line, " ran for its whole ");
    if (print->time_ms)
        remote_put_time(line, print->time_ms);
    else
        peg__buf_puts(line, "time");
    peg__buf_puts(line, print->is_idempotent
                            ? " and was ended; calling it again is harmless: allow more time with "
                              "--timeout"
                            : " and was ended; it may have had part of its effect");
}

static void put_end(const struct call_print *print, const peg_remote_result *result,
                    struct peg__buf *line)
{
    static const char *const words[] = {
        [PEG_REMOTE_RESULT] = "", /* none of these two is complained about */
        [PEG_REMOTE_RUNNING] = "",
        [PEG_REMOTE_ERROR] = "failed",
        [PEG_REMOTE_TIMEOUT] = "was not started in time",
        [PEG_REMOTE_CANCELED] = "was canceled before it was started",
        [PEG_REMOTE_UNKNOWN] = "was started, or may have been, and its end is not known",
        [PEG_REMOTE_REFUSED] = "was refused",
    };
    const struct cli_style *style = cli_style_for(print->color, STDERR_FILENO);

    peg__buf_printf(line, " %s%s%s: ", style->bad, words[result->outcome], style->off);
    put_report(line, peg__str(result->error_message));
}

static void complain(const struct call_print *print, const peg_remote_result *result)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_safe(&line, peg__str(print->toolset));
    peg__buf_putc(&line, ' ');
    cli_put_safe(&line, peg__str(print->tool));
    if (is_ended_late(result))
        put_ended_late(print, &line);
    else
        put_end(print, result, &line);
    if (*result->error_name) {
        peg__buf_puts(&line, " (");
        cli_put_safe(&line, peg__str(result->error_name));
        peg__buf_putc(&line, ')');
    }
    if (result->retry_ms > 0)
        peg__buf_printf(&line, "; try again in %lld ms", (long long)result->retry_ms);
    peg__buf_putc(&line, '\n');
    print_to(stderr, &line);
}

static int exit_of(const peg_remote_result *result)
{
    const char *code = result->error.code ? result->error.code : "";

    switch (result->outcome) {
    case PEG_REMOTE_RESULT:
    case PEG_REMOTE_RUNNING:
        return CLI_OK;
    case PEG_REMOTE_ERROR:
        return is_ended_late(result) ? CLI_UNKNOWN : CLI_NO;
    case PEG_REMOTE_TIMEOUT:
    case PEG_REMOTE_CANCELED:
        return CLI_NOT_NOW;
    case PEG_REMOTE_UNKNOWN:
        return CLI_UNKNOWN;
    case PEG_REMOTE_REFUSED:
        break;
    }
    if (strcmp(code, "E_SERVICE_UNAVAILABLE") == 0 || strcmp(code, "E_OVERLOADED") == 0)
        return CLI_NOT_NOW;
    return strcmp(code, "E_UNAUTHENTICATED") == 0 ? CLI_NO_GATEWAY : CLI_NO;
}

int call_print_result(const struct call_print *print, const peg_remote_result *result)
{
    int answer = CLI_OK;

    if (print->is_envelope)
        answer = print_envelope(print, result);
    else if (result->outcome == PEG_REMOTE_RESULT)
        answer = print_json(print, result->json);
    else
        complain(print, result);
    return answer ? answer : exit_of(result);
}
