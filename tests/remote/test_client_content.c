/* SPDX-License-Identifier: Apache-2.0 */

/* Typed content of an answer, as a client reads it and as an imported tool answers with it: parts
 * of all kinds in all company, words that are not known, and no memory. */

#include "../t.h"
#include "base/limits/content.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "pegboard/pegboard.h"
#include "remote/client/remote.h"
#include "wire/content.h"

static void add_media(struct peg__buf *list, const char *kind, const char *tier, peg_str data)
{
    const peg_str words[WIRE_MEDIA_WORDS] = {
        [WIRE_MEDIA_KIND] = peg__str(kind),
        [WIRE_MEDIA_TYPE] = peg__str("image/png"),
        [WIRE_MEDIA_TIER] = peg__str(tier),
        [WIRE_MEDIA_URI] = peg__str("https://x/y"),
    };

    wire_content_add_media(list, words, NULL, 0, data);
}

/* ---- an agent whose tool answers with what a gateway said ---- */

struct agent {
    peg_remote_result *result;
    peg_registry *registry;
    peg_record *record;
    peg_error error;
    bool is_trusted;
};

static void run(peg_call *call, const peg_json *args, void *user)
{
    const struct agent *a = user;

    (void)args;
    remote__content_reply(call, a->result, a->is_trusted);
}

static peg_status agent_call(struct agent *a, struct peg__buf *list)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "t", .description = "d", .run = run,
                              .user = a};
    peg_tool *tool = NULL;
    peg_status status = list->status;

    if (!status)
        status = remote__result_read(peg__buf_view(list), &a->result, &a->error);
    peg__buf_free(list);
    if (!status)
        status = peg_tool_new(&def, &tool, &a->error);
    if (!status)
        status = peg_registry_new(&tool, 1, &a->registry, &a->error);
    if (!status)
        status = peg_registry_call(a->registry, "t", "{}", &a->record, &a->error);
    peg_tool_unref(tool);
    return status;
}

static void agent_ask(struct agent *a, struct peg__buf *list)
{
    CHECK_STATUS(agent_call(a, list), PEG_OK, a->error);
}

static void agent_free(struct agent *a)
{
    peg_record_unref(a->record);
    peg_registry_unref(a->registry);
    peg_remote_result_free(a->result);
}

static void check_answer(const struct agent *a, const char *expected)
{
    peg_str answer;

    CHECK_INT(peg_record_answer(a->record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, expected);
}

/* ---- parts ---- */

TEST(text_is_text_one_part_below_the_other)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {0};

    wire_content_add(&list, WIRE_TEXT, peg__str("one"));
    wire_content_add(&list, WIRE_JSON, peg__str("[2]"));
    agent_ask(&a, &list);
    check_answer(&a, "one\n[2]");
    agent_free(&a);
}

TEST(json_alone_is_json)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {0};

    wire_content_add(&list, WIRE_JSON, peg__str("{\"a\": 1}"));
    agent_ask(&a, &list);
    check_answer(&a, "{\"a\":1}");
    CHECK(peg_artifact_kind_of(peg_record_artifact(a.record)) == &peg_artifact_json);
    agent_free(&a);
}

TEST(text_beside_media_is_a_note_of_the_first_and_bytes_are_media_too)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {0};
    const peg_media *first;

    add_media(&list, "image", "first-party", peg__str("PNG"));
    wire_content_add(&list, WIRE_TEXT, peg__str("a cat"));
    wire_content_add(&list, WIRE_BYTES, peg__strn("\xff", 1));
    agent_ask(&a, &list);
    CHECK_INT(peg_record_n_media(a.record), 2);
    first = peg_record_media(a.record, 0);
    CHECK_STR(peg__str(peg_media_note_named(first, "text:description")->text), "a cat");
    CHECK_INT(peg_media_n_notes(peg_record_media(a.record, 1)), 0);
    CHECK_STR(peg__str(peg_media_mime_type(peg_record_media(a.record, 1))),
              "application/octet-stream");
    CHECK_INT(peg_media_tier(first), PEG_TIER_THIRD_PARTY_PRIVATE);
    agent_free(&a);
}

TEST(words_that_are_not_known_are_the_most_cautious_ones)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {.is_trusted = true};
    const peg_media *media;

    add_media(&list, "hologram", "trust me", (peg_str){NULL, 0});
    agent_ask(&a, &list);
    media = peg_record_media(a.record, 0);
    CHECK_INT(peg_media_kind_of(media), PEG_MEDIA_DOCUMENT);
    CHECK_INT(peg_media_tier(media), PEG_TIER_THIRD_PARTY_PUBLIC);
    CHECK_INT(peg_media_hazard_of(media), PEG_HAZARD_OPAQUE);
    CHECK(!peg_media_has_bytes(media));
    CHECK(peg_media_id(media)[0] && peg_media_filename(media)[0]);
    agent_free(&a);
}

TEST(more_parts_than_there_may_be_are_a_failure)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {0};

    for (int i = 0; i <= PEG_LIMIT_CONTENT_PARTS; i++)
        wire_content_add(&list, WIRE_BYTES, peg__strn("\xff", 1));
    agent_ask(&a, &list);
    CHECK(peg_record_is_error(a.record));
    agent_free(&a);
}

TEST(a_part_of_a_kind_that_is_not_known_makes_the_outcome_unknown)
{
    peg_remote_result *result;
    peg_error error;

    CHECK_STATUS(remote__result_read(peg__strn("\x3a\x03\x4a\x01x", 5), &result, &error), PEG_OK,
                 error);
    CHECK_INT(result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(result->n_content, 0);
    peg_remote_result_free(result);
}

TORTURE(reading_content_survives_any_allocation_failure)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    peg_remote_result *result = NULL;
    peg_status status;

    add_media(&list, "image", "first-party", peg__str("PNG"));
    wire_content_add(&list, WIRE_BYTES, peg__strn("\xff", 1));
    status = list.status ? list.status : remote__result_read(peg__buf_view(&list), &result, NULL);
    peg__buf_free(&list);
    peg_remote_result_free(result);
    return status;
}

TORTURE(answering_with_content_survives_any_allocation_failure)
{
    struct peg__buf list = PEG__BUF(1 << 20);
    struct agent a = {0};
    peg_status status;

    add_media(&list, "image", "first-party", peg__str("PNG"));
    wire_content_add(&list, WIRE_TEXT, peg__str("a cat"));
    wire_content_add(&list, WIRE_BYTES, peg__strn("\xff", 1));
    status = agent_call(&a, &list);
    if (!status && peg_record_is_error(a.record))
        status = PEG_ENOMEM;
    agent_free(&a);
    return status;
}
