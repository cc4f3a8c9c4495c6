/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: what a provider sends on its stream: frames of Attach, each behind its length in two
 * bytes, the low one first. Results are put together from their chunks within their bounds, and
 * split again into chunks that make the same.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "fuzz.h"
#include "grpc/message.h"
#include "pegboard/v1/registry.pb-c.h"
#include "wire/wire.h"

static peg_str take_frame(peg_str *rest)
{
    const size_t want = (uint8_t)rest->ptr[0] | (size_t)(uint8_t)rest->ptr[1] << 8;
    const size_t len = want < rest->len - 2 ? want : rest->len - 2;
    const peg_str frame = {rest->ptr + 2, len};

    *rest = peg__str_from(*rest, 2 + len);
    return frame;
}

static void check_split(peg_str text)
{
    struct wire_chunks chunks = {0};
    peg_str rest = text;

    while (rest.len) {
        const size_t n =
            rest.len < PEG_LIMIT_GATEWAY_CHUNK_BYTES ? rest.len : PEG_LIMIT_GATEWAY_CHUNK_BYTES;

        REQUIRE(wire_chunks_add(&chunks, peg__strn(rest.ptr, n), NULL) == PEG_OK,
                "a chunk of ours is taken");
        rest = peg__str_from(rest, n);
    }
    REQUIRE(peg__str_eq(wire_chunks_view(&chunks), text), "they make the same");
    wire_chunks_free(&chunks);
}

static void on_result(const Pegboard__V1__Result *result, struct wire_chunks *chunks)
{
    const size_t before = wire_chunks_view(chunks).len;
    const peg_str chunk = {(const char *)result->chunk.data, result->chunk.len};
    peg_error error;
    const peg_status status = wire_chunks_add(chunks, chunk, &error);

    if (status) {
        REQUIRE(error.message[0] != '\0', "a refusal says why");
        REQUIRE(wire_chunks_view(chunks).len == 0, "and keeps nothing");
    } else {
        REQUIRE(wire_chunks_view(chunks).len == before + chunk.len, "it is added");
    }
    REQUIRE(wire_chunks_view(chunks).len <= PEG_LIMIT_GATEWAY_RESULT_BYTES, "it is bounded");
    if (result->more)
        return;
    check_split(wire_chunks_view(chunks));
    wire_chunks_free(chunks);
}

static void on_hello(const Pegboard__V1__Hello *hello)
{
    peg_error error;

    if (wire_check_incarnation(peg__str(hello->incarnation), &error) == PEG_OK)
        REQUIRE(strlen(hello->incarnation) <= 64, "an incarnation is short");
    if (wire_check_name(peg__str(hello->toolset), "toolset", &error) == PEG_OK)
        REQUIRE(strlen(hello->toolset) <= PEG_LIMIT_NAME_BYTES, "a name is short");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);
    struct wire_chunks chunks = {0};

    while (rest.len >= 2) {
        const peg_str frame = take_frame(&rest);
        const ProtobufCMessage *message = NULL;
        const Pegboard__V1__AttachRequest *request;
        struct peg__arena arena = {0};

        if (grpc_message_unpack(&pegboard__v1__attach_request__descriptor, &arena, frame, &message,
                                NULL) == PEG_OK) {
            request = (const Pegboard__V1__AttachRequest *)message;
            if (request->frame_case == PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT)
                on_result(request->result, &chunks);
            else if (request->frame_case == PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO)
                on_hello(request->hello);
        }
        peg__arena_free(&arena);
    }
    wire_chunks_free(&chunks);
    return 0;
}
