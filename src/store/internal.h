/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_INTERNAL_H
#define PEG_STORE_INTERNAL_H

#include "base/sqlite/sqlite.h"
#include "pegboard/clock.h"
#include "pegboard/store.h"
#include "store/mongo_driver.h"

/* Checks of every store. PEG_EINVAL (E_STORE): it has no name; PEG_ELIMIT (E_STORE):
 * it is too long. */
peg_status store_check_record(const peg_store_record *record, peg_error *reterr) PEG_MUST_USE;
/* PEG_ESTATE (E_STORE_REVISION) if the current revision is not below the record's. */
peg_status store_check_revision(const peg_store_record *record, uint64_t current,
                                peg_error *reterr) PEG_MUST_USE;

/*
 * A database knows which version of its schema it has (user_version) and whose it is
 * (application_id). Each migration brings it from one version to the next; what was released is
 * never changed again, only added to.
 */

struct store_schema {
    int application_id;
    const char *const *migrations; /* [1] makes version 1 of an empty database; [0] is not used */
    int version;                   /* the last of them */
};

/* All of them or none: what fails leaves the database as it was. `path` is for messages. PEG_EIO
 * (E_STORE): it is another program's; PEG_EUNSUPPORTED (E_STORE_VERSION): it is of a later version;
 * and those of SQLite. */
peg_status store_migrate(struct peg__sqlite *db, const char *path,
                         const struct store_schema *schema, peg_error *reterr) PEG_MUST_USE;

/* What the databases of this version look like; tests go on from here. */
extern const struct store_schema store_sqlite_schema;

/*
 * A store in MongoDB without the module: what is done again when a connection is lost, and how
 * often. Tests have a driver and a time of their own.
 */

struct store_mongo_time {
    const peg_clock *clock;
    void (*pause)(const peg_clock *clock, int64_t ms);
};

extern const struct store_mongo_time store_mongo_system_time;

/* The rest as peg_mongo_store_new(); `options` is of this library's size. */
peg_status store_mongo_new(const struct store_mongo_driver *driver,
                           const struct store_mongo_time *time,
                           const peg_mongo_store_options *options, peg_store *ret_store,
                           peg_error *reterr) PEG_MUST_USE;

#endif
