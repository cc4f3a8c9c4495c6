/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_MONGO_DRIVER_H
#define PEG_STORE_MONGO_DRIVER_H

/*
 * What the store needs of libmongoc: a table of functions that the module libpegboard-mongo
 * exports. The module takes no function of ours, so the same file serves programs that link our
 * objects and programs that link our shared libraries, and a process has libmongoc only if it opens
 * such a store.
 *
 * libmongoc has an allocator of its own, which ends the process when there is no memory.
 */

#include "base/shared_symbols.h"
#include "pegboard/store.h"

enum mongo_outcome {
    MONGO_OK,
    MONGO_TAKEN,   /* put: a record of that name stands, and its revision was not smaller */
    MONGO_LOST,    /* no connection, or it broke, or not enough members have it: what was asked for
                    * may have been done, and may be asked for again */
    MONGO_DENIED,  /* the user or the password is wrong, or the user may not do this */
    MONGO_FAILED,  /* the server refuses, and would again */
    MONGO_FOREIGN, /* a document is no record of a store; the text is its name */
    MONGO_LATER,   /* a later version of pegboard wrote a document; the text is its name */
    MONGO_ENDED,   /* `each` failed */
};

/* One line about what failed, cut to this. */
enum { MONGO_TEXT_BYTES = 160 };

/* Borrowed; they outlive the connection. */
struct mongo_target {
    const char *url;
    const char *database;
    const char *collection;
    int connect_ms; /* where the URL does not say */
    int answer_ms;
};

/* A connection is memory of the caller, `size` bytes. One call at a time, from any thread. What
 * fails writes its text; `text` has MONGO_TEXT_BYTES. */
struct store_mongo_driver {
    const char *version; /* of the pegboard that it belongs to */
    size_t size;
    bool (*is_url)(const char *url);
    /* Connects when it is first used. What fails leaves nothing to close. */
    enum mongo_outcome (*open)(void *connection, const struct mongo_target *target, char *text);
    void (*close)(void *connection);
    /* Makes the collection and its index where they are missing. */
    enum mongo_outcome (*prepare)(void *connection, char *text);
    /* A majority of the members has it on the disk when it returns MONGO_OK. */
    enum mongo_outcome (*put)(void *connection, const peg_store_record *record, char *text);
    /* What a majority has of that name, if there is one. */
    enum mongo_outcome (*find)(void *connection, peg_str name, peg_store_each_fn each, void *user,
                               char *text);
    /* All, by name. */
    enum mongo_outcome (*read)(void *connection, peg_store_each_fn each, void *user,
                               peg_error *reterr, char *text);
    enum mongo_outcome (*forget)(void *connection, int64_t before_ms, char *text);
};

#define STORE_MONGO_DRIVER_SYMBOL "peg__mongo_driver"
PEG__SHARED extern const struct store_mongo_driver peg__mongo_driver;

#endif
