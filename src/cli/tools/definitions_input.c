/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the definitions in a file: an array, {"tools": [...]}, or a turn. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/tools/definitions.h"
#include "pegboard/yaml.h"

/* ---- reading ---------------------------------------------------------------------------- */

/* Standard input has no name to go by: JSON starts with a bracket. */
static bool is_yaml(const char *path, peg_str text)
{
    size_t i = 0;

    if (!cli_is_stdin(path))
        return cli_syntax_of(path) == CLI_SYNTAX_YAML;
    while (i < text.len && strchr(" \t\r\n", text.ptr[i]) && text.ptr[i])
        i++;
    return i < text.len && text.ptr[i] != '[' && text.ptr[i] != '{';
}

static peg_status parse(const char *path, peg_str text, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_status status;

    if (is_yaml(path, text))
        return peg_yaml_parse(text, NULL, ret_doc, reterr);
    status = peg_json_parse(text, NULL, ret_doc, reterr);
    if (status && reterr)
        cli_hint(text, false, reterr);
    return status;
}

static peg_status read_document(const char *path, peg_json_doc **ret_doc, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = cli_read_file(path, &text, reterr);

    if (!status)
        status = parse(path, peg__buf_view(&text), ret_doc, reterr);
    peg__buf_free(&text);
    return status;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The array, or NULL with *ret_is_turn for a turn that has none. */
static const peg_json *find_definitions(const peg_json *root, bool *ret_is_turn)
{
    static const char *const keys[] = {"pegboard.tool_definitions@v1",
                                       "geppetto.tool_definitions@v1"};
    const peg_json *data = peg_json_get(root, "data");
    const peg_json *tools = peg_json_get(root, "tools");

    *ret_is_turn = false;
    if (root->kind == PEG_JSON_ARRAY)
        return root;
    if (tools && tools->kind == PEG_JSON_ARRAY)
        return tools;
    for (size_t i = 0; data && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const peg_json *definitions = peg_json_get(data, keys[i]);

        if (definitions)
            return definitions;
    }
    *ret_is_turn = peg_json_get(root, "blocks");
    return NULL;
}

/* ---- one form for all ---- */

static bool is_schema_name(peg_str name)
{
    return peg__str_is(name, "parameters") || peg__str_is(name, "inputSchema") ||
           peg__str_is(name, "input_schema");
}

static void add_definition(peg_json_builder *b, const peg_json *definition)
{
    const peg_json *function = peg_json_get(definition, "function");
    bool has_schema = false;

    if (function && function->kind == PEG_JSON_OBJECT)
        definition = function;
    if (definition->kind != PEG_JSON_OBJECT) {
        peg_json_add_copy(b, definition);
        return;
    }
    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (definition, key) {
        const bool is_schema = is_schema_name(peg_json_str(key));

        if (is_schema && has_schema)
            continue;
        has_schema = has_schema || is_schema;
        peg_json_add_key(b, is_schema ? peg__str("parameters") : peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
    peg_json_close(b);
}

static peg_status normalise(const peg_json *definitions, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    if (definitions->kind != PEG_JSON_ARRAY) {
        peg_json_add_copy(b, definitions);
        return peg_json_builder_finish(b, ret_doc, reterr);
    }
    peg_json_open_array(b);
    PEG_JSON_EACH_ITEM (definitions, definition)
        add_definition(b, definition);
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

peg_status definitions_load(const char *path, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_doc *document = NULL;
    const peg_json *definitions;
    bool is_turn;
    peg_status status = read_document(path, &document, reterr);

    if (status)
        return status;
    definitions = find_definitions(peg_json_root(document), &is_turn);
    if (definitions)
        status = normalise(definitions, ret_doc, reterr);
    else if (is_turn)
        *ret_doc = NULL;
    else
        status = peg__fail(reterr, PEG_EINVAL, "E_DEFINITIONS",
                           "there are no definitions here: it should be an array of them, an "
                           "object with \"tools\", or a turn");
    peg_json_doc_free(document);
    return status;
}
