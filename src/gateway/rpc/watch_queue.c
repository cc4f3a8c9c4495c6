/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/watch_queue.h"

#include "base/limits.h"
#include "base/mem.h"

void gw_watch_event_drop(const struct gw_watch_event *event)
{
    gw_toolset_unref(event->toolset);
    peg__blob_unref(event->name);
}

/* Behind the first one by so many. */
static struct gw_watch_event *event_at(const struct gw_watch_queue *queue, size_t i)
{
    const size_t at = queue->first + i;

    return &queue->events[at < queue->capacity ? at : at - queue->capacity];
}

bool gw_watch_queue_take(struct gw_watch_queue *queue, struct gw_watch_event *ret_event)
{
    if (queue->n == 0)
        return false;
    *ret_event = *event_at(queue, 0);
    queue->first = queue->first + 1 < queue->capacity ? queue->first + 1 : 0;
    queue->n--;
    return true;
}

void gw_watch_queue_clear(struct gw_watch_queue *queue)
{
    struct gw_watch_event event;

    while (gw_watch_queue_take(queue, &event))
        gw_watch_event_drop(&event);
    peg__free(queue->events);
    *queue = (struct gw_watch_queue){0};
}

/* The ring is unrolled into a larger one. */
static bool grow_queue(struct gw_watch_queue *queue)
{
    const size_t capacity = queue->capacity ? 2 * queue->capacity : 8;
    struct gw_watch_event *events;

    if (queue->n < queue->capacity)
        return true;
    if (queue->n >= PEG_LIMIT_GATEWAY_WATCH_EVENTS)
        return false;
    events = (struct gw_watch_event *)peg__alloc_zero(capacity, sizeof(*events));
    if (!events)
        return false;
    for (size_t i = 0; i < queue->n; i++)
        events[i] = *event_at(queue, i);
    peg__free(queue->events);
    queue->events = events;
    queue->first = 0;
    queue->capacity = capacity;
    return true;
}

bool gw_watch_queue_put(struct gw_watch_queue *queue, const struct gw_watch_event *event)
{
    if (!grow_queue(queue)) {
        gw_watch_event_drop(event);
        return false;
    }
    *event_at(queue, queue->n++) = *event;
    return true;
}
