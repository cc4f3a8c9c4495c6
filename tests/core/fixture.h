/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_FIXTURE_H
#define PEG_TESTS_CORE_FIXTURE_H

/*
 * A world for calls: a registry with the tools a test adds, a context that writes down every
 * event, and a manual clock. Each event is one word in `log`, such as "tool_start ".
 */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/registry.h"
#include "pegboard/run.h"

struct world {
    peg_clock *clock;
    peg_registry *registry;
    peg_ctx *root;
    peg_ctx *timed;
    peg_ctx *heard;
    peg_ctx *ctx; /* all of it: clock, sink, registry, token */
    peg_cancel *cancel;
    char log[2048];
    peg_event last; /* plain parts of the last event; pointers in it are gone */
    char last_error[64];
};

static inline void world_hear(const peg_event *event, void *user)
{
    struct world *w = user;
    const size_t len = strlen(w->log);

    snprintf(w->log + len, sizeof(w->log) - len, "%s ", peg_event_name(event->kind));
    w->last = *event;
    if (event->error)
        snprintf(w->last_error, sizeof(w->last_error), "%s", event->error->code);
}

static inline peg_status world_open(struct world *w)
{
    peg_ctx *listed = NULL;
    peg_status status;

    memset(w, 0, sizeof(*w));
    if ((status = peg_clock_manual_new(1700000000000, &w->clock, NULL)) ||
        (status = peg_registry_new(NULL, 0, &w->registry, NULL)) ||
        (status = peg_ctx_new(&w->root, NULL)) ||
        (status = peg_ctx_with_clock(w->root, w->clock, &w->timed, NULL)) ||
        (status = peg_ctx_with_events(w->timed, world_hear, w, &w->heard, NULL)) ||
        (status = peg_ctx_with_registry(w->heard, w->registry, &listed, NULL)))
        return status;
    status = peg_ctx_with_cancel(listed, &w->ctx, &w->cancel, NULL);
    peg_ctx_unref(listed);
    return status;
}

static inline void world_close(struct world *w)
{
    peg_cancel_unref(w->cancel);
    peg_ctx_unref(w->ctx);
    peg_ctx_unref(w->heard);
    peg_ctx_unref(w->timed);
    peg_ctx_unref(w->root);
    peg_registry_unref(w->registry);
    peg_clock_manual_free(w->clock);
}

/* Makes a tool and registers it. */
static inline peg_status world_add(struct world *w, const peg_tool_def *def)
{
    peg_error error;
    peg_tool *tool = NULL;
    peg_status status = peg_tool_new(def, &tool, &error);

    if (!status)
        status = peg_registry_register(w->registry, tool, false, &error);
    peg_tool_unref(tool);
    return status;
}

static inline peg_status world_add_fn(struct world *w, const char *name, const char *schema,
                                      peg_tool_fn fn)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,      .name = name, .description = "a tool",
                              .input_schema = schema, .run = fn,    .user = w};

    return world_add(w, &def);
}

static inline peg_status world_call(struct world *w, const char *tool, const char *args,
                                    const peg_run_options *options, peg_record **ret_record)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c1"),
                                      .tool = peg_cstr(tool), .args = peg_cstr(args)};

    return peg_call_run(w->ctx, &request, options, ret_record, NULL);
}

/* The text of a record: its own, or that of its artifact. */
static inline peg_str text_of(const peg_record *record)
{
    peg_str bytes = {"", 0};

    if (peg_record_result_kind(record) != PEG_RESULT_ARTIFACT)
        return peg_record_text(record);
    if (peg_artifact_bytes(peg_record_artifact(record), &bytes, NULL))
        T_FAIL("the artifact cannot be read");
    return bytes;
}

#define CHECK_CONTAINS(text, part)                                                                 \
    do {                                                                                           \
        const peg_str t_s = (text);                                                                \
        if (!memmem(t_s.ptr, t_s.len, (part), strlen(part)))                                       \
            T_FAIL("\"%.*s\" does not contain \"%s\"", PEG_ARG(t_s), (part));                      \
    } while (0)

#define CHECK_LACKS(text, part)                                                                    \
    do {                                                                                           \
        const peg_str t_s = (text);                                                                \
        if (memmem(t_s.ptr, t_s.len, (part), strlen(part)))                                        \
            T_FAIL("\"%.*s\" contains \"%s\"", PEG_ARG(t_s), (part));                              \
    } while (0)

#endif
