/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_SPAWN_H
#define PEG_TOOLS_SPAWN_H

/*
 * Starts a program apart from the host: a process group of its own, three pipes and no other
 * descriptor, signals as they are by default, exactly the environment that it is given, no shell.
 */

#include <sys/types.h>

#include "pegboard/common.h"

struct peg__program {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* NULL-terminated */
    const char *directory;   /* to run in; NULL: the host's */
    size_t max_memory;       /* bytes of address space; 0: no limit */
};

/* The host's ends of the pipes do not block. -1: closed. */
struct peg__child {
    pid_t pid; /* also of its process group */
    int in;    /* what is written here is its standard input */
    int out;
    int err;
};

/* 0, or the error of the system: ENOENT and EACCES are about argv[0] or the directory. A name with
 * a slash is a path, from the directory that it runs in; relative entries of PATH do not count. */
int peg__spawn(const struct peg__program *program, struct peg__child *ret_child);

/* 0 if peg__spawn() would find and may execute the program, else what it would return. */
int peg__spawn_check(const struct peg__program *program);

/* Closes an end of a pipe, if it is open. */
void peg__close(int *fd);

#endif
