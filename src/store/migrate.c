/* SPDX-License-Identifier: Apache-2.0 */

#include "store/migrate.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"

static peg_status get_number(struct peg__sqlite *db, const char *query, int64_t *ret_number,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__sqlite_finalizep) struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status = peg__sqlite_prepare(db, peg__str(query), &stmt, NULL, reterr);

    if (!status)
        status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status)
        *ret_number = is_row ? peg__sqlite_int64(stmt, 0) : 0;
    return status;
}

static peg_status get_version(struct peg__sqlite *db, const char *path,
                              const struct store_schema *schema, int64_t *ret_version,
                              peg_error *reterr)
{
    int64_t id = 0;
    int64_t n_tables = 0;
    int64_t version = 0;
    peg_status status = get_number(db, "PRAGMA application_id", &id, reterr);

    if (!status)
        status = get_number(db, "PRAGMA user_version", &version, reterr);
    if (!status)
        status = get_number(db, "SELECT count(*) FROM sqlite_schema", &n_tables, reterr);
    if (status)
        return status;
    if (id != schema->application_id && (id || version || n_tables))
        return peg__fail(reterr, PEG_EIO, "E_STORE",
                         "'%.128s' is a database, but no store of toolsets: choose another file",
                         path);
    if (version > schema->version || version < 0)
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_STORE_VERSION",
                         "the store '%.128s' was written by a later pegboard (its schema is %lld, "
                         "this one knows %d): use that one, or another file",
                         path, (long long)version, schema->version);
    *ret_version = version;
    return PEG_OK;
}

static peg_status migrate_from(struct peg__sqlite *db, const struct store_schema *schema,
                               int64_t version, peg_error *reterr)
{
    char pragmas[96];
    peg_status status = PEG_OK;

    while (!status && version < schema->version)
        status = peg__sqlite_exec(db, schema->migrations[++version], reterr);
    if (status)
        return status;
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             schema->application_id, schema->version);
    return peg__sqlite_exec(db, pragmas, reterr);
}

peg_status store_migrate(struct peg__sqlite *db, const char *path,
                         const struct store_schema *schema, peg_error *reterr)
{
    int64_t version = 0;
    peg_status status = get_version(db, path, schema, &version, reterr);

    if (status || version == schema->version)
        return status;
    status = peg__sqlite_begin(db, reterr);
    if (status)
        return status;
    return peg__sqlite_end(db, migrate_from(db, schema, version, reterr), reterr);
}
