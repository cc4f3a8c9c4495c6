/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reports events to the host, one at a time, mostly on the thread of the event. A worker waits for
 * its turn. The loop does not, because a slow host must not block pings, results and the end: its
 * event is copied, and the thread that is reporting reports it next.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "remote/provider/provider.h"

/* Owned by the list; its strings lie behind it. */
struct remote__prov_pending_event {
    struct remote__prov_pending_event *next;
    peg_provider_event event;
    char text[];
};

/* All that an event points to, but for the toolset, which is the provider's. */
static const char **string_of(peg_provider_event *event, unsigned i)
{
    const char **strings[] = {&event->address, &event->tool, &event->call_id,
                              &event->caller,  &event->code, &event->message};

    return i < sizeof(strings) / sizeof(strings[0]) ? strings[i] : NULL;
}

static struct remote__prov_pending_event *copy_event(const peg_provider_event *event)
{
    peg_provider_event copy = *event;
    struct remote__prov_pending_event *pending;
    const char **string;
    size_t n_bytes = 0;
    char *at;

    for (unsigned i = 0; (string = string_of(&copy, i)); i++)
        n_bytes += strlen(*string) + 1;
    pending = peg__alloc(sizeof(*pending) + n_bytes);
    if (!pending)
        return NULL;
    at = pending->text;
    for (unsigned i = 0; (string = string_of(&copy, i)); i++) {
        const size_t size = strlen(*string) + 1;

        memcpy(at, *string, size);
        *string = at;
        at += size;
    }
    pending->event = copy;
    pending->next = NULL;
    return pending;
}

/* With the lock. One that finds no room or no memory is not complete: nothing depends on it. */
static void queue_event(struct remote__prov_events *events, const peg_provider_event *event)
{
    struct remote__prov_pending_event *pending =
        events->n_pending < PEG_LIMIT_REMOTE_EVENTS ? copy_event(event) : NULL;

    if (!pending)
        return;
    if (events->last)
        events->last->next = pending;
    else
        events->first = pending;
    events->last = pending;
    events->n_pending++;
}

/* With the lock. */
static struct remote__prov_pending_event *take_first_event(struct remote__prov_events *events)
{
    struct remote__prov_pending_event *pending = events->first;

    if (!pending)
        return NULL;
    events->first = pending->next;
    if (!events->first)
        events->last = NULL;
    events->n_pending--;
    return pending;
}

/* The loop. False: another thread is reporting, and will report this one. */
static bool take_turn_now(struct remote__prov_events *events, const peg_provider_event *event)
{
    bool is_ours;

    pthread_mutex_lock(&events->lock);
    is_ours = !events->is_reporting;
    if (is_ours)
        events->is_reporting = true;
    else
        queue_event(events, event);
    pthread_mutex_unlock(&events->lock);
    return is_ours;
}

static void await_turn(struct remote__prov_events *events)
{
    pthread_mutex_lock(&events->lock);
    while (events->is_reporting)
        pthread_cond_wait(&events->is_free, &events->lock);
    events->is_reporting = true;
    pthread_mutex_unlock(&events->lock);
}

/* With the events that the loop has queued meanwhile. */
static void end_turn(peg_provider *prov)
{
    struct remote__prov_events *events = &prov->events;
    struct remote__prov_pending_event *pending;

    pthread_mutex_lock(&events->lock);
    while ((pending = take_first_event(events))) {
        pthread_mutex_unlock(&events->lock);
        prov->config.on_event(&pending->event, prov->config.user);
        peg__free(pending);
        pthread_mutex_lock(&events->lock);
    }
    events->is_reporting = false;
    pthread_mutex_unlock(&events->lock);
    pthread_cond_signal(&events->is_free); /* behind the lock, which the woken thread takes */
}

static peg_provider_event complete_event(const peg_provider *prov, const peg_provider_event *event)
{
    peg_provider_event complete = *event;
    const char **string;

    complete.toolset = prov->config.toolset;
    for (unsigned i = 0; (string = string_of(&complete, i)); i++)
        *string = *string ? *string : "";
    return complete;
}

void remote__prov_notify(peg_provider *prov, const peg_provider_event *event)
{
    const peg_provider_event complete = complete_event(prov, event);

    if (!prov->config.on_event || !take_turn_now(&prov->events, &complete))
        return;
    prov->config.on_event(&complete, prov->config.user);
    end_turn(prov);
}

void remote__prov_notify_in_order(peg_provider *prov, const peg_provider_event *event)
{
    const peg_provider_event complete = complete_event(prov, event);

    if (!prov->config.on_event)
        return;
    await_turn(&prov->events);
    prov->config.on_event(&complete, prov->config.user);
    end_turn(prov);
}

void remote__prov_events_init(struct remote__prov_events *events)
{
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->is_free, NULL);
}

/* No thread reports any more, and none of its events is pending. */
void remote__prov_events_destroy(struct remote__prov_events *events)
{
    pthread_cond_destroy(&events->is_free);
    pthread_mutex_destroy(&events->lock);
}
