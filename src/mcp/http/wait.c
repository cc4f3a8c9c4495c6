/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads that wait for answers. Handlers report to all of them together, so one leads: it is woken
 * by reports, takes them all, and wakes those that they are for. A leader that leaves makes another
 * one lead; where none waits, reports are taken with the next request.
 */

#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "mcp/http/internal.h"

int64_t mcp__now_ms(void)
{
    return peg__mono_ns() / PEG_NS_PER_MS;
}

void mcp_web_wake(struct mcp_web *web)
{
    pthread_mutex_lock(&web->wait_lock);
    web->has_reports = true;
    if (web->leader)
        pthread_cond_signal(&web->leader->woken);
    pthread_cond_signal(&web->reported);
    pthread_mutex_unlock(&web->wait_lock);
}

void mcp__wake(struct mcp__exchange *exchange)
{
    struct mcp_web *web = exchange->client->web;

    pthread_mutex_lock(&web->wait_lock);
    exchange->has_news = true;
    pthread_cond_signal(&exchange->woken);
    pthread_mutex_unlock(&web->wait_lock);
}

static struct timespec time_of(int64_t ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * PEG_NS_PER_MS};
}

bool mcp__wait(struct mcp__exchange *exchange, int64_t until_ms, int64_t due_ms)
{
    struct mcp_web *web = exchange->client->web;
    struct timespec until = time_of(until_ms);
    bool leads;

    pthread_mutex_lock(&web->wait_lock);
    PEG_LIST_PUSH(web->waiting, exchange, next_waiting, prev_waiting);
    if (!web->leader) {
        web->leader = exchange;
        until = time_of(due_ms < until_ms ? due_ms : until_ms);
    }
    while (!exchange->has_news && !(web->leader == exchange && web->has_reports) &&
           pthread_cond_timedwait(&exchange->woken, &web->wait_lock, &until) == 0)
        ;
    PEG_LIST_REMOVE(web->waiting, exchange, next_waiting, prev_waiting);
    leads = web->leader == exchange;
    if (leads) {
        web->leader = NULL;
        web->has_reports = false;
    }
    exchange->has_news = false;
    pthread_mutex_unlock(&web->wait_lock);
    return leads;
}

/* The next one is woken, as it waits for less than a leader does. */
void mcp__resign(struct mcp_web *web)
{
    pthread_mutex_lock(&web->wait_lock);
    if (!web->leader && web->waiting) {
        web->leader = web->waiting;
        web->leader->has_news = true;
        pthread_cond_signal(&web->leader->woken);
    }
    pthread_mutex_unlock(&web->wait_lock);
}
