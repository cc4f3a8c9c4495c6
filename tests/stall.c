/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Holds threads up, as a machine does that is slow or has others to serve: for tools/stall, which
 * loads this before a test. A thread may lose half a second wherever it asks the system for
 * something; here it does so now and then. What fails by that relied on time.
 *
 *   STALL_EVERY=N   one call in so many is held up, by chance (100)
 *   STALL_MOST=N    so many in one process (5): a test ends all the same
 *   STALL_MS=N      for so long at most, and half of that at least (1000)
 */

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static unsigned every = 100;
static unsigned longest_ms = 1000;
static atomic_uint n_left = 5;

static unsigned number_of(const char *name, unsigned usual)
{
    const char *text = getenv(name);
    const int n = text ? atoi(text) : 0;

    return n > 0 ? (unsigned)n : usual;
}

__attribute__((constructor)) static void read_settings(void)
{
    every = number_of("STALL_EVERY", every);
    longest_ms = number_of("STALL_MS", longest_ms);
    n_left = number_of("STALL_MOST", n_left);
}

/* Each thread has its own row of numbers, and each run another. */
static uint64_t any_number(void)
{
    static __thread uint64_t state;

    if (!state) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        state = ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)syscall(SYS_gettid)) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static _Bool takes_one(void)
{
    unsigned n = n_left;

    while (n > 0)
        if (atomic_compare_exchange_weak(&n_left, &n, n - 1))
            return 1;
    return 0;
}

static void stall(void)
{
    const int saved = errno;
    struct timespec pause;
    uint64_t ms;

    if (any_number() % every != 0 || !takes_one())
        return;
    ms = longest_ms / 2 + any_number() % (longest_ms / 2 + 1);
    pause =
        (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
    while (syscall(SYS_nanosleep, &pause, &pause) != 0 && errno == EINTR)
        continue;
    errno = saved;
}

/* Before and after: what a thread was about to do is late, or what it has just learned is old. */
#define HOLD_UP(type, name, parameters, arguments)                                                 \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        type result;                                                                               \
                                                                                                   \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        stall();                                                                                   \
        result = real arguments;                                                                   \
        stall();                                                                                   \
        return result;                                                                             \
    }

HOLD_UP(int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms),
        (fd, events, max, ms))
HOLD_UP(int, epoll_pwait,
        (int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask),
        (fd, events, max, ms, mask))
HOLD_UP(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
HOLD_UP(ssize_t, read, (int fd, void *bytes, size_t n), (fd, bytes, n))
HOLD_UP(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
HOLD_UP(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
HOLD_UP(ssize_t, recv, (int fd, void *bytes, size_t n, int flags), (fd, bytes, n, flags))
HOLD_UP(ssize_t, send, (int fd, const void *bytes, size_t n, int flags), (fd, bytes, n, flags))
HOLD_UP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
HOLD_UP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
HOLD_UP(int, connect, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len))
HOLD_UP(int, accept4, (int fd, struct sockaddr *address, socklen_t *len, int flags),
        (fd, address, len, flags))
HOLD_UP(int, nanosleep, (const struct timespec *pause, struct timespec *left), (pause, left))
HOLD_UP(int, sem_post, (sem_t * semaphore), (semaphore))
HOLD_UP(int, sem_wait, (sem_t * semaphore), (semaphore))
HOLD_UP(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
HOLD_UP(pid_t, fork, (void), ())
