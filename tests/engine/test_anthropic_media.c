/* SPDX-License-Identifier: Apache-2.0 */

/* Media in requests of Anthropic's. */

#include "wire_world.h"

#include "base/error.h"

/* ---- fixture ------------------------------------------------------------------------------ */

#define HEAD "{\"model\":\"claude-x\",\"max_tokens\":4096,"
#define USER(parts) "{\"role\":\"user\",\"content\":[" parts "]}"
#define TEXT(words) "{\"type\":\"text\",\"text\":\"" words "\"}"

static struct ask ask_claude(void)
{
    return ask_new(&peg__wire_anthropic, "claude-x");
}

static void add_user(struct ask *a, const char *id, const char *text)
{
    t_text(&a->t, PEG_BLOCK_USER, id, text);
}

static void add_media(struct ask *a, peg_block_kind kind, const char *id, peg_media *media)
{
    t_block(&a->t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind, .id = peg_cstr(id),
                                          .media = &media, .n_media = media != NULL});
    peg_media_unref(media);
}

static peg_media *picture(struct ask *a, const char *type, const char *uri)
{
    return t_media(&a->t,
                   (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                                   .mime_type = type, .filename = "a.png", .uri = uri},
                   uri ? NULL : "png!");
}

static peg_status fail_to_read(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                               peg_error *reterr)
{
    (void)user;
    (void)offset;
    (void)buffer;
    (void)n;
    (void)ret_n;
    return peg__fail(reterr, PEG_EIO, "E_DISK", "the disk is gone");
}

static int64_t four_bytes(void *user)
{
    (void)user;
    return 4;
}

static peg_media *unreadable(struct ask *a)
{
    static const peg_reader_ops ops = {.read_at = fail_to_read, .byte_length = four_bytes};
    peg_media_def def = {PEG_MEDIA_DEF_INIT,           .kind = PEG_MEDIA_IMAGE,
                         .mime_type = "image/png",     .filename = "a.png",
                         .tier = PEG_TIER_FIRST_PARTY, .hazard = PEG_HAZARD_OPAQUE};
    peg_media *media = NULL;

    CHECK_STATUS(peg_reader_new(&ops, NULL, &def.reader, &a->t.error), PEG_OK, a->t.error);
    CHECK_STATUS(peg_media_new(&def, &media, &a->t.error), PEG_OK, a->t.error);
    peg_reader_unref(def.reader);
    return media;
}

#define MARKER TEXT("[media id=\\\"m1\\\" filename=\\\"a.png\\\"]")

/* ---- tests -------------------------------------------------------------------------------- */

TEST(anthropic_request_sends_a_picture_as_bytes)
{
    struct ask a = ask_claude();

    add_media(&a, PEG_BLOCK_USER, "u1", picture(&a, "image/png", NULL));

    CHECK_BODY(&a, HEAD "\"messages\":[" USER(
                       MARKER ",{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
                              "\"image/png\",\"data\":\"cG5nIQ==\"}}") "]}");
    ask_free(&a);
}

TEST(anthropic_request_sends_a_picture_by_its_address)
{
    struct ask a = ask_claude();

    add_media(&a, PEG_BLOCK_USER, "u1", picture(&a, "image/png", "https://x.test/a.png"));

    CHECK_BODY(&a, HEAD "\"messages\":[" USER(
                       MARKER ",{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":"
                              "\"https://x.test/a.png\"}}") "]}");
    ask_free(&a);
}

TEST(anthropic_request_sends_a_document_by_its_id)
{
    struct ask a = ask_claude();
    const peg_media_def def = {PEG_MEDIA_DEF_INIT,         .id = "m1",
                               .kind = PEG_MEDIA_DOCUMENT, .mime_type = "application/pdf",
                               .filename = "a.png",        .file_id = "file_1"};

    add_media(&a, PEG_BLOCK_USER, "u1", t_media(&a.t, def, NULL));

    CHECK_BODY(&a, HEAD "\"messages\":[" USER(
                       MARKER ",{\"type\":\"document\",\"source\":{\"type\":\"file\",\"file_id\":"
                              "\"file_1\"}}") "]}");
    ask_free(&a);
}

TEST(anthropic_request_sends_a_document_of_text_as_text)
{
    struct ask a = ask_claude();
    const peg_media_def def = {PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_DOCUMENT,
                               .mime_type = "text/markdown", .filename = "a.png"};

    add_media(&a, PEG_BLOCK_USER, "u1", t_media(&a.t, def, "# h\xC3\xA9\n\xFFx"));

    CHECK_BODY(&a, HEAD "\"messages\":[" USER(
                       MARKER ",{\"type\":\"document\",\"source\":{\"type\":\"text\","
                              "\"media_type\":\"text/plain\",\"data\":\"# h\xC3\xA9\\n"
                              "\xEF\xBF\xBDx\"}}") "]}");
    ask_free(&a);
}

TEST(anthropic_request_describes_media_without_a_byte)
{
    struct ask a = ask_claude();
    const peg_media_def def = {PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                               .mime_type = "image/png", .filename = "a.png"};

    add_media(&a, PEG_BLOCK_USER, "u1", t_media(&a.t, def, ""));

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "[media id=\\\"m1\\\""));
    CHECK(!ask_has(&a, "\"type\":\"image\""));
    ask_free(&a);
}

TEST(anthropic_request_fails_for_media_that_cannot_be_read)
{
    struct ask a = ask_claude();

    add_user(&a, "u1", "Hello");
    add_media(&a, PEG_BLOCK_USER, "u2", unreadable(&a));

    CHECK_INT(ask_write(&a), PEG_EIO);
    ask_free(&a);
}

TEST(anthropic_request_describes_media_that_the_api_does_not_take)
{
    struct ask a = ask_claude();

    add_media(&a, PEG_BLOCK_USER, "u1", picture(&a, "image/tiff", NULL));

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "[media id=\\\"m1\\\""));
    CHECK(ask_has(&a, "image/tiff"));
    CHECK(!ask_has(&a, "\"type\":\"image\""));
    ask_free(&a);
}

TEST(anthropic_request_describes_media_of_the_model)
{
    struct ask a = ask_claude();

    add_user(&a, "u1", "Hello");
    add_media(&a, PEG_BLOCK_ASSISTANT, "a1", picture(&a, "image/png", NULL));

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"[media"));
    CHECK(!ask_has(&a, "\"type\":\"image\""));
    ask_free(&a);
}

TEST(anthropic_request_sends_pictures_within_results)
{
    struct ask a = ask_claude();
    peg_media *media = picture(&a, "image/png", NULL);

    add_user(&a, "u1", "Hello");
    t_call(&a.t, "b1", "c1", "draw", "{}");
    t_record(
        &a.t, "b1",
        (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = 1, .is_trusted = true});
    peg_media_unref(media);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "\"tool_use_id\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":\"[media"));
    CHECK(ask_has(&a, ",{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":"
                      "\"image/png\",\"data\":\"cG5nIQ==\"}}]}]}]}"));
    ask_free(&a);
}

/* ---- memory ------------------------------------------------------------------------------ */

TORTURE(anthropic_media_survives_any_allocation_failure)
{
    struct ask a = ask_claude();
    const peg_media_def note = {PEG_MEDIA_DEF_INIT, .id = "m2", .kind = PEG_MEDIA_DOCUMENT,
                                .mime_type = "text/plain", .filename = "a.txt"};
    peg_media *media = picture(&a, "image/png", NULL);
    peg_status status;

    add_media(&a, PEG_BLOCK_USER, "u1", t_media(&a.t, note, "words"));
    t_call(&a.t, "b1", "c1", "draw", "{}");
    t_record(&a.t, "b1",
             (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = media != NULL,
                              .is_trusted = true});
    peg_media_unref(media);
    status = ask_write(&a);
    ask_free(&a);
    return status;
}
