/* SPDX-License-Identifier: Apache-2.0 */

/* Records made by hand, and the checksum of a call. */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "pegboard/record.h"

/* ---- fixture -------------------------------------------------------------------- */

static peg_record_def text_def(const char *text)
{
    return (peg_record_def){PEG_RECORD_DEF_INIT, .call_id = peg_cstr("c1"),
                            .tool = peg_cstr("search"), .args = peg_cstr("{\"query\":\"hello\"}"),
                            .text = peg_cstr(text)};
}

static peg_record *must_make(const peg_record_def *def)
{
    peg_record *record = NULL;
    peg_error error;

    if (peg_record_new(def, &record, &error))
        T_FAIL("%s", error.message);
    return record;
}

static void check_refused(const peg_record_def *def, const char *where)
{
    peg_record *record = NULL;
    peg_error error;

    CHECK_INT(peg_record_new(def, &record, &error), PEG_EINVAL);
    CHECK(!record);
    CHECK_STR(peg__str(error.code), "E_INVALID_INITIAL_TOOL_CALL_VALUE");
    CHECK_STR(peg__str(error.where), where);
}

static void check_digest(const char *tool, const char *args, const char *expected)
{
    peg_json_doc *doc = NULL;
    char hex[65];

    CHECK_INT(peg_json_parse(peg_cstr(args), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_call_digest(peg_cstr(tool), peg_json_root(doc), hex, NULL), PEG_OK);
    peg_json_doc_free(doc);
    CHECK_STR(peg__str(hex), expected);
}

/* ---- the checksum --------------------------------------------------------------- */

/* T23, T26 */
TEST(digest_gives_the_known_answers)
{
    check_digest("search", "{\"query\":\"hello\"}",
                 "e0b6feaa14a993179f474568e2c0a63075752fe3a8bc629bc0cd1442a002448e");
    check_digest("now", "{}", "e9a14fdf1b5879d09bafa77712943d6979cef52f24929f28035f0c3c6974a489");
    check_digest("search", "{\"a\":\"1\",\"b\":\"2\"}",
                 "e3c77b082bd53c359702567ebea280be7cda1092494c1ffcb483692e558f0cb5");
}

/* T24 */
TEST(digest_ignores_the_order_of_members)
{
    check_digest("search", "{ \"b\": \"2\", \"a\": \"1\" }",
                 "e3c77b082bd53c359702567ebea280be7cda1092494c1ffcb483692e558f0cb5");
}

/* T24 */
TEST(digest_minds_the_order_of_items)
{
    peg_record_def a = text_def("x");
    peg_record_def b = text_def("x");
    peg_record *first;
    peg_record *second;

    a.args = peg_cstr("{\"l\":[1,2]}");
    b.args = peg_cstr("{\"l\":[2,1]}");
    first = must_make(&a);
    second = must_make(&b);

    CHECK(strcmp(peg_record_checksum(first), peg_record_checksum(second)) != 0);
    peg_record_unref(first);
    peg_record_unref(second);
}

/* ---- records --------------------------------------------------------------------- */

TEST(record_keeps_what_it_was_given)
{
    peg_record_def def = text_def("done");
    peg_record *record;

    def.is_error = true;
    def.code = "E_LIMIT_CALLS";
    def.cause = "E_BEHIND";
    def.handle = peg_cstr("c1~2");
    def.payload = "{\"signature\":\"abc\"}";
    def.replay_compatibility = "gemini";
    record = must_make(&def);

    CHECK_STR(peg_record_call_id(record), "c1");
    CHECK_STR(peg_record_handle(record), "c1~2");
    CHECK_STR(peg_record_tool(record), "search");
    CHECK_STR(peg_record_text(record), "done");
    CHECK_STR(peg_record_args_text(record), "{\"query\":\"hello\"}");
    CHECK_STR(peg__str(peg_record_code(record)), "E_LIMIT_CALLS");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_BEHIND");
    CHECK_STR(peg__str(peg_record_replay_compatibility(record)), "gemini");
    CHECK(peg_json_get(peg_record_payload(record), "signature") != NULL);
    CHECK_INT(strlen(peg_record_nonce(record)), 32);
    CHECK_INT(peg_record_key(record).len, 32);
    peg_record_unref(record);
}

TEST(records_of_equal_calls_have_keys_and_nonces_of_their_own)
{
    const peg_record_def def = text_def("x");
    peg_record *a = must_make(&def);
    peg_record *b = must_make(&def);

    CHECK(strcmp(peg_record_checksum(a), peg_record_checksum(b)) == 0);
    CHECK(strcmp(peg_record_nonce(a), peg_record_nonce(b)) != 0);
    CHECK(!peg__str_eq(peg_record_key(a), peg_record_key(b)));
    peg_record_unref(a);
    peg_record_unref(b);
}

/* T116 */
TEST(record_refuses_what_cannot_be_a_call)
{
    peg_record_def def = text_def("x");
    peg_media *nothing = NULL;

    def.tool = peg_cstr("");
    check_refused(&def, "/tool");
    def = text_def("x");
    def.call_id = peg_cstr("");
    check_refused(&def, "/call_id");
    def = text_def("x");
    def.args = peg_cstr("[1]");
    check_refused(&def, "/args");
    def.args = peg_cstr("{");
    check_refused(&def, "/args");
    def = text_def("x");
    def.text = (peg_str){NULL, 0};
    check_refused(&def, "/text");
    def.media = &nothing;
    def.n_media = 1;
    check_refused(&def, "/media");
    def = text_def("x");
    def.media = &nothing;
    def.n_media = 1;
    check_refused(&def, "/text");
    def = text_def("x");
    def.payload = "{}";
    check_refused(&def, "/replay_compatibility");
    def.replay_compatibility = "x";
    def.payload = "{";
    check_refused(&def, "/payload");
}

TEST(record_made_by_hand_keeps_how_the_call_went)
{
    peg_record_def def = text_def("done");
    peg_json_doc *doc = NULL;
    peg_record *record;

    CHECK_INT(peg_json_parse(peg_cstr("[{\"kind\":\"k\",\"audience\":\"a\",\"data\":7}]"), NULL,
                             &doc, NULL),
              PEG_OK);
    def.created_ms = 5;
    def.completed_ms = 9;
    def.duration_ns = 4000001;
    def.attempts = 3;
    def.nonce = "0123456789abcdef0123456789abcdef";
    def.server_data = peg_json_root(doc);
    record = must_make(&def);
    peg_json_doc_free(doc);

    CHECK_INT(peg_record_created_ms(record), 5);
    CHECK_INT(peg_record_completed_ms(record), 9);
    CHECK_INT(peg_record_duration_ns(record), 4000001);
    CHECK_INT(peg_record_attempts(record), 3);
    CHECK_STR(peg__str(peg_record_nonce(record)), "0123456789abcdef0123456789abcdef");
    CHECK_INT(peg_json_get(peg_json_at(peg_record_server_data(record), 0), "data")->u.number, 7);
    peg_record_unref(record);
}

TEST(record_of_a_failure_keeps_arguments_that_no_tool_can_use)
{
    const peg_str broken[] = {{"{\"a\":", 5}, {"[1]", 3}, {"\xFF\0x", 3}};
    peg_record_def def = text_def("bad arguments");

    def.is_error = true;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        peg_record *record;

        def.args = broken[i];
        record = must_make(&def);
        CHECK(peg__str_eq(peg_record_args_text(record), broken[i]));
        CHECK_INT(peg_json_kind_of(peg_record_args(record)), PEG_JSON_OBJECT);
        CHECK_INT(peg_json_len(peg_record_args(record)), 0);
        peg_record_unref(record);
    }
}

TEST(record_refuses_what_cannot_have_happened)
{
    static const char *const wrong[] = {"", "0123", "0123456789abcdef0123456789abcdeF",
                                        "0123456789abcdef0123456789abcdef0"};
    const peg_json number = {.kind = PEG_JSON_INTEGER};
    peg_record_def def = text_def("x");

    def.duration_ns = -1;
    check_refused(&def, "/duration_ns");
    def = text_def("x");
    def.server_data = &number;
    check_refused(&def, "/server_data");
    def = text_def("x");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        def.nonce = wrong[i];
        check_refused(&def, "/nonce");
    }
}

TEST(record_refuses_names_that_are_no_utf8)
{
    peg_record_def def = text_def("x");

    def.call_id = peg_cstr("\xFF");
    check_refused(&def, "/call_id");
    def = text_def("x");
    def.tool = peg_cstr("\xFF");
    check_refused(&def, "/tool");
    def = text_def("x");
    def.handle = peg_cstr("\xFF");
    check_refused(&def, "/handle");
    def = text_def("x");
    def.key = peg_cstr("\xFF");
    check_refused(&def, "/key");
    def = text_def("x");
    def.is_error = true;
    def.code = "\xFF";
    check_refused(&def, "/code");
    def.code = NULL;
    def.cause = "\xFF";
    check_refused(&def, "/cause");
    def = text_def("x");
    def.replay_compatibility = "\xFF";
    check_refused(&def, "/replay_compatibility");
}

TEST(record_answers_with_its_text_or_with_the_bytes_of_its_artifact)
{
    peg_record_def def = text_def("found it");
    peg_record *text = must_make(&def);
    peg_reader *reader = NULL;
    peg_record *large;
    peg_str answer;

    CHECK_INT(peg_reader_from_bytes(peg_cstr("line 1\nline 2"), &reader, NULL), PEG_OK);
    def.text = (peg_str){NULL, 0};
    CHECK_INT(peg_artifact_new(NULL, reader, &def.artifact, NULL), PEG_OK);
    large = must_make(&def);

    CHECK_INT(peg_record_answer(text, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "found it");
    CHECK_INT(peg_record_answer(large, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "line 1\nline 2");
    peg_artifact_unref(def.artifact);
    peg_reader_unref(reader);
    peg_record_unref(large);
    peg_record_unref(text);
}

static peg_status refuse_read(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                              peg_error *reterr)
{
    (void)user;
    (void)offset;
    (void)buffer;
    (void)n;
    (void)ret_n;
    *reterr = (peg_error){.status = PEG_EIO, .code = "E_GONE", .cause = "", .message = "gone"};
    return PEG_EIO;
}

static int64_t length_of_5(void *user)
{
    (void)user;
    return 5;
}

TEST(record_tells_why_the_artifact_of_its_answer_cannot_be_read)
{
    const peg_reader_ops ops = {.read_at = refuse_read, .byte_length = length_of_5};
    peg_record_def def = text_def("");
    peg_str answer = {"untouched", 9};
    peg_reader *reader = NULL;
    peg_record *record;
    peg_error error;

    CHECK_INT(peg_reader_new(&ops, NULL, &reader, NULL), PEG_OK);
    def.text = (peg_str){NULL, 0};
    CHECK_INT(peg_artifact_new(NULL, reader, &def.artifact, NULL), PEG_OK);
    record = must_make(&def);

    CHECK_INT(peg_record_answer(record, &answer, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_GONE");
    CHECK_STR(answer, "untouched");
    peg_artifact_unref(def.artifact);
    peg_reader_unref(reader);
    peg_record_unref(record);
}

TORTURE(record_survives_any_allocation_failure)
{
    peg_record_def def = text_def("x");
    peg_record *record = NULL;
    peg_status status;

    def.is_error = true;
    def.code = "E_X";
    def.cause = "E_Y";
    def.payload = "[1,2,3]";
    def.replay_compatibility = "openai";
    def.server_data = &(const peg_json){.kind = PEG_JSON_ARRAY, .u.extent = 1};
    status = peg_record_new(&def, &record, NULL);
    peg_record_unref(record);
    return status;
}
