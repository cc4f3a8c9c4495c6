/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/wire.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "grpc/message.h"
#include "json/json.h"

typedef Google__Protobuf__Any Any;
typedef Google__Protobuf__Value Value;

static const char value_type[] = WIRE_ANY_VALUE_TYPE;

/* ---- writing -------------------------------------------------------------------------------- */

peg_status wire_any_write(peg_str json, struct peg__arena *arena, Any **ret_any, peg_error *reterr)
{
    Value value = GOOGLE__PROTOBUF__VALUE__INIT;
    Any *any;

    if (!json.len || peg__str_is(json, "null")) {
        *ret_any = NULL;
        return PEG_OK;
    }
    any = peg__arena_alloc(arena, sizeof(*any));
    value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
    value.string_value = peg__arena_copy(arena, json);
    if (!any || !value.string_value)
        return peg__fail_nomem(reterr);

    google__protobuf__any__init(any);
    any->type_url = peg__unconst(value_type);
    any->value.len = grpc_message_packed_size(&value.base);
    any->value.data = peg__arena_alloc(arena, any->value.len);
    if (!any->value.data)
        return peg__fail_nomem(reterr);
    grpc_message_pack(&value.base, any->value.data);
    *ret_any = any;
    return PEG_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void put_json_value(struct peg__out *out, const Value *value);

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GRPC_MESSAGE_DEPTH bounds what was unpacked. */
static void put_struct(struct peg__out *out, const Google__Protobuf__Struct *object)
{
    peg__out_object(out);
    for (size_t i = 0; i < object->n_fields; i++) {
        peg__out_key_str(out, peg__str(object->fields[i]->key));
        put_json_value(out, object->fields[i]->value);
    }
    peg__out_end_object(out);
}

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GRPC_MESSAGE_DEPTH bounds what was unpacked. */
static void put_list(struct peg__out *out, const Google__Protobuf__ListValue *list)
{
    peg__out_array(out);
    for (size_t i = 0; i < list->n_values; i++)
        put_json_value(out, list->values[i]);
    peg__out_end_array(out);
}

/* A field of a map may have no value, which is then NULL: null.
 * NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GRPC_MESSAGE_DEPTH bounds what was unpacked. */
static void put_json_value(struct peg__out *out, const Value *value)
{
    switch (value ? value->kind_case : GOOGLE__PROTOBUF__VALUE__KIND__NOT_SET) {
    case GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE:
        peg__out_double(out, value->number_value);
        break;
    case GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE:
        peg__out_cstring(out, value->string_value);
        break;
    case GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE:
        peg__out_bool(out, value->bool_value);
        break;
    case GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE:
        put_struct(out, value->struct_value);
        break;
    case GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE:
        put_list(out, value->list_value);
        break;
    default:
        peg__out_null(out);
    }
}

static peg_status write_json(const Value *value, struct peg__arena *arena, peg_str *ret_json,
                             peg_error *reterr)
{
    struct peg__buf buf = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    struct peg__out out = {.buf = &buf};
    peg_status status;
    char *copy = NULL;

    put_json_value(&out, value);
    status = buf.status;
    if (!status && !(copy = peg__arena_copy(arena, peg__buf_view(&buf))))
        status = PEG_ENOMEM;
    if (!status)
        *ret_json = peg__strn(copy, buf.len);
    peg__buf_free(&buf);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "a value takes more than %d bytes as JSON: send less at once",
                         PEG_LIMIT_GATEWAY_RESULT_BYTES);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* The part behind the last '/', which is what readers of Any go by. */
static bool is_value(const char *type_url)
{
    const char *slash = type_url ? strrchr(type_url, '/') : NULL;

    return slash && strcmp(slash, "/google.protobuf.Value") == 0;
}

peg_status wire_any_read(const Any *any, struct peg__arena *arena, peg_str *ret_json,
                         peg_error *reterr)
{
    const ProtobufCMessage *message;
    const Value *value;
    peg_status status;

    if (!any || !is_value(any->type_url)) {
        *ret_json = peg__str("null");
        return PEG_OK;
    }
    status = grpc_message_unpack(&google__protobuf__value__descriptor, arena,
                                 peg__strn((const char *)any->value.data, any->value.len), &message,
                                 reterr);
    if (status == PEG_EPARSE) {
        *ret_json = peg__str("null");
        return PEG_OK;
    }
    if (status)
        return status;
    value = (const Value *)message;
    if (value->kind_case != GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE)
        return write_json(value, arena, ret_json, reterr);
    *ret_json = peg__str(value->string_value[0] ? value->string_value : "null");
    return PEG_OK;
}
