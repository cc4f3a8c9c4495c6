/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fills the catalog of a gateway and asks it, one question after the other.
 *
 *   gateway-catalog ADDRESS fill TOOLSETS TOOLS      so many toolsets of so many tools
 *   gateway-catalog ADDRESS ask N                    N times each: list, get, search
 *   gateway-catalog ADDRESS pages N                  N times the last page of 1,000
 *
 * `ask` and `pages` print one JSON object: the median of each in microseconds.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../help.h"
#include "grpc/client/client.h"
#include "pegboard/v1/registry.grpc.h"

enum { MAX_TOOLS = 10000 };

static const char *const NOUNS[] = {"weather", "orders", "tickets", "files",   "customers",
                                    "prices",  "routes", "models",  "sensors", "invoices"};
static const char *const VERBS[] = {"find",  "list",   "create", "update",  "explain",
                                    "count", "export", "check",  "compare", "archive"};

static struct grpc_channel *channel;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "gateway-catalog: %s: %s\n", what, why);
    exit(1);
}

/* Microseconds that it took. */
static double ask(unsigned method, const void *request)
{
    struct timespec from;
    struct timespec to;
    struct grpc_answer answer;
    peg_error error;

    clock_gettime(CLOCK_MONOTONIC, &from);
    if (grpc_call_wait(channel, &pegboard_v1_registry_methods[method], request, NULL, &answer,
                       &error))
        fail("a call", error.message);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (answer.status.code)
        fail("an answer", answer.status.message.ptr);
    grpc_answer_free(&answer);
    return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
}

/* ---- filling ----------------------------------------------------------------------------------
 */

/* Some 450 bytes, each with a name of its own in it: no two tools share a schema. */
static void print_schema(char *text, size_t size, unsigned toolset, unsigned tool)
{
    snprintf(text, size,
             "{\"type\":\"object\",\"properties\":{\"%s_%u\":{\"type\":\"string\",\"description\":"
             "\"which one of the %s is meant\",\"minLength\":1,\"maxLength\":200},\"limit\":"
             "{\"type\":\"integer\",\"minimum\":1,\"maximum\":%u},\"order\":{\"enum\":[\"asc\","
             "\"desc\"]},\"filter\":{\"type\":\"object\",\"properties\":{\"since\":{\"type\":"
             "\"string\"},\"until\":{\"type\":\"string\"}}}},\"required\":[\"%s_%u\"],"
             "\"additionalProperties\":false}",
             NOUNS[toolset % 10], toolset, NOUNS[toolset % 10], 10 + tool, NOUNS[toolset % 10],
             toolset);
}

struct texts {
    char name[32];
    char description[128];
    char schema[768];
};

static void fill_toolset(unsigned toolset, unsigned n_tools, struct texts *texts)
{
    static Pegboard__V1__Tool tools[MAX_TOOLS];
    static Pegboard__V1__Tool *pointers[MAX_TOOLS];
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;
    char name[48];
    char description[160];

    for (unsigned i = 0; i < n_tools; i++) {
        pegboard__v1__tool__init(&tools[i]);
        snprintf(texts[i].name, sizeof(texts[i].name), "%s_%u", VERBS[(toolset + i) % 10], i);
        snprintf(texts[i].description, sizeof(texts[i].description), "%s the %s of region %u",
                 VERBS[(toolset + i) % 10], NOUNS[toolset % 10], toolset);
        print_schema(texts[i].schema, sizeof(texts[i].schema), toolset, i);
        tools[i].name = texts[i].name;
        tools[i].description = texts[i].description;
        tools[i].input_schema =
            (ProtobufCBinaryData){strlen(texts[i].schema), (uint8_t *)texts[i].schema};
        pointers[i] = &tools[i];
    }
    snprintf(name, sizeof(name), "%s.region%u", NOUNS[toolset % 10], toolset);
    snprintf(description, sizeof(description), "everything about the %s of region %u",
             NOUNS[toolset % 10], toolset);
    request.name = name;
    request.description = description;
    request.tools = pointers;
    request.n_tools = n_tools;
    ask(PEGBOARD_V1_REGISTRY_REGISTER, &request);
}

static void fill(unsigned n_toolsets, unsigned n_tools)
{
    struct texts *texts = calloc(n_tools, sizeof(*texts));

    if (!texts || n_tools > MAX_TOOLS)
        fail("tools", "too many");
    for (unsigned i = 0; i < n_toolsets; i++)
        fill_toolset(i, n_tools, texts);
    free(texts);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, unsigned n)
{
    qsort(times, n, sizeof(*times), compare);
    return times[n / 2];
}

static void ask_all(unsigned n)
{
    static const char *const QUERIES[] = {"weather", "find orders",  "region77",
                                          "invoic",  "ticket since", "everything about the prices"};
    Pegboard__V1__ListToolsetsRequest list = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    Pegboard__V1__GetToolsetRequest get = PEGBOARD__V1__GET_TOOLSET_REQUEST__INIT;
    Pegboard__V1__SearchRequest search = PEGBOARD__V1__SEARCH_REQUEST__INIT;
    double *times[3];
    char name[48];
    char query[64];

    for (size_t i = 0; i < 3; i++)
        if (!(times[i] = calloc(n, sizeof(double))))
            fail("memory", "none");
    list.page_size = 100;
    search.limit = 20;
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s.region%u", NOUNS[i % 10], i % 1000);
        snprintf(query, sizeof(query), "%s", QUERIES[i % 6]);
        get.name = name;
        search.query = query;
        times[0][i] = ask(PEGBOARD_V1_REGISTRY_LIST_TOOLSETS, &list);
        times[1][i] = ask(PEGBOARD_V1_REGISTRY_GET_TOOLSET, &get);
        times[2][i] = ask(PEGBOARD_V1_REGISTRY_SEARCH, &search);
    }
    printf("{\"list_100_us\":%.1f,\"get_us\":%.1f,\"search_us\":%.1f,\"search_p99_us\":%.1f}\n",
           median(times[0], n), median(times[1], n), median(times[2], n),
           times[2][n - 1 - n / 100]);
    for (size_t i = 0; i < 3; i++)
        free(times[i]);
}

/* The last page, which a walk over all names would come to latest. */
static void ask_pages(unsigned n)
{
    Pegboard__V1__ListToolsetsRequest list = PEGBOARD__V1__LIST_TOOLSETS_REQUEST__INIT;
    double *times = calloc(n, sizeof(double));
    char token[] = "tickets.region9999";

    if (!times)
        fail("memory", "none");
    list.page_size = 1000;
    list.page_token = token;
    for (unsigned i = 0; i < n; i++)
        times[i] = ask(PEGBOARD_V1_REGISTRY_LIST_TOOLSETS, &list);
    printf("{\"list_1000_us\":%.1f}\n", median(times, n));
    free(times);
}

int main(int argc, char **argv)
{
    struct net_loop *loop;
    peg_error error;

    bench_help(argc, argv,
               "usage: gateway-catalog ADDRESS fill TOOLSETS [TOOLS]\n"
               "       gateway-catalog ADDRESS ask N\n"
               "       gateway-catalog ADDRESS pages N\n\n"
               "Registers so many toolsets, or asks for pages, toolsets and searches N times and\n"
               "prints how long each took.\n");
    if (argc < 4)
        fail("usage", "gateway-catalog ADDRESS fill TOOLSETS TOOLS | ask N | pages N");
    if (net_loop_new(&loop, &error) || net_loop_start(loop, &error) ||
        grpc_channel_new_wait(loop, peg_cstr(argv[1]), NULL, &channel, &error))
        fail("connecting", error.message);
    if (strcmp(argv[2], "fill") == 0)
        fill((unsigned)atoi(argv[3]), argc > 4 ? (unsigned)atoi(argv[4]) : 1);
    else if (strcmp(argv[2], "pages") == 0)
        ask_pages((unsigned)atoi(argv[3]));
    else
        ask_all((unsigned)atoi(argv[3]));
    grpc_channel_free_wait(channel);
    net_loop_free(loop);
    return 0;
}
