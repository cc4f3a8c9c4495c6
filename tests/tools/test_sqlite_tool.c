/* SPDX-License-Identifier: Apache-2.0 */

/* How the SQLite tool is made, described and filled. */

#include "base/limits.h"
#include "pegboard/log.h"
#include "sqlite_world.h"

static void check_def(const peg_sqlite_def *def, peg_status status, const char *code,
                      const char *where)
{
    peg_tool *tool = NULL;
    peg_error error;

    CHECK_INT(peg_sqlite_tool_new(def, &tool, &error), status);
    CHECK_STR(peg__str(error.code), code);
    CHECK_STR(peg__str(error.where), where);
    CHECK(tool == NULL);
}

static peg_status fill_nothing(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    (void)db, (void)ctx, (void)user, (void)reterr;
    return PEG_OK;
}

/* ---- definitions --------------------------------------------------------------------------- */

TEST(a_definition_that_cannot_work_names_its_field)
{
    static const char *const nothing[] = {NULL};
    static const char *const empty[] = {"", NULL};
    static const char *const own[] = {"sqlite_master", NULL};
    static const char *const pragma[] = {"pragma_table_info", NULL};

    check_def(NULL, PEG_EINVAL, "E_SQLITE_TOOL", "");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT}, PEG_EINVAL, "E_SQLITE_TOOL", "/path");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .fill = fill_nothing}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/path");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = ""}, PEG_EINVAL, "E_SQLITE_TOOL",
              "/path");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .objects = nothing}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/objects");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .objects = empty}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/objects");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .objects = own}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/objects");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .functions = pragma}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/functions");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .max_rows = 100001}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/max_rows");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .max_columns = 2001}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/max_columns");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .max_cell_bytes = SIZE_MAX},
              PEG_EINVAL, "E_SQLITE_TOOL", "/max_cell_bytes");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .max_bytes = SIZE_MAX},
              PEG_EINVAL, "E_SQLITE_TOOL", "/max_bytes");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = "x", .timeout_ms = -1}, PEG_EINVAL,
              "E_SQLITE_TOOL", "/timeout_ms");
}

/* G134 */
TEST(there_is_no_tool_without_a_database)
{
    struct base b;
    FILE *file;

    base_make_file(&b, SCHEMA);
    CHECK_INT(unlink(b.path), 0);
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path}, PEG_EIO, "E_SQLITE", "");
    CHECK(access(b.path, F_OK) != 0);
    file = fopen(b.path, "wbe");
    CHECK(file != NULL);
    for (int i = 0; i < 100; i++)
        fputs("this is no database", file);
    fclose(file);
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path}, PEG_EIO, "E_SQLITE", "");
    base_remove_file(&b);
}

TEST(an_object_that_is_missing_is_found_out_when_the_tool_is_made)
{
    static const char *const objects[] = {"items", "absent", NULL};
    static const char *const functions[] = {"absent_each", NULL};
    static const char *const table[] = {"secret", NULL};
    struct base b;

    base_make_file(&b, SCHEMA);
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects},
              PEG_ENOTFOUND, "E_SQLITE_TOOL", "");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .functions = functions},
              PEG_ENOTFOUND, "E_SQLITE_TOOL", "");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill_nothing, .functions = functions},
              PEG_ENOTFOUND, "E_SQLITE_TOOL", "");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .functions = table},
              PEG_EINVAL, "E_SQLITE_TOOL", "");
    base_remove_file(&b);
}

TEST(a_view_that_is_broken_is_passed_over_unless_it_is_listed)
{
    static const char *const objects[] = {"v", NULL};
    struct base b;

    base_make_file(&b, "CREATE TABLE t(a); CREATE TABLE u(a); CREATE VIEW v AS SELECT a FROM t;"
                       "DROP TABLE t");
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects}, PEG_EIO,
              "E_SQLITE", "");
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path});
    CHECK_CONTAINS(peg__str(peg_tool_description(b.tool)), "can be read: u.");
    base_close(&b);
}

/* G135 */
TEST(without_a_list_all_tables_and_views_can_be_read)
{
    static const char *const refused[] = {"SELECT * FROM sqlite_master",
                                          "SELECT * FROM search_data", "DELETE FROM secret"};
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path});
    check_answer(&b, "SELECT max(item_id) AS n FROM secret", NULL,
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":2}],\"count\":1}");
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        peg_record *record = query(&b, refused[i], NULL);

        CHECK_STR(peg__str(peg_record_cause(record)), "E_SQL_REFUSED");
        peg_record_unref(record);
    }
    base_close(&b);
}

TEST(odd_names_are_no_trouble)
{
    static const char *const objects[] = {"a \"b\"; --", "SELECT", NULL};
    struct base b;

    base_make_file(&b, "CREATE TABLE \"a \"\"b\"\"; --\"(\"x \"\"y\" INT, \"select\");"
                       "INSERT INTO \"a \"\"b\"\"; --\" VALUES (1, 2); CREATE TABLE \"select\"(a)");
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects});
    check_answer(&b, "SELECT \"x \"\"y\", \"select\" FROM [a \"b\"; --]", NULL,
                 "{\"columns\":[\"x \\\"y\",\"select\"],\"rows\":[{\"x \\\"y\":1,\"select\":2}],"
                 "\"count\":1}");
    base_close(&b);
}

TEST(the_tool_is_marked_as_one_that_only_reads)
{
    struct base b;

    base_open(&b);
    CHECK_STR(peg__str(peg_tool_name(b.tool)), "sql_query");
    CHECK(peg_tool_is_read_only(b.tool));
    CHECK(peg_tool_is_idempotent(b.tool));
    CHECK(!peg_tool_is_destructive(b.tool));
    CHECK_INT(peg_tool_timeout_ms(b.tool), 5000);
    CHECK(peg_tool_output_schema(b.tool) != NULL);
    base_close(&b);
}

/* ---- descriptions ------------------------------------------------------------------------------
 */

/* G144 */
TEST(the_description_lists_objects_notes_and_queries)
{
    static const char *const objects[] = {"items", "active_items", NULL};
    static const char *const notes[] = {"Prices are in euros.", NULL};
    static const char *const queries[] = {"SELECT name FROM items ORDER BY price LIMIT 5", NULL};
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .objects = objects,
                                     .functions = one_function, .name = "shop",
                                     .description = "The shop's furniture.", .notes = notes,
                                     .queries = queries, .require_order_by = true});
    CHECK_STR(peg__str(peg_tool_name(b.tool)), "shop");
    CHECK_STR(peg__str(peg_tool_description(b.tool)),
              "The shop's furniture.\n"
              "Takes one SELECT statement of SQLite; at most 100 rows are returned.\n"
              "Tables and views that can be read: active_items, items.\n"
              "Table-valued functions: json_each.\n"
              "Every query needs an ORDER BY.\n"
              "\n"
              "CREATE VIEW active_items (id INTEGER, name TEXT);\n"
              "CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB);\n"
              "\n"
              "Notes:\n"
              "- Prices are in euros.\n"
              "\n"
              "Queries to start with:\n"
              "- SELECT name FROM items ORDER BY price LIMIT 5");
    base_close(&b);
}

TEST(the_description_does_not_name_what_is_hidden)
{
    struct base b;
    peg_str text;

    base_open(&b);
    text = peg__str(peg_tool_description(b.tool));
    CHECK_LACKS(text, "secret");
    CHECK_LACKS(text, "inner_view");
    CHECK_LACKS(text, "search_data");
    CHECK_LACKS(text, MARKER);
    CHECK_LACKS(text, b.path);
    CHECK_CONTAINS(text, "CREATE TABLE tags (item_id INTEGER, tag TEXT);");
    CHECK_CONTAINS(text, "CREATE VIRTUAL TABLE search USING fts5(body);");
    base_close(&b);
}

TEST(the_schema_can_be_left_out_of_the_description)
{
    struct base b;

    base_make_file(&b, SCHEMA);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .hide_schema = true});
    CHECK_LACKS(peg__str(peg_tool_description(b.tool)), "CREATE");
    CHECK_CONTAINS(peg__str(peg_tool_description(b.tool)), "items");
    base_close(&b);
}

TEST(of_a_large_schema_the_rest_is_counted)
{
    struct base b;
    struct peg__buf schema = PEG__BUF(1 << 20);

    for (int i = 0; i < 300; i++)
        peg__buf_printf(&schema, "CREATE TABLE t%d(a_column_with_a_long_name_%0100d);", i, i);
    CHECK_INT(schema.status, PEG_OK);
    base_make_file(&b, schema.ptr);
    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path});
    CHECK(strlen(peg_tool_description(b.tool)) < PEG_LIMIT_SQLITE_SCHEMA_BYTES + 4096);
    CHECK_CONTAINS(peg__str(peg_tool_description(b.tool)), "more are too long to be shown)");
    peg__buf_free(&schema);
    base_close(&b);
}

TEST(a_description_that_is_too_long_is_refused)
{
    struct base b;
    static char words[PEG_LIMIT_DESCRIPTION_BYTES];

    memset(words, 'x', sizeof(words) - 1);
    base_make_file(&b, SCHEMA);
    check_def(&(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path, .description = words},
              PEG_EINVAL, "E_SQLITE_TOOL", "/description");
    base_remove_file(&b);
}

/* ---- filling
 * ----------------------------------------------------------------------------------------- */

static const char tenant_key;

struct tenants {
    int n_fills;
    char log[512];
};

/* A database with what the context's tenant may see. */
static peg_status fill_tenant(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    struct tenants *tenants = user;
    const char *tenant = peg_ctx_value(ctx, &tenant_key);
    peg_json_builder *builder = peg_json_builder_new();
    peg_json_doc *values = NULL;
    peg_status status;

    tenants->n_fills++;
    peg_json_open_array(builder);
    peg_json_add_string(builder, peg_cstr(tenant));
    peg_json_add_integer(builder, 7);
    peg_json_close(builder);
    status = peg_json_builder_finish(builder, &values, reterr);
    if (!status)
        status = peg_sqlite_exec(db, "CREATE TABLE orders(tenant, n); CREATE TABLE other(x)", NULL,
                                 reterr);
    if (!status)
        status =
            peg_sqlite_exec(db, "INSERT INTO orders VALUES (?, ?)", peg_json_root(values), reterr);
    peg_json_doc_free(values);
    return status;
}

static void check_tenant(struct base *b, const char *tenant, const char *sql, const char *expected)
{
    char name[32];
    peg_ctx *ctx = NULL;
    peg_record *record;

    snprintf(name, sizeof(name), "%s", tenant);
    CHECK_INT(peg_ctx_with_value(b->w.ctx, &tenant_key, name, NULL, &ctx, NULL), PEG_OK);
    record = query_in(ctx, "sql_query", sql, NULL);
    CHECK_STR(text_of(record), expected);
    peg_record_unref(record);
    peg_ctx_unref(ctx);
}

/* G143 */
TEST(a_database_is_filled_for_each_call_from_its_context)
{
    static const char *const objects[] = {"orders", NULL};
    struct tenants tenants = {0};
    struct base b = {0};

    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill_tenant,
                                     .fill_user = &tenants, .objects = objects});
    CHECK_INT(tenants.n_fills, 0);
    check_tenant(&b, "a", "SELECT tenant, sum(n) AS n FROM orders",
                 "{\"columns\":[\"tenant\",\"n\"],\"rows\":[{\"tenant\":\"a\",\"n\":7}],"
                 "\"count\":1}");
    check_tenant(&b, "b", "SELECT tenant, sum(n) AS n FROM orders",
                 "{\"columns\":[\"tenant\",\"n\"],\"rows\":[{\"tenant\":\"b\",\"n\":7}],"
                 "\"count\":1}");
    CHECK_INT(tenants.n_fills, 2);
    check_refused(&b, "SELECT * FROM other", NULL, "E_SQL_REFUSED");
    check_refused(&b, "DELETE FROM orders", NULL, "E_SQL_REFUSED");
    base_close(&b);
}

/* G143 */
TEST(without_a_list_all_that_was_filled_can_be_read)
{
    struct tenants tenants = {0};
    struct base b = {0};

    base_offer(&b,
               &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill_tenant, .fill_user = &tenants});
    check_tenant(&b, "a", "SELECT count(*) AS n FROM orders, other",
                 "{\"columns\":[\"n\"],\"rows\":[{\"n\":0}],\"count\":1}");
    check_tenant(&b, "a", "SELECT * FROM absent",
                 "the tool 'sql_query' failed: no such table: absent; tables and views that can be "
                 "read: orders, other");
    base_close(&b);
}

static void record_log(peg_log_level level, const char *code, const char *message, void *user)
{
    struct tenants *tenants = user;

    (void)level;
    snprintf(tenants->log, sizeof(tenants->log), "%s %s", code, message);
}

static peg_status fill_badly(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    (void)ctx, (void)user;
    return peg_sqlite_exec(db, "INSERT INTO " MARKER " VALUES (1)", NULL, reterr);
}

static peg_status fill_without_a_word(peg_sqlite_db *db, peg_ctx *ctx, void *user,
                                      peg_error *reterr)
{
    (void)db, (void)ctx, (void)user, (void)reterr;
    return PEG_EHOST;
}

static peg_status fill_temporary(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    (void)ctx, (void)user;
    return peg_sqlite_exec(db, "CREATE TABLE t(a); CREATE TEMP TABLE t(a)", NULL, reterr);
}

static void check_bad_fill(peg_sqlite_fill_fn fill, const char *log)
{
    struct tenants tenants = {0};
    struct base b = {0};

    base_offer(&b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill});
    CHECK_INT(peg_log_set(record_log, PEG_LOG_WARN, &tenants), PEG_OK);
    check_refused(&b, "SELECT 1", NULL, "E_SQLITE_FILL");
    CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);
    CHECK_CONTAINS(peg__str(tenants.log), "E_SQLITE_FILL");
    CHECK_CONTAINS(peg__str(tenants.log), log);
    base_close(&b);
}

TEST(a_fill_that_fails_is_logged_and_hidden_from_the_model)
{
    check_bad_fill(fill_badly, "no such table: " MARKER);
    check_bad_fill(fill_without_a_word, "sql_query");
    check_bad_fill(fill_temporary, "temporary");
}

TEST(a_fill_that_lacks_a_listed_table_fails)
{
    static const char *const objects[] = {"absent", NULL};
    struct base b = {0};

    base_offer(&b,
               &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = fill_nothing, .objects = objects});
    check_refused(&b, "SELECT 1", NULL, "E_SQLITE_FILL");
    base_close(&b);
}

struct exec_case {
    const char *sql;
    const char *params;
    peg_status status;
    const char *code;
};

static peg_status try_exec(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *reterr)
{
    const struct exec_case *c = user;
    peg_json_doc *params = NULL;
    peg_error error = {.code = ""};
    peg_status status;

    (void)ctx;
    CHECK_INT(peg_sqlite_exec(db, "CREATE TABLE t(a UNIQUE, b); INSERT INTO t VALUES (1, 1)", NULL,
                              reterr),
              PEG_OK);
    if (c->params)
        CHECK_INT(peg_json_parse(peg_cstr(c->params), NULL, &params, NULL), PEG_OK);
    status = peg_sqlite_exec(db, c->sql, params ? peg_json_root(params) : NULL, &error);
    peg_json_doc_free(params);
    CHECK_INT(status, c->status);
    CHECK_STR(peg__str(error.code), c->code);
    return PEG_OK;
}

TEST(exec_reports_what_is_wrong)
{
    struct exec_case cases[] = {
        {"INSERT INTO t VALUES (2, ?)", "[true]", PEG_OK, ""},
        {"INSERT INTO t VALUES (2, ?);", "[null]", PEG_OK, ""},
        {"INSERT INTO t VALUES (?, ?)", "[2]", PEG_EINVAL, "E_SQL_PARAMS"},
        {"INSERT INTO t VALUES (2, ?)", "[[]]", PEG_EINVAL, "E_SQL_PARAMS"},
        {"INSERT INTO t VALUES (2, ?)", "{}", PEG_EINVAL, "E_SQL_PARAMS"},
        {"INSERT INTO t VALUES (2, ?); SELECT 1", "[1]", PEG_EINVAL, "E_SQL_PARAMS"},
        {"", "[]", PEG_EINVAL, "E_SQL_PARAMS"},
        {"INSERT INTO t VALUES (1, ?)", "[1]", PEG_EEXISTS, "E_SQLITE_CONSTRAINT"},
        {"INSERT INTO absent VALUES (?)", "[1]", PEG_EIO, "E_SQLITE"},
        {"nonsense", NULL, PEG_EIO, "E_SQLITE"},
        {NULL, NULL, PEG_EINVAL, "E_SQLITE"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct base b = {0};
        peg_record *record;

        base_offer(
            &b, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .fill = try_exec, .fill_user = &cases[i]});
        record = query(&b, "SELECT 1", NULL);
        CHECK(!peg_record_is_error(record));
        peg_record_unref(record);
        base_close(&b);
    }
    CHECK_INT(peg_sqlite_exec(NULL, "SELECT 1", NULL, NULL), PEG_EINVAL);
}

/* ---- offering
 * ------------------------------------------------------------------------------------------ */

TEST(one_call_offers_a_database)
{
    struct base b;
    peg_record *record = NULL;
    peg_error error;

    base_make_file(&b, SCHEMA);
    CHECK_INT(world_open(&b.w), PEG_OK);
    CHECK_INT(peg_sqlite_offer(b.w.registry, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path},
                               NULL),
              PEG_OK);
    CHECK_INT(world_call(&b.w, "sql_query", "{\"sql\":\"SELECT 1 AS a\"}", NULL, &record), PEG_OK);
    CHECK_STR(text_of(record), "{\"columns\":[\"a\"],\"rows\":[{\"a\":1}],\"count\":1}");
    CHECK_INT(peg_sqlite_offer(b.w.registry, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path},
                               &error),
              PEG_EEXISTS);
    CHECK_INT(
        peg_sqlite_offer(NULL, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = b.path}, &error),
        PEG_EINVAL);
    peg_record_unref(record);
    base_close(&b);
}

TORTURE(filling_survives_any_allocation_failure)
{
    struct tenants tenants = {0};
    const peg_sqlite_def def = {PEG_SQLITE_DEF_INIT, .fill = fill_tenant, .fill_user = &tenants};
    struct world w;
    peg_record *record = NULL;
    peg_status status = world_open(&w);

    if (!status)
        status = peg_sqlite_offer(w.registry, &def, NULL);
    if (!status)
        status = world_call(&w, "sql_query", "{\"sql\":\"SELECT * FROM orders\"}", NULL, &record);
    peg_record_unref(record);
    world_close(&w);
    return status;
}
