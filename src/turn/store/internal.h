/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_INTERNAL_H
#define PEG_TURN_STORE_INTERNAL_H

/* The parts of stores on a disk: a directory, a database, a cache of digests. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/sqlite/sqlite.h"
#include "pegboard/common.h"
#include "pegboard/spool.h"
#include "pegboard/turn.h"
#include "turn/store/store.h"

/*
 * The directory of a turn store in files, which several processes may use: names, locks, and files
 * that are there whole or not at all. It knows nothing of turns.
 *
 *   NAME.json    a turn; NAME stands for its id
 *   NAME.bytes/  a spool store with its bytes (core/result/spool_file.c)
 *   .lock        what savers, loaders and removers of one turn lock a byte of
 *   .new-*       a file that is being written, or what a crash left of it
 *
 * All errors are PEG_EIO (E_TURN_STORE) unless noted.
 */

enum {
    /* Turns share locks by their names: more would only cost memory. */
    PEG__DIR_LOCKS = 64,
    /* The longest name that we make, without its ending; file systems take 255 bytes. */
    PEG__DIR_NAME = 200,
};

/* Owned; any thread. */
struct peg__dir {
    int fd;
    int lock_fd;
    pthread_mutex_t locks[PEG__DIR_LOCKS]; /* locks of files do not exclude threads */
    char path[];                           /* absolute */
};

/* Makes the directory if its parent exists, for its owner alone, and clears away what crashes left
 * if no other store uses it. */
peg_status peg__dir_open(const char *path, struct peg__dir **ret_dir, peg_error *reterr);
struct peg__dir *peg__dir_close(struct peg__dir *dir);

/*
 * The name for an id: lowercase letters, digits, - and _ as they are, . but not in front; every
 * other byte as %xx. So no two ids have one name, also where a file system takes A for a,
 * and no name leads elsewhere. What would be longer than PEG__DIR_NAME is ~ and its SHA-256.
 * PEG_ENOMEM only.
 */
peg_status peg__dir_name(peg_str id, char ret_name[PEG__DIR_NAME + 1]);

/* Keeps other threads and processes from changing the turn of an id; shared for readers. *ret_name
 * is its name. PEG_ENOMEM too. */
peg_status peg__dir_lock(struct peg__dir *dir, peg_str id, bool is_shared,
                         char ret_name[PEG__DIR_NAME + 1], peg_error *reterr) PEG_MUST_USE;
void peg__dir_unlock(struct peg__dir *dir, const char *name);

/* Replaces NAME.json. On the disk when this returns. */
peg_status peg__dir_write(struct peg__dir *dir, const char *name, peg_str bytes, peg_error *reterr);
/* A file as it was read; bytes are freed with peg__free(), and NULL if there is none. */
struct peg__dir_file {
    char *bytes; /* NUL-terminated */
    size_t len;
    int64_t changed_ms;
};
/* Up to max bytes of NAME.json, from its beginning. */
peg_status peg__dir_read(struct peg__dir *dir, const char *name, size_t max,
                         struct peg__dir_file *ret_file, peg_error *reterr);
/* Takes NAME.json away, then NAME.bytes. Silent if there is neither. */
peg_status peg__dir_remove(struct peg__dir *dir, const char *name, peg_error *reterr);
/* Calls fn with the NAME of each NAME.json until it fails. */
peg_status peg__dir_each(struct peg__dir *dir,
                         peg_status (*fn)(void *user, const char *name, peg_error *reterr),
                         void *user, peg_error *reterr);

/*
 * Digests of blocks and bags by their address: what is shared and immutable need not be written to
 * know what it would be. A reference is held to each, so that the address stays its own; how many
 * and how large they are is bounded.
 *
 * Owned; one thread at a time. A value set to zero is an empty cache.
 */

struct peg__cached;

struct peg__cache {
    struct peg__cached *entries; /* open addressing; a power of two of them */
    size_t capacity;
    size_t n;
    uint64_t n_bytes; /* what all of them took in the store */
    uint64_t round;   /* counts up; what is asked for in a round is kept in it */
    uint64_t full_in; /* the round in which it was full; 0: none */
};

enum peg__cache_kind { PEG__CACHE_BLOCK, PEG__CACHE_BAG };

/* A new round: a turn is about to be saved or loaded. */
void peg__cache_start(struct peg__cache *cache);
/* The digest, or NULL; valid until the cache changes. */
const unsigned char *peg__cache_find(struct peg__cache *cache, const void *thing);
/* Takes a reference. Out of memory or full means that it is not remembered. size is what it takes
 * in the store. */
void peg__cache_add(struct peg__cache *cache, enum peg__cache_kind kind, const void *thing,
                    const unsigned char digest[PEG_SHA256_BYTES], size_t size);
void peg__cache_free(struct peg__cache *cache);

/*
 * The database of a turn store: its schema, its statements, parts and bytes. It knows nothing of
 * turns.
 *
 * A part is a piece of JSON under its SHA-256, stored once and counted: how many places of lists
 * (and turns, for their data) lead to it. Bytes stand under a key, which is a digest too, and stay
 * for as long as a part needs them.
 *
 * Invariant, at the end of each transaction: what leads to a part finds it, and each part is led
 * to. So a digest in the present list of a turn needs no search for its part.
 */

enum peg__db_sql {
    PEG__DB_FIND_TURN,   /* id: no, data, phase, head, n_blocks */
    PEG__DB_ADD_TURN,    /* id, session_id, phase, saved_ms, n_blocks, head, data */
    PEG__DB_CHANGE_TURN, /* the same and no */
    PEG__DB_DROP_TURN,   /* no */
    PEG__DB_ALL_TURNS,   /* : id, session_id, phase, saved_ms, saved_no, n_blocks */
    PEG__DB_SOME_TURNS,  /* session_id: the same */
    PEG__DB_PAGES,       /* turn: page, hashes */
    PEG__DB_PUT_PAGE,    /* turn, page, hashes */
    PEG__DB_CUT_PAGES,   /* turn, the first page that goes */
    PEG__DB_PART,        /* hash: json */
    PEG__DB_USE_PART,    /* hash */
    PEG__DB_ADD_PART,    /* hash, json */
    PEG__DB_LEAVE_PART,  /* hash */
    PEG__DB_DROP_PART,   /* hash */
    PEG__DB_LINK_BYTES,  /* hash, key */
    PEG__DB_KEYS,        /* hash: key */
    PEG__DB_UNLINK,      /* hash */
    PEG__DB_BYTES_LEN,   /* key: length */
    PEG__DB_CHUNK,       /* key, the offset that is wanted: at, content */
    PEG__DB_ADD_CHUNK,   /* key, at, content */
    PEG__DB_DROP_BYTES,  /* key */
    PEG__DB_N_SQL,
};

/* Shared, reference counted: readers of bytes hold it too. Everything but the count is under the
 * lock, which is recursive because bytes are written and read in the midst of saving and loading.
 */
struct peg__db {
    atomic_uint n_refs;
    pthread_mutex_t lock;
    struct peg__sqlite *sqlite;
    struct peg__sqlite_stmt *stmts[PEG__DB_N_SQL];
    struct peg__cache cache;
    bool is_noting;       /* a part is being written */
    struct peg__map keys; /* of the bytes that it needs */
    uint64_t n_key_bytes; /* how many these are */
    char path[];          /* for messages */
};

peg_status peg__db_open(const char *path, struct peg__db **ret_db, peg_error *reterr);
struct peg__db *peg__db_unref(struct peg__db *db);

/* Types of values, one letter each: i int64_t, t peg_str text, b peg_str blob. */
/* Binds, and returns the statement to be stepped; the caller resets it. */
peg_status peg__db_query(struct peg__db *db, enum peg__db_sql which,
                         struct peg__sqlite_stmt **ret_stmt, peg_error *reterr, const char *types,
                         ...) PEG_MUST_USE;
/* To its end. */
peg_status peg__db_run(struct peg__db *db, enum peg__db_sql which, peg_error *reterr,
                       const char *types, ...) PEG_MUST_USE;
/* PEG_EIO (E_TURN_STORE): the database does not hold what it should. */
peg_status peg__db_fail_damaged(const struct peg__db *db, const char *what, peg_error *reterr);

/* ---- parts --------------------------------------------------------------------------- */

typedef unsigned char peg__digest[PEG_SHA256_BYTES];

/* One more leads to it. *ret_is_there is false if there is no such part: then add it. */
peg_status peg__db_use(struct peg__db *db, const peg__digest digest, bool *ret_is_there,
                       peg_error *reterr) PEG_MUST_USE;
/* With one that leads to it, and the bytes whose keys were noted. */
peg_status peg__db_add(struct peg__db *db, const peg__digest digest, peg_str json,
                       peg_error *reterr) PEG_MUST_USE;
/* One less; the last one takes it away, and its bytes if no other part needs them. */
peg_status peg__db_leave(struct peg__db *db, const peg__digest digest,
                         peg_error *reterr) PEG_MUST_USE;
/* Its JSON, checked against its digest; borrowed until the next use of this function. PEG_EIO if it
 * is not there or damaged. The statement is to be reset by the caller. */
peg_status peg__db_part(struct peg__db *db, const peg__digest digest,
                        struct peg__sqlite_stmt **ret_stmt, peg_str *ret_json,
                        peg_error *reterr) PEG_MUST_USE;

/* ---- bytes ---------------------------------------------------------------------------- */

/* A spool store on the database; writing is for use within a transaction. */
peg_status peg__db_spool_new(struct peg__db *db, peg_spool_store **ret_store,
                             peg_error *reterr) PEG_MUST_USE;
/* From now on, which keys are written and found: what the next part needs. */
void peg__db_note_keys(struct peg__db *db, bool is_noting);

#endif
