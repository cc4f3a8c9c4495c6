/* SPDX-License-Identifier: Apache-2.0 */

/*
 * --benchmark: every instance is parsed first, then each figure is measured alone.
 *
 *   ns_per_instance              peg_schema_check() on parsed instances
 *   parse_and_validate_mb_per_s  instance text (10^6 bytes) through peg_json_reparse() into one
 *                                document and peg_schema_check()
 *   compile_us                   peg_schema_compile() of the schema text, best of many
 *
 * The first two are measured in rounds over all instances, one after the other: an instance that is
 * checked again and again in a row is foreseen by the processor, branch by branch. Both warm up
 * first; then the rounds are cut into short batches, and the mean of the fastest batch counts,
 * because whatever else the machine does can only make a batch slower, and a batch that is shorter
 * than a time slice has a chance not to be interrupted.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "cli/validate/validate.h"

enum {
    BATCH_NS = 1000000,
    CLOCK_LOOKS = 100,
    BUDGET_NS = 1000000000,        /* for each of the two figures, without --loop */
    COMPILE_BUDGET_NS = 200000000, /* for compile_us */
    COMPILE_MIN = 3,
    COMPILE_MAX = 1000,
    /* All instances are in memory at once. */
    MAX_BYTES = 1 << 30,
};

struct sample {
    char *text; /* owned; JSON, also when the file was YAML */
    size_t len;
    peg_json_doc *doc; /* owned */
    const peg_json *value;
};

struct bench {
    struct validate *v;
    struct sample *samples; /* owned */
    size_t n;
    size_t capacity;
    size_t bytes;        /* of all texts */
    unsigned long trash; /* results, so that no call looks useless */
};

/* ---- collecting --------------------------------------------------------------------- */

/* The text as it was given; what was YAML is written as JSON. */
static peg_status copy_instance_text(const struct validate_instance *instance, struct sample *s,
                                     peg_error *reterr)
{
    if (!instance->text.len)
        return peg_json_write(instance->value, PEG_JSON_COMPACT, &s->text, &s->len, reterr);
    s->text = peg__alloc(instance->text.len);
    if (!s->text)
        return peg__fail_nomem(reterr);
    memcpy(s->text, instance->text.ptr, instance->text.len);
    s->len = instance->text.len;
    return PEG_OK;
}

static peg_status add_sample(struct bench *b, const struct validate_instance *instance,
                             peg_error *reterr)
{
    struct sample s = {0};
    peg_status status;

    if (!PEG__RESERVE(b->samples, b->n + 1, b->capacity))
        return peg__fail_nomem(reterr);
    status = copy_instance_text(instance, &s, reterr);
    if (!status)
        status = peg_json_parse((peg_str){s.text, s.len}, &b->v->options->json, &s.doc, reterr);
    if (!status && s.len > MAX_BYTES - b->bytes)
        status = peg__fail(reterr, PEG_ELIMIT, "E_FILE_TOO_LARGE",
                           "a benchmark holds at most 1 GiB of instances; give it fewer");
    if (status) {
        peg__free(s.text);
        peg_json_doc_free(s.doc);
        return status;
    }
    s.value = peg_json_root(s.doc);
    b->bytes += s.len;
    b->samples[b->n++] = s;
    return PEG_OK;
}

/* A validate_fn. */
static void collect_instance(struct validate *v, const struct validate_instance *instance,
                             void *user)
{
    peg_error error;

    if (add_sample(user, instance, &error)) {
        validate_unusable(v, &instance->place, &error);
        return;
    }
    switch (peg_schema_check(v->schema, v->checker, instance->value)) {
    case PEG_VALID:
        v->n_valid++;
        break;
    case PEG_INVALID:
        v->n_invalid++;
        break;
    case PEG_UNDECIDED:
        validate_check(v, instance, NULL); /* reports it */
        break;
    }
}

/* ---- measuring ------------------------------------------------------------------------ */

typedef void round_fn(struct bench *b, uint64_t rounds);

static void check_rounds(struct bench *b, uint64_t rounds)
{
    const peg_schema *schema = b->v->schema;
    peg_checker *checker = b->v->checker;
    const struct sample *end = b->samples + b->n;
    unsigned long trash = 0;

    while (rounds-- > 0)
        for (const struct sample *s = b->samples; s < end; s++)
            trash += peg_schema_check(schema, checker, s->value);
    b->trash += trash;
}

static void parse_and_check_rounds(struct bench *b, uint64_t rounds)
{
    struct validate *v = b->v;
    const peg_json_options *options = &v->options->json;
    const struct sample *end = b->samples + b->n;
    unsigned long trash = 0;

    while (rounds-- > 0) {
        for (const struct sample *s = b->samples; s < end; s++) {
            trash += peg_json_reparse(v->doc, (peg_str){s->text, s->len}, options, NULL);
            trash += peg_schema_check(v->schema, v->checker, peg_json_root(v->doc));
        }
    }
    b->trash += trash;
}

static int64_t time_rounds(struct bench *b, round_fn *round, uint64_t rounds)
{
    const int64_t start = cli_now_ns();

    round(b, rounds);
    return cli_now_ns() - start;
}

/* Runs in doubling steps until warm; returns nanoseconds of one round. */
static double warm_up(struct bench *b, round_fn *round, int64_t warm_up_ns)
{
    const int64_t start = cli_now_ns();
    uint64_t rounds = 1;

    for (;;) {
        const int64_t took = time_rounds(b, round, rounds);

        if (cli_now_ns() - start >= warm_up_ns)
            return (double)(took > 0 ? took : 1) / (double)rounds;
        rounds *= 2;
    }
}

/* What an empty batch seems to take: looking at the clock, which is not what is measured. */
static double clock_cost(struct bench *b, round_fn *round)
{
    int64_t best = INT64_MAX;

    for (unsigned i = 0; i < CLOCK_LOOKS; i++) {
        const int64_t took = time_rounds(b, round, 0);

        best = took < best ? took : best;
    }
    return (double)best;
}

/* Nanoseconds of one round: the mean of the fastest batch. */
static double measure_rounds(struct bench *b, round_fn *round)
{
    const double estimate = warm_up(b, round, BUDGET_NS / 10);
    const uint64_t wanted = b->v->options->loops;
    const uint64_t rounds = wanted ? wanted : (uint64_t)(BUDGET_NS / estimate) + 1;
    const uint64_t n_wanted = (uint64_t)(estimate * (double)rounds / BATCH_NS) + 1;
    const uint64_t n_batches = n_wanted < rounds ? n_wanted : rounds;
    const double cost = clock_cost(b, round);
    double best = 0;

    for (uint64_t i = 0; i < n_batches; i++) {
        /* Batches differ by at most one round, and together are exactly `rounds`. */
        const uint64_t n = rounds / n_batches + (i < rounds % n_batches);
        const double took = (double)time_rounds(b, round, n) - cost;
        const double ns = (took > 1 ? took : 1) / (double)n;

        if (i == 0 || ns < best)
            best = ns;
    }
    return best;
}

/* Microseconds of the fastest compile, or below 0 if one failed. */
static double measure_compile(const struct validate *v)
{
    const peg_str text = peg__buf_view(&v->schema_text);
    const int64_t end = cli_now_ns() + COMPILE_BUDGET_NS;
    int64_t best = INT64_MAX;

    for (unsigned i = 0; i < COMPILE_MIN || (i < COMPILE_MAX && cli_now_ns() < end); i++) {
        const int64_t start = cli_now_ns();
        peg_schema *schema = NULL;
        const peg_status status = peg_schema_compile(text, &v->schema_options, &schema, NULL);
        const int64_t took = cli_now_ns() - start;

        if (status)
            return -1;
        peg_schema_unref(schema);
        best = took < best ? took : best;
    }
    return (double)best / 1000;
}

static void print_figures(struct bench *b)
{
    const double check_ns = measure_rounds(b, check_rounds) / (double)b->n;
    const double text_ns = measure_rounds(b, parse_and_check_rounds);
    const double compile_us = measure_compile(b->v);

    printf("{\"instances\":%zu,\"valid\":%" PRIu64 ",\"ns_per_instance\":%.2f,"
           "\"parse_and_validate_mb_per_s\":%.1f,\"compile_us\":%.1f}\n",
           b->n, b->v->n_valid, check_ns, (double)b->bytes * 1000 / text_ns, compile_us);
}

void validate_benchmark(struct validate *v)
{
    struct bench b = {.v = v};

    for (size_t i = 0; i < v->options->n_paths; i++)
        validate_each(v, v->options->paths[i], collect_instance, &b);
    if (b.n) {
        print_figures(&b);
    } else {
        fputs("pegboard: there is no instance to measure; give a file that has one\n", stderr);
        v->n_unusable++;
    }
    for (size_t i = 0; i < b.n; i++) {
        peg__free(b.samples[i].text);
        peg_json_doc_free(b.samples[i].doc);
    }
    peg__free(b.samples);
}
