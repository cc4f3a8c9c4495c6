/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../help.h"
#include "bench.h"

double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void must(peg_status status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "core-bench: %s: %s\n", what, peg_status_name(status));
    exit(1);
}

double fastest(const struct bench *bench, unsigned n, void (*body)(void *user), void *user)
{
    const double end = now_ns() + bench->seconds * 1e9;
    double best = 1e300;

    do {
        const double start = now_ns();
        double each;

        for (unsigned i = 0; i < n; i++)
            body(user);
        each = (now_ns() - start) / n;
        best = each < best ? each : best;
    } while (now_ns() < end);
    return best;
}

void report(const struct bench *bench, const char *group, const char *name, double value,
            const char *unit)
{
    printf("  %-52s %12.*f %s\n", name, value < 100 ? 2 : 0, value, unit);
    fflush(stdout);
    if (bench->json)
        fprintf(bench->json, "{\"group\":\"%s\",\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n",
                group, name, value, unit);
}

/* ---- tools ---------------------------------------------------------------------- */

const char *const call_args =
    "{\"query\":\"weather in Rome tomorrow\",\"limit\":10,\"tags\":[\"travel\",\"plan\"],"
    "\"exact\":true,\"from\":{\"day\":14,\"month\":11}}";

static const char *const schema =
    "{\"type\":\"object\",\"required\":[\"query\"],\"properties\":{"
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":8},"
    "\"exact\":{\"type\":\"boolean\"},"
    "\"from\":{\"type\":\"object\",\"properties\":{\"day\":{\"type\":\"integer\"},"
    "\"month\":{\"type\":\"integer\"}}}}}";

static void answer(peg_call *call, const peg_json *args, void *user)
{
    const peg_str ok = {"ok", 2};

    (void)args;
    (void)user;
    peg_call_reply(call, ok);
}

peg_tool **make_tools(size_t n)
{
    peg_tool **tools = calloc(n, sizeof(*tools));
    peg_schema_cache *cache = NULL;
    char name[32];

    must(tools ? PEG_OK : PEG_ENOMEM, "tools");
    must(peg_schema_cache_new(64 << 20, &cache, NULL), "cache");
    for (size_t i = 0; i < n; i++) {
        const peg_tool_def def = {
            PEG_TOOL_DEF_INIT,      .name = name,  .description = "finds what there is to find",
            .input_schema = schema, .run = answer, .schema_cache = cache};

        snprintf(name, sizeof(name), "tool_%zu", i);
        must(peg_tool_new(&def, &tools[i], NULL), "tool");
    }
    peg_schema_cache_free(cache);
    return tools;
}

void free_tools(peg_tool **tools, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peg_tool_unref(tools[i]);
    free(tools);
}

/* ---- main ----------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: core-bench [--quick] [--json FILE]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct bench bench = {.seconds = 1.0};

    bench_help(argc, argv,
               "usage: core-bench [--quick] [--json FILE]\n\n"
               "Measures calls, registries, definitions, turns and typed tools in one process.\n\n"
               "  --quick      short rounds, to see that it runs\n"
               "  --json FILE  the figures as lines of JSON\n");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench.seconds = 0.05;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            bench.json = fopen(argv[++i], "w");
        else
            return usage();
    }
    bench_calls(&bench);
    bench_registries(&bench);
    bench_definitions(&bench);
    bench_turns(&bench);
    bench_typed(&bench);
    return bench.json && fclose(bench.json) ? 1 : 0;
}
