/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_SPOOL_WORLD_H
#define PEG_TESTS_SPOOL_WORLD_H

/* A store to test, and what is in it. What one test file does not use, the other does. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"
#include "core/result/result.h"

/* ---- a store, in a directory of its own if it is one of files ---------------------------- */

struct world {
    bool has_files;
    char directory[64];
    peg_spool_store *store;
};

static peg_status open_again(struct world *w, size_t max_bytes, peg_error *reterr)
{
    w->store = peg_spool_store_unref(w->store);
    if (w->has_files)
        return peg_spool_file_new(w->directory, max_bytes, &w->store, reterr);
    return peg_spool_memory_new(max_bytes, &w->store, reterr);
}

static void make_directory(struct world *w)
{
    snprintf(w->directory, sizeof(w->directory), "/tmp/peg-spool-XXXXXX");
    CHECK(mkdtemp(w->directory));
}

static void world_make(struct world *w, bool has_files, size_t max_bytes)
{
    peg_error error;

    *w = (struct world){.has_files = has_files};
    if (has_files)
        make_directory(w);
    CHECK_STATUS(open_again(w, max_bytes, &error), PEG_OK, error);
}

/* Calls fn with each name in the directory but "." and ".."; how many there are. */
static size_t each_name(const struct world *w, void (*fn)(int directory, const char *name))
{
    DIR *entries = opendir(w->directory);
    const struct dirent *entry;
    size_t n = 0;

    CHECK(entries);
    while ((entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n++;
        if (fn)
            fn(dirfd(entries), entry->d_name);
    }
    closedir(entries);
    return n;
}

static void remove_name(int directory, const char *name)
{
    unlinkat(directory, name, 0);
}

static void world_done(struct world *w)
{
    peg_spool_store_unref(w->store);
    if (!w->has_files)
        return;
    each_name(w, remove_name);
    CHECK_INT(rmdir(w->directory), 0);
}

static peg_status put(struct world *w, peg_str key, peg_str bytes)
{
    peg_reader *reader = NULL;
    const peg_status status = peg_spool_write(w->store, key, bytes, &reader, NULL);

    peg_reader_unref(reader);
    return status;
}

static void check_reader(peg_reader *reader, peg_str expected)
{
    char *all = NULL;
    size_t len = 0;

    CHECK(reader);
    CHECK_INT(peg_reader_byte_length(reader), expected.len);
    CHECK_INT(peg_reader_read_all(reader, 1 << 20, &all, &len, NULL), PEG_OK);
    CHECK(peg__str_eq(peg__strn(all, len), expected));
    peg_free(all);
}

static peg_reader *get(struct world *w, peg_str key)
{
    peg_reader *reader = NULL;
    peg_error error;

    CHECK_STATUS(peg_spool_read(w->store, key, &reader, &error), PEG_OK, error);
    return reader;
}

static void check_key(struct world *w, peg_str key, peg_str expected)
{
    peg_reader *reader = get(w, key);

    check_reader(reader, expected);
    peg_reader_unref(reader);
}

static void check_missing(struct world *w, peg_str key)
{
    CHECK(!get(w, key));
}

static const peg_str a = PEG_LIT("a");
static const peg_str b = PEG_LIT("b");

/* A file that a store made: named by a digest, private. */
static void check_name(int directory, const char *name)
{
    struct stat about;

    CHECK_INT(strlen(name), 64);
    CHECK_INT(strspn(name, "0123456789abcdef"), 64);
    CHECK_INT(fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW), 0);
    CHECK(S_ISREG(about.st_mode));
    CHECK_INT(about.st_mode & 07777, 0600);
}

#endif
