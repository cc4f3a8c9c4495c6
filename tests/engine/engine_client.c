/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs one turn with a real engine, for tests that bring a server:
 *
 *   engine_client --vendor NAME --base-url URL [--model M] [--key K] [--no-stream] [--no-tools]
 *                 [--turn FILE] [--thinking N] [--strict] [--tries N] [--backoff-ms N]
 *                 [--idle-ms N] [--total-ms N] [--deadline-ms N] [--max-iterations N]
 *                 [--extra JSON] [PROMPT]
 *
 * The turn is the prompt, or what the file has (JSON or YAML) and, if one is given, the prompt.
 * The tools are weather(city), which says that it rains there, add(a, b), and broken(), which
 * always fails. Prints a line of JSON for each event that comes from the model or a tool, one for
 * each block of the turn at the end, and one for the outcome. Exits with 0 if that is an ack, 1 if
 * not, 2 if it did not start.
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pegboard/engine.h"
#include "pegboard/runner.h"
#include "pegboard/turn_file.h"
#include "json/json.h"

/* ---- lines of JSON ------------------------------------------------------------------- */

struct line {
    struct peg__buf buf;
    struct peg__out out;
};

static void begin(struct line *line, const char *name, const char *value)
{
    *line = (struct line){.buf = PEG__BUF(1 << 28)};
    line->out.buf = &line->buf;
    peg__out_object(&line->out);
    peg__out_cmember(&line->out, name, value);
}

static void end(struct line *line)
{
    peg__out_end_object(&line->out);
    printf("%s\n", line->buf.status ? "{\"event\":\"no memory\"}" : line->buf.ptr);
    fflush(stdout);
    peg__buf_free(&line->buf);
}

static void put_bool(struct line *line, const char *name, bool truth)
{
    peg__out_key(&line->out, name);
    peg__out_bool(&line->out, truth);
}

static void put_number(struct line *line, const char *name, int64_t number)
{
    peg__out_key(&line->out, name);
    peg__out_integer(&line->out, number);
}

static void put_value(struct line *line, const char *name, const peg_json *value)
{
    if (!value)
        return;
    peg__out_key(&line->out, name);
    peg__out_value(&line->out, value);
}

/* ---- events ---------------------------------------------------------------------------- */

static void put_event(struct line *line, const peg_event *event)
{
    switch (event->kind) {
    case PEG_EVENT_MESSAGE:
    case PEG_EVENT_THOUGHT:
        peg__out_member(&line->out, "delta", event->u.stream.delta);
        put_bool(line, "complete", event->u.stream.is_complete);
        break;
    case PEG_EVENT_TOOL_ARGS:
        peg__out_member(&line->out, "id", event->u.tool_args.call_id);
        peg__out_member(&line->out, "tool", event->u.tool_args.tool);
        peg__out_member(&line->out, "delta", event->u.tool_args.delta);
        peg__out_member(&line->out, "full", event->u.tool_args.full);
        put_number(line, "sequence", event->u.tool_args.sequence);
        break;
    case PEG_EVENT_TOOL_CALL:
        peg__out_member(&line->out, "id", event->u.tool_call.call_id);
        peg__out_member(&line->out, "tool", event->u.tool_call.tool);
        peg__out_member(&line->out, "args", event->u.tool_call.args);
        put_bool(line, "complete", event->u.tool_call.is_complete);
        break;
    case PEG_EVENT_INFERENCE_END:
        put_bool(line, "error", event->u.inference.is_error);
        put_number(line, "calls", (int64_t)event->u.inference.n_calls);
        put_value(line, "result", event->u.inference.result);
        break;
    case PEG_EVENT_LOG:
        peg__out_member(&line->out, "kind", event->u.log.kind);
        peg__out_member(&line->out, "message", event->u.log.message);
        break;
    default:
        break;
    }
}

static void print_event(const peg_event *event, void *user)
{
    struct line line;

    (void)user;
    switch (event->kind) {
    case PEG_EVENT_MESSAGE:
    case PEG_EVENT_THOUGHT:
    case PEG_EVENT_TOOL_ARGS:
    case PEG_EVENT_TOOL_CALL:
    case PEG_EVENT_INFERENCE_START:
    case PEG_EVENT_INFERENCE_END:
    case PEG_EVENT_LOG:
        begin(&line, "event", peg_event_name(event->kind));
        put_event(&line, event);
        end(&line);
        break;
    default:
        break;
    }
}

/* ---- tools ------------------------------------------------------------------------------- */

static void weather(peg_call *call, const peg_json *args, void *user)
{
    const peg_json *city = peg_json_get(args, "city");

    (void)user;
    peg_call_replyf(call, "it rains in %s", city->u.ptr);
}

static void add(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_replyf(call, "%g",
                    peg_json_double(peg_json_get(args, "a")) +
                        peg_json_double(peg_json_get(args, "b")));
}

static void broken(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "it is broken");
}

static const peg_tool_def tool_defs[] = {
    {PEG_TOOL_DEF_INIT, .name = "weather", .description = "the weather in a city",
     .input_schema = "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},"
                     "\"required\":[\"city\"],\"additionalProperties\":false}",
     .run = weather},
    {PEG_TOOL_DEF_INIT, .name = "add", .description = "the sum of two numbers",
     .input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"},"
                     "\"b\":{\"type\":\"number\"}},\"required\":[\"a\",\"b\"],"
                     "\"additionalProperties\":false}",
     .run = add},
    {PEG_TOOL_DEF_INIT, .name = "broken", .description = "fails",
     .input_schema = "{\"type\":\"object\",\"additionalProperties\":false}", .run = broken},
};

enum { N_TOOLS = sizeof(tool_defs) / sizeof(tool_defs[0]) };

/* ---- what is left at the end ---------------------------------------------------------------- */

static peg_str result_text(const peg_record *record)
{
    peg_str bytes = {"", 0};

    if (peg_record_result_kind(record) != PEG_RESULT_ARTIFACT)
        return peg_record_text(record);
    if (peg_artifact_bytes(peg_record_artifact(record), &bytes, NULL))
        return peg_cstr("(not there)");
    return bytes;
}

static void print_blocks(const peg_turn *turn)
{
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *block = peg_turn_at(turn, i);
        const peg_bag *bag = peg_block_metadata(block);
        const peg_record *record = peg_block_record(block);
        struct line line;
        peg_str id;
        const peg_json *value;

        begin(&line, "block", peg_block_kind_name(peg_block_kind_of(block)));
        peg__out_member(&line.out, "text", peg_block_text(block));
        peg__out_member(&line.out, "call_id", peg_block_call_id(block));
        peg__out_member(&line.out, "tool", peg_block_tool(block));
        peg__out_member(&line.out, "args", peg_block_args(block));
        if (record) {
            put_bool(&line, "is_error", peg_record_is_error(record));
            peg__out_member(&line.out, "result", result_text(record));
        }
        put_value(&line, "payload", peg_block_payload(block));
        peg__out_key(&line.out, "metadata");
        peg__out_object(&line.out);
        for (size_t k = 0; peg_bag_at(bag, k, &id, &value); k++) {
            peg__out_key_str(&line.out, id);
            peg__out_value(&line.out, value);
        }
        peg__out_end_object(&line.out);
        end(&line);
    }
}

static void print_outcome(const char *how, unsigned iterations, const peg_error *error)
{
    struct line line;

    begin(&line, "outcome", how);
    put_number(&line, "iterations", iterations);
    if (error) {
        peg__out_cmember(&line.out, "code", error->code ? error->code : "");
        peg__out_cmember(&line.out, "cause", error->cause ? error->cause : "");
        peg__out_cmember(&line.out, "message", error->message);
    }
    end(&line);
}

/* ---- options -----------------------------------------------------------------------------------
 */

struct options {
    peg_model_config engine;
    const char *turn; /* a file, or NULL */
    const char *prompt;
    bool no_tools;
    int max_iterations;
    int64_t deadline_ms;
};

/* Letters of long options without a short form. */
enum {
    OPT_PROVIDER = 'p',
    OPT_BASE_URL = 'u',
    OPT_MODEL = 'm',
    OPT_KEY = 'k',
    OPT_NO_STREAM = 's',
    OPT_NO_TOOLS = 'n',
    OPT_TURN = 't',
    OPT_THINKING = 'h',
    OPT_STRICT = 'S',
    OPT_TRIES = 'r',
    OPT_BACKOFF = 'b',
    OPT_IDLE = 'i',
    OPT_TOTAL = 'T',
    OPT_DEADLINE = 'd',
    OPT_ITERATIONS = 'I',
    OPT_EXTRA = 'x',
};

static const struct option long_options[] = {
    {"provider", required_argument, NULL, OPT_PROVIDER},
    {"base-url", required_argument, NULL, OPT_BASE_URL},
    {"model", required_argument, NULL, OPT_MODEL},
    {"key", required_argument, NULL, OPT_KEY},
    {"no-stream", no_argument, NULL, OPT_NO_STREAM},
    {"no-tools", no_argument, NULL, OPT_NO_TOOLS},
    {"turn", required_argument, NULL, OPT_TURN},
    {"thinking", required_argument, NULL, OPT_THINKING},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"tries", required_argument, NULL, OPT_TRIES},
    {"backoff-ms", required_argument, NULL, OPT_BACKOFF},
    {"idle-ms", required_argument, NULL, OPT_IDLE},
    {"total-ms", required_argument, NULL, OPT_TOTAL},
    {"deadline-ms", required_argument, NULL, OPT_DEADLINE},
    {"max-iterations", required_argument, NULL, OPT_ITERATIONS},
    {"extra", required_argument, NULL, OPT_EXTRA},
    {NULL, 0, NULL, 0},
};

static bool take_number_option(struct options *o, int option)
{
    const int64_t number = optarg ? strtoll(optarg, NULL, 10) : 0;

    switch (option) {
    case OPT_THINKING:
        o->engine.model.thinking_tokens = number;
        return true;
    case OPT_TRIES:
        o->engine.max_tries = (int)number;
        return true;
    case OPT_BACKOFF:
        o->engine.backoff_ms = number;
        return true;
    case OPT_IDLE:
        o->engine.idle_ms = number;
        return true;
    case OPT_TOTAL:
        o->engine.total_ms = number;
        return true;
    case OPT_DEADLINE:
        o->deadline_ms = number;
        return true;
    case OPT_ITERATIONS:
        o->max_iterations = (int)number;
        return true;
    default:
        return false;
    }
}

static bool take_option(struct options *o, int option)
{
    switch (option) {
    case OPT_PROVIDER:
        return peg_vendor_from_name(peg_cstr(optarg), &o->engine.vendor, NULL) == PEG_OK;
    case OPT_BASE_URL:
        o->engine.base_url = optarg;
        return true;
    case OPT_MODEL:
        o->engine.model.model = optarg;
        return true;
    case OPT_KEY:
        o->engine.api_key = optarg;
        return true;
    case OPT_NO_STREAM:
        o->engine.no_stream = true;
        return true;
    case OPT_NO_TOOLS:
        o->no_tools = true;
        return true;
    case OPT_TURN:
        o->turn = optarg;
        return true;
    case OPT_STRICT:
        o->engine.model.strict = true;
        return true;
    case OPT_EXTRA:
        o->engine.model.extra = optarg;
        return true;
    default:
        return take_number_option(o, option);
    }
}

static bool read_options(int argc, char **argv, struct options *o)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) // NOLINT
        if (!take_option(o, option))
            return false;
    if (!o->engine.model.model)
        o->engine.model.model = "test-model";
    if (!o->engine.api_key)
        o->engine.api_key_env = "";
    if (optind < argc)
        o->prompt = argv[optind];
    else
        o->prompt = o->turn ? NULL : "What is the weather in Oslo?";
    return o->engine.vendor != PEG_VENDOR_NEUTRAL;
}

/* ---- the run
 * -------------------------------------------------------------------------------------- */

static peg_status run_turn(const struct options *o, peg_model *engine, peg_turn *turn,
                           peg_outcome *ret_outcome, peg_error *reterr)
{
    peg_tool *tools[N_TOOLS] = {NULL};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .tools = tools, .on_event = print_event};
    peg_runner *runner = NULL;
    peg_ctx *ctx = NULL;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < N_TOOLS && !status; i++)
        status = peg_tool_new(&tool_defs[i], &tools[i], reterr);
    config.n_tools = o->no_tools ? 0 : N_TOOLS;
    config.loop.engine = peg_model_engine(engine);
    config.loop.call.settings.max_iterations = o->max_iterations;
    if (!status)
        status = peg_runner_new(&config, &runner, reterr);
    if (!status && o->deadline_ms)
        status = peg_ctx_with_deadline(NULL, o->deadline_ms, &ctx, reterr);
    if (!status && peg_runner_run(runner, ctx, turn, ret_outcome, reterr))
        status = PEG_OK; /* the outcome says how it ended */
    peg_ctx_unref(ctx);
    peg_runner_unref(runner);
    for (size_t i = 0; i < N_TOOLS; i++)
        peg_tool_unref(tools[i]);
    return status;
}

/* A whole file; freed with free(). NULL: it cannot be read. */
static char *read_file(const char *path, size_t *ret_len)
{
    enum { MAX = 1 << 24 };
    FILE *file = fopen(path, "re");
    char *text = malloc(MAX);

    if (file && text)
        *ret_len = fread(text, 1, MAX, file);
    if (!file) {
        free(text);
        return NULL;
    }
    fclose(file);
    return text;
}

static peg_status read_turn(const char *path, peg_turn **ret_turn, peg_error *reterr)
{
    size_t len = 0;
    char *text = read_file(path, &len);
    peg_status status;

    if (!text) {
        *reterr = (peg_error){.status = PEG_EIO, .code = "E_IO", .cause = "", .message = "no file"};
        return PEG_EIO;
    }
    status = peg_turn_read((peg_str){text, len}, NULL, ret_turn, reterr);
    free(text);
    return status;
}

static peg_status open_turn(const struct options *o, peg_turn **ret_turn, peg_error *reterr)
{
    peg_status status =
        o->turn ? read_turn(o->turn, ret_turn, reterr) : peg_turn_new(ret_turn, reterr);

    if (!status && o->prompt)
        status = peg_turn_add_text(*ret_turn, PEG_BLOCK_USER, peg_cstr(o->prompt), reterr);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.engine = {PEG_MODEL_CONFIG_INIT}};
    peg_model *engine = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error error;
    peg_status status;

    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: engine_client --provider NAME --base-url URL [OPTIONS] [PROMPT]\n");
        return 2;
    }
    status = peg_model_new(&options.engine, &engine, &error);
    if (!status)
        status = open_turn(&options, &turn, &error);
    if (!status)
        status = run_turn(&options, engine, turn, &outcome, &error);
    if (status) {
        print_outcome("not started", 0, &error);
    } else {
        print_blocks(turn);
        print_outcome(peg_turn_end_name(outcome.end), outcome.iterations,
                      outcome.end == PEG_END_ACK ? NULL : &outcome.error);
    }
    peg_turn_free(turn);
    peg_model_unref(engine);
    if (status)
        return 2;
    return outcome.end == PEG_END_ACK ? 0 : 1;
}
