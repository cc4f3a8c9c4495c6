/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/engine.h"

#include "../turn/fixture.h"
#include "engine/transport/transport.h"

/* ---- fixture: a transport that plays answers, and a stage that asks through it ----------- */

enum { MAX_ANSWERS = 8, MAX_PIECES = 8 };

struct scripted_answer {
    long status; /* 0: no answer */
    const char *content_type;
    const char *pieces[MAX_PIECES];
    int64_t retry_after_ms; /* 0: not told */
    const char *fails;      /* E_ENGINE_TRANSPORT after the pieces; NULL: it ends well */
};

struct play {
    struct stage stage;
    struct scripted_answer answers[MAX_ANSWERS]; /* the last one again and again */
    unsigned n_answers;
    unsigned n_sent;
    char url[512];
    char headers[1024];
    char body[8192];
    int64_t idle_ms;
    peg_model_config config;
    peg_model *engine;
    char left[512]; /* blocks of the dispatch's own turn after the model was asked */
    peg_error error;
};

static peg_status play_answer(void *self, peg_ctx *ctx, const struct peg__http_request *request,
                              struct peg__http_answer *answer, peg_error *reterr)
{
    struct play *p = self;
    const unsigned last = p->n_answers - 1;
    const struct scripted_answer *a = &p->answers[p->n_sent < last ? p->n_sent : last];
    peg_status status = peg_ctx_check(ctx, reterr);

    p->n_sent++;
    p->idle_ms = request->idle_ms;
    snprintf(p->url, sizeof(p->url), "%s", request->url);
    snprintf(p->headers, sizeof(p->headers), "%s", request->headers);
    snprintf(p->body, sizeof(p->body), "%.*s", PEG_ARG(request->body));
    *answer = (struct peg__http_answer){.status = a->status, .retry_after_ms = -1};
    if (a->retry_after_ms)
        answer->retry_after_ms = a->retry_after_ms;
    snprintf(answer->content_type, sizeof(answer->content_type), "%s",
             a->content_type ? a->content_type : "text/event-stream");
    snprintf(answer->request_id, sizeof(answer->request_id), "req-%u", p->n_sent);
    for (size_t i = 0; i < MAX_PIECES && a->pieces[i] && !status && !answer->is_over; i++)
        status = request->on_bytes(answer, peg_cstr(a->pieces[i]), request->user, reterr);
    if (!status && a->fails) {
        if (reterr)
            *reterr = (peg_error){
                .status = PEG_EIO, .code = a->fails, .cause = "", .message = "it broke"};
        status = PEG_EIO;
    }
    return status;
}

static void answer_words(const peg_event *event, void *user)
{
    struct stage *stage = user;

    switch (event->kind) {
    case PEG_EVENT_MESSAGE:
    case PEG_EVENT_THOUGHT:
        put_event(stage, "%s +%.*s%s; ", peg_event_name(event->kind),
                  PEG_ARG(event->u.stream.delta), event->u.stream.is_complete ? " done" : "");
        break;
    case PEG_EVENT_TOOL_ARGS:
        put_event(stage, "args %.*s %.*s +%.*s; ", PEG_ARG(event->u.tool_args.call_id),
                  PEG_ARG(event->u.tool_args.tool), PEG_ARG(event->u.tool_args.delta));
        break;
    case PEG_EVENT_INFERENCE_START:
    case PEG_EVENT_INFERENCE_END:
        put_event(stage, "%s; ", peg_event_name(event->kind));
        break;
    case PEG_EVENT_LOG:
        put_event(stage, "%.*s; ", PEG_ARG(event->u.log.kind));
        break;
    default:
        break;
    }
}

/* As an engine, and notes what it left. */
static peg_status ask_and_look(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct play *p = user;
    const peg_turn *turn = peg_dispatch_turn(dispatch);
    const peg_engine engine = peg_model_engine(p->engine);
    const peg_status status = engine.fn(dispatch, engine.user, reterr);

    p->left[0] = '\0';
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *block = peg_turn_at(turn, i);
        const size_t len = strlen(p->left);

        snprintf(p->left + len, sizeof(p->left) - len, "%s(%.*s%.*s) ",
                 peg_block_kind_name(peg_block_kind_of(block)), PEG_ARG(peg_block_text(block)),
                 PEG_ARG(peg_block_tool(block)));
    }
    return status;
}

static void prepare(struct play *p, peg_vendor vendor)
{
    memset(p, 0, sizeof(*p));
    p->config = (peg_model_config){PEG_MODEL_CONFIG_INIT, .vendor = vendor, .model.model = "m",
                                   .api_key = "secret", .backoff_ms = 1};
}

static void add_answer(struct play *p, struct scripted_answer answer)
{
    p->answers[p->n_answers++] = answer;
}

static peg_status run_play(struct play *p)
{
    const struct peg__transport transport = {.send = play_answer, .self = p};
    peg_status status = stage_open(&p->stage);

    if (!status)
        status = peg__engine_new(&p->config, &transport, &p->engine, &p->error);
    p->stage.config.loop.engine = (peg_engine){ask_and_look, p};
    p->stage.config.on_event = answer_words;
    return status ? status : stage_run(&p->stage);
}

static void close_play(struct play *p)
{
    stage_close(&p->stage);
    peg_model_unref(p->engine);
}

static struct stage *played(struct play *p)
{
    CHECK_STATUS(run_play(p), PEG_OK, p->error);
    return &p->stage;
}

#define CHUNK(delta)                                                                               \
    "data: {\"id\":\"x\",\"model\":\"m-1\",\"choices\":[{\"index\":0," delta "}]}\n\n"
#define SAYS(text) CHUNK("\"delta\":{\"content\":\"" text "\"}")
#define STOPS(reason) CHUNK("\"delta\":{},\"finish_reason\":\"" reason "\"")
#define DONE "data: [DONE]\n\n"
#define CALLS(id, name, args)                                                                      \
    CHUNK("\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"" id                                   \
          "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" args     \
          "\"}}]}")
#define WHOLE                                                                                      \
    "{\"id\":\"x\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"message\":{\"role\":"             \
    "\"assistant\",\"content\":\"whole\"},\"finish_reason\":\"stop\"}],\"usage\":"                 \
    "{\"prompt_tokens\":3,\"completion_tokens\":1}}"

static const struct scripted_answer says_hi = {
    .status = 200, .pieces = {SAYS("h"), SAYS("i"), STOPS("stop"), DONE}};

static struct play *prepared(struct play *p)
{
    prepare(p, PEG_VENDOR_OPENAI_CHAT);
    return p;
}

/* ---- asking ---------------------------------------------------------------------------------- */

TEST(a_model_is_asked_and_what_it_says_is_told_and_kept)
{
    struct play p;
    const struct stage *s;
    const peg_json *result = NULL;

    add_answer(prepared(&p), says_hi);
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(s->log),
              "inference_start; message +h; message +i; message + done; inference_end; ");
    CHECK_STR(peg_block_text(peg_turn_at(s->turn, 1)), "hi");
    CHECK_INT(peg_turn_get(s->turn, &peg_key_inference_result, &result, NULL), PEG_OK);
    CHECK_STR(peg_json_str(peg_json_get(result, "model")), "m-1");
    CHECK_STR(peg_json_str(peg_json_get(result, "request_id")), "req-1");
    CHECK_STR(peg_json_str(peg_json_get(result, "finish_class")), "completed");
    close_play(&p);
}

TEST(a_request_goes_where_it_should_with_the_key)
{
    struct play p;

    add_answer(prepared(&p), says_hi);
    p.config.headers = (const char *const[]){"X-Title: t", NULL};
    played(&p);

    CHECK_STR(peg__str(p.url), "https://api.openai.com/v1/chat/completions");
    CHECK_CONTAINS(peg__str(p.headers), "Authorization: Bearer secret\n");
    CHECK_CONTAINS(peg__str(p.headers), "Accept: text/event-stream\n");
    CHECK_CONTAINS(peg__str(p.headers), "X-Title: t\n");
    CHECK_CONTAINS(peg__str(p.body), "\"stream\":true");
    CHECK_CONTAINS(peg__str(p.body), "\"name\":\"echo\"");
    CHECK_INT(p.idle_ms, 120000);
    close_play(&p);
}

TEST(a_base_url_of_ones_own_is_taken_as_it_is_meant)
{
    static const struct {
        const char *base_url;
        const char *expected;
    } cases[] = {
        {"http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/chat/completions"},
        {"http://127.0.0.1:11434/v1//", "http://127.0.0.1:11434/v1/chat/completions"},
        {"HTTPS://host/d?api-version=1", "HTTPS://host/d/chat/completions?api-version=1"},
        {"http://[::1]:80", "http://[::1]:80/chat/completions"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct play p;

        add_answer(prepared(&p), says_hi);
        p.config.base_url = cases[i].base_url;
        played(&p);
        CHECK_STR(peg__str(p.url), cases[i].expected);
        close_play(&p);
    }
}

TEST(what_path_and_base_url_ask_is_joined)
{
    struct play p;

    prepare(&p, PEG_VENDOR_GEMINI);
    p.config.base_url = "http://host/v1beta?x=1";
    add_answer(&p, (struct scripted_answer){.status = 400, .pieces = {"{}"}});
    played(&p);

    CHECK_STR(peg__str(p.url), "http://host/v1beta/models/m:streamGenerateContent?x=1&alt=sse");
    close_play(&p);
}

TEST(calls_are_run_and_the_model_is_asked_again)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), (struct scripted_answer){.status = 200,
                                                      .pieces = {CALLS("c1", "echo", "{\\\"x\\\":"),
                                                                 CALLS("c1", "", "1}"),
                                                                 STOPS("tool_calls") DONE}});
    add_answer(&p, says_hi);
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    CHECK_INT(p.n_sent, 2);
    CHECK_INT(s->n_handled, 1);
    CHECK_STR(peg__str(s->log), "inference_start; args c1 echo +{\"x\":; args c1 echo +1}; "
                                "inference_end; inference_start; message +h; message +i; "
                                "message + done; inference_end; ");
    CHECK_CONTAINS(peg__str(p.body), "\"tool_call_id\":\"c1\"");
    close_play(&p);
}

static void nothing(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("ok"));
}

TEST(a_tool_whose_name_the_provider_does_not_take_is_called_by_its_own)
{
    const struct peg__transport transport = {.send = play_answer};
    const peg_tool_def def = tool_def("fs.read", nothing, NULL);
    struct peg__transport mine = transport;
    struct play p;

    add_answer(prepared(&p), (struct scripted_answer){.status = 200,
                                                      .pieces = {CALLS("c1", "fs_read", "{}"),
                                                                 STOPS("tool_calls"), DONE}});
    add_answer(&p, says_hi);
    CHECK_INT(stage_open(&p.stage), PEG_OK);
    CHECK_INT(stage_add(&p.stage, &def), PEG_OK);
    mine.self = &p;
    CHECK_INT(peg__engine_new(&p.config, &mine, &p.engine, NULL), PEG_OK);
    p.stage.config.loop.engine = peg_model_engine(p.engine);
    p.stage.config.on_event = answer_words;
    CHECK_INT(stage_run(&p.stage), PEG_OK);

    CHECK_INT(p.stage.outcome.end, PEG_END_ACK);
    CHECK_STR(peg_block_tool(peg_turn_at(p.stage.turn, 1)), "fs.read");
    CHECK(!peg_record_is_error(result_at(p.stage.turn, 0)));
    CHECK_CONTAINS(peg__str(p.stage.log), "args c1 fs.read +{}");
    CHECK_CONTAINS(peg__str(p.body), "\"fs_read\"");
    close_play(&p);
}

/* ---- forms of an answer
 * -------------------------------------------------------------------------- */

static void check_whole(const char *content_type, const char *first, bool no_stream)
{
    struct play p;
    const struct stage *s;

    prepared(&p);
    p.config.no_stream = no_stream;
    add_answer(&p, (struct scripted_answer){
                       .status = 200, .content_type = content_type, .pieces = {first, WHOLE}});
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    CHECK_STR(peg_block_text(peg_turn_at(s->turn, 1)), "whole");
    CHECK_CONTAINS(peg__str(s->log), "message +whole; message + done");
    close_play(&p);
}

TEST(a_whole_answer_is_read_where_no_stream_was_asked_for)
{
    check_whole("application/json", "", true);
}

TEST(a_whole_answer_is_read_although_a_stream_was_asked_for)
{
    check_whole("application/json; charset=utf-8", "", false);
    check_whole("text/plain", " \n", false);
    check_whole("", "", false);
}

TEST(a_stream_is_read_although_none_was_asked_for)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), says_hi);
    p.config.no_stream = true;
    s = played(&p);

    CHECK_STR(peg_block_text(peg_turn_at(s->turn, 1)), "hi");
    CHECK_CONTAINS(peg__str(p.headers), "Accept: application/json\n");
    CHECK_LACKS(peg__str(p.body), "\"stream\":true");
    close_play(&p);
}

TEST(a_stream_of_an_unknown_type_is_read_as_one)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), says_hi);
    p.answers[0].content_type = "text/plain";
    s = played(&p);

    CHECK_STR(peg_block_text(peg_turn_at(s->turn, 1)), "hi");
    close_play(&p);
}

TEST(what_comes_after_the_end_of_a_stream_does_not_matter)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p),
               (struct scripted_answer){
                   .status = 200, .pieces = {SAYS("hi") STOPS("stop") DONE "data: {broken\n\n"}});
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    close_play(&p);
}

/* ---- trying again
 * ------------------------------------------------------------------------------------ */

TEST(a_server_in_trouble_is_asked_again)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), (struct scripted_answer){.status = 500, .pieces = {"oops"}});
    add_answer(&p, (struct scripted_answer){.fails = "E_ENGINE_TRANSPORT"});
    add_answer(&p, says_hi);
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    CHECK_INT(p.n_sent, 3);
    CHECK_STR(peg__str(s->log), "inference_start; engine.retry; engine.retry; message +h; "
                                "message +i; message + done; inference_end; ");
    close_play(&p);
}

TEST(a_server_that_stays_in_trouble_is_given_up)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), (struct scripted_answer){.status = 503, .pieces = {"oops"}});
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_NACK);
    CHECK_INT(p.n_sent, 4);
    CHECK_INT(peg_turn_len(s->turn), 1);
    close_play(&p);
}

TEST(one_try_is_one_try)
{
    struct play p;

    add_answer(prepared(&p), (struct scripted_answer){.status = 503});
    p.config.max_tries = 1;
    played(&p);

    CHECK_INT(p.n_sent, 1);
    close_play(&p);
}

TEST(a_request_that_is_refused_is_not_sent_again)
{
    static const struct {
        long status;
        const char *code;
    } cases[] = {{400, "E_ENGINE_REQUEST"}, {401, "E_ENGINE_AUTH"}, {403, "E_ENGINE_AUTH"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct play p;
        const struct stage *s;

        add_answer(prepared(&p),
                   (struct scripted_answer){
                       .status = cases[i].status,
                       .content_type = "application/json",
                       .pieces = {"{\"error\":{\"message\":\"no, ", "thanks\",\"type\":\"t\"}}"}});
        s = played(&p);

        CHECK_INT(p.n_sent, 1);
        CHECK_STR(peg__str(s->outcome.error.cause), cases[i].code);
        CHECK_CONTAINS(peg__str(s->outcome.error.message), "no, thanks");
        CHECK_LACKS(peg__str(s->outcome.error.message), "secret");
        close_play(&p);
    }
}

/* Some proxies tell what they were sent; this one also where an error is cut. */
TEST(a_key_that_a_server_repeats_is_not_told)
{
    static const char *const words[] = {"no such key: sk-0123456789abcdef, sk-0123456789abcdef!",
                                        "token tenant-secret-77 is not known"};
    static const char *const headers[] = {"X-Tenant: tenant-secret-77", NULL};

    for (size_t i = 0; i < 2; i++) {
        struct play p;
        const struct stage *s;

        add_answer(prepared(&p), (struct scripted_answer){.status = 503,
                                                          .content_type = "text/plain",
                                                          .pieces = {words[i]}});
        p.config.api_key = "sk-0123456789abcdef";
        p.config.headers = headers;
        s = played(&p);

        CHECK_CONTAINS(peg__str(s->outcome.error.message), "***");
        CHECK_LACKS(peg__str(s->outcome.error.message), "0123456789");
        CHECK_LACKS(peg__str(s->outcome.error.message), "secret-77");
        CHECK_LACKS(peg__str(s->log), "0123456789");
        close_play(&p);
    }
}

TEST(a_server_that_wants_to_be_asked_much_later_is_given_up)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p),
               (struct scripted_answer){.status = 429, .retry_after_ms = 30001, .pieces = {"{}"}});
    add_answer(&p, says_hi);
    s = played(&p);

    CHECK_INT(p.n_sent, 1);
    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_RATE_LIMITED");
    close_play(&p);
}

static void cancel_at_retry(const peg_event *event, void *user)
{
    struct stage *stage = user;

    if (event->kind == PEG_EVENT_LOG)
        peg_cancel_fire(stage->user, "no patience");
}

TEST(waiting_for_the_next_try_can_be_canceled)
{
    struct play p;
    const struct peg__transport transport = {.send = play_answer, .self = &p};
    peg_cancel *cancel = NULL;
    peg_ctx *ctx = NULL;

    add_answer(prepared(&p), (struct scripted_answer){.status = 503});
    p.config.backoff_ms = 20000;
    CHECK_INT(stage_open(&p.stage), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &cancel, NULL), PEG_OK);
    CHECK_INT(peg__engine_new(&p.config, &transport, &p.engine, NULL), PEG_OK);
    p.stage.ctx = ctx;
    p.stage.user = cancel;
    p.stage.config.loop.engine = peg_model_engine(p.engine);
    p.stage.config.on_event = cancel_at_retry;
    CHECK_INT(stage_run(&p.stage), PEG_OK);

    CHECK_INT(p.stage.outcome.end, PEG_END_ABORTED);
    CHECK_INT(p.n_sent, 1);
    peg_ctx_unref(ctx);
    peg_cancel_unref(cancel);
    close_play(&p);
}

TEST(a_stream_that_breaks_before_it_says_anything_is_asked_for_again)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p),
               (struct scripted_answer){
                   .status = 200,
                   .pieces = {CHUNK("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}")},
                   .fails = "E_ENGINE_TRANSPORT"});
    add_answer(&p, (struct scripted_answer){.status = 200, .pieces = {": nothing\n\n"}});
    add_answer(&p, says_hi);
    s = played(&p);

    CHECK_INT(s->outcome.end, PEG_END_ACK);
    CHECK_INT(p.n_sent, 3);
    CHECK_INT(count_of(s->log, "message +h;"), 1);
    close_play(&p);
}

TEST(an_overloaded_model_that_says_so_in_its_stream_is_asked_again)
{
    static const char overloaded[] = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                                     "\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    struct play p;
    const struct stage *s;

    prepare(&p, PEG_VENDOR_ANTHROPIC);
    add_answer(&p, (struct scripted_answer){.status = 200, .pieces = {overloaded}});
    s = played(&p);

    CHECK_INT(p.n_sent, 4);
    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_OVERLOADED");
    close_play(&p);
}

/* ---- what breaks off
 * ------------------------------------------------------------------------------------- */

/* G129 */
TEST(a_stream_that_breaks_keeps_its_text_and_none_of_its_calls)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p),
               (struct scripted_answer){.status = 200,
                                        .pieces = {SAYS("I wil"), CALLS("c1", "echo", "{}")},
                                        .fails = "E_ENGINE_TRANSPORT"});
    s = played(&p);

    CHECK_STR(peg__str(p.left), "user(hello) assistant(I wil) ");
    CHECK_INT(p.n_sent, 1);
    CHECK_INT(s->n_handled, 0);
    CHECK_INT(s->outcome.end, PEG_END_NACK);
    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_TRANSPORT");
    CHECK_STR(peg__str(s->log), "inference_start; message +I wil; args c1 echo +{}; "
                                "message + done; inference_end; ");
    close_play(&p);
}

/* G129 */
TEST(a_stream_that_ends_before_the_answer_does_is_no_answer)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p),
               (struct scripted_answer){.status = 200,
                                        .pieces = {SAYS("half"), CALLS("c1", "echo", "{")}});
    s = played(&p);

    CHECK_STR(peg__str(p.left), "user(hello) assistant(half) ");
    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_TRANSPORT");
    CHECK_INT(s->n_handled, 0);
    close_play(&p);
}

/* G129 */
TEST(a_stream_that_is_no_longer_understood_keeps_its_text)
{
    struct play p;
    const struct stage *s;

    add_answer(
        prepared(&p),
        (struct scripted_answer){
            .status = 200, .pieces = {SAYS("half"), CALLS("c1", "echo", "{}"), "data: {{{\n\n"}});
    s = played(&p);

    CHECK_STR(peg__str(p.left), "user(hello) assistant(half) ");
    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_REPLY");
    CHECK_INT(p.n_sent, 1);
    close_play(&p);
}

TEST(garbage_is_refused)
{
    static const char *const garbage[] = {"{\"a\":", "[]", "{}", "{\"choices\":7}",
                                          "<html>busy</html>"};

    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        struct play p;
        const struct stage *s;

        add_answer(prepared(&p), (struct scripted_answer){.status = 200,
                                                          .content_type = "application/json",
                                                          .pieces = {garbage[i]}});
        s = played(&p);

        CHECK_INT(s->outcome.end, PEG_END_NACK);
        CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_REPLY");
        CHECK_INT(peg_turn_len(s->turn), 1);
        close_play(&p);
    }
}

TEST(an_answer_that_is_too_large_is_refused)
{
    struct play p;
    const struct stage *s;

    add_answer(prepared(&p), says_hi);
    p.config.max_reply_bytes = 20;
    s = played(&p);

    CHECK_STR(peg__str(s->outcome.error.cause), "E_ENGINE_TOO_LARGE");
    CHECK_INT(p.n_sent, 1);
    close_play(&p);
}

/* ---- configs
 * ------------------------------------------------------------------------------------------------
 */

static void check_config(const peg_model_config *config, const char *where)
{
    const struct peg__transport transport = {.send = play_answer};
    peg_model *engine = NULL;
    peg_error error;

    CHECK_INT(peg__engine_new(config, &transport, &engine, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_ENGINE_CONFIG");
    CHECK_STR(peg__str(error.where), where);
    CHECK(!engine);
}

TEST(a_config_that_cannot_work_is_refused_with_its_field)
{
    struct play p;
    peg_model_config c;

#define WITH(assignment, where)                                                                    \
    do {                                                                                           \
        c = prepared(&p)->config;                                                                  \
        c.assignment;                                                                              \
        check_config(&c, where);                                                                   \
    } while (0)
    WITH(vendor = PEG_VENDOR_NEUTRAL, "/vendor");
    WITH(model.model = NULL, "/model/model");
    WITH(model.model = "", "/model/model");
    WITH(model.model = "a\nb", "/model/model");
    WITH(model.model = "../../v1/files", "/model/model");
    WITH(model.model = "models/./a", "/model/model");
    WITH(model.model = "models/..", "/model/model");
    WITH(model.extra = "[1]", "/model/extra");
    WITH(model.extra = "{", "/model/extra");
    WITH(model.max_tokens = -1, "/model/max_tokens");
    WITH(base_url = "ftp://host/", "/base_url");
    WITH(base_url = "host", "/base_url");
    WITH(base_url = "http://", "/base_url");
    WITH(base_url = "http://user:word@host/", "/base_url");
    WITH(base_url = "http://host/\r\nX: y", "/base_url");
    WITH(base_url = "http://host/#a", "/base_url");
    WITH(api_key = "a\nEvil: 1", "/api_key");
    WITH(api_key = "a\x7F", "/api_key");
    WITH(headers = ((const char *const[]){"no colon", NULL}), "/headers");
    WITH(headers = ((const char *const[]){"A: b\r\nC: d", NULL}), "/headers");
    WITH(headers = ((const char *const[]){": b", NULL}), "/headers");
    WITH(connect_ms = -1, "/connect_ms");
    WITH(max_tries = -1, "/max_tries");
    WITH(backoff_ms = -1, "/backoff_ms");
    WITH(backoff_max_ms = -1, "/backoff_max_ms");
    WITH(max_reply_bytes = -1, "/max_reply_bytes");
    WITH(max_reply_bytes = INT64_MAX, "/max_reply_bytes");
#undef WITH
}

TEST(the_key_comes_from_the_environment)
{
    struct play p;

    add_answer(prepared(&p), says_hi);
    p.config.api_key = NULL;
    p.config.api_key_env = "PEG_TEST_KEY";
    setenv("PEG_TEST_KEY", "from-env", 1);
    played(&p);

    CHECK_CONTAINS(peg__str(p.headers), "Authorization: Bearer from-env\n");
    unsetenv("PEG_TEST_KEY");
    close_play(&p);
}

TEST(a_key_that_is_not_there_is_asked_for_by_name)
{
    const struct peg__transport transport = {.send = play_answer};
    struct play p;

    for (int i = 0; i < 2; i++) {
        prepared(&p);
        p.config.api_key = NULL;
        p.config.api_key_env = "PEG_TEST_KEY";
        if (i)
            setenv("PEG_TEST_KEY", "", 1);
        CHECK_INT(peg__engine_new(&p.config, &transport, &p.engine, &p.error), PEG_ENOTFOUND);
        CHECK_STR(peg__str(p.error.code), "E_ENGINE_CONFIG");
        CHECK_CONTAINS(peg__str(p.error.message), "PEG_TEST_KEY");
    }
    unsetenv("PEG_TEST_KEY");
}

TEST(a_server_may_want_no_key)
{
    struct play p;

    add_answer(prepared(&p), says_hi);
    p.config.api_key = NULL;
    p.config.api_key_env = "";
    played(&p);

    CHECK_LACKS(peg__str(p.headers), "Authorization");
    close_play(&p);
}

TEST(a_config_is_copied)
{
    char model[] = "mine";
    char stop_word[] = "END";
    char extra[] = "{\"seed\":7}";
    const char *stop[] = {stop_word, NULL};
    double temperature = 0.5;
    const struct peg__transport transport = {.send = play_answer};
    struct peg__transport to_p = transport;
    struct play p;

    add_answer(prepared(&p), says_hi);
    to_p.self = &p;
    p.config.model = (peg_model_options){PEG_MODEL_OPTIONS_INIT, .model = model, .stop = stop,
                                         .temperature = &temperature, .extra = extra};
    CHECK_INT(stage_open(&p.stage), PEG_OK);
    CHECK_STATUS(peg__engine_new(&p.config, &to_p, &p.engine, &p.error), PEG_OK, p.error);
    memset(model, 'x', 4);
    memset(stop_word, 'x', 3);
    memset(extra, 'x', 5);
    temperature = 9;
    p.stage.config.loop.engine = peg_model_engine(p.engine);
    CHECK_INT(stage_run(&p.stage), PEG_OK);

    CHECK_CONTAINS(peg__str(p.body), "\"mine\"");
    CHECK_CONTAINS(peg__str(p.body), "\"END\"");
    CHECK_CONTAINS(peg__str(p.body), "\"temperature\":0.5");
    CHECK_CONTAINS(peg__str(p.body), "\"seed\":7");
    close_play(&p);
}

/* ---- memory
 * ---------------------------------------------------------------------------------------------------
 */

TORTURE(making_an_engine_survives_any_allocation_failure)
{
    static const char *const stop[] = {"a", "b", NULL};
    static const double number = 1;
    const struct peg__transport transport = {.send = play_answer};
    const peg_model_config config = {
        PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_GEMINI,  .api_key = "k",     .model.model = "m",
        .model.stop = stop,    .model.temperature = &number, .model.extra = "{}"};
    peg_model *engine = NULL;
    const peg_status status = peg__engine_new(&config, &transport, &engine, NULL);

    peg_model_unref(engine);
    return status;
}

TORTURE(asking_survives_any_allocation_failure)
{
    struct play p;
    peg_status status;

    add_answer(prepared(&p), (struct scripted_answer){.status = 500, .pieces = {"oops"}});
    add_answer(&p, (struct scripted_answer){.status = 200,
                                            .pieces = {SAYS("h"), CALLS("c1", "echo", "{}"),
                                                       STOPS("tool_calls"), DONE}});
    add_answer(&p, says_hi);
    status = run_play(&p);
    if (!status && p.stage.outcome.end != PEG_END_ACK) {
        CHECK(strcmp(p.stage.outcome.error.code, "E_OUT_OF_MEMORY") == 0 ||
              strcmp(p.stage.outcome.error.cause, "E_OUT_OF_MEMORY") == 0);
        status = PEG_ENOMEM;
    }
    close_play(&p);
    return status;
}
