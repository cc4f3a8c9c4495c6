/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One contract, which the stores in memory and in files keep alike: EACH_STORE runs a test on each
 * of them. Then a host's store. What only files can get wrong is in test_spool_file.c.
 */

#include <pthread.h>

#include "base/limits.h"
#include "spool_world.h"

/* ---- fixture: first a store in memory, then one in files --------------------------------- */

/* Ends the store of the round before and makes that of the next. */
static bool next_store(struct world *w, int round)
{
    if (round > 0)
        world_done(w);
    if (round < 2)
        world_make(w, round == 1, 0);
    return round < 2;
}

#define EACH_STORE(w)                                                                              \
    struct world world_;                                                                           \
    struct world *w = &world_;                                                                     \
                                                                                                   \
    for (int round_ = 0; next_store(w, round_); round_++)

/* ---- the contract ------------------------------------------------------------------------ */

TEST(store_reads_what_was_written)
{
    EACH_STORE(w)
    {
        peg_reader *reader = NULL;

        CHECK_INT(peg_spool_write(w->store, a, peg__str("hello"), &reader, NULL), PEG_OK);

        check_reader(reader, peg__str("hello"));
        check_key(w, a, peg__str("hello"));
        check_missing(w, b);
        peg_reader_unref(reader);
    }
}

/* T104 */
TEST(store_keeps_bytes_that_are_no_text)
{
    EACH_STORE(w)
    {
        char bytes[256];

        for (int i = 0; i < 256; i++)
            bytes[i] = (char)(255 - i);
        CHECK_INT(put(w, a, peg__strn(bytes, sizeof(bytes))), PEG_OK);

        check_key(w, a, peg__strn(bytes, sizeof(bytes)));
    }
}

TEST(store_keeps_values_of_any_size)
{
    EACH_STORE(w)
    {
        char *large = peg__alloc(300000);

        for (size_t i = 0; i < 300000; i++)
            large[i] = (char)(i * 31 + i / 1000);
        CHECK_INT(put(w, a, peg__str("")), PEG_OK);
        CHECK_INT(put(w, b, peg__strn(large, 300000)), PEG_OK);

        check_key(w, a, peg__str(""));
        check_key(w, b, peg__strn(large, 300000));
        peg__free(large);
    }
}

TEST(store_replaces_a_key_and_leaves_old_readers_what_they_had)
{
    EACH_STORE(w)
    {
        peg_reader *old = NULL;
        peg_reader *older;

        CHECK_INT(peg_spool_write(w->store, a, peg__str("first"), &old, NULL), PEG_OK);
        older = get(w, a);
        CHECK_INT(put(w, a, peg__str("second, and longer")), PEG_OK);

        check_key(w, a, peg__str("second, and longer"));
        check_reader(old, peg__str("first"));
        check_reader(older, peg__str("first"));
        peg_reader_unref(old);
        peg_reader_unref(older);
    }
}

TEST(store_removes_a_key_and_leaves_its_readers_what_they_had)
{
    EACH_STORE(w)
    {
        bool was_there = false;
        peg_reader *reader;

        CHECK_INT(put(w, a, peg__str("hello")), PEG_OK);
        reader = get(w, a);

        CHECK_INT(peg_spool_remove(w->store, a, &was_there, NULL), PEG_OK);
        CHECK(was_there);
        check_missing(w, a);
        check_reader(reader, peg__str("hello"));
        CHECK_INT(peg_spool_remove(w->store, a, &was_there, NULL), PEG_OK);
        CHECK(!was_there);
        CHECK_INT(peg_spool_remove(w->store, a, NULL, NULL), PEG_OK);
        peg_reader_unref(reader);
    }
}

TEST(store_leaves_readers_alive_when_it_is_freed)
{
    EACH_STORE(w)
    {
        peg_reader *reader = NULL;

        CHECK_INT(peg_spool_write(w->store, a, peg__str("hello"), &reader, NULL), PEG_OK);
        w->store = peg_spool_store_unref(w->store);

        check_reader(reader, peg__str("hello"));
        peg_reader_unref(reader);
    }
}

TEST(store_refuses_keys_that_are_none)
{
    EACH_STORE(w)
    {
        char key[PEG_LIMIT_SPOOL_KEY_BYTES + 1] = {0};
        const peg_str keys[] = {{"", 0}, {NULL, 0}, {key, sizeof(key)}};
        peg_reader *reader = NULL;
        peg_error error;

        for (size_t i = 0; i < 3; i++) {
            CHECK_INT(peg_spool_write(w->store, keys[i], a, &reader, &error), PEG_EINVAL);
            CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
            CHECK_INT(peg_spool_read(w->store, keys[i], &reader, &error), PEG_EINVAL);
            CHECK_INT(peg_spool_remove(w->store, keys[i], NULL, &error), PEG_EINVAL);
            CHECK(!reader);
        }
    }
}

TEST(store_keeps_hostile_keys_apart)
{
    EACH_STORE(w)
    {
        static char longest[PEG_LIMIT_SPOOL_KEY_BYTES];
        static char longest_but_one[PEG_LIMIT_SPOOL_KEY_BYTES];
        const peg_str keys[] = {
            PEG_LIT("../x"),  PEG_LIT("/etc/passwd"), PEG_LIT("."),    PEG_LIT(".."),
            PEG_LIT("\0"),    PEG_LIT("x\0y"),        PEG_LIT("x\0z"), PEG_LIT("x"),
            PEG_LIT("Key"),   PEG_LIT("key"),         PEG_LIT("a\nb"), PEG_LIT("\xFF\xFE"),
            PEG_LIT("new-1"), {longest, 256},         {longest, 255},  {longest_but_one, 256},
        };
        enum { N = sizeof(keys) / sizeof(keys[0]) };

        memset(longest, 'k', sizeof(longest));
        memset(longest_but_one, 'k', sizeof(longest_but_one));
        longest_but_one[255] = 'K';
        for (size_t i = 0; i < N; i++)
            CHECK_INT(put(w, keys[i], peg__strn(&"0123456789abcdef"[i], 1)), PEG_OK);

        for (size_t i = 0; i < N; i++)
            check_key(w, keys[i], peg__strn(&"0123456789abcdef"[i], 1));
    }
}

TEST(store_takes_no_more_than_its_maximum)
{
    EACH_STORE(w)
    {
        peg_reader *reader = NULL;
        peg_error error;

        CHECK_INT(open_again(w, 10, NULL), PEG_OK);
        CHECK_INT(put(w, a, peg__str("12345")), PEG_OK);
        CHECK_INT(put(w, b, peg__str("12345")), PEG_OK);

        CHECK_INT(peg_spool_write(w->store, peg__str("c"), peg__str("1"), &reader, &error),
                  PEG_ELIMIT);
        CHECK_STR(peg__str(error.code), "E_SPOOL_FULL");
        CHECK(strstr(error.message, "(max_bytes)"));
        CHECK(strstr(error.message, "10"));
        CHECK(!reader);
        check_missing(w, peg__str("c"));
        CHECK_INT(put(w, peg__str("c"), peg__str("")), PEG_OK);
        CHECK_INT(put(w, peg__str("d"), peg__str("12345678901")), PEG_ELIMIT);
    }
}

TEST(store_that_is_full_leaves_a_key_as_it_was)
{
    EACH_STORE(w)
    {
        CHECK_INT(open_again(w, 10, NULL), PEG_OK);
        CHECK_INT(put(w, a, peg__str("12345")), PEG_OK);
        CHECK_INT(put(w, b, peg__str("12345")), PEG_OK);

        CHECK_INT(put(w, a, peg__str("123456")), PEG_ELIMIT);

        check_key(w, a, peg__str("12345"));
    }
}

TEST(store_counts_only_what_keys_have_now)
{
    EACH_STORE(w)
    {
        CHECK_INT(open_again(w, 10, NULL), PEG_OK);
        CHECK_INT(put(w, a, peg__str("1234567890")), PEG_OK);

        for (int i = 0; i < 5; i++)
            CHECK_INT(put(w, a, peg__str("0987654321")), PEG_OK);
        CHECK_INT(put(w, a, peg__str("12345")), PEG_OK);
        CHECK_INT(put(w, b, peg__str("12345")), PEG_OK);
        CHECK_INT(put(w, b, peg__str("123456")), PEG_ELIMIT);
        CHECK_INT(peg_spool_remove(w->store, a, NULL, NULL), PEG_OK);
        CHECK_INT(put(w, b, peg__str("1234567890")), PEG_OK);
    }
}

TEST(store_takes_over_bytes_that_are_given_away)
{
    EACH_STORE(w)
    {
        struct peg__buf buf = PEG__BUF(1000);
        peg_reader *reader = NULL;

        peg__buf_puts(&buf, "hello");
        CHECK_INT(peg__spool_write_owned(w->store, a, &buf, &reader, NULL), PEG_OK);

        CHECK(!buf.ptr);
        CHECK_INT(buf.len, 0);
        check_reader(reader, peg__str("hello"));
        check_key(w, a, peg__str("hello"));
        peg_reader_unref(reader);
        CHECK_INT(peg__spool_write_owned(w->store, b, &buf, &reader, NULL), PEG_OK);
        check_key(w, b, peg__str(""));
        peg_reader_unref(reader);
    }
}

TEST(store_that_is_full_frees_bytes_that_were_given_away)
{
    EACH_STORE(w)
    {
        struct peg__buf buf = PEG__BUF(1000);
        peg_reader *reader = NULL;
        peg_error error;

        CHECK_INT(open_again(w, 3, NULL), PEG_OK);
        peg__buf_puts(&buf, "hello");
        CHECK_INT(peg__spool_write_owned(w->store, a, &buf, &reader, &error), PEG_ELIMIT);
        CHECK(!buf.ptr);
        peg__buf_puts(&buf, "hello");
        CHECK_INT(peg__spool_write_owned(w->store, peg__str(""), &buf, &reader, &error),
                  PEG_EINVAL);
        CHECK(!buf.ptr);

        CHECK(!reader);
        check_missing(w, a);
    }
}

/* ---- the contract, from many threads ----------------------------------------------------- */

/* A value is one letter, as often as its place in the alphabet says times 100. */
static bool is_whole(peg_reader *reader)
{
    char *all = NULL;
    size_t len = 0;
    bool whole;

    if (!reader)
        return true;
    if (peg_reader_read_all(reader, 10000, &all, &len, NULL))
        return false;
    whole = len > 0 && len == (size_t)(all[0] - 'a' + 1) * 100;
    for (size_t i = 0; whole && i < len; i++)
        whole = all[i] == all[0];
    peg_free(all);
    peg_reader_unref(reader);
    return whole;
}

struct worker {
    peg_spool_store *store;
    unsigned seed;
    int n_rounds;
    bool has_failed;
};

static void *work(void *user)
{
    struct worker *worker = user;
    char bytes[2600];

    for (int i = 0; i < worker->n_rounds && !worker->has_failed; i++) {
        const unsigned letter = (worker->seed * 7 + (unsigned)i * 5) % 26;
        const peg_str key = {&"01"[i % 2], 1};
        peg_reader *reader = NULL;

        memset(bytes, (char)('a' + letter), sizeof(bytes));
        if (i % 5 == 4)
            worker->has_failed = peg_spool_remove(worker->store, key, NULL, NULL) != PEG_OK;
        else
            worker->has_failed =
                peg_spool_write(worker->store, key, peg__strn(bytes, (letter + 1) * 100), &reader,
                                NULL) != PEG_OK;
        worker->has_failed |= !is_whole(reader);
        reader = NULL;
        worker->has_failed |= peg_spool_read(worker->store, key, &reader, NULL) != PEG_OK;
        worker->has_failed |= !is_whole(reader);
    }
    return NULL;
}

TEST(store_gives_whole_values_to_many_threads)
{
    EACH_STORE(w)
    {
        enum { N_THREADS = 4 };
        struct worker workers[N_THREADS];
        pthread_t threads[N_THREADS];

        for (unsigned i = 0; i < N_THREADS; i++) {
            workers[i] = (struct worker){w->store, i, w->has_files ? 40 : 2000, false};
            CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < N_THREADS; i++)
            CHECK_INT(pthread_join(threads[i], NULL), 0);

        for (int i = 0; i < N_THREADS; i++)
            CHECK(!workers[i].has_failed);
        /* Nothing was counted twice or forgotten. */
        CHECK_INT(peg_spool_remove(w->store, peg__str("0"), NULL, NULL), PEG_OK);
        CHECK_INT(peg_spool_remove(w->store, peg__str("1"), NULL, NULL), PEG_OK);
        if (w->has_files)
            CHECK_INT(each_name(w, NULL), 0);
    }
}

/* ---- memory only ------------------------------------------------------------------------- */

TEST(memory_store_does_not_copy_bytes_that_are_given_away)
{
    struct peg__buf buf = PEG__BUF(1000);
    peg_reader *reader = NULL;
    const char *bytes;
    struct world w;
    peg_str view;

    world_make(&w, false, 0);
    peg__buf_puts(&buf, "hello");
    bytes = buf.ptr;

    CHECK_INT(peg__spool_write_owned(w.store, a, &buf, &reader, NULL), PEG_OK);

    CHECK(peg__reader_view(reader, &view));
    CHECK(view.ptr == bytes);
    peg_reader_unref(reader);
    world_done(&w);
}

TEST(memory_reader_alone_keeps_bytes_when_there_is_no_store)
{
    struct peg__buf buf = PEG__BUF(1 << 20);
    peg_reader *reader = NULL;

    peg__buf_repeat(&buf, 'x', 300000); /* what the buffer did not need is given back */
    CHECK_INT(peg__spool_write_owned(NULL, a, &buf, &reader, NULL), PEG_OK);

    CHECK(!buf.ptr);
    CHECK_INT(peg_reader_byte_length(reader), 300000);
    peg_reader_unref(reader);
}

TEST(memory_store_takes_no_more_keys_than_its_maximum)
{
    struct world w = {0};
    peg_reader *reader = NULL;
    peg_error error;

    CHECK_INT(peg__spool_memory_new(0, 2, &w.store, NULL), PEG_OK);
    CHECK_INT(put(&w, a, peg__str("")), PEG_OK);
    CHECK_INT(put(&w, b, peg__str("")), PEG_OK);

    CHECK_INT(peg_spool_write(w.store, peg__str("c"), a, &reader, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_SPOOL_FULL");
    CHECK(strstr(error.message, "2 keys already (spool_keys)"));
    CHECK_INT(put(&w, b, peg__str("more")), PEG_OK);
    CHECK_INT(peg_spool_remove(w.store, a, NULL, NULL), PEG_OK);
    CHECK_INT(put(&w, peg__str("c"), peg__str("")), PEG_OK);
    world_done(&w);
}

TEST(memory_store_is_shared_by_reference)
{
    peg_spool_store *store = NULL;

    CHECK_INT(peg_spool_memory_new(0, &store, NULL), PEG_OK);
    CHECK(peg_spool_store_ref(store) == store);
    CHECK(!peg_spool_store_unref(store));
    CHECK(!peg_spool_store_unref(store));
    CHECK(!peg_spool_store_unref(NULL));
    CHECK(!peg_spool_store_ref(NULL));
}

/* ---- a host's store ---------------------------------------------------------------------- */

struct host {
    peg_status fails_with;
    bool has_words;
    peg_reader *reader; /* what write and read hand out */
    int n_freed;
};

static peg_status host_end(const struct host *host, peg_error *reterr)
{
    if (host->fails_with && host->has_words)
        *reterr = (peg_error){
            .status = host->fails_with, .code = "E_HOST", .cause = "", .message = "gone"};
    return host->fails_with;
}

static peg_status host_write(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                             peg_error *reterr)
{
    struct host *host = user;

    (void)key, (void)bytes;
    *ret_reader = peg_reader_ref(host->reader);
    return host_end(host, reterr);
}

static peg_status host_read(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr)
{
    struct host *host = user;

    (void)key;
    *ret_reader = peg_reader_ref(host->reader);
    return host_end(host, reterr);
}

static peg_status host_remove(void *user, peg_str key, bool *ret_was_there, peg_error *reterr)
{
    struct host *host = user;

    (void)key;
    *ret_was_there = true;
    return host_end(host, reterr);
}

static void host_free(void *user)
{
    struct host *host = user;

    host->n_freed++;
}

static const peg_spool_ops host_ops = {host_write, host_read, host_remove, host_free};

static peg_spool_store *store_of(struct host *host)
{
    peg_spool_store *store = NULL;

    CHECK_INT(peg_spool_store_new(&host_ops, host, &store, NULL), PEG_OK);
    return store;
}

static void check_ops_refused(peg_spool_ops ops, const char *missing)
{
    peg_spool_store *store = NULL;
    peg_error error;

    CHECK_INT(peg_spool_store_new(&ops, NULL, &store, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK(strstr(error.message, missing));
    CHECK(!store);
}

TEST(host_store_that_lacks_functions_is_told_all_of_them)
{
    peg_spool_ops ops = host_ops;
    peg_spool_store *store = NULL;
    peg_error error;

    ops.write = NULL;
    check_ops_refused(ops, "missing: write");
    ops.remove = NULL;
    check_ops_refused(ops, "missing: write remove");
    ops.read = NULL;
    check_ops_refused(ops, "missing: write read remove");
    CHECK_INT(peg_spool_store_new(NULL, NULL, &store, &error), PEG_EINVAL);
}

TEST(host_store_is_used_and_freed_once)
{
    struct host host = {0};
    struct peg__buf buf = PEG__BUF(10);
    peg_spool_store *store = store_of(&host);
    peg_reader *reader = NULL;
    bool was_there = false;

    CHECK_INT(peg_reader_from_bytes(peg__str("x"), &host.reader, NULL), PEG_OK);
    CHECK_INT(peg_spool_write(store, a, b, &reader, NULL), PEG_OK);
    CHECK(reader == host.reader);
    peg_reader_unref(reader);
    CHECK_INT(peg_spool_remove(store, a, &was_there, NULL), PEG_OK);
    CHECK(was_there);
    peg__buf_puts(&buf, "x");
    CHECK_INT(peg__spool_write_owned(store, a, &buf, &reader, NULL), PEG_OK);
    CHECK(reader == host.reader);
    CHECK(!buf.ptr);
    peg_reader_unref(reader);
    peg_spool_store_unref(store);
    peg_reader_unref(host.reader);

    CHECK_INT(host.n_freed, 1);
}

TEST(host_store_that_fails_is_passed_on)
{
    struct host host = {.fails_with = PEG_EIO, .has_words = true};
    peg_spool_store *store = store_of(&host);
    peg_reader *reader = NULL;
    bool was_there = false;
    peg_error error;

    CHECK_INT(peg_spool_write(store, a, b, &reader, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_HOST");
    host.has_words = false;
    CHECK_INT(peg_spool_write(store, a, b, &reader, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK(strstr(error.message, "failed to write"));
    CHECK_INT(peg_spool_read(store, a, &reader, &error), PEG_EIO);
    CHECK(strstr(error.message, "failed to read"));
    CHECK_INT(peg_spool_remove(store, a, &was_there, &error), PEG_EIO);
    CHECK(strstr(error.message, "failed to remove"));
    CHECK_INT(peg_spool_remove(store, a, &was_there, NULL), PEG_EIO);
    CHECK(!reader);
    CHECK(!was_there);
    peg_spool_store_unref(store);
}

TEST(host_store_that_writes_and_hands_out_no_reader_is_broken)
{
    struct host host = {0};
    peg_spool_store *store = store_of(&host);
    peg_reader *reader = NULL;
    peg_error error;

    CHECK_INT(peg_spool_write(store, a, b, &reader, &error), PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK_INT(peg_spool_read(store, a, &reader, &error), PEG_OK); /* no such key */
    CHECK(!reader);
    peg_spool_store_unref(store);
}

/* ---- memory that runs out ---------------------------------------------------------------- */

/* Each step as long as the one before succeeded; what failed has changed nothing. */
static peg_status use_store(struct world *w)
{
    struct peg__buf buf = PEG__BUF(100);
    peg_reader *reader = NULL;
    peg_status status = put(w, a, peg__str("first"));

    if (status)
        return status;
    status = put(w, a, peg__str("second"));
    if (status == PEG_OK)
        status = peg_spool_read(w->store, a, &reader, NULL);
    reader = peg_reader_unref(reader);
    if (status == PEG_OK) {
        peg__buf_puts(&buf, "third");
        status = buf.status ? buf.status : peg__spool_write_owned(w->store, b, &buf, &reader, NULL);
    }
    peg__buf_free(&buf);
    peg_reader_unref(reader);
    peg__mem_fail_at(0);
    reader = get(w, a);
    CHECK(reader);
    peg_reader_unref(reader);
    return status;
}

static peg_status torture(bool has_files)
{
    struct world w = {.has_files = has_files};
    peg_status status;

    if (has_files)
        make_directory(&w);
    status = open_again(&w, 0, NULL);
    if (status == PEG_OK)
        status = use_store(&w);
    peg__mem_fail_at(0);
    if (has_files)
        each_name(&w, check_name);
    world_done(&w);
    return status;
}

TORTURE(memory_store_survives_any_allocation_failure)
{
    return torture(false);
}

TORTURE(file_store_survives_any_allocation_failure)
{
    return torture(true);
}

TORTURE(host_store_survives_any_allocation_failure)
{
    struct host host = {0};
    peg_spool_store *store = NULL;
    const peg_status status = peg_spool_store_new(&host_ops, &host, &store, NULL);

    CHECK_INT(host.n_freed, 0);
    peg_spool_store_unref(store);
    return status;
}
