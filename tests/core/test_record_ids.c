/* SPDX-License-Identifier: Apache-2.0 */

/* The checksum and the nonce of a record, which are made when somebody asks for them. */

#include <pthread.h>

#include "../t.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/registry.h"
#include "pegboard/run.h"
#include "pegboard/tool.h"

/* ---- fixture -------------------------------------------------------------------- */

static void say_done(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("done"));
}

/* The record of a call that nobody watched. */
static peg_record *run_call(void)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "now", .description = "the time",
                              .run = say_done};
    peg_tool *tool = NULL;
    peg_registry *registry = NULL;
    peg_record *record = NULL;

    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_new(&tool, 1, &registry, NULL), PEG_OK);
    CHECK_INT(peg_registry_call(registry, "now", "{}", &record, NULL), PEG_OK);
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return record;
}

static peg_record *rename_record(peg_record *record, const char *handle)
{
    peg_record *renamed = NULL;

    CHECK_INT(peg__record_rename(record, peg_cstr(handle), &renamed, NULL), PEG_OK);
    return renamed;
}

static const char *const digest_of_now =
    "e9a14fdf1b5879d09bafa77712943d6979cef52f24929f28035f0c3c6974a489";

/* ---- when ------------------------------------------------------------------------ */

TEST(a_call_makes_its_checksum_when_it_is_asked_for_and_only_once)
{
    peg_record *record = run_call();
    const size_t live = peg__mem_live();
    const char *checksum = peg_record_checksum(record);

    CHECK_STR(peg__str(checksum), digest_of_now);
    CHECK_INT(peg__mem_live() - live, 1);
    CHECK(peg_record_checksum(record) == checksum);
    CHECK_INT(peg__mem_live() - live, 1);
    peg_record_unref(record);
}

TEST(a_call_makes_its_nonce_when_it_is_asked_for_and_only_once)
{
    peg_record *record = run_call();
    const size_t live = peg__mem_live();
    const char *nonce = peg_record_nonce(record);

    CHECK_INT(strlen(nonce), 32);
    CHECK_INT(peg__mem_live() - live, 1);
    CHECK(peg_record_nonce(record) == nonce);
    CHECK_INT(peg__mem_live() - live, 1);
    peg_record_unref(record);
}

TEST(a_renamed_record_and_its_original_have_one_checksum_and_one_nonce)
{
    peg_record *record = run_call();
    peg_record *early = rename_record(record, "a");
    const char *checksum = peg_record_checksum(early);
    const char *nonce = peg_record_nonce(early);
    peg_record *late = rename_record(record, "b");

    CHECK(peg_record_checksum(record) == checksum);
    CHECK(peg_record_checksum(late) == checksum);
    CHECK(peg_record_nonce(record) == nonce);
    CHECK(peg_record_nonce(late) == nonce);
    peg_record_unref(record);
    peg_record_unref(early);
    CHECK_STR(peg__str(peg_record_checksum(late)), digest_of_now);
    peg_record_unref(late);
}

/* ---- without memory --------------------------------------------------------------- */

TEST(without_memory_there_is_no_checksum_and_with_memory_there_is)
{
    peg_record *record = run_call();
    const char *none;

    peg__mem_fail_at(1);
    none = peg_record_checksum(record);
    peg__mem_fail_at(0);

    CHECK_STR(peg__str(none), "");
    CHECK_STR(peg__str(peg_record_checksum(record)), digest_of_now);
    peg_record_unref(record);
}

TEST(without_memory_there_is_no_nonce_and_with_memory_there_is)
{
    peg_record *record = run_call();
    const char *none;

    peg__mem_fail_at(1);
    none = peg_record_nonce(record);
    peg__mem_fail_at(0);

    CHECK_STR(peg__str(none), "");
    CHECK_INT(strlen(peg_record_nonce(record)), 32);
    peg_record_unref(record);
}

TORTURE(a_checksum_survives_any_allocation_failure)
{
    peg_record_def def = {PEG_RECORD_DEF_INIT, .call_id = peg_cstr("c"), .tool = peg_cstr("t"),
                          .args = peg_cstr("{\"b\":[1,{\"d\":1,\"c\":2}],\"a\":\"x\"}"),
                          .text = peg_cstr("")};
    peg_record *record = NULL;
    const char *checksum;
    peg_status status = peg_record_new(&def, &record, NULL);

    if (!status)
        status = peg__record_checksum(record, &checksum, NULL);
    peg_record_unref(record);
    return status;
}

/* ---- threads ---------------------------------------------------------------------- */

enum { N_THREADS = 4, N_RECORDS = 200 };

struct asker {
    pthread_t thread;
    pthread_barrier_t *start;
    peg_record **records;
    const char *checksums[N_RECORDS];
    const char *nonces[N_RECORDS];
};

static void *ask(void *user)
{
    struct asker *asker = user;

    for (size_t i = 0; i < N_RECORDS; i++) {
        pthread_barrier_wait(asker->start);
        asker->checksums[i] = peg_record_checksum(asker->records[i]);
        asker->nonces[i] = peg_record_nonce(asker->records[i]);
        CHECK_INT(strlen(asker->nonces[i]), 32);
        CHECK_STR(peg__str(asker->checksums[i]), digest_of_now);
    }
    return NULL;
}

TEST(threads_that_ask_at_once_get_the_same_checksum_and_nonce)
{
    peg_record *records[N_RECORDS];
    struct asker askers[N_THREADS];
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, N_THREADS);
    for (size_t i = 0; i < N_RECORDS; i++)
        records[i] = run_call();
    for (size_t i = 0; i < N_THREADS; i++) {
        askers[i] = (struct asker){.start = &start, .records = records};
        CHECK_INT(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(askers[i].thread, NULL);

    for (size_t i = 0; i < N_RECORDS; i++) {
        for (size_t k = 1; k < N_THREADS; k++) {
            CHECK(askers[k].checksums[i] == askers[0].checksums[i]);
            CHECK(askers[k].nonces[i] == askers[0].nonces[i]);
        }
        peg_record_unref(records[i]);
    }
    pthread_barrier_destroy(&start);
}
