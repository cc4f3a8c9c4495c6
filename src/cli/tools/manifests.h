/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_MANIFESTS_H
#define PEG_CLI_TOOLS_MANIFESTS_H

/* Manifests of a command line, for `pegboard provide` and `pegboard mcp`: read, compared with each
 * other, and read again when they change. */

#include <signal.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "pegboard/manifest.h"

/* A file, and what it said when it was last usable. */
struct manifest_file {
    const char *path;       /* borrowed */
    peg_manifest *manifest; /* owned */
};

/* Reads all of them and complains about each that cannot be used. CLI_OK, or what to exit with;
 * the files are to be freed in either case. */
int manifests_read(char *const *paths, size_t n, struct manifest_file *files);
void manifests_free(struct manifest_file *files, size_t n);
/* "pegboard: file:3:7: what is wrong (E_CODE)"; CLI_UNUSABLE. */
int manifests_complain(const char *path, const peg_error *error);
/* Prints the toolset, under this name, and its tools. CLI_OK, or what to exit with. */
int manifests_print(const char *toolset, const peg_manifest *manifest);
/* Warns of programs, directories and variables that are not there. */
void manifests_inspect(const char *path, const peg_manifest *manifest);

/* Two toolsets of one name are PEG_EEXISTS (E_MANIFEST), with the places of both; *ret_at is the
 * index of the second. */
peg_status manifests_check_toolsets(const struct manifest_file *files, size_t n, size_t *ret_at,
                                    peg_error *reterr);
/* The tools of all files in one registry, in their order. PEG_EEXISTS (E_MANIFEST): two tools of
 * one name, with the places of both; *ret_at is the index of the second file. */
peg_status manifests_join(const struct manifest_file *files, size_t n, peg_registry **ret_registry,
                          size_t *ret_at, peg_error *reterr);

/* ---- reading again: reload.c ---- */

/* Which file it is that stands there. */
struct file_identity {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed; /* zero: there is none */
};

/* Owned by the thread that runs it, after it was opened. */
struct reload {
    char *const *paths;
    size_t n;
    struct file_identity *seen; /* of each path */
    sigset_t signals;           /* blocked in all threads */
    int inotify;                /* -1: files are not watched */
    int64_t first_ms;           /* of the events that were not followed up yet; 0: none */
    int64_t last_ms;
    void (*on_change)(size_t file, void *user); /* SIGHUP, or the file is another */
    void (*on_stop)(void *user);                /* SIGTERM, SIGINT */
    void *user;
};

/* Before the files are read, so that no change is missed. Without watches it complains, and goes on
 * with signals alone. PEG_ENOMEM. */
peg_status reload_open(struct reload *r, char *const *paths, size_t n, bool watches,
                       peg_error *reterr);
/* Until this thread gets SIGUSR2. */
void reload_run(struct reload *r);
void reload_close(struct reload *r);

#endif
