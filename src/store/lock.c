/* SPDX-License-Identifier: Apache-2.0 */

#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"

/* Who holds it, as it wrote; 0 if it has not yet, or could not. */
static long read_holder(int fd)
{
    char text[24] = "";

    if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    return strtol(text, NULL, 10);
}

/* A disk that is full must not keep a store from being read: without the number others are told
 * less. */
static void write_holder(int fd)
{
    char text[24];
    const int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0)
        return;
}

static peg_status fail_locked(const char *path, int fd, peg_error *reterr)
{
    const long holder = read_holder(fd);
    char who[40] = "another process";

    if (holder > 0)
        snprintf(who, sizeof(who), "process %ld", holder);
    return peg__fail(reterr, PEG_ESTATE, "E_STORE_LOCKED",
                     "the store '%.160s' is in use by %s: stop that one, or choose another file",
                     path, who);
}

/* Behind all symbolic links, so that a file has one lock whatever it is called. */
peg_status store_lock(const char *path, int *ret_fd, peg_error *reterr)
{
    char real[PATH_MAX];
    char name[PATH_MAX + 8];
    int fd;

    if (!realpath(path, real))
        return peg__fail(reterr, PEG_EIO, "E_STORE", "the store '%.160s' cannot be found: %m",
                         path);
    snprintf(name, sizeof(name), "%s-lock", real);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "the store '%.120s' cannot be locked, for the file '%.100s' beside it "
                         "cannot be opened: %m",
                         path, name);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const peg_status status =
            errno == EWOULDBLOCK
                ? fail_locked(path, fd, reterr)
                : peg__fail(reterr, PEG_EIO, "E_STORE",
                            "the store '%.160s' cannot be locked: %m; use a local disk", path);

        close(fd);
        return status;
    }
    write_holder(fd);
    *ret_fd = fd;
    return PEG_OK;
}

void store_unlock(int fd)
{
    if (fd >= 0)
        close(fd);
}
