/* SPDX-License-Identifier: Apache-2.0 */

#include "net/slice.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sched_attr of the kernel, which Debian 12's glibc does not declare. */
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of SCHED_OTHER: its slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/* Who set another policy for the program knows better. */
void net_slice_ask(int64_t slice_ns)
{
    struct attributes asked = {
        .size = sizeof(asked), .policy = SCHED_OTHER, .runtime_ns = (uint64_t)slice_ns};

    if (sched_getscheduler(0) != SCHED_OTHER)
        return;
    errno = 0;
    asked.nice = getpriority(PRIO_PROCESS, 0);
    if (!errno)
        (void)syscall(SYS_sched_setattr, 0, &asked, 0);
}
