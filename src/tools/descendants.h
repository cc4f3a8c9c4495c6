/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_DESCENDANTS_H
#define PEG_TOOLS_DESCENDANTS_H

/*
 * What a command has started and is not in its process group any more: it called setsid, or was
 * left behind by a parent that ended. A program whose process is its own (`pegboard provide`) may
 * make itself the parent of such orphans, and then they are found, below the command or among the
 * orphans, and ended with it. The library does not do so by itself: orphans of a host that are
 * none of ours would become its children, and it would have to wait for them.
 *
 * An orphan is told from that of another command by PEGBOARD_COMMAND_ID, which each command then
 * finds in its environment and hands on. One that has none is this command's if it began after
 * it, and no other command runs.
 */

#include <sys/types.h>

#include "tools/spawn.h"

/* For the whole process, once, before any command runs. False: the kernel cannot (errno). */
bool peg__descendants_adopt(void);

enum { PEG__COMMAND_ID_TEXT = 64 };

/* A command that runs and its descendants. All of the below do nothing where nobody has adopted. */
struct peg__family {
    pid_t root;                    /* the command, until it has been waited for; 0: none */
    char id[PEG__COMMAND_ID_TEXT]; /* "PEGBOARD_COMMAND_ID=..."; "": not adopted */
    struct peg__family *next;
};

/* As peg__spawn(). After a success the family is left with peg__family_leave(). */
int peg__family_spawn(struct peg__family *family, const struct peg__program *program,
                      struct peg__child *ret_child);
/* Somebody else has waited for the command, whose pid may be another's by now. */
void peg__family_lose(struct peg__family *family);
/* To all of them that can be seen now and have left the group of the command, which hears it as a
 * group. Returns how many are alive. */
size_t peg__family_signal(const struct peg__family *family, int number);
/* Until none is alive; gives up after PEG_LIMIT_COMMAND_KILL_ROUNDS. */
void peg__family_kill(const struct peg__family *family);
/* After the command has been waited for. Orphans that have ended are waited for now and then. */
void peg__family_leave(struct peg__family *family);

#endif
