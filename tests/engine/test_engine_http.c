/* SPDX-License-Identifier: Apache-2.0 */

/* Engines as users have them: over libcurl, to a server of our own. */

#include "../turn/fixture.h"
#include "pegboard/engine.h"
#include "server.h"

/* ---- fixture ------------------------------------------------------------------------------ */

struct world {
    struct server server;
    struct stage stage;
    peg_model *engine;
    peg_cancel *cancel;
    char url[64];
};

static void open_world(struct world *w, answer_fn answer)
{
    peg_model_config config = {PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT,
                               .model.model = "m", .api_key = "k", .backoff_ms = 1};
    peg_error error;

    memset(w, 0, sizeof(*w));
    server_start(&w->server, answer);
    snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/v1", w->server.port);
    config.base_url = w->url;
    CHECK_INT(stage_open(&w->stage), PEG_OK);
    CHECK_STATUS(peg_model_new(&config, &w->engine, &error), PEG_OK, error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &w->stage.ctx, &w->cancel, NULL), PEG_OK);
    w->stage.config.loop.engine = peg_model_engine(w->engine);
}

static void close_world(struct world *w)
{
    peg_ctx_unref(w->stage.ctx);
    peg_cancel_unref(w->cancel);
    stage_close(&w->stage);
    peg_model_unref(w->engine);
    server_stop(&w->server);
}

/* In pieces of seven bytes, which no line end respects. */
static bool put_stream(struct connection *c, const char *text)
{
    bool is_good = put_start(c, "text/event-stream");

    for (size_t len = strlen(text); len > 0 && is_good;) {
        const size_t n = len < 7 ? len : 7;

        is_good = put_chunk(c, text, n);
        text += n;
        len -= n;
    }
    return is_good && put_end(c);
}

#define CHUNK(delta) "data: {\"id\":\"x\",\"choices\":[{\"index\":0," delta "}]}\r\n\r\n"
#define CALL                                                                                       \
    CHUNK("\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"echo\"," \
          "\"arguments\":\"{}\"}}]}")                                                              \
    CHUNK("\"delta\":{},\"finish_reason\":\"tool_calls\"") "data: [DONE]\r\n\r\n"
#define HELLO                                                                                      \
    CHUNK("\"delta\":{\"content\":\"Gr\xC3\xBC\xC3\x9F\"}")                                        \
    CHUNK("\"delta\":{\"content\":\"e\"},\"finish_reason\":\"stop\"") "data: [DONE]\r\n\r\n"

/* ---- tests ----------------------------------------------------------------------------------- */

static bool call_then_greet(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    return put_stream(c, n == 0 ? CALL : HELLO);
}

TEST(a_turn_with_a_call_takes_two_requests_on_one_connection)
{
    struct world w;

    open_world(&w, call_then_greet);
    CHECK_INT(stage_run(&w.stage), PEG_OK);

    CHECK_INT(w.stage.outcome.end, PEG_END_ACK);
    CHECK_INT(peg_turn_len(w.stage.turn), 4);
    CHECK_STR(peg_block_text(peg_turn_at(w.stage.turn, 3)), "Gr\xC3\xBC\xC3\x9F"
                                                            "e");
    CHECK_INT(server_requests(&w.server), 2);
    CHECK_INT(server_connections(&w.server), 1);
    close_world(&w);
}

static bool fail_then_greet(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    switch (n) {
    case 0:
        return put_answer(c, 500, "", "oops");
    case 1:
        return put_answer(c, 429, "Retry-After: 0\r\n", "{}");
    case 2:
        return reset_connection(c);
    default:
        return put_stream(c, HELLO);
    }
}

TEST(troubles_that_pass_are_waited_for)
{
    struct world w;

    open_world(&w, fail_then_greet);
    CHECK_INT(stage_run(&w.stage), PEG_OK);

    CHECK_INT(w.stage.outcome.end, PEG_END_ACK);
    CHECK_INT(server_requests(&w.server), 4);
    close_world(&w);
}

static bool stall_after_half(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    put_start(c, "text/event-stream");
    put_chunk(c, CHUNK("\"delta\":{\"content\":\"half\"}"),
              strlen(CHUNK("\"delta\":{\"content\":\"half\"}")));
    return stall(c);
}

static void *fire_later(void *user)
{
    struct world *w = user;

    server_await(&w->server, 1);
    peg_cancel_fire(w->cancel, "enough");
    return NULL;
}

TEST(a_turn_is_canceled_while_the_model_speaks)
{
    struct world w;
    pthread_t thread;

    open_world(&w, stall_after_half);
    pthread_create(&thread, NULL, fire_later, &w);
    CHECK_INT(stage_run(&w.stage), PEG_OK);
    pthread_join(thread, NULL);

    CHECK_INT(w.stage.outcome.end, PEG_END_ABORTED);
    CHECK_CONTAINS(peg__str(w.stage.outcome.error.message), "enough");
    CHECK_INT(server_requests(&w.server), 1);
    close_world(&w);
}

static bool greet(struct connection *c, const char *request, unsigned n)
{
    (void)request;
    (void)n;
    return put_stream(c, HELLO);
}

struct client {
    struct world *world;
    pthread_t thread;
    unsigned n_good;
};

static void *run_turns(void *user)
{
    struct client *client = user;

    for (int i = 0; i < 5; i++) {
        peg_turn *turn = NULL;

        if (peg_turn_new(&turn, NULL) ||
            peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("hi"), NULL))
            break;
        if (!peg_runner_run(client->world->stage.runner, NULL, turn, NULL, NULL) &&
            peg_turn_len(turn) == 2)
            client->n_good++;
        peg_turn_free(turn);
    }
    return NULL;
}

static void ignore(const peg_event *event, void *user)
{
    (void)event;
    (void)user;
}

TEST(threads_share_an_engine)
{
    struct client clients[4];
    struct world w;

    open_world(&w, greet);
    w.stage.config.on_event = ignore;
    stage_configure(&w.stage);
    CHECK_INT(peg_runner_new(&w.stage.config, &w.stage.runner, NULL), PEG_OK);
    for (size_t i = 0; i < 4; i++) {
        clients[i] = (struct client){.world = &w};
        pthread_create(&clients[i].thread, NULL, run_turns, &clients[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(clients[i].thread, NULL);
        CHECK_INT(clients[i].n_good, 5);
    }
    close_world(&w);
}

TEST(an_engine_that_cannot_be_made_leaves_nothing)
{
    const peg_model_config config = {PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT,
                                     .api_key = "k"};
    peg_model *engine = NULL;
    peg_error error;

    CHECK_INT(peg_model_new(&config, &engine, &error), PEG_EINVAL);

    CHECK_STR(peg__str(error.where), "/model/model");
    CHECK(!engine);
}
