/* SPDX-License-Identifier: Apache-2.0 */

#include "base/observers.h"

void peg__observers_destroy(struct peg__observers *observers)
{
    pthread_cond_destroy(&observers->idle);
    pthread_mutex_destroy(&observers->lock);
}

/* At the front, so that a notification that is under way does not meet it. */
void peg__observers_add(struct peg__observers *observers, struct peg__observer *observer)
{
    observer->prev = NULL;
    observer->n_calls = 0;
    pthread_mutex_lock(&observers->lock);
    observer->next = observers->first;
    if (observers->first)
        observers->first->prev = observer;
    observers->first = observer;
    observers->n++;
    pthread_mutex_unlock(&observers->lock);
}

void peg__observers_remove(struct peg__observers *observers, struct peg__observer *observer)
{
    pthread_mutex_lock(&observers->lock);
    while (observer->n_calls > 0)
        pthread_cond_wait(&observers->idle, &observers->lock);
    if (observer->prev)
        observer->prev->next = observer->next;
    else
        observers->first = observer->next;
    if (observer->next)
        observer->next->prev = observer->prev;
    observers->n--;
    pthread_mutex_unlock(&observers->lock);
}

/* While fn runs its observer stays in the list, because its removal waits: `next` is good. */
void peg__observers_notify(struct peg__observers *observers)
{
    pthread_mutex_lock(&observers->lock);
    for (struct peg__observer *observer = observers->first; observer; observer = observer->next) {
        observer->n_calls++;
        pthread_mutex_unlock(&observers->lock);
        observer->fn(observer->user);
        pthread_mutex_lock(&observers->lock);
        if (--observer->n_calls == 0)
            pthread_cond_broadcast(&observers->idle);
    }
    pthread_mutex_unlock(&observers->lock);
}

size_t peg__observers_len(struct peg__observers *observers)
{
    size_t n;

    pthread_mutex_lock(&observers->lock);
    n = observers->n;
    pthread_mutex_unlock(&observers->lock);
    return n;
}
