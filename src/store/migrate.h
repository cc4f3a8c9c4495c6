/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_MIGRATE_H
#define PEG_STORE_MIGRATE_H

/*
 * A database knows which version of its schema it has (user_version) and whose it is
 * (application_id). Each migration brings it from one version to the next; what was released is
 * never changed again, only added to.
 */

#include "base/sqlite/sqlite.h"

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

#endif
