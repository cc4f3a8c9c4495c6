/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TOOLS_CHILD_H
#define PEG_TESTS_TOOLS_CHILD_H

/* What tests of processes look at: who is alive, which descriptors are open, a folder through
 * which a script says how far it is. */

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../t.h"

/* Dead processes that nobody has waited for count as dead. */
static inline bool is_alive(pid_t pid)
{
    char path[64];
    char state = 'X';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d %*s %c", &state) != 1)
        state = 'X';
    fclose(file);
    return state != 'Z' && state != 'X';
}

static inline void await_death(pid_t pid)
{
    while (is_alive(pid))
        sched_yield();
}

static inline int n_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* No child is left, not even a dead one. */
static inline bool has_no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* ---- a folder for signs ------------------------------------------------------------- */

struct signs {
    char folder[64];
    char file[80]; /* a script makes it to say that it is ready */
};

static inline void signs_init(struct signs *signs)
{
    snprintf(signs->folder, sizeof(signs->folder), "/tmp/peg-test-XXXXXX");
    CHECK(mkdtemp(signs->folder));
    snprintf(signs->file, sizeof(signs->file), "%s/ready", signs->folder);
}

static inline void signs_await(const struct signs *signs)
{
    while (access(signs->file, F_OK) != 0)
        sched_yield();
}

static inline void signs_done(const struct signs *signs)
{
    unlink(signs->file);
    rmdir(signs->folder);
}

#endif
