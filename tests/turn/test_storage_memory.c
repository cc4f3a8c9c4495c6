/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/ctx.h"
#include "pegboard/storage.h"
#include "storage_world.h"
#include "turn/turn.h"

/* ---- fixture: blocks whose id is their text, contexts that differ in their run ---- */

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define STORAGE PEG_CLEANUP(peg_memory_storage_freep) peg_memory_storage *

static peg_memory_storage *storage_new(void)
{
    peg_memory_storage *storage = NULL;

    CHECK_INT(peg_memory_storage_new(&storage, NULL), PEG_OK);
    return storage;
}

static peg_turn *fetched(const peg_storage *ops, peg_ctx *ctx, unsigned kinds)
{
    peg_turn *turn = turn_new();
    peg_error error;

    CHECK_STATUS(ops->fetch(ops->user, ctx, kinds, turn, &error), PEG_OK, error);
    return turn;
}

TEST(memory_storage_has_every_function)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);

    CHECK_INT(peg__storage_check(&ops, NULL), PEG_OK);
    CHECK(!peg_memory_storage_free(NULL));
}

TEST(memory_storage_keeps_blocks_in_order)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    TURN turn = turn_new();
    TURN kept = NULL;

    peg__turn_attach(turn, &ops, NULL);
    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    CHECK_INT(add(turn, "b", NULL), PEG_OK);
    CHECK_INT(add(turn, "c", NULL), PEG_OK);
    CHECK_INT(put(turn, "b", "changed", NULL), PEG_OK);
    CHECK_INT(peg_turn_remove(turn, peg__str("a"), NULL), PEG_OK);
    kept = fetched(&ops, NULL, PEG_BLOCKS_ALL);

    CHECK_STR(texts(kept), "changed c ");
    CHECK(peg_turn_at(kept, 0) == peg_turn_at(turn, 0));
}

TEST(memory_storage_fetches_by_kind)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    TURN turn = turn_new();
    TURN thoughts = NULL;
    TURN none = NULL;

    peg__turn_attach(turn, &ops, NULL);
    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    CHECK_INT(peg_turn_add_text(turn, PEG_BLOCK_REASONING, peg__str("hm"), NULL), PEG_OK);
    thoughts = fetched(&ops, NULL, PEG_BLOCKS_THOUGHTS);
    none = fetched(&ops, NULL, PEG_BLOCKS_CALLS);

    CHECK_STR(texts(thoughts), "hm ");
    CHECK_INT(peg_turn_len(none), 0);
}

TEST(memory_storage_replaces_an_id_that_is_stored_again)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    TURN nacked = turn_new();
    TURN again = turn_new();
    TURN kept = NULL;

    peg__turn_attach(nacked, &ops, NULL);
    CHECK_INT(add(nacked, "a", NULL), PEG_OK);
    CHECK_INT(add(nacked, "b", NULL), PEG_OK);
    peg__turn_attach(again, &ops, NULL);
    CHECK_INT(put(again, "a", "again", NULL), PEG_OK);
    kept = fetched(&ops, NULL, PEG_BLOCKS_ALL);

    CHECK_STR(texts(kept), "again b ");
}

TEST(memory_storage_keeps_runs_apart)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_ctx *one = ctx_of_run("one");
    peg_ctx *two = ctx_of_run("two");
    peg_block *block = block_of(PEG_BLOCK_USER, "a", "a");
    TURN of_one = NULL;
    TURN of_two = NULL;
    TURN of_none = NULL;

    CHECK_INT(ops.store(ops.user, one, block, NULL), PEG_OK);
    CHECK_INT(ops.remove(ops.user, two, peg__str("a"), NULL), PEG_OK);
    of_one = fetched(&ops, one, PEG_BLOCKS_ALL);
    of_two = fetched(&ops, two, PEG_BLOCKS_ALL);
    of_none = fetched(&ops, NULL, PEG_BLOCKS_ALL);

    CHECK_STR(texts(of_one), "a ");
    CHECK_STR(texts(of_two), "");
    CHECK_STR(texts(of_none), "");
    peg_block_unref(block);
    peg_ctx_unref(one);
    peg_ctx_unref(two);
}

TEST(memory_storage_fetch_puts_over_what_the_turn_has)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_block *block = block_of(PEG_BLOCK_USER, "a", "kept");
    TURN turn = turn_new();

    CHECK_INT(ops.store(ops.user, NULL, block, NULL), PEG_OK);
    CHECK_INT(add(turn, "b", NULL), PEG_OK);
    CHECK_INT(add(turn, "a", NULL), PEG_OK);
    CHECK_INT(ops.fetch(ops.user, NULL, PEG_BLOCKS_ALL, turn, NULL), PEG_OK);

    CHECK_STR(texts(turn), "b kept ");
    peg_block_unref(block);
}

TEST(memory_storage_fetched_turn_does_not_change_with_the_storage)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_block *block = block_of(PEG_BLOCK_USER, "a", "kept");
    TURN turn = NULL;

    CHECK_INT(ops.store(ops.user, NULL, block, NULL), PEG_OK);
    turn = fetched(&ops, NULL, PEG_BLOCKS_ALL);
    CHECK_INT(ops.remove(ops.user, NULL, peg__str("a"), NULL), PEG_OK);

    CHECK_STR(texts(turn), "kept ");
    peg_block_unref(block);
}

static void check_bytes(peg_reader *reader, const char *expected)
{
    char *bytes = NULL;
    size_t len = 0;

    CHECK_INT(peg_reader_read_all(reader, 100, &bytes, &len, NULL), PEG_OK);
    CHECK_STR(peg__strn(bytes, len), expected);
    peg_free(bytes);
}

/* T102 */
TEST(memory_storage_keeps_bytes_beside_the_blocks)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    TURN turn = NULL;
    peg_reader *first = NULL;
    peg_reader *second = NULL;
    peg_reader *kept;

    CHECK_INT(
        ops.store_bytes(ops.user, NULL, "media", peg__str("m"), peg__str("one"), &first, NULL),
        PEG_OK);
    CHECK_INT(
        ops.store_bytes(ops.user, NULL, "media", peg__str("m"), peg__str("two"), &second, NULL),
        PEG_OK);
    kept = peg_memory_storage_bytes(storage, NULL, "media", peg__str("m"));
    turn = fetched(&ops, NULL, PEG_BLOCKS_ALL);

    check_bytes(first, "one");
    check_bytes(second, "two");
    check_bytes(kept, "two");
    CHECK_INT(peg_turn_len(turn), 0);
    CHECK(!peg_memory_storage_bytes(storage, NULL, "retrieved", peg__str("m")));
    CHECK(!peg_memory_storage_bytes(storage, NULL, "media", peg__str("x")));
    peg_reader_unref(first);
    peg_reader_unref(second);
    peg_reader_unref(kept);
}

TEST(memory_storage_keeps_the_bytes_of_runs_apart)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_ctx *one = ctx_of_run("one");
    peg_reader *reader = NULL;

    CHECK_INT(ops.store_bytes(ops.user, one, "media", peg__str("m"), peg__str("1"), &reader, NULL),
              PEG_OK);
    peg_reader_unref(reader);

    CHECK(!peg_memory_storage_bytes(storage, NULL, "media", peg__str("m")));
    reader = peg_memory_storage_bytes(storage, one, "media", peg__str("m"));
    check_bytes(reader, "1");
    peg_reader_unref(reader);
    peg_ctx_unref(one);
}

TEST(memory_storage_refuses_bytes_of_no_kind_or_name)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    char long_id[PEG_LIMIT_BLOCK_ID_BYTES + 1];
    peg_reader *reader = NULL;
    peg_error error;

    memset(long_id, 'x', sizeof(long_id));
    CHECK_INT(
        ops.store_bytes(ops.user, NULL, "../etc", peg__str("m"), peg__str("1"), &reader, &error),
        PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_INT(ops.store_bytes(ops.user, NULL, "media", peg__str(""), peg__str("1"), &reader, NULL),
              PEG_EINVAL);
    CHECK_INT(ops.store_bytes(ops.user, NULL, "media", peg__strn(long_id, sizeof(long_id)),
                              peg__str("1"), &reader, NULL),
              PEG_EINVAL);
    CHECK(!reader);
}

TEST(memory_storage_refuses_more_bytes_than_its_limit)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    const size_t half = PEG_LIMIT_STORAGE_BYTES / 2 + 1;
    char *bytes = calloc(1, half);
    peg_reader *first = NULL;
    peg_reader *second = NULL;
    peg_error error;

    CHECK(bytes != NULL);
    CHECK_INT(ops.store_bytes(ops.user, NULL, "media", peg__str("1"), peg__strn(bytes, half),
                              &first, NULL),
              PEG_OK);
    CHECK_INT(ops.store_bytes(ops.user, NULL, "media", peg__str("2"), peg__strn(bytes, half),
                              &second, &error),
              PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_STORAGE_FULL");
    CHECK(strstr(error.message, " bytes") != NULL);
    CHECK_INT(ops.store_bytes(ops.user, NULL, "media", peg__str("1"), peg__strn(bytes, half),
                              &second, &error),
              PEG_OK);
    peg_reader_unref(first);
    peg_reader_unref(second);
    free(bytes);
}

TEST(memory_storage_refuses_more_blocks_than_its_limit)
{
    enum { N = 100000, N_RUNS = PEG_LIMIT_STORAGE_BLOCKS / N };
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_block *late = block_of(PEG_BLOCK_USER, "late", "x");
    peg_block *known = block_of(PEG_BLOCK_USER, "7", "changed");
    peg_ctx *runs[N_RUNS];
    peg_error error;
    char id[32];

    for (int r = 0; r < N_RUNS; r++) {
        snprintf(id, sizeof(id), "run-%d", r);
        runs[r] = ctx_of_run(id);
    }
    for (int i = 0; i < N; i++) {
        peg_block *block;

        snprintf(id, sizeof(id), "%d", i);
        block = block_of(PEG_BLOCK_USER, id, "x");
        for (int r = 0; r < N_RUNS; r++)
            CHECK_INT(ops.store(ops.user, runs[r], block, NULL), PEG_OK);
        peg_block_unref(block);
    }

    CHECK_INT(ops.store(ops.user, runs[0], late, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_STORAGE_FULL");
    CHECK(strstr(error.message, " blocks") != NULL);
    CHECK_INT(ops.mutate(ops.user, runs[0], known, NULL), PEG_OK);
    CHECK_INT(ops.remove(ops.user, runs[1], peg__str("8"), NULL), PEG_OK);
    CHECK_INT(ops.store(ops.user, runs[0], late, NULL), PEG_OK);
    peg_block_unref(late);
    peg_block_unref(known);
    for (int r = 0; r < N_RUNS; r++)
        peg_ctx_unref(runs[r]);
}

TEST(memory_storage_refuses_more_runs_than_its_limit)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_block *block = block_of(PEG_BLOCK_USER, "a", "x");
    peg_error error = {.code = ""};

    for (int r = 0; r <= PEG_LIMIT_STORAGE_RUNS; r++) {
        const bool is_last = r == PEG_LIMIT_STORAGE_RUNS;
        peg_ctx *ctx;
        char id[32];

        snprintf(id, sizeof(id), "run-%d", r);
        ctx = ctx_of_run(id);
        CHECK_INT(ops.store(ops.user, ctx, block, &error), is_last ? PEG_ELIMIT : PEG_OK);
        peg_ctx_unref(ctx);
    }

    CHECK(strstr(error.message, " runs") != NULL);
    peg_block_unref(block);
}

TEST(memory_storage_refuses_more_names_of_bytes_than_its_limit)
{
    STORAGE storage = storage_new();
    const peg_storage ops = peg_memory_storage_ops(storage);
    peg_reader *reader = NULL;
    peg_error error;
    char id[32];

    for (int i = 0; i < PEG_LIMIT_STORAGE_FILES; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_INT(
            ops.store_bytes(ops.user, NULL, "media", peg__str(id), peg__str(""), &reader, NULL),
            PEG_OK);
        reader = peg_reader_unref(reader);
    }

    CHECK_INT(
        ops.store_bytes(ops.user, NULL, "media", peg__str("late"), peg__str(""), &reader, &error),
        PEG_ELIMIT);
    CHECK(strstr(error.message, " files of a run") != NULL);
    CHECK(!reader);
}

/* ---- threads -------------------------------------------------------------------- */

enum { N_THREADS = 4, N_BLOCKS = 200 };

struct writer {
    peg_storage ops;
    int number;
    bool is_well;
};

static bool write_and_fetch(const struct writer *writer, int i)
{
    const peg_storage *ops = &writer->ops;
    peg_reader *reader = NULL;
    peg_block *block = NULL;
    peg_turn *turn = NULL;
    char id[32];
    bool is_well;

    snprintf(id, sizeof(id), "%d-%d", writer->number, i);
    is_well =
        !peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                              .id = peg_cstr(id), .text = peg_cstr(id)},
                       &block, NULL) &&
        !ops->store(ops->user, NULL, block, NULL) &&
        !ops->store_bytes(ops->user, NULL, "media", peg_cstr(id), peg_cstr(id), &reader, NULL) &&
        !peg_turn_new(&turn, NULL) && !ops->fetch(ops->user, NULL, PEG_BLOCKS_ALL, turn, NULL) &&
        peg_turn_find(turn, peg_cstr(id)) == block;
    if (is_well && i % 2)
        is_well = !ops->remove(ops->user, NULL, peg_cstr(id), NULL);
    peg_reader_unref(reader);
    peg_turn_free(turn);
    peg_block_unref(block);
    return is_well;
}

static void *write_all(void *user)
{
    struct writer *writer = user;

    writer->is_well = true;
    for (int i = 0; i < N_BLOCKS && writer->is_well; i++)
        writer->is_well = write_and_fetch(writer, i);
    return NULL;
}

TEST(memory_storage_serves_many_threads)
{
    STORAGE storage = storage_new();
    struct writer writers[N_THREADS];
    pthread_t threads[N_THREADS];
    TURN kept = NULL;

    for (int i = 0; i < N_THREADS; i++) {
        writers[i] = (struct writer){.ops = peg_memory_storage_ops(storage), .number = i};
        CHECK_INT(pthread_create(&threads[i], NULL, write_all, &writers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK(writers[i].is_well);
    }
    kept = fetched(&writers[0].ops, NULL, PEG_BLOCKS_ALL);

    CHECK_INT(peg_turn_len(kept), N_THREADS * N_BLOCKS / 2);
}

/* ---- out of memory -------------------------------------------------------------- */

static peg_status use_all(const peg_storage *ops, peg_ctx *ctx, peg_block *block, peg_turn *into)
{
    peg_reader *reader = NULL;
    peg_status status = ops->store(ops->user, ctx, block, NULL);

    if (!status)
        status = ops->mutate(ops->user, ctx, block, NULL);
    if (!status)
        status =
            ops->store_bytes(ops->user, ctx, "media", peg__str("m"), peg__str("b"), &reader, NULL);
    peg_reader_unref(reader);
    if (!status) {
        status = ops->fetch(ops->user, ctx, PEG_BLOCKS_ALL, into, NULL);
        CHECK_INT(peg_turn_len(into), status ? 0 : 1);
    }
    if (!status)
        status = ops->remove(ops->user, ctx, peg_block_id(block), NULL);
    return status;
}

TORTURE(memory_storage_survives_any_allocation_failure)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER, .text = PEG_LIT("x")};
    peg_memory_storage *storage = NULL;
    peg_block *block = NULL;
    peg_turn *into = NULL;
    peg_ctx *ctx = NULL;
    peg_status status = peg_memory_storage_new(&storage, NULL);

    if (!status)
        status = peg_block_new(&def, &block, NULL);
    if (!status)
        status = peg_turn_new(&into, NULL);
    if (!status)
        status = peg_ctx_new(&ctx, NULL);
    if (!status) {
        const peg_storage ops = peg_memory_storage_ops(storage);

        status = use_all(&ops, ctx, block, into);
    }
    peg_ctx_unref(ctx);
    peg_turn_free(into);
    peg_block_unref(block);
    peg_memory_storage_free(storage);
    return status;
}
