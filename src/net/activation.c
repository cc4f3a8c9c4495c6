/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets from systemd: LISTEN_FDS of them from descriptor 3 on, for the process LISTEN_PID. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/listener.h"

enum { FIRST_FD = 3 };

/* A plain number above 0, or 0. */
static long read_number(const char *text)
{
    char *end;
    long number;

    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtol(text, &end, 10);
    return errno || *end ? 0 : number;
}

/* The environment is the program's own at its start: the contract says when to call this. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */
size_t net_activated_sockets(int *ret_fds, size_t max)
{
    const bool is_ours = read_number(getenv("LISTEN_PID")) == (long)getpid();
    const long n_told = is_ours ? read_number(getenv("LISTEN_FDS")) : 0;
    size_t n = 0;

    /* Our children were not meant. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");

    for (int fd = FIRST_FD; fd - FIRST_FD < n_told; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            break; /* there are fewer than was said */
        if (n < max)
            ret_fds[n] = fd;
        n++;
    }
    return n;
}
/* NOLINTEND(concurrency-mt-unsafe) */
