/* SPDX-License-Identifier: Apache-2.0 */

/* Goal: what a handler behind a gateway returns, and what its author said of the tool, reach a
 * caller and an importing agent as they are: media and bytes byte for byte, hints, title, version,
 * examples and artifact kind; and a caller that takes no content gets what it always got. */

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/cleanup.h"
#include "pegboard/client.h"
#include "pegboard/gateway.h"
#include "pegboard/media.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

enum { LARGE = 300 * 1000 };

struct world {
    peg_gateway *gateway;
    peg_registry *tools;
    peg_provider *provider;
    peg_client *client;
    peg_registry *imported;
    peg_remote_result *result;
    peg_record *record;
    peg_error error;
    atomic_uint n_attached;
    char large[LARGE]; /* several chunks, and no text */
};

/* ---- tools ---- */

static void reply_image(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;
    const peg_json *n = peg_json_get(args, "n");
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *image = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *link = NULL;
    const peg_media_note note = {"text:caption", "a cat", PEG_TIER_FIRST_PARTY, true};
    int64_t len = LARGE;
    peg_media *both[2];

    if (n)
        peg_json_int64(n, &len);
    CHECK_INT(peg_reader_from_bytes(peg__strn(w->large, (size_t)len), &reader, NULL), PEG_OK);
    CHECK_INT(peg_media_tool_generated(
                  &(peg_media_def){PEG_MEDIA_DEF_INIT, .id = "one", .kind = PEG_MEDIA_IMAGE,
                                   .mime_type = "image/png", .filename = "cat.png",
                                   .reader = reader, .notes = &note, .n_notes = 1},
                  &image, NULL),
              PEG_OK);
    CHECK_INT(peg_media_retrieved_public(
                  &(peg_media_def){PEG_MEDIA_DEF_INIT, .id = "two", .kind = PEG_MEDIA_DOCUMENT,
                                   .mime_type = "application/pdf", .filename = "b.pdf",
                                   .uri = "https://example.org/b.pdf"},
                  &link, NULL),
              PEG_OK);
    both[0] = image;
    both[1] = link;
    peg_call_reply_media(call, both, 2);
}

static void reply_bytes(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    peg_call_reply_bytes(call, peg__strn(w->large, LARGE));
}

static void reply_huge(peg_call *call, const peg_json *args, void *user)
{
    static char huge[7 << 20];

    (void)args;
    (void)user;
    memset(huge, 0xfe, sizeof(huge));
    peg_call_reply_bytes(call, peg__strn(huge, sizeof(huge)));
}

static void reply_text(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg__str("# Title"));
}

static void add_tool(struct world *w, peg_tool_def def)
{
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;

    def.size = sizeof(def);
    def.description = "does it";
    def.user = w;
    def.open_arguments = true;
    def.input_schema = "{\"type\":\"object\"}";
    CHECK_STATUS(peg_tool_new(&def, &tool, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_register(w->tools, tool, false, &w->error), PEG_OK, w->error);
}

/* ---- fixture ---- */

static bool await(atomic_uint *counter)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 60000 && !atomic_load(counter); i++)
        nanosleep(&moment, NULL);
    return atomic_load(counter) > 0;
}

static void on_event(const peg_provider_event *event, void *user)
{
    struct world *w = user;

    atomic_fetch_add(&w->n_attached, event->kind == PEG_PROVIDER_ATTACHED);
}

static void provide(struct world *w)
{
    add_tool(w, (peg_tool_def){.name = "image", .run = reply_image, .additive = true});
    add_tool(w, (peg_tool_def){
                    .name = "bytes", .run = reply_bytes, .destructive = true, .idempotent = true});
    add_tool(w, (peg_tool_def){.name = "huge", .run = reply_huge});
    add_tool(w, (peg_tool_def){.name = "text",
                               .run = reply_text,
                               .read_only = true,
                               .artifact_kind = &peg_artifact_markdown,
                               .version = "3 beta",
                               .examples = "[{\"x\":1}]",
                               .meta = "{\"title\":\"A text\"}"});
    CHECK_STATUS(
        peg_provider_new(w->tools,
                         &(peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .toolset = "things",
                                                 .version = "1.0.0",
                                                 .address = peg_gateway_address(w->gateway),
                                                 .on_event = on_event, .user = w},
                         &w->provider, &w->error),
        PEG_OK, w->error);
    CHECK_STATUS(peg_provider_start(w->provider, &w->error), PEG_OK, w->error);
    CHECK(await(&w->n_attached));
}

static struct world *world_open(void)
{
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .log_level = PEG_LOG_ERROR,
                                       .drain_ms = 60000};
    struct world *w = calloc(1, sizeof(*w));

    for (size_t i = 0; i < LARGE; i++)
        w->large[i] = (char)(i * 131 ^ i >> 8);
    CHECK_STATUS(peg_gateway_new(&config, &w->gateway, &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_gateway_listen(w->gateway, "127.0.0.1:0", &w->error), PEG_OK, w->error);
    CHECK_STATUS(peg_registry_new(NULL, 0, &w->tools, &w->error), PEG_OK, w->error);
    provide(w);
    CHECK_STATUS(peg_client_new(&(peg_client_options){PEG_CLIENT_OPTIONS_INIT,
                                                      .address = peg_gateway_address(w->gateway)},
                                &w->client, &w->error),
                 PEG_OK, w->error);
    return w;
}

static void world_close(struct world *w)
{
    peg_remote_result_free(w->result);
    peg_record_unref(w->record);
    peg_registry_unref(w->imported);
    peg_client_unref(w->client);
    peg_provider_free(w->provider);
    peg_registry_unref(w->tools);
    peg_gateway_free(w->gateway);
    free(w);
}

static void ask(struct world *w, const char *tool, const char *args, bool accepts, const char *key)
{
    const peg_remote_request request = {
        PEG_REMOTE_REQUEST_INIT, .toolset = "things",    .tool = tool,
        .args = peg__str(args),  .idempotency_key = key, .accepts_content = accepts};

    w->result = peg_remote_result_free(w->result);
    CHECK_STATUS(peg_client_call(w->client, NULL, &request, &w->result, &w->error), PEG_OK,
                 w->error);
}

static void import(struct world *w, bool is_trusted)
{
    const peg_import_options options = {PEG_IMPORT_OPTIONS_INIT, .trusted = is_trusted};

    CHECK_STATUS(peg_client_import(w->client, NULL, "things", &options, &w->imported, &w->error),
                 PEG_OK, w->error);
}

static void run(struct world *w, const char *tool)
{
    w->record = peg_record_unref(w->record);
    CHECK_STATUS(peg_registry_call(w->imported, tool, "{}", &w->record, &w->error), PEG_OK,
                 w->error);
}

static void check_large(const struct world *w, const peg_media *media)
{
    PEG_CLEANUP(peg_freep) char *bytes = NULL;
    size_t len = 0;

    CHECK_INT(peg_reader_read_all(peg_media_reader(media), 1 << 20, &bytes, &len, NULL), PEG_OK);
    CHECK_INT(len, LARGE);
    CHECK(memcmp(bytes, w->large, LARGE) == 0);
}

/* ---- callers ---- */

TEST(media_comes_to_a_caller_that_accepts_content_byte_for_byte)
{
    struct world *w = world_open();
    const peg_media *media;

    ask(w, "image", "{}", true, NULL);

    CHECK_INT(w->result->outcome, PEG_REMOTE_RESULT);
    CHECK_STR(w->result->json, "");
    CHECK_INT(w->result->n_content, 2);
    CHECK_INT(w->result->content[0].kind, PEG_CONTENT_MEDIA);
    media = w->result->content[0].media;
    check_large(w, media);
    CHECK_STR(peg__str(peg_media_id(media)), "one");
    CHECK_STR(peg__str(peg_media_mime_type(media)), "image/png");
    CHECK_STR(peg__str(peg_media_filename(media)), "cat.png");
    CHECK_INT(peg_media_tier(media), PEG_TIER_FIRST_PARTY); /* says its provider */
    CHECK_STR(peg__str(peg_media_note_named(media, "text:caption")->text), "a cat");
    CHECK(peg_media_note_at(media, 0)->is_derived);
    media = w->result->content[1].media;
    CHECK(!peg_media_has_bytes(media));
    CHECK_STR(peg__str(peg_media_uri(media)), "https://example.org/b.pdf");
    CHECK_INT(peg_media_tier(media), PEG_TIER_THIRD_PARTY_PUBLIC);
    CHECK_INT(peg_media_hazard_of(media), PEG_HAZARD_EXTRACTABLE);
    world_close(w);
}

TEST(a_caller_that_takes_no_content_gets_base_64_in_json)
{
    struct world *w = world_open();

    ask(w, "image", "{\"n\":3}", false, NULL);

    CHECK_INT(w->result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(w->result->n_content, 0);
    CHECK(peg__str_starts(w->result->json,
                          peg__str("{\"media\":[{\"id\":\"one\",\"kind\":\"image\",\"mimeType\":"
                                   "\"image/png\",\"filename\":\"cat.png\",\"trustTier\":"
                                   "\"first-party\",\"modalityHazard\":\"opaque-perceptual\",")));
    CHECK(strstr(w->result->json.ptr, "\"base64\":\"AIMG\"},{\"id\":\"two\""));
    ask(w, "text", "{}", true, NULL); /* JSON stays JSON */
    CHECK_STR(w->result->json, "\"# Title\"");
    CHECK_INT(w->result->n_content, 0);
    world_close(w);
}

TEST(a_caller_that_asks_again_gets_the_same_in_the_form_that_it_takes)
{
    struct world *w = world_open();

    ask(w, "bytes", "{}", false, "k1");
    CHECK(peg__str_starts(w->result->json, peg__str("{\"base64\":\"")));
    CHECK(!w->result->was_attached);
    ask(w, "bytes", "{}", true, "k1");

    CHECK(w->result->was_attached);
    CHECK_INT(w->result->n_content, 1);
    CHECK_INT(w->result->content[0].kind, PEG_CONTENT_BYTES);
    CHECK_INT(w->result->content[0].bytes.len, LARGE);
    CHECK(memcmp(w->result->content[0].bytes.ptr, w->large, LARGE) == 0);
    world_close(w);
}

TEST(what_fits_as_bytes_and_not_as_json_is_told_to_whom_it_concerns)
{
    struct world *w = world_open();

    ask(w, "huge", "{}", true, "k1");
    CHECK_INT(w->result->n_content, 1);
    CHECK_INT(w->result->content[0].bytes.len, 7 << 20);
    ask(w, "huge", "{}", false, "k1");

    CHECK_INT(w->result->outcome, PEG_REMOTE_ERROR);
    CHECK_STR(peg__str(w->result->error_name), "E_RESULT_TOO_LARGE");
    CHECK(strstr(w->result->error_message, "accept typed content"));
    world_close(w);
}

/* ---- agents ---- */

TEST(an_imported_tool_answers_with_media_that_its_host_does_not_trust)
{
    struct world *w = world_open();

    import(w, false);
    run(w, "image");

    CHECK_INT(peg_record_result_kind(w->record), PEG_RESULT_MEDIA);
    CHECK_INT(peg_record_n_media(w->record), 2);
    check_large(w, peg_record_media(w->record, 0));
    CHECK_INT(peg_media_tier(peg_record_media(w->record, 0)), PEG_TIER_THIRD_PARTY_PRIVATE);
    CHECK_INT(peg_media_note_at(peg_record_media(w->record, 0), 0)->tier,
              PEG_TIER_THIRD_PARTY_PRIVATE);
    CHECK_INT(peg_media_tier(peg_record_media(w->record, 1)), PEG_TIER_THIRD_PARTY_PUBLIC);
    CHECK_STR(peg__str(peg_media_uri(peg_record_media(w->record, 1))), "https://example.org/b.pdf");
    world_close(w);
}

TEST(an_imported_tool_that_is_trusted_says_itself_how_far_its_media_is)
{
    struct world *w = world_open();

    import(w, true);
    run(w, "image");

    CHECK_INT(peg_media_tier(peg_record_media(w->record, 0)), PEG_TIER_FIRST_PARTY);
    world_close(w);
}

TEST(an_imported_tool_answers_with_bytes)
{
    struct world *w = world_open();
    peg_str answer;

    import(w, false);
    run(w, "bytes");

    CHECK_INT(peg_record_answer(w->record, &answer, NULL), PEG_OK);
    CHECK_INT(answer.len, LARGE);
    CHECK(memcmp(answer.ptr, w->large, LARGE) == 0);
    world_close(w);
}

/* ---- what its author said ---- */

TEST(hints_title_version_examples_and_kind_cross_a_gateway)
{
    struct world *w = world_open();
    peg_tool *tool;

    import(w, false);

    tool = peg_registry_get(w->imported, peg__str("text"));
    CHECK(peg_tool_is_read_only(tool) && !peg_tool_is_destructive(tool));
    CHECK_STR(peg__str(peg_tool_version(tool)), "3 beta");
    CHECK_STR(peg_json_str(peg_json_get(peg_tool_meta(tool), "title")), "A text");
    CHECK_INT(peg_json_len(peg_tool_examples(tool)), 1);
    CHECK(peg_tool_artifact_kind(tool) == &peg_artifact_markdown);
    peg_tool_unref(tool);
    tool = peg_registry_get(w->imported, peg__str("image"));
    CHECK(peg_tool_is_additive(tool) && !peg_tool_is_destructive(tool));
    CHECK_STR(peg__str(peg_tool_version(tool)), "1.0.0"); /* the toolset's */
    peg_tool_unref(tool);
    tool = peg_registry_get(w->imported, peg__str("bytes"));
    CHECK(peg_tool_is_destructive(tool) && peg_tool_is_idempotent(tool));
    peg_tool_unref(tool);
    run(w, "text");
    CHECK(peg_artifact_kind_of(peg_record_artifact(w->record)) == &peg_artifact_markdown);
    world_close(w);
}
