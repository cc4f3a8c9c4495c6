/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include "../t.h"
#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/yaml.h"

/* The place is told by the text that stands there. */
static void check_json(const char *text, const char *pointer, const char *there)
{
    const size_t at = peg__json_locate(peg__str(text), peg__str(pointer));

    if (strncmp(text + at, there, strlen(there)) != 0)
        T_FAIL("'%s' is at %zu: %s", pointer, at, text + at);
}

static void check_yaml(const char *text, const char *pointer, const char *there)
{
    const size_t at = peg__yaml_locate(peg__str(text), NULL, peg__str(pointer));

    if (strncmp(text + at, there, strlen(there)) != 0)
        T_FAIL("'%s' is at %zu: %s", pointer, at, text + at);
}

static void check_yaml_key(const char *text, const char *pointer, const char *there)
{
    const size_t at = peg__yaml_locate_key(peg__str(text), NULL, peg__str(pointer));

    if (strncmp(text + at, there, strlen(there)) != 0)
        T_FAIL("the key of '%s' is at %zu: %s", pointer, at, text + at);
}

TEST(yaml_keys_are_found_in_their_text)
{
    static const char text[] = "a:\n  - b: 1\n    c: {d: 2}\n  - 3\n";

    check_yaml_key(text, "/a", "a:");
    check_yaml_key(text, "/a/0/c", "c:");
    check_yaml_key(text, "/a/0/c/d", "d:");
    check_yaml_key(text, "/a/1", "3");
    check_yaml_key(text, "/a/0/nowhere", "b:");
}

TEST(json_values_are_found_in_their_text)
{
    static const char text[] = " { \"a\" : [ 1 , {\"b\":\"x\\\"]},\" , \"c\":tru"
                               "e}, [ ] ,\n null ],\"d/e~\":{}, \"\\u0066\":-2.5e3 }";

    check_json(text, "", "{ \"a\"");
    check_json(text, "/a", "[ 1");
    check_json(text, "/a/0", "1 ,");
    check_json(text, "/a/1", "{\"b\"");
    check_json(text, "/a/1/b", "\"x");
    check_json(text, "/a/1/c", "true");
    check_json(text, "/a/2", "[ ]");
    check_json(text, "/a/3", "null");
    check_json(text, "/d~1e~0", "{}");
    check_json(text, "/f", "-2.5e3");
}

TEST(a_pointer_that_leads_nowhere_finds_the_last_value_on_its_way)
{
    static const char text[] = "{\"a\":[1,{\"b\":2}],\"c\":{}}";

    check_json(text, "/a/7", "[1,");
    check_json(text, "/a/1/c", "{\"b\"");
    check_json(text, "/a/x", "[1,");
    check_json(text, "/a/0/b", "1,");
    check_json(text, "/c/d/e", "{}}");
    check_json(text, "no pointer", "{\"a\"");
    check_yaml("a: [1, {b: 2}]\nc: {}\n", "/a/7", "[1,");
    check_yaml("a: [1, {b: 2}]\nc: {}\n", "/a/1/c", "{b:");
    check_yaml("a: [1, {b: 2}]\nc: {}\n", "/a/0/x", "1,");
}

TEST(yaml_values_are_found_in_their_text)
{
    static const char text[] = "\xC3\xA4: x\n"
                               "blocks:\n"
                               "  - id: b1\n"
                               "    payload: {text: \"h\xC3\xA9llo\", n: 12}\n"
                               "  - &anchor\n"
                               "    id: b2\n"
                               "  - *anchor\n"
                               "d/e: |\n"
                               "  long\n";

    check_yaml(text, "/\xC3\xA4", "x\n");
    check_yaml(text, "/blocks", "- id: b1");
    check_yaml(text, "/blocks/0/id", "b1");
    check_yaml(text, "/blocks/0/payload/n", "12}");
    check_yaml(text, "/blocks/1/id", "b2");
    check_yaml(text, "/blocks/2", "*anchor");
    check_yaml(text, "/blocks/2/id", "b2");
    check_yaml(text, "/d~1e", "|\n");
}

TEST(members_that_yaml_merged_are_found_where_they_were_merged)
{
    static const char text[] = "%YAML 1.1\n---\nbase: &b {x: 1, y: 2}\nall:\n  <<: *b\n  y: 3\n";

    check_yaml(text, "/all/x", "*b");
    check_yaml(text, "/all/y", "3");
}

TEST(text_that_is_damaged_is_never_left)
{
    static const char *const texts[] = {"",        "{",          "{\"a",     "{\"a\\",   "{\"a\"",
                                        "{\"a\":", "{\"a\":[1,", "[\"\\",    "{\"b\":1", "[[[",
                                        "]",       "{\"a\":\"x", "{\"a\":}", "\"",       "{,,"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const size_t len = strlen(texts[i]);
        char *exact = malloc(len ? len : 1); /* no byte behind it */

        memcpy(exact, texts[i], len);
        CHECK(peg__json_locate(peg__strn(exact, len), peg__str("/a/1/b")) <= len);
        CHECK(peg__yaml_locate(peg__strn(exact, len), NULL, peg__str("/a/1/b")) <= len);
        free(exact);
    }
}

TORTURE(looking_for_a_place_survives_any_allocation_failure)
{
    static const char text[] = "{\"\\u0061\": {b: [1, 2]}, &x c: *x}";
    peg_json_doc *doc = NULL;
    const size_t at = peg__yaml_locate(peg__str(text), NULL, peg__str("/a/b/1"));

    (void)at;
    CHECK(peg__json_locate(peg__str("{\"\\u0061\":7}"), peg__str("/a")) <= 12);
    /* It tells nothing, so that something else has to say when memory no longer runs out. */
    if (peg_json_parse(peg__str("{\"\\u0061\":7}"), NULL, &doc, NULL))
        return PEG_ENOMEM;
    peg_json_doc_free(doc);
    return at ? PEG_OK : PEG_ENOMEM;
}
