/* SPDX-License-Identifier: Apache-2.0 */

/* JSON Schemas of messages as message.c writes them, and schemas of tools within a document. */

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/http/internal.h"

typedef ProtobufCFieldDescriptor field_t;

void gw_schema_ref(struct peg__out *out, const char *name)
{
    char text[128];

    snprintf(text, sizeof(text), "#/components/schemas/%s", name);
    peg__out_object(out);
    peg__out_cmember(out, "$ref", text);
    peg__out_end_object(out);
}

/* ---- messages ---- */

static void put_words(struct peg__out *out, const ProtobufCEnumDescriptor *type)
{
    peg__out_raw(out, peg__str("{\"type\":\"string\",\"enum\":["));
    for (unsigned i = 0; i < type->n_values; i++) {
        char text[GW_ENUM_TEXT];

        gw_message_enum_text(type, type->values[i].name, text);
        peg__buf_puts(out->buf, i ? ",\"" : "\"");
        peg__buf_puts(out->buf, text);
        peg__buf_putc(out->buf, '"');
    }
    peg__buf_puts(out->buf, "]}");
}

static void put_field_schema(struct peg__out *out, const ProtobufCMessageDescriptor *type,
                             const field_t *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        peg__out_raw(out, peg__str("{\"type\":\"string\"}"));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        peg__out_raw(out, peg__str("{\"type\":\"boolean\"}"));
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        peg__out_raw(out, peg__str("{\"type\":\"number\"}"));
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_words(out, (const ProtobufCEnumDescriptor *)field->descriptor);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        gw_schema_ref(out, ((const ProtobufCMessageDescriptor *)field->descriptor)->short_name);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        peg__out_raw(out, gw_message_is_binary(type, field)
                              ? peg__str("{\"type\":\"string\",\"contentEncoding\":\"base64\"}")
                              : peg__str("{}"));
        break;
    default:
        peg__out_raw(out, peg__str("{\"type\":\"integer\",\"format\":\"int64\"}"));
    }
}

static void put_field_property(struct peg__out *out, const ProtobufCMessageDescriptor *type,
                               const field_t *field)
{
    peg__out_key(out, field->name);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        put_field_schema(out, type, field);
        return;
    }
    peg__out_object(out);
    peg__out_cmember(out, "type", "array");
    peg__out_key(out, "items");
    put_field_schema(out, type, field);
    peg__out_end_object(out);
}

/* As message.c says. */
static bool is_always_there(const field_t *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED ||
           (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
            field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_BYTES);
}

void gw_schema_write(struct peg__out *out, const ProtobufCMessageDescriptor *type, bool is_sent)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", "object");
    peg__out_key(out, "properties");
    peg__out_object(out);
    for (unsigned i = 0; i < type->n_fields; i++)
        put_field_property(out, type, &type->fields[i]);
    peg__out_end_object(out);
    peg__out_key(out, "required");
    peg__out_array(out);
    for (unsigned i = 0; is_sent && i < type->n_fields; i++) {
        if (is_always_there(&type->fields[i]))
            peg__out_cstring(out, type->fields[i].name);
    }
    peg__out_end_array(out);
    peg__out_end_object(out);
}

/* ---- tools ---- */

/* "#/$defs/a" means the root of the schema, which is not that of the document. */
static void put_moved_ref(struct peg__out *out, peg_str ref, const char *name)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GATEWAY_TOOLSET_BYTES);

    if (ref.len && ref.ptr[0] == '#' && (ref.len == 1 || ref.ptr[1] == '/'))
        peg__buf_printf(&text, "#/components/schemas/%s%.*s", name, (int)(ref.len - 1),
                        ref.ptr + 1);
    peg__out_string(out, text.len ? peg__buf_view(&text) : ref);
    if (text.status)
        out->buf->status = text.status;
    peg__buf_free(&text);
}

/* As deep as the parser lets documents be. */
// NOLINTNEXTLINE(misc-no-recursion)
static void put_moved(struct peg__out *out, const peg_json *value, const char *name)
{
    if (peg_json_kind_of(value) == PEG_JSON_ARRAY) {
        peg__out_array(out);
        PEG_JSON_EACH_ITEM (value, item)
            put_moved(out, item, name);
        peg__out_end_array(out);
        return;
    }
    if (peg_json_kind_of(value) != PEG_JSON_OBJECT) {
        peg__out_value(out, value);
        return;
    }
    peg__out_object(out);
    PEG_JSON_EACH_MEMBER (value, key) {
        peg__out_key_str(out, peg_json_str(key));
        if (peg__str_is(peg_json_str(key), "$ref") && peg_json_kind_of(key + 1) == PEG_JSON_STRING)
            put_moved_ref(out, peg_json_str(key + 1), name);
        else
            put_moved(out, key + 1, name);
    }
    peg__out_end_object(out);
}

peg_status gw_schema_move(struct peg__out *out, peg_str schema, const char *name)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(schema, NULL, &doc, NULL);

    if (!status)
        put_moved(out, peg_json_root(doc), name);
    peg_json_doc_free(doc);
    return status ? status : out->buf->status;
}
