/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"

#include <time.h>

/* Neither clock can fail: both ids are known to every kernel and the memory is ours. */
static int64_t read_ns(clockid_t id)
{
    struct timespec t = {0};

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * PEG_NS_PER_S + t.tv_nsec;
}

static int64_t real_now_ms(const struct peg__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME) / PEG_NS_PER_MS;
}

static int64_t real_mono_ns(const struct peg__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

const struct peg__clock *peg__clock_real(void)
{
    static const struct peg__clock real = {real_now_ms, real_mono_ns};

    return &real;
}

/* ---- the test source ------------------------------------------------------ */

static int64_t test_now_ms(const struct peg__clock *clock)
{
    const struct peg__test_clock *test = (const struct peg__test_clock *)clock;

    return atomic_load(&test->wall_base_ms) + atomic_load(&test->elapsed_ns) / PEG_NS_PER_MS;
}

static int64_t test_mono_ns(const struct peg__clock *clock)
{
    return atomic_load(&((const struct peg__test_clock *)clock)->elapsed_ns);
}

void peg__test_clock_init(struct peg__test_clock *test, int64_t wall_ms)
{
    test->clock = (struct peg__clock){test_now_ms, test_mono_ns};
    atomic_init(&test->wall_base_ms, wall_ms);
    atomic_init(&test->elapsed_ns, 0);
}

void peg__test_clock_advance_ns(struct peg__test_clock *test, int64_t ns)
{
    atomic_fetch_add(&test->elapsed_ns, ns);
}

void peg__test_clock_set_wall_ms(struct peg__test_clock *test, int64_t wall_ms)
{
    atomic_store(&test->wall_base_ms, wall_ms - atomic_load(&test->elapsed_ns) / PEG_NS_PER_MS);
}
