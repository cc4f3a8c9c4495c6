/* SPDX-License-Identifier: Apache-2.0 */

/* A store in MongoDB whose connection is lost: with a driver that does as it is told, a record in
 * place of a server, and a clock that stands still. What it does with a real server is in
 * test_store_mongo.c. */

#include <stdio.h>

#include "../t.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "store/internal.h"

/* ---- fixture: the server, and what it answers next ---- */

enum { N_SCRIPT = 8 };

struct server {
    enum mongo_outcome script[N_SCRIPT]; /* of the next commands; then MONGO_OK */
    unsigned at;
    bool does_lost; /* what is lost was done */
    bool is_dead;   /* every command is lost */
    bool has_record;
    peg_store_record record;
    char body[32];
    unsigned n_opens;
    unsigned n_open;
    unsigned n_puts;
    unsigned n_reads;
    unsigned n_pauses;
};

static struct server server;

static enum mongo_outcome next_outcome(char *text)
{
    snprintf(text, MONGO_TEXT_BYTES, "says the server");
    if (server.is_dead)
        return MONGO_LOST;
    return server.at < N_SCRIPT ? server.script[server.at++] : MONGO_OK;
}

static bool is_url(const char *url)
{
    return strncmp(url, "mongodb://", 10) == 0;
}

static enum mongo_outcome open_fake(void *connection, const struct mongo_target *target, char *text)
{
    (void)connection, (void)text;
    CHECK_STR(peg__str(target->url), "mongodb://user:secret@localhost");
    server.n_opens++;
    server.n_open++;
    return MONGO_OK;
}

static void close_fake(void *connection)
{
    (void)connection;
    server.n_open--;
}

static enum mongo_outcome prepare_fake(void *connection, char *text)
{
    (void)connection;
    return next_outcome(text);
}

static void take_record(const peg_store_record *record)
{
    server.has_record = true;
    server.record = *record;
    server.record.name = peg__str("a");
    snprintf(server.body, sizeof(server.body), "%.*s", PEG_ARG(record->body));
    server.record.body = peg__str(server.body);
}

static enum mongo_outcome put_fake(void *connection, const peg_store_record *record, char *text)
{
    const enum mongo_outcome outcome = next_outcome(text);

    (void)connection;
    server.n_puts++;
    if (outcome == MONGO_OK && server.has_record && server.record.revision >= record->revision)
        return MONGO_TAKEN;
    if (outcome == MONGO_OK || (outcome == MONGO_LOST && server.does_lost))
        take_record(record);
    return outcome;
}

static enum mongo_outcome find_fake(void *connection, peg_str name, peg_store_each_fn each,
                                    void *user, char *text)
{
    const enum mongo_outcome outcome = next_outcome(text);

    (void)connection, (void)name;
    if (!outcome && server.has_record && each(&server.record, user, NULL))
        return MONGO_ENDED;
    return outcome;
}

static enum mongo_outcome read_fake(void *connection, peg_store_each_fn each, void *user,
                                    peg_error *reterr, char *text)
{
    const enum mongo_outcome outcome = next_outcome(text);

    (void)connection;
    server.n_reads++;
    if ((!outcome || server.does_lost) && server.has_record && each(&server.record, user, reterr))
        return MONGO_ENDED;
    return outcome;
}

static enum mongo_outcome forget_fake(void *connection, int64_t before_ms, char *text)
{
    (void)connection, (void)before_ms;
    return next_outcome(text);
}

static const struct store_mongo_driver driver = {
    .version = "test",
    .size = 24,
    .is_url = is_url,
    .open = open_fake,
    .close = close_fake,
    .prepare = prepare_fake,
    .put = put_fake,
    .find = find_fake,
    .read = read_fake,
    .forget = forget_fake,
};

static peg_clock *test_clock;

static void pause_fake(const peg_clock *clock, int64_t ms)
{
    CHECK(clock == test_clock);
    CHECK(ms > 0 && ms <= 500);
    server.n_pauses++;
    peg_clock_manual_advance(test_clock, ms);
}

struct world {
    peg_store store;
    peg_error error;
};

static peg_status open_store(struct world *w)
{
    const struct store_mongo_time time = {.clock = test_clock, .pause = pause_fake};
    const peg_mongo_store_options options = {PEG_MONGO_STORE_OPTIONS_INIT,
                                             .url = "mongodb://user:secret@localhost"};

    return store_mongo_new(&driver, &time, &options, &w->store, &w->error);
}

static void world_open(struct world *w)
{
    server = (struct server){.n_open = 0};
    *w = (struct world){.store.self = NULL};
    CHECK_STATUS(peg_clock_manual_new(0, &test_clock, &w->error), PEG_OK, w->error);
    CHECK_STATUS(open_store(w), PEG_OK, w->error);
    server.at = 0;
}

static void world_close(struct world *w)
{
    w->store.free(w->store.self);
    CHECK_INT(server.n_open, 0);
    test_clock = peg_clock_manual_free(test_clock);
}

static peg_status put(struct world *w, uint64_t revision, const char *body)
{
    const peg_store_record record = {
        .name = PEG_LIT("a"), .revision = revision, .at_ms = 5, .body = peg__str(body)};

    return w->store.put(w->store.self, &record, &w->error);
}

static peg_status count(const peg_store_record *record, void *user, peg_error *reterr)
{
    (void)record, (void)reterr;
    ++*(unsigned *)user;
    return PEG_OK;
}

static int64_t elapsed_ms(void)
{
    return peg_clock_now_ms(test_clock);
}

/* ---- putting ---- */

TEST(a_put_that_was_lost_is_done_again_on_a_new_connection)
{
    struct world w;

    world_open(&w);
    server.script[0] = server.script[1] = MONGO_LOST;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    CHECK_INT(server.n_puts, 3);
    CHECK_INT(server.n_opens, 3);
    CHECK_INT(server.n_open, 1);
    CHECK(server.has_record);
    world_close(&w);
}

TEST(a_put_that_was_done_though_its_answer_was_lost_is_no_conflict)
{
    struct world w;

    world_open(&w);
    server.script[0] = MONGO_LOST;
    server.does_lost = true;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    CHECK_INT(server.n_puts, 2);
    world_close(&w);
}

TEST(a_record_of_another_with_the_revision_of_a_lost_put_is_a_conflict)
{
    const peg_store_record theirs = {
        .name = PEG_LIT("a"), .revision = 1, .at_ms = 5, .body = PEG_LIT("theirs")};
    struct world w;

    world_open(&w);
    take_record(&theirs);
    server.script[0] = MONGO_LOST;
    CHECK_STATUS(put(&w, 1, "ours"), PEG_ESTATE, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE_REVISION");
    world_close(&w);
}

TEST(the_same_record_is_a_conflict_if_nothing_was_lost)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    CHECK_STATUS(put(&w, 1, "{}"), PEG_ESTATE, w.error);
    world_close(&w);
}

TEST(a_put_whose_place_was_taken_by_an_older_record_is_done_again)
{
    const peg_store_record older = {.name = PEG_LIT("a"), .revision = 3, .body = PEG_LIT("1")};
    struct world w;

    world_open(&w);
    take_record(&older);
    server.script[0] = MONGO_TAKEN; /* both found nothing, and inserted */
    CHECK_STATUS(put(&w, 4, "2"), PEG_OK, w.error);
    CHECK_STR(server.record.body, "2");
    world_close(&w);
}

TEST(a_server_that_stays_away_is_given_up_after_a_time_and_then_at_once)
{
    struct world w;

    world_open(&w);
    server.is_dead = true;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_EIO, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE");
    CHECK(strstr(w.error.message, "registry.toolsets does not answer: see that it runs") != NULL);
    CHECK(strstr(w.error.message, "says the server") != NULL);
    CHECK(elapsed_ms() >= PEG_LIMIT_GATEWAY_STORE_RETRY_MS);
    CHECK(elapsed_ms() <= PEG_LIMIT_GATEWAY_STORE_RETRY_MS + 500);
    CHECK_INT(server.n_open, 0);

    server.n_puts = server.n_pauses = 0;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_EIO, w.error);
    CHECK_STATUS(w.store.forget(w.store.self, 1, &w.error), PEG_EIO, w.error);
    CHECK_INT(server.n_puts, 1);
    CHECK_INT(server.n_pauses, 0);
    world_close(&w);
}

TEST(a_server_that_is_back_is_used_and_waited_for_again)
{
    struct world w;

    world_open(&w);
    server.is_dead = true;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_EIO, w.error);
    server.is_dead = false;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    server.at = 0;
    server.script[0] = MONGO_LOST;
    CHECK_STATUS(put(&w, 2, "{}"), PEG_OK, w.error);
    world_close(&w);
}

TEST(what_the_server_refuses_is_not_asked_twice)
{
    struct world w;

    world_open(&w);
    server.script[0] = MONGO_FAILED;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_EIO, w.error);
    CHECK(strstr(w.error.message, "refuses a command") != NULL);
    server.script[1] = MONGO_DENIED;
    CHECK_STATUS(put(&w, 1, "{}"), PEG_EIO, w.error);
    CHECK(strstr(w.error.message, "check user, password and authSource") != NULL);
    CHECK_INT(server.n_puts, 2);
    world_close(&w);
}

TEST(a_record_that_no_document_can_hold_is_refused_before_it_is_sent)
{
    const peg_store_record record = {
        .name = PEG_LIT("a"), .revision = 1, .body = {"", PEG_LIMIT_GATEWAY_STORE_MONGO_BYTES + 1}};
    struct world w;

    world_open(&w);
    CHECK_STATUS(w.store.put(w.store.self, &record, &w.error), PEG_ELIMIT, w.error);
    CHECK(strstr(w.error.message, "a document of MongoDB at most 16 MiB") != NULL);
    CHECK_INT(server.n_puts, 0);
    world_close(&w);
}

/* ---- reading and forgetting ---- */

TEST(what_was_lost_before_the_first_record_is_read_again)
{
    struct world w;
    unsigned n = 0;

    world_open(&w);
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    server.at = 0;
    server.script[0] = server.script[1] = MONGO_LOST;
    CHECK_STATUS(w.store.read(w.store.self, count, &n, &w.error), PEG_OK, w.error);
    CHECK_INT(n, 1);
    CHECK_INT(server.n_reads, 3);
    world_close(&w);
}

TEST(no_record_is_shown_twice)
{
    struct world w;
    unsigned n = 0;

    world_open(&w);
    CHECK_STATUS(put(&w, 1, "{}"), PEG_OK, w.error);
    server.at = 0;
    server.does_lost = true;
    server.script[0] = MONGO_LOST;
    CHECK_STATUS(w.store.read(w.store.self, count, &n, &w.error), PEG_EIO, w.error);
    CHECK_INT(n, 1);
    world_close(&w);
}

TEST(a_forget_that_was_lost_is_done_again)
{
    struct world w;

    world_open(&w);
    server.script[0] = MONGO_LOST;
    CHECK_STATUS(w.store.forget(w.store.self, 1, &w.error), PEG_OK, w.error);
    CHECK_INT(server.n_opens, 2);
    world_close(&w);
}

TEST(a_document_of_others_or_of_a_later_version_stops_the_reading)
{
    struct world w;
    unsigned n = 0;

    world_open(&w);
    server.script[0] = MONGO_FOREIGN;
    server.script[1] = MONGO_LATER;
    CHECK_STATUS(w.store.read(w.store.self, count, &n, &w.error), PEG_EIO, w.error);
    CHECK(strstr(w.error.message, "is no record of a store of toolsets") != NULL);
    CHECK_STATUS(w.store.read(w.store.self, count, &n, &w.error), PEG_EUNSUPPORTED, w.error);
    CHECK_STR(peg__str(w.error.code), "E_STORE_VERSION");
    CHECK_INT(n, 0);
    world_close(&w);
}

/* ---- opening ---- */

TEST(a_server_that_is_not_there_at_the_start_is_reported_at_once)
{
    struct world w;
    struct world second = {.store.self = NULL};

    world_open(&w);
    server.is_dead = true;
    CHECK_STATUS(open_store(&second), PEG_EIO, second.error);
    CHECK_INT(server.n_pauses, 0);
    CHECK(second.store.self == NULL);
    world_close(&w);
}

static void check_rejected(const peg_mongo_store_options *options, const char *message)
{
    const struct store_mongo_time time = {.pause = pause_fake};
    peg_store store;
    peg_error error;

    CHECK_STATUS(store_mongo_new(&driver, &time, options, &store, &error), PEG_EINVAL, error);
    CHECK_STR(peg__str(error.code), "E_STORE");
    CHECK(strstr(error.message, message) != NULL);
    CHECK(strstr(error.message, "secret") == NULL);
}

TEST(options_that_are_wrong_are_named_and_no_password_is_repeated)
{
    static const char url[] = "mongodb://localhost";
    char many[200];

    memset(many, 'c', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    check_rejected(&(peg_mongo_store_options){.url = "http://user:secret@host"},
                   "the URL is none of MongoDB");
    check_rejected(&(peg_mongo_store_options){.url = "mongodb://user:no@secret@host"}, "%40 for @");
    check_rejected(&(peg_mongo_store_options){.url = url, .database = "a.b"}, "no database 'a.b'");
    check_rejected(&(peg_mongo_store_options){.url = url, .database = ""}, "no database ''");
    check_rejected(&(peg_mongo_store_options){.url = url, .collection = "$cmd"},
                   "no collection '$cmd'");
    check_rejected(&(peg_mongo_store_options){.url = url, .collection = many},
                   "use 1 to 180 bytes");
}

TEST(a_store_in_mongodb_needs_a_url)
{
    peg_store store;
    peg_error error;

    CHECK_STATUS(peg_mongo_store_new(NULL, &store, &error), PEG_EINVAL, error);
    CHECK_STATUS(peg_mongo_store_new(&(peg_mongo_store_options){PEG_MONGO_STORE_OPTIONS_INIT},
                                     &store, &error),
                 PEG_EINVAL, error);
    CHECK(strstr(error.message, "needs its URL") != NULL);
}

TORTURE(a_store_in_mongodb_survives_any_allocation_failure)
{
    static const struct store_mongo_time time = {.pause = pause_fake};
    const peg_mongo_store_options options = {PEG_MONGO_STORE_OPTIONS_INIT,
                                             .url = "mongodb://user:secret@localhost"};
    struct world w;
    peg_status status;

    server = (struct server){.n_open = 0};
    status = store_mongo_new(&driver, &time, &options, &w.store, &w.error);
    if (status)
        return status;
    status = put(&w, 1, "{}");
    w.store.free(w.store.self);
    return status;
}
