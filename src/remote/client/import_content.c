/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Typed content as the answer of an imported tool:
 *
 *   media                  media; bytes beside it too; text and JSON beside it are a note of the
 * first bytes alone            bytes text and JSON          text, one below the other; JSON alone
 * is JSON
 *
 * How far media is trusted is for the host that imports it to say, not for the provider.
 */

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/limits/content.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/cleanup.h"
#include "pegboard/media.h"
#include "pegboard/reader.h"
#include "remote/client/remote.h"
#include "json/json.h"

static const char description[] = "text:description";

/* What is answered with, as it is put together. */
struct reply {
    bool is_trusted;
    struct peg__buf text; /* beside media */
    peg_media *media[PEG_LIMIT_CONTENT_PARTS];
    size_t n;
};

static peg_trust_tier cautious(const struct reply *reply, peg_trust_tier tier)
{
    return !reply->is_trusted && tier == PEG_TIER_FIRST_PARTY ? PEG_TIER_THIRD_PARTY_PRIVATE : tier;
}

/* Text beside media becomes a note of the first, unless that has one of the name. */
static const char *beside(const struct reply *reply, const peg_media *media)
{
    return reply->n == 0 && reply->text.len && !peg_media_note_named(media, description) &&
                   peg_media_n_notes(media) < PEG_LIMIT_MEDIA_NOTES
               ? reply->text.ptr
               : NULL;
}

static size_t copy_cautious_notes(const struct reply *reply, const peg_media *media,
                                  peg_media_note notes[PEG_LIMIT_MEDIA_NOTES])
{
    const char *text = beside(reply, media);
    size_t n = 0;

    for (; n < peg_media_n_notes(media); n++) {
        notes[n] = *peg_media_note_at(media, n);
        notes[n].tier = cautious(reply, notes[n].tier);
    }
    if (text)
        notes[n++] = (peg_media_note){
            .name = description, .text = text, .tier = cautious(reply, PEG_TIER_FIRST_PARTY)};
    return n;
}

static const char *unless_empty(const char *text)
{
    return *text ? text : NULL;
}

static peg_status add_imported_media(struct reply *reply, const peg_media *media, peg_error *reterr)
{
    peg_media_note notes[PEG_LIMIT_MEDIA_NOTES];
    const peg_media_def def = {
        PEG_MEDIA_DEF_INIT,
        .id = peg_media_id(media),
        .kind = peg_media_kind_of(media),
        .mime_type = peg_media_mime_type(media),
        .filename = peg_media_filename(media),
        .reader = peg_media_has_bytes(media) ? peg_media_reader(media) : NULL,
        .uri = unless_empty(peg_media_uri(media)),
        .file_id = unless_empty(peg_media_file_id(media)),
        .detail = unless_empty(peg_media_detail(media)),
        .source = unless_empty(peg_media_source(media)),
        .tier = cautious(reply, peg_media_tier(media)),
        .hazard = peg_media_hazard_of(media),
        .notes = notes,
        .n_notes = copy_cautious_notes(reply, media, notes),
    };
    const peg_status status = peg_media_new(&def, &reply->media[reply->n], reterr);

    reply->n += !status;
    return status;
}

static peg_status add_bytes_as_media(struct reply *reply, peg_str bytes, peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *media = NULL;
    peg_status status = peg_reader_from_bytes(bytes, &reader, reterr);
    const peg_media_def def = {PEG_MEDIA_DEF_INIT,
                               .kind = PEG_MEDIA_DOCUMENT,
                               .mime_type = "application/octet-stream",
                               .filename = "result.bin",
                               .reader = reader,
                               .tier = PEG_TIER_FIRST_PARTY,
                               .hazard = PEG_HAZARD_OPAQUE};

    if (!status)
        status = peg_media_new(&def, &media, reterr);
    return status ? status : add_imported_media(reply, media, reterr);
}

/* ---- the answer ---- */

static size_t count_parts(const peg_remote_result *result, peg_content_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < result->n_content; i++)
        n += result->content[i].kind == kind;
    return n;
}

/* Lines of text and JSON, as a model reads them. */
static void join_text_parts(const peg_remote_result *result, struct peg__buf *text)
{
    for (size_t i = 0; i < result->n_content; i++) {
        const peg_remote_content *part = &result->content[i];

        if (part->kind != PEG_CONTENT_TEXT && part->kind != PEG_CONTENT_JSON)
            continue;
        if (text->len)
            peg__buf_putc(text, '\n');
        peg__buf_str(text, part->bytes);
    }
}

static void reply_with_media(peg_call *call, struct reply *reply, const peg_remote_result *result)
{
    peg_error error;
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < result->n_content; i++) {
        const peg_remote_content *part = &result->content[i];

        if (part->kind == PEG_CONTENT_MEDIA)
            status = add_imported_media(reply, part->media, &error);
        else if (part->kind == PEG_CONTENT_BYTES)
            status = add_bytes_as_media(reply, part->bytes, &error);
    }
    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status)
        peg_call_fail_with(call, &error);
    else
        peg_call_reply_media(call, reply->media, reply->n);
    while (reply->n)
        peg_media_unref(reply->media[--reply->n]);
}

static void reply_with_json(peg_call *call, peg_str json)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_error error;
    const peg_status status = peg_json_parse(json, &peg__json_refuse_duplicates, &doc, &error);

    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status)
        peg_call_fail(call, "the tool's answer is no JSON: %s", error.message);
    else
        peg_call_reply_json(call, peg_json_root(doc));
}

void remote__content_reply(peg_call *call, const peg_remote_result *result, bool is_trusted)
{
    struct reply reply = {.is_trusted = is_trusted, .text = PEG__BUF(PEG_LIMIT_MEDIA_TEXT_BYTES)};
    const size_t n_bytes = count_parts(result, PEG_CONTENT_BYTES);
    const bool is_one = result->n_content == 1;

    join_text_parts(result, &reply.text);
    if (result->n_content > PEG_LIMIT_CONTENT_PARTS)
        peg_call_fail(call, "the tool's answer has more than 64 parts: ask for less");
    else if (reply.text.status)
        peg__call_out_of_memory(call);
    else if (is_one && n_bytes)
        peg_call_reply_bytes(call, result->content[0].bytes);
    else if (is_one && result->content[0].kind == PEG_CONTENT_JSON)
        reply_with_json(call, result->content[0].bytes);
    else if (n_bytes || count_parts(result, PEG_CONTENT_MEDIA))
        reply_with_media(call, &reply, result);
    else
        peg_call_reply(call, peg__buf_view(&reply.text));
    peg__buf_free(&reply.text);
}
