/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_SESSION_H
#define PEG_GRPC_HTTP2_SESSION_H

#include "base/list.h"
#include "base/mem.h"
#include "grpc/http2/http2.h"

/* ---- frame --------------------------------------------------------------------------------- */

/* Frames of HTTP/2 (RFC 9113): their names and numbers, and the nine bytes before each. */

enum grpc_h2_type {
    GRPC_H2_DATA,
    GRPC_H2_HEADERS,
    GRPC_H2_PRIORITY,
    GRPC_H2_RST_STREAM,
    GRPC_H2_SETTINGS,
    GRPC_H2_PUSH_PROMISE,
    GRPC_H2_PING,
    GRPC_H2_GOAWAY,
    GRPC_H2_WINDOW_UPDATE,
    GRPC_H2_CONTINUATION,
};

enum {
    GRPC_H2_END_STREAM = 0x01,
    GRPC_H2_ACK = 0x01,
    GRPC_H2_END_HEADERS = 0x04,
    GRPC_H2_PADDED = 0x08,
    GRPC_H2_HAS_PRIORITY = 0x20,
};

enum grpc_h2_setting {
    GRPC_H2_HEADER_TABLE_SIZE = 1,
    GRPC_H2_ENABLE_PUSH,
    GRPC_H2_MAX_CONCURRENT_STREAMS,
    GRPC_H2_INITIAL_WINDOW_SIZE,
    GRPC_H2_MAX_FRAME_SIZE,
    GRPC_H2_MAX_HEADER_LIST_SIZE,
    GRPC_H2_NO_RFC7540_PRIORITIES = 9,
};

enum grpc_h2_error {
    GRPC_H2_NO_ERROR,
    GRPC_H2_PROTOCOL_ERROR,
    GRPC_H2_INTERNAL_ERROR,
    GRPC_H2_FLOW_CONTROL_ERROR,
    GRPC_H2_SETTINGS_TIMEOUT,
    GRPC_H2_STREAM_CLOSED,
    GRPC_H2_FRAME_SIZE_ERROR,
    GRPC_H2_REFUSED_STREAM,
    GRPC_H2_CANCEL,
    GRPC_H2_COMPRESSION_ERROR,
    GRPC_H2_CONNECT_ERROR,
    GRPC_H2_ENHANCE_YOUR_CALM,
    GRPC_H2_INADEQUATE_SECURITY,
    GRPC_H2_HTTP_1_1_REQUIRED,
};
/* "CANCEL"; "an unknown error" of numbers that have no name. Static. */
const char *grpc_h2_error_name(uint32_t h2_error);

enum {
    GRPC_H2_HEAD_BYTES = 9,
    GRPC_H2_SETTING_BYTES = 6,
    GRPC_H2_PING_BYTES = 8,
    GRPC_H2_PRIORITY_BYTES = 5,
    GRPC_H2_PREFACE_BYTES = 24,
    /* What every peer takes, and the most that we take. */
    GRPC_H2_FRAME_BYTES = 16384,
    GRPC_H2_FIRST_WINDOW = 65535,
};
#define GRPC_H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define GRPC_H2_MAX_WINDOW INT32_MAX

struct grpc_h2_head {
    uint32_t len; /* of what follows */
    uint8_t type;
    uint8_t flags;
    int32_t id;
};

static inline uint32_t grpc_h2_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Numbers of streams and steps of windows have a reserved bit. */
static inline uint32_t grpc_h2_u31(const uint8_t *bytes)
{
    return grpc_h2_u32(bytes) & INT32_MAX;
}

static inline void grpc_h2_put_u32(uint8_t *ret_bytes, uint32_t n)
{
    ret_bytes[0] = (uint8_t)(n >> 24);
    ret_bytes[1] = (uint8_t)(n >> 16);
    ret_bytes[2] = (uint8_t)(n >> 8);
    ret_bytes[3] = (uint8_t)n;
}

static inline struct grpc_h2_head grpc_h2_read_head(const uint8_t bytes[GRPC_H2_HEAD_BYTES])
{
    return (struct grpc_h2_head){
        .len = grpc_h2_u32(bytes) >> 8,
        .type = bytes[3],
        .flags = bytes[4],
        .id = (int32_t)grpc_h2_u31(bytes + 5),
    };
}

/* Returns where what follows begins. */
static inline uint8_t *grpc_h2_write_head(uint8_t *ret_bytes, const struct grpc_h2_head *head)
{
    grpc_h2_put_u32(ret_bytes, head->len << 8 | head->type);
    ret_bytes[4] = head->flags;
    grpc_h2_put_u32(ret_bytes + 5, (uint32_t)head->id);
    return ret_bytes + GRPC_H2_HEAD_BYTES;
}

/* A frame of one number: RST_STREAM, WINDOW_UPDATE. */
enum { GRPC_H2_U32_FRAME_BYTES = GRPC_H2_HEAD_BYTES + 4 };
static inline void grpc_h2_write_u32_frame(uint8_t *ret_bytes, enum grpc_h2_type type, int32_t id,
                                           uint32_t n)
{
    const struct grpc_h2_head head = {.len = 4, .type = (uint8_t)type, .id = id};

    grpc_h2_put_u32(grpc_h2_write_head(ret_bytes, &head), n);
}

static inline uint8_t *grpc_h2_write_setting(uint8_t *ret_bytes, enum grpc_h2_setting key,
                                             uint32_t value)
{
    ret_bytes[0] = 0;
    ret_bytes[1] = (uint8_t)key;
    grpc_h2_put_u32(ret_bytes + 2, value);
    return ret_bytes + GRPC_H2_SETTING_BYTES;
}

/* ---- field --------------------------------------------------------------------------------- */

/*
 * Which fields a block of headers may have (RFC 9113, 8.2 and 8.3). A field alone is checked once,
 * when its bytes are read: HPACK keeps the result beside it.
 */

enum grpc_field_kind {
    GRPC_FIELD_BAD, /* the end of the stream: letters, values, or a field of the connection */
    GRPC_FIELD_PLAIN,
    GRPC_FIELD_CONTENT_LENGTH,
    GRPC_FIELD_HOST,
    /* pseudo-fields; the order counts */
    GRPC_FIELD_AUTHORITY,
    GRPC_FIELD_METHOD,
    GRPC_FIELD_PATH,
    GRPC_FIELD_SCHEME,
    GRPC_FIELD_STATUS,
};

/* The kind of a field that is no pseudo-field is that of its value without spaces around it. */
enum grpc_field_kind grpc_field_kind_of(peg_str name, peg_str value);

static inline bool grpc_field_is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* A value without the spaces around it. A request with such spaces is malformed (RFC 9113, 8.2.1),
 * and its stream is reset. A response is stripped of them, as "PROTOCOL-HTTP2" of gRPC allows:
 * gRPC's own core, too, sends "not found: " as its grpc-message. */
static inline peg_str grpc_field_trim(peg_str value)
{
    while (value.len > 0 && grpc_field_is_space(value.ptr[value.len - 1]))
        value.len--;
    while (value.len > 0 && grpc_field_is_space(value.ptr[0])) {
        value.ptr++;
        value.len--;
    }
    return value;
}

/* What a block must be, field by field. */
enum grpc_block_kind {
    GRPC_BLOCK_REQUEST,
    GRPC_BLOCK_RESPONSE,
    GRPC_BLOCK_TRAILERS,
    GRPC_BLOCK_IGNORED, /* of a stream that is gone: read, since HPACK has a memory */
};

struct grpc_block_check {
    enum grpc_block_kind kind;
    bool is_bad;
    bool has_plain;  /* a field that is no pseudo-field */
    bool is_connect; /* :method CONNECT has no path and no scheme */
    bool is_star;    /* the path "*" */
    bool is_options;
    uint16_t seen;          /* kinds that may come once, as bits */
    int http_status;        /* 0: none */
    int64_t content_length; /* -1: none */
};

void grpc_block_check_begin(struct grpc_block_check *check, enum grpc_block_kind kind);
/* False: the block is bad, and need not be read further. */
bool grpc_block_check_add(struct grpc_block_check *check, enum grpc_field_kind kind, peg_str value);
/* Is everything there that must be? */
bool grpc_block_check_end(const struct grpc_block_check *check, bool ends_stream);

/* ---- hpack --------------------------------------------------------------------------------- */

/* HPACK (RFC 7541): blocks of header fields as the bytes of HTTP/2, both ways. Each side of a
 * connection remembers the last fields that it sent or received, and names them by number. */

/* ---- the fields that one side remembers, the newest first --------------------------------- */

enum {
    GRPC_HPACK_STATIC = 61,        /* the static table: numbers 1 to 61 */
    GRPC_HPACK_TABLE_BYTES = 4096, /* what HTTP/2 begins with; we ask for no more and use no more */
    GRPC_HPACK_FIELD_BYTES = 32,   /* what a field counts beside its bytes */
};

struct grpc_hpack_entry {
    uint16_t at; /* of its bytes; see `base` */
    uint16_t name_len;
    uint16_t value_len;
    uint8_t kind;       /* enum grpc_field_kind; a decoder's */
    uint32_t name_hash; /* an encoder's */
    uint32_t hash;
};

/* All zero is empty; it takes memory with its first field. Owned. */
struct grpc_hpack_table {
    char *bytes;     /* names and values, each field in one piece, the oldest first */
    size_t capacity; /* at most twice GRPC_HPACK_TABLE_BYTES */
    size_t head;     /* where the next goes */
    uint16_t base;   /* the `at` of bytes[0], modulo 2^16 */
    struct grpc_hpack_entry *entries; /* a ring */
    uint32_t n_slots;                 /* a power of two */
    uint32_t first;                   /* the oldest */
    uint32_t n;
    uint32_t size; /* as HPACK counts, at most max_size */
    uint32_t max_size;
    uint32_t n_changes; /* the numbers of fields are what they were as long as this is */
};

void grpc_hpack_table_free(struct grpc_hpack_table *table);
/* 0 is the newest. Requires i < n. */
static inline const struct grpc_hpack_entry *
grpc_hpack_table_at(const struct grpc_hpack_table *table, uint32_t i)
{
    return &table->entries[(table->first + table->n - 1 - i) & (table->n_slots - 1)];
}
static inline peg_str grpc_hpack_name(const struct grpc_hpack_table *table,
                                      const struct grpc_hpack_entry *entry)
{
    return (peg_str){table->bytes + (uint16_t)(entry->at - table->base), entry->name_len};
}
static inline peg_str grpc_hpack_value(const struct grpc_hpack_table *table,
                                       const struct grpc_hpack_entry *entry)
{
    return (peg_str){table->bytes + (uint16_t)(entry->at - table->base) + entry->name_len,
                     entry->value_len};
}
/* Forgets the oldest until the field fits. One that is larger than the table empties it, and is not
 * kept. The name may be one of the table's own. What was borrowed before is gone if it failed to
 * fit, but not by being forgotten. PEG_ENOMEM changes nothing. `entry` has kind and hashes. */
peg_status grpc_hpack_table_add(struct grpc_hpack_table *table, peg_str name, peg_str value,
                                struct grpc_hpack_entry entry);
/* At most GRPC_HPACK_TABLE_BYTES. */
void grpc_hpack_table_resize(struct grpc_hpack_table *table, uint32_t max_size);

/* A field of the static table; 1 <= number <= GRPC_HPACK_STATIC. The value may be "". */
struct grpc_hpack_static {
    peg_str name;
    peg_str value;
    uint8_t kind;
};
const struct grpc_hpack_static *grpc_hpack_static_at(uint32_t number);
/* The number of a field, or 0; *ret_name that of one with the same name, or 0. */
uint32_t grpc_hpack_static_find(peg_str name, peg_str value, uint32_t *ret_name);

/* ---- Huffman ------------------------------------------------------------------------------ */

/* The most letters that so many bytes stand for. */
static inline size_t grpc_huffman_most(size_t n_bytes)
{
    return n_bytes * 8 / 5;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Readied by grpc_hpack_decoder_init(). Owned. */
struct grpc_hpack_decoder {
    struct grpc_hpack_table table;
    char *text; /* what Huffman stood for, of one field */
    size_t text_capacity;
    size_t text_len;
    bool may_resize; /* only the first thing in a block may */
};

struct grpc_hpack_field {
    peg_str name; /* borrowed until the next call */
    peg_str value;
    enum grpc_field_kind kind;
};

enum grpc_hpack_step {
    GRPC_HPACK_FIELD, /* *ret_field is the next */
    GRPC_HPACK_MORE,  /* nothing is left, or the beginning of a field */
    GRPC_HPACK_BAD,   /* no HPACK: the connection cannot go on */
    GRPC_HPACK_NOMEM, /* nor here */
};

void grpc_hpack_decoder_init(struct grpc_hpack_decoder *decoder);
void grpc_hpack_decoder_free(struct grpc_hpack_decoder *decoder);
/* Before the first field of each block, and after the last. */
void grpc_hpack_decode_begin(struct grpc_hpack_decoder *decoder);
void grpc_hpack_decode_end(struct grpc_hpack_decoder *decoder);
/* Takes one field from the front; **at is left at the first byte that was not taken. */
enum grpc_hpack_step grpc_hpack_decode(struct grpc_hpack_decoder *decoder, const uint8_t **at,
                                       const uint8_t *end, struct grpc_hpack_field *ret_field);

/* ---- writing ------------------------------------------------------------------------------ */

enum { GRPC_HPACK_SEEN = 16, GRPC_HPACK_CACHED = 4, GRPC_HPACK_CACHED_BYTES = 10 };

/* Readied by grpc_hpack_encoder_init(). Owned. Without memory it remembers less. */
struct grpc_hpack_encoder {
    struct grpc_hpack_table table;
    uint32_t wanted;                /* size of the table, to be sent with the next block */
    uint32_t smallest;              /* that the peer has asked for meanwhile */
    uint32_t seen[GRPC_HPACK_SEEN]; /* hashes of fields that were sent once and not remembered */
    /* Blocks that are the same for ever (grpc_block.is_static), as they were sent last. */
    struct grpc_hpack_cached {
        const struct grpc_field *fields;
        uint32_t n_changes; /* of the table, then */
        uint8_t len;
        uint8_t bytes[GRPC_HPACK_CACHED_BYTES];
    } cached[GRPC_HPACK_CACHED];
};

void grpc_hpack_encoder_init(struct grpc_hpack_encoder *encoder);
void grpc_hpack_encoder_free(struct grpc_hpack_encoder *encoder);
/* The peer remembers no more than this. */
void grpc_hpack_encoder_limit(struct grpc_hpack_encoder *encoder, uint32_t max_size);
/* The most bytes that a block can take. */
size_t grpc_hpack_bound(const struct grpc_field *fields, size_t n);
/* Writes a block and returns its length; `ret_bytes` has room for grpc_hpack_bound(). What it
 * writes must be sent. */
size_t grpc_hpack_encode(struct grpc_hpack_encoder *encoder, const struct grpc_field *fields,
                         size_t n, bool is_static, uint8_t *ret_bytes);

/* ---- session internal ---------------------------------------------------------------------- */

/* Around an event of a stream that may take it off the wire; on the stack of the caller. */
struct grpc__guard {
    const struct grpc_stream *stream; /* NULL as soon as it is off the wire: do not touch it */
    struct grpc__guard *outer;
};

/* Streams in the order in which they send. */
struct grpc__queue {
    struct grpc_stream *first;
    struct grpc_stream *last;
};

enum grpc__input {
    GRPC__INPUT_PREFACE,
    GRPC__INPUT_HEAD,
    GRPC__INPUT_PAYLOAD, /* handled when it is whole */
    GRPC__INPUT_DATA,    /* delivered as it comes */
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
    int32_t last_taken_id;     /* and of those that were accepted */
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
    int64_t n_unreturned;  /* bytes that came, of all streams, whose window was not returned */
    uint32_t stream_limit; /* bytes that may be on their way for one stream */
    /* the peer's settings and windows */
    uint32_t peer_max_streams;
    uint32_t peer_stream_window;
    uint32_t peer_max_header_bytes;
    bool has_wider_windows; /* since those in `shut` were last checked */
    int64_t most_beyond;    /* no stream has more: see window_beyond */
    int32_t peer_last_id;   /* of its GOAWAY */
    int64_t window;         /* bytes that it takes, of all streams */
    bool has_settings;
    bool has_ack;       /* of our SETTINGS */
    bool was_sent_away; /* by GOAWAY */
    /* out */
    bool has_new_output; /* see grpc_session_has_new_output() */
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
    uint8_t *out;               /* the buffer, during a pull */
    size_t out_len;
    size_t out_max;
    /* floods */
    size_t n_idle_bytes; /* of frames in a row without progress */
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
    bool is_dead;    /* the peer broke the rules: GOAWAY says which */
    bool has_goaway; /* ours, the final one */
    bool has_sent_error;
};

static inline size_t grpc__at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

/* A call or a message came or went: frames between them are forgiven. */
static inline void grpc__session_made_progress(struct grpc_session *session)
{
    session->n_idle_frames = 0;
    session->n_idle_bytes = 0;
}

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
/* Was no stream of this number begun? */
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
/* It sends too much of something: "pings". Static. */
void grpc__session_flooded(struct grpc_session *session, const char *of_what);
void grpc__session_lose(struct grpc_session *session);
/* What was wrong with a frame costs only its stream. */
void grpc__session_fail_stream(struct grpc_session *session, struct grpc_stream *stream,
                               uint32_t h2_error);
/* Frames that make us reset or refuse a stream are limited like resets by the peer. */
void grpc__session_count_invalid(struct grpc_session *session);
/* RST_STREAM for a number that has no stream here. */
void grpc__session_reset_id(struct grpc_session *session, int32_t id, uint32_t h2_error);

/* session_frames.c */
/* `session->frame` is whole; these are the bytes behind its head. */
void grpc__session_handle_frame(struct grpc_session *session, const uint8_t *bytes);
/* END_STREAM came for a stream. */
void grpc__session_remote_end(struct grpc_session *session, int32_t id);

/* session_output.c */
/* Reports to the owner that there is something to send. */
void grpc__session_output(struct grpc_session *session);
/* Space for a frame of the connection; NULL: there is no memory, and it is lost. */
uint8_t *grpc__session_control(struct grpc_session *session, size_t len);
/* The same for an answer. NULL also if the peer does not read its answers: that ends it. */
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
/* Bytes of `out` are gone. True: on_writable is due. */
bool grpc__stream_took(struct grpc_stream *stream, size_t n);

#endif
