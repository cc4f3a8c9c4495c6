/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SESSION_INTERNAL_H
#define PEG_GRPC_SESSION_INTERNAL_H

/* What session.c (the connection), session_input.c (what nghttp2 tells us) and stream.c (one
 * call on the wire) share. */

#include <nghttp2/nghttp2.h>
#include <sys/types.h>

#include "grpc/session.h"
#include "grpc/session_memory.h"

/* Around an event of a stream that may take it off the wire; on the stack of who calls it. */
struct grpc__guard {
    const struct grpc_stream *stream; /* NULL as soon as it is off the wire: do not touch it */
    struct grpc__guard *outer;
};

struct grpc_session {
    nghttp2_session *h2;
    struct grpc__memory memory; /* of h2 */
    const struct grpc_session_events *events;
    void *user;
    struct grpc_session_options options;
    struct grpc_stream *streams; /* open ones */
    size_t n_streams;
    size_t held;
    size_t queued;   /* bytes that wait to be sent, of all streams */
    unsigned n_busy; /* feeds, pulls and deliveries that are running */
    struct grpc__guard *guards;
    struct grpc_stream *found; /* the last one that was looked up, while it is on the wire */
    unsigned n_idle_frames;    /* in a row, that bring nobody further */
    size_t n_idle_bytes;       /* fed meanwhile; nghttp2 does not tell of frames it does not know */
    unsigned n_invalid_frames;
    uint64_t n_settings; /* of the peer's SETTINGS */
    uint64_t n_moved;    /* bytes of messages, both ways */
    size_t block_bytes;  /* of the fields of the block that is coming */
    bool is_flooded;
    bool has_said_more; /* see grpc_session_has_said_more() */
    bool has_goaway;    /* ours, the final one */
    bool has_complained;
    /* What nghttp2 handed out and had no room. */
    const uint8_t *left;
    size_t left_len;
    /* The room, while somebody pulls. */
    uint8_t *out;
    size_t out_len;
    size_t out_max;
};

/* It ran out of memory: nobody calls into h2 any more, and the connection ends. */
static inline bool grpc__session_is_lost(const struct grpc_session *session)
{
    return session->memory.has_failed;
}

/* The stream of an id; NULL if its owner has dropped it. What comes and goes is mostly about one
 * stream after the other. */
static inline struct grpc_stream *grpc__session_find(struct grpc_session *session, int32_t id)
{
    if (session->found && session->found->id == id)
        return session->found;
    session->found = nghttp2_session_get_stream_user_data(session->h2, id);
    return session->found;
}

/* Tells the owner that there is something to send. */
void grpc__session_output(struct grpc_session *session);

/* session_input.c */
void grpc__session_set_callbacks(nghttp2_session_callbacks *callbacks);

/* stream.c: what came for it, what is sent of it. */
void grpc__stream_attach(struct grpc_stream *stream, struct grpc_session *session, int32_t id);
void grpc__stream_head_done(struct grpc_stream *stream, bool is_end);
void grpc__stream_data(struct grpc_stream *stream, peg_str bytes);
void grpc__stream_remote_end(struct grpc_stream *stream);
void grpc__stream_broke(struct grpc_stream *stream, enum grpc_code code, const peg_error *error);
/* Off the wire: out of the session's list, and on_closed. */
void grpc__stream_closed(struct grpc_stream *stream, uint32_t h2_error);
ssize_t grpc__stream_read(struct grpc_stream *stream, size_t max, uint32_t *flags);
void grpc__stream_took(struct grpc_stream *stream, size_t n);

#endif
