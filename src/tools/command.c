/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A tool whose handler runs a process (tools/process.h) and turns its end into an answer: what it
 * wrote if it exited with 0, else a sentence with the code of what happened as its cause.
 */

#include "pegboard/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "core/tool/tool.h"
#include "pegboard/call.h"
#include "tools/internal.h"
#include "json/json.h"

/* Owned by its tool; immutable. */
struct command {
    struct peg__arena arena; /* all strings */
    struct peg__program program;
    struct peg__template line; /* n_words is 0: program.argv is the command line */
    size_t max_output;
    int64_t grace_ms;
    bool answers_json;
    bool detects_json;
    bool has_output_schema;
};

/* ---- failing ------------------------------------------------------------------------- */

static bool is_control(peg_str c)
{
    const unsigned char first = (unsigned char)c.ptr[0];

    if (c.len == 2)
        return first == 0xC2 && (unsigned char)c.ptr[1] < 0xA0;
    return c.len == 1 && (first < 0x20 || first == 0x7F) && first != '\n' && first != '\t';
}

/* Any bytes as text: what is no UTF-8 becomes U+FFFD, control characters become "?". */
static void add_printable(struct peg__buf *out, peg_str bytes)
{
    while (bytes.len) {
        const size_t len = peg__utf8_char_len(bytes);
        const peg_str c = peg__strn(bytes.ptr, len ? len : 1);

        if (!len)
            peg__buf_puts(out, "\xEF\xBF\xBD");
        else if (is_control(c))
            peg__buf_putc(out, '?');
        else
            peg__buf_str(out, c);
        bytes = peg__str_from(bytes, c.len);
    }
}

static bool is_blank_byte(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == '\0';
}

static void add_tail(struct peg__buf *out, const struct peg__process_result *result)
{
    peg_str tail = peg__strn(result->tail, result->tail_len);

    while (result->is_tail_cut && tail.len && (tail.ptr[0] & 0xC0) == 0x80)
        tail = peg__str_from(tail, 1);
    while (tail.len && is_blank_byte(tail.ptr[tail.len - 1]))
        tail.len--;
    if (!tail.len) {
        peg__buf_puts(out, "; it wrote nothing to standard error");
        return;
    }
    peg__buf_puts(out, "; the last of its standard error: ");
    if (result->is_tail_cut)
        peg__buf_puts(out, "...");
    add_printable(out, tail);
}

static bool is_directory(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void explain_spawn(struct peg__buf *out, const struct command *command, int error)
{
    const char *directory = command->program.directory;
    char strings[128];
    const char *reason = strerror_r(error, strings, sizeof(strings));

    if (directory && !is_directory(directory))
        peg__buf_printf(out, "it cannot run in '%.256s', which is no directory", directory);
    else if (error == ENOENT && !strchr(command->program.argv[0], '/'))
        peg__buf_puts(out, "it was not found; install it, or check the PATH it is looked up in");
    else if (error == ENOENT)
        peg__buf_puts(out, "there is no such file (or no interpreter for it); check the path");
    else if (error == EACCES)
        peg__buf_puts(out, "it may not be executed; check its permissions");
    else
        peg__buf_printf(out, "the system refused (%s)", reason);
}

static void fail_exited(peg_call *call, const struct command *command,
                        const struct peg__process_result *result)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const char *abbreviation = sigabbrev_np(result->number);

    peg__buf_printf(&out, "the command '%.256s' ", command->program.argv[0]);
    if (result->end == PEG__PROCESS_LOST)
        peg__buf_puts(&out,
                      "has ended, and how is not known: the host ignores SIGCHLD or waits for "
                      "processes that are not its own");
    else if (result->end == PEG__PROCESS_EXITED)
        peg__buf_printf(&out, "ended with exit status %d", result->number);
    else
        peg__buf_printf(&out, "was ended by signal %d (SIG%s)", result->number,
                        abbreviation ? abbreviation : "?");
    if (result->end != PEG__PROCESS_LOST)
        add_tail(&out, result);
    peg__call_fail_because(call, "E_COMMAND_EXIT", &out);
}

/* What we ended ourselves, or never began. */
static void fail_ended(peg_call *call, const struct command *command,
                       const struct peg__process_result *result)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const char *code = "E_COMMAND_SPAWN";
    peg_error why;

    peg__buf_printf(&out, "the command '%.256s' ", command->program.argv[0]);
    if (result->end == PEG__PROCESS_NOT_STARTED) {
        peg__buf_puts(&out, "could not be started: ");
        explain_spawn(&out, command, result->number);
    } else if (result->end == PEG__PROCESS_OUTPUT) {
        code = "E_COMMAND_OUTPUT";
        peg__buf_printf(&out,
                        "was killed because it wrote more than max_output (%zu bytes) to standard "
                        "output; ask for less",
                        command->max_output);
    } else {
        const bool is_late = result->end == PEG__PROCESS_TIMEOUT;

        code = is_late ? "E_COMMAND_TIMEOUT" : "E_COMMAND_CANCELED";
        peg__buf_puts(&out, "was ended before it was through");
        /* What to do about it; why it was canceled stands before these words. */
        if (is_late && peg_ctx_check(peg_call_ctx(call), &why))
            peg__buf_printf(&out, " (%s)", why.message);
        add_tail(&out, result);
    }
    peg__call_fail_because(call, code, &out);
}

/* ---- answering -------------------------------------------------------------------------- */

static void fail_json(peg_call *call, const struct command *command, const peg_error *error)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_printf(&out, "the command '%.256s' did not write %sJSON: line %u, column %u: %s",
                    command->program.argv[0], peg__json_is_duplicate(error) ? "usable " : "",
                    error->line, error->column, error->message);
    peg__call_fail_because(call, "E_COMMAND_OUTPUT", &out);
}

/* A number or a word alone is more likely a text that looks like JSON. */
static bool looks_like_json(const struct command *command, peg_str output)
{
    const enum peg__output_kind kind = peg__output_kind_of(output);

    return kind == PEG__OUTPUT_JSON || (kind == PEG__OUTPUT_TEXT && command->has_output_schema);
}

/* JSON if it should be, or may be, and is. */
static void reply_output(peg_call *call, const struct command *command, peg_str output)
{
    peg_json_doc *doc = NULL;
    peg_error error = {.code = ""};
    peg_status status = PEG_EPARSE;

    if (command->answers_json || (command->detects_json && looks_like_json(command, output)))
        status = peg_json_parse(output, &peg__json_refuse_duplicates, &doc, &error);
    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status && (command->answers_json || peg__json_is_duplicate(&error)))
        fail_json(call, command, &error);
    else if (status)
        peg_call_reply_bytes(call, output);
    else
        peg_call_reply_json(call, peg_json_root(doc));
    peg_json_doc_free(doc);
}

static void answer_call(peg_call *call, const struct command *command,
                        const struct peg__process_result *result)
{
    switch (result->end) {
    case PEG__PROCESS_EXITED:
        if (result->number)
            fail_exited(call, command, result);
        else
            reply_output(call, command, peg__buf_view(&result->output));
        return;
    case PEG__PROCESS_SIGNALED:
    case PEG__PROCESS_LOST:
        fail_exited(call, command, result);
        return;
    case PEG__PROCESS_NOT_STARTED:
    case PEG__PROCESS_OUTPUT:
    case PEG__PROCESS_TIMEOUT:
    case PEG__PROCESS_CANCELED:
        fail_ended(call, command, result);
        return;
    }
}

/* What may be reported of standard output while it runs. */
static enum peg__output_kind kind_of_output(const struct command *command)
{
    if (command->answers_json || (command->detects_json && command->has_output_schema))
        return PEG__OUTPUT_JSON;
    return command->detects_json ? PEG__OUTPUT_MAYBE : PEG__OUTPUT_TEXT;
}

static peg_status run_process(peg_call *call, const struct command *command,
                              const char *const *argv, peg_str input,
                              struct peg__process_result *ret_result)
{
    struct peg__process_def def = {.program = command->program,
                                   .input = input,
                                   .max_output = command->max_output,
                                   .grace_ms = command->grace_ms};
    struct peg__output_relay relay;
    peg_status status;

    def.program.argv = argv;
    if (!peg__output_relay_begin(&relay, call, kind_of_output(command)))
        return peg__process_run(&def, peg_call_ctx(call), ret_result, NULL);
    def.on_output = peg__output_relay_handle;
    def.user = &relay;
    status = peg__process_run(&def, peg_call_ctx(call), ret_result, NULL);
    peg__output_relay_end(&relay);
    return status;
}

static void run_line(peg_call *call, const struct command *command, const char *const *argv,
                     peg_str input)
{
    struct peg__process_result result;

    if (run_process(call, command, argv, input, &result)) {
        peg__call_out_of_memory(call);
    } else {
        answer_call(call, command, &result);
        peg__buf_free(&result.output);
    }
}

/* The arguments are words of the command line. */
static void run_template(peg_call *call, const struct command *command, const peg_json *args)
{
    struct peg__arena arena = {0};
    struct peg__buf problem = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const char *const *argv;

    switch (peg__template_render(&command->line, args, &arena, &argv, &problem)) {
    case PEG_OK:
        run_line(call, command, argv, peg__str(""));
        break;
    case PEG_EINVAL:
        peg__call_fail_because(call, "E_COMMAND_ARGUMENT", &problem);
        break;
    default:
        peg__call_out_of_memory(call);
    }
    peg__buf_free(&problem);
    peg__arena_free(&arena);
}

static void run_command(peg_call *call, const peg_json *args, void *user)
{
    const struct command *command = user;
    struct peg__buf input = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (command->line.n_words) {
        run_template(call, command, args);
        return;
    }
    peg__json_write(args, PEG_JSON_COMPACT, &input);
    peg__buf_putc(&input, '\n'); /* for commands that read lines */
    if (input.status)
        peg__call_out_of_memory(call);
    else
        run_line(call, command, command->program.argv, peg__buf_view(&input));
    peg__buf_free(&input);
}

bool peg__command_can_start(const peg_tool *tool, struct peg__buf *out)
{
    const struct command *command = tool->def.user;
    const int error = peg__spawn_check(&command->program);

    if (!error)
        return true;
    peg__buf_printf(out, "the command '%.256s' could not be started: ", command->program.argv[0]);
    explain_spawn(out, command, error);
    return false;
}

/* ---- making it ----------------------------------------------------------------------------- */

static peg_status reject_command(peg_error *reterr, const char *where, const char *message)
{
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_TOOL_VALUE", "%s of a command: %s", where,
              message);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status check_string_list(const char *const *strings, const char *where,
                                    peg_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; strings[i]; i++) {
        bytes += strnlen(strings[i], PEG_LIMIT_COMMAND_BYTES) + 1;
        if (i >= PEG_LIMIT_COMMAND_ARGS)
            return reject_command(reterr, where, "there are more than 4,096 arguments");
        if (bytes > PEG_LIMIT_COMMAND_BYTES)
            return reject_command(reterr, where, "it is longer than 1 MiB");
    }
    return PEG_OK;
}

static peg_status check_env(const char *const *env, peg_error *reterr)
{
    const peg_status status = check_string_list(env, "/env", reterr);
    char where[32];

    for (size_t i = 0; !status && env[i]; i++) {
        const char *equals = strchr(env[i], '=');

        if (equals && equals != env[i])
            continue;
        snprintf(where, sizeof(where), "/env/%zu", i);
        return reject_command(reterr, where, "it is not written NAME=value");
    }
    return status;
}

static peg_status check_command_def(const peg_command_def *def, peg_error *reterr)
{
    peg_status status;

    if (def->tool.run || def->tool.user || def->tool.user_free)
        return reject_command(reterr, "/tool/run",
                              "run, user and user_free are the command's own; "
                              "leave them NULL");
    if (!def->argv || !def->argv[0] || !def->argv[0][0])
        return reject_command(reterr, "/argv", "there is no program; put its name first");
    if (def->directory && !def->directory[0])
        return reject_command(reterr, "/directory", "it is empty; NULL means the host's");
    if (def->grace_ms < 0 || def->grace_ms > PEG_LIMIT_COMMAND_GRACE_MAX_MS)
        return reject_command(reterr, "/grace_ms", "it is between 0 and 600,000");
    if (def->max_output > PEG_LIMIT_TEXT_BYTES)
        return reject_command(reterr, "/max_output", "it is at most 256 MiB");
    if (def->answers_json && def->detects_json)
        return reject_command(reterr, "/detects_json",
                              "its output is JSON already; set one of them");
    if (def->max_memory &&
        (def->max_memory >> 20 < 1 || def->max_memory >> 20 > PEG_LIMIT_COMMAND_MEMORY_MIB))
        return reject_command(reterr, "/max_memory", "it is between 1 MiB and 1 TiB");
    status = check_string_list(def->argv, "/argv", reterr);
    if (!status && def->env)
        status = check_env(def->env, reterr);
    return status;
}

static bool has_path(const char *const *env)
{
    for (; *env; env++) {
        if (!strncmp(*env, "PATH=", 5))
            return true;
    }
    return false;
}

static const char **copy_env(struct peg__arena *arena, const char *const *env)
{
    size_t n;
    const char **copies = peg__arena_copy_list(arena, env, &n);
    const char *path;
    char *entry;
    size_t size;

    if (!copies || has_path(copies))
        return copies;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): hosts do not change PATH while they make tools */
    path = getenv("PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    size = strlen(path) + sizeof("PATH=");
    entry = peg__arena_alloc(arena, size);
    if (!entry)
        return NULL;
    snprintf(entry, size, "PATH=%s", path);
    copies[n] = entry;
    return copies;
}

static void free_command(void *user)
{
    struct command *command = user;

    peg__arena_free(&command->arena);
    peg__free(command);
}

/* False: out of memory. The words were parsed before. */
static bool copy_words(struct command *command, const struct peg__words *words)
{
    struct peg__word_fault fault;

    return !words ||
           !peg__template_parse(words->items, words->n, &command->arena, &command->line, &fault);
}

/* NULL when out of memory. */
static struct command *copy_command(const peg_command_def *def, const struct peg__words *words)
{
    struct command *command = peg__alloc_zero(1, sizeof(*command));

    if (!command)
        return NULL;
    command->max_output = def->max_output ? def->max_output : PEG_LIMIT_COMMAND_OUTPUT;
    command->grace_ms = def->grace_ms ? def->grace_ms : PEG_LIMIT_COMMAND_GRACE_MS;
    command->answers_json = def->answers_json;
    command->detects_json = def->detects_json;
    command->has_output_schema = def->tool.output_schema;
    command->program.max_memory = def->max_memory;
    command->program.argv = peg__arena_copy_list(&command->arena, def->argv, NULL);
    command->program.env = copy_env(&command->arena, def->env);
    if (def->directory)
        command->program.directory = peg__arena_copy(&command->arena, peg__str(def->directory));
    if (command->program.argv && command->program.env &&
        (command->program.directory || !def->directory) && copy_words(command, words))
        return command;
    free_command(command);
    return NULL;
}

static const struct peg__layout tool_layout = PEG__LAYOUT(peg_tool_def, PEG_TOOL_DEF_INIT);
static const struct peg__layout command_layout =
    PEG__LAYOUT_AROUND(peg_command_def, tool, &tool_layout, PEG_COMMAND_DEF_INIT);

peg_status peg__command_tool_new(const peg_command_def *def, const struct peg__words *words,
                                 peg_tool **ret_tool, peg_error *reterr)
{
    peg_tool_def tool;
    peg_status status;

    if (!def)
        return reject_command(reterr, "", "there is no definition");
    status = check_command_def(def, reterr);
    if (status)
        return status;
    tool = def->tool;
    tool.run = run_command;
    tool.user_free = free_command;
    tool.user = copy_command(def, words);
    if (!tool.user)
        return peg__fail_nomem(reterr);
    status = peg_tool_new(&tool, ret_tool, reterr);
    if (status)
        free_command(tool.user);
    return status;
}

peg_status peg_command_tool_new(const peg_command_def *def, peg_tool **ret_tool, peg_error *reterr)
{
    PEG__READ_AS_OR_RETURN(def, &command_layout, reterr);
    return peg__command_tool_new(def, NULL, ret_tool, reterr);
}
