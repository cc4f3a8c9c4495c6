/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_STORE_CONTRACT_H
#define PEG_TESTS_STORE_CONTRACT_H

/*
 * What include/pegboard/store.h promises, for every store alike. The file of a store defines
 *
 *   peg_status contract_open(const char *folder, peg_store *ret_store, peg_error *reterr);
 *   static const bool contract_lasts;   // is it there when it is opened again?
 *
 * before it includes this; the tests register themselves.
 */

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/store.h"

/* ---- fixture: a folder, and the store in it ------------------------------------------------- */

struct world {
    char folder[32];
    peg_store store;
    peg_error error;
};

static inline void world_reopen(struct world *w)
{
    CHECK_STATUS(contract_open(w->folder, &w->store, &w->error), PEG_OK, w->error);
}

static inline void world_open(struct world *w)
{
    *w = (struct world){.folder = "/tmp/peg-store-XXXXXX"};
    CHECK(mkdtemp(w->folder) != NULL);
    world_reopen(w);
}

static inline void folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[320];

    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): one thread */
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path); /* "." and ".." are not unlinked */
    }
    closedir(dir);
    CHECK_INT(rmdir(folder), 0);
}

static inline void world_close(struct world *w)
{
    if (w->store.self)
        w->store.free(w->store.self);
    folder_remove(w->folder);
}

static inline peg_status put_at(struct world *w, const char *name, uint64_t revision,
                                const char *body, int64_t at_ms)
{
    const peg_store_record record = {.name = peg__str(name),
                                     .revision = revision,
                                     .at_ms = at_ms,
                                     .is_removed = !body,
                                     .body = peg__str(body ? body : "")};

    return w->store.put(w->store.self, &record, &w->error);
}

/* body NULL: a tombstone. */
static inline peg_status put(struct world *w, const char *name, uint64_t revision, const char *body)
{
    return put_at(w, name, revision, body, 1000);
}

static inline peg_status tell(const peg_store_record *record, void *user, peg_error *reterr)
{
    struct peg__buf *told = user;

    (void)reterr;
    peg__buf_printf(told, "%.*s %llu %lld %s%.*s\n", PEG_ARG(record->name),
                    (unsigned long long)record->revision, (long long)record->at_ms,
                    record->is_removed ? "removed" : "", PEG_ARG(record->body));
    return PEG_OK;
}

/* All that is there, a line for each: "name revision at body". */
static inline void check_all(struct world *w, const char *expected)
{
    struct peg__buf told = PEG__BUF(1 << 20);

    CHECK_STATUS(w->store.read(w->store.self, tell, &told, &w->error), PEG_OK, w->error);
    CHECK_STR(peg__buf_view(&told), expected);
    peg__buf_free(&told);
}

/* ---- putting -------------------------------------------------------------------------------- */

TEST(a_new_store_is_empty)
{
    struct world w;

    world_open(&w);
    check_all(&w, "");
    world_close(&w);
}

TEST(records_are_read_by_name_whatever_the_order_of_their_coming)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "weather", 1, "{}"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "Zoo", 2, "[1]"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "weather.2", 3, "2"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "atlas", 4, "\"x\""), PEG_OK, w.error);
    check_all(&w, "Zoo 2 1000 [1]\natlas 4 1000 \"x\"\nweather 1 1000 {}\nweather.2 3 1000 2\n");
    world_close(&w);
}

TEST(a_record_takes_the_place_of_the_one_with_its_name)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put_at(&w, "a", 1, "old and longer", 10), PEG_OK, w.error);
    CHECK_STATUS(put_at(&w, "a", 7, "new", 20), PEG_OK, w.error);
    check_all(&w, "a 7 20 new\n");
    world_close(&w);
}

TEST(names_differ_by_case)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "1"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "A", 1, "2"), PEG_OK, w.error);
    check_all(&w, "A 1 1000 2\na 1 1000 1\n");
    world_close(&w);
}

static inline void check_refused(struct world *w, uint64_t revision)
{
    CHECK_STATUS(put(w, "a", revision, "news"), PEG_ESTATE, w->error);
    CHECK_STR(peg__str(w->error.code), "E_STORE_REVISION");
}

TEST(a_revision_that_is_not_greater_is_refused_and_changes_nothing)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 5, "stands"), PEG_OK, w.error);
    check_refused(&w, 5);
    check_refused(&w, 4);
    check_refused(&w, 0);
    check_all(&w, "a 5 1000 stands\n");
    CHECK_STATUS(put(&w, "b", 1, "each name has revisions of its own"), PEG_OK, w.error);
    world_close(&w);
}

TEST(revisions_use_all_64_bits)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", INT64_MAX, "1"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "a", (uint64_t)INT64_MAX + 1, "2"), PEG_OK, w.error);
    check_refused(&w, 3);
    CHECK_STATUS(put(&w, "a", UINT64_MAX, "3"), PEG_OK, w.error);
    check_refused(&w, UINT64_MAX);
    check_all(&w, "a 18446744073709551615 1000 3\n");
    world_close(&w);
}

static inline peg_status compare_body(const peg_store_record *record, void *user, peg_error *reterr)
{
    const peg_str *body = user;

    (void)reterr;
    return peg__str_eq(record->body, *body) ? PEG_OK : PEG_EHOST;
}

TEST(a_body_is_kept_byte_by_byte)
{
    static const char bytes[] = "{\"a\":\"\xc3\xbc\\u0000 ' \\\" %s\"}\0behind\n";
    peg_str body = {bytes, sizeof(bytes) - 1};
    const peg_store_record record = {.name = PEG_LIT("a"), .revision = 1, .body = body};
    struct world w;

    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_OK, w.error);
    CHECK_INT(w.store.read(w.store.self, compare_body, &body, NULL), PEG_OK);
    world_close(&w);
}

TEST(moments_are_kept_from_the_first_to_the_last)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put_at(&w, "a", 1, "", INT64_MIN), PEG_OK, w.error);
    CHECK_STATUS(put_at(&w, "b", 1, "", INT64_MAX), PEG_OK, w.error);
    check_all(&w, "a 1 -9223372036854775808 \nb 1 9223372036854775807 \n");
    world_close(&w);
}

TEST(a_body_of_some_mebibytes_is_kept)
{
    enum { BYTES = 5 << 20 };
    char *bytes = malloc(BYTES);
    peg_str body = {bytes, BYTES};
    peg_store_record record = {.name = PEG_LIT("a"), .revision = 1};
    struct world w;

    CHECK(bytes != NULL);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)('a' + i % 23);
    record.body = body;
    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_OK, w.error);
    CHECK_INT(w.store.read(w.store.self, compare_body, &body, NULL), PEG_OK);
    world_close(&w);
    free(bytes);
}

TEST(a_record_without_a_name_is_refused)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "", 1, "{}"), PEG_EINVAL, w.error);
    check_all(&w, "");
    world_close(&w);
}

TEST(a_name_may_be_as_long_as_its_limit_and_no_longer)
{
    char name[PEG_LIMIT_GATEWAY_STORE_NAME_BYTES + 2];
    struct world w;

    memset(name, 'n', sizeof(name));
    name[PEG_LIMIT_GATEWAY_STORE_NAME_BYTES + 1] = '\0';
    world_open(&w);
    CHECK_STATUS(put(&w, name, 1, "{}"), PEG_ELIMIT, w.error);
    CHECK(strstr(w.error.message, "bytes: use at most") != NULL);
    name[PEG_LIMIT_GATEWAY_STORE_NAME_BYTES] = '\0';
    CHECK_STATUS(put(&w, name, 1, "{}"), PEG_OK, w.error);
    world_close(&w);
}

TEST(a_body_beyond_its_limit_is_refused)
{
    /* Its bytes are never looked at. */
    const peg_store_record record = {
        .name = PEG_LIT("a"), .revision = 1, .body = {"", PEG_LIMIT_GATEWAY_STORE_BODY_BYTES + 1}};
    struct world w;

    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_ELIMIT, w.error);
    CHECK(strstr(w.error.message, "bytes: use at most") != NULL);
    check_all(&w, "");
    world_close(&w);
}

/* ---- tombstones --------------------------------------------------------------------------------
 */

TEST(a_tombstone_has_no_body_and_guards_against_older_records)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "{}"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "a", 3, NULL), PEG_OK, w.error);
    check_refused(&w, 2);
    check_all(&w, "a 3 1000 removed\n");
    CHECK_STATUS(put(&w, "a", 4, "back"), PEG_OK, w.error);
    check_all(&w, "a 4 1000 back\n");
    world_close(&w);
}

TEST(the_body_of_a_tombstone_is_not_kept)
{
    const peg_store_record record = {
        .name = PEG_LIT("a"), .revision = 1, .is_removed = true, .body = PEG_LIT("gone")};
    struct world w;

    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_OK, w.error);
    check_all(&w, "a 1 0 removed\n");
    world_close(&w);
}

TEST(only_tombstones_from_before_the_moment_are_forgotten)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put_at(&w, "lives", 1, "{}", 10), PEG_OK, w.error);
    CHECK_STATUS(put_at(&w, "old", 2, NULL, 10), PEG_OK, w.error);
    CHECK_STATUS(put_at(&w, "just", 3, NULL, 20), PEG_OK, w.error);
    CHECK_STATUS(put_at(&w, "new", 4, NULL, 30), PEG_OK, w.error);
    CHECK_STATUS(w.store.forget(w.store.self, 20, &w.error), PEG_OK, w.error);
    check_all(&w, "just 3 20 removed\nlives 1 10 {}\nnew 4 30 removed\n");
    CHECK_STATUS(put(&w, "old", 1, "as if it had never been"), PEG_OK, w.error);
    world_close(&w);
}

/* ---- reading
 * ------------------------------------------------------------------------------------- */

static inline peg_status refuse_the_second(const peg_store_record *record, void *user,
                                           peg_error *reterr)
{
    unsigned *n = user;

    (void)record;
    if (++*n < 2)
        return PEG_OK;
    *reterr = (peg_error){.status = PEG_EPARSE, .code = "E_MINE", .cause = ""};
    return PEG_EPARSE;
}

TEST(what_the_reader_fails_with_ends_the_reading_and_is_handed_on)
{
    struct world w;
    unsigned n = 0;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "1"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "b", 2, "2"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "c", 3, "3"), PEG_OK, w.error);
    CHECK_INT(w.store.read(w.store.self, refuse_the_second, &n, &w.error), PEG_EPARSE);
    CHECK_STR(peg__str(w.error.code), "E_MINE");
    CHECK_INT(n, 2);
    check_all(&w, "a 1 1000 1\nb 2 1000 2\nc 3 1000 3\n");
    world_close(&w);
}

static inline peg_status count(const peg_store_record *record, void *user, peg_error *reterr)
{
    unsigned *n = user;
    char name[16];

    (void)reterr;
    snprintf(name, sizeof(name), "n%05u", (*n)++);
    return peg__str_is(record->name, name) ? PEG_OK : PEG_EHOST;
}

TEST(many_records_are_all_read_in_order)
{
    enum { N = 500 };
    struct world w;
    unsigned n = 0;

    world_open(&w);
    for (unsigned i = 0; i < N; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%05u", i * 7 % N);
        CHECK_STATUS(put(&w, name, 1, "{}"), PEG_OK, w.error);
    }
    CHECK_STATUS(w.store.read(w.store.self, count, &n, &w.error), PEG_OK, w.error);
    CHECK_INT(n, N);
    world_close(&w);
}

TEST(a_store_tells_its_kind)
{
    struct world w;

    world_open(&w);
    CHECK(w.store.kind && *w.store.kind);
    world_close(&w);
}

TEST(records_are_there_when_a_store_that_lasts_is_opened_again)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 5, "{}"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, "b", 6, NULL), PEG_OK, w.error);
    w.store.free(w.store.self);
    world_reopen(&w);
    check_all(&w, contract_lasts ? "a 5 1000 {}\nb 6 1000 removed\n" : "");
    if (contract_lasts)
        check_refused(&w, 5);
    world_close(&w);
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static inline peg_status use_all(struct world *w)
{
    peg_status status = put(w, "b", 1, "{}");

    if (!status)
        status = put(w, "a", 1, "{}");
    if (!status)
        status = put(w, "a", 2, "{\"longer\":true}");
    if (!status)
        status = put(w, "b", 3, NULL);
    return status ? status : w->store.forget(w->store.self, 2000, &w->error);
}

TORTURE(a_store_survives_any_allocation_failure)
{
    struct world w = {.folder = "/tmp/peg-store-XXXXXX"};
    peg_status status;

    if (!mkdtemp(w.folder))
        return PEG_EIO;
    status = contract_open(w.folder, &w.store, &w.error);
    if (!status)
        status = use_all(&w);
    world_close(&w);
    return status;
}

#endif
