/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A toolset as JSON: what stores and maps keep. Schemas are strings in it, so that they come back
 * byte for byte. Reading makes a registration of it and goes the way of every other one.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/toolset.h"
#include "pegboard/v1/registry.pb-c.h"
#include "json/json.h"

typedef Pegboard__V1__RegisterRequest request_msg;
typedef Pegboard__V1__Tool tool_msg;

PEG_DEFINE_CLEANUP(peg_json_doc, peg_json_doc_free)

/* Raised when an older version could not read what this one writes. */
enum { FORMAT = 1 };

/* ---- writing --------------------------------------------------------------------------------- */

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

static void write_text(struct peg__out *out, const char *key, peg_str text)
{
    if (text.len)
        peg__out_member(out, key, text);
}

static void write_tool(const struct gw_tool *tool, struct peg__out *out)
{
    peg__out_object(out);
    peg__out_member(out, "name", tool->name);
    write_text(out, "description", tool->description);
    write_tags(tool->tags, tool->n_tags, out);
    peg__out_member(out, "input_schema", tool->input_schema);
    write_text(out, "output_schema", tool->output_schema);
    if (tool->is_idempotent) {
        peg__out_key(out, "idempotent");
        peg__out_bool(out, true);
    }
    if (tool->timeout_ms) {
        peg__out_key(out, "timeout_ms");
        peg__out_integer(out, tool->timeout_ms);
    }
    peg__out_end_object(out);
}

void gw_toolset_write_content(const struct gw_toolset *toolset, struct peg__out *out)
{
    peg__out_member(out, "name", toolset->name);
    write_text(out, "description", toolset->description);
    write_text(out, "version", toolset->version);
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
    peg__out_integer(&out, FORMAT);
    peg__out_key(&out, "revision");
    peg__out_integer(&out, (int64_t)toolset->revision);
    peg__out_key(&out, "registered_at_ms");
    peg__out_integer(&out, toolset->registered_at_ms);
    peg__out_member(&out, "owner", toolset->owner);
    gw_toolset_write_content(toolset, &out);
    peg__out_end_object(&out);
    if (ret_json->status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSET_TOO_LARGE",
                         "toolset \"%s\" has more than %zu bytes as JSON: register several "
                         "toolsets",
                         toolset->name.ptr, ret_json->max);
    return ret_json->status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The first failure sticks; what is read after it does not matter. */
struct reader {
    struct peg__arena arena;
    peg_status status;
    const char *wrong; /* the member that is not what it should be */
};

static void fail(struct reader *reader, peg_status status, const char *member)
{
    if (!reader->status) {
        reader->status = status;
        reader->wrong = member;
    }
}

static char *copy_string(struct reader *reader, const peg_json *value, const char *member)
{
    static char empty[1];
    char *copy;

    if (!value)
        return empty;
    if (value->kind != PEG_JSON_STRING || memchr(value->u.ptr, '\0', value->len)) {
        fail(reader, PEG_EPARSE, member);
        return empty;
    }
    copy = peg__arena_copy(&reader->arena, peg_json_str(value));
    if (!copy) {
        fail(reader, PEG_ENOMEM, member);
        return empty;
    }
    return copy;
}

static char *read_string(struct reader *reader, const peg_json *object, const char *member)
{
    return copy_string(reader, peg_json_get(object, member), member);
}

static ProtobufCBinaryData read_bytes(struct reader *reader, const peg_json *object,
                                      const char *member)
{
    char *text = read_string(reader, object, member);

    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

static int64_t read_integer(struct reader *reader, const peg_json *object, const char *member)
{
    const peg_json *value = peg_json_get(object, member);
    int64_t number = 0;

    if (value && !peg_json_int64(value, &number))
        fail(reader, PEG_EPARSE, member);
    return number;
}

/* The array of that name, or NULL, and room for a pointer to each of its items. */
static const peg_json *read_array(struct reader *reader, const peg_json *object, const char *member,
                                  void ***ret_room)
{
    const peg_json *array = peg_json_get(object, member);

    if (!array || reader->status)
        return NULL;
    if (array->kind != PEG_JSON_ARRAY) {
        fail(reader, PEG_EPARSE, member);
        return NULL;
    }
    *ret_room = peg__arena_alloc_zero(&reader->arena, (peg_json_len(array) + 1) * sizeof(void *));
    if (!*ret_room)
        fail(reader, PEG_ENOMEM, member);
    return *ret_room ? array : NULL;
}

static char **read_tags(struct reader *reader, const peg_json *object, size_t *ret_n)
{
    void **tags = NULL;
    const peg_json *array = read_array(reader, object, "tags", &tags);
    size_t n = 0;

    if (!array)
        return NULL;
    PEG_JSON_EACH_ITEM (array, item)
        tags[n++] = copy_string(reader, item, "tags");
    *ret_n = n;
    return (char **)tags;
}

static tool_msg *read_tool(struct reader *reader, const peg_json *object)
{
    tool_msg *tool = peg__arena_alloc(&reader->arena, sizeof(*tool));

    if (!tool) {
        fail(reader, PEG_ENOMEM, "tools");
        return NULL;
    }
    pegboard__v1__tool__init(tool);
    if (object->kind != PEG_JSON_OBJECT)
        fail(reader, PEG_EPARSE, "tools");
    tool->name = read_string(reader, object, "name");
    tool->description = read_string(reader, object, "description");
    tool->tags = read_tags(reader, object, &tool->n_tags);
    tool->input_schema = read_bytes(reader, object, "input_schema");
    tool->output_schema = read_bytes(reader, object, "output_schema");
    tool->idempotent =
        peg_json_get(object, "idempotent") && peg_json_is_true(peg_json_get(object, "idempotent"));
    tool->timeout_ms = read_integer(reader, object, "timeout_ms");
    return tool;
}

static void read_tools(struct reader *reader, const peg_json *object, request_msg *request)
{
    void **tools = NULL;
    const peg_json *array = read_array(reader, object, "tools", &tools);

    if (!array)
        return;
    PEG_JSON_EACH_ITEM (array, item)
        tools[request->n_tools++] = read_tool(reader, item);
    request->tools = (tool_msg **)tools;
}

static void read_request(struct reader *reader, const peg_json *object, request_msg *request)
{
    const char *kind = read_string(reader, object, "kind");

    pegboard__v1__register_request__init(request);
    request->name = read_string(reader, object, "name");
    request->description = read_string(reader, object, "description");
    request->version = read_string(reader, object, "version");
    request->tags = read_tags(reader, object, &request->n_tags);
    if (strcmp(kind, "direct") == 0)
        request->kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
    else if (*kind)
        fail(reader, PEG_EPARSE, "kind");
    read_tools(reader, object, request);
}

static peg_status check_format(const peg_json *root, peg_error *reterr)
{
    const peg_json *format = peg_json_get(root, "format");
    int64_t number;

    if (format && peg_json_int64(format, &number) && number == FORMAT)
        return PEG_OK;
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_TOOLSET_FORMAT",
                     "the record of a toolset is not of format %d: a later version of pegboard "
                     "may have written it",
                     FORMAT);
}

static peg_status read_root(struct reader *reader, const peg_json *root,
                            struct gw_toolset **ret_toolset, peg_error *reterr)
{
    struct gw_toolset_dates dates;
    request_msg request;

    read_request(reader, root, &request);
    dates = (struct gw_toolset_dates){
        .owner = peg__str(read_string(reader, root, "owner")),
        .registered_at_ms = read_integer(reader, root, "registered_at_ms"),
        .revision = (uint64_t)read_integer(reader, root, "revision"),
    };
    if (reader->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (reader->status)
        return peg__fail(reterr, PEG_EPARSE, "E_TOOLSET_RECORD",
                         "\"%s\" in the record of a toolset is not what it should be: register "
                         "the toolset again",
                         reader->wrong);
    return gw_toolset_make(&request, &dates, ret_toolset, reterr);
}

peg_status gw_toolset_read(peg_str json, struct gw_toolset **ret_toolset, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    struct reader reader = {.status = PEG_OK};
    peg_status status = peg_json_parse(json, NULL, &doc, reterr);

    if (!status)
        status = check_format(peg_json_root(doc), reterr);
    if (!status)
        status = read_root(&reader, peg_json_root(doc), ret_toolset, reterr);
    peg__arena_free(&reader.arena);
    return status;
}
