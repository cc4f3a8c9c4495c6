/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_DIRECT_JANITOR_H
#define PEG_GATEWAY_DIRECT_JANITOR_H

/*
 * What goa-ai's agents, providers and registries leave on Redis for ever (spec: each of them was
 * seen): result streams that a late result made again, a hash for each call, and a field for each
 * call in a hash that agents read whole at every call. Streams and hashes get an expiry; fields of
 * consumers that have been silent for two of their graces are removed.
 */

struct bus;
struct direct_janitor;
struct gw_keeper_counts;

/* NULL: no memory. The counts outlive it. */
struct direct_janitor *direct_janitor_new(struct bus *bus, struct gw_keeper_counts *counts);
struct direct_janitor *direct_janitor_free(struct direct_janitor *janitor);
/* Goes on where the last round ended; does a bounded part of the work. */
void direct_janitor_round(struct direct_janitor *janitor);

#endif
