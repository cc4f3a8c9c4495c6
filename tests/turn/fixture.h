/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TURN_FIXTURE_H
#define PEG_TESTS_TURN_FIXTURE_H

/*
 * A stage for turns: a runner with the tools a test adds, a model that follows a script, and a log
 * of every event, one word each with what matters about it in brackets.
 *
 * The script has one line per iteration, what the model does in it:
 *
 *   "call c1 echo {\"x\":1}; call c2 echo {}; say done"
 *
 * A test that wants more gives a function instead.
 */

#include <stdarg.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/runner.h"

enum { MAX_STEPS = 16 };

struct stage {
    const char *script[MAX_STEPS]; /* by iteration; NULL: the model says nothing more */
    peg_status (*act)(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr);
    peg_tool *tools[MAX_STEPS];
    size_t n_tools;
    peg_turn_middleware turn_input[MAX_STEPS];
    peg_turn_middleware turn_output[MAX_STEPS];
    peg_dispatch_middleware input[MAX_STEPS];
    peg_dispatch_middleware output[MAX_STEPS];
    peg_runner_config config;
    peg_runner *runner;
    peg_turn *turn;
    peg_ctx *ctx; /* what runs are run on; NULL: none */
    peg_outcome outcome;
    unsigned n_infer; /* how often the model was asked */
    unsigned n_handled;
    char log[8192];
    char seen[1024]; /* for tests to note in */
    void *user;
};

static inline void note(struct stage *stage, const char *fmt, ...) PEG_PRINTF(2, 3);
static inline void note(struct stage *stage, const char *fmt, ...)
{
    const size_t len = strlen(stage->seen);
    va_list args;

    va_start(args, fmt);
    vsnprintf(stage->seen + len, sizeof(stage->seen) - len, fmt, args);
    va_end(args);
}

/* ---- events --------------------------------------------------------------------- */

static inline void put_event(struct stage *stage, const char *fmt, ...) PEG_PRINTF(2, 3);
static inline void put_event(struct stage *stage, const char *fmt, ...)
{
    const size_t len = strlen(stage->log);
    va_list args;

    va_start(args, fmt);
    vsnprintf(stage->log + len, sizeof(stage->log) - len, fmt, args);
    va_end(args);
}

static inline void stage_hear(const peg_event *event, void *user)
{
    struct stage *stage = user;

    /* Around each time that the model is asked: test_infer.c looks at them. */
    if (event->kind == PEG_EVENT_INFERENCE_START || event->kind == PEG_EVENT_INFERENCE_END)
        return;
    put_event(stage, "%s", peg_event_name(event->kind));
    switch (event->kind) {
    case PEG_EVENT_DISPATCH_END:
        put_event(stage, "(%s,%u)", peg_turn_end_name(event->u.span.end), event->u.span.iterations);
        break;
    case PEG_EVENT_ERROR:
    case PEG_EVENT_LIMIT:
    case PEG_EVENT_WARNING:
        put_event(stage, "(%s)", event->error->code);
        break;
    case PEG_EVENT_TOOL_CALL:
        put_event(stage, "(%.*s,%s)", PEG_ARG(event->u.tool_call.call_id),
                  event->u.tool_call.is_complete ? "complete" : "announced");
        break;
    default:
        break;
    }
    put_event(stage, " ");
}

/* ---- the model ------------------------------------------------------------------ */

/* "call ID TOOL ARGS" or "say TEXT". A name of - is the empty one. */
static inline peg_status follow_line(peg_turn *turn, const char *line, size_t len,
                                     peg_error *reterr)
{
    char copy[1024];
    char *rest = copy;
    const char *id;
    const char *tool;

    snprintf(copy, sizeof(copy), "%.*s", (int)len, line);
    if (strncmp(copy, "say ", 4) == 0)
        return peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr(copy + 4), reterr);
    if (strncmp(copy, "call ", 5) != 0)
        T_FAIL("the script says \"%s\"", copy);
    rest += 5;
    id = strsep(&rest, " ");
    tool = strsep(&rest, " ");
    if (strcmp(tool, "-") == 0)
        tool = "";
    return peg_turn_add_call(turn, peg_cstr(id), peg_cstr(tool), peg_cstr(rest ? rest : ""),
                             reterr);
}

static inline peg_status follow(peg_turn *turn, const char *script, peg_error *reterr)
{
    peg_status status = PEG_OK;

    while (*script && !status) {
        const char *end = strstr(script, "; ");
        const size_t len = end ? (size_t)(end - script) : strlen(script);

        status = follow_line(turn, script, len, reterr);
        script += len + (end ? 2 : 0);
    }
    return status;
}

static inline peg_status stage_infer(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct stage *stage = user;
    const unsigned i = peg_dispatch_iteration(dispatch);

    stage->n_infer++;
    if (stage->act) {
        const peg_status status = stage->act(stage, dispatch, reterr);

        if (status)
            return status;
    }
    if (i >= MAX_STEPS || !stage->script[i])
        return PEG_OK;
    return follow(peg_dispatch_turn(dispatch), stage->script[i], reterr);
}

/* ---- tools ---------------------------------------------------------------------- */

static inline void echo(peg_call *call, const peg_json *args, void *user)
{
    struct stage *stage = user;

    if (stage)
        __atomic_fetch_add(&stage->n_handled, 1, __ATOMIC_RELAXED);
    peg_call_reply_json(call, args);
}

static inline void failing(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "it is broken");
}

#define ANY_ARGS "{\"type\":\"object\",\"additionalProperties\":true}"

static inline peg_status stage_add(struct stage *stage, const peg_tool_def *def)
{
    peg_status status = peg_tool_new(def, &stage->tools[stage->n_tools], NULL);

    if (!status)
        stage->n_tools++;
    return status;
}

static inline peg_tool_def tool_def(const char *name, peg_tool_fn fn, void *user)
{
    return (peg_tool_def){PEG_TOOL_DEF_INIT,        .name = name, .description = "a tool",
                          .input_schema = ANY_ARGS, .run = fn,    .user = user};
}

/* ---- runs ----------------------------------------------------------------------- */

/* A turn with a question, and a tool `echo`. */
static inline peg_status stage_open(struct stage *stage)
{
    const peg_tool_def def = tool_def("echo", echo, stage);
    peg_status status;

    memset(stage, 0, sizeof(*stage));
    stage->config = (peg_runner_config){PEG_RUNNER_CONFIG_INIT};
    stage->config.loop.engine = (peg_engine){stage_infer, stage};
    stage->config.loop.query_from = -1; /* artifacts of tests are small */
    stage->config.on_event = stage_hear;
    stage->config.on_event_user = stage;
    status = stage_add(stage, &def);
    if (!status)
        status = peg_turn_new(&stage->turn, NULL);
    if (!status)
        status = peg_turn_add_text(stage->turn, PEG_BLOCK_USER, peg_cstr("hello"), NULL);
    return status;
}

static inline struct stage *opened(struct stage *stage)
{
    CHECK_INT(stage_open(stage), PEG_OK);
    return stage;
}

/* Puts the configuration together. A test may change it between this and stage_run(). */
static inline void stage_configure(struct stage *stage)
{
    peg_runner_config *config = &stage->config;

    if (!config->registry) {
        config->tools = stage->tools;
        config->n_tools = stage->n_tools;
    }
    config->input = stage->turn_input;
    config->output = stage->turn_output;
    config->loop.input = stage->input;
    config->loop.output = stage->output;
    for (config->n_input = 0; stage->turn_input[config->n_input].run; config->n_input++)
        ;
    for (config->n_output = 0; stage->turn_output[config->n_output].run; config->n_output++)
        ;
    for (config->loop.n_input = 0; stage->input[config->loop.n_input].run; config->loop.n_input++)
        ;
    for (config->loop.n_output = 0; stage->output[config->loop.n_output].run;
         config->loop.n_output++)
        ;
}

/* Makes the runner if there is none, and runs the turn. PEG_OK if it ran, however it ended: status
 * and error of a run are those of its outcome. */
static inline peg_status stage_run(struct stage *stage)
{
    const peg_outcome *outcome = &stage->outcome;
    peg_error error = {.code = ""};
    peg_status status = PEG_OK;

    if (!stage->runner) {
        stage_configure(stage);
        status = peg_runner_new(&stage->config, &stage->runner, &error);
    }
    if (status)
        return status;
    status = peg_runner_run(stage->runner, stage->ctx, stage->turn, &stage->outcome, &error);
    CHECK_INT(status, outcome->end == PEG_END_ACK ? PEG_OK : outcome->error.status);
    if (status)
        CHECK_STR(peg_cstr(error.message), outcome->error.message);
    return status == PEG_ENOMEM || strcmp(error.code, "E_TURN_BUSY") == 0 ? status : PEG_OK;
}

static inline void stage_close(struct stage *stage)
{
    for (size_t i = 0; i < stage->n_tools; i++)
        peg_tool_unref(stage->tools[i]);
    peg_runner_unref(stage->runner);
    peg_turn_free(stage->turn);
}

/* ---- parts of a storage that keep nothing ------------------------------------------ */

static inline peg_status no_remove(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)id;
    (void)reterr;
    return PEG_OK;
}

static inline peg_status no_fetch(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into,
                                  peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)kinds;
    (void)into;
    (void)reterr;
    return PEG_OK;
}

static inline peg_status no_bytes(void *user, peg_ctx *ctx, const char *what, peg_str id,
                                  peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    (void)user;
    (void)ctx;
    (void)what;
    (void)id;
    return peg_reader_from_bytes(bytes, ret_reader, reterr);
}

/* ---- looking -------------------------------------------------------------------- */

/* The i-th result of the turn. */
static inline peg_record *result_at(const peg_turn *turn, size_t i)
{
    const unsigned results = PEG_BLOCKS(PEG_BLOCK_RESULT);
    size_t at = peg_turn_next(turn, results, 0);

    while (i-- > 0)
        at = peg_turn_next(turn, results, at + 1);
    if (at >= peg_turn_len(turn))
        T_FAIL("there is no such result");
    return peg_block_record(peg_turn_at(turn, at));
}

static inline peg_str text_of(const peg_record *record)
{
    peg_str bytes = {"", 0};

    if (peg_record_result_kind(record) != PEG_RESULT_ARTIFACT)
        return peg_record_text(record);
    if (peg_artifact_bytes(peg_record_artifact(record), &bytes, NULL))
        T_FAIL("the artifact cannot be read");
    return bytes;
}

/* The names of a registry's tools in order, separated by spaces. */
static inline void names_of(peg_registry *registry, bool visible_only, char *out, size_t size)
{
    peg_tool_list list = {0};

    out[0] = '\0';
    if (visible_only ? peg_registry_visible(registry, &list, NULL)
                     : peg_registry_all(registry, &list, NULL))
        return;
    for (size_t i = 0; i < list.len; i++) {
        const size_t len = strlen(out);

        snprintf(out + len, size - len, "%s ", peg_tool_name(list.items[i]));
    }
    peg_tool_list_free(&list);
}

static inline size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
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
