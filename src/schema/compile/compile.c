/* SPDX-License-Identifier: Apache-2.0 */

/* Compiles a document: every node it needs, then defaults and the fill plan. */

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/internal.h"

/* Code 0 is an empty list and node 0 accepts everything. */
static bool compile_constants(struct peg__compiler *c)
{
    struct peg__node *node = PEG__ADD(c, nodes, nodes, 1);

    if (!node)
        return false;
    *node = (struct peg__node){.is_done = 1};
    return peg__put_insn(c, (struct peg__insn){.op = OP_END}, NULL);
}

static bool compile_pending(struct peg__compiler *c)
{
    while (c->pendings.n > 0) {
        const struct peg__pending next = c->pending[--c->pendings.n];

        if (!peg__compile_node(c, &next.task, next.node))
            return false;
    }
    return true;
}

static bool fail_default(struct peg__compiler *c, const struct peg__default_use *use,
                         const char *why)
{
    c->status = peg__fail(c->reterr, PEG_ESCHEMA, "E_SCHEMA_KEYWORD",
                          "this default is refused by its own schema: %s", why);
    return peg__fail_compile(c, use->key);
}

/* The default as it will be filled in: what it leaves out may have a default again. */
static bool fill_default(struct peg__compiler *c, const struct peg__default_use *use,
                         peg_json_doc **ret_filled)
{
    peg_error error;

    switch (peg__fill(use->plan, use->key + 1, ret_filled, &error)) {
    case PEG_OK:
        return true;
    case PEG_ENOMEM:
        return peg__compile_nomem(c);
    default:
        return fail_default(c, use, error.message);
    }
}

static bool check_default(struct peg__compiler *c, peg_checker *ck, peg_report *report,
                          const struct peg__default_use *use)
{
    const uint32_t root = c->out->root;
    peg_json_doc *filled = NULL;
    peg_verdict verdict;

    if (!fill_default(c, use, &filled))
        return false;
    c->out->root = use->node;
    verdict = peg_schema_report(c->out, ck, filled ? peg_json_root(filled) : use->key + 1, report);
    c->out->root = root;
    peg_json_doc_free(filled);
    if (verdict == PEG_VALID)
        return true;
    if (verdict == PEG_UNDECIDED && !strcmp(peg_checker_reason(ck), "memory"))
        return peg__compile_nomem(c);
    return fail_default(c, use,
                        peg_report_len(report) ? peg_report_at(report, 0)->message.ptr
                                               : "a limit was reached while checking it");
}

static bool check_defaults(struct peg__compiler *c)
{
    peg_checker *ck = NULL;
    peg_report *report = NULL;
    bool fine = true;

    if (c->n_defaults.n == 0)
        return true;
    if (peg_checker_new(NULL, &ck, NULL) || peg_report_new(&report, NULL))
        fine = peg__compile_nomem(c);
    for (size_t i = 0; fine && i < c->n_defaults.n; i++)
        fine = check_default(c, ck, report, &c->defaults[i]);
    peg_report_free(report);
    peg_checker_free(ck);
    return fine;
}

static bool compile_document(struct peg__compiler *c, struct peg__document *document)
{
    const peg_str base = peg__str(c->options.base_uri ? c->options.base_uri : "");
    struct peg__task task = {0};

    c->status = peg__index_add(&c->index, document, base, &task.resource, c->reterr);
    if (c->status)
        return false;
    task.schema = task.resource->root;
    if (!compile_constants(c) || !peg__node_for(c, &task, &c->out->root) || !compile_pending(c))
        return false;
    peg__choose_by_kinds(c);
    return peg__compile_plan(c, &task);
}

/* Releases what an array does not use; returns the bytes that stay. */
static size_t trim_array(void *array_pointer, const struct peg__counts *counts, size_t item_size)
{
    void **array = array_pointer;
    void *trimmed = counts->n ? peg__realloc(*array, counts->n * item_size) : NULL;

    if (trimmed)
        *array = trimmed;
    return counts->n * item_size;
}

#define TRIM(c, array, counts) trim_array(&(c)->out->array, &(c)->counts, sizeof(*(c)->out->array))

static size_t finish_arrays(struct peg__compiler *c)
{
    const peg_schema *s = c->out;
    size_t bytes = sizeof(*s) + s->arena.held;

    bytes += TRIM(c, code, code) + TRIM(c, rules, rules) + TRIM(c, nodes, nodes);
    bytes += TRIM(c, lists, lists) + TRIM(c, members, members) + TRIM(c, words, words);
    bytes += TRIM(c, contains, contains) + TRIM(c, enums, enums) + TRIM(c, switches, switches);
    bytes += TRIM(c, formats, formats) + TRIM(c, values, values) + TRIM(c, patterns, patterns);
    for (size_t i = 0; i < c->patterns.n; i++)
        bytes += peg__pattern_bytes(s->patterns[i]);
    for (size_t i = 0; i < s->n_documents; i++)
        bytes += peg__document_bytes(s->documents[i]);
    return bytes;
}

bool peg__compile(struct peg__compiler *c, struct peg__document *document)
{
    bool fine = compile_document(c, document);

    c->out->n_patterns = c->patterns.n;
    c->out->n_switches = c->switches.n;
    if (fine) {
        c->out->documents = c->index.documents;
        c->out->n_documents = c->index.n_documents;
        c->out->bytes = finish_arrays(c);
        fine = check_defaults(c);
    }
    /* The schema takes over the documents, or they are freed. */
    if (fine) {
        c->index.documents = NULL;
        c->index.n_documents = 0;
    } else {
        c->out->documents = NULL;
        c->out->n_documents = 0;
    }
    peg__free(c->known);
    peg__free(c->pending);
    peg__free(c->defaults);
    peg__index_free(&c->index);
    return fine;
}
