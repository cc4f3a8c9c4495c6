/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a JSON Pointer, a line end, a JSON text. */

#include "base/limits.h"
#include "fuzz.h"

enum { MAX_VALUES = 500 };

/* Through a buffer, because a key may contain NUL. */
static void check_way_back(const peg_json *root, const peg_json *value)
{
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_json *found = NULL;

    peg__json_pointer_to(root, value, &pointer);
    REQUIRE(pointer.status == PEG_OK, "there is a pointer to every value");
    REQUIRE(peg_json_pointer(root, peg__buf_view(&pointer), &found, NULL) == PEG_OK,
            "%s leads nowhere", peg__buf_view(&pointer).ptr);
    /* A member's key leads to the member. */
    REQUIRE(found == value || (found == value + 1 && value->kind == PEG_JSON_STRING),
            "%s leads elsewhere", peg__buf_view(&pointer).ptr);
    peg__buf_free(&pointer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str text = fuzz_input(data, size);
    const peg_str pointer = fuzz_line(&text);
    peg_json_doc *doc = NULL;
    const peg_json *root;
    const peg_json *found;
    peg_error error;

    if (peg_json_parse(text, NULL, &doc, NULL) != PEG_OK)
        return 0;
    root = peg_json_root(doc);
    if (peg_json_pointer(root, pointer, &found, &error) == PEG_OK) {
        REQUIRE(found >= root && found < peg_json_next(root), "found inside the document");
        check_way_back(root, found);
    } else {
        fuzz_check_error(&error, pointer);
    }
    for (size_t i = 0; i < peg_json_extent(root) && i < MAX_VALUES; i++)
        check_way_back(root, root + i);
    peg_json_doc_free(doc);
    return 0;
}
