/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/dialects.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- fixture ------------------------------------------------------------------------------ */

struct world {
    peg_json_doc *doc;
    peg_turn *turn;
    struct peg__names *names;
    peg_error error;
};

static peg_status make(struct world *w, const char *definitions,
                       const peg_definitions_options *options)
{
    peg_status status = PEG_OK;

    if (definitions)
        status = peg_json_parse(peg__str(definitions), NULL, &w->doc, &w->error);
    if (status)
        return status;
    return peg__names_new(w->doc ? peg_json_root(w->doc) : NULL, w->turn, options, &w->names,
                          &w->error);
}

static void done(struct world *w)
{
    peg__names_free(w->names);
    peg_turn_free(w->turn);
    peg_json_doc_free(w->doc);
}

static const peg_definitions_options chat = {PEG_DEFINITIONS_OPTIONS_INIT,
                                             .vendor = PEG_VENDOR_OPENAI_CHAT};
static const peg_definitions_options anthropic = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                  .vendor = PEG_VENDOR_ANTHROPIC};
static const peg_definitions_options gemini = {PEG_DEFINITIONS_OPTIONS_INIT,
                                               .vendor = PEG_VENDOR_GEMINI};
static const peg_definitions_options neutral = {PEG_DEFINITIONS_OPTIONS_INIT,
                                                .vendor = PEG_VENDOR_NEUTRAL};

#define OUT(w, name) peg__names_out((w)->names, peg__str(name))
#define IN(w, name) peg__names_in((w)->names, peg__str(name))

#define NAME_64 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"

/* ---- one name ------------------------------------------------------------------------------- */

/* G54 */
TEST(an_acceptable_name_stays_as_it_is)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, "[{\"name\":\"read-file_2\"},{\"name\":\"" NAME_64 "\"}]", &chat), PEG_OK,
                 w.error);

    CHECK_STR(OUT(&w, "read-file_2"), "read-file_2");
    CHECK_STR(IN(&w, "read-file_2"), "read-file_2");
    CHECK_STR(OUT(&w, NAME_64), NAME_64);
    done(&w);
}

/* G54 */
TEST(what_a_provider_does_not_take_becomes_an_underscore_and_comes_back)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, "[{\"name\":\"fs.read\"},{\"name\":\"größe\"}]", &anthropic), PEG_OK,
                 w.error);

    CHECK_STR(OUT(&w, "fs.read"), "fs_read");
    CHECK_STR(IN(&w, "fs_read"), "fs.read");
    CHECK_STR(OUT(&w, "größe"), "gr__e");
    CHECK_STR(IN(&w, "gr__e"), "größe");
    done(&w);
}

TEST(gemini_takes_dots_and_colons_but_no_digit_first)
{
    struct world w = {0};

    CHECK_STATUS(
        make(&w, "[{\"name\":\"fs.read:v2\"},{\"name\":\"2fast\"},{\"name\":\"-x\"}]", &gemini),
        PEG_OK, w.error);

    CHECK_STR(OUT(&w, "fs.read:v2"), "fs.read:v2");
    CHECK_STR(OUT(&w, "2fast"), "_2fast");
    CHECK_STR(IN(&w, "_2fast"), "2fast");
    CHECK_STR(OUT(&w, "-x"), "_-x");
    done(&w);
}

TEST(a_name_that_is_too_long_is_cut)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, "[{\"name\":\"" NAME_64 "-and-more\"}]", &chat), PEG_OK, w.error);

    CHECK_STR(OUT(&w, NAME_64 "-and-more"), NAME_64);
    CHECK_STR(IN(&w, NAME_64), NAME_64 "-and-more");
    done(&w);
}

TEST(neutral_takes_any_name)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, "[{\"name\":\"größe / 2\"}]", &neutral), PEG_OK, w.error);

    CHECK_STR(OUT(&w, "größe / 2"), "größe / 2");
    done(&w);
}

/* ---- two names ------------------------------------------------------------------------------- */

/* G54 */
TEST(a_name_that_changes_gives_way_to_one_that_does_not)
{
    struct world w = {0};
    peg_str wire;

    CHECK_STATUS(make(&w, "[{\"name\":\"fs.read\"},{\"name\":\"fs_read\"}]", &chat), PEG_OK,
                 w.error);

    wire = OUT(&w, "fs.read");
    CHECK_INT(wire.len, strlen("fs_read_") + 8);
    CHECK(peg__str_starts(wire, peg__str("fs_read_")));
    CHECK_STR(peg__names_in(w.names, wire), "fs.read");
    CHECK_STR(IN(&w, "fs_read"), "fs_read");
    done(&w);
}

/* G54, G124 */
TEST(two_names_that_would_become_one_are_told_apart_whatever_their_order)
{
    struct world a = {0};
    struct world b = {0};

    CHECK_STATUS(make(&a, "[{\"name\":\"x.y\"},{\"name\":\"x/y\"}]", &chat), PEG_OK, a.error);
    CHECK_STATUS(make(&b, "[{\"name\":\"x/y\"},{\"name\":\"x.y\"}]", &chat), PEG_OK, b.error);

    CHECK(!peg__str_eq(OUT(&a, "x.y"), OUT(&a, "x/y")));
    CHECK(peg__str_eq(OUT(&a, "x.y"), OUT(&b, "x.y")));
    CHECK(peg__str_eq(OUT(&a, "x/y"), OUT(&b, "x/y")));
    CHECK_STR(peg__names_in(a.names, OUT(&a, "x.y")), "x.y");
    CHECK_STR(peg__names_in(a.names, OUT(&a, "x/y")), "x/y");
    done(&a);
    done(&b);
}

TEST(a_suffix_that_somebody_chose_is_made_longer)
{
    struct world w = {0};
    struct world again = {0};
    char text[256];

    CHECK_STATUS(make(&w, "[{\"name\":\"a.b\"},{\"name\":\"a_b\"}]", &chat), PEG_OK, w.error);
    snprintf(text, sizeof(text), "[{\"name\":\"a.b\"},{\"name\":\"a_b\"},{\"name\":\"%.*s\"}]",
             PEG_ARG(OUT(&w, "a.b")));
    CHECK_STATUS(make(&again, text, &chat), PEG_OK, again.error);

    CHECK_INT(OUT(&again, "a.b").len, strlen("a_b_") + 16);
    CHECK_STR(peg__names_in(again.names, OUT(&again, "a.b")), "a.b");
    done(&w);
    done(&again);
}

TEST(a_suffix_fits_into_the_longest_name)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, "[{\"name\":\"" NAME_64 ".1\"},{\"name\":\"" NAME_64 ".2\"}]", &chat),
                 PEG_OK, w.error);

    CHECK_INT(OUT(&w, NAME_64 ".1").len, 64);
    CHECK(!peg__str_eq(OUT(&w, NAME_64 ".1"), OUT(&w, NAME_64 ".2")));
    done(&w);
}

/* G54 */
TEST(two_definitions_of_one_name_are_refused)
{
    struct world w = {0};

    CHECK_INT(make(&w, "[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a\"}]", &chat), PEG_EINVAL);

    CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
    CHECK_STR(peg__str(w.error.where), "/2/name");
    done(&w);
}

/* ---- the history
 * --------------------------------------------------------------------------------- */

static peg_status make_with_call(struct world *w, const char *definitions, const char *tool,
                                 const peg_definitions_options *options)
{
    peg_status status = peg_turn_new(&w->turn, &w->error);

    if (!status)
        status =
            peg_turn_add_call(w->turn, peg__str("c1"), peg__str(tool), peg__str("{}"), &w->error);
    return status ? status : make(w, definitions, options);
}

TEST(a_tool_that_is_gone_keeps_its_name_in_the_history)
{
    struct world w = {0};

    CHECK_STATUS(make_with_call(&w, NULL, "old.tool", &chat), PEG_OK, w.error);

    CHECK_STR(OUT(&w, "old.tool"), "old_tool");
    CHECK_STR(IN(&w, "old_tool"), "old.tool");
    done(&w);
}

TEST(a_tool_that_is_gone_does_not_rename_one_that_is_there)
{
    struct world w = {0};

    CHECK_STATUS(make_with_call(&w, "[{\"name\":\"fs.read\"}]", "fs:read", &chat), PEG_OK, w.error);

    CHECK_STR(OUT(&w, "fs.read"), "fs_read");
    CHECK_STR(IN(&w, "fs_read"), "fs.read");
    CHECK(!peg__str_eq(OUT(&w, "fs:read"), OUT(&w, "fs.read")));
    CHECK_STR(peg__names_in(w.names, OUT(&w, "fs:read")), "fs:read");
    done(&w);
}

TEST(a_name_that_a_model_made_up_is_made_acceptable)
{
    struct world w = {0};
    char longest[2000];

    memset(longest, '.', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CHECK_STATUS(make_with_call(&w, NULL, longest, &chat), PEG_OK, w.error);

    CHECK_INT(OUT(&w, longest).len, 64);
    done(&w);
}

TEST(a_name_that_nobody_mentioned_is_an_unknown_tool)
{
    struct world w = {0};

    CHECK_STATUS(make(&w, NULL, &chat), PEG_OK, w.error);

    CHECK_STR(OUT(&w, ""), "unknown_tool");
    CHECK_STR(OUT(&w, "a b"), "unknown_tool");
    CHECK_STR(OUT(&w, "plain"), "plain");
    CHECK_STR(IN(&w, "whatever"), "whatever");
    done(&w);
}

/* ---- limits
 * --------------------------------------------------------------------------------------- */

/* G126 */
TEST(a_name_beyond_every_limit_is_refused)
{
    struct world w = {0};
    char text[400];
    char name[PEG_LIMIT_NAME_BYTES + 2];

    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    snprintf(text, sizeof(text), "[{\"name\":\"%s\"}]", name);

    CHECK_INT(make(&w, text, &chat), PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
    CHECK_STR(peg__str(w.error.where), "/0/name");
    done(&w);
}

/* G126 */
TEST(a_suffix_that_finds_no_room_is_refused)
{
    const peg_definitions_options narrow = {PEG_DEFINITIONS_OPTIONS_INIT,
                                            .vendor = PEG_VENDOR_OPENAI_CHAT, .max_name_bytes = 8};
    struct world w = {0};

    CHECK_INT(make(&w, "[{\"name\":\"a.b\"},{\"name\":\"a_b\"}]", &narrow), PEG_ELIMIT);

    CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
    done(&w);
}

/* G126 */
TEST(more_tools_than_a_provider_takes_are_refused_before_anything_is_sent)
{
    const peg_definitions_options two = {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_GEMINI,
                                         .max_tools = 2};
    struct world w = {0};

    CHECK_INT(make(&w, "[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]", &two), PEG_ELIMIT);

    CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
    CHECK(strstr(w.error.message, "max_tools"));
    done(&w);
}

TEST(what_is_no_list_of_definitions_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        const char *where;
    } cases[] = {
        {"{}", ""},
        {"[1]", "/0/name"},
        {"[{}]", "/0/name"},
        {"[{\"name\":\"a\"},{\"name\":1}]", "/1/name"},
        {"[{\"name\":\"\"}]", "/0/name"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w = {0};

        CHECK_INT(make(&w, cases[i].text, &chat), PEG_EINVAL);
        CHECK_STR(peg__str(w.error.code), "E_DEFINITIONS");
        CHECK_STR(peg__str(w.error.where), cases[i].where);
        done(&w);
    }
}

TORTURE(names_survive_any_allocation_failure)
{
    struct world w = {0};
    peg_status status = make_with_call(
        &w, "[{\"name\":\"a.b\"},{\"name\":\"a_b\"},{\"name\":\"a/b\"},{\"name\":\"c\"}]", "gone.x",
        &chat);

    done(&w);
    return status;
}
