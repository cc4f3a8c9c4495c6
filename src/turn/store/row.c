/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/store/row.h"

#include <string.h>

#include "base/error.h"
#include "base/text/str.h"

peg_status peg__row_check(const struct peg__buf *digests, peg_error *reterr)
{
    if (digests->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return digests->status
               ? peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_LONG",
                           "a turn takes %d blocks (PEG_LIMIT_TURN_BLOCKS)", PEG_LIMIT_TURN_BLOCKS)
               : PEG_OK;
}

bool peg__row_has(const struct peg__buf *digests, size_t i, const peg__digest digest)
{
    return i < peg__row_len(digests) &&
           memcmp(peg__row_at(digests, i), digest, PEG_SHA256_BYTES) == 0;
}

/* Pages are numbered from 0 and full, but for the last. */
static bool add_page(struct peg__buf *digests, int64_t page, peg_str more)
{
    if (digests->len != (size_t)page * PEG__ROW_PAGE || more.len > PEG__ROW_PAGE)
        return false;
    peg__buf_str(digests, more);
    return true;
}

static peg_status read_pages(struct peg__db *db, struct peg__row *row, int64_t n_blocks,
                             peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    bool is_whole = true;
    peg_status status = peg__db_query(db, PEG__DB_PAGES, &stmt, reterr, "i", row->no);

    if (status)
        return status;
    while (is_whole && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row)
        is_whole = add_page(&row->digests, peg__sqlite_int64(stmt, 0), peg__sqlite_blob(stmt, 1));
    peg__sqlite_reset(stmt);
    if (!status)
        status = peg__row_check(&row->digests, reterr);
    if (!status && (!is_whole || row->digests.len % PEG_SHA256_BYTES != 0 ||
                    (int64_t)peg__row_len(&row->digests) != n_blocks))
        status = peg__db_fail_damaged(db, "a turn has lost blocks", reterr);
    return status;
}

static peg_status take_row(struct peg__db *db, struct peg__sqlite_stmt *stmt, struct peg__row *row,
                           peg_error *reterr)
{
    const peg_str data = peg__sqlite_blob(stmt, 1);

    row->no = peg__sqlite_int64(stmt, 0);
    row->has_data = data.len > 0;
    if (row->has_data && data.len != sizeof(row->data))
        return peg__db_fail_damaged(db, "a turn has lost its data", reterr);
    if (row->has_data)
        memcpy(row->data, data.ptr, sizeof(row->data));
    return PEG_OK;
}

static peg_status take_told(struct peg__db *db, struct peg__sqlite_stmt *stmt,
                            struct peg__row_reported *told, peg_error *reterr)
{
    struct peg__buf copy = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (!peg__phase_from_name(peg__sqlite_text(stmt, 2), &told->phase))
        return peg__db_fail_damaged(db, "a turn has an unknown phase", reterr);
    peg__buf_str(&copy, peg__sqlite_text(stmt, 3));
    return peg__buf_take(&copy, &told->head, &told->head_len, reterr);
}

peg_status peg__row_find(struct peg__db *db, peg_str id, struct peg__row *row,
                         struct peg__row_reported *told, peg_error *reterr)
{
    struct peg__sqlite_stmt *stmt = NULL;
    int64_t n_blocks = 0;
    bool is_row = false;
    peg_status status = peg__db_query(db, PEG__DB_FIND_TURN, &stmt, reterr, "t", id);

    if (status)
        return status;
    status = peg__sqlite_step(stmt, &is_row, reterr);
    if (!status && is_row) {
        n_blocks = peg__sqlite_int64(stmt, 4);
        status = take_row(db, stmt, row, reterr);
        if (!status && told)
            status = take_told(db, stmt, told, reterr);
    }
    peg__sqlite_reset(stmt);
    return status || !is_row ? status : read_pages(db, row, n_blocks, reterr);
}
