/* SPDX-License-Identifier: Apache-2.0 */

#include "../instrumented.h"
#include "cli/serve/serve.h"
#include "t.h"

TEST(gives_back_once_a_busy_time_is_over)
{
    struct serve_memory memory = {0};

    CHECK(!serve_should_give_back(&memory, 5000)); /* five seconds of CPU in ten */
    CHECK(serve_should_give_back(&memory, 5100));
}

TEST(gives_back_under_a_light_load)
{
    struct serve_memory memory = {0};

    CHECK(serve_should_give_back(&memory, SERVE_CHECK_MS / 10));
    CHECK(serve_should_give_back(&memory, SERVE_CHECK_MS / 10 * 2));
    CHECK(!serve_should_give_back(&memory, SERVE_CHECK_MS / 10 * 3 + 1));
}

TEST(gives_back_once_a_minute_when_it_is_idle)
{
    struct serve_memory memory = {0};
    int64_t cpu_ms = 500;
    unsigned n_times = 0;

    CHECK(serve_should_give_back(&memory, cpu_ms));
    for (unsigned i = 0; i < 60; i++) /* ten minutes, a millisecond in each ten seconds */
        n_times += serve_should_give_back(&memory, ++cpu_ms);
    CHECK_INT(n_times, 10);
}

/* ---- the pages themselves
 * -------------------------------------------------------------------------------------------- */

TEST(gives_back_what_lies_before_a_piece_that_lives_on)
{
    enum { N = 1000, PIECE = 32 << 10 };
    char *pieces[N];
    char *last;
    size_t peak;

#ifndef __GLIBC__
    SKIP("this C library gives back by itself, or not at all");
#endif
    if (t_is_instrumented())
        SKIP("the allocator is not the C library's");
    for (unsigned i = 0; i < N; i++) {
        pieces[i] = peg__alloc(PIECE); /* a compiler would leave malloc() out, and its pages */
        CHECK(pieces[i]);
        memset(pieces[i], 1, PIECE);
    }
    last = peg__alloc(PIECE);
    CHECK(last);
    for (unsigned i = 0; i < N; i++)
        peg__free(pieces[i]);
    peak = t_memory().resident;
    CHECK(peak > (size_t)N * PIECE);
    serve_give_back();
    CHECK(t_memory().resident < peak - (size_t)N * PIECE / 2);
    peg__free(last);
}
