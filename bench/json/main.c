/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-bench [--quick] [--json FILE] [--peer LIBRARY]... [--corpus FOLDER]...
 *
 * For each set of texts, those that docs.c makes and those of each folder: let every parser read
 * them once and compare what they found, then time, then measure what kept documents take. A parser
 * goes over all texts of a set in turn, so that no branch predictor learns one text by heart.
 * Rounds are interleaved: the machine's moods hit everyone. A round is cut into batches; the
 * fastest batch of all counts, because whatever else the machine does can only make one slower, and
 * the median of the rounds is told beside it.
 */

#include <dlfcn.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { MAX_ROUNDS = 9, N_BATCHES = 30, MAX_PARSERS = 16, MAX_SETS = 16 };

struct bench {
    double seconds; /* of one round of one parser */
    unsigned n_rounds;
    FILE *json; /* or NULL */
    const struct bench_parser *parsers[MAX_PARSERS];
    unsigned n_parsers;
    const char *folders[MAX_SETS];
    unsigned n_folders;
    /* Over the sets: sums of logarithms. */
    double log_ratios[MAX_PARSERS];
    double log_kept[MAX_PARSERS];
    unsigned n_sets;
};

struct contestant {
    const struct bench_parser *parser;
    void *state;
    uint64_t passes; /* over all texts, in one batch */
    double best_ns;  /* per text, as the next */
    double ns[MAX_ROUNDS];
    double kept; /* bytes of memory a byte of text; 0 where nothing can be kept */
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

/* ---- memory ------------------------------------------------------------------------- */

static double heap_bytes(void)
{
    const struct mallinfo2 heap = mallinfo2();

    return (double)heap.uordblks + (double)heap.hblkhd;
}

/* Keeps a document of every text. */
static bool measure_kept(struct contestant *c, const struct bench_docs *docs)
{
    void **kept = calloc(docs->n, sizeof(*kept));
    const double before = heap_bytes();
    bool fine = kept != NULL;

    for (size_t i = 0; fine && i < docs->n; i++) {
        kept[i] = c->parser->keep(docs->docs[i].text, docs->docs[i].len);
        fine = kept[i] != NULL;
    }
    c->kept = (heap_bytes() - before) / (double)docs->bytes;
    for (size_t i = 0; kept && i < docs->n; i++) {
        if (kept[i])
            c->parser->drop(kept[i]);
    }
    free(kept);
    return fine;
}

/* ---- the table ---------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_kept(double kept)
{
    if (kept > 0)
        printf(" %9.2f\n", kept);
    else
        puts("         -");
}

static void print_line(const struct contestant *c, const struct contestant *ours,
                       const struct bench_docs *docs, const struct bench *bench)
{
    const double doc_bytes = (double)docs->bytes / (double)docs->n;
    const double median = c->ns[bench->n_rounds / 2];
    const double mb_per_s = doc_bytes * 1e3 / c->best_ns;
    const double ratio = c->best_ns / ours->best_ns;

    printf("  %-28s %12.0f %12.0f %9.0f %9.2f", c->parser->name, c->best_ns, median, mb_per_s,
           ratio);
    print_kept(c->kept);
    if (bench->json)
        fprintf(bench->json,
                "{\"size\":\"%s\",\"bytes\":%.0f,\"parser\":\"%s\",\"best_ns\":%.1f,"
                "\"median_ns\":%.1f,\"mb_per_s\":%.1f,\"ratio\":%.3f,\"kept\":%.2f}\n",
                docs->label, doc_bytes, c->parser->name, c->best_ns, median, mb_per_s, ratio,
                c->kept);
}

static void print_heads(const char *what)
{
    printf("  %-28s %12s %12s %9s %9s %9s\n", what, "best ns", "median ns", "MB/s", "ratio",
           "kept B/B");
}

static void print_results(struct contestant *c, const struct bench_docs *docs, struct bench *bench)
{
    printf("\n%s: %zu text%s of %zu bytes on average\n", docs->label, docs->n,
           docs->n == 1 ? "" : "s", docs->bytes / docs->n);
    print_heads("parse and walk");
    for (unsigned i = 0; i < bench->n_parsers; i++) {
        qsort(c[i].ns, bench->n_rounds, sizeof(double), compare_doubles);
        print_line(&c[i], &c[0], docs, bench);
        bench->log_ratios[i] += log(c[i].best_ns / c[0].best_ns);
        bench->log_kept[i] += log(c[i].kept > 0 ? c[i].kept : 1);
    }
    bench->n_sets++;
    fflush(stdout);
}

static void print_means(const struct bench *bench)
{
    printf("\ngeometric means of %u sets of texts\n", bench->n_sets);
    print_heads("parse and walk");
    for (unsigned i = 0; i < bench->n_parsers; i++) {
        const double ratio = exp(bench->log_ratios[i] / bench->n_sets);
        const double kept = bench->parsers[i]->keep ? exp(bench->log_kept[i] / bench->n_sets) : 0;

        printf("  %-28s %12s %12s %9s %9.2f", bench->parsers[i]->name, "", "", "", ratio);
        print_kept(kept);
        if (bench->json)
            fprintf(bench->json,
                    "{\"size\":\"geometric mean\",\"parser\":\"%s\",\"ratio\":%.3f,"
                    "\"kept\":%.2f}\n",
                    bench->parsers[i]->name, ratio, kept);
    }
}

/* ---- one set of texts ------------------------------------------------------------------- */

static bool tallies_agree(const struct bench_tally *a, const struct bench_tally *b)
{
    return a->values == b->values && a->string_bytes == b->string_bytes && a->truths == b->truths &&
           a->numbers == b->numbers;
}

/* Every parser reads every text once; all must find the same. */
static bool check_agreement(const struct contestant *c, unsigned n, const struct bench_docs *docs)
{
    struct bench_tally first = {0};
    bool fine = true;

    for (unsigned i = 0; i < n; i++) {
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
                    "json-bench: %s differs on %s: %" PRIu64 " values, %" PRIu64 " bytes, %" PRIu64
                    " true, numbers %.17g\n",
                    c[i].parser->name, docs->label, tally.values, tally.string_bytes, tally.truths,
                    tally.numbers);
            fine = false;
        }
    }
    return fine;
}

static bool measure(struct contestant *c, const struct bench_docs *docs, const struct bench *bench)
{
    bool fine = check_agreement(c, bench->n_parsers, docs);

    for (unsigned i = 0; fine && i < bench->n_parsers; i++) {
        calibrate(&c[i], docs, bench->seconds);
        fine = !c[i].parser->keep || measure_kept(&c[i], docs);
    }
    for (unsigned round = 0; fine && round < bench->n_rounds; round++) {
        for (unsigned i = 0; fine && i < bench->n_parsers; i++)
            fine = time_round(&c[i], docs, bench->seconds, round);
    }
    return fine;
}

/* Takes over the texts. */
static bool bench_set(bool is_made, struct bench_docs *docs, struct bench *bench)
{
    struct contestant contestants[MAX_PARSERS] = {0};
    bool fine = is_made;

    if (!is_made)
        fprintf(stderr, "json-bench: no texts of %s\n", docs->label);
    for (unsigned i = 0; i < bench->n_parsers; i++) {
        const struct bench_parser *parser = bench->parsers[i];

        contestants[i].parser = parser;
        contestants[i].state = parser->open ? parser->open() : NULL;
    }
    fine = fine && measure(contestants, docs, bench);
    if (fine)
        print_results(contestants, docs, bench);
    for (unsigned i = 0; i < bench->n_parsers; i++) {
        if (contestants[i].parser->close)
            contestants[i].parser->close(contestants[i].state);
    }
    bench_docs_done(docs);
    return fine;
}

/* ---- all of them -------------------------------------------------------------------------- */

static void add_parser(struct bench *bench, const struct bench_parser *parser)
{
    if (bench->n_parsers < MAX_PARSERS)
        bench->parsers[bench->n_parsers++] = parser;
}

static bool add_peers(struct bench *bench, const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const struct bench_parser *const *peers = handle ? dlsym(handle, "bench_peers") : NULL;

    if (!peers)
        fprintf(stderr, "json-bench: %s has no bench_peers, or cannot be loaded\n", library);
    for (; peers && *peers; peers++)
        add_parser(bench, *peers);
    return handle && peers;
}

static void add_known(struct bench *bench)
{
    static const struct bench_parser *const known[] = {
        &bench_pegboard_reused, /* first: the others are compared with it */
        &bench_pegboard_fresh,
        &bench_simdjson_ondemand,
        &bench_simdjson_ondemand_native,
        &bench_simdjson_dom,
        &bench_yajl,
        &bench_cjson,
        &bench_jansson,
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        add_parser(bench, known[i]);
}

static bool read_option(struct bench *bench, char **argv, int *i)
{
    const char *name = argv[*i];
    const char *value = argv[*i + 1];

    if (strcmp(name, "--quick") == 0) {
        bench->seconds = 0.03;
        bench->n_rounds = 3;
        return true;
    }
    if (!value)
        return false;
    ++*i;
    if (strcmp(name, "--json") == 0)
        return (bench->json = fopen(value, "we")) != NULL;
    if (strcmp(name, "--peer") == 0)
        return add_peers(bench, value);
    if (strcmp(name, "--corpus") != 0 || bench->n_folders == MAX_SETS)
        return false;
    bench->folders[bench->n_folders++] = value;
    return true;
}

static bool bench_all(struct bench *bench)
{
    struct bench_docs docs;
    bool fine = true;

    fine = bench_set(bench_docs_make(&docs, "1 KB", 64, 1024), &docs, bench) && fine;
    fine = bench_set(bench_docs_make(&docs, "10 KB", 16, 10240), &docs, bench) && fine;
    fine = bench_set(bench_docs_make(&docs, "1 MB", 1, 1 << 20), &docs, bench) && fine;
    for (unsigned i = 0; i < bench->n_folders; i++)
        fine = bench_set(bench_docs_load(&docs, bench->folders[i]), &docs, bench) && fine;
    if (bench->n_sets)
        print_means(bench);
    return fine;
}

int main(int argc, char **argv)
{
    struct bench bench = {.seconds = 0.3, .n_rounds = 5};
    bool fine;

    add_known(&bench);
    for (int i = 1; i < argc; i++) {
        if (!read_option(&bench, argv, &i)) {
            fputs("usage: json-bench [--quick] [--json FILE] [--peer LIBRARY]... "
                  "[--corpus FOLDER]...\n",
                  stderr);
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    fine = bench_all(&bench);
    if (bench.json)
        fclose(bench.json);
    return fine ? 0 : 1;
}
