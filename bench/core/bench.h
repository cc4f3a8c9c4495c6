/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BENCH_CORE_BENCH_H
#define PEG_BENCH_CORE_BENCH_H

/*
 * Measuring calls, registries, turns and forging, through the public headers alone. A figure is the
 * fastest of many batches, so that what else the machine does counts least; `seconds` is how
 * long each is tried.
 */

#include <stdio.h>

#include <pegboard/pegboard.h>

struct bench {
    double seconds;
    FILE *json; /* one object a line; NULL: none */
};

double now_ns(void);
/* Ends the program if status is not PEG_OK: a bench that fails has no figures. */
void must(peg_status status, const char *what);

/* Runs body(user) in batches of `n` and returns the nanoseconds of one, in the fastest batch. */
double fastest(const struct bench *bench, unsigned n, void (*body)(void *user), void *user);

/* Prints "  name   figure unit" and writes {"bench":..., "name":..., "value":...}. */
void report(const struct bench *bench, const char *group, const char *name, double value,
            const char *unit);

/* n tools of one schema shape, named tool_0 ... ; each answers "ok". */
peg_tool **make_tools(size_t n);
void free_tools(peg_tool **tools, size_t n);

/* Arguments that fit the tools, 120 bytes, as a model would send them. */
extern const char *const call_args;

void bench_calls(const struct bench *bench);
void bench_definitions(const struct bench *bench);
void bench_registries(const struct bench *bench);
void bench_turns(const struct bench *bench);
void bench_typed(const struct bench *bench);

#endif
