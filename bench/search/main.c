/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Searching, in this process and over RPCs. Figures are JSON objects, one a line.
 *
 *   search-bench quality DATA            at which rank the tool of each question is: recall, nDCG
 *   search-bench tokens DATA             our tokens of each tool, then of each question
 *   search-bench speed DATA [TOOLSETS]   what a search takes by itself, and the index
 *   search-bench fill DATA ADDRESS [TOOLSETS]   registers so many with a gateway
 *   search-bench ask DATA ADDRESS words|sentences [N]   asks it, one after the other
 *
 * DATA has tools.jsonl and queries.jsonl.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../help.h"
#include "base/text/str.h"
#include "corpus.h"
#include "gateway/search/internal.h"
#include "grpc/client/client.h"
#include "pegboard/v1/registry.grpc.h"

enum { TOP = 10, MANY = 10000, ASKED = 2000 };

static struct bench_corpus corpus;

/* ---- a catalog ---------------------------------------------------------------------------------
 */

static struct gw_toolset *make_toolset(const Pegboard__V1__RegisterRequest *request)
{
    const struct gw_toolset_dates dates = {.owner = PEG_LIT("local"), .revision = 1};
    struct gw_toolset *toolset = NULL;
    peg_error error;

    if (gw_toolset_make(request, &dates, &toolset, &error))
        bench_fail(request->name, error.message);
    return toolset;
}

static int compare_toolsets(const void *a, const void *b)
{
    return strcmp((*(struct gw_toolset *const *)a)->name.ptr,
                  (*(struct gw_toolset *const *)b)->name.ptr);
}

static struct gw_search_index *empty_index(void)
{
    struct gw_language language;

    if (!gw_language_find("english", &language))
        bench_fail("english", "there is no such language");
    return gw_search_index_new(language);
}

static void index_toolsets(struct gw_snapshot *snapshot, struct gw_toolset **list, size_t n)
{
    struct gw_search_index *empty = empty_index();

    qsort(list, n, sizeof(*list), compare_toolsets);
    *snapshot = (struct gw_snapshot){.toolsets = list, .n = n};
    snapshot->index =
        gw_search_index_next(empty, 0, (struct gw_toolsets){.n = 0}, (struct gw_toolsets){list, n});
    gw_search_index_unref(empty);
    if (!snapshot->index)
        bench_fail("index", "no memory");
}

static struct gw_toolset **make_catalog(size_t n, bool is_real)
{
    struct gw_toolset **list = calloc(n + 1, sizeof(*list));

    if (!list)
        bench_fail("toolsets", "no memory");
    for (size_t i = 0; i < n; i++)
        list[i] = make_toolset(is_real ? bench_request_of(&corpus.tools[i])
                                       : bench_request_made(&corpus, (unsigned)i));
    return list;
}

static void free_catalog(struct gw_snapshot *snapshot, struct gw_toolset **list)
{
    gw_search_index_unref(snapshot->index);
    for (size_t i = 0; i < snapshot->n; i++)
        gw_toolset_unref(list[i]);
    free(list);
}

/* ---- quality -----------------------------------------------------------------------------------
 */

/* The place of the tool among the first ten, from 0; TOP: none. */
static size_t rank_of(const struct gw_snapshot *snapshot, const struct bench_pair *question)
{
    const struct gw_search_query query = {.text = peg__str(question->first), .limit = TOP};
    struct gw_search_result result = {.n = 0};
    struct peg__arena arena = {0};
    size_t rank = 0;

    if (gw_search(snapshot, &query, &arena, &result, NULL))
        bench_fail("search", "no memory");
    while (rank < result.n && strcmp(result.hits[rank].toolset->name.ptr, question->second) != 0)
        rank++;
    rank = rank < result.n ? rank : TOP;
    peg__arena_free(&arena);
    return rank;
}

static void measure_quality(void)
{
    struct gw_toolset **list = make_catalog(corpus.n_tools, true);
    const double n = (double)corpus.n_questions / 100;
    struct gw_snapshot snapshot;
    double within[TOP + 1] = {0};
    double gain = 0;

    index_toolsets(&snapshot, list, corpus.n_tools);
    for (size_t i = 0; i < corpus.n_questions; i++) {
        const size_t rank = rank_of(&snapshot, &corpus.questions[i]);

        for (size_t k = rank + 1; k <= TOP; k++)
            within[k]++;
        gain += rank < TOP ? 1 / log2((double)rank + 2) : 0;
    }
    printf("{\"recall_1\":%.2f,\"recall_5\":%.2f,\"recall_10\":%.2f,\"ndcg_10\":%.2f}\n",
           within[1] / n, within[5] / n, within[TOP] / n, gain / n);
    free_catalog(&snapshot, list);
}

/* One line of tokens for each text. */
static void print_tokens(struct gw_stemmer *stemmer, const char *text)
{
    struct gw_keywords tokens = {.rest = peg__str(text)};
    peg_str token;

    while (gw_next_keyword(&tokens, &token)) {
        const peg_str stem = gw_stemmer_stem(stemmer, token);

        if (stem.len)
            printf("%.*s ", PEG_ARG(stem));
    }
}

static void measure_tokens(void)
{
    struct gw_language language;
    struct gw_stemmer *stemmer;

    if (!gw_language_find("english", &language) || !(stemmer = gw_stemmer_new(language)))
        bench_fail("english", "no stemmer");
    for (size_t i = 0; i < corpus.n_tools; i++) {
        print_tokens(stemmer, corpus.tools[i].first);
        print_tokens(stemmer, corpus.tools[i].second);
        putchar('\n');
    }
    for (size_t i = 0; i < corpus.n_questions; i++) {
        print_tokens(stemmer, corpus.questions[i].first);
        putchar('\n');
    }
    gw_stemmer_free(stemmer);
}

/* ---- speed -------------------------------------------------------------------------------------
 */

static double now_us(clockid_t clock)
{
    struct timespec at;

    clock_gettime(clock, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what, double *times, size_t n)
{
    qsort(times, n, sizeof(*times), compare_times);
    printf("{\"what\":\"%s\",\"n\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n", what, n,
           times[n / 2], times[n * 99 / 100], times[n - 1]);
    fflush(stdout);
}

/* Words of the tools, one or two of them. */
static const char *words_of(size_t i)
{
    static char text[128];

    if (i % 2)
        return corpus.words[i * 7919 % corpus.n_words];
    snprintf(text, sizeof(text), "%s %s", corpus.words[i * 104729 % corpus.n_words],
             corpus.words[i * 15485863 % corpus.n_words]);
    return text;
}

static const char *text_of(bool is_sentence, size_t i)
{
    return is_sentence ? corpus.questions[i % corpus.n_questions].first : words_of(i);
}

/* The processor's time: others may be using the cores. The least of three. */
static void measure_searches(const struct gw_snapshot *snapshot, bool is_sentence)
{
    static double times[ASKED];

    for (size_t i = 0; i < ASKED; i++) {
        const struct gw_search_query query = {.text = peg__str(text_of(is_sentence, i)),
                                              .limit = 100};

        for (unsigned round = 0; round < 3; round++) {
            struct gw_search_result result = {.n = 0};
            struct peg__arena arena = {0};
            const double start = now_us(CLOCK_THREAD_CPUTIME_ID);
            double time;

            if (gw_search(snapshot, &query, &arena, &result, NULL))
                bench_fail("search", "no memory");
            time = now_us(CLOCK_THREAD_CPUTIME_ID) - start;
            times[i] = round == 0 || time < times[i] ? time : times[i];
            peg__arena_free(&arena);
        }
    }
    print_times(is_sentence ? "sentences" : "words", times, ASKED);
}

static struct gw_search_index *merge_parts(struct gw_search_index *index, struct gw_toolsets now)
{
    struct gw_search_index *next;
    struct gw_segment *merged;
    unsigned first;

    if (!gw_search_index_wants_merge(index, &first))
        return index;
    merged = gw_search_index_merge(index, first, gw_search_index_n_parts(index));
    next = gw_search_index_replace(index, first, gw_search_index_n_parts(index), merged, now);
    gw_segment_unref(merged);
    gw_search_index_unref(index);
    return next;
}

/* One toolset after the other, with the merges that a worker would make. */
static struct gw_search_index *grow_index(struct gw_toolset **list, size_t n)
{
    struct gw_toolset **sorted = calloc(n, sizeof(*sorted));
    struct gw_toolset **before = calloc(n, sizeof(*before));
    struct gw_search_index *index = empty_index();
    double longest = 0;

    for (size_t i = 0; sorted && before && index && i < n; i++) {
        struct gw_search_index *next;
        double start = now_us(CLOCK_THREAD_CPUTIME_ID);
        size_t at = i;

        for (; at > 0 && compare_toolsets(&sorted[at - 1], &list[i]) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = list[i];
        next = gw_search_index_next(index, 0, (struct gw_toolsets){before, i},
                                    (struct gw_toolsets){sorted, i + 1});
        gw_search_index_unref(index);
        start = now_us(CLOCK_THREAD_CPUTIME_ID) - start;
        longest = start > longest ? start : longest;
        index = merge_parts(next, (struct gw_toolsets){sorted, i + 1});
        memcpy(before, sorted, (i + 1) * sizeof(*sorted));
    }
    printf("{\"what\":\"the longest registration\",\"us\":%.0f}\n", longest);
    free(before);
    free(sorted);
    return index;
}

static void measure_speed(size_t n)
{
    struct gw_toolset **list = make_catalog(n, false);
    struct gw_snapshot snapshot;
    struct gw_search_index *grown;
    double start = now_us(CLOCK_THREAD_CPUTIME_ID);

    grown = grow_index(list, n);
    printf("{\"what\":\"index, one by one\",\"ms\":%.0f,\"parts\":%u}\n",
           (now_us(CLOCK_THREAD_CPUTIME_ID) - start) / 1e3, gw_search_index_n_parts(grown));
    start = now_us(CLOCK_THREAD_CPUTIME_ID);
    index_toolsets(&snapshot, list, n);
    printf("{\"what\":\"index, at once\",\"ms\":%.0f,\"kib\":%zu}\n",
           (now_us(CLOCK_THREAD_CPUTIME_ID) - start) / 1e3,
           gw_search_index_bytes(snapshot.index) / 1024);
    measure_searches(&snapshot, false);
    measure_searches(&snapshot, true);
    gw_search_index_unref(snapshot.index);
    snapshot.index = grown;
    printf("{\"what\":\"by the index that grew\"}\n");
    measure_searches(&snapshot, true);
    free_catalog(&snapshot, list);
}

/* ---- RPCs --------------------------------------------------------------------------------------
 */

static struct grpc_channel *channel;
static struct net_loop *loop;

static void connect_to(const char *address)
{
    peg_error error;

    if (net_loop_new(&loop, &error) || net_loop_start(loop, &error) ||
        grpc_channel_new_wait(loop, peg_cstr(address), NULL, &channel, &error))
        bench_fail(address, error.message);
}

static void disconnect(void)
{
    grpc_channel_free_wait(channel);
    net_loop_free(loop);
}

static double call(unsigned method, const void *request)
{
    const double start = now_us(CLOCK_MONOTONIC);
    struct grpc_answer answer;
    peg_error error;
    double time;

    if (grpc_call_wait(channel, &pegboard_v1_registry_methods[method], request, NULL, &answer,
                       &error))
        bench_fail("a call", error.message);
    time = now_us(CLOCK_MONOTONIC) - start;
    if (answer.status.code)
        bench_fail("an answer", answer.status.message.ptr);
    grpc_answer_free(&answer);
    return time;
}

static void fill(const char *address, size_t n)
{
    connect_to(address);
    for (size_t i = 0; i < n; i++)
        call(PEGBOARD_V1_REGISTRY_REGISTER, bench_request_made(&corpus, (unsigned)i));
    disconnect();
}

static void ask(const char *address, bool is_sentence, size_t n)
{
    Pegboard__V1__SearchRequest search = PEGBOARD__V1__SEARCH_REQUEST__INIT;
    double *times = calloc(n + 1, sizeof(*times));
    char query[8192];

    if (!times)
        bench_fail("times", "no memory");
    connect_to(address);
    search.limit = 20;
    search.query = query;
    for (size_t i = 0; i < n; i++) {
        snprintf(query, sizeof(query), "%s", text_of(is_sentence, i));
        times[i] = call(PEGBOARD_V1_REGISTRY_SEARCH, &search);
    }
    disconnect();
    print_times(is_sentence ? "sentences" : "words", times, n);
    free(times);
}

static size_t number_at(char **argv, int argc, int at, size_t otherwise)
{
    return argc > at ? strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    bench_help(
        argc, argv,
        "usage: search-bench quality DATA            ranks of the right tools\n"
        "       search-bench tokens DATA             our tokens of tools and questions\n"
        "       search-bench speed DATA [TOOLSETS]   what a search takes by itself\n"
        "       search-bench fill DATA ADDRESS [TOOLSETS]\n"
        "                                            registers so many with a gateway\n"
        "       search-bench ask DATA ADDRESS words|sentences [N]\n"
        "                                            asks it, one after the other\n\n"
        "DATA is a folder with tools.jsonl and queries.jsonl. Figures are JSON, one a line.\n");
    if (argc > 2)
        bench_corpus_read(argv[2], &corpus);
    if (strcmp(what, "quality") == 0)
        measure_quality();
    else if (strcmp(what, "tokens") == 0)
        measure_tokens();
    else if (strcmp(what, "speed") == 0)
        measure_speed(number_at(argv, argc, 3, MANY));
    else if (strcmp(what, "fill") == 0 && argc > 3)
        fill(argv[3], number_at(argv, argc, 4, MANY));
    else if (strcmp(what, "ask") == 0 && argc > 4)
        ask(argv[3], strcmp(argv[4], "sentences") == 0, number_at(argv, argc, 5, ASKED));
    else
        bench_fail("usage", "quality|tokens|speed DATA, fill|ask DATA ADDRESS; see main.c");
    return 0;
}
