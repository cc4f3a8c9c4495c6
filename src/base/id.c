/* SPDX-License-Identifier: Apache-2.0 */

/*
 * UUIDv7: 48 bits of milliseconds, version, 12 bits of counter, variant, 62
 * random bits. Milliseconds and counter are taken as one number of 60 bits: the
 * next id has the present millisecond with a random counter, or the last number
 * plus one, whichever is greater (RFC 9562 section 6.2, method 1). A counter that
 * overflows thereby carries into the milliseconds, which is what the RFC advises.
 */

#include "base/id.h"

#include <errno.h>
#include <sys/random.h>

#include "base/digest.h"

enum { COUNTER_BITS = 12 };

/* The greatest milliseconds and counter handed out: one for the whole process, because
 * the order is a promise of the process. */
static _Atomic uint64_t last_uuid7;

bool peg__random(void *ret_bytes, size_t n)
{
    unsigned char *out = ret_bytes;

    while (n > 0) {
        const ssize_t got = getrandom(out, n, 0);

        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0) {
            out += got;
            n -= (size_t)got;
        }
    }
    return true;
}

bool peg__id_hex(char ret_text[PEG_ID_HEX_TEXT])
{
    unsigned char bytes[16];

    if (!peg__random(bytes, sizeof(bytes)))
        return false;
    peg__hex(bytes, sizeof(bytes), ret_text);
    return true;
}

/* The top bit of the counter starts as 0, so that 2048 ids a millisecond fit without carry. */
static uint64_t next_number(_Atomic uint64_t *last, int64_t now_ms, uint64_t random)
{
    const uint64_t ms = (uint64_t)(now_ms > 0 ? now_ms : 0);
    const uint64_t fresh = (ms << COUNTER_BITS) | (random & 0x7ff);
    uint64_t seen = atomic_load_explicit(last, memory_order_relaxed);
    uint64_t next;

    do {
        next = fresh > seen ? fresh : seen + 1;
    } while (!atomic_compare_exchange_weak(last, &seen, next));
    return next;
}

static void store_big_endian(unsigned char *bytes, uint64_t word)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(word >> (56 - 8 * i));
}

static void write_uuid(const unsigned char bytes[16], char *ret_text)
{
    static const unsigned char group_bytes[] = {4, 2, 2, 2, 6};

    for (size_t i = 0; i < sizeof(group_bytes); i++) {
        peg__hex(bytes, group_bytes[i], ret_text);
        bytes += group_bytes[i];
        ret_text += 2 * (size_t)group_bytes[i];
        *ret_text++ = '-';
    }
    ret_text[-1] = '\0';
}

bool peg__uuid7_after(_Atomic uint64_t *last, const peg_clock *clock, char ret_text[PEG_UUID_TEXT])
{
    unsigned char bytes[16];
    uint64_t random[2];
    uint64_t number;

    if (!peg__random(random, sizeof(random)))
        return false;
    number = next_number(last, clock->now_ms(clock), random[0]);
    store_big_endian(bytes, (number >> 12 << 16) | UINT64_C(7) << 12 | (number & 0xfff));
    store_big_endian(bytes + 8, UINT64_C(2) << 62 | random[1] >> 2);
    write_uuid(bytes, ret_text);
    return true;
}

bool peg__uuid7(const peg_clock *clock, char ret_text[PEG_UUID_TEXT])
{
    return peg__uuid7_after(&last_uuid7, clock, ret_text);
}
