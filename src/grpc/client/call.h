/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_CALL_H
#define PEG_GRPC_CLIENT_CALL_H

/*
 * A call as the server that answers it sees it. It lives on the loop of its connection, whose
 * thread alone may touch it.
 *
 * A call ends exactly once, whatever happens to the client, the connection, the deadline or the
 * server: then on_end is called, last of all events. A handler that goes on working elsewhere
 * takes a reference; what it says to a call that has ended is PEG_ECANCELED and changes nothing.
 */

#include <sys/types.h>

#include "base/blob.h"
#include "grpc/http2/head.h"
#include "grpc/server/service.h"
#include "net/loop/loop.h"

struct grpc_call;
struct ProtobufCMessage;

/* What a service does with the calls of one method. `user` is what the service was added with. */
struct grpc_handler {
    /* Headers came. May be NULL. */
    void (*on_start)(struct grpc_call *call, void *user);
    /* A message: what method->input describes, or a const peg_str * if that is NULL. A method
     * whose client does not stream hears it once, when the client has said everything, and the
     * message lives as long as the call; otherwise it lives until on_message returns. */
    void (*on_message)(struct grpc_call *call, const void *message, void *user);
    /* The client of a client-streaming method sends nothing more. May be NULL for the others. */
    void (*on_half_close)(struct grpc_call *call, void *user);
    /* grpc_call_is_writable() has become true again. May be NULL. */
    void (*on_writable)(struct grpc_call *call, void *user);
    /* The call is over: how, tells grpc_call_ended_as(). May be NULL. */
    void (*on_end)(struct grpc_call *call, void *user);
};

/* Hangs on every call of a server, in the order given, before and around its handler. */
struct grpc_interceptor {
    /* The call is known, its handler has not heard of it. It may be finished here, which refuses
     * it: nobody behind hears of it, and on_end is called for those that did. May be NULL. */
    void (*on_start)(struct grpc_call *call, void *user);
    /* The call is over; in the reverse order. May be NULL. */
    void (*on_end)(struct grpc_call *call, const struct grpc_status *status, void *user);
    void *user;
};

/* ---- what the client said; all borrowed from the call --------------------------------------- */

const struct grpc_method *grpc_call_method(const struct grpc_call *call);
const struct grpc_metadata *grpc_call_metadata(const struct grpc_call *call);
/* Within on_message: did the message come compressed? */
bool grpc_call_was_compressed(const struct grpc_call *call);
peg_str grpc_call_authority(const struct grpc_call *call);
/* The moment at which the client gives up, or NET_NEVER. */
int64_t grpc_call_deadline_ns(const struct grpc_call *call);
/* The other end: its address, whether it is this machine, its user (false: it came by no unix
 * socket), its certificate's name or "". */
const char *grpc_call_peer(const struct grpc_call *call);
bool grpc_call_peer_is_local(const struct grpc_call *call);
bool grpc_call_peer_uid(const struct grpc_call *call, uid_t *ret_uid);
peg_str grpc_call_peer_name(const struct grpc_call *call);
struct net_loop *grpc_call_loop(const struct grpc_call *call);

/* Memory that lives as long as the call. */
struct peg__arena *grpc_call_arena(struct grpc_call *call);

/* ---- answering ------------------------------------------------------------------------------ */

/* PEG_ESTATE once the headers are sent; else as grpc_metadata_add(). */
peg_status grpc_call_add_header(struct grpc_call *call, peg_str key, peg_str value,
                                peg_error *reterr);
peg_status grpc_call_add_trailer(struct grpc_call *call, peg_str key, peg_str value,
                                 peg_error *reterr);
/* Sends the headers now; without it they go with the first message or the end. */
peg_status grpc_call_send_headers(struct grpc_call *call, peg_error *reterr);
/* Messages are compressed, if the client takes gzip. Before the headers are sent. */
void grpc_call_use_gzip(struct grpc_call *call);
/* Messages of such a call go as they are from now on, or compressed again. */
void grpc_call_skip_gzip(struct grpc_call *call, bool skips);

/* Queues a message, as grpc_stream_send(). The second packs it in place. */
peg_status grpc_call_send(struct grpc_call *call, peg_str message, peg_error *reterr);
peg_status grpc_call_send_message(struct grpc_call *call, const struct ProtobufCMessage *message,
                                  peg_error *reterr);
bool grpc_call_is_writable(const struct grpc_call *call);

/* Ends the call: what is queued, then the status. Only the first one counts. A call that cannot be
 * ended in good order (out of memory) is reset. Words are cut at PEG_LIMIT_GRPC_STATUS_BYTES, and
 * where they do not fit beside the details (grpc_call_max_status_bytes()); details that do not fit
 * alone are left out, unless they are small. */
void grpc_call_finish(struct grpc_call *call, const struct grpc_status *status);
/* Bytes that words and details of its status may take when they are sent (grpc_percent_encode(),
 * base 64): PEG_LIMIT_GRPC_STATUS_WIRE_BYTES, or less if the client takes smaller headers. */
size_t grpc_call_max_status_bytes(const struct grpc_call *call);
/* The same with words made here. */
void grpc_call_fail(struct grpc_call *call, enum grpc_code code, const char *fmt, ...)
    PEG_PRINTF(3, 4);
/* One message, then OK. Fails the call (INTERNAL, RESOURCE_EXHAUSTED) if it cannot be sent. */
void grpc_call_reply(struct grpc_call *call, peg_str message);
void grpc_call_reply_message(struct grpc_call *call, const struct ProtobufCMessage *message);
/* Likewise, `head` and `rest`, which lies in the blob: that is kept until it is sent, and not
 * copied as a whole. For large ones that others have too. If it cannot be sent the call is not
 * failed. */
peg_status grpc_call_reply_shared(struct grpc_call *call, peg_str head, struct peg__blob *blob,
                                  peg_str rest, peg_error *reterr);

/* Client-streaming methods: no on_message until it is resumed. */
void grpc_call_pause(struct grpc_call *call);
void grpc_call_resume(struct grpc_call *call);

/* Does nothing wait to be sent, and would the client take something now? If not, on_writable comes
 * when it is so. */
bool grpc_call_await_window(struct grpc_call *call);

/* The client has shown who it is: its connection may stay, and what that holds counts for
 * `principal`. The first one counts. For interceptors. */
void grpc_call_authenticate(struct grpc_call *call, peg_str principal);

/* ---- its life ---------------------------------------------------------------------------------
 */

/* Keeps the memory of the call; it may have ended all the same, and so may its server. On its loop
 * only. */
struct grpc_call *grpc_call_ref(struct grpc_call *call);
struct grpc_call *grpc_call_unref(struct grpc_call *call);
bool grpc_call_has_ended(const struct grpc_call *call);
/* After the end: the status that the client was told; if it was not, CANCELLED (the client went
 * away or wants it no more), DEADLINE_EXCEEDED or UNAVAILABLE (the server ended the connection, or
 * it broke). Borrowed from the call. */
const struct grpc_status *grpc_call_ended_as(const struct grpc_call *call);

/* Whatever a handler keeps for the call. */
void grpc_call_set_state(struct grpc_call *call, void *state);
void *grpc_call_state(const struct grpc_call *call);

/* A value that an interceptor leaves for others; the key is the address of a variable of theirs.
 * The value must live as long as the call (its arena is a good place). */
peg_status grpc_call_put(struct grpc_call *call, const void *key, void *value);
void *grpc_call_get(const struct grpc_call *call, const void *key);

/* Hears of the end of a call, before on_end: a call that this one makes hangs here, so that a
 * cancellation travels on. Lies in its owner's memory. One that is hung on a call that has ended
 * hears of it at once. */
struct grpc_end_hook {
    void (*fn)(struct grpc_end_hook *hook);
    struct grpc_end_hook *next; /* the call's */
    struct grpc_end_hook *prev;
    struct grpc_call *call; /* NULL: hangs nowhere */
};
void grpc_call_add_hook(struct grpc_call *call, struct grpc_end_hook *hook);
void grpc_call_remove_hook(struct grpc_end_hook *hook);

#endif
