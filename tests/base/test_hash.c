/* SPDX-License-Identifier: Apache-2.0 */

#include "base/hash.h"

#include "../t.h"
#include "base/text/str.h"

/* The reference keys and inputs of SipHash: key 00..0f, input 00, 00 01, ... */
static const struct peg__hash_key reference_key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(hash_is_siphash_1_3)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } vectors[] = {
        {0, 0xabac0158050fc4dc},  {1, 0xc9f49bf37d57ca93},  {2, 0x82cb9b024dc7d44d},
        {3, 0x8bf80ab8e7ddf7fb},  {4, 0xcf75576088d38328},  {5, 0xdef9d52f49533b67},
        {6, 0xc50d2b50c59f22a7},  {7, 0xd3927d989bb11140},  {8, 0x369095118d299a8e},
        {12, 0x78a384b157b4d9a2}, {15, 0xd320d86d2a519956}, {16, 0xcc4fdd1a7d908b66},
        {63, 0x9d199062b7bbb3a8},
    };
    char input[64];

    for (int i = 0; i < (int)sizeof(input); i++)
        input[i] = (char)i;

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        CHECK(peg__hash(reference_key, peg__strn(input, vectors[i].len)) == vectors[i].hash);
}

TEST(hash_depends_on_the_key)
{
    const peg_str name = peg__str("fs.read");
    const struct peg__hash_key a = peg__hash_key_new();
    const struct peg__hash_key b = peg__hash_key_new();

    CHECK(a.k0 != b.k0);
    CHECK(peg__hash(a, name) != peg__hash(b, name));
    CHECK(peg__hash(a, name) == peg__hash(a, name));
}

TEST(hash_of_nothing_needs_no_pointer)
{
    CHECK(peg__hash(reference_key, peg__strn(NULL, 0)) ==
          peg__hash(reference_key, peg__strn("", 0)));
}
