/* SPDX-License-Identifier: Apache-2.0 */

/* Files of the reference, and every kind of block through a file and back. */

#include "core/run/run.h"
#include "file_world.h"
#include "pegboard/yaml.h"

/* ---- the reference's own file ------------------------------------------------------------- */

static const char reference[] =
    "id: t-1\n"
    "blocks:\n"
    "  - id: b-1\n"
    "    kind: user\n"
    "    role: user\n"
    "    payload: {text: \"how many open orders?\"}\n"
    "  - id: call_7\n"
    "    kind: tool_call\n"
    "    payload:\n"
    "      id: call_7\n"
    "      name: query_orders\n"
    "      args: {sql: \"SELECT count(*) AS n FROM orders WHERE open = ?\", params: [\"1\"]}\n"
    "      correlation: {run_id: inf-1, turn_id: t-1, provider_call_id: "
    "\"openai:inf-1:provider-call:0\", tool_call_id: call_7}\n"
    "    metadata:\n"
    "      geppetto.inference_result@v1: {provider: openai, model: m, finish_class: "
    "tool_calls_pending}\n"
    "  - id: b-2\n"
    "    kind: tool_use\n"
    "    payload: {id: call_7, result: '{\"columns\":[\"n\"],\"rows\":[{\"n\":3}],\"count\":1}', "
    "error: \"\"}\n"
    "  - id: b-3\n"
    "    kind: llm_text\n"
    "    role: assistant\n"
    "    payload: {text: \"Three.\"}\n"
    "metadata:\n"
    "  geppetto.session_id@v1: s-1\n"
    "  geppetto.inference_id@v1: inf-1\n"
    "  geppetto.inference_result@v1: {provider: openai, model: m, stop_reason: stop, finish_class: "
    "completed, truncated: false, usage: {input_tokens: 12, output_tokens: 3}, duration_ms: 40}\n"
    "data:\n"
    "  geppetto.tool_config@v1:\n"
    "    enabled: true\n"
    "    tool_choice: auto\n"
    "    max_iterations: 20\n"
    "    execution_timeout: 30s\n"
    "    max_parallel_tools: 3\n"
    "    tool_error_handling: continue\n"
    "    retry_config: {max_retries: 2, backoff_base: 1s, backoff_factor: 2}\n"
    "  geppetto.tool_definitions@v1:\n"
    "    - name: query_orders\n"
    "      description: asks the database\n"
    "      parameters: {type: object, properties: {sql: {type: string}, params: {type: array, "
    "items: {type: string}}}, required: [sql]}\n"
    "      examples: [{input: {sql: SELECT 1}, output: {count: 1}, description: one}]\n"
    "      tags: [sqlite]\n"
    "      version: v1\n";

TEST(a_file_of_the_reference_is_read_in_full)
{
    peg_turn *turn = must_read(reference);
    peg_record *record = record_at(turn, 2);
    const peg_json *value = NULL;
    peg_error error;

    CHECK_STR(peg_turn_id(turn), "t-1");
    CHECK_INT(peg_turn_len(turn), 4);
    CHECK_STR(peg_block_text(peg_turn_at(turn, 0)), "how many open orders?");
    CHECK_INT(peg_block_kind_of(peg_turn_at(turn, 1)), PEG_BLOCK_CALL);
    CHECK_STR(peg_block_call_id(peg_turn_at(turn, 1)), "call_7");
    CHECK_STR(peg_block_tool(peg_turn_at(turn, 1)), "query_orders");
    CHECK_STR(peg_block_args(peg_turn_at(turn, 1)),
              "{\"sql\":\"SELECT count(*) AS n FROM orders WHERE open = ?\",\"params\":[\"1\"]}");
    CHECK(peg_json_get(peg_json_get(peg_block_payload(peg_turn_at(turn, 1)), "correlation"),
                       "tool_call_id"));
    CHECK_INT(peg_bag_len(peg_block_metadata(peg_turn_at(turn, 1))), 1);
    CHECK_STR(peg_record_key(record), "call_7");
    CHECK_STR(peg_record_tool(record), "query_orders");
    CHECK_STR(peg_record_text(record), "{\"columns\":[\"n\"],\"rows\":[{\"n\":3}],\"count\":1}");
    CHECK(!peg_record_is_error(record));
    CHECK_INT(peg_turn_next_pending(turn, 0), 4);
    CHECK_INT(peg_block_kind_of(peg_turn_at(turn, 3)), PEG_BLOCK_ASSISTANT);
    CHECK_STATUS(peg_turn_get(turn, &peg_key_tool_definitions, &value, &error), PEG_OK, error);
    CHECK(value && peg_json_len(value) == 1);
    peg_turn_free(turn);
}

static bool is_equal_yaml(const char *a, const char *b)
{
    peg_json_doc *left = NULL;
    peg_json_doc *right = NULL;
    bool is_equal;

    CHECK_INT(peg_yaml_parse(peg_cstr(a), NULL, &left, NULL), PEG_OK);
    CHECK_INT(peg_yaml_parse(peg_cstr(b), NULL, &right, NULL), PEG_OK);
    is_equal = peg_json_equal(peg_json_root(left), peg_json_root(right));
    peg_json_doc_free(left);
    peg_json_doc_free(right);
    return is_equal;
}

/* G20, G30 */
TEST(settings_and_definitions_round_trip_in_yaml)
{
    peg_turn *turn = must_read(reference);
    char *first = must_write(turn, PEG_FORMAT_YAML);
    peg_turn *again = must_read(first);
    char *second = must_write(again, PEG_FORMAT_YAML);
    const peg_json *before = peg_bag_find(peg_turn_data(turn), peg_cstr("geppetto.tool_config@v1"));
    const peg_json *after = peg_bag_find(peg_turn_data(again), peg_cstr("geppetto.tool_config@v1"));

    CHECK_STR(peg_cstr(second), first);
    CHECK(peg_json_equal(before, after));
    before = peg_bag_find(peg_turn_data(turn), peg_cstr("geppetto.tool_definitions@v1"));
    after = peg_bag_find(peg_turn_data(again), peg_cstr("geppetto.tool_definitions@v1"));
    CHECK(peg_json_equal(before, after));
    CHECK_STR(peg_json_str(peg_json_get(peg_json_get(peg_json_at(after, 0), "parameters"), "type")),
              "object");
    peg_free(second);
    peg_turn_free(again);
    peg_free(first);
    peg_turn_free(turn);
}

/* G21, G22, G30 */
TEST(yaml_to_json_to_yaml_is_the_same_turn)
{
    peg_turn *turn = must_read(reference);
    char *yaml = must_write(turn, PEG_FORMAT_YAML);
    char *json = must_write(turn, PEG_FORMAT_JSON);
    peg_turn *from_json = must_read(json);
    char *json_again = must_write(from_json, PEG_FORMAT_JSON);
    char *yaml_again = must_write(from_json, PEG_FORMAT_YAML);

    CHECK_STR(peg_cstr(json_again), json);
    CHECK_STR(peg_cstr(yaml_again), yaml);
    CHECK(is_equal_yaml(json, yaml));
    peg_free(yaml_again);
    peg_free(json_again);
    peg_turn_free(from_json);
    peg_free(json);
    peg_free(yaml);
    peg_turn_free(turn);
}

/* The members of the reference's file come out as they went in; ours are beside them. */
TEST(nothing_of_a_file_of_the_reference_is_lost)
{
    peg_turn *turn = must_read(reference);
    char *yaml = must_write(turn, PEG_FORMAT_YAML);
    char *nonce = strstr(yaml, "      nonce: ");

    CHECK(nonce != NULL);
    memmove(nonce, strchr(nonce, '\n') + 1, strlen(strchr(nonce, '\n')));
    CHECK(is_equal_yaml(yaml, reference));
    peg_free(yaml);
    peg_turn_free(turn);
}

/* ---- which call a result answers ------------------------------------------------------------ */

#define CALL(id, call, name)                                                                       \
    "{\"id\":\"" id "\",\"kind\":\"tool_call\",\"payload\":{\"id\":\"" call "\",\"name\":\"" name  \
    "\"}}"
#define USE(call, result)                                                                          \
    "{\"kind\":\"tool_use\",\"payload\":{\"id\":\"" call "\",\"result\":" result ",\"error\":"     \
    "\"\"}}"

TEST(a_result_answers_the_first_call_of_its_id_that_has_no_answer)
{
    peg_turn *turn = must_read(
        "{\"blocks\":[" CALL("a", "c", "f") "," CALL("b", "c", "g") "," USE("c", "\"1\"") "," USE(
            "c", "\"2\"") "," USE("c", "\"3\"") "," CALL("d", "c", "h") "," USE("c", "\"4\"") "]}");

    CHECK_STR(peg_record_key(record_at(turn, 2)), "a");
    CHECK_STR(peg_record_tool(record_at(turn, 2)), "f");
    CHECK_STR(peg_record_key(record_at(turn, 3)), "b");
    CHECK_STR(peg_record_tool(record_at(turn, 3)), "g");
    CHECK_STR(peg_record_key(record_at(turn, 4)), "b");
    CHECK_STR(peg_record_key(record_at(turn, 6)), "d");
    peg_turn_free(turn);
}

TEST(a_result_without_a_call_is_a_record_of_its_own)
{
    peg_turn *turn =
        must_read("{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"id\":"
                  "\"c\",\"result\":\"x\"}}]}");

    CHECK_STR(peg_record_key(record_at(turn, 0)), "r");
    CHECK_STR(peg_record_call_id(record_at(turn, 0)), "c");
    CHECK_STR(peg_record_tool(record_at(turn, 0)), PEG__UNNAMED_TOOL);
    CHECK_STR(peg_record_args_text(record_at(turn, 0)), "{}");
    peg_turn_free(turn);
}

TEST(a_result_says_which_call_it_answers_where_a_reader_would_take_another)
{
    peg_turn *turn = must_read("{\"blocks\":[" CALL("a", "c", "f") "," CALL(
        "b", "c", "g") ",{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"call\":\"b\",\"id\":"
                       "\"c\",\"result\":\"x\"}},{\"id\":\"s\",\"kind\":\"tool_use\","
                       "\"payload\":{\"id\":\"c\",\"result\":\"y\"}}]}");
    char *text = must_write(turn, PEG_FORMAT_JSON);

    CHECK_STR(peg_record_tool(record_at(turn, 2)), "g");
    CHECK_STR(peg_record_key(record_at(turn, 3)), "a");
    CHECK(strstr(text, "\"call\":\"b\""));
    CHECK(!strstr(text, "\"call\":\"a\""));
    CHECK(!strstr(text, "\"name\":\"g\",\"nonce\""));
    check_stays(text);
    peg_free(text);
    peg_turn_free(turn);
}

TEST(results_of_any_json_and_of_nothing_read_as_text)
{
    peg_turn *turn =
        must_read("{\"blocks\":[" CALL("c", "c", "f") "," USE("c", "{\"n\": 3}") "," USE(
            "c", "null") "," USE("c", "[1,true]") ",{\"kind\":\"tool_use\"}]}");

    CHECK_STR(peg_record_text(record_at(turn, 1)), "{\"n\":3}");
    CHECK_STR(peg_record_text(record_at(turn, 2)), "");
    CHECK_STR(peg_record_text(record_at(turn, 3)), "[1,true]");
    CHECK_STR(peg_record_text(record_at(turn, 4)), "");
    CHECK(!peg_record_is_error(record_at(turn, 4)));
    peg_turn_free(turn);
}

TEST(an_error_of_the_reference_is_a_failure)
{
    peg_turn *turn =
        must_read("{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"id\":"
                  "\"c\",\"result\":{\"partial\":1},\"error\":\"no such table\"}}]}");
    char *text = must_write(turn, PEG_FORMAT_JSON);

    CHECK(peg_record_is_error(record_at(turn, 0)));
    CHECK_STR(peg_record_text(record_at(turn, 0)), "no such table");
    CHECK_STR(peg_cstr(peg_record_code(record_at(turn, 0))), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK(strstr(text, "\"result\":{\"partial\":1}"));
    check_stays(text);
    peg_free(text);
    peg_turn_free(turn);
}

TEST(a_result_of_a_call_with_broken_arguments_is_read)
{
    peg_turn *turn = must_read(
        "{\"blocks\":[{\"id\":\"c\",\"kind\":\"tool_call\",\"payload\":{\"id\":\"c\",\"name\":"
        "\"f\","
        "\"args\":\"{oops\"}}," USE("c", "\"fine\"") ",{\"kind\":\"tool_use\",\"payload\":{\"id\":"
                                                     "\"c\",\"error\":\"bad\"}}]}");
    char *text = must_write(turn, PEG_FORMAT_JSON);

    CHECK_STR(peg_block_args(peg_turn_at(turn, 0)), "{oops");
    CHECK_STR(peg_record_args_text(record_at(turn, 1)), "{}");
    CHECK_STR(peg_record_args_text(record_at(turn, 2)), "{oops");
    check_stays(text);
    peg_free(text);
    peg_turn_free(turn);
}

TEST(the_nonce_of_a_file_without_one_follows_from_its_content)
{
    static const char *const texts[] = {"{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\","
                                        "\"payload\":{\"id\":\"c\",\"result\":\"x\"}}]}",
                                        "{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\","
                                        "\"payload\":{\"id\":\"c\",\"result\":\"x\"}}]}",
                                        "{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\","
                                        "\"payload\":{\"id\":\"c\",\"result\":\"y\"}}]}"};
    char nonces[3][33];

    for (size_t i = 0; i < 3; i++) {
        peg_turn *turn = must_read(texts[i]);

        snprintf(nonces[i], sizeof(nonces[i]), "%s", peg_record_nonce(record_at(turn, 0)));
        peg_turn_free(turn);
    }
    CHECK_STR(peg_cstr(nonces[0]), nonces[1]);
    CHECK(strcmp(nonces[0], nonces[2]) != 0);
    CHECK_INT(strlen(nonces[0]), 32);
}

/* ---- images -------------------------------------------------------------------------------- */

/* G36 */
TEST(images_of_the_reference_survive_a_reload)
{
    static const char text[] =
        "blocks:\n"
        "  - id: u\n"
        "    kind: user\n"
        "    payload:\n"
        "      text: look\n"
        "      images:\n"
        "        - {media_type: image/png, url: 'https://example.com/cat.png', detail: low}\n"
        "        - {media_type: image/gif, content: R0lGODlh}\n"
        "        - {content: 'data:image/jpeg;base64,/9j/', alt: a cat}\n"
        "        - {url: 'data:,hello%20there', media_type: text/plain}\n"
        "        - {content: [137, 80, 78, 71]}\n"
        "        - {media_type: image/webp, file_id: file-7}\n"
        "        - {media_type: image/heic, file_uri: 'gs://b/x', url: 'https://e.x/y'}\n";
    peg_turn *first = must_read(text);
    char *yaml = must_write(first, PEG_FORMAT_YAML);
    peg_turn *turn = must_read(yaml);
    const peg_block *block = peg_turn_at(turn, 0);
    static const char *const types[] = {"image/png", "image/gif",  "image/jpeg", "text/plain",
                                        "image/png", "image/webp", "image/heic"};
    static const char *const bytes[] = {
        NULL, "R0lGODlh", "/9j/", "aGVsbG8gdGhlcmU=", "iVBORw==", NULL, NULL};

    CHECK_INT(peg_block_n_media(block), 7);
    for (size_t i = 0; i < 7; i++) {
        const peg_media *media = peg_block_media(block, i);
        char *base64 = NULL;

        CHECK_INT(peg_media_kind_of(media), PEG_MEDIA_IMAGE);
        CHECK_STR(peg_cstr(peg_media_mime_type(media)), types[i]);
        CHECK_INT(peg_media_tier(media), PEG_TIER_THIRD_PARTY_PRIVATE);
        CHECK_INT(peg_media_has_bytes(media), bytes[i] != NULL);
        if (!bytes[i])
            continue;
        CHECK_INT(peg_media_base64(media, 100, &base64, NULL, NULL), PEG_OK);
        CHECK_STR(peg_cstr(base64), bytes[i]);
        peg_free(base64);
    }
    CHECK_STR(peg_cstr(peg_media_uri(peg_block_media(block, 0))), "https://example.com/cat.png");
    CHECK_STR(peg_cstr(peg_media_detail(peg_block_media(block, 0))), "low");
    CHECK_STR(peg_cstr(peg_media_file_id(peg_block_media(block, 5))), "file-7");
    CHECK_STR(peg_cstr(peg_media_uri(peg_block_media(block, 6))), "https://e.x/y");
    CHECK(strstr(yaml, "alt: a cat"));
    CHECK(strstr(yaml, "gs://b/x"));
    check_rewritten(yaml, PEG_FORMAT_YAML, yaml);
    peg_turn_free(turn);
    peg_free(yaml);
    peg_turn_free(first);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* A turn with one result, an artifact of these bytes. */
static peg_turn *turn_of(peg_str bytes, const peg_artifact_kind *kind)
{
    peg_artifact *artifact = artifact_of(bytes, kind);
    const peg_record_def record_def = {
        PEG_RECORD_DEF_INIT,   .key = peg_cstr("k"), .call_id = peg_cstr("c"),
        .tool = peg_cstr("f"), .artifact = artifact, .nonce = "0123456789abcdef0123456789abcdef"};
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT, .id = peg_cstr("r"),
                         .created_ms = 1};
    peg_turn *turn = NULL;
    peg_block *block = NULL;

    CHECK_INT(peg_record_new(&record_def, &def.record, NULL), PEG_OK);
    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_turn_set_id(turn, peg_cstr("t"), NULL), PEG_OK);
    CHECK_INT(peg_turn_add(turn, block, NULL), PEG_OK);
    peg_block_unref(block);
    peg_record_unref(def.record);
    peg_artifact_unref(artifact);
    return turn;
}

static void check_bytes_written(peg_str bytes, const peg_turn_write_options *options,
                                const char *expected)
{
    peg_turn *turn = turn_of(bytes, NULL);
    char *text = must_write_as(turn, options);

    if (!strstr(text, expected))
        T_FAIL("there is no %s in %s", expected, text);
    peg_free(text);
    peg_turn_free(turn);
}

#define DIGEST_OF_HELLO "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

TEST(few_bytes_stand_in_the_text_as_text_or_as_base_64)
{
    check_bytes_written(
        peg_cstr("hello"), NULL,
        "\"artifact\":{\"kind\":\"text\"},\"call\":\"k\",\"error\":\"\",\"id\":\"c\"");
    check_bytes_written(peg_cstr("hello"), NULL, "\"result\":\"hello\"");
    check_bytes_written(peg_cstr(""), NULL, "\"result\":\"\"");
    check_bytes_written(peg_cstr("\xFF\xFE"), NULL,
                        "\"artifact\":{\"base64\":\"//4=\",\"kind\":\"text\"}");
    check_bytes_written(peg_cstr("\xFF\xFE"), NULL, "\"result\":null");
}

TEST(many_bytes_go_to_the_store_and_come_back_from_there)
{
    peg_spool_store *store = NULL;
    peg_turn *turn = turn_of(peg_cstr("hello"), &peg_artifact_json);
    peg_turn_write_options write = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = 5};
    peg_turn_read_options read = {PEG_TURN_READ_OPTIONS_INIT, .format = PEG_FORMAT_AUTO};
    peg_turn *again;
    char *text;
    peg_str answer;

    CHECK_INT(peg_spool_memory_new(0, &store, NULL), PEG_OK);
    write.bytes = store;
    read.bytes = store;
    text = must_write_as(turn, &write);
    CHECK(strstr(
        text, "\"artifact\":{\"kind\":\"json\",\"ref\":{\"bytes\":5,\"sha256\":\"" DIGEST_OF_HELLO
              "\"}}"));
    CHECK(!strstr(text, "hello"));
    again = must_read_as(text, &read);

    CHECK_INT(peg_record_answer(record_at(again, 0), &answer, NULL), PEG_OK);
    CHECK_STR(answer, "hello");
    CHECK(peg_artifact_kind_of(peg_record_artifact(record_at(again, 0))) == &peg_artifact_json);
    peg_turn_free(again);
    peg_free(text);
    peg_turn_free(turn);
    peg_spool_store_unref(store);
}

TEST(bytes_that_find_no_place_are_an_error_or_are_left_out)
{
    peg_turn *turn = turn_of(peg_cstr("hello"), NULL);
    peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = 5};
    char *text = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_write(turn, &options, &text, NULL, &error), PEG_ELIMIT, error);
    CHECK_STR(peg_cstr(error.code), "E_TURN_BYTES");
    CHECK(!text);
    options.allow_missing = true;
    text = must_write_as(turn, &options);
    CHECK(strstr(text, DIGEST_OF_HELLO));
    check_stays(text);
    peg_free(text);
    peg_turn_free(turn);
}

static peg_status read_answer(const char *text, peg_spool_store *store, peg_error *reterr)
{
    const peg_turn_read_options read = {PEG_TURN_READ_OPTIONS_INIT, .bytes = store};
    peg_turn *turn = must_read_as(text, &read);
    peg_str answer;
    const peg_status status = peg_record_answer(record_at(turn, 0), &answer, reterr);

    peg_turn_free(turn);
    return status;
}

TEST(bytes_that_are_missing_or_others_fail_when_they_are_read)
{
    static const char text[] =
        "{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"artifact\":{\"kind\":"
        "\"text\","
        "\"ref\":{\"bytes\":5,\"sha256\":\"" DIGEST_OF_HELLO "\"}},\"id\":\"c\"}}]}";
    static const char *const wrong[] = {"hullo", "hell"};
    peg_spool_store *store = NULL;
    peg_reader *reader = NULL;
    peg_error error;

    CHECK_INT(read_answer(text, NULL, &error), PEG_ENOTFOUND);
    CHECK_STR(peg_cstr(error.code), "E_REFERENCE_MISSING");
    CHECK_INT(peg_spool_memory_new(0, &store, NULL), PEG_OK);
    CHECK_INT(read_answer(text, store, &error), PEG_ENOTFOUND);
    CHECK_STR(peg_cstr(error.code), "E_REFERENCE_MISSING");
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(peg_spool_write(store, peg_cstr("sha256-" DIGEST_OF_HELLO), peg_cstr(wrong[i]),
                                  &reader, NULL),
                  PEG_OK);
        reader = peg_reader_unref(reader);
        CHECK_INT(read_answer(text, store, &error), PEG_EIO);
        CHECK_STR(peg_cstr(error.code), "E_REFERENCE_WRONG");
    }
    peg_spool_store_unref(store);
}

TEST(references_of_any_length_stay_where_nobody_has_the_bytes)
{
    static const char text[] =
        "{\"blocks\":[{\"id\":\"r\",\"kind\":\"other\",\"payload\":{\"artifact\":{\"kind\":"
        "\"text\","
        "\"ref\":{\"bytes\":9223372036854775807,\"sha256\":\"" DIGEST_OF_HELLO
        "\"}},\"trust_tier\":\"first-party\"}}]}";

    check_stays(text);
}

TEST(bytes_move_from_one_store_to_another)
{
    peg_spool_store *stores[2] = {NULL, NULL};
    peg_turn *turn = turn_of(peg_cstr("hello"), NULL);
    peg_turn_write_options write = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = 1};
    peg_turn_read_options read = {PEG_TURN_READ_OPTIONS_INIT, .format = PEG_FORMAT_AUTO};
    peg_turn *second;
    char *first_text;
    char *second_text;
    peg_error error;

    for (size_t i = 0; i < 2; i++)
        CHECK_INT(peg_spool_memory_new(0, &stores[i], NULL), PEG_OK);
    write.bytes = stores[0];
    read.bytes = stores[0];
    first_text = must_write_as(turn, &write);
    second = must_read_as(first_text, &read);
    write.bytes = stores[1];
    second_text = must_write_as(second, &write);

    CHECK_STR(peg_cstr(second_text), first_text);
    CHECK_STATUS(read_answer(second_text, stores[1], &error), PEG_OK, error);
    peg_free(second_text);
    peg_turn_free(second);
    peg_free(first_text);
    peg_turn_free(turn);
    for (size_t i = 0; i < 2; i++)
        peg_spool_store_unref(stores[i]);
}

TEST(a_kind_of_the_host_is_found_again)
{
    static const peg_artifact_kind table = {.name = "table"};
    const peg_artifact_kind *const kinds[] = {&table};
    const peg_turn_read_options read = {PEG_TURN_READ_OPTIONS_INIT, .kinds = kinds, .n_kinds = 1};
    peg_turn *turn = turn_of(peg_cstr("a,b"), &table);
    char *text = must_write_as(turn, NULL);
    peg_turn *again = must_read_as(text, &read);
    peg_turn *elsewhere = must_read(text);

    CHECK(peg_artifact_kind_of(peg_record_artifact(record_at(again, 0))) == &table);
    CHECK(peg_artifact_kind_of(peg_record_artifact(record_at(elsewhere, 0))) == &peg_artifact_text);
    check_stays(text);
    peg_turn_free(elsewhere);
    peg_turn_free(again);
    peg_free(text);
    peg_turn_free(turn);
}

TORTURE(bytes_in_a_store_survive_any_allocation_failure)
{
    static const char text[] =
        "{\"blocks\":[{\"id\":\"r\",\"kind\":\"tool_use\",\"payload\":{\"id\":\"c\","
        "\"result\":\"hello\",\"artifact\":{}}}]}";
    peg_turn_write_options write = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = 1};
    peg_turn_read_options read = {PEG_TURN_READ_OPTIONS_INIT, .format = PEG_FORMAT_AUTO};
    peg_spool_store *store = NULL;
    peg_turn *turn = NULL;
    char *written = NULL;
    peg_status status = peg_spool_memory_new(0, &store, NULL);

    write.bytes = store;
    read.bytes = store;
    if (!status)
        status = peg_turn_read(peg_cstr(text), NULL, &turn, NULL);
    if (!status)
        status = peg_turn_write(turn, &write, &written, NULL, NULL);
    turn = peg_turn_free(turn);
    if (!status)
        status = peg_turn_read(peg_cstr(written), &read, &turn, NULL);
    peg_free(written);
    written = NULL;
    if (!status)
        status = peg_turn_write(turn, &write, &written, NULL, NULL);
    peg_free(written);
    peg_turn_free(turn);
    peg_spool_store_unref(store);
    return status;
}

/* ---- nothing live ---------------------------------------------------------------------------- */

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)args, (void)user;
    (void)peg_call_reply(call, peg_cstr("{}"));
}

/* G58 */
TEST(no_function_pointer_or_path_gets_into_the_text)
{
    peg_turn *turn = turn_of(peg_cstr("hello"), NULL);
    char hex[32];
    char *text;
    union {
        void (*run)(peg_call *, const peg_json *, void *);
        uintptr_t number;
    } function = {.run = answer};

    text = must_write_as(turn, NULL);
    snprintf(hex, sizeof(hex), "%zx", (size_t)function.number);
    CHECK(!strstr(text, hex));
    snprintf(hex, sizeof(hex), "%zx",
             (size_t)peg_artifact_reader(peg_record_artifact(record_at(turn, 0))));
    CHECK(!strstr(text, hex));
    CHECK(!strstr(text, "0x"));
    CHECK(!strstr(text, "/"));
    peg_free(text);
    peg_turn_free(turn);
}
