/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_STORE_H
#define PEGBOARD_STORE_H

/*
 * Where a gateway keeps its toolsets. A store knows records by name and nothing of what is in them.
 * A host may bring its own: all functions are required. The gateway calls them from threads that
 * may block, one call at a time.
 */

#include <pegboard/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All strings are borrowed until the function returns. */
typedef struct peg_store_record {
    peg_str name;
    uint64_t revision; /* each change of a name has a greater one */
    int64_t at_ms;     /* when it was changed, Unix time */
    bool is_removed;   /* a tombstone, so that an older record is not taken for news; no body */
    peg_str body;      /* JSON text */
} peg_store_record;

typedef peg_status (*peg_store_each_fn)(const peg_store_record *record, void *user,
                                        peg_error *reterr);

typedef struct peg_store {
    const char *kind; /* "memory", "sqlite", ...; static */
    /* The record takes the place of the one with its name. When it returns PEG_OK, the record
     * outlives the process and the machine's power. PEG_ESTATE (E_STORE_REVISION): the one that
     * stands has the same or a greater revision, and stays. */
    peg_status (*put)(void *self, const peg_store_record *record, peg_error *reterr);
    /* Every record, tombstones too, by name. What `each` fails with ends it and is handed on. */
    peg_status (*read)(void *self, peg_store_each_fn each, void *user, peg_error *reterr);
    /* Forgets tombstones from before that moment. */
    peg_status (*forget)(void *self, int64_t before_ms, peg_error *reterr);
    void (*free)(void *self);
    void *self;
} peg_store;

/* Forgets everything when it is freed. */
PEG_API PEG_MUST_USE peg_status peg_memory_store_new(peg_store *ret_store, peg_error *reterr);

/*
 * One file, made if it is not there, in a folder that is (mode 0600). One process at a time:
 * PEG_ESTATE (E_STORE_LOCKED) names who holds it. PEG_EIO (E_STORE): the file or the disk;
 * PEG_EUNSUPPORTED (E_STORE_VERSION): a later version of pegboard wrote it.
 */
PEG_API PEG_MUST_USE peg_status peg_sqlite_store_new(const char *path, peg_store *ret_store,
                                                     peg_error *reterr);

/* Everything is copied; each NULL means the default told in brackets. */
typedef struct peg_mongo_store_options {
    size_t size; /* set by PEG_MONGO_STORE_OPTIONS_INIT */
    /* mongodb:// or mongodb+srv://, with user, password, TLS and times as MongoDB writes them.
     * Required. */
    const char *url;
    const char *database;   /* [registry] */
    const char *collection; /* made if it is not there [toolsets] */
} peg_mongo_store_options;
#define PEG_MONGO_STORE_OPTIONS_INIT .size = sizeof(peg_mongo_store_options)

/*
 * A collection of MongoDB, which the nodes of a cluster may share. What was acknowledged is on the
 * disks of a majority of its members. A connection that is lost is made again, for at most 5 s in
 * each function; after that functions fail (PEG_EIO, E_STORE), once each, until the server is back.
 * A put that failed so may have been done.
 *
 * It loads a module, libpegboard-mongo, which needs libmongoc and turns off libmongoc's log in this
 * process. PEG_EUNSUPPORTED (E_STORE_MODULE): one of them is missing. PEG_EINVAL (E_STORE): the URL
 * or a name; PEG_EIO (E_STORE): the server does not answer, or does not know the user. From `read`:
 * PEG_EIO (E_STORE): the collection has other documents; PEG_EUNSUPPORTED (E_STORE_VERSION): a
 * later version of pegboard wrote one.
 */
PEG_API PEG_MUST_USE peg_status peg_mongo_store_new(const peg_mongo_store_options *options,
                                                    peg_store *ret_store, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
