/* SPDX-License-Identifier: Apache-2.0 */

/* Turns as text: the form of the file, and what a reader keeps. */

#include "turn/file/file.h"

#include "file_world.h"

/* ---- kinds ---------------------------------------------------------------------------- */

static peg_block_kind kind_read(const char *kind)
{
    char text[256];
    peg_turn *turn;
    peg_block_kind found;

    snprintf(text, sizeof(text),
             "{\"blocks\":[{\"id\":\"b\",\"kind\":%s,\"payload\":{\"text\":\"x\"}}]}", kind);
    turn = must_read(text);
    found = peg_block_kind_of(peg_turn_at(turn, 0));
    peg_turn_free(turn);
    return found;
}

/* G3 */
TEST(kinds_are_read_whatever_their_case_and_space)
{
    CHECK_INT(kind_read("\"user\""), PEG_BLOCK_USER);
    CHECK_INT(kind_read("\"llm_text\""), PEG_BLOCK_ASSISTANT);
    CHECK_INT(kind_read("\"tool_call\""), PEG_BLOCK_CALL);
    CHECK_INT(kind_read("\"tool_use\""), PEG_BLOCK_RESULT);
    CHECK_INT(kind_read("\"system\""), PEG_BLOCK_SYSTEM);
    CHECK_INT(kind_read("\"reasoning\""), PEG_BLOCK_REASONING);
    CHECK_INT(kind_read("\"other\""), PEG_BLOCK_OTHER);
    CHECK_INT(kind_read("\" Tool_Call \\n\""), PEG_BLOCK_CALL);
    CHECK_INT(kind_read("\"LLM_TEXT\""), PEG_BLOCK_ASSISTANT);
    CHECK_INT(kind_read("\"annotation\""), PEG_BLOCK_OTHER);
    CHECK_INT(kind_read("\"tool_cal\""), PEG_BLOCK_OTHER);
    CHECK_INT(kind_read("\"\""), PEG_BLOCK_OTHER);
    CHECK_INT(kind_read("\" \""), PEG_BLOCK_OTHER);
    CHECK_INT(kind_read("null"), PEG_BLOCK_OTHER);
}

/* G3 */
TEST(every_kind_has_a_name_in_files_that_reads_back)
{
    for (int kind = PEG_BLOCK_SYSTEM; kind <= PEG_BLOCK_OTHER; kind++) {
        peg_block_kind found;

        CHECK(peg__block_file_kind_named(peg_cstr(peg__block_file_kind((peg_block_kind)kind)),
                                         &found));
        CHECK_INT(found, kind);
    }
}

/* G4 */
TEST(a_kind_that_nobody_knows_is_written_as_it_was_with_all_it_had)
{
    static const char text[] =
        "{\"blocks\":[{\"id\":\"b1\",\"kind\":\" Annotation\",\"role\":\"critic\",\"payload\":"
        "{\"args\":7,\"media\":\"x\",\"text\":\"hm\"},\"extra\":{\"a\":[1],\"b\":null}}]}";
    peg_turn *turn = must_read(text);
    const peg_block *block = peg_turn_at(turn, 0);

    CHECK_INT(peg_block_kind_of(block), PEG_BLOCK_OTHER);
    CHECK_STR(peg_block_type(block), " Annotation");
    CHECK_STR(peg_block_text(block), "hm");
    CHECK_INT(peg_block_tier(block), PEG_TIER_THIRD_PARTY_PUBLIC);
    CHECK_INT(peg_json_get(peg_block_payload(block), "args")->u.number, 7);
    peg_turn_free(turn);
    check_stays(text);
}

TEST(a_block_without_the_content_of_its_kind_is_kept_as_it_is)
{
    check_stays("{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"role\":\"assistant\"},"
                "{\"id\":\"b\",\"kind\":\"user\",\"role\":\"user\",\"payload\":{\"text\":\"\"}},"
                "{\"id\":\"c\",\"kind\":\"system\",\"payload\":{\"x\":1}},"
                "{\"id\":\"d\",\"kind\":\"reasoning\"}]}");
}

TEST(the_payload_of_other_is_free)
{
    check_stays("{\"blocks\":[{\"id\":\"a\",\"kind\":\"other\",\"payload\":{\"text\":[1]}},"
                "{\"id\":\"b\",\"kind\":\"other\",\"payload\":{\"media\":[\"x\"]}},"
                "{\"id\":\"c\",\"kind\":\"other\",\"payload\":{\"anything\":true,\"text\":\"x\","
                "\"trust_tier\":\"first-party\",\"type\":\"memory\"}},"
                "{\"id\":\"d\",\"kind\":\"other\"}]}");
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* G23 */
TEST(empty_bags_are_left_out_and_blocks_never)
{
    check_stays("{\"id\":\"t\",\"blocks\":[]}");
    check_rewritten("{\"metadata\":{},\"data\":null,\"blocks\":[]}", PEG_FORMAT_JSON,
                    "{\"blocks\":[]}");
    check_rewritten("{\"id\":\"\"}", PEG_FORMAT_JSON, "{\"blocks\":[]}");
    check_rewritten("{}", PEG_FORMAT_JSON, "{\"blocks\":[]}");
}

/* G23 */
TEST(an_empty_turn_is_written_in_yaml_too)
{
    check_rewritten("{}", PEG_FORMAT_YAML, "blocks: []\n");
}

/* G24 */
TEST(data_can_be_left_out_and_nothing_else_is)
{
    static const char text[] = "{\"id\":\"t\",\"blocks\":[],\"metadata\":{\"a.b@v1\":1},"
                               "\"data\":{\"c.d@v1\":2},\"more\":3}";
    peg_turn *turn = must_read(text);
    char *without = must_write_as(
        turn, &(const peg_turn_write_options){PEG_TURN_WRITE_OPTIONS_INIT, .omit_data = true});

    CHECK_STR(peg_cstr(without),
              "{\"id\":\"t\",\"blocks\":[],\"metadata\":{\"a.b@v1\":1},\"more\":3}");
    peg_free(without);
    peg_turn_free(turn);
    check_stays(text);
}

/* G25 */
TEST(no_turn_is_written_as_an_empty_object)
{
    const peg_turn_write_options yaml = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_YAML};
    char *text = must_write_as(NULL, NULL);
    char *as_yaml = must_write_as(NULL, &yaml);

    CHECK_STR(peg_cstr(text), "{}");
    CHECK_STR(peg_cstr(as_yaml), "{}\n");
    peg_free(text);
    peg_free(as_yaml);
}

/* G26, G27 */
TEST(what_nobody_knows_survives_wherever_it_stands)
{
    check_stays(
        "{\"id\":\"t\",\"blocks\":[{\"id\":\"a\",\"kind\":\"user\",\"role\":\"user\",\"payload\":"
        "{\"media\":[{\"file_id\":\"f\",\"filename\":\"x\",\"id\":\"m\",\"kind\":\"hologram\","
        "\"media_type\":\"image/x\",\"modality_hazard\":\"strange\",\"newer\":[1],\"trust_tier\":"
        "\"fourth\"}],\"mood\":\"good\",\"text\":\"hi\"},\"metadata\":{\"My Key\":1,\"x.y@v7\":{}},"
        "\"future\":{\"z\":1}},"
        "{\"id\":\"o\",\"kind\":\"other\",\"payload\":{\"artifact\":{\"kind\":\"pdf\",\"pages\":3,"
        "\"text\":\"%PDF\"},\"trust_tier\":\"fourth\",\"type\":\"note\"}}],"
        "\"metadata\":{\"geppetto.session_id@v1\":\"s\"},\"data\":{\"not canonical\":null,"
        "\"pinocchio.sqlite_dsn@v1\":\"d\"},\"branch\":\"main\",\"version\":1}");
}

/* G27 */
TEST(a_strict_reader_refuses_what_nobody_knows)
{
    check_strict_refused("{\"blocks\":[],\"version\":1}", "/version", "1}");
    check_strict_refused(
        "{\"blocks\":[{\"kind\":\"user\",\"payload\":{\"text\":\"x\"},\"a/b\":7}]}",
        "/blocks/0/a~1b", "7}");
    check_strict_refused("{\"blocks\":[{\"kind\":\"annotation\"}]}", "/blocks/0/kind",
                         "\"annotation\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"user\",\"role\":\"god\",\"payload\":{\"text\":"
                         "\"x\"}}]}",
                         "/blocks/0/role", "\"god\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"user\"}]}", "/blocks/0/payload", "{\"kind\"");
    check_strict_refused("{\"blocks\":[],\"data\":{\"Not Canonical\":1}}", "/data/Not Canonical",
                         "1}");
    check_strict_refused("{\"blocks\":[{\"id\":7,\"kind\":\"other\"}]}", "/blocks/0/id", "7,");
    check_strict_refused("{\"blocks\":[{\"id\":\"x\",\"kind\":\"other\"},{\"id\":\"x\",\"kind\":"
                         "\"other\"}]}",
                         "/blocks/1/id", "\"x\",\"kind\":\"other\"}]");
    check_strict_refused("{\"turn\":{\"blocks\":[]}}", "/turn", "{\"blocks\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"other\",\"payload\":{\"text\":1}}]}",
                         "/blocks/0/payload", "{\"text\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"other\",\"payload\":{\"trust_tier\":\"x\"}}]}",
                         "/blocks/0/payload/trust_tier", "\"x\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"other\",\"payload\":{\"artifact\":{\"kind\":"
                         "\"pdf\",\"text\":\"\"}}}]}",
                         "/blocks/0/payload/artifact/kind", "\"pdf\"");
    check_strict_refused("{\"blocks\":[{\"kind\":\"user\",\"payload\":{\"media\":[{\"uri\":\"u\","
                         "\"z\":9}]}}]}",
                         "/blocks/0/payload/media/0/z", "9}");
}

/* Members of a payload belong to the author of the block: engines put their own there. */
TEST(a_strict_reader_takes_what_we_write)
{
    const peg_turn_read_options strict = {PEG_TURN_READ_OPTIONS_INIT, .strict = true};
    static const char text[] =
        "{\"id\":\"t\",\"blocks\":[{\"id\":\"s\",\"kind\":\"system\",\"role\":\"system\","
        "\"payload\":{\"of_an_engine\":1,\"text\":\"x\"},\"metadata\":{\"a.b@v1\":1},"
        "\"created_ms\":5}],\"data\":{\"c.d@v1\":2}}";
    peg_turn *turn = must_read_as(text, &strict);

    CHECK_INT(peg_turn_len(turn), 1);
    peg_turn_free(turn);
}

/* G28 */
TEST(text_of_a_model_without_a_role_is_the_assistants)
{
    check_rewritten(
        "{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"payload\":{\"text\":\"x\"}}]}",
        PEG_FORMAT_JSON,
        "{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"role\":\"assistant\","
        "\"payload\":{\"text\":\"x\"}}]}");
    check_rewritten("{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"role\":\" \",\"payload\":"
                    "{\"text\":\"x\"}}]}",
                    PEG_FORMAT_JSON,
                    "{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"role\":\"assistant\","
                    "\"payload\":{\"text\":\"x\"}}]}");
}

TEST(a_role_that_is_not_the_kinds_is_kept)
{
    check_stays("{\"blocks\":[{\"id\":\"a\",\"kind\":\"llm_text\",\"role\":\"critic\",\"payload\":"
                "{\"text\":\"x\"}},{\"id\":\"c\",\"kind\":\"tool_call\",\"role\":\"assistant\","
                "\"payload\":{\"id\":\"c\",\"name\":\"f\"}}]}");
}

/* G29 */
TEST(blocks_keep_their_order)
{
    peg_turn *turn =
        must_read("{\"blocks\":[{\"id\":\"z\",\"kind\":\"other\"},{\"id\":\"a\",\"kind\":"
                  "\"other\"},{\"id\":\"m\",\"kind\":\"other\"}]}");

    CHECK_STR(peg_block_id(peg_turn_at(turn, 0)), "z");
    CHECK_STR(peg_block_id(peg_turn_at(turn, 1)), "a");
    CHECK_STR(peg_block_id(peg_turn_at(turn, 2)), "m");
    peg_turn_free(turn);
}

/* G30 */
TEST(members_are_written_in_one_order_however_they_were_read)
{
    check_rewritten(
        "{\"data\":{\"z.z@v1\":{\"b\":1,\"a\":[{\"d\":1,\"c\":2}]},\"a.a@v1\":1},\"zz\":1,\"aa\":{"
        "\"y\":1,"
        "\"x\":2},\"blocks\":[{\"metadata\":{\"n.n@v1\":{\"q\":1,\"p\":2}},\"new\":1,\"mew\":2,"
        "\"payload\":{\"text\":\"t\",\"correlation\":{\"b\":1,\"a\":2}},\"kind\":\"user\",\"id\":"
        "\"i\"}],"
        "\"id\":\"t\"}",
        PEG_FORMAT_JSON,
        "{\"id\":\"t\",\"blocks\":[{\"id\":\"i\",\"kind\":\"user\",\"role\":\"user\",\"payload\":"
        "{\"correlation\":{\"a\":2,\"b\":1},\"text\":\"t\"},\"metadata\":{\"n.n@v1\":{\"p\":2,"
        "\"q\":1}},"
        "\"mew\":2,\"new\":1}],\"data\":{\"a.a@v1\":1,\"z.z@v1\":{\"a\":[{\"c\":2,\"d\":1}],\"b\":"
        "1}},"
        "\"aa\":{\"x\":2,\"y\":1},\"zz\":1}");
}

/* G31 */
TEST(strings_that_look_like_something_else_stay_strings)
{
    static const char text[] = "{\"blocks\":[],\"data\":{\"a.b@v1\":[\"yes\",\"123\",\"null\","
                               "\"2024-01-01\",\"~\",\"\",\"on\","
                               "\"0x10\",\"1e3\",\"true\",\" x\",\"- a\",\"a: "
                               "b\",\"#c\",\"*d\",\"&e\",\"!f\",\"1:30\",\"=\",\"<<\","
                               "\"l1\\nl2\\n\",\"\\ttab\",\"\\u0000\",\"\\u2028\"]}}";
    peg_turn *turn = must_read(text);
    char *yaml = must_write(turn, PEG_FORMAT_YAML);
    peg_turn *again = must_read(yaml);
    char *json = must_write(again, PEG_FORMAT_JSON);
    char *direct = must_write(turn, PEG_FORMAT_JSON);

    CHECK_STR(peg_cstr(json), direct);
    peg_free(direct);
    peg_free(json);
    peg_turn_free(again);
    peg_free(yaml);
    peg_turn_free(turn);
}

/* G32 */
TEST(numbers_keep_all_their_digits)
{
    check_stays("{\"blocks\":[{\"id\":\"c\",\"kind\":\"tool_call\",\"payload\":{\"args\":{\"a\":"
                "9007199254740993,\"b\":1e400,\"c\":-9223372036854775808,\"d\":"
                "123456789012345678901234567890},\"id\":\"c\",\"name\":\"f\"}}],"
                "\"data\":{\"a.b@v1\":[18446744073709551615,1e400,0.1,-0]}}");
}

/* G22, G32 */
TEST(numbers_keep_their_value_from_one_format_to_the_other)
{
    static const char text[] =
        "{\"blocks\":[],\"data\":{\"a.b@v1\":[9007199254740993,18446744073709551615,1e400,0.1,"
        "123456789012345678901234567890,-7]}}";
    peg_turn *turn = must_read(text);
    char *yaml = must_write(turn, PEG_FORMAT_YAML);
    peg_turn *again = must_read(yaml);
    peg_json_doc *first = NULL;
    peg_json_doc *second = NULL;

    CHECK_INT(peg_turn_to_json(turn, NULL, &first, NULL), PEG_OK);
    CHECK_INT(peg_turn_to_json(again, NULL, &second, NULL), PEG_OK);
    CHECK(peg_json_equal(peg_json_root(first), peg_json_root(second)));
    check_rewritten(yaml, PEG_FORMAT_YAML, yaml);
    peg_json_doc_free(first);
    peg_json_doc_free(second);
    peg_turn_free(again);
    peg_free(yaml);
    peg_turn_free(turn);
}

/* ---- ids -------------------------------------------------------------------------------- */

static void check_ids(const char *blocks, const char *expected)
{
    char text[2048];
    char ids[1024] = "";
    peg_turn *turn;

    snprintf(text, sizeof(text), "{\"blocks\":[%s]}", blocks);
    turn = must_read(text);
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_str id = peg_block_id(peg_turn_at(turn, i));
        const size_t len = strlen(ids);

        snprintf(ids + len, sizeof(ids) - len, "%s%.*s", i ? " " : "", PEG_ARG(id));
    }
    peg_turn_free(turn);
    CHECK_STR(peg_cstr(ids), expected);
}

/* G8 */
TEST(a_block_without_an_id_gets_one_that_follows_from_its_place)
{
    check_ids(
        "{\"kind\":\"other\"},{\"kind\":\"other\",\"id\":\"\"},{\"kind\":\"other\",\"id\":null}",
        "b1 b2 b3");
    check_ids("{\"kind\":\"other\"},{\"kind\":\"other\",\"id\":\"b1\"},{\"kind\":\"other\",\"id\":"
              "\"b1~2\"}",
              "b1~3 b1 b1~2");
}

TEST(a_call_without_an_id_is_called_as_the_call_is)
{
    check_ids("{\"kind\":\"tool_call\",\"payload\":{\"id\":\"call_7\",\"name\":\"f\"}},"
              "{\"kind\":\"tool_call\",\"payload\":{\"id\":\"call_7\",\"name\":\"f\"}},"
              "{\"kind\":\"tool_use\",\"payload\":{\"id\":\"call_7\",\"result\":\"x\"}}",
              "call_7 call_7~2 b3");
}

TEST(an_id_that_comes_again_is_made_unique)
{
    check_ids("{\"kind\":\"other\",\"id\":\"a\"},{\"kind\":\"other\",\"id\":\"a\"},"
              "{\"kind\":\"other\",\"id\":\"a~2\"},{\"kind\":\"other\",\"id\":\"a\"}",
              "a a~3 a~2 a~4");
}

TEST(an_id_of_digits_may_be_a_number)
{
    peg_turn *turn =
        must_read("id: 12\nblocks:\n  - id: 7\n    kind: user\n    payload: {text: x}\n");

    CHECK_STR(peg_turn_id(turn), "12");
    CHECK_STR(peg_block_id(peg_turn_at(turn, 0)), "7");
    peg_turn_free(turn);
}

TEST(long_ids_that_come_again_stay_within_their_limit)
{
    char text[2048];
    peg_turn *turn;

    snprintf(text, sizeof(text),
             "{\"blocks\":[{\"kind\":\"other\",\"id\":\"%0256d\"},{\"kind\":\"other\",\"id\":\"%"
             "0256d\"}]}",
             0, 0);
    turn = must_read(text);
    CHECK(peg_block_id(peg_turn_at(turn, 1)).len <= 256);
    peg_turn_free(turn);
    snprintf(text, sizeof(text), "{\"blocks\":[{\"kind\":\"other\",\"id\":\"%0257d\"}]}", 0);
    check_refused(text, "/blocks/0/id", "\"000");
}

/* ---- one block --------------------------------------------------------------------------- */

TEST(a_block_alone_says_everything_and_reads_back)
{
    static const char text[] =
        "{\"blocks\":[{\"id\":\"c\",\"kind\":\"tool_call\",\"payload\":{\"args\":{\"x\":1},\"id\":"
        "\"c\","
        "\"name\":\"f\"}},{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"id\":\"c\",\"nonce\":"
        "\"0123456789abcdef0123456789abcdef\",\"result\":\"y\",\"error\":\"\"}}]}";
    const peg_turn_write_options write_options = {PEG_TURN_WRITE_OPTIONS_INIT,
                                                  .format = PEG_FORMAT_JSON};
    const peg_turn_read_options read_options = {PEG_TURN_READ_OPTIONS_INIT,
                                                .format = PEG_FORMAT_JSON};
    const struct peg__block_write write = {.options = &write_options};
    const struct peg__block_read read = {.options = &read_options};
    peg_turn *turn = must_read(text);
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_block *block = NULL;
    char *written = NULL;

    CHECK_INT(peg__block_write(&write, peg_turn_at(turn, 1), b, NULL), PEG_OK);
    CHECK_INT(peg_json_builder_finish(b, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &written, NULL, NULL), PEG_OK);
    CHECK_STR(peg_cstr(written),
              "{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"args\":{\"x\":1},\"call\":\"c\","
              "\"error\":\"\",\"id\":\"c\",\"name\":\"f\",\"nonce\":"
              "\"0123456789abcdef0123456789abcdef\",\"result\":\"y\"}}");
    CHECK_INT(peg__block_read(&read, peg_json_root(doc), peg_cstr("r"), &block, NULL), PEG_OK);
    CHECK_STR(peg_record_key(peg_block_record(block)), "c");
    CHECK_STR(peg_record_tool(peg_block_record(block)), "f");
    CHECK_STR(peg_record_args_text(peg_block_record(block)), "{\"x\":1}");
    peg_block_unref(block);
    peg_free(written);
    peg_json_doc_free(doc);
    peg_turn_free(turn);
}
