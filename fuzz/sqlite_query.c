/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: SQL. Whatever a model asks of a database with a hidden table, the answer is a JSON object
 * or a sentence, both UTF-8; the marker that is only in the hidden table appears in neither, and
 * the file stays what it was, byte for byte.
 */

#include <unistd.h>

#include "base/hash.h"
#include "base/sqlite/sqlite.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "pegboard/artifact.h"
#include "pegboard/run.h"
#include "pegboard/sqlite.h"

#define MARKER "m4rk3r"

static char directory[] = "/tmp/peg_fuzz_XXXXXX";
static char path[64];
static char digest[PEG_SHA256_HEX];
static peg_registry *registry;

static void read_digest(char ret_hex[PEG_SHA256_HEX])
{
    static char bytes[1 << 18];
    unsigned char sum[PEG_SHA256_BYTES];
    FILE *file = fopen(path, "rbe");
    size_t len;

    REQUIRE(file, "the file is there");
    len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    REQUIRE(len > 0 && len < sizeof(bytes), "it has %zu bytes", len);
    REQUIRE(peg__sha256(peg__strn(bytes, len), sum), "memory");
    peg__hex(sum, sizeof(sum), ret_hex);
}

static void clean_up(void)
{
    peg_registry_unref(registry);
    unlink(path);
    rmdir(directory);
}

/* Once for all inputs. */
static void make_world(void)
{
    static const char *const objects[] = {"items", "shown", "notes", NULL};
    static const char *const functions[] = {"json_each", NULL};
    const peg_sqlite_def def = {PEG_SQLITE_DEF_INIT, .path = path, .objects = objects,
                                .functions = functions, .timeout_ms = 200};
    struct peg__sqlite *db = NULL;

    REQUIRE(mkdtemp(directory), "a folder");
    snprintf(path, sizeof(path), "%s/a.db", directory);
    REQUIRE(peg__sqlite_open(path, PEG__SQLITE_WRITE, &db, NULL) == PEG_OK, "a database");
    REQUIRE(
        peg__sqlite_exec(db,
                         "PRAGMA journal_mode = DELETE;"
                         "CREATE TABLE items(id INTEGER PRIMARY KEY, name);"
                         "INSERT INTO items VALUES (1, 'lamp'), (2, 'chair');"
                         "CREATE TABLE secret(k, item); CREATE INDEX by_k ON secret(k);"
                         "INSERT INTO secret VALUES ('" MARKER "', 1), ('" MARKER "', 2);"
                         "CREATE VIEW inside AS SELECT item, length(k) AS n FROM secret;"
                         "CREATE VIEW shown AS SELECT i.name, s.n FROM items i JOIN inside s ON "
                         "s.item = i.id;"
                         "CREATE VIRTUAL TABLE notes USING fts5(body);"
                         "INSERT INTO notes VALUES ('a lamp of brass');",
                         NULL) == PEG_OK,
        "its tables");
    peg__sqlite_close(db);
    REQUIRE(peg_registry_new(NULL, 0, &registry, NULL) == PEG_OK, "a registry");
    REQUIRE(peg_sqlite_offer(registry, &def, NULL) == PEG_OK, "the tool");
    read_digest(digest);
    atexit(clean_up);
}

static void check_answer(const peg_record *record, peg_str sql)
{
    peg_str answer;

    REQUIRE(peg_record_answer(record, &answer, NULL) == PEG_OK, "it can be read");
    REQUIRE(peg__utf8_is_valid(answer), "%.*s", PEG_ARG(answer));
    /* A query may say it; then it learns nothing from hearing it. */
    REQUIRE(memmem(sql.ptr, sql.len, "4rk", 3) ||
                !memmem(answer.ptr, answer.len, MARKER, strlen(MARKER)),
            "%.*s", PEG_ARG(answer));
    if (peg_record_is_error(record))
        REQUIRE(answer.len > 0, "a failure has words");
    else
        peg_json_doc_free(fuzz_parse_own(answer.ptr, answer.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str sql = fuzz_utf8(fuzz_input(data, size));
    struct peg__buf args = PEG__BUF(8 << 20);
    char now[PEG_SHA256_HEX];
    peg_record *record = NULL;

    if (!registry)
        make_world();
    peg__buf_puts(&args, "{\"sql\":");
    peg__json_write_string(sql, &args);
    peg__buf_puts(&args, "}");
    REQUIRE(peg_registry_call(registry, "sql_query", args.ptr, &record, NULL) == PEG_OK, "%s",
            args.ptr);
    check_answer(record, sql);
    read_digest(now);
    REQUIRE(strcmp(now, digest) == 0, "the file has changed");
    peg_record_unref(record);
    peg__buf_free(&args);
    fuzz_free(sql);
    return 0;
}
