/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <unistd.h>

#include "cli/validate/validate.h"
#include "t.h"

/* ---- fixture: a file of lines, and what it takes to check them --------------------- */

enum { N_LINES = 1000 };

struct world {
    char path[64];
    struct validate_options options;
    struct validate v;
};

static void world_make(struct world *w)
{
    peg_error error;
    FILE *f;
    int fd;

    *w = (struct world){.path = "/tmp/pegboard-test-XXXXXX",
                        .options = {.quiet = true,
                                    .syntax = CLI_SYNTAX_JSON_LINES,
                                    .json = {PEG_JSON_OPTIONS_INIT}}};
    w->v = (struct validate){.options = &w->options, .text = PEG__BUF(1 << 20)};
    fd = mkstemp(w->path);
    CHECK(fd >= 0);
    f = fdopen(fd, "w");
    CHECK(f);
    for (int i = 0; i < N_LINES; i++)
        fprintf(f, "{\"id\": \"%05d\", \"tags\": [\"a\\u00e9\", \"b\"]}\n", i);
    fclose(f);

    CHECK_STATUS(peg_json_parse(peg_cstr("null"), NULL, &w->v.doc, &error), PEG_OK, error);
    CHECK_STATUS(peg_checker_new(NULL, &w->v.checker, &error), PEG_OK, error);
    CHECK_STATUS(peg_schema_compile(
                     peg_cstr("{\"properties\": {\"id\": {\"pattern\": \"^0*[0-8]+$\"},"
                              " \"tags\": {\"uniqueItems\": true, \"items\": {\"minLength\": 1}}},"
                              " \"additionalProperties\": false}"),
                     NULL, &w->v.schema, &error),
                 PEG_OK, error);
}

static void world_free(struct world *w)
{
    unlink(w->path);
    peg_json_doc_free(w->v.doc);
    peg_checker_free(w->v.checker);
    peg_schema_unref(w->v.schema);
}

/* From the second line on, every allocation fails. */
static void check_without_memory(struct validate *v, const struct validate_instance *instance,
                                 void *user)
{
    validate_check(v, instance, user);
    if (instance->place.line == 2)
        peg__mem_fail_at(1);
}

/* ---- tests --------------------------------------------------------------------------- */

TEST(a_line_is_checked_without_allocating_anything)
{
    struct world w;

    world_make(&w);

    validate_each(&w.v, w.path, check_without_memory, NULL);
    peg__mem_fail_at(0);

    CHECK_INT(w.v.n_unusable, 0);
    CHECK_INT(w.v.n_valid, 729); /* those without a 9 */
    CHECK_INT(w.v.n_invalid, N_LINES - 729);
    world_free(&w);
}
