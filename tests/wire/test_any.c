/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <math.h>

#include "wire/wire.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "grpc/message.h"

typedef Google__Protobuf__Value Value;

/* An Any of this value, in the arena. */
static Google__Protobuf__Any *any_of(const Value *value, struct peg__arena *arena)
{
    Google__Protobuf__Any *any = peg__arena_alloc(arena, sizeof(*any));

    google__protobuf__any__init(any);
    any->type_url = peg__unconst("type.googleapis.com/google.protobuf.Value");
    any->value.len = grpc_message_packed_size(&value->base);
    any->value.data = peg__arena_alloc(arena, any->value.len + 1);
    grpc_message_pack(&value->base, any->value.data);
    return any;
}

static void check_reads(const Value *value, const char *expected)
{
    struct peg__arena arena = {0};
    peg_str json;

    CHECK_INT(wire_any_read(any_of(value, &arena), &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, expected);
    peg__arena_free(&arena);
}

static Value number(double n)
{
    Value value = GOOGLE__PROTOBUF__VALUE__INIT;

    value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE;
    value.number_value = n;
    return value;
}

static Value string(const char *text)
{
    Value value = GOOGLE__PROTOBUF__VALUE__INIT;

    value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
    value.string_value = peg__unconst(text);
    return value;
}

TEST(json_is_written_as_goa_writes_it)
{
    static const uint8_t expected[] = {0x1a, 0x07, '{', '"', 'x', '"', ':', '1', '}'};
    struct peg__arena arena = {0};
    Google__Protobuf__Any *any = NULL;

    CHECK_INT(wire_any_write(peg__str("{\"x\":1}"), &arena, &any, NULL), PEG_OK);

    CHECK_STR(peg__str(any->type_url), "type.googleapis.com/google.protobuf.Value");
    CHECK_INT(any->value.len, sizeof(expected));
    CHECK(memcmp(any->value.data, expected, sizeof(expected)) == 0);
    peg__arena_free(&arena);
}

TEST(null_is_a_field_that_is_not_there)
{
    struct peg__arena arena = {0};
    Google__Protobuf__Any *any = (Google__Protobuf__Any *)&arena;
    peg_str json;

    CHECK_INT(wire_any_write(peg__str("null"), &arena, &any, NULL), PEG_OK);
    CHECK(any == NULL);
    CHECK_INT(wire_any_write(peg__str(""), &arena, &any, NULL), PEG_OK);
    CHECK(any == NULL);
    CHECK_INT(wire_any_read(NULL, &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "null");
    peg__arena_free(&arena);
}

TEST(what_is_written_is_read_again)
{
    struct peg__arena arena = {0};
    Google__Protobuf__Any *any = NULL;
    peg_str json;

    CHECK_INT(wire_any_write(peg__str("[\"\xc3\xa4\", 1e400]"), &arena, &any, NULL), PEG_OK);
    CHECK_INT(wire_any_read(any, &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "[\"\xc3\xa4\", 1e400]");
    peg__arena_free(&arena);
}

TEST(a_value_of_parts_is_written_out)
{
    Value one = number(1.5);
    Value text = string("a\"b");
    Value truth = GOOGLE__PROTOBUF__VALUE__INIT;
    Value nothing = GOOGLE__PROTOBUF__VALUE__INIT;
    Value *values[] = {&one, &text, &truth, &nothing};
    Google__Protobuf__ListValue list = GOOGLE__PROTOBUF__LIST_VALUE__INIT;
    Value items = GOOGLE__PROTOBUF__VALUE__INIT;
    Google__Protobuf__Struct__FieldsEntry entry = GOOGLE__PROTOBUF__STRUCT__FIELDS_ENTRY__INIT;
    Google__Protobuf__Struct__FieldsEntry *entries[] = {&entry};
    Google__Protobuf__Struct object = GOOGLE__PROTOBUF__STRUCT__INIT;
    Value root = GOOGLE__PROTOBUF__VALUE__INIT;

    truth.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE;
    truth.bool_value = 1;
    nothing.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE;
    list.values = values;
    list.n_values = 4;
    items.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
    items.list_value = &list;
    entry.key = peg__unconst("k\n");
    entry.value = &items;
    object.fields = entries;
    object.n_fields = 1;
    root.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE;
    root.struct_value = &object;

    check_reads(&root, "{\"k\\n\":[1.5,\"a\\\"b\",true,null]}");
    entry.value = NULL;
    check_reads(&root, "{\"k\\n\":null}");
}

TEST(numbers_that_json_has_not_are_null)
{
    const Value whole = number(3);
    const Value nan = number((double)NAN);
    const Value infinite = number((double)INFINITY);
    const Value unset = GOOGLE__PROTOBUF__VALUE__INIT;
    const Value empty = string("");

    check_reads(&whole, "3");
    check_reads(&nan, "null");
    check_reads(&infinite, "null");
    check_reads(&unset, "null");
    check_reads(&empty, "null");
}

TEST(a_text_that_is_no_json_is_handed_on_as_it_is)
{
    const Value value = string("not json");

    check_reads(&value, "not json");
}

TEST(another_type_and_garbage_are_null)
{
    struct peg__arena arena = {0};
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    uint8_t garbage[] = {0x1a, 0x7f, 0x00};
    peg_str json;

    any.value.data = garbage;
    any.value.len = sizeof(garbage);
    any.type_url = peg__unconst("type.googleapis.com/google.protobuf.Duration");
    CHECK_INT(wire_any_read(&any, &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "null");
    any.type_url = peg__unconst("type.googleapis.com/google.protobuf.Value");
    CHECK_INT(wire_any_read(&any, &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "null");
    any.type_url = peg__unconst("");
    CHECK_INT(wire_any_read(&any, &arena, &json, NULL), PEG_OK);
    CHECK_STR(json, "null");
    peg__arena_free(&arena);
}

/* A list in a list in a list ...: two bytes of head for each level, from the inside out. */
TEST(lists_inside_lists_without_end_are_refused)
{
    enum { LEVELS = 400 };
    static uint8_t bytes[LEVELS * 10];
    size_t at = sizeof(bytes);
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    struct peg__arena arena = {0};
    peg_str json = {"untouched", 9};
    peg_error error;

    for (int level = 0; level < LEVELS; level++) {
        for (int part = 0; part < 2; part++) {
            const size_t len = sizeof(bytes) - at;

            if (len >= 128) {
                bytes[--at] = (uint8_t)(len >> 7);
                bytes[--at] = (uint8_t)(len | 0x80);
            } else {
                bytes[--at] = (uint8_t)len;
            }
            bytes[--at] = part ? 0x32 : 0x0a; /* list_value, values */
        }
    }
    any.type_url = peg__unconst("x/google.protobuf.Value");
    any.value.data = bytes + at;
    any.value.len = sizeof(bytes) - at;

    CHECK_INT(wire_any_read(&any, &arena, &json, &error), PEG_ELIMIT);
    CHECK_STR(json, "untouched");
    peg__arena_free(&arena);
}

TEST(a_value_that_grows_when_it_is_written_out_is_refused)
{
    enum { N = PEG_LIMIT_GATEWAY_RESULT_BYTES / 6 + 10 };
    char *text = malloc(N + 1);
    Value control;
    Value *values[] = {&control};
    Google__Protobuf__ListValue list = GOOGLE__PROTOBUF__LIST_VALUE__INIT;
    Value root = GOOGLE__PROTOBUF__VALUE__INIT;
    struct peg__arena arena = {0};
    peg_str json;
    peg_error error;

    memset(text, 1, N);
    text[N] = '\0';
    control = string(text);
    list.values = values;
    list.n_values = 1;
    root.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
    root.list_value = &list;

    CHECK_INT(wire_any_read(any_of(&root, &arena), &arena, &json, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "bytes as JSON") != NULL);
    peg__arena_free(&arena);
    free(text);
}

TORTURE(an_any_goes_round_with_little_memory)
{
    struct peg__arena arena = {0};
    Google__Protobuf__Any *any = NULL;
    peg_str json;
    peg_status status = wire_any_write(peg__str("{}"), &arena, &any, NULL);

    if (!status)
        status = wire_any_read(any, &arena, &json, NULL);
    peg__arena_free(&arena);
    return status;
}
