/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_FAKE_REGISTRY_H
#define PEG_TESTS_REMOTE_FAKE_REGISTRY_H

/*
 * A registry without a gateway: a gRPC server of ours whose answers a test scripts. It has toolsets
 * (fake_add), and tools that do what their names say, whatever the toolset:
 *
 *   echo        answers its arguments           talk     says two things, then echo
 *   fail        ran and failed: no_city         data     answers with server-data
 *   say:NAME    the gateway's error NAME        drop     breaks n_drops times, then echo, attached
 *   wait        answers nothing                 garbage  answers what is no message
 *   text        answers "hello" as a string     fail_once  fails; the same identity again: attached
 *   outlast     runs longer than any wait       expire   was not started in time
 *   drain       refused by a gateway that drains, unless n_drops is 0; then echo
 *
 * Include it behind t.h. The server runs on a loop of its own; `lock` guards what both sides see.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/clock.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"
#include "wire/wire.h"

enum { FAKE_TOOLSETS = 8, FAKE_TEXT = 256, FAKE_KEYS = 16 };

struct fake_toolset {
    const char *name;
    const char *tag;         /* or NULL */
    const char *description; /* or NULL */
    bool is_hidden;          /* listed, and not found any more */
    unsigned revision;       /* 0: 7 */
};

/* What the last call asked for. */
struct fake_asked {
    char toolset[FAKE_TEXT];
    char tool[FAKE_TEXT];
    char payload[FAKE_TEXT];
    char run_id[FAKE_TEXT];
    char turn_id[FAKE_TEXT];
    char tool_call_id[FAKE_TEXT];
    char key[FAKE_TEXT];
    char traceparent[FAKE_TEXT];
    char metadata[FAKE_TEXT]; /* "k=v " */
    int64_t timeout_ms;
};

struct fake {
    struct net_loops *loops;
    struct grpc_server *server;
    char address[NET_ADDRESS_TEXT];
    peg_error error;
    struct pegboard_v1_registry_handlers handlers;
    struct pegboard_v1_admin_handlers admin;
    struct grpc_interceptor door;
    /* scripted before it starts, or under the lock */
    struct fake_toolset toolsets[FAKE_TOOLSETS];
    size_t n_toolsets;
    double score;       /* of the first hit; each further one has less */
    unsigned page_size; /* 0: as asked for */
    bool pages_forever;
    bool is_garbage;        /* everything that is no call is answered with what is no message */
    enum wire_error broken; /* answered to everything that is no call, unless WIRE_OK */
    const char *token;      /* which must be shown, or NULL */
    const char *schema;     /* of every tool's arguments; NULL: {"type":"object"} */
    const char *output_schema;
    struct net_tls_config *tls; /* NULL: plain */
    pthread_mutex_t lock;
    struct fake_asked asked;
    char keys[FAKE_KEYS][FAKE_TEXT]; /* identities that fail_once has seen */
    size_t n_keys;
    char unregistered[FAKE_TEXT];
    char registered[FAKE_TEXT];
    /* counted */
    atomic_uint n_calls;
    atomic_uint n_gets;
    atomic_uint n_lists;
    atomic_uint n_watches;
    atomic_uint n_waiting; /* calls of wait that have come */
    atomic_uint n_left;    /* and whose caller went away */
    atomic_uint n_cancels;
    atomic_uint n_awaits;
    atomic_uint n_drops;    /* still to come */
    atomic_uint n_late;     /* waits for a call that end before it does, still to come */
    peg_clock *clock;       /* that such a wait moves by its time; NULL: it ends at once */
    int64_t drops_after_ms; /* likewise, a wait whose connection breaks */
    atomic_uint n_refused;
    atomic_uint n_drops_each; /* that come after each such wait */
    atomic_bool is_finished;  /* what was started */
    atomic_bool has_expired;  /* it was not started in time */
    /* the loop's */
    struct grpc_call *watch; /* a reference */
    struct net_message poke;
    void (*poked)(struct fake *fake);
    atomic_uint n_poked;
};

/* ---- helpers -----------------------------------------------------------------------------------
 */

static inline void fake_copy(char to[FAKE_TEXT], const char *from)
{
    snprintf(to, FAKE_TEXT, "%s", from);
}

/* Until a counter has come so far; a minute is for ever. */
static inline bool fake_await(atomic_uint *counter, unsigned at_least)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 60000 && atomic_load(counter) < at_least; i++)
        nanosleep(&moment, NULL);
    return atomic_load(counter) >= at_least;
}

static inline void fake_refuse(struct grpc_call *call, enum wire_error error, const char *words)
{
    struct grpc_status status;

    if (error == WIRE_OVERLOADED)
        (void)grpc_call_add_trailer(call, peg__str("pegboard-retry-after-ms"), peg__str("250"),
                                    NULL);
    if (error == WIRE_OUTCOME_UNKNOWN)
        (void)grpc_call_add_trailer(call, peg__str("pegboard-call-id"), peg__str("call-3"), NULL);
    wire_error_status(error, peg__str(words), grpc_call_max_status_bytes(call),
                      grpc_call_arena(call), &status);
    grpc_call_finish(call, &status);
}

/* What a gateway says at the end of a wait: the call goes on, or was never started. */
static inline void fake_send_late(struct grpc_call *call, const char *id, bool is_started)
{
    (void)grpc_call_add_trailer(call, peg__str("pegboard-call-id"), peg__str(id), NULL);
    (void)grpc_call_add_trailer(call, peg__str("pegboard-started"),
                                peg__str(is_started ? "true" : "false"), NULL);
    fake_refuse(call, WIRE_TIMEOUT, is_started ? "the wait is over" : "the deadline passed");
}

static inline void fake_check_token(struct grpc_call *call, void *user)
{
    struct fake *fake = user;
    const peg_str shown = grpc_metadata_get(grpc_call_metadata(call), "authorization");
    char wanted[FAKE_TEXT];
    const char *token;

    pthread_mutex_lock(&fake->lock);
    token = fake->token;
    pthread_mutex_unlock(&fake->lock);
    if (!token)
        return;
    snprintf(wanted, sizeof(wanted), "Bearer %s", token);
    if (peg__str_is(shown, wanted))
        return;
    atomic_fetch_add(&fake->n_refused, 1);
    fake_refuse(call, WIRE_UNAUTHENTICATED, "show a token");
}

static inline bool fake_is_broken(struct fake *fake, struct grpc_call *call)
{
    enum wire_error broken;
    bool is_garbage;

    pthread_mutex_lock(&fake->lock);
    broken = fake->broken;
    is_garbage = fake->is_garbage;
    pthread_mutex_unlock(&fake->lock);
    if (is_garbage) {
        grpc_call_reply(call, peg__str("\x0a\xff\xff\xff"));
        return true;
    }
    if (broken == WIRE_OK)
        return false;
    fake_refuse(call, broken, "broken on purpose");
    return true;
}

/* ---- toolsets ----------------------------------------------------------------------------------
 */

struct fake_info {
    Pegboard__V1__ToolsetInfo info;
    Pegboard__V1__Health health;
    char *tags[1];
};

/* With the lock; the texts are the script's. */
static inline void fake_fill(const struct fake_toolset *toolset, struct fake_info *ret_info)
{
    pegboard__v1__toolset_info__init(&ret_info->info);
    pegboard__v1__health__init(&ret_info->health);
    ret_info->info.name = peg__unconst(toolset->name);
    ret_info->info.description =
        peg__unconst(toolset->description ? toolset->description : "a toolset");
    ret_info->info.version = peg__unconst("1.2.0");
    ret_info->info.owner = peg__unconst("local");
    ret_info->info.registered_at = peg__unconst("2026-01-02T03:04:05Z");
    ret_info->info.tool_count = 2;
    ret_info->info.revision = toolset->revision ? toolset->revision : 7;
    ret_info->tags[0] = peg__unconst(toolset->tag);
    ret_info->info.tags = ret_info->tags;
    ret_info->info.n_tags = toolset->tag ? 1 : 0;
    ret_info->health.state = PEGBOARD__V1__HEALTH__STATE__STATE_HEALTHY;
    ret_info->health.providers = 1;
    ret_info->health.last_pong_unix_ms = 1700000000000;
    ret_info->info.health = &ret_info->health;
}

static inline bool fake_has_tags(const struct fake_toolset *toolset, char *const *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!toolset->tag || strcmp(toolset->tag, tags[i]) != 0)
            return false;
    }
    return true;
}

static inline void fake_list(struct grpc_call *call,
                             const Pegboard__V1__ListToolsetsRequest *request, void *user)
{
    struct fake *fake = user;
    Pegboard__V1__ListToolsetsResponse response = PEGBOARD__V1__LIST_TOOLSETS_RESPONSE__INIT;
    struct fake_info infos[FAKE_TOOLSETS];
    Pegboard__V1__ToolsetInfo *pointers[FAKE_TOOLSETS];
    size_t at = (size_t)strtoul(request->page_token, NULL, 10);
    size_t max;
    char token[32] = "";

    atomic_fetch_add(&fake->n_lists, 1);
    if (fake_is_broken(fake, call))
        return;
    pthread_mutex_lock(&fake->lock);
    max = fake->page_size ? fake->page_size : request->page_size;
    for (; at < fake->n_toolsets && response.n_toolsets < max; at++) {
        if (!fake_has_tags(&fake->toolsets[at], request->tags, request->n_tags))
            continue;
        fake_fill(&fake->toolsets[at], &infos[response.n_toolsets]);
        pointers[response.n_toolsets] = &infos[response.n_toolsets].info;
        response.n_toolsets++;
    }
    if (fake->pages_forever)
        snprintf(token, sizeof(token), "0");
    else if (at < fake->n_toolsets)
        snprintf(token, sizeof(token), "%zu", at);
    pthread_mutex_unlock(&fake->lock);
    response.toolsets = pointers;
    response.next_page_token = token;
    pegboard_v1_registry_list_toolsets_reply(call, &response);
}

static inline void fake_fill_hints(Pegboard__V1__Tool *tool)
{
    static char examples[] = "[{\"x\":1}]";

    tool->read_only = true;
    tool->idempotent = true;
    tool->title = peg__unconst("A \"text\"");
    tool->version = peg__unconst("7");
    tool->artifact_kind = peg__unconst("markdown");
    tool->examples = (ProtobufCBinaryData){sizeof(examples) - 1, (uint8_t *)examples};
}

static inline void fake_fill_tool(const struct fake *fake, Pegboard__V1__Tool *tool,
                                  const char *name)
{
    const char *schema = fake->schema ? fake->schema : "{\"type\":\"object\"}";

    pegboard__v1__tool__init(tool);
    tool->name = peg__unconst(name);
    tool->description = peg__unconst("does what its name says");
    tool->input_schema = (ProtobufCBinaryData){strlen(schema), peg__unconst(schema)};
    if (fake->output_schema)
        tool->output_schema =
            (ProtobufCBinaryData){strlen(fake->output_schema), peg__unconst(fake->output_schema)};
    tool->idempotent = strcmp(name, "echo") == 0;
    tool->timeout_ms = strcmp(name, "wait") == 0 ? 60000 : 0;
    if (strcmp(name, "text") == 0)
        fake_fill_hints(tool);
    tool->destructive = strcmp(name, "fail") == 0;
    tool->additive = strcmp(name, "data") == 0;
}

static const char *const fake_tool_names[] = {"echo",      "fail",   "talk", "data",
                                              "wait",      "text",   "drop", "say:overloaded",
                                              "fail_once", "outlast"};
enum { FAKE_TOOLS = sizeof(fake_tool_names) / sizeof(fake_tool_names[0]) };

static inline void fake_get(struct grpc_call *call, const Pegboard__V1__GetToolsetRequest *request,
                            void *user)
{
    struct fake *fake = user;
    Pegboard__V1__GetToolsetResponse response = PEGBOARD__V1__GET_TOOLSET_RESPONSE__INIT;
    Pegboard__V1__Tool tools[FAKE_TOOLS];
    Pegboard__V1__Tool *pointers[FAKE_TOOLS];
    struct fake_info info;
    bool is_there = false;

    atomic_fetch_add(&fake->n_gets, 1);
    if (fake_is_broken(fake, call))
        return;
    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->n_toolsets && !is_there; i++) {
        is_there =
            !fake->toolsets[i].is_hidden && strcmp(fake->toolsets[i].name, request->name) == 0;
        fake_fill(&fake->toolsets[i], &info);
    }
    for (size_t i = 0; i < FAKE_TOOLS; i++) {
        fake_fill_tool(fake, &tools[i], fake_tool_names[i]);
        pointers[i] = &tools[i];
    }
    pthread_mutex_unlock(&fake->lock);
    if (!is_there) {
        fake_refuse(call, WIRE_NOT_FOUND, "there is no such toolset");
        return;
    }
    response.toolset = &info.info;
    response.tools = pointers;
    response.n_tools = FAKE_TOOLS;
    pegboard_v1_registry_get_toolset_reply(call, &response);
}

static inline void fake_search(struct grpc_call *call, const Pegboard__V1__SearchRequest *request,
                               void *user)
{
    struct fake *fake = user;
    Pegboard__V1__SearchResponse response = PEGBOARD__V1__SEARCH_RESPONSE__INIT;
    Pegboard__V1__SearchResponse__Hit hits[FAKE_TOOLSETS];
    Pegboard__V1__SearchResponse__Hit *pointers[FAKE_TOOLSETS];
    struct fake_info infos[FAKE_TOOLSETS];
    char *matched[] = {peg__unconst("echo")};

    if (fake_is_broken(fake, call))
        return;
    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->n_toolsets; i++) {
        const size_t n = response.n_hits;

        if (!strstr(fake->toolsets[i].name, request->query))
            continue;
        pegboard__v1__search_response__hit__init(&hits[n]);
        fake_fill(&fake->toolsets[i], &infos[n]);
        hits[n].toolset = &infos[n].info;
        hits[n].score = fake->score - (double)n;
        hits[n].tools = matched;
        hits[n].n_tools = 1;
        pointers[n] = &hits[n];
        response.n_hits++;
    }
    pthread_mutex_unlock(&fake->lock);
    response.hits = pointers;
    response.total = (uint32_t)response.n_hits;
    pegboard_v1_registry_search_reply(call, &response);
}

static inline void fake_register(struct grpc_call *call,
                                 const Pegboard__V1__RegisterRequest *request, void *user)
{
    struct fake *fake = user;
    Pegboard__V1__RegisterResponse response = PEGBOARD__V1__REGISTER_RESPONSE__INIT;

    if (fake_is_broken(fake, call))
        return;
    pthread_mutex_lock(&fake->lock);
    snprintf(fake->registered, FAKE_TEXT, "%s %s %zu %zu", request->name, request->version,
             request->n_tags, request->n_tools);
    pthread_mutex_unlock(&fake->lock);
    response.stream_id = peg__unconst("toolset:x:requests");
    pegboard_v1_registry_register_reply(call, &response);
}

static inline void fake_unregister(struct grpc_call *call,
                                   const Pegboard__V1__UnregisterRequest *request, void *user)
{
    struct fake *fake = user;
    Pegboard__V1__UnregisterResponse response = PEGBOARD__V1__UNREGISTER_RESPONSE__INIT;

    if (fake_is_broken(fake, call))
        return;
    pthread_mutex_lock(&fake->lock);
    fake_copy(fake->unregistered, request->name);
    pthread_mutex_unlock(&fake->lock);
    pegboard_v1_registry_unregister_reply(call, &response);
}

/* ---- watching ----------------------------------------------------------------------------------
 */

static inline void fake_send_watch(struct fake *fake, Pegboard__V1__WatchResponse__Kind kind,
                                   const struct fake_toolset *toolset)
{
    Pegboard__V1__WatchResponse response = PEGBOARD__V1__WATCH_RESPONSE__INIT;
    struct fake_info info;

    response.kind = kind;
    if (toolset) {
        fake_fill(toolset, &info);
        response.toolset = &info.info;
    }
    if (fake->watch)
        (void)pegboard_v1_registry_watch_send(fake->watch, &response, NULL);
}

static inline void fake_watch(struct grpc_call *call, const Pegboard__V1__WatchRequest *request,
                              void *user)
{
    struct fake *fake = user;

    if (fake_is_broken(fake, call))
        return;
    if (fake->watch)
        grpc_call_unref(fake->watch);
    fake->watch = grpc_call_ref(call);
    for (size_t i = 0; i < fake->n_toolsets && !request->changes_only; i++) {
        if (fake_has_tags(&fake->toolsets[i], request->tags, request->n_tags))
            fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_PRESENT,
                            &fake->toolsets[i]);
    }
    fake_send_watch(fake, PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_READY, NULL);
    atomic_fetch_add(&fake->n_watches, 1);
}

static inline void fake_watch_end(struct grpc_call *call, void *user)
{
    struct fake *fake = user;

    if (fake->watch != call)
        return;
    fake->watch = NULL;
    grpc_call_unref(call);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

static inline void fake_note(struct fake *fake, const Pegboard__V1__CallToolRequest *request)
{
    struct fake_asked *asked = &fake->asked;

    pthread_mutex_lock(&fake->lock);
    *asked = (struct fake_asked){.timeout_ms = request->timeout_ms};
    fake_copy(asked->toolset, request->toolset);
    fake_copy(asked->tool, request->tool);
    fake_copy(asked->key, request->idempotency_key);
    fake_copy(asked->traceparent, request->traceparent);
    snprintf(asked->payload, FAKE_TEXT, "%.*s", (int)request->payload.len,
             (const char *)request->payload.data);
    if (request->meta) {
        fake_copy(asked->run_id, request->meta->run_id);
        fake_copy(asked->turn_id, request->meta->turn_id);
        fake_copy(asked->tool_call_id, request->meta->tool_call_id);
    }
    for (size_t i = 0; i < request->n_metadata; i++) {
        const size_t len = strlen(asked->metadata);

        snprintf(asked->metadata + len, FAKE_TEXT - len, "%s=%s ", request->metadata[i]->key,
                 request->metadata[i]->value);
    }
    pthread_mutex_unlock(&fake->lock);
}

/* Has this identity been seen? It has now. */
static inline bool fake_knows(struct fake *fake, const Pegboard__V1__CallToolRequest *request)
{
    const char *key = request->meta ? request->meta->tool_call_id : request->idempotency_key;

    for (size_t i = 0; i < fake->n_keys; i++) {
        if (strcmp(fake->keys[i], key) == 0)
            return true;
    }
    if (fake->n_keys < FAKE_KEYS)
        fake_copy(fake->keys[fake->n_keys++], key);
    return false;
}

struct fake_answer {
    Pegboard__V1__CallToolResponse response;
    Pegboard__V1__ToolError error;
    Pegboard__V1__ServerData data;
    Pegboard__V1__ServerData *pointers[1];
};

static inline void fake_set_json(struct fake_answer *answer, const char *json)
{
    answer->response.result = (ProtobufCBinaryData){strlen(json), peg__unconst(json)};
}

static inline void fake_set_error(struct fake_answer *answer)
{
    pegboard__v1__tool_error__init(&answer->error);
    answer->error.code = peg__unconst("no_city");
    answer->error.message = peg__unconst("there is no such city: name another");
    answer->response.error = &answer->error;
}

/* What a tool answers; its arguments for echo, talk and drop. */
static inline void fake_make_answer(struct fake *fake, const Pegboard__V1__CallToolRequest *request,
                                    struct fake_answer *answer)
{
    pegboard__v1__call_tool_response__init(&answer->response);
    answer->response.call_id = peg__unconst("call-1");
    if (strcmp(request->tool, "fail") == 0) {
        fake_set_error(answer);
    } else if (strcmp(request->tool, "fail_once") == 0) {
        answer->response.attached = fake_knows(fake, request);
        if (fake->n_keys < 2)
            fake_set_error(answer);
        else
            fake_set_json(answer, "{\"attempt\":2}");
    } else if (strcmp(request->tool, "text") == 0) {
        fake_set_json(answer, "\"hello\"");
    } else if (request->payload.len == 0) {
        fake_set_json(answer, "{}");
    } else {
        answer->response.result = request->payload;
    }
    answer->response.attached |= strcmp(request->tool, "drop") == 0;
    if (strcmp(request->tool, "data") == 0) {
        pegboard__v1__server_data__init(&answer->data);
        answer->data.kind = peg__unconst("map");
        answer->data.audience = peg__unconst("ui");
        answer->data.data = (ProtobufCBinaryData){11, peg__unconst("{\"zoom\": 9}")};
        answer->pointers[0] = &answer->data;
        answer->response.server_data = answer->pointers;
        answer->response.n_server_data = 1;
    }
}

static inline bool fake_is_hidden(struct fake *fake, const char *name)
{
    bool is_hidden = false;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->n_toolsets; i++)
        is_hidden |= fake->toolsets[i].is_hidden && strcmp(fake->toolsets[i].name, name) == 0;
    pthread_mutex_unlock(&fake->lock);
    return is_hidden;
}

/* True: the tool does not answer. */
static inline bool fake_misbehaves(struct fake *fake, struct grpc_call *call,
                                   const Pegboard__V1__CallToolRequest *request)
{
    atomic_fetch_add(&fake->n_calls, 1);
    fake_note(fake, request);
    if (fake_is_hidden(fake, request->toolset)) {
        fake_refuse(call, WIRE_NOT_FOUND, "there is no such toolset");
        return true;
    }
    if (strncmp(request->tool, "say:", 4) == 0) {
        fake_refuse(call, wire_error_of(peg__str(request->tool + 4)), "as it was asked to");
        return true;
    }
    if (strcmp(request->tool, "outlast") == 0 || strcmp(request->tool, "expire") == 0) {
        fake_send_late(call, "call-3", strcmp(request->tool, "outlast") == 0);
        return true;
    }
    if (strcmp(request->tool, "wait") == 0) {
        grpc_call_set_state(call, fake);
        atomic_fetch_add(&fake->n_waiting, 1);
        return true;
    }
    if (strcmp(request->tool, "garbage") == 0) {
        grpc_call_reply(call, peg__str("\xff\xff\xff"));
        return true;
    }
    if (strcmp(request->tool, "drain") == 0 && atomic_load(&fake->n_drops) > 0) {
        (void)grpc_call_add_trailer(call, peg__str("pegboard-draining"), peg__str("true"), NULL);
        fake_refuse(call, WIRE_SERVICE_UNAVAILABLE, "this node is shutting down");
        return true;
    }
    if (strcmp(request->tool, "drop") == 0 && atomic_load(&fake->n_drops) > 0) {
        atomic_fetch_sub(&fake->n_drops, 1);
        grpc_call_fail(call, GRPC_UNAVAILABLE, "the connection broke");
        return true;
    }
    return false;
}

static inline void fake_call(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                             void *user)
{
    struct fake *fake = user;
    struct fake_answer answer;

    if (fake_misbehaves(fake, call, request))
        return;
    fake_make_answer(fake, request, &answer);
    pegboard_v1_registry_call_tool_reply(call, &answer.response);
}

static inline void fake_call_end(struct grpc_call *call, void *user)
{
    struct fake *fake = user;

    if (grpc_call_state(call) && grpc_call_ended_as(call)->code == GRPC_CANCELLED)
        atomic_fetch_add(&fake->n_left, 1);
}

static inline void fake_send_output(struct grpc_call *call, const char *stream, const char *delta)
{
    Pegboard__V1__CallToolStreamResponse event = PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__INIT;
    Pegboard__V1__Output output = PEGBOARD__V1__OUTPUT__INIT;

    output.stream = peg__unconst(stream);
    output.delta = peg__unconst(delta);
    event.event_case = PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_OUTPUT;
    event.output = &output;
    (void)pegboard_v1_registry_call_tool_stream_send(call, &event, NULL);
}

static inline void fake_stream(struct grpc_call *call, const Pegboard__V1__CallToolRequest *request,
                               void *user)
{
    struct fake *fake = user;
    Pegboard__V1__CallToolStreamResponse event = PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__INIT;
    Pegboard__V1__CallToolStreamResponse__Started started =
        PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__STARTED__INIT;
    struct fake_answer answer;

    started.call_id = peg__unconst("call-1");
    event.event_case = PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_STARTED;
    event.started = &started;
    (void)pegboard_v1_registry_call_tool_stream_send(call, &event, NULL);
    if (fake_misbehaves(fake, call, request))
        return;
    if (strcmp(request->tool, "talk") == 0) {
        fake_send_output(call, "stdout", "one ");
        fake_send_output(call, "stderr", "two ");
    }
    fake_make_answer(fake, request, &answer);
    event.event_case = PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_RESULT;
    event.result = &answer.response;
    (void)pegboard_v1_registry_call_tool_stream_send(call, &event, NULL);
    grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
}

/* ---- long calls --------------------------------------------------------------------------------
 */

static inline void fake_start_tool(struct grpc_call *call,
                                   const Pegboard__V1__CallToolRequest *request, void *user)
{
    struct fake *fake = user;
    Pegboard__V1__StartToolResponse response = PEGBOARD__V1__START_TOOL_RESPONSE__INIT;

    if (strcmp(request->tool, "wait") != 0 && fake_misbehaves(fake, call, request))
        return;
    response.call_id = peg__unconst("call-7");
    response.deadline_unix_ms = 1700000030000;
    pegboard_v1_registry_start_tool_reply(call, &response);
}

static inline void fake_finish(struct fake *fake, struct grpc_call *call)
{
    Pegboard__V1__CallToolResponse response = PEGBOARD__V1__CALL_TOOL_RESPONSE__INIT;

    (void)fake;
    response.call_id = peg__unconst("call-7");
    response.result = (ProtobufCBinaryData){4, peg__unconst("true")};
    pegboard_v1_registry_await_tool_reply(call, &response);
}

static inline void fake_await_tool(struct grpc_call *call,
                                   const Pegboard__V1__AwaitToolRequest *request, void *user)
{
    struct fake *fake = user;

    atomic_fetch_add(&fake->n_awaits, 1);
    if (strcmp(request->call_id, "call-7") != 0) {
        fake_refuse(call, WIRE_NOT_FOUND, "there is no such call");
    } else if (atomic_load(&fake->n_drops) > 0) {
        atomic_fetch_sub(&fake->n_drops, 1);
        if (fake->clock)
            peg_clock_manual_advance(fake->clock, fake->drops_after_ms);
        grpc_call_fail(call, GRPC_UNAVAILABLE, "the connection broke");
    } else if (atomic_load(&fake->n_late) > 0) {
        atomic_fetch_sub(&fake->n_late, 1);
        atomic_store(&fake->n_drops, atomic_load(&fake->n_drops_each));
        if (fake->clock)
            peg_clock_manual_advance(fake->clock, request->timeout_ms - 100);
        fake_send_late(call, "call-7", true);
    } else if (atomic_load(&fake->has_expired)) {
        fake_send_late(call, "call-7", false);
    } else if (atomic_load(&fake->n_cancels) > 0) {
        fake_refuse(call, WIRE_CANCELED, "it was canceled before it began");
    } else if (atomic_load(&fake->is_finished)) {
        fake_finish(fake, call);
    } else if (request->timeout_ms < 1000) {
        poll(NULL, 0, (int)request->timeout_ms); /* its loop has nothing else to do */
        fake_send_late(call, "call-7", true);
    }
}

static inline void fake_cancel_tool(struct grpc_call *call,
                                    const Pegboard__V1__CancelToolRequest *request, void *user)
{
    struct fake *fake = user;
    Pegboard__V1__CancelToolResponse response = PEGBOARD__V1__CANCEL_TOOL_RESPONSE__INIT;

    (void)request;
    atomic_fetch_add(&fake->n_cancels, 1);
    pegboard_v1_registry_cancel_tool_reply(call, &response);
}

static inline void fake_describe_call(struct grpc_call *call,
                                      const Pegboard__V1__DescribeCallRequest *request, void *user)
{
    Pegboard__V1__DescribeCallResponse response = PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__INIT;
    Pegboard__V1__DescribeCallResponse__Attempt attempts[2] = {
        PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__INIT,
        PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__INIT};
    Pegboard__V1__DescribeCallResponse__Attempt *pointers[] = {&attempts[0], &attempts[1]};

    (void)user;
    if (strcmp(request->call_id, "call-7") != 0 &&
        !(strcmp(request->toolset, "weather") == 0 && strcmp(request->idempotency_key, "k") == 0)) {
        fake_refuse(call, WIRE_NOT_FOUND, "nothing is known of it");
        return;
    }
    attempts[0].number = 1;
    attempts[0].state = PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_REVOKED;
    attempts[0].node_id = peg__unconst("node-1");
    attempts[1].number = 2;
    attempts[1].state = PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__ATTEMPT__STATE__STATE_CLAIMED;
    attempts[1].provider = peg__unconst("incarnation-1");
    attempts[1].node_id = peg__unconst("node-2");
    attempts[1].address = peg__unconst("10.0.0.2:9090");
    attempts[1].attached = true;
    response.attempts = pointers;
    response.n_attempts = 2;
    response.call_id = peg__unconst("call-7");
    response.state = PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED;
    response.toolset = peg__unconst("weather");
    response.tool = peg__unconst("forecast");
    response.principal = peg__unconst("local");
    response.admitted_unix_ms = 1;
    response.deadline_unix_ms = 2;
    response.kept_until_unix_ms = 3;
    response.coordinator_id = peg__unconst("node-1");
    response.coordinator_address = peg__unconst("10.0.0.1:9090");
    response.coordinator_lost = true;
    response.other_epoch = true;
    response.waiters = 4;
    response.outcome = peg__unconst("error");
    response.started = true;
    response.error = peg__unconst("no_weather");
    response.message = peg__unconst("there is none today");
    response.result_bytes = 5;
    pegboard_v1_registry_describe_call_reply(call, &response);
}

static inline void fake_status(struct grpc_call *call, const Pegboard__V1__StatusRequest *request,
                               void *user)
{
    struct fake *fake = user;
    Pegboard__V1__StatusResponse response = PEGBOARD__V1__STATUS_RESPONSE__INIT;
    Pegboard__V1__NodeInfo node = PEGBOARD__V1__NODE_INFO__INIT;
    Pegboard__V1__ToolsetStatus toolset = PEGBOARD__V1__TOOLSET_STATUS__INIT;
    Pegboard__V1__ToolsetStatus *pointers[] = {&toolset};
    Pegboard__V1__Outcomes outcomes = PEGBOARD__V1__OUTCOMES__INIT;
    Pegboard__V1__RegistryTotals sum = PEGBOARD__V1__REGISTRY_TOTALS__INIT;
    Pegboard__V1__NodeInfo other = PEGBOARD__V1__NODE_INFO__INIT;
    Pegboard__V1__NodeInfo *nodes[] = {&other};
    struct fake_info info;

    node.id = peg__unconst("node-1");
    node.bus = peg__unconst("local");
    response.node = &node;
    response.toolsets = (uint32_t)fake->n_toolsets;
    outcomes.result = 5;
    outcomes.refused = 2;
    response.outcomes = &outcomes;
    fake_fill(&fake->toolsets[0], &info);
    toolset.toolset = &info.info;
    toolset.in_flight = 3;
    response.per_toolset = pointers;
    response.n_per_toolset = request->with_toolsets ? 1 : 0;
    other.id = peg__unconst("node-2");
    other.calls_per_s = 1.5;
    other.outcomes = &outcomes;
    response.nodes = nodes;
    response.n_nodes = 1;
    sum.nodes = 2;
    sum.in_flight = 6;
    sum.queued = 7;
    sum.calls_per_s = 2.5;
    sum.outcomes = &outcomes;
    response.registry = &sum;
    pegboard_v1_admin_status_reply(call, &response);
}

static inline void fake_nodes(struct grpc_call *call, const Pegboard__V1__NodesRequest *request,
                              void *user)
{
    Pegboard__V1__NodesResponse response = PEGBOARD__V1__NODES_RESPONSE__INIT;
    Pegboard__V1__NodeInfo nodes[2] = {PEGBOARD__V1__NODE_INFO__INIT,
                                       PEGBOARD__V1__NODE_INFO__INIT};
    Pegboard__V1__NodeInfo *pointers[] = {&nodes[0], &nodes[1]};

    (void)request;
    (void)user;
    nodes[0].id = peg__unconst("node-1");
    nodes[0].registry = peg__unconst("tools");
    nodes[0].bus = peg__unconst("redis");
    nodes[0].answers = true;
    nodes[1].id = peg__unconst("node-2");
    nodes[1].address = peg__unconst("10.0.0.2:9090");
    nodes[1].version = peg__unconst("1.2.3");
    nodes[1].state = peg__unconst("draining");
    nodes[1].store = peg__unconst("memory");
    nodes[1].started_unix_ms = 1;
    nodes[1].threads = 2;
    nodes[1].protocol = 3;
    nodes[1].pings = true;
    nodes[1].lease_ms = 4;
    nodes[1].lease_left_ms = 5;
    nodes[1].providers = 6;
    nodes[1].in_flight = 7;
    nodes[1].queued = 8;
    nodes[1].settled = 9;
    nodes[1].outcome_unknown = 10;
    nodes[1].round_trip_us = 11;
    response.nodes = pointers;
    response.n_nodes = 2;
    pegboard_v1_admin_nodes_reply(call, &response);
}

static inline void fake_drain_node(struct grpc_call *call,
                                   const Pegboard__V1__DrainNodeRequest *request, void *user)
{
    Pegboard__V1__DrainNodeResponse response = PEGBOARD__V1__DRAIN_NODE_RESPONSE__INIT;

    (void)user;
    if (strcmp(request->node_id, "node-2") == 0 && request->drain_ms == 5)
        pegboard_v1_admin_drain_node_reply(call, &response);
    else
        fake_refuse(call, WIRE_NOT_FOUND, "there is no such node");
}

/* ---- its life ----------------------------------------------------------------------------------
 */

static inline void fake_on_poke(struct net_message *message)
{
    struct fake *fake = (struct fake *)(void *)((char *)message - offsetof(struct fake, poke));

    fake->poked(fake);
    atomic_fetch_add(&fake->n_poked, 1);
}

/* Does something on the server's loop, and waits for it. */
static inline void fake_do(struct fake *fake, void (*what)(struct fake *fake))
{
    const unsigned n = atomic_load(&fake->n_poked);

    fake->poked = what;
    fake->poke.fn = fake_on_poke;
    net_loop_post(net_loops_at(fake->loops, 0), &fake->poke);
    fake_await(&fake->n_poked, n + 1);
}

static inline void fake_add(struct fake *fake, const char *name, const char *tag)
{
    fake->toolsets[fake->n_toolsets++] = (struct fake_toolset){.name = name, .tag = tag};
}

/* Its only toolset is not found any more, or again. */
static inline void fake_hide(struct fake *fake, bool is_hidden)
{
    pthread_mutex_lock(&fake->lock);
    fake->toolsets[0].is_hidden = is_hidden;
    pthread_mutex_unlock(&fake->lock);
}

static inline void fake_prepare(struct fake *fake)
{
    *fake = (struct fake){.score = 10};
    pthread_mutex_init(&fake->lock, NULL);
    fake->door = (struct grpc_interceptor){.on_start = fake_check_token, .user = fake};
    fake->handlers = (struct pegboard_v1_registry_handlers){
        .user = fake,
        .register_ = fake_register,
        .unregister = fake_unregister,
        .list_toolsets = fake_list,
        .get_toolset = fake_get,
        .search = fake_search,
        .watch = fake_watch,
        .watch_on_end = fake_watch_end,
        .call_tool = fake_call,
        .call_tool_on_end = fake_call_end,
        .call_tool_stream = fake_stream,
        .call_tool_stream_on_end = fake_call_end,
        .start_tool = fake_start_tool,
        .await_tool = fake_await_tool,
        .cancel_tool = fake_cancel_tool,
        .describe_call = fake_describe_call,
    };
    fake->admin = (struct pegboard_v1_admin_handlers){
        .user = fake, .status = fake_status, .nodes = fake_nodes, .drain_node = fake_drain_node};
}

/* At its address, or a free port. */
static inline peg_status fake_serve(struct fake *fake)
{
    const struct grpc_server_options options = {.interceptors = &fake->door, .n_interceptors = 1};
    const struct net_listener_options listening = {.stream.tls = fake->tls};
    const char *address = *fake->address ? fake->address : "127.0.0.1:0";
    struct net_address at;
    peg_status status;

    if ((status = net_loops_new(1, &fake->loops, &fake->error)) ||
        (status = grpc_server_new(fake->loops, &options, &fake->server, &fake->error)) ||
        (status = pegboard_v1_registry_add(fake->server, &fake->handlers, &fake->error)) ||
        (status = pegboard_v1_admin_add(fake->server, &fake->admin, &fake->error)) ||
        (status =
             grpc_server_listen(fake->server, peg__str(address), &listening, &at, &fake->error)))
        return status;
    net_address_format(&at, fake->address);
    return PEG_OK;
}

static inline void fake_stop(struct fake *fake)
{
    fake->server = grpc_server_free(fake->server);
    fake->loops = net_loops_free(fake->loops);
    fake->watch = NULL;
}

static inline void fake_done(struct fake *fake)
{
    fake_stop(fake);
    pthread_mutex_destroy(&fake->lock);
}

/* With one toolset, "weather". */
static inline peg_status fake_open(struct fake *fake)
{
    fake_prepare(fake);
    fake_add(fake, "weather", "geo");
    return fake_serve(fake);
}

#endif
