/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_DIRECT_WORLD_H
#define PEG_TESTS_REMOTE_DIRECT_WORLD_H

/*
 * Direct providers of the tools of provider_world.h, on a real Redis; the test adds entries as a
 * gateway would, and looks at what is there. Include it behind t.h.
 */

#include <stdarg.h>

#include "../bus/redis_server.h"
#include "remote/provider_world.h"

#define REQUESTS "pulse:stream:toolset:tools:requests"

enum { DIRECT_WAIT_MS = 20000, DIRECT_GRACE_MS = 500 };

struct direct_world {
    struct world w;
    atomic_uint n_attached;
    peg_provider *other; /* of the same group; NULL: none */
};

static inline void note_direct_event(const peg_provider_event *event, void *user)
{
    struct direct_world *d = user;

    if (event->kind == PEG_PROVIDER_ATTACHED)
        atomic_fetch_add(&d->n_attached, 1);
    count_event(event, &d->w);
}

/* ---- Redis ---- */

PEG_PRINTF(1, 2) static inline long long redis_number(const char *format, ...)
{
    char words[4000];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    return rs_do(words);
}

PEG_PRINTF(1, 2) static inline const char *redis_text(const char *format, ...)
{
    char words[4000];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    return rs_text(words);
}

/* Waits until a command replies with this number. */
static inline void await_number(const char *words, long long wanted)
{
    long long number = 0;

    for (unsigned i = 0; i < DIRECT_WAIT_MS; i++) {
        number = rs_do(words);
        if (number == wanted)
            return;
        usleep(1000);
    }
    T_FAIL("%s replies %lld, expected %lld", words, number, wanted);
}

#define PENDING "EVAL \"return redis.call('XPENDING',KEYS[1],'provider')[1]\" 1 " REQUESTS
#define CONSUMERS "EVAL \"return #redis.call('XINFO','CONSUMERS',KEYS[1],'provider')\" 1 " REQUESTS

/* The entries of a result stream behind `init`: "event payload" in lines. */
static inline const char *results_of(const char *id)
{
    return redis_text(
        "EVAL \"local t = '' for i, e in ipairs(redis.call('XRANGE',KEYS[1],'-','+')) "
        "do if e[2][2] ~= 'init' then t = t .. e[2][2] .. ' ' .. e[2][4] .. string.char(10) "
        "end end return t\" 1 pulse:stream:result:%s",
        id);
}

/* Waits for so many of them. */
static inline const char *await_results(const char *id, unsigned n)
{
    const char *lines = "";

    for (unsigned i = 0; i < DIRECT_WAIT_MS; i++) {
        lines = results_of(id);
        if (t_count(lines, "\n") >= n)
            return lines;
        usleep(1000);
    }
    T_FAIL("call %s has \"%s\", expected %u entries", id, lines, n);
}

static inline void make_result_stream(const char *id)
{
    rs_text("PING"); /* the server is there */
    redis_text("XADD pulse:stream:result:%s * n init p {}", id);
    redis_number("EXPIRE pulse:stream:result:%s 900", id);
}

static inline void add_request(const char *event, const char *payload)
{
    redis_text("XADD " REQUESTS " * n %s p '%s'", event, payload);
}

/* As a gateway does: the result stream, then the request. */
static inline void add_call(const char *id, const char *tool, const char *args)
{
    char payload[512];

    make_result_stream(id);
    snprintf(payload, sizeof(payload),
             "{\"type\":\"call\",\"tool_use_id\":\"%s\",\"tool\":\"%s\",\"payload\":%s,"
             "\"meta\":{\"run_id\":\"r\",\"session_id\":\"s\"}}",
             id, tool, args);
    add_request("call", payload);
}

static inline void add_ping(const char *id)
{
    char payload[128];

    snprintf(payload, sizeof(payload), "{\"type\":\"ping\",\"ping_id\":\"%s\"}", id);
    add_request("ping", payload);
}

/* ---- providers ---- */

static inline peg_provider *start_direct(struct direct_world *d, peg_provider_options options,
                                         peg_provider_streams streams)
{
    const unsigned n_before = atomic_load(&d->n_attached);
    peg_provider *provider = NULL;
    peg_error error;

    options.toolset = "tools";
    options.address = d->w.gateway->address;
    options.backoff_ms = 1;
    options.max_backoff_ms = 20;
    options.on_event = note_direct_event;
    options.user = d;
    streams.redis_url = rs.url;
    streams.grace_ms = streams.grace_ms ? streams.grace_ms : DIRECT_GRACE_MS;
    CHECK_STATUS(peg_provider_new_streams(d->w.registry, &options, &streams, &provider, &error),
                 PEG_OK, error);
    CHECK_STATUS(peg_provider_start(provider, &error), PEG_OK, error);
    for (unsigned i = 0; atomic_load(&d->n_attached) == n_before; i++) {
        if (i == DIRECT_WAIT_MS)
            T_FAIL("the provider does not join");
        usleep(1000);
    }
    return provider;
}

static inline void direct_prepare(struct direct_world *d)
{
    rs_open();
    rs_text("FLUSHALL");
    memset(d, 0, sizeof(*d));
    world_prepare(&d->w);
}

static inline void direct_start(struct direct_world *d, peg_provider_options options,
                                peg_provider_streams streams)
{
    direct_prepare(d);
    d->w.provider = start_direct(d, options, streams);
}

#define DIRECT_START(d)                                                                            \
    direct_start(d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},                             \
                 (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT})

static inline void direct_stop(struct direct_world *d)
{
    d->other = peg_provider_free(d->other);
    world_stop(&d->w);
}

#endif
