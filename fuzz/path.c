/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a JSONPath, a line end, a JSON text. A path finds the same within its bounds, always. */

#include "fuzz.h"

enum { MAX_NODES = 200, MAX_STEPS = 20000 };

static void check_find(const peg_json_path *path, const peg_json *root)
{
    peg_json_nodes nodes = {0};
    peg_json_nodes again = {0};
    peg_error error;
    const peg_status status = peg_json_path_find(path, root, MAX_NODES, MAX_STEPS, &nodes, &error);

    REQUIRE(status == peg_json_path_find(path, root, MAX_NODES, MAX_STEPS, &again, NULL), "again");
    if (status) {
        REQUIRE(status == PEG_ELIMIT, "%s", error.message);
        return;
    }
    REQUIRE(nodes.len <= MAX_NODES && nodes.len == again.len, "%zu nodes", nodes.len);
    for (size_t i = 0; i < nodes.len; i++) {
        REQUIRE(nodes.items[i] == again.items[i], "node %zu differs", i);
        REQUIRE(nodes.items[i] >= root && nodes.items[i] < peg_json_next(root), "node inside");
    }
    peg_free(nodes.items);
    peg_free(again.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str text = fuzz_input(data, size);
    const peg_str expression = fuzz_line(&text);
    peg_json_path *path = NULL;
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_path_new(expression, &path, &error) != PEG_OK)
        fuzz_check_error(&error, expression);
    else if (peg_json_parse(text, NULL, &doc, NULL) == PEG_OK)
        check_find(path, peg_json_root(doc));
    peg_json_doc_free(doc);
    peg_json_path_free(path);
    return 0;
}
