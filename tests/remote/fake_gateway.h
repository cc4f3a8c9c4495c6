/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_FAKE_GATEWAY_H
#define PEG_TESTS_REMOTE_FAKE_GATEWAY_H

/*
 * A gateway that does what a test says: our own gRPC server with Attach, and for direct providers
 * Register, Pong and EmitToolResult. It writes down every frame, and these requests as Offer, Pong
 * and Result; the test waits for frames and sends its own. Include it behind t.h.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/server/server.h"
#include "pegboard/v1/registry.grpc.h"

enum { FAKE_STREAMS = 64, FAKE_FRAMES = 32768, FAKE_WAIT_S = 60 };

enum fake_kind {
    FAKE_HELLO,
    FAKE_RESULT,
    FAKE_DELTA,
    FAKE_NAK,
    FAKE_PONG,
    FAKE_DRAIN,
    FAKE_OFFER,
    FAKE_INPUT,
    FAKE_KINDS,
};

/* A frame, as far as tests look at it. Owned by the fake. */
struct fake_frame {
    enum fake_kind kind;
    unsigned stream;
    char id[80];      /* of the call, or of the ping; Hello: the incarnation */
    unsigned attempt; /* Hello: its number */
    char *text;       /* chunk, delta, requests; Hello: "id:attempt:route " of all that run */
    size_t len;
    bool more;       /* Input: withdrawn */
    char name[80];   /* error code, stream of a delta; Hello: the toolset */
    char words[512]; /* of an error; Hello, Offer: "tool(schema) " of all tools */
    unsigned number; /* of an Input; reason of a Nak; Hello: credits; Result: server-data */
    char data[256]; /* Result: "kind/audience/data " of server-data; Hello: description and so on */
};

struct fake_stream {
    struct grpc_call *call; /* NULL: ended */
    bool is_half_closed;
    bool is_greeted;
};

struct fake {
    struct net_loops *loops;
    struct grpc_server *server;
    char address[NET_ADDRESS_TEXT];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_stream streams[FAKE_STREAMS];
    unsigned n_streams;
    struct fake_frame frames[FAKE_FRAMES];
    unsigned n_frames;
    char authorization[8192]; /* of the last stream */
    /* what it does by itself */
    atomic_bool is_mute;       /* no Welcome */
    atomic_bool keeps_acks;    /* no Ack */
    bool keeps_drained;        /* does not answer ProviderDrain */
    atomic_bool keeps_offered; /* does not answer Offer */
    atomic_bool refuses_offers;
    atomic_bool is_old;              /* it does not know Input */
    _Atomic(enum grpc_code) refuses; /* Hello is answered with that, and its words */
    char refusal[128];
    atomic_llong lease_ms; /* that Welcome tells; 0: 10,000 */
};

static void fake_note_tools(struct fake_frame *f, const Pegboard__V1__RegisterRequest *registration)
{
    size_t at = 0;

    for (size_t i = 0; i < registration->n_tools && at < sizeof(f->words) - 100; i++) {
        const Pegboard__V1__Tool *tool = registration->tools[i];

        at += (size_t)snprintf(f->words + at, sizeof(f->words) - at, "%s(%.*s)%s%d ", tool->name,
                               (int)(tool->input_schema.len < 60 ? tool->input_schema.len : 60),
                               (const char *)tool->input_schema.data, tool->idempotent ? "i" : "",
                               (int)tool->timeout_ms);
    }
}

static void fake_note_hello(struct fake_frame *f, const Pegboard__V1__Hello *hello)
{
    char *text = calloc(1, 1 + hello->n_running * 128);
    size_t at = 0;

    snprintf(f->id, sizeof(f->id), "%s", hello->incarnation);
    snprintf(f->name, sizeof(f->name), "%s", hello->toolset);
    f->number = hello->credits;
    f->attempt = hello->number;
    for (size_t i = 0; i < hello->n_running; i++)
        at +=
            (size_t)snprintf(text + at, 128, "%.40s:%u:%.*s:%.20s ", hello->running[i]->call_id,
                             hello->running[i]->attempt, (int)hello->running[i]->route.len,
                             (const char *)hello->running[i]->route.data, hello->running[i]->tool);
    f->text = text;
    f->len = at;
    if (!hello->registration)
        return;
    snprintf(f->data, sizeof(f->data), "%.60s|%.20s|%s|%.40s", hello->registration->description,
             hello->registration->version,
             hello->registration->n_tags ? hello->registration->tags[0] : "",
             hello->registration->name);
    fake_note_tools(f, hello->registration);
}

static void fake_note_result(struct fake_frame *f, const Pegboard__V1__Result *result)
{
    size_t at = 0;

    snprintf(f->id, sizeof(f->id), "%s", result->call_id);
    f->attempt = result->attempt;
    f->text = malloc(result->chunk.len + 1);
    if (result->chunk.len)
        memcpy(f->text, result->chunk.data, result->chunk.len);
    f->text[result->chunk.len] = '\0';
    f->len = result->chunk.len;
    f->more = result->more;
    f->number = (unsigned)result->n_server_data;
    if (result->error) {
        snprintf(f->name, sizeof(f->name), "%s", result->error->code);
        snprintf(f->words, sizeof(f->words), "%s", result->error->message);
    }
    for (size_t i = 0; i < result->n_server_data && at < 200; i++)
        at += (size_t)snprintf(f->data + at, sizeof(f->data) - at, "%s/%s/%.*s ",
                               result->server_data[i]->kind, result->server_data[i]->audience,
                               (int)result->server_data[i]->data.len,
                               (const char *)result->server_data[i]->data.data);
}

/* True if it is one that tests know. */
static bool fake_note(struct fake_frame *f, const Pegboard__V1__AttachRequest *request)
{
    switch (request->frame_case) {
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO:
        f->kind = FAKE_HELLO;
        fake_note_hello(f, request->hello);
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_RESULT:
        f->kind = FAKE_RESULT;
        fake_note_result(f, request->result);
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_DELTA:
        f->kind = FAKE_DELTA;
        snprintf(f->id, sizeof(f->id), "%s", request->delta->call_id);
        snprintf(f->name, sizeof(f->name), "%s", request->delta->stream);
        f->attempt = request->delta->attempt;
        f->text = strdup(request->delta->delta);
        f->len = strlen(f->text);
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_INPUT:
        f->kind = FAKE_INPUT;
        snprintf(f->id, sizeof(f->id), "%s", request->input->call_id);
        f->attempt = request->input->attempt;
        f->number = request->input->number;
        f->more = request->input->withdrawn;
        f->len = request->input->requests.len;
        f->text = strndup(f->len ? (const char *)request->input->requests.data : "", f->len);
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_NAK:
        f->kind = FAKE_NAK;
        snprintf(f->id, sizeof(f->id), "%s", request->nak->call_id);
        f->attempt = request->nak->attempt;
        f->number = (unsigned)request->nak->reason;
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_PONG:
        f->kind = FAKE_PONG;
        snprintf(f->id, sizeof(f->id), "%s", request->pong->ping_id);
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_DRAIN:
        f->kind = FAKE_DRAIN;
        return true;
    case PEGBOARD__V1__ATTACH_REQUEST__FRAME_OFFER:
        f->kind = FAKE_OFFER;
        fake_note_tools(f, request->offer->registration);
        snprintf(f->data, sizeof(f->data), "%.60s|%.20s|%s",
                 request->offer->registration->description, request->offer->registration->version,
                 request->offer->registration->n_tags ? request->offer->registration->tags[0] : "");
        return true;
    default:
        return false;
    }
}

/* ---- the server's side, on its loop ---------------------------------------------------------- */

static void fake_send_welcome(struct fake *g, struct grpc_call *call)
{
    Pegboard__V1__Welcome welcome = PEGBOARD__V1__WELCOME__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    welcome.ping_interval_ms = 10000;
    welcome.takes_input = !atomic_load(&g->is_old);
    welcome.lease_ms = atomic_load(&g->lease_ms) ? atomic_load(&g->lease_ms) : 10000;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME;
    response.welcome = &welcome;
    pegboard_v1_registry_attach_send(call, &response, NULL);
}

static void fake_send_ack(struct grpc_call *call, const char *id, unsigned attempt)
{
    Pegboard__V1__Ack ack = PEGBOARD__V1__ACK__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    ack.call_id = peg__unconst(id);
    ack.attempt = attempt;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK;
    response.ack = &ack;
    pegboard_v1_registry_attach_send(call, &response, NULL);
}

static void fake_send_drained(struct grpc_call *call)
{
    Pegboard__V1__Drained drained = PEGBOARD__V1__DRAINED__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAINED;
    response.drained = &drained;
    pegboard_v1_registry_attach_send(call, &response, NULL);
}

static void fake_send_offered(struct grpc_call *call, bool is_refused)
{
    Pegboard__V1__Offered offered = PEGBOARD__V1__OFFERED__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    offered.revision = !is_refused;
    if (is_refused) {
        offered.error = peg__unconst("validation_error");
        offered.message = peg__unconst("not such a tool");
    }
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED;
    response.offered = &offered;
    pegboard_v1_registry_attach_send(call, &response, NULL);
}

static void fake_answer(struct fake *g, struct fake_stream *stream, const struct fake_frame *f)
{
    if (f->kind == FAKE_HELLO && g->refuses) {
        grpc_call_fail(stream->call, g->refuses, "%s", g->refusal);
        return;
    }
    if (f->kind == FAKE_HELLO && !g->is_mute) {
        pthread_mutex_lock(&g->lock);
        stream->is_greeted = true;
        pthread_mutex_unlock(&g->lock);
        fake_send_welcome(g, stream->call);
    }
    if (f->kind == FAKE_RESULT && !f->more && !g->keeps_acks)
        fake_send_ack(stream->call, f->id, f->attempt);
    if (f->kind == FAKE_DRAIN && !g->keeps_drained)
        fake_send_drained(stream->call);
    if (f->kind == FAKE_OFFER && !g->keeps_offered)
        fake_send_offered(stream->call, g->refuses_offers);
}

static void fake_on_start(struct grpc_call *call, void *user)
{
    struct fake *g = ((struct pegboard_v1_registry_handlers *)user)->user;
    const peg_str token = grpc_metadata_get(grpc_call_metadata(call), "authorization");

    pthread_mutex_lock(&g->lock);
    snprintf(g->authorization, sizeof(g->authorization), "%.*s", (int)token.len,
             token.ptr ? token.ptr : "");
    if (g->n_streams < FAKE_STREAMS) {
        g->streams[g->n_streams].call = call;
        grpc_call_set_state(call, &g->streams[g->n_streams++]);
    }
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void fake_on_message(struct grpc_call *call, const Pegboard__V1__AttachRequest *request,
                            void *user)
{
    struct fake *g = user;
    struct fake_stream *stream = grpc_call_state(call);
    struct fake_frame frame = {.stream = 0};

    if (!stream || !fake_note(&frame, request))
        return;
    frame.stream = (unsigned)(stream - g->streams);
    fake_answer(g, stream, &frame);
    pthread_mutex_lock(&g->lock);
    if (g->n_frames < FAKE_FRAMES)
        g->frames[g->n_frames++] = frame;
    else
        free(frame.text);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void fake_on_half_close(struct grpc_call *call, void *user)
{
    struct fake *g = user;
    struct fake_stream *stream = grpc_call_state(call);

    pthread_mutex_lock(&g->lock);
    if (stream)
        stream->is_half_closed = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
}

static void fake_on_end(struct grpc_call *call, void *user)
{
    struct fake *g = user;
    struct fake_stream *stream = grpc_call_state(call);

    pthread_mutex_lock(&g->lock);
    if (stream)
        stream->call = NULL;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* ---- requests of direct providers ---------------------------------------------------------- */

static void fake_keep(struct fake *g, struct grpc_call *call, const struct fake_frame *frame)
{
    const peg_str token = grpc_metadata_get(grpc_call_metadata(call), "authorization");

    pthread_mutex_lock(&g->lock);
    snprintf(g->authorization, sizeof(g->authorization), "%.*s", (int)token.len,
             token.ptr ? token.ptr : "");
    if (g->n_frames < FAKE_FRAMES)
        g->frames[g->n_frames++] = *frame;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* True: it is answered with what `refuses` says. */
static bool fake_refuses(struct fake *g, struct grpc_call *call)
{
    const enum grpc_code code = atomic_load(&g->refuses);

    if (code != GRPC_OK)
        grpc_call_finish(call,
                         &(struct grpc_status){.code = code, .message = peg__str(g->refusal)});
    return code != GRPC_OK;
}

/* `number` is the kind. */
static void fake_on_register(struct grpc_call *call, const Pegboard__V1__RegisterRequest *request,
                             void *user)
{
    Pegboard__V1__RegisterResponse response = PEGBOARD__V1__REGISTER_RESPONSE__INIT;
    struct fake_frame frame = {.kind = FAKE_OFFER, .number = (unsigned)request->kind};

    snprintf(frame.id, sizeof(frame.id), "%.79s", request->name);
    snprintf(frame.data, sizeof(frame.data), "%.60s|%.20s|%s|%.40s", request->description,
             request->version, request->n_tags ? request->tags[0] : "", request->name);
    fake_note_tools(&frame, request);
    fake_keep((struct fake *)user, call, &frame);
    if (!fake_refuses((struct fake *)user, call))
        pegboard_v1_registry_register_reply(call, &response);
}

static void fake_on_pong(struct grpc_call *call, const Pegboard__V1__PongRequest *request,
                         void *user)
{
    Pegboard__V1__PongResponse response = PEGBOARD__V1__PONG_RESPONSE__INIT;
    struct fake_frame frame = {.kind = FAKE_PONG};

    snprintf(frame.id, sizeof(frame.id), "%.79s", request->ping_id);
    snprintf(frame.name, sizeof(frame.name), "%.79s", request->toolset);
    fake_keep((struct fake *)user, call, &frame);
    pegboard_v1_registry_pong_reply(call, &response);
}

static void fake_on_emit(struct grpc_call *call, const Pegboard__V1__EmitToolResultRequest *request,
                         void *user)
{
    Pegboard__V1__EmitToolResultResponse response = PEGBOARD__V1__EMIT_TOOL_RESULT_RESPONSE__INIT;
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    struct fake_frame frame = {.kind = FAKE_RESULT};

    result.call_id = request->call_id;
    result.chunk = request->result;
    result.error = request->error;
    result.server_data = request->server_data;
    result.n_server_data = request->n_server_data;
    fake_note_result(&frame, &result);
    fake_keep((struct fake *)user, call, &frame);
    if (!fake_refuses((struct fake *)user, call))
        pegboard_v1_registry_emit_tool_result_reply(call, &response);
}

/* ---- its life -------------------------------------------------------------------------------- */

static struct pegboard_v1_registry_handlers fake_handlers;

static void fake_on_start_here(struct grpc_call *call, void *user)
{
    struct pegboard_v1_registry_handlers handlers = {.user = user};

    fake_on_start(call, &handlers);
}

/* Starts to listen; on a free port, or at an address that it had before. */
static void fake_listen(struct fake *g, const char *address)
{
    static struct pegboard_v1_registry_handlers handlers[8];
    static unsigned next;
    struct pegboard_v1_registry_handlers *mine = &handlers[next++ % 8];
    struct net_address at;
    peg_error error = {.message = ""};
    peg_status status;

    *mine = (struct pegboard_v1_registry_handlers){.user = g,
                                                   .attach_on_start = fake_on_start_here,
                                                   .attach_on_message = fake_on_message,
                                                   .attach_on_half_close = fake_on_half_close,
                                                   .attach_on_end = fake_on_end,
                                                   .register_ = fake_on_register,
                                                   .pong = fake_on_pong,
                                                   .emit_tool_result = fake_on_emit};
    (void)fake_handlers;
    status = net_loops_new(1, &g->loops, &error);
    if (!status)
        status = grpc_server_new(g->loops, NULL, &g->server, &error);
    if (!status)
        status = pegboard_v1_registry_add(g->server, mine, &error);
    if (!status)
        status = grpc_server_listen(g->server, peg__str(address), NULL, &at, &error);
    if (status)
        T_FAIL("no gateway: %s", error.message);
    net_address_format(&at, g->address);
}

static struct fake *fake_new(void)
{
    struct fake *g = calloc(1, sizeof(*g));

    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    fake_listen(g, "127.0.0.1:0");
    return g;
}

/* Like a process that is killed: every connection breaks. */
static void fake_kill(struct fake *g)
{
    g->server = grpc_server_free(g->server);
    g->loops = net_loops_free(g->loops);
}

static void fake_free(struct fake *g)
{
    fake_kill(g);
    for (unsigned i = 0; i < g->n_frames; i++)
        free(g->frames[i].text);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- what the test says ---------------------------------------------------------------------- */

struct fake_order {
    struct net_message message;
    struct fake *fake;
    unsigned stream;
    const Pegboard__V1__AttachResponse *response;
    const struct grpc_status *status; /* if not NULL: ends the stream */
    bool pauses;                      /* reads no more of it */
    bool resumes;
    bool is_done;
};

static inline void fake_obey(struct net_message *message)
{
    struct fake_order *order = (struct fake_order *)message;
    struct grpc_call *call = order->fake->streams[order->stream].call;

    if (call && order->status)
        grpc_call_finish(call, order->status);
    else if (call && order->pauses)
        grpc_call_pause(call);
    else if (call && order->resumes)
        grpc_call_resume(call);
    else if (call)
        pegboard_v1_registry_attach_send(call, order->response, NULL);
    pthread_mutex_lock(&order->fake->lock);
    order->is_done = true;
    pthread_cond_broadcast(&order->fake->changed);
    pthread_mutex_unlock(&order->fake->lock);
}

static inline void fake_do(struct fake *g, struct fake_order *order)
{
    order->message.fn = fake_obey;
    order->fake = g;
    net_loop_post(net_loops_at(g->loops, 0), &order->message);
    pthread_mutex_lock(&g->lock);
    while (!order->is_done)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static inline void fake_send(struct fake *g, unsigned stream,
                             const Pegboard__V1__AttachResponse *response)
{
    fake_do(g, &(struct fake_order){.stream = stream, .response = response});
}

static inline void fake_end(struct fake *g, unsigned stream, enum grpc_code code)
{
    const struct grpc_status status = {.code = code, .message = PEG_LIT("because")};

    fake_do(g, &(struct fake_order){.stream = stream, .status = &status});
}

/* Reads nothing of the stream until fake_resume(): what the provider sends waits at the provider,
 * but for a window of the stream. */
static inline void fake_pause(struct fake *g, unsigned stream)
{
    fake_do(g, &(struct fake_order){.stream = stream, .pauses = true});
}

static inline void fake_resume(struct fake *g, unsigned stream)
{
    fake_do(g, &(struct fake_order){.stream = stream, .resumes = true});
}

static inline void fake_call_with(struct fake *g, unsigned stream, Pegboard__V1__Call *call,
                                  const char *payload)
{
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    call->payload.data = peg__unconst(payload);
    call->payload.len = strlen(payload);
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL;
    response.call = call;
    fake_send(g, stream, &response);
}

static inline void fake_call(struct fake *g, unsigned stream, const char *id, const char *tool,
                             const char *payload)
{
    Pegboard__V1__Call call = PEGBOARD__V1__CALL__INIT;
    static char route[] = "r";

    call.call_id = peg__unconst(id);
    call.attempt = 1;
    call.tool = peg__unconst(tool);
    call.timeout_ms = 30000;
    call.route.data = (uint8_t *)route;
    call.route.len = 1;
    fake_call_with(g, stream, &call, payload);
}

static inline void fake_cancel(struct fake *g, unsigned stream, const char *id)
{
    Pegboard__V1__Cancel cancel = PEGBOARD__V1__CANCEL__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    static char reason[] = "canceled";

    cancel.call_id = peg__unconst(id);
    cancel.attempt = 1;
    cancel.reason = reason;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CANCEL;
    response.cancel = &cancel;
    fake_send(g, stream, &response);
}

/* `responses` "": a refusal. */
static inline void fake_reply(struct fake *g, unsigned stream, const char *id, unsigned number,
                              const char *responses)
{
    Pegboard__V1__Answer answer = PEGBOARD__V1__ANSWER__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    static char refusal[] = "nobody is here";

    answer.call_id = peg__unconst(id);
    answer.attempt = 1;
    answer.number = number;
    answer.responses.data = peg__unconst(responses);
    answer.responses.len = strlen(responses);
    if (!responses[0])
        answer.refusal = refusal;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ANSWER;
    response.answer = &answer;
    fake_send(g, stream, &response);
}

static inline void fake_ack(struct fake *g, unsigned stream, const char *id)
{
    Pegboard__V1__Ack ack = PEGBOARD__V1__ACK__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    ack.call_id = peg__unconst(id);
    ack.attempt = 1;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_ACK;
    response.ack = &ack;
    fake_send(g, stream, &response);
}

static inline void fake_ping(struct fake *g, unsigned stream, const char *id)
{
    Pegboard__V1__Ping ping = PEGBOARD__V1__PING__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    ping.ping_id = peg__unconst(id);
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_PING;
    response.ping = &ping;
    fake_send(g, stream, &response);
}

static inline void fake_drain(struct fake *g, unsigned stream)
{
    Pegboard__V1__GatewayDrain drain = PEGBOARD__V1__GATEWAY_DRAIN__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAIN;
    response.drain = &drain;
    fake_send(g, stream, &response);
}

static inline void fake_drained(struct fake *g, unsigned stream)
{
    Pegboard__V1__Drained drained = PEGBOARD__V1__DRAINED__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_DRAINED;
    response.drained = &drained;
    fake_send(g, stream, &response);
}

/* ---- what the test waits for -------------------------------------------------------------------
 */

static inline void fake_guard(struct fake *g, const char *what)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAKE_WAIT_S;
    if (pthread_cond_timedwait(&g->changed, &g->lock, &until) == 0)
        return;
    printf("# the provider does not send: %s\n", what);
    fflush(stdout);
    abort();
}

static inline const struct fake_frame *fake_find(const struct fake *g, enum fake_kind kind,
                                                 const char *id, unsigned nth)
{
    for (unsigned i = 0; i < g->n_frames; i++) {
        const struct fake_frame *f = &g->frames[i];

        if (f->kind == kind && (!id || strcmp(f->id, id) == 0) && nth-- == 0)
            return f;
    }
    return NULL;
}

/* The nth frame (from 0) of a kind, of this id unless it is NULL. */
static inline const struct fake_frame *fake_await(struct fake *g, enum fake_kind kind,
                                                  const char *id, unsigned nth)
{
    static const char *const names[FAKE_KINDS] = {"Hello", "Result", "Delta", "Nak",
                                                  "Pong",  "Drain",  "Offer", "Input"};
    const struct fake_frame *found;

    pthread_mutex_lock(&g->lock);
    while (!(found = fake_find(g, kind, id, nth)))
        fake_guard(g, names[kind]);
    pthread_mutex_unlock(&g->lock);
    return found;
}

static inline unsigned fake_count(struct fake *g, enum fake_kind kind, const char *id)
{
    unsigned n = 0;

    pthread_mutex_lock(&g->lock);
    while (fake_find(g, kind, id, n))
        n++;
    pthread_mutex_unlock(&g->lock);
    return n;
}

/* A stream on which the provider was welcomed. */
static inline void fake_await_stream(struct fake *g, unsigned stream)
{
    pthread_mutex_lock(&g->lock);
    while (g->n_streams <= stream || !g->streams[stream].is_greeted)
        fake_guard(g, "Hello on a new stream");
    pthread_mutex_unlock(&g->lock);
}

static inline void fake_await_half_close(struct fake *g, unsigned stream)
{
    pthread_mutex_lock(&g->lock);
    while (!g->streams[stream].is_half_closed)
        fake_guard(g, "the end of its side");
    pthread_mutex_unlock(&g->lock);
}

#endif
