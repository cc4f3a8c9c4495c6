/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/file.h"
#include "turn/turn.h"

#include <math.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/turn.h"

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define BAG PEG_CLEANUP(peg_bag_unrefp) peg_bag *
#define DOC PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *

static const peg_key color = {.bag = PEG_BAG_DATA, .id = "test.color@v1", .type = PEG_KEY_STRING};
static const peg_key words = {.bag = PEG_BAG_DATA, .id = "test.words@v1", .type = PEG_KEY_STRINGS};
static const peg_key point = {
    .bag = PEG_BAG_METADATA, .id = "test.point@v1", .type = PEG_KEY_OBJECT};
static const peg_key any = {.bag = PEG_BAG_DATA, .id = "test.any@v1"};

static peg_turn *turn_new(void)
{
    peg_turn *turn = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    return turn;
}

static peg_json_doc *parse(const char *text)
{
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    return doc;
}

static peg_status set(peg_turn *turn, const peg_key *key, const char *text, peg_error *reterr)
{
    DOC doc = parse(text);

    return peg_turn_set(turn, key, peg_json_root(doc), reterr);
}

static bool holds(const peg_turn *turn, const peg_key *key, const char *text)
{
    DOC doc = parse(text);
    const peg_json *value = NULL;

    CHECK_INT(peg_turn_get(turn, key, &value, NULL), PEG_OK);
    return value && peg_json_equal(value, peg_json_root(doc));
}

/* ---- keys ----------------------------------------------------------------------- */

/* G9 */
TEST(a_key_is_namespace_slug_and_version)
{
    static const char *const good[] = {"a.b@v1", "my_app.user-name@v20", "a.b.c@v3", NULL};
    static const char *const bad[] = {"",        "a@v1",     ".b@v1",   "a.@v1",
                                      "a..b@v1", "a.b",      "a.b@v0",  "a.b@v",
                                      "a.b@1",   "a.b@v01",  "A.b@v1",  "a.b@v1x",
                                      "a.b@@v1", "a b.c@v1", "a.b@v1 ", "a.b@v99999999999",
                                      NULL};

    for (size_t i = 0; good[i]; i++)
        CHECK_INT(peg_key_check(&(const peg_key){.bag = PEG_BAG_DATA, .id = good[i]}, NULL),
                  PEG_OK);
    for (size_t i = 0; bad[i]; i++) {
        peg_error error;

        CHECK_INT(peg_key_check(&(const peg_key){.bag = PEG_BAG_DATA, .id = bad[i]}, &error),
                  PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_KEY");
    }
    CHECK_INT(peg_key_check(&(const peg_key){.bag = PEG_BAG_DATA}, NULL), PEG_EINVAL);
    CHECK_INT(peg_key_check(&(const peg_key){.id = "a.b@v1"}, NULL), PEG_EINVAL);
    CHECK_INT(peg_key_check(NULL, NULL), PEG_EINVAL);
}

TEST(a_key_that_is_too_long_is_none)
{
    char id[PEG_LIMIT_KEY_BYTES + 2];

    memset(id, 'a', sizeof(id));
    memcpy(id + sizeof(id) - 6, ".b@v1", 6);
    CHECK_INT(peg_key_check(&(const peg_key){.bag = PEG_BAG_DATA, .id = id}, NULL), PEG_EINVAL);
    CHECK_INT(peg_key_check(&(const peg_key){.bag = PEG_BAG_DATA, .id = id + 1}, NULL), PEG_OK);
}

/* G19 */
TEST(the_keys_of_the_library_are_grammatical_and_unique_in_their_bag)
{
    for (size_t i = 0; peg__own_keys[i]; i++) {
        CHECK_INT(peg_key_check(peg__own_keys[i], NULL), PEG_OK);
        for (size_t k = 0; k < i; k++)
            CHECK(peg__own_keys[i]->bag != peg__own_keys[k]->bag ||
                  strcmp(peg__own_keys[i]->id, peg__own_keys[k]->id) != 0);
    }
}

/* ---- get and set ---------------------------------------------------------------- */

/* G10 */
TEST(what_is_not_there_is_missing_without_an_error)
{
    TURN turn = turn_new();
    const peg_json *value = (const peg_json *)&color;
    peg_str string = {"x", 1};

    CHECK_INT(peg_turn_get(turn, &color, &value, NULL), PEG_OK);
    CHECK(!value);
    CHECK_INT(peg_turn_get_string(turn, &color, &string, NULL), PEG_OK);
    CHECK(!string.ptr);
}

/* G11 */
TEST(strings_lists_and_objects_are_set_and_got)
{
    TURN turn = turn_new();
    peg_str string;

    CHECK_INT(peg_turn_set_string(turn, &color, peg_cstr("red"), NULL), PEG_OK);
    CHECK_INT(set(turn, &words, "[\"a\",\"b\"]", NULL), PEG_OK);
    CHECK_INT(set(turn, &point, "{\"x\":1,\"y\":{\"z\":[2]}}", NULL), PEG_OK);

    CHECK_INT(peg_turn_get_string(turn, &color, &string, NULL), PEG_OK);
    CHECK_STR(string, "red");
    CHECK(holds(turn, &words, "[\"a\",\"b\"]"));
    CHECK(holds(turn, &point, "{\"x\":1,\"y\":{\"z\":[2]}}"));
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 2);
    CHECK_INT(peg_bag_len(peg_turn_metadata(turn)), 1);
}

TEST(setting_again_replaces_and_keeps_the_order_of_ids)
{
    TURN turn = turn_new();
    peg_str id;

    CHECK_INT(set(turn, &words, "[]", NULL), PEG_OK);
    CHECK_INT(set(turn, &any, "1", NULL), PEG_OK);
    CHECK_INT(set(turn, &color, "\"a\"", NULL), PEG_OK);
    CHECK_INT(set(turn, &any, "2", NULL), PEG_OK);

    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 3);
    CHECK(peg_bag_at(peg_turn_data(turn), 0, &id, NULL));
    CHECK_STR(id, "test.any@v1");
    CHECK(peg_bag_at(peg_turn_data(turn), 1, &id, NULL));
    CHECK_STR(id, "test.color@v1");
    CHECK(!peg_bag_at(peg_turn_data(turn), 3, &id, NULL));
    CHECK(holds(turn, &any, "2"));
}

/* What a file may bring: any value under any key. */
static void put_raw(peg_turn *turn, const char *id, const char *text)
{
    peg_key raw = {.bag = PEG_BAG_DATA, .id = id};

    CHECK_INT(set(turn, &raw, text, NULL), PEG_OK);
}

/* G12 */
TEST(a_value_of_another_type_is_there_and_wrong)
{
    TURN turn = turn_new();
    const peg_json *value = NULL;
    peg_error error;

    put_raw(turn, "test.color@v1", "42");
    CHECK_INT(peg_turn_get(turn, &color, &value, &error), PEG_ESCHEMA);
    CHECK_STR(peg__str(error.code), "E_KEY_VALUE");
    CHECK(strstr(error.message, "data"));
    CHECK(strstr(error.message, "test.color@v1"));
    CHECK(strstr(error.message, "a string"));
    CHECK(!value);
}

/* G15 */
TEST(a_list_of_strings_with_something_else_in_it_is_wrong)
{
    TURN turn = turn_new();
    const peg_json *value;

    put_raw(turn, "test.words@v1", "[\"search\",123]");
    CHECK_INT(peg_turn_get(turn, &words, &value, NULL), PEG_ESCHEMA);
}

/* G16 */
TEST(a_stored_null_is_wrong_for_every_type_but_any)
{
    TURN turn = turn_new();
    const peg_json *value;

    put_raw(turn, "test.color@v1", "null");
    put_raw(turn, "test.any@v1", "null");
    CHECK_INT(peg_turn_get(turn, &color, &value, NULL), PEG_ESCHEMA);
    CHECK_INT(peg_turn_get(turn, &any, &value, NULL), PEG_OK);
    CHECK(value && value->kind == PEG_JSON_NULL);
}

TEST(each_type_takes_its_own_values_only)
{
    static const struct {
        peg_key_type type;
        const char *fits;
        const char *fails;
    } cases[] = {
        {PEG_KEY_STRING, "\"a\"", "1"},   {PEG_KEY_INTEGER, "3.0", "3.5"},
        {PEG_KEY_NUMBER, "3.5", "\"3\""}, {PEG_KEY_BOOL, "false", "0"},
        {PEG_KEY_STRINGS, "[]", "{}"},    {PEG_KEY_ARRAY, "[1,{}]", "{}"},
        {PEG_KEY_OBJECT, "{}", "[]"},     {PEG_KEY_STRINGS, "[\"a\"]", "[null]"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TURN turn = turn_new();
        const peg_key key = {.bag = PEG_BAG_DATA, .id = "test.x@v1", .type = cases[i].type};

        CHECK_INT(set(turn, &key, cases[i].fails, NULL), PEG_ESCHEMA);
        CHECK_INT(peg_bag_len(peg_turn_data(turn)), 0);
        CHECK_INT(set(turn, &key, cases[i].fits, NULL), PEG_OK);
    }
}

TEST(a_key_with_a_schema_takes_what_the_schema_accepts)
{
    TURN turn = turn_new();
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    peg_key key = {.bag = PEG_BAG_DATA, .id = "test.x@v1"};
    peg_error error;

    CHECK_INT(peg_schema_compile(peg_cstr("{\"type\":\"object\",\"required\":[\"a\"]}"), NULL,
                                 &schema, NULL),
              PEG_OK);
    key.schema = schema;
    CHECK_INT(set(turn, &key, "{}", &error), PEG_ESCHEMA);
    CHECK_STR(peg__str(error.code), "E_KEY_VALUE");
    CHECK_INT(set(turn, &key, "{\"a\":1}", NULL), PEG_OK);
}

/* G18 */
TEST(a_key_of_another_bag_is_refused)
{
    TURN turn = turn_new();
    BAG bag = NULL;
    const peg_json *value;
    peg_error error;

    CHECK_INT(peg_turn_get(turn, &peg_key_middleware, &value, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_KEY");
    CHECK_INT(peg_turn_set_string(turn, &peg_key_middleware, peg_cstr("x"), &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_KEY");
    CHECK_INT(peg_bag_get(bag, PEG_BAG_BLOCK, &color, &value, NULL), PEG_EINVAL);
    CHECK_INT(peg_bag_get(peg_turn_data(turn), PEG_BAG_DATA, &point, &value, NULL), PEG_EINVAL);
}

/* ---- what cannot be serialised --------------------------------------------------- */

/* G13 */
TEST(what_cannot_be_written_as_json_is_refused_and_changes_nothing)
{
    TURN turn = turn_new();
    peg_json_builder *b = peg_json_builder_new();
    peg_error error;

    peg_json_add_double(b, (double)NAN);
    CHECK_INT(peg_turn_set_built(turn, &any, b, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_KEY_VALUE");
    CHECK_STR(peg__str(error.cause), "E_JSON_NUMBER");
    CHECK(strstr(error.message, "test.any@v1"));
    CHECK(strstr(error.message, "not serializable"));

    b = peg_json_builder_new();
    peg_json_add_double(b, (double)-INFINITY);
    CHECK_INT(peg_turn_set_built(turn, &any, b, NULL), PEG_EINVAL);
    CHECK_INT(peg_turn_set_string(turn, &color, peg_cstr("\xff"), NULL), PEG_EINVAL);
    CHECK_INT(peg_turn_set(turn, &any, NULL, NULL), PEG_EINVAL);
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 0);
}

static char *nested(size_t depth)
{
    char *text = malloc(2 * depth + 1);

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
    return text;
}

TEST(a_value_that_nests_too_deep_to_be_read_back_is_refused)
{
    TURN turn = turn_new();
    char *fits = nested(PEG_LIMIT_BAG_DEPTH);
    char *deep = nested(PEG_LIMIT_BAG_DEPTH + 1);
    peg_error error;

    CHECK_INT(set(turn, &any, fits, NULL), PEG_OK);
    CHECK_INT(set(turn, &any, deep, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "nests too deep"));
    CHECK(holds(turn, &any, fits));
    free(fits);
    free(deep);
}

TEST(a_bag_has_a_limit_of_keys)
{
    TURN turn = turn_new();
    peg_error error;

    for (int i = 0; i <= PEG_LIMIT_BAG_KEYS; i++) {
        char id[32];
        const peg_key key = {.bag = PEG_BAG_DATA, .id = id};

        snprintf(id, sizeof(id), "test.k%d@v1", i);
        CHECK_INT(set(turn, &key, "1", &error), i < PEG_LIMIT_BAG_KEYS ? PEG_OK : PEG_ELIMIT);
    }
    CHECK(strstr(error.message, "too many keys"));
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), PEG_LIMIT_BAG_KEYS);
}

TEST(values_beside_each_other_do_not_count_as_nested)
{
    char text[4 * PEG_LIMIT_BAG_DEPTH + 8] = "[[]";
    const peg_key key = {.bag = PEG_BAG_DATA, .id = "app.list@v1", .type = PEG_KEY_ARRAY};
    size_t len = strlen(text);
    peg_turn *turn = NULL;

    for (int i = 0; i < PEG_LIMIT_BAG_DEPTH; i++, len += 3)
        memcpy(text + len, ",[]", 3);
    memcpy(text + len, "]", 2);
    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(set(turn, &key, text, NULL), PEG_OK);
    peg_turn_free(turn);
}

TEST(a_bag_holds_so_many_bytes_and_no_more)
{
    const peg_key one = {.bag = PEG_BAG_DATA, .id = "app.one@v1", .type = PEG_KEY_STRING};
    const peg_key two = {.bag = PEG_BAG_DATA, .id = "app.two@v1", .type = PEG_KEY_STRING};
    const size_t len = PEG_LIMIT_BAG_BYTES / 2 + 1;
    char *text = malloc(len);
    peg_turn *turn = NULL;
    peg_error error;

    CHECK(text);
    memset(text, 'x', len);
    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_turn_set_string(turn, &one, (peg_str){text, len}, &error), PEG_OK);
    CHECK_INT(peg_turn_set_string(turn, &two, (peg_str){text, len}, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "too many bytes"));
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 1);
    peg_turn_free(turn);
    free(text);
}

/* ---- taking out, copies ---------------------------------------------------------- */

/* G17 */
TEST(taking_out_the_last_key_leaves_an_empty_bag)
{
    TURN turn = turn_new();

    CHECK_INT(set(turn, &any, "1", NULL), PEG_OK);
    CHECK_INT(peg_turn_unset(turn, &color, NULL), PEG_OK);
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 1);
    CHECK_INT(peg_turn_unset(turn, &any, NULL), PEG_OK);
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 0);
    CHECK(!peg_turn_data(turn));
}

/* G6 */
TEST(a_copy_does_not_see_what_is_done_to_the_bags_of_the_original)
{
    TURN turn = turn_new();
    TURN copy = NULL;

    CHECK_INT(set(turn, &point, "{\"x\":{\"y\":1}}", NULL), PEG_OK);
    CHECK_INT(peg_turn_copy(turn, &copy, NULL), PEG_OK);
    CHECK_INT(set(turn, &point, "{\"x\":{\"y\":2}}", NULL), PEG_OK);
    CHECK_INT(peg_turn_set_string(copy, &color, peg_cstr("red"), NULL), PEG_OK);

    CHECK(holds(copy, &point, "{\"x\":{\"y\":1}}"));
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 0);
    CHECK_STR(peg_turn_id(copy), peg_turn_id(turn).ptr);
}

/* ---- older versions -------------------------------------------------------------- */

static peg_status to_v2(const peg_json *old, peg_json_builder *into, peg_error *reterr)
{
    (void)reterr;
    if (old->kind != PEG_JSON_STRING)
        return PEG_EPARSE;
    peg_json_open_object(into);
    peg_json_add_key(into, peg_cstr("name"));
    peg_json_add_copy(into, old);
    peg_json_close(into);
    return PEG_OK;
}

static const peg_key_older older[] = {{.id = "test.user@v1", .upgrade = to_v2}};
static const peg_key user2 = {.bag = PEG_BAG_DATA,
                              .id = "test.user@v2",
                              .type = PEG_KEY_OBJECT,
                              .older = older,
                              .n_older = 1};

TEST(an_older_version_is_told_apart_and_upgraded_when_asked)
{
    TURN turn = turn_new();
    const peg_json *value;
    peg_error error;

    put_raw(turn, "test.user@v1", "\"ann\"");
    CHECK_INT(peg_turn_get(turn, &user2, &value, &error), PEG_ESCHEMA);
    CHECK_STR(peg__str(error.code), "E_KEY_OLD");
    CHECK_INT(peg_turn_upgrade(turn, &user2, NULL), PEG_OK);
    CHECK(holds(turn, &user2, "{\"name\":\"ann\"}"));
    CHECK(!peg_bag_find(peg_turn_data(turn), peg_cstr("test.user@v1")));
    CHECK_INT(peg_turn_upgrade(turn, &user2, NULL), PEG_OK);
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 1);
}

TEST(an_upgrade_that_fails_leaves_everything_as_it_was)
{
    TURN turn = turn_new();
    peg_error error;

    put_raw(turn, "test.user@v1", "17");
    CHECK_INT(peg_turn_upgrade(turn, &user2, &error), PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_KEY_UPGRADE");
    CHECK(peg_bag_find(peg_turn_data(turn), peg_cstr("test.user@v1")));
}

TEST(somebody_elses_name_for_a_key_is_read_as_ours_and_goes_when_ours_is_set)
{
    TURN turn = turn_new();
    peg_key theirs = {.bag = PEG_BAG_METADATA, .id = "geppetto.session_id@v1"};
    peg_str session;

    CHECK_INT(set(turn, &theirs, "\"s1\"", NULL), PEG_OK);
    CHECK_INT(peg_turn_get_string(turn, &peg_key_session_id, &session, NULL), PEG_OK);
    CHECK_STR(session, "s1");
    CHECK_INT(peg_turn_set_string(turn, &peg_key_session_id, peg_cstr("s2"), NULL), PEG_OK);
    CHECK_INT(peg_bag_len(peg_turn_metadata(turn)), 1);
}

TEST(a_key_of_a_file_that_is_none_is_refused_at_its_place_by_a_strict_reader)
{
    DOC doc = parse("{\"a/b\":1}");
    BAG bag = NULL;
    peg_error error;

    CHECK_INT(peg__bag_from_json(peg_json_root(doc), false, &bag, NULL), PEG_OK);
    CHECK_INT(peg_bag_len(bag), 1);
    CHECK_INT(peg__bag_from_json(peg_json_root(doc), true, &bag, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_TURN_FORMAT");
    CHECK_STR(peg__str(error.where), "/a~1b");
}

/* ---- memory ----------------------------------------------------------------------- */

TORTURE(bags_survive_any_allocation_failure)
{
    peg_turn *turn = NULL;
    peg_turn *copy = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_turn_set_string(turn, &color, peg_cstr("red"), NULL);
    if (!status)
        status = peg_turn_copy(turn, &copy, NULL);
    if (!status)
        status = peg_turn_set_string(turn, &peg_key_session_id, peg_cstr("s"), NULL);
    if (!status)
        status =
            peg_turn_set_string(turn, &(const peg_key){.bag = PEG_BAG_DATA, .id = "test.user@v1"},
                                peg_cstr("ann"), NULL);
    if (!status)
        status = peg_turn_upgrade(turn, &user2, NULL);
    if (!status)
        status = peg_turn_unset(turn, &color, NULL);
    if (!status)
        status = peg_turn_set_id(turn, peg_cstr("another"), NULL);
    peg_turn_free(turn);
    peg_turn_free(copy);
    return status;
}
