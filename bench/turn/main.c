/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../help.h"
#include "bench.h"

struct bench {
    double seconds;
    FILE *json;
    peg_turn *turn;
    peg_json_doc *doc; /* the turn as a document */
    char *json_text;
    size_t json_len;
    char *yaml_text;
    size_t yaml_len;
    struct events *events;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(peg_status status, const peg_error *error, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "turn-bench: %s: %s\n", what, error->message);
    exit(1);
}

/* ---- the turn --------------------------------------------------------------------- */

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

static const char *const schema =
    "{\"type\":\"object\",\"required\":[\"query\"],\"properties\":{"
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":8}}}";

static const char *const args =
    "{\"query\":\"open orders of the last week, by customer\",\"limit\":50,"
    "\"tags\":[\"orders\",\"customers\",\"week 46\"]}";

static const char *const words =
    "There are three open orders: two of them wait for payment since Monday, and the third was "
    "shipped yesterday but has not arrived. Shall I write to the customers?\n\nI would begin with "
    "the oldest one.";

/* A conversation of `n` rounds: a question, a call, its result, an answer. */
struct talk {
    unsigned n;
    unsigned at;
};

static peg_status say(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct talk *talk = user;
    peg_turn *turn = peg_dispatch_turn(dispatch);
    char id[24];

    if (talk->at++ >= talk->n)
        return PEG_OK;
    snprintf(id, sizeof(id), "call_%u", talk->at);
    if (peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr(words), reterr))
        return PEG_ENOMEM;
    return peg_turn_add_call(turn, peg_cstr(id), peg_cstr("tool_7"), peg_cstr(args), reterr);
}

static peg_turn *make_turn(unsigned n_rounds, unsigned n_tools)
{
    peg_tool **tools = calloc(n_tools, sizeof(*tools));
    struct talk talk = {.n = n_rounds};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .n_tools = n_tools,
                                .loop.engine = {say, &talk},
                                .loop.call.settings.max_iterations = -1};
    peg_runner *runner;
    peg_turn *turn;
    peg_error e;

    for (unsigned i = 0; i < n_tools; i++) {
        char name[24];
        const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = name,
                                  .description = "Finds orders and customers by words.",
                                  .input_schema = schema, .run = answer};

        snprintf(name, sizeof(name), "tool_%u", i);
        must(peg_tool_new(&def, &tools[i], &e), &e, "tool");
    }
    config.tools = tools;
    must(peg_runner_new(&config, &runner, &e), &e, "runner");
    must(peg_turn_new(&turn, &e), &e, "turn");
    must(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("How many orders?"), &e), &e, "turn");
    must(peg_runner_run(runner, NULL, turn, NULL, &e), &e, "run");
    peg_runner_unref(runner);
    for (unsigned i = 0; i < n_tools; i++)
        peg_tool_unref(tools[i]);
    free(tools);
    return turn;
}

/* ---- what is measured ----------------------------------------------------------------- */

static void write_as(struct bench *b, peg_format format)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .format = format};
    char *text;
    peg_error e;

    must(peg_turn_write(b->turn, &options, &text, NULL, &e), &e, "write");
    peg_free(text);
}

static void turn_write_json(struct bench *b)
{
    write_as(b, PEG_FORMAT_JSON);
}

static void turn_write_yaml(struct bench *b)
{
    write_as(b, PEG_FORMAT_YAML);
}

static void read_text(const char *text, size_t len)
{
    const peg_str s = {text, len};
    peg_turn *turn;
    peg_error e;

    must(peg_turn_read(s, NULL, &turn, &e), &e, "read");
    peg_turn_free(turn);
}

static void turn_read_json(struct bench *b)
{
    read_text(b->json_text, b->json_len);
}

static void turn_read_yaml(struct bench *b)
{
    read_text(b->yaml_text, b->yaml_len);
}

static void json_write(struct bench *b)
{
    char *text;
    peg_error e;

    must(peg_json_write(peg_json_root(b->doc), PEG_JSON_COMPACT, &text, NULL, &e), &e, "write");
    peg_free(text);
}

static void json_parse(struct bench *b)
{
    const peg_str s = {b->json_text, b->json_len};
    peg_json_doc *doc;
    peg_error e;

    must(peg_json_parse(s, NULL, &doc, &e), &e, "parse");
    peg_json_doc_free(doc);
}

static void yaml_write(struct bench *b)
{
    char *text;
    peg_error e;

    must(peg_yaml_write(peg_json_root(b->doc), &text, NULL, &e), &e, "write");
    peg_free(text);
}

static void yaml_parse(struct bench *b)
{
    const peg_str s = {b->yaml_text, b->yaml_len};
    peg_json_doc *doc;
    peg_error e;

    must(peg_yaml_parse(s, NULL, &doc, &e), &e, "parse");
    peg_json_doc_free(doc);
}

static void events_parse(struct bench *b)
{
    const peg_str s = {b->yaml_text, b->yaml_len};

    libyaml_parse(s);
}

static void events_emit(struct bench *b)
{
    libyaml_emit(b->events);
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void measure(struct bench *b, const char *name, void (*body)(struct bench *b), size_t len)
{
    const double end = now_ns() + b->seconds * 1e9;
    double best = 1e300;
    double rate;

    do {
        const double start = now_ns();
        double took;

        body(b);
        took = now_ns() - start;
        best = took < best ? took : best;
    } while (now_ns() < end);
    rate = (double)len * 1e3 / best;
    printf("  %-52s %12.0f MB/s\n", name, rate);
    fflush(stdout);
    if (b->json)
        fprintf(b->json, "{\"group\":\"turn\",\"name\":\"%s\",\"value\":%.3f,\"unit\":\"MB/s\"}\n",
                name, rate);
}

static void open_bench(struct bench *b)
{
    const peg_turn_write_options yaml = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_YAML};
    peg_error e;

    b->turn = make_turn(500, 100);
    must(peg_turn_to_json(b->turn, NULL, &b->doc, &e), &e, "document");
    must(peg_turn_write(b->turn, NULL, &b->json_text, &b->json_len, &e), &e, "JSON");
    must(peg_turn_write(b->turn, &yaml, &b->yaml_text, &b->yaml_len, &e), &e, "YAML");
    b->events = libyaml_events((peg_str){b->yaml_text, b->yaml_len});
}

static void run_all(struct bench *b)
{
    printf("a turn of %zu blocks and 100 definitions as text: %zu KB of JSON, %zu KB of YAML\n",
           peg_turn_len(b->turn), b->json_len / 1000, b->yaml_len / 1000);
    measure(b, "turn to JSON", turn_write_json, b->json_len);
    measure(b, "our JSON writer on the same document", json_write, b->json_len);
    measure(b, "turn from JSON", turn_read_json, b->json_len);
    measure(b, "our JSON parser on the same text", json_parse, b->json_len);
    measure(b, "turn to YAML", turn_write_yaml, b->yaml_len);
    measure(b, "our YAML writer on the same document", yaml_write, b->yaml_len);
    measure(b, "libyaml's emitter on the same events", events_emit, libyaml_emit(b->events));
    measure(b, "turn from YAML", turn_read_yaml, b->yaml_len);
    measure(b, "our YAML reader on the same text", yaml_parse, b->yaml_len);
    measure(b, "libyaml's parser on the same text", events_parse, b->yaml_len);
}

static void close_bench(struct bench *b)
{
    libyaml_free(b->events);
    peg_free(b->json_text);
    peg_free(b->yaml_text);
    peg_json_doc_free(b->doc);
    peg_turn_free(b->turn);
}

int main(int argc, char **argv)
{
    struct bench b = {.seconds = 1.0};

    bench_help(argc, argv,
               "usage: turn-bench [--quick] [--json FILE]\n\n"
               "Measures reading and writing turns, and runs of them.\n\n"
               "  --quick      short rounds, to see that it runs\n"
               "  --json FILE  the figures as lines of JSON\n");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b.seconds = 0.05;
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            b.json = fopen(argv[++i], "w");
        } else {
            fprintf(stderr, "usage: turn-bench [--quick] [--json FILE]\n");
            return 2;
        }
    }
    open_bench(&b);
    run_all(&b);
    close_bench(&b);
    return b.json && fclose(b.json) ? 1 : 0;
}
