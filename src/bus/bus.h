/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_BUS_H
#define PEG_BUS_BUS_H

/*
 * Coordination between the loops of a registry, on one node or many. The truth is in registers
 * that are written once; messages between loops are hints that arrive at most once, in any order.
 * Leases track which names are alive; maps are replicated to every loop that watches them.
 *
 * Each loop has one bus and uses it only on that loop. There are three kinds: local (one process),
 * redis (many) and sim (tests).
 *
 * Every request is answered exactly once, perhaps before the function returns, unless the caller
 * calls bus_forget_wait() or reuses the wait for another request. A wait lies in the caller's
 * memory.
 */

#include "base/blob.h"
#include "base/hash.h"
#include "net/loop/loop.h"
#include "pegboard/common.h"

struct bus;

/* A loop: a node id, new at each start, and the loop's number there. */
struct bus_address {
    uint64_t node; /* 0: none */
    uint32_t loop;
};
enum { BUS_ADDRESS_TEXT = 32 };
/* "9f86d081884c7d65.0". */
void bus_address_print(struct bus_address address, char ret_text[BUS_ADDRESS_TEXT]);
bool bus_address_parse(peg_str text, struct bus_address *ret_address);
bool bus_address_equal(struct bus_address a, struct bus_address b);

/* A call. 32 bytes: the caller's own identity for it; 16: random. Knowing an id is the right to
 * answer the call, so it is printed only to those who own the call. */
struct bus_id {
    uint8_t len;
    uint8_t bytes[32];
};
enum { BUS_ID_TEXT = 65 };
void bus_id_print(const struct bus_id *id, char ret_text[BUS_ID_TEXT]);
bool bus_id_parse(peg_str text, struct bus_id *ret_id);
bool bus_id_equal(const struct bus_id *a, const struct bus_id *b);
/* Providers send ids from outside: the key keeps them from choosing ids that collide. */
uint64_t bus_id_hash(const struct bus_id *id, struct peg__hash_key key);

/* ---- messages ---- */

enum bus_message_kind {
    BUS_CALL = 1, /* coordinator to provider side: run it. Body: a packed pegboard.v1.Call */
    BUS_CANCEL,   /* coordinator to provider side: `reason` */
    BUS_ASK,      /* coordinator to provider side: do you have it? Answer: BUS_HAVE or BUS_NAK */
    BUS_HAVE,     /* provider side to coordinator: claimed, or still running; also unasked */
    BUS_NAK,      /* provider side to coordinator: not started: `reason` */
    BUS_DELTA,    /* provider side to coordinator to listeners. Body: a pegboard.v1.Output; or
                     `reason`, and no body */
    BUS_DONE,     /* to coordinator and waiters. Body: the outcome, or none: read the register */
    BUS_EMIT,     /* any loop to provider side: a result by EmitToolResult, numbered by `epoch`.
                     Body: see calls/provider/emit.c */
    BUS_EMITTED,  /* its answer, with its number */
    BUS_WAITING,  /* coordinator to follower: does a caller wait? `epoch` numbers the question */
    BUS_FOLLOWER, /* follower to coordinator: `reason` */
    BUS_LOST,     /* provider side to coordinator: the provider had it and did not return in time */
    BUS_DRAIN,    /* to the first loop of a node, of no call: it is to drain and end, within
                     `deadline_ms` ms (0: its own time) */
    BUS_SESSION,  /* of no call: about a session of an MCP client. Body: see
                     gateway/mcp/forward.c */
};

enum bus_reason {
    BUS_NO_REASON,
    BUS_OVERLOADED, /* the queue is full */
    BUS_DRAINING,
    BUS_GONE,    /* the provider is not here (any more), and did not get it */
    BUS_EPOCH,   /* the registers are others than when it was sent */
    BUS_LATE,    /* its claim took too long to be trusted */
    BUS_UNKNOWN, /* answer to BUS_ASK: it is not here */
    BUS_DEADLINE,
    BUS_CANCELED,
    BUS_SETTLED,
    BUS_FULL,     /* no quota or no memory for its registers or its assignment */
    BUS_OUTDATED, /* the provider has another version of the toolset */
    /* A duplicate BUS_CALL, or one that may not be started any more: it had no effect. */
    BUS_DUPLICATE,
    /* of BUS_FOLLOWER */
    BUS_STOP,   /* cancel the call */
    BUS_LISTEN, /* send me BUS_DELTA, too */
    BUS_LEFT,   /* no caller waits here; `epoch`: the question; 0: unasked */
    BUS_AWAY,   /* likewise: its connection broke, and it may come back */
    BUS_KEEP,   /* go on, even if no caller waits */
    /* of BUS_DELTA */
    BUS_ASKED,    /* the call has a question: read its register */
    BUS_ANSWERED, /* any loop to provider side: likewise its answer */
    /* of BUS_FOLLOWER */
    BUS_ABANDONED, /* as BUS_LEFT, and BUS_KEEP does not hold any more */
};

/* Copied when it is sent; the body is shared by reference. */
struct bus_message {
    enum bus_message_kind kind;
    enum bus_reason reason;
    struct bus_id id;
    uint32_t attempt;
    uint16_t account; /* BUS_CALL: the quota key of its registers */
    uint64_t owner;   /* BUS_CALL: a hash of the owner of its toolset */
    bool was_claimed; /* BUS_NAK: the attempt is the sender's, which will never start it */
    /* Of the registers when the call was sent, or reported. BUS_NAK: a coordinator that is under
     * another one cannot tell what they held, and ends the call with outcome_unknown. */
    uint64_t epoch;
    int64_t deadline_ms; /* cluster time */
    struct bus_address from;
    char incarnation[65]; /* of the provider that it is for, or from */
    struct peg__blob *body;
};

/* ---- answers ---- */

struct bus_answer {
    /* PEG_OK; PEG_EIO: it may or may not have happened; PEG_ELIMIT: the bus is full and nothing
     * happened; PEG_ENOMEM: nothing happened. */
    peg_status status;
    /* put_if_absent, map_set: it was; send: a loop received it; lease: it is this loop's now */
    bool written;
    struct peg__blob *current; /* put_if_absent, read: the value now; NULL: none. Borrowed */
    uint64_t epoch;            /* at the time of the answer */
    int64_t asked_ns;          /* when it was asked, of bus_now_ns() */
    uint64_t revision;         /* map_set: the key's now */
    /* leases: one for each name, node 0 for none; lease: who has it now; waiters */
    const struct bus_address *addresses;
    size_t n_addresses;
};

struct bus_wait {
    void (*fn)(struct bus_wait *wait, const struct bus_answer *answer);
    void *pending; /* the bus's; NULL: no request is pending */
};

/* ---- registers: one for each (id, what, n) ----
 *
 * Their number is bounded, and one kind of call cannot starve another. Every bus that keeps
 * registers has separate quotas for
 *
 *   - ids of 32 bytes, which callers choose and which outlive their calls, and random ids, which
 *     are mostly forgotten with their calls: each may use all of the following;
 *   - PEG_LIMIT_BUS_REGISTERS registers and waiters, and PEG_LIMIT_BUS_REGISTER_BYTES for them and
 *     for values up to PEG_LIMIT_BUS_SMALL_BYTES;
 *   - PEG_LIMIT_BUS_LARGE_BYTES for larger values.
 *
 * A register that admits a call is written only while less than PEG_LIMIT_BUS_NAME_PERCENT of the
 * second quota is used, so that an admitted call can still be claimed, taken back, ended and
 * awaited when no new one can begin. Beyond a quota a write is PEG_ELIMIT; reads go on.
 *
 * Of each quota one account holds at most PEG_LIMIT_QUOTA_SHARE times what is free: more is
 * PEG_ELIMIT if it admits a call or is longer than PEG_LIMIT_BUS_REASON_BYTES. So a single account
 * gets three quarters, and the next one still finds something. The local bus counts accounts; a
 * server that many nodes share may do otherwise. */

enum bus_register {
    BUS_IDENTITY = 'c', /* the call, as it was admitted */
    BUS_CLAIM = 'k',    /* attempt n: which provider side may start it */
    BUS_RESULT = 't',   /* its outcome */
    BUS_QUESTION = 'q', /* n: what it asks while it runs */
    BUS_REPLY = 'a',    /* n: the answer to that */
    BUS_WAITERS = 'w',  /* loops that wait for the outcome */
};

struct bus_key {
    struct bus_id id;
    char what;          /* an enum bus_register, but for the waiters */
    uint32_t n;         /* BUS_CLAIM: the attempt; BUS_QUESTION, BUS_REPLY: the question; else 0 */
    bool is_node_local; /* only loops of this node ask for it. All keys of an id agree */
    bool admits;        /* put_if_absent: it admits a call */
    /* put_if_absent: the key of its quotas (base/quota.h). 0: as other registers of the id, if
     * there are any; else none, which has no share to keep to. */
    uint16_t account;
};

/* ---- maps ---- */

enum bus_map { BUS_MAP_TOOLSETS, BUS_MAP_PROVIDERS, BUS_MAP_NODES, BUS_N_MAPS };

struct bus_change {
    peg_str key;
    struct peg__blob *value; /* NULL: it was removed. Borrowed */
    uint64_t revision;       /* of the key */
    bool is_snapshot;        /* was there when the watch began, or after a reset */
};

/* A place in the order of changes. */
struct bus_place {
    struct bus_place *next;
    struct bus_place *prev;
};

/* Lies in the watcher's memory. Quick changes of one key may be reported as one: the last. Both
 * functions may end any watch; neither is called before bus_map_watch() returns. */
struct bus_watch {
    void (*on_change)(struct bus_watch *watch, const struct bus_change *change);
    /* Everything that was there has been reported; again after a reset, when keys that were not
     * reported are gone. */
    void (*on_ready)(struct bus_watch *watch);
    struct bus_place place; /* behind the last reported change; the rest is the bus's */
    struct bus_watch *next;
    void *owner;       /* NULL: it does not watch */
    uint64_t begun_at; /* the newest revision when it began */
    bool is_ready;
};

#define BUS_ANY_REVISION UINT64_MAX

/* ---- events ---- */

/* The first two are needed; a bus without events drops its messages. */
struct bus_events {
    /* Borrowed until it returns. */
    void (*on_message)(void *user, const struct bus_message *message);
    /* Messages and answers may have been lost, and the epoch may have changed: read again the
     * result of every call in flight. */
    void (*on_reset)(void *user);
    /* The lease under another loop's own address (bus_address_print()) has ended, and that loop
     * neither renewed nor released it. Every other loop gets the event once for each such end. It
     * is a hint: it may be late, and the loop may be back; read the lease before you act. A
     * connected loop does not miss it; on_reset() stands for those that were lost. May be NULL. */
    void (*on_node_lost)(void *user, struct bus_address address);
};

/* ---- leases ---- */

enum bus_lease_mode {
    BUS_LEASE_TAKE,    /* from any loop that has it */
    BUS_LEASE_RENEW,   /* only if it is this loop's */
    BUS_LEASE_IF_FREE, /* only if it is this loop's, or no loop's */
};

/* ---- posts ---- */

/* Work for another loop of the same node; see bus_post(). It lies in the sender's memory. */
struct bus_post {
    /* `user`: that of the other loop's events; NULL: that loop is gone. May free the post, or
     * post it again. */
    void (*fn)(struct bus_post *post, void *user);
    struct bus_post *next; /* the bus's */
};

struct bus_ops {
    int64_t (*now_ns)(struct bus *bus);
    int64_t (*now_ms)(struct bus *bus);
    void (*arm)(struct bus *bus, struct net_timer *timer, int64_t due_ns);
    void (*disarm)(struct bus *bus, struct net_timer *timer);
    uint64_t (*epoch)(struct bus *bus);
    bool (*is_fenced)(struct bus *bus);
    void (*send)(struct bus *bus, struct bus_address to, const struct bus_message *message,
                 struct bus_wait *wait);
    void (*put_if_absent)(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                          int64_t keep_until_ms, struct bus_wait *wait);
    void (*read)(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
    void (*forget)(struct bus *bus, const struct bus_key *key, uint32_t n_attempts);
    void (*wait_add)(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                     struct bus_wait *wait);
    void (*waiters)(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
    void (*lease)(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                  struct bus_wait *wait);
    void (*release)(struct bus *bus, peg_str name);
    void (*leases)(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait);
    void (*map_set)(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                    uint64_t expected, struct bus_wait *wait);
    void (*post)(struct bus *bus, uint32_t loop, struct bus_post *post);
    void (*map_watch)(struct bus *bus, enum bus_map map, struct bus_watch *watch);
    void (*map_unwatch)(struct bus *bus, enum bus_map map, struct bus_watch *watch);
    void (*forget_wait)(struct bus *bus, struct bus_wait *wait);
    void (*free)(struct bus *bus);
};

/* The first member of every kind of bus. */
struct bus {
    const struct bus_ops *ops;
    struct bus_address self;
    /* Identifies the registers: the same number wherever they are shared, another one when they
     * began empty. Those of one process are as new as its node. With bus_epoch() it says whether a
     * register that was written may still be there. */
    uint64_t origin;
    struct bus_events events;
    void *user;
};

/* Sets the events of the loop's owner, which is made after its bus. */
void bus_listen(struct bus *bus, const struct bus_events *events, void *user);

/* Monotonic; the same throughout a round. */
int64_t bus_now_ns(struct bus *bus);
/* Unix time, the same on all nodes within a few milliseconds. */
int64_t bus_now_ms(struct bus *bus);
void bus_arm(struct bus *bus, struct net_timer *timer, int64_t due_ns);
void bus_disarm(struct bus *bus, struct net_timer *timer);

/* Counts how often the registers were lost. A missing register proves something only under the
 * epoch of the send. */
uint64_t bus_epoch(struct bus *bus);
/* This node's lease may have run out, and its knowledge of its calls may be old: read before you
 * report. */
bool bus_is_fenced(struct bus *bus);

/* `wait` may be NULL here and below: the answer is not wanted. */
void bus_send(struct bus *bus, struct bus_address to, const struct bus_message *message,
              struct bus_wait *wait);
/* Writes the register if it is empty. `written` also if it has the same value, so that repeating
 * after PEG_EIO is right. Takes a reference of `value`, and keeps it at least until then. */
void bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                       int64_t keep_until_ms, struct bus_wait *wait);
void bus_read(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);
/* Removes all registers of key->id, with attempts 1..n_attempts, and its waiters. An id of 16 bytes
 * is no identity: what it has of IDENTITY and WAITERS may stay until its time is over; so may
 * questions and replies of any id. */
void bus_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts);
/* Adds this loop to those that wait for the outcome of key->id. */
void bus_wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                  struct bus_wait *wait);
void bus_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait);

/* Leases the name to this loop for `lease_ms` from now, if the mode allows it; a loop that has the
 * lease already renews it. The answer's `written` tells whether the lease is this loop's now, and
 * addresses[0] which loop has it (node 0: none, after BUS_LEASE_RENEW). */
void bus_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
               struct bus_wait *wait);
/* Gives it back, if it is still this loop's. A loop that ends in order releases its own address:
 * else the others get on_node_lost(). */
void bus_release(struct bus *bus, peg_str name);
void bus_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait);

/* Writes a key if its revision is `expected` (0: it is absent; BUS_ANY_REVISION: any); value NULL
 * removes it, and is `written` if it is absent. Revisions of a key grow, also across its removal;
 * an absent key has 0. Watches of this loop are notified before the answer comes. */
void bus_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                 uint64_t expected, struct bus_wait *wait);
void bus_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch);
void bus_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch);

/* Calls post->fn on another loop of this node, exactly once. Posts of one sender arrive in order
 * and are never lost or answered; one to the own loop arrives in its next round. If that loop does
 * not exist, or ends first, fn is called with user NULL on the thread that notices: perhaps this
 * one, before bus_post() returns. */
void bus_post(struct bus *bus, uint32_t loop, struct bus_post *post);

/* The answer is not wanted any more. Does nothing without a pending request. */
void bus_forget_wait(struct bus *bus, struct bus_wait *wait);
struct bus *bus_free(struct bus *bus);

/* ---- the local bus ----
 *
 * The bus of one process: its loops share tables of registers, leases and maps, and exchange
 * messages and posts by mailbox. Its epoch is always 1, and it is never fenced. A bus that is freed
 * ends the lease of its own address; others run out. */

struct net_loop;

/* What the loops share. Any thread; it outlives its buses. */
struct bus_local_hub;
peg_status bus_local_hub_new(uint64_t node, struct bus_local_hub **ret_hub, peg_error *reterr);
struct bus_local_hub *bus_local_hub_free(struct bus_local_hub *hub);
/* Registers and waiters now. */
size_t bus_local_n_registers(const struct bus_local_hub *hub);

/* The bus of one loop. On that loop, or while it does not run; so is bus_free(), which comes before
 * net_loop_free(). PEG_EINVAL, PEG_EEXISTS (E_BUS_NUMBER). */
peg_status bus_local_new(struct bus_local_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr);

#endif
