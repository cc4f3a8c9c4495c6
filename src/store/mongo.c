/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records in MongoDB: what is asked of the driver, and again when the connection was lost.
 *
 * A put that was lost may have been done. Asked again it then finds its own record, which is no
 * conflict; one of somebody else is. So what stands is read, as a majority of the members has it,
 * whenever a put finds its place taken.
 */

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "store/internal.h"

enum { FIRST_PAUSE_MS = 20, LONGEST_PAUSE_MS = 500 };

/* MongoDB's own bounds. */
enum { DATABASE_BYTES = 63, COLLECTION_BYTES = 180 };

/* Owned. */
struct mongo_store {
    const struct store_mongo_driver *driver;
    struct store_mongo_time time;
    struct mongo_target target; /* in `strings` */
    void *connection;           /* the driver's; owned */
    bool is_open;
    bool is_lost; /* the last function ended so: the next one tries once */
    char text[MONGO_TEXT_BYTES];
    char strings[];
};

static void pause_for(const peg_clock *clock, int64_t ms)
{
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * PEG_NS_PER_MS};

    (void)clock;
    nanosleep(&wait, NULL);
}

const struct store_mongo_time store_mongo_system_time = {.pause = pause_for};

/* ---- errors ---- */

static peg_status fail_version(const struct mongo_store *store, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_VERSION",
                     "record '%.64s' in MongoDB's %s.%s was written by a later pegboard: use that "
                     "one, or another collection",
                     store->text, store->target.database, store->target.collection);
}

static peg_status explain_outcome(const struct mongo_store *store, enum mongo_outcome outcome,
                                  peg_error *reterr)
{
    const char *database = store->target.database;
    const char *collection = store->target.collection;

    switch (outcome) {
    case MONGO_OK:
        return PEG_OK;
    case MONGO_LATER:
        return fail_version(store, reterr);
    case MONGO_DENIED:
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "MongoDB denies access to %s.%s: check user, password and authSource in "
                         "its URL, and that the user has the role readWrite; it says: %s",
                         database, collection, store->text);
    case MONGO_FOREIGN:
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "document '%.64s' in MongoDB's %s.%s is no record of a store of toolsets: "
                         "choose another collection",
                         store->text, database, collection);
    case MONGO_LOST:
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "MongoDB with %s.%s does not answer: see that it runs and has a primary, "
                         "check its URL, then try again; %s",
                         database, collection, store->text);
    default:
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "MongoDB refuses a command for %s.%s, nothing was changed: %s", database,
                         collection, store->text);
    }
}

/* ---- connections ---- */

static void disconnect(struct mongo_store *store)
{
    if (store->is_open)
        store->driver->close(store->connection);
    store->is_open = false;
}

/* What a function of the driver is given is connected. */
static enum mongo_outcome connect_store(struct mongo_store *store)
{
    enum mongo_outcome outcome = MONGO_OK;

    if (!store->is_open)
        outcome = store->driver->open(store->connection, &store->target, store->text);
    store->is_open = outcome == MONGO_OK;
    return outcome;
}

/* The tries of one function. */
struct tries {
    int64_t until_ns;
    int64_t pause_ms;
};

static struct tries begin_tries(const struct mongo_store *store)
{
    const int64_t ms = store->is_lost ? 0 : PEG_LIMIT_GATEWAY_STORE_RETRY_MS;

    return (struct tries){peg__clock_in_ms(store->time.clock, ms), FIRST_PAUSE_MS};
}

/* Is it to be tried again, as it was lost? On a new connection: libmongoc would leave a server that
 * it has lost alone for five seconds. */
static bool is_next_try(struct mongo_store *store, struct tries *tries, enum mongo_outcome outcome)
{
    const int64_t left_ns = tries->until_ns - peg_clock_mono_ns(store->time.clock);

    store->is_lost = outcome == MONGO_LOST;
    if (outcome != MONGO_LOST)
        return false;
    disconnect(store);
    if (left_ns <= 0)
        return false;
    store->time.pause(store->time.clock, tries->pause_ms);
    tries->pause_ms *= 2;
    if (tries->pause_ms > LONGEST_PAUSE_MS)
        tries->pause_ms = LONGEST_PAUSE_MS;
    return true;
}

/* ---- putting ---- */

/* What is there in place of a record that is to be put. */
struct standing {
    const peg_store_record *wanted;
    bool is_there;
    bool is_same;
    uint64_t revision;
};

static peg_status compare_records(const peg_store_record *record, void *user, peg_error *reterr)
{
    struct standing *standing = user;
    const peg_store_record *wanted = standing->wanted;

    (void)reterr;
    standing->is_there = true;
    standing->revision = record->revision;
    standing->is_same = record->revision == wanted->revision && record->at_ms == wanted->at_ms &&
                        record->is_removed == wanted->is_removed &&
                        (wanted->is_removed || peg__str_eq(record->body, wanted->body));
    return PEG_OK;
}

/* MONGO_OK: it is there. MONGO_TAKEN: another one is. MONGO_LOST: to be tried again, also since
 * others put theirs at the same time, or since a majority does not have it yet. */
static enum mongo_outcome put_once(struct mongo_store *store, struct standing *standing)
{
    enum mongo_outcome outcome = connect_store(store);

    if (!outcome)
        outcome = store->driver->put(store->connection, standing->wanted, store->text);
    if (outcome != MONGO_TAKEN)
        return outcome;
    standing->is_there = false;
    outcome = store->driver->find(store->connection, standing->wanted->name, compare_records,
                                  standing, store->text);
    if (outcome)
        return outcome;
    return standing->is_there && standing->revision >= standing->wanted->revision ? MONGO_TAKEN
                                                                                  : MONGO_LOST;
}

static peg_status check_size(const peg_store_record *record, peg_error *reterr)
{
    if (record->is_removed || record->body.len <= PEG_LIMIT_GATEWAY_STORE_MONGO_BYTES)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_STORE",
                     "the record has %zu bytes, and a document of MongoDB at most 16 MiB: use at "
                     "most %d bytes: use fewer or smaller tools",
                     record->body.len, PEG_LIMIT_GATEWAY_STORE_MONGO_BYTES);
}

static peg_status mongo_put(void *self, const peg_store_record *record, peg_error *reterr)
{
    struct mongo_store *store = self;
    struct standing standing = {.wanted = record};
    struct tries tries = begin_tries(store);
    enum mongo_outcome outcome;
    bool was_lost = false;
    peg_status status = store_check_record(record, reterr);

    if (!status)
        status = check_size(record, reterr);
    if (status)
        return status;
    do {
        outcome = put_once(store, &standing);
        was_lost |= outcome == MONGO_LOST;
    } while (is_next_try(store, &tries, outcome));
    if (outcome != MONGO_TAKEN)
        return explain_outcome(store, outcome, reterr);
    return was_lost && standing.is_same ? PEG_OK
                                        : store_check_revision(record, standing.revision, reterr);
}

/* ---- reading and forgetting ---- */

/* What the host's function has seen is not shown to it twice. */
struct reading {
    peg_store_each_fn each;
    void *user;
    size_t n;
    peg_status status;
};

static peg_status count_and_pass(const peg_store_record *record, void *user, peg_error *reterr)
{
    struct reading *reading = user;

    reading->n++;
    reading->status = reading->each(record, reading->user, reterr);
    return reading->status;
}

static peg_status mongo_read(void *self, peg_store_each_fn each, void *user, peg_error *reterr)
{
    struct mongo_store *store = self;
    struct reading reading = {.each = each, .user = user};
    struct tries tries = begin_tries(store);
    enum mongo_outcome outcome;

    do {
        outcome = connect_store(store);
        if (!outcome)
            outcome = store->driver->read(store->connection, count_and_pass, &reading, reterr,
                                          store->text);
        if (outcome == MONGO_LOST && reading.n > 0)
            tries.until_ns = 0;
    } while (is_next_try(store, &tries, outcome));
    return outcome == MONGO_ENDED ? reading.status : explain_outcome(store, outcome, reterr);
}

static peg_status mongo_forget(void *self, int64_t before_ms, peg_error *reterr)
{
    struct mongo_store *store = self;
    struct tries tries = begin_tries(store);
    enum mongo_outcome outcome;

    do {
        outcome = connect_store(store);
        if (!outcome)
            outcome = store->driver->forget(store->connection, before_ms, store->text);
    } while (is_next_try(store, &tries, outcome));
    return explain_outcome(store, outcome, reterr);
}

/* ---- life ---- */

static void mongo_free(void *self)
{
    struct mongo_store *store = self;

    if (!store)
        return;
    disconnect(store);
    peg__free(store->connection);
    peg__free(store);
}

static peg_status check_mongo_name(const char *what, const char *name, size_t most,
                                   const char *not_in, peg_error *reterr)
{
    if (*name && strlen(name) <= most && !strpbrk(name, not_in))
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_STORE",
                     "MongoDB has no %s '%.80s': use 1 to %zu bytes without any of %s", what, name,
                     most, not_in);
}

/* libmongoc takes what follows the first @ for a host, and a message would name it: that may be
 * the rest of a password. */
static bool has_plain_password(const char *url)
{
    const size_t len = strcspn(url, "?");
    const char *first = memchr(url, '@', len);

    return first && memchr(first + 1, '@', len - (size_t)(first + 1 - url));
}

/* What a URL that is wrong says is not repeated: it has a password in it. */
static peg_status check_target(const struct store_mongo_driver *driver,
                               const struct mongo_target *target, peg_error *reterr)
{
    peg_status status =
        check_mongo_name("database", target->database, DATABASE_BYTES, "/\\. \"$*<>:|?", reterr);

    if (!status)
        status = check_mongo_name("collection", target->collection, COLLECTION_BYTES, "$", reterr);
    if (!status && (has_plain_password(target->url) || !driver->is_url(target->url)))
        status = peg__fail(reterr, PEG_EINVAL, "E_STORE",
                           "the URL is none of MongoDB: write "
                           "mongodb://USER:PASSWORD@HOST:PORT/?OPTION=VALUE with MongoDB's "
                           "options, and in the user and the password %%40 for @, %%3A for :, "
                           "%%2F for / and %%25 for %%");
    return status;
}

static char *copy_string(char **at, const char *string)
{
    const size_t bytes = strlen(string) + 1;
    char *copy = memcpy(*at, string, bytes);

    *at += bytes;
    return copy;
}

static peg_status make_store(const struct store_mongo_driver *driver,
                             const struct mongo_target *target, struct mongo_store **ret_store,
                             peg_error *reterr)
{
    const size_t bytes =
        strlen(target->url) + strlen(target->database) + strlen(target->collection) + 3;
    struct mongo_store *store = peg__alloc_zero(1, sizeof(*store) + bytes);
    char *at;

    if (!store)
        return peg__fail_nomem(reterr);
    store->connection = peg__alloc_zero(1, driver->size);
    if (!store->connection) {
        peg__free(store);
        return peg__fail_nomem(reterr);
    }
    at = store->strings;
    store->driver = driver;
    store->target = *target;
    store->target.url = copy_string(&at, target->url);
    store->target.database = copy_string(&at, target->database);
    store->target.collection = copy_string(&at, target->collection);
    *ret_store = store;
    return PEG_OK;
}

/* Once: a host that starts wants to know at once. */
static peg_status open_collection(struct mongo_store *store, peg_error *reterr)
{
    enum mongo_outcome outcome = connect_store(store);

    if (!outcome)
        outcome = store->driver->prepare(store->connection, store->text);
    return explain_outcome(store, outcome, reterr);
}

peg_status store_mongo_new(const struct store_mongo_driver *driver,
                           const struct store_mongo_time *time,
                           const peg_mongo_store_options *options, peg_store *ret_store,
                           peg_error *reterr)
{
    const struct mongo_target target = {
        .url = options->url,
        .database = options->database ? options->database : "registry",
        .collection = options->collection ? options->collection : "toolsets",
        .connect_ms = PEG_LIMIT_GATEWAY_STORE_CONNECT_MS,
        .answer_ms = PEG_LIMIT_GATEWAY_STORE_ANSWER_MS,
    };
    struct mongo_store *store = NULL;
    peg_status status = check_target(driver, &target, reterr);

    if (!status)
        status = make_store(driver, &target, &store, reterr);
    if (status || !store)
        return status;
    store->time = *time;
    if (!store->time.clock)
        store->time.clock = peg_clock_system();
    status = open_collection(store, reterr);
    if (status) {
        mongo_free(store);
        return status;
    }
    *ret_store = (peg_store){
        .kind = "mongo",
        .put = mongo_put,
        .read = mongo_read,
        .forget = mongo_forget,
        .free = mongo_free,
        .self = store,
    };
    return PEG_OK;
}
