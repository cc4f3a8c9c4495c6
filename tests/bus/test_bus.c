/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "bus/bus.h"

TEST(an_address_is_written_as_node_and_loop)
{
    char text[BUS_ADDRESS_TEXT];

    bus_address_print((struct bus_address){UINT64_C(0x9f86d081884c7d65), 3}, text);

    CHECK_STR(peg__str(text), "9f86d081884c7d65.3");
}

TEST(an_address_is_read_as_it_was_written)
{
    static const struct bus_address addresses[] = {
        {1, 0}, {UINT64_MAX, UINT32_MAX}, {UINT64_C(0x00ab000000000000), 63}};

    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        char text[BUS_ADDRESS_TEXT];
        struct bus_address read;

        bus_address_print(addresses[i], text);

        CHECK(bus_address_parse(peg__str(text), &read));
        CHECK(bus_address_equal(read, addresses[i]));
    }
}

TEST(what_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",
        ".",
        "9f86d081884c7d65",
        "9f86d081884c7d65.",
        "9f86d081884c7d65.x",
        "9f86d081884c7d65.-1",
        "9f86d081884c7d65.4294967296",
        "9f86d081884c7d65.00000000001",
        "9f86d081884c7d6.00",
        "9f86d081884c7d65:0",
        "gf86d081884c7d65.0",
        "revoked:9f86d081884c7d65.0",
    };
    struct bus_address address = {7, 7};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK(!bus_address_parse(peg__str(texts[i]), &address));
    CHECK(bus_address_equal(address, (struct bus_address){7, 7}));
}

TEST(addresses_differ_in_node_or_loop)
{
    CHECK(!bus_address_equal((struct bus_address){1, 2}, (struct bus_address){1, 3}));
    CHECK(!bus_address_equal((struct bus_address){1, 2}, (struct bus_address){2, 2}));
}

TEST(an_id_is_read_as_it_was_written)
{
    static const uint8_t lens[] = {16, 32};

    for (size_t i = 0; i < sizeof(lens); i++) {
        struct bus_id id = {.len = lens[i]};
        struct bus_id read;
        char text[BUS_ID_TEXT];

        for (size_t k = 0; k < id.len; k++)
            id.bytes[k] = (uint8_t)(k * 37 + 200);
        bus_id_print(&id, text);

        CHECK_INT(strlen(text), 2 * lens[i]);
        CHECK(bus_id_parse(peg__str(text), &read));
        CHECK(bus_id_equal(&read, &id));
    }
}

TEST(what_is_no_id_is_refused)
{
    static const char *const texts[] = {
        "",
        "00",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdeg",
        "0123456789abcdef0123456789abcdef0",
    };
    struct bus_id id;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK(!bus_id_parse(peg__str(texts[i]), &id));
}

TEST(an_id_is_made_of_hexadecimal_digits_and_nothing_else)
{
    char text[] = "0123456789abcdefABCDEF0123456789";
    struct bus_id id;

    for (unsigned place = 0; place < 32; place++) {
        const char before = text[place];

        for (unsigned c = 0; c < 256; c++) {
            const int value = peg__hex_value((char)c);

            text[place] = (char)c;
            CHECK(bus_id_parse((peg_str){text, 32}, &id) == (value >= 0));
            if (value >= 0)
                CHECK_INT(id.bytes[place / 2] >> (place % 2 ? 0 : 4) & 15, value);
        }
        text[place] = before;
    }
}

TEST(ids_of_different_lengths_differ)
{
    const struct bus_id a = {.len = 16};
    const struct bus_id b = {.len = 32};

    CHECK(!bus_id_equal(&a, &b));
}

/* Tables take the low bits, registers those from the 32nd on; all keys have to do. */
TEST(ids_that_are_counted_up_are_spread_under_every_key)
{
    enum { N_KEYS = 2000, N_IDS = 1000, N_PLACES = 32 };

    for (unsigned k = 0; k < N_KEYS; k++) {
        const struct peg__hash_key key = peg__hash_key_new();
        unsigned low[N_PLACES] = {0};
        unsigned high[N_PLACES] = {0};

        for (unsigned i = 0; i < N_IDS; i++) {
            struct bus_id id = {.len = k % 2 ? 16 : 32};
            uint64_t hash;

            memcpy(id.bytes, &i, sizeof(i));
            hash = bus_id_hash(&id, key);
            low[hash % N_PLACES]++;
            high[(hash >> 32) % N_PLACES]++;
        }
        for (unsigned i = 0; i < N_PLACES; i++) {
            CHECK(low[i] > 0 && low[i] < 4 * N_IDS / N_PLACES);
            CHECK(high[i] > 0 && high[i] < 4 * N_IDS / N_PLACES);
        }
    }
}
