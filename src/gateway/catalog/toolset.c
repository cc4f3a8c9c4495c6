/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a registration that toolset_check.c has accepted to a toolset. The toolset, its arrays and
 * its strings are one block of memory, in that order; the texts of schemas are those of
 * toolset_schema.c.
 */

#include "gateway/catalog/internal.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/v1/registry.pb-c.h"
#include "wire/wire.h"
#include "json/json.h"

typedef Pegboard__V1__RegisterRequest request_msg;
typedef Pegboard__V1__Tool tool_msg;

/* Escapes make at most six bytes of one. */
enum { MAX_JSON = 8 * PEG_LIMIT_GATEWAY_TOOLSET_BYTES };

/* ---- its size ---- */

struct size {
    size_t n_tags;
    size_t n_chars;  /* of strings, each with a NUL */
    size_t n_schema; /* bytes of schemas */
};

static void add_tags(struct size *size, char *const *tags, size_t n)
{
    size->n_tags += n;
    for (size_t i = 0; i < n; i++)
        size->n_chars += strlen(tags[i]) + 1;
}

static struct size measure_registration(const request_msg *request, peg_str owner)
{
    struct size size = {.n_chars = owner.len + 1};

    size.n_chars += strlen(request->name) + 1;
    size.n_chars += strlen(request->description) + 1;
    size.n_chars += strlen(request->version) + 1;
    add_tags(&size, request->tags, request->n_tags);
    for (size_t i = 0; i < request->n_tools; i++) {
        const tool_msg *tool = request->tools[i];

        size.n_chars += strlen(tool->name) + strlen(tool->description) + 2;
        size.n_chars += strlen(tool->title) + strlen(tool->version) + 2;
        size.n_chars += strlen(tool->artifact_kind) + tool->examples.len + 2;
        add_tags(&size, tool->tags, tool->n_tags);
        size.n_schema += tool->input_schema.len + tool->output_schema.len;
    }
    return size;
}

static peg_status check_toolset_size(const struct size *size, peg_error *reterr)
{
    if (size->n_chars + size->n_schema <= PEG_LIMIT_GATEWAY_TOOLSET_BYTES)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSET_TOO_LARGE",
                     "the toolset has %zu bytes of text and schemas: use at most %d, and register "
                     "several toolsets",
                     size->n_chars + size->n_schema, PEG_LIMIT_GATEWAY_TOOLSET_BYTES);
}

/* ---- as JSON: what stores and maps keep. Schemas are strings in it, so that they come back byte
 * for byte ---- */

static void write_tags(const peg_str *tags, size_t n, struct peg__out *out)
{
    if (n == 0)
        return;
    peg__out_key(out, "tags");
    peg__out_array(out);
    for (size_t i = 0; i < n; i++)
        peg__out_string(out, tags[i]);
    peg__out_end_array(out);
}

static void write_optional(struct peg__out *out, const char *key, peg_str text)
{
    if (text.len)
        peg__out_member(out, key, text);
}

static void write_hint(struct peg__out *out, const char *key, bool is_set)
{
    if (!is_set)
        return;
    peg__out_key(out, key);
    peg__out_bool(out, true);
}

static void write_tool(const struct gw_tool *tool, struct peg__out *out)
{
    peg__out_object(out);
    peg__out_member(out, "name", tool->name);
    write_optional(out, "description", tool->description);
    write_tags(tool->tags, tool->n_tags, out);
    peg__out_member(out, "input_schema", tool->input_schema);
    write_optional(out, "output_schema", tool->output_schema);
    write_optional(out, "title", tool->title);
    write_optional(out, "version", tool->version);
    write_optional(out, "artifact_kind", tool->artifact_kind);
    write_optional(out, "examples", tool->examples);
    write_hint(out, "idempotent", tool->is_idempotent);
    write_hint(out, "read_only", tool->is_read_only);
    write_hint(out, "destructive", tool->is_destructive);
    write_hint(out, "additive", tool->is_additive);
    if (tool->timeout_ms) {
        peg__out_key(out, "timeout_ms");
        peg__out_integer(out, tool->timeout_ms);
    }
    peg__out_end_object(out);
}

static void write_content(const struct gw_toolset *toolset, struct peg__out *out)
{
    peg__out_member(out, "name", toolset->name);
    write_optional(out, "description", toolset->description);
    write_optional(out, "version", toolset->version);
    write_tags(toolset->tags, toolset->n_tags, out);
    if (toolset->kind == GW_DIRECT)
        peg__out_cmember(out, "kind", "direct");
    peg__out_key(out, "tools");
    peg__out_array(out);
    for (size_t i = 0; i < toolset->n_tools; i++)
        write_tool(&toolset->tools[i], out);
    peg__out_end_array(out);
}

peg_status gw_toolset_write(const struct gw_toolset *toolset, struct peg__buf *ret_json,
                            peg_error *reterr)
{
    struct peg__out out = {.buf = ret_json};

    peg__out_object(&out);
    peg__out_key(&out, "format");
    peg__out_integer(&out, GW_TOOLSET_FORMAT);
    peg__out_key(&out, "revision");
    peg__out_integer(&out, (int64_t)toolset->revision);
    peg__out_key(&out, "registered_at_ms");
    peg__out_integer(&out, toolset->registered_at_ms);
    peg__out_member(&out, "owner", toolset->owner);
    write_content(toolset, &out);
    peg__out_end_object(&out);
    if (ret_json->status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSET_TOO_LARGE",
                         "toolset \"%s\" has more than %zu bytes as JSON: register several "
                         "toolsets",
                         toolset->name.ptr, ret_json->max);
    return ret_json->status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- making it ---- */

/* What is still free of the block. */
struct block {
    struct gw_tool *tools;
    peg_str *tags;
    uint32_t *places;
    char *chars;
};

static struct gw_toolset *make_block(const request_msg *request, const struct size *size,
                                     struct block *ret_block)
{
    const size_t tools_at = sizeof(struct gw_toolset);
    const size_t tags_at = tools_at + request->n_tools * sizeof(struct gw_tool);
    const size_t places_at = tags_at + size->n_tags * sizeof(peg_str);
    const size_t chars_at = places_at + request->n_tools * sizeof(uint32_t);
    char *block = peg__alloc_zero(1, chars_at + size->n_chars);

    if (!block)
        return NULL;
    *ret_block = (struct block){
        .tools = (struct gw_tool *)(void *)(block + tools_at),
        .tags = (peg_str *)(void *)(block + tags_at),
        .places = (uint32_t *)(void *)(block + places_at),
        .chars = block + chars_at,
    };
    return (struct gw_toolset *)(void *)block;
}

static peg_str put_str(struct block *block, peg_str s)
{
    const peg_str copy = {block->chars, s.len};

    if (s.len)
        memcpy(block->chars, s.ptr, s.len);
    block->chars += s.len + 1; /* the block was zeroed */
    return copy;
}

static const peg_str *put_tags(struct block *block, char *const *tags, size_t n)
{
    peg_str *copies = block->tags;

    block->tags += n;
    for (size_t i = 0; i < n; i++)
        copies[i] = put_str(block, peg__str(tags[i]));
    return copies;
}

static peg_status get_schema(const tool_msg *tool, const char *what, ProtobufCBinaryData text,
                             struct gw_schema **ret_schema, peg_error *reterr)
{
    const peg_str s = peg__strn((const char *)text.data, text.len);
    peg_error why = {.message = "it is empty; {} takes any arguments"};
    const peg_status status = s.len ? gw_schema_get(s, ret_schema, &why) : PEG_ESCHEMA;

    if (status == PEG_OK || status == PEG_ENOMEM)
        return status ? peg__fail_nomem(reterr) : PEG_OK;
    (void)peg__fail(reterr, status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ESCHEMA, "E_TOOL_SCHEMA",
                    "invalid tool schema: tool \"%s\": %s schema: %s%s%s", tool->name, what,
                    why.where, *why.where ? ": " : "", why.message);
    return status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ESCHEMA;
}

static peg_status fill_tool_entry(const tool_msg *msg, struct block *block, struct gw_tool *tool,
                                  peg_error *reterr)
{
    peg_status status;

    tool->name = put_str(block, peg__str(msg->name));
    tool->description = put_str(block, peg__str(msg->description));
    tool->n_tags = msg->n_tags;
    tool->tags = put_tags(block, msg->tags, msg->n_tags);
    tool->title = put_str(block, peg__str(msg->title));
    tool->version = put_str(block, peg__str(msg->version));
    tool->artifact_kind = put_str(block, peg__str(msg->artifact_kind));
    tool->examples = put_str(block, peg__strn((const char *)msg->examples.data, msg->examples.len));
    tool->is_idempotent = msg->idempotent || msg->read_only;
    tool->is_read_only = msg->read_only;
    tool->is_destructive = msg->destructive;
    tool->is_additive = msg->additive;
    tool->timeout_ms = msg->timeout_ms;
    tool->output_schema = peg__str("");
    status = get_schema(msg, "input", msg->input_schema, &tool->input, reterr);
    if (status)
        return status;
    tool->input_schema = gw_schema_text(tool->input);
    if (msg->output_schema.len == 0)
        return PEG_OK;
    status = get_schema(msg, "output", msg->output_schema, &tool->output, reterr);
    if (!status)
        tool->output_schema = gw_schema_text(tool->output);
    return status;
}

static int compare_tool_places(const void *a, const void *b, void *tools)
{
    const struct gw_tool *of = tools;

    return peg__str_compare(of[*(const uint32_t *)a].name, of[*(const uint32_t *)b].name);
}

static peg_status sort_names(struct gw_toolset *toolset, uint32_t *places, peg_error *reterr)
{
    for (size_t i = 0; i < toolset->n_tools; i++)
        places[i] = (uint32_t)i;
    qsort_r(places, toolset->n_tools, sizeof(*places), compare_tool_places,
            peg__unconst(toolset->tools));
    toolset->by_name = places;
    for (size_t i = 1; i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[places[i]];

        if (peg__str_eq(tool->name, toolset->tools[places[i - 1]].name))
            return peg__fail(reterr, PEG_EINVAL, "E_NAME",
                             "two tools are named \"%s\": rename one of them", tool->name.ptr);
    }
    return PEG_OK;
}

static peg_status fill_tools(struct gw_toolset *toolset, const request_msg *request,
                             struct block *block, peg_error *reterr)
{
    for (size_t i = 0; i < request->n_tools; i++) {
        const peg_status status =
            fill_tool_entry(request->tools[i], block, &block->tools[i], reterr);

        toolset->n_tools = i + 1; /* those that hold schemas */
        if (status) {
            gw_toolset_error_at(i, reterr);
            return status;
        }
    }
    return sort_names(toolset, block->places, reterr);
}

static peg_status make_digest(struct gw_toolset *toolset, peg_error *reterr)
{
    struct peg__buf buf = PEG__BUF(MAX_JSON);
    struct peg__out out = {.buf = &buf};
    bool is_made;

    peg__out_object(&out);
    write_content(toolset, &out);
    peg__out_end_object(&out);
    is_made = !buf.status && peg__sha256(peg__buf_view(&buf), toolset->digest);
    peg__buf_free(&buf);
    return is_made ? PEG_OK : peg__fail_nomem(reterr);
}

static void fill_head(struct gw_toolset *toolset, const request_msg *request,
                      const struct gw_toolset_dates *dates, struct block *block)
{
    atomic_init(&toolset->n_refs, 1);
    toolset->name = put_str(block, peg__str(request->name));
    toolset->description = put_str(block, peg__str(request->description));
    toolset->version = put_str(block, peg__str(request->version));
    toolset->owner = put_str(block, dates->owner);
    toolset->n_tags = request->n_tags;
    toolset->tags = put_tags(block, request->tags, request->n_tags);
    toolset->tools = block->tools;
    toolset->kind =
        request->kind == PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT ? GW_DIRECT : GW_ATTACHED;
    toolset->registered_at_ms = dates->registered_at_ms;
    toolset->revision = dates->revision;
}

peg_status gw_toolset_make(const request_msg *request, const struct gw_toolset_dates *dates,
                           struct gw_toolset **ret_toolset, peg_error *reterr)
{
    struct gw_toolset *toolset;
    struct size size;
    struct block block;
    peg_status status = gw_toolset_check(request, reterr);

    if (status)
        return status;
    size = measure_registration(request, dates->owner);
    status = check_toolset_size(&size, reterr);
    if (status)
        return status;
    toolset = make_block(request, &size, &block);
    if (!toolset)
        return peg__fail_nomem(reterr);

    fill_head(toolset, request, dates, &block);
    status = fill_tools(toolset, request, &block, reterr);
    if (!status)
        status = make_digest(toolset, reterr);
    if (status)
        gw_toolset_unref(toolset);
    else
        *ret_toolset = toolset;
    return status;
}

/* ---- its life ---- */

struct gw_toolset *gw_toolset_ref(struct gw_toolset *toolset)
{
    if (toolset)
        peg__refs_take(&toolset->n_refs);
    return toolset;
}

struct gw_toolset *gw_toolset_unref(struct gw_toolset *toolset)
{
    if (!toolset || !peg__refs_drop(&toolset->n_refs))
        return NULL;
    for (size_t i = 0; i < toolset->n_tools; i++) {
        gw_schema_unref(toolset->tools[i].input);
        gw_schema_unref(toolset->tools[i].output);
    }
    peg__free(toolset);
    return NULL;
}

const struct gw_tool *gw_toolset_tool(const struct gw_toolset *toolset, peg_str name)
{
    size_t low = 0;
    size_t high = toolset->n_tools;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct gw_tool *tool = &toolset->tools[toolset->by_name[middle]];
        const int order = peg__str_compare(name, tool->name);

        if (order == 0)
            return tool;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool gw_toolset_has_schemas_of(const struct gw_toolset *toolset, const struct gw_toolset *other)
{
    if (toolset->n_tools != other->n_tools)
        return false;
    for (size_t i = 0; i < toolset->n_tools; i++) {
        const struct gw_tool *tool = &toolset->tools[i];
        const struct gw_tool *same = gw_toolset_tool(other, tool->name);

        if (!same || !peg__str_eq(tool->input_schema, same->input_schema) ||
            !peg__str_eq(tool->output_schema, same->output_schema))
            return false;
    }
    return true;
}

static bool has_tag(const struct gw_toolset *toolset, const char *tag)
{
    for (size_t i = 0; i < toolset->n_tags; i++) {
        if (strcmp(toolset->tags[i].ptr, tag) == 0)
            return true;
    }
    return false;
}

bool gw_toolset_has_tags(const struct gw_toolset *toolset, char *const *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!has_tag(toolset, tags[i]))
            return false;
    }
    return true;
}

/* ---- errors ---- */

enum wire_error gw_wire_error(const peg_error *error)
{
    static const struct {
        const char *code;
        enum wire_error error;
    } by_code[] = {
        {"E_MISSING_FIELD", WIRE_MISSING_FIELD},
        {"E_INVALID_LENGTH", WIRE_INVALID_LENGTH},
        {"E_INVALID_PATTERN", WIRE_INVALID_PATTERN},
        {"E_INVALID_RANGE", WIRE_INVALID_RANGE},
        {"E_STORE", WIRE_SERVICE_UNAVAILABLE},
        {"E_DRAINING", WIRE_SERVICE_UNAVAILABLE},
        {"E_NODE_FULL", WIRE_OVERLOADED},
    };

    for (size_t i = 0; i < sizeof(by_code) / sizeof(by_code[0]); i++) {
        if (strcmp(error->code, by_code[i].code) == 0)
            return by_code[i].error;
    }
    return wire_error_of_status(error->status);
}
