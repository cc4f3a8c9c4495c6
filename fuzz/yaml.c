/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a text, read as YAML and as JSON. Any value survives being written as YAML. */

#include "pegboard/yaml.h"
#include "fuzz.h"

static void check_write(const peg_json *value)
{
    peg_json_doc *doc = NULL;
    char *text = NULL;
    char *again = NULL;
    size_t text_len;
    size_t again_len;
    peg_error error;

    REQUIRE(peg_yaml_write(value, &text, &text_len, &error) == PEG_OK, "%s", error.message);
    REQUIRE(peg_yaml_parse(peg__strn(text, text_len), NULL, &doc, &error) == PEG_OK,
            "own text is refused: %s:\n%s", error.message, text);
    REQUIRE(peg_json_equal(value, peg_json_root(doc)), "written as:\n%s", text);
    REQUIRE(peg_yaml_write(peg_json_root(doc), &again, &again_len, &error) == PEG_OK, "again");
    REQUIRE(text_len == again_len && memcmp(text, again, text_len) == 0, "%s\nthen:\n%s", text,
            again);
    peg_json_doc_free(doc);
    peg_free(again);
    peg_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_input(data, size);
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_yaml_parse(text, NULL, &doc, &error) == PEG_OK) {
        fuzz_check_form(peg_json_root(doc));
        check_write(peg_json_root(doc));
    } else {
        fuzz_check_error(&error, text);
    }
    doc = peg_json_doc_free(doc);
    if (peg_json_parse(text, NULL, &doc, NULL) == PEG_OK)
        check_write(peg_json_root(doc));
    peg_json_doc_free(doc);
    return 0;
}
