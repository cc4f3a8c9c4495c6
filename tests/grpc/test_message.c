/* SPDX-License-Identifier: Apache-2.0 */

/* Messages in an arena, and what a peer may write instead of one. */

#include "grpc/message.h"

#include <protobuf-c/protobuf-c.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- a type that contains itself, as protoc-c would write it --------------------------------
 *
 *   message Node { string text = 1; Node child = 2; repeated Node kids = 3; int32 n = 4; }
 */

typedef struct node {
    ProtobufCMessage base;
    char *text;
    struct node *child;
    size_t n_kids;
    struct node **kids;
    int32_t n;
} node;

static const ProtobufCMessageDescriptor node_descriptor;

static const ProtobufCFieldDescriptor node_fields[] = {
    {.name = "text",
     .id = 1,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_STRING,
     .offset = offsetof(node, text)},
    {.name = "child",
     .id = 2,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .offset = offsetof(node, child),
     .descriptor = &node_descriptor},
    {.name = "kids",
     .id = 3,
     .label = PROTOBUF_C_LABEL_REPEATED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .quantifier_offset = offsetof(node, n_kids),
     .offset = offsetof(node, kids),
     .descriptor = &node_descriptor},
    {.name = "n",
     .id = 4,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_INT32,
     .offset = offsetof(node, n)},
};
static const unsigned node_by_name[] = {1, 2, 3, 0};
static const ProtobufCIntRange node_ranges[] = {{1, 0}, {0, 4}};

static void node_init(ProtobufCMessage *message)
{
    *(node *)message = (node){.base = {.descriptor = &node_descriptor}};
}

static const ProtobufCMessageDescriptor node_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.Node",
    .short_name = "Node",
    .c_name = "node",
    .package_name = "test",
    .sizeof_message = sizeof(node),
    .n_fields = 4,
    .fields = node_fields,
    .fields_sorted_by_name = node_by_name,
    .n_field_ranges = 1,
    .field_ranges = node_ranges,
    .message_init = node_init,
};

static node make_node(char *text, int32_t n)
{
    return (node){.base = {.descriptor = &node_descriptor}, .text = text, .n = n};
}

static peg_status unpack(struct peg__arena *arena, peg_str bytes, const node **ret_node,
                         peg_error *reterr)
{
    const ProtobufCMessage *message = NULL;
    const peg_status status = grpc_message_unpack(&node_descriptor, arena, bytes, &message, reterr);

    if (!status)
        *ret_node = (const node *)message;
    return status;
}

/* `depth` nodes, each the child of the one before: from the inside out, at the end of `out`. */
static peg_str nest(size_t depth, uint8_t *out, size_t size)
{
    size_t at = size;

    for (size_t i = 1; i < depth; i++) {
        size_t len = size - at;

        if (len < 0x80) {
            out[--at] = (uint8_t)len;
        } else {
            out[--at] = (uint8_t)(len >> 7);
            out[--at] = (uint8_t)(len | 0x80);
        }
        out[--at] = 2 << 3 | 2;
    }
    return (peg_str){(const char *)out + at, size - at};
}

/* ---- tests -----------------------------------------------------------------------------------
 */

TEST(a_message_survives_packing_and_unpacking)
{
    node kid = make_node((char[]){"kid"}, -7);
    node *kids[] = {&kid, &kid};
    node root = make_node((char[]){"root"}, 42);
    struct peg__arena arena = {0};
    const node *back = NULL;
    uint8_t bytes[256];
    size_t len;

    root.child = &kid;
    root.kids = kids;
    root.n_kids = 2;

    len = grpc_message_packed_size(&root.base);
    CHECK(len <= sizeof(bytes));
    grpc_message_pack(&root.base, bytes);
    CHECK_INT(unpack(&arena, (peg_str){(const char *)bytes, len}, &back, NULL), PEG_OK);

    memset(bytes, 0xff, sizeof(bytes)); /* nothing is borrowed from them */
    CHECK_STR(peg__str(back->text), "root");
    CHECK_INT(back->n, 42);
    CHECK_STR(peg__str(back->child->text), "kid");
    CHECK_INT(back->n_kids, 2);
    CHECK_INT(back->kids[1]->n, -7);
    peg__arena_free(&arena);
}

TEST(no_bytes_are_an_empty_message)
{
    struct peg__arena arena = {0};
    const node *back = NULL;

    CHECK_INT(unpack(&arena, (peg_str){NULL, 0}, &back, NULL), PEG_OK);

    CHECK_INT(back->n, 0);
    CHECK(!back->child);
    peg__arena_free(&arena);
}

TEST(fields_that_nobody_knows_are_let_through)
{
    /* field 9: a varint; field 10: 64 bits; field 11: 32 bits; field 12: bytes that are no UTF-8 */
    static const char bytes[] = "\x48\x05"
                                "\x51"
                                "12345678"
                                "\x5d"
                                "1234"
                                "\x62\x02\xff\xfe"
                                "\x20\x03";
    struct peg__arena arena = {0};
    const node *back = NULL;

    CHECK_INT(unpack(&arena, (peg_str){bytes, sizeof(bytes) - 1}, &back, NULL), PEG_OK);

    CHECK_INT(back->n, 3);
    peg__arena_free(&arena);
}

TEST(bytes_that_are_no_message_are_refused)
{
    static const peg_str bad[] = {
        PEG_LIT("\x0a"),                                             /* a tag, no length */
        PEG_LIT("\x0a\x05hi"),                                       /* a string that is cut off */
        PEG_LIT("\x20"),                                             /* a varint that is missing */
        PEG_LIT("\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* and one without an end */
        PEG_LIT("\x02\x00"),                                         /* field 0 */
        PEG_LIT("\x0b\x0c"),                                         /* a group */
        PEG_LIT("\x0e"),                                             /* wire type 6 */
        PEG_LIT("\x51\x01"),                                         /* 64 bits cut off */
        PEG_LIT("\x5d\x01"),                                         /* 32 bits cut off */
        PEG_LIT("\x12\x02\x0a\x05"),                                 /* inside the child */
        PEG_LIT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),     /* a length beyond all */
        PEG_LIT("\x20\x01\x08\x01"),                                 /* a number for a string */
    };
    struct peg__arena arena = {0};
    const node *back = NULL;
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(unpack(&arena, bad[i], &back, &error), PEG_EPARSE);
        CHECK_STR(peg__str(error.code), "E_PROTOBUF");
    }
    CHECK(!back);
    CHECK(strstr(error.message, "test.Node"));
    peg__arena_free(&arena);
}

TEST(strings_must_be_utf8_without_a_nul)
{
    struct peg__arena arena = {0};
    const node *back = NULL;
    peg_error error;

    CHECK_INT(unpack(&arena, (peg_str){"\x0a\x02\xc3\x28", 4}, &back, &error), PEG_EPARSE);
    CHECK(strstr(error.message, "text is no UTF-8"));
    CHECK_INT(unpack(&arena,
                     (peg_str){"\x0a\x03"
                               "a\0b",
                               5},
                     &back, &error),
              PEG_EPARSE);
    CHECK(strstr(error.message, "contains a NUL"));
    CHECK_INT(unpack(&arena, (peg_str){"\x0a\x02\xc3\xa4", 4}, &back, &error), PEG_OK);
    CHECK_STR(peg__str(back->text), "\xc3\xa4");
    peg__arena_free(&arena);
}

TEST(messages_inside_each_other_have_a_limit)
{
    static uint8_t bytes[1024];
    struct peg__arena arena = {0};
    const node *back = NULL;
    peg_error error;

    CHECK_INT(
        unpack(&arena, nest(PEG_LIMIT_GRPC_MESSAGE_DEPTH, bytes, sizeof(bytes)), &back, &error),
        PEG_OK);
    CHECK_INT(
        unpack(&arena, nest(PEG_LIMIT_GRPC_MESSAGE_DEPTH + 1, bytes, sizeof(bytes)), &back, &error),
        PEG_ELIMIT);

    CHECK(strstr(error.message, "nest deeper"));
    peg__arena_free(&arena);
}

TEST(small_bytes_cannot_become_large_memory)
{
    enum { LEN = 4 << 20 };
    struct peg__arena arena = {0};
    const node *back = NULL;
    char *bytes = peg__alloc(LEN);
    peg_error error;

    CHECK(bytes);
    for (size_t i = 0; i < LEN; i += 2)
        memcpy(bytes + i, "\x1a\x00", 2); /* an empty kid */

    CHECK_INT(unpack(&arena, (peg_str){bytes, LEN}, &back, &error), PEG_ELIMIT);

    CHECK(strstr(error.message, "bytes of memory"));
    CHECK(arena.held <= (size_t)PEG_LIMIT_GRPC_UNPACKED_BYTES * 2);
    peg__free(bytes);
    peg__arena_free(&arena);
}

TORTURE(unpacking_survives_any_allocation_failure)
{
    static uint8_t bytes[512];
    struct peg__arena arena = {0};
    const node *back = NULL;
    const peg_status status = unpack(&arena, nest(50, bytes, sizeof(bytes)), &back, NULL);

    peg__arena_free(&arena);
    return status;
}
