/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized.h"

#include <string.h>

#include "base/text/str.h"
#include "t.h"

/* ---- fixture: a struct of this library, and what programs of other versions have --------------
 */

struct inner {
    size_t size;
    int64_t first;
};

struct outer {
    size_t size;
    struct inner in;
    int64_t last;
};

static const struct peg__layout inner_layout = PEG__LAYOUT(struct inner, INNER_INIT);
static const struct peg__layout outer_layout =
    PEG__LAYOUT_AROUND(struct outer, in, &inner_layout, OUTER_INIT);

static peg_status read_inner(const struct inner *options, struct inner *ret_read, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, INNER_INIT, reterr);

    *ret_read = options ? *options : (struct inner){.first = -1};
    return PEG_OK;
}

static peg_status read_outer(const void *config, struct outer *ret_read, peg_error *reterr)
{
    const struct outer *options = config;

    PEG__READ_AS_OR_RETURN(options, &outer_layout, reterr);
    *ret_read = *options;
    return PEG_OK;
}

static void check_refused(peg_status status, const peg_error *error, const char *words)
{
    CHECK_INT(status, PEG_EINVAL);
    CHECK_STR(peg_cstr(error->code), "E_STRUCT_SIZE");
    CHECK(strstr(error->message, words));
}

/* ---- one struct ------------------------------------------------------------------------------ */

TEST(a_struct_of_our_size_is_read_where_it_is)
{
    const struct inner given = {sizeof(given), 7};
    const void *at = &given;
    struct inner copy;

    CHECK_INT(peg__sized_read(&at, &copy, &inner_layout, NULL), PEG_OK);
    CHECK(at == &given);
}

TEST(no_struct_stays_none)
{
    struct inner read;

    CHECK_INT(read_inner(NULL, &read, NULL), PEG_OK);
    CHECK_INT(read.first, -1);
}

TEST(members_that_an_older_program_does_not_know_are_zero)
{
    struct inner given = {sizeof(given.size), 7};
    struct inner read;

    CHECK_INT(read_inner(&given, &read, NULL), PEG_OK);
    CHECK_INT(read.size, sizeof(read));
    CHECK_INT(read.first, 0);
}

TEST(members_of_a_newer_program_may_be_there_but_not_set)
{
    struct {
        struct inner known;
        int64_t newer;
    } given = {{sizeof(given), 7}, 0};
    struct inner read;
    peg_error error;

    CHECK_INT(read_inner(&given.known, &read, &error), PEG_OK);
    CHECK_INT(read.first, 7);
    given.newer = 1;
    check_refused(read_inner(&given.known, &read, &error), &error, "INNER_INIT");
}

TEST(a_struct_without_its_size_is_refused_with_the_macro_that_sets_it)
{
    const struct inner given = {0, 7};
    struct inner read;
    peg_error error;

    check_refused(read_inner(&given, &read, &error), &error, "{INNER_INIT}");
}

/* ---- one struct in another --------------------------------------------------------------------
 */

TEST(an_inner_struct_may_be_older_than_we_are)
{
    const struct {
        size_t size;
        size_t inner_size;
        int64_t last;
    } given = {sizeof(given), sizeof(given.inner_size), 9};
    struct outer read;

    CHECK_INT(read_outer(&given, &read, NULL), PEG_OK);
    CHECK_INT(read.size, sizeof(read));
    CHECK_INT(read.in.size, sizeof(read.in));
    CHECK_INT(read.in.first, 0);
    CHECK_INT(read.last, 9);
}

TEST(an_inner_struct_may_be_newer_than_we_are)
{
    struct {
        size_t size;
        struct inner in;
        int64_t newer;
        int64_t last;
    } given = {sizeof(given), {sizeof(struct inner) + sizeof(int64_t), 7}, 0, 9};
    struct outer read;
    peg_error error;

    CHECK_INT(read_outer(&given, &read, NULL), PEG_OK);
    CHECK_INT(read.in.first, 7);
    CHECK_INT(read.last, 9);
    given.newer = 1;
    check_refused(read_outer(&given, &read, &error), &error, "INNER_INIT");
}

TEST(an_inner_struct_without_its_size_is_refused)
{
    struct outer given = {sizeof(given), {0, 7}, 9};
    struct outer read;
    peg_error error;

    check_refused(read_outer(&given, &read, &error), &error, "{INNER_INIT}");
    given.in.size = sizeof(given);
    check_refused(read_outer(&given, &read, &error), &error, "{INNER_INIT}");
    given.size = 0;
    check_refused(read_outer(&given, &read, &error), &error, "{OUTER_INIT}");
}
