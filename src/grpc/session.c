/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One HTTP/2 connection. nghttp2 knows the protocol; here are its settings, what goes in and
 * what comes out. Next: session_input.c, which hears what came, and stream.c.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "grpc/session_internal.h"

enum {
    /* Ours: what a program may add as headers, trailers and details, all in one block and in base
     * 64, and the protocol's own beside it. */
    MAX_SENT_HEADER_BYTES = 5 * PEG_LIMIT_GRPC_METADATA_BYTES,
    /* Until the peer has said how many streams it takes. */
    PEER_STREAMS_AT_FIRST = 100,
    MAX_SETTINGS = 32,
};

/* ---- setting up -------------------------------------------------------------------------------
 */

static nghttp2_option *new_options(const struct grpc_session_options *options)
{
    nghttp2_option *h2;

    if (nghttp2_option_new(&h2))
        return NULL;
    /* A slow reader of one stream must not stop the others, nor make us hold what it does not
     * take: windows are opened again by stream.c. */
    nghttp2_option_set_no_auto_window_update(h2, 1);
    nghttp2_option_set_no_closed_streams(h2, 1);
    nghttp2_option_set_peer_max_concurrent_streams(h2, PEER_STREAMS_AT_FIRST);
    nghttp2_option_set_max_send_header_block_length(h2, MAX_SENT_HEADER_BYTES);
    nghttp2_option_set_max_settings(h2, MAX_SETTINGS);
    nghttp2_option_set_stream_reset_rate_limit(h2, options->reset_burst, options->reset_per_s);
    return h2;
}

static int new_h2(struct grpc_session *session, nghttp2_session_callbacks *callbacks,
                  nghttp2_option *options)
{
    nghttp2_mem mem = grpc__memory_for_h2(&session->memory);

    return session->options.is_client
               ? nghttp2_session_client_new3(&session->h2, callbacks, session, options, &mem)
               : nghttp2_session_server_new3(&session->h2, callbacks, session, options, &mem);
}

static int greet(struct grpc_session *session)
{
    const struct grpc_session_options *options = &session->options;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)options->max_header_bytes},
        /* Nobody sends priorities; without them there is no tree to keep. */
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        options->is_client ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0}
                           : (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                                      options->max_streams},
    };
    int failed = nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE, settings,
                                         sizeof(settings) / sizeof(settings[0]));

    return failed ? failed
                  : nghttp2_session_set_local_window_size(session->h2, NGHTTP2_FLAG_NONE, 0,
                                                          (int32_t)options->session_window);
}

static int set_up(struct grpc_session *session)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *options = new_options(&session->options);
    int failed = NGHTTP2_ERR_NOMEM;

    if (options && !nghttp2_session_callbacks_new(&callbacks)) {
        grpc__session_set_callbacks(callbacks);
        failed = new_h2(session, callbacks, options);
        if (failed)
            session->h2 = NULL; /* nghttp2 leaves what it has freed */
    }
    if (callbacks)
        nghttp2_session_callbacks_del(callbacks);
    if (options)
        nghttp2_option_del(options);
    return failed ? failed : greet(session);
}

peg_status grpc_session_new(const struct grpc_session_options *options,
                            const struct grpc_session_events *events, void *user,
                            struct grpc_session **ret_session, peg_error *reterr)
{
    struct grpc_session *session = peg__alloc_zero(1, sizeof(*session));

    if (!session)
        return peg__fail_nomem(reterr);
    session->options = *options;
    session->events = events;
    session->user = user;
    session->memory.pool = options->pool;
    if (set_up(session)) {
        grpc_session_free(session);
        return peg__fail_nomem(reterr);
    }
    *ret_session = session;
    return PEG_OK;
}

struct grpc_session *grpc_session_free(struct grpc_session *session)
{
    if (!session)
        return NULL;
    session->n_busy++; /* what the streams do now does not come back to the owner */
    while (session->streams)
        grpc__stream_closed(session->streams, NGHTTP2_CANCEL);
    nghttp2_session_del(session->h2);
    grpc__memory_free(&session->memory);
    peg__free(session);
    return NULL;
}

/* ---- in -----------------------------------------------------------------------------------------
 */

static peg_status fail_feed(const struct grpc_session *session, ssize_t h2_error, peg_error *reterr)
{
    if (h2_error == NGHTTP2_ERR_FLOODED || session->is_flooded)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_HTTP2_LIMIT",
            "the peer sends frames that bring nobody further, wrong ones, or headers "
            "that are far too large, more than a connection may "
            "(PEG_LIMIT_GRPC_IDLE_FRAMES, PEG_LIMIT_GRPC_IDLE_BYTES, PEG_LIMIT_GRPC_SETTINGS, "
            "PEG_LIMIT_GRPC_INVALID_FRAMES, PEG_LIMIT_GRPC_HEADER_BYTES)");
    return peg__fail(reterr, PEG_EPARSE, "E_HTTP2", "this is no HTTP/2: %s",
                     nghttp2_strerror((int)h2_error));
}

peg_status grpc_session_feed(struct grpc_session *session, const uint8_t *bytes, size_t len,
                             peg_error *reterr)
{
    ssize_t n;

    if (grpc__session_is_lost(session))
        return peg__fail_nomem(reterr);
    session->n_idle_bytes += len;
    session->n_busy++;
    n = nghttp2_session_mem_recv(session->h2, bytes, len);
    session->n_busy--;
    if (grpc__session_is_lost(session))
        return peg__fail_nomem(reterr);
    session->is_flooded |= session->n_idle_bytes > PEG_LIMIT_GRPC_IDLE_BYTES;
    if (n >= 0 && !session->is_flooded)
        return PEG_OK;
    nghttp2_session_terminate_session(session->h2, session->is_flooded || n == NGHTTP2_ERR_FLOODED
                                                       ? NGHTTP2_ENHANCE_YOUR_CALM
                                                       : NGHTTP2_PROTOCOL_ERROR);
    return fail_feed(session, n, reterr);
}

bool grpc_session_is_feeding(const struct grpc_session *session)
{
    return session->n_busy > 0;
}

/* ---- out ----------------------------------------------------------------------------------------
 */

void grpc__session_output(struct grpc_session *session)
{
    /* Whoever feeds looks for output afterwards, as it must. */
    if (session->n_busy == 0)
        session->events->on_output(session->user);
}

/* False if there is no room for all of it. */
static bool copy_left(struct grpc_session *session)
{
    const size_t room = session->out_max - session->out_len;
    const size_t n = session->left_len < room ? session->left_len : room;

    if (session->left_len == 0)
        return true;
    memcpy(session->out + session->out_len, session->left, n);
    session->out_len += n;
    session->left += n;
    session->left_len -= n;
    return session->left_len == 0;
}

size_t grpc_session_pull(struct grpc_session *session, uint8_t *ret_bytes, size_t max)
{
    session->out = ret_bytes;
    session->out_len = 0;
    session->out_max = max;
    session->n_busy++;
    while (!grpc__session_is_lost(session) && copy_left(session)) {
        const ssize_t n = nghttp2_session_mem_send(session->h2, &session->left);

        /* Out of memory is the only failure, and then it is lost. */
        if (n <= 0)
            break;
        session->left_len = (size_t)n;
    }
    session->n_busy--;
    session->out = NULL;
    return session->out_len;
}

bool grpc_session_has_complained(const struct grpc_session *session)
{
    return session->has_complained;
}

bool grpc_session_has_output(const struct grpc_session *session)
{
    return !grpc__session_is_lost(session) &&
           (session->left_len > 0 || nghttp2_session_want_write(session->h2));
}

bool grpc_session_is_over(const struct grpc_session *session)
{
    if (grpc__session_is_lost(session))
        return true;
    return session->left_len == 0 && !nghttp2_session_want_read(session->h2) &&
           !nghttp2_session_want_write(session->h2);
}

void grpc_session_goaway(struct grpc_session *session, bool is_final, uint32_t h2_error,
                         const char *why)
{
    if (session->has_goaway || grpc__session_is_lost(session))
        return;
    if (is_final) {
        session->has_goaway = true;
        nghttp2_submit_goaway(session->h2, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session->h2), h2_error,
                              (const uint8_t *)why, strlen(why));
    } else if (!session->options.is_client) {
        nghttp2_submit_shutdown_notice(session->h2);
    }
    grpc__session_output(session);
}

void grpc_session_ping(struct grpc_session *session)
{
    if (grpc__session_is_lost(session))
        return;
    nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE, NULL);
    grpc__session_output(session);
}

/* ---- looking ------------------------------------------------------------------------------------
 */

size_t grpc_session_n_streams(const struct grpc_session *session)
{
    return session->n_streams;
}

uint32_t grpc_session_peer_max_streams(const struct grpc_session *session)
{
    return nghttp2_session_get_remote_settings(session->h2,
                                               NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool grpc_session_has_said_more(struct grpc_session *session)
{
    const bool has_said_more = session->has_said_more;

    session->has_said_more = false;
    return has_said_more;
}

size_t grpc_session_held(const struct grpc_session *session)
{
    return session->held;
}
