/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a JSON5 text. Its value holds together, JSON reads the same way, and what is refused is
 * refused at a place. */

#include "json/json.h"

#include "fuzz.h"

/* Every JSON text is a JSON5 text with the same value. */
static void check_json(peg_str text, const peg_json_doc *json5)
{
    peg_json_doc *json = NULL;

    if (peg_json_parse(text, NULL, &json, NULL) != PEG_OK)
        return;
    REQUIRE(json5, "JSON is JSON5");
    REQUIRE(peg_json_equal(peg_json_root(json), peg_json_root(json5)), "one value");
    peg_json_doc_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_input(data, size);
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg__json5_parse(text, NULL, &doc, &error) == PEG_OK)
        fuzz_check_form(peg_json_root(doc));
    else
        fuzz_check_error(&error, text);
    check_json(text, doc);
    peg_json_doc_free(doc);
    return 0;
}
