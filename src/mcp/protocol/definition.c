/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A tool as a list shows it. Our schemas may say more than a client's idea of a schema takes: the
 * root of an input schema must say "type": "object", and to legacy clients every property is an
 * object and so is every structured result. What is written means the same.
 */

#include "base/text/str.h"
#include "mcp/protocol/internal.h"

/* true and false are schemas too. */
static void put_property(struct peg__out *out, const peg_json *schema)
{
    if (schema->kind == PEG_JSON_BOOL)
        peg__out_raw(out, peg__str(peg_json_is_true(schema) ? "{}" : "{\"not\":{}}"));
    else
        peg__out_value(out, schema);
}

static void put_properties(struct peg__out *out, const peg_json *properties)
{
    peg__out_object(out);
    PEG_JSON_EACH_MEMBER (properties, key) {
        peg__out_key_str(out, peg_json_str(key));
        put_property(out, key + 1);
    }
    peg__out_end_object(out);
}

static void put_object_schema(struct peg__out *out, const peg_json *schema, enum mcp_era era)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "object");
    PEG_JSON_EACH_MEMBER (schema, key) {
        const peg_str name = peg_json_str(key);

        if (peg__str_is(name, "type"))
            continue;
        peg__out_key_str(out, name);
        if (era == MCP_LEGACY && peg__str_is(name, "properties"))
            put_properties(out, key + 1);
        else
            peg__out_value(out, key + 1);
    }
    peg__out_end_object(out);
}

static bool is_object_schema(const peg_json *schema)
{
    return peg__str_is(peg_json_str(peg_json_get(schema, "type")), "object");
}

static void put_output_schema(struct peg__out *out, const peg_json *schema, enum mcp_era era)
{
    if (peg_json_kind_of(schema) != PEG_JSON_OBJECT ||
        (era == MCP_LEGACY && !is_object_schema(schema)))
        return;
    peg__out_key(out, "outputSchema");
    if (era == MCP_LEGACY)
        put_object_schema(out, schema, era);
    else
        peg__out_value(out, schema);
}

/* Only what its author said: a tool that is not marked is not known to be harmless. */
static void put_annotations(struct peg__out *out, const struct mcp_tool *tool)
{
    const bool is_additive = tool->is_additive && !tool->is_destructive;
    const struct {
        const char *name;
        bool is_set;
        bool value;
    } hints[] = {{"readOnlyHint", tool->is_read_only, true},
                 {"idempotentHint", tool->is_idempotent, true},
                 {"destructiveHint", tool->is_destructive || is_additive, !is_additive}};

    if (!tool->is_read_only && !tool->is_idempotent && !tool->is_destructive && !is_additive)
        return;
    peg__out_key(out, "annotations");
    peg__out_object(out);
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (hints[i].is_set) {
            peg__out_key(out, hints[i].name);
            peg__out_bool(out, hints[i].value);
        }
    }
    peg__out_end_object(out);
}

static void put_tags(struct peg__out *out, const char *const *tags)
{
    peg__out_key(out, "pegboard/tags");
    peg__out_array(out);
    for (; *tags; tags++)
        peg__out_cstring(out, *tags);
    peg__out_end_array(out);
}

static void put_tool_meta(struct peg__out *out, const struct mcp_tool *tool)
{
    const bool has_version = tool->version && tool->version[0];
    const bool has_tags = tool->tags && tool->tags[0];
    const bool has_kind = tool->artifact_kind && tool->artifact_kind[0];

    if (!has_version && !has_tags && !tool->examples && !has_kind && !tool->answer_ms)
        return;
    peg__out_key(out, "_meta");
    peg__out_object(out);
    if (has_version)
        peg__out_cmember(out, "pegboard/version", tool->version);
    if (has_tags)
        put_tags(out, tool->tags);
    if (tool->examples) {
        peg__out_key(out, "pegboard/examples");
        peg__out_value(out, tool->examples);
    }
    if (has_kind)
        peg__out_cmember(out, "pegboard/artifact-kind", tool->artifact_kind);
    if (tool->answer_ms) {
        peg__out_key(out, "pegboard/answer-ms");
        peg__out_integer(out, tool->answer_ms);
    }
    peg__out_end_object(out);
}

void mcp_put_tool(struct peg__out *out, const struct mcp_tool *tool, enum mcp_era era)
{
    peg__out_object(out);
    peg__out_member(out, "name", tool->name);
    if (tool->title.len)
        peg__out_member(out, "title", tool->title);
    if (tool->description.len)
        peg__out_member(out, "description", tool->description);
    peg__out_key(out, "inputSchema");
    put_object_schema(out, tool->input_schema, era);
    put_output_schema(out, tool->output_schema, era);
    put_annotations(out, tool);
    put_tool_meta(out, tool);
    peg__out_end_object(out);
}
