/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded into redis-server and gateways: the wall clock is off by as many nanoseconds as the
 * file $CLOCK_STEP_FILE has in its first eight bytes, at once when it is written. Monotonic clocks
 * go on as they do. Debian's libfaketime does the same, but not with jemalloc, which asks for the
 * time before libfaketime is ready: redis-server does not start with it.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

/* All else of Pegboard is hidden unless it is public, and what is hidden replaces nothing. */
#define REPLACES __attribute__((visibility("default")))

static const volatile int64_t *step_ns; /* NULL: the clock is right */

__attribute__((constructor)) static void map_step(void)
{
    const char *path = secure_getenv("CLOCK_STEP_FILE");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped =
        fd >= 0 ? mmap(NULL, sizeof(*step_ns), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (mapped != MAP_FAILED)
        step_ns = mapped;
    if (fd >= 0)
        close(fd);
}

static void add_step(struct timespec *time)
{
    const int64_t ns = (int64_t)time->tv_nsec + (step_ns ? *step_ns : 0);
    const int64_t carried = ns >= 0 ? ns / NS_PER_S : -((NS_PER_S - 1 - ns) / NS_PER_S);

    time->tv_sec += carried;
    time->tv_nsec = ns - carried * NS_PER_S;
}

REPLACES int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    const int result = (int)syscall(SYS_clock_gettime, clock_id, tp);

    if (result == 0 && (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE))
        add_step(tp);
    return result;
}

REPLACES int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec now;

    (void)tz;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    tv->tv_sec = now.tv_sec;
    tv->tv_usec = now.tv_nsec / NS_PER_US;
    return 0;
}

REPLACES time_t time(time_t *timer)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (timer)
        *timer = now.tv_sec;
    return now.tv_sec;
}
