/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The promises of the call protocol over many schedules: see sim/history.h for what is checked and
 * sim/run.h for what is run.
 *
 *   PEG_SIM_SCHEDULES=1000000   how many; beyond 100,000 two processes share them
 *   PEG_SIM_SEED=4711           one of them, in words
 */

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../t.h"
#include "sim/run.h"

enum { SCHEDULES = 20000, FOR_TWO = 100000 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void tell_counts(double seconds)
{
    printf("# %llu schedules: %.0f a second of CPU, %.0f events each\n",
           (unsigned long long)r_count.runs, (double)r_count.runs / seconds,
           (double)r_count.events / (double)r_count.runs);
    printf("# %llu of them calm, %llu with nothing but cancellations, %llu drains, %llu breaks, "
           "%llu crashes, %llu callers who return\n",
           (unsigned long long)r_count.kinds[R_CALM], (unsigned long long)r_count.kinds[R_CANCELS],
           (unsigned long long)r_count.kinds[R_DRAINS], (unsigned long long)r_count.kinds[R_BREAKS],
           (unsigned long long)r_count.kinds[R_CRASHES],
           (unsigned long long)r_count.kinds[R_RETURNS]);
    printf("# %llu crashes, %llu pauses, %llu cuts, %llu epochs, %llu lapses; providers: %llu "
           "killed, %llu breaks, %llu drains\n",
           (unsigned long long)r_count.crashes, (unsigned long long)r_count.pauses,
           (unsigned long long)r_count.cuts, (unsigned long long)r_count.epochs,
           (unsigned long long)r_count.lapses, (unsigned long long)r_count.kills,
           (unsigned long long)r_count.breaks, (unsigned long long)r_count.drains);
    printf("# %llu callers, %llu joined, %llu left, %llu returned, %llu lost with their node; %llu "
           "starts\n",
           (unsigned long long)a_count.calls, (unsigned long long)a_count.joined,
           (unsigned long long)a_count.left, (unsigned long long)a_count.returned,
           (unsigned long long)a_count.lost, (unsigned long long)r_count.starts);
    for (unsigned i = 0; i < CALLS_N_KINDS; i++)
        printf("# %12llu %s\n", (unsigned long long)a_count.outcomes[i],
               gw_outcome_kind_name((enum calls_outcome_kind)i));
}

/* False: a promise was broken, and which one has been told. */
static bool run_all(uint64_t first, uint64_t n)
{
    for (uint64_t seed = first; seed < first + n; seed++) {
        if (r_run(seed, false))
            continue;
        printf("# seed %llu breaks \"%s\": %s\n", (unsigned long long)seed, h.promise, h.words);
        r_run(seed, true);
        return false;
    }
    return true;
}

static bool run_half(uint64_t first, uint64_t n)
{
    const double begun_s = cpu_s();
    const bool is_kept = run_all(first, n);

    tell_counts(cpu_s() - begun_s);
    fflush(stdout);
    return is_kept;
}

static bool run_in_two(uint64_t first, uint64_t n)
{
    pid_t child;
    int status = 0;
    bool is_kept;

    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(run_half(first, n / 2) ? 0 : 1);
    is_kept = run_half(first + n / 2, n - n / 2);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return is_kept && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(every_promise_is_kept_in_every_schedule)
{
    const uint64_t n = number_of("PEG_SIM_SCHEDULES", SCHEDULES);
    const uint64_t first = number_of("PEG_SIM_FIRST", 1);
    const uint64_t seed = number_of("PEG_SIM_SEED", 0);
    bool is_kept;

    r_open();
    if (seed)
        is_kept = r_run(seed, true);
    else
        is_kept = n >= FOR_TWO ? run_in_two(first, n) : run_half(first, n);
    r_close();

    CHECK(is_kept);
}

/* ---- what is planted is found ------------------------------------------------------------- */

struct found {
    const char *promise; /* which is broken, where others may be the price */
    enum r_kind kind;    /* of the run; R_N_KINDS: any */
};

static bool is_found(uint64_t seed, const struct found *wanted)
{
    return (wanted->kind == R_N_KINDS || r_kind_of(seed) == wanted->kind) && !r_run(seed, false) &&
           peg__str_is(peg__str(h.promise), wanted->promise);
}

/* The world is open, and something is wrong in it. */
static void find_out(const struct found *wanted)
{
    enum { ENOUGH = 2000 };
    uint64_t seed = 1;

    while (seed < ENOUGH && !is_found(seed, wanted))
        seed++;
    r_close();

    CHECK(seed < ENOUGH);
    printf("# found by seed %llu: %s\n", (unsigned long long)seed, h.words);
}

static void find_in(enum h_plant plant, const char *promise, enum r_kind kind)
{
    r_open();
    h.plant = plant;
    find_out(&(struct found){.promise = promise, .kind = kind});
}

static void find_plant(enum h_plant plant, const char *promise)
{
    find_in(plant, promise, R_N_KINDS);
}

/* The register is what keeps a call from being started twice. Without it one seed in twenty shows
 * that (12, 16, 74, 104 and 105 are the first of them); others break other promises before. */
TEST(desks_that_start_calls_without_the_right_to_are_found_out)
{
    find_plant(H_CLAIMS_ANYWAY, "start");
}

TEST(a_desk_that_lets_calls_of_the_unhealthy_wait_is_found_out)
{
    find_plant(H_HOLDS_UNHEALTHY, "health");
}

TEST(a_desk_that_hands_calls_to_those_who_drain_is_found_out)
{
    find_plant(H_IGNORES_DRAIN, "drain");
}

TEST(a_desk_that_does_not_pass_cancellations_on_is_found_out)
{
    find_plant(H_DROPS_CANCEL, "cancel");
}

TEST(desks_that_write_different_ends_are_found_out)
{
    find_plant(H_WRITES_ITS_OWN, "once");
}

TEST(a_desk_that_forgets_a_call_with_an_identity_is_found_out)
{
    find_plant(H_FORGETS_ENDED, "once");
}

TEST(a_desk_that_takes_back_what_was_started_is_found_out)
{
    find_plant(H_REVOKES_STARTED, "unstarted");
}

TEST(a_desk_that_changes_a_result_is_found_out)
{
    find_plant(H_GARBLES_RESULT, "result");
}

TEST(a_desk_that_does_not_tell_a_caller_is_found_out)
{
    find_plant(H_TELLS_NOBODY, "told");
}

TEST(a_desk_that_does_not_take_results_leaves_calls_behind_and_is_found_out)
{
    find_plant(H_DROPS_RESULT, "leak");
}

TEST(a_desk_that_does_not_acknowledge_results_is_found_out)
{
    find_plant(H_DROPS_ACK, "kept");
}

TEST(a_desk_that_keeps_registers_is_found_out)
{
    find_plant(H_KEEPS_REGISTERS, "leak");
}

TEST(a_desk_that_knows_no_outcome_though_nothing_went_wrong_is_found_out)
{
    find_in(H_DROPS_RESULT, "well", R_CALM);
}

TEST(a_provider_that_does_not_finish_when_it_drains_is_found_out)
{
    find_in(H_QUITS_AT_DRAIN, "well", R_DRAINS);
}

TEST(a_provider_that_comes_back_without_its_calls_is_found_out)
{
    find_in(H_RETURNS_EMPTY, "well", R_BREAKS);
    find_in(H_RETURNS_EMPTY, "well", R_CRASHES);
}

TEST(a_desk_that_does_not_expect_a_lost_caller_back_is_found_out)
{
    find_in(H_DROPS_LOST_CALLER, "well", R_RETURNS);
}
