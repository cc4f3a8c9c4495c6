/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_PACK_H
#define PEG_WIRE_PACK_H

/*
 * Fields of a protobuf message by hand; their numbers are in the generated x/y.fields.h. Packed
 * messages can be joined: the fields of the second add to those of the first. So a call or a result
 * is packed once, and each hop appends its own fields without unpacking it.
 */

#include <string.h>

#include "pegboard/common.h"

enum { WIRE_MAX_VARINT = 10 };

static inline size_t wire_varint_size(uint64_t value)
{
    size_t n = 1;

    for (; value > 0x7f; value >>= 7)
        n++;
    return n;
}

static inline char *wire_put_varint(char *at, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        *at++ = (char)(value | 0x80);
    *at++ = (char)value;
    return at;
}

/* The tag and the length of a field that holds bytes, a string or a message; fields 1 to 15 have a
 * tag of one byte. */
static inline char *wire_put_head(char *at, unsigned field, size_t len)
{
    *at++ = (char)(field << 3 | 2);
    return wire_put_varint(at, len);
}

/* Such a field; an empty one is left out, as proto3 does. */
static inline size_t wire_bytes_size(peg_str bytes)
{
    return bytes.len ? 1 + wire_varint_size(bytes.len) + bytes.len : 0;
}

static inline char *wire_put_bytes(char *at, unsigned field, peg_str bytes)
{
    if (!bytes.len)
        return at;
    at = wire_put_head(at, field, bytes.len);
    memcpy(at, bytes.ptr, bytes.len);
    return at + bytes.len;
}

static inline size_t wire_number_size(uint64_t value)
{
    return value ? 1 + wire_varint_size(value) : 0;
}

static inline char *wire_put_number(char *at, unsigned field, uint64_t value)
{
    if (!value)
        return at;
    *at++ = (char)(field << 3);
    return wire_put_varint(at, value);
}

/* Takes the next field, of any kind: its tag, and its contents if it holds bytes; *ret_bytes is
 * left alone otherwise. False: it cannot be read. */
bool wire_next_field(peg_str *rest, uint64_t *ret_tag, peg_str *ret_bytes);
/* The last field with this number that holds a varint; 0: none. */
uint64_t wire_find_number(peg_str message, unsigned field);

/* The last field with this number that holds bytes, in a message that is well formed or not: what
 * cannot be read ends the search. {NULL, 0}: none. */
peg_str wire_find_bytes(peg_str message, unsigned field);
/* The next one, for fields that come several times; *rest, at first the message, is then what
 * stands behind it. False: there is none. */
bool wire_next_bytes(peg_str *rest, unsigned field, peg_str *ret_bytes);

#endif
