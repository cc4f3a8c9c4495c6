/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/pack.h"

#include "../t.h"

TEST(fields_are_written_as_protobuf_does)
{
    char bytes[32];
    char *at = wire_put_number(bytes, 2, 300);

    at = wire_put_bytes(at, 1, peg_cstr("ab"));
    CHECK((size_t)(at - bytes) == 7);
    CHECK(memcmp(bytes,
                 "\x10\xac\x02\x0a\x02"
                 "ab",
                 7) == 0);
    CHECK(wire_number_size(300) + wire_bytes_size(peg_cstr("ab")) == 7);
}

TEST(empty_fields_are_left_out)
{
    char bytes[8];

    CHECK(wire_put_number(bytes, 2, 0) == bytes);
    CHECK(wire_put_bytes(bytes, 1, peg_cstr("")) == bytes);
    CHECK(wire_number_size(0) == 0 && wire_bytes_size(peg_cstr("")) == 0);
}

TEST(a_number_has_at_most_ten_bytes)
{
    char bytes[16];

    CHECK((size_t)(wire_put_varint(bytes, UINT64_MAX) - bytes) == WIRE_MAX_VARINT);
    CHECK(wire_varint_size(UINT64_MAX) == WIRE_MAX_VARINT);
    CHECK(wire_varint_size(0) == 1);
}

TEST(a_field_is_found_among_others_and_the_last_one_counts)
{
    const peg_str message = {"\x08\x05\x1a\x01"
                             "a\x11"
                             "12345678\x1a\x02"
                             "bc\x25"
                             "1234",
                             23};

    CHECK_STR(wire_find_bytes(message, 3), "bc");
    CHECK(wire_find_bytes(message, 4).ptr == NULL);
    CHECK(wire_find_bytes(message, 1).ptr == NULL);
}

TEST(fields_that_come_several_times_are_met_one_after_the_other)
{
    peg_str rest = {"\x1a\x01"
                    "a\x08\x05\x1a\x02"
                    "bc\x1a\x05z",
                    12};
    peg_str bytes;

    CHECK(wire_next_bytes(&rest, 3, &bytes));
    CHECK_STR(bytes, "a");
    CHECK(wire_next_bytes(&rest, 3, &bytes));
    CHECK_STR(bytes, "bc");
    CHECK(!wire_next_bytes(&rest, 3, &bytes)); /* it is cut off */
}

TEST(what_is_cut_off_or_malformed_ends_the_search)
{
    CHECK(wire_find_bytes((peg_str){"\x1a\x05"
                                    "ab",
                                    4},
                          3)
              .ptr == NULL);
    CHECK(wire_find_bytes((peg_str){"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, 3).ptr ==
          NULL);
    CHECK(wire_find_bytes((peg_str){"\x0b\x1a\x01"
                                    "a",
                                    4},
                          3)
              .ptr == NULL);
    CHECK(wire_find_bytes((peg_str){"\x1a", 1}, 3).ptr == NULL);
}
