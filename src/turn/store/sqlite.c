/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns in a database. A turn is a row with its head (id, metadata and what else its file would
 * have), the digest of its data bag, and the digests of its blocks, many in a row ("pages"):
 *
 *   save   find -> digests of all blocks -> parts that the old list had not -> row -> pages that
 *          changed -> parts that the new list has no more
 *   load   find -> head -> data -> each block
 *
 * Each is one transaction. Saving a long turn after one more block writes that block, one page and
 * the row; the digests of the others come from a cache, for blocks never change.
 */

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "pegboard/cleanup.h"
#include "turn/file/file.h"
#include "turn/store/internal.h"
#include "turn/store/store.h"
#include "turn/turn.h"

/*
 * A turn as it is in the database: a row, and the digests of its blocks in pages of many, so that
 * one block more changes one page.
 */

enum {
    /* Bytes of a page: 100 digests fit a page of the database. */
    ROW_PAGE = 100 * PEG_SHA256_BYTES,
    ROW_MAX = PEG_LIMIT_TURN_BLOCKS * PEG_SHA256_BYTES,
};

struct row {
    int64_t no;              /* 0: there is none */
    bool has_data;           /* or data is not set */
    peg__digest data;        /* of its bag */
    struct peg__buf digests; /* of its blocks, one after the other; starts as PEG__BUF(ROW_MAX) */
};

/* The columns that only loading needs. */
struct row_head {
    peg_phase phase;
    char *head; /* freed with peg__free() */
    size_t head_len;
};

static size_t count_digests(const struct peg__buf *digests)
{
    return digests->len / PEG_SHA256_BYTES;
}

static const unsigned char *digest_at(const struct peg__buf *digests, size_t i)
{
    return (const unsigned char *)digests->ptr + i * PEG_SHA256_BYTES;
}

static peg_status check_digests(const struct peg__buf *digests, peg_error *reterr)
{
    if (digests->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return digests->status ? peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_LARGE",
                                       "a turn takes %d blocks", PEG_LIMIT_TURN_BLOCKS)
                           : PEG_OK;
}

static bool has_digest(const struct peg__buf *digests, size_t i, const peg__digest digest)
{
    return i < count_digests(digests) &&
           memcmp(digest_at(digests, i), digest, PEG_SHA256_BYTES) == 0;
}

/* Pages are numbered from 0 and full, but for the last. */
static bool add_page(struct peg__buf *digests, int64_t page, peg_str more)
{
    if (digests->len != (size_t)page * ROW_PAGE || more.len > ROW_PAGE)
        return false;
    peg__buf_str(digests, more);
    return true;
}

static peg_status read_pages(struct peg__db *db, struct row *row, int64_t n_blocks,
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
        status = check_digests(&row->digests, reterr);
    if (!status && (!is_whole || row->digests.len % PEG_SHA256_BYTES != 0 ||
                    (int64_t)count_digests(&row->digests) != n_blocks))
        status = peg__db_fail_damaged(db, "a turn has lost blocks", reterr);
    return status;
}

static peg_status take_row(struct peg__db *db, struct peg__sqlite_stmt *stmt, struct row *row,
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

static peg_status take_head(struct peg__db *db, struct peg__sqlite_stmt *stmt,
                            struct row_head *head, peg_error *reterr)
{
    struct peg__buf copy = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (!peg__phase_from_name(peg__sqlite_text(stmt, 2), &head->phase))
        return peg__db_fail_damaged(db, "a turn has an unknown phase", reterr);
    peg__buf_str(&copy, peg__sqlite_text(stmt, 3));
    return peg__buf_take(&copy, &head->head, &head->head_len, reterr);
}

static peg_status find_row(struct peg__db *db, peg_str id, struct row *row, struct row_head *head,
                           peg_error *reterr)
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
        if (!status && head)
            status = take_head(db, stmt, head, reterr);
    }
    peg__sqlite_reset(stmt);
    return status || !is_row ? status : read_pages(db, row, n_blocks, reterr);
}

/* ---- parts of a turn as text ---------------------------------------------------------------- */

/* A turn while a transaction saves it. */
struct saving {
    struct peg__db *db;
    peg_spool_store *bytes;
    const peg_turn *turn;
    const peg_turn_info *info;
    struct row old;
    struct row now;
    peg_error *reterr;
};

static peg_status build_thing(struct saving *s, enum peg__cache_kind kind, const void *thing,
                              peg_json_builder *b)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_JSON,
                                            .bytes = s->bytes};
    const struct peg__block_write how = {.options = &options};

    if (kind == PEG__CACHE_BLOCK)
        return peg__block_write(&how, thing, b, s->reterr);
    return peg__bag_write(thing, b, s->reterr);
}

/* A block or a bag, and its bytes into the database; *ret_text is freed with peg_free(). */
static peg_status write_thing(struct saving *s, enum peg__cache_kind kind, const void *thing,
                              char **ret_text, size_t *ret_len)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_json_builder *b = peg_json_builder_new();
    peg_status status;

    peg__db_note_keys(s->db, true);
    status = build_thing(s, kind, thing, b);
    if (status) {
        peg_json_builder_free(b);
        return status;
    }
    status = peg_json_builder_finish(b, &doc, s->reterr);
    return status
               ? status
               : peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, ret_text, ret_len, s->reterr);
}

/*
 * The digest of a block or bag, and the part in the database with one use more, unless the old list
 * has it at this place.
 */
struct wanted {
    enum peg__cache_kind kind;
    const void *thing;
    size_t i;
    peg__digest digest; /* set by want_part() */
};

static bool is_kept(const struct saving *s, const struct wanted *w)
{
    if (w->kind == PEG__CACHE_BLOCK)
        return has_digest(&s->old.digests, w->i, w->digest);
    return s->old.has_data && memcmp(s->old.data, w->digest, sizeof(w->digest)) == 0;
}

static peg_status add_part(struct saving *s, struct wanted *w, bool is_known)
{
    PEG_CLEANUP(peg_freep) char *text = NULL;
    size_t len = 0;
    bool is_there = false;
    peg_status status = write_thing(s, w->kind, w->thing, &text, &len);

    if (!status && !is_known) {
        if (!peg__sha256(peg__strn(text, len), w->digest))
            return peg__fail_nomem(s->reterr);
        peg__cache_add(&s->db->cache, w->kind, w->thing, w->digest, len + s->db->n_key_bytes);
        if (is_kept(s, w))
            return PEG_OK;
        status = peg__db_use(s->db, w->digest, &is_there, s->reterr);
    }
    if (!status && !is_there)
        status = peg__db_add(s->db, w->digest, peg__strn(text, len), s->reterr);
    return status;
}

static peg_status want_part(struct saving *s, struct wanted *w)
{
    const unsigned char *known = peg__cache_find(&s->db->cache, w->thing);
    bool is_there = false;
    peg_status status;

    if (!known)
        return add_part(s, w, false);
    memcpy(w->digest, known, sizeof(w->digest));
    if (is_kept(s, w))
        return PEG_OK;
    status = peg__db_use(s->db, w->digest, &is_there, s->reterr);
    return status || is_there ? status : add_part(s, w, true);
}

/* ---- saving ------------------------------------------------------------------- */

static peg_status want_blocks(struct saving *s)
{
    const size_t n = peg_turn_len(s->turn);
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < n; i++) {
        struct wanted w = {.kind = PEG__CACHE_BLOCK, .thing = peg_turn_at(s->turn, i), .i = i};

        status = want_part(s, &w);
        peg__buf_add(&s->now.digests, w.digest, sizeof(w.digest));
    }
    return status ? status : check_digests(&s->now.digests, s->reterr);
}

static peg_status want_data(struct saving *s)
{
    struct wanted w = {.kind = PEG__CACHE_BAG, .thing = s->turn->data};
    peg_status status;

    s->now.has_data = peg_bag_len(s->turn->data) > 0;
    if (!s->now.has_data)
        return PEG_OK;
    status = want_part(s, &w);
    memcpy(s->now.data, w.digest, sizeof(w.digest));
    return status;
}

/* A turn without its blocks and data, which have tables of their own. */
static peg_status write_head(const struct saving *s, char **ret_text, size_t *ret_len)
{
    const peg_turn_write_options how = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_JSON};
    peg_turn head = {.id = s->turn->id, .metadata = s->turn->metadata, .members = s->turn->members};

    return peg_turn_write(&head, &how, ret_text, ret_len, s->reterr);
}

static peg_status put_row(struct saving *s)
{
    const peg_turn_info *info = s->info;
    const peg_str phase = peg__str(peg_phase_name(info->phase));
    const peg_str data =
        peg__strn((const char *)s->now.data, s->now.has_data ? sizeof(s->now.data) : 0);
    char *head = NULL;
    size_t len = 0;
    peg_status status = write_head(s, &head, &len);

    if (status)
        return status;
    if (s->old.no)
        status = peg__db_run(s->db, PEG__DB_CHANGE_TURN, s->reterr, "tttiitbi", info->id,
                             info->session_id, phase, info->saved_ms, (int64_t)info->n_blocks,
                             peg__strn(head, len), data, s->old.no);
    else
        status =
            peg__db_run(s->db, PEG__DB_ADD_TURN, s->reterr, "tttiitb", info->id, info->session_id,
                        phase, info->saved_ms, (int64_t)info->n_blocks, peg__strn(head, len), data);
    s->now.no = s->old.no ? s->old.no : peg__sqlite_last_rowid(s->db->sqlite);
    peg_free(head);
    return status;
}

static peg_str page_of(const struct peg__buf *digests, size_t page)
{
    const size_t from = page * ROW_PAGE;
    const size_t len = from < digests->len ? digests->len - from : 0;

    return peg__strn(len ? digests->ptr + from : "", len < ROW_PAGE ? len : ROW_PAGE);
}

static peg_status put_pages(struct saving *s)
{
    const size_t n_pages = (s->now.digests.len + ROW_PAGE - 1) / ROW_PAGE;
    peg_status status = PEG_OK;

    for (size_t page = 0; !status && page < n_pages; page++) {
        const peg_str digests = page_of(&s->now.digests, page);

        if (!peg__str_eq(digests, page_of(&s->old.digests, page)))
            status = peg__db_run(s->db, PEG__DB_PUT_PAGE, s->reterr, "iib", s->now.no,
                                 (int64_t)page, digests);
    }
    if (!status && n_pages * ROW_PAGE < s->old.digests.len)
        status =
            peg__db_run(s->db, PEG__DB_CUT_PAGES, s->reterr, "ii", s->now.no, (int64_t)n_pages);
    return status;
}

/* Last of all: what has only moved was in use all the time. */
static peg_status leave_old(struct saving *s)
{
    const size_t n = count_digests(&s->old.digests);
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < n; i++) {
        const unsigned char *digest = digest_at(&s->old.digests, i);

        if (!has_digest(&s->now.digests, i, digest))
            status = peg__db_leave(s->db, digest, s->reterr);
    }
    if (!status && s->old.has_data &&
        !(s->now.has_data && memcmp(s->now.data, s->old.data, sizeof(s->now.data)) == 0))
        status = peg__db_leave(s->db, s->old.data, s->reterr);
    return status;
}

static peg_status save_in(struct saving *s)
{
    peg_status status = find_row(s->db, s->info->id, &s->old, NULL, s->reterr);

    peg__cache_start(&s->db->cache);
    if (!status)
        status = want_blocks(s);
    if (!status)
        status = want_data(s);
    if (!status)
        status = put_row(s);
    if (!status)
        status = put_pages(s);
    return status ? status : leave_old(s);
}

static peg_status sqlite_save(void *self, const peg_turn *turn, const peg_turn_info *info,
                              peg_error *reterr)
{
    PEG_CLEANUP(peg_spool_store_unrefp) peg_spool_store *bytes = NULL;
    struct peg__db *db = self;
    struct saving s = {.db = db,
                       .turn = turn,
                       .info = info,
                       .old.digests = PEG__BUF(ROW_MAX),
                       .now.digests = PEG__BUF(ROW_MAX),
                       .reterr = reterr};
    peg_status status = peg__db_spool_new(db, &bytes, reterr);

    if (status)
        return status;
    s.bytes = bytes;
    pthread_mutex_lock(&db->lock);
    status = peg__sqlite_begin(db->sqlite, reterr);
    if (!status)
        status = peg__sqlite_end(db->sqlite, save_in(&s), reterr);
    peg__db_note_keys(db, false);
    pthread_mutex_unlock(&db->lock);
    peg__buf_free(&s.old.digests);
    peg__buf_free(&s.now.digests);
    return status;
}

/* ---- loading -------------------------------------------------------------------- */

/* A turn while a transaction loads it. */
struct loading {
    struct peg__db *db;
    const peg_turn_read_options *how;
    peg_turn *turn;
    peg_error *reterr;
};

/* The JSON of a part, with its bytes counted. */
static peg_status parse_part(struct loading *l, const peg__digest digest, peg_json_doc **ret_doc,
                             size_t *ret_len)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_TEXT_BYTES};
    struct peg__sqlite_stmt *stmt = NULL;
    peg_str json;
    peg_status status = peg__db_part(l->db, digest, &stmt, &json, l->reterr);

    if (status)
        return status;
    *ret_len = json.len;
    status = peg_json_parse(json, &options, ret_doc, l->reterr);
    peg__sqlite_reset(stmt);
    return status;
}

static peg_status load_block(struct loading *l, const peg__digest digest)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    PEG_CLEANUP(peg_block_unrefp) peg_block *block = NULL;
    const struct peg__block_read how = {.options = l->how};
    const peg_json *id;
    size_t len = 0;
    peg_status status = parse_part(l, digest, &doc, &len);

    if (status)
        return status;
    id = peg_json_get(peg_json_root(doc), "id");
    if (!id || peg_json_kind_of(id) != PEG_JSON_STRING)
        return peg__db_fail_damaged(l->db, "a block has no id", l->reterr);
    status = peg__block_read(&how, peg_json_root(doc), peg_json_str(id), &block, l->reterr);
    if (!status)
        status = peg_turn_add(l->turn, block, l->reterr);
    /* The next save need not write it again. */
    if (!status && peg_turn_at(l->turn, peg_turn_len(l->turn) - 1) == block)
        peg__cache_add(&l->db->cache, PEG__CACHE_BLOCK, block, digest, len);
    return status;
}

static peg_status load_data(struct loading *l, const peg__digest digest)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    size_t len = 0;
    peg_status status = parse_part(l, digest, &doc, &len);

    if (!status)
        status = peg__bag_from_json(peg_json_root(doc), false, &l->turn->data, l->reterr);
    if (!status)
        peg__cache_add(&l->db->cache, PEG__CACHE_BAG, l->turn->data, digest, len);
    return status;
}

static peg_status load_parts(struct loading *l, const struct row *row, const struct row_head *head)
{
    peg_turn_read_options how = *l->how;
    peg_status status;

    how.format = PEG_FORMAT_JSON;
    how.max_bytes = PEG_LIMIT_TEXT_BYTES;
    status = peg_turn_read(peg__strn(head->head, head->head_len), &how, &l->turn, l->reterr);
    peg__cache_start(&l->db->cache);
    if (!status && row->has_data)
        status = load_data(l, row->data);
    for (size_t i = 0; !status && i < count_digests(&row->digests); i++)
        status = load_block(l, digest_at(&row->digests, i));
    return status;
}

static peg_status load_in(struct loading *l, peg_str id, peg_phase *ret_phase)
{
    struct row row = {.digests = PEG__BUF(ROW_MAX)};
    struct row_head head = {.head = NULL};
    peg_status status = find_row(l->db, id, &row, &head, l->reterr);

    if (!status && row.no)
        status = load_parts(l, &row, &head);
    if (!status && row.no)
        *ret_phase = head.phase;
    peg__free(head.head);
    peg__buf_free(&row.digests);
    return status;
}

static peg_status sqlite_load(void *self, peg_str id, const peg_turn_read_options *options,
                              peg_turn **ret_turn, peg_phase *ret_phase, peg_error *reterr)
{
    PEG_CLEANUP(peg_spool_store_unrefp) peg_spool_store *bytes = NULL;
    struct peg__db *db = self;
    peg_turn_read_options how = *options;
    struct loading l = {.db = db, .how = &how, .reterr = reterr};
    peg_status status = peg__db_spool_new(db, &bytes, reterr);

    if (status)
        return status;
    how.bytes = bytes;
    pthread_mutex_lock(&db->lock);
    status = peg__sqlite_begin_read(db->sqlite, reterr);
    if (!status)
        status = peg__sqlite_end(db->sqlite, load_in(&l, id, ret_phase), reterr);
    pthread_mutex_unlock(&db->lock);
    if (status)
        peg_turn_free(l.turn);
    else
        *ret_turn = l.turn;
    return status;
}

/* ---- removing and listing ------------------------------------------------------- */

static peg_status remove_in(struct peg__db *db, peg_str id, peg_error *reterr)
{
    struct saving s = {.db = db,
                       .old.digests = PEG__BUF(ROW_MAX),
                       .now.digests = PEG__BUF(ROW_MAX),
                       .reterr = reterr};
    peg_status status = find_row(db, id, &s.old, NULL, reterr);

    if (!status && s.old.no) {
        status = peg__db_run(db, PEG__DB_DROP_TURN, reterr, "i", s.old.no);
        if (!status)
            status = peg__db_run(db, PEG__DB_CUT_PAGES, reterr, "ii", s.old.no, (int64_t)0);
        if (!status)
            status = leave_old(&s);
    }
    peg__buf_free(&s.old.digests);
    return status;
}

static peg_status sqlite_remove(void *self, peg_str id, peg_error *reterr)
{
    struct peg__db *db = self;
    peg_status status;

    pthread_mutex_lock(&db->lock);
    status = peg__sqlite_begin(db->sqlite, reterr);
    if (!status)
        status = peg__sqlite_end(db->sqlite, remove_in(db, id, reterr), reterr);
    pthread_mutex_unlock(&db->lock);
    return status;
}

static peg_status list_row(struct peg__db *db, struct peg__sqlite_stmt *stmt,
                           struct peg__turn_list *list, peg_error *reterr)
{
    const int64_t n_blocks = peg__sqlite_int64(stmt, 5);
    peg_turn_info info = {.id = peg__sqlite_text(stmt, 0),
                          .session_id = peg__sqlite_text(stmt, 1),
                          .saved_ms = peg__sqlite_int64(stmt, 3),
                          .n_blocks = n_blocks > 0 ? (size_t)n_blocks : 0};

    if (!peg__phase_from_name(peg__sqlite_text(stmt, 2), &info.phase))
        return peg__db_fail_damaged(db, "a turn has an unknown phase", reterr);
    return peg__turn_list_add(list, &info, peg__sqlite_int64(stmt, 4), reterr);
}

static peg_status sqlite_list(void *self, peg_str session_id, struct peg__turn_list *list,
                              peg_error *reterr)
{
    struct peg__db *db = self;
    struct peg__sqlite_stmt *stmt = NULL;
    bool is_row = false;
    peg_status status;

    pthread_mutex_lock(&db->lock);
    if (session_id.len)
        status = peg__db_query(db, PEG__DB_SOME_TURNS, &stmt, reterr, "t", session_id);
    else
        status = peg__db_query(db, PEG__DB_ALL_TURNS, &stmt, reterr, "");
    while (!status && !(status = peg__sqlite_step(stmt, &is_row, reterr)) && is_row)
        status = list_row(db, stmt, list, reterr);
    if (stmt)
        peg__sqlite_reset(stmt);
    pthread_mutex_unlock(&db->lock);
    return status;
}

/* ---- life ----------------------------------------------------------------------- */

/* Blocks of the cache may hold readers, and these the database: the circle ends here. */
static void sqlite_free(void *self)
{
    struct peg__db *db = self;

    pthread_mutex_lock(&db->lock);
    peg__cache_free(&db->cache);
    pthread_mutex_unlock(&db->lock);
    peg__db_unref(db);
}

peg_status peg_turn_store_sqlite_new(const char *path, peg_turn_store **ret_store,
                                     peg_error *reterr)
{
    static const struct peg__turn_store_ops ops = {.save = sqlite_save,
                                                   .load = sqlite_load,
                                                   .remove = sqlite_remove,
                                                   .list = sqlite_list,
                                                   .free = sqlite_free};
    struct peg__db *db = NULL;
    const peg_status status = peg__db_open(path, &db, reterr);

    return status ? status : peg__turn_store_new(&ops, db, ret_store, reterr);
}
