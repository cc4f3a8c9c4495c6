/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Our sessions with nghttp2 at the other end, in memory: calls of chance that echo what they are
 * sent, windows, tables and pieces of any size, some calls reset. Both must agree on everything,
 * and every call must end.
 */

#include "t.h"

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/http2.h"

/* ---- chance -------------------------------------------------------------------------------------
 */

static uint64_t seed;

static unsigned chance(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % n;
}

/* ---- calls: the same for both sides -------------------------------------------------------------
 */

enum {
    N_CALLS = 60,
    MAX_BODY = 1 << 20,
    MAX_WIRE = 64 << 10,
    MAX_OPEN = 10,
    CANCEL = 8,
};

struct call {
    struct grpc_stream stream; /* first; ours, whichever side */
    struct peg__arena arena;
    int32_t id;            /* nghttp2's */
    struct peg__buf body;  /* messages with their prefixes, as the client sends them */
    size_t n_sent;         /* of it, by nghttp2 */
    struct peg__buf back;  /* what came back */
    struct peg__buf heard; /* at nghttp2's server */
    char value[200];       /* of a field that is the call's own */
    bool is_open;
    bool is_reset;  /* on purpose */
    bool has_ended; /* in good order, at the client */
    bool is_closed;
    unsigned n_trailers;
};

struct world {
    struct grpc_session *ours;
    nghttp2_session *theirs;
    bool we_serve;
    struct call calls[N_CALLS];
    struct call at_server[N_CALLS];
    unsigned n_at_server;
    unsigned n_begun;
    unsigned n_ended;
    struct peg__buf to_us; /* bytes on their way */
    struct peg__buf to_them;
    size_t taken_by_us;
    size_t taken_by_them;
};

static struct world w;

/* Up to a dozen messages, most of them small. */
static void make_body(struct peg__buf *body)
{
    const unsigned n = chance(5) ? 1 : chance(12);

    for (unsigned i = 0; i < n; i++) {
        const size_t len = chance(6) ? chance(600) : chance(80000);
        uint8_t prefix[GRPC_PREFIX_BYTES];

        grpc_prefix_write(prefix, false, (uint32_t)len);
        peg__buf_add(body, prefix, sizeof(prefix));
        for (size_t at = 0; at < len; at++)
            peg__buf_putc(body, (char)(at * 7 + i));
    }
}

static void make_call(struct call *call, unsigned number)
{
    const size_t len = chance(4) ? 5 : 100 + chance(90);

    call->body.max = call->back.max = call->heard.max = MAX_BODY;
    make_body(&call->body);
    for (size_t i = 0; i < len; i++)
        call->value[i] = (char)('a' + (chance(3) ? i % 26 : number % 26));
    call->value[len] = '\0';
}

static void ended(struct call *call)
{
    CHECK(!call->has_ended);
    call->has_ended = true;
}

static void closed(struct call *call)
{
    CHECK(!call->is_closed);
    call->is_closed = true;
    call->is_open = false;
    w.n_ended++;
}

/* ---- our side -----------------------------------------------------------------------------------
 */

#define FIELD(a_name, a_value)                                                                     \
    {                                                                                              \
        PEG_LIT(a_name), PEG_LIT(a_value)                                                          \
    }

static const struct grpc_field answer_fields[] = {FIELD(":status", "200"),
                                                  FIELD("content-type", "application/grpc")};
static const struct grpc_block answer = {.fields = answer_fields, .n = 2, .is_static = true};

static struct call *call_of(struct grpc_stream *stream)
{
    return (struct call *)(void *)stream;
}

static void on_headers(struct grpc_stream *stream)
{
    if (!w.we_serve)
        return;
    if (chance(20) == 0)
        grpc_stream_reset(stream, CANCEL);
    else
        CHECK_INT(grpc_stream_respond(stream, &answer, false, NULL), PEG_OK);
}

static void note_message(struct peg__buf *to, peg_str message)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];

    grpc_prefix_write(prefix, false, (uint32_t)message.len);
    peg__buf_add(to, prefix, sizeof(prefix));
    peg__buf_str(to, message);
}

static void on_message(struct grpc_stream *stream, peg_str message)
{
    if (w.we_serve)
        CHECK_INT(grpc_stream_send(stream, message, NULL), PEG_OK);
    else
        note_message(&call_of(stream)->back, message);
    if (chance(10) == 0)
        grpc_stream_pause(stream);
}

static void on_remote_end(struct grpc_stream *stream)
{
    if (w.we_serve) {
        struct grpc_field *fields = peg__arena_alloc(stream->arena, 2 * sizeof(*fields));
        struct grpc_block *trailers = peg__arena_alloc(stream->arena, sizeof(*trailers));

        fields[0] = (struct grpc_field)FIELD("grpc-status", "0");
        fields[1] = (struct grpc_field){PEG_LIT("x-own"),
                                        grpc_metadata_get(&stream->head.metadata, "x-own")};
        *trailers = (struct grpc_block){.fields = fields, .n = 2};
        CHECK_INT(grpc_stream_end(stream, trailers, NULL), PEG_OK);
        return;
    }
    CHECK_INT(stream->head.code, GRPC_OK);
    CHECK_STR(grpc_metadata_get(&stream->head.metadata, "x-own"), call_of(stream)->value);
    ended(call_of(stream));
}

static void on_writable(struct grpc_stream *stream)
{
    (void)stream;
}

static void on_broken(struct grpc_stream *stream, const struct grpc_status *status)
{
    (void)stream;
    T_FAIL("broken: %.*s", PEG_ARG(status->message));
}

/* An answer that is whole while its reader pauses is read from what waits. */
static void read_rest(struct call *call)
{
    peg_str bytes = peg__buf_view(&call->stream.waiting);
    bool has_message = true;
    peg_str message;

    while (has_message) {
        CHECK_INT(grpc_reader_next(&call->stream.reader, &bytes, &has_message, &message, NULL),
                  PEG_OK);
        if (has_message)
            note_message(&call->back, message);
    }
    on_remote_end(&call->stream);
}

static void on_closed(struct grpc_stream *stream, uint32_t h2_error)
{
    struct call *call = call_of(stream);

    call->is_closed = true;
    if (w.we_serve)
        return;
    CHECK(h2_error == 0 || call->is_reset);
    if (stream->is_paused && stream->remote_ended)
        read_rest(call);
    call->is_closed = false;
    closed(call);
}

static const struct grpc_stream_events stream_events = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_remote_end = on_remote_end,
    .on_writable = on_writable,
    .on_broken = on_broken,
    .on_closed = on_closed,
};

static struct grpc_stream *on_stream(void *user)
{
    struct call *call = &w.at_server[w.n_at_server++];

    (void)user;
    CHECK(w.n_at_server <= N_CALLS);
    grpc_stream_init(&call->stream, &stream_events, &call->arena, MAX_BODY, 16 << 10);
    return &call->stream;
}

static void ignore(void *user)
{
    (void)user;
}

static const struct grpc_session_events session_events = {
    .on_stream = on_stream, .on_output = ignore, .on_ping = ignore, .on_pong = ignore};

static void open_ours(struct call *call)
{
    const struct grpc_field fields[] = {
        FIELD(":method", "POST"),
        FIELD(":scheme", "http"),
        FIELD(":path", "/a.B/C"),
        FIELD(":authority", "test"),
        FIELD("te", "trailers"),
        FIELD("content-type", "application/grpc"),
        {PEG_LIT("x-own"), peg__str(call->value)},
    };
    const struct grpc_block block = {.fields = fields, .n = 7};

    grpc_stream_init(&call->stream, &stream_events, &call->arena, MAX_BODY, 16 << 10);
    CHECK_INT(grpc_stream_open(&call->stream, w.ours, &block, NULL), PEG_OK);
    for (size_t at = 0; at < call->body.len;) {
        const uint8_t *prefix = (const uint8_t *)call->body.ptr + at;
        const size_t len =
            (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 | prefix[4];

        CHECK_INT(grpc_stream_send(&call->stream,
                                   peg__strn(call->body.ptr + at + GRPC_PREFIX_BYTES, len), NULL),
                  PEG_OK);
        at += GRPC_PREFIX_BYTES + len;
    }
    CHECK_INT(grpc_stream_end(&call->stream, NULL, NULL), PEG_OK);
}

/* ---- nghttp2's side -----------------------------------------------------------------------------
 */

#define NV(a_name, a_value, a_len)                                                                 \
    {                                                                                              \
        peg__unconst(a_name), peg__unconst(a_value), sizeof(a_name) - 1, (a_len), 0                \
    }

static ssize_t read_body(nghttp2_session *theirs, int32_t id, uint8_t *to, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct call *call = source->ptr;
    const struct peg__buf *from = w.we_serve ? &call->body : &call->heard;
    const size_t left = from->len - call->n_sent;
    const size_t n = left < max ? left : max;

    (void)user;
    if (n > 0)
        memcpy(to, from->ptr + call->n_sent, n);
    call->n_sent += n;
    if (call->n_sent < from->len)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!w.we_serve) {
        const nghttp2_nv trailers[] = {NV("grpc-status", "0", 1),
                                       NV("x-own", call->value, strlen(call->value))};

        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        CHECK_INT(nghttp2_submit_trailer(theirs, id, trailers, 2), 0);
    }
    return (ssize_t)n;
}

static void open_theirs(struct call *call)
{
    const nghttp2_nv fields[] = {
        NV(":method", "POST", 4),
        NV(":scheme", "http", 4),
        NV(":path", "/a.B/C", 6),
        NV(":authority", "test", 4),
        NV("te", "trailers", 8),
        NV("content-type", "application/grpc", 16),
        NV("x-own", call->value, strlen(call->value)),
    };
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_body};

    call->id = nghttp2_submit_request(w.theirs, NULL, fields, 7, &provider, call);
    CHECK(call->id > 0);
}

static int their_begin(nghttp2_session *theirs, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if (!w.we_serve && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        struct call *call = &w.at_server[w.n_at_server++];

        call->heard.max = MAX_BODY;
        nghttp2_session_set_stream_user_data(theirs, frame->hd.stream_id, call);
    }
    return 0;
}

static int their_header(nghttp2_session *theirs, const nghttp2_frame *frame, const uint8_t *name,
                        size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                        void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(theirs, frame->hd.stream_id);
    const peg_str own = peg__strn((const char *)value, value_len);

    (void)flags;
    (void)user;
    if (!call || !peg__str_is(peg__strn((const char *)name, name_len), "x-own"))
        return 0;
    if (w.we_serve) {
        CHECK_STR(own, call->value);
        call->n_trailers++;
    } else {
        snprintf(call->value, sizeof(call->value), "%.*s", PEG_ARG(own));
    }
    return 0;
}

static int their_data(nghttp2_session *theirs, uint8_t flags, int32_t id, const uint8_t *bytes,
                      size_t len, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(theirs, id);

    (void)flags;
    (void)user;
    if (call)
        peg__buf_add(w.we_serve ? &call->back : &call->heard, bytes, len);
    return 0;
}

static void answer_theirs(nghttp2_session *theirs, int32_t id, struct call *call)
{
    const nghttp2_nv fields[] = {NV(":status", "200", 3),
                                 NV("content-type", "application/grpc", 16)};
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_body};

    CHECK_INT(nghttp2_submit_response(theirs, id, fields, 2, &provider), 0);
}

static int their_frame(nghttp2_session *theirs, const nghttp2_frame *frame, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(theirs, frame->hd.stream_id);
    const bool carries = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;

    (void)user;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        T_FAIL("GOAWAY: %u %.*s", frame->goaway.error_code, (int)frame->goaway.opaque_data_len,
               (const char *)frame->goaway.opaque_data);
    if (!call || !carries || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    if (w.we_serve)
        ended(call);
    else
        answer_theirs(theirs, frame->hd.stream_id, call);
    return 0;
}

static int their_close(nghttp2_session *theirs, int32_t id, uint32_t h2_error, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(theirs, id);

    (void)user;
    if (!call || !w.we_serve)
        return 0;
    call->is_reset |= h2_error == CANCEL;
    CHECK(h2_error == 0 || call->is_reset);
    closed(call);
    return 0;
}

static int their_invalid(nghttp2_session *theirs, const nghttp2_frame *frame, int error, void *user)
{
    (void)theirs;
    (void)user;
    T_FAIL("a frame of type %d is invalid: %s", frame->hd.type, nghttp2_strerror(error));
    return 0;
}

/* ---- both ---------------------------------------------------------------------------------------
 */

static void start_ours(void)
{
    static const uint32_t windows[] = {100, 65535, 256 << 10};
    const struct grpc_session_options options = {
        .is_client = !w.we_serve,
        .max_streams = MAX_OPEN,
        .max_header_bytes = 16 << 10,
        .stream_window = windows[chance(3)],
        .session_window = chance(2) ? 1 << 20 : 5000,
        .max_held = 64 << 20,
        .reset_burst = 1000,
        .reset_per_s = 1000,
    };

    CHECK_INT(grpc_session_new(&options, &session_events, NULL, &w.ours, NULL), PEG_OK);
}

static void start_theirs(void)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, chance(2) ? 65535 : 1 + chance(100000)},
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, chance(2) ? 4096 : chance(300)},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1 + chance(MAX_OPEN)},
    };
    nghttp2_session_callbacks *callbacks;

    CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, their_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, their_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, their_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, their_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, their_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, their_invalid);
    if (w.we_serve)
        CHECK_INT(nghttp2_session_client_new(&w.theirs, callbacks, NULL), 0);
    else
        CHECK_INT(nghttp2_session_server_new(&w.theirs, callbacks, NULL), 0);
    nghttp2_session_callbacks_del(callbacks);
    CHECK_INT(nghttp2_submit_settings(w.theirs, 0, settings, 3), 0);
}

/* Some bytes out of either, and some into it. True: any moved. */
static bool carry_ours(void)
{
    static uint8_t bytes[MAX_WIRE];
    const size_t n = grpc_session_pull(w.ours, bytes, 1024 + chance(MAX_WIRE - 1024));
    const size_t left = w.to_us.len - w.taken_by_us;
    const size_t take = chance(3) && left > 100 ? 1 + chance((unsigned)left) : left;
    peg_error error;

    peg__buf_add(&w.to_them, bytes, n);
    if (take > 0)
        CHECK_STATUS(
            grpc_session_feed(w.ours, (const uint8_t *)w.to_us.ptr + w.taken_by_us, take, &error),
            PEG_OK, error);
    w.taken_by_us += take;
    return n > 0 || take > 0;
}

static bool carry_theirs(void)
{
    const uint8_t *bytes;
    const ssize_t n = nghttp2_session_mem_send(w.theirs, &bytes);
    const size_t left = w.to_them.len - w.taken_by_them;
    const size_t take = chance(3) && left > 100 ? 1 + chance((unsigned)left) : left;

    CHECK(n >= 0);
    peg__buf_add(&w.to_us, bytes, (size_t)n);
    if (take > 0)
        CHECK_INT(nghttp2_session_mem_recv(w.theirs,
                                           (const uint8_t *)w.to_them.ptr + w.taken_by_them, take),
                  take);
    w.taken_by_them += take;
    return n > 0 || take > 0;
}

static bool carry_both(void)
{
    const bool moved = carry_ours();

    return carry_theirs() || moved;
}

static void resume_some(void)
{
    for (unsigned i = 0; i < N_CALLS; i++) {
        struct call *call = w.we_serve ? &w.at_server[i] : &w.calls[i];

        if (call->stream.session && call->stream.is_paused && chance(2))
            grpc_stream_resume(&call->stream);
    }
}

static void begin_some(void)
{
    unsigned n_open = w.n_begun - w.n_ended;

    for (; w.n_begun < N_CALLS && n_open < MAX_OPEN && chance(3); n_open++) {
        struct call *call = &w.calls[w.n_begun++];

        make_call(call, w.n_begun);
        call->is_open = true;
        if (w.we_serve)
            open_theirs(call);
        else
            open_ours(call);
    }
}

static void reset_one(void)
{
    struct call *call = &w.calls[chance(N_CALLS)];

    if (!call->is_open || call->has_ended)
        return;
    call->is_reset = true;
    if (w.we_serve) {
        nghttp2_submit_rst_stream(w.theirs, 0, call->id, CANCEL);
    } else {
        grpc_stream_drop(&call->stream, CANCEL);
        closed(call);
    }
}

static void finish(void)
{
    w.ours = grpc_session_free(w.ours);
    nghttp2_session_del(w.theirs);
    for (unsigned i = 0; i < N_CALLS; i++) {
        struct call *both[] = {&w.calls[i], &w.at_server[i]};

        for (unsigned side = 0; side < 2; side++) {
            grpc_stream_free(&both[side]->stream);
            peg__arena_free(&both[side]->arena);
            peg__buf_free(&both[side]->body);
            peg__buf_free(&both[side]->back);
            peg__buf_free(&both[side]->heard);
        }
    }
    peg__buf_free(&w.to_us);
    peg__buf_free(&w.to_them);
}

static void check_calls(void)
{
    unsigned n_good = 0;

    for (unsigned i = 0; i < N_CALLS; i++) {
        const struct call *call = &w.calls[i];

        if (call->is_reset)
            continue;
        n_good++;
        CHECK(call->has_ended);
        CHECK(peg__str_eq(peg__buf_view(&call->back), peg__buf_view(&call->body)));
        CHECK(!w.we_serve || call->n_trailers == 1);
    }
    CHECK(n_good > N_CALLS / 2);
    CHECK_INT(grpc_session_n_streams(w.ours), 0);
    CHECK_INT(grpc_session_held(w.ours), 0);
}

static void talk(bool we_serve, unsigned number)
{
    unsigned n_quiet = 0;

    w = (struct world){.we_serve = we_serve};
    seed = number * 7919;
    w.to_us.max = w.to_them.max = 256 << 20;
    start_ours();
    start_theirs();
    /* Before its SETTINGS have come nobody knows how many calls a server takes. */
    while (carry_both())
        ;
    while (n_quiet < 100) {
        bool moved;

        begin_some();
        if (chance(100) == 0)
            reset_one();
        if (chance(100) == 0)
            grpc_session_ping(w.ours);
        resume_some();
        moved = carry_both();
        n_quiet = moved || w.n_begun < N_CALLS ? 0 : n_quiet + 1;
    }
    CHECK_INT(w.n_ended, N_CALLS);
    check_calls();
    finish();
}

TEST(nghttp2_calls_our_server)
{
    for (unsigned i = 1; i <= t_rounds(40); i++)
        talk(true, i);
}

TEST(we_call_a_server_of_nghttp2)
{
    for (unsigned i = 1; i <= t_rounds(40); i++)
        talk(false, i);
}
