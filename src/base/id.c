/* SPDX-License-Identifier: Apache-2.0 */

/*
 * UUIDv7: 48 bits of milliseconds, version, 12 bits of counter, variant, 62
 * random bits. Milliseconds and counter are taken as one number of 60 bits: the
 * next id has the present millisecond with a random counter, or the last number
 * plus one, whichever is greater (RFC 9562 section 6.2, method 1). A counter that
 * overflows thereby carries into the milliseconds, which is what the RFC advises.
 *
 * Randomness is fetched for some thirty ids at once, because asking the kernel
 * takes half a microsecond, as long as all else that a call costs. Each thread has
 * its own pool. A pool dies with the process that filled it: after fork() the child
 * finds the epoch gone and fills its own.
 */

#include "base/id.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/hash.h"

enum { COUNTER_BITS = 12 };

/* The greatest milliseconds and counter handed out: one for the whole process, because
 * the order is a promise of the process. */
static _Atomic uint64_t last_uuid7;

/* ---- randomness ----------------------------------------------------------- */

enum {
    /* More would not be quicker: by then the kernel's work is for the bytes, not for the call. */
    POOL_BYTES = 512,
    /* A request that would take most of a pool goes to the kernel. */
    POOL_REQUEST_MAX = 64,
};

/* Of one thread. The last `left` bytes are unused, all others are wiped. */
struct pool {
    uint64_t epoch; /* in which it was filled; 0: never */
    size_t left;
    unsigned char bytes[POOL_BYTES];
};

static _Thread_local struct pool pool;

/* Counts the processes between us and the one that loaded the library; from 1. It stands on a page
 * that the kernel gives to a child as zeros, however the child was made (pthread_atfork() would not
 * see a bare clone()). NULL where there is no such page: then nothing is pooled. */
static _Atomic uint64_t *epoch;
static _Atomic uint64_t last_epoch; /* on an ordinary page: what the parent had */
static pthread_once_t epoch_once = PTHREAD_ONCE_INIT;

static void make_epoch(void)
{
    void *page =
        mmap(NULL, sizeof(*epoch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return;
    if (madvise(page, sizeof(*epoch), MADV_WIPEONFORK)) {
        munmap(page, sizeof(*epoch));
        return;
    }
    epoch = page;
}

/* 0 if nothing may be pooled. */
static uint64_t present_epoch(void)
{
    uint64_t present;
    uint64_t fresh;

    pthread_once(&epoch_once, make_epoch);
    if (!epoch)
        return 0;
    present = atomic_load_explicit(epoch, memory_order_relaxed);
    if (present)
        return present;
    /* A new process. Another thread may be faster: then the epoch is its number. */
    fresh = atomic_fetch_add(&last_epoch, 1) + 1;
    return atomic_compare_exchange_strong(epoch, &present, fresh) ? fresh : present;
}

static bool ask_kernel(unsigned char *out, size_t n)
{
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

static bool fill_pool(uint64_t present)
{
    pool.left = 0;
    if (!ask_kernel(pool.bytes, sizeof(pool.bytes)))
        return false;
    pool.epoch = present;
    pool.left = sizeof(pool.bytes);
    return true;
}

bool peg__random(void *ret_bytes, size_t n)
{
    uint64_t present;
    unsigned char *from;

    if (n > POOL_REQUEST_MAX)
        return ask_kernel(ret_bytes, n);
    present = present_epoch();
    if (!present)
        return ask_kernel(ret_bytes, n);
    if ((pool.epoch != present || pool.left < n) && !fill_pool(present))
        return false;
    from = pool.bytes + sizeof(pool.bytes) - pool.left;
    pool.left -= n;
    memcpy(ret_bytes, from, n);
    explicit_bzero(from, n);
    return true;
}

/* ---- ids ------------------------------------------------------------------ */

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
    const uint64_t swapped = htobe64(word);

    memcpy(bytes, &swapped, sizeof(swapped));
}

static void write_uuid(const unsigned char bytes[16], char *ret_text)
{
    char hex[PEG_ID_HEX_TEXT];

    peg__hex(bytes, 16, hex);
    memcpy(ret_text, hex, 8);
    ret_text[8] = '-';
    memcpy(ret_text + 9, hex + 8, 4);
    ret_text[13] = '-';
    memcpy(ret_text + 14, hex + 12, 4);
    ret_text[18] = '-';
    memcpy(ret_text + 19, hex + 16, 4);
    ret_text[23] = '-';
    memcpy(ret_text + 24, hex + 20, 12);
    ret_text[36] = '\0';
}

bool peg__uuid7_after(_Atomic uint64_t *last, const peg_clock *clock, char ret_text[PEG_UUID_TEXT])
{
    unsigned char bytes[16];
    unsigned char random[10];
    uint64_t tail;
    uint64_t number;

    if (!peg__random(random, sizeof(random)))
        return false;
    memcpy(&tail, random, sizeof(tail));
    number = next_number(last, clock->now_ms(clock), (unsigned)random[8] << 8 | random[9]);
    store_big_endian(bytes, (number >> 12 << 16) | UINT64_C(7) << 12 | (number & 0xfff));
    store_big_endian(bytes + 8, UINT64_C(2) << 62 | tail >> 2);
    write_uuid(bytes, ret_text);
    return true;
}

bool peg__uuid7(const peg_clock *clock, char ret_text[PEG_UUID_TEXT])
{
    return peg__uuid7_after(&last_uuid7, clock, ret_text);
}
