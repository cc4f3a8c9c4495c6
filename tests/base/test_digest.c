/* SPDX-License-Identifier: Apache-2.0 */

#include "base/hash.h"

#include "../t.h"
#include "base/text/str.h"

static peg_str hex_digest(peg_str bytes, char hex[PEG_SHA256_HEX])
{
    unsigned char digest[PEG_SHA256_BYTES];

    CHECK(peg__sha256(bytes, digest));
    peg__hex(digest, sizeof(digest), hex);
    return peg__str(hex);
}

/* The examples that NIST publishes with FIPS 180-4. */
TEST(sha256_gives_the_published_digests)
{
    char hex[PEG_SHA256_HEX];

    CHECK_STR(hex_digest(peg__str(""), hex),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hex_digest(peg__str("abc"), hex),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(hex_digest(peg__str("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), hex),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(sha256_of_nothing_needs_no_pointer)
{
    char hex[PEG_SHA256_HEX];

    CHECK_STR(hex_digest(peg__strn(NULL, 0), hex),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static peg_str hex_hmac(peg_str key, peg_str bytes, char hex[PEG_SHA256_HEX])
{
    unsigned char digest[PEG_SHA256_BYTES];

    CHECK(peg__hmac_sha256(key, bytes, digest));
    peg__hex(digest, sizeof(digest), hex);
    return peg__str(hex);
}

/* The test cases 1, 2, 6 and 7 of RFC 4231, and an empty key. */
TEST(hmac_gives_the_published_digests)
{
    char key[131];
    char hex[PEG_SHA256_HEX];

    memset(key, 0x0b, sizeof(key));
    CHECK_STR(hex_hmac(peg__strn(key, 20), peg__str("Hi There"), hex),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK_STR(hex_hmac(peg__str("Jefe"), peg__str("what do ya want for nothing?"), hex),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    CHECK_STR(hex_hmac(peg__strn(key, sizeof(key)),
                       peg__str("Test Using Larger Than Block-Size Key - Hash Key First"), hex),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    CHECK_STR(hex_hmac(peg__strn(key, sizeof(key)),
                       peg__str("This is a test using a larger than block-size key and a larger "
                                "than block-size data. The key needs to be hashed before being "
                                "used by the HMAC algorithm."),
                       hex),
              "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    CHECK_STR(hex_hmac(peg__strn(NULL, 0), peg__str(""), hex),
              "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(hex_is_lowercase_and_ends_with_a_nul)
{
    static const unsigned char bytes[] = {0x00, 0x09, 0xaf, 0xff};
    char hex[2 * sizeof(bytes) + 1];

    memset(hex, 'x', sizeof(hex));
    peg__hex(bytes, sizeof(bytes), hex);
    CHECK_STR(peg__str(hex), "0009afff");

    peg__hex(bytes, 0, hex);
    CHECK_STR(peg__str(hex), "");
}

TEST(hex_has_two_digits_for_each_byte_wherever_it_stands)
{
    for (size_t n = 1; n <= 9; n++) {
        for (unsigned value = 0; value < 256; value++) {
            unsigned char bytes[9];
            char hex[2 * sizeof(bytes) + 1];
            char expected[2 * sizeof(bytes) + 1];

            for (size_t i = 0; i < n; i++) {
                bytes[i] = (unsigned char)(value + 37 * i);
                snprintf(expected + 2 * i, 3, "%02x", bytes[i]);
            }
            peg__hex(bytes, n, hex);
            CHECK_STR(peg__str(hex), expected);
        }
    }
}
