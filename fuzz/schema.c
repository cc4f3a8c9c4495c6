/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: one byte of options, a schema, a line end, an instance. '0' to '6' is the dialect by its
 * number in peg_dialect; '8' to '>' the same with formats asserted.
 */

#include "pegboard/schema.h"
#include "base/text/str.h"
#include "fuzz.h"

enum {
    MAX_STEPS = 20000,
    MAX_GOT = 64 * 6 + 2, /* 64 bytes of the instance, each as \u007f at worst, and quotes */
};

static void check_report(const peg_report *report, const peg_json *instance, peg_verdict verdict)
{
    const size_t n = peg_report_len(report);

    REQUIRE(n <= PEG_REPORT_MAX_FAILURES, "%zu failures", n);
    REQUIRE((n > 0) == (verdict == PEG_INVALID) || verdict == PEG_UNDECIDED, "%zu failures", n);
    for (size_t i = 0; i < n; i++) {
        const peg_failure *failure = peg_report_at(report, i);
        const peg_json *place;

        REQUIRE(peg_json_pointer(instance, failure->instance, &place, NULL) == PEG_OK, "%.*s",
                PEG_ARG(failure->instance));
        REQUIRE(failure->got.len <= MAX_GOT, "%zu bytes of the instance", failure->got.len);
        REQUIRE(failure->message.len > 0 && failure->keyword.len > 0, "a failure speaks");
        REQUIRE(peg__utf8_is_valid(failure->message), "a message can be shown");
        REQUIRE(peg__utf8_is_valid(failure->got), "%.*s", PEG_ARG(failure->got));
    }
    REQUIRE(peg__utf8_is_valid(peg_report_text(report)), "a report can be shown");
}

static void check_fill(const peg_schema *schema, const peg_json *instance)
{
    peg_json_doc *filled = NULL;
    peg_error error;

    if (peg_schema_fill(schema, instance, &filled, &error) != PEG_OK)
        REQUIRE(error.status != PEG_EINVAL && error.message[0], "%s", error.message);
    else if (filled)
        fuzz_check_form(peg_json_root(filled));
    peg_json_doc_free(filled);
}

static void check_instance(const peg_schema *schema, const peg_json *instance)
{
    static const peg_checker_options bounds = {PEG_CHECKER_OPTIONS_INIT, .max_steps = MAX_STEPS};
    static peg_checker *checker;
    static peg_report *report;
    peg_verdict verdict;

    if (!checker)
        REQUIRE(!peg_checker_new(&bounds, &checker, NULL) && !peg_report_new(&report, NULL), "new");
    verdict = peg_schema_check(schema, checker, instance);
    REQUIRE(verdict != PEG_UNDECIDED || peg_checker_reason(checker), "undecided for a reason");
    REQUIRE(peg_schema_report(schema, checker, instance, report) == verdict,
            "the report agrees with verdict %d", verdict);
    check_report(report, instance, verdict);
    REQUIRE(peg_schema_check(schema, checker, instance) == verdict, "the same verdict again");
    check_fill(schema, instance);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str instance_text = fuzz_input(data, size);
    peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT};
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_str schema_text;
    peg_error error;

    if (size == 0)
        return 0;
    options.dialect = (peg_dialect)((data[0] & 7) % (PEG_DIALECT_V1 + 1));
    options.format = data[0] & 8 ? PEG_FORMAT_ASSERT : PEG_FORMAT_BY_DIALECT;
    instance_text = peg__str_from(instance_text, 1);
    schema_text = fuzz_line(&instance_text);
    if (peg_schema_compile(schema_text, &options, &schema, &error) != PEG_OK)
        fuzz_check_error(&error, schema_text);
    else if (peg_json_parse(instance_text, NULL, &doc, NULL) == PEG_OK)
        check_instance(schema, peg_json_root(doc));
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return 0;
}
