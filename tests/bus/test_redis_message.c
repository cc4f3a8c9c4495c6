/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

static struct bus_message full_message(void)
{
    struct bus_message message = {
        .kind = BUS_CALL,
        .reason = BUS_EPOCH,
        .id = {.len = 32},
        .attempt = 0x12345678,
        .account = 0xabcd,
        .owner = UINT64_C(0x1122334455667788),
        .was_claimed = true,
        .epoch = UINT64_MAX,
        .deadline_ms = INT64_C(-5),
        .from = {UINT64_C(0xfedcba9876543210), 0xfffffffe},
    };

    memset(message.id.bytes, 0x5a, sizeof(message.id.bytes));
    memset(message.incarnation, 'i', sizeof(message.incarnation) - 1);
    return message;
}

TEST(a_message_is_unpacked_as_it_was_packed)
{
    const struct bus_message message = full_message();
    struct bus_message back;
    char bytes[REDIS_MESSAGE_HEAD];
    const size_t len = redis_message_pack(&message, true, bytes);
    bool has_body;
    bool is_by_key;
    peg_str rest;

    CHECK(redis_message_unpack(peg__strn(bytes, len), &back, &has_body, &is_by_key, &rest));

    CHECK_INT(rest.len, 0);
    CHECK(!has_body && is_by_key);
    CHECK(back.kind == message.kind && back.reason == message.reason);
    CHECK(bus_id_equal(&back.id, &message.id));
    CHECK(back.attempt == message.attempt && back.account == message.account);
    CHECK(back.owner == message.owner && back.epoch == message.epoch);
    CHECK(back.was_claimed && back.deadline_ms == message.deadline_ms);
    CHECK(bus_address_equal(back.from, message.from));
    CHECK_STR(peg__str(back.incarnation), message.incarnation);
}

TEST(a_kind_that_this_version_does_not_know_travels_as_its_number)
{
    struct bus_message message = {.kind = (enum bus_message_kind)999};
    struct bus_message back;
    char bytes[REDIS_MESSAGE_HEAD];
    bool has_body;
    bool is_by_key;
    peg_str rest;

    CHECK(redis_message_unpack(peg__strn(bytes, redis_message_pack(&message, false, bytes)), &back,
                               &has_body, &is_by_key, &rest));
    CHECK_INT(back.kind, 999);
}

TEST(a_message_that_is_cut_is_refused)
{
    const struct bus_message message = full_message();
    char bytes[REDIS_MESSAGE_HEAD];
    const size_t len = redis_message_pack(&message, false, bytes);

    for (size_t n = 0; n < len; n++) {
        /* A copy of just so many bytes: reading behind them would show. */
        char *copy = (char *)malloc(n + 1);
        struct bus_message back;
        bool has_body;
        bool is_by_key;
        peg_str rest;

        memcpy(copy, bytes, n);
        CHECK(!redis_message_unpack(peg__strn(copy, n), &back, &has_body, &is_by_key, &rest));
        free(copy);
    }
}

TEST(a_message_with_wrong_lengths_flags_or_version_is_refused)
{
    static const struct {
        size_t at;
        char byte;
    } changes[] = {{0, 2}, {1, 64}, {48, 33}, {48, (char)0xff}, {49, 65}, {49, (char)0xff}};
    const struct bus_message message = full_message();

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char bytes[REDIS_MESSAGE_HEAD + 512] = {0};
        struct bus_message back;
        bool has_body;
        bool is_by_key;
        peg_str rest;

        redis_message_pack(&message, false, bytes);
        bytes[changes[i].at] = changes[i].byte;
        CHECK(!redis_message_unpack(peg__strn(bytes, sizeof(bytes)), &back, &has_body, &is_by_key,
                                    &rest));
    }
}
