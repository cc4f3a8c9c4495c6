/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a byte that says which side we are, whether a greeting goes before the rest, and how long
 * the pieces are; then what a peer sends. Streams answer, echo, pause, refuse or drop themselves as
 * their path asks. In one piece or in many it gives the same events and ends in the same way; every
 * stream ends once, no more of them are open than may be, what they hold stays below its limit,
 * what is to be sent is whole frames, and all memory comes back.
 */

#include "base/arena.h"
#include "fuzz.h"
#include "grpc/http2/http2.h"

enum {
    MAX_STREAMS = 8,
    MAX_SLOTS = 512, /* streams in all; more are refused */
    MAX_HELD = 64 << 10,
    MAX_MESSAGE = 16 << 10,
    MAX_HEADERS = 4 << 10,
    MAX_LOG = 1 << 24,
    N_CALLS = 3, /* of a client */
    IS_CLIENT = 1,
    IS_GREETED = 2,
};

enum manner { ECHOES, PAUSES, DROPS, RESETS, ENDS_AT_ONCE, N_MANNERS };

struct slot {
    struct grpc_stream stream; /* first */
    struct peg__arena arena;
    struct peer *peer;
    enum manner manner;
    bool is_used;
    bool is_closed;
    bool is_dropped;
};

struct peer {
    struct grpc_session *session;
    struct peg__buf log;
    struct slot slots[MAX_SLOTS];
    unsigned n_slots;
    bool is_client;
    bool pulls; /* after each piece */
    uint8_t out[64 << 10];
    uint8_t head[9]; /* of the frame that is being pulled */
    size_t n_head;
    size_t left; /* of its payload */
    bool said_preface;
};

static struct peer peer;

/* ---- streams ------------------------------------------------------------------------------------
 */

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        PEG_LIT(name), PEG_LIT(value)                                                              \
    }

static const struct grpc_field request_fields[] = {
    FIELD(":method", "POST"),
    FIELD(":scheme", "http"),
    FIELD(":path", "/a.B/C"),
    FIELD("te", "trailers"),
    FIELD("content-type", "application/grpc"),
};
static const struct grpc_block request = {.fields = request_fields, .n = 5};
static const struct grpc_field answer_fields[] = {
    FIELD(":status", "200"),
    FIELD("content-type", "application/grpc"),
};
static const struct grpc_block answer = {.fields = answer_fields, .n = 2};
static const struct grpc_field trailer_fields[] = {FIELD("grpc-status", "0")};
static const struct grpc_block trailers = {.fields = trailer_fields, .n = 1};
static const struct grpc_block only = {.fields = answer_fields, .n = 1};

static struct slot *slot_of(struct grpc_stream *stream)
{
    struct slot *slot = (struct slot *)stream;

    REQUIRE(slot->is_used && !slot->is_closed && !slot->is_dropped, "an event after the end");
    return slot;
}

static void note(const struct slot *slot, const char *what, size_t n)
{
    peg__buf_printf(&slot->peer->log, "%u %s %zu\n", (unsigned)(slot - slot->peer->slots), what, n);
}

static void drop(struct slot *slot)
{
    slot->is_dropped = true;
    grpc_stream_drop(&slot->stream, 8);
}

static void on_headers(struct grpc_stream *stream)
{
    struct slot *slot = slot_of(stream);
    const peg_str path = stream->head.path;

    note(slot, "headers", stream->head.metadata.n);
    if (slot->peer->is_client)
        return;
    slot->manner = path.len ? (enum manner)((uint8_t)path.ptr[path.len - 1] % N_MANNERS) : ECHOES;
    if (slot->manner == RESETS)
        grpc_stream_reset(stream, 2);
    else if (slot->manner == ENDS_AT_ONCE)
        (void)grpc_stream_respond(stream, &only, true, NULL);
    else
        REQUIRE(grpc_stream_respond(stream, &answer, false, NULL) == PEG_OK, "an answer");
}

static void on_message(struct grpc_stream *stream, peg_str message)
{
    struct slot *slot = slot_of(stream);

    REQUIRE(!stream->is_paused, "a message while paused");
    REQUIRE(message.len <= MAX_MESSAGE, "%zu bytes", message.len);
    note(slot, "message", message.len);
    peg__buf_str(&slot->peer->log, message);
    if (slot->manner == DROPS) {
        drop(slot);
        return;
    }
    (void)grpc_stream_send(stream, message, NULL);
    if (slot->manner == PAUSES)
        grpc_stream_pause(stream);
}

static void on_remote_end(struct grpc_stream *stream)
{
    struct slot *slot = slot_of(stream);

    note(slot, "end", 0);
    (void)grpc_stream_end(stream, slot->peer->is_client ? NULL : &trailers, NULL);
}

static void on_writable(struct grpc_stream *stream)
{
    (void)slot_of(stream);
}

static void on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    struct slot *slot = slot_of(stream);

    note(slot, grpc_code_name(status->code), 0);
    REQUIRE(status->code != GRPC_OK && status->message.len > 0, "a broken stream says why");
    if (slot->peer->is_client || stream->has_sent_headers)
        grpc_stream_reset(stream, 8);
    else
        (void)grpc_stream_respond(stream, &only, true, NULL);
}

static void on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    struct slot *slot = slot_of(stream);

    note(slot, "closed", h2_error);
    slot->is_closed = true;
}

static const struct grpc_stream_events stream_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_remote_end = on_remote_end,
    .on_writable = on_writable,
    .on_broken = on_broken,
    .on_closed = on_closed,
};

static struct grpc_stream *ready(struct peer *p)
{
    struct slot *slot = &p->slots[p->n_slots++];

    *slot = (struct slot){.peer = p, .is_used = true};
    grpc_stream_init(&slot->stream, &stream_events, &slot->arena, MAX_MESSAGE, MAX_HEADERS);
    return &slot->stream;
}

/* ---- the session --------------------------------------------------------------------------------
 */

static struct grpc_stream *on_stream(void *user)
{
    struct peer *p = user;

    REQUIRE(!p->is_client, "a client is called");
    return p->n_slots < MAX_SLOTS ? ready(p) : NULL;
}

static void on_output(void *user)
{
    (void)user;
}

static void on_ping(void *user)
{
    peg__buf_puts(&((struct peer *)user)->log, "ping\n");
}

static void on_pong(void *user)
{
    peg__buf_puts(&((struct peer *)user)->log, "pong\n");
}

static void on_goaway(void *user, int32_t last_id, uint32_t h2_error)
{
    peg__buf_printf(&((struct peer *)user)->log, "goaway %d %u\n", last_id, h2_error);
}

static const struct grpc_session_events session_events = {
    .on_stream = on_stream,
    .on_output = on_output,
    .on_ping = on_ping,
    .on_pong = on_pong,
    .on_goaway = on_goaway,
};

static void start(struct peer *p)
{
    const struct grpc_session_options options = {
        .is_client = p->is_client,
        .max_streams = MAX_STREAMS,
        .max_header_bytes = MAX_HEADERS,
        .stream_window = 65535,
        .session_window = 1 << 20,
        .max_held = MAX_HELD,
        .reset_burst = 100000,
        .reset_per_s = 100000,
    };

    REQUIRE(grpc_session_new(&options, &session_events, p, &p->session, NULL) == PEG_OK, "memory");
    for (unsigned i = 0; p->is_client && i < N_CALLS; i++) {
        struct grpc_stream *stream = ready(p);

        p->slots[i].manner = (enum manner)i;
        REQUIRE(grpc_stream_open(stream, p->session, &request, NULL) == PEG_OK, "a call");
        REQUIRE(grpc_stream_send(stream, peg__str("hello"), NULL) == PEG_OK, "a message");
    }
}

/* What goes out is whole frames that a peer takes. */
static void check_out(struct peer *p, const uint8_t *bytes, size_t n)
{
    if (p->is_client && !p->said_preface) {
        REQUIRE(n >= 24 && memcmp(bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) == 0,
                "the preface");
        p->said_preface = true;
        bytes += 24;
        n -= 24;
    }
    while (n > 0) {
        size_t step = p->left < n ? p->left : n;

        if (p->left == 0) {
            p->head[p->n_head++] = *bytes;
            step = 1;
        } else {
            p->left -= step;
        }
        bytes += step;
        n -= step;
        if (p->n_head < sizeof(p->head))
            continue;
        p->n_head = 0;
        p->left = (size_t)p->head[0] << 16 | (size_t)p->head[1] << 8 | p->head[2];
        REQUIRE(p->left <= 16384 && p->head[3] <= 9, "a frame of type %u", p->head[3]);
    }
}

static void pull(struct peer *p)
{
    size_t n;

    while ((n = grpc_session_pull(p->session, p->out, sizeof(p->out))) > 0) {
        REQUIRE(n <= sizeof(p->out), "%zu bytes", n);
        check_out(p, p->out, n);
    }
    REQUIRE(p->left == 0 && p->n_head == 0, "a frame is cut off");
}

static peg_status feed(struct peer *p, peg_str bytes, size_t piece)
{
    peg_status status = PEG_OK;

    while (bytes.len > 0 && !status) {
        const size_t n = piece < bytes.len ? piece : bytes.len;
        /* A copy that is gone afterwards: what is kept must have been copied. */
        uint8_t *copy = malloc(n);
        peg_error error;

        REQUIRE(copy, "memory");
        memcpy(copy, bytes.ptr, n);
        status = grpc_session_feed(p->session, copy, n, &error);
        free(copy);
        if (status)
            fuzz_check_error(&error, peg__str(""));
        REQUIRE(status == PEG_OK || status == PEG_EPARSE || status == PEG_ELIMIT, "%d", status);
        REQUIRE(!grpc_session_is_feeding(p->session), "it feeds still");
        REQUIRE(grpc_session_held(p->session) <= MAX_HELD, "%zu held",
                grpc_session_held(p->session));
        REQUIRE(p->is_client || grpc_session_n_streams(p->session) <= MAX_STREAMS, "%zu streams",
                grpc_session_n_streams(p->session));
        if (p->pulls)
            pull(p);
        bytes = peg__str_from(bytes, n);
    }
    return status;
}

static void resume_all(struct peer *p)
{
    for (unsigned i = 0; i < p->n_slots; i++) {
        struct slot *slot = &p->slots[i];

        while (!slot->is_closed && !slot->is_dropped && slot->stream.is_paused)
            grpc_stream_resume(&slot->stream);
    }
}

static void stop(struct peer *p)
{
    p->session = grpc_session_free(p->session);
    for (unsigned i = 0; i < p->n_slots; i++) {
        REQUIRE(p->slots[i].is_closed || p->slots[i].is_dropped ||
                    (p->slots[i].stream.session == NULL && p->slots[i].stream.id == 0),
                "stream %u did not end", i);
        grpc_stream_free(&p->slots[i].stream);
        peg__arena_free(&p->slots[i].arena);
    }
}

/* Feeds it all, and writes down what happened. */
static void run(peg_str bytes, bool is_client, size_t piece, bool pulls, struct peg__buf *ret_log)
{
    const size_t live = peg__mem_live();
    peg_status status;

    peer = (struct peer){.is_client = is_client, .pulls = pulls, .log = PEG__BUF(MAX_LOG)};
    start(&peer);
    if (pulls)
        pull(&peer);
    status = feed(&peer, bytes, piece);
    peg__buf_printf(&peer.log, "status %d\n", status);
    resume_all(&peer);
    pull(&peer);
    stop(&peer);
    *ret_log = peer.log;
    REQUIRE(peg__mem_live() == live + (peer.log.ptr ? 1 : 0), "memory is left");
}

/* ---- input ------------------------------------------------------------------------------------
 */

static peg_str greet(const uint8_t *data, size_t size, bool is_client, struct peg__buf *buf)
{
    static const char settings[] = "\0\0\0\4\0\0\0\0\0" /* SETTINGS */
                                   "\0\0\0\4\1\0\0\0";  /* and an ACK, with the last 0 */

    if (!is_client)
        peg__buf_puts(buf, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    peg__buf_add(buf, settings, sizeof(settings));
    peg__buf_add(buf, data, size);
    return peg__buf_view(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned choice = size ? data[0] : 0;
    const bool is_client = choice & IS_CLIENT;
    struct peg__buf greeted = PEG__BUF(MAX_LOG);
    struct peg__buf whole;
    struct peg__buf pieces;
    struct peg__buf pulled;
    peg_str bytes = size ? fuzz_input(data + 1, size - 1) : peg__str("");

    if (choice & IS_GREETED)
        bytes = greet(data + 1, size - 1, is_client, &greeted);
    run(bytes, is_client, bytes.len + 1, false, &whole);
    run(bytes, is_client, choice / 4 + 1, false, &pieces);
    REQUIRE(peg__str_eq(peg__buf_view(&whole), peg__buf_view(&pieces)),
            "pieces of %u make a difference:\n%.*s\n---\n%.*s", choice / 4 + 1,
            PEG_ARG(peg__buf_view(&whole)), PEG_ARG(peg__buf_view(&pieces)));
    run(bytes, is_client, choice / 4 + 1, true, &pulled);
    peg__buf_free(&whole);
    peg__buf_free(&pieces);
    peg__buf_free(&pulled);
    peg__buf_free(&greeted);
    return 0;
}
