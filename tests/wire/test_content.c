/* SPDX-License-Identifier: Apache-2.0 */

/* Typed content on the wire: what is written is read, what is none is refused, and what callers get
 * that do not take it. */

#include "wire/content.h"

#include <string.h>

#include "../t.h"
#include "base/limits.h"
#include "base/limits/content.h"
#include "base/text/str.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

static const peg_str png = PEG_LIT("\x89PNG\r\n\x1a\n\0\xff");

static void fill_words(peg_str words[WIRE_MEDIA_WORDS])
{
    static const char *const texts[WIRE_MEDIA_WORDS] = {
        "id-1",   "image", "image/png", "a \"b\".png", "https://x/y",
        "file-7", "high",  "cam",       "first-party", "opaque-perceptual"};

    for (int i = 0; i < WIRE_MEDIA_WORDS; i++)
        words[i] = peg__str(texts[i]);
}

static const struct wire_note notes[] = {
    {PEG_LIT("text:caption"), PEG_LIT("a\ncat"), PEG_LIT("third-party-public"), true},
    {PEG_LIT("n"), PEG_LIT("t"), PEG_LIT("first-party"), false},
};

static void add_image(struct peg__buf *list, peg_str data)
{
    peg_str words[WIRE_MEDIA_WORDS];

    fill_words(words);
    wire_content_add_media(list, words, notes, 2, data);
}

static void check_refused(peg_str list, const char *words)
{
    peg_error error = {.message = ""};

    if (wire_content_check(list, &error) == PEG_OK)
        T_FAIL("taken, though it should be \"%s\"", words);
    if (!strstr(error.message, words))
        T_FAIL("\"%s\" does not say \"%s\"", error.message, words);
}

/* An image whose word `which` is another one. */
static void check_word(enum wire_media_word which, peg_str word, const char *said)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    peg_str words[WIRE_MEDIA_WORDS];

    fill_words(words);
    words[which] = word;
    wire_content_add_media(&list, words, NULL, 0, png);
    check_refused(peg__buf_view(&list), said);
    peg__buf_free(&list);
}

static void check_json(struct peg__buf *list, const char *json)
{
    struct peg__buf out = PEG__BUF(1 << 20);

    wire_content_write_json(peg__buf_view(list), &out);
    CHECK_STR(peg__buf_view(&out), json);
    peg__buf_free(&out);
    peg__buf_free(list);
}

/* ---- reading ---- */

TEST(parts_are_read_as_they_were_written)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct wire_content part;
    struct wire_note note;
    peg_str rest;
    peg_str media;

    wire_content_add(&list, WIRE_TEXT, peg__str("hello"));
    wire_content_add(&list, WIRE_JSON, peg__str("[1]"));
    wire_content_add(&list, WIRE_BYTES, peg__str(""));
    add_image(&list, png);
    rest = peg__buf_view(&list);

    CHECK(wire_content_is_list(rest) && wire_content_is_there(rest));
    CHECK_INT(wire_content_check(rest, NULL), PEG_OK);
    CHECK(wire_content_next(&rest, &part) && part.kind == WIRE_TEXT);
    CHECK_STR(part.bytes, "hello");
    CHECK(wire_content_next(&rest, &part) && part.kind == WIRE_JSON);
    CHECK_STR(part.bytes, "[1]");
    CHECK(wire_content_next(&rest, &part) && part.kind == WIRE_BYTES);
    CHECK_INT(part.bytes.len, 0);
    CHECK(wire_content_next(&rest, &part) && part.kind == WIRE_MEDIA);
    CHECK(peg__str_eq(part.bytes, png));
    CHECK_STR(part.words[WIRE_MEDIA_FILENAME], "a \"b\".png");
    CHECK_STR(part.words[WIRE_MEDIA_HAZARD], "opaque-perceptual");
    media = part.media;
    CHECK(wire_content_next_note(&media, &note) && note.is_derived);
    CHECK_STR(note.text, "a\ncat");
    CHECK(wire_content_next_note(&media, &note) && !note.is_derived);
    CHECK(!wire_content_next_note(&media, &note));
    CHECK(!wire_content_next(&rest, &part));
    peg__buf_free(&list);
}

TEST(media_of_no_bytes_is_not_media_that_is_elsewhere)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct wire_content part;
    peg_str rest;

    add_image(&list, peg__str(""));
    add_image(&list, (peg_str){NULL, 0});
    rest = peg__buf_view(&list);
    CHECK_INT(wire_content_check(rest, NULL), PEG_OK);
    CHECK(wire_content_next(&rest, &part) && part.bytes.ptr);
    CHECK(wire_content_next(&rest, &part) && !part.bytes.ptr);
    peg__buf_free(&list);
}

/* ---- what is none ---- */

TEST(lists_with_other_fields_or_too_many_parts_are_none)
{
    struct peg__buf list = PEG__BUF(1 << 20);

    CHECK(!wire_content_is_list(peg__str("")));
    CHECK(!wire_content_is_list(peg__str("\x0a\x01x")));        /* a call_id of its own */
    CHECK(!wire_content_is_list(peg__strn("\x28\x01", 2)));     /* `attached` */
    CHECK(!wire_content_is_list(peg__strn("\x3a\x7f\x0a", 3))); /* it ends too early */
    CHECK(!wire_content_is_list(peg__strn("\x38\x01", 2)));     /* the number of content, no part */
    for (int i = 0; i < PEG_LIMIT_CONTENT_PARTS; i++)
        wire_content_add(&list, WIRE_TEXT, peg__str("x"));
    CHECK(wire_content_is_list(peg__buf_view(&list)));
    CHECK_INT(wire_content_check(peg__buf_view(&list), NULL), PEG_OK);
    wire_content_add(&list, WIRE_TEXT, peg__str("x"));
    CHECK(!wire_content_is_list(peg__buf_view(&list)));
    check_refused(peg__buf_view(&list), "more than 64 parts");
    peg__buf_free(&list);
}

TEST(parts_of_no_kind_or_of_two_are_refused)
{
    check_refused(peg__str(""), "no part");
    check_refused(peg__strn("\x3a\x00", 2), "exactly one");                   /* none */
    check_refused(peg__strn("\x3a\x02\x08\x01", 4), "exactly one");           /* a number */
    check_refused(peg__strn("\x3a\x03\x4a\x01x", 5), "exactly one");          /* kind 9 */
    check_refused(peg__strn("\x3a\x06\x0a\x01x\x0a\x01y", 8), "exactly one"); /* two texts */
    check_refused(peg__strn("\x3a\x03\x0a\x01\xff", 5), "not UTF-8");
    check_refused(peg__strn("\x3a\x03\x0a\x01\x00", 5), "NUL");
    check_refused(peg__strn("\x3a\x03\x22\x01\x0a", 5), "cannot be read"); /* media that is cut */
}

TEST(media_that_cannot_be_shown_is_refused)
{
    static char large[PEG_LIMIT_CONTENT_WORD_BYTES + 2];

    memset(large, 'x', sizeof(large) - 1);
    large[5] = '/';
    check_word(WIRE_MEDIA_TYPE, peg__str(large), "more than 4096");
    check_word(WIRE_MEDIA_TYPE, peg__strn(large, PEG_LIMIT_CONTENT_TYPE_BYTES + 1),
               "mime_type of media has more than 256");
    check_word(WIRE_MEDIA_TYPE, peg__str(""), "no mime_type");
    check_word(WIRE_MEDIA_TYPE, peg__str("png"), "no mime_type");
    check_word(WIRE_MEDIA_TYPE, peg__str("image/png\r\nx: y"), "no mime_type");
    check_word(WIRE_MEDIA_KIND, peg__str("hologram"), "kind of media");
    check_word(WIRE_MEDIA_FILENAME, peg__str("\xc3"), "not UTF-8");
    check_word(WIRE_MEDIA_ID, peg__strn("a\0b", 3), "NUL");
}

TEST(media_that_is_nowhere_and_notes_without_words_are_refused)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    peg_str words[WIRE_MEDIA_WORDS];
    struct wire_note many[PEG_LIMIT_MEDIA_NOTES + 1];

    fill_words(words);
    for (size_t i = 0; i < PEG_LIMIT_MEDIA_NOTES + 1; i++)
        many[i] = notes[1];
    wire_content_add_media(&list, words, many, PEG_LIMIT_MEDIA_NOTES + 1, png);
    check_refused(peg__buf_view(&list), "more than 64 notes");
    peg__buf_clear(&list);
    many[0].text = peg__str("");
    wire_content_add_media(&list, words, many, 1, png);
    check_refused(peg__buf_view(&list), "no text");
    peg__buf_clear(&list);
    words[WIRE_MEDIA_URI] = words[WIRE_MEDIA_FILE_ID] = peg__str("");
    wire_content_add_media(&list, words, NULL, 0, (peg_str){NULL, 0});
    check_refused(peg__buf_view(&list), "no data");
    peg__buf_free(&list);
}

/* ---- as JSON ---- */

TEST(media_as_json_is_what_it_always_was)
{
    struct peg__buf list = PEG__BUF(1 << 20);

    add_image(&list, peg__str("PNG"));
    check_json(&list,
               "{\"media\":[{\"id\":\"id-1\",\"kind\":\"image\",\"mimeType\":\"image/png\","
               "\"filename\":\"a \\\"b\\\".png\",\"trustTier\":\"first-party\",\"modalityHazard\":"
               "\"opaque-perceptual\",\"source\":\"cam\",\"uri\":\"https://x/y\",\"fileId\":"
               "\"file-7\",\"detail\":\"high\",\"notes\":{\"text:caption\":{\"text\":\"a\\ncat\","
               "\"trustTier\":\"third-party-public\",\"derivedFromMedia\":true},\"n\":{\"text\":"
               "\"t\",\"trustTier\":\"first-party\",\"derivedFromMedia\":false}},\"base64\":"
               "\"UE5H\"}]}");
}

TEST(other_parts_as_json_stand_alone_or_in_a_list)
{
    struct peg__buf list = PEG__BUF(1 << 20);

    wire_content_add(&list, WIRE_BYTES, peg__strn("\xff\x00z", 3));
    check_json(&list, "{\"base64\":\"/wB6\"}");
    wire_content_add(&list, WIRE_TEXT, peg__str("\"x\""));
    check_json(&list, "\"\\\"x\\\"\"");
    wire_content_add(&list, WIRE_JSON, peg__str("{\"a\":1}"));
    wire_content_add(&list, WIRE_BYTES, peg__str("text"));
    check_json(&list, "{\"content\":[{\"a\":1},\"text\"]}");
}

TEST(a_flat_response_keeps_its_server_data)
{
    struct peg__buf response = PEG__BUF(1 << 20);
    struct peg__buf flat = PEG__BUF(1 << 20);
    peg_str data;

    wire_content_add(&response, WIRE_BYTES, peg__strn("\xff", 1));
    peg__buf_add(&response, "\x22\x03\x0a\x01k", 5);

    CHECK_INT(wire_content_flatten(peg__buf_view(&response), &flat), PEG_OK);
    CHECK(!wire_content_is_there(peg__buf_view(&flat)));
    CHECK_STR(wire_find_bytes(peg__buf_view(&flat), PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD),
              "{\"base64\":\"/w==\"}");
    data = wire_find_bytes(peg__buf_view(&flat), PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD);
    CHECK_STR(wire_find_bytes(data, PEGBOARD_V1_SERVER_DATA_KIND_FIELD), "k");
    peg__buf_free(&response);
    peg__buf_free(&flat);
}

TEST(what_is_too_large_as_json_is_an_error_that_says_so)
{
    struct peg__buf response = PEG__BUF((size_t)16 << 20);
    struct peg__buf flat = PEG__BUF((size_t)16 << 20);
    static char large[7 << 20];
    peg_str error;

    memset(large, 0xff, sizeof(large));
    wire_content_add(&response, WIRE_BYTES, peg__strn(large, sizeof(large)));
    CHECK_INT(wire_content_flatten(peg__buf_view(&response), &flat), PEG_OK);
    error = wire_find_bytes(peg__buf_view(&flat), PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD);
    CHECK_STR(wire_find_bytes(error, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "E_RESULT_TOO_LARGE");
    peg__buf_free(&response);
    peg__buf_free(&flat);
}

TORTURE(writing_and_flattening_survive_any_allocation_failure)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct peg__buf flat = PEG__BUF(1 << 20);
    peg_status status;

    add_image(&list, png);
    status = list.status ? list.status : wire_content_flatten(peg__buf_view(&list), &flat);
    peg__buf_free(&list);
    peg__buf_free(&flat);
    return status;
}
