/* SPDX-License-Identifier: Apache-2.0 */

/* Typed content of an answer, as parts of the result. What a gateway says of media is taken as
 * carefully as it can be: a word that is not known is the most cautious one. */

#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/media.h"
#include "pegboard/reader.h"
#include "remote/client/remote.h"

static peg_trust_tier tier_named(const char *name)
{
    for (peg_trust_tier tier = PEG_TIER_FIRST_PARTY; tier < PEG_TIER_THIRD_PARTY_PUBLIC; tier++) {
        if (strcmp(name, peg_trust_tier_name(tier)) == 0)
            return tier;
    }
    return PEG_TIER_THIRD_PARTY_PUBLIC;
}

static peg_media_kind media_kind_named(const char *name)
{
    for (peg_media_kind kind = PEG_MEDIA_IMAGE; kind < PEG_MEDIA_DOCUMENT; kind++) {
        if (strcmp(name, peg_media_kind_name(kind)) == 0)
            return kind;
    }
    return PEG_MEDIA_DOCUMENT;
}

static peg_media_hazard hazard_named(const char *name)
{
    for (peg_media_hazard hazard = PEG_HAZARD_INERT; hazard < PEG_HAZARD_OPAQUE; hazard++) {
        if (strcmp(name, peg_media_hazard_name(hazard)) == 0)
            return hazard;
    }
    return PEG_HAZARD_OPAQUE;
}

static const char *unless_empty(const char *text)
{
    return *text ? text : NULL;
}

static const char *text_or(const char *text, const char *other)
{
    return *text ? text : other;
}

static const peg_media_note *read_media_notes(struct peg__arena *arena,
                                              const Pegboard__V1__Media *media)
{
    peg_media_note *notes = peg__arena_alloc(arena, (media->n_notes + 1) * sizeof(*notes));

    for (size_t i = 0; notes && i < media->n_notes; i++)
        notes[i] = (peg_media_note){.name = media->notes[i]->name,
                                    .text = media->notes[i]->text,
                                    .tier = tier_named(media->notes[i]->trust_tier),
                                    .is_derived = media->notes[i]->derived};
    return notes;
}

static peg_status read_media_part(struct peg__arena *arena, const Pegboard__V1__Media *media,
                                  peg_media **ret_media, peg_error *reterr)
{
    peg_media_def def = {PEG_MEDIA_DEF_INIT,
                         .id = unless_empty(media->id),
                         .kind = media_kind_named(media->kind),
                         .mime_type = text_or(media->mime_type, "application/octet-stream"),
                         .filename = text_or(media->filename, "result.bin"),
                         .uri = unless_empty(media->uri),
                         .file_id = unless_empty(media->file_id),
                         .detail = unless_empty(media->detail),
                         .source = unless_empty(media->source),
                         .tier = tier_named(media->trust_tier),
                         .hazard = hazard_named(media->hazard),
                         .notes = read_media_notes(arena, media),
                         .n_notes = media->n_notes};
    peg_status status = def.notes ? PEG_OK : peg__fail_nomem(reterr);

    if (!status && (media->data.len || media->is_empty))
        status = peg_reader_from_bytes(peg__strn((const char *)media->data.data, media->data.len),
                                       &def.reader, reterr);
    if (!status)
        status = peg_media_new(&def, ret_media, reterr);
    peg_reader_unref(def.reader);
    return status;
}

static peg_str view_data(ProtobufCBinaryData data)
{
    return data.len ? peg__strn((const char *)data.data, data.len) : peg__str("");
}

static peg_status read_content_part(struct peg__arena *arena, const Pegboard__V1__Content *part,
                                    peg_remote_content *ret_content, peg_error *reterr)
{
    *ret_content = (peg_remote_content){.bytes = peg__str("")};
    switch (part->part_case) {
    case PEGBOARD__V1__CONTENT__PART_TEXT:
        ret_content->bytes = peg__str(part->text);
        return PEG_OK;
    case PEGBOARD__V1__CONTENT__PART_JSON:
        ret_content->kind = PEG_CONTENT_JSON;
        ret_content->bytes = view_data(part->json);
        return PEG_OK;
    case PEGBOARD__V1__CONTENT__PART_BYTES:
        ret_content->kind = PEG_CONTENT_BYTES;
        ret_content->bytes = view_data(part->bytes);
        return PEG_OK;
    case PEGBOARD__V1__CONTENT__PART_MEDIA:
        ret_content->kind = PEG_CONTENT_MEDIA;
        return read_media_part(arena, part->media, &ret_content->media, reterr);
    default:
        return peg__fail(reterr, PEG_EPARSE, "E_GATEWAY",
                         "a part of the content is of a kind that is not known here");
    }
}

peg_status remote__content_read(struct remote__result *r,
                                const Pegboard__V1__CallToolResponse *response, peg_error *reterr)
{
    peg_remote_content *parts =
        peg__arena_alloc(&r->arena, (response->n_content + 1) * sizeof(*parts));
    peg_status status = PEG_OK;

    if (!parts)
        return peg__fail_nomem(reterr);
    r->result.content = parts;
    for (size_t i = 0; !status && i < response->n_content; i++) {
        status = read_content_part(&r->arena, response->content[i], &parts[i], reterr);
        r->result.n_content += !status;
    }
    if (status)
        remote__content_drop(r);
    return status;
}

void remote__content_drop(struct remote__result *r)
{
    for (size_t i = 0; i < r->result.n_content; i++)
        peg_media_unref(r->result.content[i].media);
    r->result.n_content = 0;
}
