/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/str.h"

void peg__close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- pipes ------------------------------------------------------------------------- */

enum { READ_END, WRITE_END };

/* One for each of the child's descriptors 0, 1 and 2. */
struct pipes {
    int ends[3][2];
};

static const struct pipes no_pipes = {{{-1, -1}, {-1, -1}, {-1, -1}}};

static void close_pipes(struct pipes *pipes)
{
    for (int i = 0; i < 3; i++) {
        peg__close(&pipes->ends[i][READ_END]);
        peg__close(&pipes->ends[i][WRITE_END]);
    }
}

/* A host that has closed its own standard descriptors gets their numbers for the pipes; the child
 * would then overwrite one of them before it is in its place. */
static int move_up(int *fd)
{
    int moved;

    if (*fd > STDERR_FILENO)
        return 0;
    moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved < 0)
        return errno;
    peg__close(fd);
    *fd = moved;
    return 0;
}

static int make_pipe(int ends[2], int our_end)
{
    int error;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    error = move_up(&ends[READ_END]);
    if (!error)
        error = move_up(&ends[WRITE_END]);
    if (!error && fcntl(ends[our_end], F_SETFL, O_NONBLOCK) < 0)
        error = errno;
    return error;
}

static int make_pipes(struct pipes *pipes)
{
    int error = 0;

    for (int i = 0; i < 3 && !error; i++)
        error = make_pipe(pipes->ends[i], i == STDIN_FILENO ? WRITE_END : READ_END);
    return error;
}

/* ---- finding the program -------------------------------------------------------------- */

static const char *path_of(const char *const *env)
{
    for (; *env; env++) {
        if (!strncmp(*env, "PATH=", 5))
            return *env + 5;
    }
    return "";
}

static int check_program(int folder, const char *file)
{
    struct stat about;

    if (fstatat(folder, file, &about, 0) < 0)
        return errno;
    if (!S_ISREG(about.st_mode) || faccessat(folder, file, X_OK, 0) < 0)
        return EACCES;
    return 0;
}

/* Not posix_spawnp(): that looks where the host's PATH says, not the command's. */
static int find_program(const char *name, const char *path, char ret_file[PATH_MAX])
{
    int error = ENOENT;

    while (*path) {
        const size_t len = strcspn(path, ":");
        const int n = snprintf(ret_file, PATH_MAX, "%.*s/%s", (int)len, path, name);

        if (path[0] == '/' && n < PATH_MAX) {
            const int found = check_program(AT_FDCWD, ret_file);

            if (!found)
                return 0;
            if (found == EACCES)
                error = EACCES;
        }
        path += len + (path[len] == ':');
    }
    return error;
}

/* Beforehand, because not every system under a system (valgrind, some sandboxes) lets
 * posix_spawn() tell why it failed. What a name without a slash stands for comes to `ret_found`. */
static int resolve_program(const struct peg__program *program, char ret_found[PATH_MAX])
{
    const char *name = program->argv[0];
    int folder = AT_FDCWD;
    int error;

    if (program->directory)
        folder = open(program->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && folder != AT_FDCWD)
        return errno;
    error = strchr(name, '/') ? check_program(folder, name)
                              : find_program(name, path_of(program->env), ret_found);
    if (folder >= 0)
        close(folder);
    return error;
}

/* ---- starting it ------------------------------------------------------------------------ */

static int add_actions(posix_spawn_file_actions_t *actions, const struct pipes *pipes,
                       const char *directory)
{
    int error = 0;

    for (int i = 0; i < 3 && !error; i++)
        error = posix_spawn_file_actions_adddup2(
            actions, pipes->ends[i][i == STDIN_FILENO ? READ_END : WRITE_END], i);
    if (!error && directory)
        error = posix_spawn_file_actions_addchdir_np(actions, directory);
    /* The host may have descriptors that are not marked close-on-exec. */
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
    return error;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none;
    sigset_t all;
    int error;

    sigemptyset(&none);
    sigfillset(&all);
    error = posix_spawnattr_setflags(attributes, flags);
    if (!error)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    return error;
}

static int spawn_file(const char *file, const char *const *argv, const struct peg__program *program,
                      const struct pipes *pipes, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = add_actions(&actions, pipes, program->directory);
    if (!error)
        error = set_attributes(&attributes);
    if (!error)
        error = posix_spawn(ret_pid, file, &actions, &attributes, peg__unconst(argv),
                            peg__unconst(program->env));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* posix_spawn() knows no limits, and ours are not the child's. A shell sets them and becomes the
 * program; it reads nothing of the command line but its number. */
static int spawn_limited(const struct peg__program *program, const char *file,
                         const struct pipes *pipes, pid_t *ret_pid)
{
    char kib[32];
    size_t n = 0;
    const char **argv;
    int error;

    while (program->argv[n])
        n++;
    argv = peg__alloc_zero(n + 5, sizeof(*argv));
    if (!argv)
        return ENOMEM;
    snprintf(kib, sizeof(kib), "%zu", program->max_memory >> 10);
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = "ulimit -v \"$0\" && exec \"$@\"";
    argv[3] = kib;
    memcpy(argv + 4, program->argv, n * sizeof(*argv));
    argv[4] = file;
    error = spawn_file("/bin/sh", argv, program, pipes, ret_pid);
    peg__free(argv);
    return error;
}

static int start_program(const struct peg__program *program, const char *file,
                         const struct pipes *pipes, pid_t *ret_pid)
{
    return program->max_memory ? spawn_limited(program, file, pipes, ret_pid)
                               : spawn_file(file, program->argv, program, pipes, ret_pid);
}

static int take_end(int *end)
{
    const int fd = *end;

    *end = -1;
    return fd;
}

int peg__spawn_check(const struct peg__program *program)
{
    char found[PATH_MAX];

    return resolve_program(program, found);
}

int peg__spawn(const struct peg__program *program, struct peg__child *ret_child)
{
    struct pipes pipes = no_pipes;
    char found[PATH_MAX];
    const char *file = strchr(program->argv[0], '/') ? program->argv[0] : found;
    int error = resolve_program(program, found);
    pid_t pid = -1;

    if (!error)
        error = make_pipes(&pipes);
    if (!error)
        error = start_program(program, file, &pipes, &pid);
    if (!error)
        *ret_child = (struct peg__child){.pid = pid,
                                         .in = take_end(&pipes.ends[0][WRITE_END]),
                                         .out = take_end(&pipes.ends[1][READ_END]),
                                         .err = take_end(&pipes.ends[2][READ_END])};
    close_pipes(&pipes);
    return error;
}
