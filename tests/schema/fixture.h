/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_SCHEMA_FIXTURE_H
#define PEG_TESTS_SCHEMA_FIXTURE_H

/*
 * What the tests of schema/ share. JSON is written with ' in place of ", so that it can be read:
 * {'type':'string'}. Every check is made in both modes, which must agree, and what the report
 * says is looked at: valid UTF-8, one line, not more of the instance than is allowed.
 */

#include "../t.h"
#include "base/buf.h"
#include "base/text/str.h"
#include "pegboard/schema.h"
#include "json/json.h"

/* The text with " for '. Good until the eighth call after this one. */
static inline const char *json(const char *text)
{
    static char texts[8][4096];
    static unsigned next;
    char *copy = texts[next++ % 8];
    size_t i = 0;

    for (; text[i]; i++) {
        CHECK(i + 1 < sizeof(texts[0]));
        copy[i] = text[i] == '\'' ? '"' : text[i];
    }
    copy[i] = '\0';
    return copy;
}

/* A value from such a text; the document is the caller's. */
static inline peg_json_doc *parsed(const char *text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg__str(json(text)), NULL, &doc, &error), PEG_OK, error);
    return doc;
}

static inline peg_schema *compiled_with(const char *text, const peg_schema_options *options)
{
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_STATUS(peg_schema_compile(peg__str(json(text)), options, &schema, &error), PEG_OK, error);
    return schema;
}

static inline peg_schema *compiled(const char *text)
{
    return compiled_with(text, NULL);
}

static inline peg_checker *new_checker(void)
{
    peg_checker *checker = NULL;
    peg_error error;

    CHECK_STATUS(peg_checker_new(NULL, &checker, &error), PEG_OK, error);
    return checker;
}

static inline peg_report *new_report(void)
{
    peg_report *report = NULL;
    peg_error error;

    CHECK_STATUS(peg_report_new(&report, &error), PEG_OK, error);
    return report;
}

static inline bool is_one_line(peg_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F)
            return false;
    return peg__utf8_is_valid(text);
}

static inline void look_at_failure(const peg_failure *failure)
{
    enum { SHOWN = 64, QUOTES = 2 };

    CHECK(failure->keyword.len > 0 && failure->expected.len > 0 && failure->got.len > 0);
    CHECK(is_one_line(failure->message) && failure->message.len > 0);
    CHECK(is_one_line(failure->expected) && is_one_line(failure->got));
    CHECK(peg__utf8_is_valid(failure->instance) && peg__utf8_is_valid(failure->schema));
    /* A control character takes one byte of the instance and six of the report. */
    if (!memchr(failure->got.ptr, '\\', failure->got.len))
        CHECK(failure->got.len <= SHOWN + QUOTES);
}

/* The verdict; the report must give the same one, and reasons exactly if it is PEG_INVALID. */
static inline peg_verdict verdict_on(const peg_schema *schema, const peg_json *value)
{
    peg_checker *checker = new_checker();
    peg_report *report = new_report();
    const peg_verdict verdict = peg_schema_check(schema, checker, value);

    CHECK_INT(peg_schema_report(schema, checker, value, report), verdict);
    CHECK_INT(peg_report_len(report) > 0, verdict == PEG_INVALID);
    for (size_t i = 0; i < peg_report_len(report); i++)
        look_at_failure(peg_report_at(report, i));
    CHECK(peg__utf8_is_valid(peg_report_text(report)));
    peg_report_free(report);
    peg_checker_free(checker);
    return verdict;
}

static inline peg_verdict check_with(const char *schema_text, const peg_schema_options *options,
                                     const char *instance_text)
{
    peg_schema *schema = compiled_with(schema_text, options);
    peg_json_doc *doc = parsed(instance_text);
    const peg_verdict verdict = verdict_on(schema, peg_json_root(doc));

    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return verdict;
}

static inline peg_verdict check(const char *schema_text, const char *instance_text)
{
    return check_with(schema_text, NULL, instance_text);
}

#define VALID(schema_text, instance_text) CHECK_INT(check(schema_text, instance_text), PEG_VALID)
#define INVALID(schema_text, instance_text)                                                        \
    CHECK_INT(check(schema_text, instance_text), PEG_INVALID)

/* The compile must fail like this. `message` is a part of it. */
static inline void refuse_with(const char *schema_text, const peg_schema_options *options,
                               const char *code, const char *where, const char *message)
{
    peg_schema *schema = NULL;
    peg_error error;
    const peg_status status =
        peg_schema_compile(peg__str(json(schema_text)), options, &schema, &error);

    if (status == PEG_OK)
        T_FAIL("compiled, though it is wrong: %s", schema_text);
    CHECK(schema == NULL);
    CHECK_INT(error.status, status);
    CHECK_STR(peg__str(error.code), code);
    CHECK_STR(peg__str(error.where), where);
    if (!strstr(error.message, message))
        T_FAIL("\"%s\" does not say \"%s\"", error.message, message);
}

static inline void refuse(const char *schema_text, const char *code, const char *where,
                          const char *message)
{
    refuse_with(schema_text, NULL, code, where, message);
}

#endif
