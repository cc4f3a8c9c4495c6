/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard call: calls a tool and prints what it answers. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

struct call_print {
    const char *toolset;
    const char *tool;
    bool is_envelope;
    bool is_stream;
    bool is_raw;
    bool is_idempotent; /* of the tool */
    int64_t time_ms;    /* of a call; 0: unknown */
    enum cli_color color;
};

static void print_to(FILE *file, struct peg__buf *text)
{
    if (!text->status)
        cli_write(file, peg__buf_view(text));
    if (file == stdout)
        (void)cli_flush();
    peg__buf_free(text);
}

/* A piece of output: on standard error, or as a JSON line. */
static void print_output(peg_str stream, peg_str delta, void *user)
{
    const struct call_print *print = user;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};

    if (!print->is_envelope) {
        cli_put_safe_lines(&text, delta);
        print_to(stderr, &text);
        return;
    }
    peg__out_object(&out);
    peg__out_cmember(&out, "event", "output");
    peg__out_member(&out, "stream", stream);
    peg__out_member(&out, "delta", delta);
    cli_out_end_line(&out);
    print_to(stdout, &text);
}

/* ---- for programs ---- */

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
    cli_out_array(out, "server_data");
    for (size_t i = 0; i < result->n_server_data; i++) {
        peg__out_object(out);
        peg__out_cmember(out, "kind", result->server_data[i].kind);
        peg__out_cmember(out, "audience", result->server_data[i].audience);
        cli_out_raw(out, "data", result->server_data[i].data);
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
    cli_out_raw(&out, "result", result->json);
    out_error(&out, result);
    cli_out_bool(&out, "started", result->was_started);
    cli_out_bool(&out, "attached", result->was_attached);
    cli_out_integer(&out, "retry_ms", result->retry_ms);
    out_server_data(&out, result);
    cli_out_end_line(&out);
    return remote_print(&text);
}

static peg_remote_outcome outcome_of(const peg_error *error)
{
    if (strcmp(error->code, "E_TIMEOUT") == 0)
        return PEG_REMOTE_TIMEOUT;
    return strcmp(error->code, "E_OUTCOME_UNKNOWN") == 0 ? PEG_REMOTE_UNKNOWN : PEG_REMOTE_REFUSED;
}

/* ---- for people ---- */

/* The characters of a JSON string. False if it is none. */
static bool put_string_chars(struct peg__buf *out, peg_str json)
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

    if (put_string_chars(&text, json))
        cli_put_safe_lines(out, peg__buf_view(&text));
    else if (toolset_put_pretty(&text, json))
        cli_put_json(out, cli_style_for(print->color, STDOUT_FILENO), peg__buf_view(&text));
    else
        cli_put_safe_lines(out, json);
    if (text.status)
        out->status = text.status;
    peg__buf_free(&text);
}

static int print_json(const struct call_print *print, peg_str json)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (isatty(STDOUT_FILENO))
        put_for_people(print, &text, json);
    else if (!(print->is_raw && put_string_chars(&text, json)))
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

static void put_outcome(const struct call_print *print, const peg_remote_result *result,
                        struct peg__buf *line)
{
    static const char *const message[] = {
        [PEG_REMOTE_RESULT] = "", /* none of these two is complained about */
        [PEG_REMOTE_RUNNING] = "",
        [PEG_REMOTE_ERROR] = "failed",
        [PEG_REMOTE_TIMEOUT] = "was not started in time",
        [PEG_REMOTE_CANCELED] = "was canceled before it was started",
        [PEG_REMOTE_UNKNOWN] = "outcome unknown",
        [PEG_REMOTE_REFUSED] = "was refused",
    };
    const struct cli_style *style = cli_style_for(print->color, STDERR_FILENO);

    peg__buf_printf(line, " %s%s%s: ", style->bad, message[result->outcome], style->off);
    put_report(line, peg__str(result->error_message));
}

static void complain_of_result(const struct call_print *print, const peg_remote_result *result)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "pegboard: ");
    cli_put_safe(&line, peg__str(print->toolset));
    peg__buf_putc(&line, ' ');
    cli_put_safe(&line, peg__str(print->tool));
    if (is_ended_late(result))
        put_ended_late(print, &line);
    else
        put_outcome(print, result, &line);
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

/* Returns the exit status. */
static int print_result(const struct call_print *print, const peg_remote_result *result)
{
    int answer = CLI_OK;

    if (print->is_envelope)
        answer = print_envelope(print, result);
    else if (result->outcome == PEG_REMOTE_RESULT)
        answer = print_json(print, result->json);
    else
        complain_of_result(print, result);
    return answer ? answer : exit_of(result);
}

enum { OPT_META = 1, OPT_ANSWER, MAX_PAIRS = 1000, MAX_META = 64, ASK_MS = 10000 };

struct call_options {
    struct remote_args remote;
    struct call_print print;
    const char *args;
    int64_t timeout_ms;
    const char *key;
    peg_remote_entry meta[MAX_META];
    size_t n_meta;
    struct call_answers answers;
};

/* ---- options ---- */

#define CALL_FLAG(letter, option, member, text)                                                    \
    CLI_OPTION_FLAG(struct call_options, print.member, letter, option, text)

static const struct cli_option option_table[] = {
    {0, 0, "args", "JSON",
     "all arguments as one JSON object, or @FILE that holds\nit; - is standard input",
     .kind = CLI_STRING, .at = offsetof(struct call_options, args)},
    CALL_FLAG(0, "stream", is_stream,
              "show what the tool writes while it runs, on standard\nerror; with --json as JSON "
              "lines"),
    CALL_FLAG(0, "json", is_envelope,
              "print the outcome of the call as one JSON object:\noutcome, call_id, result, error, "
              "server_data"),
    CALL_FLAG('r', "raw", is_raw,
              "print a result that is a string without its quotes,\nas it is on a terminal"),
    {0, 0, "timeout", "TIME",
     "give up after that, such as 90s; 30s by default, or\nthe tool's own time limit",
     .kind = CLI_TIME, .at = offsetof(struct call_options, timeout_ms), .least = 1,
     .most = PEG_LIMIT_GATEWAY_MAX_CALL_MS, .wanted = "at least 1ms and at most 24h"},
    /* An empty key would be none, and a retry would start the call again. */
    {0, 0, "idempotency-key", "KEY",
     "calls with one key are one call: a retry gets the result\nof the first", .kind = CLI_STRING,
     .at = offsetof(struct call_options, key), .least = 1, .wanted = "a key; an empty one is none"},
    {OPT_ANSWER, 0, "answer", "JSON",
     "the answer to what the tool asks while it runs: the\ncontent of a form, such as "
     "'{\"sure\":true}'; several\nanswer several questions. Without it the terminal asks",
     .kind = CLI_OWN},
    {OPT_META, 0, "meta", "KEY=VALUE", "handed to the tool; may be given several times",
     .kind = CLI_OWN},
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

static const char *take_given_answer(struct call_answers *answers, const char *value)
{
    peg_json_doc *doc = NULL;
    const bool is_json = peg_json_parse(peg__str(value), NULL, &doc, NULL) == PEG_OK;

    peg_json_doc_free(doc);
    if (!is_json || answers->n == CALL_MAX_ANSWERS)
        return "JSON, and at most 32 of them";
    answers->given[answers->n++] = value;
    return NULL;
}

/* Splits "key=value" in place: it is an argument of the process. */
static const char *take_meta(void *into, int id, const char *value)
{
    struct call_options *o = into;
    char *equals = strchr(peg__unconst(value), '=');

    if (id == OPT_ANSWER)
        return take_given_answer(&o->answers, value);
    if (!equals || equals == value || o->n_meta == MAX_META)
        return "KEY=VALUE, and at most 64 of them";
    *equals = '\0';
    o->meta[o->n_meta++] = (peg_remote_entry){value, equals + 1};
    return NULL;
}

static bool read_call_options(struct cli_args *args, struct call_options *o)
{
    if (!remote_read(&o->remote, args, take_meta))
        return false;
    if (args->n_operands > 2 + MAX_PAIRS)
        args->exit = cli_bad_use(args->command, "there are more than 1000 arguments: use --args");
    else if (o->args && args->n_operands > 2)
        args->exit =
            cli_bad_use(args->command, "arguments are given with --args or as key=value, not both");
    o->print.toolset = args->operands[0];
    o->print.tool = args->operands[1];
    o->print.color = o->remote.color;
    /* The questions before the call must not take longer than the call may. */
    if (o->timeout_ms && o->timeout_ms < ASK_MS)
        o->remote.timeout_ms = o->timeout_ms;
    return args->exit == CLI_OK;
}

/* ---- the call ---- */

/* Nothing was called: reported like any other outcome. */
static int refuse_call(const struct call_options *o, const peg_error *error)
{
    struct peg__buf message = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_remote_result result = {
        .outcome = outcome_of(error),
        .call_id = "",
        .json = peg__str(""),
        .error_name = remote_error_name(error),
        .error = *error,
    };
    int answer;

    if (!o->print.is_envelope)
        return remote_complain(&o->remote, error);
    remote_explain(&o->remote, error, &message);
    result.error_message = message.ptr ? message.ptr : error->message;
    result.was_started = result.outcome == PEG_REMOTE_UNKNOWN;
    answer = print_envelope(&o->print, &result);
    peg__buf_free(&message);
    return answer ? answer : remote_exit_of(error);
}

/* The same of arguments, which the gateway has not seen. A schema violation looks as if the gateway
 * had found it. */
static int refuse_args(const struct call_options *o, const peg_error *error)
{
    if (o->print.is_envelope || strcmp(error->code, "E_VALIDATION") == 0)
        return refuse_call(o, error);
    return remote_complain_local(o->args ? "--args" : NULL, error);
}

/* The time that a call of it has, as far as we know: the shorter one. */
static int64_t time_of(const struct call_options *o, const peg_toolset_tool *tool)
{
    if (!o->timeout_ms || (tool->timeout_ms && tool->timeout_ms < o->timeout_ms))
        return tool->timeout_ms;
    return o->timeout_ms;
}

static int read_args(struct call_options *o, const peg_toolset *toolset, char **ret_json)
{
    peg_error error;
    const peg_toolset_tool *tool = cli_find_tool(toolset, o->print.tool, &error);
    peg_status status;

    if (!tool)
        return refuse_call(o, &error);
    o->print.time_ms = time_of(o, tool);
    o->print.is_idempotent = tool->is_idempotent;
    status = o->args
                 ? call_args_read(o->args, ret_json, &error)
                 : call_args_build(tool->input_schema, (const char *const *)o->remote.operands + 2,
                                   o->remote.n_operands - 2, ret_json, &error);
    return status ? refuse_args(o, &error) : CLI_OK;
}

/* The toolset first: it tells what the words mean, and whether there is a gateway at all. */
static int make_args(struct call_options *o, peg_client *client, char **ret_json)
{
    peg_toolset *toolset = NULL;
    peg_error error;
    int answer;

    if (peg_client_get(client, NULL, NULL, o->print.toolset, &toolset, &error)) {
        cli_suggestion_toolset(client, o->print.toolset, &error);
        return refuse_call(o, &error);
    }
    answer = read_args(o, toolset, ret_json);
    peg_toolset_unref(toolset);
    return answer;
}

static int call_tool(struct call_options *o, peg_client *client, const char *json)
{
    const peg_remote_request request = {
        PEG_REMOTE_REQUEST_INIT,
        .toolset = o->print.toolset,
        .tool = o->print.tool,
        .args = peg__str(json),
        .idempotency_key = o->key,
        .timeout_ms = o->timeout_ms,
        .metadata = o->meta,
        .n_metadata = o->n_meta,
        .on_question = call_can_ask(&o->answers) ? call_ask : NULL,
        .question_user = &o->answers,
    };
    const peg_remote_output output = {.fn = print_output, .user = &o->print};
    peg_remote_result *result = NULL;
    peg_error error;
    peg_status status =
        o->print.is_stream
            ? peg_client_call_stream(client, NULL, &request, &output, &result, &error)
            : peg_client_call(client, NULL, &request, &result, &error);
    int answer;

    if (status)
        return refuse_call(o, &error);
    answer = print_result(&o->print, result);
    peg_remote_result_free(result);
    return answer;
}

static int call_with_client(struct call_options *o)
{
    peg_client *client = NULL;
    char *json = NULL;
    peg_error error;
    int answer = remote_client_new(&o->remote, &client, &error) ? refuse_call(o, &error)
                                                                : make_args(o, client, &json);

    if (json)
        answer = call_tool(o, client, json);
    peg_free(json);
    peg_client_unref(client);
    return answer;
}

static int run_call_command(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct call_options options = {.args = NULL};

    return read_call_options(&args, &options) ? call_with_client(&options) : args.exit;
}

const struct cli_command cli_call = {
    .name = "call",
    .usage = "[options] TOOLSET TOOL [KEY=VALUE...]",
    .summary = "call a tool through a gateway",
    .about = "Calls a tool and prints its result on standard output: JSON, or on a terminal what\n"
             "people read, a text without quotes and JSON in colour. Arguments are words:\n"
             "  key=VALUE   what the tool's schema wants there: a number, true, a string, ...\n"
             "  key:=JSON   JSON, whatever the schema says\n"
             "  key=@FILE   what is in a local file; @- is standard input, @@TEXT is @TEXT\n"
             "A key that is given several times is an array. Or all of them at once, with --args:\n"
             "so values that others have written name no file of yours.",
    .options = option_table,
    .min_operands = 2,
    .max_operands = CLI_MANY,
    .needed = "the names of a toolset and a tool are needed",
    .notes = "exit status:\n"
             "  0  the tool answered\n"
             "  1  the tool failed; or there is no such tool, or it refuses the "
             "arguments\n"
             "  2  a wrong option, arguments that cannot be read, or a file that cannot be used\n"
             "  3  the gateway could not be reached, or does not know who we are\n"
             "  4  the call was started, or may have been, and its end is not known; or its time\n"
             "     was over and it was ended halfway\n"
             "  5  not now: no healthy provider, overload, or the deadline passed before it was\n"
             "     started; retrying is safe\n\n"
             "examples:\n"
             "  pegboard call weather forecast city=Rome days=3\n"
             "  pegboard call weather forecast --args '{\"city\":\"Rome\"}' | jq .high\n"
             "  pegboard call build run target=all --stream --timeout 10m",
    .run = run_call_command,
};
