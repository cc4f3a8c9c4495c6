/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_TEXT_WRITER_H
#define PEG_BASE_TEXT_WRITER_H

/*
 * A thread that writes to a pipe, a terminal or a file that may not be read. What it writes and
 * when is its owner's; here is how it waits, and how it is waited for when it is to end: not longer
 * than PEG__WRITER_LAST_MS if nothing is read.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/shared_symbols.h"
#include "pegboard/common.h"

enum { PEG__WRITER_LAST_MS = 1000 }; /* whole seconds */

/* A value; all zero before it starts. */
struct peg__writer {
    pthread_t thread;
    atomic_bool is_over; /* its owner sets it: it is to end when it has written what there is */
    atomic_uint n_looks; /* at what it writes to: else it is stuck in a write */
    int left_ms;         /* once it is over */
};

/* No signal is the thread's: SIGPIPE becomes an error of write(). False: no thread. */
PEG__SHARED bool peg__writer_start(struct peg__writer *writer, void *(*fn)(void *user), void *user);

/* The thread: does fd take bytes? Waits for it, but not long once it is over. */
PEG__SHARED bool peg__writer_takes(struct peg__writer *writer, int fd);
/* The thread: how many bytes were written. Less than all: the disk is full, or the reader is gone.
 */
PEG__SHARED size_t peg__writer_write(struct peg__writer *writer, int fd, peg_str text);

/* Its owner, who has told it that it is over: waits for its end. False: a terminal holds it up, and
 * what it uses stays its own until the process ends. */
PEG__SHARED bool peg__writer_join(struct peg__writer *writer, int fd);

#endif
