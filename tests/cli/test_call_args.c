/* SPDX-License-Identifier: Apache-2.0 */

#include <unistd.h>

#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "t.h"

static const char SCHEMA[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},"
    "\"ratio\":{\"type\":\"number\"},\"metric\":{\"type\":\"boolean\"},"
    "\"when\":{\"type\":\"object\"},\"maybe\":{\"type\":[\"string\",\"null\"]},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"counts\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
    "\"zip\":{\"$ref\":\"#/$defs/zip\"},\"circle\":{\"$ref\":\"#/$defs/circle\"},"
    "\"either\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"boolean\"}]},"
    "\"level\":{\"enum\":[1,2,\"max\"]},\"free\":{}},"
    "\"$defs\":{\"zip\":{\"type\":\"string\"},\"circle\":{\"$ref\":\"#/$defs/circle\"}}}";

/* At most three words; NULL ends them. */
static void check_built(const char *const *words, const char *expected)
{
    peg_error error;
    char *json = NULL;
    size_t n = 0;

    while (words[n])
        n++;
    CHECK_STATUS(call_args_build(peg__str(SCHEMA), words, n, &json, &error), PEG_OK, error);
    CHECK_STR(peg__str(json), expected);
    peg_free(json);
}

#define BUILT(expected, ...) check_built((const char *const[]){__VA_ARGS__, NULL}, expected)

static void check_refused_as(const char *code, const char *word, const char *part)
{
    peg_error error;
    char *json = NULL;

    CHECK(call_args_build(peg__str(SCHEMA), &word, 1, &json, &error) != PEG_OK);
    CHECK_STR(peg__str(error.code), code);
    if (!strstr(error.message, part))
        T_FAIL("'%s' has no '%s'", error.message, part);
    CHECK(json == NULL);
}

/* It cannot be read. */
static void check_refused(const char *word, const char *part)
{
    check_refused_as("E_ARGUMENT", word, part);
}

/* It can, and is not what the schema wants. */
static void check_no_fit(const char *word, const char *part)
{
    check_refused_as("E_VALIDATION", word, part);
}

TEST(a_value_becomes_what_the_schema_wants)
{
    BUILT("{\"city\":\"Rome\",\"days\":3,\"metric\":true}", "city=Rome", "days=3", "metric=true");
    BUILT("{\"ratio\":0.5}", "ratio=0.5");
    BUILT("{\"ratio\":2}", "ratio=2");
    BUILT("{\"when\":{\"from\":1}}", "when={\"from\": 1}");
    BUILT("{\"zip\":\"00184\"}", "zip=00184");
    BUILT("{\"either\":true}", "either=true");
    BUILT("{\"level\":2}", "level=2");
    BUILT("{\"level\":\"max\"}", "level=max");
}

TEST(a_string_stays_one_whatever_it_looks_like)
{
    BUILT("{\"city\":\"3\"}", "city=3");
    BUILT("{\"city\":\"true\"}", "city=true");
    BUILT("{\"city\":\"null\"}", "city=null");
    BUILT("{\"city\":\"{}\"}", "city={}");
    BUILT("{\"city\":\"\\\"Rome\\\"\"}", "city=\"Rome\"");
    BUILT("{\"city\":\"\"}", "city=");
    BUILT("{\"city\":\"a=b:=c\"}", "city=a=b:=c");
}

TEST(null_is_null_where_that_is_allowed)
{
    BUILT("{\"maybe\":null}", "maybe=null");
    BUILT("{\"maybe\":\"x\"}", "maybe=x");
}

TEST(where_the_schema_says_nothing_json_is_json_and_all_else_a_string)
{
    BUILT("{\"free\":3}", "free=3");
    BUILT("{\"free\":[1]}", "free=[1]");
    BUILT("{\"free\":\"3 days\"}", "free=3 days");
    BUILT("{\"unknown\":\"x\"}", "unknown=x");
    BUILT("{\"circle\":\"x\"}", "circle=x");
}

TEST(a_colon_forces_json)
{
    BUILT("{\"city\":3}", "city:=3");
    BUILT("{\"free\":\"x\"}", "free:=\"x\"");
    check_refused("city:=Rome", "no JSON");
}

TEST(a_key_that_is_there_several_times_is_an_array)
{
    BUILT("{\"tags\":[\"a\",\"2\"]}", "tags=a", "tags=2");
    BUILT("{\"counts\":[1,2],\"city\":\"x\"}", "counts=1", "city=x", "counts=2");
    BUILT("{\"unknown\":[\"a\",1]}", "unknown=a", "unknown=1");
    check_no_fit("counts=x", "integer");
}

TEST(one_value_for_an_array_is_its_only_item)
{
    BUILT("{\"tags\":[\"a\"]}", "tags=a");
    BUILT("{\"tags\":[\"a\",\"b\"]}", "tags=[\"a\",\"b\"]");
    BUILT("{\"counts\":[7]}", "counts=7");
}

TEST(a_value_that_does_not_fit_is_reported_with_what_would)
{
    check_no_fit("days=soon", "integer");
    check_no_fit("days=1.5", "integer");
    check_no_fit("metric=yes", "boolean");
    check_no_fit("either=x", "boolean or integer");
    check_no_fit("when=now", "object");
}

TEST(an_argument_that_is_no_pair_is_reported)
{
    check_refused("city", "key=value");
    check_refused("=x", "key=value");
    check_refused(":=1", "key=value");
}

TEST(no_pairs_are_no_arguments)
{
    char *json = NULL;

    CHECK_INT(call_args_build(peg__str(""), NULL, 0, &json, NULL), PEG_OK);
    CHECK_STR(peg__str(json), "{}");
    peg_free(json);
}

TEST(a_value_is_read_from_a_file)
{
    char path[] = "/tmp/peg-args-XXXXXX";
    const int fd = mkstemp(path);
    char word[64];

    CHECK(fd >= 0);
    CHECK_INT(write(fd, "[1, 2]\n", 7), 7);
    close(fd);
    snprintf(word, sizeof(word), "city=@%s", path);
    BUILT("{\"city\":\"[1, 2]\\n\"}", word);
    snprintf(word, sizeof(word), "counts=@%s", path);
    BUILT("{\"counts\":[1,2]}", word);
    snprintf(word, sizeof(word), "city:=@%s", path);
    BUILT("{\"city\":[1,2]}", word);
    unlink(path);
    check_refused(word, path);
}

TEST(two_ats_are_one_in_a_text)
{
    BUILT("{\"city\":\"@alice\"}", "city=@@alice");
    BUILT("{\"tags\":[\"@a\",\"b@c\"]}", "tags=@@a", "tags=b@c");
    BUILT("{\"free\":\"@\"}", "free=@@");
    check_refused("city=@/nowhere/alice", "; for the text itself write city=@@/nowhere/alice");
}

TEST(json_from_a_file_that_is_wrong_is_reported_with_its_place)
{
    char path[] = "/tmp/peg-args-XXXXXX";
    const int fd = mkstemp(path);
    char given[64];
    char place[64];
    peg_error error;
    char *json = NULL;

    CHECK(fd >= 0);
    CHECK_INT(write(fd, "{\"a\":\n b}", 9), 9);
    close(fd);
    snprintf(given, sizeof(given), "@%s", path);
    snprintf(place, sizeof(place), "%s:2:2: ", path);
    CHECK_STATUS(call_args_read(given, &json, &error), PEG_EPARSE, error);
    CHECK(strstr(error.message, place) == error.message);
    CHECK(json == NULL);
    unlink(path);
}

TEST(json_from_a_file_ends_where_the_file_does)
{
    char path[] = "/tmp/peg-args-XXXXXX";
    const int fd = mkstemp(path);
    char given[64];
    peg_error error;
    char *json = NULL;

    CHECK(fd >= 0);
    CHECK_INT(write(fd, "{\"a\":[1,2]}", 11), 11);
    close(fd);
    snprintf(given, sizeof(given), "@%s", path);
    CHECK_STATUS(call_args_read(given, &json, &error), PEG_OK, error);
    CHECK_STR(peg__str(json), "{\"a\":[1,2]}");
    peg_free(json);
    unlink(path);
}

TEST(json_at_once_is_checked_and_kept_as_it_is)
{
    peg_error error;
    char *json = NULL;

    CHECK_STATUS(call_args_read("{ \"a\": 1 }", &json, &error), PEG_OK, error);
    CHECK_STR(peg__str(json), "{ \"a\": 1 }");
    json = peg_free(json);
    CHECK_STATUS(call_args_read("{", &json, &error), PEG_EPARSE, error);
    CHECK(json == NULL);
}

TEST(json_with_a_member_twice_is_refused)
{
    peg_error error;
    char *json = NULL;

    CHECK_STATUS(call_args_read("{\"k\":1,\"\\u006b\":2}", &json, &error), PEG_EPARSE, error);
    CHECK_STR(peg__str(error.where), "/k");
    check_refused("free:={\"a\":1,\"a\":2}", "/a comes twice");
}

TEST(what_is_no_utf8_is_refused)
{
    const char *word = "city=\xff";
    char *json = NULL;

    CHECK(call_args_build(peg__str(SCHEMA), &word, 1, &json, NULL) != PEG_OK);
}

TORTURE(arguments_survive_any_allocation_failure)
{
    static const char *const words[] = {"city=Rome", "tags=a", "tags=b", "when={}"};
    char *json = NULL;
    peg_status status = call_args_build(peg__str(SCHEMA), words, 4, &json, NULL);

    peg_free(json);
    return status;
}
