/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a google.protobuf.Value as bytes, in an Any. What is read of it is JSON wherever the
 * value is written out, and goes to the wire and back. The same bytes are also the details of a
 * status, whose name must be readable.
 */

#include "base/arena.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "grpc/message.h"
#include "wire/wire.h"

static bool is_written_out(peg_str bytes, struct peg__arena *arena)
{
    const ProtobufCMessage *message;

    if (grpc_message_unpack(&google__protobuf__value__descriptor, arena, bytes, &message, NULL))
        return true;
    return ((const Google__Protobuf__Value *)message)->kind_case !=
           GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
}

/* A struct with a name twice is written with both: whoever reads payloads decides. */
static void check_json(peg_str json)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc = NULL;
    peg_error error = {.code = ""};
    const peg_status status = peg_json_parse(json, &options, &doc, &error);

    REQUIRE(status == PEG_OK || strcmp(error.code, "E_JSON_DUPLICATE_KEY") == 0, "%s: %s",
            error.code, error.message);
    peg_json_doc_free(doc);
}

static void check_round(peg_str json, struct peg__arena *arena)
{
    Google__Protobuf__Any *any = NULL;
    peg_str again;

    REQUIRE(wire_any_write(json, arena, &any, NULL) == PEG_OK, "it can be written");
    REQUIRE(wire_any_read(any, arena, &again, NULL) == PEG_OK, "and read");
    REQUIRE(peg__str_eq(json, again), "and is the same");
}

static void check_details(peg_str bytes, struct peg__arena *arena)
{
    const struct grpc_status status = {.code = GRPC_UNAVAILABLE, .details = bytes};
    peg_str name;

    REQUIRE(wire_error_from_status(&status, arena, &name) != WIRE_OK, "an error is no success");
    REQUIRE(name.len > 0 && peg__utf8_is_valid(name), "it has a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str bytes = fuzz_input(data, size);
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    struct peg__arena arena = {0};
    peg_str json;
    peg_error error;

    any.type_url = peg__unconst("type.googleapis.com/google.protobuf.Value");
    any.value.data = peg__unconst(data);
    any.value.len = size;
    if (wire_any_read(&any, &arena, &json, &error) == PEG_OK) {
        if (is_written_out(bytes, &arena))
            check_json(json);
        check_round(json, &arena);
    } else {
        fuzz_check_error(&error, bytes);
    }
    check_details(bytes, &arena);
    peg__arena_free(&arena);
    return 0;
}
