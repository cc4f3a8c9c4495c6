/* SPDX-License-Identifier: Apache-2.0 */
#include <pegboard/schema.h>
#include <stdio.h>
int main(void)
{
    peg_str rules = peg_cstr("{\"type\": \"object\", \"required\": [\"city\"], \"properties\":"
                             " {\"days\": {\"type\": \"integer\", \"maximum\": 14}}}");
    peg_schema *schema = NULL;   /* immutable: share it between threads */
    peg_checker *checker = NULL; /* scratch memory: one per thread */
    peg_report *report = NULL;
    peg_json_doc *call = NULL;
    peg_error error;
    if (peg_schema_compile(rules, NULL, &schema, &error) ||
        peg_checker_new(NULL, &checker, &error) || peg_report_new(&report, &error) ||
        peg_json_parse(peg_cstr("{\"days\": 30}"), NULL, &call, &error))
        return fprintf(stderr, "%s\n", error.message), 2;
    peg_verdict verdict = peg_schema_report(schema, checker, peg_json_root(call), report);
    peg_str text = peg_report_text(report); /* one line for each thing that is wrong */
    printf("%s\n%.*s", verdict == PEG_VALID ? "valid" : "invalid", (int)text.len, text.ptr);
    peg_json_doc_free(call);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_schema_unref(schema);
    return (int)verdict;
}
