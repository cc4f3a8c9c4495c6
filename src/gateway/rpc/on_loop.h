/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_ON_LOOP_H
#define PEG_GATEWAY_RPC_ON_LOOP_H

/* Does something on a loop and waits until it is done: for starting and ending a node, from a
 * thread that is none of its loops'. */

#include "net/loop/loop.h"

void gw_on_loop(struct net_loop *loop, void (*fn)(void *user), void *user);

#endif
