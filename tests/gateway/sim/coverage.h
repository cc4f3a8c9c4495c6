/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_COVERAGE_H
#define PEG_TESTS_GATEWAY_SIM_COVERAGE_H

/*
 * Which steps (state, event, state) the machines of both sides made, over all runs. Enough
 * schedules make every legal transition of calls/machine/, but for those listed here with
 * the reason why no schedule can.
 *
 *   PEG_SIM_COVERAGE=1   prints the table
 */

#include "calls/machine/assignment.h"
#include "calls/machine/coordinator.h"

enum { V_ASSIGNMENT_STATES = ASSIGNMENT_OVER + 1, V_ASSIGNMENT_EVENTS = ASSIGNMENT_ON_DISCARD + 1 };

/* Counters only: those of two processes are added as numbers. */
static struct v_coverage {
    uint64_t coordinator[CALLS_N_STATES][CALLS_N_EVENTS][CALLS_N_STATES];
    uint64_t assignment[V_ASSIGNMENT_STATES][V_ASSIGNMENT_EVENTS][V_ASSIGNMENT_STATES];
} v;

static const char *const v_event_names[CALLS_N_EVENTS] = {
    [CALLS_ADMIT] = "admit",           [CALLS_LOCATE] = "locate",
    [CALLS_ANSWER] = "answer",         [CALLS_TIMER] = "timer",
    [CALLS_PROVIDER] = "provider",     [CALLS_NO_PROVIDER] = "no provider",
    [CALLS_UNRECEIVED] = "unreceived", [CALLS_MESSAGE] = "message",
    [CALLS_DEADLINE] = "deadline",     [CALLS_CANCEL] = "cancel",
    [CALLS_RESET] = "reset",
};

static void v_on_step(enum calls_state from, int event, enum calls_state to)
{
    v.coordinator[from][event][to]++;
}

static void v_on_assignment_step(enum calls_assignment_state from,
                                 enum calls_assignment_event_kind event,
                                 enum calls_assignment_state to)
{
    v.assignment[from][event][to]++;
}

static void v_open(void)
{
    calls_on_step = v_on_step;
    calls_assignment_on_step = v_on_assignment_step;
}

static void v_close(void)
{
    calls_on_step = NULL;
    calls_assignment_on_step = NULL;
}

/* ---- transitions ----------------------------------------------------------------------------- */

static uint64_t v_n_coordinator(enum calls_state from, enum calls_state to)
{
    uint64_t n = 0;

    for (unsigned event = 0; event < CALLS_N_EVENTS; event++)
        n += v.coordinator[from][event][to];
    return n;
}

static uint64_t v_n_assignment_steps(enum calls_assignment_state from,
                                     enum calls_assignment_state to)
{
    uint64_t n = 0;

    for (unsigned event = 0; event < V_ASSIGNMENT_EVENTS; event++)
        n += v.assignment[from][event][to];
    return n;
}

/* A step that ends a check passes RUNNING on its way: it has made both transitions. */
static uint64_t v_n_assignment(enum calls_assignment_state from, enum calls_assignment_state to)
{
    uint64_t n = v_n_assignment_steps(from, to);

    for (unsigned i = 0; i < V_ASSIGNMENT_STATES; i++) {
        const enum calls_assignment_state other = (enum calls_assignment_state)i;

        if (to == ASSIGNMENT_RUNNING && other != from && !calls_assignment_may_become(from, other))
            n += v_n_assignment_steps(from, other);
        if (from == ASSIGNMENT_RUNNING && other != to && !calls_assignment_may_become(other, to))
            n += v_n_assignment_steps(other, to);
    }
    return n;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void v_print_step(const char *machine, const char *from, const char *event, const char *to,
                         uint64_t n)
{
    if (n)
        printf("# %12llu  %-11s %-19s %-11s -> %s\n", (unsigned long long)n, machine, from, event,
               to);
}

static void v_print(void)
{
    for (unsigned from = 0; from < CALLS_N_STATES; from++)
        for (unsigned event = 0; event < CALLS_N_EVENTS; event++)
            for (unsigned to = 0; to < CALLS_N_STATES; to++)
                v_print_step("coordinator", calls_state_names[from], v_event_names[event],
                             calls_state_names[to], v.coordinator[from][event][to]);
    for (unsigned from = 0; from < V_ASSIGNMENT_STATES; from++)
        for (unsigned event = 0; event < V_ASSIGNMENT_EVENTS; event++)
            for (unsigned to = 0; to < V_ASSIGNMENT_STATES; to++)
                v_print_step("assignment", calls_assignment_state_names[from],
                             calls_assignment_event_names[event], calls_assignment_state_names[to],
                             v.assignment[from][event][to]);
}

/* Workers validate large results, and a simulated loop has none; tests/calls/test_assignment.c has
 * these transitions in its table. */
static bool v_assignment_is_excused(enum calls_assignment_state from,
                                    enum calls_assignment_state to)
{
    return from == ASSIGNMENT_VALIDATING || to == ASSIGNMENT_VALIDATING;
}

/* A call is forgotten between two reads of a follower that awaits it and takes its coordinator for
 * lost: one schedule in a million. tests/calls/coordinator_rows.h has it. */
static bool v_coordinator_is_excused(enum calls_state from, enum calls_state to)
{
    return from == CALLS_CONFIRMING && to == CALLS_CLOSING;
}

struct v_summary {
    unsigned n_legal;
    unsigned n_excused;
    unsigned n_unseen;
    uint64_t rarest;
};

static void v_count(struct v_summary *summary, uint64_t n, bool is_excused, const char *machine,
                    const char *from, const char *to)
{
    summary->n_legal++;
    summary->n_excused += is_excused;
    if (is_excused)
        return;
    if (getenv("PEG_SIM_COVERAGE"))
        printf("# %12llu  %-11s %s -> %s\n", (unsigned long long)n, machine, from, to);
    if (!n) {
        summary->n_unseen++;
        printf("# never seen: %s, %s -> %s\n", machine, from, to);
    } else if (n < summary->rarest) {
        summary->rarest = n;
    }
}

static void v_count_coordinator(struct v_summary *summary)
{
    for (unsigned i = 0; i < CALLS_N_STATES; i++)
        for (unsigned j = 0; j < CALLS_N_STATES; j++) {
            const enum calls_state from = (enum calls_state)i;
            const enum calls_state to = (enum calls_state)j;

            if (from != to && calls_state_may_become(from, to))
                v_count(summary, v_n_coordinator(from, to), v_coordinator_is_excused(from, to),
                        "coordinator", calls_state_names[from], calls_state_names[to]);
        }
}

static void v_count_assignment(struct v_summary *summary)
{
    for (unsigned i = 0; i < V_ASSIGNMENT_STATES; i++)
        for (unsigned j = 0; j < V_ASSIGNMENT_STATES; j++) {
            const enum calls_assignment_state from = (enum calls_assignment_state)i;
            const enum calls_assignment_state to = (enum calls_assignment_state)j;

            if (calls_assignment_may_become(from, to))
                v_count(summary, v_n_assignment(from, to), v_assignment_is_excused(from, to),
                        "assignment", calls_assignment_state_names[from],
                        calls_assignment_state_names[to]);
        }
}

/* False: a legal transition was not seen, and enough schedules ran. Such are printed. */
static bool v_report(bool is_enough)
{
    struct v_summary summary = {.rarest = UINT64_MAX};

    if (getenv("PEG_SIM_COVERAGE"))
        v_print();
    v_count_coordinator(&summary);
    v_count_assignment(&summary);
    printf("# %u legal transitions, %u without a schedule that could make them, %u never seen; "
           "the rarest was seen %llu times\n",
           summary.n_legal, summary.n_excused, summary.n_unseen,
           (unsigned long long)summary.rarest);
    return summary.n_unseen == 0 || !is_enough;
}

#endif
