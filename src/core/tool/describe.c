/* SPDX-License-Identifier: Apache-2.0 */

/* What a tool is: one fact at a time, and all that a model may know as one document. */

#include "base/mem.h"
#include "base/text/str.h"
#include "core/tool/tool.h"

PEG__DEFINE_GETTER(const char *, peg_tool_name, peg_tool, name.ptr)
PEG__DEFINE_GETTER(const char *, peg_tool_description, peg_tool, description.ptr)
PEG__DEFINE_GETTER(const char *, peg_tool_version, peg_tool, version.ptr)

const peg_json *peg_tool_input_schema(const peg_tool *tool)
{
    return peg_schema_source(tool->input);
}

const peg_json *peg_tool_output_schema(const peg_tool *tool)
{
    return tool->output ? peg_schema_source(tool->output) : NULL;
}

const peg_json *peg_tool_examples(const peg_tool *tool)
{
    return tool->examples ? peg_json_root(tool->examples) : NULL;
}

const peg_json *peg_tool_meta(const peg_tool *tool)
{
    static const peg_json empty = {.kind = PEG_JSON_OBJECT, .u.extent = 1};

    return tool->meta ? peg_json_root(tool->meta) : &empty;
}

const char *const *peg_tool_tags(const peg_tool *tool)
{
    return tool->tags;
}

PEG__DEFINE_GETTER(const peg_artifact_kind *, peg_tool_artifact_kind, peg_tool, def.artifact_kind)
PEG__DEFINE_GETTER(peg_collision, peg_tool_on_collision, peg_tool, def.on_collision)
PEG__DEFINE_GETTER(int64_t, peg_tool_timeout_ms, peg_tool, def.timeout_ms)
PEG__DEFINE_GETTER(bool, peg_tool_is_ephemeral, peg_tool, def.ephemeral)
PEG__DEFINE_GETTER(bool, peg_tool_is_trusted, peg_tool, def.trusted)
PEG__DEFINE_GETTER(bool, peg_tool_is_inline, peg_tool, def.inline_result)
PEG__DEFINE_GETTER(bool, peg_tool_is_artifact_tool, peg_tool, is_artifact_tool)
PEG__DEFINE_GETTER(bool, peg_tool_is_read_only, peg_tool, def.read_only)
PEG__DEFINE_GETTER(bool, peg_tool_is_idempotent, peg_tool, def.idempotent)
PEG__DEFINE_GETTER(bool, peg_tool_is_destructive, peg_tool, def.destructive)
PEG__DEFINE_GETTER(bool, peg_tool_is_additive, peg_tool, def.additive)

/* ---- the whole ------------------------------------------------------------------------------- */

static void add_string(peg_json_builder *b, const char *key, peg_str value)
{
    peg_json_add_key(b, peg__str(key));
    peg_json_add_string(b, value);
}

static void add_value(peg_json_builder *b, const char *key, const peg_json *value)
{
    if (!value)
        return;
    peg_json_add_key(b, peg__str(key));
    peg_json_add_copy(b, value);
}

void peg__tool_add_tags(const peg_tool *tool, peg_json_builder *b)
{
    if (!tool->tags[0])
        return;
    peg_json_add_key(b, peg__str("tags"));
    peg_json_open_array(b);
    for (const char *const *tag = tool->tags; *tag; tag++)
        peg_json_add_string(b, peg__str(*tag));
    peg_json_close(b);
}

static void add_hint(peg_json_builder *b, const char *key, bool is_set)
{
    if (!is_set)
        return;
    peg_json_add_key(b, peg__str(key));
    peg_json_add_bool(b, true);
}

static void add_hints(peg_json_builder *b, const peg_tool *tool)
{
    const peg_tool_def *def = &tool->def;

    if (!def->read_only && !def->idempotent && !def->destructive && !def->additive)
        return;
    peg_json_add_key(b, peg__str("hints"));
    peg_json_open_object(b);
    add_hint(b, "readOnly", def->read_only);
    add_hint(b, "idempotent", def->idempotent);
    add_hint(b, "destructive", def->destructive);
    add_hint(b, "additive", def->additive);
    peg_json_close(b);
}

peg_status peg_tool_describe(const peg_tool *tool, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    add_string(b, "name", tool->name);
    add_string(b, "description", tool->description);
    add_value(b, "inputSchema", peg_tool_input_schema(tool));
    add_value(b, "outputSchema", peg_tool_output_schema(tool));
    if (tool->version.len)
        add_string(b, "version", tool->version);
    peg__tool_add_tags(tool, b);
    add_value(b, "examples", peg_tool_examples(tool));
    add_hints(b, tool);
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}
