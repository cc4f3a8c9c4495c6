/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_SUITE_H
#define PEG_TESTS_SUITE_H

/*
 * For the runners of public test suites, whose cases are files: find the folder, list it, read
 * it, print TAP. The suites are not part of the repository; without one its tests are skipped.
 */

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pegboard/common.h"

enum { SUITE_PATH = 1024, SUITE_MAX_FILE = 16 << 20 };

/* ---- TAP --------------------------------------------------------------------- */

struct suite_tap {
    int n;
    int n_failed;
};

static inline void suite_line(struct suite_tap *tap, bool passed, const char *name)
{
    tap->n_failed += !passed;
    printf("%s %d - %s\n", passed ? "ok" : "not ok", ++tap->n, name);
}

static inline void suite_skip(struct suite_tap *tap, const char *name, const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++tap->n, name, reason);
}

/* The exit status of the program. */
static inline int suite_done(const struct suite_tap *tap)
{
    printf("1..%d\n", tap->n);
    return tap->n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- folders and files --------------------------------------------------------- */

static inline bool suite_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

PEG_PRINTF(2, 3) static inline void suite_path(char path[SUITE_PATH], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(path, SUITE_PATH, fmt, args) >= SUITE_PATH) {
        fprintf(stderr, "a path is too long: %s\n", path);
        exit(EXIT_FAILURE);
    }
    va_end(args);
}

/* Beside the source tree (PEG_SOURCE_ROOT, set by meson), else where the variable says. */
static inline bool suite_find(char path[SUITE_PATH], const char *beside, const char *variable)
{
    const char *root = getenv("PEG_SOURCE_ROOT");
    const char *elsewhere = getenv(variable);

    suite_path(path, "%s/../shared/data/%s", root ? root : ".", beside);
    if (suite_is_folder(path))
        return true;
    if (elsewhere)
        suite_path(path, "%s", elsewhere);
    return elsewhere && suite_is_folder(path);
}

static inline int suite_is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Sorted names, from malloc; -1 if there is no such folder. */
static inline int suite_list(const char *folder, struct dirent ***ret_entries)
{
    return scandir(folder, ret_entries, suite_is_visible, alphasort);
}

static inline void suite_list_free(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    if (n >= 0)
        free(entries);
}

/* The bytes of a file, from malloc; a suite that can't be read is the end of its test. */
static inline peg_str suite_read(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat info = {0};
    char *bytes;
    size_t len;

    if (!file || fstat(fileno(file), &info) != 0 || info.st_size > SUITE_MAX_FILE ||
        !(bytes = malloc((size_t)info.st_size + 1))) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    len = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    return (peg_str){bytes, len};
}

static inline void suite_read_free(peg_str bytes)
{
    free((void *)(uintptr_t)bytes.ptr);
}

#endif
