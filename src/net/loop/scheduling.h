/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LOOP_SCHEDULING_H
#define PEG_NET_LOOP_SCHEDULING_H

/*
 * How this thread shares the processors. A loop works for some microseconds at a time, and somebody
 * waits for each of them: it asks for short slices, and with Linux 6.12 or later is let in at once
 * when it wakes while a thread runs that asked for longer ones. One that only computes asks for
 * those, and when it wakes it waits until who runs has done (SCHED_BATCH), or else the loop that
 * gives it something to do would lose its processor to it. Threads inherit this from the one that
 * starts them. Whoever made the program one of real time, say, knows better: that stays.
 */
void net_schedule_loop(void);
/* Takes what everybody else leaves, if `nice` is above 0 (see nice(2)). */
void net_schedule_worker(int nice);

#endif
