/* SPDX-License-Identifier: Apache-2.0 */

/* A tool of the catalog as clients see it. Its schemas are kept as text, and read for each list. */

#include <stdio.h>

#include "base/text/str.h"
#include "gateway/mcp/internal.h"

/* They were read before, at registration: only memory can be missing. */
static peg_status read_schema(peg_str text, peg_json_doc **ret_doc)
{
    if (!text.len)
        return PEG_OK;
    return peg_json_parse(text, NULL, ret_doc, NULL) ? PEG_ENOMEM : PEG_OK;
}

static const char *const *copy_tags(struct gw_mcp_definition *definition,
                                    const struct gw_tool *tool)
{
    size_t n = 0;

    for (; n < tool->n_tags && n < GW_MCP_TAGS; n++)
        definition->tags[n] = tool->tags[n].ptr;
    definition->tags[n] = NULL;
    return definition->tags;
}

static bool qualify(struct gw_mcp_definition *definition, const struct gw_toolset *toolset,
                    const struct gw_tool *tool)
{
    if (!wire_mcp_name(toolset->name, tool->name, definition->name))
        return false;
    snprintf(definition->title, sizeof(definition->title), PEG_FMT "/" PEG_FMT,
             PEG_ARG(toolset->name), PEG_ARG(tool->name));
    definition->tool.name = peg__str(definition->name);
    if (!tool->title.len)
        definition->tool.title = peg__str(definition->title);
    return true;
}

peg_status gw_mcp_define(struct gw_mcp_definition *definition, const struct gw_toolset *toolset,
                         const struct gw_tool *tool, bool is_qualified)
{
    peg_status status;

    definition->input = NULL;
    definition->output = NULL;
    definition->examples = NULL;
    definition->tool = (struct mcp_tool){
        .name = tool->name,
        .description = tool->description,
        .title = tool->title,
        .is_read_only = tool->is_read_only,
        .is_idempotent = tool->is_idempotent,
        .is_destructive = tool->is_destructive,
        .is_additive = tool->is_additive,
        .artifact_kind = tool->artifact_kind.ptr,
        .version = tool->version.len ? tool->version.ptr : toolset->version.ptr,
        .tags = copy_tags(definition, tool),
        .answer_ms = PEG_LIMIT_GATEWAY_ASK_MS, /* any tool may ask */
    };
    if (is_qualified && !qualify(definition, toolset, tool))
        return PEG_ENOMEM;
    status = read_schema(tool->input_schema, &definition->input);
    if (!status)
        status = read_schema(tool->output_schema, &definition->output);
    if (!status)
        status = read_schema(tool->examples, &definition->examples);
    if (definition->examples)
        definition->tool.examples = peg_json_root(definition->examples);
    if (definition->input)
        definition->tool.input_schema = peg_json_root(definition->input);
    if (definition->output)
        definition->tool.output_schema = peg_json_root(definition->output);
    return status;
}

void gw_mcp_undefine(struct gw_mcp_definition *definition)
{
    definition->input = peg_json_doc_free(definition->input);
    definition->output = peg_json_doc_free(definition->output);
    definition->examples = peg_json_doc_free(definition->examples);
}
