/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_SCHEMA_EXCEPTIONS_H
#define PEG_TESTS_SCHEMA_EXCEPTIONS_H

/*
 * suite-exceptions.txt: the tests that may fail, one a line, each with its reason:
 *
 *   draft7/optional/content.json: description / test | reason
 *
 * `*` as the test means every test of that description. `#` starts a comment line. A line that
 * starts with "old: " is for copies of the suite from before v1, and the others need not be
 * needed there.
 */

#include "base/text/str.h"
#include "suite.h"

enum { MAX_EXCEPTIONS = 64 };

struct exception {
    peg_str file;
    peg_str rest; /* "description / test" */
    bool may_be_unused;
    bool is_used;
};

struct exceptions {
    peg_str text; /* owned: the file */
    struct exception items[MAX_EXCEPTIONS];
    size_t n;
};

/* Cuts `s` at the first separator: what stands before it; *s becomes what stands behind. */
static inline peg_str exceptions_cut(peg_str *s, const char *separator)
{
    const char *end = memmem(s->ptr, s->len, separator, strlen(separator));
    const peg_str before = {s->ptr, end ? (size_t)(end - s->ptr) : s->len};

    *s = peg__str_from(*s, end ? before.len + strlen(separator) : s->len);
    return before;
}

static inline void exceptions_add(struct exceptions *exceptions, peg_str line, bool suite_is_old)
{
    static const peg_str old = PEG_LIT("old: ");
    const bool is_for_old = peg__str_starts(line, old);
    peg_str reason = is_for_old ? peg__str_from(line, old.len) : line;
    peg_str rest = exceptions_cut(&reason, " | ");
    const peg_str file = exceptions_cut(&rest, ": ");

    if (reason.len == 0 || rest.len == 0 || exceptions->n == MAX_EXCEPTIONS) {
        printf("Bail out! suite-exceptions.txt: too many, or no reason: %.*s\n", PEG_ARG(line));
        exit(EXIT_FAILURE);
    }
    if (is_for_old && !suite_is_old)
        return;
    exceptions->items[exceptions->n++] = (struct exception){
        .file = file, .rest = rest, .may_be_unused = suite_is_old && !is_for_old};
}

static inline void exceptions_load(struct exceptions *exceptions, bool suite_is_old)
{
    const char *root = getenv("PEG_SOURCE_ROOT");
    char path[SUITE_PATH];
    peg_str rest;

    suite_path(path, "%s/tests/schema/suite-exceptions.txt", root ? root : ".");
    exceptions->text = suite_read(path);
    rest = exceptions->text;
    while (rest.len) {
        const peg_str line = exceptions_cut(&rest, "\n");

        if (line.len && line.ptr[0] != '#')
            exceptions_add(exceptions, line, suite_is_old);
    }
}

static inline bool exceptions_use(struct exceptions *exceptions, const char *file, peg_str group,
                                  peg_str test)
{
    for (size_t i = 0; i < exceptions->n; i++) {
        struct exception *item = &exceptions->items[i];
        peg_str own_test;

        if (!peg__str_is(item->file, file) || item->rest.len <= group.len + 3 ||
            !peg__str_starts(item->rest, group) ||
            memcmp(item->rest.ptr + group.len, " / ", 3) != 0)
            continue;
        own_test = peg__str_from(item->rest, group.len + 3);
        if (peg__str_eq(own_test, test) || peg__str_is(own_test, "*")) {
            item->is_used = true;
            return true;
        }
    }
    return false;
}

static inline bool exceptions_are_used(const struct exceptions *exceptions)
{
    bool all = true;

    for (size_t i = 0; i < exceptions->n; i++) {
        const struct exception *item = &exceptions->items[i];

        if (item->is_used || item->may_be_unused)
            continue;
        all = false;
        printf("# does not fail, remove it from suite-exceptions.txt: %.*s: %.*s\n",
               PEG_ARG(item->file), PEG_ARG(item->rest));
    }
    return all;
}

static inline void exceptions_free(struct exceptions *exceptions)
{
    suite_read_free(exceptions->text);
}

#endif
