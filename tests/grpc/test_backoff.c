/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/client.h"

#include "../t.h"
#include "base/limits.h"

static bool is_near(int64_t ms, int64_t base_ms)
{
    return ms >= base_ms - base_ms / 5 && ms <= base_ms + base_ms / 5;
}

TEST(waits_grow_by_the_factor_of_the_protocol_up_to_the_most)
{
    struct grpc_backoff backoff;
    int64_t base_ms = 1000;

    grpc_backoff_init(&backoff, 0, 0, 1);
    for (unsigned i = 0; i < 30; i++) {
        CHECK(is_near(grpc_backoff_take_ms(&backoff), base_ms));
        base_ms = base_ms * 160 / 100;
        if (base_ms > PEG_LIMIT_GRPC_BACKOFF_MAX_MS)
            base_ms = PEG_LIMIT_GRPC_BACKOFF_MAX_MS;
    }
    CHECK_INT(base_ms, PEG_LIMIT_GRPC_BACKOFF_MAX_MS);
}

TEST(a_success_starts_over)
{
    struct grpc_backoff backoff;

    grpc_backoff_init(&backoff, 100, 10000, 7);
    for (unsigned i = 0; i < 5; i++)
        grpc_backoff_take_ms(&backoff);

    grpc_backoff_reset(&backoff);

    CHECK(is_near(grpc_backoff_take_ms(&backoff), 100));
}

TEST(two_clients_do_not_wait_equally_long)
{
    struct grpc_backoff a;
    struct grpc_backoff b;
    unsigned n_equal = 0;

    grpc_backoff_init(&a, 10000, 0, 1);
    grpc_backoff_init(&b, 10000, 0, 2);
    for (unsigned i = 0; i < 20; i++)
        n_equal += grpc_backoff_take_ms(&a) == grpc_backoff_take_ms(&b);

    CHECK(n_equal < 5);
}

TEST(jitter_uses_its_whole_range)
{
    struct grpc_backoff backoff;
    bool was_low = false;
    bool was_high = false;

    grpc_backoff_init(&backoff, 1000, 1000, 0);
    for (unsigned i = 0; i < 1000; i++) {
        const int64_t ms = grpc_backoff_take_ms(&backoff);

        CHECK(is_near(ms, 1000));
        was_low |= ms < 820;
        was_high |= ms > 1180;
    }

    CHECK(was_low && was_high);
}

TEST(a_first_wait_beyond_the_most_is_the_most)
{
    struct grpc_backoff backoff;

    grpc_backoff_init(&backoff, 5000, 100, 3);

    CHECK(is_near(grpc_backoff_take_ms(&backoff), 100));
    CHECK(is_near(grpc_backoff_take_ms(&backoff), 100));
}

TEST(a_wait_can_have_another_greatest)
{
    struct grpc_backoff backoff;

    grpc_backoff_init(&backoff, 1000, 0, 3);

    CHECK(is_near(grpc_backoff_take_below_ms(&backoff, 50), 50));
    CHECK(is_near(grpc_backoff_take_below_ms(&backoff, 5000), 1600));
}

TEST(absurd_waits_do_not_overflow)
{
    struct grpc_backoff backoff;

    grpc_backoff_init(&backoff, INT64_MAX, INT64_MAX, 3);

    CHECK(grpc_backoff_take_ms(&backoff) > INT64_MAX / 2);
    CHECK(grpc_backoff_take_ms(&backoff) > INT64_MAX / 2);
}
