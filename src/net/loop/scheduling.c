/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/loop/internal.h"

/* struct sched_attr of the kernel, which Debian 12's glibc does not declare. */
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of SCHED_OTHER and SCHED_BATCH: its slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

enum { OF_LOOP_NS = 100000, OF_WORK_NS = 3000000 };

static void set_scheduling(uint32_t policy, int nice, uint64_t slice_ns)
{
    struct attributes asked = {
        .size = sizeof(asked), .policy = policy, .nice = nice, .runtime_ns = slice_ns};

    const struct sched_param none = {0};

    if (syscall(SYS_sched_setattr, 0, &asked, 0) == 0)
        return;
    (void)sched_setscheduler(0, (int)policy, &none);
    (void)setpriority(PRIO_PROCESS, 0, nice); /* of this thread */
}

/* False if this thread has no time slices. */
static bool get_scheduling(int *ret_policy, int *ret_nice)
{
    const int policy = sched_getscheduler(0);

    errno = 0;
    *ret_policy = policy & ~SCHED_RESET_ON_FORK;
    *ret_nice = getpriority(PRIO_PROCESS, 0); /* of this thread */
    return errno == 0 && policy >= 0 && (*ret_policy == SCHED_OTHER || *ret_policy == SCHED_BATCH);
}

void net_schedule_loop(void)
{
    int policy;
    int nice;

    if (get_scheduling(&policy, &nice))
        set_scheduling((uint32_t)policy, nice, OF_LOOP_NS);
}

void net_schedule_worker(int nice)
{
    int policy;
    int now;

    if (get_scheduling(&policy, &now))
        set_scheduling(SCHED_BATCH, nice > now ? nice : now, OF_WORK_NS);
}
