/* SPDX-License-Identifier: Apache-2.0 */

/* Many of the largest results at once. Redis has its default settings: it cuts off a subscriber for
 * whom more than 32 MiB wait. */

#include "base/limits.h"
#include "redis_world.h"

enum { N_RESULTS = 16, N_PUTS = 6, LARGEST = PEG_LIMIT_GATEWAY_RESULT_BYTES };

struct result {
    struct bus_wait wait;
    struct peg__blob *value;
    peg_status status;
    bool is_written;
    bool is_same;
};

static struct result results[N_RESULTS];
static atomic_uint n_answered;

static void on_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct result *result = (struct result *)wait;

    result->status = answer->status;
    result->is_written = answer->written;
    result->is_same = peg__str_eq(peg__blob_str(answer->current), peg__blob_str(result->value));
    atomic_fetch_add(&n_answered, 1);
}

static void put_results(void *user)
{
    const unsigned n = *(const unsigned *)user;

    for (unsigned k = 0; k < n; k++) {
        const struct bus_key key = c_key(k, BUS_RESULT, 0);

        bus_put_if_absent(buses[0], &key, results[k].value, bus_now_ms(buses[0]) + 600000,
                          &results[k].wait);
    }
}

static void put_last(void *user)
{
    const unsigned k = *(const unsigned *)user;
    const struct bus_key key = c_key(k, BUS_RESULT, 0);

    bus_put_if_absent(buses[0], &key, results[k].value, bus_now_ms(buses[0]) + 600000,
                      &results[k].wait);
}

static void read_results(void *user)
{
    const unsigned i = *(const unsigned *)user;

    for (unsigned k = 0; k < N_RESULTS; k++) {
        const struct bus_key key = c_key(k, BUS_RESULT, 0);

        bus_read(buses[i], &key, &results[k].wait);
    }
}

static void await_answers(unsigned n)
{
    while (atomic_load(&n_answered) < n)
        c_pass();
    atomic_store(&n_answered, 0);
}

static unsigned long long n_connects(unsigned hub)
{
    struct bus_redis_stats stats;

    bus_redis_hub_stats(hubs[hub], &stats);
    return stats.n_connects;
}

/* Each has bytes of its own. */
static void write_results(void)
{
    timeout_ms = 60000;
    c_open();
    atomic_store(&n_answered, 0);
    for (unsigned k = 0; k < N_RESULTS; k++) {
        results[k] = (struct result){.wait = {.fn = on_answer}, .value = peg__blob_new(LARGEST)};
        CHECK(results[k].value);
        memset(results[k].value->bytes, 'a' + (int)k, LARGEST);
        c_do(0, put_last, &k);
        await_answers(1);
        CHECK(results[k].is_written);
    }
}

static void close_results(void)
{
    c_close();
    for (unsigned k = 0; k < N_RESULTS; k++)
        results[k].value = peg__blob_unref(results[k].value);
}

VOLUME_TEST(sixteen_of_the_largest_results_are_read_at_once)
{
    unsigned reader = 2;
    unsigned long long n;

    write_results();
    n = n_connects(1);
    c_do(reader, read_results, &reader);
    await_answers(N_RESULTS);

    for (unsigned k = 0; k < N_RESULTS; k++) {
        CHECK_INT(results[k].status, PEG_OK);
        CHECK(results[k].is_same);
    }
    CHECK_INT(n_connects(1), n);
    close_results();
}

/* As after a new connection, when it is not known whether they were written. */
VOLUME_TEST(the_largest_results_are_written_again_at_once)
{
    unsigned n_puts = N_PUTS;
    unsigned long long n;

    write_results();
    n = n_connects(0);
    c_do(0, put_results, &n_puts);
    await_answers(N_PUTS);

    for (unsigned k = 0; k < N_PUTS; k++) {
        CHECK_INT(results[k].status, PEG_OK);
        CHECK(results[k].is_written && results[k].is_same);
    }
    CHECK_INT(n_connects(0), n);
    close_results();
}

VOLUME_TEST(a_large_result_that_stands_is_what_a_late_one_finds)
{
    struct c_asked late;

    write_results();
    late = c_once(1, c_key(3, BUS_RESULT, 0), "late");

    CHECK(!late.answer.written);
    CHECK(late.has_standing);
    CHECK_INT(late.current[0], 'd');
    close_results();
}

TEST(results_of_about_the_size_that_is_read_first_are_whole)
{
    timeout_ms = 60000;
    c_open();
    atomic_store(&n_answered, 0);
    for (unsigned k = 0; k < 3; k++) {
        const size_t len = PEG_LIMIT_REDIS_INLINE_BYTES - 1 + k;

        results[k] = (struct result){.wait = {.fn = on_answer}, .value = peg__blob_new(len)};
        memset(results[k].value->bytes, 'x', len);
        c_do(0, put_last, &k);
        await_answers(1);
        CHECK(results[k].is_written);
    }
    for (unsigned k = 3; k < N_RESULTS; k++)
        results[k] = (struct result){.wait = {.fn = on_answer}};
    c_do(1, read_results, &(unsigned){1});
    await_answers(N_RESULTS);
    for (unsigned k = 0; k < N_RESULTS; k++)
        CHECK(results[k].is_same);
    close_results();
}
