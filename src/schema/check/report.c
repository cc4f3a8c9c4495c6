/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The report. Where a value stands is not tracked while checking: a document's values lie in
 * the order of the text, so the pointer is found from the address, and only for failures.
 */

#include "schema/check/check.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

enum { MAX_FIELD_BYTES = 4096, MAX_REPORT_BYTES = 256 << 10, MAX_CHILDREN = 64 };

struct peg_report {
    struct peg__arena arena; /* every string of the failures */
    peg_failure failures[PEG_REPORT_MAX_FAILURES];
    size_t n;
    size_t more;
    struct peg__buf field; /* scratch: one string in the making */
    struct peg__buf text;
    bool out_of_memory;
};

peg_status peg_report_new(peg_report **ret_report, peg_error *reterr)
{
    peg_report *report = peg__alloc_zero(1, sizeof(*report));

    if (!report)
        return peg__fail_nomem(reterr);
    report->field.max = MAX_FIELD_BYTES;
    report->text.max = MAX_REPORT_BYTES;
    *ret_report = report;
    return PEG_OK;
}

peg_report *peg_report_free(peg_report *report)
{
    if (report) {
        peg__arena_free(&report->arena);
        peg__buf_free(&report->field);
        peg__buf_free(&report->text);
    }
    peg__free(report);
    return NULL;
}

size_t peg_report_len(const peg_report *report)
{
    return report->n;
}

const peg_failure *peg_report_at(const peg_report *report, size_t i)
{
    return i < report->n ? &report->failures[i] : NULL;
}

size_t peg_report_more(const peg_report *report)
{
    return report->more;
}

peg_str peg_report_text(const peg_report *report)
{
    return peg__buf_view(&report->text);
}

/* ---- one failure ------------------------------------------------------------------ */

/* Takes the field as a string of the report. One that is too long is cut, not lost. */
static peg_str take_string(struct peg_report *report)
{
    const peg_str text = peg__buf_view(&report->field);
    const bool failed = report->field.status == PEG_ENOMEM;
    const char *copy = failed ? NULL : peg__arena_copy(&report->arena, text);

    peg__buf_clear(&report->field);
    if (!copy)
        report->out_of_memory = true;
    return copy ? peg__strn(copy, text.len) : (peg_str){"", 0};
}

/* Is the value a member's name? Walks down to it from the root. */
static bool is_key(const peg_json *root, const peg_json *value)
{
    const peg_json *at = root;

    while (at != value && at->kind >= PEG_JSON_ARRAY) {
        const bool is_object = at->kind == PEG_JSON_OBJECT;
        const peg_json *child = at + 1;

        for (;;) {
            if (is_object && child == value)
                return true;
            child += is_object;
            if (value < peg_json_next(child))
                break;
            child = peg_json_next(child);
        }
        at = child;
    }
    return false;
}

static const char *keyword_of(const peg_json *rule)
{
    return rule->kind == PEG_JSON_STRING ? rule->u.ptr : "false";
}

void peg__report_add(struct peg_checker *ck, const peg_json *rule, const peg_json *value,
                     const peg_json *detail)
{
    struct peg_report *report = ck->report;
    struct peg__finding finding;
    peg_failure *failure;

    if (report->n == PEG_REPORT_MAX_FAILURES) {
        report->more++;
        return;
    }
    finding = (struct peg__finding){
        .keyword = keyword_of(rule),
        .rule = rule->kind == PEG_JSON_STRING ? rule + 1 : rule,
        .value = value,
        .detail = detail,
        .schema = ck->schema,
        .is_name = value->kind == PEG_JSON_STRING && is_key(ck->root, value),
    };
    failure = &report->failures[report->n++];
    peg__json_pointer_to(ck->root, value, &report->field);
    failure->instance = take_string(report);
    peg__documents_locate(ck->schema->documents, ck->schema->n_documents, rule, &report->field);
    failure->schema = take_string(report);
    peg__buf_puts(&report->field, finding.keyword);
    failure->keyword = take_string(report);
    peg__write_expected(&finding, &report->field);
    failure->expected = take_string(report);
    peg__write_got(&finding, &report->field);
    failure->got = take_string(report);
    peg__write_sentence(&finding, &report->field);
    failure->message = take_string(report);
}

size_t peg__report_count(const struct peg_checker *ck)
{
    const size_t reported = ck->mode == MODE_REPORT ? ck->report->n + ck->report->more : 0;

    return reported + (size_t)ck->score;
}

/* ---- which branch was meant --------------------------------------------------------- */

/*
 * A branch is chosen by what tells branches apart: first the type of the value itself, then
 * const and enum (a discriminator is a member with one), then missing and unknown members;
 * anything further down hardly counts.
 */
enum {
    WEIGHT_OWN_TYPE = 100000000,
    WEIGHT_OWN_CONST = 10000000,
    WEIGHT_MEMBER_CONST = 100000,
    WEIGHT_MEMBER_TYPE = 1000,
    WEIGHT_MISSING = 1000,
    WEIGHT_UNKNOWN = 300,
    WEIGHT_OTHER = 10,
    WEIGHT_DEEPER = 1,
};

/* Only the first children are compared: the members that tell branches apart are few. */
static bool is_child(const peg_json *parent, const peg_json *value)
{
    const bool is_object = parent->kind == PEG_JSON_OBJECT;
    const peg_json *end = peg_json_next(parent);
    const peg_json *at = parent + 1;

    if (parent->kind < PEG_JSON_ARRAY || value <= parent || value >= end)
        return false;
    for (int i = 0; at < end && i < MAX_CHILDREN; i++) {
        const peg_json *child = at + is_object;

        if (child == value)
            return true;
        at = peg_json_next(child);
    }
    return false;
}

static unsigned weight(const char *keyword, bool is_own, bool is_member)
{
    if (!strcmp(keyword, "type") || !strcmp(keyword, "false"))
        return is_own ? WEIGHT_OWN_TYPE : is_member ? WEIGHT_MEMBER_TYPE : WEIGHT_DEEPER;
    if (!strcmp(keyword, "const") || !strcmp(keyword, "enum"))
        return is_own ? WEIGHT_OWN_CONST : is_member ? WEIGHT_MEMBER_CONST : WEIGHT_DEEPER;
    if (!is_own)
        return is_member ? WEIGHT_OTHER : WEIGHT_DEEPER;
    if (!strcmp(keyword, "required"))
        return WEIGHT_MISSING;
    if (!strcmp(keyword, "additionalProperties") || !strcmp(keyword, "unevaluatedProperties"))
        return WEIGHT_UNKNOWN;
    return WEIGHT_OTHER;
}

void peg__report_score(struct peg_checker *ck, const peg_json *rule, const peg_json *value)
{
    const bool is_own = value == ck->branch;

    ck->score += weight(keyword_of(rule), is_own, !is_own && is_child(ck->branch, value));
}

/* How badly a branch fits; UINT64_MAX after a halt. */
static uint64_t score_branch(struct peg_checker *ck, uint32_t node, const peg_json *value)
{
    const peg_json *outer = ck->branch;
    uint64_t score;

    ck->mode = MODE_SCORE;
    ck->branch = value;
    ck->score = 0;
    score = peg__apply(ck, node, value) ? ck->score : UINT64_MAX;
    ck->score = 0;
    ck->branch = outer;
    ck->mode = MODE_REPORT;
    return score;
}

bool peg__report_best_branch(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *value)
{
    const uint32_t *branches = &ck->schema->lists[insn->a];
    uint64_t best_score = UINT64_MAX;
    uint32_t best = 0;

    if (ck->mode != MODE_REPORT)
        return true;
    if (!peg__enter(ck, value)) /* a branch may lead back here */
        return false;
    for (uint32_t i = 0; i < insn->b && !ck->halted; i++) {
        const uint64_t score = score_branch(ck, branches[i], value);

        if (score < best_score) {
            best_score = score;
            best = i;
        }
    }
    return !ck->halted && peg__apply(ck, branches[best], value) && peg__leave(ck);
}

/* ---- a whole report ------------------------------------------------------------------- */

static void write_report_text(struct peg_report *report)
{
    for (size_t i = 0; i < report->n; i++) {
        const peg_failure *failure = &report->failures[i];

        if (failure->instance.len) {
            peg__buf_puts(&report->text, "at ");
            peg__write_line(failure->instance, &report->text);
            peg__buf_puts(&report->text, ": ");
        }
        peg__buf_str(&report->text, failure->message);
        peg__buf_putc(&report->text, '\n');
    }
    if (report->more)
        peg__buf_printf(&report->text, "and %zu more\n", report->more);
    if (report->text.status == PEG_ENOMEM)
        report->out_of_memory = true;
}

peg_verdict peg_schema_report(const peg_schema *schema, peg_checker *checker, const peg_json *value,
                              peg_report *report)
{
    peg_verdict verdict;

    peg__arena_reset(&report->arena);
    peg__buf_clear(&report->text);
    report->n = 0;
    report->more = 0;
    report->out_of_memory = false;
    checker->report = report;
    checker->score = 0;
    verdict = peg__check(schema, checker, value, MODE_REPORT);
    checker->report = NULL;

    write_report_text(report);
    if (report->out_of_memory) {
        report->n = 0;
        peg__halt(checker, "memory");
        return PEG_UNDECIDED;
    }
    /* The first failure decides, as in verdict mode, whatever limit was reached later. */
    return report->n ? PEG_INVALID : verdict;
}
