/* SPDX-License-Identifier: Apache-2.0 */

/* A provider without memory, on its loop and where a handler runs, answers and goes on. */

#include "t.h"

#include "base/mem.h"
#include "remote/provider/provider.h"
#include "remote/provider_world.h"

/* As many as a call takes, and some more. */
enum { N_ALLOCATIONS = 40 };

struct hunger {
    struct net_message message;
    unsigned nth;
    sem_t done;
};

static void starve(struct net_message *message)
{
    struct hunger *hunger = (struct hunger *)(void *)message;

    peg__mem_fail_once(hunger->nth);
    sem_post(&hunger->done);
}

static void starve_loop(struct world *w, unsigned nth)
{
    struct hunger hunger = {.message = {.fn = starve}, .nth = nth};

    sem_init(&hunger.done, 0, 0);
    net_loop_post(w->provider->loop, &hunger.message);
    sem_wait(&hunger.done);
}

/* The stream that the provider has, as soon as it has one. */
static unsigned newest(struct fake *g)
{
    unsigned n;

    while (true) {
        pthread_mutex_lock(&g->lock);
        n = g->n_streams;
        if (n && g->streams[n - 1].call && g->streams[n - 1].is_greeted) {
            pthread_mutex_unlock(&g->lock);
            return n - 1;
        }
        pthread_mutex_unlock(&g->lock);
        poll(NULL, 0, 1);
    }
}

/* A call is answered or given back, or its stream went before the provider had it: that is another
 * one's to notice. */
static void await_end(struct world *w, unsigned stream, const char *id)
{
    while (!fake_count(w->gateway, FAKE_RESULT, id) && !fake_count(w->gateway, FAKE_NAK, id) &&
           newest(w->gateway) == stream)
        poll(NULL, 0, 1);
}

static void run_starved(peg_call *call, const peg_json *args, void *user)
{
    int64_t n = 0;

    (void)user;
    if (peg_json_get(args, "n"))
        peg_json_int64(peg_json_get(args, "n"), &n);
    peg__mem_fail_once((unsigned)n);
    peg_provider_delta(call, "stdout", peg_cstr("one"));
    peg_call_add_server_data(call, "note", "host", args);
    peg_call_reply_json(call, args);
}

TEST(a_handler_without_memory_fails_and_the_next_does_not)
{
    struct world w;
    char id[32];
    char args[32];
    unsigned stream;

    world_prepare(&w);
    add(w.registry, "starved", run_starved, NULL);
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_await_stream(w.gateway, 0);
    for (unsigned nth = 1; nth < N_ALLOCATIONS; nth++) {
        snprintf(id, sizeof(id), "c%u", nth);
        snprintf(args, sizeof(args), "{\"n\":%u}", nth);
        stream = newest(w.gateway);
        fake_call(w.gateway, stream, id, "starved", args);
        await_end(&w, stream, id);
        /* What was not used up may hit this one, which takes it back. */
        snprintf(id, sizeof(id), "b%u", nth);
        fake_call(w.gateway, stream, id, "starved", "{}");
        await_end(&w, stream, id);
        snprintf(id, sizeof(id), "d%u", nth);
        fake_call(w.gateway, newest(w.gateway), id, "starved", "{}");
        CHECK_RESULT(&w, id, "{}");
    }
    world_stop(&w);
}

TEST(a_loop_without_memory_gives_calls_back_or_answers_them_later)
{
    struct world w;
    char id[32];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    for (unsigned nth = 1; nth < N_ALLOCATIONS; nth++) {
        const unsigned stream = newest(w.gateway);

        starve_loop(&w, nth);
        snprintf(id, sizeof(id), "c%u", nth);
        fake_call(w.gateway, stream, id, "tell", "{}");
        await_end(&w, stream, id);
        starve_loop(&w, 0);
        snprintf(id, sizeof(id), "d%u", nth);
        fake_call(w.gateway, newest(w.gateway), id, "echo", "{}");
        CHECK_RESULT(&w, id, "{}");
    }
    world_stop(&w);
}

TEST(a_break_without_memory_is_survived)
{
    struct world w;
    char id[32];

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    for (unsigned nth = 1; nth < N_ALLOCATIONS; nth++) {
        const unsigned stream = newest(w.gateway);

        snprintf(id, sizeof(id), "c%u", nth);
        fake_call(w.gateway, stream, id, "hold", "{}");
        sem_wait(&entered);
        starve_loop(&w, nth);
        fake_end(w.gateway, stream, GRPC_UNAVAILABLE);
        while (newest(w.gateway) == stream)
            poll(NULL, 0, 1);
        sem_post(&released);
        fake_await(w.gateway, FAKE_RESULT, id, 0);
        starve_loop(&w, 0);
    }
    world_stop(&w);
}
