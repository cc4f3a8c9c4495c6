/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "bus/internal.h"

static struct bus_registers *new_registers(void)
{
    struct bus_registers *registers;
    peg_error error;

    CHECK_STATUS(bus_registers_new(&registers, &error), PEG_OK, error);
    return registers;
}

static struct bus_key key_of(unsigned number, char what)
{
    struct bus_key key = {
        .id = {.len = 16}, .what = what, .n = what == BUS_CLAIM, .admits = what == BUS_IDENTITY};

    memcpy(key.id.bytes, &number, sizeof(number));
    return key;
}

/* Of a call with an identity. */
static struct bus_key named_key_of(unsigned number, char what)
{
    struct bus_key key = key_of(number, what);

    key.id.len = 32;
    return key;
}

/* True: it was written. */
static bool write_until(struct bus_registers *registers, struct bus_key key, const char *text,
                        int64_t keep_until_ms)
{
    struct peg__blob *value = peg__blob_copy(peg__str(text));
    struct peg__blob *other;
    bool written;

    CHECK_INT(bus_registers_put_if_absent(registers, &key, value, keep_until_ms, &other), PEG_OK);
    written = !other;
    peg__blob_unref(other);
    peg__blob_unref(value);
    return written;
}

static bool stands(struct bus_registers *registers, struct bus_key key)
{
    struct peg__blob *value = bus_registers_read(registers, &key);

    peg__blob_unref(value);
    return value != NULL;
}

static void forget(struct bus_registers *registers, unsigned number)
{
    const struct bus_id id = key_of(number, BUS_RESULT).id;

    bus_registers_forget(registers, &id);
}

static void forget_named(struct bus_registers *registers, unsigned number)
{
    const struct bus_id id = named_key_of(number, BUS_RESULT).id;

    bus_registers_forget(registers, &id);
}

TEST(a_register_is_there_until_its_time_is_over)
{
    struct bus_registers *registers = new_registers();
    const struct bus_key key = key_of(1, BUS_RESULT);

    write_until(registers, key, "x", 1000);
    CHECK(!bus_registers_sweep(registers, 999, 100));
    CHECK(stands(registers, key));
    CHECK(!bus_registers_sweep(registers, 1000, 100));

    CHECK(!stands(registers, key));
    CHECK_INT(bus_registers_len(registers), 0);
    CHECK_INT(bus_registers_bytes(registers), 0);
    CHECK(!bus_registers_free(registers));
}

TEST(registers_of_one_call_go_each_at_its_time)
{
    struct bus_registers *registers = new_registers();

    write_until(registers, key_of(1, BUS_CLAIM), "x", 1000);
    write_until(registers, key_of(1, BUS_RESULT), "x", 2000);
    bus_registers_sweep(registers, 1500, 100);

    CHECK(!stands(registers, key_of(1, BUS_CLAIM)));
    CHECK(stands(registers, key_of(1, BUS_RESULT)));
    bus_registers_free(registers);
}

TEST(one_that_is_kept_for_ever_stays)
{
    struct bus_registers *registers = new_registers();

    write_until(registers, key_of(1, BUS_RESULT), "x", INT64_MAX);
    CHECK(!bus_registers_sweep(registers, INT64_MAX / 2, 100));

    CHECK(stands(registers, key_of(1, BUS_RESULT)));
    bus_registers_free(registers);
}

TEST(a_time_before_all_times_is_over_at_once)
{
    struct bus_registers *registers = new_registers();

    write_until(registers, key_of(1, BUS_RESULT), "x", INT64_MIN);
    bus_registers_sweep(registers, 0, 100);

    CHECK(!stands(registers, key_of(1, BUS_RESULT)));
    bus_registers_free(registers);
}

TEST(a_sweep_does_so_much_and_says_that_there_is_more)
{
    struct bus_registers *registers = new_registers();
    unsigned n_sweeps = 1;

    for (unsigned i = 0; i < 1000; i++)
        write_until(registers, key_of(i, BUS_RESULT), "x", 1000);
    while (bus_registers_sweep(registers, 1000, 150)) {
        CHECK_INT(bus_registers_len(registers), 1000 - 150 * n_sweeps);
        n_sweeps++;
    }

    CHECK_INT(n_sweeps, 7);
    CHECK_INT(bus_registers_len(registers), 0);
    bus_registers_free(registers);
}

TEST(what_is_held_is_counted_with_its_values)
{
    struct bus_registers *registers = new_registers();
    size_t empty;

    write_until(registers, key_of(1, BUS_CLAIM), "", 1000);
    empty = bus_registers_bytes(registers);
    write_until(registers, key_of(1, BUS_RESULT), "0123456789", 1000);

    CHECK(empty >= sizeof(struct peg__blob));
    CHECK_INT(bus_registers_bytes(registers), 2 * empty + 10);
    CHECK_INT(bus_registers_len(registers), 2);
    forget(registers, 1);
    CHECK_INT(bus_registers_bytes(registers), 0);
    bus_registers_free(registers);
}

TEST(one_that_lost_is_not_counted)
{
    struct bus_registers *registers = new_registers();
    size_t bytes;

    CHECK(write_until(registers, key_of(1, BUS_RESULT), "a", 1000));
    bytes = bus_registers_bytes(registers);
    CHECK(!write_until(registers, key_of(1, BUS_RESULT), "another", 1000));
    CHECK(write_until(registers, key_of(1, BUS_RESULT), "a", 1000));

    CHECK_INT(bus_registers_bytes(registers), bytes);
    bus_registers_free(registers);
}

/* ---- room ---------------------------------------------------------------------------------- */

static peg_status write_value(struct bus_registers *registers, struct bus_key key,
                              struct peg__blob *value)
{
    struct peg__blob *other = NULL;

    return bus_registers_put_if_absent(registers, &key, value, 1000, &other);
}

/* How many registers can be written until there is no room for one more. All share one value. */
static unsigned fill(struct bus_registers *registers, struct bus_key (*key)(unsigned, char),
                     char what, struct peg__blob *value)
{
    peg_status status = PEG_OK;
    unsigned n = 0;

    while (!status)
        status = write_value(registers, key(n++, what), value);
    CHECK_INT(status, PEG_ELIMIT);
    return n - 1;
}

VOLUME_TEST(no_more_registers_than_the_limit_are_written)
{
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_copy(peg__str("x"));

    CHECK_INT(fill(registers, key_of, BUS_RESULT, value), PEG_LIMIT_BUS_REGISTERS);
    forget(registers, 17);

    CHECK(write_until(registers, key_of(PEG_LIMIT_BUS_REGISTERS, BUS_RESULT), "x", 1000));
    bus_registers_free(registers);
    peg__blob_unref(value);
}

VOLUME_TEST(names_leave_room_for_the_rest_of_calls_that_were_admitted)
{
    const unsigned n_names = PEG_LIMIT_BUS_REGISTERS / 100 * PEG_LIMIT_BUS_NAME_PERCENT;
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_copy(peg__str("x"));
    const struct bus_id waited_for = named_key_of(2, BUS_WAITERS).id;
    const struct bus_address waiter = {1, 1};

    CHECK_INT(fill(registers, named_key_of, BUS_IDENTITY, value), n_names);
    CHECK_INT(write_value(registers, named_key_of(1, BUS_CLAIM), value), PEG_OK);
    CHECK_INT(write_value(registers, named_key_of(1, BUS_RESULT), value), PEG_OK);
    CHECK_INT(bus_registers_wait_add(registers, &waited_for, waiter, 1000), PEG_OK);
    CHECK(!write_until(registers, named_key_of(1, BUS_IDENTITY), "asked again", 1000));
    bus_registers_forget(registers, &waited_for);

    CHECK_INT(fill(registers, named_key_of, 'd', value), PEG_LIMIT_BUS_REGISTERS - n_names - 1);
    CHECK_INT(bus_registers_wait_add(registers, &waited_for, waiter, 1000), PEG_ELIMIT);
    CHECK_INT(write_value(registers, key_of(1, BUS_CLAIM), value), PEG_OK);
    bus_registers_free(registers);
    peg__blob_unref(value);
}

VOLUME_TEST(names_leave_bytes_for_the_rest_of_calls_that_were_admitted)
{
    const size_t max = PEG_LIMIT_BUS_REGISTER_BYTES;
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_new(PEG_LIMIT_BUS_SMALL_BYTES);
    unsigned n_names;
    size_t cost;

    CHECK_INT(write_value(registers, named_key_of(0, BUS_IDENTITY), value), PEG_OK);
    cost = bus_registers_bytes(registers);
    n_names = fill(registers, named_key_of, BUS_IDENTITY, value);

    CHECK_INT(n_names, max / 100 * PEG_LIMIT_BUS_NAME_PERCENT / cost);
    CHECK_INT(fill(registers, named_key_of, BUS_RESULT, value), max / cost - n_names);
    CHECK_INT(fill(registers, key_of, BUS_RESULT, value), max / cost);
    bus_registers_free(registers);
    peg__blob_unref(value);
}

TEST(large_values_take_room_of_their_own_to_the_brim)
{
    struct bus_registers *registers = new_registers();
    struct peg__blob *half =
        peg__blob_new(PEG_LIMIT_BUS_LARGE_BYTES / 2 - sizeof(struct peg__blob));
    struct peg__blob *large = peg__blob_new(PEG_LIMIT_BUS_SMALL_BYTES + 1);
    struct peg__blob *small = peg__blob_new(PEG_LIMIT_BUS_SMALL_BYTES);
    const struct bus_id first = named_key_of(1, BUS_RESULT).id;

    CHECK_INT(fill(registers, named_key_of, BUS_RESULT, half), 2);
    CHECK_INT(write_value(registers, named_key_of(3, BUS_RESULT), large), PEG_ELIMIT);
    CHECK(!stands(registers, named_key_of(3, BUS_RESULT)));
    CHECK_INT(write_value(registers, named_key_of(3, BUS_RESULT), small), PEG_OK);
    CHECK_INT(write_value(registers, named_key_of(4, BUS_IDENTITY), small), PEG_OK);
    CHECK_INT(fill(registers, key_of, BUS_RESULT, half), 2);
    CHECK_INT(write_value(registers, key_of(3, BUS_CLAIM), small), PEG_OK);

    bus_registers_forget(registers, &first);
    CHECK_INT(write_value(registers, named_key_of(5, BUS_RESULT), half), PEG_OK);
    CHECK(!bus_registers_sweep(registers, 1000, 100));
    CHECK_INT(bus_registers_len(registers), 0);
    CHECK_INT(bus_registers_bytes(registers), 0);
    bus_registers_free(registers);
    peg__blob_unref(half);
    peg__blob_unref(large);
    peg__blob_unref(small);
}

/* ---- shares -------------------------------------------------------------------------------- */

/* The keys of two who share what there is; of each number there is but one, whoever has it. */
static struct bus_key annas(unsigned number, char what)
{
    struct bus_key key = named_key_of(number, what);

    key.account = 1;
    return key;
}

static struct bus_key bens(unsigned number, char what)
{
    struct bus_key key = named_key_of(number + PEG_LIMIT_BUS_REGISTERS, what);

    key.account = 2;
    return key;
}

VOLUME_TEST(names_of_one_account_leave_some_to_others_and_it_gets_them_again)
{
    const unsigned n_names = PEG_LIMIT_BUS_REGISTERS / 100 * PEG_LIMIT_BUS_NAME_PERCENT;
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_copy(peg__str("x"));

    CHECK_INT(fill(registers, annas, BUS_IDENTITY, value), n_names / 4 * 3);
    CHECK(!stands(registers, annas(n_names / 4 * 3, BUS_IDENTITY)));
    CHECK_INT(write_value(registers, annas(1, BUS_CLAIM), value), PEG_OK);
    CHECK_INT(write_value(registers, annas(1, BUS_RESULT), value), PEG_OK);
    CHECK_INT(fill(registers, bens, BUS_IDENTITY, value), (3 * (n_names / 4 - 2) + 3) / 4);
    CHECK_INT(write_value(registers, annas(n_names, BUS_IDENTITY), value), PEG_ELIMIT);

    while (bus_registers_sweep(registers, 1000, 1000))
        ;
    CHECK_INT(bus_registers_len(registers), 0);
    CHECK_INT(fill(registers, annas, BUS_IDENTITY, value), n_names / 4 * 3);
    bus_registers_free(registers);
    peg__blob_unref(value);
}

/* What calls end with is much more than what they begin with. */
TEST(small_ends_of_one_account_leave_bytes_to_others)
{
    const size_t max = PEG_LIMIT_BUS_REGISTER_BYTES / 100 * PEG_LIMIT_BUS_NAME_PERCENT;
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_new(PEG_LIMIT_BUS_SMALL_BYTES);
    struct peg__blob *words = peg__blob_new(PEG_LIMIT_BUS_REASON_BYTES);
    unsigned n;

    memset(value->bytes, 'x', value->len);
    memset(words->bytes, 'x', words->len);
    n = fill(registers, annas, BUS_RESULT, value);
    CHECK(bus_registers_bytes(registers) <= max / 4 * 3 + value->len);
    CHECK_INT(write_value(registers, annas(n, BUS_RESULT), words), PEG_OK);
    CHECK_INT(write_value(registers, annas(n, BUS_CLAIM), words), PEG_OK);
    CHECK_INT(write_value(registers, annas(n + 1, BUS_IDENTITY), words), PEG_ELIMIT);
    CHECK_INT(write_value(registers, bens(1, BUS_IDENTITY), words), PEG_OK);
    CHECK_INT(write_value(registers, bens(1, BUS_RESULT), value), PEG_OK);
    bus_registers_free(registers);
    peg__blob_unref(value);
    peg__blob_unref(words);
}

/* Who writes an end may not know whose it is: the name does. */
TEST(large_ends_of_one_account_leave_room_to_others)
{
    struct bus_registers *registers = new_registers();
    struct peg__blob *name = peg__blob_copy(peg__str("x"));
    struct peg__blob *sixteenth =
        peg__blob_new(PEG_LIMIT_BUS_LARGE_BYTES / 16 - sizeof(struct peg__blob));

    memset(sixteenth->bytes, 'x', sixteenth->len);
    for (unsigned i = 0; i < 16; i++)
        CHECK_INT(write_value(registers, annas(i, BUS_IDENTITY), name), PEG_OK);
    CHECK_INT(fill(registers, named_key_of, BUS_RESULT, sixteenth), 12);
    CHECK_INT(write_value(registers, annas(12, BUS_RESULT), name), PEG_OK);
    CHECK_INT(write_value(registers, bens(1, BUS_RESULT), sixteenth), PEG_OK);
    CHECK_INT(write_value(registers, bens(2, BUS_RESULT), sixteenth), PEG_OK);
    forget_named(registers, 1);
    CHECK_INT(write_value(registers, annas(13, BUS_RESULT), sixteenth), PEG_ELIMIT);
    forget_named(registers, 2);
    CHECK_INT(write_value(registers, annas(13, BUS_RESULT), sixteenth), PEG_OK);
    bus_registers_free(registers);
    peg__blob_unref(name);
    peg__blob_unref(sixteenth);
}

/* ---- values --------------------------------------------------------------------------------- */

TEST(a_value_lives_as_long_as_whoever_read_it_wants)
{
    struct bus_registers *registers = new_registers();
    const struct bus_key key = key_of(1, BUS_RESULT);
    struct peg__blob *value;

    write_until(registers, key, "value", 1000);
    value = bus_registers_read(registers, &key);
    bus_registers_forget(registers, &key.id);

    CHECK_STR(peg__blob_str(value), "value");
    peg__blob_unref(value);
    bus_registers_free(registers);
}

/* More than can be removed under one lock. */
TEST(a_call_of_many_attempts_is_forgotten_whole)
{
    struct bus_registers *registers = new_registers();

    for (unsigned n = 1; n <= 500; n++) {
        struct bus_key key = key_of(1, BUS_CLAIM);

        key.n = n;
        write_until(registers, key, "x", 1000);
    }
    forget(registers, 1);

    CHECK_INT(bus_registers_len(registers), 0);
    bus_registers_free(registers);
}

TEST(more_waiters_than_a_process_has_loops_are_refused)
{
    struct bus_registers *registers = new_registers();
    const struct bus_id id = key_of(1, BUS_RESULT).id;
    struct bus_address waiters[BUS_MAX_WAITERS];

    for (unsigned i = 0; i < BUS_MAX_WAITERS; i++)
        CHECK_INT(bus_registers_wait_add(registers, &id, (struct bus_address){1, i}, 1000), PEG_OK);
    CHECK_INT(bus_registers_wait_add(registers, &id, (struct bus_address){2, 0}, 1000), PEG_ELIMIT);
    CHECK_INT(bus_registers_wait_add(registers, &id, (struct bus_address){1, 0}, 1000), PEG_OK);

    CHECK_INT(bus_registers_waiters(registers, &id, waiters), BUS_MAX_WAITERS);
    bus_registers_sweep(registers, 1000, 100);
    CHECK_INT(bus_registers_waiters(registers, &id, waiters), 0);
    bus_registers_free(registers);
}

/* The way of most calls: nothing is allocated once there is memory of earlier ones. */
TEST(a_call_in_the_steady_state_allocates_nothing)
{
    struct bus_registers *registers = new_registers();
    struct peg__blob *value = peg__blob_copy(peg__str("x"));
    struct peg__blob *other = NULL;

    for (unsigned i = 0; i < 2000; i++) {
        const struct bus_key claim = key_of(i, BUS_CLAIM);
        const struct bus_key terminal = key_of(i, BUS_RESULT);

        if (i == 1000)
            peg__mem_fail_at(1);
        CHECK_INT(bus_registers_put_if_absent(registers, &claim, value, 1000, &other), PEG_OK);
        CHECK_INT(bus_registers_put_if_absent(registers, &terminal, value, 1000, &other), PEG_OK);
        bus_registers_forget(registers, &terminal.id);
    }

    peg__mem_fail_at(0);
    bus_registers_free(registers);
    peg__blob_unref(value);
}

TORTURE(registers_survive_any_allocation_failure)
{
    struct bus_registers *registers = NULL;
    struct peg__blob *value = peg__blob_copy(peg__str("x"));
    peg_status status = value ? bus_registers_new(&registers, NULL) : PEG_ENOMEM;

    for (unsigned i = 0; !status && i < 40; i++) {
        const struct bus_key key = key_of(i, BUS_RESULT);
        struct peg__blob *other = NULL;

        status = bus_registers_put_if_absent(registers, &key, value, 1000, &other);
        if (!status)
            status = bus_registers_wait_add(registers, &key.id, (struct bus_address){1, i}, 1000);
        else
            CHECK_INT(bus_registers_len(registers), 2 * i);
    }
    bus_registers_free(registers);
    peg__blob_unref(value);
    return status;
}

/* Each shard keeps some for its next calls, not what its busiest moment took. */
TEST(memory_of_a_busy_time_goes_with_it)
{
    enum { N = 20000, N_SHARDS = 32, FEW = 20 };
    struct bus_registers *registers = new_registers();
    const size_t live = peg__mem_live();

    for (unsigned i = 0; i < N; i++)
        CHECK(write_until(registers, key_of(i, BUS_RESULT), "x", 1000));
    CHECK(peg__mem_live() - live > N);
    for (unsigned i = 0; i < N; i++)
        forget(registers, i);
    CHECK(peg__mem_live() - live < N_SHARDS * FEW);
    bus_registers_free(registers);
}
