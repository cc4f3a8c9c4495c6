/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/message.h"

#include <protobuf-c/protobuf-c.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- walking what a peer sent ----------------------------------------------------------------
 */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { MAX_VARINT = 10 };

struct level {
    const ProtobufCMessageDescriptor *descriptor;
    const uint8_t *end;
};

struct walk {
    const uint8_t *at;
    size_t depth; /* of the level in which it is */
    struct level levels[PEG_LIMIT_GRPC_MESSAGE_DEPTH];
};

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < MAX_VARINT && *at < end; i++) {
        const uint8_t byte = *(*at)++;

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static peg_status fail_malformed(const ProtobufCMessageDescriptor *descriptor, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EPARSE, "E_PROTOBUF",
                     "the bytes are no message of type %s: the sender must use the same .proto",
                     descriptor->name);
}

static peg_status check_text_field(const ProtobufCFieldDescriptor *field, peg_str text,
                                   peg_error *reterr)
{
    if (text.len && memchr(text.ptr, '\0', text.len))
        return peg__fail(reterr, PEG_EPARSE, "E_PROTOBUF",
                         "the string %s contains a NUL: the sender must leave it out, or the "
                         "field must be of type bytes",
                         field->name);
    if (!peg__utf8_is_valid(text))
        return peg__fail(reterr, PEG_EPARSE, "E_PROTOBUF",
                         "the string %s is no UTF-8: the sender must encode it, or the field must "
                         "be of type bytes",
                         field->name);
    return PEG_OK;
}

static peg_status enter_message(struct walk *walk, const ProtobufCFieldDescriptor *field,
                                const uint8_t *end, peg_error *reterr)
{
    if (walk->depth + 1 == PEG_LIMIT_GRPC_MESSAGE_DEPTH)
        return peg__fail(reterr, PEG_ELIMIT, "E_PROTOBUF",
                         "messages nest deeper than %d: send a flatter one",
                         PEG_LIMIT_GRPC_MESSAGE_DEPTH);
    walk->levels[++walk->depth] = (struct level){field->descriptor, end};
    return PEG_OK;
}

/* Behind the tag of a field with a length. */
static peg_status walk_bytes(struct walk *walk, uint32_t number, peg_error *reterr)
{
    const struct level *level = &walk->levels[walk->depth];
    const ProtobufCFieldDescriptor *field;
    const uint8_t *start;
    uint64_t len;

    if (!read_varint(&walk->at, level->end, &len) || len > (size_t)(level->end - walk->at))
        return fail_malformed(level->descriptor, reterr);

    start = walk->at;
    field = protobuf_c_message_descriptor_get_field(level->descriptor, number);
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
        return enter_message(walk, field, start + len, reterr);
    walk->at = start + len;
    if (field && field->type == PROTOBUF_C_TYPE_STRING)
        return check_text_field(field, (peg_str){(const char *)start, (size_t)len}, reterr);
    return PEG_OK;
}

static peg_status walk_field(struct walk *walk, peg_error *reterr)
{
    const struct level *level = &walk->levels[walk->depth];
    size_t fixed;
    uint64_t tag;
    uint64_t ignored;

    if (!read_varint(&walk->at, level->end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return fail_malformed(level->descriptor, reterr);
    switch (tag & 7) {
    case WIRE_BYTES:
        return walk_bytes(walk, (uint32_t)(tag >> 3), reterr);
    case WIRE_VARINT:
        if (read_varint(&walk->at, level->end, &ignored))
            return PEG_OK;
        break;
    case WIRE_64:
    case WIRE_32:
        fixed = (tag & 7) == WIRE_64 ? 8 : 4;
        if ((size_t)(level->end - walk->at) < fixed)
            break;
        walk->at += fixed;
        return PEG_OK;
    default: /* groups, which are obsolete, and invalid types */
        break;
    }
    return fail_malformed(level->descriptor, reterr);
}

static peg_status check_message(const ProtobufCMessageDescriptor *descriptor, peg_str bytes,
                                peg_error *reterr)
{
    const uint8_t *start = (const uint8_t *)bytes.ptr;
    struct walk walk;
    peg_status status = PEG_OK;

    /* Not all of the levels need to be cleared for each message. */
    walk.at = start;
    walk.depth = 0;
    walk.levels[0] = (struct level){descriptor, start + bytes.len};
    for (;;) {
        while (walk.at == walk.levels[walk.depth].end && walk.depth > 0)
            walk.depth--;
        if (walk.at == walk.levels[walk.depth].end)
            return PEG_OK;
        status = walk_field(&walk, reterr);
        if (status)
            return status;
    }
}

/* ---- memory ----------------------------------------------------------------------------------
 */

struct memory {
    struct peg__arena *arena;
    size_t used;
    bool is_out;    /* of memory */
    bool is_beyond; /* the limit */
};

static void *allocate_in_arena(void *data, size_t size)
{
    struct memory *memory = data;
    void *block;

    if (size > PEG_LIMIT_GRPC_UNPACKED_BYTES - memory->used) {
        memory->is_beyond = true;
        return NULL;
    }
    block = peg__arena_alloc(memory->arena, size);
    memory->is_out |= !block;
    memory->used += size;
    return block;
}

static void free_nothing(void *data, void *block)
{
    (void)data;
    (void)block;
}

/* ---- the face --------------------------------------------------------------------------------
 */

peg_status grpc_message_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                               struct peg__arena *arena, peg_str bytes,
                               const struct ProtobufCMessage **ret_message, peg_error *reterr)
{
    struct memory memory = {.arena = arena};
    ProtobufCAllocator allocator = {
        .alloc = allocate_in_arena, .free = free_nothing, .allocator_data = &memory};
    const ProtobufCMessage *message;
    peg_status status;

    if (bytes.len == 0)
        bytes.ptr = ""; /* so that no pointer arithmetic starts from NULL */
    status = check_message(descriptor, bytes, reterr);
    if (status)
        return status;

    message =
        protobuf_c_message_unpack(descriptor, &allocator, bytes.len, (const uint8_t *)bytes.ptr);
    if (memory.is_beyond)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_PROTOBUF",
            "a message of type %s takes more than %d bytes of memory: send smaller ones",
            descriptor->name, PEG_LIMIT_GRPC_UNPACKED_BYTES);
    if (memory.is_out)
        return peg__fail_nomem(reterr);
    if (!message)
        return fail_malformed(descriptor, reterr);
    *ret_message = message;
    return PEG_OK;
}

size_t grpc_message_packed_size(const struct ProtobufCMessage *message)
{
    return protobuf_c_message_get_packed_size(message);
}

void grpc_message_pack(const struct ProtobufCMessage *message, uint8_t *ret_bytes)
{
    (void)protobuf_c_message_pack(message, ret_bytes);
}
