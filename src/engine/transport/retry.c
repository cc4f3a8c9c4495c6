/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include <string.h>

static bool is_passing_status(long status)
{
    static const long statuses[] = {408, 409, 429, 500, 502, 503, 504, 529};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (status == statuses[i])
            return true;
    return false;
}

/* Told in a stream that began well, or by the transport. Time that ran out is a connection that
 * failed only as long as the server had not begun to answer. */
static bool is_passing_code(const char *code, long status)
{
    static const char *const codes[] = {"E_ENGINE_TRANSPORT", "E_ENGINE_OVERLOADED",
                                        "E_ENGINE_RATE_LIMITED"};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return strcmp(code, "E_ENGINE_TIMEOUT") == 0 && status == 0;
}

static bool is_worth_it(const struct peg__try *failed)
{
    const long status = failed->answer->status;

    /* Nothing left to spend: that does not pass by waiting. */
    if (strcmp(failed->code, "E_ENGINE_QUOTA") == 0)
        return false;
    if (status >= 400)
        return is_passing_status(status);
    return is_passing_code(failed->code, status);
}

/* SplitMix64: the same for the same seed and try. */
static uint64_t scatter(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static int64_t backoff_ms(const struct peg__retry *retry, int n)
{
    int64_t ms = retry->backoff_ms;
    int64_t more = 0;

    for (int i = 1; i < n && ms < retry->backoff_max_ms; i++)
        ms = ms > INT64_MAX / 2 ? INT64_MAX : ms * 2;
    if (ms > retry->backoff_max_ms)
        ms = retry->backoff_max_ms;
    if (ms >= 10)
        more =
            (int64_t)(scatter(retry->seed + (uint64_t)n) % (uint64_t)(ms / 10 * 2 + 1)) - ms / 10;
    return more < retry->backoff_max_ms - ms ? ms + more : retry->backoff_max_ms;
}

int64_t peg__retry_wait_ms(const struct peg__retry *retry, const struct peg__try *failed)
{
    const int64_t asked_ms = failed->answer->retry_after_ms;

    if (failed->has_content || failed->n >= retry->max_tries || !is_worth_it(failed))
        return -1;
    if (asked_ms < 0)
        return backoff_ms(retry, failed->n);
    return asked_ms <= retry->backoff_max_ms ? asked_ms : -1;
}
