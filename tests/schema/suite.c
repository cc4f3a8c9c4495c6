/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON-Schema-Test-Suite: one TAP line per file of it. Read it from the bottom up:
 *
 *   main -> run_draft -> run_folder -> run_file -> run_group -> run_test -> finds_fault
 *
 * Every test is checked in verdict mode and in report mode, and a report must agree with its
 * verdict and point into the instance. A test may fail only if suite-exceptions.txt names it with
 * a reason, and a name in there that does not fail is a failure itself.
 */

#include "suite.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/schema.h"
#include "schema/exceptions.h"

enum { MAX_FOLDER_DEPTH = 4 };

struct draft {
    const char *folder;
    peg_dialect dialect;
};

static const struct draft drafts[] = {
    {"draft4", PEG_DIALECT_DRAFT4},        {"draft6", PEG_DIALECT_DRAFT6},
    {"draft7", PEG_DIALECT_DRAFT7},        {"draft2019-09", PEG_DIALECT_2019_09},
    {"draft2020-12", PEG_DIALECT_2020_12}, {"v1", PEG_DIALECT_V1},
};

enum { N_DRAFTS = sizeof(drafts) / sizeof(drafts[0]) };

struct counts {
    unsigned n_passed;
    unsigned n_failed;
    unsigned n_excepted;
};

/* Everything a test needs to know about where it stands. */
struct runner {
    struct suite_tap tap;
    char root[SUITE_PATH];
    struct exceptions exceptions;
    peg_checker *checker;
    peg_report *report;

    const struct draft *draft;
    peg_schema_docs *docs;
    struct counts required;
    struct counts optional;

    char file[SUITE_PATH]; /* such as "draft7/optional/bignum.json" */
    const char *why;       /* why the group's schema did not compile, or NULL */
};

static void stop(const char *what, const peg_error *error)
{
    printf("Bail out! %s: %s\n", what, error ? error->message : "out of memory");
    exit(EXIT_FAILURE);
}

static peg_json_doc *load(const char *path)
{
    const peg_str text = suite_read(path);
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_parse(text, NULL, &doc, &error) != PEG_OK)
        stop(path, &error);
    suite_read_free(text);
    return doc;
}

/* ---- remote documents ---------------------------------------------------------- */

/* Is every $id in the document the address of its own folder? */
static bool has_own_ids(const peg_json *root, const struct draft *owner)
{
    char folder[SUITE_PATH];

    suite_path(folder, "http://localhost:1234/%s/", owner->folder);
    for (const peg_json *value = root; value + 1 < peg_json_next(root); value++)
        if (value->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(value), "$id") &&
            value[1].kind == PEG_JSON_STRING &&
            !peg__str_starts(peg_json_str(&value[1]), peg__str(folder)))
            return false;
    return true;
}

/*
 * The same foreign $id stands in the folders of several drafts, so a draft sees its own folder,
 * what is in no draft's folder, and of the others only documents whose names are their own: these
 * the cross-draft tests use.
 */
static bool is_for_draft(const struct draft *draft, const char *file, const peg_json *schema)
{
    for (size_t i = 0; i < N_DRAFTS; i++) {
        const size_t len = strlen(drafts[i].folder);

        if (strncmp(file, drafts[i].folder, len) == 0 && file[len] == '/')
            return &drafts[i] == draft || has_own_ids(schema, &drafts[i]);
    }
    return strncmp(file, "draft3/", strlen("draft3/")) != 0;
}

static void add_remote(struct runner *run, const char *file)
{
    char path[SUITE_PATH];
    char uri[SUITE_PATH];
    peg_json_doc *doc;
    peg_error error;

    suite_path(path, "%s/remotes/%s", run->root, file);
    suite_path(uri, "http://localhost:1234/%s", file);
    doc = load(path);
    if (is_for_draft(run->draft, file, peg_json_root(doc)) &&
        peg_schema_docs_add(run->docs, peg__str(uri), peg_json_root(doc), &error) != PEG_OK)
        stop(uri, &error);
    peg_json_doc_free(doc);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most MAX_FOLDER_DEPTH deep */
static void add_remotes(struct runner *run, const char *folder, int depth)
{
    struct dirent **entries;
    char path[SUITE_PATH];
    int n;

    suite_path(path, "%s/remotes/%s", run->root, folder);
    n = suite_list(path, &entries);
    for (int i = 0; i < n; i++) {
        const char *slash = folder[0] ? "/" : "";

        suite_path(path, "%s%s%s", folder, slash, entries[i]->d_name);
        if (strstr(entries[i]->d_name, ".json"))
            add_remote(run, path);
        else if (depth < MAX_FOLDER_DEPTH)
            add_remotes(run, path, depth + 1);
    }
    suite_list_free(entries, n);
}

/* ---- one test ------------------------------------------------------------------ */

static const char *verdict_name(peg_verdict verdict)
{
    return verdict == PEG_VALID ? "valid" : verdict == PEG_INVALID ? "invalid" : "undecided";
}

static bool points_into(const peg_json *instance, const peg_report *report)
{
    for (size_t i = 0; i < peg_report_len(report); i++) {
        const peg_json *place;

        if (peg_json_pointer(instance, peg_report_at(report, i)->instance, &place, NULL) != PEG_OK)
            return false;
    }
    return true;
}

/* What is wrong with what the library says about this instance, or NULL. */
static const char *finds_fault(const struct runner *run, const peg_schema *schema,
                               const peg_json *instance, peg_verdict expected)
{
    const peg_verdict verdict = peg_schema_check(schema, run->checker, instance);

    if (verdict == PEG_UNDECIDED)
        return peg_checker_reason(run->checker);
    if (verdict != expected)
        return verdict_name(verdict);
    if (peg_schema_report(schema, run->checker, instance, run->report) != verdict)
        return "report and verdict differ";
    if ((peg_report_len(run->report) > 0) != (verdict == PEG_INVALID))
        return "the report has failures of a valid instance, or none of an invalid one";
    if (!points_into(instance, run->report))
        return "the report points outside the instance";
    if (peg_schema_check(schema, run->checker, instance) != verdict)
        return "a second check says something else";
    return NULL;
}

static bool is_required(const struct runner *run)
{
    return !strstr(run->file, "/optional/") && !strstr(run->file, "/proposals/");
}

/* Returns whether the file may still pass. */
static bool run_test(struct runner *run, const peg_schema *schema, peg_str group,
                     const peg_json *test)
{
    const peg_str name = peg_json_str(peg_json_get(test, "description"));
    const peg_json *instance = peg_json_get(test, "data");
    const bool is_valid = peg_json_is_true(peg_json_get(test, "valid"));
    struct counts *counts = is_required(run) ? &run->required : &run->optional;
    const char *fault = run->why;

    if (schema)
        fault = finds_fault(run, schema, instance, is_valid ? PEG_VALID : PEG_INVALID);
    if (!fault) {
        counts->n_passed++;
        return true;
    }
    if (exceptions_use(&run->exceptions, run->file, group, name)) {
        counts->n_excepted++;
        return true;
    }
    counts->n_failed++;
    printf("# %s: %.*s / %.*s: should be %s: %s\n", run->file, PEG_ARG(group), PEG_ARG(name),
           is_valid ? "valid" : "invalid", fault);
    return false;
}

/* ---- files and folders ----------------------------------------------------------- */

/*
 * Everything runs with our defaults but the two sides of `format`, which is asserted up to draft-07
 * and in v1: the suite wants the one in folders of that name, the other in a file.
 */
static peg_format_mode format_mode(const struct runner *run)
{
    if (strstr(run->file, "/optional/format/") || strstr(run->file, "/optional/format.json"))
        return PEG_FORMAT_ASSERT;
    if (strstr(run->file, "/format.json") || strstr(run->file, "/format-annotation.json"))
        return PEG_FORMAT_IGNORE;
    return PEG_FORMAT_BY_DIALECT;
}

static bool run_group(struct runner *run, const peg_json *group)
{
    const peg_schema_options options = {
        PEG_SCHEMA_OPTIONS_INIT,
        .docs = run->docs,
        .dialect = run->draft->dialect,
        .format = format_mode(run),
    };
    const peg_str name = peg_json_str(peg_json_get(group, "description"));
    peg_schema *schema = NULL;
    peg_error error;
    bool passed = true;

    if (peg_schema_compile_value(peg_json_get(group, "schema"), &options, &schema, &error))
        run->why = error.message;
    PEG_JSON_EACH_ITEM (peg_json_get(group, "tests"), test)
        passed &= run_test(run, schema, name, test);
    peg_schema_unref(schema);
    run->why = NULL;
    return passed;
}

static void run_file(struct runner *run)
{
    char path[SUITE_PATH];
    peg_json_doc *doc;
    bool passed = true;

    suite_path(path, "%s/tests/%s", run->root, run->file);
    doc = load(path);
    PEG_JSON_EACH_ITEM (peg_json_root(doc), group)
        passed &= run_group(run, group);
    peg_json_doc_free(doc);
    suite_line(&run->tap, passed, run->file);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most MAX_FOLDER_DEPTH deep */
static void run_folder(struct runner *run, const char *folder, int depth)
{
    struct dirent **entries;
    char path[SUITE_PATH];
    int n;

    suite_path(path, "%s/tests/%s", run->root, folder);
    n = suite_list(path, &entries);
    for (int i = 0; i < n; i++) {
        suite_path(path, "%s/%s", folder, entries[i]->d_name);
        memcpy(run->file, path, sizeof(path));
        if (strstr(path, ".json"))
            run_file(run);
        else if (!strstr(path, ".md") && depth < MAX_FOLDER_DEPTH)
            run_folder(run, path, depth + 1);
    }
    suite_list_free(entries, n);
}

static unsigned sum(const struct counts *counts)
{
    return counts->n_passed + counts->n_failed + counts->n_excepted;
}

static void run_draft(struct runner *run, const struct draft *draft)
{
    const struct counts *required = &run->required;
    const struct counts *optional = &run->optional;
    char path[SUITE_PATH];

    suite_path(path, "%s/tests/%s", run->root, draft->folder);
    if (!suite_is_folder(path)) {
        suite_skip(&run->tap, draft->folder, "this copy of the suite is too old to have it");
        return;
    }
    run->draft = draft;
    run->required = (struct counts){0};
    run->optional = (struct counts){0};
    run->docs = peg_schema_docs_new();
    if (!run->docs)
        stop("remotes", NULL);
    add_remotes(run, "", 0);
    run_folder(run, draft->folder, 0);
    run->docs = peg_schema_docs_free(run->docs);
    printf("# %s: %u passed, %u failed, %u excepted (required %u/%u, optional %u/%u)\n",
           draft->folder, required->n_passed + optional->n_passed,
           required->n_failed + optional->n_failed, required->n_excepted + optional->n_excepted,
           required->n_passed, sum(required), optional->n_passed, sum(optional));
}

static bool find_suite(char root[SUITE_PATH])
{
    if (suite_find(root, "json-schema-test-suite", "PEG_JSON_SCHEMA_SUITE"))
        return true;
    suite_path(root, "%s", "/usr/share/json-schema-test-suite"); /* Debian's package */
    return suite_is_folder(root);
}

int main(void)
{
    static struct runner run;
    char newest[SUITE_PATH];
    const size_t live = peg__mem_live();
    peg_error error;

    if (!find_suite(run.root)) {
        suite_skip(&run.tap, "JSON-Schema-Test-Suite",
                   "not found; name its folder in PEG_JSON_SCHEMA_SUITE");
        return suite_done(&run.tap);
    }
    suite_path(newest, "%s/tests/v1", run.root);
    exceptions_load(&run.exceptions, !suite_is_folder(newest));
    if (peg_checker_new(NULL, &run.checker, &error) || peg_report_new(&run.report, &error))
        stop("checker", &error);
    for (size_t i = 0; i < N_DRAFTS; i++)
        run_draft(&run, &drafts[i]);
    peg_report_free(run.report);
    peg_checker_free(run.checker);
    suite_line(&run.tap, exceptions_are_used(&run.exceptions), "every exception is needed");
    suite_line(&run.tap, peg__mem_live() == live, "everything was freed");
    exceptions_free(&run.exceptions);
    return suite_done(&run.tap);
}
