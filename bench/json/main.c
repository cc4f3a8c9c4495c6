/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-bench [--quick] [--json FILE]
 *
 * For each size: make the texts, let every parser read them once and compare what they found,
 * then time. A parser goes over all texts of a size in turn, so that no branch predictor learns
 * one text by heart. Rounds are interleaved: the machine's moods hit everyone. A round is cut
 * into batches; the fastest batch of all counts, because whatever else the machine does can only
 * make one slower, and the median of the rounds is told beside it.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { MAX_ROUNDS = 9, N_BATCHES = 30 };

static const struct bench_parser *const parsers[] = {
    &bench_pegboard_reused, /* first: the others are compared with it */
    &bench_pegboard_fresh,
    &bench_simdjson_ondemand,
    &bench_simdjson_ondemand_native,
    &bench_simdjson_dom,
    &bench_yajl,
    &bench_cjson,
    &bench_jansson,
};
enum { N_PARSERS = sizeof(parsers) / sizeof(parsers[0]) };

struct plan {
    double seconds; /* of one round of one parser */
    unsigned n_rounds;
    FILE *json; /* or NULL */
};

struct contestant {
    const struct bench_parser *parser;
    void *state;
    uint64_t passes; /* over all texts, in one batch */
    double best_ns;  /* per text, as the next */
    double ns[MAX_ROUNDS];
};

static double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- one contestant --------------------------------------------------------------- */

static bool pass(const struct contestant *c, const struct bench_docs *docs, uint64_t times,
                 struct bench_tally *tally)
{
    bool fine = true;

    for (uint64_t i = 0; i < times; i++) {
        for (size_t d = 0; d < docs->n; d++)
            fine &= c->parser->run(c->state, docs->docs[d].text, docs->docs[d].len, tally);
    }
    return fine;
}

/* Warms up and finds how many passes fill a batch. */
static void calibrate(struct contestant *c, const struct bench_docs *docs, double seconds)
{
    struct bench_tally tally = {0};
    double took = 0;
    uint64_t passes;

    for (passes = 1; took < seconds / 4; passes *= 2) {
        const double start = now_seconds();

        pass(c, docs, passes, &tally);
        took = now_seconds() - start;
    }
    passes /= 2; /* what took so long */
    c->passes = (uint64_t)(seconds / N_BATCHES / took * (double)passes) + 1;
    c->best_ns = HUGE_VAL;
}

static bool time_round(struct contestant *c, const struct bench_docs *docs, double seconds,
                       unsigned round)
{
    const double n_texts = (double)c->passes * (double)docs->n;
    struct bench_tally tally = {0};
    unsigned n_batches = 0;
    bool fine = true;
    double took = 0;

    while (took < seconds) {
        const double start = now_seconds();
        double batch;

        fine &= pass(c, docs, c->passes, &tally);
        batch = now_seconds() - start;
        took += batch;
        n_batches++;
        c->best_ns = fmin(c->best_ns, batch * 1e9 / n_texts);
    }
    c->ns[round] = took * 1e9 / n_texts / n_batches;
    return fine && tally.values > 0;
}

/* ---- the table ---------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_line(const struct contestant *c, const struct contestant *ours,
                       const struct bench_docs *docs, const struct plan *plan)
{
    const double doc_bytes = (double)docs->bytes / (double)docs->n;
    const double median = c->ns[plan->n_rounds / 2];
    const double mb_per_s = doc_bytes * 1e3 / c->best_ns;
    const double ratio = c->best_ns / ours->best_ns;

    printf("  %-28s %12.0f %12.0f %9.0f %9.2f\n", c->parser->name, c->best_ns, median, mb_per_s,
           ratio);
    if (plan->json)
        fprintf(plan->json,
                "{\"size\":\"%s\",\"bytes\":%.0f,\"parser\":\"%s\",\"best_ns\":%.1f,"
                "\"median_ns\":%.1f,\"mb_per_s\":%.1f,\"ratio\":%.3f}\n",
                docs->label, doc_bytes, c->parser->name, c->best_ns, median, mb_per_s, ratio);
}

static void print_results(struct contestant *c, const struct bench_docs *docs,
                          const struct plan *plan)
{
    printf("\n%s: %zu text%s of %zu bytes on average\n", docs->label, docs->n,
           docs->n == 1 ? "" : "s", docs->bytes / docs->n);
    printf("  %-28s %12s %12s %9s %9s\n", "parse and walk", "best ns", "median ns", "MB/s",
           "ratio");
    for (unsigned i = 0; i < N_PARSERS; i++) {
        qsort(c[i].ns, plan->n_rounds, sizeof(double), compare_doubles);
        print_line(&c[i], &c[0], docs, plan);
    }
    fflush(stdout);
}

/* ---- one size ------------------------------------------------------------------------- */

static bool tallies_agree(const struct bench_tally *a, const struct bench_tally *b)
{
    return a->values == b->values && a->string_bytes == b->string_bytes && a->truths == b->truths &&
           a->numbers == b->numbers;
}

/* Every parser reads every text once; all must find the same. */
static bool check_agreement(const struct contestant *c, const struct bench_docs *docs)
{
    struct bench_tally first = {0};
    bool fine = true;

    for (unsigned i = 0; i < N_PARSERS; i++) {
        struct bench_tally tally = {0};

        if (!pass(&c[i], docs, 1, &tally)) {
            fprintf(stderr, "json-bench: %s refused a text of %s\n", c[i].parser->name,
                    docs->label);
            fine = false;
        }
        if (i == 0)
            first = tally;
        if (!tallies_agree(&first, &tally)) {
            fprintf(stderr,
                    "json-bench: %s differs: %" PRIu64 " values, %" PRIu64 " bytes, %" PRIu64
                    " true, numbers %.17g\n",
                    c[i].parser->name, tally.values, tally.string_bytes, tally.truths,
                    tally.numbers);
            fine = false;
        }
    }
    return fine;
}

static bool bench_size(const char *label, size_t n, size_t size, const struct plan *plan)
{
    struct contestant contestants[N_PARSERS] = {0};
    struct bench_docs docs;
    bool fine = bench_docs_make(&docs, label, n, size);

    for (unsigned i = 0; i < N_PARSERS; i++) {
        contestants[i].parser = parsers[i];
        contestants[i].state = parsers[i]->open ? parsers[i]->open() : NULL;
    }
    fine = fine && check_agreement(contestants, &docs);
    for (unsigned i = 0; fine && i < N_PARSERS; i++)
        calibrate(&contestants[i], &docs, plan->seconds);
    for (unsigned round = 0; fine && round < plan->n_rounds; round++) {
        for (unsigned i = 0; fine && i < N_PARSERS; i++)
            fine = time_round(&contestants[i], &docs, plan->seconds, round);
    }
    if (fine)
        print_results(contestants, &docs, plan);
    for (unsigned i = 0; i < N_PARSERS; i++) {
        if (parsers[i]->close)
            parsers[i]->close(contestants[i].state);
    }
    bench_docs_done(&docs);
    return fine;
}

int main(int argc, char **argv)
{
    struct plan plan = {.seconds = 0.3, .n_rounds = 5};
    bool fine;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            plan.seconds = 0.03;
            plan.n_rounds = 3;
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            plan.json = fopen(argv[++i], "we");
        } else {
            fputs("usage: json-bench [--quick] [--json FILE]\n", stderr);
            return 2;
        }
    }
    fine = bench_size("1 KB", 64, 1024, &plan);
    fine = bench_size("10 KB", 16, 10240, &plan) && fine;
    fine = bench_size("1 MB", 1, 1 << 20, &plan) && fine;
    if (plan.json)
        fclose(plan.json);
    return fine ? 0 : 1;
}
