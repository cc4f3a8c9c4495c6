/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Searching a catalog of 10,000 toolsets with 1 to 10 tools each: what a query takes, what the
 * index takes to make, at once and one toolset after the other, and its memory.
 *
 *   search_bench [TOOLSETS]
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gateway/search_internal.h"

#include "../../tests/gateway/words.h"

enum { RUNS = 200 };

static double now_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at); /* others may be using the cores */
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const struct gw_snapshot *snapshot, const char *text)
{
    const struct gw_search_query query = {.text = peg__str(text), .limit = 100};
    struct gw_search_result result = {.n = 0};
    double times[RUNS];

    for (unsigned i = 0; i < RUNS; i++) {
        struct peg__arena arena = {0};
        const double start = now_us();

        if (gw_search(snapshot, &query, &arena, &result, NULL))
            abort();
        times[i] = now_us() - start;
        peg__arena_free(&arena);
    }
    qsort(times, RUNS, sizeof(times[0]), compare_times);
    printf("%-28s %8.0f us  p99 %8.0f us  %6zu found\n", text, times[RUNS / 2],
           times[RUNS * 99 / 100], result.total);
}

/* One toolset after the other, with the merges that a worker would make. */
static struct gw_search_index *grow(struct gw_toolset **list, size_t n)
{
    struct gw_toolset **sorted = calloc(n, sizeof(*sorted));
    struct gw_toolset **before = calloc(n, sizeof(*before));
    struct gw_search_index *index = NULL;

    for (size_t i = 0; i < n; i++) {
        struct gw_search_index *next;
        size_t at = i;
        unsigned first;

        for (; at > 0 && words_compare(&sorted[at - 1], &list[i]) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = list[i];
        next = gw_search_index_next(index, 0, (struct gw_toolsets){before, i},
                                    (struct gw_toolsets){sorted, i + 1});
        gw_search_index_unref(index);
        index = next;
        if (gw_search_index_wants_merge(index, &first)) {
            struct gw_segment *merged = gw_search_index_merge(index, first, index->n_parts);

            next = gw_search_index_replace(index, first, index->n_parts, merged,
                                           (struct gw_toolsets){sorted, i + 1});
            gw_segment_unref(merged);
            gw_search_index_unref(index);
            index = next;
        }
        memcpy(before, sorted, (i + 1) * sizeof(*sorted));
    }
    free(before);
    free(sorted);
    return index;
}

int main(int argc, char **argv)
{
    static const char *const queries[] = {"weather",
                                          "weather forecast",
                                          "invoices of customers",
                                          "w",
                                          "a",
                                          "th",
                                          "e",
                                          "00042",
                                          "ather",
                                          "er for",
                                          "the data",
                                          ". ",
                                          "nothing-here",
                                          "getUser by email and track the refund"};
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    struct gw_toolset **list = calloc(n, sizeof(*list));
    struct gw_snapshot snapshot = {.toolsets = list, .n = n};
    struct gw_search_index *grown = NULL;
    size_t n_tools = 0;
    double start;

    words_more = 4000;
    for (size_t i = 0; i < n; i++) {
        list[i] = words_make((unsigned)i, 10);
        n_tools += list[i]->n_tools;
    }
    start = now_us();
    grown = grow(list, n);
    printf("%zu toolsets, %zu tools\n", n, n_tools);
    printf("one by one %27.0f ms, %u segments\n", (now_us() - start) / 1e3, grown->n_parts);
    qsort(list, n, sizeof(*list), words_compare);
    start = now_us();
    snapshot.index =
        gw_search_index_next(NULL, 0, (struct gw_toolsets){.n = 0}, (struct gw_toolsets){list, n});
    printf("at once %30.0f ms, %zu KiB\n", (now_us() - start) / 1e3,
           gw_search_index_bytes(snapshot.index) / 1024);
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
        measure(&snapshot, queries[i]);
    printf("by the index that grew:\n");
    gw_search_index_unref(snapshot.index);
    snapshot.index = grown;
    measure(&snapshot, queries[1]);
    measure(&snapshot, queries[4]);
    gw_search_index_unref(grown);
    for (size_t i = 0; i < n; i++)
        gw_toolset_unref(list[i]);
    free(list);
    return 0;
}
