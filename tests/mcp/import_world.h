/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_IMPORT_WORLD_H
#define PEG_TESTS_MCP_IMPORT_WORLD_H

/* A registry with the tools of tests/mcp/import/server.py, and what happened to them. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/gate.h"
#include "pegboard/mcp.h"

/* Those of the server that can be tools here. */
enum { IMPORT_TOOLS = 20, IMPORT_EVENTS = 512 };

struct import {
    peg_registry *registry;
    peg_ctx *ctx;
    peg_mcp_client *client;
    peg_record *record; /* of the last call */
    int64_t timeout_ms; /* of calls */
    peg_error error;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        peg_mcp_event_kind kind;
        char words[96]; /* the tool, or the server, or the message */
        char code[32];
    } events[IMPORT_EVENTS];
    size_t n_events;
    size_t n_seen; /* by import_await() */
};

static inline void import_never(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "never");
}

static inline void import_on_event(const peg_mcp_event *event, void *user)
{
    struct import *w = user;
    const char *words = event->tool[0]      ? event->tool
                        : event->message[0] ? event->message
                                            : event->server;

    pthread_mutex_lock(&w->lock);
    if (w->n_events < IMPORT_EVENTS) {
        w->events[w->n_events].kind = event->kind;
        snprintf(w->events[w->n_events].words, 96, "%.95s", words);
        snprintf(w->events[w->n_events].code, 32, "%.31s", event->code);
        w->n_events++;
    }
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static inline bool import_saw(struct import *w, peg_mcp_event_kind kind, const char *words)
{
    bool is_there = false;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n_events; i++)
        is_there |= w->events[i].kind == kind && strstr(w->events[i].words, words);
    pthread_mutex_unlock(&w->lock);
    return is_there;
}

/* The next event of this kind that was not awaited before; its code is `code` unless that is "". */
static inline void import_await(struct import *w, peg_mcp_event_kind kind, const char *code)
{
    struct timespec until;
    bool is_found = false;
    int failed = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&w->lock);
    while (!is_found && !failed) {
        for (; w->n_seen < w->n_events && !is_found; w->n_seen++)
            is_found = w->events[w->n_seen].kind == kind;
        if (!is_found)
            failed = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    }
    if (is_found && code[0])
        is_found = !strcmp(w->events[w->n_seen - 1].code, code);
    pthread_mutex_unlock(&w->lock);
    if (!is_found)
        T_FAIL("there was no event of kind %d with code \"%s\"", (int)kind, code);
}

static inline void import_init(struct import *w)
{
    *w = (struct import){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    CHECK_INT(peg_registry_new(NULL, 0, &w->registry, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_registry(NULL, w->registry, &w->ctx, NULL), PEG_OK);
}

static inline peg_status import_start(struct import *w, const char *era, const char *word,
                                      const peg_mcp_import_options *more)
{
    char path[1024];
    const char *const command[] = {"python3", path, era, word, NULL};
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT};

    snprintf(path, sizeof(path), "%s/tests/mcp/import/server.py", getenv("PEG_SOURCE_ROOT"));
    if (more)
        options = *more;
    options.command = command;
    options.on_event = import_on_event;
    options.user = w;
    return peg_mcp_import(w->registry, &options, &w->client, &w->error);
}

static inline peg_status import_try(struct import *w, const char *era, const char *word,
                                    const peg_mcp_import_options *more)
{
    import_init(w);
    return import_start(w, era, word, more);
}

static inline void import_open(struct import *w, const char *era, const char *word)
{
    CHECK_STATUS(import_try(w, era, word, NULL), PEG_OK, w->error);
}

static inline void import_close(struct import *w)
{
    peg_mcp_client_free(w->client);
    peg_record_unref(w->record);
    peg_ctx_unref(w->ctx);
    peg_registry_unref(w->registry);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
}

static inline void import_call(struct import *w, const char *tool, const char *args)
{
    peg_run_options options = {PEG_RUN_OPTIONS_INIT};

    options.settings.timeout_ms = w->timeout_ms;
    peg_record_unref(w->record);
    w->record = NULL;
    CHECK_STATUS(peg_call_run(w->ctx,
                              &(peg_call_request){PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c1"),
                                                  .tool = peg_cstr(tool), .args = peg_cstr(args)},
                              &options, &w->record, &w->error),
                 PEG_OK, w->error);
}

static inline peg_str import_answer(struct import *w)
{
    peg_str answer = {"", 0};

    CHECK_STATUS(peg_record_answer(w->record, &answer, &w->error), PEG_OK, w->error);
    return answer;
}

/* Answers a question with a name, and counts it. */
static inline void import_say_name(peg_gate *gate, void *user)
{
    static const char answer[] = "{\"%s\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}}";
    const peg_json *asked = peg_json_get(peg_gate_payload(gate), "pegboard/requests");
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    char text[256];

    PEG_JSON_EACH_MEMBER (asked, key)
        snprintf(text, sizeof(text), answer, key->u.ptr);
    *(int *)user += 1;
    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_gate_resolve(gate, peg_json_root(doc), NULL), PEG_OK);
}

#define CHECK_ANSWER(w, tool, args, expected)                                                      \
    do {                                                                                           \
        import_call(w, tool, args);                                                                \
        CHECK_STR(import_answer(w), expected);                                                     \
        CHECK(!peg_record_is_error((w)->record));                                                  \
    } while (0)

/* The sentence begins with `expected`, or has it in it where there is no cause. */
#define CHECK_FAILURE(w, tool, args, cause, expected)                                              \
    do {                                                                                           \
        import_call(w, tool, args);                                                                \
        CHECK(peg_record_is_error((w)->record));                                                   \
        if (!strstr(peg_record_text((w)->record).ptr, expected))                                   \
            T_FAIL("\"%s\" is not in \"%s\"", expected, peg_record_text((w)->record).ptr);         \
        if ((cause)[0])                                                                            \
            CHECK_STR(peg_cstr(peg_record_cause((w)->record)), cause);                             \
    } while (0)

#endif
