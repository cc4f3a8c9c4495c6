/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_SIM_H
#define PEG_TESTS_BUS_SIM_H

/*
 * A bus for tests: several nodes, each with its loops, in one thread and on a clock of its own.
 * Between them is a server that holds registers, leases and maps, as Redis does. A question goes
 * there and its answer comes back, a message goes to its loop, a change of a map to whoever
 * watches: each is an event that takes its time, and may get lost. A seed decides all of that, so a
 * run can be repeated.
 *
 *   bus_sim_begin(sim, seed, &faults, &hooks);
 *   bus_sim_add_node(sim, 2, buses, &node);
 *   bus_sim_run_until(sim, bus_sim_now_ns(sim) + ...);
 *
 * Questions of one loop arrive in the order in which they were asked, as on a connection; messages
 * and answers of different loops in any order. Posts within a node take up to 50 us and are not
 * lost. When the lease of a loop's own address ends, every other loop that is not cut off gets the
 * event, some time later. Each node has its own monotonic clock, which shares no zero with the
 * others', and its own opinion of the time, some milliseconds wrong.
 *
 * What breaks a node is the owner's to say: pauses, crashes, a server that lost everything. Nothing
 * here allocates once the pools are large enough.
 */

#include "bus/bus.h"

/* Each probability is of 65536. */
struct bus_sim_faults {
    unsigned drop_message;
    unsigned lose_question; /* PEG_EIO, and nothing happened */
    unsigned lose_answer;   /* PEG_EIO, and it happened */
    unsigned no_memory;     /* PEG_ENOMEM of a register or of waiters, and nothing happened */
    unsigned full_waiters;  /* PEG_ELIMIT of one more waiter */
    /* PEG_ELIMIT of what else a full server refuses: a register that admits a call, a value of more
     * than PEG_LIMIT_BUS_REASON_BYTES. Nothing happened. */
    unsigned full;
    unsigned slow;         /* a way takes up to slow_ns */
    unsigned slow_message; /* the way of a message does, more often */
    int64_t delay_ns;      /* else up to this; 0: 1 ms */
    int64_t slow_ns;       /* 0: 3 s */
    int64_t error_ns;      /* until PEG_EIO is known; 0: 1 s */
    int64_t timer_lag_ns;  /* timers are late by up to this */
    int64_t skew_ms;       /* clocks are wrong by up to this, either way */
};

/* What an observer hears when it happens at the server, or on its way. Each may be NULL. */
struct bus_sim_hooks {
    void *user;
    /* A register is written, by the bus `by`. */
    void (*on_written)(void *user, const struct bus_key *key, struct peg__blob *value,
                       struct bus_address by);
    void (*on_forgotten)(void *user, const struct bus_id *id);
    /* A lease changes hands: `by` has it now, which asked for it at that moment of the world. */
    void (*on_taken)(void *user, const char *name, struct bus_address from, struct bus_address by,
                     int64_t asked_ns);
    /* A loop learns that the lease of another one has ended. */
    void (*on_node_lost)(void *user, struct bus_address lost, bool is_alive);
    /* Just before it is heard. */
    void (*on_message)(void *user, struct bus_address to, const struct bus_message *message);
};

enum { BUS_SIM_MAX_NODES = 16, BUS_SIM_MAX_LOOPS = 3 };

struct bus_sim;
peg_status bus_sim_new(struct bus_sim **ret_sim, peg_error *reterr);
struct bus_sim *bus_sim_free(struct bus_sim *sim);
/* A new world, in which nobody lives. Whoever used the buses of the last one has freed them, or let
 * their nodes crash. NULL: no faults, no hooks. */
void bus_sim_begin(struct bus_sim *sim, uint64_t seed, const struct bus_sim_faults *faults,
                   const struct bus_sim_hooks *hooks);

/* From the seed. */
uint64_t bus_sim_random(struct bus_sim *sim);
/* 0 to n - 1. */
uint64_t bus_sim_pick(struct bus_sim *sim, uint64_t n);

/* A node with a new id and its buses. PEG_ELIMIT: BUS_SIM_MAX_NODES in one world. */
peg_status bus_sim_add_node(struct bus_sim *sim, unsigned n_loops, struct bus **ret_buses,
                            uint64_t *ret_node) PEG_MUST_USE;
/* It does not run for so long; what comes meanwhile it gets afterwards. One that is paused goes on
 * when it would have. */
void bus_sim_pause(struct bus_sim *sim, uint64_t node, int64_t ns);
/* For what else happens on a node, such as a frame that a connection brings: 0 if it can happen
 * now, else when to try again, so that all of it happens in the order in which it was tried first.
 * `*was_deferred` is false at first, and kept by whoever tries again. */
int64_t bus_sim_defer(struct bus_sim *sim, uint64_t node, bool *was_deferred);
/* It is gone: its buses do nothing any more, whoever asks. What it sent is on its way; what it
 * wrote stays. Posts to its loops are called with no user. */
void bus_sim_crash(struct bus_sim *sim, uint64_t node);
/* Its connections are cut: what it asked is answered with PEG_EIO, messages are lost for a moment,
 * and its loops hear of a reset. */
void bus_sim_cut(struct bus_sim *sim, uint64_t node);
/* The same for so long: until then what it asks is answered with PEG_EIO, and its messages are
 * lost. */
void bus_sim_partition(struct bus_sim *sim, uint64_t node, int64_t ns);
/* Registers, leases and maps are lost: another epoch. Loops hear of it one by one. */
void bus_sim_new_epoch(struct bus_sim *sim);
/* Some lease ends before its time. */
void bus_sim_lapse(struct bus_sim *sim);
/* That of a loop's own address, if it has one. */
void bus_sim_lapse_own(struct bus_sim *sim, struct bus_address loop);
/* From here on, for what is not under way yet. */
void bus_sim_set_faults(struct bus_sim *sim, const struct bus_sim_faults *faults);
/* Nothing gets lost, slow or refused from here on. */
void bus_sim_calm(struct bus_sim *sim);

/* The world's clock, and timers on it, which no node has. */
int64_t bus_sim_now_ns(const struct bus_sim *sim);
void bus_sim_arm(struct bus_sim *sim, struct net_timer *timer, int64_t due_ns);
void bus_sim_disarm(struct bus_sim *sim, struct net_timer *timer);

/* The next event; false: nothing will ever happen. */
bool bus_sim_step(struct bus_sim *sim);
/* All that is due until then; the clock stands there afterwards. */
void bus_sim_run_until(struct bus_sim *sim, int64_t until_ns);
uint64_t bus_sim_n_events(const struct bus_sim *sim);

/* What stands at the server, or at the node for a key of that kind; borrowed. NULL: nothing. */
struct peg__blob *bus_sim_recheck(struct bus_sim *sim, const struct bus_key *key);
/* The loop that has the lease now; node 0: none. */
struct bus_address bus_sim_holder(struct bus_sim *sim, const char *name);
/* Registers that somebody could still read, of ids of so many bytes (0: of all). */
size_t bus_sim_n_registers(struct bus_sim *sim, uint8_t id_len);

#endif
