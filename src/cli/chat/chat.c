/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard chat: a conversation with a model that has tools, at a terminal or through a pipe. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/chat/chat.h"
#include "cli/turn/turn.h"
#include "pegboard/cleanup.h"

/* ---- options ---- */

enum { OPT_TOOLSET = 1, OPT_VENDOR };

#define CHAT_STRING(option, name, member, text)                                                    \
    {                                                                                              \
        0, 0, option, name, text, .kind = CLI_STRING, .at = offsetof(struct chat_options, member), \
                                  .least = 1                                                       \
    }

static const struct cli_option option_table[] = {
    CHAT_STRING("model", "NAME", model, "the model to ask"),
    CHAT_STRING("url", "URL", url,
                "where it is, such as http://127.0.0.1:11434/v1; by\ndefault at its vendor's"),
    {OPT_VENDOR, 0, "vendor", "VENDOR",
     "the protocol: openai-chat, openai-responses, anthropic\nor gemini; by default openai-chat, "
     "or "
     "by the name of\nthe model if there is no --url",
     .kind = CLI_OWN},
    CHAT_STRING("key-env", "VARIABLE", key_env,
                "the variable that has the key; by default\nOPENAI_API_KEY, ANTHROPIC_API_KEY or "
                "GEMINI_API_KEY"),
    CHAT_STRING("script", "FILE", script, "follow a script in place of a model (JSON, YAML)"),
    CHAT_STRING("system", "TEXT", system, "the system prompt"),
    CHAT_STRING("resume", "FILE", resume, "go on with a conversation that /save wrote"),
    CLI_OPTION_FLAG(struct chat_options, approves_all, 'y', "yes", "run every call without asking"),
    {OPT_TOOLSET, 0, "toolset", "TOOLSET",
     "of a gateway's toolsets only this one; may be given\nseveral times", .kind = CLI_OWN},
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

static const char *take_option(void *into, int id, const char *value)
{
    struct chat_options *o = into;

    if (id == OPT_VENDOR)
        return peg_vendor_from_name(peg__str(value), &o->vendor, NULL) ||
                       o->vendor == PEG_VENDOR_NEUTRAL
                   ? "openai-chat, openai-responses, anthropic or gemini"
                   : NULL;
    if (o->n_toolsets == CHAT_MAX_TOOLSETS || !*value)
        return "the name of a toolset, and at most 64 of them";
    o->toolsets[o->n_toolsets++] = value;
    return NULL;
}

/* ---- a turn ---- */

static peg_status make_runner(struct chat *c, const peg_run_hooks *hooks, peg_runner **ret_runner,
                              peg_error *reterr)
{
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *tools = NULL;
    peg_runner_config config = {
        PEG_RUNNER_CONFIG_INIT, .on_event = chat_show_event, .on_event_user = &c->view,
        .on_gate = c->input.is_terminal ? chat_answer_gate : NULL, .on_gate_user = c};
    peg_status status = chat_tools_join(&c->tools, &tools, reterr);

    config.registry = tools;
    config.loop.engine = chat_model_engine(&c->model);
    config.loop.call.hooks = hooks;
    /* An interrupted call is not begun again behind the person's back: the model learns of it. */
    config.loop.pending = PEG_PENDING_UNKNOWN;
    return status ? status : peg_runner_new(&config, ret_runner, reterr);
}

static void report_run(struct chat *c, peg_status status, bool is_interrupted,
                       const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    c->exit = status ? CLI_NO : CLI_OK;
    if (is_interrupted && status)
        peg__buf_puts(&line, "interrupted\n");
    chat_show(&c->view, stderr, &line); /* ends the line of what was said */
    if (status && !is_interrupted)
        remote_complain_local(NULL,
                              strcmp(error->code, "E_EXECUTOR") == 0 ? &c->model.error : error);
}

/* The model answers what the turn has come to. */
static void run_turn(struct chat *c)
{
    PEG_CLEANUP(peg_runner_unrefp) peg_runner *runner = NULL;
    PEG_CLEANUP(peg_cancel_unrefp) peg_cancel *cancel = NULL;
    PEG_CLEANUP(peg_ctx_unrefp) peg_ctx *ctx = NULL;
    const peg_run_hooks hooks = {.is_allowed = chat_is_allowed, .user = c};
    peg_error error;
    peg_status status = make_runner(c, &hooks, &runner, &error);

    if (!status)
        status = peg_ctx_with_cancel(NULL, &ctx, &cancel, &error);
    if (!status) {
        chat_input_set_running(&c->input, cancel);
        status = peg_runner_run(runner, ctx, c->turn, NULL, &error);
        chat_input_set_running(&c->input, NULL);
    }
    c->view.is_call_known = false;
    report_run(c, status, cancel && peg_cancel_fired(cancel), &error);
}

static void say_to_model(struct chat *c, peg_str text)
{
    peg_error error;

    if (peg_turn_add_text(c->turn, PEG_BLOCK_USER, text, &error))
        c->exit = remote_complain_local(NULL, &error);
    else
        run_turn(c);
}

/* ---- commands ---- */

static void print_tools(struct chat *c, peg_str operand)
{
    static const struct cli_column columns[] = {
        {"TOOL", false, false}, {"ASKS", false, false}, {"DESCRIPTION", false, true}};
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    struct cli_table table = {.columns = columns, .n_columns = 3};
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_tool_list tools = {NULL, 0};
    peg_error error;

    (void)operand;
    if (chat_tools_join(&c->tools, &registry, &error) ||
        peg_registry_visible(registry, &tools, &error)) {
        remote_complain_local(NULL, &error);
        return;
    }
    for (size_t i = 0; i < tools.len; i++) {
        const char *description = peg_tool_description(tools.items[i]);

        cli_table_cell(&table, peg__str(peg_tool_name(tools.items[i])), "");
        cli_table_cell(&table, peg__str(chat_is_asked_about(c, tools.items[i]) ? "yes" : "no"), "");
        cli_table_cell(&table, peg__strn(description, strcspn(description, "\n")), "");
    }
    cli_table_print(&table, cli_width(STDOUT_FILENO), c->view.style, &out);
    chat_show(&c->view, stdout, &out);
    cli_table_free(&table);
    peg_tool_list_free(&tools);
}

static peg_status write_turn(const struct chat *c, peg_error *reterr)
{
    const peg_format format = turn_format_of(c->file);
    const peg_turn_write_options options = {
        PEG_TURN_WRITE_OPTIONS_INIT, .format = format == PEG_FORMAT_AUTO ? PEG_FORMAT_YAML : format,
        .inline_below = INT64_MAX, /* all that the conversation needs is in the one file */
    };
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status = peg_turn_write(c->turn, &options, &text, &len, reterr);

    return status ? status : turn_replace_file(c->file, peg__strn(text, len), reterr);
}

static void save_turn(struct chat *c, peg_str name)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_error error;

    if (name.len >= sizeof(c->file) || (!name.len && !c->file[0])) {
        fputs("/save needs the name of a file, such as /save chat.yaml\n", stderr);
        return;
    }
    if (name.len)
        snprintf(c->file, sizeof(c->file), PEG_FMT, PEG_ARG(name));
    if (write_turn(c, &error)) {
        c->exit = remote_complain_local(c->file, &error);
        return;
    }
    peg__buf_puts(&line, "saved ");
    cli_put_safe(&line, peg__str(c->file));
    peg__buf_printf(&line, ": %zu blocks\n", peg_turn_len(c->turn));
    chat_show(&c->view, stderr, &line);
}

static void retry_turn(struct chat *c, peg_str operand)
{
    (void)operand;
    if (peg_turn_count(c->turn, PEG_BLOCKS_MESSAGES))
        run_turn(c);
    else
        fputs("there is nothing to retry yet\n", stderr);
}

static void show_commands(struct chat *c, peg_str operand)
{
    (void)c;
    (void)operand;
    fputs("/tools         the tools of the model, and which of them are asked about\n"
          "/save [FILE]   write the conversation, JSON or YAML, for --resume\n"
          "/retry         ask the model again, without a new message\n"
          "/quit          end, as ^D does\n"
          "^C interrupts an answer or a call. Anything else is a message.\n",
          stderr);
}

static const struct {
    const char *name;
    void (*run)(struct chat *c, peg_str operand);
} commands[] = {
    {"/tools", print_tools},
    {"/save", save_turn},
    {"/retry", retry_turn},
    {"/help", show_commands},
};

static peg_str trim_blanks(peg_str text)
{
    while (text.len && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = peg__str_from(text, 1);
    return text;
}

static void run_command(struct chat *c, peg_str line)
{
    const char *space = memchr(line.ptr, ' ', line.len);
    const peg_str name = peg__strn(line.ptr, space ? (size_t)(space - line.ptr) : line.len);

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (peg__str_is(name, commands[i].name)) {
            commands[i].run(c, trim_blanks(peg__str_from(line, name.len)));
            return;
        }
    }
    fputs("there is no such command; /help lists them, and a space before the / makes it a "
          "message\n",
          stderr);
}

/* ---- the conversation ---- */

static void converse(struct chat *c)
{
    enum chat_line got = CHAT_LINE;
    peg_str line;

    while (got != CHAT_LINE_END && got != CHAT_LINE_FAILED) {
        chat_input_forget_signals(&c->input);
        got = chat_input_line(&c->input, "> ", &line);
        if (got == CHAT_LINE_INTERRUPTED)
            fputs("^D or /quit ends the chat\n", stderr);
        if (got == CHAT_LINE_FAILED)
            c->exit = CLI_NO;
        if (got != CHAT_LINE || !trim_blanks(line).len)
            continue;
        if (peg__str_is(trim_blanks(line), "/quit"))
            return;
        if (line.ptr[0] == '/')
            run_command(c, trim_blanks(line));
        else
            say_to_model(c, trim_blanks(line));
    }
}

static void show_resumed(struct chat *c)
{
    const peg_block *last = peg_turn_last(c->turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT));
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&text, "resumed ");
    cli_put_safe(&text, peg__str(c->file));
    peg__buf_printf(&text, ": %zu blocks\n", peg_turn_len(c->turn));
    if (last) {
        peg__buf_puts(&text, c->view.style->dim);
        cli_put_safe_lines(&text, peg_block_text(last));
        peg__buf_printf(&text, "%s\n", c->view.style->off);
    }
    chat_show(&c->view, stderr, &text);
}

/* CLI_OK, or what to exit with. */
static int load_turn(struct chat *c, const char *path)
{
    const struct turn_common common = {.color = c->options->remote.color};
    struct turn_file file = TURN_FILE;
    peg_error error;
    const peg_status status = turn_load(&common, path, &file, &error);

    if (status) {
        turn_complain(&common, path, &error);
    } else {
        c->turn = file.turn;
        file.turn = NULL;
        snprintf(c->file, sizeof(c->file), "%s", cli_is_stdin(path) ? "" : path);
        show_resumed(c);
    }
    turn_file_free(&file);
    return status ? CLI_UNUSABLE : CLI_OK;
}

static int open_turn(struct chat *c)
{
    const char *system = c->options->system ? c->options->system : "";
    peg_error error;
    int answer = CLI_OK;

    if (c->options->resume)
        answer = load_turn(c, c->options->resume);
    else if (peg_turn_new(&c->turn, &error))
        answer = remote_complain_local(NULL, &error);
    if (answer == CLI_OK && peg_turn_set_system(c->turn, peg__str(system), &error))
        answer = remote_complain_local(NULL, &error);
    return answer;
}

static int chat(const struct cli_command *self, struct chat *c)
{
    int answer = chat_model_open(self, c->options, &c->model);

    if (answer == CLI_OK)
        answer = open_turn(c);
    if (answer == CLI_OK)
        answer = chat_tools_open(c->options, &c->tools);
    if (answer == CLI_OK) {
        converse(c);
        answer = c->input.is_terminal ? CLI_OK : c->exit;
    }
    chat_forget_approved(c);
    chat_tools_close(&c->tools);
    peg_turn_free(c->turn);
    chat_model_close(&c->model);
    return answer;
}

static int run_chat(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct chat_options options = {.model = NULL};
    struct chat c = {.options = &options, .approved = PEG__MAP(PEG_LIMIT_REGISTRY_TOOLS)};
    peg_error error;
    int answer;

    if (!remote_read(&options.remote, &args, take_option))
        return args.exit;
    chat_view_init(&c.view, options.remote.color);
    if (chat_input_open(&c.input, &error))
        return remote_complain_local(NULL, &error);
    answer = chat(self, &c);
    chat_input_close(&c.input);
    return answer;
}

const struct cli_command cli_chat = {
    .name = "chat",
    .usage = "[options] --model NAME [FILE...]",
    .summary = "talk to a model that has tools",
    .about =
        "Asks a model, with the tools of each FILE, a manifest as pegboard-provide(1) has it,\n"
        "and of a gateway: without a FILE, or with --registry or --toolset. Messages are\n"
        "lines of standard input. The model's words go to standard output, calls and\n"
        "questions to standard error.\n\n"
        "A call runs at once if its tool says that it is read-only, idempotent or additive,\n"
        "and not destructive; before others you are asked, and without a terminal they are\n"
        "refused. Text that is neither yes, no nor always refuses the call, and the model\n"
        "reads it. ^C interrupts an answer or a call; ^D ends the chat. /help lists the\n"
        "commands /tools, /save [FILE], /retry and /quit.",
    .options = option_table,
    .max_operands = CHAT_MAX_FILES,
    .notes = "exit status:\n"
             "  0  it ended; without a terminal, the last message was answered\n"
             "  1  without a terminal: the last message was not answered\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard chat --model gpt-4.1 files.yaml\n"
             "  pegboard chat --model qwen3 --url http://127.0.0.1:11434/v1 --toolset weather\n"
             "  pegboard chat --model claude-sonnet-4-5 --resume chat.yaml\n"
             "  echo 'How long is README.md?' | pegboard chat --model gpt-4.1 files.yaml",
    .run = run_chat,
};
