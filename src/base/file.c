/* SPDX-License-Identifier: Apache-2.0 */

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

bool peg__file_write_all(int fd, peg_str bytes)
{
    size_t done = 0;

    while (done < bytes.len) {
        const ssize_t n = write(fd, bytes.ptr + done, bytes.len - done);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            done += (size_t)n;
    }
    return true;
}

/* A directory that was just made is lost in a crash unless its parent is on the disk too. */
static bool sync_parent(int fd)
{
    const int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_done;

    if (parent < 0)
        return false;
    is_done = fsync(parent) == 0;
    close(parent);
    return is_done;
}

/* NULL if it is the owner's alone: another writer could replace what it holds. */
static const char *find_fault(int fd, bool is_new)
{
    struct stat about;

    if (is_new && !sync_parent(fd))
        return "cannot be made to last";
    if (fstat(fd, &about) != 0)
        return "cannot be opened";
    errno = 0; /* what follows is no error of the system */
    if (about.st_uid != geteuid())
        return "belongs to another user; choose one of your own";
    if (about.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written to by others; make it mode 0700";
    return NULL;
}

peg_status peg__directory_open(const char *path, const char *what, const char *code, int *ret_fd,
                               peg_error *reterr)
{
    const bool is_new = mkdir(path, 0700) == 0;
    const char *fault = NULL;
    int fd = -1;

    if (!is_new && errno != EEXIST)
        fault = "cannot be made";
    else if ((fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        fault = "cannot be opened; it is no directory, or it is a link";
    else
        fault = find_fault(fd, is_new);
    if (!fault) {
        *ret_fd = fd;
        return PEG_OK;
    }
    if (errno)
        peg__fail(reterr, PEG_EIO, code, "%s '%.128s' %s: %m", what, path, fault);
    else
        peg__fail(reterr, PEG_EIO, code, "%s '%.128s' %s", what, path, fault);
    if (fd >= 0)
        close(fd);
    return PEG_EIO;
}

bool peg__directory_lock(int fd, int how)
{
    int result;

    do
        result = flock(fd, how);
    while (result != 0 && errno == EINTR);
    return result == 0;
}
