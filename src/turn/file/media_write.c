/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "turn/file/media.h"

/* ---- media ------------------------------------------------------------------------- */

static peg_status write_note(const peg_media_note *note, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    peg_status status;

    peg__fields_true(&fields, "derived", note->is_derived);
    peg__fields_string(&fields, "name", peg__str(note->name));
    peg__fields_string(&fields, "text", peg__str(note->text));
    peg__fields_string(&fields, "trust_tier", peg__str(peg_trust_tier_name(note->tier)));
    status = peg__fields_write(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}

static peg_status write_notes(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const peg_media *media = self;
    peg_status status = PEG_OK;

    peg_json_open_array(b);
    for (size_t i = 0; i < peg_media_n_notes(media) && !status; i++)
        status = write_note(peg_media_note_at(media, i), b, reterr);
    peg_json_close(b);
    return status;
}

static void describe(const peg_media *media, struct peg__fields *fields)
{
    peg__fields_string(fields, "id", peg__str(peg_media_id(media)));
    peg__fields_string(fields, "kind", peg__str(peg_media_kind_name(peg_media_kind_of(media))));
    peg__fields_string(fields, "media_type", peg__str(peg_media_mime_type(media)));
    peg__fields_string(fields, "filename", peg__str(peg_media_filename(media)));
    peg__fields_string(fields, "trust_tier", peg__str(peg_trust_tier_name(peg_media_tier(media))));
    peg__fields_string(fields, "modality_hazard",
                       peg__str(peg_media_hazard_name(peg_media_hazard_of(media))));
    peg__fields_text(fields, "source", peg__str(peg_media_source(media)));
    peg__fields_text(fields, "uri", peg__str(peg_media_uri(media)));
    peg__fields_text(fields, "file_id", peg__str(peg_media_file_id(media)));
    peg__fields_text(fields, "detail", peg__str(peg_media_detail(media)));
    if (peg_media_n_notes(media))
        peg__fields_made(fields, "notes", write_notes, media);
}

static peg_status write_one(const peg_media *media, const peg_turn_write_options *options,
                            const peg_json *rest, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    struct peg__bytes bytes = {0};
    peg_status status = PEG_OK;

    describe(media, &fields);
    if (peg_media_has_bytes(media)) {
        status = peg__bytes_place(peg_media_reader(media), options, &bytes, reterr);
        if (!status)
            peg__bytes_fields(&bytes, &fields);
    }
    if (!status) {
        peg__fields_members(&fields, rest);
        status = peg__fields_write(&fields, b, reterr);
    }
    peg__bytes_free(&bytes);
    peg__fields_free(&fields);
    return status;
}

peg_status peg__media_file_write(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__media_list *list = self;
    peg_status status = PEG_OK;

    peg_json_open_array(b);
    for (size_t i = 0; i < peg_block_n_media(list->block) && !status; i++)
        status = write_one(peg_block_media(list->block, i), list->options,
                           list->rest ? peg_json_at(list->rest, i) : NULL, b, reterr);
    peg_json_close(b);
    return status;
}

/* ---- artifacts --------------------------------------------------------------------- */

peg_status peg__artifact_file_write(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__artifact_out *artifact = self;
    struct peg__fields fields = {0};
    peg_status status;

    peg__fields_string(&fields, "kind", peg__str(artifact->kind));
    if (artifact->bytes)
        peg__bytes_fields(artifact->bytes, &fields);
    peg__fields_members(&fields, artifact->rest);
    status = peg__fields_write(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}
