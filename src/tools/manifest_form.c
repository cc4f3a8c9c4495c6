/* SPDX-License-Identifier: Apache-2.0 */

/* The form of a manifest: its schema knows every key, and says which one was meant. */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/schema.h"
#include "tools/manifest_internal.h"
#include "tools/manifest_schema.h"
#include "json/json.h"

/* A key that nobody knows is told first: what is missing may be what it was meant to be. */
static const peg_failure *pick_failure(const peg_report *report)
{
    for (size_t i = 0; i < peg_report_len(report); i++) {
        const peg_failure *failure = peg_report_at(report, i);

        if (peg__str_is(failure->keyword, "additionalProperties"))
            return failure;
    }
    return peg_report_at(report, 0);
}

static size_t cut(peg_str words, size_t most)
{
    return words.len <= most ? words.len : peg__utf8_cut(words.ptr, most);
}

static peg_status tell_failure(const struct peg__manifest_reader *r, const peg_report *report)
{
    const peg_failure *failure = pick_failure(report);
    const bool is_key =
        peg__str_is(failure->keyword, "additionalProperties") && failure->got.len > 2;
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_PATH_BYTES);
    char words[300];
    peg_status status;

    peg__buf_str(&pointer, failure->instance);
    /* 'name': the report tells of the object, and the place of the key is wanted. */
    if (is_key)
        peg__json_pointer_push(peg__strn(failure->got.ptr + 1, failure->got.len - 2), &pointer);
    snprintf(words, sizeof(words), "%.*s", (int)cut(failure->message, sizeof(words) - 1),
             failure->message.ptr);
    status = is_key ? peg__manifest_fail_key(r, peg__buf_view(&pointer), words)
                    : peg__manifest_fail_at(r, peg__buf_view(&pointer), words);
    if (pointer.status == PEG_ENOMEM)
        status = peg__fail_nomem(r->reterr);
    peg__buf_free(&pointer);
    return status;
}

static peg_status check_with(const struct peg__manifest_reader *r, const peg_schema *schema,
                             peg_checker *checker, peg_report *report)
{
    switch (peg_schema_report(schema, checker, r->root, report)) {
    case PEG_VALID:
        return PEG_OK;
    case PEG_INVALID:
        return tell_failure(r, report);
    case PEG_UNDECIDED:
        break;
    }
    if (strcmp(peg_checker_reason(checker), "memory") == 0)
        return peg__fail_nomem(r->reterr);
    return peg__fail(r->reterr, PEG_ELIMIT, "E_MANIFEST", "the manifest is too large to check (%s)",
                     peg_checker_reason(checker));
}

peg_status peg__manifest_check_form(const struct peg__manifest_reader *r)
{
    peg_schema *schema = NULL;
    peg_checker *checker = NULL;
    peg_report *report = NULL;
    peg_status status =
        peg_schema_compile(peg__str(peg__manifest_schema), NULL, &schema, r->reterr);

    if (!status)
        status = peg_checker_new(NULL, &checker, r->reterr);
    if (!status)
        status = peg_report_new(&report, r->reterr);
    if (!status)
        status = check_with(r, schema, checker, report);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_schema_unref(schema);
    return status;
}
