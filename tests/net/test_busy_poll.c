/* SPDX-License-Identifier: Apache-2.0 */

/* When a loop looks again instead of sleeping. */

#include "t.h"

#include "net/loop/internal.h"

enum { US = 1000 };

/* One answer that comes after so long; how often the loop looked, once a microsecond. */
static unsigned answer(struct net_busy_poll *spin, int64_t *now, int64_t took_us)
{
    const int64_t until = *now + took_us * US;
    unsigned n = 0;

    while (*now < until && net_busy_poll_goes_on(spin, *now)) {
        *now += US;
        n++;
    }
    *now = until;
    net_busy_poll_note_event(spin, *now);
    return n;
}

TEST(nobody_spins_for_nothing)
{
    struct net_busy_poll spin = {.score = 8};

    CHECK(!net_busy_poll_goes_on(&spin, 1000));
    spin.n_awaited = 1;
    CHECK(net_busy_poll_goes_on(&spin, 1000));
}

TEST(quick_answers_are_learned)
{
    struct net_busy_poll spin = {.n_awaited = 1};
    int64_t now = 1;

    CHECK_INT(answer(&spin, &now, 10), 0); /* slept for, and it was quick */
    CHECK_INT(answer(&spin, &now, 10), 10);
    CHECK_INT(answer(&spin, &now, 20), 20);
}

TEST(slow_answers_are_learned_faster)
{
    struct net_busy_poll spin = {.n_awaited = 1};
    int64_t now = 1;
    unsigned n = 0;

    for (unsigned i = 0; i < 100; i++)
        answer(&spin, &now, 10);
    for (unsigned i = 0; i < 100; i++) {
        const unsigned looked = answer(&spin, &now, 1000);

        CHECK(looked <= 25); /* it gives up for each of them */
        n += looked;
    }
    CHECK(n <= 4 * 25); /* and soon for all */
    CHECK_INT(answer(&spin, &now, 10), 0);
}

TEST(with_several_on_their_way_it_sleeps)
{
    struct net_busy_poll spin = {.n_awaited = 1};
    int64_t now = 1;

    answer(&spin, &now, 10);
    spin.n_awaited = 2;
    CHECK_INT(answer(&spin, &now, 10), 0);
    spin.n_awaited = 1;
    CHECK_INT(answer(&spin, &now, 10), 10);
}

TEST(what_is_heard_while_it_works_teaches_nothing)
{
    struct net_busy_poll spin = {.n_awaited = 1};

    net_busy_poll_note_event(&spin, 5);
    CHECK_INT(spin.score, 0);
}
