/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_SIM_INTERNAL_H
#define PEG_TESTS_BUS_SIM_INTERNAL_H

/* What sim.c, sim_bus.c, sim_event.c and sim_server.c share. Nobody else includes it. */

#include "bus/internal.h"
#include "sim.h"

enum { SIM_CHAINS = 64, SIM_TEXT = 160, SIM_ADDRESSES = 16 };

/* ---- the server ---- */

struct sim_register {
    struct sim_register *next;
    struct peg__blob *value; /* NULL: a waiter */
    struct bus_address waiter;
    int64_t keep_until_ms;
    uint64_t scope; /* 0: of all; else of the node that keeps it to itself */
    uint32_t n;
    char what;
    struct bus_id id;
};

struct sim_lease {
    char name[SIM_TEXT];
    struct bus_address holder;
    int64_t until_ns;
};

struct sim_server {
    uint64_t epoch;
    struct sim_register *chains[SIM_CHAINS];
    struct sim_register *spares;
    struct sim_lease *leases;
    size_t n_leases;
    size_t max_leases;
    struct bus_map_table maps[BUS_N_MAPS];
};

struct sim_loop;

struct sim_register *sim_find(struct bus_sim *sim, const struct bus_key *key, uint64_t scope);
/* NULL: no memory. */
struct sim_register *sim_add(struct bus_sim *sim, const struct bus_key *key, uint64_t scope,
                             int64_t keep_until_ms);
void sim_forget(struct bus_sim *sim, const struct bus_id *id, uint64_t scope);
/* All of a scope. */
void sim_lose(struct bus_sim *sim, uint64_t scope);
size_t sim_waiters(struct bus_sim *sim, const struct bus_key *key, uint64_t scope,
                   struct bus_address ret_waiters[SIM_ADDRESSES]);
bool sim_lease(struct bus_sim *sim, const char *name, struct bus_address holder, int64_t until_ns);
/* The lease of the loop's own address; NULL: it has none. */
struct sim_lease *sim_own_lease(struct bus_sim *sim, const struct sim_loop *loop);
void sim_release(struct bus_sim *sim, const char *name, struct bus_address holder);
struct bus_address sim_holder(struct bus_sim *sim, const char *name);
void sim_server_free(struct sim_server *server);

/* ---- events ---- */

enum sim_what {
    SIM_PUT_IF_ABSENT,
    SIM_READ,
    SIM_FORGET,
    SIM_WAIT_ADD,
    SIM_WAITERS,
    SIM_LEASE,
    SIM_RELEASE,
    SIM_LEASES,
    SIM_MAP_SET,
    SIM_SEND,
    SIM_LEASE_END, /* the lease of a loop's own address may end now */
    /* What is on its way to a loop. */
    SIM_MESSAGE,
    SIM_TELL,
    SIM_RESET,
    SIM_NODE_LOST,
    SIM_POST, /* the first of its posts */
};

struct sim_event {
    struct net_timer timer; /* first; the moment of the world when it arrives */
    enum sim_what what;
    bool is_answer; /* a question that is on its way back */
    bool loses_answer;
    bool was_deferred;      /* because its loop was paused */
    struct sim_loop *loop;  /* who asked, or who gets it */
    struct sim_event *next; /* of the questions of its loop; of the spares */
    struct sim_event *prev;
    struct bus_wait *wait; /* NULL: nobody waits */
    struct bus_answer answer;
    struct peg__blob *current; /* a reference */

    struct bus_key key;
    struct peg__blob *value; /* a reference */
    int64_t keep_until_ms;   /* or how long a lease is */
    enum bus_lease_mode mode;
    enum bus_map map;
    uint64_t expected;
    struct bus_address to;
    struct bus_message message; /* with a reference on its body */
    size_t n_names;
    size_t text_len;
    char text[SIM_TEXT]; /* a key, or names, each with a NUL behind it */
    struct bus_address addresses[SIM_ADDRESSES];
};

struct sim_node;

struct sim_loop {
    struct bus bus; /* first */
    struct bus_sim *sim;
    struct sim_node *node;
    bool is_dead;
    uint64_t epoch; /* as far as it knows */
    struct net_timers timers;
    int64_t lag_ns;     /* of the next timer */
    int64_t renewed_ns; /* when it asked for the last lease of its own that it got */
    int64_t lease_ns;
    int64_t last_question_ns; /* when it arrives */
    int64_t last_answer_ns;
    int64_t deaf_until_ns; /* nothing reaches it */
    int64_t mute_until_ns; /* nor does what it asks reach the server */
    bool has_tell;
    char name[BUS_ADDRESS_TEXT];
    struct sim_event questions; /* a ring; this is its head */
    struct sim_event lease_end; /* armed while it has a lease of its own address */
    struct bus_post *posts;     /* to it, in order */
    struct bus_post **posts_end;
    struct sim_event next_post; /* armed while there are posts */
};

struct sim_node {
    uint64_t id;
    bool is_dead;
    int64_t base_ns; /* of its monotonic clock */
    int64_t skew_ms;
    int64_t paused_until_ns;
    int64_t deferred_until_ns; /* until then it catches up with what came meanwhile */
    unsigned n_loops;
    struct sim_loop loops[BUS_SIM_MAX_LOOPS];
};

struct bus_sim {
    uint64_t random;
    struct bus_sim_faults faults;
    struct bus_sim_hooks hooks;
    int64_t now_ns;
    uint64_t n_events;
    struct net_timers events;
    struct net_timers timers; /* of the world */
    struct sim_event *spares;
    struct sim_server server;
    size_t n_nodes;
    struct sim_node nodes[BUS_SIM_MAX_NODES];
};

/* The wall of the world, in ms. */
static inline int64_t sim_wall_ms(const struct bus_sim *sim)
{
    return sim->now_ns / 1000000;
}

/* ---- sim.c ---- */

bool sim_happens(struct bus_sim *sim, unsigned of_65536);
/* How long a way takes. */
int64_t sim_delay(struct bus_sim *sim);
/* All zeros but its texts; NULL: no memory. */
struct sim_event *sim_event_new(struct bus_sim *sim, enum sim_what what, struct sim_loop *loop);
void sim_event_free(struct sim_event *event);
void sim_event_arm(struct sim_event *event, int64_t due_ns);
struct sim_loop *sim_loop_at(struct bus_sim *sim, struct bus_address address);

/* ---- sim_bus.c ---- */

void sim_loop_init(struct sim_loop *loop, struct sim_node *node, struct bus_sim *sim,
                   unsigned number);
void sim_loop_kill(struct sim_loop *loop);
/* Calls the posts to a dead loop with no user. */
void sim_loop_drop_posts(struct sim_loop *loop);
/* Nothing reaches it for so long. */
void sim_loop_cut(struct sim_loop *loop, int64_t ns);

/* ---- sim_event.c ---- */

/* It has arrived, where nobody is paused. */
void sim_event_run(struct sim_event *event);
/* The server, or the node itself, does what is asked. */
void sim_event_serve(struct sim_event *event);
/* Tells whoever waits, if anybody does, and frees it. */
void sim_event_give(struct sim_event *event);
/* It is known some time later that nothing is known. */
void sim_event_fail(struct sim_event *event);
/* Is there anybody to get it? */
bool sim_send_on(struct bus_sim *sim, struct bus_address to, const struct bus_message *message);
/* The lease of the loop's own address has ended: removes it, and reports that to all others. */
void sim_lose_node(struct sim_loop *loop, struct sim_lease *lease);
/* Arms the arrival of the loop's first post. */
void sim_arm_post(struct sim_loop *loop);
/* Something in a map is to be heard. */
void sim_wake(void *owner);

#endif
