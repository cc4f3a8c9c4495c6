/* SPDX-License-Identifier: Apache-2.0 */

/* Media and other blocks in requests of OpenAI's Chat Completions. */

#include "wire_world.h"

static struct ask chat(void)
{
    return ask_new(&peg__wire_chat, "gpt-4.1");
}

#define HEAD "{\"model\":\"gpt-4.1\",\"messages\":["

/* ---- media --------------------------------------------------------------------------------- */

static void attach(struct ask *a, const char *text, peg_media_def def, const char *bytes)
{
    peg_media *media;

    def.id = "m1";
    def.filename = def.filename ? def.filename : "a.png";
    media = t_media(&a->t, def, bytes);
    t_block(&a->t,
            &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER, .id = peg_cstr("u"),
                                   .text = peg_cstr(text), .media = &media, .n_media = 1});
    peg_media_unref(media);
}

#define MARKER(name)                                                                               \
    "{\"type\":\"text\",\"text\":\"[media id=\\\"m1\\\" filename=\\\"" name "\\\"]\"},"

/* G36 */
TEST(chat_sends_images_as_bytes_or_by_their_uri)
{
    struct ask a = chat();
    struct ask b = chat();

    attach(&a, "Look.",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png",
                           .detail = "low"},
           "PNG");
    attach(&b, "",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png",
                           .uri = "https://example.org/a.png"},
           NULL);

    CHECK_BODY(&a, HEAD
               "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look.\"}," MARKER(
                   "a.png") "{\"type\":\"image_url\",\"image_url\":{\"url\":"
                            "\"data:image/png;base64,UE5H\",\"detail\":\"low\"}}]}]}");
    CHECK_BODY(&b, HEAD "{\"role\":\"user\",\"content\":[" MARKER(
                       "a.png") "{\"type\":\"image_url\",\"image_url\":{\"url\":"
                                "\"https://example.org/a.png\"}}]}]}");
    ask_free(&a);
    ask_free(&b);
}

TEST(chat_sends_sounds_and_documents)
{
    struct ask a = chat();
    struct ask b = chat();
    struct ask c = chat();

    attach(&a, "",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_AUDIO, .mime_type = "audio/mpeg",
                           .filename = "a.mp3"},
           "MP3");
    attach(&b, "",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_DOCUMENT,
                           .mime_type = "application/pdf", .filename = "../a.pdf"},
           "PDF");
    attach(&c, "",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_DOCUMENT,
                           .mime_type = "application/pdf", .filename = "a.pdf",
                           .file_id = "file-1"},
           NULL);

    CHECK_BODY(&a, HEAD "{\"role\":\"user\",\"content\":[" MARKER(
                       "a.mp3") "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"TVAz\","
                                "\"format\":\"mp3\"}}]}]}");
    CHECK_BODY(&b, HEAD "{\"role\":\"user\",\"content\":[" MARKER(
                       ".._a.pdf") "{\"type\":\"file\",\"file\":{\"filename\":\".._a.pdf\","
                                   "\"file_data\":\"data:application/pdf;base64,UERG\"}}]}]}");
    CHECK_BODY(&c, HEAD "{\"role\":\"user\",\"content\":[" MARKER(
                       "a.pdf") "{\"type\":\"file\",\"file\":{\"file_id\":\"file-1\"}}]}]}");
    ask_free(&a);
    ask_free(&b);
    ask_free(&c);
}

TEST(chat_tells_media_that_it_cannot_take_in_words)
{
    struct ask a = chat();

    attach(&a, "Look.",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_VIDEO, .mime_type = "video/mp4",
                           .filename = "a.mp4"},
           "MP4");

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "[media id=\\\"m1\\\" filename=\\\"a.mp4\\\"]\\n<trusted_content_"));
    CHECK(!ask_has(&a, "TVA0"));
    ask_free(&a);
}

TEST(chat_sends_the_media_of_results_after_the_round)
{
    struct ask a = chat();
    peg_media *media =
        t_media(&a.t,
                (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                                .mime_type = "image/png", .filename = "a.png"},
                "PNG");

    t_call(&a.t, "b1", "c1", "draw", "{}");
    t_call(&a.t, "b2", "c2", "echo", "{}");
    t_record(&a.t, "b1", (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = 1});
    t_answer(&a.t, "b2", "two");
    peg_media_unref(media);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "\"content\":\"two\"},{\"role\":\"user\",\"content\":[" MARKER(
                          "a.png") "{\"type\":\"image_url\",\"image_url\":{\"url\":"
                                   "\"data:image/png;base64,UE5H\"}}]}]}"));
    ask_free(&a);
}

TEST(chat_tells_media_of_the_model_in_words)
{
    struct ask a = chat();
    peg_media *media =
        t_media(&a.t,
                (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                                .mime_type = "image/png", .filename = "a.png"},
                "PNG");

    t_block(&a.t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT,
                                         .text = peg_cstr("Here."), .media = &media, .n_media = 1});
    t_call(&a.t, "b1", "c1", "echo", "{}");
    peg_media_unref(media);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, "{\"role\":\"assistant\",\"content\":\"Here.\\n\\n[media id="));
    ask_free(&a);
}

/* ---- other blocks ---------------------------------------------------------------------------- */

static void add_other(struct ask *a, peg_media *const *media, size_t n)
{
    t_block(&a->t, &(const peg_block_def){
                       PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .id = peg_cstr("o1"),
                       .type = peg_cstr("retrieved"), .text = peg_cstr("facts"),
                       .tier = PEG_TIER_THIRD_PARTY_PUBLIC, .media = media, .n_media = n});
}

TEST(chat_sends_other_blocks_as_words_of_a_user)
{
    struct ask a = chat();

    add_other(&a, NULL, 0);
    t_block(&a.t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER,
                                         .type = peg_cstr("mark")});

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, HEAD "{\"role\":\"user\",\"content\":\"<untrusted_content_"));
    CHECK(!ask_has(&a, "mark"));
    ask_free(&a);
}

TEST(chat_sends_the_media_of_other_blocks_beside_their_words)
{
    struct ask a = chat();
    peg_media *media =
        t_media(&a.t,
                (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m1", .kind = PEG_MEDIA_IMAGE,
                                .mime_type = "image/png", .filename = "a.png"},
                "PNG");

    add_other(&a, &media, 1);
    peg_media_unref(media);

    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    CHECK(ask_has(&a, HEAD "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                           "\"<untrusted_content_"));
    CHECK(ask_has(&a, "\"data:image/png;base64,UE5H\""));
    ask_free(&a);
}

/* ---- stable, and without memory ---------------------------------------------------------------
 */

static void everything(struct ask *a)
{
    peg_media *media =
        t_media(&a->t,
                (peg_media_def){PEG_MEDIA_DEF_INIT, .id = "m2", .kind = PEG_MEDIA_VIDEO,
                                .mime_type = "video/mp4", .filename = "a.mp4"},
                "MP4");

    attach(a, "Look.",
           (peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png"},
           "PNG");
    add_other(a, &media, 1);
    t_call(&a->t, "b1", "c1", "draw", "{}");
    t_record(&a->t, "b1", (peg_record_def){PEG_RECORD_DEF_INIT, .media = &media, .n_media = 1});
    t_block(&a->t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT,
                                          .media = &media, .n_media = 1});
    peg_media_unref(media);
}

/* G124 */
TEST(chat_renders_media_to_the_same_bytes_each_time)
{
    struct ask a = chat();
    char *first;

    everything(&a);
    CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
    first = strdup(a.body.ptr);

    for (int i = 0; i < 100; i++) {
        CHECK_STATUS(ask_write(&a), PEG_OK, a.t.error);
        CHECK_STR(peg__buf_view(&a.body), first);
    }
    free(first);
    ask_free(&a);
}

TORTURE(chat_media_survive_any_allocation_failure)
{
    struct ask a = chat();
    peg_status status;

    everything(&a);
    status = ask_write(&a);
    ask_free(&a);
    return status;
}
