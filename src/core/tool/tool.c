/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Making a tool: look at every field, then copy, compile and check, each step of which is a line
 * of `steps`. What cannot work is refused here, so that nothing of it is left for a call.
 */

#include "core/tool/tool.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "schema/compile/program.h"
#include "json/json.h"

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return peg__is_alnum(c) || (c != '\0' && strchr("_.:/-", c));
}

static peg_status check_name(const peg_tool_def *def, peg_error *reterr)
{
    const size_t len = def->name ? strlen(def->name) : 0;

    if (len == 0)
        return peg__tool_refuse(reterr, "/name", "a tool needs a name; lower snake_case is best");
    if (len > PEG_LIMIT_NAME_BYTES)
        return peg__tool_refuse(reterr, "/name", "the name has more than 256 bytes");
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(def->name[i]))
            return peg__tool_refuse(
                reterr, "/name", "a name consists of letters, digits and _ . : / - of ASCII only");
    return PEG_OK;
}

static peg_status check_description(const peg_tool_def *def, peg_error *reterr)
{
    const peg_str text = peg_cstr(def->description);

    if (text.len == 0)
        return peg__tool_refuse(reterr, "/description",
                                "say what the tool does and when to use it: the model reads this");
    if (text.len > PEG_LIMIT_DESCRIPTION_BYTES)
        return peg__tool_refuse(reterr, "/description", "it has more than 65536 bytes; shorten it");
    if (!peg__utf8_is_valid(text))
        return peg__tool_refuse(reterr, "/description", "it is not UTF-8");
    return PEG_OK;
}

/* A version or a tag: a word or two. */
static peg_status check_word(const char *word, const char *where, peg_error *reterr)
{
    const peg_str text = peg_cstr(word);

    if (text.len > PEG_LIMIT_NAME_BYTES)
        return peg__tool_refuse(reterr, where, "it has more than 256 bytes; shorten it");
    if (!peg__utf8_is_valid(text))
        return peg__tool_refuse(reterr, where, "it is not UTF-8");
    return PEG_OK;
}

static peg_status check_tags(const peg_tool_def *def, peg_error *reterr)
{
    char where[32];

    for (size_t i = 0; def->tags && def->tags[i]; i++) {
        snprintf(where, sizeof(where), "/tags/%zu", i);
        if (i >= PEG_LIMIT_TAGS)
            return peg__tool_refuse(reterr, where, "there are more than 64 tags; drop some");
        if (!*def->tags[i])
            return peg__tool_refuse(reterr, where, "a tag cannot be empty; leave it out");
        if (check_word(def->tags[i], where, reterr))
            return PEG_EINVAL;
    }
    return PEG_OK;
}

static peg_status check_kind(const peg_tool_def *def, bool is_artifact_tool, peg_error *reterr)
{
    peg_error why;

    if (!def->artifact_kind)
        return PEG_OK;
    if (is_artifact_tool)
        return peg__tool_refuse(reterr, "/artifact_kind",
                                "answers of an artifact tool never become artifacts; leave it out");
    if (peg_artifact_kind_check(def->artifact_kind, &why))
        return peg__tool_refuse_because(reterr, "/artifact_kind", &why);
    return PEG_OK;
}

static peg_status check_fields(const peg_tool_def *def, bool is_artifact_tool, peg_error *reterr)
{
    peg_status status;

    if (!def)
        return peg__tool_refuse(reterr, "", "a tool needs a definition, not NULL");
    if ((status = check_name(def, reterr)) || (status = check_description(def, reterr)))
        return status;
    if (!def->run)
        return peg__tool_refuse(reterr, "/run", "a tool needs a handler: set run");
    if ((unsigned)def->on_collision > PEG_COLLISION_KEEP)
        return peg__tool_refuse(reterr, "/on_collision",
                                "it must be one of PEG_COLLISION_FAIL, _REPLACE and _KEEP");
    if ((status = check_word(def->version, "/version", reterr)) ||
        (status = check_tags(def, reterr)))
        return status;
    return check_kind(def, is_artifact_tool, reterr);
}

/* ---- steps: each fills a part of a tool that is not shared yet -------------------------- */

static size_t n_tags(const peg_tool_def *def)
{
    size_t n = 0;

    while (def->tags && def->tags[n])
        n++;
    return n;
}

/* Copies a string to *at, which moves on behind it. */
static peg_str put_string(char **at, const char *s)
{
    const peg_str text = peg_cstr(s);
    const peg_str copy = peg__strn(*at, text.len);

    if (text.len)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* One block of just the right size: a registry may have thousands of tools. Tags come first, for
 * their alignment. */
static peg_status copy_strings(peg_tool *tool, const peg_tool_def *def, peg_error *reterr)
{
    const size_t n = n_tags(def);
    size_t size = (n + 1) * sizeof(*tool->tags) + strlen(def->name) + strlen(def->description) +
                  peg_cstr(def->version).len + 3;
    char *at;

    for (size_t i = 0; i < n; i++)
        size += strlen(def->tags[i]) + 1;
    tool->tags = peg__alloc(size);
    if (!tool->tags)
        return peg__fail_nomem(reterr);
    at = (char *)(tool->tags + n + 1);
    tool->name = put_string(&at, def->name);
    tool->description = put_string(&at, def->description);
    tool->version = put_string(&at, def->version);
    for (size_t i = 0; i < n; i++)
        tool->tags[i] = put_string(&at, def->tags[i]).ptr;
    tool->tags[n] = NULL;
    tool->def.name = tool->name.ptr;
    tool->def.description = tool->description.ptr;
    tool->def.version = tool->version.ptr;
    return PEG_OK;
}

static peg_status parse_field(const char *text, const char *field, size_t max_bytes,
                              peg_json_doc **ret_doc, peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = max_bytes,
                                      .duplicates = PEG_JSON_REFUSE};
    peg_error why;

    if (peg_json_parse(peg__str(text), &options, ret_doc, &why))
        return peg__tool_refuse_because(reterr, field, &why);
    peg__json_doc_trim(*ret_doc);
    return PEG_OK;
}

static peg_status read_meta(peg_tool *tool, const peg_tool_def *def, peg_error *reterr)
{
    peg_status status;

    if (!def->meta)
        return PEG_OK;
    status = parse_field(def->meta, "/meta", PEG_LIMIT_META_BYTES, &tool->meta, reterr);
    if (status)
        return status;
    if (peg_json_root(tool->meta)->kind != PEG_JSON_OBJECT)
        return peg__tool_refuse(reterr, "/meta", "it must be a JSON object, such as {\"a\": 1}");
    return PEG_OK;
}

/* A schema whose defaults are beyond the limits even for {} would fail every call. */
static peg_status try_defaults(const peg_tool *tool, peg_error *reterr)
{
    static const peg_json empty = {.kind = PEG_JSON_OBJECT, .u.extent = 1};
    peg_json_doc *filled = NULL;
    peg_error why;

    if (peg_schema_fill(tool->input, &empty, &filled, &why))
        return peg__tool_refuse_because(reterr, "/input_schema", &why);
    peg_json_doc_free(filled);
    return PEG_OK;
}

static peg_status compile_schemas(peg_tool *tool, const peg_tool_def *def, peg_error *reterr)
{
    peg_status status = peg__tool_compile_input(def, &tool->input, reterr);

    if (status == PEG_OK && def->output_schema)
        status = peg__tool_compile_output(def, &tool->output, reterr);
    if (status)
        return status;
    tool->has_defaults = tool->input->plan != NULL;
    return tool->has_defaults ? try_defaults(tool, reterr) : PEG_OK;
}

static peg_status check_example(peg_tool *tool, struct peg__scratch *scratch, size_t i,
                                const peg_json *example, peg_error *reterr)
{
    peg_json_doc *filled = NULL;
    peg_error why;
    char field[32];

    snprintf(field, sizeof(field), "/examples/%zu", i);
    if (peg__tool_check_args(tool, scratch, example, &filled, NULL, &why))
        return peg__tool_refuse_because(reterr, field, &why);
    peg_json_doc_free(filled);
    return PEG_OK;
}

static peg_status check_examples(peg_tool *tool, const peg_json *examples, peg_error *reterr)
{
    struct peg__scratch scratch;
    peg_status status = PEG_OK;
    size_t i = 0;

    peg__scratch_open(tool, &scratch);
    PEG_JSON_EACH_ITEM (examples, example) {
        status = check_example(tool, &scratch, i++, example, reterr);
        if (status)
            break;
    }
    peg__scratch_close(tool, &scratch);
    return status;
}

static peg_status read_examples(peg_tool *tool, const peg_tool_def *def, peg_error *reterr)
{
    peg_status status;

    if (!def->examples)
        return PEG_OK;
    status = parse_field(def->examples, "/examples", PEG_LIMIT_META_BYTES, &tool->examples, reterr);
    if (status)
        return status;
    if (peg_json_root(tool->examples)->kind != PEG_JSON_ARRAY)
        return peg__tool_refuse(reterr, "/examples",
                                "it must be a JSON array of argument objects, such as [{}]");
    return check_examples(tool, peg_json_root(tool->examples), reterr);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* All but user, which is the caller's until the tool is whole. */
static void free_parts(peg_tool *tool)
{
    peg__scratch_free(atomic_load_explicit(&tool->idle, memory_order_relaxed));
    peg_json_doc_free(tool->meta);
    peg_json_doc_free(tool->examples);
    peg_schema_unref(tool->output);
    peg_schema_unref(tool->input);
    peg__free(tool->tags);
    peg__free(tool);
}

/* What is only valid during construction, or lives in a field of its own. */
static peg_tool_def lasting_part(const peg_tool_def *def)
{
    peg_tool_def kept = *def;

    kept.input_schema = kept.output_schema = kept.examples = kept.meta = NULL;
    kept.tags = NULL;
    kept.schema_options = NULL;
    kept.schema_cache = NULL;
    return kept;
}

static peg_status fill_tool(peg_tool *tool, const peg_tool_def *def, peg_error *reterr)
{
    static peg_status (*const steps[])(peg_tool * tool, const peg_tool_def *def,
                                       peg_error *reterr) = {
        copy_strings,
        compile_schemas,
        read_meta,
        read_examples,
    };
    peg_status status = PEG_OK;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && status == PEG_OK; i++)
        status = steps[i](tool, def, reterr);
    return status;
}

peg_status peg__tool_new(const peg_tool_def *def, bool is_artifact_tool, const char *owner,
                         peg_tool **ret_tool, peg_error *reterr)
{
    peg_status status = check_fields(def, is_artifact_tool, reterr);
    peg_tool *tool;

    if (status)
        return status;
    tool = peg__alloc_zero(1, sizeof(*tool));
    if (!tool)
        return peg__fail_nomem(reterr);
    atomic_init(&tool->n_refs, 1);
    tool->def = lasting_part(def);
    tool->owner = owner;
    tool->is_artifact_tool = is_artifact_tool;
    status = fill_tool(tool, def, reterr);
    if (status) {
        free_parts(tool);
        return status;
    }
    *ret_tool = tool;
    return PEG_OK;
}

peg_status peg_tool_new(const peg_tool_def *def, peg_tool **ret_tool, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_TOOL_DEF_INIT, reterr);
    return peg__tool_new(def, false, NULL, ret_tool, reterr);
}

peg_status peg_artifact_tool_new(const peg_tool_def *def, peg_tool **ret_tool, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_TOOL_DEF_INIT, reterr);
    return peg__tool_new(def, true, NULL, ret_tool, reterr);
}

PEG__DEFINE_REF(peg_tool)

peg_tool *peg_tool_unref(peg_tool *tool)
{
    if (tool && peg__refs_drop(&tool->n_refs)) {
        void (*const user_free)(void *) = tool->def.user_free;
        void *const user = tool->def.user;

        free_parts(tool);
        if (user_free)
            user_free(user);
    }
    return NULL;
}
