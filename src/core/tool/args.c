/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one place that rejects bad arguments, and bad results. Defaults first, then the verdict;
 * the report, which costs more, only when the verdict is that something is wrong.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/tool/tool.h"
#include "pegboard/cleanup.h"

/* What is checked, in words and codes. */
struct subject {
    const char *what; /* "arguments for", "result of" */
    const char *invalid;
    const char *undecided;
};

static const struct subject for_arguments = {"arguments for", "E_INVALID_TOOL_ARGS",
                                             "E_CHECK_UNDECIDED"};
static const struct subject for_result = {"result of", "E_TOOL_OUTPUT_INVALID",
                                          "E_CHECK_UNDECIDED"};

/* ---- scratch: one slot, because a tool is mostly called by one thread at a time -------------- */

static void scratch_clear(struct peg__scratch *scratch)
{
    peg__checker_done(&scratch->checker);
    peg_report_free(scratch->report);
}

void peg__scratch_free(struct peg__scratch *scratch)
{
    if (scratch)
        scratch_clear(scratch);
    peg__free(scratch);
}

void peg__scratch_open(peg_tool *tool, struct peg__scratch *scratch)
{
    struct peg__scratch *idle = NULL;

    /* Looked at first: most schemas leave nothing, and a load is cheaper than an exchange. */
    if (atomic_load_explicit(&tool->idle, memory_order_relaxed))
        idle = atomic_exchange_explicit(&tool->idle, NULL, memory_order_acquire);
    if (idle) {
        *scratch = *idle;
        scratch->shell = idle;
        return;
    }
    peg__checker_init(&scratch->checker, NULL);
    scratch->report = NULL;
    scratch->shell = NULL;
}

void peg__scratch_close(peg_tool *tool, struct peg__scratch *scratch)
{
    struct peg__scratch *idle = scratch->shell;

    if (!scratch->report && peg__checker_is_bare(&scratch->checker))
        return;
    if (!idle)
        idle = peg__alloc(sizeof(*idle));
    if (!idle) {
        scratch_clear(scratch);
        return;
    }
    *idle = *scratch;
    peg__scratch_free(atomic_exchange_explicit(&tool->idle, idle, memory_order_acq_rel));
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Appends what there is room for: a report may be longer than what a model is to read. */
static void add_cut(struct peg__buf *out, peg_str text)
{
    const size_t room = out->len < out->max ? out->max - out->len : 0;

    if (text.len > room)
        text.len = peg__utf8_cut(text.ptr, room);
    peg__buf_str(out, text);
}

static peg_status write_sentence(const struct subject *subject, const peg_tool *tool,
                                 peg_str failures, struct peg__buf *sentence)
{
    if (!sentence)
        return PEG_OK;
    if (failures.len > 0 && failures.ptr[failures.len - 1] == '\n')
        failures.len--;
    add_cut(sentence, peg__str("invalid "));
    add_cut(sentence, peg__str(subject->what));
    add_cut(sentence, peg__str(" '"));
    add_cut(sentence, tool->name);
    add_cut(sentence, peg__str("':\n"));
    add_cut(sentence, failures);
    return sentence->status;
}

/* An error is one sentence of 320 bytes: two failures always fit, with the tool's name. */
enum { MAX_NAME = 48, MAX_FAILURE = 96, MAX_FAILURES = 212 };

static peg_str cut(peg_str text, size_t max)
{
    return text.len > max ? peg__strn(text.ptr, peg__utf8_cut(text.ptr, max)) : text;
}

/* One failure with its place; the length it would have. */
static size_t write_failure(const peg_failure *failure, char *out, size_t size)
{
    const peg_str place = cut(failure->instance, MAX_FAILURE / 2);
    const size_t left = MAX_FAILURE - place.len;
    const peg_str message = cut(failure->message, left);
    const int len = snprintf(out, size, "%s%.*s%s%.*s%s", place.len ? "at " : "", PEG_ARG(place),
                             place.len ? ": " : "", PEG_ARG(message),
                             message.len < failure->message.len ? "..." : "");

    return len < 0 ? size : (size_t)len;
}

/* The first failures, and how many more there are. */
static void write_failures(const peg_report *report, char out[MAX_FAILURES + 64])
{
    const size_t n = peg_report_len(report);
    size_t len = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        char one[MAX_FAILURE + 16];
        const size_t one_len = write_failure(peg_report_at(report, i), one, sizeof(one));

        if (i > 0 && len + one_len + 2 > MAX_FAILURES)
            break;
        len += (size_t)snprintf(out + len, MAX_FAILURES + 64 - len, "%s%s", i ? "; " : "", one);
    }
    if (n - i + peg_report_more(report) > 0)
        snprintf(out + len, MAX_FAILURES + 64 - len, "; and %zu more",
                 n - i + peg_report_more(report));
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static peg_status fail_undecided(const struct subject *subject, const peg_tool *tool,
                                 const peg_checker *checker, peg_error *reterr)
{
    const char *limit = peg_checker_reason(checker);

    if (!strcmp(limit, "memory"))
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, subject->undecided,
                     "checking the %s '%.*s' stopped at the limit %s; send less, or simplify the "
                     "schema",
                     subject->what, PEG_ARG(cut(tool->name, MAX_NAME)), limit);
}

static peg_status fail_invalid(const struct subject *subject, const peg_tool *tool,
                               const peg_report *report, struct peg__buf *sentence,
                               peg_error *reterr)
{
    const peg_failure *first = peg_report_at(report, 0);
    char failures[MAX_FAILURES + 64];

    if (write_sentence(subject, tool, peg_report_text(report), sentence) == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    write_failures(report, failures);
    peg__fail(reterr, PEG_ESCHEMA, subject->invalid, "invalid %s '%.*s': %s", subject->what,
              PEG_ARG(cut(tool->name, MAX_NAME)), failures);
    if (reterr)
        peg__error_where(reterr, first->instance);
    return PEG_ESCHEMA;
}

static peg_status check_subject(const struct subject *subject, const peg_tool *tool,
                                struct peg__scratch *scratch, const peg_json *value,
                                struct peg__buf *sentence, peg_error *reterr)
{
    const peg_schema *schema = subject == &for_result ? tool->output : tool->input;
    peg_verdict verdict = peg_schema_check(schema, &scratch->checker, value);

    if (verdict == PEG_VALID)
        return PEG_OK;
    if (verdict == PEG_INVALID) {
        if (!scratch->report && peg_report_new(&scratch->report, reterr))
            return PEG_ENOMEM;
        verdict = peg_schema_report(schema, &scratch->checker, value, scratch->report);
    }
    if (verdict == PEG_INVALID)
        return fail_invalid(subject, tool, scratch->report, sentence, reterr);
    return fail_undecided(subject, tool, &scratch->checker, reterr);
}

/* ---- arguments and results ------------------------------------------------------------------- */

static peg_status fail_kind(const peg_tool *tool, const peg_json *args, struct peg__buf *sentence,
                            peg_error *reterr)
{
    char words[128];

    snprintf(words, sizeof(words), "arguments are an object by name, but this is %s %s: send {...}",
             args->kind == PEG_JSON_ARRAY || args->kind == PEG_JSON_INTEGER ? "an" : "a",
             peg_json_kind_name(peg_json_kind_of(args)));
    if (write_sentence(&for_arguments, tool, peg__str(words), sentence) == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ESCHEMA, for_arguments.invalid, "invalid arguments for '%.*s': %s",
                     PEG_ARG(cut(tool->name, MAX_NAME)), words);
}

static peg_status fill(const peg_tool *tool, const peg_json *args, peg_json_doc **ret_filled,
                       peg_error *reterr)
{
    peg_error why;
    peg_status status;

    if (!tool->has_defaults)
        return PEG_OK;
    status = peg_schema_fill(tool->input, args, ret_filled, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail_because(reterr, PEG_ELIMIT, for_arguments.undecided, &why,
                                 "the arguments for '%.*s' cannot be completed",
                                 PEG_ARG(cut(tool->name, MAX_NAME)));
    return PEG_OK;
}

peg_status peg__tool_check_args(const peg_tool *tool, struct peg__scratch *scratch,
                                const peg_json *args, peg_json_doc **ret_filled,
                                struct peg__buf *sentence, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *filled = NULL;
    peg_status status;

    if (args->kind != PEG_JSON_OBJECT)
        return fail_kind(tool, args, sentence, reterr);
    status = fill(tool, args, &filled, reterr);
    if (status == PEG_OK)
        status = check_subject(&for_arguments, tool, scratch, filled ? peg_json_root(filled) : args,
                               sentence, reterr);
    if (status)
        return status;
    *ret_filled = filled;
    filled = NULL;
    return PEG_OK;
}

bool peg__tool_refuses_as_sent(peg_tool *tool, const peg_json *args)
{
    struct peg__scratch scratch;
    bool refuses;

    peg__scratch_open(tool, &scratch);
    refuses = args->kind != PEG_JSON_OBJECT ||
              peg_schema_check(tool->input, &scratch.checker, args) == PEG_INVALID;
    peg__scratch_close(tool, &scratch);
    return refuses;
}

peg_status peg__tool_check_output(const peg_tool *tool, struct peg__scratch *scratch,
                                  const peg_json *result, struct peg__buf *sentence,
                                  peg_error *reterr)
{
    return check_subject(&for_result, tool, scratch, result, sentence, reterr);
}

peg_status peg_tool_validate(const peg_tool *tool, const peg_json *args, peg_json_doc **ret_filled,
                             peg_error *reterr)
{
    /* The idle scratch is a cache: the tool stays what it is. */
    peg_tool *owner = peg__unconst(tool);
    struct peg__scratch scratch;
    peg_status status;

    peg__scratch_open(owner, &scratch);
    status = peg__tool_check_args(tool, &scratch, args, ret_filled, NULL, reterr);
    peg__scratch_close(owner, &scratch);
    return status;
}
