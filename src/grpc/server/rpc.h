/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_RPC_H
#define PEG_GRPC_SERVER_RPC_H

/*
 * A call as the client that makes it sees it. It lives on the loop of its channel, whose thread
 * alone may touch it. It ends exactly once, by on_end, never from within grpc_rpc_start(); its
 * memory is gone when on_end returns, unless somebody holds a reference.
 */

#include "grpc/client/channel.h"
#include "grpc/server/service.h"

struct grpc_rpc;
struct grpc_call;
struct ProtobufCMessage;

struct grpc_rpc_events {
    /* The server's headers came. May be NULL. */
    void (*on_headers)(struct grpc_rpc *rpc, const struct grpc_metadata *metadata, void *user);
    /* A message: what method->output describes, or a const peg_str * if that is NULL; borrowed
     * until it returns. */
    void (*on_message)(struct grpc_rpc *rpc, const void *message, void *user);
    /* grpc_rpc_is_writable() has become true again. May be NULL. */
    void (*on_writable)(struct grpc_rpc *rpc, void *user);
    /* Exactly once, last. Status and trailers are borrowed until it returns. */
    void (*on_end)(struct grpc_rpc *rpc, const struct grpc_status *status,
                   const struct grpc_metadata *trailers, void *user);
};

struct grpc_rpc_options {
    int64_t timeout_ms;       /* 0: none */
    bool waits_for_ready;     /* wait for a connection rather than fail with UNAVAILABLE */
    bool uses_gzip;           /* compress what is sent */
    size_t max_message_bytes; /* 0: the channel's */
    const struct grpc_metadata *metadata; /* copied; may be NULL */
    struct grpc_call *parent; /* a call on the same loop: this one ends with it, and not later
                               * than its deadline; may be NULL */
};

/* Starts it; options and ret_rpc may be NULL, events are copied. A call that cannot reach a server
 * ends (UNAVAILABLE); a failure here is one of the caller (PEG_EINVAL, PEG_ENOMEM, PEG_ELIMIT, or
 * PEG_ESTATE while the channel is freed), and on_end does not come. */
peg_status grpc_rpc_start(struct grpc_channel *channel, const struct grpc_method *method,
                          const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr);

/* Queues a message (also before there is a connection). As grpc_stream_send(); PEG_ECANCELED
 * (E_RPC_ENDED) once the call has ended. */
peg_status grpc_rpc_send(struct grpc_rpc *rpc, peg_str message, peg_error *reterr);
peg_status grpc_rpc_send_message(struct grpc_rpc *rpc, const struct ProtobufCMessage *message,
                                 peg_error *reterr);
/* Messages of a call with uses_gzip go as they are from now on, or compressed again. */
void grpc_rpc_skip_gzip(struct grpc_rpc *rpc, bool skips);
bool grpc_rpc_is_writable(const struct grpc_rpc *rpc);
/* Sends nothing more. */
void grpc_rpc_half_close(struct grpc_rpc *rpc);
/* Ends it with CANCELLED, unless it has ended; on_end comes in a later round. */
void grpc_rpc_cancel(struct grpc_rpc *rpc);
void grpc_rpc_pause(struct grpc_rpc *rpc);
void grpc_rpc_resume(struct grpc_rpc *rpc);

/* One request, one answer: on_message (not called if there is none), then on_end. `request` is
 * what method->input describes, or a const peg_str *. */
peg_status grpc_rpc_unary(struct grpc_channel *channel, const struct grpc_method *method,
                          const void *request, const struct grpc_rpc_options *options,
                          const struct grpc_rpc_events *events, void *user,
                          struct grpc_rpc **ret_rpc, peg_error *reterr);

/* Keeps the memory; on its loop only. */
struct grpc_rpc *grpc_rpc_ref(struct grpc_rpc *rpc);
struct grpc_rpc *grpc_rpc_unref(struct grpc_rpc *rpc);
const struct grpc_method *grpc_rpc_method(const struct grpc_rpc *rpc);
struct peg__arena *grpc_rpc_arena(struct grpc_rpc *rpc);
/* The address it was sent to, or "" while there is none; borrowed. */
const char *grpc_rpc_peer(const struct grpc_rpc *rpc);
/* Did anything of it reach the wire? False: no server has seen it, it may be made again. */
bool grpc_rpc_was_sent(const struct grpc_rpc *rpc);
/* Within on_message: did the message come compressed? */
bool grpc_rpc_was_compressed(const struct grpc_rpc *rpc);
/* For interceptors, before it is sent: as grpc_metadata_add(). */
peg_status grpc_rpc_add_metadata(struct grpc_rpc *rpc, peg_str key, peg_str value,
                                 peg_error *reterr);

#endif
