/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_WATCH_QUEUE_H
#define PEG_GATEWAY_RPC_WATCH_QUEUE_H

/* Changes that wait for one reader of Watch: PEG_LIMIT_GATEWAY_WATCH_EVENTS at most. All zeroes is
 * an empty one. */

#include "base/blob.h"
#include "gateway/catalog/catalog.h"

struct gw_watch_event {
    int kind;                   /* of pegboard.v1.WatchResponse */
    struct gw_toolset *toolset; /* a reference; NULL: it is gone, or the event is of none */
    struct peg__blob *name;     /* of one that is gone */
    uint64_t place;             /* catalog/changes.h */
};
void gw_watch_event_drop(const struct gw_watch_event *event);

struct gw_watch_queue {
    struct gw_watch_event *events; /* a ring */
    size_t first;
    size_t n;
    size_t capacity;
};
/* Takes the event. False: no memory, or it is full, and the event was dropped. */
bool gw_watch_queue_put(struct gw_watch_queue *queue, const struct gw_watch_event *event);
/* The first one, which is the caller's from now on. False: it is empty. */
bool gw_watch_queue_take(struct gw_watch_queue *queue, struct gw_watch_event *ret_event);
void gw_watch_queue_clear(struct gw_watch_queue *queue);

#endif
