/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"

#include <time.h>

#include "../t.h"

TEST(real_clock_tells_the_time_of_the_system)
{
    const struct peg__clock *clock = peg__clock_real();
    const int64_t before_ms = (int64_t)time(NULL) * 1000;
    const int64_t now_ms = clock->now_ms(clock);

    /* time() may lag by a tick of the kernel. */
    CHECK(now_ms >= before_ms - 1000);
    CHECK(now_ms < before_ms + 60 * 1000);
}

TEST(real_clock_never_goes_back)
{
    const struct peg__clock *clock = peg__clock_real();
    int64_t last_ns = clock->mono_ns(clock);

    for (int i = 0; i < 10000; i++) {
        const int64_t now_ns = clock->mono_ns(clock);

        CHECK(now_ns >= last_ns);
        last_ns = now_ns;
    }
    CHECK(last_ns > 0);
}

TEST(test_clock_stands_still_until_it_is_moved)
{
    struct peg__test_clock test;
    const struct peg__clock *clock = &test.clock;

    peg__test_clock_init(&test, 5000);
    CHECK_INT(clock->now_ms(clock), 5000);
    CHECK_INT(clock->mono_ns(clock), 0);

    peg__test_clock_advance_ns(&test, 3 * PEG_NS_PER_MS);

    CHECK_INT(clock->now_ms(clock), 5003);
    CHECK_INT(clock->mono_ns(clock), 3 * PEG_NS_PER_MS);
}

TEST(test_clock_adds_up_parts_of_a_millisecond)
{
    struct peg__test_clock test;

    peg__test_clock_init(&test, 0);
    for (int i = 0; i < 1999; i++)
        peg__test_clock_advance_ns(&test, 1000);

    CHECK_INT(test.clock.now_ms(&test.clock), 1);
}

TEST(test_clock_on_the_wall_may_be_set_back_alone)
{
    struct peg__test_clock test;
    const struct peg__clock *clock = &test.clock;

    peg__test_clock_init(&test, 5000);
    peg__test_clock_advance_ns(&test, 10 * PEG_NS_PER_MS);

    peg__test_clock_set_wall_ms(&test, 100);

    CHECK_INT(clock->now_ms(clock), 100);
    CHECK_INT(clock->mono_ns(clock), 10 * PEG_NS_PER_MS);
}
