/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TOOLS_SQLITE_WORLD_H
#define PEG_TESTS_TOOLS_SQLITE_WORLD_H

/*
 * A world with one database file and the SQLite tool on it. Allowed are the table "items", the view
 * "active_items", which reads the hidden table "secret", and the view "top_items" over a hidden
 * view. Whatever is hidden has MARKER in it, or is called one of the names of `hidden`.
 */

#include <stdlib.h>
#include <unistd.h>

#include "../core/fixture.h"
#include "base/hash.h"
#include "base/sqlite/sqlite.h"
#include "pegboard/sqlite.h"
#include "json/json.h"

#define MARKER "m4rk3r"

#define SCHEMA                                                                                     \
    "CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB);"                \
    "INSERT INTO items VALUES (1, 'lamp', 9.5, x'00ff'), (2, 'chair', 20, NULL), "                 \
    "(3, 'table', 99.25, x'');"                                                                    \
    "CREATE TABLE secret(k TEXT, item_id INTEGER UNIQUE);"                                         \
    "INSERT INTO secret VALUES ('" MARKER "', 1), ('" MARKER "2', 2);"                             \
    "CREATE VIEW active_items AS SELECT i.id, i.name FROM items i JOIN secret s ON s.item_id = "   \
    "i.id;"                                                                                        \
    "CREATE VIEW inner_view AS SELECT item_id, length(k) AS n FROM secret;"                        \
    "CREATE VIEW top_items AS SELECT item_id, n FROM inner_view WHERE n > 0;"                      \
    "CREATE INDEX secret_index ON secret(k);"                                                      \
    "CREATE TABLE tags(item_id INTEGER REFERENCES secret(item_id), tag TEXT);"                     \
    "INSERT INTO tags VALUES (1, 'light'), (2, 'wood');"                                           \
    "CREATE VIRTUAL TABLE search USING fts5(body);"                                                \
    "INSERT INTO search VALUES ('a lamp of brass'), ('a chair of oak');"                           \
    "CREATE VIRTUAL TABLE hidden_search USING fts5(body);"                                         \
    "INSERT INTO hidden_search VALUES ('" MARKER "')"

static const char *const hidden[] = {"secret",        "inner_view",  "secret_index",
                                     "hidden_search", "search_data", "item_id"};
static const char *const listed[] = {"items", "active_items", "top_items", "search", "tags", NULL};
static const char *const one_function[] = {"json_each", NULL};

struct base {
    struct world w;
    char directory[64];
    char path[128];
    peg_tool *tool;
};

static inline void base_make_file(struct base *b, const char *schema)
{
    struct peg__sqlite *db = NULL;

    memset(b, 0, sizeof(*b));
    snprintf(b->directory, sizeof(b->directory), "/tmp/peg_sqlite_XXXXXX");
    CHECK(mkdtemp(b->directory) != NULL);
    snprintf(b->path, sizeof(b->path), "%s/a.db", b->directory);
    CHECK_INT(peg__sqlite_open(b->path, PEG__SQLITE_WRITE, &db, NULL), PEG_OK);
    /* So that the whole database is in one file, whose hash can be taken. */
    CHECK_INT(peg__sqlite_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF", NULL),
              PEG_OK);
    CHECK_INT(peg__sqlite_exec(db, schema, NULL), PEG_OK);
    peg__sqlite_close(db);
}

static inline void base_offer(struct base *b, const peg_sqlite_def *def)
{
    peg_error error;

    CHECK_INT(world_open(&b->w), PEG_OK);
    if (peg_sqlite_tool_new(def, &b->tool, &error))
        T_FAIL("%s: %s", error.code, error.message);
    CHECK_INT(peg_registry_register(b->w.registry, b->tool, false, NULL), PEG_OK);
}

static inline void base_open(struct base *b)
{
    base_make_file(b, SCHEMA);
    base_offer(b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b->path, .objects = listed,
                                    .functions = one_function});
}

static inline void base_remove_file(struct base *b)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[160];

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        snprintf(path, sizeof(path), "%s%s", b->path, ends[i]);
        unlink(path);
    }
    rmdir(b->directory);
}

static inline void base_close(struct base *b)
{
    peg_tool_unref(b->tool);
    world_close(&b->w);
    if (b->path[0])
        base_remove_file(b);
}

/* ---- asking ------------------------------------------------------------------------------- */

/* One call; params is JSON text or NULL. The record is the caller's. */
static inline peg_record *query_in(peg_ctx *ctx, const char *tool, const char *sql,
                                   const char *params)
{
    struct peg__buf args = PEG__BUF(1 << 20);
    peg_record *record = NULL;

    peg__buf_puts(&args, "{\"sql\":");
    peg__json_write_string(peg__str(sql), &args);
    if (params)
        peg__buf_printf(&args, ",\"params\":%s", params);
    peg__buf_puts(&args, "}");
    CHECK_INT(args.status, PEG_OK);
    CHECK_INT(
        peg_call_run(ctx,
                     &(peg_call_request){PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c1"),
                                         .tool = peg_cstr(tool), .args = peg__buf_view(&args)},
                     NULL, &record, NULL),
        PEG_OK);
    peg__buf_free(&args);
    return record;
}

static inline peg_record *query(struct base *b, const char *sql, const char *params)
{
    return query_in(b->w.ctx, "sql_query", sql, params);
}

static inline void check_answer(struct base *b, const char *sql, const char *params,
                                const char *expected)
{
    peg_record *record = query(b, sql, params);
    const peg_str text = text_of(record);

    if (peg_record_is_error(record))
        T_FAIL("%s: %.*s", sql, PEG_ARG(text));
    if (!peg__str_is(text, expected))
        T_FAIL("%s\n# answers %.*s\n# expected %s", sql, PEG_ARG(text), expected);
    peg_record_unref(record);
}

static inline bool contains(peg_str text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* It fails, with that code behind it if it is not NULL, and gives nothing away that the query does
 * not say itself. */
static inline void check_refused(struct base *b, const char *sql, const char *params,
                                 const char *cause)
{
    peg_record *record = query(b, sql, params);
    const peg_str text = text_of(record);

    if (!peg_record_is_error(record))
        T_FAIL("%s answers %.*s", sql, PEG_ARG(text));
    if (cause && strcmp(peg_record_cause(record), cause) != 0)
        T_FAIL("%s: the cause is %s (%.*s), expected %s", sql, peg_record_cause(record),
               PEG_ARG(text), cause);
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
        if (contains(text, hidden[i]) && !strcasestr(sql, hidden[i]))
            T_FAIL("%s tells of %s: %.*s", sql, hidden[i], PEG_ARG(text));
    }
    if (contains(text, MARKER) && !contains(peg__str(sql), MARKER))
        T_FAIL("%s tells of the data: %.*s", sql, PEG_ARG(text));
    peg_record_unref(record);
}

/* ---- the file -------------------------------------------------------------------------------- */

static inline void file_digest(const struct base *b, char ret_hex[PEG_SHA256_HEX])
{
    static char bytes[1 << 20];
    unsigned char digest[PEG_SHA256_BYTES];
    FILE *file = fopen(b->path, "rbe");
    size_t len;

    CHECK(file != NULL);
    len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    CHECK(len > 0 && len < sizeof(bytes));
    CHECK(peg__sha256(peg__strn(bytes, len), digest));
    peg__hex(digest, sizeof(digest), ret_hex);
}

#endif
