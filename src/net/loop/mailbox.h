/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_MAILBOX_H
#define PEG_NET_LOOP_MAILBOX_H

/*
 * Messages from many threads for one. Posting takes no lock and no memory: a message lies in its
 * sender's memory. The one reader takes all that is there at once.
 *
 *   if (net_mailbox_post(&mailbox, message))
 *       wake the reader
 *
 * A mailbox of all zeros is empty.
 */

#include <stdatomic.h>

#include "net/loop/loop.h"

struct net_mailbox {
    _Atomic(struct net_message *) last; /* each knows the one before it */
};

/* Any thread. True if it was empty: whoever posts then wakes the reader, all others need not. */
bool net_mailbox_post(struct net_mailbox *mailbox, struct net_message *message);
/* Any thread. Whoever sees a message may take it later; the answer may be old otherwise. */
bool net_mailbox_is_empty(const struct net_mailbox *mailbox);
/* The reader: a list in the order of posting, or NULL. */
struct net_message *net_mailbox_take_all(struct net_mailbox *mailbox);

#endif
