/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "json/json.h"

/* The document of RFC 6901, section 5, with an array of containers added. */
static const char rfc_text[] =
    "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
    "\"k\\\"l\":6,\" \":7,\"m~n\":8,\"deep\":[{\"x\":[1,[2,3]]},{\"y\":null}]}";

struct world {
    peg_json_doc *doc;
    const peg_json *root;
    const peg_json *found;
    peg_error error;
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    CHECK_STATUS(peg_json_parse(peg__str(rfc_text), NULL, &w->doc, &w->error), PEG_OK, w->error);
    w->root = peg_json_root(w->doc);
}

static peg_status follow(struct world *w, const char *pointer)
{
    return peg_json_pointer(w->root, peg__str(pointer), &w->found, &w->error);
}

TEST(pointer_finds_what_the_rfc_lists)
{
    static const struct {
        const char *pointer;
        int64_t number;
    } cases[] = {
        {"/", 0},     {"/a~1b", 1}, {"/c%d", 2}, {"/e^f", 3},  {"/g|h", 4},
        {"/i\\j", 5}, {"/k\"l", 6}, {"/ ", 7},   {"/m~0n", 8}, {"/deep/0/x/1/1", 3},
    };
    struct world w;

    open_world(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(follow(&w, cases[i].pointer), PEG_OK, w.error);
        CHECK_INT(w.found->u.number, cases[i].number);
    }
    CHECK_INT(follow(&w, ""), PEG_OK);
    CHECK(w.found == w.root);
    CHECK_INT(follow(&w, "/foo/0"), PEG_OK);
    CHECK_STR(peg_json_str(w.found), "bar");
    peg_json_doc_free(w.doc);
}

TEST(pointer_tells_how_far_it_came)
{
    static const struct {
        const char *pointer;
        const char *where;
    } cases[] = {
        {"/foo/2", "/foo"},
        {"/foo/-", "/foo"},
        {"/foo/00", "/foo"},
        {"/foo/01", "/foo"},
        {"/foo/", "/foo"},
        {"/foo/1 ", "/foo"},
        {"/foo/+1", "/foo"},
        {"/foo/99999999999", "/foo"},
        {"/nope", ""},
        {"/foo/0/x", "/foo/0"},
        {"/deep/1/x/0", "/deep/1"},
        {"/a~0b", ""},
        {"/foo/18446744073709551616", "/foo"},
    };
    struct world w;

    open_world(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w.found = NULL;
        CHECK_STATUS(follow(&w, cases[i].pointer), PEG_ENOTFOUND, w.error);
        CHECK_STR(peg__str(w.error.code), "E_JSON_POINTER_MISSING");
        CHECK_STR(peg__str(w.error.where), cases[i].where);
        CHECK(!w.found);
    }
    peg_json_doc_free(w.doc);
}

TEST(pointer_into_a_scalar_is_told_with_the_right_article)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"1", "there is nothing at 'x' inside of an integer"},
        {"\"1\"", "there is nothing at 'x' inside of a string"},
        {"null", "there is nothing at 'x' inside of a null"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w = {0};

        CHECK_STATUS(peg_json_parse(peg__str(cases[i].text), NULL, &w.doc, &w.error), PEG_OK,
                     w.error);
        w.root = peg_json_root(w.doc);
        CHECK_STATUS(follow(&w, "/x"), PEG_ENOTFOUND, w.error);
        CHECK_STR(peg__str(w.error.message), cases[i].message);
        peg_json_doc_free(w.doc);
    }
}

TEST(pointer_refuses_what_is_no_pointer)
{
    static const struct {
        const char *pointer;
        size_t offset;
    } cases[] = {{"foo", 0}, {"#/foo", 0}, {"/a~b", 2}, {"/a~", 2}, {"/nope/~2", 6}};
    struct world w;

    open_world(&w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(follow(&w, cases[i].pointer), PEG_EPARSE, w.error);
        CHECK_STR(peg__str(w.error.code), "E_JSON_POINTER_SYNTAX");
        CHECK_INT(w.error.offset, cases[i].offset);
    }
    peg_json_doc_free(w.doc);
}

TEST(pointer_of_every_value_leads_back_to_it)
{
    struct world w;
    const peg_json *value;

    open_world(&w);
    for (value = w.root; value < peg_json_next(w.root); value++) {
        char *pointer = NULL;

        CHECK_INT(peg_json_pointer_to(w.root, value, &pointer, &w.error), PEG_OK);
        CHECK_STATUS(follow(&w, pointer), PEG_OK, w.error);
        /* A key leads to its member. */
        CHECK(w.found == value || (w.found == value + 1 && value->kind == PEG_JSON_STRING));
        peg_free(pointer);
    }
    peg_json_doc_free(w.doc);
}

TEST(pointer_to_escapes_names_and_starts_at_the_root_given)
{
    struct world w;
    const peg_json *deep;
    char *pointer;

    open_world(&w);
    CHECK_INT(peg_json_pointer_to(w.root, peg_json_get(w.root, "m~n"), &pointer, NULL), PEG_OK);
    CHECK_STR(peg__str(pointer), "/m~0n");
    peg_free(pointer);
    CHECK_INT(peg_json_pointer_to(w.root, peg_json_get(w.root, "a/b") - 1, &pointer, NULL), PEG_OK);
    CHECK_STR(peg__str(pointer), "/a~1b");
    peg_free(pointer);
    deep = peg_json_at(peg_json_get(w.root, "deep"), 0);
    CHECK_INT(follow(&w, "/deep/0/x/1/0"), PEG_OK);
    CHECK_INT(peg_json_pointer_to(deep, w.found, &pointer, NULL), PEG_OK);
    CHECK_STR(peg__str(pointer), "/x/1/0");
    peg_free(pointer);
    peg_json_doc_free(w.doc);
}

TEST(pointer_to_refuses_a_value_of_elsewhere)
{
    struct world w;
    char *pointer = NULL;

    open_world(&w);

    CHECK_INT(peg_json_pointer_to(peg_json_get(w.root, "foo"), w.root, &pointer, &w.error),
              PEG_EINVAL);

    CHECK_STR(peg__str(w.error.code), "E_JSON_POINTER_MISSING");
    CHECK(!pointer);
    peg_json_doc_free(w.doc);
}

TORTURE(pointer_to_survives_any_allocation_failure)
{
    peg_json_doc *doc = NULL;
    char *pointer = NULL;
    peg_status status = peg_json_parse(peg__str(rfc_text), NULL, &doc, NULL);

    if (!status)
        status = peg_json_pointer_to(peg_json_root(doc), peg_json_next(peg_json_root(doc)) - 1,
                                     &pointer, NULL);
    peg_free(pointer);
    peg_json_doc_free(doc);
    return status;
}
