/* SPDX-License-Identifier: Apache-2.0 */

/* What a host may put between model and handler. */

#include "fixture.h"

#define OPEN "{\"type\":\"object\",\"additionalProperties\":true}"

/* ---- fixture: one tool, hooks that write down what they saw --------------------- */

struct host {
    struct world w;
    peg_run_hooks hooks;
    peg_run_options options;
    char seen[512];  /* hooks and handler, in order */
    char shown[128]; /* what the start event showed of the arguments */
    char got[128];   /* what the handler got */
    bool is_allowed;
    unsigned n_failures; /* the handler fails this often, then answers */
    unsigned n_runs;
    peg_status refusal; /* of mask or pre_execute */
    int64_t delay_ms;
    char last_failure[64];
};

static void note(struct host *h, const char *what)
{
    strncat(h->seen, what, sizeof(h->seen) - strlen(h->seen) - 1);
}

static void write_json(const peg_json *value, char *out, size_t size)
{
    char *text = NULL;

    if (peg_json_write(value, PEG_JSON_COMPACT, &text, NULL, NULL) == PEG_OK)
        snprintf(out, size, "%s", text);
    peg_free(text);
}

static void handler(peg_call *call, const peg_json *args, void *user)
{
    struct host *h = user;

    note(h, "run ");
    write_json(args, h->got, sizeof(h->got));
    h->n_runs++;
    if (h->n_runs <= h->n_failures)
        peg_call_fail(call, "attempt %u failed", peg_call_attempt(call));
    else
        peg_call_reply(call, peg_cstr("done"));
}

static bool allow(peg_call *call, const peg_json *args, void *user)
{
    struct host *h = user;

    (void)args;
    note(h, "allow ");
    if (!h->is_allowed)
        peg_call_fail(call, "ask an administrator");
    return h->is_allowed;
}

static bool refuse_silently(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
    return false;
}

static peg_status say(const char *json, peg_json_doc **ret_doc)
{
    return peg_json_parse(peg_cstr(json), NULL, ret_doc, NULL);
}

static peg_status mask(const peg_call *call, const peg_json *args, peg_json_doc **ret_masked,
                       void *user, peg_error *reterr)
{
    struct host *h = user;

    (void)call;
    (void)args;
    (void)reterr;
    note(h, "mask ");
    return h->refusal ? h->refusal : say("{\"key\":\"***\"}", ret_masked);
}

static peg_status inject(peg_call *call, const peg_json *args, peg_json_doc **ret_args, void *user,
                         peg_error *reterr)
{
    struct host *h = user;

    (void)call;
    (void)args;
    (void)reterr;
    note(h, "pre ");
    return h->refusal ? h->refusal : say("{\"key\":\"secret\",\"token\":\"t\"}", ret_args);
}

static void on_start(const peg_call *call, void *user)
{
    (void)call;
    note(user, "start ");
}

static bool retry(const peg_call *call, const peg_error *failure, unsigned attempt,
                  int64_t *ret_delay_ms, void *user)
{
    struct host *h = user;

    (void)call;
    (void)attempt;
    note(h, "retry? ");
    snprintf(h->last_failure, sizeof(h->last_failure), "%s", failure->code);
    *ret_delay_ms = h->delay_ms;
    return true;
}

static void on_end(const peg_record *record, void *user)
{
    note(user, peg_record_is_error(record) ? "end-failed " : "end ");
}

static void hear_args(const peg_event *event, void *user)
{
    struct host *h = user;

    if (event->kind == PEG_EVENT_TOOL_START)
        write_json(event->u.tool.args, h->shown, sizeof(h->shown));
}

static void host_open(struct host *h)
{
    memset(h, 0, sizeof(*h));
    CHECK_INT(world_open(&h->w), PEG_OK);
    h->is_allowed = true;
    h->hooks.user = h;
    h->options = (peg_run_options){PEG_RUN_OPTIONS_INIT, .hooks = &h->hooks};
    CHECK_INT(
        world_add(&h->w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "act", .description = "acts",
                                         .input_schema = OPEN, .run = handler, .user = h}),
        PEG_OK);
}

static peg_record *host_call(struct host *h)
{
    peg_ctx *ctx = NULL;
    peg_record *record = NULL;
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c"),
                                      .tool = peg_cstr("act"), .args = peg_cstr("{\"key\":\"k\"}")};

    CHECK_INT(peg_ctx_with_events(h->w.ctx, hear_args, h, &ctx, NULL), PEG_OK);
    CHECK_INT(peg_call_run(ctx, &request, &h->options, &record, NULL), PEG_OK);
    peg_ctx_unref(ctx);
    return record;
}

static void host_close(struct host *h, peg_record *record)
{
    peg_record_unref(record);
    world_close(&h->w);
}

/* ---- tests ---------------------------------------------------------------------- */

TEST(hooks_are_asked_in_order)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks = (peg_run_hooks){.is_allowed = allow,
                              .mask_arguments = mask,
                              .pre_execute = inject,
                              .on_start = on_start,
                              .should_retry = retry,
                              .on_end = on_end,
                              .user = &h};
    record = host_call(&h);

    CHECK_STR(peg__str(h.seen), "allow mask pre start run end ");
    host_close(&h, record);
}

/* G70 */
TEST(a_call_that_is_not_allowed_does_not_run_and_tells_nobody)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.is_allowed = allow;
    h.hooks.mask_arguments = mask;
    h.is_allowed = false;
    record = host_call(&h);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_ALLOWED");
    CHECK_STR(peg_record_text(record), "ask an administrator");
    CHECK_STR(peg__str(h.seen), "allow ");
    CHECK_STR(peg__str(h.w.log), "");
    host_close(&h, record);
}

TEST(a_refusal_without_words_names_the_tool)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.is_allowed = refuse_silently;
    record = host_call(&h);

    CHECK_STR(peg_record_text(record), "the tool 'act' is not allowed");
    host_close(&h, record);
}

/* G73, G74 */
TEST(events_show_the_masked_arguments_and_the_record_keeps_those_sent)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.mask_arguments = mask;
    record = host_call(&h);

    CHECK_STR(peg__str(h.shown), "{\"key\":\"***\"}");
    CHECK_STR(peg__str(h.got), "{\"key\":\"k\"}");
    CHECK_STR(peg_record_args_text(record), "{\"key\":\"k\"}");
    host_close(&h, record);
}

/* G72 */
TEST(what_pre_execute_puts_in_reaches_the_handler_and_no_event)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.pre_execute = inject;
    record = host_call(&h);

    CHECK_STR(peg__str(h.got), "{\"key\":\"secret\",\"token\":\"t\"}");
    CHECK_STR(peg__str(h.shown), "{\"key\":\"k\"}");
    CHECK_STR(peg_record_args_text(record), "{\"key\":\"k\"}");
    host_close(&h, record);
}

/* G71 */
TEST(a_failing_pre_execute_refuses_the_call)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.pre_execute = inject;
    h.refusal = PEG_EHOST;
    record = host_call(&h);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_ALLOWED");
    CHECK_INT(h.n_runs, 0);
    CHECK_STR(peg__str(h.w.log), "");
    host_close(&h, record);
}

static peg_status refuse_by_hand(peg_call *call, const peg_json *args, peg_json_doc **ret_args,
                                 void *user, peg_error *reterr)
{
    (void)call;
    (void)args;
    (void)ret_args;
    (void)user;
    *reterr = (peg_error){.status = PEG_EHOST, .message = "the vault is closed"};
    return PEG_EHOST;
}

TEST(a_hook_may_fail_with_words_and_no_code)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.pre_execute = refuse_by_hand;
    record = host_call(&h);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_ALLOWED");
    CHECK_STR(peg__str(peg_record_cause(record)), "");
    CHECK_STR(peg_record_text(record), "the tool 'act' was refused: the vault is closed");
    host_close(&h, record);
}

static peg_status put_a_list(peg_call *call, const peg_json *args, peg_json_doc **ret_args,
                             void *user, peg_error *reterr)
{
    (void)call;
    (void)args;
    (void)user;
    (void)reterr;
    return say("[1]", ret_args);
}

TEST(a_handler_never_gets_arguments_that_are_no_object)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.pre_execute = put_a_list;
    record = host_call(&h);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_ALLOWED");
    CHECK_CONTAINS(peg_record_text(record), "pre_execute");
    CHECK_INT(h.n_runs, 0);
    host_close(&h, record);
}

TEST(a_failing_mask_refuses_the_call)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.mask_arguments = mask;
    h.refusal = PEG_EHOST;
    record = host_call(&h);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_ALLOWED");
    CHECK_INT(h.n_runs, 0);
    host_close(&h, record);
}

TEST(a_retry_runs_the_handler_again_between_one_start_and_one_end)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.should_retry = retry;
    h.n_failures = 2;
    record = host_call(&h);

    CHECK(!peg_record_is_error(record));
    CHECK_STR(text_of(record), "done");
    CHECK_INT(peg_record_attempts(record), 3);
    CHECK_STR(peg__str(h.seen), "run retry? run retry? run ");
    CHECK_STR(peg__str(h.last_failure), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_STR(peg__str(h.w.log), "tool_start tool_end ");
    host_close(&h, record);
}

TEST(retries_end_at_max_attempts_with_the_last_failure)
{
    struct host h;
    peg_record *record;

    host_open(&h);
    h.hooks.should_retry = retry;
    h.n_failures = 100;
    h.options.max_attempts = 3;
    record = host_call(&h);

    CHECK_INT(peg_record_attempts(record), 3);
    CHECK_STR(peg_record_text(record), "the tool 'act' failed: attempt 3 failed");
    host_close(&h, record);
}

static void cancel_it(peg_call *call, const peg_json *args, void *user)
{
    struct host *h = user;

    (void)args;
    h->n_runs++;
    peg_cancel_fire(h->w.cancel, "enough");
    peg_call_fail(call, "no");
}

/* G77 */
TEST(a_canceled_call_is_not_retried)
{
    struct host h;
    peg_record *record = NULL;

    host_open(&h);
    h.hooks.should_retry = retry;
    CHECK_INT(world_add(&h.w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "stop", .description = "s",
                                              .run = cancel_it, .user = &h}),
              PEG_OK);
    CHECK_INT(world_call(&h.w, "stop", "{}", &h.options, &record), PEG_OK);

    CHECK_INT(h.n_runs, 1);
    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_CANCELED");
    CHECK_CONTAINS(peg_record_text(record), "enough");
    host_close(&h, record);
}

static peg_status torture_hooks(void)
{
    struct host h;
    peg_record *record = NULL;
    peg_status status;

    memset(&h, 0, sizeof(h));
    h.is_allowed = true;
    h.n_failures = 1;
    h.hooks = (peg_run_hooks){.is_allowed = allow,
                              .mask_arguments = mask,
                              .pre_execute = inject,
                              .should_retry = retry,
                              .user = &h};
    h.options = (peg_run_options){PEG_RUN_OPTIONS_INIT, .hooks = &h.hooks};
    status = world_open(&h.w);
    if (!status)
        status =
            world_add(&h.w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "act", .description = "acts",
                                            .input_schema = OPEN, .run = handler, .user = &h});
    if (!status)
        status = world_call(&h.w, "act", "{}", &h.options, &record);
    host_close(&h, record);
    return status;
}

TORTURE(hooks_survive_any_allocation_failure)
{
    return torture_hooks();
}
