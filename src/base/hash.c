/* SPDX-License-Identifier: Apache-2.0 */

#include "base/hash.h"

#include <endian.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void mix(struct state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

/* The first byte lowest, whatever the byte order of the machine. */
static uint64_t read_word(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return le64toh(word);
}

static uint64_t read_half(const char *bytes)
{
    uint32_t half;

    memcpy(&half, bytes, sizeof(half));
    return le32toh(half);
}

/* The last n bytes of `len`, fewer than eight: those before them are read, too, and shifted out. */
static uint64_t read_rest(const char *bytes, size_t n, size_t len)
{
    const unsigned char *rest = (const unsigned char *)bytes;

    if (n == 0)
        return 0;
    if (len >= 8)
        return read_word(bytes + n - 8) >> (64 - 8 * n);
    if (n >= 4)
        return read_half(bytes) | read_half(bytes + n - 4) << (8 * (n - 4));
    return rest[0] | (uint64_t)rest[n / 2] << (8 * (n / 2)) |
           (uint64_t)rest[n - 1] << (8 * (n - 1));
}

static void absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s);
    s->v0 ^= word;
}

uint64_t peg__hash(struct peg__hash_key key, peg_str bytes)
{
    struct state s = {
        .v0 = key.k0 ^ 0x736f6d6570736575,
        .v1 = key.k1 ^ 0x646f72616e646f6d,
        .v2 = key.k0 ^ 0x6c7967656e657261,
        .v3 = key.k1 ^ 0x7465646279746573,
    };
    const char *at = bytes.ptr;
    size_t left = bytes.len;

    for (; left >= 8; left -= 8, at += 8)
        absorb(&s, read_word(at));
    absorb(&s, read_rest(at, left, bytes.len) | (uint64_t)bytes.len << 56);

    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        mix(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

struct peg__hash_key peg__hash_key_new(void)
{
    const peg_clock *clock = peg_clock_system();
    struct peg__hash_key key;

    if (!peg__random(&key, sizeof(key)))
        key = (struct peg__hash_key){(uint64_t)(uintptr_t)&key, (uint64_t)clock->mono_ns(clock)};
    return key;
}
