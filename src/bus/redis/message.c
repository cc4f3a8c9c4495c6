/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A message as bytes, little-endian:
 *
 *   version 1 | flags 1 | kind 2 | reason 2 | account 2 | attempt 4 | from.loop 4 | from.node 8 |
 *   owner 8 | epoch 8 | deadline 8 | id length 1 | incarnation length 1 | id | incarnation | rest
 *
 * The rest is the body, or the name of the key where it lies. Kinds and reasons are numbers that
 * this file does not know.
 */

#include <endian.h>
#include <string.h>

#include "base/text/str.h"
#include "bus/redis/internal.h"

enum { VERSION = 1, HAS_BODY = 1, IS_BY_KEY = 2, WAS_CLAIMED = 4, ALL_FLAGS = 7, FIXED = 50 };

_Static_assert((int)REDIS_MESSAGE_HEAD >= FIXED + (int)sizeof(((struct bus_id *)0)->bytes) +
                                              (int)sizeof(((struct bus_message *)0)->incarnation),
               "the head holds the longest message");

static char *put_16(char *at, uint16_t value)
{
    value = htole16(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static char *put_32(char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static char *put_64(char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static char *put_bytes(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

size_t redis_message_pack(const struct bus_message *message, bool is_by_key,
                          char ret_bytes[REDIS_MESSAGE_HEAD])
{
    const size_t incarnation_len = strnlen(message->incarnation, sizeof(message->incarnation) - 1);
    char *at = ret_bytes;

    *at++ = VERSION;
    *at++ = (char)((message->body ? HAS_BODY : 0) | (is_by_key ? IS_BY_KEY : 0) |
                   (message->was_claimed ? WAS_CLAIMED : 0));
    at = put_16(at, (uint16_t)message->kind);
    at = put_16(at, (uint16_t)message->reason);
    at = put_16(at, message->account);
    at = put_32(at, message->attempt);
    at = put_32(at, message->from.loop);
    at = put_64(at, message->from.node);
    at = put_64(at, message->owner);
    at = put_64(at, message->epoch);
    at = put_64(at, (uint64_t)message->deadline_ms);
    *at++ = (char)message->id.len;
    *at++ = (char)incarnation_len;
    at = put_bytes(at, message->id.bytes, message->id.len);
    at = put_bytes(at, message->incarnation, incarnation_len);
    return (size_t)(at - ret_bytes);
}

static uint16_t get_16(const char **at)
{
    uint16_t value;

    memcpy(&value, *at, sizeof(value));
    *at += sizeof(value);
    return le16toh(value);
}

static uint32_t get_32(const char **at)
{
    uint32_t value;

    memcpy(&value, *at, sizeof(value));
    *at += sizeof(value);
    return le32toh(value);
}

static uint64_t get_64(const char **at)
{
    uint64_t value;

    memcpy(&value, *at, sizeof(value));
    *at += sizeof(value);
    return le64toh(value);
}

bool redis_message_unpack(peg_str bytes, struct bus_message *ret_message, bool *ret_has_body,
                          bool *ret_is_by_key, peg_str *ret_rest)
{
    struct bus_message message = {.body = NULL};
    const char *at = bytes.ptr + 2;
    unsigned flags;
    size_t id_len;
    size_t incarnation_len;

    if (bytes.len < FIXED || bytes.ptr[0] != VERSION)
        return false;
    flags = (unsigned char)bytes.ptr[1];
    message.kind = (enum bus_message_kind)get_16(&at);
    message.reason = (enum bus_reason)get_16(&at);
    message.account = get_16(&at);
    message.attempt = get_32(&at);
    message.from.loop = get_32(&at);
    message.from.node = get_64(&at);
    message.owner = get_64(&at);
    message.epoch = get_64(&at);
    message.deadline_ms = (int64_t)get_64(&at);
    id_len = (unsigned char)*at++;
    incarnation_len = (unsigned char)*at++;
    if (flags & ~(unsigned)ALL_FLAGS || id_len > sizeof(message.id.bytes) ||
        incarnation_len >= sizeof(message.incarnation) ||
        bytes.len < FIXED + id_len + incarnation_len)
        return false;
    message.was_claimed = flags & WAS_CLAIMED;
    message.id.len = (uint8_t)id_len;
    memcpy(message.id.bytes, at, id_len);
    memcpy(message.incarnation, at + id_len, incarnation_len);
    *ret_message = message;
    *ret_has_body = flags & HAS_BODY;
    *ret_is_by_key = flags & IS_BY_KEY;
    *ret_rest = peg__str_from(bytes, FIXED + id_len + incarnation_len);
    return true;
}
