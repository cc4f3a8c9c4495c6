/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call: look up, parse, validate, run an empty handler, wrap, record. Parsing and validating the
 * same arguments are measured apart; what is left is what a call costs. So is their digest, which a
 * call makes only for those who ask.
 */

#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

struct work {
    peg_ctx *ctx;
    peg_tool **tools;
    char (*names)[16]; /* apart from the tools: a call's name comes out of a response */
    size_t n_tools;
    size_t n_called; /* of them: the first so many, in turn */
    size_t next;
    peg_json_doc *args;
    peg_checker *checker;
    peg_schema *schema;
};

static peg_str args_text(void)
{
    return peg_cstr(call_args);
}

static void call_once(void *user)
{
    struct work *w = user;
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = {"call_1", 6},
                                      .tool = peg_cstr(w->names[w->next]), .args = args_text()};
    peg_record *record;

    w->next = (w->next + 7919) % w->n_called; /* scattered, if there are many */
    must(peg_call_run(w->ctx, &request, NULL, &record, NULL), "call");
    if (peg_record_is_error(record))
        must(PEG_EHOST, peg_record_code(record));
    peg_record_unref(record);
}

static void parse_once(void *user)
{
    peg_json_doc *doc;

    (void)user;
    must(peg_json_parse(args_text(), NULL, &doc, NULL), "parse");
    peg_json_doc_free(doc);
}

static void check_once(void *user)
{
    struct work *w = user;

    if (peg_schema_check(w->schema, w->checker, peg_json_root(w->args)) != PEG_VALID)
        must(PEG_ESCHEMA, "check");
}

static void digest_once(void *user)
{
    struct work *w = user;
    char hex[65];

    must(peg_call_digest(peg_cstr("tool_1"), peg_json_root(w->args), hex, NULL), "digest");
}

static void open_work(struct work *w, size_t n_tools)
{
    peg_registry *registry;
    peg_ctx *root;

    *w = (struct work){.tools = make_tools(n_tools), .n_tools = n_tools, .n_called = n_tools};
    w->names = calloc(n_tools, sizeof(*w->names));
    must(w->names ? PEG_OK : PEG_ENOMEM, "names");
    for (size_t i = 0; i < n_tools; i++)
        snprintf(w->names[i], sizeof(*w->names), "tool_%zu", i % 1000000);
    must(peg_registry_new(w->tools, n_tools, &registry, NULL), "registry");
    must(peg_ctx_new(&root, NULL), "context");
    must(peg_ctx_with_registry(root, registry, &w->ctx, NULL), "context");
    peg_ctx_unref(root);
    peg_registry_unref(registry);
}

static void close_work(struct work *w)
{
    peg_ctx_unref(w->ctx);
    free(w->names);
    free_tools(w->tools, w->n_tools);
}

static double measure_parts(const struct bench *bench, struct work *w)
{
    char *text;
    double parse;
    double check;
    double digest;

    must(peg_json_parse(args_text(), NULL, &w->args, NULL), "parse");
    must(peg_checker_new(NULL, &w->checker, NULL), "checker");
    must(peg_json_write(peg_tool_input_schema(w->tools[0]), PEG_JSON_COMPACT, &text, NULL, NULL),
         "schema");
    must(peg_schema_compile(peg_cstr(text), NULL, &w->schema, NULL), "schema");
    parse = fastest(bench, 1000, parse_once, w);
    check = fastest(bench, 1000, check_once, w);
    digest = fastest(bench, 1000, digest_once, w);
    report(bench, "call", "parse the arguments (new document)", parse, "ns");
    report(bench, "call", "validate them", check, "ns");
    report(bench, "call", "digest them, when asked (canonical form, SHA-256)", digest, "ns");
    peg_free(text);
    peg_schema_unref(w->schema);
    peg_checker_free(w->checker);
    peg_json_doc_free(w->args);
    return parse + check;
}

/* ---- threads -------------------------------------------------------------------- */

enum { CALLS_A_BATCH = 1000 };

struct lane {
    pthread_t thread;
    struct work work;
    double seconds;
    double n_calls;
};

static void *run_lane(void *user)
{
    struct lane *lane = user;
    const double end = now_ns() + lane->seconds * 1e9;

    do {
        for (int i = 0; i < CALLS_A_BATCH; i++)
            call_once(&lane->work);
        lane->n_calls += CALLS_A_BATCH;
    } while (now_ns() < end);
    return NULL;
}

static void measure_threads(const struct bench *bench, const struct work *w, unsigned n)
{
    struct lane lanes[8];
    const double start = now_ns();
    double n_calls = 0;
    char name[64];

    for (unsigned i = 0; i < n; i++) {
        lanes[i] = (struct lane){.work = *w, .seconds = bench->seconds};
        lanes[i].work.next = i % w->n_tools;
        must(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) ? PEG_EIO : PEG_OK,
             "thread");
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(lanes[i].thread, NULL);
        n_calls += lanes[i].n_calls;
    }
    snprintf(name, sizeof(name), "%u thread%s, 1,000 tools of one registry", n, n > 1 ? "s" : "");
    report(bench, "threads", name, n_calls / ((now_ns() - start) / 1e9) / 1e6, "million calls/s");
}

static void measure_call(const struct bench *bench, struct work *w, double parts, const char *name)
{
    const double whole = fastest(bench, 1000, call_once, w);

    report(bench, "call", name, whole, "ns");
    report(bench, "call", "  of it on top of parse and validate", whole - parts, "ns");
}

void bench_calls(const struct bench *bench)
{
    static const size_t sizes[] = {1, 10, 100, 1000, 10000};
    double parts = 0;
    struct work w;
    char name[64];

    printf("one call, 120 bytes of arguments, empty handler\n");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        open_work(&w, sizes[i]);
        if (i == 0)
            parts = measure_parts(bench, &w);
        /* As agents do: some tools of the catalog, again and again. */
        w.n_called = sizes[i] < 16 ? sizes[i] : 16;
        snprintf(name, sizeof(name), "whole call, %zu tools", sizes[i]);
        measure_call(bench, &w, parts, name);
        if (i == sizeof(sizes) / sizeof(*sizes) - 1) {
            w.n_called = w.n_tools; /* none of them is in a cache when its turn comes */
            measure_call(bench, &w, parts, "whole call, 10000 tools, all in scattered order");
        }
        close_work(&w);
    }
    printf("calls from several threads\n");
    open_work(&w, 1000);
    for (unsigned n = 1; n <= 8; n *= 2)
        measure_threads(bench, &w, n);
    close_work(&w);
}
