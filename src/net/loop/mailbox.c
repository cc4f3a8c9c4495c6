/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stack that grows by compare-and-swap and is taken whole by an exchange, so that nobody ever
 * looks into a message that another thread may have taken (no ABA). The reader turns it round.
 */

#include "net/loop/mailbox.h"

bool net_mailbox_post(struct net_mailbox *mailbox, struct net_message *message)
{
    struct net_message *before = atomic_load_explicit(&mailbox->last, memory_order_relaxed);

    do {
        message->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->last, &before, message,
                                                    memory_order_release, memory_order_relaxed));
    /* Not message->next: the message is the reader's now. */
    return !before;
}

bool net_mailbox_is_empty(const struct net_mailbox *mailbox)
{
    return !atomic_load_explicit(&mailbox->last, memory_order_relaxed);
}

struct net_message *net_mailbox_take_all(struct net_mailbox *mailbox)
{
    struct net_message *message;
    struct net_message *first = NULL;

    /* An exchange is a locked instruction, and the mailbox is empty in most rounds. */
    if (net_mailbox_is_empty(mailbox))
        return NULL;
    message = atomic_exchange_explicit(&mailbox->last, NULL, memory_order_acquire);
    while (message) {
        struct net_message *before = message->next;

        message->next = first;
        first = message;
        message = before;
    }
    return first;
}
