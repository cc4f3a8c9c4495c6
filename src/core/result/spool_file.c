/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store in a directory, one file a key. A file's name is the SHA-256 of its key: whatever bytes a
 * key has, it cannot lead out of the directory, and no file system takes two of them for one. The
 * file is the bytes and nothing else.
 *
 * A write goes to a new file under a random name, to the disk, and only then, by renaming, to its
 * key: a crash leaves the old bytes or the new ones, and perhaps a file that the next store on the
 * directory clears away. A reader holds its file open, so what happens to the key later does not
 * touch it.
 *
 * Each store holds a shared lock on the directory. A store that opens it and gets the exclusive one
 * is alone, and so may clear away. How many bytes there are is counted when the store is opened and
 * from then on by what it does itself.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/result/result.h"

#define NEW_PREFIX "new-"

enum {
    KEY_NAME = PEG_SHA256_HEX,
    NEW_NAME = sizeof(NEW_PREFIX) - 1 + PEG_ID_HEX_TEXT,
};

/* Owned by its peg_spool_store. */
struct file_store {
    int directory;
    size_t max_bytes;
    pthread_mutex_t lock; /* for n_bytes, and from looking at a file until it is replaced */
    uint64_t n_bytes;     /* of files, and of those that are being written */
    char path[];          /* for messages */
};

static peg_status fail_in_store(const struct file_store *store, const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_FILE", "%s in spool directory '%.128s': %m", what,
                     store->path);
}

static bool name_of_key(peg_str key, char ret_name[KEY_NAME])
{
    unsigned char digest[PEG_SHA256_BYTES];

    if (!peg__sha256(key, digest))
        return false;
    peg__hex(digest, sizeof(digest), ret_name);
    return true;
}

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* ---- how full it is ---------------------------------------------------------------------- */

/* Bytes of a file, 0 if there is none. */
static uint64_t bytes_at(const struct file_store *store, const char *name)
{
    struct stat about;

    if (fstatat(store->directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(about.st_mode))
        return 0;
    return (uint64_t)about.st_size;
}

/* Sets bytes aside before they are written. What the key has now will be replaced. */
static peg_status set_aside(struct file_store *store, const char *name, size_t n, peg_error *reterr)
{
    uint64_t others;
    bool fits;

    pthread_mutex_lock(&store->lock);
    others = bytes_at(store, name);
    others = store->n_bytes > others ? store->n_bytes - others : 0;
    fits = n <= store->max_bytes && others <= store->max_bytes - n;
    if (fits)
        store->n_bytes += n;
    pthread_mutex_unlock(&store->lock);
    if (fits)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_SPOOL_FULL",
                     "%zu bytes more do not fit into spool directory '%.128s', which takes %zu "
                     "(max_bytes); remove keys or allow more",
                     n, store->path, store->max_bytes);
}

/* Under the lock. Somebody else may have changed files too: never below nothing. */
static void discount(struct file_store *store, uint64_t n)
{
    store->n_bytes -= n < store->n_bytes ? n : store->n_bytes;
}

static void give_back(struct file_store *store, uint64_t n)
{
    pthread_mutex_lock(&store->lock);
    discount(store, n);
    pthread_mutex_unlock(&store->lock);
}

/* ---- writing ----------------------------------------------------------------------------- */

/* A file that has no key yet. */
struct new_file {
    int fd;
    char name[NEW_NAME];
};

/* Keeps errno, so that the error before can still be reported. */
static void drop_name(const struct file_store *store, const char *name)
{
    const int why = errno;

    unlinkat(store->directory, name, 0);
    errno = why;
}

/* All bytes in a new file and on the disk, or no file. */
static peg_status write_new(const struct file_store *store, peg_str bytes,
                            struct new_file *ret_file, peg_error *reterr)
{
    struct new_file file = {.name = NEW_PREFIX};
    peg_status status;

    if (!peg__id_hex(file.name + strlen(NEW_PREFIX)))
        return peg__fail_no_randomness(reterr);
    file.fd = openat(store->directory, file.name,
                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file.fd < 0)
        return fail_in_store(store, "a file cannot be made", reterr);
    if (peg__file_write_all(file.fd, bytes) && fsync(file.fd) == 0) {
        *ret_file = file;
        return PEG_OK;
    }
    drop_name(store, file.name);
    status = fail_in_store(store, "a file cannot be written", reterr);
    close(file.fd);
    return status;
}

static bool rename_to(struct file_store *store, const char *new_name, const char *name)
{
    uint64_t replaced;
    bool is_done;

    pthread_mutex_lock(&store->lock);
    replaced = bytes_at(store, name);
    is_done = renameat(store->directory, new_name, store->directory, name) == 0;
    if (is_done)
        discount(store, replaced);
    pthread_mutex_unlock(&store->lock);
    return is_done;
}

/* The reader comes first: once the key is replaced, memory can no longer run out. */
static peg_status publish(struct file_store *store, struct new_file *file, const char *name,
                          size_t len, peg_reader **ret_reader, peg_error *reterr)
{
    peg_reader *reader = NULL;
    peg_status status = peg__reader_from_fd(file->fd, len, &reader, reterr);

    if (status) {
        close(file->fd);
    } else if (!rename_to(store, file->name, name)) {
        status = fail_in_store(store, "a file cannot be renamed", reterr);
        peg_reader_unref(reader);
    }
    if (status)
        drop_name(store, file->name);
    else
        *ret_reader = reader;
    return status;
}

static peg_status sync_directory(const struct file_store *store, peg_error *reterr)
{
    if (fsync(store->directory) != 0)
        return fail_in_store(store, "a change may not outlive a crash", reterr);
    return PEG_OK;
}

static peg_status write_key(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                            peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    struct file_store *store = user;
    struct new_file file = {.fd = -1};
    char name[KEY_NAME];
    peg_status status;

    if (!name_of_key(key, name))
        return peg__fail_nomem(reterr);
    status = set_aside(store, name, bytes.len, reterr);
    if (status)
        return status;
    status = write_new(store, bytes, &file, reterr);
    if (status == PEG_OK)
        status = publish(store, &file, name, bytes.len, &reader, reterr);
    if (status) {
        give_back(store, bytes.len);
        return status;
    }
    status = sync_directory(store, reterr);
    if (status)
        return status;
    *ret_reader = reader;
    reader = NULL;
    return PEG_OK;
}

/* ---- reading and removing ---------------------------------------------------------------- */

static peg_status read_key(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr)
{
    struct file_store *store = user;
    char name[KEY_NAME];
    struct stat about;
    peg_status status;
    int fd;

    if (!name_of_key(key, name))
        return peg__fail_nomem(reterr);
    fd = openat(store->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        *ret_reader = NULL;
        return PEG_OK;
    }
    if (fd < 0)
        return fail_in_store(store, "a file cannot be opened", reterr);
    if (fstat(fd, &about) != 0)
        status = fail_in_store(store, "a file cannot be opened", reterr);
    else if (!S_ISREG(about.st_mode))
        status =
            peg__fail(reterr, PEG_EIO, "E_FILE",
                      "'%s' in spool directory '%.128s' is no file of ours", name, store->path);
    else
        status = peg__reader_from_fd(fd, (uint64_t)about.st_size, ret_reader, reterr);
    if (status)
        close(fd);
    return status;
}

static peg_status remove_key(void *user, peg_str key, bool *ret_was_there, peg_error *reterr)
{
    struct file_store *store = user;
    char name[KEY_NAME];
    peg_status status = PEG_OK;
    uint64_t removed;

    if (!name_of_key(key, name))
        return peg__fail_nomem(reterr);
    pthread_mutex_lock(&store->lock);
    removed = bytes_at(store, name);
    *ret_was_there = unlinkat(store->directory, name, 0) == 0;
    if (*ret_was_there)
        discount(store, removed);
    else if (errno != ENOENT)
        status = fail_in_store(store, "a file cannot be removed", reterr);
    pthread_mutex_unlock(&store->lock);
    return *ret_was_there ? sync_directory(store, reterr) : status;
}

/* ---- opening the directory --------------------------------------------------------------- */

static void look_at(struct file_store *store, const char *name, bool is_alone)
{
    const size_t prefix = strlen(NEW_PREFIX);

    if (is_hex(name, KEY_NAME - 1))
        store->n_bytes += bytes_at(store, name);
    else if (is_alone && strncmp(name, NEW_PREFIX, prefix) == 0 &&
             is_hex(name + prefix, PEG_ID_HEX_TEXT - 1))
        unlinkat(store->directory, name, 0);
}

/* Counts what is there, and clears away what a crash left if no other process can be writing it. */
static peg_status look_around(struct file_store *store, bool is_alone, peg_error *reterr)
{
    const int again = openat(store->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    peg_status status = PEG_OK;

    if (!entries) {
        status = fail_in_store(store, "nothing can be listed", reterr);
        if (again >= 0)
            close(again);
        return status;
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream. */
    for (errno = 0; (entry = readdir(entries)); errno = 0)
        look_at(store, entry->d_name, is_alone);
    if (errno != 0)
        status = fail_in_store(store, "nothing can be listed", reterr);
    closedir(entries);
    return status;
}

static void free_store(void *user)
{
    struct file_store *store = user;

    close(store->directory);
    pthread_mutex_destroy(&store->lock);
    peg__free(store);
}

static peg_status start_store(struct file_store *store, peg_spool_store **ret_store,
                              peg_error *reterr)
{
    const peg_spool_ops ops = {
        .write = write_key, .read = read_key, .remove = remove_key, .free = free_store};
    const bool is_alone = peg__directory_lock(store->directory, LOCK_EX | LOCK_NB);
    peg_status status = look_around(store, is_alone, reterr);

    if (status)
        return status;
    /* Where the file system has no locks, no store is known to be alone. */
    peg__directory_lock(store->directory, LOCK_SH);
    return peg__spool_store_new(&ops, NULL, store, ret_store, reterr);
}

peg_status peg_spool_file_new(const char *directory, size_t max_bytes, peg_spool_store **ret_store,
                              peg_error *reterr)
{
    struct file_store *store;
    peg_status status;
    size_t size;

    if (!directory || !*directory)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "the directory is missing");
    size = strlen(directory) + 1;
    store = peg__alloc(sizeof(*store) + size);
    if (!store)
        return peg__fail_nomem(reterr);
    *store = (struct file_store){.max_bytes = max_bytes ? max_bytes : PEG_LIMIT_SPOOL_BYTES,
                                 .lock = PTHREAD_MUTEX_INITIALIZER};
    memcpy(store->path, directory, size);
    status = peg__directory_open(directory, "spool directory", "E_FILE", &store->directory, reterr);
    if (status) {
        peg__free(store);
        return status;
    }
    status = start_store(store, ret_store, reterr);
    if (status)
        free_store(store);
    return status;
}
