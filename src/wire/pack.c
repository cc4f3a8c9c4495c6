/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/pack.h"

static bool take_varint(peg_str *rest, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < WIRE_MAX_VARINT && i < rest->len; i++) {
        const uint8_t byte = (uint8_t)rest->ptr[i];

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_value = value;
            rest->ptr += i + 1;
            rest->len -= i + 1;
            return true;
        }
    }
    return false;
}

static bool skip_value(peg_str *rest, uint64_t n)
{
    if (n > rest->len)
        return false;
    rest->ptr += n;
    rest->len -= n;
    return true;
}

/* Likewise; *ret_number is the value of a varint, and left alone otherwise. */
static bool take_wire_field(peg_str *rest, uint64_t *ret_tag, peg_str *ret_bytes,
                            uint64_t *ret_number)
{
    uint64_t value;

    if (!take_varint(rest, ret_tag))
        return false;
    switch (*ret_tag & 7) {
    case 0:
        return take_varint(rest, ret_number);
    case 1:
        return skip_value(rest, 8);
    case 2:
        if (!take_varint(rest, &value) || value > rest->len)
            return false;
        *ret_bytes = (peg_str){rest->ptr, (size_t)value};
        return skip_value(rest, value);
    case 5:
        return skip_value(rest, 4);
    default:
        return false;
    }
}

bool wire_next_field(peg_str *rest, uint64_t *ret_tag, peg_str *ret_bytes)
{
    uint64_t number;

    return take_wire_field(rest, ret_tag, ret_bytes, &number);
}

uint64_t wire_find_number(peg_str message, unsigned field)
{
    const uint64_t wanted = (uint64_t)field << 3;
    uint64_t found = 0;
    uint64_t number = 0;
    uint64_t tag;
    peg_str bytes;

    while (message.len && take_wire_field(&message, &tag, &bytes, &number)) {
        if (tag == wanted)
            found = number;
    }
    return found;
}

bool wire_next_bytes(peg_str *rest, unsigned field, peg_str *ret_bytes)
{
    const uint64_t wanted = (uint64_t)field << 3 | 2;
    uint64_t tag;

    while (rest->len && wire_next_field(rest, &tag, ret_bytes))
        if (tag == wanted)
            return true;
    return false;
}

peg_str wire_find_bytes(peg_str message, unsigned field)
{
    peg_str found = {NULL, 0};
    peg_str bytes = {NULL, 0};

    while (wire_next_bytes(&message, field, &bytes))
        found = bytes;
    return found;
}
