/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: the JSON text of definitions. Whatever they are, each vendor is sent JSON of a bounded
 * size with one entry a tool, or an error says why not; the same each time, with a report or
 * without; and names come back as they went out.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/dialects/dialects.h"
#include "fuzz.h"

static const peg_json *tools_of(const peg_json *root, peg_vendor vendor)
{
    const peg_json *declarations;

    if (vendor != PEG_VENDOR_GEMINI || root->len == 0)
        return root;
    REQUIRE(root->len == 1, "Gemini has one entry");
    declarations = peg_json_get(root + 1, "functionDeclarations");
    REQUIRE(declarations, "which has declarations");
    return declarations;
}

static void check_losses(const peg_definition_losses *losses)
{
    REQUIRE(peg_definition_losses_len(losses) <= PEG_LIMIT_LOSSES, "a report has an end");
    for (size_t i = 0; i < peg_definition_losses_len(losses); i++) {
        const peg_definition_loss *loss = peg_definition_losses_at(losses, i);

        REQUIRE(loss->note.len > 0 && loss->what[0], "a loss says what it is");
        REQUIRE(peg__utf8_is_valid(loss->where) && peg__utf8_is_valid(loss->tool), "in UTF-8");
        REQUIRE(loss->where.len == 0 || loss->where.ptr[0] == '/', "%s", loss->where.ptr);
    }
}

static void check_text(const char *text, size_t len, const peg_json *definitions, peg_vendor vendor)
{
    peg_json_doc *doc = fuzz_parse_own(text, len);
    const peg_json *tools = tools_of(peg_json_root(doc), vendor);

    REQUIRE(tools->kind == PEG_JSON_ARRAY && tools->len == definitions->len, "%u tools of %u",
            tools->len, definitions->len);
    peg_json_doc_free(doc);
}

static void check_names(const peg_json *definitions, const peg_definitions_options *options)
{
    struct peg__names *names = NULL;

    REQUIRE(peg__names_new(definitions, NULL, options, &names, NULL) == PEG_OK, "names");
    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_str tool = peg_json_str(peg_json_get(definition, "name"));
        const peg_str wire = peg__names_out(names, tool);

        REQUIRE(wire.len > 0 && wire.len <= PEG_LIMIT_NAME_BYTES, "%s", wire.ptr);
        REQUIRE(peg__str_eq(peg__names_in(names, wire), tool), "'%s' does not come back", tool.ptr);
    }
    peg__names_free(names);
}

static void check(const peg_json *definitions, const peg_definitions_options *options)
{
    peg_definition_losses *losses = NULL;
    char *first = NULL;
    char *second = NULL;
    size_t len;
    peg_error error;

    if (peg_definitions_render(definitions, options, &first, &len, &losses, &error)) {
        REQUIRE(error.status == PEG_EINVAL || error.status == PEG_ELIMIT, "%s", error.message);
        REQUIRE(error.message[0] && peg__utf8_is_valid(peg__str(error.message)), "it says why");
        return;
    }
    check_text(first, len, definitions, options->vendor);
    check_losses(losses);
    check_names(definitions, options);
    REQUIRE(peg_definitions_render(definitions, options, &second, NULL, NULL, NULL) == PEG_OK,
            "once more");
    REQUIRE(strcmp(first, second) == 0, "first %s, then %s", first, second);
    peg_free(first);
    peg_free(second);
    peg_definition_losses_free(losses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_json_options parsing = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc = NULL;

    if (peg_json_parse(fuzz_input(data, size), &parsing, &doc, NULL))
        return 0;
    for (int i = 0; i < 2 * PEG_N_VENDORS; i++) {
        const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                 .vendor = (peg_vendor)(i / 2), .strict = i % 2,
                                                 .json_schema = i % 2};

        check(peg_json_root(doc), &options);
    }
    peg_json_doc_free(doc);
    return 0;
}
