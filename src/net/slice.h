/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_SLICE_H
#define PEG_NET_SLICE_H

#include <stdint.h>

/*
 * How long this thread would like to run before another one has its turn on the processor, 0.1 to
 * 100 ms. A thread that wakes and asks for less than the one that runs is let in at once, and need
 * not wait for the end of its slice. Linux 6.12 and later; elsewhere it changes nothing. Threads
 * inherit it from the one that starts them.
 */
void net_slice_ask(int64_t slice_ns);

/* A loop works for some microseconds at a time, and somebody waits for each of them. */
enum { NET_SLICE_OF_LOOPS_NS = 100000 };
/* What only computes. */
enum { NET_SLICE_OF_WORK_NS = 3000000 };

#endif
