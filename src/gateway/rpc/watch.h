/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_WATCH_H
#define PEG_GATEWAY_RPC_WATCH_H

/* The Watch streams of one loop: what the catalog holds, then each change of it. A reader that is
 * too slow is told that it lost something, and starts over: none holds more than a bounded queue.
 */

#include "gateway/calls/calls.h"

struct gw_auth;
struct gw_watches;

peg_status gw_watches_new(struct gw_calls *desk, struct gw_watches **ret_watches,
                          peg_error *reterr);
struct gw_watches *gw_watches_free(struct gw_watches *watches);

/* The desk has a new snapshot; its first one too. NULL for watches is nobody. */
void gw_watches_on_snapshot(struct gw_watches *watches, struct gw_snapshot *snapshot);
/* The health of a toolset, or who provides it, has changed. */
void gw_watches_on_health(struct gw_watches *watches, peg_str toolset);
/* Ends the streams of those who are not known any more (unauthenticated). */
void gw_watches_end_strangers(struct gw_watches *watches, const struct gw_auth *auth);
/* The node goes: every stream ends (service_unavailable). */
void gw_watches_close(struct gw_watches *watches);

#endif
