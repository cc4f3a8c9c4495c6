/* SPDX-License-Identifier: Apache-2.0 */

#include "base/observers.h"

void peg__observers_destroy(struct peg__observers *bell)
{
    pthread_cond_destroy(&bell->idle);
    pthread_mutex_destroy(&bell->lock);
}

/* At the front, so that a ring that is under way does not meet it. */
void peg__observers_add(struct peg__observers *bell, struct peg__observer *hook)
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

void peg__observers_remove(struct peg__observers *bell, struct peg__observer *hook)
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
void peg__observers_notify(struct peg__observers *bell)
{
    pthread_mutex_lock(&bell->lock);
    for (struct peg__observer *hook = bell->first; hook; hook = hook->next) {
        hook->n_calls++;
        pthread_mutex_unlock(&bell->lock);
        hook->fn(hook->user);
        pthread_mutex_lock(&bell->lock);
        if (--hook->n_calls == 0)
            pthread_cond_broadcast(&bell->idle);
    }
    pthread_mutex_unlock(&bell->lock);
}

size_t peg__observers_len(struct peg__observers *bell)
{
    size_t n;

    pthread_mutex_lock(&bell->lock);
    n = bell->n_hooks;
    pthread_mutex_unlock(&bell->lock);
    return n;
}
