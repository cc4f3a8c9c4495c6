/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_DIRECT_DIRECT_H
#define PEG_REMOTE_DIRECT_DIRECT_H

/*
 * The transport of a direct provider: calls come by a stream on Redis, which the providers of the
 * toolset read as one consumer group, goa-ai's among them; results go to a stream of each call.
 *
 *   direct.c   new, serve; connects to Redis; drains and leaves
 *   gateway.c  Register, Pong, EmitToolResult
 *   sink.c     its place in the group: made, kept alive, given up; entries that dead ones left
 *   read.c     entries: calls and pings
 *   publish.c  results, deltas, acknowledgements
 *   command.c  commands to Redis
 *
 *   begin -> Register -> connect -> join (group, consumer, maps) -> read ... -> leave
 *
 * An entry that is read is pending for its reader until it is acknowledged. Its reader renews that
 * while the call is here (XCLAIM), so an entry that was not renewed for the grace belongs to a
 * dead reader, and a reader with room takes it over (XAUTOCLAIM). An entry that finds no room is
 * given up at once in the same way: its idle time is set to the grace.
 *
 * Two connections: one waits for entries, the other does all else. All on the provider's loop.
 */

#include "base/text/str.h"
#include "bus/redis/session.h"
#include "pulse/pulse.h"
#include "remote/provider/provider.h"

enum { DIRECT_ENTRY_ID = 44 };

enum remote__direct_phase {
    DIRECT_REGISTERING, /* at a gateway; not connected to Redis yet */
    DIRECT_SERVING,
    DIRECT_DRAINING, /* takes no entries any more; the last read may still be on its way */
    DIRECT_LEAVING,
};

/* Owned by the provider. */
struct remote__direct {
    peg_provider *prov;
    struct redis_url url;
    struct net_tls_config *tls; /* NULL: plain */
    int64_t grace_ms;
    bool emits_results; /* by EmitToolResult */
    char stream[PULSE_NAME];
    char key[PULSE_NAME];
    char sinks_key[PULSE_NAME];
    char sinks_channel[PULSE_NAME];
    char keepalive_key[PULSE_NAME];
    char keepalive_channel[PULSE_NAME];

    enum remote__direct_phase phase;
    /* the gateway */
    void (*on_registered)(struct remote__direct *direct); /* the first time */
    bool is_registered;
    bool is_registering;
    bool has_old_tools; /* they changed while it was registering */
    unsigned n_pongs;   /* on their way */

    /* Redis */
    struct redis_session *commands;
    struct redis_session *reader;
    struct redis_queue queue;
    struct redis_queue reader_queue;
    struct net_later flush;
    struct redis_request identified; /* CLIENT ID of the reader */
    int64_t reader_id;
    struct redis_request read;     /* XREADGROUP */
    bool is_reading;               /* without a reply yet */
    bool seeks_ping;               /* reads also without room */
    char last_id[DIRECT_ENTRY_ID]; /* that the group has delivered, as far as known; "": not */
    bool is_joining;
    bool is_joined; /* and the connection for commands is there */

    /* the group */
    struct net_timer tick;
    bool is_claiming;  /* XAUTOCLAIM is on its way */
    bool has_given_up; /* an entry found no room: one that frees some claims at once */
    char cursor[DIRECT_ENTRY_ID];
    int64_t renew_ns; /* when next */
    int64_t alive_ns;
    int64_t seek_ns;
};

static inline struct remote__direct *remote__direct_of(const peg_provider *prov)
{
    return (struct remote__direct *)prov->transport_state;
}

/* ---- command.c ---- */

/* A command on the connection for commands. fn is called once: with NULL if the connection is not
 * there, is lost, or there is no memory; what was asked may then have happened. */
struct remote__direct_command {
    struct redis_request request;
    struct remote__direct *direct;
    void (*fn)(struct remote__direct_command *command, const struct resp_value *reply);
    struct remote__prov_call *call;   /* owned; NULL: none */
    struct remote__prov_delta *delta; /* owned; NULL: none */
};
/* Sent at the end of the round. The command is copied, and what it owns is taken. fn may be NULL.
 */
void remote__direct_ask(struct remote__direct *direct, const peg_str *args, size_t n,
                        const struct remote__direct_command *command);
#define DIRECT_ASK(direct, command, ...)                                                           \
    remote__direct_ask(direct, (const peg_str[]){__VA_ARGS__},                                     \
                       sizeof((const peg_str[]){__VA_ARGS__}) / sizeof(peg_str), command)
void remote__direct_send_commands(struct net_later *later);
void remote__direct_ack(struct remote__direct *direct, peg_str id);
/* An event for the host: what is wrong with Redis. */
void remote__direct_report_lost(struct remote__direct *direct, const peg_error *error);

/* ---- gateway.c ---- */

/* Registers the toolset with the tools as they are now, until it is done. */
void remote__direct_register(struct remote__direct *direct);
void remote__direct_pong(struct remote__direct *direct, const char *ping_id);
/* The result of a call. `done` is called once; is_published: it is there, or refused for good. */
void remote__direct_emit(struct remote__prov_call *call,
                         void (*done)(struct remote__prov_call *call, bool is_published));

/* ---- publish.c ---- */

/* Publishes the result of a call that is done, acknowledges its entry, forgets it. */
void remote__direct_publish(struct remote__prov_call *call);
/* Those that are done and not on their way. */
void remote__direct_publish_all(struct remote__direct *direct);
void remote__direct_take_delta(struct remote__prov_delta *delta);

/* ---- sink.c ---- */

void remote__direct_join(struct remote__direct *direct);
/* It has lost its place: joins anew at the next tick. */
void remote__direct_lose_place(struct remote__direct *direct);
/* Gives up what is pending, and its place if nothing is; then ends the provider. */
void remote__direct_leave(struct remote__direct *direct);
/* Takes over what dead ones left, as far as there is room. */
void remote__direct_claim(struct remote__direct *direct);
void remote__direct_start_ticking(struct remote__direct *direct);

/* ---- read.c ---- */

/* How many calls it can take now. */
size_t remote__direct_room(const struct remote__direct *direct);
/* Waits for entries, unless it does, or has no room. */
void remote__direct_read(struct remote__direct *direct);
/* Handles a list of entries, as XREADGROUP and XAUTOCLAIM return them. */
void remote__direct_take_entries(struct remote__direct *direct, const struct resp_value *entries,
                                 unsigned attempt);

#endif
