/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goal: no function of SQLite takes longer than a query may. Between two looks at the clock SQLite
 * runs a function to its end, so each is tried with the largest values that there can be and with
 * the numbers that make it long. Each ends with an answer or with a named error; the slowest are
 * printed, and none takes ten times the 200 ms that PEG_LIMIT_SQLITE_VALUE_BYTES is chosen for.
 */

#include <time.h>

#include "../instrumented.h"
#include "../t.h"
#include "base/limits.h"
#include "sqlite_world.h"

/* What would hold a thread took minutes; the slowest that may run takes half a second, and several
   times that where CPU time is shared with neighbours. */
enum { LARGE = PEG_LIMIT_SQLITE_VALUE_BYTES - 1000, HARD_STOP_MS = 10000, N_SHOWN = 5 };

/* One row; a column for each kind of large value. */
#define HOSTILE_SCHEMA "CREATE TABLE h(t TEXT, b BLOB, n TEXT, q TEXT, u TEXT, j TEXT, o TEXT)"

struct slow {
    char sql[160];
    double ms;
};

struct trial {
    struct base base;
    struct slow slowest[N_SHOWN];
    unsigned n_tried;
    unsigned n_answered;
};

static void fill_hostile(const char *path)
{
    struct peg__sqlite *db = NULL;
    char sql[1024];

    CHECK_INT(peg__sqlite_open(path, PEG__SQLITE_WRITE, &db, NULL), PEG_OK);
    snprintf(sql, sizeof(sql),
             "INSERT INTO h SELECT s, CAST(s AS BLOB), replace(s, 'a', '9'), "
             "replace(substr(s, 1, %d), 'a', ''''), replace(substr(s, 1, %d), 'a', 'ä'), "
             "'[' || replace(substr(s, 1, %d), 'a', '1,') || '1]', "
             "'{' || replace(substr(s, 1, %d), 'a', '\"k\":1,') || '\"z\":1}' "
             "FROM (SELECT printf('%%.%dc', 'a') AS s)",
             LARGE / 2, LARGE / 2, LARGE / 2, LARGE / 6, LARGE);
    CHECK_INT(peg__sqlite_exec(db, sql, NULL), PEG_OK);
    peg__sqlite_close(db);
}

static void open_trial(struct trial *trial)
{
    static const char *const objects[] = {"h", NULL};

    memset(trial, 0, sizeof(*trial));
    base_make_file(&trial->base, HOSTILE_SCHEMA);
    fill_hostile(trial->base.path);
    base_offer(&trial->base, &(peg_sqlite_def){PEG_SQLITE_DEF_INIT, .path = trial->base.path,
                                               .objects = objects});
}

static void close_trial(struct trial *trial)
{
    printf("# %u queries, %u with an answer; the slowest in ms of CPU:\n", trial->n_tried,
           trial->n_answered);
    for (size_t i = 0; i < N_SHOWN; i++)
        printf("# %7.1f %s\n", trial->slowest[i].ms, trial->slowest[i].sql);
    base_close(&trial->base);
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

static void note_time(struct trial *trial, const char *sql, double ms)
{
    size_t at = N_SHOWN;

    while (at > 0 && ms > trial->slowest[at - 1].ms)
        at--;
    if (at == N_SHOWN)
        return;
    memmove(&trial->slowest[at + 1], &trial->slowest[at],
            (N_SHOWN - 1 - at) * sizeof(trial->slowest[0]));
    trial->slowest[at].ms = ms;
    snprintf(trial->slowest[at].sql, sizeof(trial->slowest[at].sql), "%s", sql);
}

/* `expected`: the code behind its failure, "" for an answer, NULL for either. */
static void try_query(struct trial *trial, const char *sql, const char *expected)
{
    const double before = cpu_ms();
    peg_record *record = query(&trial->base, sql, NULL);
    const double ms = cpu_ms() - before;
    const char *cause = peg_record_is_error(record) ? peg_record_cause(record) : "";

    if (*cause && strncmp(cause, "E_SQL_", 6) != 0)
        T_FAIL("%s fails with %s", sql, cause);
    if (expected && strcmp(cause, expected) != 0)
        T_FAIL("%s ends with '%s', expected '%s'", sql, cause, expected);
    if (ms > HARD_STOP_MS && !t_is_instrumented())
        T_FAIL("%s took %.0f ms of CPU", sql, ms);
    note_time(trial, sql, ms);
    trial->n_tried++;
    trial->n_answered += !*cause;
    peg_record_unref(record);
}

/* ---- every function ---------------------------------------------------------------------- */

static const char *const hostile[] = {
    "t", "b", "n", "q", "u", "j", "o", "2147483647", "-9223372036854775807", "1e308", "'$[#-1]'",
};
enum { N_HOSTILE = sizeof(hostile) / sizeof(*hostile) };

/* Each hostile value in each place, beside others. */
static void try_arity(struct trial *trial, const char *name, int n_args, bool is_window)
{
    for (size_t first = 0; first < N_HOSTILE; first++) {
        struct peg__buf sql = PEG__BUF(PEG_LIMIT_SQL_BYTES);

        peg__buf_printf(&sql, "SELECT typeof(\"%s\"(", name);
        for (int i = 0; i < n_args; i++)
            peg__buf_printf(&sql, "%s%s", i ? ", " : "",
                            hostile[(first + (size_t)i * 7) % N_HOSTILE]);
        peg__buf_printf(&sql, ")%s) FROM h", is_window ? " OVER ()" : "");
        CHECK_INT(sql.status, PEG_OK);
        try_query(trial, sql.ptr, NULL);
        peg__buf_free(&sql);
        if (n_args == 0)
            break;
    }
}

static void try_function(struct trial *trial, const char *name, int n_args, bool is_window)
{
    static const int some[] = {1, 2, 3, PEG_LIMIT_SQLITE_FUNCTION_ARGS};

    if (n_args >= 0) {
        try_arity(trial, name, n_args, is_window);
        return;
    }
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
        try_arity(trial, name, some[i], is_window);
}

VOLUME_TEST(every_function_of_sqlite_ends_soon_with_the_largest_values)
{
    struct peg__sqlite *db = NULL;
    struct peg__sqlite_stmt *stmt = NULL;
    struct trial trial;
    bool is_row = false;

    open_trial(&trial);
    CHECK_INT(peg__sqlite_open(NULL, PEG__SQLITE_MEMORY, &db, NULL), PEG_OK);
    CHECK_INT(peg__sqlite_prepare(db,
                                  peg__str("SELECT DISTINCT name, narg, type = 'w' "
                                           "FROM pragma_function_list WHERE builtin ORDER BY 1, 2"),
                                  &stmt, NULL, NULL),
              PEG_OK);
    while (!peg__sqlite_step(stmt, &is_row, NULL) && is_row)
        try_function(&trial, peg__sqlite_text(stmt, 0).ptr, (int)peg__sqlite_int64(stmt, 1),
                     peg__sqlite_int64(stmt, 2) != 0);
    CHECK(trial.n_tried > 500 && trial.n_answered > 100);
    peg__sqlite_finalize(stmt);
    peg__sqlite_close(db);
    close_trial(&trial);
}

/* ---- those that were found to be slow ------------------------------------------------------ */

/* That text, so many thousand times. */
#define MANY(thousands, text) "replace(substr(t, 1, " #thousands "000), 'a', '" text "')"

VOLUME_TEST(queries_that_would_hold_a_thread_end_soon)
{
    static const struct {
        const char *expression;
        const char *cause; /* NULL: an answer or any of its own errors */
    } cases[] = {
        {"printf('%.*c', 2147483647, 'x')", "E_SQL_LIMIT"},
        {"format('%.2147483647c', 'x')", "E_SQL_LIMIT"},
        {"printf('%!.99999999999999c', 'x')", "E_SQL_LIMIT"},
        {"printf('%.*c', -2147483647, 'x')", "E_SQL_LIMIT"},
        {"printf('%2147483647c', 'x')", "E_SQL_LIMIT"},
        {"printf(" MANY(200, "%.99999c") ", 'x')", "E_SQL_LIMIT"},
        {"printf('%2147483647d', 1)", NULL},
        {"printf('%.2147483647f', 1.5)", NULL},
        {"printf(" MANY(500, "%d") ", 1)", NULL},
        {"printf(" MANY(250, "%!.0s") ", u)", NULL},
        {"zeroblob(2147483647)", "E_SQL_LIMIT"},
        {"randomblob(2147483647)", "E_SQL_LIMIT"},
        {"t LIKE '%' || substr(t, 1, 190) || 'b'", "E_SQL_LIMIT"},
        {"t LIKE '%' || substr(t, 1, 14) || 'b'", ""},
        {"u LIKE '%ä%ä%ä_b'", ""},
        {"t GLOB '*[b' || replace(substr(t, 1, 180), 'a', 'c') || ']b'", "E_SQL_LIMIT"},
        {"t GLOB '*[bcdefghijk]b'", ""},
        {"substr(t, 1, 160000) GLOB '*[^' || replace(substr(t, 1, 190), 'a', 'b') || ']b'", ""},
        {"substr(u, 1, 80000) LIKE '%' || substr(u, 1, 90) || 'b'", ""},
        {"strftime(" MANY(1000, "%f") ", 'now')", "E_SQL_LIMIT"},
        {"strftime(" MANY(120, "%J") ", 'now')", NULL},
        {"json_set(j, '$[#]', 1)", ""},
        {"json_remove(j, '$[0]', '$[0]', '$[0]', '$[0]', '$[0]', '$[0]', '$[0]')", ""},
        {"json_extract(o, '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', "
         "'$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', "
         "'$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z', '$.z')",
         ""},
        {"json_extract('{}', '$' || " MANY(900, ".a") ")", NULL},
        {"json_patch(o, o)", "E_SQL_REFUSED"},
        {"trim(u, replace(substr(t, 1, 90), 'a', 'ö') || 'ä')", ""},
        {"rtrim(n, replace(substr(t, 1, 190), 'a', 'b') || '9')", ""},
        {"replace(t, 'a', 'b')", ""},
        {"replace(t, 'a', t)", "E_SQL_LIMIT"},
        {"instr(t, substr(t, 1, 1000000) || 'b')", ""},
        {"soundex(replace(t, 'a', ' '))", ""},
        {"quote(q)", NULL},
        {"hex(b)", "E_SQL_LIMIT"},
        {"date('now', '+99999999999999 months')", NULL},
        {"round(1e308, 2147483647)", ""},
        {"CAST('0.' || replace(substr(n, 3), '9', '0') || '1' AS REAL)", ""},
        {"pow(n, n)", ""},
    };
    struct trial trial;

    if (t_is_instrumented())
        SKIP("every large value is a mapping of its own under a sanitizer: it takes minutes");
    open_trial(&trial);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char sql[1024];

        snprintf(sql, sizeof(sql), "SELECT length(%s) AS n FROM h", cases[i].expression);
        try_query(&trial, sql, cases[i].cause);
    }
    close_trial(&trial);
}

TEST(a_function_with_too_many_arguments_is_refused)
{
    struct base b;

    base_open(&b);
    check_refused(&b,
                  "SELECT max(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"
                  "26,27,28,29,30,31,32,33)",
                  NULL, "E_SQL_SYNTAX");
    base_close(&b);
}
