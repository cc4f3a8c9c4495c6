/* SPDX-License-Identifier: Apache-2.0 */

/* The contract of stores, in MongoDB: PEG_TEST_MONGO_URI names a server (test_mongo.py starts one).
 * Every store has a collection of its own in one database, which is dropped at the end. */

#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pegboard/store.h"

static const char *server_url(void)
{
    return getenv("PEG_TEST_MONGO_URI"); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static const char *database(void)
{
    static char name[40];

    snprintf(name, sizeof(name), "pegboard_test_%ld", (long)getpid());
    return name;
}

static peg_status contract_open(const char *folder, peg_store *ret_store, peg_error *reterr)
{
    const peg_mongo_store_options options = {PEG_MONGO_STORE_OPTIONS_INIT, .url = server_url(),
                                             .database = database(),
                                             .collection = strrchr(folder, '/') + 1};

    return peg_mongo_store_new(&options, ret_store, reterr);
}

static const bool contract_lasts = true;

#include "contract.h"

/* ---- beside the store ---- */

static mongoc_client_t *connect_beside(void)
{
    mongoc_client_t *client;

    mongoc_init();
    client = mongoc_client_new(server_url());
    CHECK(client != NULL);
    return client;
}

static void insert_beside(const struct world *w, const char *json)
{
    mongoc_client_t *client = connect_beside();
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, database(), strrchr(w->folder, '/') + 1);
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);

    CHECK(document != NULL);
    CHECK(mongoc_collection_insert_one(collection, document, NULL, NULL, &error));
    bson_destroy(document);
    mongoc_collection_destroy(collection);
    mongoc_client_destroy(client);
}

static void check_unreadable(struct world *w, peg_status status, const char *code,
                             const char *message)
{
    struct peg__buf told = PEG__BUF(1 << 10);

    CHECK_STATUS(w->store.read(w->store.self, tell, &told, &w->error), status, w->error);
    peg__buf_free(&told);
    CHECK_STR(peg__str(w->error.code), code);
    CHECK(strstr(w->error.message, message) != NULL);
}

TEST(a_document_of_another_program_is_named)
{
    struct world w;

    world_open(&w);
    insert_beside(&w, "{\"_id\": \"weather\", \"stream_id\": \"x\", \"registered_at\": \"y\"}");
    check_unreadable(&w, PEG_EIO, "E_STORE", "document 'weather'");
    check_unreadable(&w, PEG_EIO, "E_STORE", "choose another collection");
    world_close(&w);
}

TEST(a_document_of_a_later_version_is_refused)
{
    struct world w;

    world_open(&w);
    insert_beside(&w, "{\"_id\": \"a\", \"format\": 2}");
    check_unreadable(&w, PEG_EUNSUPPORTED, "E_STORE_VERSION", "written by a later pegboard");
    world_close(&w);
}

/* What version 1 writes stays readable. */
TEST(a_document_of_format_1_is_read)
{
    struct world w;

    world_open(&w);
    insert_beside(&w,
                  "{\"_id\": \"a\", \"format\": 1, \"revision\": {\"$numberLong\": \"7\"},"
                  " \"at_ms\": {\"$numberLong\": \"5\"}, \"removed\": false, \"body\": \"{}\"}");
    check_all(&w, "a 7 5 {}\n");
    world_close(&w);
}

TEST(bytes_that_are_no_text_are_kept)
{
    static const char bytes[] = "\xff\xfe\0x";
    peg_str body = {bytes, sizeof(bytes) - 1};
    const peg_store_record record = {.name = PEG_LIT("a"), .revision = 1, .body = body};
    struct world w;

    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_OK, w.error);
    CHECK_INT(w.store.read(w.store.self, compare_body, &body, NULL), PEG_OK);
    world_close(&w);
}

TEST(two_stores_share_a_collection)
{
    struct world w;
    struct world second;

    world_open(&w);
    second = w;
    world_reopen(&second);
    CHECK_STATUS(put(&w, "a", 1, "1"), PEG_OK, w.error);
    CHECK_STATUS(put(&second, "a", 2, "2"), PEG_OK, second.error);
    check_refused(&w, 2);
    CHECK_STATUS(put(&w, "b", 3, NULL), PEG_OK, w.error);
    check_all(&second, "a 2 1000 2\nb 3 1000 removed\n");
    second.store.free(second.store.self);
    world_close(&w);
}

/* ---- two writers at once ---- */

enum { N_ROUNDS = 200 };

struct race {
    pthread_barrier_t both;
    struct world *worlds[2];
    peg_status statuses[2];
};

/* Which of them has the greater revision changes from round to round. */
static uint64_t revision_of(unsigned round, unsigned writer)
{
    return round * 2 + 1 + (round / 2 + writer) % 2;
}

static void *put_other(void *user)
{
    struct race *race = user;

    for (unsigned i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(&race->both);
        race->statuses[1] = put(race->worlds[1], "a", revision_of(i, 1), "1");
        pthread_barrier_wait(&race->both);
    }
    return NULL;
}

/* The greater revision is there; the other one was before it, or was refused. */
static void check_round(struct race *race, unsigned round)
{
    const unsigned first = revision_of(round, 0) > revision_of(round, 1) ? 0 : 1;
    char expected[40];

    snprintf(expected, sizeof(expected), "a %llu 1000 %u\n",
             (unsigned long long)revision_of(round, first), first);
    CHECK_STATUS(race->statuses[first], PEG_OK, race->worlds[first]->error);
    CHECK(race->statuses[!first] == PEG_OK || race->statuses[!first] == PEG_ESTATE);
    check_all(race->worlds[0], expected);
}

TEST(of_two_puts_at_once_the_greater_revision_stands)
{
    struct world w;
    struct world second;
    struct race race = {.worlds = {&w, &second}};
    pthread_t thread;

    if (!getenv("PEG_TEST_MONGO_ATOMIC")) /* NOLINT(concurrency-mt-unsafe): one thread */
        SKIP("commands of this server are not atomic");
    world_open(&w);
    second = w;
    world_reopen(&second);
    pthread_barrier_init(&race.both, NULL, 2);
    CHECK_INT(pthread_create(&thread, NULL, put_other, &race), 0);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(&race.both);
        race.statuses[0] = put(&w, "a", revision_of(i, 0), "0");
        pthread_barrier_wait(&race.both);
        check_round(&race, i);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&race.both);
    second.store.free(second.store.self);
    world_close(&w);
}

/* ---- what stops the start ---- */

TEST(a_port_without_a_server_is_reported_at_once)
{
    const peg_mongo_store_options options = {PEG_MONGO_STORE_OPTIONS_INIT,
                                             .url = "mongodb://user:secret@127.0.0.1:1/"};
    peg_store store;
    peg_error error;

    CHECK_STATUS(peg_mongo_store_new(&options, &store, &error), PEG_EIO, error);
    CHECK(strstr(error.message, "registry.toolsets does not answer") != NULL);
    CHECK(strstr(error.message, "127.0.0.1:1") != NULL);
    CHECK(strstr(error.message, "secret") == NULL);
}

TEST(a_text_that_is_no_url_is_refused_without_being_repeated)
{
    const peg_mongo_store_options options = {PEG_MONGO_STORE_OPTIONS_INIT,
                                             .url = "mongodb://user:sec@ret@host/"};
    peg_store store;
    peg_error error;

    CHECK_STATUS(peg_mongo_store_new(&options, &store, &error), PEG_EINVAL, error);
    CHECK(strstr(error.message, "%40 for @") != NULL);
    CHECK(strstr(error.message, "ret@") == NULL);
}

TEST(the_database_of_the_tests_is_dropped)
{
    mongoc_client_t *client = connect_beside();
    mongoc_database_t *all = mongoc_client_get_database(client, database());
    bson_error_t error;

    CHECK(mongoc_database_drop(all, &error));
    mongoc_database_destroy(all);
    mongoc_client_destroy(client);
}
