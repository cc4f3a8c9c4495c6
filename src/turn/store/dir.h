/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_DIR_H
#define PEG_TURN_STORE_DIR_H

/*
 * The directory of a turn store in files, which several processes may use: names, locks, and files
 * that are there whole or not at all. It knows nothing of turns.
 *
 *   NAME.json    a turn; NAME stands for its id
 *   NAME.bytes/  a spool store with its bytes (core/result/spool_file.c)
 *   .lock        what savers, loaders and removers of one turn lock a byte of
 *   .new-*       a file that is being written, or what a crash left of it
 *
 * All errors are PEG_EIO (E_TURN_STORE) unless told otherwise.
 */

#include <pthread.h>

#include "pegboard/common.h"

enum {
    /* Turns share locks by their names: more would only cost memory. */
    PEG__DIR_LOCKS = 64,
    /* The longest name that we make, without its ending; file systems take 255 bytes. */
    PEG__DIR_NAME = 200,
};

/* Owned; any thread. */
struct peg__dir {
    int fd;
    int lock_fd;
    pthread_mutex_t locks[PEG__DIR_LOCKS]; /* locks of files do not tell threads apart */
    char path[];                           /* absolute */
};

/* Makes the directory if its parent exists, for its owner alone, and clears away what crashes left
 * if nobody else uses it. */
peg_status peg__dir_open(const char *path, struct peg__dir **ret_dir, peg_error *reterr);
struct peg__dir *peg__dir_close(struct peg__dir *dir);

/*
 * The name for an id: lowercase letters, digits, - and _ as they are, . but not in front; every
 * other byte as %xx. So no two ids have one name, also where a file system does not tell A from a,
 * and no name leads elsewhere. What would be longer than PEG__DIR_NAME is ~ and its SHA-256.
 * PEG_ENOMEM only.
 */
peg_status peg__dir_name(peg_str id, char ret_name[PEG__DIR_NAME + 1]);

/* Keeps others, threads and processes, from changing what stands under a name; shared for those who
 * only read. */
peg_status peg__dir_lock(struct peg__dir *dir, const char *name, bool is_shared,
                         peg_error *reterr) PEG_MUST_USE;
void peg__dir_unlock(struct peg__dir *dir, const char *name);

/* Replaces NAME.json. On the disk when this returns. */
peg_status peg__dir_write(struct peg__dir *dir, const char *name, peg_str bytes, peg_error *reterr);
/* What was read of a file; bytes are freed with peg__free(), and NULL if there is none. */
struct peg__dir_file {
    char *bytes; /* NUL-terminated */
    size_t len;
    int64_t changed_ms;
};
/* Up to max bytes of NAME.json, from its beginning. */
peg_status peg__dir_read(struct peg__dir *dir, const char *name, size_t max,
                         struct peg__dir_file *ret_file, peg_error *reterr);
/* Takes NAME.json away, then NAME.bytes. Silent if there is neither. */
peg_status peg__dir_remove(struct peg__dir *dir, const char *name, peg_error *reterr);
/* Calls fn with the NAME of each NAME.json until it fails. */
peg_status peg__dir_each(struct peg__dir *dir,
                         peg_status (*fn)(void *user, const char *name, peg_error *reterr),
                         void *user, peg_error *reterr);

#endif
