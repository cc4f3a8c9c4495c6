/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: the path of a method of the registry, its two older services or the administration in a
 * line of its own, then a request of it as bytes. What is unpacked says the same when it is packed
 * and unpacked again; every text, number and Any in it goes through the checks that the gateway
 * makes, and a registration becomes a toolset that stores give back as it was.
 */

#include <protobuf-c/protobuf-c.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "bus/bus.h"
#include "fuzz.h"
#include "gateway/catalog/catalog.h"
#include "google/protobuf/any.pb-c.h"
#include "grpc/message.h"
#include "methods.h"
#include "wire/wire.h"

static void check_refusal(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    REQUIRE(error->status == status && error->message[0], "a refusal says why");
    REQUIRE(!strchr(error->message, '\n'), "in one line");
    REQUIRE(peg__utf8_is_valid(peg__str(error->message)), "that can be shown");
    REQUIRE(wire_error_of_status(status) != WIRE_OK, "with a name");
}

/* Whatever field it is: each text is asked for as each kind of text. */
static void check_text(const char *text)
{
    const peg_str s = peg__str(text);
    struct bus_address address;
    struct bus_id id;
    peg_error error;

    REQUIRE(peg__utf8_is_valid(s), "strings are UTF-8");
    check_refusal(wire_check_name(s, "name", &error), &error);
    check_refusal(wire_check_id(s, "id", &error), &error);
    check_refusal(wire_check_incarnation(s, &error), &error);
    check_refusal(wire_check_version(s, &error), &error);
    check_refusal(wire_check_tags(&s, 1, &error), &error);
    if (bus_id_parse(s, &id)) {
        char again[BUS_ID_TEXT];

        bus_id_print(&id, again);
        REQUIRE(strcasecmp(again, text) == 0, "an id comes back");
    }
    (void)bus_address_parse(s, &address);
}

static void check_any(const Google__Protobuf__Any *any)
{
    struct peg__arena arena = {0};
    peg_str json = {NULL, 0};
    peg_error error;
    const peg_status status = wire_any_read(any, &arena, &json, &error);

    check_refusal(status, &error);
    if (!status)
        REQUIRE(json.len > 0 && peg__utf8_is_valid(json), "JSON text is text");
    peg__arena_free(&arena);
}

static void check_message(const ProtobufCMessage *message);

static void check_member(const ProtobufCFieldDescriptor *field, const void *member)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)member;

        if (text)
            check_text(text);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *inner = *(const ProtobufCMessage *const *)member;

        if (inner)
            check_message(inner);
    }
}

static void check_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *at = (const char *)message + field->offset;
    const char *quantifier = (const char *)message + field->quantifier_offset;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const size_t n = *(const size_t *)(const void *)quantifier;
        const char *items = *(const char *const *)(const void *)at;

        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
            return;
        for (size_t i = 0; i < n; i++)
            check_member(field, items + i * sizeof(void *));
    } else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
               *(const uint32_t *)(const void *)quantifier == field->id) {
        check_member(field, at);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GRPC_MESSAGE_DEPTH bounds what was unpacked. */
static void check_message(const ProtobufCMessage *message)
{
    if (message->descriptor == &google__protobuf__any__descriptor)
        check_any((const Google__Protobuf__Any *)message);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        check_field(message, &message->descriptor->fields[i]);
}

static void check_toolset(const Pegboard__V1__RegisterRequest *request)
{
    const struct gw_toolset_dates dates = {.owner = peg__str("local"), .revision = 1};
    struct gw_toolset *toolset = NULL;
    struct gw_toolset *again = NULL;
    struct peg__buf json = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_error error;
    const peg_status status = gw_toolset_make(request, &dates, &toolset, &error);

    check_refusal(status, &error);
    if (status) {
        REQUIRE(!toolset, "nothing is kept");
        return;
    }
    REQUIRE(gw_toolset_write(toolset, &json, &error) == PEG_OK, "%s", error.message);
    REQUIRE(gw_toolset_read(peg__buf_view(&json), &again, &error) == PEG_OK, "%s", error.message);
    REQUIRE(memcmp(toolset->digest, again->digest, sizeof(again->digest)) == 0, "it is the same");
    gw_toolset_unref(toolset);
    gw_toolset_unref(again);
    peg__buf_free(&json);
}

static peg_str pack(const ProtobufCMessage *message)
{
    const size_t len = grpc_message_packed_size(message);
    uint8_t *bytes = malloc(len + 1);

    REQUIRE(bytes, "memory");
    grpc_message_pack(message, bytes);
    return peg__strn((const char *)bytes, len);
}

static void check_again(const ProtobufCMessage *message, struct peg__arena *arena)
{
    const peg_str first = pack(message);
    const ProtobufCMessage *again;
    peg_str second;

    REQUIRE(grpc_message_unpack(message->descriptor, arena, first, &again, NULL) == PEG_OK,
            "what was packed is unpacked");
    second = pack(again);
    REQUIRE(peg__str_eq(first, second), "and says the same");
    fuzz_free(first);
    fuzz_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str bytes = fuzz_input(data, size);
    const struct grpc_method *method = fuzz_method(fuzz_line(&bytes));
    struct peg__arena arena = {0};
    const ProtobufCMessage *message = NULL;
    peg_error error;
    peg_status status;

    if (!method)
        return 0;
    status = grpc_message_unpack(method->input, &arena, bytes, &message, &error);
    check_refusal(status, &error);
    if (!status) {
        check_message(message);
        check_again(message, &arena);
        if (method->input == &pegboard__v1__register_request__descriptor)
            check_toolset((const Pegboard__V1__RegisterRequest *)message);
    }
    peg__arena_free(&arena);
    return 0;
}
