/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_REDIS_WORLD_H
#define PEG_TESTS_BUS_REDIS_WORLD_H

/*
 * What the contract asks for, on a real Redis: two loops of one node, and one of another. Each test
 * has a registry of its own.
 */

/* A test of faults needs some of the contract's words, and not all. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <semaphore.h>
#include <stdatomic.h>

#include "bus/redis/redis.h"
#include "contract.h"
#include "net/loop/loop.h"
#include "redis_server.h"

static struct net_loops *loops;
static struct bus_redis_hub *hubs[2];
static struct bus *buses[C_N];
static char registry[32];
static int64_t own_lease_ms = 100000;
static int64_t timeout_ms = 5000;
static const char *ca_file;

struct errand {
    struct net_message message; /* first */
    void (*fn)(void *user);
    void *user;
    sem_t done;
};

static void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;

    errand->fn(errand->user);
    sem_post(&errand->done);
}

static void c_do(unsigned i, void (*fn)(void *user), void *user)
{
    struct errand errand = {.message = {.fn = run_errand}, .fn = fn, .user = user};

    sem_init(&errand.done, 0, 0);
    net_loop_post(net_loops_at(loops, i), &errand.message);
    while (sem_wait(&errand.done))
        ;
    sem_destroy(&errand.done);
}

static struct bus *c_bus(unsigned i)
{
    return buses[i];
}

static void c_pass(void)
{
    usleep(200);
}

struct asked_state {
    unsigned i;
    bool is_connected;
    bool is_fenced;
    uint64_t epoch;
    int64_t now_ms;
};

static void ask_state(void *user)
{
    struct asked_state *state = (struct asked_state *)user;

    state->is_connected = bus_redis_is_connected(buses[state->i]);
    state->is_fenced = bus_is_fenced(buses[state->i]);
    state->epoch = bus_epoch(buses[state->i]);
    state->now_ms = bus_now_ms(buses[state->i]);
}

static struct asked_state state_of(unsigned i)
{
    struct asked_state state = {.i = i};

    c_do(i, ask_state, &state);
    return state;
}

static void await_connected(unsigned i)
{
    while (!state_of(i).is_connected)
        c_pass();
}

static void open_bus(void *user)
{
    const unsigned i = *(const unsigned *)user;

    if (bus_redis_new(hubs[i / 2], net_loops_at(loops, i), i % 2, &buses[i], NULL))
        abort();
    c_listen(i);
}

static void close_bus(void *user)
{
    struct bus **bus = (struct bus **)user;

    *bus = bus_free(*bus);
}

static void own_name(unsigned i, char ret_name[BUS_ADDRESS_TEXT])
{
    bus_address_print(buses[i]->self, ret_name);
}

static void open_buses(const char *url)
{
    static unsigned n_opened;
    struct bus_redis_options options = {.url = url, .name = registry, .check_ms = 5};
    peg_error error;

    snprintf(registry, sizeof(registry), "t%u", ++n_opened);
    options.timeout_ms = timeout_ms;
    options.ca_file = ca_file;
    CHECK_STATUS(net_loops_new(C_N, &loops, &error), PEG_OK, error);
    for (unsigned i = 0; i < 2; i++) {
        options.node = 0xabc + i;
        CHECK_STATUS(bus_redis_hub_new(&options, &hubs[i], &error), PEG_OK, error);
    }
    for (unsigned i = 0; i < C_N; i++)
        c_do(i, open_bus, &i);
}

static void c_open(void)
{
    char name[BUS_ADDRESS_TEXT];

    rs_open();
    open_buses(rs.url);
    for (unsigned i = 0; i < C_N; i++) {
        await_connected(i);
        own_name(i, name);
        c_lease(i, name, own_lease_ms);
    }
}

/* Its end is known when the others do not find its lease any more. */
static void c_end(unsigned i)
{
    char name[BUS_ADDRESS_TEXT];

    own_name(i, name);
    c_do(i, close_bus, &buses[i]);
    while (c_holder((i + 1) % C_N, name).node)
        c_pass();
}

/* What was published before a reply comes before it. */
static void reply_to_all(void)
{
    for (unsigned i = 0; i < C_N; i++) {
        if (buses[i])
            c_read(i, c_key(987654, BUS_RESULT, 0));
    }
}

static void c_settle(void)
{
    const unsigned last = buses[2] ? 2 : 0;

    reply_to_all();
    c_lease(last, "settling", 60);
    while (c_holder(last, "settling").node)
        c_pass();
    reply_to_all();
}

static void c_close(void)
{
    for (unsigned i = 0; i < C_N; i++) {
        if (buses[i])
            c_do(i, close_bus, &buses[i]);
    }
    loops = net_loops_free(loops);
    for (unsigned i = 0; i < 2; i++)
        hubs[i] = bus_redis_hub_free(hubs[i]);
}

#endif
