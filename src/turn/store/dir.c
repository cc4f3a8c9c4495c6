/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each store holds a shared lock on its directory. An opener that gets the exclusive lock is alone,
 * and clears away what crashes left: new files without a name, and bytes of a removed turn.
 */

#include "turn/store/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/text/str.h"

#define NEW_PREFIX ".new-"
#define JSON ".json"
#define BYTES ".bytes"

enum { FILE_NAME = PEG__DIR_NAME + sizeof(BYTES) };

static peg_status fail(const struct peg__dir *dir, const char *name, const char *what,
                       peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_TURN_STORE", "'%.80s' in turn store '%.100s' %s: %m", name,
                     dir->path, what);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool stays(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           (c == '.' && !is_first);
}

static peg_status digest_name(peg_str id, char *ret_name)
{
    unsigned char digest[PEG_SHA256_BYTES];

    if (!peg__sha256(id, digest))
        return PEG_ENOMEM;
    ret_name[0] = '~';
    peg__hex(digest, sizeof(digest), ret_name + 1);
    return PEG_OK;
}

peg_status peg__dir_name(peg_str id, char ret_name[PEG__DIR_NAME + 1])
{
    size_t len = 0;

    for (size_t i = 0; i < id.len; i++) {
        const bool as_it_is = stays(id.ptr[i], i == 0);

        if (len + (as_it_is ? 1 : 3) > PEG__DIR_NAME)
            return digest_name(id, ret_name);
        if (as_it_is) {
            ret_name[len++] = id.ptr[i];
        } else {
            ret_name[len++] = '%';
            peg__hex((const unsigned char *)&id.ptr[i], 1, ret_name + len);
            len += 2;
        }
    }
    ret_name[len] = '\0';
    return PEG_OK;
}

static void file_name(char ret_file[FILE_NAME], const char *name, const char *ending)
{
    snprintf(ret_file, FILE_NAME, "%s%s", name, ending);
}

/* Does the file name end so? Then *ret_name is what comes before. */
static bool has_ending(const char *file, const char *ending, char ret_name[PEG__DIR_NAME + 1])
{
    const size_t len = strlen(file);
    const size_t ending_len = strlen(ending);

    if (file[0] == '.' || len <= ending_len || len - ending_len > PEG__DIR_NAME ||
        strcmp(file + len - ending_len, ending) != 0)
        return false;
    memcpy(ret_name, file, len - ending_len);
    ret_name[len - ending_len] = '\0';
    return true;
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* The same in each process: FNV-1a. */
static unsigned lock_of(const char *name)
{
    uint32_t hash = 2166136261U;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return hash % PEG__DIR_LOCKS;
}

static bool set_file_lock(struct peg__dir *dir, unsigned at, short how)
{
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int result;

    do
        result = fcntl(dir->lock_fd, F_OFD_SETLKW, &lock);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

peg_status peg__dir_lock(struct peg__dir *dir, peg_str id, bool is_shared,
                         char ret_name[PEG__DIR_NAME + 1], peg_error *reterr)
{
    unsigned at;

    if (peg__dir_name(id, ret_name))
        return peg__fail_nomem(reterr);
    at = lock_of(ret_name);
    pthread_mutex_lock(&dir->locks[at]);
    if (set_file_lock(dir, at, is_shared ? F_RDLCK : F_WRLCK))
        return PEG_OK;
    pthread_mutex_unlock(&dir->locks[at]);
    return fail(dir, ".lock", "cannot be locked", reterr);
}

void peg__dir_unlock(struct peg__dir *dir, const char *name)
{
    const unsigned at = lock_of(name);

    set_file_lock(dir, at, F_UNLCK);
    pthread_mutex_unlock(&dir->locks[at]);
}

/* ---- writing ------------------------------------------------------------------ */

/* All bytes in a new file and on the disk, or no file. */
static peg_status write_new(struct peg__dir *dir, const char *file, peg_str bytes,
                            peg_error *reterr)
{
    const int fd =
        openat(dir->fd, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    peg_status status = PEG_OK;

    if (fd < 0)
        return fail(dir, file, "cannot be made", reterr);
    if (!peg__file_write_all(fd, bytes) || fsync(fd) != 0)
        status = fail(dir, file, "cannot be written", reterr);
    if (close(fd) != 0 && !status)
        status = fail(dir, file, "cannot be written", reterr);
    if (status)
        unlinkat(dir->fd, file, 0);
    return status;
}

static peg_status sync_directory(struct peg__dir *dir, const char *file, peg_error *reterr)
{
    return fsync(dir->fd) == 0 ? PEG_OK : fail(dir, file, "may not outlive a crash", reterr);
}

peg_status peg__dir_write(struct peg__dir *dir, const char *name, peg_str bytes, peg_error *reterr)
{
    char fresh[sizeof(NEW_PREFIX) + PEG_ID_HEX_TEXT] = NEW_PREFIX;
    char file[FILE_NAME];
    peg_status status;

    if (!peg__id_hex(fresh + strlen(NEW_PREFIX)))
        return peg__fail_no_randomness(reterr);
    file_name(file, name, JSON);
    status = write_new(dir, fresh, bytes, reterr);
    if (status)
        return status;
    if (renameat(dir->fd, fresh, dir->fd, file) != 0) {
        status = fail(dir, file, "cannot be replaced", reterr);
        unlinkat(dir->fd, fresh, 0);
        return status;
    }
    return sync_directory(dir, file, reterr);
}

/* ---- reading ------------------------------------------------------------------ */

static bool read_all(int fd, char *bytes, size_t n, size_t *ret_len)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < n && got != 0) {
        got = read(fd, bytes + done, n - done);
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            done += (size_t)got;
    }
    *ret_len = done;
    return true;
}

static peg_status read_open(struct peg__dir *dir, int fd, const char *name, size_t max,
                            struct peg__dir_file *ret_file, peg_error *reterr)
{
    struct peg__dir_file file;
    struct stat about;
    size_t n;

    if (fstat(fd, &about) != 0)
        return fail(dir, name, "cannot be read", reterr);
    if (!S_ISREG(about.st_mode))
        return peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                         "'%.80s' in turn store '%.100s' is not a regular file: remove it", name,
                         dir->path);
    n = (uint64_t)about.st_size < max ? (size_t)about.st_size : max;
    file.bytes = peg__alloc(n + 1);
    if (!file.bytes)
        return peg__fail_nomem(reterr);
    if (!read_all(fd, file.bytes, n, &file.len)) {
        const peg_status status = fail(dir, name, "cannot be read", reterr);

        peg__free(file.bytes);
        return status;
    }
    file.bytes[file.len] = '\0';
    file.changed_ms = (int64_t)about.st_mtim.tv_sec * 1000 + about.st_mtim.tv_nsec / PEG_NS_PER_MS;
    *ret_file = file;
    return PEG_OK;
}

peg_status peg__dir_read(struct peg__dir *dir, const char *name, size_t max,
                         struct peg__dir_file *ret_file, peg_error *reterr)
{
    char file[FILE_NAME];
    peg_status status;
    int fd;

    file_name(file, name, JSON);
    fd = openat(dir->fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        *ret_file = (struct peg__dir_file){0};
        return PEG_OK;
    }
    if (fd < 0)
        return fail(dir, file, "cannot be opened", reterr);
    status = read_open(dir, fd, file, max, ret_file, reterr);
    close(fd);
    return status;
}

/* ---- going through, removing -------------------------------------------------- */

typedef peg_status (*entry_fn)(void *user, const char *file, peg_error *reterr);

/* Calls fn with each entry of a directory in this one until it fails; "." is this one itself. */
static peg_status each_entry(struct peg__dir *dir, const char *which, entry_fn fn, void *user,
                             peg_error *reterr)
{
    const int again = openat(dir->fd, which, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    peg_status status = PEG_OK;

    if (!entries) {
        status = fail(dir, which, "cannot be listed", reterr);
        if (again >= 0)
            close(again);
        return status;
    }
    errno = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is local. */
    while (!status && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = fn(user, entry->d_name, reterr);
        errno = 0;
    }
    if (!status && errno != 0)
        status = fail(dir, which, "cannot be listed", reterr);
    closedir(entries);
    return status;
}

struct each {
    peg_status (*fn)(void *user, const char *name, peg_error *reterr);
    void *user;
};

static peg_status call_for_turn(void *user, const char *file, peg_error *reterr)
{
    const struct each *each = user;
    char name[PEG__DIR_NAME + 1];

    return has_ending(file, JSON, name) ? each->fn(each->user, name, reterr) : PEG_OK;
}

peg_status peg__dir_each(struct peg__dir *dir,
                         peg_status (*fn)(void *user, const char *name, peg_error *reterr),
                         void *user, peg_error *reterr)
{
    struct each each = {fn, user};

    return each_entry(dir, ".", call_for_turn, &each, reterr);
}

struct emptying {
    struct peg__dir *dir;
    const char *which;
};

static peg_status remove_inside(void *user, const char *file, peg_error *reterr)
{
    const struct emptying *e = user;
    char path[FILE_NAME + NAME_MAX + 2];

    snprintf(path, sizeof(path), "%s/%s", e->which, file);
    if (unlinkat(e->dir->fd, path, 0) != 0 && errno != ENOENT)
        return fail(e->dir, path, "cannot be removed", reterr);
    return PEG_OK;
}

/* A spool store: files, and no directories in it. */
static peg_status remove_bytes(struct peg__dir *dir, const char *which, peg_error *reterr)
{
    struct emptying emptying = {dir, which};
    struct stat about;
    peg_status status;

    if (fstatat(dir->fd, which, &about, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return PEG_OK;
    status = each_entry(dir, which, remove_inside, &emptying, reterr);
    if (!status && unlinkat(dir->fd, which, AT_REMOVEDIR) != 0)
        status = fail(dir, which, "cannot be removed", reterr);
    return status;
}

peg_status peg__dir_remove(struct peg__dir *dir, const char *name, peg_error *reterr)
{
    char file[FILE_NAME];
    peg_status status;

    file_name(file, name, JSON);
    if (unlinkat(dir->fd, file, 0) != 0 && errno != ENOENT)
        return fail(dir, file, "cannot be removed", reterr);
    /* The turn goes first: one without its bytes could not be loaded. */
    status = sync_directory(dir, file, reterr);
    if (status)
        return status;
    file_name(file, name, BYTES);
    return remove_bytes(dir, file, reterr);
}

/* ---- opening ------------------------------------------------------------------ */

static peg_status fail_to_open(const char *path, const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_TURN_STORE", "turn store '%.128s' %s: %m", path, what);
}

/* Requires the exclusive lock. */
static peg_status clear_away(void *user, const char *file, peg_error *reterr)
{
    struct peg__dir *dir = user;
    char name[PEG__DIR_NAME + 1];
    char turn[FILE_NAME];
    struct stat about;

    if (strncmp(file, NEW_PREFIX, strlen(NEW_PREFIX)) == 0) {
        unlinkat(dir->fd, file, 0);
        return PEG_OK;
    }
    if (!has_ending(file, BYTES, name))
        return PEG_OK;
    file_name(turn, name, JSON);
    if (fstatat(dir->fd, turn, &about, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return PEG_OK;
    return remove_bytes(dir, file, reterr);
}

static peg_status start(struct peg__dir *dir, peg_error *reterr)
{
    peg_status status = PEG_OK;

    dir->lock_fd =
        openat(dir->fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    if (dir->lock_fd < 0)
        return fail(dir, ".lock", "cannot be made", reterr);
    if (peg__directory_lock(dir->fd, LOCK_EX | LOCK_NB))
        status = each_entry(dir, ".", clear_away, dir, reterr);
    if (!status && !peg__directory_lock(dir->fd, LOCK_SH))
        status = fail(dir, ".", "cannot be locked", reterr);
    return status;
}

static struct peg__dir *dir_new(int fd, const char *path)
{
    struct peg__dir *dir = peg__alloc_zero(1, sizeof(*dir) + strlen(path) + 1);

    if (!dir)
        return NULL;
    dir->fd = fd;
    dir->lock_fd = -1;
    memcpy(dir->path, path, strlen(path) + 1);
    for (size_t i = 0; i < PEG__DIR_LOCKS; i++)
        pthread_mutex_init(&dir->locks[i], NULL);
    return dir;
}

peg_status peg__dir_open(const char *path, struct peg__dir **ret_dir, peg_error *reterr)
{
    struct peg__dir *dir = NULL;
    char absolute[PATH_MAX];
    peg_status status;
    int fd = -1;

    status = peg__directory_open(path, "turn store", "E_TURN_STORE", &fd, reterr);
    if (status)
        return status;
    if (!realpath(path, absolute)) {
        status = fail_to_open(path, "has no name of its own", reterr);
    } else {
        dir = dir_new(fd, absolute);
        status = dir ? start(dir, reterr) : peg__fail_nomem(reterr);
    }
    if (!status)
        *ret_dir = dir;
    else if (dir)
        peg__dir_close(dir);
    else
        close(fd);
    return status;
}

struct peg__dir *peg__dir_close(struct peg__dir *dir)
{
    if (!dir)
        return NULL;
    close(dir->fd);
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    for (size_t i = 0; i < PEG__DIR_LOCKS; i++)
        pthread_mutex_destroy(&dir->locks[i]);
    peg__free(dir);
    return NULL;
}
