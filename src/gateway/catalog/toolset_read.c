/* SPDX-License-Identifier: Apache-2.0 */

/* Reads a toolset from JSON: makes a registration of it, which goes the way of every other one. */

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/catalog.h"
#include "pegboard/cleanup.h"
#include "pegboard/v1/registry.pb-c.h"
#include "json/json.h"

typedef Pegboard__V1__RegisterRequest request_msg;
typedef Pegboard__V1__Tool tool_msg;

/* The first failure sticks; what is read after it does not matter. */
struct reader {
    struct peg__arena arena;
    peg_status status;
    const char *wrong; /* the member that is not what it should be */
};

static void note_failure(struct reader *reader, peg_status status, const char *member)
{
    if (!reader->status) {
        reader->status = status;
        reader->wrong = member;
    }
}

static char *copy_member(struct reader *reader, const peg_json *value, const char *member)
{
    static char empty[1];
    char *copy;

    if (!value)
        return empty;
    if (value->kind != PEG_JSON_STRING || memchr(value->u.ptr, '\0', value->len)) {
        note_failure(reader, PEG_EPARSE, member);
        return empty;
    }
    copy = peg__arena_copy(&reader->arena, peg_json_str(value));
    if (!copy) {
        note_failure(reader, PEG_ENOMEM, member);
        return empty;
    }
    return copy;
}

static char *read_text_member(struct reader *reader, const peg_json *object, const char *member)
{
    return copy_member(reader, peg_json_get(object, member), member);
}

static ProtobufCBinaryData read_bytes_member(struct reader *reader, const peg_json *object,
                                             const char *member)
{
    char *text = read_text_member(reader, object, member);

    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

static int64_t read_integer(struct reader *reader, const peg_json *object, const char *member)
{
    const peg_json *value = peg_json_get(object, member);
    int64_t number = 0;

    if (value && !peg_json_int64(value, &number))
        note_failure(reader, PEG_EPARSE, member);
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
        note_failure(reader, PEG_EPARSE, member);
        return NULL;
    }
    *ret_room = peg__arena_alloc_zero(&reader->arena, (peg_json_len(array) + 1) * sizeof(void *));
    if (!*ret_room)
        note_failure(reader, PEG_ENOMEM, member);
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
        tags[n++] = copy_member(reader, item, "tags");
    *ret_n = n;
    return (char **)tags;
}

static bool read_hint(const peg_json *object, const char *member)
{
    return peg_json_bool_or(peg_json_get(object, member), false);
}

static tool_msg *read_tool(struct reader *reader, const peg_json *object)
{
    tool_msg *tool = peg__arena_alloc(&reader->arena, sizeof(*tool));

    if (!tool) {
        note_failure(reader, PEG_ENOMEM, "tools");
        return NULL;
    }
    pegboard__v1__tool__init(tool);
    if (object->kind != PEG_JSON_OBJECT)
        note_failure(reader, PEG_EPARSE, "tools");
    tool->name = read_text_member(reader, object, "name");
    tool->description = read_text_member(reader, object, "description");
    tool->tags = read_tags(reader, object, &tool->n_tags);
    tool->input_schema = read_bytes_member(reader, object, "input_schema");
    tool->output_schema = read_bytes_member(reader, object, "output_schema");
    tool->title = read_text_member(reader, object, "title");
    tool->version = read_text_member(reader, object, "version");
    tool->artifact_kind = read_text_member(reader, object, "artifact_kind");
    tool->examples = read_bytes_member(reader, object, "examples");
    tool->idempotent = read_hint(object, "idempotent");
    tool->read_only = read_hint(object, "read_only");
    tool->destructive = read_hint(object, "destructive");
    tool->additive = read_hint(object, "additive");
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
    const char *kind = read_text_member(reader, object, "kind");

    pegboard__v1__register_request__init(request);
    request->name = read_text_member(reader, object, "name");
    request->description = read_text_member(reader, object, "description");
    request->version = read_text_member(reader, object, "version");
    request->tags = read_tags(reader, object, &request->n_tags);
    if (strcmp(kind, "direct") == 0)
        request->kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;
    else if (*kind)
        note_failure(reader, PEG_EPARSE, "kind");
    read_tools(reader, object, request);
}

static peg_status check_format(const peg_json *root, peg_error *reterr)
{
    const peg_json *format = peg_json_get(root, "format");
    int64_t number;

    if (format && peg_json_int64(format, &number) && number == GW_TOOLSET_FORMAT)
        return PEG_OK;
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_TOOLSET_RECORD",
                     "the record of a toolset is not of format %d: a later version of pegboard "
                     "may have written it",
                     GW_TOOLSET_FORMAT);
}

static peg_status read_toolset(struct reader *reader, const peg_json *root,
                               struct gw_toolset **ret_toolset, peg_error *reterr)
{
    struct gw_toolset_dates dates;
    request_msg request;

    read_request(reader, root, &request);
    dates = (struct gw_toolset_dates){
        .owner = peg__str(read_text_member(reader, root, "owner")),
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
        status = read_toolset(&reader, peg_json_root(doc), ret_toolset, reterr);
    peg__arena_free(&reader.arena);
    return status;
}
