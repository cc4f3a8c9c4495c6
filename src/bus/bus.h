/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_BUS_H
#define PEG_BUS_BUS_H

/*
 * How the loops of a registry talk, on one node or many. Truth is in registers that are written
 * once; letters between loops are hints and arrive at most once, in any order. Leases say who is
 * alive; maps are replicated to every loop that watches them.
 *
 * One bus per loop, on which everything happens, and only there. Three kinds of it: local (one
 * process), redis (many), sim (a test).
 *
 * An answer comes exactly once, perhaps before the function that asked returns, unless the asker
 * says bus_forget_wait() first, or asks something else with the same wait. A wait lies in the
 * asker's memory.
 */

#include "base/blob.h"
#include "base/hash.h"
#include "net/loop/timers.h"
#include "pegboard/common.h"

struct bus;

/* A loop: a node, which is new at each start, and its number there. */
struct bus_address {
    uint64_t node; /* 0: nobody */
    uint32_t loop;
};
enum { BUS_ADDRESS_TEXT = 32 };
/* "9f86d081884c7d65.0". */
void bus_address_print(struct bus_address address, char ret_text[BUS_ADDRESS_TEXT]);
bool bus_address_parse(peg_str text, struct bus_address *ret_address);
bool bus_address_equal(struct bus_address a, struct bus_address b);

/* A call. 32 bytes: the caller's own identity for it; 16: random. Knowing it is the right to answer
 * it, so it is compared in constant time nowhere and printed only to those who own the call. */
struct bus_id {
    uint8_t len;
    uint8_t bytes[32];
};
enum { BUS_ID_TEXT = 65 };
void bus_id_print(const struct bus_id *id, char ret_text[BUS_ID_TEXT]);
bool bus_id_parse(peg_str text, struct bus_id *ret_id);
bool bus_id_equal(const struct bus_id *a, const struct bus_id *b);
/* Ids of calls that providers list come from outside: without the key nobody can choose them so
 * that they collide. */
uint64_t bus_id_hash(const struct bus_id *id, struct peg__hash_key key);

/* ---- letters ---- */

enum bus_message_kind {
    BUS_CALL = 1, /* driver to holder: run it. Body: a packed pegboard.v1.Call */
    BUS_CANCEL,   /* driver to holder: `reason` */
    BUS_ASK,      /* driver to holder: do you have it? Answered by BUS_HAVE or BUS_NAK unknown */
    BUS_HAVE,     /* holder to driver: claimed, or still running; also not asked */
    BUS_NAK,      /* holder to driver: not started: `reason` */
    BUS_DELTA,    /* holder to driver to listeners. Body: a packed pegboard.v1.Output */
    BUS_DONE,     /* to driver and waiters. Body: the terminal, or none: read the register */
    BUS_STOP,     /* attacher to driver: somebody asked to cancel the call */
    BUS_EMIT,     /* any loop to holder: a result by EmitToolResult, whose number there `epoch` is.
                     Body: see gateway/calls/emit.c */
    BUS_EMITTED,  /* its answer, with its number */
    BUS_PONG,     /* any loop to holder: a pong by Pong. Body: the ping id */
    BUS_LISTEN,   /* attacher to driver: BUS_DELTA is for me, too */
    BUS_WAITING,  /* driver to attacher: does anybody wait? `epoch` is the number of the question */
    BUS_LEFT,     /* attacher to driver: nobody does; 0: not asked */
    BUS_KEEP,     /* attacher to driver: it goes on, even if nobody waits */
    /* Holder to driver: BUS_CALL was one too many, it is here, or not for him to start any more:
     * nothing came of that letter. */
    BUS_DUPLICATE,
    BUS_LOST, /* holder to driver: its provider had it, and did not come back in time */
};

enum bus_reason {
    BUS_NO_REASON,
    BUS_OVERLOADED, /* the queue is full */
    BUS_DRAINING,
    BUS_GONE,    /* the provider is not here (any more), and did not get it */
    BUS_EPOCH,   /* the registers are others than when it was sent */
    BUS_LATE,    /* its claim took too long to be trusted */
    BUS_UNKNOWN, /* answer to BUS_ASK: nobody here has it */
    BUS_DEADLINE,
    BUS_CANCELED,
    BUS_SETTLED,
    BUS_FULL,     /* there is no room, or no memory, for its registers, or to hold it */
    BUS_OUTDATED, /* the provider has another version of the toolset */
};

/* Copied when it is sent; of the body a reference is taken. */
struct bus_message {
    enum bus_message_kind kind;
    enum bus_reason reason;
    struct bus_id id;
    uint32_t attempt;
    uint16_t account; /* BUS_CALL: whose its registers are */
    uint64_t owner;   /* BUS_CALL: a hash of whose toolset it is for */
    bool was_claimed; /* BUS_NAK: the attempt is the sender's, and it will never start it */
    uint64_t epoch;
    int64_t deadline_ms; /* cluster time */
    struct bus_address from;
    char incarnation[65]; /* whom it is for, or from */
    struct peg__blob *body;
};

/* ---- answers ---- */

struct bus_answer {
    /* PEG_OK; PEG_EIO: it is not known whether it happened; PEG_ELIMIT: the bus is full and
     * nothing happened; PEG_ENOMEM: nothing happened. */
    peg_status status;
    bool won;                   /* once, map_set: it was written; send: somebody got it */
    struct peg__blob *standing; /* once, read: what stands there; NULL: nothing. Borrowed */
    uint64_t epoch;             /* when it was answered */
    int64_t asked_ns;           /* when it was asked, of bus_now_ns() */
    uint64_t revision;          /* map_set: that of the key now */
    const struct bus_address *addresses; /* leases: one for each name, node 0 for none; waiters */
    size_t n_addresses;
};

struct bus_wait {
    void (*fn)(struct bus_wait *wait, const struct bus_answer *answer);
    void *pending; /* the bus's; NULL: nothing is asked */
};

/* ---- registers: one for each (id, what, n) ----
 *
 * There is room for so many, and no call of one kind takes that of another. Every bus that keeps
 * registers counts
 *
 *   - ids of 32 bytes, which are named by callers and kept after the end, apart from random ones,
 *     which are mostly forgotten at the end: each may take all of the following;
 *   - PEG_LIMIT_BUS_REGISTERS registers and waiters, and PEG_LIMIT_BUS_REGISTER_BYTES for them and
 *     for values up to PEG_LIMIT_BUS_SMALL_BYTES;
 *   - PEG_LIMIT_BUS_LARGE_BYTES for larger values.
 *
 * What admits a call is written only while PEG_LIMIT_BUS_NAME_PERCENT of the second are not
 * taken. So a call that was admitted can be claimed, taken back, ended and waited for when no new
 * one can begin. A register without room is PEG_ELIMIT, and what stands is read all the same.
 *
 * Of each of these an account holds at most PEG_LIMIT_QUOTA_SHARE times what is free: what would be
 * more is PEG_ELIMIT, if it admits a call or is longer than PEG_LIMIT_BUS_REASON_BYTES. So one
 * alone gets three quarters, and whoever comes then finds something to begin with. The local bus
 * counts accounts; a server of its own that many nodes share may do otherwise. */

struct bus_key {
    struct bus_id id;
    char what;  /* 'c', 'k' or 't' */
    uint32_t n; /* attempt, of 'k' */
    /* Only loops of this node ask for it: it needs no trip to a server. All keys of an id agree. */
    bool is_node_local;
    bool admits; /* once: a call begins with it */
    /* once: the key of its quotas (base/quota.h). 0: as other registers of the id, if there
     * are any; else nobody's, which has no share to keep to. */
    uint16_t account;
};

/* ---- maps ---- */

enum bus_map { BUS_MAP_TOOLSETS, BUS_MAP_PROVIDERS, BUS_N_MAPS };

struct bus_change {
    peg_str key;
    struct peg__blob *value; /* NULL: it is gone. Borrowed */
    uint64_t revision;       /* of the key */
    bool is_snapshot;        /* was there when the watch began, or after a reset */
};

/* A place in the order of changes. */
struct bus_place {
    struct bus_place *next;
    struct bus_place *prev;
};

/* Lies in the watcher's memory. Changes of one key that come faster than they can be told may be
 * told as one: the last. Both functions may end any watch; neither is called before
 * bus_map_watch() returns. */
struct bus_watch {
    void (*on_change)(struct bus_watch *watch, const struct bus_change *change);
    /* All that was there has been told; again after a reset, when what was not told is gone. */
    void (*on_ready)(struct bus_watch *watch);
    struct bus_place place; /* behind all that was told; the rest is the bus's */
    struct bus_watch *next;
    void *owner;       /* NULL: it does not watch */
    uint64_t begun_at; /* the newest revision when it began */
    bool is_ready;
};

#define BUS_ANY_REVISION UINT64_MAX

/* ---- what the owner of a loop hears ---- */

/* Both are needed; a bus that nobody listens to loses its letters. */
struct bus_events {
    /* Borrowed until it returns. */
    void (*on_letter)(void *user, const struct bus_message *letter);
    /* Letters and answers may have been lost, the epoch may be another: read again the terminal of
     * every call in flight. */
    void (*on_reset)(void *user);
};

struct bus_ops {
    int64_t (*now_ns)(struct bus *bus);
    int64_t (*now_ms)(struct bus *bus);
    void (*arm)(struct bus *bus, struct net_timer *timer, int64_t due_ns);
    void (*disarm)(struct bus *bus, struct net_timer *timer);
    uint64_t (*epoch)(struct bus *bus);
    bool (*is_fenced)(struct bus *bus);
    void (*send)(struct bus *bus, struct bus_address to, const struct bus_message *letter,
                 struct bus_wait *wait);
    void (*once)(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                 int64_t keep_until_ms, struct bus_wait *wait);
    void (*read)(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
    void (*forget)(struct bus *bus, const struct bus_key *key, uint32_t n_attempts);
    void (*wait_add)(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                     struct bus_wait *wait);
    void (*waiters)(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
    void (*lease)(struct bus *bus, peg_str name, int64_t lease_ms, struct bus_wait *wait);
    void (*release)(struct bus *bus, peg_str name);
    void (*leases)(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait);
    void (*map_set)(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                    uint64_t expected, struct bus_wait *wait);
    void (*map_watch)(struct bus *bus, enum bus_map map, struct bus_watch *watch);
    void (*map_unwatch)(struct bus *bus, enum bus_map map, struct bus_watch *watch);
    void (*forget_wait)(struct bus *bus, struct bus_wait *wait);
    void (*free)(struct bus *bus);
};

/* The first member of every kind of bus. */
struct bus {
    const struct bus_ops *ops;
    struct bus_address self;
    /* Which registers it has: the same number wherever they are shared, another one when they began
     * empty. Those of one process are as new as its node. With bus_epoch() it says whether what was
     * written once may still be there. */
    uint64_t origin;
    struct bus_events events;
    void *user;
};

/* The owner of the loop, which is made after its bus, listens from here on. */
void bus_listen(struct bus *bus, const struct bus_events *events, void *user);

/* Monotonic; the same for all of a round. */
int64_t bus_now_ns(struct bus *bus);
/* Unix time, the same on all nodes within a few milliseconds. */
int64_t bus_now_ms(struct bus *bus);
void bus_arm(struct bus *bus, struct net_timer *timer, int64_t due_ns);
void bus_disarm(struct bus *bus, struct net_timer *timer);

/* Counts how often the registers were lost. A register that is not there proves something only
 * under the epoch of the send. */
uint64_t bus_epoch(struct bus *bus);
/* This node's lease may have run out: what it thinks it knows of its calls may be old. It is then
 * to read before it tells. */
bool bus_is_fenced(struct bus *bus);

/* `wait` may be NULL: whoever does not want to know. */
void bus_send(struct bus *bus, struct bus_address to, const struct bus_message *letter,
              struct bus_wait *wait);
/* Writes the register if nothing stands there. `won` also if the same value stands there, so that
 * asking again after PEG_EIO is right. A reference of `value` is taken. It is kept until then at
 * least. */
void bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                       int64_t keep_until_ms, struct bus_wait *wait);
void bus_read(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
/* All registers of key->id, with attempts 1..n_attempts, and its waiters. */
void bus_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts);
/* This loop wants to hear of the terminal of key->id, too. */
void bus_wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                  struct bus_wait *wait);
void bus_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);

/* The name is alive and here for so long; asking again renews. The last loop that asks has it. */
void bus_lease(struct bus *bus, peg_str name, int64_t lease_ms, struct bus_wait *wait);
/* Gives it back, if it is still this loop's. */
void bus_release(struct bus *bus, peg_str name);
void bus_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait);

/* Writes a key if its revision is `expected` (0: it is not there; BUS_ANY_REVISION: whatever it
 * is); value NULL removes it, and is `won` if it is not there. Revisions of a key grow, also over
 * its removal; a key that is not there has 0. Watchers of this loop hear of it before the answer
 * comes. */
void bus_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                 uint64_t expected, struct bus_wait *wait);
void bus_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch);
void bus_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch);

/* The answer is not wanted any more. One that asks nothing is left alone. */
void bus_forget_wait(struct bus *bus, struct bus_wait *wait);
struct bus *bus_free(struct bus *bus);

#endif
