/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_SESSION_INTERNAL_H
#define PEG_GRPC_HTTP2_SESSION_INTERNAL_H

/* What session.c (the connection), session_input.c, session_frames.c and session_headers.c (what
 * came), session_output.c (what goes) and stream.c (one call on the wire) share. */

#include "grpc/http2/frame.h"
#include "grpc/http2/hpack.h"
#include "grpc/http2/session.h"

/* Around an event of a stream that may take it off the wire; on the stack of who calls it. */
struct grpc__guard {
    const struct grpc_stream *stream; /* NULL as soon as it is off the wire: do not touch it */
    struct grpc__guard *outer;
};

/* Streams in the order in which it is their turn. */
struct grpc__queue {
    struct grpc_stream *first;
    struct grpc_stream *last;
};

enum grpc__input {
    GRPC__INPUT_PREFACE,
    GRPC__INPUT_HEAD,
    GRPC__INPUT_PAYLOAD, /* looked at when it is whole */
    GRPC__INPUT_DATA,    /* handed on as it comes */
    GRPC__INPUT_SKIPPED,
};

/* A block of headers that has begun; id 0: none has. */
struct grpc__incoming {
    int32_t id;
    bool ends_stream;
    unsigned n_frames;
    size_t n_bytes; /* of its fields, as HTTP/2 counts */
    struct grpc_block_check check;
    struct peg__buf rest; /* the beginning of a field whose end has not come */
};

enum { GRPC__BUCKETS = 16, GRPC__ENDED_IDS = 16, GRPC__SKIPPED_IDS = 8 };

/* Server: numbers of the client's streams that are not open. Frames for one that we ended first may
 * still be on their way; frames for one that the client ended, or skipped, break the rules. The
 * last of both are remembered, as rings. */
struct grpc__past_ids {
    int32_t ended[GRPC__ENDED_IDS]; /* by END_STREAM or RST_STREAM of the client */
    struct {
        int32_t first;
        int32_t last;
    } skipped[GRPC__SKIPPED_IDS];
    unsigned n_ended;
    unsigned n_skipped;
};

struct grpc_session {
    const struct grpc_session_events *events;
    void *user;
    struct grpc_session_options options;
    /* streams */
    struct grpc_stream *streams; /* open ones */
    size_t n_streams;
    struct grpc_stream **buckets; /* by number; few, or memory of its own */
    struct grpc_stream *few[GRPC__BUCKETS];
    struct grpc_stream *found; /* the last one that was looked up, while it is on the wire */
    uint32_t n_buckets;        /* a power of two */
    int32_t last_id;           /* of the peer's streams */
    int32_t last_taken_id;     /* and of those that somebody has heard of */
    struct grpc__past_ids past;
    int32_t next_id; /* of ours; -1: there are no more */
    int32_t last_sent_id;
    uint32_t n_active; /* of ours: the peer knows them */
    size_t held;
    size_t memory; /* of all streams */
    size_t queued; /* bytes that wait to be sent, of all streams */
    struct grpc__guard *guards;
    unsigned n_busy; /* feeds, pulls and deliveries that are running */
    /* in */
    enum grpc__input input;
    uint8_t head[GRPC_H2_PREFACE_BYTES]; /* what has come of it, or of the preface */
    size_t n_head;
    struct grpc_h2_head frame;
    bool has_padding;        /* whose length has not come */
    size_t left;             /* of its payload: of DATA what is no padding */
    size_t padding;          /* behind it */
    struct peg__buf payload; /* what has come of it */
    struct grpc__incoming block;
    struct grpc_hpack_decoder decoder;
    int64_t n_unsaid;      /* bytes that came, of all streams, which the peer was not told of */
    uint32_t stream_limit; /* bytes that may be on their way for one stream */
    /* what the peer said */
    uint32_t peer_max_streams;
    uint32_t peer_stream_window;
    uint32_t peer_max_header_bytes;
    bool has_wider_windows; /* since those in `shut` were last looked at */
    int64_t most_beyond;    /* no stream has more: see window_beyond */
    int32_t peer_last_id;   /* of its GOAWAY */
    int64_t window;         /* bytes that it takes, of all streams */
    bool has_settings;
    bool has_ack;       /* of our SETTINGS */
    bool was_sent_away; /* by GOAWAY */
    /* out */
    bool has_said_more; /* see grpc_session_has_new_output() */
    int32_t spill_id;
    struct peg__buf spill; /* a block of headers that had no room; nothing may come between */
    size_t spill_sent;
    struct peg__buf control; /* frames of the connection, and of streams that are gone */
    size_t control_sent;
    struct grpc_hpack_encoder encoder;
    struct grpc__queue ready;   /* streams with something that needs no window */
    struct grpc__queue unsent;  /* of ours, those that the peer does not know yet */
    struct grpc__queue sending; /* those with messages: they send while `window` is open */
    struct grpc__queue shut;    /* those that wait for a window of their own */
    uint8_t *out;               /* the room, while somebody pulls */
    size_t out_len;
    size_t out_max;
    /* floods */
    size_t n_idle_bytes; /* of frames in a row that bring nobody further */
    unsigned n_idle_frames;
    int64_t idle_ns;   /* when they were forgiven last */
    size_t n_unwanted; /* bytes of streams that began after our final GOAWAY */
    unsigned n_invalid_frames;
    int64_t invalid_ns;  /* when the first of them came */
    uint64_t n_settings; /* of the peer's SETTINGS */
    uint64_t n_moved;    /* bytes of messages, both ways */
    double reset_tokens;
    int64_t reset_ns; /* when they were counted */
    /* the end */
    const char *why; /* static */
    bool is_flooded;
    bool is_lost;    /* out of memory: nothing comes or goes any more */
    bool is_dead;    /* the peer broke the rules: what is left says why */
    bool has_goaway; /* ours, the final one */
    bool has_complained;
};

/* Bytes that the peer takes of it. */
static inline int64_t grpc__stream_window(const struct grpc_stream *stream)
{
    return stream->session->peer_stream_window + stream->window_beyond;
}

static inline size_t grpc__stream_pending(const struct grpc_stream *stream)
{
    return stream->out.len - stream->out_sent + stream->shared_rest.len;
}

/* session.c: streams */
void grpc__session_add(struct grpc_session *session, struct grpc_stream *stream);
void grpc__session_remove(struct grpc_session *session, struct grpc_stream *stream);
struct grpc_stream *grpc__session_find_stream(struct grpc_session *session, int32_t id);
/* The stream of a number; NULL if it is off the wire. What comes and goes is mostly about one
 * stream after the other. */
static inline struct grpc_stream *grpc__session_find(struct grpc_session *session, int32_t id)
{
    return session->found && session->found->id == id ? session->found
                                                      : grpc__session_find_stream(session, id);
}
/* Has nobody begun a stream of this number? */
bool grpc__session_is_idle(const struct grpc_session *session, int32_t id);
/* Server: the client begins a stream, whose number is above all before it; it ended one. */
void grpc__session_note_begun(struct grpc_session *session, int32_t id);
void grpc__session_note_ended(struct grpc_session *session, int32_t id);
/* Server: may a frame with headers or data for this number, which is not open, be late? False: the
 * client ended the stream, or never began it, and the session is dead. */
bool grpc__session_may_be_late(struct grpc_session *session, int32_t id);

/* session.c: ends */
/* The peer broke the rules. `why` is static. */
void grpc__session_die(struct grpc_session *session, uint32_t h2_error, const char *why);
/* It sends too much of something: "pings (PEG_LIMIT_...)". Static. */
void grpc__session_flooded(struct grpc_session *session, const char *of_what);
void grpc__session_lose(struct grpc_session *session);
/* What was wrong with a frame costs only its stream. */
void grpc__session_fail_stream(struct grpc_session *session, struct grpc_stream *stream,
                               uint32_t h2_error);
/* The peer that makes us reset or refuse streams gets no further than the one that resets them
 * itself. */
void grpc__session_count_invalid(struct grpc_session *session);
/* RST_STREAM for a number that has no stream here. */
void grpc__session_reset_id(struct grpc_session *session, int32_t id, uint32_t h2_error);

/* session_headers.c: a fragment of a block. `is_last`: it ends with it. */
void grpc__block_begin(struct grpc_session *session);
void grpc__block_take(struct grpc_session *session, const uint8_t *bytes, size_t len, bool is_last);

/* session_input.c */
void grpc__session_made_progress(struct grpc_session *session);

/* session_frames.c */
/* `session->frame` is whole; these are the bytes behind its head. */
void grpc__frame_came(struct grpc_session *session, const uint8_t *bytes);
/* END_STREAM came for a stream. */
void grpc__session_remote_end(struct grpc_session *session, int32_t id);

/* session_output.c */
/* Tells the owner that there is something to send. */
void grpc__session_output(struct grpc_session *session);
/* Room for a frame of the connection; NULL: there is no memory, and it is lost. */
uint8_t *grpc__session_control(struct grpc_session *session, size_t len);
/* The same for what the peer makes us say. NULL also if it does not read it: that ends it. */
uint8_t *grpc__session_answer(struct grpc_session *session, size_t len);
/* Puts a stream where it belongs by what it has to send. */
void grpc__stream_schedule(struct grpc_stream *stream);
void grpc__stream_leave_queue(struct grpc_stream *stream);

/* stream.c: what came for it. */
void grpc__stream_attach(struct grpc_stream *stream, struct grpc_session *session, int32_t id);
void grpc__stream_head_done(struct grpc_stream *stream, bool is_end);
void grpc__stream_data(struct grpc_stream *stream, peg_str bytes);
void grpc__stream_remote_end(struct grpc_stream *stream);
void grpc__stream_broke(struct grpc_stream *stream, enum grpc_code code, const peg_error *error);
/* The peer may send so many bytes more. */
void grpc__stream_open_window(struct grpc_stream *stream, size_t n);
/* Off the wire: out of the session's list, and on_closed. */
void grpc__stream_closed(struct grpc_stream *stream, uint32_t h2_error);
/* Counts what it holds now in the memory of its session. */
void grpc__stream_measure(struct grpc_stream *stream);
/* stream_send.c: bytes of `out` are gone. True: on_writable is due. */
bool grpc__stream_took(struct grpc_stream *stream, size_t n);

#endif
