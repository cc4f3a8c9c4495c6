/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What happens, told to the host: one event at a time, mostly on the thread it happened on. A
 * worker waits for its turn. The loop does not: a host that is slow over one event must not keep
 * pings, results and the end waiting. What the loop has to tell meanwhile is copied, and whoever
 * tells tells it next.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "remote/provider/provider.h"

/* Owned by the list; its strings lie behind it. */
struct remote__prov_untold {
    struct remote__prov_untold *next;
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

static struct remote__prov_untold *copy_event(const peg_provider_event *event)
{
    peg_provider_event copy = *event;
    struct remote__prov_untold *untold;
    const char **string;
    size_t n_bytes = 0;
    char *at;

    for (unsigned i = 0; (string = string_of(&copy, i)); i++)
        n_bytes += strlen(*string) + 1;
    untold = peg__alloc(sizeof(*untold) + n_bytes);
    if (!untold)
        return NULL;
    at = untold->text;
    for (unsigned i = 0; (string = string_of(&copy, i)); i++) {
        const size_t size = strlen(*string) + 1;

        memcpy(at, *string, size);
        *string = at;
        at += size;
    }
    untold->event = copy;
    untold->next = NULL;
    return untold;
}

/* With the lock. One that finds no room or no memory is not told: nothing depends on it. */
static void tell_later(struct remote__prov_events *events, const peg_provider_event *event)
{
    struct remote__prov_untold *untold =
        events->n_untold < PEG_LIMIT_REMOTE_EVENTS ? copy_event(event) : NULL;

    if (!untold)
        return;
    if (events->last)
        events->last->next = untold;
    else
        events->first = untold;
    events->last = untold;
    events->n_untold++;
}

/* With the lock. */
static struct remote__prov_untold *take_first(struct remote__prov_events *events)
{
    struct remote__prov_untold *untold = events->first;

    if (!untold)
        return NULL;
    events->first = untold->next;
    if (!events->first)
        events->last = NULL;
    events->n_untold--;
    return untold;
}

/* The loop. False: somebody tells, and tells this one as well. */
static bool take_turn_now(struct remote__prov_events *events, const peg_provider_event *event)
{
    bool is_ours;

    pthread_mutex_lock(&events->lock);
    is_ours = !events->is_telling;
    if (is_ours)
        events->is_telling = true;
    else
        tell_later(events, event);
    pthread_mutex_unlock(&events->lock);
    return is_ours;
}

static void await_turn(struct remote__prov_events *events)
{
    pthread_mutex_lock(&events->lock);
    while (events->is_telling)
        pthread_cond_wait(&events->is_free, &events->lock);
    events->is_telling = true;
    pthread_mutex_unlock(&events->lock);
}

/* With what the loop had to tell meanwhile. */
static void end_turn(peg_provider *prov)
{
    struct remote__prov_events *events = &prov->events;
    struct remote__prov_untold *untold;

    pthread_mutex_lock(&events->lock);
    while ((untold = take_first(events))) {
        pthread_mutex_unlock(&events->lock);
        prov->config.on_event(&untold->event, prov->config.user);
        peg__free(untold);
        pthread_mutex_lock(&events->lock);
    }
    events->is_telling = false;
    pthread_mutex_unlock(&events->lock);
    pthread_cond_signal(&events->is_free); /* the lock is free for who is woken */
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static peg_provider_event fill_in(const peg_provider *prov, const peg_provider_event *event)
{
    peg_provider_event told = *event;
    const char **string;

    told.toolset = prov->config.toolset;
    for (unsigned i = 0; (string = string_of(&told, i)); i++)
        *string = or_empty(*string);
    return told;
}

void remote__prov_notify(peg_provider *prov, const peg_provider_event *event)
{
    const peg_provider_event told = fill_in(prov, event);

    if (!prov->config.on_event || !take_turn_now(&prov->events, &told))
        return;
    prov->config.on_event(&told, prov->config.user);
    end_turn(prov);
}

void remote__prov_notify_in_order(peg_provider *prov, const peg_provider_event *event)
{
    const peg_provider_event told = fill_in(prov, event);

    if (!prov->config.on_event)
        return;
    await_turn(&prov->events);
    prov->config.on_event(&told, prov->config.user);
    end_turn(prov);
}

void remote__prov_events_init(struct remote__prov_events *events)
{
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->is_free, NULL);
}

/* Nobody tells any more, and whoever told last has left nothing. */
void remote__prov_events_destroy(struct remote__prov_events *events)
{
    pthread_cond_destroy(&events->is_free);
    pthread_mutex_destroy(&events->lock);
}
