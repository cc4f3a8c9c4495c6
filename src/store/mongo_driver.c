/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records in a collection, a document each; the only file that knows libmongoc.
 *
 *   {_id: name, format: 1, revision: int64, at_ms: int64, removed: bool, body: text}
 *
 * The index of _id, which every collection has, makes names unique and brings them in order. A put
 * is one command: replace the document of that name whose revision is smaller, or insert one. If a
 * document stands that is not older, the insertion fails with a duplicate key.
 */

#include "store/mongo_driver.h"

#include <limits.h>
#include <mongoc/mongoc.h>
#include <pthread.h>
#include <string.h>

/* Of the documents. One that is greater is of a later version. */
enum { FORMAT = 1 };

/* Codes of the server (its error_codes.yml) that are not failures of what was asked. */
enum {
    CODE_UNAUTHORIZED = 13,
    CODE_AUTHENTICATION = 18,
    CODE_DUPLICATE_KEY = 11000,
    CODE_ATLAS = 8000, /* Atlas says so when the password is wrong */
};

/* The server stops, starts, or hands over to another one. */
static const uint32_t passing_codes[] = {
    6,     /* HostUnreachable */
    7,     /* HostNotFound */
    64,    /* WriteConcernFailed: a majority has not answered in time */
    89,    /* NetworkTimeout */
    91,    /* ShutdownInProgress */
    100,   /* UnsatisfiableWriteConcern: too few members are there */
    189,   /* PrimarySteppedDown */
    262,   /* ExceededTimeLimit */
    9001,  /* SocketException */
    10107, /* NotWritablePrimary */
    11600, /* InterruptedAtShutdown */
    11602, /* InterruptedDueToReplStateChange */
    13435, /* NotPrimaryNoSecondaryOk */
    13436, /* NotPrimaryOrSecondary */
};

struct connection {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    const struct mongo_target *target;
};

/* ---- errors ---- */

static enum mongo_outcome judge_code(uint32_t code)
{
    switch (code) {
    case CODE_DUPLICATE_KEY:
        return MONGO_TAKEN;
    case CODE_UNAUTHORIZED:
    case CODE_AUTHENTICATION:
    case CODE_ATLAS:
        return MONGO_DENIED;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof(passing_codes) / sizeof(passing_codes[0]); i++)
        if (code == passing_codes[i])
            return MONGO_LOST;
    return MONGO_FAILED;
}

static void write_text(char *text, const char *line, size_t len)
{
    size_t n = len < MONGO_TEXT_BYTES ? len : MONGO_TEXT_BYTES - 1;

    while (n < len && n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    for (size_t i = 0; i < n; i++)
        text[i] = (char)((unsigned char)line[i] < ' ' ? ' ' : line[i]);
    text[n] = '\0';
}

static enum mongo_outcome judge_error(const bson_error_t *error, char *text)
{
    write_text(text, error->message, strlen(error->message));
    switch (error->domain) {
    case MONGOC_ERROR_STREAM:
    case MONGOC_ERROR_SERVER_SELECTION:
    case MONGOC_ERROR_WRITE_CONCERN:
        return MONGO_LOST;
    case MONGOC_ERROR_CLIENT:
        return error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE ? MONGO_DENIED : MONGO_FAILED;
    default:
        return judge_code(error->code);
    }
}

/* ---- life ---- */

/* libmongoc writes to standard error, which is the host's. It is never unloaded: it may not be
 * initialized twice. */
static void start_library(void)
{
    mongoc_init();
    mongoc_log_set_handler(NULL, NULL);
}

static void start_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, start_library);
}

static bool is_url(const char *url)
{
    mongoc_uri_t *uri;

    start_once();
    uri = mongoc_uri_new_with_error(url, NULL);
    if (!uri)
        return false;
    mongoc_uri_destroy(uri);
    return true;
}

static void set_time(mongoc_uri_t *uri, const char *option, int ms)
{
    if (!mongoc_uri_has_option(uri, option))
        mongoc_uri_set_option_as_int32(uri, option, ms);
}

/* What was acknowledged is with a majority, and on their disks. */
static void set_concerns(struct connection *connection)
{
    mongoc_write_concern_t *write = mongoc_write_concern_new();
    mongoc_read_prefs_t *prefs = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);

    /* The server reports a majority that is missing before we take it for lost. */
    mongoc_write_concern_set_wmajority(write, connection->target->answer_ms / 2);
    mongoc_write_concern_set_journal(write, true);
    mongoc_collection_set_write_concern(connection->collection, write);
    mongoc_collection_set_read_prefs(connection->collection, prefs);
    mongoc_write_concern_destroy(write);
    mongoc_read_prefs_destroy(prefs);
}

static enum mongo_outcome open_connection(void *self, const struct mongo_target *target, char *text)
{
    struct connection *connection = self;
    mongoc_uri_t *uri;
    bson_error_t error;

    start_once();
    *connection = (struct connection){.target = target};
    uri = mongoc_uri_new_with_error(target->url, &error);
    if (!uri)
        return judge_error(&error, text);
    set_time(uri, MONGOC_URI_CONNECTTIMEOUTMS, target->connect_ms);
    set_time(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, target->connect_ms);
    set_time(uri, MONGOC_URI_SOCKETTIMEOUTMS, target->answer_ms);
    connection->client = mongoc_client_new_from_uri_with_error(uri, &error);
    mongoc_uri_destroy(uri);
    if (!connection->client) {
        (void)judge_error(&error, text);
        return MONGO_LOST; /* mongodb+srv: the name service does not answer */
    }
    mongoc_client_set_error_api(connection->client, MONGOC_ERROR_API_VERSION_2);
    mongoc_client_set_appname(connection->client, "pegboard");
    connection->collection =
        mongoc_client_get_collection(connection->client, target->database, target->collection);
    set_concerns(connection);
    return MONGO_OK;
}

static void close_connection(void *self)
{
    struct connection *connection = self;

    if (connection->collection)
        mongoc_collection_destroy(connection->collection);
    if (connection->client)
        mongoc_client_destroy(connection->client);
    *connection = (struct connection){0};
}

/* For `forget`. */
static enum mongo_outcome prepare_collection(void *self, char *text)
{
    struct connection *connection = self;
    bson_error_t error;
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(connection->target->collection),
                               "indexes", "[", "{", "key", "{", "removed", BCON_INT32(1), "at_ms",
                               BCON_INT32(1), "}", "name", BCON_UTF8("removed_at_ms"), "}", "]");
    const bool is_done = mongoc_client_write_command_with_opts(
        connection->client, connection->target->database, command, NULL, NULL, &error);

    bson_destroy(command);
    return is_done ? MONGO_OK : judge_error(&error, text);
}

/* ---- writing ---- */

/* Revisions are unsigned, BSON's integers are not: those above 2^63 are there as negative numbers,
 * and count more than all others. */
static void append_older(bson_t *selector, uint64_t revision)
{
    const int64_t number = (int64_t)revision;
    bson_t *older;

    if (number >= 0)
        older = BCON_NEW("revision", "{", "$gte", BCON_INT64(0), "$lt", BCON_INT64(number), "}");
    else
        older = BCON_NEW("$or", "[", "{", "revision", "{", "$gte", BCON_INT64(0), "}", "}", "{",
                         "revision", "{", "$lt", BCON_INT64(number), "}", "}", "]");
    bson_concat(selector, older);
    bson_destroy(older);
}

static void append_body(bson_t *document, peg_str body)
{
    /* Text is for those who look into the database; what is none is kept byte by byte. */
    if (body.len == 0)
        bson_append_utf8(document, "body", -1, "", 0);
    else if (bson_utf8_validate(body.ptr, body.len, false))
        bson_append_utf8(document, "body", -1, body.ptr, (int)body.len);
    else
        bson_append_binary(document, "body", -1, BSON_SUBTYPE_BINARY, (const uint8_t *)body.ptr,
                           (uint32_t)body.len);
}

static bson_t *make_document(const peg_store_record *record)
{
    bson_t *document = bson_new();
    const peg_str none = {"", 0};

    bson_append_utf8(document, "_id", -1, record->name.ptr, (int)record->name.len);
    bson_append_int32(document, "format", -1, FORMAT);
    bson_append_int64(document, "revision", -1, (int64_t)record->revision);
    bson_append_int64(document, "at_ms", -1, record->at_ms);
    bson_append_bool(document, "removed", -1, record->is_removed);
    append_body(document, record->is_removed ? none : record->body);
    return document;
}

static enum mongo_outcome put_document(void *self, const peg_store_record *record, char *text)
{
    struct connection *connection = self;
    bson_t *selector = bson_new();
    bson_t *document = make_document(record);
    bson_t *options = BCON_NEW("upsert", BCON_BOOL(true));
    bson_error_t error;
    bool is_done;

    bson_append_utf8(selector, "_id", -1, record->name.ptr, (int)record->name.len);
    append_older(selector, record->revision);
    is_done = mongoc_collection_replace_one(connection->collection, selector, document, options,
                                            NULL, &error);
    bson_destroy(selector);
    bson_destroy(document);
    bson_destroy(options);
    return is_done ? MONGO_OK : judge_error(&error, text);
}

static enum mongo_outcome forget_documents(void *self, int64_t before_ms, char *text)
{
    struct connection *connection = self;
    bson_t *selector =
        BCON_NEW("removed", BCON_BOOL(true), "at_ms", "{", "$lt", BCON_INT64(before_ms), "}");
    bson_error_t error;
    const bool is_done =
        mongoc_collection_delete_many(connection->collection, selector, NULL, NULL, &error);

    bson_destroy(selector);
    return is_done ? MONGO_OK : judge_error(&error, text);
}

/* ---- reading ---- */

static bool read_string(bson_iter_t *at, peg_str *ret_text)
{
    bson_subtype_t subtype;
    const uint8_t *bytes;
    uint32_t len = 0;

    if (BSON_ITER_HOLDS_UTF8(at)) {
        ret_text->ptr = bson_iter_utf8(at, &len);
    } else if (BSON_ITER_HOLDS_BINARY(at)) {
        bson_iter_binary(at, &subtype, &len, &bytes);
        ret_text->ptr = (const char *)bytes;
    } else {
        return false;
    }
    ret_text->len = len;
    return true;
}

static bool read_int64(const bson_t *document, const char *key, int64_t *ret_number)
{
    bson_iter_t at;

    if (!bson_iter_init_find(&at, document, key) || !BSON_ITER_HOLDS_INT(&at))
        return false;
    *ret_number = bson_iter_as_int64(&at);
    return true;
}

static bool read_fields(const bson_t *document, peg_store_record *ret_record)
{
    int64_t revision = 0;
    bson_iter_t at;

    if (!read_int64(document, "revision", &revision) ||
        !read_int64(document, "at_ms", &ret_record->at_ms) ||
        !bson_iter_init_find(&at, document, "removed") || !BSON_ITER_HOLDS_BOOL(&at))
        return false;
    ret_record->revision = (uint64_t)revision;
    ret_record->is_removed = bson_iter_bool(&at);
    return bson_iter_init_find(&at, document, "body") && read_string(&at, &ret_record->body);
}

/* The record borrows from the document. */
static enum mongo_outcome read_document(const bson_t *document, peg_store_record *ret_record,
                                        char *text)
{
    int64_t format = 0;
    bson_iter_t at;

    *ret_record = (peg_store_record){.name = {"", 0}};
    write_text(text, "?", 1);
    if (bson_iter_init_find(&at, document, "_id") && read_string(&at, &ret_record->name))
        write_text(text, ret_record->name.ptr, ret_record->name.len);
    if (ret_record->name.len == 0 || !read_int64(document, "format", &format) || format < 1)
        return MONGO_FOREIGN;
    if (format > FORMAT)
        return MONGO_LATER;
    return read_fields(document, ret_record) ? MONGO_OK : MONGO_FOREIGN;
}

static enum mongo_outcome read_all(mongoc_cursor_t *cursor, peg_store_each_fn each, void *user,
                                   peg_error *reterr, char *text)
{
    const bson_t *document;
    peg_store_record record;
    bson_error_t error;

    while (mongoc_cursor_next(cursor, &document)) {
        const enum mongo_outcome outcome = read_document(document, &record, text);

        if (outcome)
            return outcome;
        if (each(&record, user, reterr))
            return MONGO_ENDED;
    }
    return mongoc_cursor_error(cursor, &error) ? judge_error(&error, text) : MONGO_OK;
}

static enum mongo_outcome find_record(void *self, peg_str name, peg_store_each_fn each, void *user,
                                      char *text)
{
    struct connection *connection = self;
    bson_t *selector = bson_new();
    bson_t *options = BCON_NEW("limit", BCON_INT64(1), "readConcern", "{", "level",
                               BCON_UTF8(MONGOC_READ_CONCERN_LEVEL_MAJORITY), "}");
    enum mongo_outcome outcome;
    mongoc_cursor_t *cursor;

    bson_append_utf8(selector, "_id", -1, name.ptr, (int)name.len);
    cursor = mongoc_collection_find_with_opts(connection->collection, selector, options, NULL);
    outcome = read_all(cursor, each, user, NULL, text);
    mongoc_cursor_destroy(cursor);
    bson_destroy(selector);
    bson_destroy(options);
    return outcome;
}

static enum mongo_outcome read_records(void *self, peg_store_each_fn each, void *user,
                                       peg_error *reterr, char *text)
{
    struct connection *connection = self;
    bson_t all = BSON_INITIALIZER;
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(connection->collection, &all, options, NULL);
    const enum mongo_outcome outcome = read_all(cursor, each, user, reterr, text);

    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(&all);
    return outcome;
}

const struct store_mongo_driver peg__mongo_driver = {
    .version = PEG_VERSION,
    .size = sizeof(struct connection),
    .is_url = is_url,
    .open = open_connection,
    .close = close_connection,
    .prepare = prepare_collection,
    .put = put_document,
    .find = find_record,
    .read = read_records,
    .forget = forget_documents,
};
