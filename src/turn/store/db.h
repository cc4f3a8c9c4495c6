/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_DB_H
#define PEG_TURN_STORE_DB_H

/*
 * The database of a turn store: its schema, its statements, parts and bytes. It knows nothing of
 * turns.
 *
 * A part is a piece of JSON under its SHA-256, stored once and counted: how many places of lists
 * (and turns, for their data) lead to it. Bytes stand under a key, which is a digest too, and stay
 * for as long as a part needs them.
 *
 * Invariant, at the end of each transaction: what leads to a part finds it, and each part is led
 * to. So whoever sees a digest in the list that a turn has now need not look for the part.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sqlite/sqlite.h"
#include "pegboard/spool.h"
#include "turn/store/cache.h"

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
struct peg__db *peg__db_ref(struct peg__db *db);
struct peg__db *peg__db_unref(struct peg__db *db);

/* Types of values, one letter each: i int64_t, t peg_str text, b peg_str blob. */
/* Binds, and hands the statement out to be stepped; whoever steps it resets it. */
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
