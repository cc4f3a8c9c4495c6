/* SPDX-License-Identifier: Apache-2.0 */

#include "base/bell.h"

void peg__bell_destroy(struct peg__bell *bell)
{
    pthread_cond_destroy(&bell->idle);
    pthread_mutex_destroy(&bell->lock);
}

/* At the front, so that a ring that is under way does not meet it. */
void peg__bell_hang(struct peg__bell *bell, struct peg__bell_hook *hook)
{
    hook->prev = NULL;
    hook->n_calls = 0;
    pthread_mutex_lock(&bell->lock);
    hook->next = bell->first;
    if (bell->first)
        bell->first->prev = hook;
    bell->first = hook;
    bell->n_hooks++;
    pthread_mutex_unlock(&bell->lock);
}

void peg__bell_take_down(struct peg__bell *bell, struct peg__bell_hook *hook)
{
    pthread_mutex_lock(&bell->lock);
    while (hook->n_calls > 0)
        pthread_cond_wait(&bell->idle, &bell->lock);
    if (hook->prev)
        hook->prev->next = hook->next;
    else
        bell->first = hook->next;
    if (hook->next)
        hook->next->prev = hook->prev;
    bell->n_hooks--;
    pthread_mutex_unlock(&bell->lock);
}

/* While fn runs its hook stays in the list, because taking it down waits: `next` is good. */
void peg__bell_ring(struct peg__bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    for (struct peg__bell_hook *hook = bell->first; hook; hook = hook->next) {
        hook->n_calls++;
        pthread_mutex_unlock(&bell->lock);
        hook->fn(hook->user);
        pthread_mutex_lock(&bell->lock);
        if (--hook->n_calls == 0)
            pthread_cond_broadcast(&bell->idle);
    }
    pthread_mutex_unlock(&bell->lock);
}

size_t peg__bell_len(struct peg__bell *bell)
{
    size_t n;

    pthread_mutex_lock(&bell->lock);
    n = bell->n_hooks;
    pthread_mutex_unlock(&bell->lock);
    return n;
}
