/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/clock.h"
#include "pegboard/turn.h"

/* ---- fixture: one of each thing that a block can hold --------------------------- */

struct things {
    peg_reader *reader;
    peg_artifact *artifact;
    peg_media *media;
    peg_record *record; /* of an artifact */
};

static peg_status things_new(struct things *ret_things)
{
    struct things t = {0};
    peg_status status = peg_reader_from_bytes((peg_str)PEG_LIT("one\ntwo"), &t.reader, NULL);

    if (!status)
        status = peg_artifact_new(NULL, t.reader, &t.artifact, NULL);
    if (!status) {
        const peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE,
                                   .mime_type = "image/png", .filename = "cat.png",
                                   .reader = t.reader};

        status = peg_media_user_attachment(&def, &t.media, NULL);
    }
    if (!status) {
        const peg_record_def def = {PEG_RECORD_DEF_INIT, .key = PEG_LIT("key-1"),
                                    .call_id = PEG_LIT("call-1"), .tool = PEG_LIT("look"),
                                    .artifact = t.artifact};

        status = peg_record_new(&def, &t.record, NULL);
    }
    *ret_things = t;
    return status;
}

static void things_done(struct things *t)
{
    peg_record_unref(t->record);
    peg_media_unref(t->media);
    peg_artifact_unref(t->artifact);
    peg_reader_unref(t->reader);
}

static peg_block *block_of(const peg_block_def *def)
{
    peg_block *block = NULL;
    peg_error error;

    CHECK_STATUS(peg_block_new(def, &block, &error), PEG_OK, error);
    return block;
}

#define BLOCK(...) block_of(&(const peg_block_def){PEG_BLOCK_DEF_INIT, __VA_ARGS__})

static void check_refused(const peg_block_def *def, const char *where)
{
    peg_block *block = NULL;
    peg_error error;

    CHECK_INT(peg_block_new(def, &block, &error), PEG_EINVAL);
    CHECK(!block);
    CHECK_STR(peg__str(error.code), "E_INVALID_BLOCK");
    CHECK_STR(peg__str(error.where), where);
    CHECK(strstr(error.message, where) == error.message);
}

#define REFUSED(where, ...)                                                                        \
    check_refused(&(const peg_block_def){PEG_BLOCK_DEF_INIT, __VA_ARGS__}, where)

static void check_too_large(const peg_block_def *def, const char *where, size_t limit)
{
    peg_block *block = NULL;
    peg_error error;
    char text[48];

    snprintf(text, sizeof(text), "more than %zu ", limit);
    CHECK_INT(peg_block_new(def, &block, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_BLOCK_TOO_LARGE");
    CHECK_STR(peg__str(error.where), where);
    CHECK(strstr(error.message, text) != NULL);
}

#define TEXT(literal) ((peg_str)PEG_LIT(literal))

/* ---- what a block holds --------------------------------------------------------- */

TEST(block_holds_a_copy_of_its_text)
{
    char text[] = "hello";
    peg_block *block =
        BLOCK(.kind = PEG_BLOCK_USER, .id = TEXT("u1"), .text = peg__str(text), .created_ms = 42);

    text[0] = 'X';

    CHECK_INT(peg_block_kind_of(block), PEG_BLOCK_USER);
    CHECK_STR(peg_block_id(block), "u1");
    CHECK_STR(peg_block_text(block), "hello");
    CHECK_INT(peg_block_created_ms(block), 42);
    CHECK_STR(peg_block_type(block), "");
    CHECK_STR(peg_block_call_id(block), "");
    CHECK_STR(peg_block_tool(block), "");
    CHECK_STR(peg_block_args(block), "");
    CHECK(!peg_block_artifact(block));
    CHECK(!peg_block_record(block));
    CHECK_INT(peg_block_n_media(block), 0);
    CHECK(!peg_block_media(block, 0));
    CHECK_INT(peg_block_tier(block), PEG_TIER_UNSET);
    peg_block_unref(block);
}

TEST(block_without_an_id_gets_a_fresh_one)
{
    peg_block *one = BLOCK(.kind = PEG_BLOCK_USER, .text = TEXT("a"));
    peg_block *two = BLOCK(.kind = PEG_BLOCK_USER, .text = TEXT("a"));

    CHECK_INT(peg_block_id(one).len, 36);
    CHECK_INT(peg_block_id(one).ptr[14], '7');
    CHECK(!peg__str_eq(peg_block_id(one), peg_block_id(two)));
    peg_block_unref(one);
    peg_block_unref(two);
}

TEST(block_without_a_time_is_of_now)
{
    const int64_t before = peg_clock_now_ms(peg_clock_system());
    peg_block *block = BLOCK(.kind = PEG_BLOCK_SYSTEM, .text = TEXT("be kind"));

    CHECK(peg_block_created_ms(block) >= before);
    CHECK(peg_block_created_ms(block) <= peg_clock_now_ms(peg_clock_system()));
    peg_block_unref(block);
}

TEST(block_of_a_call_keeps_what_the_model_wrote)
{
    peg_block *block = BLOCK(.kind = PEG_BLOCK_CALL, .call_id = TEXT("call-1"),
                             .tool = TEXT("look"), .args = TEXT("{\"at\": [1,"));

    CHECK_STR(peg_block_call_id(block), "call-1");
    CHECK_STR(peg_block_tool(block), "look");
    CHECK_STR(peg_block_args(block), "{\"at\": [1,");
    CHECK(!peg__str_is(peg_block_id(block), "call-1"));
    peg_block_unref(block);
}

/* G93 */
TEST(block_of_a_call_may_be_empty_and_gets_a_call_id)
{
    peg_block *block = BLOCK(.kind = PEG_BLOCK_CALL);

    CHECK_INT(peg_block_call_id(block).len, 36);
    CHECK(!peg__str_eq(peg_block_call_id(block), peg_block_id(block)));
    CHECK_STR(peg_block_tool(block), "");
    CHECK_STR(peg_block_args(block), "");
    peg_block_unref(block);
}

TEST(block_of_a_call_keeps_arguments_that_are_no_text_at_all)
{
    peg_block *block = BLOCK(.kind = PEG_BLOCK_CALL, .args = peg__strn("\xff\0{", 3));

    CHECK_INT(peg_block_args(block).len, 3);
    CHECK_INT(memcmp(peg_block_args(block).ptr, "\xff\0{", 3), 0);
    peg_block_unref(block);
}

TEST(block_of_a_result_speaks_for_its_record)
{
    struct things t;
    peg_block *block;

    CHECK_INT(things_new(&t), PEG_OK);
    block = BLOCK(.kind = PEG_BLOCK_RESULT, .record = t.record);

    CHECK(peg_block_record(block) == t.record);
    CHECK_STR(peg_block_call_id(block), "call-1");
    CHECK_STR(peg_block_tool(block), "look");
    CHECK(peg_block_artifact(block) == t.artifact);
    CHECK_STR(peg_block_args(block), "");
    CHECK(!peg__str_is(peg_block_id(block), "key-1"));
    peg_block_unref(block);
    things_done(&t);
}

TEST(block_of_a_result_hands_out_the_media_of_its_record)
{
    struct things t;
    peg_record *record = NULL;
    peg_block *block;

    CHECK_INT(things_new(&t), PEG_OK);
    CHECK_INT(peg_record_new(&(const peg_record_def){PEG_RECORD_DEF_INIT, .call_id = PEG_LIT("c"),
                                                     .tool = PEG_LIT("t"), .media = &t.media,
                                                     .n_media = 1},
                             &record, NULL),
              PEG_OK);
    block = BLOCK(.kind = PEG_BLOCK_RESULT, .record = record);

    CHECK_INT(peg_block_n_media(block), 1);
    CHECK(peg_block_media(block, 0) == t.media);
    CHECK(!peg_block_media(block, 1));
    peg_block_unref(block);
    peg_record_unref(record);
    things_done(&t);
}

TEST(block_references_what_is_counted)
{
    struct things t;
    peg_block *block;

    CHECK_INT(things_new(&t), PEG_OK);
    block = BLOCK(.kind = PEG_BLOCK_OTHER, .type = TEXT("retrieved"), .text = TEXT("a report"),
                  .media = (peg_media *const[]){t.media, t.media}, .n_media = 2,
                  .artifact = t.artifact, .tier = PEG_TIER_THIRD_PARTY_PUBLIC);
    things_done(&t);

    CHECK_STR(peg_block_type(block), "retrieved");
    CHECK_STR(peg_block_text(block), "a report");
    CHECK_INT(peg_block_n_media(block), 2);
    CHECK_STR(peg__str(peg_media_filename(peg_block_media(block, 1))), "cat.png");
    CHECK_INT(peg_artifact_byte_length(peg_block_artifact(block)), 7);
    CHECK_INT(peg_block_tier(block), PEG_TIER_THIRD_PARTY_PUBLIC);
    peg_block_unref(block);
}

TEST(block_may_be_media_alone)
{
    struct things t;
    peg_block *block;

    CHECK_INT(things_new(&t), PEG_OK);
    block = BLOCK(.kind = PEG_BLOCK_USER, .media = &t.media, .n_media = 1);

    CHECK_STR(peg_block_text(block), "");
    CHECK(peg_block_media(block, 0) == t.media);
    peg_block_unref(block);
    things_done(&t);
}

TEST(block_of_another_type_may_be_a_mere_mark)
{
    peg_block *block = BLOCK(.kind = PEG_BLOCK_OTHER, .type = TEXT("checkpoint"));

    CHECK_STR(peg_block_type(block), "checkpoint");
    peg_block_unref(block);
}

TEST(block_lives_as_long_as_somebody_refers_to_it)
{
    peg_block *block = BLOCK(.kind = PEG_BLOCK_USER, .text = TEXT("hi"));

    CHECK(peg_block_ref(block) == block);
    CHECK(!peg_block_unref(block));
    CHECK_STR(peg_block_text(block), "hi");
    CHECK(!peg_block_unref(block));
    CHECK(!peg_block_unref(NULL));
    CHECK(!peg_block_ref(NULL));
}

TEST(block_kinds_have_names)
{
    CHECK_STR(peg__str(peg_block_kind_name(PEG_BLOCK_SYSTEM)), "system");
    CHECK_STR(peg__str(peg_block_kind_name(PEG_BLOCK_OTHER)), "other");
    CHECK_STR(peg__str(peg_block_kind_name((peg_block_kind)99)), "unknown");
}

/* ---- what is refused ------------------------------------------------------------ */

TEST(block_refuses_a_kind_that_does_not_exist)
{
    REFUSED("/kind", .kind = (peg_block_kind)7);
    REFUSED("/kind", .kind = (peg_block_kind)-1);
}

TEST(block_refuses_to_be_empty)
{
    REFUSED("/text", .kind = PEG_BLOCK_SYSTEM);
    REFUSED("/text", .kind = PEG_BLOCK_USER);
    REFUSED("/text", .kind = PEG_BLOCK_ASSISTANT);
    REFUSED("/text", .kind = PEG_BLOCK_REASONING);
    REFUSED("/record", .kind = PEG_BLOCK_RESULT);
    REFUSED("/type", .kind = PEG_BLOCK_OTHER, .text = TEXT("x"), .tier = PEG_TIER_FIRST_PARTY);
}

TEST(block_refuses_what_its_kind_does_not_have)
{
    struct things t;

    CHECK_INT(things_new(&t), PEG_OK);

    REFUSED("/type", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .type = TEXT("memory"));
    REFUSED("/text", .kind = PEG_BLOCK_CALL, .text = TEXT("x"));
    REFUSED("/text", .kind = PEG_BLOCK_RESULT, .record = t.record, .text = TEXT("x"));
    REFUSED("/media", .kind = PEG_BLOCK_SYSTEM, .text = TEXT("x"), .media = &t.media, .n_media = 1);
    REFUSED("/artifact", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .artifact = t.artifact);
    REFUSED("/tier", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .tier = PEG_TIER_FIRST_PARTY);
    REFUSED("/call_id", .kind = PEG_BLOCK_RESULT, .record = t.record, .call_id = TEXT("c"));
    REFUSED("/tool", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .tool = TEXT("t"));
    REFUSED("/args", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .args = TEXT("{}"));
    REFUSED("/record", .kind = PEG_BLOCK_CALL, .record = t.record);
    things_done(&t);
}

TEST(block_refuses_content_of_a_host_without_a_trust_tier)
{
    struct things t;

    CHECK_INT(things_new(&t), PEG_OK);

    REFUSED("/tier", .kind = PEG_BLOCK_OTHER, .type = TEXT("memory"), .text = TEXT("x"));
    REFUSED("/tier", .kind = PEG_BLOCK_OTHER, .type = TEXT("memory"), .artifact = t.artifact);
    REFUSED("/tier", .kind = PEG_BLOCK_OTHER, .type = TEXT("m"), .media = &t.media, .n_media = 1);
    REFUSED("/tier", .kind = PEG_BLOCK_OTHER, .type = TEXT("memory"), .tier = (peg_trust_tier)9);
    things_done(&t);
}

TEST(block_refuses_media_that_are_not_there)
{
    struct things t;

    CHECK_INT(things_new(&t), PEG_OK);

    REFUSED("/media", .kind = PEG_BLOCK_USER, .n_media = 1);
    REFUSED("/media/1", .kind = PEG_BLOCK_USER, .media = (peg_media *const[]){t.media, NULL},
            .n_media = 2);
    things_done(&t);
}

TEST(block_refuses_bytes_that_are_no_utf8)
{
    REFUSED("/text", .kind = PEG_BLOCK_USER, .text = TEXT("caf\xe9"));
    REFUSED("/id", .kind = PEG_BLOCK_USER, .id = TEXT("\xff"), .text = TEXT("x"));
    REFUSED("/tool", .kind = PEG_BLOCK_CALL, .tool = TEXT("\xc0\x80"));
    REFUSED("/call_id", .kind = PEG_BLOCK_CALL, .call_id = TEXT("\xed\xa0\x80"));
    REFUSED("/type", .kind = PEG_BLOCK_OTHER, .type = TEXT("\x80"));
}

TEST(block_refuses_a_time_before_1970)
{
    REFUSED("/created_ms", .kind = PEG_BLOCK_USER, .text = TEXT("x"), .created_ms = -1);
}

TEST(block_refuses_what_is_larger_than_a_limit)
{
    static char bytes[PEG_LIMIT_BLOCK_BYTES + 1];
    const peg_str huge = {bytes, sizeof(bytes)};
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL};

    def.args = huge;
    check_too_large(&def, "/args", PEG_LIMIT_BLOCK_BYTES);
    def.args = peg__strn(bytes, PEG_LIMIT_BLOCK_BYTES);
    def.tool = TEXT("t");
    check_too_large(&def, "/tool", PEG_LIMIT_BLOCK_BYTES);
    def = (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER, .text = huge};
    check_too_large(&def, "/text", PEG_LIMIT_BLOCK_BYTES);
    def = (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL,
                          .id = {bytes, PEG_LIMIT_BLOCK_ID_BYTES + 1}};
    check_too_large(&def, "/id", PEG_LIMIT_BLOCK_ID_BYTES);
    def = (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL,
                          .call_id = {bytes, PEG_LIMIT_CALL_ID_BYTES + 1}};
    check_too_large(&def, "/call_id", PEG_LIMIT_CALL_ID_BYTES);
    def = (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER,
                          .type = {bytes, PEG_LIMIT_NAME_BYTES + 1}};
    check_too_large(&def, "/type", PEG_LIMIT_NAME_BYTES);
    def = (peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                          .n_media = PEG_LIMIT_BLOCK_MEDIA + 1};
    check_too_large(&def, "/media", PEG_LIMIT_BLOCK_MEDIA);
}

TEST(block_takes_ids_as_long_as_the_limits_say)
{
    char id[PEG_LIMIT_CALL_ID_BYTES];
    peg_block *block;

    memset(id, 'i', sizeof(id));
    block = BLOCK(.kind = PEG_BLOCK_CALL, .id = peg__strn(id, PEG_LIMIT_BLOCK_ID_BYTES),
                  .call_id = peg__strn(id, PEG_LIMIT_CALL_ID_BYTES));

    CHECK_INT(peg_block_id(block).len, PEG_LIMIT_BLOCK_ID_BYTES);
    CHECK_INT(peg_block_call_id(block).len, PEG_LIMIT_CALL_ID_BYTES);
    peg_block_unref(block);
}

TORTURE(block_survives_any_allocation_failure)
{
    struct things t;
    peg_block *block = NULL;
    peg_status status = things_new(&t);
    const peg_block_def def = {PEG_BLOCK_DEF_INIT,        .kind = PEG_BLOCK_OTHER,
                               .type = PEG_LIT("memory"), .text = PEG_LIT("x"),
                               .media = &t.media,         .n_media = 1,
                               .artifact = t.artifact,    .tier = PEG_TIER_FIRST_PARTY};

    if (!status)
        status = peg_block_new(&def, &block, NULL);
    CHECK((status == PEG_OK) == (block != NULL));
    peg_block_unref(block);
    things_done(&t);
    return status;
}
