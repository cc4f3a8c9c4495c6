/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_SPAWN_H
#define PEG_TOOLS_SPAWN_H

/* Processes that are started on purpose: commands, and servers that speak over pipes (mcp/). */

#include <stddef.h>
#include <sys/types.h>

#include "base/shared_symbols.h"

/*
 * Starts a program apart from the host: a process group of its own, three pipes and no other
 * descriptor, signals as they are by default, exactly the environment that it is given, no shell.
 */

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
PEG__SHARED int peg__spawn(const struct peg__program *program, struct peg__child *ret_child);

/* 0 if peg__spawn() would find and may execute the program, else what it would return. */
int peg__spawn_check(const struct peg__program *program);

/* Closes an end of a pipe, if it is open. */
PEG__SHARED void peg__close(int *fd);

/*
 * What a command has started and is not in its process group any more: it called setsid, or was
 * left behind by a parent that ended. A program whose process is its own (`pegboard provide`) may
 * make itself the parent of such orphans, and then they are found, below the command or among the
 * orphans, and ended with it. The library does not do so by itself: orphans of a host that are
 * none of ours would become its children, and it would have to wait for them.
 *
 * An orphan differs from those of other commands by its PEGBOARD_COMMAND_ID, which each command
 * then finds in its environment and hands on. One that has none is this command's if it began after
 * it, and no other command runs.
 */

enum { PEG__COMMAND_ID_TEXT = 64 };

/* A command that runs and its descendants. All of the below do nothing without adoption. */
struct peg__family {
    pid_t root;                    /* the command, until it has been waited for; 0: none */
    char id[PEG__COMMAND_ID_TEXT]; /* "PEGBOARD_COMMAND_ID=..."; "": not adopted */
    struct peg__family *next;
};

/* As peg__spawn(). After a success the family is left with peg__family_leave(). */
PEG__SHARED int peg__family_spawn(struct peg__family *family, const struct peg__program *program,
                                  struct peg__child *ret_child);
/* Somebody else has waited for the command, whose pid may be another's by now. */
PEG__SHARED void peg__family_lose(struct peg__family *family);
/* To all of them that can be seen now and have left the group of the command, which gets it as a
 * group. Returns how many are alive. */
PEG__SHARED size_t peg__family_signal(const struct peg__family *family, int number);
/* Until none is alive; gives up after PEG_LIMIT_COMMAND_KILL_ROUNDS. */
PEG__SHARED void peg__family_kill(const struct peg__family *family);
/* After the command has been waited for. Orphans that have ended are waited for now and then. */
PEG__SHARED void peg__family_leave(struct peg__family *family);

#endif
