/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_INTERNAL_H
#define PEG_BUS_REDIS_INTERNAL_H

/*
 * The files of this room, left to right; calls go to the right:
 *
 *   redis.c   handshake.c   leases.c  maps.c  stream_keys.c  streams.c  requests.c   large.c
 *   command.c   message.c
 *   ledger.c  scripts.c  stats.c   session.c   fitness.c  conn.c  resp.c  url.c
 */

#include <pthread.h>

#include "base/map.h"
#include "bus/internal.h"
#include "bus/redis/ledger.h"
#include "bus/redis/redis.h"
#include "bus/redis/session.h"
#include "bus/redis/streams.h"

enum {
    REDIS_PREFIX_TEXT = 288, /* "peg:" name ":", and of channels "@" database ":" */
    REDIS_KEY_TEXT = REDIS_PREFIX_TEXT + 96,
    REDIS_SHA_TEXT = 41,
    REDIS_EPOCH_TEXT = 64, /* 16 hexadecimal digits, ':', a run_id */
    REDIS_SECRET_HEX = 2 * BUS_REDIS_SECRET_BYTES + 1,
};

/* ---- scripts: none of them is on the way of a call ---- */

enum redis_script {
    REDIS_LEASE,   /* KEYS loops, lease...; ARGV self, then mode and ms of each. -> addresses */
    REDIS_RELEASE, /* KEYS loops, lease; ARGV self, channel of lost loops or "" */
    REDIS_REAP,    /* KEYS loops; ARGV prefix of leases, channel of lost loops */
    REDIS_MAP_SET, /* see scripts.c */
    REDIS_MAP_SET_ALWAYS, /* the same, also when the server's memory is full */
    REDIS_AGREE,          /* KEYS any; ARGV what to write if there is nothing. -> what there was */
    REDIS_EPOCH,          /* KEYS epoch; ARGV old, new: writes the new one if the old one stands */
    REDIS_N_SCRIPTS
};
extern const char *const redis_scripts[REDIS_N_SCRIPTS];

/* ---- what the loops of a node share ---- */

struct bus_redis_hub {
    struct bus_local_hub *local;
    struct redis_ledger *ledger;
    struct redis_url url;
    struct net_tls_config *tls;
    char prefix[REDIS_PREFIX_TEXT];
    char channels[REDIS_PREFIX_TEXT]; /* their prefix: databases of a Redis share all channels */
    char client_name[32];
    uint64_t node;
    int64_t check_ms;
    int64_t timeout_ms;
    pthread_mutex_t lock; /* of the secret */
    uint8_t secret[BUS_REDIS_SECRET_BYTES];
    atomic_ullong n_pipelines;
    atomic_ullong n_commands;
    atomic_ullong n_connects;
    atomic_ullong n_epochs;
    struct redis_traffic traffic;
    atomic_ullong fenced_ns;
    atomic_llong round_trip_ns;
    atomic_ullong round_trips_ns;
    atomic_ullong round_trips[BUS_REDIS_BUCKETS];
    atomic_bool has_warned_of_buffers; /* of subscribers */
    atomic_bool has_warned_of_loss;
};

/* ---- a loop ---- */

/* A request of the owner, or of the bus itself (without a wait). */
struct redis_command {
    struct redis_request request; /* first */
    struct redis_bus *bus;
    struct redis_command *next; /* of those that wait for something together; of the spares */
    struct bus_wait *wait;      /* NULL: no answer is wanted */
    struct bus_answer answer;
    struct peg__blob *current;     /* of the answer; a reference */
    struct peg__blob *value;       /* that is written; a reference */
    struct bus_address *addresses; /* of the answer; owned */
    struct redis_command *batch;   /* the leases that one script asks for */
    struct bus_id id;              /* of a register */
    char *text;                    /* a name or a key; owned */
    size_t text_len;
    struct redis_cost cost; /* of a register */
    int64_t keep_until_ms;
    int64_t lease_ms;
    enum bus_lease_mode mode;
    enum bus_map map;
    uint64_t generation; /* of the loading of a map */
};

struct redis_commands {
    struct redis_command *first;
    struct redis_command *last;
};

enum redis_map_state {
    REDIS_MAP_UNKNOWN, /* nothing watches it */
    REDIS_MAP_ASKED,   /* its index has been asked for: earlier changes are in it */
    REDIS_MAP_FETCHED, /* its index is known, and its values are being fetched */
    REDIS_MAP_LOADED,
};

/* The loop's copy of a map. */
struct redis_map {
    struct bus_map_table table;
    enum redis_map_state state;
    uint64_t revision; /* of the last change that is known */
    uint64_t generation;
    struct peg__buf index; /* keys to fetch: each a uint32_t and so many bytes */
    size_t index_at;
    struct redis_commands held; /* answers that wait until it is loaded */
};

/* Redis TIME minus the monotonic clock, as the last reply bounds it. */
struct redis_offset {
    bool is_known;
    int64_t min_ns;
    int64_t max_ns;
};

struct redis_bus {
    struct bus bus; /* first */
    struct bus_redis_hub *hub;
    struct net_loop *loop;
    struct bus *local; /* for what stays in the process */
    struct redis_session *session;
    struct redis_queue queue;
    struct redis_queue late; /* commands that other ones take along, or the timer sends */
    struct net_timer late_timer;
    struct net_later flush;
    struct net_later report; /* changes of maps */
    struct net_timer check;
    struct net_timer hold; /* armed while requests wait for a connection */
    struct redis_command *spares;
    size_t n_spares;

    bool is_ready;
    bool was_ready;
    bool has_new_secret; /* since on_reset() was last called */
    uint8_t secret[BUS_REDIS_SECRET_BYTES];
    char self_text[BUS_ADDRESS_TEXT];
    char shas[REDIS_N_SCRIPTS][REDIS_SHA_TEXT];
    struct redis_queue handshake_queue;
    char epoch_text[REDIS_EPOCH_TEXT];
    uint64_t epoch;

    size_t n_in_group;           /* registers asked for since the epoch was last */
    struct redis_commands group; /* that are answered when the epoch comes */

    struct redis_commands leases; /* to be asked for at the end of the round */
    size_t n_leases;
    struct peg__map names; /* of leases that this loop has, with when they end */
    int64_t renewed_ns;    /* when it asked for the last lease of its own address that it got */
    int64_t lease_ns;
    int64_t fence_counted_ns; /* until when its fenced time is in the counters */
    struct redis_offset offset;
    int64_t offset_ns;    /* from the monotonic clock to cluster time */
    bool has_stepped;     /* Redis TIME has, under the epoch that is known: what is absent may have
                           * been there */
    bool has_asked_epoch; /* for that */

    struct redis_map maps[BUS_N_MAPS];
    struct redis_commands large; /* bodies and results to be fetched */
    size_t n_large;              /* that are being fetched */
    const char *last_loss;       /* its code, since the loop was last connected */
    uint64_t logged_loss;        /* the hash of its message: each is logged once */
    int64_t loss_logged_ns;
    unsigned n_holds;
    bool is_dead;

    bool can_track;          /* the server reports changes of keys that were read */
    struct peg__map tracked; /* by key */
    struct bus_tracked *first_tracked;
    struct bus_tracked *tracked_cursor; /* the one that is reported next */
    struct redis_commands reads;        /* of streams, to be asked for */
    size_t n_reads;                     /* without an answer */
    size_t max_reads;
};

static inline struct redis_bus *redis_bus_of(struct bus *bus)
{
    return (struct redis_bus *)bus;
}

/* ---- stats.c ---- */

void redis_count_round_trip(struct bus_redis_hub *hub, int64_t ns);
/* How long it has been fenced since it was last counted: before the lease is renewed, and now and
 * then. */
void redis_count_fenced(struct redis_bus *bus);
/* When the fence falls. */
int64_t redis_fence_ns(const struct redis_bus *bus);

/* ---- command.c ---- */

/* The owner may free the bus in whatever is called: its memory stays while it is held. */
void redis_bus_hold(struct redis_bus *bus);
void redis_bus_release(struct redis_bus *bus);

/* fn gets the reply. NULL: no memory, which the wait has been told. */
struct redis_command *redis_command_new(struct redis_bus *bus, struct bus_wait *wait,
                                        void (*fn)(struct redis_request *request,
                                                   const struct resp_value *reply));
/* Keeps a copy of the text. False: no memory. */
bool redis_command_keep(struct redis_command *command, peg_str text) PEG_MUST_USE;
/* What was put into the queue since the mark is its; else it is answered with the reason. */
void redis_command_ask(struct redis_command *command, size_t mark);
/* Answers, and frees it. */
void redis_command_give(struct redis_command *command);
void redis_command_reject(struct redis_command *command, peg_status status);
/* A reply that is no answer: none, or an error. Answers if so. */
bool redis_command_is_failed(struct redis_command *command, const struct resp_value *reply);
/* A request of the bus itself, whose reply matters only if it is an error of all. */
void redis_command_on_done(struct redis_request *request, const struct resp_value *reply);
void redis_commands_append(struct redis_commands *commands, struct redis_command *command);
struct redis_command *redis_commands_take(struct redis_commands *commands);
void redis_commands_reject(struct redis_commands *commands, peg_status status);

/* The answer waits for the epoch, which is read behind it. */
void redis_command_ask_in_group(struct redis_command *command, size_t mark);
void redis_command_give_with_epoch(struct redis_command *command);
/* Reads the epoch, if a register waits for that. */
void redis_put_epoch(struct redis_bus *bus);
/* Of the text of an epoch; 0: there is none. */
uint64_t redis_epoch_number(peg_str text);

/* "peg:<name>:" and this, as an argument. */
void redis_put_key(struct redis_bus *bus, struct peg__buf *out, const char *rest);
void redis_put_key2(struct redis_bus *bus, struct peg__buf *out, const char *rest, peg_str more);
/* The name of a channel: of the database, too. */
void redis_put_channel(struct redis_bus *bus, struct peg__buf *out, const char *rest);
void redis_put_channel2(struct redis_bus *bus, struct peg__buf *out, const char *rest,
                        peg_str more);
/* EVALSHA or EVAL, the script and the number of its keys; `n_args` behind the keys. */
void redis_put_script(struct redis_bus *bus, enum redis_script script, size_t n_keys,
                      size_t n_args);

/* The key of a register: "peg:<name>:{<id>}:c", ":k7". */
void redis_put_register(struct redis_bus *bus, struct peg__buf *out, const struct bus_id *id,
                        char what, uint32_t n);

/* ---- large.c ---- */

/* Fetches the body that the text names, or the result of the id, when it is its turn; fn gets the
 * reply, and calls redis_large_end(). */
void redis_large_ask(struct redis_command *command);
void redis_large_end(struct redis_bus *bus, bool is_connected);
/* What has yet to be fetched is lost with the connection. */
void redis_large_drop(struct redis_bus *bus);

/* ---- message.c ---- */

/* How it travels; the body follows, or lies at a key of its own, whose name follows. */
enum { REDIS_MESSAGE_HEAD = 192, REDIS_BODY_ID = 16 };
size_t redis_message_pack(const struct bus_message *message, bool is_by_key,
                          char ret_bytes[REDIS_MESSAGE_HEAD]);
/* *ret_rest is the body, or the name of its key. False: malformed. */
bool redis_message_unpack(peg_str bytes, struct bus_message *ret_message, bool *ret_has_body,
                          bool *ret_is_by_key, peg_str *ret_rest);

/* ---- requests.c ---- */

void redis_send(struct bus *bus, struct bus_address to, const struct bus_message *message,
                struct bus_wait *wait);
void redis_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                         int64_t keep_until_ms, struct bus_wait *wait);
void redis_read(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
void redis_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts);
/* What was put into bus->late since the mark goes with other commands, some milliseconds later. */
void redis_command_ask_late(struct redis_command *command, size_t mark);
/* What was put off. */
void redis_send_late(struct redis_bus *bus);
void redis_wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                    struct bus_wait *wait);
void redis_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
/* A message that was published to this loop. */
void redis_on_message(struct redis_bus *bus, peg_str bytes);

/* ---- streams.c ---- */

struct redis_stream_id {
    uint64_t ms;
    uint64_t sequence;
};
bool redis_stream_id_parse(peg_str text, struct redis_stream_id *ret_id);
bool redis_stream_id_is_before(struct redis_stream_id a, struct redis_stream_id b);
/* As redis_command_new(). */
struct redis_command *redis_stream_command(struct redis_bus *bus, struct bus_stream_wait *wait,
                                           void (*fn)(struct redis_request *request,
                                                      const struct resp_value *reply));
/* NULL: it is not wanted. */
struct bus_stream_reply *redis_stream_reply(struct redis_command *command);
/* A text is the answer; none says that there is no such key. */
void redis_stream_on_text(struct redis_request *request, const struct resp_value *reply);
/* EXPIRE ... NX, in one of the queues. */
void redis_put_expire(struct peg__buf *out, peg_str key, int64_t seconds);
/* The text of an item of a list; "" if there is none. */
peg_str redis_text_at(const struct resp_value *list, size_t i);
/* The server says that keys have changed; NULL: all of them, perhaps. */
void redis_on_invalidate(struct redis_bus *bus, const struct resp_value *keys);
/* The connection is lost: reads that wait are, too, and those that follow are careful. */
void redis_drop_reads(struct redis_bus *bus);
/* Changes may have been missed: all keys are to be read again. */
void redis_report_tracked(struct redis_bus *bus);

/* ---- leases.c ---- */

void redis_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                 struct bus_wait *wait);
void redis_release(struct bus *bus, peg_str name);
void redis_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait);
bool redis_is_fenced(struct bus *bus);
/* Those of this round, in as few scripts as possible. */
void redis_put_leases(struct redis_bus *bus);
/* Asks again for what it has, for the time that is left: the server may have lost it. */
void redis_retake_leases(struct redis_bus *bus);
/* Looks for loops whose leases have ended. */
void redis_put_reap(struct redis_bus *bus);
/* The bus ends with a lease of its own address: notifies the others now. */
void redis_put_end(struct redis_bus *bus);
void redis_on_lost_loop(struct redis_bus *bus, peg_str text);
/* Asks for Redis TIME; and what it says. asked_ns: when it was asked for. */
void redis_put_time(struct redis_bus *bus);
void redis_note_time(struct redis_bus *bus, const struct resp_value *reply, int64_t asked_ns);
void redis_free_names(struct redis_bus *bus);

/* ---- maps.c ---- */

extern const char *const redis_map_channels[BUS_N_MAPS];
void redis_maps_init(struct redis_bus *bus);
void redis_maps_free(struct redis_bus *bus);
void redis_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                   uint64_t expected, struct bus_wait *wait);
void redis_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch);
void redis_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch);
/* A connection is there, or is lost. */
void redis_maps_load(struct redis_bus *bus);
void redis_maps_lose(struct redis_bus *bus);
/* Asks for the revision of each loaded map: a change that was missed shows. */
void redis_maps_compare(struct redis_bus *bus);
void redis_on_map_change(struct redis_bus *bus, enum bus_map number, peg_str bytes);
void redis_maps_report(struct redis_bus *bus);

/* ---- handshake.c ---- */

/* The session is ready: subscribes, agrees on secret and epoch, takes leases again; then
 * is_ready, and bus->events.on_reset() if it was before. */
void redis_handshake(struct redis_bus *bus);
/* Another epoch, if the one that is known still stands. */
void redis_put_new_epoch(struct redis_bus *bus);
/* The secret that this node knows. */
void redis_hub_secret(struct bus_redis_hub *hub, uint8_t ret_secret[BUS_REDIS_SECRET_BYTES]);
void redis_hub_set_secret(struct bus_redis_hub *hub, const uint8_t secret[BUS_REDIS_SECRET_BYTES]);
/* Offers one; a reply with text has another that stands. One that is malformed changes nothing. */
void redis_put_secret(const struct bus_redis_hub *hub, struct peg__buf *out,
                      const uint8_t secret[BUS_REDIS_SECRET_BYTES]);
void redis_read_secret(const struct bus_redis_hub *hub, peg_str hex,
                       uint8_t secret[BUS_REDIS_SECRET_BYTES]);

#endif
