/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages of the services as JSON, and the other way round, by their descriptors. Names of members
 * are those of the fields; `bytes` of JSON are JSON; other bytes are in base 64. Scalars and lists
 * are always there, other messages and JSON if they are set.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "gateway/http/internal.h"

typedef ProtobufCFieldDescriptor field_t;

/* ---- both ways ---- */

bool gw_message_is_binary(const ProtobufCMessageDescriptor *type, const field_t *field)
{
    return strcmp(field->name, "bytes") == 0 ||
           (strcmp(field->name, "data") == 0 && strcmp(type->short_name, "Media") == 0);
}

void gw_message_enum_text(const ProtobufCEnumDescriptor *type, const char *name,
                          char ret_text[GW_ENUM_TEXT])
{
    const char *type_at = type->short_name;
    size_t n = 0;

    /* The words of the type, letter by letter; the name has a '_' before each but the first. */
    for (; *type_at && *name; type_at++, name++)
        name += *name == '_';
    name += *name == '_';
    for (; *name && n + 1 < GW_ENUM_TEXT; name++)
        ret_text[n++] = peg__to_lower(*name);
    ret_text[n] = '\0';
}

static const void *member_at(const ProtobufCMessage *message, size_t offset)
{
    return (const char *)message + offset;
}

/* ---- writing ---- */

static void put_base64(struct peg__out *out, peg_str bytes)
{
    const size_t len = peg__base64_len(bytes.len);
    char *text = (char *)peg__alloc(len + 1);

    if (!text) {
        out->buf->status = PEG_ENOMEM;
        return;
    }
    peg__base64_encode(bytes, text);
    peg__out_string(out, peg__strn(text, len));
    peg__free(text);
}

static void put_enum(struct peg__out *out, const field_t *field, int number)
{
    const ProtobufCEnumDescriptor *type = (const ProtobufCEnumDescriptor *)field->descriptor;
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    char text[GW_ENUM_TEXT] = "";

    if (value)
        gw_message_enum_text(type, value->name, text);
    peg__out_cstring(out, text);
}

/* Messages of the services are some five deep. */
// NOLINTNEXTLINE(misc-no-recursion)
static void put_field_value(struct peg__out *out, const ProtobufCMessageDescriptor *type,
                            const field_t *field, const void *at)
{
    const ProtobufCBinaryData *bytes = (const ProtobufCBinaryData *)at;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        peg__out_cstring(out, peg__or_empty(*(const char *const *)at));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        peg__out_bool(out, *(const protobuf_c_boolean *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
        peg__out_integer(out, *(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        peg__out_integer(out, *(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        peg__out_double(out, *(const double *)at);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(out, field, *(const int *)at);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        if (gw_message_is_binary(type, field))
            put_base64(out, peg__strn((const char *)bytes->data, bytes->len));
        else
            peg__out_raw(out, peg__strn((const char *)bytes->data, bytes->len));
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        gw_message_write(out, *(const ProtobufCMessage *const *)at);
        break;
    default:
        peg__out_null(out);
    }
}

static size_t item_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(void *);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
static void put_repeated(struct peg__out *out, const ProtobufCMessage *message,
                         const field_t *field)
{
    const size_t n = *(const size_t *)member_at(message, field->quantifier_offset);
    const char *items = *(const char *const *)member_at(message, field->offset);

    peg__out_array(out);
    for (size_t i = 0; i < n; i++)
        put_field_value(out, message->descriptor, field, items + i * item_size(field->type));
    peg__out_end_array(out);
}

static bool is_set(const ProtobufCMessage *message, const field_t *field)
{
    const void *at = member_at(message, field->offset);

    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)member_at(message, field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(const ProtobufCMessage *const *)at != NULL;
    return field->type != PROTOBUF_C_TYPE_BYTES || ((const ProtobufCBinaryData *)at)->len > 0;
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
void gw_message_write_members(struct peg__out *out, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const field_t *field = &type->fields[i];

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            peg__out_key(out, field->name);
            put_repeated(out, message, field);
        } else if (is_set(message, field)) {
            peg__out_key(out, field->name);
            put_field_value(out, type, field, member_at(message, field->offset));
        }
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
void gw_message_write(struct peg__out *out, const ProtobufCMessage *message)
{
    peg__out_object(out);
    gw_message_write_members(out, message);
    peg__out_end_object(out);
}

/* ---- reading ---- */

static peg_status fail_member_kind(const field_t *field, const char *wanted, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_MEMBER", "'%s' has to be %s", field->name, wanted);
}

/* Before memory is taken: three bytes of JSON may be a struct of hundreds. */
static peg_status check_room(const struct peg__arena *arena, size_t more, peg_error *reterr)
{
    const size_t max = PEG_LIMIT_GRPC_UNPACKED_BYTES;

    if (arena->held <= max && more <= max - arena->held)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_MEMBER",
                     "the message takes more than %zu bytes of memory "
                     "(PEG_LIMIT_GRPC_UNPACKED_BYTES): send less at once",
                     max);
}

static peg_status read_field_text(struct peg__arena *arena, const field_t *field,
                                  const peg_json *value, char **ret_text, peg_error *reterr)
{
    const peg_str text = peg_json_str(value);

    if (peg_json_kind_of(value) != PEG_JSON_STRING)
        return fail_member_kind(field, "a string", reterr);
    if (memchr(text.ptr, '\0', text.len + 1) != text.ptr + text.len)
        return fail_member_kind(field, "a string without NUL", reterr);
    *ret_text = peg__arena_copy(arena, text);
    return *ret_text ? PEG_OK : peg__fail_nomem(reterr);
}

/* As it is on the wire: the text of the value. */
static peg_status read_json(struct peg__arena *arena, const peg_json *value,
                            ProtobufCBinaryData *ret_bytes, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_NET_HTTP_BODY_BYTES);
    char *copy;

    peg__json_write(value, PEG_JSON_COMPACT, &text);
    copy = text.status ? NULL : peg__arena_copy(arena, peg__buf_view(&text));
    *ret_bytes = (ProtobufCBinaryData){.len = text.len, .data = (uint8_t *)copy};
    peg__buf_free(&text);
    return copy ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status read_enum(const field_t *field, const peg_json *value, int *ret_number,
                            peg_error *reterr)
{
    const ProtobufCEnumDescriptor *type = (const ProtobufCEnumDescriptor *)field->descriptor;

    for (unsigned i = 0; i < type->n_values; i++) {
        char text[GW_ENUM_TEXT];

        gw_message_enum_text(type, type->values[i].name, text);
        if (peg_json_kind_of(value) == PEG_JSON_STRING && peg__str_is(peg_json_str(value), text)) {
            *ret_number = type->values[i].value;
            return PEG_OK;
        }
    }
    return fail_member_kind(field, "one of its words", reterr);
}

static peg_status read_field_number(const field_t *field, const peg_json *value, void *at,
                                    peg_error *reterr)
{
    int64_t number;

    if (!peg_json_int64(value, &number) || (field->type != PROTOBUF_C_TYPE_INT64 && number < 0) ||
        (field->type == PROTOBUF_C_TYPE_UINT32 && number > UINT32_MAX))
        return fail_member_kind(field, "an integer in its range", reterr);
    if (field->type == PROTOBUF_C_TYPE_UINT32)
        *(uint32_t *)at = (uint32_t)number;
    else
        *(int64_t *)at = number;
    return PEG_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
static peg_status read_field_value(struct peg__arena *arena, const field_t *field,
                                   const peg_json *value, void *at, peg_error *reterr)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return read_field_text(arena, field, value, (char **)at, reterr);
    case PROTOBUF_C_TYPE_BOOL:
        if (peg_json_kind_of(value) != PEG_JSON_BOOL)
            return fail_member_kind(field, "true or false", reterr);
        *(protobuf_c_boolean *)at = peg_json_is_true(value);
        return PEG_OK;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return read_field_number(field, value, at, reterr);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(field, value, (int *)at, reterr);
    case PROTOBUF_C_TYPE_BYTES:
        return read_json(arena, value, (ProtobufCBinaryData *)at, reterr);
    case PROTOBUF_C_TYPE_MESSAGE:
        return gw_message_read(arena, (const ProtobufCMessageDescriptor *)field->descriptor, value,
                               (ProtobufCMessage **)at, reterr);
    default:
        return fail_member_kind(field, "left out", reterr);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
static peg_status read_repeated(struct peg__arena *arena, const field_t *field,
                                const peg_json *value, ProtobufCMessage *message, peg_error *reterr)
{
    const size_t size = item_size(field->type);
    const size_t total = (peg_json_len(value) + 1) * size;
    size_t *n = (size_t *)peg__unconst(member_at(message, field->quantifier_offset));
    peg_status status = check_room(arena, total, reterr);
    char *items;

    if (peg_json_kind_of(value) != PEG_JSON_ARRAY)
        return fail_member_kind(field, "an array", reterr);
    if (status)
        return status;
    items = (char *)peg__arena_alloc_zero(arena, total);
    if (!items)
        return peg__fail_nomem(reterr);
    *(char **)peg__unconst(member_at(message, field->offset)) = items;
    PEG_JSON_EACH_ITEM (value, item) {
        if (!status)
            status = read_field_value(arena, field, item, items + *n * size, reterr);
        *n += !status;
    }
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
static peg_status read_message_member(struct peg__arena *arena, ProtobufCMessage *message,
                                      const peg_json *key, peg_error *reterr)
{
    const peg_str name = peg_json_str(key);
    const field_t *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name.ptr);

    if (!field || strlen(name.ptr) != name.len)
        return peg__fail(reterr, PEG_EINVAL, "E_MEMBER", "unexpected member '%.64s'", name.ptr);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return read_repeated(arena, field, key + 1, message, reterr);
    return read_field_value(arena, field, key + 1, peg__unconst(member_at(message, field->offset)),
                            reterr);
}

// NOLINTNEXTLINE(misc-no-recursion): as put_field_value()
peg_status gw_message_read(struct peg__arena *arena, const ProtobufCMessageDescriptor *type,
                           const peg_json *object, ProtobufCMessage **ret_message,
                           peg_error *reterr)
{
    peg_status status = check_room(arena, type->sizeof_message, reterr);
    ProtobufCMessage *message;

    if (status)
        return status;
    message = (ProtobufCMessage *)peg__arena_alloc(arena, type->sizeof_message);
    if (!message)
        return peg__fail_nomem(reterr);
    if (peg_json_kind_of(object) != PEG_JSON_OBJECT)
        return peg__fail(reterr, PEG_EINVAL, "E_MEMBER", "a JSON object is needed here");
    type->message_init(message);
    PEG_JSON_EACH_MEMBER (object, key) {
        if (!status)
            status = read_message_member(arena, message, key, reterr);
    }
    *ret_message = message;
    return status;
}
