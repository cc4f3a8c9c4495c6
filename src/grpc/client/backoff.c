/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/client.h"

#include "base/limits.h"

enum {
    GROWTH_PERCENT = 160,
    JITTER_PERCENT = 20,
    STEPS = 1 << 16, /* in which the jitter falls */
};

/* splitmix64: any seed is good, also 0. */
static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void grpc_backoff_init(struct grpc_backoff *backoff, int64_t first_ms, int64_t max_ms,
                       uint64_t seed)
{
    *backoff = (struct grpc_backoff){
        .first_ms = first_ms > 0 ? first_ms : PEG_LIMIT_GRPC_BACKOFF_MS,
        .max_ms = max_ms > 0 ? max_ms : PEG_LIMIT_GRPC_BACKOFF_MAX_MS,
        .random = seed,
    };
    if (backoff->first_ms > backoff->max_ms)
        backoff->first_ms = backoff->max_ms;
    grpc_backoff_reset(backoff);
}

static void grow_wait(struct grpc_backoff *backoff)
{
    const int64_t ms = backoff->next_ms;

    backoff->next_ms = backoff->max_ms;
    if (ms <= INT64_MAX / GROWTH_PERCENT && ms * GROWTH_PERCENT / 100 < backoff->max_ms)
        backoff->next_ms = ms * GROWTH_PERCENT / 100;
}

int64_t grpc_backoff_take_ms(struct grpc_backoff *backoff)
{
    return grpc_backoff_take_below_ms(backoff, backoff->max_ms);
}

int64_t grpc_backoff_take_below_ms(struct grpc_backoff *backoff, int64_t max_ms)
{
    const int64_t base_ms = backoff->next_ms < max_ms ? backoff->next_ms : max_ms;
    const int64_t most_ms = base_ms / 100 * JITTER_PERCENT + base_ms % 100 * JITTER_PERCENT / 100;
    const int64_t at = (int64_t)(draw(&backoff->random) % (2 * STEPS + 1)) - STEPS;

    grow_wait(backoff);
    /* Far beyond any wait that means something the product would not fit. */
    return most_ms > INT64_MAX / STEPS ? base_ms : base_ms + most_ms * at / STEPS;
}

void grpc_backoff_reset(struct grpc_backoff *backoff)
{
    backoff->next_ms = backoff->first_ms;
}
