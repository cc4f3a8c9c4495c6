/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_CALLER_HOMES_H
#define PEG_CALLS_CALLER_HOMES_H

/*
 * Which loop of a node has the call of an identity, its home: the loop that was asked for it first.
 * The loops of a node share one directory; any thread.
 *
 * An entry lasts as long as somebody holds it: each call object, each relay, and a request until it
 * has become one of these. So while a request is on its way to a home, that stays the home.
 */

#include "bus/bus.h"

struct calls_homes;
struct calls_home;

/* NULL: no memory. */
struct calls_homes *calls_homes_new(void);
/* All homes were released. NULL is allowed, and returned. */
struct calls_homes *calls_homes_free(struct calls_homes *homes);

/* The home of the id, which is `loop` if the id has none. NULL: no memory; not if it has one. */
struct calls_home *calls_homes_hold(struct calls_homes *homes, const struct bus_id *id,
                                    uint32_t loop);
uint32_t calls_home_loop(const struct calls_home *home);
/* NULL is allowed, and returned. */
struct calls_home *calls_home_release(struct calls_home *home);

#endif
