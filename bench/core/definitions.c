/* SPDX-License-Identifier: Apache-2.0 */

/* What a model is told about a thousand tools: from the registry, and as each vendor wants it. */

#include "bench.h"

enum { N_TOOLS = 1000 };

struct definitions {
    peg_registry *registry;
    peg_json_doc *doc;
    peg_definitions_options options;
};

static void collect(void *user)
{
    struct definitions *d = user;
    peg_json_doc *doc;

    must(peg_registry_definitions(d->registry, &doc, NULL), "definitions");
    peg_json_doc_free(doc);
}

static void render(void *user)
{
    struct definitions *d = user;
    char *text;

    must(peg_definitions_render(peg_json_root(d->doc), &d->options, &text, NULL, NULL, NULL),
         "render");
    peg_free(text);
}

static void render_and_report(void *user)
{
    struct definitions *d = user;
    peg_definition_losses *losses;
    char *text;

    must(peg_definitions_render(peg_json_root(d->doc), &d->options, &text, NULL, &losses, NULL),
         "render");
    peg_definition_losses_free(losses);
    peg_free(text);
}

static void render_for(const struct bench *bench, struct definitions *d, const char *name,
                       peg_definitions_options options)
{
    char title[80];

    options.max_tools = N_TOOLS;
    d->options = options;
    snprintf(title, sizeof(title), "1,000 tools for %s", name);
    report(bench, "definitions", title, fastest(bench, 1, render, d) / 1e3, "us");
    snprintf(title, sizeof(title), "1,000 tools for %s, losses told", name);
    report(bench, "definitions", title, fastest(bench, 1, render_and_report, d) / 1e3, "us");
}

void bench_definitions(const struct bench *bench)
{
    peg_tool **tools = make_tools(N_TOOLS);
    struct definitions d = {.registry = NULL};

    must(peg_registry_new(tools, N_TOOLS, &d.registry, NULL), "registry");
    must(peg_registry_definitions(d.registry, &d.doc, NULL), "definitions");

    printf("definitions\n");
    report(bench, "definitions", "1,000 tools from the registry",
           fastest(bench, 1, collect, &d) / 1e3, "us");
    for (int i = 0; i < PEG_N_VENDORS; i++)
        render_for(
            bench, &d, peg_vendor_name((peg_vendor)i),
            (peg_definitions_options){PEG_DEFINITIONS_OPTIONS_INIT, .vendor = (peg_vendor)i});
    render_for(bench, &d, "openai-chat, strict",
               (peg_definitions_options){PEG_DEFINITIONS_OPTIONS_INIT,
                                         .vendor = PEG_VENDOR_OPENAI_CHAT, .strict = true});
    render_for(bench, &d, "gemini, as JSON Schema",
               (peg_definitions_options){PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_GEMINI,
                                         .json_schema = true});

    peg_json_doc_free(d.doc);
    peg_registry_unref(d.registry);
    free_tools(tools, N_TOOLS);
}
