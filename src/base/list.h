/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIST_H
#define PEG_BASE_LIST_H

/* Doubly linked lists through two members of their items, whose names are given: `next`, `prev`. */

#include <stddef.h>

/* At the front of a list that has a first item only. */
#define PEG_LIST_PUSH(first, item, next, prev)                                                     \
    do {                                                                                           \
        (item)->prev = NULL;                                                                       \
        (item)->next = (first);                                                                    \
        if ((item)->next)                                                                          \
            (item)->next->prev = (item);                                                           \
        (first) = (item);                                                                          \
    } while (0)

/* The members of the item stay as they were. */
#define PEG_LIST_REMOVE(first, item, next, prev)                                                   \
    do {                                                                                           \
        if ((item)->prev)                                                                          \
            (item)->prev->next = (item)->next;                                                     \
        else                                                                                       \
            (first) = (item)->next;                                                                \
        if ((item)->next)                                                                          \
            (item)->next->prev = (item)->prev;                                                     \
    } while (0)

/* At the end of a queue: a struct with `first` and `last`. */
#define PEG_QUEUE_APPEND(queue, item, next, prev)                                                  \
    do {                                                                                           \
        (item)->next = NULL;                                                                       \
        (item)->prev = (queue)->last;                                                              \
        if ((item)->prev)                                                                          \
            (item)->prev->next = (item);                                                           \
        else                                                                                       \
            (queue)->first = (item);                                                               \
        (queue)->last = (item);                                                                    \
    } while (0)

#define PEG_QUEUE_REMOVE(queue, item, next, prev)                                                  \
    do {                                                                                           \
        if (!(item)->next)                                                                         \
            (queue)->last = (item)->prev;                                                          \
        PEG_LIST_REMOVE((queue)->first, item, next, prev);                                         \
    } while (0)

#endif
