/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The request that a vendor would be sent for a turn in a file, for tests that judge requests:
 *
 *   render_client --vendor NAME --model M [--stream] [--strict] [--json-schema] [--plain]
 *                 [--max-tokens N] [--thinking N] [--temperature X] [--top-p X] [--reasoning WORD]
 *                 [--stop TEXT] FILE
 *
 * The definitions are the turn's. Exits with 0, 1 if there is no such request, 2 if it was asked in
 * the wrong way.
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "pegboard/engine.h"
#include "pegboard/turn_file.h"

enum { MAX_FILE = 1 << 20 };

struct options {
    peg_vendor vendor;
    peg_model_options model;
    double temperature;
    double top_p;
    const char *stop[2];
    bool is_streaming;
};

static const struct option long_options[] = {
    {"provider", required_argument, NULL, 'p'},
    {"model", required_argument, NULL, 'm'},
    {"stream", no_argument, NULL, 's'},
    {"strict", no_argument, NULL, 'S'},
    {"json-schema", no_argument, NULL, 'j'},
    {"plain", no_argument, NULL, 'P'},
    {"max-tokens", required_argument, NULL, 'n'},
    {"thinking", required_argument, NULL, 't'},
    {"temperature", required_argument, NULL, 'T'},
    {"top-p", required_argument, NULL, 'o'},
    {"reasoning", required_argument, NULL, 'r'},
    {"stop", required_argument, NULL, 'x'},
    {NULL, 0, NULL, 0},
};

static bool take_value(struct options *o, int option)
{
    switch (option) {
    case 'p':
        return peg_vendor_from_name(peg_cstr(optarg), &o->vendor, NULL) == PEG_OK;
    case 'm':
        o->model.model = optarg;
        return true;
    case 'n':
        o->model.max_tokens = strtoll(optarg, NULL, 10);
        return true;
    case 't':
        o->model.thinking_tokens = strtoll(optarg, NULL, 10);
        return true;
    case 'T':
        o->temperature = strtod(optarg, NULL);
        o->model.temperature = &o->temperature;
        return true;
    case 'o':
        o->top_p = strtod(optarg, NULL);
        o->model.top_p = &o->top_p;
        return true;
    case 'r':
        o->model.reasoning = optarg;
        return true;
    case 'x':
        o->stop[0] = optarg;
        o->model.stop = o->stop;
        return true;
    default:
        return false;
    }
}

static bool take_option(struct options *o, int option)
{
    switch (option) {
    case 's':
        o->is_streaming = true;
        return true;
    case 'S':
        o->model.strict = true;
        return true;
    case 'j':
        o->model.json_schema = true;
        return true;
    case 'P':
        o->model.results = PEG_RESULTS_PLAIN;
        return true;
    default:
        return take_value(o, option);
    }
}

static bool read_options(int argc, char **argv, struct options *o)
{
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) // NOLINT
        if (!take_option(o, option))
            return false;
    return o->vendor != PEG_VENDOR_NEUTRAL && o->model.model && optind + 1 == argc;
}

static peg_status read_turn(const char *path, peg_turn **ret_turn, peg_error *reterr)
{
    static char text[MAX_FILE];
    FILE *file = fopen(path, "re");
    const size_t len = file ? fread(text, 1, sizeof(text), file) : 0;

    if (file)
        fclose(file);
    return peg_turn_read((peg_str){text, len}, NULL, ret_turn, reterr);
}

int main(int argc, char **argv)
{
    struct options options = {.model = {PEG_MODEL_OPTIONS_INIT}};
    peg_turn *turn = NULL;
    char *body = NULL;
    peg_error error;
    peg_status status;

    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: render_client --provider NAME --model M [OPTIONS] FILE\n");
        return 2;
    }
    status = read_turn(argv[optind], &turn, &error);
    if (!status)
        status = peg_engine_render(options.vendor, &options.model, turn, NULL, options.is_streaming,
                                   &body, NULL, &error);
    if (status)
        fprintf(stderr, "%s: %s\n", error.code, error.message);
    else
        printf("%s\n", body);
    peg_free(body);
    peg_turn_free(turn);
    return status ? 1 : 0;
}
