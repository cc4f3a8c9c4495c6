/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_HTTP2_H
#define PEG_GRPC_HTTP2_HTTP2_H

#include "base/blob.h"
#include "grpc/message.h"
#include "grpc/status.h"

/* ---- head ---------------------------------------------------------------------------------- */

/* A block of headers as gRPC reads it: the protocol's own fields, and the program's metadata. */

/* Arena: strings lie in the arena that the head was given. {NULL, 0}: it did not come. Method,
 * path, authority, content type, encoding and user agent end with NUL, and need not be UTF-8. */
struct grpc_head {
    struct peg__arena *arena;
    size_t max_bytes; /* of the whole block as HTTP/2 counts */
    size_t n_bytes;
    /* pseudo-headers */
    peg_str method;
    peg_str path;
    peg_str authority;
    int http_status; /* 0: none */
    /* fields of the protocol */
    peg_str content_type;
    bool has_te_trailers;
    int64_t timeout_ns; /* -1: none */
    bool has_bad_timeout;
    enum grpc_encoding encoding;
    peg_str encoding_name; /* as it came */
    bool accepts_gzip;
    peg_str user_agent;
    /* the end of a call */
    bool has_status;
    enum grpc_code code;
    peg_str message; /* decoded */
    peg_str details;
    /* the program's */
    struct grpc_metadata metadata;
};

void grpc_head_init(struct grpc_head *head, struct peg__arena *arena, size_t max_bytes);
/* Copies what it keeps. Of fields of the protocol that come twice the first counts, but for grpc-
 * accept-encoding and te, which add up. Metadata is what grpc_metadata_is_ours() accepts; other
 * fields are counted and left out. PEG_ELIMIT (E_METADATA): the block is too large.
 * PEG_EPARSE (E_METADATA): bad base 64. PEG_ENOMEM. A failure changes nothing. */
peg_status grpc_head_add(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr);
/* "application/grpc" in any case of its letters, alone or followed by '+' or ';'. */
bool grpc_head_is_grpc(const struct grpc_head *head);

/* ---- session ------------------------------------------------------------------------------- */

/*
 * One HTTP/2 connection that carries gRPC, either side: bytes in, events and bytes out, no I/O. A
 * stream's memory is bounded by its window and max_message, that of all streams by max_held.
 *
 *   net/stream  --bytes-->  grpc_session_feed()  --events-->  grpc_call, grpc_rpc
 *   net/stream  <--bytes--  grpc_session_pull()  <----------  grpc_stream_send() ...
 *
 * A session must not be freed while it feeds: see grpc_session_is_feeding().
 */

struct grpc_session;
struct grpc_stream;
struct grpc__queue;

struct grpc_session_options {
    bool is_client;
    uint32_t max_streams;    /* that the peer may have open at once */
    size_t max_header_bytes; /* of one block, as HTTP/2 counts */
    uint32_t stream_window;  /* bytes that may be on their way to us for one stream */
    uint32_t session_window; /* and for all */
    size_t max_held;         /* bytes of messages that have begun or wait, all streams */
    uint32_t reset_burst;    /* streams that the peer may reset at once ... */
    uint32_t reset_per_s;    /* ... and per second, before it is sent away */
};

struct grpc_session_events {
    /* Server: the peer opens a stream. Returns a grpc_stream that is ready, or NULL
     * (REFUSED_STREAM). */
    struct grpc_stream *(*on_stream)(void *user);
    /* There is something to pull that was not there before. */
    void (*on_output)(void *user);
    /* A PING came that is no answer; an answer to ours came. */
    void (*on_ping)(void *user);
    void (*on_pong)(void *user);
    /* Client: the peer takes no stream above `last_id`. */
    void (*on_goaway)(void *user, int32_t last_id, uint32_t h2_error);
    /* The peer's SETTINGS came (the first, or new ones). */
    void (*on_settings)(void *user);
};

peg_status grpc_session_new(const struct grpc_session_options *options,
                            const struct grpc_session_events *events, void *user,
                            struct grpc_session **ret_session, peg_error *reterr);
/* Every stream that is open hears on_closed. Not while it feeds. */
struct grpc_session *grpc_session_free(struct grpc_session *session);

/* Takes all bytes. A failure ends the connection; the reason for the peer can be pulled. PEG_EPARSE
 * (E_HTTP2), PEG_ELIMIT (E_HTTP2_LIMIT: a flood), PEG_ENOMEM. */
peg_status grpc_session_feed(struct grpc_session *session, const uint8_t *bytes, size_t len,
                             peg_error *reterr);
bool grpc_session_is_feeding(const struct grpc_session *session);
/* Writes at most `max` (at least 1 KiB) bytes for the peer; 0: there are none now. */
size_t grpc_session_pull(struct grpc_session *session, uint8_t *ret_bytes, size_t max);
/* May there be more to pull? */
bool grpc_session_has_output(const struct grpc_session *session);
/* Has the peer been told, by GOAWAY, what it did wrong? */
bool grpc_session_has_sent_error(const struct grpc_session *session);
/* Neither side has anything more to say: the connection can be closed. */
bool grpc_session_is_over(const struct grpc_session *session);

/* Asks the peer to open no more streams; those that are open go on. A server does so twice, first
 * without a number (`is_final` false), so that streams on their way are still taken. */
void grpc_session_goaway(struct grpc_session *session, bool is_final, uint32_t h2_error,
                         const char *why);
void grpc_session_ping(struct grpc_session *session);
/* Have headers, bytes of messages or trailers gone out since this was last asked? */
bool grpc_session_has_new_output(struct grpc_session *session);
size_t grpc_session_n_streams(const struct grpc_session *session);
/* Client: how many streams the peer lets us have open. */
uint32_t grpc_session_peer_max_streams(const struct grpc_session *session);
/* Bytes of a block of headers that the peer takes, as HTTP/2 counts; UINT32_MAX: it did not say. */
uint32_t grpc_session_peer_max_header_bytes(const struct grpc_session *session);
/* Bytes of messages that it holds. */
size_t grpc_session_held(const struct grpc_session *session);
/* All memory beyond that of a connection at rest: streams, queued output, tables, headers. */
size_t grpc_session_memory(const struct grpc_session *session);

/* ---- one call on the wire, either side ---------------------------------------------------- */

struct grpc_stream_events {
    /* The first block of headers is whole: stream->head. */
    void (*on_headers)(struct grpc_stream *stream);
    /* A message, borrowed until it returns. Not called while the stream is paused. */
    void (*on_message)(struct grpc_stream *stream, peg_str message);
    /* All that the peer sends was delivered. Client: stream->head now holds the trailers, or the
     * only block of headers. */
    void (*on_remote_end)(struct grpc_stream *stream);
    /* What was to be sent has gone below GRPC_LOW_MARK after it was above GRPC_HIGH_MARK. */
    void (*on_writable)(struct grpc_stream *stream);
    /* The input is no gRPC, or too much: the owner answers (server), or ends it (client). No more
     * input is delivered. */
    void (*on_broken)(struct grpc_stream *stream, const struct grpc_status *status);
    /* Exactly once, last: the stream is off the wire. h2_error 0: in good order. */
    void (*on_closed)(struct grpc_stream *stream, uint32_t h2_error);
};

/* Bytes that wait to be sent: above the first, grpc_stream_is_writable() is false. */
enum { GRPC_HIGH_MARK = 64 << 10, GRPC_LOW_MARK = 16 << 10 };

/* A block of headers to be sent. Names are lowercase. */
struct grpc_field {
    peg_str name;
    peg_str value;
};
struct grpc_block {
    const struct grpc_field *fields;
    size_t n;
    bool is_static; /* it is for ever the same: nothing is copied, how it is sent is remembered */
    bool is_kept;   /* fields and strings live as long as the stream: nothing is copied */
};

/* Part of a grpc_call or grpc_rpc. grpc_stream_drop() is right in any state. */
struct grpc_stream {
    const struct grpc_stream_events *events;
    struct grpc_session *session; /* NULL: not on the wire, not yet or not any more */
    int32_t id;
    struct peg__arena *arena; /* the owner's; for the heads */
    /* in */
    bool has_head;      /* the first block is whole */
    unsigned n_interim; /* blocks before it that are no answer yet: 1xx */
    bool is_paused;
    bool is_broken;
    bool reported_broken;
    bool is_delivering;
    bool remote_ended;
    bool reported_remote_end;
    struct grpc_status broken; /* why; arena */
    size_t kept;               /* bytes that the owner keeps of messages it was handed */
    size_t held;               /* its part of grpc_session_held() */
    size_t memory;             /* its part of grpc_session_memory() */
    size_t max_waiting;        /* bytes that may wait while it is paused; 0: its window */
    uint32_t n_steps;          /* messages that came, and pieces that were sent: its progress */
    /* out */
    bool uses_gzip;  /* compress what is sent */
    bool skips_gzip; /* but not what is sent now */
    bool has_sent_headers;
    bool has_left; /* headers were pulled as a whole: before that the peer knows of nothing */
    bool was_full;
    bool awaits_window; /* on_writable is due once nothing waits and the peer takes more */
    bool local_ended;   /* nothing may be sent any more, once `out` is gone */
    bool awaits_end;    /* server: the peer may send its rest after our end */
    size_t out_sent;    /* bytes of `out` that are gone */
    size_t max_out;
    const struct grpc_block *trailers; /* to be sent after `out`; arena; NULL on a client */
    struct grpc_stream *next;          /* the session's list of open streams */
    struct grpc_stream *prev;
    /* HTTP/2's own */
    struct grpc_block headers; /* to be sent first */
    bool has_begun;            /* they were written, for the peer or into what is left */
    bool has_sent_end;         /* END_STREAM */
    bool has_final;            /* client: headers came that are no 1xx */
    bool must_reset;           /* nothing is sent any more but RST_STREAM ... */
    uint32_t reset_code;       /* ... with this */
    bool owes_window;          /* WINDOW_UPDATE is to be sent */
    uint32_t n_unreturned;     /* bytes that came, less those that the peer may send again */
    uint32_t n_free;           /* of them, those that it may and has not been told */
    int64_t window_beyond;     /* what the peer takes more of it than it said for all; or less */
    int64_t content_length;    /* -1: none */
    int64_t n_body;            /* bytes of DATA so far */
    struct grpc__queue *queue; /* the one that it stands in; NULL: it has nothing to send */
    struct grpc_stream *queue_next;
    struct grpc_stream *queue_prev;
    struct grpc_stream *bucket_next; /* those that are found at the same place by their number */
    /* What is readied apart, or kept for the next call: grpc_stream_init(). */
    struct grpc_head head;
    struct grpc_reader reader;
    struct peg__buf waiting;  /* came while paused; the peer's window is smaller by so much */
    struct peg__buf out;      /* framed messages */
    struct peg__blob *shared; /* holds the end of the last message, which follows `out` */
    peg_str shared_rest;      /* of it, what is not gone */
};

/* Readies one; everything that a call held before is given back or used again. */
void grpc_stream_init(struct grpc_stream *stream, const struct grpc_stream_events *events,
                      struct peg__arena *arena, size_t max_message, size_t max_header_bytes);
void grpc_stream_free(struct grpc_stream *stream);
/* Memory of its buffers, on the wire or not. */
size_t grpc_stream_buffers(const struct grpc_stream *stream);

/* Client: opens it on the session. PEG_ELIMIT: no more ids on this connection. */
peg_status grpc_stream_open(struct grpc_stream *stream, struct grpc_session *session,
                            const struct grpc_block *headers, peg_error *reterr);
/* Server: answers. `is_last`: the block is all there is (trailers only). */
peg_status grpc_stream_respond(struct grpc_stream *stream, const struct grpc_block *headers,
                               bool is_last, peg_error *reterr);
/* Queues a message. PEG_ELIMIT (E_SEND_QUEUE_FULL) beyond max_out, or max_held of the session, but
 * not on an empty queue; PEG_ESTATE after the end. A failure queues nothing. */
peg_status grpc_stream_send(struct grpc_stream *stream, peg_str message, peg_error *reterr);
/* Queues bytes as they are, not as a message. */
peg_status grpc_stream_send_plain(struct grpc_stream *stream, peg_str bytes, peg_error *reterr);
/* A message in two steps, to pack in place: space for `len` bytes, then the end, with nothing in
 * between. Not with gzip. NULL: see *reterr. */
uint8_t *grpc_stream_reserve(struct grpc_stream *stream, size_t len, peg_error *reterr);
void grpc_stream_commit(struct grpc_stream *stream, size_t len);
/* Queues the last message: `head`, and `rest`, which lies in the blob and is not copied. Not with
 * gzip. On a plain stream (reader.is_plain) they are bytes as they are. */
peg_status grpc_stream_send_shared(struct grpc_stream *stream, peg_str head, struct peg__blob *blob,
                                   peg_str rest, peg_error *reterr);
/* Nothing follows but the trailers (server; they live as long as the stream), or nothing (NULL). */
peg_status grpc_stream_end(struct grpc_stream *stream, const struct grpc_block *trailers,
                           peg_error *reterr);
bool grpc_stream_is_writable(const struct grpc_stream *stream);
/* Is nothing queued, and does the peer take more now? If not, on_writable comes when that is so.
 * For answers that are not made for a closed window. */
bool grpc_stream_await_window(struct grpc_stream *stream);
/* Something waits for the peer: its window is closed, or its message is not whole. */
bool grpc_stream_is_waiting(const struct grpc_stream *stream);

/* Within on_message: the owner keeps so many bytes until the stream is off the wire. They count as
 * held, as those of unfinished messages do. */
void grpc_stream_keep(struct grpc_stream *stream, size_t n);

/* Delivers no message until it is resumed. The peer may send a window more. */
void grpc_stream_pause(struct grpc_stream *stream);
void grpc_stream_resume(struct grpc_stream *stream);

/* Takes it off the wire, with RST_STREAM if it is open. No event comes any more. Right in any
 * state. */
void grpc_stream_drop(struct grpc_stream *stream, uint32_t h2_error);
/* The same, and on_closed follows when the peer has been told. What was queued is not sent. */
void grpc_stream_reset(struct grpc_stream *stream, uint32_t h2_error);

#endif
