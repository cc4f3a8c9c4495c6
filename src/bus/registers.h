/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REGISTERS_H
#define PEG_BUS_REGISTERS_H

/*
 * Registers in the memory of one process: written once, read, forgotten, or gone when their time is
 * over. The local bus keeps all of them here; one with a server keeps those of calls that stay in
 * the process.
 *
 *   status = bus_registers_put_if_absent(registers, &key, value, keep_until_ms, &other);
 *   if (!status && !other) it is written
 *
 * Any thread. Each function locks a small part for some 50 ns, and frees what is large only
 * afterwards.
 */

#include "bus/bus.h"

struct bus_registers;

peg_status bus_registers_new(struct bus_registers **ret_registers, peg_error *reterr);
struct bus_registers *bus_registers_free(struct bus_registers *registers);

/* *ret_other is NULL if `value` stands there now, or stood there before; else it is a reference on
 * what stands there instead. PEG_ELIMIT: there is no room (bus.h); PEG_ENOMEM. */
peg_status bus_registers_put_if_absent(struct bus_registers *registers, const struct bus_key *key,
                                       struct peg__blob *value, int64_t keep_until_ms,
                                       struct peg__blob **ret_other) PEG_MUST_USE;
/* A reference, or NULL. */
struct peg__blob *bus_registers_read(struct bus_registers *registers, const struct bus_key *key);
/* All of the id, with every attempt and its waiters. */
void bus_registers_forget(struct bus_registers *registers, const struct bus_id *id);

/* One address is added once. PEG_ELIMIT as above, and beyond BUS_MAX_WAITERS; PEG_ENOMEM. */
enum { BUS_MAX_WAITERS = 64 }; /* of one call; as many as a process has loops */
peg_status bus_registers_wait_add(struct bus_registers *registers, const struct bus_id *id,
                                  struct bus_address waiter, int64_t keep_until_ms) PEG_MUST_USE;
size_t bus_registers_waiters(struct bus_registers *registers, const struct bus_id *id,
                             struct bus_address ret_waiters[BUS_MAX_WAITERS]);

/* Removes those whose time is over, at most `max` of them. True: there may be more. */
bool bus_registers_sweep(struct bus_registers *registers, int64_t now_ms, size_t max);

/* Registers and waiters, and the bytes that they take. */
size_t bus_registers_len(const struct bus_registers *registers);
size_t bus_registers_bytes(const struct bus_registers *registers);

#endif
