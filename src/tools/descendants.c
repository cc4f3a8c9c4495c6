/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /proc is read whole each time: a list of children is not there on every kernel, and this happens
 * only when a command is ended by force.
 */

#include "tools/internal.h"
#include "tools/tools.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

static const char id_name[] = "PEGBOARD_COMMAND_ID=";

/* A thread that spawns holds the lock until its child is in the list: a child of ours that is not
 * in it is an orphan. */
static struct {
    pthread_mutex_t lock;
    atomic_bool is_adopted;
    struct peg__family *first; /* lock */
    int64_t reaped_ns;         /* lock */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool peg__descendants_adopt(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return false;
    atomic_store(&all.is_adopted, true);
    return true;
}

/* ---- what there is -------------------------------------------------------------------------- */

enum verdict { UNKNOWN, OURS, NOT_OURS };

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    bool is_dead;     /* and not waited for */
    uint64_t start;   /* since the system's */
    enum verdict who; /* of an orphan: asked once */
};

struct processes {
    struct process *list; /* by pid */
    size_t n;
    size_t capacity;
};

/* The text of a small file below /proc; "": there is none. */
static void read_proc_file(const char *path, char *ret_text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, ret_text, size - 1);

    ret_text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* "4880 (a name) S 4877 ..." with the start as its 22nd word; the name may have anything in it. */
static bool read_stat(const char *pid, struct process *ret_process)
{
    enum { PARENT, GROUP, START = 18, N };
    long long numbers[N];
    char path[64];
    char text[1024];
    const char *name_end;
    char *at;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    read_proc_file(path, text, sizeof(text));
    name_end = strrchr(text, ')');
    if (!name_end || strlen(name_end) < 4)
        return false;
    at = text + (name_end + 3 - text);
    for (int i = 0; i < N; i++)
        numbers[i] = strtoll(at, &at, 10);
    *ret_process = (struct process){.pid = (pid_t)strtol(pid, NULL, 10),
                                    .parent = (pid_t)numbers[PARENT],
                                    .group = (pid_t)numbers[GROUP],
                                    .is_dead = name_end[2] == 'Z' || name_end[2] == 'X',
                                    .start = (uint64_t)numbers[START]};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *left = a;
    const struct process *right = b;

    return (left->pid > right->pid) - (left->pid < right->pid);
}

static bool add_process(struct processes *processes, const struct process *process)
{
    if (processes->n == PEG_LIMIT_COMMAND_PROCESSES)
        return false;
    if (!PEG__RESERVE(processes->list, processes->n + 1, processes->capacity))
        return false;
    processes->list[processes->n++] = *process;
    return true;
}

/* As far as there is memory. */
static void list_processes(struct processes *ret_processes)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    struct process process;

    *ret_processes = (struct processes){0};
    while (dir && (entry = readdir(dir))) { // NOLINT(concurrency-mt-unsafe): a stream of our own
        if (isdigit((unsigned char)entry->d_name[0]) && read_stat(entry->d_name, &process) &&
            !add_process(ret_processes, &process))
            break;
    }
    if (dir)
        closedir(dir);
    if (ret_processes->n)
        qsort(ret_processes->list, ret_processes->n, sizeof(process), by_pid);
}

static struct process *find_process(const struct processes *processes, pid_t pid)
{
    const struct process key = {.pid = pid};

    return processes->n ? bsearch(&key, processes->list, processes->n, sizeof(key), by_pid) : NULL;
}

/* ---- whose it is ---------------------------------------------------------------------------- */

static bool is_command(pid_t pid)
{
    bool is_known = false;

    pthread_mutex_lock(&all.lock);
    for (const struct peg__family *family = all.first; family; family = family->next)
        is_known = is_known || family->root == pid;
    pthread_mutex_unlock(&all.lock);
    return is_known;
}

static bool is_alone(void)
{
    bool is_last;

    pthread_mutex_lock(&all.lock);
    is_last = all.first && !all.first->next;
    pthread_mutex_unlock(&all.lock);
    return is_last;
}

static void read_environment(pid_t pid, struct peg__buf *text)
{
    enum { PIECE = 16 << 10 };
    char path[64];
    ssize_t n = 1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0) {
        char *room = peg__buf_reserve(text, PIECE);

        n = room ? read(fd, room, PIECE) : 0;
        if (n > 0)
            text->len += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
}

/* The variable with its value, or NULL. */
static const char *find_id(peg_str environment)
{
    const char *end = environment.ptr + environment.len;

    for (const char *at = environment.ptr; at && at < end;) {
        const char *stop = memchr(at, '\0', (size_t)(end - at));

        if (!stop)
            return NULL;
        if (strncmp(at, id_name, sizeof(id_name) - 1) == 0)
            return at;
        at = stop + 1;
    }
    return NULL;
}

/* Starts are counted in ticks, and many processes begin in one: then the higher pid is the later
 * one. */
static bool began_after(const struct process *process, const struct process *other)
{
    return process->start != other->start ? process->start > other->start
                                          : process->pid > other->pid;
}

static bool is_orphan_of(const struct peg__family *family, const struct processes *processes,
                         const struct process *orphan)
{
    const struct process *root = family->root ? find_process(processes, family->root) : NULL;
    struct peg__buf environment = PEG__BUF(PEG_LIMIT_COMMAND_BYTES + (16 << 10));
    const char *id;
    bool is_descendant;

    read_environment(orphan->pid, &environment);
    id = find_id(peg__buf_view(&environment));
    is_descendant =
        id ? strcmp(id, family->id) == 0 : root && began_after(orphan, root) && is_alone();
    peg__buf_free(&environment);
    return is_descendant;
}

/* Up from parent to parent: to the command, or to an orphan, which is our child. */
static bool is_descendant(const struct peg__family *family, const struct processes *processes,
                          const struct process *process)
{
    const pid_t self = getpid();
    struct process *at = find_process(processes, process->pid);

    if (family->root && process->group == family->root)
        return false; /* it gets the signal of the group, once */
    for (size_t n = 0; at && at->parent != self && n < processes->n; n++) {
        if (family->root && at->parent == family->root)
            return true;
        at = find_process(processes, at->parent);
    }
    if (!at || at->parent != self)
        return false;
    if (at->who == UNKNOWN)
        at->who = !is_command(at->pid) && is_orphan_of(family, processes, at) ? OURS : NOT_OURS;
    return at->who == OURS;
}

/* ---- a command ------------------------------------------------------------------------------ */

/* Its environment with the id first, instead of one that it has from another. */
static const char **make_environment(const struct peg__family *family, const char *const *env)
{
    const char **made;
    size_t n = 0;

    while (env[n])
        n++;
    made = (const char **)peg__alloc_zero(n + 2, sizeof(*made));
    if (!made)
        return NULL;
    made[0] = family->id;
    n = 1;
    for (; *env; env++) {
        if (strncmp(*env, id_name, sizeof(id_name) - 1) != 0)
            made[n++] = *env;
    }
    return made;
}

static bool make_command_id(struct peg__family *family)
{
    uint64_t number;

    if (!peg__random(&number, sizeof(number)))
        return false;
    snprintf(family->id, sizeof(family->id), "%s%d-%016llx", id_name, (int)getpid(),
             (unsigned long long)number);
    return true;
}

int peg__family_spawn(struct peg__family *family, const struct peg__program *program,
                      struct peg__child *ret_child)
{
    struct peg__program marked = *program;
    const char **env;
    int error;

    *family = (struct peg__family){0};
    if (!atomic_load(&all.is_adopted))
        return peg__spawn(program, ret_child);
    if (!make_command_id(family))
        return ENOSYS;
    env = make_environment(family, program->env);
    if (!env)
        return ENOMEM;
    marked.env = env;
    pthread_mutex_lock(&all.lock);
    error = peg__spawn(&marked, ret_child);
    if (!error) {
        family->root = ret_child->pid;
        family->next = all.first;
        all.first = family;
    }
    pthread_mutex_unlock(&all.lock);
    peg__free((void *)env);
    return error;
}

void peg__family_lose(struct peg__family *family)
{
    pthread_mutex_lock(&all.lock);
    family->root = 0;
    pthread_mutex_unlock(&all.lock);
}

size_t peg__family_signal(const struct peg__family *family, int number)
{
    struct processes processes;
    size_t n = 0;

    if (!family->id[0])
        return 0;
    list_processes(&processes);
    for (size_t i = 0; i < processes.n; i++) {
        const struct process *process = &processes.list[i];

        if (process->is_dead || !is_descendant(family, &processes, process))
            continue;
        kill(process->pid, number);
        n++;
    }
    peg__free(processes.list);
    return n;
}

void peg__family_kill(const struct peg__family *family)
{
    for (int i = 0; i < PEG_LIMIT_COMMAND_KILL_ROUNDS; i++) {
        if (peg__family_signal(family, SIGKILL) == 0)
            return;
        poll(NULL, 0, 1); /* they are dead soon, and what they started comes to us */
    }
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool is_time_to_reap(void)
{
    const int64_t now = peg__mono_ns();
    bool is_time;

    pthread_mutex_lock(&all.lock);
    is_time = !all.reaped_ns || now - all.reaped_ns >= PEG_NS_PER_S;
    if (is_time)
        all.reaped_ns = now;
    pthread_mutex_unlock(&all.lock);
    return is_time;
}

static void reap_orphans(void)
{
    struct processes processes;
    siginfo_t info;

    list_processes(&processes);
    for (size_t i = 0; i < processes.n; i++) {
        const struct process *process = &processes.list[i];

        if (process->is_dead && process->parent == getpid() && !is_command(process->pid))
            (void)waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG);
    }
    peg__free(processes.list);
}

void peg__family_leave(struct peg__family *family)
{
    struct peg__family **at = &all.first;

    if (!family->id[0])
        return;
    pthread_mutex_lock(&all.lock);
    while (*at && *at != family)
        at = &(*at)->next;
    if (*at)
        *at = family->next;
    pthread_mutex_unlock(&all.lock);
    family->id[0] = '\0';
    if (is_time_to_reap())
        reap_orphans();
}
