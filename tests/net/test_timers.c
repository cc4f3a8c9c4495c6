/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "net/loop/loop.h"

enum { N_FEW = 40, N_MANY = 20000 };

/* Its place in an array is its name. */
struct item {
    struct net_timer timer;
    unsigned n_fired;
};

static void count(struct net_timer *timer)
{
    ((struct item *)timer)->n_fired++;
}

/* Numbers that look random and are the same in each run. */
static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static struct item *new_items(size_t n)
{
    struct item *items = (struct item *)calloc(n, sizeof(*items));

    if (!items)
        abort();
    for (size_t i = 0; i < n; i++)
        items[i].timer.fn = count;
    return items;
}

static void run_due(struct net_timers *timers, int64_t now_ns)
{
    struct net_timer *timer;

    while ((timer = net_timers_take_due(timers, now_ns)))
        timer->fn(timer);
}

/* What the heap should say, found by looking at all of them. */
static int64_t least_due_ns(const struct item *items, size_t n)
{
    int64_t least = NET_NEVER;

    for (size_t i = 0; i < n; i++) {
        if (items[i].timer.is_armed && items[i].timer.due_ns < least)
            least = items[i].timer.due_ns;
    }
    return least;
}

/* Takes all, and checks that each armed one comes once and none comes before an earlier one. */
static void check_takes_all_in_order(struct net_timers *timers, size_t n_armed)
{
    int64_t last_ns = INT64_MIN;

    for (size_t i = 0; i < n_armed; i++) {
        struct net_timer *timer = net_timers_take_due(timers, NET_NEVER);

        CHECK(timer);
        CHECK(timer->due_ns >= last_ns);
        CHECK(!timer->is_armed);
        last_ns = timer->due_ns;
    }
    CHECK(!net_timers_take_due(timers, NET_NEVER));
}

TEST(no_timer_is_due_never)
{
    struct net_timers timers = {0};

    CHECK(net_timers_next_ns(&timers) == NET_NEVER);
    CHECK(!net_timers_take_due(&timers, NET_NEVER));
}

TEST(a_timer_is_taken_at_its_moment_and_not_before)
{
    struct net_timers timers = {0};
    struct item item = {.timer.fn = count};

    net_timers_arm(&timers, &item.timer, 100);

    CHECK(item.timer.is_armed);
    CHECK_INT(net_timers_next_ns(&timers), 100);
    CHECK(!net_timers_take_due(&timers, 99));
    CHECK(net_timers_take_due(&timers, 100) == &item.timer);
    CHECK(!item.timer.is_armed);
    CHECK(net_timers_next_ns(&timers) == NET_NEVER);
}

TEST(a_timer_may_be_due_before_zero)
{
    struct net_timers timers = {0};
    struct item items[2] = {{.timer.fn = count}, {.timer.fn = count}};

    net_timers_arm(&timers, &items[0].timer, -5);
    net_timers_arm(&timers, &items[1].timer, INT64_MIN);

    CHECK(net_timers_take_due(&timers, -5) == &items[1].timer);
    CHECK(net_timers_take_due(&timers, -5) == &items[0].timer);
}

TEST(arming_an_armed_timer_moves_it_either_way)
{
    struct net_timers timers = {0};
    struct item items[2] = {{.timer.fn = count}, {.timer.fn = count}};

    net_timers_arm(&timers, &items[0].timer, 10);
    net_timers_arm(&timers, &items[1].timer, 20);
    net_timers_arm(&timers, &items[1].timer, 5);
    CHECK_INT(net_timers_next_ns(&timers), 5);
    net_timers_arm(&timers, &items[1].timer, 30);
    CHECK_INT(net_timers_next_ns(&timers), 10);

    run_due(&timers, 30);
    CHECK_INT(items[0].n_fired, 1);
    CHECK_INT(items[1].n_fired, 1);
}

TEST(arming_for_never_disarms)
{
    struct net_timers timers = {0};
    struct item item = {.timer.fn = count};

    net_timers_arm(&timers, &item.timer, 10);
    net_timers_arm(&timers, &item.timer, NET_NEVER);

    CHECK(!item.timer.is_armed);
    CHECK(net_timers_next_ns(&timers) == NET_NEVER);
}

TEST(disarming_twice_is_the_same_as_once)
{
    struct net_timers timers = {0};
    struct item items[2] = {{.timer.fn = count}, {.timer.fn = count}};

    net_timers_arm(&timers, &items[0].timer, 10);
    net_timers_arm(&timers, &items[1].timer, 20);
    net_timers_disarm(&timers, &items[0].timer);
    net_timers_disarm(&timers, &items[0].timer);

    CHECK_INT(net_timers_next_ns(&timers), 20);
    run_due(&timers, 20);
    CHECK_INT(items[0].n_fired, 0);
    CHECK_INT(items[1].n_fired, 1);
}

/* Every shape of the heap that few timers can have: each of them in turn is taken out. */
TEST(any_timer_can_be_disarmed_without_losing_another)
{
    for (size_t out = 0; out < N_FEW; out++) {
        struct net_timers timers = {0};
        struct item items[N_FEW] = {0};
        uint64_t seed = out;

        for (size_t i = 0; i < N_FEW; i++)
            net_timers_arm(&timers, &items[i].timer, (int64_t)(next_random(&seed) % 16));
        /* Taking one gives the heap some depth. */
        CHECK(net_timers_take_due(&timers, NET_NEVER));
        if (!items[out].timer.is_armed)
            continue;
        net_timers_disarm(&timers, &items[out].timer);

        check_takes_all_in_order(&timers, N_FEW - 2);
    }
}

TEST(random_changes_keep_the_first_timer_first)
{
    struct net_timers timers = {0};
    struct item items[N_FEW] = {0};
    uint64_t seed = 1;

    for (unsigned step = 0; step < 20000; step++) {
        struct net_timer *timer = &items[next_random(&seed) % N_FEW].timer;
        const int64_t least_ns = least_due_ns(items, N_FEW);

        switch (next_random(&seed) % 4) {
        case 0:
            net_timers_disarm(&timers, timer);
            break;
        case 1:
            timer = net_timers_take_due(&timers, least_ns);
            CHECK(timer ? timer->due_ns == least_ns : least_ns == NET_NEVER);
            break;
        default:
            net_timers_arm(&timers, timer, (int64_t)(next_random(&seed) % 1000));
            break;
        }
        CHECK(net_timers_next_ns(&timers) == least_due_ns(items, N_FEW));
    }
}

TEST(thousands_of_timers_come_in_order)
{
    struct net_timers timers = {0};
    struct item *items = new_items(N_MANY);
    uint64_t seed = 7;

    for (size_t i = 0; i < N_MANY; i++)
        net_timers_arm(&timers, &items[i].timer, (int64_t)next_random(&seed));
    for (size_t i = 0; i < N_MANY; i += 2)
        net_timers_disarm(&timers, &items[i].timer);

    check_takes_all_in_order(&timers, N_MANY / 2);
    free(items);
}

/* The worst order for a heap of this kind makes its first take long, not wrong or deep. */
TEST(timers_armed_in_falling_and_in_rising_order_come_in_order)
{
    struct net_timers timers = {0};
    struct item *items = new_items(N_MANY);

    for (size_t i = 0; i < N_MANY; i++)
        net_timers_arm(&timers, &items[i].timer, N_MANY - (int64_t)i);
    check_takes_all_in_order(&timers, N_MANY);
    for (size_t i = 0; i < N_MANY; i++)
        net_timers_arm(&timers, &items[i].timer, (int64_t)i);
    check_takes_all_in_order(&timers, N_MANY);
    free(items);
}

TEST(timers_of_one_moment_are_all_taken)
{
    struct net_timers timers = {0};
    struct item *items = new_items(N_MANY);

    for (size_t i = 0; i < N_MANY; i++)
        net_timers_arm(&timers, &items[i].timer, 42);
    run_due(&timers, 42);

    for (size_t i = 0; i < N_MANY; i++)
        CHECK_INT(items[i].n_fired, 1);
    free(items);
}

/* ---- changes from within fn ---------------------------------------------------------------- */

struct acting {
    struct net_timer timer;
    struct net_timers *timers;
    struct net_timer *other;
    int64_t other_ns;
    unsigned n_fired;
};

static void arm_other(struct net_timer *timer)
{
    struct acting *acting = (struct acting *)timer;

    acting->n_fired++;
    net_timers_arm(acting->timers, acting->other, acting->other_ns);
}

TEST(a_timer_may_arm_itself_again)
{
    struct net_timers timers = {0};
    struct acting acting = {.timer.fn = arm_other, .timers = &timers, .other_ns = 20};

    acting.other = &acting.timer;
    net_timers_arm(&timers, &acting.timer, 10);

    run_due(&timers, 19);
    CHECK_INT(acting.n_fired, 1);
    CHECK_INT(net_timers_next_ns(&timers), 20);
}

TEST(a_timer_may_disarm_another_that_is_due_as_well)
{
    struct net_timers timers = {0};
    struct item other = {.timer.fn = count};
    struct acting acting = {
        .timer.fn = arm_other, .timers = &timers, .other = &other.timer, .other_ns = NET_NEVER};

    net_timers_arm(&timers, &other.timer, 11);
    net_timers_arm(&timers, &acting.timer, 10);

    run_due(&timers, 20);
    CHECK_INT(acting.n_fired, 1);
    CHECK_INT(other.n_fired, 0);
}

TEST(a_timer_may_move_another_to_later_and_to_now)
{
    struct net_timers timers = {0};
    struct item other = {.timer.fn = count};
    struct acting acting = {
        .timer.fn = arm_other, .timers = &timers, .other = &other.timer, .other_ns = 30};

    net_timers_arm(&timers, &other.timer, 11);
    net_timers_arm(&timers, &acting.timer, 10);
    run_due(&timers, 20);
    CHECK_INT(other.n_fired, 0);

    acting.other_ns = 20;
    net_timers_arm(&timers, &acting.timer, 20);
    run_due(&timers, 20);
    CHECK_INT(other.n_fired, 1);
}

static void free_itself(struct net_timer *timer)
{
    free(timer);
}

TEST(a_timer_may_be_freed_by_its_own_function)
{
    struct net_timers timers = {0};
    struct item others[2] = {{.timer.fn = count}, {.timer.fn = count}};
    struct net_timer *timer = (struct net_timer *)calloc(1, sizeof(*timer));

    if (!timer)
        abort();
    timer->fn = free_itself;
    net_timers_arm(&timers, &others[0].timer, 1);
    net_timers_arm(&timers, timer, 2);
    net_timers_arm(&timers, &others[1].timer, 3);

    run_due(&timers, 3);
    CHECK_INT(others[0].n_fired + others[1].n_fired, 2);
}
