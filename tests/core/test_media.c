/* SPDX-License-Identifier: Apache-2.0 */

#include "core/result/result.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture: a definition that is right, over readers that watch or count --------------- */

static peg_reader *bytes_reader(peg_str bytes)
{
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_from_bytes(bytes, &reader, NULL), PEG_OK);
    return reader;
}

/* Nobody may read it or ask how long it is. */
static peg_status forbidden_read(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                                 peg_error *reterr)
{
    (void)user, (void)offset, (void)buffer, (void)n, (void)ret_n, (void)reterr;
    abort();
}

static int64_t forbidden_length(void *user)
{
    (void)user;
    abort();
}

static peg_reader *forbidden_reader(void)
{
    const peg_reader_ops ops = {.read_at = forbidden_read, .byte_length = forbidden_length};
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_new(&ops, NULL, &reader, NULL), PEG_OK);
    return reader;
}

/* Bytes that are not in our memory, of a length that nobody knows. */
static peg_status remote_read(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                              peg_error *reterr)
{
    const char *text = user;
    const size_t len = strlen(text);

    (void)reterr;
    *ret_n = offset >= len ? 0 : n < len - offset ? n : len - (size_t)offset;
    memcpy(buffer, text + (offset < len ? offset : 0), *ret_n);
    return PEG_OK;
}

static int64_t remote_length(void *user)
{
    (void)user;
    return -1;
}

static peg_reader *remote_reader(char *text)
{
    const peg_reader_ops ops = {.read_at = remote_read, .byte_length = remote_length};
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_new(&ops, text, &reader, NULL), PEG_OK);
    return reader;
}

static const peg_media_note two_notes[] = {
    {"text:transcript", "hello there", PEG_TIER_FIRST_PARTY, true},
    {"text:caption", "", PEG_TIER_THIRD_PARTY_PUBLIC, false},
};

static peg_media_def right(peg_reader *reader)
{
    return (peg_media_def){PEG_MEDIA_DEF_INIT,
                           .id = "m1",
                           .kind = PEG_MEDIA_IMAGE,
                           .mime_type = "image/png",
                           .filename = "cat.png",
                           .reader = reader,
                           .tier = PEG_TIER_FIRST_PARTY,
                           .hazard = PEG_HAZARD_OPAQUE,
                           .source = "camera",
                           .notes = two_notes,
                           .n_notes = 2};
}

static peg_media *media_of(const peg_media_def *def)
{
    peg_media *media = NULL;
    peg_error error;

    CHECK_STATUS(peg_media_new(def, &media, &error), PEG_OK, error);
    return media;
}

/* Refused with the field as the place. */
static void check_refused(const peg_media_def *def, const char *where)
{
    peg_media *media = NULL;
    peg_error error;

    CHECK_STATUS(peg_media_new(def, &media, &error), PEG_EINVAL, error);
    CHECK_STR(peg__str(error.code), "E_INVALID_INITIAL_MEDIA_VALUE");
    CHECK_STR(peg__str(error.where), where);
    CHECK(strstr(error.message, where + 1));
    CHECK(!media);
    CHECK_INT(peg_media_new(def, &media, NULL), PEG_EINVAL);
}

/* ---- what it keeps -----------------------------------------------------------------------------
 */

TEST(media_keeps_what_it_was_made_from)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    const peg_media_def def = right(reader);
    peg_media *media = media_of(&def);

    CHECK_STR(peg__str(peg_media_id(media)), "m1");
    CHECK_INT(peg_media_kind_of(media), PEG_MEDIA_IMAGE);
    CHECK_STR(peg__str(peg_media_mime_type(media)), "image/png");
    CHECK_STR(peg__str(peg_media_filename(media)), "cat.png");
    CHECK_STR(peg__str(peg_media_source(media)), "camera");
    CHECK_INT(peg_media_tier(media), PEG_TIER_FIRST_PARTY);
    CHECK_INT(peg_media_hazard_of(media), PEG_HAZARD_OPAQUE);
    CHECK(peg_media_reader(media) == reader);
    CHECK_INT(peg_media_n_notes(media), 2);
    CHECK_STR(peg__str(peg_media_note_at(media, 0)->text), "hello there");
    CHECK(peg_media_note_at(media, 0)->is_derived);
    CHECK(!peg_media_note_at(media, 2));
    CHECK_INT(peg_media_note_named(media, "text:caption")->tier, PEG_TIER_THIRD_PARTY_PUBLIC);
    CHECK(!peg_media_note_named(media, "text:nothing"));
    CHECK(!peg_media_note_named(media, NULL));
    peg_media_unref(media);
    peg_reader_unref(reader);
}

TEST(media_copies_its_strings_and_references_its_reader)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    char filename[] = "cat.png";
    char text[] = "hello";
    peg_media_note note = {"text:caption", text, PEG_TIER_FIRST_PARTY, false};
    peg_media_def def = right(reader);
    peg_media *media;

    def.filename = filename;
    def.notes = &note;
    def.n_notes = 1;
    media = media_of(&def);
    filename[0] = 'X';
    text[0] = 'X';
    note.name = "gone";
    peg_reader_unref(reader);

    CHECK_STR(peg__str(peg_media_filename(media)), "cat.png");
    CHECK_STR(peg__str(peg_media_note_named(media, "text:caption")->text), "hello");
    CHECK_INT(peg_reader_byte_length(peg_media_reader(media)), 1);
    peg_media_unref(media);
}

TEST(media_lives_until_its_last_reference_is_gone)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    const peg_media_def def = right(reader);
    peg_media *media = media_of(&def);

    peg_reader_unref(reader);
    CHECK(peg_media_ref(media) == media);
    CHECK(!peg_media_unref(media));
    CHECK_STR(peg__str(peg_media_id(media)), "m1");
    CHECK(!peg_media_unref(media));
    CHECK(!peg_media_unref(NULL));
    CHECK(!peg_media_ref(NULL));
}

/* T133 */
TEST(media_without_an_id_gets_a_fresh_one_and_keeps_one_that_is_given)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *given = media_of(&def);
    peg_media *one;
    peg_media *other;

    def.id = NULL;
    one = media_of(&def);
    other = media_of(&def);

    CHECK_STR(peg__str(peg_media_id(given)), "m1");
    CHECK_INT(strlen(peg_media_id(one)), 36);
    CHECK_INT(peg_media_id(one)[14], '7');
    CHECK(strcmp(peg_media_id(one), peg_media_id(other)) < 0);
    peg_media_unref(given);
    peg_media_unref(one);
    peg_media_unref(other);
    peg_reader_unref(reader);
}

TEST(media_without_a_source_says_so_with_an_empty_one)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media;

    def.source = NULL;
    media = media_of(&def);

    CHECK_STR(peg__str(peg_media_source(media)), "");
    peg_media_unref(media);
    peg_reader_unref(reader);
}

TEST(media_takes_types_and_names_that_only_rendering_can_judge)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media;

    def.mime_type = "image/png\"><script>";
    def.filename = "../../</untrusted>\n";
    media = media_of(&def);

    CHECK_STR(peg__str(peg_media_mime_type(media)), def.mime_type);
    CHECK_STR(peg__str(peg_media_filename(media)), def.filename);
    peg_media_unref(media);
    peg_reader_unref(reader);
}

/* ---- what it refuses ----------------------------------------------------------------------------
 */

/* T132 */
TEST(media_refuses_a_missing_or_unknown_tier_and_hazard)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);

    def.tier = PEG_TIER_UNSET;
    check_refused(&def, "/tier");
    def.tier = (peg_trust_tier)99;
    check_refused(&def, "/tier");
    def = right(reader);
    def.hazard = PEG_HAZARD_UNSET;
    check_refused(&def, "/hazard");
    def.hazard = (peg_media_hazard)99;
    check_refused(&def, "/hazard");
    peg_reader_unref(reader);
}

/* T132 */
TEST(media_refuses_notes_without_tier_name_or_text)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_note notes[] = {two_notes[0], two_notes[1]};
    peg_media_def def = right(reader);

    def.notes = notes;
    notes[1].tier = PEG_TIER_UNSET;
    check_refused(&def, "/notes/1/tier");
    notes[1].tier = (peg_trust_tier)4;
    check_refused(&def, "/notes/1/tier");
    notes[1] = two_notes[1];
    notes[1].name = NULL;
    check_refused(&def, "/notes/1/name");
    notes[1].name = "";
    check_refused(&def, "/notes/1/name");
    notes[1].name = notes[0].name;
    check_refused(&def, "/notes/1/name");
    notes[1] = two_notes[1];
    notes[1].text = NULL;
    check_refused(&def, "/notes/1/text");
    def.notes = NULL;
    check_refused(&def, "/notes");
    peg_reader_unref(reader);
}

/* T132 */
TEST(media_keeps_where_a_provider_finds_it)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media;

    def.uri = "https://example.com/cat.png";
    def.file_id = "file-7";
    def.detail = "low";
    media = media_of(&def);

    CHECK_STR(peg__str(peg_media_uri(media)), "https://example.com/cat.png");
    CHECK_STR(peg__str(peg_media_file_id(media)), "file-7");
    CHECK_STR(peg__str(peg_media_detail(media)), "low");
    CHECK(peg_media_has_bytes(media));
    peg_media_unref(media);
    def = right(reader);
    media = media_of(&def);
    CHECK_STR(peg__str(peg_media_uri(media)), "");
    CHECK_STR(peg__str(peg_media_file_id(media)), "");
    CHECK_STR(peg__str(peg_media_detail(media)), "");
    peg_media_unref(media);
    peg_reader_unref(reader);
}

/* With a uri or a file id alone the bytes are somebody else's. */
static void check_remote(const peg_media_def *def)
{
    peg_media *media = media_of(def);
    peg_error error;
    char *text = NULL;

    CHECK(!peg_media_has_bytes(media));
    CHECK(peg_media_reader(media));
    CHECK_INT(peg_reader_byte_length(peg_media_reader(media)), -1);
    CHECK_STATUS(peg_media_base64(media, 100, &text, NULL, &error), PEG_EUNSUPPORTED, error);
    CHECK_STR(peg__str(error.code), "E_MEDIA_REMOTE");
    CHECK(!text);
    peg_media_unref(media);
}

TEST(media_that_a_provider_has_needs_no_reader_and_cannot_be_read)
{
    peg_media_def def = right(NULL);

    def.uri = "gs://bucket/cat.png";
    check_remote(&def);
    def.uri = NULL;
    def.file_id = "file-7";
    check_remote(&def);
    def.file_id = "";
    def.uri = "";
    check_refused(&def, "/reader");
}

TEST(media_refuses_a_definition_without_kind_reader_type_or_name)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media = NULL;
    peg_error error;

    def.kind = PEG_MEDIA_UNSET;
    check_refused(&def, "/kind");
    def.kind = (peg_media_kind)99;
    check_refused(&def, "/kind");
    def = right(NULL);
    check_refused(&def, "/reader");
    def = right(reader);
    def.mime_type = NULL;
    check_refused(&def, "/mime_type");
    def.mime_type = "";
    check_refused(&def, "/mime_type");
    def = right(reader);
    def.filename = NULL;
    check_refused(&def, "/filename");
    def.filename = "";
    check_refused(&def, "/filename");
    def = right(reader);
    def.id = "";
    check_refused(&def, "/id");
    CHECK_INT(peg_media_new(NULL, &media, &error), PEG_EINVAL);
    CHECK_INT(peg_media_tool_generated(NULL, &media, &error), PEG_EINVAL);
    peg_reader_unref(reader);
}

TEST(media_refuses_strings_that_are_not_utf8)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_note note = {"text:caption", "\xC0\x80", PEG_TIER_FIRST_PARTY, false};
    peg_media_def def = right(reader);

    def.filename = "caf\xE9.png";
    check_refused(&def, "/filename");
    def = right(reader);
    def.source = "\xFF";
    check_refused(&def, "/source");
    def = right(reader);
    def.notes = &note;
    def.n_notes = 1;
    check_refused(&def, "/notes/0/text");
    peg_reader_unref(reader);
}

TEST(media_refuses_more_notes_or_text_than_its_limits)
{
    static peg_media_note notes[PEG_LIMIT_MEDIA_NOTES + 1];
    static char names[PEG_LIMIT_MEDIA_NOTES + 1][8];
    static char text[PEG_LIMIT_MEDIA_TEXT_BYTES];
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media = NULL;
    peg_error error;

    for (size_t i = 0; i <= PEG_LIMIT_MEDIA_NOTES; i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        notes[i] = (peg_media_note){names[i], "", PEG_TIER_FIRST_PARTY, false};
    }
    memset(text, 'x', sizeof(text) - 1);
    def.notes = notes;
    def.n_notes = PEG_LIMIT_MEDIA_NOTES + 1;

    CHECK_INT(peg_media_new(&def, &media, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK(strstr(error.message, "(media_notes)"));
    def.n_notes--;
    CHECK_INT(peg_media_new(&def, &media, &error), PEG_OK);
    media = peg_media_unref(media);
    notes[0].text = text;
    CHECK_INT(peg_media_new(&def, &media, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "(media_text_bytes)"));
    CHECK_STR(peg__str(error.where), "/notes/0/text");
    peg_reader_unref(reader);
}

/* ---- where it came from ------------------------------------------------------------------ */

typedef peg_status (*factory)(const peg_media_def *def, peg_media **ret_media, peg_error *reterr);

static void check_made(factory make, peg_media_kind kind, peg_trust_tier tier,
                       peg_media_hazard hazard)
{
    peg_reader *reader = bytes_reader(peg__str("x"));
    peg_media_def def = right(reader);
    peg_media *media = NULL;

    def.kind = kind;
    /* What a factory knows better. */
    def.tier = tier == PEG_TIER_FIRST_PARTY ? PEG_TIER_UNSET : PEG_TIER_FIRST_PARTY;
    def.hazard = PEG_HAZARD_INERT;

    CHECK_INT(make(&def, &media, NULL), PEG_OK);

    CHECK_INT(peg_media_tier(media), tier);
    CHECK_INT(peg_media_hazard_of(media), hazard);
    peg_media_unref(media);
    peg_reader_unref(reader);
}

/* T136 */
TEST(media_factories_fix_the_tier_and_take_the_hazard_from_the_kind)
{
    static const struct {
        factory make;
        peg_trust_tier tier;
    } factories[] = {
        {peg_media_user_attachment, PEG_TIER_THIRD_PARTY_PRIVATE},
        {peg_media_tool_generated, PEG_TIER_FIRST_PARTY},
        {peg_media_retrieved_public, PEG_TIER_THIRD_PARTY_PUBLIC},
        {peg_media_retrieved_private, PEG_TIER_THIRD_PARTY_PRIVATE},
    };

    for (size_t i = 0; i < 4; i++) {
        check_made(factories[i].make, PEG_MEDIA_IMAGE, factories[i].tier, PEG_HAZARD_OPAQUE);
        check_made(factories[i].make, PEG_MEDIA_AUDIO, factories[i].tier, PEG_HAZARD_OPAQUE);
        check_made(factories[i].make, PEG_MEDIA_VIDEO, factories[i].tier, PEG_HAZARD_OPAQUE);
        check_made(factories[i].make, PEG_MEDIA_DOCUMENT, factories[i].tier,
                   PEG_HAZARD_EXTRACTABLE);
    }
}

TEST(media_names_what_its_enums_stand_for)
{
    CHECK_STR(peg__str(peg_trust_tier_name(PEG_TIER_FIRST_PARTY)), "first-party");
    CHECK_STR(peg__str(peg_trust_tier_name(PEG_TIER_THIRD_PARTY_PUBLIC)), "third-party-public");
    CHECK_STR(peg__str(peg_trust_tier_name(PEG_TIER_THIRD_PARTY_PRIVATE)), "third-party-private");
    CHECK_STR(peg__str(peg_trust_tier_name((peg_trust_tier)99)), "unset");
    CHECK_STR(peg__str(peg_media_kind_name(PEG_MEDIA_IMAGE)), "image");
    CHECK_STR(peg__str(peg_media_kind_name(PEG_MEDIA_AUDIO)), "audio");
    CHECK_STR(peg__str(peg_media_kind_name(PEG_MEDIA_VIDEO)), "video");
    CHECK_STR(peg__str(peg_media_kind_name(PEG_MEDIA_DOCUMENT)), "document");
    CHECK_STR(peg__str(peg_media_kind_name(PEG_MEDIA_UNSET)), "unset");
    CHECK_STR(peg__str(peg_media_hazard_name(PEG_HAZARD_INERT)), "inert");
    CHECK_STR(peg__str(peg_media_hazard_name(PEG_HAZARD_EXTRACTABLE)), "extractable-instructions");
    CHECK_STR(peg__str(peg_media_hazard_name(PEG_HAZARD_OPAQUE)), "opaque-perceptual");
    CHECK_STR(peg__str(peg_media_hazard_name(PEG_HAZARD_UNSET)), "unset");
}

/* ---- metadata ---------------------------------------------------------------------------- */

static void check_described(const peg_media_def *def, const char *expected)
{
    peg_media *media = media_of(def);
    peg_json_doc *doc = NULL;
    char *text = NULL;

    CHECK_INT(peg_media_describe(media, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(text), expected);
    peg_free(text);
    peg_json_doc_free(doc);
    peg_media_unref(media);
}

/* T134 */
TEST(media_describes_itself_without_touching_its_reader)
{
    peg_reader *reader = forbidden_reader();
    const peg_media_def def = right(reader);

    check_described(&def,
                    "{\"id\":\"m1\",\"kind\":\"image\",\"mimeType\":\"image/png\","
                    "\"filename\":\"cat.png\",\"trustTier\":\"first-party\","
                    "\"modalityHazard\":\"opaque-perceptual\",\"source\":\"camera\",\"notes\":{"
                    "\"text:transcript\":{\"text\":\"hello there\",\"trustTier\":\"first-party\","
                    "\"derivedFromMedia\":true},\"text:caption\":{\"text\":\"\",\"trustTier\":"
                    "\"third-party-public\",\"derivedFromMedia\":false}}}");
    peg_reader_unref(reader);
}

TEST(media_leaves_out_of_its_description_what_it_does_not_have)
{
    peg_reader *reader = forbidden_reader();
    peg_media_def def = right(reader);

    def.source = NULL;
    def.n_notes = 0;

    check_described(&def, "{\"id\":\"m1\",\"kind\":\"image\",\"mimeType\":\"image/png\","
                          "\"filename\":\"cat.png\",\"trustTier\":\"first-party\","
                          "\"modalityHazard\":\"opaque-perceptual\"}");
    peg_reader_unref(reader);
}

TEST(media_tells_in_its_description_where_a_provider_finds_it)
{
    peg_media_def def = right(NULL);

    def.source = NULL;
    def.n_notes = 0;
    def.uri = "https://e.x/c";
    def.file_id = "f1";
    def.detail = "high";

    check_described(&def, "{\"id\":\"m1\",\"kind\":\"image\",\"mimeType\":\"image/png\","
                          "\"filename\":\"cat.png\",\"trustTier\":\"first-party\","
                          "\"modalityHazard\":\"opaque-perceptual\",\"uri\":\"https://e.x/c\","
                          "\"fileId\":\"f1\",\"detail\":\"high\"}");
}

/* ---- bytes ------------------------------------------------------------------------------- */

static void check_base64(peg_reader *reader, const char *expected)
{
    const peg_media_def def = right(reader);
    peg_media *media = media_of(&def);
    char *text = NULL;
    size_t len = 0;

    CHECK_INT(peg_media_base64(media, 1000, &text, &len, NULL), PEG_OK);
    CHECK_STR(peg__str(text), expected);
    CHECK_INT(len, strlen(expected));
    peg_free(text);
    peg_media_unref(media);
    peg_reader_unref(reader);
}

TEST(media_gives_its_bytes_in_base_64)
{
    /* The vectors of RFC 4648, and what needs both last digits. */
    check_base64(bytes_reader(peg__str("")), "");
    check_base64(bytes_reader(peg__str("f")), "Zg==");
    check_base64(bytes_reader(peg__str("fo")), "Zm8=");
    check_base64(bytes_reader(peg__str("foo")), "Zm9v");
    check_base64(bytes_reader(peg__str("foob")), "Zm9vYg==");
    check_base64(bytes_reader(peg__str("fooba")), "Zm9vYmE=");
    check_base64(bytes_reader(peg__str("foobar")), "Zm9vYmFy");
    check_base64(bytes_reader(peg__strn("\xFF\xEF\xBE\0", 4)), "/+++AA==");
    check_base64(remote_reader((char[]){"foobar"}), "Zm9vYmFy");
}

TEST(media_refuses_to_give_more_bytes_than_asked_for)
{
    peg_reader *readers[] = {bytes_reader(peg__str("foobar")), remote_reader((char[]){"foobar"})};

    for (size_t i = 0; i < 2; i++) {
        const peg_media_def def = right(readers[i]);
        peg_media *media = media_of(&def);
        char *text = NULL;
        peg_error error;

        CHECK_INT(peg_media_base64(media, 5, &text, NULL, &error), PEG_ELIMIT);
        CHECK_STR(peg__str(error.code), "E_READER_TOO_LARGE");
        CHECK_INT(peg_media_base64(media, 6, &text, NULL, &error), PEG_OK);
        peg_free(text);
        peg_media_unref(media);
        peg_reader_unref(readers[i]);
    }
}

/* T135 */
TEST(media_can_be_read_again_and_again)
{
    peg_reader *readers[] = {bytes_reader(peg__str("foobar")), remote_reader((char[]){"foobar"})};

    for (size_t i = 0; i < 2; i++) {
        const peg_media_def def = right(readers[i]);
        peg_media *media = media_of(&def);

        for (int j = 0; j < 3; j++) {
            char *all = NULL;
            size_t len = 0;

            CHECK_INT(peg_reader_read_all(peg_media_reader(media), 10, &all, &len, NULL), PEG_OK);
            CHECK_STR(peg__strn(all, len), "foobar");
            peg_free(all);
        }
        peg_media_unref(media);
        peg_reader_unref(readers[i]);
    }
}

/* ---- memory that runs out ---------------------------------------------------------------- */

static peg_status use(peg_reader *reader)
{
    const peg_media_def def = right(reader);
    peg_media *media = NULL;
    peg_json_doc *doc = NULL;
    char *text = NULL;
    peg_status status = peg_media_new(&def, &media, NULL);

    if (status == PEG_OK)
        status = peg_media_describe(media, &doc, NULL);
    if (status == PEG_OK)
        status = peg_media_base64(media, 100, &text, NULL, NULL);
    peg_free(text);
    peg_json_doc_free(doc);
    peg_media_unref(media);
    return status;
}

TORTURE(media_survives_any_allocation_failure)
{
    static char text[] = "foobar";
    const peg_reader_ops ops = {.read_at = remote_read, .byte_length = remote_length};
    peg_reader *reader = NULL;
    peg_status status = peg_reader_new(&ops, text, &reader, NULL);

    if (status == PEG_OK)
        status = use(reader);
    peg_reader_unref(reader);
    return status;
}

TORTURE(media_that_a_provider_has_survives_any_allocation_failure)
{
    peg_media_def def = right(NULL);
    peg_media *media = NULL;
    peg_status status;

    def.uri = "https://example.com/cat.png";
    status = peg_media_new(&def, &media, NULL);
    peg_media_unref(media);
    return status;
}
