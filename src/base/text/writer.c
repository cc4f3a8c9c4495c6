/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/writer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text/str.h"

enum {
    PIECE_BYTES = 4096, /* what a pipe takes at once when it says that it takes something */
    POLL_MS = 100,
};

bool peg__writer_start(struct peg__writer *writer, void *(*fn)(void *user), void *user)
{
    sigset_t all;
    sigset_t before;
    int failed;

    writer->left_ms = PEG__WRITER_LAST_MS;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&writer->thread, NULL, fn, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

bool peg__writer_takes(struct peg__writer *writer, int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    for (;;) {
        const int n = poll(&poll_fd, 1, POLL_MS);

        atomic_fetch_add(&writer->n_looks, 1);
        if (n > 0)
            return (poll_fd.revents & POLLOUT) != 0;
        if (n < 0 && errno != EINTR)
            return false;
        if (n == 0 && atomic_load(&writer->is_over) && (writer->left_ms -= POLL_MS) <= 0)
            return false;
    }
}

size_t peg__writer_write(struct peg__writer *writer, int fd, peg_str text)
{
    const size_t len = text.len;
    struct stat st;
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

    while (text.len) {
        const size_t want = is_file || text.len < PIECE_BYTES ? text.len : PIECE_BYTES;
        ssize_t n;

        if (!is_file && !peg__writer_takes(writer, fd))
            break;
        n = write(fd, text.ptr, want);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            break;
        text = peg__str_from(text, (size_t)n);
    }
    return len - text.len;
}

/* A terminal says that it takes bytes when it takes one, and a write of more then sleeps until
 * somebody reads. False: the thread does. */
static bool join_at_terminal(struct peg__writer *writer)
{
    for (;;) {
        const unsigned n_looks = atomic_load(&writer->n_looks);
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PEG__WRITER_LAST_MS / 1000;
        if (pthread_timedjoin_np(writer->thread, NULL, &until) == 0)
            return true;
        if (atomic_load(&writer->n_looks) == n_looks)
            return false;
    }
}

bool peg__writer_join(struct peg__writer *writer, int fd)
{
    if (!isatty(fd)) {
        pthread_join(writer->thread, NULL);
        return true;
    }
    if (join_at_terminal(writer))
        return true;
    pthread_detach(writer->thread);
    return false;
}
